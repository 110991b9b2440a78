/* reduce.c: reductions over axes, and positions of the best along one.
 *
 * The axes of x are kept or reduced. When the last one is reduced, a row of x folds into one
 * accumulator; when it is kept, a row of x is combined with a row of accumulators. Elements combine
 * in the order that the op's row declares: ascending, or in partial sums along the last axis. Only
 * faster kernels than the reference fold a long row in parts that threads share; how many there are
 * depends on its length alone. */
#include "kernel/nest.h"

#define BLOCK     32768 /* elements of x per task, roughly */
#define MAX_PARTS 256   /* of one accumulator */

typedef struct reduce_job {
    const oi_choice *c;
    const oi_kernel_io *io;
    int64_t x_at, out_at;
    oi_walk kept;    /* operands: x, out */
    oi_walk reduced; /* operand: x */
    int64_t n_out, n_reduced;
    int64_t outs_per_task;
    bool finds_position;
    uint32_t lanes; /* partial sums along the last axis; 0: none */
    oi_dtype out_dtype;
} reduce_job;

#define MOST_LANES 64

/* -- which axes -- */

static uint32_t reduced_axes(const oi_kernel_query *q)
{
    uint32_t gone = 0;
    for (uint32_t i = 0; i < q->op->n_attrs; i++) {
        const oi_op_value *v = &q->attrs[i];
        oi_attr_kind kind = q->op->attrs[i].kind;
        if (kind != OI_ATTR_AXES && kind != OI_ATTR_AXIS)
            continue;
        const int64_t *axes = v->tag == OI_VALUE_INT ? &v->i : v->ints;
        size_t n = v->tag == OI_VALUE_INT ? 1 : v->n;
        for (size_t k = 0; k < n; k++)
            gone |= 1u << (axes[k] < 0 ? axes[k] + q->in[0].rank : axes[k]);
    }
    return gone;
}

static void add_axis(oi_walk *w, int64_t dim, int64_t x_step, int64_t out_step)
{
    w->dims[w->rank] = dim;
    w->steps[0][w->rank] = x_step;
    w->steps[1][w->rank] = out_step;
    w->rank++;
}

/* Fills both walks; true when the last axis that matters is a reduced one. */
static bool split_axes(reduce_job *j, const oi_kernel_query *q)
{
    const oi_operand *x = &q->in[0], *out = &q->out[0];
    uint32_t gone = reduced_axes(q), o = 0;
    bool keepdims = out->rank == x->rank, last_reduced = false;
    j->kept.n_operands = 2;
    j->reduced.n_operands = 1;
    j->kept.rank = j->reduced.rank = 0;
    for (uint32_t a = 0; a < x->rank; a++) {
        bool goes = gone >> a & 1;
        int64_t out_step = o < out->rank ? out->strides[o] : 0;
        if (goes)
            add_axis(&j->reduced, x->dims[a], x->strides[a], 0);
        else
            add_axis(&j->kept, x->dims[a], x->strides[a], out_step);
        if (!goes || keepdims)
            o++;
        if (x->dims[a] != 1)
            last_reduced = goes;
    }
    j->n_out = oi_walk_count(&j->kept, j->kept.rank);
    j->n_reduced = oi_walk_count(&j->reduced, j->reduced.rank);
    oi_walk_join(&j->kept);
    if (!j->lanes) /* else the last axis is a row of its own */
        oi_walk_join(&j->reduced);
    return last_reduced;
}

/* -- results -- */

/* n accumulators whose outputs follow each other along the last kept axis. */
static void finish(const reduce_job *j, void *acc, int64_t *at, size_t n, int64_t to, int64_t step)
{
    const oi_choice *c = j->c;
    if (j->finds_position) {
        int32_t narrow[OI_CHUNK];
        for (size_t i = 0; i < n && j->out_dtype == OI_I32; i++)
            narrow[i] = (int32_t)at[i];
        c->store.store(j->io->out[0], to, step, j->out_dtype == OI_I32 ? (const void *)narrow : at,
                       n);
        return;
    }
    if (c->reduce->finish)
        c->reduce->finish(
            &(oi_reduce_row){.n = n, .acc = acc, .first = j->n_reduced, .attrs = c->attrs});
    oi_store_row(&c->store, j->io->out[0], to, step, acc, n);
}

/* -- the last axis is reduced -- */

/* One accumulator over the elements [from, to) below x_at. */
static void fold_range(const reduce_job *j, void *acc, int64_t *position, int64_t x_at,
                       int64_t from, int64_t to)
{
    const oi_choice *c = j->c;
    uint64_t buffer[2 * OI_CHUNK], lanes[MOST_LANES];
    uint32_t last = j->reduced.rank - 1;
    int64_t n = j->reduced.dims[last], step = j->reduced.steps[0][last];
    bool direct = c->load[0].is_direct && !c->load[0].cast && step == 1 &&
                  (uintptr_t)j->io->in[0] % c->load[0].form_size == 0;
    oi_reduce_row r = {.n = j->lanes ? j->lanes : 1,
                       .acc = j->lanes ? lanes : acc,
                       .at = position,
                       .attrs = c->attrs};
    if (j->finds_position) {
        int64_t at = x_at;
        oi_walk_seek(&j->reduced, j->reduced.rank, from, &at);
        r.x = oi_load_row(&c->load[0], j->io->in[0], at, 1, 1, buffer);
    }
    c->reduce->init(&r);
    if (j->finds_position)
        *position = from;
    while (from < to) {
        int64_t at = x_at, k = from % n, len = n - k < to - from ? n - k : to - from;
        len = direct || len < OI_CHUNK ? len : OI_CHUNK;
        oi_walk_seek(&j->reduced, last, from / n, &at);
        r.n = (size_t)len;
        r.first = from;
        r.x = oi_load_row(&c->load[0], j->io->in[0], at + k * step, step, r.n, buffer);
        (j->lanes ? c->reduce->lanes : c->reduce->fold)(&r);
        from += len;
    }
    if (j->lanes) {
        c->reduce->join(&r);
        memcpy(acc, lanes, c->store.size);
    }
}

/* -- long rows -- */

typedef struct long_row {
    const reduce_job *job;
    int64_t x_at, per_part;
    uint64_t accs[MAX_PARTS];
    int64_t positions[MAX_PARTS];
} long_row;

static void part_task(void *ctx, size_t part)
{
    long_row *l = ctx;
    const reduce_job *j = l->job;
    int64_t from = (int64_t)part * l->per_part, to = from + l->per_part;
    fold_range(j, (char *)l->accs + part * j->c->store.size, &l->positions[part], l->x_at, from,
               to < j->n_reduced ? to : j->n_reduced);
}

/* The parts' accumulators fold like elements; positions are tried one by one. */
static void join_parts(const long_row *l, size_t n, void *acc, int64_t *position)
{
    const reduce_job *j = l->job;
    size_t size = j->c->store.size, at_once = j->finds_position ? 1 : n - 1;
    memcpy(acc, l->accs, size);
    *position = l->positions[0];
    for (size_t i = 1; i < n; i += at_once)
        j->c->reduce->fold(&(oi_reduce_row){.n = at_once,
                                            .acc = acc,
                                            .at = position,
                                            .x = (const char *)l->accs + i * size,
                                            .first = l->positions[i],
                                            .attrs = j->c->attrs});
}

static void run_long(const reduce_job *j, const oi_kernel_io *io)
{
    long_row l = {.job = j, .per_part = (j->n_reduced + MAX_PARTS - 1) / MAX_PARTS};
    l.per_part = l.per_part > BLOCK ? l.per_part : BLOCK;
    size_t n_parts = (size_t)((j->n_reduced + l.per_part - 1) / l.per_part);
    for (int64_t i = 0; i < j->n_out; i++) {
        int64_t at[2] = {j->x_at, j->out_at}, position = 0;
        uint64_t acc;
        oi_walk_seek(&j->kept, j->kept.rank, i, at);
        l.x_at = at[0];
        oi_parallel(io, n_parts, part_task, &l);
        join_parts(&l, n_parts, &acc, &position);
        finish(j, &acc, &position, 1, at[1], 1);
    }
}

/* -- many rows -- */

static void fold_task(void *ctx, size_t task)
{
    const reduce_job *j = ctx;
    int64_t from = (int64_t)task * j->outs_per_task;
    int64_t to = from + j->outs_per_task < j->n_out ? from + j->outs_per_task : j->n_out;
    uint64_t accs[OI_CHUNK];
    int64_t positions[OI_CHUNK];
    uint32_t last = j->kept.rank - 1;
    int64_t inner = j->kept.dims[last];
    while (from < to) {
        int64_t at[2] = {j->x_at, j->out_at}, start = from % inner;
        int64_t n = inner - start < to - from ? inner - start : to - from;
        n = n < OI_CHUNK ? n : OI_CHUNK;
        oi_walk_seek(&j->kept, last, from / inner, at);
        for (int64_t i = 0; i < n; i++)
            fold_range(j, (char *)accs + i * j->c->store.size, &positions[i],
                       at[0] + (start + i) * j->kept.steps[0][last], 0, j->n_reduced);
        int64_t step = j->kept.steps[1][last];
        finish(j, accs, positions, (size_t)n, at[1] + start * step, step);
        from += n;
    }
}

/* -- the last axis is kept -- */

static void each_task(void *ctx, size_t task)
{
    const reduce_job *j = ctx;
    const oi_choice *c = j->c;
    uint32_t last = j->kept.rank - 1;
    int64_t inner = j->kept.dims[last], chunks = (inner + OI_CHUNK - 1) / OI_CHUNK;
    int64_t start = (int64_t)task % chunks * OI_CHUNK;
    int64_t at[2] = {j->x_at, j->out_at},
            *steps = (int64_t[]){j->kept.steps[0][last], j->kept.steps[1][last]};
    size_t n = (size_t)(inner - start < OI_CHUNK ? inner - start : OI_CHUNK);
    uint64_t accs[OI_CHUNK], buffer[2 * OI_CHUNK];
    int64_t positions[OI_CHUNK];
    oi_walk_seek(&j->kept, last, (int64_t)task / chunks, at);
    at[0] += start * steps[0];
    at[1] += start * steps[1];
    oi_reduce_row r = {.n = n, .acc = accs, .at = positions, .attrs = c->attrs};
    if (j->finds_position)
        r.x = oi_load_row(&c->load[0], j->io->in[0], at[0], steps[0], n, buffer);
    c->reduce->init(&r);
    for (int64_t i = 0; i < j->n_reduced; i++) {
        int64_t x_at = at[0];
        oi_walk_seek(&j->reduced, j->reduced.rank, i, &x_at);
        r.first = i;
        r.x = oi_load_row(&c->load[0], j->io->in[0], x_at, steps[0], n, buffer);
        c->reduce->each(&r);
    }
    finish(j, accs, positions, n, at[1], steps[1]);
}

/* -- the whole -- */

/* Few long rows. Sums of floats keep index order in the reference. */
static bool folds_in_parts(const reduce_job *j)
{
    bool regroups = j->c->cpu != OI_CPU_SCALAR || !oi_dtype_is_float(j->c->form);
    return regroups && j->n_out < 8 && j->n_reduced >= 4 * BLOCK;
}

bool oi_reduce_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                   oi_kernel_fault *fault)
{
    (void)fault;
    reduce_job j; /* field by field: clearing the walks takes longer than a small sum */
    j.c = c;
    j.io = io;
    j.x_at = io->in_at ? io->in_at[0] : 0;
    j.out_at = io->out_at ? io->out_at[0] : 0;
    j.finds_position = q->op->shape_rule == OI_SHAPE_ARGREDUCE;
    j.out_dtype = q->out[0].dtype;
    j.lanes = q->op->lanes ? oi_nest_lanes(q) : 0;
    bool last_reduced = split_axes(&j, q);
    if (j.n_out == 0)
        return true;
    /* tasks must not share a byte of a packed result */
    bool packed = oi_dtype_bits(j.out_dtype) < 8;
    oi_kernel_io alone = *io;
    if (packed || j.n_out * (j.n_reduced + 1) < 2 * BLOCK)
        alone.parallel = NULL;
    if (last_reduced && folds_in_parts(&j)) {
        run_long(&j, io);
        return true;
    }
    if (last_reduced || j.n_reduced == 0) {
        int64_t per = j.n_reduced ? BLOCK / j.n_reduced : BLOCK;
        j.outs_per_task = per > 1 ? per : 1;
        oi_parallel(&alone, (size_t)((j.n_out + j.outs_per_task - 1) / j.outs_per_task), fold_task,
                    &j);
        return true;
    }
    uint32_t last = j.kept.rank - 1;
    int64_t chunks = (j.kept.dims[last] + OI_CHUNK - 1) / OI_CHUNK;
    oi_parallel(&alone, (size_t)(oi_walk_count(&j.kept, last) * chunks), each_task, &j);
    return true;
}
