/* json.c: the public way in: JSON text -> Graph, checked as far as no source text is needed. */
#include "graph/json_read.h"

typedef struct job {
    oi_graph *g;
    const char *name;
    struct json_object *tree;
    oi_json_reader reader;
} job;

static void read_tree(void *ctx)
{
    job *j = ctx;
    j->g->origin = oi_arena_text(j->g->arena, j->name, strlen(j->name));
    oi_read_graph(&j->reader, j->tree);
}

/* Errors only: warnings are for those who ask, with oi_graph_check. */
static oi_status check(const oi_graph *g, oi_diag *diag)
{
    if (oi_graph_check_structure(g, false, NULL) == OI_OK)
        return OI_OK;
    return oi_graph_check_structure(g, false, diag);
}

static oi_status load(const char *text, size_t n, const char *name, oi_graph **out, oi_diag *diag)
{
    job j = {.name = name};
    OI_TRY(oi_json_parse(name, text, n, &j.tree, diag));
    size_t before = oi_diag_errors(diag);
    j.g = oi_graph_alloc();
    j.reader = (oi_json_reader){.g = j.g, .diag = diag};
    oi_status status = j.g ? oi_arena_guard(j.g->arena, read_tree, &j) : OI_ERR_ENV;
    oi_json_free(j.tree);
    if (status == OI_OK && oi_diag_errors(diag) > before)
        status = OI_ERR_INPUT;
    if (status == OI_OK)
        status = check(j.g, diag);
    if (status == OI_OK)
        *out = j.g;
    else
        oi_graph_free(j.g);
    return status;
}

oi_status oi_graph_from_json(const char *text, size_t n, const char *name, oi_graph **out,
                             oi_diag *diag)
{
    oi_diag *own = diag ? NULL : oi_diag_new();
    if (!diag && !own)
        return OI_ERR_ENV;
    oi_status status = load(text, n, name ? name : "graph", out, diag ? diag : own);
    oi_diag_free(own);
    return status;
}
