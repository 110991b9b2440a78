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
    OI_TRY(oi_work_simulators(w, OI_CPU, false));
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

/* A program that ended before it was done. */
static oi_status ended(oi_work *w, uint64_t n)
{
    char how[64];
    oi_status status = oi_child_lost(&w->trial.child, how, sizeof how, w->diag);
    if (status == OI_ERR_ENV)
        return status;
    return oi_diag_error(w->diag, (oi_place){.file = oi_plan_name(w->plan)}, "",
                         "the program did not finish after %llu of %llu steps: %s",
                         (unsigned long long)n, (unsigned long long)w->options.steps, how);
}

/* -- programs on emulated machines -- */

/* Reads what a step gives. False: the program ended. */
static bool read_step(oi_work *w, oi_record *r, double *ns, int32_t *result)
{
    while (oi_record_read(&w->trial.child, r)) {
        uint64_t time;
        if (r->kind == 't' && r->size == sizeof time) {
            memcpy(&time, r->data, sizeof time);
            *ns = (double)time;
        } else if (r->kind == 'e' && r->size == sizeof *result) {
            memcpy(result, r->data, sizeof *result);
            return true;
        }
    }
    return false;
}

/* No arguments reach such a program: it gets its inputs for every step, and says how long each
 * took. Memory that is full starts anew. */
static oi_status time_emulated(oi_work *w)
{
    benching *b = (benching *)w;
    const unsigned char anew = 255;
    oi_record r = {0};
    oi_status status = oi_work_start(w, NULL);
    for (bool again = false; status == OI_OK && b->n < w->options.steps;) {
        int32_t result = 0;
        double ns = 0;
        status = give_inputs(w, true);
        if (status == OI_OK && !read_step(w, &r, &ns, &result))
            status = ended(w, b->n);
        else if (status == OI_OK && result != 0 && again)
            status = oi_diag_error(w->diag, (oi_place){.file = oi_plan_name(w->plan)}, "",
                                   "a step fails with E%03d", (int)result);
        else if (status == OI_OK && result != 0)
            (void)oi_child_write(&w->trial.child, &anew, 1);
        else if (status == OI_OK)
            b->times[b->n++] = ns;
        again = result != 0;
    }
    free(r.data);
    return status;
}

static oi_status time_program(oi_work *w)
{
    benching *b = (benching *)w;
    OI_TRY(oi_work_simulators(w, OI_CPU, false)); /* for its variables */
    OI_TRY(oi_work_program(w));
    (void)oi_plan_cost(w->plan, 0, &b->cost);
    if (w->tool.counts)
        return time_emulated(w);
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
    return b->n == w->options.steps ? OI_OK : ended(w, b->n);
}

/* -- kernel by kernel -- */

struct oi_bench_report {
    oi_arena *arena;
    oi_bench_kernel *at;
    size_t n;
    double step_ns;
};

typedef struct kernel_benching {
    oi_work work; /* first: the two are one */
    oi_bench_report *report;
} kernel_benching;

/* Steps come first, then a record for each kernel of the plan, in its order. */
static oi_status read_kernels(oi_work *w, oi_bench_report *r)
{
    oi_record record = {0};
    oi_bench_kernel k = {0};
    uint64_t both[2], ns, steps = 0;
    size_t n = 0;
    while (oi_plan_kernel_at(w->plan, n, &k.kernel))
        n++;
    r->at = oi_arena_alloc(r->arena, (n + 1) * sizeof *r->at);
    while ((steps < w->options.steps || r->n < n) && oi_record_read(&w->trial.child, &record)) {
        if (record.kind == 't' && record.size == sizeof ns) {
            memcpy(&ns, record.data, sizeof ns);
            r->step_ns = steps++ == 0 || (double)ns < r->step_ns ? (double)ns : r->step_ns;
        } else if (record.kind == 'k' && record.size == sizeof both && r->n < n) {
            memcpy(both, record.data, sizeof both);
            (void)oi_plan_kernel_at(w->plan, r->n, &k.kernel);
            k.kernel.name = oi_arena_printf(r->arena, "%s", k.kernel.name);
            k.runs = both[1];
            k.ns = both[1] ? (double)both[0] / (double)both[1] : 0;
            r->at[r->n++] = k;
        }
    }
    free(record.data);
    return r->n == n && steps == w->options.steps ? OI_OK : ended(w, steps);
}

static oi_status time_kernels(oi_work *w)
{
    OI_TRY(oi_tool_find(w->device, w->options.cc, &w->tool, w->diag));
    if (w->tool.counts)
        return oi_diag_env(w->diag, oi_device_get(w->device)->name,
                           "kernels are measured one by one only in programs of this machine");
    w->options.synth.timed = true;
    w->options.synth.weights = OI_EMBED_NEVER; /* else main.c has no steps to time */
    OI_TRY(oi_work_simulators(w, OI_CPU, false));
    OI_TRY(oi_work_program(w));
    OI_TRY(oi_work_start(
        w, oi_arena_printf(w->trial.arena, "%llu", (unsigned long long)w->options.steps)));
    OI_TRY(give_inputs(w, true));
    return read_kernels(w, ((kernel_benching *)w)->report);
}

oi_status oi_bench_kernels(const oi_device *device, oi_model *model, const oi_graph *graph,
                           const oi_verify_options *options, oi_bench_report **out, oi_diag *diag)
{
    oi_bench_report *r = calloc(1, sizeof *r);
    kernel_benching *b = calloc(1, sizeof *b);
    oi_arena *arena = oi_arena_new();
    oi_status status = OI_ERR_ENV;
    oi_synth_graph one = {graph, NULL};
    *out = NULL;
    if (r)
        r->arena = oi_arena_new();
    if (r && r->arena && b && arena) {
        b->report = r;
        oi_work_init(&b->work, device, model, &one, 1, options, diag);
        status = oi_work_run(&b->work, arena, false, time_kernels);
    } else {
        status = oi_diag_env(diag, "bench", "out of memory");
    }
    oi_arena_free(arena);
    free(b);
    if (status == OI_OK)
        *out = r;
    else
        oi_bench_report_free(r);
    return status;
}

bool oi_bench_kernel_at(const oi_bench_report *r, size_t i, oi_bench_kernel *out)
{
    if (i >= r->n)
        return false;
    *out = r->at[i];
    return true;
}

double oi_bench_step_ns(const oi_bench_report *r)
{
    return r->step_ns;
}

void oi_bench_report_free(oi_bench_report *r)
{
    if (!r)
        return;
    oi_arena_free(r->arena);
    free(r);
}

/* -- steps -- */

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
