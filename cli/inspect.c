/* inspect.c: `openinfer inspect`. */
#include "cli.h"

#include <stdlib.h>

/* Read on demand rather than mapped: a file that shrinks meanwhile must not end us by a signal. */
static oi_model_options open_options = {.pread = true};
static oi_print_options print_options;

static const cli_option options[] = {
    OPT_FLAG("json", 0, &print_options.json, "print JSON"),
    OPT_FLAG("strict", 0, &open_options.strict, "reject what is otherwise a warning or ignored"),
    OPT_TEXT("tensor", 0, "NAME", &print_options.tensor, "only this tensor"),
    OPT_FLAG("hist", 0, &print_options.hist, "draw the histograms as bars too"),
    OPT_FLAG("allow-shared", 0, &open_options.allow_shared, "accept tensors that share their data"),
    OPT_END,
};

/* A package that comes through a pipe is kept in memory as long as it is shown. */
static oi_status open_package(const char *path, char **held, oi_model **out, oi_diag *diag)
{
    size_t n = 0;
    if (!cli_is_stdin(path))
        return oi_model_open_with(path, &open_options, out, diag);
    oi_status status = cli_stdin(held, &n);
    return status == OI_OK ? oi_model_open_memory(*held, n, &open_options, out, diag) : status;
}

static oi_status show_package(const char *path)
{
    oi_diag *diag = oi_diag_new();
    oi_model *model = NULL;
    char *held = NULL;
    oi_status status = open_package(path, &held, &model, diag);
    if (status == OI_OK)
        status = oi_model_print(model, stdout, &print_options, diag);
    oi_model_close(model);
    free(held);
    return cli_done(status, diag);
}

/* Several: each below its name; as JSON one object per file, in the order of the files. */
static oi_status run(cli_args args)
{
    oi_status status = OI_OK;
    for (size_t i = 0; i < args.n; i++) {
        if (args.n > 1 && !print_options.json)
            printf("%s== %s\n\n", i ? "\n" : "", cli_path_name(args.at[i]));
        status = cli_worse(status, show_package(args.at[i]));
    }
    return status;
}

static const char *const examples[] = {
    "openinfer inspect model.oinf",
    "sizes, metadata and tensors with their statistics",
    "openinfer inspect --tensor w --hist model.oinf",
    "one tensor, its histogram drawn",
    "openinfer inspect --json --strict model.oinf",
    "the tables for a program to read, nothing doubtful accepted",
    NULL,
};

const cli_command CMD_inspect = {
    .description =
        "Checks every rule of the package format, then prints the sizes, the metadata and the "
        "tensors, each sorted by name. A tensor is shown with its first and last values, its "
        "size, minimum, maximum, mean, median, standard deviation, histogram and quantisation.\n\n"
        "The first broken rule is printed as one line, oinf: PATH: REASON (offset N). Several "
        "packages "
        "are shown one after the other, with --json one object each; - is standard input.",
    .examples = examples,
    .options = options,
    .run = run,
};
