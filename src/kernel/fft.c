/* fft.c: mixed radix (Stockham, no bit reversal) for lengths of small primes; others are a
 * convolution with a chirp of power-of-2 length (Bluestein). */
#include "kernel/fft.h"

#include <math.h>

#define MAX_PRIME 61 /* beyond, a convolution is cheaper than the sums of one radix */

static const double pi = 3.14159265358979323846;

static oi_complex times(oi_complex a, oi_complex b)
{
    return (oi_complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* e^(-2 pi i k / n), exact at the eighths. */
static oi_complex turn(int64_t k, int64_t n)
{
    double angle = 2 * pi * (double)k / (double)n;
    if (4 * k == n)
        return (oi_complex){0, -1};
    if (2 * k == n)
        return (oi_complex){-1, 0};
    if (4 * (n - k) == n)
        return (oi_complex){0, 1};
    return (oi_complex){cos(angle), -sin(angle)};
}

/* The prime factors of n up to MAX_PRIME; what is left, 1 when that is all. */
static int64_t factor(int64_t n, uint32_t *factors, uint32_t *n_factors)
{
    *n_factors = 0;
    for (uint32_t p = 2; p <= MAX_PRIME && n > 1; p++)
        while (n % p == 0) {
            bool four = p == 2 && n % 4 == 0;
            factors[(*n_factors)++] = four ? 4 : p;
            n /= four ? 4 : p;
        }
    return n;
}

static int64_t chirp_length(int64_t n)
{
    uint32_t factors[64], n_factors;
    if (factor(n, factors, &n_factors) == 1)
        return 0;
    int64_t m = 1;
    while (m < 2 * n - 1)
        m *= 2;
    return m;
}

size_t oi_fft_table_bytes(int64_t n)
{
    int64_t m = chirp_length(n);
    return (size_t)(m ? 2 * m + n + m : n) * sizeof(oi_complex);
}

size_t oi_fft_work_bytes(int64_t n)
{
    int64_t m = chirp_length(n);
    return (size_t)(m ? 2 * m : n) * sizeof(oi_complex);
}

/* -- mixed radix -- */

/* Sums of one radix: b[k] = sum of a[r] e^(-2 pi i rk / p). `turns` has length n. */
static void butterfly(uint32_t p, const oi_complex *a, oi_complex *b, const oi_complex *turns,
                      int64_t n)
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
            oi_complex v = times(a[r], turns[(int64_t)(r * k % p) * (n / p)]);
            b[k].re += v.re;
            b[k].im += v.im;
        }
    }
}

/* x (length) through `factors`; `spare` is as large. */
static void stockham(oi_complex *x, oi_complex *spare, int64_t length, const oi_complex *turns,
                     const uint32_t *factors, uint32_t n_factors)
{
    oi_complex *from = x, *to = spare, a[MAX_PRIME], b[MAX_PRIME];
    int64_t n = length, s = 1;
    for (uint32_t f = 0; f < n_factors; f++) {
        uint32_t p = factors[f];
        int64_t m = n / p;
        for (int64_t q = 0; q < m; q++)
            for (int64_t j = 0; j < s; j++) {
                for (uint32_t r = 0; r < p; r++)
                    a[r] = from[j + s * (q + m * r)];
                butterfly(p, a, b, turns, length);
                for (uint32_t k = 0; k < p; k++)
                    to[j + s * (p * q + k)] = k && q ? times(b[k], turns[q * k * s]) : b[k];
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

void oi_fft_init(oi_fft *f, int64_t n, void *tables)
{
    *f = (oi_fft){.n = n, .m = chirp_length(n), .turns = tables};
    int64_t length = f->m ? f->m : n;
    factor(length, f->factors, &f->n_factors);
    for (int64_t k = 0; k < length; k++)
        f->turns[k] = turn(k, length);
    if (!f->m)
        return;
    f->chirp = f->turns + f->m;
    f->chirp_line = f->chirp + n;
    oi_complex *spare = f->chirp_line + f->m;
    memset(f->chirp_line, 0, (size_t)f->m * sizeof *f->chirp_line);
    for (int64_t k = 0; k < n; k++) {
        /* k^2 modulo 2n, so that the angle stays small */
        uint64_t square = (uint64_t)k * (uint64_t)k % (2 * (uint64_t)n);
        f->chirp[k] = turn((int64_t)square, 2 * n);
        oi_complex back = {f->chirp[k].re, -f->chirp[k].im};
        f->chirp_line[k] = back;
        if (k)
            f->chirp_line[f->m - k] = back;
    }
    stockham(f->chirp_line, spare, f->m, f->turns, f->factors, f->n_factors);
}

static void through_chirp(const oi_fft *f, oi_complex *x, oi_complex *line)
{
    oi_complex *spare = line + f->m;
    memset(line, 0, (size_t)f->m * sizeof *line);
    for (int64_t k = 0; k < f->n; k++)
        line[k] = times(x[k], f->chirp[k]);
    stockham(line, spare, f->m, f->turns, f->factors, f->n_factors);
    for (int64_t k = 0; k < f->m; k++) { /* the inverse is the transform of the conjugate */
        line[k] = times(line[k], f->chirp_line[k]);
        line[k].im = -line[k].im;
    }
    stockham(line, spare, f->m, f->turns, f->factors, f->n_factors);
    for (int64_t k = 0; k < f->n; k++)
        x[k] =
            times((oi_complex){line[k].re / (double)f->m, -line[k].im / (double)f->m}, f->chirp[k]);
}

void oi_fft_run(const oi_fft *f, oi_complex *x, bool inverse, void *work)
{
    for (int64_t k = 0; inverse && k < f->n; k++)
        x[k].im = -x[k].im;
    if (f->m)
        through_chirp(f, x, work);
    else
        stockham(x, work, f->n, f->turns, f->factors, f->n_factors);
    for (int64_t k = 0; inverse && k < f->n; k++)
        x[k] = (oi_complex){x[k].re / (double)f->n, -x[k].im / (double)f->n};
}
