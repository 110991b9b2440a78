/* bench.c: how long steps take, in the simulator or in a synthesized program. The program measures
 * itself: no pipe is part of the time. */
#include "verify/verify.h"

#include <stdlib.h>
#include <time.h>

typedef struct benching {
    oi_work work; /* first: the two are one */
    double *times;
    size_t n;
    oi_step_cost cost;
} benching;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The inputs of step 0, into the simulator or to the program. */
static oi_status give_inputs(oi_work *w, bool sends)
{
    oi_verify_graph *g = &w->trial.graphs[0];
    const unsigned char first = 0;
    oi_var_info v;
    if (sends)
        (void)oi_child_write(&w->trial.child, &first, 1); /* one that died shows when it is read */
    for (size_t i = 0; oi_sim_var(g->sim, i, &v); i++) {
        uint64_t n = 1, bytes = 0;
        if (v.kind != OI_DYNAMIC)
            continue;
        for (uint32_t d = 0; d < v.rank; d++)
            n *= v.dims[d];
        (void)oi_dtype_bytes(v.dtype, n, &bytes);
        oi_status status =
            w->options.fill(w->options.fill_ctx, &v, 0, g->inputs[i], bytes, w->diag);
        oi_view value = {v.dtype, v.rank, v.dims, g->inputs[i], n, bytes};
        if (status == OI_OK && !sends)
            status = oi_insert(g->exec, v.name, &value, w->diag);
        if (status != OI_OK && status != OI_NOT_FOUND)
            return status;
        if (sends)
            (void)oi_child_write(&w->trial.child, g->inputs[i], (size_t)bytes);
    }
    return OI_OK;
}

/* Memory that is full starts anew, as in the program. */
static oi_status time_simulator(oi_work *w)
{
    benching *b = (benching *)w;
    OI_TRY(oi_work_simulators(w, OI_CPU));
    oi_verify_graph *g = &w->trial.graphs[0];
    for (bool again = false; b->n < w->options.steps;) {
        OI_TRY(give_inputs(w, false));
        double start = now_ns();
        oi_status status = oi_step(g->exec, again ? w->diag : NULL);
        if (status == OI_OK) {
            b->times[b->n++] = now_ns() - start;
            again = false;
            continue;
        }
        if (again)
            return status;
        again = true;
        oi_exec_free(g->exec);
        g->exec = NULL;
        OI_TRY(oi_exec_new(g->sim, &g->exec, w->diag));
    }
    return OI_OK;
}

static oi_status time_program(oi_work *w)
{
    benching *b = (benching *)w;
    OI_TRY(oi_work_simulators(w, OI_CPU)); /* for its variables */
    OI_TRY(oi_work_program(w));
    (void)oi_plan_cost(w->plan, 0, &b->cost);
    OI_TRY(oi_work_start(
        w, oi_arena_printf(w->trial.arena, "%llu", (unsigned long long)w->options.steps)));
    OI_TRY(give_inputs(w, true));
    oi_record r = {0};
    while (b->n < w->options.steps && oi_record_read(&w->trial.child, &r) && r.kind == 't' &&
           r.size == 8) {
        uint64_t ns;
        memcpy(&ns, r.data, sizeof ns);
        b->times[b->n++] = (double)ns;
    }
    free(r.data);
    if (b->n == w->options.steps)
        return OI_OK;
    return oi_diag_error(w->diag, (oi_place){.file = oi_plan_name(w->plan)}, "",
                         "the program ended after %zu of %llu steps", b->n,
                         (unsigned long long)w->options.steps);
}

oi_status oi_bench(const oi_device *device, oi_model *model, const oi_graph *graph,
                   const oi_verify_options *options, double *out_ns, oi_step_cost *out_cost,
                   oi_diag *diag)
{
    benching *b = calloc(1, sizeof *b);
    oi_arena *arena = oi_arena_new();
    oi_status status;
    oi_synth_graph one = {graph, NULL};
    if (b && arena) {
        oi_work_init(&b->work, device, model, &one, 1, options, diag);
        b->times = out_ns;
        status = oi_work_run(&b->work, arena, false, device ? time_program : time_simulator);
        if (out_cost)
            *out_cost = b->cost;
    } else {
        status = oi_diag_env(diag, "bench", "out of memory");
    }
    oi_arena_free(arena);
    free(b);
    return status;
}
