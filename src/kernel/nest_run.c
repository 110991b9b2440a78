/* nest_run.c: the general driver: runs any nest.
 *
 * Coordinates are offsets by now (nest_place.c) and rows know how to run (nest_rows.c); here
 * iterations are dealt out to tasks, plain copies go to copy.c, and an index out of range becomes
 * the fault of its lowest iteration, whichever thread found one first. */
#include "kernel/nest_run.h"

#define BLOCK 32768 /* iterations per task: a multiple of 8, see packed types below */

typedef bool row_fn(const oi_nest_job *j, const int64_t *pos, int64_t n);

static void run_rows(oi_nest_job *j, size_t task, row_fn *row)
{
    int64_t from = (int64_t)task * j->block,
            to = from + j->block < j->total ? from + j->block : j->total;
    uint32_t last = j->n_axes - 1;
    int64_t inner = j->extent[last], pos[OI_NEST_AXES];
    while (from < to) {
        oi_nest_seek(j, j->n_axes, from, pos);
        int64_t n = inner - pos[last] < to - from ? inner - pos[last] : to - from;
        if (!row(j, pos, n)) {
            oi_nest_note_fault(j, from);
            return;
        }
        from += n;
    }
}

static void row_task(void *ctx, size_t task)
{
    run_rows(ctx, task, oi_nest_row);
}

static void check_task(void *ctx, size_t task)
{
    run_rows(ctx, task, oi_nest_row_check);
}

/* Within the row that was noted, the very iteration. */
static void pin_fault(oi_nest_job *j)
{
    int64_t first = atomic_load(&j->first_fault), pos[OI_NEST_AXES];
    oi_nest_seek(j, j->n_axes, first, pos);
    uint32_t last = j->n_axes - 1;
    int64_t left = j->extent[last] - pos[last];
    for (int64_t i = 0; i < left; i++, pos[last]++)
        if (!oi_nest_row_check(j, pos, 1)) {
            atomic_store(&j->first_fault, first + i);
            return;
        }
}

static bool run_tasks(oi_nest_job *j, void (*task)(void *ctx, size_t i), oi_kernel_fault *fault)
{
    oi_kernel_io io = *j->io;
    j->block = BLOCK;
    if (j->n->is_serial)
        io.parallel = NULL;
    /* tasks must not share a byte of a packed result */
    if (oi_dtype_bits(j->write.dtype) < 8)
        io.parallel = NULL;
    oi_parallel(&io, (size_t)((j->total + j->block - 1) / j->block), task, j);
    if (atomic_load(&j->first_fault) == INT64_MAX)
        return true;
    pin_fault(j);
    oi_nest_explain(j, fault);
    return false;
}

static bool has_index(const oi_lane *l)
{
    for (uint32_t s = 0; s < l->n_special; s++)
        if (l->special[s].index)
            return true;
    return false;
}

/* A copy without questions. */
static bool copy_plainly(const oi_nest_job *j)
{
    oi_walk w = {.rank = j->n_axes, .n_operands = 2};
    const oi_lane *to = &j->write, *from = &j->reads[0];
    if (to->n_special || from->n_special || j->n->has_guard || j->n->is_serial ||
        j->n_axes > OI_KERNEL_RANK)
        return false;
    for (uint32_t a = 0; a < j->n_axes; a++) {
        w.dims[a] = j->extent[a];
        w.steps[0][a] = to->step[a];
        w.steps[1][a] = from->step[a];
    }
    if (to->data == from->data && to->at == from->at &&
        memcmp(to->step, from->step, j->n_axes * sizeof *to->step) == 0)
        return true; /* in place */
    oi_copy_walk(&w, to->dtype, to->data, to->at, from->data, from->at, j->io);
    return true;
}

/* Every element that is written becomes `fill`. */
static void fill_all(oi_nest_job *j, oi_kernel_fault *fault)
{
    oi_nest filled = *j->n;
    oi_nest_job all;
    filled.n_reads = 0;
    filled.has_guard = false;
    filled.leave = OI_LEAVE_NEVER;
    if (!oi_nest_prepare(&all, &filled, j->q, j->c, j->io))
        return;
    all.fill = j->fill;
    run_tasks(&all, row_task, fault);
}

static bool run_copy(oi_nest_job *j, oi_kernel_fault *fault)
{
    bool reads = j->n->n_reads && j->reads[0].name != OI_NEST_NONE;
    if (reads && j->n->leave == OI_LEAVE_FILL && !j->n->has_guard && j->reads[0].n_special &&
        !j->write.n_special && oi_nest_crop(j))
        fill_all(j, fault);
    if (j->total == 0 || (reads && copy_plainly(j)))
        return true;
    return run_tasks(j, row_task, fault);
}

static void run_scan(oi_nest_job *j)
{
    oi_kernel_io io = *j->io;
    if (oi_dtype_bits(j->write.dtype) < 8)
        io.parallel = NULL;
    int64_t inner = j->extent[j->n_out_axes - 1];
    oi_parallel(&io, (size_t)(j->total / inner * ((inner + OI_CHUNK - 1) / OI_CHUNK)),
                oi_nest_scan_task, j);
}

static bool run_one(const oi_nest *n, const oi_kernel_query *q, const oi_choice *c,
                    const oi_kernel_io *io, oi_kernel_fault *fault)
{
    oi_nest_job j;
    if (!oi_nest_prepare(&j, n, q, c, io))
        return true;
    /* the output stays what it was when an index is wrong */
    if (has_index(&j.write) && !run_tasks(&j, check_task, fault))
        return false;
    if (n->is_copy)
        return run_copy(&j, fault);
    if (n->is_scan) {
        run_scan(&j);
        return true;
    }
    return run_tasks(&j, row_task, fault);
}

bool oi_nest_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                 oi_kernel_fault *fault)
{
    size_t n = oi_nest_count(q);
    oi_nest nest;
    for (size_t i = 0; i < n; i++) {
        oi_nest_make(q, i, &nest);
        if (!run_one(&nest, q, c, io, fault))
            return false;
    }
    return true;
}
