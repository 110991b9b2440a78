/* hooks.c: what the hooks of a recipe can do of the instructions that follow a sum.
 *
 * Bounds clamp the result. An epilogue is a function of a sum and of its position. A position is
 * three numbers, each over one or several axes of the nest; an access must be linear in them. The
 * sums of floats pass through the result: a body stores them there, and its epilogue overwrites
 * them. */
#include "synth/compose.h"

#define MAX_WORK 12 /* additions: longer maps vectorise better in loops of their own */

/* -- positions -- */

bool oi_hook_positions(const oi_skernel *k, const oi_recipe_plan *plan, uint32_t *position_of)
{
    const oi_operand *out = &k->sums->out[0];
    const oi_snest *n = &k->nests.at[0];
    int64_t rest = 1;
    uint32_t d = OI_NO_ID;
    for (uint32_t a = 0; a < n->n_axes && !n->axes[a].is_reduced; a++) {
        position_of[a] = 0;
        if (n->axes[a].extent == 1)
            continue;
        while (rest == 1 && d + 1 < out->rank)
            rest = out->dims[++d];
        if (n->axes[a].extent < 1 || rest % n->axes[a].extent != 0)
            return false;
        rest /= n->axes[a].extent;
        position_of[a] = (d >= plan->epilogue[0]) + (d >= plan->epilogue[1]);
    }
    while (rest == 1 && d + 1 < out->rank)
        rest = out->dims[++d];
    return rest == 1;
}

bool oi_hook_is_linear(const oi_snest *n, const uint32_t *position_of, const oi_nest_coord *c,
                       oi_nest_coord *out)
{
    bool is_set[3] = {false};
    int64_t extent[3] = {1, 1, 1};
    *out = (oi_nest_coord){.base = c->base, .index = OI_NEST_NONE};
    for (uint32_t a = n->n_axes; a-- > 0;) {
        if (n->axes[a].is_reduced || n->axes[a].extent == 1)
            continue;
        const uint32_t part = position_of[a];
        if (!is_set[part])
            out->step[part] = c->step[a];
        else if (c->step[a] != out->step[part] * extent[part])
            return false;
        is_set[part] = true;
        extent[part] *= n->axes[a].extent;
    }
    out->step[OI_EPILOGUE_PLACE + 1] = out->step[OI_EPILOGUE_PLACE];
    return true;
}

bool oi_hook_is_in_order(const oi_unit *u, const oi_skernel *k, const oi_sop *store)
{
    const oi_snest *n = &k->nests.at[0];
    int64_t step = 1;
    if (!oi_sop_is_affine(u, k, store))
        return false;
    const oi_nest_coord c = oi_sop_number(u, k, store);
    for (uint32_t a = n->n_axes; a-- > 0;) {
        if (n->axes[a].is_reduced || n->axes[a].extent == 1)
            continue;
        if (c.step[a] != step)
            return false;
        step *= n->axes[a].extent;
    }
    return c.base == 0;
}

/* -- bounds -- */

bool oi_hook_is_bound(const oi_sop *op, double *least, double *most)
{
    if (op->kind != OI_SOP_EVAL || op->part != OI_PART_EXPR || op->call->in0 != OI_F32)
        return false;
    const oi_kernel_query q = {.op = op->call->op, .attrs = op->call->attrs};
    for (uint32_t i = 0; op->call->scalars && i < q.op->n_attrs; i++)
        if (op->call->scalars[i] != OI_NO_ID)
            return false;
    if (q.op->id == OI_OP_RELU && oi_kernel_real(&q, "negative_slope") == 0) {
        const double low = oi_kernel_real(&q, "clamp_min");
        *least = low > 0 ? low : 0;
        *most = oi_kernel_real(&q, "clamp_max");
    } else if (q.op->id == OI_OP_CLAMP && strcmp(oi_kernel_attr(&q, "nan")->s, "propagate") == 0) {
        *least = oi_kernel_real(&q, "min");
        *most = oi_kernel_real(&q, "max");
    } else
        return false;
    return *least <= *most;
}

/* All of these instructions but the last, a store, are bounds. */
static bool are_bounds(const oi_sops *ops, size_t from)
{
    double least, most;
    bool are = true;
    for (size_t i = from; are && i + 1 < ops->n; i++)
        are = oi_hook_is_bound(&ops->at[i], &least, &most);
    return are;
}

/* -- what may follow -- */

/* R stores element i of its result from element i of the tensor, and both hold floats. */
static bool keeps_order(const oi_unit *u, const oi_skernel *r, uint32_t tensor)
{
    const oi_snest *n = &r->nests.at[0];
    const oi_sop *store = &n->pre.at[n->pre.n - 1];
    const oi_tensor *from = &u->tensors.at[tensor];
    const oi_tensor *to = &u->tensors.at[r->ports.at[store->port].tensor];
    oi_radix all;
    if (!oi_sop_is_affine(u, r, store) || r->ports.at[store->port].n_entry ||
        from->dtype != OI_F32 || to->dtype != OI_F32 || from->size_bytes != to->size_bytes)
        return false;
    const oi_nest_coord wrote = oi_sop_number(u, r, store);
    for (size_t i = 0; i + 1 < n->pre.n; i++) {
        const oi_sop *op = &n->pre.at[i];
        if (!oi_sop_is_access(op) || r->ports.at[op->port].tensor != tensor)
            continue;
        if (op->kind != OI_SOP_LOAD || !oi_sop_is_affine(u, r, op))
            return false;
        const oi_nest_coord read = oi_sop_number(u, r, op);
        if (memcmp(&read, &wrote, sizeof read) != 0)
            return false;
    }
    return oi_radix_of_axes(n, &wrote, oi_tensor_count(from), &all);
}

/* Every other access of R is linear in the positions of P's sums. */
static bool is_linear(const oi_unit *u, const oi_skernel *p, const oi_skernel *r, uint32_t tensor,
                      const oi_axis_map *map)
{
    const oi_snest *n = &r->nests.at[0];
    uint32_t position_of[OI_NEST_AXES];
    bool is = oi_hook_positions(p, p->offer->plan, position_of);
    for (size_t i = 0; is && i + 1 < n->pre.n; i++) {
        const oi_sop *op = &n->pre.at[i];
        oi_nest_coord c, out;
        if (!op->at || (oi_sop_is_access(op) && r->ports.at[op->port].tensor == tensor))
            continue;
        is = op->kind == OI_SOP_PLACE ? op->at->bend == OI_BEND_NONE && !op->at->may_leave
                                      : op->kind == OI_SOP_LOAD && oi_sop_is_affine(u, r, op) &&
                                            !r->ports.at[op->port].is_written;
        if (!is)
            return false;
        c = op->kind == OI_SOP_PLACE ? op->at[0] : oi_sop_number(u, r, op);
        is = oi_coord_map(&c, n, map, &out) &&
             oi_hook_is_linear(&p->nests.at[0], position_of, &out, &c);
    }
    return is;
}

const char *oi_hook_why_not(const oi_unit *u, const oi_skernel *p, const oi_skernel *r,
                            uint32_t tensor, const oi_axis_map *map)
{
    const oi_snest *n = &r->nests.at[0];
    uint64_t work = 0;
    if (!oi_offer_stores(p))
        return NULL;
    if (!keeps_order(u, r, tensor))
        return "a recipe stores floats in the order of its sums";
    if (p->offer->plan->bounds && are_bounds(&p->nests.at[0].post, p->offer->n_sum) &&
        n->pre.at[0].kind == OI_SOP_LOAD && are_bounds(&n->pre, 1))
        return NULL;
    if (!p->offer->plan->epilogue[1])
        return "the recipe has no epilogue";
    if (!is_linear(u, p, r, tensor, map))
        return "it is not linear in the position of a sum";
    for (size_t i = 0; i < n->pre.n; i++)
        work += oi_sop_work(&n->pre.at[i]);
    return work > MAX_WORK ? "it vectorises better in a loop of its own" : NULL;
}
