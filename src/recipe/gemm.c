/* gemm.c: which matrix products the bodies of gemm.h and half.h implement, and the panels of their
 * weights. */
#include "device/cost.h"
#include "recipe/recipe.h"

#define FEWEST   6   /* rows that the tile has; with less only packed weights are worth it */
#define SMALL    256 /* elements of a b that has few rows of a: plain loops do */
#define FAR      960 /* floats from row to row of a from which laying them side by side pays */
#define DEPTH    384 /* OI_GEMM_DEPTH and OI_GEMM_WIDTH: the most of b that is packed at a time */
#define WIDTH    1024
#define NARROW   64     /* OI_HALF_WIDTH: columns of halves that become floats at a time */
#define ON_STACK 131072 /* floats: most of a or of the result on the stack of a thread */

enum { P_N, P_K, P_STEP_K, P_STEP_N, P_WIDTH };

static oi_matrix matrix_of(const oi_operand *o, bool is_transposed)
{
    const int64_t r = o->dims[o->rank - 2], c = o->dims[o->rank - 1];
    return is_transposed ? (oi_matrix){c, r, 1, c} : (oi_matrix){r, c, c, 1};
}

static void pack_some(const oi_packing *p, const void *const *in, uint64_t from, uint64_t end,
                      void *out)
{
    const int64_t *s = p->sizes;
    if (p->step_bytes == 0) /* nothing is multiplied */
        return;
    const int64_t first = (int64_t)(from / p->step_bytes) * s[P_WIDTH];
    const int64_t last = (int64_t)((end + p->step_bytes - 1) / p->step_bytes) * s[P_WIDTH];
    const float *b = in[0];
    float *to = out;
    for (int64_t j = first; j < last; j += s[P_WIDTH])
        for (int64_t i = 0; i < s[P_K]; i++)
            for (int64_t c = j; c < j + s[P_WIDTH]; c++)
                *to++ = c < s[P_N] ? b[i * s[P_STEP_K] + c * s[P_STEP_N]] : 0;
}

static void pack(const oi_packing *p, const void *const *in, void *out)
{
    pack_some(p, in, 0, p->size_bytes, out);
}

static void pack_some_halves(const oi_packing *p, const void *const *in, uint64_t from,
                             uint64_t end, void *out)
{
    const int64_t *s = p->sizes;
    if (p->step_bytes == 0) /* nothing is multiplied */
        return;
    const int64_t first = (int64_t)(from / p->step_bytes) * s[P_WIDTH];
    const int64_t last = (int64_t)((end + p->step_bytes - 1) / p->step_bytes) * s[P_WIDTH];
    const uint16_t *b = in[0];
    uint16_t *to = out;
    for (int64_t j = first; j < last; j += s[P_WIDTH])
        for (int64_t i = 0; i < s[P_K]; i++)
            for (int64_t c = j; c < j + s[P_WIDTH]; c++)
                *to++ = c < s[P_N] ? b[i * s[P_STEP_K] + c * s[P_STEP_N]] : 0;
}

static void pack_halves(const oi_packing *p, const void *const *in, void *out)
{
    pack_some_halves(p, in, 0, p->size_bytes, out);
}

/* -- the call -- */

/* How many matrices the operand has, if all of them are combined with each of what is left of the
 * stack: its dims are the last ones of the stack. 0: they are others. */
static int64_t count_matrices(const oi_operand *o, const oi_operand *out)
{
    int64_t n = 1;
    bool is_one = false; /* from here on, it is the same for all */
    for (uint32_t i = 2; i < out->rank; i++) {
        const int64_t own = i < o->rank ? o->dims[o->rank - 1 - i] : 1;
        const int64_t all = out->dims[out->rank - 1 - i];
        is_one |= own != all;
        if (own != (is_one ? 1 : all))
            return 0;
        n *= own;
    }
    return n;
}

/* Stacked matrices of a with one b are one tall matrix, when they lie one below the other. */
static bool set_stack(const oi_kernel_query *q, bool a_transposed, oi_product *p)
{
    const oi_operand *out = &q->out[0];
    p->a_count = count_matrices(&q->in[0], out);
    p->b_count = count_matrices(&q->in[1], out);
    p->m = p->a.rows;
    p->stack = 1;
    p->a_step = p->a.rows * p->a.columns;
    p->b_step = p->b.rows * p->b.columns;
    if (p->b_count == 1 && p->a_count && (p->a_count == 1 || !a_transposed)) {
        int64_t all = 1; /* all 1: no stack */
        for (uint32_t i = 0; i + 2 < out->rank; i++)
            all *= out->dims[i];
        if (p->a_count == all) {
            p->m *= all;
            return true;
        }
    }
    for (uint32_t i = 0; i + 2 < out->rank; i++)
        p->stack *= out->dims[i];
    while (p->shared + 3 < out->rank && out->dims[p->shared] == 1)
        p->shared++;
    p->each = p->a_count && p->b_count && p->stack ? p->stack / out->dims[p->shared] : 0;
    return p->each > 0;
}

static bool truth(const oi_kernel_query *q, const char *name)
{
    return oi_kernel_attr(q, name)->b;
}

static bool is_f32(const oi_kernel_query *q)
{
    for (size_t i = 0; i < q->n_in; i++)
        if (q->in[i].dtype != OI_F32)
            return false;
    return q->out[0].dtype == OI_F32;
}

bool oi_product_set(const oi_recipe_call *c, oi_product *p)
{
    const oi_kernel_query *q = c->q;
    if (q->in[0].rank < 2 || q->in[1].rank < 2)
        return false;
    const bool of_a = truth(q, "transpose_a");
    *p = (oi_product){.a = matrix_of(&q->in[0], of_a),
                      .b = matrix_of(&q->in[1], truth(q, "transpose_b")),
                      .target = c->target};
    return set_stack(q, of_a, p) && p->m > 0 && p->b.columns >= 4 && p->b.rows >= 1;
}

/* -- plans -- */

static void add_sizes(oi_recipe_plan *out, const int64_t *sizes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, sizes[i]);
    oi_recipe_arg_add(out, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(out, OI_ARG_LAST, 0);
}

void oi_recipe_panels(oi_packing *p, uint32_t input, int64_t n, int64_t k, int64_t step_k,
                      int64_t step_n, int64_t width)
{
    *p = (oi_packing){.name = "panels of columns",
                      .n_in = 1,
                      .in = {input},
                      .sizes = {n, k, step_k, step_n, width},
                      .size_bytes = (uint64_t)((n + width - 1) / width * width * k) * sizeof(float),
                      .dtype = OI_F32,
                      .pack = pack,
                      .pack_some = pack_some,
                      .step_bytes = (uint64_t)(width * k) * sizeof(float)};
}

int64_t oi_recipe_room(int64_t n, int64_t width)
{
    const int64_t columns = (n + width - 1) / width * width;
    return (columns < WIDTH ? columns : WIDTH) * DEPTH;
}

static int64_t most_depth(const oi_product *p)
{
    const int64_t depth = oi_cost_gemm_depth(p->target, 2 * oi_recipe_lanes(p->target));
    return depth < DEPTH ? depth : DEPTH;
}

/* k in parts that are as long as each other. */
static int64_t depth_of(const oi_product *p)
{
    const int64_t k = p->b.rows, most = most_depth(p), parts = (k + most - 1) / most;
    return (k + parts - 1) / parts;
}

/* Rows of a; up to two thirds more at once rather than read the weights again. */
static int64_t at_once(const oi_product *p)
{
    const int64_t rows = oi_cost_gemm_rows(p->target, most_depth(p));
    return p->m <= rows * 5 / 3 ? p->m : rows;
}

static void plan_weights(const oi_product *p, int64_t width, oi_recipe_plan *out)
{
    const int64_t n = p->b.columns, k = p->b.rows;
    out->function = "oi_gemm_weights";
    out->n_packings = 1;
    oi_recipe_panels(&out->packings[0], 1, n, k, p->b.row_step, p->b.column_step, width);
    oi_recipe_arg_add(out, OI_ARG_IN, 0);
    oi_recipe_arg_add(out, OI_ARG_PACKED, 0);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
    const int64_t sizes[] = {p->m, n, k, p->a.row_step, p->a.column_step, at_once(p), depth_of(p)};
    add_sizes(out, sizes, OI_COUNT(sizes));
}

/* Rows too few for a tile: b is read as it lies (gemv.h). */
static bool plan_few(const oi_product *p, oi_recipe_plan *out)
{
    const bool is_row_wise = p->b.column_step == 1;
    if (p->b.rows * p->b.columns < SMALL || (!is_row_wise && p->a.column_step != 1))
        return false;
    out->function = p->stack > 1 ? "oi_gemv_stack" : "oi_gemv";
    oi_recipe_arg_add(out, OI_ARG_IN, 0);
    oi_recipe_arg_add(out, OI_ARG_IN, 1);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
    const int64_t sizes[] = {
        p->m,          p->b.columns,     p->b.rows, p->a.row_step, p->a.column_step,
        p->b.row_step, p->b.column_step, p->a_step, p->b_step,     p->a_count,
        p->b_count,    p->each};
    add_sizes(out, sizes, p->stack > 1 ? OI_COUNT(sizes) : OI_COUNT(sizes) - 5);
    out->percent = 25; /* a load for every product */
    return true;
}

static bool plan_both(const oi_product *p, oi_recipe_plan *out)
{
    const int64_t columns = (p->b.columns + 31) / 32 * 32;
    const bool is_far = p->a.column_step != 1 || p->a.row_step >= FAR;
    if (p->m < FEWEST)
        return plan_few(p, out);
    out->function = p->stack > 1 ? "oi_gemm_stack" : "oi_gemm_two";
    out->n_scratch = 1;
    out->scratch[0].name = "room";
    out->scratch[0].dtype = OI_F32;
    out->scratch[0].count = depth_of(p) * (columns < WIDTH ? columns : WIDTH) +
                            (is_far ? (at_once(p) + FEWEST) * DEPTH : 0);
    oi_recipe_arg_add(out, OI_ARG_IN, 0);
    oi_recipe_arg_add(out, OI_ARG_IN, 1);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
    oi_recipe_arg_add(out, OI_ARG_SCRATCH, 0);
    const int64_t sizes[] = {
        p->m,          p->b.columns,     p->b.rows,  p->a.row_step, p->a.column_step,
        p->b.row_step, p->b.column_step, is_far,     at_once(p),    depth_of(p),
        p->a_step,     p->b_step,        p->a_count, p->b_count,    p->each};
    add_sizes(out, sizes, p->stack > 1 ? OI_COUNT(sizes) : OI_COUNT(sizes) - 5);
    return true;
}

static bool plan(const oi_recipe_call *c, const oi_product *p, int64_t lanes, oi_recipe_plan *out)
{
    const oi_operand *o = &c->q->out[0];
    if (p->stack == 1 && c->is_weight[1])
        plan_weights(p, 2 * lanes, out);
    else if (!plan_both(p, out))
        return false;
    out->split_dim = p->stack > 1 ? p->shared : o->rank - 1;
    out->extent = o->dims[out->split_dim];
    out->unit = p->stack > 1 ? 1 : 2 * lanes;
    oi_recipe_epilogue_add(out, o->rank - 1);
    return true;
}

bool oi_recipe_matmul(const oi_recipe_call *c, oi_recipe_plan *out)
{
    oi_product p;
    return oi_kernel_accumulator(c->q) == OI_NONE && is_f32(c->q) && oi_product_set(c, &p) &&
           plan(c, &p, oi_recipe_lanes(c->target), out);
}

/* -- weights of 16 bits -- */

/* As half.h counts them; -1: none of its forms. */
static int form_of(oi_dtype t)
{
    return t == OI_F32 ? 0 : t == OI_F16 ? 1 : t == OI_BF16 ? 2 : -1;
}

static void plan_halves(const oi_recipe_call *c, const oi_product *p, oi_recipe_plan *out)
{
    const int64_t n = p->b.columns, k = p->b.rows, width = 2 * oi_recipe_lanes(c->target);
    const int a = form_of(c->q->in[0].dtype), b = form_of(c->q->in[1].dtype);
    const int made = form_of(c->q->out[0].dtype);
    out->function = "oi_half_gemm";
    out->n_packings = 1;
    out->packings[0] = (oi_packing){.name = "panels of halves",
                                    .n_in = 1,
                                    .in = {1},
                                    .sizes = {n, k, p->b.row_step, p->b.column_step, width},
                                    .size_bytes = (uint64_t)((n + width - 1) / width * width * k) *
                                                  sizeof(uint16_t),
                                    .dtype = OI_U16,
                                    .pack = pack_halves,
                                    .pack_some = pack_some_halves,
                                    .step_bytes = (uint64_t)(width * k) * sizeof(uint16_t)};
    out->n_scratch = 1;
    out->scratch[0].name = "room";
    out->scratch[0].dtype = OI_F32;
    out->scratch[0].count =
        (a ? p->m * k : 0) + (made ? p->m * n : 0) + (p->m < FEWEST ? 1 : NARROW * depth_of(p));
    oi_recipe_arg_add(out, OI_ARG_IN, 0);
    oi_recipe_arg_add(out, OI_ARG_PACKED, 0);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
    oi_recipe_arg_add(out, OI_ARG_SCRATCH, 0);
    const int64_t sizes[] = {p->m, n, k,    p->a.row_step, p->a.column_step,
                             a,    b, made, at_once(p),    depth_of(p)};
    add_sizes(out, sizes, OI_COUNT(sizes));
    out->split_dim = c->q->out[0].rank - 1;
    out->extent = n;
    out->unit = width;
    oi_recipe_epilogue_add(out, made ? 0 : out->split_dim);
}

bool oi_recipe_matmul_halves(const oi_recipe_call *c, oi_recipe_plan *out)
{
    const oi_kernel_query *q = c->q;
    const oi_dtype acc = oi_kernel_accumulator(q);
    oi_product p;
    if ((acc != OI_NONE && acc != OI_F32) || form_of(q->in[0].dtype) < 0 ||
        form_of(q->in[1].dtype) < 1 || form_of(q->out[0].dtype) < 0 || !c->is_weight[1] ||
        !oi_product_set(c, &p) || p.stack != 1 || p.m > ON_STACK / p.b.rows ||
        p.m > ON_STACK / p.b.columns)
        return false;
    plan_halves(c, &p, out);
    return true;
}
