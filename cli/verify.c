/* verify.c: `openinfer verify`. */
#include "cli.h"

#include <string.h>

#define MAX_GRAPHS 255

static const char *model_path, *target, *keep, *cc, *flags;
static cli_list sets, without;
static uint64_t steps = 8;
static bool per_node, in_turn;

static const cli_option options[] = {
    OPT_TEXT("model", 0, "MODEL.oinf", &model_path, "the model package"),
    OPT_TEXT("target", 0, "DEVICE", &target, "a device profile or FILE.json; default cpu_scalar"),
    OPT_LIST("set", 0, "NAME=VALUE", &sets,
             "an input: FILE.npy, 1,2,3, 0.5, zeros, random:SEED:LO:HI, @DIR/{step}.npy"),
    OPT_COUNT("steps", 0, "N", &steps, "how many steps; default 8"),
    OPT_FLAG("per-node", 0, &per_node, "judge every node, each on the simulator's inputs"),
    OPT_FLAG("in-turn", 0, &in_turn,
             "several graphs: all in turn, N steps each; else each once, then the last"),
    OPT_LIST("without", 0, "PASS", &without,
             "leave a pass of the synthesizer out; results stay the same"),
    OPT_TEXT("keep", 0, "DIR", &keep, "keep the program in this folder"),
    OPT_TEXT("cc", 0, "COMPILER", &cc, "build with this compiler; default: the target's"),
    OPT_TEXT("cflags", 0, "FLAGS", &flags, "its flags, instead of the optimising ones"),
    OPT_END,
};

typedef struct work {
    oi_diag *diag;
    oi_model *model;
    oi_device *device;
    oi_graph *graphs[MAX_GRAPHS];
    char names[MAX_GRAPHS][64];
    oi_verify_report *report;
    bool used[1024]; /* by --set: some graph has that input */
} work;

/* "examples/mlp.oi" -> "mlp" */
static void stem(const char *path, char *out, size_t cap)
{
    const char *slash = strrchr(path, '/');
    size_t n = 0;
    for (const char *p = slash ? slash + 1 : path; *p && *p != '.' && n + 1 < cap; p++)
        out[n++] = *p;
    out[n] = '\0';
}

/* The last --set for a name wins. */
static const char *given_for(work *w, const char *name)
{
    const char *value = NULL;
    size_t n = strlen(name);
    for (size_t i = 0; i < sets.n; i++)
        if (!strncmp(sets.at[i], name, n) && sets.at[i][n] == '=') {
            value = sets.at[i] + n + 1;
            if (i < sizeof w->used)
                w->used[i] = true;
        }
    return value;
}

static oi_status fill(void *ctx, const oi_var_info *var, uint64_t step, void *data, uint64_t size,
                      oi_diag *d)
{
    (void)d;
    const char *text = given_for(ctx, var->name);
    bool is_float = oi_dtype_name(var->dtype)[0] == 'f' || var->dtype == OI_BF16;
    char standard[64] = "zeros";
    cli_array value;
    if (!text && var->has_init)
        return OI_NOT_FOUND;
    if (!text && is_float) /* other numbers in every step */
        snprintf(standard, sizeof standard, "random:%llu:-1:1", (unsigned long long)step + 1);
    if (!text && step == 0)
        cli_note("%s is not set: %s", var->name, is_float ? "random:STEP+1:-1:1" : "zeros");
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

static oi_status check_sets(const work *w)
{
    for (size_t i = 0; i < sets.n && i < sizeof w->used; i++)
        if (!w->used[i])
            return cli_usage_error("--set %s: write NAME=VALUE for a dynamic variable", sets.at[i]);
    return OI_OK;
}

static oi_status compare(work *w, cli_args args)
{
    oi_synth_graph graphs[MAX_GRAPHS];
    oi_status status = model_path ? oi_model_open(model_path, &w->model, w->diag) : OI_OK;
    if (status == OI_OK)
        status = oi_device_load(target ? target : "cpu_scalar", false, &w->device, w->diag);
    for (size_t i = 0; i < args.n && status == OI_OK; i++) {
        status = oi_graph_load(args.at[i], &w->graphs[i], w->diag);
        stem(args.at[i], w->names[i], sizeof w->names[i]);
        graphs[i] = (oi_synth_graph){w->graphs[i], w->names[i]};
    }
    const char *skip[CLI_MAX_PASSES + 1];
    oi_status known = cli_passes(&without, skip);
    if (known != OI_OK)
        return known;
    oi_verify_options o = {.synth = {.name = w->names[0], .per_node = per_node, .skip = skip},
                           .steps = steps,
                           .in_turn = in_turn,
                           .fill = fill,
                           .fill_ctx = w,
                           .keep = keep,
                           .cc = cc,
                           .flags = flags};
    if (status == OI_OK)
        status = oi_verify(w->device, w->model, graphs, args.n, &o, &w->report, w->diag);
    return status;
}

/* -- the table -- */

static void show(const work *w, size_t n_graphs)
{
    oi_verify_row r;
    uint64_t failed = 0, done = oi_verify_steps(w->report, &failed);
    printf("%-8s %-28s %-5s %8s  %-12s %s\n", "what", "value", "dtype", "compared", "worst error",
           "allowed");
    for (size_t i = 0; oi_verify_row_at(w->report, i, &r); i++) {
        char name[160];
        snprintf(name, sizeof name, "%s%s%s", n_graphs > 1 ? r.graph : "", n_graphs > 1 ? "/" : "",
                 r.name);
        printf("%-8s %-28s %-5s %8llu  ", r.what, name, oi_dtype_name(r.dtype),
               (unsigned long long)r.n_compared);
        if (r.worst == 0 && r.agrees)
            printf("%-12s", "0");
        else
            printf("%-12.3g %-10.3g step %llu, element %llu%s", r.worst, r.allowed,
                   (unsigned long long)r.step, (unsigned long long)r.element,
                   r.agrees ? "" : "  DIFFERS");
        putchar('\n');
    }
    printf("%llu steps compared", (unsigned long long)done);
    if (failed)
        printf(", %llu of them ended with the same error", (unsigned long long)failed);
    const char *difference = oi_verify_failure(w->report);
    printf(": %s%s\n", *difference ? "DIFFERENT: " : "they agree", difference);
}

static oi_status run(cli_args args)
{
    static work w;
    if (args.n > MAX_GRAPHS)
        return cli_usage_error("more than %d graphs", MAX_GRAPHS);
    if (steps == 0)
        return cli_usage_error("--steps: at least 1");
    w.diag = oi_diag_new();
    oi_status status = compare(&w, args);
    if (w.report)
        show(&w, args.n);
    if (status == OI_OK)
        status = check_sets(&w);
    oi_verify_report_free(w.report);
    oi_device_free(w.device);
    for (size_t i = 0; i < MAX_GRAPHS; i++)
        oi_graph_free(w.graphs[i]);
    oi_model_close(w.model);
    return cli_done(status, w.diag);
}

static const char *const examples[] = {
    "openinfer verify minimal.oi --model minimal.oinf --target cpu_avx2",
    "eight steps in the simulator and in C, compared value by value",
    "openinfer verify minimal.oi --model minimal.oinf --per-node --keep out",
    "every node on the simulator's inputs; the program stays in out",
    NULL,
};

const cli_command CMD_verify = {
    .description =
        "Simulates a graph, synthesizes it for a device, builds that with the device's own "
        "compiler, runs it, and compares every output and everything persistent, sizes included, "
        "after every step. Integers that no float had a say in must be equal bit for bit; floats "
        "may "
        "differ by a thousandth of the greatest value. With --per-node each node is judged by the "
        "tolerance of the op catalog, on the simulator's inputs. A step that fails must fail with "
        "the same error and change nothing that lasts.\n\n"
        "Exit 1: they differ; the first difference and the node are named. Exit 3: a compiler or "
        "an "
        "emulator is missing, and which package has it.",
    .examples = examples,
    .options = options,
    .run = run,
};
