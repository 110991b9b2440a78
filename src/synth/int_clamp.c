/* int_clamp.c: converts floats that become small integers to 32 bits first, and clamps them there.
 * needs:  kernels with all their instructions
 * keeps:  results: what is converted is proved to be a number that fits
 * makes:  conversions without checks (oi_sop.fits), integer clamps
 *
 * Quantisation rounds, clamps and casts, and each op defines its result for every float. Compilers
 * make comparisons and masks of that. A clamp of integers is one instruction per limit. */
#include "synth/range.h"

#include <math.h>

#define MOST 0x1p31 /* the first magnitude that does not fit 32 bits */

/* A number in this interval; from > to: it may be NaN. */
typedef struct reals {
    double from, to;
} reals;

typedef struct making {
    oi_ranges ranges;
    /* of the current nest, by old instruction: */
    reals *of;
    uint32_t *uses;
    const oi_sop **user; /* one of its users */
    bool *is_cut;        /* its replacement is an i32 */
} making;

static const reals unknown = {1, 0};

static const oi_sop *instruction(const oi_snest *n, uint32_t i)
{
    return i < n->pre.n ? &n->pre.at[i] : &n->post.at[i - n->pre.n];
}

static bool is_call(const oi_sop *op, oi_op_id id)
{
    return op->kind == OI_SOP_EVAL && op->part == OI_PART_EXPR && op->call->op->id == id;
}

/* Whether all attributes are constants. */
static bool keeps_lengths(const oi_scall *c)
{
    bool is = true;
    for (uint32_t i = 0; c->scalars && i < c->op->n_attrs; i++)
        is = is && c->scalars[i] == OI_NO_ID;
    return is;
}

/* -- what floats may be -- */

/* With a margin for the rounding of sums and products. */
static reals rounded(double from, double to)
{
    const double more = (fabs(from) + fabs(to)) * 0x1p-20;
    return fabs(from) < 0x1p100 && fabs(to) < 0x1p100 ? (reals){from - more, to + more} : unknown;
}

static reals product(reals a, reals b)
{
    const double all[] = {a.from * b.from, a.from * b.to, a.to * b.from, a.to * b.to};
    reals r = {all[0], all[0]};
    for (int i = 1; i < 4; i++) {
        r.from = all[i] < r.from ? all[i] : r.from;
        r.to = all[i] > r.to ? all[i] : r.to;
    }
    return rounded(r.from, r.to);
}

/* The value of a constant attribute; false: it is not constant. */
static bool number_of(const oi_scall *c, const char *name, double *out)
{
    const oi_op_attr *a = oi_op_attr_find(c->op, name);
    const size_t i = a ? (size_t)(a - c->op->attrs) : 0;
    if (!a || (c->scalars && c->scalars[i] != OI_NO_ID))
        return false;
    *out = c->attrs[i].tag == OI_VALUE_INT ? (double)c->attrs[i].i : c->attrs[i].f;
    return c->attrs[i].tag == OI_VALUE_INT || c->attrs[i].tag == OI_VALUE_FLOAT;
}

static bool limits_of(const oi_sop *op, reals *out)
{
    return is_call(op, OI_OP_CLAMP) && number_of(op->call, "min", &out->from) &&
           number_of(op->call, "max", &out->to) && out->from <= out->to;
}

static reals of_eval(const making *x, const oi_rewriting *r, const oi_sop *op)
{
    const oi_sop *from = op->args[0] == OI_NO_ID ? NULL : instruction(r->n, op->args[0]);
    const reals a = from ? x->of[op->args[0]] : unknown;
    const bool is_pair = op->n_args > 1 && op->args[1] != OI_NO_ID;
    const reals b = is_pair ? x->of[op->args[1]] : unknown;
    reals limits;
    if (from && is_call(op, OI_OP_CAST) && !oi_dtype_is_float(from->type) &&
        from->type != OI_BOOL && oi_dtype_bits(from->type) <= 32) {
        const oi_range own = r->ranges[op->args[0]];
        return rounded((double)own.from, (double)own.to);
    }
    if (a.from > a.to)
        return unknown;
    if (is_call(op, OI_OP_ROUND) || is_call(op, OI_OP_TRUNC))
        return (reals){a.from - 1, a.to + 1};
    if (limits_of(op, &limits))
        return (reals){a.from < limits.from ? limits.from
                       : a.from < limits.to ? a.from
                                            : limits.to,
                       a.to > limits.to     ? limits.to
                       : a.to > limits.from ? a.to
                                            : limits.from};
    if (b.from > b.to)
        return unknown;
    return is_call(op, OI_OP_MUL)   ? product(a, b)
           : is_call(op, OI_OP_ADD) ? rounded(a.from + b.from, a.to + b.to)
           : is_call(op, OI_OP_SUB) ? rounded(a.from - b.to, a.to - b.from)
                                    : unknown;
}

static reals of_sop(making *x, const oi_rewriting *r, const oi_sop *op)
{
    reals own = unknown;
    if (op->type != OI_F32)
        return unknown;
    if (op->kind == OI_SOP_CONST && !op->is_raw) {
        const double v = oi_element_f64(op->type, &op->fill, 0);
        return isfinite(v) ? (reals){v, v} : unknown;
    }
    if (op->kind == OI_SOP_LOAD && !op->is_raw && !op->may_leave && !op->guard &&
        oi_reals_of_tensor(x->ranges.u, r->k->ports.at[op->port].tensor, &own.from, &own.to))
        return own;
    return op->kind == OI_SOP_EVAL ? of_eval(x, r, op) : unknown;
}

/* -- cutting -- */

static bool fits(reals r)
{
    return r.from <= r.to && r.from > -MOST && r.to < MOST;
}

/* Saturating casts of floats to 8 or 16 bits. Their rounding mode does not matter for whole
 * numbers. */
static bool is_end(const oi_sop *op)
{
    const oi_op_value *a = op->kind == OI_SOP_EVAL ? op->call->attrs : NULL;
    return is_call(op, OI_OP_CAST) && keeps_lengths(op->call) && oi_dtype_bits(op->type) <= 16 &&
           oi_dtype_bits(op->type) >= 8 && !oi_dtype_is_float(op->type) && op->type != OI_BOOL &&
           strcmp(a[oi_op_attr_find(op->call->op, "rounding_mode") - op->call->op->attrs].s,
                  "trunc") == 0 &&
           a[oi_op_attr_find(op->call->op, "saturate") - op->call->op->attrs].b;
}

static uint32_t cut(oi_rewriting *r, uint32_t value)
{
    return oi_rewrite_put(r, &(oi_sop){.kind = OI_SOP_CONVERT,
                                       .type = OI_I32,
                                       .from = OI_F32,
                                       .fits = true,
                                       .args = {value},
                                       .n_args = 1});
}

/* A float clamp with whole limits that only such a cast uses becomes an integer clamp. */
static bool can_clamp(const making *x, const oi_rewriting *r, uint32_t i, const oi_sop *op,
                      reals *limits)
{
    return op->type == OI_F32 && limits_of(op, limits) && keeps_lengths(op->call) &&
           x->uses[i] == 1 && x->user[i] && is_end(x->user[i]) && fits(x->of[op->args[0]]) &&
           fits(*limits) && limits->from == trunc(limits->from) &&
           limits->to == trunc(limits->to) && r->n->element != i;
}

static uint32_t clamp(oi_rewriting *r, const oi_sop *op, oi_sop *moved, reals limits)
{
    oi_arena *arena = r->x->u->arena;
    const oi_op *clamp_op = op->call->op;
    oi_op_value *attrs = oi_arena_alloc(arena, clamp_op->n_attrs * sizeof *attrs);
    oi_scall *call = oi_arena_alloc(arena, sizeof *call);
    memcpy(attrs, op->call->attrs, clamp_op->n_attrs * sizeof *attrs);
    attrs[oi_op_attr_find(clamp_op, "min") - clamp_op->attrs] =
        (oi_op_value){.tag = OI_VALUE_INT, .i = (int64_t)limits.from};
    attrs[oi_op_attr_find(clamp_op, "max") - clamp_op->attrs] =
        (oi_op_value){.tag = OI_VALUE_INT, .i = (int64_t)limits.to};
    *call = *op->call;
    call->attrs = attrs;
    call->in0 = OI_I32;
    moved->args[0] = cut(r, moved->args[0]);
    moved->call = call;
    moved->type = OI_I32;
    return oi_rewrite_put(r, moved);
}

static uint32_t rewrite(oi_rewriting *r, uint32_t i, const oi_sop *op, oi_sop *moved, void *ctx)
{
    making *x = ctx;
    reals limits;
    x->of[i] = of_sop(x, r, op);
    if (can_clamp(x, r, i, op, &limits)) {
        x->is_cut[i] = true;
        return clamp(r, op, moved, limits);
    }
    if (!is_end(op))
        return oi_rewrite_put(r, moved);
    const uint32_t from = op->args[0];
    const oi_dtype_info *type = oi_dtype_get(op->type);
    const bool is_f32 = instruction(r->n, from)->type == OI_F32;
    if (is_f32 && !x->is_cut[from] && fits(x->of[from]))
        moved->args[0] = cut(r, moved->args[0]);
    if (x->is_cut[from] && x->of[from].from >= (double)type->min &&
        x->of[from].to <= (double)type->max)
        return oi_rewrite_put(r, &(oi_sop){.kind = OI_SOP_CONVERT,
                                           .type = op->type,
                                           .from = OI_I32,
                                           .fits = true,
                                           .args = {moved->args[0]},
                                           .n_args = 1});
    return oi_rewrite_put(r, moved);
}

static bool has_end(const oi_snest *n)
{
    for (uint32_t i = 0; i < n->pre.n + n->post.n; i++)
        if (is_end(instruction(n, i)))
            return true;
    return false;
}

static void of_nest(making *x, oi_skernel *k, oi_snest *n)
{
    oi_arena *a = x->ranges.u->arena;
    const size_t all = n->pre.n + n->post.n;
    if (!has_end(n)) /* nothing to rewrite */
        return;
    x->of = oi_arena_alloc(a, (all + 1) * sizeof *x->of);
    x->uses = oi_arena_alloc(a, (all + 1) * sizeof *x->uses);
    x->user = oi_arena_alloc(a, (all + 1) * sizeof *x->user);
    x->is_cut = oi_arena_alloc(a, (all + 1) * sizeof *x->is_cut);
    for (uint32_t i = 0; i < all; i++) {
        const oi_sop *op = instruction(n, i);
        for (uint32_t arg = 0; arg < op->n_args; arg++)
            if (op->args[arg] != OI_NO_ID) {
                x->uses[op->args[arg]]++;
                x->user[op->args[arg]] = op;
            }
    }
    oi_nest_rewrite(&x->ranges, k, n, rewrite, x);
}

oi_status oi_pass_int_clamp(oi_unit *u)
{
    making x = {.ranges = oi_ranges_new(u)};
    if (!u->can.vector_lanes)
        return OI_OK;
    for (size_t i = 0; i < u->kernels.n; i++) {
        oi_skernel *k = &u->kernels.at[i];
        for (size_t m = 0; k->is_used && !k->is_dynamic && m < k->nests.n; m++)
            of_nest(&x, k, &k->nests.at[m]);
        if (k->is_used && !k->is_dynamic && k->epilogue)
            of_nest(&x, k, k->epilogue);
    }
    return OI_OK;
}
