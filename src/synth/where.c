/* where.c: finds statements of a list by tensor, in order.
 *
 * Joining two statements adds entries to the one that stays. The other's entries remain and are
 * skipped: `alive` leads to the next existing statement. */
#include "synth/where.h"

/* -- places -- */

/* How many places are before `at`. */
static size_t count_before(const oi_places *p, size_t at)
{
    size_t low = 0, high = p->n;
    if (high && p->at[high - 1] < at)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->at[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(oi_where *w, oi_places *p, size_t at)
{
    size_t i = count_before(p, at);
    if (i < p->n && p->at[i] == at)
        return;
    (void)OI_PUSH(w->u->arena, p);
    memmove(&p->at[i + 1], &p->at[i], (p->n - 1 - i) * sizeof *p->at);
    p->at[i] = (uint32_t)at;
}

static oi_places *places_of(oi_where *w, uint32_t tensor, bool writes)
{
    while (w->of[writes].n <= tensor)
        *OI_PUSH(w->u->arena, &w->of[writes]) = (oi_places){0};
    return &w->of[writes].at[tensor];
}

static void add_mention(void *ctx, const oi_mention *m)
{
    oi_where *w = ctx;
    if (m->tensor == OI_NO_ID)
        return;
    oi_places *all = places_of(w, m->tensor, false);
    if (all->n == 0)
        *OI_PUSH(w->u->arena, &w->touched) = m->tensor;
    insert(w, all, w->at);
    if (m->writes)
        insert(w, places_of(w, m->tensor, true), w->at);
}

void oi_where_add(oi_where *w, size_t at)
{
    oi_stmt *s = &w->list->at[at];
    w->at = at;
    oi_stmt_mentions(w->u, w->graph, s, add_mention, w);
    oi_stmts_mentions(w->u, w->graph, &s->body, add_mention, w);
}

/* Work alone: nothing that calls, waits, shows or ends. */
static bool is_work(const oi_stmt *s)
{
    bool work = s->kind == OI_STMT_KERNEL || s->kind == OI_STMT_SET || s->kind == OI_STMT_LIMIT ||
                s->kind == OI_STMT_LOOP || s->kind == OI_STMT_SIZES || s->kind == OI_STMT_NEED ||
                s->kind == OI_STMT_RESIZE || s->kind == OI_STMT_LOG || s->kind == OI_STMT_VIEW ||
                s->kind == OI_STMT_GONE;
    for (size_t i = 0; work && i < s->body.n; i++)
        work = is_work(&s->body.at[i]);
    return work;
}

void oi_where_begin(oi_where *w, oi_stmts *list)
{
    w->list = list;
    w->fences[0].n = w->fences[1].n = 0;
    w->alive = oi_arena_alloc(w->u->arena, (list->n + 1) * sizeof *w->alive);
    for (size_t i = 0; i <= list->n; i++)
        w->alive[i] = (uint32_t)i;
    for (size_t i = 0; i < list->n; i++) {
        oi_where_add(w, i);
        if (is_work(&list->at[i]))
            continue;
        insert(w, &w->fences[0], i);
        if (list->at[i].kind != OI_STMT_SHAPE)
            insert(w, &w->fences[1], i);
    }
}

void oi_where_drop(oi_where *w, size_t at)
{
    w->list->at[at] = (oi_stmt){.kind = OI_STMT_GONE, .node = w->list->at[at].node};
    w->alive[at] = (uint32_t)at + 1;
}

void oi_where_end(oi_where *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->list->n; i++)
        if (w->list->at[i].kind != OI_STMT_GONE)
            w->list->at[n++] = w->list->at[i];
    w->list->n = n;
    for (size_t i = 0; i < w->touched.n; i++)
        for (int writes = 0; writes < 2; writes++)
            places_of(w, w->touched.at[i], writes)->n = 0;
    w->touched.n = 0;
}

/* -- looking -- */

/* The first place from there on whose statement is not gone. */
static size_t find_alive(oi_where *w, size_t at)
{
    while (w->alive[at] != at) {
        w->alive[at] = w->alive[w->alive[at]];
        at = w->alive[at];
    }
    return at;
}

size_t oi_where_next(oi_where *w, uint32_t tensor, size_t from, bool writes)
{
    if (tensor >= w->of[writes].n)
        return OI_NOWHERE;
    const oi_places *p = &w->of[writes].at[tensor];
    for (size_t i = count_before(p, from); i < p->n; i = count_before(p, from)) {
        from = find_alive(w, p->at[i]);
        if (from == p->at[i])
            return from;
    }
    return OI_NOWHERE;
}

size_t oi_where_last(oi_where *w, uint32_t tensor, size_t before, bool writes)
{
    if (tensor >= w->of[writes].n)
        return OI_NOWHERE;
    const oi_places *p = &w->of[writes].at[tensor];
    for (size_t i = count_before(p, before); i-- > 0;)
        if (w->alive[p->at[i]] == p->at[i])
            return p->at[i];
    return OI_NOWHERE;
}

typedef struct passing {
    oi_where *w;
    size_t first, last;
    bool reads_only, meets;
    bool is_down; /* the statement moves down */
} passing;

/* An access may move away from the conditions of another one, but not before its own. */
static bool is_free(const passing *x, size_t at, const oi_mention *m)
{
    return x->is_down && !m->writes && x->w->list->at[at].kind == OI_STMT_NEED;
}

static void meet(void *ctx, const oi_mention *m)
{
    passing *x = ctx;
    if (x->meets || m->tensor == OI_NO_ID || (x->reads_only && m->writes))
        return;
    size_t at = oi_where_next(x->w, m->tensor, x->first, !m->writes);
    while (at < x->last && is_free(x, at, m))
        at = oi_where_next(x->w, m->tensor, at + 1, !m->writes);
    x->meets = at < x->last;
}

bool oi_where_may_pass(oi_where *w, size_t at, size_t first, size_t last, bool reads_only)
{
    passing x = {
        .w = w, .first = first, .last = last, .reads_only = reads_only, .is_down = at < first};
    const oi_places *fences = &w->fences[reads_only];
    const size_t fence = count_before(fences, first);
    if (fence < fences->n && fences->at[fence] < last)
        return false;
    oi_stmt_mentions(w->u, w->graph, &w->list->at[at], meet, &x);
    return !x.meets;
}
