/* mac.h: byte products for microcontrollers: convolution and matmul of i8 into i32.
 *
 * Inputs are repacked once so that the operands of a filter are contiguous: place by place, all
 * channels. They become oi_mac_number: 16 bits where there are no vectors. The register tile is two
 * filters by two places, OI_MAC_RUN elements each; the filters' bytes are packed in the order that
 * is cheapest to unpack. Every sum is passed to the epilogue `finish`, so sums are never stored. */
#ifndef OI_RECIPE_MAC_H
#define OI_RECIPE_MAC_H

#if defined(__ARM_FEATURE_MVE)
#include "body/mve/mac.h"
#else
#include "body/scalar/taps.h"
#endif

#include <string.h>

/* Takes the sum of a filter at place + i of a batch, both in one row of the result where the kernel
 * computes rows; ports: what it reads and writes. */
typedef void oi_mac_finish(void *const *ports, int32_t batch, int32_t filter, int32_t place,
                           int32_t i, int32_t sum);

/* -- layout -- */

/* Columns `from` to from + n - 1 of a row of x: c channels, `plane` numbers apart, become runs of
 * `each` (c, or one more that is 0). Columns outside of its `width` are 0; x NULL: all are. */
static __attribute__((noinline)) void oi_mac_lay(const int8_t *x, int32_t plane, int32_t c,
                                                 int32_t each, int32_t width, int32_t from,
                                                 int32_t n, oi_mac_number *out)
{
    const int32_t begin = from < 0 ? -from : 0, end = width - from < n ? width - from : n;
    if (!x || begin >= end) {
        memset(out, 0, (size_t)(n * each) * sizeof *out);
        return;
    }
    memset(out, 0, (size_t)(begin * each) * sizeof *out);
    memset(out + end * each, 0, (size_t)((n - end) * each) * sizeof *out);
    x += from + begin;
    out += begin * each;
    if (c == 1 && each == 1)
        oi_mac_copy(x, out, end - begin);
    else
        for (int32_t k = 0; k < c; k += 2, x += 2 * plane)
            if (k + 1 < c ||
                each > c) /* the last of an odd number is paired with itself; that weight is 0 */
                oi_mac_weave(x, k + 1 < c ? x + plane : x, out + k, each, end - begin);
            else
                for (int32_t i = 0; i < end - begin; i++)
                    out[i * each + k] = x[i];
}

/* -- windows over all channels -- */

/* Two filters at the places a and b: `rows` runs of `steps` steps. Rows are slots of a ring,
 * `pitch` apart, of which `first` is the uppermost. */
static inline __attribute__((always_inline)) oi_mac_sums oi_mac_window(const oi_mac_number *strip,
                                                                       const int8_t *w,
                                                                       int32_t first, int32_t rows,
                                                                       int32_t pitch, int32_t steps,
                                                                       int32_t apart)
{
    const int32_t skip = pitch - OI_MAC_RUN * steps, below = rows - first;
    const oi_mac_number *a = strip + first * pitch;
    oi_mac_sums s = {0, 0, 0, 0};
    s = oi_mac_two(a, a + apart, w, steps, below, skip, s);
    return oi_mac_two(strip, strip + apart, w + below * 2 * OI_MAC_RUN * steps, steps, first, skip,
                      s);
}

/* All filters at `places` places of the strip; the first of them is place `at` of the result. */
static inline __attribute__((always_inline)) void oi_mac_filters(
    const oi_mac_number *strip, const int8_t *w, oi_mac_finish *finish, void *const *ports,
    int32_t batch, int32_t at, int32_t places, int32_t m, int32_t first, int32_t rows,
    int32_t pitch, int32_t steps, int32_t apart)
{
    for (int32_t f = 0; f < m; f += 2, w += rows * steps * 2 * OI_MAC_RUN)
        for (int32_t i = 0; i < places; i += 2) {
            const oi_mac_sums s =
                oi_mac_window(strip + i * apart, w, first, rows, pitch, steps, apart);
            finish(ports, batch, f, at, i, s.a0);
            if (f + 1 < m)
                finish(ports, batch, f + 1, at, i, s.a1);
            if (i + 1 < places) {
                finish(ports, batch, f, at, i + 1, s.b0);
                if (f + 1 < m)
                    finish(ports, batch, f + 1, at, i + 1, s.b1);
            }
        }
}

/* Where row r of x lies. */
static inline __attribute__((always_inline)) int32_t oi_mac_row(int32_t r, int64_t kept,
                                                                int64_t height)
{
    return kept < height ? r % (int32_t)kept : r;
}

/* Windows (kh, kw) over all c channels. strip: kh rows of pitch numbers, a ring: every row of x is
 * laid out once. It holds all places of a row of the result, or `tile` of them where kh is 1.
 * `each`: c, made even where places would else begin between words. A row of x is in the strip
 * before a row of the result is written that lies no lower. Rows first ... last - 1 of the result
 * are made; row r of x lies at r % kept. */
static inline __attribute__((always_inline)) void oi_mac_conv(
    const int8_t *x, const int8_t *w, oi_mac_finish *finish, void *const *ports,
    oi_mac_number *strip, int64_t batches, int64_t c, int64_t height, int64_t width, int64_t m,
    int64_t out_width, int64_t kh, int64_t kw, int64_t stride_y, int64_t stride_x, int64_t top,
    int64_t left, int64_t each, int64_t tile, int64_t pitch, int64_t steps, int64_t kept,
    int64_t first, int64_t last)
{
    const int32_t plane = (int32_t)(kept * width), places = (int32_t)out_width;
    for (int32_t b = 0; b < batches; b++, x += c * plane)
        for (int32_t y = (int32_t)first, next = 0; y < last; y++)
            for (int32_t i = 0; i < places; i += (int32_t)tile) {
                const int32_t n = places - i < tile ? places - i : (int32_t)tile;
                const int32_t top_row = y * (int32_t)stride_y;
                next = kh == 1 || next < top_row ? top_row : next;
                for (; next < top_row + kh; next++) {
                    const int32_t row = next - (int32_t)top;
                    oi_mac_lay(row < 0 || row >= height ? NULL
                                                        : x + oi_mac_row(row, kept, height) * width,
                               plane, (int32_t)c, (int32_t)each, (int32_t)width,
                               i * (int32_t)stride_x - (int32_t)left,
                               (n - 1) * (int32_t)stride_x + (int32_t)kw,
                               strip + next % (int32_t)kh * (int32_t)pitch);
                }
                oi_mac_filters(strip, w, finish, ports, b, y * places + i, n, (int32_t)m,
                               top_row % (int32_t)kh, (int32_t)kh, (int32_t)pitch, (int32_t)steps,
                               (int32_t)(stride_x * each));
            }
}

/* -- a channel of its own for every filter -- */

/* Words of a filter that fit into registers and the stack. */
enum { OI_MAC_TAPS = 32 };

/* Filter f sees channel f / of only. padded: `tall` rows of that channel with their padding, pitch
 * apart, for `band` rows of the result. w: i16, (kw + 1) / 2 * 2 for a row of kw. Rows first ...
 * last - 1 of the result are made; row r of x lies at r % kept. */
static inline __attribute__((always_inline)) void oi_mac_depthwise(
    const int8_t *x, const int16_t *w, oi_mac_finish *finish, void *const *ports,
    oi_mac_number *padded, int64_t batches, int64_t c, int64_t height, int64_t width, int64_t of,
    int64_t out_height, int64_t out_width, int64_t kh, int64_t kw, int64_t stride_y,
    int64_t stride_x, int64_t top, int64_t left, int64_t band, int64_t tall, int64_t pitch,
    int64_t kept, int64_t first, int64_t last)
{
    const int32_t plane = (int32_t)(kept * width), words = (int32_t)((kw + 1) / 2);
    const int32_t room = (int32_t)((out_width - 1) * stride_x + kw - left);
    const int32_t n = room < width ? room : (int32_t)width; /* of a row that windows see */
    uint32_t by[OI_MAC_TAPS];
    memset(padded, 0, (size_t)(tall * pitch) * sizeof *padded);
    for (int32_t b = 0; b < batches; b++, x += c * plane)
        for (int32_t f = 0; f < c * of; f++) {
            const int8_t *channel = x + f / (int32_t)of * plane;
#pragma GCC unroll 32
            for (int32_t i = 0; i < (int32_t)kh * words; i++)
                by[i] = oi_mac_pair(w + (f * (int32_t)kh * words + i) * 2);
            for (int32_t y0 = (int32_t)first; y0 < last; y0 += (int32_t)band) {
                const int32_t above = (int32_t)top - y0 * (int32_t)stride_y;
                const int32_t from = above < 0 ? -above : 0;
                const int32_t to = tall - above < height ? (int32_t)tall - above : (int32_t)height;
                if (band < out_height) /* else the same places hold zeros for all channels */
                    memset(padded, 0, (size_t)(tall * pitch) * sizeof *padded);
                for (int32_t row = from; row < to; row++)
                    oi_mac_copy(channel + oi_mac_row(row, kept, height) * (int32_t)width,
                                padded + (row + above) * (int32_t)pitch + left, n);
                for (int32_t y = y0; y < last && y < y0 + band; y++)
                    for (int32_t i = 0; i < out_width; i += OI_MAC_PLACES) {
                        int32_t sums[OI_MAC_PLACES];
                        oi_mac_taps(
                            padded + (y - y0) * (int32_t)(stride_y * pitch) + i * (int32_t)stride_x,
                            by, (int32_t)kh, (int32_t)kw, (int32_t)pitch, (int32_t)stride_x, sums);
                        for (int32_t j = 0; j < OI_MAC_PLACES && i + j < out_width; j++)
                            finish(ports, b, f, y * (int32_t)out_width, i + j, sums[j]);
                    }
            }
        }
}

/* -- matmul -- */

/* x (rows, k), w: k numbers of every filter. strip: two rows of pitch numbers. */
static inline __attribute__((always_inline)) void oi_mac_dense(const int8_t *x, const int8_t *w,
                                                               oi_mac_finish *finish,
                                                               void *const *ports,
                                                               oi_mac_number *strip, int64_t rows,
                                                               int64_t k, int64_t m, int64_t pitch)
{
    for (int32_t r = 0; r < rows; r += 2) {
        const int32_t n = r + 1 < rows ? 2 : 1;
        for (int32_t i = 0; i < n; i++)
            oi_mac_lay(x + (r + i) * k, 1, 1, 1, (int32_t)k, 0, (int32_t)pitch,
                       strip + i * (int32_t)pitch);
        for (int32_t f = 0; f < m; f += 2) {
            const int8_t *p = w + f * (int32_t)pitch;
            oi_mac_sums s = {0, 0, 0, 0};
            s = rows == 1
                    ? oi_mac_one(strip, p, (int32_t)pitch / OI_MAC_RUN, s)
                    : oi_mac_two(strip, strip + pitch, p, (int32_t)pitch / OI_MAC_RUN, 1, 0, s);
            finish(ports, r, f, 0, 0, s.a0);
            if (f + 1 < m)
                finish(ports, r, f + 1, 0, 0, s.a1);
            if (n == 2) {
                finish(ports, r + 1, f, 0, 0, s.b0);
                if (f + 1 < m)
                    finish(ports, r + 1, f + 1, 0, 0, s.b1);
            }
        }
    }
}

#endif
