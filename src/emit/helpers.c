/* helpers.c: finds the helper functions that a text needs. */
#include "emit/emit.h"

#include "recipe/recipe.h"

bool oi_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Returns the position after the comment, string or single character at p. */
static const char *skip(const char *p)
{
    const char quote = *p;
    if (strncmp(p, "/*", 2) == 0) {
        const char *end = strstr(p + 2, "*/");
        return end ? end + 2 : p + strlen(p);
    }
    p++;
    if (quote != '"' && quote != '\'')
        return p;
    while (*p && *p != quote)
        p += p[0] == '\\' && p[1] ? 2 : 1;
    return *p ? p + 1 : p;
}

bool oi_next_word(const char **at, size_t *size)
{
    const char *p = *at + *size;
    while (*p && !oi_is_word(*p))
        p = skip(p);
    *at = p;
    for (*size = 0; oi_is_word(p[*size]);)
        ++*size;
    return *size > 0;
}

typedef struct needs {
    const oi_helper *table;
    oi_map ids; /* name -> place in the table */
    uint8_t *is_needed;
    oi_buf *out;
    bool needs_isa; /* some of them use special instructions */
    bool inlines;   /* functions of numbers are always inlined */
} needs;

static void scan(needs *n, const char *text);

/* A function of numbers: it returns one, or a pair. */
static const char *find_number(const char *text)
{
    static const char *const heads[] = {"static inline float ", "static inline uint32_t ",
                                        "static inline int32_t ", "static inline oi_pair "};
    const char *found = NULL;
    for (size_t i = 0; i < OI_COUNT(heads) && !found; i++)
        found = strstr(text, heads[i]);
    return found;
}

static void put_text(needs *n, const char *text)
{
    const char *number = n->inlines ? find_number(text) : NULL;
    if (number) {
        oi_buf_add(n->out, text, (size_t)(number - text));
        oi_buf_puts(n->out, "static inline __attribute__((always_inline)) ");
        text = number + strlen("static inline ");
    }
    oi_buf_puts(n->out, text);
}

/* Its callees come first. */
static void add(needs *n, uint32_t id)
{
    const oi_helper *h = &n->table[id];
    if (n->is_needed[id])
        return;
    n->is_needed[id] = 1;
    scan(n, h->text);
    n->needs_isa |= h->isa[0] != '\0';
    put_text(n, h->text);
    oi_buf_putc(n->out, '\n');
}

static void scan(needs *n, const char *text)
{
    char word[128];
    const char *p = text;
    for (size_t len = 0; oi_next_word(&p, &len);) {
        if (len > 3 && len < sizeof word &&
            (memcmp(p, "oi_", 3) == 0 || memcmp(p, "OI_", 3) == 0)) {
            memcpy(word, p, len);
            word[len] = '\0';
            uint32_t id = oi_map_get(&n->ids, word);
            if (id != OI_MAP_NONE)
                add(n, id);
        }
    }
}

/* Of rows with one name, the most specific folder wins; of equals, the last. */
static void choose(needs *n, const oi_device_info *target, uint32_t id)
{
    const oi_helper *h = &n->table[id];
    const uint32_t height = h->isa[0] ? oi_recipe_height(target, h->isa) : 0;
    const uint32_t old = oi_map_get(&n->ids, h->name);
    if (h->isa[0] && !height)
        return;
    if (old == OI_MAP_NONE || !n->table[old].isa[0] ||
        oi_recipe_height(target, n->table[old].isa) <= height)
        oi_map_set(&n->ids, h->name, id);
}

const char *oi_helpers_for(oi_arena *a, const oi_helper *table, const oi_device_info *target,
                           const char *text, bool inlines, oi_buf *out)
{
    needs n = {.table = table, .ids.arena = a, .out = out, .inlines = inlines};
    uint32_t count = 0;
    for (; table[count].name; count++)
        choose(&n, target, count);
    n.is_needed = oi_arena_alloc(a, count + 1);
    scan(&n, text);
    return n.needs_isa ? oi_recipe_folder_of(target)->header : NULL;
}

const char *oi_helpers_missing(oi_arena *a, const oi_helper *table, const char *text)
{
    oi_map known = {.arena = a};
    for (uint32_t i = 0; table[i].name; i++)
        oi_map_put(&known, table[i].name, i);
    const char *p = text;
    for (size_t len = 0; oi_next_word(&p, &len);) {
        if (len > 3 && memcmp(p, "oi_", 3) == 0 && p[len] == '(') {
            const char *word = oi_arena_text(a, p, len);
            if (oi_map_get(&known, word) == OI_MAP_NONE)
                return word;
        }
    }
    return NULL;
}

const char *oi_helper_parameter(oi_arena *a, const oi_helper *table, const char *helper, uint32_t n)
{
    const char *p = NULL;
    for (; table->name && !p; table++)
        if (strcmp(table->name, helper) == 0)
            p = strstr(table->text, oi_arena_printf(a, "%s(", helper));
    if (!p)
        return NULL;
    const char *end = strchr(p, ')');
    for (p = strchr(p, '(') + 1; end && n > 0; n--) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        if (!comma)
            return NULL;
        p = comma + 1;
    }
    const char *comma = end ? memchr(p, ',', (size_t)(end - p)) : NULL, *last = comma ? comma : end;
    for (p = last; p && oi_is_word(p[-1]);)
        p--;
    return p ? oi_arena_text(a, p, (size_t)(last - p)) : NULL;
}

bool oi_text_has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = strstr(text, word); p; p = strstr(p + 1, word))
        if ((p == text || !oi_is_word(p[-1])) && !oi_is_word(p[n]))
            return true;
    return false;
}
