/* report_map.c: draws the working memory: statements of a step from left to right in execution
 * order, bytes upwards, and a block per tensor from its first use to its last. */
#include "emit/report.h"

#include <inttypes.h>

enum { LEFT = 78, TOP = 14, WIDTH = 900, HEIGHT = 300, COLOURS = 8 };

typedef struct map {
    const oi_plan *u;
    oi_buf *out;
    uint32_t n_positions;
    uint64_t top; /* byte offset of the upper edge */
} map;

static double across(const map *m, uint32_t position)
{
    return LEFT + (double)WIDTH * position / (m->n_positions + 1);
}

static double up(const map *m, uint64_t bytes)
{
    return TOP + HEIGHT - (double)HEIGHT * (double)bytes / (double)m->top;
}

static void put_block(const map *m, uint32_t tensor)
{
    const oi_tensor *t = &m->u->tensors.at[tensor];
    const uint32_t first = (uint32_t)t->alive[0], last = (uint32_t)t->alive[1];
    uint64_t bytes = oi_tensor_bytes(t);
    double x = across(m, first), y = up(m, t->offset + bytes);
    double w = across(m, last + 1) - x, h = up(m, t->offset) - y;
    oi_buf_printf(m->out,
                  "<rect class=\"c%u\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\">",
                  tensor % COLOURS, x, y, w, h);
    oi_buf_puts(m->out, "<title>");
    oi_put_xml(m->out, t->name);
    oi_buf_printf(m->out, ": %s at %" PRIu64 ", statements %u to %u</title></rect>",
                  oi_report_bytes(m->u->arena, bytes), t->offset, first, last);
    size_t len = strlen(t->name);
    if (h < 11 || w < (double)len * 6.2 + 8) /* too small for its name */
        return;
    oi_buf_printf(m->out, "<text class=\"name\" x=\"%.2f\" y=\"%.2f\">", x + w / 2,
                  y + h / 2 + 3.5);
    oi_put_xml(m->out, t->name);
    oi_buf_puts(m->out, "</text>");
}

static void put_grid(const map *m)
{
    for (int i = 0; i <= 4; i++) {
        uint64_t bytes = m->top * (uint64_t)i / 4;
        double y = up(m, bytes);
        oi_buf_printf(m->out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.2f\" y2=\"%.2f\"/>",
                      LEFT, LEFT + WIDTH, y, y);
        oi_buf_printf(m->out,
                      "<text class=\"axis\" x=\"%d\" y=\"%.2f\" text-anchor=\"end\">%s</text>",
                      LEFT - 8, y + 3.5, oi_report_bytes(m->u->arena, bytes));
    }
    oi_buf_printf(m->out, "<text class=\"axis\" x=\"%d\" y=\"%d\">first statement</text>", LEFT,
                  TOP + HEIGHT + 18);
    oi_buf_printf(m->out,
                  "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"end\">statement %u</text>",
                  LEFT + WIDTH, TOP + HEIGHT + 18, m->n_positions);
}

static bool is_shown(const oi_plan *u, uint32_t graph, size_t tensor)
{
    const oi_tensor *t = &u->tensors.at[tensor];
    return t->space == OI_SPACE_ARENA && t->graph == graph && !t->is_private;
}

void oi_report_map(const oi_plan *u, uint32_t graph, oi_buf *out)
{
    map m = {u, out, u->graphs.at[graph].n_positions, 0};
    for (size_t i = 0; i < u->tensors.n; i++) {
        const oi_tensor *t = &u->tensors.at[i];
        uint64_t end = t->offset + oi_tensor_bytes(t);
        m.top = is_shown(u, graph, i) && end > m.top ? end : m.top;
    }
    if (m.top == 0) {
        oi_buf_puts(out, "<p class=\"quiet\">A step needs no working memory.</p>");
        return;
    }
    oi_buf_printf(out,
                  "<div class=\"scroll\"><svg class=\"map\" viewBox=\"0 0 %d %d\" role=\"img\" "
                  "aria-label=\"working memory over a step\">",
                  LEFT + WIDTH + 12, TOP + HEIGHT + 28);
    put_grid(&m);
    for (size_t i = 0; i < u->tensors.n; i++)
        if (is_shown(u, graph, i))
            put_block(&m, (uint32_t)i);
    oi_buf_puts(out, "</svg></div>");
}
