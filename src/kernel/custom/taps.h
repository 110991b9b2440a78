/* taps.h: the elements and weights that an interpolated place is made of, along one axis;
 * resampling and sampling by a grid with them. Text that the simulator compiles and emitted C
 * carries along (tools/helpergen.c): names begin with oi_, blocks end at empty lines. */
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

/* Linear and cubic around a place; nearest is rounded by the caller. */
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

/* Infinities beside the place do not count: their weight is 0. */
static inline double oi_resample_add(double sum, double weight, double x)
{
    return sum + (weight == 0 ? 0 : weight * x);
}

/* y (inner) = the n rows of x that begin at `at`, weighted. */
static inline __attribute__((always_inline)) void oi_resample_rows(const double *x, double *y,
                                                                   int64_t inner, const int64_t *at,
                                                                   const double *weight, int64_t n)
{
    for (int64_t i = 0; i < inner; i++) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++)
            sum += weight[k] * x[at[k] + i];
        y[i] = sum;
    }
}

/* The rows of x (n, inner) around a place; at the edges they go on. */
static inline void oi_resample_row(const double *x, double *y, int64_t n, int64_t inner,
                                   int64_t first, int64_t taps, const double *weight)
{
    int64_t at[4], used = 0;
    double own[4];
    for (int64_t k = 0; k < taps; k++) {
        if (weight[k] == 0) /* infinities beside the place do not count */
            continue;
        at[used] = (first + k < 0 ? 0 : first + k >= n ? n - 1 : first + k) * inner;
        own[used++] = weight[k];
    }
    if (used == 2)
        oi_resample_rows(x, y, inner, at, own, 2);
    else if (used == 4)
        oi_resample_rows(x, y, inner, at, own, 4);
    else
        oi_resample_rows(x, y, inner, at, own, used);
}

/* Places of a row of n elements instead of rows. */
static inline __attribute__((always_inline)) void oi_resample_line(const double *x,
                                                                   const int64_t *first,
                                                                   const double *weight, double *y,
                                                                   int64_t n, int64_t m,
                                                                   int64_t taps)
{
    for (int64_t i = 0; i < m; i++) {
        double sum = 0;
        for (int64_t k = 0; k < taps; k++) {
            const int64_t at = first[i] + k;
            sum = oi_resample_add(sum, weight[i * 4 + k], x[at < 0 ? 0 : at >= n ? n - 1 : at]);
        }
        y[i] = sum;
    }
}

/* -- sampling by a grid -- */

typedef struct oi_sampling {
    oi_tap_mode mode;
    int64_t padding; /* 0 zeros, 1 the border, 2 reflection */
    int64_t corners; /* -1 and 1 are the centres of the corner elements, else their outer edges */
} oi_sampling;

/* Mirrored at the borders until within. */
static inline double oi_sample_reflected(double v, double low, double high)
{
    double range = high - low;
    if (range <= 0)
        return low;
    if (v < low || v > high) {
        double over = v < low ? low - v : v - high, times = floor(over / range);
        double rest = over - times * range;
        int same = fmod(times, 2) == 0;
        return (v < low) == same ? low + rest : high - rest;
    }
    return v;
}

static inline double oi_sample_low(const oi_sampling *s)
{
    return s->corners ? 0 : -0.5;
}

static inline double oi_sample_high(const oi_sampling *s, int64_t n)
{
    return s->corners ? (double)(n - 1) : (double)n - 0.5;
}

/* A place along an axis of length n, by the grid's number. */
static inline double oi_sample_place(const oi_sampling *s, double v, int64_t n)
{
    double at = s->corners ? (v + 1) / 2 * (double)(n - 1) : ((v + 1) * (double)n - 1) / 2;
    if (s->mode == OI_TAP_NEAREST)
        at = rint(at);
    if (at < oi_sample_low(s) || at > oi_sample_high(s, n)) {
        if (s->padding == 1)
            at = at < 0 ? 0 : (double)(n - 1);
        else if (s->padding == 2)
            at = oi_sample_reflected(at, oi_sample_low(s), oi_sample_high(s, n));
    }
    /* also NaN: nowhere */
    return at >= -4 && at <= (double)n + 4 ? at : -4;
}

/* The element that stands for place i, or -1. */
static inline int64_t oi_sample_element(const oi_sampling *s, int64_t i, int64_t n)
{
    if (i >= 0 && i < n)
        return i;
    if (s->padding == 0)
        return -1;
    if (s->padding == 2)
        i = (int64_t)oi_sample_reflected((double)i, oi_sample_low(s), oi_sample_high(s, n));
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* -- emitted programs: tensors of f64 that lie dense -- */

/* y (outer, m, inner): place o of an axis is made of the taps of x (outer, n, inner) from first[o]
 * on. */
static inline void oi_resample(const double *x, const int64_t *first, const double *weight,
                               double *y, int64_t outer, int64_t n, int64_t inner, int64_t m,
                               int64_t taps)
{
    for (int64_t i = 0; inner == 1 && i < outer; i++)
        oi_resample_line(x + i * n, first, weight, y + i * m, n, m, taps);
    for (int64_t i = 0; inner != 1 && i < outer * m; i++)
        oi_resample_row(x + i / m * n * inner, y + i * inner, n, inner, first[i % m], taps,
                        weight + i % m * 4);
}

static inline double oi_sample_value(const oi_sampling *s, const double *x, const int64_t *dims,
                                     const oi_taps *taps, int64_t spatial)
{
    double sum = 0;
    int64_t total = 1;
    for (int64_t d = 0; d < spatial; d++)
        total *= taps[d].n;
    for (int64_t k = 0; k < total; k++) {
        int64_t at = 0, rest = k, stride = 1;
        double weight = 1;
        for (int64_t d = spatial; d-- > 0; stride *= dims[d]) {
            int64_t tap = rest % taps[d].n;
            int64_t e = oi_sample_element(s, taps[d].first + tap, dims[d]);
            rest /= taps[d].n;
            at = e < 0 || at < 0 ? -1 : at + e * stride;
            weight *= taps[d].weight[tap];
        }
        if (at >= 0 && weight != 0)
            sum += weight * x[at];
    }
    return sum;
}

/* y (images, channels, places) of x (images, channels, dims ...) where the grid (images, places,
 * spatial) says, its last number for the first axis. */
static inline void oi_grid_sample(const double *x, const double *grid, const int64_t *dims,
                                  double *y, int64_t images, int64_t channels, int64_t places,
                                  int64_t spatial, int64_t mode, int64_t padding, int64_t corners)
{
    const oi_sampling s = {(oi_tap_mode)mode, padding, corners};
    int64_t size = 1;
    oi_taps taps[3];
    for (int64_t d = 0; d < spatial; d++)
        size *= dims[d];
    for (int64_t i = 0; i < images * places; i++) {
        for (int64_t d = 0; d < spatial; d++)
            taps[d] = oi_taps_at(s.mode, -0.75,
                                 oi_sample_place(&s, grid[(i + 1) * spatial - 1 - d], dims[d]));
        for (int64_t c = 0; c < channels; c++) {
            int64_t image = i / places * channels + c;
            y[image * places + i % places] =
                oi_sample_value(&s, x + image * size, dims, taps, spatial);
        }
    }
}

#endif
