#include "trial.h"

#include "body/qlinear.h"

static void body(const char *function, const trial_arg *a)
{
    if (strcmp(function, "oi_qlinear_float") == 0) {
        oi_qlinear_float(a[0].in, a[1].in, a[2].out, a[3].n, a[4].n, a[5].n, a[6].n, a[7].n, a[8].n,
                         a[9].n, a[10].n, a[11].n, a[12].n, a[13].n);
        return;
    }
    if (strcmp(function, "oi_qlinear_bf16") == 0) {
        oi_qlinear_bf16(a[0].in, a[1].in, a[2].out, a[3].n, a[4].n, a[5].n, a[6].n, a[7].n, a[8].n,
                        a[9].n, a[10].n, a[11].n, a[12].n, a[13].n);
        return;
    }
    if (strcmp(function, "oi_qh_rows") == 0) {
        oi_qh_rows(a[0].in, a[1].out, a[2].n, a[3].n, a[4].n);
        return;
    }
    if (strcmp(function, "oi_q8_rows") == 0) {
        oi_q8_rows(a[0].in, a[1].out, a[2].out, a[3].out, a[4].n, a[5].n, a[6].n, a[7].n);
        return;
    }
#if defined(__AMX_INT8__)
    if (strcmp(function, "oi_qlinear_bf16_tiles") == 0) {
        oi_qlinear_bf16_tiles(a[0].in, a[1].in, a[2].out, a[3].n, a[4].n, a[5].n, a[6].n, a[7].n,
                              a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n);
        return;
    }
    if (strcmp(function, "oi_qt_rows") == 0) {
        oi_qt_rows(a[0].in, a[1].out, a[2].n, a[3].n, a[4].n);
        return;
    }
    if (strcmp(function, "oi_qlinear_tiles") == 0) {
        oi_qlinear_tiles(a[0].in, a[1].in, a[2].in, a[3].in, a[4].out, a[5].n, a[6].n, a[7].n,
                         a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n);
        return;
    }
#endif
    assert_string_equal(function, "oi_qlinear");
    oi_qlinear(a[0].in, a[1].in, a[2].in, a[3].in, a[4].out, a[5].n, a[6].n, a[7].n, a[8].n, a[9].n,
               a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, a[16].in, a[17].n, a[18].n);
}

typedef struct setting {
    oi_dtype w, scale;
    bool has_offset, has_bias;
    int64_t m, n, k, group;
} setting;

static void begin(trial *t, const setting *s, uint64_t seed)
{
    const int64_t blocks = s->k / s->group;
    trial_begin(t, "qlinear", seed);
    *trial_attr(t, "act") = (oi_op_value){.tag = OI_VALUE_STRING, .s = "q8"};
    t->reduced = s->k;
    trial_input(t, false, OI_F32, 2, 3, (int64_t[]){1, s->m, s->k});
    trial_input(t, true, s->w, 1, 2, (int64_t[]){s->n, s->k});
    trial_input(t, true, s->scale, 0.02, 2, (int64_t[]){s->n, blocks});
    if (s->has_offset)
        trial_input(t, true, s->scale, 0.1, 2, (int64_t[]){s->n, blocks});
    if (s->has_bias)
        trial_input(t, true, OI_F16, 1, 1, &s->n);
}

static bool end(trial *t, const setting *s)
{
    t->is_exact = true;
    return trial_end(t, OI_F32, 3, (int64_t[]){1, s->m, s->n}, body);
}

static void test_types_and_sizes(void **state)
{
    (void)state;
    static const oi_dtype types[] = {OI_U4, OI_I4, OI_I8, OI_U8, OI_I2, OI_U1};
    static const char *const acts[] = {"q8", "float", "bf16"};
    static const setting sizes[] = {
        {0, OI_F16, true, false, 1, 8, 32, 32},     {0, OI_F16, false, false, 1, 5, 64, 32},
        {0, OI_F32, true, true, 5, 19, 96, 32},     {0, OI_F16, false, true, 4, 33, 128, 16},
        {0, OI_F16, true, false, 7, 17, 120, 40},   {0, OI_F32, false, false, 2, 1, 256, 256},
        {0, OI_F16, true, true, 71, 24, 1024, 8},   {0, OI_F16, true, false, 85, 37, 2048, 32},
        {0, OI_F16, false, true, 33, 20, 256, 128}, {0, OI_F32, true, false, 16, 16, 192, 64},
        {0, OI_F16, true, false, 144, 16, 576, 32}, {0, OI_F16, true, true, 32, 20, 192, 96},
        {0, OI_F16, true, false, 64, 16, 72, 24},   {0, OI_F16, true, false, 16, 16, 1024, 256}};
    for (size_t i = 0; i < OI_COUNT(types); i++)
        for (size_t j = 0; j < OI_COUNT(sizes); j++) {
            trial t;
            setting s = sizes[j];
            s.w = types[i];
            for (size_t a = 0; a < OI_COUNT(acts); a++) {
                begin(&t, &s, i * 100 + j);
                *trial_attr(&t, "act") = (oi_op_value){.tag = OI_VALUE_STRING, .s = acts[a]};
                /* sums that cancel are as near as their terms are large */
                t.atol = 1e-6 * (double)s.k;
                assert_true(end(&t, &s));
            }
        }
}

/* The ends of every range at once: no sum of products overflows on its way. */
static void test_extremes(void **state)
{
    (void)state;
    static const oi_dtype types[] = {OI_U4, OI_I4, OI_I8, OI_U8};
    for (size_t i = 0; i < OI_COUNT(types); i++)
        for (int sign = -1; sign <= 1; sign += 2)
            for (int top = 0; top < 4; top++) {
                trial t;
                const bool many = top > 1;
                const setting s = {types[i],      OI_F32, false, false,
                                   many ? 32 : 5, 8,      1024,  many ? 256 : 64};
                const oi_dtype_info *d = oi_dtype_get(s.w);
                begin(&t, &s, 1);
                for (int64_t e = 0; e < s.m * s.k; e++)
                    ((float *)t.data[0])[e] = (float)(sign * 3);
                for (int64_t e = 0; e < s.n * s.k; e++)
                    oi_element_set_i64(s.w, t.data[1], (uint64_t)e,
                                       top % 2 ? (int64_t)d->max : d->min);
                assert_true(end(&t, &s));
            }
}

/* Halves are rounded away from zero, and what is not finite spoils its block. */
static void test_rounding(void **state)
{
    (void)state;
    static const float odd[] = {NAN,   INFINITY,       -INFINITY, 0x1p-149f, 0x1.9p-143f, 0.0f,
                                -0.0f, 0x1.fffffep-2f, 1e38f,     -0.5f,     126.5f,      -1.5f};
    for (size_t i = 0; i < OI_COUNT(odd); i++) {
        trial t;
        const setting s = {OI_I8, OI_F32, true, false, i % 2 ? 16 : 4, 9, 256, 32};
        begin(&t, &s, i);
        float *x = t.data[0];
        for (int64_t e = 0; e < s.m * s.k; e++)
            x[e] = e < 64 ? (float)(e - 32) + 0.5f : x[e];
        x[0] = 127;
        x[40] = odd[i];
        if (i % 3 == 0)
            for (int64_t e = 96; e < 128; e++)
                x[e] = odd[i];
        t.atol = 1e-4 * (isfinite(odd[i]) && fabsf(odd[i]) > 1000 ? (double)odd[i] : 1);
        assert_true(end(&t, &s));
    }
}

static void test_refused(void **state)
{
    (void)state;
    trial t;
    const setting wide = {OI_U4, OI_F16, true, false, 1, 8, 36, 36}; /* no multiple of 8 */
    const setting good = {OI_U4, OI_F16, true, false, 1, 8, 32, 32};
    begin(&t, &wide, 0);
    assert_false(end(&t, &wide));
    begin(&t, &good, 0);
    t.is_weight[2] = false;
    assert_false(end(&t, &good));
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_and_sizes),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
