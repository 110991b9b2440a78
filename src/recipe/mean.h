/* mean.h: means of rows of floats, and what is divided by their roots.
 *
 * A lane is a row: OI_VF rows are turned, OI_VF numbers of each at a time, and their sums run in
 * order of the index as the definition's do, to the same bits. Every add waits for the one before,
 * so that many rows take as long as one. */
#ifndef OI_RECIPE_MEAN_H
#define OI_RECIPE_MEAN_H

#include "recipe/gemm.h"

/* The sums of `rows` rows of x, `n` long, at most OI_VF, or of their squares; lanes behind the last
 * row have its sum. */
static inline __attribute__((always_inline)) oi_vf oi_mean_sums(const float *restrict x, int64_t n,
                                                                int64_t rows, int is_square)
{
    const int64_t whole = n / OI_VF * OI_VF;
    oi_vf sum = oi_vf_set(0);
    for (int64_t i = 0; i < whole; i += OI_VF) {
        oi_vf v[OI_VF];
        for (int64_t r = 0; r < OI_VF; r++)
            v[r] = oi_vf_load(x + (r < rows ? r : rows - 1) * n + i);
        oi_vf_transpose(v);
        for (int64_t r = 0; r < OI_VF; r++)
            sum = oi_vf_add(sum, is_square ? oi_vf_mul(v[r], v[r]) : v[r]);
    }
    for (int64_t i = whole; i < n; i++) {
        float column[OI_VF];
        for (int64_t r = 0; r < OI_VF; r++)
            column[r] = x[(r < rows ? r : rows - 1) * n + i];
        const oi_vf v = oi_vf_load(column);
        sum = oi_vf_add(sum, is_square ? oi_vf_mul(v, v) : v);
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
            oi_vf_store(
                out + b * rows + i,
                oi_vf_div(oi_mean_sums(x + (b * rows + i) * n, n, OI_VF, 0), oi_vf_set((float)n)));
        for (; i < last; i++) {
            float sum = 0;
            for (int64_t j = 0; j < n; j++)
                sum = sum + x[(b * rows + i) * n + j];
            out[b * rows + i] = sum / (float)n;
        }
    }
}

/* The rows first ... last - 1 of x, n long, divided by the roots of their mean squares plus eps,
 * then times scale. */
static inline void oi_rmsnorm_rows(const float *restrict x, const float *restrict scale,
                                   float *restrict out, int64_t n, float eps, int64_t first,
                                   int64_t last)
{
    for (int64_t i = first; i < last; i += OI_VF) {
        const int64_t rows = last - i < OI_VF ? last - i : OI_VF;
        float root[OI_VF];
        oi_vf_store(root,
                    oi_vf_add(oi_vf_div(oi_mean_sums(x + i * n, n, rows, 1), oi_vf_set((float)n)),
                              oi_vf_set(eps)));
        for (int64_t r = 0; r < rows; r++) {
            const float times = 1.0f / __builtin_sqrtf(root[r]);
            for (int64_t j = (i + r) * n; j < (i + r + 1) * n; j++) {
                const float v = x[j] * times;
                out[j] = v * scale[j - (i + r) * n];
            }
        }
    }
}

#endif
