/* nest_window.c: windows that slide (conv, pooling, im2col) and their transposes as loops.
 *
 * A window's place o and the element k in it read the input at o * stride + k * dilation - before.
 * The transposes know the input i and want o: where i = (o + before - k * dilation) / stride is
 * whole. With o and k taken apart by their remainders that is affine again, so that a transpose is
 * one nest per remainder ("phase") of o + before modulo the strides. */
#include "kernel/nest.h"

#define MAX_SPATIAL (OI_KERNEL_RANK - 2)

/* -- attributes -- */

static int64_t item(const oi_kernel_query *q, const char *name, size_t i, int64_t otherwise)
{
    const oi_op_value *v = oi_kernel_attr(q, name);
    if (!v || v->tag == OI_VALUE_NONE)
        return otherwise;
    if (v->tag == OI_VALUE_INT)
        return v->i;
    return i < v->n ? v->ints[i] : otherwise;
}

static oi_auto_pad auto_pad(const oi_kernel_query *q)
{
    const oi_op_value *v = oi_kernel_attr(q, "auto_pad");
    return v && v->tag == OI_VALUE_STRING ? oi_auto_pad_find(v->s) : OI_PAD_NOTSET;
}

static bool flag(const oi_kernel_query *q, const char *name)
{
    const oi_op_value *v = oi_kernel_attr(q, name);
    return v && v->tag == OI_VALUE_BOOL && v->b;
}

/* Spatial axis i of n, whose window is as long as `kernel`; `in` is what it slides over. */
static oi_window window(const oi_kernel_query *q, size_t i, size_t n, int64_t in, int64_t kernel)
{
    return (oi_window){.in = in,
                       .kernel = kernel,
                       .stride = item(q, "strides", i, 1),
                       .dilation = item(q, "dilations", i, 1),
                       .before = item(q, "pads", i, 0),
                       .after = item(q, "pads", n + i, 0)};
}

/* -- conv -- */

/* The channels: an axis for the groups, where there are several, and one within a group. Returns
 * the first; the second follows. */
static void add_channels(oi_nest *n, int64_t groups, int64_t channels, uint32_t *group,
                         uint32_t *within)
{
    *group = groups > 1 ? oi_nest_add_axis(n, groups, false) : OI_NEST_NONE;
    *within = oi_nest_add_axis(n, channels / groups, false);
}

static void set_channel(oi_nest_coord *c, uint32_t group, int64_t per_group, uint32_t within)
{
    if (group != OI_NEST_NONE)
        c->step[group] = per_group;
    c->step[within] = 1;
}

static void set_acc(oi_nest *n, const oi_kernel_query *q)
{
    oi_dtype acc = oi_kernel_accumulator(q);
    if (acc != OI_NONE)
        n->acc = acc;
}

static void add_bias(oi_nest *n, const oi_kernel_query *q, uint32_t group, int64_t per_group,
                     uint32_t within)
{
    if (q->n_in < 3)
        return;
    set_channel(&oi_nest_add_read(n, q, 2)->at[0], group, per_group, within);
    n->has_last = true;
}

void oi_nest_conv(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    const oi_operand *x = &q->in[0], *w = &q->in[1], *out = &q->out[0];
    uint32_t spatial = x->rank - 2, places[MAX_SPATIAL], group, m;
    int64_t groups = oi_kernel_attr(q, "group")->i, per_group = out->dims[1] / groups;
    n->kind = OI_NEST_CONTRACT;
    n->leave = OI_LEAVE_SKIP;
    uint32_t batch = oi_nest_add_axis(n, x->dims[0], false);
    add_channels(n, groups, out->dims[1], &group, &m);
    for (uint32_t d = 0; d < spatial; d++)
        places[d] = oi_nest_add_axis(n, out->dims[2 + d], false);
    uint32_t c = oi_nest_add_axis(n, w->dims[1], true);
    oi_nest_ref *rx = oi_nest_add_read(n, q, 0), *rw = oi_nest_add_read(n, q, 1);
    oi_nest_ref *ry = oi_nest_set_write(n, q, 0);
    rx->at[0].step[batch] = ry->at[0].step[batch] = 1;
    set_channel(&rx->at[1], group, w->dims[1], c);
    set_channel(&rw->at[0], group, per_group, m);
    set_channel(&ry->at[1], group, per_group, m);
    rw->at[1].step[c] = 1;
    for (uint32_t d = 0; d < spatial; d++) {
        oi_window v = window(q, d, spatial, x->dims[2 + d], w->dims[2 + d]);
        oi_window_slide(&v, auto_pad(q), false);
        uint32_t k = oi_nest_add_axis(n, v.kernel, true);
        rx->at[2 + d].base = -v.before;
        rx->at[2 + d].step[places[d]] = v.stride;
        rx->at[2 + d].step[k] = v.dilation;
        rx->at[2 + d].may_leave = v.before > 0 || v.after > 0;
        rw->at[2 + d].step[k] = 1;
        ry->at[2 + d].step[places[d]] = 1;
    }
    add_bias(n, q, group, per_group, m);
    set_acc(n, q);
}

/* -- pooling -- */

/* Positions are a nest of their own. */
size_t oi_nest_pool_count(const oi_kernel_query *q)
{
    return q->n_out;
}

void oi_nest_pool(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    const oi_operand *x = &q->in[0], *out = &q->out[i];
    uint32_t spatial = x->rank - 2, places[OI_KERNEL_RANK];
    bool is_global = !oi_kernel_attr(q, "kernel"), counts = flag(q, "count_include_pad");
    n->kind = OI_NEST_REDUCE;
    n->leave = OI_LEAVE_SKIP;
    n->finds_element = i == 1;
    oi_nest_ref *r = oi_nest_add_read(n, q, 0), *w = oi_nest_set_write(n, q, (uint32_t)i);
    for (uint32_t d = 0; d < x->rank; d++) {
        places[d] = oi_nest_add_axis(n, out->dims[d], false);
        w->at[d].step[places[d]] = 1;
        if (d < 2)
            r->at[d].step[places[d]] = 1;
    }
    for (uint32_t d = 0; d < spatial; d++) {
        oi_nest_coord *at = &r->at[2 + d];
        int64_t in = x->dims[2 + d];
        oi_window v = window(q, d, spatial, in, is_global ? in : item(q, "kernel", d, 1));
        if (!is_global)
            oi_window_slide(&v, auto_pad(q), flag(q, "ceil_mode"));
        at->base = -v.before;
        at->step[places[2 + d]] = v.stride;
        at->step[oi_nest_add_axis(n, v.kernel, true)] = v.dilation;
        at->may_leave = !is_global;
        at->counted_before = counts ? v.before : 0;
        at->counted_after = counts ? v.after : 0;
    }
    if (i == 0)
        n->acc = oi_kernel_reduces_in(q);
}

/* -- im2col: every window as a column -- */

void oi_nest_im2col(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    const oi_operand *x = &q->in[0];
    uint32_t spatial = x->rank - 2;
    int64_t inner = 1, rows = 1;
    n->kind = OI_NEST_MAP;
    n->leave = OI_LEAVE_FILL;
    n->fill = (oi_op_value){.tag = OI_VALUE_INT};
    n->is_copy = true;
    oi_nest_ref *r = oi_nest_add_read(n, q, 0), *w = oi_nest_set_write(n, q, 0);
    uint32_t batch = oi_nest_add_axis(n, x->dims[0], false);
    uint32_t channel = oi_nest_add_axis(n, x->dims[1], false);
    r->at[0].step[batch] = w->at[0].step[batch] = r->at[1].step[channel] = 1;
    uint32_t k = n->n_axes, o = n->n_axes + spatial;
    oi_window v[MAX_SPATIAL];
    int64_t places[MAX_SPATIAL];
    for (uint32_t d = 0; d < spatial; d++) {
        v[d] = window(q, d, spatial, x->dims[2 + d], item(q, "kernel", d, 1));
        places[d] = oi_window_slide(&v[d], OI_PAD_NOTSET, false);
        oi_nest_add_axis(n, v[d].kernel, false);
    }
    for (uint32_t d = 0; d < spatial; d++)
        oi_nest_add_axis(n, places[d], false);
    for (uint32_t d = spatial; d-- > 0;) {
        r->at[2 + d].base = -v[d].before;
        r->at[2 + d].step[k + d] = v[d].dilation;
        r->at[2 + d].step[o + d] = v[d].stride;
        r->at[2 + d].may_leave = true;
        w->at[1].step[k + d] = inner;
        w->at[2].step[o + d] = rows;
        inner *= v[d].kernel;
        rows *= places[d];
    }
    w->at[1].step[channel] = inner;
}

/* -- transposes -- */

typedef struct phase {
    int64_t first_o, n_o;         /* output places: first_o, first_o + stride ... */
    int64_t first_k, step_k, n_k; /* elements of the window over them */
    int64_t base, by_k;           /* input: base + (number of the place) - by_k * (number of k) */
} phase;

static int64_t divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static phase phase_of(const oi_window *v, int64_t out, int64_t r)
{
    phase p = {0};
    int64_t g = divisor(v->dilation, v->stride);
    p.step_k = v->stride / g;
    p.by_k = v->dilation / g;
    /* the first place with (o + before) % stride == r */
    p.first_o = ((r - v->before) % v->stride + v->stride) % v->stride;
    p.n_o = p.first_o < out ? (out - 1 - p.first_o) / v->stride + 1 : 0;
    while (p.first_k < p.step_k && p.first_k * v->dilation % v->stride != r)
        p.first_k++;
    if (p.first_k < p.step_k && p.first_k < v->kernel)
        p.n_k = (v->kernel - 1 - p.first_k) / p.step_k + 1;
    p.base = (p.first_o + v->before - p.first_k * v->dilation) / v->stride;
    return p;
}

/* What a transpose slides over is its output. */
static oi_window transposed(const oi_kernel_query *q, uint32_t d, uint32_t spatial)
{
    oi_window v = window(q, d, spatial, q->in[0].dims[2 + d], q->in[1].dims[2 + d]);
    const oi_op_value *shape = oi_kernel_attr(q, "output_shape");
    bool wanted = shape && shape->tag != OI_VALUE_NONE;
    oi_window_spread(&v, auto_pad(q), item(q, "output_padding", d, 0),
                     wanted ? item(q, "output_shape", d, -1) : -1);
    return v;
}

size_t oi_nest_phases(const oi_kernel_query *q)
{
    size_t n = 1;
    uint32_t spatial = q->out[0].rank - 2;
    for (uint32_t d = 0; d < spatial; d++)
        n *= (size_t)item(q, "strides", d, 1);
    return n;
}

/* Phase i of axis d: the remainders run like a number whose last digit is the last axis. */
static phase phase_at(const oi_kernel_query *q, size_t i, uint32_t d, uint32_t spatial)
{
    for (uint32_t e = spatial; e-- > d + 1;)
        i /= (size_t)item(q, "strides", e, 1);
    oi_window v = transposed(q, d, spatial);
    return phase_of(&v, q->out[0].dims[2 + d], (int64_t)(i % (size_t)v.stride));
}

void oi_nest_conv_transpose(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    const oi_operand *x = &q->in[0], *w = &q->in[1], *out = &q->out[0];
    uint32_t spatial = x->rank - 2, places[MAX_SPATIAL], group, m;
    int64_t groups = oi_kernel_attr(q, "group")->i, per_group = w->dims[1];
    n->kind = OI_NEST_CONTRACT;
    n->leave = OI_LEAVE_SKIP;
    uint32_t batch = oi_nest_add_axis(n, x->dims[0], false);
    add_channels(n, groups, out->dims[1], &group, &m);
    for (uint32_t d = 0; d < spatial; d++)
        places[d] = oi_nest_add_axis(n, phase_at(q, i, d, spatial).n_o, false);
    uint32_t c = oi_nest_add_axis(n, x->dims[1] / groups, true);
    oi_nest_ref *rx = oi_nest_add_read(n, q, 0), *rw = oi_nest_add_read(n, q, 1);
    oi_nest_ref *ry = oi_nest_set_write(n, q, 0);
    rx->at[0].step[batch] = ry->at[0].step[batch] = 1;
    set_channel(&rx->at[1], group, x->dims[1] / groups, c);
    set_channel(&rw->at[0], group, x->dims[1] / groups, c);
    set_channel(&ry->at[1], group, per_group, m);
    rw->at[1].step[m] = 1;
    for (uint32_t d = 0; d < spatial; d++) {
        phase p = phase_at(q, i, d, spatial);
        uint32_t k = oi_nest_add_axis(n, p.n_k, true);
        rx->at[2 + d].base = p.base;
        rx->at[2 + d].step[places[d]] = 1;
        rx->at[2 + d].step[k] = -p.by_k;
        rx->at[2 + d].may_leave = true;
        rw->at[2 + d].base = p.first_k;
        rw->at[2 + d].step[k] = p.step_k;
        ry->at[2 + d].base = p.first_o;
        ry->at[2 + d].step[places[d]] = item(q, "strides", d, 1);
    }
    add_bias(n, q, group, per_group, m);
    set_acc(n, q);
}
