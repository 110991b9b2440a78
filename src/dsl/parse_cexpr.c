/* parse_cexpr.c: expressions of the compact form (spec/dsl.md §11). */
#include "dsl/dsl.h"

#include "base/ops.h"

static oi_cexpr *new_cexpr(oi_parser *p, oi_cexpr_kind kind, const oi_token *first,
                           const oi_cexpr *l, const oi_cexpr *r)
{
    oi_cexpr *e = oi_arena_alloc(p->g->arena, sizeof *e);
    uint16_t deepest = l && r ? (l->depth > r->depth ? l->depth : r->depth) : l ? l->depth : 0;
    *e = (oi_cexpr){.kind = kind, .depth = (uint16_t)(deepest + 1), .lhs = l, .rhs = r};
    e->span = oi_cur_span_from(&p->cur, first);
    if (e->depth > OI_MAX_EXPR_DEPTH)
        oi_cur_error(&p->cur, first, "E001", "expression is too deep (more than %u levels)",
                     OI_MAX_EXPR_DEPTH);
    return e;
}

static const oi_cexpr *nothing(oi_parser *p)
{
    return new_cexpr(p, OI_CEXPR_NUMBER, p->cur.tok, NULL, NULL);
}

/* -- prim -- */

/* mref = IDENT "[" ( STRING | "format!" "(" STRING {"," iexpr} ")" ) "]" */
static const oi_cexpr *mref(oi_parser *p)
{
    const oi_token *first = p->cur.tok;
    oi_name name = oi_cur_name(&p->cur, "the model's name");
    oi_cexpr e = {.kind = OI_CEXPR_MODEL, .name = name};
    p->cur.tok++; /* '[' */
    if (oi_cur_is_word(&p->cur, "format") && p->cur.tok[1].kind == OI_TOK_PUNCT + '!') {
        e.is_format = true;
        p->cur.tok += 2;
        oi_cur_expect(&p->cur, '(', "'('");
    }
    const oi_token *key = p->cur.tok;
    e.value.kind = OI_VAL_STR;
    if (!p->cur.failed && key->kind == OI_TOK_STRING)
        e.value.text = oi_cur_string(&p->cur, &e.value.n);
    else
        oi_cur_unexpected(&p->cur, e.is_format ? "a string" : "a string or format!(…)");
    if (!p->cur.failed && memchr(e.value.text, '\0', e.value.n))
        oi_cur_error(&p->cur, key, "E001", "a key holds no NUL");
    e.value.span = oi_cur_span(&p->cur, key);
    while (e.is_format && !p->cur.failed && oi_cur_accept(&p->cur, ',') && !oi_cur_is(&p->cur, ')'))
        *OI_PUSH(p->g->arena, &e.format_args) = oi_cur_iexpr(&p->cur);
    if (e.is_format && !p->cur.failed)
        oi_cur_expect(&p->cur, ')', "',' or ')'");
    if (!p->cur.failed)
        oi_cur_expect(&p->cur, ']', "']'");
    oi_cexpr *out = new_cexpr(p, OI_CEXPR_MODEL, first, NULL, NULL);
    e.depth = out->depth;
    e.span = out->span;
    *out = e;
    return out;
}

/* Whether `name=` gives an operand rather than an attribute. */
static bool names_operand(const char *call, const char *name)
{
    if (strcmp(call, "kv_write") == 0 || strcmp(call, "kv_read") == 0)
        return true;
    const oi_op *op = oi_op_find(call);
    if (!op || oi_op_attr_find(op, name))
        return false;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        if (strcmp(op->inputs[i].name, name) == 0)
            return true;
    return false;
}

/* carg = cexpr | dtype | IDENT "=" cexpr | IDENT "=" value */
static oi_carg argument(oi_parser *p, const char *call)
{
    oi_carg a = {0};
    const oi_token *t = p->cur.tok;
    bool is_word = t->kind == OI_TOK_IDENT;
    bool ends = is_word && (t[1].kind == OI_TOK_PUNCT + ',' || t[1].kind == OI_TOK_PUNCT + ')');
    if (is_word && t[1].kind == OI_TOK_PUNCT + '=') {
        a.name = oi_cur_name(&p->cur, "a name");
        p->cur.tok++;
        if (names_operand(call, a.name.text)) {
            a.expr = oi_parse_cexpr(p);
            return a;
        }
        oi_attr attr = {a.name, oi_parse_value(p)};
        oi_attr_normalise(p->g->arena, call, &attr);
        a.value = attr.value;
    } else if (ends && oi_dtype_find_n(p->cur.source->text + t->start, t->end - t->start)) {
        a.value = (oi_value){.kind = OI_VAL_DTYPE, .span = oi_cur_span(&p->cur, t)};
        a.value.dtype = oi_parse_dtype(p);
    } else {
        a.expr = oi_parse_cexpr(p);
    }
    return a;
}

/* call = IDENT "(" [ carg {"," carg} ] ")" */
static oi_cexpr *call(oi_parser *p)
{
    const oi_token *first = p->cur.tok;
    oi_name name = oi_cur_name(&p->cur, "an op");
    oi_cargs args = {0};
    uint16_t deepest = 0;
    if (!p->cur.failed)
        oi_cur_expect(&p->cur, '(', "'('");
    while (!p->cur.failed && !oi_cur_is(&p->cur, ')')) {
        oi_carg a = argument(p, name.text);
        *OI_PUSH(p->g->arena, &args) = a;
        if (a.expr && a.expr->depth > deepest)
            deepest = a.expr->depth;
        if (p->cur.failed || !oi_cur_accept(&p->cur, ','))
            break;
    }
    if (!p->cur.failed)
        oi_cur_expect(&p->cur, ')', "',' or ')'");
    oi_cexpr *e = new_cexpr(p, OI_CEXPR_CALL, first, NULL, NULL);
    e->depth = (uint16_t)(deepest + 1);
    e->name = name;
    e->args = args;
    return e;
}

/* prim = call | mref | IDENT | NUMBER | "(" cexpr ")" */
static const oi_cexpr *prim(oi_parser *p)
{
    const oi_token *t = p->cur.tok;
    oi_value v = {.kind = t->kind == OI_TOK_FLOAT ? OI_VAL_FLOAT : OI_VAL_INT};
    if (t->kind == OI_TOK_IDENT && t[1].kind == OI_TOK_PUNCT + '(')
        return call(p);
    if (t->kind == OI_TOK_IDENT && t[1].kind == OI_TOK_PUNCT + '[')
        return mref(p);
    if (oi_cur_accept(&p->cur, '(')) {
        const oi_cexpr *e = oi_parse_cexpr(p);
        if (!p->cur.failed)
            oi_cur_expect(&p->cur, ')', "')'");
        return e;
    }
    if (t->kind != OI_TOK_IDENT && t->kind != OI_TOK_INT && t->kind != OI_TOK_FLOAT) {
        oi_cur_unexpected(&p->cur, "a value: a name, a number, a call or '('");
        return nothing(p);
    }
    oi_name name = {0};
    if (t->kind == OI_TOK_IDENT)
        name = oi_cur_name(&p->cur, "a name");
    else if (t->kind == OI_TOK_INT)
        oi_cur_int(&p->cur, &v.magnitude);
    else if (oi_cur_float(&p->cur, &v.number) && v.number - v.number != 0)
        oi_cur_error(&p->cur, t, "E001", "the number is beyond the largest f64");
    oi_cexpr *e = new_cexpr(p, name.text ? OI_CEXPR_NAME : OI_CEXPR_NUMBER, t, NULL, NULL);
    e->name = name;
    e->value = v;
    e->value.span = e->span;
    return e;
}

/* -- operators -- */

static const char *const ops[] = {[OI_CEXPR_NEG] = "neg",
                                  [OI_CEXPR_ADD] = "add",
                                  [OI_CEXPR_SUB] = "sub",
                                  [OI_CEXPR_MUL] = "mul",
                                  [OI_CEXPR_DIV] = "div"};

/* A number with its sign is a number. */
static const oi_cexpr *negative(const oi_parser *p, const oi_cexpr *number, const oi_token *first)
{
    oi_cexpr *e = oi_arena_alloc(p->g->arena, sizeof *e);
    *e = *number;
    e->value.number = -e->value.number;
    e->value.negative = !e->value.negative && e->value.magnitude != 0;
    e->span = e->value.span = oi_cur_span_from(&p->cur, first);
    return e;
}

/* un = ["-"] prim */
static const oi_cexpr *un(oi_parser *p)
{
    const oi_token *first = p->cur.tok;
    if (p->cur.failed || !oi_cur_accept(&p->cur, '-'))
        return p->cur.failed ? nothing(p) : prim(p);
    const oi_token *after = p->cur.tok;
    const oi_cexpr *e = prim(p);
    if (e->kind == OI_CEXPR_NUMBER && (after->kind == OI_TOK_INT || after->kind == OI_TOK_FLOAT)) {
        if (e->value.kind == OI_VAL_INT && e->value.magnitude > (uint64_t)INT64_MAX + 1)
            oi_cur_error(&p->cur, first, "E001", "integer literal is below -2^63");
        return negative(p, e, first);
    }
    oi_cexpr *out = new_cexpr(p, OI_CEXPR_NEG, first, e, NULL);
    out->name = (oi_name){ops[OI_CEXPR_NEG], oi_cur_span(&p->cur, first)};
    return out;
}

/* One level of operators that associate to the left. */
static const oi_cexpr *chain(oi_parser *p, const oi_cexpr *(*operand)(oi_parser *), char a,
                             oi_cexpr_kind kind_a, char b, oi_cexpr_kind kind_b)
{
    const oi_token *first = p->cur.tok;
    const oi_cexpr *e = operand(p);
    while (!p->cur.failed && (oi_cur_is(&p->cur, a) || oi_cur_is(&p->cur, b))) {
        const oi_token *sign = p->cur.tok++;
        bool is_a = sign->kind == OI_TOK_PUNCT + a;
        const oi_cexpr *r = operand(p);
        oi_cexpr *out = new_cexpr(p, is_a ? kind_a : kind_b, first, e, r);
        out->name = (oi_name){ops[out->kind], oi_cur_span(&p->cur, sign)};
        e = out;
    }
    return e;
}

/* prod = un {("*"|"/") un} */
static const oi_cexpr *prod(oi_parser *p)
{
    return chain(p, un, '*', OI_CEXPR_MUL, '/', OI_CEXPR_DIV);
}

/* sum = prod {("+"|"-") prod} */
static const oi_cexpr *sum(oi_parser *p)
{
    return chain(p, prod, '+', OI_CEXPR_ADD, '-', OI_CEXPR_SUB);
}

/* hints = "@" "{" [ IDENT ":" value {"," IDENT ":" value} ] "}" */
void oi_parse_hints(oi_parser *p, oi_attrs *out)
{
    p->cur.tok++; /* '@' */
    if (!oi_cur_expect(&p->cur, '{', "'{' and hints"))
        return;
    while (!p->cur.failed && !oi_cur_is(&p->cur, '}')) {
        const oi_token *at = p->cur.tok;
        oi_attr a = {.name = oi_cur_name(&p->cur, "a hint or '}'")};
        if (p->cur.failed || !oi_cur_expect(&p->cur, ':', "':' and a value"))
            return;
        for (size_t i = 0; i < out->n; i++)
            if (strcmp(out->at[i].name.text, a.name.text) == 0)
                oi_cur_error(&p->cur, at, "E054", "hint '%s' is given twice", a.name.text);
        a.value = oi_parse_value(p);
        *OI_PUSH(p->g->arena, out) = a;
        if (p->cur.failed || !oi_cur_accept(&p->cur, ','))
            break;
    }
    if (!p->cur.failed)
        oi_cur_expect(&p->cur, '}', "',' or '}'");
}

/* A copy that carries hints: parentheses may give an expression some already. */
static const oi_cexpr *hinted(oi_parser *p, const oi_cexpr *of)
{
    const oi_token *at = p->cur.tok;
    oi_cexpr *e = oi_arena_alloc(p->g->arena, sizeof *e);
    *e = *of;
    if (e->has_hints)
        oi_cur_error(&p->cur, at, "E054", "this value has hints already");
    e->has_hints = true;
    oi_parse_hints(p, &e->hints);
    return e;
}

/* cexpr = sum { "|>" call } [ hints ] */
const oi_cexpr *oi_parse_cexpr(oi_parser *p)
{
    const oi_token *first = p->cur.tok;
    if (p->cur.depth >= OI_MAX_EXPR_DEPTH) {
        oi_cur_error(&p->cur, first, "E001", "expression is too deep (more than %u levels)",
                     OI_MAX_EXPR_DEPTH);
        return nothing(p);
    }
    p->cur.depth++;
    const oi_cexpr *e = sum(p);
    while (!p->cur.failed && oi_cur_accept(&p->cur, OI_TOK_PIPE)) {
        const oi_cexpr *r = call(p);
        e = new_cexpr(p, OI_CEXPR_PIPE, first, e, r);
    }
    if (!p->cur.failed && oi_cur_is(&p->cur, '@'))
        e = hinted(p, e);
    p->cur.depth--;
    return e;
}
