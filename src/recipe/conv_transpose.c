/* conv_transpose.c: which transposed convolutions the body of conv_transpose.h implements. */
#include "device/cost.h"
#include "recipe/recipe.h"

#include <math.h>

#define COLUMNS 32768  /* floats of the planes of a filter: they are written and read at once */
#define FILLED  131072 /* floats of x, filled up to tiles */
#define SUMS    262144 /* floats of a filter's result: a thread's stack may well hold 1 MB */

static int64_t item(const oi_kernel_query *q, const char *name, size_t i, int64_t otherwise)
{
    const oi_op_value *v = oi_kernel_attr(q, name);
    if (v->tag == OI_VALUE_INT)
        return v->i;
    return v->tag == OI_VALUE_INT_LIST && i < v->n ? v->ints[i] : otherwise;
}

/* What a transpose slides over is its output. */
static oi_window window_of(const oi_kernel_query *q, uint32_t axis)
{
    const uint32_t n = q->in[0].rank - 2;
    const bool wanted = oi_kernel_attr(q, "output_shape")->tag != OI_VALUE_NONE;
    oi_window w = {.in = q->in[0].dims[2 + axis],
                   .kernel = q->in[1].dims[2 + axis],
                   .stride = item(q, "strides", axis, 1),
                   .dilation = item(q, "dilations", axis, 1),
                   .before = item(q, "pads", axis, 0),
                   .after = item(q, "pads", n + axis, 0)};
    oi_window_spread(&w, oi_auto_pad_find(oi_kernel_attr(q, "auto_pad")->s),
                     item(q, "output_padding", axis, 0),
                     wanted ? item(q, "output_shape", axis, -1) : -1);
    return w;
}

static int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to;
}

/* Planes of a tile, six or four: where less of the last ones is for nothing. */
static int64_t high_of(const oi_window *h, const oi_window *w, int64_t lanes)
{
    const int64_t kk = h->kernel * w->kernel;
    return up(kk, 4) * 4 < up(kk, 6) * 6 && h->in * w->in >= 3 * lanes ? 4 : 6;
}

/* Rows of x at a time: as many as there is room for, and about as many each time. */
static int64_t band_of(const oi_window *h, const oi_window *w, int64_t lanes)
{
    const int64_t most = (COLUMNS / (h->kernel * w->kernel) - 3 * lanes) / w->in;
    const int64_t band = most < 1 ? 1 : most < h->in ? most : h->in;
    return up(h->in, up(h->in, band));
}

static void add(const oi_recipe_call *rc, const oi_window *h, const oi_window *w, int64_t band,
                int64_t pitch, int64_t lead, oi_recipe_plan *out)
{
    const oi_kernel_query *q = rc->q;
    const oi_operand *x = &q->in[0], *y = &q->out[0];
    const int64_t lanes = oi_recipe_lanes(rc->target), kk = h->kernel * w->kernel;
    const int64_t high = high_of(h, w, lanes);
    const int64_t m = y->dims[1], out_width = y->dims[y->rank - 1];
    const int64_t out_height = y->rank == 4 ? y->dims[2] : 1;
    out->function = "oi_conv_transpose";
    out->n_packings = 1;
    oi_recipe_panels(&out->packings[0], 1, m * kk, x->dims[1], m * kk, 1, 1);
    oi_recipe_arg_add(out, OI_ARG_IN, 0);
    oi_recipe_arg_add(out, OI_ARG_PACKED, 0);
    oi_recipe_arg_add(out, OI_ARG_IN, q->n_in > 2 ? 2 : 0);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
    const int64_t tile = 12 / high * lanes, is_short = h->in * w->in < tile;
    oi_recipe_scratch_add(out, "columns", OI_F32, kk * (tile + (is_short ? tile : band * w->in)));
    oi_recipe_scratch_add(out, "sums", OI_F32, out_height * w->stride * pitch);
    oi_recipe_scratch_add(out, "filled", OI_F32, is_short ? x->dims[1] * tile : 0);
    const int64_t sizes[] = {x->dims[0],  x->dims[1], h->in,
                             w->in,       m,          out_height,
                             out_width,   h->kernel,  w->kernel,
                             h->stride,   w->stride,  h->dilation,
                             w->dilation, h->before,  w->before,
                             pitch,       lead,       q->n_in > 2,
                             band,        high,       is_short ? tile : 0};
    for (size_t i = 0; i < OI_COUNT(sizes); i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, sizes[i]);
    oi_recipe_arg_add(out, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(out, OI_ARG_LAST, 0);
    out->bounds = out->n_args;
    oi_recipe_arg_real(out, -INFINITY);
    oi_recipe_arg_real(out, INFINITY);
    out->extent = m;
    out->unit = 1;
    out->split_dim = 1;
    out->percent = 50; /* planes are added, and edges of tiles are for nothing */
}

/* Of one group, whose filters are weights: they become rows. A tile is loaded as a whole, so a
 * plane of x that holds none is filled up. */
bool oi_recipe_conv_transpose(const oi_recipe_call *rc, oi_recipe_plan *out)
{
    const oi_kernel_query *q = rc->q;
    const uint32_t n = q->in[0].rank - 2;
    const int64_t lanes = oi_recipe_lanes(rc->target);
    if (n < 1 || n > 2 || !oi_conv_is_f32(q) || !rc->is_weight[1] || rc->rows ||
        oi_conv_group(q) != 1)
        return false;
    const oi_window w = window_of(q, n - 1);
    const oi_window h =
        n == 2 ? window_of(q, 0) : (oi_window){.in = 1, .kernel = 1, .stride = 1, .dilation = 1};
    const oi_operand *y = &q->out[0];
    const int64_t out_width = y->dims[n + 1], out_height = n == 2 ? y->dims[2] : 1;
    const bool is_short = h.in * w.in < 3 * lanes;
    if (w.before < 0 || h.before < 0 || h.in * w.in == 0 ||
        (is_short && q->in[0].dims[1] > FILLED / (3 * lanes)) || out_width * out_height == 0 ||
        q->in[0].dims[0] == 0 || q->in[0].dims[1] == 0 || y->dims[1] == 0 || w.stride > COLUMNS ||
        w.kernel > COLUMNS / h.kernel || w.before > SUMS || w.dilation > SUMS / w.kernel)
        return false;
    const int64_t lead = up(w.before, w.stride); /* columns that are cut off */
    const int64_t reach = lead + w.in + (w.kernel - 1) * w.dilation / w.stride + 1;
    const int64_t held = lead + up(out_width, w.stride), pitch = reach > held ? reach : held;
    const int64_t band = is_short ? h.in : band_of(&h, &w, lanes);
    if (pitch > SUMS / w.stride / out_height || band * w.in > SUMS / (h.kernel * w.kernel))
        return false;
    add(rc, &h, &w, band, pitch, lead, out);
    return true;
}
