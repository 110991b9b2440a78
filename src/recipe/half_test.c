#include "trial.h"

#include "body/half.h"

static void body(const char *function, const trial_arg *a)
{
    assert_string_equal(function, "oi_half_gemm");
    oi_half_gemm(a[0].in, a[1].in, a[2].out, a[3].out, a[4].n, a[5].n, a[6].n, a[7].n, a[8].n,
                 a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, TRIAL_FINISH(16));
}

typedef struct setting {
    int64_t m, n, k;
    bool of_a, of_b; /* what is transposed */
} setting;

static const setting settings[] = {
    {1, 16, 64, false, true},   {1, 35, 7, false, false},  {5, 40, 300, false, true},
    {6, 16, 256, false, false}, {7, 17, 257, false, true}, {100, 150, 65, false, true},
    {300, 33, 20, true, false}, {3, 100, 33, true, false}, {64, 131, 515, false, true},
};

static void run(const setting *s, oi_dtype type, bool to_float, uint64_t seed)
{
    trial t;
    trial_begin(&t, "matmul", seed);
    *trial_attr(&t, "transpose_a") = (oi_op_value){.tag = OI_VALUE_BOOL, .b = s->of_a};
    *trial_attr(&t, "transpose_b") = (oi_op_value){.tag = OI_VALUE_BOOL, .b = s->of_b};
    if (to_float)
        *trial_attr(&t, "acc") = (oi_op_value){.tag = OI_VALUE_DTYPE, .dtype = OI_F32};
    trial_input(&t, false, type, 1, 2, s->of_a ? (int64_t[]){s->k, s->m} : (int64_t[]){s->m, s->k});
    trial_input(&t, true, type, 1, 2, s->of_b ? (int64_t[]){s->n, s->k} : (int64_t[]){s->k, s->n});
    t.reduced = s->k;
    t.atol = 2e-6 * sqrt((double)s->k);
    assert_true(trial_end(&t, to_float ? OI_F32 : type, 2, (int64_t[]){s->m, s->n}, body));
}

static void test_matmul(void **state)
{
    (void)state;
    for (size_t i = 0; i < OI_COUNT(settings); i++)
        for (int to_float = 0; to_float < 2; to_float++) {
            run(&settings[i], OI_F16, to_float, i);
            run(&settings[i], OI_BF16, to_float, i + 100);
        }
}

/* Every f16 and bf16, the small and the special ones too, is the float that it is. */
static void test_every_half(void **state)
{
    (void)state;
    static uint16_t all[65536];
    static float wide[65536];
    for (uint32_t i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    for (int64_t form = OI_HALF_F16; form <= OI_HALF_F16 + 1; form++) {
        oi_half_widen(all, 65535, form, wide);
        for (uint32_t i = 0; i < 65535; i++) {
            const float want = form == OI_HALF_F16 ? oi_f32_of_f16(all[i]) : oi_f32_of_bf16(all[i]);
            assert_true(want != want ? wide[i] != wide[i]
                                     : oi_bits_f32(wide[i]) == oi_bits_f32(want));
        }
    }
}

static void test_others(void **state)
{
    (void)state;
    trial t; /* nothing is packed at run time */
    trial_begin(&t, "matmul", 1);
    trial_input(&t, false, OI_F16, 1, 2, (int64_t[]){8, 16});
    trial_input(&t, false, OI_F16, 1, 2, (int64_t[]){16, 32});
    assert_false(trial_end(&t, OI_F16, 2, (int64_t[]){8, 32}, body));
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_every_half),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
