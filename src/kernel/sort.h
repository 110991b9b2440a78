/* sort.h: elements as keys that order as their values do. */
#ifndef OI_SORT_H
#define OI_SORT_H

#include "kernel/lines.h"

typedef struct oi_entry {
    uint64_t key;
    int64_t at; /* where the element was */
} oi_entry;

/* Element i of a row in its form (oi_form_source). NaN is the largest, -0 equals 0. */
uint64_t oi_entry_key(oi_dtype form, const void *row, size_t i);
/* By key, then by place; `spare` is as large. */
void oi_entries_sort(oi_entry *e, oi_entry *spare, int64_t n);

#endif
