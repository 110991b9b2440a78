/* dsl.c: the way in: text -> Graph, or the tree of a text in the compact form. */
#include "dsl/dsl.h"

typedef struct parse_job {
    oi_graph *g;
    const char *text, *name;
    size_t n;
    uint32_t first_line;
    bool is_embedded;
    oi_diag *diag;
    bool is_compact;
} parse_job;

static void start(parse_job *j)
{
    oi_arena *a = j->g->arena;
    const char *name = oi_arena_text(a, j->name, strlen(j->name));
    oi_source_init(a, &j->g->source, name, oi_arena_text(a, j->text, j->n), j->n);
    j->g->source.first_line = j->first_line;
    j->g->source.is_embedded = j->is_embedded;
    j->g->origin = name;
}

static void parse(void *ctx)
{
    parse_job *j = ctx;
    start(j);
    oi_parse_graph(j->g, j->diag);
}

static void look(void *ctx)
{
    parse_job *j = ctx;
    start(j);
    j->is_compact = oi_parse_is_compact(j->g);
}

bool oi_text_is_compact(const char *text, size_t n)
{
    parse_job j = {.text = text, .name = "", .n = n, .first_line = 1};
    j.g = n <= OI_TEXT_LIMIT ? oi_graph_alloc() : NULL;
    if (j.g && oi_arena_guard(j.g->arena, look, &j) != OI_OK)
        j.is_compact = false;
    oi_graph_free(j.g);
    return j.is_compact;
}

static oi_status run(parse_job *j, oi_graph **out)
{
    if (j->n > OI_TEXT_LIMIT)
        return oi_diag_env(j->diag, j->name, "%zu bytes of text are too many (limit %u)", j->n,
                           OI_TEXT_LIMIT);
    size_t before = oi_diag_errors(j->diag), first = oi_diag_count(j->diag);
    j->g = oi_graph_alloc();
    oi_status status = j->g ? oi_arena_guard(j->g->arena, parse, j) : OI_ERR_ENV;
    oi_diag_sort(j->diag, first); /* the lexer ran ahead of the parser */
    if (status == OI_OK && oi_diag_errors(j->diag) > before)
        status = OI_ERR_INPUT;
    if (status == OI_OK)
        *out = j->g;
    else
        oi_graph_free(j->g);
    return status;
}

oi_status oi_dsl_read(const char *text, size_t n, const char *name, uint32_t first_line,
                      bool is_embedded, oi_graph **out, oi_diag *diag)
{
    oi_diag *own = diag ? NULL : oi_diag_new(); /* errors must be seen to decide */
    if (!diag && !own)
        return OI_ERR_ENV;
    parse_job j = {.text = text,
                   .name = name ? name : "graph",
                   .n = n,
                   .first_line = first_line,
                   .is_embedded = is_embedded,
                   .diag = diag ? diag : own};
    oi_status status = run(&j, out);
    oi_diag_free(own);
    return status;
}
