/* dot.h: sums of products of bytes, four to a lane, in 32 bits at once. */
#ifndef OI_RECIPE_DOT_H
#define OI_RECIPE_DOT_H

#include "recipe/avx512/vec.h"

/* w within 0 ... 255 times x within -128 ... 127 */
static inline oi_vi oi_vi_dot_u4(oi_vi sum, oi_vi w, oi_vi x)
{
    return _mm512_dpbusd_epi32(sum, w, x);
}

/* total += what any number of oi_vi_dot_u4 summed */
static inline oi_vi oi_vi_dot_u4_end(oi_vi total, oi_vi sum)
{
    return _mm512_add_epi32(total, sum);
}

/* w within -128 ... 127 times x within +-127: x takes the sign of w. */
static inline oi_vi oi_vi_dot_i8(oi_vi sum, oi_vi w, oi_vi x)
{
    const oi_vi zero = _mm512_setzero_si512();
    const oi_vi signed_x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), zero, x);
    return _mm512_dpbusd_epi32(sum, _mm512_abs_epi8(w), signed_x);
}

#endif
