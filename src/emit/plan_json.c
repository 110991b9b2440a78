/* plan_json.c: writes plan.json, the plan for other programs: memory map, kernels, statements and
 * the certificate. Keys are sorted, and nothing depends on time or place. */
#include "emit/emit.h"

#include <inttypes.h>

static void put_u64(oi_jsonw *w, const char *key, uint64_t v)
{
    oi_jsonw_key(w, key);
    oi_jsonw_u64(w, v);
}

static void put_str(oi_jsonw *w, const char *key, const char *text)
{
    oi_jsonw_key(w, key);
    oi_jsonw_str(w, text);
}

static void put_bool(oi_jsonw *w, const char *key, bool v)
{
    oi_jsonw_key(w, key);
    oi_jsonw_bool(w, v);
}

static void put_dims(oi_jsonw *w, const char *key, const int64_t *dims, uint32_t n)
{
    oi_jsonw_key(w, key);
    oi_jsonw_open(w, '[');
    for (uint32_t i = 0; i < n; i++)
        oi_jsonw_i64(w, dims[i]);
    oi_jsonw_close(w, ']');
}

static void put_cost(oi_jsonw *w, const oi_cost *c)
{
    oi_jsonw_key(w, "cost");
    oi_jsonw_open(w, '{');
    put_u64(w, "bytes_moved", c->bytes);
    put_bool(w, "is_most", c->is_most);
    put_bool(w, "is_open", c->is_open);
    put_u64(w, "macs", c->macs);
    put_u64(w, "predicted_ns", (uint64_t)(c->ns + 0.5));
    oi_jsonw_close(w, '}');
}

/* -- tensors -- */

static const char *space_name(oi_space s)
{
    switch (s) { /* no default: the compiler reports missing cases */
    case OI_SPACE_NONE: return "none";
    case OI_SPACE_WEIGHTS: return "weights";
    case OI_SPACE_INPUT: return "input";
    case OI_SPACE_OUTPUT: return "output";
    case OI_SPACE_STATE: return "state";
    case OI_SPACE_ARENA: return "arena";
    case OI_SPACE_LOCAL: return "local";
    case OI_SPACE_VIEW: return "view";
    }
    return "none";
}

static void put_tensor(oi_jsonw *w, const oi_tensor *t)
{
    bool placed = t->space == OI_SPACE_WEIGHTS || t->space == OI_SPACE_ARENA;
    oi_jsonw_open(w, '{');
    if (t->space == OI_SPACE_ARENA)
        put_dims(w, "alive", t->alive, 2);
    put_u64(w, "bytes", oi_tensor_bytes(t));
    put_dims(w, "dims", t->dims, t->rank);
    put_str(w, "dtype", oi_dtype_name(t->dtype));
    put_u64(w, "graph", t->graph);
    put_str(w, "name", t->name);
    if (placed)
        put_u64(w, "offset", t->offset);
    if (t->ring)
        put_dims(w, "ring", (const int64_t[]){t->ring - 1, t->rows},
                 2); /* which dim, and of how many */
    put_str(w, "space", space_name(t->space));
    if (t->n_table) {
        put_u64(w, "stride_bytes", t->stride_bytes);
        put_dims(w, "table", t->table, t->n_table);
    }
    if (t->var)
        put_str(w, "variable", t->var->name);
    if (t->view)
        put_str(w, "view", t->view->name);
    oi_jsonw_close(w, '}');
}

/* -- kernels -- */

static void put_node(oi_jsonw *w, const oi_pnode *n)
{
    oi_jsonw_open(w, '{');
    put_u64(w, "index", n->source->index);
    if (n->source->span.line)
        put_u64(w, "line", n->source->span.line);
    oi_jsonw_close(w, '}');
}

/* Outermost first; a serial loop has none. */
static void put_levels(oi_jsonw *w, const oi_saxis *x)
{
    oi_jsonw_key(w, "levels");
    oi_jsonw_open(w, '[');
    for (uint32_t l = OI_AXIS_LEVELS; l-- > 0;) {
        if (!x->factor[l])
            continue;
        oi_jsonw_open(w, '{');
        oi_jsonw_key(w, "factor");
        oi_jsonw_i64(w, x->factor[l]);
        put_str(w, "level", oi_axis_level_name(l));
        oi_jsonw_close(w, '}');
    }
    oi_jsonw_close(w, ']');
}

static void put_nest(oi_jsonw *w, const oi_snest *n)
{
    static const char *const kinds[] = {
        [OI_NEST_MAP] = "map", [OI_NEST_REDUCE] = "reduce", [OI_NEST_CONTRACT] = "contract"};
    oi_jsonw_open(w, '{');
    oi_jsonw_key(w, "axes");
    oi_jsonw_open(w, '[');
    for (uint32_t a = 0; a < n->n_axes; a++) {
        oi_jsonw_open(w, '{');
        oi_jsonw_key(w, "extent");
        oi_jsonw_i64(w, n->axes[a].extent);
        put_bool(w, "is_reduced", n->axes[a].is_reduced);
        put_levels(w, &n->axes[a]);
        oi_jsonw_close(w, '}');
    }
    oi_jsonw_close(w, ']');
    put_str(w, "kind", kinds[n->kind]);
    oi_jsonw_close(w, '}');
}

static void put_kernel(oi_jsonw *w, const oi_plan *u, const oi_skernel *k)
{
    oi_jsonw_open(w, '{');
    if (k->body.extent) {
        oi_jsonw_key(w, "body");
        oi_jsonw_open(w, '{');
        oi_jsonw_key(w, "extent");
        oi_jsonw_i64(w, k->body.extent);
        put_levels(w, &k->body);
        oi_jsonw_close(w, '}');
    }
    put_bool(w, "can_fail", k->can_fail);
    put_cost(w, &k->cost);
    put_str(w, "function", k->function_name);
    put_u64(w, "graph", k->graph);
    put_str(w, "name", k->name);
    oi_jsonw_key(w, "nests");
    oi_jsonw_open(w, '[');
    for (size_t i = 0; i < k->nests.n; i++)
        put_nest(w, &k->nests.at[i]);
    oi_jsonw_close(w, ']');
    oi_jsonw_key(w, "nodes");
    oi_jsonw_open(w, '[');
    for (size_t i = 0; i < k->nodes.n; i++)
        put_node(w, k->nodes.at[i]);
    oi_jsonw_close(w, ']');
    oi_jsonw_key(w, "ports");
    oi_jsonw_open(w, '[');
    for (size_t i = 0; i < k->ports.n; i++) {
        oi_jsonw_open(w, '{');
        put_bool(w, "is_written", k->ports.at[i].is_written);
        put_str(w, "tensor", u->tensors.at[k->ports.at[i].tensor].name);
        oi_jsonw_close(w, '}');
    }
    oi_jsonw_close(w, ']');
    if (k->recipe)
        put_str(w, "recipe", k->recipe->name);
    oi_jsonw_close(w, '}');
}

/* -- statements -- */

static const char *stmt_name(oi_stmt_kind k)
{
    switch (k) {
    case OI_STMT_KERNEL: return "kernel";
    case OI_STMT_CACHE: return "cache";
    case OI_STMT_SET: return "set";
    case OI_STMT_LOOP: return "loop";
    case OI_STMT_PIPELINE: return "pipeline";
    case OI_STMT_BRANCH: return "branch";
    case OI_STMT_YIELD: return "yield";
    case OI_STMT_AWAIT: return "await";
    case OI_STMT_BARRIER: return "barrier";
    case OI_STMT_CHECK: return "check";
    case OI_STMT_GONE: return "gone";
    case OI_STMT_RETURN: return "return";
    case OI_STMT_LIMIT: return "limit";
    case OI_STMT_SHAPE: return "shape";
    case OI_STMT_SIZES: return "sizes";
    case OI_STMT_LENGTH: return "length";
    case OI_STMT_NEED: return "need";
    case OI_STMT_RESIZE: return "resize";
    case OI_STMT_LOG: return "log";
    case OI_STMT_VIEW: return "view";
    }
    return "other";
}

static void put_stmts(oi_jsonw *w, const oi_plan *u, const oi_stmts *list)
{
    oi_jsonw_open(w, '[');
    for (size_t i = 0; i < list->n; i++) {
        const oi_stmt *s = &list->at[i];
        oi_jsonw_open(w, '{');
        if (s->kind == OI_STMT_LOOP || s->kind == OI_STMT_PIPELINE) {
            oi_jsonw_key(w, "body");
            put_stmts(w, u, &s->body);
        }
        if (s->kind == OI_STMT_KERNEL)
            put_str(w, "kernel", u->kernels.at[s->kernel].name);
        put_str(w, "kind", stmt_name(s->kind));
        if (s->node) {
            oi_jsonw_key(w, "node");
            put_node(w, s->node);
        }
        if (s->rows.most)
            put_dims(w, "rows", (const int64_t[]){s->rows.base, s->rows.step, s->rows.most}, 3);
        if (s->kind == OI_STMT_PIPELINE)
            put_u64(w, "rounds", (uint64_t)s->limit);
        oi_jsonw_close(w, '}');
    }
    oi_jsonw_close(w, ']');
}

static void put_names(oi_jsonw *w, const oi_plan *u, const char *key, const uint32_t *ids, size_t n)
{
    oi_jsonw_key(w, key);
    oi_jsonw_open(w, '[');
    for (size_t i = 0; i < n; i++)
        oi_jsonw_str(w, u->tensors.at[ids[i]].name);
    oi_jsonw_close(w, ']');
}

static void put_graph(oi_jsonw *w, const oi_plan *u, const oi_sgraph *g)
{
    oi_jsonw_open(w, '{');
    oi_jsonw_key(w, "blocks");
    oi_jsonw_open(w, '[');
    for (uint32_t b = 0; b < g->program->n_blocks; b++) {
        if (!g->blocks[b].is_used)
            continue;
        oi_jsonw_open(w, '{');
        put_str(w, "name", g->program->blocks[b].source->name.text);
        oi_jsonw_key(w, "statements");
        put_stmts(w, u, &g->blocks[b].stmts);
        oi_jsonw_close(w, '}');
    }
    oi_jsonw_close(w, ']');
    put_cost(w, &g->cost);
    put_names(w, u, "inputs", g->inputs.at, g->inputs.n);
    put_str(w, "name", g->name);
    put_names(w, u, "outputs", g->outputs.at, g->outputs.n);
    oi_jsonw_close(w, '}');
}

/* -- everything -- */

static void put_certificate(oi_jsonw *w, const oi_plan *u, const oi_certificate *c)
{
    oi_jsonw_key(w, "certificate");
    oi_jsonw_open(w, '{');
    put_u64(w, "arena_bound_bytes", u->arena_bound);
    put_u64(w, "arena_bytes", c->arena_bytes);
    oi_jsonw_key(w, "checked");
    oi_jsonw_open(w, '{');
    put_u64(w, "accesses", c->n_checked);
    put_u64(w, "barriers", c->n_barriers);
    oi_jsonw_close(w, '}');
    put_u64(w, "io_bytes", c->io_bytes);
    oi_jsonw_key(w, "measured");
    if (c->is_measured) {
        oi_jsonw_open(w, '{');
        put_u64(w, "call_stack_bytes", c->measured.call_stack_bytes);
        put_u64(w, "flash_bytes", c->measured.flash_bytes);
        put_u64(w, "program_stack_bytes", c->measured.program_stack_bytes);
        oi_jsonw_close(w, '}');
    } else {
        oi_jsonw_null(w);
    }
    put_u64(w, "ram_bytes", c->ram_bytes);
    put_u64(w, "stack_bytes", c->stack_bytes);
    put_u64(w, "state_bytes", c->state_bytes);
    put_u64(w, "struct_bytes", c->struct_bytes);
    put_u64(w, "undo_bytes", c->undo_bytes);
    put_u64(w, "weights_bytes", c->weights_bytes);
    oi_jsonw_close(w, '}');
}

static void put_notes(oi_jsonw *w, const oi_plan *u)
{
    oi_jsonw_key(w, "notes");
    oi_jsonw_open(w, '[');
    for (size_t i = 0; i < u->notes.n; i++) {
        const oi_pass_note *n = &u->notes.at[i];
        oi_jsonw_open(w, '{');
        put_u64(w, "graph", n->graph);
        if (n->node) {
            oi_jsonw_key(w, "node");
            put_node(w, n->node);
        }
        put_str(w, "pass", n->pass);
        put_str(w, "text", n->text);
        oi_jsonw_close(w, '}');
    }
    oi_jsonw_close(w, ']');
}

/* Only if the device's precision changed some ops. */
static void put_precision(oi_jsonw *w, const oi_plan *u)
{
    if (!oi_plan_count_lowered(u))
        return;
    oi_jsonw_key(w, "precision");
    oi_jsonw_open(w, '{');
    put_str(w, "act", oi_dtype_name(u->target->preferences.default_precision));
    oi_jsonw_key(w, "ops");
    oi_jsonw_open(w, '[');
    for (size_t g = 0; g < u->graphs.n; g++) {
        const oi_program *p = u->graphs.at[g].program;
        for (size_t i = 0; i < p->graph->nodes.n; i++) {
            if (!p->nodes[i].is_lowered)
                continue;
            oi_jsonw_open(w, '{');
            put_u64(w, "graph", g);
            oi_jsonw_key(w, "node");
            put_node(w, &p->nodes[i]);
            put_str(w, "op", p->nodes[i].as.op.op->name);
            oi_jsonw_close(w, '}');
        }
    }
    oi_jsonw_close(w, ']');
    oi_jsonw_close(w, '}');
}

void oi_plan_json(const oi_plan *u, const oi_certificate *c, oi_buf *out)
{
    oi_jsonw w = {.out = out};
    oi_jsonw_open(&w, '{');
    put_certificate(&w, u, c);
    put_str(&w, "device", u->target->name);
    put_str(&w, "vendor", u->target->vendor);
    put_str(&w, "architecture", u->target->architecture);
    put_str(&w, "driver", u->target->driver);
    oi_jsonw_key(&w, "graphs");
    oi_jsonw_open(&w, '[');
    for (size_t i = 0; i < u->graphs.n; i++)
        put_graph(&w, u, &u->graphs.at[i]);
    oi_jsonw_close(&w, ']');
    oi_jsonw_key(&w, "kernels");
    oi_jsonw_open(&w, '[');
    for (size_t i = 0; i < u->kernels.n; i++)
        if (u->kernels.at[i].is_used)
            put_kernel(&w, u, &u->kernels.at[i]);
    oi_jsonw_close(&w, ']');
    put_str(&w, "name", u->name);
    put_notes(&w, u);
    put_str(&w, "openinfer", oi_version());
    put_precision(&w, u);
    oi_jsonw_key(&w, "tensors");
    oi_jsonw_open(&w, '[');
    for (size_t i = 0; i < u->tensors.n; i++)
        if (u->tensors.at[i].space != OI_SPACE_NONE)
            put_tensor(&w, &u->tensors.at[i]);
    oi_jsonw_close(&w, ']');
    oi_jsonw_key(&w, "weights");
    oi_jsonw_open(&w, '{');
    put_u64(&w, "bytes", u->weights_bytes);
    put_bool(&w, "embedded", u->embeds);
    put_str(&w, "hash", oi_arena_printf(u->arena, "%016" PRIx64, u->weights_hash));
    oi_jsonw_close(&w, '}');
    oi_jsonw_close(&w, '}');
    oi_buf_putc(out, '\n');
}
