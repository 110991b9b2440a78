/* write.c: the public way out: Graph -> text in the compact form. */
#include "compact/raise.h"

static void raise(void *ctx)
{
    oi_raise(ctx);
}

static oi_status write_with(const oi_graph *g, const oi_graph_options *o, char **out, oi_diag *d)
{
    size_t before = oi_diag_errors(d), first = oi_diag_count(d);
    oi_raiser r = {.g = g, .d = d, .a = oi_arena_new()};
    r.typer.model = o->model;
    r.typer.given = o->sizes;
    r.typer.n_given = o->n_sizes;
    char *raw = NULL;
    oi_status status = r.a ? oi_arena_guard(r.a, raise, &r) : OI_ERR_ENV;
    oi_diag_sort(d, first);
    if (status == OI_OK && oi_diag_errors(d) > before)
        status = OI_ERR_INPUT;
    if (status == OI_OK)
        status = oi_buf_take(&r.text, &raw);
    if (status == OI_OK)
        status = oi_graph_format(raw, strlen(raw), g->origin ? g->origin : "graph", out, d);
    oi_free(raw);
    oi_buf_free(&r.text);
    oi_json_free(r.typer.json);
    bool unreadable = r.typer.unreadable;
    oi_arena_free(r.a);
    return status == OI_ERR_ENV && !unreadable
               ? oi_diag_env(d, g->origin ? g->origin : "graph", "out of memory")
               : status;
}

oi_status oi_graph_to_compact(const oi_graph *g, const oi_graph_options *options, char **out,
                              oi_diag *diag)
{
    static const oi_graph_options none;
    oi_diag *own = diag ? NULL : oi_diag_new(); /* errors must be seen to decide */
    if (!diag && !own)
        return OI_ERR_ENV;
    oi_status status = write_with(g, options ? options : &none, out, diag ? diag : own);
    oi_diag_free(own);
    return status;
}
