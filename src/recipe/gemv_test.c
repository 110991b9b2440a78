#include "trial.h"

#include "body/gemv.h"

static void body(const char *function, const trial_arg *a)
{
    if (strcmp(function, "oi_gemv") == 0)
        oi_gemv(a[0].in, a[1].in, a[2].out, a[3].n, a[4].n, a[5].n, a[6].n, a[7].n, a[8].n, a[9].n,
                a[10].n, a[11].n, TRIAL_FINISH(12));
    else if (strcmp(function, "oi_gemv_stack") == 0)
        oi_gemv_stack(a[0].in, a[1].in, a[2].out, a[3].n, a[4].n, a[5].n, a[6].n, a[7].n, a[8].n,
                      a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, a[16].n,
                      TRIAL_FINISH(17));
    else
        fail_msg("%s is not tested", function);
}

/* A product of `stack` pairs of matrices, of_a and of_b: what is transposed. */
static bool product(int64_t stack, int64_t m, int64_t n, int64_t k, bool of_a, bool of_b,
                    bool is_special)
{
    const int64_t a[] = {stack, of_a ? k : m, of_a ? m : k};
    const int64_t b[] = {stack, of_b ? n : k, of_b ? k : n};
    const uint32_t rank = stack ? 3 : 2, from = stack ? 0 : 1;
    trial t;
    trial_begin(&t, "matmul", (uint64_t)(m + n + k));
    *trial_attr(&t, "transpose_a") = (oi_op_value){.tag = OI_VALUE_BOOL, .b = of_a};
    *trial_attr(&t, "transpose_b") = (oi_op_value){.tag = OI_VALUE_BOOL, .b = of_b};
    trial_input(&t, false, OI_F32, 1, rank, a + from);
    trial_input(&t, false, OI_F32, 1, rank, b + from);
    if (is_special) {
        ((float *)t.data[0])[k / 2] = INFINITY;
        ((float *)t.data[1])[n * k - 1] = NAN;
    }
    t.reduced = k;
    t.atol = 2e-6 * sqrt((double)k); /* sums that cancel are as near as their terms are large */
    return trial_end(&t, OI_F32, rank, (int64_t[]){stack, m, n} + from, body);
}

static void test_rows(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{64, 64},  {35, 9},  {40, 131}, {257, 66},
                                       {2100, 5}, {7, 300}, {5, 70},   {16, 16}};
    for (size_t i = 0; i < OI_COUNT(sizes); i++)
        for (int64_t m = 1; m < 6; m++)
            for (int way = 0; way < 4; way++) {
                const bool of_a = way & 1, of_b = way & 2;
                assert_int_equal(product(0, m, sizes[i][0], sizes[i][1], of_a, of_b, false),
                                 !of_a || !of_b || m == 1);
            }
}

static void test_stacks(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        assert_true(product(6, 1, 40, 32, false, way, false));
        assert_true(product(3, 4, 19, 33, false, way, false));
    }
}

/* What is not finite stays where it is. */
static void test_specials(void **state)
{
    (void)state;
    assert_true(product(0, 3, 33, 30, false, false, true));
    assert_true(product(0, 3, 33, 30, false, true, true));
}

static void test_others(void **state)
{
    (void)state;
    assert_false(product(0, 2, 15, 17, false, false, false)); /* too little to be worth it */
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_specials),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
