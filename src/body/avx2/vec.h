/* vec.h: vectors of AVX2 (with FMA and F16C), under the names that every folder has.
 *
 * oi_vf is OI_VF floats, oi_vi as many integers of 32 bits or four times as many bytes. Bodies
 * that call only these are the same text for every target. */
#ifndef OI_RECIPE_VEC_H
#define OI_RECIPE_VEC_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

typedef __m256 oi_vf;

typedef __m256i oi_vi;

enum { OI_VF = 8 };

/* -- floats -- */

static inline oi_vf oi_vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline void oi_vf_store(float *p, oi_vf v)
{
    _mm256_storeu_ps(p, v);
}

static inline oi_vf oi_vf_set(float x)
{
    return _mm256_set1_ps(x);
}

static inline oi_vf oi_vf_add(oi_vf a, oi_vf b)
{
    return _mm256_add_ps(a, b);
}

static inline oi_vf oi_vf_sub(oi_vf a, oi_vf b)
{
    return _mm256_sub_ps(a, b);
}

static inline oi_vf oi_vf_mul(oi_vf a, oi_vf b)
{
    return _mm256_mul_ps(a, b);
}

/* a * b + c, rounded once */
static inline oi_vf oi_vf_fma(oi_vf a, oi_vf b, oi_vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

/* The same for one number: a rest that is no full vector has the bits of a vector. */
static inline float oi_f_fma(float a, float b, float c)
{
    return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}

static inline oi_vf oi_vf_div(oi_vf a, oi_vf b)
{
    return _mm256_div_ps(a, b);
}

/* a / b, for b of at least 1 and its inverse, where that is of use */
static inline oi_vf oi_vf_div_by(oi_vf a, oi_vf b, oi_vf inverse)
{
    (void)inverse;
    return _mm256_div_ps(a, b);
}

/* b where one of them is NaN */
static inline oi_vf oi_vf_max(oi_vf a, oi_vf b)
{
    return _mm256_max_ps(a, b);
}

static inline oi_vf oi_vf_min(oi_vf a, oi_vf b)
{
    return _mm256_min_ps(a, b);
}

/* The nearest whole number, of two the even one. */
static inline oi_vf oi_vf_round(oi_vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline oi_vf oi_vf_load_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

static inline oi_vf oi_vf_load_bf16(const void *p)
{
    const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}

/* Rounded to bf16. */
static inline oi_vf oi_vf_near_bf16(oi_vf v)
{
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i cut = _mm256_and_si256(up, _mm256_set1_epi32((int32_t)0xffff0000));
    return _mm256_blendv_ps(_mm256_castsi256_ps(cut), v, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

/* The first n lanes of v, which may be all or none, and the others of `rest`. */
static inline oi_vf oi_vf_first(oi_vf v, int64_t n, oi_vf rest)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i is_first = _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)n), lane);
    return _mm256_blendv_ps(rest, v, _mm256_castsi256_ps(is_first));
}

/* The lanes of x where a < b, and those of y elsewhere. */
static inline oi_vf oi_vf_below(oi_vf a, oi_vf b, oi_vf x, oi_vf y)
{
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

/* The floats from ... to - 1 of those at p, and 0 in the other lanes: nothing is read there. */
static inline oi_vf oi_vf_load_within(const float *p, int64_t from, int64_t to)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)from), lane);
    const __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)to), lane);
    return _mm256_maskload_ps(p, _mm256_andnot_si256(before, below));
}

/* The first n floats. */
static inline void oi_vf_store_some(float *p, oi_vf v, int64_t n)
{
    float all[OI_VF];
    _mm256_storeu_ps(all, v);
    for (int64_t i = 0; i < n; i++)
        p[i] = all[i];
}

/* The sum of all lanes, always in this order. */
static inline float oi_vf_total(oi_vf v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* The sums of four vectors, each always in this order. */
static inline void oi_vf_total_four(const oi_vf v[4], float *sums)
{
    __m256 t = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    _mm_storeu_ps(sums, _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1)));
}

static inline float oi_vf_largest(oi_vf v)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

/* Rows become columns. */
static inline void oi_vf_transpose(oi_vf v[OI_VF])
{
    oi_vf a[OI_VF], b[OI_VF];
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
        b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
}

/* Column j of rows of OI_VF halves: v[j] has number j of each. */
static inline void oi_vf_columns_f16(const uint16_t *const rows[OI_VF], oi_vf v[OI_VF])
{
    for (int i = 0; i < OI_VF; i++)
        v[i] = oi_vf_load_f16(rows[i]);
    oi_vf_transpose(v);
}

/* What lies there will be read soon; it need not exist. Inlined at once: gcc drops calls of a
 * function that gives nothing and changes nothing. */
static inline __attribute__((always_inline)) void oi_prefetch(const void *p)
{
    _mm_prefetch((const char *)p, _MM_HINT_T0);
}

/* -- integers -- */

static inline oi_vi oi_vi_zero(void)
{
    return _mm256_setzero_si256();
}

static inline oi_vi oi_vi_load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

static inline void oi_vi_store(void *p, oi_vi v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

static inline oi_vi oi_vi_set(int32_t x)
{
    return _mm256_set1_epi32(x);
}

static inline oi_vi oi_vi_add(oi_vi a, oi_vi b)
{
    return _mm256_add_epi32(a, b);
}

static inline oi_vf oi_vf_of_vi(oi_vi v)
{
    return _mm256_cvtepi32_ps(v);
}

/* To the nearest, of two to the even one. */
static inline oi_vi oi_vi_of_vf(oi_vf v)
{
    return _mm256_cvtps_epi32(v);
}

/* 2^n for n within -126 ... 127 */
static inline oi_vf oi_vf_power_of_2(oi_vi n)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/* x * 2^n for whole n within -252 ... 254 */
static inline oi_vf oi_vf_times_2_to(oi_vf x, oi_vf n)
{
    const oi_vi k = oi_vi_of_vf(n), half = _mm256_srai_epi32(k, 1);
    return oi_vf_mul(oi_vf_mul(x, oi_vf_power_of_2(half)),
                     oi_vf_power_of_2(_mm256_sub_epi32(k, half)));
}

/* The lower, or upper, half of every byte. */
static inline oi_vi oi_vi_low4(oi_vi v)
{
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
}

static inline oi_vi oi_vi_high4(oi_vi v)
{
    return _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
}

/* The bits from `shift` on that `mask` keeps, of every lane. */
static inline oi_vi oi_vi_bits(oi_vi v, int shift, int32_t mask)
{
    return _mm256_and_si256(_mm256_srl_epi32(v, _mm_cvtsi32_si128(shift)), _mm256_set1_epi32(mask));
}

/* The byte from `shift` on of every lane, with its sign. */
static inline oi_vi oi_vi_byte(oi_vi v, int shift)
{
    return _mm256_srai_epi32(_mm256_sll_epi32(v, _mm_cvtsi32_si128(24 - shift)), 24);
}

/* The same four bytes in every lane. */
static inline oi_vi oi_vi_four(const int8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm256_set1_epi32(four);
}

/* What is kept in vectors for later lies in memory from here on: a loop that needs all registers
 * follows. */
static inline __attribute__((always_inline)) void oi_vi_clear(void)
{
    __asm__ volatile("" ::
                         : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                           "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

#endif
