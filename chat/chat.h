/* chat.h: what the files of oi-chat share. They call only openinfer.h.
 *
 * Text becomes tokens in four steps: vocab.c reads the vocabulary of a package, template.c writes a
 * conversation as the model was trained to see it, split.c cuts text into words, bpe.c merges their
 * bytes into tokens. engine.c runs the model in the simulator or, with compiled.c, as the emitted
 * program, which cache.c keeps; sample.c chooses the next token, talk.c is the loop.
 */
#ifndef CHAT_H
#define CHAT_H

#include "openinfer.h"

/* Why something failed, for people. */
typedef struct chat_why {
    char text[512];
} chat_why;
/* Writes the reason and returns false. */
bool chat_fail(chat_why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether all that was printed could be written. */
bool chat_flush(chat_why *why);

/* A list that grows; `failed` is set, and nothing more is added, when memory is out. */
typedef struct chat_bytes {
    char *at;
    size_t n, room;
    bool failed;
} chat_bytes;
void chat_bytes_add(chat_bytes *b, const void *data, size_t n);
void chat_bytes_free(chat_bytes *b);

typedef struct chat_tokens {
    int32_t *at;
    size_t n, room;
    bool failed;
} chat_tokens;
void chat_tokens_add(chat_tokens *t, int32_t token);
void chat_tokens_free(chat_tokens *t);

/* -- unicode.c -- */

bool chat_is_letter(uint32_t c);
bool chat_is_number(uint32_t c);
bool chat_is_space(uint32_t c);
/* The code point at `text`, n > 0 bytes, and how many bytes it takes; a byte that begins none is
 * U+FFFD and takes one. */
uint32_t chat_utf8_next(const char *text, size_t n, size_t *size);
size_t chat_utf8_put(uint32_t c, char out[4]);
/* How many of the n bytes are whole characters: the rest may become one with more bytes. */
size_t chat_utf8_whole(const char *text, size_t n);

/* -- vocab.c -- */

typedef enum chat_token_type {
    CHAT_NORMAL = 1,
    CHAT_UNKNOWN,
    CHAT_CONTROL,
    CHAT_USER_DEFINED,
    CHAT_UNUSED,
    CHAT_BYTE
} chat_token_type;

#define CHAT_NO_TOKEN (-1)

typedef struct chat_vocab chat_vocab;
/* From the metadata tokenizer.* of a package, which must stay open. */
bool chat_vocab_load(oi_model *model, chat_vocab **out, chat_why *why);
void chat_vocab_free(chat_vocab *v);
size_t chat_vocab_size(const chat_vocab *v);
const char *chat_vocab_text(const chat_vocab *v, int32_t token, size_t *n);
chat_token_type chat_vocab_type(const chat_vocab *v, int32_t token);
int32_t chat_vocab_find(const chat_vocab *v, const char *text, size_t n); /* or CHAT_NO_TOKEN */
int32_t chat_vocab_byte(const chat_vocab *v, uint8_t byte);
/* What two neighbours become, and how early; false when they do not merge. */
bool chat_vocab_merge(const chat_vocab *v, int32_t left, int32_t right, uint32_t *rank,
                      int32_t *merged);
/* Tokens that text may name outright, longest first. */
const int32_t *chat_vocab_specials(const chat_vocab *v, size_t *n);
bool chat_vocab_ends(const chat_vocab *v, int32_t token); /* does it end what the model says? */
int32_t chat_vocab_bos(const chat_vocab *v);              /* CHAT_NO_TOKEN: none */
bool chat_vocab_adds_bos(const chat_vocab *v);
const char *chat_vocab_template(const chat_vocab *v); /* "" when the package has none */

/* The 256 characters that byte-level BPE writes bytes as. */
uint32_t chat_byte_char(uint8_t byte);
bool chat_char_byte(uint32_t c, uint8_t *byte);

/* -- split.c -- */

/* The next word of text[at..n), as its length in bytes. */
size_t chat_split_next(const char *text, size_t n, size_t at);

/* -- bpe.c -- */

/* A stretch of text. In trusted ones the names of control tokens stand for those tokens; what a
 * user wrote is not trusted, so that no text can end the model's turn by spelling its end. */
typedef struct chat_part {
    size_t start, end;
    bool trusted;
} chat_part;

typedef struct chat_parts {
    chat_bytes text;
    chat_part *at;
    size_t n, room;
    bool failed;
} chat_parts;
void chat_parts_add(chat_parts *p, const char *text, size_t n, bool trusted);
void chat_parts_free(chat_parts *p);

bool chat_encode(const chat_vocab *v, const chat_parts *parts, chat_tokens *out, chat_why *why);
/* The bytes a token stands for; control tokens only with `show_control`. */
void chat_decode(const chat_vocab *v, int32_t token, bool show_control, chat_bytes *out);

/* -- template.c -- */

typedef struct chat_message {
    const char *role, *content;
} chat_message;

/* Writes the conversation by the template of the model (Jinja, the part of it that templates of
 * conversations use). What is not understood is an error that names the place. With
 * `for_answer` the beginning of the model's next message follows. */
bool chat_template_write(const char *source, const chat_message *messages, size_t n_messages,
                         bool for_answer, const char *bos, const char *eos, chat_parts *out,
                         chat_why *why);

/* -- sample.c -- */

typedef struct chat_sampler {
    bool greedy;
    float temperature; /* > 0 */
    uint32_t top_k;    /* 0: all */
    float top_p;       /* (0, 1] */
    uint64_t state;    /* of the generator; begins with the seed */
} chat_sampler;

typedef struct chat_candidate {
    int32_t token;
    float p;
} chat_candidate;

/* One token by its logits; `room` holds n candidates. */
int32_t chat_sample(chat_sampler *s, const float *logits, size_t n, chat_candidate *room);

/* -- engine.c -- */

typedef enum chat_kind {
    CHAT_EITHER, /* the emitted program where one can be made and loaded, else the simulator */
    CHAT_SIMULATED,
    CHAT_COMPILED
} chat_kind;

typedef struct chat_engine_options {
    const char *folder; /* with model.oinf, prefill.oi and decode.oi */
    oi_run_on device;
    const char *device_name; /* which one of its kind; NULL: the best */
    uint32_t threads;
    uint64_t memory_limit;
    uint64_t context; /* positions in the cache; 0: as the model says */
    chat_kind kind;
    bool quiet; /* nothing about making it */
} chat_engine_options;

typedef struct chat_engine chat_engine;
bool chat_engine_open(const chat_engine_options *options, chat_engine **out, chat_why *why);
void chat_engine_close(chat_engine *e);
oi_model *chat_engine_model(const chat_engine *e);
size_t chat_engine_vocab(const chat_engine *e);
size_t chat_engine_room(const chat_engine *e); /* tokens that still fit */
/* Appends tokens to what the model has seen; *logits belong to the last one and stay valid until
 * the next call.
 */
bool chat_engine_feed(chat_engine *e, const int32_t *tokens, size_t n, const float **logits,
                      chat_why *why);
void chat_engine_reset(chat_engine *e);
uint64_t chat_engine_weights_peak(const chat_engine *e); /* most bytes of weights at once */

/* -- blake2b.c -- */

#define CHAT_HASH_TEXT 65 /* in hexadecimal, with its end */

typedef struct chat_hash {
    uint64_t state[8], total;
    uint8_t block[128];
    size_t used;
} chat_hash;
void chat_hash_begin(chat_hash *h);
void chat_hash_add(chat_hash *h, const void *data, size_t n);
void chat_hash_end(chat_hash *h, char out[CHAT_HASH_TEXT]);

/* -- cache.c: where compiled programs are kept -- */

#define CHAT_PATH 4096

typedef struct chat_cache {
    char folder[CHAT_PATH - 128]; /* for programs of one model folder */
    char program[CHAT_PATH];      /* the one wanted, which may not be there yet */
    char key[CHAT_HASH_TEXT];
    int lock; /* -1: not held */
} chat_cache;
/* Waits until no other process uses the model folder's programs. `made_from` is all that the
 * program depends on. Close it also after a failure. */
bool chat_cache_open(chat_cache *c, const char *model_folder, const char *made_from, chat_why *why);
void chat_cache_close(chat_cache *c);
bool chat_cache_has(const chat_cache *c);
/* Makes an empty folder; commit makes what was put into it the program. */
bool chat_cache_begin(const chat_cache *c, char folder[CHAT_PATH], chat_why *why);
bool chat_cache_commit(const chat_cache *c, chat_why *why);

/* -- compiled.c: the emitted program -- */

typedef struct chat_compiled chat_compiled;
/* From the user's cache, or made for it. Also on failure *out is to be closed. */
bool chat_compiled_open(const chat_engine_options *o, oi_model *model, const oi_graph *prefill,
                        const oi_graph *decode, oi_diag *diag, chat_compiled **out, chat_why *why);
void chat_compiled_close(chat_compiled *c);
/* 0, or the number of the error. */
int chat_compiled_step(chat_compiled *c, bool is_decode, const int32_t *tokens, int32_t n,
                       int32_t more, const float **logits);
void chat_compiled_reset(chat_compiled *c);
uint64_t chat_compiled_weights(const chat_compiled *c);

/* -- options.c -- */

typedef struct chat_options {
    chat_engine_options engine;
    chat_sampler sampler;
    const char *prompt; /* NULL: talk */
    const char *system;
    chat_tokens tokens; /* --tokens */
    bool has_tokens, raw, print_tokens, tokenize, ignore_end, quiet, help;
    size_t count; /* most tokens of an answer */
} chat_options;
/* 0, or the exit code. */
int chat_options_read(int argc, char **argv, chat_options *out);

/* -- talk.c -- */

int chat_talk(const chat_options *options);

#endif
