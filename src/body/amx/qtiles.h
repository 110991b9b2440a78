/* qtiles.h: qlinear for many rows of x by products of tiles, 16 rows of x times 16 of w.
 *
 *     x   is in bytes, as all bodies of qlinear have it; a tile is a block of 16 rows
 *     w   16 rows of it as qlinear.h lays them out, becomes bytes, four along k of every row side
 *         by side as the instructions want them, two blocks at a time, which stay in tiles for all
 *         rows of x
 *
 * A block is multiplied while the sums of other blocks are scaled. Sums start from the bits of a
 * float (OI_Q_BEGIN), so they are floats when they are stored. The products are not the bottleneck:
 * sums pass through memory, and the scales of x are read one by one. The code is short, because two
 * threads of a core share its cache of decoded instructions. */
#ifndef OI_RECIPE_QTILES_H
#define OI_RECIPE_QTILES_H

#include "body/amx/tiles.h"
#include "body/qblock.h"

/* How long a block may be; blocks at a time; rows of x whose results are kept meanwhile. */
enum { OI_AMX_GROUP = 256, OI_AMX_BLOCKS = 2, OI_AMX_ROWS = 128 };

/* Some blocks of 16 rows of w. */
typedef struct oi_amx_part {
    _Alignas(64) int8_t w[16 * OI_AMX_BLOCKS * OI_AMX_GROUP];
    float scale[16 * OI_AMX_BLOCKS], offset[16 * OI_AMX_BLOCKS];
} oi_amx_part;

/* 16 rows of x and n blocks: x, what scales their sums, and where they are added, 16 results a row.
 */
typedef struct oi_amx_job {
    const int8_t *q;
    const float *d, *sum_of_q;
    const oi_amx_part *part;
    float *acc;
    int64_t n;
} oi_amx_job;

/* The problem; its members are literals after inlining. */
typedef struct oi_amx_shape {
    int64_t k, group, bits, scale_size, has_offset, zero;
} oi_amx_shape;

/* Whether sums are within +-2^22 and their scales have so few bits that OI_Q_BEGIN times one is
 * exact. */
static inline int64_t oi_amx_begins(oi_amx_shape s)
{
    return s.scale_size == 2 && s.group <= 128;
}

/* How many numbers of a block a tile holds. */
static inline int64_t oi_amx_numbers(oi_amx_shape s)
{
    return s.group <= 64 ? s.group : s.group % 64 == 0 ? 64 : 32;
}

/* -- w -- */

/* Up to OI_AMX_BLOCKS of the blocks of w from block `from` on, in one of two places: bytes for the
 * instructions, f32 for what scales their sums. Prefetches 4 KB ahead. */
static inline __attribute__((always_inline)) void oi_amx_unpack(const uint8_t *restrict w,
                                                                int64_t from, oi_amx_shape s,
                                                                oi_amx_part parts[2])
{
    const int64_t of_w = s.group * s.bits / 8 * 16, of_scales = s.scale_size * 16;
    const int64_t size = of_w + of_scales * (1 + s.has_offset);
    const __m512i zero = _mm512_set1_epi8((int8_t)s.zero);
    oi_amx_part *p = &parts[from / OI_AMX_BLOCKS % 2];
    for (int64_t b = 0; b < OI_AMX_BLOCKS && from + b < s.k / s.group; b++) {
        const uint8_t *block = w + (from + b) * size;
        int8_t *to = p->w + 16 * b * s.group;
        for (int64_t i = 0; i < size; i += 64)
            oi_prefetch(block + 4096 + i);
        for (int64_t i = 0; i < of_w; i += 64) {
            const oi_vi v = oi_vi_load(block + i);
            if (s.bits == 8) {
                _mm512_store_si512(to + i, v);
                continue;
            }
            _mm512_store_si512(to + 2 * i, _mm512_add_epi8(oi_vi_low4(v), zero));
            _mm512_store_si512(to + 2 * i + 64, _mm512_add_epi8(oi_vi_high4(v), zero));
        }
        oi_vf_store(p->scale + 16 * b, oi_q_scales(block + of_w, s.scale_size));
        if (s.has_offset)
            oi_vf_store(p->offset + 16 * b, oi_q_scales(block + of_w + of_scales, s.scale_size));
    }
    oi_tiles_settle(p);
}

/* -- tiles: their numbers are part of the instructions -- */

/* Tiles 0 and 1 are sums of a first and a second block, 2 and 3 rows of x, 4 and 5 rows of w. */
static inline void oi_amx_configure(int64_t numbers)
{
    _Alignas(64) uint8_t shape[64] = {1};
    for (int i = 0; i < 6; i++) {
        shape[16 + 2 * i] = i == 2 || i == 3 ? (uint8_t)numbers : 64; /* bytes of a row */
        shape[48 + i] = i > 3 ? (uint8_t)(numbers / 4) : 16;          /* rows */
    }
    oi_tiles_settle(shape);
    _tile_loadconfig(shape);
}

/* Resets the sums. */
static inline __attribute__((always_inline)) void oi_amx_begin(int second, const int32_t *begin)
{
    if (second)
        _tile_loadd(1, begin, 0);
    else
        _tile_loadd(0, begin, 0);
}

static inline __attribute__((always_inline)) void oi_amx_load_x(int second,
                                                                const int8_t *restrict q, int64_t k)
{
    if (second)
        _tile_loadd(3, q, k);
    else
        _tile_loadd(2, q, k);
}

static inline __attribute__((always_inline)) void oi_amx_load_w(int second,
                                                                const int8_t *restrict w)
{
    if (second)
        _tile_loadd(5, w, 64);
    else
        _tile_loadd(4, w, 64);
}

/* The sums of a first or second block; x is in its tile, so is w where that holds a block. */
static inline __attribute__((always_inline)) void oi_amx_multiply(int second,
                                                                  const int8_t *restrict q,
                                                                  const int8_t *restrict w,
                                                                  oi_amx_shape s)
{
    const int64_t numbers = oi_amx_numbers(s);
    for (int64_t i = 0; i < s.group; i += numbers) {
        if (i)
            oi_amx_load_x(second, q + i, s.k);
        if (s.group > numbers)
            oi_amx_load_w(second, w + 16 * i);
        if (second)
            _tile_dpbssd(1, 3, 5);
        else
            _tile_dpbssd(0, 2, 4);
    }
}

static inline __attribute__((always_inline)) void oi_amx_store(int second, int32_t *restrict sums)
{
    if (second)
        _tile_stored(1, sums, 64);
    else
        _tile_stored(0, sums, 64);
}

/* -- sums -- */

/* The scaled sums of a row and a block: what oi_q_block does, step by step. */
static inline __attribute__((always_inline)) oi_vf oi_amx_scale(const int32_t *restrict sums,
                                                                float sum_of_q, oi_vf scale,
                                                                oi_vf begin, oi_vf offset,
                                                                oi_amx_shape s)
{
    oi_vi sum = oi_vi_load(sums);
    const oi_vf q = oi_vf_set(sum_of_q);
    if (s.bits == 8 && s.zero)
        sum = oi_vi_add(sum, oi_vi_set((int32_t)s.zero * (int32_t)sum_of_q));
    const oi_vf v = oi_amx_begins(s) ? _mm512_fmsub_ps(_mm512_castsi512_ps(sum), scale, begin)
                                     : oi_vf_mul(oi_vf_of_vi(sum), scale);
    if (!s.has_offset)
        return v;
    return oi_q_is_short(s.scale_size, s.group) ? oi_vf_fma(offset, q, v)
                                                : oi_vf_add(v, oi_vf_mul(offset, q));
}

/* Adds block b of a job to the results of its 16 rows, four rows at a time: the additions of one
 * row depend on each other. */
static inline __attribute__((always_inline)) void oi_amx_add(const oi_amx_job *restrict j,
                                                             int64_t b,
                                                             const int32_t *restrict sums,
                                                             oi_vf acc[16], oi_amx_shape s)
{
    const int64_t blocks = s.k / s.group;
    const oi_vf scale = oi_vf_load(j->part->scale + 16 * b);
    const oi_vf begin = oi_vf_mul(scale, oi_vf_set(0x1.8p23f));
    const oi_vf offset = s.has_offset ? oi_vf_load(j->part->offset + 16 * b) : scale;
    for (int64_t from = 0; from < 16; from += 4) {
        oi_vf v[4];
        for (int64_t r = 0; r < 4; r++)
            v[r] = oi_amx_scale(sums + 16 * (from + r), j->sum_of_q[(from + r) * blocks + b], scale,
                                begin, offset, s);
        for (int64_t r = 0; r < 4; r++)
            v[r] = oi_vf_mul(v[r], oi_vf_set(j->d[(from + r) * blocks + b]));
        for (int64_t r = 0; r < 4; r++)
            acc[from + r] = oi_vf_add(acc[from + r], v[r]);
    }
}

/* Multiplies block i of a job, stores the sums of the previous block (the last one of the previous
 * job if i is 0), and loads the next tile of x; then adds block i of the previous job. */
static inline __attribute__((always_inline)) void oi_amx_step(
    int i, const oi_amx_job *restrict j, const oi_amx_job *restrict before, const int8_t *next,
    const int32_t *begin, int32_t (*restrict sums)[256], oi_vf acc[16], oi_amx_shape s)
{
    if (i < j->n)
        oi_amx_multiply(i, j->q + i * s.group, j->part->w + i * 16 * s.group, s);
    if (i ? j->n > 0 : before->n > 1) {
        oi_amx_store(1 - i, sums[1 - i]);
        oi_amx_begin(1 - i, begin);
    }
    if (next)
        oi_amx_load_x(1 - i, next, s.k);
    if (i < before->n)
        oi_amx_add(before, i, sums[i], acc, s);
}

/* Starts a job while the sums of the previous one are added. */
static inline __attribute__((always_inline)) void oi_amx_round(
    const oi_amx_job *restrict j, const oi_amx_job *restrict before, const int8_t *next,
    const int32_t *begin, int32_t (*restrict sums)[256], oi_amx_shape s)
{
    oi_vf acc[16];
    for (int64_t r = 0; r < 16; r++)
        acc[r] = oi_vf_load(before->acc + 16 * r);
    oi_amx_step(0, j, before, j->n > 1 ? j->q + s.group : NULL, begin, sums, acc, s);
    oi_amx_step(1, j, before, next, begin, sums, acc, s);
    for (int64_t r = 0; r < 16; r++)
        oi_vf_store(before->acc + 16 * r, acc[r]);
}

/* -- all of it -- */

/* Up to OI_AMX_ROWS rows of x, a multiple of 16, times 16 rows of w; acc has a row of 16 results
 * for each. */
static inline __attribute__((always_inline)) void oi_amx_tile(
    const int8_t *restrict q, const float *restrict d, const float *restrict sum_of_q,
    const uint8_t *restrict w, float *restrict acc, int64_t rows, oi_amx_shape s)
{
    const int64_t blocks = s.k / s.group;
    const int64_t jobs = rows / 16 * ((blocks + OI_AMX_BLOCKS - 1) / OI_AMX_BLOCKS);
    _Alignas(64) int32_t sums[OI_AMX_BLOCKS][256], begin[16];
    oi_amx_part parts[2];
    oi_amx_job before = {.acc = acc};
    int64_t b = 0, r = 0;
    memset(acc, 0, (size_t)(16 * rows) * sizeof *acc);
    _mm512_store_si512(begin, oi_vi_set(oi_amx_begins(s) ? OI_Q_BEGIN : 0));
    oi_amx_unpack(w, 0, s, parts);
    oi_tiles_settle(begin);
    oi_amx_begin(0, begin);
    oi_amx_begin(1, begin);
    oi_amx_load_x(0, q, s.k);
    for (int64_t i = 0; i <= jobs; i++) { /* one more, which adds the last job */
        const oi_amx_part *p = &parts[b / OI_AMX_BLOCKS % 2];
        const int64_t first = r * blocks + b, later = b + OI_AMX_BLOCKS; /* of d */
        const int64_t n = i == jobs ? 0 : blocks < later ? blocks - b : OI_AMX_BLOCKS;
        const oi_amx_job job = {q + first * s.group, d + first, sum_of_q + first, p,
                                acc + 16 * r,        n};
        const int64_t is_first = r == 0 && n > 0, is_last = r + 16 >= rows;
        if (is_first && s.group <= 64) {
            oi_amx_load_w(0, p->w);
            oi_amx_load_w(1, p->w + 16 * s.group);
        }
        r = is_last ? 0 : r + 16;
        b = is_last ? later : b;
        oi_amx_round(&job, &before, i + 1 < jobs ? q + (r * blocks + b) * s.group : NULL, begin,
                     sums, s);
        if (is_first) /* the previous part is finished */
            oi_amx_unpack(w, later, s, parts);
        before = job;
    }
}

/* oi_qlinear for a multiple of 16 rows of x and blocks of up to OI_AMX_GROUP numbers: a multiple of
 * 32, or less than that. */
static inline __attribute__((always_inline)) void oi_qlinear_tiles(
    const int8_t *restrict q, const float *restrict d, const float *restrict sums,
    const uint8_t *restrict w, float *restrict out, int64_t m, int64_t n, int64_t k, int64_t group,
    int64_t bits, int64_t scale_size, int64_t has_offset, int64_t has_bias, int64_t zero,
    int64_t first, int64_t last)
{
    const oi_amx_shape s = {k, group, bits, scale_size, has_offset, zero};
    const int64_t blocks = k / group;
    const int64_t tile = blocks * (group * bits / 8 + scale_size * (1 + has_offset)) * 16;
    const float *bias = (const float *)(const void *)(w + (n + 15) / 16 * tile);
    _Alignas(64) float acc[16 * OI_AMX_ROWS];
    oi_amx_configure(oi_amx_numbers(s));
    for (int64_t r = 0; r < m; r += OI_AMX_ROWS) {
        const int64_t rows = m - r < OI_AMX_ROWS ? m - r : OI_AMX_ROWS;
        for (int64_t at = first; at < last; at += 16) {
            oi_amx_tile(q + r * k, d + r * blocks, sums + r * blocks, w + at / 16 * tile, acc, rows,
                        s);
            for (int64_t i = 0; i < rows; i++)
                oi_q_put(out + (r + i) * n, oi_vf_load(acc + 16 * i), has_bias ? bias : NULL, at,
                         n);
        }
    }
    _tile_release();
}

#endif
