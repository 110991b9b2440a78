/* fft.h: what Fourier transforms of both number types share, and the roots of unity for each.
 * fft.h.in has the transforms; the build makes fft_f32.h and fft_f64.h of it. Text that the
 * simulator compiles and emitted C carries along (tools/helpergen.c): names begin with oi_, blocks
 * end at empty lines. */
#ifndef OI_FFT_H
#define OI_FFT_H

#include "body/scalar.h"

/* Beyond, a convolution is cheaper than the sums of one radix. It also loses some bits, of which
 * f32 has fewer to spare. */
enum { OI_FFT_PRIME_f64 = 61 };

enum { OI_FFT_PRIME_f32 = 127 };

/* cos and sin of -2 pi k / n for 0 <= k < n, exact at the quarters */
static inline void oi_fft_root_f64(int64_t k, int64_t n, double *re, double *im)
{
    double angle = 2 * 3.14159265358979323846 * (double)k / (double)n;
    int is_quarter = 4 * k % n == 0;
    int64_t quarter = 4 * k / n;
    *re = !is_quarter ? cos(angle) : quarter == 0 ? 1 : quarter == 2 ? -1 : 0;
    *im = !is_quarter ? -sin(angle) : quarter == 1 ? -1 : quarter == 3 ? 1 : 0;
}

/* The same in f32 alone: whole quarters are taken off in integers, and the rest is an angle of two
 * floats. */
static inline void oi_fft_root_f32(int64_t k, int64_t n, float *re, float *im)
{
    int64_t quarter = (8 * k + n) / (2 * n), rest = 4 * k - quarter * n;
    float a = (float)rest, b = (float)n;
    oi_pair part = oi_pair_quotient((oi_pair){.hi = a, .lo = (float)(rest - (int64_t)a)},
                                    (oi_pair){.hi = b, .lo = (float)(n - (int64_t)b)});
    oi_pair angle = oi_pair_product(part.hi, 1.57079637f);
    angle = oi_pair_sum(angle.hi, angle.lo + (part.lo * 1.57079637f + part.hi * -4.37113883e-08f));
    oi_turn t = {.hi = angle.hi, .lo = angle.lo, .quarter = (uint32_t)quarter};
    *im = -oi_sin_of_turn(t);
    t.quarter++;
    *re = oi_sin_of_turn(t);
}

#endif
