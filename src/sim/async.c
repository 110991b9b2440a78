/* async.c: yield and await (spec/dsl.md §9). Entry lends variables; a consumer starts when all that
 * its first await names are lent, with a view of every variable as it was at the last of those
 * yields. What it writes is its own until entry awaits. Consumers run in declaration order, at the
 * moment they become ready, before entry goes on. */
#include "sim/sim.h"

static const oi_pblock *block_of(const oi_ctx *c)
{
    return &c->exec->sim->program->blocks[c->block];
}

static bool awaits(const oi_ctx *c, uint32_t var)
{
    const oi_pblock *b = block_of(c);
    for (uint32_t i = 0; i < b->n_awaited; i++)
        if (b->awaited[i] == var)
            return true;
    return false;
}

/* Lent, in a round that this consumer has not had yet. */
static bool is_available(const oi_ctx *c, uint32_t var)
{
    const oi_exec *e = c->exec;
    return e->entry->slots[var].is_lent && e->rounds[var] > c->taken[var];
}

static bool all_available(const oi_ctx *c, const oi_pnode *await)
{
    for (uint32_t i = 0; i < await->as.list.n; i++)
        if (!is_available(c, await->as.list.vars[i]))
            return false;
    return true;
}

/* -- starting -- */

/* A consumer's thread: up to its end or to an await that cannot go on. */
static void *run_consumer(void *arg)
{
    oi_ctx *c = arg;
    const oi_pnode *ran;
    while (c->state == OI_RUN_READY)
        if (oi_ctx_next(c, &ran) != OI_OK)
            break;
    return NULL;
}

static void join(oi_ctx *c)
{
    if (c->has_thread)
        pthread_join(c->thread, NULL);
    c->has_thread = false;
}

/* The consumer's turn: at once on a thread of its own, or when entry's node is done. */
static void launch(oi_exec *e, uint32_t consumer)
{
    oi_ctx *c = e->consumers[consumer];
    if (!e->is_parallel) {
        e->queue[e->n_queue++] = consumer;
        return;
    }
    join(c); /* a thread that has come to rest */
    c->diag = NULL;
    c->has_thread = pthread_create(&c->thread, NULL, run_consumer, c) == 0;
    if (!c->has_thread)
        run_consumer(c);
}

static oi_status start(oi_ctx *entry, uint32_t consumer)
{
    oi_exec *e = entry->exec;
    oi_ctx *c = e->consumers[consumer];
    const oi_pblock *b = block_of(c);
    for (uint32_t v = 0; v < e->sim->program->n_vars; v++)
        if (oi_mask_has(b->uses, v) && !oi_mem_view(c, entry, v))
            return oi_ctx_no_memory(entry, 0);
    c->order = entry->order + 1; /* the yield counts when it is done */
    if (oi_ctx_start(c) != OI_OK)
        return oi_ctx_no_memory(entry, 0);
    launch(e, consumer);
    return OI_OK;
}

/* Consumers that can start or go on, now that these variables are lent. */
static oi_status wake(oi_ctx *entry)
{
    oi_exec *e = entry->exec;
    for (uint32_t i = 0; i < e->sim->program->n_consumers; i++) {
        oi_ctx *c = e->consumers[i];
        oi_run_state state = c->state;
        if (state == OI_RUN_IDLE && all_available(c, block_of(c)->first_await)) {
            OI_TRY(start(entry, i));
        } else if (state == OI_RUN_SUSPENDED && all_available(c, c->node)) {
            join(c);
            c->state = OI_RUN_READY;
            launch(e, i);
        }
    }
    return OI_OK;
}

static oi_status lend(oi_ctx *entry, const oi_pnode *n)
{
    oi_exec *e = entry->exec;
    for (uint32_t i = 0; i < n->as.list.n; i++) {
        uint32_t v = n->as.list.vars[i];
        if (entry->slots[v].is_lent)
            return oi_ctx_fail(entry, n->source->as.list.names.at[i].span, "E071",
                               "'%s' is lent already", e->sim->program->vars[v].name);
        entry->slots[v].is_lent = true;
        e->rounds[v]++;
        e->lent_at[v] = entry->order + 1;
    }
    e->has_lent = true;
    return wake(entry);
}

oi_status oi_async_yield(oi_ctx *entry, const oi_pnode *n)
{
    pthread_mutex_lock(&entry->exec->lock);
    oi_status status = lend(entry, n);
    pthread_mutex_unlock(&entry->exec->lock);
    return status;
}

/* -- a consumer's await -- */

/* What is awaited later is seen as it was lent; entry cannot have touched it since. */
static oi_status take_lent(oi_ctx *c, const oi_pnode *n, bool *suspended)
{
    oi_ctx *entry = c->exec->entry;
    bool again = true; /* named before in this round: nothing to wait for */
    for (uint32_t i = 0; i < n->as.list.n; i++) {
        uint32_t v = n->as.list.vars[i];
        bool had = c->taken[v] == c->exec->rounds[v] && entry->slots[v].is_lent;
        again = again && had;
        if (!had && !is_available(c, v)) {
            *suspended = true;
            c->state = OI_RUN_SUSPENDED; /* before entry can lend it */
            return OI_OK;
        }
    }
    for (uint32_t i = 0; i < n->as.list.n && !again; i++) {
        uint32_t v = n->as.list.vars[i];
        if (n != block_of(c)->first_await && c->taken[v] != c->exec->rounds[v] &&
            !oi_mem_view(c, entry, v))
            return oi_ctx_no_memory(c, 0);
        c->taken[v] = c->exec->rounds[v];
        c->order = c->exec->lent_at[v] > c->order ? c->exec->lent_at[v] : c->order;
    }
    return OI_OK;
}

static oi_status take(oi_ctx *c, const oi_pnode *n, bool *suspended)
{
    pthread_mutex_lock(&c->exec->lock);
    oi_status status = take_lent(c, n, suspended);
    pthread_mutex_unlock(&c->exec->lock);
    return status;
}

/* -- entry's await -- */

/* E076: names which block waits for which variable. */
static oi_status deadlock(oi_ctx *entry, const oi_ctx *c, uint32_t var, oi_span span)
{
    const oi_program *p = entry->exec->sim->program;
    const oi_pnode *at = c->state == OI_RUN_SUSPENDED ? c->node : block_of(c)->first_await;
    const char *missing = "?";
    for (uint32_t i = 0; i < at->as.list.n; i++)
        if (!is_available(c, at->as.list.vars[i]))
            missing = p->vars[at->as.list.vars[i]].name;
    return oi_ctx_fail(entry, span, "E076",
                       "deadlock: entry waits for '%s' from consumer '%s', which waits for '%s'",
                       p->vars[var].name, block_of(c)->source->name.text, missing);
}

static void publish(oi_ctx *entry, oi_ctx *c)
{
    const oi_pblock *b = block_of(c);
    for (uint32_t v = 0; v < entry->exec->sim->program->n_vars; v++)
        if (oi_mask_has(b->writes, v))
            oi_mem_publish(c, entry, v);
    for (uint32_t i = 0; i < b->n_awaited; i++) /* also what it never came to wait for */
        c->taken[b->awaited[i]] = entry->exec->rounds[b->awaited[i]];
    c->state = OI_RUN_IDLE;
}

/* Whether the consumer has had the variable in the round that is under way. */
static bool has_taken(const oi_ctx *c, uint32_t var)
{
    return c->taken[var] == c->exec->rounds[var];
}

/* Whether the consumer may still look at what giving the variable back publishes. */
static bool may_look(const oi_ctx *c, uint32_t var)
{
    const oi_exec *e = c->exec;
    const oi_pblock *b = block_of(c);
    if (awaits(c, var))
        return true;
    for (uint32_t i = 0; i < e->sim->program->n_consumers; i++)
        for (uint32_t k = 0; awaits(e->consumers[i], var) && k < b->n_awaited; k++)
            if (oi_mask_has(block_of(e->consumers[i])->writes, b->awaited[k]))
                return true;
    return false;
}

static oi_status give_back(oi_ctx *entry, uint32_t var, oi_span span)
{
    oi_exec *e = entry->exec;
    for (uint32_t i = 0; i < e->sim->program->n_consumers; i++)
        if (e->consumers[i]->has_thread && may_look(e->consumers[i], var))
            join(e->consumers[i]); /* all of them, before anything changes that they could see */
    for (uint32_t i = 0; i < e->sim->program->n_consumers; i++) {
        oi_ctx *c = e->consumers[i];
        if (!awaits(c, var))
            continue;
        if (c->fail.is_set)
            return OI_ERR_INPUT; /* the step's end finds out who was first */
        if (c->state == OI_RUN_DONE)
            publish(entry, c);
        else if (c->state != OI_RUN_IDLE || !has_taken(c, var))
            return deadlock(entry, c, var, span);
    }
    entry->slots[var].is_lent = false;
    return OI_OK;
}

oi_status oi_async_await(oi_ctx *c, const oi_pnode *n, bool *suspended)
{
    if (c->id != 0)
        return take(c, n, suspended);
    for (uint32_t i = 0; i < n->as.list.n; i++) {
        uint32_t v = n->as.list.vars[i];
        oi_span span = n->source->as.list.names.at[i].span;
        if (!c->slots[v].is_lent)
            return oi_ctx_fail(c, span, "E073", "'%s' is awaited but not lent",
                               c->exec->sim->program->vars[v].name);
        OI_TRY(give_back(c, v, span));
    }
    return OI_OK;
}

oi_status oi_async_return(oi_ctx *entry)
{
    uint32_t n_vars = entry->exec->has_lent ? entry->exec->sim->program->n_vars : 0;
    for (uint32_t v = 0; v < n_vars; v++)
        if (entry->slots[v].is_lent)
            OI_TRY(give_back(entry, v, entry->node->source->span));
    return OI_OK;
}

oi_ctx *oi_async_join(oi_exec *e)
{
    oi_ctx *first = NULL;
    for (uint32_t i = 0; i < e->sim->program->n_consumers; i++) {
        oi_ctx *c = e->consumers[i];
        join(c);
        if (c->fail.is_set && (!first || c->order < first->order))
            first = c;
    }
    return first;
}

void oi_async_reset(oi_exec *e)
{
    const oi_program *p = e->sim->program;
    e->n_queue = e->at_queue = 0;
    if (!e->has_lent)
        return;
    (void)oi_async_join(e); /* the failure has been reported */
    e->has_lent = false;
    for (uint32_t v = 0; v < p->n_vars; v++)
        e->entry->slots[v].is_lent = false;
    for (uint32_t i = 0; i < p->n_consumers; i++) {
        e->consumers[i]->state = OI_RUN_IDLE;
        e->consumers[i]->n_frames = 0;
        e->consumers[i]->fail.is_set = false;
        for (uint32_t v = 0; v < p->n_vars; v++)
            e->consumers[i]->taken[v] = e->rounds[v];
    }
}
