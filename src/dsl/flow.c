/* flow.c: what a picture of a graph shows: its statements as rows and the values that pass from the
 * row that wrote them last to the row that reads them. */
#include "dsl/flow.h"

#include "dsl/dsl.h"

typedef struct builder {
    const oi_graph *g;
    oi_arena *a;
    oi_flow *flow;
    oi_map writer; /* variable -> row that wrote it last in this block */
} builder;

static void edge(builder *b, const char *var, uint32_t to)
{
    uint32_t from = oi_map_get(&b->writer, var);
    if (from == OI_MAP_NONE || from == to)
        return;
    *OI_PUSH(b->a, &b->flow->edges) = (oi_flow_edge){from, to, var};
}

static void reads_names(builder *b, const oi_names *names, uint32_t row)
{
    for (size_t i = 0; i < names->n; i++)
        edge(b, names->at[i].text, row);
}

static void accesses_edges(builder *b, const oi_accesses *list, uint32_t row, bool write)
{
    for (size_t i = 0; i < list->n; i++) {
        if (write)
            oi_map_set(&b->writer, list->at[i].base.text, row);
        else
            edge(b, list->at[i].base.text, row);
    }
}

static void node_edges(builder *b, const oi_node *n, uint32_t row)
{
    switch (n->kind) {
    case OI_NODE_OP:
        accesses_edges(b, &n->as.op.inputs, row, false);
        accesses_edges(b, &n->as.op.outputs, row, true);
        break;
    case OI_NODE_CACHE_READ:
    case OI_NODE_CACHE_WRITE:
    case OI_NODE_TRANSFER:
        edge(b, n->as.move.from.base.text, row);
        oi_map_set(&b->writer, n->as.move.to.base.text, row);
        break;
    case OI_NODE_CACHE_INCREMENT:
    case OI_NODE_CACHE_DECREMENT:
    case OI_NODE_CACHE_RESET:
        edge(b, n->as.move.to.base.text, row);
        oi_map_set(&b->writer, n->as.move.to.base.text, row);
        break;
    case OI_NODE_BRANCH:
        if (n->as.branch.cond.text)
            edge(b, n->as.branch.cond.text, row);
        break;
    case OI_NODE_YIELD:
    case OI_NODE_RETURN: reads_names(b, &n->as.list.names, row); break;
    case OI_NODE_AWAIT:
        for (size_t i = 0; i < n->as.list.names.n; i++)
            oi_map_set(&b->writer, n->as.list.names.at[i].text, row);
        break;
    default: break;
    }
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
        node_edges(b, n, row);
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
