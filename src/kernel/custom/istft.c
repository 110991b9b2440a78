/* istft.c: a signal from the spectra of its frames: they are added up, and divided by the sum of
 * squared windows. */
#include "kernel/custom/transform.h"

/* All signals: their frames overlap. */
static void part(const oi_transform *j, const void *x, const void *window, void *y, void *work,
                 int64_t begin, int64_t end)
{
    const oi_operand *in = &j->q->in[0];
    const int64_t length = j->q->out[0].dims[1], hop = oi_kernel_attr(j->q, "hop")->i,
                  frames = in->dims[1], bins = in->dims[2], from = begin * frames * bins * 2;
    if (oi_transform_type(j->q) == OI_F64)
        oi_istft_f64((const double *)x + from, window, (double *)y + begin * length, work,
                     end - begin, frames, bins, hop, j->n, length);
    else
        oi_istft_f32((const float *)x + from, window, (float *)y + begin * length, work,
                     end - begin, frames, bins, hop, j->n, length);
}

static oi_transform transform_of(const oi_kernel_query *q)
{
    return (oi_transform){.q = q,
                          .n = q->in[1].dims[0],
                          .n_parts = q->out[0].dims[0],
                          .extra = 2 * q->out[0].dims[1],
                          .has_window = true,
                          .part = part};
}

static bool istft_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                      oi_kernel_fault *fault)
{
    (void)c;
    (void)fault;
    const oi_transform j = transform_of(q);
    return oi_transform_run(&j, io);
}

static bool istft_choose(const oi_kernel_query *q, oi_choice *c)
{
    const oi_transform j = transform_of(q);
    return oi_transform_choose(&j, istft_run, c);
}

static void istft_lower(oi_steps *s)
{
    const oi_operand *in = &s->q->in[0], *out = &s->q->out[0];
    const int64_t n = s->q->in[1].dims[0], length = out->dims[1];
    const oi_dtype t = oi_transform_type(s->q);
    const uint32_t from = oi_steps_as(s, 0, t), window = oi_transform_window_lower(s, n),
                   to = oi_transform_result(s), work = oi_transform_work(s, n, 2 * length);
    oi_steps_call(s, &(oi_custom_step){.function = t == OI_F64 ? "oi_istft_f64" : "oi_istft_f32",
                                       .in = {from, window},
                                       .out = {to, work},
                                       .sizes = {in->dims[0], in->dims[1], in->dims[2],
                                                 oi_steps_int(s, "hop", 1), n, length},
                                       .n_in = 2,
                                       .n_out = 2,
                                       .n_sizes = 6});
    oi_steps_narrow(s, to, 0);
}

const oi_custom oi_custom_istft = {.choose = istft_choose,
                                   .lower = istft_lower,
                                   .body = "oi_istft_f32",
                                   .body_f64 = "oi_istft_f64"};
