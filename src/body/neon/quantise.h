/* quantise.h: activations in 8 bits. */
#ifndef OI_RECIPE_QUANTISE_H
#define OI_RECIPE_QUANTISE_H

#include "body/neon/vec.h"

/* The largest magnitude of a block as the bits of a float: whatever is not finite is above all. */
static inline uint32_t oi_q8_largest(const float *restrict x, int64_t group)
{
    uint32x4_t top = vdupq_n_u32(0);
    for (int64_t i = 0; i < group; i += 4)
        top = vmaxq_u32(top, vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(x + i))));
    return vmaxvq_u32(top);
}

/* x / d, halves away from zero, within +-127 */
static inline int32x4_t oi_q8_round(const float *restrict x, float32x4_t d)
{
    float32x4_t v = vminq_f32(vdivq_f32(vld1q_f32(x), d), vdupq_n_f32(127.0f));
    return vcvtaq_s32_f32(vmaxq_f32(v, vdupq_n_f32(-127.0f)));
}

/* Eight numbers into bytes; returns their sums in lanes. */
static inline int32x4_t oi_q8_eight(const float *restrict x, float32x4_t d, int8_t *restrict q)
{
    const int32x4_t a = oi_q8_round(x, d), b = oi_q8_round(x + 4, d);
    vst1_s8(q, vmovn_s16(vcombine_s16(vmovn_s32(a), vmovn_s32(b))));
    return vaddq_s32(a, b);
}

/* A block: q = x / d within +-127, where d = max|x| / 127, and the sum of q. Anything not finite
 * makes d NaN and leaves no numbers. */
static inline void oi_q8_block(const float *restrict x, int8_t *restrict q, float *restrict d,
                               float *restrict sum, int64_t group)
{
    const uint32_t top = oi_q8_largest(x, group);
    const uint32_t bits = top >= 0x7f800000u ? 0x7fc00000u : top;
    float by;
    memcpy(&by, &bits, sizeof by);
    by /= 127.0f;
    *sum = 0;
    *d = by;
    if (!(by > 0)) {
        memset(q, 0, (size_t)group);
        return;
    }
    int32x4_t sums = vdupq_n_s32(0);
    for (int64_t i = 0; i < group; i += 8)
        sums = vaddq_s32(sums, oi_q8_eight(x + i, vdupq_n_f32(by), q + i));
    *sum = (float)vaddvq_s32(sums);
}

/* n blocks, one after the other. */
static inline void oi_q8_blocks(const float *restrict x, int8_t *restrict q, float *restrict d,
                                float *restrict sums, int64_t group, int64_t n)
{
    for (int64_t b = 0; b < n; b++)
        oi_q8_block(x + b * group, q + b * group, d + b, sums + b, group);
}

#endif
