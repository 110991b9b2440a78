/* uses.c: what a node reads and writes, name by name, in the order of the text. One place knows
 * where names stand in each kind of node; checks and programs only look at roles. */
#include "graph/graph.h"

typedef struct walk {
    const oi_node *n;
    oi_use_fn fn;
    void *ctx;
} walk;

static void give(const walk *w, oi_use use)
{
    w->fn(w->ctx, w->n, &use);
}

static void value(const walk *w, const char *name, oi_span span, oi_want want,
                  const oi_access *inside)
{
    give(w, (oi_use){
                .role = OI_USE_VALUE, .want = want, .name = name, .span = span, .inside = inside});
}

static void expr(const walk *w, const oi_expr *e, const oi_access *inside)
{
    if (!e)
        return;
    if (e->kind == OI_EXPR_NAME)
        value(w, e->name, e->span, OI_WANT_INDEX, inside);
    expr(w, e->lhs, inside);
    expr(w, e->rhs, inside);
}

static void access(const walk *w, const oi_access *a, oi_use_role role)
{
    give(w, (oi_use){.role = role, .name = a->base.text, .span = a->base.span, .access = a});
    for (size_t i = 0; i < a->sels.n; i++) {
        expr(w, a->sels.at[i].start, a);
        expr(w, a->sels.at[i].end, a);
    }
}

static void names(const walk *w, const oi_names *list, oi_use_role role)
{
    for (size_t i = 0; i < list->n; i++)
        give(w, (oi_use){.role = role, .name = list->at[i].text, .span = list->at[i].span});
}

static void attr_value(const walk *w, const oi_value *v)
{
    if (v->kind == OI_VAL_NAME)
        value(w, v->text, v->span, OI_WANT_ATTR, NULL);
    else if (v->kind == OI_VAL_EXPR)
        expr(w, v->expr, NULL);
    else if (v->kind == OI_VAL_LIST)
        for (size_t i = 0; i < v->n; i++)
            attr_value(w, &v->items[i]); /* lists do not nest */
}

static void op(const walk *w)
{
    const oi_attrs *attrs = &w->n->as.op.attrs;
    for (size_t i = 0; i < w->n->as.op.inputs.n; i++)
        access(w, &w->n->as.op.inputs.at[i], OI_USE_READ);
    for (size_t i = 0; i < attrs->n; i++)
        attr_value(w, &attrs->at[i].value);
    for (size_t i = 0; i < w->n->as.op.outputs.n; i++)
        access(w, &w->n->as.op.outputs.at[i], OI_USE_WRITE);
}

void oi_node_uses(const oi_node *n, oi_use_fn fn, void *ctx)
{
    walk w = {n, fn, ctx};
    switch (n->kind) {
    case OI_NODE_OP: op(&w); return;
    case OI_NODE_BRANCH:
        if (n->as.branch.cond.text)
            value(&w, n->as.branch.cond.text, n->as.branch.cond.span, OI_WANT_CONDITION, NULL);
        return;
    case OI_NODE_CACHE_READ:
        access(&w, &n->as.move.from, OI_USE_CACHE_READ);
        access(&w, &n->as.move.to, OI_USE_WRITE);
        return;
    case OI_NODE_CACHE_WRITE:
        access(&w, &n->as.move.from, OI_USE_READ);
        access(&w, &n->as.move.to, OI_USE_CACHE_WRITE);
        return;
    case OI_NODE_CACHE_INCREMENT:
    case OI_NODE_CACHE_DECREMENT:
        if (n->as.move.amount_name.text)
            value(&w, n->as.move.amount_name.text, n->as.move.amount_name.span, OI_WANT_AMOUNT,
                  NULL);
        access(&w, &n->as.move.to, OI_USE_CACHE_UPDATE);
        return;
    case OI_NODE_CACHE_RESET: access(&w, &n->as.move.to, OI_USE_CACHE_WRITE); return;
    case OI_NODE_TRANSFER:
        access(&w, &n->as.move.from, OI_USE_READ);
        access(&w, &n->as.move.to, OI_USE_WRITE);
        return;
    case OI_NODE_YIELD: names(&w, &n->as.list.names, OI_USE_YIELD); return;
    case OI_NODE_AWAIT: names(&w, &n->as.list.names, OI_USE_AWAIT); return;
    case OI_NODE_RETURN: names(&w, &n->as.list.names, OI_USE_RETURN); return;
    case OI_NODE_LOOP:
        expr(&w, n->as.loop.start, NULL);
        expr(&w, n->as.loop.end, NULL);
        return;
    default: return;
    }
}

bool oi_use_reads(oi_use_role r)
{
    return r == OI_USE_READ || r == OI_USE_CACHE_READ || r == OI_USE_CACHE_UPDATE ||
           r == OI_USE_VALUE || r == OI_USE_RETURN;
}

bool oi_use_writes(oi_use_role r)
{
    return r == OI_USE_WRITE || r == OI_USE_CACHE_WRITE || r == OI_USE_CACHE_UPDATE;
}
