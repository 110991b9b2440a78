/* bitcast.c: the same bits as another element type of the same width. */
#include "kernel/custom.h"

/* y = x, byte by byte. */
static inline void oi_bitcast(const void *x, void *y, int64_t bytes)
{
    const uint8_t *from = x;
    uint8_t *to = y;
    for (int64_t i = 0; i < bytes; i++)
        to[i] = from[i];
}

static bool bitcast_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                        oi_kernel_fault *fault)
{
    (void)c, (void)fault;
    oi_operand x = q->in[0];
    x.dtype = q->out[0].dtype;
    if (!io->in_at && !io->out_at && oi_dtype_bits(x.dtype) >= 8 && oi_operand_is_dense(&x) &&
        oi_operand_is_dense(&q->out[0])) {
        oi_bitcast(io->in[0], io->out[0],
                   oi_operand_count(&x) * (int64_t)oi_dtype_bits(x.dtype) / 8);
        return true;
    }
    oi_copy(&q->out[0], io->out[0], io->out_at ? io->out_at[0] : 0, &x, io->in[0],
            io->in_at ? io->in_at[0] : 0, io);
    return true;
}

static bool bitcast_choose(const oi_kernel_query *q, oi_choice *c)
{
    c->run = bitcast_run;
    return oi_dtype_bits(q->in[0].dtype) == oi_dtype_bits(q->out[0].dtype);
}

static void bitcast_lower(oi_steps *s)
{
    const oi_operand *x = &s->q->in[0];
    const uint64_t bits = (uint64_t)oi_operand_count(x) * oi_dtype_bits(x->dtype);
    oi_steps_call(s, &(oi_custom_step){.function = "oi_bitcast",
                                       .in = {0},
                                       .out = {oi_steps_output(s, 0)},
                                       .sizes = {(int64_t)((bits + 7) / 8)},
                                       .n_in = 1,
                                       .n_out = 1,
                                       .n_sizes = 1});
}

const oi_custom oi_custom_bitcast = {
    .choose = bitcast_choose, .lower = bitcast_lower, .body = "oi_bitcast"};
