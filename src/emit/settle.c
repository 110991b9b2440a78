/* settle.c: makes names of the graph final in the text of a function.
 *
 * Emitters print a name from the graph with a mark before it (OI_FROM_GRAPH), and their own words
 * without. When the text of a function is complete, settling removes the marks. A marked name gets
 * the prefix x_ if it equals one of the function's own words (a counter, a type, something it
 * calls) or is forbidden in the language. So no list of own words can be incomplete. */
#include "emit/emit.h"

typedef struct word {
    uint32_t own, marked; /* the last round in which it occurred so */
    uint32_t taken;       /* the last round in which it became some name's final form */
    uint32_t settled;     /* the last round in which it was settled, and its final form */
    const char *as;
} word;

struct oi_settler {
    oi_arena *arena;
    bool (*is_forbidden)(const char *name);
    oi_map ids; /* word -> place in `words` */
    OI_VEC(word) words;
    uint32_t round; /* number of calls: nothing is cleared between them */
};

oi_settler *oi_settler_new(oi_arena *a, bool (*is_forbidden)(const char *name))
{
    oi_settler *s = oi_arena_alloc(a, sizeof *s);
    s->arena = a;
    s->is_forbidden = is_forbidden;
    s->ids.arena = a;
    return s;
}

static word *find(oi_settler *s, const char *text, size_t n)
{
    char small[128];
    char *key = n < sizeof small ? small : oi_arena_alloc(s->arena, n + 1);
    memcpy(key, text, n);
    key[n] = '\0';
    uint32_t id = oi_map_get(&s->ids, key);
    if (id == OI_MAP_NONE) {
        id = (uint32_t)s->words.n;
        *OI_PUSH(s->arena, &s->words) = (word){.own = 0};
        oi_map_set(&s->ids, oi_arena_text(s->arena, key, n), id);
    }
    return &s->words.at[id];
}

/* -- reading C-like text -- */

typedef enum token_kind { TOKEN_OTHER, TOKEN_WORD, TOKEN_MARKED, TOKEN_MEMBER } token_kind;

typedef struct token {
    token_kind kind;
    const char *at;
    size_t n;
} token;

static size_t comment_size(const char *p, const char *end)
{
    const char *q = p + 2;
    while (q + 1 < end && !(q[0] == '*' && q[1] == '/'))
        q++;
    return q + 1 < end ? (size_t)(q + 2 - p) : (size_t)(end - p);
}

static size_t string_size(const char *p, const char *end)
{
    const char *q = p + 1;
    while (q < end && *q != *p)
        q += *q == '\\' && q + 1 < end ? 2 : 1;
    return q < end ? (size_t)(q + 1 - p) : (size_t)(end - p);
}

static size_t word_size(const char *p, const char *end)
{
    const char *q = p;
    while (q < end && oi_is_word(*q))
        q++;
    return (size_t)(q - p);
}

/* The length of a number as C reads it, with suffix and exponent: 0x1p-3f. */
static size_t number_size(const char *p, const char *end)
{
    const char *q = p;
    while (q < end && (oi_is_word(*q) || *q == '.' ||
                       ((*q == '+' || *q == '-') && strchr("eEpP", q[-1]) != NULL)))
        q++;
    return (size_t)(q - p);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* `from`: the beginning of the text, for looking back. */
static token next_token(const char *from, const char *p, const char *end)
{
    if (*p == '/' && p + 1 < end && p[1] == '*')
        return (token){TOKEN_OTHER, p, comment_size(p, end)};
    if (*p == '"' || *p == '\'')
        return (token){TOKEN_OTHER, p, string_size(p, end)};
    if (*p == OI_FROM_GRAPH[0])
        return (token){TOKEN_MARKED, p + 1, word_size(p + 1, end)};
    if (is_digit(*p) || (*p == '.' && p + 1 < end && is_digit(p[1])))
        return (token){TOKEN_OTHER, p, number_size(p, end)};
    if (!oi_is_word(*p))
        return (token){TOKEN_OTHER, p, 1};
    bool is_member = p > from && (p[-1] == '.' || (p - from > 1 && p[-1] == '>' && p[-2] == '-'));
    return (token){is_member ? TOKEN_MEMBER : TOKEN_WORD, p, word_size(p, end)};
}

/* -- settling -- */

static bool is_free(oi_settler *s, const char *name, const char *wanted)
{
    const word *w = find(s, name, strlen(name));
    return w->own != s->round && w->taken != s->round &&
           (name == wanted || w->marked != s->round) && !s->is_forbidden(name);
}

static const char *settle_name(oi_settler *s, const char *text, size_t n)
{
    const uint32_t id = (uint32_t)(find(s, text, n) - s->words.at);
    if (s->words.at[id].settled == s->round)
        return s->words.at[id].as;
    const char *wanted = oi_arena_text(s->arena, text, n), *name = wanted;
    while (!is_free(s, name, wanted))
        name = oi_arena_printf(s->arena, "x_%s", name);
    find(s, name, strlen(name))->taken = s->round;
    s->words.at[id].settled = s->round;
    s->words.at[id].as = name;
    return name;
}

/* Comments contain names, too. */
static void put_settled(oi_settler *s, const token *t, oi_buf *out)
{
    const char *end = t->at + t->n, *p = t->at;
    if (t->kind == TOKEN_MARKED) {
        oi_buf_puts(out, settle_name(s, t->at, t->n));
        return;
    }
    for (const char *mark; (mark = memchr(p, OI_FROM_GRAPH[0], (size_t)(end - p))) != NULL;) {
        const size_t n = word_size(mark + 1, end);
        oi_buf_add(out, p, (size_t)(mark - p));
        oi_buf_puts(out, settle_name(s, mark + 1, n));
        p = mark + 1 + n;
    }
    oi_buf_add(out, p, (size_t)(end - p));
}

void oi_settle(oi_settler *s, oi_buf *text, size_t from)
{
    if (text->failed)
        return;
    const char *begin = text->text + from, *end = text->text + text->n;
    oi_buf out = {0};
    token t;
    s->round++;
    for (const char *p = begin; p < end; p = t.at + t.n) {
        t = next_token(begin, p, end);
        if (t.kind == TOKEN_WORD)
            find(s, t.at, t.n)->own = s->round;
        else if (t.kind == TOKEN_MARKED)
            find(s, t.at, t.n)->marked = s->round;
    }
    for (const char *p = begin; p < end; p = t.at + t.n) {
        t = next_token(begin, p, end);
        put_settled(s, &t, &out);
    }
    text->n = from;
    if (out.n)
        oi_buf_add(text, out.text, out.n);
    text->failed |= out.failed;
    oi_buf_free(&out);
}
