/* narrow32.c: computes 64-bit integers in 32 bits where they fit.
 * needs:  kernels with all their instructions
 * keeps:  results: every narrowed value is proved to fit
 * makes:  weights of half the size; casts from 32 bits
 *
 * Integer layers return to 8 bits by a 64-bit product, a shift and a cast. The factors are known,
 * so the range of the cast's operand is known, too. */
#include "synth/lower.h"
#include "synth/range.h"

typedef struct narrowing {
    oi_ranges ranges;
    uint32_t *becomes; /* by tensor: its 32-bit copy, or OI_NO_ID */
} narrowing;

static bool is_narrow(oi_range r)
{
    return r.from >= INT32_MIN && r.to <= INT32_MAX;
}

/* -- weights -- */

static void pack_narrow(const oi_packing *p, const void *const *in, void *out)
{
    const int64_t *from = in[0];
    int32_t *to = out;
    for (int64_t i = 0; i < p->sizes[0]; i++)
        to[i] = (int32_t)from[i];
}

/* Makes a 32-bit copy of the tensor. */
static uint32_t narrower(narrowing *x, const oi_port *port)
{
    const oi_tensor old = x->ranges.u->tensors.at[port->tensor];
    const int64_t n = oi_tensor_count(&old);
    const oi_packing p = {.name = "32 bits",
                          .n_in = 1,
                          .sizes = {n},
                          .size_bytes = (uint64_t)n * 4,
                          .dtype = OI_I32,
                          .pack = pack_narrow};
    uint32_t made = oi_recipe_pack(x->ranges.u, &(oi_lowered){.in = port}, &p);
    oi_tensor *t = &x->ranges.u->tensors.at[made];
    t->rank = old.rank;
    memcpy(t->dims, old.dims, sizeof t->dims);
    oi_tensor_measure(t);
    t->origin = old.origin ? old.origin : old.var;
    return made;
}

/* Candidates are tensors that are only loaded: any other mention needs the original. */
static void find_narrow(narrowing *x)
{
    oi_unit *u = x->ranges.u;
    const uint32_t *loads = oi_plain_ports(u, false), *mentions = oi_all_mentions(u);
    for (uint32_t i = 0; i < x->ranges.n; i++)
        if (u->tensors.at[i].dtype == OI_I64 && u->tensors.at[i].space == OI_SPACE_WEIGHTS &&
            loads[i] && loads[i] == mentions[i] && is_narrow(oi_range_of_tensor(&x->ranges, i)))
            x->becomes[i] = i; /* itself, until the copy exists */
}

/* -- kernels -- */

static oi_dtype type_of(const oi_snest *n, uint32_t id)
{
    return id < n->pre.n ? n->pre.at[id].type : n->post.at[id - n->pre.n].type;
}

static bool is_cast(const oi_sop *op)
{
    return op->kind == OI_SOP_EVAL && op->part == OI_PART_EXPR && op->call->op->id == OI_OP_CAST;
}

static uint32_t narrow_sop(oi_rewriting *r, uint32_t i, const oi_sop *op, oi_sop *moved, void *ctx)
{
    const narrowing *x = ctx;
    const uint32_t tensor = op->kind == OI_SOP_LOAD ? r->k->ports.at[op->port].tensor : OI_NO_ID;
    (void)i;
    if (is_cast(op) && !oi_dtype_is_float(op->type) && type_of(r->n, op->args[0]) == OI_I64 &&
        is_narrow(r->ranges[op->args[0]]))
        moved->args[0] = oi_rewrite_convert(r, OI_I64, OI_I32, moved->args[0]);
    if (tensor >= x->ranges.n || x->becomes[tensor] == OI_NO_ID)
        return oi_rewrite_put(r, moved);
    moved->type = OI_I32;
    return oi_rewrite_convert(r, OI_I32, OI_I64, oi_rewrite_put(r, moved));
}

oi_status oi_pass_narrow32(oi_unit *u)
{
    narrowing x = {.ranges = oi_ranges_new(u)};
    x.becomes = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *x.becomes);
    for (uint32_t i = 0; i < x.ranges.n; i++)
        x.becomes[i] = OI_NO_ID;
    find_narrow(&x);
    for (size_t i = 0; i < u->kernels.n; i++) {
        oi_skernel *k = &u->kernels.at[i];
        if (!k->is_used || k->is_dynamic)
            continue;
        for (size_t m = 0; m < k->nests.n; m++)
            if (oi_nest_has_type(&k->nests.at[m], OI_I64))
                oi_nest_rewrite(&x.ranges, k, &k->nests.at[m], narrow_sop, &x);
        if (k->epilogue && oi_nest_has_type(k->epilogue, OI_I64))
            oi_nest_rewrite(&x.ranges, k, k->epilogue, narrow_sop, &x);
        for (size_t p = 0; p < k->ports.n; p++) {
            uint32_t t = k->ports.at[p].tensor;
            if (t < x.ranges.n && x.becomes[t] != OI_NO_ID) {
                x.becomes[t] = x.becomes[t] == t ? narrower(&x, &k->ports.at[p]) : x.becomes[t];
                k->ports.at[p].tensor = x.becomes[t];
            }
        }
    }
    return OI_OK;
}
