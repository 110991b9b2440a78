/* diag.c: messages with a place. A diag copies everything it is given, so it outlives the source
 * and the graph it speaks of. When memory runs out a message is dropped, never its count. */
#include "base/base.h"

#include <stdlib.h>

#define DEFAULT_LIMIT 20u /* what a person reads before fixing; also caps the warnings kept */

struct oi_diag {
    oi_arena *arena;
    OI_VEC(oi_message) messages;
    size_t errors, warnings, limit;
    bool dropped_last; /* notes and hints follow the fate of their message */
};

oi_diag *oi_diag_new(void)
{
    oi_diag *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->limit = DEFAULT_LIMIT;
    d->arena = oi_arena_new();
    if (!d->arena) {
        free(d);
        return NULL;
    }
    return d;
}

void oi_diag_free(oi_diag *d)
{
    if (!d)
        return;
    oi_arena_free(d->arena);
    free(d);
}

void oi_diag_clear(oi_diag *d)
{
    oi_arena *fresh = oi_arena_new();
    if (fresh) {
        oi_arena_free(d->arena);
        d->arena = fresh;
    }
    d->messages.at = NULL;
    d->messages.n = d->messages.cap = 0;
    d->errors = d->warnings = 0;
}

void oi_diag_set_limit(oi_diag *d, size_t max_errors)
{
    d->limit = max_errors ? max_errors : 1;
}

size_t oi_diag_count(const oi_diag *d)
{
    return d ? d->messages.n : 0;
}

size_t oi_diag_errors(const oi_diag *d)
{
    return d ? d->errors : 0;
}

size_t oi_diag_warnings(const oi_diag *d)
{
    return d ? d->warnings : 0;
}

oi_message oi_diag_at(const oi_diag *d, size_t i)
{
    if (i < oi_diag_count(d))
        return d->messages.at[i];
    return (oi_message){
        .code = "", .file = "", .pointer = "", .text = "", .source = "", .hint = ""};
}

bool oi_diag_full(const oi_diag *d)
{
    return d && d->errors >= d->limit;
}

/* The part of a source line that is shown: a line long beyond reading is cut around the column.
 * Counts code points, because the caret does. */
#define SHOWN 160u

static size_t skip_points(const char *text, size_t n, size_t points)
{
    size_t i = 0;
    for (; i < n && points; points--)
        for (i++; i < n && ((unsigned char)text[i] & 0xc0) == 0x80; i++)
            ;
    return i;
}

static const char *shown_line(oi_arena *a, const char *line, uint32_t *col)
{
    size_t n = strlen(line), start = 0;
    if (*col > SHOWN / 2 && skip_points(line, n, SHOWN) < n) {
        start = skip_points(line, n, *col - SHOWN / 2);
        *col = SHOWN / 2;
    }
    char *text = oi_arena_text(a, line + start, skip_points(line + start, n - start, SHOWN));
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' '; /* a tab would move the caret, an escape could do anything */
    return text;
}

typedef struct add_args {
    oi_diag *d;
    oi_severity severity;
    oi_place at;
    const char *code, *fmt;
    va_list *args;
    const oi_call_place *call; /* where the place is in a C file; NULL: the source knows */
    bool is_known; /* a warning that was given before, by another check of the same graph */
} add_args;

static bool is_same(const oi_message *a, const oi_message *b)
{
    return a->severity == b->severity && a->line == b->line && a->col == b->col &&
           strcmp(a->code, b->code) == 0 && strcmp(a->text, b->text) == 0 &&
           strcmp(a->file, b->file) == 0 && strcmp(a->pointer, b->pointer) == 0;
}

static bool is_known(const oi_diag *d, const oi_message *m)
{
    for (size_t i = 0; i < d->messages.n; i++)
        if (is_same(&d->messages.at[i], m))
            return true;
    return false;
}

/* Many messages may point into one huge line: they share one copy. */
static const char *copy_line(oi_diag *d, const char *file, uint32_t line, oi_bytes text)
{
    for (size_t i = d->messages.n; i-- > 0;) {
        const oi_message *m = &d->messages.at[i];
        if (m->line == line && strcmp(m->file, file) == 0 && strlen(m->source) == text.size &&
            memcmp(m->source, text.ptr, text.size) == 0)
            return m->source;
    }
    return oi_arena_text(d->arena, (const char *)text.ptr, text.size);
}

static void add_message(void *ctx)
{
    add_args *x = ctx;
    oi_arena *a = x->d->arena;
    const oi_source *src = x->at.source;
    const char *file = src ? src->name : x->at.file ? x->at.file : "";
    oi_message m = {.severity = x->severity,
                    .code = oi_arena_text(a, x->code, strlen(x->code)),
                    .file = oi_arena_text(a, file, strlen(file)),
                    .line = x->at.span.line,
                    .col = x->at.span.col,
                    .len = x->at.span.len ? x->at.span.len : 1,
                    .pointer = "",
                    .source = "",
                    .hint = "",
                    .is_line = x->at.is_line};
    if (!m.line && x->at.pointer)
        m.pointer = oi_arena_text(a, x->at.pointer, strlen(x->at.pointer));
    if (m.line && src) {
        oi_bytes line = x->call ? x->call->line : oi_source_line(src, m.line);
        if (line.ptr)
            m.source = copy_line(x->d, file, m.line, line);
    }
    m.text = oi_arena_vprintf(a, x->fmt, *x->args);
    if (m.line && src && src->is_embedded && !x->call)
        m.text = oi_arena_printf(a, "%s (column %u of the text of OI_GRAPH in line %u)", m.text,
                                 m.col, m.line);
    x->is_known = x->severity == OI_WARNING && is_known(x->d, &m);
    if (!x->is_known)
        *OI_PUSH(a, &x->d->messages) = m;
}

static void add(oi_diag *d, oi_severity severity, oi_place at, const char *code, const char *fmt,
                va_list args)
{
    va_list copy;
    va_copy(copy, args);
    add_args x = {d, severity, at, code, fmt, &copy, NULL, false};
    oi_call_place call = {.file = NULL};
    if (at.source && at.source->is_embedded && at.span.line &&
        oi_call_find(&call, at.source, at.span)) {
        x.at.span = call.span;
        x.call = &call;
    }
    d->dropped_last = oi_arena_guard(d->arena, add_message, &x) != OI_OK || x.is_known;
    d->warnings -= x.is_known;
    oi_call_free(&call);
    va_end(copy);
}

oi_status oi_diag_error(oi_diag *d, oi_place at, const char *code, const char *fmt, ...)
{
    if (!d)
        return OI_ERR_INPUT;
    d->dropped_last = d->errors >= d->limit;
    d->errors++;
    if (!d->dropped_last) {
        va_list args;
        va_start(args, fmt);
        add(d, OI_ERROR, at, code, fmt, args);
        va_end(args);
    }
    return OI_ERR_INPUT;
}

oi_status oi_diag_warn(oi_diag *d, oi_place at, const char *code, const char *fmt, ...)
{
    if (!d)
        return OI_OK;
    d->dropped_last = d->warnings >= d->limit;
    d->warnings++;
    if (!d->dropped_last) {
        va_list args;
        va_start(args, fmt);
        add(d, OI_WARNING, at, code, fmt, args);
        va_end(args);
    }
    return OI_OK;
}

void oi_diag_note(oi_diag *d, oi_place at, const char *fmt, ...)
{
    if (!d || d->dropped_last)
        return;
    va_list args;
    va_start(args, fmt);
    add(d, OI_NOTE, at, "", fmt, args);
    va_end(args);
}

oi_status oi_diag_env(oi_diag *d, const char *file, const char *fmt, ...)
{
    if (!d)
        return OI_ERR_ENV;
    d->errors++;
    va_list args;
    va_start(args, fmt);
    add(d, OI_ERROR, (oi_place){.file = file}, "", fmt, args);
    va_end(args);
    return OI_ERR_ENV;
}

/* Orders the messages from `first` on by position; notes stay behind their message. */
void oi_diag_sort(oi_diag *d, size_t first)
{
    if (!d)
        return;
    oi_message *m = d->messages.at;
    size_t end = d->messages.n;
    for (size_t i = first; i < end;) { /* insertion of whole groups: a few dozen at most */
        size_t next = i + 1;
        while (next < end && m[next].severity == OI_NOTE)
            next++;
        size_t to = i;
        while (to > first && (m[to - 1].severity == OI_NOTE || m[to - 1].line > m[i].line ||
                              (m[to - 1].line == m[i].line && m[to - 1].col > m[i].col)))
            to--;
        while (to < i && m[to].severity == OI_NOTE)
            to++; /* stopped inside a group that stays in front */
        for (size_t k = i; k < next; k++, to++) {
            oi_message moved = m[k];
            memmove(&m[to + 1], &m[to], (k - to) * sizeof *m);
            m[to] = moved;
        }
        i = next;
    }
}

typedef struct hint_args {
    oi_diag *d;
    const char *fmt;
    va_list *args;
} hint_args;

static void add_hint(void *ctx)
{
    hint_args *x = ctx;
    x->d->messages.at[x->d->messages.n - 1].hint = oi_arena_vprintf(x->d->arena, x->fmt, *x->args);
}

void oi_diag_hint(oi_diag *d, const char *fmt, ...)
{
    if (!d || d->dropped_last || d->messages.n == 0)
        return;
    va_list args;
    va_start(args, fmt);
    hint_args x = {d, fmt, &args};
    (void)oi_arena_guard(d->arena, add_hint, &x);
    va_end(args);
}

/* -- printing -- */

static const char *severity_name(oi_severity s)
{
    return s == OI_ERROR ? "error" : s == OI_WARNING ? "warning" : "note";
}

static const char *severity_color(oi_severity s)
{
    return s == OI_ERROR ? "\033[1;31m" : s == OI_WARNING ? "\033[1;35m" : "\033[1;36m";
}

static void print_caret(FILE *to, const oi_message *m, oi_arena *scratch, bool color)
{
    uint32_t col = m->col;
    const char *text = shown_line(scratch, m->source, &col);
    uint32_t room = col <= SHOWN ? SHOWN - col + 1 : 1;
    uint32_t len = m->len < room ? m->len : room;
    fprintf(to, "%5u | %s\n      | %*s%s^", m->line, text, (int)col - 1, "",
            color ? severity_color(m->severity) : "");
    for (uint32_t i = 1; i < len; i++)
        fputc('~', to);
    fprintf(to, "%s\n", color ? "\033[0m" : "");
}

typedef struct print_args {
    const oi_message *m;
    FILE *to;
    oi_arena *scratch;
    bool color;
} print_args;

/* Names and values of the input appear in messages; they must not command the terminal. */
static void print_safe(FILE *to, const char *text)
{
    for (; *text; text++)
        fputc(((unsigned char)*text < 0x20 && *text != '\n') || *text == 0x7f ? '?' : *text, to);
}

/* FILE:LINE:COL: error[E012]: text, then the line and caret, then the hint. */
static void print_message(void *ctx)
{
    print_args *x = ctx;
    const oi_message *m = x->m;
    if (m->is_line) {
        print_safe(x->to, m->text);
        fputc('\n', x->to);
        return;
    }
    if (x->color)
        fputs("\033[1m", x->to);
    print_safe(x->to, m->file);
    if (m->line)
        fprintf(x->to, ":%u:%u", m->line, m->col);
    else if (m->pointer[0])
        fputc(':', x->to);
    print_safe(x->to, m->pointer);
    fprintf(x->to, "%s%s%s", m->file[0] ? ": " : "", x->color ? severity_color(m->severity) : "",
            severity_name(m->severity));
    if (m->code[0])
        fprintf(x->to, "[%s]", m->code);
    fprintf(x->to, ":%s ", x->color ? "\033[0m" : "");
    print_safe(x->to, m->text);
    fputc('\n', x->to);
    if (m->line && m->source[0])
        print_caret(x->to, m, x->scratch, x->color);
    if (m->hint[0]) {
        fputs(m->line ? "      = hint: " : "  hint: ", x->to);
        print_safe(x->to, m->hint);
        fputc('\n', x->to);
    }
}

void oi_diag_print(const oi_diag *d, FILE *to, bool color)
{
    if (!d)
        return;
    oi_arena *scratch = oi_arena_new();
    for (size_t i = 0; scratch && i < d->messages.n; i++) {
        print_args x = {&d->messages.at[i], to, scratch, color};
        (void)oi_arena_guard(scratch, print_message, &x);
    }
    oi_arena_free(scratch);
    if (d->errors >= d->limit)
        fprintf(to, "stopped after %zu errors\n", d->limit);
    if (d->warnings > d->limit)
        fprintf(to, "%zu more warnings not shown\n", d->warnings - d->limit);
}

static void message_json(oi_jsonw *w, const oi_message *m)
{
    oi_jsonw_open(w, '{');
    oi_jsonw_key(w, "code"), oi_jsonw_str(w, m->code);
    oi_jsonw_key(w, "col"), oi_jsonw_u64(w, m->col);
    oi_jsonw_key(w, "file"), oi_jsonw_str(w, m->file);
    oi_jsonw_key(w, "hint"), oi_jsonw_str(w, m->hint);
    oi_jsonw_key(w, "len"), oi_jsonw_u64(w, m->len);
    oi_jsonw_key(w, "line"), oi_jsonw_u64(w, m->line);
    oi_jsonw_key(w, "pointer"), oi_jsonw_str(w, m->pointer);
    oi_jsonw_key(w, "severity"), oi_jsonw_str(w, severity_name(m->severity));
    oi_jsonw_key(w, "text"), oi_jsonw_str(w, m->text);
    oi_jsonw_close(w, '}');
}

oi_status oi_diag_to_json(const oi_diag *d, char **out)
{
    oi_buf buf = {0};
    oi_jsonw w = {.out = &buf};
    oi_jsonw_open(&w, '{');
    oi_jsonw_key(&w, "errors"), oi_jsonw_u64(&w, oi_diag_errors(d));
    oi_jsonw_key(&w, "messages"), oi_jsonw_open(&w, '[');
    for (size_t i = 0; i < oi_diag_count(d); i++)
        message_json(&w, &d->messages.at[i]);
    oi_jsonw_close(&w, ']');
    oi_jsonw_key(&w, "warnings"), oi_jsonw_u64(&w, oi_diag_warnings(d));
    oi_jsonw_close(&w, '}');
    oi_buf_putc(&buf, '\n');
    return oi_buf_take(&buf, out);
}
