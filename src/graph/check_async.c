/* check_async.c: consumers (spec/dsl.md §9): what they must give back (E072), that no two write the
 * same variable (E074) and none reads persistent memory that another writes (E075). What entry does
 * meanwhile is in check_lend.c. */
#include "graph/check.h"

const char *oi_async_consumer(const oi_async *x, uint32_t consumer)
{
    return x->c->g->blocks.at[x->consumers.at[consumer].block].name.text;
}

uint32_t oi_async_var(oi_async *x, const char *name)
{
    uint32_t fresh = (uint32_t)x->vars.n, id = oi_map_put(&x->ids, name, fresh);
    if (id == fresh)
        *OI_PUSH(x->c->a, &x->vars) =
            (oi_shared){.name = name, .writer = OI_NO_ID, .reader = OI_NO_ID, .lent = OI_NO};
    return id;
}

/* -- consumers -- */

static void add_awaited(oi_async *x, uint32_t consumer, const char *name)
{
    uint32_t v = oi_async_var(x, name);
    oi_ids *by = &x->vars.at[v].consumers;
    if (by->n && by->at[by->n - 1] == consumer)
        return; /* awaited before; consumers are added one after the other */
    *OI_PUSH(x->c->a, by) = consumer;
    *OI_PUSH(x->c->a, &x->consumers.at[consumer].awaited) = v;
}

static void find_consumers(oi_async *x)
{
    const oi_checker *c = x->c;
    for (uint32_t b = 0; b < c->g->blocks.n; b++) {
        if (!c->blocks[b].is_consumer)
            continue;
        uint32_t id = (uint32_t)x->consumers.n;
        *OI_PUSH(c->a, &x->consumers) = (oi_consumer){.block = b, .done = OI_NO};
        const oi_ids *awaits = &c->blocks[b].awaits;
        for (size_t i = 0; i < awaits->n; i++) {
            const oi_names *names = &c->g->nodes.at[awaits->at[i]].as.list.names;
            for (size_t k = 0; k < names->n; k++)
                add_awaited(x, id, names->at[k].text);
            if (i == 0)
                x->consumers.at[id].n_first = (uint32_t)x->consumers.at[id].awaited.n;
        }
    }
}

/* E072: the yield that ends a consumer lists everything it awaited. */
static void gives_back(const oi_async *x, const oi_consumer *consumer)
{
    const oi_checker *c = x->c;
    const oi_block *b = &c->g->blocks.at[consumer->block];
    const oi_node *end = b->nodes.n ? &c->g->nodes.at[b->nodes.at[b->nodes.n - 1]] : NULL;
    if (!end || (end->kind != OI_NODE_YIELD && end->kind != OI_NODE_RETURN))
        return; /* E005 */
    oi_map given = {.arena = c->a};
    for (size_t i = 0; end->kind == OI_NODE_YIELD && i < end->as.list.names.n; i++)
        oi_map_put(&given, end->as.list.names.at[i].text, 0);
    const oi_ids *awaits = &c->blocks[consumer->block].awaits;
    for (size_t i = 0; i < awaits->n && !oi_check_stop(c); i++) {
        const oi_node *await = &c->g->nodes.at[awaits->at[i]];
        for (size_t k = 0; k < await->as.list.names.n; k++) {
            const oi_name *name = &await->as.list.names.at[k];
            if (oi_map_get(&given, name->text) != OI_MAP_NONE)
                continue;
            oi_map_put(&given, name->text, 0); /* once is enough */
            oi_diag_error(c->d, oi_check_at(c, end, end->span), "E072",
                          "consumer '%s' awaits '%s' but does not yield it at its end",
                          b->name.text, name->text);
            oi_diag_note(c->d, oi_check_at(c, await, name->span), "awaited here");
        }
    }
}

/* -- who runs which block -- */

static void claim(oi_async *x, oi_ids *work, uint32_t block, uint32_t consumer)
{
    uint32_t owner = x->owner[block];
    if (owner == consumer || owner == OI_MANY)
        return;
    if (owner != OI_NO_ID)
        x->second[block] = consumer;
    x->owner[block] = owner == OI_NO_ID ? consumer : OI_MANY;
    *OI_PUSH(x->c->a, work) = block;
}

/* Blocks that consumers reach. Each is visited at most twice: for its first consumer, and when it
 * turns out to have more. */
static void find_owners(oi_async *x)
{
    const oi_checker *c = x->c;
    size_t n = c->g->blocks.n;
    x->owner = oi_arena_alloc(c->a, n * sizeof *x->owner);
    x->second = oi_arena_alloc(c->a, n * sizeof *x->second);
    for (size_t i = 0; i < n; i++)
        x->owner[i] = x->second[i] = OI_NO_ID;
    oi_ids work = {0};
    for (uint32_t k = 0; k < x->consumers.n; k++) {
        claim(x, &work, x->consumers.at[k].block, k);
        while (work.n) {
            uint32_t from = work.at[--work.n];
            const oi_call_edges *calls = &c->blocks[from].calls;
            uint32_t owner = x->owner[from] == OI_MANY ? x->second[from] : k;
            for (size_t i = 0; i < calls->n; i++)
                claim(x, &work, calls->at[i].to, owner);
        }
    }
}

/* -- what they write and read -- */

static const char *owner_name(const oi_async *x, uint32_t owner, uint32_t block)
{
    return oi_async_consumer(x, owner == OI_MANY ? x->second[block] : owner);
}

/* E074: one mutator. */
static void written(oi_async *x, uint32_t var, const oi_touch *t)
{
    const oi_checker *c = x->c;
    oi_shared *v = &x->vars.at[var];
    uint32_t owner = x->owner[t->node->block];
    bool conflict = v->writer != OI_NO_ID && v->writer != owner;
    if (owner == OI_MANY || conflict) {
        oi_diag_error(c->d, oi_check_at(c, t->node, t->span), "E074",
                      "'%s' is written by two consumers: one may", v->name);
        if (conflict)
            oi_diag_note(c->d, oi_check_at(c, v->first_write.node, v->first_write.span),
                         "consumer '%s' writes it here, too",
                         owner_name(x, v->writer, v->first_write.node->block));
        else
            oi_diag_note(c->d, oi_check_at(c, t->node, t->node->span),
                         "this runs in consumer '%s' and in others",
                         owner_name(x, owner, t->node->block));
    }
    if (v->writer == OI_NO_ID) {
        v->writer = owner;
        v->first_write = *t;
    }
}

static void read_by(oi_async *x, uint32_t var, const oi_touch *t)
{
    oi_shared *v = &x->vars.at[var];
    uint32_t owner = x->owner[t->node->block];
    if (v->reader == OI_NO_ID || v->reader == v->writer) {
        v->reader = owner; /* a reader that is not the writer is worth more */
        v->first_read = *t;
    }
}

typedef struct scan {
    oi_async *x;
    bool reads; /* second sweep: writers are known */
} scan;

static void use(void *ctx, const oi_node *n, const oi_use *u)
{
    const scan *s = ctx;
    const oi_symbol *y = oi_symbols_at(s->x->c->syms, n, u->name);
    if (!y || y->kind == OI_SYM_INDEX)
        return;
    oi_touch t = {.node = n, .span = u->span, .writes = oi_use_writes(u->role)};
    if (t.writes && !s->reads)
        written(s->x, t.var = oi_async_var(s->x, u->name), &t);
    else if (!t.writes && s->reads && y->kind == OI_SYM_PERSISTENT && oi_use_reads(u->role))
        read_by(s->x, t.var = oi_async_var(s->x, u->name), &t);
}

/* E075: persistent memory that one consumer writes is read by no other. */
static void torn_reads(const oi_async *x)
{
    const oi_checker *c = x->c;
    for (size_t i = 0; i < x->vars.n && !oi_check_stop(c); i++) {
        const oi_shared *v = &x->vars.at[i];
        if (v->writer == OI_NO_ID || v->reader == OI_NO_ID || v->reader == v->writer)
            continue;
        oi_diag_error(c->d, oi_check_at(c, v->first_read.node, v->first_read.span), "E075",
                      "persistent '%s' is read here while consumer '%s' may write it", v->name,
                      owner_name(x, v->writer, v->first_write.node->block));
        oi_diag_note(c->d, oi_check_at(c, v->first_write.node, v->first_write.span),
                     "it is written here");
    }
}

static void sweep(oi_async *x, bool reads)
{
    scan s = {x, reads};
    const oi_graph *g = x->c->g;
    for (size_t i = 0; i < g->nodes.n && !oi_check_stop(x->c); i++)
        if (x->owner[g->nodes.at[i].block] != OI_NO_ID)
            oi_node_uses(&g->nodes.at[i], use, &s);
}

void oi_check_async(oi_checker *c)
{
    if (c->entry == OI_NO_ID)
        return;
    oi_async x = {.c = c, .ids = {.arena = c->a}};
    find_consumers(&x);
    for (size_t i = 0; i < x.consumers.n && !oi_check_stop(c); i++)
        gives_back(&x, &x.consumers.at[i]);
    find_owners(&x);
    if (x.consumers.n) {
        sweep(&x, false);
        sweep(&x, true);
        torn_reads(&x);
    }
    oi_check_lending(&x);
}
