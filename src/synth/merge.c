/* merge.c: inner loops of maps that vectors fill: two neighbouring axes become one, if memory lets
 * them, and the rest of a row becomes a vector that is filled up.
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

/* -- what vectors leave of a row -- */

#define LONG 24 /* steps per element */
#define FULL 16 /* vectors in a row of such elements, above which the rest does not count */

/* Scalars take several times as long as a vector of them, which is loaded and stored in part. */
static bool is_costly(const oi_snest *n)
{
    bool divides = false;
    for (size_t i = 0; i < n->pre.n; i++)
        divides |= n->pre.at[i].kind == OI_SOP_EVAL && n->pre.at[i].call->op->id == OI_OP_DIV;
    return divides || oi_sops_steps(&n->pre) > LONG;
}

/* Whether the rest of a row may be computed as a vector, which only exists in part. */
static bool may_fill(const oi_unit *u, const oi_skernel *k, const oi_snest *n, int64_t lanes)
{
    if (n->kind != OI_NEST_MAP || n->is_serial || n->combines_out || n->extents || n->skips ||
        n->n_axes <= k->n_shared)
        return false;
    const uint32_t last = n->n_axes - 1;
    const int64_t extent = n->axes[last].extent, rest = extent % lanes;
    bool may = is_costly(n) && rest > 1 && extent > lanes && extent < FULL * lanes &&
               !has_levels(&n->axes[last]);
    for (size_t i = 0; may && i < n->pre.n; i++) {
        const oi_sop *op = &n->pre.at[i];
        may = op->type == OI_F32;
        if (op->kind == OI_SOP_LOAD || op->kind == OI_SOP_STORE) {
            const oi_tensor *t = &u->tensors.at[k->ports.at[op->port].tensor];
            may = may && t->dtype == OI_F32 && !t->run_dims && !t->ring && !op->may_leave &&
                  !op->guard && !op->fns && oi_sop_is_affine(u, k, op);
            const int64_t step = may ? oi_sop_number(u, k, op).step[last] : -1;
            may = step == 1 || (step == 0 && op->kind == OI_SOP_LOAD);
        } else {
            may = may &&
                  ((op->kind == OI_SOP_EVAL && op->place == OI_NO_ID) || op->kind == OI_SOP_CONST);
        }
    }
    return may;
}

static void fill_rests(const oi_unit *u, oi_skernel *k)
{
    const int64_t lanes = u->can.vector_lanes;
    for (size_t i = 0; i < k->nests.n && lanes && !k->is_dynamic && !k->can_fail; i++) {
        oi_snest *n = &k->nests.at[i];
        if (n->n_axes && may_fill(u, k, n, lanes))
            n->axes[n->n_axes - 1].factor[OI_AXIS_VECTOR] = lanes;
    }
}

static void merge_axes(oi_unit *u, oi_skernel *k)
{
    if (k->nests.n != 1 || k->n_shared || k->is_dynamic || !is_plain(u, k, k->nests.at))
        return;
    oi_snest *n = &k->nests.at[0];
    while (n->n_axes >= 2 && may_merge(u, k, n, n->n_axes - 2))
        merge(u, k, n, n->n_axes - 2);
}

oi_status oi_pass_merge(oi_unit *u)
{
    for (size_t i = 0; i < u->kernels.n && u->can.vectors; i++) {
        oi_skernel *k = &u->kernels.at[i];
        if (k->recipe)
            continue;
        merge_axes(u, k);
        fill_rests(u, k);
    }
    return OI_OK;
}
