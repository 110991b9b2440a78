/* transform.h: what the Fourier transforms of this folder share: their job, its scratch, windows.
 *
 * Complex numbers are a last axis of 2, real ones of 1. A line is computed in f64 and rounded once.
 */
#ifndef OI_TRANSFORM_H
#define OI_TRANSFORM_H

#include "kernel/custom.h"
#include "kernel/custom/fft.h"
#include "kernel/lines.h"

#define OI_TRANSFORM_LENGTH ((int64_t)1 << 40) /* the longest */

typedef struct oi_transform {
    const oi_kernel_query *q;
    const oi_kernel_io *io;
    oi_fft fft;
    oi_lines lines; /* x, out; without the axis of 2 */
    bool inverse, onesided;
    int64_t n, x_im,
        out_im; /* length; from the real to the imaginary part, 0 where there is none */
    size_t n_tasks, line_bytes, work_bytes;
    char *work; /* per task: a line, then what the transform needs */
    /* frames */
    int64_t frames, hop;
    double *window; /* (n) */
} oi_transform;

/* transform.c. Scratch: tables, the window, then every task's own. With a choice, says how much;
 * when it runs, lays it out. False: too long. */
bool oi_transform_scratch(oi_transform *j, oi_choice *c);
/* The window of frames: an input, or ones. */
void oi_transform_window(oi_transform *j, size_t input);
uint32_t oi_transform_window_lower(oi_steps *s, int64_t n);

static inline int64_t oi_start_of(const int64_t *at, size_t i)
{
    return at ? at[i] : 0;
}

#endif
