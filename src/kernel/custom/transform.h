/* transform.h: what the Fourier transforms of this folder share: how the simulator runs them.
 *
 * Complex numbers are a last axis of 2, real ones of 1. f64 is computed in f64, every other type in
 * f32, by the functions that emitted programs call; so both have the same bits. */
#ifndef OI_TRANSFORM_H
#define OI_TRANSFORM_H

#include "kernel/custom.h"
#include "kernel/fft_f32.h"
#include "kernel/fft_f64.h"

#define OI_TRANSFORM_LENGTH ((int64_t)1 << 40) /* the longest */

typedef struct oi_transform oi_transform;

struct oi_transform {
    const oi_kernel_query *q;
    int64_t n;       /* the length */
    int64_t n_parts; /* lines or frames, which tasks share */
    int64_t extra;   /* elements that the function needs beside oi_fft_room */
    bool has_window;
    /* Computes parts `begin` to `end` from x and the window to y, all dense and of the type that is
     * computed in. */
    void (*part)(const oi_transform *j, const void *x, const void *window, void *y, void *work,
                 int64_t begin, int64_t end);
};

/* transform.c. The choice of a transform: its kernel, and the scratch. False: too long. */
bool oi_transform_choose(const oi_transform *j, oi_kernel_run *run, oi_choice *c);
bool oi_transform_run(const oi_transform *j, const oi_kernel_io *io);
oi_dtype oi_transform_type(const oi_kernel_query *q); /* what is computed in */
/* The window of frames in an emitted program: an input, or ones. */
uint32_t oi_transform_window_lower(oi_steps *s, int64_t n);
/* The tensor of that type for output 0; oi_steps_narrow converts it. */
uint32_t oi_transform_result(oi_steps *s);
uint32_t oi_transform_work(oi_steps *s, int64_t n, int64_t extra);

#endif
