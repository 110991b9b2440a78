/* stft.c: Fourier transforms of frames of a signal: windowed lines that overlap. */
#include "kernel/custom/transform.h"

static void set_frames(oi_transform *j, const oi_kernel_query *q)
{
    const oi_operand *x = &q->in[0];
    const oi_op_value *length = oi_kernel_attr(q, "frame_length");
    *j = (oi_transform){.q = q, .hop = oi_kernel_attr(q, "frame_step")->i};
    j->n = q->n_in > 1 ? q->in[1].dims[0] : length->tag == OI_VALUE_INT ? length->i : x->dims[1];
    j->frames = q->out[0].dims[1];
    j->x_im = x->rank == 3 && x->dims[2] == 2 ? x->strides[2] : 0;
    j->n_tasks = oi_lines_tasks(x->dims[0] * j->frames);
}

static void stft_task(void *ctx, size_t task)
{
    const oi_transform *j = ctx;
    const oi_operand *x = &j->q->in[0], *out = &j->q->out[0];
    oi_complex *line = (oi_complex *)(j->work + task * j->work_bytes);
    void *work = (char *)line + j->line_bytes;
    for (int64_t i = (int64_t)task; i < x->dims[0] * j->frames; i += (int64_t)j->n_tasks) {
        int64_t b = i / j->frames, f = i % j->frames;
        int64_t from =
            oi_start_of(j->io->in_at, 0) + b * x->strides[0] + f * j->hop * x->strides[1];
        int64_t to = oi_start_of(j->io->out_at, 0) + b * out->strides[0] + f * out->strides[1];
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
    oi_transform j;
    set_frames(&j, q);
    j.io = io;
    if (j.n == 0 || j.n_tasks == 0)
        return true;
    oi_transform_scratch(&j, NULL);
    oi_transform_window(&j, 1);
    oi_parallel(io, j.n_tasks, stft_task, &j);
    return true;
}

static bool stft_choose(const oi_kernel_query *q, oi_choice *c)
{
    oi_transform j;
    set_frames(&j, q);
    c->run = stft_run;
    return oi_transform_scratch(&j, c);
}

static void stft_lower(oi_steps *s)
{
    const oi_operand *in = &s->q->in[0], *out = &s->q->out[0];
    const int64_t n =
        s->q->n_in > 1 ? s->q->in[1].dims[0] : oi_steps_int(s, "frame_length", in->dims[1]);
    const uint32_t from = oi_steps_as(s, 0, OI_F64), window = oi_transform_window_lower(s, n),
                   to = oi_steps_wide(s, 0);
    if (n > 0) {
        const uint32_t work = oi_steps_line(s, "work", OI_F64, oi_fft_room(n));
        oi_steps_call(
            s, &(oi_custom_step){.function = "oi_stft",
                                 .in = {from, window},
                                 .out = {to, work},
                                 .sizes = {in->dims[0], in->dims[1],
                                           in->rank == 3 ? in->dims[2] : 1, out->dims[1],
                                           oi_steps_int(s, "frame_step", 1), n, out->dims[2]},
                                 .n_in = 2,
                                 .n_out = 2,
                                 .n_sizes = 7});
    }
    oi_steps_narrow(s, to, 0);
}

const oi_custom oi_custom_stft = {.choose = stft_choose, .lower = stft_lower, .body = "oi_stft"};
