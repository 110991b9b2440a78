/* shapes_window.c: shape rules of windows that slide: [N, C, spatial...] in, as many axes out. */
#include "program/program.h"

#include <inttypes.h>

/* -- attributes per spatial axis -- */

static const oi_op_value *value_of(const oi_call *c, const char *name, bool *is_open)
{
    const oi_attr_arg *arg = oi_call_arg(c, name);
    *is_open = arg && !arg->known;
    if (arg)
        return arg->known ? &arg->value : NULL;
    const oi_op_attr *attr = oi_op_attr_find(c->op, name);
    return attr && attr->def.tag != OI_VALUE_NONE ? &attr->def : NULL;
}

/* A list has `wanted` items; a single number stands for all of them. */
static bool check_length(const oi_call *c, const char *name, size_t wanted)
{
    const oi_attr_arg *arg = oi_call_arg(c, name);
    if (!arg || !arg->known || arg->value.tag != OI_VALUE_INT_LIST || arg->value.n == wanted)
        return true;
    return oi_call_fail(c, "E053", OI_AT_ATTR, (size_t)(arg - c->attrs),
                        "attribute '%s' wants %zu numbers, found %" PRIu32, name, wanted,
                        arg->value.n);
}

static int64_t item(const oi_call *c, const char *name, size_t i, int64_t otherwise, bool *is_open)
{
    bool open;
    const oi_op_value *v = value_of(c, name, &open);
    *is_open |= open;
    if (!v)
        return otherwise;
    if (v->tag == OI_VALUE_INT)
        return v->i;
    return v->tag == OI_VALUE_INT_LIST && i < v->n ? v->ints[i] : otherwise;
}

static bool flag(const oi_call *c, const char *name, bool *is_open)
{
    bool b = false;
    if (oi_op_attr_find(c->op, name) && !oi_call_bool(c, name, &b))
        *is_open = true;
    return b;
}

static oi_auto_pad auto_pad(const oi_call *c)
{
    bool open;
    const oi_op_value *v = value_of(c, "auto_pad", &open);
    return v && v->tag == OI_VALUE_STRING ? oi_auto_pad_find(v->s) : OI_PAD_NOTSET;
}

static oi_window window(const oi_call *c, size_t i, size_t n, bool *is_open)
{
    return (oi_window){.stride = item(c, "strides", i, 1, is_open),
                       .dilation = item(c, "dilations", i, 1, is_open),
                       .before = item(c, "pads", i, 0, is_open),
                       .after = item(c, "pads", n + i, 0, is_open)};
}

static bool check_lists(const oi_call *c, size_t spatial)
{
    return check_length(c, "kernel", spatial) && check_length(c, "strides", spatial) &&
           check_length(c, "dilations", spatial) && check_length(c, "pads", 2 * spatial) &&
           check_length(c, "output_padding", spatial) && check_length(c, "output_shape", spatial);
}

static bool check_rank(const oi_call *c)
{
    const oi_type *x = &c->in[0];
    if (x->rank < 3)
        return oi_shape_fail_one(c, 0, "x wants shape [N, C, spatial...], found ", x);
    return check_lists(c, x->rank - 2);
}

/* The places of a window along spatial axis i. */
static bool slide(const oi_call *c, uint32_t i, oi_dim in, oi_dim kernel, oi_dim *out)
{
    const oi_type *x = &c->in[0];
    bool is_open = false;
    oi_window w = window(c, i, x->rank - 2, &is_open);
    bool ceils = flag(c, "ceil_mode", &is_open);
    *out = (oi_dim){0};
    if (is_open || !in.known || !kernel.known)
        return true;
    w.in = in.value;
    w.kernel = kernel.value;
    int64_t n = oi_window_slide(&w, auto_pad(c), ceils);
    *out = oi_dim_of(n);
    if (n >= 0)
        return true;
    char text[100];
    snprintf(text, sizeof text, "a window of %" PRId64 " does not fit along axis %u of ",
             kernel.value, i + 2);
    return oi_shape_fail_one(c, 0, text, x);
}

/* -- conv -- */

/* Channels of x, filters and groups go together; b has one element per filter. */
static bool check_channels(const oi_call *c, oi_dim in, oi_dim filters, int64_t group)
{
    const oi_type *x = &c->in[0], *w = &c->in[1];
    int64_t product;
    if (in.known && x->dims[1].known &&
        (__builtin_mul_overflow(in.value, group, &product) || product != x->dims[1].value))
        return oi_shape_fail_pair(c, 1, 0, "channels of x and w differ: ", x, " and ", w);
    if (filters.known && filters.value % group)
        return oi_shape_fail_one(c, 1, "the filters do not fall into the groups: ", w);
    return true;
}

static bool check_bias(const oi_call *c, oi_dim filters)
{
    if (c->n_in < 3 || strcmp(c->op->inputs[2].name, "b") != 0)
        return true;
    const oi_type *b = &c->in[2];
    return (b->rank == 1 && !oi_dim_differ(b->dims[0], filters)) ||
           oi_shape_fail_pair(c, 2, 1, "b wants one element per filter of ", &c->in[1], ", found ",
                              b);
}

static bool check_weights(const oi_call *c)
{
    const oi_type *x = &c->in[0], *w = &c->in[1];
    return w->rank == x->rank ||
           oi_shape_fail_pair(c, 1, 0, "x and w differ in rank: ", x, " and ", w);
}

bool oi_shape_conv(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0], *w = &c->in[1];
    int64_t group = 1;
    if (!oi_dtype_is_float(x->dtype) && oi_op_attr_find(c->op, "acc") && !oi_call_arg(c, "acc"))
        return oi_call_fail(c, "E053", OI_AT_OP, 0,
                            "integers want acc: what their products are summed in");
    if (!check_rank(c) || !check_weights(c))
        return false;
    bool known = oi_call_int(c, "group", &group);
    if ((known && !check_channels(c, w->dims[1], w->dims[0], group)) || !check_bias(c, w->dims[0]))
        return false;
    out->type = *x;
    out->type.dims[1] = w->dims[0];
    for (uint32_t i = 0; i < x->rank - 2; i++)
        if (!slide(c, i, x->dims[2 + i], w->dims[2 + i], &out->type.dims[2 + i]))
            return false;
    return true;
}

static bool spread(const oi_call *c, uint32_t i, oi_dim *out)
{
    const oi_type *x = &c->in[0], *w = &c->in[1];
    oi_dim in = x->dims[2 + i], kernel = w->dims[2 + i];
    bool is_open = false;
    oi_window v = window(c, i, x->rank - 2, &is_open);
    int64_t padding = item(c, "output_padding", i, 0, &is_open),
            wanted = item(c, "output_shape", i, -1, &is_open);
    *out = (oi_dim){0};
    if (is_open || !in.known || !kernel.known)
        return true;
    v.in = in.value;
    v.kernel = kernel.value;
    int64_t n = oi_window_spread(&v, auto_pad(c), padding, wanted);
    *out = oi_dim_of(n);
    if (n >= 0)
        return true;
    char text[100];
    snprintf(text, sizeof text, "nothing is left after padding along axis %u of ", i + 2);
    return oi_shape_fail_one(c, 0, text, x);
}

bool oi_shape_conv_transpose(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0], *w = &c->in[1];
    int64_t group = 1, filters;
    if (!check_rank(c) || !check_weights(c))
        return false;
    if (oi_dim_differ(x->dims[1], w->dims[0]))
        return oi_shape_fail_pair(c, 1, 0, "channels of x and w differ: ", x, " and ", w);
    out->type = *x;
    out->type.dims[1] = (oi_dim){0};
    bool known = oi_call_int(c, "group", &group);
    if (known && x->dims[1].known && x->dims[1].value % group)
        return oi_shape_fail_one(c, 0, "the channels do not fall into the groups: ", x);
    if (known && w->dims[1].known) {
        if (__builtin_mul_overflow(w->dims[1].value, group, &filters))
            return oi_shape_fail_one(c, 1, "too many filters: ", w);
        out->type.dims[1] = oi_dim_of(filters);
    }
    if (!check_bias(c, out->type.dims[1]))
        return false;
    for (uint32_t i = 0; i < x->rank - 2; i++)
        if (!spread(c, i, &out->type.dims[2 + i]))
            return false;
    return true;
}

/* -- pooling -- */

static bool kernel_dim(const oi_call *c, uint32_t i, oi_dim *out)
{
    bool is_open = false;
    int64_t k = item(c, "kernel", i, 1, &is_open);
    *out = is_open ? (oi_dim){0} : oi_dim_of(k);
    return true;
}

bool oi_shape_pool(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0];
    oi_dim k;
    if (!check_rank(c))
        return false;
    out->type = *x;
    for (uint32_t i = 0; i < x->rank - 2; i++)
        if (!kernel_dim(c, i, &k) || !slide(c, i, x->dims[2 + i], k, &out->type.dims[2 + i]))
            return false;
    return true;
}

bool oi_shape_global_pool(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0];
    if (x->rank < 3)
        return oi_shape_fail_one(c, 0, "x wants shape [N, C, spatial...], found ", x);
    out->type = *x;
    for (uint32_t i = 2; i < x->rank; i++)
        out->type.dims[i] = oi_dim_of(1);
    return true;
}

static void multiply(oi_dim *a, oi_dim b, bool *too_large)
{
    int64_t product = 0;
    *too_large |= a->known && b.known && __builtin_mul_overflow(a->value, b.value, &product);
    *a = a->known && b.known ? oi_dim_of(product) : (oi_dim){0};
}

bool oi_shape_im2col(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0];
    oi_dim k, places, rows = oi_dim_of(1), columns = oi_dim_of(1);
    bool too_large = false;
    if (!check_rank(c))
        return false;
    for (uint32_t i = 0; i < x->rank - 2; i++) {
        if (!kernel_dim(c, i, &k) || !slide(c, i, x->dims[2 + i], k, &places))
            return false;
        multiply(&rows, k, &too_large);
        multiply(&columns, places, &too_large);
    }
    multiply(&rows, x->dims[1], &too_large);
    if (too_large)
        return oi_shape_fail_one(c, 0, "too many windows in ", x);
    out->type = (oi_type){.rank = 3, .dims = {x->dims[0], rows, columns}};
    return true;
}

/* -- col2im: the other way round -- */

/* The image: its spatial lengths come from the attribute or the declaration. */
static bool image_of(const oi_call *c, size_t o, oi_type *out)
{
    const oi_attr_arg *arg = oi_call_arg(c, "shape");
    if (!arg && !c->declared)
        return oi_call_fail(c, "E051", OI_AT_OP, 0, "wants 'shape' or a declared output");
    if (!arg) {
        *out = c->declared[o];
        return out->rank > 2 ||
               oi_call_fail(c, "E051", OI_AT_OUTPUT, o,
                            "the output wants shape [N, C, spatial...], found rank %" PRIu32,
                            out->rank);
    }
    const oi_op_value *v = &arg->value;
    uint32_t n = v->tag == OI_VALUE_INT ? 1 : v->n;
    if (n < 1 || n > OI_MAX_RANK - 2)
        return oi_call_fail(c, "E053", OI_AT_ATTR, (size_t)(arg - c->attrs),
                            "the image wants 1 to %d spatial axes, found %" PRIu32, OI_MAX_RANK - 2,
                            n);
    out->rank = n + 2;
    for (uint32_t i = 0; i < n; i++)
        out->dims[2 + i] = oi_dim_of(v->tag == OI_VALUE_INT ? v->i : v->ints[i]);
    return true;
}

bool oi_shape_col2im(const oi_call *c, size_t o, oi_shape *out)
{
    const oi_type *x = &c->in[0];
    oi_type *image = &out->type;
    const oi_attr_arg *arg = oi_call_arg(c, "shape");
    oi_dim k, places, rows = oi_dim_of(1), columns = oi_dim_of(1);
    bool too_large = false;
    if (x->rank != 3)
        return oi_shape_fail_one(c, 0, "x wants shape [N, C * kernel, places], found ", x);
    if (arg && !arg->known) {
        out->is_open = true;
        return true;
    }
    if (!image_of(c, o, image) || !check_lists(c, image->rank - 2))
        return false;
    oi_call of_image = *c;
    of_image.in = image; /* windows slide over the result */
    for (uint32_t i = 0; i < image->rank - 2; i++) {
        if (!kernel_dim(c, i, &k) || !slide(&of_image, i, image->dims[2 + i], k, &places))
            return false;
        multiply(&rows, k, &too_large);
        multiply(&columns, places, &too_large);
    }
    if (too_large || oi_dim_differ(x->dims[2], columns) ||
        (rows.known && x->dims[1].known && x->dims[1].value % rows.value))
        return oi_shape_fail_pair(c, 0, 0, "the columns are not those of the windows: ", x,
                                  " for an image ", image);
    image->dims[0] = x->dims[0];
    image->dims[1] =
        rows.known && x->dims[1].known ? oi_dim_of(x->dims[1].value / rows.value) : (oi_dim){0};
    return true;
}
