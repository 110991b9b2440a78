/* nest_einsum.c: an einsum as loops: one axis per label, those of the result first. */
#include "kernel/nest.h"

void oi_nest_einsum(const oi_kernel_query *q, size_t i, oi_nest *n)
{
    (void)i;
    uint32_t ranks[OI_EINSUM_INPUTS] = {0};
    oi_einsum e;
    for (size_t k = 0; k < q->n_in; k++)
        ranks[k] = q->in[k].rank;
    /* the shape rule has read it before */
    (void)oi_einsum_read(oi_kernel_attr(q, "equation")->s, (uint32_t)q->n_in, ranks, &e);
    int64_t extents[2 * OI_EINSUM_RANK];
    for (uint32_t a = 0; a < e.n_labels; a++)
        extents[a] = 1;
    for (uint32_t k = 0; k < e.n_in; k++)
        for (uint32_t d = 0; d < e.rank[k]; d++)
            if (q->in[k].dims[d] != 1)
                extents[e.in[k][d]] = q->in[k].dims[d];
    n->kind = OI_NEST_CONTRACT;
    for (uint32_t a = 0; a < e.n_labels; a++)
        oi_nest_add_axis(n, extents[a], a >= e.n_out);
    oi_nest_ref *w = oi_nest_set_write(n, q, 0);
    for (uint32_t d = 0; d < e.n_out; d++)
        w->at[d].step[d] = 1;
    for (uint32_t k = 0; k < e.n_in; k++) {
        oi_nest_ref *r = oi_nest_add_read(n, q, k);
        for (uint32_t d = 0; d < e.rank[k]; d++)
            r->at[d].step[e.in[k][d]] = q->in[k].dims[d] == 1 ? 0 : 1;
    }
}
