/* chunks.c: dynamic chunks for long kernels.
 * needs:  partitions and barriers (partition.c)
 * keeps:  statements, their order, every result bit for bit: one thread computes each element
 * makes:  oi_stmt.chunks, oi_skernel.is_chunked
 *
 * Threads are not equally fast: one shares its core with another process, or woke up late. Between
 * two barriers, kernels that are partitioned alike depend only on their own partition. So they can
 * run chunk by chunk: a thread runs all of these kernels for one chunk and then takes the next one.
 * This is valid only if no other kernel between the same barriers relies on the static partition.
 */
#include "device/cost.h"
#include "synth/pass.h"

#define LEAST_NS 25000 /* a chunk costs some hundred ns; threads may differ by a third */
#define OPEN     8 /* divisor for kernels whose size is known only at run time: they may do less */

/* A list of statements: a block, or the body of the loop that is statement `at` of `outer`. */
typedef struct frame frame;
struct frame {
    const oi_sgraph *graph;
    const oi_stmts *list;
    const frame *outer;
    size_t at;
    bool ends_step; /* a block that ends with a barrier */
};

static bool is_split(const oi_unit *u, const oi_stmt *x)
{
    return x->is_parallel && x->kind == OI_STMT_KERNEL &&
           oi_kernel_partition(&u->kernels.at[x->kernel]).extent > 0;
}

static bool is_parallel_work(const oi_stmt *x)
{
    return x->is_parallel && (x->kind == OI_STMT_KERNEL || x->kind == OI_STMT_LOOP ||
                              x->kind == OI_STMT_BRANCH || x->kind == OI_STMT_PIPELINE);
}

typedef enum first_thing { NOTHING, BARRIER, WORK } first_thing;

static first_thing first_of(const oi_sgraph *g, const oi_stmts *list, size_t from);

/* What comes first on either side of a branch. A barrier counts only if both sides have one. */
static first_thing first_of_sides(const oi_sgraph *g, const oi_pnode *n)
{
    const uint32_t other = n->as.branch.cond == OI_NO_ID ? OI_NO_ID : n->as.branch.else_block;
    const first_thing a = first_of(g, &g->blocks[n->as.branch.then_block].stmts, 0);
    const first_thing b = other == OI_NO_ID ? a : first_of(g, &g->blocks[other].stmts, 0);
    return a == WORK || b == WORK ? WORK : a == b ? a : NOTHING;
}

/* What comes first from statement `from` on. */
static first_thing first_of(const oi_sgraph *g, const oi_stmts *list, size_t from)
{
    first_thing found = NOTHING;
    for (size_t i = from; found == NOTHING && i < list->n; i++) {
        const oi_stmt *x = &list->at[i];
        if (x->barrier)
            found = BARRIER;
        else if (is_parallel_work(x))
            found = x->kind == OI_STMT_BRANCH ? first_of_sides(g, x->node) : WORK;
    }
    return found;
}

/* Whether a barrier follows statement `end` - 1 before any other parallel work. */
static bool barrier_follows(const frame *f, size_t end)
{
    const first_thing next = first_of(f->graph, f->list, end);
    if (next != NOTHING || !f->outer)
        return next == BARRIER || (next == NOTHING && f->ends_step);
    return first_of(f->graph, f->list, 0) == BARRIER && barrier_follows(f->outer, f->at + 1);
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
    if (repacks_input || (ns < LEAST_NS && !u->partition_all) || !barrier_follows(f, end))
        return;
    f->list->at[from].chunks = (uint32_t)(end - from);
    for (size_t i = from; i < end; i++)
        u->kernels.at[f->list->at[i].kernel].is_chunked = true;
}

/* has_barrier: a barrier comes before the list, with no parallel work in between. */
static void mark_list(oi_unit *u, const frame *f, bool has_barrier)
{
    for (size_t i = 0, end; i < f->list->n; i = end) {
        const oi_stmt *x = &f->list->at[i];
        const frame inner = {.graph = f->graph, .list = &x->body, .outer = f, .at = i};
        has_barrier |= x->barrier;
        end = i + 1;
        if (x->is_parallel && x->kind == OI_STMT_LOOP)
            mark_list(u, &inner, false);
        if (is_split(u, x)) {
            while (end < f->list->n && is_split(u, &f->list->at[end]) && !f->list->at[end].barrier)
                end++;
            if (has_barrier)
                mark_group(u, f, i, end);
        }
        has_barrier &= !is_parallel_work(x);
    }
}

void oi_graph_mark_chunks(oi_unit *u, uint32_t graph)
{
    const oi_sgraph *g = &u->graphs.at[graph];
    if (!u->can.dynamic_chunks)
        return;
    if (u->timed) /* the first thread is timed: its partition must not change between steps */
        return;
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        if (g->blocks[b].is_parallel)
            mark_list(u,
                      &(frame){.graph = g,
                               .list = &g->blocks[b].stmts,
                               .ends_step = b == g->program->entry},
                      b == g->program->entry);
}
