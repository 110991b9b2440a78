/* verify.c: the public face: synthesize into a folder, build, run beside the simulator, report. A
 * run that diverges is made once more node by node, to name the node. */
#include "verify/verify.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct oi_verify_report {
    oi_arena *arena;
    oi_verify_rows rows;
    const char *failure;
    uint64_t n_steps, n_failed;
};

void oi_verify_report_free(oi_verify_report *r)
{
    if (!r)
        return;
    oi_arena_free(r->arena);
    free(r);
}

bool oi_verify_row_at(const oi_verify_report *r, size_t i, oi_verify_row *out)
{
    if (i >= r->rows.n)
        return false;
    *out = r->rows.at[i];
    return true;
}

const char *oi_verify_failure(const oi_verify_report *r)
{
    return r->failure ? r->failure : "";
}

uint64_t oi_verify_steps(const oi_verify_report *r, uint64_t *failed)
{
    if (failed)
        *failed = r->n_failed;
    return r->n_steps;
}

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

typedef struct work {
    const oi_device *device;
    oi_model *model;
    const oi_synth_graph *graphs;
    oi_verify_options options;
    oi_trial trial;
    oi_tool tool;
    char folder[4096]; /* "" until it is made */
    bool is_temporary;
    oi_plan *plan;
    oi_status status;
    oi_diag *diag;
} work;

static bool is_q8(const oi_graph *g)
{
    char *text = NULL;
    bool yes = oi_graph_to_text(g, &text, NULL) == OI_OK && strstr(text, "act=\"q8\"") != NULL;
    oi_free(text);
    return yes;
}

static void set_inputs(work *w, oi_verify_graph *g)
{
    oi_var_info v;
    size_t n = oi_sim_n_vars(g->sim);
    g->from_floats = oi_arena_alloc(w->trial.arena, n + 1);
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

static oi_status make_simulators(work *w)
{
    oi_trial *t = &w->trial;
    const oi_synth_options *o = &w->options.synth;
    oi_sim_options so = {.device = OI_RUN_SCALAR, .sizes = o->sizes, .n_sizes = o->n_sizes};
    t->graphs = oi_arena_alloc(t->arena, (t->n_graphs + 1) * sizeof *t->graphs);
    for (size_t i = 0; i < t->n_graphs; i++) {
        oi_verify_graph *g = &t->graphs[i];
        g->name = w->graphs[i].name ? w->graphs[i].name : "graph";
        g->is_q8 = is_q8(w->graphs[i].graph);
        OI_TRY(oi_sim_new(w->model, w->graphs[i].graph, &so, &g->sim, w->diag));
        OI_TRY(i ? oi_exec_new_shared(g->sim, t->graphs[0].exec, &g->exec, w->diag)
                 : oi_exec_new(g->sim, &g->exec, w->diag));
        set_inputs(w, g);
    }
    return OI_OK;
}

static void free_simulators(oi_trial *t)
{
    for (size_t i = 0; t->graphs && i < t->n_graphs; i++) {
        oi_exec_free(t->graphs[i].exec);
        oi_sim_free(t->graphs[i].sim);
    }
}

/* -- the folder -- */

static void remove_folder(const char *dir)
{
    DIR *d = opendir(dir);
    char path[4096];
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name) < (int)sizeof path)
            (void)unlink(path);
    if (d)
        closedir(d);
    (void)rmdir(dir);
}

static oi_status make_folder(work *w)
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

static oi_status make_program(work *w)
{
    oi_synth_options o = w->options.synth;
    o.per_node = w->trial.per_node;
    OI_TRY(oi_synthesize(w->device, w->model, w->graphs, w->trial.n_graphs, &o, &w->plan, w->diag));
    OI_TRY(make_folder(w));
    OI_TRY(oi_plan_emit(w->plan, w->folder, w->diag));
    return oi_tool_build(&w->tool, w->folder, w->options.flags, w->diag);
}

static oi_status start_program(work *w)
{
    const char *argv[8];
    size_t n = 0;
    while (w->tool.runner[n]) {
        argv[n] = w->tool.runner[n];
        n++;
    }
    argv[n++] = oi_arena_printf(w->trial.arena, "./%s", oi_plan_name(w->plan));
    argv[n++] = "weights.bin";
    argv[n] = NULL;
    return oi_child_start(&w->trial.child, w->folder, argv)
               ? OI_OK
               : oi_diag_env(w->diag, w->folder, "cannot start the program: %s", strerror(errno));
}

static oi_status try_all(work *w)
{
    OI_TRY(oi_tool_find(w->device, w->options.cc, &w->tool, w->diag));
    OI_TRY(make_simulators(w));
    OI_TRY(make_program(w));
    OI_TRY(start_program(w));
    return oi_trial_run(&w->trial);
}

static void guarded(void *ctx)
{
    work *w = ctx;
    w->status = try_all(w);
}

/* One comparison from beginning to end. */
static oi_status attempt(work *w, oi_verify_report *report, bool per_node)
{
    w->trial = (oi_trial){.arena = report->arena,
                          .options = &w->options,
                          .n_graphs = w->trial.n_graphs,
                          .row_of = {.arena = report->arena},
                          .per_node = per_node,
                          .diag = w->diag,
                          .step_diag = oi_diag_new()};
    w->status = OI_ERR_ENV;
    if (!w->trial.step_diag || oi_arena_guard(report->arena, guarded, w) != OI_OK)
        w->status = oi_diag_env(w->diag, "verify", "out of memory");
    oi_child_end(&w->trial.child, NULL, 0);
    free_simulators(&w->trial);
    oi_diag_free(w->trial.step_diag);
    oi_plan_free(w->plan);
    w->plan = NULL;
    if (w->is_temporary)
        remove_folder(w->folder);
    return w->status;
}

/* Node by node once more: which one it was. */
static void blame(work *w, oi_verify_report *report)
{
    const char *keep = w->options.keep;
    oi_diag *diag = w->diag;
    w->options.keep = NULL;
    w->diag = NULL;
    if (attempt(w, report, true) == OI_OK && w->trial.failure)
        oi_diag_note(diag, (oi_place){.file = "node by node"}, "%s", w->trial.failure);
    else if (w->status == OI_OK)
        oi_diag_note(diag, (oi_place){.file = "node by node"},
                     "every node agrees on the simulator's inputs: it shows only in the whole");
    w->options.keep = keep;
    w->diag = diag;
}

static oi_status verify(work *w, oi_verify_report *report)
{
    bool per_node = w->options.synth.per_node;
    OI_TRY(attempt(w, report, per_node));
    report->rows = w->trial.rows;
    report->failure = w->trial.failure;
    report->n_steps = w->trial.n_steps;
    report->n_failed = w->trial.n_failed;
    if (!report->failure)
        return OI_OK;
    oi_diag_error(w->diag, (oi_place){.file = oi_device_get(w->device)->name}, "",
                  "the program differs from the simulator: %s", report->failure);
    if (!per_node)
        blame(w, report);
    return OI_ERR_INPUT;
}

oi_status oi_verify(const oi_device *device, oi_model *model, const oi_synth_graph *graphs,
                    size_t n_graphs, const oi_verify_options *options, oi_verify_report **out,
                    oi_diag *diag)
{
    work *w = calloc(1, sizeof *w);
    oi_verify_report *r = calloc(1, sizeof *r);
    oi_status status = OI_ERR_USAGE;
    if (r)
        r->arena = oi_arena_new();
    if (!w || !r || !r->arena) {
        status = oi_diag_env(diag, "verify", "out of memory");
    } else if (n_graphs && n_graphs < 256) { /* one byte names a graph */
        *w = (work){.device = device, .model = model, .graphs = graphs, .diag = diag};
        w->trial.n_graphs = n_graphs;
        if (options)
            w->options = *options;
        w->options.steps = w->options.steps ? w->options.steps : 8;
        w->options.fill = w->options.fill ? w->options.fill : fill_standard;
        status = verify(w, r);
    }
    free(w);
    if (out && r && (status == OI_OK || r->failure))
        *out = r;
    else
        oi_verify_report_free(r);
    return status;
}
