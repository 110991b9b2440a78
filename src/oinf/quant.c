/* quant.c: the quantisation data of tensor W as tensors "W#scale" and "W#zp".
 *
 * A payload holds scales and zero points as they lie in memory, so each is a tensor at another
 * offset of the file: of W's rank, 1 long along all axes but the one it runs along. They stand
 * behind the tensors of the table and are not listed; a tensor that already has the name keeps it.
 */
#include "oinf/oinf.h"

static void lend(oi_model *m, const oi_tensor_info *of, const char *suffix, oi_dtype t,
                 oi_quant_mode mode, uint64_t axis, uint64_t n, uint64_t at)
{
    char *name = oi_arena_printf(m->arena, "%s%s", of->name, suffix);
    uint64_t *dims = oi_arena_alloc(m->arena, (of->rank + 1) * sizeof *dims);
    for (uint32_t i = 0; i < of->rank; i++)
        dims[i] = mode == OI_PER_CHANNEL && i == axis ? n : 1;
    if (oi_map_put(&m->by_name[OI_OINF_TENSORS], name, (uint32_t)m->n_stored) != m->n_stored)
        return;
    m->tensors[m->n_stored++] = (oi_tensor_info){.name = name,
                                                 .dtype = t,
                                                 .rank = of->rank,
                                                 .dims = dims,
                                                 .n_elements = n,
                                                 .has_data = true,
                                                 .data_offset = at,
                                                 .data_nbytes = 4 * n};
}

void oi_oinf_view_quant(oi_model *m)
{
    size_t n = m->n[OI_OINF_TENSORS], n_quantised = 0;
    m->n_stored = n;
    for (size_t i = 0; i < n; i++)
        n_quantised += m->tensors[i].quant != NULL;
    if (!n_quantised)
        return;
    oi_tensor_info *all = oi_arena_alloc(m->arena, (n + 2 * n_quantised) * sizeof *all);
    memcpy(all, m->tensors, n * sizeof *all);
    m->tensors = all;
    for (size_t i = 0; i < n; i++) {
        const oi_tensor_info *t = &m->tensors[i];
        const oi_quant *q = t->quant;
        uint64_t at = t->quant_offset + OI_OINF_QUANT_HEAD;
        if (!q || t->rank > OI_MAX_RANK)
            continue;
        lend(m, t, "#scale", OI_F32, q->scale_mode, q->scale_axis, q->n_scales, at);
        if (q->zero_point_mode != OI_QUANT_NONE)
            lend(m, t, "#zp", OI_I32, q->zero_point_mode, q->zero_point_axis, q->n_zero_points,
                 at + 4 * q->n_scales);
    }
}
