/* select.c: the type of what an access to persistent memory selects (spec/dsl.md §6 and §7). Sizes
 * that only the run knows (how far a table has grown) stay unknown; a slice has a known length when
 * its ends compute, or when their difference simplifies, as in step..step+T. */
#include "program/check.h"

/* -- length of a slice -- */

#define MAX_TERMS 16u /* longer sums are not simplified */

/* A sum: literal part and signed terms. */
typedef struct sum {
    int64_t literal;
    size_t n;
    const oi_expr *terms[MAX_TERMS];
    int sign[MAX_TERMS]; /* 0: cancelled */
    bool failed;         /* too long, or beyond i64 */
} sum;

static void add_term(sum *s, const oi_expr *e, int sign)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->sign[i] == -sign && oi_expr_equal(s->terms[i], e)) {
            s->sign[i] = 0;
            return;
        }
    if (s->n == MAX_TERMS) {
        s->failed = true;
        return;
    }
    s->terms[s->n] = e;
    s->sign[s->n++] = sign;
}

static void add_sum(sum *s, const oi_expr *e, int sign)
{
    int64_t value;
    switch (e->kind) {
    case OI_EXPR_ADD:
    case OI_EXPR_SUB:
        add_sum(s, e->lhs, sign);
        add_sum(s, e->rhs, e->kind == OI_EXPR_ADD ? sign : -sign);
        return;
    case OI_EXPR_NEG: add_sum(s, e->lhs, -sign); return;
    default: break;
    }
    if (oi_expr_is_literal(e, &value))
        s->failed |= sign > 0 ? __builtin_add_overflow(s->literal, value, &s->literal)
                              : __builtin_sub_overflow(s->literal, value, &s->literal);
    else
        add_term(s, e, sign);
}

/* Whether all names in it are sizes: a variable's value is not known before the run. */
static bool only_sizes(const oi_typer *t, const oi_node *n, const oi_symbol *s, const oi_expr *e)
{
    if (!e)
        return true;
    if (e->kind == OI_EXPR_NAME)
        return !oi_symbols_at(t->syms, n, e->name) && !oi_symbol_axis(s, e->name) &&
               !oi_symbols_index(t->syms, e->name);
    return only_sizes(t, n, s, e->lhs) && only_sizes(t, n, s, e->rhs);
}

static const oi_expr *join(oi_typer *t, oi_expr_kind kind, const oi_expr *a, const oi_expr *b)
{
    if (!a && kind == OI_EXPR_ADD)
        return b;
    oi_expr *e = oi_arena_alloc(t->a, sizeof *e);
    *e = a ? (oi_expr){.kind = kind, .lhs = a, .rhs = b} : (oi_expr){.kind = OI_EXPR_NEG, .lhs = b};
    return e;
}

/* What is left of the sum, positive terms first, as an expression; NULL when nothing is. */
static const oi_expr *rest(oi_typer *t, const sum *s)
{
    const oi_expr *e = NULL;
    for (int sign = 1; sign >= -1; sign -= 2)
        for (size_t i = 0; i < s->n; i++)
            if (s->sign[i] == sign)
                e = join(t, sign > 0 ? OI_EXPR_ADD : OI_EXPR_SUB, e, s->terms[i]);
    if (s->literal == 0 && e)
        return e;
    oi_expr *literal = oi_arena_alloc(t->a, sizeof *literal);
    *literal =
        (oi_expr){.kind = OI_EXPR_INT,
                  .negative = s->literal < 0 && !e,
                  .magnitude = s->literal < 0 ? 0 - (uint64_t)s->literal : (uint64_t)s->literal};
    return join(t, s->literal < 0 && e ? OI_EXPR_SUB : OI_EXPR_ADD, e, literal);
}

static bool negative_literal(const oi_expr *e)
{
    int64_t v;
    return oi_expr_is_literal(e, &v) && v < 0;
}

/* The length of a slice whose end counts from the end of an axis of length n. */
static oi_dim from_end(const oi_sel *x, oi_dim n)
{
    int64_t start = 0, end = 0;
    if (!n.known || n.value < 0 || (x->start && !oi_expr_is_literal(x->start, &start)) || start < 0)
        return (oi_dim){0};
    if (x->end)
        oi_expr_is_literal(x->end, &end);
    int64_t value = n.value + end; /* signs differ */
    if (__builtin_sub_overflow(value, start, &value))
        return (oi_dim){0};
    return (oi_dim){.known = true, .value = value, .text = value < 0 ? n.text : NULL};
}

/* The length of selector x over an axis of length n. */
static oi_dim length(oi_typer *t, const oi_node *at, const oi_symbol *s, const oi_sel *x, oi_dim n)
{
    sum left = {0};
    oi_dim unknown = {0};
    if (!x->start && !x->end)
        return n;
    if (!x->end || negative_literal(x->end)) /* counts from the end */
        return from_end(x, n);
    add_sum(&left, x->end, 1);
    if (x->start)
        add_sum(&left, x->start, -1);
    for (size_t i = 0; i < left.n; i++)
        if (left.sign[i] && !only_sizes(t, at, s, left.terms[i]))
            return unknown;
    return left.failed ? unknown : oi_typer_dim(t, rest(t, &left));
}

/* -- axes -- */

static void keep(oi_type *out, oi_dim d)
{
    if (out->rank < OI_MAX_RANK)
        out->dims[out->rank] = d;
    out->rank++;
}

/* One axis of length n under selector i of the access: dropped, cut or kept. */
static void axis(oi_typer *t, const oi_node *at, const oi_symbol *s, const oi_access *a, size_t i,
                 oi_dim n, oi_type *out)
{
    const oi_sel *x = i < a->sels.n ? &a->sels.at[i] : NULL;
    if (!x)
        keep(out, n);
    else if (x->is_slice)
        keep(out, length(t, at, s, x, n));
}

static bool grows_whole(const oi_access *a, const oi_symbol *s)
{
    bool all = a->sels.n == s->n_axes && s->n_table < s->n_axes;
    for (size_t i = s->n_table; all && i < s->n_axes; i++)
        all = !a->sels.at[i].is_slice;
    return all;
}

/* E046 once sizes have values; a length without text came from literals alone, which the structure
 * check has seen to. */
static bool is_forward(oi_typer *t, const oi_node *n, const oi_access *a, const oi_type *out)
{
    for (uint32_t i = 0; i < out->rank; i++)
        if (out->dims[i].known && out->dims[i].value < 0) {
            if (!out->dims[i].text)
                return false;
            oi_diag_error(t->d, oi_typer_at(t, n, a->span), "E046",
                          "'%s' selects a slice that ends before it starts",
                          oi_access_text(t->a, a));
            return false;
        }
    return true;
}

bool oi_typer_select(oi_typer *t, const oi_node *n, const oi_access *a, const oi_symbol *s,
                     oi_type *out)
{
    oi_type entry;
    size_t most = s->n_axes ? s->n_axes : s->dims->n;
    if (a->sels.n > most || !oi_typer_type(t, s, &entry))
        return false;
    out->dtype = s->dtype;
    out->rank = 0;
    for (size_t i = 0; i < s->n_table; i++)
        axis(t, n, s, a, i, s->axes[i].fixed ? oi_typer_dim(t, s->axes[i].fixed) : (oi_dim){0},
             out);
    bool whole = grows_whole(a, s);
    size_t n_auto = s->n_axes - s->n_table;
    for (size_t k = 0; k < entry.rank; k++) {
        if (k < n_auto && whole)
            keep(out, (oi_dim){0});
        else if (k < n_auto)
            axis(t, n, s, a, s->n_table + k, (oi_dim){0}, out);
        else if (s->n_axes)
            keep(out, entry.dims[k]);
        else
            axis(t, n, s, a, k, entry.dims[k], out);
    }
    if (out->rank <= OI_MAX_RANK)
        return is_forward(t, n, a, out);
    oi_diag_error(t->d, oi_typer_at(t, n, a->span), "E051", "'%s' has %u dims; %d are possible",
                  oi_access_text(t->a, a), out->rank, OI_MAX_RANK);
    return false;
}
