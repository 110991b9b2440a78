/* op_test.c: ops in a graph: in place, over views that share memory, with lengths and attributes
 * that only the run knows, and what is refused then. */
#include "sim/sim_testing.h"

static void test_in_place(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL,
             "dynamic { x: f32[3]; s: f32[]; m: f32[2, 3]; }\nvolatile { a: f32[3] @init(2); }\n"
             "block entry { assign t: f32[3]; assign u: f32[3]; assign k: f32[2, 3];\n"
             "  op add(x, a) >> t; op mul(t, t) >> t; transfer t >> u; op add(t, x) >> t;\n"
             "  op sub(a, u) >> a; op add(m, x) >> m; op add(x, x) >> x; op neg(u) >> u;\n"
             "  transfer m >> k; op add(k, x) >> k; op add(s, s) >> s; return; }",
             NULL);
    for (int again = 0; again < 2; again++) {
        rig_insert(&r, "x", OI_F32, (float[]){1, 2, 3}, 3);
        rig_insert(&r, "s", OI_F32, (float[]){4}, 1);
        rig_insert(&r, "m", OI_F32, (float[]){0, 0, 0, 10, 10, 10}, 6);
        rig_step(&r);
        rig_expect(&r, "t", 1, DIMS(3), VALUES(10, 18, 28));
        rig_expect(&r, "u", 1, DIMS(3), VALUES(-9, -16, -25));
        rig_expect(&r, "a", 1, DIMS(3), VALUES(-7, -14, -23));
        rig_expect(&r, "m", 2, DIMS(2, 3), VALUES(1, 2, 3, 11, 12, 13));
        rig_expect(&r, "x", 1, DIMS(3), VALUES(2, 4, 6));
        rig_expect(&r, "k", 2, DIMS(2, 3), VALUES(3, 6, 9, 13, 16, 19));
        EXPECT_NUMBER(&r, "s", 8);
    }
    rig_close(&r);
}

/* An input that is stretched cannot be overwritten while it is read. */
static void test_in_place_packed(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL,
             "dynamic { x: i4[7]; }\nblock entry { assign t: i4[7];\n"
             "  op add(x, x) >> t; op add(t, x) >> t; op neg(x) >> x; return; }",
             NULL);
    rig_insert(&r, "x", OI_I4, (uint8_t[]){0x21, 0x43, 0xF5, 0x07}, 7); /* 1 2 3 4 5 -1 7 */
    rig_step(&r);
    rig_expect(&r, "t", 1, DIMS(7), VALUES(3, 6, -7, -4, -1, -3, 5)); /* wraps */
    rig_expect(&r, "x", 1, DIMS(7), VALUES(-1, -2, -3, -4, -5, 1, -7));
    oi_view v;
    rig_must(&r, oi_fetch(r.exec, "x", &v, r.diag));
    assert_int_equal(((const uint8_t *)v.data)[3] & 0xF0, 0); /* unused bits stay 0 */
    rig_close(&r);
}

static const char lengths[] =
    "dynamic { n: i32; b: f32[2]; }\npersistent { K(t): f32[2] @table @fixed(t=9); }\n"
    "volatile { z: f32[?, 2] ; one: f32[2] @init(1); fixed: f32[3, 2]; }\n"
    "block entry { assign r: f32[?, 2]; assign s: f32[?, 2]; assign e: bool[?, ?];\n"
    "  loop w (i in 0..n) { op add(b, one) >> b; cache.write b >> K[i]; }\n"
    "  cache.read K[0..n] >> r;\n"
    "  op add(r, b) >> s; op mul(r, r) >> r; op lt(r, s) >> e;\n"
    "  op add(r, fixed) >> z; return z; }\n";

static void test_run_lengths(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL, lengths, NULL);
    rig_insert(&r, "n", OI_I32, (int32_t[]){3}, 1);
    rig_step(&r);
    rig_expect(&r, "r", 2, DIMS(3, 2), VALUES(1, 1, 4, 4, 9, 9));
    rig_expect(&r, "s", 2, DIMS(3, 2), VALUES(4, 4, 5, 5, 6, 6));
    rig_expect(&r, "e", 2, DIMS(3, 2), VALUES(1, 1, 1, 1, 0, 0));
    rig_expect(&r, "z", 2, DIMS(3, 2), VALUES(1, 1, 4, 4, 9, 9));
    rig_insert(&r, "n", OI_I32, (int32_t[]){1}, 1);
    rig_step(&r); /* [1, 2] stretches */
    rig_expect(&r, "z", 2, DIMS(3, 2), VALUES(1, 1, 1, 1, 1, 1));
    rig_expect(&r, "s", 2, DIMS(1, 2), VALUES(2, 2));
    rig_insert(&r, "n", OI_I32, (int32_t[]){2}, 1);
    rig_refuse(&r, "E051", 8); /* [2, 2] and [3, 2] */
    rig_insert(&r, "n", OI_I32, (int32_t[]){0}, 1);
    rig_refuse(&r, "E051", 8);
    rig_insert(&r, "n", OI_I32, (int32_t[]){3}, 1);
    rig_step(&r);
    rig_close(&r);
}

/* A result of another length than the variable has. */
/* How much is found decides how long the results are. */
static void test_measured_lengths(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL,
             "dynamic { x: f32[5]; }\n"
             "block entry { assign at: i64[1, ?]; assign v: f32[?]; assign i: i64[?];\n"
             "  assign three: i64[1, 3]; assign row: i64[?]; assign y: f32[?];\n"
             "  op nonzero(x) >> at;\n"
             "  op unique(x) >> v, i;\n"
             "  op squeeze(at, axes=[0]) >> row;\n"
             "  op gather(x, row) >> y;\n"
             "  op nonzero(x) >> three; return; }",
             NULL);
    rig_insert(&r, "x", OI_F32, (float[]){0, 4, 0, -1, 4}, 5);
    rig_step(&r);
    rig_expect(&r, "at", 2, DIMS(1, 3), VALUES(1, 3, 4));
    rig_expect(&r, "v", 1, DIMS(3), VALUES(-1, 0, 4));
    rig_expect(&r, "i", 1, DIMS(3), VALUES(3, 0, 1));
    rig_expect(&r, "y", 1, DIMS(3), VALUES(4, -1, 4));
    rig_insert(&r, "x", OI_F32, (float[]){0, 0, 0, 0, 7}, 5);
    rig_refuse(&r, "E051", 8); /* one place, three declared */
    rig_close(&r);
}

static void test_run_shape_of_output(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL,
             "dynamic { n: i32; }\npersistent { K(t): f32[2] @table @fixed(t=9); }\n"
             "block entry { assign r: f32[?, 2]; assign f: f32[4, 2]; assign g: f32[2];\n"
             "  cache.read K[0..n] >> r;\n"
             "  op neg(r) >> f; return; }",
             NULL);
    rig_insert(&r, "n", OI_I32, (int32_t[]){4}, 1);
    rig_step(&r);
    rig_insert(&r, "n", OI_I32, (int32_t[]){5}, 1);
    rig_refuse(&r, "E051", 5);
    rig_close(&r);
    rig_open(&r, NULL,
             "dynamic { n: i32; }\npersistent { K(t): f32[2] @table; }\n"
             "block entry { assign f: f32[4, 2];\n"
             "  cache.read K[0..n] >> f; return; }",
             NULL);
    rig_insert(&r, "n", OI_I32, (int32_t[]){3}, 1);
    rig_refuse(&r, "E051", 4); /* cache.read of the wrong shape */
    rig_insert(&r, "n", OI_I32, (int32_t[]){4}, 1);
    rig_step(&r);
    rig_close(&r);
}

static void metadata(oi_writer *w)
{
    oi_writer_f64(w, "slope", OI_F32, 0.5, NULL);
    oi_writer_sizevar(w, "top", 3, NULL);
    oi_writer_text(w, "how", "half_even", 9, NULL);
}

static void test_attributes(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, metadata,
             "dynamic { x: f32[4]; alpha: f32; hi: i32; }\npersistent { c: i32 @init(1); }\n"
             "volatile { known: f32[4]; run: f32[4]; looped: f32[4]; rounded: f32[4]; }\n"
             "block entry {\n"
             "  op relu(x, negative_slope=slope, clamp_max=top) >> known;\n"
             "  op relu(x, alpha=alpha, clamp_max=hi) >> run;\n"
             "  loop l (i in 1..4) { op clamp(x, min=-i, max=c + i) >> looped; }\n"
             "  op round(x, mode=how) >> rounded; return; }",
             NULL);
    rig_insert(&r, "x", OI_F32, (float[]){-8, -0.5f, 2.5f, 9}, 4);
    rig_insert(&r, "alpha", OI_F32, (float[]){0.25f}, 1);
    rig_insert(&r, "hi", OI_I32, (int32_t[]){5}, 1);
    rig_step(&r);
    rig_expect(&r, "known", 1, DIMS(4), VALUES(-4, -0.25, 2.5, 3));
    rig_expect(&r, "run", 1, DIMS(4), VALUES(-2, -0.125, 2.5, 5));
    rig_expect(&r, "looped", 1, DIMS(4), VALUES(-3, -0.5, 2.5, 4));
    rig_expect(&r, "rounded", 1, DIMS(4), VALUES(-8, 0, 2, 9));
    rig_close(&r);
}

static void test_bad_attribute(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL,
             "dynamic { x: i32[2]; by: i32; }\npersistent { n: i32; }\n"
             "block entry { cache.increment n;\n"
             "  op shl(x, bits=by) >> x; return; }",
             NULL);
    rig_insert(&r, "x", OI_I32, (int32_t[]){1, 2}, 2);
    rig_insert(&r, "by", OI_I32, (int32_t[]){3}, 1);
    rig_step(&r);
    rig_expect(&r, "x", 1, DIMS(2), VALUES(8, 16));
    rig_insert(&r, "by", OI_I32, (int32_t[]){-1}, 1);
    rig_refuse(&r, "E053", 4);
    EXPECT_NUMBER(&r, "n", 1);
    rig_close(&r);
}

/* A loop index is a number like any other. */
static void test_index_operand(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL,
             "block entry { assign s: i64; loop l (i in 2..5) { op add(s, i) >> s; } return s; }",
             NULL);
    rig_step(&r);
    EXPECT_NUMBER(&r, "s", 9);
    rig_close(&r);
}

static void test_devices(void **state)
{
    (void)state;
    rig r;
    const char *text = "dynamic { x: f32[9]; } block entry { op add(x, x) >> x; return; }";
    for (oi_run_on on = OI_CPU; on <= OI_RUN_AVX512; on++) {
        oi_status status = rig_try(&r, NULL, text, &(oi_sim_options){.device = on, .threads = 2});
        if (status == OI_OK) {
            rig_insert(&r, "x", OI_F32, (float[]){1, 2, 3, 4, 5, 6, 7, 8, 9}, 9);
            rig_step(&r);
            rig_expect(&r, "x", 1, DIMS(9), VALUES(2, 4, 6, 8, 10, 12, 14, 16, 18));
        } else {
            assert_int_equal(status, OI_ERR_ENV); /* not on this machine */
            assert_true(rig_has_code(&r, "E060"));
        }
        rig_close(&r);
    }
    oi_run_on on;
    assert_true(oi_run_on_find("cpu:avx2", &on) && on == OI_RUN_AVX2);
    assert_false(oi_run_on_find("cpu:mmx", &on));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_in_place_packed),
        cmocka_unit_test(test_run_lengths),
        cmocka_unit_test(test_measured_lengths),
        cmocka_unit_test(test_run_shape_of_output),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_bad_attribute),
        cmocka_unit_test(test_index_operand),
        cmocka_unit_test(test_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
