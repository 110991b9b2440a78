/* run.c: `openinfer run`. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static cli_session s;
static uint64_t steps = 1;
static const char *fetch, *out_dir, *trace_path, *trace_format;
static oi_trace_options trace;
static bool as_json;
static size_t n_shown; /* values of this step so far */

static const cli_option options[] = {
    SESSION_OPTIONS(s),
    OPT_COUNT("steps", 0, "N", &steps, "how many steps (default: 1)"),
    OPT_TEXT("fetch", 0, "a,b", &fetch,
             "print these variables after each step (default: what entry returns)"),
    OPT_TEXT("out", 0, "DIR", &out_dir, "also write them to DIR/NAME.npy"),
    OPT_TEXT("trace", 0, "FILE", &trace_path, "write what ran, node by node"),
    OPT_CHOICE("trace-format", 0, "json|chrome", &trace_format,
               "chrome: for chrome://tracing and Perfetto (default: json)"),
    OPT_FLAG("trace-values", 0, &s.options.trace_values, "with statistics of what was written"),
    OPT_FLAG("trace-ext", 0, &trace.ext,
             "with op, step, iteration, thread, start time, shape and dtype"),
    OPT_FLAG("timer", 0, &s.options.timer, "measure the nodes; without --trace, log them"),
    OPT_FLAG("json", 0, &as_json, "print all elements as JSON, with the step they belong to"),
    OPT_END,
};

/* -- results -- */

static oi_status write_array(const char *name, const oi_view *v)
{
    size_t room = strlen(out_dir) + strlen(name) + 40;
    char *path = malloc(room);
    if (!path)
        return cli_fail(OI_ERR_ENV, "out of memory");
    if (steps > 1)
        snprintf(path, room, "%s/%s.%llu.npy", out_dir, name, (unsigned long long)s.step);
    else
        snprintf(path, room, "%s/%s.npy", out_dir, name);
    oi_status status = cli_npy_write(path, v);
    free(path);
    return status;
}

static oi_status show(const char *name, const oi_view *v)
{
    if (as_json && n_shown++)
        fputs(", ", stdout);
    oi_status status =
        as_json ? oi_view_print_json(stdout, name, v) : oi_view_print(stdout, name, v);
    return status == OI_OK && out_dir ? write_array(name, v) : status;
}

/* Up to the comma behind a name, which may be an entry of a table: "W[2,5]". */
static size_t name_length(const char *at)
{
    size_t n = strcspn(at, ",[");
    return at[n] == '[' ? n + strcspn(at + n, "]") + (strchr(at + n, ']') != NULL) : n;
}

static oi_status show_fetched(void)
{
    for (const char *at = fetch; *at;) {
        size_t n = name_length(at);
        char name[256];
        oi_view v;
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        oi_status status = oi_fetch(s.exec, name, &v, s.diag);
        if (status == OI_OK)
            status = show(name, &v);
        if (status != OI_OK)
            return status;
        at += n + (at[n] == ',');
    }
    return OI_OK;
}

static oi_status show_returned(void)
{
    const char *name;
    oi_view v;
    oi_status status = OI_OK;
    for (size_t i = 0; status == OI_OK; i++) {
        status = oi_output(s.exec, i, &name, &v, s.diag);
        if (status == OI_NOT_FOUND)
            return OI_OK;
        if (status == OI_OK)
            status = show(name, &v);
    }
    return status;
}

static oi_status show_results(void)
{
    n_shown = 0;
    if (as_json)
        printf("%s\n  {\"step\": %llu, \"values\": [", s.step ? "," : "",
               (unsigned long long)s.step);
    else if (steps > 1)
        printf("%sstep %llu\n", s.step ? "\n" : "", (unsigned long long)s.step);
    oi_status status = fetch ? show_fetched() : show_returned();
    if (as_json)
        fputs("]}", stdout);
    return status;
}

static oi_status write_trace(void)
{
    char *text = NULL;
    trace.deterministic = s.deterministic;
    if (trace_format && !strcmp(trace_format, "chrome"))
        trace.format = OI_TRACE_CHROME;
    oi_status status = oi_trace_json(s.exec, &trace, &text, s.diag);
    if (status == OI_OK)
        status = cli_write(trace_path, text);
    oi_free(text);
    return status;
}

/* -- running -- */

void cli_describe(FILE *to, const oi_event *e)
{
    const char *out = "";
    fprintf(to, "%s%s", e->kind, *e->op ? " " : "");
    fputs(e->op, to);
    for (size_t i = 0; i < e->n_params; i++)
        fprintf(to, "%s%s", i ? ", " : "(", e->params[i]);
    if (e->n_params)
        fputs(")", to);
    for (size_t i = 0; i < e->n_output; i++, out = ",")
        fprintf(to, "%s %s", i ? out : " >>", e->output[i]);
}

void cli_log_event(FILE *to, const oi_event *e)
{
    fprintf(to, "%llu %s [%s] -- ", (unsigned long long)e->node_index, e->node_uuid, e->block_name);
    cli_describe(to, e);
    fprintf(to, " -- (%llums %lluus %lluns)\n", (unsigned long long)e->micros[0],
            (unsigned long long)e->micros[1], (unsigned long long)e->micros[2]);
}

/* Node by node, so that each can be logged. */
static oi_status logged_step(void)
{
    oi_event e;
    cli_flush();
    while (oi_next(s.exec, &e, s.diag))
        cli_log_event(stderr, &e);
    return e.status;
}

/* OPENINFER_TRACE asks for events: the library keeps them, and without --trace they are logged. */
static bool environment_traces(void)
{
    const char *wish = getenv("OPENINFER_TRACE");
    return wish && *wish && strcmp(wish, "off") != 0;
}

static oi_status run_steps(void)
{
    bool logs = (s.options.timer || environment_traces()) && !trace_path;
    for (s.step = 0; s.step < steps; s.step++) {
        oi_status status = cli_session_feed(&s);
        if (status == OI_OK)
            status = logs ? logged_step() : oi_step(s.exec, s.diag);
        if (status == OI_OK)
            status = show_results();
        if (status != OI_OK)
            return status;
    }
    return OI_OK;
}

static oi_status make_folder(void)
{
    struct stat st;
    if (!out_dir || (stat(out_dir, &st) == 0 && S_ISDIR(st.st_mode)) || mkdir(out_dir, 0777) == 0)
        return OI_OK;
    return cli_fail(OI_ERR_ENV, "cannot make folder %s: %s", out_dir, strerror(errno));
}

static oi_status run(cli_args args)
{
    s.options.trace = trace_path != NULL;
    s.options.timer |= (s.options.trace || environment_traces()) && !s.deterministic;
    oi_status status = make_folder();
    if (status == OI_OK)
        status = cli_session_open(&s, args.at[0]);
    if (status == OI_OK) {
        fputs(as_json ? "{\"steps\": [" : "", stdout);
        status = run_steps();
        fputs(as_json ? "\n]}\n" : "", stdout); /* whole also when a step failed */
    }
    if (s.exec && trace_path) { /* also of a run that failed: that is when it is wanted */
        oi_status written = write_trace();
        status = status == OI_OK ? written : status;
    }
    if (s.sim && s.memory_limit) {
        oi_sim_stats stats;
        oi_sim_get_stats(s.sim, &stats);
        cli_note(
            "memory: at most %llu bytes, limit %llu; model tensors: at most %llu bytes resident; "
            "persistent: at most %llu bytes",
            (unsigned long long)stats.total_peak, (unsigned long long)s.memory_limit,
            (unsigned long long)(stats.weights_peak + stats.chunks_peak),
            (unsigned long long)stats.state_peak);
    }
    return cli_session_close(&s, status);
}

static const char *const examples[] = {
    "openinfer run minimal.oi --model minimal.oinf --set x=0.5 --fetch y",
    "one step, every element of x is 0.5, y is printed",
    "openinfer run decode.oi --model m.oinf --steps 8 --set tok=@tokens/{step}.npy --out build",
    "eight steps with an input file each; what entry returns also goes to build/NAME.STEP.npy",
    "openinfer run minimal.oi --model minimal.oinf --json",
    "the values for a program to read: {\"steps\": [{\"step\": 0, \"values\": [...]}]}",
    "openinfer run decode.oi --model m.oinf --trace trace.json --trace-format chrome",
    "a trace for Perfetto",
    NULL,
};

const cli_command CMD_run = {
    .description =
        "Simulates a graph: checks it against its model, runs it step by step and prints what it "
        "gives, in the style of `openinfer inspect`. Inputs are given with --set; one that is not "
        "set is random (floats) or zero, which is said on stderr. Persistent memory lasts from "
        "step to step. A step that fails changes nothing persistent and ends the run.\n\n"
        "GRAPH is FILE.oi, FILE.json, or MODEL.oinf when the package embeds a graph; then it is "
        "also the model. Files are .npy; element types that numpy lacks (f8, bf16, packed ones) "
        "travel as their stored bytes, described by a .json file beside them.",
    .examples = examples,
    .options = options,
    .run = run,
};
