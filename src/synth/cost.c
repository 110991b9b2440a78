/* cost.c: estimates the cost of a step.
 * needs:  statements, kernels
 * keeps:  everything
 * makes:  multiply-accumulates, bytes moved and estimated time, by kernel and by graph
 *
 * A kernel moves every element that it accesses once, as with a large enough cache. Of two branches
 * the more expensive counts. A loop with a run-time trip count is counted once, and the sum is
 * marked as open. A run-time length counts as its maximum, and is marked, too. */
#include "kernel/meaning.h"
#include "device/cost.h"
#include "synth/pass.h"

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t r;
    return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t r;
    return __builtin_add_overflow(a, b, &r) ? UINT64_MAX : r;
}

static oi_cost sum(oi_cost a, oi_cost b)
{
    return (oi_cost){plus(a.macs, b.macs), plus(a.bytes, b.bytes),  a.is_open || b.is_open,
                     a.ns + b.ns,          a.alone_ns + b.alone_ns, a.is_most || b.is_most};
}

/* -- kernels -- */

static void touch(uint64_t *touched, const oi_sops *ops, uint64_t iterations)
{
    for (size_t i = 0; i < ops->n; i++)
        if (oi_sop_is_access(&ops->at[i]))
            touched[ops->at[i].port] = plus(touched[ops->at[i].port], iterations);
}

#define FUNCTION 24 /* plain instructions that one such as exp costs */

/* Arithmetic of one element. */
uint64_t oi_sops_steps(const oi_sops *ops)
{
    uint64_t n = 0;
    for (size_t i = 0; i < ops->n; i++) {
        const oi_sop *op = &ops->at[i];
        const oi_op_meaning *m =
            op->kind == OI_SOP_EVAL
                ? oi_op_meaning_find(op->call->op, op->part, op->call->in0, op->type)
                : NULL;
        n += op->kind != OI_SOP_CONST && op->kind != OI_SOP_PLACE;
        n += m ? FUNCTION * oi_m_count(&m->expr, OI_M_DEAR) : 0;
    }
    return n;
}

#define FOLD                                                                             \
    384 /* instructions of one element that combining the partial sums of a row takes as \
           long as: each of them waits for the one before */

/* Along the last axis, places follow from data: elements are loaded one by one. */
static bool picks_elements(const oi_snest *n)
{
    for (size_t i = 0; n->n_axes && i < n->pre.n; i++)
        if (n->pre.at[i].kind == OI_SOP_INDEX && n->pre.at[i].at &&
            n->pre.at[i].at[0].step[n->n_axes - 1])
            return true;
    return false;
}

/* Sums in index order wait for each addition; several independent sums, or independent elements,
 * fill vectors. */
static void add_nest(const oi_snest *n, uint64_t *touched, oi_cost *cost, oi_work_size *w)
{
    uint64_t all = 1, outputs = 1;
    for (uint32_t a = 0; a < n->n_axes; a++) {
        all = times(all, (uint64_t)n->axes[a].extent);
        if (!n->axes[a].is_reduced)
            outputs = times(outputs, (uint64_t)n->axes[a].extent);
    }
    touch(touched, &n->pre, all);
    touch(touched, &n->post, n->is_scan ? all : outputs);
    const bool in_vectors =
        n->kind == OI_NEST_MAP || oi_nest_partial_sums(n) || oi_nest_register_tile(n);
    uint64_t ops =
        plus(times(all, oi_sops_steps(&n->pre)), times(outputs, oi_sops_steps(&n->post)));
    if (n->kind == OI_NEST_CONTRACT)
        cost->macs = plus(cost->macs, all);
    if (oi_nest_partial_sums(n))
        ops = plus(ops, times(outputs, FOLD));
    uint64_t *sort = in_vectors && !picks_elements(n) ? &w->ops : &w->scalar_ops;
    *sort = plus(*sort, ops);
}

/* The memory level of a tensor: weights are read once a step; other data was used recently. */
static oi_level level_of(const oi_unit *u, const oi_machine *m, const oi_tensor *t)
{
    return oi_cost_level(m, t->ring                        ? t->size_bytes
                            : t->space == OI_SPACE_WEIGHTS ? u->weights_bytes
                            : t->space == OI_SPACE_STATE   ? u->state_bytes
                                                           : u->arena_bytes);
}

/* Shapes are as long as the memory that is reserved; a recipe's call may be told to take less. */
static bool has_open_lengths(const oi_skernel *k)
{
    bool keeps_lengths = false;
    for (uint32_t i = 0; k->recipe && i < k->plan->n_args; i++)
        keeps_lengths |= k->plan->args[i].kind == OI_ARG_ATTR;
    return k->is_dynamic || keeps_lengths;
}

void oi_kernel_work(oi_unit *u, const oi_skernel *k, uint64_t *touched, oi_cost *cost,
                    oi_work_size *w)
{
    for (size_t i = 0; i < k->nests.n; i++)
        add_nest(&k->nests.at[i], touched, cost, w);
    if (k->recipe) {
        cost->macs = w->macs = k->plan->macs;
        w->is_int8 = k->plan->is_int8;
        w->percent = k->plan->percent ? k->plan->percent : 85;
        w->ops = k->plan->ops;
    }
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_tensor *t = &u->tensors.at[k->ports.at[i].tensor];
        uint64_t whole = t->space == OI_SPACE_LOCAL ? 0 : t->size_bytes;
        if (t->ring) /* all of its rows pass */
            whole = whole / (uint64_t)t->dims[t->ring - 1] * (uint64_t)t->rows;
        if (k->recipe)
            touched[i] = UINT64_MAX;
        const uint64_t bytes = plus(times(touched[i], oi_dtype_bits(t->dtype)), 7) / 8;
        touched[i] = bytes < whole ? bytes : whole;
        cost->bytes = plus(cost->bytes, touched[i]);
    }
}

static oi_cost of_kernel(oi_unit *u, const oi_machine *m, const oi_skernel *k)
{
    oi_cost cost = {.is_most = has_open_lengths(k)};
    oi_work_size w = {.is_parallel =
                          (oi_caps_share(&u->can) && oi_kernel_partition(k).extent > 0) ||
                          (oi_kernel_streams(k) && m->threads > 1)};
    uint64_t *touched = oi_arena_alloc(u->arena, (k->ports.n + 1) * sizeof *touched);
    oi_kernel_work(u, k, touched, &cost, &w);
    for (size_t i = 0; i < k->ports.n; i++) {
        uint64_t *from = &w.bytes[level_of(u, m, &u->tensors.at[k->ports.at[i].tensor])];
        *from = plus(*from, touched[i]);
    }
    oi_machine one = *m;
    one.threads = 1;
    cost.ns = oi_cost_time(m, &w);
    cost.alone_ns = oi_cost_time(&one, &w);
    return cost;
}

/* -- statements -- */

typedef struct counting {
    oi_unit *u;
    const oi_machine *m;
    const oi_sgraph *g;
    oi_cost *blocks; /* by block */
    bool *is_done;
} counting;

static oi_cost of_stmts(counting *c, const oi_stmts *list);

static oi_cost of_block(counting *c, uint32_t block)
{
    if (block == OI_NO_ID)
        return (oi_cost){0};
    if (!c->is_done[block]) {
        c->is_done[block] = true;
        c->blocks[block] = of_stmts(c, &c->g->blocks[block].stmts);
    }
    return c->blocks[block];
}

static oi_cost of_loop(counting *c, const oi_stmt *s)
{
    oi_cost body = of_stmts(c, &s->body);
    int64_t from, to;
    if (!oi_code_is_int(&s->node->as.loop.start, &from) ||
        !oi_code_is_int(&s->node->as.loop.end, &to)) {
        body.is_open = true;
        return body;
    }
    uint64_t n = to > from ? (uint64_t)(to - from) : 0;
    return (oi_cost){times(body.macs, n), times(body.bytes, n),      body.is_open,
                     body.ns * (double)n, body.alone_ns * (double)n, body.is_most};
}

static oi_cost of_branch(counting *c, const oi_pnode *n)
{
    oi_cost a = of_block(c, n->as.branch.then_block);
    if (n->as.branch.cond == OI_NO_ID)
        return a;
    oi_cost b = of_block(c, n->as.branch.else_block);
    return (oi_cost){a.macs > b.macs ? a.macs : b.macs,
                     a.bytes > b.bytes ? a.bytes : b.bytes,
                     a.is_open || b.is_open,
                     a.ns > b.ns ? a.ns : b.ns,
                     a.alone_ns > b.alone_ns ? a.alone_ns : b.alone_ns,
                     a.is_most || b.is_most};
}

static oi_cost of_stmts(counting *c, const oi_stmts *list)
{
    oi_cost all = {0};
    for (size_t i = 0; i < list->n; i++) {
        const oi_stmt *s = &list->at[i];
        all.ns += s->barrier && c->m->threads > 1 ? c->m->barrier_ns : 0;
        if (s->kind == OI_STMT_KERNEL)
            all = sum(all, c->u->kernels.at[s->kernel].cost);
        else if (s->kind == OI_STMT_LOOP)
            all = sum(all, of_loop(c, s));
        else if (s->kind == OI_STMT_PIPELINE) /* every row is computed once */
            all = sum(all, of_stmts(c, &s->body));
        else if (s->kind == OI_STMT_BRANCH)
            all = sum(all, of_branch(c, s->node));
    }
    return all;
}

#define FEW_ROWS 8 /* products per byte of weights: above this, reads are not the bottleneck */

static bool mostly_reads_weights(const oi_unit *u, const oi_sgraph *g)
{
    return u->can.warm_up_slices && u->weights_bytes > u->can.warm_up_bytes &&
           g->cost.macs < FEW_ROWS * u->weights_bytes;
}

oi_status oi_pass_cost(oi_unit *u)
{
    const oi_machine m = oi_cost_machine(u->target);
    for (size_t i = 0; i < u->kernels.n; i++)
        u->kernels.at[i].cost = of_kernel(u, &m, &u->kernels.at[i]);
    for (size_t i = 0; i < u->graphs.n; i++) {
        oi_sgraph *g = &u->graphs.at[i];
        uint32_t n = g->program->n_blocks;
        counting c = {.u = u, .m = &m, .g = g};
        c.blocks = oi_arena_alloc(u->arena, (n + 1) * sizeof *c.blocks);
        c.is_done = oi_arena_alloc(u->arena, (n + 1) * sizeof *c.is_done);
        g->cost = of_block(&c, g->program->entry);
        for (uint32_t k = 0; k < g->program->n_consumers; k++)
            g->cost = sum(g->cost, of_block(&c, g->program->consumers[k]));
        g->warms_up = g->blocks[g->program->entry].is_parallel && mostly_reads_weights(u, g);
    }
    return OI_OK;
}
