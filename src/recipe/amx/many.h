/* many.h: qlinear for many rows of x: products of tiles of 16 rows, exact in 32 bits.
 *
 * A tile of w, 16 rows of it as qlinear.h lays them out, is what the instructions want once its
 * numbers are bytes: four along k of every row. So nibbles are unpacked and scales become f32, a
 * part of k at a time, for up to 64 rows of x. Two blocks are multiplied while the sums of those
 * before are scaled, as oi_q_tile4 does it. */
#ifndef OI_RECIPE_MANY_H
#define OI_RECIPE_MANY_H

#include "recipe/qblock.h"

enum { OI_AMX_DEPTH = 1024, OI_AMX_ROWS = 64, OI_AMX_BLOCKS = OI_AMX_DEPTH / 8 };

/* A part of a tile of w. */
typedef struct oi_amx_part {
    const uint8_t *bytes; /* of the first block */
    int64_t step;         /* to the next */
    const uint8_t *later; /* the same part of the next tile, as it is stored: ... */
    int64_t size;         /* ... blocks of so many bytes, which come nearer meanwhile */
    _Alignas(64) uint8_t unpacked[16 * OI_AMX_DEPTH];
    _Alignas(64) float scale[16 * OI_AMX_BLOCKS], offset[16 * OI_AMX_BLOCKS];
} oi_amx_part;

/* Sums of two blocks, of the last two and of those before: no more than 4 KB, so that reading the
 * ones does not seem to read the others, which are being written. */
typedef struct oi_amx_sums {
    _Alignas(64) int32_t at[2][2 * 256];
} oi_amx_sums;

/* Tiles 0 and 1 are sums, 4 and 6 rows of x, 5 and 7 rows of w: `group` bytes along k, at most 64.
 */
static inline void oi_q_many_begin(int64_t group)
{
    _Alignas(64) uint8_t shape[64] = {1};
    const uint8_t bytes = (uint8_t)(group < 64 ? group : 64);
    for (int i = 0; i < 8; i++) {
        const int is_w = i > 3 && i % 2;
        shape[16 + 2 * i] = i > 3 && !is_w ? bytes : 64; /* of a row */
        shape[48 + i] = is_w ? bytes / 4 : 16;           /* rows */
    }
    _tile_loadconfig(shape);
}

static inline void oi_q_many_end(void)
{
    _tile_release();
}

/* Sums of a block: 16 rows of x, k apart, times w. Of every other block in tiles of its own. */
static inline __attribute__((always_inline)) void oi_amx_even(const int8_t *restrict q, int64_t k,
                                                              const uint8_t *restrict w,
                                                              int64_t group)
{
    _tile_zero(0);
    for (int64_t i = 0; i < group; i += 64) {
        _tile_loadd(4, q + i, k);
        _tile_loadd(5, w + 16 * i, 64);
        _tile_dpbssd(0, 4, 5);
    }
}

static inline __attribute__((always_inline)) void oi_amx_odd(const int8_t *restrict q, int64_t k,
                                                             const uint8_t *restrict w,
                                                             int64_t group)
{
    _tile_zero(1);
    for (int64_t i = 0; i < group; i += 64) {
        _tile_loadd(6, q + i, k);
        _tile_loadd(7, w + 16 * i, 64);
        _tile_dpbssd(1, 6, 7);
    }
}

/* Adds n blocks to the results of four rows; d and sum_of_q are those of the first block. */
static inline __attribute__((always_inline)) void oi_amx_scale(
    float *restrict acc, const int32_t *restrict sums, const float *restrict scale,
    const float *restrict offset, const float *restrict d, const float *restrict sum_of_q,
    int64_t blocks, int64_t n, int64_t zero, int64_t has_offset)
{
    oi_vf a0 = oi_vf_load(acc), a1 = oi_vf_load(acc + 16);
    oi_vf a2 = oi_vf_load(acc + 32), a3 = oi_vf_load(acc + 48);
    for (int64_t b = 0; b < n; b++) {
        const int32_t *s = sums + 256 * b;
        const oi_vf by = oi_vf_load(scale + 16 * b), more = oi_vf_load(offset + 16 * b);
        const float *x = d + b, *q = sum_of_q + b;
        a0 = oi_q_scaled(a0, oi_vi_load(s), by, more, x[0], q[0], zero, has_offset);
        a1 = oi_q_scaled(a1, oi_vi_load(s + 16), by, more, x[blocks], q[blocks], zero, has_offset);
        a2 = oi_q_scaled(a2, oi_vi_load(s + 32), by, more, x[2 * blocks], q[2 * blocks], zero,
                         has_offset);
        a3 = oi_q_scaled(a3, oi_vi_load(s + 48), by, more, x[3 * blocks], q[3 * blocks], zero,
                         has_offset);
    }
    oi_vf_store(acc, a0);
    oi_vf_store(acc + 16, a1);
    oi_vf_store(acc + 32, a2);
    oi_vf_store(acc + 48, a3);
}

/* n blocks of w: bytes for the instructions, f32 for what scales them. */
static inline __attribute__((always_inline)) void oi_amx_unpack(const uint8_t *restrict w,
                                                                int64_t n, int64_t group,
                                                                int64_t bits, int64_t scale_size,
                                                                int64_t has_offset,
                                                                oi_amx_part *restrict p)
{
    const int64_t of_w = group * bits / 8 * 16, of_scales = scale_size * 16;
    const int64_t size = of_w + of_scales * (1 + has_offset);
    p->bytes = bits == 4 ? p->unpacked : w;
    p->step = bits == 4 ? 16 * group : size;
    for (int64_t b = 0; b < n; b++, w += size) {
        for (int64_t i = 0; bits == 4 && i < group; i += 8) {
            const oi_vi v = oi_vi_load(w + 8 * i);
            _mm512_store_si512(p->unpacked + 16 * (b * group + i), oi_vi_low4(v));
            _mm512_store_si512(p->unpacked + 16 * (b * group + i) + 64, oi_vi_high4(v));
        }
        oi_vf_store(p->scale + 16 * b, oi_q_scales(w + of_w, scale_size));
        oi_vf_store(p->offset + 16 * b,
                    oi_q_scales(w + of_w + (has_offset ? of_scales : 0), scale_size));
    }
}

/* `rows` rows, a multiple of 16, times a part of a tile of n blocks; acc: 16 results of each. Two
 * blocks a round; sums are scaled two rounds after their making, four rows at a time, and products
 * begin in between: processors look ahead only so far, and both kinds of work go on side by side.
 */
static inline __attribute__((always_inline)) void oi_amx_rows(
    const oi_amx_part *restrict p, const int8_t *restrict q, const float *restrict d,
    const float *restrict sum_of_q, float *restrict acc, int64_t rows, int64_t n, int64_t k,
    int64_t group, int64_t has_offset, int64_t zero)
{
    const int64_t blocks = k / group;
    oi_amx_sums s;
    for (int64_t r = 0; r < rows; r += 16)
        for (int64_t b = 0; b < n + 4; b += 2) {
            const int64_t old = b - 4, left = n - b;
            const int8_t *x = q + r * k + b * group;
            const uint8_t *w = p->bytes + b * p->step;
            int32_t *sums = s.at[b / 2 % 2];
            for (int64_t i = 0; r == 0 && left > 0 && i < 2 * p->size; i += 64)
                oi_prefetch(p->later + b * p->size + i);
            for (int64_t i = 0; i < 16; i += 4) {
                if (old >= 0)
                    oi_amx_scale(acc + 16 * (r + i), sums + 16 * i, p->scale + 16 * old,
                                 p->offset + 16 * old, d + (r + i) * blocks + old,
                                 sum_of_q + (r + i) * blocks + old, blocks,
                                 n - old < 2 ? n - old : 2, zero, has_offset);
                if (i == 0 && left > 0)
                    oi_amx_even(x, k, w, group);
                if (i == 4 && left > 1)
                    oi_amx_odd(x + group, k, w + p->step, group);
            }
            if (left > 0)
                _tile_stored(0, sums, 64);
            if (left > 1)
                _tile_stored(1, sums + 256, 64);
        }
}

/* A tile of w times rows of x; returns for how many the results are in `out`. */
static inline __attribute__((always_inline)) int64_t oi_q_many(
    const uint8_t *restrict w, const int8_t *restrict q, const float *restrict d,
    const float *restrict sums, float *restrict out, const float *restrict bias, int64_t at,
    int64_t rows, int64_t n, int64_t k, int64_t group, int64_t bits, int64_t scale_size,
    int64_t has_offset, int64_t zero)
{
    const int64_t size = (group * bits / 8 + scale_size * (1 + has_offset)) * 16;
    const int64_t blocks = k / group, some = OI_AMX_DEPTH / group, all = rows / 16 * 16;
    _Alignas(64) float acc[16 * OI_AMX_ROWS];
    oi_amx_part p;
    if (group > 64 && (group % 64 || group > OI_AMX_DEPTH))
        return 0;
    for (int64_t r = 0; r < all; r += OI_AMX_ROWS) {
        const int64_t m = all - r < OI_AMX_ROWS ? all - r : OI_AMX_ROWS;
        memset(acc, 0, sizeof acc);
        for (int64_t b = 0; b < blocks; b += some) {
            const int64_t part = blocks - b < some ? blocks - b : some;
            p.later = w + (blocks + b) * size;
            p.size = size;
            oi_amx_unpack(w + b * size, part, group, bits, scale_size, has_offset, &p);
            oi_amx_rows(&p, q + r * k + b * group, d + r * blocks + b, sums + r * blocks + b, acc,
                        m, part, k, group, has_offset, zero);
        }
        for (int64_t i = 0; i < m; i++)
            oi_q_put(out + (r + i) * n, oi_vf_load(acc + 16 * i), bias, at, n);
    }
    return all;
}

#endif
