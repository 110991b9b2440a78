/* istft.c: a signal from the spectra of its frames: they are added up, and divided by the sum of
 * squared windows. */
#include "kernel/custom/transform.h"

static void set_overlap(oi_transform *j, const oi_kernel_query *q)
{
    *j = (oi_transform){.q = q, .hop = oi_kernel_attr(q, "hop")->i, .frames = q->in[0].dims[1]};
    j->n = q->in[1].dims[0];
    j->onesided = q->in[0].dims[2] != j->n;
    j->n_tasks = 1;
}

/* The spectrum of frame f of signal b. */
static void load_bins(const oi_transform *j, int64_t b, int64_t f, oi_complex *line)
{
    const oi_operand *x = &j->q->in[0];
    int64_t from = oi_start_of(j->io->in_at, 0) + b * x->strides[0] + f * x->strides[1];
    size_t bins = (size_t)(j->onesided ? j->n / 2 + 1 : j->n);
    memset(line, 0, (size_t)j->n * sizeof *line);
    oi_wide_load(x->dtype, j->io->in[0], from, x->strides[2], bins, &line->re, 2);
    oi_wide_load(x->dtype, j->io->in[0], from + x->strides[3], x->strides[2], bins, &line->im, 2);
}

static bool istft_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                      oi_kernel_fault *fault)
{
    (void)fault;
    oi_transform j;
    const oi_operand *out = &q->out[0];
    int64_t length = out->dims[1];
    set_overlap(&j, q);
    j.io = io;
    oi_transform_scratch(&j, NULL);
    oi_transform_window(&j, 1);
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
        oi_wide_store(out->dtype, io->out[0], oi_start_of(io->out_at, 0) + b * out->strides[0],
                      out->strides[1], (size_t)length, sum, 1);
    }
    return true;
}

static bool istft_choose(const oi_kernel_query *q, oi_choice *c)
{
    oi_transform j;
    set_overlap(&j, q);
    c->run = istft_run;
    if (!oi_transform_scratch(&j, c))
        return false;
    c->scratch_bytes += 2 * (size_t)q->out[0].dims[1] * sizeof(double);
    return true;
}

static void istft_lower(oi_steps *s)
{
    const oi_operand *in = &s->q->in[0], *out = &s->q->out[0];
    const int64_t n = s->q->in[1].dims[0], length = out->dims[1];
    const uint32_t from = oi_steps_as(s, 0, OI_F64), window = oi_transform_window_lower(s, n),
                   to = oi_steps_wide(s, 0),
                   work = oi_steps_line(s, "work", OI_F64, oi_fft_room(n ? n : 1) + 2 * length);
    oi_steps_call(s, &(oi_custom_step){.function = "oi_istft",
                                       .in = {from, window},
                                       .out = {to, work},
                                       .sizes = {in->dims[0], in->dims[1], in->dims[2],
                                                 oi_steps_int(s, "hop", 1), n, length},
                                       .n_in = 2,
                                       .n_out = 2,
                                       .n_sizes = 6});
    oi_steps_narrow(s, to, 0);
}

const oi_custom oi_custom_istft = {
    .choose = istft_choose, .lower = istft_lower, .body = "oi_istft"};
