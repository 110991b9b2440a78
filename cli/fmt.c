/* fmt.c: `openinfer fmt`. */
#include "cli.h"

static bool check, in_place;

static const cli_option options[] = {
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

static oi_status format_file(const char *path)
{
    oi_diag *diag = oi_diag_new();
    char *before = NULL, *after = NULL;
    size_t n = 0;
    oi_status status = read_text(path, &before, &n, diag);
    if (status == OI_OK)
        status = oi_graph_format(before, n, cli_path_name(path), &after, diag);
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
    oi_status status = OI_OK;
    for (size_t i = 0; i < args.n; i++)
        if (in_place && cli_is_stdin(args.at[i]))
            return cli_usage_error("-i needs a file to rewrite, not standard input");
    for (size_t i = 0; i < args.n; i++)
        status = cli_worse(status, format_file(args.at[i]));
    return status;
}

static const char *const examples[] = {
    "openinfer fmt model.oi",
    "print the canonical layout",
    "openinfer fmt -i model.oi",
    "rewrite the file, all or nothing",
    "openinfer fmt --check *.oi",
    "for a commit hook",
    "openinfer fmt -",
    "standard input to standard output, for an editor",
    NULL,
};

const cli_command CMD_fmt = {
    .description =
        "Lays a DSL text out canonically: two spaces per level, one statement per line, one "
        "blank line between sections and blocks. Comments stay, and so do single blank lines "
        "that group statements. Only the syntax must be right; openinfer check judges the rest. "
        "Several files are printed one after the other; - is standard input.",
    .examples = examples,
    .options = options,
    .run = run,
};
