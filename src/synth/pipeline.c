/* pipeline.c: row pipelines: chains of kernels that run a few rows at a time through line buffers.
 * needs:  kernels and their loops in final form, statements in their final order
 * keeps:  every result bit for bit: each row is computed as before
 * makes:  OI_STMT_PIPELINE, oi_skernel.rows; line buffers (oi_tensor.ring) instead of whole tensors
 *
 * To produce one row, a convolution reads only a few rows of its input. So consecutive kernels can
 * run in step: each iteration, every kernel produces the rows that the next ones need. A line
 * buffer between two kernels holds a row only until its last read. The last kernel sets the pace,
 * `rows` rows per iteration; the schedules of the others follow backwards from it.
 *
 * Chains are chosen to minimise the target's goal. For memory, the goal is the peak of live bytes:
 * every run of kernels is cut into chains and single kernels so that the peak is least, and among
 * such cuts the one that repeats the least work wins. For time (processors with caches,
 * pipeline_cost.c), kernels whose data fits the last cache are not joined, because a pipeline would
 * only add calls. Of the others, the fastest cut wins. Threads then partition the rows of a chain's
 * last kernel. Each runs the pipeline for its own range, with line buffers on its stack, and starts
 * with the rows that its range needs. */
#include "device/cost.h"
#include "synth/compose.h"
#include "synth/inplace.h"
#include "synth/live.h"
#include "synth/pipeline.h"

#include <inttypes.h>

#define LONGEST   16 /* kernels in a chain */
#define DIMS      4  /* dims tried as row dim */
#define MOST_ROWS 8  /* per iteration */
#define WORTH     16 /* minimum gain: one part in so many */

#define MAX_BUFFERS (1u << 20) /* bytes of line buffers on a thread's stack */

/* A part of a run: a row pipeline, or a single kernel. */
typedef struct chain {
    size_t first, n; /* of the run; n == 1: a single kernel */
    uint32_t dim;
    int64_t count;              /* iterations */
    oi_row_schedule *schedules; /* n of each */
    int64_t *kept;              /* rows in the line buffer of its result; 0: the whole tensor */
    uint32_t *into;             /* 1 + the kernel whose line buffer holds its rows; 0: its own */
    uint64_t bytes;             /* live while it runs */
    uint64_t again; /* goal memory: bytes that are processed twice; goal time: time in ns / WORTH */
} chain;

/* Consecutive kernels of a list. */
typedef struct run {
    oi_stmts *list;
    size_t at, n;
    oi_row_producer *producers[DIMS]; /* by dim, by kernel */
    OI_VEC(chain) chains;
    uint64_t least; /* live bytes, in the best case */
} run;

typedef struct planning {
    oi_unit *u;
    uint32_t graph;
    oi_lifetimes live;
    const uint64_t *saved;    /* by kernel: bytes that inplace.c will save */
    const oi_lifetime **life; /* by tensor; NULL: no lifetime */
    const oi_tally *tally;
    uint64_t *in_use; /* by position */
    OI_VEC(run) runs;
    bool *is_in_run; /* by position */
} planning;

/* Threads partition the rows of a chain's last kernel, with private line buffers. */
static bool has_private_buffers(const oi_unit *u)
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

/* -- schedules -- */

static const oi_row_read *read_of(const oi_row_producer *m, uint32_t tensor)
{
    for (size_t i = 0; i < m->reads.n; i++)
        if (m->reads.at[i].tensor == tensor)
            return &m->reads.at[i];
    return NULL;
}

/* The schedule of kernel i from what its consumers need. False if they need different rates. */
static bool set_schedule(chain *c, const oi_row_producer *producers, uint32_t i, int64_t rows)
{
    const oi_row_schedule *last = &c->schedules[c->n - 1];
    oi_row_schedule *t = &c->schedules[i];
    bool any = false;
    *t = (oi_row_schedule){.dim = c->dim, .begin = INT64_MAX};
    for (uint32_t by = i + 1; by < c->n; by++) {
        const oi_row_read *r = read_of(&producers[by], producers[i].out);
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
    if (!any) { /* read only after the chain: same rate as the last kernel */
        *t = *last;
        return producers[i].rows == last->most;
    }
    if (t->most > rows)
        t->most = rows;
    return t->most > 0;
}

/* Only kernels of the chain use the result of kernel i. */
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

/* Each tensor has one producer, and it comes before every consumer. */
static bool is_in_order(const oi_row_producer *producers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t by = 0; by < n; by++)
            if (producers[i].why || (by <= i && read_of(&producers[by], producers[i].out)) ||
                (by != i && producers[by].out == producers[i].out))
                return false;
    return true;
}

/* Adds iterations at the start, so that producers of a consumer's first window make no more rows
 * per iteration than later. */
static void begin_early(chain *c)
{
    int64_t early = 0;
    for (size_t i = 0; i < c->n; i++) {
        const oi_row_schedule *t = &c->schedules[i];
        const int64_t own = (t->base - 1) / t->step; /* iterations in which it has nothing to do */
        early = own > early ? own : early;
    }
    for (size_t i = 0; i < c->n; i++)
        c->schedules[i].base -= early * c->schedules[i].step;
    c->count += early;
}

/* A map writes its rows over the rows it reads if it is their only reader. */
static void join_buffers(const planning *p, chain *c, const oi_row_producer *producers)
{
    for (uint32_t i = (uint32_t)c->n; i-- > 0;) {
        uint32_t reader = 0, readers = 0;
        for (uint32_t by = i + 1; by < c->n; by++)
            if (read_of(&producers[by], producers[i].out)) {
                reader = by;
                readers++;
            }
        if (readers != 1 || !c->kept[i] || c->kept[i] > c->kept[reader])
            continue;
        const oi_row_schedule *a = &c->schedules[i], *b = &c->schedules[reader];
        const oi_tensor *x = &p->u->tensors.at[producers[i].out],
                        *y = &p->u->tensors.at[producers[reader].out];
        if (!read_of(&producers[reader], producers[i].out)->is_private ||
            !oi_tensor_same_type(x, y) || a->step != b->step || a->base != b->base ||
            a->most != b->most || a->begin != b->begin)
            continue;
        c->into[i] = reader + 1;
        c->kept[i] = c->kept[reader];
    }
}

static bool set_schedules(const planning *p, const run *r, chain *c, int64_t rows)
{
    const oi_row_producer *producers = &r->producers[c->dim][c->first];
    const int64_t all = producers[c->n - 1].rows;
    bool any = false;
    if (!is_in_order(producers, c->n) || rows >= all)
        return false;
    c->count = (all + rows - 1) / rows;
    c->schedules[c->n - 1] =
        (oi_row_schedule){.step = rows, .base = rows, .most = all, .dim = c->dim};
    for (uint32_t i = (uint32_t)c->n - 1; i-- > 0;) {
        if (!set_schedule(c, producers, i, producers[i].rows))
            return false;
        if (!is_inner(p, r, c, i)) /* another consumer needs all of it */
            c->schedules[i].most = producers[i].rows;
    }
    begin_early(c);
    const oi_pipeline t = {(uint32_t)c->n, c->count, producers, c->schedules, c->into};
    for (uint32_t i = 0; i < c->n; i++) {
        c->kept[i] = is_inner(p, r, c, i) ? oi_pipeline_kept(&t, i) : 0;
        if (c->kept[i] >= producers[i].rows)
            c->kept[i] = 0;
        if (!c->kept[i] && oi_row_schedule_made(&c->schedules[i], c->count) != producers[i].rows)
            return false;
        any |= c->kept[i] > 0;
        if (has_private_buffers(p->u) && (i + 1 < c->n) != (c->kept[i] > 0))
            return false; /* rows that several threads compute must be private */
    }
    if (has_private_buffers(p->u))
        join_buffers(p, c, producers);
    return any && (!has_private_buffers(p->u) ||
                   oi_pipeline_buffer_bytes(p->u, &t, c->kept) <= MAX_BUFFERS);
}

/* -- cost of a chain -- */

static uint64_t rows_bytes(const oi_tensor *t, uint32_t dim, int64_t kept)
{
    return t->size_bytes / (uint64_t)t->dims[dim] * (uint64_t)kept;
}

/* The last result may overwrite a tensor whose last reader is in the chain. */
static uint64_t overwritten(const planning *p, const run *r, const chain *c)
{
    const oi_row_producer *producers = &r->producers[c->dim][c->first];
    const uint32_t out = producers[c->n - 1].out;
    const oi_pipeline t = {(uint32_t)c->n, c->count, producers, c->schedules, NULL};
    for (uint32_t by = 0; by < c->n && !oi_unit_skips(p->u, "inplace"); by++)
        for (size_t i = 0; i < producers[by].reads.n; i++) {
            const uint32_t tensor = producers[by].reads.at[i].tensor;
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
    const oi_row_producer *producers = &r->producers[c->dim][c->first];
    c->bytes = 0;
    for (size_t i = 0; i < p->live.list.n; i++) {
        const oi_lifetime *l = &p->live.list.at[i];
        const oi_tensor *t = &p->u->tensors.at[l->tensor];
        if (t->space != OI_SPACE_ARENA || l->first > to || l->last < from)
            continue;
        uint64_t bytes = oi_tensor_bytes(t);
        for (size_t k = 0; k < c->n; k++)
            if (producers[k].out == l->tensor && c->kept[k])
                bytes = rows_bytes(t, c->dim, c->kept[k]);
        c->bytes += oi_unit_aligned(p->u, bytes);
    }
    c->bytes -= overwritten(p, r, c);
}

/* Tuned bodies repack the rows they read; rows that two calls read are repacked twice. */
static void count_repeated(const planning *p, const run *r, chain *c)
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
                c->again += (uint64_t)(c->count * twice) * rows_bytes(t, c->dim, 1);
        }
    }
}

static uint64_t time_of(const planning *p, const run *r, const chain *c)
{
    const oi_skernel *kernels[LONGEST];
    const oi_row_producer *producers = &r->producers[c->dim][c->first];
    const oi_pipeline t = {(uint32_t)c->n, c->count, producers, c->schedules, c->into};
    for (size_t i = 0; i < c->n; i++)
        kernels[i] = kernel_at(p, r, c->first + i);
    const bool is_in_place = c->n == 1 && p->saved[r->list->at[r->at + c->first].kernel] > 0;
    const double ns = oi_pipeline_time(p->u, kernels, &t, c->kept, is_in_place);
    return (uint64_t)(ns * (c->n > 1 ? WORTH + 1 : WORTH));
}

/* Every iteration reads all weights. With caches, the weights should stay in cache, or be fewer
 * bytes than the pipeline saves in memory traffic. */
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

/* Data that the last cache holds streams from there as fast as rows from a nearer cache, if it is
 * read in order. docs/performance.md has the measurements. */
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

/* Room for the parts of a chain that is tried; one that is kept gets its own. */
typedef struct links {
    oi_row_schedule schedules[LONGEST];
    int64_t kept[LONGEST];
    uint32_t into[LONGEST];
} links;

static void add_chain(planning *p, run *r, const chain *tried)
{
    oi_arena *a = p->u->arena;
    const size_t n = tried->n;
    chain c = *tried;
    c.schedules = oi_arena_alloc(a, n * sizeof *c.schedules);
    c.kept = oi_arena_alloc(a, n * sizeof *c.kept);
    c.into = oi_arena_alloc(a, n * sizeof *c.into);
    memcpy(c.schedules, tried->schedules, n * sizeof *c.schedules);
    memcpy(c.kept, tried->kept, n * sizeof *c.kept);
    memcpy(c.into, tried->into, n * sizeof *c.into);
    *OI_PUSH(a, &r->chains) = c;
}

/* Row schedules of kernels first ... first + n - 1, one for each dim and row count. */
static void try_chains(planning *p, run *r, size_t first, size_t n)
{
    links l;
    chain c = {.first = first, .n = n, .schedules = l.schedules, .kept = l.kept, .into = l.into};
    if (is_held(p, r, &c))
        return;
    for (c.dim = 0; c.dim < DIMS; c.dim++)
        for (int64_t rows = 1; rows <= MOST_ROWS; rows *= 2) {
            memset(&l, 0, sizeof l);
            if (!set_schedules(p, r, &c, rows) || !weights_stay(p, r, &c))
                break;
            count_bytes(p, r, &c);
            if (p->u->can.goal == OI_GOAL_TIME)
                c.again = time_of(p, r, &c);
            else
                count_repeated(p, r, &c);
            add_chain(p, r, &c);
        }
}

static void find_chains(planning *p, run *r)
{
    static oi_row_schedule own[1]; /* of a single kernel: nothing is written to any of these */
    static int64_t whole[1];
    static uint32_t apart[1];
    for (size_t first = 0; first < r->n; first++) {
        chain one = {.first = first,
                     .n = 1,
                     .schedules = own,
                     .kept = whole,
                     .into = apart,
                     .bytes = p->in_use[position(p, r, first)]};
        one.again = p->u->can.goal == OI_GOAL_TIME ? time_of(p, r, &one) : 0;
        *OI_PUSH(p->u->arena, &r->chains) = one;
        for (size_t n = 2; n <= LONGEST && first + n <= r->n; n++)
            try_chains(p, r, first, n);
    }
}

/* Cuts the run so that no part needs more than `most` bytes and the least work is repeated.
 * Returns, by end of a part, that part; NULL: impossible. With `least` it minimises the bytes
 * instead. */
static const chain **cut(const planning *p, const run *r, uint64_t most, uint64_t *least)
{
    const chain **by = oi_arena_alloc(p->u->arena, (r->n + 1) * sizeof *by);
    uint64_t *cost = oi_arena_alloc(p->u->arena, (r->n + 1) * sizeof *cost);
    for (size_t i = 1; i <= r->n; i++)
        cost[i] = UINT64_MAX;
    for (size_t i = 0; i < r->chains.n; i++) { /* sorted by first kernel */
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

/* -- the current program -- */

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

/* Peak of live bytes: now, and in the best case. */
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

/* -- applying the cuts -- */

/* Row-major indices into whole tensors become indices into line buffers. */
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

/* Plans the tuned body again, for a few rows. */
static void plan_body(oi_unit *u, oi_skernel *k, const oi_row_schedule *t)
{
    oi_recipe_plan *plan = oi_arena_alloc(u->arena, sizeof *plan);
    bool *is_weight = oi_arena_alloc(u->arena, k->taken->n_in + 1);
    oi_recipe_call call = {.q = k->taken,
                           .is_weight = is_weight,
                           .target = u->target,
                           .table = u->can.recipes,
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

/* Backwards, so that the owner of a shared line buffer is known. */
static void assign_buffers(oi_unit *u, const chain *c, const oi_stmts *body)
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
        oi_kernel_set_stream(k, m->axis, m->rows, c->schedules[i].step);
        for (size_t n = 0; n < k->nests.n; n++)
            if (oi_nest_jam(&k->nests.at[n])) /* one name per line buffer row */
                k->nests.at[n].axes[k->nests.at[n].n_axes - 2].factor[OI_AXIS_UNROLLED] = 0;
        if (!c->kept[i])
            continue;
        t->ring = c->dim + 1;
        t->rows = t->dims[c->dim];
        t->dims[c->dim] = c->kept[i];
        t->is_private = has_private_buffers(u);
        oi_tensor_measure(t);
    }
    assign_buffers(u, c, &s.body);
    for (size_t i = 0; i < c->n; i++) {
        oi_skernel *k = &u->kernels.at[s.body.at[i].kernel];
        if (k->recipe)
            plan_body(u, k, &c->schedules[i]);
    }
    list->at[at] = s;
    for (size_t i = 1; i < c->n; i++)
        oi_stmts_remove(list, at + 1);
}

/* From the last part to the first, and from the last run to the first, so that statement indices
 * stay valid; several runs may be in one list. */
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
        return "nodes are compared one by one";
    return u->can.row_pipelines ? NULL : "the target has no row pipelines";
}

/* Whether the gain is worth the calls; and the bytes that the graphs are then cut to. */
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

/* Graphs share the arena, but not the cache contents. */
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
            cut_graph(&all[g],
                      !has_private_buffers(u) && pays(u, g, now, &least) ? least : UINT64_MAX);
        now = apart ? 0 : now;
        least = apart ? 0 : least;
    }
    for (uint32_t g = 0; !apart && g < u->graphs.n && (g > 0 || pays(u, 0, now, &least)); g++)
        cut_graph(&all[g], least);
    return u->status;
}
