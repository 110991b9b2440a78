/* check.c: every rule of spec/dsl.md that needs neither model nor executor.
 * needs:  a graph without parse errors
 * gives:  all violations with their places, up to the limit of the diagnostics, in text order
 * cost:   linear in the graph; scratch memory ends with the call */
#include "graph/check.h"

/* -- helpers of the rule files -- */

bool oi_check_stop(const oi_checker *c)
{
    return oi_diag_full(c->d);
}

oi_place oi_check_at(const oi_checker *c, const oi_node *n, oi_span span)
{
    return oi_graph_place_node(c->g, c->a, n, span);
}

oi_place oi_check_at_var(const oi_checker *c, const oi_var *v, oi_span span)
{
    return oi_graph_place_var(c->g, c->a, v, span);
}

void oi_check_note_symbol(const oi_checker *c, const oi_symbol *s)
{
    oi_place at = s->var ? oi_check_at_var(c, s->var, s->span) : oi_check_at(c, s->node, s->span);
    if (s->kind == OI_SYM_INDEX)
        oi_diag_note(c->d, at, "'%s' is the index of this loop", s->name);
    else
        oi_diag_note(c->d, at, "'%s' is declared here", s->name);
}

void oi_check_hint(const oi_checker *c, const oi_nearest *near)
{
    if (near->best)
        oi_diag_hint(c->d, "did you mean '%s'?", near->best);
}

/* The nearest variable or index in scope. Only runs for errors, whose number is bounded. */
void oi_check_hint_symbol(const oi_checker *c, const oi_node *n, const char *word)
{
    oi_nearest near = oi_nearest_start(word);
    for (size_t i = 0; i < c->syms->list.n; i++) {
        const oi_symbol *s = &c->syms->list.at[i];
        if (s->kind != OI_SYM_INDEX || oi_graph_loop_around(c->g, n, s->name))
            oi_nearest_offer(&near, s->name);
    }
    oi_check_hint(c, &near);
}

static const oi_expr *literal(oi_expr *to, int64_t v)
{
    *to = (oi_expr){
        .kind = OI_EXPR_INT, .negative = v < 0, .magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v};
    return to;
}

static int report_fold(const oi_checker *c, oi_place at, const oi_expr *e, oi_eval_status why,
                       const char *code)
{
    if (e->span.line)
        at.span = e->span;
    const char *text = oi_expr_text(c->a, e);
    if (why == OI_EVAL_DIV_ZERO)
        oi_diag_error(c->d, at, code, "division by zero in '%s'", text);
    else if (why == OI_EVAL_INEXACT)
        oi_diag_error(c->d, at, code, "'%s' leaves a remainder; a dim must divide exactly", text);
    else
        oi_diag_error(c->d, at, code, "'%s' does not fit a 64-bit signed integer", text);
    return -1;
}

int oi_check_fold(const oi_checker *c, oi_place at, const oi_expr *e, bool exact, const char *code,
                  int64_t *out)
{
    int64_t a = 0, b = 0;
    oi_expr l, r, flat = *e;
    if (e->kind == OI_EXPR_NAME || e->kind == OI_EXPR_RUNTIME)
        return 0;
    if (e->kind != OI_EXPR_INT) {
        int lhs = oi_check_fold(c, at, e->lhs, exact, code, &a);
        int rhs = lhs < 0 || !e->rhs ? lhs : oi_check_fold(c, at, e->rhs, exact, code, &b);
        if (lhs < 0 || rhs < 0)
            return -1;
        bool divides = e->kind == OI_EXPR_DIV || e->kind == OI_EXPR_MOD;
        if (!lhs && rhs && divides && b == 0)
            return report_fold(c, at, e, OI_EVAL_DIV_ZERO, code);
        if (!lhs || !rhs)
            return 0;
        flat.lhs = literal(&l, a);
        flat.rhs = e->rhs ? literal(&r, b) : NULL;
    }
    oi_eval_status s = oi_expr_eval(&flat, exact, NULL, NULL, out, NULL);
    return s == OI_EVAL_OK ? 1 : report_fold(c, at, e, s, code);
}

int oi_check_node_fold(const oi_checker *c, const oi_node *n, const oi_expr *e, int64_t *out)
{
    return oi_check_fold(c, oi_check_at(c, n, e->span), e, false, "E047", out);
}

/* -- the check -- */

/* A section after a block: W102, strict E002. */
static void late_section(const oi_checker *c)
{
    if (!c->g->late_section.line)
        return;
    oi_place at = {.source = &c->g->source, .span = c->g->late_section};
    if (c->strict)
        oi_diag_error(c->d, at, "E002", "a memory section after a block");
    else
        oi_diag_warn(c->d, at, "W102", "a memory section after a block");
    oi_diag_hint(c->d, "declare all memory before the first block");
}

/* A key that the reader has ignored: W112 then, E019 here when strict. */
static void unknown_key(const oi_checker *c)
{
    if (c->strict && c->g->unknown_key)
        oi_diag_error(c->d, (oi_place){.file = c->g->origin, .pointer = c->g->unknown_key}, "E019",
                      "an unknown key");
}

static void run(void *ctx)
{
    oi_checker *c = ctx;
    c->free_ids.arena = c->a;
    c->syms = oi_graph_symbols(c->g, c->a);
    late_section(c);
    unknown_key(c);
    oi_check_duplicates(c);
    for (size_t i = 0; i < c->g->vars.n && !oi_check_stop(c); i++)
        oi_check_var(c, &c->g->vars.at[i]);
    oi_check_blocks(c);
    for (size_t i = 0; i < c->g->nodes.n && !oi_check_stop(c); i++) {
        const oi_node *n = &c->g->nodes.at[i];
        oi_check_dims(c, n);
        oi_check_names(c, n);
        oi_check_access(c, n);
        oi_check_op(c, n);
        oi_check_hints(c, n);
    }
    if (!oi_check_stop(c))
        oi_check_scopes(c);
    if (!oi_check_stop(c))
        oi_check_async(c);
}

static oi_status check(oi_checker *c)
{
    size_t before = oi_diag_errors(c->d), first = oi_diag_count(c->d);
    oi_status status = oi_arena_guard(c->a, run, c);
    oi_diag_sort(c->d, first);
    if (status != OI_OK)
        return oi_diag_env(c->d, c->g->origin ? c->g->origin : "graph", "out of memory");
    return oi_diag_errors(c->d) > before ? OI_ERR_INPUT : OI_OK;
}

oi_status oi_graph_check_structure(const oi_graph *g, bool strict, oi_diag *d)
{
    oi_diag *own = d ? NULL : oi_diag_new(); /* errors must be seen to decide */
    oi_checker c = {.g = g, .strict = strict, .d = d ? d : own, .a = oi_arena_new()};
    oi_status status = c.d && c.a ? check(&c) : OI_ERR_ENV;
    oi_arena_free(c.a);
    oi_diag_free(own);
    return status;
}
