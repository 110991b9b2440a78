/* map.c: open addressing, linear probing, at most three quarters full. */
#include "base/base.h"

struct oi_map_slot {
    const char *key; /* NULL = empty */
    uint32_t value;
    uint32_t hash; /* top half, to skip most comparisons */
};

static struct oi_map_slot *find(const oi_map *m, const char *key, uint64_t hash)
{
    size_t mask = m->cap - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct oi_map_slot *s = &m->slots[i];
        if (!s->key || (s->hash == (uint32_t)(hash >> 32) && strcmp(s->key, key) == 0))
            return s;
    }
}

static uint64_t hash_of(const oi_map *m, const char *key)
{
    return oi_hash64(key, strlen(key), m->seed);
}

uint32_t oi_map_get(const oi_map *m, const char *key)
{
    if (!m->cap)
        return OI_MAP_NONE;
    const struct oi_map_slot *s = find(m, key, hash_of(m, key));
    return s->key ? s->value : OI_MAP_NONE;
}

static void grow(oi_map *m)
{
    oi_map bigger = {.arena = m->arena, .cap = m->cap ? m->cap * 2 : 16};
    bigger.seed = m->cap ? m->seed : oi_entropy64();
    bigger.slots = oi_arena_alloc(m->arena, bigger.cap * sizeof *bigger.slots);
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].key)
            *find(&bigger, m->slots[i].key, hash_of(&bigger, m->slots[i].key)) = m->slots[i];
    bigger.n = m->n;
    *m = bigger;
}

void oi_map_reserve(oi_map *m, size_t n)
{
    if (m->cap || !n)
        return;
    size_t cap = 16;
    while (n > cap / 4 * 3)
        cap *= 2;
    m->seed = oi_entropy64();
    m->slots = oi_arena_alloc(m->arena, cap * sizeof *m->slots);
    m->cap = cap;
}

static struct oi_map_slot *claim(oi_map *m, const char *key, bool *is_new)
{
    if (m->n + 1 > m->cap / 4 * 3)
        grow(m);
    uint64_t hash = hash_of(m, key);
    struct oi_map_slot *s = find(m, key, hash);
    *is_new = !s->key;
    if (*is_new) {
        *s = (struct oi_map_slot){.key = key, .hash = (uint32_t)(hash >> 32)};
        m->n++;
    }
    return s;
}

uint32_t oi_map_put(oi_map *m, const char *key, uint32_t v)
{
    bool is_new;
    struct oi_map_slot *s = claim(m, key, &is_new);
    if (is_new)
        s->value = v;
    return s->value;
}

void oi_map_set(oi_map *m, const char *key, uint32_t v)
{
    bool is_new;
    claim(m, key, &is_new)->value = v;
}
