/* mean.h: means of rows of floats.
 *
 * A lane is a row: OI_VF rows are transposed, OI_VF elements of each at a time. Their sums run in
 * index order like the definition's, to the same bits. Every addition waits for the previous one,
 * so a vector of rows takes as long as one row. */
#ifndef OI_RECIPE_MEAN_H
#define OI_RECIPE_MEAN_H

#include "body/gemm.h"

/* The sums of OI_VF rows of x, `n` long. */
static inline oi_vf oi_mean_sums(const float *restrict x, int64_t n)
{
    const int64_t whole = n / OI_VF * OI_VF;
    oi_vf sum = oi_vf_set(0);
    for (int64_t i = 0; i < whole; i += OI_VF) {
        oi_vf v[OI_VF];
        for (int64_t r = 0; r < OI_VF; r++)
            v[r] = oi_vf_load(x + r * n + i);
        oi_vf_transpose(v);
        for (int64_t r = 0; r < OI_VF; r++)
            sum = oi_vf_add(sum, v[r]);
    }
    for (int64_t i = whole; i < n; i++) {
        float column[OI_VF];
        for (int64_t r = 0; r < OI_VF; r++)
            column[r] = x[r * n + i];
        sum = oi_vf_add(sum, oi_vf_load(column));
    }
    return sum;
}

/* x (batches, rows, n) becomes out (batches, rows); the rows first ... last - 1 of each batch. */
static inline void oi_mean_rows(const float *restrict x, float *restrict out, int64_t batches,
                                int64_t rows, int64_t n, int64_t first, int64_t last)
{
    for (int64_t b = 0; b < batches; b++) {
        int64_t i = first;
        for (; i + OI_VF <= last; i += OI_VF)
            oi_vf_store(out + b * rows + i,
                        oi_vf_div(oi_mean_sums(x + (b * rows + i) * n, n), oi_vf_set((float)n)));
        for (; i < last; i++) {
            float sum = 0;
            for (int64_t j = 0; j < n; j++)
                sum = sum + x[(b * rows + i) * n + j];
            out[b * rows + i] = sum / (float)n;
        }
    }
}

#endif
