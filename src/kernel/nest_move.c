/* nest_move.c: ops that move elements as loops: views, repeats, joins and cuts. */
#include "kernel/nest.h"

size_t oi_kernel_ints(const oi_kernel_query *q, const char *name, const int64_t **out)
{
    const oi_op_value *v = oi_kernel_attr(q, name);
    *out = NULL;
    if (!v || (v->tag != OI_VALUE_INT && v->tag != OI_VALUE_INT_LIST))
        return 0;
    *out = v->tag == OI_VALUE_INT ? &v->i : v->ints;
    return v->tag == OI_VALUE_INT ? 1 : v->n;
}

uint32_t oi_kernel_axis(const oi_kernel_query *q, uint32_t rank)
{
    int64_t axis = oi_kernel_attr(q, "axis")->i;
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

/* The place of an axis in the list of the call's, or -1. */
static int64_t found_at(const int64_t *axes, size_t n, uint32_t axis, uint32_t rank)
{
    for (size_t i = 0; i < n; i++)
        if (axes[i] == axis || axes[i] + rank == axis)
            return (int64_t)i;
    return -1;
}

static void be_copy(oi_nest *n)
{
    n->kind = OI_NEST_MAP;
    n->is_copy = true;
}

/* One axis per dim of the output, and a read of input 0 whose coordinates are to be set. */
static oi_nest_ref *copy_to_output(const oi_kernel_query *q, oi_nest *n)
{
    be_copy(n);
    oi_nest_over_output(n, q, 0);
    return oi_nest_add_read(n, q, 0);
}

static void be_flat(oi_nest_ref *r)
{
    r->is_flat = true;
    r->rank = 1;
    r->at[0] = (oi_nest_coord){.index = OI_NEST_NONE};
}

void oi_nest_reshape(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    int64_t count = 1;
    for (uint32_t d = 0; d < q->out[0].rank; d++)
        count *= q->out[0].dims[d];
    be_copy(n);
    uint32_t a = oi_nest_add_axis(n, count, false);
    oi_nest_ref *w = oi_nest_set_write(n, q, 0), *r = oi_nest_add_read(n, q, 0);
    be_flat(w);
    be_flat(r);
    w->at[0].step[a] = r->at[0].step[a] = 1;
}

void oi_nest_transpose(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    oi_nest_ref *r = copy_to_output(q, n);
    const int64_t *perm;
    bool given = oi_kernel_ints(q, "perm", &perm) > 0;
    for (uint32_t d = 0; d < r->rank; d++) {
        int64_t from = given ? perm[d] : (int64_t)r->rank - 1 - d;
        r->at[from < 0 ? from + r->rank : from].step[d] = 1;
    }
}

void oi_nest_expand(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    uint32_t axes[OI_NEST_AXES];
    oi_nest_ref *r = copy_to_output(q, n);
    for (uint32_t a = 0; a < n->n_axes; a++)
        axes[a] = a;
    oi_nest_broadcast(r, &q->in[0], axes, n->n_axes);
}

void oi_nest_tile(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    const oi_operand *x = &q->in[0];
    be_copy(n);
    oi_nest_ref *w = oi_nest_set_write(n, q, 0), *r = oi_nest_add_read(n, q, 0);
    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t times = x->dims[d] ? q->out[0].dims[d] / x->dims[d] : 0;
        uint32_t outer = oi_nest_add_axis(n, times, false),
                 inner = oi_nest_add_axis(n, x->dims[d], false);
        w->at[d].step[outer] = x->dims[d];
        w->at[d].step[inner] = r->at[d].step[inner] = 1;
    }
}

size_t oi_nest_per_input(const oi_kernel_query *q)
{
    return q->n_in;
}

void oi_nest_concat(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    const oi_operand *x = &q->in[i];
    uint32_t axis = oi_kernel_axis(q, x->rank);
    be_copy(n);
    oi_nest_ref *w = oi_nest_set_write(n, q, 0), *r = oi_nest_add_read(n, q, (uint32_t)i);
    r->name = 0;
    for (uint32_t d = 0; d < x->rank; d++)
        w->at[d].step[oi_nest_add_axis(n, x->dims[d], false)] = r->at[d].step[d] = 1;
    for (size_t k = 0; k < i; k++)
        w->at[axis].base += q->in[k].dims[axis];
}

size_t oi_nest_per_output(const oi_kernel_query *q)
{
    return q->n_out;
}

void oi_nest_split(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    uint32_t axis = oi_kernel_axis(q, q->in[0].rank);
    be_copy(n);
    oi_nest_over_output(n, q, (uint32_t)i);
    oi_nest_ref *r = oi_nest_add_read(n, q, 0);
    for (uint32_t d = 0; d < r->rank; d++)
        r->at[d].step[d] = 1;
    for (size_t k = 0; k < i; k++)
        r->at[axis].base += q->out[k].dims[axis];
}

void oi_nest_slice(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    const oi_operand *x = &q->in[0];
    const int64_t *starts, *axes, *steps;
    size_t n_starts = oi_kernel_ints(q, "starts", &starts);
    size_t n_axes = oi_kernel_ints(q, "axes", &axes);
    oi_kernel_ints(q, "steps", &steps);
    oi_nest_ref *r = copy_to_output(q, n);
    for (uint32_t d = 0; d < r->rank; d++) {
        int64_t k = n_axes ? found_at(axes, n_axes, d, x->rank) : d < n_starts ? (int64_t)d : -1;
        int64_t step = k >= 0 && steps ? steps[k] : 1;
        /* a step beyond the axis is never taken */
        r->at[d].step[d] = step > x->dims[d] ? x->dims[d] : step < -x->dims[d] ? -x->dims[d] : step;
        if (k >= 0)
            r->at[d].base = oi_slice_start(x->dims[d], starts[k], step);
    }
}

static oi_nest_bend bend_of(const char *mode)
{
    return strcmp(mode, "reflect") == 0 ? OI_BEND_REFLECT
           : strcmp(mode, "edge") == 0  ? OI_BEND_EDGE
           : strcmp(mode, "wrap") == 0  ? OI_BEND_WRAP
                                        : OI_BEND_NONE;
}

void oi_nest_pad(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    const oi_operand *x = &q->in[0];
    const int64_t *pads;
    oi_kernel_ints(q, "pads", &pads);
    oi_nest_bend bend = bend_of(oi_kernel_attr(q, "mode")->s);
    oi_nest_ref *r = copy_to_output(q, n);
    n->leave = bend ? OI_LEAVE_NEVER : OI_LEAVE_FILL;
    n->fill = *oi_kernel_attr(q, "value");
    for (uint32_t d = 0; d < r->rank; d++) {
        oi_nest_coord *c = &r->at[d];
        int64_t end = pads[x->rank + d];
        c->base = -pads[d];
        c->step[d] = 1;
        c->bend = bend;
        c->bend_from = pads[d] < 0 ? -pads[d] : 0; /* what is cut is gone before padding */
        c->bend_to = x->dims[d] + (end < 0 ? end : 0);
        c->may_leave = !bend;
    }
}
