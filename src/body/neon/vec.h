/* vec.h: vectors of 64-bit ARM, under the names that every folder has (see avx2/vec.h). */
#ifndef OI_RECIPE_VEC_H
#define OI_RECIPE_VEC_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

typedef float32x4_t oi_vf;

typedef int32x4_t oi_vi;

enum { OI_VF = 4 };

/* -- floats -- */

static inline oi_vf oi_vf_load(const float *p)
{
    return vld1q_f32(p);
}

static inline void oi_vf_store(float *p, oi_vf v)
{
    vst1q_f32(p, v);
}

static inline oi_vf oi_vf_set(float x)
{
    return vdupq_n_f32(x);
}

static inline oi_vf oi_vf_add(oi_vf a, oi_vf b)
{
    return vaddq_f32(a, b);
}

static inline oi_vf oi_vf_sub(oi_vf a, oi_vf b)
{
    return vsubq_f32(a, b);
}

static inline oi_vf oi_vf_mul(oi_vf a, oi_vf b)
{
    return vmulq_f32(a, b);
}

/* a * b + c, rounded once */
static inline oi_vf oi_vf_fma(oi_vf a, oi_vf b, oi_vf c)
{
    return vfmaq_f32(c, a, b);
}

/* The same for one number: a rest that is no full vector has the bits of a vector. */
static inline float oi_f_fma(float a, float b, float c)
{
    return vget_lane_f32(vfma_f32(vdup_n_f32(c), vdup_n_f32(a), vdup_n_f32(b)), 0);
}

static inline oi_vf oi_vf_div(oi_vf a, oi_vf b)
{
    return vdivq_f32(a, b);
}

/* a / b, for b of at least 1 and its inverse, where that is of use */
static inline oi_vf oi_vf_div_by(oi_vf a, oi_vf b, oi_vf inverse)
{
    (void)inverse;
    return vdivq_f32(a, b);
}

/* NaN where one of them is */
static inline oi_vf oi_vf_max(oi_vf a, oi_vf b)
{
    return vmaxq_f32(a, b);
}

static inline oi_vf oi_vf_min(oi_vf a, oi_vf b)
{
    return vminq_f32(a, b);
}

/* The nearest whole number, of two the even one. */
static inline oi_vf oi_vf_round(oi_vf a)
{
    return vrndnq_f32(a);
}

static inline oi_vf oi_vf_load_f16(const void *p)
{
    uint16x4_t bits;
    memcpy(&bits, p, sizeof bits);
    return vcvt_f32_f16(vreinterpret_f16_u16(bits));
}

static inline oi_vf oi_vf_load_bf16(const void *p)
{
    uint16x4_t bits;
    memcpy(&bits, p, sizeof bits);
    return vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
}

/* Rounded to bf16. */
static inline oi_vf oi_vf_near_bf16(oi_vf v)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t up = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
    const uint32x4_t cut = vandq_u32(up, vdupq_n_u32(0xffff0000));
    return vbslq_f32(vceqq_f32(v, v), vreinterpretq_f32_u32(cut), v);
}

/* The first n lanes of v, which may be all or none, and the others of `rest`. */
static inline oi_vf oi_vf_first(oi_vf v, int64_t n, oi_vf rest)
{
    static const int32_t lanes[OI_VF] = {0, 1, 2, 3};
    return vbslq_f32(vcltq_s32(vld1q_s32(lanes), vdupq_n_s32((int32_t)n)), v, rest);
}

/* The lanes of x where a < b, and those of y elsewhere. */
static inline oi_vf oi_vf_below(oi_vf a, oi_vf b, oi_vf x, oi_vf y)
{
    return vbslq_f32(vcltq_f32(a, b), x, y);
}

/* The floats from ... to - 1 of those at p, and 0 in the other lanes: nothing is read there. */
static inline oi_vf oi_vf_load_within(const float *p, int64_t from, int64_t to)
{
    float all[OI_VF] = {0};
    for (int64_t i = from; i < to && i < OI_VF; i++)
        all[i] = p[i];
    return vld1q_f32(all);
}

/* The first n floats. */
static inline void oi_vf_store_some(float *p, oi_vf v, int64_t n)
{
    float all[OI_VF];
    vst1q_f32(all, v);
    for (int64_t i = 0; i < n; i++)
        p[i] = all[i];
}

/* The sum of all lanes, always in this order. */
static inline float oi_vf_total(oi_vf v)
{
    return vaddvq_f32(v);
}

/* The sums of four vectors, each always in this order. */
static inline void oi_vf_total_four(const oi_vf v[4], float *sums)
{
    vst1q_f32(sums, vpaddq_f32(vpaddq_f32(v[0], v[1]), vpaddq_f32(v[2], v[3])));
}

static inline float oi_vf_largest(oi_vf v)
{
    return vmaxvq_f32(v);
}

/* Rows become columns. */
static inline void oi_vf_transpose(oi_vf v[OI_VF])
{
    const float32x4x2_t a = vtrnq_f32(v[0], v[1]), b = vtrnq_f32(v[2], v[3]);
    v[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    v[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    v[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    v[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
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
    __builtin_prefetch(p);
}

/* -- integers -- */

static inline oi_vi oi_vi_zero(void)
{
    return vdupq_n_s32(0);
}

static inline oi_vi oi_vi_load(const void *p)
{
    return vreinterpretq_s32_u8(vld1q_u8((const uint8_t *)p));
}

static inline void oi_vi_store(void *p, oi_vi v)
{
    vst1q_s32(p, v);
}

static inline oi_vi oi_vi_set(int32_t x)
{
    return vdupq_n_s32(x);
}

static inline oi_vi oi_vi_add(oi_vi a, oi_vi b)
{
    return vaddq_s32(a, b);
}

static inline oi_vf oi_vf_of_vi(oi_vi v)
{
    return vcvtq_f32_s32(v);
}

/* To the nearest, of two to the even one. */
static inline oi_vi oi_vi_of_vf(oi_vf v)
{
    return vcvtnq_s32_f32(v);
}

/* 2^n for n within -126 ... 127 */
static inline oi_vf oi_vf_power_of_2(oi_vi n)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}

/* x * 2^n for whole n within -252 ... 254 */
static inline oi_vf oi_vf_times_2_to(oi_vf x, oi_vf n)
{
    const oi_vi k = oi_vi_of_vf(n), half = vshrq_n_s32(k, 1);
    return oi_vf_mul(oi_vf_mul(x, oi_vf_power_of_2(half)), oi_vf_power_of_2(vsubq_s32(k, half)));
}

/* The lower, or upper, half of every byte. */
static inline oi_vi oi_vi_low4(oi_vi v)
{
    return vreinterpretq_s32_u8(vandq_u8(vreinterpretq_u8_s32(v), vdupq_n_u8(15)));
}

static inline oi_vi oi_vi_high4(oi_vi v)
{
    return vreinterpretq_s32_u8(vshrq_n_u8(vreinterpretq_u8_s32(v), 4));
}

/* The bits from `shift` on that `mask` keeps, of every lane. */
static inline oi_vi oi_vi_bits(oi_vi v, int shift, int32_t mask)
{
    const uint32x4_t moved = vshlq_u32(vreinterpretq_u32_s32(v), vdupq_n_s32(-shift));
    return vandq_s32(vreinterpretq_s32_u32(moved), vdupq_n_s32(mask));
}

/* The byte from `shift` on of every lane, with its sign. */
static inline oi_vi oi_vi_byte(oi_vi v, int shift)
{
    return vshrq_n_s32(vshlq_s32(v, vdupq_n_s32(24 - shift)), 24);
}

/* The same four bytes in every lane. */
static inline oi_vi oi_vi_four(const int8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return vdupq_n_s32(four);
}

/* Pairs of numbers of 16 bits, none of both -32768: sum + their two products. */
static inline oi_vi oi_vi_dot_i16(oi_vi sum, oi_vi w, oi_vi x)
{
    const int16x8_t a = vreinterpretq_s16_s32(w), b = vreinterpretq_s16_s32(x);
    const int32x4_t low = vmull_s16(vget_low_s16(a), vget_low_s16(b));
    return vaddq_s32(sum, vpaddq_s32(low, vmull_high_s16(a, b)));
}

/* What is kept in vectors for later lies in memory from here on: a loop that needs all registers
 * follows. */
static inline __attribute__((always_inline)) void oi_vi_clear(void) {}

#endif
