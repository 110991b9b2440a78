/* vocab.c: the vocabulary and the merges of a package, in two hash tables: text to token, and pair
 * of tokens to what they merge into. Everything in the metadata is checked first: a package is
 * untrusted. Memory is bounded by its size. */
#include "chat.h"

typedef struct strings { /* texts one after the other; text i is bytes[offsets[i] .. offsets[i+1])
                          */
    const char *bytes;
    const unsigned char *offsets; /* u32, little-endian, not aligned */
    size_t n;
} strings;

typedef struct merge {
    int32_t left, right, merged; /* left < 0: an empty slot */
    uint32_t rank;
} merge;

struct chat_vocab {
    strings tokens;
    const unsigned char *types; /* i32; NULL: all normal */
    int32_t *by_text;           /* open addressing, a power of two */
    size_t n_by_text;
    merge *merges;
    size_t n_merges;
    int32_t bytes[256];
    int32_t *specials;
    size_t n_specials;
    int32_t bos;
    bool adds_bos;
    int32_t ends[4]; /* or CHAT_NO_TOKEN */
    char *chat_template;
};

/* -- bytes as characters -- */

static bool is_printed_as_itself(unsigned c)
{
    return (c >= '!' && c <= '~') || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF);
}

/* GPT-2 writes bytes that print as themselves, and the others, in order, from U+0100 on. */
uint32_t chat_byte_char(uint8_t byte)
{
    uint32_t others = 0;
    if (is_printed_as_itself(byte))
        return byte;
    for (unsigned c = 0; c < byte; c++)
        others += !is_printed_as_itself(c);
    return 0x100 + others;
}

bool chat_char_byte(uint32_t c, uint8_t *byte)
{
    uint32_t written_as = 0x100;
    *byte = (uint8_t)c;
    if (c < 0x100)
        return is_printed_as_itself(c);
    for (unsigned b = 0; b < 0x100; b++) {
        if (is_printed_as_itself(b) || written_as++ != c)
            continue;
        *byte = (uint8_t)b;
        return true;
    }
    return false;
}

/* -- reading metadata -- */

static uint32_t u32_at(const unsigned char *p, size_t i)
{
    uint32_t v;
    memcpy(&v, p + 4 * i, sizeof v);
    return v;
}

static const char *string_at(const strings *s, size_t i, size_t *n)
{
    uint32_t start = u32_at(s->offsets, i);
    *n = u32_at(s->offsets, i + 1) - start;
    return s->bytes + start;
}

/* KEY is the bytes of all texts, KEY.offsets where they begin. */
static bool read_strings(oi_model *m, const char *key, strings *out, chat_why *why)
{
    char offsets_key[64];
    oi_view bytes, offsets;
    snprintf(offsets_key, sizeof offsets_key, "%s.offsets", key);
    if (oi_model_meta(m, key, &bytes, NULL) != OI_OK || bytes.dtype != OI_U8 || bytes.rank != 1)
        return chat_fail(why, "the package has no %s (a u8 array): it carries no tokenizer", key);
    if (oi_model_meta(m, offsets_key, &offsets, NULL) != OI_OK || offsets.dtype != OI_U32 ||
        offsets.rank != 1 || offsets.n_elements < 1)
        return chat_fail(why, "the package has no %s (a u32 array)", offsets_key);
    *out = (strings){bytes.data ? bytes.data : "", offsets.data, (size_t)offsets.n_elements - 1};
    uint32_t last = u32_at(out->offsets, 0);
    for (size_t i = 0; i < out->n; i++) {
        uint32_t end = u32_at(out->offsets, i + 1);
        if (end < last || end > bytes.n_elements)
            return chat_fail(why, "%s[%zu] is %u: it must be between %u and %llu", offsets_key,
                             i + 1, end, last, (unsigned long long)bytes.n_elements);
        last = end;
    }
    if (out->n > INT32_MAX)
        return chat_fail(why, "%s: %zu texts are too many", key, out->n);
    return true;
}

/* A token id stored as a number; CHAT_NO_TOKEN when the key is absent. */
static bool read_id(oi_model *m, const char *key, size_t n_tokens, int32_t *out, chat_why *why)
{
    int64_t v = 0;
    oi_status status = oi_model_meta_i64(m, key, &v, NULL);
    *out = CHAT_NO_TOKEN;
    if (status == OI_NOT_FOUND)
        return true;
    if (status != OI_OK || v < 0 || (uint64_t)v >= n_tokens)
        return chat_fail(why, "%s is not a token of the vocabulary", key);
    *out = (int32_t)v;
    return true;
}

/* -- tables -- */

static uint64_t hash(const char *text, size_t n)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001B3u;
    return h ^ h >> 32;
}

static size_t table_size(size_t n)
{
    size_t size = 16;
    while (size < 2 * n)
        size *= 2;
    return size;
}

int32_t chat_vocab_find(const chat_vocab *v, const char *text, size_t n)
{
    size_t mask = v->n_by_text - 1;
    for (size_t i = hash(text, n) & mask; v->by_text[i] >= 0; i = (i + 1) & mask) {
        size_t length;
        const char *found = string_at(&v->tokens, (size_t)v->by_text[i], &length);
        if (length == n && !memcmp(found, text, n))
            return v->by_text[i];
    }
    return CHAT_NO_TOKEN;
}

static bool index_tokens(chat_vocab *v, chat_why *why)
{
    v->n_by_text = table_size(v->tokens.n);
    v->by_text = malloc(v->n_by_text * sizeof *v->by_text);
    if (!v->by_text)
        return chat_fail(why, "out of memory");
    for (size_t i = 0; i < v->n_by_text; i++)
        v->by_text[i] = CHAT_NO_TOKEN;
    for (size_t t = 0; t < v->tokens.n; t++) {
        size_t n, mask = v->n_by_text - 1;
        const char *text = string_at(&v->tokens, t, &n);
        if (chat_vocab_find(v, text, n) != CHAT_NO_TOKEN)
            continue; /* the first of equal texts is meant */
        size_t i = hash(text, n) & mask;
        while (v->by_text[i] >= 0)
            i = (i + 1) & mask;
        v->by_text[i] = (int32_t)t;
    }
    for (unsigned b = 0; b < 256; b++) {
        char text[4];
        v->bytes[b] = chat_vocab_find(v, text, chat_utf8_put(chat_byte_char((uint8_t)b), text));
    }
    return true;
}

/* The slot of a pair, or the empty one where it would be. */
static merge *slot_of(const chat_vocab *v, int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    size_t mask = v->n_merges - 1, i = (h >> 20) & mask;
    while (v->merges[i].left >= 0 && (v->merges[i].left != left || v->merges[i].right != right))
        i = (i + 1) & mask;
    return &v->merges[i];
}

/* "left right", both and their join being tokens. */
static bool add_merge(chat_vocab *v, const char *text, size_t n, uint32_t rank, chat_why *why)
{
    /* the blank at the very beginning cannot be the separator */
    const char *blank = n > 1 ? memchr(text + 1, ' ', n - 1) : NULL;
    chat_bytes joined = {0};
    merge m = {
        .rank = rank, .left = CHAT_NO_TOKEN, .right = CHAT_NO_TOKEN, .merged = CHAT_NO_TOKEN};
    if (blank) {
        size_t n_left = (size_t)(blank - text), n_right = n - n_left - 1;
        chat_bytes_add(&joined, text, n_left);
        chat_bytes_add(&joined, blank + 1, n_right);
        m.left = chat_vocab_find(v, text, n_left);
        m.right = chat_vocab_find(v, blank + 1, n_right);
        m.merged =
            joined.failed || !joined.n ? CHAT_NO_TOKEN : chat_vocab_find(v, joined.at, joined.n);
    }
    bool failed = joined.failed;
    chat_bytes_free(&joined);
    if (failed)
        return chat_fail(why, "out of memory");
    if (m.left < 0 || m.right < 0 || m.merged < 0)
        return chat_fail(why, "tokenizer.merges: rule %u, '%.*s', is not about tokens", rank,
                         (int)(n > 60 ? 60 : n), text);
    merge *slot = slot_of(v, m.left, m.right);
    if (slot->left < 0)
        *slot = m; /* a rule given twice counts as the first */
    return true;
}

static bool index_merges(chat_vocab *v, oi_model *model, chat_why *why)
{
    strings rules;
    if (!read_strings(model, "tokenizer.merges", &rules, why))
        return false;
    v->n_merges = table_size(rules.n);
    v->merges = malloc(v->n_merges * sizeof *v->merges);
    if (!v->merges)
        return chat_fail(why, "out of memory");
    for (size_t i = 0; i < v->n_merges; i++)
        v->merges[i].left = CHAT_NO_TOKEN;
    for (size_t i = 0; i < rules.n; i++) {
        size_t n;
        const char *text = string_at(&rules, i, &n);
        if (!add_merge(v, text, n, (uint32_t)i, why))
            return false;
    }
    return true;
}

/* -- special tokens -- */

static size_t length_of(const chat_vocab *v, int32_t token)
{
    size_t n;
    (void)string_at(&v->tokens, (size_t)token, &n);
    return n;
}

static bool read_types(chat_vocab *v, oi_model *model, chat_why *why)
{
    oi_view types;
    oi_status status = oi_model_meta(model, "tokenizer.types", &types, NULL);
    if (status == OI_NOT_FOUND)
        return true;
    if (status != OI_OK || types.dtype != OI_I32 || types.rank != 1 ||
        types.n_elements != v->tokens.n)
        return chat_fail(why, "tokenizer.types is not an i32 array with one value per token");
    v->types = types.data;
    return true;
}

static bool is_special(const chat_vocab *v, int32_t token)
{
    chat_token_type type = chat_vocab_type(v, token);
    return (type == CHAT_CONTROL || type == CHAT_USER_DEFINED || type == CHAT_UNKNOWN) &&
           length_of(v, token) > 0;
}

/* Longest first, so that a token whose text contains another's is found as itself. Tokens of one
 * length keep their order: counted, then placed. */
static bool list_specials(chat_vocab *v, chat_why *why)
{
    size_t longest = 0, n = 0;
    for (size_t t = 0; t < v->tokens.n; t++)
        if (is_special(v, (int32_t)t)) {
            size_t length = length_of(v, (int32_t)t);
            longest = length > longest ? length : longest;
            n++;
        }
    size_t *place = calloc(longest + 2, sizeof *place);
    v->specials = malloc((n + 1) * sizeof *v->specials);
    if (!place || !v->specials) {
        free(place);
        return chat_fail(why, "out of memory");
    }
    for (size_t t = 0; t < v->tokens.n; t++)
        if (is_special(v, (int32_t)t))
            place[length_of(v, (int32_t)t)]++;
    size_t before = 0;
    for (size_t length = longest + 1; length-- > 0;) {
        size_t here = place[length];
        place[length] = before;
        before += here;
    }
    for (size_t t = 0; t < v->tokens.n; t++)
        if (is_special(v, (int32_t)t))
            v->specials[place[length_of(v, (int32_t)t)]++] = (int32_t)t;
    v->n_specials = n;
    free(place);
    return true;
}

static bool read_specials(chat_vocab *v, oi_model *model, chat_why *why)
{
    /* these texts end a message in every vocabulary that has them as control tokens */
    static const char *const names[] = {"<|im_end|>", "<|endoftext|>"};
    if (!read_types(v, model, why) || !list_specials(v, why) ||
        !read_id(model, "tokenizer.bos_id", v->tokens.n, &v->bos, why) ||
        !read_id(model, "tokenizer.eos_id", v->tokens.n, &v->ends[0], why) ||
        !read_id(model, "tokenizer.eot_id", v->tokens.n, &v->ends[1], why))
        return false;
    for (size_t i = 0; i < 2; i++) {
        int32_t token = chat_vocab_find(v, names[i], strlen(names[i]));
        bool is_control = token >= 0 && chat_vocab_type(v, token) == CHAT_CONTROL;
        v->ends[2 + i] = is_control ? token : CHAT_NO_TOKEN;
    }
    (void)oi_model_meta_bool(model, "tokenizer.add_bos", &v->adds_bos, NULL);
    if (v->adds_bos && v->bos < 0)
        return chat_fail(why, "tokenizer.add_bos is set, but there is no tokenizer.bos_id");
    return true;
}

/* Which tokenizers we know. Splitting text by another rule would give other tokens, quietly. */
static bool check_kind(oi_model *model, chat_why *why)
{
    static const struct {
        const char *key, *wanted;
    } rows[] = {{"tokenizer.model", "gpt2"}, {"tokenizer.pre", "smollm"}};
    for (size_t i = 0; i < 2; i++) {
        char *text = NULL;
        bool is_known = oi_model_meta_text(model, rows[i].key, &text, NULL, NULL) == OI_OK &&
                        !strcmp(text, rows[i].wanted);
        if (!is_known)
            chat_fail(why, "%s is '%.60s': only '%s' is understood", rows[i].key, text ? text : "",
                      rows[i].wanted);
        oi_free(text);
        if (!is_known)
            return false;
    }
    return true;
}

static bool load(chat_vocab *v, oi_model *model, chat_why *why)
{
    if (!read_strings(model, "tokenizer.tokens", &v->tokens, why) || !check_kind(model, why) ||
        !index_tokens(v, why) || !index_merges(v, model, why) || !read_specials(v, model, why))
        return false;
    oi_status status =
        oi_model_meta_text(model, "tokenizer.chat_template", &v->chat_template, NULL, NULL);
    if (status != OI_OK && status != OI_NOT_FOUND)
        return chat_fail(why, "tokenizer.chat_template is not text");
    return true;
}

bool chat_vocab_load(oi_model *model, chat_vocab **out, chat_why *why)
{
    chat_vocab *v = calloc(1, sizeof *v);
    *out = NULL;
    if (!v)
        return chat_fail(why, "out of memory");
    if (!load(v, model, why)) {
        chat_vocab_free(v);
        return false;
    }
    *out = v;
    return true;
}

void chat_vocab_free(chat_vocab *v)
{
    if (!v)
        return;
    free(v->by_text);
    free(v->merges);
    free(v->specials);
    oi_free(v->chat_template);
    free(v);
}

/* -- asking -- */

size_t chat_vocab_size(const chat_vocab *v)
{
    return v->tokens.n;
}

const char *chat_vocab_text(const chat_vocab *v, int32_t token, size_t *n)
{
    *n = 0;
    return token >= 0 && (size_t)token < v->tokens.n ? string_at(&v->tokens, (size_t)token, n) : "";
}

chat_token_type chat_vocab_type(const chat_vocab *v, int32_t token)
{
    if (!v->types || token < 0 || (size_t)token >= v->tokens.n)
        return CHAT_NORMAL;
    return (chat_token_type)u32_at(v->types, (size_t)token);
}

int32_t chat_vocab_byte(const chat_vocab *v, uint8_t byte)
{
    return v->bytes[byte];
}

bool chat_vocab_merge(const chat_vocab *v, int32_t left, int32_t right, uint32_t *rank,
                      int32_t *merged)
{
    const merge *m = slot_of(v, left, right);
    *rank = m->rank;
    *merged = m->merged;
    return m->left >= 0;
}

const int32_t *chat_vocab_specials(const chat_vocab *v, size_t *n)
{
    *n = v->n_specials;
    return v->specials;
}

bool chat_vocab_ends(const chat_vocab *v, int32_t token)
{
    bool ends = false;
    for (size_t i = 0; i < sizeof v->ends / sizeof *v->ends; i++)
        ends = ends || (token >= 0 && v->ends[i] == token);
    return ends;
}

int32_t chat_vocab_bos(const chat_vocab *v)
{
    return v->bos;
}

bool chat_vocab_adds_bos(const chat_vocab *v)
{
    return v->adds_bos;
}

const char *chat_vocab_template(const chat_vocab *v)
{
    return v->chat_template ? v->chat_template : "";
}
