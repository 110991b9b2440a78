/* want_test.c: steps that are asked for some of their values. */
#include "sim/sim_testing.h"

static const char text[] =
    "dynamic { x: f32[2] @init(1); i: i64[1] @init(9); }\n"
    "volatile { a: f32[2]; b: f32[2]; g: f32[1]; }\npersistent { n: i64; }\n"
    "block entry { op neg(x) >> a; op exp(x) >> b; op gather(x, i, axis=0) >> g;\n"
    "  cache.increment n; return a, b; }\n";

static void want(rig *r, const char *name)
{
    rig_must(r, oi_exec_want(r->exec, &name, name ? 1 : 0, r->diag));
}

static void refuse_fetch(rig *r, const char *name)
{
    oi_view v;
    oi_diag_clear(r->diag);
    assert_int_equal(oi_fetch(r->exec, name, &v, r->diag), OI_ERR_INPUT);
    assert_non_null(strstr(oi_diag_at(r->diag, 0).text, "was not asked for"));
    oi_diag_clear(r->diag);
}

static void test_a_value(void **state)
{
    (void)state;
    rig r;
    const char *name = "a";
    oi_view v;
    rig_open(&r, NULL, text, NULL);
    want(&r, name);
    rig_step(&r); /* the gather, whose index is out of range, is skipped */
    rig_expect(&r, "a", 1, DIMS(2), VALUES(-1, -1));
    rig_expect(&r, "x", 1, DIMS(2), VALUES(1, 1));
    EXPECT_NUMBER(&r, "n", 1);
    refuse_fetch(&r, "b");
    refuse_fetch(&r, "g");
    assert_int_equal(oi_output(r.exec, 1, &name, &v, r.diag), OI_ERR_INPUT);
    want(&r, NULL);
    rig_refuse(&r, "E047", 4);
    const char *unknown = "aa";
    assert_int_equal(oi_exec_want(r.exec, &unknown, 1, r.diag), OI_ERR_INPUT);
    assert_true(rig_has_code(&r, "E030"));
    rig_close(&r);
}

static void test_node_by_node(void **state)
{
    (void)state;
    static const char *const wanted[] = {"OpExecute", "CacheIncrement", "Return"};
    rig r;
    oi_event next, ran;
    const char *name = "a";
    rig_open(&r, NULL, text, NULL);
    want(&r, name);
    for (size_t i = 0; i < OI_COUNT(wanted); i++) {
        assert_true(oi_peek(r.exec, &next));
        assert_string_equal(next.kind, wanted[i]);
        assert_true(oi_next(r.exec, &ran, r.diag));
        assert_int_equal(ran.node_index, next.node_index);
        if (i == 0) /* not in the middle of a step */
            assert_int_equal(oi_exec_want(r.exec, &name, 1, NULL), OI_ERR_INPUT);
    }
    assert_false(oi_next(r.exec, &ran, r.diag));
    assert_int_equal(ran.status, OI_OK);
    rig_close(&r);
}

static void test_session(void **state)
{
    (void)state;
    rig r = {.diag = oi_diag_new()};
    oi_session *s = NULL;
    oi_view v;
    const char *name = "b";
    rig_must(&r, oi_graph_parse(text, strlen(text), "w.oi", &r.graph, r.diag));
    rig_must(&r, oi_session_new(NULL, NULL, &s, r.diag));
    rig_must(&r, oi_session_want(s, r.graph, &name, 1, r.diag));
    rig_must(&r, oi_session_run_step(s, r.graph, NULL, 0, r.diag));
    rig_must(&r, oi_session_fetch(s, "b", &v, r.diag));
    assert_true(oi_element_f64(v.dtype, v.data, 0) > 2.7);
    assert_int_equal(oi_session_fetch(s, "a", &v, r.diag), OI_ERR_INPUT);
    oi_session_free(s);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_value),
        cmocka_unit_test(test_node_by_node),
        cmocka_unit_test(test_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
