/* sdpa_common.h: shared by attention for decode (few rows) and prefill (many rows); see sdpa.h. */
#ifndef OI_RECIPE_SDPA_COMMON_H
#define OI_RECIPE_SDPA_COMMON_H

#include "body/vec_math.h"

#include <math.h>
#include <string.h>

enum { OI_SDPA_KEYS = 64 };

/* OI_VF numbers of a cache in f16 (size 2) or f32. */
static inline oi_vf oi_sdpa_load(const void *restrict p, int64_t at, int64_t size)
{
    if (size == 2)
        return oi_vf_load_f16((const uint16_t *)p + at);
    return oi_vf_load((const float *)p + at);
}

/* The first n of them, and 0 beyond: features of a head need not fill vectors. */
static inline oi_vf oi_sdpa_load_some(const void *restrict p, int64_t at, int64_t size, int64_t n)
{
    if (n >= OI_VF)
        return oi_sdpa_load(p, at, size);
    if (size == 4)
        return oi_vf_load_within((const float *)p + at, 0, n);
    uint16_t halves[OI_VF] = {0};
    memcpy(halves, (const uint16_t *)p + at, (size_t)n * sizeof *halves);
    return oi_vf_load_f16(halves);
}

/* Prefetches what comes a tile later, in order, all heads together: processors do not
 * foresee steps from key to key of one head. */
typedef struct oi_sdpa_next {
    const char *at;
    int64_t each; /* bytes for every key of the present tile */
} oi_sdpa_next;

static inline __attribute__((always_inline)) void oi_sdpa_ahead(oi_sdpa_next next, int64_t from,
                                                                int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64)
        oi_prefetch(next.at + from + i);
}

static inline __attribute__((always_inline)) oi_vf oi_sdpa_add(int64_t is_exact, oi_vf sum, oi_vf a,
                                                               oi_vf b)
{
    return is_exact ? oi_vf_add(sum, oi_vf_mul(a, b)) : oi_vf_fma(a, b, sum);
}

/* Keys that query t sees. */
static inline int64_t oi_sdpa_seen(int64_t t, int64_t tq, int64_t len, int64_t is_causal)
{
    const int64_t n = is_causal ? t + len - tq + 1 : len;
    return n < 0 ? 0 : n < len ? n : len;
}

/* Where rows lie in q and out: row i is query i % tq of head i / tq. */
static inline int64_t oi_sdpa_place(int64_t i, int64_t tq, int64_t step_h, int64_t step_t)
{
    return i / tq * step_h + i % tq * step_t;
}

/* A call: sizes, and steps in rows of q, out and the caches. wh, wv: dh and dv, filled up to whole
 * vectors, as rows of scratch are. */
typedef struct oi_sdpa_shape {
    int64_t group, tq, len, dh, dv, wh, wv, size, is_causal, is_exact, is_bf16;
    int64_t q_h, q_t, k_h, k_t; /* from head to head, from query to query or key to key */
    int64_t mask_size, mask_h, mask_t, mask_k;
    float scale;
} oi_sdpa_shape;

/* Some rows of a batch: `from` counts from head 0. Many: `stride` is their number with those that
 * fill up a vector, `tile` has keys or values as floats, and each row has numbers of its own. */
typedef struct oi_sdpa_part {
    int64_t from, rows, stride;   /* of scores */
    float *q, *o, *tile, *scores; /* scratch */
    float *seen, *top, *sum, *inverse;
} oi_sdpa_part;

/* How many rows from row r on share its head of keys. */
static inline int64_t oi_sdpa_alike(const oi_sdpa_shape *s, const oi_sdpa_part *p, int64_t r)
{
    const int64_t each = s->group * s->tq, left = each - (p->from + r) % each;
    return left < p->rows - r ? left : p->rows - r;
}

/* -- sums -- */

/* Adds n values from feature f on, `step` apart, times weights, `w_row` from row to row and `w_key`
 * from key to key, to up to six rows of o, `width` apart: `wide` vectors, which hold `left`
 * features.
 */
static inline __attribute__((always_inline)) void oi_sdpa_sums_at(
    const float *restrict weights, int64_t w_row, int64_t w_key, const void *restrict v,
    int64_t step, int64_t size, float *restrict o, int64_t width, int64_t rows, int64_t n,
    int64_t f, int64_t left, int64_t wide, oi_sdpa_next next, int64_t bytes, int64_t is_exact)
{
    oi_vf s[12];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < wide; i++)
            s[r * wide + i] = oi_vf_load(o + r * width + f + i * OI_VF);
    for (int64_t j = 0; j < n; j++) {
        const int64_t from = j * step + f;
        oi_sdpa_ahead(next, (f / OI_VF * OI_SDPA_KEYS + j * wide) * bytes, wide * bytes);
        oi_vf x[4];
        for (int64_t i = 0; i < wide; i++)
            x[i] = oi_sdpa_load_some(v, from + i * OI_VF, size, left - i * OI_VF);
        for (int64_t r = 0; r < rows; r++) {
            const oi_vf w = oi_vf_set(weights[r * w_row + j * w_key]);
            for (int64_t i = 0; i < wide; i++)
                s[r * wide + i] = oi_sdpa_add(is_exact, s[r * wide + i], w, x[i]);
        }
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < wide; i++)
            oi_vf_store(o + r * width + f + i * OI_VF, s[r * wide + i]);
}

/* The same for all dv features. */
static inline __attribute__((always_inline)) void oi_sdpa_sums(
    const float *restrict weights, int64_t w_row, int64_t w_key, const void *restrict v,
    int64_t step, int64_t size, float *restrict o, int64_t width, int64_t rows, int64_t n,
    int64_t dv, oi_sdpa_next next, int64_t is_exact)
{
    const int64_t wide = rows <= 2 && dv % (4 * OI_VF) == 0 ? 4 : 2;
    const int64_t whole = dv / (wide * OI_VF) * (wide * OI_VF);
    const int64_t bytes = next.each * OI_VF / dv; /* for a vector */
    for (int64_t f = 0; f < whole; f += wide * OI_VF)
        oi_sdpa_sums_at(weights, w_row, w_key, v, step, size, o, width, rows, n, f, wide * OI_VF,
                        wide, next, bytes, is_exact);
    if (dv - whole > OI_VF)
        oi_sdpa_sums_at(weights, w_row, w_key, v, step, size, o, width, rows, n, whole, dv - whole,
                        2, next, bytes, is_exact);
    else if (dv > whole)
        oi_sdpa_sums_at(weights, w_row, w_key, v, step, size, o, width, rows, n, whole, dv - whole,
                        1, next, bytes, is_exact);
}

#endif
