/* narrow16.c: stores 32-bit integers in 16 bits where they fit, for targets with vectors of 16-bit
 * elements.
 * needs:  kernels with all their instructions
 * keeps:  results: every narrowed value is proved to fit
 * makes:  16-bit temporaries; 16-bit products, and oi_snest.most, their largest magnitude
 *
 * Activations quantised to 8 bits are computed as i32, as the op says. In 16 bits a register holds
 * twice as many, a product is one instruction, and several products can be summed before the sum
 * needs 32 bits (schedule.c). */
#include "synth/range.h"

typedef struct shortening {
    oi_ranges ranges;
    bool *is_short;      /* by tensor: 16 bits suffice */
    oi_range *stored;    /* by tensor: range of the stored values */
    bool *keeps_lengths; /* by tensor: `stored` is known */
    /* of the current nest, by old instruction: */
    bool *is_half;   /* its replacement has 16 bits */
    uint32_t *whole; /* the same value in 32 bits, or OI_NO_ID: not emitted yet */
    int64_t most;    /* largest product; 0: products were not narrowed */
} shortening;

static bool fits(oi_range r)
{
    return r.from >= INT16_MIN && r.to <= INT16_MAX;
}

/* -- temporaries -- */

static uint32_t look_at_store(oi_rewriting *r, uint32_t i, const oi_sop *op, oi_sop *moved,
                              void *ctx)
{
    shortening *x = ctx;
    const uint32_t tensor = op->kind == OI_SOP_STORE ? r->k->ports.at[op->port].tensor : OI_NO_ID;
    (void)i;
    if (tensor < x->ranges.n) {
        const oi_range own = r->ranges[op->args[0]];
        oi_range *all = &x->stored[tensor];
        all->from = x->keeps_lengths[tensor] && all->from < own.from ? all->from : own.from;
        all->to = x->keeps_lengths[tensor] && all->to > own.to ? all->to : own.to;
        x->keeps_lengths[tensor] = true;
    }
    return oi_rewrite_put(r, moved);
}

/* A value that only kernels of the graph exchange. */
static bool is_temporary(const oi_tensor *t)
{
    return t->dtype == OI_I32 && (t->space == OI_SPACE_ARENA || t->space == OI_SPACE_LOCAL) &&
           !t->var && !t->origin && !t->run_dims && t->start == OI_START_NONE && !t->n_table;
}

static void for_nests(shortening *x, oi_rewrite_fn *fn)
{
    oi_unit *u = x->ranges.u;
    for (size_t i = 0; i < u->kernels.n; i++) {
        oi_skernel *k = &u->kernels.at[i];
        for (size_t m = 0; k->is_used && !k->is_dynamic && m < k->nests.n; m++) {
            oi_snest *n = &k->nests.at[m];
            if (!oi_nest_has_type(n, OI_I32))
                continue;
            const size_t all = n->pre.n + n->post.n;
            x->is_half = oi_arena_alloc(u->arena, (all + 1) * sizeof *x->is_half);
            x->whole = oi_arena_alloc(u->arena, (all + 1) * sizeof *x->whole);
            for (size_t o = 0; o < all; o++)
                x->whole[o] = OI_NO_ID;
            x->most = 0;
            oi_nest_rewrite(&x->ranges, k, n, fn, x);
            n->most = x->most;
        }
    }
}

static void find_short(shortening *x)
{
    oi_unit *u = x->ranges.u;
    const uint32_t *plain = oi_plain_ports(u, true), *mentions = oi_all_mentions(u);
    for_nests(x, look_at_store);
    for (uint32_t i = 0; i < x->ranges.n; i++) {
        oi_tensor *t = &u->tensors.at[i];
        x->is_short[i] =
            is_temporary(t) && x->keeps_lengths[i] && plain[i] == mentions[i] && fits(x->stored[i]);
        if (x->is_short[i]) {
            x->ranges.of[i] = x->stored[i];
            x->ranges.is_found[i] = true;
            t->dtype = OI_I16;
            oi_tensor_measure(t);
        }
    }
}

/* -- products -- */

/* Exactly two factors. */
static bool is_short_product(const oi_rewriting *r, uint32_t i, const oi_sop *op)
{
    uint32_t factors = 0;
    if (r->n->kind != OI_NEST_CONTRACT || i != r->n->element || i >= r->n->pre.n ||
        op->kind != OI_SOP_EVAL || op->part != OI_PART_EXPR || op->type != OI_I32 ||
        r->n->acc != OI_I32 || !fits(r->ranges[i]))
        return false;
    for (uint32_t a = 0; a < op->n_args; a++) {
        if (op->args[a] == OI_NO_ID)
            continue;
        factors++;
        if (!fits(r->ranges[op->args[a]]))
            return false;
    }
    return factors == 2;
}

static void set_args(oi_rewriting *r, const oi_sop *op, oi_sop *moved, shortening *x, bool half)
{
    for (uint32_t a = 0; a < op->n_args; a++) {
        const uint32_t old = op->args[a];
        if (old == OI_NO_ID || x->is_half[old] == half)
            continue;
        if (half) {
            moved->args[a] = oi_rewrite_convert(r, OI_I32, OI_I16, moved->args[a]);
            continue;
        }
        if (x->whole[old] == OI_NO_ID)
            x->whole[old] = oi_rewrite_convert(r, OI_I16, OI_I32, moved->args[a]);
        moved->args[a] = x->whole[old];
    }
}

static uint32_t shorten(oi_rewriting *r, uint32_t i, const oi_sop *op, oi_sop *moved, void *ctx)
{
    shortening *x = ctx;
    const bool goes = oi_sop_is_access(op), multiplies = is_short_product(r, i, op);
    const uint32_t tensor = goes ? r->k->ports.at[op->port].tensor : OI_NO_ID;
    const bool is_short = tensor < x->ranges.n && x->is_short[tensor];
    if (op->kind == OI_SOP_EVAL || op->kind == OI_SOP_CONVERT || op->kind == OI_SOP_STORE)
        set_args(r, op, moved, x, multiplies || (is_short && op->kind == OI_SOP_STORE));
    if (multiplies) {
        const oi_range p = r->ranges[i];
        x->most = -p.from > p.to ? -p.from : p.to;
    }
    moved->type = is_short || multiplies ? OI_I16 : moved->type;
    x->is_half[i] = multiplies || (is_short && op->kind == OI_SOP_LOAD);
    return oi_rewrite_put(r, moved);
}

oi_status oi_pass_narrow16(oi_unit *u)
{
    const size_t n = u->tensors.n + 1;
    shortening x = {.ranges = oi_ranges_new(u)};
    if (!u->can.vector_lanes)
        return OI_OK;
    x.is_short = oi_arena_alloc(u->arena, n * sizeof *x.is_short);
    x.stored = oi_arena_alloc(u->arena, n * sizeof *x.stored);
    x.keeps_lengths = oi_arena_alloc(u->arena, n * sizeof *x.keeps_lengths);
    find_short(&x);
    for_nests(&x, shorten);
    return OI_OK;
}
