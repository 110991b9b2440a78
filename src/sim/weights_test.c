/* weights_test.c: a model under a limit, mapped and read on demand: the same results, and never
 * more held than allowed; a limit that cannot be kept is refused before anything runs. */
#include "sim/sim_testing.h"

#include "oinf/oinf.h"

#include <unistd.h>

#define LAYERS 40u
#define WIDTH  4096u /* f32: 16 KiB a layer, 640 KiB in all */

#define PATH "/tmp/openinfer_weights_XXXXXX"

static void make_model(char *path)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    oi_writer *w = oi_writer_new();
    static float data[LAYERS][WIDTH];
    oi_writer_sizevar(w, "D", WIDTH, NULL);
    for (unsigned l = 0; l < LAYERS; l++) {
        char name[16];
        snprintf(name, sizeof name, "W.%u", l);
        oi_random_f32(l + 1, -1, 1, data[l], WIDTH);
        assert_int_equal(
            oi_writer_add_tensor(
                w,
                &(oi_writer_tensor){
                    .name = name, .dtype = OI_F32, .rank = 1, .dims = DIMS(WIDTH), .data = data[l]},
                NULL),
            OI_OK);
    }
    assert_int_equal(oi_writer_finish(w, path, NULL), OI_OK);
    oi_writer_free(w);
}

static const char text[] =
    "volatile { W(l): f32[D] @pattern(\"W.{l}\"); a: f32[D] @ref(\"W.3\"); }\n"
    "constant { b: f32[D] @ref(\"W.5\"); }\n"
    "persistent { p: f32[D] @ref(\"W.7\"); K(l): f32[D] @table; }\n"
    "block entry { assign t: f32[D]; assign q: f32[D];\n"
    "  cache.read p >> q; op add(a, b) >> t; op add(t, q) >> t;\n"
    "  loop all (l in 0..40) { op mul(t, W[l]) >> q; op add(q, W[39 - l]) >> t; }\n"
    "  transfer W[1] >> a; transfer b >> q; op add(a, t) >> W[2]; op add(t, W[2]) >> t;\n"
    "  cache.write a >> K[1]; cache.reset p; return t; }\n";

typedef struct outcome {
    float t[WIDTH];
    uint64_t weights_peak, total_peak;
} outcome;

static void run(const char *path, bool pread, uint64_t limit, outcome *out)
{
    rig r = {.diag = oi_diag_new()};
    oi_model_options how = {.pread = pread};
    rig_must(&r, oi_model_open_with(path, &how, &r.model, r.diag));
    rig_must(&r, oi_graph_parse(text, strlen(text), "w.oi", &r.graph, r.diag));
    oi_sim_options o = {.memory_limit = limit};
    rig_must(&r, oi_sim_new(r.model, r.graph, &o, &r.sim, r.diag));
    rig_must(&r, oi_exec_new(r.sim, &r.exec, r.diag));
    oi_view v;
    for (int step = 0; step < 3; step++) {
        rig_step(&r);
        rig_must(&r, oi_fetch(r.exec, "t", &v, r.diag));
        memcpy(out->t, v.data, sizeof out->t);
        rig_must(&r, oi_fetch(r.exec, "a", &v, r.diag));
        rig_must(&r, oi_fetch(r.exec, "b", &v, r.diag));
        if (limit && step == 1) { /* given back between steps, they come again */
            oi_sim_stats left;
            oi_sim_trim(r.sim);
            oi_sim_get_stats(r.sim, &left);
            assert_true(left.weights_resident == 0);
        }
    }
    oi_sim_stats stats;
    oi_sim_get_stats(r.sim, &stats);
    out->weights_peak = stats.weights_peak;
    out->total_peak = stats.total_peak;
    assert_true(stats.weights_resident <= stats.weights_peak);
    rig_close(&r);
}

/* What the refusal of a limit of one byte names; it is enough for the simulator, less is not. */
static uint64_t least_limit(const char *path)
{
    rig r = {.diag = oi_diag_new()};
    rig_must(&r, oi_model_open(path, &r.model, r.diag));
    rig_must(&r, oi_graph_parse(text, strlen(text), "w.oi", &r.graph, r.diag));
    oi_sim_options o = {.memory_limit = 1};
    assert_int_equal(oi_sim_new(r.model, r.graph, &o, &r.sim, r.diag), OI_ERR_INPUT);
    assert_true(rig_has_code(&r, "E065"));
    const char *said = strstr(oi_diag_at(r.diag, 0).text, "the least that would do is ");
    assert_non_null(said);
    const uint64_t least = strtoull(said + strlen("the least that would do is "), NULL, 10);
    o.memory_limit = least - 1;
    assert_int_equal(oi_sim_new(r.model, r.graph, &o, &r.sim, r.diag), OI_ERR_INPUT);
    o.memory_limit = least;
    rig_must(&r, oi_sim_new(r.model, r.graph, &o, &r.sim, r.diag));
    rig_close(&r);
    return least;
}

static void test_limits(void **state)
{
    (void)state;
    char path[] = PATH;
    make_model(path);
    static outcome free_run, tight;
    run(path, false, 0, &free_run);
    assert_true(free_run.weights_peak == (uint64_t)LAYERS * WIDTH * 4);
    /* the table grows while it runs, which nobody knows before */
    const uint64_t least = least_limit(path) + 6 * WIDTH * 4;
    for (int pread = 0; pread < 2; pread++) {
        for (uint64_t limit = least; limit <= 4 * least; limit += least / 2) {
            run(path, pread, limit, &tight);
            assert_memory_equal(tight.t, free_run.t, sizeof tight.t);
            assert_true(tight.total_peak <= limit);
        }
    }
    remove(path);
}

/* Pages that were given back are no longer resident, and come again unchanged. */
static void test_pages_leave(void **state)
{
    (void)state;
    char path[] = PATH;
    make_model(path);
    oi_model *m;
    assert_int_equal(oi_model_open(path, &m, NULL), OI_OK);
    oi_budget b;
    oi_budget_init(&b, 64 << 10);
    oi_weights *w = oi_weights_new(m, &b);
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < LAYERS; i++) {
            const void *data;
            float wanted[WIDTH];
            unsigned l;
            assert_int_equal(oi_weights_get(w, i, &data, NULL), OI_OK);
            assert_int_equal(sscanf(oi_model_tensor_name(m, i), "W.%u", &l), 1);
            oi_random_f32(l + 1, -1, 1, wanted, WIDTH);
            assert_memory_equal(data, wanted, sizeof wanted);
            assert_true(b.now[OI_HELD_TENSORS] <= 64 << 10);
            oi_weights_release(w, i);
        }
    }
    assert_true(b.peak[OI_HELD_TENSORS] <= 64 << 10 && b.now[OI_HELD_TENSORS] > 0);
    oi_weights_free(w);
    oi_budget_end(&b);
    oi_model_close(m);
    remove(path);
}

/* A file that shrinks between steps is an error, not a crash. */
static void test_shrinking_file(void **state)
{
    (void)state;
    char path[] = PATH;
    make_model(path);
    rig r = {.diag = oi_diag_new()};
    rig_must(&r, oi_model_open(path, &r.model, r.diag));
    rig_must(&r, oi_graph_parse(text, strlen(text), "w.oi", &r.graph, r.diag));
    rig_must(&r, oi_sim_new(r.model, r.graph, NULL, &r.sim, r.diag));
    rig_must(&r, oi_exec_new(r.sim, &r.exec, r.diag));
    rig_step(&r);
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(oi_step(r.exec, r.diag), OI_ERR_INPUT);
    assert_int_equal(oi_steps_done(r.exec), 1);
    rig_close(&r);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_pages_leave),
        cmocka_unit_test(test_shrinking_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
