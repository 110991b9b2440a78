/* flow.h: rows and edges of a picture; shared by the drawings; no other file includes it. */
#ifndef OI_DSL_FLOW_H
#define OI_DSL_FLOW_H

#include "graph/graph.h"

typedef struct oi_flow_row {
    const oi_node *node;
    const char *text; /* the statement; a loop only its header */
    unsigned depth;   /* enclosing loops */
    uint32_t block;
    uint32_t span; /* rows it covers: 1, or a loop with its body */
} oi_flow_row;

typedef struct oi_flow_edge {
    uint32_t from, to; /* rows */
    const char *var;
} oi_flow_edge;

typedef struct oi_flow {
    OI_VEC(oi_flow_row) rows;
    OI_VEC(oi_flow_edge) edges;
    oi_ids first_row; /* per block, and one past the last */
} oi_flow;

void oi_flow_make(const oi_graph *g, oi_arena *a, oi_flow *out);

/* -- print.c -- */
void oi_decl_print(oi_buf *out, const oi_var *v); /* one declaration */

/* -- draw.c -- */
/* Runs draw(g, flow, out) with scratch memory and hands the text to the caller. */
typedef void oi_draw_fn(const oi_graph *g, const oi_flow *flow, oi_arena *a, oi_buf *out);
oi_status oi_draw(const oi_graph *g, oi_draw_fn *draw, char **out);

#endif
