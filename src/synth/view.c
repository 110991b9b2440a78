/* view.c: reads a cache in place instead of copying.
 * needs:  statements in their final order
 * keeps:  results, and every check of the read
 * makes:  cache.reads that only compute a pointer; tensors that are views of persistent memory
 *
 * A cache.read becomes a view if the selected elements are contiguous, only the read writes its
 * result, all consumers follow it in the same list, and nothing writes the variable before the last
 * of them. */
#include "synth/pass.h"

#define OF_THE_RUN (-1) /* a length */

typedef struct viewing {
    oi_unit *u;
    uint32_t graph;
    const oi_tally *uses; /* by tensor */
    oi_stmts *list;
    uint32_t from, to; /* the variable, and the result of the read */
    /* while visiting statements */
    uint32_t found;
    bool changes;
} viewing;

/* Whether an entry of a growing table is inside the storage. Beyond it, entries have the initial
 * value, which is stored nowhere. */
static bool is_stored(const viewing *l, const oi_store_var *v, const oi_paccess *a, uint32_t i)
{
    const oi_program *p = l->u->graphs.at[l->graph].program;
    return !(v->grows >> i & 1) || i >= v->n_table ||
           (i < a->n && !a->sels[i].is_slice && oi_code_is_below(p, &a->sels[i].start, v->most[i]));
}

/* The selection is contiguous if every axis before the first partial one selects one place. Slices
 * have the length of their result, or a run-time length within bounds that the read checks. */
static bool is_one_piece(const viewing *l, const oi_stmt *s)
{
    const oi_store_var *v = oi_unit_store(l->u, l->from);
    const oi_tensor *state = &l->u->tensors.at[l->from], *t = &l->u->tensors.at[l->to];
    const oi_paccess *a = &s->node->as.move.cache;
    int64_t count[2 * OI_MAX_RANK];
    uint32_t d = 0, q = v->rank;
    if (oi_access_is_growth(state->var, a) || oi_dtype_bits(t->dtype) < 8 ||
        t->dtype != state->dtype)
        return false;
    for (uint32_t i = 0; i < v->rank; i++) {
        const bool keeps = i >= a->n || a->sels[i].is_slice;
        const bool is_open = keeps && d < t->rank && t->run_dims >> d & 1;
        if ((!is_open && !is_stored(l, v, a, i)) || (keeps && d >= t->rank))
            return false;
        count[i] = is_open ? OF_THE_RUN : keeps ? t->dims[d] : 1;
        d += keeps;
    }
    while (q > 0 && count[q - 1] == v->most[q - 1])
        q--;
    for (uint32_t i = 0; i + 1 < q; i++)
        if (count[i] != 1)
            return false;
    return d == t->rank;
}

static void look(void *ctx, const oi_mention *m)
{
    viewing *l = ctx;
    l->found += m->tensor == l->to && m->port && !m->writes;
    l->changes |= m->tensor == l->from && m->writes;
}

/* NULL if all consumers of the result come before anything writes the variable. */
static const char *why_not(viewing *l, size_t at)
{
    const oi_tally *own = &l->uses[l->to];
    l->found = 0;
    l->changes = false;
    const uint32_t readers = own->all - own->lengths - 1;
    for (size_t i = at + 1; i < l->list->n && l->found < readers; i++) {
        oi_stmt *s = &l->list->at[i];
        bool calls = s->kind == OI_STMT_BRANCH || s->kind == OI_STMT_YIELD ||
                     s->kind == OI_STMT_AWAIT || oi_stmts_call(&s->body);
        oi_stmt_mentions(l->u, l->graph, s, look, l);
        oi_stmts_mentions(l->u, l->graph, &s->body, look, l);
        if (calls)
            return "a block is called before its last reader";
        if (l->changes)
            return "the variable changes before its last reader";
    }
    return l->found == readers ? NULL : "it is read elsewhere";
}

static void view_list(viewing *l, oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++)
        view_list(l, &list->at[i].body);
    l->list = list;
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *s = &list->at[i];
        if (s->kind != OI_STMT_CACHE || s->node->kind != OI_NODE_CACHE_READ)
            continue;
        l->from = s->a.tensor;
        l->to = s->b.tensor;
        oi_tensor *t = &l->u->tensors.at[l->to];
        if (t->space != OI_SPACE_ARENA || t->rank == 0 || t->n_table || s->b.n_entry ||
            l->uses[l->to].writes != 1 || l->uses[l->to].all < 2)
            continue;
        const char *no = is_one_piece(l, s) ? why_not(l, i) : "it is not contiguous";
        if (no) {
            oi_unit_note(l->u, "view", l->graph, s->node, "%s is copied: %s", t->name, no);
            continue;
        }
        s->is_view = true;
        t->space = OI_SPACE_VIEW;
        t->start = OI_START_NONE;
        t->from = l->from;
    }
}

oi_status oi_pass_view(oi_unit *u)
{
    for (uint32_t g = 0; g < u->graphs.n && !u->per_node; g++) {
        viewing l = {.u = u, .graph = g, .uses = oi_graph_tally(u, g)};
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            if (u->graphs.at[g].blocks[b].is_used)
                view_list(&l, &u->graphs.at[g].blocks[b].stmts);
    }
    return OI_OK;
}
