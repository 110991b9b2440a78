/* dot4.h: byte convolutions with dot products of 4 bytes.
 *
 * Lanes are places, so that sums already are rows of the result; a lane has four channels of its
 * place. The instruction takes x as unsigned and w as signed bytes. Other bytes, and their zero
 * points, are moved by +128 or -128. The epilogue subtracts what that adds to a sum, in integers:
 *
 *     sum (x - zx) (w - zw) = sum x w - zx sum (w - zw) - zw sum x
 *
 * The second term is constant per filter; the last one vanishes if zw is 0. Padding is zx. */
#ifndef OI_RECIPE_DOT4_H
#define OI_RECIPE_DOT4_H

#include "body/bytes.h"
#if defined(__AMX_INT8__)
#include "body/amx/dot4_tiles.h"
#else
#include "body/avx512vnni/dot4_tile.h"
#endif

/* -- layout -- */

/* A row of up to four channels, `plane` bytes apart, with its padding: n columns of which the first
 * is `from`; width 0: all is padding. Up to 15 elements beyond it are overwritten. */
static inline __attribute__((always_inline)) void oi_dot4_row(const void *row, int64_t plane,
                                                              int64_t c, int64_t width,
                                                              int64_t from, int64_t n,
                                                              int64_t is_unsigned, int32_t fill,
                                                              int32_t *out)
{
    const int64_t begin = from < 0 ? -from : 0, end = width - from;
    const int64_t second = c > 1 ? plane : 0,
                  third = c > 2 ? 2 * plane : 0; /* any will do: its weight is 0 */
    const int64_t last = c > 3 ? 3 * plane : 0;
    for (int64_t i = 0; i < n; i += OI_VF)
        oi_vi_store(out + i, oi_vi_dot4((const char *)row + from + i, second, third, last,
                                        begin - i, end - i, fill, is_unsigned));
}

/* Such a row in parts, each `pitch` long: columns that are a stride apart lie side by side. */
static inline __attribute__((always_inline)) void oi_dot4_phases(const void *row, int64_t plane,
                                                                 int64_t c, int64_t width,
                                                                 int32_t *line, int32_t *out,
                                                                 oi_dot4_shape s)
{
    const int32_t fill = (int32_t)(s.zero * 0x01010101);
    if (s.stride_x == 1) {
        oi_dot4_row(row, plane, c, width, -s.left, s.pitch, s.is_unsigned, fill, out);
        return;
    }
    oi_dot4_row(row, plane, c, width, -s.left, s.stride_x * s.pitch, s.is_unsigned, fill, line);
    for (int64_t k = 0; k < s.phases; k++)
        for (int64_t i = 0; i < s.pitch; i++)
            out[k * s.pitch + i] = line[i * s.stride_x + k];
}

/* Lays out the rows row + ready ... row + rows - 1 of a batch; the `ready` rows before them are
 * moved here from `old` rows further on. Rows of one column are laid out together. */
static inline __attribute__((always_inline)) void oi_dot4_strip(const char *x, int32_t *strip,
                                                                int32_t *line, int64_t row,
                                                                int64_t rows, int64_t ready,
                                                                int64_t old, oi_dot4_shape s)
{
    const int64_t plane = s.kept * s.width, wide = s.phases * s.pitch, planes = s.blocks * s.deep;
    for (int64_t i = 0; i < s.groups * planes; i++) {
        const int64_t at =
            i % planes * 4 < s.c ? i % planes * 4 : 0; /* any will do: its weight is 0 */
        const char *from = x + (i / planes * s.c + at) * plane;
        int32_t *to = strip + i * s.plane;
        for (int64_t k = 0; k < ready * wide; k++)
            to[k] = to[old * wide + k];
        if (s.width == 1 && wide == 1 && s.kept == s.height) {
            oi_dot4_row(from, plane, s.c - at, s.height, row + ready, rows - ready, s.is_unsigned,
                        (int32_t)(s.zero * 0x01010101), to + ready);
            continue;
        }
        for (int64_t r = ready; r < rows; r++) {
            const int64_t y = row + r, width = y < 0 || y >= s.height ? 0 : s.width;
            oi_dot4_phases(from + (width ? y % s.kept * width : 0), plane, s.c - at, width, line,
                           to + r * wide, s);
        }
    }
}

/* -- sums -- */

/* Sums of all elements of x under each place of `vectors` vectors. The last group of four channels
 * may have fewer. */
static inline __attribute__((always_inline)) void oi_dot4_sums(const int32_t *strip,
                                                               const int32_t *at, int64_t vectors,
                                                               int64_t per, int32_t *sums,
                                                               oi_dot4_shape s)
{
    const int32_t one = 0x01010101, some = s.c % 4 ? one >> (4 - s.c % 4) * 8 : one;
    for (int64_t i = 0; i < vectors; i++) {
        const int32_t *p = strip + i / per * s.stride_y * s.phases * s.pitch + i % per * OI_VF;
        oi_vi sum = oi_vi_zero();
        for (int64_t k = 0; k < s.blocks * s.kh * s.kw * s.deep; k++) {
            const int64_t c = 4 * (k / (s.kh * s.kw * s.deep) * s.deep + k % s.deep);
            const int32_t by = c >= s.c ? 0 : c + 4 > s.c ? some : one;
            sum = oi_vi_dot_u4(sum, oi_vi_load(p + at[k]), oi_vi_set(by));
        }
        oi_vi_store(sums + i * OI_VF, sum);
    }
}

/* Subtracts from the sums of a filter what its zero point adds to them. */
static inline __attribute__((always_inline)) void oi_dot4_less(int32_t *sums, const int32_t *of_x,
                                                               int32_t zero, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sums[i] = (int32_t)((uint32_t)sums[i] - (uint32_t)zero * (uint32_t)of_x[i]);
}

/* Moves n elements towards the front; both ranges may overlap. */
static inline __attribute__((always_inline)) void oi_dot4_move(int32_t *to, const int32_t *from,
                                                               int64_t n)
{
    if (n < OI_VF) {
        memmove(to, from, (size_t)n * sizeof *to);
        return;
    }
    const oi_vi last = oi_vi_load(from + n - OI_VF);
    for (int64_t i = 0; i + OI_VF <= n; i += OI_VF)
        oi_vi_store(to + i, oi_vi_load(from + i));
    oi_vi_store(to + n - OI_VF, last);
}

/* Applies the epilogue to n sums, plus `add`, of a filter at contiguous places. finish NULL:
 * converts to bytes for qconv; ports[5] says which type. */
static inline __attribute__((always_inline)) void oi_dot4_line(const int32_t *sums, uint32_t add,
                                                               oi_bytes_finish *finish,
                                                               void *const *ports, int64_t batch,
                                                               int64_t filter, int64_t place,
                                                               int64_t n)
{
    if (!finish) {
        const float *factors = ports[1], *zero = ports[3];
        const int32_t *bias = ports[2];
        const int64_t kind = *(const int64_t *)ports[5];
        char *out = ports[0];
        if (factors[filter] > -1 && factors[filter] < 1) { /* a product with any sum is finite */
            oi_vi_bytes(sums, n, (int32_t)(add + (bias ? (uint32_t)bias[filter] : 0)),
                        factors[filter], (int32_t)*zero, kind,
                        out + oi_bytes_place(ports, batch, filter, place));
            return;
        }
        finish = oi_bytes_end(kind);
    }
    int64_t i = 0;
    for (; i + 4 * OI_VF <= n; i += 4 * OI_VF) /* a loop that compilers vectorise */
        for (int64_t k = 0; k < 4 * OI_VF; k++)
            finish(ports, batch, filter, place, i + k, (int32_t)((uint32_t)sums[i + k] + add));
    for (; i + OI_VF <= n; i += OI_VF)
        for (int64_t k = 0; k < OI_VF; k++)
            finish(ports, batch, filter, place, i + k, (int32_t)((uint32_t)sums[i + k] + add));
    for (; i < n; i++)
        finish(ports, batch, filter, place, i, (int32_t)((uint32_t)sums[i] + add));
}

/* Applies the epilogue to the sums of a filter, n rows `apart`, in one call where they are
 * contiguous. `add`: to each sum. */
static inline __attribute__((always_inline)) void oi_dot4_finish(
    int32_t *sums, uint32_t add, oi_bytes_finish *finish, void *const *ports, int64_t batch,
    int64_t filter, int64_t place, int64_t n, int64_t apart, oi_dot4_shape s)
{
    for (int64_t r = 1; r < n && apart > s.out_width; r++)
        oi_dot4_move(sums + r * s.out_width, sums + r * apart, s.out_width);
    const int64_t line = s.in_turns ? s.out_width : n * s.out_width;
    for (int64_t at = 0; at < n * s.out_width; at += line)
        oi_dot4_line(sums + at, add, finish, ports, batch, filter, place + at, line);
}

/* -- convolution -- */

/* n rows of the result from row y on, of the filters from ... to - 1 of a group. */
static inline __attribute__((always_inline)) void oi_dot4_band(
    const int32_t *strip, const int32_t *packed, const int32_t *totals, const int32_t *taps,
    oi_bytes_finish *finish, void *const *ports, int32_t *sums, int64_t batch, int64_t group,
    int64_t from, int64_t to, int64_t y, int64_t n, oi_dot4_shape s)
{
    const int64_t side = s.is_flat ? (n - 1) * s.pitch + s.out_width : s.out_width;
    const int64_t per = (side + OI_VF - 1) / OI_VF, vectors = s.is_flat ? per : n * per;
    const int64_t step = s.kh * s.kw * s.blocks * s.deep, all = (s.m + 15) / 16 * 16;
    const int32_t *zeros = totals + s.groups * s.m, has_zeros = zeros[s.groups * s.m];
    int32_t *of_x = sums + 16 * s.line;
    if (has_zeros)
        oi_dot4_sums(strip, taps, vectors, per, of_x, s);
    for (int64_t f = from; f < to; f += 16) {
        const int64_t filters = s.m - f < 16 ? s.m - f : 16;
        oi_dot4_block(strip, packed + (group * all + f) * step, taps, filters, vectors, per, sums,
                      s);
        for (int64_t k = 0; k < filters; k++) {
            const int64_t at = group * s.m + f + k;
            int32_t *mine = sums + k * s.line;
            if (has_zeros)
                oi_dot4_less(mine, of_x, zeros[at], vectors * OI_VF);
            oi_dot4_finish(mine, 0 - s.zero * (uint32_t)totals[at], finish, ports, batch, at,
                           y * s.out_width, n, s.is_flat ? s.pitch : per * OI_VF, s);
        }
    }
}

/* As oi_bytes_windows. packed: for 16 filters, blocks * kh * kw * 16 * deep groups of 4
 * bytes; then totals: per filter the sum of its weights less zero points, its zero point, and at
 * the end whether any of these is not 0. strip: the rows of x under `band` rows; line: a row of x;
 * sums: of 16 filters, and of x; taps: room for the offsets of a window's groups. */
static inline __attribute__((always_inline)) void oi_dot4_windows(
    const void *x, const int32_t *packed, oi_bytes_finish *finish, void *const *ports,
    int32_t *strip, int32_t *line, int32_t *sums, int32_t *taps, int64_t batches, int64_t groups,
    int64_t c, int64_t height, int64_t width, int64_t m, int64_t out_width, int64_t kh, int64_t kw,
    int64_t stride_y, int64_t stride_x, int64_t dilation_y, int64_t dilation_x, int64_t top,
    int64_t left, int64_t pitch, int64_t phases, int64_t blocks, int64_t deep, int64_t plane,
    int64_t line_step, int64_t is_flat, int64_t band, int64_t each, int64_t by_filters,
    int64_t kept, int64_t in_turns, int64_t row, int64_t row_end, int64_t first, int64_t last,
    int64_t is_unsigned, uint32_t zero)
{
    const oi_dot4_shape s = {groups,
                             c,
                             height,
                             width,
                             kept,
                             m,
                             out_width,
                             kh,
                             kw,
                             stride_y,
                             stride_x,
                             dilation_x,
                             (kh - 1) * dilation_y + 1,
                             top,
                             left,
                             blocks,
                             deep,
                             plane,
                             phases,
                             pitch,
                             dilation_y * phases * pitch,
                             line_step,
                             is_flat,
                             in_turns,
                             is_unsigned,
                             zero};
    const int64_t from = by_filters ? first : 0, to = by_filters ? last : s.m;
    const int64_t begin = by_filters || first * each < row ? row : first * each;
    const int64_t end = by_filters || last * each > row_end ? row_end : last * each;
    const int32_t *totals =
        packed + s.groups * ((s.m + 15) / 16 * 16) * s.kh * s.kw * s.blocks * s.deep;
    const int64_t shared = s.tall > s.stride_y ? s.tall - s.stride_y : 0;
    oi_dot4_taps(taps, s);
    oi_dot4_begin(s.deep);
    for (int64_t b = 0; b < batches; b++)
        for (int64_t y = begin; y < end; y += band) {
            const int64_t n = y + band < end ? band : end - y;
            oi_dot4_strip((const char *)x + b * s.groups * s.c * s.kept * s.width, strip, line,
                          y * s.stride_y - s.top, (n - 1) * s.stride_y + s.tall,
                          y > begin ? shared : 0, band * s.stride_y, s);
            for (int64_t g = 0; g < s.groups; g++)
                oi_dot4_band(strip + g * s.blocks * s.deep * s.plane, packed, totals, taps, finish,
                             ports, sums, b, g, from, to, y, n, s);
        }
    oi_dot4_end();
}

/* Bytes without zero points; the kernel's epilogue takes the sums. */
static inline __attribute__((always_inline)) void oi_dot4_conv(
    const void *x, const int32_t *packed, oi_bytes_finish *finish, void *const *ports,
    int32_t *strip, int32_t *line, int32_t *sums, int32_t *taps, int64_t batches, int64_t groups,
    int64_t c, int64_t height, int64_t width, int64_t m, int64_t out_width, int64_t kh, int64_t kw,
    int64_t stride_y, int64_t stride_x, int64_t dilation_y, int64_t dilation_x, int64_t top,
    int64_t left, int64_t pitch, int64_t phases, int64_t blocks, int64_t deep, int64_t plane,
    int64_t line_step, int64_t is_flat, int64_t band, int64_t each, int64_t by_filters,
    int64_t kept, int64_t in_turns, int64_t row, int64_t row_end, int64_t first, int64_t last)
{
    oi_dot4_windows(x, packed, finish, ports, strip, line, sums, taps, batches, groups, c, height,
                    width, m, out_width, kh, kw, stride_y, stride_x, dilation_y, dilation_x, top,
                    left, pitch, phases, blocks, deep, plane, line_step, is_flat, band, each,
                    by_filters, kept, in_turns, row, row_end, first, last, 0, 128);
}

/* With zero points; x_zero, bias and y_zero are optional. */
static inline __attribute__((always_inline)) void oi_dot4_qconv(
    const void *x, const void *x_zero, const int32_t *packed, const void *factors, const void *bias,
    const void *y_zero, void *out, int32_t *strip, int32_t *line, int32_t *sums, int32_t *taps,
    int64_t is_unsigned, int64_t kind, int64_t has_zero, int64_t has_bias, int64_t out_height,
    int64_t batches, int64_t groups, int64_t c, int64_t height, int64_t width, int64_t m,
    int64_t out_width, int64_t kh, int64_t kw, int64_t stride_y, int64_t stride_x,
    int64_t dilation_y, int64_t dilation_x, int64_t top, int64_t left, int64_t pitch,
    int64_t phases, int64_t blocks, int64_t deep, int64_t plane, int64_t line_step, int64_t is_flat,
    int64_t band, int64_t each, int64_t by_filters, int64_t kept, int64_t in_turns, int64_t row,
    int64_t row_end, int64_t first, int64_t last)
{
    const int64_t sizes[] = {groups * m, out_height * out_width};
    const float zero = kind == 2 ? 0 : (float)oi_bytes_at(y_zero, 0, kind);
    void *const ports[] = {out,           (void *)factors, has_bias ? (void *)bias : NULL,
                           (void *)&zero, (void *)sizes,   (void *)&kind};
    const int32_t of_x = has_zero ? oi_bytes_at(x_zero, 0, is_unsigned) : 0;
    oi_dot4_windows(x, packed, kind == 2 ? oi_bytes_end_i32 : NULL, ports, strip, line, sums, taps,
                    batches, groups, c, height, width, m, out_width, kh, kw, stride_y, stride_x,
                    dilation_y, dilation_x, top, left, pitch, phases, blocks, deep, plane,
                    line_step, is_flat, band, each, by_filters, kept, in_turns, row, row_end, first,
                    last, is_unsigned, (uint32_t)(is_unsigned ? of_x : of_x + 128));
}

#endif
