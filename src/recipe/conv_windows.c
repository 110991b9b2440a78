/* conv_windows.c: the convolutions that conv.c leaves, for the body of conv_windows.h. */
#include "device/cost.h"
#include "recipe/recipe.h"

#include <math.h>

#define AXES 3
#define ROWS 262144 /* floats of rows of windows: a thread's stack may well hold 1 MB */
#define NEAR                                                                                 \
    65536 /* the same where there is a choice: they stay in the second cache for all filters \
           */
#define FEWEST 4 /* filters of a group: for less, rows of windows take longer than products */

static int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Axes from the last; others are trivial. */
static bool set_axes(const oi_kernel_query *q, oi_window *w, int64_t *out)
{
    const uint32_t n = q->in[0].rank - 2;
    bool is = n >= 1 && n <= AXES;
    for (uint32_t a = 0; is && a < AXES; a++) {
        w[a] = (oi_window){.in = 1, .kernel = 1, .stride = 1, .dilation = 1};
        out[a] = 1;
        if (a + n < AXES)
            continue;
        w[a] = oi_conv_window(q, a + n - AXES);
        out[a] = q->out[0].dims[2 + a + n - AXES];
        is = w[a].before >= 0;
    }
    return is;
}

static void add_sizes(const oi_recipe_call *rc, const oi_window *w, const int64_t *out_dims,
                      int64_t high, int64_t places, oi_recipe_plan *out)
{
    const oi_kernel_query *q = rc->q;
    const int64_t sizes[] = {q->in[0].dims[0], q->in[0].dims[1],
                             q->in[1].dims[0], oi_conv_group(q),
                             w[0].in,          w[1].in,
                             w[2].in,          out_dims[0],
                             out_dims[1],      out_dims[2],
                             w[0].kernel,      w[1].kernel,
                             w[2].kernel,      w[0].stride,
                             w[1].stride,      w[2].stride,
                             w[0].dilation,    w[1].dilation,
                             w[2].dilation,    w[0].before,
                             w[1].before,      w[2].before,
                             q->n_in > 2,      high,
                             out->n_packings,  places};
    for (size_t i = 0; i < OI_COUNT(sizes); i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, sizes[i]);
    oi_recipe_arg_add(out, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(out, OI_ARG_LAST, 0);
    out->bounds = out->n_args;
    oi_recipe_arg_real(out, -INFINITY);
    oi_recipe_arg_real(out, INFINITY);
}

bool oi_recipe_conv_windows(const oi_recipe_call *rc, oi_recipe_plan *out)
{
    const oi_kernel_query *q = rc->q;
    const int64_t lanes = oi_recipe_lanes(rc->target), high = 6, wide = 12 / high * lanes;
    oi_window w[AXES];
    int64_t dims[AXES];
    if (!oi_conv_is_f32(q) || rc->rows || !set_axes(q, w, dims))
        return false;
    const int64_t m = q->in[1].dims[0], groups = oi_conv_group(q),
                  all = dims[0] * dims[1] * dims[2];
    const int64_t taps = w[0].kernel * w[1].kernel * w[2].kernel, k = q->in[1].dims[1] * taps;
    if (m / groups < FEWEST || k == 0 || all == 0 || q->in[0].dims[0] == 0 || k > ROWS / wide)
        return false;
    int64_t tiles = NEAR / (k * wide);
    tiles = tiles < 1 ? 1 : tiles > up(all, wide) / wide ? up(all, wide) / wide : tiles;
    const int64_t places = (tiles < 8 ? tiles : 8) * wide;
    out->function = "oi_conv_blocks";
    if (groups == 1 && rc->is_weight[1]) {
        out->n_packings = 1;
        oi_recipe_panels(&out->packings[0], 1, m, k, 1, k, high);
    }
    oi_recipe_arg_add(out, OI_ARG_IN, 0);
    oi_recipe_arg_add(out, out->n_packings ? OI_ARG_PACKED : OI_ARG_IN, out->n_packings ? 0 : 1);
    oi_recipe_arg_add(out, OI_ARG_IN, q->n_in > 2 ? 2 : 0);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
    oi_recipe_scratch_add(out, "windows", OI_F32, k * places);
    add_sizes(rc, w, dims, high, places, out);
    out->extent = all;
    out->unit = places;
    out->is_scattered = true; /* places, of every filter */
    out->percent = 50;        /* windows become rows first */
    return true;
}
