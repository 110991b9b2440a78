/* lower.c: the compact form -> the graph it stands for (spec/dsl.md §11).
 * needs:  g->compact, and the model where shapes come from it
 * gives:  declarations and one block, entry; spans point into the compact text
 * Statements are followed in order; each op gets its type from its operands by the same inference
 * that checks graphs. */
#include "compact/lower.h"

oi_place oi_compact_at(const oi_lowerer *l, oi_span span)
{
    return (oi_place){.source = &l->g->source, .span = span};
}

/* -- adding to the graph -- */

uint32_t oi_compact_add(oi_lowerer *l, oi_node *n)
{
    n->parent = l->parent;
    uint32_t id = oi_graph_add_node(l->g, n);
    if (n->kind != OI_NODE_LOOP) /* it is numbered after its body */
        oi_graph_number(l->g, id);
    return id;
}

static void add_symbol(oi_lowerer *l, oi_map *map, const oi_symbol *s)
{
    *OI_PUSH(l->a, &l->syms.list) = *s;
    oi_map_set(map, s->name, (uint32_t)l->syms.list.n - 1);
}

void oi_compact_declare(oi_lowerer *l, const oi_var *v)
{
    oi_var *own = oi_arena_alloc(l->g->arena, sizeof *own);
    *own = *v;
    oi_graph_add_var(l->g, own);
    oi_axis *axes = oi_arena_alloc(l->a, (v->indices.n + 1) * sizeof *axes);
    for (size_t i = 0; i < v->indices.n; i++) {
        axes[i].name = v->indices.at[i];
        axes[i].fixed = i < v->fixed.n ? v->fixed.at[i].limit : NULL;
    }
    add_symbol(l, &l->syms.variables,
               &(oi_symbol){.name = own->name.text,
                            .kind = (oi_symbol_kind)own->kind,
                            .dtype = own->dtype,
                            .dims = &own->dims,
                            .var = own,
                            .axes = axes,
                            .n_axes = v->indices.n,
                            .n_table = v->indices.n,
                            .span = own->name.span});
}

void oi_compact_assign(oi_lowerer *l, const char *name, oi_dtype dtype, const oi_exprs *dims,
                       oi_span span)
{
    oi_node *n = oi_arena_alloc(l->g->arena, sizeof *n);
    *n = (oi_node){.kind = OI_NODE_ASSIGN, .span = span, .name = {name, span}};
    n->as.assign.dtype = dtype;
    n->as.assign.dims = *dims;
    oi_compact_add(l, n);
    add_symbol(l, &l->syms.variables,
               &(oi_symbol){.name = name,
                            .kind = OI_SYM_ASSIGN,
                            .dtype = dtype,
                            .dims = &n->as.assign.dims,
                            .node = n,
                            .span = span});
}

void oi_compact_transfer(oi_lowerer *l, const oi_operand *from, const char *to, oi_span span)
{
    oi_node n = {.kind = OI_NODE_TRANSFER, .span = span};
    n.as.move.from = from->access;
    n.as.move.to = (oi_access){.base = {to, span}, .span = span};
    oi_compact_add(l, &n);
}

/* -- inputs -- */

static void inputs(oi_lowerer *l)
{
    for (size_t i = 0; i < l->c->inputs.n && !oi_diag_full(l->d); i++) {
        const oi_cinput *in = &l->c->inputs.at[i];
        if (oi_name_find(l, in->name.text)) {
            oi_diag_error(l->d, oi_compact_at(l, in->name.span), "E010",
                          "two inputs are called '%s'", in->name.text);
            continue;
        }
        oi_compact_declare(
            l,
            &(oi_var){.name = in->name, .kind = OI_DYNAMIC, .dtype = in->dtype, .dims = in->dims});
        oi_map_set(&l->taken, in->name.text, 0);
        oi_operand x = oi_name_operand(in->name.text, in->name.span);
        oi_name_bind(l, &in->name, &x);
    }
}

/* -- loops -- */

typedef OI_VEC(oi_name) name_list;

/* Every name that the body writes, each once. */
static void written(oi_lowerer *l, const oi_cstmt *loop, oi_map *seen, name_list *out)
{
    for (size_t i = 0; i < loop->body.n; i++) {
        const oi_cstmt *s = loop->body.at[i];
        for (size_t k = 0; s->kind != OI_CSTMT_OUTPUT && k < s->names.n; k++)
            if (oi_map_put(seen, s->names.at[k].text, 0) == (uint32_t)out->n ||
                oi_map_get(seen, s->names.at[k].text) == 0) {
                oi_map_set(seen, s->names.at[k].text, 1);
                *OI_PUSH(l->a, out) = s->names.at[k];
            }
        if (s->kind == OI_CSTMT_FOR)
            written(l, s, seen, out);
    }
}

/* A value under a name that the body writes must be a variable before the loop begins. */
static void make_variable(oi_lowerer *l, const oi_name *name)
{
    const oi_binding *b = oi_name_find(l, name->text);
    oi_type type;
    oi_exprs dims = {0};
    if (!b || b->state != OI_NO_ID || b->value.kind != OI_OPERAND_REF || b->value.is_variable ||
        oi_symbols_index(&l->syms, b->value.access.base.text) ||
        !oi_compact_type(l, &b->value, &type) || !oi_compact_dims(l, &type, b->span, &dims))
        return;
    oi_operand old = b->value;
    oi_name at = {name->text, b->span};
    const char *variable = oi_name_new(l, name->text);
    oi_compact_assign(l, variable, type.dtype, &dims, b->span);
    oi_compact_transfer(l, &old, variable, b->span);
    oi_operand x = oi_name_operand(variable, b->span);
    oi_name_bind(l, &at, &x);
}

/* E083: `let x = for` goes on with an x that exists and that the body writes. */
static void check_value(oi_lowerer *l, const oi_cstmt *s, const name_list *list)
{
    const oi_name *name = &s->names.at[0];
    bool assigned = false;
    for (size_t i = 0; i < list->n; i++)
        assigned |= strcmp(list->at[i].text, name->text) == 0;
    if (!oi_name_find(l, name->text)) {
        oi_diag_error(l->d, oi_compact_at(l, name->span), "E083",
                      "'%s' has no value before the loop", name->text);
        oi_diag_hint(l->d, "bind it first: let %s = …;", name->text);
    } else if (!assigned) {
        oi_diag_error(l->d, oi_compact_at(l, name->span), "E083",
                      "the loop gives '%s' no value: its body does not assign it", name->text);
    }
}

static void statements(oi_lowerer *l, const oi_cstmt *const *at, size_t n);

static bool bound(oi_lowerer *l, const oi_expr *e, int64_t *out)
{
    return oi_typer_eval(&l->typer, e, out);
}

static void open_loop(oi_lowerer *l, const oi_cstmt *s, const oi_expr *start, const oi_expr *end)
{
    const char *index = oi_name_index(l, s->index.text);
    oi_node n = {.kind = OI_NODE_LOOP, .span = s->span};
    n.name = (oi_name){oi_arena_printf(l->g->arena, "for_%s", index), s->index.span};
    n.as.loop.index = (oi_name){index, s->index.span};
    n.as.loop.start = start;
    n.as.loop.end = end;
    l->parent = oi_compact_add(l, &n);
    static const oi_exprs no_dims;
    if (!oi_symbols_index(&l->syms, index))
        add_symbol(l, &l->syms.indices,
                   &(oi_symbol){.name = index,
                                .kind = OI_SYM_INDEX,
                                .dtype = OI_I64,
                                .dims = &no_dims,
                                .node = oi_arena_alloc(l->g->arena, sizeof n),
                                .span = s->index.span});
    oi_lowered_loop loop = {.index = index};
    loop.known = bound(l, start, &loop.start) && bound(l, end, &loop.end);
    *OI_PUSH(l->a, &l->loops) = loop;
    oi_operand x = oi_name_operand(index, s->index.span);
    x.is_variable = false;
    x.is_steady = true;
    oi_name_bind(l, &s->index, &x);
}

static void for_loop(oi_lowerer *l, const oi_cstmt *s)
{
    name_list list = {0};
    oi_map seen = {.arena = l->a};
    const oi_expr *start = oi_name_expr(l, s->start), *end = oi_name_expr(l, s->end);
    written(l, s, &seen, &list);
    if (s->names.n)
        check_value(l, s, &list);
    for (size_t i = 0; i < list.n; i++)
        make_variable(l, &list.at[i]);
    oi_length_expect(l, s);
    if (!start || !end)
        return;
    uint32_t outer = l->parent;
    size_t scope = oi_scope_open(l);
    open_loop(l, s, start, end);
    statements(l, (const oi_cstmt *const *)s->body.at, s->body.n);
    oi_graph_number(l->g, l->parent);
    l->loops.n--;
    l->parent = outer;
    oi_scope_close(l, scope);
}

/* -- the end -- */

static void output(oi_lowerer *l, const oi_cstmt *s)
{
    oi_node n = {.kind = OI_NODE_RETURN, .span = s->span};
    for (size_t i = 0; i < s->names.n; i++) {
        const oi_name *name = &s->names.at[i];
        const oi_binding *b = oi_name_find(l, name->text);
        if (!b)
            oi_name_unknown(l, name);
        else if (b->state != OI_NO_ID)
            oi_diag_error(l->d, oi_compact_at(l, name->span), "E033",
                          "'%s' is a key-value cache, not a value", name->text);
        make_variable(l, name);
        b = oi_name_find(l, name->text);
        if (b && b->value.kind == OI_OPERAND_REF)
            *OI_PUSH(l->g->arena, &n.as.list.names) =
                (oi_name){b->value.access.base.text, name->span};
    }
    oi_compact_add(l, &n);
}

/* E084: the text ends with `output`, and has it nowhere else. */
static void misplaced_output(const oi_lowerer *l, const oi_cstmt *s)
{
    oi_diag_error(l->d, oi_compact_at(l, s->span), "E084", "output is the last statement%s",
                  l->loops.n ? ", and stands in no loop" : "");
}

static void statement(oi_lowerer *l, const oi_cstmt *s)
{
    const oi_compact *c = l->c;
    if (s->kind == OI_CSTMT_FOR)
        for_loop(l, s);
    else if (s->kind == OI_CSTMT_BIND)
        oi_compact_bind(l, s);
    else if (l->loops.n || s != c->body.at[c->body.n - 1])
        misplaced_output(l, s);
    else
        output(l, s);
}

static void statements(oi_lowerer *l, const oi_cstmt *const *at, size_t n)
{
    for (size_t i = 0; i < n && !oi_diag_full(l->d); i++)
        statement(l, at[i]);
}

/* Declarations by kind, in the order in which they came. */
static void order_declarations(oi_lowerer *l)
{
    static const oi_var_kind kinds[] = {OI_DYNAMIC, OI_VOLATILE, OI_CONSTANT, OI_PERSISTENT};
    oi_graph *g = l->g;
    oi_var *old = oi_arena_alloc(l->a, (g->vars.n + 1) * sizeof *old);
    size_t n = g->vars.n, to = 0;
    if (n)
        memcpy(old, g->vars.at, n * sizeof *old);
    for (size_t k = 0; k < OI_COUNT(kinds); k++)
        for (size_t i = 0; i < n; i++)
            if (old[i].kind == kinds[k]) {
                oi_map_set(&g->var_ids, old[i].name.text, (uint32_t)to);
                g->vars.at[to++] = old[i];
            }
}

static void start(oi_lowerer *l)
{
    oi_map *maps[] = {&l->scope, &l->taken,     &l->suffixes,       &l->unused,
                      &l->made,  &l->length_of, &l->syms.variables, &l->syms.indices};
    for (size_t i = 0; i < OI_COUNT(maps); i++)
        maps[i]->arena = l->a;
    l->typer.sizes.arena = l->typer.linked.arena = l->typer.refused.arena = l->a;
    l->typer.g = l->g;
    l->typer.d = l->d;
    l->typer.a = l->a;
    l->typer.syms = &l->syms;
    l->typer.tells_types = true;
    l->syms.graph = l->g;
    l->c = l->g->compact;
    l->parent = OI_NO_ID;
}

void oi_compact_lower(oi_lowerer *l)
{
    start(l);
    const oi_compact *c = l->c;
    oi_graph *g = l->g;
    oi_block entry = {.name = {"entry", c->body.n ? c->body.at[0]->span : c->end}, .end = c->end};
    oi_graph_add_block(g, &entry);
    inputs(l);
    oi_compact_states(l);
    statements(l, (const oi_cstmt *const *)c->body.at, c->body.n);
    if (!c->body.n || c->body.at[c->body.n - 1]->kind != OI_CSTMT_OUTPUT)
        oi_diag_error(l->d, oi_compact_at(l, c->body.n ? c->body.at[c->body.n - 1]->span : c->end),
                      "E084", "the last statement is no output: write output NAME, …;");
    order_declarations(l);
    g->compact = NULL;
    g->items.n = g->comments.n = 0;
}
