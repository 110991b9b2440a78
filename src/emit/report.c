/* report.c: writes report.html, the plan for people: memory over the step, kernels beside the lines
 * they implement, why passes did not apply, and the certificate. It is one self-contained page, and
 * deterministic like everything emitted. */
#include "emit/report.h"

#include "device/device.h"
#include "device/cost.h"

#include <inttypes.h>

extern const oi_embedded oi_report_files[]; /* generated: report.css */

static const char *scaled(oi_arena *a, double n, double step, const char *const *units)
{
    int i = 0;
    while (n >= step && units[i + 1]) {
        n /= step;
        i++;
    }
    int digits = i == 0 || n >= 100 ? 0 : n >= 10 ? 1 : 2;
    return oi_arena_printf(a, "%.*f%s", digits, n, units[i]);
}

const char *oi_report_bytes(oi_arena *a, uint64_t n)
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", NULL};
    return scaled(a, (double)n, 1024, units);
}

const char *oi_report_count(oi_arena *a, uint64_t n)
{
    static const char *const units[] = {"", " k", " M", " G", " T", NULL};
    return scaled(a, (double)n, 1000, units);
}

static const char *time_of(oi_arena *a, double ns)
{
    static const char *const units[] = {" ns", " us", " ms", " s", NULL};
    return scaled(a, ns, 1000, units);
}

/* -- the top: what it needs -- */

static void put_tile(oi_buf *out, const char *value, const char *what)
{
    oi_buf_printf(out, "<div class=\"tile\"><b>%s</b><span>%s</span></div>", value, what);
}

static void put_head(const oi_plan *u, const oi_certificate *c, oi_buf *out)
{
    oi_arena *a = u->arena;
    oi_cost all = {0};
    for (size_t g = 0; g < u->graphs.n; g++) {
        all.macs += u->graphs.at[g].cost.macs;
        all.bytes += u->graphs.at[g].cost.bytes;
        all.ns += u->graphs.at[g].cost.ns;
        all.is_open |= u->graphs.at[g].cost.is_open;
    }
    oi_buf_puts(out, "<h1>");
    oi_put_xml(out, u->name);
    oi_buf_puts(out, "</h1><p class=\"quiet\">for ");
    oi_put_xml(out, u->target->name);
    oi_buf_printf(out, " (%s, %s) · weights <code>%016" PRIx64 "</code> · OpenInfer %s</p>",
                  oi_device_type_name(u->target->type), oi_device_api_name(u->target->api),
                  u->weights_hash, oi_version());
    if (oi_plan_count_lowered(u)) {
        oi_buf_puts(out, "<p><b>Precision:</b> ");
        oi_put_xml(out, oi_plan_lowered_text(a, u));
        oi_buf_puts(out, "</p>");
    }
    oi_buf_puts(out, "<div class=\"tiles\">");
    put_tile(out, oi_report_bytes(a, c->ram_bytes), "RAM, stack included where it is reserved");
    put_tile(out, oi_report_bytes(a, c->arena_bytes), "working memory of a step");
    put_tile(out, oi_report_bytes(a, c->weights_bytes), "weights, read only");
    const char *step = u->graphs.n > 1 ? "a step of each graph" : "a step";
    const char *open = all.is_open ? ", open loops once" : "";
    put_tile(out, oi_report_count(a, all.macs),
             oi_arena_printf(a, "multiply-accumulates, %s%s", step, open));
    put_tile(out, time_of(a, all.ns), oi_arena_printf(a, "predicted for %s%s", step, open));
    put_tile(out, oi_report_bytes(a, all.bytes), oi_arena_printf(a, "moved, %s%s", step, open));
    oi_buf_puts(out, "</div>");
}

static void put_bar(const oi_plan *u, const oi_certificate *c, oi_buf *out)
{
    const struct {
        const char *what;
        uint64_t bytes;
    } parts[] = {{"kept from step to step", c->state_bytes},
                 {"working memory", c->arena_bytes},
                 {"inputs and outputs", c->io_bytes},
                 {"to take a failed step back", c->undo_bytes},
                 {"stack", c->stack_bytes}};
    oi_buf_puts(out, "<h2>RAM</h2><div class=\"bar\">");
    for (size_t i = 0; i < OI_COUNT(parts); i++)
        if (parts[i].bytes)
            oi_buf_printf(out, "<i class=\"c%zu\" style=\"flex:%" PRIu64 "\"></i>", i,
                          parts[i].bytes);
    oi_buf_puts(out, "</div><div class=\"legend\">");
    for (size_t i = 0; i < OI_COUNT(parts); i++)
        if (parts[i].bytes)
            oi_buf_printf(out, "<span><i class=\"c%zu\"></i>%s <b>%s</b></span>", i, parts[i].what,
                          oi_report_bytes(u->arena, parts[i].bytes));
    oi_buf_puts(out, "</div>");
}

static void put_maps(const oi_plan *u, oi_buf *out)
{
    oi_buf_puts(out, "<h2>Working memory over a step</h2>");
    if (u->arena_bytes)
        oi_buf_printf(out,
                      "<p>Each block is a tensor from its first use to its last. %s are laid out; "
                      "%s are alive at one time, and with the statements in this order no layout "
                      "can do with less.</p>",
                      oi_report_bytes(u->arena, u->arena_bytes),
                      oi_report_bytes(u->arena, u->arena_alive));
    for (uint32_t g = 0; g < u->graphs.n; g++) {
        if (u->graphs.n > 1) {
            oi_buf_puts(out, "<p class=\"quiet\">");
            oi_put_xml(out, u->graphs.at[g].name);
            oi_buf_puts(out, "</p>");
        }
        oi_report_map(u, g, out);
    }
}

/* -- kernels -- */

/* "4 x 32, sum over 64" */
static const char *axes_text(oi_arena *a, const oi_snest *n)
{
    oi_buf b = {0};
    bool over = false;
    for (uint32_t i = 0; i < n->n_axes; i++) {
        if (n->axes[i].extent == 1 && !(n->extents && n->extents[i]))
            continue;
        const char *before = n->axes[i].is_reduced && !over ? (b.n ? " over " : "over ")
                             : b.n                          ? " × "
                                                            : "";
        over |= n->axes[i].is_reduced;
        oi_buf_printf(&b, "%s%s%" PRId64, before, n->extents && n->extents[i] ? "≤ " : "",
                      n->axes[i].extent);
    }
    return b.n ? oi_buf_to_arena(&b, a) : "1";
}

static void put_lines(const oi_plan *u, const oi_skernel *k, oi_buf *out)
{
    uint32_t last = 0;
    for (size_t i = 0; i < k->nodes.n; i++) {
        uint32_t line = k->nodes.at[i]->source->span.line;
        const char *text = oi_node_source(u->arena, u, k->graph, k->nodes.at[i]);
        if (!text || line == last)
            continue;
        oi_buf_printf(out, "<span class=\"code\"><i>%u</i>", line);
        oi_put_xml(out, text);
        oi_buf_puts(out, "</span>");
        last = line;
    }
}

static void put_loops(const oi_plan *u, const oi_skernel *k, oi_buf *out)
{
    if (k->recipe) {
        oi_buf_puts(out, "<span class=\"tag\">recipe ");
        oi_put_xml(out, k->recipe->name);
        oi_buf_puts(out, "</span>");
    }
    for (size_t i = 0, same; i < k->nests.n; i += same) {
        const char *text = axes_text(u->arena, &k->nests.at[i]);
        for (same = 1; i + same < k->nests.n; same++)
            if (strcmp(text, axes_text(u->arena, &k->nests.at[i + same])) != 0)
                break;
        oi_buf_printf(out, "<span class=\"code\">%s", text);
        if (same > 1)
            oi_buf_printf(out, " <i>%zu nests</i>", same);
        oi_buf_puts(out, "</span>");
    }
}

static void put_kernel(const oi_plan *u, const oi_skernel *k, double most, oi_buf *out)
{
    oi_arena *a = u->arena;
    oi_buf_puts(out, "<tr><td><code>");
    oi_put_xml(out, k->name);
    oi_buf_puts(out, "</code></td><td>");
    put_lines(u, k, out);
    oi_buf_puts(out, "</td><td>");
    put_loops(u, k, out);
    oi_buf_printf(out, "</td><td class=\"n\">%s</td><td class=\"n\">%s",
                  k->cost.macs ? oi_report_count(a, k->cost.macs) : "",
                  oi_report_bytes(a, k->cost.bytes));
    oi_buf_printf(out, "</td><td class=\"n\">%s", time_of(a, k->cost.ns));
    oi_buf_printf(out, "</td><td><span class=\"share\" style=\"width:%.0fpx\"></span></td></tr>\n",
                  most > 0 ? 1 + 70.0 * k->cost.ns / most : 1.0);
}

static void put_kernels(const oi_plan *u, oi_buf *out)
{
    double most = 0;
    size_t n = 0;
    for (size_t i = 0; i < u->kernels.n; i++)
        if (u->kernels.at[i].is_used) {
            most = u->kernels.at[i].cost.ns > most ? u->kernels.at[i].cost.ns : most;
            n++;
        }
    oi_buf_printf(out,
                  "<h2>Kernels</h2><p>%zu, in the order they were made. Costs are of one run, on "
                  "paper: multiply-accumulates, bytes read and written, and the time that this "
                  "device should take by its description, with %u threads.</p>",
                  n, oi_cost_machine(u->target).threads);
    if (!n)
        return;
    oi_buf_puts(out, "<div class=\"scroll\"><table><tr><th>kernel</th><th>from the graph</th>"
                     "<th>loops</th><th class=\"n\">MACs</th><th class=\"n\">moved</th>"
                     "<th class=\"n\">predicted</th><th></th>"
                     "</tr>\n");
    for (size_t i = 0; i < u->kernels.n; i++)
        if (u->kernels.at[i].is_used)
            put_kernel(u, &u->kernels.at[i], most, out);
    oi_buf_puts(out, "</table></div>");
}

/* -- what was not done -- */

static void put_notes(const oi_plan *u, oi_buf *out)
{
    oi_buf_puts(out, "<h2>What was left apart, and why</h2>");
    if (!u->notes.n) {
        oi_buf_puts(out, "<p class=\"quiet\">Nothing.</p>");
        return;
    }
    oi_buf_printf(out, "<details%s><summary>%zu reason%s</summary>",
                  u->notes.n <= 12 ? " open" : "", u->notes.n, u->notes.n == 1 ? "" : "s");
    oi_buf_puts(out, "<div class=\"scroll\"><table><tr><th>pass</th><th class=\"n\">line</th>"
                     "<th>why</th></tr>\n");
    for (size_t i = 0; i < u->notes.n; i++) {
        const oi_pass_note *n = &u->notes.at[i];
        uint32_t line = n->node ? n->node->source->span.line : 0;
        oi_buf_printf(out, "<tr><td>%s</td><td class=\"n\">", n->pass);
        if (line)
            oi_buf_printf(out, "%u", line);
        oi_buf_puts(out, "</td><td>");
        oi_put_xml(out, n->text);
        oi_buf_puts(out, "</td></tr>\n");
    }
    oi_buf_puts(out, "</table></div></details>");
}

/* -- state and weights, the largest first -- */

static void put_tensors(const oi_plan *u, oi_space space, const char *title, oi_buf *out)
{
    enum { MOST = 20 };
    uint32_t *ids = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *ids);
    size_t n = 0;
    for (uint32_t i = 0; i < u->tensors.n; i++) {
        if (u->tensors.at[i].space != space)
            continue;
        size_t at = n++; /* insertion sort: there are some hundreds at most */
        uint64_t bytes = oi_tensor_bytes(&u->tensors.at[i]);
        for (; at && oi_tensor_bytes(&u->tensors.at[ids[at - 1]]) < bytes; at--)
            ids[at] = ids[at - 1];
        ids[at] = i;
    }
    if (!n)
        return;
    oi_buf_printf(out,
                  "<h2>%s</h2><div class=\"scroll\"><table><tr><th>tensor</th><th>elements</th>"
                  "<th class=\"n\">bytes</th></tr>\n",
                  title);
    for (size_t i = 0; i < n && i < MOST; i++) {
        const oi_tensor *t = &u->tensors.at[ids[i]];
        oi_buf_puts(out, "<tr><td><code>");
        oi_put_xml(out, t->name);
        oi_buf_printf(out, "</code></td><td><code>%s[", oi_dtype_name(t->dtype));
        for (uint32_t d = 0; d < t->rank; d++)
            oi_buf_printf(out, "%s%" PRId64, d ? ", " : "", t->dims[d]);
        oi_buf_puts(out, "]");
        if (t->n_entries > 1)
            oi_buf_printf(out, " × %" PRIu64, t->n_entries);
        oi_buf_printf(out, "</code></td><td class=\"n\">%s</td></tr>\n",
                      oi_report_bytes(u->arena, oi_tensor_bytes(t)));
    }
    oi_buf_puts(out, "</table></div>");
    if (n > MOST)
        oi_buf_printf(out, "<p class=\"quiet\">and %zu smaller ones</p>", n - MOST);
}

/* -- certificate -- */

static void put_row(oi_buf *out, const char *what, uint64_t bytes)
{
    oi_buf_printf(out, "<tr><td>%s</td><td class=\"n\">%" PRIu64 "</td></tr>\n", what, bytes);
}

static void put_certificate(const oi_plan *u, const oi_certificate *c, oi_buf *out)
{
    oi_buf_puts(out, "<h2>Certificate</h2><div class=\"scroll\"><table><tr><th>what</th>"
                     "<th class=\"n\">bytes</th></tr>\n");
    put_row(out, "RAM in all", c->ram_bytes);
    put_row(out, "the program's struct", c->struct_bytes);
    put_row(out, "of it kept from step to step", c->state_bytes);
    put_row(out, "of it working memory", c->arena_bytes);
    put_row(out, "most of it that is alive at one time", u->arena_alive);
    put_row(out, "of it to take a failed step back", c->undo_bytes);
    put_row(out, "of it inputs and outputs", c->io_bytes);
    if (c->stack_bytes)
        put_row(out, "stack that is reserved", c->stack_bytes);
    put_row(out, "weights", c->weights_bytes);
    if (c->is_measured && !c->circuit) {
        put_row(out, "stack of a call, measured", c->measured.call_stack_bytes);
        put_row(out, "stack with main and HAL, measured", c->measured.program_stack_bytes);
        if (c->measured.flash_bytes)
            put_row(out, "flash, measured", c->measured.flash_bytes);
    }
    oi_buf_puts(out, "</table></div>");
    if (!c->is_measured && !c->circuit)
        oi_buf_puts(out, "<p class=\"quiet\">Stack and flash are measured by <code>openinfer synth "
                         "--certify</code>.</p>");
}

/* -- a circuit -- */

static void put_clocks(const oi_plan *u, const oi_certificate *c, oi_buf *out)
{
    for (size_t g = 0; c->clocks && g < u->graphs.n; g++) {
        oi_buf_puts(out, "<p>A step of ");
        oi_put_xml(out, u->graphs.at[g].name);
        oi_buf_printf(out, " takes %" PRIu64, c->clocks[g].least);
        if (c->clocks[g].most != c->clocks[g].least && c->clocks[g].most != UINT64_MAX)
            oi_buf_printf(out, " to %" PRIu64, c->clocks[g].most);
        oi_buf_puts(out, c->clocks[g].most == UINT64_MAX ? " clocks or more" : " clocks");
        if (c->clocks[g].interval)
            oi_buf_printf(out, "; one begins every %" PRIu64, c->clocks[g].interval);
        oi_buf_puts(out, ".</p>\n");
    }
}

static void put_synthesized(const oi_certificate *c, oi_buf *out)
{
    const oi_plan_measured *m = &c->measured;
    if (!c->is_measured) {
        oi_buf_puts(out,
                    "<p class=\"quiet\">What synthesis makes of it is measured by <code>openinfer "
                    "synth --certify</code>.</p>");
        return;
    }
    oi_buf_printf(out,
                  "<p>Synthesized, it has %" PRIu64 " gates and registers; on an iCE40 %" PRIu64
                  " LUTs, %" PRIu64 " registers and %" PRIu64 " block RAMs",
                  m->gates, m->luts, m->ffs, m->brams);
    if (m->clock_hz)
        oi_buf_printf(out, ", and runs at %.1f MHz", (double)m->clock_hz / 1e6);
    oi_buf_puts(out, ".</p>\n");
}

static void put_circuit(const oi_plan *u, const oi_certificate *c, oi_buf *out)
{
    oi_buf_puts(out, "<h2>Circuit</h2>");
    put_clocks(u, c, out);
    if (c->circuit->serial_why) {
        oi_buf_puts(out, "<p>One kernel runs after the other: ");
        oi_put_xml(out, c->circuit->serial_why);
        oi_buf_puts(out, ".</p>\n");
    }
    oi_buf_puts(out, "<div class=\"scroll\"><table><tr><th>kernel</th><th class=\"n\">clocks</th>"
                     "<th class=\"n\">of them busy with a beat</th><th class=\"n\">multipliers"
                     "</th><th class=\"n\">LUTs</th><th class=\"n\">registers</th><th "
                     "class=\"n\">bits of memory</th></tr>\n");
    for (size_t i = 0; i < c->circuit->n_parts; i++) {
        const oi_circuit_part *p = &c->circuit->parts[i];
        const uint64_t numbers[] = {p->clocks, p->phases, p->multipliers,
                                    p->luts,   p->ffs,    p->memory_bits};
        oi_buf_puts(out, "<tr><td>");
        oi_put_xml(out, p->kernel);
        oi_buf_puts(out, "</td>");
        for (size_t n = 0; n < OI_COUNT(numbers); n++)
            oi_buf_printf(out, "<td class=\"n\">%" PRIu64 "</td>", numbers[n]);
        oi_buf_puts(out, "</tr>\n");
    }
    oi_buf_printf(out,
                  "</table></div><p class=\"quiet\">Other tensors take %" PRIu64
                  " bits. Predicted; LUTs and registers only where all kernels work at "
                  "once.</p>",
                  c->circuit->memory_bits);
    put_synthesized(c, out);
}

void oi_report_html(const oi_plan *u, const oi_certificate *c, oi_buf *out)
{
    oi_buf_puts(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                     "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                     "<meta name=\"color-scheme\" content=\"light dark\"><title>");
    oi_put_xml(out, u->name);
    oi_buf_printf(out, ": the plan</title><style>\n%.*s</style></head><body><main>",
                  (int)oi_report_files[0].size, (const char *)oi_report_files[0].text);
    put_head(u, c, out);
    put_bar(u, c, out);
    put_maps(u, out);
    put_kernels(u, out);
    if (c->circuit)
        put_circuit(u, c, out);
    put_notes(u, out);
    put_tensors(u, OI_SPACE_STATE, "Persistent state", out);
    put_tensors(u, OI_SPACE_WEIGHTS, "Weights", out);
    put_certificate(u, c, out);
    oi_buf_puts(out, "<footer>The same in full, for programs: plan.json.</footer>"
                     "</main></body></html>\n");
}
