/* pack.h: how weights of bytes are packed. Private to bytes.c and pack.c. */
#ifndef OI_PACK_H
#define OI_PACK_H

#include "recipe/recipe.h"

/* sizes[] of a packing, but those of oi_pack_rows and oi_pack_factors. */
enum {
    GROUPS,
    FILTERS,
    C,
    TAPS,
    RUNS,
    PAIRS,
    LANES,
    STEP_FILTER,
    STEP_C,
    UNSIGNED,
    ZEROS /* of the filters: none, one, or one each */
};

static inline int64_t oi_pack_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

void oi_pack_filters(const oi_packing *p, const void *const *in, void *out);
void oi_pack_dot4(const oi_packing *p, const void *const *in, void *out);
void oi_pack_depthwise_dot4(const oi_packing *p, const void *const *in, void *out);
void oi_pack_dense_dot4(const oi_packing *p, const void *const *in, void *out);
void oi_pack_rows(const oi_packing *p, const void *const *in, void *out);
void oi_pack_factors(const oi_packing *p, const void *const *in, void *out);

#endif
