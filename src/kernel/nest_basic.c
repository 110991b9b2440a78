/* nest_basic.c: maps, reductions, matrix products and gather as loops. */
#include "kernel/nest.h"

void oi_nest_elementwise(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    uint32_t axes[OI_NEST_AXES];
    const oi_operand *shape = &q->out[0];
    n->kind = OI_NEST_MAP;
    /* is_nan and its like give one truth for all elements when the output has rank 0 */
    bool folds = q->op->shape_rule == OI_SHAPE_SCALAR_OR_SAME && shape->rank < q->in[0].rank;
    if (folds) {
        n->kind = OI_NEST_REDUCE;
        shape = &q->in[0];
        oi_nest_set_write(n, q, 0);
        for (uint32_t d = 0; d < shape->rank; d++)
            oi_nest_add_axis(n, shape->dims[d], true);
    } else {
        oi_nest_over_output(n, q, 0);
    }
    for (uint32_t a = 0; a < n->n_axes; a++)
        axes[a] = a;
    for (uint32_t k = 0; k < q->n_in; k++)
        oi_nest_broadcast(oi_nest_add_read(n, q, k), &q->in[k], axes, n->n_axes);
    oi_dtype acc = oi_kernel_accumulator(q);
    if (acc != OI_NONE)
        n->acc = acc;
}

static bool is_reduced(const oi_kernel_query *q, uint32_t axis)
{
    const oi_op_value *v =
        oi_kernel_attr(q, q->op->shape_rule == OI_SHAPE_ARGREDUCE ? "axis" : "axes");
    int64_t rank = q->in[0].rank;
    size_t n = v->tag == OI_VALUE_INT_LIST ? v->n : 1;
    for (size_t i = 0; i < n; i++) {
        int64_t a = v->tag == OI_VALUE_INT_LIST ? v->ints[i] : v->i;
        if (a == axis || a + rank == axis)
            return true;
    }
    return false;
}

/* The op's order (ops/ops.json): floats along the last axis, where that is long enough. */
uint32_t oi_nest_lanes(const oi_kernel_query *q)
{
    const oi_operand *x = &q->in[0];
    const oi_op_value *order = oi_kernel_attr(q, "order");
    const uint32_t lanes = q->op->order == OI_REDUCE_LANES ? q->op->lanes : 0;
    const bool is_serial = order && order->s && strcmp(order->s, "serial") == 0;
    if (!lanes || is_serial || !oi_dtype_is_float(oi_kernel_reduces_in(q)) || x->rank == 0)
        return 0;
    return x->dims[x->rank - 1] >= 2 * (int64_t)lanes && is_reduced(q, x->rank - 1) ? lanes : 0;
}

void oi_nest_reduce(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    const oi_operand *x = &q->in[0];
    n->kind = OI_NEST_REDUCE;
    oi_nest_ref *r = oi_nest_add_read(n, q, 0), *w = oi_nest_set_write(n, q, 0);
    bool keeps = oi_kernel_attr(q, "keepdims")->b;
    uint32_t o = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
        bool goes = is_reduced(q, d);
        if (!goes) {
            uint32_t a = oi_nest_add_axis(n, x->dims[d], false);
            r->at[d].step[a] = 1;
            w->at[o].step[a] = 1;
        }
        o += !goes || keeps;
    }
    for (uint32_t d = 0; d < x->rank; d++)
        if (is_reduced(q, d))
            r->at[d].step[oi_nest_add_axis(n, x->dims[d], true)] = 1;
    n->acc = oi_kernel_reduces_in(q);
    n->lanes = oi_nest_lanes(q);
}

/* Coordinates of a matrix operand: its leading dims broadcast, then rows and columns. */
static void set_matrix(oi_nest_ref *r, const oi_operand *o, bool transposed, const uint32_t *lead,
                       uint32_t n_lead, uint32_t row, uint32_t col)
{
    if (o->rank == 1) {
        r->at[0].step[r->name == 0 ? col : row] = 1;
        return;
    }
    oi_operand stack = *o;
    stack.rank = o->rank - 2;
    oi_nest_broadcast(r, &stack, lead, n_lead);
    r->at[o->rank - 2].step[transposed ? col : row] = 1;
    r->at[o->rank - 1].step[transposed ? row : col] = 1;
}

void oi_nest_matmul(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    const oi_operand *x = &q->in[0], *y = &q->in[1];
    bool swaps_x = oi_kernel_attr(q, "transpose_a")->b,
         swaps_y = oi_kernel_attr(q, "transpose_b")->b;
    n->kind = OI_NEST_CONTRACT;
    oi_nest_over_output(n, q, 0);
    uint32_t lead[OI_NEST_AXES], n_lead = n->n_axes - (x->rank > 1) - (y->rank > 1);
    for (uint32_t a = 0; a < n_lead; a++)
        lead[a] = a;
    uint32_t row = n_lead, col = n_lead + (x->rank > 1);
    uint32_t k = oi_nest_add_axis(n, x->dims[x->rank == 1 ? 0 : x->rank - (swaps_x ? 2 : 1)], true);
    set_matrix(oi_nest_add_read(n, q, 0), x, swaps_x, lead, n_lead, row, k);
    set_matrix(oi_nest_add_read(n, q, 1), y, swaps_y, lead, n_lead, k, col);
    oi_dtype acc = oi_kernel_accumulator(q);
    if (acc != OI_NONE)
        n->acc = acc;
}

void oi_nest_gather(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    const oi_operand *data = &q->in[0], *idx = &q->in[1];
    int64_t axis = oi_kernel_attr(q, "axis")->i;
    uint32_t at = (uint32_t)(axis < 0 ? axis + data->rank : axis);
    n->kind = OI_NEST_MAP;
    n->is_copy = true;
    oi_nest_over_output(n, q, 0);
    oi_nest_ref *r = oi_nest_add_read(n, q, 0), *by = oi_nest_add_read(n, q, 1);
    by->name = OI_NEST_NONE;
    for (uint32_t d = 0; d < idx->rank; d++)
        by->at[d].step[at + d] = 1;
    for (uint32_t d = 0; d < data->rank; d++) {
        if (d == at)
            r->at[d].index = 1;
        else
            r->at[d].step[d < at ? d : d + idx->rank - 1] = 1;
    }
}
