/* jsonw_test.c: the written form, byte for byte. */
#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

static void written(oi_jsonw *w, const char *want)
{
    char *text = NULL;
    assert_int_equal(oi_buf_take(w->out, &text), OI_OK);
    assert_string_equal(text, want);
    oi_free(text);
}

static void pretty(void **state)
{
    (void)state;
    for (int compact = 0; compact < 2; compact++) {
        oi_buf b = {0};
        oi_jsonw w = {.out = &b, .compact = compact};
        oi_jsonw_open(&w, '{');
        oi_jsonw_key(&w, "a"), oi_jsonw_open(&w, '['), oi_jsonw_close(&w, ']');
        oi_jsonw_key(&w, "b"), oi_jsonw_open(&w, '{'), oi_jsonw_close(&w, '}');
        oi_jsonw_key(&w, "c"), oi_jsonw_open(&w, '[');
        oi_jsonw_u64(&w, UINT64_MAX), oi_jsonw_i64(&w, INT64_MIN);
        oi_jsonw_open(&w, '['), oi_jsonw_null(&w), oi_jsonw_close(&w, ']');
        oi_jsonw_close(&w, ']');
        oi_jsonw_key(&w, "d"), oi_jsonw_bool(&w, true);
        oi_jsonw_key(&w, "da"), oi_jsonw_bool(&w, false);
        oi_jsonw_close(&w, '}');
        written(&w, compact ? "{\"a\":[],\"b\":{},\"c\":[18446744073709551615,"
                              "-9223372036854775808,[null]],\"d\":true,\"da\":false}"
                            : "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n"
                              "    18446744073709551615,\n    -9223372036854775808,\n"
                              "    [\n      null\n    ]\n  ],\n"
                              "  \"d\": true,\n  \"da\": false\n}");
    }
}

static void strings(void **state)
{
    (void)state;
    oi_buf b = {0};
    oi_jsonw w = {.out = &b, .compact = true};
    oi_jsonw_open(&w, '[');
    oi_jsonw_str(&w, "");
    oi_jsonw_str(&w, "\"\\/\b\f\n\r\t\x01\x1f\x7fé😀");
    oi_jsonw_strn(&w, "a\0b", 3);
    oi_jsonw_close(&w, ']');
    written(&w, "[\"\",\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007fé😀\",\"a\\u0000b\"]");
}

static void floats(void **state)
{
    (void)state;
    oi_buf b = {0};
    oi_jsonw w = {.out = &b, .compact = true};
    oi_jsonw_open(&w, '[');
    oi_jsonw_f64(&w, 0.1), oi_jsonw_f64(&w, 5), oi_jsonw_f32(&w, 0.1f), oi_jsonw_f64(&w, 0.1f);
    oi_jsonw_f64(&w, INFINITY), oi_jsonw_f64(&w, -INFINITY), oi_jsonw_f32(&w, NAN);
    oi_jsonw_close(&w, ']');
    written(&w, "[0.1,5.0,0.1,0.10000000149011612,\"inf\",\"-inf\",\"nan\"]");
}

static void trees(void **state)
{
    (void)state;
    static const char text[] = "{\"b\":[1,-2,18446744073709551615,-9223372036854775808],\"a\":{},"
                               "\"B\":[true,null,\"\\u00e9\\n\"],\"\\\"q\":1e-7,\"é\":1E2,"
                               "\"ab\":0.30000000000000004}";
    struct json_object *j = NULL;
    assert_int_equal(oi_json_parse("t", text, strlen(text), &j, NULL), OI_OK);
    oi_buf b = {0};
    oi_jsonw w = {.out = &b, .compact = true};
    oi_jsonw_tree(&w, j);
    oi_json_free(j);
    written(&w, "{\"\\\"q\":1e-7,\"B\":[true,null,\"é\\n\"],\"a\":{},\"ab\":0.30000000000000004,"
                "\"b\":[1,-2,18446744073709551615,-9223372036854775808],\"é\":100.0}");
}

/* As deep as the reader goes; one deeper fails as a whole instead of writing what cannot be read.
 */
static void deep(void **state)
{
    (void)state;
    oi_buf b = {0};
    for (int extra = 0; extra < 2; extra++) {
        oi_jsonw w = {.out = &b, .compact = true};
        for (int i = 0; i < OI_JSON_DEPTH + extra; i++)
            oi_jsonw_open(&w, '[');
        for (int i = 0; i < OI_JSON_DEPTH + extra; i++)
            oi_jsonw_close(&w, ']');
        char *text = NULL;
        assert_int_equal(oi_buf_take(&b, &text), extra ? OI_ERR_ENV : OI_OK);
        struct json_object *j = NULL;
        if (!extra)
            assert_int_equal(oi_json_parse("t", text, strlen(text), &j, NULL), OI_OK);
        oi_json_free(j);
        oi_free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pretty), cmocka_unit_test(strings), cmocka_unit_test(floats),
        cmocka_unit_test(trees),  cmocka_unit_test(deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
