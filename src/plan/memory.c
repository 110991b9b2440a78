/* memory.c: every buffer lies inside its arena, and a statement reads from the arena what was
 * written for it.
 *
 * The arena is cut where tensors begin and end. Walking through a step, each piece knows whose
 * value it holds; a read of a tensor wants all its pieces to hold that tensor. A loop is walked
 * until nothing changes; where paths join that left different owners, a range holds no value. */
#include "plan/check.h"

enum { NOTHING = -1, UNSURE = -2 };

typedef int32_t owner;

typedef struct visit { /* of a block: what it was entered with last, and left */
    owner *in, *out;
} visit;

typedef struct owning {
    const oi_plan *u;
    uint32_t graph;
    uint64_t *cuts; /* where pieces begin */
    size_t n_pieces;
    owner *now;
    visit *visits; /* by block */
    oi_plan_verdict *v;
} owning;

static bool is_placed(const owning *x, uint32_t tensor)
{
    const oi_tensor *t = &x->u->tensors.at[tensor];
    return t->space == OI_SPACE_ARENA && t->graph == x->graph && !t->is_private;
}

/* -- pieces -- */

static int by_place(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void cut_arena(owning *x)
{
    const oi_plan *u = x->u;
    size_t n = 0;
    x->cuts = oi_arena_alloc(u->arena, (2 * u->tensors.n + 1) * sizeof *x->cuts);
    for (uint32_t i = 0; i < u->tensors.n; i++) {
        const oi_tensor *t = &u->tensors.at[i];
        if (!is_placed(x, i))
            continue;
        x->cuts[n++] = t->offset;
        x->cuts[n++] = t->offset + oi_tensor_bytes(t);
    }
    qsort(x->cuts, n, sizeof *x->cuts, by_place);
    for (size_t i = 0; i < n; i++)
        if (x->n_pieces == 0 || x->cuts[x->n_pieces - 1] != x->cuts[i])
            x->cuts[x->n_pieces++] = x->cuts[i];
}

static size_t piece_at(const owning *x, uint64_t byte)
{
    size_t low = 0, high = x->n_pieces;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (x->cuts[middle] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* -- reading and writing -- */

static void refuse(owning *x, const oi_stmt *s, uint32_t tensor, owner found)
{
    const oi_plan *u = x->u;
    const char *who = !s                          ? "the step"
                      : s->kind == OI_STMT_KERNEL ? u->kernels.at[s->kernel].name
                      : s->node                   ? oi_node_table[s->node->kind].keyword
                                                  : "a statement";
    if (x->v->why)
        return;
    x->v->why = found == NOTHING
                    ? oi_arena_printf(u->arena, "%s reads '%s' before anything is written there",
                                      who, u->tensors.at[tensor].name)
                    : oi_arena_printf(u->arena, "%s reads '%s' where %s%s%s may lie", who,
                                      u->tensors.at[tensor].name, found >= 0 ? "'" : "",
                                      found >= 0 ? u->tensors.at[found].name : "another value",
                                      found >= 0 ? "'" : "");
}

static void write(owning *x, uint32_t tensor)
{
    const oi_tensor *t = &x->u->tensors.at[tensor];
    const uint64_t end = t->offset + oi_tensor_bytes(t);
    for (size_t i = piece_at(x, t->offset); i < x->n_pieces && x->cuts[i] < end; i++)
        x->now[i] = (owner)tensor;
}

static void read(owning *x, const oi_stmt *s, uint32_t tensor)
{
    const oi_tensor *t = &x->u->tensors.at[tensor];
    const uint64_t end = t->offset + oi_tensor_bytes(t);
    for (size_t i = piece_at(x, t->offset); i < x->n_pieces && x->cuts[i] < end; i++)
        if (x->now[i] != (owner)tensor) {
            refuse(x, s, tensor, x->now[i]);
            return;
        }
}

/* What a statement writes lies apart from all else that it touches. */
static void check_apart(owning *x, const oi_stmt *s, const oi_touches *t)
{
    for (size_t i = 0; i < t->n; i++)
        for (size_t j = 0; j < t->n && t->at[i].writes && is_placed(x, t->at[i].tensor); j++) {
            const uint32_t a = t->at[i].tensor, b = t->at[j].tensor;
            if (a != b && is_placed(x, b) && oi_touch_overlap(x->u, a, b) && !x->v->why)
                x->v->why = oi_arena_printf(
                    x->u->arena, "%s writes '%s' over '%s', which it needs too",
                    s->kind == OI_STMT_KERNEL ? x->u->kernels.at[s->kernel].name : "a statement",
                    x->u->tensors.at[a].name, x->u->tensors.at[b].name);
        }
}

static void run(owning *x, const oi_stmt *s)
{
    oi_touches t = {0};
    oi_touch_stmt(x->u, x->graph, s, &t);
    x->v->accesses += t.n;
    check_apart(x, s, &t);
    for (size_t i = 0; i < t.n; i++) {
        if (!is_placed(x, t.at[i].tensor))
            continue;
        if (t.at[i].writes)
            write(x, t.at[i].tensor);
        else
            read(x, s, t.at[i].tensor);
    }
}

/* -- walking -- */

static owner *copy(const owning *x, const owner *from)
{
    owner *to = oi_arena_alloc(x->u->arena, (x->n_pieces + 1) * sizeof *to);
    memcpy(to, from, x->n_pieces * sizeof *to);
    return to;
}

/* What holds on both paths. */
static bool merge(owning *x, const owner *other)
{
    bool changed = false;
    for (size_t i = 0; i < x->n_pieces; i++)
        if (x->now[i] != other[i] && x->now[i] != UNSURE) {
            x->now[i] = UNSURE;
            changed = true;
        }
    return changed;
}

static void walk(owning *x, const oi_stmts *list);

/* A block that was entered with this before leaves what it left then. */
static void walk_block(owning *x, uint32_t block)
{
    visit *v = &x->visits[block];
    const size_t bytes = x->n_pieces * sizeof *x->now;
    if (v->in && v->out && memcmp(v->in, x->now, bytes) == 0) {
        memcpy(x->now, v->out, bytes);
        return;
    }
    owner *in = copy(x, x->now);
    walk(x, &x->u->graphs.at[x->graph].blocks[block].stmts);
    *v = (visit){in, copy(x, x->now)};
}

static void walk_branch(owning *x, const oi_pnode *n)
{
    if (n->as.branch.cond == OI_NO_ID) {
        walk_block(x, n->as.branch.then_block);
        return;
    }
    owner *before = copy(x, x->now);
    walk_block(x, n->as.branch.then_block);
    owner *then = x->now;
    x->now = before;
    walk_block(x, n->as.branch.else_block);
    (void)merge(x, then);
}

/* Zero or more iterations; at least one where the bounds say so. */
static void walk_loop(owning *x, const oi_stmt *s)
{
    owner *before = copy(x, x->now);
    for (bool changed = true; changed && !x->v->why;) {
        owner *in = copy(x, x->now);
        walk(x, &s->body);
        owner *out = copy(x, x->now);
        memcpy(x->now, in, x->n_pieces * sizeof *in);
        changed = merge(x, out);
        if (!changed)
            memcpy(x->now, out, x->n_pieces * sizeof *out);
    }
    if (!oi_loop_runs(s))
        (void)merge(x, before);
}

static bool is_awaited(const oi_pblock *b, const oi_pnode *yield)
{
    for (uint32_t i = 0; i < b->n_awaited; i++)
        for (uint32_t j = 0; j < yield->as.list.n; j++)
            if (b->awaited[i] == yield->as.list.vars[j])
                return true;
    return false;
}

/* Consumers run at a yield that makes them ready, if they are. */
static void walk_yield(owning *x, const oi_pnode *n)
{
    const oi_program *p = x->u->graphs.at[x->graph].program;
    for (uint32_t k = 0; n->source->block == p->entry && k < p->n_consumers; k++) {
        if (!is_awaited(&p->blocks[p->consumers[k]], n))
            continue;
        owner *before = copy(x, x->now);
        walk_block(x, p->consumers[k]);
        if (p->blocks[p->consumers[k]].n_awaited > 1) /* or it may have to wait for another */
            (void)merge(x, before);
    }
}

static void walk(owning *x, const oi_stmts *list)
{
    for (size_t i = 0; i < list->n && !x->v->why; i++) {
        const oi_stmt *s = &list->at[i];
        run(x, s);
        if (s->kind == OI_STMT_LOOP)
            walk_loop(x, s);
        else if (s->kind == OI_STMT_BRANCH)
            walk_branch(x, s->node);
        else if (s->kind == OI_STMT_YIELD)
            walk_yield(x, s->node);
    }
}

/* -- the whole graph -- */

static void check_bounds(owning *x)
{
    for (uint32_t i = 0; i < x->u->tensors.n && !x->v->why; i++) {
        const oi_tensor *t = &x->u->tensors.at[i];
        const uint64_t all = t->space == OI_SPACE_ARENA     ? x->u->arena_bytes
                             : t->space == OI_SPACE_WEIGHTS ? x->u->weights_bytes
                                                            : UINT64_MAX;
        const uint64_t bytes = t->is_private || t->view ? 0 : oi_tensor_bytes(t);
        if (all != UINT64_MAX && (bytes > all || t->offset > all - bytes))
            x->v->why = oi_arena_printf(x->u->arena, "'%s' ends beyond its memory", t->name);
    }
}

/* Values that a step begins with. */
static void establish(owning *x)
{
    for (uint32_t i = 0; i < x->u->tensors.n; i++)
        if (is_placed(x, i) && x->u->tensors.at[i].start != OI_START_NONE)
            write(x, i);
    for (uint32_t i = 0; i < x->u->tensors.n; i++)
        if (is_placed(x, i) && x->u->tensors.at[i].start != OI_START_NONE)
            read(x, NULL, i);
}

void oi_plan_check_memory(const oi_plan *u, uint32_t graph, oi_plan_verdict *v)
{
    owning x = {.u = u, .graph = graph, .v = v};
    const oi_sgraph *g = &u->graphs.at[graph];
    check_bounds(&x);
    if (v->why)
        return;
    cut_arena(&x);
    x.now = oi_arena_alloc(u->arena, (x.n_pieces + 1) * sizeof *x.now);
    for (size_t i = 0; i < x.n_pieces; i++)
        x.now[i] = NOTHING;
    x.visits = oi_arena_alloc(u->arena, (g->program->n_blocks + 1) * sizeof *x.visits);
    establish(&x);
    walk(&x, &g->blocks[g->program->entry].stmts);
}
