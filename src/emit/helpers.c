/* helpers.c: which helper functions a text needs. */
#include "emit/emit.h"

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

typedef struct needs {
    const oi_helper *table;
    oi_map ids; /* name -> place in the table */
    uint8_t *is_needed;
} needs;

static void scan(needs *n, const char *text)
{
    char word[128];
    for (const char *p = text; *p;) {
        if (!is_word(*p)) {
            p++;
            continue;
        }
        size_t len = 0;
        while (is_word(p[len]))
            len++;
        if (len > 3 && len < sizeof word && memcmp(p, "oi_", 3) == 0) {
            memcpy(word, p, len);
            word[len] = '\0';
            uint32_t id = oi_map_get(&n->ids, word);
            if (id != OI_MAP_NONE && !n->is_needed[id]) {
                n->is_needed[id] = 1;
                scan(n, n->table[id].text);
            }
        }
        p += len;
    }
}

void oi_helpers_for(oi_arena *a, const oi_helper *table, const char *text, oi_buf *out)
{
    needs n = {.table = table, .ids.arena = a};
    uint32_t count = 0;
    for (; table[count].name; count++)
        oi_map_put(&n.ids, table[count].name, count);
    n.is_needed = oi_arena_alloc(a, count + 1);
    scan(&n, text);
    for (uint32_t i = 0; i < count; i++)
        if (n.is_needed[i]) {
            oi_buf_puts(out, table[i].text);
            oi_buf_putc(out, '\n');
        }
}
