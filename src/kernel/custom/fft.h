/* fft.h: discrete Fourier transforms of any length, in f64, in memory that the caller gives: mixed
 * radix (Stockham, no bit reversal) for lengths of small primes; others are a convolution with a
 * chirp of power-of-2 length (Bluestein). Then transforms of whole tensors, for emitted programs.
 * Text that the simulator compiles and emitted C carries along (tools/helpergen.c): names begin
 * with oi_, blocks end at empty lines. */
#ifndef OI_FFT_H
#define OI_FFT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Beyond, a convolution is cheaper than the sums of one radix. */
enum { OI_FFT_PRIME = 61 };

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

static inline oi_complex oi_complex_times(oi_complex a, oi_complex b)
{
    return (oi_complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* e^(-2 pi i k / n), exact at the eighths. */
static inline oi_complex oi_fft_twiddle(int64_t k, int64_t n)
{
    double angle = 2 * 3.14159265358979323846 * (double)k / (double)n;
    if (4 * k == n)
        return (oi_complex){0, -1};
    if (2 * k == n)
        return (oi_complex){-1, 0};
    if (4 * (n - k) == n)
        return (oi_complex){0, 1};
    return (oi_complex){cos(angle), -sin(angle)};
}

/* The prime factors of n up to OI_FFT_PRIME; what is left, 1 when that is all. */
static inline int64_t oi_fft_factor(int64_t n, uint32_t *factors, uint32_t *n_factors)
{
    *n_factors = 0;
    for (uint32_t p = 2; p <= OI_FFT_PRIME && n > 1; p++)
        while (n % p == 0) {
            int four = p == 2 && n % 4 == 0;
            factors[(*n_factors)++] = four ? 4 : p;
            n /= four ? 4 : p;
        }
    return n;
}

static inline int64_t oi_fft_chirp_length(int64_t n)
{
    uint32_t factors[64], n_factors;
    if (oi_fft_factor(n, factors, &n_factors) == 1)
        return 0;
    int64_t m = 1;
    while (m < 2 * n - 1)
        m *= 2;
    return m;
}

static inline size_t oi_fft_table_bytes(int64_t n)
{
    int64_t m = oi_fft_chirp_length(n);
    return (size_t)(m ? 2 * m + n + m : n) * sizeof(oi_complex);
}

static inline size_t oi_fft_work_bytes(int64_t n)
{
    int64_t m = oi_fft_chirp_length(n);
    return (size_t)(m ? 2 * m : n) * sizeof(oi_complex);
}

/* -- mixed radix -- */

/* Sums of one radix: b[k] = sum of a[r] e^(-2 pi i rk / p). `turns` has length n. */
static inline void oi_fft_butterfly(uint32_t p, const oi_complex *a, oi_complex *b,
                                    const oi_complex *turns, int64_t n)
{
    if (p == 2) {
        b[0] = (oi_complex){a[0].re + a[1].re, a[0].im + a[1].im};
        b[1] = (oi_complex){a[0].re - a[1].re, a[0].im - a[1].im};
        return;
    }
    if (p == 4) {
        oi_complex s = {a[0].re + a[2].re, a[0].im + a[2].im},
                   d = {a[0].re - a[2].re, a[0].im - a[2].im},
                   t = {a[1].re + a[3].re, a[1].im + a[3].im},
                   e = {a[1].re - a[3].re, a[1].im - a[3].im};
        b[0] = (oi_complex){s.re + t.re, s.im + t.im};
        b[1] = (oi_complex){d.re + e.im, d.im - e.re};
        b[2] = (oi_complex){s.re - t.re, s.im - t.im};
        b[3] = (oi_complex){d.re - e.im, d.im + e.re};
        return;
    }
    for (uint32_t k = 0; k < p; k++) {
        b[k] = a[0];
        for (uint32_t r = 1; r < p; r++) {
            oi_complex v = oi_complex_times(a[r], turns[(int64_t)(r * k % p) * (n / p)]);
            b[k].re += v.re;
            b[k].im += v.im;
        }
    }
}

/* x (length) through `factors`; `spare` is as large. */
static inline void oi_fft_stockham(oi_complex *x, oi_complex *spare, int64_t length,
                                   const oi_complex *turns, const uint32_t *factors,
                                   uint32_t n_factors)
{
    oi_complex *from = x, *to = spare, a[OI_FFT_PRIME], b[OI_FFT_PRIME];
    int64_t n = length, s = 1;
    for (uint32_t f = 0; f < n_factors; f++) {
        uint32_t p = factors[f];
        int64_t m = n / p;
        for (int64_t q = 0; q < m; q++)
            for (int64_t j = 0; j < s; j++) {
                for (uint32_t r = 0; r < p; r++)
                    a[r] = from[j + s * (q + m * r)];
                oi_fft_butterfly(p, a, b, turns, length);
                for (uint32_t k = 0; k < p; k++)
                    to[j + s * (p * q + k)] =
                        k && q ? oi_complex_times(b[k], turns[q * k * s]) : b[k];
            }
        oi_complex *swap = from;
        from = to;
        to = swap;
        n = m;
        s *= p;
    }
    if (from != x)
        memcpy(x, from, (size_t)length * sizeof *x);
}

/* -- any length -- */

static inline void oi_fft_init(oi_fft *f, int64_t n, void *tables)
{
    *f = (oi_fft){.n = n, .m = oi_fft_chirp_length(n), .turns = tables};
    int64_t length = f->m ? f->m : n;
    oi_fft_factor(length, f->factors, &f->n_factors);
    for (int64_t k = 0; k < length; k++)
        f->turns[k] = oi_fft_twiddle(k, length);
    if (!f->m)
        return;
    f->chirp = f->turns + f->m;
    f->chirp_line = f->chirp + n;
    oi_complex *spare = f->chirp_line + f->m;
    memset(f->chirp_line, 0, (size_t)f->m * sizeof *f->chirp_line);
    for (int64_t k = 0; k < n; k++) {
        /* k^2 modulo 2n, so that the angle stays small */
        uint64_t square = (uint64_t)k * (uint64_t)k % (2 * (uint64_t)n);
        f->chirp[k] = oi_fft_twiddle((int64_t)square, 2 * n);
        oi_complex back = {f->chirp[k].re, -f->chirp[k].im};
        f->chirp_line[k] = back;
        if (k)
            f->chirp_line[f->m - k] = back;
    }
    oi_fft_stockham(f->chirp_line, spare, f->m, f->turns, f->factors, f->n_factors);
}

static inline void oi_fft_through_chirp(const oi_fft *f, oi_complex *x, oi_complex *line)
{
    oi_complex *spare = line + f->m;
    memset(line, 0, (size_t)f->m * sizeof *line);
    for (int64_t k = 0; k < f->n; k++)
        line[k] = oi_complex_times(x[k], f->chirp[k]);
    oi_fft_stockham(line, spare, f->m, f->turns, f->factors, f->n_factors);
    for (int64_t k = 0; k < f->m; k++) { /* the inverse is the transform of the conjugate */
        line[k] = oi_complex_times(line[k], f->chirp_line[k]);
        line[k].im = -line[k].im;
    }
    oi_fft_stockham(line, spare, f->m, f->turns, f->factors, f->n_factors);
    for (int64_t k = 0; k < f->n; k++)
        x[k] = oi_complex_times((oi_complex){line[k].re / (double)f->m, -line[k].im / (double)f->m},
                                f->chirp[k]);
}

static inline void oi_fft_run(const oi_fft *f, oi_complex *x, int64_t inverse, void *work)
{
    for (int64_t k = 0; inverse && k < f->n; k++)
        x[k].im = -x[k].im;
    if (f->m)
        oi_fft_through_chirp(f, x, work);
    else
        oi_fft_stockham(x, work, f->n, f->turns, f->factors, f->n_factors);
    for (int64_t k = 0; inverse && k < f->n; k++)
        x[k] = (oi_complex){x[k].re / (double)f->n, -x[k].im / (double)f->n};
}

/* The other half of a spectrum whose signal is real. */
static inline void oi_fft_mirror(oi_complex *line, int64_t n)
{
    line[0].im = 0;
    for (int64_t k = 1; 2 * k < n; k++)
        line[n - k] = (oi_complex){line[k].re, -line[k].im};
    if (n % 2 == 0)
        line[n / 2].im = 0;
}

/* -- emitted programs: tensors of f64 that lie dense; complex numbers are a last axis of 2 -- */

/* How many doubles the bodies below need to work with. */
static inline int64_t oi_fft_room(int64_t n)
{
    return (int64_t)((oi_fft_table_bytes(n) + oi_fft_work_bytes(n)) / sizeof(double)) + 2 * n;
}

/* y (outer, m, inner, y_parts) = the transform of length n of the lines of x (outer, k, inner,
 * x_parts), which are cut or filled with 0. */
static inline void oi_dft(const double *x, double *y, double *work, int64_t outer, int64_t k,
                          int64_t inner, int64_t x_parts, int64_t n, int64_t m, int64_t y_parts,
                          int64_t inverse, int64_t onesided)
{
    oi_fft f;
    oi_complex *line = (oi_complex *)(void *)work, *spare = line + n;
    int64_t wanted = inverse && onesided ? n / 2 + 1 : n, used = k < wanted ? k : wanted;
    oi_fft_init(&f, n, (char *)spare + oi_fft_work_bytes(n));
    for (int64_t at = 0; at < outer * inner; at++) {
        const double *from = x + (at / inner * k * inner + at % inner) * x_parts;
        double *to = y + (at / inner * m * inner + at % inner) * y_parts;
        memset(line, 0, (size_t)n * sizeof *line);
        for (int64_t i = 0; i < used; i++)
            line[i] = (oi_complex){from[i * inner * x_parts],
                                   x_parts == 2 ? from[i * inner * x_parts + 1] : 0};
        if (inverse && onesided)
            oi_fft_mirror(line, n);
        oi_fft_run(&f, line, inverse, spare);
        for (int64_t i = 0; i < m; i++) {
            to[i * inner * y_parts] = line[i].re;
            if (y_parts == 2)
                to[i * inner * y_parts + 1] = line[i].im;
        }
    }
}

/* line = the spectrum of n windowed numbers of x; x may be the line itself. */
static inline void oi_fft_frame(const oi_fft *f, const double *x, int64_t parts,
                                const double *window, oi_complex *line, void *work)
{
    for (int64_t i = 0; i < f->n; i++)
        line[i] =
            (oi_complex){x[i * parts] * window[i], parts == 2 ? x[i * parts + 1] * window[i] : 0};
    oi_fft_run(f, line, 0, work);
}

/* A spectrum becomes its frame, which is added to the sums from `at` on; of `bins` numbers, where
 * these are less than n, the others are their mirror. */
static inline void oi_fft_unframe(const oi_fft *f, oi_complex *line, int64_t bins,
                                  const double *window, double *sum, double *weight, int64_t at,
                                  int64_t length, void *work)
{
    if (bins != f->n)
        oi_fft_mirror(line, f->n);
    oi_fft_run(f, line, 1, work);
    for (int64_t i = 0; i < f->n && at + i < length; i++) {
        sum[at + i] += line[i].re * window[i];
        weight[at + i] += window[i] * window[i];
    }
}

/* y (batches, frames, bins, 2) = spectra of windowed frames of x (batches, length, parts). */
static inline void oi_stft(const double *x, const double *window, double *y, double *work,
                           int64_t batches, int64_t length, int64_t parts, int64_t frames,
                           int64_t hop, int64_t n, int64_t bins)
{
    oi_fft f;
    oi_complex *line = (oi_complex *)(void *)work, *spare = line + n;
    oi_fft_init(&f, n, (char *)spare + oi_fft_work_bytes(n));
    for (int64_t at = 0; at < batches * frames; at++) {
        const double *from = x + (at / frames * length + at % frames * hop) * parts;
        oi_fft_frame(&f, from, parts, window, line, spare);
        memcpy(y + at * bins * 2, line, (size_t)bins * sizeof *line);
    }
}

/* y (batches, length) = the signal that the spectra x (batches, frames, bins, 2) are of; `work`
 * also has room for 2 length. */
static inline void oi_istft(const double *x, const double *window, double *y, double *work,
                            int64_t batches, int64_t frames, int64_t bins, int64_t hop, int64_t n,
                            int64_t length)
{
    oi_fft f;
    double *sum = work, *weight = work + length;
    oi_complex *line = (oi_complex *)(void *)(work + 2 * length), *spare = line + n;
    int64_t used = bins < n ? bins : n;
    oi_fft_init(&f, n, (char *)spare + oi_fft_work_bytes(n));
    for (int64_t b = 0; b < batches; b++) {
        memset(sum, 0, 2 * (size_t)length * sizeof *sum);
        for (int64_t k = 0; k < frames; k++) {
            memset(line, 0, (size_t)n * sizeof *line);
            memcpy(line, x + (b * frames + k) * bins * 2, (size_t)used * sizeof *line);
            oi_fft_unframe(&f, line, bins, window, sum, weight, k * hop, length, spare);
        }
        for (int64_t t = 0; t < length; t++)
            y[b * length + t] = weight[t] == 0 ? 0 : sum[t] / weight[t];
    }
}

#endif
