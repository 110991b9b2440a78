/* qhalf.h: qlinear where x and scale * w + offset are rounded to bf16 (act="bf16").
 *
 * Products of such numbers are exact, and are summed in steps of 32 along k: the even ones of a
 * step, the odd ones, both together, then the steps: the result is the simulator's, bit by bit.
 * Weights lie as qlinear.h has them; those of a step become floats once for many rows of x. */
#ifndef OI_RECIPE_QHALF_H
#define OI_RECIPE_QHALF_H

#include "body/qblock.h"

enum { OI_QH_STEP = 32, OI_QH_ROWS = 32 }; /* rows of x at a time: their sums stay near */

/* Rows of x, rounded. */
static inline void oi_qh_rows(const float *restrict x, float *restrict to, int64_t k, int64_t first,
                              int64_t last)
{
    int64_t i = first * k;
    for (; i + OI_VF <= last * k; i += OI_VF)
        oi_vf_store(to + i, oi_vf_near_bf16(oi_vf_load(x + i)));
    for (; i < last * k; i++)
        to[i] = oi_f32_of_bf16(oi_near_bf16_f32(x[i]));
}

/* The weights `from` to `to` along k of a tile, rounded, a vector each. */
static inline __attribute__((always_inline)) void oi_qh_step(const uint8_t *restrict w,
                                                             int64_t from, int64_t to,
                                                             int64_t group, int64_t bits,
                                                             int64_t scale_size, int64_t has_offset,
                                                             int64_t zero, oi_vf *restrict real)
{
    const int64_t of_w = group * bits / 8 * OI_VF, of_scales = scale_size * OI_VF;
    const int64_t size = of_w + of_scales * (1 + has_offset);
    for (int64_t i = from; i < to; i += 8) {
        const uint8_t *block = w + i / group * size;
        const oi_vf scale = oi_q_scales(block + of_w, scale_size);
        const oi_vf offset = has_offset ? oi_q_scales(block + of_w + of_scales, scale_size) : scale;
        for (int e = 0; e < 8; e++) {
            const int64_t at = (i % group + e / (32 / bits) * (32 / bits)) * bits / 8 * OI_VF;
            const int shift = 8 * (e % 4) + (bits == 4 && e > 3 ? 4 : 0);
            real[i - from + e] = oi_vf_near_bf16(
                oi_q_real(oi_vi_load(block + at), shift, scale, offset, has_offset, bits, zero));
        }
    }
}

/* A step of one or four rows of x, k apart, is added to their sums. */
static inline __attribute__((always_inline)) void oi_qh_add(const oi_vf *restrict real, int64_t n,
                                                            const float *restrict x, int64_t k,
                                                            int64_t rows, float *restrict sums)
{
    oi_vf even[4], odd[4];
    for (int64_t r = 0; r < rows; r++)
        even[r] = odd[r] = oi_vf_set(0);
    for (int64_t i = 0; i < n; i += 2)
        for (int64_t r = 0; r < rows; r++) {
            even[r] = oi_vf_fma(oi_vf_set(x[r * k + i]), real[i], even[r]);
            odd[r] = oi_vf_fma(oi_vf_set(x[r * k + i + 1]), real[i + 1], odd[r]);
        }
    for (int64_t r = 0; r < rows; r++)
        oi_vf_store(sums + r * OI_VF,
                    oi_vf_add(oi_vf_load(sums + r * OI_VF), oi_vf_add(even[r], odd[r])));
}

/* A tile times rows of x, k apart; sums has a vector for each. */
static inline __attribute__((always_inline)) void oi_qh_tile(
    const uint8_t *restrict w, const float *restrict x, float *restrict sums, int64_t rows,
    int64_t k, int64_t group, int64_t bits, int64_t scale_size, int64_t has_offset, int64_t zero)
{
    for (int64_t r = 0; r < rows; r++)
        oi_vf_store(sums + r * OI_VF, oi_vf_set(0));
    for (int64_t i = 0; i < k; i += OI_QH_STEP) {
        const int64_t n = k - i < OI_QH_STEP ? k - i : OI_QH_STEP;
        oi_vf real[OI_QH_STEP];
        int64_t r = 0;
        oi_qh_step(w, i, i + n, group, bits, scale_size, has_offset, zero, real);
        for (; r + 4 <= rows; r += 4)
            oi_qh_add(real, n, x + r * k + i, k, 4, sums + r * OI_VF);
        for (; r < rows; r++)
            oi_qh_add(real, n, x + r * k + i, k, 1, sums + r * OI_VF);
    }
}

/* out (m, n) = x (m, k), which oi_qh_rows has rounded, times w; the results of rows first ... last
 * - 1 of w. */
static inline __attribute__((always_inline)) void oi_qlinear_bf16(
    const float *restrict x, const uint8_t *restrict w, float *restrict out, int64_t m, int64_t n,
    int64_t k, int64_t group, int64_t bits, int64_t scale_size, int64_t has_offset,
    int64_t has_bias, int64_t zero, int64_t first, int64_t last)
{
    const int64_t tile = k / group * (group * bits / 8 + scale_size * (1 + has_offset)) * OI_VF;
    const float *bias = (const float *)(const void *)(w + (n + OI_VF - 1) / OI_VF * tile);
    float sums[OI_QH_ROWS * OI_VF];
    for (int64_t r = 0; r < m; r += OI_QH_ROWS) {
        const int64_t rows = m - r < OI_QH_ROWS ? m - r : OI_QH_ROWS;
        for (int64_t at = first; at < last; at += OI_VF) {
            oi_qh_tile(w + at / OI_VF * tile, x + r * k, sums, rows, k, group, bits, scale_size,
                       has_offset, zero);
            for (int64_t i = 0; i < rows; i++)
                oi_q_put(out + (r + i) * n, oi_vf_load(sums + i * OI_VF), has_bias ? bias : NULL,
                         at, n);
        }
    }
}

#endif
