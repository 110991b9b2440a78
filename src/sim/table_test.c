/* table_test.c: persistent tables and auto_dim, row by row of the worked tables of spec/dsl.md §6
 * and §7, and what resets, bounds and failing steps make of them. */
#include "sim/sim_testing.h"

static void sizes(oi_writer *w)
{
    oi_writer_sizevar(w, "D", 2, NULL);
    oi_writer_sizevar(w, "H", 3, NULL);
}

/* -- §6 -- */

/* Ten entries [i, 10 * i], then one access. */
#define TEN                                         \
    "dynamic { x: f32[D]; at: i32; }\n"             \
    "persistent { A(i): f32[D] @table; n: i32; }\n" \
    "block entry { assign v: f32[?, D]; assign e: f32[D];\n"

static void write_ten(rig *r)
{
    for (int32_t i = 0; i < 10; i++) {
        rig_insert(r, "x", OI_F32, (float[]){(float)i, 10.0f * (float)i}, 2);
        rig_insert(r, "at", OI_I32, &i, 1);
        rig_step(r);
    }
}

static void read_after_ten(const char *access, uint64_t rows, const double *values)
{
    rig r;
    char text[1024];
    snprintf(text, sizeof text, TEN "cache.write x >> A[at]; cache.read %s >> v; return v; }",
             access);
    rig_open(&r, sizes, text, NULL);
    /* the first steps would read before all is there: write first with another graph beside it */
    oi_graph *fill;
    oi_sim *s;
    oi_exec *e;
    const char *w = TEN "cache.write x >> A[at]; return; }";
    rig_must(&r, oi_graph_parse(w, strlen(w), "fill.oi", &fill, r.diag));
    rig_must(&r, oi_sim_new(r.model, fill, NULL, &s, r.diag));
    rig_must(&r, oi_exec_new_shared(s, r.exec, &e, r.diag));
    rig filler = {.exec = e, .diag = r.diag};
    write_ten(&filler);
    rig_insert(&r, "x", OI_F32, (float[]){0, 0}, 2);
    rig_insert(&r, "at", OI_I32, (int32_t[]){0}, 1);
    rig_step(&r);
    rig_expect(&r, "v", 2, DIMS(rows, 2), values);
    rig_expect(&r, "A", 2, DIMS(10, 2), NULL); /* reading never grows */
    oi_exec_free(e);
    oi_sim_free(s);
    oi_graph_free(fill);
    rig_close(&r);
}

static void test_slices(void **state)
{
    (void)state;
    const double ten[] = {0, 0, 1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60, 7, 70, 8, 80, 9, 90};
    read_after_ten("A[]", 10, ten);
    read_after_ten("A", 10, ten);
    read_after_ten("A[0..5]", 5, ten);
    read_after_ten("A[2..5]", 3, ten + 4);
    read_after_ten("A[0..-3]", 7, ten);
    read_after_ten("A[4..5]", 1, ten + 8);
    read_after_ten("A[8..12]", 4, VALUES(8, 80, 9, 90, 0, 0, 0, 0));
    read_after_ten("A[..3]", 3, ten);
    read_after_ten("A[7..]", 3, ten + 14);
    read_after_ten("A[i-2..i]", 2, ten + 16); /* the own index name is the size */
    read_after_ten("A[D..D+1]", 1, ten + 4);
    read_after_ten("A[3..3]", 0, NULL);
    read_after_ten("A[20..22]", 2, VALUES(0, 0, 0, 0));
}

static void test_scalar_and_growth(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, sizes,
             "dynamic { x: f32[D]; at: i32; }\n"
             "persistent { A(i): f32[D] @table @init(7); }\n"
             "block entry { assign e: f32[D]; assign f: f32[D];\n"
             "  cache.write x >> A[at]; cache.read A[4] >> e; cache.read A[at] >> f; return; }",
             NULL);
    rig_insert(&r, "x", OI_F32, (float[]){1, 2}, 2);
    rig_insert(&r, "at", OI_I32, (int32_t[]){2}, 1);
    rig_step(&r);
    rig_expect(&r, "e", 1, DIMS(2), VALUES(7, 7)); /* past the end: @init */
    rig_expect(&r, "f", 1, DIMS(2), VALUES(1, 2));
    rig_expect(&r, "A", 2, DIMS(3, 2), VALUES(7, 7, 7, 7, 1, 2));
    rig_insert(&r, "x", OI_F32, (float[]){3, 4}, 2);
    rig_insert(&r, "at", OI_I32, (int32_t[]){10}, 1);
    rig_step(&r);
    rig_expect(&r, "A", 2, DIMS(11, 2), NULL); /* writing A[10] makes n = 11 */
    rig_close(&r);
}

static void test_two_axes(void **state)
{
    (void)state;
    rig r;
    rig_open(
        &r, sizes,
        "dynamic { x: i16[D]; l: i32; t: i32; }\n"
        "persistent { K(a, b): i16[D] @table; }\n"
        "block entry { assign row: i16[?, D]; assign col: i16[?, D]; assign all: i16[?, ?, D];\n"
        "  cache.write x >> K[l, t];\n"
        "  cache.read K[1] >> row; cache.read K[, 0] >> col; cache.read K[0..2, 0..2] >> all;\n"
        "  return; }",
        NULL);
    for (int16_t i = 0; i < 6; i++) {
        rig_insert(&r, "x", OI_I16, (int16_t[]){i, (int16_t)-i}, 2);
        rig_insert(&r, "l", OI_I32, (int32_t[]){i / 3}, 1);
        rig_insert(&r, "t", OI_I32, (int32_t[]){i % 3}, 1);
        rig_step(&r);
    }
    rig_expect(&r, "K", 3, DIMS(2, 3, 2), VALUES(0, 0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5));
    rig_expect(&r, "row", 2, DIMS(3, 2), VALUES(3, -3, 4, -4, 5, -5));
    rig_expect(&r, "col", 2, DIMS(2, 2), VALUES(0, 0, 3, -3));
    rig_expect(&r, "all", 3, DIMS(2, 2, 2), VALUES(0, 0, 1, -1, 3, -3, 4, -4));
    rig_close(&r);
}

static void test_fixed_and_cap(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, sizes,
             "dynamic { x: f32[D]; at: i32; }\n"
             "persistent { A(i): f32[D] @table @fixed(i=4); B(i): f32[D] @table @cap(i=4); }\n"
             "block entry { assign v: f32[?, D]; assign w: f32[?, D]; assign e: f32[D];\n"
             "  cache.write x >> B[at];\n"
             "  cache.write x >> A[at];\n"
             "  cache.read A[] >> v; cache.read B[] >> w;\n"
             "  return; }",
             NULL);
    rig_insert(&r, "x", OI_F32, (float[]){1, 2}, 2);
    rig_insert(&r, "at", OI_I32, (int32_t[]){1}, 1);
    rig_step(&r);
    rig_expect(&r, "v", 2, DIMS(4, 2), VALUES(0, 0, 1, 2, 0, 0, 0, 0)); /* always N */
    rig_expect(&r, "w", 2, DIMS(2, 2), VALUES(0, 0, 1, 2));             /* still grows */
    rig_insert(&r, "at", OI_I32, (int32_t[]){4}, 1);
    rig_refuse(&r, "E047", 4);
    rig_expect(&r, "B", 2, DIMS(2, 2), VALUES(0, 0, 1, 2));
    rig_close(&r);
    rig_open(&r, sizes,
             "dynamic { at: i32; }\n"
             "persistent { A(i): f32[D] @table @fixed(i=4); }\n"
             "block entry { assign v: f32[?, D]; assign e: f32[D];\n"
             "  cache.read A[at] >> e;\n"
             "  cache.read A[0..at+1] >> v; return; }",
             NULL);
    rig_insert(&r, "at", OI_I32, (int32_t[]){3}, 1);
    rig_step(&r);
    rig_insert(&r, "at", OI_I32, (int32_t[]){4}, 1);
    rig_refuse(&r, "E047", 4);
    rig_close(&r);
}

static void test_bad_selectors(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, sizes,
             "dynamic { a: i32; b: i32; }\n"
             "persistent { A(i): f32[D] @table; }\n"
             "block entry { assign v: f32[?, D]; assign z: f32[D];\n"
             "  cache.write z >> A[2];\n"
             "  cache.read A[a..b] >> v;\n"
             "  return; }",
             NULL);
    rig_insert(&r, "a", OI_I32, (int32_t[]){-1}, 1);
    rig_refuse(&r, "E042", 5);
    rig_insert(&r, "a", OI_I32, (int32_t[]){2}, 1);
    rig_insert(&r, "b", OI_I32, (int32_t[]){1}, 1);
    rig_refuse(&r, "E046", 5);
    rig_insert(&r, "b", OI_I32, (int32_t[]){-4}, 1);
    rig_refuse(&r, "E046", 5);                /* n - 4 is before the start */
    rig_expect(&r, "A", 2, DIMS(0, 2), NULL); /* three failed steps wrote nothing */
    rig_insert(&r, "b", OI_I32, (int32_t[]){-1}, 1);
    rig_step(&r);
    rig_expect(&r, "v", 2, DIMS(2, 2), VALUES(0, 0, 0, 0));
    rig_close(&r);
}

static void test_slice_writes(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, sizes,
             "dynamic { x: f32[3, D]; s: i32; }\n"
             "persistent { A(i): f32[D] @table; }\n"
             "block entry { cache.write x >> A[s..s+3]; return; }",
             NULL);
    rig_insert(&r, "x", OI_F32, (float[]){1, 2, 3, 4, 5, 6}, 6);
    rig_insert(&r, "s", OI_I32, (int32_t[]){1}, 1);
    rig_step(&r);
    rig_expect(&r, "A", 2, DIMS(4, 2), VALUES(0, 0, 1, 2, 3, 4, 5, 6));
    rig_close(&r);
    assert_int_equal(rig_try(&r, sizes,
                             "dynamic { x: f32[3, D]; }\n"
                             "persistent { A(i): f32[D] @table; }\n"
                             "block entry { cache.write x >> A[0..2]; return; }",
                             NULL),
                     OI_ERR_INPUT);
    assert_true(rig_has_code(&r, "E051"));
    rig_close(&r);
}

/* -- §7 -- */

/* The example of §7: D = 2, H = 3, counters i = 1, j = 2. */
static void auto_read(const char *access, uint32_t rank, const uint64_t *dims, const double *values)
{
    rig r;
    char text[1024];
    const char *shape = rank == 2 ? "[?, ?]" : "[?]";
    snprintf(text, sizeof text,
             "persistent { A(p, q): f32[D, H] @auto_dim(p, q) @init(9); i: i32 @init(1); j: i32 "
             "@init(2); }\n"
             "block entry { assign m: f32[?, ?]; assign v: f32%s;\n"
             "  cache.read A[i, j] >> m; cache.read %s >> v; return v; }",
             shape, access);
    rig_open(&r, sizes, text, NULL);
    rig_step(&r);
    rig_expect(&r, "m", 2, DIMS(3, 5), NULL); /* reads grow too */
    rig_expect(&r, "A", 2, DIMS(3, 5), NULL);
    rig_expect(&r, "v", rank, dims, values);
    rig_close(&r);
}

static void test_auto_dim(void **state)
{
    (void)state;
    const double nines[] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    auto_read("A[]", 2, DIMS(3, 5), nines);
    auto_read("A", 2, DIMS(3, 5), nines);
    auto_read("A[i, j]", 2, DIMS(3, 5), nines);
    auto_read("A[0..D+i, ]", 2, DIMS(3, 5), nines);
    auto_read("A[, 0..H+j]", 2, DIMS(3, 5), nines);
    auto_read("A[1, ]", 1, DIMS(5), nines);
    auto_read("A[, 4]", 1, DIMS(3), nines);
    auto_read("A[0..-1, 0..2]", 2, DIMS(2, 2), nines);
    auto_read("A[0..2, ]", 2, DIMS(2, 5), nines);
    auto_read("A[, 1..3]", 2, DIMS(3, 2), nines);
    auto_read("A[2, 1..4]", 1, DIMS(3), nines);
    auto_read("A[1..2, 1..2]", 2, DIMS(1, 1), nines);
    auto_read("A[0..p, ]", 2, DIMS(1, 5), nines); /* the own index name is the growth */
}

static void test_auto_writes(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, sizes,
             "dynamic { row: f32[H]; x: f32[1, 2]; p: i32; }\n"
             "persistent { A(i, j): f32[D, H] @auto_dim(i, j) @fixed(i=2, j=2); }\n"
             "block entry { cache.write row >> A[p, ]; return; }",
             NULL);
    rig_insert(&r, "row", OI_F32, (float[]){1, 2, 3}, 3);
    rig_insert(&r, "p", OI_I32, (int32_t[]){1}, 1);
    rig_step(&r);
    rig_expect(&r, "A", 2, DIMS(2, 3), VALUES(0, 0, 0, 1, 2, 3));
    rig_insert(&r, "row", OI_F32, (float[]){4, 5, 6}, 3);
    rig_insert(&r, "p", OI_I32, (int32_t[]){3}, 1);
    rig_step(&r); /* a write grows so that row 3 is there */
    rig_expect(&r, "A", 2, DIMS(4, 3), VALUES(0, 0, 0, 1, 2, 3, 0, 0, 0, 4, 5, 6));
    rig_insert(&r, "p", OI_I32, (int32_t[]){4}, 1);
    rig_refuse(&r, "E047", 3); /* growth 3 > 2 */
    rig_expect(&r, "A", 2, DIMS(4, 3), VALUES(0, 0, 0, 1, 2, 3, 0, 0, 0, 4, 5, 6));
    rig_close(&r);
    rig_open(&r, sizes,
             "dynamic { p: i32; q: i32; }\n"
             "persistent { A(i, j): f32[D, H] @auto_dim(i, j) @cap(i=1, j=9); }\n"
             "block entry { assign m: f32[?, ?]; assign v: f32[?];\n"
             "  cache.read A[p, q] >> m;\n"
             "  cache.read A[p, ] >> v; return; }",
             NULL);
    rig_insert(&r, "p", OI_I32, (int32_t[]){2}, 1);
    rig_refuse(&r, "E047", 4);
    rig_insert(&r, "p", OI_I32, (int32_t[]){1}, 1);
    rig_insert(&r, "q", OI_I32, (int32_t[]){2}, 1);
    rig_step(&r);
    rig_expect(&r, "A", 2, DIMS(3, 5), NULL);
    rig_step(&r); /* p = q = 0: nothing shrinks */
    rig_expect(&r, "m", 2, DIMS(3, 5), NULL);
    rig_close(&r);
}

static void test_auto_keeps_coordinates(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, sizes,
             "dynamic { x: f32[D, H]; }\n"
             "persistent { A(i, j): f32[D, H] @auto_dim(i, j) @init(-1); step: i32; }\n"
             "block entry { assign m: f32[?, ?];\n"
             "  branch step later first; cache.increment step; return; }\n"
             "block first { cache.write x >> A[]; return; }\n"
             "block later { cache.read A[step, step] >> m; return; }",
             NULL);
    rig_insert(&r, "x", OI_F32, (float[]){1, 2, 3, 4, 5, 6}, 6);
    rig_step(&r);
    rig_step(&r);
    rig_expect(&r, "m", 2, DIMS(3, 4), VALUES(1, 2, 3, -1, 4, 5, 6, -1, -1, -1, -1, -1));
    rig_step(&r);
    rig_expect(&r, "A", 2, DIMS(4, 5), NULL);
    rig_close(&r);
}

static void test_combined(void **state)
{
    (void)state;
    rig r;
    rig_open(
        &r, sizes,
        "persistent { C(l, i, j): f32[D, H] @table @auto_dim(i, j); i2: i32 @init(1); j2: i32 "
        "@init(2); }\n"
        "block entry { assign one: f32[?, ?]; assign x: f32[?, ?]; assign four: f32[?, ?, ?];\n"
        "  assign all: f32[?, ?, ?]; assign same: f32[?, ?]; assign row: f32[?];\n"
        "  cache.read C[2, i2, j2] >> one;\n"
        "  cache.write one >> C[2];\n"
        "  cache.read C[0..4, i2, j2] >> four;\n"
        "  cache.read C[] >> all; cache.read C[2] >> same; cache.read C[1, 2, ] >> row;\n"
        "  return; }",
        NULL);
    rig_step(&r);
    rig_expect(&r, "one", 2, DIMS(3, 5), NULL);
    rig_expect(&r, "four", 3, DIMS(4, 3, 5), NULL);
    rig_expect(&r, "all", 3, DIMS(3, 3, 5), NULL); /* n_l = 3 */
    rig_expect(&r, "same", 2, DIMS(3, 5), NULL);
    rig_expect(&r, "row", 1, DIMS(5), NULL);
    rig_close(&r);
}

static void test_one_auto_axis(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, sizes,
             "persistent { A(t): f16[D, H] @auto_dim(t); t1: i32; }\n"
             "block entry { assign m: f16[?, H];\n"
             "  cache.increment t1; cache.read A[t1] >> m; return; }",
             NULL);
    for (uint64_t i = 1; i < 6; i++) {
        rig_step(&r);
        rig_expect(&r, "m", 2, DIMS(2 + i, 3), NULL); /* one more each step */
    }
    rig_close(&r);
}

/* -- plain tensors -- */

static void plain_model(oi_writer *w)
{
    static const float data[] = {1, 2, 3, 4, 5, 6};
    oi_writer_add_tensor(
        w,
        &(oi_writer_tensor){
            .name = "P", .dtype = OI_F32, .rank = 2, .dims = DIMS(2, 3), .data = data},
        NULL);
}

static void test_plain(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, plain_model,
             "dynamic { x: f32[3]; at: i32; what: i32; }\n"
             "persistent { P: f32[2, 3]; Z: i4[5] @init(-3); }\n"
             "block entry { assign col: f32[2]; assign z: i4[3];\n"
             "  cache.read P[, 1] >> col; cache.read Z[1..4] >> z;\n"
             "  cache.write x >> P[at, ];\n"
             "  branch what again done; return; }\n"
             "block done { return; }\n"
             "block again { cache.reset P[0]; return; }",
             NULL);
    rig_insert(&r, "x", OI_F32, (float[]){7, 8, 9}, 3);
    rig_step(&r);
    rig_expect(&r, "col", 1, DIMS(2), VALUES(2, 5)); /* as it was in the model */
    rig_expect(&r, "z", 1, DIMS(3), VALUES(-3, -3, -3));
    rig_expect(&r, "P", 2, DIMS(2, 3), VALUES(7, 8, 9, 4, 5, 6));
    rig_insert(&r, "at", OI_I32, (int32_t[]){1}, 1);
    rig_insert(&r, "what", OI_I32, (int32_t[]){1}, 1);
    rig_step(&r);
    rig_expect(&r, "P", 2, DIMS(2, 3), VALUES(1, 2, 3, 0, 0, 0)); /* row 0 from the model again */
    rig_insert(&r, "at", OI_I32, (int32_t[]){2}, 1);
    rig_refuse(&r, "E047", 5);
    rig_close(&r);
}

/* -- reset -- */

static void test_reset(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, sizes,
             "dynamic { x: f32[D]; l: i32; t: i32; what: i32; }\n"
             "persistent { K(a, b): f32[D] @table @init(5); step: i32 @init(3); }\n"
             "block entry { cache.write x >> K[l, t]; cache.increment 2 step;\n"
             "  loop w (i in 0..what) { branch one; } return; }\n"
             "block one { cache.reset K[l, t]; cache.reset step; return; }",
             NULL);
    for (int32_t i = 0; i < 4; i++) {
        rig_insert(&r, "x", OI_F32, (float[]){(float)i, 1}, 2);
        rig_insert(&r, "l", OI_I32, (int32_t[]){i % 2}, 1);
        rig_insert(&r, "t", OI_I32, (int32_t[]){i}, 1);
        rig_step(&r);
    }
    EXPECT_NUMBER(&r, "step", 11);
    rig_expect(&r, "K", 3, DIMS(2, 4, 2), VALUES(0, 1, 5, 5, 2, 1, 5, 5, 5, 5, 1, 1, 5, 5, 3, 1));
    rig_insert(&r, "l", OI_I32, (int32_t[]){1}, 1);
    rig_insert(&r, "t", OI_I32, (int32_t[]){3}, 1);
    rig_insert(&r, "what", OI_I32, (int32_t[]){1}, 1);
    rig_step(&r); /* the entry leaves, and the size with it */
    EXPECT_NUMBER(&r, "step", 3);
    rig_expect(&r, "K", 3, DIMS(2, 3, 2), VALUES(0, 1, 5, 5, 2, 1, 5, 5, 1, 1, 5, 5));
    rig_close(&r);
}

static void test_reset_prefix_and_whole(void **state)
{
    (void)state;
    rig r;
    rig_open(
        &r, sizes,
        "dynamic { what: i32; }\n"
        "persistent { K(a, b): i8[] @table; C(l, i): f32[D] @table @auto_dim(i); n: f32; }\n"
        "block entry { assign one: i8; assign m: f32[?]; assign zero: bool;\n"
        "  branch what parts fill; cache.decrement n; return; }\n"
        "block fill { loop a (i in 0..3) { loop b (j in 0..2) { cache.write one >> K[i, j]; }\n"
        "    cache.read C[i, 2] >> m; cache.write m >> C[i, 2]; } return; }\n"
        "block parts { cache.reset K[2]; cache.reset C[0..2]; branch what2 all done; return; }\n"
        "block all { cache.reset K; cache.reset C[]; return; }\n"
        "block done { return; }\n"
        "persistent { what2: i32; }",
        NULL);
    rig_step(&r);
    rig_expect(&r, "K", 2, DIMS(3, 2), NULL);
    rig_expect(&r, "C", 2, DIMS(3, 4), NULL);
    EXPECT_NUMBER(&r, "n", -1);
    rig_insert(&r, "what", OI_I32, (int32_t[]){1}, 1);
    rig_step(&r);
    rig_expect(&r, "K", 2, DIMS(2, 2), NULL);
    rig_expect(&r, "C", 2, DIMS(3, 4), NULL); /* entry 2 is still there; growth is the whole's */
    rig_close(&r);
    rig_open(&r, sizes,
             "persistent { C(l, i): f32[D] @table @auto_dim(i) @init(1); }\n"
             "block entry { assign m: f32[?]; cache.read C[1, 2] >> m; cache.write m >> C[1];\n"
             "  cache.reset C; return; }",
             NULL);
    rig_step(&r);
    rig_expect(&r, "C", 2, DIMS(0, 2), NULL); /* no entries, no growth */
    rig_close(&r);
}

/* -- failing steps -- */

static void test_rollback(void **state)
{
    (void)state;
    rig r;
    rig_open(
        &r, sizes,
        "dynamic { x: f32[D]; bad: i32; }\n"
        "persistent { A(i): f32[D] @table; F(i): f32[D] @table @fixed(i=4) @init(2);\n"
        "  G(t): f32[D] @auto_dim(t); n: i64 @init(40); P: u4[7] @init(9); }\n"
        "block entry { assign e: f32[D]; assign m: f32[?]; assign p: u4[2];\n"
        "  cache.write x >> A[0]; cache.write x >> A[n - 40]; cache.write x >> F[1];\n"
        "  cache.read G[2] >> m; cache.increment n; cache.write p >> P[2..4];\n"
        "  branch bad spoil done; return; }\n"
        "block spoil { cache.reset A; cache.write x >> A[5]; cache.reset F[1]; cache.reset n;\n"
        "  cache.reset G; cache.reset P[0..3];\n"
        "  cache.read F[bad] >> e; return; }\n"
        "block done { return; }",
        NULL);
    rig_insert(&r, "x", OI_F32, (float[]){1, 2}, 2);
    rig_step(&r);
    rig_insert(&r, "x", OI_F32, (float[]){3, 4}, 2);
    rig_step(&r);
    for (int again = 0; again < 3; again++) {
        rig_expect(&r, "A", 2, DIMS(2, 2), VALUES(3, 4, 3, 4));
        rig_expect(&r, "F", 2, DIMS(4, 2), VALUES(2, 2, 3, 4, 2, 2, 2, 2));
        rig_expect(&r, "G", 1, DIMS(4), VALUES(0, 0, 0, 0));
        rig_expect(&r, "P", 1, DIMS(7), VALUES(9, 9, 0, 0, 9, 9, 9));
        EXPECT_NUMBER(&r, "n", 42);
        rig_insert(&r, "bad", OI_I32, (int32_t[]){9}, 1);
        rig_refuse(&r, "E047", 10);
    }
    rig_insert(&r, "x", OI_F32, (float[]){5, 6}, 2);
    rig_step(&r); /* still usable */
    rig_expect(&r, "A", 2, DIMS(3, 2), VALUES(5, 6, 3, 4, 5, 6));
    rig_close(&r);
}

/* A step that overwrites more than the variable holds keeps one copy of it, not a long log. */
static void test_rollback_of_many_writes(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL,
             "dynamic { x: f32[4096]; n: i32; bad: i32; }\n"
             "persistent { A(i): f32[4096] @table; F: i32[2]; }\n"
             "block entry { assign e: i32;\n"
             "  loop a (i in 0..n) { cache.write x >> A[i % 3]; }\n"
             "  cache.read F[bad] >> e; return; }",
             NULL);
    float *x = calloc(4096, sizeof *x);
    x[0] = 1;
    rig_insert(&r, "x", OI_F32, x, 4096);
    rig_insert(&r, "n", OI_I32, (int32_t[]){2}, 1);
    rig_step(&r);
    x[0] = 2;
    rig_insert(&r, "x", OI_F32, x, 4096);
    rig_insert(&r, "n", OI_I32, (int32_t[]){200}, 1);
    rig_insert(&r, "bad", OI_I32, (int32_t[]){2}, 1);
    rig_refuse(&r, "E047", 5);
    oi_view v;
    rig_must(&r, oi_fetch(r.exec, "A", &v, r.diag));
    assert_int_equal(v.dims[0], 2);
    assert_true(((const float *)v.data)[0] == 1 && ((const float *)v.data)[4096] == 1);
    rig_insert(&r, "x", OI_F32, x, 4096);
    rig_insert(&r, "n", OI_I32, (int32_t[]){200}, 1);
    rig_step(&r);
    rig_must(&r, oi_fetch(r.exec, "A", &v, r.diag));
    assert_int_equal(v.dims[0], 3);
    assert_true(((const float *)v.data)[0] == 2 && ((const float *)v.data)[8192] == 2);
    free(x);
    rig_close(&r);
}

/* -- counters -- */

static void test_counters(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL,
             "dynamic { by: i32; }\n"
             "persistent { a: i8 @init(126); b: u16; c: f32 @init(0.5); d: f16; e: i64; f: u64; }\n"
             "block entry { cache.increment a; cache.decrement 2 b; cache.increment 3 c;\n"
             "  cache.decrement by d; cache.increment by e; cache.decrement f;\n"
             "  loop l (i in 0..4) { cache.increment i e; } return; }",
             NULL);
    rig_insert(&r, "by", OI_I32, (int32_t[]){-7}, 1);
    rig_step(&r);
    rig_insert(&r, "by", OI_I32, (int32_t[]){1}, 1);
    rig_step(&r);
    EXPECT_NUMBER(&r, "a", -128); /* wraps at its width */
    EXPECT_NUMBER(&r, "b", 65532);
    EXPECT_NUMBER(&r, "c", 6.5);
    EXPECT_NUMBER(&r, "d", 6);
    EXPECT_NUMBER(&r, "e", 6);
    EXPECT_NUMBER(&r, "f", 18446744073709551614.0);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_scalar_and_growth),
        cmocka_unit_test(test_two_axes),
        cmocka_unit_test(test_fixed_and_cap),
        cmocka_unit_test(test_bad_selectors),
        cmocka_unit_test(test_slice_writes),
        cmocka_unit_test(test_auto_dim),
        cmocka_unit_test(test_auto_writes),
        cmocka_unit_test(test_auto_keeps_coordinates),
        cmocka_unit_test(test_combined),
        cmocka_unit_test(test_one_auto_axis),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_reset_prefix_and_whole),
        cmocka_unit_test(test_rollback),
        cmocka_unit_test(test_rollback_of_many_writes),
        cmocka_unit_test(test_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
