/* group.c: the workgroups of a kernel, read off the levels of its axes. */
#include "emit/emit.h"

bool oi_group_sums(const oi_snest *n)
{
    return n->kind != OI_NEST_MAP && oi_nest_sum_lanes(n) > 0;
}

/* A nest with fewer lanes than another one of its dispatch leaves the rest idle. */
oi_group oi_group_of(const oi_plan *u, const oi_snest *nests, size_t n)
{
    oi_group g = {.lanes = 1, .positions = 1};
    bool shuffles = false;
    for (size_t i = 0; i < n; i++) {
        const int64_t lanes = oi_nest_lane_count(&nests[i]);
        g.lanes = lanes > g.lanes ? lanes : g.lanes;
        shuffles |= oi_group_sums(&nests[i]) && oi_dtype_bits(nests[i].acc) <= 32;
    }
    for (uint32_t a = 0; n && a < nests[0].n_axes; a++)
        if (nests[0].axes[a].factor[OI_AXIS_GROUP] && nests[0].axes[a].is_reduced)
            g.is_apart = true;
        else if (nests[0].axes[a].factor[OI_AXIS_GROUP])
            g.positions = nests[0].axes[a].factor[OI_AXIS_GROUP];
    if (u->can.groups_stay) /* rows that lanes share lie in memory for one of them */
        g.positions = n > 1 && g.lanes > 1 ? 1 : (int64_t)u->can.group_size / g.lanes;
    g.size = u->can.groups_stay ? (int64_t)u->can.group_size : g.lanes * g.positions;
    g.first_lane = g.positions > 1 ? "lane == 0u && inside" : "lane == 0u";
    g.has_shuffle = shuffles && !g.is_apart && u->can.subgroup_size &&
                    (uint64_t)g.size % u->can.subgroup_size == 0;
    return g;
}
