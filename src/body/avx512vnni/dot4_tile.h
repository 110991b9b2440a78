/* dot4_tile.h: register tiles of 16 filters by vectors of places, four channels of a place at a
 * time. */
#ifndef OI_RECIPE_DOT4_TILE_H
#define OI_RECIPE_DOT4_TILE_H

#include "body/avx512vnni/dot4_lanes.h"

#include <string.h>
#include "body/avx512vnni/dot4_shape.h"

/* Filters and vectors of places in a register tile. */
enum { OI_DOT4_HIGH = 8, OI_DOT4_WIDE = 3 };

static inline void oi_dot4_begin(int64_t deep)
{
    (void)deep;
}

static inline void oi_dot4_end(void) {}

/* Sums of a filter. Separate names, because compilers do not keep arrays in registers. */
typedef struct oi_dot4_three {
    oi_vi a, b, c;
} oi_dot4_three;

/* One filter times n vectors of places, one to three. */
static inline __attribute__((always_inline)) void oi_dot4_meet(const int32_t *w, oi_dot4_three x,
                                                               int64_t n, oi_dot4_three *s)
{
    const oi_vi by = oi_vi_set(*w);
    s->a = oi_vi_dot_u4(s->a, x.a, by);
    if (n > 1)
        s->b = oi_vi_dot_u4(s->b, x.b, by);
    if (n > 2)
        s->c = oi_vi_dot_u4(s->c, x.c, by);
}

static inline __attribute__((always_inline)) void oi_dot4_put(int32_t *out, int64_t n,
                                                              oi_dot4_three s)
{
    oi_vi_store(out, s.a);
    if (n > 1)
        oi_vi_store(out + OI_VF, s.b);
    if (n > 2)
        oi_vi_store(out + 2 * OI_VF, s.c);
}

/* Eight filters by n vectors of places at p: `steps` 4-byte groups at offsets `at`, each times one
 * group of every filter. It is one loop whose trip count the compiler must not know, and a separate
 * function for each n; otherwise compilers spill sums. sums: (8, line) */
static inline __attribute__((always_inline)) void oi_dot4_tile(const int32_t *const p[OI_DOT4_WIDE],
                                                               const int32_t *restrict w,
                                                               const int32_t *restrict at,
                                                               int64_t n, int64_t steps,
                                                               int32_t *restrict sums, int64_t line)
{
    __asm__("" : "+r"(steps));
    const oi_dot4_three none = {oi_vi_zero(), oi_vi_zero(), oi_vi_zero()};
    oi_dot4_three s0 = none, s1 = none, s2 = none, s3 = none;
    oi_dot4_three s4 = none, s5 = none, s6 = none, s7 = none;
    for (int64_t i = 0; i < steps; i++, w += 16) {
        const oi_vi v = oi_vi_load(p[0] + at[i]);
        const oi_dot4_three x = {v, n > 1 ? oi_vi_load(p[1] + at[i]) : v,
                                 n > 2 ? oi_vi_load(p[2] + at[i]) : v};
        oi_dot4_meet(w, x, n, &s0);
        oi_dot4_meet(w + 1, x, n, &s1);
        oi_dot4_meet(w + 2, x, n, &s2);
        oi_dot4_meet(w + 3, x, n, &s3);
        oi_dot4_meet(w + 4, x, n, &s4);
        oi_dot4_meet(w + 5, x, n, &s5);
        oi_dot4_meet(w + 6, x, n, &s6);
        oi_dot4_meet(w + 7, x, n, &s7);
    }
    oi_dot4_put(sums, n, s0);
    oi_dot4_put(sums + line, n, s1);
    oi_dot4_put(sums + 2 * line, n, s2);
    oi_dot4_put(sums + 3 * line, n, s3);
    oi_dot4_put(sums + 4 * line, n, s4);
    oi_dot4_put(sums + 5 * line, n, s5);
    oi_dot4_put(sums + 6 * line, n, s6);
    oi_dot4_put(sums + 7 * line, n, s7);
}

static __attribute__((noinline)) void oi_dot4_tile_3(const int32_t *const p[OI_DOT4_WIDE],
                                                     const int32_t *w, const int32_t *at,
                                                     int64_t steps, int32_t *sums, int64_t line)
{
    oi_dot4_tile(p, w, at, 3, steps, sums, line);
}

static __attribute__((noinline)) void oi_dot4_tile_2(const int32_t *const p[OI_DOT4_WIDE],
                                                     const int32_t *w, const int32_t *at,
                                                     int64_t steps, int32_t *sums, int64_t line)
{
    oi_dot4_tile(p, w, at, 2, steps, sums, line);
}

static __attribute__((noinline)) void oi_dot4_tile_1(const int32_t *const p[OI_DOT4_WIDE],
                                                     const int32_t *w, const int32_t *at,
                                                     int64_t steps, int32_t *sums, int64_t line)
{
    oi_dot4_tile(p, w, at, 1, steps, sums, line);
}

/* Up to 16 filters and `vectors` vectors of places, `per` of them contiguous; sums: (16, line). */
static inline __attribute__((always_inline)) void oi_dot4_block(const int32_t *strip,
                                                                const int32_t *w, const int32_t *at,
                                                                int64_t filters, int64_t vectors,
                                                                int64_t per, int32_t *sums,
                                                                oi_dot4_shape s)
{
    const int64_t down = s.stride_y * s.phases * s.pitch, steps = s.blocks * s.deep * s.kh * s.kw;
    for (int64_t f = 0; f < filters; f += OI_DOT4_HIGH)
        for (int64_t i = 0; i < vectors; i += OI_DOT4_WIDE) {
            const int32_t *p[OI_DOT4_WIDE];
            int32_t *to = sums + f * s.line + i * OI_VF;
            for (int64_t k = 0; k < OI_DOT4_WIDE; k++) { /* missing ones repeat the last */
                const int64_t one = i + k < vectors ? i + k : vectors - 1;
                p[k] = strip + one / per * down + one % per * OI_VF;
            }
            if (vectors - i >= 3)
                oi_dot4_tile_3(p, w + f, at, steps, to, s.line);
            else if (vectors - i == 2)
                oi_dot4_tile_2(p, w + f, at, steps, to, s.line);
            else
                oi_dot4_tile_1(p, w + f, at, steps, to, s.line);
        }
}

/* n rows of k signed bytes, up to 16, in the role of filters: interleaves their 4-byte groups. */
static inline __attribute__((always_inline)) void oi_dot4_rows(const char *x, int64_t n, int64_t k,
                                                               int64_t is_unsigned, int32_t *out,
                                                               oi_dot4_shape s)
{
    const uint32_t flip = is_unsigned ? 0x80808080u : 0;
    const int64_t rest = k % 4;
    for (int64_t i = 0; i < 16 * s.blocks * s.deep; i++)
        out[i] = 0;
    for (int64_t r = 0; r < n; r++) {
        uint32_t four;
        for (int64_t i = 0; i < k / 4; i++) {
            memcpy(&four, x + r * k + 4 * i, sizeof four);
            out[i * 16 + r] = (int32_t)(four ^ flip);
        }
        four = flip;
        memcpy(&four, x + r * k + k - rest, (size_t)rest);
        if (rest)
            out[k / 4 * 16 + r] = (int32_t)(four ^ flip);
    }
}

#endif
