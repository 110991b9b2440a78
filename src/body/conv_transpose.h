/* conv_transpose.h: transposed convolution of x (batches, c, height, width).
 *
 * For every filter and every place of its window there is a product of all channels with x: a plane
 * of columns, which needs no place that is not there (conv.h: windows of one place). A plane is
 * added to the filter's result, shifted by its place in the window. Columns of the result that lie
 * a stride apart are neighbours until the end, so that additions are whole vectors. A sum runs in
 * the order of the rows of x and the places of the window, whichever thread computes it. */
#ifndef OI_RECIPE_CONV_TRANSPOSE_H
#define OI_RECIPE_CONV_TRANSPOSE_H

#include "body/conv.h"

/* The planes of one filter at n places of x from `from` on: kk rows of c numbers w. columns: planes
 * `held` apart, whose places begin after those of a tile, since what holds no tile is done with
 * places before it. */
static inline __attribute__((always_inline)) void oi_conv_transpose_columns(
    const float *restrict from, const float *restrict w, float *restrict columns, int64_t c,
    int64_t plane, int64_t kk, int64_t n, int64_t held, int64_t high)
{
    const int64_t wide = 12 / high * OI_VF;
    for (int64_t i = 0; i < n; i += wide) {
        const int64_t at = i + wide <= n ? i : n - wide; /* some again */
        for (int64_t k = 0; k < kk; k += high)
            oi_conv_tile(from + at, w, w, columns + wide + at, k, kk, c, plane, 1, 0, 1, 1, 1, 0,
                         held, wide, 0, 1, 0, -INFINITY, INFINITY, high);
    }
}

/* Adds rows y ... y_end - 1 of x, as columns, to the sums of a filter: rows of `stride_x` parts
 * `pitch` long, in which column 0 is number `lead`. */
static inline __attribute__((always_inline)) void oi_conv_transpose_add(
    const float *restrict columns, float *restrict sums, int64_t width, int64_t y, int64_t y_end,
    int64_t out_height, int64_t kh, int64_t kw, int64_t stride_y, int64_t stride_x,
    int64_t dilation_y, int64_t dilation_x, int64_t top, int64_t left, int64_t pitch, int64_t lead,
    int64_t held, int64_t high)
{
    for (int64_t r = y; r < y_end; r++)
        for (int64_t i = 0; i < kh; i++) {
            const int64_t to = r * stride_y - top + i * dilation_y;
            for (int64_t j = 0; to >= 0 && to < out_height && j < kw; j++) {
                const int64_t shift = j * dilation_x - left + lead * stride_x; /* not below 0 */
                float *row = sums + (to * stride_x + shift % stride_x) * pitch + shift / stride_x;
                const float *add =
                    columns + (i * kw + j) * held + 12 / high * OI_VF + (r - y) * width;
                for (int64_t p = 0; p < width; p++)
                    row[p] += add[p];
            }
        }
}

/* The result of a filter from its sums. */
static inline __attribute__((always_inline)) void oi_conv_transpose_end(
    const float *restrict sums, float *restrict out, int64_t out_height, int64_t out_width,
    int64_t stride, int64_t pitch, int64_t lead, float bias, float least, float most)
{
    for (int64_t y = 0; y < out_height; y++)
        for (int64_t p = 0; p < stride; p++) {
            const float *from = sums + (y * stride + p) * pitch + lead;
            float *to = out + y * out_width;
            const int64_t n = (out_width - p + stride - 1) / stride;
            for (int64_t i = 0; i < n; i++) {
                float v = from[i] + bias;
                v = v < least ? least : v;
                to[i * stride + p] = v > most ? most : v;
            }
        }
}

/* Channels shorter than a tile, one behind the other, are filled up with zeros. */
static inline __attribute__((always_inline)) void oi_conv_transpose_fill(const float *restrict x,
                                                                         float *restrict filled,
                                                                         int64_t c, int64_t plane,
                                                                         int64_t wide)
{
    for (int64_t i = 0; i < c; i++) {
        memcpy(filled + i * wide, x + i * plane, (size_t)plane * sizeof *x);
        for (int64_t j = plane; j < wide; j++)
            filled[i * wide + j] = 0;
    }
}

/* w: for every filter and place of its window (kh, kw) the c numbers; out (batches, m, out_height,
 * out_width), of which the filters first ... last - 1. `band` rows of x and `high` planes at a
 * time; sums: room for a filter's result, columns for its planes; filled: for x, if its channels
 * are `filled_plane` floats shorter than a tile, 0: they are not. */
static inline __attribute__((always_inline)) void oi_conv_transpose(
    const float *restrict x, const float *restrict w, const float *restrict bias,
    float *restrict out, float *restrict columns, float *restrict sums, float *restrict filled,
    int64_t batches, int64_t c, int64_t height, int64_t width, int64_t m, int64_t out_height,
    int64_t out_width, int64_t kh, int64_t kw, int64_t stride_y, int64_t stride_x,
    int64_t dilation_y, int64_t dilation_x, int64_t top, int64_t left, int64_t pitch, int64_t lead,
    int64_t has_bias, int64_t band, int64_t high, int64_t filled_plane, int64_t first, int64_t last,
    float least, float most)
{
    const int64_t kk = kh * kw, plane = filled_plane ? filled_plane : height * width;
    const int64_t tile = 12 / high * OI_VF, held = tile + (filled_plane ? tile : band * width);
    for (int64_t b = 0; b < batches; b++) {
        const float *from = filled_plane ? filled : x + b * c * plane;
        if (filled_plane)
            oi_conv_transpose_fill(x + b * c * height * width, filled, c, height * width, plane);
        for (int64_t f = first; f < last; f++) {
            memset(sums, 0, (size_t)(out_height * stride_x * pitch) * sizeof *sums);
            for (int64_t y = 0; y < height; y += band) {
                const int64_t y_end = oi_conv_least(y + band, height);
                oi_conv_transpose_columns(from + y * width, w + f * kk * c, columns, c, plane, kk,
                                          filled_plane ? plane : (y_end - y) * width, held, high);
                oi_conv_transpose_add(columns, sums, width, y, y_end, out_height, kh, kw, stride_y,
                                      stride_x, dilation_y, dilation_x, top, left, pitch, lead,
                                      held, high);
            }
            oi_conv_transpose_end(sums, out + (b * m + f) * out_height * out_width, out_height,
                                  out_width, stride_x, pitch, lead, has_bias ? bias[f] : 0, least,
                                  most);
        }
    }
}

#endif
