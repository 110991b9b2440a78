/* run.c: `openinfer run`. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static cli_session s;
static uint64_t steps = 1;
static const char *fetch, *out_dir, *trace_path, *trace_format, *nodes;
static oi_trace_options trace;
static bool as_json, explains_memory;
static size_t n_shown; /* values of this step so far */

static const cli_option options[] = {
    SESSION_OPTIONS(s),
    OPT_COUNT("steps", 0, "N", &steps, "how many steps (default: 1)"),
    OPT_TEXT("fetch", 0, "a,b", &fetch,
             "print these variables after each step (default: what entry returns)"),
    OPT_CHOICE("nodes", 0, "needed|all", &nodes,
               "needed: skip what neither --fetch nor persistent memory depends on (default with "
               "--fetch, unless the run is traced or its nodes are logged)"),
    OPT_TEXT("out", 0, "DIR", &out_dir, "also write them to DIR/NAME.npy"),
    OPT_TEXT("trace", 0, "FILE", &trace_path, "write what ran, node by node"),
    OPT_CHOICE("trace-format", 0, "json|chrome", &trace_format,
               "chrome: for chrome://tracing and Perfetto (default: json)"),
    OPT_FLAG("trace-values", 0, &s.options.trace_values, "with statistics of what was written"),
    OPT_FLAG("trace-ext", 0, &trace.ext,
             "with op, step, iteration, thread, start time, shape and dtype"),
    OPT_FLAG("timer", 0, &s.options.timer, "measure the nodes; without --trace, log them"),
    OPT_FLAG(
        "explain-memory", 0, &explains_memory,
        "say in the end who held memory: tensors, chunks, values, scratch and persistent memory"),
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

/* fn for every name of --fetch. */
static oi_status each_fetched(oi_status (*fn)(const char *name))
{
    for (const char *at = fetch; *at;) {
        size_t n = name_length(at);
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        oi_status status = fn(name);
        if (status != OI_OK)
            return status;
        at += n + (at[n] == ',');
    }
    return OI_OK;
}

static oi_status show_fetched(const char *name)
{
    oi_view v;
    oi_status status = oi_fetch(s.exec, name, &v, s.diag);
    return status == OI_OK ? show(name, &v) : status;
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
    oi_status status = fetch ? each_fetched(show_fetched) : show_returned();
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

/* -- what runs -- */

static const char **wanted; /* names of --fetch */
static size_t n_wanted;

static oi_status add_wanted(const char *name)
{
    const char **more = realloc(wanted, (n_wanted + 1) * sizeof *wanted);
    char *copy = more ? malloc(strlen(name) + 1) : NULL;
    wanted = more ? more : wanted;
    if (!copy)
        return cli_fail(OI_ERR_ENV, "out of memory");
    wanted[n_wanted++] = strcpy(copy, name);
    return OI_OK;
}

/* Steps are asked for what is fetched, unless all that runs is looked at. */
static oi_status choose_nodes(bool logs)
{
    const bool looks = trace_path || logs || s.options.trace;
    if (!fetch && nodes && !strcmp(nodes, "needed"))
        return cli_usage_error("--nodes needed: say what is needed with --fetch");
    if (!fetch || (nodes ? !strcmp(nodes, "all") : looks))
        return OI_OK;
    oi_status status = each_fetched(add_wanted);
    if (status == OI_OK)
        status = oi_exec_want(s.exec, wanted, n_wanted, s.diag);
    for (size_t i = 0; i < n_wanted; i++)
        free((void *)wanted[i]);
    free(wanted);
    return status;
}

static oi_status run_steps(void)
{
    bool logs = s.options.timer && !trace_path;
    oi_status chosen = choose_nodes(logs);
    if (chosen != OI_OK)
        return chosen;
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

/* -- memory -- */

static void print_row(const oi_memory_row *r)
{
    printf("%-8s %14llu  %s", oi_memory_kind_name(r->kind), (unsigned long long)r->bytes, r->name);
    if (r->kind == OI_MEMORY_CHUNK)
        printf(", %llu bytes in %llu parts", (unsigned long long)r->of,
               (unsigned long long)r->parts);
    if (r->line)
        printf(" at %u:%u", r->line, r->col);
    printf("\n");
}

static void print_row_json(const oi_memory_row *r, bool first)
{
    printf("%s\n    {\"kind\": \"%s\", \"name\": ", first ? "" : ",", oi_memory_kind_name(r->kind));
    cli_json_text(stdout, r->name);
    printf(", \"bytes\": %llu", (unsigned long long)r->bytes);
    if (r->kind == OI_MEMORY_CHUNK)
        printf(", \"of\": %llu, \"parts\": %llu", (unsigned long long)r->of,
               (unsigned long long)r->parts);
    if (r->line)
        printf(", \"line\": %u, \"col\": %u", r->line, r->col);
    printf("}");
}

static oi_status explain_memory(void)
{
    oi_memory_row *rows = NULL;
    size_t n = 0;
    oi_sim_stats stats;
    oi_status status = oi_memory_rows(s.exec, &rows, &n, s.diag);
    if (status != OI_OK)
        return status;
    oi_sim_get_stats(s.sim, &stats);
    const unsigned long long total = stats.total_peak, limit = s.memory_limit;
    if (as_json)
        printf(",\n  \"memory\": {\"most\": %llu, \"limit\": %llu, \"held\": [", total, limit);
    else
        printf("\n%-8s %14s  held by\n", "memory", "bytes");
    for (size_t i = 0; i < n; i++)
        if (as_json)
            print_row_json(&rows[i], i == 0);
        else
            print_row(&rows[i]);
    if (as_json)
        fputs("]}", stdout);
    else if (limit)
        printf("%-8s %14llu  most at one time, of %llu\n", "total", total, limit);
    else
        printf("%-8s %14llu  most at one time\n", "total", total);
    oi_free(rows);
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
    s.options.timer |= s.options.trace && !s.deterministic;
    oi_status status = make_folder();
    if (status == OI_OK)
        status = cli_session_open(&s, args.at[0]);
    if (status == OI_OK) {
        fputs(as_json ? "{\"steps\": [" : "", stdout);
        status = run_steps();
        fputs(as_json ? "\n]" : "", stdout); /* whole also when a step failed */
        if (explains_memory) {
            oi_status told = explain_memory();
            status = status == OI_OK ? told : status;
        }
        fputs(as_json ? "}\n" : "", stdout);
    }
    if (s.exec && trace_path) { /* also of a run that failed: that is when it is wanted */
        oi_status written = write_trace();
        status = status == OI_OK ? written : status;
    }
    if (s.sim && s.memory_limit && !explains_memory) {
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
    "openinfer run net.oi --model m.oinf --fetch h --nodes needed --trace trace.json",
    "only what h and persistent memory depend on runs; the trace marks what is skipped",
    "openinfer run decode.oi --model m.oinf --memory-limit 64M --explain-memory",
    "tensors that do not fit are streamed; a table says who held what",
    "openinfer run decode.oi --model m.oinf --trace trace.json --trace-format chrome",
    "a trace for Perfetto",
    NULL,
};

const cli_command CMD_run = {
    .description =
        "Simulates a graph: checks it against its model, runs it step by step and prints what it "
        "gives, in the style of `openinfer inspect`. Inputs are given with --set; one that is not "
        "set is random (floats) or zero, which is said on stderr. Persistent memory lasts from "
        "step to step. A step that fails changes nothing persistent and ends the run. With "
        "--fetch, "
        "nodes that neither the fetched values nor persistent memory depend on are skipped, and so "
        "are their errors.\n\n"
        "GRAPH is FILE.oi, FILE.json, or MODEL.oinf when the package embeds a graph; then it is "
        "also the model. Files are .npy; element types that numpy lacks (f8, bf16, packed ones) "
        "travel as their stored bytes, described by a .json file beside them.",
    .examples = examples,
    .options = options,
    .run = run,
};
