/* pair.h: a kernel and the only consumer of its result. Private to the passes that join them. */
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
    uint32_t tensor; /* the tensor between them: no other use */
} oi_pair;

bool oi_pair_is_on(const oi_pair *x, const oi_skernel *k, const oi_sop *op); /* the tensor */
/* R's axes where P's nest n stands at `store`, from the load of R. */
bool oi_pair_map_axes(const oi_pair *x, const oi_snest *n, const oi_sop *store, const oi_sop *load,
                      oi_axis_map *out);

/* R stores each element of the tensor where it loads it, counted row by row. */
bool oi_pair_keeps_order(const oi_pair *x, const oi_sop *load, const oi_sop *store);

/* NULL: joined, P now does R's work. Else the reason; "" if there is nothing to report. */
typedef const char *oi_pair_fn(oi_pair *x);

/* Tries all pairs of the unit; pairs that are not joined are noted for the pass. */
oi_status oi_pairs_join(oi_unit *u, const char *pass, oi_pair_fn *join);

#endif
