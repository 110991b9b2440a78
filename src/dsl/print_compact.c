/* print_compact.c: statements and expressions of the compact form as text, with the fewest
 * parentheses that keep the tree. print.c lays them out. */
#include "dsl/dsl.h"

static int precedence(const oi_cexpr *e)
{
    if (e->has_hints)
        return 0;
    switch (e->kind) {
    case OI_CEXPR_PIPE: return 1;
    case OI_CEXPR_ADD:
    case OI_CEXPR_SUB: return 2;
    case OI_CEXPR_MUL:
    case OI_CEXPR_DIV: return 3;
    case OI_CEXPR_NEG: return 4;
    default: return 5;
    }
}

static void cexpr(oi_buf *out, const oi_cexpr *e);

static void operand(oi_buf *out, const oi_cexpr *e, int least)
{
    bool parens = precedence(e) < least;
    if (parens)
        oi_buf_putc(out, '(');
    cexpr(out, e);
    if (parens)
        oi_buf_putc(out, ')');
}

static void argument(oi_buf *out, const oi_carg *a)
{
    if (a->name.text)
        oi_buf_printf(out, "%s=", a->name.text);
    if (a->expr)
        cexpr(out, a->expr);
    else
        oi_value_print(out, &a->value);
}

static void mref(oi_buf *out, const oi_cexpr *e)
{
    oi_buf_printf(out, "%s[%s", e->name.text, e->is_format ? "format!(" : "");
    oi_value_print(out, &e->value);
    for (size_t i = 0; i < e->format_args.n; i++) {
        oi_buf_puts(out, ", ");
        oi_expr_print(out, e->format_args.at[i]);
    }
    oi_buf_puts(out, e->is_format ? ")]" : "]");
}

static void call(oi_buf *out, const oi_cexpr *e)
{
    oi_buf_printf(out, "%s(", e->name.text);
    for (size_t i = 0; i < e->args.n; i++) {
        oi_buf_puts(out, i ? ", " : "");
        argument(out, &e->args.at[i]);
    }
    oi_buf_putc(out, ')');
}

/* A number behind a minus would become a literal. */
static void negated(oi_buf *out, const oi_cexpr *e)
{
    oi_buf_putc(out, '-');
    operand(out, e->lhs, e->lhs->kind == OI_CEXPR_NUMBER ? 6 : 5);
}

static void binary(oi_buf *out, const oi_cexpr *e)
{
    static const char *const signs[] = {[OI_CEXPR_ADD] = " + ",
                                        [OI_CEXPR_SUB] = " - ",
                                        [OI_CEXPR_MUL] = " * ",
                                        [OI_CEXPR_DIV] = " / ",
                                        [OI_CEXPR_PIPE] = " |> "};
    int p = e->kind == OI_CEXPR_PIPE                             ? 1
            : e->kind == OI_CEXPR_ADD || e->kind == OI_CEXPR_SUB ? 2
                                                                 : 3;
    operand(out, e->lhs, p);
    oi_buf_puts(out, signs[e->kind]);
    operand(out, e->rhs, p + 1);
}

static void cexpr(oi_buf *out, const oi_cexpr *e)
{
    switch (e->kind) {
    case OI_CEXPR_NAME: oi_buf_puts(out, e->name.text); break;
    case OI_CEXPR_NUMBER: oi_value_print(out, &e->value); break;
    case OI_CEXPR_MODEL: mref(out, e); break;
    case OI_CEXPR_CALL: call(out, e); break;
    case OI_CEXPR_NEG: negated(out, e); break;
    default: binary(out, e); break;
    }
    if (e->has_hints)
        oi_hints_print(out, &e->hints);
}

static void names(oi_buf *out, const oi_cstmt *s)
{
    oi_buf_puts(out, s->is_tuple ? "(" : "");
    for (size_t i = 0; i < s->names.n; i++)
        oi_buf_printf(out, "%s%s", i ? ", " : "", s->names.at[i].text);
    oi_buf_puts(out, s->is_tuple ? ")" : "");
}

static void for_header(oi_buf *out, const oi_cstmt *s)
{
    oi_buf_printf(out, "for %s in ", s->index.text);
    oi_expr_print(out, s->start);
    oi_buf_puts(out, "..");
    oi_expr_print(out, s->end);
    oi_buf_puts(out, " {");
}

static void statement(oi_buf *out, const oi_cstmt *s)
{
    if (s->kind == OI_CSTMT_OUTPUT)
        oi_buf_puts(out, "output ");
    else if (s->is_let)
        oi_buf_puts(out, "let ");
    names(out, s);
    if (s->names.n && s->kind != OI_CSTMT_OUTPUT)
        oi_buf_puts(out, " = ");
    if (s->kind == OI_CSTMT_FOR) {
        for_header(out, s);
        return;
    }
    if (s->kind == OI_CSTMT_BIND)
        cexpr(out, s->expr);
    oi_buf_putc(out, ';');
}

static void input(oi_buf *out, const oi_cinput *in)
{
    oi_buf_printf(out, "%s: %s", in->name.text, oi_dtype_name(in->dtype));
    if (in->dims.n)
        oi_dims_print(out, &in->dims);
    else
        oi_buf_puts(out, "[]");
    oi_buf_putc(out, ',');
}

static void state(oi_buf *out, const oi_cstate *s)
{
    oi_buf_printf(out, "%s: kv_cache(%s, layers=", s->name.text, oi_dtype_name(s->dtype));
    oi_expr_print(out, s->layers);
    oi_buf_puts(out, ", cap=");
    oi_expr_print(out, s->cap);
    oi_buf_puts(out, s->has_shape ? ", shape=" : "");
    oi_dims_print(out, &s->shape);
    oi_buf_puts(out, s->has_shape && !s->shape.n ? "[])," : "),");
}

void oi_compact_print(oi_buf *out, const oi_compact *c, const oi_item *item)
{
    switch (item->kind) {
    case OI_ITEM_MODEL: oi_buf_printf(out, "model: %s,", c->model.text); break;
    case OI_ITEM_INPUTS: oi_buf_puts(out, "inputs: {"); break;
    case OI_ITEM_INPUT: input(out, &c->inputs.at[item->id]); break;
    case OI_ITEM_STATES: oi_buf_puts(out, "state: {"); break;
    case OI_ITEM_STATE: state(out, &c->states.at[item->id]); break;
    case OI_ITEM_SECTION_END: oi_buf_puts(out, "},"); break;
    case OI_ITEM_FOR_END: oi_buf_puts(out, c->list.at[item->id]->is_let ? "};" : "}"); break;
    default: statement(out, c->list.at[item->id]); break;
    }
}
