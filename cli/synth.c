/* synth.c: `openinfer synth`. */
#include "cli.h"

#include <string.h>

static const char *model_path, *target, *output, *name, *weights, *dump_after;
static cli_list without;
static bool certify, per_node;

static const cli_option options[] = {
    OPT_TEXT("model", 0, "MODEL.oinf", &model_path, "the model package"),
    OPT_TEXT("target", 0, "DEVICE", &target,
             "a device profile or FILE.json; see openinfer targets"),
    OPT_TEXT("output", 'o', "DIR", &output, "the folder to write"),
    OPT_TEXT("name", 0, "NAME", &name,
             "what the program is called; default: the graph's file name"),
    OPT_TEXT("weights", 0, "file|embed", &weights,
             "a file beside the program, or compiled in; default: as the device prefers"),
    OPT_FLAG("certify", 0, &certify,
             "build it with the device's compiler: its stack and flash go into the certificate"),
    OPT_FLAG("per-node", 0, &per_node, "code that can be compared after every node"),
    OPT_TEXT("dump-after", 0, "PASS", &dump_after,
             "print what this pass made: fold, dead, rename, fuse, rows, schedule or memory"),
    OPT_LIST("without", 0, "PASS", &without, "leave a pass out; results stay the same"),
    OPT_END,
};

/* "examples/mlp.oi" -> "mlp" */
static void stem(const char *path, char *out, size_t cap)
{
    const char *slash = strrchr(path, '/');
    size_t n = 0;
    for (const char *p = slash ? slash + 1 : path; *p && *p != '.' && n + 1 < cap; p++)
        out[n++] = *p;
    out[n] = '\0';
}

#define MAX_GRAPHS 16

typedef struct work {
    oi_diag *diag;
    oi_model *model;
    oi_device *device;
    oi_graph *graphs[MAX_GRAPHS];
    char names[MAX_GRAPHS][64];
    oi_plan *plan;
} work;

static oi_status synthesize(work *w, cli_args args)
{
    oi_synth_graph graphs[MAX_GRAPHS];
    const char *skip[CLI_MAX_PASSES + 1];
    const char *dumped[CLI_MAX_PASSES + 1];
    cli_list dump = {&dump_after, dump_after != NULL};
    if (cli_passes(&without, skip) != OI_OK || cli_passes(&dump, dumped) != OI_OK)
        return OI_ERR_USAGE;
    if (model_path)
        if (oi_model_open(model_path, &w->model, w->diag) != OI_OK)
            return OI_ERR_INPUT;
    oi_status status = oi_device_load(target ? target : "cpu_scalar", false, &w->device, w->diag);
    for (size_t i = 0; i < args.n && status == OI_OK; i++) {
        status = oi_graph_load(args.at[i], &w->graphs[i], w->diag);
        stem(args.at[i], w->names[i], sizeof w->names[i]);
        graphs[i] = (oi_synth_graph){w->graphs[i], w->names[i]};
    }
    oi_synth_options o = {.name = name ? name : w->names[0],
                          .per_node = per_node,
                          .skip = skip,
                          .dump_after = dump_after,
                          .weights = !weights                        ? OI_EMBED_AUTO
                                     : strcmp(weights, "embed") == 0 ? OI_EMBED_ALWAYS
                                                                     : OI_EMBED_NEVER};
    if (status == OI_OK)
        status = oi_synthesize(w->device, w->model, graphs, args.n, &o, &w->plan, w->diag);
    if (status == OI_OK && certify)
        status = oi_plan_certify(w->plan, w->device, NULL, w->diag);
    if (status == OI_OK)
        status = oi_plan_emit(w->plan, output, w->diag);
    if (status == OI_OK && oi_plan_dump(w->plan))
        status = cli_write(NULL, oi_plan_dump(w->plan));
    return status;
}

static oi_status run(cli_args args)
{
    work w = {.diag = NULL};
    if (!output)
        return cli_usage_error("-o DIR is missing: where to write the program");
    if (weights && strcmp(weights, "file") != 0 && strcmp(weights, "embed") != 0)
        return cli_usage_error("--weights %s: it is file or embed", weights);
    if (args.n > MAX_GRAPHS)
        return cli_usage_error("more than %d graphs", MAX_GRAPHS);
    w.diag = oi_diag_new();
    oi_status status = synthesize(&w, args);
    oi_plan_free(w.plan);
    oi_device_free(w.device);
    for (size_t i = 0; i < MAX_GRAPHS; i++)
        oi_graph_free(w.graphs[i]);
    oi_model_close(w.model);
    return cli_done(status, w.diag);
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
        "program over one state, with a step function each.",
    .examples = examples,
    .options = options,
    .run = run,
};
