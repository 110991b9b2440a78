/* max_pool.c: which windows the body of max_pool.h looks at. */
#include "recipe/recipe.h"

#define MOST 131072 /* floats of a row with its padding: what a thread's stack may well hold */

static int64_t item(const oi_kernel_query *q, const char *name, size_t i, int64_t otherwise)
{
    const oi_op_value *v = oi_kernel_attr(q, name);
    if (v->tag == OI_VALUE_INT)
        return v->i;
    return v->tag == OI_VALUE_INT_LIST && i < v->n ? v->ints[i] : otherwise;
}

static oi_window window_of(const oi_kernel_query *q, uint32_t axis)
{
    const uint32_t n = q->in[0].rank - 2;
    oi_window w = {.in = q->in[0].dims[2 + axis],
                   .kernel = item(q, "kernel", axis, 1),
                   .stride = item(q, "strides", axis, 1),
                   .dilation = item(q, "dilations", axis, 1),
                   .before = item(q, "pads", axis, 0),
                   .after = item(q, "pads", n + axis, 0)};
    oi_window_slide(&w, oi_auto_pad_find(oi_kernel_attr(q, "auto_pad")->s), false);
    return w;
}

/* Windows over one axis are rows of windows over two. Padding that is cut off is no padding. */
bool oi_recipe_max_pool(const oi_recipe_call *rc, oi_recipe_plan *out)
{
    const oi_kernel_query *q = rc->q;
    const oi_operand *x = &q->in[0], *y = &q->out[0];
    const uint32_t n = x->rank - 2;
    if (x->dtype != OI_F32 || q->n_out != 1 || n < 1 || n > 2)
        return false;
    const oi_window w = window_of(q, n - 1);
    const oi_window h =
        n == 2 ? window_of(q, 0) : (oi_window){.in = 1, .kernel = 1, .stride = 1, .dilation = 1};
    const int64_t out_width = y->dims[n + 1], out_height = n == 2 ? y->dims[2] : 1;
    const int64_t wide = out_width + (w.kernel - 1) * w.dilation / w.stride + 1;
    const int64_t held = (w.before + w.in + w.stride - 1) / w.stride; /* padding and row */
    const int64_t pitch = wide > held ? wide : held;
    if (w.before < 0 || h.before < 0 || w.before > MOST || w.stride > MOST || w.in > MOST ||
        pitch > MOST / w.stride || x->dims[0] * x->dims[1] * out_width * out_height == 0)
        return false;
    out->function = "oi_max_pool";
    oi_recipe_arg_add(out, OI_ARG_IN, 0);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
    oi_recipe_scratch_add(out, "lines", OI_I32, (w.stride > 1 ? 2 : 1) * w.stride * pitch);
    const int64_t sizes[] = {x->dims[0],
                             x->dims[1],
                             h.in,
                             w.in,
                             out_height,
                             out_width,
                             h.kernel,
                             w.kernel,
                             h.stride,
                             w.stride,
                             h.dilation,
                             w.dilation,
                             h.before,
                             w.before,
                             pitch,
                             rc->rows ? rc->kept : h.in,
                             rc->rows ? rc->out_kept : out_height};
    for (size_t i = 0; i < OI_COUNT(sizes); i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, sizes[i]);
    oi_recipe_arg_add(out, OI_ARG_ROW, 0);
    oi_recipe_arg_add(out, OI_ARG_ROW_END, out_height);
    oi_recipe_arg_add(out, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(out, OI_ARG_LAST, 0);
    out->extent = x->dims[1];
    out->unit = 1;
    out->split_dim = 1;
    out->reads_partitioned = true;
    out->read_dim = 1;
    /* five instructions a row of a window, one a column */
    out->ops = (uint64_t)(oi_operand_count(y) * (5 * h.kernel + w.kernel + 8));
    out->row_dim = n == 2 ? 2 : 0;
    out->row_step = h.stride;
    out->row_from = -h.before;
    out->row_to = (h.kernel - 1) * h.dilation - h.before;
    return true;
}
