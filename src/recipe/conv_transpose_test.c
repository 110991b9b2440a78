#include "trial.h"

#include "body/conv_transpose.h"

static void body(const char *function, const trial_arg *a)
{
    assert_string_equal(function, "oi_conv_transpose");
    oi_conv_transpose(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].out, a[6].out, a[7].n,
                      a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, a[16].n,
                      a[17].n, a[18].n, a[19].n, a[20].n, a[21].n, a[22].n, a[23].n, a[24].n,
                      a[25].n, a[26].n, a[27].n, a[28].n, a[29].n, a[30].real, a[31].real);
}

typedef struct setting {
    uint32_t rank;
    int64_t batches, c, m, in[2], kernel[2], strides[2], pads[4], dilations[2], more[2];
    bool has_bias;
} setting;

static void list(trial *t, const char *name, const int64_t *items, uint32_t n)
{
    *trial_attr(t, name) = (oi_op_value){.tag = OI_VALUE_INT_LIST, .n = n, .ints = items};
}

static bool run(const setting *s, bool is_weight, int64_t group, uint64_t seed)
{
    trial t;
    const uint32_t n = s->rank;
    int64_t x[4] = {s->batches, s->c}, w[4] = {s->c, s->m / group}, out[4] = {s->batches, s->m};
    for (uint32_t a = 0; a < n; a++) {
        x[2 + a] = s->in[a];
        w[2 + a] = s->kernel[a];
        out[2 + a] = s->strides[a] * (s->in[a] - 1) + s->more[a] +
                     s->dilations[a] * (s->kernel[a] - 1) + 1 - s->pads[a] - s->pads[n + a];
    }
    trial_begin(&t, "conv_transpose", seed);
    list(&t, "strides", s->strides, n);
    list(&t, "pads", s->pads, 2 * n);
    list(&t, "dilations", s->dilations, n);
    list(&t, "output_padding", s->more, n);
    *trial_attr(&t, "group") = (oi_op_value){.tag = OI_VALUE_INT, .i = group};
    trial_input(&t, false, OI_F32, 1, 2 + n, x);
    trial_input(&t, is_weight, OI_F32, 1, 2 + n, w);
    if (s->has_bias)
        trial_input(&t, is_weight, OI_F32, 1, 1, &s->m);
    t.reduced = s->c * s->kernel[0] * (n > 1 ? s->kernel[1] : 1);
    t.atol = 2e-6 * sqrt((double)t.reduced);
    return trial_end(&t, OI_F32, 2 + n, out, body);
}

static void test_settings(void **state)
{
    (void)state;
    static const setting settings[] = {
        {2, 1, 5, 7, {8, 8}, {4, 4}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {0, 0}, true},
        {2, 2, 3, 2, {6, 11}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {1, 1}, false},
        {2, 1, 9, 4, {7, 9}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, {0, 0}, true},
        {2, 1, 4, 3, {5, 13}, {3, 5}, {1, 1}, {1, 2, 1, 2}, {1, 1}, {0, 0}, true},
        {2, 1, 4, 3, {9, 7}, {3, 2}, {3, 4}, {0, 1, 2, 0}, {2, 3}, {2, 1}, false},
        {2, 1, 2, 2, {40, 70}, {5, 5}, {1, 2}, {2, 2, 2, 2}, {1, 1}, {0, 1}, true}, /* in bands */
        {2, 2, 4, 4, {2, 3}, {4, 4}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {0, 0}, true},   /* filled up */
        {2, 1, 5, 3, {5, 5}, {8, 8}, {4, 4}, {2, 2, 2, 2}, {1, 1}, {0, 0}, false},
        {1, 2, 3, 2, {17}, {3}, {2}, {1, 1}, {1}, {1}, true},
        {1, 2, 6, 5, {50}, {7}, {3}, {2, 2}, {1}, {0}, true},
        {1, 1, 3, 2, {33}, {4}, {1}, {0, 0}, {2}, {0}, false},
    };
    for (size_t i = 0; i < OI_COUNT(settings); i++)
        assert_true(run(&settings[i], true, 1, i));
}

static void test_others(void **state)
{
    (void)state;
    static const setting usual = {2,      1,      4,    4, {8, 8}, {4, 4}, {2, 2}, {1, 1, 1, 1},
                                  {1, 1}, {0, 0}, false};
    assert_false(run(&usual, false, 1, 1));
    assert_false(run(&usual, true, 2, 1));
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
