/* gemm.h: products of matrices, out = a . b (+ bias).
 *
 * b lies in panels of 2 OI_VF columns, a panel row by row; columns beyond the last are 0. A weight
 * is packed so when the program is made, any other b by the way, OI_GEMM_WIDTH columns and
 * OI_GEMM_DEPTH rows at a time. Such a part of a panel stays in the first cache while one six of
 * rows of a after the other meets it, with twelve vectors of sums in registers. Sums run along k in
 * order, part by part, whoever computes them. */
#ifndef OI_RECIPE_GEMM_H
#define OI_RECIPE_GEMM_H

#include "kernel/scalar.h"
#if defined(__AVX2__)
#include "recipe/avx2/vec.h"
#elif defined(__ARM_NEON)
#include "recipe/neon/vec.h"
#endif

enum { OI_GEMM_DEPTH = 256, OI_GEMM_WIDTH = 256 };

/* Six rows of a, `a_row` apart and `a_k` along k, times a panel; row r is s[2 r] and s[2 r + 1]. */
static inline __attribute__((always_inline)) void oi_gemm_six(const float *restrict a,
                                                              int64_t a_row, int64_t a_k,
                                                              const float *restrict b, int64_t k,
                                                              oi_vf sums[12])
{
    oi_vf s[12];
    for (int64_t i = 0; i < 12; i++)
        s[i] = oi_vf_set(0);
    for (int64_t i = 0; i < k; i++) {
        oi_vf left = oi_vf_load(b + 2 * OI_VF * i), right = oi_vf_load(b + 2 * OI_VF * i + OI_VF);
        oi_vf v;
        v = oi_vf_set(a[i * a_k]);
        s[0] = oi_vf_fma(v, left, s[0]);
        s[1] = oi_vf_fma(v, right, s[1]);
        v = oi_vf_set(a[a_row + i * a_k]);
        s[2] = oi_vf_fma(v, left, s[2]);
        s[3] = oi_vf_fma(v, right, s[3]);
        v = oi_vf_set(a[2 * a_row + i * a_k]);
        s[4] = oi_vf_fma(v, left, s[4]);
        s[5] = oi_vf_fma(v, right, s[5]);
        v = oi_vf_set(a[3 * a_row + i * a_k]);
        s[6] = oi_vf_fma(v, left, s[6]);
        s[7] = oi_vf_fma(v, right, s[7]);
        v = oi_vf_set(a[4 * a_row + i * a_k]);
        s[8] = oi_vf_fma(v, left, s[8]);
        s[9] = oi_vf_fma(v, right, s[9]);
        v = oi_vf_set(a[5 * a_row + i * a_k]);
        s[10] = oi_vf_fma(v, left, s[10]);
        s[11] = oi_vf_fma(v, right, s[11]);
    }
    for (int64_t i = 0; i < 12; i++)
        sums[i] = s[i];
}

/* One row of a times a panel: four sums at a time, as each waits for the one before it. */
static inline __attribute__((always_inline)) void oi_gemm_one(const float *restrict a, int64_t a_k,
                                                              const float *restrict b, int64_t k,
                                                              oi_vf sums[2])
{
    oi_vf s[8];
    int64_t i = 0;
    for (int64_t j = 0; j < 8; j++)
        s[j] = oi_vf_set(0);
    for (; i + 4 <= k; i += 4, b += 8 * OI_VF) {
        oi_vf v0 = oi_vf_set(a[i * a_k]), v1 = oi_vf_set(a[(i + 1) * a_k]);
        oi_vf v2 = oi_vf_set(a[(i + 2) * a_k]), v3 = oi_vf_set(a[(i + 3) * a_k]);
        oi_prefetch(b + 512);
        oi_prefetch(b + 512 + 2 * OI_VF);
        oi_prefetch(b + 512 + 4 * OI_VF);
        oi_prefetch(b + 512 + 6 * OI_VF);
        s[0] = oi_vf_fma(v0, oi_vf_load(b), s[0]);
        s[1] = oi_vf_fma(v0, oi_vf_load(b + OI_VF), s[1]);
        s[2] = oi_vf_fma(v1, oi_vf_load(b + 2 * OI_VF), s[2]);
        s[3] = oi_vf_fma(v1, oi_vf_load(b + 3 * OI_VF), s[3]);
        s[4] = oi_vf_fma(v2, oi_vf_load(b + 4 * OI_VF), s[4]);
        s[5] = oi_vf_fma(v2, oi_vf_load(b + 5 * OI_VF), s[5]);
        s[6] = oi_vf_fma(v3, oi_vf_load(b + 6 * OI_VF), s[6]);
        s[7] = oi_vf_fma(v3, oi_vf_load(b + 7 * OI_VF), s[7]);
    }
    for (; i < k; i++, b += 2 * OI_VF) {
        oi_vf v = oi_vf_set(a[i * a_k]);
        s[0] = oi_vf_fma(v, oi_vf_load(b), s[0]);
        s[1] = oi_vf_fma(v, oi_vf_load(b + OI_VF), s[1]);
    }
    sums[0] = oi_vf_add(oi_vf_add(s[0], s[2]), oi_vf_add(s[4], s[6]));
    sums[1] = oi_vf_add(oi_vf_add(s[1], s[3]), oi_vf_add(s[5], s[7]));
}

/* A row of results: added to those of the parts of k before, or to the bias, or stored. */
static inline void oi_gemm_put(float *restrict out, oi_vf left, oi_vf right,
                               const float *restrict bias, int64_t is_more, int64_t columns)
{
    float row[2 * OI_VF];
    float *to = columns < 2 * OI_VF ? row : out;
    const float *before = is_more ? out : bias;
    if (columns < 2 * OI_VF && before) {
        for (int64_t i = 0; i < columns; i++)
            row[i] = before[i];
        before = row;
    }
    if (before) {
        left = oi_vf_add(oi_vf_load(before), left);
        right = oi_vf_add(oi_vf_load(before + OI_VF), right);
    }
    oi_vf_store(to, left);
    oi_vf_store(to + OI_VF, right);
    for (int64_t i = 0; columns < 2 * OI_VF && i < columns; i++)
        out[i] = row[i];
}

/* Some columns of some rows of b into panels. */
static inline void oi_gemm_pack(const float *restrict b, int64_t b_k, int64_t b_n, int64_t k,
                                int64_t columns, float *restrict panels)
{
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < columns; j += 2 * OI_VF) {
            const float *from = b + i * b_k + j * b_n;
            float *to = panels + j * k + 2 * OI_VF * i;
            if (b_n == 1 && j + 2 * OI_VF <= columns) {
                oi_vf_store(to, oi_vf_load(from));
                oi_vf_store(to + OI_VF, oi_vf_load(from + OI_VF));
                continue;
            }
            for (int64_t c = 0; c < 2 * OI_VF; c++)
                to[c] = j + c < columns ? from[c * b_n] : 0;
        }
}

/* Rows 0 ... rows - 1 of a and a part of k times a panel, six at a time; the last six may begin
 * with rows that are done already. */
static inline __attribute__((always_inline)) void oi_gemm_panel(
    const float *restrict a, int64_t a_row, int64_t a_k, const float *restrict b,
    const float *restrict bias, float *restrict out, int64_t rows, int64_t n, int64_t k,
    int64_t is_more, int64_t columns)
{
    for (int64_t i = 0; i < rows; i += 6) {
        const int64_t at = i + 6 <= rows ? i : rows - 6;
        oi_vf s[12];
        for (int64_t r = 0; r < 6; r++)
            oi_prefetch(out + (at + r) * n);
        oi_gemm_six(a + at * a_row, a_row, a_k, b, k, s);
        if (at == i && columns == 2 * OI_VF) {
            for (int64_t r = 0; r < 6; r++)
                oi_gemm_put(out + (i + r) * n, s[2 * r], s[2 * r + 1], bias, is_more, 2 * OI_VF);
            continue;
        }
        for (int64_t r = i - at; r < 6; r++)
            oi_gemm_put(out + (at + r) * n, s[2 * r], s[2 * r + 1], bias, is_more, columns);
    }
}

/* A few rows of a times packed b, one after the other. */
static inline __attribute__((always_inline)) void oi_gemm_few(
    const float *restrict a, const float *restrict b, const float *restrict bias,
    float *restrict out, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_k,
    int64_t has_bias, int64_t first, int64_t last)
{
    for (int64_t j = first; j < last; j += 2 * OI_VF)
        for (int64_t i = 0; i < m; i++) {
            oi_vf s[2];
            oi_gemm_one(a + i * a_row, a_k, b + j * k, k, s);
            oi_gemm_put(out + i * n + j, s[0], s[1], has_bias ? bias + j : NULL, 0,
                        n - j < 2 * OI_VF ? n - j : 2 * OI_VF);
        }
}

/* out (m, n), its columns first ... last - 1. a is (m, k) with the given steps, m at least 6; b is
 * packed, or has the given steps along k and n and is packed into `panels`. `rows` rows of a are
 * met at a time. */
static inline __attribute__((always_inline)) void oi_gemm(
    const float *restrict a, const float *restrict b, const float *restrict bias,
    float *restrict out, float *restrict panels, int64_t m, int64_t n, int64_t k, int64_t a_row,
    int64_t a_k, int64_t b_k, int64_t b_n, int64_t is_packed, int64_t has_bias, int64_t rows,
    int64_t first, int64_t last)
{
    for (int64_t j0 = first; j0 < last; j0 += OI_GEMM_WIDTH)
        for (int64_t i0 = 0; i0 < k; i0 += OI_GEMM_DEPTH) {
            const int64_t j1 = last - j0 < OI_GEMM_WIDTH ? last : j0 + OI_GEMM_WIDTH;
            const int64_t depth = k - i0 < OI_GEMM_DEPTH ? k - i0 : OI_GEMM_DEPTH;
            if (!is_packed)
                oi_gemm_pack(b + i0 * b_k + j0 * b_n, b_k, b_n, depth, j1 - j0, panels);
            for (int64_t r = 0; r < m; r += rows) {
                /* a rest of less than six rows goes along */
                const int64_t some = m - r < rows + 6 ? m - r : rows;
                for (int64_t j = j0; j < j1; j += 2 * OI_VF)
                    oi_gemm_panel(a + r * a_row + i0 * a_k, a_row, a_k,
                                  is_packed ? b + j * k + 2 * OI_VF * i0
                                            : panels + (j - j0) * depth,
                                  has_bias ? bias + j : NULL, out + r * n + j, some, n, depth,
                                  i0 > 0, j1 - j < 2 * OI_VF ? j1 - j : 2 * OI_VF);
                if (some > rows)
                    break;
            }
        }
}

/* out (m, n) = a . b for a packed b, the columns first ... last - 1. */
static inline __attribute__((always_inline)) void oi_gemm_weights(
    const float *restrict a, const void *restrict packed, float *restrict out, int64_t m, int64_t n,
    int64_t k, int64_t a_row, int64_t a_k, int64_t rows, int64_t first, int64_t last)
{
    const float *b = packed;
    if (m < 6)
        oi_gemm_few(a, b, NULL, out, m, n, k, a_row, a_k, 0, first, last);
    else
        oi_gemm(a, b, NULL, out, NULL, m, n, k, a_row, a_k, 0, 0, 1, 0, rows, first, last);
}

/* The same, plus a bias (n). */
static inline __attribute__((always_inline)) void oi_gemm_weights_bias(
    const float *restrict a, const void *restrict packed, const float *restrict bias,
    float *restrict out, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_k, int64_t rows,
    int64_t first, int64_t last)
{
    const float *b = packed;
    if (m < 6)
        oi_gemm_few(a, b, bias, out, m, n, k, a_row, a_k, 1, first, last);
    else
        oi_gemm(a, b, bias, out, NULL, m, n, k, a_row, a_k, 0, 0, 1, 1, rows, first, last);
}

/* The same for a b that is no weight. */
static inline __attribute__((always_inline)) void oi_gemm_two(
    const float *restrict a, const float *restrict b, float *restrict out, float *restrict panels,
    int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_k, int64_t b_k, int64_t b_n,
    int64_t rows, int64_t first, int64_t last)
{
    oi_gemm(a, b, NULL, out, panels, m, n, k, a_row, a_k, b_k, b_n, 0, 0, rows, first, last);
}

/* A stack of such products: `each` of them at every position from first to last - 1. */
static inline __attribute__((always_inline)) void oi_gemm_stack(
    const float *restrict a, const float *restrict b, float *restrict out, float *restrict panels,
    int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_k, int64_t b_k, int64_t b_n,
    int64_t rows, int64_t a_step, int64_t b_step, int64_t each, int64_t first, int64_t last)
{
    for (int64_t i = first * each; i < last * each; i++)
        oi_gemm(a + i * a_step, b + i * b_step, NULL, out + i * m * n, panels, m, n, k, a_row, a_k,
                b_k, b_n, 0, 0, rows, 0, n);
}

#endif
