/* needed.c: the nodes that some values and persistent memory depend on.
 *
 * Liveness, from the end of a step to its beginning. A node is needed when it changes persistent
 * memory or writes a variable that is live behind it; what it reads is then live before it. A loop
 * is needed when something inside is, a branch when its blocks write what is live behind it. Rounds
 * of a loop repeat until its set of live variables stands still; a block that several branches call
 * has the live variables of all of them behind it. Consumers see what is live at any of their
 * awaits, from any yield of entry on, and give back what is live behind any await of entry. */
#include "program/bind.h"

#include <stdlib.h>

typedef struct needs {
    const oi_program *p;
    oi_arena *arena;
    uint64_t *nodes;
    size_t n_words;
    uint64_t **heads;  /* by node: live at the head of a loop */
    uint64_t **behind; /* by block: live behind it */
    uint64_t **before; /* by block: live before it */
    uint64_t **writes; /* by block: what it may write; NULL: not looked at yet */
    bool *acts;        /* by block: it changes persistent memory, or awaits */
    uint32_t *walked;  /* by block: in which round last */
    uint32_t round;
    OI_VEC(uint64_t *) spare; /* sets that are free */
    uint64_t *lent;           /* live in consumers when entry yields */
    uint64_t *returned;       /* live in entry when consumers give back */
    uint64_t *ever;           /* live anywhere */
    bool changed, in_consumer;
} needs;

/* -- sets of variables -- */

static uint64_t *set_new(const needs *x)
{
    return oi_arena_alloc(x->arena, x->n_words * sizeof(uint64_t));
}

/* A copy, until it is given back. */
static uint64_t *set_take(needs *x, const uint64_t *from)
{
    uint64_t *set = x->spare.n ? x->spare.at[--x->spare.n] : set_new(x);
    memcpy(set, from, x->n_words * sizeof *set);
    return set;
}

static void set_give(needs *x, uint64_t *set)
{
    *OI_PUSH(x->arena, &x->spare) = set;
}

/* Whether something was added. */
static bool add_all(const needs *x, uint64_t *to, const uint64_t *from)
{
    bool grew = false;
    for (size_t i = 0; i < x->n_words; i++) {
        grew |= (from[i] & ~to[i]) != 0;
        to[i] |= from[i];
    }
    return grew;
}

static void copy(const needs *x, uint64_t *to, const uint64_t *from)
{
    memcpy(to, from, x->n_words * sizeof *to);
}

static void add(uint64_t *set, uint32_t i)
{
    set[i / 64] |= (uint64_t)1 << i % 64;
}

static void drop(uint64_t *set, uint32_t i)
{
    set[i / 64] &= ~((uint64_t)1 << i % 64);
}

/* -- what a node writes -- */

static uint32_t n_written(const oi_pnode *n)
{
    if (n->kind == OI_NODE_OP)
        return n->as.op.n_out;
    return n->kind == OI_NODE_TRANSFER || n->kind == OI_NODE_CACHE_READ;
}

static uint32_t written(const oi_pnode *n, uint32_t i)
{
    return n->kind == OI_NODE_OP ? n->as.op.out[i].var : n->as.move.to.var;
}

/* Changes what lasts. A read can make a tensor with automatic dims grow. */
static bool changes_state(const oi_program *p, const oi_pnode *n)
{
    switch (n->kind) {
    case OI_NODE_CACHE_WRITE:
    case OI_NODE_CACHE_INCREMENT:
    case OI_NODE_CACHE_DECREMENT:
    case OI_NODE_CACHE_RESET: return true;
    case OI_NODE_CACHE_READ:
        return oi_access_is_growth(&p->vars[n->as.move.cache.var], &n->as.move.cache);
    default: return false;
    }
}

/* -- walking backwards -- */

typedef struct reading {
    const needs *x;
    uint64_t *live;
} reading;

static void add_read(void *ctx, const oi_node *n, const oi_use *u)
{
    const reading *r = ctx;
    const oi_symbol *s = oi_use_reads(u->role) && u->role != OI_USE_RETURN
                             ? oi_symbols_at(r->x->p->symbols, n, u->name)
                             : NULL;
    if (s && s->kind != OI_SYM_INDEX)
        add(r->live, (uint32_t)(s - r->x->p->symbols->list.at));
}

static void add_reads(const needs *x, const oi_pnode *n, uint64_t *live)
{
    oi_node_uses(n->source, add_read, &(reading){x, live});
}

static void need(needs *x, const oi_pnode *n)
{
    const size_t i = (size_t)(n - x->p->nodes);
    const uint64_t bit = (uint64_t)1 << i % 64;
    x->changed |= !(x->nodes[i / 64] & bit);
    x->nodes[i / 64] |= bit;
}

static bool is_live(const oi_pnode *n, const uint64_t *live)
{
    for (uint32_t i = 0; i < n_written(n); i++)
        if (oi_mask_has(live, written(n, i)))
            return true;
    return false;
}

/* Ops, transfers and cache nodes: whether it must run; live becomes what is live before it. */
static bool walk_plain(needs *x, const oi_pnode *n, uint64_t *live)
{
    if (!changes_state(x->p, n) && !is_live(n, live))
        return false;
    need(x, n);
    for (uint32_t i = 0; i < n_written(n); i++)
        if (!x->p->vars[written(n, i)].is_prefix) /* one entry of a table: the others stay */
            drop(live, written(n, i));
    add_reads(x, n, live);
    return true;
}

static bool walk_list(needs *x, const oi_ids *list, uint64_t *live);

static bool walk_loop(needs *x, const oi_pnode *n, uint64_t *live)
{
    uint64_t **head = &x->heads[n - x->p->nodes];
    bool needed, grew;
    if (!*head)
        *head = set_new(x);
    x->changed |= add_all(x, *head, live);
    do {
        uint64_t *round = set_take(x, *head);
        needed = walk_list(x, &n->source->as.loop.body, round);
        grew = add_all(x, *head, round);
        set_give(x, round);
    } while (grew);
    if (!needed)
        return false;
    need(x, n);
    add_all(x, live, *head);
    add_reads(x, n, live);
    return true;
}

static void scan_block(needs *x, uint32_t block);

/* What the nodes may write, blocks that they call included. */
static void scan_list(needs *x, const oi_ids *list, uint64_t *writes, bool *acts)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_pnode *n = &x->p->nodes[list->at[i]];
        for (uint32_t k = 0; k < n_written(n); k++)
            add(writes, written(n, k));
        *acts |= changes_state(x->p, n) || n->kind == OI_NODE_AWAIT;
        if (n->kind == OI_NODE_LOOP)
            scan_list(x, &n->source->as.loop.body, writes, acts);
        const uint32_t targets[] = {n->as.branch.then_block, n->as.branch.else_block};
        for (uint32_t k = 0; n->kind == OI_NODE_BRANCH && k < 2; k++)
            if (targets[k] != OI_NO_ID) {
                scan_block(x, targets[k]);
                add_all(x, writes, x->writes[targets[k]]);
                *acts |= x->acts[targets[k]];
            }
    }
}

static void scan_block(needs *x, uint32_t block)
{
    if (x->writes[block])
        return;
    x->writes[block] = set_new(x);
    scan_list(x, &x->p->blocks[block].source->nodes, x->writes[block], &x->acts[block]);
}

/* Whether this call of the block does anything that is needed behind it. */
static bool is_call_needed(needs *x, uint32_t block, const uint64_t *live)
{
    bool any = false;
    scan_block(x, block);
    for (size_t i = 0; i < x->n_words; i++)
        any |= (x->writes[block][i] & live[i]) != 0;
    return any || x->acts[block];
}

/* The block with what is live behind this call of it and all others. */
static void walk_block(needs *x, uint32_t block, const uint64_t *live)
{
    if (!x->behind[block]) {
        x->behind[block] = set_new(x);
        x->before[block] = set_new(x);
    }
    if (!add_all(x, x->behind[block], live) && x->walked[block] == x->round)
        return;
    x->walked[block] = x->round;
    uint64_t *at = set_take(x, x->behind[block]);
    walk_list(x, &x->p->blocks[block].source->nodes, at);
    add_all(x, x->before[block], at);
    set_give(x, at);
}

static bool walk_branch(needs *x, const oi_pnode *n, uint64_t *live)
{
    const uint32_t targets[] = {n->as.branch.then_block, n->as.branch.else_block};
    bool needed = false;
    for (uint32_t i = 0; i < 2; i++)
        needed |= targets[i] != OI_NO_ID && is_call_needed(x, targets[i], live);
    if (!needed)
        return false;
    need(x, n);
    for (uint32_t i = 0; i < 2; i++)
        if (targets[i] != OI_NO_ID)
            walk_block(x, targets[i], live);
    copy(x, live, x->before[targets[0]]);
    if (targets[1] != OI_NO_ID)
        add_all(x, live, x->before[targets[1]]);
    add_reads(x, n, live);
    return true;
}

/* Lending and giving back always happens; a yield outside entry is a return. */
static bool walk_sync(needs *x, const oi_pnode *n, uint64_t *live)
{
    need(x, n);
    if (x->in_consumer) {
        if (n->kind == OI_NODE_AWAIT)
            x->changed |= add_all(x, x->lent, live);
        return n->kind == OI_NODE_AWAIT;
    }
    if (n->kind == OI_NODE_YIELD && n->source->block == x->p->entry) {
        add_all(x, live, x->lent);
        return true;
    }
    if (n->kind == OI_NODE_AWAIT || n->source->block == x->p->entry)
        x->changed |= add_all(x, x->returned, live);
    return n->kind == OI_NODE_AWAIT;
}

static bool walk_node(needs *x, const oi_pnode *n, uint64_t *live)
{
    switch (n->kind) {
    case OI_NODE_LOOP: return walk_loop(x, n, live);
    case OI_NODE_BRANCH: return walk_branch(x, n, live);
    case OI_NODE_YIELD:
    case OI_NODE_AWAIT:
    case OI_NODE_RETURN: return walk_sync(x, n, live);
    case OI_NODE_ASSIGN: return false; /* see keep_assigns */
    case OI_NODE_BARRIER:
    case OI_NODE_DEP: need(x, n); return false;
    default: return walk_plain(x, n, live);
    }
}

static bool walk_list(needs *x, const oi_ids *list, uint64_t *live)
{
    bool needed = false;
    for (size_t i = list->n; i-- > 0;) {
        needed |= walk_node(x, &x->p->nodes[list->at[i]], live);
        add_all(x, x->ever, live);
    }
    return needed;
}

/* -- the whole -- */

/* A declaration is kept where the variable is. */
static void keep_assigns(needs *x)
{
    for (size_t i = 0; i < x->p->graph->nodes.n; i++) {
        const oi_node *n = x->p->nodes[i].source;
        const oi_symbol *s =
            n->kind == OI_NODE_ASSIGN ? oi_symbols_find(x->p->symbols, n->name.text) : NULL;
        if (s && oi_mask_has(x->ever, (uint32_t)(s - x->p->symbols->list.at)))
            need(x, &x->p->nodes[i]);
    }
}

typedef struct job {
    needs *x;
    const uint64_t *wanted;
    uint64_t *stale;
} job;

static void walk_all(void *ctx)
{
    const job *j = ctx;
    needs *x = j->x;
    const oi_program *p = x->p;
    x->heads = oi_arena_alloc(x->arena, (p->graph->nodes.n + 1) * sizeof *x->heads);
    x->behind = oi_arena_alloc(x->arena, (p->n_blocks + 1) * sizeof *x->behind);
    x->before = oi_arena_alloc(x->arena, (p->n_blocks + 1) * sizeof *x->before);
    x->writes = oi_arena_alloc(x->arena, (p->n_blocks + 1) * sizeof *x->writes);
    x->acts = oi_arena_alloc(x->arena, (p->n_blocks + 1) * sizeof *x->acts);
    x->walked = oi_arena_alloc(x->arena, (p->n_blocks + 1) * sizeof *x->walked);
    x->lent = set_new(x);
    x->returned = set_new(x);
    x->ever = set_new(x);
    do { /* what consumers give back and take changes what entry needs, and the reverse */
        uint64_t *live = set_take(x, j->wanted);
        x->round++;
        x->changed = false;
        x->in_consumer = false;
        add_all(x, x->ever, live);
        walk_list(x, &p->blocks[p->entry].source->nodes, live);
        x->in_consumer = true;
        for (uint32_t i = 0; i < p->n_consumers; i++) {
            copy(x, live, x->returned);
            walk_list(x, &p->blocks[p->consumers[i]].source->nodes, live);
        }
        set_give(x, live);
    } while (x->changed);
    keep_assigns(x);
    memset(j->stale, 0, x->n_words * sizeof *j->stale);
    for (size_t i = 0; i < p->graph->nodes.n; i++)
        for (uint32_t k = 0; k < n_written(&p->nodes[i]); k++)
            if (!oi_mask_has(x->nodes, (uint32_t)i) &&
                !oi_mask_has(j->wanted, written(&p->nodes[i], k)))
                add(j->stale, written(&p->nodes[i], k));
}

bool oi_program_needed(const oi_program *p, const uint64_t *wanted, uint64_t *nodes,
                       uint64_t *stale)
{
    needs x = {.p = p, .arena = oi_arena_new(), .nodes = nodes, .n_words = p->n_mask};
    memset(nodes, 0, (p->graph->nodes.n / 64 + 1) * sizeof *nodes);
    const bool ok =
        x.arena && oi_arena_guard(x.arena, walk_all, &(job){&x, wanted, stale}) == OI_OK;
    oi_arena_free(x.arena);
    return ok;
}
