/* lane.c: workgroups, and sums that invocations of a workgroup make together.
 *
 * The partial sums of lanes are combined pairwise: lane l takes what lane l + 8 has, then l + 4,
 * and so on. That is the order in which the simulator adds declared partial sums, so the bits are
 * the same. Lanes of one subgroup exchange sums by shuffles, others through shared memory; the
 * order is one, whatever the size of a subgroup. Shuffles want full subgroups: a host creates such
 * pipelines with VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT. */
#include "emit/vulkan/glsl.h"

#include <inttypes.h>

static const char *type_of(const oi_lang *lang, const oi_snest *n)
{
    return lang->dialect->types[oi_form_of(n->acc)];
}

/* Whether an earlier nest's sums have the type of nest i. */
static bool is_declared(const oi_lang *lang, const oi_snest *nests, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (oi_group_sums(&nests[j]) &&
            strcmp(type_of(lang, &nests[j]), type_of(lang, &nests[i])) == 0)
            return true;
    return false;
}

void oi_glsl_put_shared(oi_out *o, const oi_plan *u, const oi_group *g, const oi_snest *nests,
                        size_t n)
{
    const oi_lang *lang = oi_glsl_lang(u->device);
    for (size_t i = 0; i < n; i++) {
        const char *type = oi_group_sums(&nests[i]) ? type_of(lang, &nests[i]) : NULL;
        if (type && !is_declared(lang, nests, i))
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

const char *oi_glsl_lane(const oi_nest_printer *p, int64_t lanes, const char *end)
{
    return lanes == p->group->lanes
               ? "int(lane)"
               : oi_arena_printf(p->arena, "lane < %" PRId64 "u ? int(lane) : %s", lanes, end);
}

/* acc becomes acc and `other`, which a lane reads by `text`. */
static void combine(oi_printing *x, const char *acc, const char *text)
{
    oi_out_line(x->p->out, "const %s other = %s;", oi_instr_type(x, oi_form_of(x->n->acc)), text);
    oi_instr_combine(x, oi_form_of(x->n->acc), acc, "other");
}

void oi_glsl_sum_lanes(oi_printing *x, const char *acc, int64_t lanes)
{
    oi_out *o = x->p->out;
    oi_arena *a = x->p->arena;
    const oi_group *g = x->p->group;
    const bool shuffles = g->has_shuffle && oi_dtype_bits(x->n->acc) <= 32;
    const char *sums = oi_arena_printf(a, "sums_%s", type_of(x->p->lang, x->n));
    oi_out_line(o, "uint span = %" PRId64 "u;", lanes / 2);
    if (shuffles)
        oi_out_open(o, "if (span >= gl_SubgroupSize)");
    oi_out_line(o, "%s[at] = %s;", sums, acc);
    oi_out_line(o, "barrier();");
    if (shuffles)
        oi_out_close(o, "");
    oi_out_open(o, "for (; span %s; span /= 2u)", shuffles ? ">= gl_SubgroupSize" : "> 0u");
    oi_out_open(o, "if (lane < span)");
    combine(x, acc,
            g->is_apart && g->positions > 1
                ? oi_arena_printf(a, "%s[at + span * %" PRId64 "u]", sums, g->positions)
                : oi_arena_printf(a, "%s[at + span]", sums));
    oi_out_line(o, "%s[at] = %s;", sums, acc);
    oi_out_close(o, "");
    oi_out_line(o, "barrier();");
    oi_out_close(o, "");
    if (!shuffles)
        return;
    oi_out_open(o, "for (; span > 0u; span /= 2u)");
    combine(x, acc, oi_arena_printf(a, "subgroupShuffleXor(%s, span)", acc));
    oi_out_close(o, "");
}
