/* inplace.c: results that take the place of what they are made of.
 * needs:  kernels and statements as they will be
 * keeps:  every result: an element is read before it is written, by the iteration that writes it
 * makes:  one tensor of two where the first ends and the second begins in one kernel
 *
 * A map over a tensor that nobody reads afterwards needs no memory for its result, and threads that
 * share it meet only their own part. */
#include "synth/compose.h"
#include "synth/live.h"

typedef struct joining {
    oi_unit *u;
    uint32_t graph;
    uint32_t *into;           /* by tensor: the one it became */
    const oi_lifetime **life; /* by tensor; NULL: none */
} joining;

static bool is_candidate(const joining *j, uint32_t tensor)
{
    const oi_tensor *t = &j->u->tensors.at[tensor];
    return t->space == OI_SPACE_ARENA && oi_dtype_bits(t->dtype) >= 8 && !t->n_table &&
           !t->run_dims && t->graph == j->graph && j->into[tensor] == tensor && j->life[tensor];
}

/* The one store of the kernel, which must be the last thing that an iteration does. */
static const oi_sop *only_store(const oi_skernel *k, const oi_sops **in)
{
    const oi_snest *n = &k->nests.at[0];
    *in = n->kind == OI_NEST_MAP ? &n->pre : &n->post;
    const oi_sop *last = (*in)->n ? &(*in)->at[(*in)->n - 1] : NULL;
    unsigned stores = 0;
    for (int post = 0; post < 2; post++)
        for (size_t i = 0; i < (post ? n->post.n : n->pre.n); i++)
            stores += (post ? n->post : n->pre).at[i].kind == OI_SOP_STORE;
    return last && last->kind == OI_SOP_STORE && stores == 1 ? last : NULL;
}

/* Whether every load of the port is of the very element that is then stored. */
static bool reads_its_own(const oi_unit *u, const oi_skernel *k, uint32_t port)
{
    const oi_sops *in;
    const oi_sop *store = only_store(k, &in);
    const oi_snest *n = &k->nests.at[0];
    uint32_t rank = u->tensors.at[k->ports.at[port].tensor].rank;
    if (!store)
        return false;
    for (int post = 0; post < 2; post++) {
        const oi_sops *ops = post ? &n->post : &n->pre;
        for (size_t i = 0; i < ops->n; i++) {
            const oi_sop *op = &ops->at[i];
            if (!op->at || op->kind == OI_SOP_PLACE || op->kind == OI_SOP_STORE || op->port != port)
                continue;
            if (ops != in || op->kind != OI_SOP_LOAD || !oi_sop_same_place(op, store, rank))
                return false;
        }
    }
    return true;
}

static bool is_simple(const oi_skernel *k)
{
    const oi_snest *n = &k->nests.at[0];
    return k->nests.n == 1 && !k->is_dynamic && !n->is_serial && !n->is_scan && !n->combines_out &&
           !n->extents;
}

/* Both ports become one. */
static void join_ports(oi_skernel *k, uint32_t from, uint32_t to)
{
    oi_snest *n = &k->nests.at[0];
    for (int post = 0; post < 2; post++)
        for (size_t i = 0; i < (post ? n->post.n : n->pre.n); i++) {
            oi_sop *op = &(post ? &n->post : &n->pre)->at[i];
            if (op->at && op->kind != OI_SOP_PLACE && op->port == from)
                op->port = to;
            op->port -= op->port > from;
        }
    memmove(&k->ports.at[from], &k->ports.at[from + 1],
            (k->ports.n - from - 1) * sizeof *k->ports.at);
    k->ports.n--;
}

static void join(joining *j, oi_skernel *k, uint32_t in, uint32_t out)
{
    uint32_t old = k->ports.at[in].tensor, young = k->ports.at[out].tensor;
    oi_lifetime *life = oi_arena_alloc(j->u->arena, sizeof *life);
    *life = *j->life[old];
    life->last = j->life[young]->last;
    j->life[old] = life;
    j->into[young] = old;
    join_ports(k, in, out);
}

static void try_kernel(joining *j, uint32_t kernel, uint32_t at)
{
    oi_skernel *k = &j->u->kernels.at[kernel];
    if (at == OI_NO_ID || k->recipe || k->graph != j->graph || !k->nests.n || !is_simple(k))
        return;
    for (uint32_t out = 0; out < k->ports.n; out++) {
        if (!k->ports.at[out].is_written || k->ports.at[out].is_dropped)
            continue;
        uint32_t young = k->ports.at[out].tensor;
        if (!is_candidate(j, young) || j->life[young]->first != at || j->life[young]->needs_start)
            return;
        for (uint32_t in = 0; in < k->ports.n; in++) {
            uint32_t old = k->ports.at[in].tensor;
            while (j->into[old] != old)
                old = j->into[old];
            k->ports.at[in].tensor = old;
            if (k->ports.at[in].is_written || k->ports.at[in].is_dropped || old == young ||
                !is_candidate(j, old) || j->life[old]->last != at ||
                !oi_tensor_same_type(&j->u->tensors.at[old], &j->u->tensors.at[young]) ||
                !reads_its_own(j->u, k, in))
                continue;
            join(j, k, in, out);
            return;
        }
    }
}

static void rename_mention(void *ctx, const oi_mention *m)
{
    const joining *j = ctx;
    if (!m->port)
        return;
    while (j->into[m->port->tensor] != m->port->tensor)
        m->port->tensor = j->into[m->port->tensor];
}

static void join_graph(oi_unit *u, uint32_t graph)
{
    joining j = {.u = u, .graph = graph};
    oi_lifetimes live = {.n_positions = 0};
    oi_sgraph *g = &u->graphs.at[graph];
    oi_live_find(u, graph, &live);
    j.into = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *j.into);
    j.life = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *j.life);
    for (uint32_t i = 0; i < u->tensors.n; i++)
        j.into[i] = i;
    for (size_t i = 0; i < live.list.n; i++)
        j.life[live.list.at[i].tensor] = &live.list.at[i];
    for (uint32_t k = 0; k < u->kernels.n; k++)
        if (u->kernels.at[k].is_used)
            try_kernel(&j, k, live.kernel_at[k]);
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        oi_stmts_mentions(u, graph, &g->blocks[b].stmts, rename_mention, &j);
    for (uint32_t v = 0; v < g->program->n_vars; v++)
        while (g->tensor_of[v] != OI_NO_ID && j.into[g->tensor_of[v]] != g->tensor_of[v])
            g->tensor_of[v] = j.into[g->tensor_of[v]];
}

oi_status oi_pass_inplace(oi_unit *u)
{
    for (uint32_t g = 0; g < u->graphs.n; g++)
        join_graph(u, g);
    return OI_OK;
}
