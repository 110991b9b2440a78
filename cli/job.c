/* job.c: what `synth`, `verify` and `bench` share: graphs, their model, a device, and the inputs.
 */
#include "cli.h"

#include <string.h>

/* "examples/mlp.oi" -> "mlp", "llm.oinf#decode" -> "decode" */
static void stem(const char *path, char *out, size_t cap)
{
    const char *inside = strstr(path, ".oinf#");
    if (inside)
        path = inside + strlen(".oinf#");
    const char *slash = strrchr(path, '/');
    size_t n = 0;
    for (const char *p = slash ? slash + 1 : path; *p && *p != '.' && n + 1 < cap; p++)
        out[n++] = *p;
    out[n] = '\0';
}

oi_status cli_job_open(cli_job *j, cli_args graphs, const char *model, const cli_list *sizes,
                       const char *target)
{
    if (graphs.n > CLI_MAX_GRAPHS)
        return cli_usage_error("more than %d graphs", CLI_MAX_GRAPHS);
    j->diag = oi_diag_new();
    oi_status status = cli_sizes_read(sizes, &j->sizes);
    if (status == OI_OK)
        status = cli_model_open(model, graphs.at, graphs.n, &j->model, j->diag);
    if (status == OI_OK && target)
        status = oi_device_load(target, false, &j->device, j->diag);
    for (; j->n < graphs.n && status == OI_OK; j->n++) {
        status = cli_graph_read(graphs.at[j->n], j->model, &j->sizes, &j->loaded[j->n], j->diag);
        stem(graphs.at[j->n], j->names[j->n], sizeof j->names[j->n]);
        j->graphs[j->n] = (oi_synth_graph){j->loaded[j->n], j->names[j->n]};
    }
    return status;
}

oi_status cli_job_close(cli_job *j, oi_status status)
{
    for (size_t i = 0; i < j->n; i++)
        oi_graph_free(j->loaded[i]);
    oi_device_free(j->device);
    oi_model_close(j->model);
    cli_sizes_free(&j->sizes);
    return cli_done(status, j->diag);
}

/* -- inputs -- */

const char *cli_given(const cli_list *sets, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = sets->n; i-- > 0;)
        if (!strncmp(sets->at[i], name, n) && sets->at[i][n] == '=')
            return sets->at[i] + n + 1;
    return NULL;
}

bool cli_is_float(oi_dtype t)
{
    return oi_dtype_name(t)[0] == 'f' || t == OI_BF16;
}

static void mark_used(cli_inputs *in, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < in->sets.n && i < sizeof in->is_used; i++)
        in->is_used[i] |= !strncmp(in->sets.at[i], name, n) && in->sets.at[i][n] == '=';
}

/* Each is said once, however often step 0 is run. */
static bool is_news(cli_inputs *in, const char *name)
{
    for (size_t i = 0; i < sizeof in->told / sizeof in->told[0]; i++) {
        if (strncmp(in->told[i], name, sizeof in->told[i] - 1) == 0)
            return false;
        if (!in->told[i][0]) {
            snprintf(in->told[i], sizeof in->told[i], "%s", name);
            return true;
        }
    }
    return true;
}

oi_status cli_inputs_fill(void *ctx, const oi_var_info *var, uint64_t step, void *data,
                          uint64_t size, oi_diag *d)
{
    (void)d;
    cli_inputs *in = ctx;
    const char *text = cli_given(&in->sets, var->name);
    bool is_float = cli_is_float(var->dtype);
    char standard[64] = "zeros";
    cli_array value;
    mark_used(in, var->name);
    if (!text && var->has_init)
        return OI_NOT_FOUND;
    if (!text && is_float)
        snprintf(standard, sizeof standard, "random:%llu:-1:1",
                 (unsigned long long)(in->are_steady ? 1 : step + 1));
    if (!text && step == 0 && is_news(in, var->name))
        cli_note("%s is not set: it gets %s", var->name,
                 is_float && !in->are_steady ? "random:STEP+1:-1:1" : standard);
    oi_status status = cli_value(var, text ? text : standard, step, &value);
    if (status == OI_OK && value.view.size_bytes == size)
        memcpy(data, value.data, (size_t)size);
    else if (status == OI_OK)
        status =
            cli_usage_error("--set %s: %llu bytes for %llu", var->name,
                            (unsigned long long)value.view.size_bytes, (unsigned long long)size);
    cli_array_free(&value);
    return status;
}

oi_status cli_inputs_check(const cli_inputs *in)
{
    for (size_t i = 0; i < in->sets.n && i < sizeof in->is_used; i++)
        if (!in->is_used[i])
            return cli_usage_error("--set %s: write NAME=VALUE for a dynamic variable",
                                   in->sets.at[i]);
    return OI_OK;
}
