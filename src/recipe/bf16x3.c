/* bf16x3.c: which products of matrices the bodies of amx/bf16x3.h take, and the panels of their
 * weights. */
#include "body/scalar.h"
#include "device/cost.h"
#include "recipe/recipe.h"

#define COLUMNS   32  /* of a panel: two tiles of sums */
#define ROWS      16  /* of a tile; with less a product is not for tiles */
#define STEP      32  /* along k */
#define PAIRS     512 /* numbers in a tile of b */
#define WIDTH     256 /* OI_PARTS_WIDTH */
#define MOST      16  /* tiles of rows at once, nearly: their sums are a local of the caller */
#define DEEPEST   48  /* steps whose sums are added before others are added, ... */
#define ON_STACK  16  /* ... and of a b that is packed into a local of the caller */
#define NONFINITE 0x6c800000u /* OI_PARTS_NONFINITE */

enum { P_N, P_K, P_STEP_K, P_STEP_N, P_PARTS };

static int64_t up(int64_t x, int64_t to)
{
    return (x + to - 1) / to;
}

/* -- packing -- */

/* As oi_bf16x3_one does it. */
bool oi_bf16x3_split(float x, int64_t parts, uint16_t to[3])
{
    const uint32_t size = oi_bits_f32(x) & 0x7fffffffu;
    const uint32_t bits = oi_bits_f32(x) | (size > 0 && size < 0x10000u ? 0x10000u : 0);
    const bool is_finite = (bits & 0x7f800000u) != 0x7f800000u;
    to[0] = (uint16_t)(bits >> 16 | (x != x ? 64 : 0));
    for (int64_t i = 1; i < parts; i++) {
        x = is_finite ? x - oi_f32_of_bf16(to[i - 1]) : 0;
        to[i] = (uint16_t)(oi_bits_f32(x) >> 16);
    }
    return size >= NONFINITE;
}

static float element(const oi_packing *p, const void *b, int64_t i, int64_t j)
{
    const int64_t *s = p->sizes, at = i * s[P_STEP_K] + j * s[P_STEP_N];
    if (i >= s[P_K] || j >= s[P_N])
        return 0;
    return s[P_PARTS] == 1 ? oi_f32_of_bf16(((const uint16_t *)b)[at]) : ((const float *)b)[at];
}

static void pack(const oi_packing *p, const void *const *in, void *out)
{
    const int64_t *s = p->sizes, parts = s[P_PARTS], steps = up(s[P_K], STEP);
    const int64_t panels = up(s[P_N], COLUMNS);
    uint16_t *nonfinite = (uint16_t *)out + panels * steps * parts * 2 * PAIRS;
    memset(out, 0, (size_t)p->size_bytes);
    for (int64_t j = 0; j < panels * COLUMNS; j++)
        for (int64_t i = 0; i < steps * STEP; i++) {
            uint16_t one[3], *to = (uint16_t *)out;
            nonfinite[j / COLUMNS] |= oi_bf16x3_split(element(p, in[0], i, j), parts, one);
            to += (j / COLUMNS * steps + i / STEP) * parts * 2 * PAIRS;
            to += j % COLUMNS / 16 * PAIRS + i % STEP / 2 * 32 + j % 16 * 2 + i % 2;
            for (int64_t part = 0; part < parts; part++)
                to[part * 2 * PAIRS] = one[part];
        }
}

static void set_packing(const oi_product *p, int64_t parts, oi_packing *to)
{
    const int64_t n = p->b.columns, k = p->b.rows, panels = up(n, COLUMNS);
    *to = (oi_packing){.name = parts == 1 ? "tiles of bf16" : "tiles of parts",
                       .n_in = 1,
                       .in = {1},
                       .sizes = {n, k, p->b.row_step, p->b.column_step, parts},
                       .dtype = OI_U16,
                       .pack = pack};
    to->size_bytes = (uint64_t)(panels * up(k, STEP) * parts * 2 * PAIRS + up(panels, 32) * 32) *
                     sizeof(uint16_t);
}

/* -- whether it pays -- */

typedef struct call {
    oi_product p;
    int64_t x_parts, b_parts; /* three of a float, one of a bf16 */
    bool is_weight, to_bf16;
} call;

static uint16_t percent_of(const call *c)
{
    const int64_t products = c->x_parts == 3 && c->b_parts == 3 ? 6 : c->x_parts * c->b_parts;
    return oi_cost_tiles(c->p.target, 1.0 / (double)products);
}

/* Reading weights from where they would all lie. */
static double time_of(const call *c, uint64_t macs, int64_t bytes, uint64_t ops, double percent)
{
    const oi_machine m = oi_cost_machine(c->p.target);
    oi_work_size w = {.macs = macs, .ops = ops, .percent = percent};
    w.bytes[oi_cost_level(&m, (uint64_t)bytes)] = (uint64_t)bytes;
    return oi_cost_time(&m, &w);
}

/* Beside whole tiles and more bytes of b there is making parts, some ten steps for each number. */
static bool pays(const call *c)
{
    const int64_t m = c->p.m, n = c->p.b.columns, k = c->p.b.rows, whole = up(k, STEP) * STEP;
    const uint64_t macs = (uint64_t)(up(m, ROWS) * ROWS * up(n, COLUMNS) * COLUMNS * whole);
    const int64_t split_now = m * k + (c->is_weight ? 0 : n * k);
    const double plain =
        time_of(c, (uint64_t)(m * n * k), n * k * (c->b_parts == 3 ? 4 : 2), 0, 85);
    return time_of(c, macs, n * k * 2 * c->b_parts, 0, percent_of(c)) +
               time_of(c, 0, 0, (uint64_t)(10 * split_now), 100) <
           plain;
}

/* -- plans -- */

static const oi_recipe splitting = {"parts of bf16", OI_OP_COUNT, true, NULL};

/* Instead of x, its parts: rows as oi_bf16x3_row counts them. */
static void add_ready(const oi_operand *x, const call *c, oi_recipe_plan *out)
{
    oi_prologue *r = &out->prologue;
    const int64_t k = c->p.b.rows;
    r->function = "oi_bf16x3_rows";
    r->recipe = &splitting;
    r->verb = "split";
    r->doc = "x in parts of bf16, for all products that read it.";
    r->rows = c->p.m;
    for (uint32_t d = 0; d + 1 < x->rank; d++)
        if (x->dims[d] == r->rows && !r->has_dim) {
            r->has_dim = true;
            r->dim = d;
        }
    oi_recipe_prologue_add(out, "parts", OI_U16, (up(k, STEP) * c->x_parts | 1) * STEP);
    oi_recipe_prologue_add(out, "nonfinite", OI_U8, 1);
    r->sizes[r->n_sizes++] = k;
    r->sizes[r->n_sizes++] = c->x_parts;
}

/* Steps whose sums are added up before the earlier ones are added: parts of k as long as each
 * other. A result of bf16 has room for none. */
static int64_t chunk_of(const call *c)
{
    const int64_t steps = up(c->p.b.rows, STEP), most = c->is_weight ? DEEPEST : ON_STACK;
    const int64_t parts = c->to_bf16 ? 1 : up(steps, most);
    return up(steps, parts);
}

/* Tiles of rows that stay in the second cache, while panels stream through: half of it, a little
 * more rather than read the panels again; a fifth where it also holds panels that were just packed.
 * Parts of m are as large as each other. */
static int64_t tiles_of(const call *c)
{
    const int64_t l2 = (int64_t)c->p.target->cpu.cache_l2_bytes;
    const int64_t own = chunk_of(c) * ROWS * STEP * 2 * c->x_parts, all = up(c->p.m, ROWS);
    const int64_t most = (l2 ? l2 : 1 << 20) / (c->is_weight ? 2 : 5) / own / 2 * 2;
    const int64_t tiles = most < 2 ? 2 : most < MOST ? most : MOST;
    return all <= tiles * 4 / 3 ? all : up(up(all, up(all, tiles)), 2) * 2;
}

static void plan_b(const call *c, oi_recipe_plan *out)
{
    out->function = c->is_weight ? "oi_bf16x3_weights" : "oi_bf16x3_two";
    if (c->is_weight) {
        out->n_packings = 1;
        set_packing(&c->p, c->b_parts, &out->packings[0]);
        oi_recipe_arg_add(out, OI_ARG_PACKED, 0);
    } else {
        oi_recipe_arg_add(out, OI_ARG_IN, 1);
    }
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
    if (!c->is_weight)
        oi_recipe_scratch_add(out, "room", OI_U16, WIDTH / COLUMNS * chunk_of(c) * 3 * 2 * PAIRS);
    oi_recipe_scratch_add(out, "sums", OI_F32, tiles_of(c) * 2 * ROWS * 16);
}

static void plan(const oi_recipe_call *rc, const call *c, oi_recipe_plan *out)
{
    const oi_product *p = &c->p;
    add_ready(&rc->q->in[0], c, out);
    plan_b(c, out);
    const int64_t of_weights[] = {p->m,       p->b.columns, p->b.rows,
                                  c->x_parts, c->b_parts,   c->to_bf16 ? 2 : 0};
    const int64_t of_two[] = {p->m, p->b.columns, p->b.rows, p->b.row_step, p->b.column_step};
    const int64_t last[] = {tiles_of(c), chunk_of(c)};
    for (size_t i = 0; i < (c->is_weight ? OI_COUNT(of_weights) : OI_COUNT(of_two)); i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, c->is_weight ? of_weights[i] : of_two[i]);
    for (size_t i = 0; i < OI_COUNT(last); i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, last[i]);
    oi_recipe_arg_add(out, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(out, OI_ARG_LAST, 0);
    out->extent = p->b.columns;
    out->unit = COLUMNS;
    out->split_dim = rc->q->out[0].rank - 1;
    oi_recipe_epilogue_add(out, c->to_bf16 ? 0 : out->split_dim);
    out->percent = percent_of(c);
}

static int64_t parts_of(oi_dtype t)
{
    return t == OI_F32 ? 3 : t == OI_BF16 ? 1 : 0;
}

/* x is floats or bf16; b, too, but bf16 only where it is packed before. */
bool oi_recipe_bf16x3(const oi_recipe_call *rc, oi_recipe_plan *out)
{
    const oi_kernel_query *q = rc->q;
    const oi_dtype acc = oi_kernel_accumulator(q);
    call c = {.x_parts = parts_of(q->in[0].dtype),
              .b_parts = parts_of(q->in[1].dtype),
              .is_weight = rc->is_weight[1],
              .to_bf16 = q->out[0].dtype == OI_BF16};
    if (!rc->may_regroup || !oi_recipe_height(rc->target, "amx") || !c.x_parts || !c.b_parts ||
        (acc != OI_NONE && acc != OI_F32) || !parts_of(q->out[0].dtype) ||
        (!c.is_weight && (c.x_parts != 3 || c.b_parts != 3 || c.to_bf16)) ||
        !oi_product_set(rc, &c.p) || c.p.stack != 1 || c.p.m < ROWS || c.p.a.column_step != 1 ||
        !pays(&c))
        return false;
    plan(rc, &c, out);
    return true;
}
