/* help.c: `openinfer help`, --help and the man pages, all from the command and option tables. */
#include "cli.h"

#include <string.h>

#define LINE 78 /* columns of help text */

static const char *const exit_codes[] = {
    "0",  "everything went well",
    "1",  "the input is wrong, or a comparison failed",
    "2",  "the command line is wrong",
    "3",  "the surroundings: a missing file, compiler or device, a full disk",
    NULL,
};

/* Words of text from column `at`, broken at LINE, further lines indented. */
static void wrap(FILE *to, const char *text, int at, int indent)
{
    while (*text) {
        int n = (int)strcspn(text, " \n");
        if (at > indent && at + 1 + n > LINE) {
            fprintf(to, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', to);
            at++;
        }
        fprintf(to, "%.*s", n, text);
        at += n;
        text += n;
        if (*text == '\n') {
            fprintf(to, "\n%*s", indent, "");
            at = indent;
            text++;
        } else {
            text += strspn(text, " ");
        }
    }
    fputc('\n', to);
}

void cli_wrap(FILE *to, const char *text)
{
    wrap(to, text, 0, 0);
}

/* -- --help -- */

static void row(FILE *to, const char *left, const char *right)
{
    enum { LEFT = 26 };
    int n = fprintf(to, "  %s", left);
    if (n + 2 > LEFT)
        fprintf(to, "\n%*s", LEFT, "");
    else
        fprintf(to, "%*s", LEFT - n, "");
    wrap(to, right, LEFT, LEFT);
}

static void option_spelling(const cli_option *o, char *out, size_t room)
{
    char letter[8] = "    ";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(out, room, "%s--%s%s%s", letter, o->name, o->arg ? " " : "", o->arg ? o->arg : "");
}

static void option_rows(FILE *to, const cli_option *o)
{
    char left[128];
    for (; o && o->name; o++) {
        if (o->hidden)
            continue;
        option_spelling(o, left, sizeof left);
        char doc[512];
        snprintf(doc, sizeof doc, "%s%s", o->doc, o->kind == CLI_LIST ? " (may be repeated)" : "");
        row(to, left, doc);
    }
}

void cli_help(FILE *to)
{
    fputs("usage: openinfer COMMAND [OPTION]... [ARGUMENT]...\n\n"
          "Small explicit inference programs over one model file.\n\ncommands:\n",
          to);
    for (size_t i = 0; i < cli_n_entries; i++)
        row(to, cli_entries[i].name, cli_entries[i].summary);
    fputs("\nopeninfer COMMAND --help explains a command; -V is version.\n", to);
}

void cli_help_command(FILE *to, const cli_entry *entry)
{
    const cli_command *c = entry->command;
    fprintf(to, "usage: openinfer %s [OPTION]...%s%s\n\n", entry->name, entry->args[0] ? " " : "",
            entry->args);
    wrap(to, c->description, 0, 0);
    fputs("\noptions:\n", to);
    option_rows(to, c->options);
    option_rows(to, cli_global_options);
    if (c->examples) {
        fputs("\nexamples:\n", to);
        for (const char *const *e = c->examples; *e; e += 2)
            fprintf(to, "  %s\n      %s\n", e[0], e[1]);
    }
    fputs("\nexit code:\n", to);
    for (const char *const *e = exit_codes; *e; e += 2)
        fprintf(to, "  %s  %s\n", e[0], e[1]);
}

/* -- man pages -- */

/* Text for roff: '-' is a real minus, a leading '.' or quote is not a request. */
static void roff(FILE *to, const char *text)
{
    bool at_start = true;
    for (const char *c = text; *c; c++) {
        if (at_start && (*c == '.' || *c == '\''))
            fputs("\\&", to);
        if (*c == '-' || *c == '\\')
            fputs(*c == '-' ? "\\-" : "\\e", to);
        else if (*c == '\n')
            fputs("\n.PP\n", to);
        else
            fputc(*c, to);
        at_start = *c == '\n';
    }
    fputc('\n', to);
}

static void roff_row(FILE *to, const char *left, const char *right)
{
    fputs(".TP\n.B ", to);
    roff(to, left);
    roff(to, right);
}

static void roff_options(FILE *to, const cli_option *o)
{
    char left[128];
    for (; o && o->name; o++) {
        if (o->hidden)
            continue;
        option_spelling(o, left, sizeof left);
        roff_row(to, left + strspn(left, " "), o->doc);
    }
}

static void roff_exit_codes(FILE *to)
{
    fputs(".SH EXIT STATUS\n", to);
    for (const char *const *e = exit_codes; *e; e += 2)
        roff_row(to, e[0], e[1]);
}

static void man_command(FILE *to, const cli_entry *entry)
{
    const cli_command *c = entry->command;
    fprintf(to, ".TH \"OPENINFER\\-%s\" 1 \"\" \"openinfer %s\"\n.SH NAME\nopeninfer\\-%s \\- ",
            entry->name, oi_version(), entry->name);
    roff(to, entry->summary);
    fprintf(to, ".SH SYNOPSIS\n.B openinfer %s\n[OPTION]...\n", entry->name);
    roff(to, entry->args);
    fputs(".SH DESCRIPTION\n", to);
    roff(to, c->description);
    fputs(".SH OPTIONS\n", to);
    roff_options(to, c->options);
    roff_options(to, cli_global_options);
    if (c->examples) {
        fputs(".SH EXAMPLES\n", to);
        for (const char *const *e = c->examples; *e; e += 2)
            roff_row(to, e[0], e[1]);
    }
    roff_exit_codes(to);
    fputs(".SH SEE ALSO\n.BR openinfer (1)\n", to);
}

static void man_main(FILE *to)
{
    fprintf(to,
            ".TH OPENINFER 1 \"\" \"openinfer %s\"\n.SH NAME\nopeninfer \\- small explicit "
            "inference programs over one model file\n.SH SYNOPSIS\n.B openinfer\nCOMMAND "
            "[OPTION]... [ARGUMENT]...\n.SH COMMANDS\n",
            oi_version());
    for (size_t i = 0; i < cli_n_entries; i++)
        roff_row(to, cli_entries[i].name, cli_entries[i].summary);
    fputs(".SH OPTIONS\n", to);
    roff_row(to, "-h, --help", "list the commands");
    roff_row(to, "-V", "the same as openinfer version");
    roff_row(to, "--version", "print one line: the name and the version");
    roff_exit_codes(to);
    fputs(".SH ENVIRONMENT\n", to);
    roff_row(to, "NO_COLOR", "when set and not empty, diagnostics are not coloured");
    fputs(".SH SEE ALSO\n", to);
    for (size_t i = 0; i < cli_n_entries; i++)
        fprintf(to, ".BR openinfer\\-%s (1)%s\n", cli_entries[i].name,
                i + 1 < cli_n_entries ? "," : "");
}

/* -- the command -- */

static bool as_man, as_list;

static const cli_option options[] = {
    OPT_HIDDEN("man", &as_man, "print the man page"),
    OPT_HIDDEN("list", &as_list, "print the command names only"),
    OPT_END,
};

static oi_status run(cli_args args)
{
    if (as_list) {
        for (size_t i = 0; i < cli_n_entries; i++)
            puts(cli_entries[i].name);
        return OI_OK;
    }
    if (args.n == 0) {
        as_man ? man_main(stdout) : cli_help(stdout);
        return OI_OK;
    }
    const cli_entry *entry = cli_entry_find(args.at[0]);
    if (!entry)
        return cli_entry_unknown(args.at[0]);
    as_man ? man_command(stdout, entry) : cli_help_command(stdout, entry);
    return OI_OK;
}

static const char *const examples[] = {
    "openinfer help version",
    "the same as openinfer version --help",
    NULL,
};

const cli_command CMD_help = {
    .description = "Prints the list of commands, or the help of one of them.",
    .examples = examples,
    .options = options,
    .run = run,
};
