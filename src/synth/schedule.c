/* schedule.c: how the loops of a nest run.
 * needs:  kernels as they will be
 * keeps:  kernels, their instructions
 * makes:  oi_snest.order: partial sums that fill vector registers, accumulators side by side
 *
 * Sums of floats regroup only in ways that are fixed here, so results do not depend on who runs
 * them. A product whose last reduced axis is contiguous in everything it reads is a dot product
 * with `lanes` partial sums; one whose last output axis is contiguous keeps a strip of accumulators
 * and adds scaled rows. */
#include "synth/pass.h"

#define LANES 16 /* two registers of eight floats */
#define STRIP 64

/* How far a load moves in memory when the axis takes a step. */
static int64_t stride_of(const oi_unit *u, const oi_skernel *k, const oi_sop *op, uint32_t axis)
{
    const oi_tensor *t = &u->tensors.at[k->ports.at[op->port].tensor];
    int64_t stride = 1, sum = 0;
    if (op->is_flat)
        return op->at[0].step[axis];
    for (uint32_t d = t->rank; d-- > 0; stride *= t->dims[d])
        sum += stride * op->at[d].step[axis];
    return sum;
}

static void order_nest(const oi_unit *u, const oi_skernel *k, oi_snest *n)
{
    uint32_t last = n->n_axes - 1, out = 0;
    bool dot = true, rows = true;
    while (out < n->n_axes && !n->axes[out].is_reduced)
        out++;
    if (n->kind == OI_NEST_MAP || n->skips || n->is_scan || n->finds_position || n->n_axes == out)
        return;
    if (!oi_dtype_is_float(n->acc) && oi_dtype_bits(n->acc) < 32)
        return;
    for (size_t i = 0; i < n->pre.n; i++) {
        const oi_sop *op = &n->pre.at[i];
        if (op->kind == OI_SOP_INDEX || (op->kind == OI_SOP_LOAD && op->may_leave))
            return;
        if (op->kind != OI_SOP_LOAD)
            continue;
        int64_t along = stride_of(u, k, op, last), across = out ? stride_of(u, k, op, out - 1) : 2;
        dot &= along == 0 || along == 1;
        rows &= across == 0 || across == 1;
    }
    if (dot && n->axes[last].extent >= 2 * LANES)
        n->order.lanes =
            oi_dtype_is_float(n->acc) ? LANES : 0; /* integers: compilers may regroup */
    else if (rows && out > k->n_shared && n->axes[out - 1].extent >= 8)
        n->order.strip =
            n->axes[out - 1].extent < STRIP ? (uint32_t)n->axes[out - 1].extent : STRIP;
}

oi_status oi_pass_schedule(oi_unit *u)
{
    for (size_t k = 0; k < u->kernels.n; k++)
        for (size_t i = 0; i < u->kernels.at[k].nests.n && !u->kernels.at[k].is_dynamic; i++)
            order_nest(u, &u->kernels.at[k], &u->kernels.at[k].nests.at[i]);
    return OI_OK;
}
