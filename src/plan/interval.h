/* interval.h: between which numbers an integer lies. For the passes that narrow types, and for
 * targets whose numbers have any width. */
#ifndef OI_INTERVAL_H
#define OI_INTERVAL_H

#include "base/base.h"

/* Where an operation could wrap it is that of its type. A float that is no number counts as 0. */
typedef struct oi_range {
    int64_t from, to; /* INT64_MIN, INT64_MAX: anything */
} oi_range;

extern const oi_range oi_range_any;

oi_range oi_range_of_type(oi_dtype t);
/* What is computed in the type: anything of it where it may wrap. */
oi_range oi_range_within(oi_range r, oi_dtype t);
oi_range oi_range_add(oi_range a, oi_range b);
oi_range oi_range_negative(oi_range a);
oi_range oi_range_times(oi_range a, oi_range b);
oi_range oi_range_either(oi_range a, oi_range b);
oi_range oi_range_shifted(oi_range a, oi_range by);
oi_range oi_range_min(oi_range a, oi_range b);
oi_range oi_range_max(oi_range a, oi_range b);
oi_range oi_range_clamped(oi_range a, oi_range to);

#endif
