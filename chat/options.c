/* options.c: the command line of oi-chat, as a table. */
#include "chat.h"

#include <errno.h>
#include <math.h>

typedef enum kind { FLAG, TEXT, COUNT, SIZE, REAL, TOKENS } kind;

typedef struct option {
    const char *name, *arg, *doc;
    kind kind;
    size_t at; /* in chat_options; for engine, device and others that need more: in given */
} option;

/* What is read as text first. */
typedef struct given {
    const char *engine, *device;
    uint64_t threads, count, top_k;
    double temperature, top_p;
    uint64_t seed;
    bool has_seed, greedy, raw, print_tokens, tokenize, ignore_end, quiet, help;
    const char *model, *prompt, *system, *tokens;
    uint64_t memory_limit, context;
} given;

#define AT(field) offsetof(given, field)
static const option OPTIONS[] = {
    {"model", "DIR", "folder with model.oinf, prefill.oi and decode.oi", TEXT, AT(model)},
    {"engine", "sim|c", "simulator, or compiled C (default c where a compiler is)", TEXT,
     AT(engine)},
    {"prompt", "TEXT", "answer this and stop; without it, talk", TEXT, AT(prompt)},
    {"system", "TEXT", "what the model is told about its role", TEXT, AT(system)},
    {"raw", NULL, "continue the prompt as it is, without the chat template", FLAG, AT(raw)},
    {"tokens", "1,2,3", "continue these tokens and stop", TEXT, AT(tokens)},
    {"count", "N", "most tokens of an answer (default 512)", COUNT, AT(count)},
    {"print-tokens", NULL, "print the answer's token numbers instead of its text", FLAG,
     AT(print_tokens)},
    {"tokenize", NULL, "print the prompt's token numbers and stop", FLAG, AT(tokenize)},
    {"ignore-end", NULL, "go on after the token that ends an answer", FLAG, AT(ignore_end)},
    {"greedy", NULL, "always take the likeliest token", FLAG, AT(greedy)},
    {"temperature", "X", "above 0; higher is more varied (default 0.7)", REAL, AT(temperature)},
    {"top-k", "N", "choose among the N likeliest (default 40; 0: all)", COUNT, AT(top_k)},
    {"top-p", "X", "choose among the likeliest that make up X (default 0.95)", REAL, AT(top_p)},
    {"seed", "N", "of the random choices (default 1)", COUNT, AT(seed)},
    {"context", "N", "positions in the cache (default: as the model says)", COUNT, AT(context)},
    {"device", "NAME", "cpu, cpu:scalar, cpu:avx2 ... (default cpu)", TEXT, AT(device)},
    {"threads", "N", "of the kernels (default: one per processor, 8 at most)", COUNT, AT(threads)},
    {"memory-limit", "SIZE", "most bytes of weights, values and cache in memory, as 32M", SIZE,
     AT(memory_limit)},
    {"quiet", NULL, "no speed on standard error", FLAG, AT(quiet)},
    {"help", NULL, "this list", FLAG, AT(help)},
};
#define N_OPTIONS (sizeof OPTIONS / sizeof *OPTIONS)

static int usage(const char *format, const char *a, const char *b)
{
    fputs("oi-chat: ", stderr);
    fprintf(stderr, format, a, b); /* formats are ours */
    fputs("\ntry: oi-chat --help\n", stderr);
    return OI_ERR_USAGE;
}

static void print_help(void)
{
    puts("oi-chat --model DIR [options]: talk to a language model\n");
    for (size_t i = 0; i < N_OPTIONS; i++) {
        char left[64];
        snprintf(left, sizeof left, "--%s %s", OPTIONS[i].name,
                 OPTIONS[i].arg ? OPTIONS[i].arg : "");
        printf("  %-22s %s\n", left, OPTIONS[i].doc);
    }
}

/* A whole number, for SIZE with K M G as powers of 1024. */
static bool read_count(const char *text, bool is_size, uint64_t *out)
{
    static const char units[] = "KMG";
    char *end = NULL;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (end == text || text[0] == '-' || errno)
        return false;
    const char *unit = is_size && *end ? strchr(units, *end) : NULL;
    if (unit && !end[1]) {
        unsigned shift = 10 * (unsigned)(unit - units + 1);
        if (*out > UINT64_MAX >> shift)
            return false;
        *out <<= shift;
        return true;
    }
    return *end == '\0';
}

static bool read_real(const char *text, double *out)
{
    char *end = NULL;
    *out = strtod(text, &end);
    return end != text && !*end && isfinite(*out);
}

static int read_value(const option *o, const char *text, given *g)
{
    void *at = (char *)g + o->at;
    if (o->kind == TEXT)
        *(const char **)at = text;
    else if (o->kind == REAL && !read_real(text, at))
        return usage("--%s %s: not a number", o->name, text);
    else if ((o->kind == COUNT || o->kind == SIZE) && !read_count(text, o->kind == SIZE, at))
        return usage("--%s %s: not a whole number", o->name, text);
    return 0;
}

/* "--name VALUE", "--name=VALUE" or "--flag". */
static int read_option(char **argv, int argc, int *at, given *g)
{
    const char *word = argv[*at] + 2, *eq = strchr(word, '=');
    size_t n = eq ? (size_t)(eq - word) : strlen(word);
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const option *o = &OPTIONS[i];
        if (strlen(o->name) != n || memcmp(o->name, word, n) != 0)
            continue;
        if (o->kind == FLAG) {
            *(bool *)((char *)g + o->at) = true;
            return eq ? usage("--%s takes no value%s", o->name, "") : 0;
        }
        if (!eq && *at + 1 >= argc)
            return usage("--%s wants %s", o->name, o->arg);
        return read_value(o, eq ? eq + 1 : argv[++*at], g);
    }
    return usage("there is no option %s%s", argv[*at], "");
}

/* "1,2,3" */
static bool read_tokens(const char *text, chat_tokens *out)
{
    while (*text) {
        char *end = NULL;
        errno = 0;
        long v = strtol(text, &end, 10);
        if (end == text || v < 0 || v > INT32_MAX || errno || (*end && *end != ','))
            return false;
        chat_tokens_add(out, (int32_t)v);
        text = *end ? end + 1 : end;
    }
    return out->n > 0 && !out->failed;
}

/* What only the simulator can do chooses it. */
static int choose_engine(const given *g, chat_kind *out)
{
    const bool wants_sim = g->device || g->memory_limit;
    *out = wants_sim ? CHAT_SIMULATED : CHAT_EITHER;
    if (!g->engine)
        return 0;
    *out = strcmp(g->engine, "c") == 0 ? CHAT_COMPILED : CHAT_SIMULATED;
    if (*out == CHAT_SIMULATED && strcmp(g->engine, "sim") != 0)
        return usage("--engine %s: sim or c%s", g->engine, "");
    if (*out == CHAT_COMPILED && wants_sim)
        return usage("--engine c is built for this machine: --device and --memory-limit are the "
                     "simulator's%s%s",
                     "", "");
    return 0;
}

static int check(const given *g, chat_options *out)
{
    const char *device = g->device ? g->device : "cpu";
    if (!g->model)
        return usage("--model DIR says where the model lies; make models makes one%s%s", "", "");
    int code = choose_engine(g, &out->engine.kind);
    if (code)
        return code;
    if (!oi_run_on_find(device, &out->engine.device))
        return usage("--device: there is no '%s'; try cpu, cpu:scalar, cpu:avx2, vulkan%s", device,
                     "");
    out->engine.device_name = oi_run_on_device(device);
    if (g->temperature <= 0)
        return usage("--temperature must be above 0; --greedy takes the likeliest token%s%s", "",
                     "");
    if (g->top_p <= 0 || g->top_p > 1)
        return usage("--top-p must be above 0 and at most 1%s%s", "", "");
    if (g->threads > 256 || g->top_k > INT32_MAX || g->count > INT32_MAX)
        return usage("--threads, --top-k or --count is too large%s%s", "", "");
    if (g->tokens && g->prompt)
        return usage("--tokens and --prompt exclude each other%s%s", "", "");
    if (g->tokens && !read_tokens(g->tokens, &out->tokens))
        return usage("--tokens %s: write whole numbers as 1,2,3%s", g->tokens, "");
    if (g->tokenize && !g->prompt)
        return usage("--tokenize wants a --prompt%s%s", "", "");
    return 0;
}

int chat_options_read(int argc, char **argv, chat_options *out)
{
    given g = {.temperature = 0.7, .top_p = 0.95, .top_k = 40, .seed = 1, .count = 512};
    int code = 0;
    *out = (chat_options){0};
    for (int i = 1; i < argc && !code; i++)
        code = !strncmp(argv[i], "--", 2) ? read_option(argv, argc, &i, &g)
                                          : usage("'%s' is not an option%s", argv[i], "");
    if (code || g.help) {
        out->help = g.help;
        if (!code)
            print_help();
        return code;
    }
    code = check(&g, out);
    out->engine.folder = g.model;
    out->engine.threads = (uint32_t)g.threads;
    out->engine.memory_limit = g.memory_limit;
    out->engine.context = g.context;
    out->engine.quiet = g.quiet;
    out->sampler =
        (chat_sampler){g.greedy, (float)g.temperature, (uint32_t)g.top_k, (float)g.top_p, g.seed};
    out->prompt = g.prompt;
    out->system = g.system;
    out->has_tokens = g.tokens != NULL;
    out->raw = g.raw;
    out->print_tokens = g.print_tokens;
    out->tokenize = g.tokenize;
    out->ignore_end = g.ignore_end;
    out->quiet = g.quiet;
    out->count = (size_t)g.count;
    return code;
}
