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

/* Loops whose few turns are known: their accumulators become registers. */
#if defined(__clang__)
#define OI_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define OI_UNROLL _Pragma("GCC unroll 8")
#else
#define OI_UNROLL
#endif

/* -- elements -- */

/* Two to a byte, the lower half first; i4 is two's complement. */
static void unpack4(size_t n, const uint8_t *w, bool is_signed, uint8_t *out)
{
    const uint8_t flip = is_signed ? 8 : 0;
    size_t i = 0;
#if defined(__AVX2__)
    const __m128i low = _mm_set1_epi8(15), sign = _mm_set1_epi8((char)flip);
    for (; i + 32 <= n; i += 32) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(w + i / 2));
        __m128i a = _mm_and_si128(v, low), b = _mm_and_si128(_mm_srli_epi16(v, 4), low);
        a = _mm_sub_epi8(_mm_xor_si128(a, sign), sign);
        b = _mm_sub_epi8(_mm_xor_si128(b, sign), sign);
        _mm_storeu_si128((__m128i *)(void *)(out + i), _mm_unpacklo_epi8(a, b));
        _mm_storeu_si128((__m128i *)(void *)(out + i + 16), _mm_unpackhi_epi8(a, b));
    }
#endif
    for (; i < n; i++)
        out[i] = (uint8_t)(((w[i / 2] >> i % 2 * 4 & 15) ^ flip) - flip);
}

static void halves(size_t n, const void *from, float *out)
{
    size_t i = 0;
    const char *p = from;
#if defined(__AVX2__)
    while (n >= 8 && i < n) { /* the last eight may meet those before */
        i = i + 8 <= n ? i : n - 8;
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 2 * i));
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(v));
        i += 8;
    }
#endif
    for (; i < n; i++) {
        uint16_t h;
        memcpy(&h, p + 2 * i, sizeof h);
        out[i] = oi_f32_of_f16(h);
    }
}

/* What the integers stand for. */
static void real_block(size_t n, const uint8_t *w, bool is_signed, float scale, float offset,
                       float *out)
{
    size_t i = 0;
#if defined(__AVX2__)
    const __m256 by = _mm256_set1_ps(scale), add = _mm256_set1_ps(offset);
    for (; i + 8 <= n; i += 8) {
        __m128i v = _mm_loadl_epi64((const __m128i *)(const void *)(w + i));
        __m256i wide = is_signed ? _mm256_cvtepi8_epi32(v) : _mm256_cvtepu8_epi32(v);
        _mm256_storeu_ps(out + i, _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(wide), by), add));
    }
#endif
    for (; i < n; i++)
        out[i] = scale * (is_signed ? (float)(int8_t)w[i] : (float)w[i]) + offset;
}

static void real(const oi_qdot_row *r, float *out)
{
    const uint8_t *w = r->w;
    for (size_t b = 0; b < r->n_blocks; b++, w += r->group, out += r->group) {
        float offset = r->offset ? r->offset[b] : 0;
        if (r->is_signed)
            real_block(r->group, w, true, r->scale[b], offset, out);
        else
            real_block(r->group, w, false, r->scale[b], offset, out);
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
    OI_UNROLL
    for (size_t m = 0; m < n_x; m++)
        for (size_t r = 0; r < OI_QDOT_ROWS; r++)
            acc[m][r] = _mm256_setzero_ps();
    for (; i + 8 <= k; i += 8)
        OI_UNROLL
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
static float dot_q8(const oi_qdot_row *r, const int16_t *q, const float *d, const float *of_q)
{
    float sum = 0;
    const uint8_t *w = r->w;
    for (size_t b = 0; b < r->n_blocks; b++, w += r->group, q += r->group) {
        float s = r->scale[b] * (float)block_sum(r->group, q, w, r->is_signed);
        sum += d[b] * (r->offset ? s + r->offset[b] * of_q[b] : s);
    }
    return sum;
}

#if defined(__AVX2__)

static inline __m256i at256(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* Eight lanes whose total is the integer sum of 32 products, exact: a sum of two products of 8 bits
 * stays within 16, as q is within +-127 and the unsigned side within 128. */
static inline __m256i sum_i8(const uint8_t *w, const int8_t *q)
{
    __m256i v = at256(w);
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(v), _mm256_sign_epi8(at256(q), v));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* 16 bytes of w hold 32 elements; q has the even ones of them first (see narrow). */
static inline __m256i sum_u4(const uint8_t *w, const int8_t *q, uint8_t flip)
{
    __m256i v = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)w));
    v = _mm256_srlv_epi32(v, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
    v = _mm256_and_si256(v, _mm256_set1_epi8(15));
    if (flip)
        v = _mm256_xor_si256(v, _mm256_set1_epi8((char)flip));
    return _mm256_madd_epi16(_mm256_maddubs_epi16(v, at256(q)), _mm256_set1_epi16(1));
}

static inline __m256i sum_wide(const uint8_t *w, const int16_t *q, bool is_signed)
{
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)w);
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(w + 16));
    __m256i x = is_signed ? _mm256_cvtepi8_epi16(a) : _mm256_cvtepu8_epi16(a);
    __m256i y = is_signed ? _mm256_cvtepi8_epi16(b) : _mm256_cvtepu8_epi16(b);
    return _mm256_add_epi32(_mm256_madd_epi16(x, at256(q)), _mm256_madd_epi16(y, at256(q + 16)));
}

/* Elements [at, at + 32) of a row, whatever holds them. */
static inline __m256i sum32(const oi_qdot_row *r, oi_qdot_kind kind, const oi_qdot_x *x, size_t m,
                            size_t at)
{
    const size_t k = r->n_blocks * r->group;
    switch (kind) {
    case OI_QDOT_U4: return sum_u4(r->w + at / 2, x->narrow + m * k + at, 0);
    case OI_QDOT_I4: return sum_u4(r->w + at / 2, x->narrow + m * k + at, 8);
    case OI_QDOT_I8: return sum_i8(r->w + at, x->narrow + m * k + at);
    default: return sum_wide(r->w + at, x->q + m * k + at, r->is_signed);
    }
}

/* i4 is read as i4 + 8: eight times the sum of q too much, taken off in the first lane. */
static inline __m256i less_eight(__m256i s, float sum_of_q)
{
    __m128i first = _mm_cvtsi32_si128(8 * (int32_t)sum_of_q);
    return _mm256_sub_epi32(s, _mm256_inserti128_si256(_mm256_setzero_si256(), first, 0));
}

/* Block b for up to four rows of x. The lanes of a block stay apart until the very end: each is far
 * below 2^24, so that a float holds it. */
static inline void q8_block(const oi_qdot_row *r, oi_qdot_kind kind, size_t group,
                            const oi_qdot_x *x, size_t m0, size_t n_x, size_t b, __m256 *acc)
{
    OI_UNROLL
    for (size_t m = 0; m < n_x; m++) {
        const size_t of = (m0 + m) * r->n_blocks + b;
        __m256i s = sum32(r, kind, x, m0 + m, b * group);
        for (size_t i = 32; i < group; i += 32)
            s = _mm256_add_epi32(s, sum32(r, kind, x, m0 + m, b * group + i));
        if (kind == OI_QDOT_I4)
            s = less_eight(s, x->sums[of]);
        __m256 by = _mm256_set1_ps(r->scale[b] * x->d[of]);
        acc[m] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(s), by, acc[m]);
    }
}

static inline void q8_tile(const oi_qdot_row *r, oi_qdot_kind kind, size_t group,
                           const oi_qdot_x *x, size_t m0, size_t n_x, float *sums)
{
    __m256 even[4], odd[4]; /* two chains: a sum waits for the one before it */
    size_t b = 0;
    OI_UNROLL
    for (size_t m = 0; m < n_x; m++)
        even[m] = odd[m] = _mm256_setzero_ps();
    for (; b + 2 <= r->n_blocks; b += 2) {
        q8_block(r, kind, group, x, m0, n_x, b, even);
        q8_block(r, kind, group, x, m0, n_x, b + 1, odd);
    }
    if (b < r->n_blocks)
        q8_block(r, kind, group, x, m0, n_x, b, even);
    OI_UNROLL
    for (size_t m = 0; m < n_x; m++)
        sums[m] = total(_mm256_add_ps(even[m], odd[m]));
}

static inline void q8_rows(const oi_qdot_row *r, oi_qdot_kind kind, size_t group,
                           const oi_qdot_x *x, float *sums)
{
    size_t m = 0;
    for (; m + 4 <= x->n; m += 4)
        q8_tile(r, kind, group, x, m, 4, sums + m);
    for (; m < x->n; m++)
        q8_tile(r, kind, group, x, m, 1, sums + m);
}

/* Blocks of 32 are the common case: then nothing is left to ask inside. */
static inline void q8_kind(const oi_qdot_row *r, oi_qdot_kind kind, const oi_qdot_x *x, float *sums)
{
    if (r->group == 32)
        q8_rows(r, kind, 32, x, sums);
    else
        q8_rows(r, kind, r->group, x, sums);
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

static void dots_q8_lanes(const oi_qdot_row *r, const oi_qdot_x *x, float *sums)
{
    switch (r->kind) {
    case OI_QDOT_U4: q8_kind(r, OI_QDOT_U4, x, sums); break;
    case OI_QDOT_I4: q8_kind(r, OI_QDOT_I4, x, sums); break;
    case OI_QDOT_I8: q8_kind(r, OI_QDOT_I8, x, sums); break;
    default: q8_kind(r, OI_QDOT_BYTES, x, sums); break;
    }
    for (size_t m = 0; r->offset && m < x->n; m++)
        sums[m] +=
            dot_offsets(r->n_blocks, r->offset, x->d + m * r->n_blocks, x->sums + m * r->n_blocks);
}

#endif

/* q in bytes, for kinds that want it so: of 32 the even ones first when w has two to a byte. */
static void narrow(size_t k, oi_qdot_kind kind, const int16_t *q, int8_t *out)
{
    for (size_t i = 0; i + 32 <= k; i += 32)
        for (size_t e = 0; e < 16; e++) {
            bool splits = kind != OI_QDOT_I8;
            out[i + e] = (int8_t)q[i + (splits ? 2 * e : e)];
            out[i + 16 + e] = (int8_t)q[i + (splits ? 2 * e + 1 : 16 + e)];
        }
}

/* Which kinds the sums below take as they are stored. */
static oi_qdot_kind kind_of(int t, size_t group)
{
#if defined(__AVX2__)
    if (group % 32 == 0)
        return t == OI_U4   ? OI_QDOT_U4
               : t == OI_I4 ? OI_QDOT_I4
               : t == OI_I8 ? OI_QDOT_I8
                            : OI_QDOT_BYTES;
#endif
    (void)t;
    (void)group;
    return OI_QDOT_BYTES;
}

/* One row of w against all rows of x. */
static void dots_q8(const oi_qdot_row *r, const oi_qdot_x *x, float *sums)
{
    const size_t k = r->n_blocks * r->group;
#if defined(__AVX2__)
    if (r->group % 32 == 0) {
        dots_q8_lanes(r, x, sums);
        return;
    }
#endif
    for (size_t m = 0; m < x->n; m++)
        sums[m] = dot_q8(r, x->q + m * k, x->d + m * r->n_blocks, x->sums + m * r->n_blocks);
}

extern const oi_qdot_fns OI_KERNEL(qdots);
const oi_qdot_fns OI_KERNEL(qdots) = {kind_of, unpack4,  halves, real,
                                      dots,    quantise, narrow, dots_q8};
