/* step.c: steps: beginning, running to the end or node by node, and taking everything persistent
 * back when something fails. */
#include "sim/sim.h"

static oi_place place_of(const oi_exec *e, oi_arena *scratch, const oi_fail *f)
{
    const oi_graph *g = e->sim->program->graph;
    if (!f->node)
        return (oi_place){.file = g->origin ? g->origin : "graph"};
    return oi_graph_place_node(g, scratch, f->node, f->span.line ? f->span : f->node->span);
}

typedef struct report_args {
    oi_exec *e;
    oi_arena *scratch;
    const oi_fail *f;
    oi_diag *d;
} report_args;

static void report_in(void *ctx)
{
    report_args *r = ctx;
    const oi_graph *g = r->e->sim->program->graph;
    oi_place at = place_of(r->e, r->scratch, r->f);
    oi_diag_error(r->d, at, r->f->code, "%s", r->f->text);
    if (r->f->node)
        oi_diag_note(r->d, at, "while running node %llu of block '%s', step %llu",
                     (unsigned long long)r->f->node->index,
                     g->blocks.at[r->f->node->block].name.text, (unsigned long long)r->e->n_steps);
}

/* A failure without a code text was reported where it happened. */
static void report(oi_exec *e, const oi_fail *f, oi_diag *d)
{
    if (!f->code || !d)
        return;
    oi_arena *scratch = oi_arena_new();
    report_args r = {e, scratch, f, d};
    if (!scratch || oi_arena_guard(scratch, report_in, &r) != OI_OK)
        oi_diag_error(d, (oi_place){.file = "graph"}, f->code, "%s", f->text);
    oi_arena_free(scratch);
}

/* -- beginning -- */

/* Strict: every dynamic variable must have been given a value (E020). */
static oi_status check_inputs(const oi_exec *e, oi_diag *d)
{
    const oi_program *p = e->sim->program;
    oi_status status = OI_OK;
    for (uint32_t i = 0; e->sim->options.strict && i < p->n_vars; i++) {
        const oi_pvar *v = &p->vars[i];
        if (v->kind != OI_SYM_DYNAMIC || e->entry->slots[i].is_inserted || v->symbol->var->has_init)
            continue;
        oi_place at = {.source = p->graph->source.name ? &p->graph->source : NULL,
                       .file = p->graph->origin,
                       .span = v->symbol->span};
        status = oi_diag_error(d, at, "E020", "no value was given for input '%s'", v->name);
    }
    return status;
}

static void take_inputs(oi_exec *e)
{
    const oi_program *p = e->sim->program;
    for (uint32_t i = 0; i < p->n_vars; i++) {
        oi_slot *s = &e->entry->slots[i];
        if (s->is_inserted)
            s->epoch = e->epoch;
        s->is_inserted = false;
    }
}

static oi_status begin(oi_exec *e, oi_diag *d)
{
    OI_TRY(check_inputs(e, d));
    if (e->sim->weights)
        OI_TRY(oi_weights_check(e->sim->weights, d));
    if (atomic_flag_test_and_set(&e->group->busy)) {
        oi_diag_error(d, (oi_place){.file = "executor"}, "",
                      "another executor that shares its persistent memory is in a step");
        return OI_ERR_USAGE;
    }
    e->epoch++;
    take_inputs(e);
    oi_async_reset(e);
    e->returned = NULL;
    e->entry->order = 0;
    e->in_step = true;
    e->is_parallel = false;
    e->step_records = e->n_records;
    e->at_end = false;
    e->running = e->entry;
    return oi_ctx_start(e->entry);
}

/* -- ending -- */

static void each_state(oi_exec *e, void (*fn)(oi_state *s))
{
    for (uint32_t i = 0; i < e->sim->program->n_vars; i++)
        if (e->states[i] && (e->states[i]->undo || e->states[i]->has_shadow))
            fn(e->states[i]);
}

/* What this executor shows of memory that others may write between its steps. */
static void recall_shared(oi_exec *e)
{
    for (uint32_t i = 0; atomic_load(&e->group->refs) > 1 && i < e->sim->program->n_vars; i++)
        if (e->states[i] && e->states[i]->n_lends)
            (void)oi_state_recall(e->states[i], NULL); /* without memory the value is gone */
}

static void end(oi_exec *e, bool ok)
{
    (void)oi_async_join(e); /* failures were looked for before */
    if (e->is_parallel)
        oi_trace_sort(e);
    each_state(e, ok ? oi_state_commit : oi_state_rollback);
    recall_shared(e);
    if (!ok)
        oi_async_reset(e);
    e->n_steps += ok;
    e->running = e->entry;
    e->in_step = false;
    atomic_flag_clear(&e->group->busy);
}

/* With consumers on threads, one that failed was first: entry ran on meanwhile. */
static oi_status fail(oi_exec *e, oi_ctx *c, oi_status status, oi_diag *d)
{
    oi_ctx *first = oi_async_join(e);
    if (first) {
        c = first;
        status = c->fail.status;
    }
    report(e, &c->fail, d);
    end(e, false);
    return status;
}

/* -- running -- */

static oi_ctx *current(const oi_exec *e)
{
    return e->at_queue < e->n_queue ? e->consumers[e->queue[e->at_queue]] : e->entry;
}

/* One node of the block that runs next. *ran is NULL when the step is over. */
static oi_status run_one(oi_exec *e, const oi_pnode **ran, oi_diag *d)
{
    for (;;) {
        oi_ctx *c = current(e);
        c->diag = d;
        e->running = c;
        oi_status status = oi_ctx_next(c, ran);
        if (status != OI_OK)
            return fail(e, c, status, d);
        bool rests = c->state == OI_RUN_DONE || c->state == OI_RUN_SUSPENDED;
        if (c->id != 0 && rests && ++e->at_queue == e->n_queue)
            e->at_queue = e->n_queue = 0;
        if (*ran || (c->id == 0 && rests))
            return OI_OK;
    }
}

static oi_status run_to_end(oi_exec *e, oi_diag *d)
{
    const oi_pnode *ran;
    do
        OI_TRY(run_one(e, &ran, d));
    while (ran && e->entry->state != OI_RUN_DONE);
    oi_ctx *failed = oi_async_join(e); /* one that was never awaited */
    if (failed)
        return fail(e, failed, failed->fail.status, d);
    end(e, true);
    return OI_OK;
}

oi_status oi_step(oi_exec *e, oi_diag *diag)
{
    if (e->in_step && e->at_end)
        e->in_step = e->at_end = false;
    if (!e->in_step) {
        oi_status status = begin(e, diag);
        if (status != OI_OK)
            return e->in_step ? fail(e, e->entry, status, diag) : status;
        /* under a limit they take turns: nodes that run at once would need room at once; a device
         * takes orders from one at a time */
        e->is_parallel = e->sim->options.parallel_consumers && e->sim->program->n_consumers > 0 &&
                         e->sim->budget.limit == 0 && !e->sim->remotes;
    }
    return run_to_end(e, diag);
}

bool oi_next(oi_exec *e, oi_event *event, oi_diag *diag)
{
    const oi_pnode *ran;
    memset(event, 0, sizeof *event);
    if (e->at_end) {
        e->at_end = false;
        return false;
    }
    if (!e->in_step) {
        event->status = begin(e, diag);
        if (event->status != OI_OK && e->in_step)
            fail(e, e->entry, event->status, diag);
        if (event->status != OI_OK)
            return false;
    }
    oi_status status = run_one(e, &ran, diag);
    if (status == OI_OK && ran)
        oi_event_fill(e->running, ran, e->running->ns, event);
    event->status = status;
    if (status == OI_OK && e->entry->state == OI_RUN_DONE) {
        oi_ctx *last = e->running;
        end(e, true);
        e->running = last;
        e->at_end = ran != NULL;
    }
    return status == OI_OK && ran;
}

/* The node under a context's hands, without moving it. */
static const oi_pnode *peek_node(const oi_ctx *c)
{
    const oi_pnode *nodes = c->exec->sim->program->nodes;
    for (uint32_t i = c->n_frames; i-- > 0;) {
        const oi_frame *f = &c->frames[i];
        if (f->at < f->list->n)
            return &nodes[f->list->at[f->at]];
        if (f->loop && c->indices[f->loop->as.loop.index] + 1 < f->end)
            return &nodes[f->list->at[0]];
    }
    return NULL;
}

bool oi_peek(oi_exec *e, oi_event *event)
{
    const oi_program *p = e->sim->program;
    const oi_ctx *c = current(e);
    const oi_pnode *n = e->in_step ? peek_node(c) : NULL;
    memset(event, 0, sizeof *event);
    if (!n && c->id != 0) /* a consumer that has run its last node: entry is next */
        n = peek_node(c = e->entry);
    if (!n && !e->in_step && !e->at_end)
        n = &p->nodes[p->blocks[p->entry].source->nodes.at[0]];
    if (n)
        oi_event_fill(c, n, 0, event);
    return n != NULL;
}

void oi_abandon(oi_exec *e)
{
    if (e->in_step)
        end(e, false);
    e->at_end = false;
}

uint64_t oi_steps_done(const oi_exec *e)
{
    return e->n_steps;
}
