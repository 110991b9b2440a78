/* main.c: find the command, parse its options, run it, turn its status into the exit code. */
#include "cli.h"

#include <signal.h>
#include <string.h>

const cli_entry cli_entries[] = {
#define COMMAND(name, args, summary) {#name, args, summary, &CMD_##name},
#include "commands.h"
#undef COMMAND
};
const size_t cli_n_entries = sizeof cli_entries / sizeof cli_entries[0];

static oi_status run(const cli_entry *entry, int argc, char **argv)
{
    cli_args args;
    bool help;
    oi_status status = cli_parse(entry, argc, argv, &args, &help);
    if (status != OI_OK)
        return status;
    if (help) {
        cli_help_command(stdout, entry);
        return OI_OK;
    }
    return entry->command->run(args);
}

/* Options before the command: --color as everywhere, --help, --version; -V is the command
 * `version`. Returns the index of the
 * command, or 0 with *status when there is nothing left to run. */
static int global_options(int argc, char **argv, oi_status *status)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (word[0] != '-')
            return i;
        if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
            cli_help(stdout);
            *status = OI_OK;
            return 0;
        }
        if (!strcmp(word, "-V")) {
            argv[i] = (char *)(uintptr_t) "version";
            return i;
        }
        if (!strcmp(word, "--version")) {
            printf("openinfer %s\n", oi_version());
            *status = OI_OK;
            return 0;
        }
        bool joined = !strncmp(word, "--color=", 8);
        const char *when = joined ? word + 8 : !strcmp(word, "--color") ? argv[++i] : NULL;
        if (!when || !cli_set_color(when)) {
            *status = joined || !strcmp(word, "--color")
                          ? cli_usage_error("--color takes auto, always or never")
                          : cli_usage_error("unknown option '%s' before the command", word);
            return 0;
        }
    }
    cli_help(stderr);
    *status = OI_ERR_USAGE;
    return 0;
}

int main(int argc, char **argv)
{
    oi_status status = OI_OK;
#ifdef SIGXFSZ
    (void)signal(SIGXFSZ, SIG_IGN); /* a file beyond the limit is an error like a full disk */
#endif
    int at = global_options(argc, argv, &status);
    if (at == 0)
        return cli_exit(status);
    const cli_entry *entry = cli_entry_find(argv[at]);
    if (!entry)
        return cli_exit(cli_entry_unknown(argv[at]));
    cli_set_name(entry->name);
    return cli_exit(run(entry, argc - at, argv + at));
}
