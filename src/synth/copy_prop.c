/* copy_prop.c: copy propagation: a kernel whose result is only moved writes it to the destination.
 * needs:  one tensor per value (ssa.c)
 * keeps:  results, order of all visible effects
 * makes:  kernels that write elsewhere, or in another order; fewer moves and tensors
 *
 * Reshapes and transposes of a result vanish. A tuned body cannot be rewritten, but it can still
 * write into a tensor of another shape. */
#include "synth/lower.h"
#include "synth/pair.h"

/* R is one load of the tensor and one store of the same bits. */
static bool is_move(const oi_pair *x)
{
    const oi_snest *n = oi_kernel_map(x->r);
    return n && n->pre.n == 2 && n->pre.at[0].kind == OI_SOP_LOAD && n->pre.at[0].is_raw &&
           oi_pair_is_on(x, x->r, &n->pre.at[0]);
}

/* The store of R in place of P's; P's nest stands at `store`. */
static bool forwarded(oi_pair *x, const oi_snest *n, const oi_sop *store, bool keep, oi_sop *out)
{
    const oi_snest *last = &x->r->nests.at[0];
    const oi_sop *to = &last->pre.at[1];
    oi_axis_map map;
    oi_nest_coord c;
    if (!oi_pair_map_axes(x, n, store, &last->pre.at[0], &map))
        return false;
    uint32_t rank = to->is_flat ? 1 : x->u->tensors.at[x->r->ports.at[to->port].tensor].rank;
    for (uint32_t d = 0; d < rank; d++)
        if (to->at[d].index != OI_NEST_NONE || to->at[d].bend != OI_BEND_NONE ||
            !oi_coord_map(&to->at[d], last, &map, &c))
            return false;
    if (!keep)
        return true;
    oi_moving m = {.u = x->u, .to = x->p, .from = x->r, .nest = last, .map = &map};
    oi_sop bare = *to;
    bare.n_args = 0;
    *out = oi_sop_moved(&m, &bare);
    out->is_raw = store->is_raw;
    out->n_args = 1;
    out->args[0] = store->args[0];
    oi_sop_unflatten(x->u, x->p, n, out);
    return true;
}

/* Redirects all stores of P into the tensor, if possible. */
static bool forward(oi_pair *x, bool keep)
{
    bool fits = true;
    for (size_t m = 0; m < x->p->nests.n; m++) {
        oi_snest *n = &x->p->nests.at[m];
        for (int post = 0; post < 2; post++) {
            oi_sops *ops = post ? &n->post : &n->pre;
            for (size_t i = 0; i < ops->n && fits; i++) {
                const oi_sop old = ops->at[i];
                if (oi_pair_is_on(x, x->p, &old))
                    fits = old.kind == OI_SOP_STORE && forwarded(x, n, &old, keep, &ops->at[i]);
            }
        }
    }
    return fits;
}

/* A variable of the graph would vanish into a tensor that only a tuned body uses. Its readers take
 * the move in instead. */
static bool loses_name(const oi_pair *x)
{
    const oi_tensor *t = &x->u->tensors.at[x->tensor];
    const oi_sop *to = &x->r->nests.at[0].pre.at[1];
    const oi_tensor *u = &x->u->tensors.at[x->r->ports.at[to->port].tensor];
    return (t->var || t->origin) && !u->var && !u->origin;
}

/* P, a tuned body, writes into that tensor instead. */
static void retarget(oi_pair *x, uint32_t to)
{
    const oi_tensor *old = &x->u->tensors.at[x->tensor];
    oi_recipe_plan *plan = oi_arena_alloc(x->u->arena, sizeof *plan);
    *plan = *x->p->plan;
    oi_recipe_resplit(plan, old->dims, old->rank, &x->u->tensors.at[to]);
    x->p->plan = plan;
    for (size_t i = 0; i < x->p->ports.n; i++)
        if (x->p->ports.at[i].tensor == x->tensor)
            x->p->ports.at[i].tensor = to;
}

static const char *join(oi_pair *x)
{
    if (!is_move(x) || loses_name(x))
        return "";
    const oi_sops *ops = &x->r->nests.at[0].pre;
    if ((x->p->recipe || oi_offer_stores(x->p)) &&
        !oi_pair_keeps_order(x, &ops->at[0], &ops->at[1]))
        return "a recipe writes in its own order";
    if (x->p->recipe) {
        retarget(x, x->r->ports.at[ops->at[1].port].tensor);
        return NULL;
    }
    for (size_t m = 0; m < x->p->nests.n; m++)
        if (x->p->nests.at[m].is_scan || x->p->nests.at[m].combines_out)
            return "the producer needs its result in place";
    if (x->p->nests.n == 0 || !forward(x, false))
        return "the move is no sum over the producer's axes";
    forward(x, true);
    return NULL;
}

oi_status oi_pass_copy_prop(oi_unit *u)
{
    return oi_pairs_join(u, "copy_prop", join);
}
