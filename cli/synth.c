/* synth.c: `openinfer synth`. */
#include "cli.h"

#include <string.h>
#include <unistd.h>

static const char *model_path, *target, *output, *name, *weights, *dump_after, *host_lang;
static cli_list without, size_list;
static uint64_t max_output;
static bool certify, per_node, partition_all, device_only, host_only, force, as_json;

static const cli_option options[] = {
    OPT_MODEL(&model_path),
    OPT_SIZES(&size_list),
    OPT_TEXT("target", 0, "DEVICE", &target,
             "a device profile or FILE.json; see openinfer targets"),
    OPT_TEXT("output", 'o', "DIR", &output, "the folder to write"),
    OPT_TEXT("name", 0, "NAME", &name,
             "what the program is called; default: the graph's file name"),
    OPT_TEXT("weights", 0, "file|embed", &weights,
             "a file beside the program, or compiled in; default: as the device prefers"),
    OPT_FLAG("certify", 0, &certify,
             "build it with the device's tools: its stack and flash, or what its circuit takes, go "
             "into the "
             "certificate"),
    OPT_FLAG("per-node", 0, &per_node, "code that can be compared after every node"),
    OPT_FLAG("partition-all", 0, &partition_all, "threads share every kernel, however small"),
    OPT_FLAG("force", 0, &force, "replace files in DIR that are of no earlier run"),
    OPT_SIZE("max-output", 0, "SIZE", &max_output,
             "refuse to write a larger program; default: 64G, and never more than is free"),
    OPT_FLAG("device-only", 0, &device_only,
             "only what runs on the device itself: the shaders of a Vulkan device"),
    OPT_FLAG("host-only", 0, &host_only,
             "only the host's program: for a CPU, which is its own host, that is all of it"),
    OPT_CHOICE("host-lang", 0, "c|cpp", &host_lang,
               "language of the host's program; default: as the device prefers"),
    OPT_TEXT(
        "dump-after", 0, "PASS", &dump_after,
        "print what this pass made: ssa, fold, match, dead, cse, hoist, copy_prop, inline, fuse, "
        "recipes, rows, narrow32, narrow16, int_clamp, view, layout, schedule, pipeline, "
        "inplace, memory, partition, merge or cost"),
    OPT_LIST("without", 0, "PASS", &without, "leave a pass out; results stay the same"),
    OPT_FLAG("json", 0, &as_json, "print what was made as JSON: graphs, kernels and their cost"),
    OPT_END,
};

static cli_job job;

static void show_kernels(const oi_plan *plan)
{
    oi_plan_kernel k;
    for (size_t i = 0; oi_plan_kernel_at(plan, i, &k); i++) {
        printf("%s\n    {\"name\": ", i ? "," : "");
        cli_json_text(stdout, k.name);
        fputs(", \"recipe\": ", stdout);
        cli_json_text(stdout, k.recipe);
        printf(", \"line\": %u, \"bytes\": %llu, \"macs\": %llu, \"predicted_ns\": ", k.line,
               (unsigned long long)k.cost.bytes, (unsigned long long)k.cost.macs);
        cli_json_number(stdout, k.cost.ns);
        putchar('}');
    }
}

static void show_json(const oi_plan *plan)
{
    oi_step_cost cost;
    fputs("{\n  \"name\": ", stdout);
    cli_json_text(stdout, oi_plan_name(plan));
    fputs(",\n  \"output\": ", stdout);
    cli_json_text(stdout, output);
    fputs(",\n  \"target\": ", stdout);
    cli_json_text(stdout, target ? target : "cpu_scalar");
    printf(",\n  \"lowered\": %llu,\n  \"graphs\": [", (unsigned long long)oi_plan_n_lowered(plan));
    for (size_t i = 0; i < job.n && oi_plan_cost(plan, i, &cost); i++) {
        printf("%s\n    {\"name\": ", i ? "," : "");
        cli_json_text(stdout, job.names[i]);
        printf(", \"bytes\": %llu, \"macs\": %llu, \"is_open\": %s, \"predicted_ns\": ",
               (unsigned long long)cost.bytes, (unsigned long long)cost.macs,
               cost.is_open ? "true" : "false");
        cli_json_number(stdout, cost.ns);
        putchar('}');
    }
    fputs("\n  ],\n  \"kernels\": [", stdout);
    show_kernels(plan);
    puts("\n  ]\n}");
}

static void note_renamed(const oi_plan *plan)
{
    const char *was, *is;
    for (size_t i = 0; oi_plan_renamed(plan, i, &was, &is); i++)
        cli_note("'%s' is called %s in the program: %s.h says why", was, is, oi_plan_name(plan));
}

static void note_slow(const oi_plan *plan)
{
    const char *text;
    for (size_t i = 0; (text = oi_plan_slow(plan, i)) != NULL; i++)
        cli_note("%s", text);
}

#define BAR 30 /* characters of a progress bar */

/* On a terminal, of weights that take a while. */
static void show_progress(void *ctx, uint64_t written, uint64_t all)
{
    (void)ctx;
    if (all < 256u << 20)
        return;
    const int done = (int)(BAR * (written / (double)all));
    fprintf(stderr, "\rweights [%.*s%*s] %3d %% of %.1f GB%s", done,
            "##############################", BAR - done, "", (int)(100 * (written / (double)all)),
            all * 1e-9, written == all ? "\n" : "");
    fflush(stderr);
}

/* --host-lang wins over what the device prefers. */
static oi_status write_program(oi_plan *plan)
{
    oi_host_lang lang = oi_device_get(job.device)->preferences.host_lang;
    if (host_lang)
        lang = strcmp(host_lang, "cpp") == 0 ? OI_HOST_CPP : OI_HOST_C;
    return device_only ? oi_plan_emit_device(plan, output, job.diag)
                       : oi_plan_emit_host(plan, lang, output, job.diag);
}

static oi_status synthesize(cli_args args, oi_plan **plan)
{
    const char *skip[CLI_MAX_PASSES + 1];
    const char *dumped[CLI_MAX_PASSES + 1];
    cli_list dump = {&dump_after, dump_after != NULL};
    if (cli_passes(&without, skip) != OI_OK || cli_passes(&dump, dumped) != OI_OK)
        return OI_ERR_USAGE;
    oi_status status =
        cli_job_open(&job, args, model_path, &size_list, target ? target : "cpu_scalar");
    oi_synth_options o = {.name = name ? name : job.names[0],
                          .sizes = job.sizes.at,
                          .n_sizes = job.sizes.n,
                          .per_node = per_node,
                          .partition_all = partition_all,
                          .overwrite = force,
                          .max_output = max_output,
                          .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
                          .skip = skip,
                          .dump_after = dump_after,
                          .weights = !weights                        ? OI_EMBED_AUTO
                                     : strcmp(weights, "embed") == 0 ? OI_EMBED_ALWAYS
                                                                     : OI_EMBED_NEVER};
    if (status == OI_OK)
        status = oi_synthesize(job.device, job.model, job.graphs, job.n, &o, plan, job.diag);
    if (status == OI_OK)
        cli_note_lowered(oi_plan_n_lowered(*plan),
                         oi_device_get(job.device)->preferences.default_precision, target);
    if (status == OI_OK)
        note_renamed(*plan);
    if (status == OI_OK)
        note_slow(*plan);
    if (status == OI_OK && certify)
        status = oi_plan_certify(*plan, job.device, NULL, job.diag);
    if (status == OI_OK)
        status = write_program(*plan);
    if (status == OI_OK && oi_plan_dump(*plan))
        status = cli_write(NULL, oi_plan_dump(*plan));
    if (status == OI_OK && as_json)
        show_json(*plan);
    return status;
}

static oi_status run(cli_args args)
{
    oi_plan *plan = NULL;
    if (!output)
        return cli_usage_error("-o DIR is missing: where to write the program");
    if (device_only && (host_only || host_lang))
        return cli_usage_error("--device-only writes nothing of the host: it excludes %s",
                               host_only ? "--host-only" : "--host-lang");
    if (as_json && dump_after)
        return cli_usage_error("--json and --dump-after both write to standard output");
    if (weights && strcmp(weights, "file") != 0 && strcmp(weights, "embed") != 0)
        return cli_usage_error("--weights %s: it is file or embed", weights);
    oi_status status = synthesize(args, &plan);
    oi_plan_free(plan);
    return cli_job_close(&job, status);
}

static const char *const examples[] = {
    "openinfer synth model.oi --model model.oinf --target cpu_avx2 -o out",
    "C for a server, in the folder out",
    NULL,
};

const cli_command CMD_synth = {
    .description =
        "Turns graphs and their model into source code for one device: plain C with all sizes "
        "spelled out, the weights in a file beside it, and a Makefile. Several graphs become one "
        "program over one state, with a step function each. GRAPH is FILE.oi, FILE.json, or "
        "MODEL.oinf when the package embeds a graph; then it is also the model.",
    .examples = examples,
    .options = options,
    .run = run,
};
