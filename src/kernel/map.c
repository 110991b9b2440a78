/* map.c: elementwise ops: walks shapes and strides, brings rows into the form the kernel computes
 * in and its results back.
 *
 * The common case, contiguous tensors of a type that is computed as it is stored, is one call of
 * the kernel per block. Everything else (packed and narrow types, strides, broadcasting,
 * accumulators) goes through buffers of OI_CHUNK elements. */
#include "kernel/kernel.h"

/* Elements per task: a multiple of 8, so that two tasks never share a byte of a packed result. */
#define BLOCK 32768

static const oi_kernel_scalar no_attrs[OI_KERNEL_ATTRS]; /* a cast that truncates and wraps */

const void *oi_load_row(const oi_load *l, const void *data, int64_t at, int64_t step, size_t n,
                        void *buffer)
{
    const void *row = NULL;
    if (l->is_direct && step == 1) {
        const char *p = (const char *)data + at * l->form_size;
        if ((uintptr_t)p % l->form_size == 0)
            row = p;
    }
    if (!row) {
        l->load(buffer, data, at, step, n);
        row = buffer;
    }
    if (!l->cast)
        return row;
    void *out = (char *)buffer + OI_CHUNK * sizeof(uint64_t);
    l->cast(&(oi_map_row){.n = n, .in = {row}, .out = out, .attrs = no_attrs});
    return out;
}

void oi_store_row(const oi_store *s, void *data, int64_t at, int64_t step, const void *results,
                  size_t n)
{
    uint64_t rounded[OI_CHUNK], narrow[OI_CHUNK], cut[OI_CHUNK];
    if (s->cut) {
        s->cut(&(oi_map_row){.n = n, .in = {results}, .out = cut, .attrs = no_attrs});
        results = cut;
    }
    if (s->round) {
        s->round(narrow, 0, 1, results, n);
        s->reload(rounded, narrow, 0, 1, n);
        results = rounded;
    }
    if (s->cast) {
        s->cast(&(oi_map_row){.n = n, .in = {results}, .out = narrow, .attrs = no_attrs});
        results = narrow;
    }
    s->store(data, at, step, results, n);
}

void oi_parallel(const oi_kernel_io *io, size_t n_tasks, void (*task)(void *ctx, size_t i),
                 void *ctx)
{
    if (io->parallel && n_tasks > 1) {
        io->parallel(io->pool, n_tasks, task, ctx);
        return;
    }
    for (size_t i = 0; i < n_tasks; i++)
        task(ctx, i);
}

/* -- one row -- */

typedef struct map_job {
    const oi_choice *c;
    size_t n_in;
    const void *in[3];
    void *out;
    int64_t at[OI_WALK_OPERANDS]; /* inputs, then the output */
    oi_walk w;
    bool is_direct; /* no buffers are needed */
    bool out_direct;
    int64_t n, block;
} map_job;

static void run_direct(const map_job *j, const int64_t *at, int64_t n)
{
    oi_map_row row = {.n = (size_t)n, .attrs = j->c->attrs};
    for (size_t k = 0; k < j->n_in; k++)
        row.in[k] = (const char *)j->in[k] + at[k] * j->c->load[k].form_size;
    row.out = (char *)j->out + at[j->n_in] * j->c->store.size;
    j->c->map(&row);
}

static void run_row(const map_job *j, const int64_t *at, int64_t n)
{
    uint64_t buffers[3][2 * OI_CHUNK], results[OI_CHUNK];
    const oi_store *s = &j->c->store;
    uint32_t last = j->w.rank - 1;
    for (int64_t i = 0; i < n; i += OI_CHUNK) {
        oi_map_row row = {.n = (size_t)(n - i < OI_CHUNK ? n - i : OI_CHUNK), .attrs = j->c->attrs};
        for (size_t k = 0; k < j->n_in; k++) {
            int64_t step = j->w.steps[k][last];
            row.in[k] =
                oi_load_row(&j->c->load[k], j->in[k], at[k] + i * step, step, row.n, buffers[k]);
        }
        int64_t step = j->w.steps[j->n_in][last], to = at[j->n_in] + i * step;
        row.out = j->out_direct ? (char *)j->out + to * s->size : (char *)results;
        j->c->map(&row);
        if (!j->out_direct)
            oi_store_row(s, j->out, to, step, results, row.n);
    }
}

/* Elements [i * block, (i + 1) * block) in the order of the walk. */
static void map_task(void *ctx, size_t task)
{
    const map_job *j = ctx;
    int64_t from = (int64_t)task * j->block, to = from + j->block < j->n ? from + j->block : j->n;
    uint32_t last = j->w.rank - 1;
    int64_t inner = j->w.dims[last];
    while (from < to) {
        int64_t at[OI_WALK_OPERANDS], start = from % inner;
        int64_t n = inner - start < to - from ? inner - start : to - from;
        memcpy(at, j->at, sizeof at);
        oi_walk_seek(&j->w, last, from / inner, at);
        for (size_t k = 0; k <= j->n_in; k++)
            at[k] += start * j->w.steps[k][last];
        if (j->is_direct)
            run_direct(j, at, n);
        else
            run_row(j, at, n);
        from += n;
    }
}

/* Whether storage from `at` on can be used as it is along the last axis. */
static bool is_plain(const void *data, size_t size, int64_t at, int64_t step)
{
    (void)at; /* elements are aligned when the tensor is */
    return step == 1 && (uintptr_t)data % size == 0;
}

static void job_init(map_job *j, const oi_kernel_query *q, const oi_choice *c,
                     const oi_kernel_io *io)
{
    const oi_operand *operands[OI_WALK_OPERANDS];
    j->c = c; /* field by field: clearing the walk takes longer than a small map */
    j->n_in = q->n_in;
    j->out = io->out[0];
    j->block = BLOCK;
    memset(j->at, 0, sizeof j->at);
    for (size_t k = 0; k < q->n_in; k++) {
        operands[k] = &q->in[k];
        j->in[k] = io->in[k];
        j->at[k] = io->in_at ? io->in_at[k] : 0;
    }
    operands[q->n_in] = &q->out[0];
    j->at[q->n_in] = io->out_at ? io->out_at[0] : 0;
    oi_walk_init(&j->w, &q->out[0], operands, q->n_in + 1);
    j->n = oi_walk_count(&j->w, j->w.rank);
    uint32_t last = j->w.rank - 1;
    j->out_direct = c->store.is_direct &&
                    is_plain(j->out, c->store.size, j->at[q->n_in], j->w.steps[q->n_in][last]);
    j->is_direct = j->out_direct;
    for (size_t k = 0; k < q->n_in; k++)
        j->is_direct &= c->load[k].is_direct && !c->load[k].cast &&
                        is_plain(j->in[k], c->load[k].form_size, j->at[k], j->w.steps[k][last]);
}

bool oi_map_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                oi_kernel_fault *fault)
{
    (void)fault;
    map_job j;
    job_init(&j, q, c, io);
    if (j.n == 0)
        return true;
    /* tasks must not share a byte of a packed result */
    bool packed = oi_dtype_bits(q->out[0].dtype) < 8;
    if (packed && (j.w.rank > 1 || j.w.steps[j.n_in][0] != 1 || j.at[j.n_in] % 8 != 0))
        j.block = j.n;
    oi_parallel(io, (size_t)((j.n + j.block - 1) / j.block), map_task, &j);
    return true;
}

/* A rank-0 result over all elements: the map's truths, folded in order. */
bool oi_map_fold_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                     oi_kernel_fault *fault)
{
    (void)fault;
    const oi_operand *x = &q->in[0];
    oi_walk w;
    oi_walk_init(&w, x, &x, 1);
    uint64_t buffer[2 * OI_CHUNK];
    uint8_t truths[OI_CHUNK], acc = 0;
    oi_reduce_row r = {.n = 1, .acc = &acc, .x = truths, .attrs = c->attrs};
    c->reduce->init(&r);
    int64_t rows = oi_walk_count(&w, w.rank - 1), n = w.dims[w.rank - 1];
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = io->in_at ? io->in_at[0] : 0, step = w.steps[0][w.rank - 1];
        oi_walk_seek(&w, w.rank - 1, i, &at);
        for (int64_t k = 0; k < n; k += OI_CHUNK) {
            r.n = (size_t)(n - k < OI_CHUNK ? n - k : OI_CHUNK);
            oi_map_row row = {.n = r.n, .out = truths, .attrs = c->attrs};
            row.in[0] = oi_load_row(&c->load[0], io->in[0], at + k * step, step, r.n, buffer);
            c->map(&row);
            c->reduce->fold(&r);
        }
    }
    c->store.store(io->out[0], io->out_at ? io->out_at[0] : 0, 1, &acc, 1);
    return true;
}
