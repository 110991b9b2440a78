/* sizes.c: names that have a value before the run: given by the caller, else sizevars of the model,
 * else integer scalars of its metadata. A value given for a name that is none of these is E011. */
#include "program/check.h"

void oi_typer_must(oi_typer *t, oi_status status)
{
    if (status == OI_OK)
        return;
    t->unreadable = true;
    oi_arena_fail(t->a);
}

static bool from_model(oi_typer *t, const char *name, int64_t *out)
{
    uint64_t size;
    oi_meta_info info;
    if (oi_model_size_of(t->model, name, &size) != OI_OK) {
        if (oi_model_meta_info(t->model, name, &info) != OI_OK || info.rank ||
            !oi_dtype_is_integer(info.element))
            return false;
        if (info.element != OI_U64) {
            oi_typer_must(t, oi_model_meta_i64(t->model, name, out, t->d));
            return true;
        }
        oi_typer_must(t, oi_model_meta_u64(t->model, name, &size, t->d));
    }
    *out = (int64_t)size;
    return size <= INT64_MAX;
}

bool oi_typer_size(void *ctx, const char *name, int64_t *out)
{
    oi_typer *t = ctx;
    for (size_t i = 0; i < t->n_given; i++)
        if (strcmp(t->given[i].name, name) == 0) {
            *out = (int64_t)t->given[i].value;
            return t->given[i].value <= INT64_MAX;
        }
    if (!t->model)
        return false;
    uint32_t at = oi_map_get(&t->sizes, name);
    if (at != OI_MAP_NONE) {
        *out = t->size_values.at[at];
        return true;
    }
    if (!from_model(t, name, out))
        return false;
    *OI_PUSH(t->a, &t->size_values) = *out;
    oi_map_put(&t->sizes, name, (uint32_t)t->size_values.n - 1);
    return true;
}

/* A constant's value: the model's, else @init. A tensor of the model is not read for this. */
bool oi_typer_constant(oi_typer *t, const oi_symbol *s, int64_t *out)
{
    oi_tensor_info info;
    const oi_var *v = s->var;
    if (s->kind != OI_SYM_CONSTANT || s->n_axes || s->dims->n || !oi_dtype_is_integer(s->dtype))
        return false;
    const char *key = v->ref_name ? v->ref_name : v->name.text;
    if (t->model && oi_model_tensor_info(t->model, key, &info) == OI_OK)
        return false;
    if (t->model && from_model(t, key, out))
        return true;
    if (!v->has_init || v->dtype == OI_U64)
        return false;
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(v->init.bits >> 8 * i);
    *out = oi_element_i64(v->dtype, bytes, 0);
    return true;
}

oi_dim oi_typer_dim(oi_typer *t, const oi_expr *e)
{
    oi_dim d = {0};
    if (e->kind == OI_EXPR_RUNTIME)
        return (oi_dim){.text = "?"};
    oi_eval_status s = oi_expr_eval(e, true, oi_typer_size, t, &d.value, NULL);
    d.known = s == OI_EVAL_OK;
    if (e->kind == OI_EXPR_NAME)
        d.text = e->name;
    else if (e->kind != OI_EXPR_INT && (d.known || s == OI_EVAL_UNKNOWN))
        d.text = oi_expr_text(t->a, e);
    return d;
}

bool oi_typer_eval(oi_typer *t, const oi_expr *e, int64_t *out)
{
    return oi_expr_eval(e, false, oi_typer_size, t, out, NULL) == OI_EVAL_OK;
}

/* -- values given for sizes that do not exist -- */

/* A search through all places where a graph may name a size. */
typedef struct search {
    const oi_typer *t;
    const char *name;
    oi_nearest near;
    bool found;
} search;

static void meet(search *x, const char *name)
{
    x->found |= strcmp(name, x->name) == 0;
    oi_nearest_offer(&x->near, name);
}

static void in_expr(search *x, const oi_expr *e)
{
    if (!e)
        return;
    if (e->kind == OI_EXPR_NAME)
        meet(x, e->name);
    in_expr(x, e->lhs);
    in_expr(x, e->rhs);
}

static void in_bounds(search *x, const oi_bounds *b)
{
    for (size_t i = 0; i < b->n; i++)
        in_expr(x, b->at[i].limit);
}

/* A name used as a value that is no variable and no index. */
static void in_use(void *ctx, const oi_node *n, const oi_use *u)
{
    search *x = ctx;
    if (u->role == OI_USE_VALUE && (u->want == OI_WANT_INDEX || u->want == OI_WANT_ATTR) &&
        !oi_symbols_at(x->t->syms, n, u->name))
        meet(x, u->name);
}

static void in_graph(search *x)
{
    const oi_graph *g = x->t->g;
    for (size_t i = 0; i < g->vars.n; i++) {
        for (size_t k = 0; k < g->vars.at[i].dims.n; k++)
            in_expr(x, g->vars.at[i].dims.at[k]);
        in_bounds(x, &g->vars.at[i].fixed);
        in_bounds(x, &g->vars.at[i].cap);
    }
    for (size_t i = 0; i < g->nodes.n; i++) {
        const oi_node *n = &g->nodes.at[i];
        for (size_t k = 0; n->kind == OI_NODE_ASSIGN && k < n->as.assign.dims.n; k++)
            in_expr(x, n->as.assign.dims.at[k]);
        oi_node_uses(n, in_use, x);
    }
}

static void in_model(search *x)
{
    const oi_model *m = x->t->model;
    oi_meta_info info;
    for (size_t i = 0; m && i < oi_model_n_sizevars(m); i++)
        meet(x, oi_model_sizevar_name(m, i));
    for (size_t i = 0; m && i < oi_model_n_metadata(m); i++)
        if (oi_model_meta_info_at(m, i, &info) == OI_OK && info.n_elements == 1 &&
            oi_dtype_is_integer(info.element))
            meet(x, info.name);
}

void oi_typer_check_given(oi_typer *t)
{
    for (size_t i = 0; i < t->n_given; i++) {
        search x = {.t = t, .name = t->given[i].name, .near = oi_nearest_start(t->given[i].name)};
        in_graph(&x);
        in_model(&x);
        if (x.found)
            continue;
        oi_diag_error(t->d, (oi_place){.file = t->g->origin ? t->g->origin : "graph"}, "E011",
                      "a value is given for the size '%s', which neither the graph nor its model "
                      "has",
                      x.name);
        if (x.near.best)
            oi_diag_hint(t->d, "did you mean '%s'?", x.near.best);
    }
}
