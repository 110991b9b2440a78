/* sdpa.h: attention over keys and values, as they lie in a cache: only what kv_len shows is read.
 *
 * The query heads that share a key head are rows of one problem. Keys come in tiles of
 * OI_SDPA_KEYS, laid out once for all rows: keys as panels of 16 columns for q . k, values as
 * panels for the weighted sum (gemm.h). Per row there is the largest score so far, the sum of
 * exponentials below it, and the weighted sum of values; a tile that raises the largest score
 * scales the rest down. A few rows (decoding) read keys and values as they lie. A row sees the same
 * operations whoever computes it, beside whichever others. */
#ifndef OI_RECIPE_SDPA_H
#define OI_RECIPE_SDPA_H

#include "recipe/gemm.h"
#include "recipe/math.h"

enum { OI_SDPA_KEYS = 64 };

/* OI_VF numbers of a cache in f16 (size 2) or f32. */
static inline oi_vf oi_sdpa_load(const void *restrict p, int64_t at, int64_t size)
{
    if (size == 2)
        return oi_vf_load_f16((const uint16_t *)p + at);
    return oi_vf_load((const float *)p + at);
}

/* n keys, `step` apart, as panels: feature by feature of 2 OI_VF keys. Keys beyond n are 0. */
static inline __attribute__((always_inline)) void oi_sdpa_keys(const void *restrict k, int64_t at,
                                                               int64_t step, int64_t size,
                                                               int64_t n, int64_t features,
                                                               float *restrict panels)
{
    for (int64_t j = 0; j < n; j += OI_VF)
        for (int64_t f = 0; f < features; f += OI_VF) {
            oi_vf v[OI_VF];
            float *to = panels + j / (2 * OI_VF) * (2 * OI_VF) * features + j % (2 * OI_VF);
            for (int64_t i = 0; i < OI_VF; i++)
                v[i] = j + i < n ? oi_sdpa_load(k, at + (j + i) * step + f, size) : oi_vf_set(0);
            oi_vf_transpose(v);
            for (int64_t i = 0; i < OI_VF; i++)
                oi_vf_store(to + (f + i) * 2 * OI_VF, v[i]);
        }
    if ((n + OI_VF - 1) / OI_VF % 2) /* half of the last panel has no key */
        for (int64_t f = 0; f < features; f++)
            oi_vf_store(panels + n / (2 * OI_VF) * (2 * OI_VF) * features + f * 2 * OI_VF + OI_VF,
                        oi_vf_set(0));
}

/* n values as panels of 2 OI_VF features. */
static inline __attribute__((always_inline)) void oi_sdpa_values(const void *restrict v, int64_t at,
                                                                 int64_t step, int64_t size,
                                                                 int64_t n, int64_t features,
                                                                 float *restrict panels)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t f = 0; f < features; f += OI_VF)
            oi_vf_store(panels + f / (2 * OI_VF) * (2 * OI_VF) * n + j * 2 * OI_VF +
                            f % (2 * OI_VF),
                        oi_sdpa_load(v, at + j * step + f, size));
}

/* The scores of a row become exponentials below the largest so far; those from `seen` on do not
 * count. Returns by how much what was summed before shrinks. */
static inline float oi_sdpa_soften(float *restrict scores, int64_t seen, float scale,
                                   float *restrict largest, float *restrict sum)
{
    oi_vf top = oi_vf_set(-INFINITY), total = oi_vf_set(0), by = oi_vf_set(scale);
    float shrink[OI_VF];
    for (int64_t i = seen; i < OI_SDPA_KEYS; i++)
        scores[i] = 0;
    for (int64_t i = 0; i < OI_SDPA_KEYS; i += OI_VF)
        oi_vf_store(scores + i, oi_vf_mul(oi_vf_load(scores + i), by));
    for (int64_t i = seen; i < OI_SDPA_KEYS; i++)
        scores[i] = -INFINITY;
    for (int64_t i = 0; i < OI_SDPA_KEYS; i += OI_VF)
        top = oi_vf_max(oi_vf_load(scores + i), top);
    const float before = *largest, now = oi_vf_largest(top);
    *largest = now > before ? now : before;
    const oi_vf base = oi_vf_set(*largest == -INFINITY ? 0 : *largest);
    for (int64_t i = 0; i < OI_SDPA_KEYS; i += OI_VF) {
        oi_vf e = oi_vf_exp(oi_vf_sub(oi_vf_load(scores + i), base));
        total = oi_vf_add(total, e);
        oi_vf_store(scores + i, e);
    }
    oi_vf_store(shrink, oi_vf_exp(oi_vf_sub(oi_vf_set(before), base)));
    *sum = *sum * shrink[0] + oi_vf_total(total);
    return shrink[0];
}

/* A tile of n keys for up to six rows: q and o are six rows each, seen[r] keys of the tile are
 * visible to row r. state: largest score and sum of every row. */
static inline __attribute__((always_inline)) void oi_sdpa_six(
    const float *restrict q, const float *restrict keys, const float *restrict values,
    float *restrict o, float *restrict state, float *restrict scores, const int64_t *restrict seen,
    int64_t rows, int64_t n, int64_t dh, int64_t dv, float scale)
{
    float shrink[6] = {1, 1, 1, 1, 1, 1};
    oi_vf s[12];
    for (int64_t j = 0; j < n; j += 2 * OI_VF) {
        oi_gemm_six(q, dh, 1, keys + j * dh, dh, s);
        for (int64_t r = 0; r < 6; r++) {
            oi_vf_store(scores + r * OI_SDPA_KEYS + j, s[2 * r]);
            oi_vf_store(scores + r * OI_SDPA_KEYS + j + OI_VF, s[2 * r + 1]);
        }
    }
    for (int64_t r = 0; r < rows; r++)
        shrink[r] = oi_sdpa_soften(scores + r * OI_SDPA_KEYS, seen[r], scale, state + 2 * r,
                                   state + 2 * r + 1);
    for (int64_t f = 0; f < dv; f += 2 * OI_VF) {
        oi_gemm_six(scores, OI_SDPA_KEYS, 1, values + f * n, n, s);
        for (int64_t r = 0; r < rows; r++) {
            float *to = o + r * dv + f;
            oi_vf by = oi_vf_set(shrink[r]);
            oi_vf_store(to, oi_vf_fma(oi_vf_load(to), by, s[2 * r]));
            oi_vf_store(to + OI_VF, oi_vf_fma(oi_vf_load(to + OI_VF), by, s[2 * r + 1]));
        }
    }
}

/* A head's part of a cache is read in steps that processors do not foresee. So what comes a tile
 * later is asked for by the way, in order and for all heads together. */
static inline __attribute__((always_inline)) void oi_sdpa_ahead(const char *p, int64_t size)
{
    for (int64_t i = 0; i < size; i += 64)
        oi_prefetch(p + i);
}

/* A few rows, at most three, straight from the cache: scores of n keys. */
static inline __attribute__((always_inline)) void oi_sdpa_dots(
    const float *restrict q, const void *restrict k, int64_t at, int64_t step, int64_t size,
    float *restrict scores, int64_t rows, int64_t n, int64_t dh, const char *ahead,
    int64_t ahead_each)
{
    for (int64_t j = 0; j < n; j += 4) { /* a last key may stand in for those beyond */
        const int64_t k0 = at + j * step, k1 = j + 1 < n ? k0 + step : k0;
        const int64_t k2 = j + 2 < n ? k1 + step : k1, k3 = j + 3 < n ? k2 + step : k2;
        oi_vf s[12];
        for (int64_t i = 0; i < 12; i++)
            s[i] = oi_vf_set(0);
        oi_sdpa_ahead(ahead + j * ahead_each, 4 * ahead_each);
        for (int64_t f = 0; f < dh; f += OI_VF) {
            const oi_vf a = oi_sdpa_load(k, k0 + f, size), b = oi_sdpa_load(k, k1 + f, size);
            const oi_vf c = oi_sdpa_load(k, k2 + f, size), d = oi_sdpa_load(k, k3 + f, size);
            for (int64_t r = 0; r < rows; r++) {
                const oi_vf x = oi_vf_load(q + r * dh + f);
                s[4 * r] = oi_vf_fma(a, x, s[4 * r]);
                s[4 * r + 1] = oi_vf_fma(b, x, s[4 * r + 1]);
                s[4 * r + 2] = oi_vf_fma(c, x, s[4 * r + 2]);
                s[4 * r + 3] = oi_vf_fma(d, x, s[4 * r + 3]);
            }
        }
        for (int64_t r = 0; r < rows; r++)
            oi_vf_total_four(s + 4 * r, scores + r * OI_SDPA_KEYS + j);
    }
}

/* Their weighted sums of n values: o = o * shrink + sum, OI_VF `wide` features at a time. */
static inline __attribute__((always_inline)) void oi_sdpa_sums(
    const float *restrict weights, const void *restrict v, int64_t at, int64_t step, int64_t size,
    float *restrict o, const float *restrict shrink, int64_t rows, int64_t n, int64_t dv,
    int64_t wide, const char *ahead, int64_t ahead_each)
{
    for (int64_t f = 0; f < dv; f += wide * OI_VF) {
        oi_vf s[12];
        for (int64_t i = 0; i < 12; i++)
            s[i] = oi_vf_set(0);
        for (int64_t j = 0; j < n; j++) {
            oi_sdpa_ahead(ahead + (f * n + j * wide * OI_VF) * ahead_each / dv,
                          ahead_each * wide * OI_VF / dv);
            for (int64_t i = 0; i < wide; i++) {
                const oi_vf x = oi_sdpa_load(v, at + j * step + f + i * OI_VF, size);
                for (int64_t r = 0; r < rows; r++)
                    s[4 * r + i] =
                        oi_vf_fma(oi_vf_set(weights[r * OI_SDPA_KEYS + j]), x, s[4 * r + i]);
            }
        }
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < wide; i++) {
                float *to = o + r * dv + f + i * OI_VF;
                oi_vf_store(to, oi_vf_fma(oi_vf_load(to), oi_vf_set(shrink[r]), s[4 * r + i]));
            }
    }
}

/* A tile of n keys for a few rows, which see seen[r] of them. */
static inline __attribute__((always_inline)) void oi_sdpa_few(
    const float *restrict q, const void *restrict k, const void *restrict v, float *restrict o,
    float *restrict state, float *restrict scores, const int64_t *restrict seen, int64_t rows,
    int64_t k_at, int64_t v_at, int64_t k_step, int64_t v_step, int64_t size, int64_t n, int64_t dh,
    int64_t dv, float scale, const char *ahead_k, const char *ahead_v, int64_t ahead_of)
{
    const int64_t each_k = ahead_of ? k_step * size / ahead_of : 0;
    const int64_t each_v = ahead_of ? v_step * size / ahead_of : 0;
    float shrink[3];
    oi_sdpa_dots(q, k, k_at, k_step, size, scores, rows, n, dh, ahead_k, each_k);
    for (int64_t r = 0; r < rows; r++)
        shrink[r] = oi_sdpa_soften(scores + r * OI_SDPA_KEYS, seen[r], scale, state + 2 * r,
                                   state + 2 * r + 1);
    if (dv % (4 * OI_VF) == 0)
        oi_sdpa_sums(scores, v, v_at, v_step, size, o, shrink, rows, n, dv, 4, ahead_v, each_v);
    else
        oi_sdpa_sums(scores, v, v_at, v_step, size, o, shrink, rows, n, dv, 2, ahead_v, each_v);
}

/* Keys that query t sees. */
static inline int64_t oi_sdpa_seen(int64_t t, int64_t tq, int64_t len, int64_t is_causal)
{
    const int64_t n = is_causal ? t + len - tq + 1 : len;
    return n < 0 ? 0 : n < len ? n : len;
}

/* Rows `from` ... `from + rows - 1` of the queries of a key head, which are tq to a head, over all
 * keys. work: `room` rows of q, o and state, then panels of keys and values, and scores. */
static inline __attribute__((always_inline)) void oi_sdpa_many(
    const void *restrict k, const void *restrict v, float *restrict work, int64_t from,
    int64_t rows, int64_t room, int64_t k_step, int64_t v_step, int64_t size, int64_t tq,
    int64_t len, int64_t dh, int64_t dv, int64_t is_causal, float scale)
{
    float *q = work, *o = q + room * dh, *state = o + room * dv, *keys = state + 2 * room;
    float *values = keys + OI_SDPA_KEYS * dh, *scores = values + OI_SDPA_KEYS * dv;
    for (int64_t at = 0; at < len; at += OI_SDPA_KEYS) {
        const int64_t n = len - at < OI_SDPA_KEYS ? len - at : OI_SDPA_KEYS;
        oi_sdpa_keys(k, at * k_step, k_step, size, n, dh, keys);
        oi_sdpa_values(v, at * v_step, v_step, size, n, dv, values);
        for (int64_t r = 0; r < rows; r += 6) {
            int64_t seen[6], most = 0;
            const int64_t some = rows - r < 6 ? rows - r : 6;
            for (int64_t i = 0; i < some; i++) {
                seen[i] = oi_sdpa_seen((from + r + i) % tq, tq, len, is_causal) - at;
                seen[i] = seen[i] < 0 ? 0 : seen[i] < n ? seen[i] : n;
                most = most > seen[i] ? most : seen[i];
            }
            if (most > 0)
                oi_sdpa_six(q + r * dh, keys, values, o + r * dv, state + 2 * r, scores, seen, some,
                            n, dh, dv, scale);
        }
    }
}

/* A tile of n keys from `at` on for all rows of a key head that are wanted, one to three at a time.
 */
static inline __attribute__((always_inline)) void oi_sdpa_three(
    const float *restrict q, const void *restrict k, const void *restrict v, float *restrict o,
    float *restrict state, float *restrict scores, int64_t rows, int64_t at, int64_t k_step,
    int64_t v_step, int64_t size, int64_t n, int64_t tq, int64_t len, int64_t dh, int64_t dv,
    int64_t is_causal, float scale, const char *ahead_k, const char *ahead_v, int64_t ahead_of)
{
    for (int64_t r = 0; r < rows; r += 3) {
        const float *x = q + r * dh;
        float *y = o + r * dv, *s = state + 2 * r;
        int64_t seen[3];
        for (int64_t i = 0; i < 3; i++) {
            seen[i] = oi_sdpa_seen((r + i) % tq, tq, len, is_causal) - at;
            seen[i] = seen[i] < 0 ? 0 : seen[i] < n ? seen[i] : n;
        }
        if (rows - r == 1)
            oi_sdpa_few(x, k, v, y, s, scores, seen, 1, at * k_step, at * v_step, k_step, v_step,
                        size, n, dh, dv, scale, ahead_k, ahead_v, ahead_of);
        else if (rows - r == 2)
            oi_sdpa_few(x, k, v, y, s, scores, seen, 2, at * k_step, at * v_step, k_step, v_step,
                        size, n, dh, dv, scale, ahead_k, ahead_v, ahead_of);
        else
            oi_sdpa_few(x, k, v, y, s, scores, seen, 3, at * k_step, at * v_step, k_step, v_step,
                        size, n, dh, dv, scale, ahead_k, ahead_v, ahead_of);
    }
}

/* -- all of it -- */

/* Rows of q, tq to a head from head h on, become rows that lie together; nothing is summed yet. */
static inline void oi_sdpa_begin(const float *restrict q, float *restrict rows, float *restrict o,
                                 float *restrict state, int64_t from, int64_t n, int64_t room,
                                 int64_t tq, int64_t step_h, int64_t step_t, int64_t dh, int64_t dv)
{
    for (int64_t r = 0; r < room; r++) {
        const int64_t i = from + (r < n ? r : 0);
        memcpy(rows + r * dh, q + (i / tq * step_h + i % tq * step_t) * dh, (size_t)dh * sizeof *q);
        memset(o + r * dv, 0, (size_t)dv * sizeof *o);
        state[2 * r] = -INFINITY;
        state[2 * r + 1] = 0;
    }
}

/* Their weighted sums, divided by the sums of weights, into the result; 0 where nothing was seen.
 */
static inline void oi_sdpa_end(float *restrict out, const float *restrict o,
                               const float *restrict state, int64_t from, int64_t n, int64_t tq,
                               int64_t step_h, int64_t step_t, int64_t dv)
{
    for (int64_t r = 0; r < n; r++) {
        const int64_t i = from + r;
        float *to = out + (i / tq * step_h + i % tq * step_t) * dv;
        const oi_vf by = oi_vf_set(state[2 * r + 1]);
        for (int64_t f = 0; f < dv; f += OI_VF)
            oi_vf_store(to + f, state[2 * r + 1] == 0 ? oi_vf_set(0)
                                                      : oi_vf_div(oi_vf_load(o + r * dv + f), by));
    }
}

/* q (batches, tq, heads, dh), or (batches, heads, tq, dh) when heads come first, over k and v of
 * the same order with tk keys, of which kv_len count; the heads first / unit ... last / unit - 1.
 * `room` rows are done at a time. */
static inline __attribute__((always_inline)) void oi_sdpa(
    const float *restrict q, const void *restrict k, const void *restrict v, float *restrict out,
    float *restrict work, int64_t batches, int64_t heads, int64_t kv_heads, int64_t tq, int64_t tk,
    int64_t dh, int64_t dv, int64_t heads_first, int64_t size, int64_t room, int64_t is_causal,
    int64_t unit, float scale, int64_t kv_len, int64_t first, int64_t last)
{
    const int64_t group = heads / kv_heads, len = kv_len < 0 ? 0 : kv_len < tk ? kv_len : tk;
    const int64_t q_t = heads_first ? 1 : heads, q_h = heads_first ? tq : 1;
    const int64_t k_t = heads_first ? 1 : kv_heads, k_h = heads_first ? tk : 1;
    float *o = work + room * dh, *state = o + room * dv;
    for (int64_t b = 0; b < batches; b++)
        for (int64_t h = first / unit; h < last / unit;) {
            const int64_t kv = h / group, at = b * tq * heads + h * q_h;
            const int64_t end = (kv + 1) * group < last / unit ? (kv + 1) * group : last / unit;
            const int64_t all = (end - h) * tq, from_k = b * tk * kv_heads + kv * k_h;
            for (int64_t from = 0; from < all; from += room) {
                const int64_t rows = all - from < room ? all - from : room;
                oi_sdpa_begin(q + at * dh, work, o, state, from, rows, room, tq, q_h, q_t, dh, dv);
                oi_sdpa_many((const char *)k + from_k * dh * size,
                             (const char *)v + from_k * dv * size, work, from, rows, room, k_t * dh,
                             k_t * dv, size, tq, len, dh, dv, is_causal, scale);
                oi_sdpa_end(out + at * dv, o, state, from, rows, tq, q_h, q_t, dv);
            }
            h = end;
        }
}

/* The same for a few queries (decoding): less than six rows share a key head. Tile by tile all
 * heads, so that a cache is read in order; `room` is for all rows. */
static inline __attribute__((always_inline)) void oi_sdpa_decode(
    const float *restrict q, const void *restrict k, const void *restrict v, float *restrict out,
    float *restrict work, int64_t batches, int64_t heads, int64_t kv_heads, int64_t tq, int64_t tk,
    int64_t dh, int64_t dv, int64_t heads_first, int64_t size, int64_t room, int64_t is_causal,
    int64_t unit, float scale, int64_t kv_len, int64_t first, int64_t last)
{
    const int64_t group = heads / kv_heads, len = kv_len < 0 ? 0 : kv_len < tk ? kv_len : tk;
    const int64_t q_t = heads_first ? 1 : heads, q_h = heads_first ? tq : 1;
    const int64_t k_t = heads_first ? 1 : kv_heads, k_h = heads_first ? tk : 1;
    const int64_t begin = first / unit, rows = (last / unit - begin) * tq;
    const int64_t parts = (last / unit - 1) / group - begin / group + 1; /* key heads */
    float *o = work + room * dh, *state = o + room * dv, *scores = state + 2 * room;
    for (int64_t b = 0; b < batches; b++) {
        const int64_t of = b * tq * heads + begin * q_h;
        oi_sdpa_begin(q + of * dh, work, o, state, 0, rows, rows, tq, q_h, q_t, dh, dv);
        for (int64_t at = 0; at < len; at += OI_SDPA_KEYS) {
            const int64_t n = len - at < OI_SDPA_KEYS ? len - at : OI_SDPA_KEYS;
            for (int64_t r = 0, done = 0; r < rows;) {
                const int64_t h = begin + r / tq, kv = h / group, left = (kv + 1) * group - h;
                const int64_t some = left * tq < rows - r ? left * tq : rows - r;
                const int64_t from_k = b * tk * kv_heads + kv * k_h;
                const char *keys = (const char *)k + from_k * dh * size;
                const char *values = (const char *)v + from_k * dv * size;
                const int64_t next = (at + OI_SDPA_KEYS) * k_t - (heads_first ? 0 : kv);
                const int64_t part = heads_first ? 0 : done++ * OI_SDPA_KEYS * k_t / parts;
                oi_sdpa_three(work + r * dh, keys, values, o + r * dv, state + 2 * r, scores, some,
                              at, k_t * dh, k_t * dv, size, n, tq, len, dh, dv, is_causal, scale,
                              keys + (next + part) * dh * size, values + (next + part) * dv * size,
                              at + 2 * OI_SDPA_KEYS > len ? 0
                              : heads_first               ? 1
                                                          : parts);
                r += some;
            }
        }
        oi_sdpa_end(out + of * dv, o, state, 0, rows, tq, q_h, q_t, dv);
    }
}

#endif
