/* fit.h: a number as a function of one other, found from its values. */
#ifndef OI_FIT_H
#define OI_FIT_H

#include "base/base.h"

/* f = (slope * m + base) / by, rounded down, within least ... most. */
typedef struct oi_line {
    int64_t slope, base, by;
    bool has_least, has_most;
    int64_t least, most;
} oi_line;

int64_t oi_line_at(const oi_line *l, int64_t m);
/* The simplest line through all n points whose `use` is set; false when there is none. */
bool oi_fit_line(const int64_t *m, const int64_t *f, const bool *use, size_t n, oi_line *out);

#endif
