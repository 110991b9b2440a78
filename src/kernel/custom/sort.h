/* sort.h: elements as keys that order as their values do. */
#ifndef OI_SORT_H
#define OI_SORT_H

#include "kernel/custom.h"
#include "kernel/custom/order.h"
#include "kernel/lines.h"

/* Element i of a row in its form (oi_form_source). NaN is the largest, -0 equals 0. */
uint64_t oi_entry_key(oi_dtype form, const void *row, size_t i);

/* Steps: keys are f64, i64 or u64, numbered as oi_key_at does. */
oi_dtype oi_key_dtype(oi_dtype t);
int64_t oi_key_kind(oi_dtype t);
/* `to` says where the first k of every line of keys (outer, n, inner) in order come from. */
void oi_order_lower(oi_steps *s, uint32_t keys, uint32_t to, int64_t outer, int64_t n,
                    int64_t inner, int64_t k, bool descends);

#endif
