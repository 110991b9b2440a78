/* mac.h: the steps of products of bytes with the vectors of Arm's Helium: VMLADAV adds the products
 * of sixteen pairs of bytes to a sum. */
#ifndef OI_BODY_MVE_MAC_H
#define OI_BODY_MVE_MAC_H

#include <arm_mve.h>

/* What a strip holds; how many of them a step takes of each operand. */
typedef int8_t oi_mac_number;

enum { OI_MAC_RUN = 16 };

/* Sums of two filters at two places. */
typedef struct oi_mac_sums {
    int32_t a0, a1, b0, b1; /* place a or b, filter 0 or 1 */
} oi_mac_sums;

/* Runs of 16 * steps numbers of place a times two filters. w: sixteen numbers of the one filter,
 * then of the other. */
static inline __attribute__((always_inline)) oi_mac_sums oi_mac_one(const oi_mac_number *a,
                                                                    const int8_t *w, int32_t steps,
                                                                    oi_mac_sums s)
{
#pragma GCC unroll 8
    for (int32_t i = 0; i < steps; i++, a += 16, w += 32) {
        const int8x16_t x = vldrbq_s8(a);
        s.a0 = vmladavaq_s8(s.a0, x, vldrbq_s8(w));
        s.a1 = vmladavaq_s8(s.a1, x, vldrbq_s8(w + 16));
    }
    return s;
}

/* Two places, and `rows` runs of either, each `skip` numbers after the end of the one before. */
static inline __attribute__((always_inline)) oi_mac_sums oi_mac_two(const oi_mac_number *a,
                                                                    const oi_mac_number *b,
                                                                    const int8_t *w, int32_t steps,
                                                                    int32_t rows, int32_t skip,
                                                                    oi_mac_sums s)
{
    for (int32_t r = 0; r < rows; r++, a += skip, b += skip)
#pragma GCC unroll 8
        for (int32_t i = 0; i < steps; i++, a += 16, b += 16, w += 32) {
            const int8x16_t x = vldrbq_s8(a), y = vldrbq_s8(b);
            const int8x16_t w0 = vldrbq_s8(w), w1 = vldrbq_s8(w + 16);
            s.a0 = vmladavaq_s8(s.a0, x, w0);
            s.a1 = vmladavaq_s8(s.a1, x, w1);
            s.b0 = vmladavaq_s8(s.b0, y, w0);
            s.b1 = vmladavaq_s8(s.b1, y, w1);
        }
    return s;
}

/* n bytes as the strip has them. */
static inline void oi_mac_copy(const int8_t *x, oi_mac_number *out, int32_t n)
{
    for (; n > 0; n -= 16, x += 16, out += 16) {
        const mve_pred16_t some = vctp8q((uint32_t)n);
        vstrbq_p_s8(out, vldrbq_z_s8(x, some), some);
    }
}

/* Interleaves n bytes of a and of b; each pair is `step` numbers after the one before. */
static inline void oi_mac_weave(const int8_t *a, const int8_t *b, oi_mac_number *out, int32_t step,
                                int32_t n)
{
    const uint16x8_t at = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)step);
    for (; n > 0; n -= 8, a += 8, b += 8, out += 8 * step) {
        const mve_pred16_t some = vctp16q((uint32_t)n);
        vstrbq_scatter_offset_p_s16(out, at, vldrbq_z_s16(a, some), some);
        vstrbq_scatter_offset_p_s16(out + 1, at, vldrbq_z_s16(b, some), some);
    }
}

/* Two numbers of 16 bits side by side, as one word. */
static inline uint32_t oi_mac_pair(const int16_t *x)
{
    return (uint16_t)x[0] | (uint32_t)(uint16_t)x[1] << 16;
}

/* Places whose sums are made together: a lane each. */
enum { OI_MAC_PLACES = 4 };

/* One filter at four places, `stride` apart: rows of kw numbers, pitch apart. The words of w: pairs
 * of a row, then what is left of it. */
static inline __attribute__((always_inline)) void oi_mac_taps(const oi_mac_number *x,
                                                              const uint32_t *w, int32_t kh,
                                                              int32_t kw, int32_t pitch,
                                                              int32_t stride, int32_t *sums)
{
    const uint32x4_t at = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)stride);
    int32x4_t sum = vdupq_n_s32(0);
#pragma GCC unroll 8
    for (int32_t r = 0; r < kh; r++, x += pitch, w += (kw + 1) / 2)
#pragma GCC unroll 8
        for (int32_t k = 0; k < kw; k++) {
            const int32_t tap = k % 2 ? (int32_t)w[k / 2] >> 16 : (int16_t)w[k / 2];
            sum = vmlaq_n_s32(
                sum, stride == 1 ? vldrbq_s32(x + k) : vldrbq_gather_offset_s32(x + k, at), tap);
        }
    vst1q_s32(sums, sum);
}

#endif
