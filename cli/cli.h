/* cli.h: what the files of the `openinfer` command share. They call only openinfer.h.
 *
 * A command is one file cli/NAME.c that defines `const cli_command CMD_NAME`, and one row in
 * commands.h. Its options are data: parsing, --help, man pages and shell completion all read the
 * same rows. */
#ifndef CLI_H
#define CLI_H

#include "openinfer.h"

#define CLI_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* -- options.c: the words after the command -- */

typedef enum cli_kind {
    CLI_FLAG,   /* --json */
    CLI_TEXT,   /* --model FILE; the last one given wins */
    CLI_LIST,   /* --set NAME=VALUE, may be repeated */
    CLI_CHOICE, /* --to json|text|dot: the argument's name lists what is accepted */
    CLI_SIZE,   /* --memory-limit 64M: bytes, with K M G T as powers of 1024 */
    CLI_COUNT   /* --steps N: a whole number */
} cli_kind;

/* Values of a repeated option, in the order given; the texts belong to the command line. */
typedef struct cli_list {
    const char **at;
    size_t n;
} cli_list;

typedef struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* 'o' for -o, or 0 */
    const char *arg;  /* "FILE"; NULL for a flag */
    const char *doc;  /* one line, no full stop */
    cli_kind kind;
    bool hidden; /* works, but help and completion do not show it */
    union {
        bool *flag;
        const char **text; /* also CLI_CHOICE */
        cli_list *list;
        uint64_t *number; /* CLI_SIZE and CLI_COUNT */
    };
} cli_option;

/* The rows of an option table, e.g. OPT_TEXT("output", 'o', "FILE", &output, "write there"). */
#define OPT_FLAG(name, letter, target, doc)       \
    {                                             \
        name, letter, NULL, doc, CLI_FLAG, false, \
        {                                         \
            .flag = target                        \
        }                                         \
    }
#define OPT_HIDDEN(name, target, doc)       \
    {                                       \
        name, 0, NULL, doc, CLI_FLAG, true, \
        {                                   \
            .flag = target                  \
        }                                   \
    }
#define OPT_TEXT(name, letter, arg, target, doc) \
    {                                            \
        name, letter, arg, doc, CLI_TEXT, false, \
        {                                        \
            .text = target                       \
        }                                        \
    }
#define OPT_CHOICE(name, letter, arg, target, doc) \
    {                                              \
        name, letter, arg, doc, CLI_CHOICE, false, \
        {                                          \
            .text = target                         \
        }                                          \
    }
#define OPT_LIST(name, letter, arg, target, doc) \
    {                                            \
        name, letter, arg, doc, CLI_LIST, false, \
        {                                        \
            .list = target                       \
        }                                        \
    }
#define OPT_SIZE(name, letter, arg, target, doc) \
    {                                            \
        name, letter, arg, doc, CLI_SIZE, false, \
        {                                        \
            .number = target                     \
        }                                        \
    }
#define OPT_COUNT(name, letter, arg, target, doc) \
    {                                             \
        name, letter, arg, doc, CLI_COUNT, false, \
        {                                         \
            .number = target                      \
        }                                         \
    }
#define OPT_END \
    {           \
        0       \
    }

typedef struct cli_args {
    const char **at;
    size_t n;
} cli_args;

typedef struct cli_command {
    const char *description;         /* plain paragraphs for --help and the man page */
    const char *const *examples;     /* command lines, each followed by what it does; NULL-ended */
    const cli_option *options;       /* ends with OPT_END; NULL when there are none */
    oi_status (*run)(cli_args args); /* the words that are not options, already counted */
} cli_command;

/* A row of commands.h with the command it names. The number of words a command takes follows from
 * `args`: "GRAPH [NAME] MORE..." takes one or more; a|b|c lists the accepted words. */
typedef struct cli_entry {
    const char *name, *args, *summary;
    const cli_command *command;
} cli_entry;

extern const cli_entry cli_entries[]; /* main.c */
extern const size_t cli_n_entries;
extern const cli_option cli_global_options[]; /* --color and --help, for every command */

const cli_entry *cli_entry_find(const char *name); /* NULL when unknown */
oi_status cli_entry_unknown(const char *name);     /* says so, with the nearest name */
/* Fills the options' targets and collects the other words; *help when --help was among them. */
oi_status cli_parse(const cli_entry *entry, int argc, char **argv, cli_args *out, bool *help);
bool cli_parse_size(const char *text, uint64_t *out);
/* Names of the synthesizer's passes, checked and NULL-ended. */
#define CLI_MAX_PASSES 16
oi_status cli_passes(const cli_list *names, const char **out);
/* Calls fn for each of the alternatives in "a|b|c". */
void cli_each_choice(const char *choices, void (*fn)(void *ctx, const char *word, size_t n),
                     void *ctx);

/* -- output.c -- */

/* One line on stderr, "openinfer inspect: …", and where to read more. Returns OI_ERR_USAGE. */
oi_status cli_usage_error(const char *fmt, ...) CLI_PRINTF(1, 2);
/* One line on stderr; returns the status it is given. */
oi_status cli_fail(oi_status status, const char *fmt, ...) CLI_PRINTF(2, 3);
void cli_note(const char *fmt, ...) CLI_PRINTF(1, 2); /* progress, on stderr */
/* How many ops a device's default_precision has changed, when there are any. */
void cli_note_lowered(uint64_t n, oi_dtype precision, const char *device);
void cli_set_name(const char *command); /* used by those above */
bool cli_set_color(const char *when);   /* auto, always, never */
bool cli_color(FILE *to);               /* may this stream be coloured? */
void cli_report(const oi_diag *d);      /* diagnostics to stderr */
/* Prints the diagnostics, releases them, and returns the status: `return cli_done(status, d);` */
oi_status cli_done(oi_status status, oi_diag *d);
/* Of two results the one that counts: the greater exit code. */
oi_status cli_worse(oi_status a, oi_status b);
/* A text in quotes, and a number: one that JSON lacks becomes "inf", "-inf" or "nan". */
void cli_json_text(FILE *to, const char *text);
void cli_json_number(FILE *to, double v);
/* Text to a file (all or nothing) or, when path is NULL or "-", to stdout. */
oi_status cli_write(const char *path, const char *text);
oi_status cli_write_bytes(const char *path, const void *data, size_t n);
/* stdout to where it goes; why that fails is kept for cli_exit. */
void cli_flush(void);
/* What is wrong with stdout ends here: a full disk must not look like success. */
int cli_exit(oi_status status);
/* A file of numbers to read from; NULL with a message. Pipes are refused: such files are read in
 * pieces that lie anywhere. */
FILE *cli_open(const char *path);

/* -- help.c -------------------------------------------------------------------------------------
 */

void cli_help(FILE *to); /* the command list */
void cli_help_command(FILE *to, const cli_entry *entry);
void cli_wrap(FILE *to, const char *text); /* a paragraph, broken into lines */

/* -- npy.c, values.c: tensors in files and on the command line -- */

#define CLI_MAX_RANK 32 /* of what a file may hold; variables have fewer dims */

typedef struct cli_array {
    oi_view view; /* of what follows */
    uint64_t dims[CLI_MAX_RANK];
    void *data;
    bool by_columns; /* how the file had it; `data` is in row order */
} cli_array;

void cli_array_free(cli_array *a);
oi_status cli_npy_read(const char *path, cli_array *out);
/* The same, where stored bytes of a type that numpy lacks become elements of the variable. */
oi_status cli_npy_read_as(const char *path, const oi_var_info *var, cli_array *out);
oi_status cli_npy_write(const char *path, const oi_view *v);
/* One inside a larger file: `size` bytes from `start`, called `name` in messages. */
oi_status cli_npy_read_from(const char *path, const char *name, FILE *from, uint64_t start,
                            uint64_t size, cli_array *out);
/* What `--set NAME=TEXT` means for a variable in a step. */
oi_status cli_value(const oi_var_info *var, const char *text, uint64_t step, cli_array *out);

/* -- npz.c -- */

typedef struct cli_npz_member cli_npz_member;
typedef struct cli_npz {
    const char *path; /* the caller's */
    FILE *from;
    uint64_t size;
    cli_npz_member *members;
    size_t n;
} cli_npz;

oi_status cli_npz_open(const char *path, cli_npz *out); /* close it also after a failure */
void cli_npz_close(cli_npz *z);
const char *cli_npz_name(const cli_npz *z, size_t i); /* NULL past the end */
oi_status cli_npz_read(const cli_npz *z, size_t i, cli_array *out);

/* -- run.c -- */

void cli_describe(FILE *to, const oi_event *e);  /* "OpExecute add(x, a) >> t0" */
void cli_log_event(FILE *to, const oi_event *e); /* "1 UUID [entry] -- … -- (0ms 31us 788ns)" */

/* -- source.c: what commands read -- */

bool cli_is_stdin(const char *path);         /* "-" */
const char *cli_path_name(const char *path); /* as messages show it: "<stdin>" for "-" */
oi_status cli_stdin(char **out, size_t *n);  /* all of it, NUL-terminated; free it */
/* --model, else the package that the graphs come from; *out stays NULL when there is none. */
oi_status cli_model_open(const char *named, const char *const *graphs, size_t n, oi_model **out,
                         oi_diag *diag);

/* What --size says; free it also after a failure. */
typedef struct cli_sizes {
    oi_size *at;
    size_t n;
    char *names;
} cli_sizes;
oi_status cli_sizes_read(const cli_list *list, cli_sizes *out);
void cli_sizes_free(cli_sizes *s);

/* FILE.oi, FILE.json, MODEL.oinf, MODEL.oinf#NAME, or - for text or JSON on standard input. Text in
 * the compact form takes its shapes from the model (NULL: none) and the sizes. */
oi_status cli_graph_read(const char *path, oi_model *model, const cli_sizes *sizes, oi_graph **out,
                         oi_diag *diag);

#define OPT_MODEL(target) OPT_TEXT("model", 0, "MODEL.oinf", target, "the model package")
#define OPT_SIZES(target) \
    OPT_LIST("size", 0, "NAME=N", target, "give a size of the model another value")

/* -- session.c: a graph that is being simulated -- */

typedef struct cli_session {
    const char *model_path, *device, *target;
    cli_list sets, sizes;
    cli_sizes given; /* what sizes say */
    uint64_t threads, memory_limit, max_nodes;
    bool strict, deterministic;
    oi_sim_options options; /* set trace and timer before opening */
    oi_graph *graph;
    oi_model *model;
    oi_sim *sim;
    oi_exec *exec;
    oi_diag *diag;
    uint64_t step; /* the one that is fed next */
    /* Where else a value may come from when --set gives none: OI_NOT_FOUND when nowhere. */
    oi_status (*find_value)(const oi_var_info *var, uint64_t step, cli_array *out);
} cli_session;

/* The options that every command with a session takes. */
#define SESSION_OPTIONS(s)                                                                         \
    OPT_MODEL(&(s).model_path),                                                                    \
        OPT_LIST("set", 0, "NAME=VALUE", &(s).sets,                                                \
                 "an input: FILE.npy, 1,2,3, 0.5, zeros, random:SEED:LO:HI, @DIR/{step}.npy"),     \
        OPT_SIZES(&(s).sizes),                                                                     \
        OPT_TEXT("device", 0, "D", &(s).device,                                                    \
                 "cpu (default), cpu:scalar, cpu:avx, cpu:avx2, cpu:avx512, vulkan or vulkan:N"),  \
        OPT_TEXT("target", 0, "DEVICE", &(s).target,                                               \
                 "as a program for this device profile or FILE.json computes: its "                \
                 "default_precision"),                                                             \
        OPT_COUNT("threads", 0, "N", &(s).threads, "worker threads; results do not depend on it"), \
        OPT_SIZE("memory-limit", 0, "SIZE", &(s).memory_limit,                                     \
                 "most bytes of tensors, values and persistent memory together, e.g. 64M"),        \
        OPT_COUNT("max-nodes", 0, "N", &(s).max_nodes,                                             \
                  "fail when more nodes than this would run, over all steps; default: no limit"),  \
        OPT_FLAG("deterministic", 0, &(s).deterministic,                                           \
                 "derive the node uuids and write times as 0, so that traces repeat"),             \
        OPT_FLAG("strict", 0, &(s).strict,                                                         \
                 "strict mode: a missing input and some warnings are errors")

oi_status cli_session_open(cli_session *s, const char *graph);
oi_status cli_session_feed(cli_session *s); /* the values for step s->step */
/* Prints what is left of the diagnostics and ends everything: `return cli_session_close(&s, …);` */
oi_status cli_session_close(cli_session *s, oi_status status);

/* -- job.c: what is synthesized -- */

#define CLI_MAX_GRAPHS 255 /* as many as oi_verify takes */

typedef struct cli_job {
    oi_diag *diag;
    oi_model *model;   /* NULL when none is named and no graph comes from a package */
    oi_device *device; /* likewise */
    oi_synth_graph graphs[CLI_MAX_GRAPHS];
    oi_graph *loaded[CLI_MAX_GRAPHS];
    char names[CLI_MAX_GRAPHS][64]; /* the files' */
    size_t n;
    cli_sizes sizes;
} cli_job;

oi_status cli_job_open(cli_job *j, cli_args graphs, const char *model, const cli_list *sizes,
                       const char *target);
/* Prints the diagnostics and ends everything: `return cli_job_close(&j, status);` */
oi_status cli_job_close(cli_job *j, oi_status status);

/* Values for a program's inputs: what --set gives, else random floats, and zeros. */
typedef struct cli_inputs {
    cli_list sets;
    bool are_steady;    /* the same in every step */
    bool is_used[1024]; /* by --set: some graph has that input */
    char told[32][64];  /* inputs without a value that were named already */
} cli_inputs;

oi_status cli_inputs_fill(void *inputs, const oi_var_info *var, uint64_t step, void *data,
                          uint64_t size, oi_diag *d); /* for oi_verify_options.fill */
oi_status cli_inputs_check(const cli_inputs *in);     /* after the run: nothing given in vain */
const char *cli_given(const cli_list *sets, const char *name); /* the last one wins; or NULL */
bool cli_is_float(oi_dtype t);

/* Every CMD_NAME that commands.h names. */
#define COMMAND(name, args, summary) extern const cli_command CMD_##name;
#include "commands.h"
#undef COMMAND

#endif
