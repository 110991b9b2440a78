/* qgemm_rows.h: qlinear for many rows of x and 4-bit w: a block of w is unpacked once for eight
 * rows. */
#ifndef OI_RECIPE_QGEMM_ROWS_H
#define OI_RECIPE_QGEMM_ROWS_H

#include "body/qblock.h"

/* Eight rows of x, k apart, times a block of w; s[r] += row r's sums. */
static inline __attribute__((always_inline)) void oi_q4_dot8(const uint8_t *restrict w,
                                                             const int8_t *restrict q, int64_t k,
                                                             int64_t group, oi_vi s[8])
{
    for (int64_t j = 0; j < group; j += 8) {
        const oi_vi v = oi_vi_load(w + 8 * j), low = oi_vi_low4(v), high = oi_vi_high4(v);
        for (int64_t r = 0; r < 8; r++)
            s[r] = oi_vi_dot_u4(s[r], low, oi_vi_four(q + r * k + j));
        for (int64_t r = 0; r < 8; r++)
            s[r] = oi_vi_dot_u4(s[r], high, oi_vi_four(q + r * k + j + 4));
    }
}

/* oi_q_scaled for f16 scales and a sum that began with OI_Q_BEGIN; `begin` is that times scale,
 * which is exact: so is what the difference with it leaves. */
static inline __attribute__((always_inline)) oi_vf oi_q_scaled_half(
    oi_vf acc, oi_vi sum, oi_vf scale, oi_vf begin, oi_vf offset, float d, float sum_of_q,
    int64_t zero, int64_t has_offset, int64_t is_short)
{
    const oi_vf q = oi_vf_set(sum_of_q);
    if (zero)
        sum = oi_vi_add(sum, oi_vi_set((int32_t)zero * (int32_t)sum_of_q));
    oi_vf v = _mm512_fmsub_ps(_mm512_castsi512_ps(sum), scale, begin);
    if (has_offset)
        v = is_short ? oi_vf_fma(offset, q, v) : oi_vf_add(v, oi_vf_mul(offset, q));
    return oi_vf_add(acc, oi_vf_mul(v, oi_vf_set(d)));
}

/* A tile of w times eight rows of x; acc[r] is row r's. Prefetches `later`. */
static inline __attribute__((always_inline)) void oi_q_tile8(
    const uint8_t *restrict w, const uint8_t *later, const int8_t *restrict q,
    const float *restrict d, const float *restrict sums, int64_t k, int64_t group,
    int64_t scale_size, int64_t has_offset, int64_t zero, oi_vf acc[8])
{
    const int64_t of_w = group / 2 * 16, of_scales = scale_size * 16, n = k / group;
    const int64_t size = of_w + of_scales * (1 + has_offset);
    const int64_t is_short = oi_q_is_short(scale_size, group);
    for (int64_t r = 0; r < 8; r++)
        acc[r] = oi_vf_set(0);
    for (int64_t b = 0; b < n; b++) {
        const uint8_t *p = w + b * size;
        const oi_vf scale = oi_q_scales(p + of_w, scale_size);
        const oi_vf begin = oi_vf_mul(scale, oi_vf_set(0x1.8p23f));
        const oi_vf more = has_offset ? oi_q_scales(p + of_w + of_scales, scale_size) : scale;
        oi_vi s[8];
        for (int64_t i = 0; later && i < size; i += 64)
            oi_prefetch(later + b * size + i);
        for (int64_t r = 0; r < 8; r++)
            s[r] = oi_vi_set(scale_size == 2 ? OI_Q_BEGIN : 0);
        oi_q4_dot8(p, q + b * group, k, group, s);
        for (int64_t r = 0; r < 8; r++)
            acc[r] = scale_size == 2
                         ? oi_q_scaled_half(acc[r], s[r], scale, begin, more, d[r * n + b],
                                            sums[r * n + b], zero, has_offset, is_short)
                         : oi_q_scaled(acc[r], s[r], scale, more, d[r * n + b], sums[r * n + b],
                                       zero, has_offset);
    }
}

/* A tile of w times rows of x; returns the number of rows whose results are in `out`. */
static inline __attribute__((always_inline)) int64_t oi_qgemm_rows(
    const uint8_t *restrict w, const int8_t *restrict q, const float *restrict d,
    const float *restrict sums, float *restrict out, const float *restrict bias, int64_t at,
    int64_t rows, int64_t n, int64_t k, int64_t group, int64_t scale_size, int64_t has_offset,
    int64_t zero)
{
    const int64_t blocks = k / group, all = rows / 8 * 8;
    const uint8_t *later = w + blocks * (group / 2 + scale_size * (1 + has_offset)) * 16;
    if (group > 1024) /* sums would not fit 22 bits */
        return 0;
    for (int64_t i = 0; i < all; i += 8) {
        oi_vf acc[8];
        oi_q_tile8(w, i == 0 ? later : NULL, q + i * k, d + i * blocks, sums + i * blocks, k, group,
                   scale_size, has_offset, zero, acc);
        for (int64_t r = 0; r < 8; r++)
            oi_q_put(out + (i + r) * n, acc[r], bias, at, n);
    }
    return all;
}

#endif
