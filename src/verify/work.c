/* work.c: the way to a running program: simulators, a folder, the build, the child; and back. */
#include "verify/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* -- what goes in when the caller does not say -- */

static oi_status fill_standard(void *ctx, const oi_var_info *var, uint64_t step, void *data,
                               uint64_t size, oi_diag *d)
{
    (void)ctx;
    (void)d;
    if (var->has_init)
        return OI_NOT_FOUND;
    uint64_t n = size * 8 / oi_dtype_bits(var->dtype);
    if (oi_dtype_is_float(var->dtype))
        return oi_random(var->dtype, step + 1, -1, 1, data, n);
    memset(data, 0, (size_t)size);
    return OI_OK;
}

/* -- simulators -- */

/* Whether something is rounded to few bits on its way. */
static bool is_coarse(const oi_graph *g)
{
    char *text = NULL;
    bool yes = oi_graph_to_text(g, &text, NULL) == OI_OK &&
               (strstr(text, "act=\"q8\"") != NULL || strstr(text, "act=\"bf16\"") != NULL);
    oi_free(text);
    return yes;
}

static void set_inputs(oi_work *w, oi_verify_graph *g)
{
    oi_var_info v;
    size_t n = oi_sim_n_vars(g->sim);
    g->from_floats = oi_arena_alloc(w->trial.arena, n + 1);
    g->drift = oi_arena_alloc(w->trial.arena, (n + 1) * sizeof *g->drift);
    g->inputs = oi_arena_alloc(w->trial.arena, (n + 1) * sizeof *g->inputs);
    for (size_t i = 0; oi_sim_var(g->sim, i, &v); i++) {
        uint64_t count = 1, bytes = 0;
        if (v.kind != OI_DYNAMIC)
            continue;
        for (uint32_t d = 0; d < v.rank; d++)
            count *= v.dims[d];
        if (!oi_dtype_bytes(v.dtype, count, &bytes))
            continue;
        g->inputs[i] = oi_arena_alloc(w->trial.arena, (size_t)bytes + 1);
        oi_view first;
        if (v.has_init && oi_fetch(g->exec, v.name, &first, NULL) == OI_OK)
            memcpy(g->inputs[i], first.data, (size_t)bytes);
    }
}

const oi_verify_graph *oi_work_beside(const oi_trial *t, size_t n, const oi_sim *sim)
{
    oi_var_info v;
    for (size_t g = 0; g < n; g++)
        for (size_t i = 0; oi_sim_var(sim, i, &v); i++) {
            oi_var_info other;
            size_t at =
                v.kind == OI_PERSISTENT ? oi_sim_find_var(t->graphs[g].sim, v.name) : SIZE_MAX;
            if (at != SIZE_MAX && oi_sim_var(t->graphs[g].sim, at, &other) &&
                other.kind == OI_PERSISTENT)
                return &t->graphs[g];
        }
    return &t->graphs[0];
}

oi_status oi_work_simulators(oi_work *w, oi_run_on on, bool has_written)
{
    oi_trial *t = &w->trial;
    const oi_synth_options *o = &w->options.synth;
    oi_sim_options so = {
        .device = on, .sizes = o->sizes, .n_sizes = o->n_sizes, .threads = w->options.sim_threads};
    if (w->device)
        so.precision = oi_device_get(w->device)->preferences.default_precision;
    t->graphs = oi_arena_alloc(t->arena, (t->n_graphs + 1) * sizeof *t->graphs);
    for (size_t i = 0; i < t->n_graphs; i++) {
        oi_verify_graph *g = &t->graphs[i];
        g->name = w->graphs[i].name ? w->graphs[i].name : "graph";
        g->is_coarse = is_coarse(w->graphs[i].graph);
        OI_TRY(oi_sim_new(w->model, w->graphs[i].graph, &so, &g->sim, w->diag));
        g->is_coarse |= oi_sim_n_lowered(g->sim) > 0;
        OI_TRY(i ? oi_exec_new_shared(g->sim, oi_work_beside(t, i, g->sim)->exec, &g->exec, w->diag)
                 : oi_exec_new(g->sim, &g->exec, w->diag));
        set_inputs(w, g);
    }
    return has_written ? oi_written_new(w, so) : OI_OK;
}

static void free_simulators(oi_trial *t)
{
    for (size_t i = 0; t->graphs && i < t->n_graphs; i++) {
        oi_exec_free(t->graphs[i].written);
        oi_sim_free(t->graphs[i].written_sim);
        oi_exec_free(t->graphs[i].exec);
        oi_sim_free(t->graphs[i].sim);
    }
}

/* -- the folder -- */

static oi_status make_folder(oi_work *w)
{
    const char *tmp = getenv("TMPDIR");
    if (w->options.keep) {
        snprintf(w->folder, sizeof w->folder, "%s", w->options.keep);
        return OI_OK;
    }
    snprintf(w->folder, sizeof w->folder, "%s/openinfer-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (mkdtemp(w->folder)) {
        w->is_temporary = true;
        return OI_OK;
    }
    oi_status status = oi_diag_env(w->diag, w->folder, "cannot make a folder: %s", strerror(errno));
    w->folder[0] = '\0';
    return status;
}

/* -- the program -- */

oi_status oi_work_program(oi_work *w)
{
    oi_synth_options o = w->options.synth;
    OI_TRY(oi_tool_find(w->device, w->options.cc, &w->tool, w->diag));
    o.per_node = w->trial.per_node;
    OI_TRY(oi_synthesize(w->device, w->model, w->graphs, w->trial.n_graphs, &o, &w->plan, w->diag));
    OI_TRY(make_folder(w));
    OI_TRY(oi_plan_emit(w->plan, w->folder, w->diag));
    w->is_synthesized = true;
    return oi_tool_build(&w->tool, w->device, w->folder, w->options.flags, w->diag);
}

oi_status oi_work_start(oi_work *w, const char *more)
{
    const char *argv[OI_TOOL_WORDS + 4];
    size_t n = 0;
    while (n < OI_TOOL_WORDS && w->tool.runner[n]) {
        argv[n] = w->tool.runner[n];
        n++;
    }
    argv[n++] = oi_arena_printf(w->trial.arena, "./%s", oi_plan_name(w->plan));
    argv[n++] = "weights.bin";
    argv[n++] = more;
    argv[n] = NULL;
    w->trial.child.device = oi_device_get(w->device)->name;
    w->trial.child.needs =
        w->tool.needs ? w->tool.needs : "instructions that the program is made of";
    return oi_child_start(&w->trial.child, w->folder, argv)
               ? OI_OK
               : oi_diag_env(w->diag, w->folder, "cannot start the program: %s", strerror(errno));
}

/* -- from beginning to end -- */

void oi_work_init(oi_work *w, const oi_device *device, oi_model *model,
                  const oi_synth_graph *graphs, size_t n_graphs, const oi_verify_options *options,
                  oi_diag *diag)
{
    *w = (oi_work){.device = device, .model = model, .graphs = graphs, .diag = diag};
    w->trial.n_graphs = n_graphs;
    if (options)
        w->options = *options;
    w->options.steps = w->options.steps ? w->options.steps : 8;
    w->options.fill = w->options.fill ? w->options.fill : fill_standard;
}

typedef struct guarded {
    oi_work *w;
    oi_status (*fn)(oi_work *w);
} guarded;

static void run_guarded(void *ctx)
{
    guarded *g = ctx;
    g->w->status = g->fn(g->w);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

oi_status oi_work_run(oi_work *w, oi_arena *arena, bool per_node, oi_status (*fn)(oi_work *w))
{
    w->trial = (oi_trial){.arena = arena,
                          .options = &w->options,
                          .n_graphs = w->trial.n_graphs,
                          .row_of = {.arena = arena},
                          .per_node = per_node,
                          .diag = w->diag,
                          .step_diag = oi_diag_new()};
    const double began = seconds();
    w->is_synthesized = false;
    w->status = OI_ERR_ENV;
    if (!w->trial.step_diag || oi_arena_guard(arena, run_guarded, &(guarded){w, fn}) != OI_OK)
        w->status = oi_diag_env(w->diag, "verify", "out of memory");
    oi_child_end(&w->trial.child);
    free_simulators(&w->trial);
    oi_diag_free(w->trial.step_diag);
    oi_plan_free(w->plan);
    w->plan = NULL;
    if (w->is_temporary)
        oi_folder_remove(w->folder);
    w->is_temporary = false;
    w->run_seconds = seconds() - began;
    return w->status;
}
