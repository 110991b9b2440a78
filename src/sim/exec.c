/* exec.c: running blocks node by node. A context keeps its place on an explicit stack of node
 * lists, so that a step can pause after any node. */
#include "sim/sim.h"

/* -- failures -- */

oi_status oi_ctx_fail(oi_ctx *c, oi_span span, const char *code, const char *fmt, ...)
{
    c->fail = (oi_fail){.is_set = true,
                        .status = OI_ERR_INPUT,
                        .code = code,
                        .node = c->node ? c->node->source : NULL,
                        .span = span};
    va_list args;
    va_start(args, fmt);
    vsnprintf(c->fail.text, sizeof c->fail.text, fmt, args);
    va_end(args);
    return OI_ERR_INPUT;
}

oi_status oi_ctx_no_memory(oi_ctx *c, uint64_t bytes)
{
    oi_span none = {0};
    const uint64_t refused = oi_budget_refused(&c->exec->sim->budget);
    if (refused)
        return oi_ctx_fail(
            c, none, "E065", "the memory limit of %llu bytes is reached: %llu would do here",
            (unsigned long long)c->exec->sim->budget.limit, (unsigned long long)refused);
    if (bytes > 4096)
        oi_ctx_fail(c, none, "", "no memory for %llu bytes", (unsigned long long)bytes);
    else
        oi_ctx_fail(c, none, "", "out of memory");
    c->fail.status = OI_ERR_ENV;
    return OI_ERR_ENV;
}

oi_status oi_ctx_reported(oi_ctx *c, oi_status status)
{
    c->fail = (oi_fail){.is_set = true, .status = status};
    if (!c->diag) /* a thread without diagnostics: nothing was reported yet */
        oi_ctx_fail(c, (oi_span){0}, "", "the model's data cannot be read");
    c->fail.status = status;
    return status;
}

/* -- numbers -- */

static bool variable(void *ctx, uint32_t id, int64_t *out)
{
    oi_ctx *c = ctx;
    return oi_mem_i64(c, id, c->node->source->span, out) == OI_OK;
}

oi_status oi_ctx_code(oi_ctx *c, const oi_code *code, const int64_t *own, int64_t *out)
{
    if (code->n == 1 && code->at[0].kind == OI_INS_INT) {
        *out = code->at[0].value;
        return OI_OK;
    }
    if (code->n == 1 && code->at[0].kind == OI_INS_INDEX) {
        *out = c->indices[code->at[0].id];
        return OI_OK;
    }
    switch (oi_code_run(code, &(oi_env){c->indices, own, NULL, variable, c}, out)) {
    case OI_CODE_OK: return OI_OK;
    case OI_CODE_UNREADABLE: return c->fail.status;
    case OI_CODE_DIV_ZERO:
        return oi_ctx_fail(c, code->source->span, "E047", "division by zero in an index");
    case OI_CODE_OVERFLOW: break;
    }
    return oi_ctx_fail(c, code->source->span, "E047", "does not fit a 64-bit signed integer");
}

/* -- frames -- */

static oi_frame *push(oi_ctx *c, const oi_ids *list)
{
    if (c->n_frames == c->cap_frames) {
        uint32_t cap = c->cap_frames ? 2 * c->cap_frames : 8;
        oi_frame *frames = realloc(c->frames, cap * sizeof *frames);
        if (!frames)
            return NULL;
        c->frames = frames;
        c->cap_frames = cap;
    }
    oi_frame *f = &c->frames[c->n_frames++];
    *f = (oi_frame){.list = list};
    return f;
}

oi_status oi_ctx_start(oi_ctx *c)
{
    c->n_frames = 0;
    c->node = NULL;
    c->fail.is_set = false;
    c->state = OI_RUN_READY;
    return push(c, &c->exec->sim->program->blocks[c->block].source->nodes) ? OI_OK
                                                                           : oi_ctx_no_memory(c, 0);
}

/* At the end of a list: a loop goes round again, anything else is left. */
static void end_of_list(oi_ctx *c)
{
    oi_frame *f = &c->frames[c->n_frames - 1];
    if (f->loop) {
        int64_t *index = &c->indices[f->loop->as.loop.index];
        if (*index + 1 < f->end) { /* the index is below end: no overflow */
            ++*index;
            f->at = 0;
            return;
        }
        *index = f->saved;
    }
    c->n_frames--;
}

static const oi_pnode *next_node(oi_ctx *c)
{
    while (c->n_frames) {
        oi_frame *f = &c->frames[c->n_frames - 1];
        if (f->at < f->list->n)
            return &c->exec->sim->program->nodes[f->list->at[f->at++]];
        end_of_list(c);
    }
    return NULL;
}

/* -- nodes -- */

static oi_status loop(oi_ctx *c, const oi_pnode *n)
{
    int64_t start, end;
    OI_TRY(oi_ctx_code(c, &n->as.loop.start, NULL, &start));
    OI_TRY(oi_ctx_code(c, &n->as.loop.end, NULL, &end));
    if (end <= start || n->source->as.loop.body.n == 0)
        return OI_OK;
    oi_frame *f = push(c, &n->source->as.loop.body);
    if (!f)
        return oi_ctx_no_memory(c, 0);
    f->loop = n;
    f->end = end;
    f->saved = c->indices[n->as.loop.index];
    c->indices[n->as.loop.index] = start;
    return OI_OK;
}

static oi_status branch(oi_ctx *c, const oi_pnode *n)
{
    bool yes = true;
    if (n->as.branch.cond_is_index)
        yes = c->indices[n->as.branch.cond] != 0;
    else if (n->as.branch.cond != OI_NO_ID)
        OI_TRY(oi_mem_truth(c, n->as.branch.cond, n->source->as.branch.cond.span, &yes));
    uint32_t target = yes ? n->as.branch.then_block : n->as.branch.else_block;
    return push(c, &c->exec->sim->program->blocks[target].source->nodes) ? OI_OK
                                                                         : oi_ctx_no_memory(c, 0);
}

/* return, and yield at the end of a block: back to the caller. */
static oi_status leave(oi_ctx *c, const oi_pnode *n)
{
    if (c->n_frames == 1 && c->id == 0) {
        OI_TRY(oi_async_return(c));
        c->exec->returned = n;
    }
    c->n_frames--;
    return OI_OK;
}

static oi_status yield(oi_ctx *c, const oi_pnode *n)
{
    bool in_entry = n->source->block == c->exec->sim->program->entry;
    return in_entry ? oi_async_yield(c, n) : leave(c, n);
}

static oi_status run_node(oi_ctx *c, const oi_pnode *n, bool *suspended)
{
    switch (n->kind) {
    case OI_NODE_OP: return oi_op_execute(c, n);
    case OI_NODE_TRANSFER: return oi_mem_transfer(c, &n->as.move.from, &n->as.move.to);
    case OI_NODE_BRANCH: return branch(c, n);
    case OI_NODE_LOOP: return loop(c, n);
    case OI_NODE_RETURN: return leave(c, n);
    case OI_NODE_YIELD: return yield(c, n);
    case OI_NODE_AWAIT: return oi_async_await(c, n, suspended);
    case OI_NODE_ASSIGN: /* storage exists once per step; nothing happens here */
    case OI_NODE_BARRIER:
    case OI_NODE_DEP: return OI_OK; /* nodes already run in the order they are written */
    default: return oi_cache_run(c, n);
    }
}

/* The budget of an untrusted graph. Consumers on threads of their own share it. */
static oi_status count_node(oi_ctx *c, const oi_pnode *n)
{
    const uint64_t most = c->exec->sim->options.max_nodes;
    if (most == 0 || atomic_fetch_add(&c->exec->n_nodes, 1) < most)
        return OI_OK;
    return oi_ctx_fail(c, n->source->span, "E063", "the run would execute more than %llu node%s",
                       (unsigned long long)most, most == 1 ? "" : "s");
}

oi_status oi_ctx_next(oi_ctx *c, const oi_pnode **ran)
{
    const oi_pnode *n = next_node(c);
    bool suspended = false;
    *ran = NULL;
    if (!n) {
        c->state = OI_RUN_DONE;
        return OI_OK;
    }
    const oi_sim_options *o = &c->exec->sim->options;
    bool timed = o->timer;
    uint64_t start = timed ? oi_now_ns() : 0;
    c->node = n;
    c->on_device = false;
    oi_status status = count_node(c, n);
    if (status == OI_OK)
        status = run_node(c, n, &suspended);
    if (c->n_pins)
        oi_mem_release(c);
    if (c->scratch && c->exec->sim->budget.limit) {
        oi_buffer_drop(c->scratch);
        c->scratch = NULL;
    }
    if (status != OI_OK)
        return status;
    if (suspended) { /* it will be this node's turn again */
        if (o->max_nodes)
            atomic_fetch_sub(&c->exec->n_nodes, 1);
        c->frames[c->n_frames - 1].at--;
        return OI_OK;
    }
    c->ns = !timed ? 0 : c->on_device ? c->device_ns : oi_now_ns() - start;
    c->order += c->id == 0;
    if (o->trace)
        oi_trace_add(c, n, start, c->ns);
    if (c->n_frames == 0)
        c->state = OI_RUN_DONE;
    *ran = n;
    return OI_OK;
}

/* -- contexts -- */

void *oi_ctx_scratch(oi_ctx *c, uint64_t bytes)
{
    if (!c->scratch || bytes > c->scratch->size) {
        oi_buffer_drop(c->scratch);
        c->scratch = oi_buffer_new(&c->exec->sim->budget, OI_HELD_SCRATCH, bytes);
    }
    return c->scratch ? c->scratch->data : NULL;
}

oi_ctx *oi_ctx_new(oi_exec *e, uint32_t block, uint32_t id)
{
    const oi_program *p = e->sim->program;
    oi_ctx *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->exec = e;
    c->block = block;
    c->id = id;
    c->slots = calloc(p->n_vars + 1, sizeof *c->slots);
    c->entries = calloc(p->n_vars + 1, sizeof *c->entries);
    c->indices = calloc(p->n_indices + 1, sizeof *c->indices);
    c->taken = calloc(p->n_vars + 1, sizeof *c->taken);
    if (c->slots && c->entries && c->indices && c->taken)
        return c;
    oi_ctx_free(c);
    return NULL;
}

void oi_ctx_free(oi_ctx *c)
{
    if (!c)
        return;
    uint32_t n_vars = c->exec->sim->program->n_vars;
    for (uint32_t i = 0; c->slots && i < n_vars; i++)
        oi_slot_drop(&c->slots[i]);
    for (uint32_t i = 0; c->entries && i < n_vars; i++) {
        for (size_t k = 0; k < c->entries[i].n; k++) {
            if (c->entries[i].at[k])
                oi_slot_drop(c->entries[i].at[k]);
            free(c->entries[i].at[k]);
        }
        free(c->entries[i].at);
    }
    free(c->slots);
    free(c->entries);
    free(c->indices);
    free(c->taken);
    free(c->frames);
    oi_buffer_drop(c->scratch);
    free(c);
}
