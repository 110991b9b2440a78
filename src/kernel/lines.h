/* lines.h: for kernels that take one line of a tensor at a time (sort, fft): the lines along an
 * axis, dealt out to a fixed number of tasks that each own a part of the scratch. */
#ifndef OI_LINES_H
#define OI_LINES_H

#include "kernel/kernel.h"

#define OI_LINE_TASKS 16 /* at once: bounds the scratch, whatever the number of threads */

typedef struct oi_lines {
    oi_walk w; /* operands as given, without the axis */
    uint32_t n_operands;
    int64_t n, length[OI_WALK_OPERANDS], step[OI_WALK_OPERANDS];
} oi_lines;

/* The operands share all axes but `axis`, along which each has its own length. */
static inline void oi_lines_init(oi_lines *l, const oi_operand *const *operands, uint32_t n,
                                 uint32_t axis)
{
    *l = (oi_lines){.n_operands = n};
    l->w.n_operands = n;
    for (uint32_t d = 0; d < operands[0]->rank; d++) {
        if (d != axis) {
            l->w.dims[l->w.rank] = operands[0]->dims[d];
            for (uint32_t k = 0; k < n; k++)
                l->w.steps[k][l->w.rank] = operands[k]->strides[d];
            l->w.rank++;
        }
        for (uint32_t k = 0; d == axis && k < n; k++) {
            l->length[k] = operands[k]->dims[d];
            l->step[k] = operands[k]->strides[d];
        }
    }
    l->n = oi_walk_count(&l->w, l->w.rank);
}

/* -- wide.c: any float type as f64 -- */

void oi_wide_load(oi_dtype t, const void *data, int64_t at, int64_t step, size_t n, double *out,
                  int64_t out_step);
void oi_wide_store(oi_dtype t, void *data, int64_t at, int64_t step, size_t n, const double *in,
                   int64_t in_step);
/* All elements, row-major. */
void oi_wide_pull(const oi_operand *x, const void *data, int64_t at, double *out);
void oi_wide_push(const oi_operand *x, void *data, int64_t at, const double *in);

static inline size_t oi_lines_tasks(int64_t n_lines)
{
    return n_lines < OI_LINE_TASKS ? (size_t)n_lines : OI_LINE_TASKS;
}

#endif
