/* conv_flat.h: convolution with steps of one over rows that are too short for vectors.
 *
 * Channels are laid out with their padding, row behind row. Then a window's numbers lie as far from
 * each other wherever it is, so the rows of a result are one long row, with a few places between
 * them that are computed for nothing. Results are taken out of it row by row. */
#ifndef OI_RECIPE_CONV_FLAT_H
#define OI_RECIPE_CONV_FLAT_H

#include "body/conv.h"

/* Places 0 ... n - 1 of one long row, of all filters first ... last - 1, `high` at a time; to:
 * `rows` rows of the result, `out_width` places each. */
static inline __attribute__((always_inline)) void oi_conv_flat_rows(
    const float *restrict strip, const float *restrict w, const float *restrict bias,
    float *restrict made, float *restrict out, int64_t c, int64_t apart, int64_t kh, int64_t kw,
    int64_t dilation_y, int64_t dilation_x, int64_t pitch, int64_t held, int64_t has_bias,
    int64_t high, int64_t is_packed, int64_t y0, int64_t y1, int64_t out_height, int64_t out_width,
    int64_t out_kept, int64_t first, int64_t last, float least, float most)
{
    const int64_t n = (y1 - y0 - 1) * pitch + out_width;
    for (int64_t f = first; f < last; f += high) {
        const int64_t some = oi_conv_least(high, last - f);
        for (int64_t i = 0; i < n; i += 12 / high * OI_VF)
            oi_conv_tile(strip + i, w + f * c * kh * kw, bias + f, made + i, 0, some, c, apart, kh,
                         dilation_y * pitch, kw, 1, dilation_x, pitch, held, 12 / high * OI_VF,
                         has_bias, high, is_packed, least, most, high);
        for (int64_t r = 0; r < some; r++)
            for (int64_t y = y0; y < y1; y++)
                memcpy(out + ((f + r) * out_kept + oi_conv_at(y, out_kept, out_height)) * out_width,
                       made + r * held + (y - y0) * pitch, (size_t)out_width * sizeof *out);
    }
}

/* As oi_conv_dense does, of one group; strip: the channels under `band` rows of the result, with
 * room for a tile behind them; made: `high` long rows, `held` places each. */
static inline __attribute__((always_inline)) void oi_conv_flat(
    const float *restrict x, const float *restrict w, const float *restrict bias,
    float *restrict out, float *restrict strip, float *restrict made, int64_t batches, int64_t c,
    int64_t height, int64_t width, int64_t m, int64_t out_height, int64_t out_width, int64_t kh,
    int64_t kw, int64_t dilation_y, int64_t dilation_x, int64_t top, int64_t left, int64_t pitch,
    int64_t held, int64_t has_bias, int64_t high, int64_t is_packed, int64_t band, int64_t apart,
    int64_t kept, int64_t out_kept, int64_t row, int64_t row_end, int64_t first, int64_t last,
    float least, float most)
{
    for (int64_t i = 0; i < 12 / high * OI_VF; i++)
        strip[c * apart + i] = 0;
    for (int64_t b = 0; b < batches; b++)
        for (int64_t y0 = row; y0 < row_end; y0 += band) {
            const int64_t y1 = oi_conv_least(y0 + band, row_end), above = y0 - top;
            oi_conv_pad(x + b * c * kept * width, strip, c, apart, kept, height, width, above,
                        above + y1 - y0 + (kh - 1) * dilation_y, 1, left, pitch);
            oi_conv_flat_rows(strip, w, bias, made, out + b * m * out_kept * out_width, c, apart,
                              kh, kw, dilation_y, dilation_x, pitch, held, has_bias, high,
                              is_packed, y0, y1, out_height, out_width, out_kept, first, last,
                              least, most);
        }
}

#endif
