/* mention.c: visits everything that statements refer to: the one walk over ports, codes and
 * numbers. */
#include "synth/pass.h"

typedef struct telling {
    const oi_unit *u;
    uint32_t graph, block;
    oi_mention_fn *fn;
    void *ctx;
} telling;

static void tell_name(const telling *t, uint32_t id, bool is_index)
{
    oi_mention m = {.tensor = OI_NO_ID, .index = OI_NO_ID, .reads = true};
    if (is_index)
        m.index = id;
    else
        m.tensor = oi_block_tensor(t->u, t->graph, t->block, id);
    t->fn(t->ctx, &m);
}

static void tell_length(const telling *t, uint32_t tensor, bool is_set)
{
    t->fn(t->ctx, &(oi_mention){.tensor = tensor,
                                .index = OI_NO_ID,
                                .reads = !is_set,
                                .writes = is_set,
                                .is_length = true});
}

static void tell_code(const telling *t, const oi_code *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const oi_ins *x = &c->at[i];
        if (x->kind == OI_INS_VAR || x->kind == OI_INS_INDEX)
            tell_name(t, x->id, x->kind == OI_INS_INDEX);
        else if (x->kind == OI_INS_SIZE || x->kind == OI_INS_CELL) /* a size is part of the state */
            t->fn(t->ctx,
                  &(oi_mention){.tensor = (uint32_t)x->value, .index = OI_NO_ID, .reads = true});
        else if (x->kind == OI_INS_LENGTH)
            tell_length(t, (uint32_t)x->value, false);
    }
}

static void tell_value(const telling *t, const oi_pvalue *v)
{
    if (v->kind == OI_PV_VAR || v->kind == OI_PV_INDEX)
        tell_name(t, v->id, v->kind == OI_PV_INDEX);
    else if (v->kind == OI_PV_CODE)
        tell_code(t, &v->code);
}

static void tell_port(const telling *t, oi_port *p, bool reads, bool writes)
{
    const oi_tensor *tensor = &t->u->tensors.at[p->tensor];
    for (uint32_t i = 0; i < p->n_entry; i++)
        tell_code(t, &p->entry[i]);
    for (uint32_t i = 0; p->count && i < tensor->rank; i++)
        tell_code(t, &p->count[i]);
    oi_mention m = {
        .port = p, .tensor = p->tensor, .index = OI_NO_ID, .reads = reads, .writes = writes};
    t->fn(t->ctx, &m);
}

/* Lengths of what it only writes are set before it runs. */
static bool only_writes(const oi_skernel *k, uint32_t tensor)
{
    bool writes = false;
    for (size_t i = 0; i < k->ports.n; i++)
        writes |= k->ports.at[i].tensor == tensor && k->ports.at[i].is_written;
    return writes && !oi_kernel_reads(k, tensor);
}

/* What it reads comes first: in place of a new value lies the old one until then. */
static void tell_kernel(const telling *t, const oi_skernel *k)
{
    for (size_t i = 0; i < k->scalars.n; i++) {
        const oi_kscalar *s = &k->scalars.at[i];
        if (!s->is_length)
            tell_value(t, &s->value);
        else if (!only_writes(k, s->tensor))
            tell_length(t, s->tensor, false);
    }
    bool is_read[64] = {false}; /* the search for reads is slow; further ports are searched twice */
    for (size_t i = 0; i < k->ports.n; i++) {
        oi_port *p = &k->ports.at[i];
        const bool reads = !p->is_written || oi_kernel_reads(k, p->tensor);
        if (i < OI_COUNT(is_read))
            is_read[i] = reads;
        if (!p->is_dropped && reads)
            tell_port(t, p, true, p->is_written);
    }
    for (size_t i = 0; i < k->ports.n; i++) {
        oi_port *p = &k->ports.at[i];
        if (p->is_written && !p->is_dropped &&
            !(i < OI_COUNT(is_read) ? is_read[i] : oi_kernel_reads(k, p->tensor)))
            tell_port(t, p, false, true);
    }
}

static void tell_sizes(const telling *t, const oi_skernel *k)
{
    for (size_t i = 0; i < k->scalars.n; i++)
        if (k->scalars.at[i].is_length)
            tell_length(t, k->scalars.at[i].tensor, false);
        else
            tell_value(t, &k->scalars.at[i].value);
    for (size_t i = 0; i < k->lengths.n; i++)
        tell_length(t, k->lengths.at[i].tensor, true);
}

/* No access to the state may move across the conditions of one: they count as a write. */
static void tell_needs(const telling *t, oi_stmt *s)
{
    for (uint32_t i = 0; i < s->n_checks; i++) {
        tell_code(t, &s->needs[i].value);
        tell_code(t, &s->needs[i].limit);
    }
    tell_port(t, &s->a, true, true);
}

static void tell_resize(const telling *t, oi_stmt *s)
{
    const oi_store_var *v = oi_unit_store(t->u, s->a.tensor);
    for (uint32_t i = 0; i < v->rank; i++)
        tell_code(t, &s->resize->sizes[i]);
    for (uint32_t i = 0; i < s->resize->n_counts; i++)
        tell_code(t, &s->resize->counts[i]);
    tell_port(t, &s->a, true, true);
}

static void tell_view(const telling *t, oi_stmt *s)
{
    if (s->kernel != OI_NO_ID)
        tell_sizes(t, &t->u->kernels.at[s->kernel]);
    tell_port(t, &s->a, true, false);
    tell_port(t, &s->b, false, true);
}

void oi_stmt_mentions(const oi_unit *u, uint32_t graph, oi_stmt *s, oi_mention_fn *fn, void *ctx)
{
    const oi_pnode *n = s->node;
    const telling t = {u, graph, n->source->block, fn, ctx};
    switch (s->kind) {
    case OI_STMT_KERNEL: tell_kernel(&t, &u->kernels.at[s->kernel]); break;
    case OI_STMT_SIZES: tell_sizes(&t, &u->kernels.at[s->kernel]); break;
    case OI_STMT_NEED: tell_needs(&t, s); break;
    case OI_STMT_RESIZE: tell_resize(&t, s); break;
    case OI_STMT_LOG: tell_port(&t, &s->a, true, false); break;
    case OI_STMT_VIEW: tell_view(&t, s); break;
    case OI_STMT_SET:
        tell_value(&t, &s->value);
        tell_port(&t, &s->a, false, true);
        break;
    case OI_STMT_SHAPE:
        for (uint32_t i = 0; i < s->n_checks; i++) {
            tell_length(&t, s->checks[i].tensor, false);
            if (s->checks[i].other != OI_NO_ID)
                tell_length(&t, s->checks[i].other, false);
        }
        break;
    case OI_STMT_LENGTH:
    case OI_STMT_LIMIT:
        if (s->a.tensor == OI_NO_ID)
            tell_value(&t, &s->value);
        else
            tell_port(&t, &s->a, true, false);
        break;
    case OI_STMT_CHECK: tell_port(&t, &s->a, true, false); break;
    case OI_STMT_LOOP:
        tell_code(&t, &n->as.loop.start);
        tell_code(&t, &n->as.loop.end);
        break;
    case OI_STMT_BRANCH:
        if (n->as.branch.cond != OI_NO_ID)
            tell_name(&t, n->as.branch.cond, n->as.branch.cond_is_index);
        break;
    case OI_STMT_PIPELINE:
    case OI_STMT_YIELD:
    case OI_STMT_AWAIT:
    case OI_STMT_BARRIER:
    case OI_STMT_GONE:
    case OI_STMT_RETURN: break;
    }
}

void oi_stmts_mentions(const oi_unit *u, uint32_t graph, const oi_stmts *list, oi_mention_fn *fn,
                       void *ctx)
{
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt_mentions(u, graph, &list->at[i], fn, ctx);
        oi_stmts_mentions(u, graph, &list->at[i].body, fn, ctx);
    }
}

static void add(void *ctx, const oi_mention *m)
{
    oi_tally *tally = ctx;
    if (m->tensor == OI_NO_ID)
        return;
    oi_tally *own = &tally[m->tensor];
    own->all++;
    own->lengths += m->is_length;
    own->writes += m->writes;
    /* a table's entry is written in part: the rest lives on */
    own->reads += m->reads || (m->port && m->port->n_entry);
}

oi_tally *oi_graph_tally(oi_unit *u, uint32_t graph)
{
    const oi_sgraph *g = &u->graphs.at[graph];
    oi_tally *tally = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *tally);
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        oi_stmts_mentions(u, graph, &g->blocks[b].stmts, add, tally);
    return tally;
}

static void take_away(void *ctx, const oi_mention *m)
{
    oi_tally *tally = ctx;
    if (m->tensor == OI_NO_ID)
        return;
    oi_tally *own = &tally[m->tensor];
    own->all--;
    own->lengths -= m->is_length;
    own->writes -= m->writes;
    own->reads -= m->reads || (m->port && m->port->n_entry);
}

void oi_tally_stmt(const oi_unit *u, uint32_t graph, oi_stmt *s, oi_tally *tally, bool adds)
{
    oi_stmt_mentions(u, graph, s, adds ? add : take_away, tally);
}
