/* Equations, and what is wrong with them. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

static bool reads(const char *equation, uint32_t n, uint32_t a, uint32_t b, oi_einsum *e)
{
    const uint32_t ranks[2] = {a, b};
    return oi_einsum_read(equation, n, ranks, e);
}

static void labels(void **state)
{
    (void)state;
    oi_einsum e;
    assert_true(reads("bij, bjk -> bik", 2, 3, 3, &e));
    assert_int_equal(e.n_out, 3);
    assert_int_equal(e.n_labels, 4);
    const uint8_t first[3] = {0, 1, 3}, second[3] = {0, 3, 2};
    assert_memory_equal(e.in[0], first, 3);
    assert_memory_equal(e.in[1], second, 3);
    assert_true(reads("ba", 1, 2, 0, &e)); /* the result is ab */
    assert_int_equal(e.in[0][0], 1);
    assert_true(reads("ii", 1, 2, 0, &e));
    assert_int_equal(e.n_out, 0);
    assert_int_equal(e.n_labels, 1);
}

static void several(void **state)
{
    (void)state;
    oi_einsum e;
    const uint32_t ranks[6] = {2, 2, 2, 16, 16, 16};
    assert_true(oi_einsum_read("ab,bc,cd->ad", 3, ranks, &e));
    assert_int_equal(e.n_labels, 4);
    /* more labels than a nest has axes */
    assert_false(oi_einsum_read("...,abcdefghijklmnop,qrstuvwxyzABCDEF->a", 3, ranks + 3, &e));
}

static void dots(void **state)
{
    (void)state;
    oi_einsum e;
    assert_true(reads("...ij,...jk->...ik", 2, 4, 3, &e));
    assert_int_equal(e.n_out, 4);
    assert_int_equal(e.in[0][0], 0);
    assert_int_equal(e.in[0][1], 1);
    assert_int_equal(e.in[1][0], 1); /* aligned at the last */
    assert_true(reads("...", 1, 3, 0, &e));
    assert_int_equal(e.n_out, 3);
}

static void mistakes(void **state)
{
    (void)state;
    oi_einsum e;
    static const char *const bad[] = {"ij",         "ij,jk,kl",    "ij,jk->il",      "ij,jk->ii",
                                      "i1,jk->i",   "ijk,jk->i",   "i,jk->i",        "ij,jk-ik",
                                      "ij,jk->i,k", "..ij,jk->i",  "......ij,jk->i", "",
                                      "->",         "ij,jk->ik->i"};
    for (size_t i = 0; i < OI_COUNT(bad); i++)
        if (reads(bad[i], 2, 2, 2, &e))
            fail_msg("\"%s\" was read", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels),
        cmocka_unit_test(several),
        cmocka_unit_test(dots),
        cmocka_unit_test(mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
