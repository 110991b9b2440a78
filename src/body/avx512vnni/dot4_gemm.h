/* dot4_gemm.h: byte GEMM with dot products of 4 bytes. Lanes are columns of w; the tile is 16 rows
 * of x by 32 columns. These take the roles of filters and places in dot4.h, so here w is the
 * unsigned operand and x the signed one. Zero points as there; the sums of x are those of its rows.
 */
#ifndef OI_RECIPE_DOT4_GEMM_H
#define OI_RECIPE_DOT4_GEMM_H

#include "body/avx512vnni/dot4.h"

/* Columns of w per tile. */
enum { OI_FDENSE_WIDE = 32 };

/* The sum of a row of k bytes; unsigned ones count 128 less. */
static inline __attribute__((always_inline)) int32_t oi_fdense_sum(const void *x, int64_t k,
                                                                   int64_t is_unsigned)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < k; i++)
        sum += oi_bytes_at(x, i, is_unsigned);
    return is_unsigned ? (int32_t)((uint32_t)sum - 128 * (uint32_t)k) : sum;
}

/* Corrects n sums of a row for the zero points of the row and the columns. */
static inline __attribute__((always_inline)) void oi_fdense_less(int32_t *sums,
                                                                 const int32_t *totals,
                                                                 const int32_t *zeros,
                                                                 uint32_t zero, uint32_t of_x,
                                                                 int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sums[i] =
            (int32_t)((uint32_t)sums[i] - zero * (uint32_t)totals[i] - (uint32_t)zeros[i] * of_x);
}

/* Whether scaling keeps every sum within 32 bits. */
static inline __attribute__((always_inline)) int64_t oi_fdense_is_small(const float *factors,
                                                                        int64_t n)
{
    int64_t is = 1;
    for (int64_t i = 0; i < n; i++)
        is &= factors[i] > -1 && factors[i] < 1;
    return is;
}

/* Applies the epilogue to n sums of a row, from column f on. finish NULL: converts to bytes for
 * qmatmul; ports[5] says which type. */
static inline __attribute__((always_inline)) void oi_fdense_finish(const int32_t *sums,
                                                                   oi_bytes_finish *finish,
                                                                   void *const *ports, int64_t row,
                                                                   int64_t f, int64_t n)
{
    if (!finish) {
        const float *factors = (const float *)ports[1] + f, *zero = ports[3];
        const int64_t kind = *(const int64_t *)ports[5];
        if (oi_fdense_is_small(factors, n)) {
            for (int64_t i = 0; i < n; i += OI_VF)
                oi_vi_byte_row(sums + i, n - i, factors + i, (int32_t)*zero, kind,
                               (char *)ports[0] + oi_bytes_place(ports, row, f + i, 0));
            return;
        }
        finish = oi_bytes_end(kind);
    }
    for (int64_t i = 0; i < n; i++)
        finish(ports, row, f + i, 0, 0, sums[i]);
}

/* x (rows, k) in chunks of up to `chunk` rows. packed: per 32 columns, blocks * deep planes of
 * 4-byte groups, then totals and zero points of all columns. strip: a chunk of x; sums: (16, 32);
 * taps: offsets of the planes; of_x: sums of a chunk's rows. x_zeros: of every row, `zero_step`
 * apart, or NULL. Columns first ... last - 1. */
static inline __attribute__((always_inline)) void oi_fdense(
    const void *x, const int32_t *packed, oi_bytes_finish *finish, void *const *ports,
    int32_t *strip, int32_t *sums, int32_t *taps, int32_t *of_x, const void *x_zeros,
    int64_t zero_step, int64_t is_unsigned, int64_t rows, int64_t k, int64_t m, int64_t blocks,
    int64_t deep, int64_t chunk, int64_t first, int64_t last)
{
    const oi_dot4_shape s = {.kh = 1,
                             .kw = 1,
                             .stride_x = 1,
                             .blocks = blocks,
                             .deep = deep,
                             .plane = OI_FDENSE_WIDE,
                             .line = OI_FDENSE_WIDE};
    const int64_t steps = blocks * deep;
    const int32_t *totals = packed + (m + 31) / 32 * 32 * steps, *zeros = totals + m;
    oi_dot4_taps(taps, s);
    oi_dot4_begin(deep);
    for (int64_t r = 0; r < rows; r += chunk) {
        const int64_t n = r + chunk < rows ? chunk : rows - r;
        for (int64_t i = 0; i < n; i += 16)
            oi_dot4_rows((const char *)x + (r + i) * k, n - i < 16 ? n - i : 16, k, is_unsigned,
                         strip + i * steps, s);
        for (int64_t i = 0; i < n; i++)
            of_x[i] = oi_fdense_sum((const char *)x + (r + i) * k, k, is_unsigned);
        for (int64_t f = first; f < last; f += OI_FDENSE_WIDE) {
            const int64_t columns = m - f < OI_FDENSE_WIDE ? m - f : OI_FDENSE_WIDE;
            for (int64_t i = 0; i < n; i += 16) {
                const int64_t high = n - i < 16 ? n - i : 16;
                oi_dot4_block(packed + f * steps, strip + i * steps, taps, high,
                              columns > OI_VF ? 2 : 1, 2, sums, s);
                for (int64_t j = 0; j < high; j++) {
                    const int64_t row = r + i + j;
                    const int32_t zero =
                        x_zeros ? oi_bytes_at(x_zeros, row * zero_step, is_unsigned) : 0;
                    int32_t *mine = sums + j * OI_FDENSE_WIDE;
                    oi_fdense_less(mine, totals + f, zeros + f,
                                   (uint32_t)(is_unsigned ? zero - 128 : zero),
                                   (uint32_t)of_x[i + j], columns);
                    oi_fdense_finish(mine, finish, ports, row, f, columns);
                }
            }
        }
    }
    oi_dot4_end();
}

/* Bytes without zero points; the kernel's epilogue takes the sums. */
static inline __attribute__((always_inline)) void oi_dot4_matmul(
    const void *x, const int32_t *packed, oi_bytes_finish *finish, void *const *ports,
    int32_t *strip, int32_t *sums, int32_t *taps, int32_t *of_x, int64_t rows, int64_t k, int64_t m,
    int64_t blocks, int64_t deep, int64_t chunk, int64_t first, int64_t last)
{
    oi_fdense(x, packed, finish, ports, strip, sums, taps, of_x, NULL, 0, 0, rows, k, m, blocks,
              deep, chunk, first, last);
}

/* zero_step: distance from a row's zero point to the next one's. */
static inline __attribute__((always_inline)) void oi_dot4_qmatmul(
    const void *x, const void *x_zero, const int32_t *packed, const void *factors,
    const void *y_zero, void *out, int32_t *strip, int32_t *sums, int32_t *taps, int32_t *of_x,
    int64_t is_unsigned, int64_t kind, int64_t has_zero, int64_t zero_step, int64_t rows, int64_t k,
    int64_t m, int64_t blocks, int64_t deep, int64_t chunk, int64_t first, int64_t last)
{
    const int64_t sizes[] = {m, 1};
    const float zero = kind == 2 ? 0 : (float)oi_bytes_at(y_zero, 0, kind);
    void *const ports[] = {out, (void *)factors, NULL, (void *)&zero, (void *)sizes, (void *)&kind};
    oi_fdense(x, packed, kind == 2 ? oi_bytes_end_i32 : NULL, ports, strip, sums, taps, of_x,
              has_zero ? x_zero : NULL, zero_step, is_unsigned, rows, k, m, blocks, deep, chunk,
              first, last);
}

#endif
