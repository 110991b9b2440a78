#include "trial.h"

#include "body/gemm.h"

static void body(const char *function, const trial_arg *a)
{
    if (strcmp(function, "oi_gemm_weights") == 0)
        oi_gemm_weights(a[0].in, a[1].in, a[2].out, a[3].n, a[4].n, a[5].n, a[6].n, a[7].n, a[8].n,
                        a[9].n, a[10].n, a[11].n, TRIAL_FINISH(12));
    else if (strcmp(function, "oi_gemm_two") == 0)
        oi_gemm_two(a[0].in, a[1].in, a[2].out, a[3].out, a[4].n, a[5].n, a[6].n, a[7].n, a[8].n,
                    a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, TRIAL_FINISH(16));
    else if (strcmp(function, "oi_gemm_stack") == 0)
        oi_gemm_stack(a[0].in, a[1].in, a[2].out, a[3].out, a[4].n, a[5].n, a[6].n, a[7].n, a[8].n,
                      a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, a[16].n,
                      a[17].n, a[18].n, a[19].n, a[20].n, TRIAL_FINISH(21));
    else
        fail_msg("%s is not tested", function);
}

typedef struct setting {
    int64_t m, n, k;
    bool is_weight, of_a, of_b; /* what is transposed */
} setting;

static void add(trial *t, bool is_weight, bool is_transposed, int64_t stack, int64_t rows,
                int64_t columns)
{
    const int64_t dims[] = {stack, 1, is_transposed ? columns : rows,
                            is_transposed ? rows : columns};
    trial_input(t, is_weight, OI_F32, 1, stack ? 4 : 2, stack ? dims : dims + 2);
}

static void flag(trial *t, const char *name, bool is_set)
{
    *trial_attr(t, name) = (oi_op_value){.tag = OI_VALUE_BOOL, .b = is_set};
}

/* Sums that cancel are as near as their terms are large. */
static double near(int64_t k)
{
    return 1e-6 * sqrt((double)k) * 2;
}

static const setting settings[] = {
    {1, 16, 64, true, false, true},       {1, 35, 7, true, false, false},
    {2, 35, 70, true, false, false},      {3, 40, 130, true, true, true},
    {4, 40, 300, true, false, true},      {5, 40, 300, true, false, true},
    {6, 16, 256, true, false, false},     {7, 17, 257, true, false, true},
    {100, 150, 65, true, false, true},    {300, 33, 20, true, true, false},
    {6, 16, 8, false, false, false},      {13, 140, 300, false, false, true},
    {98, 4, 5, false, true, true},        {245, 131, 270, false, false, false},
    {10, 530, 1030, false, false, false}, {250, 17, 961, false, true, false},
    {151, 37, 515, false, true, true},    {31, 60, 1030, false, false, false},
};

static void test_matmul(void **state)
{
    (void)state;
    for (size_t i = 0; i < OI_COUNT(settings); i++) {
        const setting *s = &settings[i];
        trial t;
        trial_begin(&t, "matmul", i);
        flag(&t, "transpose_a", s->of_a);
        flag(&t, "transpose_b", s->of_b);
        add(&t, false, s->of_a, 0, s->m, s->k);
        add(&t, s->is_weight, s->of_b, 0, s->k, s->n);
        t.reduced = s->k;
        t.atol = near(s->k);
        assert_true(trial_end(&t, OI_F32, 2, (int64_t[]){s->m, s->n}, body));
    }
}

static void test_stacks(void **state)
{
    (void)state;
    for (int64_t of_a = 0; of_a < 2; of_a++)
        for (int64_t of_b = 0; of_b < 2; of_b++) {
            trial t;
            trial_begin(&t, "matmul", 7);
            flag(&t, "transpose_a", of_a);
            flag(&t, "transpose_b", of_b);
            add(&t, false, of_a, 5, 9, 33);
            add(&t, false, of_b, 5, 33, 20);
            t.atol = near(33);
            assert_true(trial_end(&t, OI_F32, 4, (int64_t[]){5, 1, 9, 20}, body));
        }
    for (int of_a = 0; of_a < 2; of_a++) { /* one b for all: rows of one tall matrix */
        trial t;
        trial_begin(&t, "matmul", 8);
        flag(&t, "transpose_a", of_a);
        add(&t, false, of_a, 5, 9, 33);
        add(&t, true, false, 0, 33, 20);
        t.atol = near(33);
        assert_true(trial_end(&t, OI_F32, 4, (int64_t[]){5, 1, 9, 20}, body));
    }
    for (int turn = 0; turn < 2; turn++) { /* one a for all; a stack for each of two */
        trial t;
        trial_begin(&t, "matmul", 9);
        trial_input(&t, false, OI_F32, 1, turn ? 4 : 2, (int64_t[]){2, 3, 9, 33} + (turn ? 0 : 2));
        trial_input(&t, false, OI_F32, 1, turn ? 3 : 4, (int64_t[]){2, 3, 33, 20} + turn);
        t.atol = near(33);
        assert_true(trial_end(&t, OI_F32, 4, (int64_t[]){2, 3, 9, 20}, body));
    }
}

/* What is not finite stays where it is. */
static void test_specials(void **state)
{
    (void)state;
    trial t;
    trial_begin(&t, "matmul", 9);
    add(&t, false, false, 0, 8, 20);
    add(&t, true, false, 0, 20, 18);
    ((float *)t.data[0])[3 * 20 + 4] = INFINITY;
    ((float *)t.data[1])[2 * 18 + 17] = NAN;
    t.atol = near(20);
    assert_true(trial_end(&t, OI_F32, 2, (int64_t[]){8, 18}, body));
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_specials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
