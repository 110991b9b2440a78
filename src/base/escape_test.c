/* escape_test.c: what the texts become, and that none of them ends what it stands in. */
#include "base/base.h"

#include <stdlib.h>
#include <cmocka.h>

static void same(oi_put_text *put, const char *text, const char *want)
{
    oi_buf b = {0};
    char *got = NULL;
    put(&b, text);
    assert_int_equal(oi_buf_take(&b, &got), OI_OK);
    assert_string_equal(got, want);
    oi_free(got);
}

static void comments(void **state)
{
    (void)state;
    same(oi_put_c_comment, "op add(x, y) >> z;", "op add(x, y) >> z;");
    same(oi_put_c_comment, "*/ int x; /*", "* / int x; / *");
    same(oi_put_c_comment, "/*/", " / * / ");
    same(oi_put_c_comment, "a\nb\x1b[2J", "a<U+000A>b<U+001B>[2J");
    same(oi_put_c_comment, "\xe2\x80\xae", "<U+202E>");
    same(oi_put_c_comment, "caf\xc3\xa9 \xff.", "caf\xc3\xa9 \xef\xbf\xbd.");
    same(oi_put_c_comment, "a\\", "a\\ ");
    same(oi_put_line_comment, "a\nall:", "a<U+000A>all:");
    same(oi_put_line_comment, "a\\", "a\\ ");
}

static void strings(void **state)
{
    (void)state;
    same(oi_put_c_string, "a\"b\\c?\?/\n\xff", "\"a\\\"b\\\\c\\?\\?/\\012\\377\"");
    same(oi_put_dot, "a\"\\\n&", "\"a\\\"\\\\<U+000A>&amp;\"");
    same(oi_put_xml, "<a b='\"'>&\n\x01\xff",
         "&lt;a b=&#39;&quot;&#39;&gt;&amp;\n&lt;U+0001&gt;\xef\xbf\xbd");
}

static void json(void **state)
{
    (void)state;
    oi_buf b = {0};
    char *got = NULL;
    oi_put_json(&b, "\"\\\b\f\n\r\t\x01\x7f\0\xff", 11);
    oi_put_json(&b, NULL, 0);
    assert_int_equal(oi_buf_take(&b, &got), OI_OK);
    assert_string_equal(got, "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u007f\\u0000\xef\xbf\xbd\"\"\"");
    oi_free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments),
        cmocka_unit_test(strings),
        cmocka_unit_test(json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
