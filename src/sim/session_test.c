/* session_test.c: graphs in the compact form over one model, named as the descriptions name it. */
#include "sim/sim_testing.h"

static void fill(oi_writer *w)
{
    static const float table[] = {1, 2, 3, 4, 5, 6};
    static const uint64_t dims[] = {3, 2};
    rig_must(NULL, oi_writer_sizevar(w, "B", 1, NULL));
    rig_must(NULL,
             oi_writer_add_tensor(
                 w,
                 &(oi_writer_tensor){
                     .name = "table", .dtype = OI_F32, .rank = 2, .dims = dims, .data = table},
                 NULL));
}

static oi_graph *read_compact(rig *r, const char *text)
{
    oi_graph *g = NULL;
    const oi_graph_options o = {.model = r->model};
    rig_must(r, oi_graph_parse_with(text, strlen(text), "compact.oi", &o, &g, r->diag));
    return g;
}

static oi_named_view int_input(const char *name, const int32_t *value)
{
    static const uint64_t one[] = {1};
    return (oi_named_view){name,
                           {.dtype = OI_I32,
                            .rank = 1,
                            .dims = one,
                            .data = value,
                            .n_elements = 1,
                            .size_bytes = sizeof *value}};
}

static float first(rig *r, oi_session *s, const char *name)
{
    oi_view v;
    rig_must(r, oi_session_fetch(s, name, &v, r->diag));
    return ((const float *)v.data)[0];
}

/* One graph writes a cache, another one reads it. */
static void shares_what_lasts(void **state)
{
    (void)state;
    rig r = {.diag = oi_diag_new()};
    rig_model(&r, fill);
    oi_graph *writes =
        read_compact(&r, "inputs: { tok: i32[B], step: i32[] },"
                         "state: { kv: kv_cache(f32, layers=1, cap=3, shape=[B, 2]) },"
                         "let x = gather(model[\"table\"], tok);"
                         "kv_write(kv, layer=0, step=step, k=x, v=x); output x;");
    oi_graph *reads =
        read_compact(&r, "inputs: { step: i32[] },"
                         "state: { kv: kv_cache(f32, layers=1, cap=3, shape=[B, 2]) },"
                         "let (k, v) = kv_read(kv, layer=0, step=step); output k;");
    oi_session *s = NULL;
    rig_must(&r, oi_session_new(r.model, NULL, &s, r.diag));
    oi_view none;
    assert_int_equal(oi_session_fetch(s, "x", &none, NULL), OI_ERR_INPUT);
    const int32_t tok = 2, step = 0;
    const oi_named_view inputs[] = {int_input("tok", &tok), int_input("step", &step)};
    rig_must(&r, oi_session_run_step(s, writes, inputs, 2, r.diag));
    assert_true(first(&r, s, "x") == 5.0f);
    rig_must(&r, oi_session_run_step(s, reads, inputs + 1, 1, r.diag));
    assert_true(first(&r, s, "k") == 5.0f);
    assert_int_equal(oi_session_run_step(s, reads, inputs, 1, NULL),
                     OI_ERR_INPUT); /* no such input */
    oi_session_free(s);
    oi_graph_free(writes);
    oi_graph_free(reads);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shares_what_lasts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
