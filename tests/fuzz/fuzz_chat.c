/* fuzz_chat.c: a tokenizer and a chat template out of a package, and text for them. The input is
 * four fields that NUL bytes separate: tokens (one a line), merges (one a line), template, text.
 * When it begins with 0xFF the offsets of the tokens are the first bytes of the text instead.
 * Whatever loads must encode without reading elsewhere, every token must be one of the vocabulary,
 * and encoding what was decoded must give the same bytes again. */
#include "chat.h"

#include "openinfer.h"

#define MAX_FIELD (1 << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct field {
    const char *at;
    size_t n;
} field;

static field take_field(const uint8_t **data, size_t *size)
{
    const uint8_t *end = memchr(*data, 0, *size);
    field f = {(const char *)*data, end ? (size_t)(end - *data) : *size};
    *data += f.n + (end != NULL);
    *size -= f.n + (end != NULL);
    return f;
}

static void write_lines(oi_writer *w, const char *key, field f, field offsets)
{
    char offsets_key[64];
    uint32_t *at = malloc((f.n + 2) * sizeof *at);
    uint64_t n = 1, n_bytes = 0;
    char *text = malloc(f.n + 1);
    at[0] = 0;
    for (size_t i = 0; i < f.n; i++) {
        if (f.at[i] != '\n')
            text[n_bytes++] = f.at[i];
        else
            at[n++] = (uint32_t)n_bytes;
    }
    at[n++] = (uint32_t)n_bytes;
    if (offsets.n >= 4) {
        n = offsets.n / 4 < n ? offsets.n / 4 : n;
        memcpy(at, offsets.at, (size_t)n * 4);
    }
    snprintf(offsets_key, sizeof offsets_key, "%s.offsets", key);
    (void)oi_writer_ndarray(w, key, &(oi_view){OI_U8, 1, &n_bytes, text, n_bytes, n_bytes}, NULL);
    (void)oi_writer_ndarray(w, offsets_key, &(oi_view){OI_U32, 1, &n, at, n, 4 * n}, NULL);
    free(at);
    free(text);
}

static oi_model *model_of(field tokens, field merges, field template, field offsets, void **package)
{
    size_t n = 0;
    oi_model *model = NULL;
    oi_writer *w = oi_writer_new();
    uint64_t n_types = 1;
    for (size_t i = 0; i < tokens.n; i++)
        n_types += tokens.at[i] == '\n';
    int32_t *types = malloc(n_types * sizeof *types);
    for (uint64_t i = 0; i < n_types; i++)
        types[i] = (int32_t)(i < 4 ? 3 + i % 2 : 1);
    write_lines(w, "tokenizer.tokens", tokens, offsets);
    write_lines(w, "tokenizer.merges", merges, (field){0});
    (void)oi_writer_text(w, "tokenizer.model", "gpt2", 4, NULL);
    (void)oi_writer_text(w, "tokenizer.pre", "smollm", 6, NULL);
    (void)oi_writer_text(w, "tokenizer.chat_template", template.at, template.n, NULL);
    (void)oi_writer_ndarray(w, "tokenizer.types",
                            &(oi_view){OI_I32, 1, &n_types, types, n_types, 4 * n_types}, NULL);
    if (oi_writer_finish_memory(w, package, &n, NULL) == OI_OK)
        (void)oi_model_open_memory(*package, n, NULL, &model, NULL);
    oi_writer_free(w);
    free(types);
    return model;
}

static void encode(const chat_vocab *v, const chat_parts *parts)
{
    chat_tokens tokens = {0}, again = {0};
    chat_bytes text = {0}, back = {0};
    chat_why why;
    if (chat_encode(v, parts, &tokens, &why)) {
        for (size_t i = 0; i < tokens.n; i++) {
            if (tokens.at[i] < 0 || (size_t)tokens.at[i] >= chat_vocab_size(v))
                abort();
            chat_decode(v, tokens.at[i], true, &text);
        }
        chat_parts copy = {0};
        chat_parts_add(&copy, text.at, text.n, true);
        if (chat_encode(v, &copy, &again, &why))
            for (size_t i = 0; i < again.n; i++)
                chat_decode(v, again.at[i], true, &back);
        if (text.n && chat_utf8_whole(text.at, text.n) > text.n)
            abort();
        chat_parts_free(&copy);
    }
    chat_tokens_free(&tokens);
    chat_tokens_free(&again);
    chat_bytes_free(&text);
    chat_bytes_free(&back);
}

static void converse(const chat_vocab *v, field text)
{
    chat_why why;
    chat_parts raw = {0}, written = {0};
    char *content = calloc(text.n + 1, 1);
    if (text.n)
        memcpy(content, text.at, text.n);
    chat_message messages[] = {{"user", content}, {"assistant", "x"}, {"user", content}};
    chat_parts_add(&raw, text.at, text.n, false);
    chat_parts_add(&raw, text.at, text.n, true);
    encode(v, &raw);
    if (chat_template_write(chat_vocab_template(v), messages, 3, true, "<s>", "</s>", &written,
                            &why))
        encode(v, &written);
    chat_parts_free(&raw);
    chat_parts_free(&written);
    free(content);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool has_offsets = size && data[0] == 0xFF;
    void *package = NULL;
    chat_vocab *vocab = NULL;
    chat_why why;
    if (size > MAX_FIELD)
        return 0;
    data += has_offsets;
    size -= has_offsets;
    field tokens = take_field(&data, &size), merges = take_field(&data, &size);
    field template = take_field(&data, &size), text = {(const char *)data, size};
    oi_model *model = model_of(tokens, merges, template, has_offsets ? text : (field){0}, &package);
    if (model && chat_vocab_load(model, &vocab, &why))
        converse(vocab, text);
    chat_vocab_free(vocab);
    oi_model_close(model);
    oi_free(package);
    return 0;
}
