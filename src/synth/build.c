/* build.c: lowers a bound graph to statements over tensors. Loops, branches and blocks keep their
 * form; ops become kernels (lower.c). */
#include "synth/consumers.h"
#include "synth/lengths.h"

/* A consumer's write that nothing else may see before entry's await. */
typedef struct hidden {
    uint32_t consumer, var, shared, own; /* tensors */
} hidden;

typedef struct building {
    oi_unit *u;
    uint32_t graph;
    const oi_program *p;
    oi_uses uses;
    const uint32_t *owners; /* by block, if there are hidden writes */
    OI_VEC(hidden) hidden;
} building;

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

/* Per-node runs: the host reads the node's result. */
static void add_check(building *b, const oi_pnode *n, oi_stmts *out)
{
    bool moves = n->kind == OI_NODE_TRANSFER || n->kind == OI_NODE_CACHE_READ;
    uint32_t n_out = n->kind == OI_NODE_OP ? n->as.op.n_out : moves;
    for (uint32_t i = 0; b->u->per_node && i < n_out; i++)
        *OI_PUSH(b->u->arena, out) =
            (oi_stmt){.kind = OI_STMT_CHECK,
                      .node = n,
                      .a = port_of(b, moves ? &n->as.move.to : &n->as.op.out[i])};
}

static void publish(building *b, const oi_pnode *n, oi_stmts *out);

/* fuse=false: no pass carries work across either side of the node. */
static void set_apart(building *b, const oi_pnode *n, oi_stmts *out)
{
    if (oi_node_stays_apart(n->source))
        *OI_PUSH(b->u->arena, out) = (oi_stmt){.kind = OI_STMT_BARRIER, .node = n};
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
        set_apart(b, n, out);
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
        case OI_NODE_CACHE_RESET: oi_lower_cache(b->u, b->graph, n, out); break;
        case OI_NODE_ASSIGN:
        case OI_NODE_DEP: break; /* has storage, and a place in the order that statements keep */
        default: *OI_PUSH(b->u->arena, out) = (oi_stmt){.kind = kinds[n->kind], .node = n}; break;
        }
        if (n->kind == OI_NODE_AWAIT)
            publish(b, n, out);
        add_check(b, n, out);
        set_apart(b, n, out);
    }
}

/* -- consumers -- */

#define MOST_CONSUMERS 1000 /* the program asks at each yield which of them are ready */

static bool are_too_many(building *b)
{
    const oi_program *p = b->p;
    if (p->n_consumers <= MOST_CONSUMERS)
        return false;
    const oi_pblock *next = &p->blocks[p->consumers[MOST_CONSUMERS]];
    oi_unit_refuse(b->u, b->graph, NULL, next->source->name.span, "E060",
                   "the graph has %u consumers, a program at most %d", p->n_consumers,
                   MOST_CONSUMERS);
    return true;
}

/* By variable: how many consumers use it. */
static const uint32_t *count_users(building *b)
{
    const oi_program *p = b->p;
    uint32_t *n = oi_arena_alloc(b->u->arena, (p->n_vars + 1) * sizeof *n);
    for (uint32_t k = 0; k < p->n_consumers; k++)
        for (uint32_t v = 0; v < p->n_vars; v++)
            n[v] += oi_mask_has(p->blocks[p->consumers[k]].uses, v);
    return n;
}

/* Makes a private tensor for every write of a consumer that entry or another consumer could see
 * before entry awaits it. */
static void hide_writes(building *b)
{
    oi_unit *u = b->u;
    const oi_program *p = b->p;
    if (p->n_consumers == 0 || are_too_many(b))
        return;
    oi_uses meanwhile = oi_uses_new(u->arena, p);
    const uint32_t *users = count_users(b);
    for (uint32_t k = 0; k < p->n_consumers && u->status == OI_OK; k++) {
        const oi_pblock *block = &p->blocks[p->consumers[k]];
        oi_consumer_meanwhile(&meanwhile, p->consumers[k]);
        oi_consumer_check(u, b->graph, &meanwhile, p->consumers[k]);
        for (uint32_t v = 0; v < p->n_vars; v++) {
            bool writes = oi_mask_has(block->writes, v) && p->vars[v].kind != OI_SYM_PERSISTENT;
            const bool is_seen =
                users[v] > oi_mask_has(block->uses, v) || oi_uses_has(&meanwhile, v);
            if (!writes || !is_seen)
                continue;
            uint32_t shared = u->graphs.at[b->graph].tensor_of[v];
            oi_tensor t = u->tensors.at[shared];
            t = (oi_tensor){
                .name = oi_arena_printf(u->arena, "%s_of_%s", t.name, block->source->name.text),
                .dtype = t.dtype,
                .rank = t.rank,
                .space = OI_SPACE_ARENA,
                .graph = b->graph,
                .is_written = true};
            memcpy(t.dims, u->tensors.at[shared].dims, sizeof t.dims);
            t.run_dims = u->tensors.at[shared].run_dims;
            *OI_PUSH(u->arena, &b->hidden) =
                (hidden){p->consumers[k], v, shared, oi_unit_add_tensor(u, &t)};
        }
    }
}

static void copy_hidden(building *b, const oi_pnode *n, const hidden *h, bool publish,
                        oi_stmts *out)
{
    oi_port from = {.tensor = publish ? h->own : h->shared};
    oi_port to = {.tensor = publish ? h->shared : h->own, .is_written = true};
    oi_lower_copy(b->u, b->graph, n, from, to, out);
}

/* Entry's await publishes what the consumers it waited for have written. */
static void publish(building *b, const oi_pnode *n, oi_stmts *out)
{
    for (size_t i = 0; n->source->block == b->p->entry && i < b->hidden.n; i++) {
        const oi_pblock *c = &b->p->blocks[b->hidden.at[i].consumer];
        bool waited = false;
        for (uint32_t k = 0; k < n->as.list.n; k++)
            for (uint32_t j = 0; j < c->n_awaited; j++)
                waited |= n->as.list.vars[k] == c->awaited[j];
        if (waited)
            copy_hidden(b, n, &b->hidden.at[i], true, out);
    }
}

/* By block, the consumer to which its code belongs: its own block, or one it calls. OI_NO_ID:
 * entry. */
static uint32_t *find_owners(building *b)
{
    const uint32_t n = b->p->n_blocks;
    uint32_t *owners = oi_arena_alloc(b->u->arena, (n + 1) * sizeof *owners);
    oi_uses reached = oi_uses_new(b->u->arena, b->p);
    memset(owners, 0xff, n * sizeof *owners);
    for (uint32_t k = 0; k < b->p->n_consumers; k++) {
        oi_uses_of_block(&reached, b->p->consumers[k]);
        for (uint32_t i = 0; i < n; i++)
            if (owners[i] == OI_NO_ID && oi_uses_saw(&reached, i))
                owners[i] = b->p->consumers[k];
    }
    return owners;
}

static void add_block(building *b, uint32_t block)
{
    oi_sgraph *g = &b->u->graphs.at[b->graph];
    const oi_ids *nodes = &b->p->blocks[block].source->nodes;
    oi_stmts *out = &g->blocks[block].stmts;
    const uint32_t owner = b->owners ? b->owners[block] : OI_NO_ID;
    uint32_t *shared = g->tensor_of;
    if (owner != OI_NO_ID) {
        uint32_t *own = oi_arena_alloc(b->u->arena, (b->p->n_vars + 1) * sizeof *own);
        memcpy(own, shared, b->p->n_vars * sizeof *own);
        g->blocks[block].tensor_of = own;
        for (size_t i = 0; i < b->hidden.n; i++) {
            if (b->hidden.at[i].consumer != owner)
                continue;
            if (owner == block)
                copy_hidden(b, &b->p->nodes[nodes->at[0]], &b->hidden.at[i], false, out);
            own[b->hidden.at[i].var] = b->hidden.at[i].own;
        }
        b->u->graphs.at[b->graph].tensor_of = own; /* while this block is read */
    }
    add_nodes(b, nodes, out);
    b->u->graphs.at[b->graph].tensor_of = shared;
}

/* -- the graph -- */

static const oi_pnode *last_node(const oi_program *p)
{
    const oi_ids *list = &p->blocks[p->entry].source->nodes;
    return list->n ? &p->nodes[list->at[list->n - 1]] : NULL;
}

/* By variable: whether entry returns it. */
static const bool *find_returned(oi_arena *a, const oi_program *p)
{
    bool *is_returned = oi_arena_alloc(a, p->n_vars + 1);
    const oi_pnode *end = last_node(p);
    for (uint32_t i = 0; end && end->kind == OI_NODE_RETURN && i < end->as.list.n; i++)
        is_returned[end->as.list.vars[i]] = true;
    return is_returned;
}

/* What the host reads: the values that entry returns, or else every declared variable that the
 * graph writes. */
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
        if (!lists && oi_uses_writes(&b->uses, i) && !v->is_prefix &&
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

/* Names derived from a variable are reserved: its current lengths, and for growing memory its sizes
 * and existing entries. */
static void reserve_companions(oi_unit *u, const oi_program *p)
{
    for (uint32_t i = 0; i < p->n_vars; i++) {
        const oi_pvar *v = &p->vars[i];
        for (uint32_t d = 0; d < v->rank; d++)
            if (v->dims[d] == OI_DIM_RUN)
                oi_map_set(&u->names, oi_arena_printf(u->arena, "%s_dims", v->name), 1);
        if (v->kind == OI_SYM_PERSISTENT && v->n_axes) {
            oi_map_set(&u->names, oi_arena_printf(u->arena, "%s_size", v->name), 1);
            oi_map_set(&u->names, oi_arena_printf(u->arena, "%s_written", v->name), 1);
        }
    }
}

oi_status oi_unit_add_graph(oi_unit *u, const oi_program *bound, const char *name)
{
    const oi_program *p = oi_program_split(u->arena, bound);
    building b = {.u = u, .graph = (uint32_t)u->graphs.n, .p = p};
    oi_arena *a = u->arena;
    b.uses = oi_uses_new(a, p);
    oi_uses_of_block(&b.uses, p->entry);
    for (uint32_t i = 0; i < p->n_consumers; i++)
        oi_uses_of_block(&b.uses, p->consumers[i]);
    oi_sgraph g = {.program = p, .name = name};
    g.blocks = oi_arena_alloc(a, (p->n_blocks + 1) * sizeof *g.blocks);
    g.tensor_of = oi_arena_alloc(a, (p->n_vars + 1) * sizeof *g.tensor_of);
    *OI_PUSH(a, &u->graphs) = g;
    reserve_companions(u, p);
    const bool *is_returned = find_returned(a, p);
    for (uint32_t i = 0; i < p->n_vars; i++) {
        /* inputs and state are part of the program's interface even if unused */
        bool shows = p->vars[i].kind == OI_SYM_DYNAMIC || p->vars[i].kind == OI_SYM_PERSISTENT;
        g.tensor_of[i] = OI_NO_ID;
        if (oi_uses_has(&b.uses, i) || shows)
            g.tensor_of[i] =
                oi_unit_add_var(u, b.graph, i, oi_uses_writes(&b.uses, i) || is_returned[i]);
    }
    if (u->status == OI_OK)
        set_ports(&b);
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        g.blocks[i].source = &p->blocks[i];
        g.blocks[i].is_used = oi_uses_saw(&b.uses, i);
    }
    if (u->status == OI_OK)
        oi_bounds_find(u, b.graph);
    hide_writes(&b);
    b.owners = b.hidden.n ? find_owners(&b) : NULL;
    for (uint32_t i = 0; i < p->n_blocks && u->status == OI_OK; i++) {
        if (oi_uses_saw(&b.uses, i))
            add_block(&b, i);
    }
    return u->status;
}
