/* undo.c: decides how a failed step is rolled back.
 * needs:  statements in their final order
 * keeps:  statements
 * makes:  may_fail of statements; what each writes into the undo log; the kind and size of the undo
 *
 * A statement must log the state that it changes if something may fail afterwards: a later
 * statement, one of the next iteration of a loop, or a later check of its own. The log holds all
 * that a step may change before its last possible failure. If that has no bound or is more than
 * the state itself, a copy of the state replaces the log. */
#include "synth/pass.h"

typedef struct covering {
    oi_unit *u;
    oi_sgraph *g;
    uint32_t graph;
    bool *is_followed; /* by block: something may fail after some call of it */
    uint64_t bytes;    /* of the log; UINT64_MAX: no bound */
} covering;

/* -- what a statement changes -- */

typedef struct entries {
    oi_undo_entry at[3];
    uint32_t n;
} entries;

static void add_entry(entries *e, oi_undo_what what, uint64_t n, uint64_t bytes)
{
    e->at[e->n++] = (oi_undo_entry){what, n, bytes};
}

static void add_sizes(entries *e, const oi_store_var *v)
{
    if (v->grows)
        add_entry(e, OI_UNDO_SIZES, 1, 8 * (uint64_t)v->rank);
}

static uint64_t log_bytes(const entries *e)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        uint64_t each = e->at[i].bytes;
        if (__builtin_add_overflow(each, OI_UNDO_HEAD + 7, &each))
            return UINT64_MAX;
        each = oi_times_of(each / 8 * 8, e->at[i].n);
        if (each == UINT64_MAX || __builtin_add_overflow(all, each, &all))
            return UINT64_MAX;
    }
    return all;
}

/* -- walking a block backwards -- */

/* What a kernel writes is logged before it by a statement. */
static void add_part(entries *e, const oi_tensor *t, const oi_port *part)
{
    const uint64_t bits = oi_dtype_bits(t->dtype);
    const uint32_t run = oi_part_run(t, part);
    uint64_t runs = 1, bytes = bits < 8 ? 1 : bits / 8;
    for (uint32_t d = 0; d < t->rank; d++) {
        uint64_t *which = d < run ? &runs : &bytes;
        *which = oi_times_of(*which, oi_part_most(t, part, d));
    }
    add_entry(e, OI_UNDO_ELEMENTS, runs, bytes);
}

static void cover_stmt(covering *x, oi_stmt *s, bool is_followed, uint64_t times)
{
    entries e = {.n = 0};
    if (s->kind == OI_STMT_LOG && is_followed)
        add_part(&e, &x->u->tensors.at[s->a.tensor], &s->a);
    if (s->kind == OI_STMT_RESIZE && is_followed)
        add_sizes(&e, oi_unit_store(x->u, s->a.tensor));
    if (e.n == 0 || times == 0)
        return;
    oi_undo_entry *own = oi_arena_alloc(x->u->arena, e.n * sizeof *own);
    memcpy(own, e.at, e.n * sizeof *own);
    s->undo = own;
    s->n_undo = e.n;
    const uint64_t bytes = oi_times_of(log_bytes(&e), times);
    if (bytes == UINT64_MAX || __builtin_add_overflow(x->bytes, bytes, &x->bytes))
        x->bytes = UINT64_MAX;
}

/* `is_followed`: something may fail after the list. */
static void cover(covering *x, oi_stmts *list, bool is_followed, uint64_t times)
{
    const oi_program *p = x->g->program;
    for (size_t i = list->n; i-- > 0;) {
        oi_stmt *s = &list->at[i];
        const oi_pnode *n = s->node;
        cover_stmt(x, s, is_followed, times);
        if (s->kind == OI_STMT_LOOP) /* or in the next iteration */
            cover(x, &s->body, is_followed || s->may_fail, oi_times_of(times, oi_loop_times(s)));
        else
            cover(x, &s->body, is_followed, times);
        if (s->kind == OI_STMT_BRANCH) {
            x->is_followed[n->as.branch.then_block] |= is_followed;
            if (n->as.branch.else_block != OI_NO_ID)
                x->is_followed[n->as.branch.else_block] |= is_followed;
        }
        for (uint32_t k = 0; oi_yield_runs(p, s) && k < p->n_consumers; k++)
            x->is_followed[p->consumers[k]] |= is_followed || s->may_fail;
        is_followed |= s->may_fail;
    }
}

static uint64_t cover_graph(oi_unit *u, uint32_t graph)
{
    covering x = {.u = u, .g = &u->graphs.at[graph], .graph = graph};
    oi_calls_find(u, graph);
    x.is_followed = oi_arena_alloc(u->arena, (x.g->program->n_blocks + 1) * sizeof *x.is_followed);
    for (uint32_t i = x.g->n_order; i-- > 0;) { /* callers first */
        const uint32_t b = x.g->order[i];
        cover(&x, &x.g->blocks[b].stmts, x.is_followed[b], x.g->blocks[b].times);
    }
    x.g->needs_undo = x.bytes > 0;
    return x.bytes;
}

/* -- the choice -- */

/* An upper bound of the size of the state's struct, whatever the padding. */
static uint64_t copy_bytes(const oi_unit *u)
{
    const uint64_t align = u->can.alignment;
    uint64_t n = 0;
    for (size_t i = 0; i < u->stores.n; i++) {
        const oi_store_var *v = &u->stores.at[i];
        uint64_t marks = 1;
        for (uint32_t a = 0; a < v->n_table; a++)
            marks *= (uint64_t)v->most[a];
        n += oi_tensor_bytes(&u->tensors.at[v->tensor]) + 2 * align + (v->grows ? 8 * v->rank : 0) +
             (v->has_marks ? marks : 0);
    }
    return (n / align + 2) * align;
}

oi_status oi_pass_undo(oi_unit *u)
{
    uint64_t log = 0;
    const uint64_t copy = copy_bytes(u);
    for (uint32_t g = 0; g < u->graphs.n; g++) {
        const uint64_t own = cover_graph(u, g);
        log = own > log ? own : log;
    }
    u->undo = (oi_undo){.kind = OI_UNDO_NONE};
    if (log > 0)
        u->undo = log < copy ? (oi_undo){OI_UNDO_LOG, oi_unit_aligned(u, log)}
                             : (oi_undo){OI_UNDO_COPY, copy};
    return OI_OK;
}
