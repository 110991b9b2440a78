/* verify.c: the public face: synthesize into a folder, build, run beside the simulator, report. A
 * run that diverges is made once more node by node, to name the node. */
#include "verify/verify.h"

#include <stdlib.h>

struct oi_verify_report {
    oi_arena *arena;
    oi_verify_rows rows;
    const char *failure;
    uint64_t n_steps, n_failed;
    oi_verify_lowered lowered;
    bool has_nodes;
    double node_seconds;   /* estimated; 0: not estimated */
    const char *nodes_why; /* what is in the way, or "" */
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

bool oi_verify_nodes(const oi_verify_report *r, double *seconds, const char **why)
{
    if (seconds)
        *seconds = r->node_seconds;
    if (why)
        *why = r->nodes_why ? r->nodes_why : "";
    return r->has_nodes;
}

void oi_verify_get_lowered(const oi_verify_report *r, oi_verify_lowered *out)
{
    *out = r->lowered;
}

static oi_status compare(oi_work *w)
{
    OI_TRY(oi_work_simulators(w, OI_RUN_SCALAR, true));
    OI_TRY(oi_work_program(w));
    OI_TRY(oi_work_start(w, NULL));
    return oi_trial_run(&w->trial);
}

/* Node by node once more: which one it was. */
static void blame(oi_work *w, oi_verify_report *report)
{
    const char *keep = w->options.keep;
    oi_diag *diag = w->diag;
    w->options.keep = NULL;
    w->diag = NULL;
    if (oi_work_run(w, report->arena, true, compare) == OI_OK && w->trial.failure)
        oi_diag_note(diag, (oi_place){.file = "node by node"}, "%s", w->trial.failure);
    else if (w->status == OI_OK)
        oi_diag_note(diag, (oi_place){.file = "node by node"},
                     "every node agrees on the simulator's inputs: it shows only in the whole");
    w->options.keep = keep;
    w->diag = diag;
}

/* What a run node by node takes, after one of the whole program: the build again, of code in which
 * nothing is joined; the steps again; and every value there and back, under an emulator slowly. */
static double estimate(const oi_work *w)
{
    const double per_byte = w->tool.counts ? 1e-6 : w->tool.runner[0] ? 2e-8 : 5e-9;
    return 2 * w->run_seconds + (double)w->trial.n_nodes * 20e-6 +
           2 * (double)w->trial.n_node_bytes * per_byte;
}

static const char *first_error(const oi_diag *d)
{
    for (size_t i = 0; i < oi_diag_count(d); i++)
        if (oi_diag_at(d, i).severity == OI_ERROR)
            return oi_diag_at(d, i).text;
    return "it cannot be synthesized";
}

/* After a whole program that agrees. A device that has room for the joined kernels may have none
 * for every node's value: then that is said, and no error. */
static oi_status add_nodes(oi_work *w, oi_verify_report *report)
{
    oi_diag *diag = w->diag, *own = oi_diag_new();
    report->node_seconds = estimate(w);
    if (!own || report->node_seconds > w->options.node_seconds) {
        oi_diag_free(own);
        return OI_OK;
    }
    w->options.keep = NULL;
    w->diag = own;
    oi_status status = oi_work_run(w, report->arena, true, compare);
    w->diag = diag;
    if (status == OI_OK) {
        report->has_nodes = true;
        for (size_t i = 0; i < w->trial.rows.n; i++)
            if (strcmp(w->trial.rows.at[i].what, "node") == 0)
                *OI_PUSH(report->arena, &report->rows) = w->trial.rows.at[i];
        report->failure = w->trial.failure;
    } else if (!w->is_synthesized) {
        const char *why = first_error(own);
        report->nodes_why = oi_arena_text(report->arena, why, strlen(why));
        status = OI_OK;
    } else {
        oi_diag_error(diag, (oi_place){.file = "node by node"}, "", "%s", first_error(own));
    }
    oi_diag_free(own);
    return status;
}

static oi_status verify(oi_work *w, oi_verify_report *report)
{
    bool per_node = w->options.synth.per_node;
    OI_TRY(oi_work_run(w, report->arena, per_node, compare));
    report->rows = w->trial.rows;
    report->failure = w->trial.failure;
    report->n_steps = w->trial.n_steps;
    report->n_failed = w->trial.n_failed;
    report->lowered = w->trial.lowered;
    report->has_nodes = per_node;
    if (!report->failure && !per_node && w->options.node_seconds > 0)
        OI_TRY(add_nodes(w, report));
    if (!report->failure)
        return OI_OK;
    oi_diag_error(w->diag, (oi_place){.file = oi_device_get(w->device)->name}, "",
                  "the program differs from the simulator: %s", report->failure);
    if (!report->has_nodes)
        blame(w, report);
    return OI_ERR_INPUT;
}

oi_status oi_verify(const oi_device *device, oi_model *model, const oi_synth_graph *graphs,
                    size_t n_graphs, const oi_verify_options *options, oi_verify_report **out,
                    oi_diag *diag)
{
    oi_work *w = calloc(1, sizeof *w);
    oi_verify_report *r = calloc(1, sizeof *r);
    oi_status status = OI_ERR_USAGE;
    if (r)
        r->arena = oi_arena_new();
    if (!w || !r || !r->arena) {
        status = oi_diag_env(diag, "verify", "out of memory");
    } else if (n_graphs && n_graphs < 256) { /* one byte names a graph */
        oi_work_init(w, device, model, graphs, n_graphs, options, diag);
        status = verify(w, r);
    }
    free(w);
    if (out && r && (status == OI_OK || r->failure))
        *out = r;
    else
        oi_verify_report_free(r);
    return status;
}
