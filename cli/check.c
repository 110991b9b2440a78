/* check.c: `openinfer check`. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static const char *model_path;
static bool strict, as_json;
static cli_list size_list;
static cli_sizes sizes;

static const cli_option options[] = {
    OPT_TEXT("model", 0, "MODEL.oinf", &model_path, "also check against this model package"),
    OPT_SIZES(&size_list),
    OPT_FLAG("strict", 0, &strict, "strict mode: some warnings become errors"),
    OPT_FLAG("json", 0, &as_json, "print the diagnostics of all files as JSON, to stdout"),
    OPT_END,
};

/* -- tensors of the package that no graph reads -- */

static bool *is_used; /* by tensor of the --model; NULL when it is not counted */
static size_t n_tensors;

static void mark_used(void *ctx, size_t tensor)
{
    (void)ctx;
    if (is_used && tensor < n_tensors)
        is_used[tensor] = true;
}

static oi_status start_counting(oi_model *model)
{
    if (!model_path || is_used)
        return OI_OK;
    n_tensors = oi_model_n_tensors(model);
    is_used = calloc(n_tensors + 1, sizeof *is_used);
    return is_used ? OI_OK : cli_fail(OI_ERR_ENV, "out of memory");
}

static void list_unused(const oi_model *model)
{
    enum { SHOWN = 20 }; /* what a person reads */
    size_t n = 0, shown = 0;
    for (size_t i = 0; i < n_tensors; i++)
        n += !is_used[i];
    if (n)
        printf("%s: %zu of %zu tensors are not used: ", oi_model_path(model), n, n_tensors);
    for (size_t i = 0; i < n_tensors && shown < SHOWN; i++)
        if (!is_used[i])
            printf("%s%s", shown++ ? ", " : "", oi_model_tensor_name(model, i));
    if (n > shown)
        printf(" and %zu more (--json lists them)", n - shown);
    fputs(n ? "\n" : "", stdout);
}

static void put_unused(const oi_model *model)
{
    const char *comma = "";
    fputs(",\n  \"unused\": [", stdout);
    for (size_t i = 0; i < n_tensors; i++) {
        if (is_used[i])
            continue;
        fputs(comma, stdout);
        cli_json_text(stdout, oi_model_tensor_name(model, i));
        comma = ", ";
    }
    fputs("]", stdout);
}

/* Says what the --model holds in vain. */
static oi_status show_unused(oi_diag *diag)
{
    oi_model *model = NULL;
    oi_status status = oi_model_open(model_path, &model, diag);
    if (status == OI_OK)
        as_json ? put_unused(model) : list_unused(model);
    oi_model_close(model);
    return status;
}

/* With --json the diagnostics are the result. */
static oi_status report_json(oi_status status, oi_diag *diag)
{
    char *text = NULL;
    oi_status written = oi_diag_to_json(diag, &text);
    size_t n = written == OI_OK ? strlen(text) : 0; /* "{ ... }" and the line's end */
    if (n > 3)
        written = cli_write_bytes(NULL, text, n - 3);
    if (written == OI_OK && status == OI_OK && is_used)
        written = show_unused(diag);
    if (written == OI_OK)
        written = cli_write(NULL, "\n}\n");
    oi_free(text);
    oi_diag_free(diag);
    return written == OI_OK ? status : written;
}

static oi_status check(const char *path, oi_graph **g, oi_model **model, oi_diag *diag)
{
    oi_status status = cli_model_open(model_path, &path, 1, model, diag);
    if (status == OI_OK)
        status = cli_graph_read(path, *model, &sizes, g, diag);
    if (status != OI_OK)
        return status;
    const oi_check_options o = {.strict = strict,
                                .model = *model,
                                .sizes = sizes.at,
                                .n_sizes = sizes.n,
                                .on_tensor = mark_used};
    status = start_counting(*model);
    if (status != OI_OK)
        return status;
    return oi_graph_check(*g, &o, diag);
}

static oi_status check_file(const char *path, oi_diag *diag)
{
    oi_graph *g = NULL;
    oi_model *model = NULL;
    oi_status status = check(path, &g, &model, diag);
    if (!as_json) { /* what is wrong with this file, before the next one */
        cli_report(diag);
        oi_diag_clear(diag);
    }
    if (status == OI_OK && !as_json) {
        oi_graph_counts n = oi_graph_count(g);
        printf("%s: ok (%zu variable%s, %zu block%s, %zu node%s)\n", cli_path_name(path),
               n.variables, n.variables == 1 ? "" : "s", n.blocks, n.blocks == 1 ? "" : "s",
               n.nodes, n.nodes == 1 ? "" : "s");
    }
    oi_graph_free(g);
    oi_model_close(model);
    return status;
}

static oi_status run(cli_args args)
{
    oi_diag *diag = oi_diag_new();
    oi_status status = cli_sizes_read(&size_list, &sizes);
    if (as_json && args.n > 1)
        oi_diag_set_limit(diag, 20 * args.n); /* as many of each file as of one */
    for (size_t i = 0; i < args.n && status != OI_ERR_USAGE; i++)
        status = cli_worse(status, check_file(args.at[i], diag));
    cli_sizes_free(&sizes);
    if (!as_json && status == OI_OK && is_used)
        status = show_unused(diag);
    status = as_json ? report_json(status, diag) : cli_done(status, diag);
    free(is_used);
    return status;
}

static const char *const examples[] = {
    "openinfer check model.oi",
    "everything that can be decided without the model",
    "openinfer check model.oi --model model.oinf --strict",
    "also sizes, shapes and element types against the package",
    "openinfer check model.oi --json",
    "the diagnostics for an editor or a script",
    "generate-graph | openinfer check -",
    "text or JSON on standard input",
    NULL,
};

const cli_command CMD_check = {
    .description =
        "Checks a graph: names, memory kinds, blocks and calls, indices, op attributes, element "
        "types and shapes, yield and await. Each finding says FILE:LINE:COL, a code such as E051, "
        "what was found and what was wanted. GRAPH is FILE.oi, FILE.json, or MODEL.oinf when the "
        "package embeds a graph (MODEL.oinf#NAME for a named one); it is then checked against that "
        "package. - reads text or JSON from standard input. Each file is checked, whatever the "
        "others "
        "are like.\n\n"
        "With --model, what the graph needs is looked for in the package, and tensors of the "
        "package "
        "that none of the given graphs uses are listed. Without --model, sizes such as B stay "
        "names and only what must be wrong whatever their "
        "values is reported. At most 20 errors are shown.",
    .examples = examples,
    .options = options,
    .run = run,
};
