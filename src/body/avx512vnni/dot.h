/* dot.h: dot products of 4 bytes per lane, with 32-bit sums. */
#ifndef OI_RECIPE_DOT_H
#define OI_RECIPE_DOT_H

#include "body/avx512/vec.h"

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

/* s += the products of both halves of every byte of w, the lower ones with x, the upper ones with
 * y, these sixteenfold: they stay where they are. */
static inline void oi_vi_dot_halves(oi_vi s[2], oi_vi w, oi_vi x, oi_vi y)
{
    s[0] = _mm512_dpbusd_epi32(s[0], oi_vi_low4(w), x);
    s[1] = _mm512_dpbusd_epi32(s[1], _mm512_and_si512(w, _mm512_set1_epi8((char)0xf0)), y);
}

/* total += what any number of oi_vi_dot_halves summed */
static inline oi_vi oi_vi_dot_halves_end(oi_vi total, const oi_vi s[2])
{
    return _mm512_add_epi32(total, _mm512_add_epi32(s[0], _mm512_srai_epi32(s[1], 4)));
}

/* w within -128 ... 127 times x within +-127: x takes the sign of w. */
static inline oi_vi oi_vi_dot_i8(oi_vi sum, oi_vi w, oi_vi x)
{
    const oi_vi zero = _mm512_setzero_si512();
    const oi_vi signed_x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), zero, x);
    return _mm512_dpbusd_epi32(sum, _mm512_abs_epi8(w), signed_x);
}

/* Pairs of numbers of 16 bits, none of both -32768: sum + their two products. */
static inline oi_vi oi_vi_dot_i16(oi_vi sum, oi_vi w, oi_vi x)
{
    return _mm512_dpwssd_epi32(sum, w, x);
}

#endif
