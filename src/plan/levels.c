/* levels.c: reads and sets levels of axes. */
#include "plan/plan.h"

#include <inttypes.h>

const char *oi_axis_level_name(oi_axis_level level)
{
    switch (level) { /* no default: the compiler reports missing cases */
    case OI_AXIS_UNROLLED: return "unrolled";
    case OI_AXIS_VECTOR: return "vector";
    case OI_AXIS_LANE: return "lane";
    case OI_AXIS_GROUP: return "group";
    case OI_AXIS_WORKER: return "worker";
    case OI_AXIS_STREAM: return "stream";
    case OI_AXIS_LEVELS: break;
    }
    return "serial";
}

void oi_axis_put_levels(const oi_saxis *x, oi_buf *out)
{
    for (uint32_t l = OI_AXIS_LEVELS; l-- > 0;)
        if (x->factor[l])
            oi_buf_printf(out, " %s %" PRId64, oi_axis_level_name(l), x->factor[l]);
}

uint32_t oi_nest_outputs(const oi_snest *n)
{
    uint32_t out = 0;
    while (out < n->n_axes && !n->axes[out].is_reduced)
        out++;
    return out;
}

uint32_t oi_nest_counted(const oi_snest *n)
{
    return n->is_serial || n->combines_out ? 0 : oi_nest_outputs(n);
}

/* Only the last axis: an outer one that is unrolled is interleaved with the loops inside it. */
bool oi_nest_is_unrolled(const oi_snest *n, uint32_t axis)
{
    return axis + 1 == n->n_axes && n->axes[axis].factor[OI_AXIS_UNROLLED] > 0;
}

uint32_t oi_nest_loops(const oi_snest *n)
{
    return n->n_axes - (n->n_axes && oi_nest_is_unrolled(n, n->n_axes - 1));
}

int64_t oi_nest_unrolled(const oi_snest *n)
{
    return oi_nest_loops(n) < n->n_axes ? n->axes[n->n_axes - 1].extent : 1;
}

int64_t oi_nest_partial_sums(const oi_snest *n)
{
    const oi_saxis *last = oi_nest_loops(n) ? &n->axes[oi_nest_loops(n) - 1] : NULL;
    return last && last->is_reduced && !oi_axis_lanes(last) ? last->factor[OI_AXIS_VECTOR] : 0;
}

int64_t oi_nest_register_tile(const oi_snest *n)
{
    const uint32_t out = oi_nest_outputs(n);
    return out && out < n->n_axes ? n->axes[out - 1].factor[OI_AXIS_VECTOR] : 0;
}

int64_t oi_nest_jam(const oi_snest *n)
{
    return n->kind == OI_NEST_MAP && n->n_axes > 1 ? n->axes[n->n_axes - 2].factor[OI_AXIS_UNROLLED]
                                                   : 0;
}

int64_t oi_axis_lanes(const oi_saxis *x)
{
    return x->is_reduced && x->factor[OI_AXIS_GROUP] ? x->factor[OI_AXIS_GROUP]
                                                     : x->factor[OI_AXIS_LANE];
}

int64_t oi_axis_lane_places(const oi_saxis *x)
{
    return oi_axis_lanes(x) ? x->factor[OI_AXIS_VECTOR] : 0;
}

int64_t oi_nest_lane_count(const oi_snest *n)
{
    int64_t lanes = 0;
    for (uint32_t a = 0; a < n->n_axes; a++)
        if (oi_axis_lanes(&n->axes[a]) > lanes)
            lanes = oi_axis_lanes(&n->axes[a]);
    return lanes;
}

int64_t oi_nest_sum_lanes(const oi_snest *n)
{
    int64_t lanes = 0;
    for (uint32_t a = 0; a < n->n_axes; a++)
        if (n->axes[a].is_reduced && oi_axis_lanes(&n->axes[a]) > lanes)
            lanes = oi_axis_lanes(&n->axes[a]);
    return lanes;
}

/* -- kernels: all nests have such an axis in common -- */

static void set_level(oi_skernel *k, uint32_t axis, oi_axis_level level, int64_t factor)
{
    k->body.factor[level] = k->recipe ? factor : 0;
    for (size_t i = 0; !k->recipe && i < k->nests.n; i++)
        if (axis < k->nests.at[i].n_axes)
            k->nests.at[i].axes[axis].factor[level] = factor;
}

bool oi_kernel_is_joint(const oi_tensor *tensors, const oi_skernel *k)
{
    bool is = k->n_shared > 0;
    for (size_t i = 0; k->nests.n > 1 && i < k->ports.n; i++)
        is |= tensors[k->ports.at[i].tensor].space == OI_SPACE_LOCAL;
    return is;
}

oi_partition oi_kernel_partition(const oi_skernel *k)
{
    const bool is_nest = !k->recipe && k->nests.n > 0;
    const oi_saxis *axes = is_nest ? k->nests.at[0].axes : &k->body;
    const uint32_t n = is_nest ? k->nests.at[0].n_axes : 1;
    oi_partition p = {.unit = 1};
    for (uint32_t a = 0; a < n; a++) {
        if (!axes[a].factor[OI_AXIS_WORKER])
            continue;
        p.axis = p.n_axes ? p.axis : a;
        p.extent = p.n_axes ? p.extent * axes[a].extent : axes[a].extent;
        p.unit = axes[a].factor[OI_AXIS_WORKER];
        p.n_axes++;
    }
    return p;
}

void oi_kernel_set_partition(oi_skernel *k, oi_partition p)
{
    for (uint32_t a = 0; a < OI_NEST_AXES; a++)
        set_level(k, a, OI_AXIS_WORKER, 0);
    if (p.extent && k->recipe)
        k->body.extent = p.extent;
    for (uint32_t i = 0; p.extent && i < p.n_axes; i++)
        set_level(k, p.axis + i, OI_AXIS_WORKER, i + 1 < p.n_axes ? 1 : p.unit);
}

bool oi_kernel_streams(const oi_skernel *k)
{
    bool streams = k->body.factor[OI_AXIS_STREAM] > 0;
    for (size_t i = 0; i < k->nests.n; i++)
        for (uint32_t a = 0; a < k->nests.at[i].n_axes; a++)
            streams |= k->nests.at[i].axes[a].factor[OI_AXIS_STREAM] > 0;
    return streams;
}

void oi_kernel_set_stream(oi_skernel *k, uint32_t axis, int64_t extent, int64_t factor)
{
    if (k->recipe)
        k->body.extent = extent;
    set_level(k, axis, OI_AXIS_STREAM, factor);
}
