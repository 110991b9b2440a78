/* epilogue.c: picks recipes for fused reductions; the fused instructions become the recipe's
 * epilogue.
 * needs:  fused kernels (fuse.c), before rows.c joins them
 * keeps:  results: the sums are of integers, so their order does not matter
 * makes:  kernels with a recipe and an epilogue; packed weights
 *
 * Recipes that are picked during lowering write their op's result to memory. Here the kernel
 * already contains everything that follows the sum, down to a residual and a narrower type. The
 * kernel keeps these instructions; the recipe replaces only its loops. It calls the epilogue once
 * per sum. Positions over several axes become one index, which requires that every access is linear
 * in it. */
#include "synth/compose.h"
#include "synth/lower.h"

typedef struct taking {
    oi_unit *u;
    oi_skernel *k;
    const oi_snest *n;
    uint32_t x, w;                      /* ports */
    uint32_t position_of[OI_NEST_AXES]; /* by axis of the nest: to which of the three epilogue
                                       positions it belongs */
    oi_recipe_plan *plan;
    const oi_recipe *recipe;
} taking;

/* -- matching the kernel -- */

static bool is_operand(const taking *t, uint32_t port, const oi_operand *o)
{
    const oi_tensor *own = &t->u->tensors.at[t->k->ports.at[port].tensor];
    bool same = own->dtype == o->dtype && own->rank == o->rank && !own->run_dims;
    for (uint32_t d = 0; same && d < o->rank; d++)
        same = own->dims[d] == o->dims[d];
    return same;
}

/* Finds the two factors, which must be plain loads. */
static bool find_factors(taking *t)
{
    unsigned n_loads = 0;
    for (size_t i = 0; i < t->n->pre.n; i++) {
        const oi_sop *op = &t->n->pre.at[i];
        if (!oi_sop_is_access(op))
            continue;
        if (op->kind != OI_SOP_LOAD || n_loads == 2)
            return false;
        *(n_loads++ ? &t->w : &t->x) = op->port;
    }
    return n_loads == 2 && is_operand(t, t->x, &t->k->sums->in[0]) &&
           is_operand(t, t->w, &t->k->sums->in[1]);
}

/* The output axes must be the dims of the result in order, except dims of length 1. */
static bool find_positions(taking *t)
{
    const oi_operand *out = &t->k->sums->out[0];
    uint32_t d = 0;
    for (uint32_t a = 0; a < t->n->n_axes && !t->n->axes[a].is_reduced; a++) {
        if (t->n->axes[a].extent == 1) {
            t->position_of[a] = 0; /* length 1: no position */
            continue;
        }
        while (d < out->rank && out->dims[d] == 1)
            d++;
        if (d == out->rank || out->dims[d] != t->n->axes[a].extent)
            return false;
        t->position_of[a] = (d >= t->plan->epilogue[0]) + (d >= t->plan->epilogue[1]);
        d++;
    }
    while (d < out->rank && out->dims[d] == 1)
        d++;
    return d == out->rank;
}

static const char *why_not(taking *t)
{
    const oi_skernel *k = t->k;
    if (k->nests.n != 1 || k->is_dynamic || k->can_fail || k->scalars.n || t->n->is_serial ||
        t->n->is_scan || t->n->combines_out || t->n->extents)
        return "more than a reduction";
    if (!find_factors(t))
        return "its factors are not plain loads";
    for (size_t i = 0; i < t->n->post.n; i++) {
        const oi_sop *op = &t->n->post.at[i];
        if (op->kind == OI_SOP_INDEX || op->kind == OI_SOP_COUNT ||
            (op->at && !oi_sop_is_affine(t->u, k, op)) ||
            (oi_sop_is_access(op) && op->port == t->w))
            return "its epilogue is not affine";
        for (uint32_t a = 0; a < op->n_args; a++)
            if (op->args[a] != OI_NO_ID && op->args[a] < t->n->pre.n)
                return "its epilogue reads a factor";
    }
    return NULL;
}

/* -- the epilogue -- */

/* Rewrites a sum over the nest's axes over the three positions; the third one is given as two that
 * are added. */
static bool in_positions(const taking *t, const oi_nest_coord *c, oi_nest_coord *out)
{
    bool is_set[3] = {false};
    int64_t extent[3] = {1, 1, 1};
    *out = (oi_nest_coord){.base = c->base, .index = OI_NEST_NONE};
    for (uint32_t a = t->n->n_axes; a-- > 0;) {
        uint32_t part = t->position_of[a];
        if (t->n->axes[a].is_reduced || t->n->axes[a].extent == 1)
            continue;
        if (!is_set[part])
            out->step[part] = c->step[a];
        else if (c->step[a] != out->step[part] * extent[part])
            return false;
        is_set[part] = true;
        extent[part] *= t->n->axes[a].extent;
    }
    out->step[OI_EPILOGUE_PLACE + 1] = out->step[OI_EPILOGUE_PLACE];
    return true;
}

static oi_snest *make_epilogue(const taking *t)
{
    oi_snest *f = oi_arena_alloc(t->u->arena, sizeof *f);
    const uint32_t base = (uint32_t)t->n->pre.n;
    *f = (oi_snest){.n_axes = OI_EPILOGUE_PLACE + 2,
                    .kind = t->n->kind,
                    .acc = t->n->acc,
                    .reduce = t->n->reduce};
    for (uint32_t p = 0; p < 3; p++)
        f->axes[p].extent = 1;
    for (uint32_t a = 0; a < t->n->n_axes; a++)
        if (!t->n->axes[a].is_reduced)
            f->axes[t->position_of[a]].extent *= t->n->axes[a].extent;
    f->axes[OI_EPILOGUE_PLACE + 1] = f->axes[OI_EPILOGUE_PLACE];
    for (size_t i = 0; i < t->n->post.n; i++) {
        oi_sop op = t->n->post.at[i];
        for (uint32_t a = 0; a < op.n_args; a++)
            op.args[a] -= op.args[a] == OI_NO_ID ? 0 : base;
        op.place -= op.kind == OI_SOP_EVAL && op.place != OI_NO_ID ? base : 0;
        if (op.at) {
            oi_nest_coord *at = oi_arena_alloc(t->u->arena, sizeof *at);
            oi_nest_coord old = op.kind == OI_SOP_PLACE ? op.at[0] : oi_sop_number(t->u, t->k, &op);
            if (!in_positions(t, &old, at))
                return NULL;
            op.at = at;
            op.is_flat = op.kind != OI_SOP_PLACE;
        }
        *OI_PUSH(t->u->arena, &f->post) = op;
    }
    return f;
}

/* -- applying the recipe -- */

static void set_arguments(taking *t, uint32_t packed)
{
    uint32_t *ports = oi_arena_alloc(t->u->arena, (t->plan->n_args + 1) * sizeof *ports);
    t->k->ports.at[t->w].tensor = packed;
    t->k->ports.at[t->w].ref = NULL;
    for (uint32_t i = 0; i < t->plan->n_args; i++) {
        oi_recipe_arg_kind kind = t->plan->args[i].kind;
        ports[i] = kind == OI_ARG_IN ? t->x : kind == OI_ARG_PACKED ? t->w : OI_NO_ID;
    }
    t->k->arg_ports = ports;
}

static uint64_t n_products(const oi_snest *n)
{
    uint64_t all = 1;
    for (uint32_t a = 0; a < n->n_axes; a++)
        all *= (uint64_t)n->axes[a].extent;
    return all;
}

/* Partitions are along a dim of the sums, so the result must be stored in their shape. */
static bool is_stored_alike(const taking *t)
{
    bool is = true;
    for (uint32_t i = 0; i < t->k->ports.n; i++) {
        const oi_tensor *to = &t->u->tensors.at[t->k->ports.at[i].tensor];
        const oi_operand *out = &t->k->sums->out[0];
        if (!t->k->ports.at[i].is_written)
            continue;
        is = is && to->rank == out->rank;
        for (uint32_t d = 0; is && d < out->rank; d++)
            is = to->dims[d] == out->dims[d];
    }
    return is;
}

static void take(oi_unit *u, oi_skernel *k)
{
    oi_recipe_plan plan = {0};
    taking t = {.u = u, .k = k, .n = &k->nests.at[0], .plan = &plan};
    const char *no = why_not(&t);
    if (no) {
        oi_unit_note(u, "epilogue", k->graph, k->nodes.at[0], "%s: %s", k->name, no);
        return;
    }
    oi_port *in = oi_arena_alloc(u->arena, (k->sums->n_in + 1) * sizeof *in);
    for (size_t i = 0; i < k->sums->n_in; i++) /* only the factors are used */
        in[i] = k->ports.at[i == 1 ? t.w : t.x];
    const oi_lowered call = {.q = k->sums, .in = in, .to = in};
    if (!oi_recipe_of(u, &call, &t.recipe, t.plan) || !t.plan->epilogue[1])
        return;
    oi_snest *epilogue = find_positions(&t) ? make_epilogue(&t) : NULL;
    if (!epilogue) {
        oi_unit_note(u, "epilogue", k->graph, k->nodes.at[0], "%s: %s", k->name,
                     "its epilogue is not linear in the position");
        return;
    }
    t.plan = oi_arena_alloc(u->arena, sizeof plan);
    *t.plan = plan;
    t.plan->macs = n_products(t.n);
    t.plan->unit = is_stored_alike(&t) ? t.plan->unit : t.plan->extent;
    set_arguments(&t, oi_recipe_pack(u, &call, &t.plan->packings[0]));
    k->recipe = t.recipe;
    k->plan = t.plan;
    k->call = t.n->reduce;
    k->epilogue = epilogue;
    k->nests.n = 0;
    k->taken = k->sums;
    k->query = k->sums = NULL;
}

oi_status oi_pass_epilogue(oi_unit *u)
{
    for (size_t i = 0; i < u->kernels.n && !oi_unit_skips(u, "recipes"); i++) {
        oi_skernel *k = &u->kernels.at[i];
        if (k->is_used && k->sums && !k->recipe)
            take(u, k);
    }
    return OI_OK;
}
