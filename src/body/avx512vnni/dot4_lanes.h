/* dot4_lanes.h: moves groups of four channels or columns into lanes, and converts sums to bytes. */
#ifndef OI_RECIPE_DOT4_LANES_H
#define OI_RECIPE_DOT4_LANES_H

#include "body/avx512vnni/dot.h"

/* A mask of 64 places: bits from ... to - 1 are set. */
static inline __attribute__((always_inline)) __mmask64 oi_vi_there(int64_t from, int64_t to)
{
    const __mmask64 all = ~(__mmask64)0;
    from = from < 0 ? 0 : from;
    to = to < 64 ? to : 64;
    return from < to ? all << from & all >> (64 - to) : 0;
}

/* 16 bytes, or those of a mask. */
static inline __attribute__((always_inline)) __m128i oi_vi_some(const void *p, __mmask64 mask)
{
    return mask == 0xffff ? _mm_loadu_si128((const __m128i *)p)
                          : _mm512_castsi512_si128(_mm512_maskz_loadu_epi8(mask, p));
}

/* 16 places of four channels; places outside from ... to - 1 are `fill`. A lane has the four
 * channels of a place. Signed bytes become unsigned by adding 128. */
static inline __attribute__((always_inline)) oi_vi oi_vi_dot4(const char *a, int64_t second,
                                                              int64_t third, int64_t last,
                                                              int64_t from, int64_t to,
                                                              int32_t fill, int64_t is_unsigned)
{
    const __mmask64 mask = from <= 0 && to >= 16 ? 0xffff : oi_vi_there(from, to) & 0xffff;
    const __m512i quarters = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const __m512i bytes =
        _mm512_broadcast_i32x4(_mm_set_epi8(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0));
    __m512i v = _mm512_castsi128_si512(oi_vi_some(a, mask));
    v = _mm512_inserti32x4(v, oi_vi_some(a + second, mask), 1);
    v = _mm512_inserti32x4(v, oi_vi_some(a + third, mask), 2);
    v = _mm512_inserti32x4(v, oi_vi_some(a + last, mask), 3);
    v = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(quarters, v), bytes);
    v = is_unsigned ? v : _mm512_xor_si512(v, _mm512_set1_epi8((char)-128));
    return _mm512_mask_blend_epi32((__mmask16)mask, oi_vi_set(fill), v);
}

/* 64 bytes; those outside from ... to - 1 are `fill`. Signed bytes become unsigned by adding 128.
 */
static inline __attribute__((always_inline)) oi_vi oi_vi_padded(const char *p, int64_t from,
                                                                int64_t to, int32_t fill,
                                                                int64_t is_unsigned)
{
    const int32_t flip = is_unsigned ? 0 : 128;
    const oi_vi v =
        _mm512_mask_loadu_epi8(_mm512_set1_epi8((char)(fill ^ flip)), oi_vi_there(from, to), p);
    return _mm512_xor_si512(v, _mm512_set1_epi8((char)flip));
}

/* 16 places, one to four bytes apart, of the 64 at p: a lane has the four bytes from its place on.
 */
static inline __attribute__((always_inline)) oi_vi oi_vi_along(const void *p, int64_t stride)
{
    const int s = (int)stride;
    const __m512i parts =
        _mm512_add_epi32(_mm512_set_epi32(3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0),
                         _mm512_set_epi32(3 * s, 3 * s, 3 * s, 3 * s, 2 * s, 2 * s, 2 * s, 2 * s, s,
                                          s, s, s, 0, 0, 0, 0)); /* 16 bytes for four places */
    const __m128i bytes =
        _mm_add_epi8(_mm_set_epi8(3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0),
                     _mm_set_epi8((char)(3 * s), (char)(3 * s), (char)(3 * s), (char)(3 * s),
                                  (char)(2 * s), (char)(2 * s), (char)(2 * s), (char)(2 * s),
                                  (char)s, (char)s, (char)s, (char)s, 0, 0, 0, 0));
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(parts, oi_vi_load(p)),
                               _mm512_broadcast_i32x4(bytes));
}

/* 16 sums plus `add`, scaled by a factor within +-1 and rounded to the nearest integer. */
static inline __attribute__((always_inline)) oi_vi oi_vi_scaled(const int32_t *sums, oi_vi add,
                                                                oi_vf factor)
{
    return _mm512_cvtps_epi32(oi_vf_mul(oi_vf_of_vi(oi_vi_add(oi_vi_load(sums), add)), factor));
}

/* Converts n such numbers plus `zero` to bytes. May read beyond the sums. */
static inline __attribute__((always_inline)) void oi_vi_bytes(const int32_t *sums, int64_t n,
                                                              int32_t add, float factor,
                                                              int32_t zero, int64_t is_unsigned,
                                                              void *out)
{
    const __m512i quarters = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const oi_vi more = oi_vi_set(add), z = _mm512_set1_epi16((short)zero);
    const oi_vf by = oi_vf_set(factor);
    for (int64_t i = 0; i < n; i += 64) {
        const oi_vi a = _mm512_packs_epi32(oi_vi_scaled(sums + i, more, by),
                                           oi_vi_scaled(sums + i + 16, more, by));
        const oi_vi b = _mm512_packs_epi32(oi_vi_scaled(sums + i + 32, more, by),
                                           oi_vi_scaled(sums + i + 48, more, by));
        const oi_vi c = _mm512_adds_epi16(a, z), d = _mm512_adds_epi16(b, z);
        const oi_vi v = _mm512_permutexvar_epi32(quarters, is_unsigned ? _mm512_packus_epi16(c, d)
                                                                       : _mm512_packs_epi16(c, d));
        if (n - i >= 64)
            oi_vi_store((char *)out + i, v);
        else
            _mm512_mask_storeu_epi8((char *)out + i, ((__mmask64)1 << (n - i)) - 1, v);
    }
}

/* n sums of a row of columns, up to 16, each scaled by its own factor within +-1, become bytes. */
static inline __attribute__((always_inline)) void oi_vi_byte_row(const int32_t *sums, int64_t n,
                                                                 const float *factors, int32_t zero,
                                                                 int64_t is_unsigned, void *out)
{
    const __mmask64 there = oi_vi_there(0, n);
    const __m512 by = _mm512_maskz_loadu_ps((__mmask16)there, factors);
    const oi_vi v = oi_vi_add(_mm512_cvtps_epi32(oi_vf_mul(oi_vf_of_vi(oi_vi_load(sums)), by)),
                              oi_vi_set(zero));
    const oi_vi low = _mm512_max_epi32(v, oi_vi_set(is_unsigned ? 0 : -128));
    const oi_vi byte = _mm512_min_epi32(low, oi_vi_set(is_unsigned ? 255 : 127));
    const __m512i wide = _mm512_castsi128_si512(_mm512_cvtepi32_epi8(byte));
    _mm512_mask_storeu_epi8(out, there & 0xffff, wide);
}

#endif
