#include "trial.h"

#include "body/scalar.h"
#include "body/sdpa.h"
#if defined(__AMX_BF16__)
#include "body/amx/sdpa_tiles.h"
#endif

#if defined(__AMX_BF16__)
static void body_of_tiles(const char *function, const trial_arg *a)
{
    if (strcmp(function, "oi_sdpa_tiles_masked") == 0) {
        oi_sdpa_tiles_masked(a[0].in, a[1].in, a[2].in, a[3].in, a[4].out, a[5].out, a[6].out,
                             a[7].n, a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n,
                             a[15].n, a[16].n, a[17].real, a[18].n, a[19].n, a[20].n, a[21].n,
                             a[22].n, a[23].n, a[24].n, a[25].n);
        return;
    }
    oi_sdpa_tiles(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].out, a[6].n, a[7].n, a[8].n,
                  a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, a[16].real, a[17].n,
                  a[18].n, a[19].n);
}
#endif

static void body_of_bf16(const char *function, const trial_arg *a)
{
#if defined(__AMX_BF16__)
    if (strncmp(function, "oi_sdpa_tiles", 13) == 0) {
        body_of_tiles(function, a);
        return;
    }
#endif
    if (strcmp(function, "oi_sdpa_bf16_masked") == 0) {
        oi_sdpa_bf16_masked(a[0].in, a[1].in, a[2].in, a[3].in, a[4].out, a[5].out, a[6].n, a[7].n,
                            a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n,
                            a[16].n, a[17].n, a[18].n, a[19].real, a[20].n, a[21].n, a[22].n,
                            a[23].n, a[24].n, a[25].n, a[26].n, a[27].n);
        return;
    }
    assert_string_equal(function, "oi_sdpa_bf16");
    oi_sdpa_bf16(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].n, a[6].n, a[7].n, a[8].n,
                 a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, a[16].n, a[17].n,
                 a[18].real, a[19].n, a[20].n, a[21].n);
}

static void body(const char *function, const trial_arg *a)
{
    if (strstr(function, "_bf16") || strstr(function, "_tiles")) {
        body_of_bf16(function, a);
        return;
    }
    if (strcmp(function, "oi_sdpa_masked") == 0) {
        oi_sdpa_masked(a[0].in, a[1].in, a[2].in, a[3].in, a[4].out, a[5].out, a[6].n, a[7].n,
                       a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n,
                       a[16].n, a[17].n, a[18].n, a[19].n, a[20].real, a[21].n, a[22].n, a[23].n,
                       a[24].n, a[25].n, a[26].n, a[27].n, a[28].n);
        return;
    }
    assert_string_equal(function, "oi_sdpa");
    oi_sdpa(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].n, a[6].n, a[7].n, a[8].n, a[9].n,
            a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, a[16].n, a[17].n, a[18].n,
            a[19].real, a[20].n, a[21].n, a[22].n);
}

typedef struct setting {
    int64_t batches, heads, kv_heads, tq, tk, dh, dv, kv_len; /* kv_len -1: not given */
    bool is_causal;
    oi_dtype cache;
} setting;

static void number(trial *t, const char *name, int64_t n)
{
    *trial_attr(t, name) = (oi_op_value){.tag = OI_VALUE_INT, .i = n};
}

static void begin(trial *t, uint64_t seed, const char *act)
{
    trial_begin(t, "sdpa", seed);
    *trial_attr(t, "act") = (oi_op_value){.tag = OI_VALUE_STRING, .s = act};
    t->is_exact = true;
}

static void run_as(const setting *s, int rank, uint64_t seed, bool is_exact, const char *act)
{
    trial t;
    begin(&t, seed, act);
    t.is_exact = is_exact;
    *trial_attr(&t, "causal") = (oi_op_value){.tag = OI_VALUE_BOOL, .b = s->is_causal};
    if (s->kv_len >= 0)
        number(&t, "kv_len", s->kv_len);
    if (rank == 4) {
        trial_input(&t, false, OI_F32, 2, 4, (int64_t[]){s->batches, s->heads, s->tq, s->dh});
        trial_input(&t, false, s->cache, 2, 4, (int64_t[]){s->batches, s->kv_heads, s->tk, s->dh});
        trial_input(&t, false, s->cache, 2, 4, (int64_t[]){s->batches, s->kv_heads, s->tk, s->dv});
        t.reduced = s->tk;
        assert_true(
            trial_end(&t, OI_F32, 4, (int64_t[]){s->batches, s->heads, s->tq, s->dv}, body));
        return;
    }
    number(&t, "heads", s->heads);
    number(&t, "kv_heads", s->kv_heads);
    trial_input(&t, false, OI_F32, 2, 3, (int64_t[]){s->batches, s->tq, s->heads * s->dh});
    trial_input(&t, false, s->cache, 2, 3, (int64_t[]){s->batches, s->tk, s->kv_heads * s->dh});
    trial_input(&t, false, s->cache, 2, 3, (int64_t[]){s->batches, s->tk, s->kv_heads * s->dv});
    t.reduced = s->tk;
    if (s->kv_len >= 0) /* what is not valid is never looked at */
        for (int64_t b = 0; b < s->batches; b++)
            for (int64_t i = s->kv_len * s->kv_heads * s->dv; i < s->tk * s->kv_heads * s->dv; i++)
                oi_element_set_f64(s->cache, t.data[2],
                                   (uint64_t)(b * s->tk * s->kv_heads * s->dv + i), NAN);
    assert_true(trial_end(&t, OI_F32, 3, (int64_t[]){s->batches, s->tq, s->heads * s->dv}, body));
}

static void run(const setting *s, int rank, uint64_t seed)
{
    run_as(s, rank, seed, true, "float");
    run_as(s, rank, seed, false, "float");
    run_as(s, rank, seed, true, "bf16");
    if (s->dv > 32) /* what a regrouped program does is the same */
        run_as(s, rank, seed, false, "bf16");
}

static void test_settings(void **state)
{
    (void)state;
    static const setting settings[] = {
        {1, 9, 3, 1, 300, 64, 64, 200, true, OI_F16},
        {1, 9, 3, 32, 100, 64, 64, 80, true, OI_F16},
        {2, 4, 4, 7, 9, 32, 16, -1, false, OI_F32},
        {1, 12, 12, 128, 128, 32, 32, 70, false, OI_F32},
        {1, 8, 1, 1, 65, 8, 32, 65, true, OI_F16},
        {1, 2, 1, 9, 64, 16, 16, 3, true, OI_F16},
        {1, 2, 2, 5, 20, 16, 16, 0, false, OI_F32},
        {2, 6, 2, 1, 140, 16, 48, 130, true, OI_F16},
        {1, 4, 2, 2, 70, 8, 16, 66, true, OI_F32},
        {3, 6, 2, 50, 130, 24, 48, 129, true, OI_F32},
        {1, 5, 1, 1, 17, 16, 64, 16, true, OI_F16},
        {1, 1, 1, 1, 1, 8, 16, -1, true, OI_F32},
        {1, 8, 2, 40, 1500, 16, 32, 1100, true, OI_F16}, /* fewer rows at a time than there are */
        {1, 3, 1, 33, 50, 16, 32, 31, true, OI_F32},     /* rows that see nothing */
        {1, 2, 1, 16, 49, 32, 64, 49, true, OI_F16},
        {1, 6, 2, 11, 97, 80, 96, 97, true, OI_F16}, /* steps and tiles that are not full */
        {1, 2, 2, 20, 33, 48, 160, 33, false, OI_F32},
        {2, 4, 1, 17, 40, 128, 128, 1, false, OI_F16},
        {1, 3, 3, 130, 260, 32, 32, 257, true, OI_F32},
    };
    for (size_t i = 0; i < OI_COUNT(settings); i++) {
        run(&settings[i], 3, i);
        run(&settings[i], 4, i + 50);
    }
}

/* Features that fill no vectors: of floats alone. */
static void test_widths(void **state)
{
    (void)state;
    static const setting settings[] = {
        {1, 4, 4, 70, 65, 40, 40, 65, false, OI_F32}, {1, 4, 2, 3, 90, 40, 40, 70, true, OI_F16},
        {2, 2, 2, 50, 33, 5, 3, 33, true, OI_F16},    {1, 3, 3, 2, 49, 7, 25, 49, false, OI_F32},
        {1, 8, 4, 1, 130, 72, 24, 100, true, OI_F16}, {1, 2, 1, 40, 100, 80, 112, -1, true, OI_F32},
    };
    for (size_t i = 0; i < OI_COUNT(settings); i++)
        for (int rank = 3; rank <= 4; rank++)
            for (int is_exact = 0; is_exact < 2; is_exact++)
                run_as(&settings[i], rank, i, is_exact, "float");
}

/* Every 101st float. */
static void test_exp(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 1ull << 32; at += 101 * OI_VF) {
        float x[OI_VF], y[OI_VF];
        for (uint64_t i = 0; i < OI_VF; i++)
            x[i] = oi_float_f32((uint32_t)(at + i * 101));
        oi_vf_store(y, oi_vf_exp(oi_vf_load(x)));
        for (int i = 0; i < OI_VF; i++) {
            const float want = oi_exp_f32(x[i]);
            if (oi_bits_f32(y[i]) != oi_bits_f32(want) && !(isnan(y[i]) && isnan(want)))
                fail_msg("exp(%a): %a, expected %a", (double)x[i], (double)y[i], (double)want);
        }
    }
}

#if defined(__AMX_BF16__)
/* Powers with fewer steps: every 101st float down to -90, rounded to bf16. */
static void test_powers(void **state)
{
    (void)state;
    for (uint64_t at = 0x80000000; at < 0xc2b40000; at += 101 * 4 * OI_VF) {
        float x[4 * OI_VF];
        oi_vf v[4], e[4];
        for (uint64_t i = 0; i < 4 * OI_VF; i++)
            x[i] = oi_float_f32((uint32_t)(at + i * 101));
        for (int i = 0; i < 4; i++)
            v[i] = oi_vf_load(x + i * OI_VF);
        oi_sdpa_four_powers(v, e);
        for (int i = 0; i < 4 * OI_VF; i++) {
            float y[OI_VF];
            oi_vf_store(y, e[i / OI_VF]);
            const uint16_t want = oi_near_bf16_f32(oi_exp_f32(x[i]));
            if (oi_near_bf16_f32(y[i % OI_VF]) != want)
                fail_msg("exp(%a): %a is not rounded to %a", (double)x[i], (double)y[i % OI_VF],
                         (double)oi_f32_of_bf16(want));
        }
    }
}
#endif

/* A decoding step of its own layout: q [1, H Dh], k and v [T, 1, Hk Dh]. */
static void test_decode(void **state)
{
    (void)state;
    trial t;
    begin(&t, 3, "float");
    number(&t, "heads", 4);
    number(&t, "kv_heads", 2);
    trial_input(&t, false, OI_F32, 1, 2, (int64_t[]){1, 64});
    trial_input(&t, false, OI_F32, 1, 3, (int64_t[]){37, 1, 32});
    trial_input(&t, false, OI_F32, 1, 3, (int64_t[]){37, 1, 32});
    *trial_attr(&t, "scale") = (oi_op_value){.tag = OI_VALUE_FLOAT, .f = 0.5};
    assert_true(trial_end(&t, OI_F32, 2, (int64_t[]){1, 64}, body));
}

/* Masks of every shape that broadcasts; some rows see nothing. */
static void test_masks(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {
        {2, 6, 9, 70}, {2, 1, 1, 70}, {1, 1, 9, 70},  {1, 6, 1, 1},
        {1, 1, 1, 70}, {1, 1, 9, 1},  {2, 6, 35, 70}, {1, 1, 1, 70},
    };
    static const oi_dtype types[] = {OI_F32, OI_BOOL, OI_U8};
    for (size_t n = 0; n < 2 * OI_COUNT(shapes) * OI_COUNT(types); n++) {
        const size_t i = n / 2;
        const int64_t *dims = shapes[i / OI_COUNT(types)];
        const uint32_t rank = dims[0] * dims[1] == 1 ? 2 : 4;
        const int64_t tq = i / OI_COUNT(types) < 6 ? 9 : 35; /* few rows of a head, and many */
        trial t;
        begin(&t, i, n % 2 ? "bf16" : "float");
        trial_input(&t, false, OI_F32, 2, 4, (int64_t[]){2, 6, tq, 16});
        trial_input(&t, false, OI_F16, 2, 4, (int64_t[]){2, 3, 70, 16});
        trial_input(&t, false, OI_F16, 2, 4, (int64_t[]){2, 3, 70, 32});
        trial_input(&t, false, types[i % OI_COUNT(types)], 3, rank, dims + 4 - rank);
        for (int64_t e = 0; e < trial_count(&t.in[3]); e += 1 + e % 3)
            oi_element_set_f64(t.in[3].dtype, t.data[3], (uint64_t)e,
                               t.in[3].dtype == OI_F32 ? -INFINITY : 0);
        *trial_attr(&t, "causal") = (oi_op_value){.tag = OI_VALUE_BOOL, .b = i % 2};
        if (i % 4 < 2)
            number(&t, "kv_len", 60);
        assert_true(trial_end(&t, OI_F32, 4, (int64_t[]){2, 6, tq, 32}, body));
    }
}

/* Scores far apart, infinite and NaN. */
static void test_specials(void **state)
{
    (void)state;
    static const float odd[] = {1e4f, -1e4f, 0, NAN};
    for (size_t i = 0; i < 2 * OI_COUNT(odd); i++)
        for (int64_t tq = 1; tq < 82; tq *= 9) {
            trial t;
            begin(&t, i, i % 2 ? "bf16" : "float");
            trial_input(&t, false, OI_F32, 1, 4, (int64_t[]){1, 1, tq, 16});
            trial_input(&t, false, OI_F32, 1, 4, (int64_t[]){1, 1, 100, 16});
            trial_input(&t, false, OI_F32, 1, 4, (int64_t[]){1, 1, 100, 16});
            ((float *)t.data[1])[70 * 16 + 3] = odd[i / 2];
            t.reduced = 100;
            assert_true(trial_end(&t, OI_F32, 4, (int64_t[]){1, 1, tq, 16}, body));
        }
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_specials),
#if defined(__AMX_BF16__)
        cmocka_unit_test(test_powers),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
