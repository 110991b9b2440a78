/* conv.h: convolution of x (batches, channels, height, width).
 *
 * Long result rows: lanes are places of a row. The rows of x under a window are copied with their
 * padding, with elements a stride apart made contiguous, so that every place of the window is a
 * plain load. The register tile is six filters by 2 OI_VF places, or four by 3 OI_VF; for depthwise
 * convolution it is one filter by six vectors of places. Windows of one place need no copy. These
 * bodies can compute a range of rows, row ... row_end - 1, where row r of x is at r % kept and row
 * r of the result at r % out_kept; a sum does not depend on the range.
 *
 * Short result rows would not fill vectors. Then lanes are filters: a register tile of places is
 * multiplied with a panel of 2 OI_VF filters. If there are few places, windows become rows of a
 * matrix product (gemm.h). Results are clamped to least ... most. */
#ifndef OI_RECIPE_CONV_H
#define OI_RECIPE_CONV_H

#include "body/gemm.h"

/* out[i] = row[i * stride + shift], or 0 outside its n numbers; row NULL: all zeros. */
static inline void oi_conv_row(const float *restrict row, int64_t n, int64_t stride, int64_t shift,
                               float *restrict out, int64_t count)
{
    int64_t from = shift < 0 ? (stride - 1 - shift) / stride : 0;
    int64_t to = n > shift ? (n - shift + stride - 1) / stride : 0;
    to = !row ? 0 : to < count ? to : count;
    from = from < to ? from : to;
    for (int64_t i = 0; i < from; i++)
        out[i] = 0;
    if (stride == 1 && from < to)
        memcpy(out + from, row + from + shift, (size_t)(to - from) * sizeof *out);
    for (int64_t i = from; stride == 2 && i < to; i++) /* vectorised, because 2 is a literal */
        out[i] = row[i * 2 + shift];
    for (int64_t i = from; stride > 2 && i < to; i++)
        out[i] = row[i * stride + shift];
    for (int64_t i = to; i < count; i++)
        out[i] = 0;
}

/* Six filters, whose numbers are `apart`, at 2 OI_VF places: x is c channels, `channel` apart, each
 * kh rows of numbers, `step` apart, those in `stride` parts `pitch` long, and a window has `kw`
 * numbers of each, `dilation` apart. */
static inline __attribute__((always_inline)) void oi_conv_six(
    const float *const w[6], const float *restrict x, int64_t apart, int64_t c, int64_t channel,
    int64_t kh, int64_t step, int64_t kw, int64_t stride, int64_t dilation, int64_t pitch,
    oi_vf sums[12])
{
    oi_vf s[12];
    int64_t at = 0;
    for (int64_t i = 0; i < 12; i++)
        s[i] = oi_vf_set(0);
    for (int64_t n = 0; n < c; n++, x += channel - kh * step)
        for (int64_t r = 0; r < kh; r++, x += step)
            for (int64_t i = 0; i < kw; i++, at++) {
                const float *p = x + i * dilation % stride * pitch + i * dilation / stride;
                oi_vf a = oi_vf_load(p), b = oi_vf_load(p + OI_VF), v;
                v = oi_vf_set(w[0][at * apart]);
                s[0] = oi_vf_fma(v, a, s[0]);
                s[1] = oi_vf_fma(v, b, s[1]);
                v = oi_vf_set(w[1][at * apart]);
                s[2] = oi_vf_fma(v, a, s[2]);
                s[3] = oi_vf_fma(v, b, s[3]);
                v = oi_vf_set(w[2][at * apart]);
                s[4] = oi_vf_fma(v, a, s[4]);
                s[5] = oi_vf_fma(v, b, s[5]);
                v = oi_vf_set(w[3][at * apart]);
                s[6] = oi_vf_fma(v, a, s[6]);
                s[7] = oi_vf_fma(v, b, s[7]);
                v = oi_vf_set(w[4][at * apart]);
                s[8] = oi_vf_fma(v, a, s[8]);
                s[9] = oi_vf_fma(v, b, s[9]);
                v = oi_vf_set(w[5][at * apart]);
                s[10] = oi_vf_fma(v, a, s[10]);
                s[11] = oi_vf_fma(v, b, s[11]);
            }
    for (int64_t i = 0; i < 12; i++)
        sums[i] = s[i];
}

/* The same with four filters at 3 OI_VF places. */
static inline __attribute__((always_inline)) void oi_conv_four(
    const float *const w[4], const float *restrict x, int64_t apart, int64_t c, int64_t channel,
    int64_t kh, int64_t step, int64_t kw, int64_t stride, int64_t dilation, int64_t pitch,
    oi_vf sums[12])
{
    oi_vf s[12];
    int64_t at = 0;
    for (int64_t i = 0; i < 12; i++)
        s[i] = oi_vf_set(0);
    for (int64_t n = 0; n < c; n++, x += channel - kh * step)
        for (int64_t r = 0; r < kh; r++, x += step)
            for (int64_t i = 0; i < kw; i++, at++) {
                const float *p = x + i * dilation % stride * pitch + i * dilation / stride;
                oi_vf a = oi_vf_load(p), b = oi_vf_load(p + OI_VF), d = oi_vf_load(p + 2 * OI_VF),
                      v;
                v = oi_vf_set(w[0][at * apart]);
                s[0] = oi_vf_fma(v, a, s[0]);
                s[1] = oi_vf_fma(v, b, s[1]);
                s[2] = oi_vf_fma(v, d, s[2]);
                v = oi_vf_set(w[1][at * apart]);
                s[3] = oi_vf_fma(v, a, s[3]);
                s[4] = oi_vf_fma(v, b, s[4]);
                s[5] = oi_vf_fma(v, d, s[5]);
                v = oi_vf_set(w[2][at * apart]);
                s[6] = oi_vf_fma(v, a, s[6]);
                s[7] = oi_vf_fma(v, b, s[7]);
                s[8] = oi_vf_fma(v, d, s[8]);
                v = oi_vf_set(w[3][at * apart]);
                s[9] = oi_vf_fma(v, a, s[9]);
                s[10] = oi_vf_fma(v, b, s[10]);
                s[11] = oi_vf_fma(v, d, s[11]);
            }
    for (int64_t i = 0; i < 12; i++)
        sums[i] = s[i];
}

/* The same with twelve filters at OI_VF places. */
static inline __attribute__((always_inline)) void oi_conv_twelve(
    const float *const w[12], const float *restrict x, int64_t apart, int64_t c, int64_t channel,
    int64_t kh, int64_t step, int64_t kw, int64_t stride, int64_t dilation, int64_t pitch,
    oi_vf sums[12])
{
    oi_vf s[12];
    int64_t at = 0;
    for (int64_t i = 0; i < 12; i++)
        s[i] = oi_vf_set(0);
    for (int64_t n = 0; n < c; n++, x += channel - kh * step)
        for (int64_t r = 0; r < kh; r++, x += step)
            for (int64_t i = 0; i < kw; i++, at++) {
                const oi_vf a =
                    oi_vf_load(x + i * dilation % stride * pitch + i * dilation / stride);
                for (int64_t f = 0; f < 12; f++)
                    s[f] = oi_vf_fma(oi_vf_set(w[f][at * apart]), a, s[f]);
            }
    for (int64_t i = 0; i < 12; i++)
        sums[i] = s[i];
}

/* Adds the bias to a sum and clamps it to least ... most; `bounds` has these in memory, because
 * registers are for sums. NaN stays NaN. */
static inline __attribute__((always_inline)) oi_vf oi_conv_end(oi_vf sum, oi_vf bias, float least,
                                                               float most, const float bounds[2])
{
    oi_vf v = oi_vf_add(sum, bias);
    if (least > -INFINITY)
        v = oi_vf_max(oi_vf_set(bounds[0]), v);
    return most < INFINITY ? oi_vf_min(oi_vf_set(bounds[1]), v) : v;
}

/* The filters `at` to `last` - 1, at most `tall` (six, four or twelve), at 12 / tall vectors of
 * places, of which `places` are kept. w: rows of numbers, or, with is_packed, panels of `high`
 * filters, of which all that are met are there. */
static inline __attribute__((always_inline)) void oi_conv_tile(
    const float *restrict x, const float *restrict w, const float *restrict bias,
    float *restrict out, int64_t at, int64_t last, int64_t c, int64_t channel, int64_t kh,
    int64_t step, int64_t kw, int64_t stride, int64_t dilation, int64_t pitch, int64_t plane,
    int64_t places, int64_t has_bias, int64_t high, int64_t is_packed, float least, float most,
    int64_t tall)
{
    const int64_t wide = 12 / tall, apart = is_packed ? high : 1;
    const float *of[12];
    oi_vf s[12];
    for (int64_t r = 0; r < tall; r++) /* beyond the last, the last again */
        of[r] = is_packed ? w + (at + r / high * high) * c * kh * kw + r % high
                          : w + (at + r < last ? at + r : last - 1) * c * kh * kw;
    if (tall == 12)
        oi_conv_twelve(of, x, apart, c, channel, kh, step, kw, stride, dilation, pitch, s);
    else if (tall == 6)
        oi_conv_six(of, x, apart, c, channel, kh, step, kw, stride, dilation, pitch, s);
    else
        oi_conv_four(of, x, apart, c, channel, kh, step, kw, stride, dilation, pitch, s);
    float bounds[2] = {least, most};
    __asm__ volatile(""
                     : "+m"(bounds)
                     :
                     : "memory"); /* biases and bounds are loaded here, not earlier */
    for (int64_t r = 0; r < tall && at + r < last; r++) {
        const oi_vf b = oi_vf_set(has_bias ? bias[at + r] : 0);
        float *to = out + (at + r) * plane;
        for (int64_t v = 0; v < wide; v++) {
            const int64_t left = places - v * OI_VF;
            if (left >= OI_VF)
                oi_vf_store(to + v * OI_VF, oi_conv_end(s[wide * r + v], b, least, most, bounds));
            else if (left > 0)
                oi_vf_store_some(to + v * OI_VF,
                                 oi_conv_end(s[wide * r + v], b, least, most, bounds), left);
        }
    }
}

/* All filters f0 ... f1 - 1 at some places; where a vector holds those, twelve at a time. */
static inline __attribute__((always_inline)) void oi_conv_filters(
    const float *restrict x, const float *restrict w, const float *restrict bias,
    float *restrict out, int64_t f0, int64_t f1, int64_t c, int64_t channel, int64_t kh,
    int64_t step, int64_t kw, int64_t stride, int64_t dilation, int64_t pitch, int64_t plane,
    int64_t places, int64_t has_bias, int64_t high, int64_t is_packed, float least, float most)
{
    int64_t f = f0;
    for (; places <= OI_VF && f + 12 <= f1; f += 12)
        oi_conv_tile(x, w, bias, out, f, f1, c, channel, kh, step, kw, stride, dilation, pitch,
                     plane, places, has_bias, high, is_packed, least, most, 12);
    for (; f < f1; f += high)
        oi_conv_tile(x, w, bias, out, f, f1, c, channel, kh, step, kw, stride, dilation, pitch,
                     plane, places, has_bias, high, is_packed, least, most, high);
}

/* Where row r of those that are kept lies, of n in all. */
static inline __attribute__((always_inline)) int64_t oi_conv_at(int64_t r, int64_t kept, int64_t n)
{
    return kept < n ? r % kept : r;
}

static inline __attribute__((always_inline)) int64_t oi_conv_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Windows of one place: x (batches, c, height, width) becomes out (batches, m, height, width), rows
 * at least a tile wide; the filters first ... last - 1. So many places at a time that their numbers
 * stay in the first cache for all filters. Contiguous rows count as one. */
static inline __attribute__((always_inline)) void oi_conv_points(
    const float *restrict x, const float *restrict w, const float *restrict bias,
    float *restrict out, int64_t batches, int64_t c, int64_t m, int64_t height, int64_t width,
    int64_t has_bias, int64_t high, int64_t is_packed, int64_t kept, int64_t out_kept, int64_t row,
    int64_t row_end, int64_t first, int64_t last, float least, float most)
{
    const int64_t wide = 12 / high * OI_VF, some = 4096 / c / wide;
    const int64_t block = (some > 1 ? some : 1) * wide;
    const int64_t step = kept * width, plane = out_kept * width;
    for (int64_t b = 0; b < batches; b++)
        for (int64_t y = row, rows; y < row_end; y += rows) {
            const int64_t at_x = oi_conv_at(y, kept, height),
                          at_y = oi_conv_at(y, out_kept, height);
            rows = oi_conv_least(row_end - y, oi_conv_least(kept - at_x, out_kept - at_y));
            const float *from = x + b * c * step + at_x * width;
            float *to = out + b * m * plane + at_y * width;
            const int64_t n = rows * width, over = n % wide; /* a vector of places for these */
            const int64_t whole = over > 0 && over <= OI_VF ? n - over : n;
            for (int64_t i0 = 0; i0 < whole; i0 += block)
                for (int64_t f = first; f < last; f += high)
                    for (int64_t i = i0; i < i0 + block && i < whole; i += wide) {
                        const int64_t at = i + wide <= n ? i : n - wide; /* some again */
                        oi_conv_tile(from + at, w, bias, to + at, f, last, c, step, 1, 0, 1, 1, 1,
                                     0, plane, wide, has_bias, high, is_packed, least, most, high);
                    }
            int64_t f = whole < n ? first : last;
            for (; f + 12 <= last; f += 12)
                oi_conv_tile(from + n - OI_VF, w, bias, to + n - OI_VF, f, last, c, step, 1, 0, 1,
                             1, 1, 0, plane, OI_VF, has_bias, high, is_packed, least, most, 12);
            for (; f < last; f += high)
                oi_conv_tile(from + n - wide, w, bias, to + n - wide, f, last, c, step, 1, 0, 1, 1,
                             1, 0, plane, wide, has_bias, high, is_packed, least, most, high);
        }
}

/* Rows from ... to - 1 of channels that lie `apart`, each with its padding: zeros are rows, too. */
static inline void oi_conv_pad(const float *restrict x, float *restrict strip, int64_t c,
                               int64_t apart, int64_t kept, int64_t height, int64_t width,
                               int64_t from, int64_t to, int64_t stride, int64_t left,
                               int64_t pitch)
{
    for (int64_t n = 0; n < c; n++)
        for (int64_t y = from; y < to; y++)
            for (int64_t p = 0; p < stride; p++)
                oi_conv_row(y < 0 || y >= height
                                ? NULL
                                : x + (n * kept + oi_conv_at(y, kept, height)) * width,
                            width, stride, p - left,
                            strip + n * apart + ((y - from) * stride + p) * pitch, pitch);
}

/* Windows (kh, kw) over the channels of a filter's group; strip: those channels, `apart`, as far as
 * they are under `span` places of `band` rows of the result, in rows of pitch. The filters first
 * ... last - 1. */
static inline __attribute__((always_inline)) void oi_conv_dense(
    const float *restrict x, const float *restrict w, const float *restrict bias,
    float *restrict out, float *restrict strip, int64_t batches, int64_t c, int64_t height,
    int64_t width, int64_t m, int64_t out_height, int64_t out_width, int64_t kh, int64_t kw,
    int64_t stride_y, int64_t stride_x, int64_t dilation_y, int64_t dilation_x, int64_t top,
    int64_t left, int64_t pitch, int64_t has_bias, int64_t high, int64_t is_packed, int64_t groups,
    int64_t band, int64_t apart, int64_t span, int64_t kept, int64_t out_kept, int64_t row,
    int64_t row_end, int64_t first, int64_t last, float least, float most)
{
    const int64_t plane = out_kept * out_width, step = stride_x * pitch, own = c / groups;
    const int64_t bands = (row_end - row + band - 1) / band;
    const int64_t each = m / groups, per = (last - 1) / each - first / each;
    for (int64_t n = 0; n < batches * (per + 1) * bands; n++) {
        const int64_t b = n / bands / (per + 1), y0 = row + n % bands * band;
        const int64_t y1 = oi_conv_least(y0 + band, row_end), above = y0 * stride_y - top;
        const int64_t g = first / each + n / bands % (per + 1);
        const int64_t f0 = g * each > first ? g * each : first;
        const int64_t f1 = (g + 1) * each < last ? (g + 1) * each : last;
        for (int64_t x0 = 0; x0 < out_width; x0 += span) {
            const int64_t x1 = oi_conv_least(x0 + span, out_width);
            oi_conv_pad(x + (b * c + g * own) * kept * width, strip, own, apart, kept, height,
                        width, above, above + (y1 - y0 - 1) * stride_y + (kh - 1) * dilation_y + 1,
                        stride_x, left - x0 * stride_x, pitch);
            for (int64_t y = y0; y < y1; y++) {
                const float *from = strip + (y - y0) * stride_y * step;
                float *to = out + b * m * plane + oi_conv_at(y, out_kept, out_height) * out_width;
                for (int64_t i = x0; i < x1; i += 12 / high * OI_VF)
                    oi_conv_filters(from + i - x0, w, bias, to + i, f0, f1, own, apart, kh,
                                    dilation_y * step, kw, stride_x, dilation_x, pitch, plane,
                                    x1 - i, has_bias, high, is_packed, least, most);
            }
        }
    }
}

/* -- lanes are filters -- */

/* Places of a register tile with a panel of 2 OI_VF filters: sums, filters and a place fill the
 * registers. */
enum { OI_CONV_PLACES = OI_VF == 16 ? 14 : 6 };

/* What comes out of the sums of OI_VF filters, of which `filters` exist, at `places` places. */
static inline __attribute__((always_inline)) void oi_conv_put(const oi_vf s[OI_CONV_PLACES],
                                                              const float *restrict bias,
                                                              float *restrict out, int64_t plane,
                                                              int64_t filters, int64_t places,
                                                              float least, float most)
{
    const oi_vf b = oi_vf_load(bias);
    const float bounds[2] = {least, most};
    oi_vf v[OI_VF];
    for (int64_t i = 0; i < OI_VF; i++)
        v[i] = i < places ? oi_conv_end(s[i], b, least, most, bounds) : oi_vf_set(0);
    oi_vf_transpose(v);
    if (filters >= OI_VF) {
        for (int64_t f = 0; f < OI_VF; f++)
            oi_vf_store_some(out + f * plane, v[f], places);
        return;
    }
    oi_vf kept[OI_VF]; /* v itself stays in registers */
    for (int64_t f = 0; f < OI_VF; f++)
        kept[f] = v[f];
    for (int64_t f = 0; f < filters; f++)
        oi_vf_store_some(out + f * plane, kept[f], places);
}

/* A panel w of filters, of which `filters` exist, at `places` places: x is c channels `apart`, each
 * kh rows `step` apart, and those as oi_conv_six has them. */
static inline __attribute__((always_inline)) void oi_conv_panel(
    const float *restrict x, const float *restrict w, const float *restrict bias,
    float *restrict out, int64_t c, int64_t apart, int64_t kh, int64_t step, int64_t kw,
    int64_t stride, int64_t dilation, int64_t pitch, int64_t plane, int64_t filters, int64_t places,
    float least, float most)
{
    oi_vf s[OI_CONV_PLACES], t[OI_CONV_PLACES];
    for (int64_t i = 0; i < OI_CONV_PLACES; i++)
        s[i] = t[i] = oi_vf_set(0);
    for (int64_t n = 0; n < c; n++, x += apart)
        for (int64_t i = 0; i < kh * kw; i++, w += 2 * OI_VF) {
            const float *p =
                x + i / kw * step + i % kw * dilation % stride * pitch + i % kw * dilation / stride;
            __asm__("" : "+r"(p)); /* places are read anew: registers are for sums */
            const oi_vf a = oi_vf_load(w), b = oi_vf_load(w + OI_VF);
            for (int64_t q = 0; q < places; q++) {
                const oi_vf v = oi_vf_set(p[q]);
                s[q] = oi_vf_fma(v, a, s[q]);
                t[q] = oi_vf_fma(v, b, t[q]);
            }
        }
    oi_conv_put(s, bias, out, plane, filters, places, least, most);
    if (filters > OI_VF)
        oi_conv_put(t, bias + OI_VF, out + OI_VF * plane, plane, filters - OI_VF, places, least,
                    most);
}

/* The biases of a panel, or 0. */
static inline void oi_conv_biases(const float *restrict bias, int64_t filters, int64_t has_bias,
                                  float *restrict own)
{
    for (int64_t i = 0; i < 2 * OI_VF; i++)
        own[i] = has_bias && i < filters ? bias[i] : 0;
}

/* As oi_conv_points does, with panels of filters; strip: c times OI_VF numbers. */
static inline __attribute__((always_inline)) void oi_conv_points_across(
    const float *restrict x, const float *restrict w, const float *restrict bias,
    float *restrict out, float *restrict strip, int64_t batches, int64_t c, int64_t m,
    int64_t height, int64_t width, int64_t has_bias, int64_t places, int64_t kept, int64_t out_kept,
    int64_t row, int64_t row_end, int64_t first, int64_t last, float least, float most)
{
    const int64_t step = kept * width, plane = out_kept * width;
    float own[2 * OI_VF];
    for (int64_t b = 0; b < batches; b++)
        for (int64_t y = row, rows; y < row_end; y += rows) {
            const int64_t at_x = oi_conv_at(y, kept, height),
                          at_y = oi_conv_at(y, out_kept, height);
            rows = oi_conv_least(row_end - y, oi_conv_least(kept - at_x, out_kept - at_y));
            const float *from = x + b * c * step + at_x * width;
            float *to = out + b * m * plane + at_y * width;
            for (int64_t i = 0; i < rows * width; i += places) {
                const int64_t at = oi_conv_least(i, rows * width - places); /* some again */
                for (int64_t j = 0; j < c; j++)
                    for (int64_t p = 0; p < places; p++)
                        strip[j * OI_VF + p] = from[j * step + at + p];
                for (int64_t f = first; f < last; f += 2 * OI_VF) {
                    oi_conv_biases(bias + f, m - f, has_bias, own);
                    oi_conv_panel(strip, w + f * c, own, to + f * plane + at, c, OI_VF, 1, 0, 1, 1,
                                  1, 0, plane, m - f, places, least, most);
                }
            }
        }
}

/* As oi_conv_dense does, with panels of filters; strip: the channels of x, `apart`, as far as they
 * are under `band` rows of the result. */
static inline __attribute__((always_inline)) void oi_conv_dense_across(
    const float *restrict x, const float *restrict w, const float *restrict bias,
    float *restrict out, float *restrict strip, int64_t batches, int64_t c, int64_t height,
    int64_t width, int64_t m, int64_t out_height, int64_t out_width, int64_t kh, int64_t kw,
    int64_t stride_y, int64_t stride_x, int64_t dilation_y, int64_t dilation_x, int64_t top,
    int64_t left, int64_t pitch, int64_t has_bias, int64_t places, int64_t band, int64_t apart,
    int64_t kept, int64_t out_kept, int64_t row, int64_t row_end, int64_t first, int64_t last,
    float least, float most)
{
    const int64_t plane = out_kept * out_width, step = stride_x * pitch;
    float own[2 * OI_VF];
    for (int64_t b = 0; b < batches; b++)
        for (int64_t y0 = row; y0 < row_end; y0 += band) {
            const int64_t y1 = oi_conv_least(y0 + band, row_end), above = y0 * stride_y - top;
            oi_conv_pad(x + b * c * kept * width, strip, c, apart, kept, height, width, above,
                        above + (y1 - y0 - 1) * stride_y + (kh - 1) * dilation_y + 1, stride_x,
                        left, pitch);
            for (int64_t f = first; f < last; f += 2 * OI_VF) {
                oi_conv_biases(bias + f, m - f, has_bias, own);
                for (int64_t y = y0; y < y1; y++) {
                    const float *from = strip + (y - y0) * stride_y * step;
                    float *to =
                        out + (b * m + f) * plane + oi_conv_at(y, out_kept, out_height) * out_width;
                    for (int64_t i = 0; i < out_width; i += places) {
                        const int64_t at = oi_conv_least(i, out_width - places); /* some again */
                        oi_conv_panel(from + at, w + f * c * kh * kw, own, to + at, c, apart, kh,
                                      dilation_y * step, kw, stride_x, dilation_x, pitch, plane,
                                      m - f, places, least, most);
                    }
                }
            }
        }
}

/* -- a channel of its own for every filter -- */

/* One filter (kh, kw) at `vectors` vectors of places. */
static inline __attribute__((always_inline)) void oi_conv_line(
    const float *restrict x, const float *restrict w, float bias, float *restrict out, int64_t kh,
    int64_t kw, int64_t stride, int64_t dilation_y, int64_t dilation, int64_t pitch,
    int64_t vectors, int64_t places, float least, float most)
{
    oi_vf s[6];
    for (int64_t v = 0; v < vectors; v++)
        s[v] = oi_vf_set(0);
    for (int64_t r = 0; r < kh; r++)
        for (int64_t i = 0; i < kw; i++) {
            const float *p = x + (r * dilation_y * stride + i * dilation % stride) * pitch +
                             i * dilation / stride;
            const oi_vf by = oi_vf_set(w[r * kw + i]);
            for (int64_t v = 0; v < vectors; v++)
                s[v] = oi_vf_fma(by, oi_vf_load(p + v * OI_VF), s[v]);
        }
    const float bounds[2] = {least, most};
    for (int64_t v = 0; v < vectors && v * OI_VF < places; v++) {
        const oi_vf sum = oi_conv_end(s[v], oi_vf_set(bias), least, most, bounds);
        if (places - v * OI_VF >= OI_VF)
            oi_vf_store(out + v * OI_VF, sum);
        else
            oi_vf_store_some(out + v * OI_VF, sum, places - v * OI_VF);
    }
}

/* Rows y ... y_end - 1 of one filter's result, from rows of x with their padding, of which `from`
 * is the first. Rows above and below are nothing but zeros and left out. */
static inline __attribute__((always_inline)) void oi_conv_band(
    const float *restrict padded, const float *restrict w, float bias, float *restrict out,
    int64_t from, int64_t y, int64_t y_end, int64_t height, int64_t out_height, int64_t out_width,
    int64_t kh, int64_t kw, int64_t stride_y, int64_t stride_x, int64_t dilation_y,
    int64_t dilation_x, int64_t top, int64_t pitch, int64_t out_kept, float least, float most)
{
    const int64_t step = stride_x * pitch, sixes = out_width / (6 * OI_VF) * (6 * OI_VF);
    for (; y < y_end; y++) {
        const int64_t above = y * stride_y - top;
        const int64_t r0 = above < 0 ? (dilation_y - 1 - above) / dilation_y : 0;
        const int64_t below = (height - above + dilation_y - 1) / dilation_y;
        const int64_t rows = (below < kh ? below : kh) - r0;
        const float *at = padded + (above + r0 * dilation_y - from) * step;
        float *to = out + oi_conv_at(y, out_kept, out_height) * out_width;
        for (int64_t i = 0; i < sixes; i += 6 * OI_VF)
            oi_conv_line(at + i, w + r0 * kw, bias, to + i, rows, kw, stride_x, dilation_y,
                         dilation_x, pitch, 6, 6 * OI_VF, least, most);
        for (int64_t i = sixes; i < out_width; i += 2 * OI_VF)
            oi_conv_line(at + i, w + r0 * kw, bias, to + i, rows, kw, stride_x, dilation_y,
                         dilation_x, pitch, 2, out_width - i, least, most);
    }
}

/* Filter f sees channel f / each only; padded: the rows of that channel under `band` rows of the
 * result, with what is left and right of them. The filters first ... last - 1. */
static inline __attribute__((always_inline)) void oi_conv_depthwise(
    const float *restrict x, const float *restrict w, const float *restrict bias,
    float *restrict out, float *restrict padded, int64_t batches, int64_t c, int64_t height,
    int64_t width, int64_t each, int64_t out_height, int64_t out_width, int64_t kh, int64_t kw,
    int64_t stride_y, int64_t stride_x, int64_t dilation_y, int64_t dilation_x, int64_t top,
    int64_t left, int64_t pitch, int64_t has_bias, int64_t band, int64_t kept, int64_t out_kept,
    int64_t row, int64_t row_end, int64_t first, int64_t last, float least, float most)
{
    for (int64_t b = 0; b < batches; b++)
        for (int64_t f = first; f < last; f++)
            for (int64_t y = row; y < row_end; y += band) {
                const float *channel = x + (b * c + f / each) * kept * width;
                const int64_t y_end = oi_conv_least(y + band, row_end), above = y * stride_y - top;
                const int64_t below =
                    above + (y_end - y - 1) * stride_y + (kh - 1) * dilation_y + 1;
                const int64_t from = above < 0 ? 0 : above, to = oi_conv_least(below, height);
                for (int64_t i = from; i < to; i++)
                    for (int64_t p = 0; p < stride_x; p++)
                        oi_conv_row(channel + oi_conv_at(i, kept, height) * width, width, stride_x,
                                    p - left, padded + ((i - from) * stride_x + p) * pitch, pitch);
                oi_conv_band(padded, w + f * kh * kw, has_bias ? bias[f] : 0,
                             out + (b * c * each + f) * out_kept * out_width, from, y, y_end,
                             height, out_height, out_width, kh, kw, stride_y, stride_x, dilation_y,
                             dilation_x, top, pitch, out_kept, least, most);
            }
}

/* Without strides, two rows of the result share those of x, which are read where they lie. */

enum { OI_CONV_TALL = 11, OI_CONV_WIDE = 4 }; /* rows of a window at most; vectors at a time */

/* One filter at `vectors` vectors of places from place `at` on: of the row out, and of the one
 * after it, which is next to it or NULL. rows: those under both, or NULL. is_edge: windows may
 * reach beyond the row's n numbers. */
static inline __attribute__((always_inline)) void oi_conv_lines(
    const float *const rows[OI_CONV_TALL + 1], const float *restrict w, float bias,
    float *restrict out, float *restrict next, int64_t kh, int64_t kw, int64_t dilation,
    int64_t left, int64_t n, int64_t at, int64_t vectors, int64_t places, int64_t is_edge,
    float least, float most)
{
    oi_vf s[OI_CONV_WIDE], t[OI_CONV_WIDE];
    for (int64_t v = 0; v < vectors; v++)
        s[v] = t[v] = oi_vf_set(0);
    for (int64_t r = 0; r <= kh; r++)
        for (int64_t i = 0; rows[r] && i < kw; i++) {
            const int64_t from = at + i * dilation - left;
            const oi_vf own = oi_vf_set(r < kh ? w[r * kw + i] : 0);
            const oi_vf above = oi_vf_set(r > 0 ? w[(r - 1) * kw + i] : 0);
            for (int64_t v = 0; v < vectors; v++) {
                const int64_t first = from + v * OI_VF;
                const oi_vf x =
                    is_edge ? oi_vf_load_within(rows[r] + first, first < 0 ? -first : 0, n - first)
                            : oi_vf_load(rows[r] + first);
                if (r < kh)
                    s[v] = oi_vf_fma(own, x, s[v]);
                if (r > 0)
                    t[v] = oi_vf_fma(above, x, t[v]);
            }
        }
    const float bounds[2] = {least, most};
    for (int64_t v = 0; v < vectors; v++) {
        const oi_vf a = oi_conv_end(s[v], oi_vf_set(bias), least, most, bounds);
        const oi_vf b = oi_conv_end(t[v], oi_vf_set(bias), least, most, bounds);
        if (places >= OI_VF) {
            oi_vf_store(out + at + v * OI_VF, a);
            if (next)
                oi_vf_store(next + at + v * OI_VF, b);
            continue;
        }
        oi_vf_store_some(out + at, a, places);
        if (next)
            oi_vf_store_some(next + at, b, places);
    }
}

/* All places of a row, and of the next: vectors at the ends may be done in part again. */
static inline __attribute__((always_inline)) void oi_conv_both(
    const float *const rows[OI_CONV_TALL + 1], const float *restrict w, float bias,
    float *restrict out, float *restrict next, int64_t kh, int64_t kw, int64_t dilation,
    int64_t left, int64_t width, int64_t out_width, float least, float most)
{
    const int64_t last = out_width > OI_VF ? out_width - OI_VF : 0;
    const int64_t inner = /* the last that is no edge */
        oi_conv_least(width - (kw - 1) * dilation + left, out_width) - OI_VF;
    int64_t at = left > 0 ? OI_VF : 0;
    if (left > 0)
        oi_conv_lines(rows, w, bias, out, next, kh, kw, dilation, left, width, 0, 1, out_width, 1,
                      least, most);
    for (; left <= OI_VF && at + (OI_CONV_WIDE - 1) * OI_VF <= inner; at += OI_CONV_WIDE * OI_VF)
        oi_conv_lines(rows, w, bias, out, next, kh, kw, dilation, left, width, at, OI_CONV_WIDE,
                      OI_VF, 0, least, most);
    for (; left <= OI_VF && at <= inner; at += OI_VF)
        oi_conv_lines(rows, w, bias, out, next, kh, kw, dilation, left, width, at, 1, OI_VF, 0,
                      least, most);
    for (; at < out_width; at += OI_VF)
        oi_conv_lines(rows, w, bias, out, next, kh, kw, dilation, left, width,
                      at < last ? at : last, 1, out_width, 1, least, most);
}

/* As oi_conv_depthwise does, where strides are 1 and rows of a window have no gaps. */
static inline __attribute__((always_inline)) void oi_conv_depthwise_two(
    const float *restrict x, const float *restrict w, const float *restrict bias,
    float *restrict out, int64_t batches, int64_t c, int64_t height, int64_t width, int64_t each,
    int64_t out_height, int64_t out_width, int64_t kh, int64_t kw, int64_t dilation_x, int64_t top,
    int64_t left, int64_t has_bias, int64_t kept, int64_t out_kept, int64_t row, int64_t row_end,
    int64_t first, int64_t last, float least, float most)
{
    for (int64_t b = 0; b < batches; b++)
        for (int64_t f = first; f < last; f++) {
            const float *channel = x + (b * c + f / each) * kept * width;
            float *plane = out + (b * c * each + f) * out_kept * out_width;
            for (int64_t y = row; y < row_end; y += 2) {
                const float *rows[OI_CONV_TALL + 1];
                for (int64_t r = 0; r <= kh; r++) {
                    const int64_t at = y + r - top;
                    const int is_there = at >= 0 && at < height && (r < kh || y + 1 < row_end);
                    rows[r] = is_there ? channel + oi_conv_at(at, kept, height) * width : NULL;
                }
                oi_conv_both(rows, w + f * kh * kw, has_bias ? bias[f] : 0,
                             plane + oi_conv_at(y, out_kept, out_height) * out_width,
                             y + 1 < row_end
                                 ? plane + oi_conv_at(y + 1, out_kept, out_height) * out_width
                                 : NULL,
                             kh, kw, dilation_x, left, width, out_width, least, most);
            }
        }
}

/* -- few places -- */

/* The windows of a batch as rows: place by place all numbers under it. */
static inline void oi_conv_windows(const float *restrict x, float *restrict rows, int64_t c,
                                   int64_t height, int64_t width, int64_t out_height,
                                   int64_t out_width, int64_t kh, int64_t kw, int64_t stride_y,
                                   int64_t stride_x, int64_t dilation_y, int64_t dilation_x,
                                   int64_t top, int64_t left)
{
    for (int64_t p = 0; p < out_height * out_width; p++)
        for (int64_t i = 0; i < c * kh; i++, rows += kw) {
            const int64_t y = p / out_width * stride_y + i % kh * dilation_y - top;
            const int64_t at = p % out_width * stride_x - left;
            const float *row = x + (i / kh * height + y) * width;
            if (dilation_x == 1 && y >= 0 && y < height && at >= 0 && at + kw <= width) {
                for (int64_t j = 0; j < kw; j++)
                    rows[j] = row[at + j];
                continue;
            }
            for (int64_t j = 0; j < kw; j++) {
                const int64_t xi = at + j * dilation_x;
                rows[j] = y < 0 || y >= height || xi < 0 || xi >= width ? 0 : row[xi];
            }
        }
}

/* What comes out of a batch's sums. */
static inline void oi_conv_transpose_tile(const float *restrict sums, float *restrict out,
                                          int64_t n, int64_t m, int64_t first, int64_t last,
                                          float least, float most)
{
    for (int64_t f = first; f < last; f++)
        for (int64_t p = 0; p < n; p++) {
            const float v = sums[p * m + f] < least ? least : sums[p * m + f];
            out[f * n + p] = v > most ? most : v;
        }
}

/* Filters as panels of columns; windows: room for those of a batch, sums: for its results. The
 * filters first ... last - 1. */
static inline __attribute__((always_inline)) void oi_conv_lanes(
    const float *restrict x, const void *restrict packed, const float *restrict bias,
    float *restrict out, float *restrict windows, float *restrict sums, int64_t batches, int64_t c,
    int64_t height, int64_t width, int64_t m, int64_t out_height, int64_t out_width, int64_t kh,
    int64_t kw, int64_t stride_y, int64_t stride_x, int64_t dilation_y, int64_t dilation_x,
    int64_t top, int64_t left, int64_t has_bias, int64_t first, int64_t last, float least,
    float most)
{
    const int64_t n = out_height * out_width, k = c * kh * kw;
    const float *w = packed;
    for (int64_t b = 0; b < batches; b++) {
        oi_conv_windows(x + b * c * height * width, windows, c, height, width, out_height,
                        out_width, kh, kw, stride_y, stride_x, dilation_y, dilation_x, top, left);
        if (n < 6)
            oi_gemm_rows(windows, w, has_bias ? bias : NULL, sums, n, m, k, k, 1, first, last, NULL,
                         NULL);
        else
            oi_gemm(windows, w, has_bias ? bias : NULL, sums, NULL, n, m, k, k, 1, 0, 0, 1, 0, n,
                    OI_GEMM_DEPTH, first, last, NULL, NULL);
        oi_conv_transpose_tile(sums, out + b * m * n, n, m, first, last, least, most);
    }
}

/* The same for filters (m, k) that are no weights; room: for panels of them. */
static inline __attribute__((always_inline)) void oi_conv_lanes_two(
    const float *restrict x, const float *restrict w, const float *restrict bias,
    float *restrict out, float *restrict windows, float *restrict sums, float *restrict room,
    int64_t batches, int64_t c, int64_t height, int64_t width, int64_t m, int64_t out_height,
    int64_t out_width, int64_t kh, int64_t kw, int64_t stride_y, int64_t stride_x,
    int64_t dilation_y, int64_t dilation_x, int64_t top, int64_t left, int64_t has_bias,
    int64_t first, int64_t last, float least, float most)
{
    const int64_t n = out_height * out_width, k = c * kh * kw;
    for (int64_t b = 0; b < batches; b++) {
        oi_conv_windows(x + b * c * height * width, windows, c, height, width, out_height,
                        out_width, kh, kw, stride_y, stride_x, dilation_y, dilation_x, top, left);
        if (n < 6)
            oi_gemv_packed_two(windows, w, has_bias ? bias : NULL, sums, room, n, m, k, k, 1, 1, k,
                               first, last);
        else
            oi_gemm(windows, w, has_bias ? bias : NULL, sums, room, n, m, k, k, 1, 1, k, 0, 0, n,
                    OI_GEMM_DEPTH, first, last, NULL, NULL);
        oi_conv_transpose_tile(sums, out + b * m * n, n, m, first, last, least, most);
    }
}

#endif
