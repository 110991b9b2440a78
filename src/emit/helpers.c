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
    oi_buf *out;
    const char *isa; /* of the last that needs one */
} needs;

static void scan(needs *n, const char *text);

/* What it calls goes before it. */
static void add(needs *n, uint32_t id)
{
    const oi_helper *h = &n->table[id];
    if (n->is_needed[id])
        return;
    n->is_needed[id] = 1;
    scan(n, h->text);
    if (h->isa && h->isa[0])
        n->isa = h->isa;
    oi_buf_puts(n->out, h->text);
    oi_buf_putc(n->out, '\n');
}

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
        if (len > 3 && len < sizeof word &&
            (memcmp(p, "oi_", 3) == 0 || memcmp(p, "OI_", 3) == 0)) {
            memcpy(word, p, len);
            word[len] = '\0';
            uint32_t id = oi_map_get(&n->ids, word);
            if (id != OI_MAP_NONE)
                add(n, id);
        }
        p += len;
    }
}

static bool has(const oi_device_info *target, const char *isa)
{
    if (!isa || !isa[0])
        return true;
    for (int i = 0; i < OI_ISA_COUNT; i++)
        if ((target->cpu.isa >> i & 1) && strcmp(oi_isa_name((oi_isa)i), isa) == 0)
            return true;
    return false;
}

/* A later row of the same name takes the place of an earlier one: avx512 comes after avx2. */
const char *oi_helpers_for(oi_arena *a, const oi_helper *table, const oi_device_info *target,
                           const char *text, oi_buf *out)
{
    needs n = {.table = table, .ids.arena = a, .out = out};
    uint32_t count = 0;
    for (; table[count].name; count++)
        if (has(target, table[count].isa))
            oi_map_set(&n.ids, table[count].name, count);
    n.is_needed = oi_arena_alloc(a, count + 1);
    scan(&n, text);
    if (!n.isa)
        return NULL;
    return target->cpu.isa >> OI_ISA_NEON & 1 ? "arm_neon.h" : "immintrin.h";
}

const char *oi_helpers_missing(oi_arena *a, const oi_helper *table, const char *text)
{
    oi_map known = {.arena = a};
    for (uint32_t i = 0; table[i].name; i++)
        oi_map_put(&known, table[i].name, i);
    for (const char *p = text; *p;) {
        size_t len = 0;
        while (is_word(p[len]))
            len++;
        if (len > 3 && memcmp(p, "oi_", 3) == 0 && p[len] == '(') {
            const char *word = oi_arena_text(a, p, len);
            if (oi_map_get(&known, word) == OI_MAP_NONE)
                return word;
        }
        p += len ? len : 1;
    }
    return NULL;
}
