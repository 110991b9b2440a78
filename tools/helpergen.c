/* helpergen.c: helpers and tuned bodies as text, one function at a time, so that emitted C carries
 * along just those it calls.
 *
 *     helpergen OUT.c SCALAR.i [BODY.h | CUSTOM.c]...
 *
 * SCALAR.i is src/body/scalar.h after the preprocessor. Top-level items end at a `;` or a closing
 * brace outside all others. Macros leave a function on one line, so it is laid out again: a line
 * per statement, four spaces per brace. Bodies are taken as people wrote them: blocks between
 * empty lines, with the comment above; the folder below body/ says for which instructions. Of a
 * .c file only functions that are `static inline` are taken. */
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

static void put_scalars(FILE *out, const char *p)
{
    for (;;) {
        while (*p == ' ' || *p == '\n' || *p == '\t' || *p == ';')
            p++;
        size_t len = item_length(p);
        if (len == 0)
            break;
        put_name(out, p, len);
        put_item(out, p, len);
        fputs("     , \"\"},\n", out);
        p += len;
    }
}

/* -- recipes -- */

static bool is_word(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static const char *skip_comment(const char *p)
{
    while (strncmp(p, "/*", 2) == 0) {
        const char *end = strstr(p, "*/");
        for (p = end ? end + 2 : p + strlen(p); *p == '\n' || *p == ' ';)
            p++;
    }
    return p;
}

/* A function is called by the first word of ours before a parenthesis, else the item by the last
 * word of ours outside braces, or the first inside (an enum). */
static size_t name_of(const char *p, const char *end, const char **name)
{
    size_t found = 0;
    int depth = 0;
    for (const char *q = skip_comment(p); q < end; q++) {
        depth += (*q == '{') - (*q == '}');
        size_t len = 0;
        while (q + len < end && is_word(q[len]))
            len++;
        if (len > 3 && (strncmp(q, "oi_", 3) == 0 || strncmp(q, "OI_", 3) == 0)) {
            if (depth == 0 || !found) {
                *name = q;
                found = len;
            }
            if (q[len] == '(' && depth == 0)
                return len;
        }
        q += len ? len - 1 : 0;
    }
    return found;
}

static void put_block(FILE *out, const char *p, const char *end, const char *isa, bool is_source)
{
    const char *name = NULL, *code = skip_comment(p);
    if (is_source && strncmp(code, "static inline ", 14) != 0)
        return;
    size_t len = *code == '#' || code >= end ? 0 : name_of(p, end, &name);
    if (!len)
        return;
    fprintf(out, "    {\"%.*s\",\n     \"", (int)len, name);
    for (; p < end; p++)
        if (*p == '\n')
            fputs("\\n\"\n     \"", out);
        else
            put_char(out, *p);
    fprintf(out, "\\n\",\n     \"%s\"},\n", isa);
}

static void put_bodies(FILE *out, const char *path, const char *text)
{
    char isa[64] = "";
    const char *folder = strstr(path, "body/"), *slash = strrchr(path, '/');
    for (const char *p = folder; p && (p = strstr(p, "body/")) != NULL;)
        folder = p, p += 5;
    if (folder && slash > folder + 5 && (size_t)(slash - folder - 5) < sizeof isa)
        snprintf(isa, sizeof isa, "%.*s", (int)(slash - folder - 5), folder + 5);
    const bool is_source = strcmp(path + strlen(path) - 2, ".c") == 0;
    for (const char *p = text; *p;) {
        while (*p == '\n')
            p++;
        const char *end = strstr(p, "\n\n"), *last;
        for (last = end; last && last[2] == ' '; last = strstr(last + 2, "\n\n"))
            ; /* an empty line inside a function */
        end = last ? last : p + strlen(p);
        while (end > p && end[-1] == '\n')
            end--;
        put_block(out, p, end, isa, is_source);
        p = end;
    }
}

static char *read_file(const char *path)
{
    size_t n;
    FILE *f = fopen(path, "r");
    char *text = f ? read_all(f, &n) : NULL;
    if (!text)
        fprintf(stderr, "helpergen: cannot read %s\n", path);
    if (f)
        fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    FILE *out = argc > 2 ? fopen(argv[1], "w") : NULL;
    if (!out) {
        fprintf(stderr, "usage: helpergen OUT.c SCALAR.i [BODY.h | CUSTOM.c]...\n");
        return 2;
    }
    fputs("/* generated from src/body/scalar.h, src/kernel/custom/ and src/body/ by "
          "tools/helpergen.c, do not edit "
          "*/\n"
          "#include \"emit/emit.h\"\n\nconst oi_helper oi_helpers[] = {\n",
          out);
    for (int i = 2; i < argc; i++) {
        char *text = read_file(argv[i]);
        if (!text)
            return 1;
        if (i == 2)
            put_scalars(out, text);
        else
            put_bodies(out, argv[i], text);
        free(text);
    }
    fputs("    {NULL, NULL, NULL},\n};\n", out);
    return fclose(out) == 0 ? 0 : 1;
}
