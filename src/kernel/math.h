/* math.h: the mathematical helpers of the meaning language, spelled in C (see scalar.h).
 *
 * For f32 they are written out here, so that every target computes the same bits from the same
 * text, a microcontroller needs no libm, and a row's loop vectorises: no branches, no tables but
 * one, both sides of a choice computed. All are within 2 ulp of the exact result and take NaN,
 * infinities, zeros, subnormals and huge arguments as C99 says (math_test.c). exp, log, tanh,
 * sigmoid, erf, sin and cos, which models run on millions of elements, stay in f32; the rare ones
 * compute in double, where a short series is enough. f64 calls libm. */
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

/* |x| with the sign of s */
static inline float oi_signed_f32(float x, float s)
{
    return oi_float_f32((oi_bits_f32(x) & 0x7fffffffu) | (oi_bits_f32(s) & 0x80000000u));
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
typedef struct oi_row_schedule {
    float hi, lo;
    int32_t part; /* the rest in quarter turns, times 2^32 ... */
    uint32_t low; /* ... and 32 bits more */
    uint32_t quarter;
} oi_row_schedule;

static const uint32_t oi_two_over_pi[8] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                           0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};

static inline uint32_t oi_cut_two_over_pi(uint32_t at, uint32_t down)
{
    return (uint32_t)(((uint64_t)oi_two_over_pi[at] << 32 | oi_two_over_pi[at + 1]) >> down);
}

static inline oi_row_schedule oi_transpose_f32(float x)
{
    uint32_t u = oi_bits_f32(x) & 0x7fffffffu, e = u >> 23, m = (u & 0x7fffffu) | 0x800000u;
    e = e < 126 ? 126 : e > 254 ? 254 : e;
    uint32_t at = (e - 120) >> 5, down = 32 - ((e - 120) & 31);
    uint32_t a = oi_cut_two_over_pi(at, down), b = oi_cut_two_over_pi(at + 1, down),
             c = oi_cut_two_over_pi(at + 2, down);
    uint64_t mid = (uint64_t)m * b + ((uint64_t)m * c >> 32);
    uint32_t top = m * a + (uint32_t)(mid >> 32), low = (uint32_t)mid;
    /* top: 2 bits of quarters, 30 of their fraction, which rounding makes signed */
    int32_t part = (int32_t)(top << 2 | low >> 30);
    int32_t twelve = ((part >> 19) + 1) >> 1;
    float coarse = (float)twelve;
    float fine =
        (float)(int32_t)((uint32_t)part - ((uint32_t)twelve << 20)) + (float)(low << 2) * 0x1p-32f;
    float hi = coarse * 0x1.92p-12f; /* exact: 12 bits times 12 */
    float lo = coarse * 0x1.fb5444p-24f + fine * 0x1.921fb6p-32f;
    float sum = hi + lo;
    int is_small = u < 0x3f490fdbu; /* pi / 4 */
    return (oi_row_schedule){.hi = is_small ? oi_float_f32(u) : sum,
                             .lo = is_small ? 0.0f : lo - (sum - hi),
                             .part = part,
                             .low = low << 2,
                             .quarter = is_small ? 0 : (top + 0x20000000u) >> 30};
}

static inline float oi_sin_of_turn(oi_row_schedule t)
{
    float z = t.hi * t.hi;
    float s = 2.71823719e-06f;
    s = s * z - 0.000198393271f;
    s = s * z + 0.00833332936f;
    s = s * z - 0.166666666f;
    float c = 2.44377282e-05f;
    c = c * z - 0.00138873614f;
    c = c * z + 0.0416666467f;
    float sine = t.hi + (t.hi * z * s + t.lo * (1.0f - 0.5f * z));
    float half = 0.5f * z, w = 1.0f - half;
    float cosine = w + (((1.0f - w) - half) + (z * z * c - t.hi * t.lo));
    float r = t.quarter & 1 ? cosine : sine;
    return oi_float_f32(oi_bits_f32(r) ^ (t.quarter & 2) << 30);
}

static inline float oi_sin_f32(float x)
{
    float r = oi_sin_of_turn(oi_transpose_f32(x));
    r = oi_float_f32(oi_bits_f32(r) ^ (oi_bits_f32(x) & 0x80000000u));
    return oi_magnitude_f32(x) < INFINITY ? r : NAN;
}

static inline float oi_cos_f32(float x)
{
    oi_row_schedule t = oi_transpose_f32(x);
    t.quarter++;
    float r = oi_sin_of_turn(t);
    return oi_magnitude_f32(x) < INFINITY ? r : NAN;
}

static inline float oi_tan_f32(float x)
{
    oi_row_schedule t = oi_transpose_f32(x);
    double rest = ((double)t.part + (double)t.low * 0x1p-32) * 0x1.921fb54442d18p-32;
    double a = oi_magnitude_f32(x) < 0x1.921fb6p-1f ? (double)t.hi : rest, z = a * a; /* pi / 4 */
    double s = -1.0 / 39916800.0, c = 1.0 / 479001600.0;
    s = s * z + 1.0 / 362880.0;
    s = s * z - 1.0 / 5040.0;
    s = s * z + 1.0 / 120.0;
    s = s * z - 1.0 / 6.0;
    s = a + a * z * s;
    c = c * z - 1.0 / 3628800.0;
    c = c * z + 1.0 / 40320.0;
    c = c * z - 1.0 / 720.0;
    c = c * z + 1.0 / 24.0;
    c = c * z - 0.5;
    c = 1.0 + z * c;
    float r = (float)(t.quarter & 1 ? -c / s : s / c);
    r = oi_float_f32(oi_bits_f32(r) ^ (oi_bits_f32(x) & 0x80000000u));
    return oi_magnitude_f32(x) < INFINITY ? r : NAN;
}

/* -- in double, for f32 results only -- */

static inline double oi_wide_exp(double x)
{
    const double whole = 6755399441055744.0; /* 1.5 * 2^52 */
    double c = x < -700.0 ? -700.0 : x;
    c = c > 700.0 ? 700.0 : c;
    double t = c * 1.4426950408889634 + whole, n = t - whole;
    double r = (c - n * 0x1.62e42fefap-1) - n * 0x1.cf79abc9e3b3ap-40;
    double p = 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = 1.0 + (r + r * r * p);
    return p * oi_float_f64((oi_bits_f64(t) + 1023) << 52);
}

/* For positive finite x: log m = 2 (s + s^3 / 3 + ...), s = (m - 1) / (m + 1) */
static inline double oi_wide_log(double x)
{
    uint64_t u = oi_bits_f64(x) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    double e = (double)((int32_t)(u >> 52) - 1023);
    double m = oi_float_f64((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu);
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 / 15.0;
    p = p * z + 1.0 / 13.0;
    p = p * z + 1.0 / 11.0;
    p = p * z + 1.0 / 9.0;
    p = p * z + 1.0 / 7.0;
    p = p * z + 1.0 / 5.0;
    p = p * z + 1.0 / 3.0;
    return e * 0.69314718055994531 + (2.0 * s + 2.0 * s * z * p);
}

/* The angle of (x, y), |y| and |x| not both 0: halved once, so that the series is short. */
static inline double oi_wide_angle(double y, double x)
{
    double a = y < 0 ? -y : y, b = x < 0 ? -x : x;
    double low = a < b ? a : b, high = a < b ? b : a, t = low / high;
    t = t / (1.0 + sqrt(1.0 + t * t));
    double z = t * t;
    double p = -0.025467396580783532;
    p = p * z + 0.050370372564938516;
    p = p * z - 0.065101712118159294;
    p = p * z + 0.076743132926235164;
    p = p * z - 0.090896152993045445;
    p = p * z + 0.11111054467661048;
    p = p * z - 0.14285712876170051;
    p = p * z + 0.19999999982755395;
    p = p * z - 0.3333333333326059;
    double r = 2.0 * (t + t * z * p);
    r = a > b ? 1.5707963267948966 - r : r;
    r = x < 0 ? 3.1415926535897932 - r : r;
    return y < 0 ? -r : r;
}

static inline float oi_atan_f32(float x)
{
    float a = oi_magnitude_f32(x);
    float r = (float)oi_wide_angle((double)a, 1.0);
    r = a < INFINITY ? r : a > 0 ? 1.57079633f : x;
    return oi_signed_f32(r, x);
}

/* Zeros and infinities as C99 has them: both are angles of the same point, far or near. */
static inline float oi_atan2_f32(float y, float x)
{
    float a = oi_magnitude_f32(y), b = oi_magnitude_f32(x);
    int far = a == INFINITY || b == INFINITY, near = a == 0.0f && b == 0.0f;
    double p = far ? a == INFINITY : (double)a;
    double q = far ? b == INFINITY : near ? 1.0 : (double)b;
    float r = (float)oi_wide_angle(p, oi_bits_f32(x) >> 31 ? -q : q);
    r = a != a ? a : b != b ? b : r;
    return oi_signed_f32(r, y);
}

static inline float oi_asin_f32(float x)
{
    double v = (double)x;
    float r = (float)oi_wide_angle(v, sqrt((1.0 - v) * (1.0 + v)));
    return oi_magnitude_f32(x) <= 1.0f ? oi_signed_f32(r, x) : NAN;
}

static inline float oi_acos_f32(float x)
{
    double v = (double)x;
    float r = (float)oi_wide_angle(sqrt((1.0 - v) * (1.0 + v)), v);
    return oi_magnitude_f32(x) <= 1.0f ? r : NAN;
}

static inline float oi_sinh_f32(float x)
{
    double v = (double)x, z = v * v, e = oi_wide_exp(v);
    double small = v + v * z * (1.0 / 6.0 + z * (1.0 / 120.0));
    return oi_magnitude_f32(x) < 0.05f ? (float)small : (float)(0.5 * (e - 1.0 / e));
}

static inline float oi_cosh_f32(float x)
{
    double e = oi_wide_exp((double)x);
    return (float)(0.5 * (e + 1.0 / e));
}

static inline float oi_asinh_f32(float x)
{
    double v = (double)oi_magnitude_f32(x);
    double small = v - v * v * v / 6.0, large = oi_wide_log(v + sqrt(v * v + 1.0));
    float r = (float)(v < 1e-3 ? small : large);
    return oi_signed_f32(v < (double)INFINITY ? r : oi_magnitude_f32(x), x);
}

static inline float oi_acosh_f32(float x)
{
    double v = (double)x;
    float r = (float)oi_wide_log(v + sqrt((v - 1.0) * (v + 1.0)));
    r = x < INFINITY ? r : x;
    return x < 1.0f ? NAN : r;
}

static inline float oi_atanh_f32(float x)
{
    double v = (double)oi_magnitude_f32(x);
    double small = v + v * v * v / 3.0, large = 0.5 * oi_wide_log((1.0 + v) / (1.0 - v));
    float r = (float)(v < 1e-3 ? small : large);
    r = v < 1.0 ? r : v == 1.0 ? INFINITY : NAN;
    return oi_signed_f32(r, x);
}

static inline float oi_pow_f32(float x, float y)
{
    float a = oi_magnitude_f32(x), b = oi_magnitude_f32(y);
    float count = b < 16777216.0f ? b : 0.0f; /* larger ones are even */
    int is_whole = !(b < 16777216.0f) || (float)(int32_t)count == count;
    int is_odd = is_whole && ((int32_t)count & 1);
    double grows = (a > 1.0f) == (y > 0.0f) ? (double)INFINITY : -(double)INFINITY;
    double power =
        a > 0.0f && a < INFINITY && b < INFINITY ? (double)y * oi_wide_log((double)a) : grows;
    power = power < -200.0 ? -200.0 : power > 200.0 ? 200.0 : power;
    float r = (float)oi_wide_exp(power);
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
