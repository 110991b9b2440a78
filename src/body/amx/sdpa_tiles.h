/* sdpa_tiles.h: attention with act="bf16" in tiles, for many rows that share a head of keys (see
 * sdpa.h). A product of tiles sums 32 products just as the op's definition does (ops.json).
 *
 *     keys    of a head, rounded once for all its rows: tiles of 16 keys times 32 features
 *     values  the same, turned: tiles of 16 features times 32 keys
 *     q       tiles of pairs of features, 16 rows side by side
 *
 * So scores come out with a lane for every row, as in sdpa_prefill.h: nothing goes across a vector
 * until the end. Weights take the place of scores, pairs of keys side by side, which is how the
 * second product wants them. While weights of 16 rows are computed, which takes most of the time,
 * the values of the 16 rows before them are summed and the scores of those after them are made. */
#ifndef OI_RECIPE_SDPA_TILES_H
#define OI_RECIPE_SDPA_TILES_H

#include "body/amx/tiles.h"
#include "body/sdpa_common.h"

/* A head of keys and rows of it. */
typedef struct oi_sdpa_held {
    uint16_t *keys, *values, *q;
    float *scores, *sums; /* (3, stride / 16, 16) for 16 rows in each; sums (dv, 16) of 16 rows */
    int64_t stride, from, rows; /* the first row, how many */
} oi_sdpa_held;

/* Numbers of a head's keys, values or scores, of so many features. */
static inline int64_t oi_sdpa_whole(int64_t n)
{
    return (n + 31) / 32 * 32;
}

/* -- into tiles -- */

static inline __m512i oi_sdpa_halves(oi_vf low, oi_vf high)
{
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* Numbers of two keys side by side. */
static inline __m512i oi_sdpa_side(__m512i halves)
{
    static const uint16_t at[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                    8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return _mm512_permutexvar_epi16(_mm512_loadu_si512(at), halves);
}

/* Columns of 16 rows of pairs, one after the other. */
static inline void oi_sdpa_store_transposed(oi_vf pairs[16], uint16_t *restrict to)
{
    oi_vf_transpose(pairs);
    for (int64_t i = 0; i < 16; i++)
        _mm512_storeu_ps(to + 32 * i, pairs[i]);
}

/* Keys of a head, 0 up to a whole step of both keys and features. Later keys are prefetched by
 * the way. */
static inline __attribute__((always_inline)) void oi_sdpa_tile_keys(const oi_sdpa_shape *s,
                                                                    const void *restrict k,
                                                                    int64_t head,
                                                                    uint16_t *restrict to)
{
    const int64_t steps = oi_sdpa_whole(s->dh) / 32;
    for (int64_t j = 0; j < oi_sdpa_whole(s->len); j++) {
        const int64_t from = (head * s->k_h + j * s->k_t) * s->dh;
        oi_sdpa_ahead((oi_sdpa_next){k, 0}, (from + 16 * s->k_t * s->dh) * s->size,
                      s->dh * s->size);
        for (int64_t i = 0; i < steps; i++) {
            oi_vf low = oi_vf_set(0), high = low;
            if (j < s->len)
                low = oi_sdpa_load(k, from + 32 * i, s->size);
            if (j < s->len && 32 * i + 16 < s->dh)
                high = oi_sdpa_load(k, from + 32 * i + 16, s->size);
            _mm512_storeu_si512(to + ((j / 16 * steps + i) * 16 + j % 16) * 32,
                                oi_sdpa_halves(low, high));
        }
    }
}

/* Up to 32 values of a head from value `at` on, 0 for those that are not there. */
static inline __attribute__((always_inline)) void oi_sdpa_tile_some(const oi_sdpa_shape *s,
                                                                    const void *restrict v,
                                                                    int64_t head, int64_t at,
                                                                    int64_t n,
                                                                    uint16_t *restrict to)
{
    const int64_t step = s->k_t * s->dv, first = (head * s->k_h + at * s->k_t) * s->dv;
    for (int64_t f = 0; f < s->dv; f += 16) {
        oi_vf pairs[16];
        for (int64_t i = 0; i < 16; i++) {
            const int64_t from = first + 2 * i * step + f;
            oi_vf low = oi_vf_set(0), high = low;
            oi_sdpa_ahead((oi_sdpa_next){v, 0}, (from + 32 * step) * s->size, 1);
            oi_sdpa_ahead((oi_sdpa_next){v, 0}, (from + 33 * step) * s->size, 1);
            if (2 * i < n)
                low = oi_sdpa_load(v, from, s->size);
            if (2 * i + 1 < n)
                high = oi_sdpa_load(v, from + step, s->size);
            pairs[i] = _mm512_castsi512_ps(oi_sdpa_side(oi_sdpa_halves(low, high)));
        }
        oi_sdpa_store_transposed(pairs, to + 32 * f);
    }
}

static inline __attribute__((always_inline)) void oi_sdpa_tile_values(const oi_sdpa_shape *s,
                                                                      const void *restrict v,
                                                                      int64_t head,
                                                                      uint16_t *restrict to)
{
    const int64_t whole = s->len / 32 * 32;
    for (int64_t at = 0; at < whole; at += 32)
        oi_sdpa_tile_some(s, v, head, at, 32, to + at * s->dv);
    if (whole < s->len)
        oi_sdpa_tile_some(s, v, head, whole, s->len - whole, to + whole * s->dv);
}

/* 16 rows from row r on; the last one stands in for those beyond it. */
static inline __attribute__((always_inline)) void oi_sdpa_tile_rows(const oi_sdpa_shape *s,
                                                                    const oi_sdpa_held *p,
                                                                    int64_t r,
                                                                    const float *restrict q)
{
    for (int64_t f = 0; f < s->dh; f += 32) {
        oi_vf pairs[16];
        for (int64_t i = 0; i < 16; i++) {
            const int64_t row = p->from + (r + i < p->rows ? r + i : p->rows - 1);
            const float *x = q + oi_sdpa_place(row, s->tq, s->q_h, s->q_t) * s->dh + f;
            const oi_vf high = f + 16 < s->dh ? oi_vf_load(x + 16) : oi_vf_set(0);
            pairs[i] = _mm512_castsi512_ps(oi_sdpa_halves(oi_vf_load(x), high));
        }
        oi_sdpa_store_transposed(pairs, p->q + f * 16);
    }
}

/* -- products: one at a time; tiles 0 and 1 have sums, 2 and 3 factors -- */

/* A row of products, to be done one by one: every sum is made of `steps` of them. */
typedef struct oi_sdpa_row {
    const uint16_t *a; /* the first factors, `of_sum` from sum to sum and `of_step` in it */
    const void *b;     /* the second ones: those of every sum, 1 KB from step to step */
    float *to;         /* the sums, one after the other */
    int64_t steps, of_sum, of_step;
    int64_t sums, sum, step; /* how many, and which is next */
} oi_sdpa_row;

/* The next product of scores (which 0) or of weighted values (1), if there is one. */
static inline __attribute__((always_inline)) void oi_sdpa_row_next(oi_sdpa_row *r, int which)
{
    if (r->sum >= r->sums)
        return;
    if (r->step == 0 && which)
        _tile_zero(1);
    else if (r->step == 0)
        _tile_zero(0);
    _tile_loadd(2, r->a + r->sum * r->of_sum + r->step * r->of_step, 64);
    _tile_loadd(3, (const char *)r->b + 1024 * r->step, 64);
    if (which)
        _tile_dpbf16ps(1, 2, 3);
    else
        _tile_dpbf16ps(0, 2, 3);
    if (++r->step < r->steps)
        return;
    if (which)
        _tile_stored(1, r->to + 256 * r->sum, 64);
    else
        _tile_stored(0, r->to + 256 * r->sum, 64);
    r->step = 0;
    r->sum++;
}

/* Scores of n keys, a multiple of 32. */
static inline oi_sdpa_row oi_sdpa_row_scores(const oi_sdpa_shape *s, const oi_sdpa_held *p,
                                             float *scores, int64_t n)
{
    const int64_t steps = oi_sdpa_whole(s->dh) / 32;
    return (oi_sdpa_row){.a = p->keys,
                         .b = p->q,
                         .to = scores,
                         .steps = steps,
                         .of_sum = 512 * steps,
                         .of_step = 512,
                         .sums = n / 16};
}

/* Values of n keys, a multiple of 32, with these weights. */
static inline oi_sdpa_row oi_sdpa_row_values(const oi_sdpa_shape *s, const oi_sdpa_held *p,
                                             const float *weights, int64_t n)
{
    return (oi_sdpa_row){.a = p->values,
                         .b = weights,
                         .to = p->sums,
                         .steps = n / 32,
                         .of_sum = 512,
                         .of_step = 32 * s->dv,
                         .sums = n ? s->dv / 16 : 0};
}

/* -- between the products: 16 rows, a lane each -- */

/* The rows' numbers of keys: how many each sees, all see and any. */
typedef struct oi_sdpa_view {
    oi_vf seen;
    int64_t least, most;
} oi_sdpa_view;

static inline oi_sdpa_view oi_sdpa_look(const oi_sdpa_shape *s, const oi_sdpa_held *p, int64_t r)
{
    float seen[16];
    oi_sdpa_view v = {.least = s->len, .most = 0};
    for (int64_t i = 0; i < 16; i++) {
        const int64_t row = p->from + (r + i < p->rows ? r + i : p->rows - 1);
        const int64_t n = oi_sdpa_seen(row % s->tq, s->tq, s->len, s->is_causal);
        v.least = n < v.least ? n : v.least;
        v.most = n > v.most ? n : v.most;
        seen[i] = (float)n;
    }
    v.seen = oi_vf_load(seen);
    return v;
}

/* A mask's part of the scores of n keys, scaled before. */
static inline void oi_sdpa_tiles_mask(const oi_sdpa_shape *s, const oi_sdpa_held *p, int64_t r,
                                      int64_t n, const void *restrict mask, float *restrict scores)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < 16; i++) {
            const int64_t row = p->from + (r + i < p->rows ? r + i : p->rows - 1);
            const int64_t at = row / s->tq * s->mask_h + row % s->tq * s->mask_t + j * s->mask_k;
            const float x = scores[16 * j + i] * s->scale;
            scores[16 * j + i] = s->mask_size == 4             ? x + ((const float *)mask)[at]
                                 : ((const uint8_t *)mask)[at] ? x
                                                               : -INFINITY;
        }
}

/* The largest scores that rows see: of four keys apart, as a maximum waits for the one before. */
static inline oi_vf oi_sdpa_tiles_top(const oi_sdpa_view *v, const float *restrict scores)
{
    const oi_vf none = oi_vf_set(-INFINITY);
    oi_vf top[4] = {none, none, none, none};
    int64_t j = 0;
    for (; j + 4 <= v->least; j += 4)
        for (int64_t i = 0; i < 4; i++)
            top[i] = oi_vf_max(oi_vf_load(scores + 16 * (j + i)), top[i]);
    for (; j < v->most; j++) {
        const oi_vf x = oi_vf_load(scores + 16 * j);
        top[0] = oi_vf_max(oi_vf_below(oi_vf_set((float)j), v->seen, x, none), top[0]);
    }
    return oi_vf_max(oi_vf_max(top[0], top[1]), oi_vf_max(top[2], top[3]));
}

/* x * by - base for x that is at most that; where `by` is a power of two, the product is exact and
 * may be rounded with the difference. */
static inline __attribute__((always_inline)) oi_vf oi_sdpa_below_top(oi_vf x, float by, oi_vf base)
{
    const int is_power = by == 1 || by == 0.5f || by == 0.25f || by == 0.125f || by == 0.0625f;
    if (is_power)
        return _mm512_fmsub_ps(x, oi_vf_set(by), base);
    return oi_vf_sub(oi_vf_mul(x, oi_vf_set(by)), base);
}

/* Weights of keys j and j + 1 take the place of scores, and their sum grows. */
static inline oi_vf oi_sdpa_tiles_pair(float *scores, int64_t j, const oi_vf e[2], oi_vf sum)
{
    const __m512i pair = oi_sdpa_side(oi_sdpa_halves(e[0], e[1]));
    _mm512_storeu_si512(scores + 8 * j, pair);
    sum = oi_vf_add(sum, _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16)));
    return oi_vf_add(
        sum, _mm512_castsi512_ps(_mm512_and_si512(pair, _mm512_set1_epi32((int32_t)0xffff0000))));
}

/* e^x for x from -86 to 0 with half the steps of oi_vf_exp: x is k ln2 / 32 and a rest r, and
 * 2^(k / 32) comes from a table. Within 2 of its last bits of oi_vf_exp. */
static inline __attribute__((always_inline)) oi_vf oi_sdpa_near_power(oi_vf x)
{
    static const uint32_t powers[32] = {
        /* the bits of 2^(i / 32), less i << 18: k << 18 has i there, too */
        0x3f800000, 0x3f7ecd87, 0x3f7daac3, 0x3f7c980f, 0x3f7b95c2, 0x3f7aa43a, 0x3f79c3d3,
        0x3f78f4f0, 0x3f7837f0, 0x3f778d3a, 0x3f76f532, 0x3f767043, 0x3f75fed7, 0x3f75a15b,
        0x3f75583f, 0x3f7523f6, 0x3f7504f3, 0x3f74fbaf, 0x3f7508a4, 0x3f752c4d, 0x3f75672a,
        0x3f75b9be, 0x3f76248c, 0x3f76a81e, 0x3f7744fd, 0x3f77fbb8, 0x3f78ccdf, 0x3f79b907,
        0x3f7ac0c7, 0x3f7be4ba, 0x3f7d257d, 0x3f7e83b3,
    };
    const oi_vf whole = oi_vf_set(12582912.0f);
    const oi_vf t = oi_vf_fma(x, oi_vf_set(0x1.7154760000000p+5f), whole), k = oi_vf_sub(t, whole);
    const oi_vf r = oi_vf_fma(k, oi_vf_set(0x1.05c6100000000p-34f),
                              oi_vf_fma(k, oi_vf_set(-0x1.62e4300000000p-6f), x));
    const __m512i bits = _mm512_castps_si512(t);
    const __m512i power = _mm512_permutex2var_epi32(_mm512_loadu_si512(powers), bits,
                                                    _mm512_loadu_si512(powers + 16));
    const oi_vf p = _mm512_castsi512_ps(_mm512_add_epi32(power, _mm512_slli_epi32(bits, 18)));
    return oi_vf_fma(oi_vf_mul(r, oi_vf_fma(r, oi_vf_set(0.5f), oi_vf_set(0x1.0000f60000000p+0f))),
                     p, p);
}

/* Whether one of two vectors of floats is so near to the middle between two bf16 that last bits say
 * which is nearer. */
static inline __mmask32 oi_sdpa_is_between(oi_vf a, oi_vf b)
{
    const __m512i low = _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_castps_si512(a),
                                                _mm512_slli_epi32(_mm512_castps_si512(b), 16));
    return _mm512_cmpge_epu16_mask(_mm512_set1_epi16(6),
                                   _mm512_add_epi16(low, _mm512_set1_epi16(-0x7ffd)));
}

/* e^x for x <= 0 of four keys: what oi_vf_exp gives, once it is rounded to bf16. */
static inline __attribute__((always_inline)) void oi_sdpa_four_powers(const oi_vf x[4], oi_vf e[4])
{
    const oi_vf least = oi_vf_min(oi_vf_min(x[0], x[1]), oi_vf_min(x[2], x[3]));
    for (int64_t i = 0; i < 4; i++)
        e[i] = oi_sdpa_near_power(x[i]);
    const __mmask32 unsure = oi_sdpa_is_between(e[0], e[1]) | oi_sdpa_is_between(e[2], e[3]);
    if (__builtin_expect(unsure | _mm512_cmp_ps_mask(least, oi_vf_set(-86), _CMP_LT_OQ), 0))
        for (int64_t i = 0; i < 4; i++)
            e[i] = oi_vf_exp_below(x[i]);
}

/* Weights of four keys from key j on that all rows see. */
static inline __attribute__((always_inline)) oi_vf oi_sdpa_tiles_all(float *scores, int64_t j,
                                                                     float by, oi_vf base,
                                                                     oi_vf sum)
{
    oi_vf x[4], e[4];
    for (int64_t i = 0; i < 4; i++)
        x[i] = oi_sdpa_below_top(oi_vf_load(scores + 16 * (j + i)), by, base);
    oi_sdpa_four_powers(x, e);
    sum = oi_sdpa_tiles_pair(scores, j, e, sum);
    return oi_sdpa_tiles_pair(scores, j + 2, e + 2, sum);
}

/* The same where only some see them: some processors take hundreds of cycles for a power next to
 * nothing. */
static inline oi_vf oi_sdpa_tiles_decode(const oi_sdpa_view *v, float *scores, int64_t j, float by,
                                         oi_vf base, oi_vf sum)
{
    const oi_vf none = oi_vf_set(0);
    for (int64_t i = 0; i < 4; i += 2) {
        oi_vf e[2];
        for (int64_t n = 0; n < 2; n++) {
            const oi_vf at = oi_vf_set((float)(j + i + n));
            const oi_vf x = oi_sdpa_below_top(oi_vf_load(scores + 16 * (j + i + n)), by, base);
            e[n] = oi_vf_exp_below(oi_vf_below(at, v->seen, x, none));
            e[n] = oi_vf_below(at, v->seen, e[n], none);
        }
        sum = oi_sdpa_tiles_pair(scores, j + i, e, sum);
    }
    return sum;
}

/* Weights of four keys from key j on. */
static inline __attribute__((always_inline)) oi_vf oi_sdpa_tiles_four(const oi_sdpa_view *v,
                                                                      float *scores, int64_t j,
                                                                      float by, oi_vf base,
                                                                      oi_vf sum)
{
    if (j + 4 <= v->least)
        return oi_sdpa_tiles_all(scores, j, by, base, sum);
    if (j < v->most)
        return oi_sdpa_tiles_decode(v, scores, j, by, base, sum);
    oi_vf_store(scores + 8 * j, oi_vf_set(0));
    oi_vf_store(scores + 8 * (j + 2), oi_vf_set(0));
    return sum;
}

/* a / b, rounded once: see oi_vf_div_by, which wants no negative numbers. */
static inline oi_vf oi_sdpa_tiles_divide(oi_vf a, oi_vf b, oi_vf inverse)
{
    const oi_vf size = _mm512_abs_ps(a);
    const __mmask16 small = _mm512_cmp_ps_mask(size, _mm512_set1_ps(0x1p-80f), _CMP_LT_OQ);
    if (small & _mm512_cmp_ps_mask(size, _mm512_setzero_ps(), _CMP_NEQ_OQ))
        return _mm512_div_ps(a, b);
    oi_vf v = _mm512_mul_ps(a, inverse);
    v = _mm512_fmadd_ps(_mm512_fnmadd_ps(v, b, a), inverse, v);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(v, b, a), inverse, v);
}

/* Results of 16 rows and features from f on, out of a tile. A sum of weights has a 1 in it, or
 * nothing is seen. */
static inline __attribute__((always_inline)) void oi_sdpa_tiles_put(
    const oi_sdpa_shape *s, const oi_sdpa_held *p, int64_t r, int64_t f, const float *restrict sums,
    oi_vf total, float *restrict out)
{
    const oi_vf none = oi_vf_set(0), one = oi_vf_set(1);
    const __mmask16 hidden = _mm512_cmp_ps_mask(total, none, _CMP_EQ_OQ);
    const oi_vf by = _mm512_mask_blend_ps(hidden, total, one), inverse = oi_vf_div(one, by);
    oi_vf v[16];
    for (int64_t i = 0; i < 16; i++)
        v[i] = oi_sdpa_tiles_divide(_mm512_mask_blend_ps(hidden, oi_vf_load(sums + 16 * i), none),
                                    by, inverse);
    oi_vf_transpose(v);
    for (int64_t i = 0; i < 16 && r + i < p->rows; i++) {
        const int64_t place = oi_sdpa_place(p->from + r + i, s->tq, s->q_h, s->q_t);
        oi_vf_store(out + place * s->dv + f, v[i]);
    }
}

/* -- all of it -- */

/* Weights of a vector of rows, while products for the vectors before and after it take their time:
 * one of each for every four keys. */
static inline __attribute__((always_inline)) oi_vf oi_sdpa_tiles_weights(const oi_sdpa_view *v,
                                                                         float *scores, float by,
                                                                         oi_sdpa_row *before,
                                                                         oi_sdpa_row *after)
{
    const oi_vf finite = oi_vf_set(-0x1.fffffep127f), none = oi_vf_set(0);
    const oi_vf top = oi_sdpa_tiles_top(v, scores);
    const oi_vf base = oi_vf_below(top, finite, none, oi_vf_mul(top, oi_vf_set(by)));
    oi_vf sum = none;
    for (int64_t j = 0; j < oi_sdpa_whole(v->most); j += 8) {
        oi_sdpa_row_next(before, 1);
        sum = oi_sdpa_tiles_four(v, scores, j, by, base, sum);
        oi_sdpa_row_next(after, 0);
        sum = oi_sdpa_tiles_four(v, scores, j + 4, by, base, sum);
    }
    return sum;
}

/* Rows of a head of keys: 16 at a time have their weights computed, while the ones before them have
 * their values summed and the ones after them their scores. */
static inline __attribute__((always_inline)) void oi_sdpa_tiles_some(const oi_sdpa_shape *s,
                                                                     const oi_sdpa_held *p,
                                                                     const float *restrict q,
                                                                     const void *restrict mask,
                                                                     float *restrict out)
{
    oi_sdpa_row before = {0}, after = {0};
    oi_sdpa_view view = {0}, next = {0};
    oi_vf total = oi_vf_set(0), last = total;
    for (int64_t r = -16, i = 0; r < p->rows + 16; r += 16, i = (i + 1) % 3, view = next) {
        float *scores = p->scores + i * p->stride;
        const int64_t is_row = r >= 0 && r < p->rows;
        if (r + 16 < p->rows) {
            next = oi_sdpa_look(s, p, r + 16);
            oi_sdpa_tile_rows(s, p, r + 16, q);
            after = oi_sdpa_row_scores(s, p, p->scores + (i + 1) % 3 * p->stride,
                                       oi_sdpa_whole(next.most));
        }
        if (is_row && mask)
            oi_sdpa_tiles_mask(s, p, r, view.most, mask, scores);
        oi_tiles_settle(scores);
        if (is_row)
            total = oi_sdpa_tiles_weights(&view, scores, mask ? 1 : s->scale, &before, &after);
        while (before.sum < before.sums)
            oi_sdpa_row_next(&before, 1);
        while (after.sum < after.sums)
            oi_sdpa_row_next(&after, 0);
        oi_tiles_settle(p->sums);
        for (int64_t f = 0; r >= 16 && f < s->dv; f += 16)
            oi_sdpa_tiles_put(s, p, r - 16, f, p->sums + 16 * f, last, out);
        before = oi_sdpa_row_values(s, p, scores, is_row ? oi_sdpa_whole(view.most) : 0);
        last = total;
    }
}

/* As oi_sdpa_masked, for a multiple of 16 features of keys and of 32 of values, and a scale above
 * 0. */
static inline __attribute__((always_inline)) void oi_sdpa_tiles_masked(
    const float *restrict q, const void *restrict k, const void *restrict v,
    const void *restrict mask, float *restrict out, uint16_t *restrict halves, float *restrict work,
    int64_t batches, int64_t heads, int64_t kv_heads, int64_t tq, int64_t tk, int64_t dh,
    int64_t dv, int64_t heads_first, int64_t size, int64_t is_causal, float scale, int64_t kv_len,
    int64_t mask_size, int64_t mask_b, int64_t mask_h, int64_t mask_t, int64_t mask_k,
    int64_t first, int64_t last)
{
    const int64_t len = kv_len < 0 ? 0 : kv_len < tk ? kv_len : tk, all = oi_sdpa_whole(tk);
    const int64_t each = heads / kv_heads * tq;
    const oi_sdpa_shape s = {heads / kv_heads,
                             tq,
                             len,
                             dh,
                             dv,
                             dh,
                             dv,
                             size,
                             is_causal,
                             1,
                             1,
                             heads_first ? tq : 1,
                             heads_first ? 1 : heads,
                             heads_first ? tk : 1,
                             heads_first ? 1 : kv_heads,
                             mask_size,
                             mask_h,
                             mask_t,
                             mask_k,
                             scale};
    oi_sdpa_held p = {.q = halves,
                      .keys = halves + 16 * oi_sdpa_whole(dh),
                      .sums = work,
                      .scores = work + 16 * dv,
                      .stride = 16 * all};
    p.values = p.keys + all * oi_sdpa_whole(dh);
    oi_tiles_begin(4);
    for (int64_t b = 0; b < batches; b++)
        for (p.from = first; p.from < last; p.from += p.rows) {
            const int64_t head = p.from / each, left = each - p.from % each;
            const int64_t rows = left < last - p.from ? left : last - p.from;
            if (p.from == first || p.from % each == 0) {
                oi_sdpa_tile_keys(&s, (const char *)k + b * tk * kv_heads * dh * size, head,
                                  p.keys);
                oi_sdpa_tile_values(&s, (const char *)v + b * tk * kv_heads * dv * size, head,
                                    p.values);
            }
            p.rows = rows;
            oi_sdpa_tiles_some(&s, &p, q + b * tq * heads * dh,
                               mask ? (const char *)mask + b * mask_b * mask_size : NULL,
                               out + b * tq * heads * dv);
        }
    _tile_release();
}

static inline __attribute__((always_inline)) void oi_sdpa_tiles(
    const float *restrict q, const void *restrict k, const void *restrict v, float *restrict out,
    uint16_t *restrict halves, float *restrict work, int64_t batches, int64_t heads,
    int64_t kv_heads, int64_t tq, int64_t tk, int64_t dh, int64_t dv, int64_t heads_first,
    int64_t size, int64_t is_causal, float scale, int64_t kv_len, int64_t first, int64_t last)
{
    oi_sdpa_tiles_masked(q, k, v, NULL, out, halves, work, batches, heads, kv_heads, tq, tk, dh, dv,
                         heads_first, size, is_causal, scale, kv_len, 0, 0, 0, 0, 0, first, last);
}

#endif
