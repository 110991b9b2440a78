/* pipeline.h: kernels as producers of rows, for the pass that builds row pipelines (pipeline.c) and
 * for the checks of them. A row is a position along one dim of a kernel's result. */
#ifndef OI_PIPELINE_H
#define OI_PIPELINE_H

#include "synth/pass.h"

/* Row r of the result reads rows r * step + from ... r * step + to of the tensor, clipped to those
 * that exist. step 0: it may read any row. */
typedef struct oi_row_read {
    uint32_t tensor;
    int64_t step, from, to;
    bool is_private; /* an element is read only by the iteration that overwrites it */
} oi_row_read;

typedef struct oi_row_producer {
    const char *why; /* why it cannot produce single rows; NULL: it can */
    uint32_t out;    /* tensor */
    uint32_t axis;   /* of its nest */
    int64_t rows;
    OI_VEC(oi_row_read) reads; /* one per tensor, weights excluded */
} oi_row_producer;

/* The producers of a row pipeline, in the order of one iteration. */
typedef struct oi_pipeline {
    uint32_t n;
    int64_t count; /* iterations */
    const oi_row_producer *producers;
    const oi_row_schedule *schedules;
    const uint32_t *into; /* 1 + the producer whose line buffer holds its rows; 0: its own; NULL:
                             all have their own */
} oi_pipeline;

/* -- producers.c -- */

void oi_row_producer_find(oi_unit *u, const oi_skernel *k, uint32_t dim, oi_row_producer *out);
/* How many rows exist after that many iterations. */
int64_t oi_row_schedule_made(const oi_row_schedule *t, int64_t turns);
/* The smallest number of rows of producer `of` that its line buffer must hold. */
int64_t oi_pipeline_kept(const oi_pipeline *t, uint32_t of);
/* Whether the last producer may write its result over the tensor, which no producer writes: no row
 * of the tensor is read after it was overwritten. */
bool oi_pipeline_may_overwrite(const oi_pipeline *t, uint32_t tensor);
/* For a partition of the last producer's rows that begins at unit q, the first iteration is q +
 * oi_pipeline_first. For one that ends before unit q, the iteration after the last is q +
 * oi_pipeline_end. */
int64_t oi_pipeline_first(const oi_pipeline *t);
int64_t oi_pipeline_end(const oi_pipeline *t);
/* How many rows of a producer two neighbouring partitions both compute. */
int64_t oi_pipeline_halo(const oi_pipeline *t, uint32_t of);
/* The pipeline of a statement. */
oi_pipeline oi_pipeline_of(oi_unit *u, const oi_stmt *s);
/* NULL if every row exists when it is read, else what is wrong. */
const char *oi_pipeline_check(const oi_unit *u, const oi_pipeline *t);

/* -- pipeline_cost.c -- */

/* Estimated time in ns on the target with all its threads. With a pipeline, line buffers hold
 * kept[i] rows of each result (0: all). With count 0 it is one kernel alone, whose result may
 * overwrite its input. */
double oi_pipeline_time(oi_unit *u, const oi_skernel *const *kernels, const oi_pipeline *t,
                        const int64_t *kept, bool is_in_place);
uint64_t oi_pipeline_buffer_bytes(const oi_unit *u, const oi_pipeline *t, const int64_t *kept);

#endif
