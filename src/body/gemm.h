/* gemm.h: GEMM, out = a . b (+ bias).
 *
 * b is packed in panels of 2 OI_VF columns, row by row; columns beyond the last are 0. A weight is
 * packed at synthesis time. Any other b is packed on the fly, OI_GEMM_WIDTH columns and at most
 * OI_GEMM_DEPTH rows at a time. Such a block of a panel stays in the L1 cache while tiles of six
 * rows of a are multiplied with it; a register tile is twelve vectors of sums. Rows of a that are
 * far apart in memory are copied side by side at the first panel. Sums run along k in order, block
 * by block, in every thread. With 32 registers two panels are processed at once, which halves the
 * loads of a. */
#ifndef OI_RECIPE_GEMM_H
#define OI_RECIPE_GEMM_H

#include "body/scalar.h"
#include "body/epilogue.h"
#include "body/vec.h"

enum {
    OI_GEMM_DEPTH = 384,
    OI_GEMM_WIDTH = 1024,
    OI_GEMM_FEW = 8 * OI_VF, /* columns */
    OI_GEMM_IS_WIDE = OI_VF == 16
};

/* s += six elements of a, `a_row` apart, times a row of a panel; row r is s[2 r] and s[2 r + 1]. */
static inline __attribute__((always_inline)) void oi_gemm_step(const float *restrict a,
                                                               int64_t a_row,
                                                               const float *restrict b, oi_vf s[12])
{
    oi_vf left = oi_vf_load(b), right = oi_vf_load(b + OI_VF), v;
    v = oi_vf_set(a[0]);
    s[0] = oi_vf_fma(v, left, s[0]);
    s[1] = oi_vf_fma(v, right, s[1]);
    v = oi_vf_set(a[a_row]);
    s[2] = oi_vf_fma(v, left, s[2]);
    s[3] = oi_vf_fma(v, right, s[3]);
    v = oi_vf_set(a[2 * a_row]);
    s[4] = oi_vf_fma(v, left, s[4]);
    s[5] = oi_vf_fma(v, right, s[5]);
    v = oi_vf_set(a[3 * a_row]);
    s[6] = oi_vf_fma(v, left, s[6]);
    s[7] = oi_vf_fma(v, right, s[7]);
    v = oi_vf_set(a[4 * a_row]);
    s[8] = oi_vf_fma(v, left, s[8]);
    s[9] = oi_vf_fma(v, right, s[9]);
    v = oi_vf_set(a[5 * a_row]);
    s[10] = oi_vf_fma(v, left, s[10]);
    s[11] = oi_vf_fma(v, right, s[11]);
}

/* The same for rows from ... to - 1 of a panel, `a_k` apart in a. */
static inline __attribute__((always_inline)) void oi_gemm_more(const float *restrict a,
                                                               int64_t a_row, int64_t a_k,
                                                               const float *restrict b,
                                                               int64_t from, int64_t to,
                                                               oi_vf s[12])
{
    for (int64_t i = from; i < to; i++)
        oi_gemm_step(a + i * a_k, a_row, b + 2 * OI_VF * i, s);
}

/* All of that panel, from nothing. */
static inline __attribute__((always_inline)) void oi_gemm_six(const float *restrict a,
                                                              int64_t a_row, int64_t a_k,
                                                              const float *restrict b, int64_t k,
                                                              oi_vf sums[12])
{
    oi_vf s[12];
    for (int64_t i = 0; i < 12; i++)
        s[i] = oi_vf_set(0);
    oi_gemm_more(a, a_row, a_k, b, 0, k, s);
    for (int64_t i = 0; i < 12; i++)
        sums[i] = s[i];
}

/* One row of a times a panel, with four independent sums, because each addition waits for the
 * previous one. */
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

/* A row of results: added to those of the previous blocks of k, or to the bias, or stored. */
static inline void oi_gemm_put(float *restrict out, oi_vf left, oi_vf right,
                               const float *restrict bias, int64_t is_more, int64_t columns)
{
    float row[2 * OI_VF];
    float *to = columns < 2 * OI_VF ? row : out;
    const float *before = is_more ? out : bias;
    if (columns < 2 * OI_VF && before) {
        for (int64_t i = 0; i < 2 * OI_VF; i++)
            row[i] = i < columns ? before[i] : 0;
        before = row;
    }
    if (before) {
        left = oi_vf_add(oi_vf_load(before), left);
        right = oi_vf_add(oi_vf_load(before + OI_VF), right);
    }
    oi_vf_store(to, left);
    oi_vf_store(to + OI_VF, right);
    for (int64_t i = 0; columns < 2 * OI_VF && i < 2 * OI_VF; i++)
        if (i < columns)
            out[i] = row[i];
}

/* OI_VF vectors `from_step` apart become columns, each `to_step` from the one before. */
static inline void oi_gemm_transpose(const float *restrict from, int64_t from_step,
                                     float *restrict to, int64_t to_step)
{
    oi_vf v[OI_VF];
    for (int64_t i = 0; i < OI_VF; i++)
        v[i] = oi_vf_load(from + i * from_step);
    oi_vf_transpose(v);
    for (int64_t i = 0; i < OI_VF; i++)
        oi_vf_store(to + i * to_step, v[i]);
}

/* A panel of b that is no weight: `columns` of its 2 OI_VF columns exist. */
static inline void oi_gemm_pack_one(const float *restrict b, int64_t b_k, int64_t b_n, int64_t k,
                                    int64_t columns, float *restrict panel)
{
    int64_t i = 0;
    for (; b_n == 1 && columns == 2 * OI_VF && i < k; i++, panel += 2 * OI_VF) {
        oi_vf_store(panel, oi_vf_load(b + i * b_k));
        oi_vf_store(panel + OI_VF, oi_vf_load(b + i * b_k + OI_VF));
    }
    for (; b_k == 1 && columns == 2 * OI_VF && i + OI_VF <= k; i += OI_VF) {
        oi_gemm_transpose(b + i, b_n, panel, 2 * OI_VF);
        oi_gemm_transpose(b + i + OI_VF * b_n, b_n, panel + OI_VF, 2 * OI_VF);
        panel += 2 * OI_VF * OI_VF;
    }
    for (; i < k; i++)
        for (int64_t c = 0; c < 2 * OI_VF; c++)
            *panel++ = c < columns ? b[i * b_k + c * b_n] : 0;
}

/* Packs panels of b; eight at once if the rows are complete, because each row is on a page of its
 * own. */
static inline void oi_gemm_pack(const float *restrict b, int64_t b_k, int64_t b_n, int64_t k,
                                int64_t columns, float *restrict panels)
{
    int64_t j = 0;
    for (; b_n == 1 && j + 16 * OI_VF <= columns; j += 16 * OI_VF)
        for (int64_t i = 0; i < k; i++)
            for (int64_t c = j; c < j + 16 * OI_VF; c += 2 * OI_VF) {
                float *to = panels + c * k + 2 * OI_VF * i;
                oi_vf_store(to, oi_vf_load(b + i * b_k + c));
                oi_vf_store(to + OI_VF, oi_vf_load(b + i * b_k + c + OI_VF));
            }
    for (; j < columns; j += 2 * OI_VF)
        oi_gemm_pack_one(b + j * b_n, b_k, b_n, k,
                         columns - j < 2 * OI_VF ? columns - j : 2 * OI_VF, panels + j * k);
}

/* Copies a block of rows of a to be contiguous. Rows that are far apart would map to the same sets
 * of the L1 cache. */
static inline void oi_gemm_gather(const float *restrict a, int64_t a_row, int64_t a_k, int64_t rows,
                                  int64_t k, float *restrict part)
{
    int64_t i = 0;
    for (; a_k != 1 && a_row == 1 && i + OI_VF <= rows; i += OI_VF) {
        int64_t j = 0;
        for (; j + OI_VF <= k; j += OI_VF)
            oi_gemm_transpose(a + i + j * a_k, a_k, part + i * OI_GEMM_DEPTH + j, OI_GEMM_DEPTH);
        for (; j < k; j++)
            for (int64_t r = i; r < i + OI_VF; r++)
                part[r * OI_GEMM_DEPTH + j] = a[r + j * a_k];
    }
    for (; i < rows; i++)
        for (int64_t j = 0; j < k; j++)
            part[i * OI_GEMM_DEPTH + j] = a[i * a_row + j * a_k];
}

/* What to prefetch while six rows are multiplied with a panel: a few lines at a time, because a
 * burst of prefetches stalls. */
typedef struct oi_gemm_soon {
    const float *panel; /* the next panel, at this distance in floats ... */
    int64_t step;       /* ... for every two steps of k */
    const float *rows;  /* the next rows of a; NULL: they are in cache */
    int64_t row_step;
} oi_gemm_soon;

/* Rows from ... to - 1 of a panel, and of the one `apart` floats further: t are its sums. */
static inline __attribute__((always_inline)) void oi_gemm_both(
    const float *restrict a, int64_t a_row, int64_t a_k, const float *restrict b, int64_t apart,
    int64_t is_wide, int64_t from, int64_t to, oi_vf s[12], oi_vf t[12])
{
    for (int64_t i = from; i < to; i++) {
        oi_gemm_step(a + i * a_k, a_row, b + 2 * OI_VF * i, s);
        if (is_wide)
            oi_gemm_step(a + i * a_k, a_row, b + 2 * OI_VF * i + apart, t);
    }
}

/* Six rows of results, of which the first `done` are left unchanged. */
static inline __attribute__((always_inline)) void oi_gemm_put_six(const oi_vf s[12],
                                                                  const float *restrict bias,
                                                                  float *restrict out, int64_t n,
                                                                  int64_t is_more, int64_t columns,
                                                                  int64_t done)
{
    if (done == 0 && columns >= 2 * OI_VF) {
        for (int64_t r = 0; r < 6; r++)
            oi_gemm_put(out + r * n, s[2 * r], s[2 * r + 1], bias, is_more, 2 * OI_VF);
        return;
    }
    oi_vf kept[12]; /* s stays in registers: no variable index reaches it */
    for (int64_t i = 0; i < 12; i++)
        kept[i] = s[i];
    for (int64_t r = done; r < 6; r++)
        oi_gemm_put(out + r * n, kept[2 * r], kept[2 * r + 1], bias, is_more,
                    columns < 2 * OI_VF ? columns : 2 * OI_VF);
}

/* Six rows of a and a block of k times one panel or two; the first `done` rows of the result are
 * left unchanged. */
static inline __attribute__((always_inline)) void oi_gemm_tile(
    const float *restrict a, int64_t a_row, int64_t a_k, const float *restrict b, int64_t apart,
    int64_t is_wide, oi_gemm_soon soon, const float *restrict bias, float *restrict out, int64_t n,
    int64_t k, int64_t is_more, int64_t columns, int64_t done)
{
    const int64_t most = k > 32 ? (k - 32) / 2 * 2 : 0, width = is_wide ? 4 * OI_VF : 2 * OI_VF;
    oi_vf s[12], t[12]; /* compilers keep 12 in registers, but not 24 */
    for (int64_t r = 0; r < 12; r++)
        s[r] = oi_vf_set(0);
    for (int64_t r = 0; r < 12; r++)
        t[r] = oi_vf_set(0);
    for (int64_t i = 0; soon.rows && i < most; i += 32) {
        for (int64_t r = 0; r < 12; r++)
            oi_prefetch(soon.rows + r / 2 * soon.row_step + i + r % 2 * 16);
        oi_gemm_both(a, a_row, a_k, b, apart, is_wide, i, i + 32 < most ? i + 32 : most, s, t);
    }
    for (int64_t i = 0; !soon.rows && !is_wide && i < most; i += 2, soon.panel += soon.step) {
        oi_prefetch(soon.panel);
        oi_gemm_both(a, a_row, a_k, b, 0, 0, i, i + 2, s, t);
    }
    for (int64_t i = 0; !soon.rows && is_wide && i < most; i++) { /* two panels would not fit the
                                                                     registers */
        oi_prefetch(soon.panel + i % 2 * apart);
        soon.panel += i % 2 * soon.step;
        oi_gemm_both(a, a_row, a_k, b, apart, 1, i, i + 1, s, t);
    }
    for (int64_t r = 0; r < 6; r++) /* not earlier: the rest of k would evict it */
        for (int64_t c = 0; c < width; c += 2 * OI_VF) {
            oi_prefetch(out + r * n + c);
            oi_prefetch(out + r * n + c + 2 * OI_VF - 1);
        }
    oi_gemm_both(a, a_row, a_k, b, apart, is_wide, most, k, s, t);
    oi_gemm_put_six(s, bias, out, n, is_more, columns, done);
    if (is_wide)
        oi_gemm_put_six(t, bias ? bias + 2 * OI_VF : NULL, out + 2 * OI_VF, n, is_more,
                        columns - 2 * OI_VF, done);
}

/* Twelve rows of a and a block of k times the left half of a panel: of `columns` columns, no more
 * than a vector. The first `done` rows of the result are left unchanged. */
static inline __attribute__((always_inline)) void oi_gemm_half(
    const float *restrict a, int64_t a_row, int64_t a_k, const float *restrict b,
    const float *restrict bias, float *restrict out, int64_t n, int64_t k, int64_t is_more,
    int64_t columns, int64_t done)
{
    oi_vf s[12];
    for (int64_t r = 0; r < 12; r++)
        s[r] = oi_vf_set(0);
    for (int64_t i = 0; i < k; i++) {
        const oi_vf v = oi_vf_load(b + 2 * OI_VF * i);
        for (int64_t r = 0; r < 12; r++)
            s[r] = oi_vf_fma(oi_vf_set(a[r * a_row + i * a_k]), v, s[r]);
    }
    for (int64_t r = 0; r < 12; r++) {
        const float *before = is_more ? out + r * n : bias;
        float row[OI_VF];
        if (before && columns < OI_VF) {
            for (int64_t i = 0; i < OI_VF; i++)
                row[i] = i < columns ? before[i] : 0;
            before = row;
        }
        if (r >= done)
            oi_vf_store_some(out + r * n, before ? oi_vf_add(oi_vf_load(before), s[r]) : s[r],
                             columns);
    }
}

/* Rows 0 ... rows - 1 of a and a block of k times one panel or two, six rows at a time. The last
 * six may overlap rows that are done already. Prefetches what follows the panel. */
static inline __attribute__((always_inline)) void oi_gemm_panel(
    const float *restrict a, int64_t a_row, int64_t a_k, const float *restrict b, int64_t apart,
    int64_t is_wide, const float *restrict bias, float *restrict out, int64_t rows, int64_t n,
    int64_t k, int64_t is_more, int64_t columns)
{
    const int64_t step = (24 * OI_VF + rows - 1) / rows; /* at most a line of 64 bytes */
    oi_gemm_soon soon = {b + (is_wide ? 2 : 1) * apart, step < 16 ? step : 16, NULL, 0};
    int64_t i = 0;
    for (; columns <= OI_VF && rows >= 12 && i < rows; i += 12) {
        const int64_t at = i + 12 <= rows ? i : rows - 12;
        oi_gemm_half(a + at * a_row, a_row, a_k, b, bias, out + at * n, n, k, is_more, columns,
                     i - at);
    }
    for (; i < rows; i += 6, soon.panel += soon.step * (k / 2)) {
        const int64_t at = i + 6 <= rows ? i : rows - 6;
        oi_gemm_tile(a + at * a_row, a_row, a_k, b, apart, is_wide, soon, bias, out + at * n, n, k,
                     is_more, columns, i - at);
    }
}

/* The same for rows that are far apart: they are copied into `part` just before use, and the next
 * ones are prefetched meanwhile. */
static inline __attribute__((always_inline)) void oi_gemm_far(
    const float *restrict a, int64_t a_row, int64_t a_k, float *restrict part,
    const float *restrict b, const float *restrict bias, float *restrict out, int64_t rows,
    int64_t n, int64_t k, int64_t is_more, int64_t columns)
{
    const int64_t some =
        a_k == 1 ? 6 : 3 * OI_VF; /* six at a time; vectors of them are transposed */
    for (int64_t i = 0; i < rows; i += 6) {
        const int64_t at = i + 6 <= rows ? i : rows - 6;
        const oi_gemm_soon soon = {b, 0, a_k == 1 ? a + (i + 6) * a_row : NULL, a_row};
        if (i % some == 0)
            oi_gemm_gather(a + i * a_row, a_row, a_k, rows - i < some ? rows - i : some, k,
                           part + i * OI_GEMM_DEPTH);
        oi_gemm_tile(part + at * OI_GEMM_DEPTH, OI_GEMM_DEPTH, 1, b, 0, 0, soon, bias, out + at * n,
                     n, k, is_more, columns, i - at);
    }
}

/* Four rows of a times a panel; row r is sums[2 r] and sums[2 r + 1]. */
static inline __attribute__((always_inline)) void oi_gemm_four(const float *const row[4],
                                                               int64_t a_k, const float *restrict b,
                                                               int64_t k, oi_vf sums[8])
{
    oi_vf s[8];
    for (int64_t j = 0; j < 8; j++)
        s[j] = oi_vf_set(0);
    for (int64_t i = 0; i < k; i++) {
        oi_vf left = oi_vf_load(b + 2 * OI_VF * i), right = oi_vf_load(b + 2 * OI_VF * i + OI_VF);
        oi_vf v;
        oi_prefetch(b + 2 * OI_VF * i + 512);
        v = oi_vf_set(row[0][i * a_k]);
        s[0] = oi_vf_fma(v, left, s[0]);
        s[1] = oi_vf_fma(v, right, s[1]);
        v = oi_vf_set(row[1][i * a_k]);
        s[2] = oi_vf_fma(v, left, s[2]);
        s[3] = oi_vf_fma(v, right, s[3]);
        v = oi_vf_set(row[2][i * a_k]);
        s[4] = oi_vf_fma(v, left, s[4]);
        s[5] = oi_vf_fma(v, right, s[5]);
        v = oi_vf_set(row[3][i * a_k]);
        s[6] = oi_vf_fma(v, left, s[6]);
        s[7] = oi_vf_fma(v, right, s[7]);
    }
    for (int64_t j = 0; j < 8; j++)
        sums[j] = s[j];
}

/* A few rows of a times a panel, four at a time, a last one alone. */
static inline __attribute__((always_inline)) void oi_gemv_packed_panel(
    const float *restrict a, const float *restrict b, const float *restrict bias,
    float *restrict out, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_k,
    int64_t columns)
{
    for (int64_t i = 0; i < m; i += 4) {
        const float *row[4];
        oi_vf s[8];
        for (int64_t r = 0; r < 4; r++) /* beyond the last, the last again */
            row[r] = a + (i + r < m ? i + r : m - 1) * a_row;
        if (i + 1 == m)
            oi_gemm_one(row[0], a_k, b, k, s);
        else
            oi_gemm_four(row, a_k, b, k, s);
        for (int64_t r = 0; r < 4 && i + r < m; r++)
            oi_gemm_put(out + (i + r) * n, s[2 * r], s[2 * r + 1], bias, 0, columns);
    }
}

/* A few rows of a times packed b. */
static inline __attribute__((always_inline)) void oi_gemm_rows(
    const float *restrict a, const float *restrict b, const float *restrict bias,
    float *restrict out, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_k, int64_t first,
    int64_t last, oi_epilogue *finish, void *const *ports)
{
    for (int64_t j = first; j < last; j += 2 * OI_VF) {
        const int64_t columns = n - j < 2 * OI_VF ? n - j : 2 * OI_VF;
        oi_gemv_packed_panel(a, b + j * k, bias ? bias + j : NULL, out + j, m, n, k, a_row, a_k,
                             columns);
        oi_epilogue_block(finish, ports, out, n, 0, m, j, j + columns);
    }
}

/* The same for a b that is no weight; room: for a panel. */
static inline __attribute__((always_inline)) void oi_gemv_packed_two(
    const float *restrict a, const float *restrict b, const float *restrict bias,
    float *restrict out, float *restrict room, int64_t m, int64_t n, int64_t k, int64_t a_row,
    int64_t a_k, int64_t b_k, int64_t b_n, int64_t first, int64_t last)
{
    for (int64_t j = first; j < last; j += 2 * OI_VF) {
        const int64_t columns = n - j < 2 * OI_VF ? n - j : 2 * OI_VF;
        oi_gemm_pack(b + j * b_n, b_k, b_n, k, columns, room);
        oi_gemv_packed_panel(a, room, bias ? bias + j : NULL, out + j, m, n, k, a_row, a_k,
                             columns);
    }
}

/* out (m, n), columns first ... last - 1. a is (m, k) with the given strides, m at least 6. b is
 * packed, or has the given strides along k and n and is packed into `room`, which also holds the
 * rows of a that are far apart. Blocks are `rows` rows of a and `depth` of k. */
static inline __attribute__((always_inline)) void oi_gemm(
    const float *restrict a, const float *restrict b, const float *restrict bias,
    float *restrict out, float *restrict room, int64_t m, int64_t n, int64_t k, int64_t a_row,
    int64_t a_k, int64_t b_k, int64_t b_n, int64_t is_packed, int64_t is_far, int64_t rows,
    int64_t depth, int64_t first, int64_t last, oi_epilogue *finish, void *const *ports)
{
    const int64_t width =
        n < OI_GEMM_WIDTH ? (n + 2 * OI_VF - 1) / (2 * OI_VF) * (2 * OI_VF) : OI_GEMM_WIDTH;
    float *part = is_packed ? room : room + width * depth;
    for (int64_t j0 = first; j0 < last; j0 += width)
        for (int64_t i0 = 0; i0 < k; i0 += depth) {
            const int64_t j1 = last - j0 < width ? last : j0 + width;
            const int64_t deep = k - i0 < depth ? k - i0 : depth;
            if (!is_packed)
                oi_gemm_pack(b + i0 * b_k + j0 * b_n, b_k, b_n, deep, j1 - j0, room);
            for (int64_t r = 0; r < m; r += rows) {
                /* a remainder of less than six rows joins the last block */
                const int64_t some = m - r < rows + 6 ? m - r : rows;
                const float *own = a + r * a_row + i0 * a_k;
                for (int64_t j = j0, wide = 0; j < j1; j += wide) {
                    const int64_t own_row = is_far ? OI_GEMM_DEPTH : a_row;
                    const int64_t is_first = is_far && j == j0, own_k = is_far ? 1 : a_k;
                    const int64_t is_wide = OI_GEMM_IS_WIDE && !is_first && j1 - j > 3 * OI_VF;
                    const int64_t apart = 2 * OI_VF * (is_packed ? k : deep);
                    const float *panel =
                        is_packed ? b + j * k + 2 * OI_VF * i0 : room + (j - j0) * deep;
                    const float *more = bias ? bias + j : NULL;
                    float *to = out + r * n + j;
                    wide = is_wide ? 4 * OI_VF : 2 * OI_VF;
                    const int64_t columns = j1 - j < wide ? j1 - j : wide;
                    if (is_first)
                        oi_gemm_far(own, a_row, a_k, part, panel, more, to, some, n, deep, i0 > 0,
                                    columns);
                    else if (is_wide)
                        oi_gemm_panel(is_far ? part : own, own_row, own_k, panel, apart, 1, more,
                                      to, some, n, deep, i0 > 0, columns);
                    else
                        oi_gemm_panel(is_far ? part : own, own_row, own_k, panel, apart, 0, more,
                                      to, some, n, deep, i0 > 0, columns);
                }
                if (i0 + deep == k)
                    oi_epilogue_block(finish, ports, out, n, r, r + some, j0, j1);
                if (some > rows)
                    break;
            }
        }
}

/* out (m, n) = a . b for a packed b, columns first ... last - 1. */
static inline __attribute__((always_inline)) void oi_gemm_weights(
    const float *restrict a, const void *restrict packed, float *restrict out, int64_t m, int64_t n,
    int64_t k, int64_t a_row, int64_t a_k, int64_t rows, int64_t depth, int64_t first, int64_t last,
    oi_epilogue *finish, void *const *ports)
{
    const float *b = packed;
    if (m < 6 || m == 7 || m == 8) /* fours of rows leave less empty than sixes */
        oi_gemm_rows(a, b, NULL, out, m, n, k, a_row, a_k, first, last, finish, ports);
    else
        oi_gemm(a, b, NULL, out, NULL, m, n, k, a_row, a_k, 0, 0, 1, 0, rows, depth, first, last,
                finish, ports);
}

/* The same for a b that is no weight. With few columns, as in dynamic chunks, copying rows of a
 * does not pay. */
static inline __attribute__((always_inline)) void oi_gemm_two(
    const float *restrict a, const float *restrict b, float *restrict out, float *restrict room,
    int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_k, int64_t b_k, int64_t b_n,
    int64_t is_far, int64_t rows, int64_t depth, int64_t first, int64_t last, oi_epilogue *finish,
    void *const *ports)
{
    if (is_far && a_k == 1 && last - first <= OI_GEMM_FEW)
        oi_gemm(a, b, NULL, out, room, m, n, k, a_row, 1, b_k, b_n, 0, 0, rows, depth, first, last,
                finish, ports);
    else
        oi_gemm(a, b, NULL, out, room, m, n, k, a_row, a_k, b_k, b_n, 0, is_far, rows, depth, first,
                last, finish, ports);
}

/* A stack of such products: `each` of them at every position from first to last - 1, of a_count
 * matrices a and b_count matrices b, in turn. */
static inline __attribute__((always_inline)) void oi_gemm_stack(
    const float *restrict a, const float *restrict b, float *restrict out, float *restrict room,
    int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_k, int64_t b_k, int64_t b_n,
    int64_t is_far, int64_t rows, int64_t depth, int64_t a_step, int64_t b_step, int64_t a_count,
    int64_t b_count, int64_t each, int64_t first, int64_t last, oi_epilogue *finish,
    void *const *ports)
{
    for (int64_t i = first * each; i < last * each; i++) {
        oi_gemm(a + i % a_count * a_step, b + i % b_count * b_step, NULL, out + i * m * n, room, m,
                n, k, a_row, a_k, b_k, b_n, 0, is_far, rows, depth, 0, n, NULL, NULL);
        oi_epilogue_block(finish, ports, out, n, i * m, (i + 1) * m, 0, n);
    }
}

#endif
