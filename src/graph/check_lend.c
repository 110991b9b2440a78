/* check_lend.c: what entry may do between yield and await (spec/dsl.md §9), as far as the path is
 * known: E070 use of a lent variable, E071 yield of a lent or constant one, E073 await of one that
 * is not lent, E074/E075 against active consumers, E076 deadlock, W107/W108/W109 and E077.
 *
 * Each variable is lent, not lent, or both are possible (a mask of OI_YES and OI_NO). A loop may
 * run any number of times, so at its head a variable can also be what the end of the body leaves;
 * those effects are gathered in a first walk, which makes one second walk enough. */
#include "graph/check.h"

/* What a loop's body leaves of a variable; UNCHANGED is possible when only inner loops touch it. */
#define UNCHANGED 4u

typedef struct effect {
    uint32_t var;
    uint32_t outer; /* while gathering: the loop that mask was for */
    uint8_t mask;
} effect;
typedef OI_VEC(effect) effects;
typedef OI_VEC(oi_touch) touch_list;

typedef struct lender {
    oi_async *x;
    oi_checker *c;
    effects *of_loop;    /* by node id */
    uint8_t *mask;       /* by variable: effect so far in the innermost loop being gathered */
    uint32_t *in_loop;   /* by variable: the loop that mask is for */
    size_t n_lent;       /* variables that are surely lent */
    uint32_t epoch;      /* grows with every change of what is lent */
    uint32_t *seen;      /* by block: 2 * epoch, + 1 when surely called */
    touch_list *touches; /* by block */
} lender;

static bool is_lent(const oi_shared *v)
{
    return v->lent == OI_YES;
}

/* -- first walk: what loops leave -- */

static void leave(lender *l, effects *open, uint32_t loop, uint32_t var, uint8_t mask, bool surely)
{
    if (l->in_loop[var] != loop) {
        *OI_PUSH(l->c->a, open) = (effect){var, l->in_loop[var], l->mask[var]};
        l->in_loop[var] = loop;
        l->mask[var] = UNCHANGED;
    }
    l->mask[var] = surely ? mask : l->mask[var] | (mask & (OI_YES | OI_NO));
}

static void gather_list(lender *l, const oi_ids *list, effects *open, uint32_t loop);

/* The body of one loop; `open` keeps what the outer loop had, then becomes the loop's effects. */
static void gather_loop(lender *l, uint32_t id, effects *outer, uint32_t outer_loop)
{
    effects open = {0};
    gather_list(l, &l->c->g->nodes.at[id].as.loop.body, &open, id);
    for (size_t i = 0; i < open.n; i++) {
        uint32_t var = open.at[i].var;
        uint8_t before = open.at[i].mask;
        open.at[i].mask = l->mask[var];
        l->mask[var] = before;
        l->in_loop[var] = open.at[i].outer;
    }
    l->of_loop[id] = open;
    for (size_t i = 0; outer && i < open.n; i++)
        leave(l, outer, outer_loop, open.at[i].var, open.at[i].mask, false);
}

static void gather_list(lender *l, const oi_ids *list, effects *open, uint32_t loop)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_node *n = &l->c->g->nodes.at[list->at[i]];
        if (n->kind == OI_NODE_LOOP)
            gather_loop(l, list->at[i], open, loop);
        else if (open && (n->kind == OI_NODE_YIELD || n->kind == OI_NODE_AWAIT))
            for (size_t k = 0; k < n->as.list.names.n; k++) {
                uint32_t v = oi_map_get(&l->x->ids, n->as.list.names.at[k].text);
                leave(l, open, loop, v, n->kind == OI_NODE_YIELD ? OI_YES : OI_NO, true);
            }
    }
}

/* -- changing what is lent -- */

static void set_lent(lender *l, oi_shared *v, uint8_t lent)
{
    if (v->lent == lent)
        return;
    int change = (lent == OI_YES) - (v->lent == OI_YES);
    l->n_lent += (size_t)change; /* wraps for -1 */
    for (size_t i = 0; change && i < v->consumers.n; i++) {
        oi_consumer *k = &l->x->consumers.at[v->consumers.at[i]];
        for (uint32_t f = 0; f < k->n_first; f++)
            if (&l->x->vars.at[k->awaited.at[f]] == v)
                k->n_lent += (uint32_t)change;
    }
    v->lent = lent;
    l->epoch++;
}

/* A consumer runs from the yield that gives its first await the last variable, to entry's await. */
static bool is_active(const lender *l, uint32_t consumer)
{
    if (consumer == OI_NO_ID)
        return false;
    if (consumer == OI_MANY)
        return l->n_lent > 0;
    const oi_consumer *k = &l->x->consumers.at[consumer];
    return k->n_first && k->n_lent == k->n_first;
}

static void note_yield(const lender *l, const oi_shared *v)
{
    if (v->yielded)
        oi_diag_note(l->c->d, oi_check_at(l->c, v->yielded, v->yielded->span), "'%s' is lent here",
                     v->name);
}

/* -- uses -- */

static bool is_persistent(const lender *l, const char *name)
{
    const oi_symbol *s = oi_symbols_find(l->c->syms, name);
    return s && s->kind == OI_SYM_PERSISTENT;
}

/* One use by entry, at `at`, or in a block it calls there. `surely`: no condition in between. */
static void touch(lender *l, const oi_node *at, oi_span span, const oi_touch *t, bool surely)
{
    oi_checker *c = l->c;
    const oi_shared *v = &l->x->vars.at[t->var];
    const char *verb = t->writes ? "written" : "read";
    bool persistent = is_persistent(l, v->name);
    oi_place place = oi_check_at(c, at, span);
    if (is_lent(v) && !surely)
        return; /* decided when it runs */
    if (is_lent(v)) {
        oi_diag_error(c->d, place, "E070", "'%s' is %s by entry while it is lent", v->name, verb);
        oi_diag_hint(c->d, "await it first");
        note_yield(l, v);
    } else if (t->writes && is_active(l, v->writer)) {
        oi_diag_error(c->d, place, "E074", "'%s' is written by entry while a consumer may write it",
                      v->name);
        oi_diag_note(c->d, oi_check_at(c, v->first_write.node, v->first_write.span),
                     "the consumer writes it here");
    } else if (persistent && (t->writes ? is_active(l, v->reader) : is_active(l, v->writer))) {
        const oi_touch *other = t->writes ? &v->first_read : &v->first_write;
        oi_diag_error(c->d, place, "E075",
                      "persistent '%s' is %s by entry while a consumer may %s it", v->name, verb,
                      t->writes ? "read" : "write");
        oi_diag_note(c->d, oi_check_at(c, other->node, other->span), "the consumer %s it here",
                     t->writes ? "reads" : "writes");
    } else {
        return;
    }
    if (t->node != at)
        oi_diag_note(c->d, oi_check_at(c, t->node, t->span), "in the block that is called");
}

typedef struct entry_use {
    lender *l;
    bool collect; /* into touches of the node's block, instead of judging */
} entry_use;

static void use(void *ctx, const oi_node *n, const oi_use *u)
{
    const entry_use *e = ctx;
    lender *l = e->l;
    uint32_t var = oi_map_get(&l->x->ids, u->name);
    bool writes = oi_use_writes(u->role);
    if (var == OI_MAP_NONE || (!writes && !oi_use_reads(u->role)) ||
        oi_graph_loop_around(l->c->g, n, u->name))
        return;
    oi_touch t = {var, n, u->span, writes};
    if (e->collect)
        *OI_PUSH(l->c->a, &l->touches[n->block]) = t;
    else
        touch(l, n, u->span, &t, true);
}

/* -- calls -- */

typedef struct called {
    uint32_t block;
    bool surely;
} called;
typedef OI_VEC(called) calls;

static void push_call(lender *l, calls *work, uint32_t block, bool surely)
{
    if (l->seen[block] >= 2 * l->epoch + surely)
        return;
    l->seen[block] = 2 * l->epoch + surely;
    *OI_PUSH(l->c->a, work) = (called){block, surely};
}

/* What blocks called by a branch of entry use; each once until what is lent changes. */
static void branch(lender *l, const oi_node *n)
{
    const oi_name *names[] = {&n->as.branch.then_block, &n->as.branch.else_block};
    calls work = {0};
    for (int i = 0; i < 2 && l->n_lent; i++) {
        uint32_t id = names[i]->text ? oi_graph_find_block(l->c->g, names[i]->text) : OI_NO_ID;
        if (id != OI_NO_ID)
            push_call(l, &work, id, !n->as.branch.cond.text);
    }
    while (work.n && !oi_check_stop(l->c)) {
        called k = work.at[--work.n];
        for (size_t i = 0; i < l->touches[k.block].n; i++)
            touch(l, n, n->span, &l->touches[k.block].at[i], k.surely);
        const oi_call_edges *next = &l->c->blocks[k.block].calls;
        for (size_t i = 0; i < next->n; i++)
            push_call(l, &work, next->at[i].to, k.surely && next->at[i].surely);
    }
}

/* -- yield and await -- */

static void yield(lender *l, const oi_node *n)
{
    oi_checker *c = l->c;
    for (size_t i = 0; i < n->as.list.names.n; i++) {
        const oi_name *name = &n->as.list.names.at[i];
        oi_shared *v = &l->x->vars.at[oi_map_get(&l->x->ids, name->text)];
        const oi_symbol *s = oi_symbols_at(c->syms, n, name->text);
        oi_place at = oi_check_at(c, n, name->span);
        if (s && (s->kind == OI_SYM_CONSTANT || s->kind == OI_SYM_INDEX)) {
            oi_diag_error(c->d, at, "E071", "%s '%s' cannot be lent", oi_symbol_kind_name(s->kind),
                          name->text);
            oi_check_note_symbol(c, s);
            continue;
        }
        if (is_lent(v)) {
            oi_diag_error(c->d, at, "E071", "'%s' is lent already", name->text);
            note_yield(l, v);
        }
        set_lent(l, v, OI_YES);
        v->yielded = n;
        for (size_t k = 0; k < v->consumers.n; k++) {
            oi_consumer *by = &l->x->consumers.at[v->consumers.at[k]];
            bool fresh = true; /* a new round, when nothing of the last one is still lent */
            for (size_t w = 0; w < by->awaited.n; w++) {
                const oi_shared *other = &l->x->vars.at[by->awaited.at[w]];
                fresh &= other == v || other->lent == OI_NO;
            }
            by->done = fresh || by->done == OI_NO ? OI_NO : OI_NO | OI_YES;
        }
    }
}

/* E076: a consumer that entry waits for is itself waiting for what nobody can lend meanwhile. */
static bool deadlock(const lender *l, const oi_node *n, oi_span span, const oi_shared *v)
{
    const oi_checker *c = l->c;
    for (size_t k = 0; k < v->consumers.n; k++) {
        const oi_consumer *by = &l->x->consumers.at[v->consumers.at[k]];
        for (size_t w = 0; w < by->awaited.n; w++) {
            const oi_shared *other = &l->x->vars.at[by->awaited.at[w]];
            if (other->is_lendable && (other->lent != OI_NO || by->done != OI_NO))
                continue;
            const oi_block *b = &c->g->blocks.at[by->block];
            oi_diag_error(c->d, oi_check_at(c, n, span), "E076",
                          "deadlock: entry waits for '%s' from consumer '%s', which waits for '%s'",
                          v->name, b->name.text, other->name);
            oi_diag_hint(c->d, other->is_lendable ? "yield '%s' before this" : "nobody yields '%s'",
                         other->name);
            oi_diag_note(c->d, oi_graph_place_block(c->g, c->a, b, b->name.span),
                         "the consumer is here");
            return true;
        }
    }
    return false;
}

static void await(lender *l, const oi_node *n)
{
    oi_checker *c = l->c;
    const oi_names *names = &n->as.list.names;
    for (size_t i = 0; i < names->n; i++) {
        const oi_shared *v = &l->x->vars.at[oi_map_get(&l->x->ids, names->at[i].text)];
        oi_place at = oi_check_at(c, n, names->at[i].span);
        if (!oi_symbols_find(c->syms, v->name))
            continue; /* E030 */
        if (v->lent == OI_NO)
            oi_diag_error(c->d, at, "E073", "'%s' is awaited but not lent", v->name);
        else if (!v->consumers.n)
            oi_diag_warn(c->d, at, "W108", "no block consumes '%s': await returns at once",
                         v->name);
        else if (deadlock(l, n, names->at[i].span, v))
            break;
    }
    for (size_t i = 0; i < names->n; i++) {
        oi_shared *v = &l->x->vars.at[oi_map_get(&l->x->ids, names->at[i].text)];
        set_lent(l, v, OI_NO);
        for (size_t k = 0; k < v->consumers.n; k++)
            l->x->consumers.at[v->consumers.at[k]].done = OI_YES;
    }
}

/* W109, strict E077: return awaits everything that is still lent. */
static void returns(lender *l, const oi_node *n)
{
    oi_checker *c = l->c;
    for (size_t i = 0; i < l->x->vars.n && l->n_lent; i++) {
        const oi_shared *v = &l->x->vars.at[i];
        if (!is_lent(v))
            continue;
        oi_place at = oi_check_at(c, n, n->span);
        if (c->strict)
            oi_diag_error(c->d, at, "E077", "entry returns while '%s' is lent", v->name);
        else
            oi_diag_warn(c->d, at, "W109", "entry returns while '%s' is lent and awaits it here",
                         v->name);
        note_yield(l, v);
        deadlock(l, n, n->span, v);
    }
}

/* -- second walk -- */

static void walk(lender *l, const oi_ids *list);

static void loop(lender *l, const oi_node *n)
{
    effects *left = &l->of_loop[n - l->c->g->nodes.at];
    effects head = {0};
    for (size_t i = 0; i < left->n; i++) {
        oi_shared *v = &l->x->vars.at[left->at[i].var];
        set_lent(l, v, v->lent | (left->at[i].mask & (OI_YES | OI_NO)));
        *OI_PUSH(l->c->a, &head) = (effect){.var = left->at[i].var, .mask = v->lent};
        for (size_t k = 0; k < v->consumers.n; k++)
            l->x->consumers.at[v->consumers.at[k]].done = OI_YES | OI_NO;
    }
    walk(l, &n->as.loop.body);
    for (size_t i = 0; i < head.n; i++)
        set_lent(l, &l->x->vars.at[head.at[i].var], head.at[i].mask);
}

static void walk(lender *l, const oi_ids *list)
{
    for (size_t i = 0; i < list->n && !oi_check_stop(l->c); i++) {
        const oi_node *n = &l->c->g->nodes.at[list->at[i]];
        oi_node_uses(n, use, &(entry_use){l, false});
        switch (n->kind) {
        case OI_NODE_YIELD: yield(l, n); break;
        case OI_NODE_AWAIT: await(l, n); break;
        case OI_NODE_BRANCH: branch(l, n); break;
        case OI_NODE_RETURN: returns(l, n); break;
        case OI_NODE_LOOP: loop(l, n); break;
        default: break;
        }
    }
}

/* Variables that entry names in yield and await join those of the consumers. */
static void add_lendable(oi_async *x)
{
    const oi_graph *g = x->c->g;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const oi_node *n = &g->nodes.at[i];
        if (n->block != x->c->entry || (n->kind != OI_NODE_YIELD && n->kind != OI_NODE_AWAIT))
            continue;
        for (size_t k = 0; k < n->as.list.names.n; k++) {
            uint32_t v = oi_async_var(x, n->as.list.names.at[k].text);
            x->vars.at[v].is_lendable |= n->kind == OI_NODE_YIELD;
        }
    }
}

/* W107 for a consumer none of whose variables entry ever yields: it is never started. */
static void idle_consumers(const oi_async *x)
{
    const oi_checker *c = x->c;
    for (size_t i = 0; i < x->consumers.n; i++) {
        const oi_consumer *k = &x->consumers.at[i];
        const oi_block *b = &c->g->blocks.at[k->block];
        bool idle = true;
        for (size_t w = 0; w < k->awaited.n; w++)
            idle &= !x->vars.at[k->awaited.at[w]].is_lendable;
        if (idle && c->blocks[k->block].call == OI_NO_ID)
            oi_diag_warn(c->d, oi_graph_place_block(c->g, c->a, b, b->name.span), "W107",
                         "block '%s' never runs: entry yields nothing that it awaits",
                         b->name.text);
    }
}

void oi_check_lending(oi_async *x)
{
    oi_checker *c = x->c;
    const oi_graph *g = c->g;
    add_lendable(x);
    idle_consumers(x);
    lender l = {.x = x, .c = c, .epoch = 1};
    l.of_loop = oi_arena_alloc(c->a, (g->nodes.n + 1) * sizeof *l.of_loop);
    l.mask = oi_arena_alloc(c->a, x->vars.n + 1);
    l.in_loop = oi_arena_alloc(c->a, (x->vars.n + 1) * sizeof *l.in_loop);
    l.seen = oi_arena_alloc(c->a, (g->blocks.n + 1) * sizeof *l.seen);
    l.touches = oi_arena_alloc(c->a, (g->blocks.n + 1) * sizeof *l.touches);
    for (size_t i = 0; i < x->vars.n; i++)
        l.in_loop[i] = OI_NO_ID;
    for (size_t i = 0; i < g->nodes.n && x->vars.n; i++)
        if (g->nodes.at[i].block != c->entry)
            oi_node_uses(&g->nodes.at[i], use, &(entry_use){&l, true});
    gather_list(&l, &g->blocks.at[c->entry].nodes, NULL, OI_NO_ID);
    walk(&l, &g->blocks.at[c->entry].nodes);
}
