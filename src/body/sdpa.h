/* sdpa.h: attention over keys and values in their cache layout; only the first kv_len are read.
 *
 * A row is one query of one head. Some rows at a time have all their scores in scratch:
 *
 *     scores   q . k * scale (+ mask), tile by tile of keys; every sum runs along the features in
 *              order
 *     weights  e^(score - largest) / their sum, which runs along the keys in order
 *     sums     weights times values, tile by tile; a vector holds OI_VF features of the result and
 *              every sum runs along the keys in order
 *
 * With few rows per head of keys, a vector holds scores of one row and OI_VF keys (sdpa_decode.h);
 * with many, scores of OI_VF rows and one key (sdpa_prefill.h).
 *
 * With is_exact every step is rounded as in the op's definition, products and sums separately: the
 * result has the simulator's bits. Without it, a product and its sum are rounded once (FMA), and
 * weights of few rows are summed in vector lanes. Either way a row does not depend on the thread or
 * on the rows beside it. Masked keys are skipped: they would add 0.
 *
 * With act="bf16" the prefill layout is always used, and sums are made in steps (sdpa_bf16.h). */
#ifndef OI_RECIPE_SDPA_H
#define OI_RECIPE_SDPA_H

#include "body/sdpa_decode.h"
#include "body/sdpa_prefill.h"

/* Rows of one batch, whose first row is in q and out; k and v are its caches. */
static inline __attribute__((always_inline)) void oi_sdpa_some(
    const oi_sdpa_shape *s, const oi_sdpa_part *p, int64_t is_many, const float *restrict q,
    const void *restrict k, const void *restrict v, const void *restrict mask, float *restrict out)
{
    memset(p->o, 0, (size_t)(p->rows * s->wv) * sizeof *out);
    if (is_many) {
        for (int64_t r = 0; r < p->stride; r++) {
            const int64_t row = r < p->rows ? r : p->rows - 1;
            const int64_t t = (p->from + row) % s->tq;
            p->seen[r] = (float)oi_sdpa_seen(t, s->tq, s->len, s->is_causal);
            p->top[r] = -INFINITY;
            p->sum[r] = 0;
        }
        oi_sdpa_transpose(s, p, q);
        oi_sdpa_prefill_scores(s, p, k, mask);
        oi_sdpa_prefill_weights(s, p);
        if (s->is_bf16)
            oi_sdpa_prefill_steps(s, p, v);
        else
            oi_sdpa_prefill_weighted(s, p, v);
    } else {
        for (int64_t r = 0; r < p->rows; r++)
            memcpy(p->q + r * s->dh, q + oi_sdpa_place(p->from + r, s->tq, s->q_h, s->q_t) * s->dh,
                   (size_t)s->dh * sizeof *q);
        oi_sdpa_scores(s, p, k);
        oi_sdpa_weights(s, p, mask);
        oi_sdpa_weighted(s, p, v);
    }
    for (int64_t r = 0; r < p->rows; r++)
        memcpy(out + oi_sdpa_place(p->from + r, s->tq, s->q_h, s->q_t) * s->dv, p->o + r * s->wv,
               (size_t)s->dv * sizeof *out);
}

/* q (batches, tq, heads, dh), or (batches, heads, tq, dh) when heads come first, over k and v of
 * the same order with tk keys, of which kv_len count; the rows first ... last - 1, where tq rows,
 * those of a head, count as `unit`. At most `room` rows at a time, whose scores have `space`. The
 * mask's numbers have mask_size bytes and steps from batch to batch, head, query and key. */
static inline __attribute__((always_inline)) void oi_sdpa_all(
    const float *restrict q, const void *restrict k, const void *restrict v,
    const void *restrict mask, float *restrict out, float *restrict work, int64_t batches,
    int64_t heads, int64_t kv_heads, int64_t tq, int64_t tk, int64_t dh, int64_t dv,
    int64_t heads_first, int64_t size, int64_t room, int64_t space, int64_t is_causal, int64_t unit,
    int64_t is_exact, int64_t is_bf16, float scale, int64_t kv_len, int64_t mask_size,
    int64_t mask_b, int64_t mask_h, int64_t mask_t, int64_t mask_k, int64_t first, int64_t last)
{
    const int64_t len = kv_len < 0 ? 0 : kv_len < tk ? kv_len : tk;
    const int64_t each = heads / kv_heads * tq, end = last * tq / unit;
    const int64_t is_many = is_bf16 || each >= 2 * OI_VF;
    /* not a power of two from row to row: rows would compete for one set of the first cache */
    const int64_t stride = ((len + 2 * OI_VF - 1) / (2 * OI_VF) | 1) * (2 * OI_VF);
    const int64_t fits = space / (is_many ? (len + 6) / 6 * 6 : stride);
    const int64_t most =
        (fits < room ? fits : room) / (is_many ? OI_VF : 1) * (is_many ? OI_VF : 1);
    /* whole heads of keys, or equal parts of one; of many rows one head at a time */
    const int64_t parts = (each + most - 1) / most;
    const int64_t part = is_many     ? ((each + parts - 1) / parts + OI_VF - 1) / OI_VF * OI_VF
                         : parts > 1 ? (each + parts - 1) / parts
                                     : most / each * each;
    const int64_t wh = (dh + OI_VF - 1) / OI_VF * OI_VF, wv = (dv + OI_VF - 1) / OI_VF * OI_VF;
    const oi_sdpa_shape s = {heads / kv_heads,
                             tq,
                             len,
                             dh,
                             dv,
                             wh,
                             wv,
                             size,
                             is_causal,
                             is_exact,
                             is_bf16,
                             heads_first ? tq : 1,
                             heads_first ? 1 : heads,
                             heads_first ? tk : 1,
                             heads_first ? 1 : kv_heads,
                             mask_size,
                             mask_h,
                             mask_t,
                             mask_k,
                             scale};
    oi_sdpa_part p = {.stride = stride, .q = work, .o = work + room * wh};
    p.tile = p.o + room * wv;
    p.scores = p.tile + OI_SDPA_KEYS * (wh > wv ? wh : wv);
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

static inline __attribute__((always_inline)) void oi_sdpa_masked(
    const float *restrict q, const void *restrict k, const void *restrict v,
    const void *restrict mask, float *restrict out, float *restrict work, int64_t batches,
    int64_t heads, int64_t kv_heads, int64_t tq, int64_t tk, int64_t dh, int64_t dv,
    int64_t heads_first, int64_t size, int64_t room, int64_t space, int64_t is_causal, int64_t unit,
    int64_t is_exact, float scale, int64_t kv_len, int64_t mask_size, int64_t mask_b,
    int64_t mask_h, int64_t mask_t, int64_t mask_k, int64_t first, int64_t last)
{
    oi_sdpa_all(q, k, v, mask, out, work, batches, heads, kv_heads, tq, tk, dh, dv, heads_first,
                size, room, space, is_causal, unit, is_exact, 0, scale, kv_len, mask_size, mask_b,
                mask_h, mask_t, mask_k, first, last);
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

/* The same with act="bf16". */
static inline __attribute__((always_inline)) void oi_sdpa_bf16_masked(
    const float *restrict q, const void *restrict k, const void *restrict v,
    const void *restrict mask, float *restrict out, float *restrict work, int64_t batches,
    int64_t heads, int64_t kv_heads, int64_t tq, int64_t tk, int64_t dh, int64_t dv,
    int64_t heads_first, int64_t size, int64_t room, int64_t space, int64_t is_causal, int64_t unit,
    float scale, int64_t kv_len, int64_t mask_size, int64_t mask_b, int64_t mask_h, int64_t mask_t,
    int64_t mask_k, int64_t first, int64_t last)
{
    oi_sdpa_all(q, k, v, mask, out, work, batches, heads, kv_heads, tq, tk, dh, dv, heads_first,
                size, room, space, is_causal, unit, 1, 1, scale, kv_len, mask_size, mask_b, mask_h,
                mask_t, mask_k, first, last);
}

static inline __attribute__((always_inline)) void oi_sdpa_bf16(
    const float *restrict q, const void *restrict k, const void *restrict v, float *restrict out,
    float *restrict work, int64_t batches, int64_t heads, int64_t kv_heads, int64_t tq, int64_t tk,
    int64_t dh, int64_t dv, int64_t heads_first, int64_t size, int64_t room, int64_t space,
    int64_t is_causal, int64_t unit, float scale, int64_t kv_len, int64_t first, int64_t last)
{
    oi_sdpa_bf16_masked(q, k, v, NULL, out, work, batches, heads, kv_heads, tq, tk, dh, dv,
                        heads_first, size, room, space, is_causal, unit, scale, kv_len, 0, 0, 0, 0,
                        0, first, last);
}

#endif
