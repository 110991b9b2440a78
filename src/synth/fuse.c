/* fuse.c: fuses a map into the kernel that produces its operand, after that kernel's reduction.
 * needs:  maps already fused into later loads (inline.c)
 * keeps:  results, order of all visible effects; barriers, branches, per-node checks
 * makes:  kernels of several nodes; fewer tensors
 *
 * Every pair that is not fused leaves a note with the reason. */
#include "synth/pair.h"

#define MAX_SOPS 64 /* per nest: more is unreadable and spills registers */

static unsigned n_stores(const oi_skernel *k)
{
    unsigned n = 0;
    const oi_sops *ops;
    for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++) {
        for (size_t i = 0; i < ops->n; i++)
            n += ops->at[i].kind == OI_SOP_STORE;
    }
    return n;
}

/* The instruction of P that stores the tensor: the last one. */
static const oi_sop *final_store(const oi_pair *x)
{
    const oi_snest *n = &x->p->nests.at[x->p->nests.n - 1];
    const oi_sops *ops = n->kind == OI_NEST_MAP ? &n->pre : &n->post;
    const oi_sop *last = ops->n ? &ops->at[ops->n - 1] : NULL;
    return last && last->kind == OI_SOP_STORE && oi_pair_is_on(x, x->p, last) ? last : NULL;
}

/* All loads of the tensor must agree on the positions of R's axes. */
static bool follows(const oi_pair *x, const oi_sop *store, oi_axis_map *map)
{
    const oi_snest *last = &x->r->nests.at[0];
    oi_axis_map own;
    bool any = false;
    for (size_t i = 0; i < last->pre.n; i++) {
        if (!oi_pair_is_on(x, x->r, &last->pre.at[i]))
            continue;
        if (last->pre.at[i].is_raw != store->is_raw ||
            !oi_pair_map_axes(x, &x->p->nests.at[0], store, &last->pre.at[i], any ? &own : map) ||
            (any && memcmp(&own, map, sizeof own) != 0))
            return false;
        any = true;
    }
    return any;
}

/* Coordinates that contain data do not move. */
static bool moves_along(const oi_pair *x, const oi_axis_map *map)
{
    const oi_snest *last = &x->r->nests.at[0];
    for (size_t i = 0; i < last->pre.n; i++) {
        const oi_sop *op = &last->pre.at[i];
        oi_nest_coord c;
        uint32_t rank = !op->at ? 0
                        : op->kind == OI_SOP_PLACE || op->is_flat
                            ? 1
                            : x->u->tensors.at[x->r->ports.at[op->port].tensor].rank;
        for (uint32_t d = 0; d < rank; d++)
            if (!oi_coord_map(&op->at[d], last, map, &c))
                return false;
    }
    return true;
}

static bool pads(const oi_skernel *k)
{
    bool any = false;
    for (size_t i = 0; i < k->nests.at[0].pre.n; i++)
        any |= k->nests.at[0].pre.at[i].may_leave;
    return any;
}

static const char *why_not_follow(const oi_pair *x, oi_axis_map *map)
{
    if (!oi_kernel_map(x->r))
        return "the reader is no plain map";
    if (x->p->nests.n != 1 || x->p->nests.at[0].is_serial || x->p->nests.at[0].is_scan ||
        x->p->nests.at[0].combines_out || !final_store(x) || n_stores(x->p) != 1)
        return "the producer is no single nest";
    if (x->r->can_fail)
        return "the reader can fail";
    if (x->p->nests.at[0].skips && pads(x->r))
        return "both pad";
    if (!follows(x, final_store(x), map) || !moves_along(x, map))
        return "the reader runs over it in another way";
    const oi_snest *n = &x->p->nests.at[0];
    if ((n->kind == OI_NEST_MAP ? n->pre.n : n->post.n) + x->r->nests.at[0].pre.n > MAX_SOPS)
        return "the kernel would be too long";
    return oi_hook_why_not(x->u, x->p, x->r, x->tensor, map);
}

/* R's instructions after P's, in place of P's store. */
static void follow(oi_pair *x, const oi_axis_map *map)
{
    oi_snest *n = &x->p->nests.at[0];
    const oi_snest *last = &x->r->nests.at[0];
    oi_sops *ops = n->kind == OI_NEST_MAP ? &n->pre : &n->post;
    uint32_t base = n->kind == OI_NEST_MAP ? 0 : (uint32_t)n->pre.n;
    oi_sop store = ops->at[--ops->n];
    uint32_t value = oi_sop_as_stored(x->u, ops, base, &store, store.args[0]);
    uint32_t *ids = oi_arena_alloc(x->u->arena, (last->pre.n + 1) * sizeof *ids);
    oi_moving m = {.u = x->u, .to = x->p, .from = x->r, .nest = last, .map = map, .ids = ids};
    for (size_t i = 0; i < last->pre.n; i++) {
        const oi_sop *op = &last->pre.at[i];
        if (op->kind == OI_SOP_LOAD && oi_pair_is_on(x, x->r, op)) {
            ids[i] = value;
            continue;
        }
        oi_sop own = oi_sop_moved(&m, op);
        if (oi_sop_is_access(&own))
            oi_sop_unflatten(x->u, x->p, n, &own);
        *OI_PUSH(x->u->arena, ops) = own;
        ids[i] = base + (uint32_t)ops->n - 1;
    }
}

static const char *join(oi_pair *x)
{
    oi_axis_map map;
    const char *no = why_not_follow(x, &map);
    if (!no)
        follow(x, &map);
    return no;
}

oi_status oi_pass_fuse(oi_unit *u)
{
    return oi_pairs_join(u, "fuse", join);
}
