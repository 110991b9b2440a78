/* graph.c: `openinfer graph`. */
#include "cli.h"

static const char *to, *output, *model_path;
static bool deterministic;
static cli_list size_list;
static cli_sizes sizes;
static oi_json_options json;

static const cli_option options[] = {
    OPT_CHOICE("to", 0, "json|text|dot|svg|html", &to, "what to write (default: text)"),
    OPT_TEXT("model", 0, "MODEL.oinf", &model_path,
             "take shapes from this model package, and check against it"),
    OPT_SIZES(&size_list),
    OPT_TEXT("output", 'o', "FILE", &output, "write there instead of to stdout"),
    OPT_FLAG("deterministic", 0, &deterministic, "derive the node uuids, so that builds repeat"),
    OPT_FLAG("spans", 0, &json.spans, "JSON: also say where each node stood in the source"),
    OPT_END,
};

static oi_status convert(const oi_graph *g, char **out, oi_diag *diag)
{
    const char *form = to ? to : "text";
    if (strcmp(form, "json") == 0)
        return oi_graph_to_json(g, &json, out, diag);
    if (strcmp(form, "dot") == 0)
        return oi_graph_to_dot(g, out, diag);
    if (strcmp(form, "svg") == 0)
        return oi_graph_to_svg(g, out, diag);
    if (strcmp(form, "html") == 0)
        return oi_graph_to_html(g, out, diag);
    return oi_graph_to_text(g, out, diag);
}

/* Checked against the model, when one is named or the graph comes from one. */
static oi_status load(const char *path, oi_graph **g, oi_diag *diag)
{
    oi_model *model = NULL;
    oi_status status = cli_sizes_read(&size_list, &sizes);
    if (status == OI_OK)
        status = cli_model_open(model_path, &path, 1, &model, diag);
    if (status == OI_OK)
        status = cli_graph_read(path, model, &sizes, g, diag);
    if (status == OI_OK && (model || sizes.n)) {
        const oi_check_options o = {.model = model, .sizes = sizes.at, .n_sizes = sizes.n};
        status = oi_graph_check(*g, &o, diag);
    }
    oi_model_close(model);
    cli_sizes_free(&sizes);
    return status;
}

static oi_status run(cli_args args)
{
    oi_diag *diag = oi_diag_new();
    oi_graph *g = NULL;
    char *text = NULL;
    oi_status status = load(args.at[0], &g, diag);
    if (status == OI_OK && deterministic)
        oi_graph_make_deterministic(g);
    if (status == OI_OK)
        status = convert(g, &text, diag);
    if (status == OI_OK)
        status = cli_write(output, text);
    oi_free(text);
    oi_graph_free(g);
    return cli_done(status, diag);
}

static const char *const examples[] = {
    "openinfer graph model.oi --to svg -o model.svg",
    "a picture: memory, blocks, statements and the values that flow between them",
    "openinfer graph model.oi --to json --deterministic",
    "Graph JSON, the same bytes every time",
    "openinfer graph model.json",
    "back to readable text",
    NULL,
};

const cli_command CMD_graph = {
    .description =
        "Converts a graph between its forms and draws it. GRAPH is FILE.oi, FILE.json, or "
        "MODEL.oinf when the package embeds a graph (MODEL.oinf#NAME for a named one), which it is "
        "then "
        "checked against.\n\n"
        "Text and JSON hold the same graph: going from one to the other and back changes "
        "nothing. The drawings (svg, html) need no other program; dot is for Graphviz.",
    .examples = examples,
    .options = options,
    .run = run,
};
