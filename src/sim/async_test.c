/* async_test.c: yield and await, rule by rule of spec/dsl.md §9. */
#include "sim/sim_testing.h"

/* x is lent; two consumers see it as it was lent; one changes it. */
static const char pipeline[] =
    "dynamic { x: i32[2]; y: i32[2]; }\n"
    "volatile { seen1: i32[2]; seen2: i32[2]; other: i32[2] @init(7); late: i32[2]; }\n"
    "persistent { log(i): i32[2] @table; }\n"
    "block entry { assign t: i32[2]; assign during: i32[2]; assign after: i32[2];\n"
    "  transfer x >> t;\n"
    "  yield x;\n"
    "  transfer y >> t; transfer seen1 >> during;\n"
    "  await x;\n"
    "  transfer x >> after; return x, other; }\n"
    "block reader { await x; transfer x >> seen1; transfer t >> late; yield x; }\n"
    "block writer { await x; transfer other >> x; transfer y >> seen2; yield x; }\n";

static void run_pipeline(const oi_sim_options *o)
{
    rig r;
    rig_open(&r, NULL, pipeline, o);
    for (int32_t i = 0; i < 3; i++) {
        rig_insert(&r, "x", OI_I32, (int32_t[]){1 + i, 2}, 2);
        rig_insert(&r, "y", OI_I32, (int32_t[]){5, 6 + i}, 2);
        rig_step(&r);
        rig_expect(&r, "seen1", 1, DIMS(2), VALUES(1 + i, 2)); /* not what the writer made of it */
        rig_expect(&r, "seen2", 1, DIMS(2), VALUES(5, 6 + i));
        rig_expect(&r, "during", 1, DIMS(2), VALUES(0, 0));   /* publication waits for the await */
        rig_expect(&r, "late", 1, DIMS(2), VALUES(1 + i, 2)); /* t as it was at the yield */
        rig_expect(&r, "after", 1, DIMS(2), VALUES(7, 7));
        rig_expect(&r, "x", 1, DIMS(2), VALUES(7, 7));
        rig_expect(&r, "t", 1, DIMS(2), VALUES(5, 6 + i));
    }
    rig_close(&r);
}

static void test_snapshot_and_publication(void **state)
{
    (void)state;
    run_pipeline(NULL);
    run_pipeline(&(oi_sim_options){.parallel_consumers = true, .threads = 4});
}

/* A consumer that comes late to its second await sees what was lent, not what another one made of
 * it meanwhile. */
static void test_slow_reader(void **state)
{
    (void)state;
    static const char text[] =
        "dynamic { a: i32; b: i32; }\nvolatile { seen: i32; other: i32 @init(7); w: i32[4096]; }\n"
        "block entry { yield a, b; await a, b; return b, seen; }\n"
        "block writer { await a, b; transfer other >> b; yield a, b; }\n"
        "block reader { await a; loop l (i in 0..300) { op add(w, w) >> w; }\n"
        "  await b; transfer b >> seen; yield a, b; }\n";
    for (int parallel = 0; parallel < 2; parallel++) {
        rig r;
        rig_open(&r, NULL, text, &(oi_sim_options){.parallel_consumers = parallel});
        for (int32_t i = 0; i < 10; i++) {
            rig_insert(&r, "b", OI_I32, &i, 1);
            rig_step(&r);
            EXPECT_NUMBER(&r, "seen", i);
            EXPECT_NUMBER(&r, "b", 7);
        }
        rig_close(&r);
    }
}

/* Rule 2: a consumer of two variables starts at the second yield and sees that snapshot. */
static void test_two_variables(void **state)
{
    (void)state;
    rig r;
    static const char text[] =
        "dynamic { a: i32; b: i32; c: i32; }\nvolatile { sum: i32[2]; got: i32; }\n"
        "persistent { n: i32; }\n"
        "block entry { assign t: i32;\n"
        "  yield a; transfer c >> t; transfer b >> c; yield b; await a, b; return; }\n"
        "block k { await a, b; transfer c >> got; cache.increment n; yield a, b; }\n";
    for (int parallel = 0; parallel < 2; parallel++) {
        rig_open(&r, NULL, text, &(oi_sim_options){.parallel_consumers = parallel});
        rig_insert(&r, "b", OI_I32, (int32_t[]){42}, 1);
        rig_insert(&r, "c", OI_I32, (int32_t[]){3}, 1);
        rig_step(&r);
        EXPECT_NUMBER(&r, "got", 42); /* c as it was at the later yield */
        EXPECT_NUMBER(&r, "n", 1);    /* once */
        rig_close(&r);
    }
}

/* Rule 2: a later await suspends the consumer until then. */
static void test_later_await(void **state)
{
    (void)state;
    rig r;
    static const char text[] =
        "dynamic { a: i32; b: i32; c: i32; }\nvolatile { got: i32; first: i32; }\n"
        "persistent { order(i): i32 @table; n: i32; }\n"
        "block entry { assign t: i32;\n"
        "  yield a; transfer a2 >> b; yield b; transfer c >> t; await a; await b; return; }\n"
        "block k { await a; transfer b >> first; await b; transfer b >> got; yield a, b; }\n"
        "volatile { a2: i32 @init(77); }";
    for (int parallel = 0; parallel < 2; parallel++) {
        rig_open(&r, NULL, text, &(oi_sim_options){.parallel_consumers = parallel});
        rig_insert(&r, "b", OI_I32, (int32_t[]){5}, 1);
        rig_step(&r);
        EXPECT_NUMBER(&r, "first", 5);
        EXPECT_NUMBER(&r, "got", 77);
        rig_close(&r);
    }
}

/* Rule 8: rounds repeat in loops; what is still lent at return is awaited. */
static void test_rounds(void **state)
{
    (void)state;
    rig r;
    static const char text[] =
        "dynamic { a: i32; }\npersistent { n: i32; m: i32; seen(i): i32 @table; }\n"
        "block entry { assign t: i32;\n"
        "  loop l (i in 0..3) { yield a; await a; cache.read n >> t; cache.write t >> seen[i]; }\n"
        "  yield a; return; }\n"
        "block k { await a; cache.increment n; yield a; }\n"
        "block j { await a; cache.increment 10 m; yield a; }\n";
    for (int parallel = 0; parallel < 2; parallel++) {
        rig_open(&r, NULL, text, &(oi_sim_options){.parallel_consumers = parallel});
        assert_true(rig_has_code(&r, "W109"));
        rig_step(&r);
        EXPECT_NUMBER(&r, "n", 4);
        EXPECT_NUMBER(&r, "m", 40);
        rig_expect(&r, "seen", 1, DIMS(3), VALUES(1, 2, 3));
        rig_step(&r);
        EXPECT_NUMBER(&r, "n", 8);
        rig_close(&r);
    }
}

/* -- what only the run can see -- */

/* In a branch that is taken or not, the checks cannot tell: E070, E071, E073 at run time. */
static void test_run_time_errors(void **state)
{
    (void)state;
    static const struct {
        const char *body, *code;
    } rows[] = {
        {"block lend { transfer t >> x; return; }\n", "E070"},
        {"block lend { transfer x >> t; return; }\n", "E070"},
        {"block lend { branch x nothing nothing; return; }\n", "E070"},
    };
    for (size_t i = 0; i < OI_COUNT(rows); i++) {
        rig r;
        char text[1024];
        snprintf(text, sizeof text,
                 "dynamic { x: i32; c: i32; }\npersistent { n: i32; }\n"
                 "block entry { assign t: i32; cache.increment n; yield x; branch c lend nothing;\n"
                 "  await x; return; }\nblock nothing { return; }\n"
                 "block k { await x; cache.increment m; yield x; }\npersistent { m: i32; }\n%s",
                 rows[i].body);
        rig_open(&r, NULL, text, NULL);
        rig_step(&r);
        rig_insert(&r, "c", OI_I32, (int32_t[]){1}, 1);
        rig_refuse(&r, rows[i].code, 8);
        EXPECT_NUMBER(&r, "n", 1); /* the failed step left nothing, the consumer's part neither */
        EXPECT_NUMBER(&r, "m", 1);
        rig_step(&r);
        EXPECT_NUMBER(&r, "m", 2);
        rig_close(&r);
    }
}

static void test_lend_twice(void **state)
{
    (void)state;
    rig r;
    static const char text[] = "dynamic { x: i32; n: i32; w: i32; }\n"
                               "block entry {\n"
                               "  loop a (i in 0..n) { yield x; loop b (j in 0..w) { await x; } }\n"
                               "  loop c (i in 0..1-w) { await x; }\n"
                               "  return; }\nblock k { await x; yield x; }\n";
    rig_open(&r, NULL, text, NULL);
    rig_insert(&r, "n", OI_I32, (int32_t[]){2}, 1);
    rig_insert(&r, "w", OI_I32, (int32_t[]){1}, 1);
    rig_step(&r);
    rig_insert(&r, "n", OI_I32, (int32_t[]){2}, 1);
    rig_refuse(&r, "E071", 3);
    rig_insert(&r, "n", OI_I32, (int32_t[]){0}, 1);
    rig_refuse(&r, "E073", 4);
    rig_insert(&r, "n", OI_I32, (int32_t[]){1}, 1);
    rig_step(&r);
    rig_close(&r);
}

static void test_deadlock(void **state)
{
    (void)state;
    rig r;
    static const char text[] = "dynamic { x: i32; y: i32; c: i32; }\npersistent { n: i32; }\n"
                               "block entry {\n"
                               "  loop a (i in 0..c) { yield y; }\n"
                               "  yield x; cache.increment n;\n"
                               "  await x; return; }\n"
                               "block k { await x; await y; yield x, y; }\n";
    for (int parallel = 0; parallel < 2; parallel++) {
        rig_open(&r, NULL, text, &(oi_sim_options){.parallel_consumers = parallel});
        rig_insert(&r, "c", OI_I32, (int32_t[]){1}, 1);
        rig_step(&r);
        rig_refuse(&r, "E076", 6);
        EXPECT_NUMBER(&r, "n", 1);
        rig_insert(&r, "c", OI_I32, (int32_t[]){1}, 1);
        rig_step(&r);
        EXPECT_NUMBER(&r, "n", 2);
        rig_close(&r);
    }
}

/* A consumer that fails fails the step. */
static void test_failing_consumer(void **state)
{
    (void)state;
    rig r;
    static const char text[] =
        "dynamic { x: i32; at: i32; }\npersistent { A(i): i32 @table @fixed(i=3); n: i32; }\n"
        "block entry { cache.increment n; yield x; await x; return; }\n"
        "block good { await x; yield x; }\n"
        "block bad { await x;\n"
        "  cache.write x >> A[at]; yield x; }\n";
    for (int parallel = 0; parallel < 2; parallel++) {
        rig_open(&r, NULL, text, &(oi_sim_options){.parallel_consumers = parallel});
        rig_step(&r);
        rig_insert(&r, "at", OI_I32, (int32_t[]){3}, 1);
        rig_refuse(&r, "E047", 6);
        EXPECT_NUMBER(&r, "n", 1);
        rig_step(&r);
        EXPECT_NUMBER(&r, "n", 2);
        rig_close(&r);
    }
}

/* Prefix tables and `?` lengths go along with the view. */
static void weights(oi_writer *w)
{
    static const float w0[] = {1, 2}, w1[] = {3, 4};
    oi_writer_add_tensor(
        w,
        &(oi_writer_tensor){.name = "W.0", .dtype = OI_F32, .rank = 1, .dims = DIMS(2), .data = w0},
        NULL);
    oi_writer_add_tensor(
        w,
        &(oi_writer_tensor){.name = "W.1", .dtype = OI_F32, .rank = 1, .dims = DIMS(2), .data = w1},
        NULL);
}

static void test_views(void **state)
{
    (void)state;
    rig r;
    static const char text[] =
        "volatile { W(l): f32[2] @pattern(\"W.{l}\"); r: f32[?, 2]; copy: f32[?, 2]; a: f32[2]; }\n"
        "persistent { A(i): f32[2] @table; }\n"
        "block entry { cache.write W[1] >> A[2]; cache.read A >> r; transfer W[1] >> W[0];\n"
        "  yield a; await a; cache.write W[1] >> A[0]; cache.write W[0] >> A[1]; return; }\n"
        "block k { await a; transfer W[0] >> a; transfer r >> copy; transfer a0 >> W[1]; yield a; "
        "}\n"
        "volatile { a0: f32[2] @init(8); }\n";
    for (int parallel = 0; parallel < 2; parallel++) {
        rig_open(&r, weights, text, &(oi_sim_options){.parallel_consumers = parallel});
        for (int again = 0; again < 2; again++) {
            rig_step(&r);
            rig_expect(&r, "a", 1, DIMS(2), VALUES(3, 4));
            rig_expect(&r, "copy", 2, DIMS(3, 2), NULL);
            rig_expect(&r, "A", 2, DIMS(3, 2), VALUES(8, 8, 3, 4, 3, 4));
        }
        rig_close(&r);
    }
}

/* -- order -- */

static void test_order(void **state)
{
    (void)state;
    rig r;
    static const char text[] =
        "dynamic { x: i32; y: i32; }\nvolatile { p: i32; q: i32; }\n"
        "block entry { yield x; barrier; yield y; await y; await x; return; }\n"
        "block b { await x; transfer x >> p; await y; yield x, y; }\n"
        "block a { await x; transfer x >> q; yield x; }\n";
    static const char *const wanted[] = {"entry Yield", "b Await", "b Transfer",    "a Await",
                                         "a Transfer",  "a Yield", "entry Barrier", "entry Yield",
                                         "b Await",     "b Yield", "entry Await",   "entry Await",
                                         "entry Return"};
    rig_open(&r, NULL, text, NULL);
    oi_event ev;
    size_t n = 0;
    while (oi_next(r.exec, &ev, r.diag)) {
        char line[64];
        snprintf(line, sizeof line, "%s %s", ev.block_name, ev.kind);
        assert_true(n < OI_COUNT(wanted));
        assert_string_equal(line, wanted[n]);
        n++;
    }
    rig_must(&r, ev.status);
    assert_int_equal(n, OI_COUNT(wanted));
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snapshot_and_publication),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_two_variables),
        cmocka_unit_test(test_later_await),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_run_time_errors),
        cmocka_unit_test(test_lend_twice),
        cmocka_unit_test(test_deadlock),
        cmocka_unit_test(test_failing_consumer),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
