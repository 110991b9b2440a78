/* build.c: a bound graph becomes statements over tensors. Loops, branches and blocks stay as they
 * are written; ops become kernels (lower.c). */
#include "synth/synth.h"

typedef struct building {
    oi_unit *u;
    uint32_t graph;
    const oi_program *p;
    uint8_t *is_used, *is_written; /* by variable */
    uint8_t *seen;                 /* by block */
} building;

/* -- what is used -- */

static void use_code(building *b, const oi_code *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->at[i].kind == OI_INS_VAR)
            b->is_used[c->at[i].id] = 1;
}

static void use_ref(building *b, const oi_pref *r, bool writes)
{
    if (r->is_index)
        return;
    b->is_used[r->var] = 1;
    b->is_written[r->var] |= writes;
    for (uint32_t i = 0; i < r->n_codes; i++)
        use_code(b, &r->codes[i]);
}

static void use_value(building *b, const oi_pvalue *v)
{
    if (v->kind == OI_PV_VAR)
        b->is_used[v->id] = 1;
    else if (v->kind == OI_PV_CODE)
        use_code(b, &v->code);
}

static void use_op(building *b, const oi_pnode *n)
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

static void use_cache(building *b, const oi_pnode *n)
{
    const oi_paccess *a = &n->as.move.cache;
    b->is_used[a->var] = 1;
    b->is_written[a->var] |= n->kind != OI_NODE_CACHE_READ;
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
        b->is_used[n->as.move.amount_var] = 1;
}

static void use_block(building *b, uint32_t block);

static void use_nodes(building *b, const oi_ids *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_pnode *n = &b->p->nodes[list->at[i]];
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
                b->is_used[n->as.branch.cond] = 1;
            use_block(b, n->as.branch.then_block);
            if (n->as.branch.else_block != OI_NO_ID)
                use_block(b, n->as.branch.else_block);
            break;
        case OI_NODE_YIELD:
        case OI_NODE_AWAIT:
        case OI_NODE_RETURN:
            for (uint32_t k = 0; k < n->as.list.n; k++)
                b->is_used[n->as.list.vars[k]] = 1;
            break;
        case OI_NODE_ASSIGN:
        case OI_NODE_BARRIER:
        case OI_NODE_DEP: break;
        default: use_cache(b, n); break;
        }
    }
}

static void use_block(building *b, uint32_t block)
{
    if (b->seen[block])
        return;
    b->seen[block] = 1;
    use_nodes(b, &b->p->blocks[block].source->nodes);
}

/* -- statements -- */

static oi_port port_of(const building *b, const oi_pref *r)
{
    return (oi_port){.tensor = b->u->graphs.at[b->graph].tensor_of[r->var],
                     .entry = r->codes,
                     .n_entry = r->n_codes,
                     .ref = r};
}

static void add_transfer(building *b, const oi_pnode *n, oi_stmts *out)
{
    oi_port to = port_of(b, &n->as.move.to);
    to.is_written = true;
    if (n->as.move.from.is_index)
        *OI_PUSH(b->u->arena, out) =
            (oi_stmt){.kind = OI_STMT_SET,
                      .node = n,
                      .a = to,
                      .value = {.kind = OI_PV_INDEX, .id = n->as.move.from.var}};
    else
        oi_lower_copy(b->u, b->graph, n, port_of(b, &n->as.move.from), to, out);
}

static void add_cache(building *b, const oi_pnode *n, oi_stmts *out)
{
    oi_stmt s = {.kind = OI_STMT_CACHE, .node = n};
    s.a.tensor = b->u->graphs.at[b->graph].tensor_of[n->as.move.cache.var];
    s.a.is_written = n->kind != OI_NODE_CACHE_READ;
    if (n->kind == OI_NODE_CACHE_READ) {
        s.b = port_of(b, &n->as.move.to);
        s.b.is_written = true;
    } else if (n->kind == OI_NODE_CACHE_WRITE) {
        s.b = port_of(b, &n->as.move.from);
    }
    *OI_PUSH(b->u->arena, out) = s;
}

/* Per-node runs: the host looks at what the node has written. */
static void add_check(building *b, const oi_pnode *n, oi_stmts *out)
{
    bool writes =
        n->kind == OI_NODE_OP || n->kind == OI_NODE_TRANSFER || n->kind == OI_NODE_CACHE_READ;
    if (b->u->per_node && writes)
        *OI_PUSH(b->u->arena, out) = (oi_stmt){.kind = OI_STMT_CHECK, .node = n};
}

static void add_nodes(building *b, const oi_ids *list, oi_stmts *out)
{
    static const oi_stmt_kind kinds[OI_NODE_KIND_COUNT] = {
        [OI_NODE_BRANCH] = OI_STMT_BRANCH, [OI_NODE_YIELD] = OI_STMT_YIELD,
        [OI_NODE_AWAIT] = OI_STMT_AWAIT,   [OI_NODE_BARRIER] = OI_STMT_BARRIER,
        [OI_NODE_RETURN] = OI_STMT_RETURN,
    };
    for (size_t i = 0; i < list->n && b->u->status == OI_OK; i++) {
        const oi_pnode *n = &b->p->nodes[list->at[i]];
        oi_stmt loop = {.kind = OI_STMT_LOOP, .node = n};
        switch (n->kind) {
        case OI_NODE_OP: oi_lower_op(b->u, b->graph, n, out); break;
        case OI_NODE_TRANSFER: add_transfer(b, n, out); break;
        case OI_NODE_LOOP:
            add_nodes(b, &n->source->as.loop.body, &loop.body);
            *OI_PUSH(b->u->arena, out) = loop;
            break;
        case OI_NODE_CACHE_READ:
        case OI_NODE_CACHE_WRITE:
        case OI_NODE_CACHE_INCREMENT:
        case OI_NODE_CACHE_DECREMENT:
        case OI_NODE_CACHE_RESET: add_cache(b, n, out); break;
        case OI_NODE_ASSIGN:
        case OI_NODE_DEP: break; /* storage, and an order that statements keep anyway */
        default: *OI_PUSH(b->u->arena, out) = (oi_stmt){.kind = kinds[n->kind], .node = n}; break;
        }
        add_check(b, n, out);
    }
}

/* -- the graph -- */

static const oi_pnode *last_node(const oi_program *p)
{
    const oi_ids *list = &p->blocks[p->entry].source->nodes;
    return list->n ? &p->nodes[list->at[list->n - 1]] : NULL;
}

/* What the host reads: what entry returns, else every declared variable that the graph writes. */
static void set_ports(building *b)
{
    oi_sgraph *g = &b->u->graphs.at[b->graph];
    const oi_pnode *end = last_node(b->p);
    bool lists = end && end->kind == OI_NODE_RETURN && end->as.list.n;
    for (uint32_t i = 0; i < b->p->n_vars; i++) {
        const oi_pvar *v = &b->p->vars[i];
        if (g->tensor_of[i] == OI_NO_ID)
            continue;
        if (v->kind == OI_SYM_DYNAMIC)
            *OI_PUSH(b->u->arena, &g->inputs) = g->tensor_of[i];
        if (!lists && b->is_written[i] && !v->is_prefix &&
            (v->kind == OI_SYM_VOLATILE || v->kind == OI_SYM_DYNAMIC))
            *OI_PUSH(b->u->arena, &g->outputs) = g->tensor_of[i];
    }
    for (uint32_t i = 0; lists && i < end->as.list.n; i++)
        *OI_PUSH(b->u->arena, &g->outputs) = g->tensor_of[end->as.list.vars[i]];
    for (size_t i = 0; i < g->outputs.n; i++) {
        oi_tensor *t = &b->u->tensors.at[g->outputs.at[i]];
        if (t->space == OI_SPACE_ARENA)
            t->space = OI_SPACE_OUTPUT;
    }
}

oi_status oi_unit_add_graph(oi_unit *u, const oi_program *p, const char *name)
{
    building b = {.u = u, .graph = (uint32_t)u->graphs.n, .p = p};
    oi_arena *a = u->arena;
    b.is_used = oi_arena_alloc(a, p->n_vars + 1);
    b.is_written = oi_arena_alloc(a, p->n_vars + 1);
    b.seen = oi_arena_alloc(a, p->n_blocks + 1);
    use_block(&b, p->entry);
    for (uint32_t i = 0; i < p->n_consumers; i++)
        use_block(&b, p->consumers[i]);
    oi_sgraph g = {.program = p, .name = name};
    g.blocks = oi_arena_alloc(a, (p->n_blocks + 1) * sizeof *g.blocks);
    g.tensor_of = oi_arena_alloc(a, (p->n_vars + 1) * sizeof *g.tensor_of);
    *OI_PUSH(a, &u->graphs) = g;
    for (uint32_t i = 0; i < p->n_vars; i++) {
        /* inputs and state are the program's face, used or not */
        bool shows = p->vars[i].kind == OI_SYM_DYNAMIC || p->vars[i].kind == OI_SYM_PERSISTENT;
        g.tensor_of[i] = OI_NO_ID;
        if (b.is_used[i] || shows)
            g.tensor_of[i] = oi_unit_add_var(u, b.graph, i, b.is_written[i]);
    }
    if (u->status == OI_OK)
        set_ports(&b);
    for (uint32_t i = 0; i < p->n_blocks && u->status == OI_OK; i++) {
        g.blocks[i].source = &p->blocks[i];
        g.blocks[i].is_used = b.seen[i];
        if (b.seen[i])
            add_nodes(&b, &p->blocks[i].source->nodes, &g.blocks[i].stmts);
    }
    return u->status;
}
