/* raise.c: Graph -> text in the compact form, where it can be said.
 * needs:  a graph that the checks accept, and its model where it declares data of one
 * gives:  text that lowers to a graph of the same ops; E085 at every statement without a compact
 * form The walk follows entry: a value has a name from where it is assigned to the end of the loop
 * it is assigned in, which is how names of the compact form live. Temporaries that lowering has
 * made are put back into the expressions they come from. */
#include "compact/raise.h"

#include "dsl/dsl.h"

#include <stdarg.h>

#define MAX_INLINED 40u /* deeper expressions are no easier to read */

bool oi_raise_refuse(oi_raiser *r, const oi_node *n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = oi_arena_vprintf(r->a, fmt, args);
    va_end(args);
    oi_diag_error(r->d, oi_graph_place_node(r->g, r->a, n, n->span), "E085", "no compact form: %s",
                  text);
    return false;
}

static void refuse_var(oi_raiser *r, const oi_var *v, const char *why)
{
    oi_diag_error(r->d, oi_graph_place_var(r->g, r->a, v, v->name.span), "E085",
                  "no compact form: '%s' %s", v->name.text, why);
}

oi_raised *oi_raise_var(oi_raiser *r, const char *name)
{
    const oi_symbol *s = oi_symbols_find(r->typer.syms, name);
    return s ? &r->vars[s - r->typer.syms->list.at] : NULL;
}

/* -- what variables are -- */

static void count(void *ctx, const oi_node *n, const oi_use *use)
{
    oi_raiser *r = ctx;
    oi_raised *v = oi_raise_var(r, use->name);
    if (!v || oi_graph_loop_around(r->g, n, use->name))
        return;
    if (use->role == OI_USE_WRITE)
        v->n_writes++;
    else if (use->role == OI_USE_VALUE)
        v->n_numbers++;
    else
        v->n_reads++;
    v->reader = (uint32_t)(n - r->g->nodes.at);
}

/* Whether the model has data for it; without a model a constant without @init must come from one.
 */
static bool is_data(oi_raiser *r, const oi_symbol *s)
{
    oi_tensor_info tensor;
    oi_meta_info meta;
    uint64_t size;
    const oi_var *v = s->var;
    oi_model *m = r->typer.model;
    const char *key = v->ref_name ? v->ref_name : v->name.text;
    if (!m)
        return v->ref_name || (s->kind == OI_SYM_CONSTANT && !v->has_init);
    return oi_model_tensor_info(m, key, &tensor) == OI_OK ||
           oi_model_meta_info(m, key, &meta) == OI_OK || oi_model_size_of(m, key, &size) == OI_OK;
}

static void input(oi_raiser *r, const oi_symbol *s)
{
    if (s->var->has_init)
        refuse_var(r, s->var, "is an input with @init");
    *OI_PUSH(r->a, &r->c.inputs) = (oi_cinput){s->var->name, s->dtype, *s->dims};
    r->vars[s - r->typer.syms->list.at].is_bound = true;
}

/* Data that is used as a number needs a name, unless it is a size of that name. */
static void name_number(oi_raiser *r, const oi_symbol *s, oi_raised *v)
{
    int64_t unused;
    bool is_size = !s->var->ref_name && oi_typer_size(&r->typer, s->name, &unused);
    if (!v->n_numbers || !v->is_linked || s->n_axes)
        return;
    if (is_size && !v->n_reads)
        v->is_named = true;
    else
        oi_raise_name_data(r, s);
}

static void variables(oi_raiser *r)
{
    const oi_symbols *syms = r->typer.syms;
    for (size_t i = 0; i < r->g->nodes.n; i++)
        oi_node_uses(&r->g->nodes.at[i], count, r);
    for (size_t i = 0; i < syms->list.n; i++) {
        const oi_symbol *s = &syms->list.at[i];
        oi_raised *v = &r->vars[i];
        if (s->kind == OI_SYM_DYNAMIC)
            input(r, s);
        if (s->kind != OI_SYM_CONSTANT && s->kind != OI_SYM_VOLATILE)
            continue;
        v->is_linked = !v->n_writes && !s->n_axes && is_data(r, s);
        if (s->kind == OI_SYM_VOLATILE && !r->typer.model && !v->n_writes && !v->is_linked)
            refuse_var(r, s->var, "may be data of the model: name it with --model");
        name_number(r, s, v);
    }
}

/* -- statements -- */

oi_cstmt *oi_raise_stmt(oi_raiser *r, oi_cstmt_kind kind, const oi_node *n)
{
    oi_cstmt *s = oi_arena_alloc(r->a, sizeof *s);
    s->kind = kind;
    s->span = n->span;
    if (r->parent)
        *OI_PUSH(r->a, &r->parent->body) = s;
    else
        *OI_PUSH(r->a, &r->c.body) = s;
    return s;
}

bool oi_raise_bind(oi_raiser *r, const oi_node *n, const char *name)
{
    const oi_symbol *s = oi_symbols_find(r->typer.syms, name);
    oi_raised *v = oi_raise_var(r, name);
    if (!s || s->n_axes)
        return oi_raise_refuse(r, n, "'%s' is written in place", name);
    v->length = NULL;
    if (!v->is_bound) {
        v->is_bound = true;
        v->loop = r->depth;
        *OI_PUSH(r->a, &r->bound) = v;
    }
    return true;
}

static void close_scope(oi_raiser *r, size_t mark)
{
    while (r->bound.n > mark)
        r->bound.at[--r->bound.n]->is_bound = false;
}

static void op(oi_raiser *r, const oi_node *n, bool inlines)
{
    const oi_accesses *out = &n->as.op.outputs;
    const oi_cexpr *e = oi_raise_call(r, n);
    if (e && inlines && e->depth <= MAX_INLINED) {
        oi_raise_var(r, out->at[0].base.text)->inlined = e;
        return;
    }
    oi_cstmt *s = oi_raise_stmt(r, OI_CSTMT_BIND, n);
    const oi_raised *first = oi_raise_var(r, out->at[0].base.text);
    s->is_tuple = out->n > 1;
    s->is_let = s->is_tuple || !first || !first->is_bound;
    s->expr = e;
    for (size_t i = 0; i < out->n; i++) {
        *OI_PUSH(r->a, &s->names) = out->at[i].base;
        oi_raise_bind(r, n, out->at[i].base.text); /* also after an error: one is enough */
    }
}

static void transfer(oi_raiser *r, const oi_node *n)
{
    const oi_access *from = &n->as.move.from, *to = &n->as.move.to;
    if (r->copied && oi_map_get(&r->lengths, from->base.text) != OI_MAP_NONE) {
        r->copied->length = to->base.text; /* the length goes with what was copied */
        oi_map_set(&r->lengths, to->base.text, 0);
        r->copied = NULL;
        return;
    }
    const oi_raised *source = oi_raise_var(r, from->base.text);
    const char *length = source ? source->length : NULL;
    const oi_cexpr *e = oi_raise_operand(r, n, from);
    if (e && e->kind == OI_CEXPR_NUMBER) {
        oi_raise_refuse(r, n, "a number by itself has no element type");
        e = NULL;
    }
    oi_cstmt *s = oi_raise_stmt(r, OI_CSTMT_BIND, n);
    s->is_let = true;
    s->expr = e;
    *OI_PUSH(r->a, &s->names) = to->base;
    if (!oi_raise_bind(r, n, to->base.text))
        return;
    r->copied = length ? oi_raise_var(r, to->base.text) : NULL;
    if (length)
        r->copied->length = length;
}

static void nodes(oi_raiser *r, const oi_ids *list);

static void loop(oi_raiser *r, const oi_node *n)
{
    oi_cstmt *s = oi_raise_stmt(r, OI_CSTMT_FOR, n), *outer = r->parent;
    s->index = n->as.loop.index;
    s->start = n->as.loop.start;
    s->end = n->as.loop.end;
    oi_raise_numbers(r, n, s->start);
    oi_raise_numbers(r, n, s->end);
    size_t mark = r->bound.n;
    r->parent = s;
    r->depth++;
    nodes(r, &n->as.loop.body);
    r->depth--;
    r->parent = outer;
    close_scope(r, mark);
}

static void returns(oi_raiser *r, const oi_node *n)
{
    oi_cstmt *s = oi_raise_stmt(r, OI_CSTMT_OUTPUT, n);
    for (size_t i = 0; i < n->as.list.names.n; i++) {
        const oi_name *name = &n->as.list.names.at[i];
        const oi_raised *v = oi_raise_var(r, name->text);
        if (v && !v->is_bound && !v->is_named)
            oi_raise_refuse(r, n, "'%s' is no value that a statement has assigned", name->text);
        *OI_PUSH(r->a, &s->names) = *name;
    }
    if (!s->names.n)
        oi_raise_refuse(r, n, "a return without values; output names at least one");
}

static void node(oi_raiser *r, const oi_node *n, bool inlines)
{
    if (n->kind != OI_NODE_TRANSFER && n->kind != OI_NODE_ASSIGN)
        r->copied = NULL;
    switch (n->kind) {
    case OI_NODE_ASSIGN: return;
    case OI_NODE_OP: op(r, n, inlines); return;
    case OI_NODE_TRANSFER: transfer(r, n); return;
    case OI_NODE_LOOP: loop(r, n); return;
    case OI_NODE_RETURN: returns(r, n); return;
    case OI_NODE_CACHE_READ:
    case OI_NODE_CACHE_WRITE:
        oi_raise_refuse(r, n, "%s other than a whole kv_write or kv_read",
                        oi_node_table[n->kind].keyword);
        if (n->kind == OI_NODE_CACHE_READ) /* one error is enough */
            oi_raise_bind(r, n, n->as.move.to.base.text);
        return;
    default: oi_raise_refuse(r, n, "%s", oi_node_table[n->kind].keyword); return;
    }
}

/* A temporary of the lowering that only a later op of the same list reads. */
static bool may_inline(const oi_raiser *r, const oi_node *n, uint32_t *reader)
{
    if (n->kind != OI_NODE_OP || n->as.op.outputs.n != 1)
        return false;
    const char *name = n->as.op.outputs.at[0].base.text;
    const oi_symbol *s = oi_symbols_find(r->typer.syms, name);
    if (!s || s->kind != OI_SYM_ASSIGN || strncmp(name, "_t", 2) != 0)
        return false;
    const oi_raised *v = &r->vars[s - r->typer.syms->list.at];
    const oi_node *by = &r->g->nodes.at[v->reader];
    *reader = by->position;
    return v->n_writes == 1 && v->n_reads == 1 && !v->n_numbers && by->kind == OI_NODE_OP &&
           by->block == n->block && by->parent == n->parent && by->position > n->position;
}

static void nodes(oi_raiser *r, const oi_ids *list)
{
    /* between an expression and its reader stand only others that are put into the same one */
    bool *inlines = oi_arena_alloc(r->a, list->n + 1);
    size_t next = list->n;
    for (size_t i = list->n; i-- > 0;) {
        const oi_node *n = &r->g->nodes.at[list->at[i]];
        uint32_t reader = 0;
        inlines[i] = may_inline(r, n, &reader) && reader <= next;
        if (!inlines[i] && n->kind != OI_NODE_ASSIGN)
            next = i;
    }
    for (size_t i = 0; i < list->n && !oi_diag_full(r->d);) {
        size_t taken = oi_raise_state(r, list, i);
        if (!taken)
            node(r, &r->g->nodes.at[list->at[i]], inlines[i]);
        i += taken ? taken : 1;
    }
}

/* -- text -- */

static void put_item(oi_raiser *r, oi_item_kind kind, uint32_t id)
{
    oi_compact_print(&r->text, &r->c, &(oi_item){.kind = kind, .id = id});
    oi_buf_putc(&r->text, '\n');
}

static void put_statements(oi_raiser *r, oi_cstmt *const *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t id = (uint32_t)r->c.list.n;
        bool apart = at[i]->kind != OI_CSTMT_BIND || (i && at[i - 1]->kind == OI_CSTMT_FOR);
        *OI_PUSH(r->a, &r->c.list) = at[i];
        if (i && apart)
            oi_buf_putc(&r->text, '\n');
        put_item(r, at[i]->kind == OI_CSTMT_FOR ? OI_ITEM_FOR : OI_ITEM_STMT, id);
        if (at[i]->kind != OI_CSTMT_FOR)
            continue;
        put_statements(r, at[i]->body.at, at[i]->body.n);
        put_item(r, OI_ITEM_FOR_END, id);
    }
}

static void put_text(oi_raiser *r)
{
    put_item(r, OI_ITEM_MODEL, 0);
    for (uint32_t i = 0; i < r->c.inputs.n; i++) {
        if (i == 0)
            put_item(r, OI_ITEM_INPUTS, 0);
        put_item(r, OI_ITEM_INPUT, i);
    }
    if (r->c.inputs.n)
        put_item(r, OI_ITEM_SECTION_END, 0);
    for (uint32_t i = 0; i < r->c.states.n; i++) {
        if (i == 0)
            put_item(r, OI_ITEM_STATES, 0);
        put_item(r, OI_ITEM_STATE, i);
    }
    if (r->c.states.n)
        put_item(r, OI_ITEM_SECTION_END, 0);
    put_statements(r, r->c.body.at, r->c.body.n);
}

/* -- the whole -- */

static bool ends_with_return(const oi_graph *g, uint32_t block)
{
    if (block == OI_NO_ID || g->blocks.at[block].nodes.n == 0)
        return false;
    const oi_block *b = &g->blocks.at[block];
    return g->nodes.at[b->nodes.at[b->nodes.n - 1]].kind == OI_NODE_RETURN;
}

static void blocks(oi_raiser *r)
{
    uint32_t entry = oi_graph_find_block(r->g, "entry");
    if (!ends_with_return(r->g, entry))
        oi_diag_error(r->d, (oi_place){.file = r->g->origin ? r->g->origin : "graph"}, "E085",
                      "no compact form: a graph without a return; output names at least one value");
    for (uint32_t i = 0; i < r->g->blocks.n; i++)
        if (i != entry)
            oi_diag_error(
                r->d,
                oi_graph_place_block(r->g, r->a, &r->g->blocks.at[i], r->g->blocks.at[i].name.span),
                "E085", "no compact form: block '%s'; there is one sequence of statements",
                r->g->blocks.at[i].name.text);
    if (entry != OI_NO_ID)
        nodes(r, &r->g->blocks.at[entry].nodes);
}

void oi_raise(oi_raiser *r)
{
    size_t before = oi_diag_errors(r->d);
    oi_typer *t = &r->typer;
    t->g = r->g;
    t->a = r->a;
    t->d = r->d;
    t->sizes.arena = t->linked.arena = t->refused.arena = r->a;
    t->syms = oi_graph_symbols(r->g, r->a);
    r->states.arena = r->lengths.arena = r->a;
    r->vars = oi_arena_alloc(r->a, (t->syms->list.n + 1) * sizeof *r->vars);
    r->c.model.text = "model";
    variables(r);
    blocks(r);
    if (oi_diag_errors(r->d) == before)
        put_text(r);
}
