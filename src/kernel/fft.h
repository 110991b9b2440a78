/* fft.h: discrete Fourier transforms of any length, in f64, in memory that the caller gives. */
#ifndef OI_FFT_H
#define OI_FFT_H

#include "base/base.h"

typedef struct oi_complex {
    double re, im;
} oi_complex;

/* A length and its tables; made once, then read by any number of transforms. */
typedef struct oi_fft {
    int64_t n;
    int64_t m; /* the power of 2 that a length with large prime factors goes through, or 0 */
    uint32_t n_factors;
    uint32_t factors[64];
    oi_complex *turns;      /* (n) or, through m, (m): e^(-2 pi i k / length) */
    oi_complex *chirp;      /* (n), through m only: e^(-pi i k^2 / n) */
    oi_complex *chirp_line; /* (m): its transform */
} oi_fft;

size_t oi_fft_table_bytes(int64_t n);                 /* for oi_fft_init */
size_t oi_fft_work_bytes(int64_t n);                  /* for each transform */
void oi_fft_init(oi_fft *f, int64_t n, void *tables); /* n >= 1 */
/* x (n) becomes its transform: sum of x[k] e^(-2 pi i jk / n); inverse with the sign turned round,
 * divided by n. */
void oi_fft_run(const oi_fft *f, oi_complex *x, bool inverse, void *work);

#endif
