/* shapes_signal.c: shape rules of ops on signals and images, and of those that sort. */
#include "program/program.h"

#include <inttypes.h>
#include <math.h>

/* An attribute that may be absent: a known size, an unknown one, or `otherwise`. */
static oi_dim size_attr(const oi_call *c, const char *name, oi_dim otherwise)
{
    int64_t v;
    if (oi_call_int(c, name, &v))
        return oi_dim_of(v);
    return oi_call_arg(c, name) ? (oi_dim){0} : otherwise;
}

bool oi_shape_topk(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0];
    int64_t given, k;
    uint32_t axis;
    out->type.rank = x->rank;
    if (!oi_call_int(c, "axis", &given))
        return true;
    if (!oi_shape_axis(c, oi_call_arg(c, "axis"), given, &axis))
        return false;
    out->type = *x;
    oi_dim *d = &out->type.dims[axis];
    if (!oi_call_int(c, "k", &k)) {
        *d = (oi_dim){0};
        return true;
    }
    if (d->known && k > d->value)
        return oi_shape_fail_attr(c, "k", "k is more than there are in ", x);
    *d = oi_dim_of(k);
    return true;
}

bool oi_shape_nonzero(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    out->type.rank = 2; /* the second is what the data says */
    out->type.dims[0] = oi_dim_of(c->in[0].rank);
    return true;
}

bool oi_shape_unique(const oi_call *c, size_t o, oi_shape *out)
{
    oi_dim all = oi_dim_of(1);
    for (uint32_t i = 0; i < c->in[0].rank; i++) {
        oi_dim d = c->in[0].dims[i];
        int64_t v;
        if (all.known && d.known && __builtin_mul_overflow(all.value, d.value, &v))
            return oi_call_fail(c, "E051", OI_AT_OP, 0, "the result is too large");
        all = all.known && d.known ? oi_dim_of(v) : (oi_dim){0};
    }
    out->type.rank = 1;
    if (o == 2) /* one per element; the others are as long as the data says */
        out->type.dims[0] = all;
    return true;
}

/* -- images -- */

/* Scale i of the list, which may be of integers, or one number. */
static double scale_at(const oi_op_value *v, size_t i)
{
    switch (v->tag) {
    case OI_VALUE_FLOAT_LIST: return v->floats[i];
    case OI_VALUE_INT_LIST: return (double)v->ints[i];
    case OI_VALUE_FLOAT: return v->f;
    case OI_VALUE_UINT: return (double)v->u;
    default: return (double)v->i;
    }
}

static size_t items(const oi_op_value *v)
{
    return v->tag == OI_VALUE_FLOAT_LIST || v->tag == OI_VALUE_INT_LIST ? v->n : 1;
}

static bool scaled(const oi_call *c, const oi_op_value *v, oi_type *out)
{
    const oi_type *x = &c->in[0];
    if (items(v) != x->rank)
        return oi_shape_fail_attr(c, "scales", "wants one scale per axis of ", x);
    for (uint32_t i = 0; i < x->rank; i++) {
        double scale = scale_at(v, i), n = floor((double)x->dims[i].value * scale);
        if (!(scale > 0) || (x->dims[i].known && !(n < 0x1p53)))
            return oi_shape_fail_attr(c, "scales", "a scale is not above 0, or too large for ", x);
        out->dims[i] = !x->dims[i].known ? (oi_dim){0} : oi_dim_of((int64_t)n);
        out->dims[i] = scale == 1 ? x->dims[i] : out->dims[i];
    }
    return true;
}

static bool can_resize(const oi_call *c, const oi_type *out)
{
    const oi_attr_arg *mode = oi_call_arg(c, "mode");
    const oi_type *x = &c->in[0];
    if (mode && mode->known && strcmp(mode->value.s, "nearest") != 0 &&
        !oi_dtype_is_float(x->dtype))
        return oi_call_fail(c, "E060", OI_AT_ATTR, (size_t)(mode - c->attrs),
                            "\"%s\" does not take %s (takes F)", mode->value.s,
                            oi_dtype_name(x->dtype));
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->dims[i].known && x->dims[i].value == 0 && out->dims[i].known && out->dims[i].value)
            return oi_shape_fail_one(c, 0, "nothing to resize in ", x);
    return true;
}

bool oi_shape_resize(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0];
    const oi_attr_arg *scales = oi_call_arg(c, "scales"), *sizes = oi_call_arg(c, "sizes");
    out->type.rank = x->rank;
    if (!scales == !sizes)
        return oi_call_fail(c, "E053", OI_AT_OP, 0, "wants 'scales' or 'sizes'");
    if (!(scales ? scales : sizes)->known)
        return true;
    if (scales)
        return scaled(c, &scales->value, &out->type) && can_resize(c, &out->type);
    if (items(&sizes->value) != x->rank)
        return oi_shape_fail_attr(c, "sizes", "wants one size per axis of ", x);
    for (uint32_t i = 0; i < x->rank; i++)
        out->type.dims[i] =
            oi_dim_of(sizes->value.tag == OI_VALUE_INT ? sizes->value.i : sizes->value.ints[i]);
    return can_resize(c, &out->type);
}

bool oi_shape_grid_sample(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0], *grid = &c->in[1];
    if (x->rank < 3 || x->rank > 5)
        return oi_shape_fail_one(c, 0, "wants one to three spatial axes, found ", x);
    if (grid->rank != x->rank || oi_dim_differ(grid->dims[0], x->dims[0]) ||
        oi_dim_differ(grid->dims[grid->rank - 1], oi_dim_of(x->rank - 2)))
        return oi_shape_fail_pair(c, 1, 0, "the grid does not fit: ", x, " and ", grid);
    out->type = *x;
    for (uint32_t i = 2; i < x->rank; i++) {
        out->type.dims[i] = grid->dims[i - 1];
        if (x->dims[i].known && x->dims[i].value == 0)
            return oi_shape_fail_one(c, 0, "nothing to sample in ", x);
    }
    return true;
}

/* -- signals -- */

static oi_dim one_side(oi_dim n)
{
    return n.known ? oi_dim_of(n.value / 2 + 1) : (oi_dim){0};
}

bool oi_shape_dft(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0];
    int64_t given;
    uint32_t axis;
    bool inverse = false, onesided = false;
    out->type.rank = x->rank;
    if (x->rank < 2)
        return oi_shape_fail_one(c, 0, "wants an axis of 1 or 2 after the signal's, found ", x);
    oi_dim parts = x->dims[x->rank - 1];
    if (parts.known && parts.value != 1 && parts.value != 2)
        return oi_shape_fail_one(c, 0, "the last axis is 1 (real) or 2 (complex) long, found ", x);
    if (!oi_call_int(c, "axis", &given) || !oi_call_bool(c, "inverse", &inverse) ||
        !oi_call_bool(c, "onesided", &onesided))
        return true;
    if (!oi_shape_axis(c, oi_call_arg(c, "axis"), given, &axis))
        return false;
    if (axis == x->rank - 1)
        return oi_shape_fail_attr(c, "axis", "the last axis holds the parts of a number in ", x);
    if (onesided && oi_dim_differ(parts, oi_dim_of(inverse ? 2 : 1)))
        return oi_shape_fail_one(c, 0,
                                 inverse ? "one side of a spectrum is complex, found "
                                         : "one side is enough for real signals only, found ",
                                 x);
    oi_dim own = x->dims[axis];
    if (inverse && onesided)
        own = !own.known ? (oi_dim){0} : oi_dim_of(own.value > 0 ? 2 * (own.value - 1) : 0);
    oi_dim n = size_attr(c, "length", own);
    out->type = *x;
    out->type.dims[axis] = onesided && !inverse && !(n.known && n.value == 0) ? one_side(n) : n;
    out->type.dims[x->rank - 1] = oi_dim_of(onesided && inverse ? 1 : 2);
    return true;
}

bool oi_shape_stft(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0], *w = c->n_in > 1 ? &c->in[1] : NULL;
    bool onesided = true;
    if (x->rank != 2 && x->rank != 3)
        return oi_shape_fail_one(c, 0, "wants [B, L] or [B, L, 1 or 2], found ", x);
    if (w && w->rank != 1)
        return oi_shape_fail_one(c, 1, "the window wants one axis, found ", w);
    oi_dim parts = x->rank == 3 ? x->dims[2] : oi_dim_of(1),
           n = size_attr(c, "frame_length", x->dims[1]);
    if (parts.known && parts.value != 1 && parts.value != 2)
        return oi_shape_fail_one(c, 0, "the last axis is 1 (real) or 2 (complex) long, found ", x);
    if (w && oi_call_arg(c, "frame_length") && oi_dim_differ(n, w->dims[0]))
        return oi_shape_fail_attr(c, "frame_length", "is not the length of the window ", w);
    n = w ? w->dims[0] : n;
    bool known = oi_call_bool(c, "onesided", &onesided);
    if (known && onesided && oi_dim_differ(parts, oi_dim_of(1)))
        return oi_shape_fail_one(c, 0, "one side is enough for real signals only, found ", x);
    oi_dim step = size_attr(c, "frame_step", (oi_dim){0});
    out->type.rank = 4;
    out->type.dims[0] = x->dims[0];
    if (x->dims[1].known && n.known && step.known)
        out->type.dims[1] = oi_dim_of(
            x->dims[1].value < n.value ? 0 : 1 + (x->dims[1].value - n.value) / step.value);
    out->type.dims[2] = !known ? (oi_dim){0} : onesided ? one_side(n) : n;
    out->type.dims[3] = oi_dim_of(2);
    return true;
}

bool oi_shape_istft(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0], *w = &c->in[1];
    if (x->rank != 4 || oi_dim_differ(x->dims[3], oi_dim_of(2)))
        return oi_shape_fail_one(c, 0, "wants [B, frames, bins, 2], found ", x);
    if (w->rank != 1 || (w->dims[0].known && w->dims[0].value == 0))
        return oi_shape_fail_one(c, 1, "the window wants one axis, not empty, found ", w);
    oi_dim n = w->dims[0], frames = x->dims[1], hop = size_attr(c, "hop", (oi_dim){0}),
           covered = {0};
    if (oi_dim_differ(x->dims[2], n) && oi_dim_differ(x->dims[2], one_side(n)))
        return oi_shape_fail_pair(
            c, 1, 0, "the bins are neither one side nor two of the window: ", x, " and ", w);
    int64_t v;
    if (n.known && frames.known && hop.known) {
        if (__builtin_mul_overflow(hop.value, frames.value ? frames.value - 1 : 0, &v) ||
            __builtin_add_overflow(v, n.value, &v))
            return oi_shape_fail_attr(c, "hop", "the frames reach too far: ", x);
        covered = oi_dim_of(frames.value ? v : 0);
    }
    out->type.rank = 2;
    out->type.dims[0] = x->dims[0];
    out->type.dims[1] = size_attr(c, "length", covered);
    return true;
}

bool oi_shape_mel_filter(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    out->type.rank = 2;
    out->type.dims[0] = one_side(size_attr(c, "n_fft", (oi_dim){0}));
    out->type.dims[1] = size_attr(c, "num_mels", (oi_dim){0});
    return true;
}

bool oi_shape_window(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    out->type.rank = 1;
    out->type.dims[0] = size_attr(c, "size", (oi_dim){0});
    return true;
}
