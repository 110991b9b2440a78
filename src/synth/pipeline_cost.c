/* pipeline_cost.c: estimates the time of kernels on a processor with caches, alone and in a row
 * pipeline.
 *
 * A kernel alone reads its input from the cache level that holds the whole tensor. In a pipeline it
 * finds the rows in the level that holds the line buffers, and rereads the weights every iteration.
 * Threads partition the rows of the last kernel. Each computes the producers' rows that it needs,
 * so two neighbours both compute the rows at their border. */
#include "device/cost.h"
#include "synth/pipeline.h"

#define AGAIN 2 /* repacked rows are read and written */

typedef struct taking {
    oi_unit *u;
    const oi_machine *m;
    const oi_pipeline *t; /* one producer and count 0: a kernel alone */
    const int64_t *kept;
    const oi_skernel *const *kernels;
    bool is_in_place;
    oi_level near, far; /* levels of line buffers and weights, and of everything else */
} taking;

static int64_t kept_of(const taking *x, uint32_t tensor)
{
    for (uint32_t i = 0; i < x->t->n; i++)
        if (x->t->producers[i].out == tensor)
            return x->kept[i];
    return 0;
}

static uint64_t row_bytes(const oi_tensor *t, uint32_t dim)
{
    return t->size_bytes / (uint64_t)t->dims[dim];
}

uint64_t oi_pipeline_buffer_bytes(const oi_unit *u, const oi_pipeline *t, const int64_t *kept)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (kept[i] && !(t->into && t->into[i]))
            all += row_bytes(&u->tensors.at[t->producers[i].out], t->schedules[i].dim) *
                   (uint64_t)kept[i];
    return all;
}

static void find_levels(taking *x)
{
    uint64_t near = oi_pipeline_buffer_bytes(x->u, x->t, x->kept), far = 0;
    for (uint32_t i = 0; i < x->t->n; i++)
        for (size_t p = 0; p < x->kernels[i]->ports.n; p++) {
            const oi_tensor *t = &x->u->tensors.at[x->kernels[i]->ports.at[p].tensor];
            if (t->space == OI_SPACE_WEIGHTS)
                near += t->size_bytes;
            else if (!kept_of(x, x->kernels[i]->ports.at[p].tensor))
                far += t->size_bytes;
        }
    x->near = oi_cost_level(x->m, near + near / 2); /* other data needs some of the cache */
    x->far = far > oi_cost_held(x->u->target) ? OI_LEVEL_MEMORY : oi_cost_level(x->m, far);
}

/* Rows that two calls of a tuned body both repack. */
static uint64_t repacked_bytes(const taking *x, uint32_t i)
{
    uint64_t all = 0;
    const oi_row_producer *m = &x->t->producers[i];
    for (size_t r = 0; x->kernels[i]->recipe && r < m->reads.n; r++) {
        const oi_row_read *read = &m->reads.at[r];
        const int64_t twice = read->to - read->from + 1 - read->step;
        if (read->step && twice > 0)
            all += (uint64_t)(x->t->count * twice) *
                   row_bytes(&x->u->tensors.at[read->tensor], x->t->schedules[i].dim);
    }
    return AGAIN * all;
}

/* Tuned bodies walk channel by channel, so hardware prefetch does not hide memory latency as it
 * does for plain loops. */
static double stall_of(const taking *x, const oi_skernel *k, const oi_work_size *w)
{
    const uint64_t bytes = k->recipe ? w->bytes[OI_LEVEL_MEMORY] : 0;
    return (double)bytes /
           (w->is_parallel ? x->m->memory_bytes_per_ns : x->m->bytes_per_ns[OI_LEVEL_MEMORY]);
}

static double time_of(const taking *x, uint32_t i)
{
    const oi_skernel *k = x->kernels[i];
    const uint64_t turns = x->t->count ? (uint64_t)x->t->count : 1;
    uint64_t *touched = oi_arena_alloc(x->u->arena, (k->ports.n + 1) * sizeof *touched), all = 0;
    oi_cost cost = {0};
    oi_work_size w = {0};
    oi_kernel_work(x->u, k, touched, &cost, &w);
    for (size_t p = 0; p < k->ports.n; p++) {
        const uint32_t tensor = k->ports.at[p].tensor;
        if (x->is_in_place && k->ports.at[p].is_written)
            continue;
        if (x->u->tensors.at[tensor].space == OI_SPACE_WEIGHTS)
            w.bytes[x->near] += touched[p] * (turns - 1); /* the first read costs the same in every
                                                             plan */
        else
            w.bytes[kept_of(x, tensor) ? x->near : x->far] += touched[p];
        all += touched[p];
    }
    if (x->t->count)
        w.bytes[OI_LEVEL_L1] += repacked_bytes(x, i);
    w.is_parallel =
        x->t->count || all / sizeof(float) + cost.macs >= (uint64_t)oi_cost_share(x->u->target);
    return oi_cost_time(x->m, &w) + stall_of(x, k, &w) + (double)(turns - 1) * x->m->call_ns;
}

double oi_pipeline_time(oi_unit *u, const oi_skernel *const *kernels, const oi_pipeline *t,
                        const int64_t *kept, bool is_in_place)
{
    const oi_machine m = oi_cost_machine(u->target);
    taking x = {
        .u = u, .m = &m, .t = t, .kept = kept, .kernels = kernels, .is_in_place = is_in_place};
    double sum = m.threads > 1 ? m.barrier_ns : 0, even = 1;
    find_levels(&x);
    if (t->count && m.threads > 1) { /* all threads wait for those with one unit more */
        const int64_t step = t->schedules[t->n - 1].step, n = (int64_t)m.threads;
        const int64_t units = (t->producers[t->n - 1].rows + step - 1) / step;
        even = (double)((units + n - 1) / n * n) / (double)units;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        const double own = time_of(&x, i) * even;
        sum += own;
        if (t->count && m.threads > 1)
            sum += own * m.threads * (double)oi_pipeline_halo(t, i) / (double)t->producers[i].rows;
    }
    return sum;
}
