#include "trial.h"

#include "body/cell.h"

static void body(const char *function, const trial_arg *a)
{
    if (strcmp(function, "oi_cell_lstm") == 0)
        oi_cell_lstm(a[0].in, a[1].in, a[2].in, a[3].in, a[4].in, a[5].out, a[6].out, a[7].n,
                     a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n);
    else if (strcmp(function, "oi_cell_gru") == 0)
        oi_cell_gru(a[0].in, a[1].in, a[2].in, a[3].in, a[4].out, a[5].n, a[6].n, a[7].n, a[8].n,
                    a[9].n, a[10].n, a[11].n, a[12].n);
    else
        fail_msg("%s is not tested", function);
}

static const int64_t sizes[][3] = {/* rows, inputs, hidden */
                                   {1, 128, 128}, {1, 7, 5},   {2, 33, 16},
                                   {4, 16, 35},   {3, 1, 100}, {1, 40, 4}};

static void add(trial *t, bool is_weight, int64_t rows, int64_t columns)
{
    trial_input(t, is_weight, OI_F32, 0.5, 2, (int64_t[]){rows, columns});
}

static bool run(const char *op, size_t i, const char *order, bool has_bias, int64_t gates)
{
    const int64_t rows = sizes[i][0], inputs = sizes[i][1], hidden = sizes[i][2];
    const bool is_lstm = gates == 4;
    trial t;
    trial_begin(&t, op, i);
    *trial_attr(&t, "order") = (oi_op_value){.tag = OI_VALUE_STRING, .s = order};
    if (!is_lstm)
        *trial_attr(&t, "linear_before_reset") = (oi_op_value){.tag = OI_VALUE_BOOL, .b = true};
    add(&t, false, rows, inputs);
    add(&t, false, rows, hidden);
    if (is_lstm)
        add(&t, false, rows, hidden);
    add(&t, true, gates * hidden, inputs);
    add(&t, true, gates * hidden, hidden);
    if (has_bias)
        trial_input(&t, true, OI_F32, 0.5, 1, (int64_t[]){2 * gates * hidden});
    t.q.n_out = is_lstm ? 2 : 1;
    t.reduced = inputs + hidden;
    return trial_end(&t, OI_F32, 2, (int64_t[]){rows, hidden}, body);
}

static void test_lstm(void **state)
{
    (void)state;
    for (size_t i = 0; i < OI_COUNT(sizes); i++) {
        assert_true(run("lstm_cell", i, "iofc", i % 2, 4));
        assert_true(run("lstm_cell", i, "ifgo", i % 2 == 0, 4));
    }
}

static void test_gru(void **state)
{
    (void)state;
    for (size_t i = 0; i < OI_COUNT(sizes); i++) {
        assert_true(run("gru_cell", i, "zrh", i % 2, 3));
        assert_true(run("gru_cell", i, "rzn", i % 2 == 0, 3));
    }
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lstm),
        cmocka_unit_test(test_gru),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
