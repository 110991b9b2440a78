/* nonzero.c: where elements are not 0, in row-major order (order.h). How many there are only the
 * data says: oi_kernel_measure counts them before there is an output. */
#include "kernel/lines.h"
#include "kernel/order.h"

static size_t truths_bytes(const oi_kernel_query *q)
{
    return ((size_t)oi_operand_count(&q->in[0]) + 63) / 64 * 64;
}

/* -0 is 0, NaN is not. */
static bool is_nonzero(const oi_operand *x, const void *data, int64_t at)
{
    if (oi_dtype_is_float(x->dtype))
        return oi_element_f64(x->dtype, data, (uint64_t)at) != 0;
    if (x->dtype == OI_T1 || x->dtype == OI_T2)
        return oi_element_i64(x->dtype, data, (uint64_t)at) != 0;
    return oi_element_bits(x->dtype, data, (uint64_t)at) != 0;
}

/* Their places in columns of `to`, if there are at most `most`; gives how many there are. */
static int64_t find(const oi_kernel_query *q, const oi_kernel_io *io, int64_t most, int64_t *to)
{
    const oi_operand *x = &q->in[0];
    const int64_t n = oi_operand_count(x);
    uint8_t *truths = io->scratch;
    int64_t found;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = io->in_at ? io->in_at[0] : 0, rest = i;
        for (uint32_t d = x->rank; d-- > 0; rest /= x->dims[d])
            at += rest % x->dims[d] * x->strides[d];
        truths[i] = is_nonzero(x, io->in[0], at);
    }
    oi_nonzero(truths, x->dims, to, &found, n, x->rank, most);
    return found;
}

/* For all that there can be. */
size_t oi_nonzero_scratch(const oi_kernel_query *q)
{
    const oi_operand *x = &q->in[0];
    return truths_bytes(q) + (size_t)oi_operand_count(x) * x->rank * sizeof(int64_t);
}

bool oi_nonzero_measure(const oi_kernel_query *q, const oi_kernel_io *io, int64_t *length)
{
    *length = find(q, io, -1, NULL);
    return true;
}

static bool nonzero_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                        oi_kernel_fault *fault)
{
    (void)c;
    const oi_operand *out = &q->out[0];
    oi_operand dense = *out;
    int64_t *places = (int64_t *)(void *)((char *)io->scratch + truths_bytes(q));
    dense.strides[0] = out->dims[1];
    dense.strides[1] = 1;
    if (!oi_kernel_measured(find(q, io, oi_operand_count(&q->in[0]), places), out->dims[1], fault))
        return false;
    oi_copy(out, io->out[0], io->out_at ? io->out_at[0] : 0, &dense, places, 0, io);
    return true;
}

bool oi_nonzero_choose(const oi_kernel_query *q, oi_choice *c)
{
    c->run = nonzero_run;
    c->scratch_bytes = oi_nonzero_scratch(q);
    return true;
}
