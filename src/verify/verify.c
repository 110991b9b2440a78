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

static oi_status verify(oi_work *w, oi_verify_report *report)
{
    bool per_node = w->options.synth.per_node;
    OI_TRY(oi_work_run(w, report->arena, per_node, compare));
    report->rows = w->trial.rows;
    report->failure = w->trial.failure;
    report->n_steps = w->trial.n_steps;
    report->n_failed = w->trial.n_failed;
    report->lowered = w->trial.lowered;
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
