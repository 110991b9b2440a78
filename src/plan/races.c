/* races.c: workers that walk through a step together never touch the same bytes at once, and all of
 * them come to every barrier.
 *
 * The step is walked with a set of statements that ran since the last barrier: on any path, so a
 * loop is walked until the set no longer grows. A statement is compared with every one of the set,
 * and with itself, for some numbers of workers. */
#include "plan/check.h"

typedef struct pending {
    const oi_stmt *stmt;
    oi_touches touches;
} pending;

typedef struct racing {
    const oi_plan *u;
    uint32_t graph, n_groups;
    OI_VEC(pending) since; /* the last barrier */
    bool may_have_failed;  /* the first worker, alone: the others do not know yet */
    uint32_t depth;        /* of calls */
    oi_plan_verdict *v;
    bool is_same_run; /* accesses of one run of a statement are compared */
} racing;

static const int64_t workers[] = {2, 3, 4, 7};

/* -- naming what is wrong -- */

static const char *name_of(const racing *r, const oi_stmt *s)
{
    if (s->kind == OI_STMT_KERNEL)
        return r->u->kernels.at[s->kernel].name;
    if (s->kind == OI_STMT_PIPELINE)
        return r->u->kernels.at[s->body.at[0].kernel].name;
    return s->node ? oi_node_table[s->node->kind].keyword : "a statement";
}

static void refuse(racing *r, const oi_stmt *s, const char *what)
{
    if (!r->v->why)
        r->v->why = oi_arena_printf(r->u->arena, "%s %s", name_of(r, s), what);
}

static void refuse_pair(racing *r, const oi_touch *a, const oi_touch *b)
{
    if (!r->v->why)
        r->v->why = oi_arena_printf(r->u->arena,
                                    "%s and %s: two workers may touch '%s' at once, without a "
                                    "barrier between",
                                    name_of(r, a->stmt), name_of(r, b->stmt),
                                    r->u->tensors.at[a->tensor].name);
}

/* -- pairs of accesses -- */

static bool is_chunked(const oi_touch *a, const oi_touch *b)
{
    return (a->group || b->group) && a->group != b->group;
}

/* Whether a worker that does `a` and another one that does `b` may be. */
static bool may_race(const racing *r, const oi_touch *a, const oi_touch *b)
{
    if (!(a->writes || b->writes) || !oi_touch_overlap(r->u, a->tensor, b->tensor) ||
        (a->by == OI_BY_FIRST && b->by == OI_BY_FIRST))
        return false;
    if (is_chunked(a, b)) /* any worker takes any chunk */
        return oi_touch_meet(r->u, a, 0, b, 0, 1, false);
    for (size_t w = 0; w < OI_COUNT(workers); w++)
        for (int64_t p = 0; p < workers[w]; p++)
            for (int64_t q = 0; q < workers[w]; q++) {
                const bool runs =
                    (a->by != OI_BY_FIRST || p == 0) && (b->by != OI_BY_FIRST || q == 0);
                if (runs && p != q && oi_touch_meet(r->u, a, p, b, q, workers[w], r->is_same_run))
                    return true;
            }
    return false;
}

static void compare(racing *r, const oi_touches *a, const oi_touches *b)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < b->n && !r->v->why; j++)
            if (may_race(r, &a->at[i], &b->at[j]))
                refuse_pair(r, &a->at[i], &b->at[j]);
}

/* -- statements -- */

static void barrier(racing *r)
{
    r->since.n = 0;
    r->may_have_failed = false;
}

/* A branch may call what fails. */
static bool may_fail(const racing *r, const oi_stmt *s)
{
    return s->may_fail || s->kind == OI_STMT_BRANCH || oi_stmt_fails(r->u, r->graph, s);
}

/* What the first worker does alone holds nothing that others take part in. */
static void check_serial(racing *r, const oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_stmt *s = &list->at[i];
        if (s->barrier || s->chunks)
            refuse(r, s, "a barrier inside a serial section: other workers never reach it");
        check_serial(r, &s->body);
    }
}

static void put_list(racing *r, const oi_stmts *list, oi_touches *out);

static void put_block(racing *r, uint32_t block, oi_touches *out)
{
    if (block == OI_NO_ID)
        return;
    const oi_sblock *b = &r->u->graphs.at[r->graph].blocks[block];
    check_serial(r, &b->stmts);
    put_list(r, &b->stmts, out);
}

/* All that a statement touches, its body and what it calls included. */
static void put_all(racing *r, const oi_stmt *s, oi_touches *out)
{
    oi_touch_stmt(r->u, r->graph, s, out);
    if (s->kind == OI_STMT_LOOP)
        put_list(r, &s->body, out);
    if (s->kind == OI_STMT_BRANCH) {
        put_block(r, s->node->as.branch.then_block, out);
        put_block(r, s->node->as.branch.else_block, out);
    }
}

static void put_list(racing *r, const oi_stmts *list, oi_touches *out)
{
    for (size_t i = 0; i < list->n; i++)
        put_all(r, &list->at[i], out);
}

static bool was_seen(const racing *r, const oi_stmt *s)
{
    for (size_t i = 0; i < r->since.n; i++)
        if (r->since.at[i].stmt == s)
            return true;
    return false;
}

/* The statement runs: against itself, and all since the last barrier. */
static void run(racing *r, const oi_stmt *s, uint32_t group)
{
    pending one = {.stmt = s};
    if (s->is_parallel && s->kind != OI_STMT_PIPELINE)
        oi_touch_stmt(r->u, r->graph, s, &one.touches);
    else
        put_all(r, s, &one.touches);
    if (!s->is_parallel)
        check_serial(r, &s->body);
    for (size_t i = 0; i < one.touches.n; i++) {
        one.touches.at[i].group = group;
        if (!s->is_parallel)
            one.touches.at[i].by = OI_BY_FIRST;
    }
    r->v->accesses += one.touches.n;
    if (s->is_parallel && r->may_have_failed)
        refuse(r, s, "runs before workers learn that a statement before it failed");
    if (s->is_parallel && s->kind == OI_STMT_KERNEL && r->u->kernels.at[s->kernel].can_fail)
        refuse(r, s, "may fail for one worker and not for others");
    r->is_same_run = true;
    compare(r, &one.touches, &one.touches);
    r->is_same_run = false;
    for (size_t i = 0; i < r->since.n; i++)
        compare(r, &one.touches, &r->since.at[i].touches);
    if (!was_seen(r, s))
        *OI_PUSH(r->u->arena, &r->since) = one;
    r->may_have_failed |= !s->is_parallel && may_fail(r, s);
}

static void walk(racing *r, const oi_stmts *list);

/* Until nothing new is left for the next iteration. */
static void walk_loop(racing *r, const oi_stmt *s)
{
    pending *before = oi_arena_alloc(r->u->arena, (r->since.n + 1) * sizeof *before);
    const size_t n_before = r->since.n;
    const bool failed = r->may_have_failed;
    memcpy(before, r->since.at, n_before * sizeof *before);
    for (size_t n = SIZE_MAX; n != r->since.n && !r->v->why;) {
        n = r->since.n;
        walk(r, &s->body);
    }
    walk(r, &s->body); /* what the last iteration left, into one more */
    for (size_t i = 0; !oi_loop_runs(s) && i < n_before; i++) /* and no iteration at all */
        if (!was_seen(r, before[i].stmt))
            *OI_PUSH(r->u->arena, &r->since) = before[i];
    r->may_have_failed |= failed && !oi_loop_runs(s);
}

static void walk_branch(racing *r, const oi_pnode *n)
{
    const oi_sgraph *g = &r->u->graphs.at[r->graph];
    const uint32_t to[2] = {n->as.branch.then_block,
                            n->as.branch.cond == OI_NO_ID ? OI_NO_ID : n->as.branch.else_block};
    pending *before = oi_arena_alloc(r->u->arena, (r->since.n + 1) * sizeof *before);
    const size_t n_before = r->since.n;
    const bool failed = r->may_have_failed;
    memcpy(before, r->since.at, n_before * sizeof *before);
    walk(r, &g->blocks[to[0]].stmts);
    if (to[1] == OI_NO_ID)
        return;
    const size_t n_then = r->since.n;
    pending *then = oi_arena_alloc(r->u->arena, (n_then + 1) * sizeof *then);
    memcpy(then, r->since.at, n_then * sizeof *then);
    const bool then_failed = r->may_have_failed;
    r->since.n = 0;
    r->may_have_failed = failed;
    for (size_t i = 0; i < n_before; i++)
        *OI_PUSH(r->u->arena, &r->since) = before[i];
    walk(r, &g->blocks[to[1]].stmts);
    for (size_t i = 0; i < n_then; i++)
        if (!was_seen(r, then[i].stmt))
            *OI_PUSH(r->u->arena, &r->since) = then[i];
    r->may_have_failed |= then_failed;
}

/* The first worker does these, from `at` on, while the others wait. Returns what comes after. */
static size_t walk_while_others_wait(racing *r, const oi_stmts *list, size_t at)
{
    do {
        run(r, &list->at[at], 0);
        at++;
    } while (at < list->n && !list->at[at].is_parallel && !list->at[at].barrier);
    barrier(r);
    return at;
}

static void check_chunks(racing *r, const oi_stmts *list, size_t at)
{
    for (size_t i = at; i < at + list->at[at].chunks; i++) {
        const oi_stmt *s = i < list->n ? &list->at[i] : NULL;
        if (!s || s->kind != OI_STMT_KERNEL || !s->is_parallel ||
            !oi_kernel_partition(&r->u->kernels.at[s->kernel]).extent || (i > at && s->barrier))
            refuse(r, &list->at[at], "is cut into chunks together with what cannot be");
    }
}

/* The first worker runs these one after the other: none takes part in what others do. */
static void check_group(racing *r, const oi_stmts *list, size_t at)
{
    const size_t n = list->at[at].serial;
    if (n == 0 || n > list->n - at)
        refuse(r, &list->at[at], "is run by no worker");
    for (size_t i = at + 1; i < at + n && i < list->n; i++)
        if (list->at[i].is_parallel || list->at[i].barrier)
            refuse(r, &list->at[i], "is for all workers, and one alone runs it");
}

static void walk(racing *r, const oi_stmts *list)
{
    size_t chunks_end = 0, serial_end = 0;
    uint32_t group = 0;
    for (size_t i = 0; i < list->n && !r->v->why;) {
        const oi_stmt *s = &list->at[i];
        if (!s->is_parallel && i >= serial_end) {
            check_group(r, list, i);
            serial_end = i + s->serial;
        }
        if (s->barrier) {
            r->v->barriers++;
            barrier(r);
        }
        if (s->barrier && s->first_enters && !s->is_parallel) {
            i = walk_while_others_wait(r, list, i);
            continue;
        }
        if (s->chunks) {
            check_chunks(r, list, i);
            chunks_end = i + s->chunks;
            group = ++r->n_groups;
        }
        run(r, s, i < chunks_end ? group : 0);
        if (s->is_parallel && s->kind == OI_STMT_LOOP)
            walk_loop(r, s);
        else if (s->is_parallel && s->kind == OI_STMT_BRANCH)
            walk_branch(r, s->node);
        i++;
    }
}

void oi_plan_check_races(const oi_plan *u, uint32_t graph, oi_plan_verdict *v)
{
    racing r = {.u = u, .graph = graph, .v = v};
    const oi_sgraph *g = &u->graphs.at[graph];
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        if (!g->blocks[b].is_parallel && g->blocks[b].is_used)
            check_serial(&r, &g->blocks[b].stmts);
    if (g->blocks[g->program->entry].is_parallel)
        walk(&r, &g->blocks[g->program->entry].stmts);
}
