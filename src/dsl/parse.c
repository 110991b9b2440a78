/* parse.c: explicit DSL text -> Graph (spec/dsl.md §2), and which form a text is in. Recursive
 * descent; every function bears the name of its grammar rule and shows it. After an error the
 * statement is dropped and reading goes on behind its `;` or before the enclosing `}`. */
#include "dsl/dsl.h"

#include <math.h>

static const char *const section_words[] = {"dynamic", "volatile", "constant", "constants",
                                            "persistent"};
static const char *const compact_words[] = {"model", "inputs", "state", "let", "output"};

void oi_parse_item_mark(oi_parser *p, oi_item_kind kind, uint32_t id, const oi_token *first)
{
    const oi_token *last = p->cur.tok > first ? p->cur.tok - 1 : first;
    *OI_PUSH(p->g->arena, &p->g->items) = (oi_item){kind, id, first->start, last->end};
}

void oi_parse_resync(oi_parser *p)
{
    unsigned depth = 0;
    for (;; p->cur.tok++) {
        if (p->cur.tok->kind == OI_TOK_END || (depth == 0 && oi_cur_is(&p->cur, '}')))
            break;
        if (oi_cur_is(&p->cur, '{'))
            depth++;
        else if (depth == 0 ? oi_cur_is(&p->cur, ';') : oi_cur_is(&p->cur, '}') && --depth == 0) {
            p->cur.tok++; /* the end of the broken statement or of its body */
            break;
        }
    }
    p->cur.failed = false;
    p->cur.depth = 0;
}

void oi_parse_suggest(oi_parser *p, const oi_token *t, const char *const *words, size_t n)
{
    if (t->kind != OI_TOK_IDENT)
        return;
    const char *word = oi_graph_intern(p->g, p->cur.source->text + t->start, t->end - t->start);
    oi_nearest near = oi_nearest_start(word);
    for (size_t i = 0; i < n; i++)
        oi_nearest_offer(&near, words[i]);
    if (near.best)
        oi_diag_hint(p->cur.diag, "did you mean '%s'?", near.best);
}

/* -- rules shared by declarations and nodes -- */

oi_dtype oi_parse_dtype(oi_parser *p)
{
    const oi_token *t = p->cur.tok;
    oi_dtype dtype = t->kind == OI_TOK_IDENT
                         ? oi_dtype_find_n(p->cur.source->text + t->start, t->end - t->start)
                         : OI_NONE;
    if (dtype != OI_NONE) {
        p->cur.tok++;
        return dtype;
    }
    oi_cur_unexpected(&p->cur, "an element type such as f32, i8 or bool");
    const char *names[OI_DTYPE_COUNT];
    size_t n = 0;
    for (int d = 1; d < OI_DTYPE_COUNT; d++)
        if (oi_dtype_is_tensor(d))
            names[n++] = oi_dtype_name(d);
    oi_parse_suggest(p, t, names, n);
    return OI_NONE;
}

/* dims = "[" [ dim {"," dim} ] "]" */
void oi_parse_dims(oi_parser *p, oi_exprs *out)
{
    if (!oi_cur_accept(&p->cur, '['))
        return;
    if (!oi_cur_is(&p->cur, ']'))
        do
            *OI_PUSH(p->g->arena, out) = oi_cur_dim(&p->cur);
        while (!p->cur.failed && oi_cur_accept(&p->cur, ','));
    oi_cur_expect(&p->cur, ']', "',' or ']'");
}

/* IDENT {"," IDENT} */
void oi_parse_names(oi_parser *p, oi_names *out, const char *what)
{
    do {
        oi_name n = oi_cur_name(&p->cur, what);
        if (!p->cur.failed)
            *OI_PUSH(p->g->arena, out) = n;
    } while (!p->cur.failed && oi_cur_accept(&p->cur, ','));
}

/* A word that is a value by itself: it must not be the start of an expression. */
static bool word_value(oi_parser *p, bool dtypes, oi_value *out)
{
    const oi_token *t = p->cur.tok;
    int next = t[1].kind;
    if (t->kind != OI_TOK_IDENT ||
        (next != OI_TOK_PUNCT + ',' && next != OI_TOK_PUNCT + ')' && next != OI_TOK_PUNCT + ']' &&
         next != OI_TOK_PUNCT + ';' && next != OI_TOK_PUNCT + '}'))
        return false;
    oi_dtype dtype =
        dtypes ? oi_dtype_find_n(p->cur.source->text + t->start, t->end - t->start) : OI_NONE;
    if (oi_cur_is_word(&p->cur, "true") || oi_cur_is_word(&p->cur, "false"))
        *out = (oi_value){.kind = OI_VAL_BOOL, .boolean = oi_cur_is_word(&p->cur, "true")};
    else if (oi_cur_is_word(&p->cur, "inf") || oi_cur_is_word(&p->cur, "nan"))
        *out =
            (oi_value){.kind = OI_VAL_FLOAT,
                       .number = oi_cur_is_word(&p->cur, "inf") ? (double)INFINITY : (double)NAN};
    else if (dtype != OI_NONE)
        *out = (oi_value){.kind = OI_VAL_DTYPE, .dtype = dtype};
    else
        return false;
    p->cur.tok++;
    return true;
}

static oi_value expr_value(const oi_expr *e)
{
    if (e->kind == OI_EXPR_INT)
        return (oi_value){.kind = OI_VAL_INT, .negative = e->negative, .magnitude = e->magnitude};
    if (e->kind == OI_EXPR_NAME)
        return (oi_value){.kind = OI_VAL_NAME, .text = e->name};
    return (oi_value){.kind = OI_VAL_EXPR, .expr = e};
}

/* item = ["-"] ( FLOAT | "inf" | "nan" ) | STRING | BOOL | dtype | iexpr */
oi_value oi_parse_item(oi_parser *p, bool dtypes)
{
    const oi_token *first = p->cur.tok;
    const oi_token *number = oi_cur_is(&p->cur, '-') ? first + 1 : first;
    oi_value v = {.kind = OI_VAL_INT};
    if (number->kind == OI_TOK_FLOAT) {
        p->cur.tok = number;
        v.kind = OI_VAL_FLOAT;
        oi_cur_float(&p->cur, &v.number);
    } else if (first->kind == OI_TOK_STRING) {
        v.kind = OI_VAL_STR;
        v.text = oi_cur_string(&p->cur, &v.n);
    } else {
        p->cur.tok = number;
        bool is_word = word_value(p, dtypes, &v);
        if (!is_word || (number != first && v.kind != OI_VAL_FLOAT)) {
            p->cur.tok = first;
            v = expr_value(oi_cur_iexpr(&p->cur));
        }
    }
    if (v.kind == OI_VAL_FLOAT && number != first)
        v.number = v.number != v.number ? v.number : -v.number;
    v.span = oi_cur_span_from(&p->cur, first);
    return v;
}

/* value = item | "[" [ item {"," item} ] "]" */
oi_value oi_parse_value(oi_parser *p)
{
    const oi_token *first = p->cur.tok;
    if (!oi_cur_accept(&p->cur, '['))
        return oi_parse_item(p, true);
    OI_VEC(oi_value) items = {0};
    if (!oi_cur_is(&p->cur, ']'))
        do
            *OI_PUSH(p->g->arena, &items) = oi_parse_item(p, true);
        while (!p->cur.failed && oi_cur_accept(&p->cur, ','));
    oi_cur_expect(&p->cur, ']', "',' or ']'");
    return (oi_value){.kind = OI_VAL_LIST,
                      .items = items.at,
                      .n = items.n,
                      .span = oi_cur_span_from(&p->cur, first)};
}

/* -- the graph -- */

/* block = "block" IDENT "{" { node } "}" */
static void block(oi_parser *p)
{
    const oi_token *first = p->cur.tok++;
    oi_block b = {.name = oi_cur_name(&p->cur, "a block name")};
    oi_cur_expect(&p->cur, '{', "'{'");
    if (p->cur.failed) {
        oi_parse_resync(p);
        return;
    }
    p->block = oi_graph_add_block(p->g, &b);
    p->parent = OI_NO_ID;
    oi_parse_item_mark(p, OI_ITEM_BLOCK, p->block, first);
    while (!oi_cur_is(&p->cur, '}') && p->cur.tok->kind != OI_TOK_END && !oi_diag_full(p->cur.diag))
        oi_parse_node(p);
    const oi_token *close = p->cur.tok;
    p->g->blocks.at[p->block].end = oi_cur_span(&p->cur, close);
    if (!oi_cur_expect(&p->cur, '}', "'}' at the end of the block"))
        oi_diag_note(p->cur.diag, (oi_place){.source = p->cur.source, .span = b.name.span},
                     "block '%s' begins here", b.name.text);
    oi_parse_item_mark(p, OI_ITEM_CLOSE, p->block, close);
}

static bool at_word_of(const oi_parser *p, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (oi_cur_is_word(&p->cur, words[i]))
            return true;
    return false;
}

/* Skips a whole construct that makes no sense at the top level. */
static void top_level_error(oi_parser *p)
{
    static const char *const words[] = {"dynamic", "volatile", "constant", "persistent", "block"};
    const oi_token *t = p->cur.tok;
    oi_cur_unexpected(&p->cur, "a memory section or a block");
    oi_parse_suggest(p, t, words, OI_COUNT(words));
    while (p->cur.tok->kind != OI_TOK_END && !oi_cur_is(&p->cur, '{') && !oi_cur_is(&p->cur, '}') &&
           !oi_cur_is(&p->cur, ';'))
        p->cur.tok++;
    if (oi_cur_accept(&p->cur, '{')) {
        do
            oi_parse_resync(p);
        while (!oi_cur_is(&p->cur, '}') && p->cur.tok->kind != OI_TOK_END);
    }
    if (p->cur.tok->kind != OI_TOK_END)
        p->cur.tok++;
    p->cur.failed = false;
}

/* graph = { section | block } */
static void graph(oi_parser *p, bool wrapped)
{
    while (p->cur.tok->kind != OI_TOK_END && !oi_diag_full(p->cur.diag)) {
        if (wrapped && oi_cur_is(&p->cur, '}'))
            return;
        if (oi_cur_is_word(&p->cur, "block"))
            block(p);
        else if (at_word_of(p, section_words, OI_COUNT(section_words)))
            oi_parse_section(p);
        else
            top_level_error(p);
        p->cur.failed = false;
    }
}

/* [ "graph" ["!"] "{" ] … [ "}" ] */
static void file(oi_parser *p)
{
    bool wrapped = oi_cur_is_word(&p->cur, "graph");
    if (wrapped) {
        p->cur.tok++;
        oi_cur_accept(&p->cur, '!');
        if (!oi_cur_expect(&p->cur, '{', "'{' after 'graph'"))
            return;
    }
    if (at_word_of(p, compact_words, OI_COUNT(compact_words))) {
        p->g->compact = oi_arena_alloc(p->g->arena, sizeof *p->g->compact);
        oi_parse_compact(p, wrapped);
    } else {
        graph(p, wrapped);
    }
    if (oi_diag_full(p->cur.diag))
        return;
    if (wrapped)
        oi_cur_expect(&p->cur, '}', "'}' at the end of the graph");
    if (!p->cur.failed && p->cur.tok->kind != OI_TOK_END)
        oi_cur_unexpected(&p->cur, "the end of the text");
}

/* Text is UTF-8 without NUL, comments included. */
static bool is_text(const oi_graph *g, oi_diag *d)
{
    size_t bad = 0;
    bool utf8 = oi_utf8_valid(g->source.text, g->source.size, &bad);
    const char *nul = utf8 ? memchr(g->source.text, '\0', g->source.size) : NULL;
    if (utf8 && !nul)
        return true;
    if (nul)
        bad = (size_t)(nul - g->source.text);
    oi_place at = {.source = &g->source, .span = oi_source_span(&g->source, bad, bad + 1)};
    oi_diag_error(d, at, "E001", nul ? "the text holds a NUL byte" : "the text is not valid UTF-8");
    return false;
}

void oi_parse_graph(oi_graph *g, oi_diag *d)
{
    if (!is_text(g, d))
        return;
    oi_tokens tokens;
    oi_lex(g->arena, &g->source, &tokens, d);
    g->comments.at = tokens.comments.at;
    g->comments.n = tokens.comments.n;
    oi_parser p = {.g = g, .parent = OI_NO_ID};
    p.cur = (oi_cursor){.graph = g, .source = &g->source, .tok = tokens.list.at, .diag = d};
    if (!oi_diag_full(d))
        file(&p);
}

bool oi_parse_is_compact(oi_graph *g)
{
    oi_tokens tokens;
    size_t bad;
    if (!oi_utf8_valid(g->source.text, g->source.size, &bad))
        return false;
    oi_lex(g->arena, &g->source, &tokens, NULL);
    oi_parser p = {.g = g};
    p.cur = (oi_cursor){.graph = g, .source = &g->source, .tok = tokens.list.at};
    if (oi_cur_is_word(&p.cur, "graph")) {
        p.cur.tok++;
        oi_cur_accept(&p.cur, '!');
        oi_cur_accept(&p.cur, '{');
    }
    return at_word_of(&p, compact_words, OI_COUNT(compact_words));
}
