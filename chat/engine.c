/* engine.c: what runs the model: the simulator, or the program emitted from it. Two graphs share
 * the cache of keys and values: prefill.oi takes a chunk of tokens at once, decode.oi one. A chunk
 * has a fixed length, so that every shape is known; a shorter one is filled up, and what the
 * filling leaves in the cache is overwritten before anything can see it. */
#include "chat.h"

#include <stdio.h>

/* Below this many tokens single steps are cheaper than a chunk that is mostly filling. */
#define WORTH_A_CHUNK 4

typedef struct stage { /* one graph; sim and exec are NULL while they are not needed */
    const char *name;
    oi_graph *graph;
    oi_sim *sim;
    oi_exec *exec;
} stage;

struct chat_engine {
    chat_engine_options options;
    oi_model *model;
    oi_diag *diag;
    stage prefill, decode;
    chat_compiled *compiled; /* NULL: the simulator */
    size_t chunk, context, vocab, seen;
    int32_t *filled; /* (chunk) */
};

static bool report(chat_engine *e, const char *what, chat_why *why)
{
    for (size_t i = 0; i < oi_diag_count(e->diag); i++) {
        oi_message m = oi_diag_at(e->diag, i);
        if (m.severity == OI_ERROR)
            return chat_fail(why, "%s:%u: %s%s%s", m.file[0] ? m.file : what, m.line, m.code,
                             m.code[0] ? ": " : "", m.text);
    }
    return chat_fail(why, "%s failed", what);
}

static bool open_sim(chat_engine *e, stage *s, chat_why *why)
{
    char path[4096];
    const chat_engine_options *o = &e->options;
    oi_size context = {"ctx", o->context};
    oi_sim_options options = {.device = o->device,
                              .device_name = o->device_name,
                              .threads = o->threads,
                              .memory_limit = o->memory_limit,
                              .sizes = &context,
                              .n_sizes = o->context ? 1 : 0};
    snprintf(path, sizeof path, "%s/%s", o->folder, s->name);
    oi_status status = oi_graph_load(path, &s->graph, e->diag);
    if (status == OI_OK)
        status = oi_sim_new(e->model, s->graph, &options, &s->sim, e->diag);
    return status == OI_OK || report(e, path, why);
}

static void close_stage(stage *s)
{
    oi_exec_free(s->exec);
    oi_sim_free(s->sim);
    oi_graph_free(s->graph);
}

/* Makes a stage's executor beside that of the other, whose memory it shares. Each stage keeps
 * weights of its own up to the limit, so under one the other's are given back first. */
static bool ready(chat_engine *e, stage *s, chat_why *why)
{
    stage *other = s == &e->prefill ? &e->decode : &e->prefill;
    if (e->options.memory_limit && other->sim)
        oi_sim_trim(other->sim);
    if (s->exec)
        return true;
    oi_diag_clear(e->diag);
    if (!s->sim && !open_sim(e, s, why))
        return false;
    oi_status status = other->exec ? oi_exec_new_shared(s->sim, other->exec, &s->exec, e->diag)
                                   : oi_exec_new(s->sim, &s->exec, e->diag);
    return status == OI_OK || report(e, s->name, why);
}

/* A variable that must be there, and how many elements it has. */
static bool elements_of(const oi_sim *sim, const char *name, oi_dtype dtype, size_t *out,
                        chat_why *why)
{
    oi_var_info var;
    size_t at = oi_sim_find_var(sim, name);
    if (at == SIZE_MAX || !oi_sim_var(sim, at, &var) || var.dtype != dtype)
        return chat_fail(why, "the graph has no variable '%s' of type %s", name,
                         oi_dtype_name(dtype));
    *out = 1;
    for (uint32_t i = 0; i < var.rank; i++)
        *out *= (size_t)var.dims[i];
    return true;
}

/* If the program was not requested explicitly and cannot be built, the simulator runs instead. */
static bool open_compiled(chat_engine *e, chat_why *why)
{
    const chat_kind kind = e->options.kind;
    if (kind == CHAT_SIMULATED)
        return true;
    const bool opened = chat_compiled_open(&e->options, e->model, e->prefill.graph, e->decode.graph,
                                           e->diag, &e->compiled, why);
    if (opened || kind == CHAT_COMPILED)
        return opened;
    if (!e->options.quiet)
        fprintf(stderr, "[simulating: %s]\n", why->text);
    chat_compiled_close(e->compiled);
    e->compiled = NULL;
    oi_diag_clear(e->diag);
    return true;
}

/* What the graphs agree on with us: tokens, n and more go in, logits come out, ctx bounds the
 * cache. */
static bool open_both(chat_engine *e, chat_why *why)
{
    size_t one = 0, vocab = 0, more = 0;
    uint64_t context = e->options.context;
    if (!ready(e, &e->prefill, why) ||
        !elements_of(e->prefill.sim, "tokens", OI_I32, &e->chunk, why) ||
        !elements_of(e->prefill.sim, "more", OI_I32, &more, why) ||
        !elements_of(e->prefill.sim, "logits", OI_F32, &e->vocab, why) ||
        !ready(e, &e->decode, why) || !elements_of(e->decode.sim, "tokens", OI_I32, &one, why) ||
        !elements_of(e->decode.sim, "logits", OI_F32, &vocab, why))
        return false;
    if (one != 1 || vocab != e->vocab || e->chunk == 0)
        return chat_fail(why, "prefill.oi and decode.oi do not fit together");
    if (!context && oi_model_size_of(e->model, "ctx", &context) != OI_OK)
        return chat_fail(why, "the package has no size 'ctx'");
    e->context = (size_t)context;
    e->filled = calloc(e->chunk, sizeof *e->filled);
    if (!e->filled)
        return chat_fail(why, "out of memory");
    return open_compiled(e, why);
}

static bool open_engine(chat_engine *e, chat_why *why)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/model.oinf", e->options.folder);
    e->diag = oi_diag_new();
    if (!e->diag)
        return chat_fail(why, "out of memory");
    if (oi_model_open(path, &e->model, e->diag) != OI_OK)
        return report(e, path, why);
    return open_both(e, why);
}

bool chat_engine_open(const chat_engine_options *options, chat_engine **out, chat_why *why)
{
    chat_engine *e = calloc(1, sizeof *e);
    *out = NULL;
    if (!e)
        return chat_fail(why, "out of memory");
    e->options = *options;
    e->prefill.name = "prefill.oi";
    e->decode.name = "decode.oi";
    if (!open_engine(e, why)) {
        chat_engine_close(e);
        return false;
    }
    *out = e;
    return true;
}

void chat_engine_close(chat_engine *e)
{
    if (!e)
        return;
    chat_compiled_close(e->compiled);
    close_stage(&e->decode);
    close_stage(&e->prefill);
    oi_model_close(e->model);
    oi_diag_free(e->diag);
    free(e->filled);
    free(e);
}

oi_model *chat_engine_model(const chat_engine *e)
{
    return e->model;
}

size_t chat_engine_vocab(const chat_engine *e)
{
    return e->vocab;
}

size_t chat_engine_room(const chat_engine *e)
{
    return e->context - e->seen;
}

/* One step of a stage: n tokens count of the `room` that it takes, and whether more of them will
 * follow: then a chunk gives no logits. */
static bool step(chat_engine *e, stage *s, const int32_t *tokens, size_t room, int32_t n,
                 int32_t more, const float **logits, chat_why *why)
{
    if (e->compiled) {
        int failed = chat_compiled_step(e->compiled, s == &e->decode, tokens, n, more, logits);
        e->seen += failed ? 0 : (size_t)n;
        return !failed || chat_fail(why, "%s: E%03d", s->name, failed);
    }
    if (!ready(e, s, why))
        return false;
    oi_diag_clear(e->diag);
    oi_status status = OI_TRY_INSERT(s->exec, tokens, tokens, room, e->diag);
    if (status == OI_OK && s == &e->prefill)
        status = OI_TRY_INSERT(s->exec, n, &n, 1, e->diag);
    if (status == OI_OK && s == &e->prefill)
        status = OI_TRY_INSERT(s->exec, more, &more, 1, e->diag);
    if (status == OI_OK)
        status = oi_step(s->exec, e->diag);
    if (status == OI_OK)
        status = OI_TRY_FETCH_F32(s->exec, logits, logits, NULL, e->diag);
    if (status != OI_OK)
        return report(e, s->name, why);
    e->seen += (size_t)n;
    return true;
}

bool chat_engine_feed(chat_engine *e, const int32_t *tokens, size_t n, const float **logits,
                      chat_why *why)
{
    *logits = NULL;
    if (n > chat_engine_room(e))
        return chat_fail(why, "%zu tokens do not fit: the cache holds %zu, %zu are used", n,
                         e->context, e->seen);
    for (size_t at = 0; at < n;) {
        size_t left = n - at, count = left < e->chunk ? left : e->chunk;
        if (left <= WORTH_A_CHUNK || e->chunk > chat_engine_room(e)) {
            if (!step(e, &e->decode, tokens + at, 1, 1, left > 1, logits, why))
                return false;
            at++;
            continue;
        }
        memset(e->filled, 0, e->chunk * sizeof *e->filled);
        memcpy(e->filled, tokens + at, count * sizeof *e->filled);
        if (!step(e, &e->prefill, e->filled, e->chunk, (int32_t)count, left > count, logits, why))
            return false;
        at += count;
    }
    return true;
}

/* New executors begin with fresh memory; each is made when it is needed. */
void chat_engine_reset(chat_engine *e)
{
    oi_exec_free(e->decode.exec);
    oi_exec_free(e->prefill.exec);
    e->decode.exec = e->prefill.exec = NULL;
    e->seen = 0;
    if (e->compiled)
        chat_compiled_reset(e->compiled);
}

uint64_t chat_engine_weights_peak(const chat_engine *e)
{
    oi_sim_stats prefill, decode;
    if (e->compiled)
        return chat_compiled_weights(e->compiled);
    oi_sim_get_stats(e->prefill.sim, &prefill);
    oi_sim_get_stats(e->decode.sim, &decode);
    return prefill.weights_peak > decode.weights_peak ? prefill.weights_peak : decode.weights_peak;
}
