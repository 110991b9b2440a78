/* oinf_print_test.c: the listing, byte for byte, and the figures in it. That the Python tool prints
 * the same is for tests/test_inspect.py. */
#define _XOPEN_SOURCE 700
#include "oinf/oinf_testing.h"

#include <float.h>
#include <locale.h>
#include <math.h>

static char *printed(bytes b, const oi_print_options *o)
{
    oi_model *m = NULL;
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    assert_int_equal(oi_model_open_memory(b.at, b.n, NULL, &m, NULL), OI_OK);
    assert_int_equal(oi_model_print(m, to, o, NULL), OI_OK);
    fclose(to);
    oi_model_close(m);
    return text;
}

static void expect_text(bytes b, const oi_print_options *o, const char *want)
{
    char *text = printed(b, o);
    assert_string_equal(text, want);
    free(text);
}

static void sample_text(void **state)
{
    (void)state;
    bytes b = sample();
    expect_text(
        b, NULL,
        "A := 1\n"
        "B := 4\n"
        "\n"
        "flag: bool = true\n"
        "mask: bitset[12] = 0d 02\n"
        "mode: str = \"clamp_up\"\n"
        "nd: i8[3] = { 1, 2, -3 }\n"
        "note: text[3] = \"a b\"\n"
        "step: u8 = 3\n"
        "\n"
        "a: f32[2, 2] = { \n"
        "{ 1, 2.5 } ,\n"
        "{ -3, 0.25 } ,\n"
        "}\n"
        "- [nbytes: 16, min: -3, max: 2.5, mean: 0.1875, median: 0.625, std: 2.01071]\n"
        "- hist: {([-3, -2.45], 1), ([-0.25, 0.3], 1), ([0.85, 1.4], 1), ([1.95, 2.5], 1)}\n"
        "\n"
        "b: i8[2, 3] = { \n"
        "{ 1, 2, 3 } ,\n"
        "{ 4, 5, 6 } ,\n"
        "}\n"
        "- [nbytes: 6, min: 1, max: 6, mean: 3.5, median: 3.5, std: 1.70783]\n"
        "- hist: {([1, 1], 1), ([2, 2], 1), ([3, 3], 1), ([4, 4], 1), ([5, 5], 1), ([6, 6], "
        "1)}\n"
        "- quant: scheme=asymmetric, scale=per_channel(axis=0, { 0.5, 2 }), "
        "zero_point=per_channel(axis=0, { 1, -7 })\n"
        "\n"
        "c: f16[4] -- uninitialized\n"
        "\n"
        "t: t2[5] = { 1, 0, 1, -1, 1 }\n"
        "- [nbytes: 2, min: -1, max: 1, mean: 0.4, median: 1, std: 0.8]\n"
        "- hist: {([-1, -1], 1), ([0, 0], 1), ([1, 1], 3)}\n"
        "\n"
        "u: bool[3] = { true, false, true }\n"
        "- [nbytes: 3, min: 0, max: 1, mean: 0.666667, median: 1, std: 0.471405]\n"
        "- hist: {([0, 0], 1), ([1, 1], 2)}\n");
    expect_text(b, &(oi_print_options){.tensor = "u", .hist = true},
                "u: bool[3] = { true, false, true }\n"
                "- [nbytes: 3, min: 0, max: 1, mean: 0.666667, median: 1, std: 0.471405]\n"
                "- hist: {([0, 0], 1), ([1, 1], 2)}\n"
                "    [0, 0] |#################### 1\n"
                "    [1, 1] |######################################## 2\n");
    free(b.at);
}

static void sample_json(void **state)
{
    (void)state;
    oi_writer *w = oi_writer_new();
    const uint64_t two = 2;
    const double doubles[] = {0.1, -INFINITY};
    const float scale = 0.1f;
    const oi_view nd = {.dtype = OI_F64, .rank = 1, .dims = &two, .data = doubles};
    const oi_quant q = {OI_SYMMETRIC, OI_PER_TENSOR, OI_QUANT_NONE, 0, 0, 1, 0, &scale, NULL};
    oi_writer_sizevar(w, "B", UINT64_MAX, NULL);
    oi_writer_ndarray(w, "d", &nd, NULL);
    oi_writer_bitset(w, "e", "\x02", 2, NULL);
    oi_writer_f64(w, "f", OI_F16, 0.1, NULL);
    oi_writer_text(w, "g", "xyz", 3, NULL);
    oi_writer_u64(w, "h", OI_U64, UINT64_MAX, NULL);
    oi_writer_u64(w, "i", OI_BOOL, 0, NULL);
    oi_writer_add_tensor(w, &(oi_writer_tensor){.name = "t", .dtype = OI_I8, .quant = &q}, NULL);
    bytes b = finish(w);
    static const char metadata[] = "{\n"
                                   "  \"metadata\": {\n"
                                   "    \"d\": {\n"
                                   "      \"dims\": [\n"
                                   "        2\n"
                                   "      ],\n"
                                   "      \"dtype\": \"f64\",\n"
                                   "      \"value\": [\n"
                                   "        0.10000000000000001,\n"
                                   "        \"-inf\"\n"
                                   "      ]\n"
                                   "    },\n"
                                   "    \"e\": {\n"
                                   "      \"dtype\": \"bitset\",\n"
                                   "      \"value\": [\n"
                                   "        0,\n"
                                   "        1\n"
                                   "      ]\n"
                                   "    },\n"
                                   "    \"f\": {\n"
                                   "      \"dtype\": \"f16\",\n"
                                   "      \"value\": 0.0999755859\n"
                                   "    },\n"
                                   "    \"g\": {\n"
                                   "      \"dtype\": \"str\",\n"
                                   "      \"value\": \"xyz\"\n"
                                   "    },\n"
                                   "    \"h\": {\n"
                                   "      \"dtype\": \"u64\",\n"
                                   "      \"value\": 18446744073709551615\n"
                                   "    },\n"
                                   "    \"i\": {\n"
                                   "      \"dtype\": \"bool\",\n"
                                   "      \"value\": false\n"
                                   "    }\n"
                                   "  },\n"
                                   "  \"sizevars\": {\n"
                                   "    \"B\": 18446744073709551615\n"
                                   "  },\n";
    static const char tensors[] = "  \"tensors\": {\n"
                                  "    \"t\": {\n"
                                  "      \"data_nbytes\": 0,\n"
                                  "      \"data_offset\": 0,\n"
                                  "      \"dims\": [],\n"
                                  "      \"dtype\": \"i8\",\n"
                                  "      \"flags\": 2,\n"
                                  "      \"quant\": {\n"
                                  "        \"scale\": {\n"
                                  "          \"axis\": 0,\n"
                                  "          \"mode\": \"per_tensor\",\n"
                                  "          \"values\": [\n"
                                  "            0.100000001\n"
                                  "          ]\n"
                                  "        },\n"
                                  "        \"scheme\": \"symmetric\",\n"
                                  "        \"zero_point\": null\n"
                                  "      },\n"
                                  "      \"quant_nbytes\": 56,\n"
                                  "      \"quant_offset\": 416\n"
                                  "    }\n"
                                  "  }\n"
                                  "}\n";
    char all[4096];
    snprintf(all, sizeof all, "%s%s", metadata, tensors);
    expect_text(b, &(oi_print_options){.json = true}, all);
    snprintf(all, sizeof all, "{\n  \"metadata\": {},\n  \"sizevars\": {},\n%s", tensors);
    expect_text(b, &(oi_print_options){.json = true, .tensor = "t"}, all);
    free(b.at);
}

/* -- shapes and values -- */

static bytes one_tensor(oi_dtype t, uint32_t rank, const uint64_t *dims, const void *data)
{
    oi_writer *w = oi_writer_new();
    const oi_writer_tensor x = {.name = "x", .dtype = t, .rank = rank, .dims = dims, .data = data};
    assert_int_equal(oi_writer_add_tensor(w, &x, NULL), OI_OK);
    return finish(w);
}

static void expect_tensor(oi_dtype t, uint32_t rank, const uint64_t *dims, const void *data,
                          const char *want)
{
    bytes b = one_tensor(t, rank, dims, data);
    expect_text(b, NULL, want);
    free(b.at);
}

static void shapes(void **state)
{
    (void)state;
    const uint64_t d11[] = {1, 1}, d04[] = {0, 4}, d12[] = {12}, d612[] = {6, 2, 6}, d10[] = {10};
    uint8_t u8s[72];
    for (int i = 0; i < 72; i++)
        u8s[i] = (uint8_t)i;
    expect_tensor(OI_U8, 0, NULL, u8s + 7,
                  "x: u8 = 7\n- [nbytes: 1, min: 7, max: 7, mean: 7, median: 7, std: 0]\n"
                  "- hist: {([7, 7], 1)}\n");
    expect_tensor(
        OI_U8, 2, d11, u8s + 7,
        "x: u8[1, 1] = { \n{ 7 } ,\n}\n- [nbytes: 1, min: 7, max: 7, mean: 7, median: 7, std: 0]\n"
        "- hist: {([7, 7], 1)}\n");
    expect_tensor(OI_F32, 2, d04, "", "x: f32[0, 4] = { }\n- [nbytes: 0]\n");
    expect_tensor(OI_F32, 2, d04, NULL, "x: f32[0, 4] -- uninitialized\n");
    expect_tensor(OI_F32, 0, NULL, NULL, "x: f32 -- uninitialized\n");
    expect_tensor(OI_U1, 1, d10, "\xff\x01",
                  "x: u1[10] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 0 }\n"
                  "- [nbytes: 2, min: 0, max: 1, mean: 0.9, median: 1, std: 0.3]\n"
                  "- hist: {([0, 0], 1), ([1, 1], 9)}\n");
    expect_tensor(
        OI_U4, 1, d12, "\x10\x32\x54\x76\x98\xba",
        "x: u4[12] = { 0, 1, 2, 3, 4, ..., 7, 8, 9, 10, 11 }\n"
        "- [nbytes: 6, min: 0, max: 11, mean: 5.5, median: 5.5, std: 3.45205]\n"
        "- hist: {([0, 0], 1), ([1, 1], 1), ([2, 2], 1), ([3, 3], 1), ([4, 4], 1), ([5, "
        "5], 1), ([6, 6], 1), ([7, 7], 1), ([8, 8], 1), ([9, 9], 1), ([10, 10], 1), ([11, "
        "11], 1)}\n");
    expect_tensor(OI_U8, 3, d612, u8s,
                  "x: u8[6, 2, 6] = { \n"
                  "{ 0, 1, 2, 3, 4, ..., 7, 8, 9, 10, 11 } ,\n"
                  "{ 12, 13, 14, 15, 16, ..., 19, 20, 21, 22, 23 } ,\n"
                  "{ 24, 25, 26, 27, 28, ..., 31, 32, 33, 34, 35 } ,\n"
                  "{ 36, 37, 38, 39, 40, ..., 43, 44, 45, 46, 47 } ,\n"
                  "{ 48, 49, 50, 51, 52, ..., 55, 56, 57, 58, 59 } ,\n"
                  "...\n"
                  "}\n"
                  "- [nbytes: 72, min: 0, max: 71, mean: 35.5, median: 35.5, std: 20.7826]\n"
                  "- hist: {([0, 7.1], 8), ([7.1, 14.2], 7), ([14.2, 21.3], 7), ([21.3, 28.4], 7), "
                  "([28.4, 35.5], 7), ([35.5, 42.6], 7), ([42.6, 49.7], 7), ([49.7, 56.8], 7), "
                  "([56.8, 63.9], 7), ([63.9, 71], 8)}\n");
}

static void floats(void **state)
{
    (void)state;
    const uint64_t four = 4, three = 3, two = 2;
    const float special[] = {NAN, INFINITY, -INFINITY, -0.0f}, none[] = {NAN, -NAN, INFINITY};
    const double huge[] = {-DBL_MAX, DBL_MAX}, tiny[] = {0, 4.9406564584124654e-324};
    const int64_t ends[] = {INT64_MIN, INT64_MAX};
    const uint64_t top[] = {UINT64_MAX - 30, UINT64_MAX};
    expect_tensor(OI_F32, 1, &four, special,
                  "x: f32[4] = { nan, inf, -inf, -0 }\n"
                  "- [nbytes: 16, min: 0, max: 0, mean: 0, median: 0, std: 0, inf: 2, nan: 1]\n"
                  "- hist: {([0, 0], 1)}\n");
    expect_tensor(OI_F32, 1, &three, none,
                  "x: f32[3] = { nan, nan, inf }\n- [nbytes: 12, inf: 1, nan: 2]\n- hist: {}\n");
    expect_tensor(OI_F64, 1, &two, huge,
                  "x: f64[2] = { -1.79769e+308, 1.79769e+308 }\n"
                  "- [nbytes: 16, min: -1.79769e+308, max: 1.79769e+308, mean: 0, median: 0, std: "
                  "inf]\n"
                  "- hist: {([-1.79769e+308, -1.43815e+308], 1), ([inf, inf], 1)}\n");
    expect_tensor(OI_F64, 1, &two, tiny,
                  "x: f64[2] = { 0, 4.94066e-324 }\n"
                  "- [nbytes: 16, min: 0, max: 4.94066e-324, mean: 0, median: 0, std: 0]\n"
                  "- hist: {([0, 0], 1), ([0, 0], 1)}\n");
    expect_tensor(OI_I64, 1, &two, ends,
                  "x: i64[2] = { -9223372036854775808, 9223372036854775807 }\n"
                  "- [nbytes: 16, min: -9223372036854775808, max: 9223372036854775807, mean: 0, "
                  "median: 0, std: 9.22337e+18]\n"
                  "- hist: {([-9.22337e+18, -7.3787e+18], 1), ([7.3787e+18, 9.22337e+18], 1)}\n");
    expect_tensor(OI_U64, 1, &two, top,
                  "x: u64[2] = { 18446744073709551585, 18446744073709551615 }\n"
                  "- [nbytes: 16, min: 18446744073709551585, max: 18446744073709551615, mean: "
                  "1.84467e+19, median: 1.84467e+19, std: 0]\n"
                  "- hist: {([1.84467e+19, 1.84467e+19], 2)}\n");
}

static void strings(void **state)
{
    (void)state;
    oi_writer *w = oi_writer_new();
    oi_writer_text(w, "s", "12345678", 8, NULL);
    oi_writer_bitset(w, "none", NULL, 0, NULL);
    oi_writer_bitset(w, "many", "\1\2\3\4\5", 40, NULL);
    bytes b = finish(w);
    uint8_t *text = b.at + oi_get_u64(b.at + entry(b, "s") + 16) + 4;
    memcpy(text, "\"\\\n\r\t\x01\xc3\xa9", 8); /* the reader accepts any UTF-8 */
    expect_text(b, NULL,
                "many: bitset[40] = 01 02 03 04\n"
                "none: bitset[0] = { }\n"
                "s: str = \"\\\"\\\\\\n\\r\\t\\u0001\u00e9\"\n");
    memcpy(text, "\x7f\b\f78901", 8);
    char *json = printed(b, &(oi_print_options){.json = true});
    assert_non_null(strstr(json, "\"value\": \"\\u007f\\b\\f78901\"\n"));
    free(json);
    free(b.at);
}

/* Numbers have a point wherever the caller lives. */
static void locales(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"};
    const float half = 0.5f;
    bytes b = one_tensor(OI_F32, 0, NULL, &half);
    for (size_t i = 0; i < OI_COUNT(names); i++)
        if (setlocale(LC_ALL, names[i])) {
            char *text = printed(b, NULL);
            assert_memory_equal(text, "x: f32 = 0.5\n", 13);
            free(text);
        }
    setlocale(LC_ALL, "C");
    free(b.at);
}

static void wrong_calls(void **state)
{
    (void)state;
    bytes b = sample();
    oi_model *m = NULL;
    oi_diag *d = oi_diag_new();
    assert_int_equal(oi_model_open_memory(b.at, b.n, NULL, &m, NULL), OI_OK);
    assert_int_equal(oi_model_print(NULL, stdout, NULL, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_model_print(m, NULL, NULL, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_model_print(m, stdout, &(oi_print_options){.tensor = "zzzzz"}, d),
                     OI_ERR_INPUT);
    assert_string_equal(oi_diag_at(d, 0).text, "oinf: <memory>: no tensor named 'zzzzz'");
    oi_model_close(m);
    free(b.at);
    oi_diag_clear(d);

    oi_writer *w = oi_writer_new();
    oi_writer_add_tensor(w, &(oi_writer_tensor){.name = "weights", .dtype = OI_U8}, NULL);
    b = finish(w);
    assert_int_equal(oi_model_open_memory(b.at, b.n, NULL, &m, NULL), OI_OK);
    assert_int_equal(oi_model_print(m, stdout, &(oi_print_options){.tensor = "wieghts"}, d),
                     OI_ERR_INPUT);
    assert_string_equal(oi_diag_at(d, 0).text,
                        "oinf: <memory>: no tensor named 'wieghts', did you mean 'weights'?");
    oi_model_close(m);
    oi_diag_free(d);
    free(b.at);
}

/* Strict values are judged before the first byte is printed. */
static void strict_prints_nothing(void **state)
{
    (void)state;
    bytes b = sample();
    patch(b, oi_get_u64(b.at + entry(b, "u") + 28), 1, 9);
    oi_model *m = NULL;
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    assert_int_equal(oi_model_open_memory(b.at, b.n, &(oi_model_options){.strict = true}, &m, NULL),
                     OI_OK);
    assert_int_equal(oi_model_print(m, to, NULL, NULL), OI_ERR_INPUT);
    fclose(to);
    assert_int_equal(n, 0);
    free(text);
    oi_model_close(m);
    free(b.at);
}

/* -- figures -- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Median, minimum and counts of random data of every type against a plain sort. */
static void figures(void **state)
{
    (void)state;
    uint64_t seed = 7;
    static const size_t sizes[] = {1, 2, 3, 10, 1001, 20000};
    uint8_t *data = malloc(8 * 20000);
    double *values = malloc(8 * 20000);
    for (oi_dtype t = 1; t < OI_DTYPE_COUNT; t++)
        for (size_t k = 0; oi_dtype_is_tensor(t) && t != OI_BITSET && k < OI_COUNT(sizes); k++) {
            uint64_t n = sizes[k], n_finite = 0, size;
            oi_dtype_bytes(t, n, &size);
            for (uint64_t i = 0; i < size; i++)
                data[i] = (uint8_t)oi_splitmix64(&seed);
            for (uint64_t i = 0; i < n; i++) {
                if (t == OI_BOOL || t == OI_T2) /* only their own values */
                    oi_element_set_i64(t, data, i, (int64_t)(oi_splitmix64(&seed) % 2));
                double v = oi_element_f64(t, data, i);
                if (isfinite(v))
                    values[n_finite++] = v;
            }
            bytes b = one_tensor(t, 1, &n, data);
            oi_model *m = NULL;
            oi_stats s;
            assert_int_equal(oi_model_open_memory(b.at, b.n, NULL, &m, NULL), OI_OK);
            assert_int_equal(oi_oinf_stats(m, 0, &s, NULL), OI_OK);
            qsort(values, n_finite, sizeof *values, by_value);
            uint64_t counted = 0;
            for (uint32_t i = 0; i < s.n_bins; i++)
                counted += s.bins[i].n;
            assert_int_equal(s.n_finite, n_finite);
            assert_int_equal(counted, n_finite);
            assert_int_equal(s.n_finite + s.n_nan + s.n_inf, n);
            if (n_finite) {
                double a = values[(n_finite - 1) / 2], c = values[n_finite / 2];
                assert_true(s.min == values[0] && s.max == values[n_finite - 1]);
                assert_true(s.median == (isfinite(a + c) ? (a + c) / 2 : a / 2 + c / 2));
            }
            oi_model_close(m);
            free(b.at);
        }
    free(data);
    free(values);
}

static double exact(const double *values, size_t n)
{
    oi_exact_sum s = {0};
    for (size_t i = 0; i < n; i++)
        oi_exact_sum_add(&s, values[i]);
    return oi_exact_sum_get(&s);
}

static void exact_sums(void **state)
{
    (void)state;
    const struct {
        double in[5], out;
    } cases[] = {
        {{0}, 0},
        {{1, 1e100, 1, -1e100}, 2},
        {{1e308, 1e308, -1e308}, 1e308},
        {{1e308, 1e308}, INFINITY},
        {{-1e308, -1e308}, -INFINITY},
        {{4.9406564584124654e-324, 4.9406564584124654e-324}, 9.8813129168249309e-324},
        {{DBL_MIN, -4.9406564584124654e-324}, 2.2250738585072009e-308},
        {{1, 0x1p-53}, 1},                     /* a tie goes to even */
        {{1, 0x1p-53, 0x1p-200}, 1 + 0x1p-52}, /* a little more than a tie does not */
        {{-1, -0x1p-53, -0x1p-200}, -1 - 0x1p-52},
        {{0x1p53, 1, 0x1p-1074}, 0x1p53 + 2},
        {{0x1p32, -1, 0.5}, 4294967295.5},
        {{INFINITY, 1}, INFINITY},
        {{-INFINITY, 1e308}, -INFINITY},
    };
    for (size_t i = 0; i < OI_COUNT(cases); i++) {
        double got = exact(cases[i].in, 5);
        if (got != cases[i].out)
            fail_msg("case %zu: %.17g, wanted %.17g", i, got, cases[i].out);
    }
    const double both[] = {INFINITY, -INFINITY};
    assert_true(isnan(exact(both, 2)));
    /* random integers in random order, scaled: the sum is known */
    uint64_t seed = 3;
    for (int turn = 0; turn < 200; turn++) {
        oi_exact_sum s = {0};
        int64_t sum = 0;
        int scale = (int)(oi_splitmix64(&seed) % 1900) - 1000;
        for (int i = 0; i < 100; i++) {
            int64_t v = (int64_t)(oi_splitmix64(&seed) >> 14) - (1ll << 49);
            sum += v;
            oi_exact_sum_add(&s, ldexp((double)v, scale));
        }
        assert_true(oi_exact_sum_get(&s) == ldexp((double)sum, scale));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_text), cmocka_unit_test(sample_json),
        cmocka_unit_test(shapes),      cmocka_unit_test(floats),
        cmocka_unit_test(strings),     cmocka_unit_test(locales),
        cmocka_unit_test(wrong_calls), cmocka_unit_test(strict_prints_nothing),
        cmocka_unit_test(figures),     cmocka_unit_test(exact_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
