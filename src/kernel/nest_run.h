/* nest_run.h: a nest made ready to run: coordinates become offsets, axes join where every operand
 * allows it. Shared by the files of the general driver. */
#ifndef OI_NEST_RUN_H
#define OI_NEST_RUN_H

#include "kernel/nest.h"

#include <stdatomic.h>

/* A coordinate that is more than an affine sum: checked, bent or found in another operand. */
typedef struct oi_special {
    int64_t base, step[OI_NEST_AXES];
    int64_t length, stride;
    const struct oi_lane *index; /* or NULL */
    int64_t index_at;            /* elements from where that lane is */
    oi_nest_bend bend;
    int64_t bend_from, bend_to;
    bool may_leave;
    const oi_operand *flat; /* the operand whose element number this is, when it is a slice */
} oi_special;

/* A read or the write. */
typedef struct oi_lane {
    oi_dtype dtype;
    uint32_t operand, name;
    bool is_position;
    char *data;
    int64_t at, step[OI_NEST_AXES]; /* what all plain coordinates add up to */
    oi_special special[OI_KERNEL_RANK];
    uint32_t n_special;
    bool is_even; /* no special coordinate changes along the last axis */
} oi_lane;

typedef struct oi_nest_job {
    const oi_nest *n;
    const oi_kernel_query *q;
    const oi_choice *c;
    const oi_kernel_io *io;
    uint32_t n_axes, n_out_axes; /* after joining; the reduced ones come last */
    int64_t extent[OI_NEST_AXES];
    oi_lane reads[OI_NEST_READS], write;
    oi_special guard;
    uint64_t fill;               /* bits of one element */
    int64_t total, block;        /* iterations over the output axes */
    _Atomic int64_t first_fault; /* the lowest iteration whose index is out of range */
} oi_nest_job;

/* Where a row of iterations finds a lane. */
typedef struct oi_lane_row {
    int64_t at, v[OI_KERNEL_RANK], index_at[OI_KERNEL_RANK];
} oi_lane_row;

typedef enum oi_where { OI_INSIDE, OI_OUTSIDE, OI_FAULTY } oi_where;

/* -- nest_place.c -- */

/* False when there is nothing to do. */
bool oi_nest_prepare(oi_nest_job *j, const oi_nest *n, const oi_kernel_query *q, const oi_choice *c,
                     const oi_kernel_io *io);
/* Joins axes and counts iterations; after a change of extents. */
void oi_nest_settle(oi_nest_job *j);
/* Leaves out the iterations whose one read is outside, where those left are still a box. */
bool oi_nest_crop(oi_nest_job *j);
/* The lane at this position of all axes. */
void oi_lane_start(const oi_nest_job *j, const oi_lane *l, const int64_t *pos, oi_lane_row *row);
/* Element i further along the last axis. */
oi_where oi_lane_at(const oi_nest_job *j, const oi_lane *l, const oi_lane_row *row, int64_t i,
                    int64_t *at);
bool oi_nest_guarded(const oi_nest_job *j, const int64_t *pos, int64_t i); /* outside */
void oi_nest_seek(const oi_nest_job *j, uint32_t n_axes, int64_t index, int64_t *pos);
void oi_nest_note_fault(oi_nest_job *j, int64_t iteration);
void oi_nest_explain(const oi_nest_job *j, oi_kernel_fault *fault);

/* -- nest_rows.c: rows of iterations along the last axis -- */

/* n iterations from pos on: copies, maps, scatter. False when an index is out of range. */
bool oi_nest_row(const oi_nest_job *j, const int64_t *pos, int64_t n);
/* A chunk of OI_CHUNK outputs along the last output axis of a scan (nest_scan.c). */
void oi_nest_scan_task(void *job, size_t task);
/* Only whether the indices are in range. */
bool oi_nest_row_check(const oi_nest_job *j, const int64_t *pos, int64_t n);

#endif
