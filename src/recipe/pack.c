/* pack.c: filters and matrices of bytes in the orders that the bodies of bytes.h and of
 * avx512vnni/dot4.h stream them in. */
#include "recipe/pack.h"

static int32_t byte_of(const void *p, int64_t i, bool is_unsigned)
{
    return is_unsigned ? ((const uint8_t *)p)[i] : ((const int8_t *)p)[i];
}

/* Number i of run r of a filter, less its zero point: place by place of the window all channels. */
static int16_t filter_number(const oi_packing *p, const void *const *in, int64_t group, int64_t f,
                             int64_t r, int64_t i)
{
    const int64_t *n = p->sizes, tap = n[TAPS] / n[RUNS] * r + i / n[C], c = i % n[C];
    const int64_t filter = group * n[FILTERS] + f;
    if (f >= n[FILTERS] || i >= n[TAPS] / n[RUNS] * n[C])
        return 0;
    const int32_t zero = n[ZEROS] ? byte_of(in[1], n[ZEROS] > 1 ? filter : 0, n[UNSIGNED] != 0) : 0;
    return (
        int16_t)(byte_of(in[0], filter * n[STEP_FILTER] + c * n[STEP_C] + tap, n[UNSIGNED] != 0) -
                 zero);
}

/* Two vectors of filters at a time, or one where that is all that is left: a pair of each. */
void oi_pack_filters(const oi_packing *p, const void *const *in, void *out)
{
    const int64_t *n = p->sizes;
    int16_t *to = out;
    for (int64_t g = 0; g < n[GROUPS]; g++)
        for (int64_t f = 0; f < n[FILTERS]; f += 2 * n[LANES]) {
            const int64_t wide = n[FILTERS] - f > n[LANES] ? 2 * n[LANES] : n[LANES];
            for (int64_t r = 0; r < n[RUNS]; r++)
                for (int64_t i = 0; i < n[PAIRS]; i++)
                    for (int64_t k = 0; k < 2 * wide; k++)
                        *to++ = filter_number(p, in, g, f + k / 2, r, 2 * i + k % 2);
        }
}

/* Of every filter the sum less its zero point, the zero point with a sign, and whether one is not
 * 0. */
static void pack_totals(const oi_packing *p, const void *const *in, int32_t *to)
{
    const int64_t *n = p->sizes, filters = n[GROUPS] * n[FILTERS];
    to[2 * filters] = 0;
    for (int64_t f = 0; f < filters; f++) {
        const int32_t zero = n[ZEROS] ? byte_of(in[1], n[ZEROS] > 1 ? f : 0, n[UNSIGNED] != 0) : 0;
        int32_t sum = 0;
        for (int64_t i = 0; i < n[C] * n[TAPS]; i++) {
            const int64_t at = f * n[STEP_FILTER] + i / n[TAPS] * n[STEP_C] + i % n[TAPS];
            sum += byte_of(in[0], at, n[UNSIGNED] != 0) - zero;
        }
        to[f] = sum;
        to[filters + f] = n[UNSIGNED] ? zero - 128 : zero;
        to[2 * filters] |= to[filters + f];
    }
}

/* For 16 filters the 4-byte groups of `sizes[PAIRS]` planes at a time, tap by tap, as the
 * instruction has them, with signs; filters side by side, or with tiles planes. Then their totals.
 */
void oi_pack_dot4(const oi_packing *p, const void *const *in, void *out)
{
    const int64_t *n = p->sizes, deep = n[PAIRS], planes = n[RUNS] * deep;
    uint8_t *to = out;
    for (int64_t f = 0; f < n[GROUPS] * oi_pack_up(n[FILTERS], 16); f += 16)
        for (int64_t i = 0; i < planes * n[TAPS] * 16 * 4; i++) {
            const int64_t k = n[LANES] ? i / (4 * 16) % deep : i / 4 % deep;
            const int64_t each =
                f % oi_pack_up(n[FILTERS], 16) + (n[LANES] ? i / 4 % 16 : i / (4 * deep) % 16);
            const int64_t tap = i / (4 * deep * 16) % n[TAPS];
            const int64_t c = 4 * (i / (4 * deep * 16 * n[TAPS]) * deep + k) + i % 4;
            const int64_t filter = f / oi_pack_up(n[FILTERS], 16) * n[FILTERS] + each;
            const int64_t at = filter * n[STEP_FILTER] + c * n[STEP_C] + tap;
            const bool is_there = each < n[FILTERS] && c < n[C];
            *to++ = is_there ? ((const uint8_t *)in[0])[at] ^ (n[UNSIGNED] ? 128 : 0) : 0;
        }
    pack_totals(p, in, (int32_t *)(void *)to);
}

/* For 32 columns the planes of a matrix' 4-byte groups, unsigned; then totals. */
void oi_pack_dense_dot4(const oi_packing *p, const void *const *in, void *out)
{
    const int64_t *n = p->sizes, planes = n[PAIRS];
    uint8_t *to = out;
    for (int64_t i = 0; i < oi_pack_up(n[FILTERS], 32) * planes * 4; i++) {
        const int64_t f = i / (4 * 32 * planes) * 32 + i / 4 % 32;
        const int64_t c = i / (4 * 32) % planes * 4 + i % 4;
        const int64_t at = f * n[STEP_FILTER] + c * n[STEP_C];
        const bool is_there = f < n[FILTERS] && c < n[C];
        *to++ = is_there ? ((const uint8_t *)in[0])[at] ^ (n[UNSIGNED] ? 0 : 128) : 0;
    }
    int32_t *totals = (int32_t *)(void *)to;
    pack_totals(p, in, totals);
    for (int64_t f = 0; f < n[FILTERS]; f++)
        totals[n[FILTERS] + f] += 128;
}

/* Pairs of two rows of a filter, the last of an odd number with 0. */
void oi_pack_rows(const oi_packing *p, const void *const *in, void *out)
{
    const int64_t filters = p->sizes[0], kh = p->sizes[1], kw = p->sizes[2], zeros = p->sizes[4];
    const bool is_unsigned = p->sizes[3] != 0;
    int16_t *to = out;
    for (int64_t f = 0; f < filters; f++) {
        const int32_t zero = zeros ? byte_of(in[1], zeros > 1 ? f : 0, is_unsigned) : 0;
        for (int64_t i = 0; i < (kh + 1) / 2 * kw * 2; i++) {
            const int64_t y = i / (2 * kw) * 2 + i % 2, x = i / 2 % kw;
            const int64_t at = (f * kh + y) * kw + x;
            *to++ = y < kh ? (int16_t)(byte_of(in[0], at, is_unsigned) - zero) : 0;
        }
    }
}

/* Rows of every filter in 4-byte groups, signed; those of a filter of ones; then totals. */
void oi_pack_depthwise_dot4(const oi_packing *p, const void *const *in, void *out)
{
    const int64_t *n = p->sizes, kw = n[LANES], wide = oi_pack_up(kw, 4);
    uint8_t *to = out;
    for (int64_t f = 0; f <= n[FILTERS]; f++)
        for (int64_t i = 0; i < n[TAPS] / kw * wide; i++) {
            const int64_t at = f * n[TAPS] + i / wide * kw + i % wide;
            const bool is_one = f == n[FILTERS];
            *to++ = i % wide >= kw ? 0
                    : is_one       ? 1
                                   : ((const uint8_t *)in[0])[at] ^ (n[UNSIGNED] ? 128 : 0);
        }
    pack_totals(p, in, (int32_t *)(void *)to);
}

/* x_scale * w_scale / y_scale of every filter, as the op's definition computes it. */
void oi_pack_factors(const oi_packing *p, const void *const *in, void *out)
{
    const float *x = in[0], *w = in[1], *y = in[2];
    for (int64_t f = 0; f < p->sizes[0]; f++) {
        const float both = x[0] * w[p->sizes[1] > 1 ? f : 0];
        ((float *)out)[f] = both / y[0];
    }
}
