/* bounds.c: how long `?` dims can become. A bound comes from @fixed and @cap of the table that is
 * read, and goes on through shape rules. Nodes are visited again until nothing changes; what still
 * grows then, or has no bound at all, is refused (E062) where it is written. */
#include "synth/lengths.h"

#define MOST ((int64_t)1 << 40) /* elements along a dim: more is growth without end */
/* Chains of nodes against the order they are written in; beyond, it never ends. */
#define ROUNDS 64

typedef struct bounding {
    oi_unit *u;
    uint32_t graph;
    const oi_program *p;
    uint8_t *is_known; /* by tensor */
    bool again;
    const oi_pnode *last; /* who changed something last */
} bounding;

static uint32_t tensor_of(const bounding *b, const oi_pref *r)
{
    return r->is_index ? OI_NO_ID : b->u->graphs.at[b->graph].tensor_of[r->var];
}

static bool is_open(const bounding *b, uint32_t tensor)
{
    return tensor != OI_NO_ID && b->u->tensors.at[tensor].run_dims && !b->is_known[tensor];
}

static bool varies(const bounding *b, uint32_t tensor)
{
    return tensor != OI_NO_ID && b->u->tensors.at[tensor].run_dims;
}

static void refuse_growth(const bounding *b, const oi_pnode *n)
{
    oi_unit_refuse(b->u, b->graph, n, (oi_span){0}, "E062",
                   "what this writes grows each time it runs, and nothing bounds it: a static "
                   "target needs a table with @fixed or @cap");
}

/* The node can make the tensor so long. */
static void reach(bounding *b, const oi_pnode *n, uint32_t tensor, const int64_t *dims)
{
    oi_tensor *t = &b->u->tensors.at[tensor];
    bool changes = !b->is_known[tensor];
    b->is_known[tensor] = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->run_dims >> d & 1 && dims[d] > t->dims[d]) {
            t->dims[d] = dims[d];
            changes = true;
        }
    for (uint32_t d = 0; d < t->rank && b->u->status == OI_OK; d++)
        if (t->dims[d] > MOST)
            refuse_growth(b, n);
    if (changes) {
        oi_tensor_measure(t);
        b->again = true;
        b->last = n;
    }
}

/* -- nodes -- */

static void reach_read(bounding *b, const oi_pnode *n)
{
    uint32_t to = tensor_of(b, &n->as.move.to), d = 0;
    const oi_paccess *a = &n->as.move.cache;
    const oi_store_var *s = oi_unit_store(b->u, b->u->graphs.at[b->graph].tensor_of[a->var]);
    const oi_pvar *v = &b->p->vars[a->var];
    int64_t dims[2 * OI_MAX_RANK];
    bool whole = v->n_table < v->n_axes && a->n == v->n_axes;
    for (uint32_t i = v->n_table; whole && i < v->n_axes; i++)
        whole = !a->sels[i].is_slice;
    if (!varies(b, to) || !s)
        return;
    for (uint32_t i = 0; i < s->rank; i++) {
        const oi_psel *sel = i < a->n && !(whole && i >= v->n_table) ? &a->sels[i] : NULL;
        int64_t from = 0, end;
        if (sel && !sel->is_slice)
            continue;
        bool fixed = sel && (!sel->start.n || oi_code_is_int(&sel->start, &from)) && sel->end.n &&
                     oi_code_is_int(&sel->end, &end) && from >= 0 && end >= from;
        dims[d++] = fixed ? end - from : s->most[i];
    }
    if (d == b->u->tensors.at[to].rank)
        reach(b, n, to, dims);
}

static void reach_transfer(bounding *b, const oi_pnode *n)
{
    uint32_t from = tensor_of(b, &n->as.move.from), to = tensor_of(b, &n->as.move.to);
    if (varies(b, to) && from != OI_NO_ID && !is_open(b, from))
        reach(b, n, to, b->u->tensors.at[from].dims);
}

/* As long as the data says: as many as there are elements. */
static bool reach_measured(bounding *b, const oi_pnode *n)
{
    const oi_tensor *in = &b->u->tensors.at[tensor_of(b, &n->as.op.in[0])];
    oi_operand x = {.dtype = in->dtype, .rank = in->rank};
    int64_t dims[OI_MAX_RANK];
    memcpy(x.dims, in->dims, in->rank * sizeof *in->dims);
    if (!oi_kernel_limits(n->as.op.op, &x, dims))
        return false;
    for (uint32_t i = 0; i < n->as.op.n_out; i++)
        if (varies(b, tensor_of(b, &n->as.op.out[i])))
            reach(b, n, tensor_of(b, &n->as.op.out[i]), dims);
    return true;
}

static void reach_op(bounding *b, const oi_pnode *n)
{
    bool wanted = false;
    for (uint32_t i = 0; i < n->as.op.n_out; i++)
        wanted |= varies(b, tensor_of(b, &n->as.op.out[i]));
    for (uint32_t i = 0; i < n->as.op.n_in; i++)
        wanted &= !is_open(b, tensor_of(b, &n->as.op.in[i]));
    if (!wanted)
        return;
    if (reach_measured(b, n))
        return;
    oi_dyn d;
    if (!oi_lower_study(b->u, b->graph, n, &d))
        return;
    for (uint32_t i = 0; i < n->as.op.n_out; i++)
        if (varies(b, d.to[i].tensor))
            reach(b, n, d.to[i].tensor, d.queries[0].out[i].dims);
}

static void ask_all(bounding *b)
{
    b->again = false;
    for (size_t i = 0; i < b->p->graph->nodes.n && b->u->status == OI_OK; i++) {
        const oi_pnode *n = &b->p->nodes[i];
        if (!b->u->graphs.at[b->graph].blocks[n->source->block].is_used)
            continue;
        switch (n->kind) {
        case OI_NODE_OP: reach_op(b, n); break;
        case OI_NODE_TRANSFER: reach_transfer(b, n); break;
        case OI_NODE_CACHE_READ: reach_read(b, n); break;
        default: break;
        }
    }
}

oi_status oi_bounds_find(oi_unit *u, uint32_t graph)
{
    bounding b = {.u = u, .graph = graph, .p = u->graphs.at[graph].program, .again = true};
    b.is_known = oi_arena_alloc(u->arena, u->tensors.n + 1);
    for (unsigned i = 0; i < ROUNDS && b.again && u->status == OI_OK; i++)
        ask_all(&b);
    if (b.again && u->status == OI_OK)
        refuse_growth(&b, b.last);
    return u->status;
}
