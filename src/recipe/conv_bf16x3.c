/* conv_bf16x3.c: which convolutions the bodies of amx/conv_bf16x3.h take, and the panels of their
 * weights. */
#include "device/cost.h"
#include "recipe/recipe.h"

#include <math.h>

#define FILTERS 32                 /* of a panel: two tiles of sums */
#define STEP    32                 /* channels */
#define TILE    512                /* numbers in a tile of filters */
#define GROUP   32                 /* places of a register tile */
#define ROOM    (64 * 1024 * 1024) /* bytes: of parts of x, at most */

#define SCRATCH 131072 /* numbers: what a thread's stack may well hold */
#define PLANE   48     /* OI_CONV_PARTS_PLANE */

/* Steps in vectors for each number that is split, or just before it is met, and for each that comes
 * out. */
#define SPLITTING 40
#define SPLIT_NOW 16
#define PUTTING   10

enum { P_M, P_C, P_PLACES };

typedef oi_conv_call call;

static int64_t up(int64_t x, int64_t to)
{
    return (x + to - 1) / to;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* -- packing -- */

/* w (m, c, places) */
static void pack(const oi_packing *p, const void *const *in, void *out)
{
    const int64_t m = p->sizes[P_M], c = p->sizes[P_C], places = p->sizes[P_PLACES];
    const int64_t steps = up(c, STEP), panels = up(m, FILTERS);
    const float *w = in[0];
    uint16_t *to = out, *nonfinite = to + panels * steps * places * 6 * TILE;
    memset(out, 0, (size_t)p->size_bytes);
    for (int64_t f = 0; f < m; f++)
        for (int64_t i = 0; i < c * places; i++) {
            const int64_t at = (f / FILTERS * steps + i / places / STEP) * places + i % places;
            uint16_t parts[3];
            nonfinite[f / FILTERS] |= oi_bf16x3_split(w[f * c * places + i], 3, parts);
            for (int64_t part = 0; part < 3; part++)
                to[(at * 3 + part) * 2 * TILE + f % FILTERS * STEP + i / places % STEP] =
                    parts[part];
        }
}

static void set_packing(const call *c, oi_packing *to)
{
    const int64_t places = c->y.kernel * c->x.kernel, panels = up(c->m, FILTERS);
    *to = (oi_packing){.name = "tiles of filters in parts",
                       .n_in = 1,
                       .in = {1},
                       .sizes = {c->m, c->c, places},
                       .dtype = OI_U16,
                       .pack = pack};
    to->size_bytes = (uint64_t)(panels * up(c->c, STEP) * places * 6 * TILE + up(panels, 32) * 32) *
                     sizeof(uint16_t);
}

/* -- x in parts -- */

/* Rows are as far apart as they are wide, and what is wider of both sides of padding. */
static int64_t pitch_of(const call *c)
{
    return c->x.in + larger(c->x.before, c->x.after);
}

/* Numbers of an image with its padding: an odd number of lines. */
static int64_t plane_of(const call *c)
{
    const int64_t rows = c->y.before + c->y.in + c->y.after;
    return (up(rows * pitch_of(c) + c->x.before + c->x.after, 16) | 1) * 16;
}

static int64_t pairs_of(const call *c)
{
    return up(c->c, STEP) * STEP / 2;
}

static const oi_recipe splitting = {"pairs of channels in parts", OI_OP_COUNT, true, NULL};

static void add_ready(const call *c, oi_recipe_plan *out)
{
    oi_prologue *r = &out->prologue;
    const int64_t sizes[] = {c->c,        c->y.in,     c->x.in,    c->y.before,
                             c->x.before, pitch_of(c), plane_of(c)};
    r->function = "oi_conv_bf16x3_split";
    r->recipe = &splitting;
    r->verb = "split";
    r->doc = "x in parts of bf16, its channels in pairs, with its padding.";
    r->rows = pairs_of(c);
    oi_recipe_prologue_add(out, "pairs", OI_U32, 3 * plane_of(c));
    oi_recipe_prologue_add(out, "nonfinite", OI_U8, 1);
    for (size_t i = 0; i < OI_COUNT(sizes); i++)
        r->sizes[r->n_sizes++] = sizes[i];
}

/* -- whether it pays -- */

static double time_of(const oi_device_info *t, uint64_t macs, uint64_t ops, double percent)
{
    const oi_machine m = oi_cost_machine(t);
    const oi_work_size w = {.macs = macs, .ops = ops, .percent = percent};
    return oi_cost_time(&m, &w);
}

/* Weights stay near while x streams by, rather than the other way round. */
static bool is_small(const call *c)
{
    return c->m * c->k < c->c * c->y.in * c->x.in;
}

static bool pays(const oi_device_info *t, const call *c)
{
    const int64_t steps = c->is_points && is_small(c) ? SPLIT_NOW : SPLITTING;
    const int64_t places = up(c->out_height * pitch_of(c), 16) * 16;
    const int64_t k = up(c->c, STEP) * STEP * c->y.kernel * c->x.kernel;
    const uint64_t ops = (uint64_t)(steps * c->c * c->y.in * c->x.in + PUTTING * c->m * c->places);
    return time_of(t, (uint64_t)(up(c->m, FILTERS) * FILTERS * k * places), 0,
                   oi_cost_tiles(t, 1.0 / 6)) +
               time_of(t, 0, ops, 100) <
           time_of(t, (uint64_t)(c->m * c->k * c->places), 0, 85);
}

/* Windows side by side, and places enough for a group in what threads share. */
static bool fits(const call *c)
{
    return c->batches == 1 && c->y.stride == 1 && c->x.stride == 1 && c->x.after >= 0 &&
           c->y.after >= 0 && c->out_width <= pitch_of(c) && c->places >= GROUP &&
           c->c * plane_of(c) <= ROOM / 6;
}

/* -- plans -- */

static void add_sizes(oi_recipe_plan *out, const int64_t *sizes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, sizes[i]);
}

static void add_tensors(const call *c, oi_recipe_plan *out)
{
    oi_recipe_arg_add(out, OI_ARG_PACKED, 0);
    oi_recipe_arg_add(out, OI_ARG_IN, c->has_bias ? 2 : 0);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
}

static void plan_points(const oi_recipe_call *rc, const call *c, oi_recipe_plan *out)
{
    const int64_t shared = oi_conv_shared_rows(rc, c, GROUP);
    const int64_t height = shared ? c->out_height : 1;
    out->function = "oi_conv_bf16x3_points";
    out->repacks_input = true;
    oi_recipe_arg_add(out, OI_ARG_IN, 0);
    add_tensors(c, out);
    oi_recipe_scratch_add(out, "pairs", OI_U32, pairs_of(c) * 3 * PLANE);
    oi_recipe_scratch_add(out, "sums", OI_F32, FILTERS * GROUP);
    const int64_t sizes[] = {c->c, c->m, height, c->places / height, c->has_bias};
    add_sizes(out, sizes, OI_COUNT(sizes));
    oi_conv_add_share(out, height, c->m, shared);
}

static void plan_ready(const oi_recipe_call *rc, const call *c, oi_recipe_plan *out)
{
    const int64_t shared = oi_conv_shared_rows(rc, c, GROUP + pitch_of(c) - c->out_width);
    out->function = "oi_conv_bf16x3";
    add_ready(c, out);
    add_tensors(c, out);
    oi_recipe_scratch_add(out, "sums", OI_F32, FILTERS * GROUP);
    const int64_t sizes[] = {
        c->c,          c->m,          c->out_height,
        c->out_width,  c->y.kernel,   c->x.kernel,
        c->y.dilation, c->x.dilation, pitch_of(c),
        plane_of(c),   c->has_bias,   is_small(c) ? 1 : up(c->out_height * pitch_of(c), GROUP)};
    add_sizes(out, sizes, OI_COUNT(sizes));
    oi_conv_add_share(out, c->out_height, c->m, shared);
}

static void plan(const oi_recipe_call *rc, const call *c, oi_recipe_plan *out)
{
    out->n_packings = 1;
    set_packing(c, &out->packings[0]);
    out->extent = c->m;
    out->split_dim = 1;
    out->unit = FILTERS;
    if (c->is_points && is_small(c) && pairs_of(c) * 3 * PLANE <= SCRATCH)
        plan_points(rc, c, out);
    else
        plan_ready(rc, c, out);
    out->bounds = out->n_args;
    oi_recipe_arg_real(out, -INFINITY);
    oi_recipe_arg_real(out, INFINITY);
    out->percent = oi_cost_tiles(rc->target, 1.0 / 6);
}

bool oi_recipe_conv_bf16x3(const oi_recipe_call *rc, oi_recipe_plan *out)
{
    call c;
    if (!rc->may_regroup || rc->rows || !oi_recipe_height(rc->target, "amx") || !rc->is_weight[1] ||
        !oi_conv_is_f32(rc->q) || oi_conv_group(rc->q) != 1 || !oi_conv_call_set(rc->q, &c) ||
        !fits(&c) || !pays(rc->target, &c))
        return false;
    plan(rc, &c, out);
    return true;
}
