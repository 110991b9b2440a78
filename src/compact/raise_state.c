/* raise_state.c: pairs of accesses to two tables -> kv_write and kv_read. A read gives all rows,
 * and with them a number of those that count: step + 1, which attention takes. */
#include "compact/raise.h"

typedef struct pair {
    const oi_node *k, *v;
    const oi_access *keys, *values; /* of the tables */
    const oi_symbol *table;
    const char *name; /* of the cache */
    size_t n;         /* nodes up to v, v included */
} pair;

static const oi_node *at(const oi_raiser *r, const oi_ids *list, size_t i)
{
    return i < list->n ? &r->g->nodes.at[list->at[i]] : NULL;
}

/* NAME_k(l, t) @table @fixed(l=…, t=…) and NAME_v like it. */
static const char *cache_of(const oi_raiser *r, const char *keys, const char *values)
{
    const oi_symbol *k = oi_symbols_find(r->typer.syms, keys),
                    *v = oi_symbols_find(r->typer.syms, values);
    size_t n = strlen(keys);
    if (n < 3 || strlen(values) != n || memcmp(keys, values, n - 1) != 0 ||
        strcmp(keys + n - 2, "_k") != 0 || strcmp(values + n - 2, "_v") != 0 || !k || !v)
        return NULL;
    bool equal = k->n_axes == 2 && k->n_table == 2 && v->n_axes == 2 && v->n_table == 2 &&
                 k->dtype == v->dtype && k->dims->n == v->dims->n && !k->var->has_init &&
                 !v->var->has_init;
    for (size_t i = 0; equal && i < 2; i++)
        equal = k->axes[i].fixed && v->axes[i].fixed &&
                oi_expr_equal(k->axes[i].fixed, v->axes[i].fixed);
    for (size_t i = 0; equal && i < k->dims->n; i++)
        equal = oi_expr_equal(k->dims->at[i], v->dims->at[i]);
    return equal ? oi_arena_text(r->a, keys, n - 2) : NULL;
}

/* Two accesses of the same kind at the same place. */
static bool find_pair(oi_raiser *r, const oi_node *k, const oi_node *v, pair *p)
{
    bool reads = k->kind == OI_NODE_CACHE_READ;
    p->k = k;
    p->v = v;
    p->keys = reads ? &k->as.move.from : &k->as.move.to;
    p->values = reads ? &v->as.move.from : &v->as.move.to;
    if (p->keys->sels.n != 2 || p->values->sels.n != 2)
        return false;
    for (size_t i = 0; i < 2; i++) {
        const oi_sel *a = &p->keys->sels.at[i], *b = &p->values->sels.at[i];
        if (a->is_slice != b->is_slice || !a->start || !b->start ||
            !oi_expr_equal(a->start, b->start) || !a->end != !b->end ||
            (a->end && !oi_expr_equal(a->end, b->end)))
            return false;
    }
    p->name = cache_of(r, p->keys->base.text, p->values->base.text);
    p->table = oi_symbols_find(r->typer.syms, p->keys->base.text);
    return p->name && !p->keys->sels.at[0].is_slice;
}

static const oi_node *next_of(const oi_raiser *r, const oi_ids *list, size_t *i)
{
    do
        ++*i;
    while (*i < list->n && at(r, list, *i)->kind == OI_NODE_ASSIGN);
    return at(r, list, *i);
}

static void state(oi_raiser *r, const pair *p)
{
    const oi_symbol *s = p->table;
    if (oi_map_get(&r->states, p->name) != OI_MAP_NONE)
        return;
    oi_map_put(&r->states, p->name, (uint32_t)r->c.states.n);
    *OI_PUSH(r->a, &r->c.states) = (oi_cstate){.name = {.text = p->name},
                                               .dtype = s->dtype,
                                               .layers = s->axes[0].fixed,
                                               .cap = s->axes[1].fixed,
                                               .has_shape = true,
                                               .shape = *s->dims};
}

static oi_cexpr *start_call(oi_raiser *r, const pair *p, const char *name, const oi_cexpr *step)
{
    oi_cexpr *e = oi_arena_alloc(r->a, sizeof *e), *kv = oi_arena_alloc(r->a, sizeof *kv);
    *kv = (oi_cexpr){.kind = OI_CEXPR_NAME, .depth = 1, .name = {.text = p->name}};
    *e = (oi_cexpr){.kind = OI_CEXPR_CALL, .depth = 2, .name = {.text = name}};
    const oi_cexpr *layer = oi_raise_index(r, p->keys->sels.at[0].start, p->keys->span);
    if (!layer || !oi_raise_numbers(r, p->k, p->keys->sels.at[0].start))
        return NULL;
    *OI_PUSH(r->a, &e->args) = (oi_carg){.expr = kv};
    *OI_PUSH(r->a, &e->args) = (oi_carg){.name = {.text = "layer"}, .expr = layer};
    *OI_PUSH(r->a, &e->args) = (oi_carg){.name = {.text = "step"}, .expr = step};
    return e;
}

static size_t kv_write(oi_raiser *r, const oi_ids *list, size_t i)
{
    pair p;
    size_t last = i;
    const oi_node *k = at(r, list, i), *v = next_of(r, list, &last);
    if (!v || v->kind != k->kind || !find_pair(r, k, v, &p) || p.keys->sels.at[1].is_slice)
        return 0;
    const oi_expr *when = p.keys->sels.at[1].start;
    const oi_cexpr *step = oi_raise_index(r, when, p.keys->span);
    const oi_cexpr *x = oi_raise_operand(r, k, &k->as.move.from),
                   *y = oi_raise_operand(r, v, &v->as.move.from);
    if (!step || !x || !y || !oi_raise_numbers(r, k, when))
        return 0;
    oi_cexpr *e = start_call(r, &p, "kv_write", step);
    if (!e)
        return 0;
    state(r, &p);
    *OI_PUSH(r->a, &e->args) = (oi_carg){.name = {.text = "k"}, .expr = x};
    *OI_PUSH(r->a, &e->args) = (oi_carg){.name = {.text = "v"}, .expr = y};
    oi_raise_stmt(r, OI_CSTMT_BIND, k)->expr = e;
    return last - i + 1;
}

/* The value of a rank-0 constant that the graph fills itself. */
static bool number(const oi_raiser *r, const char *name, int64_t *out)
{
    const oi_symbol *s = oi_symbols_find(r->typer.syms, name);
    return s && s->kind == OI_SYM_CONSTANT && s->var->has_init &&
           oi_typer_constant((oi_typer *)&r->typer, s, out);
}

/* The node that says how many rows count: add(step, 1) or a number; the step it stands for. */
static const oi_cexpr *step_of(oi_raiser *r, const oi_node *n, const char **length)
{
    int64_t one = 0;
    oi_cexpr *e = oi_arena_alloc(r->a, sizeof *e);
    if (n->kind == OI_NODE_TRANSFER && number(r, n->as.move.from.base.text, &one) && one > 0) {
        *e = (oi_cexpr){.kind = OI_CEXPR_NUMBER, .depth = 1};
        e->value = (oi_value){.kind = OI_VAL_INT, .magnitude = (uint64_t)one - 1};
        *length = n->as.move.to.base.text;
        return e;
    }
    if (n->kind != OI_NODE_OP || strcmp(n->name.text, "add") != 0 || n->as.op.inputs.n != 2 ||
        n->as.op.attrs.n || !number(r, n->as.op.inputs.at[1].base.text, &one) || one != 1)
        return NULL;
    *length = n->as.op.outputs.at[0].base.text;
    return oi_raise_operand(r, n, &n->as.op.inputs.at[0]);
}

static bool reads_all(const pair *p)
{
    const oi_sel *t = &p->keys->sels.at[1];
    int64_t start;
    return t->is_slice && t->start && t->end && oi_expr_is_literal(t->start, &start) &&
           start == 0 && oi_expr_equal(t->end, p->table->axes[1].fixed);
}

static size_t kv_read(oi_raiser *r, const oi_ids *list, size_t i)
{
    pair p;
    size_t last = i;
    const oi_node *k = at(r, list, i), *count = next_of(r, list, &last),
                  *v = count ? next_of(r, list, &last) : NULL;
    const char *length = NULL;
    if (!v || v->kind != k->kind || !find_pair(r, k, v, &p) || !reads_all(&p))
        return 0;
    const oi_cexpr *step = step_of(r, count, &length);
    const oi_raised *counted = length ? oi_raise_var(r, length) : NULL;
    oi_cexpr *e = step && counted && !counted->n_reads && step->kind != OI_CEXPR_CALL
                      ? start_call(r, &p, "kv_read", step)
                      : NULL;
    if (!e)
        return 0;
    state(r, &p);
    oi_cstmt *s = oi_raise_stmt(r, OI_CSTMT_BIND, k);
    s->is_let = s->is_tuple = true;
    s->expr = e;
    *OI_PUSH(r->a, &s->names) = k->as.move.to.base;
    *OI_PUSH(r->a, &s->names) = v->as.move.to.base;
    oi_raise_bind(r, k, k->as.move.to.base.text);
    oi_raise_bind(r, v, v->as.move.to.base.text);
    oi_raise_var(r, k->as.move.to.base.text)->length = length;
    oi_map_set(&r->lengths, length, 0);
    return last - i + 1;
}

size_t oi_raise_state(oi_raiser *r, const oi_ids *list, size_t i)
{
    const oi_node *n = at(r, list, i);
    if (n->kind != OI_NODE_CACHE_WRITE && n->kind != OI_NODE_CACHE_READ)
        return 0;
    size_t before = oi_diag_errors(r->d);
    size_t taken = n->kind == OI_NODE_CACHE_WRITE ? kv_write(r, list, i) : kv_read(r, list, i);
    if (taken || oi_diag_errors(r->d) == before || n->kind == OI_NODE_CACHE_READ)
        return taken;
    size_t last = i; /* a pair, and what is wrong with it has been said */
    next_of(r, list, &last);
    return last - i + 1;
}
