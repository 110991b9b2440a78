/* range.h: intervals of kernel values. Private to the passes that narrow types. */
#ifndef OI_RANGE_H
#define OI_RANGE_H

#include "plan/interval.h"
#include "synth/compose.h"

typedef struct oi_ranges {
    oi_unit *u;
    uint32_t n;     /* tensors when it was made; later ones may hold all that their types can */
    oi_range *of;   /* by tensor: of its contents */
    bool *is_found; /* by tensor: `of` is */
} oi_ranges;

oi_ranges oi_ranges_new(oi_unit *u);
oi_range oi_range_of_tensor(oi_ranges *x, uint32_t tensor);
/* Between which numbers weights of f32 are; false: that is not known, or one is none. */
bool oi_reals_of_tensor(const oi_unit *u, uint32_t tensor, double *from, double *to);

/* A nest whose instructions become others, one after the other. */
typedef struct oi_rewriting {
    oi_ranges *x;
    oi_skernel *k;
    const oi_snest *n;      /* as it was */
    const oi_range *ranges; /* by old instruction, up to the present one */
    oi_sops *to;            /* where the new ones go: pre, then post */
    uint32_t base;          /* the number of the first of them */
} oi_rewriting;

/* op is the old instruction i; `moved` is that with the new numbers of its arguments. Returns the
 * number of what stands for its result. */
typedef uint32_t oi_rewrite_fn(oi_rewriting *r, uint32_t i, const oi_sop *op, oi_sop *moved,
                               void *ctx);

uint32_t oi_rewrite_put(oi_rewriting *r, const oi_sop *op); /* its number */
uint32_t oi_rewrite_convert(oi_rewriting *r, oi_dtype from, oi_dtype to, uint32_t value);
bool oi_nest_has_type(const oi_snest *n, oi_dtype t); /* some instruction's result has it */
void oi_nest_rewrite(oi_ranges *x, oi_skernel *k, oi_snest *n, oi_rewrite_fn *fn, void *ctx);

/* By tensor: how many ports of kernels only load or store its elements as they are. */
uint32_t *oi_plain_ports(oi_unit *u, bool may_store);
/* By tensor: how often it is mentioned at all. */
uint32_t *oi_all_mentions(oi_unit *u);

#endif
