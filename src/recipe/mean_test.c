#include "trial.h"

#include "body/mean.h"

static void body(const char *function, const trial_arg *a)
{
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
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_global_avg_pool),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
