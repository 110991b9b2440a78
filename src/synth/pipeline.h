/* pipeline.h: kernels as makers of rows, for those who let several take turns (pipeline.c) and
 * those who look whether that is right. Rows are places along one dim of a kernel's result. */
#ifndef OI_PIPELINE_H
#define OI_PIPELINE_H

#include "synth/pass.h"

/* Row r of the result is made of rows r * step + from ... r * step + to of the tensor, as far as
 * there are such; step 0: it may be made of any. */
typedef struct oi_row_read {
    uint32_t tensor;
    int64_t step, from, to;
    bool is_private; /* an element is read only where it is then stored */
} oi_row_read;

typedef struct oi_row_producer {
    const char *why; /* it cannot be asked for some of its rows only; NULL: it can */
    uint32_t out;    /* tensor */
    uint32_t axis;   /* of its nest */
    int64_t rows;
    OI_VEC(oi_row_read) reads; /* once for every tensor but weights */
} oi_row_producer;

/* Some makers in the order of a turn. */
typedef struct oi_pipeline {
    uint32_t n;
    int64_t count; /* turns */
    const oi_row_producer *producers;
    const oi_row_schedule *schedules;
    const uint32_t
        *into; /* 1 + the maker in whose ring its rows lie, 0: in its own; NULL: all do */
} oi_pipeline;

/* -- producers.c -- */

void oi_row_producer_find(oi_unit *u, const oi_skernel *k, uint32_t dim, oi_row_producer *out);
/* How many rows there are after so many turns. */
int64_t oi_row_schedule_made(const oi_row_schedule *t, int64_t turns);
/* The least number of rows of what maker `of` makes that must be kept at a time. */
int64_t oi_pipeline_kept(const oi_pipeline *t, uint32_t of);
/* Whether what the last maker makes may lie where the tensor lies, which no maker makes: nobody
 * looks at a row of it once that is overwritten. */
bool oi_pipeline_may_overwrite(const oi_pipeline *t, uint32_t tensor);
/* Of a part of the last maker's rows that begins with unit q: its first turn is q + so many, and
 * that after its last, of the unit before which it ends, q + so many. */
int64_t oi_pipeline_first(const oi_pipeline *t);
int64_t oi_pipeline_end(const oi_pipeline *t);
/* How many rows a maker makes for such a part that the part before makes, too. */
int64_t oi_pipeline_halo(const oi_pipeline *t, uint32_t of);
/* The turns of a statement as they are. */
oi_pipeline oi_pipeline_of(oi_unit *u, const oi_stmt *s);
/* NULL when every row is there when it is read, else what is not. */
const char *oi_pipeline_check(const oi_unit *u, const oi_pipeline *t);

/* -- pipeline_cost.c -- */

/* In ns, what the kernels take on the target, with all its threads: in turns, of which so many rows
 * of each result are kept (0: all), or one kernel alone, where there are no turns; its
 * result may take the place of what it is made of. */
double oi_pipeline_time(oi_unit *u, const oi_skernel *const *kernels, const oi_pipeline *t,
                        const int64_t *kept, bool is_in_place);
uint64_t oi_pipeline_buffer_bytes(const oi_unit *u, const oi_pipeline *t, const int64_t *kept);

#endif
