/* bpe.c: text to tokens and back. The names of special tokens are found first; what lies between is
 * cut into words, and in each word the pair of neighbours with the lowest rank is merged until none
 * is left: a list of symbols, and a heap of the pairs that may merge. */
#include "chat.h"

#define NONE UINT32_MAX

typedef struct symbol {
    int32_t token; /* CHAT_NO_TOKEN: merged into the one before, or a byte without a token */
    uint32_t prev, next;
} symbol;

typedef struct pair { /* may be out of date when it is taken from the heap */
    uint32_t rank, left, right;
    int32_t left_token, right_token, merged;
} pair;

typedef struct work {
    const chat_vocab *vocab;
    symbol *symbols;
    pair *heap;
    size_t n_heap, room; /* symbols for a word of `room` bytes, three pairs for each */
} work;

static bool is_before(const pair *a, const pair *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->left < b->left;
}

static void push(work *w, pair p)
{
    size_t at = w->n_heap++;
    while (at > 0 && is_before(&p, &w->heap[(at - 1) / 2])) {
        w->heap[at] = w->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    w->heap[at] = p;
}

static pair pop(work *w)
{
    pair top = w->heap[0], last = w->heap[--w->n_heap];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < w->n_heap) {
        if (child + 1 < w->n_heap && is_before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!is_before(&w->heap[child], &last))
            break;
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = last;
    return top;
}

static void consider(work *w, uint32_t left, uint32_t right)
{
    if (left == NONE || right == NONE)
        return;
    pair p = {.left = left,
              .right = right,
              .left_token = w->symbols[left].token,
              .right_token = w->symbols[right].token};
    if (chat_vocab_merge(w->vocab, p.left_token, p.right_token, &p.rank, &p.merged))
        push(w, p);
}

/* A byte that no token stands for keeps its place, so that its neighbours do not merge, and is left
 * out in the end: there is nothing to say it with. */
static void set_symbols(work *w, const char *text, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        w->symbols[i] = (symbol){chat_vocab_byte(w->vocab, (uint8_t)text[i]), i ? i - 1 : NONE,
                                 i + 1 < n ? i + 1 : NONE};
}

/* Room for a word of n bytes. A merge takes one symbol away and adds two pairs at most. */
static bool make_room(work *w, size_t n)
{
    if (n <= w->room)
        return true;
    if (n > UINT32_MAX / 4)
        return false;
    size_t room = n < 256 ? 256 : n;
    symbol *symbols = realloc(w->symbols, room * sizeof *symbols);
    w->symbols = symbols ? symbols : w->symbols;
    pair *heap = realloc(w->heap, 3 * room * sizeof *heap);
    w->heap = heap ? heap : w->heap;
    w->room = symbols && heap ? room : 0;
    return w->room != 0;
}

static bool encode_word(work *w, const char *text, size_t n, chat_tokens *out)
{
    if (!make_room(w, n))
        return false;
    uint32_t count = (uint32_t)n;
    set_symbols(w, text, count);
    w->n_heap = 0;
    for (uint32_t i = 1; i < count; i++)
        consider(w, i - 1, i);
    while (w->n_heap) {
        pair p = pop(w);
        symbol *left = &w->symbols[p.left], *right = &w->symbols[p.right];
        if (left->token != p.left_token || right->token != p.right_token || left->next != p.right)
            continue;
        left->token = p.merged;
        left->next = right->next;
        right->token = CHAT_NO_TOKEN;
        if (left->next != NONE)
            w->symbols[left->next].prev = p.left;
        consider(w, left->prev, p.left);
        consider(w, p.left, left->next);
    }
    for (uint32_t i = 0; count && i != NONE; i = w->symbols[i].next)
        if (w->symbols[i].token != CHAT_NO_TOKEN)
            chat_tokens_add(out, w->symbols[i].token);
    return !out->failed;
}

/* -- special tokens in text -- */

/* The beginning of the next place at or after `at` where a special token's text stands in free,
 * trusted text; n: none. owner[i] is the token whose text covers byte i. */
static size_t find_special(const chat_parts *p, const int32_t *owner, size_t at, const char *text,
                           size_t length, bool everywhere)
{
    size_t part = 0, n = p->text.n;
    for (; at + length <= n; at++) {
        const char *found = memchr(p->text.at + at, text[0], n - length - at + 1);
        if (!found)
            return n;
        at = (size_t)(found - p->text.at);
        while (part + 1 < p->n && p->at[part].end <= at)
            part++;
        bool is_free = memcmp(found, text, length) == 0 &&
                       (everywhere || (p->at[part].trusted && at + length <= p->at[part].end));
        for (size_t i = 0; is_free && i < length; i++)
            is_free = owner[at + i] == CHAT_NO_TOKEN;
        if (is_free)
            return at;
    }
    return n;
}

static void mark_specials(const chat_vocab *v, const chat_parts *p, int32_t *owner)
{
    size_t n_specials, length;
    const int32_t *specials = chat_vocab_specials(v, &n_specials);
    for (size_t i = 0; i < p->text.n; i++)
        owner[i] = CHAT_NO_TOKEN;
    for (size_t s = 0; s < n_specials; s++) {
        const char *text = chat_vocab_text(v, specials[s], &length);
        bool everywhere = chat_vocab_type(v, specials[s]) == CHAT_USER_DEFINED;
        size_t at = find_special(p, owner, 0, text, length, everywhere);
        while (at < p->text.n) {
            for (size_t i = 0; i < length; i++)
                owner[at + i] = specials[s];
            at = find_special(p, owner, at + length, text, length, everywhere);
        }
    }
}

static bool encode_marked(work *w, const chat_parts *p, const int32_t *owner, chat_tokens *out)
{
    size_t at = 0, length, n = p->text.n;
    while (at < n) {
        if (owner[at] != CHAT_NO_TOKEN) {
            chat_tokens_add(out, owner[at]);
            (void)chat_vocab_text(w->vocab, owner[at], &length);
            at += length;
            continue;
        }
        size_t end = at;
        while (end < n && owner[end] == CHAT_NO_TOKEN)
            end++;
        while (at < end) {
            length = chat_split_next(p->text.at, end, at);
            if (!encode_word(w, p->text.at + at, length, out))
                return false;
            at += length;
        }
    }
    return !out->failed;
}

bool chat_encode(const chat_vocab *v, const chat_parts *parts, chat_tokens *out, chat_why *why)
{
    work w = {.vocab = v};
    int32_t *owner = malloc((parts->text.n + 1) * sizeof *owner);
    bool ok = owner && !parts->failed;
    if (ok) {
        mark_specials(v, parts, owner);
        int32_t bos = chat_vocab_bos(v);
        if (chat_vocab_adds_bos(v) && (parts->text.n == 0 || owner[0] != bos))
            chat_tokens_add(out, bos);
        ok = encode_marked(&w, parts, owner, out);
    }
    free(owner);
    free(w.symbols);
    free(w.heap);
    return ok || chat_fail(why, "out of memory");
}

void chat_decode(const chat_vocab *v, int32_t token, bool show_control, chat_bytes *out)
{
    size_t n, size;
    const char *text = chat_vocab_text(v, token, &n);
    chat_token_type type = chat_vocab_type(v, token);
    if (type == CHAT_CONTROL || type == CHAT_UNKNOWN || type == CHAT_USER_DEFINED) {
        if (show_control || type == CHAT_USER_DEFINED)
            chat_bytes_add(out, text, n);
        return;
    }
    for (size_t at = 0; at < n; at += size) {
        uint8_t byte;
        if (chat_char_byte(chat_utf8_next(text + at, n - at, &size), &byte))
            chat_bytes_add(out, &byte, 1);
        else
            chat_bytes_add(out, text + at, size);
    }
}
