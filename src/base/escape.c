/* escape.c: text from outside in the languages that we write. One function per language; nothing
 * from a package, a graph, a device file or a command line reaches an output in another way.
 * Comments and pictures show what cannot stand in them as <U+XXXX>; strings keep every character.
 * Bytes that are no UTF-8 become U+FFFD. */
#include "base/base.h"

#define REPLACEMENT 0xfffdu

/* The next character, and on to the one after it. */
static uint32_t next(const char **text, const char *end)
{
    uint32_t c;
    const size_t n = oi_utf8_decode(*text, (size_t)(end - *text), &c);
    *text += n ? n : 1;
    return n ? c : REPLACEMENT;
}

/* Characters that end a line or that readers do not see: they reorder or hide the text around. */
static bool is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Copies the characters up to the next one that may need more than to be copied. */
static void put_plain(oi_buf *b, const char **text, const char *end)
{
    const char *from = *text;
    while (*text < end && (*text)[0] >= ' ' && (*text)[0] <= '~' && !strchr("\"\\&<>'", (*text)[0]))
        ++*text;
    if (*text > from)
        oi_buf_add(b, from, (size_t)(*text - from));
}

static void put_point(oi_buf *b, uint32_t c)
{
    char bytes[4];
    oi_buf_add(b, bytes, oi_utf8_encode(c, bytes));
}

static void put_visible(oi_buf *b, uint32_t c)
{
    if (is_hidden(c))
        oi_buf_printf(b, "<U+%04X>", c);
    else
        put_point(b, c);
}

void oi_put_c_comment(oi_buf *b, const char *text)
{
    const char *end = text + strlen(text);
    uint32_t before = '*'; /* the comment's own may stand right before the text, or after it */
    while (text < end) {
        uint32_t c = next(&text, end);
        if ((before == '*' && c == '/') || (before == '/' && c == '*'))
            oi_buf_putc(b, ' ');
        put_visible(b, c);
        before = c;
    }
    if (before == '/' || before == '\\')
        oi_buf_putc(b, ' ');
}

void oi_put_line_comment(oi_buf *b, const char *text)
{
    const char *end = text + strlen(text);
    uint32_t c = ' ';
    while (text < end)
        put_visible(b, c = next(&text, end));
    if (c == '\\') /* would go on in the next line */
        oi_buf_putc(b, ' ');
}

void oi_put_c_string(oi_buf *b, const char *text)
{
    oi_buf_putc(b, '"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\' || c == '?') /* "??/" is a backslash to some compilers */
            oi_buf_printf(b, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            oi_buf_printf(b, "\\%03o", c);
        else
            oi_buf_putc(b, (char)c);
    }
    oi_buf_putc(b, '"');
}

/* -- pictures and pages -- */

static void put_entity(oi_buf *b, uint32_t c)
{
    switch (c) {
    case '&': oi_buf_puts(b, "&amp;"); break;
    case '<': oi_buf_puts(b, "&lt;"); break;
    case '>': oi_buf_puts(b, "&gt;"); break;
    case '"': oi_buf_puts(b, "&quot;"); break;
    case '\'': oi_buf_puts(b, "&#39;"); break;
    case '\t':
    case '\n': oi_buf_putc(b, (char)c); break;
    default:
        if (is_hidden(c))
            oi_buf_printf(b, "&lt;U+%04X&gt;", c);
        else if (c == 0xfffe || c == 0xffff) /* XML has no such characters */
            put_point(b, REPLACEMENT);
        else
            put_point(b, c);
    }
}

void oi_put_xml(oi_buf *b, const char *text)
{
    const char *end = text + strlen(text);
    for (put_plain(b, &text, end); text < end; put_plain(b, &text, end))
        put_entity(b, next(&text, end));
}

void oi_put_dot(oi_buf *b, const char *text)
{
    oi_buf_putc(b, '"');
    for (const char *end = text + strlen(text); text < end;) {
        uint32_t c = next(&text, end);
        if (c == '"' || c == '\\')
            oi_buf_printf(b, "\\%c", (char)c);
        else if (c == '&') /* Graphviz knows entities */
            oi_buf_puts(b, "&amp;");
        else
            put_visible(b, c);
    }
    oi_buf_putc(b, '"');
}

/* -- JSON -- */

void oi_put_json(oi_buf *b, const char *text, size_t n)
{
    static const char letters[32] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    oi_buf_putc(b, '"');
    const char *end = n ? text + n : text;
    for (put_plain(b, &text, end); text < end; put_plain(b, &text, end)) {
        uint32_t c = next(&text, end);
        if (c == '"' || c == '\\')
            oi_buf_printf(b, "\\%c", (char)c);
        else if (c < 0x20 && letters[c])
            oi_buf_printf(b, "\\%c", letters[c]);
        else if (is_hidden(c))
            oi_buf_printf(b, "\\u%04x", c);
        else
            put_point(b, c);
    }
    oi_buf_putc(b, '"');
}

const char *oi_escaped(oi_arena *a, oi_put_text *put, const char *text)
{
    oi_buf b = {0};
    put(&b, text);
    return b.n ? oi_buf_to_arena(&b, a) : "";
}
