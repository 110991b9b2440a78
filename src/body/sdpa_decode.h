/* sdpa_decode.h: attention for few rows per head of keys, as in a decode step (see sdpa.h).
 *
 * A vector holds the scores of one row for OI_VF keys. For that, a tile of keys is transposed,
 * feature by feature, once for all rows that share its head. */
#ifndef OI_RECIPE_SDPA_DECODE_H
#define OI_RECIPE_SDPA_DECODE_H

#include "body/sdpa_common.h"

/* -- scores -- */

/* OI_VF features, of which `left` exist, of as many keys: v[i] has feature i. The last of n keys
 * stands in for those beyond; where there is none, the one before them. */
static inline __attribute__((always_inline)) void oi_sdpa_columns(const void *restrict k,
                                                                  int64_t at, int64_t step,
                                                                  int64_t size, int64_t n,
                                                                  int64_t left, oi_vf v[OI_VF])
{
    if (size == 2 && left >= OI_VF) {
        const uint16_t *halves[OI_VF];
        for (int64_t i = 0; i < OI_VF; i++)
            halves[i] = (const uint16_t *)k + at + (i < n ? i : n - 1) * step;
        oi_vf_columns_f16(halves, v);
        return;
    }
    for (int64_t i = 0; i < OI_VF; i++)
        v[i] = oi_sdpa_load_some(k, at + (i < n ? i : n - 1) * step, size, left);
    oi_vf_transpose(v);
}

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
            oi_sdpa_columns(k, at + half * step + f, step, size, n - half, features - f, v);
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
    const int64_t width = (features + OI_VF - 1) / OI_VF * OI_VF;
    int64_t j = 0;
    for (; j + 2 * OI_VF <= n; j += 2 * OI_VF, next.at += 2 * OI_VF * next.each)
        oi_sdpa_panel(k, at + j * step, step, size, 2 * OI_VF, features, panels + j * width, next);
    if (j < n)
        oi_sdpa_panel(k, at + j * step, step, size, n - j, features, panels + j * width, next);
}

/* Scores of `wide` panels of keys for up to six rows of q; wide * rows is at most 6. */
static inline __attribute__((always_inline)) void oi_sdpa_dots(
    const float *restrict q, const float *restrict panels, float *restrict scores, int64_t stride,
    int64_t rows, int64_t wide, int64_t dh, oi_vf by, int64_t is_exact)
{
    const int64_t width = (dh + OI_VF - 1) / OI_VF * OI_VF;
    oi_vf s[12];
    for (int64_t i = 0; i < 12; i++)
        s[i] = oi_vf_set(0);
    for (int64_t f = 0; f < dh; f++)
        for (int64_t p = 0; p < wide; p++) {
            const float *k = panels + (p * width + f) * 2 * OI_VF;
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
    const int64_t width = (dh + OI_VF - 1) / OI_VF * OI_VF;
    int64_t j = 0;
    for (; rows <= 3 && j + 2 * OI_VF < n; j += 4 * OI_VF)
        oi_sdpa_dots(q, panels + j * width, scores + j, stride, rows, 2, dh, by, is_exact);
    for (; j < n; j += 2 * OI_VF)
        oi_sdpa_dots(q, panels + j * width, scores + j, stride, rows, 1, dh, by, is_exact);
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

/* -- rows -- */

/* What to do with up to six rows. */
enum { OI_SDPA_SCORES, OI_SDPA_DIVIDE, OI_SDPA_SUMS };

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
        oi_sdpa_sums(scores, stride, 1, tile, step, size, o, (dv + OI_VF - 1) / OI_VF * OI_VF, rows,
                     n, dv, next, is_exact);
}

/* The same for any number of rows. */
static inline __attribute__((always_inline)) void oi_sdpa_rows(
    int what, const float *restrict q, const void *restrict tile, int64_t step, int64_t size,
    float *restrict scores, int64_t stride, float *restrict o, int64_t rows, int64_t n, int64_t dh,
    int64_t dv, float scale, oi_sdpa_next next, int64_t is_exact)
{
    const int64_t width = (dv + OI_VF - 1) / OI_VF * OI_VF;
    for (; rows >= 6; rows -= 6, q += 6 * dh, scores += 6 * stride, o += 6 * width)
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
                             s->size, p->scores + i * p->stride + at, p->stride, p->o + i * s->wv,
                             rows, n, s->dh, s->dv, s->scale, next, s->is_exact);
            }
        }
}

#endif
