/* link_reads.c: volatile variables that are read before anything writes them and that have neither
 * data in the model nor @init: W110, E023 when strict. They hold zeros, which is seldom what was
 * meant: the name of a weight may be misspelt.
 *
 * One walk in the order of the run. What may have been written counts as written, so that only what
 * no path writes is reported: both sides of a branch write for what follows, and what consumers
 * write counts from the first `await` of entry on. */
#include "program/check.h"

/* Where the walk is in a list of nodes; on a stack of our own, as calls may be nested deeply. */
typedef struct place {
    const oi_ids *list;
    size_t next;
} place;

typedef struct walk {
    oi_typer *t;
    OI_VEC(place) open;
    bool *is_set;     /* by place in syms->list */
    bool *is_visited; /* by block */
    bool has_awaited;
    bool only_writes; /* nothing is reported */
} walk;

static void walk_from(walk *w, const oi_block *b);

/* One of a length that only the run knows begins without elements, which is what it says. */
static bool has_open_length(const oi_symbol *s)
{
    for (size_t i = 0; i < s->dims->n; i++)
        if (s->dims->at[i]->kind == OI_EXPR_RUNTIME)
            return true;
    return false;
}

static bool is_suspect(const walk *w, const oi_symbol *s)
{
    return s && s->kind == OI_SYM_VOLATILE && s->var && !s->var->has_init &&
           !oi_symbol_is_prefix(s) && !has_open_length(s) && !w->is_set[s - w->t->syms->list.at];
}

static void report(const walk *w, const oi_symbol *s, const oi_node *n, oi_span read)
{
    oi_typer *t = w->t;
    oi_place at = oi_graph_place_var(t->g, t->a, s->var, s->span);
    const char *why = t->model ? "it has neither data in the model nor @init"
                               : "it has no @init, and there is no model";
    oi_tensor_info info;
    oi_nearest near = oi_nearest_start(s->name);
    for (size_t i = 0; t->model && i < oi_model_n_tensors(t->model); i++)
        oi_nearest_offer(&near, oi_model_tensor_name(t->model, i));
    if (t->strict)
        oi_diag_error(t->d, at, "E023", "'%s' is read before anything writes it; %s", s->name, why);
    else
        oi_diag_warn(t->d, at, "W110", "'%s' is read before anything writes it; %s: it holds zeros",
                     s->name, why);
    if (!t->model)
        oi_diag_hint(t->d, "if it is a weight, name its package with --model MODEL.oinf; else say "
                           "@init(0)");
    else if (oi_model_tensor_info(t->model, s->name, &info) == OI_OK)
        oi_diag_hint(t->d, "the model declares the tensor without data");
    else if (near.best)
        oi_diag_hint(t->d, "the model has a tensor '%s'; if zeros are meant, say @init(0)",
                     near.best);
    else
        oi_diag_hint(t->d, "if zeros are meant, say @init(0)");
    oi_diag_note(t->d, oi_typer_at(t, n, read), "it is read here");
}

static void read_use(void *ctx, const oi_node *n, const oi_use *u)
{
    walk *w = ctx;
    const oi_symbol *s =
        oi_use_reads(u->role) && !w->only_writes ? oi_symbols_at(w->t->syms, n, u->name) : NULL;
    if (!is_suspect(w, s))
        return;
    report(w, s, n, u->span);
    w->is_set[s - w->t->syms->list.at] = true; /* once is enough */
}

static void write_use(void *ctx, const oi_node *n, const oi_use *u)
{
    walk *w = ctx;
    const oi_symbol *s = oi_use_writes(u->role) ? oi_symbols_at(w->t->syms, n, u->name) : NULL;
    if (s)
        w->is_set[s - w->t->syms->list.at] = true;
}

static bool is_consumer(const oi_graph *g, const oi_block *b)
{
    for (size_t i = 0; i < b->nodes.n; i++)
        if (g->nodes.at[b->nodes.at[i]].kind == OI_NODE_AWAIT)
            return strcmp(b->name.text, "entry") != 0;
    return false;
}

static void consumers(walk *w)
{
    const oi_graph *g = w->t->g;
    for (size_t i = 0; i < g->blocks.n; i++)
        if (is_consumer(g, &g->blocks.at[i]))
            walk_from(w, &g->blocks.at[i]);
}

/* From now on entry may see what consumers wrote. */
static void publish(walk *w)
{
    if (w->has_awaited || w->only_writes)
        return;
    walk writes = {.t = w->t, .is_set = w->is_set, .only_writes = true};
    writes.is_visited = oi_arena_alloc(w->t->a, (w->t->g->blocks.n + 1) * sizeof *w->is_visited);
    w->has_awaited = true;
    consumers(&writes);
}

static void open_list(walk *w, const oi_ids *list)
{
    *OI_PUSH(w->t->a, &w->open) = (place){list, 0};
}

/* A block is walked once: the first time has seen the fewest writes. */
static void open_block(walk *w, const oi_block *b)
{
    bool *is_visited = &w->is_visited[b - w->t->g->blocks.at];
    if (!*is_visited)
        open_list(w, &b->nodes);
    *is_visited = true;
}

static void call(walk *w, const oi_name *name)
{
    uint32_t id = name->text ? oi_graph_find_block(w->t->g, name->text) : OI_NO_ID;
    if (id != OI_NO_ID)
        open_block(w, &w->t->g->blocks.at[id]);
}

static void visit(walk *w, const oi_node *n)
{
    oi_node_uses(n, read_use, w);
    oi_node_uses(n, write_use, w);
    if (n->kind == OI_NODE_AWAIT)
        publish(w);
    if (n->kind == OI_NODE_LOOP)
        open_list(w, &n->as.loop.body);
    if (n->kind == OI_NODE_BRANCH) {
        call(w, &n->as.branch.else_block); /* below the other on the stack */
        call(w, &n->as.branch.then_block);
    }
}

static void walk_from(walk *w, const oi_block *b)
{
    open_block(w, b);
    while (w->open.n) {
        place *p = &w->open.at[w->open.n - 1];
        if (p->next == p->list->n)
            w->open.n--;
        else
            visit(w, &w->t->g->nodes.at[p->list->at[p->next++]]);
    }
}

void oi_link_reads(oi_typer *t)
{
    const oi_graph *g = t->g;
    walk w = {.t = t,
              .is_set = oi_arena_alloc(t->a, (t->syms->list.n + 1) * sizeof *w.is_set),
              .is_visited = oi_arena_alloc(t->a, (g->blocks.n + 1) * sizeof *w.is_visited)};
    for (size_t i = 0; i < t->syms->list.n; i++)
        w.is_set[i] = t->has_value[i];
    uint32_t entry = oi_graph_find_block(g, "entry");
    if (entry != OI_NO_ID)
        walk_from(&w, &g->blocks.at[entry]);
    consumers(&w);
}
