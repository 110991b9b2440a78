/* qhalf.h: qlinear with act="bf16" for many rows of x by products of tiles.
 *
 *     x   rows of bf16, 0 up to a whole step of 32 along k, an odd number of cache lines apart
 *     w   two times 16 rows of it as qlinear.h lays them out; some steps of both become tiles of
 *         bf16, pairs along k of every row side by side, and stay in the first cache for all rows
 *         of x
 *
 * Four tiles are in use: two of sums, one of x, and one of w, which is loaded twice a step. */
#ifndef OI_RECIPE_AMX_QHALF_H
#define OI_RECIPE_AMX_QHALF_H

#include "body/amx/tiles.h"
#include "body/qblock.h"

/* Rows of x whose sums are kept; steps at a time. */
enum { OI_QT_ROWS = 128, OI_QT_STEPS = 9 };

/* The problem; its members are literals after inlining. */
typedef struct oi_qt_shape {
    int64_t k, group, bits, scale_size, has_offset, zero;
} oi_qt_shape;

/* Numbers in a row of x. */
static inline int64_t oi_qt_row(int64_t k)
{
    return ((k + 31) / 32 | 1) * 32;
}

/* Rows of x, rounded. */
static inline void oi_qt_rows(const float *restrict x, uint16_t *restrict to, int64_t k,
                              int64_t first, int64_t last)
{
    for (int64_t r = first; r < last; r++)
        for (int64_t i = 0; i < k; i += 32) {
            const __m512 low = _mm512_loadu_ps(x + r * k + i);
            const __m512 high = _mm512_loadu_ps(x + r * k + i + 16);
            _mm512_storeu_si512(to + r * oi_qt_row(k) + i, (__m512i)_mm512_cvtne2ps_pbh(high, low));
        }
}

/* -- w -- */

/* Of 16 numbers, one for each row of w, those of eight rows, twice each: of the first two rows of
 * every four, or of the last two. The bytes of a vector are permuted within groups of four in the
 * same way, so the columns of a tile are first these rows and then those. */
static inline __m512 oi_qt_twice(__m512 v, int is_other)
{
    static const int32_t at[2][16] = {{0, 0, 1, 1, 4, 4, 5, 5, 8, 8, 9, 9, 12, 12, 13, 13},
                                      {2, 2, 3, 3, 6, 6, 7, 7, 10, 10, 11, 11, 14, 14, 15, 15}};
    return _mm512_permutexvar_ps(_mm512_loadu_si512(at[is_other]), v);
}

/* The first and third byte of a row, then its second and fourth, each pair in a lane of its own. */
static inline __m512i oi_qt_bytes(__m512i v, int is_other)
{
    static const int8_t at[2][16] = {
        {0, 2, -1, -1, 1, 3, -1, -1, 4, 6, -1, -1, 5, 7, -1, -1},
        {8, 10, -1, -1, 9, 11, -1, -1, 12, 14, -1, -1, 13, 15, -1, -1}};
    return _mm512_shuffle_epi8(
        v, _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)at[is_other])));
}

/* Undoes that order for the results of 16 rows. */
static inline __m512 oi_qt_ordered(__m512 v)
{
    static const int32_t at[16] = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};
    return _mm512_permutexvar_ps(_mm512_loadu_si512(at), v);
}

/* scale * w + offset, rounded as the definition does: an f16 times so few bits is exact. */
static inline __attribute__((always_inline)) __m512 oi_qt_real(__m512i v, int shift, __m512 scale,
                                                               __m512 offset, oi_qt_shape s)
{
    __m512 w;
    if (s.bits == 4) { /* a number that is looked up needs no mask */
        const __m512 small = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        w = _mm512_permutexvar_ps(_mm512_srli_epi32(v, (unsigned)shift),
                                  oi_vf_add(small, oi_vf_set((float)s.zero)));
    } else {
        w = oi_vf_of_vi(oi_vi_add(oi_vi_byte(v, shift), oi_vi_set((int32_t)s.zero)));
    }
    if (!s.has_offset)
        return oi_vf_mul(w, scale);
    return s.scale_size == 2 ? oi_vf_fma(w, scale, offset) : oi_vf_add(oi_vf_mul(w, scale), offset);
}

/* Step `step` of 16 rows of w as a tile; prefetches 1 KB ahead. */
static inline __attribute__((always_inline)) void oi_qt_unpack(const uint8_t *restrict w,
                                                               int64_t step, oi_qt_shape s,
                                                               uint16_t *restrict to)
{
    const int64_t of_w = s.group * s.bits / 8 * 16, of_scales = s.scale_size * 16;
    const uint8_t *block = w + step * 32 / s.group * (of_w + of_scales * (1 + s.has_offset));
    const uint8_t *from = block + step * 32 % s.group * s.bits / 8 * 16;
    const __m512 scale = oi_q_scales(block + of_w, s.scale_size);
    const __m512 offset =
        s.has_offset ? oi_q_scales(block + of_w + of_scales, s.scale_size) : scale;
    const __m512 scales[2] = {oi_qt_twice(scale, 0), oi_qt_twice(scale, 1)};
    const __m512 offsets[2] = {oi_qt_twice(offset, 0), oi_qt_twice(offset, 1)};
    for (int64_t i = 0; i < 64 * s.bits; i += 64, to += 512 / s.bits) {
        const __m512i v = _mm512_loadu_si512(from + i);
        const __m512i a = oi_qt_bytes(v, 0), b = oi_qt_bytes(v, 1);
        oi_prefetch(from + i + 1280);
        for (int p = 0; p < 32 / (int)s.bits / 2; p++) { /* pairs: two of bytes, four of nibbles */
            const int shift = p % 2 * 8 + p / 2 * 4;
            _mm512_store_si512(to + 32 * p, (__m512i)_mm512_cvtne2ps_pbh(
                                                oi_qt_real(b, shift, scales[1], offsets[1], s),
                                                oi_qt_real(a, shift, scales[0], offsets[0], s)));
        }
    }
}

/* -- tiles: 0 and 1 are sums, 2 rows of x, 3 columns of w -- */

/* n steps of 16 rows of x, `row` numbers apart, are added to their sums, 16 results a row for 16
 * rows of w and as many for the other 16. */
static inline __attribute__((always_inline)) void oi_qt_add(const uint16_t *restrict x, int64_t row,
                                                            const uint16_t *restrict w, int64_t n,
                                                            int is_first, float *restrict sums)
{
    oi_tiles_go_on(sums, is_first);
    for (int64_t i = 0; i < n; i++) {
        _tile_loadd(2, x + 32 * i, 2 * row);
        _tile_loadd(3, w + 1024 * i, 64);
        _tile_dpbf16ps(0, 2, 3);
        _tile_loadd(3, w + 1024 * i + 512, 64);
        _tile_dpbf16ps(1, 2, 3);
    }
    oi_tiles_store(sums);
}

/* The result, n columns; those from `at` to `last` are stored. */
typedef struct oi_qt_place {
    float *out;
    const float *bias; /* NULL: none */
    int64_t n, at, last;
} oi_qt_place;

/* 16 rows of sums, from row `row` of the results on. */
static inline __attribute__((always_inline)) void oi_qt_put(const float *restrict sums, int64_t row,
                                                            oi_qt_place to)
{
    oi_tiles_settle(sums);
    for (int64_t i = 0; i < 16; i++) {
        float *out = to.out + (row + i) * to.n;
        oi_q_put(out, oi_qt_ordered(oi_vf_load(sums + 16 * i)), to.bias, to.at, to.n);
        if (to.at + 16 < to.last)
            oi_q_put(out, oi_qt_ordered(oi_vf_load(sums + 16 * i + 256)), to.bias, to.at + 16,
                     to.n);
    }
}

/* Up to OI_QT_ROWS rows of x times two times 16 rows of w. Results are written while the next 16
 * rows are multiplied: they often have to be fetched from another cache first. */
static inline __attribute__((always_inline)) void oi_qt_panel(const uint16_t *restrict x,
                                                              const uint8_t *restrict w0,
                                                              const uint8_t *restrict w1,
                                                              float *restrict sums, int64_t rows,
                                                              oi_qt_shape s, oi_qt_place to)
{
    _Alignas(64) uint16_t w[OI_QT_STEPS * 1024];
    const int64_t steps = s.k / 32, row = oi_qt_row(s.k);
    const int64_t parts = (steps + OI_QT_STEPS - 1) / OI_QT_STEPS;
    const int64_t each = (steps + parts - 1) / parts; /* none much shorter than the others */
    for (int64_t from = 0; from < steps; from += each) {
        const int64_t n = steps - from < each ? steps - from : each;
        for (int64_t i = 0; i < n; i++) {
            oi_qt_unpack(w0, from + i, s, w + 1024 * i);
            oi_qt_unpack(w1, from + i, s, w + 1024 * i + 512);
        }
        oi_tiles_settle(w);
        for (int64_t r = 0; r < rows; r += 16) {
            oi_qt_add(x + r * row + 32 * from, row, w, n, from == 0, sums + 32 * r);
            if (from + n == steps && r > 0)
                oi_qt_put(sums + 32 * (r - 16), r - 16, to);
        }
    }
    oi_qt_put(sums + 32 * (rows - 16), rows - 16, to);
}

/* oi_qlinear_bf16 for a multiple of 16 rows of x, which oi_qt_rows has rounded, and blocks of a
 * multiple of 32 numbers. */
static inline __attribute__((always_inline)) void oi_qlinear_bf16_tiles(
    const uint16_t *restrict x, const uint8_t *restrict w, float *restrict out, int64_t m,
    int64_t n, int64_t k, int64_t group, int64_t bits, int64_t scale_size, int64_t has_offset,
    int64_t has_bias, int64_t zero, int64_t first, int64_t last)
{
    const oi_qt_shape s = {k, group, bits, scale_size, has_offset, zero};
    const int64_t tile = k / group * (group * bits / 8 + scale_size * (1 + has_offset)) * 16;
    const float *bias = (const float *)(const void *)(w + (n + 15) / 16 * tile);
    _Alignas(64) float sums[OI_QT_ROWS * 32];
    oi_tiles_begin(4);
    for (int64_t r = 0; r < m; r += OI_QT_ROWS) {
        const int64_t rows = m - r < OI_QT_ROWS ? m - r : OI_QT_ROWS;
        for (int64_t at = first; at < last; at += 32) {
            const uint8_t *w0 = w + at / 16 * tile, *w1 = at + 16 < last ? w0 + tile : w0;
            const oi_qt_place to = {out + r * n, has_bias ? bias : NULL, n, at, last};
            oi_qt_panel(x + r * oi_qt_row(k), w0, w1, sums, rows, s, to);
        }
    }
    _tile_release();
}

#endif
