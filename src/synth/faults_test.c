/* Faults planted into right plans: the checker must refuse each, and nothing else. */
#include "plan/check.h"
#include "synth/unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct made { /* a unit and what it is made of */
    oi_unit u;
    oi_graph *graph;
    oi_program *program;
    oi_device *device;
} made;

extern const oi_target oi_target_c;

/* NULL: the plan is right. */
static const char *why_wrong(const made *m)
{
    oi_plan plan;
    oi_unit_freeze(&m->u, &plan);
    return oi_plan_check(&plan).why;
}

static void make(made *m, const char *text, const char *device)
{
    *m = (made){.program = NULL};
    oi_diag *d = oi_diag_new();
    assert_int_equal(oi_device_load(device, true, &m->device, d), OI_OK);
    assert_int_equal(oi_graph_parse(text, strlen(text), "test.oi", &m->graph, d), OI_OK);
    assert_int_equal(oi_graph_check(m->graph, NULL, d), OI_OK);
    assert_int_equal(oi_program_bind(m->graph, NULL, NULL, 0, OI_NONE, &m->program, d), OI_OK);
    m->u = (oi_unit){.arena = oi_arena_new(),
                     .device = m->device,
                     .target = oi_device_get(m->device),
                     .can = oi_target_c.caps(oi_device_get(m->device)),
                     .name = "test",
                     .diag = d,
                     .partition_all = true};
    oi_unit_begin(&m->u);
    assert_int_equal(oi_unit_add_graph(&m->u, m->program, "graph"), OI_OK);
    assert_int_equal(oi_passes_run(&m->u), OI_OK);
    const char *why = why_wrong(m);
    if (why)
        fail_msg("a right plan was refused: %s", why);
}

static void drop(made *m)
{
    oi_diag_free(m->u.diag);
    oi_arena_free(m->u.arena);
    oi_program_free(m->program);
    oi_graph_free(m->graph);
    oi_device_free(m->device);
}

static oi_stmts *entry_of(made *m)
{
    oi_sgraph *g = &m->u.graphs.at[0];
    return &g->blocks[g->program->entry].stmts;
}

/* -- barriers -- */

static const char layers[] = "dynamic { x: f32[64, 48]; }"
                             "volatile { w: f32[48, 48] @init(0.5); y: f32[64, 48]; }"
                             "persistent { n: i32; K(t): f32[64, 48] @table @cap(t=8); }"
                             "block entry {"
                             "  assign h: f32[64, 48]; assign g: f32[64, 48];"
                             "  op softmax(x, axis=0) >> h;"
                             "  loop layers (l in 0..3) {"
                             "    op matmul(h, w) >> g;"
                             "    op softmax(g, axis=0) >> g;"
                             "    op add(h, g) >> h;"
                             "  }"
                             "  cache.write h >> K[n];"
                             "  op matmul(h, w) >> y;"
                             "  op softmax(y, axis=0) >> y;"
                             "  return y;"
                             "}";

/* Takes every barrier away, one at a time; how many there are. */
static size_t without_each(made *m, oi_stmts *list)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *s = &list->at[i];
        n += without_each(m, &s->body);
        if (!s->barrier)
            continue;
        s->barrier = false;
        const char *why = why_wrong(m);
        if (!why)
            fail_msg("without the barrier before statement %zu nothing is wrong", i);
        s->barrier = true;
        n++;
    }
    return n;
}

static void every_barrier_is_needed(void **state)
{
    (void)state;
    made m;
    make(&m, layers, "cpu_avx2");
    assert_true(without_each(&m, entry_of(&m)) >= 4);
    assert_null(why_wrong(&m));
    drop(&m);
}

/* The barrier at the head of the loop orders an iteration only after the one before. */
static void carried_around_a_loop(void **state)
{
    (void)state;
    static const char text[] = "dynamic { x: f32[64, 48]; }"
                               "volatile { h: f32[64, 48]; g: f32[64, 48]; }"
                               "block entry {"
                               "  transfer x >> h;"
                               "  loop layers (l in 0..3) {"
                               "    op relu(h) >> g;"
                               "    barrier;"
                               "    op softmax(g, axis=0) >> h;"
                               "  }"
                               "  return h;"
                               "}";
    made m;
    make(&m, text, "cpu_avx2");
    assert_true(without_each(&m, entry_of(&m)) >= 1);
    drop(&m);
}

/* A loop that runs no time at all has no barrier: what was written before it still needs one. */
static void loop_that_may_not_run(void **state)
{
    (void)state;
    static const char text[] = "dynamic { x: f32[64, 48]; n: i32; }"
                               "volatile { y: f32[64, 48]; }"
                               "block entry {"
                               "  assign h: f32[64, 48]; assign g: f32[64, 48];"
                               "  op softmax(x, axis=1) >> h;"
                               "  op softmax(h, axis=1) >> g;"
                               "  loop layers (l in 0..n) {"
                               "    op softmax(g, axis=0) >> g;"
                               "    op softmax(g, axis=1) >> g;"
                               "  }"
                               "  op softmax(h, axis=0) >> h;"
                               "  op add(h, g) >> y;"
                               "  return y;"
                               "}";
    made m;
    make(&m, text, "cpu_avx2");
    assert_true(without_each(&m, entry_of(&m)) >= 2);
    drop(&m);
}

static oi_stmt *find(oi_stmts *list, bool (*is)(const oi_stmt *s))
{
    for (size_t i = 0; i < list->n; i++) {
        if (is(&list->at[i]))
            return &list->at[i];
        oi_stmt *inside = find(&list->at[i].body, is);
        if (inside)
            return inside;
    }
    return NULL;
}

static bool is_log(const oi_stmt *s)
{
    return s->kind == OI_STMT_LOG;
}

static bool writes_state(const oi_unit *u, const oi_stmt *s)
{
    const oi_skernel *k = &u->kernels.at[s->kernel];
    bool writes = false;
    for (size_t i = 0; i < k->ports.n; i++)
        writes |= k->ports.at[i].is_written &&
                  u->tensors.at[k->ports.at[i].tensor].space == OI_SPACE_STATE;
    return writes;
}

static bool is_loop(const oi_stmt *s)
{
    return s->kind == OI_STMT_LOOP;
}

static const char gathering[] = "dynamic { x: f32[64, 48]; at: i32[4]; }"
                                "volatile { w: f32[48, 48] @init(0.5); t: f32[8, 4]; }"
                                "block entry {"
                                "  assign found: f32[4, 4]; assign y: f32[64, 48];"
                                "  op gather(t, at) >> found;"
                                "  op matmul(x, w) >> y;"
                                "  return found, y;"
                                "}";

/* Workers that go on after a statement that may have failed without learning of it. */
static void failing_alone(void **state)
{
    (void)state;
    made m;
    make(&m, gathering, "cpu_avx2");
    const oi_stmts *list = entry_of(&m);
    size_t at = 0;
    while (at + 1 < list->n && !(list->at[at].may_fail && !list->at[at].is_parallel))
        at++;
    assert_true(at + 1 < list->n &&
                list->at[at + 1].barrier); /* nothing but the failure asks for it */
    list->at[at + 1].barrier = false;
    const char *why = why_wrong(&m);
    assert_non_null(why);
    assert_non_null(strstr(why, "learn that a statement before it failed"));
    drop(&m);
}

/* Workers that write the state while one of them still reads it for the undo log. */
static void log_beside_writes(void **state)
{
    (void)state;
    made m;
    make(&m, layers, "cpu_avx2");
    oi_stmts *list = entry_of(&m);
    oi_stmt *log = find(list, is_log);
    assert_non_null(log);
    const oi_stmt own = *log;
    size_t from = (size_t)(log - list->at), to = from;
    while (to + 1 < list->n && !(list->at[to].kind == OI_STMT_KERNEL && list->at[to].is_parallel &&
                                 writes_state(&m.u, &list->at[to])))
        to++;
    for (size_t i = from; i < to; i++) /* just before the kernel, behind the barrier */
        list->at[i] = list->at[i + 1];
    list->at[to] = list->at[to - 1];
    list->at[to - 1] = own;
    list->at[to - 1].barrier = list->at[to].barrier;
    list->at[to].barrier = false;
    assert_non_null(why_wrong(&m));
    drop(&m);
}

/* A barrier inside a serial section: other workers never reach it. */
static void barrier_for_one(void **state)
{
    (void)state;
    made m;
    make(&m, layers, "cpu_avx2");
    oi_stmt *loop = find(entry_of(&m), is_loop);
    loop->is_parallel = false;
    loop->serial = 1;
    const char *why = why_wrong(&m);
    assert_non_null(why);
    assert_non_null(strstr(why, "never reach it"));
    drop(&m);
}

/* -- memory -- */

static const char chain[] = "dynamic { x: f32[96, 96]; }"
                            "volatile { y: f32[96, 96]; }"
                            "block entry {"
                            "  assign a: f32[96, 96]; assign b: f32[96, 96];"
                            "  assign c: f32[96, 96]; assign d: f32[96, 96];"
                            "  op softmax(x, axis=0) >> a;"
                            "  op softmax(x, axis=1) >> b;"
                            "  op matmul(a, b) >> c;"
                            "  op softmax(c, axis=0) >> d;"
                            "  op matmul(d, a) >> c;"
                            "  op matmul(c, b) >> y;"
                            "  return y;"
                            "}";

/* Workers that share the axis along which sums are made all write the same elements. */
static void partition_of_a_sum(void **state)
{
    (void)state;
    made m;
    make(&m, chain, "cpu_avx2");
    size_t n = 0;
    for (size_t i = 0; i < m.u.kernels.n; i++) {
        oi_skernel *k = &m.u.kernels.at[i];
        const oi_snest *last = k->nests.n == 1 ? &k->nests.at[0] : NULL;
        if (!k->is_used || k->recipe || !oi_kernel_partition(k).extent || !last ||
            !last->axes[last->n_axes - 1].is_reduced)
            continue;
        const oi_partition right = oi_kernel_partition(k);
        oi_kernel_set_partition(
            k, (oi_partition){last->n_axes - 1, 1, last->axes[last->n_axes - 1].extent, 1});
        assert_non_null(strstr(why_wrong(&m), "at once"));
        oi_kernel_set_partition(k, right);
        n++;
    }
    assert_true(n > 0);
    drop(&m);
}

static bool live_together(const oi_tensor *a, const oi_tensor *b)
{
    return a->space == OI_SPACE_ARENA && b->space == OI_SPACE_ARENA && !a->is_private &&
           !b->is_private && a->alive[0] > 0 &&
           b->alive[0] > 0 && /* what may live from the start need not */
           a->alive[0] <= b->alive[1] && b->alive[0] <= a->alive[1];
}

static void two_in_one_place(void **state)
{
    (void)state;
    made m;
    size_t n = 0;
    make(&m, chain, "cpu_scalar");
    for (size_t i = 0; i < m.u.tensors.n; i++)
        for (size_t j = 0; j < m.u.tensors.n; j++) {
            oi_tensor *a = &m.u.tensors.at[i], *b = &m.u.tensors.at[j];
            if (i == j || !live_together(a, b))
                continue;
            const uint64_t right = a->offset;
            a->offset = b->offset;
            if (why_wrong(&m) == NULL)
                fail_msg("'%s' and '%s' share their bytes", a->name, b->name);
            a->offset = right;
            n++;
        }
    assert_true(n >= 4);
    drop(&m);
}

static void beyond_the_arena(void **state)
{
    (void)state;
    made m;
    make(&m, chain, "cpu_scalar");
    m.u.arena_bytes--; /* rounded down */
    assert_non_null(strstr(why_wrong(&m), "ends beyond its memory"));
    drop(&m);
}

static bool is_kernel(const oi_stmt *s)
{
    return s->kind == OI_STMT_KERNEL;
}

/* The first kernel never runs: who reads its result finds nothing. */
static void never_written(void **state)
{
    (void)state;
    made m;
    make(&m, chain, "cpu_scalar");
    find(entry_of(&m), is_kernel)->kind = OI_STMT_BARRIER;
    assert_non_null(strstr(why_wrong(&m), "before anything is written"));
    drop(&m);
}

/* -- undo -- */

static const char remembering[] = "dynamic { x: f32[4]; }"
                                  "persistent {"
                                  "  n: i32;"
                                  "  K(t): f32[4] @table @cap(t=8);"
                                  "  V(t): f32[4] @table @cap(t=8);"
                                  "}"
                                  "block entry {"
                                  "  cache.increment n;"
                                  "  loop never (i in 1..0) { cache.write x >> V[i]; }"
                                  "  loop twice (i in 0..2) {"
                                  "    cache.write x >> K[n + i];"
                                  "  }"
                                  "  cache.write x >> V[n];"
                                  "  cache.increment n;"
                                  "  return;"
                                  "}";

/* Takes every entry of the undo log away, one at a time, and makes it too short; how many
 * there are. */
static size_t without_each_entry(made *m, oi_stmts *list)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *s = &list->at[i];
        n += without_each_entry(m, &s->body);
        const oi_undo_entry *right = s->undo;
        oi_undo_entry *wrong = oi_arena_alloc(m->u.arena, (s->n_undo + 1) * sizeof *wrong);
        for (uint32_t e = 0; e < s->n_undo; e++, n++) {
            memcpy(wrong, right, s->n_undo * sizeof *wrong);
            s->undo = wrong;
            wrong[e].bytes = (wrong[e].bytes - 1) / 2;
            assert_non_null(why_wrong(m));
            wrong[e] = wrong[--s->n_undo];
            assert_non_null(why_wrong(m));
            s->n_undo++;
            s->undo = right;
        }
    }
    return n;
}

/* A counter, sizes and elements of a growing table, and which of its entries exist. */
static void every_undo_entry_is_needed(void **state)
{
    (void)state;
    made m;
    make(&m, remembering, "cpu_scalar");
    assert_int_equal(m.u.undo.kind, OI_UNDO_LOG);
    assert_true(without_each_entry(&m, entry_of(&m)) >= 3);
    assert_null(why_wrong(&m));
    drop(&m);
}

static bool counts(const oi_stmt *s)
{
    return s->kind == OI_STMT_LOG && s->node->kind == OI_NODE_CACHE_INCREMENT;
}

/* Nothing fails after the last statements: they log nothing. */
static void undo_ends_at_the_last_failure(void **state)
{
    (void)state;
    made m;
    make(&m, remembering, "cpu_scalar");
    const oi_stmts *list = entry_of(&m);
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        if (counts(&list->at[i]))
            assert_int_equal(list->at[i].n_undo, n++ == 0 ? 1 : 0);
    assert_int_equal(n, 2);
    drop(&m);
}

static void undo_log_too_short(void **state)
{
    (void)state;
    made m;
    make(&m, remembering, "cpu_scalar");
    m.u.undo.bytes -= m.u.can.alignment;
    assert_non_null(strstr(why_wrong(&m), "does not hold all entries"));
    drop(&m);
}

static void undo_left_out(void **state)
{
    (void)state;
    made m;
    make(&m, remembering, "cpu_scalar");
    m.u.graphs.at[0].needs_undo = false;
    assert_non_null(strstr(why_wrong(&m), "the undo does not hold it"));
    m.u.graphs.at[0].needs_undo = true;
    m.u.undo.kind = OI_UNDO_NONE;
    assert_non_null(strstr(why_wrong(&m), "the undo does not hold it"));
    drop(&m);
}

/* A log without a bound: the state is copied. */
static void undo_copy_too_small(void **state)
{
    (void)state;
    static const char text[] = "dynamic { x: f32[4]; m: i32; }"
                               "persistent { K(t): f32[4] @table @cap(t=8); }"
                               "block entry {"
                               "  loop all (i in 0..m) { cache.write x >> K[i]; }"
                               "  return;"
                               "}";
    made m;
    make(&m, text, "cpu_scalar");
    assert_int_equal(m.u.undo.kind, OI_UNDO_COPY);
    m.u.undo.bytes = 8 * 4 * 4;
    assert_non_null(strstr(why_wrong(&m), "does not hold all state"));
    drop(&m);
}

static void failure_kept_secret(void **state)
{
    (void)state;
    made m;
    make(&m, remembering, "cpu_scalar");
    for (size_t i = 0; i < entry_of(&m)->n; i++)
        if (is_loop(&entry_of(&m)->at[i]))
            entry_of(&m)->at[i].body.at[0].may_fail = false;
    assert_non_null(strstr(why_wrong(&m), "says that it cannot"));
    drop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_barrier_is_needed),
        cmocka_unit_test(carried_around_a_loop),
        cmocka_unit_test(loop_that_may_not_run),
        cmocka_unit_test(failing_alone),
        cmocka_unit_test(log_beside_writes),
        cmocka_unit_test(barrier_for_one),
        cmocka_unit_test(partition_of_a_sum),
        cmocka_unit_test(two_in_one_place),
        cmocka_unit_test(beyond_the_arena),
        cmocka_unit_test(never_written),
        cmocka_unit_test(every_undo_entry_is_needed),
        cmocka_unit_test(undo_ends_at_the_last_failure),
        cmocka_unit_test(undo_log_too_short),
        cmocka_unit_test(undo_left_out),
        cmocka_unit_test(undo_copy_too_small),
        cmocka_unit_test(failure_kept_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
