/* qtiles.h: qlinear for many rows of x by products of tiles, 16 rows of x times 16 of w.
 *
 * Numbers of 8 bits are exact in bf16, and so is every sum of a block in f32, in whichever order:
 * a tile holds 32 along k of 16 rows, and what comes out is the sum that is scaled. So
 *
 *     x   is made bf16 once for all products that read it, in the order in which tiles are read:
 *         of 16 rows block after block, a block row after row; in every eight along k first those
 *         of even place, then the others. Scales and sums of q: 16 of a block, then the next
 *     w   16 rows of it as qlinear.h lays them out, becomes bf16, pairs of every row side by side
 *         as the instructions want them, four blocks at a time, which stay in tiles for all rows
 *         of x
 *
 * and 16 rows are multiplied while the sums of those before are scaled. The first cache bounds it:
 * sums pass through memory, and numbers of x that scale them are read one by one. */
#ifndef OI_RECIPE_QTILES_H
#define OI_RECIPE_QTILES_H

#include "recipe/qblock.h"

/* How long a block may be. */
enum { OI_AMX_GROUP = 256 };

/* Blocks at a time, and rows of x whose results are kept meanwhile. */
enum { OI_AMX_BLOCKS = 4, OI_AMX_ROWS = 128 };

/* Some blocks of 16 rows of w. */
typedef struct oi_amx_part {
    _Alignas(64) uint16_t w[16 * OI_AMX_BLOCKS * OI_AMX_GROUP];
    float scale[16 * OI_AMX_BLOCKS], offset[16 * OI_AMX_BLOCKS];
} oi_amx_part;

/* 16 rows of x and n blocks: what scales their sums, and where they are added, 16 results a row. */
typedef struct oi_amx_job {
    const float *scale, *offset, *d, *sum_of_q;
    float *acc;
    int64_t n;
} oi_amx_job;

/* What lies at p is there: compilers do not know what instructions of tiles read. */
static inline __attribute__((always_inline)) void oi_amx_fence(const void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

/* -- x -- */

/* A block of bytes as bf16 in the order of tiles; what lies behind it can be read. */
static inline void oi_q16_block(const int8_t *restrict bytes, uint16_t *restrict q, int64_t group)
{
    const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    for (int64_t i = 0; i < group; i += 16) {
        const __m128i n = _mm_shuffle_epi8(_mm_loadu_si128((const void *)(bytes + i)), order);
        const __m512i real = _mm512_castps_si512(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(n)));
        const __m256i half = _mm512_cvtepi32_epi16(_mm512_srli_epi32(real, 16));
        if (group - i < 16) /* 8: blocks are multiples of that */
            _mm_storeu_si128((void *)(q + i), _mm256_castsi256_si128(half));
        else
            _mm256_storeu_si256((void *)(q + i), half);
    }
}

/* Rows of x as oi_q8_rows makes them, in the order of tiles. */
static inline void oi_q16_rows(const float *restrict x, uint16_t *restrict q, float *restrict d,
                               float *restrict sums, int64_t k, int64_t group, int64_t first,
                               int64_t last)
{
    const int64_t blocks = k / group;
    int8_t bytes[4 * OI_AMX_GROUP + 8] = {0};
    float some_d[4], some_sums[4];
    for (int64_t row = first; row < last; row++)
        for (int64_t b = 0; b < blocks; b += 4) {
            const int64_t n = blocks - b < 4 ? blocks - b : 4;
            oi_q8_blocks(x + (row * blocks + b) * group, bytes, some_d, some_sums, group, n);
            for (int64_t i = 0; i < n; i++) {
                const int64_t to = (row / 16 * blocks + b + i) * 16 + row % 16;
                d[to] = some_d[i];
                sums[to] = some_sums[i];
                oi_q16_block(bytes + i * group, q + to * group, group);
            }
        }
}

/* -- w -- */

/* 0 ... 15 and again, plus zero, in bf16. */
static inline __m512i oi_amx_table(int64_t zero)
{
    const __m512i n =
        _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                         _mm512_set1_epi32((int32_t)zero));
    const __m512i real = _mm512_castps_si512(_mm512_cvtepi32_ps(n));
    return _mm512_broadcast_i64x4(_mm512_cvtepi32_epi16(_mm512_srli_epi32(real, 16)));
}

/* Nibbles, eight along k of 16 rows: words look theirs up by their lowest bits, of which the table
 * needs four and ignores one. */
static inline __attribute__((always_inline)) void oi_amx_nibbles(const uint8_t *restrict w,
                                                                 __m512i table,
                                                                 uint16_t *restrict to)
{
    const __m512i v = _mm512_loadu_si512(w);
    _mm512_store_si512(to, _mm512_permutexvar_epi16(v, table));
    _mm512_store_si512(to + 32, _mm512_permutexvar_epi16(_mm512_srli_epi16(v, 4), table));
    _mm512_store_si512(to + 64, _mm512_permutexvar_epi16(_mm512_srli_epi16(v, 8), table));
    _mm512_store_si512(to + 96, _mm512_permutexvar_epi16(_mm512_srli_epi16(v, 12), table));
}

/* Two of the four bytes of every lane, plus zero. */
static inline __m512i oi_amx_pair(__m512i v, int shift, __m512i zero)
{
    const __m512i low = _mm512_add_epi32(oi_vi_byte(v, shift), zero);
    const __m512i high = _mm512_add_epi32(oi_vi_byte(v, shift + 16), zero);
    return _mm512_mask_blend_epi16(
        0xaaaaaaaa, _mm512_srli_epi32(_mm512_castps_si512(_mm512_cvtepi32_ps(low)), 16),
        _mm512_castps_si512(_mm512_cvtepi32_ps(high)));
}

/* Bytes, eight along k of 16 rows. */
static inline __attribute__((always_inline)) void oi_amx_bytes(const uint8_t *restrict w,
                                                               __m512i zero, uint16_t *restrict to)
{
    const __m512i first = _mm512_loadu_si512(w), second = _mm512_loadu_si512(w + 64);
    _mm512_store_si512(to, oi_amx_pair(first, 0, zero));
    _mm512_store_si512(to + 32, oi_amx_pair(second, 0, zero));
    _mm512_store_si512(to + 64, oi_amx_pair(first, 8, zero));
    _mm512_store_si512(to + 96, oi_amx_pair(second, 8, zero));
}

/* Up to OI_AMX_BLOCKS of the blocks of w from block `from` on, in one of two places: bf16 for the
 * instructions, f32 for what scales their sums. What comes 4 KB later is asked for by the way. */
static inline __attribute__((always_inline)) void oi_amx_unpack(
    const uint8_t *restrict w, int64_t from, int64_t blocks, int64_t group, int64_t bits,
    int64_t scale_size, int64_t has_offset, int64_t zero, oi_amx_part parts[2])
{
    const int64_t of_w = group * bits / 8 * 16, of_scales = scale_size * 16;
    const int64_t size = of_w + of_scales * (1 + has_offset);
    const __m512i table = oi_amx_table(zero), each = _mm512_set1_epi32((int32_t)zero);
    oi_amx_part *p = &parts[from / OI_AMX_BLOCKS % 2];
    for (int64_t b = 0; b < OI_AMX_BLOCKS && from + b < blocks; b++) {
        const uint8_t *block = w + (from + b) * size;
        for (int64_t i = 0; i < size; i += 64)
            oi_prefetch(block + 4096 + i);
        for (int64_t i = 0; i < group; i += 8)
            if (bits == 4)
                oi_amx_nibbles(block + 8 * i, table, p->w + 16 * (b * group + i));
            else
                oi_amx_bytes(block + 16 * i, each, p->w + 16 * (b * group + i));
        oi_vf_store(p->scale + 16 * b, oi_q_scales(block + of_w, scale_size));
        if (has_offset)
            oi_vf_store(p->offset + 16 * b, oi_q_scales(block + of_w + of_scales, scale_size));
    }
    oi_amx_fence(p);
}

/* -- tiles: their numbers are part of the instructions -- */

/* Tiles 0 and 1 are sums, 2 and 3 rows of x, the others rows of w: 32 numbers along k, or a block.
 */
static inline void oi_amx_begin(int64_t group)
{
    _Alignas(64) uint8_t shape[64] = {1};
    const uint8_t numbers = (uint8_t)(group < 32 ? group : 32);
    for (int i = 0; i < 8; i++) {
        shape[16 + 2 * i] = i == 2 || i == 3 ? 2 * numbers : 64; /* bytes of a row */
        shape[48 + i] = i > 3 ? numbers / 2 : 16;                /* rows */
    }
    oi_amx_fence(shape);
    _tile_loadconfig(shape);
}

/* 32 numbers of block i of w. */
static inline __attribute__((always_inline)) void oi_amx_load(int i, const uint16_t *restrict w)
{
    switch (i) {
    case 0: _tile_loadd(4, w, 64); break;
    case 1: _tile_loadd(5, w, 64); break;
    case 2: _tile_loadd(6, w, 64); break;
    default: _tile_loadd(7, w, 64); break;
    }
}

/* The sums of block i: 16 rows of x, q, times w, which is in its tile where that holds a block. */
static inline __attribute__((always_inline)) void oi_amx_start(int i, const uint16_t *restrict q,
                                                               const uint16_t *restrict w,
                                                               int64_t group)
{
    if (i % 2)
        _tile_zero(1);
    else
        _tile_zero(0);
    for (int64_t j = 0; j < group; j += 32) {
        if (group > 32)
            oi_amx_load(i, w + 16 * j);
        if (i % 2)
            _tile_loadd(3, q + j, 2 * group);
        else
            _tile_loadd(2, q + j, 2 * group);
        switch (i) {
        case 0: _tile_dpbf16ps(0, 2, 4); break;
        case 1: _tile_dpbf16ps(1, 3, 5); break;
        case 2: _tile_dpbf16ps(0, 2, 6); break;
        default: _tile_dpbf16ps(1, 3, 7); break;
        }
    }
}

/* -- sums -- */

/* Adds a block to the results of four rows, rounded after every step as oi_q_block does. */
static inline __attribute__((always_inline)) void oi_amx_scale(
    oi_vf acc[4], const float *restrict sums, oi_vf scale, oi_vf offset, const float *restrict d,
    const float *restrict sum_of_q, int64_t has_offset, int64_t is_short)
{
    for (int64_t r = 0; r < 4; r++) {
        oi_vf v = oi_vf_mul(scale, oi_vf_load(sums + 16 * r));
        const oi_vf q = oi_vf_set(sum_of_q[r]);
        if (has_offset)
            v = is_short ? oi_vf_fma(offset, q, v) : oi_vf_add(v, oi_vf_mul(offset, q));
        acc[r] = oi_vf_add(acc[r], oi_vf_mul(v, oi_vf_set(d[r])));
    }
}

/* Block i of the present rows, where it is one of n, is multiplied; the sums of the block before
 * it, which are those of the rows before when i is 0, are stored; block i of those is scaled. */
static inline __attribute__((always_inline)) void oi_amx_step(int i, const uint16_t *restrict q,
                                                              const uint16_t *restrict w, int64_t n,
                                                              const oi_amx_job *restrict before,
                                                              float (*restrict sums)[256],
                                                              oi_vf acc[16], int64_t group,
                                                              int64_t has_offset, int64_t is_short)
{
    const int64_t last = i ? i - 1 : before->n - 1;
    if (i ? i < n : before->n > 0) {
        if (last % 2)
            _tile_stored(1, sums[last], 64);
        else
            _tile_stored(0, sums[last], 64);
    }
    if (i < n)
        oi_amx_start(i, q + i * 16 * group, w + i * 16 * group, group);
    if (i >= before->n)
        return;
    const oi_vf scale = oi_vf_load(before->scale + 16 * i);
    const oi_vf offset = has_offset ? oi_vf_load(before->offset + 16 * i) : scale;
    for (int64_t r = 0; r < 16; r += 4)
        oi_amx_scale(acc + r, sums[i] + 16 * r, scale, offset, before->d + 16 * i + r,
                     before->sum_of_q + 16 * i + r, has_offset, is_short);
}

/* n blocks of 16 rows of x, q, are multiplied with w, and the sums of those before are scaled. */
static inline __attribute__((always_inline)) void oi_amx_round(
    const uint16_t *restrict q, const uint16_t *restrict w, int64_t n,
    const oi_amx_job *restrict before, float (*restrict sums)[256], int64_t group,
    int64_t has_offset, int64_t is_short)
{
    oi_vf a[16];
    for (int64_t r = 0; r < 16; r++)
        a[r] = oi_vf_load(before->acc + 16 * r);
    oi_amx_step(0, q, w, n, before, sums, a, group, has_offset, is_short);
    oi_amx_step(1, q, w, n, before, sums, a, group, has_offset, is_short);
    oi_amx_step(2, q, w, n, before, sums, a, group, has_offset, is_short);
    oi_amx_step(3, q, w, n, before, sums, a, group, has_offset, is_short);
    for (int64_t r = 0; r < 16; r++)
        oi_vf_store(before->acc + 16 * r, a[r]);
}

/* -- all of it -- */

/* Up to OI_AMX_ROWS rows of x, a multiple of 16, times a tile of w. */
static inline __attribute__((always_inline)) void oi_amx_tile(
    const uint16_t *restrict q, const float *restrict d, const float *restrict sum_of_q,
    const uint8_t *restrict w, float *restrict out, const float *restrict bias, int64_t at,
    int64_t rows, int64_t width, int64_t k, int64_t group, int64_t bits, int64_t scale_size,
    int64_t has_offset, int64_t zero)
{
    const int64_t blocks = k / group, is_short = oi_q_is_short(scale_size, group);
    _Alignas(64) float acc[16 * OI_AMX_ROWS], sums[OI_AMX_BLOCKS][256];
    oi_amx_part parts[2];
    oi_amx_job before = {.acc = acc};
    memset(acc, 0, (size_t)(16 * rows) * sizeof *acc);
    oi_amx_unpack(w, 0, blocks, group, bits, scale_size, has_offset, zero, parts);
    for (int64_t b = 0; b < blocks; b += OI_AMX_BLOCKS) {
        const int64_t n = blocks - b < OI_AMX_BLOCKS ? blocks - b : OI_AMX_BLOCKS;
        const oi_amx_part *p = &parts[b / OI_AMX_BLOCKS % 2];
        for (int i = 0; group <= 32 && i < n; i++)
            oi_amx_load(i, p->w + 16 * i * group);
        for (int64_t r = 0; r < rows; r += 16) {
            const int64_t first = r * blocks + 16 * b; /* of d */
            oi_amx_round(q + first * group, p->w, n, &before, sums, group, has_offset, is_short);
            before =
                (oi_amx_job){p->scale, p->offset, d + first, sum_of_q + first, acc + 16 * r, n};
            if (r == 0) /* the part before is done with */
                oi_amx_unpack(w, b + OI_AMX_BLOCKS, blocks, group, bits, scale_size, has_offset,
                              zero, parts);
        }
    }
    oi_amx_round(q, parts[0].w, 0, &before, sums, group, has_offset, is_short);
    for (int64_t r = 0; r < rows; r++)
        oi_q_put(out + r * width, oi_vf_load(acc + 16 * r), bias, at, width);
}

/* oi_qlinear for a multiple of 16 rows of x, as oi_q16_rows makes them, and blocks of up to
 * OI_AMX_GROUP numbers: a multiple of 32, or less than that. */
static inline __attribute__((always_inline)) void oi_qlinear_tiles(
    const uint16_t *restrict q, const float *restrict d, const float *restrict sums,
    const uint8_t *restrict w, float *restrict out, int64_t m, int64_t n, int64_t k, int64_t group,
    int64_t bits, int64_t scale_size, int64_t has_offset, int64_t has_bias, int64_t zero,
    int64_t first, int64_t last)
{
    const int64_t blocks = k / group;
    const int64_t tile = blocks * (group * bits / 8 + scale_size * (1 + has_offset)) * 16;
    const float *bias = (const float *)(const void *)(w + (n + 15) / 16 * tile);
    oi_amx_begin(group);
    for (int64_t r = 0; r < m; r += OI_AMX_ROWS) {
        const int64_t rows = m - r < OI_AMX_ROWS ? m - r : OI_AMX_ROWS;
        for (int64_t at = first; at < last; at += 16)
            oi_amx_tile(q + r * k, d + r * blocks, sums + r * blocks, w + at / 16 * tile,
                        out + r * n, has_bias ? bias : NULL, at, rows, n, k, group, bits,
                        scale_size, has_offset, zero);
    }
    _tile_release();
}

#endif
