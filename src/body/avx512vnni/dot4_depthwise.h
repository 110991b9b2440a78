/* dot4_depthwise.h: depthwise byte convolution with dot products of 4 bytes: four places of a row
 * at once. Lanes are places; a lane has four elements, its own and the next three. So rows of x are
 * multiplied with rows of filters, and neither strides nor row ends cost anything. Zero points:
 * dot4.h. */
#ifndef OI_RECIPE_DOT4_DEPTHWISE_H
#define OI_RECIPE_DOT4_DEPTHWISE_H

#include "body/avx512vnni/dot4.h"

/* The problem; its members are literals after inlining. The strip interleaves rows by stride:
 * `phases` parts of `deep` rows, for each group of four of a window's row. */
typedef struct oi_dot4_depthwise_shape {
    int64_t height, width, kept, out_width, kh, kw, stride_y, stride_x, dilation, top, left;
    int64_t across, phases, deep, pitch; /* pitch: of a row of bytes */
    int64_t is_unsigned;
    uint32_t zero; /* of x */
} oi_dot4_depthwise_shape;

/* A row of x with its padding: n elements from column `from` on; width 0: all padding. Bytes after
 * it may be overwritten. */
static inline __attribute__((always_inline)) void oi_dot4_depthwise_row(const char *row,
                                                                        int64_t width, int64_t from,
                                                                        int64_t n, int8_t *out,
                                                                        oi_dot4_depthwise_shape s)
{
    const int64_t begin = from < 0 ? -from : 0, end = width - from;
    for (int64_t i = 0; i < n; i += 4 * OI_VF)
        oi_vi_store(out + i, oi_vi_padded(row + from + i, begin - i, end - i, (int32_t)s.zero,
                                          s.is_unsigned));
}

/* Rows from row `row` of a channel on, for n rows of the result. */
static inline __attribute__((always_inline)) void oi_dot4_depthwise_strip(
    const char *x, int8_t *bytes, int32_t *strip, int64_t row, int64_t n, oi_dot4_depthwise_shape s)
{
    const int64_t rows = (n - 1) * s.stride_y + (s.kh - 1) * s.dilation + 1;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t y = row + r, width = y < 0 || y >= s.height ? 0 : s.width;
        oi_dot4_depthwise_row(x + (width ? y % s.kept * width : 0), width, -s.left,
                              (s.out_width - 1) * s.stride_x + s.kw, bytes + r * s.pitch, s);
    }
    for (int64_t k = 0; k < s.across; k++)
        for (int64_t p = 0; p < s.phases; p++)
            for (int64_t r = p; r < rows; r += s.stride_y) {
                int32_t *to = strip + ((k * s.phases + p) * s.deep + r / s.stride_y) * s.out_width;
                for (int64_t i = 0; i < s.out_width; i += OI_VF)
                    oi_vi_store(to + i, oi_vi_along(bytes + r * s.pitch + i * s.stride_x + 4 * k,
                                                    s.stride_x));
            }
}

/* The offsets of a window's 4-byte groups. */
static inline __attribute__((always_inline)) void oi_dot4_depthwise_taps(int32_t *at,
                                                                         oi_dot4_depthwise_shape s)
{
    for (int64_t y = 0; y < s.kh; y++)
        for (int64_t k = 0; k < s.across; k++)
            *at++ = (int32_t)(((k * s.phases + y * s.dilation % s.stride_y) * s.deep +
                               y * s.dilation / s.stride_y) *
                              s.out_width);
}

/* n sums and up to 63 more: 4-byte groups at offsets `at` times those of w. */
static inline __attribute__((always_inline)) void oi_dot4_depthwise_sums(const int32_t *strip,
                                                                         const int32_t *w,
                                                                         const int32_t *at,
                                                                         int64_t n, int64_t taps,
                                                                         int32_t *sums)
{
    for (int64_t i = 0; i < n; i += 4 * OI_VF) {
        oi_vi a = oi_vi_zero(), b = a, c = a, d = a;
        for (int64_t k = 0; k < taps; k++) {
            const int32_t *p = strip + i + at[k];
            const oi_vi by = oi_vi_set(w[k]);
            a = oi_vi_dot_u4(a, oi_vi_load(p), by);
            b = oi_vi_dot_u4(b, oi_vi_load(p + OI_VF), by);
            c = oi_vi_dot_u4(c, oi_vi_load(p + 2 * OI_VF), by);
            d = oi_vi_dot_u4(d, oi_vi_load(p + 3 * OI_VF), by);
        }
        oi_vi_store(sums + i, a);
        oi_vi_store(sums + i + OI_VF, b);
        oi_vi_store(sums + i + 2 * OI_VF, c);
        oi_vi_store(sums + i + 3 * OI_VF, d);
    }
}

/* As oi_bytes_depthwise. packed: per filter, kh rows of 4-byte groups; then those of a filter of
 * ones; totals as in dot4.h. bytes: the rows of x under `band` rows; strip: their 4-byte groups;
 * sums: of a filter, and of x; taps: offsets of a window's groups. */
static inline __attribute__((always_inline)) void oi_dot4_depthwise_windows(
    const char *x, const int32_t *packed, oi_bytes_finish *finish, void *const *ports,
    int8_t *bytes, int32_t *strip, int32_t *sums, int32_t *taps, int64_t batches, int64_t c,
    int64_t of, int64_t band, int64_t in_turns, int64_t row, int64_t row_end, int64_t first,
    int64_t last, oi_dot4_depthwise_shape s)
{
    const int64_t step = s.kh * s.across;
    const int32_t *ones = packed + c * of * step, *totals = ones + step, *zeros = totals + c * of;
    int32_t *of_x = sums + (band * s.out_width + 63) / 64 * 64;
    oi_dot4_depthwise_taps(taps, s);
    for (int64_t b = 0; b < batches; b++)
        for (int64_t f = first; f < last; f++)
            for (int64_t y = row; y < row_end; y += band) {
                const int64_t n = y + band < row_end ? band : row_end - y, all = n * s.out_width;
                const int64_t line = in_turns ? s.out_width : all;
                oi_dot4_depthwise_strip(x + (b * c + f / of) * s.kept * s.width, bytes, strip,
                                        y * s.stride_y - s.top, n, s);
                oi_dot4_depthwise_sums(strip, packed + f * step, taps, all, step, sums);
                if (zeros[f]) {
                    oi_dot4_depthwise_sums(strip, ones, taps, all, step, of_x);
                    oi_dot4_less(sums, of_x, zeros[f], all);
                }
                for (int64_t at = 0; at < all; at += line)
                    oi_dot4_line(sums + at, 0 - s.zero * (uint32_t)totals[f], finish, ports, b, f,
                                 y * s.out_width + at, line);
            }
}

/* Bytes without zero points; the kernel's epilogue takes the sums. */
static inline __attribute__((always_inline)) void oi_dot4_conv_depthwise(
    const void *x, const int32_t *packed, oi_bytes_finish *finish, void *const *ports,
    int8_t *bytes, int32_t *strip, int32_t *sums, int32_t *taps, int64_t batches, int64_t c,
    int64_t height, int64_t width, int64_t of, int64_t out_width, int64_t kh, int64_t kw,
    int64_t stride_y, int64_t stride_x, int64_t dilation, int64_t top, int64_t left, int64_t across,
    int64_t phases, int64_t deep, int64_t pitch, int64_t band, int64_t kept, int64_t in_turns,
    int64_t row, int64_t row_end, int64_t first, int64_t last)
{
    const oi_dot4_depthwise_shape s = {height,   width,    kept,     out_width, kh,   kw,
                                       stride_y, stride_x, dilation, top,       left, across,
                                       phases,   deep,     pitch,    0,         128};
    oi_dot4_depthwise_windows(x, packed, finish, ports, bytes, strip, sums, taps, batches, c, of,
                              band, in_turns, row, row_end, first, last, s);
}

/* With zero points; x_zero, bias and y_zero are optional. */
static inline __attribute__((always_inline)) void oi_dot4_qconv_depthwise(
    const void *x, const void *x_zero, const int32_t *packed, const void *factors, const void *bias,
    const void *y_zero, void *out, int8_t *bytes, int32_t *strip, int32_t *sums, int32_t *taps,
    int64_t is_unsigned, int64_t kind, int64_t has_zero, int64_t has_bias, int64_t out_height,
    int64_t batches, int64_t c, int64_t height, int64_t width, int64_t of, int64_t out_width,
    int64_t kh, int64_t kw, int64_t stride_y, int64_t stride_x, int64_t dilation, int64_t top,
    int64_t left, int64_t across, int64_t phases, int64_t deep, int64_t pitch, int64_t band,
    int64_t kept, int64_t in_turns, int64_t row, int64_t row_end, int64_t first, int64_t last)
{
    const int64_t sizes[] = {c * of, out_height * out_width};
    const float zero = kind == 2 ? 0 : (float)oi_bytes_at(y_zero, 0, kind);
    void *const ports[] = {out,           (void *)factors, has_bias ? (void *)bias : NULL,
                           (void *)&zero, (void *)sizes,   (void *)&kind};
    const int32_t of_x = has_zero ? oi_bytes_at(x_zero, 0, is_unsigned) : 0;
    const oi_dot4_depthwise_shape s = {height,
                                       width,
                                       kept,
                                       out_width,
                                       kh,
                                       kw,
                                       stride_y,
                                       stride_x,
                                       dilation,
                                       top,
                                       left,
                                       across,
                                       phases,
                                       deep,
                                       pitch,
                                       is_unsigned,
                                       (uint32_t)(is_unsigned ? of_x : of_x + 128)};
    oi_dot4_depthwise_windows(x, packed, kind == 2 ? oi_bytes_end_i32 : NULL, ports, bytes, strip,
                              sums, taps, batches, c, of, band, in_turns, row, row_end, first, last,
                              s);
}

#endif
