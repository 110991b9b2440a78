/* nonzero.c: where elements are not 0, in row-major order. How many there are only the data says:
 * oi_kernel_measure counts them before there is an output. */
#include "kernel/lines.h"

/* A walk over all elements with their numbers; -0 is 0, NaN is not. */
typedef struct finder {
    const oi_operand *x;
    const void *data;
    int64_t at, n;
} finder;

static finder finder_of(const oi_kernel_query *q, const oi_kernel_io *io)
{
    finder f = {&q->in[0], io->in[0], io->in_at ? io->in_at[0] : 0, 1};
    for (uint32_t d = 0; d < f.x->rank; d++)
        f.n *= f.x->dims[d];
    return f;
}

static bool is_nonzero(const finder *f, int64_t e)
{
    int64_t at = f->at;
    for (uint32_t d = f->x->rank; d-- > 0; e /= f->x->dims[d])
        at += e % f->x->dims[d] * f->x->strides[d];
    if (oi_dtype_is_float(f->x->dtype))
        return oi_element_f64(f->x->dtype, f->data, (uint64_t)at) != 0;
    if (f->x->dtype == OI_T1 || f->x->dtype == OI_T2)
        return oi_element_i64(f->x->dtype, f->data, (uint64_t)at) != 0;
    return oi_element_bits(f->x->dtype, f->data, (uint64_t)at) != 0;
}

bool oi_nonzero_measure(const oi_kernel_query *q, const oi_kernel_io *io, int64_t *length)
{
    finder f = finder_of(q, io);
    *length = 0;
    for (int64_t e = 0; e < f.n; e++)
        *length += is_nonzero(&f, e);
    return true;
}

static bool nonzero_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                        oi_kernel_fault *fault)
{
    (void)c;
    finder f = finder_of(q, io);
    const oi_operand *out = &q->out[0];
    int64_t found, n = 0, to = io->out_at ? io->out_at[0] : 0;
    oi_nonzero_measure(q, io, &found);
    if (!oi_kernel_measured(found, out->dims[1], fault))
        return false;
    for (int64_t e = 0; e < f.n; e++) {
        if (!is_nonzero(&f, e))
            continue;
        int64_t rest = e;
        for (uint32_t d = f.x->rank; d-- > 0; rest /= f.x->dims[d]) {
            int64_t place = rest % f.x->dims[d];
            memcpy((int64_t *)io->out[0] + to + d * out->strides[0] + n * out->strides[1], &place,
                   sizeof place);
        }
        n++;
    }
    return true;
}

bool oi_nonzero_choose(const oi_kernel_query *q, oi_choice *c)
{
    (void)q;
    c->run = nonzero_run;
    return true;
}
