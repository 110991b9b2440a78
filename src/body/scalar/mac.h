/* mac.h: the steps of products of small integers, in plain C. */
#ifndef OI_RECIPE_SCALAR_MAC_H
#define OI_RECIPE_SCALAR_MAC_H

#include <stdint.h>

/* What a strip holds; how many of them a step takes of each operand. */
typedef int16_t oi_mac_number;

enum { OI_MAC_RUN = 4 };

/* Sums of two filters at two places. */
typedef struct oi_mac_sums {
    int32_t a0, a1, b0, b1; /* place a or b, filter 0 or 1 */
} oi_mac_sums;

/* Runs of 4 * steps numbers of place a times two filters. w: of every four numbers 0, 2, 1 and 3 of
 * the one filter, then of the other. */
static inline __attribute__((always_inline)) oi_mac_sums oi_mac_one(const oi_mac_number *a,
                                                                    const int8_t *w, int32_t steps,
                                                                    oi_mac_sums s)
{
    for (int32_t i = 0; i < steps; i++, a += 4, w += 8) {
        s.a0 += a[0] * w[0] + a[1] * w[2] + a[2] * w[1] + a[3] * w[3];
        s.a1 += a[0] * w[4] + a[1] * w[6] + a[2] * w[5] + a[3] * w[7];
    }
    return s;
}

/* Two places, and `rows` runs of either, each `skip` numbers after the end of the one before. */
static inline __attribute__((always_inline)) oi_mac_sums oi_mac_two(const oi_mac_number *a,
                                                                    const oi_mac_number *b,
                                                                    const int8_t *w, int32_t steps,
                                                                    int32_t rows, int32_t skip,
                                                                    oi_mac_sums s)
{
    for (int32_t r = 0; r < rows; r++, a += skip, b += skip)
        for (int32_t i = 0; i < steps; i++, a += 4, b += 4, w += 8) {
            s.a0 += a[0] * w[0] + a[1] * w[2] + a[2] * w[1] + a[3] * w[3];
            s.a1 += a[0] * w[4] + a[1] * w[6] + a[2] * w[5] + a[3] * w[7];
            s.b0 += b[0] * w[0] + b[1] * w[2] + b[2] * w[1] + b[3] * w[3];
            s.b1 += b[0] * w[4] + b[1] * w[6] + b[2] * w[5] + b[3] * w[7];
        }
    return s;
}

/* n bytes as the strip has them. */
static inline void oi_mac_copy(const int8_t *x, oi_mac_number *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = x[i];
}

/* Interleaves n bytes of a and of b; each pair is `step` numbers after the one before. */
static inline void oi_mac_weave(const int8_t *a, const int8_t *b, oi_mac_number *out, int32_t step,
                                int32_t n)
{
    for (int32_t i = 0; i < n; i++, out += step) {
        out[0] = a[i];
        out[1] = b[i];
    }
}

/* Two numbers side by side, as one word. */
static inline uint32_t oi_mac_pair(const oi_mac_number *x)
{
    return (uint16_t)x[0] | (uint32_t)(uint16_t)x[1] << 16;
}

/* sum + the products of the two numbers in either word. */
static inline int32_t oi_mac_dual(uint32_t x, uint32_t w, int32_t sum)
{
    return sum + (int16_t)x * (int16_t)w + (int16_t)(x >> 16) * (int16_t)(w >> 16);
}

#endif
