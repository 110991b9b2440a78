/* qdot.c: rows of weights in blocks: integers q that stand for scale * q + offset, where every
 * block of `group` elements along the row has its own scale and offset.
 *
 * The plain text below is the definition and runs on cpu:scalar: sums in index order, one block
 * after the other. With AVX2 the same sums run in lanes; the integer part is exact in both. */
#include "kernel/kernel.h"
#include "kernel/scalar.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* -- elements -- */

/* Two to a byte, the lower half first; i4 is two's complement. */
static void unpack4(size_t n, const uint8_t *w, bool is_signed, uint8_t *out)
{
    const uint8_t flip = is_signed ? 8 : 0;
    OI_ROW_LOOP
    for (size_t i = 0; i < n / 2; i++) {
        uint8_t b = w[i];
        out[2 * i] = (uint8_t)(((b & 15) ^ flip) - flip);
        out[2 * i + 1] = (uint8_t)(((b >> 4) ^ flip) - flip);
    }
    if (n % 2)
        out[n - 1] = (uint8_t)(((w[n / 2] & 15) ^ flip) - flip);
}

static void halves(size_t n, const void *from, float *out)
{
    size_t i = 0;
    const char *p = from;
#if defined(__AVX2__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(
            out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p + 2 * i))));
#endif
    for (; i < n; i++) {
        uint16_t h;
        memcpy(&h, p + 2 * i, sizeof h);
        out[i] = oi_f32_of_f16(h);
    }
}

/* What the integers stand for. */
static void real(const oi_qdot_row *r, const uint8_t *w, float *out)
{
    for (size_t b = 0; b < r->n_blocks; b++, w += r->group, out += r->group) {
        const float scale = r->scale[b], offset = r->offset ? r->offset[b] : 0;
        if (r->is_signed) {
            OI_ROW_LOOP
            for (size_t i = 0; i < r->group; i++)
                out[i] = scale * (float)(int8_t)w[i] + offset;
        } else {
            OI_ROW_LOOP
            for (size_t i = 0; i < r->group; i++)
                out[i] = scale * (float)w[i] + offset;
        }
    }
}

/* -- activations in 8 bits -- */

static uint32_t largest(size_t n, const float *x)
{
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = oi_bits_f32(x[i]) & 0x7fffffffu;
        top = u > top ? u : top;
    }
    return top;
}

/* q = x / d within +-127, where d = max|x| / 127 of the block; a block with anything not finite
 * has no numbers and d is NaN. */
static void quantise(size_t n_blocks, size_t group, const float *x, int16_t *q, float *d,
                     float *sums)
{
    for (size_t b = 0; b < n_blocks; b++, x += group, q += group) {
        uint32_t top = largest(group, x);
        int32_t sum = 0;
        d[b] = oi_float_f32(top) / 127.0f;
        if (top >= 0x7f800000u)
            d[b] = NAN;
        if (!(d[b] > 0)) {
            memset(q, 0, group * sizeof *q);
            sums[b] = 0;
            continue;
        }
        const float by = d[b];
        for (size_t i = 0; i < group; i++) {
            float v = oi_round_away_f32(x[i] / by);
            v = v > 127 ? 127 : v < -127 ? -127 : v;
            q[i] = (int16_t)v;
        }
        for (size_t i = 0; i < group; i++)
            sum += q[i];
        sums[b] = (float)sum;
    }
}

/* -- sums -- */

#if !defined(__AVX2__)

/* sums[m * OI_QDOT_ROWS + r] = row r of w times row m of x. */
static void dots(size_t k, const float *w, const float *x, size_t n_x, float *sums)
{
    for (size_t m = 0; m < n_x; m++)
        for (size_t r = 0; r < OI_QDOT_ROWS; r++) {
            float sum = 0;
            for (size_t i = 0; i < k; i++)
                sum += x[m * k + i] * w[r * k + i];
            sums[m * OI_QDOT_ROWS + r] = sum;
        }
}

#else

static float total(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* One or two rows of x, so that a loaded weight serves both. */
static inline void dots_of(size_t k, const float *w, const float *x, size_t n_x, float *sums)
{
    __m256 acc[2][OI_QDOT_ROWS];
    size_t i = 0;
    for (size_t m = 0; m < n_x; m++)
        for (size_t r = 0; r < OI_QDOT_ROWS; r++)
            acc[m][r] = _mm256_setzero_ps();
    for (; i + 8 <= k; i += 8)
        for (size_t r = 0; r < OI_QDOT_ROWS; r++) {
            __m256 v = _mm256_loadu_ps(w + r * k + i);
            for (size_t m = 0; m < n_x; m++)
                acc[m][r] = _mm256_fmadd_ps(v, _mm256_loadu_ps(x + m * k + i), acc[m][r]);
        }
    for (size_t m = 0; m < n_x; m++)
        for (size_t r = 0; r < OI_QDOT_ROWS; r++) {
            float sum = total(acc[m][r]);
            for (size_t j = i; j < k; j++)
                sum += x[m * k + j] * w[r * k + j];
            sums[m * OI_QDOT_ROWS + r] = sum;
        }
}

static void dots(size_t k, const float *w, const float *x, size_t n_x, float *sums)
{
    size_t m = 0;
    for (; m + 2 <= n_x; m += 2)
        dots_of(k, w, x + m * k, 2, sums + m * OI_QDOT_ROWS);
    if (m < n_x)
        dots_of(k, w, x + m * k, 1, sums + m * OI_QDOT_ROWS);
}

#endif

/* The block's integer sum of q * w. */
static inline int32_t block_sum(size_t n, const int16_t *q, const uint8_t *w, bool is_signed)
{
    int32_t sum = 0;
    if (is_signed)
        for (size_t i = 0; i < n; i++)
            sum += q[i] * (int8_t)w[i];
    else
        for (size_t i = 0; i < n; i++)
            sum += q[i] * w[i];
    return sum;
}

/* sum over blocks of d * (scale * sum(q w) + offset * sum(q)) */
static float dot_q8(const oi_qdot_row *r, const uint8_t *w, const int16_t *q, const float *d,
                    const float *of_q)
{
    float sum = 0;
    for (size_t b = 0; b < r->n_blocks; b++, w += r->group, q += r->group) {
        float s = r->scale[b] * (float)block_sum(r->group, q, w, r->is_signed);
        sum += d[b] * (r->offset ? s + r->offset[b] * of_q[b] : s);
    }
    return sum;
}

#if defined(__AVX2__)

static inline __m256i wide(const uint8_t *w, bool is_signed)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)w);
    return is_signed ? _mm256_cvtepi8_epi16(v) : _mm256_cvtepu8_epi16(v);
}

/* Up to four rows of x against one of w. Lanes of a block stay apart until the very end: each is
 * far below 2^24, so a float holds it. */
static inline void dots_q8_of(const oi_qdot_row *r, const uint8_t *w, bool is_signed,
                              const int16_t *q, const float *d, size_t n_x, float *sums)
{
    const size_t k = r->n_blocks * r->group;
    __m256 acc[4];
    for (size_t m = 0; m < n_x; m++)
        acc[m] = _mm256_setzero_ps();
    for (size_t b = 0, at = 0; b < r->n_blocks; b++) {
        __m256i s[4];
        for (size_t m = 0; m < n_x; m++)
            s[m] = _mm256_setzero_si256();
        for (size_t end = at + r->group; at < end; at += 16) {
            __m256i v = wide(w + at, is_signed);
            for (size_t m = 0; m < n_x; m++) {
                __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(q + m * k + at));
                s[m] = _mm256_add_epi32(s[m], _mm256_madd_epi16(v, x));
            }
        }
        for (size_t m = 0; m < n_x; m++)
            acc[m] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(s[m]),
                                     _mm256_set1_ps(d[m * r->n_blocks + b] * r->scale[b]), acc[m]);
    }
    for (size_t m = 0; m < n_x; m++)
        sums[m] = total(acc[m]);
}

static inline void dots_q8_rows(const oi_qdot_row *r, const uint8_t *w, bool is_signed,
                                const int16_t *q, const float *d, size_t n_x, float *sums)
{
    const size_t k = r->n_blocks * r->group;
    size_t m = 0;
    for (; m + 4 <= n_x; m += 4)
        dots_q8_of(r, w, is_signed, q + m * k, d + m * r->n_blocks, 4, sums + m);
    for (; m < n_x; m++)
        dots_q8_of(r, w, is_signed, q + m * k, d + m * r->n_blocks, 1, sums + m);
}

/* What the offsets add: sum over blocks of d * offset * sum(q). */
static float dot_offsets(size_t n, const float *offset, const float *d, const float *of_q)
{
    __m256 acc = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        acc = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_loadu_ps(d + i), _mm256_loadu_ps(of_q + i)),
                              _mm256_loadu_ps(offset + i), acc);
    float sum = total(acc);
    for (; i < n; i++)
        sum += d[i] * of_q[i] * offset[i];
    return sum;
}

static bool dots_q8_lanes(const oi_qdot_row *r, const uint8_t *w, const int16_t *q, const float *d,
                          const float *of_q, size_t n_x, float *sums)
{
    if (r->group % 16)
        return false;
    if (r->is_signed)
        dots_q8_rows(r, w, true, q, d, n_x, sums);
    else
        dots_q8_rows(r, w, false, q, d, n_x, sums);
    for (size_t m = 0; r->offset && m < n_x; m++)
        sums[m] += dot_offsets(r->n_blocks, r->offset, d + m * r->n_blocks, of_q + m * r->n_blocks);
    return true;
}

#endif

/* One row of w against n_x rows of x. */
static void dots_q8(const oi_qdot_row *r, const uint8_t *w, const int16_t *q, const float *d,
                    const float *of_q, size_t n_x, float *sums)
{
    const size_t k = r->n_blocks * r->group;
#if defined(__AVX2__)
    if (dots_q8_lanes(r, w, q, d, of_q, n_x, sums))
        return;
#endif
    for (size_t m = 0; m < n_x; m++)
        sums[m] = dot_q8(r, w, q + m * k, d + m * r->n_blocks, of_q + m * r->n_blocks);
}

extern const oi_qdot_fns OI_KERNEL(qdots);
const oi_qdot_fns OI_KERNEL(qdots) = {unpack4, halves, real, quantise, dots, dots_q8};
