/* graph.c: making a graph, finding things in it, and saying where they are. */
#include "graph/graph.h"

#include <stdlib.h>

const oi_node_info oi_node_table[OI_NODE_KIND_COUNT] = {
    [OI_NODE_ASSIGN] = {"Assign", "assign", "assign"},
    [OI_NODE_OP] = {"Op", NULL, "op"},
    [OI_NODE_BRANCH] = {"Branch", "branch", "branch"},
    [OI_NODE_BARRIER] = {"Barrier", "barrier", "barrier"},
    [OI_NODE_DEP] = {"Dep", NULL, "dep"},
    [OI_NODE_CACHE_READ] = {"CacheRead", "cache.read", "cache.read"},
    [OI_NODE_CACHE_WRITE] = {"CacheWrite", "cache.write", "cache.write"},
    [OI_NODE_CACHE_INCREMENT] = {"CacheIncrement", "cache.increment", "cache.increment"},
    [OI_NODE_CACHE_DECREMENT] = {"CacheDecrement", "cache.decrement", "cache.decrement"},
    [OI_NODE_CACHE_RESET] = {"CacheReset", "cache.reset", "cache.reset"},
    [OI_NODE_TRANSFER] = {"Transfer", "transfer", "transfer"},
    [OI_NODE_YIELD] = {"Yield", "yield", "yield"},
    [OI_NODE_AWAIT] = {"Await", "await", "await"},
    [OI_NODE_LOOP] = {"Loop", "loop", "loop"},
    [OI_NODE_RETURN] = {"Return", NULL, "return"},
};

const char *const oi_decl_attr_names[OI_AT_COUNT] = {
    [OI_AT_INIT] = "init",   [OI_AT_REF] = "ref",           [OI_AT_PATTERN] = "pattern",
    [OI_AT_TABLE] = "table", [OI_AT_AUTO_DIM] = "auto_dim", [OI_AT_FIXED] = "fixed",
    [OI_AT_CAP] = "cap",
};

oi_graph *oi_graph_alloc(void)
{
    oi_graph *g = calloc(1, sizeof *g);
    oi_arena *a = oi_arena_new();
    if (!g || !a) {
        free(g);
        oi_arena_free(a);
        return NULL;
    }
    g->arena = a;
    g->var_ids.arena = g->block_ids.arena = g->strings.arena = a;
    g->uuid_state = oi_entropy64();
    g->build_block = g->build_parent = OI_NO_ID;
    return g;
}

void oi_graph_free(oi_graph *g)
{
    if (!g)
        return;
    oi_arena_free(g->arena);
    free(g);
}

const char *oi_graph_intern(oi_graph *g, const char *text, size_t n)
{
    char small[128];
    const char *key = small;
    if (n < sizeof small) {
        memcpy(small, text, n);
        small[n] = '\0';
    } else {
        key = oi_arena_text(g->arena, text, n);
    }
    uint32_t id = oi_map_get(&g->strings, key);
    if (id != OI_MAP_NONE)
        return g->string_at.at[id];
    if (key == small)
        key = oi_arena_text(g->arena, text, n);
    *OI_PUSH(g->arena, &g->string_at) = key;
    oi_map_put(&g->strings, key, (uint32_t)g->string_at.n - 1);
    return key;
}

uint32_t oi_graph_add_var(oi_graph *g, const oi_var *v)
{
    *OI_PUSH(g->arena, &g->vars) = *v;
    oi_map_put(&g->var_ids, v->name.text, (uint32_t)g->vars.n - 1);
    return (uint32_t)g->vars.n - 1;
}

uint32_t oi_graph_add_block(oi_graph *g, const oi_block *b)
{
    *OI_PUSH(g->arena, &g->blocks) = *b;
    oi_map_put(&g->block_ids, b->name.text, (uint32_t)g->blocks.n - 1);
    return (uint32_t)g->blocks.n - 1;
}

static oi_ids *list_of(oi_graph *g, const oi_node *n)
{
    return n->parent == OI_NO_ID ? &g->blocks.at[n->block].nodes
                                 : &g->nodes.at[n->parent].as.loop.body;
}

uint32_t oi_graph_add_node(oi_graph *g, const oi_node *n)
{
    uint32_t id = (uint32_t)g->nodes.n;
    *OI_PUSH(g->arena, &g->nodes) = *n;
    oi_ids *list = list_of(g, n);
    g->nodes.at[id].position = (uint32_t)list->n;
    *OI_PUSH(g->arena, list) = id;
    return id;
}

void oi_graph_drop_node(oi_graph *g)
{
    list_of(g, &g->nodes.at[g->nodes.n - 1])->n--;
    g->nodes.n--;
}

void oi_graph_number(oi_graph *g, uint32_t node)
{
    g->nodes.at[node].index = g->next_index++;
    oi_uuid_random(&g->uuid_state, g->nodes.at[node].uuid);
}

void oi_graph_make_deterministic(oi_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        oi_node *n = &g->nodes.at[i];
        oi_uuid_derive(g->blocks.at[n->block].name.text, n->index, n->uuid);
    }
}

uint32_t oi_graph_find_block(const oi_graph *g, const char *name)
{
    return oi_map_get(&g->block_ids, name);
}

bool oi_names_have(const oi_names *names, const char *text)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->at[i].text, text) == 0)
            return true;
    return false;
}

const char *oi_var_kind_name(oi_var_kind k)
{
    static const char *const names[] = {"dynamic", "volatile", "constant", "persistent"};
    return names[k];
}

/* -- places -- */

/* JSON pointers escape ~ and / (RFC 6901). */
void oi_pointer_add(oi_buf *b, const char *text)
{
    oi_buf_putc(b, '/');
    for (; *text; text++) {
        if (*text == '~' || *text == '/')
            oi_buf_puts(b, *text == '~' ? "~0" : "~1");
        else
            oi_buf_putc(b, *text);
    }
}

static void node_pointer(const oi_graph *g, oi_buf *b, const oi_node *n)
{
    if (n->parent == OI_NO_ID) {
        oi_buf_puts(b, "/blocks");
        oi_pointer_add(b, g->blocks.at[n->block].name.text);
        oi_buf_puts(b, "/nodes");
    } else {
        node_pointer(g, b, &g->nodes.at[n->parent]); /* at most OI_MAX_LOOP_DEPTH deep */
        oi_buf_puts(b, "/body");
    }
    oi_buf_printf(b, "/%u/kind", n->position);
    if (n->kind != OI_NODE_BARRIER && n->kind != OI_NODE_RETURN)
        oi_pointer_add(b, oi_node_table[n->kind].json);
}

static oi_place place(const oi_graph *g, oi_span at, oi_arena *scratch, oi_buf *pointer)
{
    oi_place p = {.file = g->origin ? g->origin : "graph", .span = at};
    if (g->source.name)
        p.source = &g->source;
    if (!at.line)
        p.pointer = oi_buf_to_arena(pointer, scratch);
    return p;
}

oi_place oi_graph_place_node(const oi_graph *g, oi_arena *scratch, const oi_node *n, oi_span at)
{
    oi_buf b = {0};
    if (!at.line)
        at = n->span;
    if (!at.line)
        node_pointer(g, &b, n);
    return place(g, at, scratch, &b);
}

/* A variable or block: its own span, else the pointer /FOLDER/NAME. */
static oi_place named_place(const oi_graph *g, oi_arena *scratch, const char *folder, oi_name name,
                            oi_span at)
{
    oi_buf b = {0};
    if (!at.line)
        at = name.span;
    if (!at.line) {
        oi_buf_puts(&b, folder);
        oi_pointer_add(&b, name.text);
    }
    return place(g, at, scratch, &b);
}

oi_place oi_graph_place_var(const oi_graph *g, oi_arena *scratch, const oi_var *v, oi_span at)
{
    return named_place(g, scratch, "/vars", v->name, at);
}

oi_place oi_graph_place_block(const oi_graph *g, oi_arena *scratch, const oi_block *k, oi_span at)
{
    return named_place(g, scratch, "/blocks", k->name, at);
}
