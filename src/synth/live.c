/* live.c: lifetimes of tensors in working memory.
 *
 * Statements get positions in execution order; a called block gets positions at each of its calls.
 * A tensor lives from its first use to its last. A loop that the value enters, leaves, or crosses
 * between iterations counts as a whole. A tensor that is written completely before anything reads
 * it needs no initial value. */
#include "synth/live.h"
#include "synth/pass.h"

typedef struct loop_range {
    uint32_t first, last; /* positions */
    uint32_t outer;       /* the enclosing loop, or OI_NO_ID */
    uint32_t tensor;      /* the tensor whose uses were processed last, + 1 */
} loop_range;

typedef struct use {
    uint32_t tensor, at;
    uint32_t loop;   /* the innermost enclosing loop, or OI_NO_ID */
    bool writes_all; /* and reads none of it */
    bool is_certain; /* not inside a branch */
} use;

typedef struct living {
    oi_unit *u;
    uint32_t graph;
    uint32_t position;
    uint32_t branches; /* around the current statement */
    OI_VEC(loop_range) loops;
    uint32_t loop; /* around the current statement */
    OI_VEC(use) uses;
    struct visit *visits; /* by block */
    uint32_t *kernel_at, *turns_at;
    uint32_t *stamps; /* by tensor: the last summarised block that uses it, + 1 */
} living;

/* The uses of a block are recorded at its first call. Later calls only touch the same tensors
 * again, all at one position: the tensors live from call to call anyway. */
typedef struct visit {
    bool is_done, is_summed;
    size_t from, to;  /* range of the first call's uses */
    OI_VEC(use) sums; /* the first use of each tensor; is_certain if the block's call is */
} visit;

static void add_use(void *ctx, const oi_mention *m)
{
    living *l = ctx;
    bool writes_all = m->writes && !m->reads && m->port && m->port->n_entry == 0;
    if (m->tensor != OI_NO_ID && !m->is_length) /* lengths are stored elsewhere */
        *OI_PUSH(l->u->arena, &l->uses) =
            (use){m->tensor, l->position, l->loop, writes_all, l->branches == 0};
}

static void walk(living *l, const oi_stmts *list);

static void sum_up(living *l, uint32_t block)
{
    visit *v = &l->visits[block];
    for (size_t i = v->from; i < v->to; i++)
        if (l->stamps[l->uses.at[i].tensor] != block + 1) {
            l->stamps[l->uses.at[i].tensor] = block + 1;
            *OI_PUSH(l->u->arena, &v->sums) = l->uses.at[i];
        }
    v->is_summed = true;
}

static void walk_call(living *l, uint32_t block)
{
    visit *v = &l->visits[block];
    if (!v->is_done) {
        v->is_done = true;
        v->from = l->uses.n;
        walk(l, &l->u->graphs.at[l->graph].blocks[block].stmts);
        v->to = l->uses.n;
        return;
    }
    if (!v->is_summed)
        sum_up(l, block);
    l->position++;
    for (size_t i = 0; i < v->sums.n; i++) {
        use again = v->sums.at[i];
        again.at = l->position;
        again.loop = l->loop;
        again.is_certain &= l->branches == 0;
        *OI_PUSH(l->u->arena, &l->uses) = again;
    }
}

static void walk_block(living *l, uint32_t block)
{
    l->branches++;
    walk_call(l, block);
    l->branches--;
}

/* A consumer runs at the yield of entry that makes it ready. */
static void walk_yield(living *l, const oi_pnode *n)
{
    const oi_program *p = l->u->graphs.at[l->graph].program;
    if (n->source->block != p->entry)
        return;
    for (uint32_t k = 0; k < p->n_consumers; k++) {
        const oi_pblock *b = &p->blocks[p->consumers[k]];
        bool wakes = false;
        for (uint32_t i = 0; i < b->n_awaited; i++)
            for (uint32_t j = 0; j < n->as.list.n; j++)
                wakes |= b->awaited[i] == n->as.list.vars[j];
        if (wakes)
            walk_block(l, p->consumers[k]);
    }
}

static void walk_branch(living *l, const oi_pnode *n)
{
    if (n->as.branch.cond == OI_NO_ID) { /* a plain call */
        walk_call(l, n->as.branch.then_block);
        return;
    }
    walk_block(l, n->as.branch.then_block);
    walk_block(l, n->as.branch.else_block);
}

static void walk_loop(living *l, const oi_stmt *s)
{
    const uint32_t own = (uint32_t)l->loops.n, outer = l->loop;
    *OI_PUSH(l->u->arena, &l->loops) = (loop_range){.first = ++l->position, .outer = outer};
    const bool runs = oi_loop_surely_runs(s);
    l->branches += !runs; /* it may run zero times */
    l->loop = own;
    walk(l, &s->body);
    l->loop = outer;
    l->branches -= !runs;
    l->loops.at[own].last = ++l->position;
}

/* All kernels of a pipeline share one position, because none ends before another begins. */
static void walk_turns(living *l, const oi_stmt *s)
{
    oi_stmts_mentions(l->u, l->graph, &s->body, add_use, l);
    l->turns_at[s->body.at[0].kernel] = l->position;
}

static void walk(living *l, const oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *s = &list->at[i];
        l->position++;
        oi_stmt_mentions(l->u, l->graph, s, add_use, l);
        if (s->kind == OI_STMT_KERNEL)
            l->kernel_at[s->kernel] = l->kernel_at[s->kernel] == 0 ? l->position : OI_NO_ID;
        if (s->kind == OI_STMT_LOOP)
            walk_loop(l, s);
        else if (s->kind == OI_STMT_PIPELINE)
            walk_turns(l, s);
        else if (s->kind == OI_STMT_BRANCH)
            walk_branch(l, s->node);
        else if (s->kind == OI_STMT_YIELD)
            walk_yield(l, s->node);
    }
}

/* -- ranges -- */

/* The first use inside the loop, use `inside`, shows whether an iteration needs a value of the
 * previous one. */
static bool crosses(const living *l, const uint32_t *own, size_t n, size_t inside,
                    const loop_range *r)
{
    const use *x = &l->uses.at[own[inside]];
    const bool outside = l->uses.at[own[0]].at < r->first || l->uses.at[own[n - 1]].at > r->last;
    return outside || !x->writes_all || !x->is_certain;
}

static void set_range(living *l, uint32_t tensor, const uint32_t *own, size_t n, oi_lifetime *out)
{
    const use *first = &l->uses.at[own[0]], *last = &l->uses.at[own[n - 1]];
    *out = (oi_lifetime){.tensor = tensor, .first = first->at, .last = last->at};
    out->needs_start = !first->writes_all || !first->is_certain;
    if (out->needs_start)
        out->first = 0;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t k = l->uses.at[own[i]].loop; k != OI_NO_ID; k = l->loops.at[k].outer) {
            loop_range *r = &l->loops.at[k];
            if (r->tensor == tensor + 1) /* this loop was processed, and so were all around it */
                break;
            r->tensor = tensor + 1;
            if (!crosses(l, own, n, i, r))
                continue;
            out->first = r->first < out->first ? r->first : out->first;
            out->last = r->last > out->last ? r->last : out->last;
        }
    }
}

void oi_live_find(oi_unit *u, uint32_t graph, oi_lifetimes *out)
{
    living l = {.u = u, .graph = graph, .loop = OI_NO_ID};
    const oi_sgraph *g = &u->graphs.at[graph];
    l.visits = oi_arena_alloc(u->arena, (g->program->n_blocks + 1) * sizeof *l.visits);
    l.stamps = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *l.stamps);
    l.kernel_at = oi_arena_alloc(u->arena, (u->kernels.n + 1) * sizeof *l.kernel_at);
    l.turns_at = oi_arena_alloc(u->arena, (u->kernels.n + 1) * sizeof *l.turns_at);
    walk(&l, &g->blocks[g->program->entry].stmts);
    l.position++;
    out->n_positions = l.position + 1;
    for (size_t i = 0; i < u->kernels.n; i++)
        l.kernel_at[i] = l.kernel_at[i] ? l.kernel_at[i] : OI_NO_ID;
    out->kernel_at = l.kernel_at;
    out->turns_at = l.turns_at;
    /* uses grouped by tensor, in order */
    uint32_t *count = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *count);
    uint32_t *own = oi_arena_alloc(u->arena, (l.uses.n + 1) * sizeof *own);
    for (size_t i = 0; i < l.uses.n; i++)
        count[l.uses.at[i].tensor + 1]++;
    for (size_t i = 1; i <= u->tensors.n; i++)
        count[i] += count[i - 1];
    uint32_t *next = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *next);
    memcpy(next, count, (u->tensors.n + 1) * sizeof *next);
    for (size_t i = 0; i < l.uses.n; i++)
        own[next[l.uses.at[i].tensor]++] = (uint32_t)i;
    for (uint32_t t = 0; t < u->tensors.n; t++) {
        uint32_t n = count[t + 1] - count[t];
        bool works =
            u->tensors.at[t].space == OI_SPACE_ARENA || u->tensors.at[t].space == OI_SPACE_OUTPUT;
        if (n == 0 || !works || u->tensors.at[t].graph != graph)
            continue;
        set_range(&l, t, own + count[t], n, OI_PUSH(u->arena, &out->list));
    }
}
