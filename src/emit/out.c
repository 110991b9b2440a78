/* out.c: lines of source text; indentation is four spaces per open brace. */
#include "emit/emit.h"

static void indent(oi_out *o)
{
    oi_buf_fill(&o->buf, ' ', (size_t)4 * o->depth);
}

static void add(oi_out *o, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char small[512], *text = n < (int)sizeof small ? small : malloc((size_t)n + 1);
    if (text) {
        vsnprintf(text, (size_t)n + 1, fmt, again);
        oi_buf_add(&o->buf, text, (size_t)n);
    } else {
        o->buf.failed = true;
    }
    if (text != small)
        free(text);
    va_end(again);
}

void oi_out_line(oi_out *o, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (*fmt) {
        indent(o);
        add(o, fmt, args);
    }
    oi_buf_putc(&o->buf, '\n');
    va_end(args);
}

void oi_out_call(oi_out *o, const char *text)
{
    const char *open = strchr(strncmp(text, "if (", 4) == 0 ? text + 4 : text, '(');
    size_t room = 100, left = (size_t)4 * o->depth, below = left + 8;
    if (open && open - text < 40)
        below = left + (size_t)(open - text) + 1;
    int depth = strncmp(text, "if (", 4) == 0 ? -1 : 0; /* of brackets: 1 within the call itself */
    for (indent(o); strlen(text) + left > room; left = below) {
        const char *cut = NULL;
        for (const char *p = text; *p; p++) {
            depth += (*p == '(') - (*p == ')');
            if (depth == 1 && p[0] == ',' && p[1] == ' ' &&
                (!cut || (size_t)(p - text) + 1 + left <= room))
                cut = p;
        }
        depth = 1;
        if (!cut)
            break;
        oi_buf_add(&o->buf, text, (size_t)(cut - text) + 1);
        oi_buf_putc(&o->buf, '\n');
        oi_buf_fill(&o->buf, ' ', below);
        text = cut + 2;
    }
    oi_buf_puts(&o->buf, text);
    oi_buf_putc(&o->buf, '\n');
}

void oi_out_open(oi_out *o, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    indent(o);
    add(o, fmt, args);
    va_end(args);
    oi_buf_puts(&o->buf, " {\n");
    o->depth++;
}

void oi_out_brace(oi_out *o)
{
    indent(o);
    oi_buf_puts(&o->buf, "{\n");
    o->depth++;
}

void oi_out_close(oi_out *o, const char *after)
{
    o->depth--;
    indent(o);
    oi_buf_putc(&o->buf, '}');
    oi_buf_puts(&o->buf, after);
    oi_buf_putc(&o->buf, '\n');
}

void oi_out_text(oi_out *o, const char *text)
{
    oi_buf_puts(&o->buf, text);
}

void oi_out_named(oi_out *o, const char *text, const char *name)
{
    for (const char *at; (at = strstr(text, "NAME")) != NULL; text = at + 4) {
        oi_buf_add(&o->buf, text, (size_t)(at - text));
        oi_buf_puts(&o->buf, name);
    }
    oi_buf_puts(&o->buf, text);
}
