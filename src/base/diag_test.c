/* diag_test.c: what messages keep and how they are shown. */
#include "base/base.h"

#include <stdlib.h>
#include <cmocka.h>

static char *printed(const oi_diag *d, bool color)
{
    FILE *f = tmpfile();
    assert_non_null(f);
    oi_diag_print(d, f, color);
    size_t n = (size_t)ftell(f);
    char *text = calloc(1, n + 1);
    rewind(f);
    assert_int_equal(fread(text, 1, n, f), n);
    fclose(f);
    return text;
}

static void prints(const oi_diag *d, const char *want)
{
    char *text = printed(d, false);
    assert_string_equal(text, want);
    free(text);
}

static const char program[] = "block entry {\n\top add(h, bias) >> h;\n}\n";

static void caret_note_hint(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    oi_diag *d = oi_diag_new();
    oi_source s;
    oi_source_init(a, &s, "mlp.oi", program, strlen(program));
    oi_place at = {.source = &s, .span = oi_source_span(&s, 18, 21)};
    assert_int_equal(oi_diag_error(d, at, "E051", "add: cannot broadcast %s with %s", "[B]", "[3]"),
                     OI_ERR_INPUT);
    oi_diag_hint(d, "did you mean '%s'?", "mul");
    oi_place decl = {.source = &s, .span = oi_source_span(&s, 0, 5)};
    oi_diag_note(d, decl, "declared here");
    assert_int_equal(
        oi_diag_warn(d, (oi_place){.file = "x.json", .pointer = "/a/b"}, "W100", "odd"), OI_OK);
    oi_arena_free(a); /* a diag outlives its source */
    prints(d, "mlp.oi:2:5: error[E051]: add: cannot broadcast [B] with [3]\n"
              "    2 |  op add(h, bias) >> h;\n"
              "      |     ^~~\n"
              "      = hint: did you mean 'mul'?\n"
              "mlp.oi:1:1: note: declared here\n"
              "    1 | block entry {\n"
              "      | ^~~~~\n"
              "x.json:/a/b: warning[W100]: odd\n");
    assert_int_equal(oi_diag_count(d), 3);
    assert_int_equal(oi_diag_errors(d), 1);
    assert_int_equal(oi_diag_warnings(d), 1);
    char *color = printed(d, true);
    assert_non_null(strstr(color, "\033[1;31merror[E051]:\033[0m "));
    free(color);
    oi_diag_clear(d);
    assert_int_equal(oi_diag_count(d) + oi_diag_errors(d) + oi_diag_warnings(d), 0);
    prints(d, "");
    oi_diag_free(d);
}

static void as_json(void **state)
{
    (void)state;
    oi_diag *d = oi_diag_new();
    char *text = NULL;
    oi_diag_error(d, (oi_place){.file = "a\"b", .pointer = "/x"}, "E1", "found\n'%s'", "é");
    oi_diag_hint(d, "h");
    assert_int_equal(oi_diag_to_json(d, &text), OI_OK);
    assert_string_equal(text, "{\n  \"errors\": 1,\n  \"messages\": [\n    {\n"
                              "      \"code\": \"E1\",\n      \"col\": 0,\n"
                              "      \"file\": \"a\\\"b\",\n      \"hint\": \"h\",\n"
                              "      \"len\": 1,\n      \"line\": 0,\n"
                              "      \"pointer\": \"/x\",\n      \"severity\": \"error\",\n"
                              "      \"text\": \"found\\n'é'\"\n    }\n  ],\n"
                              "  \"warnings\": 0\n}\n");
    oi_free(text);
    assert_int_equal(oi_diag_to_json(NULL, &text), OI_OK);
    assert_string_equal(text, "{\n  \"errors\": 0,\n  \"messages\": [],\n  \"warnings\": 0\n}\n");
    oi_free(text);
    oi_diag_free(d);
}

static void limit(void **state)
{
    (void)state;
    oi_diag *d = oi_diag_new();
    for (int i = 0; i < 25; i++) {
        assert_int_equal(oi_diag_full(d), i >= 20);
        oi_diag_error(d, (oi_place){.file = "f"}, "E9", "number %d", i);
        oi_diag_note(d, (oi_place){0}, "note %d", i); /* shares the fate of its error */
        oi_diag_hint(d, "hint %d", i);
        oi_diag_warn(d, (oi_place){0}, "W9", "warning %d", i);
    }
    assert_int_equal(oi_diag_errors(d), 25);
    assert_int_equal(oi_diag_warnings(d), 25);
    assert_int_equal(oi_diag_count(d), 60);
    assert_string_equal(oi_diag_at(d, 57).text, "number 19");
    char *text = printed(d, false);
    assert_non_null(strstr(text, "stopped after 20 errors\n"));
    assert_non_null(strstr(text, "5 more warnings not shown\n"));
    assert_null(strstr(text, "number 20"));
    assert_null(strstr(text, "hint 20"));
    free(text);
    oi_diag_clear(d);
    oi_diag_set_limit(d, 0);
    oi_diag_error(d, (oi_place){0}, "", "one");
    assert_true(oi_diag_full(d));
    oi_diag_free(d);
}

/* The shown part of the line under the message, and the column of its caret. */
static size_t shown(oi_source *s, size_t at, char *line, size_t room)
{
    oi_diag *d = oi_diag_new();
    oi_diag_error(d, (oi_place){.source = s, .span = oi_source_span(s, at, at + 4)}, "E1", "x");
    char *text = printed(d, false);
    char *from = strstr(text, " | ") + 3, *end = strchr(from, '\n');
    snprintf(line, room, "%.*s", (int)(end - from), from);
    char *mark = strstr(end, " | ") + 3;
    size_t col = strspn(mark, " ");
    assert_int_equal(mark[col], '^');
    free(text);
    oi_diag_free(d);
    return col;
}

/* Long lines are cut around the place, in code points, so that the caret still stands under it. */
static void long_lines(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    char line[1000];
    oi_source s;
    char *text = malloc(3000);
    for (int i = 0; i < 1000; i++)
        memcpy(text + 3 * i, "€", 3);
    memcpy(text + 3 * 700, "HERE", 4);
    memset(text + 3 * 700 + 4, '.', 3000 - 3 * 700 - 4);
    oi_source_init(a, &s, "t", text, 3000);
    size_t col = shown(&s, 3 * 700, line, sizeof line);
    assert_memory_equal(line + 3 * col, "HERE", 4);
    assert_true(strlen(line) < 160 * 3);
    memcpy(text, "HERE", 4);
    memset(text + 4, '.', 2996);
    oi_source_init(a, &s, "t", text, 3000);
    col = shown(&s, 0, line, sizeof line);
    assert_int_equal(col, 0);
    assert_int_equal(strlen(line), 160);
    memcpy(text + 2996, "HERE", 4);
    oi_source_init(a, &s, "t", text, 3000);
    col = shown(&s, 2996, line, sizeof line);
    assert_memory_equal(line + col, "HERE", 4);
    free(text);
    oi_arena_free(a);
}

static void one_copy_of_a_line(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    oi_diag *d = oi_diag_new();
    oi_source s;
    oi_source_init(a, &s, "t", program, strlen(program));
    for (size_t at = 0; at < 3; at++)
        oi_diag_error(d, (oi_place){.source = &s, .span = oi_source_span(&s, at, at + 1)}, "", "x");
    assert_ptr_equal(oi_diag_at(d, 0).source, oi_diag_at(d, 2).source);
    oi_diag_free(d);
    oi_arena_free(a);
}

/* Text of the input must not command the terminal. */
static void control_characters(void **state)
{
    (void)state;
    oi_diag *d = oi_diag_new();
    oi_diag_error(d, (oi_place){.file = "a\033b", .pointer = "/\x7f"}, "", "x\033[2Jy");
    prints(d, "a?b:/?: error: x?[2Jy\n");
    oi_diag_free(d);
}

/* A message that brings its own prefix is the whole line; its file is still there for JSON. */
static void whole_lines(void **state)
{
    (void)state;
    oi_diag *d = oi_diag_new();
    oi_place at = {.file = "m.oinf", .is_line = true};
    assert_int_equal(oi_diag_error(d, at, "", "oinf: %s: bad\033 (offset 5)", "m.oinf"),
                     OI_ERR_INPUT);
    prints(d, "oinf: m.oinf: bad? (offset 5)\n");
    assert_string_equal(oi_diag_at(d, 0).file, "m.oinf");
    oi_diag_free(d);
}

static void without_a_diag(void **state)
{
    (void)state;
    assert_int_equal(oi_diag_error(NULL, (oi_place){0}, "", "x"), OI_ERR_INPUT);
    assert_int_equal(oi_diag_warn(NULL, (oi_place){0}, "", "x"), OI_OK);
    assert_int_equal(oi_diag_env(NULL, "f", "x"), OI_ERR_ENV);
    oi_diag_note(NULL, (oi_place){0}, "x");
    oi_diag_hint(NULL, "x");
    oi_diag_print(NULL, stderr, false);
    assert_false(oi_diag_full(NULL));
    assert_int_equal(oi_diag_count(NULL), 0);
    assert_string_equal(oi_diag_at(NULL, 0).text, "");
    oi_diag_free(NULL);
    oi_diag *d = oi_diag_new();
    oi_diag_hint(d, "nothing to belong to");
    assert_int_equal(oi_diag_env(d, "f.oi", "cannot open: %s", "why"), OI_ERR_ENV);
    prints(d, "f.oi: error: cannot open: why\n");
    oi_diag_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(caret_note_hint),
        cmocka_unit_test(as_json),
        cmocka_unit_test(limit),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(one_copy_of_a_line),
        cmocka_unit_test(control_characters),
        cmocka_unit_test(whole_lines),
        cmocka_unit_test(without_a_diag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
