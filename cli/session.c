/* session.c: what `run` and `step` share: a graph, its model, a simulator, one executor, and the
 * values that go in before each step. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static oi_status read_target(cli_session *s)
{
    oi_device *device = NULL;
    oi_status status = oi_device_load(s->target, s->strict, &device, s->diag);
    if (status == OI_OK)
        s->options.precision = oi_device_get(device)->preferences.default_precision;
    oi_device_free(device);
    return status;
}

static oi_status make_sim(cli_session *s)
{
    oi_status status = s->target ? read_target(s) : OI_OK;
    if (status != OI_OK)
        return status;
    if (s->device && !oi_run_on_find(s->device, &s->options.device))
        return cli_usage_error("--device: there is no '%s'; try cpu, cpu:scalar, cpu:avx2, vulkan",
                               s->device);
    s->options.device_name = s->device ? oi_run_on_device(s->device) : NULL;
    s->options.sizes = s->given.at;
    s->options.n_sizes = s->given.n;
    s->options.strict = s->strict;
    s->options.memory_limit = s->memory_limit;
    s->options.max_nodes = s->max_nodes;
    s->options.threads = (uint32_t)s->threads;
    s->options.parallel_consumers = s->threads > 1;
    status = oi_sim_new(s->model, s->graph, &s->options, &s->sim, s->diag);
    if (status == OI_OK)
        cli_note_lowered(oi_sim_n_lowered(s->sim), s->options.precision, s->target);
    return status == OI_OK ? oi_exec_new(s->sim, &s->exec, s->diag) : status;
}

oi_status cli_session_open(cli_session *s, const char *graph)
{
    s->diag = oi_diag_new();
    oi_status status = cli_sizes_read(&s->sizes, &s->given);
    if (status == OI_OK)
        status = cli_model_open(s->model_path, &graph, 1, &s->model, s->diag);
    if (status == OI_OK)
        status = cli_graph_read(graph, s->model, &s->given, &s->graph, s->diag);
    if (status == OI_OK && s->deterministic)
        oi_graph_make_deterministic(s->graph);
    if (status == OI_OK)
        status = make_sim(s);
    cli_report(s->diag);
    oi_diag_clear(s->diag);
    return status;
}

oi_status cli_session_close(cli_session *s, oi_status status)
{
    oi_exec_free(s->exec);
    oi_sim_free(s->sim);
    oi_graph_free(s->graph);
    oi_model_close(s->model);
    cli_sizes_free(&s->given);
    free(s->sizes.at);
    free(s->sets.at);
    return cli_done(status, s->diag);
}

/* -- values before a step -- */

static oi_status insert(cli_session *s, const oi_var_info *var, const char *text)
{
    cli_array value = {0};
    oi_status status =
        text ? cli_value(var, text, s->step, &value) : s->find_value(var, s->step, &value);
    if (status == OI_OK)
        status = oi_insert(s->exec, var->name, &value.view, s->diag);
    cli_array_free(&value);
    return status;
}

/* Every name given must be a variable; the executor says what is wrong with it. */
static oi_status check_names(cli_session *s)
{
    for (size_t i = 0; i < s->sets.n; i++) {
        const char *eq = strchr(s->sets.at[i], '=');
        if (!eq || eq == s->sets.at[i])
            return cli_usage_error("--set %s: write NAME=VALUE", s->sets.at[i]);
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)(eq - s->sets.at[i]), s->sets.at[i]);
        oi_var_info var = {0};
        size_t at = oi_sim_find_var(s->sim, name);
        if (at == SIZE_MAX || !oi_sim_var(s->sim, at, &var) || var.kind != OI_DYNAMIC)
            return oi_insert(s->exec, name, &(oi_view){.dtype = OI_F32}, s->diag);
    }
    return OI_OK;
}

oi_status cli_session_feed(cli_session *s)
{
    oi_status status = s->step == 0 ? check_names(s) : OI_OK;
    oi_var_info var;
    for (size_t i = 0; status == OI_OK && oi_sim_var(s->sim, i, &var); i++) {
        if (var.kind != OI_DYNAMIC)
            continue;
        const char *text = cli_given(&s->sets, var.name);
        if (!text && s->find_value) {
            status = insert(s, &var, NULL);
            if (status != OI_NOT_FOUND)
                continue;
            status = OI_OK;
        }
        if (!text && (s->strict || var.has_init))
            continue; /* the executor refuses, or @init serves */
        const char *standard = cli_is_float(var.dtype) ? "random:1:-1:1" : "zeros";
        if (!text && s->step == 0)
            cli_note("%s is not set: it gets %s", var.name, standard);
        status = insert(s, &var, text ? text : standard);
    }
    return status;
}
