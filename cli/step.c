/* step.c: `openinfer step`: a graph node by node, at a prompt. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cli_session s;

static const cli_option options[] = {
    SESSION_OPTIONS(s),
    OPT_END,
};

#define MAX_STOPS 64 /* breakpoints, and watched variables: more are not looked at by anyone */

static char *stops[MAX_STOPS], *watched[MAX_STOPS];
static size_t n_stops, n_watched;
static bool begun; /* inputs of the current step are in */

/* -- what is shown -- */

static void show_event(const char *mark, const oi_event *e)
{
    printf("%s %llu [%s]", mark, (unsigned long long)e->node_index, e->block_name);
    if (e->line)
        printf(" %u:%u", e->line, e->col);
    printf(" ");
    cli_describe(stdout, e);
    printf("\n");
}

static void show_next(void)
{
    oi_event e;
    if (oi_peek(s.exec, &e))
        show_event("->", &e);
}

static void show(const char *name)
{
    oi_view v;
    if (oi_fetch(s.exec, name, &v, s.diag) == OI_OK)
        (void)oi_view_print(stdout, name, &v); /* what is wrong with stdout shows at exit */
    cli_report(s.diag);
    oi_diag_clear(s.diag);
}

static bool writes(const oi_event *e, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < e->n_output; i++)
        if (!strncmp(e->output[i], name, n) && (!e->output[i][n] || e->output[i][n] == '['))
            return true;
    return false;
}

/* -- running -- */

static void report(void)
{
    cli_report(s.diag);
    oi_diag_clear(s.diag);
}

/* Inputs go in when a step begins. */
static bool feed(void)
{
    if (begun)
        return true;
    begun = cli_session_feed(&s) == OI_OK;
    report();
    return begun;
}

/* One node; false when the step has ended or failed. */
static bool advance(oi_event *e)
{
    bool ran = feed() && oi_next(s.exec, e, s.diag);
    if (ran) {
        for (size_t i = 0; i < n_watched; i++)
            if (writes(e, watched[i]))
                show(watched[i]);
        return true;
    }
    report();
    if (begun && e->status == OI_OK)
        printf("step %llu is done\n", (unsigned long long)s.step);
    else if (begun)
        printf("step %llu failed; persistent memory is as it was before\n",
               (unsigned long long)s.step);
    s.step += begun && e->status == OI_OK;
    begun = false;
    return false;
}

/* A breakpoint: an op, a kind of node, a block, or a line. */
static bool stops_at(const oi_event *e)
{
    char line[16];
    snprintf(line, sizeof line, "%u", e->line);
    for (size_t i = 0; i < n_stops; i++)
        if (!strcmp(stops[i], e->op) || !strcmp(stops[i], e->kind) ||
            !strcmp(stops[i], e->block_name) || (e->line && !strcmp(stops[i], line)))
            return true;
    return false;
}

static void next_nodes(const char *count)
{
    oi_event e;
    unsigned long n = count ? strtoul(count, NULL, 10) : 1;
    for (unsigned long i = 0; i < n && advance(&e); i++)
        show_event("  ", &e);
    show_next();
}

/* To the next breakpoint, or to the end of the step. */
static void run_on(void)
{
    oi_event e, next;
    while (advance(&e)) {
        if (!oi_peek(s.exec, &next) || !stops_at(&next))
            continue;
        printf("stopped\n");
        return;
    }
}

/* -- commands -- */

static void add(char **list, size_t *n, const char *word)
{
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(list[i], word))
            return;
    char *copy = *n < MAX_STOPS ? malloc(strlen(word) + 1) : NULL;
    if (!copy) {
        printf("no room for more\n");
        return;
    }
    list[(*n)++] = strcpy(copy, word);
}

static void list_all(const char *what, char **list, size_t n)
{
    if (n == 0)
        printf("no %s\n", what);
    for (size_t i = 0; i < n; i++)
        printf("%s %s\n", what, list[i]);
}

static void do_break(const char *word)
{
    if (word)
        add(stops, &n_stops, word);
    else
        list_all("break", stops, n_stops);
}

static void do_watch(const char *word)
{
    if (word)
        add(watched, &n_watched, word);
    else
        list_all("watch", watched, n_watched);
}

static void do_next(const char *word)
{
    next_nodes(word);
}

static void do_run(const char *word)
{
    (void)word;
    run_on();
    show_next();
}

static void do_print(const char *word)
{
    oi_var_info var;
    if (word) {
        show(word);
        return;
    }
    for (size_t i = 0; oi_sim_var(s.sim, i, &var); i++)
        if (!var.is_prefix)
            show(var.name);
}

static void do_where(const char *word)
{
    (void)word;
    printf("step %llu\n", (unsigned long long)s.step);
    show_next();
}

static void do_trace(const char *path)
{
    char *text = NULL;
    oi_trace_options o = {.deterministic = s.deterministic};
    if (oi_trace_json(s.exec, &o, &text, s.diag) == OI_OK)
        (void)cli_write(path, text); /* what went wrong has been said */
    oi_free(text);
    report();
}

static void do_help(const char *word);

static const struct {
    const char *name, *arg, *doc;
    void (*fn)(const char *word);
} rows[] = {
    {"next", "[N]", "run the next node, or N of them", do_next},
    {"run", "", "run to a breakpoint or to the end of the step", do_run},
    {"print", "[X]", "show a variable or a loop index; without X all variables", do_print},
    {"break", "[WHAT]", "stop before an op, a kind of node, a block or a line", do_break},
    {"watch", "[X]", "show a variable whenever a node writes it", do_watch},
    {"where", "", "the step and the node that comes next", do_where},
    {"trace", "[FILE]", "what has run, as JSON", do_trace},
    {"help", "", "this list", do_help},
    {"quit", "", "leave", NULL},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static void do_help(const char *word)
{
    (void)word;
    for (size_t i = 0; i < N_ROWS; i++)
        printf("%-6s %-7s %s\n", rows[i].name, rows[i].arg, rows[i].doc);
}

static void unknown(const char *word)
{
    const char *names[N_ROWS];
    for (size_t i = 0; i < N_ROWS; i++)
        names[i] = rows[i].name;
    const char *near = oi_did_you_mean(word, names, N_ROWS);
    if (near)
        printf("unknown command '%s': did you mean '%s'?\n", word, near);
    else
        printf("unknown command '%s': try help\n", word);
}

/* False when it was time to leave. A command may be cut down to its first letters. */
static bool obey(char *line)
{
    char *word = strtok(line, " \t\r\n"), *arg = strtok(NULL, " \t\r\n");
    if (!word)
        return true;
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strncmp(rows[i].name, word, strlen(word)) != 0)
            continue;
        if (rows[i].fn)
            rows[i].fn(arg);
        return rows[i].fn != NULL;
    }
    unknown(word);
    return true;
}

static void prompt(void)
{
    if (!isatty(STDIN_FILENO))
        return;
    printf("(openinfer) ");
    cli_flush();
}

static void release(void)
{
    for (size_t i = 0; i < n_stops; i++)
        free(stops[i]);
    for (size_t i = 0; i < n_watched; i++)
        free(watched[i]);
}

static oi_status run(cli_args args)
{
    char line[512];
    s.options.trace = true;
    s.options.timer = !s.deterministic;
    oi_status status = cli_session_open(&s, args.at[0]);
    if (status == OI_OK) {
        show_next();
        prompt();
        while (fgets(line, sizeof line, stdin) && obey(line))
            prompt();
    }
    release();
    return cli_session_close(&s, status);
}

static const char *const examples[] = {
    "openinfer step minimal.oi --model minimal.oinf --set x=1",
    "a prompt: next, print y, break mul, run …; help lists everything",
    "printf 'break mul\\nrun\\nprint t0\\nquit\\n' | openinfer step minimal.oi --model "
    "minimal.oinf",
    "the same from a script",
    NULL,
};

const cli_command CMD_step = {
    .description =
        "Simulates a graph node by node. The prompt shows the node that comes next; `next` runs "
        "it, `print x` shows a variable as it is now, `break matmul` or `break 12` stops before an "
        "op or a line, `watch x` shows x whenever it is written, `run` goes on to the next stop or "
        "the end of the step, `trace` prints what has run. After the end of a step, `next` and "
        "`run` begin another one.\n\n"
        "Commands may also come from a pipe.",
    .examples = examples,
    .options = options,
    .run = run,
};
