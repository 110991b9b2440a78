/* undo.c: a failed step can be rolled back: whatever changes persistent state before a possible
 * failure is in the undo log, sizes and marks included, and the log holds all entries of a step.
 *
 * The step is walked forwards with the last change that the undo does not hold. A statement that
 * may fail must not find one. */
#include "plan/check.h"

/* A block that was entered with nothing bare leaves what it left then; one that was entered with
 * something leaves that. */
typedef struct visit {
    bool was_clean, was_bare;
    const oi_stmt *left;
    const char *left_what;
} visit;

typedef struct undoing {
    const oi_plan *u;
    uint32_t graph;
    const oi_sgraph *g;
    const oi_stmt *bare; /* changed state that could not be restored; NULL: none did */
    const char *bare_what;
    uint32_t bare_tensor;
    visit *visits; /* by block */
    OI_VEC(const oi_stmt *)
    held;          /* statements of the present list that logged a part of the state */
    uint64_t *log; /* by block: bytes that one run logs; UINT64_MAX: not counted yet */
    oi_plan_verdict *v;
} undoing;

static const char *variable(const undoing *x, const oi_stmt *s)
{
    return x->u->tensors.at[s->kind == OI_STMT_KERNEL ? x->bare_tensor : s->a.tensor].name;
}

/* -- what is logged -- */

static void change_sizes(undoing *x, const oi_stmt *s)
{
    const uint64_t bytes = 8 * (uint64_t)oi_plan_store(x->u, s->a.tensor)->rank;
    bool is = x->g->needs_undo && x->u->undo.kind == OI_UNDO_COPY;
    for (uint32_t i = 0; x->g->needs_undo && x->u->undo.kind == OI_UNDO_LOG && i < s->n_undo; i++)
        is |= s->undo[i].what == OI_UNDO_SIZES && s->undo[i].n * s->undo[i].bytes >= bytes;
    if (x->bare || is)
        return;
    x->bare = s;
    x->bare_what = "the sizes of ";
}

static bool is_state(const oi_tensor *t)
{
    return t->space == OI_SPACE_STATE || t->space == OI_SPACE_VIEW;
}

/* -- parts of the state that were logged before a kernel writes them -- */

static bool codes_same(const oi_code *a, const oi_code *b, uint32_t n)
{
    bool same = !a == !b;
    for (uint32_t i = 0; same && a && i < n; i++)
        same = oi_code_same(&a[i], &b[i]);
    return same;
}

static bool is_held(const undoing *x, const oi_port *p)
{
    const uint32_t rank = x->u->tensors.at[p->tensor].rank;
    bool is = x->u->undo.kind == OI_UNDO_COPY && x->g->needs_undo;
    for (size_t i = 0; i < x->held.n; i++) {
        const oi_port *log = &x->held.at[i]->a;
        is |= log->tensor == p->tensor && (!log->count || (codes_same(log->entry, p->entry, rank) &&
                                                           codes_same(log->count, p->count, rank)));
    }
    return is;
}

static void change_ports(undoing *x, const oi_stmt *s)
{
    const oi_skernel *k = &x->u->kernels.at[s->kernel];
    for (size_t i = 0; i < k->ports.n && !x->bare; i++) {
        const oi_port *p = &k->ports.at[i];
        if (!p->is_written || !is_state(&x->u->tensors.at[p->tensor]) || is_held(x, p))
            continue;
        x->bare = s;
        x->bare_what = "";
        x->bare_tensor = p->tensor;
    }
}

static uint64_t most_along(const oi_tensor *t, const oi_port *p, uint32_t d)
{
    int64_t n;
    return (uint64_t)(p->count && oi_code_is_int(&p->count[d], &n) ? n : t->dims[d]);
}

/* The log has room for the part. */
static bool holds_part(const undoing *x, const oi_stmt *s)
{
    const oi_tensor *t = &x->u->tensors.at[s->a.tensor];
    uint64_t n = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        n *= most_along(t, &s->a, d);
    for (uint32_t i = 0; x->g->needs_undo && x->u->undo.kind == OI_UNDO_LOG && i < s->n_undo; i++)
        if (s->undo[i].what == OI_UNDO_ELEMENTS &&
            s->undo[i].bytes * s->undo[i].n >= (n * oi_dtype_bits(t->dtype) + 7) / 8)
            return true;
    return n == 0;
}

static bool looks_at(const undoing *x, const oi_stmt *log, const oi_code *codes, uint32_t tensor)
{
    const uint32_t rank = x->u->tensors.at[log->a.tensor].rank;
    for (uint32_t i = 0; codes && i < rank; i++)
        for (uint32_t k = 0; k < codes[i].n; k++) {
            const oi_ins *ins = &codes[i].at[k];
            const bool is_var = ins->kind == OI_INS_VAR;
            if ((is_var && oi_graph_tensor(x->g, log->node->source->block, ins->id) == tensor) ||
                (ins->kind == OI_INS_SIZE && (uint32_t)ins->value == tensor))
                return true;
        }
    return false;
}

/* A variable changed: parts whose positions depend on it are others from now on. */
static void forget(undoing *x, uint32_t tensor)
{
    size_t n = 0;
    for (size_t i = 0; i < x->held.n; i++) {
        const oi_stmt *log = x->held.at[i];
        if (!looks_at(x, log, log->a.entry, tensor) && !looks_at(x, log, log->a.count, tensor))
            x->held.at[n++] = log;
    }
    x->held.n = n;
}

static void forget_written(undoing *x, const oi_stmt *s)
{
    const oi_skernel *k = s->kind == OI_STMT_KERNEL ? &x->u->kernels.at[s->kernel] : NULL;
    for (size_t i = 0; k && i < k->ports.n; i++)
        if (k->ports.at[i].is_written)
            forget(x, k->ports.at[i].tensor);
    if (s->kind == OI_STMT_RESIZE || s->kind == OI_STMT_SET)
        forget(x, s->a.tensor);
    if (s->kind == OI_STMT_LOOP || s->kind == OI_STMT_BRANCH || s->kind == OI_STMT_YIELD ||
        s->kind == OI_STMT_AWAIT)
        x->held.n = 0;
}

static void run(undoing *x, const oi_stmt *s)
{
    const bool fails = oi_stmt_fails(x->u, x->graph, s);
    if (fails && !s->may_fail && !x->v->why)
        x->v->why = oi_arena_printf(x->u->arena, "%s may fail, and the plan says that it cannot",
                                    s->node ? oi_node_table[s->node->kind].keyword : "a statement");
    if ((fails || s->may_fail) && x->bare && !x->v->why)
        x->v->why = oi_arena_printf(
            x->u->arena, "%s may fail after %s'%s' changed, and the undo does not hold it",
            s->node ? oi_node_table[s->node->kind].keyword : "a statement", x->bare_what,
            variable(x, x->bare));
    if (s->kind == OI_STMT_KERNEL)
        change_ports(x, s);
    else if (s->kind == OI_STMT_RESIZE)
        change_sizes(x, s);
    else if (s->kind == OI_STMT_LOG && holds_part(x, s))
        *OI_PUSH(x->u->arena, &x->held) = s;
    forget_written(x, s);
}

/* -- walking -- */

static void walk(undoing *x, const oi_stmts *list);

static void walk_block(undoing *x, uint32_t block)
{
    visit *v = block == OI_NO_ID ? NULL : &x->visits[block];
    if (!v || (x->bare && v->was_bare))
        return;
    if (!x->bare && v->was_clean) {
        x->bare = v->left;
        x->bare_what = v->left_what;
        return;
    }
    const bool was_clean = !x->bare;
    walk(x, &x->g->blocks[block].stmts);
    v->was_bare |= !was_clean;
    if (was_clean)
        *v = (visit){true, v->was_bare, x->bare, x->bare_what};
}

static void walk_branch(undoing *x, const oi_pnode *n)
{
    const oi_stmt *before = x->bare;
    walk_block(x, n->as.branch.then_block);
    const oi_stmt *then = x->bare;
    x->bare = before;
    walk_block(x, n->as.branch.cond == OI_NO_ID ? OI_NO_ID : n->as.branch.else_block);
    x->bare = x->bare ? x->bare : then;
}

static bool never_runs(const oi_stmt *s)
{
    int64_t from, to;
    return s->kind == OI_STMT_LOOP && oi_code_is_int(&s->node->as.loop.start, &from) &&
           oi_code_is_int(&s->node->as.loop.end, &to) && from >= to;
}

static void walk(undoing *x, const oi_stmts *list)
{
    const oi_program *p = x->g->program;
    x->held.n = 0;
    for (size_t i = 0; i < list->n && !x->v->why; i++) {
        const oi_stmt *s = &list->at[i];
        run(x, s);
        const bool was_clean = !x->bare;
        if (s->kind == OI_STMT_LOOP && !never_runs(s))
            walk(x, &s->body);
        if (s->kind == OI_STMT_LOOP && was_clean && x->bare) /* into the next iteration */
            walk(x, &s->body);
        for (size_t k = 0; s->kind == OI_STMT_PIPELINE && k < s->body.n; k++)
            run(x, &s->body.at[k]);
        if (s->kind == OI_STMT_BRANCH)
            walk_branch(x, s->node);
        for (uint32_t k = 0;
             s->kind == OI_STMT_YIELD && s->node->source->block == p->entry && k < p->n_consumers;
             k++)
            walk_block(x, p->consumers[k]);
        if (s->kind == OI_STMT_LOOP || s->kind == OI_STMT_BRANCH || s->kind == OI_STMT_YIELD)
            x->held.n = 0; /* of that list, not of this */
    }
}

/* -- the size of the log -- */

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t n;
    return __builtin_mul_overflow(a, b, &n) ? UINT64_MAX : n;
}

static uint64_t logged_by(undoing *x, const oi_stmts *list);

static uint64_t logged_by_block(undoing *x, uint32_t block)
{
    if (block == OI_NO_ID)
        return 0;
    if (x->log[block] == UINT64_MAX)
        x->log[block] = logged_by(x, &x->g->blocks[block].stmts);
    return x->log[block];
}

static uint64_t logged_by_stmt(undoing *x, const oi_stmt *s)
{
    const oi_pnode *n = s->node;
    uint64_t all = 0;
    int64_t from, to;
    for (uint32_t i = 0; i < s->n_undo; i++)
        all = plus(all, times(s->undo[i].n, (s->undo[i].bytes + 7) / 8 * 8 + OI_UNDO_HEAD));
    if (s->kind == OI_STMT_BRANCH) {
        const uint64_t then = logged_by_block(x, n->as.branch.then_block);
        const uint64_t other =
            logged_by_block(x, n->as.branch.cond == OI_NO_ID ? OI_NO_ID : n->as.branch.else_block);
        return plus(all, then > other ? then : other);
    }
    if (s->kind != OI_STMT_LOOP)
        return plus(all, logged_by(x, &s->body));
    const uint64_t each = logged_by(x, &s->body);
    if (each == 0)
        return all;
    if (!oi_code_is_int(&n->as.loop.start, &from) || !oi_code_is_int(&n->as.loop.end, &to))
        return UINT64_MAX;
    return plus(all, to > from ? times(each, (uint64_t)to - (uint64_t)from) : 0);
}

static uint64_t logged_by(undoing *x, const oi_stmts *list)
{
    uint64_t all = 0;
    for (size_t i = 0; i < list->n; i++)
        all = plus(all, logged_by_stmt(x, &list->at[i]));
    return all;
}

static uint64_t state_bytes(const oi_plan *u)
{
    uint64_t all = 0;
    for (size_t i = 0; i < u->stores.n; i++) {
        const oi_store_var *v = &u->stores.at[i];
        uint64_t entries = v->has_marks ? 1 : 0;
        for (uint32_t a = 0; a < v->n_table; a++)
            entries *= (uint64_t)v->most[a];
        all += oi_tensor_bytes(&u->tensors.at[v->tensor]) + entries +
               (v->grows ? 8 * (uint64_t)v->rank : 0);
    }
    return all;
}

static void check_size(undoing *x)
{
    const oi_program *p = x->g->program;
    const oi_undo *undo = &x->u->undo;
    if (!x->g->needs_undo || undo->kind == OI_UNDO_NONE)
        return;
    if (undo->kind == OI_UNDO_COPY) {
        if (undo->bytes < state_bytes(x->u) && !x->v->why)
            x->v->why = "the copy for the undo does not hold all state";
        return;
    }
    x->log = oi_arena_alloc(x->u->arena, (p->n_blocks + 1) * sizeof *x->log);
    for (uint32_t b = 0; b < p->n_blocks; b++)
        x->log[b] = UINT64_MAX;
    uint64_t all = logged_by_block(x, p->entry);
    for (uint32_t k = 0; k < p->n_consumers; k++) /* at least once each */
        all = plus(all, logged_by_block(x, p->consumers[k]));
    if (all > undo->bytes && !x->v->why)
        x->v->why = "the undo log does not hold all entries of a step";
}

void oi_plan_check_undo(const oi_plan *u, uint32_t graph, oi_plan_verdict *v)
{
    undoing x = {.u = u, .graph = graph, .g = &u->graphs.at[graph], .v = v};
    x.visits = oi_arena_alloc(u->arena, (x.g->program->n_blocks + 1) * sizeof *x.visits);
    walk(&x, &x.g->blocks[x.g->program->entry].stmts);
    check_size(&x);
}
