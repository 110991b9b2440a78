/* meaning_test.c: the language of the registry's rows: what is refused, by which words, and what
 * simplifies to what. */
#include "kernel/meaning.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const char *const modes[] = {"up", "down", NULL};
static const oi_m_name names[] = {
    {.name = "x", .type = OI_F32, .spell = "x[i]"},
    {.name = "n", .type = OI_I64, .spell = "n"},
    {.name = "yes", .type = OI_BOOL, .is_bound = true, .value = 1, .spell = "yes"},
    {.name = "no", .type = OI_BOOL, .is_bound = true, .value = 0, .spell = "no"},
    {.name = "flag", .type = OI_BOOL, .spell = "flag"},
    {.name = "mode", .type = OI_I32, .words = modes, .spell = "mode"},
    {.name = "fixed", .type = OI_I32, .words = modes, .is_bound = true, .value = 1, .spell = "?"},
    {.name = "one", .type = OI_F32, .is_number = true, .number = 1, .spell = "one"},
    {.name = "b", .type = OI_I8, .spell = "b"},
    {.name = "five", .type = OI_I8, .is_number = true, .number = 5, .spell = "five"},
    {.name = "low", .type = OI_I8, .limit = -1, .spell = "low"},
    {.name = "gone", .type = OI_F32, .is_absent = true, .spell = "?"},
};

static bool understand(const char *text, oi_dtype want, oi_meaning *m)
{
    return oi_meaning_parse(text, m) && oi_meaning_bind(m, names, COUNT(names), want);
}

static void refuse(const char *text, const char *why)
{
    oi_meaning m;
    if (understand(text, OI_F32, &m))
        fail_msg("understood: %s", text);
    if (!strstr(m.error, why))
        fail_msg("'%s' is refused with '%s', not '%s'", text, m.error, why);
}

static void test_malformed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"", "wanted '('"},
        {"   ", "wanted '('"},
        {"x +", "wanted '('"},
        {"+ x", "wanted '('"},
        {"x * * x", "wanted '('"},
        {"(x", "wanted ')'"},
        {"((x)", "wanted ')'"},
        {"x)", "not understood: ')'"},
        {"x x", "not understood: 'x'"},
        {"x 1", "not understood: '1'"},
        {"x ? x : x", "not understood: '? x : x'"},
        {"x = 1", "wanted ';'"},
        {"r = x", "wanted ';'"},
        {"r = ; r", "wanted '('"},
        {"r = x; ", "wanted '('"},
        {"= x; x", "wanted '('"},
        {"nonsense(x)", "unknown helper 'nonsense'"},
        {"max(x)", "wrong number of arguments for 'max'"},
        {"max(x, x, x)", "wrong number of arguments for 'max'"},
        {"fma(x, x, x, x)", "wrong number of arguments for 'fma'"},
        {"lowest(x)", "wrong number of arguments for 'lowest'"},
        {"max(x x)", "wanted ','"},
        {"max(x,", "wanted '('"},
        {"max(, x)", "wanted '('"},
        {"max(x, x", "wanted ','"},
        {"mode == \"up", "wanted '\"'"},
        {"mode == \"sideways\"", "no such word 'sideways'"},
        {"x == \"up\"", "no such word 'up'"},
        {"what + x", "unknown name 'what'"},
        {"given", "unknown name 'given'"},
        {"x + n", "arguments of different types: 'add'"},
        {"select(flag, x, n)", "arguments of different types: 'select'"},
        {"x && flag", "arguments of different types: 'and'"},
        {"x $ x", "not understood"},
        {"\xff", "wanted '('"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++)
        refuse(wrong[i].text, wrong[i].why);
}

/* Texts of any length end in an error, not in a full array or a full stack. */
static void test_limits(void **state)
{
    (void)state;
    char text[4096];
    memset(text, '(', sizeof text);
    text[sizeof text - 1] = '\0';
    refuse(text, "too deep");
    memset(text, '-', sizeof text - 1);
    refuse(text, "too deep");
    size_t n = 0;
    for (int i = 0; i < OI_MEANING_NODES; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%sx", i ? " + " : "");
    refuse(text, "too long");
    n = 0;
    for (int i = 0; i <= OI_MEANING_LETS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "r%d = x; ", i);
    snprintf(text + n, sizeof text - n, "x");
    refuse(text, "too many definitions");
}

static void expect(const char *text, oi_dtype want, const char *printed)
{
    oi_meaning m;
    char out[512] = "";
    oi_m_text t = {out, 0, sizeof out, false};
    if (!understand(text, want, &m))
        fail_msg("%s: %s", text, m.error);
    assert_true(oi_meaning_print(&m, m.root, names, COUNT(names), &oi_dialect_c, &t));
    if (strcmp(out, printed) != 0)
        fail_msg("%s became %s, not %s", text, out, printed);
}

static void test_simplified(void **state)
{
    (void)state;
    expect("x", OI_F32, "x[i]");
    expect("(((x)))", OI_F32, "x[i]");
    expect("select(yes, x, x + x)", OI_F32, "x[i]");
    expect("select(no || !yes, x + x, x)", OI_F32, "x[i]");
    expect("select(yes && !no, x, x * x)", OI_F32, "x[i]");
    expect("select(fixed == \"down\", x, x * x)", OI_F32, "x[i]");
    expect("select(fixed != \"up\", x, x * x)", OI_F32, "x[i]");
    expect("select(given(gone), gone, x)", OI_F32, "x[i]");
    expect("select(given(x), x, gone)", OI_F32, "x[i]");
    expect("one * x", OI_F32, "x[i]");
    expect("min(max(x, -inf), inf)", OI_F32, "x[i]");
    expect("select(2 > 1, x, 0)", OI_F32, "x[i]");
    expect("select(one <= 0, 0, x)", OI_F32, "x[i]");
}

/* Integers fold, and so do limits of their types. */
static void test_integers(void **state)
{
    (void)state;
    expect("n + 0", OI_I64, "n");
    expect("0 + n * 1", OI_I64, "n");
    expect("n * 0", OI_I64, "0");
    expect("n - 0", OI_I64, "n");
    expect("2 * 3 + n", OI_I64, "(int64_t)((uint64_t)6 + (uint64_t)n)");
    expect("shl(n, 0)", OI_I64, "n");
    expect("min(max(b, lowest()), 127)", OI_I8, "b");
    expect("min(max(b, -128), five)", OI_I8, "oi_min_i8(b, five)");
    expect("max(min(b, 127), -127)", OI_I8, "oi_max_i8(b, -127)");
    expect("min(b, low)", OI_I8, "oi_min_i8(b, low)");
    expect("max(b, low)", OI_I8, "b");
    expect("select(five == 5 && b < 0, 0, five * b)", OI_I8,
           "(b < 0) ? 0 : ((int8_t)((uint32_t)five * (uint32_t)b))");
    expect("select(b >= 0, b, select(b < 0, 0, 0 * b))", OI_I8, "(b >= 0) ? b : 0");
    expect("wrap(n)", OI_I64, "n");
    expect("sat(b)", OI_I8, "b");
    expect("x + 0", OI_F32, "x[i] + 0.0f"); /* -0 + 0 is 0 */
    expect("x * 0", OI_F32, "x[i] * 0.0f"); /* NaN stays */
}

static void test_uses(void **state)
{
    (void)state;
    oi_meaning m;
    assert_true(understand("r = floor(x); select(flag, r, r + x)", OI_F32, &m));
    assert_true(oi_meaning_uses(&m, "x"));
    assert_true(oi_meaning_uses(&m, "flag"));
    assert_false(oi_meaning_uses(&m, "n"));
    assert_true(understand("select(yes, x, gone)", OI_F32, &m));
    assert_false(oi_meaning_uses(&m, "gone"));
    assert_false(oi_meaning_uses(&m, "yes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_malformed),  cmocka_unit_test(test_limits),
        cmocka_unit_test(test_simplified), cmocka_unit_test(test_integers),
        cmocka_unit_test(test_uses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
