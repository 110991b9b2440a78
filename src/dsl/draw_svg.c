/* draw_svg.c: a graph as one self-contained picture. Memory on the left, one panel per block beside
 * it, a row per statement, loops as frames around their rows. Curves at the right of a panel carry
 * values from the row that wrote them to the row that reads them; dashed arrows are branches. */
#include "dsl/flow.h"

#define FONT 12u
#define CHAR_W                                                                         \
    7.25 /* of the monospace font at FONT px; coordinates are printed as whole pixels, \
          * which no locale can spoil */
#define ROW   24u
#define GAP   28u /* between panels */
#define PAD   12u
#define HEAD  34u
#define STEP  16u /* per loop level */
#define LANE  7u  /* between neighbouring curves */
#define LANES 10u

typedef struct panel {
    double x, y, w, h, inner; /* inner: width of the rows, curves are right of it */
} panel;

static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* Colours on light paper; `name` is the class by which the style sheet has those on dark paper. */
typedef struct look {
    const char *fill, *stroke, *name;
} look;

static look look_of(oi_node_kind k)
{
    switch (k) {
    case OI_NODE_OP: return (look){"#dbeafe", "#3b82f6", "op"};
    case OI_NODE_ASSIGN: return (look){"#f8fafc", "#cbd5e1", "assign"};
    case OI_NODE_BRANCH: return (look){"#fef3c7", "#d97706", "branch"};
    case OI_NODE_YIELD:
    case OI_NODE_AWAIT: return (look){"#f3e8ff", "#9333ea", "lend"};
    case OI_NODE_BARRIER:
    case OI_NODE_DEP:
    case OI_NODE_RETURN: return (look){"#e2e8f0", "#64748b", "order"};
    case OI_NODE_LOOP: return (look){"none", "#d97706", "frame"};
    default: return (look){"#dcfce7", "#16a34a", "persistent"}; /* cache and transfer */
    }
}

static void text_at(oi_buf *out, double x, double y, const char *class, const char *text)
{
    oi_buf_printf(out, "<text x=\"%d\" y=\"%d\" class=\"%s\">", (int)x, (int)y, class);
    oi_put_xml(out, text);
    oi_buf_puts(out, "</text>\n");
}

static void box(oi_buf *out, double x, double y, double w, double h, look l, const char *class)
{
    oi_buf_printf(out,
                  "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" "
                  "fill=\"%s\" stroke=\"%s\" class=\"%s %s\"/>\n",
                  (int)x, (int)y, (int)w, (int)h, l.fill, l.stroke, class, l.name);
}

/* -- memory -- */

static const look kind_look[] = {
    [OI_DYNAMIC] = {"#ffedd5", "#ea580c", "dynamic"},
    [OI_VOLATILE] = {"#e0f2fe", "#0284c7", "volatile"},
    [OI_CONSTANT] = {"#f1f5f9", "#64748b", "order"},
    [OI_PERSISTENT] = {"#dcfce7", "#16a34a", "persistent"},
};

static const char *decl_text(oi_arena *a, const oi_var *v)
{
    oi_buf b = {0};
    oi_decl_print(&b, v);
    return oi_buf_to_arena(&b, a);
}

/* Does variable i begin a run of its kind? Such runs get a heading. */
static bool begins_kind(const oi_graph *g, size_t i)
{
    return i == 0 || g->vars.at[i].kind != g->vars.at[i - 1].kind;
}

static panel memory_size(const oi_graph *g, oi_arena *a)
{
    size_t chars = 16, headings = 0;
    for (size_t i = 0; i < g->vars.n; i++) {
        size_t n = width_of(decl_text(a, &g->vars.at[i]));
        chars = n > chars ? n : chars;
        headings += begins_kind(g, i);
    }
    double rows = (double)(g->vars.n + headings);
    return (panel){
        .x = PAD, .y = PAD, .w = (double)chars * CHAR_W + 4 * PAD, .h = HEAD + rows * ROW + PAD};
}

static void memory(const oi_graph *g, oi_arena *a, panel p, oi_buf *out)
{
    box(out, p.x, p.y, p.w, p.h, (look){"#ffffff", "#94a3b8", "card"}, "panel");
    text_at(out, p.x + PAD, p.y + 22, "title", "memory");
    double y = p.y + HEAD;
    for (size_t i = 0; i < g->vars.n; i++) {
        const oi_var *v = &g->vars.at[i];
        if (begins_kind(g, i)) {
            text_at(out, p.x + PAD, y + 15, "kind", oi_var_kind_name(v->kind));
            y += ROW;
        }
        oi_buf_puts(out, "<g>");
        box(out, p.x + PAD, y, p.w - 2 * PAD, ROW - 4, kind_look[v->kind], "row");
        text_at(out, p.x + 2 * PAD, y + 14, "code", decl_text(a, v));
        oi_buf_puts(out, "</g>\n");
        y += ROW;
    }
}

/* -- blocks -- */

static panel block_size(const oi_graph *g, const oi_flow *flow, size_t block)
{
    uint32_t first = flow->first_row.at[block], end = flow->first_row.at[block + 1];
    double chars = (double)width_of(g->blocks.at[block].name.text) + 8;
    for (uint32_t r = first; r < end; r++) {
        const oi_flow_row *row = &flow->rows.at[r];
        double n = (double)width_of(row->text) + 2.0 * row->depth * STEP / CHAR_W;
        chars = n > chars ? n : chars;
    }
    double inner = chars * CHAR_W + 3 * PAD;
    return (panel){.y = PAD,
                   .inner = inner,
                   .w = inner + LANES * LANE + PAD,
                   .h = HEAD + (double)(end - first) * ROW + PAD};
}

static double row_y(const oi_flow *flow, panel p, uint32_t row)
{
    return p.y + HEAD + (double)(row - flow->first_row.at[flow->rows.at[row].block]) * ROW;
}

static void draw_row(const oi_flow *flow, panel p, uint32_t r, oi_buf *out)
{
    const oi_flow_row *row = &flow->rows.at[r];
    double inset = PAD + (double)row->depth * STEP, y = row_y(flow, p, r);
    double h = (double)row->span * ROW - 4;
    look l = look_of(row->node->kind);
    oi_buf_printf(out, "<g id=\"node-%llu\"><title>node %llu</title>",
                  (unsigned long long)row->node->index, (unsigned long long)row->node->index);
    box(out, p.x + inset, y, p.inner - inset - (double)row->depth * STEP / 2, h, l, "row");
    text_at(out, p.x + inset + 6, y + 14, row->node->kind == OI_NODE_LOOP ? "loop" : "code",
            row->text);
    oi_buf_puts(out, "</g>\n");
}

static void draw_edge(const oi_flow *flow, panel p, const oi_flow_edge *e, oi_buf *out)
{
    double x = p.x + p.inner - 2, y0 = row_y(flow, p, e->from) + 10, y1 = row_y(flow, p, e->to) + 8;
    uint32_t reach = e->to > e->from ? e->to - e->from : e->from - e->to;
    double bend = x + 10 + LANE * (double)(reach < LANES ? reach : LANES);
    oi_buf_printf(out,
                  "<path class=\"flow\" d=\"M%d %d C%d %d %d %d %d %d\" "
                  "marker-end=\"url(#tip)\"><title>",
                  (int)x, (int)y0, (int)bend, (int)y0, (int)bend, (int)y1, (int)x, (int)y1);
    oi_put_xml(out, e->var);
    oi_buf_puts(out, "</title></path>\n");
}

static void draw_call(const oi_graph *g, const oi_flow *flow, const panel *panels, uint32_t r,
                      oi_name to, oi_buf *out)
{
    uint32_t target = to.text ? oi_graph_find_block(g, to.text) : OI_MAP_NONE;
    if (target == OI_MAP_NONE)
        return;
    panel from = panels[flow->rows.at[r].block], p = panels[target];
    bool rightward = p.x > from.x;
    double x0 = from.x + (rightward ? from.inner : PAD), y0 = row_y(flow, from, r) + 10;
    double x1 = rightward ? p.x : p.x + p.w, y1 = p.y + 18, mid = (x0 + x1) / 2;
    oi_buf_printf(out,
                  "<path class=\"call\" d=\"M%d %d C%d %d %d %d %d %d\" "
                  "marker-end=\"url(#tip)\"/>\n",
                  (int)x0, (int)y0, (int)mid, (int)y0, (int)mid, (int)y1, (int)x1, (int)y1);
}

/* Of the same hues; a reader that knows no media queries shows the light picture. */
static const char dark[] =
    "@media(prefers-color-scheme:dark){text{fill:#e2e8f0}.paper{fill:#0f172a}"
    ".card{fill:#1e293b;stroke:#475569}.op{fill:#1e3a5f;stroke:#60a5fa}"
    ".assign{fill:#233044;stroke:#64748b}.branch{fill:#4a3310;stroke:#f59e0b}"
    ".lend{fill:#3b2459;stroke:#c084fc}.order{fill:#334155;stroke:#94a3b8}"
    ".frame{stroke:#f59e0b}.persistent{fill:#14432a;stroke:#4ade80}"
    ".dynamic{fill:#4d2c14;stroke:#fb923c}.volatile{fill:#123a52;stroke:#38bdf8}"
    ".loop{fill:#fbbf24}.kind{fill:#94a3b8}.flow{stroke:#60a5fa;stroke-opacity:.6}"
    ".call{stroke:#f59e0b}}";

static void header(oi_buf *out, double w, double h)
{
    oi_buf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                  "viewBox=\"0 0 %d %d\">\n",
                  (int)w, (int)h, (int)w, (int)h);
    oi_buf_printf(out,
                  "<style>text{font:%upx monospace;fill:#0f172a}.title{font-weight:bold}"
                  ".loop{fill:#b45309}.kind{fill:#64748b}.panel{stroke-width:1}.row{stroke-width:1}"
                  ".flow{fill:none;stroke:#2563eb;stroke-opacity:.45;stroke-width:1.3}"
                  ".flow:hover{stroke-opacity:1;stroke-width:2.5}"
                  ".call{fill:none;stroke:#b45309;stroke-dasharray:5 3}%s</style>\n",
                  FONT, dark);
    oi_buf_puts(out, "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
                     "markerWidth=\"6\" markerHeight=\"6\" orient=\"auto-start-reverse\">"
                     "<path d=\"M0 0 L8 4 L0 8 z\" fill=\"context-stroke\"/></marker></defs>\n"
                     "<rect width=\"100%\" height=\"100%\" fill=\"#f8fafc\" "
                     "class=\"paper\"/>\n");
}

static void draw_svg(const oi_graph *g, const oi_flow *flow, oi_arena *a, oi_buf *out)
{
    panel mem = memory_size(g, a);
    panel *panels = oi_arena_alloc(a, (g->blocks.n + 1) * sizeof *panels);
    double x = mem.x + mem.w + GAP, height = mem.h;
    for (size_t b = 0; b < g->blocks.n; b++) {
        panels[b] = block_size(g, flow, b);
        panels[b].x = x;
        x += panels[b].w + GAP;
        height = panels[b].h > height ? panels[b].h : height;
    }
    header(out, x - GAP + PAD, height + 2 * PAD);
    memory(g, a, mem, out);
    for (size_t b = 0; b < g->blocks.n; b++) {
        panel p = panels[b];
        box(out, p.x, p.y, p.w, p.h, (look){"#ffffff", "#94a3b8", "card"}, "panel");
        text_at(out, p.x + PAD, p.y + 22, "title",
                oi_arena_printf(a, "block %s", g->blocks.at[b].name.text));
    }
    for (uint32_t r = 0; r < flow->rows.n; r++)
        draw_row(flow, panels[flow->rows.at[r].block], r, out);
    for (size_t i = 0; i < flow->edges.n; i++)
        draw_edge(flow, panels[flow->rows.at[flow->edges.at[i].to].block], &flow->edges.at[i], out);
    for (uint32_t r = 0; r < flow->rows.n; r++) {
        const oi_node *n = flow->rows.at[r].node;
        if (n->kind != OI_NODE_BRANCH)
            continue;
        draw_call(g, flow, panels, r, n->as.branch.then_block, out);
        draw_call(g, flow, panels, r, n->as.branch.else_block, out);
    }
    oi_buf_puts(out, "</svg>\n");
}

oi_status oi_graph_to_svg(const oi_graph *g, char **out, oi_diag *diag)
{
    (void)diag;
    return oi_draw(g, draw_svg, out);
}
