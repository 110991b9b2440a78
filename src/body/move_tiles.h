/* move_tiles.h: floats whose axes change their order.
 *
 * Two axes matter: `a`, along which the source is contiguous, and `l`, along which the result is. A
 * tile of OI_VF by OI_VF numbers is loaded in rows of the source, transposed in registers, and
 * stored in rows of the result. Tiles at an end overlap their neighbours. */
#ifndef OI_RECIPE_MOVE_TILES_H
#define OI_RECIPE_MOVE_TILES_H

#include "body/gemm.h"

enum { OI_MOVE_ROWS = 4 * OI_VF }; /* places of a at a time: neighbouring lines of the source */

/* OI_VF places of a, of which the first `done` are left as they are, and all of l. */
static inline __attribute__((always_inline)) void oi_move_strip(const float *restrict from,
                                                                float *restrict to, int64_t done,
                                                                int64_t l, int64_t from_l,
                                                                int64_t to_a)
{
    for (int64_t i = 0; i < l; i += OI_VF) {
        const int64_t at = i + OI_VF <= l ? i : l - OI_VF;
        oi_vf v[OI_VF];
        for (int64_t j = 0; j < OI_VF; j++)
            v[j] = oi_vf_load(from + (at + j) * from_l);
        oi_vf_transpose(v);
        for (int64_t j = 0; j < OI_VF; j++)
            if (j >= done)
                oi_vf_store(to + j * to_a + at, v[j]);
    }
}

/* The places a ... a_end - 1 of n, and all of l. */
static inline __attribute__((always_inline)) void oi_move_rows(const float *restrict from,
                                                               float *restrict to, int64_t a,
                                                               int64_t a_end, int64_t n, int64_t l,
                                                               int64_t from_l, int64_t to_a)
{
    for (int64_t i = a; i < a_end; i += OI_VF) {
        const int64_t at = i + OI_VF <= n ? i : n - OI_VF;
        if (at == i)
            oi_move_strip(from + at, to + at * to_a, 0, l, from_l, to_a);
        else
            oi_move_strip(from + at, to + at * to_a, i - at, l, from_l, to_a);
    }
}

/* Three axes around them, with their steps in the source and in the result. Units first ... last -
 * 1 of n_0 n_1 n_2 planes, each in strips of OI_MOVE_ROWS places of a. */
static inline void oi_move_tiles(const float *restrict from, float *restrict to, int64_t n_0,
                                 int64_t from_0, int64_t to_0, int64_t n_1, int64_t from_1,
                                 int64_t to_1, int64_t n_2, int64_t from_2, int64_t to_2, int64_t a,
                                 int64_t l, int64_t from_l, int64_t to_a, int64_t from_begin,
                                 int64_t to_begin, int64_t first, int64_t last)
{
    const int64_t strips = (a + OI_MOVE_ROWS - 1) / OI_MOVE_ROWS;
    (void)n_0;
    for (int64_t u = first; u < last; u++) {
        const int64_t row = u % strips * OI_MOVE_ROWS, plane = u / strips;
        const int64_t i = plane / n_2 / n_1, j = plane / n_2 % n_1, k = plane % n_2;
        const int64_t end = row + OI_MOVE_ROWS < a ? row + OI_MOVE_ROWS : a;
        oi_move_rows(from + from_begin + i * from_0 + j * from_1 + k * from_2,
                     to + to_begin + i * to_0 + j * to_1 + k * to_2, row, end, a, l, from_l, to_a);
    }
}

#endif
