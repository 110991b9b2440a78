/* runs.h: channels of bytes become numbers of 16 bits, place by place. */
#ifndef OI_RECIPE_RUNS_H
#define OI_RECIPE_RUNS_H

#include <immintrin.h>
#include <stdint.h>

/* Rows of eight numbers of 16 bits become columns. */
static inline __attribute__((always_inline)) void oi_runs_transpose(__m128i v[8])
{
    __m128i a[8], b[8];
    for (int i = 0; i < 4; i++) {
        a[i] = _mm_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
        a[i + 4] = _mm_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 2) {
        b[i] = _mm_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        v[2 * i] = _mm_unpacklo_epi64(b[i], b[i + 2]);
        v[2 * i + 1] = _mm_unpackhi_epi64(b[i], b[i + 2]);
        v[2 * i + 4] = _mm_unpacklo_epi64(b[i + 4], b[i + 6]);
        v[2 * i + 5] = _mm_unpackhi_epi64(b[i + 4], b[i + 6]);
    }
}

/* Eight places of 16 or 8 channels, `plane` bytes apart: runs of them, `step` numbers apart, less
 * `zero`. */
static inline __attribute__((always_inline)) void oi_vi_runs(const void *x, int64_t plane,
                                                             int64_t c, int64_t is_unsigned,
                                                             int32_t zero, int16_t *out,
                                                             int64_t step)
{
    const __m256i less = _mm256_set1_epi16((short)zero);
    const char *from = x;
    __m128i v[8];
    for (int i = 0; i < 8; i++) {
        const char *p = from + (2 * i < c ? 2 * i : 0) * plane;
        v[i] = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)p),
                                 _mm_loadl_epi64((const __m128i *)(p + plane)));
    }
    oi_runs_transpose(v);
    for (int i = 0; i < 8; i++) {
        const __m256i wide = is_unsigned ? _mm256_cvtepu8_epi16(v[i]) : _mm256_cvtepi8_epi16(v[i]);
        const __m256i run = _mm256_sub_epi16(wide, less);
        if (c == 16)
            _mm256_storeu_si256((__m256i *)(out + i * step), run);
        else
            _mm_storeu_si128((__m128i *)(out + i * step), _mm256_castsi256_si128(run));
    }
}

/* Eight places of the rows a and b, less `zero`: pairs of them, of which `keep` keeps bits. */
static inline __attribute__((always_inline)) void oi_vi_two_rows(const void *a, const void *b,
                                                                 int64_t is_unsigned, int32_t zero,
                                                                 int32_t keep, int32_t *out)
{
    const __m128i v =
        _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)a), _mm_loadl_epi64((const __m128i *)b));
    const __m256i wide = is_unsigned ? _mm256_cvtepu8_epi16(v) : _mm256_cvtepi8_epi16(v);
    const __m256i pairs = _mm256_sub_epi16(wide, _mm256_set1_epi16((short)zero));
    _mm256_storeu_si256((__m256i *)out, _mm256_and_si256(pairs, _mm256_set1_epi32(keep)));
}

#endif
