/* helpergen.c: the helpers of src/kernel/scalar.h as text, one function at a time, so that emitted
 * C carries along just those it calls.
 *
 *     helpergen OUT.c < scalar.h after the preprocessor
 *
 * Top-level items end at a `;` or a closing brace outside all others. Macros leave a function on
 * one line, so it is laid out again: a line per statement, four spaces per brace. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_all(FILE *f, size_t *n)
{
    size_t cap = 1 << 16;
    char *text = malloc(cap);
    *n = 0;
    while (text && !feof(f)) {
        if (*n + 4096 > cap)
            text = realloc(text, cap *= 2);
        if (text)
            *n += fread(text + *n, 1, 4095, f);
    }
    if (text)
        text[*n] = '\0';
    return text;
}

/* -- output: a C string literal per line -- */

static void put_char(FILE *out, char c)
{
    if (c == '"' || c == '\\')
        fputc('\\', out);
    fputc(c, out);
}

typedef struct layout {
    FILE *out;
    int depth, parens;
    bool at_start; /* of a line */
} layout;

static void end_line(layout *l)
{
    if (!l->at_start)
        fputs("\\n\"\n", l->out);
    l->at_start = true;
}

static void put(layout *l, char c)
{
    if (l->at_start) {
        if (c == ' ')
            return;
        fputs("     \"", l->out);
        for (int i = 0; i < 4 * l->depth; i++)
            fputc(' ', l->out);
        l->at_start = false;
    }
    put_char(l->out, c);
}

static bool is_typedef(const char *item)
{
    return strncmp(item, "typedef ", 8) == 0;
}

static void put_item(FILE *out, const char *item, size_t n)
{
    layout l = {out, 0, 0, true};
    bool is_space = false, is_value = false; /* inside braces of an initialiser */
    for (size_t i = 0; i < n; i++) {
        char c = item[i];
        if (c == ' ' || c == '\n' || c == '\t') {
            is_space = true;
            continue;
        }
        if (c == '}' && !is_value) {
            end_line(&l);
            l.depth--;
        }
        if (c == '{' && !is_value && i > 0) {
            is_value = strrchr("=,{", item[i - 1 - (item[i - 1] == ' ')]) != NULL;
            if (!is_value && l.depth == 0)
                end_line(&l);
        }
        if (is_space && !l.at_start)
            put(&l, ' ');
        is_space = false;
        put(&l, c);
        l.parens += (c == '(') - (c == ')');
        if (c == '{' && !is_value) {
            end_line(&l);
            l.depth++;
        } else if ((c == ';' && l.parens == 0) || (c == '}' && !is_value && !is_typedef(item))) {
            end_line(&l);
        } else if (c == '}' && is_value) {
            is_value = false;
        }
    }
    end_line(&l);
}

/* The name that an item declares: the last word before the first ( or [ or =, of a type the last.
 */
static void put_name(FILE *out, const char *item, size_t n)
{
    size_t end = 0;
    while (end < n && (is_typedef(item) ? end + 1 < n : !strchr("([=", item[end])))
        end++;
    while (end > 0 && item[end - 1] == ' ')
        end--;
    size_t start = end;
    while (start > 0 &&
           (item[start - 1] == '_' || (item[start - 1] >= 'a' && item[start - 1] <= 'z') ||
            (item[start - 1] >= 'A' && item[start - 1] <= 'Z') ||
            (item[start - 1] >= '0' && item[start - 1] <= '9')))
        start--;
    fprintf(out, "    {\"%.*s\",\n", (int)(end - start), item + start);
}

static size_t item_length(const char *text)
{
    int depth = 0;
    for (size_t i = 0; text[i]; i++) {
        depth += (text[i] == '{') - (text[i] == '}');
        if (depth == 0 && (text[i] == ';' || (text[i] == '}' && !is_typedef(text))))
            return i + 1 + (text[i] == '}' && text[i + 1] == ';');
    }
    return 0;
}

int main(int argc, char **argv)
{
    size_t n;
    char *text = read_all(stdin, &n);
    FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (!text || !out) {
        fprintf(stderr, "usage: helpergen OUT.c < scalar.h after the preprocessor\n");
        return 2;
    }
    fputs("/* generated from src/kernel/scalar.h by tools/helpergen.c, do not edit */\n"
          "#include \"emit/emit.h\"\n\nconst oi_helper oi_helpers[] = {\n",
          out);
    const char *p = text;
    for (;;) {
        while (*p == ' ' || *p == '\n' || *p == '\t' || *p == ';')
            p++;
        size_t len = item_length(p);
        if (len == 0)
            break;
        put_name(out, p, len);
        put_item(out, p, len);
        fputs("    },\n", out);
        p += len;
    }
    fputs("    {NULL, NULL},\n};\n", out);
    free(text);
    return fclose(out) == 0 ? 0 : 1;
}
