/* lend_test.c: cache.read shows large selections in place. Nobody may notice: not when what it
 * shows is overwritten, grows, is reset or taken back, nor in an executor that shares it. */
#include "sim/sim_testing.h"

#define N 1024 /* floats: enough to be lent */

static const void *data_of(rig *r, const char *name)
{
    oi_view v;
    rig_must(r, oi_fetch(r->exec, name, &v, r->diag));
    return v.data;
}

/* Every element of entry `row` is `value`. */
static void expect_row(rig *r, const char *name, uint64_t row, float value)
{
    oi_view v;
    rig_must(r, oi_fetch(r->exec, name, &v, r->diag));
    assert_true((row + 1) * N <= v.n_elements);
    for (uint64_t i = 0; i < N; i++)
        if (((const float *)v.data)[row * N + i] != value)
            fail_msg("%s row %llu is %g, wanted %g", name, (unsigned long long)row,
                     (double)((const float *)v.data)[row * N + i], (double)value);
}

#define HEAD                                                                                      \
    "dynamic { at: i64; }\nvolatile { one: f32[1024] @init(1); v: f32[1024]; w: f32[1024]; }\n"   \
    "volatile { two: f32[2, 1024]; any: f32[?, 1024]; }\n"                                        \
    "persistent { K(t): f32[1024] @table; F(l, t): f32[1024] @table @fixed(l=2, t=3); P: "        \
    "f32[3, 1024]; }\nblock entry {\n"                                                            \
    "  op fill(v, value=5) >> v; cache.write v >> K[0]; cache.write v >> P[0]; cache.write v >> " \
    "F[0, 0];\n"

static void open(rig *r, const char *body)
{
    char text[4096];
    snprintf(text, sizeof text, HEAD "%s\n  return; }", body);
    rig_open(r, NULL, text, NULL);
}

static void test_in_place(void **state)
{
    (void)state;
    rig r;
    open(&r, "cache.read P >> any; cache.read F[1] >> any; cache.read K[0] >> v;");
    rig_step(&r);
    assert_ptr_equal(data_of(&r, "v"), data_of(&r, "K"));
    assert_ptr_equal(data_of(&r, "any"), (const float *)data_of(&r, "F") + (size_t)3 * N);
    rig_step(&r);
    expect_row(&r, "v", 0, 5);
    rig_close(&r);
}

/* What is read stays what it was, whatever happens to the variable afterwards. */
static void test_changes(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "cache.read K[0] >> w; cache.write one >> K[0];",
        "cache.read K[0] >> w; cache.write one >> K[1];",
        "cache.read K[0] >> w; cache.write one >> K[9];", /* storage moves */
        "cache.read K[0] >> w; cache.reset K;",
        "cache.read K[0] >> w; cache.reset K[0];",
        "cache.read P[0] >> w; cache.reset P[0..1];",
        "cache.read P[0] >> w; cache.write one >> P[0];",
        "cache.read F[0, 0] >> w; cache.write one >> F[1, 0]; cache.write one >> F[0, 0];",
        "cache.read K[0] >> v; transfer v >> w; cache.write one >> K[0];",
        "cache.read K[0] >> v; transfer v >> w; op add(v, v) >> v;",
        "cache.read K[0] >> w; cache.read P[0] >> v; op add(v, one) >> v; cache.write v >> K[0];",
        "cache.read K[0] >> w; loop l (i in 0..3) {cache.write one >> K[i]; cache.read K[i] >> v;}",
    };
    for (size_t i = 0; i < OI_COUNT(bodies); i++) {
        rig r;
        open(&r, bodies[i]);
        for (int step = 0; step < 2; step++) {
            rig_step(&r);
            expect_row(&r, "w", 0, 5);
        }
        rig_close(&r);
    }
}

static void test_in_place_ops_leave_memory_alone(void **state)
{
    (void)state;
    rig r;
    open(&r, "cache.read K[0] >> w; op add(w, one) >> w; op mul(w, w) >> w;");
    rig_step(&r);
    expect_row(&r, "w", 0, 36);
    expect_row(&r, "K", 0, 5);
    rig_close(&r);
}

/* A value that is written to where it is shown. */
static void test_onto_itself(void **state)
{
    (void)state;
    rig r;
    open(&r, "cache.write one >> P[1]; cache.read P[0..2] >> two; cache.write two >> P[1..3];");
    rig_step(&r);
    expect_row(&r, "P", 0, 5);
    expect_row(&r, "P", 1, 5);
    expect_row(&r, "P", 2, 1);
    expect_row(&r, "two", 1, 1);
    rig_close(&r);
}

static void test_failure(void **state)
{
    (void)state;
    rig r;
    open(&r, "cache.write one >> K[1]; cache.read K[1] >> w; cache.write one >> K[0];\n"
             "cache.read K[at] >> v;");
    rig_step(&r);
    rig_insert(&r, "at", OI_I64, (int64_t[]){-1}, 1);
    rig_refuse(&r, "E042", 8);
    expect_row(&r, "K", 0, 1);
    expect_row(&r, "w", 0, 1);
    rig_step(&r);
    expect_row(&r, "v", 0, 1);
    rig_close(&r);
}

static void test_shared(void **state)
{
    (void)state;
    static const char text[] = "dynamic { x: f32[1024]; }\npersistent { K(t): f32[1024] @table; }\n"
                               "block entry { cache.write x >> K[0]; return; }";
    oi_graph *g;
    oi_sim *s;
    oi_exec *other;
    float x[N] = {0};
    rig r;
    open(&r, "cache.read K[0] >> w;");
    rig_step(&r); /* shown before there was another one */
    rig_must(&r, oi_graph_parse(text, strlen(text), "other.oi", &g, r.diag));
    rig_must(&r, oi_sim_new(NULL, g, NULL, &s, r.diag));
    rig_must(&r, oi_exec_new_shared(s, r.exec, &other, r.diag));
    for (int i = 0; i < 2; i++) {
        rig_must(&r, oi_insert_flat(other, "x", OI_F32, x, N, r.diag));
        rig_must(&r, oi_step(other, r.diag));
        expect_row(&r, "w", 0, 5);
        expect_row(&r, "K", 0, 0);
        rig_step(&r);
        expect_row(&r, "w", 0, 5);
    }
    oi_event ev;
    for (int i = 0; i < 5; i++)
        assert_true(oi_next(r.exec, &ev, r.diag)); /* in a step that shows it */
    oi_exec_free(r.exec);
    r.exec = NULL;
    rig_must(&r, oi_step(other, r.diag));
    oi_exec_free(other);
    oi_sim_free(s);
    oi_graph_free(g);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_in_place_ops_leave_memory_alone),
        cmocka_unit_test(test_onto_itself),
        cmocka_unit_test(test_failure),
        cmocka_unit_test(test_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
