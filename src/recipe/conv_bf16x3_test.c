#include "trial.h"

#include "body/amx/conv_bf16x3.h"

static bool was_called;

static void body(const char *function, const trial_arg *a)
{
    if (strcmp(function, "oi_conv_bf16x3_split") == 0) {
        oi_conv_bf16x3_split(a[0].in, a[1].out, a[2].out, a[3].n, a[4].n, a[5].n, a[6].n, a[7].n,
                             a[8].n, a[9].n, a[10].n, a[11].n);
        return;
    }
    was_called = true;
    if (strcmp(function, "oi_conv_bf16x3_points") == 0) {
        oi_conv_bf16x3_points(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].out, a[6].n,
                              a[7].n, a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n,
                              a[15].real, a[16].real);
        return;
    }
    assert_string_equal(function, "oi_conv_bf16x3");
    oi_conv_bf16x3(a[0].in, a[1].in, a[2].in, a[3].in, a[4].out, a[5].out, a[6].n, a[7].n, a[8].n,
                   a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, a[16].n, a[17].n,
                   a[18].n, a[19].n, a[20].n, a[21].n, a[22].real, a[23].real);
}

typedef struct setting {
    int64_t c, m, in[2], kernel[2], pads[4], dilations[2];
    bool has_bias;
} setting;

static void begin(trial *t, const setting *s, uint64_t seed)
{
    static const int64_t ones[2] = {1, 1};
    trial_begin(t, "conv", seed);
    *trial_attr(t, "strides") = (oi_op_value){.tag = OI_VALUE_INT_LIST, .n = 2, .ints = ones};
    *trial_attr(t, "pads") = (oi_op_value){.tag = OI_VALUE_INT_LIST, .n = 4, .ints = s->pads};
    *trial_attr(t, "dilations") =
        (oi_op_value){.tag = OI_VALUE_INT_LIST, .n = 2, .ints = s->dilations};
    trial_input(t, false, OI_F32, 1, 4, (int64_t[]){1, s->c, s->in[0], s->in[1]});
    trial_input(t, true, OI_F32, 1, 4, (int64_t[]){s->m, s->c, s->kernel[0], s->kernel[1]});
    if (s->has_bias)
        trial_input(t, true, OI_F32, 1, 1, &s->m);
    t->reduced = s->c * s->kernel[0] * s->kernel[1];
    t->atol = 2e-6 * sqrt((double)t->reduced);
}

static void end(trial *t, const setting *s)
{
    int64_t out[4] = {1, s->m};
    for (int a = 0; a < 2; a++)
        out[2 + a] = s->in[a] + s->pads[a] + s->pads[2 + a] - (s->kernel[a] - 1) * s->dilations[a];
    was_called = false;
    assert_true(trial_end(t, OI_F32, 4, out, body));
    assert_true(was_called);
}

static const setting settings[] = {
    /* rows are shared, or filters; channels, filters and places that tiles do not divide */
    {64, 64, {14, 14}, {3, 3}, {1, 1, 1, 1}, {1, 1}, true},
    {61, 50, {56, 30}, {3, 3}, {1, 1, 1, 1}, {1, 1}, false},
    {250, 230, {14, 14}, {1, 1}, {0}, {1, 1}, true},
    {190, 250, {25, 23}, {1, 1}, {0}, {1, 1}, true},
    {95, 90, {41, 37}, {1, 1}, {0}, {1, 1}, true},
    {128, 95, {3, 50}, {1, 1}, {0}, {1, 1}, false},
    {96, 128, {64, 14}, {1, 1}, {0}, {1, 1}, true},
    /* padding of some sides only, windows with gaps */
    {60, 96, {9, 20}, {3, 5}, {0, 3, 2, 1}, {1, 1}, true},
    {64, 60, {20, 17}, {3, 3}, {2, 3, 2, 3}, {2, 3}, false},
    {256, 128, {7, 9}, {2, 2}, {0}, {1, 1}, true},
};

static void test_settings(void **state)
{
    (void)state;
    for (size_t i = 0; i < OI_COUNT(settings); i++) {
        trial t;
        begin(&t, &settings[i], i);
        end(&t, &settings[i]);
    }
}

/* What is not finite, huge or tiny: as the definition has it. A filter that is not finite makes NaN
 * of padding, as those of conv.h do. */
static void test_specials(void **state)
{
    (void)state;
    static const float values[] = {INFINITY, -INFINITY, NAN, 0x1p100f, 0x1p-120f, 0x1p-149f};
    static const setting own[] = {{64, 64, {9, 10}, {3, 3}, {1, 1, 1, 1}, {1, 1}, true},
                                  {128, 64, {20, 8}, {1, 1}, {0}, {1, 1}, true}};
    for (size_t i = 0; i < 2 * OI_COUNT(values); i++)
        for (int side = 0; side < (isfinite(values[i / 2]) ? 2 : 1); side++) {
            const setting *s = &own[i % 2];
            const int64_t in = s->in[0] * s->in[1], of = s->kernel[0] * s->kernel[1];
            trial t;
            begin(&t, s, i);
            ((float *)t.data[side])[side ? 40 * s->c * of + 11 : 7 * in + 35] = values[i / 2];
            ((float *)t.data[!side])[side ? 1 * in + 50 : (3 * s->c + 7) * of + of / 2] = 0;
            end(&t, s);
        }
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_settings),
                                       cmocka_unit_test(test_specials)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
