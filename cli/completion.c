/* completion.c: `openinfer completion`: completion scripts, printed from the command and option
 * tables, so a new option completes without further work. */
#include "cli.h"

#include <string.h>

typedef void option_fn(const cli_entry *e, const cli_option *o);

/* Calls fn for the visible options of a command and then the global ones. */
static void each_option(const cli_entry *e, option_fn *fn)
{
    const cli_option *tables[] = {e->command->options, cli_global_options};
    for (size_t t = 0; t < 2; t++)
        for (const cli_option *o = tables[t]; o && o->name; o++)
            if (!o->hidden)
                fn(e, o);
}

static void put_word(void *ctx, const char *word, size_t n)
{
    (void)ctx;
    printf(" %.*s", (int)n, word);
}

static void put_commands(void)
{
    for (size_t i = 0; i < cli_n_entries; i++)
        printf(" %s", cli_entries[i].name);
}

/* The words a command or option accepts, each after a space; nothing when it takes files. */
static void put_choices(const char *args)
{
    if (strchr(args, '|'))
        cli_each_choice(args, put_word, NULL);
    else if (!strcmp(args, "[COMMAND]"))
        put_commands();
}

/* Text inside single quotes, which fish, zsh and bash all read literally. */
static void put_quoted(const char *text)
{
    for (const char *c = text; *c; c++)
        *c == '\'' ? fputs("'\\''", stdout) : putchar(*c);
}

/* -- bash -- */

static void bash_name(const cli_entry *e, const cli_option *o)
{
    (void)e;
    printf(" --%s", o->name);
    if (o->letter)
        printf(" -%c", o->letter);
}

static void bash_value(const cli_entry *e, const cli_option *o)
{
    if (!o->arg)
        return;
    printf("    '%s --%s'", e->name, o->name);
    if (o->letter)
        printf("|'%s -%c'", e->name, o->letter);
    printf(") words='");
    if (o->kind == CLI_CHOICE)
        put_choices(o->arg);
    printf("' value=1 ;;\n");
}

static void bash(void)
{
    puts("# completion of openinfer for bash\n"
         "_openinfer() {\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "    local cmd= i words= options= value=\n"
         "    if [[ $cur == = ]]; then cur=; "
         "elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
         "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "        if [[ ${COMP_WORDS[i]} != -* ]]; then cmd=${COMP_WORDS[i]}; break; fi\n"
         "    done\n"
         "    case \"$cmd $prev\" in");
    for (size_t i = 0; i < cli_n_entries; i++)
        each_option(&cli_entries[i], bash_value);
    puts("    esac\n    case $cmd in");
    for (size_t i = 0; i < cli_n_entries; i++) {
        const cli_entry *e = &cli_entries[i];
        printf("    %s) options='", e->name);
        each_option(e, bash_name);
        printf("'; [[ $value ]] || words='");
        put_choices(e->args);
        puts("' ;;");
    }
    printf("    '') words='");
    put_commands();
    puts("' options='--help --version -V --color' ;;\n    esac\n"
         "    if [[ $cur == -* && ! $value ]]; then words=$options; fi\n"
         "    if [[ $words ]]; then COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "    else COMPREPLY=($(compgen -f -- \"$cur\")); fi\n"
         "}\n"
         "complete -o filenames -F _openinfer openinfer");
}

/* -- zsh -- */

static void put_zsh_doc(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (strchr("[]:\\", *c))
            putchar('\\');
        *c == '\'' ? fputs("'\\''", stdout) : putchar(*c);
    }
}

static void zsh_argument(const char *name, const char *choices)
{
    printf(":");
    put_zsh_doc(name);
    if (strchr(choices, '|') || !strcmp(choices, "[COMMAND]")) {
        printf(":(");
        put_choices(choices);
        printf(" )");
    } else {
        printf(":_files");
    }
}

static void zsh_spelling(const cli_option *o, bool is_long)
{
    printf(" \\\n            '%s", o->kind == CLI_LIST ? "*" : "");
    is_long ? printf("--%s%s", o->name, o->arg ? "=" : "") : printf("-%c", o->letter);
    printf("[");
    put_zsh_doc(o->doc);
    printf("]");
    if (o->arg)
        zsh_argument(o->arg, o->kind == CLI_CHOICE ? o->arg : "");
    printf("'");
}

static void zsh_option(const cli_entry *e, const cli_option *o)
{
    (void)e;
    zsh_spelling(o, true);
    if (o->letter)
        zsh_spelling(o, false);
}

static void zsh(void)
{
    puts("#compdef openinfer\n# completion of openinfer for zsh\n_openinfer() {\n"
         "    local -a commands\n    commands=(");
    for (size_t i = 0; i < cli_n_entries; i++) {
        printf("        '%s:", cli_entries[i].name);
        put_zsh_doc(cli_entries[i].summary);
        puts("'");
    }
    puts("    )\n    if ((CURRENT == 2)); then _describe command commands; return; fi\n"
         "    local cmd=$words[2]\n    shift words\n    ((CURRENT--))\n    case $cmd in");
    for (size_t i = 0; i < cli_n_entries; i++) {
        const cli_entry *e = &cli_entries[i];
        printf("    %s)\n        _arguments", e->name);
        each_option(e, zsh_option);
        if (e->args[0]) {
            printf(" \\\n            '*");
            zsh_argument(e->args, e->args);
            printf("'");
        }
        puts("\n        ;;");
    }
    puts("    esac\n}\n"
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _openinfer \"$@\"\n"
         "else compdef _openinfer openinfer; fi");
}

/* -- fish -- */

static void fish_option(const cli_entry *e, const cli_option *o)
{
    printf("complete -c openinfer -n '__fish_seen_subcommand_from %s' -l %s", e->name, o->name);
    if (o->letter)
        printf(" -s %c", o->letter);
    printf(" -d '");
    put_quoted(o->doc);
    printf("'");
    if (o->arg && o->kind == CLI_CHOICE) {
        printf(" -x -a '");
        put_choices(o->arg);
        printf("'");
    } else if (o->arg) {
        printf(" -r -F");
    }
    putchar('\n');
}

static void fish(void)
{
    puts("# completion of openinfer for fish");
    for (size_t i = 0; i < cli_n_entries; i++) {
        const cli_entry *e = &cli_entries[i];
        printf("complete -c openinfer -f -n __fish_use_subcommand -a %s -d '", e->name);
        put_quoted(e->summary);
        puts("'");
        each_option(e, fish_option);
        if (strchr(e->args, '|') || !strcmp(e->args, "[COMMAND]")) {
            printf("complete -c openinfer -f -n '__fish_seen_subcommand_from %s' -a '", e->name);
            put_choices(e->args);
            puts("'");
        }
    }
}

/* -- the command -- */

static oi_status run(cli_args args)
{
    switch (args.at[0][0]) {
    case 'b': bash(); break;
    case 'z': zsh(); break;
    default: fish(); break;
    }
    return OI_OK;
}

static const char *const examples[] = {
    "source <(openinfer completion bash)",
    "complete in this shell",
    "openinfer completion fish > ~/.config/fish/completions/openinfer.fish",
    "in every new one",
    NULL,
};

const cli_command CMD_completion = {
    .description = "Prints a script that makes the shell complete commands, options and the values "
                   "that options accept.",
    .examples = examples,
    .options = NULL,
    .run = run,
};
