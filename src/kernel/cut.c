/* cut.c: calls in parts. Cutting the output along one axis gives calls of the same op, each on
 * parts of those inputs that run along that axis. Every element is computed as before, so all bits
 * stay.
 *
 * Which inputs run along an axis follows from the op's nest: a dim whose coordinate is that loop
 * axis and nothing else is cut, one that does not mention the axis is needed whole, and anything
 * between (windows, offsets, groups) cannot be cut. Composites have no nest; those that are one
 * product with a large operand have a rule of their own here. */
#include "kernel/nest.h"

/* -- nests -- */

/* Attributes of these do not repeat sizes of the operands. */
static bool has_free_sizes(const oi_kernel_query *q)
{
    switch (q->op->loops) {
    case OI_LOOPS_ELEMENTWISE:
    case OI_LOOPS_REDUCE:
    case OI_LOOPS_MATMUL:
    case OI_LOOPS_GATHER:
    case OI_LOOPS_TRANSPOSE:
    case OI_LOOPS_EINSUM: return true;
    case OI_LOOPS_CONV:
    case OI_LOOPS_CONV_TRANSPOSE: return oi_kernel_attr(q, "group")->i == 1;
    default: return false;
    }
}

static bool mentions(const oi_nest_coord *c, uint32_t axis)
{
    return c->step[axis] != 0;
}

/* The coordinate is the loop axis itself. */
static bool is_axis(const oi_nest *n, const oi_nest_coord *c, uint32_t axis)
{
    if (c->step[axis] != 1 || c->base != 0 || c->index != OI_NEST_NONE || c->bend || c->may_leave)
        return false;
    for (uint32_t a = 0; a < n->n_axes; a++)
        if (a != axis && c->step[a] != 0 && n->axes[a].extent > 1)
            return false;
    return true;
}

/* The loop axis that runs along dim `dim` of the write and nothing else of it. */
static bool find_axis(const oi_nest *n, uint32_t dim, uint32_t *axis)
{
    for (*axis = 0; *axis < n->n_axes; ++*axis)
        if (!n->axes[*axis].is_reduced && !n->write.is_flat && dim < n->write.rank &&
            is_axis(n, &n->write.at[dim], *axis))
            break;
    if (*axis == n->n_axes || (n->has_guard && mentions(&n->guard, *axis)))
        return false;
    for (uint32_t d = 0; d < n->write.rank; d++)
        if (d != dim && mentions(&n->write.at[d], *axis))
            return false;
    return true;
}

static bool cut_read(const oi_nest *n, const oi_nest_ref *r, uint32_t axis, oi_cut *out)
{
    uint32_t cut = OI_CUT_NONE;
    for (uint32_t d = 0; d < (r->is_flat || r->is_position ? 1 : r->rank); d++) {
        if (!mentions(&r->at[d], axis))
            continue;
        /* a fault names an element of the index by its number, which parts would change */
        if (cut != OI_CUT_NONE || r->is_flat || r->is_position || r->name == OI_NEST_NONE ||
            !is_axis(n, &r->at[d], axis))
            return false;
        cut = d;
    }
    if (r->is_position)
        return true;
    if (r->is_output || (out->dims[r->operand] != OI_CUT_NONE && out->dims[r->operand] != cut))
        return false;
    out->dims[r->operand] = cut;
    return true;
}

/* All nests of an op cut its inputs alike. */
static bool cut_nests(const oi_kernel_query *q, uint32_t dim, oi_cut *out)
{
    const size_t n_nests = oi_nest_count(q);
    for (size_t k = 0; k < n_nests; k++) {
        oi_nest n;
        uint32_t axis;
        oi_cut first = *out;
        oi_nest_make(q, k, &n);
        if (n.is_serial || n.is_scan || n.finds_element || !find_axis(&n, dim, &axis))
            return false;
        for (uint32_t i = 0; i < n.n_reads; i++)
            if (!cut_read(&n, &n.reads[i], axis, out))
                return false;
        if (k > 0 && memcmp(&first, out, sizeof first) != 0)
            return false;
    }
    return n_nests > 0;
}

/* -- composites that are one product -- */

/* Input i has one element per place of the axis: a bias, a scale. */
static void cut_vector(const oi_kernel_query *q, size_t i, oi_cut *out)
{
    if (i < q->n_in && q->in[i].rank == 1 && q->in[i].dims[0] == out->extent)
        out->dims[i] = 0;
}

static bool cut_qlinear(const oi_kernel_query *q, uint32_t dim, oi_cut *out)
{
    if (dim + 1 != q->out[0].rank)
        return false;
    out->dims[1] = 0;
    for (size_t i = 2; i < q->n_in; i++)
        if (q->in[i].dims[0] == out->extent) /* else one row that serves all */
            out->dims[i] = 0;
    return true;
}

static bool cut_gemm(const oi_kernel_query *q, uint32_t dim, oi_cut *out)
{
    const bool trans_a = oi_kernel_attr(q, "trans_a")->b, trans_b = oi_kernel_attr(q, "trans_b")->b;
    if (dim > 1 || q->out[0].rank != 2)
        return false;
    out->dims[dim] = dim == 0 ? trans_a : !trans_b;
    if (q->n_in > 2 && q->in[2].rank + dim >= 2) {
        const uint32_t d = q->in[2].rank + dim - 2;
        out->dims[2] = q->in[2].dims[d] == out->extent ? d : OI_CUT_NONE;
    }
    return true;
}

/* Columns of b, the second matrix, which is input i. */
static bool cut_columns(const oi_kernel_query *q, uint32_t dim, size_t i, oi_cut *out)
{
    if (dim + 1 != q->out[0].rank || q->in[0].rank < 2 || q->in[i].rank < 2)
        return false;
    out->dims[i] = q->in[i].rank - 1;
    return true;
}

/* Filters, which are input i. */
static bool cut_filters(const oi_kernel_query *q, uint32_t dim, size_t i, oi_cut *out)
{
    if (dim != 1 || oi_kernel_attr(q, "group")->i != 1)
        return false;
    out->dims[i] = 0;
    return true;
}

static bool cut_product(const oi_kernel_query *q, uint32_t dim, oi_cut *out)
{
    switch (q->op->id) {
    case OI_OP_QLINEAR: return cut_qlinear(q, dim, out);
    case OI_OP_GEMM: return cut_gemm(q, dim, out);
    case OI_OP_MATMUL_INTEGER: cut_vector(q, 3, out); return cut_columns(q, dim, 1, out);
    case OI_OP_CONV_INTEGER: cut_vector(q, 3, out); return cut_filters(q, dim, 1, out);
    case OI_OP_QMATMUL:
        cut_vector(q, 4, out);
        cut_vector(q, 5, out);
        return cut_columns(q, dim, 3, out);
    case OI_OP_QCONV:
        cut_vector(q, 4, out);
        cut_vector(q, 5, out);
        cut_vector(q, 8, out);
        return cut_filters(q, dim, 3, out);
    default: return false;
    }
}

/* -- the whole -- */

bool oi_kernel_cut(const oi_kernel_query *q, uint32_t axis, oi_cut *out)
{
    if (q->n_out != 1 || q->n_in > OI_KERNEL_PORTS || axis >= q->out[0].rank ||
        q->out[0].dims[axis] < 2)
        return false;
    *out = (oi_cut){.axis = axis, .extent = q->out[0].dims[axis]};
    for (size_t i = 0; i < q->n_in; i++)
        out->dims[i] = OI_CUT_NONE;
    if (!(q->op->n_bodies ? cut_product(q, axis, out)
                          : has_free_sizes(q) && cut_nests(q, axis, out)))
        return false;
    for (size_t i = 0; i < q->n_in; i++)
        if (out->dims[i] != OI_CUT_NONE && q->in[i].dims[out->dims[i]] != out->extent)
            return false;
    return true;
}
