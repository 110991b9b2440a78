/* check_scope.c: loop indices across calls. A block may use the index of a loop it is called from,
 * if every call binds it (E034); a loop may not bind an index that a caller's loop has bound (E010,
 * nested loops have distinct indices). One pass over the calls for each name that
 * a calling loop binds. */
#include "graph/check.h"

void oi_check_add_free(oi_checker *c, const oi_node *n, const char *name, oi_span span,
                       bool is_loop)
{
    if (c->blocks[n->block].call == OI_NO_ID)
        return; /* the block has no caller: nothing to inherit */
    uint32_t fresh = (uint32_t)c->free_names.n;
    uint32_t id = oi_map_put(&c->free_ids, name, fresh);
    if (id == fresh)
        *OI_PUSH(c->a, &c->free_names) = (oi_free_name){name, OI_NO_ID};
    *OI_PUSH(c->a, &c->free_uses) =
        (oi_free_use){n->block, n, span, is_loop, c->free_names.at[id].first};
    c->free_names.at[id].first = (uint32_t)c->free_uses.n - 1;
}

/* How a name stands when a block starts. */
typedef struct binding {
    const oi_node *bound;   /* a call that binds it, maybe of a block in between, or NULL */
    const oi_node *unbound; /* likewise one that does not */
} binding;

static void call(const oi_checker *c, binding *at, const oi_call_edge *e, const char *name)
{
    uint32_t caller = e->branch->block;
    bool here = oi_graph_loop_around(c->g, e->branch, name) != NULL;
    if (here || at[caller].bound)
        at[e->to].bound = here ? e->branch : at[caller].bound;
    /* a block without a caller starts without any index */
    bool start = c->blocks[caller].call == OI_NO_ID;
    if (!here && (start || at[caller].unbound))
        at[e->to].unbound = start ? e->branch : at[caller].unbound;
}

static void propagate(const oi_checker *c, binding *at, const char *name)
{
    memset(at, 0, c->g->blocks.n * sizeof *at);
    for (size_t i = 0; i < c->order.n; i++) {
        const oi_call_edges *calls = &c->blocks[c->order.at[i]].calls;
        for (size_t k = 0; k < calls->n; k++)
            call(c, at, &calls->at[k], name);
    }
}

/* Indices of loops that call something: only these can reach another block. */
static void find_binding(const oi_checker *c, oi_map *names)
{
    for (size_t i = 0; i < c->g->blocks.n; i++) {
        const oi_call_edges *calls = &c->blocks[i].calls;
        for (size_t k = 0; k < calls->n; k++)
            for (const oi_node *n = calls->at[k].branch; n->parent != OI_NO_ID;) {
                n = &c->g->nodes.at[n->parent];
                oi_map_put(names, n->as.loop.index.text, 0);
            }
    }
}

static void report(const oi_checker *c, const oi_free_use *u, const binding *at, const char *name)
{
    const char *block = c->g->blocks.at[u->block].name.text;
    oi_place place = oi_check_at(c, u->node, u->span);
    if (u->is_loop && at->bound) {
        oi_diag_error(c->d, place, "E010",
                      "loop index '%s' is already that of a loop from which '%s' is called", name,
                      block);
        oi_diag_note(c->d, oi_check_at(c, at->bound, at->bound->span),
                     "called with '%s' bound here", name);
    } else if (!u->is_loop && (at->unbound || !at->bound)) {
        oi_diag_error(c->d, place, "E034",
                      "loop index '%s' is not bound by every call of block '%s'", name, block);
        if (at->unbound)
            oi_diag_note(c->d, oi_check_at(c, at->unbound, at->unbound->span),
                         "'%s' is not bound by this call", name);
    }
}

void oi_check_scopes(oi_checker *c)
{
    if (!c->order.n)
        return; /* calls form a cycle, which is reported */
    binding *at = oi_arena_alloc(c->a, c->g->blocks.n * sizeof *at), none = {0};
    oi_map names = {.arena = c->a};
    find_binding(c, &names);
    for (size_t i = 0; i < c->free_names.n && !oi_check_stop(c); i++) {
        const oi_free_name *f = &c->free_names.at[i];
        bool binds = oi_map_get(&names, f->name) != OI_MAP_NONE;
        if (binds)
            propagate(c, at, f->name);
        for (uint32_t u = f->first; u != OI_NO_ID; u = c->free_uses.at[u].next)
            report(c, &c->free_uses.at[u], binds ? &at[c->free_uses.at[u].block] : &none, f->name);
    }
}
