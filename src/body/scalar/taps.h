/* taps.h: filters with a channel of their own, where there are no vectors: pairs of numbers. */
#ifndef OI_BODY_SCALAR_TAPS_H
#define OI_BODY_SCALAR_TAPS_H

#if defined(__ARM_FEATURE_DSP)
#include "body/dsp/mac.h"
#else
#include "body/scalar/mac.h"
#endif

/* Places whose sums are made together. */
enum { OI_MAC_PLACES = 1 };

/* One filter at one place: rows of kw numbers, pitch apart. The words of w: pairs of a row, then
 * what is left of it. */
static inline __attribute__((always_inline)) void oi_mac_taps(const oi_mac_number *x,
                                                              const uint32_t *w, int32_t kh,
                                                              int32_t kw, int32_t pitch,
                                                              int32_t stride, int32_t *sums)
{
    int32_t sum = 0;
    (void)stride;
#pragma GCC unroll 8
    for (int32_t r = 0; r < kh; r++, x += pitch, w += (kw + 1) / 2) {
#pragma GCC unroll 8
        for (int32_t k = 0; k + 1 < kw; k += 2)
            sum = oi_mac_dual(oi_mac_pair(x + k), w[k / 2], sum);
        if (kw % 2)
            sum += x[kw - 1] * (int16_t)w[kw / 2];
    }
    sums[0] = sum;
}

#endif
