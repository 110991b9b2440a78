/* check.c: `openinfer check`. */
#include "cli.h"

#include <string.h>

static const char *model_path;
static bool strict, as_json;

static const cli_option options[] = {
    OPT_TEXT("model", 0, "MODEL.oinf", &model_path, "also check against this model package"),
    OPT_FLAG("strict", 0, &strict, "strict mode: some warnings become errors"),
    OPT_FLAG("json", 0, &as_json, "print the diagnostics as JSON, to stdout"),
    OPT_END,
};

/* Diagnostics are the result when a program asked for them. */
static oi_status report_json(oi_status status, oi_diag *diag)
{
    char *text = NULL;
    oi_status written = oi_diag_to_json(diag, &text);
    if (written == OI_OK)
        written = cli_write(NULL, text);
    oi_free(text);
    oi_diag_free(diag);
    return written == OI_OK ? status : written;
}

/* --model, or the package that the graph itself comes from (MODEL.oinf, MODEL.oinf#NAME). */
static oi_status open_model(const char *graph, oi_model **out, oi_diag *diag)
{
    const char *end = strstr(graph, ".oinf");
    char path[4096];
    if (model_path)
        return oi_model_open(model_path, out, diag);
    if (!end || (end[5] && end[5] != '#') || (size_t)(end + 5 - graph) >= sizeof path)
        return OI_OK;
    memcpy(path, graph, (size_t)(end + 5 - graph));
    path[end + 5 - graph] = '\0';
    return oi_model_open(path, out, diag);
}

static oi_status check(const char *path, oi_graph **g, oi_model **model, oi_diag *diag)
{
    oi_status status = oi_graph_load(path, g, diag);
    if (status == OI_OK)
        status = open_model(path, model, diag);
    if (status != OI_OK)
        return status;
    return oi_graph_check(*g, &(oi_check_options){.strict = strict, .model = *model}, diag);
}

static oi_status run(cli_args args)
{
    oi_diag *diag = oi_diag_new();
    oi_graph *g = NULL;
    oi_model *model = NULL;
    oi_status status = check(args.at[0], &g, &model, diag);
    if (status == OI_OK && !as_json) {
        oi_graph_counts n = oi_graph_count(g);
        printf("%s: ok (%zu variable%s, %zu block%s, %zu node%s)\n", args.at[0], n.variables,
               n.variables == 1 ? "" : "s", n.blocks, n.blocks == 1 ? "" : "s", n.nodes,
               n.nodes == 1 ? "" : "s");
    }
    oi_graph_free(g);
    oi_model_close(model);
    return as_json ? report_json(status, diag) : cli_done(status, diag);
}

static const char *const examples[] = {
    "openinfer check model.oi",
    "everything that can be decided without the model",
    "openinfer check model.oi --model model.oinf --strict",
    "also sizes, shapes and element types against the package",
    "openinfer check model.oi --json",
    "the diagnostics for an editor or a script",
    NULL,
};

const cli_command CMD_check = {
    .description =
        "Checks a graph: names, memory kinds, blocks and calls, indices, op attributes, element "
        "types and shapes, yield and await. Each finding says FILE:LINE:COL, a code such as E051, "
        "what was found and what was wanted. GRAPH is FILE.oi, FILE.json, or MODEL.oinf when the "
        "package embeds a graph (MODEL.oinf#NAME for a named one); it is then checked against that "
        "package.\n\n"
        "Without --model, sizes such as B stay names and only what must be wrong whatever their "
        "values is reported. At most 20 errors are shown.",
    .examples = examples,
    .options = options,
    .run = run,
};
