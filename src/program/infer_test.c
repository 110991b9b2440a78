/* infer_test.c: the rules that all ops share: counts, dtypes, attribute kinds, broadcasting, acc.
 */
#include "program/infer_test.h"

/* -- common rules -- */

static void test_counts(void **state)
{
    (void)state;
    refuse("add(f32[4]) >> f32[4]", "E056", "takes 2 inputs, found 1");
    refuse("add(f32[4], f32[4], f32[4]) >> f32[4]", "E056", "takes 2 inputs, found 3");
    refuse("neg(f32[4], f32[4]) >> f32[4]", "E056", "takes 1 input, found 2");
    refuse("sdpa(f32[4], f32[4]) >> f32[4]", "E056", "takes 3 or 4 inputs, found 2");
    refuse("shl(i8[4], i8[4], i8[4]) >> i8[4]", "E056", "takes 1 or 2 inputs, found 3");
    refuse("neg(f32[4]) >> f32[4], f32[4]", "E056", "gives 1 output, found 2");
}

static void test_dtypes(void **state)
{
    (void)state;
    refuse("add(f32[4], i32[4]) >> f32[4]", "E050", "input 'y' is i32 but 'x' is f32");
    refuse("matmul(i32[2,3], f32[3,4]) >> f32[2,4]", "E050", "input 'y' is f32 but 'x' is i32");
    refuse("fma(f32[4], f32[4], f64[4]) >> f32[4]", "E050", "input 'z' is f64 but 'x' is f32");
    refuse("add(f32[4], f32[4]) >> f64[4]", "E050",
           "the output is declared f64, the result is f32");
    refuse("add(t1[4], t1[4]) >> t1[4]", "E060", "input 'x' cannot be t1 (takes N bool)");
    refuse("add(bitset[4], bitset[4]) >> bitset[4]", "E060",
           "input 'x' cannot be bitset (takes N bool)");
    refuse("sub(bool[4], bool[4]) >> bool[4]", "E060", "input 'x' cannot be bool (takes N)");
    refuse("div(i2[4], i2[4]) >> i2[4]", "E060", "input 'x' cannot be i2 (takes F S U i4 u4)");
    accept("add(bool[4], bool[4]) >> bool[4]");
    accept("mul(bool[4], bool[4]) >> bool[4]");
    accept("add(u1[4], u1[4]) >> u1[4]");
    accept("add(bf16[4], bf16[4]) >> bf16[4]");
}

static void test_broadcast(void **state)
{
    (void)state;
    accept("add(f32[B,64], f32[64]) >> f32[B,64]");
    accept("add(f32[B,64], f32[B,64]) >> f32[B,64]");
    accept("add(f32[], f32[B]) >> f32[B]");
    accept("add(f32[3,1], f32[1,4]) >> f32[3,4]");
    accept("add(f32[0], f32[1]) >> f32[0]");
    accept("add(f32[B], f32[D]) >> f32[B]"); /* nobody knows yet */
    accept("add(f32[B], f32[64]) >> f32[64]");
    accept("add(f32[?], f32[64]) >> f32[?]");
    accept("add(f32[?], f32[?]) >> f32[B]");
    refuse("add(f32[B,64], f32[32]) >> f32[B,64]", "E051", "cannot broadcast [B, 64] with [32]");
    refuse("add(f32[B=4,D=64], f32[H=32]) >> f32[B=4,D=64]", "E051",
           "cannot broadcast [B, D] with [H] (B = 4, D = 64, H = 32)");
    refuse("add(f32[0], f32[2]) >> f32[0]", "E051", "cannot broadcast [0] with [2]");
    refuse("add(f32[D], f32[D]) >> f32[B,D]", "E051", "declared [B, D], result is [D]");
    refuse("add(f32[B,1], f32[1,64]) >> f32[B,1]", "E051", "declared [B, 1], result is [B, 64]");
    refuse("add(f32[B=2], f32[2]) >> f32[3]", "E051", "declared [3], result is [B] (B = 2)");
    refuse("sub(f32[2], f32[3]) >> f32[3]", "E051", "cannot broadcast [2] with [3]");
    refuse("mul(f32[2,2], f32[3,1,4]) >> f32[3,2,4]", "E051",
           "cannot broadcast [2, 2] with [3, 1, 4]");
    accept("sub(i8[2,1], i8[3]) >> i8[2,3]");
    accept("mul(u4[2,1], u4[3]) >> u4[2,3]");
}

static void test_acc(void **state)
{
    (void)state;
    accept("add(i8[4], i8[4]; acc=i32) >> i32[4]");
    accept("add(i8[4], i8[4]; acc=[i16,i32]) >> i32[4]");
    accept("add(i1[4], i1[4]; acc=i64) >> i64[4]");
    accept("sub(u4[4], u4[4]; acc=[u8]) >> u8[4]");
    accept("mul(i32[4], i32[4]; acc=[i32]) >> i32[4]");
    accept("mul(f16[4], f16[4]; acc=[f32,f16]) >> f16[4]");
    accept("mul(f8[4], f8[4]; acc=bf16) >> bf16[4]");
    accept("abs(i8[4]; acc=i16) >> i16[4]");
    accept("abs(f16[4]; acc=f32) >> f32[4]");
    accept("matmul(f32[2,3], f32[3,4]; acc=[f32,f32]) >> f32[2,4]");
    accept("matmul(i4[2,3], i4[3,4]; acc=f32) >> f32[2,4]");
    accept("sum_axis(i8[2,3]; axes=1, acc=[i32]) >> i32[2]");
    accept("mean_axis(u8[2,3]; axes=1, acc=[u32,f32]) >> f32[2]");
    accept("prod_axis(i16[2,3]; axes=[0], acc=i64) >> i64[3]");
    refuse("add(i8[4], i8[4]; acc=i32) >> i8[4]", "E050",
           "the output is declared i8, the result is i32");
    refuse("add(i32[4], i32[4]; acc=i16) >> i16[4]", "E050", "i32 cannot be accumulated in i16");
    refuse("add(i8[4], i8[4]; acc=u16) >> u16[4]", "E050", "i8 cannot be accumulated in u16");
    refuse("add(u8[4], u8[4]; acc=i16) >> i16[4]", "E050", "u8 cannot be accumulated in i16");
    refuse("add(i1[4], i1[4]; acc=i4) >> i4[4]", "E050", "i1 cannot be accumulated in i4");
    refuse("add(f32[4], f32[4]; acc=f16) >> f16[4]", "E050", "f32 cannot be accumulated in f16");
    refuse("add(bf16[4], bf16[4]; acc=f16) >> f16[4]", "E050", "bf16 cannot be accumulated in f16");
    refuse("add(f32[4], f32[4]; acc=i32) >> i32[4]", "E050", "f32 cannot be accumulated in i32");
    refuse("add(i8[4], i8[4]; acc=f16) >> f16[4]", "E050", "i8 cannot be accumulated in f16");
    refuse("add(bool[4], bool[4]; acc=i8) >> i8[4]", "E050", "bool cannot be accumulated in i8");
    refuse("matmul(t1[2,3], t1[3,4]; acc=i32) >> i32[2,4]", "E050",
           "t1 cannot be accumulated in i32");
    refuse("add(f16[4], f16[4]; acc=[f32,i8]) >> i8[4]", "E050",
           "an accumulator of f32 cannot be given as i8");
    refuse("add(i8[4], i8[4]; acc=[i16,i32,i64]) >> i64[4]", "E053",
           "acc wants one or two element types, found 3");
    refuse("add(i8[4], i8[4]; acc=[]) >> i8[4]", "E053",
           "acc wants one or two element types, found 0");
    refuse("add(i8[4], i8[4]; acc=3) >> i8[4]", "E053",
           "attribute 'acc' wants an element type or a list of them, found an integer");
    refuse("add(i8[4], i8[4]; acc=$i8[]) >> i8[4]", "E053",
           "attribute 'acc' wants an element type or a list of them, found a variable of i8");
}

static void test_attr_kinds(void **state)
{
    (void)state;
    refuse("relu(f32[4]; clamp_max=\"x\") >> f32[4]", "E053",
           "attribute 'clamp_max' wants a number, found a string");
    refuse("sum_axis(f32[4]; axes=0, keepdims=1) >> f32[]", "E053",
           "attribute 'keepdims' wants true or false, found an integer");
    refuse("sum_axis(f32[4]; axes=0.0) >> f32[]", "E053",
           "attribute 'axes' wants an axis or a list of axes, found a float");
    refuse("argmax_axis(f32[4]; axis=[0]) >> i64[]", "E053",
           "attribute 'axis' wants an axis (an integer), found a list of integers");
    refuse("argmax_axis(f32[4]; axis=9223372036854775808) >> i64[]", "E053",
           "attribute 'axis' wants an axis (an integer), found an integer above 2^63-1");
    refuse("round(f32[4]; mode=\"half_up\") >> f32[4]", "E053",
           "attribute 'mode' wants \"half_away\" or \"half_even\", found \"half_up\"");
    refuse("round(f32[4]; mode=3) >> f32[4]", "E053",
           "attribute 'mode' wants a string, found an integer");
    refuse("cast(f32[4]; to=f16, rounding_mode=\"up\") >> f16[4]", "E053",
           "attribute 'rounding_mode' wants \"trunc\", \"floor\", \"ceil\", \"nearest\" or "
           "\"nearest_even\", found \"up\"");
    refuse("relu(f32[4]; alpha=1, negative_slope=1) >> f32[4]", "E054",
           "attribute 'negative_slope' (also called 'alpha') is given twice");
    refuse("relu(f32[4]; clamp_max=1, clamp_max=1) >> f32[4]", "E054",
           "attribute 'clamp_max' is given twice");
    refuse("fill(f32[4]; value=$f32[2]) >> f32[4]", "E051",
           "attribute 'value' wants a variable of rank 0, found shape [2]");
    refuse("fill(f32[4]; value=$bitset[]) >> f32[4]", "E053",
           "attribute 'value' wants a number, found a variable of bitset");
    refuse("shl(i8[4]; bits=$f32[]) >> i8[4]", "E053",
           "attribute 'bits' wants an integer, found a variable of f32");
    refuse("sum_axis(f32[4]; axes=0, keepdims=$f32[]) >> f32[]", "E053",
           "attribute 'keepdims' wants true or false, found a variable of f32");
    refuse("round(f32[4]; mode=$u8[]) >> f32[4]", "E053",
           "attribute 'mode' wants a string, found a variable of u8");
    accept("fill(i8[4]; value=$f32[]) >> i8[4]"); /* its value is checked when the node runs */
    accept("fill(f32[4]; value=$bool[]) >> f32[4]");
    accept("shl(i8[4]; bits=$u64[]) >> i8[4]");
    accept("round(f32[4]; mode=#) >> f32[4]");
}

/* -- results, text and positions ----------------------------------------------------------------
 */

static void expect_result(const char *text, const char *wanted)
{
    reader r;
    oi_infer_fail fail;
    oi_type out[4];
    read_case(&r, text);
    if (!oi_infer_result(r.op, r.in, r.n_in, r.attrs, r.n_attrs, NULL, out, r.n_out, &fail))
        fail_msg("%s: refused: %s", text, fail.message);
    char found[200];
    oi_text t = {found, 0, sizeof found};
    oi_text_add(&t, "%s", oi_dtype_name(out[0].dtype));
    oi_text_dims(&t, &out[0]);
    assert_string_equal(found, wanted);
}

/* The declared output is ignored: it only counts. */
static void test_results(void **state)
{
    (void)state;
    expect_result("add(f32[B,1], f32[64]) >> f32[]", "f32[B, 64]");
    expect_result("add(f32[B], f32[D]) >> f32[]", "f32[?]");
    expect_result("sign(f32[B]) >> f32[]", "i8[B]");
    expect_result("is_nan(f32[B]) >> f32[]", "bool[B]");
    expect_result("argmax_axis(f32[B,D]; axis=1) >> f32[]", "i64[B]");
    expect_result("cast(f32[B]; to=u4) >> f32[]", "u4[B]");
    expect_result("matmul(i8[B,D], i8[D,H]; acc=[i32,i16]) >> f32[]", "i16[B, H]");
    expect_result("sdpa(f32[B,T,D], f32[B,S,E], f32[B,S,E]; heads=4) >> f32[]", "f32[B, T, D]");
    reader r;
    oi_infer_fail fail;
    oi_type out;
    read_case(&r, "sum_axis(f32[2,3]; axes=$i32[]) >> f32[]");
    assert_false(oi_infer_result(r.op, r.in, r.n_in, r.attrs, r.n_attrs, NULL, &out, 1, &fail));
    assert_string_equal(fail.code, "E051");
}

static void test_places(void **state)
{
    (void)state;
    reader r;
    oi_infer_fail fail;
    assert_false(run_case(&r, "fma(f32[4], f32[4], i8[4]) >> f32[4]", &fail));
    assert_int_equal(fail.at, OI_AT_INPUT);
    assert_int_equal(fail.index, 2);
    assert_int_equal(fail.other, 0);
    assert_false(run_case(&r, "cast(f32[4]; saturate=true, to=f16) >> f32[4]", &fail));
    assert_int_equal(fail.at, OI_AT_OUTPUT);
    assert_false(run_case(&r, "relu(f32[4]; clamp_min=0, clamp_max=\"a\") >> f32[4]", &fail));
    assert_int_equal(fail.at, OI_AT_ATTR);
    assert_int_equal(fail.index, 1);
    assert_false(run_case(&r, "add(f32[4]) >> f32[4]", &fail));
    assert_int_equal(fail.at, OI_AT_OP);
}

/* However long the names, a message stays in its buffer and says that it was cut. */
static void test_long_names(void **state)
{
    (void)state;
    static char name[2000];
    memset(name, 'n', sizeof name - 1);
    oi_type a = {.dtype = OI_F32, .rank = 2, .dims = {{.text = name}, oi_dim_of(2)}};
    oi_type b = {.dtype = OI_F32, .rank = 1, .dims = {oi_dim_of(3)}};
    oi_infer_fail fail;
    assert_false(oi_infer(oi_op_find("add"), (oi_type[]){a, b}, 2, NULL, 0, &a, 1, &fail));
    assert_true(strlen(fail.message) < OI_INFER_TEXT);
    assert_non_null(strstr(fail.message, "..."));
    for (size_t i = 0; i + 2 < sizeof name; i += 2)
        memcpy(name + i, "\xc3\xa9", 2); /* cut between, never inside, a character */
    assert_false(oi_infer(oi_op_find("add"), (oi_type[]){a, b}, 2, NULL, 0, &a, 1, &fail));
    assert_true(oi_utf8_valid(fail.message, strlen(fail.message), NULL));
}

static void test_dim_logic(void **state)
{
    (void)state;
    oi_dim two = oi_dim_of(2), b = {.text = "B"}, d = {.text = "D"}, run = {.text = "?"},
           none = {0};
    oi_dim b2 = {.known = true, .value = 2, .text = "B"};
    assert_int_equal(oi_dim_equal(two, oi_dim_of(3)), OI_DIFFERENT);
    assert_int_equal(oi_dim_equal(two, b2), OI_EQUAL);
    assert_int_equal(oi_dim_equal(b, b), OI_EQUAL);
    assert_int_equal(oi_dim_equal(b, b2), OI_EQUAL);
    assert_int_equal(oi_dim_equal(b, d), OI_UNKNOWN);
    assert_int_equal(oi_dim_equal(b, two), OI_UNKNOWN);
    assert_int_equal(oi_dim_equal(run, run), OI_UNKNOWN);
    assert_int_equal(oi_dim_equal(none, none), OI_UNKNOWN);
    oi_type x = {.rank = 2, .dims = {b, two}}, y = {.rank = 2, .dims = {d, two}};
    assert_int_equal(oi_dims_equal(&x, &y), OI_UNKNOWN);
    assert_int_equal(oi_dims_equal(&x, &x), OI_EQUAL);
    y.rank = 1;
    assert_int_equal(oi_dims_equal(&x, &y), OI_DIFFERENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),     cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_broadcast),  cmocka_unit_test(test_acc),
        cmocka_unit_test(test_attr_kinds), cmocka_unit_test(test_results),
        cmocka_unit_test(test_places),     cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_dim_logic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
