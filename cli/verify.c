/* verify.c: `openinfer verify`. */
#include "cli.h"

#include <string.h>

static const char *model_path, *target, *keep, *cc, *flags;
static cli_list without, size_list;
static cli_inputs inputs;
static cli_job job;
static uint64_t steps = 8, node_seconds = 60, max_output;
static bool per_node, no_per_node, in_turn, partition_all, as_json;

static const cli_option options[] = {
    OPT_MODEL(&model_path),
    OPT_SIZES(&size_list),
    OPT_TEXT("target", 0, "DEVICE", &target, "a device profile or FILE.json; default cpu_scalar"),
    OPT_LIST("set", 0, "NAME=VALUE", &inputs.sets,
             "an input: FILE.npy, 1,2,3, 0.5, zeros, random:SEED:LO:HI, @DIR/{step}.npy"),
    OPT_COUNT("steps", 0, "N", &steps, "how many steps; default 8"),
    OPT_FLAG("per-node", 0, &per_node,
             "judge every node, each on the simulator's inputs, and only that"),
    OPT_FLAG("no-per-node", 0, &no_per_node,
             "only the whole program; default: then every node where that does not take long"),
    OPT_COUNT("node-seconds", 0, "N", &node_seconds, "what is not long, as estimated; default 60"),
    OPT_FLAG("partition-all", 0, &partition_all, "threads share every kernel, however small"),
    OPT_FLAG("in-turn", 0, &in_turn,
             "several graphs: all in turn, N steps each; else each once, then the last"),
    OPT_LIST("without", 0, "PASS", &without,
             "leave a pass of the synthesizer out; results stay the same"),
    OPT_SIZE("max-output", 0, "SIZE", &max_output,
             "refuse to write a larger program; default: 64G, and never more than is free"),
    OPT_TEXT("keep", 0, "DIR", &keep, "keep the program in this folder"),
    OPT_TEXT("cc", 0, "COMPILER", &cc, "build with this compiler; default: the target's"),
    OPT_TEXT("cflags", 0, "FLAGS", &flags, "its flags, instead of the optimising ones"),
    OPT_FLAG("json", 0, &as_json, "print the comparison as JSON"),
    OPT_END,
};

static oi_status compare(cli_args args, oi_verify_report **report)
{
    const char *skip[CLI_MAX_PASSES + 1];
    oi_status status = cli_passes(&without, skip);
    if (status == OI_OK)
        status = cli_job_open(&job, args, model_path, &size_list, target ? target : "cpu_scalar");
    oi_verify_options o = {.synth = {.name = job.names[0],
                                     .sizes = job.sizes.at,
                                     .n_sizes = job.sizes.n,
                                     .per_node = per_node,
                                     .partition_all = partition_all,
                                     .max_output = max_output,
                                     .skip = skip},
                           .node_seconds = no_per_node ? 0 : (double)node_seconds,
                           .steps = steps,
                           .in_turn = in_turn,
                           .fill = cli_inputs_fill,
                           .fill_ctx = &inputs,
                           .keep = keep,
                           .cc = cc,
                           .flags = flags};
    if (status == OI_OK)
        status = oi_verify(job.device, job.model, job.graphs, job.n, &o, report, job.diag);
    return status;
}

/* -- the table -- */

/* What the device's preference has changed, and how far that is from the graph. */
static void show_lowered(const oi_verify_report *report)
{
    oi_verify_lowered l;
    oi_verify_get_lowered(report, &l);
    if (!l.n_ops)
        return;
    printf("precision: %s in %llu op%s by preferences.default_precision; against the graph as "
           "written: ",
           oi_dtype_name(oi_device_get(job.device)->preferences.default_precision),
           (unsigned long long)l.n_ops, l.n_ops == 1 ? "" : "s");
    if (*l.name)
        printf("at most %.2g of the greatest value (output %s, step %llu)", l.worst, l.name,
               (unsigned long long)l.step);
    else
        printf("no output of floats");
    if (l.n_others)
        printf("; %llu of %llu other outputs differ", (unsigned long long)l.n_different,
               (unsigned long long)l.n_others);
    putchar('\n');
}

/* Says which nodes were not compared. */
static void show_nodes(const oi_verify_report *report)
{
    double seconds;
    const char *why;
    if (oi_verify_nodes(report, &seconds, &why) || no_per_node || *oi_verify_failure(report))
        return;
    if (*why)
        printf("node by node: left out, the device cannot: %s\n", why);
    else
        printf("node by node: left out, it would take about %.0f s; --per-node does it\n", seconds);
}

static void show_row(const oi_verify_row *r, const char *name)
{
    printf("%-8s %-28s %-5s %8llu  ", r->what, name, oi_dtype_name(r->dtype),
           (unsigned long long)r->n_compared);
    if (r->worst == 0 && r->agrees) {
        puts("0");
        return;
    }
    printf("%-10.3g %-10.3g %-10.3g step %llu, element %llu%s\n", r->worst, r->relative, r->allowed,
           (unsigned long long)r->step, (unsigned long long)r->element,
           r->agrees ? "" : "  DIFFERS");
}

static void show(const oi_verify_report *report, size_t n_graphs)
{
    oi_verify_row r;
    uint64_t failed = 0, done = oi_verify_steps(report, &failed);
    printf("%-8s %-28s %-5s %8s  %-10s %-10s %s\n", "what", "value", "dtype", "compared", "error",
           "relative", "allowed");
    for (size_t i = 0; oi_verify_row_at(report, i, &r); i++) {
        char name[160];
        snprintf(name, sizeof name, "%s%s%s", n_graphs > 1 ? r.graph : "", n_graphs > 1 ? "/" : "",
                 r.name);
        show_row(&r, name);
    }
    printf("%llu steps compared", (unsigned long long)done);
    if (failed)
        printf(", %llu of them ended with the same error", (unsigned long long)failed);
    const char *difference = oi_verify_failure(report);
    printf(": %s%s\n", *difference ? "DIFFERENT: " : "they agree", difference);
    show_nodes(report);
    show_lowered(report);
}

/* -- for a program -- */

static void put_number(const char *key, double v)
{
    printf(", \"%s\": ", key);
    cli_json_number(stdout, v);
}

static void put_text(const char *key, const char *text)
{
    printf("\"%s\": ", key);
    cli_json_text(stdout, text);
}

static void put_row(const oi_verify_row *r)
{
    put_text("what", r->what);
    fputs(", ", stdout);
    put_text("graph", r->graph);
    fputs(", ", stdout);
    put_text("name", r->name);
    printf(", \"dtype\": \"%s\", \"agrees\": %s, \"compared\": %llu, \"step\": %llu, "
           "\"element\": %llu",
           oi_dtype_name(r->dtype), r->agrees ? "true" : "false", (unsigned long long)r->n_compared,
           (unsigned long long)r->step, (unsigned long long)r->element);
    put_number("worst", r->worst);
    put_number("relative", r->relative);
    put_number("allowed", r->allowed);
    put_number("atol", r->atol);
    put_number("rtol", r->rtol);
    put_number("wanted", r->wanted);
    put_number("found", r->found);
}

static void show_json(const oi_verify_report *report)
{
    oi_verify_row r;
    oi_verify_lowered l;
    uint64_t failed = 0, done = oi_verify_steps(report, &failed);
    const char *difference = oi_verify_failure(report);
    oi_verify_get_lowered(report, &l);
    printf("{\n  \"agrees\": %s,\n  ", *difference ? "false" : "true");
    put_text("difference", difference);
    double seconds;
    const char *why;
    printf(",\n  \"per_node\": {\"judged\": %s, ",
           oi_verify_nodes(report, &seconds, &why) ? "true" : "false");
    put_text("why_not", why);
    put_number("seconds", seconds);
    putchar('}');
    printf(",\n  \"steps\": %llu,\n  \"failed_alike\": %llu,\n  \"lowered\": {\"ops\": %llu, ",
           (unsigned long long)done, (unsigned long long)failed, (unsigned long long)l.n_ops);
    put_text("output", l.name ? l.name : "");
    put_number("worst", l.worst);
    printf(", \"step\": %llu, \"others\": %llu, \"different\": %llu},\n  \"rows\": [",
           (unsigned long long)l.step, (unsigned long long)l.n_others,
           (unsigned long long)l.n_different);
    for (size_t i = 0; oi_verify_row_at(report, i, &r); i++) {
        fputs(i ? ",\n    {" : "\n    {", stdout);
        put_row(&r);
        putchar('}');
    }
    puts("\n  ]\n}");
}

static oi_status run(cli_args args)
{
    oi_verify_report *report = NULL;
    if (per_node && no_per_node)
        return cli_usage_error("--per-node and --no-per-node exclude each other");
    if (node_seconds == 0)
        return cli_usage_error("--node-seconds: at least 1; --no-per-node leaves nodes out");
    if (steps == 0)
        return cli_usage_error("--steps: at least 1");
    oi_status status = compare(args, &report);
    if (report)
        as_json ? show_json(report) : show(report, args.n);
    if (status == OI_OK)
        status = cli_inputs_check(&inputs);
    oi_verify_report_free(report);
    return cli_job_close(&job, status);
}

static const char *const examples[] = {
    "openinfer verify minimal.oi --model minimal.oinf --target cpu_avx2",
    "eight steps in the simulator and in C, compared value by value",
    "openinfer verify minimal.oi --model minimal.oinf --per-node --keep out",
    "only every node on the simulator's inputs; the program stays in out",
    NULL,
};

const cli_command CMD_verify = {
    .description =
        "Simulates a graph, synthesizes it for a device, builds that with the device's own "
        "compiler, runs it, and compares every output and everything persistent, sizes included, "
        "after every step. Then it does so node by node, each on the simulator's inputs, where "
        "that "
        "is estimated to take less than a minute, and says so where it is not done. Integers that "
        "no "
        "float had a say in must be equal bit for bit; every float may differ by the tolerance of "
        "its op in the catalog, in the whole program by those of the nodes on its way, absolutely "
        "and relatively. A step that fails must fail with "
        "the same error and change nothing that lasts.\n\n"
        "Exit 1: they differ; the first difference and the node are named. Exit 3: a compiler or "
        "an "
        "emulator is missing, and which package has it.",
    .examples = examples,
    .options = options,
    .run = run,
};
