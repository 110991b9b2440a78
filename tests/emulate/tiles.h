/* tiles.h: the tiles of AMX in plain C, by Intel's description of the instructions. What a
 * processor answers with an exception ends the program with a line that says why. */
#ifndef OI_EMULATE_TILES_H
#define OI_EMULATE_TILES_H

#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EMU_TILES = 8, EMU_ROWS = 16, EMU_BYTES = 64 };

typedef struct emu_tile {
    int rows, bytes; /* of a row */
    uint8_t at[EMU_ROWS][EMU_BYTES];
} emu_tile;

static _Thread_local struct {
    int is_configured;
    emu_tile tiles[EMU_TILES];
} emu_amx;

static inline void emu_must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "emulated tiles: %s\n", what);
    abort();
}

/* -- shapes -- */

static inline void emu_tile_release(void)
{
    memset(&emu_amx, 0, sizeof emu_amx);
}

static inline void emu_tile_loadconfig(const void *p)
{
    uint8_t b[64];
    memcpy(b, p, sizeof b);
    emu_tile_release();
    emu_must(b[0] <= 1, "there is no such palette");
    if (b[0] == 0) /* no tiles */
        return;
    emu_must(b[1] == 0, "a start row is for interrupted instructions only");
    for (int i = 2; i < 64; i++)
        emu_must((i >= 16 && i < 32) || (i >= 48 && i < 56) || !b[i], "a reserved byte is not 0");
    for (int i = 0; i < EMU_TILES; i++) {
        emu_tile *t = &emu_amx.tiles[i];
        t->bytes = b[16 + 2 * i] + 256 * b[17 + 2 * i];
        t->rows = b[48 + i];
        emu_must(t->bytes <= EMU_BYTES && t->rows <= EMU_ROWS, "a tile is 16 rows of 64 bytes");
        emu_must(!t->bytes == !t->rows, "a tile has rows of no bytes, or no rows");
    }
    emu_amx.is_configured = 1;
}

static inline emu_tile *emu_tile_at(int i)
{
    emu_must(emu_amx.is_configured, "used before their shapes are given");
    emu_must(i >= 0 && i < EMU_TILES && emu_amx.tiles[i].rows, "this one has no shape");
    return &emu_amx.tiles[i];
}

/* -- memory -- */

static inline void emu_tile_zero(int i)
{
    emu_tile *t = emu_tile_at(i);
    memset(t->at, 0, sizeof t->at);
}

static inline void emu_tile_load(int i, const void *p, int64_t step)
{
    emu_tile_zero(i);
    for (int r = 0; r < emu_amx.tiles[i].rows; r++)
        memcpy(emu_amx.tiles[i].at[r], (const char *)p + r * step, (size_t)emu_amx.tiles[i].bytes);
}

static inline void emu_tile_store(int i, void *p, int64_t step)
{
    const emu_tile *t = emu_tile_at(i);
    for (int r = 0; r < t->rows; r++)
        memcpy((char *)p + r * step, t->at[r], (size_t)t->bytes);
}

/* -- products -- */

static inline void emu_tile_fits(int sum, int a, int b)
{
    const emu_tile *s = emu_tile_at(sum), *x = emu_tile_at(a), *y = emu_tile_at(b);
    emu_must(sum != a && sum != b && a != b, "a product is of three tiles");
    emu_must(s->bytes % 4 == 0 && x->bytes % 4 == 0 && y->bytes % 4 == 0, "rows are of four bytes");
    emu_must(s->rows == x->rows && s->bytes == y->bytes && x->bytes == 4 * y->rows,
             "the shapes of a product do not fit");
}

static inline int32_t emu_byte(uint8_t b, int is_signed)
{
    return is_signed && b > 127 ? b - 256 : b;
}

/* Sums are taken modulo 2^32. */
static inline void emu_tile_bytes(int sum, int a, int b, int signed_a, int signed_b)
{
    emu_tile_fits(sum, a, b);
    emu_tile *s = &emu_amx.tiles[sum], *x = &emu_amx.tiles[a], *y = &emu_amx.tiles[b];
    for (int m = 0; m < s->rows; m++)
        for (int n = 0; n < s->bytes / 4; n++) {
            uint32_t total;
            memcpy(&total, &s->at[m][4 * n], sizeof total);
            for (int k = 0; k < x->bytes; k++)
                total += (uint32_t)(emu_byte(x->at[m][k], signed_a) *
                                    emu_byte(y->at[k / 4][4 * n + k % 4], signed_b));
            memcpy(&s->at[m][4 * n], &total, sizeof total);
        }
}

/* Numbers too small to be normal are zeros. */
static inline float emu_flushed(float x)
{
    return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x;
}

static inline float emu_of_bf16(const void *p)
{
    uint16_t half;
    memcpy(&half, p, sizeof half);
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return emu_flushed(x);
}

/* a * b + c, rounded once */
static inline float emu_step(float a, float b, float c)
{
    return emu_flushed(__builtin_fmaf(a, b, emu_flushed(c)));
}

/* First numbers of pairs are summed on their own and so are the second ones, then both, and these
 * are added to what there was. */
static inline void emu_tile_bf16(int sum, int a, int b)
{
    emu_tile_fits(sum, a, b);
    emu_tile *s = &emu_amx.tiles[sum], *x = &emu_amx.tiles[a], *y = &emu_amx.tiles[b];
    for (int m = 0; m < s->rows; m++)
        for (int n = 0; n < s->bytes / 4; n++) {
            float even = 0, odd = 0, total;
            for (int k = 0; k < y->rows; k++) {
                even = emu_step(emu_of_bf16(&x->at[m][4 * k]), emu_of_bf16(&y->at[k][4 * n]), even);
                odd = emu_step(emu_of_bf16(&x->at[m][4 * k + 2]), emu_of_bf16(&y->at[k][4 * n + 2]),
                               odd);
            }
            memcpy(&total, &s->at[m][4 * n], sizeof total);
            total = emu_flushed(emu_flushed(total) + emu_flushed(even + odd));
            memcpy(&s->at[m][4 * n], &total, sizeof total);
        }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_dpbssd
#undef _tile_dpbsud
#undef _tile_dpbusd
#undef _tile_dpbuud
#undef _tile_dpbf16ps
#define _tile_loadconfig(p)            emu_tile_loadconfig(p)
#define _tile_release()                emu_tile_release()
#define _tile_zero(i)                  emu_tile_zero(i)
#define _tile_loadd(i, p, step)        emu_tile_load(i, p, step)
#define _tile_stream_loadd(i, p, step) emu_tile_load(i, p, step)
#define _tile_stored(i, p, step)       emu_tile_store(i, p, step)
#define _tile_dpbssd(s, a, b)          emu_tile_bytes(s, a, b, 1, 1)
#define _tile_dpbsud(s, a, b)          emu_tile_bytes(s, a, b, 1, 0)
#define _tile_dpbusd(s, a, b)          emu_tile_bytes(s, a, b, 0, 1)
#define _tile_dpbuud(s, a, b)          emu_tile_bytes(s, a, b, 0, 0)
#define _tile_dpbf16ps(s, a, b)        emu_tile_bf16(s, a, b)

#endif
