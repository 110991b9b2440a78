/* chunks.c: long work that threads take in turn.
 * needs:  which kernels are split, where threads meet (partition.c)
 * keeps:  statements, their order, every result bit for bit: one thread computes each element
 * makes:  oi_stmt.chunks, oi_skernel.is_chunked
 *
 * Threads are not equally quick: one shares its core with a stranger, or was woken late. Kernels
 * between two meetings that are split alike need each other's own part only, so they are run piece
 * by piece, all of them for a piece, and who is done takes the next piece. That holds only as long
 * as no other kernel between the same meetings counts on a thread's part being its own. */
#include "device/cost.h"
#include "synth/pass.h"

#define LEAST_NS 25000 /* pieces cost some hundred ns, and threads differ by a third at times */
#define OPEN     8     /* what is done less, perhaps, where only the run knows how much there is */

/* A list of statements: the body of the loop that is statement `at` of `outer`, or a block. */
typedef struct frame frame;
struct frame {
    const oi_sgraph *graph;
    const oi_stmts *list;
    const frame *outer;
    size_t at;
    bool ends_step; /* a block after which all threads meet */
};

static bool is_split(const oi_unit *u, const oi_stmt *x)
{
    return x->is_parallel && x->kind == OI_STMT_KERNEL &&
           u->kernels.at[x->kernel].partition.extent > 0;
}

static bool is_shared_work(const oi_stmt *x)
{
    return x->is_parallel && (x->kind == OI_STMT_KERNEL || x->kind == OI_STMT_LOOP ||
                              x->kind == OI_STMT_BRANCH || x->kind == OI_STMT_PIPELINE);
}

typedef enum comes { NOTHING, MEETING, WORK } comes;

static comes first_of(const oi_sgraph *g, const oi_stmts *list, size_t from);

/* What comes first on either side of a branch; a meeting only where both have one. */
static comes first_of_sides(const oi_sgraph *g, const oi_pnode *n)
{
    const uint32_t other = n->as.branch.cond == OI_NO_ID ? OI_NO_ID : n->as.branch.else_block;
    const comes a = first_of(g, &g->blocks[n->as.branch.then_block].stmts, 0);
    const comes b = other == OI_NO_ID ? a : first_of(g, &g->blocks[other].stmts, 0);
    return a == WORK || b == WORK ? WORK : a == b ? a : NOTHING;
}

/* What comes first of the statements from `from` on. */
static comes first_of(const oi_sgraph *g, const oi_stmts *list, size_t from)
{
    comes found = NOTHING;
    for (size_t i = from; found == NOTHING && i < list->n; i++) {
        const oi_stmt *x = &list->at[i];
        if (x->barrier)
            found = MEETING;
        else if (is_shared_work(x))
            found = x->kind == OI_STMT_BRANCH ? first_of_sides(g, x->node) : WORK;
    }
    return found;
}

/* Whether threads meet behind statement `end` - 1, before they share anything else. */
static bool meet_behind(const frame *f, size_t end)
{
    const comes next = first_of(f->graph, f->list, end);
    if (next != NOTHING || !f->outer)
        return next == MEETING || (next == NOTHING && f->ends_step);
    return first_of(f->graph, f->list, 0) == MEETING && meet_behind(f->outer, f->at + 1);
}

static double time_of(oi_unit *u, const oi_skernel *k)
{
    const oi_machine m = oi_cost_machine(u->target);
    oi_work_size w = {.is_parallel = true};
    oi_cost cost = {0};
    bool is_open = false;
    uint64_t *touched = oi_arena_alloc(u->arena, (k->ports.n + 1) * sizeof *touched);
    for (uint32_t i = 0; k->recipe && i < k->plan->n_args; i++)
        is_open |= k->plan->args[i].kind == OI_ARG_ATTR;
    oi_kernel_work(u, k, touched, &cost, &w);
    return oi_cost_time(&m, &w) / (is_open ? OPEN : 1);
}

static void mark_group(oi_unit *u, const frame *f, size_t from, size_t end)
{
    double ns = 0;
    bool repacks_input = false;
    for (size_t i = from; i < end; i++) {
        const oi_skernel *k = &u->kernels.at[f->list->at[i].kernel];
        ns += time_of(u, k);
        repacks_input |= k->recipe && k->plan->repacks_input;
    }
    if (repacks_input || (ns < LEAST_NS && !u->partition_all) || !meet_behind(f, end))
        return;
    f->list->at[from].chunks = (uint32_t)(end - from);
    for (size_t i = from; i < end; i++)
        u->kernels.at[f->list->at[i].kernel].is_chunked = true;
}

/* has_met: all threads meet before the list, and nothing is shared between. */
static void mark_list(oi_unit *u, const frame *f, bool has_met)
{
    for (size_t i = 0, end; i < f->list->n; i = end) {
        const oi_stmt *x = &f->list->at[i];
        const frame inner = {.graph = f->graph, .list = &x->body, .outer = f, .at = i};
        has_met |= x->barrier;
        end = i + 1;
        if (x->is_parallel && x->kind == OI_STMT_LOOP)
            mark_list(u, &inner, false);
        if (is_split(u, x)) {
            while (end < f->list->n && is_split(u, &f->list->at[end]) && !f->list->at[end].barrier)
                end++;
            if (has_met)
                mark_group(u, f, i, end);
        }
        has_met &= !is_shared_work(x);
    }
}

void oi_graph_mark_chunks(oi_unit *u, uint32_t graph)
{
    const oi_sgraph *g = &u->graphs.at[graph];
    if (u->timed) /* it times the first thread: its part must be the same in every step */
        return;
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        if (g->blocks[b].is_parallel)
            mark_list(u,
                      &(frame){.graph = g,
                               .list = &g->blocks[b].stmts,
                               .ends_step = b == g->program->entry},
                      b == g->program->entry);
}
