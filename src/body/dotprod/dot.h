/* dot.h: sums of products of bytes, four to a lane, in 32 bits at once. */
#ifndef OI_RECIPE_DOT_H
#define OI_RECIPE_DOT_H

#include "body/neon/vec.h"

/* w and x within -128 ... 127 */
static inline oi_vi oi_vi_dot_i8(oi_vi sum, oi_vi w, oi_vi x)
{
    return vdotq_s32(sum, vreinterpretq_s8_s32(w), vreinterpretq_s8_s32(x));
}

static inline oi_vi oi_vi_dot_u4(oi_vi sum, oi_vi w, oi_vi x)
{
    return oi_vi_dot_i8(sum, w, x);
}

/* total += what any number of oi_vi_dot_u4 summed */
static inline oi_vi oi_vi_dot_u4_end(oi_vi total, oi_vi sum)
{
    return vaddq_s32(total, sum);
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

#endif
