#include "trial.h"

#include "body/conv.h"
#include "body/conv_flat.h"
#include "body/conv_windows.h"

static const char *last_body;
static int n_flat;

/* Those that take all channels of a group. */
static bool dense_body(const char *function, const trial_arg *a)
{
    if (strcmp(function, "oi_conv_points") == 0)
        oi_conv_points(a[0].in, a[1].in, a[2].in, a[3].out, a[4].n, a[5].n, a[6].n, a[7].n, a[8].n,
                       a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, a[16].n,
                       a[17].n, a[18].real, a[19].real);
    else if (strcmp(function, "oi_conv_dense") == 0)
        oi_conv_dense(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].n, a[6].n, a[7].n, a[8].n,
                      a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, a[16].n,
                      a[17].n, a[18].n, a[19].n, a[20].n, a[21].n, a[22].n, a[23].n, a[24].n,
                      a[25].n, a[26].n, a[27].n, a[28].n, a[29].n, a[30].n, a[31].n, a[32].n,
                      a[33].n, a[34].real, a[35].real);
    else if (strcmp(function, "oi_conv_flat") == 0)
        oi_conv_flat(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].out, a[6].n, a[7].n,
                     a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, a[16].n,
                     a[17].n, a[18].n, a[19].n, a[20].n, a[21].n, a[22].n, a[23].n, a[24].n,
                     a[25].n, a[26].n, a[27].n, a[28].n, a[29].n, a[30].n, a[31].n, a[32].real,
                     a[33].real);
    else if (strcmp(function, "oi_conv_blocks") == 0)
        oi_conv_blocks(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].n, a[6].n, a[7].n,
                       a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n,
                       a[16].n, a[17].n, a[18].n, a[19].n, a[20].n, a[21].n, a[22].n, a[23].n,
                       a[24].n, a[25].n, a[26].n, a[27].n, a[28].n, a[29].n, a[30].n, a[31].n,
                       a[32].n, a[33].real, a[34].real);
    else if (strcmp(function, "oi_conv_points_across") == 0)
        oi_conv_points_across(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].n, a[6].n, a[7].n,
                              a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n,
                              a[16].n, a[17].n, a[18].real, a[19].real);
    else if (strcmp(function, "oi_conv_dense_across") == 0)
        oi_conv_dense_across(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].n, a[6].n, a[7].n,
                             a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n,
                             a[16].n, a[17].n, a[18].n, a[19].n, a[20].n, a[21].n, a[22].n, a[23].n,
                             a[24].n, a[25].n, a[26].n, a[27].n, a[28].n, a[29].n, a[30].n,
                             a[31].real, a[32].real);
    else
        return false;
    return true;
}

/* Those that take a channel for each filter, and those of few places. */
static void body(const char *function, const trial_arg *a)
{
    last_body = function;
    if (dense_body(function, a))
        return;
    if (strcmp(function, "oi_conv_depthwise_two") == 0)
        oi_conv_depthwise_two(a[0].in, a[1].in, a[2].in, a[3].out, a[4].n, a[5].n, a[6].n, a[7].n,
                              a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n,
                              a[16].n, a[17].n, a[18].n, a[19].n, a[20].n, a[21].n, a[22].n,
                              a[23].real, a[24].real);
    else if (strcmp(function, "oi_conv_depthwise") == 0)
        oi_conv_depthwise(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].n, a[6].n, a[7].n,
                          a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n,
                          a[16].n, a[17].n, a[18].n, a[19].n, a[20].n, a[21].n, a[22].n, a[23].n,
                          a[24].n, a[25].n, a[26].n, a[27].n, a[28].n, a[29].real, a[30].real);
    else if (strcmp(function, "oi_conv_lanes") == 0)
        oi_conv_lanes(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].out, a[6].n, a[7].n,
                      a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n, a[16].n,
                      a[17].n, a[18].n, a[19].n, a[20].n, a[21].n, a[22].n, a[23].n, a[24].real,
                      a[25].real);
    else if (strcmp(function, "oi_conv_lanes_two") == 0)
        oi_conv_lanes_two(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].out, a[6].out, a[7].n,
                          a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n,
                          a[16].n, a[17].n, a[18].n, a[19].n, a[20].n, a[21].n, a[22].n, a[23].n,
                          a[24].n, a[25].real, a[26].real);
    else
        fail_msg("%s is not tested", function);
}

typedef struct setting {
    const char *body; /* NULL: none takes it */
    uint32_t rank;    /* spatial axes */
    int64_t batches, c, m, group, in[2], kernel[2], strides[2], pads[4], dilations[2];
    bool has_bias;
} setting;

static void list(trial *t, const char *name, const int64_t *items, uint32_t n)
{
    *trial_attr(t, name) = (oi_op_value){.tag = OI_VALUE_INT_LIST, .n = n, .ints = items};
}

static void run(const setting *s, bool is_weight, uint64_t seed)
{
    trial t;
    const uint32_t n = s->rank;
    int64_t x[4] = {s->batches, s->c}, w[4] = {s->m, s->c / s->group}, out[4] = {s->batches, s->m};
    for (uint32_t a = 0; a < n; a++) {
        int64_t span = (s->kernel[a] - 1) * s->dilations[a] + 1;
        x[2 + a] = s->in[a];
        w[2 + a] = s->kernel[a];
        out[2 + a] = (s->in[a] + s->pads[a] + s->pads[n + a] - span) / s->strides[a] + 1;
    }
    trial_begin(&t, "conv", seed);
    list(&t, "strides", s->strides, n);
    list(&t, "pads", s->pads, 2 * n);
    list(&t, "dilations", s->dilations, n);
    *trial_attr(&t, "group") = (oi_op_value){.tag = OI_VALUE_INT, .i = s->group};
    trial_input(&t, false, OI_F32, 1, 2 + n, x);
    trial_input(&t, is_weight, OI_F32, 1, 2 + n, w);
    if (s->has_bias)
        trial_input(&t, is_weight, OI_F32, 1, 1, &s->m);
    t.reduced = w[1] * s->kernel[0] * (n > 1 ? s->kernel[1] : 1);
    t.atol = 2e-6 * sqrt((double)t.reduced);
    last_body = NULL;
    bool takes = trial_end(&t, OI_F32, 2 + n, out, body);
    assert_int_equal(takes, s->body != NULL);
    if (takes && strcmp(last_body, "oi_conv_flat") == 0) /* depends on the lanes, too */
        n_flat++;
    else if (takes && strcmp(s->body, "oi_conv_lanes") == 0 && !is_weight)
        assert_string_equal(last_body, "oi_conv_lanes_two");
    else if (takes && strncmp(last_body, s->body, strlen(s->body)) != 0) /* or ..._across */
        fail_msg("%s takes what is for %s", last_body, s->body);
}

static const setting planes[] = {
    /* windows of one place, on places of any number */
    {"oi_conv_points", 2, 2, 5, 7, 1, {7, 5}, {1, 1}, {1, 1}, {0}, {1, 1}, true},
    {"oi_conv_points", 2, 2, 5, 31, 1, {7, 19}, {1, 1}, {1, 1}, {0}, {1, 1}, true},
    {"oi_conv_points", 1, 1, 3, 13, 1, {32}, {1}, {1}, {0}, {1}, false},
    {"oi_conv_points", 2, 1, 24, 2, 1, {3, 96}, {1, 1}, {1, 1}, {0}, {1, 1}, true},
    /* all channels */
    {"oi_conv_dense", 2, 1, 7, 14, 1, {5, 21}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true},
    {"oi_conv_dense", 2, 1, 9, 26, 1, {4, 50}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, false},
    {"oi_conv_dense", 2, 1, 3, 8, 1, {9, 40}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, true},
    {"oi_conv_dense", 2, 2, 4, 5, 1, {7, 13}, {3, 5}, {1, 1}, {0, 2, 1, 2}, {1, 1}, false},
    {"oi_conv_dense", 2, 1, 2, 6, 1, {5, 50}, {2, 4}, {3, 3}, {1, 1, 0, 3}, {1, 1}, true},
    {"oi_conv_dense", 1, 1, 6, 9, 1, {100}, {7}, {1}, {3, 3}, {1}, true},
    /* rows of all channels that leave the stack */
    {"oi_conv_dense", 1, 1, 200, 3, 1, {900}, {3}, {1}, {1, 1}, {1}, true},
    {"oi_conv_dense", 1, 1, 140, 4, 2, {4001}, {5}, {2}, {3, 1}, {2}, false},
    /* vectors that places would not fill */
    {"oi_conv_points", 2, 2, 7, 33, 1, {5, 13}, {1, 1}, {1, 1}, {0}, {1, 1}, true},
    {"oi_conv_points", 2, 1, 300, 64, 1, {14, 14}, {1, 1}, {1, 1}, {0}, {1, 1}, false},
    {"oi_conv_points", 1, 1, 70, 40, 1, {67}, {1}, {1}, {0}, {1}, true},
    {"oi_conv_dense", 2, 2, 5, 64, 1, {14, 14}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true},
    {"oi_conv_dense", 2, 1, 9, 45, 1, {30, 38}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, false},
    {"oi_conv_dense", 2, 1, 6, 96, 1, {11, 23}, {3, 2}, {2, 1}, {2, 0, 1, 1}, {2, 3}, true},
    {"oi_conv_dense", 1, 2, 8, 31, 1, {52}, {5}, {3}, {4, 4}, {2}, true},
    /* rows end to end */
    {"oi_conv_flat", 2, 1, 150, 8, 1, {40, 5}, {5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}, true},
    {"oi_conv_flat", 2, 2, 160, 5, 1, {33, 9}, {5, 3}, {1, 1}, {0, 1, 3, 1}, {2, 1}, false},
    {"oi_conv_flat", 2, 1, 600, 6, 1, {40, 6}, {3, 3}, {1, 1}, {1, 2, 1, 2}, {1, 2}, true},
    /* those of a group */
    {"oi_conv_dense", 2, 1, 4, 4, 2, {9, 40}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true},
    {"oi_conv_dense", 2, 2, 6, 15, 3, {5, 33}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, false},
    {"oi_conv_dense", 1, 2, 8, 8, 4, {50}, {1}, {1}, {0, 0}, {1}, true},
    /* a channel for each filter, or for two */
    {"oi_conv_depthwise", 2, 1, 8, 8, 8, {12, 96}, {3, 3}, {2, 1}, {1, 1, 1, 1}, {1, 1}, true},
    {"oi_conv_depthwise", 2, 2, 3, 3, 3, {6, 61}, {5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}, false},
    {"oi_conv_depthwise", 2, 1, 4, 8, 4, {9, 40}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, true},
    {"oi_conv_depthwise", 2, 1, 4, 4, 4, {7, 7}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, false},
    {"oi_conv_depthwise_two", 2, 2, 3, 3, 3, {7, 150}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true},
    {"oi_conv_depthwise_two", 2, 1, 3, 6, 3, {8, 33}, {4, 5}, {1, 1}, {0, 0, 3, 9}, {1, 2}, true},
    {"oi_conv_depthwise_two",
     2,
     1,
     3,
     3,
     3,
     {1, 30},
     {5, 9},
     {1, 1},
     {2, 40, 2, 20},
     {1, 3},
     false},
    {"oi_conv_depthwise_two", 2, 1, 2, 2, 2, {6, 5}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true},
    /* windows with gaps */
    {"oi_conv_dense", 2, 1, 4, 3, 1, {9, 40}, {3, 3}, {2, 2}, {2, 2, 2, 2}, {2, 2}, true},
    {"oi_conv_dense", 2, 1, 4, 4, 2, {9, 10}, {3, 3}, {1, 1}, {1, 3, 1, 3}, {1, 3}, true},
    {"oi_conv_dense", 1, 2, 3, 7, 1, {90}, {5}, {3}, {4, 4}, {4}, true},
    {"oi_conv_depthwise", 2, 1, 4, 4, 4, {9, 40}, {3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}, true},
    {"oi_conv_depthwise", 2, 2, 3, 6, 3, {5, 41}, {3, 4}, {2, 3}, {5, 2, 4, 2}, {3, 5}, true},
    {"oi_conv_depthwise", 1, 1, 5, 5, 5, {64}, {3}, {1}, {16, 0}, {8}, false},
    /* few places */
    {"oi_conv_lanes", 1, 1, 1, 258, 1, {640}, {256}, {128}, {0, 0}, {1}, false},
    {"oi_conv_lanes", 1, 1, 29, 33, 1, {4}, {3}, {1}, {1, 1}, {1}, true},
    {"oi_conv_lanes", 2, 2, 6, 17, 1, {7, 7}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true},
    {"oi_conv_lanes", 2, 1, 4, 3, 1, {9, 13}, {3, 3}, {2, 2}, {2, 2, 2, 2}, {2, 2}, true},
    {"oi_conv_lanes", 2, 1, 40, 10, 1, {1, 1}, {1, 1}, {1, 1}, {0}, {1, 1}, true},
    {NULL, 2, 1, 4, 4, 2, {9, 3}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true},
};

static void test_settings(void **state)
{
    (void)state;
    for (size_t i = 0; i < OI_COUNT(planes); i++) {
        run(&planes[i], true, i);
        run(&planes[i], false, i + 50);
    }
    assert_true(n_flat >= 6);
}

/* Over three axes. */
static void test_volumes(void **state)
{
    (void)state;
    static const struct volumes {
        int64_t x[5], w[5], strides[3], pads[6], dilations[3], group;
    } settings[] = {
        {{1, 3, 5, 6, 7}, {8, 3, 3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 1},
        {{2, 4, 7, 9, 40}, {13, 4, 2, 3, 5}, {2, 1, 2}, {0, 1, 2, 1, 1, 2}, {1, 2, 1}, 1},
        {{1, 6, 4, 5, 19}, {10, 3, 3, 1, 2}, {1, 2, 3}, {1, 0, 0, 1, 0, 1}, {1, 1, 3}, 2},
        {{1, 2, 3, 3, 3}, {7, 2, 3, 3, 3}, {1, 1, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}, 1},
    };
    for (size_t i = 0; i < 2 * OI_COUNT(settings); i++) {
        const struct volumes *s = &settings[i / 2];
        int64_t out[5] = {s->x[0], s->w[0]};
        trial t;
        for (int a = 0; a < 3; a++)
            out[2 + a] = (s->x[2 + a] + s->pads[a] + s->pads[3 + a] -
                          (s->w[2 + a] - 1) * s->dilations[a] - 1) /
                             s->strides[a] +
                         1;
        trial_begin(&t, "conv", i);
        list(&t, "strides", s->strides, 3);
        list(&t, "pads", s->pads, 6);
        list(&t, "dilations", s->dilations, 3);
        *trial_attr(&t, "group") = (oi_op_value){.tag = OI_VALUE_INT, .i = s->group};
        trial_input(&t, false, OI_F32, 1, 5, s->x);
        trial_input(&t, i % 2, OI_F32, 1, 5, s->w);
        trial_input(&t, i % 2, OI_F32, 1, 1, s->w);
        t.reduced = s->w[1] * s->w[2] * s->w[3] * s->w[4];
        t.atol = 2e-6 * sqrt((double)t.reduced);
        assert_true(trial_end(&t, OI_F32, 5, out, body));
    }
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_settings),
                                       cmocka_unit_test(test_volumes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
