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
/* Calls fn for each of the alternatives in "a|b|c". */
void cli_each_choice(const char *choices, void (*fn)(void *ctx, const char *word, size_t n),
                     void *ctx);

/* -- output.c -- */

/* One line on stderr, "openinfer inspect: …", and where to read more. Returns OI_ERR_USAGE. */
oi_status cli_usage_error(const char *fmt, ...) CLI_PRINTF(1, 2);
/* One line on stderr; returns the status it is given. */
oi_status cli_fail(oi_status status, const char *fmt, ...) CLI_PRINTF(2, 3);
void cli_note(const char *fmt, ...) CLI_PRINTF(1, 2); /* progress, on stderr */
void cli_set_name(const char *command);               /* used by the three above */
bool cli_set_color(const char *when);                 /* auto, always, never */
bool cli_color(FILE *to);                             /* may this stream be coloured? */
void cli_report(const oi_diag *d);                    /* diagnostics to stderr */
/* Prints the diagnostics, releases them, and returns the status: `return cli_done(status, d);` */
oi_status cli_done(oi_status status, oi_diag *d);
/* Text to a file (all or nothing) or, when path is NULL or "-", to stdout. */
oi_status cli_write(const char *path, const char *text);
oi_status cli_write_bytes(const char *path, const void *data, size_t n);
/* What is wrong with stdout ends here: a full disk must not look like success. */
int cli_exit(oi_status status);

/* -- help.c -------------------------------------------------------------------------------------
 */

void cli_help(FILE *to); /* the command list */
void cli_help_command(FILE *to, const cli_entry *entry);

/* Every CMD_NAME that commands.h names. */
#define COMMAND(name, args, summary) extern const cli_command CMD_##name;
#include "commands.h"
#undef COMMAND

#endif
