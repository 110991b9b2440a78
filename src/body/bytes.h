/* bytes.h: byte products with vectors: convolution and matmul with 32-bit sums.
 *
 * Repacking x and packing the weights subtracts the zero point and widens to 16 bits. A step
 * multiplies pairs and adds both products, exactly, for all bytes. Lanes are filters. The operands
 * of a filter at a place of the result are contiguous runs: place by place, all channels. So the
 * register tile is six places, of any rows and columns, by 2 OI_VF filters, and neither strides nor
 * row lengths matter. In depthwise convolution lanes are places and the pairs are of two rows. Sums
 * are transposed to rows of places in scratch and passed to the epilogue `finish`, row by row, so
 * that the compiler vectorises it. */
#ifndef OI_RECIPE_BYTES_H
#define OI_RECIPE_BYTES_H

#include "body/vec.h"

#include <math.h>
#include <string.h>

/* Takes the sum of a filter at place + i of a batch; ports: what it reads and writes. */
typedef void oi_bytes_finish(void *const *ports, int64_t batch, int64_t filter, int64_t place,
                             int64_t i, int32_t sum);

/* Places of a register tile. */
enum { OI_BYTES_HIGH = 6 };

/* -- layout -- */

static inline __attribute__((always_inline)) int32_t oi_bytes_at(const void *x, int64_t i,
                                                                 int64_t is_unsigned)
{
    return is_unsigned ? ((const uint8_t *)x)[i] : ((const int8_t *)x)[i];
}

/* Repacks n columns of c channels, `plane` bytes apart, as runs of c numbers, less `zero`. */
static inline __attribute__((always_inline)) void oi_bytes_runs(const void *x, int64_t plane,
                                                                int64_t c, int64_t n,
                                                                int64_t is_unsigned, int32_t zero,
                                                                int16_t *out)
{
    const char *from = x;
    int64_t k = 0;
    for (; n >= 8 && k + 8 <= c; k += c - k < 16 ? 8 : 16)
        for (int64_t i = 0; i < n; i += 8) {
            const int64_t at = i + 8 <= n ? i : n - 8; /* the last eight: some are stored twice */
            oi_vi_runs(from + k * plane + at, plane, c - k < 16 ? 8 : 16, is_unsigned, zero,
                       out + at * c + k, c);
        }
    for (; k < c; k++)
        for (int64_t i = 0; i < n; i++)
            out[i * c + k] = (int16_t)(oi_bytes_at(from + k * plane, i, is_unsigned) - zero);
}

/* A row of x with its padding: n columns from column `from` on; row NULL: all zeros. */
static inline __attribute__((always_inline)) void oi_bytes_lay(const void *row, int64_t plane,
                                                               int64_t c, int64_t width,
                                                               int64_t from, int64_t n,
                                                               int64_t is_unsigned, int32_t zero,
                                                               int16_t *out)
{
    int64_t begin = from < 0 ? -from : 0, end = width - from < n ? width - from : n;
    end = row && begin < end ? end : 0;
    begin = begin < end ? begin : end;
    memset(out, 0, (size_t)(begin * c) * sizeof *out);
    if (begin < end)
        oi_bytes_runs((const char *)row + from + begin, plane, c, end - begin, is_unsigned, zero,
                      out + begin * c);
    memset(out + end * c, 0, (size_t)((n - end) * c) * sizeof *out);
}

/* -- six places and 2 OI_VF filters -- */

/* A place times OI_VF filters, or twice as many. */
static inline __attribute__((always_inline)) void oi_bytes_multiply(const int16_t *x, oi_vi a,
                                                                    oi_vi b, int64_t vectors,
                                                                    oi_vi s[2])
{
    const oi_vi two = oi_vi_four((const int8_t *)x);
    s[0] = oi_vi_dot_i16(s[0], a, two);
    if (vectors == 2)
        s[1] = oi_vi_dot_i16(s[1], b, two);
}

/* The first n of six places times one or two vectors of filters: kh times kw runs of 2 * pairs
 * numbers, step_y and step_x apart. sums: (6, 2 OI_VF). */
static inline __attribute__((always_inline)) void oi_bytes_six(
    const int16_t *const p[OI_BYTES_HIGH], const int16_t *restrict w, int64_t n, int64_t vectors,
    int64_t kh, int64_t kw, int64_t step_y, int64_t step_x, int64_t pairs, int32_t *restrict sums)
{
    oi_vi s[2 * OI_BYTES_HIGH];
    oi_vi_clear();
    for (int64_t i = 0; i < 2 * OI_BYTES_HIGH; i++)
        s[i] = oi_vi_zero();
    for (int64_t y = 0; y < kh; y++)
        for (int64_t x = 0; x < kw; x++) {
            const int64_t at = y * step_y + x * step_x;
            for (int64_t i = at; i < at + 2 * pairs; i += 2, w += vectors * 2 * OI_VF) {
                const oi_vi a = oi_vi_load(w), b = vectors == 2 ? oi_vi_load(w + 2 * OI_VF) : a;
                oi_bytes_multiply(p[0] + i, a, b, vectors, s);
                if (n > 1)
                    oi_bytes_multiply(p[1] + i, a, b, vectors, s + 2);
                if (n > 2)
                    oi_bytes_multiply(p[2] + i, a, b, vectors, s + 4);
                if (n > 3)
                    oi_bytes_multiply(p[3] + i, a, b, vectors, s + 6);
                if (n > 4)
                    oi_bytes_multiply(p[4] + i, a, b, vectors, s + 8);
                if (n > 5)
                    oi_bytes_multiply(p[5] + i, a, b, vectors, s + 10);
            }
        }
    for (int64_t i = 0; i < 2 * n; i++)
        oi_vi_store(sums + i * OI_VF, s[i]);
}

/* -- windows over all channels of a group -- */

/* Lays out `rows` rows of x with their padding, from `row` on; the first `ready` are there already.
 * Row r of x lies at r % kept. Rows of one column are laid out together. */
static inline __attribute__((always_inline)) void oi_bytes_rows(
    const void *x, int16_t *strip, int64_t c, int64_t height, int64_t width, int64_t kept,
    int64_t row, int64_t rows, int64_t ready, int64_t left, int64_t columns, int64_t is_unsigned,
    int32_t zero)
{
    const int64_t plane = kept * width, pitch = columns * c;
    if (width == 1 && columns == 1 && kept == height) {
        oi_bytes_lay(x, plane, c, height, row + ready, rows - ready, is_unsigned, zero,
                     strip + ready * c);
        return;
    }
    for (int64_t r = ready; r < rows; r++) {
        const int64_t at = row + r;
        oi_bytes_lay(at < 0 || at >= height ? NULL : (const char *)x + at % kept * width, plane, c,
                     width, -left, columns, is_unsigned, zero, strip + r * pitch);
    }
}

/* Transposes the sums (places, 2 OI_VF) of the filters from f on into rows of places, and passes
 * them to the epilogue, `line` at a time: a row of the result, or all. */
static inline __attribute__((always_inline)) void oi_bytes_transpose(
    const int32_t *restrict sums, int32_t *restrict lines, oi_bytes_finish *finish,
    void *const *ports, int64_t batch, int64_t f, int64_t filters, int64_t place, int64_t n,
    int64_t line)
{
    const int64_t pitch = (n + OI_VF - 1) / OI_VF * OI_VF;
    for (int64_t from = 0; from < filters; from += OI_VF, sums += OI_VF) {
        for (int64_t i = 0; i < n; i += OI_VF) {
            oi_vf v[OI_VF];
            for (int64_t k = 0; k < OI_VF; k++) { /* floats only carry the bits */
                const int64_t at = i + k < n ? i + k : n - 1;
                v[k] = oi_vf_load((const float *)(const void *)(sums + at * 2 * OI_VF));
            }
            oi_vf_transpose(v);
            for (int64_t k = 0; k < OI_VF; k++)
                oi_vf_store((float *)(void *)(lines + k * pitch + i), v[k]);
        }
        for (int64_t k = 0; k < OI_VF && from + k < filters; k++)
            for (int64_t at = 0; at < n; at += line)
                for (int64_t i = 0; i < line; i++)
                    finish(ports, batch, f + from + k, place + at, i, lines[k * pitch + at + i]);
    }
}

/* The filters of a block at n places of a band: sums (n, 2 OI_VF). `most`: places of a tile, fewer
 * than six where the result has fewer. */
static inline __attribute__((always_inline)) void oi_bytes_block(
    const int16_t *strip, const int16_t *w, int32_t *sums, int64_t n, int64_t most, int64_t vectors,
    int64_t out_width, int64_t down, int64_t right, int64_t runs_y, int64_t runs_x, int64_t step_y,
    int64_t step_x, int64_t pairs)
{
    for (int64_t i = 0; i < n; i += OI_BYTES_HIGH) {
        const int16_t *p[OI_BYTES_HIGH];
        for (int64_t k = 0; k < OI_BYTES_HIGH; k++) { /* missing ones repeat the last */
            const int64_t at = i + k < n ? i + k : n - 1;
            p[k] = strip + at / out_width * down + at % out_width * right;
        }
        oi_bytes_six(p, w, most, vectors, runs_y, runs_x, step_y, step_x, pairs,
                     sums + i * 2 * OI_VF);
    }
}

/* Computes the rows first ... last - 1 among row ... row_end - 1 of the result, each counted as
 * `each`; or of all these rows the filters first ... last - 1. in_turns: the rows of the result are
 * not contiguous. x: (batches, groups * c, height, width), groups *
 * m filters. strip: the rows of x under `band` rows of the result, `columns` places with padding in
 * each; one row of the result needs `tall` of them. A window is runs_y times runs_x runs of 2 *
 * pairs numbers. sums and lines: room for a band and 2 OI_VF, or OI_VF filters. */
static inline __attribute__((always_inline)) void oi_bytes_windows(
    const void *x, const int16_t *packed, oi_bytes_finish *finish, void *const *ports,
    int16_t *strip, int32_t *sums, int32_t *lines, int32_t zero, int64_t is_unsigned,
    int64_t batches, int64_t groups, int64_t c, int64_t height, int64_t width, int64_t m,
    int64_t out_height, int64_t out_width, int64_t tall, int64_t stride_y, int64_t stride_x,
    int64_t top, int64_t left, int64_t columns, int64_t runs_y, int64_t runs_x, int64_t step_y,
    int64_t step_x, int64_t pairs, int64_t band, int64_t each, int64_t by_filters, int64_t kept,
    int64_t in_turns, int64_t row, int64_t row_end, int64_t first, int64_t last)
{
    const int64_t all = groups * c, pitch = columns * all, places = out_height * out_width;
    const int64_t most = places < OI_BYTES_HIGH ? places : OI_BYTES_HIGH;
    const int64_t from = by_filters ? first : 0, to = by_filters ? last : m;
    const int64_t begin = by_filters || first * each < row ? row : first * each;
    const int64_t end = by_filters || last * each > row_end ? row_end : last * each;
    const int64_t step = runs_y * runs_x * pairs * 2, down = stride_y * pitch;
    const int64_t shared = tall > stride_y ? tall - stride_y : 0;
    for (int64_t b = 0; b < batches; b++)
        for (int64_t y = begin; y < end; y += band) {
            const int64_t n = y + band < end ? band : end - y, rows = (n - 1) * stride_y + tall;
            const int64_t ready = y > begin ? shared : 0; /* for the band before, too */
            for (int64_t i = 0; i < ready * pitch; i++)
                strip[i] = strip[band * down + i];
            oi_bytes_rows((const char *)x + b * all * kept * width, strip, all, height, width, kept,
                          y * stride_y - top, rows, ready, left, columns, is_unsigned, zero);
            for (int64_t g = 0; g < groups; g++)
                for (int64_t f = from; f < to; f += 2 * OI_VF) {
                    const int64_t filters = m - f < 2 * OI_VF ? m - f : 2 * OI_VF;
                    const int16_t *w = packed + (g * ((m + OI_VF - 1) / OI_VF * OI_VF) + f) * step;
                    if (filters > OI_VF)
                        oi_bytes_block(strip + g * c, w, sums, n * out_width, most, 2, out_width,
                                       down, stride_x * all, runs_y, runs_x, step_y, step_x, pairs);
                    else
                        oi_bytes_block(strip + g * c, w, sums, n * out_width, most, 1, out_width,
                                       down, stride_x * all, runs_y, runs_x, step_y, step_x, pairs);
                    oi_bytes_transpose(sums, lines, finish, ports, b, g * m + f, filters,
                                       y * out_width, n * out_width,
                                       in_turns ? out_width : n * out_width);
                }
        }
}

/* -- a channel of its own for every filter -- */

/* Pairs of rows a and b: out[i] has a[i * stride + shift] in its lower half and the same of b in
 * its upper half. Elements outside of the n of a row are 0, as are those of a row that is NULL. */
static inline __attribute__((always_inline)) void oi_bytes_pair(const void *a, const void *b,
                                                                int64_t n, int64_t stride,
                                                                int64_t shift, int64_t is_unsigned,
                                                                int32_t zero, int32_t *out,
                                                                int64_t count)
{
    const uint32_t keep = (a ? 0xffff : 0) | (b ? 0xffff0000u : 0);
    const char *p = a ? a : b, *q = b ? b : a;
    int64_t from = shift < 0 ? (stride - 1 - shift) / stride : 0;
    int64_t to = n > shift ? (n - shift + stride - 1) / stride : 0;
    to = !keep ? 0 : to < count ? to : count;
    from = from < to ? from : to;
    for (int64_t i = 0; i < from; i++)
        out[i] = 0;
    for (int64_t i = from; stride == 1 && to - from >= 8 && i < to; i += 8) {
        const int64_t at = i + 8 <= to ? i : to - 8; /* the last eight: some are stored twice */
        oi_vi_two_rows(p + at + shift, q + at + shift, is_unsigned, zero, (int32_t)keep, out + at);
    }
    for (int64_t i = from; (stride > 1 || to - from < 8) && i < to; i++) {
        const int64_t at = i * stride + shift;
        const uint32_t low = (uint32_t)(oi_bytes_at(p, at, is_unsigned) - zero);
        const uint32_t high = (uint32_t)(oi_bytes_at(q, at, is_unsigned) - zero);
        out[i] = (int32_t)(((low & 0xffff) | high << 16) & keep);
    }
    for (int64_t i = to; i < count; i++)
        out[i] = 0;
}

/* The sums of one to four vectors of places over kh / 2 pairs of rows, `down` apart, and kw columns
 * of each. */
static inline __attribute__((always_inline)) void oi_bytes_along(const int32_t *x, const int32_t *w,
                                                                 int64_t n, int64_t kh, int64_t kw,
                                                                 int64_t down, int64_t stride,
                                                                 int64_t dilation, int64_t pitch,
                                                                 int32_t *out)
{
    oi_vi s[4];
    for (int64_t i = 0; i < 4; i++)
        s[i] = oi_vi_zero();
    for (int64_t r = 0; r < (kh + 1) / 2; r++)
        for (int64_t k = 0; k < kw; k++) {
            const oi_vi by = oi_vi_set(w[r * kw + k]);
            const int32_t *p = x + r * down + k * dilation % stride * pitch + k * dilation / stride;
            s[0] = oi_vi_dot_i16(s[0], oi_vi_load(p), by);
            if (n > 1)
                s[1] = oi_vi_dot_i16(s[1], oi_vi_load(p + OI_VF), by);
            if (n > 2)
                s[2] = oi_vi_dot_i16(s[2], oi_vi_load(p + 2 * OI_VF), by);
            if (n > 3)
                s[3] = oi_vi_dot_i16(s[3], oi_vi_load(p + 3 * OI_VF), by);
        }
    for (int64_t i = 0; i < n; i++)
        oi_vi_store(out + i * OI_VF, s[i]);
}

/* A row of the result, in whole vectors: what is stored beyond its end is not used. */
static inline __attribute__((always_inline)) void oi_bytes_line(const int32_t *x, const int32_t *w,
                                                                int64_t out_width, int64_t kh,
                                                                int64_t kw, int64_t down,
                                                                int64_t stride, int64_t dilation,
                                                                int64_t pitch, int32_t *out)
{
    int64_t i = 0;
    for (; i + 3 * OI_VF < out_width; i += 4 * OI_VF)
        oi_bytes_along(x + i, w, 4, kh, kw, down, stride, dilation, pitch, out + i);
    const int64_t left = (out_width - i + OI_VF - 1) / OI_VF;
    if (left == 3)
        oi_bytes_along(x + i, w, 3, kh, kw, down, stride, dilation, pitch, out + i);
    else if (left == 2)
        oi_bytes_along(x + i, w, 2, kh, kw, down, stride, dilation, pitch, out + i);
    else if (left == 1)
        oi_bytes_along(x + i, w, 1, kh, kw, down, stride, dilation, pitch, out + i);
}

/* Filter f sees channel f / of only. pairs: rows of that channel under `band` rows of the result,
 * each with the one `dilation_y` below it, split by column modulo stride_x into parts `pitch` long.
 * sums: room for a band and four vectors. Rows row ... row_end - 1 of the filters first ... last -
 * 1; in_turns and kept: as above. */
static inline __attribute__((always_inline)) void oi_bytes_depthwise(
    const void *x, const int32_t *w, oi_bytes_finish *finish, void *const *ports, int32_t *pairs,
    int32_t *sums, int32_t zero, int64_t is_unsigned, int64_t batches, int64_t c, int64_t height,
    int64_t width, int64_t of, int64_t out_width, int64_t kh, int64_t kw, int64_t stride_y,
    int64_t stride_x, int64_t dilation_y, int64_t dilation_x, int64_t top, int64_t left,
    int64_t pitch, int64_t band, int64_t kept, int64_t in_turns, int64_t row, int64_t row_end,
    int64_t first, int64_t last)
{
    const int64_t step = stride_x * pitch, below = (kh - 1) / 2 * 2 * dilation_y;
    for (int64_t b = 0; b < batches; b++)
        for (int64_t f = first; f < last; f++)
            for (int64_t y = row; y < row_end; y += band) {
                const int64_t n = y + band < row_end ? band : row_end - y;
                const int64_t line = in_turns ? out_width : n * out_width;
                const char *channel = (const char *)x + (b * c + f / of) * kept * width;
                /* with an even stride no window begins at odd rows */
                for (int64_t r = 0; r <= (n - 1) * stride_y + below; r += stride_y % 2 ? 1 : 2) {
                    const int64_t a = y * stride_y - top + r, d = a + dilation_y;
                    for (int64_t s = 0; s < stride_x; s++)
                        oi_bytes_pair(a < 0 || a >= height ? NULL : channel + a % kept * width,
                                      d < 0 || d >= height ? NULL : channel + d % kept * width,
                                      width, stride_x, s - left, is_unsigned, zero,
                                      pairs + r * step + s * pitch, pitch);
                }
                for (int64_t r = 0; r < n; r++)
                    oi_bytes_line(pairs + r * stride_y * step, w + f * ((kh + 1) / 2 * kw),
                                  out_width, kh, kw, 2 * dilation_y * step, stride_x, dilation_x,
                                  pitch, sums + r * out_width);
                for (int64_t at = 0; at < n * out_width; at += line)
                    for (int64_t i = 0; i < line; i++)
                        finish(ports, b, f, y * out_width + at, i, sums[at + i]);
            }
}

/* -- matmul -- */

/* x (rows, k), w: pairs of numbers of 2 OI_VF filters. strip: six rows of 2 * pairs numbers; sums:
 * six of 2 OI_VF. zeros: of every row, `zero_step` apart. Filters first ... last - 1. */
static inline __attribute__((always_inline)) void oi_bytes_dense(
    const void *x, const int16_t *w, oi_bytes_finish *finish, void *const *ports, int16_t *strip,
    int32_t *sums, const void *zeros, int64_t zero_step, int64_t is_unsigned, int64_t rows,
    int64_t k, int64_t m, int64_t pairs, int64_t first, int64_t last)
{
    const int64_t most = rows < OI_BYTES_HIGH ? rows : OI_BYTES_HIGH;
    for (int64_t r = 0; r < rows; r += OI_BYTES_HIGH) {
        const int64_t n = r + OI_BYTES_HIGH < rows ? OI_BYTES_HIGH : rows - r;
        const int16_t *p[OI_BYTES_HIGH];
        for (int64_t i = 0; i < OI_BYTES_HIGH; i++)
            p[i] = strip + (i < n ? i : n - 1) * 2 * pairs;
        for (int64_t i = 0; i < n; i++) {
            const int32_t zero = zeros ? oi_bytes_at(zeros, (r + i) * zero_step, is_unsigned) : 0;
            for (int64_t j = 0; j < k; j++)
                strip[i * 2 * pairs + j] =
                    (int16_t)(oi_bytes_at(x, (r + i) * k + j, is_unsigned) - zero);
            if (k < 2 * pairs)
                strip[i * 2 * pairs + k] = 0;
        }
        for (int64_t f = first; f < last; f += 2 * OI_VF) {
            const int64_t filters = m - f < 2 * OI_VF ? m - f : 2 * OI_VF;
            if (filters > OI_VF)
                oi_bytes_six(p, w + f * 2 * pairs, most, 2, 1, 1, 0, 0, pairs, sums);
            else
                oi_bytes_six(p, w + f * 2 * pairs, most, 1, 1, 1, 0, 0, pairs, sums);
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < filters; j++)
                    finish(ports, r + i, f + j, 0, 0, sums[i * 2 * OI_VF + j]);
        }
    }
}

/* -- bytes without zero points: the epilogue takes the sums -- */

static inline __attribute__((always_inline)) void oi_bytes_conv(
    const void *x, const int16_t *packed, oi_bytes_finish *finish, void *const *ports,
    int16_t *strip, int32_t *sums, int32_t *lines, int64_t batches, int64_t groups, int64_t c,
    int64_t height, int64_t width, int64_t m, int64_t out_height, int64_t out_width, int64_t tall,
    int64_t stride_y, int64_t stride_x, int64_t top, int64_t left, int64_t columns, int64_t runs_y,
    int64_t runs_x, int64_t step_y, int64_t step_x, int64_t pairs, int64_t band, int64_t each,
    int64_t by_filters, int64_t kept, int64_t in_turns, int64_t row, int64_t row_end, int64_t first,
    int64_t last)
{
    oi_bytes_windows(x, packed, finish, ports, strip, sums, lines, 0, 0, batches, groups, c, height,
                     width, m, out_height, out_width, tall, stride_y, stride_x, top, left, columns,
                     runs_y, runs_x, step_y, step_x, pairs, band, each, by_filters, kept, in_turns,
                     row, row_end, first, last);
}

static inline __attribute__((always_inline)) void oi_bytes_conv_depthwise(
    const void *x, const int32_t *packed, oi_bytes_finish *finish, void *const *ports,
    int32_t *pairs, int32_t *sums, int64_t batches, int64_t c, int64_t height, int64_t width,
    int64_t of, int64_t out_width, int64_t kh, int64_t kw, int64_t stride_y, int64_t stride_x,
    int64_t dilation_y, int64_t dilation_x, int64_t top, int64_t left, int64_t pitch, int64_t band,
    int64_t kept, int64_t in_turns, int64_t row, int64_t row_end, int64_t first, int64_t last)
{
    oi_bytes_depthwise(x, packed, finish, ports, pairs, sums, 0, 0, batches, c, height, width, of,
                       out_width, kh, kw, stride_y, stride_x, dilation_y, dilation_x, top, left,
                       pitch, band, kept, in_turns, row, row_end, first, last);
}

static inline __attribute__((always_inline)) void oi_bytes_matmul(
    const void *x, const int16_t *packed, oi_bytes_finish *finish, void *const *ports,
    int16_t *strip, int32_t *sums, int64_t rows, int64_t k, int64_t m, int64_t pairs, int64_t first,
    int64_t last)
{
    oi_bytes_dense(x, packed, finish, ports, strip, sums, NULL, 0, 0, rows, k, m, pairs, first,
                   last);
}

/* -- bytes with zero points -- */

static inline __attribute__((always_inline)) float oi_bytes_scaled(void *const *ports,
                                                                   int64_t filter, int32_t sum)
{
    const float *factors = ports[1];
    const int32_t *bias = ports[2];
    const float *zero = ports[3];
    const uint32_t more = bias ? (uint32_t)bias[filter] : 0;
    return rintf((float)(int32_t)((uint32_t)sum + more) * factors[filter]) + *zero;
}

/* Where the sum belongs; ports[4]: filters, and places of one. */
static inline __attribute__((always_inline)) int64_t oi_bytes_place(void *const *ports,
                                                                    int64_t batch, int64_t filter,
                                                                    int64_t place)
{
    const int64_t *sizes = ports[4];
    return (batch * sizes[0] + filter) * sizes[1] + place;
}

static inline __attribute__((always_inline)) void oi_bytes_end_i32(void *const *ports,
                                                                   int64_t batch, int64_t filter,
                                                                   int64_t place, int64_t i,
                                                                   int32_t sum)
{
    int32_t *out = ports[0];
    out[oi_bytes_place(ports, batch, filter, place) + i] = sum;
}

static inline __attribute__((always_inline)) void oi_bytes_end_i8(void *const *ports, int64_t batch,
                                                                  int64_t filter, int64_t place,
                                                                  int64_t i, int32_t sum)
{
    int8_t *out = ports[0];
    const float v = oi_bytes_scaled(ports, filter, sum), low = v > -128.0f ? v : -128.0f;
    const int32_t n = (int32_t)(low < 127.0f ? low : 127.0f);
    out[oi_bytes_place(ports, batch, filter, place) + i] = (int8_t)(v == v ? n : 0);
}

static inline __attribute__((always_inline)) void oi_bytes_end_u8(void *const *ports, int64_t batch,
                                                                  int64_t filter, int64_t place,
                                                                  int64_t i, int32_t sum)
{
    uint8_t *out = ports[0];
    const float v = oi_bytes_scaled(ports, filter, sum),
                low = v > 0.0f ? v : 0.0f; /* and for NaN */
    out[oi_bytes_place(ports, batch, filter, place) + i] =
        (uint8_t)(int32_t)(low < 255.0f ? low : 255.0f);
}

/* The type of the result: kind 0, i8; 1, u8; 2, i32, the sums themselves. */
static inline __attribute__((always_inline)) oi_bytes_finish *oi_bytes_end(int64_t kind)
{
    return kind == 2 ? oi_bytes_end_i32 : kind == 1 ? oi_bytes_end_u8 : oi_bytes_end_i8;
}

/* x_zero, bias and y_zero are optional. */
static inline __attribute__((always_inline)) void oi_bytes_qconv(
    const void *x, const void *x_zero, const int16_t *packed, const void *factors, const void *bias,
    const void *y_zero, void *out, int16_t *strip, int32_t *sums, int32_t *lines,
    int64_t is_unsigned, int64_t kind, int64_t has_zero, int64_t has_bias, int64_t batches,
    int64_t groups, int64_t c, int64_t height, int64_t width, int64_t m, int64_t out_height,
    int64_t out_width, int64_t tall, int64_t stride_y, int64_t stride_x, int64_t top, int64_t left,
    int64_t columns, int64_t runs_y, int64_t runs_x, int64_t step_y, int64_t step_x, int64_t pairs,
    int64_t band, int64_t each, int64_t by_filters, int64_t kept, int64_t in_turns, int64_t row,
    int64_t row_end, int64_t first, int64_t last)
{
    const int64_t sizes[] = {groups * m, out_height * out_width};
    const float zero = kind == 2 ? 0 : (float)oi_bytes_at(y_zero, 0, kind);
    void *const ports[] = {out, (void *)factors, has_bias ? (void *)bias : NULL, (void *)&zero,
                           (void *)sizes};
    oi_bytes_windows(x, packed, oi_bytes_end(kind), ports, strip, sums, lines,
                     has_zero ? oi_bytes_at(x_zero, 0, is_unsigned) : 0, is_unsigned, batches,
                     groups, c, height, width, m, out_height, out_width, tall, stride_y, stride_x,
                     top, left, columns, runs_y, runs_x, step_y, step_x, pairs, band, each,
                     by_filters, kept, in_turns, row, row_end, first, last);
}

static inline __attribute__((always_inline)) void oi_bytes_qconv_depthwise(
    const void *x, const void *x_zero, const int32_t *packed, const void *factors, const void *bias,
    const void *y_zero, void *out, int32_t *pairs, int32_t *sums, int64_t is_unsigned, int64_t kind,
    int64_t has_zero, int64_t has_bias, int64_t out_height, int64_t batches, int64_t c,
    int64_t height, int64_t width, int64_t of, int64_t out_width, int64_t kh, int64_t kw,
    int64_t stride_y, int64_t stride_x, int64_t dilation_y, int64_t dilation_x, int64_t top,
    int64_t left, int64_t pitch, int64_t band, int64_t kept, int64_t in_turns, int64_t row,
    int64_t row_end, int64_t first, int64_t last)
{
    const int64_t sizes[] = {c * of, out_height * out_width};
    const float zero = kind == 2 ? 0 : (float)oi_bytes_at(y_zero, 0, kind);
    void *const ports[] = {out, (void *)factors, has_bias ? (void *)bias : NULL, (void *)&zero,
                           (void *)sizes};
    oi_bytes_depthwise(x, packed, oi_bytes_end(kind), ports, pairs, sums,
                       has_zero ? oi_bytes_at(x_zero, 0, is_unsigned) : 0, is_unsigned, batches, c,
                       height, width, of, out_width, kh, kw, stride_y, stride_x, dilation_y,
                       dilation_x, top, left, pitch, band, kept, in_turns, row, row_end, first,
                       last);
}

/* zero_step: distance from a row's zero point to the next one's. */
static inline __attribute__((always_inline)) void oi_bytes_qmatmul(
    const void *x, const void *x_zero, const int16_t *packed, const void *factors,
    const void *y_zero, void *out, int16_t *strip, int32_t *sums, int64_t is_unsigned, int64_t kind,
    int64_t has_zero, int64_t zero_step, int64_t rows, int64_t k, int64_t m, int64_t pairs,
    int64_t first, int64_t last)
{
    const int64_t sizes[] = {m, 1};
    const float zero = kind == 2 ? 0 : (float)oi_bytes_at(y_zero, 0, kind);
    void *const ports[] = {out, (void *)factors, NULL, (void *)&zero, (void *)sizes};
    oi_bytes_dense(x, packed, oi_bytes_end(kind), ports, strip, sums, has_zero ? x_zero : NULL,
                   zero_step, is_unsigned, rows, k, m, pairs, first, last);
}

#endif
