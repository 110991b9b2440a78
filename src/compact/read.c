/* read.c: the public way in: text of either form -> Graph. */
#include "compact/lower.h"
#include "dsl/dsl.h"

static void lower(void *ctx)
{
    oi_compact_lower(ctx);
}

/* The graph has an arena of its own; what only the lowering needs ends with it. */
static void guard_graph(void *ctx)
{
    oi_lowerer *l = ctx;
    l->status = oi_arena_guard(l->g->arena, lower, l);
}

static oi_status lower_graph(oi_graph *g, const oi_graph_options *options, oi_diag *diag)
{
    size_t before = oi_diag_errors(diag), first = oi_diag_count(diag);
    oi_lowerer l = {.g = g, .a = oi_arena_new(), .d = diag};
    l.typer.model = options->model;
    l.typer.given = options->sizes;
    l.typer.n_given = options->n_sizes;
    oi_status status = l.a ? oi_arena_guard(l.a, guard_graph, &l) : OI_ERR_ENV;
    if (status == OI_OK)
        status = l.status;
    oi_json_free(l.typer.json);
    oi_arena_free(l.a);
    oi_diag_sort(diag, first);
    if (status == OI_ERR_ENV && !l.typer.unreadable)
        return oi_diag_env(diag, g->origin ? g->origin : "graph", "out of memory");
    return status == OI_OK && oi_diag_errors(diag) > before ? OI_ERR_INPUT : status;
}

static oi_status read_graph(const char *text, size_t n, const char *name, const oi_graph_options *o,
                            bool is_embedded, oi_graph **out, oi_diag *diag)
{
    oi_graph *g;
    const uint32_t line = o->first_line ? o->first_line : 1;
    OI_TRY(oi_dsl_read(text, n, name, line, is_embedded, &g, diag));
    oi_status status = g->compact ? lower_graph(g, o, diag) : OI_OK;
    if (status == OI_OK)
        *out = g;
    else
        oi_graph_free(g);
    return status;
}

/* Errors must be seen to decide, so a caller without a diag gets one of ours for the time. */
static oi_status read_with(const char *text, size_t n, const char *name, const oi_graph_options *o,
                           bool is_embedded, oi_graph **out, oi_diag *diag)
{
    oi_diag *own = diag ? NULL : oi_diag_new();
    if (!diag && !own)
        return OI_ERR_ENV;
    oi_status status = read_graph(text, n, name, o, is_embedded, out, diag ? diag : own);
    oi_diag_free(own);
    return status;
}

oi_status oi_graph_parse_with(const char *text, size_t n, const char *name,
                              const oi_graph_options *options, oi_graph **out, oi_diag *diag)
{
    static const oi_graph_options none;
    return read_with(text, n, name, options ? options : &none, false, out, diag);
}

oi_status oi_graph_parse_embedded(const char *text, const char *file, uint32_t line, oi_graph **out,
                                  oi_diag *diag)
{
    const oi_graph_options options = {.first_line = line};
    return read_with(text, strlen(text), file, &options, true, out, diag);
}

oi_status oi_graph_parse_at(const char *text, size_t n, const char *name, uint32_t first_line,
                            oi_graph **out, oi_diag *diag)
{
    return oi_graph_parse_with(text, n, name, &(oi_graph_options){.first_line = first_line}, out,
                               diag);
}

oi_status oi_graph_parse(const char *text, size_t n, const char *name, oi_graph **out,
                         oi_diag *diag)
{
    return oi_graph_parse_with(text, n, name, NULL, out, diag);
}
