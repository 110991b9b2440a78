/* where.h: which statements of a list mention a tensor. Private to the passes that join kernels.
 *
 * Passes ask it instead of walking the list: for the producer of a tensor, for its readers, for
 * what stands between two statements. Places stay as they are while a pass works on the list: what
 * it takes out stays behind as OI_STMT_GONE until oi_where_end. */
#ifndef OI_WHERE_H
#define OI_WHERE_H

#include "synth/pass.h"

#define OI_NOWHERE SIZE_MAX

typedef struct oi_places {
    uint32_t *at; /* rising; of what is gone, too */
    size_t n, cap;
} oi_places;

typedef struct oi_where {
    oi_unit *u;
    uint32_t graph;
    oi_stmts *list;
    OI_VEC(oi_places)
    of[2]; /* by tensor: statements that mention it, bodies included; that write */
    OI_VEC(uint32_t) touched; /* tensors that have places */
    oi_places fences[2];      /* statements that nothing may pass; those that not even reads may */
    uint32_t *alive;          /* by place: a later one, up to the first that is not gone */
    size_t at;                /* of the statement whose mentions are being added */
} oi_where;

void oi_where_begin(oi_where *w, oi_stmts *list);
void oi_where_add(oi_where *w, size_t at);  /* the statement mentions more than it did */
void oi_where_drop(oi_where *w, size_t at); /* it is gone */
void oi_where_end(oi_where *w);             /* the list is without gaps again */

/* The first statement from `from` on, or the last before `before`, that mentions the tensor, or
 * that writes it; OI_NOWHERE: there is none. */
size_t oi_where_next(oi_where *w, uint32_t tensor, size_t from, bool writes);
size_t oi_where_last(oi_where *w, uint32_t tensor, size_t before, bool writes);

/* Whether the statement at `at` may stand on the other side of all those from `first` to before
 * `last`: nothing there changes what it reads or, unless just its reads move, looks at what it
 * writes. */
bool oi_where_may_pass(oi_where *w, size_t at, size_t first, size_t last, bool reads_only);

#endif
