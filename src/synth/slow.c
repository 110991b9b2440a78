/* slow.c: says which large kernels have neither a recipe nor loops that fill vectors.
 * needs:  costs (cost.c), levels of axes
 * keeps:  everything
 * makes:  notes, with the reason and what would help
 *
 * A user should not have to guess why a step takes long. Kernels of less than a twentieth of a step
 * are not worth a word, nor is a step that takes no time. */
#include "synth/compose.h"

#define LEAST_SHARE 0.05
#define LEAST_NS    10000

typedef struct finding {
    const char *why, *help;
} finding;

static bool is_scalar_map(const oi_unit *u, const oi_skernel *k, const oi_snest *n, finding *out)
{
    const uint32_t last = n->n_axes ? n->n_axes - 1 : 0;
    for (size_t i = 0; n->n_axes && i < n->pre.n; i++) {
        const oi_sop *op = &n->pre.at[i];
        if (!oi_sop_is_access(op) || op->kind == OI_SOP_INDEX || !oi_sop_is_affine(u, k, op))
            continue; /* rows that data selects may well be contiguous */
        const int64_t step = oi_sop_number(u, k, op).step[last];
        if (step < 0 || step > 2) {
            *out = (finding){"its inner loop takes elements that are not neighbours",
                             "a transpose where the tensor is made, or an order of dims in which "
                             "the last one stays the last"};
            return true;
        }
    }
    return false;
}

/* A reduction whose sums are single numbers, in order. */
static bool is_scalar_sum(const oi_unit *u, const oi_skernel *k, const oi_snest *n, finding *out)
{
    if (oi_nest_partial_sums(n) || oi_nest_register_tile(n))
        return false;
    if (n->is_scan || n->is_serial)
        *out = (finding){"every element waits for the one before it", "a shorter axis"};
    else if (n->skips)
        *out = (finding){"windows reach beyond the operand, so every element is tested",
                         "a pad before it"};
    else if (n->combines_out)
        *out = (finding){"several elements may go to one place", "an order by place"};
    else if (n->finds_position)
        *out = (finding){"positions are compared one by one", "f32, over one axis, the last"};
    else if (!oi_nest_strides(u, k, n).is_plain)
        *out = (finding){"places follow from data", "a slice, where the order is known"};
    else
        *out = (finding){"no operand of its sums is contiguous along the sum or along the result",
                         "a transposed operand, or weights that are constants"};
    return true;
}

static bool is_slow(const oi_unit *u, const oi_skernel *k, finding *out)
{
    if (k->is_dynamic) {
        *out = (finding){"its lengths are known only at run time",
                         "lengths that are constants, or @cap where a recipe takes a length"};
        return true;
    }
    for (size_t i = 0; i < k->nests.n; i++) {
        const oi_snest *n = &k->nests.at[i];
        if (n->kind == OI_NEST_MAP ? is_scalar_map(u, k, n, out) : is_scalar_sum(u, k, n, out))
            return true;
    }
    return false;
}

oi_status oi_pass_slow(oi_unit *u)
{
    for (size_t i = 0; i < u->kernels.n && u->can.vectors; i++) {
        const oi_skernel *k = &u->kernels.at[i];
        const double all = u->graphs.at[k->graph].cost.ns;
        finding f;
        if (!k->is_used || k->recipe || k->cost.ns < LEAST_NS || k->cost.ns < LEAST_SHARE * all ||
            !is_slow(u, k, &f))
            continue;
        const uint32_t line = k->nodes.n ? k->nodes.at[0]->source->span.line : 0;
        oi_unit_note(u, OI_NOTE_SLOW, k->graph, k->nodes.n ? k->nodes.at[0] : NULL,
                     "%s (line %u), about %.0f %% of a step, is a plain loop: %s. What would help: "
                     "%s.",
                     k->name, line, 100 * (k->cost.ns < all ? k->cost.ns / all : 1), f.why, f.help);
    }
    return OI_OK;
}
