/* flow.c: what a picture of a graph shows: its statements as rows and the values that pass from the
 * row that wrote them last to the row that reads them. */
#include "dsl/flow.h"

#include "dsl/dsl.h"

typedef struct builder {
    const oi_graph *g;
    oi_arena *a;
    oi_flow *flow;
    uint32_t row;  /* being looked at */
    oi_map writer; /* variable -> row that wrote it last in this block */
} builder;

/* Reads come before writes in the order of uses, so x >> x is an edge from the writer before. */
static void follow(void *ctx, const oi_node *n, const oi_use *use)
{
    (void)n;
    builder *b = ctx;
    uint32_t from = oi_map_get(&b->writer, use->name);
    bool reads = oi_use_reads(use->role) || use->role == OI_USE_YIELD;
    if (reads && from != OI_MAP_NONE && from != b->row)
        *OI_PUSH(b->a, &b->flow->edges) = (oi_flow_edge){from, b->row, use->name};
    if (oi_use_writes(use->role) || use->role == OI_USE_AWAIT)
        oi_map_set(&b->writer, use->name, b->row);
}

static void rows(builder *b, const oi_ids *list, unsigned depth, uint32_t block)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_node *n = &b->g->nodes.at[list->at[i]];
        uint32_t row = (uint32_t)b->flow->rows.n;
        oi_buf text = {0};
        oi_node_print(&text, n);
        char *copy = oi_buf_to_arena(&text, b->a);
        *OI_PUSH(b->a, &b->flow->rows) = (oi_flow_row){n, copy, depth, block, 1};
        b->row = row;
        oi_node_uses(n, follow, b);
        if (n->kind == OI_NODE_LOOP) {
            rows(b, &n->as.loop.body, depth + 1, block);
            b->flow->rows.at[row].span = (uint32_t)b->flow->rows.n - row;
        }
    }
}

void oi_flow_make(const oi_graph *g, oi_arena *a, oi_flow *out)
{
    *out = (oi_flow){0};
    for (size_t i = 0; i < g->blocks.n; i++) {
        builder b = {.g = g, .a = a, .flow = out, .writer.arena = a};
        uint32_t first = (uint32_t)out->rows.n;
        rows(&b, &g->blocks.at[i].nodes, 0, (uint32_t)i);
        *OI_PUSH(a, &out->first_row) = first;
    }
    *OI_PUSH(a, &out->first_row) = (uint32_t)out->rows.n;
}
