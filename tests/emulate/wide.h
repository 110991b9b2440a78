/* wide.h: instructions of AVX-512 that SIMDe 0.7 lacks, or gives other bits for than a processor.
 * As two of 256 bits where there is such an instruction, otherwise lane by lane. */
#ifndef OI_EMULATE_WIDE_H
#define OI_EMULATE_WIDE_H

#include "tiles.h"

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>

typedef union emu_wide {
    __m512 f;
    __m512i i;
    __m512bh bf16;
    __m256bh half_bf16[2];
    __m256 half_f[2];
    __m256i half[2];
    __m128i quarter[4];
    float f32[16];
    int32_t i32[16];
    uint32_t u32[16];
    uint16_t u16[32];
    int8_t i8[64];
    uint8_t u8[64];
} emu_wide;

/* -- memory under a mask: lanes that are not asked for need not exist -- */

#define EMU_MEMORY(name, vector, is, lane, mask)                                              \
    static inline vector emu_mask_loadu_##name(vector old, mask k, const void *p)             \
    {                                                                                         \
        emu_wide v;                                                                           \
        v.is = old;                                                                           \
        for (size_t i = 0; i < sizeof v / sizeof v.lane[0]; i++)                              \
            if (k >> i & 1)                                                                   \
                memcpy(&v.lane[i], (const char *)p + i * sizeof v.lane[0], sizeof v.lane[0]); \
        return v.is;                                                                          \
    }                                                                                         \
    static inline vector emu_maskz_loadu_##name(mask k, const void *p)                        \
    {                                                                                         \
        emu_wide v;                                                                           \
        memset(&v, 0, sizeof v);                                                              \
        return emu_mask_loadu_##name(v.is, k, p);                                             \
    }                                                                                         \
    static inline void emu_mask_storeu_##name(void *p, mask k, vector x)                      \
    {                                                                                         \
        emu_wide v;                                                                           \
        v.is = x;                                                                             \
        for (size_t i = 0; i < sizeof v / sizeof v.lane[0]; i++)                              \
            if (k >> i & 1)                                                                   \
                memcpy((char *)p + i * sizeof v.lane[0], &v.lane[i], sizeof v.lane[0]);       \
    }

EMU_MEMORY(ps, __m512, f, u32, __mmask16)
EMU_MEMORY(epi32, __m512i, i, u32, __mmask16)
EMU_MEMORY(epi16, __m512i, i, u16, __mmask32)
EMU_MEMORY(epi8, __m512i, i, u8, __mmask64)

static inline __m512 emu_i32gather_ps(__m512i at, const void *p, int scale)
{
    emu_wide v, r;
    v.i = at;
    for (int i = 0; i < 16; i++)
        memcpy(&r.f32[i], (const char *)p + (int64_t)v.i32[i] * scale, sizeof(float));
    return r.f;
}

/* -- of one vector another -- */

/* To the nearest, of two to the even one. */
static inline uint16_t emu_to_bf16(float x)
{
    uint32_t bits;
    x = emu_flushed(x);
    memcpy(&bits, &x, sizeof bits);
    if (x != x)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* v is what there is, r what becomes of it, in n parts. */
#define EMU_FROM(name, to, is, from, was, n, part) \
    static inline to emu_##name(from x)            \
    {                                              \
        emu_wide v, r;                             \
        memset(&v, 0, sizeof v);                   \
        memset(&r, 0, sizeof r);                   \
        v.was = x;                                 \
        for (int i = 0; i < (n); i++)              \
            part;                                  \
        return r.is;                               \
    }

EMU_FROM(cvtepi32_ps, __m512, f, __m512i, i, 2, r.half_f[i] = _mm256_cvtepi32_ps(v.half[i]))
EMU_FROM(cvtepu32_ps, __m512, f, __m512i, i, 16, r.f32[i] = (float)v.u32[i])
EMU_FROM(cvtps_epi32, __m512i, i, __m512, f, 2, r.half[i] = _mm256_cvtps_epi32(v.half_f[i]))
EMU_FROM(cvttps_epi32, __m512i, i, __m512, f, 2, r.half[i] = _mm256_cvttps_epi32(v.half_f[i]))
EMU_FROM(cvtph_ps, __m512, f, __m256i, half[0], 2, r.half_f[i] = _mm256_cvtph_ps(v.quarter[i]))
EMU_FROM(cvtepi8_epi32, __m512i, i, __m128i, quarter[0], 16, r.i32[i] = v.i8[i])
EMU_FROM(cvtepu8_epi32, __m512i, i, __m128i, quarter[0], 16, r.u32[i] = v.u8[i])
EMU_FROM(cvtepu8_epi16, __m512i, i, __m256i, half[0], 32, r.u16[i] = v.u8[i])
EMU_FROM(cvtepi16_epi32, __m512i, i, __m256i, half[0], 16, r.i32[i] = (int16_t)v.u16[i])
EMU_FROM(cvtepu16_epi32, __m512i, i, __m256i, half[0], 16, r.u32[i] = v.u16[i])
EMU_FROM(cvtepi32_epi8, __m128i, quarter[0], __m512i, i, 16, r.u8[i] = (uint8_t)v.u32[i])
EMU_FROM(cvtepi32_epi16, __m256i, half[0], __m512i, i, 16, r.u16[i] = (uint16_t)v.u32[i])
EMU_FROM(cvtneps_pbh, __m256bh, half_bf16[0], __m512, f, 16, r.u16[i] = emu_to_bf16(v.f32[i]))

/* The upper half is of the first. */
static inline __m512bh emu_cvtne2ps_pbh(__m512 high, __m512 low)
{
    emu_wide r;
    r.half_bf16[0] = emu_cvtneps_pbh(low);
    r.half_bf16[1] = emu_cvtneps_pbh(high);
    return r.bf16;
}

/* -- of several vectors one -- */

/* The second number of a pair comes first. */
static inline __m512 emu_dpbf16_ps(__m512 sum, __m512bh a, __m512bh b)
{
    emu_wide s, x, y;
    s.f = sum;
    x.bf16 = a;
    y.bf16 = b;
    for (int i = 0; i < 16; i++) {
        s.f32[i] =
            emu_step(emu_of_bf16(&x.u16[2 * i + 1]), emu_of_bf16(&y.u16[2 * i + 1]), s.f32[i]);
        s.f32[i] = emu_step(emu_of_bf16(&x.u16[2 * i]), emu_of_bf16(&y.u16[2 * i]), s.f32[i]);
    }
    return s.f;
}

static inline __m512i emu_dpbusd_epi32(__m512i sum, __m512i a, __m512i b)
{
    emu_wide s, x, y;
    s.i = sum;
    x.i = a;
    y.i = b;
    for (int i = 0; i < 64; i++)
        s.u32[i / 4] += (uint32_t)(x.u8[i] * y.i8[i]);
    return s.i;
}

static inline __m512i emu_dpwssd_epi32(__m512i sum, __m512i a, __m512i b)
{
    emu_wide s, x, y;
    s.i = sum;
    x.i = a;
    y.i = b;
    for (int i = 0; i < 32; i++)
        s.u32[i / 2] += (uint32_t)((int16_t)x.u16[i] * (int16_t)y.u16[i]);
    return s.i;
}

/* a times 2 to the whole number below b; SIMDe takes a small one for 0. */
static inline __m512 emu_scalef_ps(__m512 a, __m512 b)
{
    emu_wide x, y;
    x.f = a;
    y.f = b;
    for (int i = 0; i < 16; i++) {
        const float n = y.f32[i];
        if (n != n || __builtin_isinf(n))
            x.f32[i] *= n > 0 ? n : n < 0 ? 0 : n;
        else
            x.f32[i] = __builtin_ldexpf(x.f32[i], n > 1000    ? 1000
                                                  : n < -1000 ? -1000
                                                              : (int)__builtin_floorf(n));
    }
    return x.f;
}

/* Always in this order. */
static inline float emu_reduce_add_ps(__m512 x)
{
    emu_wide v;
    v.f = x;
    for (int n = 8; n; n /= 2)
        for (int i = 0; i < n; i++)
            v.f32[i] += v.f32[i + n];
    return v.f32[0];
}

static inline float emu_reduce_max_ps(__m512 x)
{
    emu_wide v;
    v.f = x;
    for (int n = 8; n; n /= 2)
        for (int i = 0; i < n; i++)
            v.f32[i] = v.f32[i] > v.f32[i + n] ? v.f32[i] : v.f32[i + n];
    return v.f32[0];
}

static inline int32_t emu_reduce_add_epi32(__m512i x)
{
    emu_wide v;
    v.i = x;
    for (int i = 1; i < 16; i++)
        v.u32[0] += v.u32[i];
    return v.i32[0];
}

/* Quarters: two of a, two of b. */
static inline __m512i emu_shuffle_i32x4(__m512i a, __m512i b, int how)
{
    emu_wide x, y, r;
    x.i = a;
    y.i = b;
    for (int i = 0; i < 4; i++)
        r.quarter[i] = (i < 2 ? x : y).quarter[how >> 2 * i & 3];
    return r.i;
}

/* A half, for instructions whose last number must be a literal. */
static inline __m256 emu_half_f(__m512 x, int i)
{
    emu_wide v;
    v.f = x;
    return v.half_f[i & 1];
}

static inline __m256i emu_half(__m512i x, int i)
{
    emu_wide v;
    v.i = x;
    return v.half[i & 1];
}

static inline __m512 emu_both_f(__m256 low, __m256 high)
{
    emu_wide v;
    v.half_f[0] = low;
    v.half_f[1] = high;
    return v.f;
}

static inline __m512i emu_both(__m256i low, __m256i high)
{
    emu_wide v;
    v.half[0] = low;
    v.half[1] = high;
    return v.i;
}

static inline __m256i emu_pair(__m128i low, __m128i high)
{
    emu_wide v;
    v.quarter[0] = low;
    v.quarter[1] = high;
    return v.half[0];
}

/* Whole numbers only: the scale in the upper bits must be 0. */
#define emu_roundscale_ps(x, how)                                        \
    emu_both_f(_mm256_round_ps(emu_half_f(x, 0), (how) / !((how)&0xf0)), \
               _mm256_round_ps(emu_half_f(x, 1), (how) / !((how)&0xf0)))
#define emu_cvtps_ph(x, how) \
    emu_pair(_mm256_cvtps_ph(emu_half_f(x, 0), (how)&7), _mm256_cvtps_ph(emu_half_f(x, 1), (how)&7))
#define emu_srai_epi32(x, n) \
    emu_both(_mm256_srai_epi32(emu_half(x, 0), n), _mm256_srai_epi32(emu_half(x, 1), n))
#define emu_shuffle_epi32(x, how) \
    emu_both(_mm256_shuffle_epi32(emu_half(x, 0), how), _mm256_shuffle_epi32(emu_half(x, 1), how))

#undef _mm512_cvtepi16_epi32
#undef _mm512_cvtepi32_epi16
#undef _mm512_cvtepi32_epi8
#undef _mm512_cvtepi32_ps
#undef _mm512_cvtepi8_epi32
#undef _mm512_cvtepu16_epi32
#undef _mm512_cvtepu32_ps
#undef _mm512_cvtepu8_epi16
#undef _mm512_cvtepu8_epi32
#undef _mm512_cvtne2ps_pbh
#undef _mm512_cvtneps_pbh
#undef _mm512_cvtph_ps
#undef _mm512_cvtps_epi32
#undef _mm512_cvtps_ph
#undef _mm512_cvttps_epi32
#undef _mm512_dpbf16_ps
#undef _mm512_dpbusd_epi32
#undef _mm512_dpwssd_epi32
#undef _mm512_extractf32x8_ps
#undef _mm512_extracti32x8_epi32
#undef _mm512_i32gather_ps
#undef _mm512_madd_epi16 /* SIMDe's name takes a mask */
#undef _mm512_mask_loadu_epi16
#undef _mm512_mask_loadu_epi32
#undef _mm512_mask_loadu_epi8
#undef _mm512_mask_loadu_ps
#undef _mm512_mask_storeu_epi16
#undef _mm512_mask_storeu_epi32
#undef _mm512_mask_storeu_epi8
#undef _mm512_mask_storeu_ps
#undef _mm512_maskz_loadu_epi16
#undef _mm512_maskz_loadu_epi32
#undef _mm512_maskz_loadu_epi8
#undef _mm512_maskz_loadu_ps
#undef _mm512_reduce_add_epi32
#undef _mm512_reduce_add_ps
#undef _mm512_reduce_max_ps
#undef _mm512_roundscale_ps
#undef _mm512_scalef_ps
#undef _mm512_shuffle_epi32
#undef _mm512_srai_epi32
#undef _mm512_shuffle_f32x4
#undef _mm512_shuffle_i32x4
#undef _mm512_shuffle_i64x2
#undef _mm512_stream_ps
#undef _mm512_stream_si512
#define _mm512_cvtepi16_epi32(x)           emu_cvtepi16_epi32(x)
#define _mm512_cvtepi32_epi16(x)           emu_cvtepi32_epi16(x)
#define _mm512_cvtepi32_epi8(x)            emu_cvtepi32_epi8(x)
#define _mm512_cvtepi32_ps(x)              emu_cvtepi32_ps(x)
#define _mm512_cvtepi8_epi32(x)            emu_cvtepi8_epi32(x)
#define _mm512_cvtepu16_epi32(x)           emu_cvtepu16_epi32(x)
#define _mm512_cvtepu32_ps(x)              emu_cvtepu32_ps(x)
#define _mm512_cvtepu8_epi16(x)            emu_cvtepu8_epi16(x)
#define _mm512_cvtepu8_epi32(x)            emu_cvtepu8_epi32(x)
#define _mm512_cvtne2ps_pbh(high, low)     emu_cvtne2ps_pbh(high, low)
#define _mm512_cvtneps_pbh(x)              emu_cvtneps_pbh(x)
#define _mm512_cvtph_ps(x)                 emu_cvtph_ps(x)
#define _mm512_cvtps_epi32(x)              emu_cvtps_epi32(x)
#define _mm512_cvtps_ph(x, how)            emu_cvtps_ph(x, how)
#define _mm512_cvttps_epi32(x)             emu_cvttps_epi32(x)
#define _mm512_dpbf16_ps(s, a, b)          emu_dpbf16_ps(s, a, b)
#define _mm512_dpbusd_epi32(s, a, b)       emu_dpbusd_epi32(s, a, b)
#define _mm512_dpwssd_epi32(s, a, b)       emu_dpwssd_epi32(s, a, b)
#define _mm512_extractf32x8_ps(x, i)       emu_half_f(x, i)
#define _mm512_extracti32x8_epi32(x, i)    emu_half(x, i)
#define _mm512_i32gather_ps(at, p, scale)  emu_i32gather_ps(at, p, scale)
#define _mm512_madd_epi16(a, b)            simde_mm512_madd_epi16(a, b)
#define _mm512_mask_loadu_epi16(old, k, p) emu_mask_loadu_epi16(old, k, p)
#define _mm512_mask_loadu_epi32(old, k, p) emu_mask_loadu_epi32(old, k, p)
#define _mm512_mask_loadu_epi8(old, k, p)  emu_mask_loadu_epi8(old, k, p)
#define _mm512_mask_loadu_ps(old, k, p)    emu_mask_loadu_ps(old, k, p)
#define _mm512_mask_storeu_epi16(p, k, x)  emu_mask_storeu_epi16(p, k, x)
#define _mm512_mask_storeu_epi32(p, k, x)  emu_mask_storeu_epi32(p, k, x)
#define _mm512_mask_storeu_epi8(p, k, x)   emu_mask_storeu_epi8(p, k, x)
#define _mm512_mask_storeu_ps(p, k, x)     emu_mask_storeu_ps(p, k, x)
#define _mm512_maskz_loadu_epi16(k, p)     emu_maskz_loadu_epi16(k, p)
#define _mm512_maskz_loadu_epi32(k, p)     emu_maskz_loadu_epi32(k, p)
#define _mm512_maskz_loadu_epi8(k, p)      emu_maskz_loadu_epi8(k, p)
#define _mm512_maskz_loadu_ps(k, p)        emu_maskz_loadu_ps(k, p)
#define _mm512_reduce_add_epi32(x)         emu_reduce_add_epi32(x)
#define _mm512_reduce_add_ps(x)            emu_reduce_add_ps(x)
#define _mm512_reduce_max_ps(x)            emu_reduce_max_ps(x)
#define _mm512_roundscale_ps(x, how)       emu_roundscale_ps(x, how)
#define _mm512_scalef_ps(a, b)             emu_scalef_ps(a, b)
#define _mm512_shuffle_epi32(x, how)       emu_shuffle_epi32(x, how)
#define _mm512_srai_epi32(x, n)            emu_srai_epi32(x, n)
#define _mm512_shuffle_f32x4(a, b, how) \
    _mm512_castsi512_ps(emu_shuffle_i32x4(_mm512_castps_si512(a), _mm512_castps_si512(b), how))
#define _mm512_shuffle_i32x4(a, b, how) emu_shuffle_i32x4(a, b, how)
#define _mm512_shuffle_i64x2(a, b, how) emu_shuffle_i32x4(a, b, how)
#define _mm512_stream_ps(p, x)          _mm512_store_ps(p, x)
#define _mm512_stream_si512(p, x)       _mm512_store_si512(p, x)

#endif
