/* talk.c: the conversation. What was said is kept as messages; each turn writes them by the chat
 * template, and the model reads what it has not seen yet. */
#include "chat.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

typedef struct talk {
    const chat_options *options;
    chat_engine *engine;
    oi_model *model; /* without an engine: opened for its vocabulary alone */
    chat_vocab *vocab;
    chat_sampler sampler;
    chat_candidate *room; /* (vocab) */
    chat_message *messages;
    size_t n_messages, n_room;
    chat_tokens seen; /* by the model */
    chat_why why;
} talk;

typedef struct pace { /* of one answer */
    size_t n_read, n_said;
    double read_s, said_s;
} pace;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int fail(talk *t)
{
    fflush(stdout);
    fprintf(stderr, "oi-chat: %s\n", t->why.text);
    return OI_ERR_INPUT;
}

static void print_tokens(const int32_t *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("%s%d", i ? "," : "", (int)tokens[i]);
    putchar('\n');
}

/* -- messages -- */

static bool remember(talk *t, const char *role, const char *content, size_t n)
{
    if (t->n_messages == t->n_room) {
        size_t room = t->n_room ? 2 * t->n_room : 8;
        chat_message *more = realloc(t->messages, room * sizeof *more);
        if (!more)
            return chat_fail(&t->why, "out of memory");
        t->messages = more;
        t->n_room = room;
    }
    char *copy = malloc(n + 1);
    if (!copy)
        return chat_fail(&t->why, "out of memory");
    if (n)
        memcpy(copy, content, n);
    copy[n] = '\0';
    t->messages[t->n_messages++] = (chat_message){role, copy};
    return true;
}

static void forget(talk *t)
{
    while (t->n_messages)
        free((char *)t->messages[--t->n_messages].content);
    t->seen.n = 0;
}

/* The conversation as tokens, up to where the model's answer begins. */
static bool conversation(talk *t, chat_tokens *out)
{
    chat_parts text = {0};
    const char *source = chat_vocab_template(t->vocab);
    bool ok =
        chat_template_write(source, t->messages, t->n_messages, true, "", "", &text, &t->why) &&
        chat_encode(t->vocab, &text, out, &t->why);
    chat_parts_free(&text);
    return ok;
}

static bool plain(talk *t, const char *prompt, chat_tokens *out)
{
    chat_parts text = {0};
    chat_parts_add(&text, prompt, strlen(prompt), true);
    bool ok = chat_encode(t->vocab, &text, out, &t->why);
    chat_parts_free(&text);
    return ok;
}

/* -- answers -- */

/* Prints whole characters and keeps the beginning of an unfinished one. */
static bool print_text(chat_bytes *pending, bool at_end, chat_why *why)
{
    size_t whole = at_end ? pending->n : chat_utf8_whole(pending->at, pending->n);
    for (size_t at = 0, size; at < whole; at += size) {
        char text[4];
        uint32_t c = chat_utf8_next(pending->at + at, whole - at, &size);
        fwrite(text, 1, chat_utf8_put(c, text), stdout);
    }
    if (whole) /* nothing yet may also be nowhere */
        memmove(pending->at, pending->at + whole, pending->n - whole);
    pending->n -= whole;
    return chat_flush(why);
}

/* Reads what of `tokens` the model has not seen; it must begin with what it has. */
static bool read_new(talk *t, const chat_tokens *tokens, const float **logits, pace *p)
{
    size_t same = 0;
    while (same < t->seen.n && same < tokens->n && t->seen.at[same] == tokens->at[same])
        same++;
    if (same < t->seen.n || same == tokens->n) {
        chat_engine_reset(t->engine);
        t->seen.n = same = 0;
    }
    for (size_t i = 0; i < tokens->n; i++)
        if (tokens->at[i] < 0 || (size_t)tokens->at[i] >= chat_engine_vocab(t->engine))
            return chat_fail(&t->why, "there is no token %d", (int)tokens->at[i]);
    if (tokens->n == 0)
        return chat_fail(&t->why, "there is nothing to answer: no token was given");
    double start = now();
    if (!chat_engine_feed(t->engine, tokens->at + same, tokens->n - same, logits, &t->why))
        return false;
    for (size_t i = same; i < tokens->n; i++)
        chat_tokens_add(&t->seen, tokens->at[i]);
    p->n_read = tokens->n - same;
    p->read_s = now() - start;
    return !t->seen.failed || chat_fail(&t->why, "out of memory");
}

/* Up to `count` tokens; the one that ends the answer is the last of them. */
static bool say(talk *t, const float *logits, chat_tokens *said, chat_bytes *text, pace *p)
{
    const chat_options *o = t->options;
    chat_bytes pending = {0};
    double start = now();
    bool ok = true;
    while (ok && said->n < o->count) {
        int32_t token = chat_sample(&t->sampler, logits, chat_engine_vocab(t->engine), t->room);
        chat_tokens_add(said, token);
        if (chat_vocab_ends(t->vocab, token) && !o->ignore_end)
            break;
        if (!o->print_tokens) {
            chat_decode(t->vocab, token, o->ignore_end, &pending);
            chat_decode(t->vocab, token, o->ignore_end, text);
            ok = print_text(&pending, false, &t->why);
        }
        if (!ok || said->n == o->count || chat_engine_room(t->engine) == 0)
            break;
        ok = chat_engine_feed(t->engine, &token, 1, &logits, &t->why);
        chat_tokens_add(&t->seen, token);
    }
    p->n_said = said->n;
    p->said_s = now() - start;
    ok = ok && print_text(&pending, true, &t->why);
    bool failed = said->failed || pending.failed || text->failed || t->seen.failed;
    chat_bytes_free(&pending);
    return ok && (!failed || chat_fail(&t->why, "out of memory"));
}

static void print_pace(const talk *t, const pace *p)
{
    if (t->options->quiet)
        return;
    /* the first token said comes from reading; the time of the others is what speaking takes */
    double steps = p->n_said > 1 ? (double)(p->n_said - 1) : 0;
    fprintf(stderr,
            "[read %zu tokens at %.1f tokens/s, said %zu at %.1f tokens/s, %.1f MiB of weights]\n",
            p->n_read, p->read_s > 0 ? (double)p->n_read / p->read_s : 0, p->n_said,
            p->said_s > 0 ? steps / p->said_s : 0,
            (double)chat_engine_weights_peak(t->engine) / (1 << 20));
}

/* The model's answer to `tokens`, printed as it comes. */
static bool answer(talk *t, const chat_tokens *tokens, chat_bytes *text)
{
    const float *logits = NULL;
    chat_tokens said = {0};
    pace p = {0};
    bool ok = read_new(t, tokens, &logits, &p) && say(t, logits, &said, text, &p);
    if (ok) {
        if (t->options->print_tokens)
            print_tokens(said.at, said.n);
        else
            putchar('\n');
        print_pace(t, &p);
        ok = chat_flush(&t->why);
    }
    chat_tokens_free(&said);
    return ok;
}

/* -- the two ways to use it -- */

static bool begin(talk *t)
{
    const char *system = t->options->system;
    return !system || remember(t, "system", system, strlen(system));
}

static int answer_once(talk *t)
{
    const chat_options *o = t->options;
    chat_tokens tokens = {0};
    chat_bytes text = {0};
    bool ok = begin(t);
    if (ok && o->raw)
        ok = plain(t, o->prompt, &tokens);
    else if (ok && !o->has_tokens)
        ok = remember(t, "user", o->prompt, strlen(o->prompt)) && conversation(t, &tokens);
    if (ok && o->tokenize)
        print_tokens(tokens.at, tokens.n);
    else if (ok)
        ok = answer(t, o->has_tokens ? &o->tokens : &tokens, &text);
    chat_tokens_free(&tokens);
    chat_bytes_free(&text);
    return ok ? 0 : fail(t);
}

/* A line of any length; false at the end of input. */
static bool read_line(chat_bytes *line)
{
    int c;
    line->n = 0;
    while ((c = getchar()) != EOF && c != '\n') {
        char byte = (char)c;
        chat_bytes_add(line, &byte, 1);
    }
    return c != EOF || line->n;
}

static bool turn(talk *t, const chat_bytes *line)
{
    chat_tokens tokens = {0};
    chat_bytes text = {0};
    bool ok = remember(t, "user", line->at, line->n) && conversation(t, &tokens) &&
              answer(t, &tokens, &text) && remember(t, "assistant", text.at, text.n);
    chat_tokens_free(&tokens);
    chat_bytes_free(&text);
    return ok;
}

static int converse(talk *t)
{
    bool shows = isatty(STDIN_FILENO);
    chat_bytes line = {0};
    int code = begin(t) ? 0 : fail(t);
    if (shows)
        puts("Write to the model. /new begins again, /quit or Ctrl-D ends.");
    while (!code) {
        if (shows)
            fputs("\n> ", stdout);
        fflush(stdout);
        if (!read_line(&line) || (line.n == 5 && !memcmp(line.at, "/quit", 5)))
            break;
        if (line.n == 4 && !memcmp(line.at, "/new", 4)) {
            forget(t);
            chat_engine_reset(t->engine);
            code = begin(t) ? 0 : fail(t);
        } else if (line.n && !turn(t, &line)) {
            code = fail(t);
        }
    }
    chat_bytes_free(&line);
    return code;
}

/* To see tokens the vocabulary is enough. */
static bool open_vocab(talk *t)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/model.oinf", t->options->engine.folder);
    if (oi_model_open(path, &t->model, NULL) != OI_OK)
        return chat_fail(&t->why, "%s cannot be opened; openinfer inspect says why", path);
    return chat_vocab_load(t->model, &t->vocab, &t->why);
}

/* A vocabulary of another size belongs to another model. */
static bool open_talk(talk *t)
{
    if (t->options->tokenize)
        return open_vocab(t);
    if (!chat_engine_open(&t->options->engine, &t->engine, &t->why) ||
        !chat_vocab_load(chat_engine_model(t->engine), &t->vocab, &t->why))
        return false;
    size_t n = chat_engine_vocab(t->engine);
    if (chat_vocab_size(t->vocab) > n)
        return chat_fail(&t->why, "the tokenizer has %zu tokens, the model %zu",
                         chat_vocab_size(t->vocab), n);
    t->room = malloc((n + 1) * sizeof *t->room);
    return t->room || chat_fail(&t->why, "out of memory");
}

int chat_talk(const chat_options *options)
{
    talk t = {.options = options, .sampler = options->sampler};
    bool once = options->prompt || options->has_tokens;
    int code = !open_talk(&t) ? fail(&t) : once ? answer_once(&t) : converse(&t);
    forget(&t);
    free(t.messages);
    free(t.room);
    chat_tokens_free(&t.seen);
    chat_vocab_free(t.vocab);
    chat_engine_close(t.engine);
    oi_model_close(t.model);
    return code;
}
