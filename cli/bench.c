/* bench.c: `openinfer bench`. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define MAX_WAYS 16

static const char *model_path, *against, *cc, *flags;
static cli_list targets, sets;
static uint64_t steps = 50;
static bool json;

static const cli_option options[] = {
    OPT_TEXT("model", 0, "MODEL.oinf", &model_path, "the model package"),
    OPT_LIST("target", 0, "DEVICE", &targets,
             "a device profile or FILE.json; may be repeated; default cpu_scalar"),
    OPT_CHOICE("against", 0, "sim", &against, "also the simulator, and how they compare"),
    OPT_LIST("set", 0, "NAME=VALUE", &sets,
             "an input: FILE.npy, 1,2,3, 0.5, zeros, random:SEED:LO:HI"),
    OPT_COUNT("steps", 0, "N", &steps, "how many steps to measure; default 50"),
    OPT_TEXT("cc", 0, "COMPILER", &cc, "build with this compiler; default: the target's"),
    OPT_TEXT("cflags", 0, "FLAGS", &flags, "its flags, instead of the optimising ones"),
    OPT_FLAG("json", 0, &json, "machine-readable"),
    OPT_END,
};

typedef struct row {
    const char *name;
    double median, low, high, least; /* ns */
} row;

static oi_status fill(void *ctx, const oi_var_info *var, uint64_t step, void *data, uint64_t size,
                      oi_diag *d)
{
    (void)ctx;
    (void)d;
    const char *text = NULL;
    size_t n = strlen(var->name);
    bool is_float = oi_dtype_name(var->dtype)[0] == 'f' || var->dtype == OI_BF16;
    cli_array value;
    for (size_t i = 0; i < sets.n; i++)
        if (!strncmp(sets.at[i], var->name, n) && sets.at[i][n] == '=')
            text = sets.at[i] + n + 1;
    if (!text && var->has_init)
        return OI_NOT_FOUND;
    oi_status status = cli_value(var,
                                 text       ? text
                                 : is_float ? "random:1:-1:1"
                                            : "zeros",
                                 step, &value);
    if (status == OI_OK && value.view.size_bytes == size)
        memcpy(data, value.data, (size_t)size);
    else if (status == OI_OK)
        status = cli_usage_error("--set %s: another number of elements", var->name);
    cli_array_free(&value);
    return status;
}

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
    return (row){name, t[n / 2], t[n / 4], t[(n - 1) - n / 4], t[0]};
}

static oi_status measure(oi_model *model, const oi_graph *graph, const char *target, double *times,
                         row *out, oi_diag *diag)
{
    oi_verify_options o = {.steps = steps, .fill = fill, .cc = cc, .flags = flags};
    oi_device *device = NULL;
    oi_status status = target ? oi_device_load(target, false, &device, diag) : OI_OK;
    if (status == OI_OK)
        status = oi_bench(device, model, graph, &o, times, diag);
    if (status == OI_OK)
        *out = summarise(target ? target : "sim", times);
    oi_device_free(device);
    return status;
}

static const char *unit_of(double ns, double *scale)
{
    *scale = ns < 1e4 ? 1 : ns < 1e7 ? 1e3 : 1e6;
    return ns < 1e4 ? "ns" : ns < 1e7 ? "us" : "ms";
}

static void show(const row *rows, size_t n)
{
    const row *sim = against ? &rows[n - 1] : NULL;
    if (json)
        printf("{\"steps\": %llu, \"rows\": [", (unsigned long long)steps);
    else
        printf("%-20s %14s %25s%s\n", "", "median", "half of the steps",
               sim ? "    speed / sim" : "");
    for (size_t i = 0; i < n; i++) {
        const row *r = &rows[i];
        double scale;
        const char *unit = unit_of(r->median, &scale);
        if (json)
            printf("%s{\"name\": \"%s\", \"median_ns\": %.0f, \"low_ns\": %.0f, \"high_ns\": %.0f, "
                   "\"least_ns\": %.0f}",
                   i ? ", " : "", r->name, r->median, r->low, r->high, r->least);
        else
            printf("%-20s %11.2f %s %10.2f ... %.2f %s", r->name, r->median / scale, unit,
                   r->low / scale, r->high / scale, unit);
        if (!json && sim && r != sim && r->median > 0)
            printf("%11.2f", sim->median / r->median);
        if (!json)
            putchar('\n');
    }
    if (json)
        puts("]}");
}

static oi_status measure_all(oi_model *model, const oi_graph *graph, oi_diag *diag)
{
    row rows[MAX_WAYS + 1];
    size_t n = 0;
    double *times = calloc((size_t)steps + 1, sizeof *times);
    oi_status status = times ? OI_OK : cli_fail(OI_ERR_ENV, "out of memory");
    for (size_t i = 0; i < targets.n && status == OI_OK; i++, n++)
        status = measure(model, graph, targets.at[i], times, &rows[n], diag);
    if (targets.n == 0 && status == OI_OK)
        status = measure(model, graph, "cpu_scalar", times, &rows[n++], diag);
    if (against && status == OI_OK)
        status = measure(model, graph, NULL, times, &rows[n++], diag);
    if (status == OI_OK)
        show(rows, n);
    free(times);
    return status;
}

static oi_status run(cli_args args)
{
    if (steps == 0 || steps > 10000000 || targets.n > MAX_WAYS)
        return cli_usage_error("--steps: 1 to 10000000; --target: at most %d", MAX_WAYS);
    oi_diag *diag = oi_diag_new();
    oi_model *model = NULL;
    oi_graph *graph = NULL;
    oi_status status = oi_graph_load(args.at[0], &graph, diag);
    if (status == OI_OK && model_path)
        status = oi_model_open(model_path, &model, diag);
    if (status == OI_OK)
        status = measure_all(model, graph, diag);
    oi_graph_free(graph);
    oi_model_close(model);
    return cli_done(status, diag);
}

static const char *const examples[] = {
    "openinfer bench minimal.oi --model minimal.oinf --target cpu_scalar --target cpu_avx2",
    "two programs side by side",
    "openinfer bench minimal.oi --model minimal.oinf --target cpu_avx2 --against sim",
    "a program beside the simulator with the best kernels of this machine",
    NULL,
};

const cli_command CMD_bench = {
    .description =
        "Synthesizes a graph, builds it with the device's own compiler, runs it and measures every "
        "step, inside the program: the median, and what half of the steps stay within. The first "
        "tenth of the steps warms up. All steps get the same inputs; persistent memory that is "
        "full "
        "starts anew.",
    .examples = examples,
    .options = options,
    .run = run,
};
