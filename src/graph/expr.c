/* expr.c: integer expressions and accesses: printing, comparing, evaluating. Trees are at most
 * OI_MAX_EXPR_DEPTH deep, so recursion is safe. */
#include "graph/graph.h"

/* -- printing -- */

static int precedence(const oi_expr *e)
{
    switch (e->kind) {
    case OI_EXPR_ADD:
    case OI_EXPR_SUB: return 1;
    case OI_EXPR_MUL:
    case OI_EXPR_DIV:
    case OI_EXPR_MOD: return 2;
    default: return 3;
    }
}

static void print_operand(oi_buf *out, const oi_expr *e, bool parens)
{
    if (parens)
        oi_buf_putc(out, '(');
    oi_expr_print(out, e);
    if (parens)
        oi_buf_putc(out, ')');
}

void oi_expr_print(oi_buf *out, const oi_expr *e)
{
    int p = precedence(e);
    switch (e->kind) {
    case OI_EXPR_INT:
        oi_buf_printf(out, "%s%llu", e->negative ? "-" : "", (unsigned long long)e->magnitude);
        return;
    case OI_EXPR_NAME: oi_buf_puts(out, e->name); return;
    case OI_EXPR_RUNTIME: oi_buf_putc(out, '?'); return;
    case OI_EXPR_NEG:
        oi_buf_putc(out, '-');
        print_operand(out, e->lhs, precedence(e->lhs) < 3);
        return;
    default:
        /* Operators of one level associate to the left, so a right operand of the same level keeps
         * its parentheses: a-(b-c), but also a+(b+c), whose overflow differs. */
        print_operand(out, e->lhs, precedence(e->lhs) < p);
        oi_buf_putc(out, "+-*/%"[e->kind - OI_EXPR_ADD]);
        print_operand(out, e->rhs, precedence(e->rhs) <= p);
    }
}

static void print_sel(oi_buf *out, const oi_sel *s, bool alone)
{
    if (s->start)
        oi_expr_print(out, s->start);
    if (s->is_slice && (s->start || s->end || alone))
        oi_buf_puts(out, "..");
    if (s->end)
        oi_expr_print(out, s->end);
}

void oi_access_print(oi_buf *out, const oi_access *a, bool spaced)
{
    oi_buf_puts(out, a->base.text);
    if (!a->bracketed)
        return;
    oi_buf_putc(out, '[');
    for (size_t i = 0; i < a->sels.n; i++) {
        if (i)
            oi_buf_puts(out, spaced ? ", " : ",");
        print_sel(out, &a->sels.at[i], a->sels.n == 1);
    }
    oi_buf_putc(out, ']');
}

char *oi_expr_text(oi_arena *a, const oi_expr *e)
{
    oi_buf b = {0};
    oi_expr_print(&b, e);
    return oi_buf_to_arena(&b, a);
}

char *oi_access_text(oi_arena *a, const oi_access *x)
{
    oi_buf b = {0};
    oi_access_print(&b, x, true);
    return oi_buf_to_arena(&b, a);
}

/* -- comparing -- */

bool oi_expr_equal(const oi_expr *a, const oi_expr *b)
{
    if (!a || !b || a->kind != b->kind)
        return a == b;
    switch (a->kind) {
    case OI_EXPR_INT: return a->negative == b->negative && a->magnitude == b->magnitude;
    case OI_EXPR_NAME: return strcmp(a->name, b->name) == 0;
    case OI_EXPR_RUNTIME: return true;
    default: return oi_expr_equal(a->lhs, b->lhs) && oi_expr_equal(a->rhs, b->rhs);
    }
}

bool oi_expr_is_literal(const oi_expr *e, int64_t *out)
{
    if (!e || e->kind != OI_EXPR_INT)
        return false;
    if (e->magnitude > (uint64_t)INT64_MAX + e->negative)
        return false;
    *out = e->negative ? (int64_t)(0 - e->magnitude) : (int64_t)e->magnitude;
    return true;
}

/* -- evaluating -- */

typedef struct eval {
    bool exact;
    oi_lookup lookup;
    void *ctx;
    const oi_expr **at;
} eval;

static oi_eval_status fail(const eval *v, const oi_expr *e, oi_eval_status why)
{
    if (v->at)
        *v->at = e;
    return why;
}

static oi_eval_status divide(const eval *v, const oi_expr *e, int64_t a, int64_t b, int64_t *out)
{
    if (b == 0)
        return fail(v, e, OI_EVAL_DIV_ZERO);
    if (a == INT64_MIN && b == -1) {
        *out = 0;
        return e->kind == OI_EXPR_MOD ? OI_EVAL_OK : fail(v, e, OI_EVAL_OVERFLOW);
    }
    int64_t quotient = a / b, rest = a % b;
    if (e->kind == OI_EXPR_DIV && v->exact && rest)
        return fail(v, e, OI_EVAL_INEXACT);
    bool below = rest && (rest < 0) != (b < 0); /* C truncates; we floor */
    *out = e->kind == OI_EXPR_DIV ? quotient - below : rest + (below ? b : 0);
    return OI_EVAL_OK;
}

static oi_eval_status run(const eval *v, const oi_expr *e, int64_t *out)
{
    int64_t a = 0, b = 0;
    if (e->kind == OI_EXPR_INT)
        return oi_expr_is_literal(e, out) ? OI_EVAL_OK : fail(v, e, OI_EVAL_OVERFLOW);
    if (e->kind == OI_EXPR_NAME)
        return v->lookup && v->lookup(v->ctx, e->name, out) ? OI_EVAL_OK
                                                            : fail(v, e, OI_EVAL_UNKNOWN);
    if (e->kind == OI_EXPR_RUNTIME)
        return fail(v, e, OI_EVAL_UNKNOWN);
    oi_eval_status s = run(v, e->lhs, &a);
    if (s == OI_EVAL_OK && e->rhs)
        s = run(v, e->rhs, &b);
    if (s != OI_EVAL_OK)
        return s;
    bool overflow = false;
    switch (e->kind) {
    case OI_EXPR_NEG: overflow = __builtin_sub_overflow((int64_t)0, a, out); break;
    case OI_EXPR_ADD: overflow = __builtin_add_overflow(a, b, out); break;
    case OI_EXPR_SUB: overflow = __builtin_sub_overflow(a, b, out); break;
    case OI_EXPR_MUL: overflow = __builtin_mul_overflow(a, b, out); break;
    default: return divide(v, e, a, b, out);
    }
    return overflow ? fail(v, e, OI_EVAL_OVERFLOW) : OI_EVAL_OK;
}

oi_eval_status oi_expr_eval(const oi_expr *e, bool exact, oi_lookup lookup, void *ctx, int64_t *out,
                            const oi_expr **at)
{
    eval v = {exact, lookup, ctx, at};
    return run(&v, e, out);
}
