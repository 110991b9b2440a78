/* prefetch.c: which weights threads prefetch: while they wait in a barrier, and at the end of
 * kernels that stream weights. Part of partition.c, after barriers are placed. */
#include "synth/pass.h"

/* Each worker reads its own part of the kernel's weights in order. */
static bool streams(const oi_skernel *k)
{
    return k->recipe && k->plan->streams && oi_kernel_partition(k).extent > 0;
}

/* Finds the first kernel from `at` on whose weights each thread streams for its partition. */
static bool find_prefetch(const oi_unit *u, const oi_stmts *list, size_t at, uint32_t *found)
{
    for (; at < list->n; at++) {
        const oi_stmt *x = &list->at[at];
        if (x->kind == OI_STMT_LOOP || x->kind == OI_STMT_BRANCH)
            return false; /* its body comes first */
        const oi_skernel *k = x->kind == OI_STMT_KERNEL ? &u->kernels.at[x->kernel] : NULL;
        *found = x->kernel;
        if (k && streams(k))
            return true;
    }
    return false;
}

static bool can_prefetch(const oi_skernel *k)
{
    const bool is_body = k->recipe && oi_kernel_partition(k).extent > 0;
    bool asks = false;
    for (uint32_t i = 0; is_body && i < k->plan->n_args; i++)
        asks |= k->plan->args[i].kind == OI_ARG_NEXT;
    return asks;
}

/* Sets the kernel whose weights are prefetched, for waiting threads and for kernels that stream
 * weights. */
static void mark_prefetch(oi_unit *u, oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *x = &list->at[i];
        mark_prefetch(u, &x->body);
        x->has_prefetch = x->barrier && find_prefetch(u, list, i, &x->prefetch);
        oi_skernel *k = x->kind == OI_STMT_KERNEL ? &u->kernels.at[x->kernel] : NULL;
        if (k && x->is_parallel && !k->is_chunked && can_prefetch(k))
            k->has_prefetch = find_prefetch(u, list, i + 1, &k->prefetch);
    }
}

void oi_graph_mark_prefetch(oi_unit *u, uint32_t graph)
{
    oi_sgraph *g = &u->graphs.at[graph];
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        if (g->blocks[b].is_parallel)
            mark_prefetch(u, &g->blocks[b].stmts);
}
