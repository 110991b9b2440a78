/* sdpa.h: attention over keys and values, as they lie in a cache: only what kv_len shows is read.
 *
 * A row is one query of one head. Some rows at a time have all their scores in scratch:
 *
 *     scores   q . k * scale (+ mask), tile by tile of keys; every sum runs along the features in
 *              order
 *     weights  e^(score - largest) / their sum, which runs along the keys in order
 *     sums     weights times values, tile by tile; a vector holds OI_VF features of the result and
 *              every sum runs along the keys in order
 *
 * Few rows (a decoding step) lie one after the other, and a vector holds the scores of OI_VF keys
 * of one row: a tile of keys is laid out feature by feature, once for all rows that share its head.
 * Many rows that share a head of keys lie side by side: a vector holds the scores of OI_VF rows for
 * one key. Then it is q that is laid out feature by feature, once for all keys, and nothing between
 * scores and sums ever goes across a vector.
 *
 * With is_exact every step is rounded as in the op's definition, products and sums apart: the
 * result is the simulator's, bit by bit. Without, a product and its sum are rounded once, and
 * weights of few rows are added up side by side. Either way a row is the same whoever computes it
 * beside whichever others. Keys that a row does not see are left out: they would add 0. */
#ifndef OI_RECIPE_SDPA_H
#define OI_RECIPE_SDPA_H

#include "recipe/math.h"

#include <math.h>

enum { OI_SDPA_KEYS = 64 };

/* Keys at a time for many rows: sixes of them. */
enum { OI_SDPA_TILE = 48 };

/* OI_VF numbers of a cache in f16 (size 2) or f32. */
static inline oi_vf oi_sdpa_load(const void *restrict p, int64_t at, int64_t size)
{
    if (size == 2)
        return oi_vf_load_f16((const uint16_t *)p + at);
    return oi_vf_load((const float *)p + at);
}

/* What comes a tile later is asked for by the way, in order, all heads together: processors do not
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

/* -- scores -- */

/* Up to 2 OI_VF keys, `step` apart, feature by feature. A last key stands in for those beyond n. */
static inline __attribute__((always_inline)) void oi_sdpa_panel(const void *restrict k, int64_t at,
                                                                int64_t step, int64_t size,
                                                                int64_t n, int64_t features,
                                                                float *restrict panel,
                                                                oi_sdpa_next next)
{
    const int64_t bytes = next.each * OI_VF * OI_VF / features; /* in every step */
    for (int64_t f = 0; f < features; f += OI_VF)
        for (int64_t half = 0; half < 2 * OI_VF; half += OI_VF) {
            oi_vf v[OI_VF];
            oi_sdpa_ahead(next, (2 * f + half) / OI_VF * bytes, bytes);
            for (int64_t i = 0; i < OI_VF; i++) {
                const int64_t key = half + i < n ? half + i : n - 1;
                v[i] = oi_sdpa_load(k, at + key * step + f, size);
            }
            oi_vf_transpose(v);
            for (int64_t i = 0; i < OI_VF; i++)
                oi_vf_store(panel + (f + i) * 2 * OI_VF + half, v[i]);
        }
}

/* n keys as panels. */
static inline __attribute__((always_inline)) void oi_sdpa_keys(const void *restrict k, int64_t at,
                                                               int64_t step, int64_t size,
                                                               int64_t n, int64_t features,
                                                               float *restrict panels,
                                                               oi_sdpa_next next)
{
    int64_t j = 0;
    for (; j + 2 * OI_VF <= n; j += 2 * OI_VF, next.at += 2 * OI_VF * next.each)
        oi_sdpa_panel(k, at + j * step, step, size, 2 * OI_VF, features, panels + j * features,
                      next);
    if (j < n)
        oi_sdpa_panel(k, at + j * step, step, size, n - j, features, panels + j * features, next);
}

/* Scores of `wide` panels of keys for up to six rows of q; wide * rows is at most 6. */
static inline __attribute__((always_inline)) void oi_sdpa_dots(
    const float *restrict q, const float *restrict panels, float *restrict scores, int64_t stride,
    int64_t rows, int64_t wide, int64_t dh, oi_vf by, int64_t is_exact)
{
    oi_vf s[12];
    for (int64_t i = 0; i < 12; i++)
        s[i] = oi_vf_set(0);
    for (int64_t f = 0; f < dh; f++)
        for (int64_t p = 0; p < wide; p++) {
            const float *k = panels + (p * dh + f) * 2 * OI_VF;
            const oi_vf left = oi_vf_load(k), right = oi_vf_load(k + OI_VF);
            for (int64_t r = 0; r < rows; r++) {
                const oi_vf x = oi_vf_set(q[r * dh + f]);
                oi_vf *to = s + 2 * (p * rows + r);
                to[0] = oi_sdpa_add(is_exact, to[0], x, left);
                to[1] = oi_sdpa_add(is_exact, to[1], x, right);
            }
        }
    for (int64_t p = 0; p < wide; p++)
        for (int64_t r = 0; r < rows; r++) {
            float *to = scores + r * stride + p * 2 * OI_VF;
            oi_vf_store(to, oi_vf_mul(s[2 * (p * rows + r)], by));
            oi_vf_store(to + OI_VF, oi_vf_mul(s[2 * (p * rows + r) + 1], by));
        }
}

/* Scores of n keys in panels for `rows` rows. Few rows take two panels at once: a sum waits for the
 * one before it. */
static inline __attribute__((always_inline)) void oi_sdpa_tile(
    const float *restrict q, const float *restrict panels, float *restrict scores, int64_t stride,
    int64_t rows, int64_t n, int64_t dh, float scale, int64_t is_exact)
{
    const oi_vf by = oi_vf_set(scale);
    int64_t j = 0;
    for (; rows <= 3 && j + 2 * OI_VF < n; j += 4 * OI_VF)
        oi_sdpa_dots(q, panels + j * dh, scores + j, stride, rows, 2, dh, by, is_exact);
    for (; j < n; j += 2 * OI_VF)
        oi_sdpa_dots(q, panels + j * dh, scores + j, stride, rows, 1, dh, by, is_exact);
}

/* -- weights -- */

/* n scores become exponentials below the largest, those up to `end` 0. Lanes beyond n are left out
 * as they are read: a load would wait for stores of single ones, and some processors take hundreds
 * of cycles for a power that is next to nothing. */
static inline void oi_sdpa_exp(float *restrict scores, int64_t n, int64_t end)
{
    const int64_t whole = n / OI_VF * OI_VF, left = n - whole;
    oi_vf top = oi_vf_set(-INFINITY), last = top;
    for (int64_t i = 0; i < whole; i += OI_VF)
        top = oi_vf_max(oi_vf_load(scores + i), top);
    if (left) {
        last = oi_vf_first(oi_vf_load(scores + whole), left, last);
        top = oi_vf_max(last, top);
    }
    const float largest = oi_vf_largest(top);
    const oi_vf base = oi_vf_set(largest == -INFINITY ? 0 : largest), none = oi_vf_set(0);
    for (int64_t i = 0; i < whole; i += OI_VF)
        oi_vf_store(scores + i, oi_vf_exp(oi_vf_sub(oi_vf_load(scores + i), base)));
    if (left) {
        last = oi_vf_exp(oi_vf_first(oi_vf_sub(last, base), left, none));
        oi_vf_store(scores + whole, oi_vf_first(last, left, none));
    }
    for (int64_t i = whole + (left ? OI_VF : 0); i < end; i += OI_VF)
        oi_vf_store(scores + i, none);
}

/* n weights of up to six rows: divided by their sums, which run side by side. */
static inline __attribute__((always_inline)) void oi_sdpa_divide(float *restrict scores,
                                                                 int64_t stride, int64_t rows,
                                                                 int64_t n, int64_t is_exact)
{
    for (int64_t r = 0; !is_exact && r < rows; r++) {
        oi_vf all = oi_vf_set(0);
        for (int64_t i = r * stride; i < r * stride + n; i += OI_VF)
            all = oi_vf_add(all, oi_vf_load(scores + i));
        const float total = oi_vf_total(all);
        const oi_vf by = oi_vf_set(total == 0 ? 1 : 1 / total);
        for (int64_t i = r * stride; i < r * stride + n; i += OI_VF)
            oi_vf_store(scores + i, oi_vf_mul(oi_vf_load(scores + i), by));
    }
    if (!is_exact)
        return;
    float sum[6] = {0};
    for (int64_t i = 0; i < n; i++)
        for (int64_t r = 0; r < rows; r++)
            sum[r] += scores[r * stride + i];
    for (int64_t r = 0; r < rows; r++) {
        const float total = sum[r] == 0 ? 1 : sum[r]; /* nothing is seen: weights are 0 */
        const oi_vf by = oi_vf_set(total), inverse = oi_vf_set(1 / total);
        for (int64_t i = r * stride; i < r * stride + n; i += OI_VF)
            oi_vf_store(scores + i, oi_vf_div_by(oi_vf_load(scores + i), by, inverse));
    }
}

/* -- sums -- */

/* Adds n values, `step` apart, times weights, `w_row` from row to row and `w_key` from key to key,
 * to up to six rows of o; OI_VF `wide` features at a time. */
static inline __attribute__((always_inline)) void oi_sdpa_sums(
    const float *restrict weights, int64_t w_row, int64_t w_key, const void *restrict v,
    int64_t step, int64_t size, float *restrict o, int64_t rows, int64_t n, int64_t dv,
    int64_t wide, oi_sdpa_next next, int64_t is_exact)
{
    const int64_t bytes = next.each * OI_VF / dv; /* for a vector */
    for (int64_t f = 0; f < dv; f += wide * OI_VF) {
        oi_vf s[12];
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < wide; i++)
                s[r * wide + i] = oi_vf_load(o + r * dv + f + i * OI_VF);
        for (int64_t j = 0; j < n; j++) {
            const int64_t from = j * step + f;
            oi_sdpa_ahead(next, (f / OI_VF * OI_SDPA_KEYS + j * wide) * bytes, wide * bytes);
            oi_vf x[4];
            for (int64_t i = 0; i < wide; i++)
                x[i] = oi_sdpa_load(v, from + i * OI_VF, size);
            for (int64_t r = 0; r < rows; r++) {
                const oi_vf w = oi_vf_set(weights[r * w_row + j * w_key]);
                for (int64_t i = 0; i < wide; i++)
                    s[r * wide + i] = oi_sdpa_add(is_exact, s[r * wide + i], w, x[i]);
            }
        }
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < wide; i++)
                oi_vf_store(o + r * dv + f + i * OI_VF, s[r * wide + i]);
    }
}

/* -- rows -- */

/* What to do with up to six rows; BESIDE: sums, where the scores of a key lie side by side. */
enum { OI_SDPA_SCORES, OI_SDPA_DIVIDE, OI_SDPA_SUMS, OI_SDPA_BESIDE };

/* A tile of n keys, as panels, or n values, `step` apart, and up to six rows: q and o lie together,
 * scores `stride` apart. */
static inline __attribute__((always_inline)) void oi_sdpa_six(
    int what, const float *restrict q, const void *restrict tile, int64_t step, int64_t size,
    float *restrict scores, int64_t stride, float *restrict o, int64_t rows, int64_t n, int64_t dh,
    int64_t dv, float scale, oi_sdpa_next next, int64_t is_exact)
{
    if (what == OI_SDPA_SCORES)
        oi_sdpa_tile(q, tile, scores, stride, rows, n, dh, scale, is_exact);
    else if (what == OI_SDPA_DIVIDE)
        oi_sdpa_divide(scores, stride, rows, n, is_exact);
    else
        oi_sdpa_sums(scores, what == OI_SDPA_SUMS ? stride : 1, what == OI_SDPA_SUMS ? 1 : stride,
                     tile, step, size, o, rows, n, dv, rows <= 2 && dv % (4 * OI_VF) == 0 ? 4 : 2,
                     next, is_exact);
}

/* The same for any number of rows. */
static inline __attribute__((always_inline)) void oi_sdpa_rows(
    int what, const float *restrict q, const void *restrict tile, int64_t step, int64_t size,
    float *restrict scores, int64_t stride, float *restrict o, int64_t rows, int64_t n, int64_t dh,
    int64_t dv, float scale, oi_sdpa_next next, int64_t is_exact)
{
    for (; rows >= 6; rows -= 6, q += 6 * dh, scores += 6 * stride, o += 6 * dv)
        oi_sdpa_six(what, q, tile, step, size, scores, stride, o, 6, n, dh, dv, scale, next,
                    is_exact);
    switch (rows) { /* every number of rows has sums in registers of its own */
    case 5:
        oi_sdpa_six(what, q, tile, step, size, scores, stride, o, 5, n, dh, dv, scale, next,
                    is_exact);
        break;
    case 4:
        oi_sdpa_six(what, q, tile, step, size, scores, stride, o, 4, n, dh, dv, scale, next,
                    is_exact);
        break;
    case 3:
        oi_sdpa_six(what, q, tile, step, size, scores, stride, o, 3, n, dh, dv, scale, next,
                    is_exact);
        break;
    case 2:
        oi_sdpa_six(what, q, tile, step, size, scores, stride, o, 2, n, dh, dv, scale, next,
                    is_exact);
        break;
    case 1:
        oi_sdpa_six(what, q, tile, step, size, scores, stride, o, 1, n, dh, dv, scale, next,
                    is_exact);
        break;
    default: break;
    }
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

/* A mask's part of a row's scores: numbers are added (size 4), 0 hides (size 1). */
static inline void oi_sdpa_mask(float *restrict scores, const void *restrict mask, int64_t at,
                                int64_t step, int64_t size, int64_t n)
{
    if (size == 4)
        for (int64_t i = 0; i < n; i++)
            scores[i] += ((const float *)mask)[at + i * step];
    else
        for (int64_t i = 0; i < n; i++)
            scores[i] = ((const uint8_t *)mask)[at + i * step] ? scores[i] : -INFINITY;
}

/* A call: sizes, and steps in rows of q, out and the caches. */
typedef struct oi_sdpa_shape {
    int64_t group, tq, len, dh, dv, size, is_causal, is_exact;
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

/* From row r on, the first before `end` that sees key `at`, and how many follow it in its head, or
 * in all of them where none is before it. */
static inline int64_t oi_sdpa_first(const oi_sdpa_shape *s, const oi_sdpa_part *p, int64_t at,
                                    int64_t r, int64_t end, int64_t *n)
{
    const int64_t hidden = s->is_causal ? at + s->tq - s->len : 0; /* queries of every head */
    const int64_t t = (p->from + r) % s->tq, left = s->tq - t < end - r ? s->tq - t : end - r;
    const int64_t skipped = hidden - t < 0 ? 0 : hidden - t < left ? hidden - t : left;
    *n = hidden <= 0 ? end - r : left - skipped;
    return hidden <= 0 ? r : r + skipped;
}

/* A head's part of what comes after the tile from key `at` on; the last tile asks for nothing new.
 */
static inline oi_sdpa_next oi_sdpa_after(const oi_sdpa_shape *s, const oi_sdpa_part *p,
                                         const void *restrict cache, int64_t features, int64_t head,
                                         int64_t at)
{
    const int64_t each = s->group * s->tq, first = p->from / each, row = features * s->size;
    const int64_t heads = (p->from + p->rows - 1) / each - first + 1;
    const int64_t next = at + 2 * OI_SDPA_KEYS > s->len ? at : at + OI_SDPA_KEYS;
    if (s->k_t == 1) /* a head's keys lie together */
        return (oi_sdpa_next){(const char *)cache + (head * s->k_h + next) * row, row};
    return (oi_sdpa_next){(const char *)cache + next * s->k_t * row +
                              OI_SDPA_KEYS * s->k_t * row / heads * (head - first),
                          s->k_t * row / heads};
}

static inline __attribute__((always_inline)) void oi_sdpa_scores(const oi_sdpa_shape *s,
                                                                 const oi_sdpa_part *p,
                                                                 const void *restrict k)
{
    for (int64_t at = 0; at < s->len; at += OI_SDPA_KEYS)
        for (int64_t r = 0; r < p->rows; r += oi_sdpa_alike(s, p, r)) {
            const int64_t n = s->len - at < OI_SDPA_KEYS ? s->len - at : OI_SDPA_KEYS;
            const int64_t head = (p->from + r) / (s->group * s->tq);
            const oi_sdpa_next next = oi_sdpa_after(s, p, k, s->dh, head, at);
            oi_sdpa_keys(k, (head * s->k_h + at * s->k_t) * s->dh, s->k_t * s->dh, s->size, n,
                         s->dh, p->tile, next);
            const int64_t end = r + oi_sdpa_alike(s, p, r);
            for (int64_t i = r, rows; i < end; i += rows) {
                i = oi_sdpa_first(s, p, at, i, end, &rows);
                oi_sdpa_rows(OI_SDPA_SCORES, p->q + i * s->dh, p->tile, 0, 4,
                             p->scores + i * p->stride + at, p->stride, p->o, rows, n, s->dh, s->dv,
                             s->scale, next, s->is_exact);
            }
        }
}

static inline __attribute__((always_inline)) void oi_sdpa_weights(const oi_sdpa_shape *s,
                                                                  const oi_sdpa_part *p,
                                                                  const void *restrict mask)
{
    for (int64_t r = 0; r < p->rows; r++) {
        const int64_t h = (p->from + r) / s->tq, t = (p->from + r) % s->tq;
        if (mask)
            oi_sdpa_mask(p->scores + r * p->stride, mask, h * s->mask_h + t * s->mask_t, s->mask_k,
                         s->mask_size, s->len);
        oi_sdpa_exp(p->scores + r * p->stride, oi_sdpa_seen(t, s->tq, s->len, s->is_causal),
                    p->stride);
    }
    oi_sdpa_rows(OI_SDPA_DIVIDE, p->q, p->tile, 0, 4, p->scores, p->stride, p->o, p->rows,
                 p->stride, s->dh, s->dv, s->scale, (oi_sdpa_next){0}, s->is_exact);
}

static inline __attribute__((always_inline)) void oi_sdpa_weighted(const oi_sdpa_shape *s,
                                                                   const oi_sdpa_part *p,
                                                                   const void *restrict v)
{
    for (int64_t at = 0; at < s->len; at += OI_SDPA_KEYS)
        for (int64_t r = 0; r < p->rows; r += oi_sdpa_alike(s, p, r)) {
            const int64_t n = s->len - at < OI_SDPA_KEYS ? s->len - at : OI_SDPA_KEYS;
            const int64_t head = (p->from + r) / (s->group * s->tq);
            const int64_t first = (head * s->k_h + at * s->k_t) * s->dv;
            const oi_sdpa_next next = oi_sdpa_after(s, p, v, s->dv, head, at);
            const int64_t end = r + oi_sdpa_alike(s, p, r);
            for (int64_t i = r, rows; i < end; i += rows) {
                i = oi_sdpa_first(s, p, at, i, end, &rows);
                oi_sdpa_rows(OI_SDPA_SUMS, p->q, (const char *)v + first * s->size, s->k_t * s->dv,
                             s->size, p->scores + i * p->stride + at, p->stride, p->o + i * s->dv,
                             rows, n, s->dh, s->dv, s->scale, next, s->is_exact);
            }
        }
}

/* -- many rows -- */

/* Query by query becomes feature by feature; the last row stands in for those beyond it. */
static inline void oi_sdpa_turn(const oi_sdpa_shape *s, const oi_sdpa_part *p,
                                const float *restrict q)
{
    for (int64_t r = 0; r < p->stride; r += OI_VF)
        for (int64_t f = 0; f < s->dh; f += OI_VF) {
            oi_vf v[OI_VF];
            for (int64_t i = 0; i < OI_VF; i++) {
                const int64_t row = p->from + (r + i < p->rows ? r + i : p->rows - 1);
                v[i] = oi_vf_load(q + oi_sdpa_place(row, s->tq, s->q_h, s->q_t) * s->dh + f);
            }
            oi_vf_transpose(v);
            for (int64_t i = 0; i < OI_VF; i++)
                oi_vf_store(p->q + (f + i) * p->stride + r, v[i]);
        }
}

/* A tile from key `at` on as floats, the last key up to a multiple of six; the next one is asked
 * for by the way. */
static inline __attribute__((always_inline)) void oi_sdpa_floats(const oi_sdpa_shape *s,
                                                                 const oi_sdpa_part *p,
                                                                 const void *restrict cache,
                                                                 int64_t features, int64_t at,
                                                                 int64_t n)
{
    const int64_t head = p->from / (s->group * s->tq), step = s->k_t * features;
    const int64_t first = (head * s->k_h + at * s->k_t) * features;
    for (int64_t j = 0; j < (n + 5) / 6 * 6; j++) {
        const int64_t from = first + (j < n ? j : n - 1) * step;
        oi_sdpa_ahead((oi_sdpa_next){cache, 0}, (from + OI_SDPA_TILE * step) * s->size,
                      features * s->size);
        for (int64_t f = 0; f < features; f += OI_VF)
            oi_vf_store(p->tile + j * features + f, oi_sdpa_load(cache, from + f, s->size));
    }
}

/* How many keys all of n rows from row r on see, and how many any of them. */
static inline int64_t oi_sdpa_least(const oi_sdpa_shape *s, const oi_sdpa_part *p, int64_t r,
                                    int64_t n, int64_t *most)
{
    const int64_t t = (p->from + r) % s->tq;
    const int64_t is_one = t + n <= s->tq; /* head */
    *most = oi_sdpa_seen(is_one ? t + n - 1 : s->tq - 1, s->tq, s->len, s->is_causal);
    return oi_sdpa_seen(is_one ? t : 0, s->tq, s->len, s->is_causal);
}

/* Scores, not scaled yet, of six keys for `wide` vectors of rows. */
static inline __attribute__((always_inline)) void oi_sdpa_beside(const float *restrict q,
                                                                 const float *restrict keys,
                                                                 float *restrict scores,
                                                                 int64_t stride, int64_t dh,
                                                                 int64_t wide, int64_t is_exact)
{
    oi_vf s[12];
    for (int64_t i = 0; i < 12; i++)
        s[i] = oi_vf_set(0);
    for (int64_t f = 0; f < dh; f++) {
        oi_vf x[2];
        for (int64_t i = 0; i < wide; i++)
            x[i] = oi_vf_load(q + f * stride + i * OI_VF);
        for (int64_t j = 0; j < 6; j++) {
            const oi_vf key = oi_vf_set(keys[j * dh + f]);
            for (int64_t i = 0; i < wide; i++)
                s[j * wide + i] = oi_sdpa_add(is_exact, s[j * wide + i], x[i], key);
        }
    }
    for (int64_t j = 0; j < 6; j++)
        for (int64_t i = 0; i < wide; i++)
            oi_vf_store(scores + j * stride + i * OI_VF, s[j * wide + i]);
}

/* Scores of n keys, in sixes. Not inlined: compilers would keep numbers of what surrounds it in
 * registers that the sums need. */
static __attribute__((noinline)) void oi_sdpa_sixes(const float *restrict q,
                                                    const float *restrict keys,
                                                    float *restrict scores, int64_t stride,
                                                    int64_t dh, int64_t n, int64_t wide,
                                                    int64_t is_exact)
{
    for (int64_t j = 0; j < n; j += 6, keys += 6 * dh, scores += 6 * stride)
        if (wide == 2 && is_exact)
            oi_sdpa_beside(q, keys, scores, stride, dh, 2, 1);
        else if (wide == 2)
            oi_sdpa_beside(q, keys, scores, stride, dh, 2, 0);
        else if (is_exact)
            oi_sdpa_beside(q, keys, scores, stride, dh, 1, 1);
        else
            oi_sdpa_beside(q, keys, scores, stride, dh, 1, 0);
}

/* Scores x of a key and of OI_VF rows from row r on, with the mask's part. */
static inline oi_vf oi_sdpa_mask_beside(const oi_sdpa_shape *s, const oi_sdpa_part *p,
                                        const void *restrict mask, int64_t key, int64_t r, oi_vf x)
{
    float part[OI_VF];
    for (int64_t i = 0; i < OI_VF; i++) {
        const int64_t row = p->from + (r + i < p->rows ? r + i : p->rows - 1);
        const int64_t at = row / s->tq * s->mask_h + row % s->tq * s->mask_t + key * s->mask_k;
        part[i] = s->mask_size == 4 ? ((const float *)mask)[at] : ((const uint8_t *)mask)[at];
    }
    const oi_vf y = oi_vf_load(part);
    if (s->mask_size == 4)
        return oi_vf_add(x, y);
    return oi_vf_below(y, oi_vf_set(1), oi_vf_set(-INFINITY), x);
}

/* n scores from key `at` on, of OI_VF rows from row r on, are scaled and masked, and the largest so
 * far that a row sees is kept: of every other key, since a maximum waits for the one before it. The
 * last key of an odd number is followed by one that nobody sees. */
static inline __attribute__((always_inline)) void oi_sdpa_top(const oi_sdpa_shape *s,
                                                              const oi_sdpa_part *p,
                                                              const void *restrict mask, int64_t at,
                                                              int64_t n, int64_t r)
{
    const oi_vf by = oi_vf_set(s->scale), none = oi_vf_set(-INFINITY),
                seen = oi_vf_load(p->seen + r);
    oi_vf top[2] = {oi_vf_load(p->top + r), none};
    for (int64_t j = at; j < at + n; j += 2)
        for (int64_t i = 0; i < 2; i++) {
            float *score = p->scores + (j + i) * p->stride + r;
            oi_vf x = oi_vf_mul(oi_vf_load(score), by);
            if (mask && j + i < s->len)
                x = oi_sdpa_mask_beside(s, p, mask, j + i, r, x);
            oi_vf_store(score, x);
            top[i] = oi_vf_max(oi_vf_below(oi_vf_set((float)(j + i)), seen, x, none), top[i]);
        }
    oi_vf_store(p->top + r, oi_vf_max(top[0], top[1]));
}

/* Scores of n keys from key `at` on, and the largest so far, for `wide` vectors of rows from row r
 * on. */
static inline __attribute__((always_inline)) void oi_sdpa_strip(const oi_sdpa_shape *s,
                                                                const oi_sdpa_part *p,
                                                                const void *restrict mask,
                                                                int64_t at, int64_t n, int64_t r,
                                                                int64_t wide)
{
    oi_sdpa_sixes(p->q + r, p->tile, p->scores + at * p->stride + r, p->stride, s->dh, n, wide,
                  s->is_exact);
    for (int64_t i = r; i < r + wide * OI_VF; i += OI_VF)
        oi_sdpa_top(s, p, mask, at, n, i);
}

/* Two vectors of rows at a time, where all of them see all of a tile. */
static inline __attribute__((always_inline)) void oi_sdpa_many_scores(const oi_sdpa_shape *s,
                                                                      const oi_sdpa_part *p,
                                                                      const void *restrict k,
                                                                      const void *restrict mask)
{
    for (int64_t at = 0, n; at < s->len; at += n) {
        n = s->len - at < OI_SDPA_TILE ? s->len - at : OI_SDPA_TILE;
        oi_sdpa_floats(s, p, k, s->dh, at, n);
        for (int64_t r = 0, wide; r < p->stride; r += wide * OI_VF) {
            int64_t most;
            wide = p->stride - r < 2 * OI_VF || oi_sdpa_least(s, p, r, 2 * OI_VF, &most) < at + n
                       ? 1
                       : 2;
            oi_sdpa_least(s, p, r, wide * OI_VF, &most);
            const int64_t some = most - at < n ? most - at : n;
            if (wide == 2)
                oi_sdpa_strip(s, p, mask, at, some, r, 2);
            else
                oi_sdpa_strip(s, p, mask, at, some, r, 1);
        }
    }
}

/* A key's scores become exponentials below the largest, and the sums grow by them. Rows that do not
 * see it have 0; some processors take hundreds of cycles for a power that is next to nothing. */
static inline __attribute__((always_inline)) void oi_sdpa_powers(const oi_sdpa_part *p, int64_t key,
                                                                 int64_t is_seen_by_all)
{
    const oi_vf at = oi_vf_set((float)key), none = oi_vf_set(0);
    float *scores = p->scores + key * p->stride;
    for (int64_t r = 0; r < p->stride; r += OI_VF) {
        const oi_vf until = oi_vf_load(p->seen + r);
        oi_vf x = oi_vf_sub(oi_vf_load(scores + r), oi_vf_load(p->top + r));
        if (!is_seen_by_all)
            x = oi_vf_below(at, until, x, none);
        x = oi_vf_exp(x);
        if (!is_seen_by_all)
            x = oi_vf_below(at, until, x, none);
        oi_vf_store(scores + r, x);
        oi_vf_store(p->sum + r, oi_vf_add(oi_vf_load(p->sum + r), x));
    }
}

/* Weights but for the division: that is done tile by tile. A sum has a 1 in it, or nothing is seen:
 * then all weights are 0. */
static inline __attribute__((always_inline)) void oi_sdpa_many_weights(const oi_sdpa_shape *s,
                                                                       const oi_sdpa_part *p)
{
    const oi_vf one = oi_vf_set(1), finite = oi_vf_set(-0x1.fffffep127f);
    int64_t most;
    const int64_t least = oi_sdpa_least(s, p, 0, p->rows, &most);
    for (int64_t r = 0; r < p->stride; r += OI_VF)
        oi_vf_store(p->top + r, oi_vf_max(finite, oi_vf_load(p->top + r)));
    for (int64_t j = 0; j < least; j++)
        oi_sdpa_powers(p, j, 1);
    for (int64_t j = least; j < s->len; j++)
        oi_sdpa_powers(p, j, 0);
    for (int64_t r = 0; r < p->stride; r += OI_VF) {
        const oi_vf sum = oi_vf_max(one, oi_vf_load(p->sum + r));
        oi_vf_store(p->sum + r, sum);
        oi_vf_store(p->inverse + r, oi_vf_div(one, sum));
    }
}

static inline __attribute__((always_inline)) void oi_sdpa_many_divide(const oi_sdpa_part *p,
                                                                      float *restrict scores,
                                                                      int64_t n, int64_t is_exact)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t r = 0; r < p->stride; r += OI_VF) {
            const oi_vf x = oi_vf_load(scores + j * p->stride + r);
            const oi_vf by = oi_vf_load(p->sum + r), inverse = oi_vf_load(p->inverse + r);
            oi_vf_store(scores + j * p->stride + r,
                        is_exact ? oi_vf_div_by(x, by, inverse) : oi_vf_mul(x, inverse));
        }
}

static inline __attribute__((always_inline)) void oi_sdpa_many_weighted(const oi_sdpa_shape *s,
                                                                        const oi_sdpa_part *p,
                                                                        const void *restrict v)
{
    for (int64_t at = 0, n; at < s->len; at += n) {
        n = s->len - at < OI_SDPA_TILE ? s->len - at : OI_SDPA_TILE;
        float *scores = p->scores + at * p->stride;
        oi_sdpa_floats(s, p, v, s->dv, at, n);
        oi_sdpa_many_divide(p, scores, n, s->is_exact);
        for (int64_t r = 0; r < p->rows; r += 6) {
            const int64_t rows = p->rows - r < 6 ? p->rows - r : 6;
            int64_t most;
            oi_sdpa_least(s, p, r, rows, &most);
            oi_sdpa_rows(OI_SDPA_BESIDE, p->q, p->tile, s->dv, 4, scores + r, p->stride,
                         p->o + r * s->dv, rows, most - at < n ? most - at : n, s->dh, s->dv,
                         s->scale, (oi_sdpa_next){0}, s->is_exact);
        }
    }
}

/* -- all of it -- */

/* Rows of one batch, whose first row is in q and out; k and v are its caches. */
static inline __attribute__((always_inline)) void oi_sdpa_some(
    const oi_sdpa_shape *s, const oi_sdpa_part *p, int64_t is_many, const float *restrict q,
    const void *restrict k, const void *restrict v, const void *restrict mask, float *restrict out)
{
    memset(p->o, 0, (size_t)(p->rows * s->dv) * sizeof *out);
    if (is_many) {
        for (int64_t r = 0; r < p->stride; r++) {
            const int64_t row = r < p->rows ? r : p->rows - 1;
            const int64_t t = (p->from + row) % s->tq;
            p->seen[r] = (float)oi_sdpa_seen(t, s->tq, s->len, s->is_causal);
            p->top[r] = -INFINITY;
            p->sum[r] = 0;
        }
        oi_sdpa_turn(s, p, q);
        oi_sdpa_many_scores(s, p, k, mask);
        oi_sdpa_many_weights(s, p);
        oi_sdpa_many_weighted(s, p, v);
    } else {
        for (int64_t r = 0; r < p->rows; r++)
            memcpy(p->q + r * s->dh, q + oi_sdpa_place(p->from + r, s->tq, s->q_h, s->q_t) * s->dh,
                   (size_t)s->dh * sizeof *q);
        oi_sdpa_scores(s, p, k);
        oi_sdpa_weights(s, p, mask);
        oi_sdpa_weighted(s, p, v);
    }
    for (int64_t r = 0; r < p->rows; r++)
        memcpy(out + oi_sdpa_place(p->from + r, s->tq, s->q_h, s->q_t) * s->dv, p->o + r * s->dv,
               (size_t)s->dv * sizeof *out);
}

/* q (batches, tq, heads, dh), or (batches, heads, tq, dh) when heads come first, over k and v of
 * the same order with tk keys, of which kv_len count; the rows first ... last - 1, where tq rows,
 * those of a head, count as `unit`. At most `room` rows at a time, whose scores have `space`. The
 * mask's numbers have mask_size bytes and steps from batch to batch, head, query and key. */
static inline __attribute__((always_inline)) void oi_sdpa_masked(
    const float *restrict q, const void *restrict k, const void *restrict v,
    const void *restrict mask, float *restrict out, float *restrict work, int64_t batches,
    int64_t heads, int64_t kv_heads, int64_t tq, int64_t tk, int64_t dh, int64_t dv,
    int64_t heads_first, int64_t size, int64_t room, int64_t space, int64_t is_causal, int64_t unit,
    int64_t is_exact, float scale, int64_t kv_len, int64_t mask_size, int64_t mask_b,
    int64_t mask_h, int64_t mask_t, int64_t mask_k, int64_t first, int64_t last)
{
    const int64_t len = kv_len < 0 ? 0 : kv_len < tk ? kv_len : tk;
    const int64_t each = heads / kv_heads * tq, end = last * tq / unit, is_many = each >= 2 * OI_VF;
    /* not a power of two from row to row: they would meet in one place of the first cache */
    const int64_t stride = ((len + 2 * OI_VF - 1) / (2 * OI_VF) | 1) * (2 * OI_VF);
    const int64_t fits = space / (is_many ? (len + 6) / 6 * 6 : stride);
    const int64_t most =
        (fits < room ? fits : room) / (is_many ? OI_VF : 1) * (is_many ? OI_VF : 1);
    /* whole heads of keys, or equal parts of one; of many rows one head at a time */
    const int64_t parts = (each + most - 1) / most;
    const int64_t part = is_many     ? ((each + parts - 1) / parts + OI_VF - 1) / OI_VF * OI_VF
                         : parts > 1 ? (each + parts - 1) / parts
                                     : most / each * each;
    const oi_sdpa_shape s = {heads / kv_heads,
                             tq,
                             len,
                             dh,
                             dv,
                             size,
                             is_causal,
                             is_exact,
                             heads_first ? tq : 1,
                             heads_first ? 1 : heads,
                             heads_first ? tk : 1,
                             heads_first ? 1 : kv_heads,
                             mask_size,
                             mask_h,
                             mask_t,
                             mask_k,
                             scale};
    oi_sdpa_part p = {.stride = stride, .q = work, .o = work + room * dh};
    p.tile = p.o + room * dv;
    p.scores = p.tile + OI_SDPA_KEYS * (dh > dv ? dh : dv);
    p.seen = p.scores + space;
    p.top = p.seen + room;
    p.sum = p.top + room;
    p.inverse = p.sum + room;
    for (int64_t b = 0; b < batches; b++)
        for (p.from = first * tq / unit; p.from < end; p.from += p.rows) {
            p.rows = end - p.from < part ? end - p.from : part;
            if (is_many) {
                p.rows = oi_sdpa_alike(&s, &p, 0);
                p.stride = (p.rows + OI_VF - 1) / OI_VF * OI_VF;
            }
            oi_sdpa_some(&s, &p, is_many, q + b * tq * heads * dh,
                         (const char *)k + b * tk * kv_heads * dh * size,
                         (const char *)v + b * tk * kv_heads * dv * size,
                         mask ? (const char *)mask + b * mask_b * mask_size : NULL,
                         out + b * tq * heads * dv);
        }
}

static inline __attribute__((always_inline)) void oi_sdpa(
    const float *restrict q, const void *restrict k, const void *restrict v, float *restrict out,
    float *restrict work, int64_t batches, int64_t heads, int64_t kv_heads, int64_t tq, int64_t tk,
    int64_t dh, int64_t dv, int64_t heads_first, int64_t size, int64_t room, int64_t space,
    int64_t is_causal, int64_t unit, int64_t is_exact, float scale, int64_t kv_len, int64_t first,
    int64_t last)
{
    oi_sdpa_masked(q, k, v, NULL, out, work, batches, heads, kv_heads, tq, tk, dh, dv, heads_first,
                   size, room, space, is_causal, unit, is_exact, scale, kv_len, 0, 0, 0, 0, 0,
                   first, last);
}

#endif
