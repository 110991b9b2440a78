/* hoist.c: loop-invariant code motion.
 * needs:  one tensor per value (ssa.c); kernels as lowered
 * keeps:  results, order of all visible effects: what moves has no effect but its result
 * makes:  kernels before loops; values that live through the loops
 *
 * Only expensive values move, together with everything they are computed from. A value that costs
 * an addition is recomputed by its reader (inline.c), which is cheaper than a load. The angles of a
 * rotary embedding are an example: they depend on positions, not on the layer. */
#include "device/cost.h"
#include "synth/compose.h"

#define DEAR 16 /* additions per element from which a value is expensive */

typedef struct hoisting {
    oi_unit *u;
    uint32_t graph;
    const oi_stmts *body;
    oi_tally *uses;     /* by tensor, in the graph */
    uint32_t *maker;    /* by tensor: the statement of the body that writes it, or OI_NO_ID */
    bool *same, *moves; /* by statement of the body: loop-invariant, so it moves out */
} hoisting;

/* -- what a loop changes -- */

typedef struct marking {
    hoisting *h;
    uint32_t at;
} marking;

static void mark(void *ctx, const oi_mention *m)
{
    const marking *x = ctx;
    if (m->tensor != OI_NO_ID && m->writes)
        x->h->maker[m->tensor] = x->at;
}

static void find_makers(hoisting *h)
{
    for (size_t i = 0; i < h->u->tensors.n; i++)
        h->maker[i] = OI_NO_ID;
    for (size_t i = 0; i < h->body->n; i++) {
        marking x = {h, (uint32_t)i};
        oi_stmt_mentions(h->u, h->graph, &h->body->at[i], mark, &x);
        oi_stmts_mentions(h->u, h->graph, &h->body->at[i].body, mark, &x);
    }
}

/* -- what may move -- */

typedef struct counting {
    uint32_t tensor, n;
} counting;

static void count(void *ctx, const oi_mention *m)
{
    counting *c = ctx;
    c->n += m->tensor == c->tensor;
}

/* Only later statements of the body read the result. */
static bool is_seen_below(const hoisting *h, size_t at, uint32_t tensor)
{
    const oi_tensor *t = &h->u->tensors.at[tensor];
    counting c = {.tensor = tensor};
    if (t->space != OI_SPACE_ARENA || t->n_table || t->run_dims ||
        t->size_bytes > oi_cost_kept(h->u->target) || h->uses[tensor].writes != 1)
        return false;
    for (size_t i = at + 1; i < h->body->n; i++) {
        oi_stmt_mentions(h->u, h->graph, &h->body->at[i], count, &c);
        oi_stmts_mentions(h->u, h->graph, &h->body->at[i].body, count, &c);
    }
    return c.n + 1 == h->uses[tensor].all;
}

static bool is_same(const hoisting *h, size_t at)
{
    const oi_stmt *s = &h->body->at[at];
    if (s->kind != OI_STMT_KERNEL)
        return false;
    const oi_skernel *k = &h->u->kernels.at[s->kernel];
    bool is = !k->can_fail && !k->is_dynamic && !k->recipe && !k->lengths.n && !k->scalars.n;
    for (size_t i = 0; is && i < k->ports.n; i++) {
        const oi_port *p = &k->ports.at[i];
        const uint32_t maker = h->maker[p->tensor];
        is = p->n_entry == 0 && h->u->tensors.at[p->tensor].space != OI_SPACE_VIEW;
        if (is && p->is_written)
            is = !oi_kernel_reads(k, p->tensor) && is_seen_below(h, at, p->tensor);
        else if (is)
            is = maker == OI_NO_ID || (maker < at && h->same[maker]);
    }
    return is;
}

/* Whether an element is worth its place in memory. */
static bool is_dear(const oi_skernel *k)
{
    uint64_t work = 0;
    const oi_sops *ops;
    for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++)
        for (size_t i = 0; i < ops->n; i++)
            work += oi_sop_work(&ops->at[i]);
    for (size_t n = 0; n < k->nests.n; n++)
        for (uint32_t a = 0; a < k->nests.at[n].n_axes; a++)
            if (k->nests.at[n].axes[a].is_reduced)
                work += (uint64_t)k->nests.at[n].axes[a].extent;
    return work >= DEAR;
}

static bool find_moves(hoisting *h)
{
    bool any = false;
    for (size_t i = 0; i < h->body->n; i++)
        h->same[i] = is_same(h, i);
    for (size_t i = h->body->n; i-- > 0;) {
        if (!h->same[i])
            continue;
        const oi_skernel *k = &h->u->kernels.at[h->body->at[i].kernel];
        h->moves[i] |= is_dear(k);
        any |= h->moves[i];
        for (size_t p = 0; h->moves[i] && p < k->ports.n; p++) {
            const uint32_t maker = h->maker[k->ports.at[p].tensor];
            if (!k->ports.at[p].is_written && maker != OI_NO_ID)
                h->moves[maker] = true;
        }
    }
    return any;
}

/* -- moving -- */

/* Computes only: no call, barrier or exit. */
static bool is_plain(const oi_stmts *list)
{
    bool is = true;
    for (size_t i = 0; i < list->n; i++) {
        const oi_stmt_kind k = list->at[i].kind;
        is = is && k != OI_STMT_BRANCH && k != OI_STMT_YIELD && k != OI_STMT_AWAIT &&
             k != OI_STMT_BARRIER && k != OI_STMT_RETURN && k != OI_STMT_CHECK &&
             is_plain(&list->at[i].body);
    }
    return is;
}

/* First the statements that move, in their order, then the loop and the rest. */
static size_t move_out(hoisting *h, oi_stmts *list, size_t loop)
{
    oi_stmts before = {0}, rest = {0}, all = {0};
    for (size_t i = 0; i < h->body->n; i++)
        *OI_PUSH(h->u->arena, h->moves[i] ? &before : &rest) = h->body->at[i];
    list->at[loop].body = rest;
    for (size_t i = 0; i < list->n; i++) {
        for (size_t k = 0; i == loop && k < before.n; k++)
            *OI_PUSH(h->u->arena, &all) = before.at[k];
        *OI_PUSH(h->u->arena, &all) = list->at[i];
    }
    *list = all;
    return before.n;
}

/* Inner loops first: what leaves one may leave the next. */
static void hoist_list(hoisting *h, oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i].kind != OI_STMT_LOOP)
            continue;
        hoist_list(h, &list->at[i].body);
        if (!is_plain(&list->at[i].body))
            continue;
        h->body = &list->at[i].body;
        h->same = oi_arena_alloc(h->u->arena, h->body->n + 1);
        h->moves = oi_arena_alloc(h->u->arena, h->body->n + 1);
        find_makers(h);
        if (find_moves(h))
            i += move_out(h, list, i);
    }
}

oi_status oi_pass_hoist(oi_unit *u)
{
    hoisting h = {.u = u};
    if (u->per_node || u->can.goal == OI_GOAL_MEMORY) /* longer lifetimes need memory */
        return OI_OK;
    h.maker = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *h.maker);
    for (h.graph = 0; h.graph < u->graphs.n; h.graph++) {
        h.uses = oi_graph_tally(u, h.graph);
        for (uint32_t b = 0; b < u->graphs.at[h.graph].program->n_blocks; b++)
            if (u->graphs.at[h.graph].blocks[b].is_used)
                hoist_list(&h, &u->graphs.at[h.graph].blocks[b].stmts);
    }
    return OI_OK;
}
