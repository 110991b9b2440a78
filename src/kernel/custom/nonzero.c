/* nonzero.c: where elements are not 0, in row-major order. How many there are only the
 * data says: oi_kernel_measure counts them before there is an output. */
#include "kernel/custom.h"

/* The places of all elements of x (n, of these dims) that are not 0, one per column; nothing when
 * there are more than `most`. */
static inline void oi_nonzero(const uint8_t *x, const int64_t *dims, int64_t *to, int64_t *found,
                              int64_t n, int64_t rank, int64_t most)
{
    int64_t all = 0, at = 0;
    for (int64_t i = 0; i < n; i++)
        all += x[i] != 0;
    *found = all;
    for (int64_t i = 0; i < n && all <= most; i++) {
        int64_t rest = i;
        if (!x[i])
            continue;
        for (int64_t d = rank; d-- > 0; rest /= dims[d])
            to[d * all + at] = rest % dims[d];
        at++;
    }
}

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
static size_t nonzero_scratch(const oi_kernel_query *q)
{
    const oi_operand *x = &q->in[0];
    return truths_bytes(q) + (size_t)oi_operand_count(x) * x->rank * sizeof(int64_t);
}

static bool nonzero_measure(const oi_kernel_query *q, const oi_kernel_io *io, int64_t *length)
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

static bool nonzero_choose(const oi_kernel_query *q, oi_choice *c)
{
    c->run = nonzero_run;
    c->scratch_bytes = nonzero_scratch(q);
    return true;
}

static void nonzero_limit(const oi_operand *x, int64_t *dims)
{
    dims[0] = x->rank;
    dims[1] = oi_operand_count(x);
}

static void nonzero_lower(oi_steps *s)
{
    const oi_operand *in = &s->q->in[0];
    int64_t *dims = oi_arena_alloc(s->arena, (in->rank + 1) * sizeof *dims);
    memcpy(dims, in->dims, in->rank * sizeof *dims);
    const uint32_t truths = oi_steps_as(s, 0, OI_BOOL), to = oi_steps_output(s, 0),
                   sizes = oi_steps_table(s, "dims", OI_I64, in->rank, dims),
                   found = oi_steps_tensor(s, "found", OI_I64, 0, NULL);
    oi_steps_call(s,
                  &(oi_custom_step){.function = "oi_nonzero",
                                    .in = {truths, sizes},
                                    .out = {to, found},
                                    .sizes = {oi_operand_count(in), in->rank, s->q->out[0].dims[1]},
                                    .n_in = 2,
                                    .n_out = 2,
                                    .n_sizes = 3,
                                    .fixed = to + 1,
                                    .length = in->rank});
    oi_steps_length(s, found, to, 1);
}

static const struct oi_measured measured = {nonzero_scratch, nonzero_measure, nonzero_limit};
const oi_custom oi_custom_nonzero = {
    .choose = nonzero_choose, .lower = nonzero_lower, .body = "oi_nonzero", .measured = &measured};
