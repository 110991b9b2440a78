/* max_pool.h: the largest value of every window.
 *
 * A largest value does not depend on the order, so a window's is found in two steps: of the rows
 * under a row of the result, column by column, and then of neighbouring columns. That takes the sum
 * of the window's sides for each value, not their product, and a vector's lanes are places. Columns
 * that lie a stride apart are made contiguous between the steps. Integers in the order of the
 * floats are compared, one instruction each: a NaN wins, and of two zeros the positive one. */
#ifndef OI_RECIPE_MAX_POOL_H
#define OI_RECIPE_MAX_POOL_H

#include "body/conv.h"
#include "body/math.h"
#include "body/scalar.h"

/* line[i] becomes the largest of column i of x (width columns) in the rows from, from + step ...
 * before `to`. */
static inline __attribute__((always_inline)) void oi_max_pool_columns(const float *restrict x,
                                                                      int32_t *restrict line,
                                                                      int64_t from, int64_t to,
                                                                      int64_t step, int64_t width,
                                                                      int64_t kept, int64_t height)
{
    for (int64_t i = 0; i < width; i++)
        line[i] = oi_high_key_f32(oi_lowest_f32());
    for (int64_t r = from; r < to; r += step) {
        const float *row = x + oi_conv_at(r, kept, height) * width;
        for (int64_t i = 0; i < width; i++)
            line[i] = oi_max_i32(line[i], oi_high_key_f32(row[i]));
    }
}

/* A line of `stride` parts becomes these, each `pitch` neighbours. */
static inline void oi_max_pool_parts(const int32_t *restrict line, int32_t *restrict parts,
                                     int64_t stride, int64_t pitch)
{
    for (int64_t p = 0; p < stride; p++) {
        for (int64_t i = 0; stride == 2 && i < pitch; i++) /* vectorised: 2 is a literal */
            parts[p * pitch + i] = line[i * 2 + p];
        for (int64_t i = 0; stride > 2 && i < pitch; i++)
            parts[p * pitch + i] = line[i * stride + p];
    }
}

/* A row of the result: the largest of kw columns, `dilation` apart. */
static inline __attribute__((always_inline)) void oi_max_pool_row(const int32_t *restrict parts,
                                                                  float *restrict out,
                                                                  int64_t out_width, int64_t kw,
                                                                  int64_t stride, int64_t dilation,
                                                                  int64_t pitch)
{
    for (int64_t i = 0; i < out_width; i++) {
        int32_t most = parts[i];
        for (int64_t k = 1; k < kw; k++)
            most =
                oi_max_i32(most, parts[k * dilation % stride * pitch + k * dilation / stride + i]);
        out[i] = oi_of_key_f32(most);
    }
}

/* x (batches, c, height, width) becomes out (batches, c, out_height, out_width): the channels first
 * ... last - 1, and of them the rows row ... row_end - 1, where row r of x is at r % kept and row r
 * of the result at r % out_kept. `lines`: a line with its padding, pitch stride long, and its
 * parts. */
static inline __attribute__((always_inline)) void oi_max_pool(
    const float *restrict x, float *restrict out, int32_t *restrict lines, int64_t batches,
    int64_t c, int64_t height, int64_t width, int64_t out_height, int64_t out_width, int64_t kh,
    int64_t kw, int64_t stride_y, int64_t stride_x, int64_t dilation_y, int64_t dilation_x,
    int64_t top, int64_t left, int64_t pitch, int64_t kept, int64_t out_kept, int64_t row,
    int64_t row_end, int64_t first, int64_t last)
{
    int32_t *parts = stride_x > 1 ? lines + pitch * stride_x : lines;
    for (int64_t i = 0; i < pitch * stride_x; i++) /* padding never wins */
        lines[i] = oi_high_key_f32(oi_lowest_f32());
    for (int64_t b = 0; b < batches; b++)
        for (int64_t n = first; n < last; n++)
            for (int64_t y = row; y < row_end; y++) {
                const int64_t above = y * stride_y - top;
                const int64_t hidden =
                    above < 0 ? (dilation_y - 1 - above) / dilation_y * dilation_y : 0;
                oi_max_pool_columns(x + (b * c + n) * kept * width, lines + left, above + hidden,
                                    oi_conv_least(above + (kh - 1) * dilation_y + 1, height),
                                    dilation_y, width, kept, height);
                oi_max_pool_parts(lines, parts, stride_x, pitch);
                oi_max_pool_row(parts,
                                out +
                                    ((b * c + n) * out_kept + oi_conv_at(y, out_kept, out_height)) *
                                        out_width,
                                out_width, kw, stride_x, dilation_x, pitch);
            }
}

#endif
