/* buffer.c: counted buffers, and filling and copying elements of any width. */
#define _DEFAULT_SOURCE 1 /* MAP_ANONYMOUS */
#include "sim/sim.h"

#include <sys/mman.h>

/* Under a limit, buffers from this size on are mappings of their own: what is given back must leave
 * the process, and the heap may keep what is freed. */
#define MAPPED_FROM (64u << 10)

uint64_t oi_buffer_cost(uint64_t size)
{
    /* whole lines, so that vector code may read past the last element; one for the head */
    return size > UINT64_MAX - 2 * OI_BUFFER_ALIGN
               ? UINT64_MAX
               : (size + 2 * OI_BUFFER_ALIGN - 1) & ~(uint64_t)(OI_BUFFER_ALIGN - 1);
}

static void *allocate(uint64_t bytes, bool mapped)
{
    void *memory;
    if (mapped) {
        memory =
            mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return memory == MAP_FAILED ? NULL : memory;
    }
    return posix_memalign(&memory, OI_BUFFER_ALIGN, (size_t)bytes) == 0 ? memory : NULL;
}

oi_buffer *oi_buffer_new(oi_budget *budget, oi_held kind, uint64_t size)
{
    _Static_assert(sizeof(oi_buffer) <= OI_BUFFER_ALIGN, "the head takes one line");
    const uint64_t bytes = oi_buffer_cost(size);
    if (bytes > SIZE_MAX / 2 || !oi_budget_take(budget, kind, bytes))
        return NULL;
    bool mapped = budget && budget->limit && bytes >= MAPPED_FROM;
    oi_buffer *b = allocate(bytes, mapped);
    if (!b) {
        oi_budget_give(budget, kind, bytes);
        return NULL;
    }
    atomic_init(&b->refs, 1);
    b->kind = kind;
    b->size = bytes - OI_BUFFER_ALIGN;
    b->data = (char *)b + OI_BUFFER_ALIGN;
    b->budget = budget;
    b->twin = NULL;
    b->is_mapping = mapped;
    b->is_remote = false;
    return b;
}

oi_buffer *oi_buffer_share(oi_buffer *b)
{
    if (b)
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void oi_buffer_drop(oi_buffer *b)
{
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    oi_twin_forget(b);
    const uint64_t bytes = b->size + OI_BUFFER_ALIGN;
    oi_budget_give(b->budget, b->kind, bytes);
    if (b->is_mapping)
        munmap(b, (size_t)bytes);
    else
        free(b);
}

bool oi_buffer_is_own(const oi_buffer *b)
{
    return b && atomic_load_explicit(&b->refs, memory_order_acquire) == 1;
}

/* -- elements -- */

static void put_bits(uint8_t *p, unsigned width, uint64_t e, uint64_t bits)
{
    uint64_t bit = e * width;
    unsigned shift = bit % 8;
    unsigned mask = ((1u << width) - 1) << shift;
    p[bit / 8] = (uint8_t)((p[bit / 8] & ~mask) | ((unsigned)bits << shift & mask));
}

/* A packed byte that holds the element in every place. */
static uint8_t repeated(unsigned width, uint64_t bits)
{
    unsigned byte = 0;
    for (unsigned at = 0; at < 8; at += width)
        byte |= ((unsigned)bits & ((1u << width) - 1)) << at;
    return (uint8_t)byte;
}

static void fill_packed(unsigned width, uint8_t *dst, uint64_t at, uint64_t n, uint64_t bits)
{
    for (; n && at * width % 8; at++, n--)
        put_bits(dst, width, at, bits);
    uint64_t whole = n * width / 8;
    if (whole)
        memset(dst + at * width / 8, repeated(width, bits), (size_t)whole);
    at += whole * 8 / width;
    n -= whole * 8 / width;
    for (; n; at++, n--)
        put_bits(dst, width, at, bits);
}

void oi_elements_fill(oi_dtype t, void *dst, uint64_t at, uint64_t n, uint64_t bits)
{
    unsigned width = oi_dtype_bits(t);
    if (n == 0)
        return;
    if (width < 8) {
        fill_packed(width, dst, at, n, bits);
        return;
    }
    size_t bytes = width / 8;
    uint8_t *p = (uint8_t *)dst + at * bytes, element[8];
    for (size_t i = 0; i < 8; i++)
        element[i] = (uint8_t)(bits >> 8 * i);
    if (bits == 0 || bytes == 1) {
        memset(p, element[0], (size_t)n * bytes);
        return;
    }
    memcpy(p, element, bytes);
    for (uint64_t have = 1; have < n;) { /* the filled part doubles */
        uint64_t now = have < n - have ? have : n - have;
        memcpy(p + have * bytes, p, (size_t)(now * bytes));
        have += now;
    }
}

void oi_elements_copy(oi_dtype t, void *dst, uint64_t to, const void *src, uint64_t from,
                      uint64_t n)
{
    unsigned width = oi_dtype_bits(t);
    if (n == 0)
        return;
    if (width >= 8) {
        size_t bytes = width / 8;
        memcpy((uint8_t *)dst + to * bytes, (const uint8_t *)src + from * bytes, (size_t)n * bytes);
        return;
    }
    if (to * width % 8 == 0 && from * width % 8 == 0) {
        uint64_t whole = n * width / 8;
        memcpy((uint8_t *)dst + to * width / 8, (const uint8_t *)src + from * width / 8,
               (size_t)whole);
        uint64_t done = whole * 8 / width;
        to += done;
        from += done;
        n -= done;
    }
    for (uint64_t i = 0; i < n; i++)
        put_bits(dst, width, to + i, oi_element_bits(t, src, from + i));
}
