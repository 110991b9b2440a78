/* sdpa_bf16.h: sums of attention with act="bf16" (see sdpa.h), for rows side by side as in
 * sdpa_prefill.h. Factors are rounded when they are laid out, so that products are exact. Sums are
 * made in steps of 32 products: the even ones of a step, the odd ones, both together, then the
 * steps. */
#ifndef OI_RECIPE_SDPA_BF16_H
#define OI_RECIPE_SDPA_BF16_H

#include "body/sdpa_common.h"

/* A number as it takes part. */
static inline __attribute__((always_inline)) oi_vf oi_sdpa_factor(const oi_sdpa_shape *s, oi_vf v)
{
    return s->is_bf16 ? oi_vf_near_bf16(v) : v;
}

/* What a step adds to a sum. */
static inline void oi_sdpa_step_end(float *to, const oi_vf both[2], int64_t is_first)
{
    const oi_vf sum = oi_vf_add(both[0], both[1]);
    oi_vf_store(to, is_first ? sum : oi_vf_add(oi_vf_load(to), sum));
}

/* Scores, not scaled yet, of three keys for `wide` vectors of rows; dh is even. */
static inline __attribute__((always_inline)) void oi_sdpa_step_scores(const float *restrict q,
                                                                      const float *restrict keys,
                                                                      float *restrict scores,
                                                                      int64_t stride, int64_t dh,
                                                                      int64_t wide)
{
    for (int64_t from = 0; from < dh; from += 32) {
        const int64_t end = dh - from < 32 ? dh : from + 32;
        oi_vf s[12];
        for (int64_t i = 0; i < 12; i++)
            s[i] = oi_vf_set(0);
        for (int64_t f = from; f < end; f += 2)
            for (int64_t odd = 0; odd < 2; odd++) {
                oi_vf x[2];
                for (int64_t i = 0; i < wide; i++)
                    x[i] = oi_vf_load(q + (f + odd) * stride + i * OI_VF);
                for (int64_t j = 0; j < 3; j++) {
                    const oi_vf key = oi_vf_set(keys[j * dh + f + odd]);
                    for (int64_t i = 0; i < wide; i++) {
                        oi_vf *sum = s + (j * wide + i) * 2 + odd;
                        *sum = oi_vf_fma(x[i], key, *sum);
                    }
                }
            }
        for (int64_t j = 0; j < 3; j++)
            for (int64_t i = 0; i < wide; i++)
                oi_sdpa_step_end(scores + j * stride + i * OI_VF, s + (j * wide + i) * 2,
                                 from == 0);
    }
}

/* Scores of n keys, up to a multiple of six of them. */
static __attribute__((noinline)) void oi_sdpa_steps(const float *restrict q,
                                                    const float *restrict keys,
                                                    float *restrict scores, int64_t stride,
                                                    int64_t dh, int64_t n, int64_t wide)
{
    for (int64_t j = 0; j < (n + 5) / 6 * 6; j += 3, keys += 3 * dh, scores += 3 * stride)
        if (wide == 2)
            oi_sdpa_step_scores(q, keys, scores, stride, dh, 2);
        else
            oi_sdpa_step_scores(q, keys, scores, stride, dh, 1);
}

/* A step of up to 32 values for up to three rows of o, whose weights lie side by side, `stride`
 * from key to key. */
static inline __attribute__((always_inline)) void oi_sdpa_step_sums(const float *restrict weights,
                                                                    int64_t stride,
                                                                    const float *restrict values,
                                                                    float *restrict o, int64_t rows,
                                                                    int64_t n, int64_t dv)
{
    for (int64_t f = 0; f < dv; f += 2 * OI_VF) {
        oi_vf s[12];
        for (int64_t i = 0; i < 12; i++)
            s[i] = oi_vf_set(0);
        for (int64_t j = 0; j < n; j += 2)
            for (int64_t odd = 0; odd < 2 && j + odd < n; odd++) {
                const float *v = values + (j + odd) * dv + f;
                const oi_vf x[2] = {oi_vf_load(v), oi_vf_load(v + OI_VF)};
                for (int64_t r = 0; r < rows; r++) {
                    const oi_vf w = oi_vf_set(weights[(j + odd) * stride + r]);
                    for (int64_t i = 0; i < 2; i++) {
                        oi_vf *sum = s + (r * 2 + i) * 2 + odd;
                        *sum = oi_vf_fma(w, x[i], *sum);
                    }
                }
            }
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < 2; i++)
                oi_sdpa_step_end(o + r * dv + f + i * OI_VF, s + (r * 2 + i) * 2, 0);
    }
}

/* The same, every number of rows with sums in registers of its own. */
static inline __attribute__((always_inline)) void oi_sdpa_step_rows(const float *restrict weights,
                                                                    int64_t stride,
                                                                    const float *restrict values,
                                                                    float *restrict o, int64_t rows,
                                                                    int64_t n, int64_t dv)
{
    if (rows >= 3)
        oi_sdpa_step_sums(weights, stride, values, o, 3, n, dv);
    else if (rows == 2)
        oi_sdpa_step_sums(weights, stride, values, o, 2, n, dv);
    else
        oi_sdpa_step_sums(weights, stride, values, o, 1, n, dv);
}

#endif
