/* load.c: a graph from wherever users keep it: FILE.oi, FILE.json, MODEL.oinf or MODEL.oinf#NAME.
 */
#include "base/base.h"

static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

/* Text or JSON, by what the key says. */
static oi_status parse(const char *text, size_t n, const char *name, bool json,
                       const oi_graph_options *options, oi_graph **out, oi_diag *diag)
{
    return json ? oi_graph_from_json(text, n, name, out, diag)
                : oi_graph_parse_with(text, n, name, options, out, diag);
}

/* One embedded graph; OI_NOT_FOUND when the package has no such key. */
static oi_status embedded(oi_model *m, const char *path, const char *key, bool json,
                          const oi_graph_options *options, oi_graph **out, oi_diag *diag)
{
    char *text;
    size_t n;
    OI_TRY(oi_model_meta_text(m, key, &text, &n, diag));
    oi_buf name = {0};
    oi_buf_printf(&name, "%s#%s", path, key);
    oi_status status = parse(text, n, name.text ? name.text : path, json, options, out, diag);
    oi_buf_free(&name);
    oi_free(text);
    return status;
}

static oi_status same_graph(oi_graph *a, oi_graph *b, const char *path, oi_diag *diag)
{
    char *x = NULL, *y = NULL;
    oi_graph_make_deterministic(a);
    oi_graph_make_deterministic(b);
    oi_status status = oi_graph_to_json(a, NULL, &x, diag);
    if (status == OI_OK)
        status = oi_graph_to_json(b, NULL, &y, diag);
    if (status == OI_OK && strcmp(x, y) != 0)
        status = oi_diag_error(diag, (oi_place){.file = path}, "E001",
                               "oi.graph and oi.graph.json describe different graphs");
    oi_free(x);
    oi_free(y);
    return status;
}

/* oi.graph and oi.graph.json; the text wins, but they must agree. */
static oi_status main_graph(oi_model *m, const char *path, const oi_graph_options *options,
                            oi_graph **out, oi_diag *diag)
{
    oi_graph *json = NULL;
    oi_status text = embedded(m, path, "oi.graph", false, options, out, diag);
    if (text != OI_OK && text != OI_NOT_FOUND)
        return text;
    oi_status second =
        embedded(m, path, "oi.graph.json", true, options, text == OI_OK ? &json : out, diag);
    if (text == OI_OK && second == OI_OK)
        second = same_graph(*out, json, path, diag);
    oi_graph_free(json);
    if (text == OI_OK && second != OI_OK && second != OI_NOT_FOUND) {
        oi_graph_free(*out);
        *out = NULL;
        return second;
    }
    return text == OI_OK ? OI_OK : second;
}

static oi_status from_model(const char *path, const char *name, const oi_graph_options *given,
                            oi_graph **out, oi_diag *diag)
{
    oi_model *m;
    oi_graph_options own = given ? *given : (oi_graph_options){0};
    const oi_graph_options *options = &own;
    OI_TRY(oi_model_open(path, &m, diag));
    own.model = own.model ? own.model : m;
    oi_status status;
    if (name) {
        oi_buf key = {0};
        oi_buf_printf(&key, "oi.graph.%s", name);
        bool json = ends_with(name, ".json") || strcmp(name, "json") == 0;
        status = key.failed ? oi_diag_env(diag, path, "out of memory")
                            : embedded(m, path, key.text, json, options, out, diag);
        oi_buf_free(&key);
    } else {
        status = main_graph(m, path, options, out, diag);
    }
    oi_model_close(m);
    if (status == OI_NOT_FOUND && name)
        return oi_diag_error(diag, (oi_place){.file = path}, "", "no graph '%s' in this package",
                             name);
    if (status == OI_NOT_FOUND)
        return oi_diag_error(diag, (oi_place){.file = path}, "", "this package embeds no graph");
    return status;
}

static oi_status split_and_load(const char *path, const oi_graph_options *options, oi_graph **out,
                                oi_diag *diag)
{
    const char *hash = strrchr(path, '#');
    if (!hash || hash - path < 5 || memcmp(hash - 5, ".oinf", 5) != 0)
        return from_model(path, NULL, options, out, diag);
    oi_buf file = {0};
    oi_buf_add(&file, path, (size_t)(hash - path));
    oi_status status = file.text ? from_model(file.text, hash + 1, options, out, diag) : OI_ERR_ENV;
    oi_buf_free(&file);
    return status;
}

oi_status oi_graph_load_with(const char *path, const oi_graph_options *options, oi_graph **out,
                             oi_diag *diag)
{
    if (ends_with(path, ".oinf") || strstr(path, ".oinf#"))
        return split_and_load(path, options, out, diag);
    char *text;
    size_t n;
    OI_TRY(oi_text_read(path, &text, &n, diag));
    oi_status status = parse(text, n, path, ends_with(path, ".json"), options, out, diag);
    oi_free(text);
    return status;
}

oi_status oi_graph_load(const char *path, oi_graph **out, oi_diag *diag)
{
    return oi_graph_load_with(path, NULL, out, diag);
}
