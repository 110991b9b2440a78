/* Lines through points of rules that lengths follow. */
#include "synth/fit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define N 40

typedef int64_t rule(int64_t m);

static int64_t same(int64_t m)
{
    return m;
}
static int64_t flat(int64_t m)
{
    return m * 576;
}
static int64_t padded(int64_t m)
{
    return m + 5;
}
static int64_t window(int64_t m)
{
    return (m + 2 - 3) / 2 + 1;
}
static int64_t halves(int64_t m)
{
    return (m + 1) / 2;
}
static int64_t first_five(int64_t m)
{
    return m < 5 ? m : 5;
}
static int64_t last_three(int64_t m)
{
    return m < 3 ? 0 : m - 3;
}
static int64_t middle(int64_t m)
{
    return (m < 9 ? m : 9) - (m < 2 ? m : 2);
}
static int64_t backwards(int64_t m)
{
    return 7 - 2 * m;
}

static void lines(void **state)
{
    (void)state;
    rule *const rules[] = {same,       flat,       padded, window,   halves,
                           first_five, last_three, middle, backwards};
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        int64_t m[N], f[N];
        bool use[N];
        oi_line line;
        for (size_t i = 0; i < N; i++) {
            m[i] = (int64_t)(i * 7 % N) + 1;
            f[i] = rules[r](m[i]);
            use[i] = i != 3;
        }
        f[3] = -1000; /* not looked at */
        assert_true(oi_fit_line(m, f, use, N, &line));
        for (int64_t k = 1; k < 2000; k++)
            assert_int_equal(oi_line_at(&line, k), rules[r](k));
    }
}

static int64_t square(int64_t m)
{
    return m * m;
}
static int64_t waves(int64_t m)
{
    return m % 3;
}

static void no_lines(void **state)
{
    (void)state;
    rule *const rules[] = {square, waves};
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        int64_t m[N], f[N];
        bool use[N];
        oi_line line;
        for (size_t i = 0; i < N; i++) {
            m[i] = (int64_t)i;
            f[i] = rules[r](m[i]);
            use[i] = true;
        }
        assert_false(oi_fit_line(m, f, use, N, &line));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines), cmocka_unit_test(no_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
