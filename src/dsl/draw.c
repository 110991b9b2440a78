/* draw.c: what the drawings share, Graphviz output and the HTML page around the SVG. */
#include "dsl/flow.h"

typedef struct job {
    const oi_graph *g;
    oi_draw_fn *draw;
    oi_arena *scratch;
    oi_buf out;
} job;

static void run(void *ctx)
{
    job *j = ctx;
    oi_flow flow;
    oi_flow_make(j->g, j->scratch, &flow);
    j->draw(j->g, &flow, j->scratch, &j->out);
}

oi_status oi_draw(const oi_graph *g, oi_draw_fn *draw, char **out)
{
    job j = {.g = g, .draw = draw, .scratch = oi_arena_new()};
    oi_status status = j.scratch ? oi_arena_guard(j.scratch, run, &j) : OI_ERR_ENV;
    oi_arena_free(j.scratch);
    if (status == OI_OK)
        return oi_buf_take(&j.out, out);
    oi_buf_free(&j.out);
    return status;
}

/* -- Graphviz -- */

static const char *dot_color(const oi_node *n)
{
    switch (n->kind) {
    case OI_NODE_OP: return "#dbeafe";
    case OI_NODE_ASSIGN: return "#f1f5f9";
    case OI_NODE_LOOP:
    case OI_NODE_BRANCH: return "#fef3c7";
    case OI_NODE_YIELD:
    case OI_NODE_AWAIT: return "#f3e8ff";
    case OI_NODE_BARRIER:
    case OI_NODE_DEP:
    case OI_NODE_RETURN: return "#e2e8f0";
    default: return "#dcfce7"; /* cache and transfer */
    }
}

static void dot_block(const oi_graph *g, const oi_flow *flow, size_t block, oi_buf *out)
{
    oi_buf_printf(out, "  subgraph cluster_%zu {\n    label=", block);
    oi_put_dot(out, g->blocks.at[block].name.text);
    oi_buf_puts(out, ";\n    style=rounded;\n    color=\"#94a3b8\";\n");
    for (uint32_t r = flow->first_row.at[block]; r < flow->first_row.at[block + 1]; r++) {
        oi_buf_printf(out, "    n%u [label=", r);
        oi_put_dot(out, flow->rows.at[r].text);
        oi_buf_printf(out, ", fillcolor=\"%s\"];\n", dot_color(flow->rows.at[r].node));
        if (r > flow->first_row.at[block])
            oi_buf_printf(out, "    n%u -> n%u [color=\"#94a3b8\", weight=10];\n", r - 1, r);
    }
    oi_buf_puts(out, "  }\n");
}

static void dot_call(const oi_graph *g, const oi_flow *flow, uint32_t row, oi_name to, oi_buf *out)
{
    uint32_t block = to.text ? oi_graph_find_block(g, to.text) : OI_MAP_NONE;
    if (block == OI_MAP_NONE || flow->first_row.at[block] == flow->first_row.at[block + 1])
        return;
    oi_buf_printf(out, "  n%u -> n%u [style=dashed, color=\"#b45309\"];\n", row,
                  flow->first_row.at[block]);
}

static void draw_dot(const oi_graph *g, const oi_flow *flow, oi_arena *a, oi_buf *out)
{
    (void)a;
    oi_buf_puts(out, "digraph openinfer {\n  node [shape=box, style=\"filled,rounded\", "
                     "fontname=monospace, fontsize=10];\n  edge [fontname=monospace, "
                     "fontsize=9];\n");
    for (size_t b = 0; b < g->blocks.n; b++)
        dot_block(g, flow, b, out);
    for (size_t i = 0; i < flow->edges.n; i++) {
        const oi_flow_edge *e = &flow->edges.at[i];
        oi_buf_printf(out, "  n%u -> n%u [constraint=false, color=\"#2563eb\", label=", e->from,
                      e->to);
        oi_put_dot(out, e->var);
        oi_buf_puts(out, "];\n");
    }
    for (uint32_t r = 0; r < flow->rows.n; r++) {
        const oi_node *n = flow->rows.at[r].node;
        if (n->kind != OI_NODE_BRANCH)
            continue;
        dot_call(g, flow, r, n->as.branch.then_block, out);
        dot_call(g, flow, r, n->as.branch.else_block, out);
    }
    oi_buf_puts(out, "}\n");
}

oi_status oi_graph_to_dot(const oi_graph *g, char **out, oi_diag *diag)
{
    (void)diag;
    return oi_draw(g, draw_dot, out);
}

/* -- HTML -- */

static void page(oi_buf *out, const oi_graph *g, const char *svg, const char *text)
{
    const char *title = g->origin ? g->origin : "graph";
    oi_buf_puts(out, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>");
    oi_put_xml(out, title);
    oi_buf_puts(out, "</title>\n<style>body{font:14px sans-serif;margin:24px;background:#fff;"
                     "color:#0f172a}pre{font:12px monospace;background:#f8fafc;padding:12px;"
                     "border:1px solid #e2e8f0;overflow:auto}</style>\n<h1>");
    oi_put_xml(out, title);
    oi_buf_printf(out, "</h1>\n<p>%zu variables, %zu blocks, %zu nodes</p>\n", g->vars.n,
                  g->blocks.n, g->nodes.n);
    oi_buf_puts(out, svg);
    oi_buf_puts(out, "<h2>Text</h2>\n<pre>");
    oi_put_xml(out, text);
    oi_buf_puts(out, "</pre>\n</html>\n");
}

oi_status oi_graph_to_html(const oi_graph *g, char **out, oi_diag *diag)
{
    char *svg = NULL, *text = NULL;
    oi_status status = oi_graph_to_svg(g, &svg, diag);
    if (status == OI_OK)
        status = oi_graph_to_text(g, &text, diag);
    if (status == OI_OK) {
        oi_buf buf = {0};
        page(&buf, g, svg, text);
        status = oi_buf_take(&buf, out);
    }
    oi_free(svg);
    oi_free(text);
    return status;
}
