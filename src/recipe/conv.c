/* conv.c: which convolutions the bodies of conv.h implement, and how. */
#include "device/cost.h"
#include "recipe/recipe.h"

#include <math.h>

#define SCRATCH 131072 /* floats: what a thread's stack may well hold */
#define LONG    12     /* places of a row that are worth lanes of their own */
#define SHORT   4      /* the same where there are no others: filters see few channels */
#define FEWEST  6      /* rows of a tile of gemm.h */

#define DEEP_PERCENT 40 /* a load for every product */
#define TALL         11 /* OI_CONV_TALL */
#define BAND         8  /* rows that are laid out together: each row of x about once */

#define ACROSS      8  /* lanes from which on filters may be lanes */
#define FEW         4  /* rows or panels for each thread: hard to share evenly */
#define TURNING     16 /* products that a vector of sums is worth which becomes places of filters */
#define NEAR_FLOATS 8192 /* numbers of a tile's places, above which they leave the first cache */

typedef oi_conv_call call;

static int64_t item(const oi_kernel_query *q, const char *name, size_t i, int64_t otherwise)
{
    const oi_op_value *v = oi_kernel_attr(q, name);
    if (v->tag == OI_VALUE_INT)
        return v->i;
    return v->tag == OI_VALUE_INT_LIST && i < v->n ? v->ints[i] : otherwise;
}

oi_window oi_conv_window(const oi_kernel_query *q, uint32_t axis)
{
    const uint32_t n = q->in[0].rank - 2;
    oi_window w = {.in = q->in[0].dims[2 + axis],
                   .kernel = q->in[1].dims[2 + axis],
                   .stride = item(q, "strides", axis, 1),
                   .dilation = item(q, "dilations", axis, 1),
                   .before = item(q, "pads", axis, 0),
                   .after = item(q, "pads", n + axis, 0)};
    oi_window_slide(&w, oi_auto_pad_find(oi_kernel_attr(q, "auto_pad")->s), false);
    return w;
}

static bool is_point(const oi_window *w)
{
    return w->kernel == 1 && w->stride == 1 && w->before == 0 && w->after == 0;
}

bool oi_conv_is_f32(const oi_kernel_query *q)
{
    bool is = q->out[0].dtype == OI_F32 && oi_kernel_accumulator(q) == OI_NONE;
    for (size_t i = 0; i < q->n_in; i++)
        is = is && q->in[i].dtype == OI_F32;
    return is;
}

int64_t oi_conv_group(const oi_kernel_query *q)
{
    return item(q, "group", 0, 1);
}

bool oi_conv_call_set(const oi_kernel_query *q, oi_conv_call *c)
{
    const oi_operand *x = &q->in[0], *w = &q->in[1], *out = &q->out[0];
    const uint32_t n = x->rank - 2;
    *c = (oi_conv_call){.batches = x->dims[0], .c = x->dims[1], .m = w->dims[0], .places = 1};
    c->has_bias = q->n_in > 2;
    c->is_points = true;
    for (uint32_t a = 0; a < n; a++) {
        oi_window v = oi_conv_window(q, a);
        c->is_points &= is_point(&v);
        c->places *= out->dims[2 + a];
    }
    if ((n > 2 && !c->is_points) || c->batches == 0 || c->c == 0 || c->m == 0 || c->places == 0)
        return false;
    c->y = (oi_window){.in = 1, .kernel = 1, .stride = 1, .dilation = 1};
    c->x = c->y;
    c->x.in = c->out_width = c->places;
    c->out_height = 1;
    if (n == 1 || n == 2) {
        c->x = oi_conv_window(q, n - 1);
        c->out_width = out->dims[n + 1];
    }
    if (n == 2) {
        c->y = oi_conv_window(q, 0);
        c->out_height = out->dims[2];
    }
    c->k = w->dims[1] * c->y.kernel * c->x.kernel;
    return c->k > 0 && c->y.before >= 0 && c->x.before >= 0;
}

/* -- plans -- */

/* x, w, b (or x again, when there is none) and the result. */
static void add_tensors(const call *c, oi_recipe_plan *out)
{
    oi_recipe_arg_add(out, OI_ARG_IN, 0);
    if (out->n_packings)
        oi_recipe_arg_add(out, OI_ARG_PACKED, 0);
    else
        oi_recipe_arg_add(out, OI_ARG_IN, 1);
    oi_recipe_arg_add(out, OI_ARG_IN, c->has_bias ? 2 : 0);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
}

static void add_sizes(oi_recipe_plan *out, const int64_t *sizes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, sizes[i]);
}

static int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Vectors that so many places take, `wide` at a time; what one holds takes one. */
static int64_t vectors_of(int64_t places, int64_t wide, int64_t lanes)
{
    const int64_t over = places % (wide * lanes);
    return places / (wide * lanes) * wide + (over > lanes ? wide : over > 0);
}

/* Filters in a tile, six or four: where less of the tiles at the edges is for nothing. More places
 * at a time take more of the first cache, which shows where windows have many. */
static int64_t high_of(const call *c, int64_t m, int64_t places, int64_t lanes)
{
    const int64_t four = up(m, 4) * vectors_of(places, 3, lanes);
    const int64_t six = up(m, 6) * vectors_of(places, 2, lanes);
    if (places < 3 * lanes)
        return 6;
    return four <= (c->is_points ? six : six * 7 / 8) ? 4 : 6;
}

/* All read what is not shared, so that is the smaller of x and w. */
int64_t oi_conv_shared_rows(const oi_recipe_call *rc, const oi_conv_call *c, int64_t places)
{
    const int64_t threads = oi_cost_machine(rc->target).threads;
    const int64_t unit = (places + c->out_width - 1) / c->out_width;
    return !rc->rows && rc->q->in[0].rank == 4 && c->out_height >= FEW * threads * unit &&
                   c->out_height % unit == 0 && c->c * c->y.in * c->x.in > c->m * c->k
               ? unit
               : 0;
}

void oi_conv_add_share(oi_recipe_plan *out, int64_t rows, int64_t m, int64_t shared)
{
    const bool by_rows = shared > 0;
    oi_recipe_arg_add(out, by_rows ? OI_ARG_FIRST : OI_ARG_ROW, 0);
    oi_recipe_arg_add(out, by_rows ? OI_ARG_LAST : OI_ARG_ROW_END, rows);
    oi_recipe_arg_add(out, by_rows ? OI_ARG_SIZE : OI_ARG_FIRST, 0);
    oi_recipe_arg_add(out, by_rows ? OI_ARG_SIZE : OI_ARG_LAST, m);
    if (by_rows) {
        out->split_dim = 2;
        out->extent = rows;
        out->unit = shared;
        out->streams = 0;
        out->repacks_input = false;
    }
}

/* The last arguments of bodies that compute a range of rows: of how many, and which. */
static void add_rows(const oi_recipe_call *rc, const call *c, int64_t height, int64_t out_height,
                     int64_t shared, oi_recipe_plan *out)
{
    oi_recipe_arg_add(out, OI_ARG_SIZE, rc->rows ? rc->kept : height);
    oi_recipe_arg_add(out, OI_ARG_SIZE, rc->rows ? rc->out_kept : out_height);
    oi_conv_add_share(out, out_height, c->m, shared);
    out->row_dim = rc->q->in[0].rank == 4 ? 2 : 0;
    out->row_step = c->y.stride;
    out->row_from = -c->y.before;
    out->row_to = (c->y.kernel - 1) * c->y.dilation - c->y.before;
}

/* Weights of one register tile are contiguous. */
static void pack_filters(const oi_recipe_call *rc, const call *c, int64_t high, oi_recipe_plan *out)
{
    if (!rc->is_weight[1])
        return;
    out->n_packings = 1;
    out->unit = high;
    out->streams = c->k * (int64_t)sizeof(float);
    oi_recipe_panels(&out->packings[0], 1, c->m, c->k, 1, c->k, high);
}

/* All places in a row, unless a range of rows is computed: those must be a tile wide then. */
static bool plan_points(const oi_recipe_call *rc, const call *c, int64_t lanes, oi_recipe_plan *out)
{
    const int64_t high = high_of(c, c->m, c->places, lanes);
    const int64_t shared = oi_conv_shared_rows(rc, c, 12 / high * lanes);
    const int64_t height = rc->rows || shared ? c->out_height : 1;
    const int64_t width = c->places / height;
    if (width * (shared ? shared : 1) < 2 * lanes)
        return false;
    out->function = "oi_conv_points";
    pack_filters(rc, c, high, out);
    add_tensors(c, out);
    const int64_t sizes[] = {c->batches, c->c,        c->m, height,
                             width,      c->has_bias, high, out->n_packings};
    add_sizes(out, sizes, OI_COUNT(sizes));
    add_rows(rc, c, height, height, shared, out);
    if (c->out_width < 12 / high * lanes)
        out->row_dim = 0;
    return true;
}

/* Rows of `width` places with their padding, of a length that whole vectors may be read from. */
static int64_t pitch_of(const call *c, int64_t width, int64_t wide, int64_t lanes)
{
    return up(up(width, wide) + (c->x.kernel - 1) * c->x.dilation / c->x.stride, lanes);
}

static int64_t rows_under(const call *c, int64_t rows)
{
    const int64_t n = (rows - 1) * c->y.stride + (c->y.kernel - 1) * c->y.dilation + 1;
    return n < c->y.in ? n : c->y.in;
}

/* Rows of the result that a channel is laid out for at a time: it should stay in the first cache.
 */
static int64_t band_of(const oi_recipe_call *rc, const call *c, int64_t pitch)
{
    const int64_t room = (int64_t)oi_cost_near(rc->target) * 2 / (int64_t)sizeof(float);
    int64_t band = rc->rows && rc->rows < c->out_height ? rc->rows : c->out_height;
    while (band > 1 && rows_under(c, band) * c->x.stride * pitch > room)
        band = (band + 1) / 2;
    return band;
}

/* Channels with their padding, as far as they are under `band` rows: an odd number of lines apart,
 * so that they do not share the same places of the first cache. */
static int64_t apart_of(const call *c, int64_t pitch, int64_t band)
{
    const int64_t under = (band - 1) * c->y.stride + (c->y.kernel - 1) * c->y.dilation + 1;
    return (up(under * c->x.stride * pitch, 16) / 16 | 1) * 16;
}

/* Rows of the result, at most so many, that channels are laid out for at a time; 0: there is no
 * room for any. */
static int64_t laid_out(const oi_recipe_call *rc, const call *c, int64_t channels, int64_t pitch,
                        int64_t most)
{
    const int64_t rows = rc->rows && rc->rows < c->out_height ? rc->rows : c->out_height;
    int64_t band = rows < most ? rows : most;
    while (band > 1 && channels > SCRATCH / apart_of(c, pitch, band))
        band = (band + 1) / 2;
    return channels > SCRATCH / apart_of(c, pitch, band) ? 0 : band;
}

/* Places of a row that channels are laid out for at a time, where there is no room for whole rows:
 * a multiple of `wide`; 0: there is no room for any. */
static int64_t span_of(const call *c, int64_t channels, int64_t wide, int64_t lanes)
{
    int64_t tiles = up(c->out_width, wide) / wide;
    while (tiles > 0 && channels > SCRATCH / apart_of(c, pitch_of(c, tiles * wide, wide, lanes), 1))
        tiles /= 2;
    return tiles * wide;
}

/* Rows of x with their padding in scratch: those under some rows of the result, of all channels
 * or of one. */
static bool plan_rows(const oi_recipe_call *rc, const call *c, int64_t groups, bool is_depthwise,
                      int64_t lanes, oi_recipe_plan *out)
{
    const int64_t high = is_depthwise ? 6 : high_of(c, c->m / groups, c->out_width, lanes);
    const int64_t wide = 12 / high * lanes;
    const int64_t whole = pitch_of(c, c->out_width, wide, lanes);
    const int64_t fits =
        is_depthwise ? band_of(rc, c, whole) : laid_out(rc, c, c->c / groups, whole, BAND);
    const int64_t span = fits ? c->out_width : span_of(c, c->c / groups, wide, lanes);
    const int64_t pitch = fits ? whole : pitch_of(c, span, wide, lanes), band = fits ? fits : 1;
    if (span == 0)
        return false;
    const int64_t under = is_depthwise ? rows_under(c, band) * c->x.stride * pitch : 0;
    const int64_t room = is_depthwise ? under : c->c / groups * apart_of(c, pitch, band);
    if (room > SCRATCH)
        return false;
    out->function = is_depthwise ? "oi_conv_depthwise" : "oi_conv_dense";
    out->percent = is_depthwise ? DEEP_PERCENT : 0;
    out->repacks_input = !is_depthwise;
    if (groups == 1)
        pack_filters(rc, c, high, out);
    add_tensors(c, out);
    oi_recipe_scratch_add(out, is_depthwise ? "padded" : "strip", OI_F32, room);
    const int64_t sizes[] = {c->batches,
                             c->c,
                             c->y.in,
                             c->x.in,
                             is_depthwise ? c->m / c->c : c->m,
                             c->out_height,
                             c->out_width,
                             c->y.kernel,
                             c->x.kernel,
                             c->y.stride,
                             c->x.stride,
                             c->y.dilation,
                             c->x.dilation,
                             c->y.before,
                             c->x.before,
                             pitch,
                             c->has_bias,
                             is_depthwise ? band : high,
                             out->n_packings,
                             groups,
                             band,
                             apart_of(c, pitch, band),
                             span};
    add_sizes(out, sizes, OI_COUNT(sizes) - (is_depthwise ? 5 : 0));
    add_rows(rc, c, c->y.in, c->out_height, is_depthwise ? 0 : oi_conv_shared_rows(rc, c, 1), out);
    return true;
}

/* Two rows of the result at a time. */
static bool plan_two(const oi_recipe_call *rc, const call *c, oi_recipe_plan *out)
{
    if (c->y.stride != 1 || c->x.stride != 1 || c->y.dilation != 1 || c->y.kernel > TALL)
        return false;
    out->function = "oi_conv_depthwise_two";
    out->percent = DEEP_PERCENT;
    add_tensors(c, out);
    const int64_t sizes[] = {c->batches,    c->c,         c->y.in,     c->x.in,     c->m / c->c,
                             c->out_height, c->out_width, c->y.kernel, c->x.kernel, c->x.dilation,
                             c->y.before,   c->x.before,  c->has_bias};
    add_sizes(out, sizes, OI_COUNT(sizes));
    add_rows(rc, c, c->y.in, c->out_height, 0, out);
    return true;
}

/* -- lanes are filters -- */

/* Places of a register tile: rows are taken in parts of equal length. */
static int64_t together(int64_t places, int64_t lanes)
{
    const int64_t most = lanes == 16 ? 14 : 6; /* OI_CONV_PLACES */
    const int64_t parts = (places + most - 1) / most;
    return (places + parts - 1) / parts;
}

/* Products of vectors for a row of places, where lanes are places and where they are filters. A
 * vector of places is multiplied by twelve filters, with a load for each, where it is the only one;
 * numbers that leave the first cache are waited for. */
static bool pays_across(const call *c, int64_t width, int64_t lanes)
{
    const int64_t high = high_of(c, c->m, width, lanes), wide = 12 / high,
                  own = together(width, lanes);
    int64_t along = up(c->m, high) * vectors_of(width, wide, lanes) * (c->k + TURNING / 4) * 6;
    if (!c->is_points && width <= lanes)
        along = along / 6 * 7;
    if (c->is_points && c->c * wide * lanes > NEAR_FLOATS)
        along = along / 6 * 8;
    return up(c->m, 2 * lanes) / lanes * up(width, own) * (c->k + TURNING) * 6 < along / 20 * 19;
}

static bool is_across(const oi_recipe_call *rc, const call *c, int64_t lanes)
{
    return lanes >= ACROSS && rc->is_weight[1] &&
           pays_across(c, c->is_points ? c->places : c->out_width, lanes);
}

static bool plan_points_across(const oi_recipe_call *rc, const call *c, int64_t lanes,
                               oi_recipe_plan *out)
{
    const int64_t shared = oi_conv_shared_rows(rc, c, together(c->places, lanes));
    const int64_t height = rc->rows || shared ? c->out_height : 1;
    const int64_t width = c->places / height;
    const int64_t places = together(width * (shared ? shared : 1), lanes);
    if (c->c > SCRATCH / lanes)
        return false;
    out->function = "oi_conv_points_across";
    out->repacks_input = true;
    pack_filters(rc, c, 2 * lanes, out);
    add_tensors(c, out);
    oi_recipe_scratch_add(out, "strip", OI_F32, c->c * lanes);
    const int64_t sizes[] = {c->batches, c->c, c->m, height, width, c->has_bias, places};
    add_sizes(out, sizes, OI_COUNT(sizes));
    add_rows(rc, c, height, height, shared, out);
    return true;
}

static bool plan_across(const oi_recipe_call *rc, const call *c, int64_t lanes, oi_recipe_plan *out)
{
    const int64_t pitch = c->out_width + (c->x.kernel - 1) * c->x.dilation / c->x.stride;
    const int64_t band = laid_out(rc, c, c->c, pitch, c->out_height),
                  apart = apart_of(c, pitch, band);
    if (band == 0)
        return false;
    out->function = "oi_conv_dense_across";
    out->repacks_input = true;
    pack_filters(rc, c, 2 * lanes, out);
    add_tensors(c, out);
    oi_recipe_scratch_add(out, "strip", OI_F32, c->c * apart);
    const int64_t sizes[] = {c->batches,    c->c,        c->y.in,
                             c->x.in,       c->m,        c->out_height,
                             c->out_width,  c->y.kernel, c->x.kernel,
                             c->y.stride,   c->x.stride, c->y.dilation,
                             c->x.dilation, c->y.before, c->x.before,
                             pitch,         c->has_bias, together(c->out_width, lanes),
                             band,          apart};
    add_sizes(out, sizes, OI_COUNT(sizes));
    add_rows(rc, c, c->y.in, c->out_height, oi_conv_shared_rows(rc, c, 1), out);
    return true;
}

/* All windows at once, and their sums. */
static bool fits_few(const call *c)
{
    return c->places <= SCRATCH / c->k && c->places <= SCRATCH / c->m;
}

/* -- rows end to end -- */

/* Places of some rows as one long row. */
static int64_t flat_places(const call *c, int64_t rows)
{
    return (rows - 1) * (c->out_width + (c->x.kernel - 1) * c->x.dilation) + c->out_width;
}

/* Products of vectors without it: rows by themselves, filters across lanes, or else rows of windows
 * (conv_windows.h), each number of which takes about three. */
static int64_t cost_otherwise(const call *c, int64_t lanes)
{
    const int64_t high = high_of(c, c->m, c->out_width, lanes), wide = 12 / high;
    const int64_t along = up(c->m, high) * vectors_of(c->out_width, wide, lanes) * c->out_height *
                          (c->k + TURNING / 4);
    const int64_t across = up(c->m, 2 * lanes) / lanes *
                           up(c->out_width, together(c->out_width, lanes)) * c->out_height *
                           (c->k + TURNING);
    if (c->out_width < LONG && !fits_few(c))
        return (up(c->m, 6) * up(c->places, lanes) / lanes + 3 * c->places) * c->k;
    return along < across || lanes < ACROSS ? along : across;
}

#define FILTERS 12

/* Copies of the results count where windows are small. Some of the filters alone, as a part of the
 * weights in memory has them, take the same body: so many are judged. */
static bool pays_flat(const call *all, int64_t lanes)
{
    call c = *all;
    c.m = FILTERS;
    const int64_t places = flat_places(&c, c.out_height);
    const int64_t high = high_of(&c, c.m, places, lanes);
    const int64_t flat = up(c.m, high) * (up(places, 12 / high * lanes) / lanes) * (c.k + TURNING);
    return flat * 8 < 7 * cost_otherwise(&c, lanes);
}

static bool plan_flat(const oi_recipe_call *rc, const call *c, int64_t lanes, oi_recipe_plan *out)
{
    const int64_t pitch = c->out_width + (c->x.kernel - 1) * c->x.dilation;
    if (c->y.stride != 1 || c->x.stride != 1 || c->out_height < 2 || !pays_flat(c, lanes))
        return false;
    const int64_t high = high_of(c, c->m, flat_places(c, c->out_height), lanes);
    const int64_t wide = 12 / high * lanes, band = laid_out(rc, c, c->c, pitch, c->out_height);
    const int64_t apart = apart_of(c, pitch, band), held = up(flat_places(c, band), wide);
    if (band < 2 || held > SCRATCH / high)
        return false;
    out->function = "oi_conv_flat";
    out->repacks_input = true;
    pack_filters(rc, c, high, out);
    out->unit = high;
    add_tensors(c, out);
    oi_recipe_scratch_add(out, "strip", OI_F32, c->c * apart + wide);
    oi_recipe_scratch_add(out, "made", OI_F32, high * held);
    const int64_t sizes[] = {
        c->batches,    c->c,         c->y.in,         c->x.in,     c->m,
        c->out_height, c->out_width, c->y.kernel,     c->x.kernel, c->y.dilation,
        c->x.dilation, c->y.before,  c->x.before,     pitch,       held,
        c->has_bias,   high,         out->n_packings, band,        apart};
    add_sizes(out, sizes, OI_COUNT(sizes));
    add_rows(rc, c, c->y.in, c->out_height, oi_conv_shared_rows(rc, c, 1), out);
    return true;
}

static bool plan_few(const call *c, bool is_weight, int64_t lanes, oi_recipe_plan *out)
{
    if (!fits_few(c) || (!is_weight && c->k > SCRATCH / (2 * lanes)))
        return false;
    out->function = is_weight ? "oi_conv_lanes" : "oi_conv_lanes_two";
    out->n_packings = is_weight;
    if (is_weight)
        oi_recipe_panels(&out->packings[0], 1, c->m, c->k, 1, c->k, 2 * lanes);
    add_tensors(c, out);
    out->repacks_input = true;
    oi_recipe_scratch_add(out, "windows", OI_F32, c->places * c->k);
    oi_recipe_scratch_add(out, "sums", OI_F32, c->places * c->m);
    if (!is_weight)
        oi_recipe_scratch_add(out, "room", OI_F32,
                              c->places < FEWEST ? c->k * 2 * lanes
                                                 : oi_recipe_room(c->m, 2 * lanes));
    const int64_t sizes[] = {c->batches,    c->c,          c->y.in,      c->x.in,
                             c->m,          c->out_height, c->out_width, c->y.kernel,
                             c->x.kernel,   c->y.stride,   c->x.stride,  c->y.dilation,
                             c->x.dilation, c->y.before,   c->x.before,  c->has_bias};
    add_sizes(out, sizes, OI_COUNT(sizes));
    oi_recipe_arg_add(out, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(out, OI_ARG_LAST, 0);
    out->unit = 2 * lanes;
    return true;
}

static bool plan_body(const oi_recipe_call *rc, const call *c, int64_t group, int64_t lanes,
                      oi_recipe_plan *out)
{
    const bool is_points = c->is_points && c->places >= 2 * lanes;
    const bool is_long = c->out_width >= LONG;
    if (group > 1)
        return c->out_width >= SHORT && ((group == c->c && plan_two(rc, c, out)) ||
                                         plan_rows(rc, c, group, group == c->c, lanes, out));
    if (is_points && is_across(rc, c, lanes) && plan_points_across(rc, c, lanes, out))
        return true;
    if (is_points)
        return plan_points(rc, c, lanes, out);
    if (plan_flat(rc, c, lanes, out))
        return true;
    if (is_long && is_across(rc, c, lanes) && plan_across(rc, c, lanes, out))
        return true;
    return (is_long && plan_rows(rc, c, 1, false, lanes, out)) ||
           plan_few(c, rc->is_weight[1], lanes, out);
}

static bool plan(const oi_recipe_call *rc, int64_t lanes, oi_recipe_plan *out)
{
    call c;
    if (!oi_conv_is_f32(rc->q) || !oi_conv_call_set(rc->q, &c))
        return false;
    out->unit = 1;
    out->extent = c.m;
    out->split_dim = 1;
    if (!plan_body(rc, &c, oi_conv_group(rc->q), lanes, out))
        return false;
    out->bounds = out->n_args;
    oi_recipe_arg_real(out, -INFINITY);
    oi_recipe_arg_real(out, INFINITY);
    return true;
}

bool oi_recipe_conv(const oi_recipe_call *c, oi_recipe_plan *out)
{
    return plan(c, oi_recipe_lanes(c->target), out);
}
