/* bench.c: `openinfer bench`. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define MAX_WAYS    16
#define MAX_THREADS 65536 /* as in device files */

static const char *model_path, *against, *cc, *flags, *tuned;
static cli_list targets, without, size_list;
static const char *skip[CLI_MAX_PASSES + 1];
static cli_inputs inputs = {.are_steady = true};
static cli_job job;
static uint64_t steps = UINT64_MAX; /* not said: 50, or what tuning takes */
static uint64_t max_output;
static uint64_t threads = UINT64_MAX; /* not said: as the device has it */
static bool json, kernels;

static const cli_option options[] = {
    OPT_MODEL(&model_path),
    OPT_SIZES(&size_list),
    OPT_LIST("target", 0, "DEVICE", &targets, "a device profile or FILE.json; default cpu_scalar"),
    OPT_CHOICE("against", 0, "sim", &against, "also the simulator, and how they compare"),
    OPT_LIST("set", 0, "NAME=VALUE", &inputs.sets,
             "an input: FILE.npy, 1,2,3, 0.5, zeros, random:SEED:LO:HI"),
    OPT_COUNT("steps", 0, "N", &steps, "how many steps to measure; default 50"),
    OPT_COUNT("threads", 0, "N", &threads,
              "of the programs and of the simulator; default: the device's cpu.threads, 1 for sim"),
    OPT_SIZE("max-output", 0, "SIZE", &max_output,
             "refuse to write a larger program; default: 64G, and never more than is free"),
    OPT_TEXT("cc", 0, "COMPILER", &cc, "build with this compiler; default: the target's"),
    OPT_TEXT("cflags", 0, "FLAGS", &flags, "its flags, instead of the optimising ones"),
    OPT_LIST("without", 0, "PASS", &without,
             "leave a pass of the synthesizer out, to see what it brings"),
    OPT_FLAG("kernels", 0, &kernels, "kernel by kernel, beside what the plan predicts"),
    OPT_TEXT("tune", 0, "OUT.json", &tuned,
             "instead: measure this machine, write a device file that extends DEVICE"),
    OPT_FLAG("json", 0, &json, "machine-readable"),
    OPT_END,
};

typedef struct row {
    const char *name;
    double median, low, high, least; /* ns */
    oi_step_cost cost;               /* nothing for the simulator */
    const char *counts;              /* what a simulated clock counts instead of ns, or NULL */
} row;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first tenth warms up. The spread is what half of the steps stay within. */
static row summarise(const char *name, double *times)
{
    size_t skipped = steps > 9 ? (size_t)steps / 10 : 0, n = (size_t)steps - skipped;
    double *t = times + skipped;
    qsort(t, n, sizeof *t, by_size);
    return (row){name, t[n / 2], t[n / 4], t[(n - 1) - n / 4], t[0], {0}, false};
}

static oi_verify_options wanted(void)
{
    return (oi_verify_options){.synth = {.sizes = job.sizes.at,
                                         .n_sizes = job.sizes.n,
                                         .max_output = max_output,
                                         .skip = skip},
                               .steps = steps,
                               .sim_threads = threads == UINT64_MAX ? 0 : (uint32_t)threads,
                               .fill = cli_inputs_fill,
                               .fill_ctx = &inputs,
                               .cc = cc,
                               .flags = flags};
}

static oi_status load_device(const char *target, oi_device **out)
{
    oi_device *as_described = NULL;
    oi_status status = oi_device_load(target, false, &as_described, job.diag);
    if (status != OI_OK || threads == UINT64_MAX) {
        *out = as_described;
        return status;
    }
    status = oi_device_with_threads(as_described, threads, out, job.diag);
    oi_device_free(as_described);
    return status;
}

static oi_status measure(const char *target, double *times, row *out)
{
    const oi_verify_options o = wanted();
    oi_device *device = NULL;
    oi_step_cost cost = {0};
    oi_status status = target ? load_device(target, &device) : OI_OK;
    if (status == OI_OK)
        status = oi_bench(device, job.model, job.loaded[0], &o, times, &cost, job.diag);
    if (status == OI_OK) {
        *out = summarise(target ? target : "sim", times);
        out->cost = cost;
        out->counts = device ? oi_machine_counts(device) : NULL;
    }
    oi_device_free(device);
    return status;
}

static const char *unit_of(double ns, double *scale)
{
    *scale = ns < 1e4 ? 1 : ns < 1e7 ? 1e3 : 1e6;
    return ns < 1e4 ? "ns" : ns < 1e7 ? "us" : "ms";
}

/* Per ns, so in billions per second. */
static double rate(double what, const row *r)
{
    return r->median > 0 ? what / r->median : 0;
}

static double bytes_rate(const row *r)
{
    return rate((double)r->cost.bytes, r);
}

static double flop_rate(const row *r) /* a multiply-accumulate is two */
{
    return rate(2 * (double)r->cost.macs, r);
}

/* What a row's numbers are called. */
static void show_json_row(const row *r)
{
    const char *unit = r->counts ? r->counts : "ns";
    printf(", \"median_%s\": %.0f, \"low_%s\": %.0f, \"high_%s\": %.0f, \"least_%s\": %.0f", unit,
           r->median, unit, r->low, unit, r->high, unit, r->least);
    if (!r->cost.bytes)
        return;
    printf(", \"bytes_moved\": %llu, \"macs\": %llu, \"is_open\": %s",
           (unsigned long long)r->cost.bytes, (unsigned long long)r->cost.macs,
           r->cost.is_open ? "true" : "false");
    if (r->counts)
        printf(", \"macs_per_%.*s\": %.4g", (int)strlen(r->counts) - 1, r->counts,
               rate((double)r->cost.macs, r));
    else
        printf(", \"gb_per_s\": %.4g, \"gflop_per_s\": %.4g", bytes_rate(r), flop_rate(r));
}

static void show_json(const row *rows, size_t n)
{
    printf("{\"steps\": %llu, \"rows\": [", (unsigned long long)steps);
    for (size_t i = 0; i < n; i++) {
        const row *r = &rows[i];
        printf("%s{\"name\": ", i ? ", " : "");
        cli_json_text(stdout, r->name);
        show_json_row(r);
        putchar('}');
    }
    puts("]}");
}

static void show_counts(const row *r)
{
    char half[64];
    snprintf(half, sizeof half, "%.0f ... %.0f", r->low, r->high);
    const int n = strcmp(r->counts, "instructions") == 0 ? 5 : (int)strlen(r->counts) - 1;
    printf("%-20s %8.0f %.*s %25s   %.3g MACs/%.*s%s\n", r->name, r->median, n, r->counts, half,
           rate((double)r->cost.macs, r), n, r->counts, r->cost.is_open ? "+" : "");
}

static void show(const row *rows, size_t n)
{
    const row *sim = against ? &rows[n - 1] : NULL;
    if (json) {
        show_json(rows, n);
        return;
    }
    printf("%-20s %14s %25s %10s %10s%s\n", "", "median", "half of the steps", "GB/s", "GFLOP/s",
           sim ? "    speed / sim" : "");
    for (size_t i = 0; i < n; i++) {
        const row *r = &rows[i];
        double scale;
        if (r->counts) {
            show_counts(r);
            continue;
        }
        const char *unit = unit_of(r->median, &scale);
        char half[64];
        snprintf(half, sizeof half, "%.2f ... %.2f %s", r->low / scale, r->high / scale, unit);
        printf("%-20s %11.2f %s %25s", r->name, r->median / scale, unit, half);
        if (r->cost.bytes) /* on paper: what loops of open length do is counted once */
            printf(" %10.3g %10.3g%s", bytes_rate(r), flop_rate(r), r->cost.is_open ? "+" : "");
        if (sim && r != sim && r->median > 0)
            printf("%15.2f", sim->median / r->median);
        putchar('\n');
    }
}

/* -- kernel by kernel -- */

static void show_kernel(const oi_bench_kernel *k, bool is_first)
{
    const oi_step_cost *c = &k->kernel.cost;
    double ratio = c->ns > 0 ? k->ns / c->ns : 0;
    if (json)
        printf(
            "%s{\"name\": \"%s\", \"recipe\": \"%s\", \"line\": %u, \"runs\": %llu, \"bytes\": "
            "%llu, \"macs\": %llu, \"is_most\": %s, \"predicted_ns\": %.0f, \"measured_ns\": %.0f}",
            is_first ? "" : ", ", k->kernel.name, k->kernel.recipe, k->kernel.line,
            (unsigned long long)k->runs, (unsigned long long)c->bytes, (unsigned long long)c->macs,
            c->is_most ? "true" : "false", c->ns, k->ns);
    else
        printf("%-32s %-26s %5u %6llu %11llu %12llu %10.2f%s %10.2f %7.2f\n", k->kernel.name,
               k->kernel.recipe, k->kernel.line, (unsigned long long)k->runs,
               (unsigned long long)c->bytes, (unsigned long long)c->macs, c->ns / 1e3,
               c->is_most ? "<" : " ", k->ns / 1e3, ratio);
}

/* Kernels that did not run in this step are left out. */
static void show_kernels(const char *target, const oi_bench_report *r)
{
    oi_bench_kernel k;
    double all = 0, predicted = 0;
    bool is_first = true;
    if (json) {
        fputs("{\"name\": ", stdout);
        cli_json_text(stdout, target);
        printf(", \"step_ns\": %.0f, \"kernels\": [", oi_bench_step_ns(r));
    } else
        printf("%-32s %-26s %5s %6s %11s %12s %10s  %10s %7s\n", target, "recipe", "line", "runs",
               "bytes", "MACs", "predicted", "us", "ratio");
    for (size_t i = 0; oi_bench_kernel_at(r, i, &k); i++) {
        if (k.runs == 0)
            continue;
        show_kernel(&k, is_first);
        is_first = false;
        all += k.ns * (double)k.runs;
        predicted += k.kernel.cost.ns * (double)k.runs;
    }
    if (json)
        puts("]}");
    else
        printf("all kernels %.1f us, predicted %.1f; the quickest step %.1f us\n", all / 1e3,
               predicted / 1e3, oi_bench_step_ns(r) / 1e3);
}

static oi_status measure_kernels(const char *target)
{
    const oi_verify_options o = wanted();
    oi_device *device = NULL;
    oi_bench_report *report = NULL;
    oi_status status = load_device(target, &device);
    if (status == OI_OK)
        status = oi_bench_kernels(device, job.model, job.loaded[0], &o, &report, job.diag);
    if (status == OI_OK)
        show_kernels(target, report);
    oi_bench_report_free(report);
    oi_device_free(device);
    return status;
}

static oi_status measure_all_kernels(void)
{
    oi_status status = OI_OK;
    for (size_t i = 0; i < targets.n && status == OI_OK; i++)
        status = measure_kernels(targets.at[i]);
    return targets.n ? status : measure_kernels("cpu_scalar");
}

static oi_status measure_all(void)
{
    row rows[MAX_WAYS + 1];
    size_t n = 0;
    double *times = calloc((size_t)steps + 1, sizeof *times);
    oi_status status = times ? OI_OK : cli_fail(OI_ERR_ENV, "out of memory");
    for (size_t i = 0; i < targets.n && status == OI_OK; i++, n++)
        status = measure(targets.at[i], times, &rows[n]);
    if (targets.n == 0 && status == OI_OK)
        status = measure("cpu_scalar", times, &rows[n++]);
    if (against && status == OI_OK)
        status = measure(NULL, times, &rows[n++]);
    if (status == OI_OK)
        show(rows, n);
    free(times);
    return status;
}

/* -- tuning -- */

/* How the new file may call the device: a profile by its name, a file beside it by its own. */
static const char *base_of(const char *target)
{
    const char *own = strrchr(target, '/'), *other = strrchr(tuned, '/');
    size_t n = own ? (size_t)(own - target) + 1 : 0, m = other ? (size_t)(other - tuned) + 1 : 0;
    if (!own && !strstr(target, ".json"))
        return target;
    return n == m && strncmp(target, tuned, n) == 0 ? target + n : NULL;
}

static oi_status tune(void)
{
    const char *target = targets.n ? targets.at[0] : "cpu_scalar", *base = base_of(target);
    oi_verify_options o = {.steps = steps == UINT64_MAX ? 0 : steps, .cc = cc, .flags = flags};
    oi_device *device = NULL;
    char *text = NULL;
    if (targets.n > 1 || !base)
        return cli_usage_error("--tune: one --target, and %s in the same folder", tuned);
    job.diag = oi_diag_new();
    oi_status status = oi_device_load(target, false, &device, job.diag);
    if (status == OI_OK)
        status = oi_tune(device, base, &o, &text, job.diag);
    if (status == OI_OK)
        status = cli_write(tuned, text);
    if (status == OI_OK)
        fputs(text, stdout);
    oi_free(text);
    oi_device_free(device);
    return cli_job_close(&job, status);
}

/* A program asks its environment how many threads to start: it gets the number given here. */
static oi_status set_wish(void)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)threads);
    return setenv("THREADS", text, 1) == 0 ? OI_OK : cli_fail(OI_ERR_ENV, "out of memory");
}

static oi_status run(cli_args args)
{
    if (tuned && args.n == 0)
        return tune();
    if (tuned || args.n == 0)
        return cli_usage_error(tuned ? "--tune takes no graph" : "which graph?");
    steps = steps == UINT64_MAX ? 50 : steps;
    if (steps == 0 || steps > 10000000 || targets.n > MAX_WAYS)
        return cli_usage_error("--steps: 1 to 10000000; --target: at most %d", MAX_WAYS);
    if (threads != UINT64_MAX && (threads < 1 || threads > MAX_THREADS))
        return cli_usage_error("--threads: 1 to %d", MAX_THREADS);
    oi_status status = cli_passes(&without, skip);
    if (status == OI_OK && threads != UINT64_MAX)
        status = set_wish();
    if (status == OI_OK)
        status = cli_job_open(&job, args, model_path, &size_list, NULL);
    if (status == OI_OK)
        status = kernels ? measure_all_kernels() : measure_all();
    if (status == OI_OK)
        status = cli_inputs_check(&inputs);
    return cli_job_close(&job, status);
}

static const char *const examples[] = {
    "openinfer bench minimal.oi --model minimal.oinf --target cpu_scalar --target cpu_avx2",
    "two programs side by side",
    "openinfer bench minimal.oi --model minimal.oinf --target cpu_avx2 --against sim",
    "a program beside the simulator with the best kernels of this machine",
    "openinfer bench --tune mine.json --target cpu_avx2",
    "a device file for this very machine: its caches' and memory's speed, the best tiles",
    "openinfer bench minimal.oi --model minimal.oinf --target cpu_avx2 --kernels",
    "where the time goes, beside what the cost model predicts",
    NULL,
};

const cli_command CMD_bench = {
    .description =
        "Synthesizes a graph, builds it with the device's own compiler, runs it and measures every "
        "step, inside the program: the median, what half of the steps stay within, and beside them "
        "the bytes and arithmetic that the plan counts for a step. With --kernels each kernel "
        "is measured, in the step that was quickest with it, beside the time that the plan "
        "predicts from the device's description; < behind a prediction marks what was counted for "
        "the greatest length "
        "where only the run knows it. With --tune no graph is needed: the machine is "
        "measured with the device's compiler, some sizes of tiles are tried, and a device file "
        "says what was found; programs made for it use that. The first tenth of the steps warms "
        "up. All steps get the same inputs; persistent memory that is "
        "full starts anew. A microcontroller's program runs on an emulated machine: its "
        "instructions are counted, as its clock counts them for verify.",
    .examples = examples,
    .options = options,
    .run = run,
};
