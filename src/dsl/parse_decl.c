/* parse_decl.c: memory sections, declarations and their attributes. */
#include "dsl/dsl.h"

static oi_place at_span(const oi_parser *p, oi_span span)
{
    return (oi_place){.source = p->cur.source, .span = span, .pointer = p->cur.pointer};
}

/* -- attributes -- */

/* aarg = [ IDENT "=" ] item */
static void aargs(oi_parser *p, oi_attrs *out)
{
    if (!oi_cur_accept(&p->cur, '('))
        return;
    while (!oi_cur_is(&p->cur, ')') && !p->cur.failed) {
        oi_attr a = {0};
        if (p->cur.tok->kind == OI_TOK_IDENT && p->cur.tok[1].kind == OI_TOK_PUNCT + '=') {
            a.name = oi_cur_name(&p->cur, "a name");
            p->cur.tok++;
        }
        a.value = oi_parse_item(p, false);
        *OI_PUSH(p->g->arena, out) = a;
        if (!oi_cur_accept(&p->cur, ','))
            break;
    }
    oi_cur_expect(&p->cur, ')', "',' or ')'");
}

/* Wrong arguments of a known attribute. */
static void misuse(oi_parser *p, const oi_token *at, const char *usage)
{
    oi_cur_error(&p->cur, at, "E001", "wrong arguments: write %s", usage);
}

static void init_attr(oi_parser *p, oi_var *v, const oi_token *at, const oi_attrs *args)
{
    if (args->n != 1 || args->at[0].name.text) {
        misuse(p, at, "@init(VALUE)");
        return;
    }
    const oi_value *value = &args->at[0].value;
    const char *code = oi_scalar_from_value(v->dtype, value, &v->init);
    if (!code) {
        v->has_init = true;
        return;
    }
    oi_buf text = {0};
    oi_value_print(&text, value);
    const oi_dtype_info *d = oi_dtype_get(v->dtype);
    const char *shown = text.text ? text.text : "";
    if (strcmp(code, "E015") == 0)
        oi_diag_error(p->cur.diag, at_span(p, value->span), code,
                      "@init(%s) does not suit %s: it takes %s", shown, d->name,
                      v->dtype == OI_BOOL           ? "true, false, 0 or 1"
                      : oi_dtype_is_float(v->dtype) ? "a number, inf or nan"
                                                    : "an integer");
    else if (oi_dtype_is_float(v->dtype))
        oi_diag_error(p->cur.diag, at_span(p, value->span), code,
                      "@init(%s) is beyond the largest finite %s", shown, d->name);
    else
        oi_diag_error(p->cur.diag, at_span(p, value->span), code,
                      "@init(%s) is out of range for %s, which holds %lld … %llu%s", shown, d->name,
                      (long long)d->min, (unsigned long long)d->max,
                      v->dtype == OI_T1 ? " without 0" : "");
    oi_buf_free(&text);
}

/* @ref("k"), @ref(k), @pattern("…") */
static const char *text_attr(oi_parser *p, const oi_token *at, const oi_attrs *args, bool names,
                             const char *usage)
{
    const oi_value *v = args->n == 1 && !args->at[0].name.text ? &args->at[0].value : NULL;
    if (v && v->kind == OI_VAL_STR && !memchr(v->text, '\0', v->n))
        return v->text;
    if (v && names && v->kind == OI_VAL_NAME)
        return v->text;
    misuse(p, at, usage);
    return NULL;
}

static void names_attr(oi_parser *p, const oi_token *at, const oi_attrs *args, oi_names *out)
{
    for (size_t i = 0; i < args->n; i++) {
        const oi_value *v = &args->at[i].value;
        if (args->at[i].name.text || v->kind != OI_VAL_NAME) {
            misuse(p, at, "@auto_dim(INDEX, …)");
            return;
        }
        *OI_PUSH(p->g->arena, out) = (oi_name){v->text, v->span};
    }
    if (!args->n)
        misuse(p, at, "@auto_dim(INDEX, …)");
}

static const oi_expr *value_expr(oi_parser *p, const oi_value *v)
{
    if (v->kind == OI_VAL_EXPR)
        return v->expr;
    oi_expr *e = oi_arena_alloc(p->g->arena, sizeof *e);
    *e = (oi_expr){.kind = v->kind == OI_VAL_NAME ? OI_EXPR_NAME : OI_EXPR_INT,
                   .depth = 1,
                   .negative = v->negative,
                   .magnitude = v->magnitude,
                   .name = v->text,
                   .span = v->span};
    return e;
}

static void bounds_attr(oi_parser *p, const oi_token *at, const oi_attrs *args, oi_bounds *out,
                        const char *usage)
{
    for (size_t i = 0; i < args->n; i++) {
        const oi_value *v = &args->at[i].value;
        bool is_int = v->kind == OI_VAL_INT || v->kind == OI_VAL_NAME || v->kind == OI_VAL_EXPR;
        if (!args->at[i].name.text || !is_int) {
            misuse(p, at, usage);
            return;
        }
        *OI_PUSH(p->g->arena, out) = (oi_bound){args->at[i].name, value_expr(p, v)};
    }
    if (!args->n)
        misuse(p, at, usage);
}

static void known_attr(oi_parser *p, oi_var *v, oi_decl_attr which, const oi_token *at,
                       const oi_attrs *args)
{
    switch (which) {
    case OI_AT_INIT: init_attr(p, v, at, args); break;
    case OI_AT_REF: v->ref_name = text_attr(p, at, args, true, "@ref(\"KEY\")"); break;
    case OI_AT_PATTERN:
        v->pattern = text_attr(p, at, args, false, "@pattern(\"NAME.{index}\")");
        break;
    case OI_AT_TABLE:
        v->table = true;
        if (args->n)
            misuse(p, at, "@table, without arguments");
        break;
    case OI_AT_AUTO_DIM: names_attr(p, at, args, &v->auto_dim); break;
    case OI_AT_FIXED: bounds_attr(p, at, args, &v->fixed, "@fixed(INDEX=N, …)"); break;
    default: bounds_attr(p, at, args, &v->cap, "@cap(INDEX=N, …)"); break;
    }
}

/* attr = [ "@" ] IDENT [ "(" [ aarg {"," aarg} ] ")" ] */
static void attr(oi_parser *p, oi_var *v)
{
    bool has_at = oi_cur_accept(&p->cur, '@');
    const oi_token *at = p->cur.tok;
    oi_name name = oi_cur_name(&p->cur, has_at ? "an attribute name" : "an attribute or ';'");
    oi_attrs args = {0};
    if (!p->cur.failed)
        aargs(p, &args);
    if (p->cur.failed)
        return;
    if (!has_at)
        oi_diag_warn(p->cur.diag, at_span(p, name.span), "W103", "attribute '%s' without '@'",
                     name.text);
    for (int i = 0; i < OI_AT_COUNT; i++) {
        if (strcmp(name.text, oi_decl_attr_names[i]) != 0)
            continue;
        if (v->at[i].line) {
            oi_diag_error(p->cur.diag, at_span(p, name.span), "E017", "@%s is given twice",
                          name.text);
            oi_diag_note(p->cur.diag, at_span(p, v->at[i]), "first given here");
            return;
        }
        v->at[i] = name.span;
        known_attr(p, v, (oi_decl_attr)i, at, &args);
        return;
    }
    *OI_PUSH(p->g->arena, &v->extra) = (oi_extra_attr){name, args};
}

/* -- declarations -- */

/* "(" IDENT {"," IDENT} ")" */
static void indices(oi_parser *p, oi_var *v)
{
    if (!oi_cur_accept(&p->cur, '('))
        return;
    oi_parse_names(p, &v->indices, "an index name");
    oi_cur_expect(&p->cur, ')', "',' or ')'");
}

/* decl = IDENT [ "(" IDENT {"," IDENT} ")" ] ":" dtype [ dims ] { attr } ";" */
static oi_var decl(oi_parser *p, oi_var_kind kind)
{
    oi_var v = {.kind = kind, .name = oi_cur_name(&p->cur, "a declaration or '}'")};
    if (!p->cur.failed)
        indices(p, &v);
    if (!p->cur.failed && oi_cur_expect(&p->cur, ':', "':' and an element type"))
        v.dtype = oi_parse_dtype(p);
    if (!p->cur.failed)
        oi_parse_dims(p, &v.dims);
    while (!p->cur.failed && !oi_cur_is(&p->cur, ';'))
        attr(p, &v);
    if (!p->cur.failed)
        oi_cur_expect(&p->cur, ';', "';'");
    return v;
}

static void section_decl(oi_parser *p, oi_var_kind kind)
{
    const oi_token *first = p->cur.tok;
    oi_var v = decl(p, kind);
    if (v.dtype != OI_NONE) { /* even when an attribute is wrong: uses of the name are not */
        uint32_t id = oi_graph_add_var(p->g, &v);
        if (!p->cur.failed)
            oi_parse_item_mark(p, OI_ITEM_DECL, id, first);
    }
    if (p->cur.failed)
        oi_parse_resync(p);
}

bool oi_parse_one_decl(oi_parser *p, oi_var_kind kind)
{
    size_t errors = oi_diag_errors(p->cur.diag);
    oi_var v = decl(p, kind);
    if (!p->cur.failed && p->cur.tok->kind != OI_TOK_END)
        oi_cur_unexpected(&p->cur, "the end of the text");
    if (p->cur.failed || oi_diag_errors(p->cur.diag) > errors)
        return false;
    oi_graph_add_var(p->g, &v);
    return true;
}

/* section = ( "dynamic" | "volatile" | "constant" | "constants" | "persistent" ) "{" { decl } "}"
 */
void oi_parse_section(oi_parser *p)
{
    const oi_token *first = p->cur.tok;
    oi_var_kind kind = oi_cur_is_word(&p->cur, "dynamic")      ? OI_DYNAMIC
                       : oi_cur_is_word(&p->cur, "volatile")   ? OI_VOLATILE
                       : oi_cur_is_word(&p->cur, "persistent") ? OI_PERSISTENT
                                                               : OI_CONSTANT;
    p->cur.tok++;
    if (!oi_cur_expect(&p->cur, '{', "'{'")) {
        oi_parse_resync(p);
        return;
    }
    if (p->g->blocks.n && !p->g->late_section.line)
        p->g->late_section = oi_cur_span(&p->cur, first);
    oi_parse_item_mark(p, OI_ITEM_SECTION, kind, first);
    while (!oi_cur_is(&p->cur, '}') && p->cur.tok->kind != OI_TOK_END && !oi_diag_full(p->cur.diag))
        section_decl(p, kind);
    const oi_token *close = p->cur.tok;
    oi_cur_expect(&p->cur, '}', "'}' at the end of the section");
    oi_parse_item_mark(p, OI_ITEM_CLOSE, kind, close);
}
