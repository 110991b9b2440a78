/* scalar.h: the helpers of the meaning language, spelled in C.
 *
 * oi_HELPER_TYPE(...) is what a row of ops/ops.json means by helper(...) on that element type: the
 * one place where NaN, rounding, overflow and division by zero are decided for C. Included by the
 * generated kernels, and text that emitted C can carry along: it needs libm and nothing else.
 *
 * Packed types (i1 ... u4, t1, t2) are computed in (u)int8_t, sign- or zero-extended; narrow floats
 * (f8, bf16, f16) in float. */
#ifndef OI_SCALAR_H
#define OI_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "body/math.h"

/* -- floats -- */

/* The bits that both, or either, of two floats have. */
#define OI_FLOAT_BITS(t, T)                                   \
    static inline T oi_both_##t(T x, T y)                     \
    {                                                         \
        return oi_float_##t(oi_bits_##t(x) & oi_bits_##t(y)); \
    }                                                         \
    static inline T oi_either_##t(T x, T y)                   \
    {                                                         \
        return oi_float_##t(oi_bits_##t(x) | oi_bits_##t(y)); \
    }
OI_FLOAT_BITS(f32, float)
OI_FLOAT_BITS(f64, double)

#define OI_FLOAT_HELPERS(t, T, f)                                                                  \
    static inline uint8_t oi_is_nan_##t(T x)                                                       \
    {                                                                                              \
        return x != x;                                                                             \
    }                                                                                              \
    static inline uint8_t oi_is_inf_##t(T x)                                                       \
    {                                                                                              \
        return fabs##f(x) == (T)INFINITY;                                                          \
    }                                                                                              \
    static inline uint8_t oi_is_finite_##t(T x)                                                    \
    {                                                                                              \
        return fabs##f(x) < (T)INFINITY;                                                           \
    }                                                                                              \
    static inline T oi_lowest_##t(void)                                                            \
    {                                                                                              \
        return -(T)INFINITY;                                                                       \
    }                                                                                              \
    static inline T oi_highest_##t(void)                                                           \
    {                                                                                              \
        return (T)INFINITY;                                                                        \
    }                                                                                              \
    /* NaN wins; of two zeros the positive one: equal numbers have equal bits but for that sign */ \
    /* (in words that gcc 13, too, makes vectors of) */                                            \
    static inline T oi_max_##t(T x, T y)                                                           \
    {                                                                                              \
        const T z = x == y ? oi_both_##t(x, y) : x;                                                \
        return z < y ? y : y != y ? y : z;                                                         \
    }                                                                                              \
    static inline T oi_min_##t(T x, T y)                                                           \
    {                                                                                              \
        const T z = x == y ? oi_either_##t(x, y) : x;                                              \
        return z > y ? y : y != y ? y : z;                                                         \
    }                                                                                              \
    /* a NaN gives way to the other operand */                                                     \
    static inline T oi_max_num_##t(T x, T y)                                                       \
    {                                                                                              \
        return x != x ? y : y != y ? x : oi_max_##t(x, y);                                         \
    }                                                                                              \
    static inline T oi_min_num_##t(T x, T y)                                                       \
    {                                                                                              \
        return x != x ? y : y != y ? x : oi_min_##t(x, y);                                         \
    }                                                                                              \
    static inline T oi_abs_##t(T x)                                                                \
    {                                                                                              \
        return fabs##f(x);                                                                         \
    }                                                                                              \
    static inline T oi_floor_##t(T x)                                                              \
    {                                                                                              \
        return floor##f(x);                                                                        \
    }                                                                                              \
    static inline T oi_ceil_##t(T x)                                                               \
    {                                                                                              \
        return ceil##f(x);                                                                         \
    }                                                                                              \
    static inline T oi_trunc_##t(T x)                                                              \
    {                                                                                              \
        return trunc##f(x);                                                                        \
    }                                                                                              \
    static inline T oi_round_even_##t(T x)                                                         \
    {                                                                                              \
        return rint##f(x);                                                                         \
    }                                                                                              \
    /* the cut-off part is exact; adding a signed zero keeps -0 */                                 \
    static inline T oi_round_away_##t(T x)                                                         \
    {                                                                                              \
        T whole = trunc##f(x);                                                                     \
        return whole + copysign##f(fabs##f(x - whole) >= (T)0.5 ? (T)1 : (T)0, x);                 \
    }                                                                                              \
    static inline T oi_fma_##t(T x, T y, T z)                                                      \
    {                                                                                              \
        return fma##f(x, y, z);                                                                    \
    }                                                                                              \
    static inline T oi_fmod_##t(T x, T y)                                                          \
    {                                                                                              \
        return fmod##f(x, y);                                                                      \
    }                                                                                              \
    static inline T oi_sqrt_##t(T x)                                                               \
    {                                                                                              \
        return sqrt##f(x);                                                                         \
    }

OI_FLOAT_HELPERS(f32, float, f)
OI_FLOAT_HELPERS(f64, double, )

/* -- narrow floats: stored bits, nearest even, overflow to infinity, NaN canonical -- */

/* Mantissa and exponent moved into place read as a float that is 2^112 too small, subnormals
 * included; infinity and NaN keep their exponent. */
static inline float oi_f32_of_f16(uint16_t h)
{
    uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
    float v = oi_float_f32(magnitude) * 0x1p112f;
    uint32_t special = (h & 0x7c00) == 0x7c00 ? 0x7f800000u : 0;
    return oi_float_f32(oi_bits_f32(v) | special | sign);
}

static inline float oi_f32_of_bf16(uint16_t h)
{
    return oi_float_f32((uint32_t)h << 16);
}

static inline float oi_f32_of_f8(uint8_t h) /* the upper half of an f16 */
{
    return oi_f32_of_f16((uint16_t)(h << 8));
}

/* Rounds magnitude u (bits of a float) to 5 exponent and `man` mantissa bits. Subnormals: adding
 * the float whose last bit is the smallest subnormal rounds in hardware. */
static inline uint32_t oi_round_e5(uint32_t u, unsigned man, uint32_t overflow, float subnormal)
{
    unsigned drop = 23 - man;
    uint32_t small = oi_bits_f32(oi_float_f32(u) + subnormal) - oi_bits_f32(subnormal);
    uint32_t normal = (u - (112u << 23) + ((1u << (drop - 1)) - 1) + (u >> drop & 1)) >> drop;
    uint32_t finite = u < 0x38800000u ? small : normal;
    return u >= overflow ? 31u << man : finite;
}

static inline uint16_t oi_near_f16_f32(float v)
{
    uint32_t u = oi_bits_f32(v), magnitude = u & 0x7fffffffu;
    uint32_t bits = oi_round_e5(magnitude, 10, 0x477ff000u, 0.5f) | (u >> 16 & 0x8000u);
    return (uint16_t)(magnitude > 0x7f800000u ? 0x7e00u : bits);
}

static inline uint8_t oi_near_f8_f32(float v)
{
    uint32_t u = oi_bits_f32(v), magnitude = u & 0x7fffffffu;
    uint32_t bits = oi_round_e5(magnitude, 2, 0x47700000u, 128.0f) | (u >> 24 & 0x80u);
    return (uint8_t)(magnitude > 0x7f800000u ? 0x7du : bits);
}

static inline uint16_t oi_near_bf16_f32(float v)
{
    uint32_t u = oi_bits_f32(v), rounded = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

/* A wider number on its way to a narrow float passes through a float rounded to odd: what was cut
 * off stays visible in the last bit, so that no tie is decided twice. */
static inline float oi_odd_f64(double v)
{
    float f = (float)v;
    uint32_t u = oi_bits_f32(f);
    if (f != v && f == f && !(u & 1)) /* the odd neighbour lies on v's side */
        u += fabs((double)f) < fabs(v) ? 1u : ~0u;
    return oi_float_f32(u);
}

static inline float oi_odd_u64(uint64_t v)
{
    unsigned shift = 0;
    while (v >> shift >= 1u << 24)
        shift++;
    uint64_t kept = v >> shift;
    return (float)((kept | (kept << shift != v)) << shift);
}

static inline float oi_odd_i64(int64_t v)
{
    return v < 0 ? -oi_odd_u64(0 - (uint64_t)v) : oi_odd_u64((uint64_t)v);
}

#define OI_NEAR_NARROW(t, T)                      \
    static inline T oi_near_##t##_f64(double v)   \
    {                                             \
        return oi_near_##t##_f32(oi_odd_f64(v));  \
    }                                             \
    static inline T oi_near_##t##_i64(int64_t v)  \
    {                                             \
        return oi_near_##t##_f32(oi_odd_i64(v));  \
    }                                             \
    static inline T oi_near_##t##_u64(uint64_t v) \
    {                                             \
        return oi_near_##t##_f32(oi_odd_u64(v));  \
    }

OI_NEAR_NARROW(f8, uint8_t)
OI_NEAR_NARROW(bf16, uint16_t)
OI_NEAR_NARROW(f16, uint16_t)

/* -- integers -- */

static inline int oi_ones(uint64_t v)
{
    v = v - (v >> 1 & 0x5555555555555555u);
    v = (v & 0x3333333333333333u) + (v >> 2 & 0x3333333333333333u);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (int)(v * 0x0101010101010101u >> 56);
}

/* Division by zero gives 0; the lowest value divided by -1 wraps to itself. `w` is the width. */
#define OI_INT_HELPERS(t, T, U, w, lo, hi)                                 \
    static inline T oi_lowest_##t(void)                                    \
    {                                                                      \
        return (T)(lo);                                                    \
    }                                                                      \
    static inline T oi_highest_##t(void)                                   \
    {                                                                      \
        return (T)(hi);                                                    \
    }                                                                      \
    static inline T oi_max_##t(T x, T y)                                   \
    {                                                                      \
        return x > y ? x : y;                                              \
    }                                                                      \
    static inline T oi_min_##t(T x, T y)                                   \
    {                                                                      \
        return x < y ? x : y;                                              \
    }                                                                      \
    static inline uint8_t oi_popcount_##t(T x)                             \
    {                                                                      \
        return (uint8_t)oi_ones((uint64_t)x & (~(uint64_t)0 >> (64 - w))); \
    }                                                                      \
    static inline T oi_shl_##t(T x, int64_t n)                             \
    {                                                                      \
        return n >= 0 && n < w ? oi_cut_##t((U)x << n) : 0;                \
    }

/* full widths are cut by conversion */
#define OI_CUT(t, T, U)             \
    static inline T oi_cut_##t(U v) \
    {                               \
        return (T)v;                \
    }
OI_CUT(i8, int8_t, uint32_t)
OI_CUT(i16, int16_t, uint32_t)
OI_CUT(i32, int32_t, uint32_t)
OI_CUT(i64, int64_t, uint64_t)
OI_CUT(u8, uint8_t, uint32_t)
OI_CUT(u16, uint16_t, uint32_t)
OI_CUT(u32, uint32_t, uint32_t)
OI_CUT(u64, uint64_t, uint64_t)
OI_CUT(bitset, uint8_t, uint32_t)

#define OI_CUT_SIGNED(t, w)                                                                   \
    static inline int8_t oi_cut_##t(uint32_t v)                                               \
    {                                                                                         \
        return (int8_t)((int32_t)((v & ((1u << w) - 1)) ^ (1u << (w - 1))) - (1 << (w - 1))); \
    }
OI_CUT_SIGNED(i1, 1)
OI_CUT_SIGNED(i2, 2)
OI_CUT_SIGNED(i4, 4)

#define OI_CUT_UNSIGNED(t, w)                    \
    static inline uint8_t oi_cut_##t(uint32_t v) \
    {                                            \
        return (uint8_t)(v & ((1u << w) - 1));   \
    }
OI_CUT_UNSIGNED(u1, 1)
OI_CUT_UNSIGNED(u2, 2)
OI_CUT_UNSIGNED(u4, 4)

#define OI_SIGNED_HELPERS(t, T, U, w, lo, hi)                                               \
    OI_INT_HELPERS(t, T, U, w, lo, hi)                                                      \
    static inline T oi_abs_##t(T x)                                                         \
    {                                                                                       \
        return x < 0 ? oi_cut_##t((U)0 - (U)x) : x;                                         \
    }                                                                                       \
    static inline T oi_idiv_##t(T x, T y)                                                   \
    {                                                                                       \
        return y == 0 ? 0 : y == -1 ? oi_cut_##t((U)0 - (U)x) : (T)(x / y);                 \
    }                                                                                       \
    static inline T oi_irem_##t(T x, T y)                                                   \
    {                                                                                       \
        return y == 0 || y == -1 ? 0 : (T)(x % y);                                          \
    }                                                                                       \
    static inline T oi_floor_div_##t(T x, T y)                                              \
    {                                                                                       \
        T rest = oi_irem_##t(x, y);                                                         \
        return (T)(oi_idiv_##t(x, y) - (rest != 0 && (rest < 0) != (y < 0)));               \
    }                                                                                       \
    static inline T oi_shr_##t(T x, int64_t n) /* beyond the width only the sign is left */ \
    {                                                                                       \
        return n >= 0 && n < w ? (T)(x >> n) : (T)(x < 0 ? -1 : 0);                         \
    }

#define OI_UNSIGNED_HELPERS(t, T, U, w, lo, hi)   \
    OI_INT_HELPERS(t, T, U, w, lo, hi)            \
    static inline T oi_idiv_##t(T x, T y)         \
    {                                             \
        return y == 0 ? 0 : (T)(x / y);           \
    }                                             \
    static inline T oi_irem_##t(T x, T y)         \
    {                                             \
        return y == 0 ? 0 : (T)(x % y);           \
    }                                             \
    static inline T oi_floor_div_##t(T x, T y)    \
    {                                             \
        return oi_idiv_##t(x, y);                 \
    }                                             \
    static inline T oi_shr_##t(T x, int64_t n)    \
    {                                             \
        return n >= 0 && n < w ? (T)(x >> n) : 0; \
    }

OI_SIGNED_HELPERS(i1, int8_t, uint32_t, 1, -1, 0)
OI_SIGNED_HELPERS(i2, int8_t, uint32_t, 2, -2, 1)
OI_SIGNED_HELPERS(i4, int8_t, uint32_t, 4, -8, 7)
OI_SIGNED_HELPERS(i8, int8_t, uint32_t, 8, INT8_MIN, INT8_MAX)
OI_SIGNED_HELPERS(i16, int16_t, uint32_t, 16, INT16_MIN, INT16_MAX)
OI_SIGNED_HELPERS(i32, int32_t, uint32_t, 32, INT32_MIN, INT32_MAX)
OI_SIGNED_HELPERS(i64, int64_t, uint64_t, 64, INT64_MIN, INT64_MAX)
OI_UNSIGNED_HELPERS(u1, uint8_t, uint32_t, 1, 0, 1)
OI_UNSIGNED_HELPERS(u2, uint8_t, uint32_t, 2, 0, 3)
OI_UNSIGNED_HELPERS(u4, uint8_t, uint32_t, 4, 0, 15)
OI_UNSIGNED_HELPERS(u8, uint8_t, uint32_t, 8, 0, UINT8_MAX)
OI_UNSIGNED_HELPERS(u16, uint16_t, uint32_t, 16, 0, UINT16_MAX)
OI_UNSIGNED_HELPERS(u32, uint32_t, uint32_t, 32, 0, UINT32_MAX)
OI_UNSIGNED_HELPERS(u64, uint64_t, uint64_t, 64, 0, UINT64_MAX)
OI_UNSIGNED_HELPERS(bitset, uint8_t, uint32_t, 8, 0, UINT8_MAX)

/* -- conversions: sat(x) to the nearest limit, wrap(x) modulo 2^width -- */

/* A float without its fraction, modulo 2^32 and 2^64. NaN and infinities give 0. */
static inline uint32_t oi_modulo_u32_f32(float v)
{
    uint32_t u = oi_bits_f32(v), e = u >> 23 & 0xffu, m = (u & 0x7fffffu) | 0x800000u;
    uint32_t down = e < 150 ? 150 - e : 0, up = e > 150 ? e - 150 : 0;
    m = (down > 31 ? 0 : m >> (down & 31u)) << (up & 31u);
    m = up > 31 ? 0 : m;
    return v < 0 ? 0 - m : m;
}

static inline uint64_t oi_modulo_u64_f32(float v)
{
    uint32_t u = oi_bits_f32(v), e = u >> 23 & 0xffu, m = (u & 0x7fffffu) | 0x800000u;
    uint32_t down = e < 150 ? 150 - e : 0, up = e > 150 ? e - 150 : 0;
    uint64_t whole = (uint64_t)(down > 31 ? 0 : m >> (down & 31u)) << (up & 63u);
    whole = up > 63 ? 0 : whole;
    return v < 0 ? 0 - whole : whole;
}

static inline uint64_t oi_modulo_u64_f64(double v)
{
    if (!(fabs(v) < (double)INFINITY))
        return 0;
    double rest = fmod(v, 0x1p64);
    return rest < 0 ? 0 - (uint64_t)-rest : (uint64_t)rest;
}

static inline uint32_t oi_modulo_u32_f64(double v)
{
    return (uint32_t)oi_modulo_u64_f64(v);
}

/* Limits within 32 bits are compared there: what was widened from so many bits never leaves them.
 */
#define OI_SAT_SMALL(t, T, lo, hi)              \
    static inline T oi_sat_##t##_i64(int64_t v) \
    {                                           \
        int32_t n = (int32_t)v;                 \
        if (n != v)                             \
            return v < 0 ? (T)(lo) : (T)(hi);   \
        n = n < (lo) ? (lo) : n;                \
        return (T)(n > (hi) ? (hi) : n);        \
    }

#define OI_SAT_WIDE(t, T, lo, hi)                                 \
    static inline T oi_sat_##t##_i64(int64_t v)                   \
    {                                                             \
        return v < (int64_t)(lo)                        ? (T)(lo) \
               : v >= 0 && (uint64_t)v > (uint64_t)(hi) ? (T)(hi) \
                                                        : (T)v;   \
    }

#define OI_TYPE_u32 uint32_t
#define OI_TYPE_u64 uint64_t
/* From the widest type of each kind: C widens the others by itself. `top` is hi + 1. */
#define OI_CONVERSIONS(size, t, T, lo, hi, top, U)                           \
    OI_SAT_##size(t, T, lo, hi) static inline T oi_sat_##t##_u64(uint64_t v) \
    {                                                                        \
        return v > (uint64_t)(hi) ? (T)(hi) : (T)v;                          \
    }                                                                        \
    static inline T oi_wrap_##t##_i64(int64_t v)                             \
    {                                                                        \
        return oi_cut_##t((OI_TYPE_##U)v);                                   \
    }                                                                        \
    static inline T oi_wrap_##t##_u64(uint64_t v)                            \
    {                                                                        \
        return oi_cut_##t((OI_TYPE_##U)v);                                   \
    }                                                                        \
    OI_CONVERSIONS_OF(t, T, f32, float, lo, hi, top, U)                      \
    OI_CONVERSIONS_OF(t, T, f64, double, lo, hi, top, U)

/* limits are powers of two or small, so exact in a float */
#define OI_CONVERSIONS_OF(t, T, f, F, lo, hi, top, U)                                \
    static inline T oi_sat_##t##_##f(F v)                                            \
    {                                                                                \
        return v >= (F)(top) ? (T)(hi) : v <= (F)(lo) ? (T)(lo) : v == v ? (T)v : 0; \
    }                                                                                \
    static inline T oi_wrap_##t##_##f(F v)                                           \
    {                                                                                \
        return oi_cut_##t(oi_modulo_##U##_##f(v));                                   \
    }

OI_CONVERSIONS(SMALL, i1, int8_t, -1, 0, 1, u32)
OI_CONVERSIONS(SMALL, i2, int8_t, -2, 1, 2, u32)
OI_CONVERSIONS(SMALL, i4, int8_t, -8, 7, 8, u32)
OI_CONVERSIONS(SMALL, i8, int8_t, INT8_MIN, INT8_MAX, 0x1p7, u32)
OI_CONVERSIONS(SMALL, i16, int16_t, INT16_MIN, INT16_MAX, 0x1p15, u32)
OI_CONVERSIONS(WIDE, i32, int32_t, INT32_MIN, INT32_MAX, 0x1p31, u32)
OI_CONVERSIONS(WIDE, i64, int64_t, INT64_MIN, INT64_MAX, 0x1p63, u64)
OI_CONVERSIONS(SMALL, u1, uint8_t, 0, 1, 2, u32)
OI_CONVERSIONS(SMALL, u2, uint8_t, 0, 3, 4, u32)
OI_CONVERSIONS(SMALL, u4, uint8_t, 0, 15, 16, u32)
OI_CONVERSIONS(SMALL, u8, uint8_t, 0, UINT8_MAX, 0x1p8, u32)
OI_CONVERSIONS(SMALL, u16, uint16_t, 0, UINT16_MAX, 0x1p16, u32)
OI_CONVERSIONS(WIDE, u32, uint32_t, 0, UINT32_MAX, 0x1p32, u32)
OI_CONVERSIONS(WIDE, u64, uint64_t, 0, UINT64_MAX, 0x1p64, u64)

/* The ternaries never wrap: t1 takes the sign (0 and NaN are +1), t2 the nearest of -1, 0, 1. */
#define OI_TERNARY_OF(f, F)                      \
    static inline int8_t oi_sat_t1_##f(F v)      \
    {                                            \
        return v < 0 ? -1 : 1;                   \
    }                                            \
    static inline int8_t oi_sat_t2_##f(F v)      \
    {                                            \
        return v >= 1 ? 1 : v <= (F)-1 ? -1 : 0; \
    }                                            \
    static inline int8_t oi_wrap_t1_##f(F v)     \
    {                                            \
        return oi_sat_t1_##f(v);                 \
    }                                            \
    static inline int8_t oi_wrap_t2_##f(F v)     \
    {                                            \
        return oi_sat_t2_##f(v);                 \
    }

OI_TERNARY_OF(f32, float)
OI_TERNARY_OF(f64, double)
OI_TERNARY_OF(i64, int64_t)

static inline int8_t oi_sat_t1_u64(uint64_t v)
{
    (void)v;
    return 1;
}

static inline int8_t oi_sat_t2_u64(uint64_t v)
{
    return v != 0;
}

static inline int8_t oi_wrap_t1_u64(uint64_t v)
{
    return oi_sat_t1_u64(v);
}

static inline int8_t oi_wrap_t2_u64(uint64_t v)
{
    return oi_sat_t2_u64(v);
}

/* -- packed storage: element e of width w at bits e*w ..., least significant first -- */

static inline unsigned oi_bits_at(const uint8_t *p, int64_t e, unsigned width)
{
    int64_t bit = e * (int64_t)width;
    return (unsigned)(p[bit >> 3] >> (bit & 7)) & ((1u << width) - 1);
}

static inline void oi_set_bits(uint8_t *p, int64_t e, unsigned width, unsigned v)
{
    int64_t bit = e * (int64_t)width;
    unsigned shift = bit & 7, mask = ((1u << width) - 1) << shift;
    p[bit >> 3] = (uint8_t)((p[bit >> 3] & ~mask) | (v << shift & mask));
}

static inline int8_t oi_value_t1(unsigned bits)
{
    return bits ? 1 : -1;
}

static inline int8_t oi_value_t2(unsigned bits) /* 10 reads as -1 too */
{
    return bits == 1 ? 1 : bits ? -1 : 0;
}

static inline unsigned oi_bits_t1(int8_t v)
{
    return v >= 0;
}

static inline unsigned oi_bits_whole(int v)
{
    return (unsigned)v;
}

#define OI_PACKED(t, width, T, value, bits)                   \
    static inline T oi_get_##t(const uint8_t *p, int64_t e)   \
    {                                                         \
        return value(oi_bits_at(p, e, width));                \
    }                                                         \
    static inline void oi_put_##t(uint8_t *p, int64_t e, T v) \
    {                                                         \
        oi_set_bits(p, e, width, bits(v));                    \
    }
OI_PACKED(i1, 1, int8_t, oi_cut_i1, oi_bits_whole)
OI_PACKED(i2, 2, int8_t, oi_cut_i2, oi_bits_whole)
OI_PACKED(i4, 4, int8_t, oi_cut_i4, oi_bits_whole)
OI_PACKED(u1, 1, uint8_t, oi_cut_u1, oi_bits_whole)
OI_PACKED(u2, 2, uint8_t, oi_cut_u2, oi_bits_whole)
OI_PACKED(u4, 4, uint8_t, oi_cut_u4, oi_bits_whole)
OI_PACKED(t1, 1, int8_t, oi_value_t1, oi_bits_t1)
OI_PACKED(t2, 2, int8_t, oi_value_t2, oi_bits_whole)

/* -- positions -- */

/* An index found in data: a negative one counts from the end; -1 when it is out of range. */
#define OI_POSITION(t, T)                     \
    static inline T oi_position_##t(T i, T n) \
    {                                         \
        i = i < 0 ? i + n : i;                \
        return i < n && i >= 0 ? i : -1;      \
    }
OI_POSITION(i32, int32_t)
OI_POSITION(i64, int64_t)

static inline int64_t oi_position_u64(uint64_t i, int64_t n)
{
    return i < (uint64_t)n ? (int64_t)i : -1;
}

/* How many rows there are: n, but neither less than none nor more than all. */
static inline int64_t oi_rows(int64_t n, int64_t all)
{
    return n < 0 ? 0 : n < all ? n : all;
}

static inline int64_t oi_later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Where a thread's part of an axis begins: whole units, as even as they go. */
static inline int64_t oi_partition_begin(int64_t extent, int64_t unit, int64_t part, int64_t parts)
{
    int64_t at = (extent + unit - 1) / unit * part / parts * unit;
    return at < extent ? at : extent;
}

/* The end of a slice: a negative one counts from the size. */
static inline int64_t oi_end(int64_t end, int64_t size)
{
    return end < 0 ? end + size : end;
}

static inline int64_t oi_floor_mod(int64_t a, int64_t b) /* 0 where b is */
{
    int64_t r = b == 0 || b == -1 ? 0 : a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static inline int64_t oi_floor_quotient(int64_t a, int64_t b) /* 0 where b is */
{
    return b == 0 ? 0 : b == -1 ? -a : (a - oi_floor_mod(a, b)) / b;
}

/* Coordinates outside from ... to come back into it. */
static inline int64_t oi_bend_edge(int64_t v, int64_t from, int64_t to)
{
    return v < from ? from : v >= to ? to - 1 : v;
}

static inline int64_t oi_bend_wrap(int64_t v, int64_t from, int64_t to)
{
    return from + oi_floor_mod(v - from, to - from);
}

/* Mirrored at the first and the last, which are not repeated. */
static inline int64_t oi_bend_reflect(int64_t v, int64_t from, int64_t to)
{
    int64_t n = to - from, period = n > 1 ? 2 * (n - 1) : 1;
    int64_t r = oi_floor_mod(v - from, period);
    return from + (r < n ? r : period - r);
}

#endif
