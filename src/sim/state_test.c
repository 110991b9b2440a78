/* state_test.c: thousands of random writes, resets and failing steps on tables, against a naive
 * table that stores every entry by itself and copies everything before each step. */
#include "sim/sim_testing.h"

#define SIDE  9 /* indices go up to 8 */
#define STEPS 6000

/* -- the naive table -- */

typedef struct naive {
    float cell[SIDE][SIDE][2];
    bool written[SIDE][SIDE];
    int32_t count;
} naive;

static const float initial = 0.5f;

static void clear_entry(naive *t, int a, int b)
{
    t->written[a][b] = false;
    t->cell[a][b][0] = t->cell[a][b][1] = initial;
}

static void write_entry(naive *t, int a, int b, const float *x)
{
    t->written[a][b] = true;
    memcpy(t->cell[a][b], x, sizeof t->cell[a][b]);
}

static void size_of(const naive *t, uint64_t n[2])
{
    n[0] = n[1] = 0;
    for (int a = 0; a < SIDE; a++)
        for (int b = 0; b < SIDE; b++) {
            if (!t->written[a][b])
                continue;
            n[0] = (uint64_t)a + 1 > n[0] ? (uint64_t)a + 1 : n[0];
            n[1] = (uint64_t)b + 1 > n[1] ? (uint64_t)b + 1 : n[1];
        }
}

/* -- the same through the graph -- */

static const char text[] =
    "dynamic { what: i32; a: i32; b: i32; x: f32[2]; rows: f32[3, 2]; fail: i32; }\n"
    "persistent { K(i, j): f32[2] @table @init(0.5); F(i, j): f32[2] @table @fixed(i=9, j=9)\n"
    "  @init(0.5); n: i32; last: f32[1]; }\n"
    "volatile { all: f32[?, ?, 2]; }\n"
    "constant { c0: i32 @init(0); c1: i32 @init(1); c2: i32 @init(2); c3: i32 @init(3); }\n"
    "block entry { assign is: bool; assign one: f32[1];\n"
    "  op eq(what, c0) >> is; branch is put skip; op eq(what, c1) >> is; branch is put_rows skip;\n"
    "  op eq(what, c2) >> is; branch is drop skip; op eq(what, c3) >> is; branch is drop_row "
    "skip;\n"
    "  op gt(what, c3) >> is; branch is drop_all skip;\n"
    "  cache.increment a n; cache.read K >> all; cache.read last[fail..fail+1] >> one; return; }\n"
    "block skip { return; }\n"
    "block put { cache.write x >> K[a, b]; cache.write x >> F[a, b]; return; }\n"
    "block put_rows { cache.write rows >> K[a, b..b+3]; cache.write rows >> F[a, b..b+3];\n"
    "  branch put; return; }\n"
    "block drop { cache.reset K[a, b]; cache.reset F[a, b]; return; }\n"
    "block drop_row { cache.reset K[a]; cache.reset F[a..a+1]; return; }\n"
    "block drop_all { cache.reset K; cache.reset F[]; branch put; return; }\n";

static void apply(naive *t, int what, int a, int b, const float *x, const float *rows)
{
    for (int k = 0; what == 1 && k < 3; k++)
        write_entry(t, a, b + k, rows + 2 * k);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            if ((what == 2 && i == a && j == b) || (what == 3 && i == a) || what > 3)
                clear_entry(t, i, j);
    if (what == 0 || what == 1 || what > 3)
        write_entry(t, a, b, x);
    t->count += a;
}

static void compare(rig *r, const naive *t)
{
    oi_view v;
    uint64_t n[2];
    size_of(t, n);
    rig_must(r, oi_fetch(r->exec, "K", &v, r->diag));
    assert_int_equal(v.dims[0], n[0]);
    assert_int_equal(v.dims[1], n[1]);
    for (uint64_t i = 0; i < n[0]; i++)
        for (uint64_t j = 0; j < n[1]; j++)
            assert_memory_equal((const float *)v.data + 2 * (i * n[1] + j), t->cell[i][j],
                                sizeof t->cell[i][j]);
    rig_must(r, oi_fetch(r->exec, "F", &v, r->diag));
    assert_int_equal(v.n_elements, SIDE * SIDE * 2);
    assert_memory_equal(v.data, t->cell, sizeof t->cell);
    EXPECT_NUMBER(r, "n", t->count);
}

static void test_random_steps(void **state)
{
    (void)state;
    rig r;
    naive t = {0};
    uint64_t seed = 42;
    for (int i = 0; i < SIDE * SIDE; i++)
        clear_entry(&t, i / SIDE, i % SIDE);
    rig_open(&r, NULL, text, NULL);
    for (int step = 0; step < STEPS; step++) {
        int32_t d[5];
        float x[2], rows[6];
        uint64_t draw = oi_splitmix64(&seed);
        d[0] = (int32_t)(draw % 40); /* mostly writes; a whole reset now and then */
        d[0] = d[0] < 20 ? 0 : d[0] < 30 ? 1 : d[0] < 35 ? 2 : d[0] < 39 ? 3 : 4;
        d[1] = (int32_t)(draw >> 8) & 7;
        d[2] = (int32_t)((draw >> 16) % 6);
        d[3] = (draw >> 24) % 3 == 0; /* every third step fails at its end */
        oi_random_f32(draw, -1, 1, x, 2);
        oi_random_f32(draw + 1, -1, 1, rows, 6);
        rig_insert(&r, "what", OI_I32, &d[0], 1);
        rig_insert(&r, "a", OI_I32, &d[1], 1);
        rig_insert(&r, "b", OI_I32, &d[2], 1);
        rig_insert(&r, "fail", OI_I32, &d[3], 1);
        rig_insert(&r, "x", OI_F32, x, 2);
        rig_insert(&r, "rows", OI_F32, rows, 6);
        oi_status status = oi_step(r.exec, r.diag);
        assert_int_equal(status, d[3] ? OI_ERR_INPUT : OI_OK);
        oi_diag_clear(r.diag);
        if (status == OI_OK)
            apply(&t, d[0], d[1], d[2], x, rows);
        compare(&r, &t);
    }
    rig_close(&r);
}

/* -- boxes of packed elements -- */

static uint64_t element(const oi_grid *g, uint64_t i, uint64_t j)
{
    return oi_element_bits(g->dtype, g->data, i * g->cap[1] + j);
}

static void test_packed_boxes(void **state)
{
    (void)state;
    static const oi_dtype types[] = {OI_U1, OI_U2, OI_I4, OI_U8, OI_F16, OI_F64};
    const uint64_t most[2] = {UINT64_MAX, UINT64_MAX};
    for (size_t k = 0; k < OI_COUNT(types); k++) {
        oi_grid g = {.dtype = types[k], .rank = 2, .init = 1};
        uint64_t seed = k, mask = oi_dtype_bits(types[k]) == 1 ? 1 : 3;
        uint64_t naive_[24][24];
        for (int i = 0; i < 24 * 24; i++)
            naive_[i / 24][i % 24] = 1;
        for (int round = 0; round < 300; round++) {
            uint64_t draw = oi_splitmix64(&seed);
            oi_box box = {{draw % 12, draw / 12 % 12}, {draw / 144 % 12, draw / 1728 % 12}};
            uint64_t n = box.count[0] * box.count[1];
            uint8_t data[144 * 8] = {0}, back[144 * 8] = {0};
            for (uint64_t e = 0; e < n; e++) {
                uint64_t v = oi_splitmix64(&seed) & mask;
                oi_elements_fill(g.dtype, data, e, 1, v);
                naive_[box.start[0] + e / box.count[1]][box.start[1] + e % box.count[1]] = v;
            }
            assert_true(oi_grid_reserve(&g, &box, most));
            oi_grid_write(&g, &box, data);
            oi_grid_read(&g, &box, back);
            assert_memory_equal(data, back, sizeof data);
            for (uint64_t i = 0; i < g.cap[0] && i < 24; i++)
                for (uint64_t j = 0; j < g.cap[1] && j < 24; j++)
                    assert_true(element(&g, i, j) == naive_[i][j]);
        }
        oi_grid_free(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_steps),
        cmocka_unit_test(test_packed_boxes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
