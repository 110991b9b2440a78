/* json_test.c: what the reader takes and refuses, and that values survive json-c. */
#include "base/base.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <cmocka.h>

static struct json_object *good(const char *text)
{
    struct json_object *j = NULL;
    oi_diag *d = oi_diag_new();
    oi_status status = oi_json_parse("t.json", text, strlen(text), &j, d);
    if (status != OI_OK)
        print_error("%s: %s\n", text, oi_diag_at(d, 0).text);
    assert_int_equal(status, OI_OK);
    assert_int_equal(oi_diag_count(d), 0);
    oi_diag_free(d);
    return j;
}

static void bad_n(const char *text, size_t n, uint32_t line, uint32_t col, const char *message)
{
    struct json_object *j = NULL;
    oi_diag *d = oi_diag_new();
    assert_int_equal(oi_json_parse("t.json", text, n, &j, d), OI_ERR_INPUT);
    assert_null(j);
    assert_int_equal(oi_diag_errors(d), 1);
    oi_message m = oi_diag_at(d, 0);
    if (!strstr(m.text, message) || m.line != line || m.col != col)
        print_error("'%s' at %u:%u for %s\n", m.text, m.line, m.col, text);
    assert_non_null(strstr(m.text, message));
    assert_int_equal(m.line, line);
    assert_int_equal(m.col, col);
    assert_string_equal(m.code, "E001");
    assert_string_equal(m.file, "t.json");
    oi_diag_free(d);
}

static void bad(const char *text, uint32_t line, uint32_t col, const char *message)
{
    bad_n(text, strlen(text), line, col, message);
}

static void accepts(void **state)
{
    (void)state;
    static const char *const texts[] = {"null",
                                        "true",
                                        "false",
                                        "0",
                                        "-0",
                                        "12",
                                        "-9223372036854775808",
                                        "18446744073709551615",
                                        "1.5",
                                        "-0.0",
                                        "1e5",
                                        "1E+5",
                                        "1e-5",
                                        "0.1e1",
                                        "\"\"",
                                        "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                                        "\"\\u00e9\\ud83d\\ude00\"",
                                        "\"é😀\"",
                                        "[]",
                                        "{}",
                                        " [ ] ",
                                        "\t{\r\n}\n",
                                        "[1,2,[3]]",
                                        "{\"a\":1,\"b\":{\"a\":2}}",
                                        "\xef\xbb\xbf{}",
                                        "{\"\":1}",
                                        "\"\x7f\"",
                                        "1.7976931348623157e308"};
    for (size_t i = 0; i < OI_COUNT(texts); i++)
        oi_json_free(good(texts[i]));
}

static void refuses(void **state)
{
    (void)state;
    bad("", 1, 1, "the text ends here, but a value was wanted");
    bad("  \n ", 2, 2, "the text ends here");
    bad("NaN", 1, 1, "found 'NaN', wanted a value");
    bad("[Infinity]", 1, 2, "found 'Infinity', wanted a value");
    bad("-Infinity", 1, 2, "wanted a digit after '-'");
    bad("nul", 1, 1, "found 'nul', wanted a value");
    bad("True", 1, 1, "found 'True', wanted a value");
    bad("+1", 1, 1, "found '+1', wanted a value");
    bad("01", 1, 1, "may not begin with 0");
    bad("-01", 1, 1, "may not begin with 0");
    bad("1.", 1, 3, "wanted");
    bad(".5", 1, 1, "found '.5'");
    bad("1e", 1, 3, "a digit of the exponent");
    bad("1e+", 1, 4, "a digit of the exponent");
    bad("0x10", 1, 2, "wanted the end of the text");
    bad("[1,]", 1, 4, "found ']', wanted a value");
    bad("[1 2]", 1, 4, "found '2', wanted ',' or ']'");
    bad("[1", 1, 3, "',' or ']'");
    bad("{\"a\":1,}", 1, 8, "wanted a key in quotes");
    bad("{a:1}", 1, 2, "found 'a', wanted a key");
    bad("{\"a\" 1}", 1, 6, "wanted ':' after a key");
    bad("{\"a\":1 \"b\":2}", 1, 8, "',' or '}'");
    bad("{\"a\":}", 1, 6, "wanted a value");
    bad("{'a':1}", 1, 2, "found ''', wanted a key");
    bad("[1] // no", 1, 5, "found '/', wanted the end of the text");
    bad("[/* no */1]", 1, 2, "found '/'");
    bad("1 2", 1, 3, "wanted the end of the text");
    bad("{}\n{}", 2, 1, "wanted the end of the text");
    bad("\xef\xbb\xbf\xef\xbb\xbf{}", 1, 1, "wanted a value");
}

static void refuses_strings(void **state)
{
    (void)state;
    bad("\"abc", 1, 1, "no closing");
    bad("\"a\nb\"", 1, 3, "control character U+000A");
    bad("[\"\\x\"]", 1, 4, "found 'x', wanted an escape");
    bad("\"\\u12\"", 1, 4, "four hexadecimal digits");
    bad("\"\\u12g4\"", 1, 4, "four hexadecimal digits");
    bad("\"\\ud800\"", 1, 2, "lone surrogate");
    bad("\"\\udc00\"", 1, 2, "lone surrogate");
    bad("\"\\ud800\\u0041\"", 1, 2, "lone surrogate");
    bad("\"\\ud800\\ud800\"", 1, 2, "lone surrogate");
    bad("{\"a\\u0000b\":1}", 1, 4, "\\u0000");
    bad("\"\\", 1, 3, "the rest of an escape");
    bad_n("\"\0\"", 3, 1, 2, "control character U+0000");
    bad_n("1\0", 2, 1, 2, "NUL byte");
    bad("[\"é\xff\"]", 1, 4, "byte 0xFF is not valid UTF-8");
    bad("\xc0\x80", 1, 1, "not valid UTF-8");
    bad("\"\xed\xa0\x80\"", 1, 2, "not valid UTF-8");
}

static void refuses_numbers(void **state)
{
    (void)state;
    bad("18446744073709551616", 1, 1, "integer does not fit in 64 bits");
    bad("-9223372036854775809", 1, 1, "integer does not fit in 64 bits");
    bad("[1,\n  123456789012345678901234567890]", 2, 3, "integer does not fit in 64 bits");
    bad("1e309", 1, 1, "does not fit in a 64-bit float");
    bad("-1e309", 1, 1, "does not fit in a 64-bit float");
}

static void duplicate_keys(void **state)
{
    (void)state;
    bad("{\"a\":1,\n \"b\":2, \"a\":3}", 2, 9, "the key \"a\" occurs twice");
    bad("{\"a\":1,\"\\u0061\":3}", 1, 8, "the key \"a\" occurs twice");
    oi_json_free(good("[{\"a\":1},{\"a\":1}]"));
    oi_json_free(good("{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":1}}"));
    oi_json_free(good("{\"a\":1,\"A\":1,\"a \":1}"));
    /* many keys: the map takes over, and one level in between must not disturb it */
    oi_buf b = {0};
    oi_buf_puts(&b, "{");
    for (int i = 0; i < 100000; i++)
        oi_buf_printf(&b, "\"key%d\":{\"key1\":0},", i);
    size_t n = b.n;
    oi_buf_puts(&b, "\"last\":1}");
    oi_json_free(good(b.text));
    b.n = n;
    oi_buf_puts(&b, "\"key77777\":1}");
    bad(b.text, 1, (uint32_t)n + 1, "the key \"key77777\" occurs twice");
    oi_buf_free(&b);
}

static void depth(void **state)
{
    (void)state;
    char text[2 * OI_JSON_DEPTH + 16];
    for (int extra = 0; extra < 2; extra++) {
        size_t n = OI_JSON_DEPTH + (size_t)extra;
        memset(text, '[', n);
        memset(text + n, ']', n);
        text[2 * n] = '\0';
        if (extra) {
            bad(text, 1, OI_JSON_DEPTH + 1, "nested deeper than 256 levels");
        } else {
            oi_json_free(good(text));
            text[n] = '1'; /* a scalar at the bottom */
            memset(text + n + 1, ']', n);
            text[2 * n + 1] = '\0';
            oi_json_free(good(text));
        }
    }
    char *deep = malloc(1000001);
    memset(deep, '[', 1000000);
    deep[1000000] = '\0';
    bad(deep, 1, OI_JSON_DEPTH + 1, "nested deeper");
    free(deep);
}

static void values_survive(void **state)
{
    (void)state;
    struct json_object *j = good("[18446744073709551615,-9223372036854775808,9223372036854775808,"
                                 "0.1,1e23,5e-324,-2.5,9007199254740993.0,3]");
    assert_true(json_object_get_uint64(json_object_array_get_idx(j, 0)) == UINT64_MAX);
    assert_true(json_object_get_int64(json_object_array_get_idx(j, 1)) == INT64_MIN);
    assert_true(json_object_get_uint64(json_object_array_get_idx(j, 2)) == 1ull << 63);
    static const double want[] = {18446744073709551615.0,
                                  -9223372036854775808.0,
                                  9223372036854775808.0,
                                  0.1,
                                  1e23,
                                  5e-324,
                                  -2.5,
                                  9007199254740992.0,
                                  3};
    for (size_t i = 0; i < OI_COUNT(want); i++)
        assert_true(oi_json_f64(json_object_array_get_idx(j, i)) == want[i]);
    assert_true(oi_json_f32(json_object_array_get_idx(j, 3)) == 0.1f);
    assert_true(oi_json_f32(json_object_array_get_idx(j, 6)) == -2.5f);
    assert_true(oi_json_f32(json_object_array_get_idx(j, 0)) == 18446744073709551616.0f);
    assert_true(oi_json_f32(json_object_array_get_idx(j, 1)) == -9223372036854775808.0f);
    assert_true(oi_json_f64(j) == 0 && oi_json_f64(NULL) == 0);
    oi_json_free(j);
    j = good("{\"a\\u00e9\\ud83d\\ude00\":\"x\\u00e9\"}");
    assert_string_equal(json_object_get_string(json_object_object_get(j, "aé😀")), "xé");
    oi_json_free(j);
    j = good("null");
    assert_null(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts),         cmocka_unit_test(refuses),
        cmocka_unit_test(refuses_strings), cmocka_unit_test(refuses_numbers),
        cmocka_unit_test(duplicate_keys),  cmocka_unit_test(depth),
        cmocka_unit_test(values_survive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
