/* conv_windows.h: convolution over up to three axes, of any number of channels.
 *
 * The windows of some places become rows: for every number of a window its elements at these
 * places, side by side. Then they are windows of one place (conv.h), whose tiles are multiplied by
 * all filters. That copies x as often as a window has numbers, so bodies that need no rows of
 * windows come first; this one has no limit but the length of a window. */
#ifndef OI_RECIPE_CONV_WINDOWS_H
#define OI_RECIPE_CONV_WINDOWS_H

#include "body/conv.h"

/* Rows, `places` apart, of the windows at n places from place `at` on, over c channels of x; those
 * beyond n are zeros. */
static inline __attribute__((always_inline)) void oi_conv_window_rows(
    const float *restrict x, float *restrict rows, int64_t places, int64_t c, int64_t depth,
    int64_t height, int64_t width, int64_t out_height, int64_t out_width, int64_t kd, int64_t kh,
    int64_t kw, int64_t stride_z, int64_t stride_y, int64_t stride_x, int64_t dilation_z,
    int64_t dilation_y, int64_t dilation_x, int64_t front, int64_t top, int64_t left, int64_t at,
    int64_t n)
{
    for (int64_t p = 0, run; p < n; p += run) {
        const int64_t ox = (at + p) % out_width, oy = (at + p) / out_width % out_height;
        const int64_t oz = (at + p) / out_width / out_height;
        float *to = rows + p;
        run = oi_conv_least(out_width - ox, n - p);
        for (int64_t i = 0; i < c * kd * kh; i++, to += kw * places) {
            const int64_t z = oz * stride_z - front + i / kh % kd * dilation_z;
            const int64_t y = oy * stride_y - top + i % kh * dilation_y;
            const int is_there = z >= 0 && z < depth && y >= 0 && y < height;
            const float *row =
                is_there ? x + ((i / kh / kd * depth + z) * height + y) * width : NULL;
            for (int64_t j = 0; j < kw; j++)
                oi_conv_row(row, width, stride_x, ox * stride_x + j * dilation_x - left,
                            to + j * places, run);
        }
    }
    for (int64_t i = 0; n < places && i < c * kd * kh * kw; i++)
        memset(rows + i * places + n, 0, (size_t)(places - n) * sizeof *rows);
}

/* x (batches, c, depth, height, width) becomes out (batches, m, out_depth, out_height, out_width):
 * the places first ... last - 1, `places` of them at a time. */
static inline __attribute__((always_inline)) void oi_conv_blocks(
    const float *restrict x, const float *restrict w, const float *restrict bias,
    float *restrict out, float *restrict rows, int64_t batches, int64_t c, int64_t m,
    int64_t groups, int64_t depth, int64_t height, int64_t width, int64_t out_depth,
    int64_t out_height, int64_t out_width, int64_t kd, int64_t kh, int64_t kw, int64_t stride_z,
    int64_t stride_y, int64_t stride_x, int64_t dilation_z, int64_t dilation_y, int64_t dilation_x,
    int64_t front, int64_t top, int64_t left, int64_t has_bias, int64_t high, int64_t is_packed,
    int64_t places, int64_t first, int64_t last, float least, float most)
{
    const int64_t own = c / groups, each = m / groups, k = own * kd * kh * kw;
    const int64_t plane = out_depth * out_height * out_width, wide = 12 / high * OI_VF;
    for (int64_t b = 0; b < batches; b++)
        for (int64_t at = first; at < last; at += places)
            for (int64_t g = 0; g < groups; g++) {
                const int64_t n = oi_conv_least(places, last - at);
                oi_conv_window_rows(x + (b * c + g * own) * depth * height * width, rows, places,
                                    own, depth, height, width, out_height, out_width, kd, kh, kw,
                                    stride_z, stride_y, stride_x, dilation_z, dilation_y,
                                    dilation_x, front, top, left, at, n);
                for (int64_t f = g * each; f < (g + 1) * each; f += high)
                    for (int64_t i = 0; i < n; i += wide)
                        oi_conv_tile(rows + i, w, bias, out + b * m * plane + at + i, f,
                                     (g + 1) * each, k, places, 1, 0, 1, 1, 1, 0, plane, n - i,
                                     has_bias, high, is_packed, least, most, high);
            }
}

#endif
