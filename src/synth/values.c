/* values.c: numbers that statements set, such as a loop index, go along with each call of a kernel.
 * needs:  spaces of tensors
 * keeps:  statements, memory
 * makes:  by_value of tensors
 *
 * Where another processor runs the statements, it would else have to write such a number into the
 * device's memory, in order with the kernels. */
#include "synth/pass.h"

static void count_sets(const oi_stmts *list, uint64_t *n)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i].kind == OI_STMT_SET)
            n[list->at[i].a.tensor]++;
        count_sets(&list->at[i].body, n);
    }
}

static bool is_output(const oi_sgraph *g, uint32_t tensor)
{
    for (size_t i = 0; i < g->outputs.n; i++)
        if (g->outputs.at[i] == tensor)
            return true;
    return false;
}

/* Only statements write it, and only kernels read its memory. */
static void mark_graph(oi_unit *u, uint32_t graph)
{
    const oi_sgraph *g = &u->graphs.at[graph];
    const oi_tally *tally = oi_graph_tally(u, graph);
    uint64_t *sets = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *sets);
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        count_sets(&g->blocks[b].stmts, sets);
    for (uint32_t i = 0; i < u->tensors.n; i++) {
        oi_tensor *t = &u->tensors.at[i];
        t->by_value |= sets[i] > 0 && sets[i] == tally[i].writes && t->rank == 0 &&
                       t->space == OI_SPACE_ARENA && t->start == OI_START_NONE && !is_output(g, i);
    }
}

oi_status oi_pass_values(oi_unit *u)
{
    for (uint32_t g = 0; u->can.sends_values && !u->per_node && g < u->graphs.n; g++)
        mark_graph(u, g);
    return OI_OK;
}
