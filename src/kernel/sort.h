/* sort.h: elements as keys that order as their values do. */
#ifndef OI_SORT_H
#define OI_SORT_H

#include "kernel/lines.h"
#include "kernel/order.h"

/* Element i of a row in its form (oi_form_source). NaN is the largest, -0 equals 0. */
uint64_t oi_entry_key(oi_dtype form, const void *row, size_t i);

#endif
