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
    if (check && !same)
        return cli_fail(OI_ERR_INPUT, "%s is not in canonical layout; run openinfer fmt -i %s",
                        path, path);
    if (check)
        return OI_OK;
    if (in_place)
        return same ? OI_OK : cli_write(path, after);
    return cli_write(NULL, after);
}

static oi_status run(cli_args args)
{
    if (check && in_place)
        return cli_usage_error("--check and -i exclude each other");
    oi_diag *diag = oi_diag_new();
    char *before = NULL, *after = NULL;
    size_t n = 0;
    oi_status status = oi_text_read(args.at[0], &before, &n, diag);
    if (status == OI_OK)
        status = oi_graph_format(before, n, args.at[0], &after, diag);
    if (status == OI_OK)
        status = finish(args.at[0], before, after);
    oi_free(before);
    oi_free(after);
    return cli_done(status, diag);
}

static const char *const examples[] = {
    "openinfer fmt model.oi",
    "print the canonical layout",
    "openinfer fmt -i model.oi",
    "rewrite the file, all or nothing",
    "openinfer fmt --check model.oi",
    "for a commit hook",
    NULL,
};

const cli_command CMD_fmt = {
    .description =
        "Lays a DSL text out canonically: two spaces per level, one statement per line, one "
        "blank line between sections and blocks. Comments stay, and so do single blank lines "
        "that group statements. Only the syntax must be right; openinfer check judges the rest.",
    .examples = examples,
    .options = options,
    .run = run,
};
