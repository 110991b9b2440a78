#include "trial.h"

#include "recipe/mean.h"

static void body(const char *function, const trial_arg *a)
{
    if (strcmp(function, "oi_rmsnorm_rows") == 0) {
        oi_rmsnorm_rows(a[0].in, a[1].in, a[2].out, a[3].n, a[4].real, a[5].n, a[6].n);
        return;
    }
    assert_string_equal(function, "oi_mean_rows");
    oi_mean_rows(a[0].in, a[1].out, a[2].n, a[3].n, a[4].n, a[5].n, a[6].n);
}

/* To the bit: the order of the sums is that of the definition. */
static void test_global_avg_pool(void **state)
{
    (void)state;
    static const int64_t dims[][4] = {{1, 8, 2, 4},   {2, 16, 3, 96}, {1, 22, 1, 9}, {3, 1, 5, 7},
                                      {1, 104, 2, 5}, {1, 7, 11, 13}, {2, 9, 1, 8}};
    for (size_t i = 0; i < OI_COUNT(dims); i++) {
        trial t;
        trial_begin(&t, "global_avg_pool", i);
        trial_input(&t, false, OI_F32, 1, 4, dims[i]);
        t.is_exact = true;
        assert_true(trial_end(&t, OI_F32, 4, (int64_t[]){dims[i][0], dims[i][1], 1, 1}, body));
    }
}

/* Likewise, however many rows are left for the last vector. */
static void test_rmsnorm(void **state)
{
    (void)state;
    static const int64_t dims[][3] = {{1, 32, 576}, {1, 5, 40}, {19, 1, 33}, {1, 16, 8}, {1, 4, 9}};
    for (size_t i = 0; i < OI_COUNT(dims); i++) {
        trial t;
        trial_begin(&t, "rmsnorm", i);
        trial_input(&t, false, OI_F32, 3, 3, dims[i]);
        trial_input(&t, true, OI_F32, 2, 1, &dims[i][2]);
        if (i == 1)
            *trial_attr(&t, "eps") = (oi_op_value){.tag = OI_VALUE_INT, .i = 1};
        if (i == 2)
            *trial_attr(&t, "axis") = (oi_op_value){.tag = OI_VALUE_INT, .i = 2};
        t.is_exact = true;
        assert_true(trial_end(&t, OI_F32, 3, dims[i], body));
    }
}

static void test_others(void **state)
{
    (void)state;
    trial t; /* too short to be worth it */
    trial_begin(&t, "global_avg_pool", 1);
    trial_input(&t, false, OI_F32, 1, 3, (int64_t[]){1, 8, 7});
    assert_false(trial_end(&t, OI_F32, 3, (int64_t[]){1, 8, 1}, body));
    trial_begin(&t, "global_avg_pool", 2);
    trial_input(&t, false, OI_F16, 1, 3, (int64_t[]){1, 8, 70});
    assert_false(trial_end(&t, OI_F16, 3, (int64_t[]){1, 8, 1}, body));
    trial_begin(&t, "rmsnorm", 3); /* a single row is as quick in order; rows along two dims */
    trial_input(&t, false, OI_F32, 1, 3, (int64_t[]){1, 1, 576});
    trial_input(&t, true, OI_F32, 1, 1, (int64_t[]){576});
    assert_false(trial_end(&t, OI_F32, 3, (int64_t[]){1, 1, 576}, body));
    trial_begin(&t, "rmsnorm", 4);
    trial_input(&t, false, OI_F32, 1, 3, (int64_t[]){4, 8, 64});
    trial_input(&t, true, OI_F32, 1, 1, (int64_t[]){64});
    assert_false(trial_end(&t, OI_F32, 3, (int64_t[]){4, 8, 64}, body));
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_global_avg_pool),
        cmocka_unit_test(test_rmsnorm),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
