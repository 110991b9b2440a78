/* cursor.c: reading tokens, and the rules that DSL text and JSON strings share: names, literals,
 * iexpr and access. Each rule's grammar stands above its function (spec/dsl.md §2). */
#include "graph/graph.h"

bool oi_cur_is(const oi_cursor *c, char punct)
{
    return c->tok->kind == OI_TOK_PUNCT + punct;
}

static bool token_is(const oi_cursor *c, const oi_token *t, const char *word)
{
    size_t n = strlen(word);
    return t->kind == OI_TOK_IDENT && t->end - t->start == n &&
           memcmp(c->source->text + t->start, word, n) == 0;
}

bool oi_cur_is_word(const oi_cursor *c, const char *word)
{
    return token_is(c, c->tok, word);
}

/* Callers write oi_cur_accept(c, ';') and oi_cur_accept(c, OI_TOK_SHR) alike. */
static int token_kind(int kind)
{
    return kind >= ' ' && kind < OI_TOK_PUNCT ? OI_TOK_PUNCT + kind : kind;
}

bool oi_cur_accept(oi_cursor *c, int kind)
{
    if (c->tok->kind != token_kind(kind))
        return false;
    c->tok++;
    return true;
}

bool oi_cur_expect(oi_cursor *c, int kind, const char *what)
{
    if (oi_cur_accept(c, kind))
        return true;
    oi_cur_unexpected(c, what);
    return false;
}

oi_span oi_cur_span(const oi_cursor *c, const oi_token *t)
{
    return c->pointer ? (oi_span){0} : oi_source_span(c->source, t->start, t->end);
}

oi_span oi_cur_span_from(const oi_cursor *c, const oi_token *first)
{
    const oi_token *last = c->tok > first ? c->tok - 1 : first;
    return c->pointer ? (oi_span){0} : oi_source_span(c->source, first->start, last->end);
}

void oi_cur_error(oi_cursor *c, const oi_token *at, const char *code, const char *fmt, ...)
{
    if (c->failed)
        return;
    c->failed = true;
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    oi_place place = {.source = c->source, .span = oi_cur_span(c, at)};
    if (c->pointer)
        place = (oi_place){.file = c->graph->origin, .pointer = c->pointer};
    if (at->kind == OI_TOK_BAD && !c->pointer)
        return; /* the lexer has spoken */
    oi_diag_error(c->diag, place, code, "%s", text);
}

void oi_cur_unexpected(oi_cursor *c, const char *wanted)
{
    const oi_token *t = c->tok;
    if (t->kind == OI_TOK_END) {
        oi_cur_error(c, t, "E001", "expected %s, found the end of the text", wanted);
        return;
    }
    int n = (int)(t->end - t->start);
    oi_cur_error(c, t, "E001", "expected %s, found '%.*s%s'", wanted, n > 40 ? 40 : n,
                 c->source->text + t->start, n > 40 ? "…" : "");
}

oi_name oi_cur_name(oi_cursor *c, const char *what)
{
    if (c->tok->kind != OI_TOK_IDENT) {
        oi_cur_unexpected(c, what);
        return (oi_name){.text = "", .span = oi_cur_span(c, c->tok)};
    }
    const oi_token *t = c->tok++;
    return (oi_name){oi_graph_intern(c->graph, c->source->text + t->start, t->end - t->start),
                     oi_cur_span(c, t)};
}

/* -- literals -- */

/* The token's text without underscores and, for floats, without the type suffix. */
static const char *plain_number(oi_cursor *c, size_t *n)
{
    const oi_token *t = c->tok;
    const char *text = c->source->text + t->start;
    size_t size = t->end - t->start;
    if (t->kind == OI_TOK_FLOAT && size > 3 && text[size - 3] == 'f')
        size -= 3;
    char *out = oi_arena_alloc(c->graph->arena, size + 1);
    for (size_t i = 0; i < size; i++)
        if (text[i] != '_')
            out[(*n)++] = text[i];
    return out;
}

bool oi_cur_int(oi_cursor *c, uint64_t *out)
{
    size_t n = 0;
    const char *text = plain_number(c, &n);
    unsigned base = n > 1 && text[1] == 'x' ? 16 : n > 1 && text[1] == 'b' ? 2 : 10;
    size_t skip = base == 10 ? 0 : 2;
    if (!oi_parse_u64(text + skip, n - skip, base, out)) {
        oi_cur_error(c, c->tok, "E001", "integer literal does not fit in 64 bits");
        return false;
    }
    c->tok++;
    return true;
}

bool oi_cur_float(oi_cursor *c, double *out)
{
    size_t n = 0;
    const char *text = plain_number(c, &n);
    if (!oi_parse_f64(text, n, out)) {
        oi_cur_error(c, c->tok, "E001", "malformed number");
        return false;
    }
    c->tok++;
    return true;
}

static int hex_digit(char ch)
{
    return ch >= '0' && ch <= '9'   ? ch - '0'
           : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
           : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                    : -1;
}

/* \u{…} and \xHH; returns the bytes consumed after the backslash, 0 when malformed. */
static size_t numeric_escape(const char *p, const char *end, uint32_t *out)
{
    const char *start = p;
    bool braces = *p == 'u';
    uint32_t value = 0, n = 0;
    p++;
    if (braces && (p == end || *p++ != '{'))
        return 0;
    for (; p < end && hex_digit(*p) >= 0 && n < (braces ? 6u : 2u); p++, n++)
        value = value << 4 | (uint32_t)hex_digit(*p);
    if (n == 0 || (!braces && (n != 2 || value > 0x7f)) || (braces && (p == end || *p++ != '}')))
        return 0;
    *out = value;
    return (size_t)(p - start);
}

static size_t escape(const char *p, const char *end, uint32_t *out)
{
    static const char from[] = "ntr0\\\"", to[] = "\n\t\r\0\\\"";
    const char *hit = p < end && *p ? strchr(from, *p) : NULL;
    if (hit) {
        *out = (unsigned char)to[hit - from];
        return 1;
    }
    return p < end && (*p == 'x' || *p == 'u') ? numeric_escape(p, end, out) : 0;
}

const char *oi_cur_string(oi_cursor *c, size_t *n)
{
    const oi_token *t = c->tok;
    const char *p = c->source->text + t->start + 1, *end = c->source->text + t->end - 1;
    char *out = oi_arena_alloc(c->graph->arena, (size_t)(end - p) + 1);
    size_t used = 0, bad = 0;
    while (p < end) {
        if (*p != '\\') {
            out[used++] = *p++;
            continue;
        }
        uint32_t code_point = 0;
        size_t eaten = escape(p + 1, end, &code_point);
        size_t wrote = eaten ? oi_utf8_encode(code_point, out + used) : 0;
        if (!wrote) {
            oi_token at = {OI_TOK_STRING, (uint32_t)(p - c->source->text), t->end - 1};
            at.end = at.start + (end - p > 1 ? 2 : 1);
            oi_cur_error(c, &at, "E001",
                         "unknown escape; known are \\n \\t \\r \\0 \\\\ \\\" \\xHH (up to 7F) "
                         "and \\u{…}");
            break;
        }
        used += wrote;
        p += eaten + 1;
    }
    if (!c->failed && !oi_utf8_valid(out, used, &bad))
        oi_cur_error(c, t, "E001", "string is not valid UTF-8");
    c->tok++;
    *n = used;
    return out;
}

/* -- iexpr -- */

static const oi_expr *new_expr(oi_cursor *c, oi_expr e, const oi_token *first)
{
    unsigned l = e.lhs ? e.lhs->depth : 0, r = e.rhs ? e.rhs->depth : 0;
    e.depth = (uint16_t)(1 + (l > r ? l : r));
    e.span = oi_cur_span_from(c, first);
    if (e.depth > OI_MAX_EXPR_DEPTH)
        oi_cur_error(c, first, "E001", "expression is too deep (more than %u levels)",
                     OI_MAX_EXPR_DEPTH);
    oi_expr *out = oi_arena_alloc(c->graph->arena, sizeof *out);
    *out = e;
    return out;
}

static const oi_expr *zero(oi_cursor *c)
{
    return new_expr(c, (oi_expr){.kind = OI_EXPR_INT}, c->tok);
}

static const oi_expr *fac(oi_cursor *c);

/* "-" fac: the minus of a literal belongs to it */
static const oi_expr *negated(oi_cursor *c)
{
    const oi_token *first = c->tok++;
    const oi_expr *e = fac(c);
    if (e->kind != OI_EXPR_INT || e->negative)
        return new_expr(c, (oi_expr){.kind = OI_EXPR_NEG, .lhs = e}, first);
    if (e->magnitude > (uint64_t)INT64_MAX + 1)
        oi_cur_error(c, first, "E001", "integer literal is below -2^63");
    return new_expr(
        c, (oi_expr){.kind = OI_EXPR_INT, .negative = e->magnitude != 0, .magnitude = e->magnitude},
        first);
}

/* fac = INT | IDENT | "-" fac | "(" iexpr ")" */
static const oi_expr *fac(oi_cursor *c)
{
    const oi_token *first = c->tok;
    if (c->failed)
        return zero(c);
    if (c->depth >= OI_MAX_EXPR_DEPTH) {
        oi_cur_error(c, first, "E001", "expression is too deep (more than %u levels)",
                     OI_MAX_EXPR_DEPTH);
        return zero(c);
    }
    const oi_expr *e = NULL;
    c->depth++;
    if (oi_cur_is(c, '-')) {
        e = negated(c);
    } else if (oi_cur_accept(c, '(')) {
        e = oi_cur_iexpr(c);
        oi_cur_expect(c, ')', "')'");
    } else if (c->tok->kind == OI_TOK_INT) {
        oi_expr lit = {.kind = OI_EXPR_INT};
        oi_cur_int(c, &lit.magnitude);
        e = new_expr(c, lit, first);
    } else if (c->tok->kind == OI_TOK_IDENT) {
        oi_name n = oi_cur_name(c, "a name");
        e = new_expr(c, (oi_expr){.kind = OI_EXPR_NAME, .name = n.text}, first);
    } else {
        oi_cur_unexpected(c, "an integer, a name or '('");
        e = zero(c);
    }
    c->depth--;
    return e;
}

/* term = fac { ("*"|"/"|"%") fac } */
static const oi_expr *term(oi_cursor *c)
{
    const oi_token *first = c->tok;
    const oi_expr *e = fac(c);
    for (;;) {
        oi_expr_kind k = oi_cur_is(c, '*')   ? OI_EXPR_MUL
                         : oi_cur_is(c, '/') ? OI_EXPR_DIV
                         : oi_cur_is(c, '%') ? OI_EXPR_MOD
                                             : OI_EXPR_INT;
        if (k == OI_EXPR_INT || c->failed)
            return e;
        c->tok++;
        const oi_expr *rhs = fac(c);
        e = new_expr(c, (oi_expr){.kind = k, .lhs = e, .rhs = rhs}, first);
    }
}

/* iexpr = term { ("+"|"-") term } */
const oi_expr *oi_cur_iexpr(oi_cursor *c)
{
    const oi_token *first = c->tok;
    const oi_expr *e = term(c);
    while ((oi_cur_is(c, '+') || oi_cur_is(c, '-')) && !c->failed) {
        oi_expr_kind k = oi_cur_is(c, '+') ? OI_EXPR_ADD : OI_EXPR_SUB;
        c->tok++;
        const oi_expr *rhs = term(c);
        e = new_expr(c, (oi_expr){.kind = k, .lhs = e, .rhs = rhs}, first);
    }
    return e;
}

/* dim = "?" | iexpr */
const oi_expr *oi_cur_dim(oi_cursor *c)
{
    const oi_token *first = c->tok;
    if (!oi_cur_accept(c, '?'))
        return oi_cur_iexpr(c);
    return new_expr(c, (oi_expr){.kind = OI_EXPR_RUNTIME}, first);
}

/* -- access -- */

/* sel = [ iexpr ] [ ".." [ iexpr ] ]; empty = blank */
static oi_sel sel(oi_cursor *c)
{
    const oi_token *first = c->tok;
    oi_sel s = {0};
    if (!oi_cur_is(c, ',') && !oi_cur_is(c, ']') && c->tok->kind != OI_TOK_DOTDOT)
        s.start = oi_cur_iexpr(c);
    s.is_slice = !s.start;
    if (oi_cur_accept(c, OI_TOK_DOTDOT)) {
        s.is_slice = true;
        if (!oi_cur_is(c, ',') && !oi_cur_is(c, ']'))
            s.end = oi_cur_iexpr(c);
    }
    s.span = oi_cur_span_from(c, first);
    return s;
}

/* access = IDENT [ "[" [ sel {"," sel} ] "]" ] */
oi_access oi_cur_access(oi_cursor *c)
{
    const oi_token *first = c->tok;
    oi_access a = {.base = oi_cur_name(c, "a variable")};
    if (!c->failed && oi_cur_accept(c, '[')) {
        a.bracketed = true;
        if (!oi_cur_is(c, ']'))
            do
                *OI_PUSH(c->graph->arena, &a.sels) = sel(c);
            while (!c->failed && oi_cur_accept(c, ','));
        oi_cur_expect(c, ']', "',' or ']'");
    }
    a.span = oi_cur_span_from(c, first);
    return a;
}

/* -- text inside JSON -- */

typedef struct text_job {
    oi_source source;
    oi_tokens tokens;
    oi_cursor cursor;
} text_job;

static void start_text(text_job *j, oi_graph *g, const char *text, size_t n, const char *pointer,
                       oi_diag *d)
{
    oi_source_init(g->arena, &j->source, g->origin, text, n);
    oi_lex(g->arena, &j->source, &j->tokens, NULL); /* bad tokens are reported below, by pointer */
    j->cursor = (oi_cursor){
        .graph = g, .source = &j->source, .tok = j->tokens.list.at, .diag = d, .pointer = pointer};
}

static bool end_text(text_job *j)
{
    if (!j->cursor.failed && j->cursor.tok->kind != OI_TOK_END)
        oi_cur_unexpected(&j->cursor, "the end of the text");
    return !j->cursor.failed;
}

const oi_expr *oi_expr_parse(oi_graph *g, const char *text, size_t n, bool is_dim,
                             const char *pointer, oi_diag *d)
{
    text_job j;
    start_text(&j, g, text, n, pointer, d);
    const oi_expr *e = is_dim ? oi_cur_dim(&j.cursor) : oi_cur_iexpr(&j.cursor);
    return end_text(&j) ? e : NULL;
}

bool oi_access_parse(oi_graph *g, const char *text, size_t n, const char *pointer, oi_access *out,
                     oi_diag *d)
{
    text_job j;
    start_text(&j, g, text, n, pointer, d);
    *out = oi_cur_access(&j.cursor);
    return end_text(&j);
}
