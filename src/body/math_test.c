/* The f32 functions of math.h against libm in double: at most 2 ulp over all magnitudes, and C99's
 * answers at the edges. */
#include "body/math.h"

#include <float.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#define STEP 4099 /* a prime: about a million floats of every size and sign */

static double sigmoid(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* Distance in units of the last place that a float of that size has. */
static double ulps(float got, double want)
{
    if (want != want)
        return got != got ? 0 : HUGE_VAL;
    if (got != got)
        return HUGE_VAL;
    if (isinf(got) && fabs(want) >= (double)FLT_MAX) /* rounded up */
        return (got > 0) == (want > 0) ? 0 : HUGE_VAL;
    if (fabs(want) > (double)FLT_MAX)
        want = copysign((double)FLT_MAX + 0x1p103, want);
    int e;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

static const struct function {
    const char *name;
    float (*ours)(float);
    double (*wide)(double);
} functions[] = {
    {"exp", oi_exp_f32, exp},
    {"expm1", oi_expm1_f32, expm1},
    {"sigmoid", oi_sigmoid_f32, sigmoid},
    {"softplus", oi_softplus_f32, softplus},
    {"tanh", oi_tanh_f32, tanh},
    {"log", oi_log_f32, log},
    {"log1p", oi_log1p_f32, log1p},
    {"erf", oi_erf_f32, erf},
    {"sin", oi_sin_f32, sin},
    {"cos", oi_cos_f32, cos},
    {"tan", oi_tan_f32, tan},
    {"asin", oi_asin_f32, asin},
    {"acos", oi_acos_f32, acos},
    {"atan", oi_atan_f32, atan},
    {"sinh", oi_sinh_f32, sinh},
    {"cosh", oi_cosh_f32, cosh},
    {"asinh", oi_asinh_f32, asinh},
    {"acosh", oi_acosh_f32, acosh},
    {"atanh", oi_atanh_f32, atanh},
};

static void is_near(const char *name, float x, float got, double want)
{
    if (!(ulps(got, want) <= 2))
        fail_msg("%s(%.9g) is %.9g, wants %.17g", name, (double)x, (double)got, want);
}

static void all_magnitudes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        for (uint64_t u = 0; u < 0x100000000u; u += STEP) {
            float x = oi_float_f32((uint32_t)u);
            is_near(functions[i].name, x, functions[i].ours(x), functions[i].wide((double)x));
        }
}

static const float edges[] = {0.0f,      -0.0f,     1.0f,   -1.0f,        2.0f,        -2.0f,
                              3.0f,      -3.0f,     0.5f,   -0.5f,        INFINITY,    -INFINITY,
                              NAN,       FLT_MAX,   -1e30f, 1e-40f,       -1e-40f,     16777216.0f,
                              0x1p-149f, -FLT_MIN,  2.5f,   -16777215.0f, 16777217.0f, 88.72284f,
                              -103.9f,   0.785398f, 1e22f};
#define N_EDGES (sizeof edges / sizeof edges[0])

/* Close to multiples of pi / 2, where the reduced angle loses most of its bits: the worst floats
 * that continued fractions of 2 / pi find, and whole multiples of every size. */
static void near_quarters(void **state)
{
    static const float worst[] = {0x1.6cbe4p+62f, 0x1.ddb0eep+57f, 0x1.921fb6p+0f, 0x1.2d97c8p+2f,
                                  0x1.5fdbbep+3f, 0x1.f9cbe2p+7f,  0x1.7d4baap+58f};
    (void)state;
    for (size_t i = 0; i < sizeof worst / sizeof worst[0]; i++)
        for (int k = -200; k <= 200; k++) {
            float x = oi_float_f32((uint32_t)((int32_t)oi_bits_f32(worst[i]) + k));
            is_near("sin", x, oi_sin_f32(x), sin((double)x));
            is_near("cos", x, oi_cos_f32(x), cos((double)x));
            is_near("tan", x, oi_tan_f32(x), tan((double)x));
        }
    for (int k = 1; k < 200000; k++) {
        float x = (float)((double)k * 1.5707963267948966);
        is_near("sin", x, oi_sin_f32(x), sin((double)x));
        is_near("cos", x, oi_cos_f32(x), cos((double)x));
        is_near("tan", x, oi_tan_f32(x), tan((double)x));
    }
}

static void at_the_edges(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        for (size_t k = 0; k < N_EDGES; k++) {
            float got = functions[i].ours(edges[k]);
            double want = functions[i].wide((double)edges[k]);
            is_near(functions[i].name, edges[k], got, want);
            if (want == 0 && got == 0 && edges[k] == 0)
                assert_int_equal(signbit(got) != 0, signbit(want) != 0);
        }
}

static void pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_EDGES; i++)
        for (size_t k = 0; k < N_EDGES; k++) {
            float x = edges[i], y = edges[k];
            double power = pow((double)x, (double)y), angle = atan2((double)x, (double)y);
            is_near("pow", x, oi_pow_f32(x, y), power);
            is_near("atan2", x, oi_atan2_f32(x, y), angle);
            if (power == power)
                assert_int_equal(signbit(oi_pow_f32(x, y)) != 0, signbit(power) != 0);
            if (angle == angle)
                assert_int_equal(signbit(oi_atan2_f32(x, y)) != 0, signbit(angle) != 0);
        }
    uint32_t u = 1;
    for (int i = 0; i < 200000; i++) {
        float x = oi_float_f32(u = u * 1664525u + 1013904223u);
        float y = oi_float_f32(0x38000000u + ((u = u * 1664525u + 1013904223u) >> 5));
        is_near("pow", x, oi_pow_f32(x, y), pow((double)x, (double)y));
        is_near("atan2", x, oi_atan2_f32(x, y), atan2((double)x, (double)y));
    }
}

static void whole_powers(void **state)
{
    (void)state;
    assert_int_equal(oi_pow_i32(3, 4), 81);
    assert_int_equal(oi_pow_i32(-3, 3), -27);
    assert_int_equal(oi_pow_i8(2, 7), -128);
    assert_int_equal(oi_pow_i8(2, 8), 0);
    assert_int_equal(oi_pow_i64(2, -1), 0);
    assert_int_equal(oi_pow_i64(-1, -3), -1);
    assert_int_equal(oi_pow_i64(-1, -4), 1);
    assert_int_equal(oi_pow_i64(0, -4), 0);
    assert_int_equal(oi_pow_u16(0, 0), 1);
    assert_int_equal(oi_pow_u8(255, 255), 255);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_magnitudes), cmocka_unit_test(near_quarters),
        cmocka_unit_test(at_the_edges),   cmocka_unit_test(pairs),
        cmocka_unit_test(whole_powers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
