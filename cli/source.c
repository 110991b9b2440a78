/* source.c: what commands read: graphs from files, packages and standard input, the model that goes
 * with them, and --size NAME=N. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool cli_is_stdin(const char *path)
{
    return strcmp(path, "-") == 0;
}

const char *cli_path_name(const char *path)
{
    return cli_is_stdin(path) ? "<stdin>" : path;
}

/* -- standard input -- */

oi_status cli_stdin(char **out, size_t *n)
{
    enum { LIMIT = 1 << 30 }; /* a pipe has no size to look at first */
    size_t cap = 1 << 16;
    char *text = malloc(cap + 1);
    *n = 0;
    while (text && *n < LIMIT) {
        size_t got = fread(text + *n, 1, cap - *n, stdin);
        *n += got;
        if (got == 0)
            break;
        if (*n == cap) {
            char *more = realloc(text, 2 * cap + 1);
            if (!more)
                free(text);
            text = more;
            cap *= 2;
        }
    }
    if (!text)
        return cli_fail(OI_ERR_ENV, "out of memory");
    bool failed = ferror(stdin), is_long = *n >= LIMIT;
    text[*n] = '\0';
    *out = text;
    if (failed || is_long)
        free(text);
    if (failed)
        return cli_fail(OI_ERR_ENV, "cannot read standard input: %s", strerror(errno));
    return is_long ? cli_fail(OI_ERR_INPUT, "standard input is longer than 1 GiB") : OI_OK;
}

/* -- models -- */

/* Length of the package's path in MODEL.oinf or MODEL.oinf#NAME; 0 when the graph is no package. */
static size_t package_length(const char *graph)
{
    for (const char *end = graph; (end = strstr(end, ".oinf")); end++)
        if (end[5] == '\0' || end[5] == '#')
            return (size_t)(end + 5 - graph);
    return 0;
}

/* The one package that the graphs come from; NULL when none does. */
static oi_status package_of(const char *const *graphs, size_t n, char **out)
{
    const char *first = NULL;
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        size_t m = package_length(graphs[i]);
        if (m && first && (m != length || memcmp(first, graphs[i], m) != 0))
            return cli_usage_error("these graphs come from several packages: say which is the "
                                   "model with --model");
        if (m) {
            first = graphs[i];
            length = m;
        }
    }
    *out = first ? malloc(length + 1) : NULL;
    if (first && !*out)
        return cli_fail(OI_ERR_ENV, "out of memory");
    if (first) {
        memcpy(*out, first, length);
        (*out)[length] = '\0';
    }
    return OI_OK;
}

oi_status cli_model_open(const char *named, const char *const *graphs, size_t n, oi_model **out,
                         oi_diag *diag)
{
    char *own = NULL;
    oi_status status = named ? OI_OK : package_of(graphs, n, &own);
    const char *path = own ? own : named;
    if (status == OI_OK && path)
        status = oi_model_open(path, out, diag);
    free(own);
    return status;
}

/* -- sizes -- */

static oi_status read_size(const char *text, oi_size *out, char *name)
{
    const char *eq = strchr(text, '=');
    char *end = NULL;
    if (!eq || eq == text)
        return cli_usage_error("--size %s: write NAME=N", text);
    memcpy(name, text, (size_t)(eq - text));
    name[eq - text] = '\0';
    errno = 0;
    *out = (oi_size){name, strtoull(eq + 1, &end, 10)};
    if (eq[1] < '0' || eq[1] > '9' || *end || errno)
        return cli_usage_error("--size %s: '%s' is not a whole number", name, eq + 1);
    return OI_OK;
}

oi_status cli_sizes_read(const cli_list *list, cli_sizes *out)
{
    size_t room = 1;
    for (size_t i = 0; i < list->n; i++)
        room += strlen(list->at[i]) + 1;
    *out = (cli_sizes){.at = calloc(list->n + 1, sizeof *out->at), .names = malloc(room)};
    if (!out->at || !out->names)
        return cli_fail(OI_ERR_ENV, "out of memory");
    char *name = out->names;
    for (; out->n < list->n; out->n++) {
        oi_status status = read_size(list->at[out->n], &out->at[out->n], name);
        if (status != OI_OK)
            return status;
        name += strlen(name) + 1;
    }
    return OI_OK;
}

void cli_sizes_free(cli_sizes *s)
{
    free(s->at);
    free(s->names);
    *s = (cli_sizes){0};
}

/* -- graphs -- */

/* Text of the language never begins with a brace, JSON always does. */
static bool is_json(const char *text, size_t n)
{
    size_t at = 0;
    while (at < n && strchr(" \t\r\n", text[at]))
        at++;
    return at < n && text[at] == '{';
}

static oi_status graph_from_stdin(const oi_graph_options *options, oi_graph **out, oi_diag *diag)
{
    char *text = NULL;
    size_t n = 0;
    const char *name = cli_path_name("-");
    oi_status status = cli_stdin(&text, &n);
    if (status != OI_OK)
        return status;
    if (n >= 4 && memcmp(text, "OINF", 4) == 0)
        status =
            cli_fail(OI_ERR_INPUT, "standard input is a model package: name its file instead of -");
    else
        status = is_json(text, n) ? oi_graph_from_json(text, n, name, out, diag)
                                  : oi_graph_parse_with(text, n, name, options, out, diag);
    free(text);
    return status;
}

oi_status cli_graph_read(const char *path, oi_model *model, const cli_sizes *sizes, oi_graph **out,
                         oi_diag *diag)
{
    const oi_graph_options o = {.model = model, .sizes = sizes->at, .n_sizes = sizes->n};
    return cli_is_stdin(path) ? graph_from_stdin(&o, out, diag)
                              : oi_graph_load_with(path, &o, out, diag);
}
