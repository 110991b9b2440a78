/* qrows.h: rows of weights in blocks of 32, as they are stored, times rows of x in 8 bits. For few
 * rows of x to lay tiles out takes longer than the products.
 *
 * A vector holds the sums of eight blocks of one row of w: its scales lie side by side. Eight rows
 * later they change places, and the blocks are added in order, as the op's definition does: the
 * result is the simulator's of any other body, bit by bit. What is read beyond the last block of
 * scales is within the scratch, and left out. */
#ifndef OI_KERNEL_QROWS_H
#define OI_KERNEL_QROWS_H

#include "kernel/kernel.h"

#if defined(__AVX2__)
#include <immintrin.h>

/* -- sums of eight blocks -- */

/* x for pairs of blocks of nibbles, which come in the order of reorder() in qlinear.c: x[2 i] meets
 * the lower halves of pair i, x[2 i + 1] the upper ones. */
static inline void qrows_x(const int8_t *q, size_t pairs, __m256i x[8])
{
    const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    for (size_t i = 0; i < pairs; i++) {
        const __m256i *at = (const __m256i *)(const void *)(q + 64 * i);
        const __m256i a = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(at), order);
        const __m256i b = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(at + 1), order);
        x[2 * i] = _mm256_permute2x128_si256(a, b, 0x20);
        x[2 * i + 1] = _mm256_permute2x128_si256(a, b, 0x31);
    }
}

/* Up to four pairs of blocks of nibbles; each is xor'ed with `flip`. */
static inline __attribute__((always_inline)) __m256i qrows_nibbles(const uint8_t *w,
                                                                   const __m256i x[8], size_t pairs,
                                                                   __m256i flip)
{
    const __m256i low = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
    __m256i s[4];
    for (size_t i = 0; i < 4; i++) {
        if (i >= pairs) {
            s[i] = _mm256_setzero_si256();
            continue;
        }
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(w + 32 * i));
        v = _mm256_xor_si256(v, flip);
        const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(v, 4), low);
        s[i] = _mm256_madd_epi16(
            _mm256_add_epi16(_mm256_maddubs_epi16(_mm256_and_si256(v, low), x[2 * i]),
                             _mm256_maddubs_epi16(upper, x[2 * i + 1])),
            ones);
    }
    const __m256i all =
        _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
    return _mm256_permutevar8x32_epi32(all, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Up to eight blocks of bytes. */
static inline __attribute__((always_inline)) __m256i qrows_bytes(const uint8_t *w, const int8_t *q,
                                                                 size_t n, __m256i flip)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i s[8];
    for (size_t i = 0; i < 8; i++) {
        if (i >= n) {
            s[i] = _mm256_setzero_si256();
            continue;
        }
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(w + 32 * i));
        const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(q + 32 * i));
        v = _mm256_xor_si256(v, flip);
        s[i] = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(v), _mm256_sign_epi8(x, v)),
                                 ones);
    }
    const __m256i a =
        _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
    const __m256i b =
        _mm256_hadd_epi32(_mm256_hadd_epi32(s[4], s[5]), _mm256_hadd_epi32(s[6], s[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31));
}

/* -- eight rows -- */

static inline void qrows_transpose(__m256 v[8])
{
    __m256 a[8], b[8];
    for (size_t i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
    for (size_t i = 0; i < 8; i += 4) {
        b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
        b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
    }
    for (size_t i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
}

/* d * (scale * (sum + zero * sum of q) + offset * sum of q) of eight blocks from `b` on of row
 * `row`, rounded after every step. */
static inline __attribute__((always_inline)) __m256 qrows_scaled(const oi_qtile *t, __m256i sum,
                                                                 size_t row, size_t b, __m256 d,
                                                                 __m256 of_q, int32_t zero)
{
    const size_t at = row * t->n_blocks + b;
    if (zero)
        sum = _mm256_add_epi32(
            sum, _mm256_mullo_epi32(_mm256_set1_epi32(zero), _mm256_cvtps_epi32(of_q)));
    __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(t->scale + at));
    if (t->has_offset)
        v = _mm256_add_ps(v, _mm256_mul_ps(_mm256_loadu_ps(t->offset + at), of_q));
    return _mm256_mul_ps(v, d);
}

/* Adds n <= 8 blocks from block b on to the sums of eight rows of w, from `row` on. */
static inline __attribute__((always_inline)) __m256 qrows_some(const oi_qtile *t, const int8_t *q,
                                                               const float *d, const float *sums,
                                                               size_t row, size_t b, size_t n,
                                                               size_t bits, int32_t zero,
                                                               __m256 acc)
{
    const __m256i flip = _mm256_set1_epi8((char)(zero == 0 ? 0 : bits == 4 ? 0x88 : 0x80));
    const __m256 by = _mm256_loadu_ps(d + b), of_q = _mm256_loadu_ps(sums + b);
    const size_t bytes = 4 * bits; /* of a block */
    __m256i x[8];
    __m256 v[8];
    if (bits == 4)
        qrows_x(q + 32 * b, n / 2, x);
    for (size_t i = 0; i < 8; i++) {
        const uint8_t *w = t->w[row + i] + b * bytes;
        for (size_t e = 0; t->next && e < n * bytes; e += 64)
            _mm_prefetch((const char *)w + t->next + e, _MM_HINT_T0);
        const __m256i sum =
            bits == 4 ? qrows_nibbles(w, x, n / 2, flip) : qrows_bytes(w, q + 32 * b, n, flip);
        v[i] = qrows_scaled(t, sum, row + i, b, by, of_q, zero);
    }
    qrows_transpose(v);
    for (size_t i = 0; i < n; i++)
        acc = _mm256_add_ps(acc, v[i]);
    return acc;
}

static inline __attribute__((always_inline)) void qrows_all(const oi_qtile *t, const oi_qtile_x *x,
                                                            size_t rows, size_t bits, int32_t zero,
                                                            float *out)
{
    const size_t blocks = t->n_blocks, k = 32 * blocks;
    for (size_t m = 0; m < x->n; m++)
        for (size_t row = 0; row < rows; row += 8) {
            const int8_t *q = x->q + m * k;
            const float *d = x->d + m * blocks, *sums = x->sums + m * blocks;
            __m256 acc = _mm256_setzero_ps();
            size_t b = 0;
            for (; b + 8 <= blocks; b += 8)
                acc = qrows_some(t, q, d, sums, row, b, 8, bits, zero, acc);
            if (b + 2 == blocks)
                acc = qrows_some(t, q, d, sums, row, b, 2, bits, zero, acc);
            else if (b < blocks)
                acc = qrows_some(t, q, d, sums, row, b, blocks - b, bits, zero, acc);
            _mm256_storeu_ps(out + m * rows + row, acc);
        }
}

/* `rows` rows of w, a multiple of 8, times few rows of x: out (n, rows). False: not these. */
static inline bool qrows_few(const oi_qtile *t, const oi_qtile_x *x, size_t rows, float *out)
{
    if (!x->q || t->group != 32 || (t->bits == 4 && t->n_blocks % 2))
        return false;
    if (t->bits == 4 && t->zero == 0)
        qrows_all(t, x, rows, 4, 0, out);
    else if (t->bits == 4)
        qrows_all(t, x, rows, 4, t->zero, out);
    else if (t->zero == 0)
        qrows_all(t, x, rows, 8, 0, out);
    else
        qrows_all(t, x, rows, 8, t->zero, out);
    return true;
}

#endif
#endif
