/* quantise.h: activations in 8 bits. */
#ifndef OI_RECIPE_QUANTISE_H
#define OI_RECIPE_QUANTISE_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/* The largest magnitude of a block as the bits of a float: whatever is not finite is above all. */
static inline uint32_t oi_q8_largest(const float *restrict x, int64_t group)
{
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i top = _mm256_setzero_si256();
    for (int64_t i = 0; i < group; i += 8)
        top = _mm256_max_epi32(
            top, _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + i)), magnitude));
    __m128i t = _mm_max_epi32(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
    t = _mm_max_epi32(t, _mm_shuffle_epi32(t, 0x4e));
    t = _mm_max_epi32(t, _mm_shuffle_epi32(t, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(t);
}

/* x / d, halves away from zero, within +-127: just less than a half is added and the rest cut. */
static inline __m256i oi_q8_round(const float *restrict x, __m256 d)
{
    __m256 v = _mm256_div_ps(_mm256_loadu_ps(x), d);
    __m256 sign = _mm256_and_ps(v, _mm256_set1_ps(-0.0f));
    v = _mm256_add_ps(v, _mm256_or_ps(sign, _mm256_set1_ps(0x1.fffffep-2f)));
    v = _mm256_min_ps(v, _mm256_set1_ps(127.0f));
    v = _mm256_max_ps(v, _mm256_set1_ps(-127.0f));
    return _mm256_cvttps_epi32(v);
}

/* Eight numbers into bytes; returns their sums in lanes. */
static inline __m256i oi_q8_eight(const float *restrict x, __m256 d, int8_t *restrict q)
{
    __m256i v = oi_q8_round(x, d);
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64((__m128i *)(void *)q, _mm_packs_epi16(words, words));
    return v;
}

/* A block: q = x / d within +-127, where d = max|x| / 127, and the sum of q. Anything not finite
 * makes d NaN and leaves no numbers. */
static inline void oi_q8_block(const float *restrict x, int8_t *restrict q, float *restrict d,
                               float *restrict sum, int64_t group)
{
    const uint32_t top = oi_q8_largest(x, group);
    const __m256i not_a_number = _mm256_set1_epi32(0x7fc00000);
    float by;
    memcpy(&by, &top, sizeof by);
    by /= 127.0f;
    *sum = 0;
    *d = top >= 0x7f800000u ? _mm256_cvtss_f32(_mm256_castsi256_ps(not_a_number)) : by;
    if (!(*d > 0)) {
        memset(q, 0, (size_t)group);
        return;
    }
    __m256i sums = _mm256_setzero_si256();
    for (int64_t i = 0; i < group; i += 8)
        sums = _mm256_add_epi32(sums, oi_q8_eight(x + i, _mm256_set1_ps(by), q + i));
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    *sum = (float)_mm_cvtsi128_si32(s);
}

/* n blocks, one after the other. */
static inline void oi_q8_blocks(const float *restrict x, int8_t *restrict q, float *restrict d,
                                float *restrict sums, int64_t group, int64_t n)
{
    for (int64_t b = 0; b < n; b++)
        oi_q8_block(x + b * group, q + b * group, d + b, sums + b, group);
}

#endif
