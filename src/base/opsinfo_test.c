/* opsinfo_test.c: the op registry as the public API shows it. */
#include "openinfer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static size_t find(const char *name)
{
    size_t op = oi_ops_find(name);
    assert_true(op < oi_ops_count());
    return op;
}

static void test_info(void **state)
{
    (void)state;
    oi_ops_info info;
    assert_true(oi_ops_get(find("gather"), &info));
    assert_string_equal(info.name, "gather");
    assert_string_equal(info.cls, "move");
    assert_string_equal(info.dtypes, "all");
    assert_string_equal(info.onnx, "Gather-13");
    assert_int_equal(info.n_inputs, 2);
    assert_int_equal(info.n_attrs, 1);
    assert_null(info.aliases[0]);
    assert_false(oi_ops_get(oi_ops_count(), &info));
    assert_int_equal(oi_ops_find("nothing"), OI_OPS_NONE);
    assert_int_equal(oi_ops_find(NULL), OI_OPS_NONE);
    assert_string_equal(oi_ops_nearest("gathre"), "gather");
    assert_null(oi_ops_nearest("qqqqqqqq"));
}

static void test_ports(void **state)
{
    (void)state;
    oi_ops_port port;
    assert_true(oi_ops_input(find("sdpa"), 3, &port));
    assert_string_equal(port.name, "mask");
    assert_string_equal(port.dtypes, "bool u8 F");
    assert_true(port.optional && !port.variadic);
    assert_false(oi_ops_input(find("sdpa"), 4, &port));
    assert_true(oi_ops_output(find("argmax_axis"), 0, &port));
    assert_string_equal(port.dtypes, "i64 i32");
    assert_false(oi_ops_output(find("argmax_axis"), 1, &port));
    assert_false(oi_ops_input(oi_ops_count(), 0, &port));
    assert_false(oi_ops_output(oi_ops_count(), 0, &port));
}

static void test_attrs(void **state)
{
    (void)state;
    oi_ops_attr a;
    assert_true(oi_ops_attr_at(find("relu"), 0, &a));
    assert_string_equal(a.name, "negative_slope");
    assert_string_equal(a.alias, "alpha");
    assert_string_equal(a.kind, "number");
    assert_string_equal(a.standard, "0");
    assert_string_equal(a.absent, "");
    assert_null(a.values[0]);
    assert_true(oi_ops_attr_at(find("round"), 0, &a));
    assert_string_equal(a.standard, "\"half_away\"");
    assert_string_equal(a.values[1], "half_even");
    assert_true(oi_ops_attr_at(find("shr"), 0, &a));
    assert_true(a.required);
    assert_string_equal(a.input, "y");
    assert_false(oi_ops_attr_at(find("shr"), 1, &a));
    assert_false(oi_ops_attr_at(oi_ops_count(), 0, &a));
}

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(oi_ops_flag(find("matmul"), 0), "broadcast");
    assert_string_equal(oi_ops_flag(find("matmul"), 1), "acc");
    assert_null(oi_ops_flag(find("matmul"), 2));
    assert_null(oi_ops_flag(oi_ops_count(), 0));
    assert_string_equal(oi_ops_class(0), "map");
    assert_null(oi_ops_class(100));
    const char *name, *members;
    assert_true(oi_ops_dtype_class(0, &name, &members));
    assert_string_equal(name, "F");
    assert_string_equal(members, "f8 bf16 f16 f32 f64");
    assert_false(oi_ops_dtype_class(100, &name, &members));
    assert_true(oi_ops_dtype_in("F S i4", OI_I4));
    assert_true(oi_ops_dtype_in("N", OI_BF16));
    assert_false(oi_ops_dtype_in("F S i4", OI_U8));
    assert_false(oi_ops_dtype_in("F S i4", OI_NONE));
    assert_false(oi_ops_dtype_in("", OI_U8));
}

static bool takes_f32(void *ctx, size_t op, oi_dtype t)
{
    return op == *(size_t *)ctx && t == OI_F32;
}

static bool takes_nothing(void *ctx, size_t op, oi_dtype t)
{
    (void)ctx, (void)op, (void)t;
    return false;
}

static void test_element_types(void **state)
{
    (void)state;
    size_t add = find("add");
    assert_true(oi_ops_takes(add, OI_F32));
    assert_false(oi_ops_takes(add, OI_T1));
    assert_false(oi_ops_takes(oi_ops_count(), OI_F32));
}

static void test_json(void **state)
{
    (void)state;
    char *text = NULL;
    size_t fma = find("fma");
    assert_int_equal(oi_ops_to_json(OI_OPS_NONE, takes_f32, &fma, &text, NULL), OI_OK);
    assert_non_null(strstr(text, "\"dtypes\": [\n        \"f32\"\n      ]"));
    assert_null(strstr(text, "\"name\": \"add\""));
    oi_free(text);
    assert_int_equal(oi_ops_to_json(OI_OPS_NONE, takes_nothing, NULL, &text, NULL), OI_OK);
    assert_string_equal(text, "{\n  \"ops\": []\n}\n");
    oi_free(text);
    assert_int_equal(oi_ops_to_json(fma, NULL, NULL, &text, NULL), OI_OK);
    assert_non_null(strstr(text, "\"name\": \"fma\""));
    oi_free(text);
    assert_int_equal(oi_ops_to_json(oi_ops_count(), NULL, NULL, &text, NULL), OI_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info),          cmocka_unit_test(test_ports),
        cmocka_unit_test(test_attrs),         cmocka_unit_test(test_words),
        cmocka_unit_test(test_element_types), cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
