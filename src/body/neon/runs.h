/* runs.h: channels of bytes become numbers of 16 bits, place by place. */
#ifndef OI_RECIPE_RUNS_H
#define OI_RECIPE_RUNS_H

#include <stdint.h>

/* Eight places of 16 or 8 channels, `plane` bytes apart: runs of them, `step` numbers apart, less
 * `zero`. */
static inline __attribute__((always_inline)) void oi_vi_runs(const void *x, int64_t plane,
                                                             int64_t c, int64_t is_unsigned,
                                                             int32_t zero, int16_t *out,
                                                             int64_t step)
{
    for (int64_t k = 0; k < c; k++)
        for (int64_t i = 0; i < 8; i++) {
            const uint8_t byte = ((const uint8_t *)x)[k * plane + i];
            out[i * step + k] = (int16_t)((is_unsigned ? byte : (int8_t)byte) - zero);
        }
}

/* Eight places of the rows a and b, less `zero`: pairs of them, of which `keep` keeps bits. */
static inline __attribute__((always_inline)) void oi_vi_two_rows(const void *a, const void *b,
                                                                 int64_t is_unsigned, int32_t zero,
                                                                 int32_t keep, int32_t *out)
{
    const uint8_t *p = a, *q = b;
    for (int64_t i = 0; i < 8; i++) {
        const uint32_t low = (uint32_t)((is_unsigned ? p[i] : (int8_t)p[i]) - zero);
        const uint32_t high = (uint32_t)((is_unsigned ? q[i] : (int8_t)q[i]) - zero);
        out[i] = (int32_t)(((low & 0xffff) | high << 16) & (uint32_t)keep);
    }
}

#endif
