/* shapes_norm.c: shape rules of softmax, norms, rotary embedding and spectra. */
#include "program/program.h"

static bool differ(oi_dim a, oi_dim b)
{
    return oi_dim_equal(a, b) == OI_DIFFERENT;
}

/* "text: 'scale' is [3], 'x' [3, 4]; [4] fits", pointing at input i; the other shape explains.
 * `fits` is a shape that would do. */
static bool fail_with(const oi_call *c, size_t i, size_t other, const char *text,
                      const oi_type *fits)
{
    const oi_type *a = &c->in[other], *b = &c->in[i];
    char message[OI_INFER_TEXT];
    oi_text t = {message, 0, sizeof message};
    oi_text_add(&t, "%s: '%s' is ", text, c->op->inputs[i].name);
    oi_text_dims(&t, b);
    oi_text_add(&t, ", '%s' ", c->op->inputs[other].name);
    oi_text_dims(&t, a);
    oi_text_add(&t, "; ");
    oi_text_dims(&t, fits);
    oi_text_add(&t, " fits");
    oi_text_sizes(&t, (const oi_type *const[]){a, b}, 2);
    oi_call_fail(c, "E051", OI_AT_INPUT, i, "%s", message);
    c->fail->other = (uint32_t)other;
    return false;
}

/* The axis that the attribute says, default included; *known is false when only the run knows. */
static bool along(const oi_call *c, uint32_t *axis, bool *known)
{
    int64_t given;
    *known = oi_call_int(c, "axis", &given);
    return !*known || oi_shape_axis(c, oi_call_arg(c, "axis"), given, axis);
}

bool oi_shape_along(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    uint32_t axis;
    bool known;
    out->type = c->in[0];
    return along(c, &axis, &known);
}

/* The axes of x from `axis` on. */
static oi_type axes_from(const oi_type *x, uint32_t axis)
{
    oi_type out = {.dtype = x->dtype, .rank = x->rank - axis};
    for (uint32_t d = axis; d < x->rank; d++)
        out.dims[d - axis] = x->dims[d];
    return out;
}

/* Factors for the axes from `axis` on: they broadcast to those, never the other way. */
bool oi_shape_norm(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    uint32_t axis = 0;
    bool known;
    const oi_type *x = &c->in[0];
    out->type = *x;
    if (!along(c, &axis, &known))
        return false;
    for (size_t i = 1; i < c->n_in; i++) {
        const oi_type *v = &c->in[i];
        bool ok = v->rank <= x->rank - (known ? axis : 0);
        for (uint32_t d = 0; ok && d < v->rank; d++)
            ok = (v->dims[d].known && v->dims[d].value == 1) ||
                 !differ(v->dims[d], x->dims[x->rank - v->rank + d]);
        const oi_type fits = axes_from(x, known ? axis : 0);
        if (!ok)
            return fail_with(c, i, 0, "does not fit the axes that are normalised", &fits);
    }
    return true;
}

/* x [N, C, ...] and vectors [C] */
bool oi_shape_channels(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    int64_t groups;
    const oi_type *x = &c->in[0];
    out->type = *x;
    if (x->rank < 2)
        return oi_call_fail(c, "E051", OI_AT_INPUT, 0, "x wants shape [N, C, ...], found rank %u",
                            x->rank);
    for (size_t i = 1; i < c->n_in; i++)
        if (c->in[i].rank != 1 || differ(c->in[i].dims[0], x->dims[1]))
            return fail_with(c, i, 0, "wants one number for each channel",
                             &(oi_type){.rank = 1, .dims = {x->dims[1]}});
    if (oi_op_attr_find(c->op, "groups") && oi_call_int(c, "groups", &groups) && x->dims[1].known &&
        x->dims[1].value % groups != 0)
        return oi_call_fail(c, "E051", OI_AT_ATTR, (size_t)(oi_call_arg(c, "groups") - c->attrs),
                            "%lld channels do not split into %lld groups",
                            (long long)x->dims[1].value, (long long)groups);
    return true;
}

/* [..., 2]: real and imaginary part */
bool oi_shape_pairs(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    out->type = c->in[0];
    if (c->in[0].rank == 0 || differ(c->in[0].dims[c->in[0].rank - 1], oi_dim_of(2)))
        return oi_call_fail(c, "E051", OI_AT_INPUT, 0,
                            "wants shape [..., 2], the real and the imaginary part");
    out->type.rank--;
    return true;
}
