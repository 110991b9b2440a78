/* stft.c: Fourier transforms of frames of a signal: windowed lines that overlap. */
#include "kernel/custom/transform.h"

static int64_t frame_length(const oi_kernel_query *q)
{
    const oi_op_value *length = oi_kernel_attr(q, "frame_length");
    return q->n_in > 1                   ? q->in[1].dims[0]
           : length->tag == OI_VALUE_INT ? length->i
                                         : q->in[0].dims[1];
}

/* Frames `begin` to `end`, counted through all signals: those of one signal at a time. */
static void part(const oi_transform *j, const void *x, const void *window, void *y, void *work,
                 int64_t begin, int64_t end)
{
    const oi_operand *in = &j->q->in[0], *out = &j->q->out[0];
    const int64_t parts = in->rank == 3 ? in->dims[2] : 1, length = in->dims[1],
                  frames = out->dims[1], bins = out->dims[2],
                  hop = oi_kernel_attr(j->q, "frame_step")->i;
    for (int64_t n; begin < end; begin += n) {
        const int64_t b = begin / frames, f = begin % frames;
        n = end - begin < frames - f ? end - begin : frames - f;
        const int64_t from = (b * length + f * hop) * parts, to = begin * bins * 2;
        if (oi_transform_type(j->q) == OI_F64)
            oi_stft_f64((const double *)x + from, window, (double *)y + to, work, 1, length, parts,
                        n, hop, j->n, bins);
        else
            oi_stft_f32((const float *)x + from, window, (float *)y + to, work, 1, length, parts, n,
                        hop, j->n, bins);
    }
}

static oi_transform transform_of(const oi_kernel_query *q)
{
    return (oi_transform){.q = q,
                          .n = frame_length(q),
                          .n_parts = q->out[0].dims[0] * q->out[0].dims[1],
                          .has_window = true,
                          .part = part};
}

static bool stft_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                     oi_kernel_fault *fault)
{
    (void)c;
    (void)fault;
    const oi_transform j = transform_of(q);
    return j.n == 0 || oi_transform_run(&j, io);
}

static bool stft_choose(const oi_kernel_query *q, oi_choice *c)
{
    const oi_transform j = transform_of(q);
    return oi_transform_choose(&j, stft_run, c);
}

static void stft_lower(oi_steps *s)
{
    const oi_operand *in = &s->q->in[0], *out = &s->q->out[0];
    const int64_t n = frame_length(s->q);
    const oi_dtype t = oi_transform_type(s->q);
    const uint32_t from = oi_steps_as(s, 0, t), window = oi_transform_window_lower(s, n),
                   to = oi_transform_result(s);
    if (n > 0) {
        const uint32_t work = oi_transform_work(s, n, 0);
        oi_steps_call(
            s, &(oi_custom_step){.function = t == OI_F64 ? "oi_stft_f64" : "oi_stft_f32",
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

const oi_custom oi_custom_stft = {
    .choose = stft_choose, .lower = stft_lower, .body = "oi_stft_f32", .body_f64 = "oi_stft_f64"};
