/* pair.h: a kernel and the only reader of what it makes. Private to the passes that join them. */
#ifndef OI_PAIR_H
#define OI_PAIR_H

#include "synth/compose.h"
#include "synth/where.h"

typedef struct oi_pair {
    oi_unit *u;
    uint32_t graph;
    oi_stmts *list;
    oi_where *where;      /* of the list */
    const oi_tally *uses; /* by tensor */
    oi_skernel *p;
    const oi_skernel *r;
    uint32_t tensor; /* what lies between them: nobody else sees it */
} oi_pair;

bool oi_pair_is_on(const oi_pair *x, const oi_skernel *k, const oi_sop *op); /* the tensor */
/* R's axes where P's nest n stands at `store`, by the load of R. */
bool oi_pair_map_axes(const oi_pair *x, const oi_snest *n, const oi_sop *store, const oi_sop *load,
                      oi_axis_map *out);

/* NULL: P does R's work too from now on. Else why not; "" when there is nothing to say. */
/* P, a tuned body, writes what R stores of it instead: elements one after the other, so that R must
 * keep their order. Why not, or NULL. */
const char *oi_pair_retarget(oi_pair *x, const oi_sop *load, const oi_sop *store);

typedef const char *oi_pair_fn(oi_pair *x);

/* Tries all pairs of the unit; what stays apart is noted for the pass. */
oi_status oi_pairs_join(oi_unit *u, const char *pass, oi_pair_fn *join);

#endif
