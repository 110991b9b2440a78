/* qgemm.h: qlinear for many rows of x with dot products of 4 bytes. */
#ifndef OI_RECIPE_QGEMM_H
#define OI_RECIPE_QGEMM_H

#include "body/avx512vnni/qgemm_rows.h"

static inline void oi_qgemm_begin(int64_t group)
{
    (void)group;
}

static inline void oi_qgemm_end(void) {}

/* A tile of w times rows of x; returns the number of rows whose results are in `out`. */
static inline __attribute__((always_inline)) int64_t oi_qgemm(
    const uint8_t *restrict w, const int8_t *restrict q, const float *restrict d,
    const float *restrict sums, float *restrict out, const float *restrict bias, int64_t at,
    int64_t rows, int64_t n, int64_t k, int64_t group, int64_t bits, int64_t scale_size,
    int64_t has_offset, int64_t zero)
{
    return bits == 4 ? oi_qgemm_rows(w, q, d, sums, out, bias, at, rows, n, k, group, scale_size,
                                     has_offset, zero)
                     : 0;
}

#endif
