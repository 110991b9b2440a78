/* bytes.c: which byte products the bodies of bytes.h implement, and how. */
#include "recipe/pack.h"
#include "recipe/recipe.h"

#define PLACES  192    /* of the result per band: a multiple of six and of lanes */
#define NEAR    65536  /* numbers of a strip that stay near */
#define SCRATCH 262144 /* what a thread's stack may well hold of them */
#define WIDEST  4096   /* places of a row */

#define DOT4_PLACES       256  /* of the result per band */
#define DOT4_NEAR         8192 /* 4-byte groups of a strip that stay in the first cache */
#define DOT4_PERCENT      70
#define TILES_PERCENT     200  /* of what vectors multiply */
#define DEEP_DOT4_PERCENT 9    /* three of four bytes, and what is not a product */
#define DEEP_NEAR         8192 /* pairs: first cache */
#define DEEP_PERCENT      20   /* a load for every product, and of three rows' products one is 0 */

/* -- what is multiplied -- */

enum { NONE = -1 };

/* Which inputs of a call are what; NONE: there is no such. */
typedef struct task {
    const oi_recipe_call *rc;
    int x_zero, w, w_zero, scales, bias, y_zero; /* scales: of x; those of w and y lie 3 and 5 on */
    int64_t kind;                                /* of oi_bytes_end; NONE: the kernel finishes */
    oi_kernel_query q;                           /* of x and w alone */
    oi_operand in[2];
} task;

static bool is_byte(oi_dtype t)
{
    return t == OI_I8 || t == OI_U8;
}

static const oi_operand *operand(const task *t, int input)
{
    return &t->rc->q->in[input];
}

/* What the plan packs must be weights, and the kernel's own ends are for plain i8. */
static bool takes(task *t)
{
    const oi_kernel_query *q = t->rc->q;
    const int packed[] = {t->w, t->w_zero, t->scales, t->scales == NONE ? NONE : t->scales + 3,
                          t->scales == NONE ? NONE : t->scales + 5};
    t->in[0] = q->in[0];
    t->in[1] = *operand(t, t->w);
    t->q = *q;
    t->q.in = t->in;
    t->q.n_in = 2;
    for (size_t i = 0; i < OI_COUNT(packed); i++)
        if (packed[i] != NONE && !t->rc->is_weight[packed[i]])
            return false;
    if (t->kind == NONE)
        return t->in[0].dtype == OI_I8 && t->in[1].dtype == OI_I8 && q->out[0].dtype == OI_I32 &&
               oi_kernel_accumulator(q) == OI_I32;
    return !t->rc->rows && is_byte(t->in[0].dtype) && is_byte(t->in[1].dtype) &&
           (t->x_zero == NONE || operand(t, t->x_zero)->dtype == t->in[0].dtype) &&
           (t->w_zero == NONE || operand(t, t->w_zero)->dtype == t->in[1].dtype);
}

/* A call with sums of its own: op(x, w, x_zp, w_zp). */
static task integer_task(const oi_recipe_call *rc)
{
    const size_t n = rc->q->n_in;
    return (task){.rc = rc,
                  .x_zero = n > 2 ? 2 : NONE,
                  .w = 1,
                  .w_zero = n > 3 ? 3 : NONE,
                  .scales = NONE,
                  .bias = NONE,
                  .y_zero = NONE,
                  .kind = 2};
}

/* op(x, x_scale, x_zp, w, w_scale, w_zp, y_scale, y_zp, b) */
static task scaled_task(const oi_recipe_call *rc)
{
    return (task){.rc = rc,
                  .x_zero = 2,
                  .w = 3,
                  .w_zero = 5,
                  .scales = 1,
                  .bias = rc->q->n_in > 8 ? 8 : NONE,
                  .y_zero = 7,
                  .kind = rc->q->out[0].dtype == OI_U8};
}

static task plain_task(const oi_recipe_call *rc)
{
    return (task){.rc = rc,
                  .x_zero = NONE,
                  .w = 1,
                  .w_zero = NONE,
                  .scales = NONE,
                  .bias = NONE,
                  .y_zero = NONE,
                  .kind = NONE};
}

/* -- packed filters -- */

/* How many zero points w has: of `filters` one each, one for all, or none. False: otherwise. */
static bool count_zeros(const task *t, int64_t filters, int64_t *out)
{
    *out = t->w_zero == NONE ? 0 : oi_operand_count(operand(t, t->w_zero));
    return *out == filters || *out == (t->w_zero != NONE);
}

/* The filters, and the factors of what is scaled. */
static bool add_packings(const task *t, int64_t filters, oi_packing w, oi_recipe_plan *out)
{
    w.in[0] = (uint32_t)t->w;
    w.in[1] = (uint32_t)t->w_zero;
    w.n_in = t->w_zero == NONE ? 1 : 2;
    out->packings[out->n_packings++] = w;
    if (t->scales == NONE)
        return true;
    const uint32_t x = (uint32_t)t->scales;
    const int64_t scales = oi_operand_count(&t->rc->q->in[x + 3]);
    out->packings[out->n_packings++] = (oi_packing){.name = "factors of filters",
                                                    .n_in = 3,
                                                    .in = {x, x + 3, x + 5},
                                                    .sizes = {filters, scales},
                                                    .size_bytes = (uint64_t)filters * sizeof(float),
                                                    .dtype = OI_F32,
                                                    .pack = oi_pack_factors};
    return (scales == 1 || scales == filters) && oi_operand_count(operand(t, t->scales)) == 1;
}

static bool add_filters(const task *t, const int64_t sizes[OI_PACK_SIZES], oi_recipe_plan *out)
{
    const int64_t filters = sizes[GROUPS] * oi_pack_up(sizes[FILTERS], sizes[LANES]);
    oi_packing p = {.name = "pairs of vectors of filters",
                    .size_bytes = (uint64_t)(filters * sizes[RUNS] * sizes[PAIRS] * 4),
                    .dtype = OI_I16,
                    .pack = oi_pack_filters};
    memcpy(p.sizes, sizes, sizeof p.sizes);
    return count_zeros(t, sizes[GROUPS] * sizes[FILTERS], &p.sizes[ZEROS]) &&
           add_packings(t, sizes[GROUPS] * sizes[FILTERS], p, out);
}

static bool add_dot4(const task *t, const int64_t sizes[OI_PACK_SIZES], oi_recipe_plan *out)
{
    const int64_t filters = sizes[GROUPS] * sizes[FILTERS];
    const int64_t groups_of_4 =
        sizes[GROUPS] * oi_pack_up(sizes[FILTERS], 16) * sizes[RUNS] * sizes[PAIRS];
    oi_packing p = {.name = "4-byte groups of 16 filters",
                    .size_bytes = (uint64_t)(groups_of_4 * sizes[TAPS] + 2 * filters + 1) * 4,
                    .dtype = OI_I32,
                    .pack = oi_pack_dot4};
    memcpy(p.sizes, sizes, sizeof p.sizes);
    return count_zeros(t, filters, &p.sizes[ZEROS]) && add_packings(t, filters, p, out);
}

static bool add_depthwise_dot4(const task *t, int64_t filters, int64_t kh, int64_t kw,
                               oi_recipe_plan *out)
{
    oi_packing p = {
        .name = "4-byte groups of rows",
        .sizes = {1, filters, 1, kh * kw, 1, 1, kw, kh * kw, kh * kw, t->in[1].dtype == OI_U8},
        .size_bytes = (uint64_t)((filters + 1) * kh * oi_pack_up(kw, 4) + (2 * filters + 1) * 4),
        .dtype = OI_I32,
        .pack = oi_pack_depthwise_dot4};
    return count_zeros(t, filters, &p.sizes[ZEROS]) && add_packings(t, filters, p, out);
}

static bool add_rows_of_filters(const task *t, int64_t filters, int64_t kh, int64_t kw,
                                oi_recipe_plan *out)
{
    oi_packing p = {.name = "pairs of rows",
                    .sizes = {filters, kh, kw, t->in[1].dtype == OI_U8},
                    .size_bytes = (uint64_t)(filters * ((kh + 1) / 2) * kw * 4),
                    .dtype = OI_I32,
                    .pack = oi_pack_rows};
    return count_zeros(t, filters, &p.sizes[4]) && add_packings(t, filters, p, out);
}

/* -- plans -- */

/* An input, or x where there is none. */
static void add_input(int input, oi_recipe_plan *out)
{
    oi_recipe_arg_add(out, OI_ARG_IN, input == NONE ? 0 : input);
}

/* The first arguments: tensors. */
static void add_tensors(const task *t, bool has_bias, oi_recipe_plan *out)
{
    out->is_int8 = true;
    oi_recipe_arg_add(out, OI_ARG_IN, 0);
    if (t->kind == NONE) {
        oi_recipe_arg_add(out, OI_ARG_PACKED, 0);
        oi_recipe_arg_add(out, OI_ARG_EPILOGUE, 0);
        return;
    }
    add_input(t->x_zero, out);
    oi_recipe_arg_add(out, OI_ARG_PACKED, 0);
    if (t->scales == NONE)
        add_input(NONE, out);
    else
        oi_recipe_arg_add(out, OI_ARG_PACKED, 1);
    if (has_bias)
        add_input(t->bias, out);
    add_input(t->y_zero, out);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
}

static void add_sizes(oi_recipe_plan *out, const int64_t *sizes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, sizes[i]);
}

/* What the numbers are; `last`: whether there is a bias, or where zero points of rows lie. */
static void add_kind(const task *t, int64_t last, oi_recipe_plan *out)
{
    const int64_t kinds[] = {t->in[0].dtype == OI_U8, t->kind, t->x_zero != NONE, last};
    if (t->kind != NONE)
        add_sizes(out, kinds, OI_COUNT(kinds));
}

static void add_share(oi_recipe_plan *out)
{
    oi_recipe_arg_add(out, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(out, OI_ARG_LAST, 0);
}

/* The last arguments of a convolution: which rows, and of how many. */
static void add_rows(const oi_recipe_call *rc, const oi_conv_call *c, oi_recipe_plan *out)
{
    oi_recipe_arg_add(out, OI_ARG_SIZE, rc->rows ? rc->kept : c->y.in);
    oi_recipe_arg_add(out, OI_ARG_SIZE, rc->rows > 0);
    oi_recipe_arg_add(out, OI_ARG_ROW, 0);
    oi_recipe_arg_add(out, OI_ARG_ROW_END, c->out_height);
    add_share(out);
}

/* Row r of the result is made of rows of x: who finishes sums may ask for some. */
static void set_rows(const task *t, const oi_conv_call *c, oi_recipe_plan *out)
{
    if (t->kind != NONE)
        return;
    out->epilogue[0] = 1;
    out->epilogue[1] = 2;
    out->row_dim = t->in[0].rank == 4 ? 2 : 0;
    out->row_step = c->y.stride;
    out->row_from = -c->y.before;
    out->row_to = (c->y.kernel - 1) * c->y.dilation - c->y.before;
}

/* A convolution whose rows are long or of one place: those of windows of one place are all of its
 * places, and what has no height is turned, so that the body may cut it anywhere. */
static void turn(oi_conv_call *c, uint32_t rank)
{
    const oi_window none = {.in = 1, .kernel = 1, .stride = 1, .dilation = 1};
    if (c->is_points) {
        c->y = c->x = none;
        c->y.in = c->out_height = c->places;
        c->out_width = 1;
    } else if (rank == 3) {
        c->y = c->x;
        c->x = none;
        c->out_height = c->out_width;
        c->out_width = 1;
    }
}

/* How a band is laid out. */
typedef struct strip {
    int64_t tall, columns, runs_y, runs_x, step_y, step_x, run, band, numbers;
} strip;

static bool set_strip(const oi_conv_call *c, int64_t groups, strip *s)
{
    const bool is_flat = c->x.in == 1 && c->out_width == 1 && c->x.kernel == 1 && !c->x.before;
    const bool joins_y = groups == 1 && is_flat && c->y.dilation == 1;
    const bool joins_x = groups == 1 && (c->x.dilation == 1 || c->x.kernel == 1);
    s->tall = (c->y.kernel - 1) * c->y.dilation + 1;
    s->columns = (c->out_width - 1) * c->x.stride + (c->x.kernel - 1) * c->x.dilation + 1;
    s->runs_y = joins_y ? 1 : c->y.kernel;
    s->runs_x = joins_x ? 1 : c->x.kernel;
    s->run = c->c / groups * (joins_y ? c->y.kernel : 1) * (joins_x ? c->x.kernel : 1);
    s->step_y = c->y.dilation * s->columns * c->c;
    s->step_x = c->x.dilation * c->c;
    s->band = c->out_width < PLACES ? PLACES / c->out_width : 1;
    s->band = s->band < c->out_height ? s->band : c->out_height;
    if (c->out_width > WIDEST || s->columns > SCRATCH / c->c)
        return false;
    const int64_t row = s->columns * c->c;
    while (s->band > 1 && (s->band - 1) * c->y.stride + s->tall > NEAR / row)
        s->band = (s->band + 1) / 2;
    s->numbers = ((s->band - 1) * c->y.stride + s->tall) * row + 2;
    return s->numbers <= SCRATCH;
}

/* Rows are shared out, or filters where there are few of those. */
static void share(const oi_recipe_call *rc, const oi_conv_call *c, int64_t groups, int64_t lanes,
                  oi_recipe_plan *out)
{
    const oi_operand *to = &rc->q->out[0];
    const bool by_filters = groups == 1 && to->dims[2] < 8 && c->m >= 4 * lanes;
    out->extent = by_filters ? c->m : to->dims[2];
    out->unit = by_filters ? 2 * lanes : 1;
    out->split_dim = by_filters ? 1 : 2;
}

static bool plan_windows(const task *t, oi_conv_call *c, int64_t groups, int64_t lanes,
                         oi_recipe_plan *out)
{
    strip s;
    if (!t->rc->rows)
        turn(c, t->in[0].rank);
    if (!set_strip(c, groups, &s))
        return false;
    const int64_t n = s.band * c->out_width, taps = c->y.kernel * c->x.kernel;
    const int64_t each = c->c / groups, filters = c->m / groups, pairs = (s.run + 1) / 2;
    if (!add_filters(t,
                     (int64_t[OI_PACK_SIZES]){groups, filters, each, taps, s.runs_y * s.runs_x,
                                              pairs, lanes, each * taps, taps,
                                              t->in[1].dtype == OI_U8},
                     out))
        return false;
    share(t->rc, c, groups, lanes, out);
    out->function = t->kind == NONE ? "oi_bytes_conv" : "oi_bytes_qconv";
    add_tensors(t, true, out);
    oi_recipe_scratch_add(out, "strip", OI_I16, s.numbers);
    oi_recipe_scratch_add(out, "sums", OI_I32, oi_pack_up(n, 3 * 16) * 2 * lanes);
    oi_recipe_scratch_add(out, "lines", OI_I32, oi_pack_up(n, lanes) * lanes);
    add_kind(t, t->bias != NONE, out);
    const int64_t sizes[] = {c->batches,
                             groups,
                             each,
                             c->y.in,
                             c->x.in,
                             filters,
                             c->out_height,
                             c->out_width,
                             s.tall,
                             c->y.stride,
                             c->x.stride,
                             c->y.before,
                             c->x.before,
                             s.columns,
                             s.runs_y,
                             s.runs_x,
                             s.step_y,
                             s.step_x,
                             pairs,
                             s.band,
                             c->out_height / t->q.out[0].dims[2],
                             out->split_dim == 1};
    add_sizes(out, sizes, OI_COUNT(sizes));
    add_rows(t->rc, c, out);
    return true;
}

/* -- where four bytes are multiplied at once -- */

/* How a band is laid out: dot4.h. */
typedef struct dot4 {
    int64_t each, phases, pitch, blocks, deep, plane, band, line, is_flat;
} dot4;

/* Vectors of a band's places. */
static int64_t vectors_of(const oi_conv_call *c, const dot4 *s)
{
    const int64_t side = s->is_flat ? (s->band - 1) * s->pitch + c->out_width : c->out_width;
    return oi_pack_up(side, 16) / 16 * (s->is_flat ? 1 : s->band);
}

/* False: there is no room, or half of the lanes and groups would be empty. */
static bool set_dot4(const oi_conv_call *c, int64_t groups, dot4 *s)
{
    const int64_t planes = (c->c / groups + 3) / 4, tall = (c->y.kernel - 1) * c->y.dilation + 1;
    const int64_t wide = (c->x.kernel - 1) * c->x.dilation + 1;
    s->each = c->c / groups;
    s->blocks = (planes + 15) / 16;
    s->deep = (planes + s->blocks - 1) / s->blocks;
    s->phases = c->x.stride < wide ? c->x.stride : wide;
    s->pitch = c->out_width + (wide - 1) / c->x.stride;
    s->is_flat = c->x.stride == 1 && c->y.stride == 1;
    s->band = c->out_width < DOT4_PLACES ? DOT4_PLACES / c->out_width : 1;
    s->band = s->band < c->out_height ? s->band : c->out_height;
    const int64_t all = groups * s->blocks * s->deep, row = s->phases * s->pitch;
    if (c->out_width > WIDEST || row > SCRATCH / all)
        return false;
    while (s->band > 1 && ((s->band - 1) * c->y.stride + tall) * row > DOT4_NEAR / all)
        s->band = (s->band + 1) / 2;
    s->plane = (oi_pack_up(((s->band - 1) * c->y.stride + tall) * row, 16) / 32 * 2 + 3) * 16;
    s->line = vectors_of(c, s) * 16;
    return s->plane * all <= SCRATCH / 2 &&
           s->line * s->blocks * s->deep * 4 <= 2 * s->band * c->out_width * s->each;
}

static bool plan_dot4(const task *t, oi_conv_call c, int64_t groups, oi_recipe_plan *out)
{
    dot4 s;
    const int64_t filters = c.m / groups;
    const bool has_tiles = oi_recipe_height(t->rc->target, "amx") > 0;
    if (!oi_recipe_height(t->rc->target, "avx512vnni"))
        return false;
    if (!t->rc->rows)
        turn(&c, t->in[0].rank);
    const int64_t taps = c.y.kernel * c.x.kernel;
    if (!set_dot4(&c, groups, &s) ||
        !add_dot4(t,
                  (int64_t[OI_PACK_SIZES]){groups, filters, s.each, taps, s.blocks, s.deep,
                                           !has_tiles, s.each * taps, taps,
                                           t->in[1].dtype == OI_U8},
                  out))
        return false;
    out->percent = has_tiles ? TILES_PERCENT : DOT4_PERCENT;
    share(t->rc, &c, groups, 16, out);
    out->function = t->kind == NONE ? "oi_dot4_conv" : "oi_dot4_qconv";
    add_tensors(t, true, out);
    oi_recipe_scratch_add(out, "strip", OI_I32, s.plane * groups * s.blocks * s.deep + 32);
    oi_recipe_scratch_add(out, "line", OI_I32, c.x.stride * s.pitch + 16);
    oi_recipe_scratch_add(out, "sums", OI_I32, 17 * s.line + 64);
    oi_recipe_scratch_add(out, "taps", OI_I32, s.blocks * s.deep * taps);
    add_kind(t, t->bias != NONE, out);
    if (t->kind != NONE)
        oi_recipe_arg_add(out, OI_ARG_SIZE, c.out_height);
    const int64_t sizes[] = {c.batches,
                             groups,
                             s.each,
                             c.y.in,
                             c.x.in,
                             filters,
                             c.out_width,
                             c.y.kernel,
                             c.x.kernel,
                             c.y.stride,
                             c.x.stride,
                             c.y.dilation,
                             c.x.dilation,
                             c.y.before,
                             c.x.before,
                             s.pitch,
                             s.phases,
                             s.blocks,
                             s.deep,
                             s.plane,
                             s.line,
                             s.is_flat,
                             s.band,
                             c.out_height / t->q.out[0].dims[2],
                             out->split_dim == 1};
    add_sizes(out, sizes, OI_COUNT(sizes));
    add_rows(t->rc, &c, out);
    return true;
}

/* The same where every filter has a channel of its own. */
static bool plan_depthwise_dot4(const task *t, const oi_conv_call *c, oi_recipe_plan *out)
{
    const int64_t across = (c->x.kernel + 3) / 4, tall = (c->y.kernel - 1) * c->y.dilation + 1;
    const int64_t phases = c->y.stride < tall ? c->y.stride : tall;
    const int64_t pitch =
        oi_pack_up(oi_pack_up(c->out_width, 16) * c->x.stride + 4 * across + 64, 64);
    int64_t band = t->rc->rows && t->rc->rows < c->out_height ? t->rc->rows : c->out_height;
    if (!oi_recipe_height(t->rc->target, "avx512vnni") || c->out_width > WIDEST ||
        (c->x.kernel > 1 && c->x.dilation > 1) || c->x.stride > 4 || tall > SCRATCH / pitch ||
        across * phases > 64)
        return false;
    while (band > 1 && ((band - 1) * c->y.stride + tall) * across * c->out_width > DEEP_NEAR)
        band = (band + 1) / 2;
    const int64_t rows = (band - 1) * c->y.stride + tall;
    const int64_t deep = (rows + c->y.stride - 1) / c->y.stride;
    const int64_t numbers = across * phases * deep * c->out_width + 64;
    if (rows * pitch > SCRATCH || numbers > SCRATCH / 2 ||
        !add_depthwise_dot4(t, c->m, c->y.kernel, c->x.kernel, out))
        return false;
    out->function = t->kind == NONE ? "oi_dot4_conv_depthwise" : "oi_dot4_qconv_depthwise";
    out->percent = DEEP_DOT4_PERCENT;
    out->extent = c->m;
    out->unit = 1;
    out->split_dim = 1;
    add_tensors(t, true, out);
    oi_recipe_scratch_add(out, "bytes", OI_I8, rows * pitch);
    oi_recipe_scratch_add(out, "strip", OI_I32, numbers);
    oi_recipe_scratch_add(out, "sums", OI_I32, 2 * oi_pack_up(band * c->out_width, 64) + 64);
    oi_recipe_scratch_add(out, "taps", OI_I32, c->y.kernel * across);
    add_kind(t, t->bias != NONE, out);
    if (t->kind != NONE)
        oi_recipe_arg_add(out, OI_ARG_SIZE, c->out_height);
    const int64_t sizes[] = {c->batches,    c->c,        c->y.in,     c->x.in,     c->m / c->c,
                             c->out_width,  c->y.kernel, c->x.kernel, c->y.stride, c->x.stride,
                             c->y.dilation, c->y.before, c->x.before, across,      phases,
                             deep,          pitch,       band};
    add_sizes(out, sizes, OI_COUNT(sizes));
    add_rows(t->rc, c, out);
    return true;
}

/* Every filter has a channel of its own. */
static bool plan_depthwise(const task *t, const oi_conv_call *c, int64_t lanes, oi_recipe_plan *out)
{
    const int64_t pitch =
        oi_pack_up(c->out_width, lanes) + (c->x.kernel - 1) * c->x.dilation / c->x.stride;
    const int64_t row = c->x.stride * pitch, below = (c->y.kernel - 1) / 2 * 2 * c->y.dilation + 1;
    int64_t band = t->rc->rows && t->rc->rows < c->out_height ? t->rc->rows : c->out_height;
    if (c->out_width > WIDEST || c->x.stride > SCRATCH / pitch || below > SCRATCH / row)
        return false;
    while (band > 1 && (band - 1) * c->y.stride + below > DEEP_NEAR / row)
        band = (band + 1) / 2;
    const int64_t pairs = ((band - 1) * c->y.stride + below) * row;
    if (pairs > SCRATCH / 2 || !add_rows_of_filters(t, c->m, c->y.kernel, c->x.kernel, out))
        return false;
    out->function = t->kind == NONE ? "oi_bytes_conv_depthwise" : "oi_bytes_qconv_depthwise";
    out->percent = DEEP_PERCENT;
    out->extent = c->m;
    out->unit = 1;
    out->split_dim = 1;
    add_tensors(t, true, out);
    oi_recipe_scratch_add(out, "pairs", OI_I32, pairs);
    oi_recipe_scratch_add(out, "sums", OI_I32, band * c->out_width + lanes);
    add_kind(t, t->bias != NONE, out);
    if (t->kind != NONE)
        oi_recipe_arg_add(out, OI_ARG_SIZE, c->out_height);
    const int64_t sizes[] = {c->batches,  c->c,         c->y.in,       c->x.in,
                             c->m / c->c, c->out_width, c->y.kernel,   c->x.kernel,
                             c->y.stride, c->x.stride,  c->y.dilation, c->x.dilation,
                             c->y.before, c->x.before,  pitch,         band};
    add_sizes(out, sizes, OI_COUNT(sizes));
    add_rows(t->rc, c, out);
    return true;
}

static bool plan_conv(task t, oi_recipe_plan *out)
{
    const int64_t groups = oi_kernel_attr(t.rc->q, "group")->i;
    const int64_t lanes = oi_recipe_lanes(t.rc->target);
    oi_conv_call c;
    if (!takes(&t) || t.in[0].rank < 3 || !oi_conv_call_set(&t.q, &c) ||
        (t.x_zero != NONE && oi_operand_count(operand(&t, t.x_zero)) != 1))
        return false;
    set_rows(&t, &c, out);
    const bool is_depthwise = groups > 1 && groups == c.c;
    oi_recipe_plan other = *out;
    if (is_depthwise ? plan_depthwise_dot4(&t, &c, &other) : plan_dot4(&t, c, groups, &other)) {
        *out = other;
        return true;
    }
    return is_depthwise ? plan_depthwise(&t, &c, lanes, out)
                        : plan_windows(&t, &c, groups, lanes, out);
}

/* Zero points of x: one, or one for each row of a single matrix. */
static bool zero_step(const task *t, int64_t rows, int64_t *out)
{
    const int64_t n = t->x_zero == NONE ? 1 : oi_operand_count(operand(t, t->x_zero));
    *out = n > 1;
    return n == 1 || (n == rows && t->in[0].rank == 2);
}

/* Where four bytes are multiplied at once, and rows are so many that eight of them pay. */
static bool plan_dense_dot4(const task *t, int64_t rows, int64_t k, int64_t m, int64_t step,
                            bool is_turned, oi_recipe_plan *out)
{
    const int64_t planes = (k + 3) / 4, blocks = (planes + 15) / 16;
    const int64_t deep = (planes + blocks - 1) / blocks, steps = blocks * deep;
    int64_t chunk = DOT4_NEAR * 2 / steps / 16 * 16;
    if (!oi_recipe_height(t->rc->target, "avx512vnni") || rows < 8 || m < 16 ||
        steps > SCRATCH / 2 / 16)
        return false;
    chunk = chunk < 16 ? 16 : chunk < oi_pack_up(rows, 16) ? chunk : oi_pack_up(rows, 16);
    oi_packing p = {.name = "4-byte groups of 32 columns",
                    .sizes = {1, m, k, 1, 1, steps, 0, is_turned ? k : 1, is_turned ? 1 : m,
                              t->in[1].dtype == OI_U8},
                    .size_bytes = (uint64_t)(oi_pack_up(m, 32) * steps + 2 * m + 1) * 4,
                    .dtype = OI_I32,
                    .pack = oi_pack_dense_dot4};
    if (!count_zeros(t, m, &p.sizes[ZEROS]) || !add_packings(t, m, p, out))
        return false;
    out->function = t->kind == NONE ? "oi_dot4_matmul" : "oi_dot4_qmatmul";
    out->percent = oi_recipe_height(t->rc->target, "amx") ? TILES_PERCENT : DOT4_PERCENT;
    out->unit = 32;
    out->streams = steps * 4;
    add_tensors(t, false, out);
    oi_recipe_scratch_add(out, "strip", OI_I32, chunk * steps + 16);
    oi_recipe_scratch_add(out, "sums", OI_I32, 16 * 32);
    oi_recipe_scratch_add(out, "taps", OI_I32, steps);
    oi_recipe_scratch_add(out, "of_x", OI_I32, chunk);
    add_kind(t, step, out);
    const int64_t sizes[] = {rows, k, m, blocks, deep, chunk};
    add_sizes(out, sizes, OI_COUNT(sizes));
    add_share(out);
    return true;
}

static bool plan_matmul(task t, bool is_turned, oi_recipe_plan *out)
{
    const int64_t lanes = oi_recipe_lanes(t.rc->target);
    int64_t rows = 1, step;
    if (!takes(&t) || t.in[0].rank < 2 || t.in[1].rank != 2)
        return false;
    const oi_operand *x = &t.in[0], *w = &t.in[1];
    const int64_t k = w->dims[is_turned], m = w->dims[!is_turned], pairs = (k + 1) / 2;
    for (uint32_t d = 0; d + 1 < x->rank; d++)
        rows *= x->dims[d];
    if (rows == 0 || k == 0 || m == 0 || k > SCRATCH / 6 || !zero_step(&t, rows, &step))
        return false;
    out->extent = m;
    out->split_dim = t.q.out[0].rank - 1;
    out->epilogue[0] = t.kind == NONE ? t.q.out[0].rank - 1 : 0;
    out->epilogue[1] = t.kind == NONE ? t.q.out[0].rank : 0;
    oi_recipe_plan other = *out;
    if (plan_dense_dot4(&t, rows, k, m, step, is_turned, &other)) {
        *out = other;
        return true;
    }
    if (!add_filters(&t,
                     (int64_t[OI_PACK_SIZES]){1, m, k, 1, 1, pairs, lanes, is_turned ? k : 1,
                                              is_turned ? 1 : m, w->dtype == OI_U8},
                     out))
        return false;
    out->function = t.kind == NONE ? "oi_bytes_matmul" : "oi_bytes_qmatmul";
    out->unit = 2 * lanes;
    out->streams = pairs * 4;
    add_tensors(&t, false, out);
    oi_recipe_scratch_add(out, "strip", OI_I16, 6 * 2 * pairs);
    oi_recipe_scratch_add(out, "sums", OI_I32, 6 * 2 * lanes);
    add_kind(&t, step, out);
    const int64_t sizes[] = {rows, k, m, pairs};
    add_sizes(out, sizes, OI_COUNT(sizes));
    add_share(out);
    return true;
}

/* -- rows of the table -- */

bool oi_recipe_bytes_conv(const oi_recipe_call *c, oi_recipe_plan *out)
{
    return plan_conv(plain_task(c), out);
}

bool oi_recipe_conv_integer(const oi_recipe_call *c, oi_recipe_plan *out)
{
    return plan_conv(integer_task(c), out);
}

bool oi_recipe_qconv(const oi_recipe_call *c, oi_recipe_plan *out)
{
    return plan_conv(scaled_task(c), out);
}

bool oi_recipe_bytes_matmul(const oi_recipe_call *c, oi_recipe_plan *out)
{
    return !oi_kernel_attr(c->q, "transpose_a")->b &&
           plan_matmul(plain_task(c), oi_kernel_attr(c->q, "transpose_b")->b, out);
}

bool oi_recipe_matmul_integer(const oi_recipe_call *c, oi_recipe_plan *out)
{
    return plan_matmul(integer_task(c), false, out);
}

bool oi_recipe_qmatmul(const oi_recipe_call *c, oi_recipe_plan *out)
{
    const task t = scaled_task(c);
    return t.bias == NONE && plan_matmul(t, false, out);
}
