/* bf16x3.h: GEMM of floats in AMX tiles of bf16, by the bf16 split.
 *
 * A float is the sum of three bf16, 8 bits of its 24 each; every part is the remainder of the ones
 * before, truncated. So a product of floats is nine products of parts. The three smallest are below
 * its rounding error and are omitted. A bf16 has one part, itself. Sums are floats.
 *
 *     x:  rows in steps of 32 along k; a step has the highest parts, then the lower ones. The last
 *         step is padded with 0, and rows are an odd number of cache lines apart
 *     b:  panels of 32 columns; a panel is steps of 32 along k, and a step has, for every part, two
 *         tiles of 16 columns: two along k of every column, then the next two ... After the panels:
 *         which of them are nonfinite
 *
 * Tiles flush values below 2^-126 to 0, and inf times a part that is 0 is NaN. Rows of x and panels
 * of b are called nonfinite if they have a number that is not finite, or so large that a flushed
 * part would matter; their sums are computed separately. Parts end at 2^-133: beside numbers from
 * 2^110 on, those below 2^-110 are not exact. */
#ifndef OI_RECIPE_BF16X3_H
#define OI_RECIPE_BF16X3_H

#include "body/amx/tiles.h"
#include "body/half.h"

/* The bits of 2^90; columns of b that are packed at a time. */
enum { OI_PARTS_NONFINITE = 0x6c800000, OI_PARTS_WIDTH = 256 };

/* Numbers in a row of x. */
static inline int64_t oi_bf16x3_wide(int64_t k)
{
    return (k + 31) / 32 * 32;
}

static inline int64_t oi_bf16x3_row(int64_t k, int64_t parts)
{
    return (oi_bf16x3_wide(k) * parts / 32 | 1) * 32;
}

/* -- numbers in parts -- */

/* The parts of one number, `step` apart; whether it is nonfinite. One that is less than any bf16
 * becomes the least: it must not be 0 where it is multiplied by inf. */
static inline int oi_bf16x3_one(float x, uint16_t *restrict to, int64_t step, int64_t parts)
{
    const uint32_t size = oi_bits_f32(x) & 0x7fffffff;
    const uint32_t bits = oi_bits_f32(x) | (size > 0 && size < 0x10000 ? 0x10000 : 0);
    const int is_finite = (bits & 0x7f800000) != 0x7f800000;
    to[0] = (uint16_t)(bits >> 16 | (x != x ? 64 : 0));
    for (int64_t i = 1; i < parts; i++) {
        x = is_finite ? x - oi_f32_of_bf16(to[(i - 1) * step]) : 0;
        to[i * step] = (uint16_t)(oi_bits_f32(x) >> 16);
    }
    return size >= OI_PARTS_NONFINITE;
}

/* The part that is left of x, which becomes what it leaves. */
static inline __m512i oi_bf16x3_cut(__m512 *x)
{
    const __m512i part =
        _mm512_and_si512(_mm512_castps_si512(*x), _mm512_set1_epi32((int32_t)0xffff0000));
    *x = _mm512_sub_ps(*x, _mm512_castsi512_ps(part));
    return part;
}

/* The upper halves of 32 numbers. */
static inline __m512i oi_bf16x3_upper(__m512i low, __m512i high)
{
    static const uint16_t at[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                    33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    return _mm512_permutex2var_epi16(low, _mm512_loadu_si512(at), high);
}

/* Which of 16 are nonfinite; those that are less than any bf16 become the least. */
static inline __mmask16 oi_bf16x3_nonfinite(__m512 *x)
{
    const __m512i bits = _mm512_castps_si512(*x);
    const __m512i size = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
    const __mmask16 is_tiny = _mm512_cmpge_epu32_mask(_mm512_set1_epi32(0xfffe),
                                                      _mm512_sub_epi32(size, _mm512_set1_epi32(1)));
    *x = _mm512_castsi512_ps(_mm512_mask_or_epi32(bits, is_tiny, bits, _mm512_set1_epi32(0x10000)));
    return _mm512_cmpge_epu32_mask(size, _mm512_set1_epi32(OI_PARTS_NONFINITE));
}

/* The first n of 16 floats, if any: the others are 0. */
static inline __m512 oi_bf16x3_load(const float *p, int64_t n)
{
    return n >= 16 ? _mm512_loadu_ps(p)
           : n > 0 ? _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p)
                   : _mm512_setzero_ps();
}

/* 32 of a row, of which n exist: its parts are `step` apart. Those that are not finite come out
 * wrong. */
static inline __mmask16 oi_bf16x3_line(const float *p, int64_t n, uint16_t *restrict to,
                                       int64_t step)
{
    __m512 low = oi_bf16x3_load(p, n), high = oi_bf16x3_load(p + 16, n - 16);
    const __mmask16 is_nonfinite = oi_bf16x3_nonfinite(&low) | oi_bf16x3_nonfinite(&high);
    for (int64_t i = 0; i < 3; i++) {
        const __m512i part = oi_bf16x3_cut(&low);
        _mm512_storeu_si512(to + i * step, oi_bf16x3_upper(part, oi_bf16x3_cut(&high)));
    }
    return is_nonfinite;
}

/* Rows of x, floats or bf16: three parts or one, and which rows are nonfinite. */
static inline void oi_bf16x3_rows(const void *restrict x, uint16_t *restrict to,
                                  uint8_t *restrict nonfinite, int64_t k, int64_t parts,
                                  int64_t first, int64_t last)
{
    const int64_t wide = oi_bf16x3_wide(k);
    for (int64_t r = first; r < last; r++) {
        uint16_t *row = to + r * oi_bf16x3_row(k, parts);
        const float *floats = (const float *)x + r * k;
        const uint16_t *halves = (const uint16_t *)x + r * k;
        int is_nonfinite = 0;
        for (int64_t i = 0; parts == 1 && i < wide; i++) {
            row[i] = i < k ? halves[i] : 0;
            is_nonfinite |= (row[i] & 0x7fff) >= OI_PARTS_NONFINITE >> 16;
        }
        for (int64_t i = 0; parts == 3 && i < wide; i += 32)
            is_nonfinite |= oi_bf16x3_line(floats + i, k - i, row + 3 * i, 32);
        for (int64_t i = 0; parts == 3 && is_nonfinite && i < k; i++)
            oi_bf16x3_one(floats[i], row + i / 32 * 96 + i % 32, 32, 3);
        nonfinite[r] = is_nonfinite != 0;
    }
}

/* -- panels of a b that is no weight: `columns` of its columns, k of its rows -- */

/* A panel, one number after the other. */
static inline void oi_bf16x3_pack_any(const float *restrict b, int64_t b_k, int64_t b_n, int64_t k,
                                      int64_t columns, uint16_t *restrict to,
                                      uint16_t *restrict nonfinite)
{
    *nonfinite = 0;
    for (int64_t i = 0; i < oi_bf16x3_wide(k); i++)
        for (int64_t c = 0; c < 32; c++)
            *nonfinite |= (uint16_t)oi_bf16x3_one(
                i < k && c < columns ? b[i * b_k + c * b_n] : 0,
                to + i / 32 * 3072 + c / 16 * 512 + i % 32 / 2 * 32 + c % 16 * 2 + i % 2, 1024, 3);
}

/* All panels, where columns lie side by side: two rows become one of pairs. Those rows are read to
 * their ends, since each may be on a page of its own. */
static inline void oi_bf16x3_pack_rows(const float *restrict b, int64_t b_k, int64_t k,
                                       int64_t columns, uint16_t *restrict to,
                                       uint16_t *restrict nonfinite)
{
    const int64_t panel = 96 * oi_bf16x3_wide(k);
    for (int64_t i = 0; i < oi_bf16x3_wide(k); i += 2)
        for (int64_t c = 0; c < columns + 31 - (columns + 31) % 32; c += 16) {
            __m512 even = oi_bf16x3_load(b + i * b_k + c, i < k ? columns - c : 0);
            __m512 odd = oi_bf16x3_load(b + (i + 1) * b_k + c, i + 1 < k ? columns - c : 0);
            uint16_t *own = to + c / 32 * panel + i / 32 * 3072 + c % 32 * 32 + i % 32 * 16;
            nonfinite[c / 32] |= oi_bf16x3_nonfinite(&even) | oi_bf16x3_nonfinite(&odd);
            for (int64_t part = 0; part < 3; part++) {
                const __m512i low = _mm512_srli_epi32(oi_bf16x3_cut(&even), 16);
                _mm512_storeu_si512(own + part * 1024, _mm512_or_si512(low, oi_bf16x3_cut(&odd)));
            }
        }
}

/* A panel, where k lies side by side: pairs are there, and rows of them become columns. */
static inline void oi_bf16x3_pack_transposed(const float *restrict b, int64_t b_n, int64_t k,
                                             int64_t columns, uint16_t *restrict to,
                                             uint16_t *restrict nonfinite)
{
    _Alignas(64) uint16_t turned[3 * 512];
    for (int64_t i = 0; i < oi_bf16x3_wide(k); i += 16, to += 512) {
        const int64_t at = i / 32 * 32, first = i % 32; /* half a step is 16 of 32 columns */
        for (int64_t c = 0; c < 16; c++)
            *nonfinite |= oi_bf16x3_line(b + (first + c) * b_n + at,
                                         first + c < columns ? k - at : 0, turned + 32 * c, 512);
        for (int64_t part = 0; part < 3; part++) {
            oi_vf v[16];
            for (int64_t c = 0; c < 16; c++)
                v[c] = _mm512_castsi512_ps(_mm512_load_si512(turned + 512 * part + 32 * c));
            oi_vf_transpose(v);
            for (int64_t c = 0; c < 16; c++)
                _mm512_storeu_ps(to + 1024 * part + 32 * c, v[c]);
        }
        to += first / 16 * 2048; /* the other parts of this step */
    }
}

/* Panels, and which of them are nonfinite. */
static inline void oi_bf16x3_pack(const float *restrict b, int64_t b_k, int64_t b_n, int64_t k,
                                  int64_t columns, uint16_t *restrict to,
                                  uint16_t *restrict nonfinite)
{
    for (int64_t j = 0; j < columns; j += 32)
        nonfinite[j / 32] = b_n != 1 && b_k != 1;
    if (b_n == 1)
        oi_bf16x3_pack_rows(b, b_k, k, columns, to, nonfinite);
    for (int64_t j = 0; j < columns; j += 32) {
        const int64_t own = columns - j < 32 ? columns - j : 32;
        uint16_t *panel = to + 3 * j * oi_bf16x3_wide(k);
        if (b_n != 1 && b_k == 1)
            oi_bf16x3_pack_transposed(b + j * b_n, b_n, k, own, panel, &nonfinite[j / 32]);
        if (nonfinite[j / 32])
            oi_bf16x3_pack_any(b + j * b_n, b_k, b_n, k, own, panel, &nonfinite[j / 32]);
    }
}

/* -- tiles: 0 and 1 are sums, 2 rows of x, 3 and 4 columns of b -- */

enum { OI_PARTS_NEAR = 4 }; /* steps of a panel that stay in the first cache */

static inline __attribute__((always_inline)) void oi_bf16x3_load_b(const uint16_t *b)
{
    _tile_loadd(3, b, 64);
    _tile_loadd(4, b + 512, 64);
}

static inline __attribute__((always_inline)) void oi_bf16x3_multiply(void)
{
    _tile_dpbf16ps(0, 2, 3);
    _tile_dpbf16ps(1, 2, 4);
}

/* 32 along k: high times low, high times middle, middle times middle, middle times high, low times
 * high, high times high, so that each product takes over what the one before it has loaded. */
static inline __attribute__((always_inline)) void oi_bf16x3_step(const uint16_t *x, int64_t bytes,
                                                                 const uint16_t *b, int64_t x_parts,
                                                                 int64_t b_parts)
{
    if (b_parts == 3 || x_parts == 1)
        _tile_loadd(2, x, bytes);
    if (b_parts == 3) {
        oi_bf16x3_load_b(b + 2048);
        oi_bf16x3_multiply();
        oi_bf16x3_load_b(b + 1024);
        oi_bf16x3_multiply();
    }
    if (b_parts == 3 && x_parts == 3) {
        _tile_loadd(2, x + 32, bytes);
        oi_bf16x3_multiply();
    }
    oi_bf16x3_load_b(b);
    if (x_parts == 3) {
        if (b_parts == 1)
            _tile_loadd(2, x + 32, bytes);
        oi_bf16x3_multiply();
        _tile_loadd(2, x + 64, bytes);
        oi_bf16x3_multiply();
        _tile_loadd(2, x, bytes);
    }
    oi_bf16x3_multiply();
}

/* Some steps of a tile of rows are added to its sums. Meanwhile so many lines of what comes then
 * get nearer in each. */
static inline __attribute__((always_inline)) void oi_bf16x3_steps(
    const uint16_t *x, int64_t bytes, const uint16_t *b, const uint16_t *soon, int64_t lines,
    float *sums, int64_t steps, int64_t is_first, int64_t x_parts, int64_t b_parts)
{
    oi_tiles_go_on(sums, is_first);
    for (int64_t s = 0; s < steps; s++) {
        for (int64_t i = 0; i < lines; i++)
            _mm_prefetch((const char *)(soon + 32 * (s * lines + i)), _MM_HINT_T1);
        oi_bf16x3_step(x + 32 * x_parts * s, bytes, b + 1024 * b_parts * s, x_parts, b_parts);
    }
    oi_tiles_store(sums);
}

/* -- sums -- */

/* The first row of a tile: the last tile may begin with rows of the one before it. */
static inline int64_t oi_bf16x3_from(int64_t tile, int64_t m)
{
    return 16 * tile < m - 16 ? 16 * tile : m - 16;
}

/* Tiles from ... to - 1 of rows times some steps of a panel, of which a few at a time are
 * multiplied by all of them: two tiles of sums for every tile of rows. By the way the steps after
 * these come nearer. */
static inline __attribute__((always_inline)) void oi_bf16x3_panel(const uint16_t *x, int64_t row,
                                                                  const uint16_t *b, float *sums,
                                                                  int64_t m, int64_t from,
                                                                  int64_t to, int64_t steps,
                                                                  int64_t x_parts, int64_t b_parts)
{
    const int64_t lines = (32 * b_parts + to - from - 1) / (to - from); /* of a step, shared */
    for (int64_t s = 0; s < steps; s += OI_PARTS_NEAR) {
        const int64_t n = steps - s < OI_PARTS_NEAR ? steps - s : OI_PARTS_NEAR;
        const uint16_t *own = b + 1024 * b_parts * s, *soon = own + 1024 * b_parts * n;
        for (int64_t t = from; t < to; t++)
            oi_bf16x3_steps(x + oi_bf16x3_from(t, m) * row + 32 * x_parts * s, 2 * row, own,
                            soon + 32 * lines * n * (t - from), lines, sums + 512 * (t - from), n,
                            s == 0, x_parts, b_parts);
    }
}

/* A number of b, of 16 columns at once: one of two along k, put together from its parts. */
static inline oi_vf oi_bf16x3_whole(const uint16_t *pairs, int64_t is_odd, int64_t parts)
{
    oi_vf sum = oi_vf_set(0);
    for (int64_t i = parts; i-- > 0;) {
        const __m512i v = _mm512_loadu_si512(pairs + 1024 * i);
        sum = oi_vf_add(sum, _mm512_castsi512_ps(
                                 is_odd ? _mm512_and_si512(v, _mm512_set1_epi32((int)0xffff0000))
                                        : _mm512_slli_epi32(v, 16)));
    }
    return sum;
}

/* The sums of one row, without tiles. */
static inline void oi_bf16x3_apart(const uint16_t *x, const uint16_t *b, int64_t steps,
                                   int64_t x_parts, int64_t b_parts, oi_vf sums[2])
{
    sums[0] = sums[1] = oi_vf_set(0);
    for (int64_t i = 0; i < 32 * steps; i++) {
        const uint16_t *pairs = b + i / 32 * 1024 * b_parts + i % 32 / 2 * 32;
        float one = 0;
        for (int64_t p = x_parts; p-- > 0;)
            one += oi_f32_of_bf16(x[(i / 32 * x_parts + p) * 32 + i % 32]);
        sums[0] = oi_vf_fma(oi_vf_set(one), oi_bf16x3_whole(pairs, i % 2, b_parts), sums[0]);
        sums[1] = oi_vf_fma(oi_vf_set(one), oi_bf16x3_whole(pairs + 512, i % 2, b_parts), sums[1]);
    }
}

/* A row of results, of floats or bf16; only floats can be more than one part of k. */
static inline void oi_bf16x3_put(void *restrict out, int64_t at, const oi_vf sums[2],
                                 int64_t is_more, int64_t form, int64_t columns)
{
    uint16_t *rounded = out;
    float row[32];
    if (!form) {
        oi_gemm_put((float *)out + at, sums[0], sums[1], NULL, is_more, columns);
        return;
    }
    oi_gemm_put(row, sums[0], sums[1], NULL, 0, 32);
    for (int64_t i = 0; i < columns; i++)
        rounded[at + i] = oi_near_bf16_f32(row[i]);
}

/* out (m, n), its columns first ... last - 1, a part of k: the steps of panels that lie `panel`
 * numbers apart. x begins with that part. */
static inline __attribute__((always_inline)) void oi_bf16x3_some(
    const uint16_t *x, const uint8_t *nonfinite, const uint16_t *b, int64_t panel,
    const uint16_t *nonfinite_panels, void *out, float *sums, int64_t m, int64_t n, int64_t k,
    int64_t x_parts, int64_t b_parts, int64_t form, int64_t tiles, int64_t steps, int64_t is_more,
    int64_t is_last, int64_t first, int64_t last, oi_epilogue *finish, void *const *ports)
{
    const int64_t row = oi_bf16x3_row(k, x_parts);
    const int64_t all = (m + 15) / 16;
    for (int64_t from = 0; from < all; from += tiles) {
        const int64_t to = all - from < tiles ? all : from + tiles;
        for (int64_t j = first; j < last; j += 32) {
            const uint16_t *own = b + (j - first) / 32 * panel;
            const int64_t columns = last - j < 32 ? last - j : 32;
            oi_bf16x3_panel(x, row, own, sums, m, from, to, steps, x_parts, b_parts);
            for (int64_t r = 16 * from; r < 16 * to && r < m; r++) {
                const float *sum =
                    sums + 512 * (r / 16 - from) + 16 * (r - oi_bf16x3_from(r / 16, m));
                oi_vf s[2] = {oi_vf_load(sum), oi_vf_load(sum + 256)};
                if (nonfinite[r] | nonfinite_panels[(j - first) / 32])
                    oi_bf16x3_apart(x + r * row, own, steps, x_parts, b_parts, s);
                oi_bf16x3_put(out, r * n + j, s, is_more, form, columns);
            }
        }
        if (is_last)
            oi_epilogue_block(finish, ports, out, n, 16 * from, 16 * to < m ? 16 * to : m, first,
                              last);
    }
}

/* out (m, n) = x . b for a packed b, the columns first ... last - 1; m is at least 16. `tiles`
 * tiles of rows are multiplied by `chunk` steps of k at a time. */
static inline __attribute__((always_inline)) void oi_bf16x3_weights(
    const uint16_t *x, const uint8_t *nonfinite, const void *packed, void *out, float *sums,
    int64_t m, int64_t n, int64_t k, int64_t x_parts, int64_t b_parts, int64_t form, int64_t tiles,
    int64_t chunk, int64_t first, int64_t last, oi_epilogue *finish, void *const *ports)
{
    const uint16_t *b = packed;
    const int64_t steps = (k + 31) / 32, panel = 1024 * b_parts * steps;
    const uint16_t *nonfinite_panels = b + (n + 31) / 32 * panel + first / 32;
    oi_tiles_begin(5);
    oi_tiles_settle(x);
    for (int64_t s = 0; s < steps; s += chunk)
        oi_bf16x3_some(x + 32 * x_parts * s, nonfinite, b + first / 32 * panel + 1024 * b_parts * s,
                       panel, nonfinite_panels, out, sums, m, n, k, x_parts, b_parts, form, tiles,
                       steps - s < chunk ? steps - s : chunk, s > 0, s + chunk >= steps, first,
                       last, finish, ports);
    _tile_release();
}

/* The same for a b of floats that is no weight and has the given steps; room: for a chunk of
 * OI_PARTS_WIDTH columns of it. */
static inline __attribute__((always_inline)) void oi_bf16x3_two(
    const uint16_t *x, const uint8_t *nonfinite, const float *b, float *out, uint16_t *room,
    float *sums, int64_t m, int64_t n, int64_t k, int64_t b_k, int64_t b_n, int64_t tiles,
    int64_t chunk, int64_t first, int64_t last, oi_epilogue *finish, void *const *ports)
{
    const int64_t steps = (k + 31) / 32;
    uint16_t nonfinite_panels[OI_PARTS_WIDTH / 32];
    oi_tiles_begin(5);
    for (int64_t j0 = first; j0 < last; j0 += OI_PARTS_WIDTH)
        for (int64_t s = 0; s < steps; s += chunk) {
            const int64_t j1 = last - j0 < OI_PARTS_WIDTH ? last : j0 + OI_PARTS_WIDTH;
            const int64_t own = steps - s < chunk ? steps - s : chunk;
            oi_bf16x3_pack(b + 32 * s * b_k + j0 * b_n, b_k, b_n,
                           k - 32 * s < 32 * own ? k - 32 * s : 32 * own, j1 - j0, room,
                           nonfinite_panels);
            oi_tiles_settle(room);
            oi_bf16x3_some(x + 96 * s, nonfinite, room, 3072 * own, nonfinite_panels, out, sums, m,
                           n, k, 3, 3, 0, tiles, own, s > 0, s + chunk >= steps, j0, j1, finish,
                           ports);
        }
    _tile_release();
}

#endif
