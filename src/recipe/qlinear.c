/* qlinear.c: which calls of qlinear the bodies of qlinear.h implement, and the order of their
 * weights. */
#include "device/cost.h"
#include "recipe/recipe.h"

/* The numbers of a packing: what makes the layout. */
enum { P_N, P_K, P_GROUP, P_LANES, P_TYPE, P_SCALE_TYPE, P_HAS_OFFSET, P_BIAS_TYPE };

static int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static int64_t stored_bits(oi_dtype t)
{
    return oi_dtype_bits(t) <= 4 ? 4 : 8;
}

/* What is taken off an element before it is stored. */
static int64_t zero_of(oi_dtype t)
{
    return oi_dtype_bits(t) <= 4 ? oi_dtype_get(t)->min : t == OI_U8 ? 128 : 0;
}

static int64_t block_bytes(const oi_packing *p)
{
    const int64_t *s = p->sizes;
    int64_t scale_bits = (int64_t)oi_dtype_bits((oi_dtype)s[P_SCALE_TYPE]);
    return (s[P_GROUP] * stored_bits((oi_dtype)s[P_TYPE]) + scale_bits * (1 + s[P_HAS_OFFSET])) /
           8 * s[P_LANES];
}

static int64_t element(oi_dtype t, const uint8_t *w, int64_t e)
{
    switch (t) { /* the common ones at once: there are millions of them */
    case OI_U4: return w[e / 2] >> e % 2 * 4 & 15;
    case OI_I4: return ((w[e / 2] >> e % 2 * 4 & 15) ^ 8) - 8;
    case OI_U8: return w[e];
    case OI_I8: return (int8_t)w[e];
    default: return oi_element_i64(t, w, (uint64_t)e);
    }
}

/* Eight numbers of 4 bits, the first in the lowest bits, become four bytes: numbers i and i + 4. */
static uint32_t pair_nibbles(uint32_t v)
{
    uint32_t low = v & 0xffff, high = v >> 16;
    low = (low | low << 8) & 0x00ff00ff;
    high = (high | high << 8) & 0x00ff00ff;
    low = (low | low << 4) & 0x0f0f0f0f;
    high = (high | high << 4) & 0x0f0f0f0f;
    return low | high << 4;
}

/* The common types at once, several numbers at a time: there are billions of them. Taking the
 * lowest value off a signed number flips its sign bit. */
static void pack_quick(oi_dtype t, const uint8_t *w, int64_t at, int64_t group, int64_t lanes,
                       uint8_t *to)
{
    const bool is_half = oi_dtype_bits(t) == 4;
    const uint32_t flip = t == OI_I4 ? 0x88888888u : t == OI_U8 ? 0x80808080u : 0;
    const uint8_t *from = is_half ? w + at / 2 : w + at;
    for (int64_t i = 0; i < group; i += is_half ? 8 : 4, from += 4, to += 4 * lanes) {
        uint32_t v;
        memcpy(&v, from, sizeof v);
        v = is_half ? pair_nibbles(v ^ flip) : v ^ flip;
        memcpy(to, &v, sizeof v);
    }
}

static bool is_quick(oi_dtype t, int64_t at, int64_t group)
{
    return oi_dtype_bits(t) == 8 ? group % 4 == 0
                                 : oi_dtype_bits(t) == 4 && group % 8 == 0 && at % 2 == 0;
}

/* Row `row` of a block, as lane `lane` of it. Rows beyond the last are all zero. */
static void pack_row(const oi_packing *p, const void *w, int64_t row, int64_t block, int64_t lane,
                     uint8_t *out)
{
    const oi_dtype t = (oi_dtype)p->sizes[P_TYPE];
    const int64_t lanes = p->sizes[P_LANES], group = p->sizes[P_GROUP], zero = zero_of(t);
    const int64_t at = row * p->sizes[P_K] + block * group;
    if (row < p->sizes[P_N] && is_quick(t, at, group)) {
        pack_quick(t, w, at, group, lanes, out + lane * 4);
        return;
    }
    for (int64_t i = 0; i < group; i++) {
        int64_t v = row < p->sizes[P_N] ? element(t, w, at + i) - zero : 0;
        if (stored_bits(t) == 8)
            out[i / 4 * 4 * lanes + lane * 4 + i % 4] = (uint8_t)v;
        else
            out[i / 8 * 4 * lanes + lane * 4 + i % 4] |= (uint8_t)(v << i % 8 / 4 * 4);
    }
}

/* A column of scales or offsets. */
static void pack_scales(const oi_packing *p, const void *from, int64_t row, int64_t block,
                        uint8_t *out)
{
    const size_t size = oi_dtype_bits((oi_dtype)p->sizes[P_SCALE_TYPE]) / 8;
    const int64_t blocks = p->sizes[P_K] / p->sizes[P_GROUP];
    for (int64_t i = 0; i < p->sizes[P_LANES] && row + i < p->sizes[P_N]; i++)
        memcpy(out + (size_t)i * size,
               (const char *)from + (size_t)((row + i) * blocks + block) * size, size);
}

/* Steps are `lanes` rows; the bias follows the last. */
static void pack_some(const oi_packing *p, const void *const *in, uint64_t from, uint64_t end,
                      void *out)
{
    const int64_t lanes = p->sizes[P_LANES], n = p->sizes[P_N], group = p->sizes[P_GROUP];
    const int64_t of_w = group * stored_bits((oi_dtype)p->sizes[P_TYPE]) / 8 * lanes;
    const int64_t of_scales = (int64_t)oi_dtype_bits((oi_dtype)p->sizes[P_SCALE_TYPE]) / 8 * lanes;
    const int64_t first = (int64_t)(from / p->step_bytes) * lanes;
    const int64_t stop = end == p->size_bytes ? n : (int64_t)(end / p->step_bytes) * lanes;
    uint8_t *to = out;
    memset(out, 0, (size_t)(end - from));
    for (int64_t row = first; row < stop; row += lanes)
        for (int64_t b = 0; b < p->sizes[P_K] / group; b++, to += block_bytes(p)) {
            for (int64_t i = 0; i < lanes; i++)
                pack_row(p, in[0], row + i, b, i, to);
            pack_scales(p, in[1], row, b, to + of_w);
            if (p->sizes[P_HAS_OFFSET])
                pack_scales(p, in[2], row, b, to + of_w + of_scales);
        }
    for (int64_t i = 0; stop == n && p->sizes[P_BIAS_TYPE] != OI_NONE && i < n; i++) {
        float b =
            (float)oi_element_f64((oi_dtype)p->sizes[P_BIAS_TYPE], in[p->n_in - 1], (uint64_t)i);
        memcpy(to + (size_t)i * sizeof b, &b, sizeof b);
    }
}

static void pack(const oi_packing *p, const void *const *in, void *out)
{
    pack_some(p, in, 0, p->size_bytes, out);
}

/* Other readers of the same weights find them in the tiles: bytes that are stored as they are,
 * scales and offsets. */
static void set_places(oi_packing *p)
{
    const int64_t *s = p->sizes, blocks = s[P_K] / s[P_GROUP], lanes = s[P_LANES];
    const oi_dtype t = (oi_dtype)s[P_TYPE];
    const int64_t each = (int64_t)oi_dtype_bits((oi_dtype)s[P_SCALE_TYPE]) / 8;
    const int64_t of_w = s[P_GROUP] * stored_bits(t) / 8 * lanes;
    if (oi_dtype_bits(t) == 8 && zero_of(t) == 0) {
        p->places[0].function = "oi_q_place";
        const int64_t sizes[OI_PLACE_SIZES] = {blocks, s[P_GROUP], block_bytes(p), lanes};
        memcpy(p->places[0].sizes, sizes, sizeof sizes);
    }
    for (int64_t i = 0; i < 1 + s[P_HAS_OFFSET]; i++) {
        p->places[1 + i].function = "oi_q_scale_place";
        const int64_t sizes[OI_PLACE_SIZES] = {blocks, block_bytes(p) / each,
                                               of_w / each + i * lanes, lanes};
        memcpy(p->places[1 + i].sizes, sizes, sizeof sizes);
    }
}

/* Inputs after x and w: scale, offset, and a bias, told by its rank; all of them weights. */
static bool set_packing(const oi_recipe_call *c, int64_t lanes, oi_packing *p)
{
    const oi_kernel_query *q = c->q;
    const bool has_bias = q->n_in > 2 && q->in[q->n_in - 1].rank == 1;
    const size_t n_blocks = q->n_in - 2 - has_bias; /* scale, offset */
    if (n_blocks < 1 || (n_blocks > 1 && q->in[3].dtype != q->in[2].dtype))
        return false;
    *p = (oi_packing){.name = "tiles of rows",
                      .n_in = (uint32_t)q->n_in - 1,
                      .pack = pack,
                      .pack_some = pack_some};
    for (uint32_t i = 1; i < q->n_in; i++) {
        if (!c->is_weight[i])
            return false;
        p->in[i - 1] = i;
    }
    const oi_operand *w = &q->in[1], *scale = &q->in[2];
    if (w->dims[0] == 0 || w->dims[1] == 0 || scale->dims[1] == 0 || scale->dims[0] != w->dims[0] ||
        (n_blocks > 1 && q->in[3].dims[0] != w->dims[0]))
        return false;
    int64_t *s = p->sizes;
    s[P_N] = w->dims[0];
    s[P_K] = w->dims[1];
    s[P_GROUP] = s[P_K] / scale->dims[1];
    s[P_LANES] = lanes;
    s[P_TYPE] = (int64_t)w->dtype;
    s[P_SCALE_TYPE] = (int64_t)scale->dtype;
    s[P_HAS_OFFSET] = n_blocks > 1;
    s[P_BIAS_TYPE] = has_bias ? (int64_t)q->in[q->n_in - 1].dtype : OI_NONE;
    int64_t n = up(s[P_N], lanes);
    p->size_bytes = (uint64_t)(n / lanes * (s[P_K] / s[P_GROUP]) * block_bytes(p) +
                               (has_bias ? n * (int64_t)sizeof(float) : 0));
    p->step_bytes = (uint64_t)(s[P_K] / s[P_GROUP] * block_bytes(p));
    set_places(p);
    return true;
}

/* Types and sizes that the bodies are written for. */
static bool fits(const oi_kernel_query *q, const oi_packing *p)
{
    const oi_dtype scale = (oi_dtype)p->sizes[P_SCALE_TYPE];
    return q->in[0].dtype == OI_F32 && q->out[0].dtype == OI_F32 &&
           oi_dtype_is_integer(q->in[1].dtype) && oi_dtype_bits(q->in[1].dtype) <= 8 &&
           (scale == OI_F16 || scale == OI_F32) && p->sizes[P_GROUP] % 8 == 0 &&
           p->sizes[P_GROUP] <= 65536; /* sums of a block fit 32 bits */
}

static int64_t rows_of(const oi_operand *x)
{
    int64_t m = 1;
    for (uint32_t i = 0; i + 1 < x->rank; i++)
        m *= x->dims[i];
    return m;
}

static const oi_recipe rounding = {"8-bit blocks", OI_OP_COUNT, true, NULL};
static const oi_recipe halving = {"bf16", OI_OP_COUNT, true, NULL};

/* Rows of x become rows of arrays, shared by all calls that want the same. */
static oi_prologue *set_ready(const oi_operand *x, const char *function, const oi_recipe *recipe,
                              const char *doc, oi_recipe_plan *out)
{
    oi_prologue *r = &out->prologue;
    r->function = function;
    r->recipe = recipe;
    r->verb = "round";
    r->doc = doc;
    r->rows = rows_of(x);
    for (uint32_t d = 0; d + 1 < x->rank; d++)
        if (x->dims[d] == r->rows && !r->has_dim) {
            r->has_dim = true;
            r->dim = d;
        }
    return r;
}

/* Instead of x, its rows in 8 bits with the scales and sums of their blocks. A single row is a row
 * for every block: the thread that computed a block rounds it. */
static void add_bytes(const oi_operand *x, int64_t k, int64_t group, oi_recipe_plan *out)
{
    oi_prologue *r = set_ready(x, "oi_q8_rows", &rounding,
                               "x in blocks of 8 bits, for all products that read it.", out);
    if (r->rows == 1) {
        r->rows = k / group;
        r->has_dim = true;
        r->dim = x->rank - 1;
        k = group;
    }
    oi_recipe_prologue_add(out, "q", OI_I8, k);
    oi_recipe_prologue_add(out, "d", OI_F32, k / group);
    oi_recipe_prologue_add(out, "sums", OI_F32, k / group);
    r->sizes[r->n_sizes++] = k;
    r->sizes[r->n_sizes++] = group;
}

/* Instead of x, its rows rounded to bf16; floats still, unless tiles take them. */
static void add_halves(const oi_operand *x, int64_t k, bool is_tiled, oi_recipe_plan *out)
{
    oi_prologue *r = set_ready(x, is_tiled ? "oi_qt_rows" : "oi_qh_rows", &halving,
                               "x rounded to bf16, for all products that read it.", out);
    oi_recipe_prologue_add(out, "h", is_tiled ? OI_BF16 : OI_F32,
                           is_tiled ? ((k + 31) / 32 | 1) * 32 : k);
    r->sizes[r->n_sizes++] = k;
    r->is_cast = is_tiled;
}

/* Whether tiles take it: whole ones of rows, and blocks that fill tiles or, of 8 bits, one each. */
static bool is_for_tiles(const oi_recipe_call *c, int64_t m, int64_t group, bool is_q8)
{
    return oi_recipe_height(c->target, "amx") && m % 16 == 0 &&
           (group % 32 == 0 || (is_q8 && group < 32)) && (!is_q8 || group <= 256);
}

/* Of tiles of bf16, two thirds of the time: the rest is loads and stores, and making them of
 * weights, which takes as long as 30 rows of x. */
static uint16_t percent_of_halves(const oi_device_info *target, int64_t m)
{
    return oi_cost_tiles(target, 1 / (1.5 + 30 / (double)m));
}

/* Rows of x in so many bytes; of many, a multiple of what tiles take. */
static int64_t rows_at_once(int64_t m, int64_t k, int64_t bytes)
{
    const int64_t rows = bytes / k / 16 * 16;
    return m < 16 || m < rows ? m : rows < 16 ? 16 : rows;
}

#define MANY 32 /* units, which many threads can share */

static bool plan(const oi_recipe_call *c, int64_t lanes, oi_recipe_plan *out)
{
    static const char *const functions[][2] = {
        {"oi_qlinear", "oi_qlinear_tiles"},
        {"oi_qlinear_bf16", "oi_qlinear_bf16_tiles"},
        {"oi_qlinear_float", NULL},
    };
    oi_packing *p = &out->packings[0];
    const char *act = oi_kernel_attr(c->q, "act")->s;
    const bool is_q8 = strcmp(act, "q8") == 0, is_half = strcmp(act, "bf16") == 0;
    const int64_t *s = p->sizes, m = rows_of(&c->q->in[0]);
    if (m == 0 || strcmp(act, "f16") == 0 || !set_packing(c, lanes, p) || !fits(c->q, p))
        return false;
    const oi_dtype t = (oi_dtype)s[P_TYPE];
    const bool is_tiled = (is_q8 || is_half) && is_for_tiles(c, m, s[P_GROUP], is_q8);
    out->function = functions[is_q8 ? 0 : is_half ? 1 : 2][is_tiled];
    out->n_packings = 1;
    if (is_q8)
        add_bytes(&c->q->in[0], s[P_K], s[P_GROUP], out);
    else if (is_half)
        add_halves(&c->q->in[0], s[P_K], is_tiled, out);
    else
        oi_recipe_arg_add(out, OI_ARG_IN, 0);
    oi_recipe_arg_add(out, OI_ARG_PACKED, 0);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
    const int64_t sizes[] = {m,
                             s[P_N],
                             s[P_K],
                             s[P_GROUP],
                             stored_bits(t),
                             (int64_t)oi_dtype_bits((oi_dtype)s[P_SCALE_TYPE]) / 8,
                             s[P_HAS_OFFSET],
                             s[P_BIAS_TYPE] != OI_NONE,
                             zero_of(t),
                             rows_at_once(m, s[P_K], oi_cost_qlinear_bytes(c->target)),
                             oi_cost_stream_ahead(c->target)};
    for (size_t i = 0; i < OI_COUNT(sizes) - (is_tiled || !is_q8 ? 2 : 0); i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, sizes[i]);
    if (is_q8 && !is_tiled)
        oi_recipe_arg_add(out, OI_ARG_NEXT, 0);
    oi_recipe_arg_add(out, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(out, OI_ARG_LAST, 0);
    out->extent = s[P_N];
    out->unit = is_half && is_tiled ? 2 * lanes : lanes;
    if (is_q8 && m == 1 && s[P_N] / s[P_GROUP] >= MANY && s[P_GROUP] % lanes == 0)
        out->unit = s[P_GROUP]; /* whole blocks, which the next product may want rounded */
    out->streams = block_bytes(p) / lanes * (s[P_K] / s[P_GROUP]);
    out->is_int8 = is_q8;
    out->percent = is_half && is_tiled ? percent_of_halves(c->target, m) : 45;
    out->split_dim = c->q->out[0].rank - 1;
    return true;
}

bool oi_recipe_qlinear(const oi_recipe_call *c, oi_recipe_plan *out)
{
    return plan(c, oi_recipe_lanes(c->target), out);
}
