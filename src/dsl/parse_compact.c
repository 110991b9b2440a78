/* parse_compact.c: the compact form (spec/dsl.md §11): header and statements. Every function bears
 * the name of its grammar rule and shows it. Expressions are in parse_cexpr.c. */
#include "dsl/dsl.h"

static oi_compact *compact(oi_parser *p)
{
    return p->g->compact;
}

/* -- the header -- */

/* "model" ":" IDENT "," */
static void model(oi_parser *p, const oi_token *first)
{
    compact(p)->model = oi_cur_name(&p->cur, "the model's name");
    compact(p)->has_model = true;
    oi_parse_item_mark(p, OI_ITEM_MODEL, 0, first);
}

/* IDENT ":" dtype dims */
static void input(oi_parser *p)
{
    const oi_token *first = p->cur.tok;
    oi_cinput in = {.name = oi_cur_name(&p->cur, "an input or '}'")};
    if (!p->cur.failed && oi_cur_expect(&p->cur, ':', "':' and an element type"))
        in.dtype = oi_parse_dtype(p);
    if (!p->cur.failed)
        oi_parse_dims(p, &in.dims);
    if (p->cur.failed)
        return;
    *OI_PUSH(p->g->arena, &compact(p)->inputs) = in;
    oi_parse_item_mark(p, OI_ITEM_INPUT, (uint32_t)compact(p)->inputs.n - 1, first);
}

/* IDENT "=" (iexpr | "[" iexpr {"," iexpr} "]") of kv_cache */
static void state_arg(oi_parser *p, oi_cstate *s)
{
    const oi_token *at = p->cur.tok;
    oi_name name = oi_cur_name(&p->cur, "layers=, cap= or shape=");
    if (p->cur.failed || !oi_cur_expect(&p->cur, '=', "'='"))
        return;
    bool is_shape = strcmp(name.text, "shape") == 0;
    const oi_expr **to = strcmp(name.text, "layers") == 0 ? &s->layers
                         : strcmp(name.text, "cap") == 0  ? &s->cap
                                                          : NULL;
    if (!to && !is_shape)
        oi_cur_error(&p->cur, at, "E052", "kv_cache has layers, cap and shape, but no '%s'",
                     name.text);
    else if (is_shape ? s->has_shape : *to != NULL)
        oi_cur_error(&p->cur, at, "E054", "'%s' is given twice", name.text);
    else if (!is_shape)
        *to = oi_cur_iexpr(&p->cur);
    else if (!oi_cur_is(&p->cur, '['))
        oi_cur_unexpected(&p->cur, "a list of sizes such as [H, Dh]");
    else
        oi_parse_dims(p, &s->shape);
    s->has_shape |= is_shape;
}

/* scall = "kv_cache" "(" dtype { "," IDENT "=" (iexpr | "[" iexpr {"," iexpr} "]") } ")" */
static void state(oi_parser *p)
{
    const oi_token *first = p->cur.tok;
    oi_cstate s = {.name = oi_cur_name(&p->cur, "a state or '}'")};
    if (p->cur.failed || !oi_cur_expect(&p->cur, ':', "':' and kv_cache(…)"))
        return;
    const oi_token *call = p->cur.tok;
    if (!oi_cur_is_word(&p->cur, "kv_cache")) {
        oi_cur_unexpected(&p->cur, "kv_cache(…)");
        return;
    }
    p->cur.tok++;
    if (oi_cur_expect(&p->cur, '(', "'('"))
        s.dtype = oi_parse_dtype(p);
    while (!p->cur.failed && oi_cur_accept(&p->cur, ',') && !oi_cur_is(&p->cur, ')'))
        state_arg(p, &s);
    if (p->cur.failed || !oi_cur_expect(&p->cur, ')', "',' or ')'"))
        return;
    if (!s.layers || !s.cap) {
        oi_cur_error(&p->cur, call, "E056", "kv_cache wants %s", s.layers ? "cap=" : "layers=");
        return;
    }
    *OI_PUSH(p->g->arena, &compact(p)->states) = s;
    oi_parse_item_mark(p, OI_ITEM_STATE, (uint32_t)compact(p)->states.n - 1, first);
}

/* "{" { rule "," } "}": the last comma is optional */
static void section(oi_parser *p, oi_item_kind kind, const oi_token *first,
                    void (*rule)(oi_parser *))
{
    if (!oi_cur_expect(&p->cur, '{', "'{'"))
        return;
    oi_parse_item_mark(p, kind, 0, first);
    while (!oi_cur_is(&p->cur, '}') && p->cur.tok->kind != OI_TOK_END && !p->cur.failed) {
        rule(p);
        if (p->cur.failed || !oi_cur_accept(&p->cur, ','))
            break;
    }
    if (p->cur.failed)
        oi_parse_resync(p);
    const oi_token *close = p->cur.tok;
    if (oi_cur_expect(&p->cur, '}', "',' or '}'"))
        oi_parse_item_mark(p, OI_ITEM_SECTION_END, 0, close);
}

/* One part of the header, when the text is at one; they come in the order of the grammar. */
static bool header(oi_parser *p, unsigned *next)
{
    static const char *const words[] = {"model", "inputs", "state"};
    const oi_token *first = p->cur.tok;
    unsigned which = 0;
    while (which < OI_COUNT(words) && !oi_cur_is_word(&p->cur, words[which]))
        which++;
    int after = first[1].kind; /* each is a variable's name too */
    if (which == OI_COUNT(words) || after == OI_TOK_PUNCT + '=' || after == OI_TOK_PUNCT + '(')
        return false;
    if (which < *next || compact(p)->body.n)
        oi_cur_error(&p->cur, first, "E001",
                     "'%s:' stands here too late: first model, then inputs, then state, each once",
                     words[which]);
    *next = which + 1;
    p->cur.tok++;
    if (!oi_cur_expect(&p->cur, ':', "':'"))
        return true;
    if (which == 0)
        model(p, first);
    else
        section(p, which == 1 ? OI_ITEM_INPUTS : OI_ITEM_STATES, first, which == 1 ? input : state);
    if (!p->cur.failed && !oi_cur_accept(&p->cur, ',') && which == 0)
        oi_cur_unexpected(&p->cur, "','");
    return true;
}

/* -- statements -- */

static oi_cstmt *new_stmt(oi_parser *p, oi_cstmt_kind kind, const oi_token *first)
{
    oi_cstmt *s = oi_arena_alloc(p->g->arena, sizeof *s);
    s->kind = kind;
    s->span = oi_cur_span(&p->cur, first);
    return s;
}

static uint32_t add_stmt(oi_parser *p, oi_cstmt *s, oi_cstmt *in)
{
    if (in)
        *OI_PUSH(p->g->arena, &in->body) = s;
    else
        *OI_PUSH(p->g->arena, &compact(p)->body) = s;
    *OI_PUSH(p->g->arena, &compact(p)->list) = s;
    return (uint32_t)compact(p)->list.n - 1;
}

static void statement(oi_parser *p, oi_cstmt *in);

/* cfor = "for" IDENT "in" iexpr ".." iexpr "{" { cstmt } "}" */
static void cfor(oi_parser *p, oi_cstmt *s, oi_cstmt *in, const oi_token *first)
{
    s->kind = OI_CSTMT_FOR;
    p->cur.tok++;
    s->index = oi_cur_name(&p->cur, "an index name");
    if (!p->cur.failed && !oi_cur_is_word(&p->cur, "in"))
        oi_cur_unexpected(&p->cur, "'in'");
    if (p->cur.failed)
        return;
    p->cur.tok++;
    s->start = oi_cur_iexpr(&p->cur);
    if (!p->cur.failed && oi_cur_expect(&p->cur, OI_TOK_DOTDOT, "'..' and the end"))
        s->end = oi_cur_iexpr(&p->cur);
    if (p->cur.failed || !oi_cur_expect(&p->cur, '{', "'{'"))
        return;
    if (p->loop_depth >= OI_MAX_LOOP_DEPTH) {
        oi_cur_error(&p->cur, first, "E001", "loops are nested more than %u deep",
                     OI_MAX_LOOP_DEPTH);
        return;
    }
    uint32_t id = add_stmt(p, s, in);
    oi_parse_item_mark(p, OI_ITEM_FOR, id, first);
    p->loop_depth++;
    while (!oi_cur_is(&p->cur, '}') && p->cur.tok->kind != OI_TOK_END && !oi_diag_full(p->cur.diag))
        statement(p, s);
    p->loop_depth--;
    const oi_token *close = p->cur.tok;
    oi_cur_expect(&p->cur, '}', "'}' at the end of the loop");
    if (!p->cur.failed && !oi_cur_accept(&p->cur, ';') && s->is_let)
        oi_cur_unexpected(&p->cur, "';'");
    oi_parse_item_mark(p, OI_ITEM_FOR_END, id, close);
}

/* lhs = IDENT | "(" IDENT {"," IDENT} ")" */
static void lhs(oi_parser *p, oi_cstmt *s)
{
    s->is_tuple = oi_cur_accept(&p->cur, '(');
    if (s->is_tuple) {
        oi_parse_names(p, &s->names, "a variable name");
        if (!p->cur.failed)
            oi_cur_expect(&p->cur, ')', "',' or ')'");
        return;
    }
    oi_name name = oi_cur_name(&p->cur, "a variable name or '('");
    if (!p->cur.failed)
        *OI_PUSH(p->g->arena, &s->names) = name;
}

/* "let" lhs "=" cexpr ";" | "let" IDENT "=" cfor ";" */
static void let(oi_parser *p, oi_cstmt *s, oi_cstmt *in, const oi_token *first)
{
    p->cur.tok++;
    s->is_let = true;
    lhs(p, s);
    if (p->cur.failed || !oi_cur_expect(&p->cur, '=', "'='"))
        return;
    if (oi_cur_is_word(&p->cur, "for") && p->cur.tok[1].kind == OI_TOK_IDENT) {
        if (s->is_tuple)
            oi_cur_unexpected(&p->cur, "a value: a loop gives one variable, not a tuple");
        else
            cfor(p, s, in, first);
    } else {
        s->expr = oi_parse_cexpr(p);
    }
}

/* A call by itself: its value, if any, is not used. */
static void bare_call(oi_parser *p, oi_cstmt *s)
{
    const oi_token *first = p->cur.tok;
    s->expr = oi_parse_cexpr(p);
    if (!p->cur.failed && s->expr->kind != OI_CEXPR_CALL && s->expr->kind != OI_CEXPR_PIPE)
        oi_cur_error(&p->cur, first, "E001", "a value that is not used: write let NAME = …");
}

/* cstmt = "let" lhs "=" cexpr ";" | "let" IDENT "=" cfor ";" | cfor [";"] | IDENT "=" cexpr ";"
 *       | call [hints] ";" | "output" IDENT {"," IDENT} ";" */
static void one_statement(oi_parser *p, oi_cstmt *in)
{
    const oi_token *first = p->cur.tok;
    bool before_name = first->kind == OI_TOK_IDENT && first[1].kind == OI_TOK_IDENT;
    oi_cstmt *s = new_stmt(p, OI_CSTMT_BIND, first);
    if (oi_cur_is_word(&p->cur, "let")) {
        let(p, s, in, first);
    } else if (before_name && oi_cur_is_word(&p->cur, "for")) {
        cfor(p, s, in, first);
    } else if (before_name && oi_cur_is_word(&p->cur, "output")) {
        s->kind = OI_CSTMT_OUTPUT;
        p->cur.tok++;
        oi_parse_names(p, &s->names, "a variable");
    } else if (first->kind == OI_TOK_IDENT && first[1].kind == OI_TOK_PUNCT + '=') {
        lhs(p, s);
        p->cur.tok++;
        s->expr = oi_parse_cexpr(p);
    } else if (first->kind == OI_TOK_IDENT && first[1].kind == OI_TOK_PUNCT + '(') {
        bare_call(p, s);
    } else {
        static const char *const words[] = {"let", "for", "output"};
        oi_cur_unexpected(&p->cur, in ? "a statement or '}'" : "a statement");
        oi_parse_suggest(p, first, words, OI_COUNT(words));
    }
    if (p->cur.failed || s->kind == OI_CSTMT_FOR || !oi_cur_expect(&p->cur, ';', "';'"))
        return;
    oi_parse_item_mark(p, OI_ITEM_STMT, add_stmt(p, s, in), first);
}

static void statement(oi_parser *p, oi_cstmt *in)
{
    one_statement(p, in);
    if (p->cur.failed)
        oi_parse_resync(p);
}

/* cgraph = [ "model" … ] [ "inputs" … ] [ "state" … ] { cstmt } */
void oi_parse_compact(oi_parser *p, bool wrapped)
{
    unsigned next = 0;
    compact(p)->model.text = "model";
    while (p->cur.tok->kind != OI_TOK_END && !oi_diag_full(p->cur.diag)) {
        if (oi_cur_is(&p->cur, '}')) {
            if (wrapped)
                break;
            oi_cur_unexpected(&p->cur, "a statement");
            p->cur.tok++;
            p->cur.failed = false;
            continue;
        }
        if (!header(p, &next))
            statement(p, NULL);
        if (p->cur.failed)
            oi_parse_resync(p);
    }
    compact(p)->end = oi_cur_span(&p->cur, p->cur.tok);
}
