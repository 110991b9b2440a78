/* mac.c: which products of bytes the bodies of mac.h take, and how. */
#include "body/mac.h"
#include "recipe/recipe.h"

#define MOST_PRODUCTS 65536 /* of a sum: it stays within 31 bits */
#define TILE          8     /* places of windows without height that are laid out together */

/* -- packed filters -- */

enum { FILTERS, RUNS, C, WIDTH, EACH, STEPS, FILTER, NUMBER, STEP };

/* Number i of run r of a filter, counted as it is laid out: `each` for every place of the window,
 * of which the first c are there. */
static int8_t filter_byte(const oi_packing *p, const int8_t *w, int64_t f, int64_t r, int64_t i)
{
    const int64_t *n = p->sizes, place = i / n[EACH], number = i % n[EACH];
    if (f >= n[FILTERS] || place >= n[WIDTH] || number >= n[C])
        return 0;
    return w[f * n[FILTER] + r * n[WIDTH] + number * n[NUMBER] + place];
}

/* Two filters at a time, a step of the one, then of the other. Of every four numbers 0, 2, 1 and 3,
 * where they are unpacked in pairs. */
static void pack_filters(const oi_packing *p, const void *const *in, void *out)
{
    static const int64_t pairs[] = {0, 2, 1, 3};
    const int64_t *n = p->sizes, step = n[STEP];
    int8_t *to = out;
    for (int64_t f = 0; f < n[FILTERS]; f += 2)
        for (int64_t r = 0; r < n[RUNS]; r++)
            for (int64_t i = 0; i < step * n[STEPS]; i += step)
                for (int64_t k = 0; k < 2 * step; k++)
                    *to++ = filter_byte(p, in[0], f + k / step, r,
                                        i + (step == 4 ? pairs[k % 4] : k % step));
}

/* sizes: as named above; FILTER and NUMBER are steps from filter to filter and number to number. */
static void set_filters(oi_packing *p, const int64_t sizes[OI_PACK_SIZES])
{
    const int64_t numbers = sizes[RUNS] * sizes[STEPS] * sizes[STEP];
    *p = (oi_packing){.name = sizes[STEP] == 4 ? "two filters, four numbers each"
                                               : "two filters, sixteen numbers each",
                      .n_in = 1,
                      .in = {1},
                      .size_bytes = (uint64_t)((sizes[FILTERS] + 1) / 2 * 2 * numbers),
                      .dtype = OI_I8,
                      .pack = pack_filters};
    memcpy(p->sizes, sizes, sizeof p->sizes);
}

/* Every row of a filter widened, with a 0 behind an odd number of them. */
static void pack_rows(const oi_packing *p, const void *const *in, void *out)
{
    const int8_t *from = in[0];
    int16_t *to = out;
    for (int64_t r = 0; r < p->sizes[0]; r++)
        for (int64_t i = 0; i < (p->sizes[1] + 1) / 2 * 2; i++)
            *to++ = i < p->sizes[1] ? from[r * p->sizes[1] + i] : 0;
}

static void set_rows(oi_packing *p, int64_t rows, int64_t kw)
{
    *p = (oi_packing){.name = "rows of 16 bits",
                      .n_in = 1,
                      .in = {1},
                      .sizes = {rows, kw},
                      .size_bytes = (uint64_t)(rows * ((kw + 1) / 2 * 2) * 2),
                      .dtype = OI_I16,
                      .pack = pack_rows};
}

/* -- plans -- */

static bool takes(const oi_recipe_call *c)
{
    const oi_kernel_query *q = c->q;
    return q->in[0].dtype == OI_I8 && q->in[1].dtype == OI_I8 && q->out[0].dtype == OI_I32 &&
           oi_kernel_accumulator(q) == OI_I32 && c->is_weight[1];
}

/* How the bodies of the target's folder take numbers: oi_mac_number, OI_MAC_RUN, OI_MAC_PLACES. */
typedef struct unit {
    oi_dtype number;
    int64_t step, places;
} unit;

static unit unit_of(const oi_recipe_call *c)
{
    return oi_recipe_height(c->target, "mve") ? (unit){OI_I8, 16, 4} : (unit){OI_I16, 4, 1};
}

/* Half of the stack may be laid out numbers. */
static bool fits_stack(const oi_recipe_call *c, int64_t numbers)
{
    const uint64_t size = oi_dtype_bits(unit_of(c).number) / 8;
    return numbers <= (int64_t)(c->target->mcu.stack_bytes / 2 / size);
}

static void add_arguments(const oi_recipe_call *c, oi_recipe_plan *out, const char *scratch,
                          int64_t count, const int64_t *sizes, size_t n)
{
    out->n_packings = 1;
    out->n_scratch = 1;
    out->scratch[0].name = scratch;
    out->scratch[0].dtype = unit_of(c).number;
    out->scratch[0].count = count;
    oi_recipe_arg_add(out, OI_ARG_IN, 0);
    oi_recipe_arg_add(out, OI_ARG_PACKED, 0);
    oi_recipe_arg_add(out, OI_ARG_EPILOGUE, 0);
    oi_recipe_arg_add(out, OI_ARG_SCRATCH, 0);
    for (size_t i = 0; i < n; i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, sizes[i]);
}

/* The last arguments of a convolution: which rows, and of how many. */
static void add_rows(const oi_recipe_call *rc, const oi_conv_call *c, oi_recipe_plan *out)
{
    oi_recipe_arg_add(out, OI_ARG_SIZE, rc->rows ? rc->kept : c->y.in);
    oi_recipe_arg_add(out, OI_ARG_ROW, 0);
    oi_recipe_arg_add(out, OI_ARG_ROW_END, c->out_height);
    out->row_dim = rc->q->in[0].rank == 4 ? 2 : 0;
    out->row_step = c->y.stride;
    out->row_from = -c->y.before;
    out->row_to = c->y.kernel - 1 - c->y.before;
}

static bool same_size(const oi_conv_call *c)
{
    return c->c == c->m && c->y.in == c->out_height && c->x.in == c->out_width &&
           c->y.before < c->y.kernel && c->x.before < c->x.kernel;
}

static bool plan_all(const oi_recipe_call *rc, oi_conv_call *c, oi_recipe_plan *out)
{
    if (c->is_points && !rc->rows) { /* rows do not matter */
        c->x.in = c->out_width = c->places;
        c->y.in = c->out_height = 1;
    }
    const unit u = unit_of(rc);
    const bool is_odd = u.number == OI_I16 ? c->x.stride * c->c % 2 : c->c % 2 && c->c > 1;
    const int64_t each = c->c + is_odd, even = c->x.stride * each; /* numbers go in pairs */
    const int64_t steps = (c->x.kernel * each + u.step - 1) / u.step;
    int64_t tile = c->out_width;
    if (c->y.kernel == 1 && tile > TILE)
        tile = TILE;
    const int64_t pitch = ((tile + 1) / 2 * 2 - 1) * even + steps * u.step;
    if (!fits_stack(rc, pitch * c->y.kernel))
        return false;
    const int64_t window = c->y.kernel * c->x.kernel;
    set_filters(&out->packings[0],
                (int64_t[OI_PACK_SIZES]){c->m, c->y.kernel, c->c, c->x.kernel, each, steps,
                                         c->c * window, window, u.step});
    out->function = "oi_mac_conv";
    out->in_place = !rc->rows && same_size(c) && (tile == c->out_width || c->x.kernel == 1);
    const int64_t sizes[] = {c->batches,  c->c,         c->y.in,     c->x.in,
                             c->m,        c->out_width, c->y.kernel, c->x.kernel,
                             c->y.stride, c->x.stride,  c->y.before, c->x.before,
                             each,        tile,         pitch,       steps};
    add_arguments(rc, out, "strip", pitch * c->y.kernel, sizes, OI_COUNT(sizes));
    add_rows(rc, c, out);
    return true;
}

/* Every filter has a channel of its own. */
static bool plan_depthwise(const oi_recipe_call *rc, const oi_conv_call *c, oi_recipe_plan *out)
{
    const int64_t pitch = ((c->out_width - 1) * c->x.stride + c->x.kernel + 1) / 2 * 2;
    const int64_t beyond = (unit_of(rc).places - 1) * c->x.stride; /* places that no one asks for */
    int64_t band = rc->rows && rc->rows < c->out_height ? rc->rows : c->out_height;
    while (band > 1 && !fits_stack(rc, ((band - 1) * c->y.stride + c->y.kernel) * pitch + beyond))
        band = (band + 1) / 2;
    const int64_t rows = (band - 1) * c->y.stride + c->y.kernel;
    if (!fits_stack(rc, rows * pitch + beyond) ||
        c->y.kernel * ((c->x.kernel + 1) / 2) > OI_MAC_TAPS)
        return false;
    set_rows(&out->packings[0], c->m * c->y.kernel, c->x.kernel);
    out->function = "oi_mac_depthwise";
    out->in_place = !rc->rows && same_size(c) && band == c->out_height;
    const int64_t sizes[] = {c->batches,  c->c,          c->y.in,      c->x.in,
                             c->m / c->c, c->out_height, c->out_width, c->y.kernel,
                             c->x.kernel, c->y.stride,   c->x.stride,  c->y.before,
                             c->x.before, band,          rows,         pitch};
    add_arguments(rc, out, "padded", rows * pitch + beyond, sizes, OI_COUNT(sizes));
    add_rows(rc, c, out);
    return true;
}

bool oi_recipe_mac_conv(const oi_recipe_call *rc, oi_recipe_plan *out)
{
    const int64_t group = oi_kernel_attr(rc->q, "group")->i;
    oi_conv_call c;
    if (!takes(rc) || !oi_conv_call_set(rc->q, &c) || c.k > MOST_PRODUCTS || c.y.dilation != 1 ||
        c.x.dilation != 1)
        return false;
    out->epilogue[0] = 1;
    out->epilogue[1] = 2;
    if (group == 1)
        return plan_all(rc, &c, out);
    return group == c.c && plan_depthwise(rc, &c, out);
}

bool oi_recipe_mac_matmul(const oi_recipe_call *c, oi_recipe_plan *out)
{
    const oi_operand *x = &c->q->in[0], *w = &c->q->in[1];
    int64_t rows = 1;
    if (!takes(c) || x->rank < 2 || w->rank != 2 || oi_kernel_attr(c->q, "transpose_a")->b ||
        oi_kernel_attr(c->q, "transpose_b")->b)
        return false;
    for (uint32_t d = 0; d + 1 < x->rank; d++)
        rows *= x->dims[d];
    const int64_t k = w->dims[0], m = w->dims[1];
    const int64_t step = unit_of(c).step, pitch = (k + step - 1) / step * step;
    if (rows == 0 || k == 0 || m == 0 || k > MOST_PRODUCTS ||
        !fits_stack(c, (rows > 1 ? 2 : 1) * pitch))
        return false;
    set_filters(&out->packings[0],
                (int64_t[OI_PACK_SIZES]){m, 1, k, 1, k, pitch / step, 1, m, step});
    out->function = "oi_mac_dense";
    out->in_place = k == m;
    out->epilogue[0] = c->q->out[0].rank - 1;
    out->epilogue[1] = c->q->out[0].rank;
    const int64_t sizes[] = {rows, k, m, pitch};
    add_arguments(c, out, "strip", (rows > 1 ? 2 : 1) * pitch, sizes, OI_COUNT(sizes));
    return true;
}
