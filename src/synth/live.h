/* live.h: lifetimes of tensors in the working memory. */
#ifndef OI_LIVE_H
#define OI_LIVE_H

#include "synth/unit.h"

typedef struct oi_lifetime {
    uint32_t tensor;
    uint32_t first, last; /* positions, both included */
    bool needs_start;     /* something may read it before it was written */
} oi_lifetime;

typedef struct oi_lifetimes {
    OI_VEC(oi_lifetime) list;
    uint32_t n_positions;
    uint32_t *kernel_at; /* by kernel: its position, or OI_NO_ID where it has none or several */
    uint32_t *turns_at;  /* by kernel that begins a row pipeline: its length; else 0 */
} oi_lifetimes;

/* Of every tensor of the graph in the arena or among the outputs that some statement uses. */
void oi_live_find(oi_unit *u, uint32_t graph, oi_lifetimes *out);

#endif
