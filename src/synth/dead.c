/* dead.c: dead code elimination: removes kernels whose results nothing reads.
 * needs:  statements
 * keeps:  everything that the host, the state, a branch or an index reads
 * makes:  fewer statements */
#include "synth/pass.h"

static bool is_dead(const oi_unit *u, const oi_tally *uses, const oi_stmt *stmt)
{
    if (stmt->kind != OI_STMT_KERNEL)
        return false;
    const oi_skernel *k = &u->kernels.at[stmt->kernel];
    bool dead = !k->can_fail;
    for (size_t i = 0; i < k->ports.n; i++) {
        uint32_t t = k->ports.at[i].tensor;
        if (k->ports.at[i].is_written)
            dead &= u->tensors.at[t].space == OI_SPACE_ARENA && uses[t].reads == 0;
    }
    return dead;
}

/* Backwards, so that producers of a dead kernel's operands become dead in turn. */
static bool sweep(oi_unit *u, uint32_t graph, oi_tally *uses, oi_stmts *list)
{
    bool any = false;
    size_t n = list->n;
    for (size_t i = list->n; i-- > 0;) {
        oi_stmt *s = &list->at[i];
        any |= sweep(u, graph, uses, &s->body);
        if (is_dead(u, uses, s)) {
            oi_tally_stmt(u, graph, s, uses, false);
            any = true;
        } else {
            list->at[--n] = *s;
        }
    }
    list->n -= n;
    if (list->n) /* an empty list has no memory */
        memmove(list->at, &list->at[n], list->n * sizeof *list->at);
    return any;
}

oi_status oi_pass_dead(oi_unit *u)
{
    for (uint32_t g = 0; g < u->graphs.n && !u->per_node; g++) {
        const oi_sgraph *graph = &u->graphs.at[g];
        oi_tally *uses = oi_graph_tally(u, g);
        bool again = true;
        while (again) {
            again = false;
            for (uint32_t b = graph->program->n_blocks; b-- > 0;)
                again |= sweep(u, g, uses, &graph->blocks[b].stmts);
        }
    }
    return OI_OK;
}
