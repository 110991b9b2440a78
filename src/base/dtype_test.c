/* dtype_test.c: the table, small floats over all their patterns, elements of packed buffers. */
#include "base/base.h"

#include <float.h>
#include <math.h>
#include <cmocka.h>

static void table_is_whole(void **state)
{
    (void)state;
    for (int t = 1; t < OI_DTYPE_COUNT; t++) {
        const oi_dtype_info *d = oi_dtype_get((oi_dtype)t);
        assert_non_null(d->name);
        assert_non_null(d->json);
        if (!oi_dtype_is_tensor((oi_dtype)t))
            continue;
        assert_int_equal(oi_dtype_find(d->name), t);
        assert_int_equal(oi_dtype_find_json(d->json), t);
        assert_int_equal(oi_dtype_find_json(d->name), t);
        assert_int_equal(oi_dtype_find_n(d->name, strlen(d->name)), t);
        assert_true(d->bits == 1 || d->bits == 2 || d->bits == 4 || d->bits % 8 == 0);
        if (oi_dtype_is_float((oi_dtype)t))
            assert_int_equal(1 + d->exp_bits + d->man_bits, d->bits);
        else
            assert_true(d->min <= 0 && d->max <= UINT64_MAX >> (64 - d->bits));
    }
    assert_int_equal(oi_dtype_find("f8e5m2"), OI_F8);
    assert_int_equal(oi_dtype_find("float8e5m2"), OI_F8);
    assert_int_equal(oi_dtype_find("str"), OI_NONE);
    assert_int_equal(oi_dtype_find("F32"), OI_NONE);
    assert_int_equal(oi_dtype_find(""), OI_NONE);
    assert_int_equal(oi_dtype_find(NULL), OI_NONE);
    assert_int_equal(oi_dtype_find_json("f33"), OI_NONE);
    assert_string_equal(oi_dtype_name((oi_dtype)999), "none");
    assert_string_equal(oi_dtype_name((oi_dtype)-1), "none");
    assert_true(oi_dtype_is_integer(OI_U4) && oi_dtype_is_integer(OI_I64));
    assert_false(oi_dtype_is_integer(OI_BOOL) || oi_dtype_is_integer(OI_T2) ||
                 oi_dtype_is_integer(OI_F32));
}

static void sizes(void **state)
{
    (void)state;
    uint64_t n = 0;
    assert_true(oi_dtype_bytes(OI_F32, 3, &n) && n == 12);
    assert_true(oi_dtype_bytes(OI_I4, 3, &n) && n == 2);
    assert_true(oi_dtype_bytes(OI_U1, 9, &n) && n == 2);
    assert_true(oi_dtype_bytes(OI_T2, 0, &n) && n == 0);
    assert_true(oi_dtype_bytes(OI_I1, UINT64_MAX, &n) && n == 1ull << 61);
    assert_true(oi_dtype_bytes(OI_U8, UINT64_MAX, &n) && n == UINT64_MAX);
    assert_false(oi_dtype_bytes(OI_F16, UINT64_MAX / 2 + 1, &n));
    assert_true(oi_dtype_bytes(OI_F16, UINT64_MAX / 2, &n) && n == UINT64_MAX - 1);
}

/* Every pattern decodes and encodes to itself; all NaN become the one canonical NaN. */
static void all_patterns(oi_dtype t, uint64_t nan)
{
    for (uint64_t bits = 0; bits < 1ull << oi_dtype_bits(t); bits++) {
        double v = oi_float_decode(t, bits);
        if (isnan(v))
            assert_true(oi_float_encode(t, v) == nan);
        else
            assert_true(oi_float_encode(t, v) == bits);
    }
}

/* Between two neighbours: below the middle down, above up, the middle to the even one. */
static void all_ties(oi_dtype t)
{
    const oi_dtype_info *d = oi_dtype_get(t);
    uint64_t inf = ((1ull << d->exp_bits) - 1) << d->man_bits;
    for (uint64_t bits = 0; bits + 1 < inf; bits++) {
        double a = oi_float_decode(t, bits), b = oi_float_decode(t, bits + 1), mid = (a + b) / 2;
        assert_true(oi_float_encode(t, mid) == (bits & 1 ? bits + 1 : bits));
        assert_true(oi_float_encode(t, nextafter(mid, 0)) == bits);
        assert_true(oi_float_encode(t, nextafter(mid, INFINITY)) == bits + 1);
        assert_true(oi_float_encode(t, -mid) ==
                    ((bits & 1 ? bits + 1 : bits) | 1ull << (d->bits - 1)));
    }
    /* beyond the largest: half a gap further is infinity */
    double top = oi_float_decode(t, inf - 1), gap = top - oi_float_decode(t, inf - 2);
    assert_true(oi_float_encode(t, top + gap / 2) == inf);
    assert_true(oi_float_encode(t, nextafter(top + gap / 2, 0)) == inf - 1);
    assert_true(oi_float_encode(t, DBL_MAX) == inf);
    assert_true(oi_float_encode(t, -INFINITY) == (inf | 1ull << (d->bits - 1)));
    assert_true(oi_float_encode(t, DBL_MIN) == 0 && oi_float_encode(t, 5e-324) == 0);
    assert_true(oi_float_encode(t, -5e-324) == 1ull << (d->bits - 1));
}

static void small_floats(void **state)
{
    (void)state;
    all_patterns(OI_F8, 0x7d);
    all_patterns(OI_F16, 0x7e00);
    all_patterns(OI_BF16, 0x7fc0);
    all_ties(OI_F8);
    all_ties(OI_F16);
    all_ties(OI_BF16);
    assert_true(oi_float_decode(OI_F16, 0x3c00) == 1 && oi_float_decode(OI_F16, 1) == 0x1p-24);
    assert_true(oi_float_decode(OI_BF16, 0x4049) == 3.140625);
    assert_true(oi_float_decode(OI_F8, 0x3c) == 1 && oi_float_decode(OI_F8, 0x7b) == 57344);
    assert_true(oi_float_decode(OI_F64, oi_float_encode(OI_F64, 0.1)) == 0.1);
    assert_true(oi_float_encode(OI_F64, NAN) == 0x7ff8000000000000u);
}

static void f32_like_the_machine(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int i = 0; i < 200000; i++) {
        uint64_t u = oi_splitmix64(&seed), exp = 850 + oi_splitmix64(&seed) % 330;
        u = (u & ~(0x7ffull << 52)) | exp << 52; /* around the range of f32 */
        if (i % 3 == 0)
            u = (u >> 29 | 1) << 28; /* a tie */
        double v;
        memcpy(&v, &u, sizeof v);
        float f = (float)v;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        if (!isnan(v)) {
            assert_true(oi_float_encode(OI_F32, v) == bits);
            assert_true(oi_float_decode(OI_F32, bits) == f);
        }
    }
}

/* Writes every value of a small type to every position of a buffer and reads all back. */
static void packed(void **state)
{
    (void)state;
    static const oi_dtype types[] = {OI_I4, OI_I2, OI_I1, OI_U4, OI_U2, OI_U1,
                                     OI_T2, OI_I8, OI_U8, OI_T1, OI_I16};
    for (size_t k = 0; k < OI_COUNT(types); k++) {
        oi_dtype t = types[k];
        const oi_dtype_info *d = oi_dtype_get(t);
        uint8_t data[64] = {0};
        for (uint64_t e = 0; e < 19; e++) {
            int64_t v = d->min + (int64_t)(e % (d->max - (uint64_t)d->min + 1));
            if (t == OI_T1 && v == 0)
                v = 1;
            assert_true(oi_element_set_i64(t, data, e, v));
            assert_true(oi_element_i64(t, data, e) == v);
        }
        for (uint64_t e = 0; e < 19; e++) { /* neighbours did not disturb */
            int64_t v = d->min + (int64_t)(e % (d->max - (uint64_t)d->min + 1));
            v = t == OI_T1 && v == 0 ? 1 : v;
            assert_true(oi_element_i64(t, data, e) == v);
            assert_true(oi_element_f64(t, data, e) == (double)v);
        }
        assert_false(oi_element_set_i64(t, data, 0, d->min - 1));
        assert_false(oi_element_set_u64(t, data, 0, d->max + 1));
        assert_false(oi_element_set_f64(t, data, 0, 0.5));
        assert_false(oi_element_set_f64(t, data, 0, NAN));
        assert_false(oi_element_set_f64(t, data, 0, (double)d->max + 1));
    }
}

static void bit_layout(void **state)
{
    (void)state;
    uint8_t data[4] = {0};
    for (uint64_t e = 0; e < 4; e++) /* least significant bits first */
        oi_element_set_u64(OI_U2, data, e, e);
    assert_int_equal(data[0], 0xe4);
    memset(data, 0, sizeof data);
    oi_element_set_i64(OI_I4, data, 1, -1);
    assert_int_equal(data[0], 0xf0);
    oi_element_set_u64(OI_U32, data, 0, 0x01020304);
    assert_int_equal(data[0], 4);
    data[0] = 0xe4; /* t2: 00 = 0, 01 = 1, 10 and 11 = -1 */
    static const int64_t ternary[] = {0, 1, -1, -1};
    for (uint64_t e = 0; e < 4; e++)
        assert_true(oi_element_i64(OI_T2, data, e) == ternary[e]);
    data[0] = 2;
    assert_true(oi_element_i64(OI_T1, data, 0) == -1 && oi_element_i64(OI_T1, data, 1) == 1);
    assert_false(oi_element_set_i64(OI_T1, data, 0, 0));
}

static void ranges(void **state)
{
    (void)state;
    uint8_t data[8];
    assert_true(oi_element_set_u64(OI_U64, data, 0, UINT64_MAX));
    assert_true(oi_element_u64(OI_U64, data, 0) == UINT64_MAX);
    assert_true(oi_element_f64(OI_U64, data, 0) == 18446744073709551616.0);
    assert_true(oi_element_set_i64(OI_I64, data, 0, INT64_MIN));
    assert_true(oi_element_i64(OI_I64, data, 0) == INT64_MIN);
    assert_false(oi_element_set_u64(OI_I64, data, 0, 1ull << 63));
    assert_false(oi_element_set_i64(OI_U64, data, 0, -1));
    assert_false(oi_element_set_f64(OI_U64, data, 0, 18446744073709551616.0));
    assert_true(oi_element_set_f64(OI_I64, data, 0, -9223372036854775808.0));
    assert_false(oi_element_set_f64(OI_I64, data, 0, 9223372036854775808.0));
    assert_true(oi_element_set_u64(OI_BOOL, data, 0, 1) &&
                !oi_element_set_u64(OI_BOOL, data, 0, 2));
    data[0] = 7;
    assert_true(oi_element_i64(OI_BOOL, data, 0) == 1 && oi_element_i64(OI_BITSET, data, 0) == 7);
    assert_false(oi_element_set_u64(OI_STR, data, 0, 1) ||
                 oi_element_set_i64(OI_NONE, data, 0, -1));
    assert_true(oi_element_i64(OI_NONE, data, 0) == 0);
}

static void floats_as_integers(void **state)
{
    (void)state;
    uint8_t data[8];
    oi_element_set_f64(OI_F32, data, 0, 1e19);
    assert_true(oi_element_u64(OI_F32, data, 0) == 9999999980506447872u);
    assert_true(oi_element_i64(OI_F32, data, 0) == INT64_MAX);
    oi_element_set_f64(OI_F32, data, 0, 1e30);
    assert_true(oi_element_u64(OI_F32, data, 0) == UINT64_MAX);
    oi_element_set_f64(OI_F32, data, 0, -1e30);
    assert_true(oi_element_i64(OI_F32, data, 0) == INT64_MIN);
    oi_element_set_f64(OI_F32, data, 0, NAN);
    assert_true(oi_element_i64(OI_F32, data, 0) == 0 && oi_element_u64(OI_F32, data, 0) == 0);
    oi_element_set_f64(OI_F16, data, 0, -2.75);
    assert_true(oi_element_i64(OI_F16, data, 0) == -2);
    /* just above a tie by less than f64 can hold: must still round up */
    uint64_t near_tie = (1ull << 63) + (1ull << 39) + 1;
    oi_element_set_u64(OI_F32, data, 0, near_tie);
    assert_true(oi_element_f64(OI_F32, data, 0) == (double)(float)near_tie);
    oi_element_set_u64(OI_BF16, data, 0, (1ull << 63) + (1ull << 55) + 1);
    assert_true(oi_element_f64(OI_BF16, data, 0) == 0x1p63 + 0x1p56);
    oi_element_set_i64(OI_BF16, data, 0, -(int64_t)((1ull << 62) + (1ull << 54) + 1));
    assert_true(oi_element_f64(OI_BF16, data, 0) == -(0x1p62 + 0x1p55));
    oi_element_set_u64(OI_F64, data, 0, (1ull << 53) + 1);
    assert_true(oi_element_f64(OI_F64, data, 0) == 0x1p53);
}

static bool holds(oi_dtype t, int64_t v)
{
    const oi_dtype_info *d = oi_dtype_get(t);
    if (d->cls == OI_CLASS_FLOAT)
        return true;
    return v >= d->min && (v < 0 || (uint64_t)v <= d->max) && !(t == OI_T1 && v == 0);
}

/* Small integers from every type to every other and back; what does not fit is refused. */
static void conversions(void **state)
{
    (void)state;
    uint8_t from[64], to[64], back[64];
    for (oi_dtype t = 1; t < OI_DTYPE_COUNT; t++)
        for (oi_dtype u = 1; u < OI_DTYPE_COUNT; u++)
            for (int64_t v = -3; v <= 3; v++) {
                if (!oi_dtype_is_tensor(t) || !oi_dtype_is_tensor(u) || !holds(t, v))
                    continue;
                memset(from, 0, sizeof from);
                memset(back, 0, sizeof back);
                for (uint64_t e = 0; e < 5; e++)
                    assert_true(oi_element_set_i64(t, from, e, v));
                assert_int_equal(oi_convert(u, to, t, from, 5), holds(u, v) ? 5 : 0);
                if (!holds(u, v))
                    continue;
                assert_int_equal(oi_element_i64(u, to, 4), v);
                assert_int_equal(oi_convert(t, back, u, to, 5), 5);
                assert_memory_equal(back, from, sizeof from);
            }
    static const double halves[] = {1, 2.5, 3};
    assert_int_equal(oi_convert(OI_I32, to, OI_F64, halves, 3),
                     1); /* stops at what is no integer */
    static const uint64_t large[] = {5, UINT64_MAX};
    assert_int_equal(oi_convert(OI_I64, to, OI_U64, large, 2), 1);
    assert_int_equal(oi_convert(OI_F32, to, OI_U64, large, 2), 2);
    assert_true(oi_element_f64(OI_F32, to, 1) == 0x1p64);
    assert_int_equal(oi_convert(OI_F32, to, OI_STR, large, 2), 0);
    assert_int_equal(oi_convert(OI_STR, to, OI_F32, large, 2), 0);
    assert_int_equal(oi_element_bits(OI_STR, large, 0), 0);
    assert_int_equal(oi_element_bits(OI_U4, "\x21", 1), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversions),
        cmocka_unit_test(table_is_whole),
        cmocka_unit_test(sizes),
        cmocka_unit_test(small_floats),
        cmocka_unit_test(f32_like_the_machine),
        cmocka_unit_test(packed),
        cmocka_unit_test(bit_layout),
        cmocka_unit_test(ranges),
        cmocka_unit_test(floats_as_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
