/* number_test.c: printing and parsing of floats, judged by the C library in the C locale. */
#include "base/base.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

static double f64_of(uint64_t u)
{
    double v;
    memcpy(&v, &u, sizeof v);
    return v;
}

static float f32_of(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* Reads the way a caller does: the sign is not part of the number. */
static double parse(const char *text)
{
    bool negative = text[0] == '-';
    double v = NAN;
    assert_true(oi_parse_f64(text + negative, strlen(text) - negative, &v));
    return negative ? -v : v;
}

static void same_f64(double a, double b)
{
    assert_memory_equal(&a, &b, sizeof a);
}

/* Significant digits of a printed number, its zeros at both ends left out. */
static int digits_in(const char *text)
{
    int n = 0, zeros = 0;
    for (const char *p = text; *p && *p != 'e'; p++) {
        if (*p >= '1' && *p <= '9') {
            n += zeros + 1;
            zeros = 0;
        } else if (*p == '0' && n) {
            zeros++;
        }
    }
    return n;
}

/* Reads back exactly, with no more digits than the shortest %.{n}g that does, and as near. */
static void check_f64(double v)
{
    char text[OI_NUMBER_TEXT], other[40];
    size_t n = oi_print_f64(text, v);
    assert_int_equal(n, strlen(text));
    same_f64(strtod(text, NULL), v);
    same_f64(parse(text), v);
    int digits = digits_in(text);
    if (digits > 1) {
        snprintf(other, sizeof other, "%.*e", digits - 2, v);
        assert_true(strtod(other, NULL) != v);
    }
    /* of all texts with so few digits it is the nearest, unless that one does not read back */
    snprintf(other, sizeof other, "%.*e", digits - 1, v);
    if (strtod(other, NULL) == v)
        assert_true(digits_in(other) <= digits);
    snprintf(other, sizeof other, "%.17g", v);
    same_f64(parse(other), v);
}

static void check_f32(float v)
{
    char text[OI_NUMBER_TEXT], other[40];
    float back = 0;
    size_t n = oi_print_f32(text, v);
    assert_int_equal(n, strlen(text));
    bool negative = text[0] == '-';
    assert_true(oi_parse_f32(text + negative, strlen(text) - negative, &back));
    assert_true(strtof(text, NULL) == v && (negative ? -back : back) == v);
    int digits = digits_in(text);
    if (digits > 1) {
        snprintf(other, sizeof other, "%.*e", digits - 2, (double)v);
        assert_true(strtof(other, NULL) != v);
    }
}

/* The values are judged in plain builds; sanitizers, ten times as slow, watch how they are made. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TRIALS = 7000 };
#else
enum { TRIALS = 70000 };
#endif

static void random_f64(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < TRIALS; i++) {
        double v = f64_of(oi_splitmix64(&seed));
        if (isfinite(v))
            check_f64(v);
    }
}

static void random_f32(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int i = 0; i < TRIALS; i++) {
        float v = f32_of((uint32_t)oi_splitmix64(&seed));
        if (isfinite(v))
            check_f32(v);
    }
}

/* Short decimals are what people write: they take the other path through the parser. */
static void random_text(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int i = 0; i < TRIALS; i++) {
        char text[64];
        uint64_t r = oi_splitmix64(&seed);
        int exp = (int)(r % 700) - 350;
        uint64_t digits = oi_splitmix64(&seed) >> r / 1000 % 64;
        snprintf(text, sizeof text, i % 2 ? "%llue%d" : "0.%llue%d", (unsigned long long)digits,
                 i % 4 < 2 ? exp : exp / 16);
        same_f64(parse(text), strtod(text, NULL));
        float f = 0;
        assert_true(oi_parse_f32(text, strlen(text), &f));
        assert_true(f == strtof(text, NULL));
    }
}

/* Every power of two and its neighbours: the gap below is half the gap above. */
static void powers_of_two(void **state)
{
    (void)state;
    for (uint64_t exp = 1; exp < 2047; exp++)
        for (int step = -2; step <= 2; step++)
            check_f64(f64_of((exp << 52) + (uint64_t)step));
    for (uint32_t exp = 1; exp < 255; exp++)
        for (int step = -2; step <= 2; step++)
            check_f32(f32_of((exp << 23) + (uint32_t)step));
    for (uint64_t frac = 1; frac < 200; frac++) {
        check_f64(f64_of(frac));
        check_f32(f32_of((uint32_t)frac));
    }
    check_f64(f64_of((1ull << 52) - 1));
    check_f64(f64_of(0x7fefffffffffffff));
    check_f32(f32_of(0x7f7fffff));
}

/* Halfway points in full length, and one digit beyond them. */
static void halfway(void **state)
{
    (void)state;
    uint64_t seed = 4;
    char *text = malloc(3000);
    for (int i = 0; i < 2000; i++) {
        uint64_t u = oi_splitmix64(&seed) & ~(1ull << 63);
        double v = f64_of(u);
        if (!isfinite(v) || fabs(v) < 1e-290 || fabs(v) > 1e300)
            continue;
        /* v + half a gap, exactly: long double has the bit that double lacks */
        long double mid = ((long double)v + (long double)f64_of(u + 1)) / 2;
        int n = snprintf(text, 3000, "%.1100Lf", mid);
        double even = u & 1 ? f64_of(u + 1) : v;
        same_f64(parse(text), even);
        strcpy(text + n, "000000000000000000000000000000000000000001");
        same_f64(parse(text), f64_of(u + 1));
    }
    free(text);
}

static const struct {
    double v;
    const char *text;
} layout_f64[] = {
    {0.0, "0.0"},
    {-0.0, "-0.0"},
    {1, "1.0"},
    {-1, "-1.0"},
    {0.01, "0.01"},
    {5, "5.0"},
    {12.34, "12.34"},
    {12340, "12340.0"},
    {1e15, "1000000000000000.0"},
    {1e16, "1e16"},
    {9007199254740993.0, "9007199254740992.0"},
    {12345678901234567.0, "1.2345678901234568e16"},
    {0.001234, "0.001234"},
    {0.00001, "0.00001"},
    {0.00001234, "0.00001234"},
    {1e-6, "1e-6"},
    {1.5e-7, "1.5e-7"},
    {1e30, "1e30"},
    {1.234e33, "1.234e33"},
    {1e23, "1e23"},
    {9.5e-300, "9.5e-300"},
    {5e-324, "5e-324"},
    {2.2250738585072014e-308, "2.2250738585072014e-308"},
    {1.7976931348623157e308, "1.7976931348623157e308"},
    {0.1, "0.1"},
    {0.3, "0.3"},
    {1.0 / 3, "0.3333333333333333"},
    {2e-44, "2e-44"},
    {INFINITY, "inf"},
    {-INFINITY, "-inf"},
};

static void layouts(void **state)
{
    (void)state;
    char text[OI_NUMBER_TEXT];
    for (size_t i = 0; i < OI_COUNT(layout_f64); i++) {
        oi_print_f64(text, layout_f64[i].v);
        assert_string_equal(text, layout_f64[i].text);
    }
    oi_print_f64(text, NAN);
    assert_string_equal(text, "nan");
    oi_print_f64(text, -NAN);
    assert_string_equal(text, "nan");
    static const struct {
        float v;
        const char *text;
    } f32[] = {{0.1f, "0.1"},
               {16777216, "16777216.0"},
               {1e12f, "1000000000000.0"},
               {1e13f, "1e13"},
               {1e-6f, "0.000001"},
               {1e-7f, "1e-7"},
               {3.4028235e38f, "3.4028235e38"},
               {1e-45f, "1e-45"},
               {-0.0f, "-0.0"},
               {0.3f, "0.3"},
               {INFINITY, "inf"},
               {33554432, "33554432.0"}};
    for (size_t i = 0; i < OI_COUNT(f32); i++) {
        oi_print_f32(text, f32[i].v);
        assert_string_equal(text, f32[i].text);
    }
}

static void edge_texts(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "9007199254740993",
        "9007199254740993.0000000000000000000000000000000000000000000001",
        "1e23",
        "8.5e22",
        "2.4703282292062327208e-324",
        "2.4703282292062328e-324",
        "5e-324",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1e309",
        "1e-400",
        "0e999999999999999999999",
        "0.0",
        ".5",
        "5.",
        "1e+5",
        "00012",
        "1E2",
        "123456789012345678901234567890",
        "1e22",
        "1e-22",
        "999999999999999e22",
        "18446744073709551615",
        "3.4028235677973366e38",
        "4e-324",
        "3e-324"};
    for (size_t i = 0; i < OI_COUNT(texts); i++)
        same_f64(parse(texts[i]), strtod(texts[i], NULL));
    assert_true(isinf(parse("1e99999999999999999999999")));
    same_f64(parse("1e-99999999999999999999999"), 0);
    static const char *const wrong[] = {"",    ".",  "e5",  "1e",    "1e+",  "1e-",
                                        "-1",  "+1", "1_0", "1.2.3", "inf",  "nan",
                                        "0x1", "1 ", " 1",  "1e5.",  "1e5x", "1,5"};
    double v;
    for (size_t i = 0; i < OI_COUNT(wrong); i++)
        assert_false(oi_parse_f64(wrong[i], strlen(wrong[i]), &v));
}

/* A million digits take linear time and the exponent makes up for them. */
static void long_texts(void **state)
{
    (void)state;
    size_t n = 1000000;
    char *text = malloc(n + 64);
    memset(text, '0', n + 64);
    text[0] = '1';
    strcpy(text + n, "e-999999");
    same_f64(parse(text), 1);
    memset(text, '0', n);
    text[1] = '.';
    strcpy(text + n, "125e999999");
    same_f64(parse(text), 1.25);
    memset(text, '9', n);
    text[1] = '.';
    text[n] = '\0';
    same_f64(parse(text), 10);
    memset(text, '0', n);
    memcpy(text, "9007199254740993.", 17); /* a tie until the very last digit */
    strcpy(text + n, "1");
    same_f64(parse(text), 9007199254740994.0);
    strcpy(text + n, "0");
    same_f64(parse(text), 9007199254740992.0);
    free(text);
}

static void integers(void **state)
{
    (void)state;
    uint64_t v = 0;
    assert_true(oi_parse_u64("18446744073709551615", 20, 10, &v) && v == UINT64_MAX);
    assert_false(oi_parse_u64("18446744073709551616", 20, 10, &v));
    assert_false(oi_parse_u64("99999999999999999999", 20, 10, &v));
    assert_true(oi_parse_u64("ffffFFFFffffFFFF", 16, 16, &v) && v == UINT64_MAX);
    assert_false(oi_parse_u64("10000000000000000", 17, 16, &v));
    assert_true(oi_parse_u64("1011", 4, 2, &v) && v == 11);
    assert_true(oi_parse_u64("777", 3, 8, &v) && v == 511);
    assert_false(oi_parse_u64("12", 2, 2, &v));
    assert_false(oi_parse_u64("g", 1, 16, &v));
    assert_false(oi_parse_u64("", 0, 10, &v));
    assert_true(oi_parse_u64("0000000000000000000000000", 25, 10, &v) && v == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_f64),  cmocka_unit_test(random_f32),
        cmocka_unit_test(random_text), cmocka_unit_test(powers_of_two),
        cmocka_unit_test(halfway),     cmocka_unit_test(layouts),
        cmocka_unit_test(edge_texts),  cmocka_unit_test(long_texts),
        cmocka_unit_test(integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
