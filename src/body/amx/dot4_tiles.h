/* dot4_tiles.h: 16 filters by places with AMX tiles: rows of one tile are filters, columns of the
 * other are places, and both have up to 16 groups of four channels. */
#ifndef OI_RECIPE_DOT4_TILES_H
#define OI_RECIPE_DOT4_TILES_H

#include "body/amx/tiles.h"
#include "body/avx512vnni/dot4_lanes.h"
#include "body/avx512vnni/dot4_shape.h"

/* Tiles 0 and 1 are sums, 2 filters, 3 and 4 places. */
static inline void oi_dot4_begin(int64_t deep)
{
    _Alignas(64) uint8_t shape[64] = {1};
    for (int i = 0; i < 5; i++) {
        shape[16 + 2 * i] = i == 2 ? (uint8_t)(4 * deep) : 64; /* bytes of a row */
        shape[48 + i] = i > 2 ? (uint8_t)deep : 16;            /* rows */
    }
    oi_tiles_settle(shape);
    _tile_loadconfig(shape);
}

static inline void oi_dot4_end(void)
{
    _tile_release();
}

/* A vector of places at p, or two; sums: (16, line). */
static inline __attribute__((always_inline)) void oi_dot4_tile(const int32_t *p, const int32_t *q,
                                                               const int32_t *w, const int32_t *at,
                                                               int64_t n, int32_t *sums,
                                                               oi_dot4_shape s)
{
    _tile_zero(0);
    _tile_zero(1);
    for (int64_t i = 0; i < s.blocks * s.kh * s.kw; i++) {
        const int64_t here = at[i * s.deep];
        _tile_loadd(2, w + i * 16 * s.deep, 4 * s.deep);
        _tile_loadd(3, p + here, 4 * s.plane);
        _tile_dpbsud(0, 2, 3);
        if (n > 1) {
            _tile_loadd(4, q + here, 4 * s.plane);
            _tile_dpbsud(1, 2, 4);
        }
    }
    _tile_stored(0, sums, 4 * s.line);
    if (n > 1)
        _tile_stored(1, sums + 16, 4 * s.line);
}

/* Up to 16 filters and `vectors` vectors of places, `per` of them side by side; sums: (16, line).
 */
static inline __attribute__((always_inline)) void oi_dot4_block(const int32_t *strip,
                                                                const int32_t *w, const int32_t *at,
                                                                int64_t filters, int64_t vectors,
                                                                int64_t per, int32_t *sums,
                                                                oi_dot4_shape s)
{
    const int64_t down = s.stride_y * s.phases * s.pitch;
    (void)filters;
    oi_tiles_settle(strip);
    for (int64_t i = 0; i < vectors; i += 2) {
        const int32_t *p = strip + i / per * down + i % per * 16;
        if (i + 1 < vectors)
            oi_dot4_tile(p, strip + (i + 1) / per * down + (i + 1) % per * 16, w, at, 2,
                         sums + i * 16, s);
        else
            oi_dot4_tile(p, p, w, at, 1, sums + i * 16, s);
    }
    oi_tiles_settle(sums);
}

/* n rows of k bytes, up to 16, in the place of filters, with signs. What is behind `out` may be
 * written, too. */
static inline __attribute__((always_inline)) void oi_dot4_rows(const char *x, int64_t n, int64_t k,
                                                               int64_t is_unsigned, int32_t *out,
                                                               oi_dot4_shape s)
{
    for (int64_t i = 0; i < s.blocks; i++)
        for (int64_t r = 0; r < 16; r++) {
            const int64_t at = i * s.deep * 4, left = r < n ? k - at : 0;
            _mm512_storeu_si512(out + (i * 16 + r) * s.deep,
                                oi_vi_padded(x + r * k + at, 0, left, 0, !is_unsigned));
        }
}

#endif
