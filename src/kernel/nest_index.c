/* nest_index.c: ops whose places are turned round, found in data, or counted, as loops. */
#include "kernel/nest.h"

static bool has_axis(const int64_t *axes, size_t n, uint32_t axis, uint32_t rank)
{
    for (size_t i = 0; i < n; i++)
        if (axes[i] == axis || axes[i] + rank == axis)
            return true;
    return false;
}

static oi_nest_ref *copy_to_output(const oi_kernel_query *q, oi_nest *n)
{
    n->kind = OI_NEST_MAP;
    n->is_copy = true;
    oi_nest_over_output(n, q, 0);
    return oi_nest_add_read(n, q, 0);
}

/* -- turned round -- */

void oi_nest_reverse(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    const int64_t *axes;
    size_t n_axes = oi_kernel_ints(q, "axes", &axes);
    oi_nest_ref *r = copy_to_output(q, n);
    for (uint32_t d = 0; d < r->rank; d++) {
        bool turns = !axes || has_axis(axes, n_axes, d, r->rank);
        r->at[d].base = turns ? q->in[0].dims[d] - 1 : 0;
        r->at[d].step[d] = turns ? -1 : 1;
    }
}

/* The place that an element of an axis of `length` comes from, within the axis or before it. */
static void set_roll(oi_nest_coord *c, int64_t shift, int64_t length)
{
    if (length == 0)
        return;
    c->base -= shift % length;
    c->base %= length;
    c->bend = OI_BEND_WRAP;
    c->bend_to = length;
}

void oi_nest_roll(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    const oi_operand *x = &q->in[0];
    const int64_t *axes, *shifts;
    oi_kernel_ints(q, "shifts", &shifts);
    size_t n_axes = oi_kernel_ints(q, "axes", &axes);
    if (!axes) {
        oi_nest_reshape(q, i, n);
        set_roll(&n->reads[0].at[0], shifts[0], oi_operand_count(x));
        return;
    }
    oi_nest_ref *r = copy_to_output(q, n);
    for (uint32_t d = 0; d < r->rank; d++) {
        r->at[d].step[d] = 1;
        for (size_t k = 0; k < n_axes; k++)
            if (axes[k] == d || axes[k] + r->rank == d)
                set_roll(&r->at[d], shifts[k], x->dims[d]);
    }
}

/* [N, C, H, W] of both sides: `deep` has the channels, `wide` the blocks. */
static void set_blocks(const oi_kernel_query *q, oi_nest *n, oi_nest_ref *deep, oi_nest_ref *wide,
                       const int64_t *dims)
{
    int64_t block = oi_kernel_attr(q, "block")->i, channels = dims[1] / (block * block);
    bool outer_block = strcmp(oi_kernel_attr(q, "mode")->s, "DCR") == 0;
    uint32_t a[6];
    const int64_t extents[6] = {dims[0], channels, dims[2], block, dims[3], block};
    for (int k = 0; k < 6; k++)
        a[k] = oi_nest_add_axis(n, extents[k], false);
    deep->at[0].step[a[0]] = wide->at[0].step[a[0]] = 1;
    deep->at[1].step[a[1]] = outer_block ? 1 : block * block;
    deep->at[1].step[a[3]] = outer_block ? block * channels : block;
    deep->at[1].step[a[5]] = outer_block ? channels : 1;
    deep->at[2].step[a[2]] = deep->at[3].step[a[4]] = 1;
    wide->at[1].step[a[1]] = 1;
    wide->at[2].step[a[2]] = wide->at[3].step[a[4]] = block;
    wide->at[2].step[a[3]] = wide->at[3].step[a[5]] = 1;
}

void oi_nest_depth_to_space(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    n->kind = OI_NEST_MAP;
    n->is_copy = true;
    oi_nest_ref *w = oi_nest_set_write(n, q, 0);
    set_blocks(q, n, oi_nest_add_read(n, q, 0), w, q->in[0].dims);
}

void oi_nest_space_to_depth(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    n->kind = OI_NEST_MAP;
    n->is_copy = true;
    oi_nest_ref *w = oi_nest_set_write(n, q, 0);
    set_blocks(q, n, w, oi_nest_add_read(n, q, 0), q->out[0].dims);
}

void oi_nest_trilu(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    oi_nest_ref *r = copy_to_output(q, n);
    int64_t k = oi_kernel_attr(q, "k")->i;
    int sign = oi_kernel_attr(q, "upper")->b ? 1 : -1;
    for (uint32_t d = 0; d < r->rank; d++)
        r->at[d].step[d] = 1;
    /* a diagonal beyond the matrix is as good as the first outside */
    int64_t far = r->rank ? q->in[0].dims[r->rank - 1] + q->in[0].dims[r->rank - 2] + 1 : 0;
    k = k > far ? far : k < -far ? -far : k;
    n->has_guard = true;
    n->guard = (oi_nest_coord){.base = -k * sign, .index = OI_NEST_NONE};
    n->guard.step[r->rank - 1] = sign;
    n->guard.step[r->rank - 2] = -sign;
    n->leave = OI_LEAVE_FILL;
    n->fill = (oi_op_value){.tag = OI_VALUE_INT};
}

/* -- found in data -- */

static oi_nest_ref *add_index(oi_nest *n, const oi_kernel_query *q)
{
    oi_nest_ref *by = oi_nest_add_read(n, q, 1);
    by->name = OI_NEST_NONE;
    return by;
}

void oi_nest_gather_elements(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    oi_nest_ref *r = copy_to_output(q, n), *by = add_index(n, q);
    uint32_t axis = oi_kernel_axis(q, r->rank);
    for (uint32_t d = 0; d < r->rank; d++) {
        by->at[d].step[d] = 1;
        if (d == axis)
            r->at[d].index = 1;
        else
            r->at[d].step[d] = 1;
    }
}

/* The coordinates of `r` by the tuples of idx, after `batch` axes of its own; what the tuples leave
 * runs over the axes after those of idx. */
static void set_tuples(oi_nest_ref *r, oi_nest_ref *by, const oi_operand *idx, uint32_t batch)
{
    uint32_t tuple = (uint32_t)idx->dims[idx->rank - 1], after = idx->rank - 1;
    for (uint32_t d = 0; d + 1 < idx->rank; d++)
        by->at[d].step[d] = 1;
    for (uint32_t d = 0; d < r->rank; d++) {
        if (d < batch) {
            r->at[d].step[d] = 1;
        } else if (d < batch + tuple) {
            r->at[d].index = 1;
            r->at[d].index_last = d - batch;
        } else {
            r->at[d].step[after++] = 1;
        }
    }
}

void oi_nest_gather_nd(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    oi_nest_ref *r = copy_to_output(q, n), *by = add_index(n, q);
    set_tuples(r, by, &q->in[1], (uint32_t)oi_kernel_attr(q, "batch_dims")->i);
}

size_t oi_nest_two(const oi_kernel_query *q)
{
    (void)q;
    return 2;
}

/* The first nest of a scatter: data as it is. */
static void copy_data(const oi_kernel_query *q, oi_nest *n)
{
    oi_nest_ref *r = copy_to_output(q, n);
    for (uint32_t d = 0; d < r->rank; d++)
        r->at[d].step[d] = 1;
}

/* The second: in order over the updates. */
static void over_updates(const oi_kernel_query *q, oi_nest *n)
{
    const oi_operand *updates = &q->in[2];
    bool combines = strcmp(oi_kernel_attr(q, "reduction")->s, "none") != 0;
    n->kind = OI_NEST_MAP;
    n->is_copy = !combines;
    n->combines_out = combines;
    n->is_serial = true;
    oi_nest_ref *r = oi_nest_add_read(n, q, 2);
    r->name = 0;
    oi_nest_set_write(n, q, 0);
    for (uint32_t d = 0; d < updates->rank; d++)
        r->at[d].step[oi_nest_add_axis(n, updates->dims[d], false)] = 1;
}

void oi_nest_scatter(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    if (i == 0) {
        copy_data(q, n);
        return;
    }
    over_updates(q, n);
    oi_nest_ref *by = add_index(n, q);
    uint32_t axis = oi_kernel_axis(q, n->write.rank);
    for (uint32_t d = 0; d < n->write.rank; d++) {
        by->at[d].step[d] = 1;
        if (d == axis)
            n->write.at[d].index = 1;
        else
            n->write.at[d].step[d] = 1;
    }
}

void oi_nest_scatter_nd(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    if (i == 0) {
        copy_data(q, n);
        return;
    }
    over_updates(q, n);
    set_tuples(&n->write, add_index(n, q), &q->in[1], 0);
}

void oi_nest_one_hot(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    n->kind = OI_NEST_MAP;
    n->is_copy = true;
    n->fill = *oi_kernel_attr(q, i == 0 ? "off" : "on");
    if (i == 0) {
        oi_nest_over_output(n, q, 0);
        return;
    }
    const oi_operand *idx = &q->in[0];
    oi_nest_ref *by = oi_nest_add_read(n, q, 0), *w = oi_nest_set_write(n, q, 0);
    uint32_t axis = oi_kernel_axis(q, w->rank), a = 0;
    by->name = OI_NEST_NONE;
    n->leave = OI_LEAVE_SKIP;
    for (uint32_t d = 0; d < w->rank; d++) {
        if (d == axis) {
            w->at[d].index = 0;
            w->at[d].may_leave = true;
            continue;
        }
        oi_nest_add_axis(n, idx->dims[a], false);
        w->at[d].step[a] = by->at[a].step[a] = 1;
        a++;
    }
}

/* -- in order -- */

void oi_nest_scan(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    const oi_operand *x = &q->in[0];
    uint32_t axis = oi_kernel_axis(q, x->rank), a;
    bool turns = oi_kernel_attr(q, "reverse")->b;
    n->kind = OI_NEST_REDUCE;
    n->is_scan = true;
    n->excludes = oi_kernel_attr(q, "exclusive")->b;
    oi_nest_ref *r = oi_nest_add_read(n, q, 0), *w = oi_nest_set_write(n, q, 0);
    for (uint32_t d = 0; d < x->rank; d++) {
        if (d == axis)
            continue;
        a = oi_nest_add_axis(n, x->dims[d], false);
        r->at[d].step[a] = w->at[d].step[a] = 1;
    }
    a = oi_nest_add_axis(n, x->dims[axis], true);
    r->at[axis].base = w->at[axis].base = turns ? x->dims[axis] - 1 : 0;
    r->at[axis].step[a] = w->at[axis].step[a] = turns ? -1 : 1;
    n->acc = oi_kernel_reduces_in(q);
}

/* -- counted -- */

void oi_nest_count_up(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    n->kind = OI_NEST_MAP;
    n->acc = q->out[0].dtype;
    oi_nest_over_output(n, q, 0);
    oi_nest_ref *r = &n->reads[n->n_reads++];
    *r = (oi_nest_ref){.is_position = true, .rank = 1};
    r->at[0].index = OI_NEST_NONE;
    r->at[0].step[oi_kernel_attr(q, "axis") ? oi_kernel_axis(q, n->n_axes) : 0] = 1;
}

size_t oi_nest_per_axis(const oi_kernel_query *q)
{
    return q->in[0].rank;
}

void oi_nest_shape_of(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    n->kind = OI_NEST_MAP;
    n->is_copy = true;
    n->fill = (oi_op_value){.tag = OI_VALUE_INT, .i = q->in[0].dims[i]};
    oi_nest_set_write(n, q, 0)->at[0].base = (int64_t)i;
}

void oi_nest_size_of(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    n->kind = OI_NEST_MAP;
    n->is_copy = true;
    n->fill = (oi_op_value){.tag = OI_VALUE_INT, .i = oi_operand_count(&q->in[0])};
    oi_nest_set_write(n, q, 0);
}
