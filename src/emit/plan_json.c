/* plan_json.c: writes plan.json, the plan for other programs: buffers, kernels, schedule and the
 * certificate; docs/plan.schema.json describes it. Keys are sorted, and nothing depends on time or
 * place. */
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
    put_u64(w, "predicted_alone_ns", (uint64_t)(c->alone_ns + 0.5));
    put_u64(w, "predicted_ns", (uint64_t)(c->ns + 0.5));
    oi_jsonw_close(w, '}');
}

/* -- buffers -- */

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

/* Working memory is shared: a buffer is there from its first use to its last, as numbers of
 * statements in execution order. All others are there in every step. */
static void put_buffer(oi_jsonw *w, const oi_tensor *t)
{
    const bool is_shared = t->space == OI_SPACE_ARENA && !t->is_private;
    const bool placed = t->space == OI_SPACE_WEIGHTS || is_shared;
    oi_jsonw_open(w, '{');
    put_u64(w, "bytes", oi_tensor_bytes(t));
    put_dims(w, "dims", t->dims, t->rank);
    put_str(w, "dtype", oi_dtype_name(t->dtype));
    if (is_shared)
        put_u64(w, "first_use", (uint64_t)t->alive[0]);
    put_u64(w, "graph", t->graph);
    if (is_shared)
        put_u64(w, "last_use", (uint64_t)t->alive[1]);
    put_str(w, "name", t->name);
    if (placed)
        put_u64(w, "offset", t->offset);
    if (t->is_private)
        put_bool(w, "private", true);
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

/* The line of the graph's text, if it has one. */
static void put_line(oi_jsonw *w, const oi_pnode *n)
{
    if (n->source->span.line)
        put_u64(w, "line", n->source->span.line);
}

/* Its index is unique in its graph. */
static void put_node(oi_jsonw *w, const oi_pnode *n)
{
    put_line(w, n);
    put_u64(w, "node", n->source->index);
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

static const char *node_name(const oi_pnode *n)
{
    return n->kind == OI_NODE_OP ? n->as.op.op->name : oi_node_table[n->kind].keyword;
}

static void put_nodes(oi_jsonw *w, const oi_skernel *k)
{
    oi_jsonw_key(w, "lines"); /* of the graph's text, if it has one */
    oi_jsonw_open(w, '[');
    for (size_t i = 0; i < k->nodes.n; i++)
        if (k->nodes.at[i]->source->span.line)
            oi_jsonw_u64(w, k->nodes.at[i]->source->span.line);
    oi_jsonw_close(w, ']');
}

static void put_body(oi_jsonw *w, const oi_skernel *k)
{
    if (!k->body.extent)
        return;
    oi_jsonw_key(w, "body");
    oi_jsonw_open(w, '{');
    oi_jsonw_key(w, "extent");
    oi_jsonw_i64(w, k->body.extent);
    put_levels(w, &k->body);
    oi_jsonw_close(w, '}');
}

/* Units of the axes that workgroups count through. */
static int64_t count_groups(const oi_snest *n)
{
    int64_t count = 1, unit = 1;
    for (uint32_t a = 0; a < n->n_axes; a++)
        if (n->axes[a].factor[OI_AXIS_WORKER]) {
            count *= n->axes[a].extent;
            unit = n->axes[a].factor[OI_AXIS_WORKER];
        }
    return (count + unit - 1) / unit;
}

/* Devices with workgroups: the dispatches of the kernel, in order. */
static void put_dispatches(oi_jsonw *w, const oi_plan *u, const oi_skernel *k)
{
    const bool is_joint = oi_kernel_is_joint(u->tensors.at, k);
    if (!u->can.group_size)
        return;
    oi_jsonw_key(w, "dispatches");
    oi_jsonw_open(w, '[');
    for (size_t i = 0; i < (is_joint ? 1 : k->nests.n); i++) {
        const oi_group g = oi_group_of(u, &k->nests.at[i], is_joint ? k->nests.n : 1);
        oi_jsonw_open(w, '{');
        put_dims(w, "grid", (const int64_t[]){count_groups(&k->nests.at[i]), 1, 1}, 3);
        put_dims(w, "workgroup", (const int64_t[]){g.size, 1, 1}, 3);
        oi_jsonw_close(w, '}');
    }
    oi_jsonw_close(w, ']');
}

static void put_kernel(oi_jsonw *w, const oi_plan *u, const oi_skernel *k)
{
    oi_jsonw_open(w, '{');
    put_body(w, k);
    put_bool(w, "can_fail", k->can_fail);
    put_cost(w, &k->cost);
    put_dispatches(w, u, k);
    put_str(w, "function", k->function_name);
    oi_jsonw_key(w, "fused");
    oi_jsonw_open(w, '[');
    for (size_t i = 0; i < k->nodes.n; i++)
        oi_jsonw_str(w, node_name(k->nodes.at[i]));
    oi_jsonw_close(w, ']');
    put_u64(w, "graph", k->graph);
    put_nodes(w, k);
    put_str(w, "name", k->name);
    oi_jsonw_key(w, "nests");
    oi_jsonw_open(w, '[');
    for (size_t i = 0; i < k->nests.n; i++)
        put_nest(w, &k->nests.at[i]);
    oi_jsonw_close(w, ']');
    oi_jsonw_key(w, "nodes");
    oi_jsonw_open(w, '[');
    for (size_t i = 0; i < k->nodes.n; i++)
        oi_jsonw_u64(w, k->nodes.at[i]->source->index);
    oi_jsonw_close(w, ']');
    oi_jsonw_key(w, "ports");
    oi_jsonw_open(w, '[');
    for (size_t i = 0; i < k->ports.n; i++) {
        oi_jsonw_open(w, '{');
        put_str(w, "buffer", u->tensors.at[k->ports.at[i].tensor].name);
        put_bool(w, "is_written", k->ports.at[i].is_written);
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

typedef struct stepping {
    oi_jsonw *w;
    const oi_plan *u;
    const oi_sgraph *g;
} stepping;

static void put_code(stepping *x, const char *key, const oi_code *code)
{
    int64_t value;
    oi_jsonw_key(x->w, key);
    if (oi_code_is_int(code, &value))
        oi_jsonw_i64(x->w, value);
    else
        oi_jsonw_str(x->w, oi_expr_text(x->u->arena, code->source));
}

/* The buffer that a statement about memory is for; OI_NO_ID: it is for none. */
static uint32_t subject_of(const oi_stmt *s)
{
    switch (s->kind) {
    case OI_STMT_SET:
    case OI_STMT_LIMIT:
    case OI_STMT_NEED:
    case OI_STMT_RESIZE:
    case OI_STMT_LOG:
    case OI_STMT_CHECK: return s->a.tensor;
    case OI_STMT_VIEW:
    case OI_STMT_LENGTH: return s->b.tensor;
    default: return OI_NO_ID;
    }
}

static void put_uses(stepping *x, const char *key, const oi_stmt *s, bool writes)
{
    oi_jsonw_key(x->w, key);
    oi_jsonw_open(x->w, '[');
    for (uint32_t i = 0; i < s->n_uses; i++) /* a check looks at no operand, only at numbers */
        if (!s->uses[i].is_length && (s->kind != OI_STMT_NEED || !s->uses[i].is_operand) &&
            (writes ? s->uses[i].writes : s->uses[i].reads))
            oi_jsonw_str(x->w, x->u->tensors.at[s->uses[i].tensor].name);
    oi_jsonw_close(x->w, ']');
}

static void put_undo(stepping *x, const oi_stmt *s)
{
    static const char *const names[] = {[OI_UNDO_SIZES] = "sizes", [OI_UNDO_ELEMENTS] = "elements"};
    if (!s->n_undo)
        return;
    oi_jsonw_key(x->w, "undo");
    oi_jsonw_open(x->w, '[');
    for (uint32_t i = 0; i < s->n_undo; i++) {
        oi_jsonw_open(x->w, '{');
        put_u64(x->w, "bytes", s->undo[i].bytes);
        put_u64(x->w, "times", s->undo[i].n);
        put_str(x->w, "what", names[s->undo[i].what]);
        oi_jsonw_close(x->w, '}');
    }
    oi_jsonw_close(x->w, ']');
}

/* Before the statement that it belongs to. */
static void put_barrier(stepping *x, const oi_stmt *s)
{
    oi_jsonw_open(x->w, '{');
    put_str(x->w, "kind", "barrier");
    oi_jsonw_key(x->w, "orders"); /* accesses to this buffer; null: an error of the first worker */
    if (s->barrier_for)
        oi_jsonw_str(x->w, x->u->tensors.at[s->barrier_for - 1].name);
    else
        oi_jsonw_null(x->w);
    put_bool(x->w, "serial_inside", s->first_enters && !s->is_parallel);
    oi_jsonw_close(x->w, '}');
}

static void put_block_name(stepping *x, const char *key, uint32_t block)
{
    if (block != OI_NO_ID)
        put_str(x->w, key, x->g->program->blocks[block].source->name.text);
}

static void put_stmts(stepping *x, const oi_stmts *list);

/* Keys in ascending order; each kind has some of them. */
static void put_stmt(stepping *x, const oi_stmt *s)
{
    oi_jsonw *w = x->w;
    const oi_pnode *n = s->node;
    const bool is_loop = s->kind == OI_STMT_LOOP, is_branch = s->kind == OI_STMT_BRANCH;
    oi_jsonw_open(w, '{');
    if (is_loop || s->kind == OI_STMT_PIPELINE) {
        oi_jsonw_key(w, "body");
        put_stmts(x, &s->body);
    }
    if (subject_of(s) != OI_NO_ID)
        put_str(w, "buffer", x->u->tensors.at[subject_of(s)].name);
    if (s->chunks)
        put_u64(w, "chunks", s->chunks);
    if (is_branch && n->as.branch.cond != OI_NO_ID)
        put_block_name(x, "else", n->as.branch.else_block);
    if (is_loop)
        put_code(x, "from", &n->as.loop.start);
    if (s->kind == OI_STMT_KERNEL)
        put_str(w, "kernel", x->u->kernels.at[s->kernel].name);
    put_str(w, "kind", stmt_name(s->kind));
    if (n)
        put_line(w, n);
    if (is_loop)
        put_str(w, "loop", n->source->name.text);
    put_bool(w, "may_fail", s->may_fail);
    if (n)
        put_u64(w, "node", n->source->index);
    put_bool(w, "parallel", s->is_parallel);
    put_uses(x, "reads", s, false);
    if (s->kind == OI_STMT_PIPELINE)
        put_u64(w, "rounds", (uint64_t)s->limit);
    if (s->rows.most)
        put_dims(w, "rows", (const int64_t[]){s->rows.base, s->rows.step, s->rows.most}, 3);
    if (is_branch)
        put_block_name(x, "then", n->as.branch.then_block);
    if (is_loop)
        put_code(x, "to", &n->as.loop.end);
    put_undo(x, s);
    put_uses(x, "writes", s, true);
    oi_jsonw_close(w, '}');
}

static void put_stmts(stepping *x, const oi_stmts *list)
{
    oi_jsonw_open(x->w, '[');
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i].barrier)
            put_barrier(x, &list->at[i]);
        put_stmt(x, &list->at[i]);
    }
    oi_jsonw_close(x->w, ']');
}

static void put_block(stepping *x, uint32_t graph, uint32_t block)
{
    oi_jsonw_open(x->w, '{');
    put_block_name(x, "block", block);
    oi_jsonw_key(x->w, "body");
    put_stmts(x, &x->g->blocks[block].stmts);
    put_u64(x->w, "graph", graph);
    put_str(x->w, "kind", "block");
    put_bool(x->w, "parallel", x->g->blocks[block].is_parallel);
    oi_jsonw_close(x->w, '}');
}

/* A step of a graph runs its entry block, which comes first. */
static void put_schedule(oi_jsonw *w, const oi_plan *u)
{
    oi_jsonw_key(w, "schedule");
    oi_jsonw_open(w, '[');
    for (uint32_t g = 0; g < u->graphs.n; g++) {
        stepping x = {w, u, &u->graphs.at[g]};
        const uint32_t entry = x.g->program->entry;
        put_block(&x, g, entry);
        for (uint32_t b = 0; b < x.g->program->n_blocks; b++)
            if (x.g->blocks[b].is_used && b != entry)
                put_block(&x, g, b);
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

/* A number that may have no bound. */
static void put_most(oi_jsonw *w, const char *key, uint64_t n)
{
    if (n != UINT64_MAX) {
        put_u64(w, key, n);
        return;
    }
    oi_jsonw_key(w, key);
    oi_jsonw_null(w);
}

static void put_clocks(oi_jsonw *w, const oi_clocks *c)
{
    oi_jsonw_key(w, "clocks");
    oi_jsonw_open(w, '{');
    if (c->interval)
        put_u64(w, "interval", c->interval);
    put_u64(w, "latency", c->least);
    put_most(w, "latency_most", c->most);
    oi_jsonw_close(w, '}');
}

static void put_graph(oi_jsonw *w, const oi_plan *u, const oi_sgraph *g, const oi_clocks *c)
{
    oi_jsonw_open(w, '{');
    if (c)
        put_clocks(w, c);
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
        if (c->circuit) {
            put_u64(w, "brams", c->measured.brams);
            put_u64(w, "clock_hz", c->measured.clock_hz);
            put_u64(w, "ffs", c->measured.ffs);
            put_u64(w, "gates", c->measured.gates);
            put_u64(w, "luts", c->measured.luts);
        } else {
            put_u64(w, "call_stack_bytes", c->measured.call_stack_bytes);
            put_u64(w, "flash_bytes", c->measured.flash_bytes);
            put_u64(w, "program_stack_bytes", c->measured.program_stack_bytes);
        }
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
        if (n->node)
            put_node(w, n->node);
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
            put_node(w, &p->nodes[i]);
            put_str(w, "op", p->nodes[i].as.op.op->name);
            oi_jsonw_close(w, '}');
        }
    }
    oi_jsonw_close(w, ']');
    oi_jsonw_close(w, '}');
}

static void put_hash(oi_jsonw *w, const oi_plan *u, const char *key, uint64_t hash)
{
    put_str(w, key, oi_arena_printf(u->arena, "%016" PRIx64, hash));
}

static void put_device(oi_jsonw *w, const oi_plan *u)
{
    oi_jsonw_key(w, "device");
    oi_jsonw_open(w, '{');
    put_str(w, "api", oi_device_api_name(u->target->api));
    put_str(w, "architecture", u->target->architecture);
    put_str(w, "driver", u->target->driver);
    put_str(w, "name", u->target->name);
    put_str(w, "type", oi_device_type_name(u->target->type));
    put_str(w, "vendor", u->target->vendor);
    oi_jsonw_close(w, '}');
}

static void put_totals(oi_jsonw *w, const oi_plan *u)
{
    static const char *const names[] = {
        [OI_UNDO_NONE] = "none", [OI_UNDO_LOG] = "log", [OI_UNDO_COPY] = "copy"};
    oi_jsonw_key(w, "totals");
    oi_jsonw_open(w, '{');
    put_u64(w, "arena_bytes", u->arena_bytes);
    put_u64(w, "state_bytes", u->state_bytes);
    put_u64(w, "weights_bytes", u->weights_bytes);
    oi_jsonw_close(w, '}');
    oi_jsonw_key(w, "undo");
    oi_jsonw_open(w, '{');
    put_u64(w, "bytes", u->undo.bytes);
    put_str(w, "kind", names[u->undo.kind]);
    oi_jsonw_close(w, '}');
    put_bool(w, "weights_embedded", u->embeds);
}

static void put_circuit(oi_jsonw *w, const oi_circuit_cost *c)
{
    oi_jsonw_key(w, "circuit");
    oi_jsonw_open(w, '{');
    put_u64(w, "memory_bits", c->memory_bits);
    oi_jsonw_key(w, "parts");
    oi_jsonw_open(w, '[');
    for (size_t i = 0; i < c->n_parts; i++) {
        const oi_circuit_part *p = &c->parts[i];
        oi_jsonw_open(w, '{');
        put_u64(w, "clocks", p->clocks);
        put_u64(w, "ffs", p->ffs);
        put_str(w, "kernel", p->kernel);
        put_u64(w, "luts", p->luts);
        put_u64(w, "memory_bits", p->memory_bits);
        put_u64(w, "multipliers", p->multipliers);
        put_u64(w, "phases", p->phases);
        oi_jsonw_close(w, '}');
    }
    oi_jsonw_close(w, ']');
    put_bool(w, "pipelined", !c->serial_why);
    put_str(w, "serial_why", c->serial_why ? c->serial_why : "");
    oi_jsonw_close(w, '}');
}

void oi_plan_json(const oi_plan *u, const oi_certificate *c, oi_buf *out)
{
    oi_jsonw w = {.out = out};
    oi_jsonw_open(&w, '{');
    oi_jsonw_key(&w, "buffers");
    oi_jsonw_open(&w, '[');
    for (size_t i = 0; i < u->tensors.n; i++)
        if (u->tensors.at[i].space != OI_SPACE_NONE)
            put_buffer(&w, &u->tensors.at[i]);
    oi_jsonw_close(&w, ']');
    put_certificate(&w, u, c);
    if (c->circuit)
        put_circuit(&w, c->circuit);
    put_device(&w, u);
    put_hash(&w, u, "graph_hash", u->graphs_hash);
    oi_jsonw_key(&w, "graphs");
    oi_jsonw_open(&w, '[');
    for (size_t i = 0; i < u->graphs.n; i++)
        put_graph(&w, u, &u->graphs.at[i], c->clocks ? &c->clocks[i] : NULL);
    oi_jsonw_close(&w, ']');
    oi_jsonw_key(&w, "kernels");
    oi_jsonw_open(&w, '[');
    for (size_t i = 0; i < u->kernels.n; i++)
        if (u->kernels.at[i].is_used)
            put_kernel(&w, u, &u->kernels.at[i]);
    oi_jsonw_close(&w, ']');
    put_hash(&w, u, "model_hash", u->weights_hash);
    put_str(&w, "name", u->name);
    put_notes(&w, u);
    put_str(&w, "openinfer", oi_version());
    put_precision(&w, u);
    put_schedule(&w, u);
    put_totals(&w, u);
    oi_jsonw_close(&w, '}');
    oi_buf_putc(out, '\n');
}
