/* rounding.c: stores a map's result in the rounded form that a tuned body wants.
 *
 * A bf16 prologue is a plain cast of each element. If its input is a map's result without other
 * readers, the cast becomes a map, too, and inline.c joins the two. Then nothing passes through
 * memory as floats, and threads that partition columns need no barrier to partition rows. Otherwise
 * the tuned body has instructions for it. */
#include "synth/compose.h"

/* The statement before `at` that alone makes the tensor, if that is a map. */
static bool is_of_map(const oi_unit *u, const oi_stmts *list, size_t at, uint32_t tensor)
{
    while (at-- > 0) {
        const oi_stmt *x = &list->at[at];
        if (x->kind != OI_STMT_KERNEL)
            continue;
        const oi_skernel *k = &u->kernels.at[x->kernel];
        for (size_t i = 0; i < k->ports.n; i++)
            if (k->ports.at[i].is_written && k->ports.at[i].tensor == tensor)
                return oi_kernel_map(k) != NULL;
    }
    return false;
}

/* Coordinates of a row and a column, which are axes 0 and 1. */
static oi_nest_coord *coords(oi_unit *u, uint32_t rank, uint32_t row)
{
    oi_nest_coord *at = oi_arena_alloc(u->arena, (rank + 1) * sizeof *at);
    for (uint32_t d = 0; d < rank; d++) {
        at[d].index = OI_NEST_NONE;
        at[d].step[0] = d == row;
        at[d].step[1] = d + 1 == rank;
    }
    return at;
}

static void spell(oi_unit *u, oi_skernel *k)
{
    const uint32_t in = k->arg_ports[0], out = k->arg_ports[1];
    const oi_tensor *x = &u->tensors.at[k->ports.at[in].tensor];
    const oi_tensor *y = &u->tensors.at[k->ports.at[out].tensor];
    oi_snest *n = OI_PUSH(u->arena, &k->nests);
    memset(n, 0, sizeof *n);
    n->kind = OI_NEST_MAP;
    n->acc = x->dtype;
    n->n_axes = 2;
    n->axes[0].extent = k->plan->extent;
    n->axes[1].extent = x->dims[x->rank - 1];
    *OI_PUSH(u->arena, &n->pre) = (oi_sop){.kind = OI_SOP_LOAD,
                                           .type = x->dtype,
                                           .port = in,
                                           .at = coords(u, x->rank, k->plan->read_dim),
                                           .place = OI_NO_ID};
    *OI_PUSH(u->arena, &n->pre) = (oi_sop){.kind = OI_SOP_STORE,
                                           .type = y->dtype,
                                           .port = out,
                                           .at = coords(u, 2, 0),
                                           .n_args = 1,
                                           .place = OI_NO_ID};
    k->recipe = NULL;
    k->plan = NULL;
    k->arg_ports = NULL;
}

void oi_stmts_spell_casts(oi_unit *u, const oi_stmts *list, const oi_tally *uses)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_stmt *x = &list->at[i];
        oi_stmts_spell_casts(u, &x->body, uses);
        oi_skernel *k = x->kind == OI_STMT_KERNEL ? &u->kernels.at[x->kernel] : NULL;
        if (!k || !k->recipe || !k->plan->is_cast || !k->plan->reads_partitioned)
            continue;
        const oi_port *in = &k->ports.at[k->arg_ports[0]];
        if (uses[in->tensor].reads == 1 && uses[in->tensor].writes == 1 && !in->n_entry &&
            is_of_map(u, list, i, in->tensor))
            spell(u, k);
    }
}
