/* lex.c: DSL text -> tokens (spec/dsl.md §1). Comments are kept aside for the formatter. */
#include "graph/graph.h"

typedef struct lexer {
    oi_arena *arena;
    const oi_source *source;
    oi_tokens *out;
    oi_diag *diag;
    const char *text;
    uint32_t at, size;
} lexer;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word(char c)
{
    return is_word_start(c) || is_digit(c);
}

bool oi_is_name(const char *text)
{
    if (!is_word_start(*text))
        return false;
    while (is_word(*text))
        text++;
    return !*text;
}

/* The byte `ahead` of the current one; NUL past the end. */
static char peek(const lexer *x, uint32_t ahead)
{
    return ahead < x->size - x->at ? x->text[x->at + ahead] : '\0';
}

static void push(lexer *x, int kind, uint32_t start)
{
    *OI_PUSH(x->arena, &x->out->list) = (oi_token){kind, start, x->at};
}

static void bad(lexer *x, uint32_t start, const char *fmt, const char *arg)
{
    uint32_t end = x->at > start ? x->at : start + 1;
    oi_place at = {.source = x->source, .span = oi_source_span(x->source, start, end)};
    char text[160];
    snprintf(text, sizeof text, fmt, arg);
    oi_diag_error(x->diag, at, "E001", "%s", text);
    push(x, OI_TOK_BAD, start);
}

/* -- comments and white space -- */

static void line_comment(lexer *x)
{
    uint32_t start = x->at;
    while (x->at < x->size && x->text[x->at] != '\n')
        x->at++;
    *OI_PUSH(x->arena, &x->out->comments) = (oi_comment){start, x->at, true};
}

static void block_comment(lexer *x)
{
    uint32_t start = x->at, depth = 0;
    do {
        if (peek(x, 0) == '/' && peek(x, 1) == '*')
            depth++, x->at += 2;
        else if (peek(x, 0) == '*' && peek(x, 1) == '/')
            depth--, x->at += 2;
        else
            x->at++;
    } while (depth && x->at < x->size);
    if (depth) {
        uint32_t end = x->at;
        x->at = start + 2;
        bad(x, start, "this comment is never closed%s", "");
        x->at = end;
        return;
    }
    *OI_PUSH(x->arena, &x->out->comments) = (oi_comment){start, x->at, false};
}

static bool skip_space(lexer *x)
{
    char c = peek(x, 0);
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
        x->at++;
    else if (c == '/' && peek(x, 1) == '/')
        line_comment(x);
    else if (c == '/' && peek(x, 1) == '*')
        block_comment(x);
    else
        return false;
    return true;
}

/* -- numbers -- */

static void digits(lexer *x)
{
    while (is_digit(peek(x, 0)) || peek(x, 0) == '_')
        x->at++;
}

static bool suffix_is(const lexer *x, const char *suffix)
{
    return x->size - x->at >= 3 && memcmp(x->text + x->at, suffix, 3) == 0 && !is_word(peek(x, 3));
}

/* 0x… and 0b…: the letters behind decide whether the literal is well formed (oi_cur_int). */
static bool radix(lexer *x)
{
    char r = peek(x, 1);
    if (peek(x, 0) != '0' || (r != 'x' && r != 'b'))
        return false;
    uint32_t start = x->at, n_digits = 0;
    x->at += 2;
    bool ok = true;
    for (; is_word(peek(x, 0)); x->at++) {
        char c = peek(x, 0);
        bool hex = is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        ok = ok && (c == '_' || (r == 'x' ? hex : c == '0' || c == '1'));
        n_digits += c != '_';
    }
    if (ok && n_digits)
        push(x, OI_TOK_INT, start);
    else
        bad(x, start, "malformed %s literal", r == 'x' ? "hexadecimal" : "binary");
    return true;
}

static void number(lexer *x)
{
    uint32_t start = x->at;
    if (radix(x))
        return;
    bool is_float = false, ok = true;
    digits(x);
    if (peek(x, 0) == '.' && peek(x, 1) != '.') {
        is_float = true;
        x->at++;
        digits(x);
    }
    if (peek(x, 0) == 'e' || peek(x, 0) == 'E') {
        is_float = true;
        x->at += peek(x, 1) == '+' || peek(x, 1) == '-' ? 2 : 1;
        ok = is_digit(peek(x, 0));
        digits(x);
    }
    if (suffix_is(x, "f32") || suffix_is(x, "f64")) {
        is_float = true;
        x->at += 3;
    }
    if (is_word(peek(x, 0))) {
        ok = false;
        while (is_word(peek(x, 0)))
            x->at++;
    }
    if (ok)
        push(x, is_float ? OI_TOK_FLOAT : OI_TOK_INT, start);
    else
        bad(x, start, "malformed number%s", "");
}

/* -- the rest -- */

/* Only finds the end; escapes are decoded by oi_cur_string, which can point at the bad one. */
static void string(lexer *x)
{
    uint32_t start = x->at++;
    while (x->at < x->size && peek(x, 0) != '"' && peek(x, 0) != '\n')
        x->at += peek(x, 0) == '\\' && peek(x, 1) != '\n' && x->size - x->at > 1 ? 2 : 1;
    if (peek(x, 0) != '"' || x->at >= x->size) {
        bad(x, start, "this string is never closed on its line%s", "");
        return;
    }
    x->at++;
    push(x, OI_TOK_STRING, start);
}

static void punctuation(lexer *x)
{
    static const struct {
        char text[3];
        int kind;
    } pairs[] = {{"..", OI_TOK_DOTDOT}, {">>", OI_TOK_SHR}, {"|>", OI_TOK_PIPE}};
    uint32_t start = x->at;
    for (size_t i = 0; i < OI_COUNT(pairs); i++)
        if (peek(x, 0) == pairs[i].text[0] && peek(x, 1) == pairs[i].text[1]) {
            x->at += 2;
            push(x, pairs[i].kind, start);
            return;
        }
    char c = peek(x, 0);
    if (c && strchr("{}()[]:;,=@*+-/%?!.", c)) {
        x->at++;
        push(x, OI_TOK_PUNCT + c, start);
        return;
    }
    uint32_t code_point;
    size_t n = oi_utf8_decode(x->text + x->at, x->size - x->at, &code_point);
    x->at += n ? (uint32_t)n : 1;
    char shown[16] = "";
    if (n && (unsigned char)c > ' ' && c != 0x7f)
        memcpy(shown, x->text + start, n);
    else
        snprintf(shown, sizeof shown, "\\x%02x", (unsigned char)c);
    bad(x, start, "unexpected character '%s'", shown);
}

static void token(lexer *x)
{
    char c = peek(x, 0);
    uint32_t start = x->at;
    if (is_word_start(c)) {
        while (is_word(peek(x, 0)))
            x->at++;
        push(x, OI_TOK_IDENT, start);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(x, 1)))) {
        number(x);
    } else if (c == '"') {
        string(x);
    } else {
        punctuation(x);
    }
}

void oi_lex(oi_arena *a, const oi_source *source, oi_tokens *out, oi_diag *d)
{
    *out = (oi_tokens){.source = source};
    lexer x = {a, source, out, d, source->text, 0, (uint32_t)source->size};
    if (x.size >= 3 && memcmp(x.text, "\xef\xbb\xbf", 3) == 0)
        x.at = 3;
    while (x.at < x.size && !oi_diag_full(d))
        if (!skip_space(&x))
            token(&x);
    push(&x, OI_TOK_END, x.at);
}
