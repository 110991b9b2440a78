/* check.c: the public way to all static checks: structure first, then types. */
#include "graph/graph.h"
#include "program/program.h"

oi_graph_counts oi_graph_count(const oi_graph *g)
{
    oi_graph_counts n = {.variables = g->vars.n, .blocks = g->blocks.n, .nodes = g->nodes.n};
    for (size_t i = 0; i < g->nodes.n; i++)
        n.variables += g->nodes.at[i].kind == OI_NODE_ASSIGN;
    return n;
}

oi_status oi_graph_check(const oi_graph *g, const oi_check_options *options, oi_diag *diag)
{
    return oi_graph_check_structure(g, options && options->strict, diag);
}
