/* exec_test.c: memory kinds and their reset, transfers, loops, branches, prefix tables, returns,
 * inserting and fetching, node by node, and executors beside each other. */
#include "sim/sim_testing.h"

static void model(oi_writer *w)
{
    static const float a[] = {1, 2, 3, 4}, w0[] = {10, 20}, w1[] = {11, 21}, w2[] = {12, 22};
    oi_writer_sizevar(w, "B", 4, NULL);
    oi_writer_sizevar(w, "D", 2, NULL);
    oi_writer_sizevar(w, "L", 3, NULL);
    oi_writer_i64(w, "k", OI_U8, 3, NULL);
    oi_writer_f64(w, "alpha", OI_F32, 0.25, NULL);
    oi_writer_text(w, "mode", "fast", 4, NULL);
    oi_writer_ndarray(w, "list", &(oi_view){OI_I8, 1, DIMS(3), (const int8_t[]){5, -6, 7}, 3, 3},
                      NULL);
#define TENSOR(key, n, values)                                                             \
    oi_writer_add_tensor(                                                                  \
        w,                                                                                 \
        &(oi_writer_tensor){                                                               \
            .name = (key), .dtype = OI_F32, .rank = 1, .dims = DIMS(n), .data = (values)}, \
        NULL)
    TENSOR("a", 4, a);
    TENSOR("W.0", 2, w0);
    TENSOR("W.1", 2, w1);
    TENSOR("W.2", 2, w2);
    TENSOR("W.3", 2, NULL); /* no data */
    TENSOR("empty", 4, NULL);
}

/* -- memory kinds -- */

static void test_kinds(void **state)
{
    (void)state;
    rig r;
    rig_open(
        &r, model,
        "dynamic { x: f32[B]; z: i32 @init(9); }\n"
        "volatile { a: f32[B]; y: f32[B] @init(5.0); n: f32[B]; empty: f32[B]; list: i8[3]; }\n"
        "constant { k: i32; b: u64 @ref(B); alpha: f64; c: f16[2] @init(1.5); }\n"
        "persistent { p: f32[B]; s: i32; }\n"
        "block entry { assign t: f32[B]; assign u: f32[B];\n"
        "  transfer t >> u; transfer x >> t; cache.write a >> p; transfer y >> a;\n"
        "  transfer x >> y; transfer t >> x; return y, u; }",
        NULL);
    const float one[] = {1, 1, 1, 1};
    rig_expect(&r, "a", 1, DIMS(4), VALUES(1, 2, 3, 4)); /* before the first step */
    rig_insert(&r, "x", OI_F32, one, 4);
    rig_expect(&r, "x", 1, DIMS(4), VALUES(1, 1, 1, 1)); /* any time after insert */
    rig_step(&r);
    rig_expect(&r, "a", 1, DIMS(4), VALUES(5, 5, 5, 5));
    rig_expect(&r, "y", 1, DIMS(4), VALUES(1, 1, 1, 1));
    rig_expect(&r, "u", 1, DIMS(4), VALUES(0, 0, 0, 0)); /* zeros at step start */
    rig_expect(&r, "n", 1, DIMS(4), VALUES(0, 0, 0, 0));
    rig_expect(&r, "empty", 1, DIMS(4), VALUES(0, 0, 0, 0)); /* a tensor without data */
    rig_expect(&r, "list", 1, DIMS(3), VALUES(5, -6, 7));
    rig_expect(&r, "p", 1, DIMS(4), VALUES(1, 2, 3, 4));
    EXPECT_NUMBER(&r, "z", 9);
    EXPECT_NUMBER(&r, "k", 3);
    EXPECT_NUMBER(&r, "b", 4);
    EXPECT_NUMBER(&r, "alpha", 0.25);
    rig_expect(&r, "c", 1, DIMS(2), VALUES(1.5, 1.5));
    rig_step(&r); /* x was used up: zeros; a is the model's again */
    rig_expect(&r, "x", 1, DIMS(4), VALUES(0, 0, 0, 0));
    rig_expect(&r, "p", 1, DIMS(4), VALUES(1, 2, 3, 4));
    rig_expect(&r, "t", 1, DIMS(4), VALUES(0, 0, 0, 0));
    const char *name;
    oi_view v;
    assert_int_equal(oi_output(r.exec, 0, &name, &v, r.diag), OI_OK);
    assert_string_equal(name, "y");
    assert_int_equal(oi_output(r.exec, 1, &name, &v, r.diag), OI_OK);
    assert_string_equal(name, "u");
    assert_int_equal(oi_output(r.exec, 2, &name, &v, r.diag), OI_NOT_FOUND);
    rig_close(&r);
}

/* A transfer may share memory; nobody may notice. */
static void test_transfer_is_a_copy(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, model,
             "dynamic { x: f32[B]; }\nvolatile { a: f32[B]; b: f32[B]; c: f32[B] @init(3); }\n"
             "block entry { transfer x >> b; transfer c >> x; transfer b >> c; transfer a >> b;\n"
             "  transfer c >> a; return; }",
             NULL);
    for (int again = 0; again < 2; again++) {
        rig_insert(&r, "x", OI_F32, (float[]){9, 8, 7, 6}, 4);
        rig_step(&r);
        rig_expect(&r, "x", 1, DIMS(4), VALUES(3, 3, 3, 3));
        rig_expect(&r, "c", 1, DIMS(4), VALUES(9, 8, 7, 6));
        rig_expect(&r, "b", 1, DIMS(4), VALUES(1, 2, 3, 4));
        rig_expect(&r, "a", 1, DIMS(4), VALUES(9, 8, 7, 6));
    }
    oi_view v;
    assert_int_equal(oi_model_tensor(r.model, "a", &v, r.diag), OI_OK);
    expect_view("the model's a", &v, 1, DIMS(4), VALUES(1, 2, 3, 4));
    rig_close(&r);
}

/* -- control -- */

static void test_loops(void **state)
{
    (void)state;
    rig r;
    rig_open(
        &r, model,
        "dynamic { n: i32; }\npersistent { s: i64; c: i64; }\n"
        "block entry {\n"
        "  loop a (i in 0..L) { loop b (j in i..L+1) { cache.increment j s; } }\n"
        "  loop d (i in n-2..n) { cache.increment c; }\n"
        "  loop e (i in 5..5) { cache.increment c; }\n"
        "  loop f (i in 7..n) { cache.increment c; }\n"
        "  loop g (i in 0..2) { branch inner; } return; }\n"
        "block inner { cache.increment i s; loop h (k in 0..i) { cache.increment k s; } return; }",
        NULL);
    rig_step(&r);
    EXPECT_NUMBER(&r, "s", (0 + 1 + 2 + 3) + (1 + 2 + 3) + (2 + 3) + (0 + 1 + 0));
    EXPECT_NUMBER(&r, "c", 2);
    rig_close(&r);
}

static void test_branches(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, model,
             "dynamic { f: f32; b: bool; }\npersistent { s: i64; }\n"
             "block entry { branch f yes no; branch b yes no; branch twice; return; }\n"
             "block yes { cache.increment s; return; }\n"
             "block no { cache.increment 100 s; yield s; }\n"
             "block twice { branch yes; branch yes; return; }",
             NULL);
    rig_insert(&r, "f", OI_F32, (float[]){(float)(0.0 / 0.0)}, 1); /* NaN is true */
    rig_insert(&r, "b", OI_BOOL, (uint8_t[]){0}, 1);
    rig_step(&r);
    EXPECT_NUMBER(&r, "s", 103);
    rig_insert(&r, "f", OI_F32, (float[]){-0.0f}, 1);
    rig_insert(&r, "b", OI_BOOL, (uint8_t[]){1}, 1);
    rig_step(&r);
    EXPECT_NUMBER(&r, "s", 206);
    rig_close(&r);
}

/* -- prefix tables -- */

static void test_prefix(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, model,
             "dynamic { at: i32; }\nvolatile { W(l): f32[D] @pattern(\"W.{l}\") @init(4); }\n"
             "persistent { all(i): f32[D] @table; }\n"
             "block entry { assign t: f32[D];\n"
             "  loop a (l in 0..L+1) { cache.write W[l] >> all[l]; }\n"
             "  transfer W[at] >> t; transfer W[1] >> W[at]; transfer W[at] >> W[2];\n"
             "  cache.write W[2] >> all[4]; return; }",
             NULL);
    for (int again = 0; again < 2; again++) { /* changes last for the step */
        rig_step(&r);
        rig_expect(&r, "all", 2, DIMS(5, 2), VALUES(10, 20, 11, 21, 12, 22, 4, 4, 11, 21));
        rig_expect(&r, "t", 1, DIMS(2), VALUES(10, 20));
    }
    rig_insert(&r, "at", OI_I32, (int32_t[]){7}, 1);
    rig_refuse(&r, "E044", 6);
    rig_insert(&r, "at", OI_I32, (int32_t[]){-1}, 1);
    rig_refuse(&r, "E042", 6);
    rig_close(&r);
}

/* -- values in and out -- */

static void refuse_insert(rig *r, const char *name, oi_view v, const char *code)
{
    oi_diag_clear(r->diag);
    assert_int_equal(oi_insert(r->exec, name, &v, r->diag), OI_ERR_INPUT);
    assert_true(rig_has_code(r, code));
    oi_diag_clear(r->diag);
}

static void test_inserts(void **state)
{
    (void)state;
    rig r;
    float x[8] = {0};
    rig_open(&r, model,
             "dynamic { x: f32[B, D]; }\nvolatile { y: f32[B]; }\npersistent { p: f32; }\n"
             "block entry { assign t: f32[B, D]; transfer x >> t; return; }",
             NULL);
    refuse_insert(&r, "y", (oi_view){OI_F32, 1, DIMS(4), x, 4, 16}, "E021");
    refuse_insert(&r, "p", (oi_view){OI_F32, 0, NULL, x, 1, 4}, "E021");
    refuse_insert(&r, "t", (oi_view){OI_F32, 1, DIMS(8), x, 8, 32}, "E021");
    refuse_insert(&r, "xx", (oi_view){OI_F32, 1, DIMS(8), x, 8, 32}, "E030");
    refuse_insert(&r, "x", (oi_view){OI_F64, 1, DIMS(4), x, 4, 32}, "E050");
    refuse_insert(&r, "x", (oi_view){OI_F32, 2, DIMS(2, 4), x, 8, 32}, "E051");
    refuse_insert(&r, "x", (oi_view){OI_F32, 1, DIMS(7), x, 7, 28}, "E051");
    assert_false(oi_is_inserted(r.exec, "x"));
    rig_insert(&r, "x", OI_F32, x, 8); /* flat */
    assert_true(oi_is_inserted(r.exec, "x"));
    rig_must(&r, oi_insert(r.exec, "x", &(oi_view){OI_F32, 2, DIMS(4, 2), x, 8, 32}, r.diag));
    oi_event ev;
    assert_true(oi_next(r.exec, &ev, r.diag));
    refuse_insert(&r, "x", (oi_view){OI_F32, 1, DIMS(8), x, 8, 32}, "E021"); /* during a step */
    const void *data;
    assert_int_equal(oi_fetch_as(r.exec, "t", OI_I32, &data, NULL, r.diag), OI_ERR_INPUT);
    assert_true(rig_has_code(&r, "E050"));
    assert_int_equal(oi_fetch_as(r.exec, "nothing", OI_I32, &data, NULL, r.diag), OI_ERR_INPUT);
    rig_close(&r); /* in the middle of a step */
}

/* Every type of the macros, there and back, in both forms. */
static void test_macros(void **state)
{
    (void)state;
    rig r;
    uint64_t n = 0;
    rig_open(&r, NULL,
             "dynamic { f: f32[2]; d: f64[2]; i: i32[2]; l: i64[2]; b: u8[2]; t: bool[2]; }\n"
             "block entry { return; }",
             NULL);
#define BOTH(T, suffix, name, x0, x1)                                                              \
    do {                                                                                           \
        const T given[2] = {x0, x1}, *tried = NULL;                                                \
        OI_INSERT(r.exec, name, given, 2);                                                         \
        assert_int_equal(OI_TRY_INSERT(r.exec, name, given, 2, r.diag), OI_OK);                    \
        OI_STEP(r.exec);                                                                           \
        assert_true(OI_FETCH_##suffix(r.exec, name, &n)[1] == given[1] && n == 2);                 \
        assert_int_equal(OI_TRY_FETCH_##suffix(r.exec, name, &tried, &n, r.diag), OI_OK);          \
        assert_true(tried[0] == given[0] && n == 2);                                               \
        assert_int_equal(OI_TRY_INSERT(r.exec, name, given, 1, r.diag), OI_ERR_INPUT);             \
        assert_int_equal(OI_TRY_FETCH_##suffix(r.exec, none, &tried, NULL, r.diag), OI_ERR_INPUT); \
    } while (0)
    BOTH(float, F32, f, 1.5f, 2);
    BOTH(double, F64, d, 1.5, -2);
    BOTH(int32_t, I32, i, 3, -4);
    BOTH(int64_t, I64, l, INT64_MAX, -4);
    BOTH(uint8_t, U8, b, 255, 1);
    BOTH(bool, BOOL, t, true, false);
    rig_close(&r);
}

static void test_strict(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, model,
             "dynamic { x: f32[B];\n  y: f32; z: i32 @init(1); }\nblock entry { return; }",
             &(oi_sim_options){.strict = true});
    rig_insert(&r, "x", OI_F32, (float[]){1, 2, 3, 4}, 4);
    rig_refuse(&r, "E020", 2);
    assert_true(oi_is_inserted(r.exec, "x")); /* the step never began */
    rig_insert(&r, "y", OI_F32, (float[]){1}, 1);
    rig_step(&r);
    assert_int_equal(oi_steps_done(r.exec), 1);
    rig_close(&r);
}

static void test_sizes(void **state)
{
    (void)state;
    rig r;
    oi_size sizes[] = {{"D", 6}};
    rig_open(&r, model,
             "dynamic { x: f32[D]; }\nconstant { d: i64 @ref(\"D\"); }\nblock entry { return; }",
             &(oi_sim_options){.sizes = sizes, .n_sizes = 1});
    rig_expect(&r, "x", 1, DIMS(6), NULL);
    rig_close(&r);
    assert_int_equal(rig_try(&r, model, "volatile { a: f32[B]; }\nblock entry { return; }",
                             &(oi_sim_options){.sizes = (oi_size[]){{"B", 5}}, .n_sizes = 1}),
                     OI_ERR_INPUT);
    assert_true(rig_has_code(&r, "E013")); /* shapes bound to the model are checked again */
    rig_close(&r);
}

/* What the model's state specs say where the graph says nothing. */
static void spec_model(oi_writer *w)
{
    static const char k[] = "{\"kind\":\"table\",\"dtype\":\"f16\",\"dims\":[\"D\"],\"indices\":"
                            "[\"t\"],\"fixed\":{\"t\":\"L+1\"},\"init\":-2}";
    static const char n[] = "{\"kind\":\"tensor\",\"dtype\":\"i32\",\"dims\":[],\"init\":40}";
    oi_writer_sizevar(w, "D", 2, NULL);
    oi_writer_sizevar(w, "L", 3, NULL);
    oi_writer_text(w, "oi.state.K", k, sizeof k - 1, NULL);
    oi_writer_text(w, "oi.state.n", n, sizeof n - 1, NULL);
}

static void test_state_specs(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, spec_model,
             "persistent { K(t): f16[D] @table; n: i32; }\n"
             "block entry { assign e: f16[D]; cache.increment n; cache.read K[3] >> e;\n"
             "  cache.read K[n - 41] >> e; return; }",
             NULL);
    rig_step(&r);
    EXPECT_NUMBER(&r, "n", 41);
    rig_expect(&r, "K", 2, DIMS(4, 2), VALUES(-2, -2, -2, -2, -2, -2, -2, -2));
    rig_close(&r);
    rig_open(&r, spec_model, "persistent { n: i32 @init(7); } block entry { return; }", NULL);
    EXPECT_NUMBER(&r, "n", 7); /* the graph's word counts */
    rig_close(&r);
    assert_int_equal(rig_try(&r, spec_model,
                             "persistent { K(t): f32[D] @table; } block entry { return; }", NULL),
                     OI_ERR_INPUT);
    assert_true(rig_has_code(&r, "E012"));
    rig_close(&r);
}

/* -- node by node -- */

static void test_next(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, model,
             "persistent { s: i64; }\nblock entry {\n  loop a (i in 0..2) {\n"
             "    cache.increment s; }\n  barrier; branch b; return; }\n"
             "block b { cache.increment 5 s; return; }",
             NULL);
    static const char *const kinds[] = {"Loop",   "CacheIncrement", "CacheIncrement", "Barrier",
                                        "Branch", "CacheIncrement", "Return",         "Return"};
    static const double sums[] = {0, 1, 2, 2, 2, 7, 7, 7};
    oi_event ev, peek;
    for (int step = 0; step < 2; step++) {
        for (size_t i = 0; i < OI_COUNT(kinds); i++) {
            assert_true(oi_peek(r.exec, &peek));
            assert_true(oi_next(r.exec, &ev, r.diag));
            assert_string_equal(ev.kind, kinds[i]);
            assert_int_equal(ev.node_index, peek.node_index);
            assert_int_equal(ev.step, step);
            EXPECT_NUMBER(&r, "s", sums[i] + 7 * step); /* fetch at any node */
        }
        assert_false(oi_next(r.exec, &ev, r.diag));
        assert_int_equal(ev.status, OI_OK);
        assert_int_equal(oi_steps_done(r.exec), step + 1);
    }
    assert_true(oi_next(r.exec, &ev, r.diag));
    assert_true(oi_next(r.exec, &ev, r.diag));
    oi_abandon(r.exec);
    EXPECT_NUMBER(&r, "s", 14); /* taken back */
    assert_true(oi_next(r.exec, &ev, r.diag));
    rig_step(&r); /* the rest at once */
    EXPECT_NUMBER(&r, "s", 21);
    rig_close(&r);
}

/* -- executors beside each other -- */

static void test_shared(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, model,
             "dynamic { x: f32[D]; }\npersistent { K(t): f32[D] @table; n: i32; own: i32; }\n"
             "block entry { cache.write x >> K[n]; cache.increment n; return; }",
             NULL);
    const char *text = "persistent { n: i32; K(t): f32[D] @table; other: i8; }\n"
                       "block entry { assign v: f32[?, D]; cache.read K >> v; return; }";
    oi_graph *g;
    oi_sim *s;
    oi_exec *e;
    rig_must(&r, oi_graph_parse(text, strlen(text), "decode.oi", &g, r.diag));
    rig_must(&r, oi_sim_new(r.model, g, NULL, &s, r.diag));
    rig_must(&r, oi_exec_new_shared(s, r.exec, &e, r.diag));
    rig_insert(&r, "x", OI_F32, (float[]){1, 2}, 2);
    rig_step(&r);
    rig_must(&r, oi_step(e, r.diag));
    oi_view v;
    rig_must(&r, oi_fetch(e, "v", &v, r.diag));
    expect_view("v", &v, 2, DIMS(1, 2), VALUES(1, 2));
    oi_event ev;
    assert_true(oi_next(r.exec, &ev, r.diag)); /* in a step */
    assert_int_equal(oi_step(e, r.diag), OI_ERR_USAGE);
    oi_exec_free(r.exec); /* the first one may go first, even in a step */
    r.exec = NULL;
    oi_sim_free(r.sim);
    r.sim = NULL;
    rig_must(&r, oi_step(e, r.diag));
    rig_must(&r, oi_fetch(e, "K", &v, r.diag));
    expect_view("K", &v, 2, DIMS(1, 2), VALUES(1, 2));
    oi_exec_free(e);
    oi_sim_free(s);
    oi_graph_free(g);
    rig_close(&r);
}

static void test_shared_otherwise(void **state)
{
    (void)state;
    static const char *const others[] = {
        "persistent { K(t): f16[D] @table; } block entry { return; }",
        "persistent { K(t): f32[B] @table; } block entry { return; }",
        "persistent { K(u): f32[D] @table; } block entry { return; }",
        "persistent { K(t): f32[D] @table @fixed(t=4); } block entry { return; }",
        "persistent { K: f32[D]; } block entry { return; }",
    };
    rig r;
    rig_open(&r, model, "persistent { K(t): f32[D] @table; } block entry { return; }", NULL);
    for (size_t i = 0; i < OI_COUNT(others); i++) {
        oi_graph *g;
        oi_sim *s;
        oi_exec *e;
        oi_diag_clear(r.diag);
        rig_must(&r, oi_graph_parse(others[i], strlen(others[i]), "o.oi", &g, r.diag));
        rig_must(&r, oi_sim_new(r.model, g, NULL, &s, r.diag));
        assert_int_equal(oi_exec_new_shared(s, r.exec, &e, r.diag), OI_ERR_INPUT);
        assert_true(rig_has_code(&r, "E013"));
        oi_sim_free(s);
        oi_graph_free(g);
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_transfer_is_a_copy),
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_inserts),
        cmocka_unit_test(test_macros),
        cmocka_unit_test(test_strict),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_state_specs),
        cmocka_unit_test(test_next),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_shared_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
