/* source_test.c: positions in a text, and UTF-8. */
#include "base/base.h"

#include <stdlib.h>
#include <cmocka.h>

static void span_is(const oi_source *s, size_t start, size_t end, uint32_t line, uint32_t col,
                    uint32_t len)
{
    oi_span span = oi_source_span(s, start, end);
    assert_int_equal(span.line, line);
    assert_int_equal(span.col, col);
    assert_int_equal(span.len, len);
}

static void line_is(const oi_source *s, uint32_t line, const char *text)
{
    oi_bytes b = oi_source_line(s, line);
    assert_int_equal(b.size, strlen(text));
    assert_memory_equal(b.ptr, text, b.size);
}

static void positions(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    oi_source s;
    const char *text = "ab\ncd\r\n\né😀x";
    oi_source_init(a, &s, "t", text, strlen(text));
    span_is(&s, 0, 2, 1, 1, 2);
    span_is(&s, 1, 5, 1, 2, 1); /* cut at the line's end */
    span_is(&s, 2, 3, 1, 3, 1); /* the newline itself */
    span_is(&s, 3, 5, 2, 1, 2);
    span_is(&s, 4, 7, 2, 2, 1); /* \r\n is not underlined */
    span_is(&s, 7, 8, 3, 1, 1);
    span_is(&s, 8, 10, 4, 1, 1);
    span_is(&s, 10, 15, 4, 2, 2);
    span_is(&s, 14, 15, 4, 3, 1);
    span_is(&s, strlen(text), strlen(text), 4, 4, 1);
    line_is(&s, 1, "ab");
    line_is(&s, 2, "cd");
    line_is(&s, 3, "");
    line_is(&s, 4, "é😀x");
    assert_null(oi_source_line(&s, 0).ptr);
    assert_null(oi_source_line(&s, 5).ptr);
    s.first_line = 100; /* text that stands inside another file */
    span_is(&s, 3, 5, 101, 1, 2);
    line_is(&s, 101, "cd");
    oi_arena_free(a);
}

static void byte_order_mark(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    oi_source s;
    const char *text = "\xef\xbb\xbfx y\nz";
    oi_source_init(a, &s, "t", text, strlen(text));
    span_is(&s, 3, 4, 1, 1, 1);
    span_is(&s, 5, 6, 1, 3, 1);
    span_is(&s, 7, 8, 2, 1, 1);
    line_is(&s, 1, "x y");
    oi_source_init(a, &s, "t", "", 0);
    span_is(&s, 0, 0, 1, 1, 1);
    line_is(&s, 1, "");
    oi_arena_free(a);
}

/* Columns in a line of a megabyte, by the marks and by counting. */
static void very_long_line(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    size_t n = 1000000;
    char *text = malloc(n);
    for (size_t i = 0; i < n; i++)
        text[i] = "a\xc3\xa9"[i % 3];
    memcpy(text, "abc\nd\n", 6);
    oi_source s;
    oi_source_init(a, &s, "t", text, n);
    for (size_t at = 6; at < n; at += 3 * 331) {
        uint32_t col = 0;
        for (size_t i = 6; i < at; i++)
            col += ((unsigned char)text[i] & 0xc0) != 0x80;
        span_is(&s, at, n, 3, col + 1, (uint32_t)((n - at) / 3 * 2 + (n - at) % 3));
    }
    free(text);
    oi_arena_free(a);
}

static void every_scalar(void **state)
{
    (void)state;
    char text[4];
    for (uint32_t c = 0; c < 0x110010; c++) {
        size_t n = oi_utf8_encode(c, text);
        bool scalar = c < 0xd800 || (c > 0xdfff && c < 0x110000);
        assert_int_equal(n > 0, scalar);
        uint32_t back = 0;
        if (scalar) {
            assert_int_equal(oi_utf8_decode(text, n, &back), n);
            assert_int_equal(back, c);
            assert_int_equal(oi_utf8_decode(text, n - 1, &back), 0);
        }
    }
}

static void malformed(void **state)
{
    (void)state;
    static const char *const texts[] = {"\x80",
                                        "\xc0\x80",
                                        "\xc1\xbf",
                                        "\xe0\x80\x80",
                                        "\xed\xa0\x80",
                                        "\xf0\x80\x80\x80",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "\xff",
                                        "\xc3",
                                        "\xe2\x82",
                                        "\xc3x"};
    for (size_t i = 0; i < OI_COUNT(texts); i++) {
        size_t bad = 99;
        char text[16];
        snprintf(text, sizeof text, "é%s", texts[i]);
        assert_false(oi_utf8_valid(text, strlen(text), &bad));
        assert_int_equal(bad, 2);
        assert_false(oi_utf8_valid(text, strlen(text), NULL));
    }
    assert_true(oi_utf8_valid("aé€😀", 10, NULL));
    assert_true(oi_utf8_valid("", 0, NULL));
    assert_int_equal(oi_utf8_fit("abc", 5), 3);
    assert_int_equal(oi_utf8_fit("abc", 2), 2);
    assert_int_equal(oi_utf8_fit("aé€", 5), 3);
    assert_int_equal(oi_utf8_fit("aé€", 6), 6);
    assert_int_equal(oi_utf8_fit("€", 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions),      cmocka_unit_test(byte_order_mark),
        cmocka_unit_test(very_long_line), cmocka_unit_test(every_scalar),
        cmocka_unit_test(malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
