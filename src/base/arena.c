/* arena.c: chunked bump allocation. A chunk is at least 4 KiB and doubles up to 1 MiB, so small
 * graphs stay small and large ones need few calls to malloc. */
#include "base/base.h"

#include <stdlib.h>

#define FIRST_CHUNK 4096u
#define LAST_CHUNK  (1u << 20)
#define ALIGN       16u

typedef struct chunk {
    struct chunk *next;
    size_t size, used; /* of the bytes behind this header */
    void *owned;       /* a block from elsewhere, in place of bytes behind this header */
} chunk;

struct oi_arena {
    chunk *chunks; /* newest first */
    size_t next_size, used;
    jmp_buf *on_fail; /* innermost guard, NULL outside any */
};

static size_t header_bytes(void)
{
    return (sizeof(chunk) + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

oi_arena *oi_arena_new(void)
{
    oi_arena *a = calloc(1, sizeof *a);
    if (a)
        a->next_size = FIRST_CHUNK;
    return a;
}

void oi_arena_free(oi_arena *a)
{
    if (!a)
        return;
    for (chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c->owned);
        free(c);
    }
    free(a);
}

void oi_arena_fail(oi_arena *a)
{
    if (a->on_fail)
        longjmp(*a->on_fail, 1);
    abort(); /* our own bug: an arena used outside a guard */
}

oi_status oi_arena_guard(oi_arena *a, void (*fn)(void *ctx), void *ctx)
{
    jmp_buf here;
    jmp_buf *outer = a->on_fail;
    if (setjmp(here)) {
        a->on_fail = outer;
        return OI_ERR_ENV;
    }
    a->on_fail = &here;
    fn(ctx);
    a->on_fail = outer;
    return OI_OK;
}

/* The current chunk keeps its free space. */
static void add_behind(oi_arena *a, chunk *c)
{
    c->next = a->chunks->next;
    a->chunks->next = c;
}

static chunk *add_chunk(oi_arena *a, size_t need)
{
    size_t size = need > a->next_size ? need : a->next_size;
    chunk *c = size > SIZE_MAX - header_bytes() ? NULL : calloc(1, header_bytes() + size);
    if (!c)
        oi_arena_fail(a);
    c->size = size;
    if (a->next_size < LAST_CHUNK)
        a->next_size *= 2;
    if (a->chunks && need > LAST_CHUNK / 2) {
        add_behind(a, c);
    } else {
        c->next = a->chunks;
        a->chunks = c;
    }
    return c;
}

void *oi_arena_alloc(oi_arena *a, size_t size)
{
    if (size > SIZE_MAX - ALIGN)
        oi_arena_fail(a);
    size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    chunk *c = a->chunks;
    if (!c || c->size - c->used < size)
        c = add_chunk(a, size);
    void *p = (char *)c + header_bytes() + c->used;
    c->used += size;
    a->used += size;
    return p;
}

void oi_arena_own(oi_arena *a, void *block, size_t size)
{
    if (!a->chunks)
        add_chunk(a, ALIGN);
    chunk *c = calloc(1, header_bytes());
    if (!c)
        oi_arena_fail(a);
    c->owned = block;
    a->used += size;
    add_behind(a, c);
}

size_t oi_arena_used(const oi_arena *a)
{
    return a->used;
}

char *oi_arena_text(oi_arena *a, const char *text, size_t n)
{
    char *copy = oi_arena_alloc(a, n + 1);
    if (n)
        memcpy(copy, text, n);
    return copy;
}

char *oi_arena_vprintf(oi_arena *a, const char *fmt, va_list args)
{
    char small[256]; /* most texts: then they are formatted once */
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, fmt, again);
    va_end(again);
    if (n < 0)
        oi_arena_fail(a);
    if ((size_t)n < sizeof small)
        return oi_arena_text(a, small, (size_t)n);
    char *text = oi_arena_alloc(a, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, fmt, args);
    return text;
}

char *oi_arena_printf(oi_arena *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *text = oi_arena_vprintf(a, fmt, args);
    va_end(args);
    return text;
}

void *oi_arena_grow(oi_arena *a, void *array, size_t each, size_t n, size_t *cap)
{
    if (n < *cap)
        return array;
    /* Most lists stay short: the first elements get at most 512 bytes together. */
    size_t first = each > 256 ? 1 : each > 128 ? 2 : 4;
    size_t want = *cap ? *cap * 2 : first;
    if (want > SIZE_MAX / each)
        oi_arena_fail(a);
    void *grown = oi_arena_alloc(a, want * each);
    if (n)
        memcpy(grown, array, n * each);
    *cap = want;
    return grown;
}
