/* half.h: products with 16-bit weights, f16 or bf16.
 *
 * Weights are in the panels of gemm.h and keep 16 bits, because memory bandwidth is the bottleneck.
 * With few rows (GEMV) they are converted to floats in registers; with more rows, a few panels at a
 * time, which then stay in cache. Sums are floats. An a or a result of 16 bits is converted once.
 */
#ifndef OI_RECIPE_HALF_H
#define OI_RECIPE_HALF_H

#include "body/gemm.h"

enum { OI_HALF_F16 = 1 };    /* how a matrix is stored: 0 is floats, 2 is bf16 */
enum { OI_HALF_WIDTH = 64 }; /* columns that become floats at a time */

static inline __attribute__((always_inline)) oi_vf oi_half_load(const uint16_t *p, int64_t form)
{
    return form == OI_HALF_F16 ? oi_vf_load_f16(p) : oi_vf_load_bf16(p);
}

/* n halves as floats */
static inline void oi_half_widen(const uint16_t *restrict from, int64_t n, int64_t form,
                                 float *restrict to)
{
    const int64_t whole = n - n % OI_VF;
    for (int64_t i = 0; i < whole; i += OI_VF)
        oi_vf_store(to + i, oi_half_load(from + i, form));
    for (int64_t i = whole; i < n; i++)
        to[i] = form == OI_HALF_F16 ? oi_f32_of_f16(from[i]) : oi_f32_of_bf16(from[i]);
}

/* One row of a times a panel, with four independent sums, because each addition waits for the
 * previous one. */
static inline __attribute__((always_inline)) void oi_half_one(const float *restrict a, int64_t a_k,
                                                              const uint16_t *restrict b, int64_t k,
                                                              int64_t form, oi_vf sums[2])
{
    oi_vf s[8];
    int64_t i = 0;
    for (int64_t j = 0; j < 8; j++)
        s[j] = oi_vf_set(0);
    for (; i + 4 <= k; i += 4, b += 8 * OI_VF) {
        oi_vf v0 = oi_vf_set(a[i * a_k]), v1 = oi_vf_set(a[(i + 1) * a_k]);
        oi_vf v2 = oi_vf_set(a[(i + 2) * a_k]), v3 = oi_vf_set(a[(i + 3) * a_k]);
        oi_prefetch(b + 1024);
        oi_prefetch(b + 1024 + 4 * OI_VF);
        s[0] = oi_vf_fma(v0, oi_half_load(b, form), s[0]);
        s[1] = oi_vf_fma(v0, oi_half_load(b + OI_VF, form), s[1]);
        s[2] = oi_vf_fma(v1, oi_half_load(b + 2 * OI_VF, form), s[2]);
        s[3] = oi_vf_fma(v1, oi_half_load(b + 3 * OI_VF, form), s[3]);
        s[4] = oi_vf_fma(v2, oi_half_load(b + 4 * OI_VF, form), s[4]);
        s[5] = oi_vf_fma(v2, oi_half_load(b + 5 * OI_VF, form), s[5]);
        s[6] = oi_vf_fma(v3, oi_half_load(b + 6 * OI_VF, form), s[6]);
        s[7] = oi_vf_fma(v3, oi_half_load(b + 7 * OI_VF, form), s[7]);
    }
    for (; i < k; i++, b += 2 * OI_VF) {
        oi_vf v = oi_vf_set(a[i * a_k]);
        s[0] = oi_vf_fma(v, oi_half_load(b, form), s[0]);
        s[1] = oi_vf_fma(v, oi_half_load(b + OI_VF, form), s[1]);
    }
    sums[0] = oi_vf_add(oi_vf_add(s[0], s[2]), oi_vf_add(s[4], s[6]));
    sums[1] = oi_vf_add(oi_vf_add(s[1], s[3]), oi_vf_add(s[5], s[7]));
}

/* Rows one after the other. */
static inline __attribute__((always_inline)) void oi_half_gemv(
    const float *restrict a, const uint16_t *restrict b, float *restrict out, int64_t m, int64_t n,
    int64_t k, int64_t a_row, int64_t a_k, int64_t form, int64_t first, int64_t last,
    oi_epilogue *finish, void *const *ports)
{
    for (int64_t j = first; j < last; j += 2 * OI_VF) {
        const int64_t columns = n - j < 2 * OI_VF ? n - j : 2 * OI_VF;
        for (int64_t i = 0; i < m; i++) {
            oi_vf s[2];
            oi_half_one(a + i * a_row, a_k, b + j * k, k, form, s);
            oi_gemm_put(out + i * n + j, s[0], s[1], NULL, 0, columns);
        }
        oi_epilogue_block(finish, ports, out, n, 0, m, j, j + columns);
    }
}

/* Some panels as floats, then rows six at a time. */
static inline __attribute__((always_inline)) void oi_half_tiles(
    const float *restrict a, const uint16_t *restrict b, float *restrict out, float *restrict room,
    int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_k, int64_t form, int64_t rows,
    int64_t depth, int64_t first, int64_t last, oi_epilogue *finish, void *const *ports)
{
    for (int64_t j0 = first; j0 < last; j0 += OI_HALF_WIDTH)
        for (int64_t i0 = 0; i0 < k; i0 += depth) {
            const int64_t j1 = last - j0 < OI_HALF_WIDTH ? last : j0 + OI_HALF_WIDTH;
            const int64_t deep = k - i0 < depth ? k - i0 : depth;
            for (int64_t j = j0; j < j1; j += 2 * OI_VF)
                oi_half_widen(b + j * k + 2 * OI_VF * i0, 2 * OI_VF * deep, form,
                              room + (j - j0) * deep);
            for (int64_t r = 0; r < m; r += rows) {
                /* a remainder of less than six rows joins the last block */
                const int64_t some = m - r < rows + 6 ? m - r : rows;
                for (int64_t j = j0; j < j1; j += 2 * OI_VF) {
                    const int64_t columns = j1 - j < 2 * OI_VF ? j1 - j : 2 * OI_VF;
                    oi_gemm_panel(a + r * a_row + i0 * a_k, a_row, a_k, room + (j - j0) * deep,
                                  2 * OI_VF * deep, 0, NULL, out + r * n + j, some, n, deep, i0 > 0,
                                  columns);
                }
                if (i0 + deep == k)
                    oi_epilogue_block(finish, ports, out, n, r, r + some, j0, j1);
                if (some > rows)
                    break;
            }
        }
}

/* out (m, n) = a . b, the columns first ... last - 1; a of a_form with the given steps, b packed,
 * of b_form, and the result of out_form. room: a and the result as floats where they are not, then
 * the panels. An epilogue takes results of f32 only. */
static inline __attribute__((always_inline)) void oi_half_gemm(
    const void *restrict a, const void *restrict packed, void *restrict out, float *restrict room,
    int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_k, int64_t a_form, int64_t b_form,
    int64_t out_form, int64_t rows, int64_t depth, int64_t first, int64_t last, oi_epilogue *finish,
    void *const *ports)
{
    const float *x = a_form ? room : a;
    float *sums = a_form ? room + m * k : room;
    float *y = out_form ? sums : out, *panels = out_form ? sums + m * n : sums;
    uint16_t *rounded = out;
    if (a_form)
        oi_half_widen(a, m * k, a_form, room);
    if (m < 6)
        oi_half_gemv(x, packed, y, m, n, k, a_row, a_k, b_form, first, last, finish, ports);
    else
        oi_half_tiles(x, packed, y, panels, m, n, k, a_row, a_k, b_form, rows, depth, first, last,
                      finish, ports);
    for (int64_t i = 0; out_form && i < m; i++)
        for (int64_t j = first; j < last; j++)
            rounded[i * n + j] = out_form == OI_HALF_F16 ? oi_near_f16_f32(y[i * n + j])
                                                         : oi_near_bf16_f32(y[i * n + j]);
}

#endif
