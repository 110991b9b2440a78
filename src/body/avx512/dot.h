/* dot.h: sums of products of bytes, four to a lane. */
#ifndef OI_RECIPE_DOT_H
#define OI_RECIPE_DOT_H

#include "body/avx512/vec.h"

/* w within 0 ... 15 times x within +-127: eight of these fit the 16 bits they are summed in. */
static inline oi_vi oi_vi_dot_u4(oi_vi sum, oi_vi w, oi_vi x)
{
    return _mm512_add_epi16(sum, _mm512_maddubs_epi16(w, x));
}

/* total += what up to eight oi_vi_dot_u4 summed */
static inline oi_vi oi_vi_dot_u4_end(oi_vi total, oi_vi sum)
{
    return _mm512_add_epi32(total, _mm512_madd_epi16(sum, _mm512_set1_epi16(1)));
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

/* x with the sign of w, where w is below 0 */
static inline oi_vi oi_vi_sign(oi_vi x, oi_vi w)
{
    return _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
}

/* w within -128 ... 127 times x within +-127: a pair of products fits 16 bits. */
static inline oi_vi oi_vi_dot_i8(oi_vi sum, oi_vi w, oi_vi x)
{
    oi_vi pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(w), oi_vi_sign(x, w));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}

/* Pairs of numbers of 16 bits, none of both -32768: sum + their two products. */
static inline oi_vi oi_vi_dot_i16(oi_vi sum, oi_vi w, oi_vi x)
{
    return _mm512_add_epi32(sum, _mm512_madd_epi16(w, x));
}

#endif
