/* uses.c: which variables nodes mention and which they write, called blocks included. */
#include "synth/consumers.h"

oi_uses oi_uses_new(oi_arena *a, const oi_program *p)
{
    oi_uses u = {.p = p, .round = 1};
    u.used = oi_arena_alloc(a, (p->n_vars + 1) * sizeof *u.used);
    u.written = oi_arena_alloc(a, (p->n_vars + 1) * sizeof *u.written);
    u.seen = oi_arena_alloc(a, (p->n_blocks + 1) * sizeof *u.seen);
    return u;
}

void oi_uses_clear(oi_uses *u)
{
    u->round++;
}

bool oi_uses_has(const oi_uses *u, uint32_t var)
{
    return u->used[var] == u->round;
}

bool oi_uses_writes(const oi_uses *u, uint32_t var)
{
    return u->written[var] == u->round;
}

bool oi_uses_saw(const oi_uses *u, uint32_t block)
{
    return u->seen[block] == u->round;
}

static void use_name(oi_uses *b, uint32_t var)
{
    b->used[var] = b->round;
}

static void use_code(oi_uses *b, const oi_code *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->at[i].kind == OI_INS_VAR)
            use_name(b, c->at[i].id);
}

static void use_ref(oi_uses *b, const oi_pref *r, bool writes)
{
    if (r->is_index)
        return;
    use_name(b, r->var);
    if (writes)
        b->written[r->var] = b->round;
    for (uint32_t i = 0; i < r->n_codes; i++)
        use_code(b, &r->codes[i]);
}

static void use_value(oi_uses *b, const oi_pvalue *v)
{
    if (v->kind == OI_PV_VAR)
        use_name(b, v->id);
    else if (v->kind == OI_PV_CODE)
        use_code(b, &v->code);
}

static void use_op(oi_uses *b, const oi_pnode *n)
{
    for (uint32_t i = 0; i < n->as.op.n_in; i++)
        use_ref(b, &n->as.op.in[i], false);
    for (uint32_t i = 0; i < n->as.op.n_out; i++)
        use_ref(b, &n->as.op.out[i], true);
    for (uint32_t i = 0; i < n->as.op.n_attrs; i++) {
        const oi_pattr *a = &n->as.op.attrs[i];
        use_value(b, &a->one);
        for (uint32_t k = 0; a->items && k < a->n_items; k++)
            use_value(b, &a->items[k]);
    }
}

static void use_cache(oi_uses *b, const oi_pnode *n)
{
    const oi_paccess *a = &n->as.move.cache;
    use_name(b, a->var);
    if (n->kind != OI_NODE_CACHE_READ)
        b->written[a->var] = b->round;
    for (uint32_t i = 0; i < a->n; i++) {
        use_code(b, &a->sels[i].start);
        use_code(b, &a->sels[i].end);
    }
    if (n->kind == OI_NODE_CACHE_READ)
        use_ref(b, &n->as.move.to, true);
    if (n->kind == OI_NODE_CACHE_WRITE)
        use_ref(b, &n->as.move.from, false);
    bool counts = n->kind == OI_NODE_CACHE_INCREMENT || n->kind == OI_NODE_CACHE_DECREMENT;
    if (counts && n->as.move.amount_var != OI_NO_ID && !n->as.move.amount_is_index)
        use_name(b, n->as.move.amount_var);
}

static void use_nodes(oi_uses *b, const oi_ids *list)
{
    for (size_t i = 0; i < list->n; i++)
        oi_uses_of_node(b, &b->p->nodes[list->at[i]]);
}

void oi_uses_of_node(oi_uses *b, const oi_pnode *n)
{
    switch (n->kind) {
    case OI_NODE_OP: use_op(b, n); break;
    case OI_NODE_TRANSFER:
        use_ref(b, &n->as.move.from, false);
        use_ref(b, &n->as.move.to, true);
        break;
    case OI_NODE_LOOP:
        use_code(b, &n->as.loop.start);
        use_code(b, &n->as.loop.end);
        use_nodes(b, &n->source->as.loop.body);
        break;
    case OI_NODE_BRANCH:
        if (n->as.branch.cond != OI_NO_ID && !n->as.branch.cond_is_index)
            use_name(b, n->as.branch.cond);
        oi_uses_of_block(b, n->as.branch.then_block);
        if (n->as.branch.else_block != OI_NO_ID)
            oi_uses_of_block(b, n->as.branch.else_block);
        break;
    case OI_NODE_YIELD:
    case OI_NODE_AWAIT:
    case OI_NODE_RETURN:
        for (uint32_t k = 0; k < n->as.list.n; k++)
            use_name(b, n->as.list.vars[k]);
        break;
    case OI_NODE_ASSIGN:
    case OI_NODE_BARRIER:
    case OI_NODE_DEP: break;
    default: use_cache(b, n); break;
    }
}

void oi_uses_of_block(oi_uses *b, uint32_t block)
{
    if (oi_uses_saw(b, block))
        return;
    b->seen[block] = b->round;
    use_nodes(b, &b->p->blocks[block].source->nodes);
}
