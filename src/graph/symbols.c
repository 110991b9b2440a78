/* symbols.c: one table of every name: declared variables, assigned temporaries, loop indices. */
#include "graph/graph.h"

static const oi_exprs no_dims;

static oi_axis *find_axis(const oi_symbol *s, const char *name)
{
    for (size_t i = 0; i < s->n_axes; i++)
        if (strcmp(s->axes[i].name.text, name) == 0)
            return (oi_axis *)&s->axes[i];
    return NULL;
}

static void add_axes(oi_arena *a, oi_symbol *s, const oi_var *v)
{
    if (!v->indices.n || v->indices.n > OI_MAX_RANK)
        return; /* the check rejects longer lists */
    oi_axis *axes = oi_arena_alloc(a, v->indices.n * sizeof *axes), *x;
    for (size_t i = 0; i < v->indices.n; i++)
        axes[i].name = v->indices.at[i];
    s->axes = axes;
    s->n_axes = s->n_table = v->indices.n;
    for (size_t i = 0; i < v->auto_dim.n; i++) {
        x = find_axis(s, v->auto_dim.at[i].text);
        if (x && !x->is_auto) {
            x->is_auto = true;
            s->n_table--;
        }
    }
    for (size_t i = 0; i < v->fixed.n; i++)
        if ((x = find_axis(s, v->fixed.at[i].index.text)))
            x->fixed = v->fixed.at[i].limit;
    for (size_t i = 0; i < v->cap.n; i++)
        if ((x = find_axis(s, v->cap.at[i].index.text)))
            x->cap = v->cap.at[i].limit;
}

static void add(oi_symbols *s, oi_arena *a, oi_map *map, const oi_symbol *symbol)
{
    *OI_PUSH(a, &s->list) = *symbol;
    oi_map_put(map, symbol->name, (uint32_t)s->list.n - 1);
}

oi_symbols *oi_graph_symbols(const oi_graph *g, oi_arena *a)
{
    oi_symbols *s = oi_arena_alloc(a, sizeof *s);
    s->graph = g;
    s->variables.arena = s->indices.arena = a;
    for (size_t i = 0; i < g->vars.n; i++) {
        const oi_var *v = &g->vars.at[i];
        oi_symbol y = {.name = v->name.text,
                       .kind = (oi_symbol_kind)v->kind,
                       .dtype = v->dtype,
                       .dims = &v->dims,
                       .var = v,
                       .span = v->name.span};
        add_axes(a, &y, v);
        add(s, a, &s->variables, &y);
    }
    for (size_t i = 0; i < g->nodes.n; i++) {
        const oi_node *n = &g->nodes.at[i];
        if (n->kind == OI_NODE_ASSIGN)
            add(s, a, &s->variables,
                &(oi_symbol){.name = n->name.text,
                             .kind = OI_SYM_ASSIGN,
                             .dtype = n->as.assign.dtype,
                             .dims = &n->as.assign.dims,
                             .node = n,
                             .span = n->name.span});
    }
    for (size_t i = 0; i < g->nodes.n; i++) {
        const oi_node *n = &g->nodes.at[i];
        if (n->kind == OI_NODE_LOOP &&
            oi_map_get(&s->indices, n->as.loop.index.text) == OI_MAP_NONE)
            add(s, a, &s->indices,
                &(oi_symbol){.name = n->as.loop.index.text,
                             .kind = OI_SYM_INDEX,
                             .dtype = OI_I64,
                             .dims = &no_dims,
                             .node = n,
                             .span = n->as.loop.index.span});
    }
    return s;
}

static const oi_symbol *get(const oi_symbols *s, const oi_map *map, const char *name)
{
    uint32_t i = oi_map_get(map, name);
    return i == OI_MAP_NONE ? NULL : &s->list.at[i];
}

const oi_symbol *oi_symbols_find(const oi_symbols *s, const char *name)
{
    return get(s, &s->variables, name);
}

const oi_symbol *oi_symbols_index(const oi_symbols *s, const char *name)
{
    return get(s, &s->indices, name);
}

const oi_node *oi_graph_loop_around(const oi_graph *g, const oi_node *n, const char *name)
{
    while (n->parent != OI_NO_ID) { /* at most OI_MAX_LOOP_DEPTH times */
        n = &g->nodes.at[n->parent];
        if (strcmp(n->as.loop.index.text, name) == 0)
            return n;
    }
    return NULL;
}

const oi_symbol *oi_symbols_at(const oi_symbols *s, const oi_node *n, const char *name)
{
    return oi_graph_loop_around(s->graph, n, name) ? oi_symbols_index(s, name)
                                                   : oi_symbols_find(s, name);
}

const oi_axis *oi_symbol_axis(const oi_symbol *s, const char *name)
{
    return find_axis(s, name);
}

bool oi_symbol_is_prefix(const oi_symbol *s)
{
    return s->n_axes && s->kind != OI_SYM_PERSISTENT;
}

const char *oi_symbol_kind_name(oi_symbol_kind k)
{
    return k == OI_SYM_ASSIGN  ? "assigned"
           : k == OI_SYM_INDEX ? "loop index"
                               : oi_var_kind_name((oi_var_kind)k);
}
