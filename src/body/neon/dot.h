/* dot.h: sums of products of bytes, four to a lane. */
#ifndef OI_RECIPE_DOT_H
#define OI_RECIPE_DOT_H

#include "body/neon/vec.h"

/* Pairs of products of bytes within +-127 and -128 ... 127: each fits 16 bits. */
static inline int16x8_t oi_vi_pairs(oi_vi w, oi_vi x)
{
    const int8x16_t a = vreinterpretq_s8_s32(w), b = vreinterpretq_s8_s32(x);
    return vpaddq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)), vmull_high_s8(a, b));
}

/* w within 0 ... 15 times x within +-127: eight of these fit the 16 bits they are summed in. */
static inline oi_vi oi_vi_dot_u4(oi_vi sum, oi_vi w, oi_vi x)
{
    return vreinterpretq_s32_s16(vaddq_s16(vreinterpretq_s16_s32(sum), oi_vi_pairs(w, x)));
}

/* total += what up to eight oi_vi_dot_u4 summed */
static inline oi_vi oi_vi_dot_u4_end(oi_vi total, oi_vi sum)
{
    return vpadalq_s16(total, vreinterpretq_s16_s32(sum));
}

/* s += the products of both halves of every byte of w, the lower ones with x, the upper ones with
 * y. What both vectors of s sum is known at the end. */
static inline void oi_vi_dot_halves(oi_vi s[2], oi_vi w, oi_vi x, oi_vi y)
{
    s[0] = oi_vi_dot_u4(s[0], oi_vi_low4(w), x);
    s[0] = oi_vi_dot_u4(s[0], oi_vi_high4(w), y);
}

/* total += what up to four oi_vi_dot_halves summed */
static inline oi_vi oi_vi_dot_halves_end(oi_vi total, const oi_vi s[2])
{
    return oi_vi_dot_u4_end(total, s[0]);
}

/* w within -128 ... 127 times x within +-127: a pair of products fits 16 bits. */
static inline oi_vi oi_vi_dot_i8(oi_vi sum, oi_vi w, oi_vi x)
{
    return vpadalq_s16(sum, oi_vi_pairs(w, x));
}

#endif
