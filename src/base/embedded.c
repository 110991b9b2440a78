/* embedded.c: positions of a graph that stands in a C file (OI_GRAPH). The preprocessor hands over
 * the macro's arguments as one line without comments. The C file, where it can be read, has the
 * same characters in the same order, except for white space, comments and continued lines: the k-th
 * significant character of the text is the k-th one between the parentheses of the call. */
#include "base/base.h"

#include <stdlib.h>
#include <sys/stat.h>

#define FILE_LIMIT (16u << 20) /* bytes of a C file */

/* The significant characters of a text, one by one. */
typedef struct scanner {
    const char *at, *end;
    bool in_string;
} scanner;

static bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Bytes of the white space, comment or continued line at s->at; 0 at a significant character. */
static size_t gap(const scanner *s)
{
    const char *p = s->at;
    size_t left = (size_t)(s->end - p);
    if (*p == ' ' || (*p >= '\t' && *p <= '\r'))
        return 1;
    if (*p == '\\' && left > 1 && p[1] == '\n')
        return 2;
    if (*p == '\\' && left > 2 && p[1] == '\r' && p[2] == '\n')
        return 3;
    if (s->in_string || *p != '/' || left < 2 || (p[1] != '/' && p[1] != '*'))
        return 0;
    const bool is_line = p[1] == '/';
    for (size_t i = 2; i < left; i++)
        if (is_line ? p[i] == '\n' : i > 2 && p[i - 1] == '*' && p[i] == '/')
            return i + 1;
    return left;
}

static void skip_gaps(scanner *s)
{
    size_t n;
    while (s->at < s->end && (n = gap(s)) != 0)
        s->at += n;
}

/* Past the significant character at s->at. */
static void pass(scanner *s)
{
    if (*s->at == '"')
        s->in_string = !s->in_string;
    else if (s->in_string && *s->at == '\\' && s->end - s->at > 1)
        s->at++;
    s->at++;
    skip_gaps(s);
}

static scanner scan(const char *text, size_t n)
{
    scanner s = {text, text + n, false};
    skip_gaps(&s);
    return s;
}

/* -- the call -- */

/* Whether the call whose arguments begin at `from` has these. */
static bool has_arguments(const char *from, const char *end, scanner want)
{
    scanner s = scan(from, (size_t)(end - from));
    while (want.at < want.end && s.at < s.end && *s.at == *want.at) {
        pass(&s);
        pass(&want);
    }
    return want.at == want.end && s.at < s.end && *s.at == ')';
}

/* The arguments of the last call that begins at or before `line` and has this text. Compilers
 * differ in the line of a call over several lines: it is the first one or the last one. */
static const char *find_arguments(const char *file, size_t n, uint32_t line, scanner want)
{
    static const char name[] = "OI_GRAPH";
    const size_t name_length = sizeof name - 1;
    const char *found = NULL, *end = file + n;
    for (const char *p = file; p < end && line; p++) {
        line -= *p == '\n';
        if ((size_t)(end - p) <= name_length || memcmp(p, name, name_length) != 0 ||
            (p > file && is_word(p[-1])))
            continue;
        const scanner s = scan(p + name_length, (size_t)(end - p) - name_length);
        if (s.at < end && *s.at == '(' && has_arguments(s.at + 1, end, want))
            found = s.at + 1;
    }
    return found;
}

/* -- positions -- */

static uint32_t code_points(const char *from, const char *to)
{
    uint32_t n = 0;
    for (; from < to; from++)
        n += ((unsigned char)*from & 0xc0) != 0x80;
    return n;
}

/* Where byte `at` of the text stands in the file: the same number of significant characters ahead.
 */
static const char *in_file(const oi_source *s, const char *arguments, const char *end,
                           const char *at)
{
    scanner text = scan(s->text, s->size);
    scanner file = scan(arguments, (size_t)(end - arguments));
    while (text.at < text.end && text.at < at && file.at < file.end) {
        pass(&text);
        pass(&file);
    }
    return file.at;
}

/* The byte of a column, of the text's lines. */
static const char *byte_of(const oi_source *s, uint32_t line, uint32_t col)
{
    const oi_bytes b = oi_source_line(s, line);
    if (!b.ptr)
        return NULL;
    const char *p = (const char *)b.ptr, *end = p + b.size;
    while (col > 1 && p < end)
        for (p++, col--; p < end && ((unsigned char)*p & 0xc0) == 0x80; p++)
            ;
    return p;
}

static void point_at(oi_call_place *e, const char *file, size_t n, const char *from, const char *to)
{
    const char *begin = file, *end = file + n;
    uint32_t line = 1;
    for (const char *p = file; p < from; p++)
        if (*p == '\n')
            line++, begin = p + 1;
    const char *stop = memchr(begin, '\n', (size_t)(end - begin));
    stop = stop ? stop : end;
    if (stop > begin && stop[-1] == '\r')
        stop--;
    to = to < stop ? to : stop;
    const uint32_t len = to > from ? code_points(from, to) : 1;
    e->span = (oi_span){line, code_points(begin, from) + 1, len};
    e->line = (oi_bytes){.ptr = (const uint8_t *)begin, .size = (size_t)(stop - begin)};
}

bool oi_call_find(oi_call_place *e, const oi_source *s, oi_span span)
{
    *e = (oi_call_place){.file = NULL};
    struct stat st;
    size_t n;
    const char *from = byte_of(s, span.line, span.col);
    const char *last = byte_of(s, span.line, span.col + (span.len ? span.len - 1 : 0));
    if (!from || stat(s->name, &st) != 0 || !S_ISREG(st.st_mode) ||
        oi_file_read(s->name, FILE_LIMIT, &e->file, &n, NULL) != OI_OK)
        return false;
    const char *end = e->file + n;
    const char *arguments = find_arguments(e->file, n, s->first_line, scan(s->text, s->size));
    if (!arguments) {
        oi_call_free(e);
        return false;
    }
    const char *to = in_file(s, arguments, end, last);
    point_at(e, e->file, n, in_file(s, arguments, end, from), to < end ? to + 1 : to);
    return true;
}

void oi_call_free(oi_call_place *e)
{
    oi_free(e->file);
    e->file = NULL;
}
