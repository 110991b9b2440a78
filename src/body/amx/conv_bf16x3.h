/* conv_bf16x3.h: convolutions with stride 1 in AMX tiles of bf16, by the bf16 split of bf16x3.h.
 *
 *     x:  pairs of channels, the three parts of each: an image of pairs with its padding, rows
 *         `pitch` apart. The right padding of a row is also the left padding of the next one
 *     w:  panels of 32 filters; a panel is steps of 32 channels; a step has, for every place of the
 *         window and every part, two tiles of 16 filters. After the panels: which of them are
 *         nonfinite
 *
 * So contiguous places are rows of a tile at every position of the window. Places between the rows
 * of the result are computed, too, and dropped. The register tile is two tiles of filters by two of
 * places, because larger tiles load less. If x or a panel is nonfinite, sums are computed
 * separately. */
#ifndef OI_RECIPE_CONV_BF16X3_H
#define OI_RECIPE_CONV_BF16X3_H

#include "body/amx/bf16x3.h"
#include "body/conv.h"

/* 16 places of two channels, of which n exist: the parts are `plane` apart. */
static inline __mmask16 oi_conv_bf16x3_line(const float *even, const float *odd, int64_t n,
                                            uint32_t *restrict to, int64_t plane)
{
    __m512 a = oi_bf16x3_load(even, n), b = oi_bf16x3_load(odd, odd ? n : 0);
    const __mmask16 is_nonfinite = oi_bf16x3_nonfinite(&a) | oi_bf16x3_nonfinite(&b);
    const __mmask16 own = (__mmask16)(n < 16 ? (1u << n) - 1 : 0xffff);
    for (int64_t i = 0; i < 3; i++) {
        const __m512i low = _mm512_srli_epi32(oi_bf16x3_cut(&a), 16);
        _mm512_mask_storeu_epi32(to + i * plane, own, _mm512_or_si512(low, oi_bf16x3_cut(&b)));
    }
    return is_nonfinite;
}

/* n numbers of each part are nothing. */
static inline void oi_conv_bf16x3_clear(uint32_t *to, int64_t n, int64_t plane)
{
    for (int64_t part = 0; part < 3; part++)
        for (int64_t i = 0; i < n; i++)
            to[part * plane + i] = 0;
}

/* x (c, height, width) as pairs first ... last - 1 of channels, and which of those are nonfinite.
 */
static inline void oi_conv_bf16x3_split(const float *restrict x, uint32_t *restrict parts,
                                        uint8_t *restrict nonfinite, int64_t c, int64_t height,
                                        int64_t width, int64_t top, int64_t left, int64_t pitch,
                                        int64_t plane, int64_t first, int64_t last)
{
    for (int64_t j = first; j < last; j++) {
        const int64_t rows = 2 * j < c ? height : 0, start = top * pitch + left;
        const float *even = x + 2 * j * height * width;
        const float *odd = 2 * j + 1 < c ? even + height * width : NULL;
        uint32_t *to = parts + 3 * j * plane;
        int is_nonfinite = 0;
        oi_conv_bf16x3_clear(to, start, plane);
        for (int64_t y = 0; y < rows; y++) {
            uint32_t *at = to + start + y * pitch;
            for (int64_t i = 0; i < width; i += 16)
                is_nonfinite |=
                    oi_conv_bf16x3_line(even + y * width + i, odd ? odd + y * width + i : NULL,
                                        width - i, at + i, plane);
            oi_conv_bf16x3_clear(at + width, pitch - width, plane);
        }
        oi_conv_bf16x3_clear(to + start + rows * pitch, plane - start - rows * pitch, plane);
        for (int64_t i = 0; is_nonfinite && i < height * width; i++) {
            uint16_t *own = (uint16_t *)(to + start + i / width * pitch + i % width);
            oi_bf16x3_one(even[i], own, 2 * plane, 3);
            oi_bf16x3_one(odd ? odd[i] : 0, own + 1, 2 * plane, 3);
        }
        nonfinite[j] = is_nonfinite != 0;
    }
}

/* -- tiles: 0 to 3 are sums, 4 and 5 filters, 6 and 7 places -- */

static inline __attribute__((always_inline)) void oi_conv_bf16x3_filters(const uint16_t *w)
{
    _tile_loadd(4, w, 64);
    _tile_loadd(5, w + 512, 64);
}

static inline __attribute__((always_inline)) void oi_conv_bf16x3_places(const uint32_t *x,
                                                                        int64_t bytes, int64_t wide)
{
    _tile_loadd(6, x, bytes);
    if (wide == 2)
        _tile_loadd(7, x + 16, bytes);
}

static inline __attribute__((always_inline)) void oi_conv_bf16x3_multiply(int64_t wide)
{
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    if (wide == 2) {
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
    }
}

/* 32 channels at one place of the window, in the order of oi_bf16x3_step. */
static inline __attribute__((always_inline)) void oi_conv_bf16x3_step(const uint16_t *w,
                                                                      const uint32_t *x,
                                                                      int64_t plane, int64_t wide)
{
    const int64_t bytes = 12 * plane;
    oi_conv_bf16x3_filters(w);
    oi_conv_bf16x3_places(x + 2 * plane, bytes, wide);
    oi_conv_bf16x3_multiply(wide);
    oi_conv_bf16x3_places(x + plane, bytes, wide);
    oi_conv_bf16x3_multiply(wide);
    oi_conv_bf16x3_filters(w + 1024);
    oi_conv_bf16x3_multiply(wide);
    oi_conv_bf16x3_places(x, bytes, wide);
    oi_conv_bf16x3_multiply(wide);
    oi_conv_bf16x3_filters(w + 2048);
    oi_conv_bf16x3_multiply(wide);
    oi_conv_bf16x3_filters(w);
    oi_conv_bf16x3_multiply(wide);
}

/* A panel at 16 or 32 places: sums (32, 32). */
static inline __attribute__((always_inline)) void oi_conv_bf16x3_sums(
    const uint16_t *w, const uint32_t *x, float *sums, int64_t steps, int64_t kh, int64_t kw,
    int64_t step_y, int64_t step_x, int64_t plane, int64_t wide)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t s = 0; s < steps; s++, x += 48 * plane)
        for (int64_t i = 0; i < kh * kw; i++, w += 3072)
            oi_conv_bf16x3_step(w, x + i / kw * step_y + i % kw * step_x, plane, wide);
    _tile_stored(0, sums, 128);
    _tile_stored(1, sums + 16, 128);
    _tile_stored(2, sums + 512, 128);
    _tile_stored(3, sums + 528, 128);
    oi_tiles_settle(sums);
}

/* One of two channels, put together from its parts, at 16 places. */
static inline oi_vf oi_conv_bf16x3_whole(const uint32_t *x, int64_t is_odd, int64_t plane)
{
    oi_vf sum = oi_vf_set(0);
    for (int64_t i = 3; i-- > 0;) {
        const __m512i v = _mm512_loadu_si512(x + i * plane);
        sum = oi_vf_add(sum, _mm512_castsi512_ps(
                                 is_odd ? _mm512_and_si512(v, _mm512_set1_epi32((int)0xffff0000))
                                        : _mm512_slli_epi32(v, 16)));
    }
    return sum;
}

/* The same sums without tiles, at those of the places that `which` has a bit for. */
static inline void oi_conv_bf16x3_apart(const uint16_t *w, const uint32_t *x, float *sums,
                                        uint32_t which, int64_t steps, int64_t kh, int64_t kw,
                                        int64_t step_y, int64_t step_x, int64_t plane, int64_t wide)
{
    for (int64_t n = 0; n < 32 * wide; n++) {
        const int64_t f = n / wide, at = n % wide * 16;
        oi_vf sum = oi_vf_set(0);
        for (int64_t i = 0; i < steps * kh * kw * 32; i++) {
            const int64_t s = i / 32 / (kh * kw), t = i / 32 % (kh * kw), c = i % 32;
            const uint16_t *own = w + i / 32 * 3072 + f / 16 * 512 + f % 16 * 32 + c;
            float one = 0;
            for (int64_t p = 3; p-- > 0;)
                one += oi_f32_of_bf16(own[1024 * p]);
            const oi_vf v = oi_conv_bf16x3_whole(x + (48 * s + c / 2 * 3) * plane +
                                                     t / kw * step_y + t % kw * step_x + at,
                                                 c % 2, plane);
            sum = oi_vf_fma(oi_vf_set(one), v, sum);
        }
        _mm512_mask_storeu_ps(sums + 32 * f + at, (__mmask16)(which >> at), sum);
    }
}

/* What comes out of the sums of `filters` filters at n places from place `at` on, where rows are
 * `pitch` apart. */
static inline __attribute__((always_inline)) void oi_conv_bf16x3_put(
    const float *restrict sums, const float *restrict bias, float *restrict out, int64_t out_plane,
    int64_t out_width, int64_t pitch, int64_t filters, int64_t at, int64_t n, float least,
    float most)
{
    const float bounds[2] = {least, most};
    for (int64_t i = 0, run; i < n; i += run) {
        const int64_t y = (at + i) / pitch, x = (at + i) % pitch;
        run = oi_conv_least(n - i, (x < out_width ? out_width : pitch) - x);
        for (int64_t f = 0; x < out_width && f < filters; f++) {
            float *to = out + f * out_plane + y * out_width + x;
            const float *from = sums + 32 * f + i;
            const oi_vf b = oi_vf_set(bias[f]);
            if (run >= OI_VF)
                oi_vf_store(to, oi_conv_end(oi_vf_load(from), b, least, most, bounds));
            const int64_t more = run % OI_VF, done = run - more;
            if (run == 2 * OI_VF)
                oi_vf_store(to + OI_VF,
                            oi_conv_end(oi_vf_load(from + OI_VF), b, least, most, bounds));
            if (more)
                oi_vf_store_some(
                    to + done,
                    oi_conv_end(oi_bf16x3_load(from + done, more), b, least, most, bounds), more);
        }
    }
}

/* The filters first ... last - 1 at rows row ... row_end - 1: `block` groups of 32 places meet one
 * panel after the other. */
static inline __attribute__((always_inline)) void oi_conv_bf16x3(
    const uint32_t *x, const uint8_t *nonfinite, const void *packed, const float *bias, float *out,
    float *sums, int64_t c, int64_t m, int64_t out_height, int64_t out_width, int64_t kh,
    int64_t kw, int64_t dilation_y, int64_t dilation_x, int64_t pitch, int64_t plane,
    int64_t has_bias, int64_t block, int64_t row, int64_t row_end, int64_t first, int64_t last,
    float least, float most)
{
    const int64_t steps = (c + 31) / 32, panel = 3072 * steps * kh * kw,
                  out_plane = out_height * out_width;
    const int64_t n = (row_end - row) * pitch - (pitch - out_width), groups = (n + 31) / 32;
    const uint16_t *w = packed, *nonfinite_panels = w + (m + 31) / 32 * panel;
    int is_nonfinite = 0;
    float own[2 * OI_VF];
    for (int64_t i = 0; i < 16 * steps; i++)
        is_nonfinite |= nonfinite[i];
    oi_tiles_begin(8);
    oi_tiles_settle(x);
    for (int64_t g0 = 0; g0 < groups; g0 += block)
        for (int64_t f = first; f < last; f += 32) {
            oi_conv_biases(bias + f, m - f, has_bias, own);
            for (int64_t g = g0; g < groups && g < g0 + block; g++) {
                const int64_t left = n - 32 * g, wide = left <= 16 ? 1 : 2;
                const int64_t at = left >= 16 * wide ? 32 * g : n - 16 * wide; /* some again */
                const uint16_t *of = w + f / 32 * panel;
                const uint32_t *from = x + row * pitch + at;
                if (is_nonfinite | nonfinite_panels[f / 32])
                    oi_conv_bf16x3_apart(of, from, sums, UINT32_MAX, steps, kh, kw,
                                         dilation_y * pitch, dilation_x, plane, wide);
                else if (wide == 2)
                    oi_conv_bf16x3_sums(of, from, sums, steps, kh, kw, dilation_y * pitch,
                                        dilation_x, plane, 2);
                else
                    oi_conv_bf16x3_sums(of, from, sums, steps, kh, kw, dilation_y * pitch,
                                        dilation_x, plane, 1);
                oi_conv_bf16x3_put(sums, own, out + f * out_plane + row * out_width, out_plane,
                                   out_width, pitch, oi_conv_least(m - f, 32), at, 16 * wide, least,
                                   most);
            }
        }
    _tile_release();
}

/* -- windows of one place -- */

/* Numbers between the parts of a group of 32 places, so that pairs are an odd number of lines
 * apart. */
enum { OI_CONV_PARTS_PLANE = 48 };

/* The pairs of channels, `step` apart, at n places; the bits of those places where one is
 * nonfinite. */
static inline uint32_t oi_conv_bf16x3_group(const float *restrict x, uint32_t *restrict pairs,
                                            int64_t c, int64_t step, int64_t n)
{
    uint32_t nonfinite = 0;
    for (int64_t j = 0; j < (c + 31) / 32 * 16; j++) {
        const float *even = x + 2 * j * step, *odd = 2 * j + 1 < c ? even + step : NULL;
        uint32_t *to = pairs + 3 * j * OI_CONV_PARTS_PLANE;
        uint32_t own = 0;
        for (int64_t i = 0; i < n; i += 16)
            own |= (uint32_t)oi_conv_bf16x3_line(even + i, odd ? odd + i : NULL, 2 * j < c ? 16 : 0,
                                                 to + i, OI_CONV_PARTS_PLANE)
                   << i;
        if (2 * j >= c)
            oi_conv_bf16x3_clear(to, n, OI_CONV_PARTS_PLANE);
        for (int64_t i = 0; own && i < n; i++) {
            oi_bf16x3_one(even[i], (uint16_t *)(to + i), 2 * OI_CONV_PARTS_PLANE, 3);
            oi_bf16x3_one(odd ? odd[i] : 0, (uint16_t *)(to + i) + 1, 2 * OI_CONV_PARTS_PLANE, 3);
        }
        nonfinite |= own;
    }
    return nonfinite;
}

/* The same where every thread makes parts of x for itself, a group at a time. */
static inline __attribute__((always_inline)) void oi_conv_bf16x3_points(
    const float *x, const void *packed, const float *bias, float *out, uint32_t *pairs, float *sums,
    int64_t c, int64_t m, int64_t height, int64_t width, int64_t has_bias, int64_t row,
    int64_t row_end, int64_t first, int64_t last, float least, float most)
{
    const int64_t steps = (c + 31) / 32, panel = 3072 * steps, plane = height * width;
    const int64_t n = (row_end - row) * width;
    const uint16_t *w = packed, *nonfinite_panels = w + (m + 31) / 32 * panel;
    float own[2 * OI_VF];
    oi_tiles_begin(8);
    for (int64_t i = 0; i < n; i += 32) {
        const int64_t wide = n - i <= 16 ? 1 : 2;
        const int64_t at = row * width + (n - i >= 16 * wide ? i : n - 16 * wide); /* some again */
        const uint32_t nonfinite = oi_conv_bf16x3_group(x + at, pairs, c, plane, 16 * wide);
        oi_tiles_settle(pairs);
        for (int64_t f = first; f < last; f += 32) {
            const uint16_t *of = w + f / 32 * panel;
            const uint32_t apart = nonfinite_panels[f / 32] ? UINT32_MAX : nonfinite;
            if (wide == 2)
                oi_conv_bf16x3_sums(of, pairs, sums, steps, 1, 1, 0, 0, OI_CONV_PARTS_PLANE, 2);
            else
                oi_conv_bf16x3_sums(of, pairs, sums, steps, 1, 1, 0, 0, OI_CONV_PARTS_PLANE, 1);
            if (apart)
                oi_conv_bf16x3_apart(of, pairs, sums, apart, steps, 1, 1, 0, 0, OI_CONV_PARTS_PLANE,
                                     wide);
            oi_conv_biases(bias + f, m - f, has_bias, own);
            oi_conv_bf16x3_put(sums, own, out + f * plane, plane, plane, plane,
                               oi_conv_least(m - f, 32), at, 16 * wide, least, most);
        }
    }
    _tile_release();
}

#endif
