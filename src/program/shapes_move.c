/* shapes_move.c: shape rules of ops that move elements without computing: views, joins and cuts. */
#include "program/program.h"

#include <inttypes.h>

/* -- lists -- */

typedef enum state { ABSENT, UNKNOWN, KNOWN } state;

/* The integers of an attribute; one integer is a list of one. */
static state list_of(const oi_call *c, const char *name, const int64_t **list, size_t *n)
{
    const oi_attr_arg *arg = oi_call_arg(c, name);
    if (!arg)
        return ABSENT;
    if (!arg->known)
        return UNKNOWN;
    *list = arg->value.tag == OI_VALUE_INT ? &arg->value.i : arg->value.ints;
    *n = arg->value.tag == OI_VALUE_INT ? 1 : arg->value.n;
    return KNOWN;
}

/* The axes of a list as a set; false with the failure when one is out of range. */
static bool axis_set(const oi_call *c, const char *name, const int64_t *list, size_t n,
                     uint32_t *out)
{
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t a;
        if (!oi_shape_axis(c, oi_call_arg(c, name), list[i], &a))
            return false;
        *out |= 1u << a;
    }
    return true;
}

/* -- sizes -- */

static bool is_one(oi_dim d)
{
    return d.known && d.value == 1;
}

/* The product of dims [from, to); a single one that matters keeps its name. */
static bool product(const oi_call *c, const oi_type *x, uint32_t from, uint32_t to, oi_dim *out)
{
    *out = oi_dim_of(1);
    for (uint32_t i = from; i < to; i++) {
        oi_dim d = x->dims[i];
        int64_t v;
        if (is_one(*out) && !(d.known && d.value == 1))
            *out = d;
        else if (!out->known || !d.known)
            *out = is_one(d) ? *out : (oi_dim){0};
        else if (__builtin_mul_overflow(out->value, d.value, &v))
            return oi_call_fail(c, "E051", OI_AT_OP, 0, "the result is too large");
        else if (d.value != 1)
            *out = oi_dim_of(v);
    }
    return true;
}

/* a + b, or a * b; unknown when one is. */
static bool combine(const oi_call *c, oi_dim a, oi_dim b, bool times, oi_dim *out)
{
    int64_t v;
    if (!a.known || !b.known) {
        *out = times && is_one(b) ? a : times && is_one(a) ? b : (oi_dim){0};
        return true;
    }
    if (times ? __builtin_mul_overflow(a.value, b.value, &v)
              : __builtin_add_overflow(a.value, b.value, &v))
        return oi_call_fail(c, "E051", OI_AT_OP, 0, "the result is too large");
    *out = v == a.value ? a : oi_dim_of(v);
    return true;
}

/* -- views -- */

/* -1 becomes what is left of all elements. */
static bool infer_rest(const oi_call *c, uint32_t at, oi_type *out)
{
    oi_dim all, others, *rest = &out->dims[at];
    *rest = oi_dim_of(1);
    if (!product(c, &c->in[0], 0, c->in[0].rank, &all) || !product(c, out, 0, out->rank, &others))
        return false;
    *rest = (oi_dim){0};
    if (!all.known || !others.known)
        return true;
    if (others.value == 0 || all.value % others.value != 0)
        return oi_shape_fail_attr(c, "shape", "-1 cannot be found for ", &c->in[0]);
    *rest = oi_dim_of(all.value / others.value);
    return true;
}

static bool same_count(const oi_call *c, const oi_type *out)
{
    oi_dim from, to;
    if (!product(c, &c->in[0], 0, c->in[0].rank, &from) || !product(c, out, 0, out->rank, &to))
        return false;
    if (!oi_dim_differ(from, to))
        return true;
    return oi_shape_fail_pair(c, 0, 0, "cannot reshape ", &c->in[0], " to ", out);
}

bool oi_shape_reshape(const oi_call *c, size_t o, oi_shape *out)
{
    const int64_t *list;
    size_t n;
    const oi_type *x = &c->in[0];
    uint32_t rest = OI_INFER_NONE;
    switch (list_of(c, "shape", &list, &n)) {
    case UNKNOWN: out->is_open = true; return true;
    case ABSENT:
        if (!c->declared)
            return oi_call_fail(c, "E051", OI_AT_OP, 0, "wants 'shape' or a declared output");
        out->type = c->declared[o];
        return same_count(c, &out->type);
    case KNOWN: break;
    }
    if (n > OI_MAX_RANK)
        return oi_shape_fail_attr(c, "shape", "too many axes for ", x);
    out->type.rank = (uint32_t)n;
    for (uint32_t i = 0; i < n; i++) {
        if (list[i] == 0 && i >= x->rank)
            return oi_shape_fail_attr(c, "shape", "0 keeps an axis that is not there in ", x);
        if (list[i] == -1 && rest != OI_INFER_NONE)
            return oi_shape_fail_attr(c, "shape", "-1 stands twice in the shape for ", x);
        rest = list[i] == -1 ? i : rest;
        out->type.dims[i] = list[i] == 0 ? x->dims[i] : oi_dim_of(list[i] < 0 ? 1 : list[i]);
    }
    if (rest != OI_INFER_NONE)
        return infer_rest(c, rest, &out->type);
    return same_count(c, &out->type);
}

bool oi_shape_flatten(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0];
    int64_t axis, rank = x->rank;
    out->type.rank = 2;
    if (!oi_call_int(c, "axis", &axis))
        return true;
    if (axis < -rank || axis > rank)
        return oi_shape_fail_attr(c, "axis", "the axis is out of range for ", x);
    uint32_t at = (uint32_t)(axis < 0 ? axis + rank : axis);
    return product(c, x, 0, at, &out->type.dims[0]) &&
           product(c, x, at, x->rank, &out->type.dims[1]);
}

bool oi_shape_squeeze(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0];
    const int64_t *list;
    size_t n;
    uint32_t gone = 0;
    state s = list_of(c, "axes", &list, &n);
    for (uint32_t i = 0; i < x->rank; i++) {
        out->is_open |= s == UNKNOWN || (s == ABSENT && !x->dims[i].known);
        gone |= is_one(x->dims[i]) ? 1u << i : 0;
    }
    if (s == KNOWN && !axis_set(c, "axes", list, n, &gone))
        return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!(gone >> i & 1))
            out->type.dims[out->type.rank++] = x->dims[i];
        else if (oi_dim_differ(x->dims[i], oi_dim_of(1)))
            return oi_shape_fail_attr(c, "axes", "only axes of length 1 can go: ", x);
    return true;
}

bool oi_shape_unsqueeze(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0];
    const int64_t *list;
    size_t n;
    if (list_of(c, "axes", &list, &n) != KNOWN) {
        out->is_open = true;
        return true;
    }
    if (x->rank + n > OI_MAX_RANK)
        return oi_shape_fail_attr(c, "axes", "too many axes for ", x);
    int64_t rank = (int64_t)(x->rank + n);
    uint32_t added = 0, from = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t a = list[i] < 0 ? list[i] + rank : list[i];
        if (a < 0 || a >= rank || added >> a & 1)
            return oi_shape_fail_attr(c, "axes", "an axis is out of range or given twice for ", x);
        added |= 1u << a;
    }
    out->type.rank = (uint32_t)rank;
    for (uint32_t i = 0; i < rank; i++)
        out->type.dims[i] = added >> i & 1 ? oi_dim_of(1) : x->dims[from++];
    return true;
}

bool oi_shape_transpose(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0];
    const int64_t *perm;
    size_t n;
    uint32_t seen = 0;
    out->type.rank = x->rank;
    state s = list_of(c, "perm", &perm, &n);
    if (s == UNKNOWN)
        return true;
    if (s == KNOWN && (n != x->rank || !axis_set(c, "perm", perm, n, &seen) ||
                       seen != (n ? UINT32_MAX >> (32 - n) : 0)))
        return oi_shape_fail_attr(c, "perm", "wants every axis once of ", x);
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t a = s == ABSENT ? x->rank - 1 - i : perm[i];
        out->type.dims[i] = x->dims[a < 0 ? a + x->rank : a];
    }
    return true;
}

/* -- repeating -- */

bool oi_shape_expand(const oi_call *c, size_t o, oi_shape *out)
{
    const int64_t *list;
    size_t n;
    oi_type to = {0};
    switch (list_of(c, "shape", &list, &n)) {
    case UNKNOWN: out->is_open = true; return true;
    case ABSENT:
        if (!c->declared)
            return oi_call_fail(c, "E051", OI_AT_OP, 0, "wants 'shape' or a declared output");
        to = c->declared[o];
        break;
    case KNOWN:
        if (n > OI_MAX_RANK)
            return oi_shape_fail_attr(c, "shape", "too many axes for ", &c->in[0]);
        to.rank = (uint32_t)n;
        for (size_t i = 0; i < n; i++)
            to.dims[i] = oi_dim_of(list[i]);
    }
    if (!oi_dims_broadcast(&c->in[0], &to, &out->type))
        return oi_shape_fail_pair(c, 0, 0, "cannot expand ", &c->in[0], " to ", &to);
    return true;
}

bool oi_shape_tile(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0];
    const int64_t *list;
    size_t n;
    out->type.rank = x->rank;
    if (list_of(c, "repeats", &list, &n) != KNOWN)
        return true;
    if (n != x->rank)
        return oi_shape_fail_attr(c, "repeats", "wants one number per axis of ", x);
    for (uint32_t i = 0; i < x->rank; i++)
        if (!combine(c, x->dims[i], oi_dim_of(list[i]), true, &out->type.dims[i]))
            return false;
    return true;
}

/* -- joining and cutting -- */

bool oi_shape_concat(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    int64_t given;
    uint32_t axis = 0;
    out->type = c->in[0];
    bool known = oi_call_int(c, "axis", &given);
    if (known && !oi_shape_axis(c, oi_call_arg(c, "axis"), given, &axis))
        return false;
    for (size_t i = 1; i < c->n_in; i++) {
        if (c->in[i].rank != c->in[0].rank)
            return oi_shape_fail_pair(c, i, 0, "cannot join ", &c->in[0], " and ", &c->in[i]);
        for (uint32_t d = 0; known && d < c->in[0].rank; d++) {
            oi_dim *to = &out->type.dims[d], from = c->in[i].dims[d];
            if (d == axis && !combine(c, *to, from, false, to))
                return false;
            if (d != axis && oi_dim_differ(*to, from))
                return oi_shape_fail_pair(c, i, 0, "cannot join ", &c->in[0], " and ", &c->in[i]);
            if (d != axis && !to->known)
                *to = from;
        }
    }
    for (uint32_t d = 0; !known && d < out->type.rank; d++)
        out->type.dims[d] = (oi_dim){0};
    return true;
}

bool oi_shape_split(const oi_call *c, size_t o, oi_shape *out)
{
    const oi_type *x = &c->in[0];
    const int64_t *sizes;
    size_t n;
    int64_t given, sum = 0;
    uint32_t axis;
    out->type.rank = x->rank;
    if (!oi_call_int(c, "axis", &given))
        return true;
    const oi_attr_arg *arg = oi_call_arg(c, "axis");
    if (!oi_shape_axis(c, arg, given, &axis))
        return false;
    out->type = *x;
    oi_dim *d = &out->type.dims[axis];
    switch (list_of(c, "sizes", &sizes, &n)) {
    case UNKNOWN: *d = (oi_dim){0}; return true;
    case ABSENT:
        if (c->n_out > 1)
            *d = d->known ? oi_dim_of(oi_split_length(d->value, c->n_out, o)) : (oi_dim){0};
        return true;
    case KNOWN: break;
    }
    if (n != c->n_out)
        return oi_shape_fail_attr(c, "sizes", "wants one size per output for ", x);
    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(sum, sizes[i], &sum))
            return oi_shape_fail_attr(c, "sizes", "the sizes are too large for ", x);
    if (oi_dim_differ(*d, oi_dim_of(sum)))
        return oi_shape_fail_attr(c, "sizes", "the sizes do not make up the axis of ", x);
    *d = oi_dim_of(sizes[o]);
    return true;
}

bool oi_shape_slice(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0];
    const int64_t *starts, *ends, *axes = NULL, *steps = NULL;
    size_t n = 0, n_ends = 0, n_axes = 0, n_steps = 0;
    state by_axis = list_of(c, "axes", &axes, &n_axes),
          stepped = list_of(c, "steps", &steps, &n_steps);
    uint32_t seen = 0;
    out->type.rank = x->rank;
    if (by_axis == UNKNOWN || list_of(c, "starts", &starts, &n) != KNOWN ||
        list_of(c, "ends", &ends, &n_ends) != KNOWN || stepped == UNKNOWN)
        return true;
    if (n_ends != n || (by_axis == KNOWN && n_axes != n) || (stepped == KNOWN && n_steps != n) ||
        n > x->rank)
        return oi_shape_fail_attr(c, "starts",
                                  "starts, ends, axes and steps want as many items, at most as "
                                  "there are axes in ",
                                  x);
    out->type = *x;
    for (uint32_t i = 0; i < n; i++) {
        int64_t step = steps ? steps[i] : 1;
        uint32_t a = i;
        if (axes && !oi_shape_axis(c, oi_call_arg(c, "axes"), axes[i], &a))
            return false;
        if (step == 0 || seen >> a & 1)
            return oi_shape_fail_attr(c, step ? "axes" : "steps",
                                      step ? "an axis is given twice for " : "a step is 0 for ", x);
        seen |= 1u << a;
        oi_dim *d = &out->type.dims[a];
        bool all = step == 1 && starts[i] == 0 && ends[i] == INT64_MAX;
        if (!all)
            *d = d->known ? oi_dim_of(oi_slice_length(d->value, starts[i], ends[i], step))
                          : (oi_dim){0};
    }
    return true;
}

bool oi_shape_pad(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0];
    const int64_t *pads;
    size_t n;
    out->type.rank = x->rank;
    if (list_of(c, "pads", &pads, &n) != KNOWN)
        return true;
    if (n != 2 * (size_t)x->rank)
        return oi_shape_fail_attr(c, "pads", "wants a begin and an end for every axis of ", x);
    const oi_attr_arg *mode = oi_call_arg(c, "mode");
    bool fills = !mode || !mode->known || strcmp(mode->value.s, "constant") == 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        oi_dim left = {0}, *d = &out->type.dims[i];
        int64_t cut = (pads[i] < 0 ? pads[i] : 0), cut_end = pads[n / 2 + i];
        if (__builtin_add_overflow(cut, cut_end < 0 ? cut_end : 0, &cut))
            return oi_shape_fail_attr(c, "pads", "the pads are too large for ", x);
        if (!combine(c, x->dims[i], oi_dim_of(cut), false, &left) ||
            !combine(c, x->dims[i], oi_dim_of(pads[i]), false, d) ||
            !combine(c, *d, oi_dim_of(cut_end), false, d))
            return false;
        bool grows = pads[i] > 0 || cut_end > 0;
        if (left.known && (left.value < 0 || (left.value == 0 && grows && !fills)))
            return oi_shape_fail_attr(c, "pads",
                                      left.value < 0 ? "the pads cut more than there is of "
                                                     : "nothing to pad with in ",
                                      x);
    }
    return true;
}
