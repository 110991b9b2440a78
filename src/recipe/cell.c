/* cell.c: which recurrent cells the bodies of cell.h take, and the panels of their gates. */
#include "recipe/recipe.h"

#define MOST 4 /* rows: with more, products of matrices read the weights less often */

enum { P_GATES, P_HIDDEN, P_INPUTS, P_WIDTH };

/* W (gates * hidden, inputs) and R (gates * hidden, hidden). */
static void pack(const oi_packing *p, const void *const *in, void *out)
{
    const int64_t *s = p->sizes, hidden = s[P_HIDDEN];
    float *to = out;
    for (int64_t j = 0; j < hidden; j += s[P_WIDTH])
        for (int64_t gate = 0; gate < s[P_GATES]; gate++)
            for (int64_t part = 0; part < 2; part++) {
                const int64_t k = part ? hidden : s[P_INPUTS];
                const float *w = (const float *)in[part] + gate * hidden * k;
                for (int64_t i = 0; i < k; i++)
                    for (int64_t c = j; c < j + s[P_WIDTH]; c++)
                        *to++ = c < hidden ? w[c * k + i] : 0;
            }
}

/* The weights are inputs `w` and `w` + 1; the bias, when there is one, follows. */
static bool plan(const oi_recipe_call *c, uint32_t w, int64_t gates, oi_recipe_plan *out)
{
    const oi_kernel_query *q = c->q;
    const int64_t rows = q->in[0].dims[0], inputs = q->in[0].dims[1], hidden = q->in[1].dims[1];
    const int64_t width = 2 * oi_recipe_lanes(c->target), blocks = (hidden + width - 1) / width;
    for (size_t i = 0; i < q->n_in; i++)
        if (q->in[i].dtype != OI_F32)
            return false;
    if (!c->is_weight[w] || !c->is_weight[w + 1] || rows < 1 || rows > MOST || inputs < 1 ||
        hidden < 4)
        return false;
    out->n_packings = 1;
    out->packings[0] = (oi_packing){
        .name = "panels of gates",
        .n_in = 2,
        .in = {w, w + 1},
        .sizes = {gates, hidden, inputs, width},
        .size_bytes = (uint64_t)(blocks * width * gates * (inputs + hidden)) * sizeof(float),
        .dtype = OI_F32,
        .pack = pack};
    for (uint32_t i = 0; i < w; i++)
        oi_recipe_arg_add(out, OI_ARG_IN, i);
    oi_recipe_arg_add(out, OI_ARG_PACKED, 0);
    oi_recipe_arg_add(out, OI_ARG_IN, q->n_in > w + 2 ? w + 2 : 0);
    for (uint32_t i = 0; i < q->n_out; i++)
        oi_recipe_arg_add(out, OI_ARG_OUT, i);
    const int64_t sizes[] = {rows, inputs, hidden, q->n_in > w + 2};
    for (size_t i = 0; i < OI_COUNT(sizes); i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, sizes[i]);
    out->split_dim = 1;
    out->extent = hidden;
    out->unit = width;
    return true;
}

static void add_gates(oi_recipe_plan *out, const int64_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, numbers[i]);
    oi_recipe_arg_add(out, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(out, OI_ARG_LAST, 0);
}

bool oi_recipe_lstm(const oi_recipe_call *c, oi_recipe_plan *out)
{
    const bool is_onnx = strcmp(oi_kernel_attr(c->q, "order")->s, "iofc") == 0;
    if (oi_kernel_attr(c->q, "clip")->tag != OI_VALUE_NONE || !plan(c, 3, 4, out))
        return false;
    out->function = "oi_cell_lstm";
    add_gates(out, is_onnx ? (int64_t[]){2, 3, 1} : (int64_t[]){1, 2, 3}, 3);
    return true;
}

/* Where the reset gate acts on h, every position depends on all of it: two passes, no cell. */
bool oi_recipe_gru(const oi_recipe_call *c, oi_recipe_plan *out)
{
    const bool is_onnx = strcmp(oi_kernel_attr(c->q, "order")->s, "zrh") == 0;
    if (!oi_kernel_attr(c->q, "linear_before_reset")->b || !plan(c, 2, 3, out))
        return false;
    out->function = "oi_cell_gru";
    add_gates(out, is_onnx ? (int64_t[]){0, 1} : (int64_t[]){1, 0}, 2);
    return true;
}
