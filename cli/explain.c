/* explain.c: `openinfer explain`: what the code of a diagnostic means. */
#include "cli.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool as_json;

static const cli_option options[] = {
    OPT_FLAG("json", 0, &as_json, "print JSON"),
    OPT_END,
};

static void put_field(const char *comma, const char *key, const char *text)
{
    printf("%s\"%s\": ", comma, key);
    cli_json_text(stdout, text);
}

static void put_json(const oi_explained *c, bool is_first)
{
    fputs(is_first ? "\n  {" : ",\n  {", stdout);
    put_field("", "code", c->code);
    put_field(", ", "title", c->title);
    put_field(", ", "text", c->text);
    put_field(", ", "example", c->example);
    put_field(", ", "command", c->command);
    put_field(", ", "model", c->model);
    putchar('}');
}

static void put_indented(const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        printf("    %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static void put_page(const oi_explained *c)
{
    printf("%s: %s\n\n", c->code, c->title);
    cli_wrap(stdout, c->text);
    printf("\nexample:\n");
    put_indented(c->example);
    if (*c->model)
        printf("with a package that holds: %s\n", c->model);
    printf("shown by:\n    %s\n", c->command);
}

/* "e051", "E051" and "51" are the same. */
static bool is_meant(const oi_explained *c, const char *word)
{
    if (isdigit((unsigned char)word[0]))
        return c->code[0] == 'E' && atoi(word) == atoi(c->code + 1);
    return toupper((unsigned char)word[0]) == c->code[0] && strcmp(word + 1, c->code + 1) == 0;
}

static bool is_wanted(const oi_explained *c, const cli_args *args)
{
    for (size_t i = 0; i < args->n; i++)
        if (is_meant(c, args->at[i]))
            return true;
    return args->n == 0;
}

static oi_status check_known(const char *word)
{
    oi_explained c;
    for (size_t i = 0; oi_explain_at(i, &c); i++)
        if (is_meant(&c, word))
            return OI_OK;
    return cli_fail(OI_ERR_INPUT, "there is no code '%s'; openinfer explain lists them", word);
}

static oi_status run(cli_args args)
{
    oi_explained c;
    size_t n = 0;
    for (size_t i = 0; i < args.n; i++) {
        oi_status status = check_known(args.at[i]);
        if (status != OI_OK)
            return status;
    }
    fputs(as_json ? "[" : "", stdout);
    for (size_t i = 0; oi_explain_at(i, &c); i++) {
        if (!is_wanted(&c, &args))
            continue;
        if (as_json)
            put_json(&c, n == 0);
        else if (args.n == 0)
            printf("%s  %s\n", c.code, c.title);
        else {
            fputs(n ? "\n" : "", stdout);
            put_page(&c);
        }
        n++;
    }
    fputs(as_json ? "\n]\n" : "", stdout);
    return OI_OK;
}

static const char *const examples[] = {
    "openinfer explain E051",
    "what E051 means, and a graph that gives it",
    "openinfer explain",
    "all codes",
    NULL,
};

const cli_command CMD_explain = {
    .description =
        "Tells what the code of a diagnostic means, with an example that gives it and the command "
        "that shows it. Codes with E are errors, those with W warnings; some warnings are errors "
        "with --strict. Without CODE all of them are listed.",
    .examples = examples,
    .options = options,
    .run = run,
};
