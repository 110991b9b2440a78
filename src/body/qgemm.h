/* qgemm.h: fallback for targets without instructions for many rows of x at once. */
#ifndef OI_RECIPE_QGEMM_H
#define OI_RECIPE_QGEMM_H

#include "body/qblock.h"

/* What comes before and after oi_qgemm, for blocks of `group` numbers. */
static inline void oi_qgemm_begin(int64_t group)
{
    (void)group;
}

static inline void oi_qgemm_end(void) {}

/* A tile of w times rows of x; returns for how many the results are in `out`. */
static inline int64_t oi_qgemm(const uint8_t *restrict w, const int8_t *restrict q,
                               const float *restrict d, const float *restrict sums,
                               float *restrict out, const float *restrict bias, int64_t at,
                               int64_t rows, int64_t n, int64_t k, int64_t group, int64_t bits,
                               int64_t scale_size, int64_t has_offset, int64_t zero)
{
    (void)w, (void)q, (void)d, (void)sums, (void)out, (void)bias, (void)at, (void)rows;
    (void)n, (void)k, (void)group, (void)bits, (void)scale_size, (void)has_offset, (void)zero;
    return 0;
}

#endif
