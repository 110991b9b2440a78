/* vec.h: vectors of AVX-512 (F, BW, VL and DQ), under the names that every folder has (see
 * avx2/vec.h). */
#ifndef OI_RECIPE_VEC_H
#define OI_RECIPE_VEC_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

typedef __m512 oi_vf;

typedef __m512i oi_vi;

enum { OI_VF = 16 };

/* -- floats -- */

static inline oi_vf oi_vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline void oi_vf_store(float *p, oi_vf v)
{
    _mm512_storeu_ps(p, v);
}

static inline oi_vf oi_vf_set(float x)
{
    return _mm512_set1_ps(x);
}

static inline oi_vf oi_vf_add(oi_vf a, oi_vf b)
{
    return _mm512_add_ps(a, b);
}

static inline oi_vf oi_vf_sub(oi_vf a, oi_vf b)
{
    return _mm512_sub_ps(a, b);
}

static inline oi_vf oi_vf_mul(oi_vf a, oi_vf b)
{
    return _mm512_mul_ps(a, b);
}

/* a * b + c, rounded once */
static inline oi_vf oi_vf_fma(oi_vf a, oi_vf b, oi_vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* The same for one number: a rest that is no full vector has the bits of a vector. */
static inline float oi_f_fma(float a, float b, float c)
{
    return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}

static inline oi_vf oi_vf_div(oi_vf a, oi_vf b)
{
    return _mm512_div_ps(a, b);
}

/* a / b, rounded once, for b of at least 1 and its inverse: from that and two corrections, sooner
 * there than by dividing. Where a is too small for them, it is divided. */
static inline oi_vf oi_vf_div_by(oi_vf a, oi_vf b, oi_vf inverse)
{
    const __mmask16 small = _mm512_cmp_ps_mask(a, _mm512_set1_ps(0x1p-80f), _CMP_LT_OQ);
    if (small & _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_NEQ_OQ))
        return _mm512_div_ps(a, b);
    oi_vf v = _mm512_mul_ps(a, inverse);
    v = _mm512_fmadd_ps(_mm512_fnmadd_ps(v, b, a), inverse, v);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(v, b, a), inverse, v);
}

/* b where one of them is NaN */
static inline oi_vf oi_vf_max(oi_vf a, oi_vf b)
{
    return _mm512_max_ps(a, b);
}

static inline oi_vf oi_vf_min(oi_vf a, oi_vf b)
{
    return _mm512_min_ps(a, b);
}

/* The nearest whole number, of two the even one. */
static inline oi_vf oi_vf_round(oi_vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline oi_vf oi_vf_load_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

static inline oi_vf oi_vf_load_bf16(const void *p)
{
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}

/* Rounded to bf16. */
static inline oi_vf oi_vf_near_bf16(oi_vf v)
{
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __m512i cut = _mm512_and_si512(up, _mm512_set1_epi32((int32_t)0xffff0000));
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), _mm512_castsi512_ps(cut),
                                v);
}

/* The first n lanes of v, which may be all or none, and the others of `rest`. */
static inline oi_vf oi_vf_first(oi_vf v, int64_t n, oi_vf rest)
{
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __mmask16 is_first = _mm512_cmpgt_epi32_mask(_mm512_set1_epi32((int32_t)n), lane);
    return _mm512_mask_blend_ps(is_first, rest, v);
}

/* The lanes of x where a < b, and those of y elsewhere. */
static inline oi_vf oi_vf_below(oi_vf a, oi_vf b, oi_vf x, oi_vf y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}

/* The floats from ... to - 1 of those at p, and 0 in the other lanes: nothing is read there. */
static inline oi_vf oi_vf_load_within(const float *p, int64_t from, int64_t to)
{
    const uint32_t below = to < 0 ? 0 : to < 16 ? (1u << to) - 1 : 0xffff;
    const uint32_t before = from < 16 ? (1u << from) - 1 : 0xffff;
    return _mm512_maskz_loadu_ps((__mmask16)(below & ~before), p);
}

/* The first n floats. */
static inline void oi_vf_store_some(float *p, oi_vf v, int64_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v);
}

/* The sum of all lanes, always in this order. */
static inline float oi_vf_total(oi_vf v)
{
    __m256 t = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* The sums of four vectors, each always in this order. */
static inline void oi_vf_total_four(const oi_vf v[4], float *sums)
{
    __m256 h[4];
    for (int i = 0; i < 4; i++)
        h[i] = _mm256_add_ps(_mm512_castps512_ps256(v[i]), _mm512_extractf32x8_ps(v[i], 1));
    __m256 t = _mm256_hadd_ps(_mm256_hadd_ps(h[0], h[1]), _mm256_hadd_ps(h[2], h[3]));
    _mm_storeu_ps(sums, _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1)));
}

static inline float oi_vf_largest(oi_vf v)
{
    __m256 t = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

/* Transposes: within groups of four lanes first, then between the groups. */
static inline void oi_vf_transpose(oi_vf v[OI_VF])
{
    oi_vf a[OI_VF], b[OI_VF];
    for (int i = 0; i < 16; i += 2) {
        a[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        a[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        b[i] = _mm512_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm512_shuffle_ps(a[i], a[i + 2], 0xee);
        b[i + 2] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        a[i] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0x88);
        a[i + 4] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0xdd);
        a[i + 8] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0x88);
        a[i + 12] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0x88);
        v[i + 4] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0x88);
        v[i + 8] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0xdd);
        v[i + 12] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0xdd);
    }
}

/* Column j of rows of OI_VF halves: v[j] has number j of each. They change places as 16 bits,
 * eight rows beside the other eight: half of what floats would take. */
static inline void oi_vf_columns_f16(const uint16_t *const rows[OI_VF], oi_vf v[OI_VF])
{
    for (int h = 0; h < OI_VF; h += 8) {
        __m256i a[8], b[8];
        for (int i = 0; i < 8; i++)
            a[i] = _mm256_inserti128_si256(
                _mm256_castsi128_si256(_mm_loadu_si128((const void *)(rows[i] + h))),
                _mm_loadu_si128((const void *)(rows[i + 8] + h)), 1);
        for (int i = 0; i < 8; i += 2) {
            b[i] = _mm256_unpacklo_epi16(a[i], a[i + 1]);
            b[i + 1] = _mm256_unpackhi_epi16(a[i], a[i + 1]);
        }
        for (int i = 0; i < 8; i += 4) {
            a[i] = _mm256_unpacklo_epi32(b[i], b[i + 2]);
            a[i + 1] = _mm256_unpackhi_epi32(b[i], b[i + 2]);
            a[i + 2] = _mm256_unpacklo_epi32(b[i + 1], b[i + 3]);
            a[i + 3] = _mm256_unpackhi_epi32(b[i + 1], b[i + 3]);
        }
        for (int i = 0; i < 4; i++) {
            v[h + 2 * i] = _mm512_cvtph_ps(_mm256_unpacklo_epi64(a[i], a[i + 4]));
            v[h + 2 * i + 1] = _mm512_cvtph_ps(_mm256_unpackhi_epi64(a[i], a[i + 4]));
        }
    }
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
    return _mm512_setzero_si512();
}

static inline oi_vi oi_vi_load(const void *p)
{
    return _mm512_loadu_si512(p);
}

static inline void oi_vi_store(void *p, oi_vi v)
{
    _mm512_storeu_si512(p, v);
}

static inline oi_vi oi_vi_set(int32_t x)
{
    return _mm512_set1_epi32(x);
}

static inline oi_vi oi_vi_add(oi_vi a, oi_vi b)
{
    return _mm512_add_epi32(a, b);
}

static inline oi_vf oi_vf_of_vi(oi_vi v)
{
    return _mm512_cvtepi32_ps(v);
}

/* To the nearest, of two to the even one. */
static inline oi_vi oi_vi_of_vf(oi_vf v)
{
    return _mm512_cvtps_epi32(v);
}

/* x * 2^n for whole n */
static inline oi_vf oi_vf_times_2_to(oi_vf x, oi_vf n)
{
    return _mm512_scalef_ps(x, n);
}

/* The lower, or upper, half of every byte. */
static inline oi_vi oi_vi_low4(oi_vi v)
{
    return _mm512_and_si512(v, _mm512_set1_epi8(15));
}

static inline oi_vi oi_vi_high4(oi_vi v)
{
    return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
}

/* The bits from `shift` on that `mask` keeps, of every lane. */
static inline oi_vi oi_vi_bits(oi_vi v, int shift, int32_t mask)
{
    return _mm512_and_si512(_mm512_srl_epi32(v, _mm_cvtsi32_si128(shift)), _mm512_set1_epi32(mask));
}

/* The byte from `shift` on of every lane, with its sign. */
static inline oi_vi oi_vi_byte(oi_vi v, int shift)
{
    return _mm512_srai_epi32(_mm512_sll_epi32(v, _mm_cvtsi32_si128(24 - shift)), 24);
}

/* The same four bytes in every lane. */
static inline oi_vi oi_vi_four(const int8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}

/* What is kept in vectors for later lies in memory from here on: a loop that needs all registers
 * follows. */
static inline __attribute__((always_inline)) void oi_vi_clear(void) {}

#endif
