/* quantise.h: numbers in 8 bits, as avx2/quantise.h has them. */
#ifndef OI_RECIPE_QUANTISE_H
#define OI_RECIPE_QUANTISE_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/* Those of 16 lanes that hold numbers of a block of which n are left. */
static inline __mmask16 oi_q8_lanes(int64_t n)
{
    return n < 16 ? (__mmask16)((1u << n) - 1) : (__mmask16)0xffff;
}

/* The largest magnitude of a block as the bits of a float: whatever is not finite is above all. */
static inline uint32_t oi_q8_largest(const float *restrict x, int64_t group)
{
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    __m512i top = _mm512_setzero_si512();
    for (int64_t i = 0; i < group; i += 16)
        top = _mm512_max_epi32(top, _mm512_and_si512(_mm512_castps_si512(_mm512_maskz_loadu_ps(
                                                         oi_q8_lanes(group - i), x + i)),
                                                     magnitude));
    __m256i t = _mm256_max_epi32(_mm512_castsi512_si256(top), _mm512_extracti64x4_epi64(top, 1));
    __m128i s = _mm_max_epi32(_mm256_castsi256_si128(t), _mm256_extracti128_si256(t, 1));
    s = _mm_max_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_max_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(s);
}

/* x / d rounded once, from 1 / d and two corrections: sooner there than by dividing. Where d is too
 * small for that, it is divided, and no more than +-127. */
static inline __m512 oi_q8_quotient(__m512 x, __m512 d, __m512 inverse, int is_small)
{
    if (is_small)
        return _mm512_max_ps(_mm512_min_ps(_mm512_div_ps(x, d), _mm512_set1_ps(127.0f)),
                             _mm512_set1_ps(-127.0f));
    __m512 v = _mm512_mul_ps(x, inverse);
    v = _mm512_fmadd_ps(_mm512_fnmadd_ps(v, d, x), inverse, v);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(v, d, x), inverse, v);
}

/* A block: q = x / d within +-127, where d = max|x| / 127, halves away from zero, and the sum of q.
 * Anything not finite makes d NaN and leaves no numbers. */
static inline void oi_q8_block(const float *restrict x, int8_t *restrict q, float *restrict d,
                               float *restrict sum, int64_t group)
{
    const uint32_t top = oi_q8_largest(x, group);
    const uint32_t not_a_number = 0x7fc00000u;
    float by;
    memcpy(&by, &top, sizeof by);
    by /= 127.0f;
    *sum = 0;
    memcpy(d, top >= 0x7f800000u ? (const void *)&not_a_number : &by, sizeof *d);
    if (!(*d > 0)) {
        memset(q, 0, (size_t)group);
        return;
    }
    const __m512 each = _mm512_set1_ps(by), inverse = _mm512_set1_ps(1.0f / by);
    const __m512 sign = _mm512_set1_ps(-0.0f), half = _mm512_set1_ps(0x1.fffffep-2f);
    __m512i sums = _mm512_setzero_si512();
    for (int64_t i = 0; i < group; i += 16) {
        const __mmask16 lanes = oi_q8_lanes(group - i);
        const __m512 v =
            oi_q8_quotient(_mm512_maskz_loadu_ps(lanes, x + i), each, inverse, by < 0x1p-100f);
        /* just less than a half is added and the rest cut */
        const __m512i n =
            _mm512_cvttps_epi32(_mm512_add_ps(v, _mm512_or_ps(_mm512_and_ps(v, sign), half)));
        const __m128i bytes = _mm512_cvtepi32_epi8(n);
        if (group - i < 16) /* 8: blocks are multiples of that */
            _mm_storel_epi64((__m128i *)(void *)(q + i), bytes);
        else
            _mm_storeu_si128((__m128i *)(void *)(q + i), bytes);
        sums = _mm512_add_epi32(sums, n);
    }
    __m256i t = _mm256_add_epi32(_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64(sums, 1));
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(t), _mm256_extracti128_si256(t, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    *sum = (float)_mm_cvtsi128_si32(s);
}

/* -- 16 blocks of 32 at once: what goes across lanes and what divides is done for all of them -- */

/* The largest lanes of four vectors, or their sums, side by side in every quarter of the result. */
static inline __m512i oi_q8_across(__m512i a, __m512i b, int is_sum)
{
    return is_sum ? _mm512_add_epi32(a, b) : _mm512_max_epi32(a, b);
}

static inline __m512i oi_q8_of_four(const __m512i v[4], int is_sum)
{
    const __m512i a =
        oi_q8_across(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]), is_sum);
    const __m512i b =
        oi_q8_across(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]), is_sum);
    __m512i c = oi_q8_across(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b), is_sum);
    c = oi_q8_across(c, _mm512_shuffle_i64x2(c, c, 0x4e), is_sum);
    return oi_q8_across(c, _mm512_shuffle_i64x2(c, c, 0xb1), is_sum);
}

/* The largest magnitude of each. */
static inline __m512 oi_q8_tops(const float *restrict x)
{
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    __m512i top = _mm512_setzero_si512();
    for (int i = 0; i < 16; i += 4, x += 128) {
        __m512i v[4];
        for (int j = 0; j < 4; j++)
            v[j] =
                _mm512_max_epi32(_mm512_and_si512(_mm512_loadu_si512(x + 32 * j), magnitude),
                                 _mm512_and_si512(_mm512_loadu_si512(x + 32 * j + 16), magnitude));
        top = _mm512_mask_mov_epi32(top, (__mmask16)(15u << i), oi_q8_of_four(v, 0));
    }
    return _mm512_castsi512_ps(top);
}

/* 16 numbers; just less than a half is added and the rest cut. */
static inline __m512i oi_q8_round(const float *restrict x, __m512 d, __m512 inverse)
{
    const __m512 sign = _mm512_set1_ps(-0.0f), half = _mm512_set1_ps(0x1.fffffep-2f);
    const __m512 v = oi_q8_quotient(_mm512_loadu_ps(x), d, inverse, 0);
    return _mm512_cvttps_epi32(_mm512_add_ps(v, _mm512_or_ps(_mm512_and_ps(v, sign), half)));
}

/* What oi_q8_block makes of 16 blocks; 0: one of them is not for this, nothing is made. */
static inline int oi_q8_sixteen(const float *restrict x, int8_t *restrict q, float *restrict d,
                                float *restrict sums)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512 by = _mm512_div_ps(oi_q8_tops(x), _mm512_set1_ps(127.0f));
    float inverse[16];
    if ((_mm512_cmp_ps_mask(by, _mm512_set1_ps(0x1p-100f), _CMP_GE_OQ) &
         _mm512_cmp_ps_mask(by, _mm512_set1_ps(0x1p+126f), _CMP_LE_OQ)) != 0xffff)
        return 0;
    _mm512_storeu_ps(d, by);
    _mm512_storeu_ps(inverse, _mm512_div_ps(_mm512_set1_ps(1.0f), by));
    for (int i = 0; i < 16; i += 4) {
        __m512i sum[4];
        for (int j = 0; j < 4; j += 2, x += 64, q += 64) {
            const __m512 d0 = _mm512_set1_ps(d[i + j]), d1 = _mm512_set1_ps(d[i + j + 1]);
            const __m512 by0 = _mm512_set1_ps(inverse[i + j]);
            const __m512 by1 = _mm512_set1_ps(inverse[i + j + 1]);
            const __m512i a = oi_q8_round(x, d0, by0), b = oi_q8_round(x + 16, d0, by0);
            const __m512i e = oi_q8_round(x + 32, d1, by1), f = oi_q8_round(x + 48, d1, by1);
            const __m512i bytes = /* four of each vector side by side */
                _mm512_packs_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(e, f));
            _mm512_storeu_si512(q, _mm512_permutexvar_epi32(order, bytes));
            sum[j] = _mm512_add_epi32(a, b);
            sum[j + 1] = _mm512_add_epi32(e, f);
        }
        _mm_storeu_ps(sums + i, _mm_cvtepi32_ps(_mm512_castsi512_si128(oi_q8_of_four(sum, 1))));
    }
    return 1;
}

/* n blocks, one after the other. */
static inline void oi_q8_blocks(const float *restrict x, int8_t *restrict q, float *restrict d,
                                float *restrict sums, int64_t group, int64_t n)
{
    for (int64_t b = 0; b < n; b++)
        if (group == 32 && b + 16 <= n && oi_q8_sixteen(x + 32 * b, q + 32 * b, d + b, sums + b))
            b += 15;
        else
            oi_q8_block(x + b * group, q + b * group, d + b, sums + b, group);
}

#endif
