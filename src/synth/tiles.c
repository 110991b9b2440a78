/* tiles.c: moves whose source and result are contiguous along different axes.
 * needs:  maps after fusion, before their loops are ordered
 * keeps:  every result bit for bit
 * makes:  kernels with the body of move_tiles.h
 *
 * A loop over such a move reads or writes one element of every line that it touches. Tiles are
 * transposed in registers instead. Only a move of its own becomes one: fusion has taken all others
 * into their readers and writers. */
#include "recipe/recipe.h"
#include "synth/compose.h"
#include "synth/lower.h"

#define OUTER 3 /* axes around a tile */
#define ROWS  4 /* OI_MOVE_ROWS, in vectors */

static const oi_recipe recipe = {"transpose in tiles", OI_OP_TRANSPOSE, true, NULL};

typedef struct moving_axis {
    int64_t extent, from, to; /* steps in the source and in the result */
} moving_axis;

typedef struct tiling {
    uint32_t n;
    moving_axis axes[OI_NEST_AXES];
    int64_t from_begin, to_begin;
    uint32_t from, to; /* ports */
} tiling;

/* A place follows from the iteration by constant steps, wherever its tensor begins. */
static bool is_plain(const oi_unit *u, const oi_skernel *k, const oi_sop *op)
{
    const oi_port *p = &k->ports.at[op->port];
    const oi_tensor *t = &u->tensors.at[p->tensor];
    return op->type == OI_F32 && t->dtype == OI_F32 && !op->may_leave && !op->guard && !op->fns &&
           oi_sop_is_affine(u, k, op) && !p->n_entry && !p->count && !t->ring && !t->run_dims &&
           !t->n_table && !t->packing;
}

static bool is_move(const oi_unit *u, const oi_skernel *k)
{
    if (!k->is_used || k->recipe || k->nests.n != 1 || k->n_shared || k->is_dynamic ||
        k->can_fail || k->scalars.n || k->ports.n != 2)
        return false;
    const oi_snest *n = &k->nests.at[0];
    return n->kind == OI_NEST_MAP && !n->is_serial && !n->is_scan && !n->combines_out &&
           !n->skips && !n->extents && n->pre.n == 2 && n->pre.at[0].kind == OI_SOP_LOAD &&
           n->pre.at[1].kind == OI_SOP_STORE && n->pre.at[1].args[0] == 0 &&
           n->pre.at[0].port != n->pre.at[1].port && is_plain(u, k, &n->pre.at[0]) &&
           is_plain(u, k, &n->pre.at[1]);
}

/* Neighbouring axes that both sides walk through as one become one. */
static void collect_axes(const oi_unit *u, const oi_skernel *k, tiling *t)
{
    const oi_snest *n = &k->nests.at[0];
    const oi_nest_coord from = oi_sop_number(u, k, &n->pre.at[0]);
    const oi_nest_coord to = oi_sop_number(u, k, &n->pre.at[1]);
    t->from_begin = from.base;
    t->to_begin = to.base;
    t->from = n->pre.at[0].port;
    t->to = n->pre.at[1].port;
    for (uint32_t a = 0; a < n->n_axes; a++) {
        const moving_axis own = {n->axes[a].extent, from.step[a], to.step[a]};
        moving_axis *last = t->n ? &t->axes[t->n - 1] : NULL;
        if (own.extent == 1)
            continue;
        if (last && last->from == own.from * own.extent && last->to == own.to * own.extent)
            *last = (moving_axis){last->extent * own.extent, own.from, own.to};
        else
            t->axes[t->n++] = own;
    }
}

/* The axis along which one side is contiguous goes to place `at`; false: there is none that fills
 * a vector. */
static bool bring(tiling *t, uint32_t at, bool of_source, int64_t lanes)
{
    for (uint32_t a = 0; a <= at; a++) {
        const moving_axis own = t->axes[a];
        if ((of_source ? own.from : own.to) != 1)
            continue;
        memmove(&t->axes[a], &t->axes[a + 1], (at - a) * sizeof own);
        t->axes[at] = own;
        return own.extent >= lanes;
    }
    return false;
}

static void set_plan(const tiling *t, int64_t lanes, oi_recipe_plan *p)
{
    const moving_axis *a = &t->axes[t->n - 2], *l = &t->axes[t->n - 1];
    const int64_t rows = ROWS * lanes;
    *p = (oi_recipe_plan){.function = "oi_move_tiles", .unit = 1, .is_scattered = true};
    p->extent = (a->extent + rows - 1) / rows;
    p->ops = 4 * (uint64_t)(a->extent * l->extent); /* of a plane: loads, shuffles, stores */
    oi_recipe_arg_add(p, OI_ARG_IN, 0);
    oi_recipe_arg_add(p, OI_ARG_OUT, 0);
    for (uint32_t i = 0; i < OUTER; i++) {
        const moving_axis one = {1, 0, 0}, *x = i + 2 < t->n ? &t->axes[i] : &one;
        const int64_t sizes[] = {x->extent, x->from, x->to};
        for (size_t s = 0; s < OI_COUNT(sizes); s++)
            oi_recipe_arg_add(p, OI_ARG_SIZE, sizes[s]);
        p->extent *= x->extent;
        p->ops *= (uint64_t)x->extent;
    }
    const int64_t sizes[] = {a->extent, l->extent, l->from, a->to, t->from_begin, t->to_begin};
    for (size_t s = 0; s < OI_COUNT(sizes); s++)
        oi_recipe_arg_add(p, OI_ARG_SIZE, sizes[s]);
    oi_recipe_arg_add(p, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(p, OI_ARG_LAST, 0);
}

static void tile(oi_unit *u, oi_skernel *k, int64_t lanes)
{
    tiling t = {.n = 0};
    collect_axes(u, k, &t);
    if (t.n < 2 || t.n > OUTER + 2 || !bring(&t, t.n - 1, false, lanes) ||
        t.axes[t.n - 1].from == 1 || !bring(&t, t.n - 2, true, lanes))
        return;
    oi_recipe_plan *plan = oi_arena_alloc(u->arena, sizeof *plan);
    set_plan(&t, lanes, plan);
    uint32_t *ports = oi_arena_alloc(u->arena, (plan->n_args + 1) * sizeof *ports);
    for (uint32_t i = 0; i < plan->n_args; i++)
        ports[i] = i == 0 ? t.from : i == 1 ? t.to : OI_NO_ID;
    k->recipe = &recipe;
    k->plan = plan;
    k->arg_ports = ports;
    k->nests.n = 0;
    k->query = k->sums = NULL;
    k->offer = NULL;
}

oi_status oi_pass_tiles(oi_unit *u)
{
    const int64_t lanes = u->can.vectors && u->can.recipes ? u->can.vector_lanes : 0;
    for (size_t i = 0; i < u->kernels.n && lanes && !oi_unit_skips(u, "recipes"); i++)
        if (is_move(u, &u->kernels.at[i]))
            tile(u, &u->kernels.at[i], lanes);
    return OI_OK;
}
