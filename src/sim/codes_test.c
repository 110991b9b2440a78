/* Every failure that only a run can find: its code and place, that nothing persistent has changed,
 * and that the executor goes on afterwards. (Those of yield and await: async_test.c.) */
#include "sim/sim_testing.h"

static void model(oi_writer *w)
{
    static const float two[] = {1, 2};
    static const double wide[] = {1, 2};
    oi_writer_sizevar(w, "D", 2, NULL);
    const oi_writer_tensor tensors[] = {
        {.name = "W.0", .dtype = OI_F32, .rank = 1, .dims = DIMS(2), .data = two},
        {.name = "W.1", .dtype = OI_F64, .rank = 1, .dims = DIMS(2), .data = wide},
        {.name = "W.2", .dtype = OI_F32, .rank = 1, .dims = DIMS(1), .data = two},
        {.name = "C.0", .dtype = OI_F32, .rank = 1, .dims = DIMS(2), .data = two},
        {.name = "C.1", .dtype = OI_F32, .rank = 1, .dims = DIMS(2)}, /* no data */
    };
    for (size_t i = 0; i < OI_COUNT(tensors); i++)
        oi_writer_add_tensor(w, &tensors[i], NULL);
}

typedef struct failure {
    const char *statement; /* on line 9 */
    int64_t good, bad;     /* values of `at` */
    const char *code, *text;
} failure;

#define HEAD                                                                                     \
    "dynamic { at: i64; big: u64 @init(1); idx: i64[2] @init(1); }\n"                            \
    "volatile { W(l): f32[D] @pattern(\"W.{l}\"); v: f32[D] @init(7); m: f32[D, D]; s: f32; }\n" \
    "constant { C(l): f32[D] @pattern(\"C.{l}\"); } volatile { any: f32[?]; small: i8; }\n"      \
    "persistent { n: i32; K(t): f32[D] @table; F(t): f32[D] @table @fixed(t=3); }\n"             \
    "persistent { A(i): f32[D] @auto_dim(i) @fixed(i=4); P: f32[3, D]; G(t): f32[D] @table "     \
    "@cap(t=5); }\n"                                                                             \
    "block entry {\n  assign one: i64; assign flat: f32[?];\n"                                   \
    "  cache.increment n; cache.write v >> K[n + 2]; cache.write v >> A[0..2]; cache.reset P;\n"

static const failure failures[] = {
    /* indices */
    {"cache.read K[at] >> v;", 0, -1, "E042", "index -1 is negative"},
    {"cache.write v >> K[at];", 0, -3, "E042", "index -3 is negative"},
    {"cache.read K[at..2] >> m;", 0, -1, "E042", "start -1 is negative"},
    {"transfer W[at] >> v;", 0, -1, "E042", "index -1 is negative"},
    {"cache.read A[at] >> any;", 0, -1, "E042", "index -1 is negative"},
    {"cache.read K[2..at] >> m;", 4, 1, "E046", "slice 2..1 ends before it starts"},
    {"cache.read F[at] >> v;", 2, 3, "E047", "index 3"},
    {"cache.write v >> F[at];", 2, 3, "E047", "index 3"},
    {"cache.write m >> F[at..at+2];", 1, 2, "E047", "end 4"},
    {"cache.read P[at] >> v;", 2, 3, "E047", "index 3"},
    {"cache.write v >> G[at];", 4, 5, "E047", "index 5"},
    {"cache.read A[at] >> any;", 4, 5, "E047", "growth 5"},
    {"cache.read A[0..at] >> any;", 2, 7, "E047", "end 7"},
    {"cache.read K[4 / at] >> v;", 1, 0, "E047", "division by zero"},
    {"cache.read K[4 % at] >> v;", 1, 0, "E047", "division by zero"},
    {"cache.read K[at * at] >> v;", 1, INT64_MAX, "E047", "64-bit"},
    {"loop l (i in 0..at * at) { barrier; }", 1, INT64_MAX, "E047", "64-bit"},
    {"op gather(m, at) >> v;", 1, 2, "E047", "is 2, it must be in -2"},
    {"op gather(v, at) >> s;", -2, -3, "E047", "is -3"},
    /* what the model has under a number */
    {"transfer W[at] >> v;", 0, 1, "E012", "'W.1' is f64"},
    {"op add(W[at], v) >> v;", 0, 2, "E013", "'W.2' has another shape"},
    {"op add(v, W[at]) >> v;", 0, 3, "E044", "no tensor 'W.3'"},
    {"op add(v, C[at]) >> v;", 0, 1, "E022", "'C.1' of constant 'C' has no data"},
    /* lengths */
    {"cache.read K[0..at] >> m;", 2, 3, "E051", "[3, 2]"},
    {"cache.read P[0..at] >> m;", 2, 1, "E051", "[1, 2]"},
    {"cache.read A[at] >> any; transfer any >> v;", 0, 1, "E051", "another shape"},
    {"cache.read A[at] >> any; cache.write any >> K[0];", 0, 2, "E051", "'any' is [4]"},
    {"cache.read A[at] >> any; op add(any, v) >> flat;", 0, 1, "E051", "add"},
    {"cache.read A[at] >> any; op add(any, any) >> v;", 0, 1, "E051", "add"},
    /* attributes */
    {"op sum_axis(m, axes=at) >> v;", 1, 2, "E051", "sum_axis: axis 2 is out of range"},
    {"op sum_axis(m, axes=[at]) >> v;", -2, -3, "E051", "axis -3 is out of range"},
    {"op fill(small, value=at) >> small;", -128, 128, "E053",
     "'value' is 128, which does not fit i8"},
};

static void set(rig *r, int64_t at)
{
    rig_insert(r, "at", OI_I64, &at, 1);
}

static void expect_note(rig *r)
{
    for (size_t i = 0; i < oi_diag_count(r->diag); i++)
        if (strstr(oi_diag_at(r->diag, i).text, "of block 'entry', step 1"))
            return;
    rig_show(r);
    fail_msg("block, node and step are not said");
}

static void expect_failure(rig *r, const failure *f)
{
    oi_diag_clear(r->diag);
    if (oi_step(r->exec, r->diag) != OI_ERR_INPUT)
        fail_msg("did not fail: %s", f->statement);
    oi_message m = oi_diag_at(r->diag, 0);
    if (strcmp(m.code, f->code) != 0 || m.line != 9 || !strstr(m.text, f->text)) {
        rig_show(r);
        fail_msg("wanted %s at line 9, '%s': %s", f->code, f->text, f->statement);
    }
    expect_note(r);
    oi_diag_clear(r->diag);
}

/* n and the tables, as bytes. */
static size_t snapshot(rig *r, uint8_t *to, size_t room)
{
    static const char *const names[] = {"n", "K", "F", "A", "P", "G"};
    size_t n = 0;
    for (size_t i = 0; i < OI_COUNT(names); i++) {
        oi_view v;
        rig_must(r, oi_fetch(r->exec, names[i], &v, r->diag));
        assert_true(n + v.size_bytes + 8 * v.rank <= room);
        for (uint32_t a = 0; a < v.rank; a++, n += 8)
            memcpy(to + n, &v.dims[a], 8);
        if (v.size_bytes)
            memcpy(to + n, v.data, v.size_bytes);
        n += v.size_bytes;
    }
    return n;
}

static void try_failure(const failure *f, const oi_sim_options *options)
{
    rig r;
    char text[4096];
    uint8_t before[4096], after[4096];
    snprintf(text, sizeof text, "%s  %s\n  return; }\n", HEAD, f->statement);
    rig_open(&r, model, text, options);
    set(&r, f->good);
    rig_step(&r);
    size_t n = snapshot(&r, before, sizeof before);
    set(&r, f->bad);
    expect_failure(&r, f);
    assert_int_equal(snapshot(&r, after, sizeof after), n);
    assert_memory_equal(after, before, n);
    assert_int_equal(oi_steps_done(r.exec), 1);
    set(&r, f->good);
    rig_step(&r);
    EXPECT_NUMBER(&r, "n", 2);
    rig_close(&r);
}

static void test_failures(void **state)
{
    (void)state;
    for (size_t i = 0; i < OI_COUNT(failures); i++) {
        try_failure(&failures[i], NULL);
        try_failure(&failures[i], &(oi_sim_options){.threads = 3, .memory_limit = 1 << 20});
    }
}

static void refuse_fetch(rig *r, const char *name, const char *code)
{
    oi_view v;
    oi_diag_clear(r->diag);
    assert_int_equal(oi_fetch(r->exec, name, &v, r->diag), OI_ERR_INPUT);
    if (!rig_has_code(r, code)) {
        rig_show(r);
        fail_msg("wanted %s: %s", code, name);
    }
    oi_diag_clear(r->diag);
}

static void test_entries(void **state)
{
    (void)state;
    static const char text[] = HEAD "  op add(v, W[0]) >> W[0]; return; }\n";
    for (uint64_t limit = 0; limit <= 1 << 20; limit += 1 << 20) {
        rig r;
        rig_open(&r, model, text, &(oi_sim_options){.memory_limit = limit});
        rig_expect(&r, "W[0]", 1, DIMS(2), VALUES(1, 2));
        rig_step(&r);
        rig_expect(&r, "W[0]", 1, DIMS(2), VALUES(8, 9)); /* as the step left it */
        rig_expect(&r, "C[ 0 ]", 1, DIMS(2), VALUES(1, 2));
        refuse_fetch(&r, "W", "E041");
        static const char *const wrong[] = {
            "W[]", "W[0", "W[0,1]", "W[-1]", "W[a]", "W[0]x", "W[99999999999999999999]", "v[0]"};
        for (size_t i = 0; i < OI_COUNT(wrong); i++)
            refuse_fetch(&r, wrong[i], "E041");
        refuse_fetch(&r, "V[0]", "E030");
        refuse_fetch(&r, "W[7]", "E044");
        refuse_fetch(&r, "W[1]", "E012");
        refuse_fetch(&r, "C[1]", "E022");
        rig_step(&r);
        rig_close(&r);
    }
}

/* A number that is no 64-bit signed one. */
static void test_large_unsigned(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL,
             "dynamic { big: u64; }\npersistent { K(t): f32 @table; }\nblock entry {\n"
             "  assign v: f32; cache.read K[big] >> v; return; }",
             NULL);
    rig_step(&r);
    rig_insert(&r, "big", OI_U64, (uint64_t[]){UINT64_MAX}, 1);
    rig_refuse(&r, "E047", 4);
    rig_step(&r);
    rig_close(&r);
}

/* The budget ends a step like any other failure: nothing persistent changes, and it stays spent. */
static void test_budget(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL,
             "persistent { n: i32; }\nblock entry {\n"
             "  cache.increment n;\n  assign v: i32; cache.read n >> v; return v; }",
             &(oi_sim_options){.max_nodes = 6});
    rig_step(&r);
    rig_refuse(&r, "E063", 4);
    rig_refuse(&r, "E063", 3);
    oi_view v;
    assert_int_equal(oi_fetch(r.exec, "n", &v, r.diag), OI_OK);
    assert_int_equal(*(const int32_t *)v.data, 1);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_large_unsigned),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
