/* taps.h: the elements and weights that an interpolated place is made of, along one axis. */
#ifndef OI_TAPS_H
#define OI_TAPS_H

#include <math.h>
#include <stdint.h>

typedef enum oi_tap_mode { OI_TAP_NEAREST, OI_TAP_LINEAR, OI_TAP_CUBIC } oi_tap_mode;

typedef struct oi_taps {
    int64_t first; /* of n elements that follow each other; may lie outside */
    int n;
    double weight[4];
} oi_taps;

/* Weights of the cubic convolution (Keys) at the fraction t, for the element before on. */
static inline void oi_taps_cubic(double a, double t, double w[4])
{
    double u = 1 - t;
    w[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * u - (a + 3)) * u * u + 1;
    w[3] = ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a;
}

/* Linear and cubic around a place; nearest is rounded by whoever knows how. */
static inline oi_taps oi_taps_at(oi_tap_mode mode, double a, double place)
{
    double low = floor(place), t = place - low;
    oi_taps taps = {.first = (int64_t)low, .n = 2, .weight = {1 - t, t}};
    if (mode == OI_TAP_NEAREST) {
        taps.n = 1;
        taps.weight[0] = 1;
    } else if (mode == OI_TAP_CUBIC) {
        taps.first -= 1;
        taps.n = 4;
        oi_taps_cubic(a, t, taps.weight);
    }
    return taps;
}

#endif
