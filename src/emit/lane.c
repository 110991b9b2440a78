/* lane.c: sums that invocations of a workgroup make together, in languages with workgroups.
 *
 * The partial sums of lanes are combined pairwise: lane l takes what lane l + 8 has, then l + 4,
 * and so on. That is the order in which the simulator adds declared partial sums, so the bits are
 * the same. Lanes of one subgroup exchange sums by shuffles, others through shared memory; the
 * order is one, whatever the size of a subgroup. */
#include "emit/nest.h"

#include <inttypes.h>

const char *oi_lane_type(const oi_lang *lang, const oi_snest *n)
{
    return lang->dialect->types[oi_form_of(n->acc)];
}

bool oi_lane_is_declared(const oi_lang *lang, const oi_snest *nests, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (oi_group_sums(&nests[j]) &&
            strcmp(oi_lane_type(lang, &nests[j]), oi_lane_type(lang, &nests[i])) == 0)
            return true;
    return false;
}

const char *oi_lane_begin(const oi_nest_printer *p, int64_t lanes, const char *end)
{
    const oi_group *g = p->group;
    const bool all = lanes == g->lanes && g->lanes * g->positions == g->size;
    return all ? "int(lane)"
               : oi_arena_printf(p->arena, "lane < %" PRId64 "u ? int(lane) : %s", lanes, end);
}

/* acc becomes acc and `other`, which a lane reads by `text`. */
static void combine(oi_printing *x, const char *acc, const char *text)
{
    oi_out_line(x->p->out, "const %s other = %s;", oi_instr_type(x, oi_form_of(x->n->acc)), text);
    oi_instr_combine(x, oi_form_of(x->n->acc), acc, "other");
}

/* Down to the sums that lanes of one subgroup hold, or to the last one. */
static void sum_in_memory(oi_printing *x, const char *acc, bool shuffles)
{
    oi_out *o = x->p->out;
    const oi_group *g = x->p->group;
    const oi_lane_words *w = x->p->lang->lane_words;
    const char *sums = oi_arena_printf(x->p->arena, "sums_%s", oi_lane_type(x->p->lang, x->n));
    if (shuffles)
        oi_out_open(o, "if (span >= %s)", w->subgroup);
    oi_out_line(o, "%s[at] = %s;", sums, acc);
    oi_out_line(o, "%s", w->barrier);
    if (shuffles)
        oi_out_close(o, "");
    oi_out_open(o, "for (; span %s %s; span /= 2u)", shuffles ? ">=" : ">",
                shuffles ? w->subgroup : "0u");
    oi_out_open(o, "if (lane < span)");
    combine(x, acc,
            g->is_apart && g->positions > 1
                ? oi_arena_printf(x->p->arena, "%s[at + span * %" PRId64 "u]", sums, g->positions)
                : oi_arena_printf(x->p->arena, "%s[at + span]", sums));
    oi_out_line(o, "%s[at] = %s;", sums, acc);
    oi_out_close(o, "");
    oi_out_line(o, "%s", w->barrier);
    oi_out_close(o, "");
}

void oi_lane_sum(oi_printing *x, const char *acc, int64_t lanes)
{
    oi_out *o = x->p->out;
    const oi_lane_words *w = x->p->lang->lane_words;
    const bool shuffles = x->p->group->has_shuffle && oi_dtype_bits(x->n->acc) <= 32;
    const bool is_small = shuffles && w->subgroup_size && lanes <= w->subgroup_size;
    oi_out_line(o, "%s span = %" PRId64 "u;", w->number, lanes / 2);
    if (!is_small)
        sum_in_memory(x, acc, shuffles);
    if (!shuffles)
        return;
    oi_out_open(o, "for (; span > 0u; span /= 2u)");
    combine(x, acc, oi_arena_printf(x->p->arena, "%s%s, span)", w->shuffle, acc));
    oi_out_close(o, "");
}
