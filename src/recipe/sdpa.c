/* sdpa.c: which calls of sdpa the bodies of sdpa.h implement. */
#include "device/cost.h"
#include "recipe/recipe.h"

#include <math.h>

#define ROWS       96        /* at a time: they share the work of laying out a tile of keys */
#define KEYS       64        /* OI_SDPA_KEYS */
#define MOST       (1 << 18) /* keys: a row of scores is a local of the caller */
#define STEP       32        /* products that are summed at a time */
#define MOST_TILED (1 << 19) /* numbers of a head's keys and values, 1 MB: again such a local */

typedef struct call {
    int64_t batches, heads, kv_heads, tq, tk, dh, dv;
    bool heads_first, is_bf16;
    int64_t mask_size, mask_steps[4]; /* 0: there is none */
} call;

static int64_t integer(const oi_kernel_query *q, const char *name, int64_t absent)
{
    const oi_op_value *v = oi_kernel_attr(q, name);
    return v->tag == OI_VALUE_INT ? v->i : absent;
}

/* Packed heads [B, T, H Dh], heads of their own [B, H, T, Dh], or one query [1, H Dh] over
 * [T, 1, Hk Dh]. */
static bool set_call(const oi_kernel_query *q, call *c)
{
    const oi_operand *x = &q->in[0], *k = &q->in[1], *v = &q->in[2];
    if (x->rank == 4) {
        *c = (call){x->dims[0], x->dims[1], k->dims[1], x->dims[2], k->dims[2], x->dims[3],
                    v->dims[3], true,       false,      0,          {0}};
        return c->heads > 0 && c->kv_heads > 0;
    }
    int64_t heads = integer(q, "heads", 1), width = x->dims[x->rank - 1] / heads;
    int64_t kv_heads = integer(q, "kv_heads", width ? k->dims[2] / width : 0);
    if (width == 0 || kv_heads == 0 || (x->rank == 2 && x->dims[0] != 1))
        return false;
    *c = (call){x->dims[0],
                heads,
                kv_heads,
                x->rank == 2 ? 1 : x->dims[1],
                x->rank == 2 ? k->dims[0] : k->dims[1],
                width,
                v->dims[2] / kv_heads,
                false,
                false,
                0,
                {0}};
    return true;
}

/* A mask broadcasts to [B, H, Tq, Tk]; numbers are added, 0 of anything else hides. */
static bool set_mask(const oi_kernel_query *q, call *c)
{
    if (q->n_in < 4)
        return true;
    const oi_operand *m = &q->in[3];
    int64_t step = 1;
    for (uint32_t i = m->rank; i-- > 0; step *= m->dims[i])
        c->mask_steps[i + 4 - m->rank] = m->dims[i] == 1 ? 0 : step;
    c->mask_size = (int64_t)oi_dtype_bits(m->dtype) / 8;
    return m->dtype == OI_F32 || m->dtype == OI_BOOL || m->dtype == OI_U8;
}

static bool is_known(const oi_kernel_query *q, const char *name)
{
    size_t i = (size_t)(oi_op_attr_find(q->op, name) - q->op->attrs);
    return !q->run_attrs || q->run_attrs[i].dtype == OI_NONE;
}

static bool is_act(const oi_kernel_query *q, const char *word)
{
    return strcmp(oi_kernel_attr(q, "act")->s, word) == 0;
}

/* kv_len is one number: as it is, or known by the run only. Steps of bf16 read whole vectors of
 * features; other bodies fill up their rows. */
static bool fits(const oi_kernel_query *q, const call *c, int64_t lanes)
{
    const oi_op_value *len = oi_kernel_attr(q, "kv_len");
    size_t i = (size_t)(oi_op_attr_find(q->op, "kv_len") - q->op->attrs);
    bool is_one = is_known(q, "kv_len") ? len->tag == OI_VALUE_NONE || len->tag == OI_VALUE_INT
                                        : q->run_attrs[i].rank == 0;
    oi_dtype t = q->in[1].dtype;
    return q->in[0].dtype == OI_F32 && q->out[0].dtype == OI_F32 && (t == OI_F16 || t == OI_F32) &&
           q->in[2].dtype == t && is_one && is_known(q, "scale") && c->batches > 0 && c->tq > 0 &&
           c->tk > 0 && c->tk <= MOST && c->dh > 0 && c->dv > 0 && !is_act(q, "f16") &&
           (!is_act(q, "bf16") || (c->dh % lanes == 0 && c->dv % (2 * lanes) == 0));
}

static double scale_of(const oi_kernel_query *q, const call *c)
{
    const oi_op_value *v = oi_kernel_attr(q, "scale");
    return v->tag == OI_VALUE_FLOAT ? v->f
           : v->tag == OI_VALUE_INT ? (double)v->i
                                    : 1 / sqrt((double)c->dh);
}

static void add_length(const oi_kernel_query *q, const call *c, oi_recipe_plan *out)
{
    int64_t i = oi_op_attr_find(q->op, "kv_len") - q->op->attrs;
    if (is_known(q, "kv_len"))
        oi_recipe_arg_add(out, OI_ARG_SIZE, integer(q, "kv_len", c->tk));
    else
        oi_recipe_arg_add(out, OI_ARG_ATTR, i);
}

/* -- plans -- */

static void add_mask(const call *c, oi_recipe_plan *out)
{
    for (size_t i = 0; c->mask_size && i < OI_COUNT(c->mask_steps) + 1; i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, i ? c->mask_steps[i - 1] : c->mask_size);
}

static void add_ports(const call *c, oi_recipe_plan *out)
{
    for (int64_t i = 0; i < (c->mask_size ? 4 : 3); i++)
        oi_recipe_arg_add(out, OI_ARG_IN, i);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
}

static void add_sizes(const int64_t *sizes, size_t n, oi_recipe_plan *out)
{
    for (size_t i = 0; i < n; i++)
        oi_recipe_arg_add(out, OI_ARG_SIZE, sizes[i]);
}

/* From the scale on. */
static void add_rest(const oi_kernel_query *q, const call *c, oi_recipe_plan *out)
{
    oi_recipe_arg_real(out, scale_of(q, c));
    add_length(q, c, out);
    add_mask(c, out);
    oi_recipe_arg_add(out, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(out, OI_ARG_LAST, 0);
}

static int64_t up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Tiles hold 16 rows, and all keys of a head lie in scratch: a local of the caller. The body takes
 * the largest score before it is scaled. */
static bool fits_tiles(const oi_recipe_call *rc, const call *c)
{
    return c->is_bf16 && oi_recipe_height(rc->target, "amx") &&
           c->heads / c->kv_heads * c->tq >= 16 && scale_of(rc->q, c) > 0 &&
           up(c->tk, STEP) * (up(c->dh, STEP) + c->dv) <= MOST_TILED;
}

static void plan_tiles(const oi_recipe_call *rc, const call *c, oi_recipe_plan *out)
{
    const oi_kernel_query *q = rc->q;
    const int64_t wide = up(c->dh, STEP), keys = up(c->tk, STEP);
    const int64_t sizes[] = {c->batches,
                             c->heads,
                             c->kv_heads,
                             c->tq,
                             c->tk,
                             c->dh,
                             c->dv,
                             c->heads_first,
                             (int64_t)oi_dtype_bits(q->in[1].dtype) / 8,
                             oi_kernel_attr(q, "causal")->b};
    out->function = c->mask_size ? "oi_sdpa_tiles_masked" : "oi_sdpa_tiles";
    add_ports(c, out);
    oi_recipe_scratch_add(out, "halves", OI_U16, 16 * wide + keys * (wide + c->dv));
    oi_recipe_scratch_add(out, "work", OI_F32, 16 * c->dv + 3 * 16 * keys);
    add_sizes(sizes, OI_COUNT(sizes), out);
    add_rest(q, c, out);
    out->percent = oi_cost_tiles(rc->target, 0.3); /* exponentials take the rest */
    out->is_scattered = true;
    out->extent = c->heads * c->tq;
    out->unit = 16;
}

static const char *function_of(const call *c)
{
    if (c->is_bf16)
        return c->mask_size ? "oi_sdpa_bf16_masked" : "oi_sdpa_bf16";
    return c->mask_size ? "oi_sdpa_masked" : "oi_sdpa";
}

static void plan_lanes(const oi_recipe_call *rc, const call *c, oi_recipe_plan *out)
{
    const oi_kernel_query *q = rc->q;
    const int64_t lanes = oi_recipe_lanes(rc->target), all = c->heads * c->tq; /* rows */
    const int64_t wh = up(c->dh, lanes), wv = up(c->dv, lanes);
    const int64_t each = all / c->kv_heads; /* those of a head of keys */
    const bool is_many = c->is_bf16 || each >= 2 * lanes;
    int64_t rows = each <= 2 * ROWS && each > ROWS ? each : ROWS;
    rows = all < rows ? all : rows;
    rows = is_many ? up(rows, lanes) : rows;
    const int64_t least = is_many /* floats of scores */
                              ? (c->tk + 6) / 6 * 6 * lanes
                              : ((c->tk + 2 * lanes - 1) / (2 * lanes) | 1) * (2 * lanes);
    const int64_t most = oi_cost_sdpa_floats(rc->target),
                  wanted = least * rows / (is_many ? lanes : 1);
    const int64_t space = wanted < most ? wanted : least > most ? least : most;
    const int64_t unit = is_many ? c->tq : c->heads_first ? 1 : c->dv;
    const int64_t sizes[] = {
        c->batches, c->heads,        c->kv_heads,
        c->tq,      c->tk,           c->dh,
        c->dv,      c->heads_first,  (int64_t)oi_dtype_bits(q->in[1].dtype) / 8,
        rows,       space,           oi_kernel_attr(q, "causal")->b,
        unit,       !rc->may_regroup};
    out->function = function_of(c);
    add_ports(c, out);
    oi_recipe_scratch_add(out, "work", OI_F32,
                          rows * (wh + wv + 4) + KEYS * (wh > wv ? wh : wv) + space);
    add_sizes(sizes, OI_COUNT(sizes) - c->is_bf16, out);
    add_rest(q, c, out);
    out->percent = 40; /* exponentials take the rest */
    out->is_scattered = is_many;
    out->split_dim = c->heads_first ? 1 : q->out[0].rank - 1;
    out->extent = is_many ? all : q->out[0].dims[out->split_dim];
    out->unit = is_many ? lanes : unit;
}

bool oi_recipe_sdpa(const oi_recipe_call *rc, oi_recipe_plan *out)
{
    call c;
    if (!set_call(rc->q, &c) || !set_mask(rc->q, &c) ||
        !fits(rc->q, &c, oi_recipe_lanes(rc->target)))
        return false;
    c.is_bf16 = is_act(rc->q, "bf16");
    if (fits_tiles(rc, &c))
        plan_tiles(rc, &c, out);
    else
        plan_lanes(rc, &c, out);
    return true;
}
