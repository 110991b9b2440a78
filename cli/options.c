/* options.c: the words after a command, read by its option table. Options and other words may come
 * in any order; "--" ends the options; "--opt=value", "--opt value", "-o value" and "-ovalue" are
 * the same. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool wants_help;
static const char *color_when;

const cli_option cli_global_options[] = {
    OPT_CHOICE("color", 0, "auto|always|never", &color_when,
               "colour diagnostics; auto looks at "
               "the terminal and at NO_COLOR"),
    OPT_FLAG("help", 'h', &wants_help, "explain this command"),
    OPT_END,
};

/* -- commands by name ---------------------------------------------------------------------------
 */

const cli_entry *cli_entry_find(const char *name)
{
    for (size_t i = 0; i < cli_n_entries; i++)
        if (!strcmp(cli_entries[i].name, name))
            return &cli_entries[i];
    return NULL;
}

oi_status cli_entry_unknown(const char *name)
{
    const char *names[64];
    size_t n = 0;
    for (; n < cli_n_entries && n < 64; n++)
        names[n] = cli_entries[n].name;
    const char *near = oi_did_you_mean(name, names, n);
    if (near)
        return cli_usage_error("unknown command '%s': did you mean '%s'?", name, near);
    return cli_usage_error("unknown command '%s'", name);
}

/* -- values ---------------------------------------------------------------------------------------
 */

static bool parse_count(const char *text, char **end, uint64_t *out)
{
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *out = strtoull(text, end, 10);
    return errno == 0;
}

bool cli_parse_size(const char *text, uint64_t *out)
{
    char *end;
    if (!parse_count(text, &end, out))
        return false;
    const char *units = "KMGT";
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (!unit)
        return *end == '\0';
    unsigned shift = 10 * (unsigned)(unit - units + 1);
    if (end[1] != '\0' || *out > UINT64_MAX >> shift)
        return false;
    *out <<= shift;
    return true;
}

void cli_each_choice(const char *choices, void (*fn)(void *ctx, const char *word, size_t n),
                     void *ctx)
{
    for (;;) {
        size_t n = strcspn(choices, "|");
        fn(ctx, choices, n);
        if (choices[n] == '\0')
            return;
        choices += n + 1;
    }
}

typedef struct wanted_word {
    const char *word;
    bool found;
} wanted_word;

static void match_word(void *ctx, const char *word, size_t n)
{
    wanted_word *x = ctx;
    if (strlen(x->word) == n && !memcmp(word, x->word, n))
        x->found = true;
}

static bool is_choice(const char *choices, const char *word)
{
    wanted_word x = {word, false};
    cli_each_choice(choices, match_word, &x);
    return x.found;
}

/* "a|b|c" as a person would say it. */
static const char *spoken(const char *choices)
{
    static char text[256];
    size_t n = 0;
    for (const char *c = choices; *c && n + 5 < sizeof text; c++) {
        if (*c != '|') {
            text[n++] = *c;
            continue;
        }
        const char *joint = strchr(c + 1, '|') ? ", " : " or ";
        size_t len = strlen(joint);
        memcpy(text + n, joint, len);
        n += len;
    }
    text[n] = '\0';
    return text;
}

static oi_status list_add(cli_list *list, const char *value)
{
    const char **at = realloc(list->at, (list->n + 1) * sizeof *at);
    if (!at)
        return cli_fail(OI_ERR_ENV, "out of memory");
    list->at = at;
    at[list->n++] = value;
    return OI_OK;
}

static oi_status set_value(const cli_option *o, const char *value)
{
    char *end;
    switch (o->kind) {
    case CLI_FLAG: *o->flag = true; return OI_OK;
    case CLI_LIST: return list_add(o->list, value);
    case CLI_CHOICE:
        if (!is_choice(o->arg, value))
            return cli_usage_error("--%s: '%s' is not one of %s", o->name, value, spoken(o->arg));
        *o->text = value;
        return OI_OK;
    case CLI_SIZE:
        if (!cli_parse_size(value, o->number))
            return cli_usage_error("--%s: '%s' is not a size; write bytes, or a number with K, M, "
                                   "G or T",
                                   o->name, value);
        return OI_OK;
    case CLI_COUNT:
        if (!parse_count(value, &end, o->number) || *end)
            return cli_usage_error("--%s: '%s' is not a whole number", o->name, value);
        return OI_OK;
    case CLI_TEXT: break;
    }
    *o->text = value;
    return OI_OK;
}

/* -- options -- */

typedef struct parser {
    const cli_entry *entry;
    int argc, at; /* at: the word being read */
    char **argv;
} parser;

static const cli_option *find_in(const cli_option *o, const char *name, size_t n, char letter)
{
    for (; o && o->name; o++)
        if (name ? strlen(o->name) == n && !memcmp(o->name, name, n) : o->letter == letter)
            return o;
    return NULL;
}

static const cli_option *find(const parser *p, const char *name, size_t n, char letter)
{
    const cli_option *o = find_in(p->entry->command->options, name, n, letter);
    return o ? o : find_in(cli_global_options, name, n, letter);
}

static oi_status unknown_option(const parser *p, const char *name, size_t n)
{
    const char *names[64];
    size_t n_names = 0;
    const cli_option *tables[] = {p->entry->command->options, cli_global_options};
    for (size_t t = 0; t < 2; t++)
        for (const cli_option *o = tables[t]; o && o->name && n_names < 64; o++)
            if (!o->hidden)
                names[n_names++] = o->name;
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)n, name);
    const char *near = oi_did_you_mean(word, names, n_names);
    if (near)
        return cli_usage_error("unknown option '--%.*s': did you mean '--%s'?", (int)n, name, near);
    return cli_usage_error("unknown option '--%.*s'", (int)n, name);
}

static oi_status long_option(parser *p)
{
    const char *name = p->argv[p->at] + 2;
    size_t n = strcspn(name, "=");
    const char *value = name[n] ? name + n + 1 : NULL;
    const cli_option *o = find(p, name, n, 0);
    if (!o)
        return unknown_option(p, name, n);
    if (!o->arg && value)
        return cli_usage_error("--%s takes no value", o->name);
    if (o->arg && !value) {
        if (p->at + 1 == p->argc)
            return cli_usage_error("--%s needs a value: --%s %s", o->name, o->name, o->arg);
        value = p->argv[++p->at];
    }
    return set_value(o, value);
}

/* -i, -o FILE, -oFILE, and flags in one word: -io FILE. */
static oi_status short_options(parser *p)
{
    for (const char *c = p->argv[p->at] + 1; *c; c++) {
        const cli_option *o = find(p, NULL, 0, *c);
        if (!o)
            return cli_usage_error("unknown option '-%c'", *c);
        if (!o->arg) {
            oi_status status = set_value(o, NULL);
            if (status != OI_OK)
                return status;
            continue;
        }
        if (c[1])
            return set_value(o, c + 1);
        if (p->at + 1 == p->argc)
            return cli_usage_error("-%c needs a value: -%c %s", *c, *c, o->arg);
        return set_value(o, p->argv[++p->at]);
    }
    return OI_OK;
}

/* -- the other words -- */

typedef struct word_count {
    size_t least, most;
} word_count;

static word_count count_words(const char *args)
{
    word_count count = {0, 0};
    while (*args) {
        size_t n = strcspn(args, " ");
        bool open_ended = n > 3 && !memcmp(args + n - 3, "...", 3);
        count.least += args[0] != '[';
        count.most = open_ended ? SIZE_MAX : count.most + 1;
        args += n + strspn(args + n, " ");
    }
    return count;
}

static oi_status check_words(const cli_entry *entry, const cli_args *args)
{
    word_count count = count_words(entry->args);
    if (args->n < count.least)
        return cli_usage_error("missing argument: openinfer %s %s", entry->name, entry->args);
    if (args->n > count.most)
        return cli_usage_error("unexpected argument '%s'", args->at[count.most]);
    if (args->n && strchr(entry->args, '|') && !is_choice(entry->args, args->at[0]))
        return cli_usage_error("'%s' is not one of %s", args->at[0], spoken(entry->args));
    return OI_OK;
}

oi_status cli_parse(const cli_entry *entry, int argc, char **argv, cli_args *out, bool *help)
{
    parser p = {entry, argc, 1, argv};
    bool only_words = false;
    *out = (cli_args){(const char **)argv + 1, 0}; /* words move up over the options read */
    for (; p.at < argc; p.at++) {
        const char *word = argv[p.at];
        oi_status status = OI_OK;
        if (only_words || word[0] != '-' || word[1] == '\0')
            out->at[out->n++] = word;
        else if (!strcmp(word, "--"))
            only_words = true;
        else
            status = word[1] == '-' ? long_option(&p) : short_options(&p);
        if (status != OI_OK)
            return status;
    }
    if (color_when)
        cli_set_color(color_when);
    *help = wants_help;
    return wants_help ? OI_OK : check_words(entry, out);
}

static bool is_pass(const char *word)
{
    for (size_t i = 0; oi_synth_pass(i); i++)
        if (strcmp(oi_synth_pass(i), word) == 0)
            return true;
    return false;
}

static oi_status no_such_pass(const char *word)
{
    char all[512] = "";
    for (size_t i = 0, n = 0; oi_synth_pass(i) && n < sizeof all; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", oi_synth_pass(i));
    return cli_usage_error("there is no pass '%s' (they are %s)", word, all);
}

oi_status cli_passes(const cli_list *names, const char **out)
{
    size_t n = 0;
    for (; n < names->n && n < CLI_MAX_PASSES; n++) {
        if (!is_pass(names->at[n]))
            return no_such_pass(names->at[n]);
        out[n] = names->at[n];
    }
    out[n] = NULL;
    return OI_OK;
}
