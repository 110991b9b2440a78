/* dft.c: Fourier transforms along an axis, and of frames of a signal.
 *
 * Complex numbers are a last axis of 2, real ones of 1. A line is computed in f64 and rounded once.
 * Frames (stft) are windowed lines that overlap; istft adds them up again and divides by the sum of
 * squared windows. */
#include "kernel/fft.h"
#include "kernel/lines.h"

#define MAX_LENGTH ((int64_t)1 << 40)

typedef struct dft_job {
    const oi_kernel_query *q;
    const oi_kernel_io *io;
    oi_fft fft;
    oi_lines lines; /* x, out; without the axis of 2 */
    bool inverse, onesided;
    int64_t n, x_im,
        out_im; /* length; from the real to the imaginary part, 0 where there is none */
    size_t n_tasks, line_bytes, work_bytes;
    char *work; /* per task: a line, then what the transform needs */
    /* frames */
    int64_t frames, hop;
    double *window; /* (n) */
} dft_job;

static size_t aligned(size_t n)
{
    return (n + 63) / 64 * 64;
}

static bool flag(const oi_kernel_query *q, const char *name)
{
    const oi_op_value *v = oi_kernel_attr(q, name);
    return v && v->tag == OI_VALUE_BOOL && v->b;
}

/* Scratch: tables, the window, then every task's own. */
static bool set_scratch(dft_job *j, oi_choice *c)
{
    if (j->n < 0 || j->n > MAX_LENGTH)
        return false;
    int64_t n = j->n ? j->n : 1;
    j->line_bytes = aligned((size_t)n * sizeof(oi_complex));
    j->work_bytes = j->line_bytes + aligned(oi_fft_work_bytes(n));
    size_t tables = aligned(oi_fft_table_bytes(n)), window = aligned((size_t)n * sizeof(double));
    if (c)
        c->scratch_bytes = tables + window + j->n_tasks * j->work_bytes;
    if (j->io) {
        oi_fft_init(&j->fft, n, j->io->scratch);
        j->window = (double *)((char *)j->io->scratch + tables);
        j->work = (char *)j->window + window;
    }
    return true;
}

static int64_t start_of(const int64_t *at, size_t i)
{
    return at ? at[i] : 0;
}

/* -- lines along an axis -- */

static void set_dft(dft_job *j, const oi_kernel_query *q)
{
    oi_operand x = q->in[0], out = q->out[0];
    int64_t axis = oi_kernel_attr(q, "axis")->i;
    const oi_op_value *length = oi_kernel_attr(q, "length");
    uint32_t at = (uint32_t)(axis < 0 ? axis + x.rank : axis), last = x.rank - 1;
    *j = (dft_job){.q = q, .inverse = flag(q, "inverse"), .onesided = flag(q, "onesided")};
    j->x_im = x.dims[last] == 2 ? x.strides[last] : 0;
    j->out_im = out.dims[last] == 2 ? out.strides[last] : 0;
    j->n = length->tag == OI_VALUE_INT ? length->i
           : j->inverse && j->onesided ? 2 * (x.dims[at] - 1)
                                       : x.dims[at];
    x.rank = out.rank = last;
    oi_lines_init(&j->lines, (const oi_operand *const[]){&x, &out}, 2, at);
    j->n_tasks = oi_lines_tasks(j->lines.n);
}

static void dft_task(void *ctx, size_t task)
{
    const dft_job *j = ctx;
    oi_complex *line = (oi_complex *)(j->work + task * j->work_bytes);
    void *work = (char *)line + j->line_bytes;
    oi_dtype t = j->q->in[0].dtype;
    int64_t wanted = j->inverse && j->onesided ? j->n / 2 + 1 : j->n;
    size_t n = (size_t)(j->lines.length[0] < wanted ? j->lines.length[0] : wanted);
    for (int64_t i = (int64_t)task; i < j->lines.n; i += (int64_t)j->n_tasks) {
        int64_t at[OI_WALK_OPERANDS] = {start_of(j->io->in_at, 0), start_of(j->io->out_at, 0)};
        oi_walk_seek(&j->lines.w, j->lines.w.rank, i, at);
        memset(line, 0, (size_t)j->n * sizeof *line);
        oi_wide_load(t, j->io->in[0], at[0], j->lines.step[0], n, &line->re, 2);
        if (j->x_im)
            oi_wide_load(t, j->io->in[0], at[0] + j->x_im, j->lines.step[0], n, &line->im, 2);
        if (j->inverse && j->onesided)
            oi_fft_mirror(line, j->n);
        oi_fft_run(&j->fft, line, j->inverse, work);
        size_t m = (size_t)j->lines.length[1];
        oi_wide_store(t, j->io->out[0], at[1], j->lines.step[1], m, &line->re, 2);
        if (j->out_im)
            oi_wide_store(t, j->io->out[0], at[1] + j->out_im, j->lines.step[1], m, &line->im, 2);
    }
}

static bool dft_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                    oi_kernel_fault *fault)
{
    (void)c;
    (void)fault;
    dft_job j;
    set_dft(&j, q);
    j.io = io;
    if (j.n == 0 || j.lines.n == 0)
        return true;
    set_scratch(&j, NULL);
    oi_parallel(io, j.n_tasks, dft_task, &j);
    return true;
}

bool oi_dft_choose(const oi_kernel_query *q, oi_choice *c)
{
    dft_job j;
    set_dft(&j, q);
    c->run = dft_run;
    return set_scratch(&j, c);
}

/* -- frames -- */

static void set_frames(dft_job *j, const oi_kernel_query *q)
{
    const oi_operand *x = &q->in[0];
    const oi_op_value *length = oi_kernel_attr(q, "frame_length");
    *j = (dft_job){.q = q, .hop = oi_kernel_attr(q, "frame_step")->i};
    j->n = q->n_in > 1 ? q->in[1].dims[0] : length->tag == OI_VALUE_INT ? length->i : x->dims[1];
    j->frames = q->out[0].dims[1];
    j->x_im = x->rank == 3 && x->dims[2] == 2 ? x->strides[2] : 0;
    j->n_tasks = oi_lines_tasks(x->dims[0] * j->frames);
}

static void load_window(dft_job *j, size_t input)
{
    const oi_operand *w = &j->q->in[input];
    for (int64_t k = 0; j->q->n_in <= input && k < j->n; k++)
        j->window[k] = 1;
    if (j->q->n_in > input)
        oi_wide_load(w->dtype, j->io->in[input], start_of(j->io->in_at, input), w->strides[0],
                     (size_t)j->n, j->window, 1);
}

static void stft_task(void *ctx, size_t task)
{
    const dft_job *j = ctx;
    const oi_operand *x = &j->q->in[0], *out = &j->q->out[0];
    oi_complex *line = (oi_complex *)(j->work + task * j->work_bytes);
    void *work = (char *)line + j->line_bytes;
    for (int64_t i = (int64_t)task; i < x->dims[0] * j->frames; i += (int64_t)j->n_tasks) {
        int64_t b = i / j->frames, f = i % j->frames;
        int64_t from = start_of(j->io->in_at, 0) + b * x->strides[0] + f * j->hop * x->strides[1];
        int64_t to = start_of(j->io->out_at, 0) + b * out->strides[0] + f * out->strides[1];
        memset(line, 0, (size_t)j->n * sizeof *line);
        oi_wide_load(x->dtype, j->io->in[0], from, x->strides[1], (size_t)j->n, &line->re, 2);
        if (j->x_im)
            oi_wide_load(x->dtype, j->io->in[0], from + j->x_im, x->strides[1], (size_t)j->n,
                         &line->im, 2);
        oi_fft_frame(&j->fft, &line->re, 2, j->window, line, work);
        size_t m = (size_t)out->dims[2];
        oi_wide_store(out->dtype, j->io->out[0], to, out->strides[2], m, &line->re, 2);
        oi_wide_store(out->dtype, j->io->out[0], to + out->strides[3], out->strides[2], m,
                      &line->im, 2);
    }
}

static bool stft_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                     oi_kernel_fault *fault)
{
    (void)c;
    (void)fault;
    dft_job j;
    set_frames(&j, q);
    j.io = io;
    if (j.n == 0 || j.n_tasks == 0)
        return true;
    set_scratch(&j, NULL);
    load_window(&j, 1);
    oi_parallel(io, j.n_tasks, stft_task, &j);
    return true;
}

bool oi_stft_choose(const oi_kernel_query *q, oi_choice *c)
{
    dft_job j;
    set_frames(&j, q);
    c->run = stft_run;
    return set_scratch(&j, c);
}

/* -- and back -- */

static void set_overlap(dft_job *j, const oi_kernel_query *q)
{
    *j = (dft_job){.q = q, .hop = oi_kernel_attr(q, "hop")->i, .frames = q->in[0].dims[1]};
    j->n = q->in[1].dims[0];
    j->onesided = q->in[0].dims[2] != j->n;
    j->n_tasks = 1;
}

/* The spectrum of frame f of signal b. */
static void load_bins(const dft_job *j, int64_t b, int64_t f, oi_complex *line)
{
    const oi_operand *x = &j->q->in[0];
    int64_t from = start_of(j->io->in_at, 0) + b * x->strides[0] + f * x->strides[1];
    size_t bins = (size_t)(j->onesided ? j->n / 2 + 1 : j->n);
    memset(line, 0, (size_t)j->n * sizeof *line);
    oi_wide_load(x->dtype, j->io->in[0], from, x->strides[2], bins, &line->re, 2);
    oi_wide_load(x->dtype, j->io->in[0], from + x->strides[3], x->strides[2], bins, &line->im, 2);
}

static bool istft_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                      oi_kernel_fault *fault)
{
    (void)fault;
    dft_job j;
    const oi_operand *out = &q->out[0];
    int64_t length = out->dims[1];
    set_overlap(&j, q);
    j.io = io;
    set_scratch(&j, NULL);
    load_window(&j, 1);
    double *sum = (double *)((char *)io->scratch + c->scratch_bytes) - 2 * length,
           *weight = sum + length;
    for (int64_t b = 0; b < out->dims[0]; b++) {
        memset(sum, 0, 2 * (size_t)length * sizeof *sum);
        for (int64_t f = 0; f < j.frames; f++) {
            oi_complex *line = (oi_complex *)j.work;
            load_bins(&j, b, f, line);
            oi_fft_unframe(&j.fft, line, j.onesided ? j.n / 2 + 1 : j.n, j.window, sum, weight,
                           f * j.hop, length, j.work + j.line_bytes);
        }
        for (int64_t t = 0; t < length; t++)
            sum[t] = weight[t] == 0 ? 0 : sum[t] / weight[t];
        oi_wide_store(out->dtype, io->out[0], start_of(io->out_at, 0) + b * out->strides[0],
                      out->strides[1], (size_t)length, sum, 1);
    }
    return true;
}

bool oi_istft_choose(const oi_kernel_query *q, oi_choice *c)
{
    dft_job j;
    set_overlap(&j, q);
    c->run = istft_run;
    if (!set_scratch(&j, c))
        return false;
    c->scratch_bytes += 2 * (size_t)q->out[0].dims[1] * sizeof(double);
    return true;
}
