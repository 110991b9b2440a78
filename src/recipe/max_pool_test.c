#include "trial.h"

#include "body/max_pool.h"

static void body(const char *function, const trial_arg *a)
{
    assert_string_equal(function, "oi_max_pool");
    oi_max_pool(a[0].in, a[1].out, a[2].out, a[3].n, a[4].n, a[5].n, a[6].n, a[7].n, a[8].n, a[9].n,
                a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, a[16].n, a[17].n, a[18].n,
                a[19].n, a[20].n, a[21].n, a[22].n, a[23].n);
}

static void list(trial *t, const char *name, const int64_t *ints, size_t n)
{
    *trial_attr(t, name) = (oi_op_value){.tag = OI_VALUE_INT_LIST, .ints = ints, .n = n};
}

typedef struct windows {
    int64_t x[4], kernel[2], strides[2], dilations[2], pads[4];
} windows;

static int64_t places(const windows *s, size_t axis)
{
    const int64_t all = s->x[2 + axis] + s->pads[axis] + s->pads[2 + axis];
    return (all - (s->kernel[axis] - 1) * s->dilations[axis] - 1) / s->strides[axis] + 1;
}

/* To the bit, NaN and zeros of both signs included. */
static void test_windows(void **state)
{
    (void)state;
    static const windows settings[] = {
        {{1, 3, 9, 27}, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
        {{2, 2, 14, 40}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
        {{1, 4, 7, 70}, {2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
        {{1, 1, 20, 33}, {3, 2}, {1, 3}, {2, 5}, {1, 0, 0, 1}},
        {{3, 2, 5, 5}, {5, 5}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
        {{1, 2, 3, 1}, {2, 1}, {1, 1}, {1, 1}, {1, 0, 1, 0}},
        {{1, 2, 6, 65}, {1, 13}, {1, 1}, {1, 1}, {0, 6, 0, 6}},
        {{1, 2, 4, 20}, {2, 4}, {3, 2}, {3, 2}, {2, 6, 2, 6}}, /* padding as wide as windows */
    };
    for (size_t i = 0; i < OI_COUNT(settings); i++) {
        const windows *s = &settings[i];
        trial t;
        trial_begin(&t, "max_pool", i);
        trial_input(&t, false, OI_F32, 1, 4, s->x);
        ((float *)t.data[0])[3] = NAN;
        ((float *)t.data[0])[1] = -0.0f;
        ((float *)t.data[0])[2] = 0.0f;
        list(&t, "kernel", s->kernel, 2);
        list(&t, "strides", s->strides, 2);
        list(&t, "dilations", s->dilations, 2);
        list(&t, "pads", s->pads, 4);
        t.is_exact = true;
        assert_true(trial_end(&t, OI_F32, 4,
                              (int64_t[]){s->x[0], s->x[1], places(s, 0), places(s, 1)}, body));
    }
}

static void test_rows(void **state)
{
    (void)state;
    const int64_t kernel[] = {3}, strides[] = {2};
    trial t;
    trial_begin(&t, "max_pool", 1);
    trial_input(&t, false, OI_F32, 1, 3, (int64_t[]){2, 3, 101});
    list(&t, "kernel", kernel, 1);
    list(&t, "strides", strides, 1);
    t.is_exact = true;
    assert_true(trial_end(&t, OI_F32, 3, (int64_t[]){2, 3, 50}, body));
}

static void test_others(void **state)
{
    (void)state;
    const int64_t kernel[] = {3};
    trial t;
    trial_begin(&t, "max_pool", 1);
    trial_input(&t, false, OI_I8, 1, 3, (int64_t[]){1, 8, 7});
    list(&t, "kernel", kernel, 1);
    assert_false(trial_end(&t, OI_I8, 3, (int64_t[]){1, 8, 5}, body));
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
