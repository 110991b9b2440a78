/* many.h: qlinear for many rows of x: products of tiles of 16 rows, exact in 32 bits.
 *
 * A tile of w, 16 rows of it as qlinear.h lays them out, is what the instructions want once its
 * numbers are bytes: four along k of every row. So nibbles are unpacked and scales become f32, a
 * part of k at a time, for up to 64 rows of x. Two blocks are multiplied with 32 rows while the
 * sums of those before are scaled. Small blocks of nibbles would fill the tiles by halves only,
 * with more to unpack and to scale than to multiply: for these see eights.h. */
#ifndef OI_RECIPE_MANY_H
#define OI_RECIPE_MANY_H

#include "recipe/avx512vnni/eights.h"

/* A part of k: so much when there is a choice, and no more. */
enum { OI_AMX_DEPTH = 640, OI_AMX_MOST = 1024, OI_AMX_ROWS = 64 };

/* A part of a tile of w. */
typedef struct oi_amx_part {
    const uint8_t *bytes; /* of the first block */
    int64_t step;         /* to the next */
    int64_t size;         /* of a block as it is stored */
    _Alignas(64) uint8_t unpacked[16 * OI_AMX_MOST];
    _Alignas(64) float scale[2 * OI_AMX_MOST], offset[2 * OI_AMX_MOST];
} oi_amx_part;

/* Sums of two blocks and 32 rows of x, of the last two blocks and of those before: first those of
 * 16 rows, one block after the other, then those of 16 more. */
typedef struct oi_amx_sums {
    _Alignas(64) int32_t at[2][4 * 256];
} oi_amx_sums;

/* Tiles 0 to 3 are sums, 4 and 5 rows of x, 6 and 7 rows of w: `group` bytes along k, at most 64.
 */
static inline void oi_q_many_begin(int64_t group)
{
    _Alignas(64) uint8_t shape[64] = {1};
    const uint8_t bytes = (uint8_t)(group < 64 ? group : 64);
    for (int i = 0; i < 8; i++) {
        shape[16 + 2 * i] = i == 4 || i == 5 ? bytes : 64; /* of a row */
        shape[48 + i] = i > 5 ? bytes / 4 : 16;            /* rows */
    }
    _tile_loadconfig(shape);
}

static inline void oi_q_many_end(void)
{
    _tile_release();
}

/* Sums of a block: 16 rows of x, k apart, times w, and 16 more where there are. Of every other
 * block in tiles of its own. */
static inline __attribute__((always_inline)) void oi_amx_even(const int8_t *restrict q, int64_t k,
                                                              const uint8_t *restrict w,
                                                              int64_t group, int has_more)
{
    _tile_zero(0);
    _tile_zero(1);
    for (int64_t i = 0; i < group; i += 64) {
        _tile_loadd(6, w + 16 * i, 64);
        _tile_loadd(4, q + i, k);
        _tile_dpbssd(0, 4, 6);
        if (has_more) {
            _tile_loadd(5, q + 16 * k + i, k);
            _tile_dpbssd(1, 5, 6);
        }
    }
}

static inline __attribute__((always_inline)) void oi_amx_odd(const int8_t *restrict q, int64_t k,
                                                             const uint8_t *restrict w,
                                                             int64_t group, int has_more)
{
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t i = 0; i < group; i += 64) {
        _tile_loadd(7, w + 16 * i, 64);
        _tile_loadd(4, q + i, k);
        _tile_dpbssd(2, 4, 7);
        if (has_more) {
            _tile_loadd(5, q + 16 * k + i, k);
            _tile_dpbssd(3, 5, 7);
        }
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
    p->bytes = bits == 4 ? p->unpacked : w;
    p->step = bits == 4 ? 16 * group : p->size;
    for (int64_t b = 0; b < n; b++, w += p->size) {
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

/* 16 or 32 rows times a part of a tile of n blocks; acc: 16 results of each. Two blocks a round:
 * products of these begin between the scaling of those before, four rows at a time: processors
 * look ahead only so far, and both kinds of work go on side by side. Sums are read half a round
 * after they were stored, at other places than those of the last stores. */
static inline __attribute__((always_inline)) void oi_amx_rows(
    const oi_amx_part *restrict p, const uint8_t *later, const int8_t *restrict q,
    const float *restrict d, const float *restrict sum_of_q, float *restrict acc, int64_t rows,
    int64_t n, int64_t k, int64_t group, int64_t has_offset, int64_t zero)
{
    const int64_t blocks = k / group, part = rows / 4;
    const int has_more = rows > 16;
    oi_amx_sums s;
    for (int64_t b = 0; b < n + 2; b += 2) {
        const int64_t old = b - 2, left = n - b, some = n - old < 2 ? n - old : 2;
        const int8_t *x = q + b * group;
        const uint8_t *w = p->bytes + b * p->step;
        const int32_t *before = s.at[old / 2 & 1];
        int32_t *sums = s.at[b / 2 & 1];
        for (int64_t i = 0; i < rows; i += 4) {
            if (old >= 0)
                oi_amx_scale(acc + 16 * i, before + i / 16 * 512 + i % 16 * 16, p->scale + 16 * old,
                             p->offset + 16 * old, d + i * blocks + old,
                             sum_of_q + i * blocks + old, blocks, some, zero, has_offset);
            if (left <= 0)
                continue;
            if (i == 0)
                oi_amx_even(x, k, w, group, has_more);
            if (i == 0 && later)
                for (int64_t j = 0; j < 2 * p->size; j += 64)
                    oi_prefetch(later + b * p->size + j);
            if (i == part && left > 1)
                oi_amx_odd(x + group, k, w + p->step, group, has_more);
            if (i == 2 * part) {
                _tile_stored(0, sums, 64);
                _tile_stored(2, sums + 256, 64);
            }
            if (i == 3 * part && has_more) {
                _tile_stored(1, sums + 512, 64);
                _tile_stored(3, sums + 768, 64);
            }
        }
    }
}

/* A tile of w times rows of x; returns for how many the results are in `out`. */
static inline __attribute__((always_inline)) int64_t oi_q_many(
    const uint8_t *restrict w, const int8_t *restrict q, const float *restrict d,
    const float *restrict sums, float *restrict out, const float *restrict bias, int64_t at,
    int64_t rows, int64_t n, int64_t k, int64_t group, int64_t bits, int64_t scale_size,
    int64_t has_offset, int64_t zero)
{
    const int64_t blocks = k / group, all = rows / 16 * 16;
    const int64_t parts = (k + OI_AMX_DEPTH - 1) / OI_AMX_DEPTH;
    const int64_t some =
        ((blocks + parts - 1) / parts + 1) / 2 * 2; /* equal parts of whole rounds */
    _Alignas(64) float acc[16 * OI_AMX_ROWS];
    oi_amx_part p;
    p.size = (group * bits / 8 + scale_size * (1 + has_offset)) * 16;
    if (bits == 4 && group < 64)
        return oi_q_eights(w, q, d, sums, out, bias, at, rows, n, k, group, scale_size, has_offset,
                           zero);
    if (some * group > OI_AMX_MOST || (group > 64 && group % 64))
        return 0;
    for (int64_t r = 0; r < all; r += OI_AMX_ROWS) {
        const int64_t m = all - r < OI_AMX_ROWS ? all - r : OI_AMX_ROWS;
        memset(acc, 0, sizeof acc);
        for (int64_t b = 0; b < blocks; b += some) {
            const int64_t part = blocks - b < some ? blocks - b : some;
            oi_amx_unpack(w + b * p.size, part, group, bits, scale_size, has_offset, &p);
            for (int64_t i = 0; i < m; i += 32) {
                const int8_t *x = q + (r + i) * k + b * group;
                const float *of_x = d + (r + i) * blocks + b, *of_q = sums + (r + i) * blocks + b;
                /* the same part of the next tile comes nearer meanwhile */
                const uint8_t *later = r + i ? NULL : w + (blocks + b) * p.size;
                if (m - i < 32)
                    oi_amx_rows(&p, later, x, of_x, of_q, acc + 16 * i, 16, part, k, group,
                                has_offset, zero);
                else
                    oi_amx_rows(&p, later, x, of_x, of_q, acc + 16 * i, 32, part, k, group,
                                has_offset, zero);
            }
        }
        for (int64_t i = 0; i < m; i++)
            oi_q_put(out + (r + i) * n, oi_vf_load(acc + 16 * i), bias, at, n);
    }
    return all;
}

#endif
