/* math.h: the mathematical helpers of the meaning language, spelled in C (see scalar.h).
 *
 * For f32 they are written out here, so that every target computes the same bits from the same
 * text, a microcontroller needs no libm, and a row's loop vectorises: no branches, no tables but
 * one, both sides of a choice computed. All are within 2 ulp of the exact result and take NaN,
 * infinities, zeros, subnormals and huge arguments as C99 says (math_test.c). All compute in f32
 * and 32-bit integers alone, because microcontrollers and GPUs have no fast f64, or none: where 24
 * bits are too few, a number is an unevaluated sum of two floats. f64 calls libm. */
#ifndef OI_MATH_H
#define OI_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t oi_bits_f32(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static inline float oi_float_f32(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

static inline uint64_t oi_bits_f64(double v)
{
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static inline double oi_float_f64(uint64_t u)
{
    double v;
    memcpy(&v, &u, sizeof v);
    return v;
}

static inline float oi_magnitude_f32(float x)
{
    return oi_float_f32(oi_bits_f32(x) & 0x7fffffffu);
}

/* Integers in the order of floats: -0 is below 0, a NaN above all others, or below all others. */
static inline int32_t oi_high_key_f32(float x)
{
    const uint32_t u = oi_bits_f32(x), flip = (uint32_t)((int32_t)u >> 31) & 0x7fffffffu;
    return (int32_t)(x != x ? u & 0x7fffffffu : u ^ flip);
}

static inline int32_t oi_low_key_f32(float x)
{
    const uint32_t u = oi_bits_f32(x), flip = (uint32_t)((int32_t)u >> 31) & 0x7fffffffu;
    return (int32_t)(x != x ? ~(u & 0x7fffffffu) : u ^ flip);
}

/* The same for positions: zeros are equal, and so are NaNs. */
static inline int32_t oi_rank_f32(float x)
{
    return x != x ? INT32_MAX : oi_high_key_f32(x + 0.0f);
}

static inline float oi_of_key_f32(int32_t k)
{
    return oi_float_f32((uint32_t)k ^ ((uint32_t)(k >> 31) & 0x7fffffffu));
}

/* |x| with the sign of s */
static inline float oi_signed_f32(float x, float s)
{
    return oi_float_f32((oi_bits_f32(x) & 0x7fffffffu) | (oi_bits_f32(s) & 0x80000000u));
}

static inline uint32_t oi_mul_high_u32(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

/* -- sums of two floats: hi is the number rounded, lo what that lost -- */

typedef struct oi_pair {
    float hi, lo;
} oi_pair;

/* a + b, exactly. |a| >= |b|, or a is 0. */
static inline oi_pair oi_pair_sum(float a, float b)
{
    float s = a + b;
    return (oi_pair){.hi = s, .lo = b - (s - a)};
}

/* The upper 12 of 24 bits: a product of two such is exact, and so is what they leave. */
static inline float oi_upper_f32(float x)
{
    return oi_float_f32(oi_bits_f32(x) & 0xfffff000u);
}

/* a b, exactly but for underflow */
static inline oi_pair oi_pair_product(float a, float b)
{
    float p = a * b, ah = oi_upper_f32(a), bh = oi_upper_f32(b), al = a - ah, bl = b - bh;
    return (oi_pair){.hi = p, .lo = (((ah * bh - p) + ah * bl) + al * bh) + al * bl};
}

static inline oi_pair oi_pair_quotient(oi_pair n, oi_pair d)
{
    float q = n.hi / d.hi;
    oi_pair p = oi_pair_product(q, d.hi);
    float rest = ((n.hi - p.hi) - p.lo) + (n.lo - q * d.lo);
    return oi_pair_sum(q, rest / d.hi);
}

static inline oi_pair oi_pair_sqrt(oi_pair v)
{
    float s = sqrtf(v.hi), twice = s > 0.0f ? s + s : 1.0f;
    oi_pair p = oi_pair_product(s, s);
    return oi_pair_sum(s, (((v.hi - p.hi) - p.lo) + v.lo) / twice);
}

/* -- exponentials -- */

/* e^r with r = c - n ln2, |r| <= ln2 / 2 */
static inline float oi_exp_rest_f32(float c, float n)
{
    float r = (c - n * 0x1.62e4p-1f) - n * 1.42860682e-06f;
    float q = 0.00139507239f;
    q = q * r + 0.00836902505f;
    q = q * r + 0.0416662023f;
    q = q * r + 0.166665177f;
    q = q * r + 0.5f;
    return 1.0f + (r + r * r * q);
}

/* e^c = 2^n e^r, for c within -104 ... 89, beyond which it is 0 or inf. Adding 1.5 * 2^23 rounds to
 * a whole number, which then stands in the low bits; two factors reach the subnormals. */
static inline float oi_exp_f32(float x)
{
    const float whole = 12582912.0f;
    float c = x < -104.0f ? -104.0f : x;
    c = c > 89.0f ? 89.0f : c;
    float t = c * 1.44269504f + whole, p = oi_exp_rest_f32(c, t - whole);
    int32_t k = (int32_t)(oi_bits_f32(t) - 0x4b400000u), half = k >> 1;
    return p * oi_float_f32((uint32_t)(half + 127) << 23) *
           oi_float_f32((uint32_t)(k - half + 127) << 23);
}

/* e^-|x|, with fewer steps: n is not above 0, so that 2^(n + 64) and 2^-64 will do */
static inline float oi_exp_below_f32(float x)
{
    const float whole = 12582912.0f;
    float c = -oi_magnitude_f32(x);
    c = c < -104.0f ? -104.0f : c;
    float t = c * 1.44269504f + whole, p = oi_exp_rest_f32(c, t - whole);
    return p * oi_float_f32((oi_bits_f32(t) << 23) + (191u << 23)) * 0x1p-64f;
}

static inline float oi_expm1_f32(float x)
{
    float q = 0.000199928963f;
    q = q * x + 0.00139974568f;
    q = q * x + 0.008333073f;
    q = q * x + 0.0416653155f;
    q = q * x + 0.16666668f;
    q = q * x + 0.5f;
    float small = x + x * x * q, large = oi_exp_f32(x) - 1.0f;
    return oi_signed_f32(oi_magnitude_f32(x) < 0.5f ? small : large, x);
}

/* The division's own rounding is undone with what 1 + e lost. */
static inline float oi_sigmoid_f32(float x)
{
    float e = oi_exp_below_f32(x);
    float d = 1.0f + e, lost = e - (d - 1.0f);
    float q = (x < 0.0f ? e : 1.0f) / d;
    return q - q * lost;
}

static inline float oi_tanh_f32(float x)
{
    float a = oi_magnitude_f32(x), z = a * a;
    float p = -0.0059058606f;
    p = p * z + 0.0208053775f;
    p = p * z - 0.0537866814f;
    p = p * z + 0.133319582f;
    p = p * z - 0.333332993f;
    float small = a + a * z * p, large = 1.0f - 2.0f / (oi_exp_f32(2.0f * a) + 1.0f);
    return oi_signed_f32(a < 0.6f ? small : large, x);
}

/* -- logarithms -- */

/* x = 2^e m with m in sqrt(1/2) ... sqrt(2); log m = f - f^2 / 2 + f^3 P(f), f = m - 1 */
static inline float oi_log_f32(float x)
{
    float s = x < 0x1p-126f ? x * 0x1p23f : x;
    uint32_t u = oi_bits_f32(s) + (0x3f800000u - 0x3f3504f3u);
    float e = (float)((int32_t)(u >> 23) - 127) - (x < 0x1p-126f ? 23.0f : 0.0f);
    float f = oi_float_f32((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f, z = f * f;
    float p = 0.0675753089f;
    p = p * f - 0.116943244f;
    p = p * f + 0.118935249f;
    p = p * f - 0.124030863f;
    p = p * f + 0.142185529f;
    p = p * f - 0.166680902f;
    p = p * f + 0.200021671f;
    p = p * f - 0.250000087f;
    p = p * f + 0.33333312f;
    float y = f * z * p + e * 1.42860682e-06f;
    float r = (f + (y - 0.5f * z)) + e * 0x1.62e4p-1f;
    r = x < INFINITY ? r : x; /* inf and NaN stay */
    r = x < 0.0f ? NAN : r;
    return x == 0.0f ? -INFINITY : r;
}

/* log(1 + x), with what the sum lost */
static inline float oi_log1p_f32(float x)
{
    float u = 1.0f + x, r = oi_log_f32(u), lost = (x - (u - 1.0f)) / u;
    r = r + (oi_magnitude_f32(r) < INFINITY ? lost : 0.0f);
    return x == 0.0f ? x : r;
}

/* log(1 + e^x) */
static inline float oi_softplus_f32(float x)
{
    float rest = oi_log1p_f32(oi_exp_f32(-oi_magnitude_f32(x)));
    return x > 0.0f ? x + rest : rest;
}

/* -- error function -- */

/* Further out it is 1 - erfc, whose eighth root is nearly a parabola. */
static inline float oi_erf_f32(float x)
{
    float a = oi_magnitude_f32(x), t = a > 4.0f ? 4.0f : a, z = a * a;
    float p = 6.49837093e-05f;
    p = p * z - 0.000754678505f;
    p = p * z + 0.00512832589f;
    p = p * z - 0.0268176701f;
    p = p * z + 0.112825952f;
    p = p * z - 0.376125276f;
    p = p * z + 0.128379151f;
    float q = 0.000167806182f;
    q = q * t - 0.00266608619f;
    q = q * t + 0.0138021735f;
    q = q * t - 0.0134179592f;
    q = q * t - 0.0587947927f;
    q = q * t - 0.146834105f;
    q = q * t + 1.00132406f;
    q = q * q;
    q = q * q;
    return oi_signed_f32(a < 1.1875f ? a + a * p : 1.0f - q * q, x);
}

/* -- angles -- */

/* x in quarter turns: the nearest whole number, and the rest as an angle hi + lo.
 *
 * x = m * 2^k with an integer m, so only those bits of 2/pi matter that lie below 4 after the
 * multiplication: 96 of them, cut from a table where the exponent says, give 64 bits of the product
 * for every x, however large. */
typedef struct oi_turn {
    float hi, lo;
    uint32_t quarter;
} oi_turn;

static const uint32_t oi_two_over_pi[8] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                           0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};

/* 32 bits from the middle of two words; `down` is 1 ... 32 */
static inline uint32_t oi_two_over_pi_at(uint32_t at, uint32_t down)
{
    return oi_two_over_pi[at] << (32 - down) | oi_two_over_pi[at + 1] >> (down - 1) >> 1;
}

static inline oi_turn oi_turn_f32(float x)
{
    uint32_t u = oi_bits_f32(x) & 0x7fffffffu, e = u >> 23, m = (u & 0x7fffffu) | 0x800000u;
    e = e < 126 ? 126 : e > 254 ? 254 : e;
    uint32_t at = (e - 120) >> 5, down = 32 - ((e - 120) & 31);
    uint32_t a = oi_two_over_pi_at(at, down), b = oi_two_over_pi_at(at + 1, down),
             c = oi_two_over_pi_at(at + 2, down);
    uint32_t carried = oi_mul_high_u32(m, c), low = m * b + carried;
    uint32_t top = m * a + oi_mul_high_u32(m, b) + (low < carried ? 1u : 0u);
    /* top: 2 bits of quarters, 30 of their fraction, which rounding makes signed */
    int32_t part = (int32_t)(top << 2 | low >> 30);
    int32_t twelve = ((part >> 19) + 1) >> 1;
    float coarse = (float)twelve;
    oi_pair fine = oi_pair_sum((float)(int32_t)((uint32_t)part - ((uint32_t)twelve << 20)),
                               (float)(low << 2) * 0x1p-32f);
    oi_pair small = oi_pair_product(fine.hi, 0x1.921fb6p-32f);
    float rest = small.lo + (fine.lo * 0x1.921fb6p-32f - fine.hi * 0x1.777a5cp-57f);
    oi_pair sum = oi_pair_sum(coarse * 0x1.92p-12f, small.hi); /* exact: 12 bits times 12 */
    sum = oi_pair_sum(sum.hi, sum.lo + (coarse * 0x1.fb5444p-24f + rest));
    int is_small = u < 0x3f490fdbu; /* pi / 4 */
    return (oi_turn){.hi = is_small ? oi_float_f32(u) : sum.hi,
                     .lo = is_small ? 0.0f : sum.lo,
                     .quarter = is_small ? 0 : (top + 0x20000000u) >> 30};
}

/* hi + lo, where lo is not always small */
static inline oi_pair oi_sine_of_turn(oi_turn t)
{
    float z = t.hi * t.hi;
    float s = 2.71823719e-06f;
    s = s * z - 0.000198393271f;
    s = s * z + 0.00833332936f;
    s = s * z - 0.166666666f;
    return (oi_pair){.hi = t.hi, .lo = t.hi * z * s + t.lo * (1.0f - 0.5f * z)};
}

static inline oi_pair oi_cosine_of_turn(oi_turn t)
{
    float z = t.hi * t.hi, half = 0.5f * z, w = 1.0f - half;
    float c = 2.44377282e-05f;
    c = c * z - 0.00138873614f;
    c = c * z + 0.0416666467f;
    return (oi_pair){.hi = w, .lo = ((1.0f - w) - half) + (z * z * c - t.hi * t.lo)};
}

static inline float oi_sin_of_turn(oi_turn t)
{
    oi_pair sine = oi_sine_of_turn(t), cosine = oi_cosine_of_turn(t);
    float r = t.quarter & 1 ? cosine.hi + cosine.lo : sine.hi + sine.lo;
    return oi_float_f32(oi_bits_f32(r) ^ (t.quarter & 2) << 30);
}

static inline float oi_sin_f32(float x)
{
    float r = oi_sin_of_turn(oi_turn_f32(x));
    r = oi_float_f32(oi_bits_f32(r) ^ (oi_bits_f32(x) & 0x80000000u));
    return oi_magnitude_f32(x) < INFINITY ? r : NAN;
}

static inline float oi_cos_f32(float x)
{
    oi_turn t = oi_turn_f32(x);
    t.quarter++;
    float r = oi_sin_of_turn(t);
    return oi_magnitude_f32(x) < INFINITY ? r : NAN;
}

static inline float oi_tan_f32(float x)
{
    oi_turn t = oi_turn_f32(x);
    oi_pair sine = oi_sine_of_turn(t), cosine = oi_cosine_of_turn(t);
    int is_odd = (int)(t.quarter & 1);
    float n = is_odd ? -cosine.hi : sine.hi, n_lo = is_odd ? -cosine.lo : sine.lo;
    float d = is_odd ? sine.hi : cosine.hi, d_lo = is_odd ? sine.lo : cosine.lo;
    oi_pair q = oi_pair_quotient(oi_pair_sum(n, n_lo), oi_pair_sum(d, d_lo));
    float r = q.hi + q.lo;
    r = oi_float_f32(oi_bits_f32(r) ^ (oi_bits_f32(x) & 0x80000000u));
    r = oi_magnitude_f32(x) < 0x1p-40f ? x : r; /* the products underflow */
    return oi_magnitude_f32(x) < INFINITY ? r : NAN;
}

/* -- inverse functions of angles -- */

/* The angle of the point (x, y), not both 0: an eighth of a turn at a time, in which the tangent t
 * is at most tan(pi / 8), and atan t = t + t^3 P(t^2). */
static inline float oi_angle_f32(oi_pair y, oi_pair x)
{
    float ys = oi_bits_f32(y.hi) >> 31 ? -1.0f : 1.0f, xs = oi_bits_f32(x.hi) >> 31 ? -1.0f : 1.0f;
    float a = ys * y.hi, a_lo = ys * y.lo, b = xs * x.hi, b_lo = xs * x.lo;
    int swaps = a > b;
    float low = swaps ? b : a, low_lo = swaps ? b_lo : a_lo;
    float high = swaps ? a : b, high_lo = swaps ? a_lo : b_lo;
    int shifts = low > 0.41421356f * high;
    oi_pair up = oi_pair_sum(high, low), down = oi_pair_sum(-high, low);
    oi_pair n = (oi_pair){.hi = shifts ? down.hi : low,
                          .lo = shifts ? down.lo + (low_lo - high_lo) : low_lo};
    oi_pair d =
        (oi_pair){.hi = shifts ? up.hi : high, .lo = shifts ? up.lo + (low_lo + high_lo) : high_lo};
    oi_pair t = oi_pair_quotient(n, d);
    float z = t.hi * t.hi;
    float p = -0.064310387f;
    p = p * z + 0.107373968f;
    p = p * z - 0.142633662f;
    p = p * z + 0.199995235f;
    p = p * z - 0.333333313f;
    float rest = t.lo + t.hi * z * p;
    float eighths = shifts ? 1.0f : 0.0f, turns = 1.0f;
    eighths = swaps ? 2.0f - eighths : eighths;
    turns = swaps ? -turns : turns;
    eighths = xs < 0.0f ? 4.0f - eighths : eighths;
    turns = xs * turns;
    oi_pair r = oi_pair_sum(eighths * 0x1.921fap-1f, turns * t.hi); /* exact: 21 bits times 2 */
    return ys * (r.hi + (r.lo + (eighths * 0x1.51110ap-21f + turns * rest)));
}

static inline float oi_atan_f32(float x)
{
    float a = oi_magnitude_f32(x), c = a < 0x1p40f ? a : 0x1p40f;
    float r = oi_angle_f32((oi_pair){.hi = c, .lo = 0.0f}, (oi_pair){.hi = 1.0f, .lo = 0.0f});
    r = a < 0x1p-40f || a != a ? a : r;
    return oi_signed_f32(r, x);
}

/* Zeros and infinities as C99 has them: both are angles of the same point, far or near. The larger
 * magnitude is scaled to 2 ... 4, so that nothing underflows that counts. */
static inline float oi_atan2_f32(float y, float x)
{
    float a = oi_magnitude_f32(y), b = oi_magnitude_f32(x);
    int far = a == INFINITY || b == INFINITY, near = a == 0.0f && b == 0.0f;
    uint32_t e = oi_bits_f32(a > b ? a : b) >> 23;
    float scale = oi_float_f32((255u - (e < 1u ? 1u : e > 254u ? 254u : e)) << 23);
    float p = far ? (a == INFINITY ? 1.0f : 0.0f) : a * scale;
    float q = far ? (b == INFINITY ? 1.0f : 0.0f) : near ? 1.0f : b * scale;
    oi_pair at = (oi_pair){.hi = oi_signed_f32(q, x), .lo = 0.0f};
    float r = oi_angle_f32((oi_pair){.hi = p, .lo = 0.0f}, at);
    r = x > 0.0f && a < b * 0x1p-30f ? a / b : r; /* which may be subnormal */
    r = a != a ? a : b != b ? b : r;
    return oi_signed_f32(r, y);
}

/* sqrt(1 - x^2) */
static inline oi_pair oi_other_side_f32(float x)
{
    oi_pair square = oi_pair_product(x, x), rest = oi_pair_sum(1.0f, -square.hi);
    return oi_pair_sqrt((oi_pair){.hi = rest.hi, .lo = rest.lo - square.lo});
}

static inline float oi_asin_f32(float x)
{
    float r = oi_angle_f32((oi_pair){.hi = x, .lo = 0.0f}, oi_other_side_f32(x));
    r = oi_magnitude_f32(x) < 0x1p-40f ? x : r;
    return oi_magnitude_f32(x) <= 1.0f ? oi_signed_f32(r, x) : NAN;
}

static inline float oi_acos_f32(float x)
{
    float r = oi_angle_f32(oi_other_side_f32(x), (oi_pair){.hi = x, .lo = 0.0f});
    return oi_magnitude_f32(x) <= 1.0f ? r : NAN;
}

/* -- hyperbolic functions -- */

/* e^(c + lo - n ln2) to some 30 bits, for |c| up to 150 and a small lo */
static inline oi_pair oi_exp_pair(float c, float lo, float n)
{
    float a = c - n * 0x1.62e4p-1f, b = n * 1.42860682e-06f, rest = a - b;
    oi_pair x = oi_pair_sum(rest, ((a - rest) - b) + lo);
    float r = x.hi, r_lo = x.lo;
    float q = 0.000198911803f;
    q = q * r + 0.00139338209f;
    q = q * r + 0.00833331048f;
    q = q * r + 0.041666463f;
    q = q * r + 0.166666672f;
    oi_pair half = oi_pair_product(0.5f * r, r); /* 1 + r + r^2 / 2 + r^3 q */
    oi_pair more = oi_pair_sum(r, half.hi), one = oi_pair_sum(1.0f, more.hi);
    return oi_pair_sum(one.hi,
                       one.lo + (more.lo + (half.lo + (r * r * r * q + (r_lo + r * r_lo)))));
}

/* v 2^k, rounded once where that is subnormal */
static inline float oi_scaled_f32(float v, int32_t k)
{
    int32_t half = k >> 1;
    return v * oi_float_f32((uint32_t)(half + 127) << 23) *
           oi_float_f32((uint32_t)(k - half + 127) << 23);
}

/* e^|x| / 2 */
static inline oi_pair oi_half_exp_f32(float x)
{
    const float whole = 12582912.0f;
    float a = oi_magnitude_f32(x), c = a < 90.0f ? a : 90.0f, t = c * 1.44269504f + whole;
    oi_pair e = oi_exp_pair(c, 0.0f, t - whole);
    int32_t k = (int32_t)(oi_bits_f32(t) - 0x4b400000u) - 1;
    return (oi_pair){.hi = oi_scaled_f32(e.hi, k), .lo = oi_scaled_f32(e.lo, k)};
}

static inline float oi_sinh_f32(float x)
{
    float a = oi_magnitude_f32(x), z = a * a;
    float p = 2.80628024e-06f;
    p = p * z + 0.000198381021f;
    p = p * z + 0.00833333936f;
    p = p * z + 0.166666672f;
    oi_pair e = oi_half_exp_f32(x);
    float small = a + a * z * p, large = e.hi + (e.lo - 0.25f / e.hi);
    float r = a < 1.0f ? small : large;
    return x == x ? oi_signed_f32(r, x) : x;
}

static inline float oi_cosh_f32(float x)
{
    oi_pair e = oi_half_exp_f32(x);
    float r = e.hi + (e.lo + 0.25f / e.hi);
    return x == x ? r : x;
}

/* log(2^more (1 + w)) for w above -1, as oi_log_f32, with what 1 + w loses */
static inline float oi_log1p_pair(oi_pair w, float more)
{
    float big = w.hi > 1.0f ? w.hi : 1.0f, less = w.hi > 1.0f ? 1.0f : w.hi;
    oi_pair s = oi_pair_sum(big, less);
    uint32_t u = oi_bits_f32(s.hi) + (0x3f800000u - 0x3f3504f3u);
    float e = (float)((int32_t)(u >> 23) - 127) + more;
    float f = oi_float_f32((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f, z = f * f;
    float p = 0.0675753089f;
    p = p * f - 0.116943244f;
    p = p * f + 0.118935249f;
    p = p * f - 0.124030863f;
    p = p * f + 0.142185529f;
    p = p * f - 0.166680902f;
    p = p * f + 0.200021671f;
    p = p * f - 0.250000087f;
    p = p * f + 0.33333312f;
    float y = (f * z * p + e * 1.42860682e-06f) + (s.lo + w.lo) / s.hi;
    return (f + (y - 0.5f * z)) + e * 0x1.62e4p-1f;
}

/* log(1 + w), w = x + (sqrt(x^2 + 1) - 1); far out log 2x */
static inline float oi_asinh_f32(float x)
{
    float a = oi_magnitude_f32(x), c = a < 4096.0f ? a : 4096.0f;
    oi_pair square = oi_pair_product(c, c);
    float big = c > 1.0f ? square.hi : 1.0f, less = c > 1.0f ? 1.0f : square.hi;
    oi_pair sum = oi_pair_sum(big, less);
    oi_pair root = oi_pair_sqrt((oi_pair){.hi = sum.hi, .lo = sum.lo + square.lo});
    float above = root.hi - 1.0f;
    oi_pair w = oi_pair_sum(c > above ? c : above, c > above ? above : c);
    int is_far = a >= 4096.0f;
    w = oi_pair_sum(is_far ? a : w.hi, is_far ? -1.0f : w.lo + root.lo);
    float r = oi_log1p_pair(w, is_far ? 1.0f : 0.0f);
    r = a < 0x1p-40f || !(a < INFINITY) ? a : r;
    return oi_signed_f32(r, x);
}

/* log(1 + w), w = t + sqrt(t^2 + 2 t), t = x - 1; far out log 2x */
static inline float oi_acosh_f32(float x)
{
    float c = x < 4096.0f ? x : 4096.0f, t = c - 1.0f, twice = t + t;
    oi_pair square = oi_pair_product(t, t);
    float big = twice > square.hi ? twice : square.hi, less = twice > square.hi ? square.hi : twice;
    oi_pair sum = oi_pair_sum(big, less);
    oi_pair root = oi_pair_sqrt(oi_pair_sum(sum.hi, sum.lo + square.lo));
    oi_pair w = oi_pair_sum(root.hi, t);
    int is_far = x >= 4096.0f;
    w = oi_pair_sum(is_far ? x : w.hi, is_far ? -1.0f : w.lo + root.lo);
    float r = oi_log1p_pair(w, is_far ? 1.0f : 0.0f);
    r = x < INFINITY ? r : x;
    return x < 1.0f ? NAN : r;
}

/* log((1 + x) / (1 - x)) / 2 */
static inline float oi_atanh_f32(float x)
{
    float a = oi_magnitude_f32(x), c = a < 1.0f ? a : 0.0f;
    oi_pair n = (oi_pair){.hi = c + c, .lo = 0.0f};
    float r = 0.5f * oi_log1p_pair(oi_pair_quotient(n, oi_pair_sum(1.0f, -c)), 0.0f);
    r = a < 0x1p-40f ? a : r;
    r = a < 1.0f ? r : a == 1.0f ? INFINITY : NAN;
    return oi_signed_f32(r, x);
}

/* -- powers -- */

/* log x to some 40 bits, for positive finite x: with m in sqrt(1/2) ... sqrt(2) and
 * s = (m - 1) / (m + 1) it is e ln2 + 2 s (1 + s^2 / 3 + s^4 / 5 + ...). */
static inline oi_pair oi_log_pair(float x)
{
    float v = x < 0x1p-126f ? x * 0x1p23f : x;
    uint32_t u = oi_bits_f32(v) + (0x3f800000u - 0x3f3504f3u);
    float e = (float)((int32_t)(u >> 23) - 127) - (x < 0x1p-126f ? 23.0f : 0.0f);
    float f = oi_float_f32((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    oi_pair s = oi_pair_quotient((oi_pair){.hi = f, .lo = 0.0f}, oi_pair_sum(2.0f, f));
    oi_pair z = oi_pair_product(s.hi, s.hi);
    float z_lo = z.lo + 2.0f * s.hi * s.lo;
    float p = 0.09090909f;
    p = p * z.hi + 0.11111111f;
    p = p * z.hi + 0.142857143f;
    p = p * z.hi + 0.2f;
    oi_pair third = oi_pair_product(z.hi, 0.333333343f);
    oi_pair c = oi_pair_sum(third.hi, z.hi * z.hi * p);
    c.lo = c.lo + (third.lo + (z.hi * -9.93410776e-09f + z_lo * 0.333333343f));
    oi_pair sc = oi_pair_product(s.hi, c.hi), sum = oi_pair_sum(s.hi, sc.hi);
    float sum_lo = sum.lo + (sc.lo + (s.lo + (s.hi * c.lo + s.lo * c.hi)));
    oi_pair r = oi_pair_sum(e * 0x1.62e4p-1f, 2.0f * sum.hi);
    return oi_pair_sum(r.hi, r.lo + (2.0f * sum_lo + e * 1.42860682e-06f));
}

static inline float oi_pow_f32(float x, float y)
{
    const float whole = 12582912.0f;
    float a = oi_magnitude_f32(x), b = oi_magnitude_f32(y);
    float count = b < 16777216.0f ? b : 0.0f; /* larger ones are even */
    int is_whole = !(b < 16777216.0f) || (float)(int32_t)count == count;
    int is_odd = is_whole && ((int32_t)count & 1);
    int is_plain = a > 0.0f && a < INFINITY;
    /* from 2^33 on every power overflows or underflows, but those of 1 */
    float times = oi_signed_f32(b < 0x1p33f ? b : 0x1p33f, y);
    oi_pair l = oi_log_pair(is_plain ? a : 1.0f), power = oi_pair_product(times, l.hi);
    power = oi_pair_sum(power.hi, power.lo + times * l.lo);
    float grows = (a > 1.0f) == (y > 0.0f) ? 150.0f : -150.0f;
    float c = is_plain ? power.hi : grows;
    int is_near = c > -150.0f && c < 150.0f;
    c = c < -150.0f ? -150.0f : c > 150.0f ? 150.0f : c;
    float t = c * 1.44269504f + whole;
    oi_pair e = oi_exp_pair(c, is_near ? power.lo : 0.0f, t - whole);
    float r = oi_scaled_f32(e.hi, (int32_t)(oi_bits_f32(t) - 0x4b400000u));
    r = a == 1.0f ? 1.0f : r;
    r = x < 0.0f && a < INFINITY && !is_whole ? NAN : r;
    r = is_odd ? oi_signed_f32(r, x) : r;
    r = x != x ? x : y != y ? y : r;
    return y == 0.0f || x == 1.0f ? 1.0f : r;
}

/* -- f64 -- */

#define OI_MATH_F64(name)                          \
    static inline double oi_##name##_f64(double x) \
    {                                              \
        return name(x);                            \
    }

OI_MATH_F64(exp)
OI_MATH_F64(expm1)
OI_MATH_F64(tanh)
OI_MATH_F64(log)
OI_MATH_F64(log1p)
OI_MATH_F64(erf)
OI_MATH_F64(sin)
OI_MATH_F64(cos)
OI_MATH_F64(tan)
OI_MATH_F64(asin)
OI_MATH_F64(acos)
OI_MATH_F64(atan)
OI_MATH_F64(sinh)
OI_MATH_F64(cosh)
OI_MATH_F64(asinh)
OI_MATH_F64(acosh)
OI_MATH_F64(atanh)

static inline double oi_sigmoid_f64(double x)
{
    double e = exp(-fabs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
}

static inline double oi_softplus_f64(double x)
{
    double rest = log1p(exp(-fabs(x)));
    return x > 0 ? x + rest : rest;
}

static inline double oi_atan2_f64(double y, double x)
{
    return atan2(y, x);
}

static inline double oi_pow_f64(double x, double y)
{
    return pow(x, y);
}

/* -- powers of integers: exact, wrapping; a negative exponent truncates to 0 unless |x| is 1 -- */

static inline uint64_t oi_power(uint64_t x, uint64_t n)
{
    uint64_t r = 1;
    for (; n; n >>= 1, x *= x)
        r = n & 1 ? r * x : r;
    return r;
}

#define OI_POW_SIGNED(t, T)                                                      \
    static inline T oi_pow_##t(T x, T y)                                         \
    {                                                                            \
        T inverse = x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;                 \
        return y < 0 ? inverse : (T)oi_power((uint64_t)(int64_t)x, (uint64_t)y); \
    }
#define OI_POW_UNSIGNED(t, T)            \
    static inline T oi_pow_##t(T x, T y) \
    {                                    \
        return (T)oi_power(x, y);        \
    }

OI_POW_SIGNED(i8, int8_t)
OI_POW_SIGNED(i16, int16_t)
OI_POW_SIGNED(i32, int32_t)
OI_POW_SIGNED(i64, int64_t)
OI_POW_UNSIGNED(u8, uint8_t)
OI_POW_UNSIGNED(u16, uint16_t)
OI_POW_UNSIGNED(u32, uint32_t)
OI_POW_UNSIGNED(u64, uint64_t)

#endif
