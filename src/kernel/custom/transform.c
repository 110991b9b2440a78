/* transform.c: runs Fourier transforms in the simulator, and what their steps share. */
#include "kernel/custom/transform.h"

#include "kernel/lines.h"

oi_dtype oi_transform_type(const oi_kernel_query *q)
{
    return q->in[0].dtype == OI_F64 ? OI_F64 : OI_F32;
}

static size_t aligned(size_t n)
{
    return (n + 63) / 64 * 64;
}

static int64_t room(oi_dtype t, int64_t n)
{
    return t == OI_F64 ? oi_fft_room_f64(n) : oi_fft_room_f32(n);
}

static int64_t count(const oi_operand *x)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < x->rank; d++)
        n *= x->dims[d];
    return n;
}

/* Whether a tensor can be computed with where it is. */
static bool is_ready(const oi_operand *x, oi_dtype t)
{
    return x->dtype == t && oi_operand_is_dense(x);
}

/* Where things are in the scratch, in bytes. */
typedef struct layout {
    size_t x, y, window, work, work_bytes, n_tasks, all;
} layout;

static layout lay_out(const oi_transform *j)
{
    const oi_dtype t = oi_transform_type(j->q);
    const size_t size = oi_dtype_bits(t) / 8;
    const oi_operand *x = &j->q->in[0], *y = &j->q->out[0];
    layout l = {.n_tasks = oi_lines_tasks(j->n_parts)};
    l.y = is_ready(x, t) ? 0 : aligned((size_t)count(x) * size);
    l.window = l.y + (is_ready(y, t) ? 0 : aligned((size_t)count(y) * size));
    l.work = l.window + (j->has_window ? aligned((size_t)j->n * size) : 0);
    l.work_bytes = aligned((size_t)(room(t, j->n ? j->n : 1) + j->extra) * size);
    l.all = l.work + l.n_tasks * l.work_bytes;
    return l;
}

bool oi_transform_choose(const oi_transform *j, oi_kernel_run *run, oi_choice *c)
{
    c->run = run;
    if (j->n < 0 || j->n > OI_TRANSFORM_LENGTH)
        return false;
    c->scratch_bytes = lay_out(j).all;
    return true;
}

/* -- running -- */

typedef struct job {
    const oi_transform *j;
    layout l;
    const void *x, *window;
    void *y;
    char *scratch;
} job;

/* All elements, row-major, in the type that is computed in: the form of the operand's own. */
static const void *pull(const oi_operand *x, const void *data, int64_t at, void *out)
{
    const oi_dtype t = x->dtype == OI_F64 ? OI_F64 : OI_F32;
    const size_t size = oi_dtype_bits(t) / 8;
    if (is_ready(x, t))
        return (const char *)data + (size_t)at * size;
    oi_walk w;
    oi_walk_init(&w, x, &x, 1);
    const uint32_t last = w.rank - 1;
    for (int64_t r = 0, n = w.dims[last]; r < oi_walk_count(&w, last); r++) {
        int64_t from = at;
        oi_walk_seek(&w, last, r, &from);
        oi_forms[OI_CPU_SCALAR]->load[x->dtype]((char *)out + (size_t)(r * n) * size, data, from,
                                                w.steps[0][last], (size_t)n);
    }
    return out;
}

static void push(const oi_operand *y, void *data, int64_t at, const void *in)
{
    const size_t size = y->dtype == OI_F64 ? 8 : 4;
    oi_walk w;
    oi_walk_init(&w, y, &y, 1);
    const uint32_t last = w.rank - 1;
    for (int64_t r = 0, n = w.dims[last]; r < oi_walk_count(&w, last); r++) {
        int64_t to = at;
        oi_walk_seek(&w, last, r, &to);
        oi_forms[OI_CPU_SCALAR]->store[y->dtype](
            data, to, w.steps[0][last], (const char *)in + (size_t)(r * n) * size, (size_t)n);
    }
}

/* The window in the type that is computed in, whatever its own. */
static const void *pull_window(const oi_transform *j, const oi_kernel_io *io, void *out)
{
    const oi_dtype t = oi_transform_type(j->q);
    const oi_operand *w = j->q->n_in > 1 ? &j->q->in[1] : NULL;
    for (int64_t i = 0; i < j->n; i++) {
        const int64_t at = w ? (io->in_at ? io->in_at[1] : 0) + i * w->strides[0] : 0;
        const double v = w ? oi_element_f64(w->dtype, io->in[1], (uint64_t)at) : 1;
        if (t == OI_F64)
            ((double *)out)[i] = v;
        else
            ((float *)out)[i] = (float)v;
    }
    return out;
}

static void task(void *ctx, size_t i)
{
    const job *b = ctx;
    const int64_t n = b->j->n_parts, tasks = (int64_t)b->l.n_tasks, at = (int64_t)i;
    b->j->part(b->j, b->x, b->window, b->y, b->scratch + b->l.work + i * b->l.work_bytes,
               n * at / tasks, n * (at + 1) / tasks);
}

bool oi_transform_run(const oi_transform *j, const oi_kernel_io *io)
{
    const oi_dtype t = oi_transform_type(j->q);
    const oi_operand *x = &j->q->in[0], *y = &j->q->out[0];
    const int64_t to = io->out_at ? io->out_at[0] : 0;
    job b = {.j = j, .l = lay_out(j), .scratch = io->scratch};
    if (count(y) == 0)
        return true;
    const bool is_direct = is_ready(y, t);
    b.x = pull(x, io->in[0], io->in_at ? io->in_at[0] : 0, b.scratch + b.l.x);
    b.y = is_direct ? (char *)io->out[0] + (size_t)to * (oi_dtype_bits(t) / 8) : b.scratch + b.l.y;
    b.window = j->has_window ? pull_window(j, io, b.scratch + b.l.window) : NULL;
    oi_parallel(io, b.l.n_tasks, task, &b);
    if (!is_direct)
        push(y, io->out[0], to, b.y);
    return true;
}

/* -- steps -- */

uint32_t oi_transform_window_lower(oi_steps *s, int64_t n)
{
    const oi_dtype t = oi_transform_type(s->q);
    if (s->q->n_in > 1)
        return oi_steps_as(s, 1, t);
    void *ones = oi_arena_alloc(s->arena, ((size_t)n + 1) * sizeof(double));
    for (int64_t i = 0; i < n; i++)
        oi_element_set_f64(t, ones, (uint64_t)i, 1);
    return oi_steps_table(s, "window", t, n, ones);
}

uint32_t oi_transform_result(oi_steps *s)
{
    const oi_operand *o = &s->q->out[0];
    const oi_dtype t = oi_transform_type(s->q);
    return o->dtype == t ? oi_steps_output(s, 0) : oi_steps_tensor(s, "wide", t, o->rank, o->dims);
}

uint32_t oi_transform_work(oi_steps *s, int64_t n, int64_t extra)
{
    const oi_dtype t = oi_transform_type(s->q);
    return oi_steps_line(s, "work", t, room(t, n ? n : 1) + extra);
}
