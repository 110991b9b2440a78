/* shapes_index.c: shape rules of ops whose places are turned round, found in data, or counted. */
#include "program/program.h"

#include <inttypes.h>
#include <math.h>

/* Every axis that an attribute names is there. */
static bool axes_exist(const oi_call *c, const char *name)
{
    const oi_attr_arg *arg = oi_call_arg(c, name);
    uint32_t axis;
    int64_t one;
    if (arg && arg->known) {
        const oi_op_value *v = &arg->value;
        size_t n = v->tag == OI_VALUE_INT_LIST ? v->n : 1;
        for (size_t i = 0; i < n; i++)
            if (!oi_shape_axis(c, arg, v->tag == OI_VALUE_INT_LIST ? v->ints[i] : v->i, &axis))
                return false;
    }
    return arg || !oi_call_int(c, name, &one) || oi_shape_axis(c, NULL, one, &axis);
}

bool oi_shape_along_axes(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    out->type = c->in[0];
    const oi_attr_arg *shifts = oi_call_arg(c, "shifts"), *axes = oi_call_arg(c, "axes");
    if (shifts && shifts->known && (!axes || axes->known)) {
        size_t n = shifts->value.tag == OI_VALUE_INT ? 1 : shifts->value.n;
        size_t m = !axes ? 1 : axes->value.tag == OI_VALUE_INT ? 1 : axes->value.n;
        if (n != m)
            return oi_shape_fail_attr(c, "shifts", "wants one shift per axis for ", &c->in[0]);
    }
    return axes_exist(c, "axis") && axes_exist(c, "axes");
}

bool oi_shape_same_bits(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_attr_arg *to = oi_call_arg(c, "to");
    if (to && oi_dtype_bits(to->value.dtype) != oi_dtype_bits(c->in[0].dtype))
        return oi_shape_fail_attr(c, "to", "is not as wide as the elements of ", &c->in[0]);
    out->type = c->in[0];
    return true;
}

bool oi_shape_matrix(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    out->type = c->in[0];
    return c->in[0].rank >= 2 ||
           oi_shape_fail_one(c, 0, "wants two axes at least, found ", &c->in[0]);
}

/* -- blocks -- */

static bool blocks(const oi_call *c, bool deepens, oi_shape *out)
{
    const oi_type *x = &c->in[0];
    int64_t block, whole;
    if (x->rank != 4)
        return oi_shape_fail_one(c, 0, "wants shape [N, C, H, W], found ", x);
    out->type = *x;
    if (!oi_call_int(c, "block", &block)) {
        for (uint32_t i = 1; i < 4; i++)
            out->type.dims[i] = (oi_dim){0};
        return true;
    }
    if (__builtin_mul_overflow(block, block, &whole))
        return oi_shape_fail_attr(c, "block", "the blocks are too large for ", x);
    for (uint32_t i = 1; i < 4; i++) {
        oi_dim *d = &out->type.dims[i];
        bool grows = (i == 1) == deepens;
        int64_t by = i == 1 ? whole : block, v = d->value;
        if (!d->known) {
            *d = (oi_dim){0};
            continue;
        }
        if (grows ? __builtin_mul_overflow(v, by, &v) : v % by != 0)
            return oi_shape_fail_attr(c, "block", "the blocks do not fit ", x);
        *d = oi_dim_of(grows ? v : v / by);
    }
    return true;
}

bool oi_shape_depth_to_space(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    return blocks(c, false, out);
}

bool oi_shape_space_to_depth(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    return blocks(c, true, out);
}

/* -- indices -- */

/* data and idx have the same axes; idx is nowhere longer but along the axis. */
static bool same_axes(const oi_call *c)
{
    const oi_type *data = &c->in[0], *idx = &c->in[1];
    int64_t given;
    uint32_t axis = 0;
    bool known = oi_call_int(c, "axis", &given), fits = data->rank == idx->rank;
    if (data->rank == 0)
        return oi_shape_fail_one(c, 0, "nothing to choose from in ", data);
    if (known && !oi_shape_axis(c, oi_call_arg(c, "axis"), given, &axis))
        return false;
    for (uint32_t i = 0; known && fits && i < data->rank; i++)
        fits = i == axis || !data->dims[i].known || !idx->dims[i].known ||
               idx->dims[i].value <= data->dims[i].value;
    return fits || oi_shape_fail_pair(c, 1, 0, "idx does not fit the data: ", data, " and ", idx);
}

bool oi_shape_gather_elements(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    out->type = c->in[1];
    return same_axes(c);
}

static bool may_combine(const oi_call *c)
{
    const oi_attr_arg *arg = oi_call_arg(c, "reduction");
    oi_dtype t = c->in[0].dtype;
    if (!arg || !arg->known || strcmp(arg->value.s, "none") == 0 || oi_dtype_is_float(t) ||
        oi_dtype_is_integer(t))
        return true;
    return oi_call_fail(c, "E060", OI_AT_ATTR, (size_t)(arg - c->attrs),
                        "%s cannot be combined by \"%s\"", oi_dtype_name(t), arg->value.s);
}

bool oi_shape_scatter(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    out->type = c->in[0];
    if (oi_dims_equal(&c->in[1], &c->in[2]) == OI_DIFFERENT)
        return oi_shape_fail_pair(c, 2, 1, "idx and updates differ in shape: ", &c->in[1], " and ",
                                  &c->in[2]);
    return same_axes(c) && may_combine(c);
}

/* The shape of what the tuples of idx select; open when their length is not known. */
static bool selected(const oi_call *c, int64_t batch, oi_shape *out)
{
    const oi_type *data = &c->in[0], *idx = &c->in[1];
    if (idx->rank == 0 || batch >= idx->rank || batch > data->rank)
        return oi_shape_fail_one(c, 1, "wants a last axis of coordinates, found ", idx);
    for (uint32_t i = 0; i < batch; i++)
        if (oi_dim_differ(data->dims[i], idx->dims[i]))
            return oi_shape_fail_pair(c, 1, 0, "the batch axes differ: ", data, " and ", idx);
    oi_dim tuple = idx->dims[idx->rank - 1];
    if (!tuple.known) {
        out->is_open = true;
        return true;
    }
    if (tuple.value > data->rank - batch)
        return oi_shape_fail_pair(c, 1, 0, "more coordinates than axes: ", data, " and ", idx);
    uint32_t rest = (uint32_t)(batch + tuple.value), rank = idx->rank - 1 + data->rank - rest;
    if (rank > OI_MAX_RANK)
        return oi_call_fail(c, "E051", OI_AT_INPUT, 1, "the result would have rank %u, at most %d",
                            rank, OI_MAX_RANK);
    oi_type *t = &out->type;
    for (uint32_t i = 0; i + 1 < idx->rank; i++)
        t->dims[t->rank++] = idx->dims[i];
    for (uint32_t i = rest; i < data->rank; i++)
        t->dims[t->rank++] = data->dims[i];
    return true;
}

bool oi_shape_gather_nd(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    int64_t batch;
    if (oi_call_int(c, "batch_dims", &batch))
        return selected(c, batch, out);
    out->is_open = true;
    return true;
}

bool oi_shape_scatter_nd(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    oi_shape want = {0};
    out->type = c->in[0];
    if (!selected(c, 0, &want))
        return false;
    if (!want.is_open && oi_dims_equal(&want.type, &c->in[2]) == OI_DIFFERENT)
        return oi_shape_fail_pair(c, 2, 1, "updates want shape ", &want.type, ", found ",
                                  &c->in[2]);
    return may_combine(c);
}

bool oi_shape_one_hot(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *idx = &c->in[0];
    int64_t axis, depth, rank = (int64_t)idx->rank + 1;
    out->type.rank = idx->rank + 1;
    if (rank > OI_MAX_RANK)
        return oi_shape_fail_attr(c, "depth", "too many axes for ", idx);
    if (!oi_call_int(c, "axis", &axis))
        return true;
    if (axis < -rank || axis >= rank)
        return oi_shape_fail_attr(c, "axis", "the new axis is out of range for ", idx);
    axis += axis < 0 ? rank : 0;
    for (uint32_t i = 0, from = 0; i < rank; i++)
        if (i != axis)
            out->type.dims[i] = idx->dims[from++];
        else if (oi_call_int(c, "depth", &depth))
            out->type.dims[i] = oi_dim_of(depth);
    return true;
}

/* -- counting -- */

static bool number_of(const oi_call *c, const char *name, double *out)
{
    const oi_attr_arg *arg = oi_call_arg(c, name);
    const oi_op_attr *attr = oi_op_attr_find(c->op, name);
    const oi_op_value *v = arg ? &arg->value : &attr->def;
    if (arg && !arg->known)
        return false;
    *out = v->tag == OI_VALUE_FLOAT  ? v->f
           : v->tag == OI_VALUE_UINT ? (double)v->u
           : v->tag == OI_VALUE_BOOL ? v->b
                                     : (double)v->i;
    return true;
}

/* All three are integers: exactly. False when they are not. */
static bool count_exactly(const oi_call *c, int64_t *n)
{
    int64_t start, limit, delta;
    if (!oi_call_int(c, "start", &start) || !oi_call_int(c, "limit", &limit) ||
        !oi_call_int(c, "delta", &delta) || delta == 0)
        return false;
    *n = 0;
    if (delta > 0 ? limit <= start : limit >= start)
        return true;
    uint64_t span =
        delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t each = delta > 0 ? (uint64_t)delta : -(uint64_t)delta, count = 1 + (span - 1) / each;
    *n = (int64_t)count;
    return count <= INT64_MAX;
}

bool oi_shape_range(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    double start, limit, delta;
    out->type.rank = 1;
    if (!number_of(c, "start", &start) || !number_of(c, "limit", &limit) ||
        !number_of(c, "delta", &delta))
        return true;
    int64_t exact;
    double n = count_exactly(c, &exact) ? (double)exact : ceil((limit - start) / delta);
    if (!(n < 0x1p53)) /* also NaN: from 0 by 0 to 0 */
        return oi_call_fail(c, "E053", OI_AT_OP, 0, "start, limit and delta give no length");
    out->type.dims[0] = oi_dim_of(n > 0 ? (int64_t)n : 0);
    return true;
}

bool oi_shape_shape_of(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    out->type.rank = 1;
    out->type.dims[0] = oi_dim_of(c->in[0].rank);
    return true;
}

bool oi_shape_scalar(const oi_call *c, size_t o, oi_shape *out)
{
    (void)c;
    (void)o;
    out->type.rank = 0;
    return true;
}
