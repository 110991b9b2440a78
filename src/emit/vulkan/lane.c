/* lane.c: workgroups: which lane and which position an invocation is. emit/lane.c prints the sums
 * that lanes make together.
 *
 * Shuffles want full subgroups: a host creates such pipelines with
 * VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT. */
#include "emit/vulkan/glsl.h"

#include <inttypes.h>

void oi_glsl_put_shared(oi_out *o, const oi_plan *u, const oi_group *g, const oi_snest *nests,
                        size_t n)
{
    const oi_lang *lang = oi_glsl_lang(u->device);
    for (size_t i = 0; i < n; i++) {
        const char *type = oi_group_sums(&nests[i]) ? oi_lane_type(lang, &nests[i]) : NULL;
        if (type && !oi_lane_is_declared(lang, nests, i))
            oi_out_line(o, "shared %s sums_%s[%" PRId64 "];", type, type, g->size);
    }
}

void oi_glsl_put_lane(oi_out *o, const oi_group *g)
{
    if (g->lanes == 1)
        return;
    oi_out_line(o, "const uint at = %s;",
                g->has_shuffle ? "gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID"
                               : "gl_LocalInvocationIndex");
    oi_out_line(o, "const uint lane = at %c %" PRId64 "u;", g->is_apart ? '/' : '%',
                g->is_apart ? g->positions : g->lanes);
}

/* An invocation without a position ends if its whole group does or nothing waits for it; else it
 * stays for the barriers and computes the last position once more. */
void oi_glsl_put_position(oi_out *o, const oi_group *g, const char *all)
{
    const char *block = "gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x";
    if (g->lanes > 1 && g->positions > 1) {
        oi_out_line(o, "uint id = (%s) * %" PRId64 "u + at %c %" PRId64 "u;", block, g->positions,
                    g->is_apart ? '%' : '/', g->is_apart ? g->positions : g->lanes);
        oi_out_line(o, "const bool inside = id < %s;", all);
        oi_out_line(o, "id = min(id, %s - 1u);", all);
        return;
    }
    oi_out_line(o, "uint id = %s;",
                g->lanes > 1 ? block
                             : "gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * "
                               "(gl_NumWorkGroups.x * gl_WorkGroupSize.x)");
    oi_out_open(o, "if (id >= %s)", all);
    oi_out_line(o, "return;");
    oi_out_close(o, "");
}
