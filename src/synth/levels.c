/* levels.c: reads the levels of a nest's axes. */
#include "synth/synth.h"

#include <inttypes.h>

const char *oi_axis_level_name(oi_axis_level level)
{
    switch (level) { /* no default: the compiler reports missing cases */
    case OI_AXIS_UNROLLED: return "unrolled";
    case OI_AXIS_VECTOR: return "vector";
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
    const uint32_t loops = oi_nest_loops(n);
    return loops && n->axes[loops - 1].is_reduced ? n->axes[loops - 1].factor[OI_AXIS_VECTOR] : 0;
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
