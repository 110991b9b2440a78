/* clamp.c: fuses a relu or clamp into the tuned body that computes its operand.
 * needs:  recipes; maps as separate kernels (before inline.c)
 * keeps:  results, NaN included
 * makes:  bodies with bounds; fewer tensors */
#include "synth/pair.h"

/* The limits to which R clamps its input; false: it does something else. */
static bool is_bound(const oi_skernel *r, double *least, double *most)
{
    const oi_kernel_query *q = r->query;
    if (!q || r->scalars.n || !oi_kernel_map(r) || q->in[0].dtype != OI_F32)
        return false;
    if (q->op->id == OI_OP_RELU && oi_kernel_real(q, "negative_slope") == 0) {
        const double low = oi_kernel_real(q, "clamp_min");
        *least = low > 0 ? low : 0;
        *most = oi_kernel_real(q, "clamp_max");
    } else if (q->op->id == OI_OP_CLAMP && strcmp(oi_kernel_attr(q, "nan")->s, "propagate") == 0) {
        *least = oi_kernel_real(q, "min");
        *most = oi_kernel_real(q, "max");
    } else
        return false;
    return *least <= *most;
}

/* R's limits become the body's, which then writes R's result. */
static const char *join(oi_pair *x)
{
    double least, most;
    if (!x->p->recipe || !x->p->plan->bounds || !is_bound(x->r, &least, &most))
        return "";
    const oi_sops *ops = &x->r->nests.at[0].pre;
    const char *no = oi_pair_retarget(x, &ops->at[0], &ops->at[ops->n - 1]);
    if (no)
        return no;
    oi_recipe_plan *own = oi_arena_alloc(x->u->arena, sizeof *own);
    *own = *x->p->plan;
    for (uint32_t i = own->bounds; i < own->bounds + 2; i++) {
        const double had = own->args[i].real, low = had > least ? had : least;
        own->args[i].real = low < most ? low : most;
    }
    x->p->plan = own;
    return NULL;
}

oi_status oi_pass_clamp(oi_unit *u)
{
    return oi_pairs_join(u, "clamp", join);
}
