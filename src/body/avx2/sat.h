/* sat.h: casts to bytes, halves, and limits that are literals, as compilers see vectors in them.
 * They take the place of the helpers of the same names in plain C. */
#ifndef OI_RECIPE_AVX2_SAT_H
#define OI_RECIPE_AVX2_SAT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline int8_t oi_sat_i8_f32(float v)
{
    const float low = v > -128.0f ? v : -128.0f;
    const int32_t n = (int32_t)(low < 127.0f ? low : 127.0f);
    return (int8_t)(v == v ? n : 0);
}

static inline uint8_t oi_sat_u8_f32(float v)
{
    const float low = v > 0.0f ? v : 0.0f; /* of a NaN, too */
    return (uint8_t)(int32_t)(low < 255.0f ? low : 255.0f);
}

/* What is short of a half by the last bit reaches the next whole number from a half on. */
static inline float oi_round_away_f32(float x)
{
    return truncf(x + copysignf(0x1.fffffep-2f, x));
}

/* The bits of both, or of either. */
static inline float oi_sat_bits(float x, float y, int is_both)
{
    uint32_t a, b;
    memcpy(&a, &x, sizeof a);
    memcpy(&b, &y, sizeof b);
    a = is_both ? a & b : a | b;
    memcpy(&x, &a, sizeof x);
    return x;
}

/* -0 is below 0, and a NaN stays one. */
static inline __attribute__((always_inline)) float oi_min_f32(float x, float y)
{
    if (__builtin_constant_p(y) && y == y)
        return __builtin_signbit(y) ? (x >= y ? y : x) : x > y ? y : x;
    const float z = x == y ? oi_sat_bits(x, y, 0) : x;
    return z > y ? y : y != y ? y : z;
}

static inline __attribute__((always_inline)) float oi_max_f32(float x, float y)
{
    if (__builtin_constant_p(y) && y == y)
        return __builtin_signbit(y) ? (x < y ? y : x) : x <= y ? y : x;
    const float z = x == y ? oi_sat_bits(x, y, 1) : x;
    return z < y ? y : y != y ? y : z;
}

#endif
