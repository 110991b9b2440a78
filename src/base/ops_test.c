/* ops_test.c: the op registry holds what the catalog says, and lookups find it. */
#include "base/base.h"
#include "base/ops.h"

#include <setjmp.h>
#include <cmocka.h>
#include <math.h>

/* The op names of spec/ops.md parts A and B, written down a second time on purpose. */
static const char *const catalog[] = {
    "add",      "sub",         "mul",         "div",      "floor_div", "rem",       "fma",
    "neg",      "abs",         "recip",       "sign",     "min",       "max",       "clamp",
    "relu",     "floor",       "ceil",        "trunc",    "round",     "and",       "or",
    "xor",      "not",         "shl",         "shr",      "popcount",  "eq",        "ne",
    "lt",       "le",          "gt",          "ge",       "filter",    "is_finite", "is_nan",
    "is_inf",   "is_neg",      "fill",        "sum_axis", "prod_axis", "mean_axis", "max_axis",
    "min_axis", "argmax_axis", "argmin_axis", "cast",     "matmul",    "gather",    "fill_nan_like",
    "sdpa",     "attn"};

static void test_catalog_is_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < OI_COUNT(catalog); i++) {
        const oi_op *op = oi_op_find(catalog[i]);
        if (!op)
            fail_msg("the registry lacks '%s'", catalog[i]);
        assert_string_equal(op->name, catalog[i]);
    }
    assert_true(oi_op_count() >= OI_COUNT(catalog));
}

static void test_ids_are_the_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < oi_op_count(); i++) {
        assert_int_equal(oi_op_at(i)->id, i);
        assert_ptr_equal(oi_op_find(oi_op_at(i)->name), oi_op_at(i));
    }
    assert_null(oi_op_at(oi_op_count()));
    assert_int_equal(oi_op_find("matmul")->id, OI_OP_MATMUL);
}

static void test_names_are_unique(void **state)
{
    (void)state;
    size_t spelled = 0;
    for (size_t i = 0; i < oi_op_count(); i++) {
        const oi_op *op = oi_op_at(i);
        spelled++;
        for (size_t k = 0; op->aliases[k]; k++, spelled++)
            assert_ptr_equal(oi_op_find(op->aliases[k]), op);
    }
    assert_int_equal(spelled, oi_op_key_count);
    for (size_t i = 1; i < oi_op_key_count; i++)
        assert_true(strcmp(oi_op_keys[i - 1].name, oi_op_keys[i].name) < 0);
}

static void test_absent_names(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "ad", "addd", "Add", "zzz", "kv_cache", "add "};
    for (size_t i = 0; i < OI_COUNT(wrong); i++)
        assert_null(oi_op_find(wrong[i]));
    assert_null(oi_op_find(NULL));
    assert_null(oi_op_find_n("add\0x", 5));
    assert_ptr_equal(oi_op_find_n("added", 3), oi_op_find("add"));
}

static void check_ports(const oi_op *op)
{
    assert_true(op->n_outputs >= 1);
    assert_true(op->min_inputs <= op->n_inputs && op->n_inputs <= op->max_inputs);
    assert_true(op->min_outputs <= op->n_outputs && op->n_outputs <= op->max_outputs);
    for (size_t i = 0; i < op->n_inputs; i++) {
        const oi_op_input *in = oi_op_input_at(op, i);
        assert_true(in->name[0] && in->dtypes != 0);
        assert_true(!in->shares_dtype || in->dtypes == op->dtypes);
        for (int t = 0; t < OI_DTYPE_COUNT; t++)
            assert_true(!(in->dtypes & OI_DTYPES(t)) || oi_dtype_is_tensor((oi_dtype)t));
    }
    if (op->n_inputs == 0 || !op->inputs[op->n_inputs - 1].variadic)
        assert_null(oi_op_input_at(op, op->n_inputs));
    size_t n_shared = 0;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        n_shared += op->inputs[i].shares_dtype;
    assert_true(n_shared > 0 || op->n_inputs == 0);
}

static bool listed(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

static void check_attr(const oi_op *op, const oi_op_attr *a)
{
    assert_true(a->name[0] && a->doc && a->doc[0]);
    assert_ptr_equal(oi_op_attr_find(op, a->name), a);
    if (a->alias)
        assert_ptr_equal(oi_op_attr_find(op, a->alias), a);
    assert_true(a->required + (a->absent != NULL) + (a->def.tag != OI_VALUE_NONE) == 1);
    assert_true(a->kind == OI_ATTR_STRING || !a->values); /* an equation may be anything */
    if (a->values && a->def.tag == OI_VALUE_STRING)
        assert_true(listed(a->def.s, a->values));
    if (a->has_min && a->def.tag == OI_VALUE_INT)
        assert_true(a->def.i >= a->min);
    if (a->input >= 0)
        assert_true(op->inputs[a->input].optional);
}

static void test_rows_are_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < oi_op_count(); i++) {
        const oi_op *op = oi_op_at(i);
        assert_true(op->doc[0] && op->doc[strlen(op->doc) - 1] == '.');
        assert_non_null(op->onnx);
        assert_true((unsigned)op->cls < OI_OP_CLASS_COUNT);
        assert_true((unsigned)op->shape_rule < OI_SHAPE_COUNT);
        check_ports(op);
        for (size_t k = 0; k < op->n_attrs; k++)
            check_attr(op, &op->attrs[k]);
    }
}

static void test_relu(void **state)
{
    (void)state;
    const oi_op *relu = oi_op_find("relu");
    const oi_op_attr *slope = oi_op_attr_find(relu, "alpha");
    assert_string_equal(slope->name, "negative_slope");
    assert_int_equal(slope->def.tag, OI_VALUE_INT);
    assert_int_equal(slope->def.i, 0);
    assert_true(isinf(oi_op_attr_find(relu, "clamp_max")->def.f));
    assert_true(oi_op_attr_find(relu, "clamp_min")->def.f < 0);
    assert_null(oi_op_attr_find(relu, "slope"));
    assert_true(relu->dtypes & OI_DTYPES(OI_I4));
    assert_false(relu->dtypes & OI_DTYPES(OI_U8));
}

static void test_rules(void **state)
{
    (void)state;
    const oi_op_attr *bits = oi_op_attr_find(oi_op_find("shl"), "bits");
    assert_true(bits->required && bits->has_min && bits->min == 0 && bits->input == 1);
    const oi_op_output *arg = &oi_op_find("argmax_axis")->outputs[0];
    assert_int_equal(arg->out_rule, OI_OUT_LIST);
    assert_int_equal(arg->out_default, OI_I64);
    assert_int_equal(arg->out_dtypes, OI_DTYPES(OI_I64) | OI_DTYPES(OI_I32));
    assert_true(oi_op_find("sign")->outputs[0].out_dtypes & OI_DTYPES_SAME);
    const oi_op *cast = oi_op_find("cast");
    assert_int_equal(cast->outputs[0].out_rule, OI_OUT_ATTR);
    assert_string_equal(cast->attrs[cast->outputs[0].out_attr].name, "to");
    const oi_op *add = oi_op_find("add");
    assert_int_equal(add->outputs[0].out_rule, OI_OUT_ACC);
    assert_true(add->flags & OI_OP_FLAG_BROADCAST && add->flags & OI_OP_FLAG_ACC);
    const oi_op *sdpa = oi_op_find("sdpa");
    assert_int_equal(sdpa->min_inputs, 3);
    assert_int_equal(sdpa->max_inputs, 4);
    assert_true(oi_op_find("filter")->inputs[2].dtypes == (OI_DTYPES(OI_BOOL) | OI_DTYPES_SAME));
}

static void test_dtype_text(void **state)
{
    (void)state;
    char text[64];
    oi_dtypes_print(oi_op_find("div")->dtypes, text, sizeof text);
    assert_string_equal(text, "F S U i4 u4");
    oi_dtypes_print(oi_op_find("matmul")->dtypes, text, sizeof text);
    assert_string_equal(text, "N T bool");
    oi_dtypes_print(oi_op_find("gather")->dtypes, text, sizeof text);
    assert_string_equal(text, "all");
    oi_dtypes_print(oi_op_find("filter")->inputs[2].dtypes, text, sizeof text);
    assert_string_equal(text, "bool same");
    assert_int_equal(oi_dtypes_print(oi_op_find("div")->dtypes, text, 4), 11);
    assert_string_equal(text, "F S");
    assert_int_equal(oi_dtypes_print(0, text, sizeof text), 0);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_catalog_is_whole),
        cmocka_unit_test(test_ids_are_the_order),
        cmocka_unit_test(test_names_are_unique),
        cmocka_unit_test(test_absent_names),
        cmocka_unit_test(test_rows_are_complete),
        cmocka_unit_test(test_relu),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_dtype_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
