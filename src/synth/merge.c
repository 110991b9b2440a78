/* merge.c: two neighbouring axes of a map become one, if memory lets them.
 * needs:  levels of axes (schedule.c, partition.c)
 * keeps:  every result bit for bit, the order of elements
 * makes:  inner loops that are long enough for vectors
 *
 * Compilers vectorise the innermost loop alone. If that is short, and every access continues from
 * one iteration of the loop around it to the next, both are one loop over a flat index. */
#include "synth/compose.h"

#define SHORT 256 /* iterations; with more of them, what vectors leave over does not count */

static bool has_levels(const oi_saxis *a)
{
    bool has = a->is_reduced;
    for (int l = 0; l < OI_AXIS_LEVELS; l++)
        has |= a->factor[l] != 0;
    return has;
}

/* Its place follows from the iteration by constant steps, wherever its tensor begins. */
static bool is_flat(const oi_unit *u, const oi_skernel *k, const oi_sop *op)
{
    const oi_port *p = &k->ports.at[op->port];
    const oi_tensor *t = &u->tensors.at[p->tensor];
    return !op->may_leave && !op->guard && !op->fns && oi_sop_is_affine(u, k, op) && !p->n_entry &&
           !p->count && !t->ring && !t->run_dims && !t->n_table && oi_dtype_bits(op->type) >= 8;
}

static bool is_plain(const oi_unit *u, const oi_skernel *k, const oi_snest *n)
{
    bool is = n->kind == OI_NEST_MAP && !n->is_serial && !n->is_scan && !n->combines_out &&
              !n->extents && !n->skips && n->n_axes >= 2;
    for (size_t i = 0; is && i < n->pre.n; i++) {
        const oi_sop *op = &n->pre.at[i];
        if (op->kind == OI_SOP_LOAD || op->kind == OI_SOP_STORE)
            is = is_flat(u, k, op);
        else
            is = (op->kind == OI_SOP_EVAL && op->place == OI_NO_ID) || op->kind == OI_SOP_CONVERT ||
                 op->kind == OI_SOP_CONST;
    }
    return is;
}

static bool is_access(const oi_sop *op)
{
    return op->kind == OI_SOP_LOAD || op->kind == OI_SOP_STORE;
}

/* Axis a and the next one, which is the last. */
static bool may_merge(const oi_unit *u, const oi_skernel *k, const oi_snest *n, uint32_t a)
{
    const int64_t inner = n->axes[a + 1].extent;
    bool may = !has_levels(&n->axes[a]) && !has_levels(&n->axes[a + 1]) && inner < SHORT &&
               n->axes[a].extent > 1;
    for (size_t i = 0; may && i < n->pre.n; i++) {
        if (!is_access(&n->pre.at[i]))
            continue;
        const oi_nest_coord at = oi_sop_number(u, k, &n->pre.at[i]);
        may = at.step[a] == at.step[a + 1] * inner;
    }
    return may;
}

static void merge(oi_unit *u, const oi_skernel *k, oi_snest *n, uint32_t a)
{
    for (size_t i = 0; i < n->pre.n; i++) {
        oi_sop *op = &n->pre.at[i];
        if (!is_access(op))
            continue;
        oi_nest_coord *at = oi_arena_alloc(u->arena, sizeof *at);
        *at = oi_sop_number(u, k, op);
        at->step[a] = at->step[a + 1];
        at->step[a + 1] = 0;
        op->at = at;
        op->is_flat = true;
    }
    n->axes[a].extent *= n->axes[a + 1].extent;
    n->axes[a + 1] = (oi_saxis){0};
    n->n_axes--;
}

oi_status oi_pass_merge(oi_unit *u)
{
    for (size_t i = 0; i < u->kernels.n && u->can.vectors; i++) {
        oi_skernel *k = &u->kernels.at[i];
        if (k->recipe || k->nests.n != 1 || k->n_shared || k->is_dynamic ||
            !is_plain(u, k, k->nests.at))
            continue;
        oi_snest *n = &k->nests.at[0];
        while (n->n_axes >= 2 && may_merge(u, k, n, n->n_axes - 2))
            merge(u, k, n, n->n_axes - 2);
    }
    return OI_OK;
}
