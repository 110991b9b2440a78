/* tiles.h: shared by all bodies that use AMX tiles.
 *
 * While the sibling hyperthread is awake, latency grows with the number of tiles in use: a product
 * that follows its loads takes 20 ns with eight tiles, 15 with six, 11 with four, and 6 if the
 * sibling sleeps. So bodies use as few tiles as possible, even if they load more often. */
#ifndef OI_RECIPE_TILES_H
#define OI_RECIPE_TILES_H

#include <immintrin.h>
#include <stdint.h>

/* What was written is in memory: compilers do not know that tiles are loaded from there, or stored
 * where something is read. */
static inline __attribute__((always_inline)) void oi_tiles_settle(const void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

/* The first n tiles, each 16 rows of 64 bytes. */
static inline void oi_tiles_begin(int n)
{
    _Alignas(64) uint8_t shape[64] = {1};
    for (int i = 0; i < n; i++) {
        shape[16 + 2 * i] = 64; /* bytes of a row */
        shape[48 + i] = 16;     /* rows */
    }
    oi_tiles_settle(shape);
    _tile_loadconfig(shape);
}

/* Tiles 0 and 1 begin with 0, or go on with sums that were stored. */
static inline __attribute__((always_inline)) void oi_tiles_go_on(const float *sums,
                                                                 int64_t is_first)
{
    if (is_first) {
        _tile_zero(0);
        _tile_zero(1);
    } else {
        _tile_loadd(0, sums, 64);
        _tile_loadd(1, sums + 256, 64);
    }
}

static inline __attribute__((always_inline)) void oi_tiles_store(float *sums)
{
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + 256, 64);
}

#endif
