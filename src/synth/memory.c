/* memory.c: where everything lies.
 * needs:  every tensor's space and size, statements in their order
 * keeps:  statements, kernels
 * makes:  offsets of weights and working memory, their totals; the bound that liveness proves */
#include "synth/synth.h"

static uint64_t aligned(uint64_t n)
{
    return (n + OI_ALIGN - 1) / OI_ALIGN * OI_ALIGN;
}

static bool add(uint64_t *total, uint64_t n)
{
    return !__builtin_add_overflow(*total, aligned(n), total) && *total <= INT64_MAX;
}

oi_status oi_pass_memory(oi_unit *u)
{
    uint64_t weights = OI_ALIGN, arena = 0, state = 0; /* weights begin after their header */
    bool fits = true;
    for (size_t i = 0; i < u->tensors.n; i++) {
        oi_tensor *t = &u->tensors.at[i];
        uint64_t n = oi_tensor_bytes(t);
        if (t->space == OI_SPACE_WEIGHTS) {
            t->offset = weights;
            fits &= add(&weights, n);
        } else if (t->space == OI_SPACE_ARENA) {
            t->offset = arena;
            fits &= add(&arena, n);
        } else if (t->space == OI_SPACE_STATE) {
            fits &= add(&state, n);
        }
    }
    if (!fits)
        return oi_unit_refuse(u, 0, NULL, (oi_span){0}, "E062", "the graph needs more memory than any machine has");
    u->weights_bytes = weights;
    u->arena_bytes = arena;
    u->state_bytes = state;
    return OI_OK;
}
