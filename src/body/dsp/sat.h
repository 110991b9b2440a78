/* sat.h: casts to narrow integers as one instruction. They take the place of the helpers of the
 * same names in plain C: compilers see no such instruction in comparisons. */
#ifndef OI_RECIPE_DSP_SAT_H
#define OI_RECIPE_DSP_SAT_H

#include <stdint.h>

static inline int8_t oi_sat_i8_i64(int64_t v)
{
    int32_t n = (int32_t)v;
    if (n != v)
        return v < 0 ? INT8_MIN : INT8_MAX;
    __asm__("ssat %0, #8, %0" : "+r"(n));
    return (int8_t)n;
}

static inline uint8_t oi_sat_u8_i64(int64_t v)
{
    int32_t n = (int32_t)v;
    if (n != v)
        return v < 0 ? 0 : UINT8_MAX;
    __asm__("usat %0, #8, %0" : "+r"(n));
    return (uint8_t)n;
}

static inline int16_t oi_sat_i16_i64(int64_t v)
{
    int32_t n = (int32_t)v;
    if (n != v)
        return v < 0 ? INT16_MIN : INT16_MAX;
    __asm__("ssat %0, #16, %0" : "+r"(n));
    return (int16_t)n;
}

#endif
