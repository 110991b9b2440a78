/* fmt.c: `openinfer fmt`. */
#include "cli.h"

#include <string.h>

static bool check, in_place;
static const char *to, *model_path;
static cli_list size_list;
static cli_sizes sizes;

static const cli_option options[] = {
    OPT_CHOICE("to", 0, "explicit|compact", &to, "write it in this form of the language"),
    OPT_TEXT("model", 0, "MODEL.oinf", &model_path, "the package that the compact form needs"),
    OPT_SIZES(&size_list),
    OPT_FLAG("check", 0, &check, "write nothing; exit 1 when the layout is not canonical"),
    OPT_FLAG("in-place", 'i', &in_place, "rewrite the file"),
    OPT_END,
};

static oi_status finish(const char *path, const char *before, const char *after)
{
    bool same = strcmp(before, after) == 0;
    const char *name = cli_path_name(path);
    if (check && !same && cli_is_stdin(path))
        return cli_fail(OI_ERR_INPUT, "%s is not in canonical layout", name);
    if (check && !same)
        return cli_fail(OI_ERR_INPUT, "%s is not in canonical layout; run openinfer fmt -i %s",
                        name, name);
    if (check)
        return OI_OK;
    if (in_place)
        return same ? OI_OK : cli_write(path, after);
    return cli_write(NULL, after);
}

static oi_status read_text(const char *path, char **out, size_t *n, oi_diag *diag)
{
    return cli_is_stdin(path) ? cli_stdin(out, n) : oi_text_read(path, out, n, diag);
}

/* The text in the other form; comments stay behind. */
static oi_status convert(const char *path, const char *before, size_t n, char **out, oi_diag *diag)
{
    oi_graph *g = NULL;
    oi_model *model = NULL;
    oi_status status = cli_model_open(model_path, NULL, 0, &model, diag);
    const oi_graph_options o = {.model = model, .sizes = sizes.at, .n_sizes = sizes.n};
    if (status == OI_OK)
        status = oi_graph_parse_with(before, n, cli_path_name(path), &o, &g, diag);
    if (status == OI_OK)
        status = strcmp(to, "compact") == 0 ? oi_graph_to_compact(g, &o, out, diag)
                                            : oi_graph_to_text(g, out, diag);
    oi_graph_free(g);
    oi_model_close(model);
    return status;
}

static bool is_in_form(const char *text, size_t n)
{
    return !to || oi_text_is_compact(text, n) == (strcmp(to, "compact") == 0);
}

static oi_status format_file(const char *path)
{
    oi_diag *diag = oi_diag_new();
    char *before = NULL, *after = NULL;
    size_t n = 0;
    oi_status status = read_text(path, &before, &n, diag);
    if (status == OI_OK)
        status = is_in_form(before, n)
                     ? oi_graph_format(before, n, cli_path_name(path), &after, diag)
                     : convert(path, before, n, &after, diag);
    if (status == OI_OK)
        status = finish(path, before, after);
    oi_free(before);
    oi_free(after);
    return cli_done(status, diag);
}

static oi_status run(cli_args args)
{
    if (check && in_place)
        return cli_usage_error("--check and -i exclude each other");
    oi_status status = cli_sizes_read(&size_list, &sizes);
    if (status != OI_OK)
        return status;
    for (size_t i = 0; i < args.n; i++)
        if (in_place && cli_is_stdin(args.at[i]))
            return cli_usage_error("-i needs a file to rewrite, not standard input");
    for (size_t i = 0; i < args.n; i++)
        status = cli_worse(status, format_file(args.at[i]));
    cli_sizes_free(&sizes);
    return status;
}

static const char *const examples[] = {
    "openinfer fmt model.oi",
    "print the canonical layout",
    "openinfer fmt -i model.oi",
    "rewrite the file, all or nothing",
    "openinfer fmt --check *.oi",
    "for a commit hook",
    "openinfer fmt --to explicit --model model.oinf compact.oi",
    "what a text in the compact form stands for",
    "openinfer fmt --to compact --model model.oinf model.oi",
    "the other way, where the compact form can say it",
    "openinfer fmt -",
    "standard input to standard output, for an editor",
    NULL,
};

const cli_command CMD_fmt = {
    .description =
        "Lays a DSL text out canonically: two spaces per level, one statement per line, one "
        "blank line between sections and blocks. Comments stay, and so do single blank lines "
        "that group statements. Only the syntax must be right; openinfer check judges the rest. "
        "Several files are printed one after the other; - is standard input.\n\n"
        "--to writes the other form of the language. The compact form takes types from the model, "
        "so it needs --model; what it cannot say is named line by line (E085). Comments stay "
        "behind.",
    .examples = examples,
    .options = options,
    .run = run,
};
