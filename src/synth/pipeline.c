/* pipeline.c: chains of kernels that take turns, a few rows each, so that only those rows need
 * memory. needs:  kernels and their loops as they will be, statements in their final order keeps:
 * every result bit for bit: each row is computed once, as before makes:  OI_STMT_PIPELINE,
 * oi_skernel.rows; rings of rows (oi_tensor.ring) out of whole tensors
 *
 * What a convolution reads of its input to make a row are a few rows. Where kernels follow each
 * other, each can make the rows that the next ones need for theirs, and what lies between two is
 * kept only as long as somebody looks at it. The last kernel of such a chain sets the pace: `rows`
 * of its rows a turn; how far the others must be follows backwards.
 *
 * Chains are chosen for what they are good for: the most memory that is in use at one time. Every
 * run of kernels is cut into chains and single kernels so that this is least, and then, among the
 * cuts that reach it, so that the least is done twice. On processors with caches it is time instead
 * (pipeline_cost.c): what fits the last cache is not cut at all, since turns would only cost calls
 * there, and of what does not, those chains are taken that are soonest done. Threads then share the
 * rows of a chain's last kernel: each takes turns for its own, with rings on its stack, and begins
 * with the rows that are needed for them. */
#include "device/cost.h"
#include "synth/compose.h"
#include "synth/inplace.h"
#include "synth/live.h"
#include "synth/pipeline.h"

#include <inttypes.h>

#define LONGEST   16 /* kernels of a chain */
#define DIMS      4  /* along which rows are looked for */
#define MOST_ROWS 8  /* of a turn */
#define WORTH     16 /* at least one part in so many must be saved */

#define MOST_OWN (1u << 20) /* bytes of rings on a thread's stack */

/* A part of a run that is done in turns, or a single kernel. */
typedef struct chain {
    size_t first, n; /* of the run; n 1: not in turns */
    uint32_t dim;
    int64_t count; /* turns */
    oi_row_schedule schedules[LONGEST];
    int64_t kept[LONGEST];  /* rows of its result; 0: all */
    uint32_t into[LONGEST]; /* 1 + the kernel in whose ring its rows lie; 0: in its own */
    uint64_t bytes;         /* in use meanwhile */
    uint64_t
        again; /* bytes that are looked at again; on processors: time, in WORTH parts of a ns */
} chain;

/* Kernels that follow each other in a list. */
typedef struct run {
    oi_stmts *list;
    size_t at, n;
    oi_row_producer *producers[DIMS]; /* by dim, by kernel */
    OI_VEC(chain) chains;
    uint64_t least; /* bytes in use, at best */
} run;

typedef struct planning {
    oi_unit *u;
    uint32_t graph;
    oi_lifetimes live;
    const uint64_t *saved;    /* by kernel: what inplace.c will spare */
    const oi_lifetime **life; /* by tensor; NULL: none */
    const oi_tally *tally;
    uint64_t *in_use; /* by position */
    OI_VEC(run) runs;
    bool *is_in_run; /* by position */
} planning;

/* Threads share the rows of a chain's last kernel: each has rings of its own. */
static bool has_parts(const oi_unit *u)
{
    return oi_caps_share(&u->can);
}

static const oi_skernel *kernel_at(const planning *p, const run *r, size_t i)
{
    return &p->u->kernels.at[r->list->at[r->at + i].kernel];
}

static uint32_t position(const planning *p, const run *r, size_t i)
{
    return p->live.kernel_at[r->list->at[r->at + i].kernel];
}

/* -- the pace of a chain -- */

static const oi_row_read *read_of(const oi_row_producer *m, uint32_t tensor)
{
    for (size_t i = 0; i < m->reads.n; i++)
        if (m->reads.at[i].tensor == tensor)
            return &m->reads.at[i];
    return NULL;
}

/* How far kernel i must be, from what those after it need; false: that is at two speeds. */
static bool set_pace(chain *c, const oi_row_producer *makers, uint32_t i, int64_t rows)
{
    const oi_row_schedule *last = &c->schedules[c->n - 1];
    oi_row_schedule *t = &c->schedules[i];
    bool any = false;
    *t = (oi_row_schedule){.dim = c->dim, .begin = INT64_MAX};
    for (uint32_t by = i + 1; by < c->n; by++) {
        const oi_row_read *r = read_of(&makers[by], makers[i].out);
        if (!r)
            continue;
        const int64_t more = r->to + 1 - r->step, step = c->schedules[by].step * r->step,
                      base = c->schedules[by].base * r->step + more,
                      most = c->schedules[by].most * r->step + more,
                      begin = c->schedules[by].begin * r->step + r->from;
        if (r->step == 0 || (any && step != t->step))
            return false;
        t->step = step;
        t->base = any && t->base > base ? t->base : base;
        t->most = any && t->most > most ? t->most : most;
        t->begin = t->begin < begin ? t->begin : begin;
        any = true;
    }
    if (!any) { /* for later: as fast as the last */
        *t = *last;
        return makers[i].rows == last->most;
    }
    if (t->most > rows)
        t->most = rows;
    return t->most > 0;
}

/* Nobody but the chain has to do with what kernel i makes. */
static bool is_inner(const planning *p, const run *r, const chain *c, uint32_t i)
{
    const uint32_t tensor = r->producers[c->dim][c->first + i].out;
    const oi_tensor *t = &p->u->tensors.at[tensor];
    const oi_lifetime *life = p->life[tensor];
    uint32_t readers = 0;
    if (i + 1 == c->n || t->space != OI_SPACE_ARENA || t->graph != p->graph || !life ||
        life->needs_start || p->tally[tensor].writes != 1)
        return false;
    for (uint32_t by = i + 1; by < c->n; by++)
        for (size_t k = 0; k < kernel_at(p, r, c->first + by)->ports.n; k++)
            readers += kernel_at(p, r, c->first + by)->ports.at[k].tensor == tensor;
    return readers > 0 && p->tally[tensor].all == readers + 1 &&
           life->first >= position(p, r, c->first) &&
           life->last <= position(p, r, c->first + c->n - 1);
}

/* Rows of a tensor are written once, by a kernel that comes before all that read them. */
static bool is_in_order(const oi_row_producer *makers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t by = 0; by < n; by++)
            if (makers[i].why || (by <= i && read_of(&makers[by], makers[i].out)) ||
                (by != i && makers[by].out == makers[i].out))
                return false;
    return true;
}

/* More turns at the beginning, in which those that others wait for make no more rows than later. */
static void begin_early(chain *c)
{
    int64_t early = 0;
    for (size_t i = 0; i < c->n; i++) {
        const oi_row_schedule *t = &c->schedules[i];
        const int64_t own = (t->base - 1) / t->step; /* turns before which it has nothing to do */
        early = own > early ? own : early;
    }
    for (size_t i = 0; i < c->n; i++)
        c->schedules[i].base -= early * c->schedules[i].step;
    c->count += early;
}

/* A map makes its rows where those lie that it is made of, where nobody else looks at these. */
static void join_rings(const planning *p, chain *c, const oi_row_producer *makers)
{
    for (uint32_t i = (uint32_t)c->n; i-- > 0;) {
        uint32_t reader = 0, readers = 0;
        for (uint32_t by = i + 1; by < c->n; by++)
            if (read_of(&makers[by], makers[i].out)) {
                reader = by;
                readers++;
            }
        if (readers != 1 || !c->kept[i] || c->kept[i] > c->kept[reader])
            continue;
        const oi_row_schedule *a = &c->schedules[i], *b = &c->schedules[reader];
        const oi_tensor *x = &p->u->tensors.at[makers[i].out],
                        *y = &p->u->tensors.at[makers[reader].out];
        if (!read_of(&makers[reader], makers[i].out)->is_private || !oi_tensor_same_type(x, y) ||
            a->step != b->step || a->base != b->base || a->most != b->most || a->begin != b->begin)
            continue;
        c->into[i] = reader + 1;
        c->kept[i] = c->kept[reader];
    }
}

static bool set_turns(const planning *p, const run *r, chain *c, int64_t rows)
{
    const oi_row_producer *makers = &r->producers[c->dim][c->first];
    const int64_t all = makers[c->n - 1].rows;
    bool any = false;
    if (!is_in_order(makers, c->n) || rows >= all)
        return false;
    c->count = (all + rows - 1) / rows;
    c->schedules[c->n - 1] =
        (oi_row_schedule){.step = rows, .base = rows, .most = all, .dim = c->dim};
    for (uint32_t i = (uint32_t)c->n - 1; i-- > 0;) {
        if (!set_pace(c, makers, i, makers[i].rows))
            return false;
        if (!is_inner(p, r, c, i)) /* somebody else wants all of it */
            c->schedules[i].most = makers[i].rows;
    }
    begin_early(c);
    const oi_pipeline t = {(uint32_t)c->n, c->count, makers, c->schedules, c->into};
    for (uint32_t i = 0; i < c->n; i++) {
        c->kept[i] = is_inner(p, r, c, i) ? oi_pipeline_kept(&t, i) : 0;
        if (c->kept[i] >= makers[i].rows)
            c->kept[i] = 0;
        if (!c->kept[i] && oi_row_schedule_made(&c->schedules[i], c->count) != makers[i].rows)
            return false;
        any |= c->kept[i] > 0;
        if (has_parts(p->u) && (i + 1 < c->n) != (c->kept[i] > 0))
            return false; /* what several make must be their own */
    }
    if (has_parts(p->u))
        join_rings(p, c, makers);
    return any && (!has_parts(p->u) || oi_pipeline_buffer_bytes(p->u, &t, c->kept) <= MOST_OWN);
}

/* -- what a chain costs -- */

static uint64_t ring_bytes(const oi_tensor *t, uint32_t dim, int64_t kept)
{
    return t->size_bytes / (uint64_t)t->dims[dim] * (uint64_t)kept;
}

/* The result of the last may lie where something lay that the chain is the last to read. */
static uint64_t overwritten(const planning *p, const run *r, const chain *c)
{
    const oi_row_producer *makers = &r->producers[c->dim][c->first];
    const uint32_t out = makers[c->n - 1].out;
    const oi_pipeline t = {(uint32_t)c->n, c->count, makers, c->schedules, NULL};
    for (uint32_t by = 0; by < c->n && !oi_unit_skips(p->u, "inplace"); by++)
        for (size_t i = 0; i < makers[by].reads.n; i++) {
            const uint32_t tensor = makers[by].reads.at[i].tensor;
            if (oi_inplace_may_follow(p->u, p->graph, p->life, tensor, out,
                                      position(p, r, c->first),
                                      position(p, r, c->first + c->n - 1)) &&
                oi_pipeline_may_overwrite(&t, tensor))
                return oi_unit_aligned(p->u, oi_tensor_bytes(&p->u->tensors.at[out]));
        }
    return 0;
}

static void count_bytes(const planning *p, const run *r, chain *c)
{
    const uint32_t from = position(p, r, c->first), to = position(p, r, c->first + c->n - 1);
    const oi_row_producer *makers = &r->producers[c->dim][c->first];
    c->bytes = 0;
    for (size_t i = 0; i < p->live.list.n; i++) {
        const oi_lifetime *l = &p->live.list.at[i];
        const oi_tensor *t = &p->u->tensors.at[l->tensor];
        if (t->space != OI_SPACE_ARENA || l->first > to || l->last < from)
            continue;
        uint64_t bytes = oi_tensor_bytes(t);
        for (size_t k = 0; k < c->n; k++)
            if (makers[k].out == l->tensor && c->kept[k])
                bytes = ring_bytes(t, c->dim, c->kept[k]);
        c->bytes += oi_unit_aligned(p->u, bytes);
    }
    c->bytes -= overwritten(p, r, c);
}

/* Tuned bodies lay out the rows that they read, those under two calls twice. */
static void count_again(const planning *p, const run *r, chain *c)
{
    c->again = 0;
    for (size_t i = 0; i < c->n; i++) {
        const oi_row_producer *m = &r->producers[c->dim][c->first + i];
        const oi_skernel *k = kernel_at(p, r, c->first + i);
        c->again += (uint64_t)c->count * 64; /* a call */
        for (size_t j = 0; k->recipe && j < m->reads.n; j++) {
            const oi_row_read *read = &m->reads.at[j];
            const oi_tensor *t = &p->u->tensors.at[read->tensor];
            const int64_t twice = read->to - read->from + 1 - read->step;
            if (read->step && twice > 0)
                c->again += (uint64_t)(c->count * twice) * ring_bytes(t, c->dim, 1);
        }
    }
}

static uint64_t time_of(const planning *p, const run *r, const chain *c)
{
    const oi_skernel *kernels[LONGEST];
    const oi_row_producer *makers = &r->producers[c->dim][c->first];
    const oi_pipeline t = {(uint32_t)c->n, c->count, makers, c->schedules, c->into};
    for (size_t i = 0; i < c->n; i++)
        kernels[i] = kernel_at(p, r, c->first + i);
    const bool is_in_place = c->n == 1 && p->saved[r->list->at[r->at + c->first].kernel] > 0;
    const double ns = oi_pipeline_time(p->u, kernels, &t, c->kept, is_in_place);
    return (uint64_t)(ns * (c->n > 1 ? WORTH + 1 : WORTH));
}

/* Every turn goes through all weights: with a cache, they should stay in it, or be less than what
 * is neither written nor read outside of it any more. */
static bool weights_stay(const planning *p, const run *r, const chain *c)
{
    uint64_t bytes = 0, spared = 0;
    if (p->u->can.goal != OI_GOAL_TIME)
        return true;
    for (size_t i = 0; i < c->n; i++) {
        const oi_skernel *k = kernel_at(p, r, c->first + i);
        for (size_t j = 0; j < k->ports.n; j++) {
            const oi_tensor *t = &p->u->tensors.at[k->ports.at[j].tensor];
            bytes += t->space == OI_SPACE_WEIGHTS ? t->size_bytes : 0;
        }
        if (c->kept[i])
            spared += 2 * p->u->tensors.at[r->producers[c->dim][c->first + i].out].size_bytes;
    }
    return bytes <= oi_cost_kept(p->u->target) / 2 || bytes * (uint64_t)c->count <= spared;
}

/* What the last cache holds comes from there as quickly as rows from a nearer one, where it is gone
 * through in order: docs/performance.md has what was seen. */
static bool is_held(const planning *p, const run *r, const chain *c)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->n && p->u->can.goal == OI_GOAL_TIME; i++)
        for (size_t j = 0; j < kernel_at(p, r, c->first + i)->ports.n; j++) {
            const oi_port *port = &kernel_at(p, r, c->first + i)->ports.at[j];
            const oi_tensor *t = &p->u->tensors.at[port->tensor];
            bytes +=
                t->space == OI_SPACE_WEIGHTS || (i > 0 && !port->is_written) ? 0 : t->size_bytes;
        }
    return p->u->can.goal == OI_GOAL_TIME && bytes <= oi_cost_held(p->u->target);
}

/* -- runs -- */

static void find_chains(planning *p, run *r)
{
    for (size_t first = 0; first < r->n; first++) {
        chain one = {.first = first, .n = 1, .bytes = p->in_use[position(p, r, first)]};
        one.again = p->u->can.goal == OI_GOAL_TIME ? time_of(p, r, &one) : 0;
        *OI_PUSH(p->u->arena, &r->chains) = one;
        for (size_t n = 2; n <= LONGEST && first + n <= r->n; n++)
            for (uint32_t dim = 0; dim < DIMS; dim++)
                for (int64_t rows = 1; rows <= MOST_ROWS; rows *= 2) {
                    chain c = {.first = first, .n = n, .dim = dim};
                    if (is_held(p, r, &c) || !set_turns(p, r, &c, rows) || !weights_stay(p, r, &c))
                        break;
                    count_bytes(p, r, &c);
                    if (p->u->can.goal == OI_GOAL_TIME)
                        c.again = time_of(p, r, &c);
                    else
                        count_again(p, r, &c);
                    *OI_PUSH(p->u->arena, &r->chains) = c;
                }
    }
}

/* Cuts the run so that no part needs more than `most` bytes and the least is done again; NULL: it
 * cannot be. By kernel that a part ends before: that part. With `least` the bytes themselves are
 * made as few as possible instead. */
static const chain **cut(const planning *p, const run *r, uint64_t most, uint64_t *least)
{
    const chain **by = oi_arena_alloc(p->u->arena, (r->n + 1) * sizeof *by);
    uint64_t *cost = oi_arena_alloc(p->u->arena, (r->n + 1) * sizeof *cost);
    for (size_t i = 1; i <= r->n; i++)
        cost[i] = UINT64_MAX;
    for (size_t i = 0; i < r->chains.n; i++) { /* sorted by where they begin */
        const chain *c = &r->chains.at[i];
        const uint64_t before = cost[c->first];
        if (before == UINT64_MAX || c->bytes > most)
            continue;
        const uint64_t all = !least ? before + c->again : c->bytes > before ? c->bytes : before;
        if (all < cost[c->first + c->n]) {
            cost[c->first + c->n] = all;
            by[c->first + c->n] = c;
        }
    }
    if (least)
        *least = cost[r->n];
    return cost[r->n] == UINT64_MAX ? NULL : by;
}

static void add_run(planning *p, oi_stmts *list, size_t at, size_t n)
{
    run *r = OI_PUSH(p->u->arena, &p->runs);
    *r = (run){.list = list, .at = at, .n = n};
    for (uint32_t dim = 0; dim < DIMS; dim++) {
        r->producers[dim] = oi_arena_alloc(p->u->arena, (n + 1) * sizeof **r->producers);
        for (size_t i = 0; i < n; i++)
            oi_row_producer_find(p->u, kernel_at(p, r, i), dim, &r->producers[dim][i]);
    }
    for (size_t i = 0; i < n; i++)
        p->is_in_run[position(p, r, i)] = true;
    find_chains(p, r);
    cut(p, r, UINT64_MAX, &r->least);
}

static void find_runs(planning *p, oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        size_t n = 0;
        if (list->at[i].kind == OI_STMT_LOOP)
            find_runs(p, &list->at[i].body);
        while (i + n < list->n && list->at[i + n].kind == OI_STMT_KERNEL &&
               p->live.kernel_at[list->at[i + n].kernel] != OI_NO_ID)
            n++;
        if (n > 1)
            add_run(p, list, i, n);
        i += n > 1 ? n - 1 : 0;
    }
}

/* -- the program as it is -- */

static void count_in_use(planning *p)
{
    p->in_use = oi_arena_alloc(p->u->arena, (p->live.n_positions + 1) * sizeof *p->in_use);
    for (size_t i = 0; i < p->live.list.n; i++) {
        const oi_lifetime *l = &p->live.list.at[i];
        const oi_tensor *t = &p->u->tensors.at[l->tensor];
        for (uint32_t at = l->first; t->space == OI_SPACE_ARENA && at <= l->last; at++)
            p->in_use[at] += oi_unit_aligned(p->u, oi_tensor_bytes(t));
    }
    for (size_t k = 0; k < p->u->kernels.n; k++)
        if (p->live.kernel_at[k] != OI_NO_ID && p->u->kernels.at[k].graph == p->graph)
            p->in_use[p->live.kernel_at[k]] -= oi_unit_aligned(p->u, p->saved[k]);
}

static void look_at(planning *p, oi_unit *u, uint32_t graph)
{
    const oi_sgraph *g = &u->graphs.at[graph];
    *p = (planning){.u = u, .graph = graph};
    oi_live_find(u, graph, &p->live);
    p->life = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *p->life);
    for (size_t i = 0; i < p->live.list.n; i++)
        p->life[p->live.list.at[i].tensor] = &p->live.list.at[i];
    p->tally = oi_graph_tally(u, graph);
    p->saved = oi_inplace_saves(u, graph, &p->live, p->life);
    p->is_in_run = oi_arena_alloc(u->arena, p->live.n_positions + 1);
    count_in_use(p);
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        if (g->blocks[b].is_used)
            find_runs(p, &g->blocks[b].stmts);
}

/* Bytes in use at one time: as it is, and at best. */
static void sum_up(const planning *p, uint64_t *now, uint64_t *least)
{
    for (uint32_t at = 0; at < p->live.n_positions; at++) {
        *now = p->in_use[at] > *now ? p->in_use[at] : *now;
        if (!p->is_in_run[at] && p->in_use[at] > *least)
            *least = p->in_use[at];
    }
    for (size_t i = 0; i < p->runs.n; i++)
        *least = p->runs.at[i].least > *least ? p->runs.at[i].least : *least;
}

/* -- making it so -- */

/* Numbers of elements in whole tensors become those in rings. */
static void renumber(oi_unit *u, const oi_skernel *k, const oi_sop *of, oi_sop *op)
{
    const oi_tensor *t = &u->tensors.at[k->ports.at[op->port].tensor];
    if (!oi_sop_is_access(of) || !t->ring)
        return;
    oi_nest_coord *at = oi_arena_alloc(u->arena, sizeof *at);
    *at = op->at[0];
    for (uint32_t a = 0; a < OI_EPILOGUE_PLACE; a++)
        at->step[a] = at->step[a] / t->rows * t->dims[t->ring - 1];
    op->at = at;
}

/* The body anew, as it is for few rows. */
static void plan_body(oi_unit *u, oi_skernel *k, const oi_row_schedule *t)
{
    oi_recipe_plan *plan = oi_arena_alloc(u->arena, sizeof *plan);
    bool *is_weight = oi_arena_alloc(u->arena, k->taken->n_in + 1);
    oi_recipe_call call = {.q = k->taken,
                           .is_weight = is_weight,
                           .target = u->target,
                           .rows = t->step,
                           .kept = k->taken->in[0].dims[t->dim],
                           .may_regroup = !u->keeps_bits};
    call.out_kept = k->taken->out[0].dims[t->dim];
    for (uint32_t i = 0; i < k->plan->n_args; i++) {
        const oi_recipe_arg *a = &k->plan->args[i];
        const bool is_in = a->kind == OI_ARG_IN && a->n == 0;
        if (!is_in && a->kind != OI_ARG_OUT)
            continue;
        const oi_tensor *x = &u->tensors.at[k->ports.at[k->arg_ports[i]].tensor];
        if (x->ring)
            *(is_in ? &call.kept : &call.out_kept) = x->dims[x->ring - 1];
    }
    for (size_t i = 1; i < k->taken->n_in; i++)
        is_weight[i] = k->plan->n_packings > 0;
    if (!k->recipe->plan(&call, plan)) {
        u->status = oi_diag_env(u->diag, "synthesizer", "%s cannot be planned by rows", k->name);
        return;
    }
    plan->macs = k->plan->macs;
    for (uint32_t i = 0; plan->bounds && i < 2; i++)
        plan->args[plan->bounds + i] = k->plan->args[k->plan->bounds + i];
    k->plan = plan;
    for (size_t i = 0; k->epilogue && i < k->epilogue->post.n; i++)
        renumber(u, k, &k->epilogue->post.at[i], &k->epilogue->post.at[i]);
}

static uint32_t port_of(const oi_skernel *k, uint32_t tensor, bool is_written)
{
    uint32_t i = 0;
    while (i < k->ports.n && (k->ports.at[i].is_written != is_written ||
                              (tensor != OI_NO_ID && k->ports.at[i].tensor != tensor)))
        i++;
    return i;
}

/* From the last, so that rings of rings are known. */
static void share_rings(oi_unit *u, const chain *c, const oi_stmts *body)
{
    for (size_t i = c->n; i-- > 0;) {
        if (!c->into[i])
            continue;
        oi_skernel *from = &u->kernels.at[body->at[i].kernel],
                   *by = &u->kernels.at[body->at[c->into[i] - 1].kernel];
        oi_port *out = &from->ports.at[port_of(from, OI_NO_ID, true)];
        const uint32_t in = port_of(by, out->tensor, false), to = port_of(by, OI_NO_ID, true);
        out->tensor = by->ports.at[to].tensor;
        oi_inplace_join(u, by, in, to);
    }
}

static void take_turns(planning *p, run *r, const chain *c)
{
    oi_unit *u = p->u;
    oi_stmts *list = r->list;
    const size_t at = r->at + c->first;
    oi_stmt s = {.kind = OI_STMT_PIPELINE, .node = list->at[at + c->n - 1].node, .limit = c->count};
    for (size_t i = 0; i < c->n; i++) {
        const oi_row_producer *m = &r->producers[c->dim][c->first + i];
        oi_tensor *t = &u->tensors.at[m->out];
        list->at[at + i].rows = c->schedules[i];
        *OI_PUSH(u->arena, &s.body) = list->at[at + i];
        oi_skernel *k = &u->kernels.at[list->at[at + i].kernel];
        k->rows = (oi_partition){m->axis, m->rows, 1, false};
        for (size_t n = 0; n < k->nests.n; n++)
            k->nests.at[n].order.jam = 0; /* rows of rings have one name */
        if (!c->kept[i])
            continue;
        t->ring = c->dim + 1;
        t->rows = t->dims[c->dim];
        t->dims[c->dim] = c->kept[i];
        t->is_private = has_parts(u);
        oi_tensor_measure(t);
    }
    share_rings(u, c, &s.body);
    for (size_t i = 0; i < c->n; i++) {
        oi_skernel *k = &u->kernels.at[s.body.at[i].kernel];
        if (k->recipe)
            plan_body(u, k, &c->schedules[i]);
    }
    list->at[at] = s;
    for (size_t i = 1; i < c->n; i++)
        oi_stmts_remove(list, at + 1);
}

/* From the last part to the first, so that numbers of statements stay right; and of the runs, too,
 * since several may be of one list. */
static void cut_graph(planning *p, uint64_t most)
{
    bool any = false;
    for (size_t i = p->runs.n; i-- > 0;) {
        run *r = &p->runs.at[i];
        const chain **by = cut(p, r, most, NULL);
        for (size_t end = by ? r->n : 0; end > 0; end -= by[end]->n)
            if (by[end]->n > 1) {
                take_turns(p, r, by[end]);
                any = true;
            }
    }
    if (!any)
        oi_unit_note(p->u, "pipeline", p->graph, NULL, "no chain of kernels would take less time");
}

static const char *why_never(const oi_unit *u)
{
    if (u->per_node)
        return "every node is looked at by itself";
    return u->can.row_pipelines ? NULL : "the target has no row pipelines";
}

/* Whether so much less is worth the calls; and what the graphs are cut to, then. */
static bool pays(oi_unit *u, uint32_t graph, uint64_t now, uint64_t *least)
{
    const uint64_t enough = u->can.goal == OI_GOAL_TIME ? oi_cost_held(u->target) : 0;
    *least = *least > enough ? *least : enough;
    if (*least + now / WORTH <= now && now > *least)
        return true;
    oi_unit_note(u, "pipeline", graph, NULL,
                 "%" PRIu64 " bytes at one time, %" PRIu64 " are %s: not worth it", now, *least,
                 *least == enough ? "near" : "possible");
    return false;
}

/* Graphs share their memory, but not what is in the cache. */
oi_status oi_pass_pipeline(oi_unit *u)
{
    const char *never = why_never(u);
    const bool apart = u->can.goal == OI_GOAL_TIME;
    uint64_t now = 0, least = 0;
    planning *all = oi_arena_alloc(u->arena, (u->graphs.n + 1) * sizeof *all);
    if (never) {
        oi_unit_note(u, "pipeline", 0, NULL, "%s", never);
        return OI_OK;
    }
    for (uint32_t g = 0; g < u->graphs.n; g++) {
        look_at(&all[g], u, g);
        sum_up(&all[g], &now, &least);
        if (apart)
            cut_graph(&all[g], !has_parts(u) && pays(u, g, now, &least) ? least : UINT64_MAX);
        now = apart ? 0 : now;
        least = apart ? 0 : least;
    }
    for (uint32_t g = 0; !apart && g < u->graphs.n && (g > 0 || pays(u, 0, now, &least)); g++)
        cut_graph(&all[g], least);
    return u->status;
}
