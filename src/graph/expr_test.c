/* expr_test.c: expressions: reading, printing with fewest parentheses, i64 arithmetic. */
#include "graph/graph.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

typedef struct fixture {
    oi_graph *g;
    const char *text;
    const oi_expr *e;
    oi_diag *d;
    bool is_dim;
} fixture;

static void read_it(void *ctx)
{
    fixture *f = ctx;
    f->e = oi_expr_parse(f->g, f->text, strlen(f->text), f->is_dim, "/x", f->d);
}

static fixture read_text(const char *text, bool is_dim)
{
    fixture f = {.g = oi_graph_alloc(), .text = text, .d = oi_diag_new(), .is_dim = is_dim};
    assert_int_equal(oi_arena_guard(f.g->arena, read_it, &f), OI_OK);
    return f;
}

static void done(fixture *f)
{
    oi_graph_free(f->g);
    oi_diag_free(f->d);
}

static void prints(const char *text, const char *wanted)
{
    fixture f = read_text(text, false);
    assert_non_null(f.e);
    oi_buf out = {0};
    oi_expr_print(&out, f.e);
    assert_string_equal(out.text, wanted);
    fixture again = read_text(out.text, false);
    assert_true(oi_expr_equal(f.e, again.e));
    done(&again);
    oi_buf_free(&out);
    done(&f);
}

static void printing(void **state)
{
    (void)state;
    prints("B * D", "B*D");
    prints("((B)+1) * D", "(B+1)*D");
    prints("(a*b)+c", "a*b+c");
    prints("a-(b-c)", "a-(b-c)");
    prints("(a-b)-c", "a-b-c");
    prints("a+(b+c)", "a+(b+c)");
    prints("a*(b/c)", "a*(b/c)");
    prints("a/b%c", "a/b%c");
    prints("-x", "-x");
    prints("-(a+b)", "-(a+b)");
    prints("- 3", "-3");
    prints("--3", "--3");
    prints("-0", "0");
    prints("2 - -3", "2--3");
    prints("-9223372036854775808", "-9223372036854775808");
    prints("18446744073709551615", "18446744073709551615");
    prints("0xff + 0b11 + 1_0", "255+3+10");
}

static bool sizes(void *ctx, const char *name, int64_t *out)
{
    (void)ctx;
    *out = name[0] == 'B' ? 7 : name[0] == 'M' ? INT64_MAX : INT64_MIN;
    return strchr("BMN", name[0]) != NULL;
}

static void evaluates(const char *text, bool exact, oi_eval_status wanted, int64_t value)
{
    fixture f = read_text(text, false);
    int64_t v = 0;
    const oi_expr *at = NULL;
    assert_non_null(f.e);
    assert_int_equal(oi_expr_eval(f.e, exact, sizes, NULL, &v, &at), wanted);
    if (wanted == OI_EVAL_OK)
        assert_true(v == value);
    else
        assert_non_null(at);
    done(&f);
}

static void arithmetic(void **state)
{
    (void)state;
    evaluates("1+2*3-4", false, OI_EVAL_OK, 3);
    evaluates("B/2", false, OI_EVAL_OK, 3);
    evaluates("-B/2", false, OI_EVAL_OK, -4);
    evaluates("B/-2", false, OI_EVAL_OK, -4);
    evaluates("-B%3", false, OI_EVAL_OK, 2);
    evaluates("B% -3", false, OI_EVAL_OK, -2);
    evaluates("B%7", false, OI_EVAL_OK, 0);
    evaluates("B/2", true, OI_EVAL_INEXACT, 0);
    evaluates("B/7", true, OI_EVAL_OK, 1);
    evaluates("B/0", false, OI_EVAL_DIV_ZERO, 0);
    evaluates("B%0", false, OI_EVAL_DIV_ZERO, 0);
    evaluates("M+1", false, OI_EVAL_OVERFLOW, 0);
    evaluates("N-1", false, OI_EVAL_OVERFLOW, 0);
    evaluates("M*2", false, OI_EVAL_OVERFLOW, 0);
    evaluates("-N", false, OI_EVAL_OVERFLOW, 0);
    evaluates("N/-1", false, OI_EVAL_OVERFLOW, 0);
    evaluates("N% -1", false, OI_EVAL_OK, 0);
    evaluates("18446744073709551615", false, OI_EVAL_OVERFLOW, 0);
    evaluates("unknown+1", false, OI_EVAL_UNKNOWN, 0);
    evaluates("1+unknown", false, OI_EVAL_UNKNOWN, 0);
    fixture f = read_text("?", true);
    int64_t v;
    assert_int_equal(oi_expr_eval(f.e, true, NULL, NULL, &v, NULL), OI_EVAL_UNKNOWN);
    done(&f);
}

static void refused(const char *text, const char *fragment)
{
    fixture f = read_text(text, false);
    assert_null(f.e);
    assert_int_equal(oi_diag_errors(f.d), 1);
    assert_string_equal(oi_diag_at(f.d, 0).pointer, "/x");
    if (!strstr(oi_diag_at(f.d, 0).text, fragment))
        fail_msg("'%s' lacks '%s'", oi_diag_at(f.d, 0).text, fragment);
    done(&f);
}

static void malformed(void **state)
{
    (void)state;
    refused("", "found the end");
    refused("1+", "found the end");
    refused("(1", "expected ')'");
    refused("1 2", "expected the end");
    refused("?", "found '?'");
    refused("$", "expected an integer");
    refused("99999999999999999999", "64 bits");
    refused("-9223372036854775809", "below -2^63");
    char deep[1200] = "";
    memset(deep, '(', 600);
    refused(deep, "too deep");
    memset(deep, '-', 600);
    refused(deep, "too deep");
    for (int i = 0; i < 500; i++)
        memcpy(deep + 2 * i, "1+", 3);
    deep[999] = '\0';
    refused(deep, "too deep");
}

static void equality(void **state)
{
    (void)state;
    const char *const texts[] = {"1", "-1", "a", "b", "a+1", "a-1", "-a"};
    for (size_t i = 0; i < OI_COUNT(texts); i++)
        for (size_t j = 0; j < OI_COUNT(texts); j++) {
            fixture a = read_text(texts[i], false), b = read_text(texts[j], false);
            assert_int_equal(oi_expr_equal(a.e, b.e), i == j);
            done(&a);
            done(&b);
        }
    assert_true(oi_expr_equal(NULL, NULL));
    fixture q = read_text("?", true);
    assert_false(oi_expr_equal(q.e, NULL));
    assert_true(oi_expr_equal(q.e, q.e));
    done(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printing),
        cmocka_unit_test(arithmetic),
        cmocka_unit_test(malformed),
        cmocka_unit_test(equality),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
