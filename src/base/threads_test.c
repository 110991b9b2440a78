#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>
#include <stdatomic.h>

typedef struct counts {
    atomic_uint each[1000];
} counts;

static void count(void *ctx, size_t i)
{
    atomic_fetch_add(&((counts *)ctx)->each[i], 1);
}

static void every_task_runs_once(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 5; n++) {
        oi_threads *t = oi_threads_new(n);
        assert_non_null(t);
        assert_int_equal(oi_threads_count(t), n);
        for (size_t tasks = 0; tasks <= 1000; tasks += tasks < 5 ? 1 : 331) {
            static counts c;
            memset(&c, 0, sizeof c);
            oi_threads_run(t, tasks, count, &c);
            for (size_t i = 0; i < 1000; i++)
                assert_int_equal(atomic_load(&c.each[i]), i < tasks);
        }
        oi_threads_free(t);
    }
}

static void many_short_jobs(void **state)
{
    (void)state;
    static counts c;
    memset(&c, 0, sizeof c);
    oi_threads *t = oi_threads_new(3);
    assert_non_null(t);
    for (int i = 0; i < 3000; i++)
        oi_threads_run(t, 4, count, &c);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(atomic_load(&c.each[i]), 3000);
    oi_threads_free(t);
}

static void without_a_team(void **state)
{
    (void)state;
    static counts c;
    memset(&c, 0, sizeof c);
    oi_threads_run(NULL, 7, count, &c);
    assert_int_equal(atomic_load(&c.each[6]), 1);
    assert_int_equal(oi_threads_count(NULL), 1);
    assert_null(oi_threads_new(0));
    assert_null(oi_threads_new(100000));
    oi_threads_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once),
        cmocka_unit_test(many_short_jobs),
        cmocka_unit_test(without_a_team),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
