/* part.c: what is known of a part of the state before the program runs. */
#include "plan/plan.h"

uint64_t oi_part_most(const oi_tensor *t, const oi_port *part, uint32_t dim)
{
    int64_t n = t->dims[dim];
    return part->count && oi_code_is_int(&part->count[dim], &n) ? (uint64_t)n
                                                                : (uint64_t)t->dims[dim];
}

uint32_t oi_part_run(const oi_tensor *t, const oi_port *part)
{
    uint32_t q = t->rank;
    int64_t n;
    if (oi_dtype_bits(t->dtype) < 8)
        return q;
    while (q > 0) {
        q--;
        if (part->count && !(oi_code_is_int(&part->count[q], &n) && n == t->dims[q]))
            break;
    }
    return q;
}
