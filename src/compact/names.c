/* names.c: what a name of the compact form means. Its names have scopes and may be bound again;
 * those of the graph are global and unique. */
#include "compact/lower.h"

/* -- scopes -- */

const oi_binding *oi_name_find(const oi_lowerer *l, const char *name)
{
    uint32_t at = oi_map_get(&l->scope, name);
    return at == OI_MAP_NONE ? NULL : &l->bindings.at[at];
}

oi_operand oi_name_operand(const char *variable, oi_span span)
{
    return (oi_operand){.kind = OI_OPERAND_REF,
                        .is_variable = true,
                        .access = {.base = {variable, span}, .span = span},
                        .span = span};
}

static oi_binding *bind(oi_lowerer *l, const oi_name *name, const oi_operand *value)
{
    oi_binding *b = OI_PUSH(l->a, &l->bindings);
    *b = (oi_binding){.name = name->text,
                      .value = *value,
                      .state = OI_NO_ID,
                      .shadowed = oi_map_get(&l->scope, name->text),
                      .span = name->span};
    oi_map_set(&l->scope, name->text, (uint32_t)l->bindings.n - 1);
    return b;
}

void oi_name_bind(oi_lowerer *l, const oi_name *name, const oi_operand *value)
{
    bind(l, name, value);
}

size_t oi_scope_open(oi_lowerer *l)
{
    return l->bindings.n;
}

void oi_scope_close(oi_lowerer *l, size_t mark)
{
    while (l->bindings.n > mark) {
        const oi_binding *b = &l->bindings.at[--l->bindings.n];
        oi_map_set(&l->scope, b->name, b->shadowed);
        if (b->owns)
            oi_map_set(&l->unused, b->name,
                       oi_map_get(&l->syms.variables, b->value.access.base.text));
    }
}

/* -- names of the graph -- */

bool oi_name_is_size(oi_lowerer *l, const char *name, int64_t *out)
{
    return oi_typer_size(&l->typer, name, out);
}

static bool is_taken(oi_lowerer *l, const char *name)
{
    int64_t unused;
    return oi_map_get(&l->taken, name) != OI_MAP_NONE || oi_name_is_size(l, name, &unused);
}

static const char *take(oi_lowerer *l, const char *wanted, uint32_t kind,
                        bool (*refused)(oi_lowerer *, const char *))
{
    const char *name = oi_graph_intern(l->g, wanted, strlen(wanted));
    uint32_t at = oi_map_get(&l->suffixes, name);
    if (at == OI_MAP_NONE) {
        at = (uint32_t)l->next_suffix.n;
        oi_map_put(&l->suffixes, name, at);
        *OI_PUSH(l->a, &l->next_suffix) = 2;
    }
    while (is_taken(l, name) || (refused && refused(l, name))) {
        const char *next = oi_arena_printf(l->a, "%s_%u", wanted, l->next_suffix.at[at]++);
        name = oi_graph_intern(l->g, next, strlen(next));
    }
    oi_map_set(&l->taken, name, kind);
    return name;
}

const char *oi_name_new(oi_lowerer *l, const char *wanted)
{
    return take(l, wanted, 0, NULL);
}

static bool in_model(oi_lowerer *l, const char *name)
{
    oi_tensor_info tensor;
    oi_meta_info meta;
    return l->typer.model && (oi_model_tensor_info(l->typer.model, name, &tensor) == OI_OK ||
                              oi_model_meta_info(l->typer.model, name, &meta) == OI_OK);
}

const char *oi_name_unlinked(oi_lowerer *l, const char *wanted)
{
    return take(l, wanted, 0, in_model);
}

const char *oi_name_temp(oi_lowerer *l)
{
    return oi_name_new(l, oi_arena_printf(l->a, "_t%u", ++l->n_temps));
}

/* Loops that are not nested may share an index. */
const char *oi_name_index(oi_lowerer *l, const char *wanted)
{
    bool is_free = oi_map_get(&l->taken, wanted) == 1;
    for (size_t i = 0; i < l->loops.n; i++)
        is_free &= strcmp(l->loops.at[i].index, wanted) != 0;
    return is_free ? wanted : take(l, wanted, 1, NULL);
}

/* -- binding a value -- */

/* The variable of an ended scope with that name, when it has the type. */
static const char *unused_variable(oi_lowerer *l, const char *name, const oi_type *type)
{
    uint32_t at = oi_map_get(&l->unused, name);
    oi_type old;
    if (at == OI_MAP_NONE || !oi_typer_type(&l->typer, &l->syms.list.at[at], &old) ||
        !oi_type_same(&old, type))
        return NULL;
    oi_map_set(&l->unused, name, OI_MAP_NONE);
    return l->syms.list.at[at].name;
}

static const char *changes_type(const oi_lowerer *l, const oi_name *name, const oi_binding *b,
                                const oi_type *old, const oi_type *type)
{
    oi_diag_error(l->d, oi_compact_at(l, name->span), "E082",
                  "'%s' is %s and cannot become %s inside a loop", name->text,
                  oi_compact_type_text(l, old), oi_compact_type_text(l, type));
    oi_diag_note(l->d, oi_compact_at(l, b->span), "'%s' gets its type here", name->text);
    oi_diag_hint(l->d, "use another name");
    return NULL;
}

const char *oi_name_target(oi_lowerer *l, const oi_name *name, const oi_type *type)
{
    const oi_binding *b = oi_name_find(l, name->text);
    oi_type old;
    oi_exprs dims = {0};
    bool typed = b && b->state == OI_NO_ID && b->value.kind == OI_OPERAND_REF &&
                 oi_compact_type(l, &b->value, &old);
    bool same = typed && oi_type_same(&old, type);
    if (same && b->value.is_variable)
        return b->value.access.base.text;
    bool is_index = typed && oi_symbols_index(&l->syms, b->value.access.base.text);
    if (typed && !same && l->loops.n && !is_index)
        return changes_type(l, name, b, &old, type);
    const char *variable = unused_variable(l, name->text, type);
    if (!variable) {
        if (!oi_compact_dims(l, type, name->span, &dims))
            return NULL;
        variable = oi_name_new(l, name->text);
        oi_compact_assign(l, variable, type->dtype, &dims, name->span);
    }
    oi_operand value = oi_name_operand(variable, name->span);
    bind(l, name, &value)->owns = true;
    return variable;
}

/* -- names in expressions and attributes -- */

void oi_name_unknown(oi_lowerer *l, const oi_name *name)
{
    oi_diag_error(l->d, oi_compact_at(l, name->span), "E030", "unknown variable '%s'", name->text);
    oi_nearest near = oi_nearest_start(name->text);
    for (size_t i = 0; i < l->bindings.n; i++)
        if (oi_name_find(l, l->bindings.at[i].name))
            oi_nearest_offer(&near, l->bindings.at[i].name);
    for (size_t i = 0; l->typer.model && i < oi_model_n_sizevars(l->typer.model); i++)
        oi_nearest_offer(&near, oi_model_sizevar_name(l->typer.model, i));
    if (near.best)
        oi_diag_hint(l->d, "did you mean '%s'?", near.best);
}

/* A name that the text does not bind: a size of the model. Without a model it is believed. */
static const char *of_model(oi_lowerer *l, const oi_name *name, bool also_metadata)
{
    int64_t unused;
    if (oi_name_is_size(l, name->text, &unused) || (also_metadata && in_model(l, name->text)))
        return name->text;
    if (!l->typer.model && oi_map_get(&l->taken, name->text) == OI_MAP_NONE) {
        oi_map_set(&l->taken, name->text, 2);
        return name->text;
    }
    if (!l->typer.model && oi_map_get(&l->taken, name->text) == 2)
        return name->text;
    oi_name_unknown(l, name);
    return NULL;
}

static const char *resolve(oi_lowerer *l, const oi_name *name, bool also_metadata)
{
    const oi_binding *b = oi_name_find(l, name->text);
    if (!b)
        return of_model(l, name, also_metadata);
    if (b->state == OI_NO_ID && b->value.kind == OI_OPERAND_REF)
        return b->value.access.base.text;
    if (b->state != OI_NO_ID)
        oi_diag_error(l->d, oi_compact_at(l, name->span), "E051",
                      "'%s' is a key-value cache; a number is wanted here", name->text);
    return NULL;
}

const oi_expr *oi_name_expr(oi_lowerer *l, const oi_expr *e)
{
    oi_expr *out = oi_arena_alloc(l->g->arena, sizeof *out);
    *out = *e;
    if (e->kind == OI_EXPR_NAME) {
        out->name = resolve(l, &(oi_name){e->name, e->span}, false);
        return out->name ? out : NULL;
    }
    if (e->lhs)
        out->lhs = oi_name_expr(l, e->lhs);
    if (e->rhs)
        out->rhs = oi_name_expr(l, e->rhs);
    return (e->lhs && !out->lhs) || (e->rhs && !out->rhs) ? NULL : out;
}

bool oi_name_value(oi_lowerer *l, oi_value *v)
{
    if (v->kind == OI_VAL_NAME) {
        v->text = resolve(l, &(oi_name){v->text, v->span}, true);
        return v->text != NULL;
    }
    if (v->kind == OI_VAL_EXPR) {
        v->expr = oi_name_expr(l, v->expr);
        return v->expr != NULL;
    }
    if (v->kind != OI_VAL_LIST)
        return true;
    oi_value *items = oi_arena_alloc(l->g->arena, (v->n + 1) * sizeof *items);
    bool ok = true;
    for (size_t i = 0; i < v->n; i++) {
        items[i] = v->items[i];
        ok &= oi_name_value(l, &items[i]);
    }
    v->items = items;
    return ok;
}
