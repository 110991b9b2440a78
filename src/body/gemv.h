/* gemv.h: GEMV and products of few rows with an unpacked matrix, out = a . b. Every element of b is
 * read once, in memory order, and used for all rows. If the rows of b are contiguous along n, the
 * result is a sum of scaled rows, k in order. If its columns are contiguous along k, the result is
 * a row of dot products with vector partial sums. Four rows of b are read at a time, so that memory
 * delivers four streams. */
#ifndef OI_RECIPE_GEMV_H
#define OI_RECIPE_GEMV_H

#include "body/epilogue.h"
#include "body/vec.h"

enum { OI_FEW_WIDTH = 2048 }; /* columns whose sums stay in the L1 cache */

/* sums += the dot products of x with four rows of n numbers. */
static inline __attribute__((always_inline)) void oi_gemv_dots(const float *restrict x,
                                                               const float *const row[4], int64_t n,
                                                               float *restrict sums)
{
    const oi_vf zero = oi_vf_set(0);
    oi_vf s[8] = {zero, zero, zero, zero, zero, zero, zero, zero}; /* a loop would call memset */
    float whole[4];
    int64_t i = 0;
    for (; i + 2 * OI_VF <= n; i += 2 * OI_VF) {
        const oi_vf left = oi_vf_load(x + i), right = oi_vf_load(x + i + OI_VF);
        s[0] = oi_vf_fma(left, oi_vf_load(row[0] + i), s[0]);
        s[4] = oi_vf_fma(right, oi_vf_load(row[0] + i + OI_VF), s[4]);
        s[1] = oi_vf_fma(left, oi_vf_load(row[1] + i), s[1]);
        s[5] = oi_vf_fma(right, oi_vf_load(row[1] + i + OI_VF), s[5]);
        s[2] = oi_vf_fma(left, oi_vf_load(row[2] + i), s[2]);
        s[6] = oi_vf_fma(right, oi_vf_load(row[2] + i + OI_VF), s[6]);
        s[3] = oi_vf_fma(left, oi_vf_load(row[3] + i), s[3]);
        s[7] = oi_vf_fma(right, oi_vf_load(row[3] + i + OI_VF), s[7]);
    }
    const oi_vf both[4] = {oi_vf_add(s[0], s[4]), oi_vf_add(s[1], s[5]), oi_vf_add(s[2], s[6]),
                           oi_vf_add(s[3], s[7])};
    oi_vf_total_four(both, whole);
    for (; i < n; i++)
        for (int64_t r = 0; r < 4; r++)
            whole[r] = oi_f_fma(x[i], row[r][i], whole[r]);
    for (int64_t r = 0; r < 4; r++)
        sums[r] += whole[r];
}

/* sums (n) += four rows, each scaled by its element of x. */
static inline __attribute__((always_inline)) void oi_gemv_add(const float *restrict x,
                                                              const float *const row[4], int64_t n,
                                                              float *restrict sums)
{
    const oi_vf f0 = oi_vf_set(x[0]), f1 = oi_vf_set(x[1]), f2 = oi_vf_set(x[2]);
    const oi_vf f3 = oi_vf_set(x[3]);
    int64_t i = 0;
    for (; i + OI_VF <= n; i += OI_VF) {
        oi_vf s = oi_vf_load(sums + i);
        s = oi_vf_fma(f0, oi_vf_load(row[0] + i), s);
        s = oi_vf_fma(f1, oi_vf_load(row[1] + i), s);
        s = oi_vf_fma(f2, oi_vf_load(row[2] + i), s);
        s = oi_vf_fma(f3, oi_vf_load(row[3] + i), s);
        oi_vf_store(sums + i, s);
    }
    for (; i < n; i++)
        for (int64_t r = 0; r < 4; r++)
            sums[i] = oi_f_fma(x[r], row[r][i], sums[i]);
}

/* The same for one row. */
static inline __attribute__((always_inline)) void oi_gemv_add_one(float x,
                                                                  const float *restrict row,
                                                                  int64_t n, float *restrict sums)
{
    const oi_vf f = oi_vf_set(x);
    int64_t i = 0;
    for (; i + OI_VF <= n; i += OI_VF)
        oi_vf_store(sums + i, oi_vf_fma(f, oi_vf_load(row + i), oi_vf_load(sums + i)));
    for (; i < n; i++)
        sums[i] = oi_f_fma(x, row[i], sums[i]);
}

/* Columns first ... last - 1; the rows of b are b_k apart and contiguous along n. */
static inline __attribute__((always_inline)) void oi_gemv_sums(
    const float *restrict a, const float *restrict b, float *restrict out, int64_t m, int64_t n,
    int64_t k, int64_t a_row, int64_t a_k, int64_t b_k, int64_t first, int64_t last)
{
    for (int64_t j = first; j < last; j += OI_FEW_WIDTH) {
        const int64_t some = last - j < OI_FEW_WIDTH ? last - j : OI_FEW_WIDTH;
        int64_t i = 0;
        for (int64_t r = 0; r < m; r++)
            for (int64_t c = 0; c < some; c++)
                out[r * n + j + c] = 0;
        for (; i + 4 <= k; i += 4) {
            const float *from = b + i * b_k + j;
            const float *const row[4] = {from, from + b_k, from + 2 * b_k, from + 3 * b_k};
            for (int64_t r = 0; r < m; r++) {
                const float *x = a + r * a_row + i * a_k;
                const float by[4] = {x[0], x[a_k], x[2 * a_k], x[3 * a_k]};
                oi_gemv_add(by, row, some, out + r * n + j);
            }
        }
        for (; i < k; i++)
            for (int64_t r = 0; r < m; r++)
                oi_gemv_add_one(a[r * a_row + i * a_k], b + i * b_k + j, some, out + r * n + j);
    }
}

/* The same for a b whose columns are b_n apart and contiguous along k, like the rows of a. Beyond
 * the last column the last one is computed again and dropped. */
static inline __attribute__((always_inline)) void oi_gemv_products(
    const float *restrict a, const float *restrict b, float *restrict out, int64_t m, int64_t n,
    int64_t k, int64_t a_row, int64_t b_n, int64_t first, int64_t last)
{
    for (int64_t j = first; j < last; j += 4) {
        const float *row[4];
        for (int64_t c = 0; c < 4; c++)
            row[c] = b + (j + c < last ? j + c : last - 1) * b_n;
        for (int64_t r = 0; r < m; r++) {
            float sums[4] = {0};
            oi_gemv_dots(a + r * a_row, row, k, sums);
            for (int64_t c = 0; c < 4 && j + c < last; c++)
                out[r * n + j + c] = sums[c];
        }
    }
}

/* out (m, n) = a . b, columns first ... last - 1. a is (m, k) and b is (k, n) with these strides;
 * either b_n is 1, or b_k and a_k are. */
static inline __attribute__((always_inline)) void oi_gemv(
    const float *restrict a, const float *restrict b, float *restrict out, int64_t m, int64_t n,
    int64_t k, int64_t a_row, int64_t a_k, int64_t b_k, int64_t b_n, int64_t first, int64_t last,
    oi_epilogue *finish, void *const *ports)
{
    if (b_n == 1)
        oi_gemv_sums(a, b, out, m, n, k, a_row, a_k, b_k, first, last);
    else
        oi_gemv_products(a, b, out, m, n, k, a_row, b_n, first, last);
    oi_epilogue_block(finish, ports, out, n, 0, m, first, last);
}

/* A stack of such products: `each` of them at every position from first to last - 1, of a_count
 * matrices a and b_count matrices b, in turn. */
static inline __attribute__((always_inline)) void oi_gemv_stack(
    const float *restrict a, const float *restrict b, float *restrict out, int64_t m, int64_t n,
    int64_t k, int64_t a_row, int64_t a_k, int64_t b_k, int64_t b_n, int64_t a_step, int64_t b_step,
    int64_t a_count, int64_t b_count, int64_t each, int64_t first, int64_t last,
    oi_epilogue *finish, void *const *ports)
{
    for (int64_t i = first * each; i < last * each; i++)
        oi_gemv(a + i % a_count * a_step, b + i % b_count * b_step, out + i * m * n, m, n, k, a_row,
                a_k, b_k, b_n, 0, n, NULL, NULL);
    oi_epilogue_block(finish, ports, out, n, first * each * m, last * each * m, 0, n);
}

#endif
