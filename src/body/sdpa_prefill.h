/* sdpa_prefill.h: attention for many rows per head of keys, as in prefill (see sdpa.h).
 *
 * A vector holds the scores of OI_VF rows for one key. So q is transposed, feature by feature, once
 * for all keys, and nothing between scores and sums crosses lanes: maximum, exponentials, their sum
 * in key order, divisions. */
#ifndef OI_RECIPE_SDPA_PREFILL_H
#define OI_RECIPE_SDPA_PREFILL_H

#include "body/sdpa_bf16.h"

enum { OI_SDPA_TILE = 48 }; /* keys: sixes of them */

/* Query by query becomes feature by feature; the last row stands in for those beyond it. */
static inline void oi_sdpa_transpose(const oi_sdpa_shape *s, const oi_sdpa_part *p,
                                     const float *restrict q)
{
    for (int64_t r = 0; r < p->stride; r += OI_VF)
        for (int64_t f = 0; f < s->dh; f += OI_VF) {
            oi_vf v[OI_VF];
            for (int64_t i = 0; i < OI_VF; i++) {
                const int64_t row = p->from + (r + i < p->rows ? r + i : p->rows - 1);
                v[i] = oi_sdpa_load_some(q, oi_sdpa_place(row, s->tq, s->q_h, s->q_t) * s->dh + f,
                                         4, s->dh - f);
            }
            oi_vf_transpose(v);
            for (int64_t i = 0; i < OI_VF; i++)
                oi_vf_store(p->q + (f + i) * p->stride + r, oi_sdpa_factor(s, v[i]));
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
    const int64_t width = (features + OI_VF - 1) / OI_VF * OI_VF;
    for (int64_t j = 0; j < (n + 5) / 6 * 6; j++) {
        const int64_t from = first + (j < n ? j : n - 1) * step;
        oi_sdpa_ahead((oi_sdpa_next){cache, 0}, (from + OI_SDPA_TILE * step) * s->size,
                      features * s->size);
        for (int64_t f = 0; f < features; f += OI_VF)
            oi_vf_store(
                p->tile + j * width + f,
                oi_sdpa_factor(s, oi_sdpa_load_some(cache, from + f, s->size, features - f)));
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
    const int64_t width = (dh + OI_VF - 1) / OI_VF * OI_VF;
    oi_vf s[12];
    for (int64_t i = 0; i < 12; i++)
        s[i] = oi_vf_set(0);
    for (int64_t f = 0; f < dh; f++) {
        oi_vf x[2];
        for (int64_t i = 0; i < wide; i++)
            x[i] = oi_vf_load(q + f * stride + i * OI_VF);
        for (int64_t j = 0; j < 6; j++) {
            const oi_vf key = oi_vf_set(keys[j * width + f]);
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
    const int64_t width = (dh + OI_VF - 1) / OI_VF * OI_VF;
    for (int64_t j = 0; j < n; j += 6, keys += 6 * width, scores += 6 * stride)
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
 * last key of an odd number is followed by one that is masked. */
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
    float *scores = p->scores + at * p->stride + r;
    if (s->is_bf16)
        oi_sdpa_steps(p->q + r, p->tile, scores, p->stride, s->dh, n, wide);
    else
        oi_sdpa_sixes(p->q + r, p->tile, scores, p->stride, s->dh, n, wide, s->is_exact);
    for (int64_t i = r; i < r + wide * OI_VF; i += OI_VF)
        oi_sdpa_top(s, p, mask, at, n, i);
}

/* Two vectors of rows at a time, where all of them see all of a tile. */
static inline __attribute__((always_inline)) void oi_sdpa_prefill_scores(const oi_sdpa_shape *s,
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
static inline __attribute__((always_inline)) void oi_sdpa_powers(const oi_sdpa_shape *s,
                                                                 const oi_sdpa_part *p, int64_t key,
                                                                 int64_t is_seen_by_all)
{
    const oi_vf at = oi_vf_set((float)key), none = oi_vf_set(0);
    float *scores = p->scores + key * p->stride;
    for (int64_t r = 0; r < p->stride; r += OI_VF) {
        int64_t most;
        oi_sdpa_least(s, p, r, OI_VF, &most);
        if (!is_seen_by_all && key >= most) {
            oi_vf_store(scores + r, none);
            continue;
        }
        const oi_vf until = oi_vf_load(p->seen + r);
        oi_vf x = oi_vf_sub(oi_vf_load(scores + r), oi_vf_load(p->top + r));
        if (!is_seen_by_all)
            x = oi_vf_below(at, until, x, none);
        x = oi_sdpa_factor(s, oi_vf_exp(x));
        if (!is_seen_by_all)
            x = oi_vf_below(at, until, x, none);
        oi_vf_store(scores + r, x);
        oi_vf_store(p->sum + r, oi_vf_add(oi_vf_load(p->sum + r), x));
    }
}

/* Weights but for the division: that is done tile by tile. A sum has a 1 in it, or nothing is seen:
 * then all weights are 0. */
static inline __attribute__((always_inline)) void oi_sdpa_prefill_weights(const oi_sdpa_shape *s,
                                                                          const oi_sdpa_part *p)
{
    const oi_vf one = oi_vf_set(1), finite = oi_vf_set(-0x1.fffffep127f);
    int64_t most;
    const int64_t least = oi_sdpa_least(s, p, 0, p->rows, &most);
    for (int64_t r = 0; r < p->stride; r += OI_VF)
        oi_vf_store(p->top + r, oi_vf_max(finite, oi_vf_load(p->top + r)));
    for (int64_t j = 0; j < least; j++)
        oi_sdpa_powers(s, p, j, 1);
    for (int64_t j = least; j < s->len; j++)
        oi_sdpa_powers(s, p, j, 0);
    for (int64_t r = 0; r < p->stride; r += OI_VF) {
        const oi_vf sum = oi_vf_max(one, oi_vf_load(p->sum + r));
        oi_vf_store(p->sum + r, sum);
        oi_vf_store(p->inverse + r, oi_vf_div(one, sum));
    }
}

static inline __attribute__((always_inline)) void oi_sdpa_prefill_divide(const oi_sdpa_part *p,
                                                                         float *restrict scores,
                                                                         int64_t n,
                                                                         int64_t is_exact)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t r = 0; r < p->stride; r += OI_VF) {
            const oi_vf x = oi_vf_load(scores + j * p->stride + r);
            const oi_vf by = oi_vf_load(p->sum + r), inverse = oi_vf_load(p->inverse + r);
            oi_vf_store(scores + j * p->stride + r,
                        is_exact ? oi_vf_div_by(x, by, inverse) : oi_vf_mul(x, inverse));
        }
}

/* Sums of n values for up to six rows; dv: whole vectors. */
static inline __attribute__((always_inline)) void oi_sdpa_six_sums(
    const float *restrict weights, int64_t stride, const float *restrict values, float *restrict o,
    int64_t rows, int64_t n, int64_t dv, int64_t is_exact)
{
    const oi_sdpa_next none = {0};
    switch (rows) { /* every number of rows has sums in registers of its own */
    case 6: oi_sdpa_sums(weights, 1, stride, values, dv, 4, o, dv, 6, n, dv, none, is_exact); break;
    case 5: oi_sdpa_sums(weights, 1, stride, values, dv, 4, o, dv, 5, n, dv, none, is_exact); break;
    case 4: oi_sdpa_sums(weights, 1, stride, values, dv, 4, o, dv, 4, n, dv, none, is_exact); break;
    case 3: oi_sdpa_sums(weights, 1, stride, values, dv, 4, o, dv, 3, n, dv, none, is_exact); break;
    case 2: oi_sdpa_sums(weights, 1, stride, values, dv, 4, o, dv, 2, n, dv, none, is_exact); break;
    case 1: oi_sdpa_sums(weights, 1, stride, values, dv, 4, o, dv, 1, n, dv, none, is_exact); break;
    default: break;
    }
}

static inline __attribute__((always_inline)) void oi_sdpa_prefill_weighted(const oi_sdpa_shape *s,
                                                                           const oi_sdpa_part *p,
                                                                           const void *restrict v)
{
    for (int64_t at = 0, n; at < s->len; at += n) {
        n = s->len - at < OI_SDPA_TILE ? s->len - at : OI_SDPA_TILE;
        float *scores = p->scores + at * p->stride;
        oi_sdpa_floats(s, p, v, s->dv, at, n);
        oi_sdpa_prefill_divide(p, scores, n, s->is_exact);
        for (int64_t r = 0; r < p->rows; r += 6) {
            const int64_t rows = p->rows - r < 6 ? p->rows - r : 6;
            int64_t most;
            oi_sdpa_least(s, p, r, rows, &most);
            oi_sdpa_six_sums(scores + r, p->stride, p->tile, p->o + r * s->wv, rows,
                             most - at < n ? most - at : n, s->wv, s->is_exact);
        }
    }
}

/* With act="bf16": a step at a time; what divides is left for the end. */
static inline __attribute__((always_inline)) void oi_sdpa_prefill_steps(const oi_sdpa_shape *s,
                                                                        const oi_sdpa_part *p,
                                                                        const void *restrict v)
{
    for (int64_t at = 0; at < s->len; at += 32) {
        const int64_t n = s->len - at < 32 ? s->len - at : 32;
        oi_sdpa_floats(s, p, v, s->dv, at, n);
        for (int64_t r = 0; r < p->rows; r += 3) {
            const int64_t rows = p->rows - r < 3 ? p->rows - r : 3;
            int64_t most;
            oi_sdpa_least(s, p, r, rows, &most);
            oi_sdpa_step_rows(p->scores + at * p->stride + r, p->stride, p->tile, p->o + r * s->dv,
                              rows, most - at < n ? most - at : n, s->dv);
        }
    }
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t f = 0; f < s->dv; f += OI_VF) {
            float *o = p->o + r * s->dv + f;
            oi_vf_store(o, oi_vf_div(oi_vf_load(o), oi_vf_set(p->sum[r])));
        }
}

#endif
