/* order.h: elements as keys that order as their values do, sorted; and what of that emitted
 * programs call. Text that the simulator compiles and emitted C carries along (tools/helpergen.c):
 * names begin with oi_, blocks end at empty lines. */
#ifndef OI_ORDER_H
#define OI_ORDER_H

#include <stdint.h>
#include <string.h>

typedef struct oi_entry {
    uint64_t key;
    int64_t at; /* where the element was */
} oi_entry;

/* NaN is the largest, -0 equals 0. */
static inline uint64_t oi_key_f64(double v)
{
    uint64_t bits;
    if (v != v)
        return UINT64_MAX;
    v = v == 0 ? 0 : v;
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static inline uint64_t oi_key_i64(int64_t v)
{
    return (uint64_t)v + ((uint64_t)1 << 63);
}

static inline int oi_entry_before(const oi_entry *a, const oi_entry *b)
{
    return a->key < b->key || (a->key == b->key && a->at < b->at);
}

/* By key, then by place; `spare` is as large. */
static inline void oi_entries_sort(oi_entry *e, oi_entry *spare, int64_t n)
{
    oi_entry *from = e, *to = spare;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * width) {
            int64_t mid = lo + width < n ? lo + width : n,
                    hi = lo + 2 * width < n ? lo + 2 * width : n;
            int64_t a = lo, b = mid;
            for (int64_t i = lo; i < hi; i++)
                to[i] = a < mid && (b >= hi || oi_entry_before(&from[a], &from[b])) ? from[a++]
                                                                                    : from[b++];
        }
        oi_entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != e)
        memcpy(e, from, (size_t)n * sizeof *e);
}

/* The last of the heap's order is at its top; e[0] sinks to its place. */
static inline void oi_entries_sink(oi_entry *e, int64_t n)
{
    oi_entry top = e[0];
    int64_t i = 0;
    for (int64_t child = 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && oi_entry_before(&e[child], &e[child + 1]))
            child++;
        if (!oi_entry_before(&top, &e[child]))
            break;
        e[i] = e[child];
        i = child;
    }
    e[i] = top;
}

static inline void oi_entries_rise(oi_entry *e, int64_t i)
{
    oi_entry own = e[i];
    while (i > 0 && oi_entry_before(&e[(i - 1) / 2], &own)) {
        e[i] = e[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    e[i] = own;
}

/* One more of n elements, of which the first k in order are kept; returns how many there are. */
static inline int64_t oi_entries_keep(oi_entry *e, int64_t kept, int64_t k, int64_t n, oi_entry one)
{
    if (k == n) { /* all of them */
        e[kept] = one;
        return kept + 1;
    }
    if (kept < k) {
        e[kept] = one;
        oi_entries_rise(e, kept);
        return kept + 1;
    }
    if (kept > 0 && oi_entry_before(&one, &e[0])) {
        e[0] = one;
        oi_entries_sink(e, kept);
    }
    return kept;
}

/* -- emitted programs: tensors lie dense; elements are f64 (kind 0), i64 (1) or u64 (2) -- */

static inline uint64_t oi_key_at(const void *x, int64_t i, int64_t kind)
{
    if (kind == 0)
        return oi_key_f64(((const double *)x)[i]);
    return kind == 1 ? oi_key_i64(((const int64_t *)x)[i]) : ((const uint64_t *)x)[i];
}

/* Where the first k of every line of x (outer, n, inner) in order come from. */
static inline void oi_order(const void *x, int64_t *to, uint64_t *work, int64_t outer, int64_t n,
                            int64_t inner, int64_t k, int64_t descends, int64_t kind)
{
    oi_entry *e = (oi_entry *)(void *)work; /* 2 k of them */
    for (int64_t line = 0; line < outer * inner; line++) {
        int64_t first = line / inner * n * inner + line % inner, kept = 0;
        for (int64_t i = 0; i < n; i++) {
            uint64_t key = oi_key_at(x, first + i * inner, kind);
            oi_entry one = {descends ? ~key : key, i};
            kept = oi_entries_keep(e, kept, k, n, one);
        }
        oi_entries_sort(e, e + k, kept);
        for (int64_t i = 0; i < kept; i++)
            to[(line / inner * k + i) * inner + line % inner] = e[i].at;
    }
}

/* Element i of `to` becomes element k of `from`; narrower ones lie packed. */
static inline void oi_move_element(void *to, int64_t i, const void *from, int64_t k, int64_t bits)
{
    if (bits >= 8) {
        memcpy((uint8_t *)to + i * (bits / 8), (const uint8_t *)from + k * (bits / 8),
               (size_t)bits / 8);
        return;
    }
    const unsigned mask = (1u << bits) - 1;
    const unsigned v = ((const uint8_t *)from)[k * bits / 8] >> (k * bits % 8) & mask;
    uint8_t *at = (uint8_t *)to + i * bits / 8;
    *at = (uint8_t)((*at & ~(mask << i * bits % 8)) | v << i * bits % 8);
}

/* to (outer, k, inner) = the elements of x (outer, n, inner) at these places of their line. */
static inline void oi_take_along(const void *x, const int64_t *at, void *to, int64_t outer,
                                 int64_t n, int64_t inner, int64_t k, int64_t bits)
{
    for (int64_t i = 0; i < outer * k * inner; i++)
        oi_move_element(to, i, x, (i / inner / k * n + at[i]) * inner + i % inner, bits);
}

#endif
