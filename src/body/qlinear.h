/* qlinear.h: y = x . (scale * w + offset)^T + b, where w is small integers in blocks along k and x
 * is quantised to 8 bits in the same blocks (act="q8"), or used as it is.
 *
 * w is packed in tiles of OI_VF rows, a tile in blocks along k, and a block is
 *
 *     its integers: four along k of every row, then the next four ...; in nibbles a vector holds
 *                   eight along k of every row, the first four in the lower halves
 *     its scales:   one of every row, f16 or f32; then its offsets, where there are any
 *
 * So a vector is multiplied with the same four elements of x in every lane, no sum crosses lanes,
 * and the weights are streamed once from front to end. After the tiles: b, f32, if there is one.
 * The stored value is w - zero, which turns i4 into nibbles 0 ... 15 and u8 into bytes -128 ...
 * 127. */
#ifndef OI_RECIPE_QLINEAR_H
#define OI_RECIPE_QLINEAR_H

#include "body/qhalf.h"
#if defined(__AMX_INT8__)
#include "body/amx/qhalf.h"
#include "body/amx/qtiles.h"
#endif
#if defined(__AVX512VNNI__)
#include "body/avx512vnni/qgemm.h"
#else
#include "body/qgemm.h"
#endif

/* -- the layout of tiles of `lanes` rows -- */

/* The byte of w, of eight bits, in column i of a row of `blocks` blocks. */
static inline int64_t oi_q_place(int64_t row, int64_t i, int64_t blocks, int64_t group,
                                 int64_t block_bytes, int64_t lanes)
{
    return (row / lanes * blocks + i / group) * block_bytes + i % group / 4 * 4 * lanes +
           row % lanes * 4 + i % 4;
}

/* The scale or offset of a block, where those of its rows begin `first` elements into it. */
static inline int64_t oi_q_scale_place(int64_t row, int64_t block, int64_t blocks, int64_t size,
                                       int64_t first, int64_t lanes)
{
    return (row / lanes * blocks + block) * size + first + row % lanes;
}

/* -- x in 8 bits -- */

/* Rows of x: q = x / d within +-127, d of every block, and the sum of q of every block. */
static inline void oi_q8_rows(const float *restrict x, int8_t *restrict q, float *restrict d,
                              float *restrict sums, int64_t k, int64_t group, int64_t first,
                              int64_t last)
{
    const int64_t b = first * (k / group), n = (last - first) * (k / group);
    oi_q8_blocks(x + b * group, q + b * group, d + b, sums + b, group, n);
}

/* -- sums of a block -- */

/* Sums of w in nibbles times one row of x, 32 numbers at a time. */
static inline oi_vi oi_q4_dot(const uint8_t *restrict w, const int8_t *restrict q, int64_t group)
{
    oi_vi total = oi_vi_zero();
    for (int64_t i = 0; i < group; i += 32) {
        oi_vi s[2] = {oi_vi_zero(), oi_vi_zero()};
        for (int64_t j = i; j < i + 32 && j < group; j += 8)
            oi_vi_dot_halves(s, oi_vi_load(w + j / 2 * OI_VF), oi_vi_four(q + j),
                             oi_vi_four(q + j + 4));
        total = oi_vi_dot_halves_end(total, s);
    }
    return total;
}

/* Sums of w in bytes times one row of x. */
static inline oi_vi oi_q8_dot(const uint8_t *restrict w, const int8_t *restrict q, int64_t group)
{
    oi_vi total = oi_vi_zero();
    for (int64_t i = 0; i < group; i += 4)
        total = oi_vi_dot_i8(total, oi_vi_load(w + i * OI_VF), oi_vi_four(q + i));
    return total;
}

/* Four rows of x, k apart, for a block of w in one or two tiles, `tile` bytes apart, that is
 * unpacked once; totals[4 t + r] is row r's of tile t. */
static inline __attribute__((always_inline)) void oi_q4_dot4(const uint8_t *restrict w,
                                                             int64_t tile, int64_t tiles,
                                                             const int8_t *restrict q, int64_t k,
                                                             int64_t group, oi_vi totals[8])
{
    for (int64_t i = 0; i < 4 * tiles; i++)
        totals[i] = oi_vi_zero();
    for (int64_t i = 0; i < group; i += 32) {
        oi_vi s[8], low[2], high[2];
        for (int64_t r = 0; r < 4 * tiles; r++)
            s[r] = oi_vi_zero();
        for (int64_t j = i; j < i + 32 && j < group; j += 8) {
            for (int64_t t = 0; t < tiles; t++) {
                const oi_vi v = oi_vi_load(w + t * tile + j / 2 * OI_VF);
                low[t] = oi_vi_low4(v);
                high[t] = oi_vi_high4(v);
            }
            for (int64_t r = 0; r < 4; r++) {
                const oi_vi x = oi_vi_four(q + r * k + j), y = oi_vi_four(q + r * k + j + 4);
                for (int64_t t = 0; t < tiles; t++)
                    s[4 * t + r] = oi_vi_dot_u4(s[4 * t + r], low[t], x);
                for (int64_t t = 0; t < tiles; t++)
                    s[4 * t + r] = oi_vi_dot_u4(s[4 * t + r], high[t], y);
            }
        }
        for (int64_t r = 0; r < 4 * tiles; r++)
            totals[r] = oi_vi_dot_u4_end(totals[r], s[r]);
    }
}

static inline __attribute__((always_inline)) void oi_q8_dot4(const uint8_t *restrict w,
                                                             int64_t tile, int64_t tiles,
                                                             const int8_t *restrict q, int64_t k,
                                                             int64_t group, oi_vi totals[8])
{
    for (int64_t i = 0; i < 4 * tiles; i++)
        totals[i] = oi_vi_zero();
    for (int64_t i = 0; i < group; i += 4) {
        oi_vi v[2];
        for (int64_t t = 0; t < tiles; t++)
            v[t] = oi_vi_load(w + t * tile + i * OI_VF);
        for (int64_t r = 0; r < 4; r++) {
            const oi_vi x = oi_vi_four(q + r * k + i);
            for (int64_t t = 0; t < tiles; t++)
                totals[4 * t + r] = oi_vi_dot_i8(totals[4 * t + r], v[t], x);
        }
    }
}

/* -- tiles -- */

/* The address `ahead` bytes later in the stream of weights; beyond the `end` of a partition it
 * continues at `next`. */
typedef struct oi_q_way {
    int64_t ahead;
    const uint8_t *end, *next;
} oi_q_way;

static inline const uint8_t *oi_q_soon(const uint8_t *w, oi_q_way way)
{
    const uint8_t *soon = w + way.ahead;
    return soon < way.end ? soon : way.next + (soon - way.end);
}

/* A tile times one row of x. Its weights come from memory, so it prefetches. */
static inline __attribute__((always_inline)) oi_vf oi_q_tile(
    const uint8_t *restrict w, const int8_t *restrict q, const float *restrict d,
    const float *restrict sums, int64_t k, int64_t group, int64_t bits, int64_t scale_size,
    int64_t has_offset, int64_t zero, oi_q_way way)
{
    const int64_t of_w = group * bits / 8 * OI_VF, of_scales = scale_size * OI_VF;
    const int64_t size = of_w + of_scales * (1 + has_offset);
    const int64_t is_short = oi_q_is_short(scale_size, group);
    oi_vf acc = oi_vf_set(0);
    for (int64_t b = 0; b < k / group; b++, w += size, q += group) {
        const uint8_t *soon = oi_q_soon(w, way);
        for (int64_t i = 0; i < size; i += 64)
            oi_prefetch(soon + i);
        oi_vi sum = bits == 4 ? oi_q4_dot(w, q, group) : oi_q8_dot(w, q, group);
        oi_vf scale = oi_q_scales(w + of_w, scale_size);
        oi_vf offset = has_offset ? oi_q_scales(w + of_w + of_scales, scale_size) : scale;
        acc = oi_q_block(acc, sum, scale, offset, d[b], sums[b], zero, has_offset, is_short);
    }
    return acc;
}

/* One or two tiles times four rows of x; acc[4 t + r] is row r's of tile t. is_ahead: it
 * prefetches as many bytes of the tiles after them. */
static inline __attribute__((always_inline)) void oi_q_tile4(
    const uint8_t *restrict w, int64_t tile, int64_t tiles, int64_t is_ahead,
    const int8_t *restrict q, const float *restrict d, const float *restrict sums, int64_t k,
    int64_t group, int64_t bits, int64_t scale_size, int64_t has_offset, int64_t zero, oi_vf acc[8])
{
    const int64_t of_w = group * bits / 8 * OI_VF, of_scales = scale_size * OI_VF, n = k / group;
    const int64_t size = of_w + of_scales * (1 + has_offset);
    const int64_t is_short = oi_q_is_short(scale_size, group);
    for (int64_t i = 0; i < 4 * tiles; i++)
        acc[i] = oi_vf_set(0);
    for (int64_t b = 0; b < n; b++, w += size, q += group) {
        oi_vi s[8];
        for (int64_t i = 0; is_ahead && i < tiles * size; i += 64)
            oi_prefetch(w + tiles * tile + b * (tiles - 1) * size + i);
        if (bits == 4)
            oi_q4_dot4(w, tile, tiles, q, k, group, s);
        else
            oi_q8_dot4(w, tile, tiles, q, k, group, s);
        for (int64_t t = 0; t < tiles; t++) {
            const uint8_t *p = w + t * tile + of_w;
            const oi_vf by = oi_q_scales(p, scale_size);
            const oi_vf more = has_offset ? oi_q_scales(p + of_scales, scale_size) : by;
            for (int64_t r = 0; r < 4; r++)
                acc[4 * t + r] = oi_q_block(acc[4 * t + r], s[4 * t + r], by, more, d[b + r * n],
                                            sums[b + r * n], zero, has_offset, is_short);
        }
    }
}

/* One or two tiles, whose first row of w is `at`, times `rows` rows of x. */
static inline __attribute__((always_inline)) void oi_q_rows(
    const int8_t *restrict q, const float *restrict d, const float *restrict sums,
    const uint8_t *restrict w, float *restrict out, const float *restrict bias, int64_t at,
    int64_t tile, int64_t tiles, int64_t rows, int64_t is_many, int64_t n, int64_t k, int64_t group,
    int64_t bits, int64_t scale_size, int64_t has_offset, int64_t zero, oi_q_way way)
{
    const int64_t blocks = k / group, whole = rows / 4 * 4;
    int64_t done = 0;
    for (int64_t t = 0; is_many && t < tiles; t++)
        done = oi_qgemm(w + t * tile, q, d, sums, out, bias, at + t * OI_VF, rows, n, k, group,
                        bits, scale_size, has_offset, zero);
    for (int64_t i = done; i < whole; i += 4) {
        oi_vf acc[8];
        oi_q_tile4(w, tile, tiles, i == 0, q + i * k, d + i * blocks, sums + i * blocks, k, group,
                   bits, scale_size, has_offset, zero, acc);
        for (int64_t j = 0; j < 4 * tiles; j++)
            oi_q_put(out + (i + j % 4) * n, acc[j], bias, at + j / 4 * OI_VF, n);
    }
    for (int64_t i = whole; i < rows; i++)
        for (int64_t t = 0; t < tiles; t++)
            oi_q_put(out + i * n,
                     oi_q_tile(w + t * tile, q + i * k, d + i * blocks, sums + i * blocks, k, group,
                               bits, scale_size, has_offset, zero, way),
                     bias, at + t * OI_VF, n);
}

/* out (m, n) = x (m, k) times w, where x is what oi_q8_rows made of it; the results of rows first
 * ... last - 1 of w. So many rows of x at once stay in the second cache. The weights that are read
 * after these begin at `next`, unless it is NULL. */
static inline __attribute__((always_inline)) void oi_qlinear(
    const int8_t *restrict q, const float *restrict d, const float *restrict sums,
    const uint8_t *restrict w, float *restrict out, int64_t m, int64_t n, int64_t k, int64_t group,
    int64_t bits, int64_t scale_size, int64_t has_offset, int64_t has_bias, int64_t zero,
    int64_t rows_at_once, int64_t ahead, const void *restrict next, int64_t first, int64_t last)
{
    const int64_t blocks = k / group;
    const int64_t tile = blocks * (group * bits / 8 + scale_size * (1 + has_offset)) * OI_VF;
    const uint8_t *end = w + (n + OI_VF - 1) / OI_VF * tile;
    const float *bias = has_bias ? (const float *)(const void *)end : NULL;
    const uint8_t *stop = w + (last + OI_VF - 1) / OI_VF * tile;
    const oi_q_way way = {ahead, stop, next ? next : stop};
    if (m >= 16)
        oi_qgemm_begin(group);
    for (int64_t r = 0; r < m; r += rows_at_once) {
        const int64_t rows = m - r < rows_at_once ? m - r : rows_at_once;
        int64_t at = first;
        for (; m >= 4 && at + OI_VF < last; at += 2 * OI_VF)
            oi_q_rows(q, d, sums, w + at / OI_VF * tile, out, bias, at, tile, 2, rows, m >= 16, n,
                      k, group, bits, scale_size, has_offset, zero, way);
        for (; at < last; at += OI_VF)
            oi_q_rows(q, d, sums, w + at / OI_VF * tile, out, bias, at, tile, 1, rows, m >= 16, n,
                      k, group, bits, scale_size, has_offset, zero, way);
        q += rows * k;
        d += rows * blocks;
        sums += rows * blocks;
        out += rows * n;
    }
    if (m >= 16)
        oi_qgemm_end();
}

/* -- x as it is (act="float") -- */

/* Four weights along k of OI_VF rows, in bytes or from the lower or upper halves of them, times
 * `rows` rows of x, k apart. One sum to a row, in the order of k and rounded after every step as
 * the op's definition does: the result is the simulator's, bit by bit. */
static inline __attribute__((always_inline)) void oi_qf_four(oi_vi v, const float *restrict x,
                                                             oi_vf scale, oi_vf offset,
                                                             int64_t has_offset, int64_t rows,
                                                             int64_t k, int64_t bits, int64_t zero,
                                                             int upper, oi_vf acc[4])
{
    for (int i = 0; i < 4; i++) {
        const oi_vf real = oi_q_real(v, 8 * i + upper, scale, offset, has_offset, bits, zero);
        for (int64_t r = 0; r < rows; r++)
            acc[r] = oi_vf_add(acc[r], oi_vf_mul(oi_vf_set(x[r * k + i]), real));
    }
}

/* A tile times one or four rows of x. */
static inline __attribute__((always_inline)) void oi_qf_tile(const uint8_t *restrict w,
                                                             const float *restrict x, int64_t rows,
                                                             int64_t k, int64_t group, int64_t bits,
                                                             int64_t scale_size, int64_t has_offset,
                                                             int64_t zero, oi_vf acc[4])
{
    const int64_t of_w = group * bits / 8 * OI_VF, of_scales = scale_size * OI_VF;
    for (int64_t r = 0; r < 4; r++)
        acc[r] = oi_vf_set(0);
    for (int64_t b = 0; b < k / group; b++, w += of_w + of_scales * (1 + has_offset), x += group) {
        const oi_vf scale = oi_q_scales(w + of_w, scale_size);
        const oi_vf offset = has_offset ? oi_q_scales(w + of_w + of_scales, scale_size) : scale;
        for (int64_t i = 0; i < group; i += 32 / bits) {
            const oi_vi v = oi_vi_load(w + i * bits / 8 * OI_VF);
            oi_prefetch(w + i * bits / 8 * OI_VF + 1024);
            oi_qf_four(v, x + i, scale, offset, has_offset, rows, k, bits, zero, 0, acc);
            if (bits == 4)
                oi_qf_four(v, x + i + 4, scale, offset, has_offset, rows, k, bits, zero, 4, acc);
        }
    }
}

/* out (m, n) = x (m, k) times w; the results of rows first ... last - 1 of w. */
static inline __attribute__((always_inline)) void oi_qlinear_float(
    const float *restrict x, const uint8_t *restrict w, float *restrict out, int64_t m, int64_t n,
    int64_t k, int64_t group, int64_t bits, int64_t scale_size, int64_t has_offset,
    int64_t has_bias, int64_t zero, int64_t first, int64_t last)
{
    const int64_t tile = k / group * (group * bits / 8 + scale_size * (1 + has_offset)) * OI_VF;
    const int64_t whole = m / 4 * 4;
    const float *bias = (const float *)(const void *)(w + (n + OI_VF - 1) / OI_VF * tile);
    for (int64_t at = first; at < last; at += OI_VF) {
        const uint8_t *t = w + at / OI_VF * tile;
        oi_vf acc[4];
        for (int64_t i = 0; i < whole; i += 4) {
            oi_qf_tile(t, x + i * k, 4, k, group, bits, scale_size, has_offset, zero, acc);
            for (int64_t r = 0; r < 4; r++)
                oi_q_put(out + (i + r) * n, acc[r], has_bias ? bias : NULL, at, n);
        }
        for (int64_t i = whole; i < m; i++) {
            oi_qf_tile(t, x + i * k, 1, k, group, bits, scale_size, has_offset, zero, acc);
            oi_q_put(out + i * n, acc[0], has_bias ? bias : NULL, at, n);
        }
    }
}

#endif
