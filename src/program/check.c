/* check.c: the public way to all static checks: structure first, then types, then the model. */
#include "program/check.h"

oi_graph_counts oi_graph_count(const oi_graph *g)
{
    oi_graph_counts n = {.variables = g->vars.n, .blocks = g->blocks.n, .nodes = g->nodes.n};
    for (size_t i = 0; i < g->nodes.n; i++)
        n.variables += g->nodes.at[i].kind == OI_NODE_ASSIGN;
    return n;
}

static void run(void *ctx)
{
    oi_typer *t = ctx;
    t->sizes.arena = t->linked.arena = t->refused.arena = t->a;
    t->syms = oi_graph_symbols(t->g, t->a);
    oi_typer_check_given(t);
    t->has_value = oi_arena_alloc(t->a, (t->syms->list.n + 1) * sizeof *t->has_value);
    if (t->model) {
        oi_link_states(t);
        oi_link_vars(t);
    }
    for (size_t i = 0; i < t->g->nodes.n && !oi_diag_full(t->d); i++) {
        oi_typer_check_node(t, &t->g->nodes.at[i]);
        if (t->model)
            oi_link_names(t, &t->g->nodes.at[i]);
        else if (!t->is_complete)
            oi_warn_quotes(t, &t->g->nodes.at[i]);
    }
    if (t->model)
        oi_link_keys(t);
    if ((t->model || t->is_complete) && !t->is_broken)
        oi_link_reads(t);
}

static oi_status check(oi_typer *t)
{
    size_t before = oi_diag_errors(t->d), first = oi_diag_count(t->d);
    oi_status status = oi_graph_check_structure(t->g, t->strict, t->d);
    if (status == OI_ERR_ENV)
        return status;
    t->is_broken = status != OI_OK;
    status = oi_arena_guard(t->a, run, t);
    oi_diag_sort(t->d, first);
    if (t->unreadable)
        return status;
    if (status != OI_OK)
        return oi_diag_env(t->d, t->g->origin ? t->g->origin : "graph", "out of memory");
    return oi_diag_errors(t->d) > before ? OI_ERR_INPUT : OI_OK;
}

oi_status oi_graph_check(const oi_graph *g, const oi_check_options *options, oi_diag *diag)
{
    oi_diag *own = diag ? NULL : oi_diag_new(); /* errors must be seen to decide */
    oi_typer t = {.g = g, .d = diag ? diag : own, .a = oi_arena_new()};
    if (options) {
        t.strict = options->strict;
        t.model = options->model;
        t.given = options->sizes;
        t.n_given = options->n_sizes;
        t.is_complete = options->is_complete;
        t.on_tensor = options->on_tensor;
        t.on_tensor_ctx = options->ctx;
    }
    oi_status status = t.d && t.a ? check(&t) : OI_ERR_ENV;
    oi_json_free(t.json);
    oi_arena_free(t.a);
    oi_diag_free(own);
    return status;
}
