/* dft.c: Fourier transforms along an axis. */
#include "kernel/custom/transform.h"

static bool flag(const oi_kernel_query *q, const char *name)
{
    const oi_op_value *v = oi_kernel_attr(q, name);
    return v && v->tag == OI_VALUE_BOOL && v->b;
}

/* What oi_dft takes, of a call with these shapes. */
typedef struct sizes {
    int64_t outer, k, inner, x_parts, n, m, y_parts, inverse, onesided;
} sizes;

static sizes sizes_of(const oi_kernel_query *q)
{
    const oi_operand *x = &q->in[0], *y = &q->out[0];
    const int64_t axis = oi_kernel_attr(q, "axis")->i;
    const oi_op_value *length = oi_kernel_attr(q, "length");
    const uint32_t at = (uint32_t)(axis < 0 ? axis + x->rank : axis), last = x->rank - 1;
    sizes s = {.k = x->dims[at],
               .x_parts = x->dims[last],
               .m = y->dims[at],
               .y_parts = y->dims[last],
               .inverse = flag(q, "inverse"),
               .onesided = flag(q, "onesided")};
    oi_steps_around(x->dims, last, at, &s.outer, &s.inner);
    s.n = length->tag == OI_VALUE_INT ? length->i : s.inverse && s.onesided ? 2 * (s.k - 1) : s.k;
    return s;
}

static void part(const oi_transform *j, const void *x, const void *window, void *y, void *work,
                 int64_t begin, int64_t end)
{
    const sizes s = sizes_of(j->q);
    const int64_t from = begin * s.k * s.inner * s.x_parts, to = begin * s.m * s.inner * s.y_parts;
    (void)window;
    if (oi_transform_type(j->q) == OI_F64)
        oi_dft_f64((const double *)x + from, (double *)y + to, work, end - begin, s.k, s.inner,
                   s.x_parts, s.n, s.m, s.y_parts, s.inverse, s.onesided);
    else
        oi_dft_f32((const float *)x + from, (float *)y + to, work, end - begin, s.k, s.inner,
                   s.x_parts, s.n, s.m, s.y_parts, s.inverse, s.onesided);
}

static oi_transform transform_of(const oi_kernel_query *q)
{
    const sizes s = sizes_of(q);
    return (oi_transform){.q = q, .n = s.n, .n_parts = s.outer, .part = part};
}

static bool dft_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                    oi_kernel_fault *fault)
{
    (void)c;
    (void)fault;
    const oi_transform j = transform_of(q);
    return j.n == 0 || oi_transform_run(&j, io);
}

static bool dft_choose(const oi_kernel_query *q, oi_choice *c)
{
    const oi_transform j = transform_of(q);
    return oi_transform_choose(&j, dft_run, c);
}

static void dft_lower(oi_steps *s)
{
    const sizes z = sizes_of(s->q);
    const oi_dtype t = oi_transform_type(s->q);
    const uint32_t from = oi_steps_as(s, 0, t), to = oi_transform_result(s);
    if (z.n > 0) {
        const uint32_t work = oi_transform_work(s, z.n, 0);
        oi_steps_call(s, &(oi_custom_step){.function = t == OI_F64 ? "oi_dft_f64" : "oi_dft_f32",
                                           .in = {from},
                                           .out = {to, work},
                                           .sizes = {z.outer, z.k, z.inner, z.x_parts, z.n, z.m,
                                                     z.y_parts, z.inverse, z.onesided},
                                           .n_in = 1,
                                           .n_out = 2,
                                           .n_sizes = 9});
    }
    oi_steps_narrow(s, to, 0);
}

const oi_custom oi_custom_dft = {
    .choose = dft_choose, .lower = dft_lower, .body = "oi_dft_f32", .body_f64 = "oi_dft_f64"};
