/* nest.c: which loops an op is, and the pieces its family builds them from. */
#include "kernel/nest.h"

typedef struct family {
    oi_nest_lower *lower;
    size_t (*count)(const oi_kernel_query *q); /* NULL: one nest */
} family;

static const family families[OI_LOOPS_COUNT] = {
    [OI_LOOPS_ELEMENTWISE] = {oi_nest_elementwise, NULL},
    [OI_LOOPS_REDUCE] = {oi_nest_reduce, NULL},
    [OI_LOOPS_MATMUL] = {oi_nest_matmul, NULL},
    [OI_LOOPS_GATHER] = {oi_nest_gather, NULL},
    [OI_LOOPS_RESHAPE] = {oi_nest_reshape, NULL},
    [OI_LOOPS_TRANSPOSE] = {oi_nest_transpose, NULL},
    [OI_LOOPS_EXPAND] = {oi_nest_expand, NULL},
    [OI_LOOPS_TILE] = {oi_nest_tile, NULL},
    [OI_LOOPS_CONCAT] = {oi_nest_concat, oi_nest_per_input},
    [OI_LOOPS_SPLIT] = {oi_nest_split, oi_nest_per_output},
    [OI_LOOPS_SLICE] = {oi_nest_slice, NULL},
    [OI_LOOPS_PAD] = {oi_nest_pad, NULL},
    [OI_LOOPS_REVERSE] = {oi_nest_reverse, NULL},
    [OI_LOOPS_ROLL] = {oi_nest_roll, NULL},
    [OI_LOOPS_DEPTH_TO_SPACE] = {oi_nest_depth_to_space, NULL},
    [OI_LOOPS_SPACE_TO_DEPTH] = {oi_nest_space_to_depth, NULL},
    [OI_LOOPS_TRILU] = {oi_nest_trilu, NULL},
    [OI_LOOPS_GATHER_ELEMENTS] = {oi_nest_gather_elements, NULL},
    [OI_LOOPS_GATHER_ND] = {oi_nest_gather_nd, NULL},
    [OI_LOOPS_SCATTER] = {oi_nest_scatter, oi_nest_two},
    [OI_LOOPS_SCATTER_ND] = {oi_nest_scatter_nd, oi_nest_two},
    [OI_LOOPS_ONE_HOT] = {oi_nest_one_hot, oi_nest_two},
    [OI_LOOPS_SCAN] = {oi_nest_scan, NULL},
    [OI_LOOPS_COUNT_UP] = {oi_nest_count_up, NULL},
    [OI_LOOPS_SHAPE_OF] = {oi_nest_shape_of, oi_nest_per_axis},
    [OI_LOOPS_SIZE_OF] = {oi_nest_size_of, NULL},
    [OI_LOOPS_EINSUM] = {oi_nest_einsum, NULL},
    [OI_LOOPS_CONV] = {oi_nest_conv, NULL},
    [OI_LOOPS_CONV_TRANSPOSE] = {oi_nest_conv_transpose, oi_nest_phases},
    [OI_LOOPS_POOL] = {oi_nest_pool, oi_nest_pool_count},
    [OI_LOOPS_IM2COL] = {oi_nest_im2col, NULL},
};

size_t oi_nest_count(const oi_kernel_query *q)
{
    const family *f = &families[q->op->loops];
    if (!f->lower)
        return 0;
    return f->count ? f->count(q) : 1;
}

void oi_nest_make(const oi_kernel_query *q, size_t i, oi_nest *out)
{
    memset(out, 0, sizeof *out);
    out->op = q->op;
    out->acc = oi_kernel_shared(q);
    families[q->op->loops].lower(q, i, out);
}

uint32_t oi_nest_add_axis(oi_nest *n, int64_t extent, bool is_reduced)
{
    n->axes[n->n_axes] = (oi_nest_axis){extent, is_reduced};
    return n->n_axes++;
}

static void set_ref(oi_nest_ref *r, const oi_operand *o, uint32_t operand, bool is_output)
{
    *r =
        (oi_nest_ref){.is_output = is_output, .operand = operand, .name = operand, .rank = o->rank};
    for (uint32_t d = 0; d < o->rank; d++)
        r->at[d].index = OI_NEST_NONE;
}

oi_nest_ref *oi_nest_add_read(oi_nest *n, const oi_kernel_query *q, uint32_t operand)
{
    oi_nest_ref *r = &n->reads[n->n_reads++];
    set_ref(r, &q->in[operand], operand, false);
    return r;
}

oi_nest_ref *oi_nest_set_write(oi_nest *n, const oi_kernel_query *q, uint32_t operand)
{
    set_ref(&n->write, &q->out[operand], operand, true);
    return &n->write;
}

void oi_nest_over_output(oi_nest *n, const oi_kernel_query *q, uint32_t operand)
{
    oi_nest_ref *w = oi_nest_set_write(n, q, operand);
    for (uint32_t d = 0; d < w->rank; d++)
        w->at[d].step[oi_nest_add_axis(n, q->out[operand].dims[d], false)] = 1;
}

void oi_nest_broadcast(oi_nest_ref *r, const oi_operand *o, const uint32_t *axes, uint32_t n_axes)
{
    for (uint32_t d = 0; d < o->rank; d++) {
        int64_t a = (int64_t)d + n_axes - o->rank;
        if (a >= 0 && o->dims[d] != 1)
            r->at[d].step[axes[a]] = 1;
    }
}
