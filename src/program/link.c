/* link.c: variables against the model (spec/dsl.md §3, "Linking to the model"): E011 sizes, E012
 * dtype, E013 shape, E014 missing key, E022 constant without data, W101 data and @init. */
#include "program/check.h"

#include <math.h>

static oi_place at_var(const oi_typer *t, const oi_var *v, oi_span span)
{
    return oi_graph_place_var(t->g, t->a, v, span);
}

/* -- sizes -- */

static bool in_model(const oi_typer *t, const char *name)
{
    uint64_t size;
    oi_meta_info info;
    return oi_model_size_of(t->model, name, &size) == OI_OK ||
           oi_model_meta_info(t->model, name, &info) == OI_OK;
}

static void hint_size(const oi_typer *t, const char *word)
{
    if (in_model(t, word)) {
        oi_diag_hint(t->d, "a size is a single integer, at most 2^63-1");
        return;
    }
    oi_nearest near = oi_nearest_start(word);
    for (size_t i = 0; i < oi_model_n_sizevars(t->model); i++)
        oi_nearest_offer(&near, oi_model_sizevar_name(t->model, i));
    for (size_t i = 0; i < oi_model_n_metadata(t->model); i++)
        oi_nearest_offer(&near, oi_model_meta_name(t->model, i));
    if (near.best)
        oi_diag_hint(t->d, "did you mean '%s'?", near.best);
}

/* E011: every name is a size of the model, and the result is 0 … 2^63-1. What literals alone get
 * wrong is reported by the structure check. */
static void size(oi_typer *t, oi_place at, const oi_expr *e)
{
    int64_t value;
    const oi_expr *culprit = e;
    if (e->kind == OI_EXPR_RUNTIME)
        return;
    bool by_literals = oi_expr_eval(e, true, NULL, NULL, &value, NULL) != OI_EVAL_UNKNOWN;
    oi_eval_status s = oi_expr_eval(e, true, oi_typer_size, t, &value, &culprit);
    if (by_literals || (s == OI_EVAL_OK && value >= 0))
        return;
    if (culprit->span.line && s != OI_EVAL_OK)
        at.span = culprit->span;
    const char *text = oi_expr_text(t->a, s == OI_EVAL_OK ? e : culprit);
    switch (s) {
    case OI_EVAL_UNKNOWN:
        oi_diag_error(t->d, at, "E011",
                      in_model(t, text) ? "'%s' of the model is not a size"
                                        : "the model has no size '%s'",
                      text);
        hint_size(t, text);
        return;
    case OI_EVAL_OK:
        oi_diag_error(t->d, at, "E011", "'%s' is %lld; it cannot be negative", text,
                      (long long)value);
        return;
    case OI_EVAL_INEXACT:
        oi_diag_error(t->d, at, "E011", "'%s' leaves a remainder; a dim must divide exactly", text);
        return;
    default:
        oi_diag_error(t->d, at, "E011", "'%s' %s", text,
                      s == OI_EVAL_DIV_ZERO ? "divides by zero"
                                            : "does not fit a 64-bit signed integer");
    }
}

static void sizes(oi_typer *t, const oi_var *v)
{
    for (size_t i = 0; i < v->dims.n && !oi_diag_full(t->d); i++)
        size(t, at_var(t, v, v->dims.at[i]->span), v->dims.at[i]);
    for (size_t i = 0; i < v->fixed.n; i++)
        size(t, at_var(t, v, v->fixed.at[i].limit->span), v->fixed.at[i].limit);
    for (size_t i = 0; i < v->cap.n; i++)
        size(t, at_var(t, v, v->cap.at[i].limit->span), v->cap.at[i].limit);
}

/* -- one key -- */

static const char *shape_text(const oi_typer *t, const oi_type *type)
{
    char text[OI_INFER_TEXT];
    oi_text out = {text, 0, sizeof text};
    oi_text_dims(&out, type);
    oi_text_sizes(&out, &type, 1);
    return oi_arena_text(t->a, text, strlen(text));
}

static const char *dims_text(const oi_typer *t, const uint64_t *dims, uint32_t rank)
{
    char text[OI_INFER_TEXT];
    oi_text out = {text, 0, sizeof text};
    oi_text_add(&out, "[");
    for (uint32_t i = 0; i < rank; i++)
        oi_text_add(&out, "%s%llu", i ? ", " : "", (unsigned long long)dims[i]);
    oi_text_add(&out, "]");
    return oi_arena_text(t->a, text, strlen(text));
}

/* E012 and E013 for a whole tensor or ndarray. */
static bool same_type(oi_typer *t, oi_place at, const oi_type *declared, const char *what,
                      const char *key, oi_dtype dtype, const uint64_t *dims, uint32_t rank)
{
    if (dtype != declared->dtype) {
        oi_diag_error(t->d, at, "E012", "declared %s, but %s '%s' of the model is %s",
                      oi_dtype_name(declared->dtype), what, key, oi_dtype_name(dtype));
        return false;
    }
    bool equal = rank == declared->rank;
    for (uint32_t i = 0; equal && i < rank; i++)
        equal = !declared->dims[i].known || (uint64_t)declared->dims[i].value == dims[i];
    if (!equal)
        oi_diag_error(t->d, at, "E013", "declared %s, but %s '%s' of the model is %s",
                      shape_text(t, declared), what, key, dims_text(t, dims, rank));
    return equal;
}

/* A single number for a rank-0 variable: any width, if the value is exact (E012). */
static bool exact_number(oi_typer *t, oi_place at, const oi_type *declared, const char *key,
                         oi_dtype from, const void *value)
{
    uint8_t there[8] = {0}, back[8] = {0};
    unsigned bytes = (oi_dtype_bits(from) + 7) / 8;
    bool numbers = (from == OI_BOOL) == (declared->dtype == OI_BOOL);
    if (oi_dtype_is_float(from) && oi_dtype_is_float(declared->dtype) &&
        isnan(oi_element_f64(from, value, 0)))
        return true; /* whatever its payload */
    if (numbers && oi_convert(declared->dtype, there, from, value, 1) == 1 &&
        oi_convert(from, back, declared->dtype, there, 1) == 1 && memcmp(back, value, bytes) == 0)
        return true;
    oi_diag_error(t->d, at, "E012", "the value of '%s' in the model (%s) is no exact %s", key,
                  oi_dtype_name(from), oi_dtype_name(declared->dtype));
    return false;
}

void oi_link_uses(oi_typer *t, const char *key)
{
    size_t at, n = strcspn(key, "#"); /* quantisation data is its tensor's */
    if (t->on_tensor && oi_model_tensor_index(t->model, oi_arena_text(t->a, key, n), &at) == OI_OK)
        t->on_tensor(t->on_tensor_ctx, at);
}

static oi_found from_tensor(oi_typer *t, oi_place at, const oi_type *declared, const char *key)
{
    oi_tensor_info info;
    if (oi_model_tensor_info(t->model, key, &info) != OI_OK)
        return OI_FOUND_NOTHING;
    oi_link_uses(t, key);
    if (!same_type(t, at, declared, "tensor", key, info.dtype, info.dims, info.rank))
        return OI_FOUND_WRONG;
    return info.has_data ? OI_FOUND_DATA : OI_FOUND_NO_DATA;
}

static oi_found from_metadata(oi_typer *t, oi_place at, const oi_type *declared, const char *key)
{
    oi_meta_info info;
    oi_view view;
    if (oi_model_meta_info(t->model, key, &info) != OI_OK)
        return OI_FOUND_NOTHING;
    if (info.type == OI_STR || info.type == OI_BITSET) {
        oi_diag_error(t->d, at, "E012", "'%s' of the model is a %s, which no variable can hold",
                      key, info.type == OI_STR ? "string" : "bitset");
        return OI_FOUND_WRONG;
    }
    if (declared->rank || info.n_elements != 1)
        return same_type(t, at, declared, "metadata", key, info.element, info.dims, info.rank)
                   ? OI_FOUND_DATA
                   : OI_FOUND_WRONG;
    oi_typer_must(t, oi_model_meta(t->model, key, &view, t->d));
    return exact_number(t, at, declared, key, view.dtype, view.data) ? OI_FOUND_DATA
                                                                     : OI_FOUND_WRONG;
}

static oi_found from_size(oi_typer *t, oi_place at, const oi_type *declared, const char *key)
{
    uint64_t value;
    if (oi_model_size_of(t->model, key, &value) != OI_OK)
        return OI_FOUND_NOTHING;
    if (declared->rank) {
        oi_diag_error(t->d, at, "E013", "declared %s, but '%s' of the model is a single size",
                      shape_text(t, declared), key);
        return OI_FOUND_WRONG;
    }
    return exact_number(t, at, declared, key, OI_U64, &value) ? OI_FOUND_DATA : OI_FOUND_WRONG;
}

oi_found oi_link_key(oi_typer *t, oi_place at, const oi_type *declared, const char *key)
{
    oi_found f = from_tensor(t, at, declared, key);
    if (f == OI_FOUND_NOTHING)
        f = from_metadata(t, at, declared, key);
    return f == OI_FOUND_NOTHING ? from_size(t, at, declared, key) : f;
}

/* -- variables -- */

/* E014: @ref names something the model has. */
static void missing_key(oi_typer *t, const oi_var *v)
{
    oi_diag_error(t->d, at_var(t, v, v->at[OI_AT_REF]), "E014", "the model has no '%s'",
                  v->ref_name);
    oi_nearest near = oi_nearest_start(v->ref_name);
    for (size_t i = 0; i < oi_model_n_tensors(t->model); i++)
        oi_nearest_offer(&near, oi_model_tensor_name(t->model, i));
    for (size_t i = 0; i < oi_model_n_metadata(t->model); i++)
        oi_nearest_offer(&near, oi_model_meta_name(t->model, i));
    for (size_t i = 0; i < oi_model_n_sizevars(t->model); i++)
        oi_nearest_offer(&near, oi_model_sizevar_name(t->model, i));
    if (near.best)
        oi_diag_hint(t->d, "did you mean '%s'?", near.best);
}

/* Dynamic values come from the host; the model only has a say in the type of an equal tensor. */
static oi_found find(oi_typer *t, const oi_var *v, const oi_type *declared)
{
    oi_place at = at_var(t, v, v->name.span);
    if (v->ref_name)
        return oi_link_key(t, at_var(t, v, v->at[OI_AT_REF]), declared, v->ref_name);
    return v->kind == OI_DYNAMIC ? from_tensor(t, at, declared, v->name.text)
                                 : oi_link_key(t, at, declared, v->name.text);
}

static void link(oi_typer *t, const oi_symbol *s)
{
    const oi_var *v = s->var;
    oi_type declared;
    sizes(t, v);
    if (v->indices.n || !oi_typer_type(t, s, &declared))
        return; /* tables: link_keys.c, link_state.c */
    oi_found f = find(t, v, &declared);
    t->has_value[s - t->syms->list.at] = f == OI_FOUND_DATA || f == OI_FOUND_WRONG || v->ref_name;
    if (f == OI_FOUND_NOTHING && v->ref_name)
        missing_key(t, v);
    else if (f == OI_FOUND_DATA && v->has_init && v->kind != OI_DYNAMIC)
        oi_diag_warn(t->d, at_var(t, v, v->at[OI_AT_INIT]), "W101",
                     "'%s' has data in the model: @init is not used", v->name.text);
    else if ((f == OI_FOUND_NOTHING || f == OI_FOUND_NO_DATA) && v->kind == OI_CONSTANT &&
             !v->has_init) {
        oi_diag_error(t->d, at_var(t, v, v->name.span), "E022",
                      "constant '%s' has neither data in the model nor @init", v->name.text);
        if (f == OI_FOUND_NO_DATA)
            oi_diag_hint(t->d, "the model declares the tensor without data");
    }
}

void oi_link_vars(oi_typer *t)
{
    for (size_t i = 0; i < t->g->vars.n && !oi_diag_full(t->d); i++)
        link(t, &t->syms->list.at[i]);
}

/* -- names in nodes -- */

/* A name that neither the graph nor the model knows is E030; what the structure check could not
 * know without the model. */
static void use(void *ctx, const oi_node *n, const oi_use *u)
{
    oi_typer *t = ctx;
    int64_t value;
    if (u->role != OI_USE_VALUE || (u->want != OI_WANT_INDEX && u->want != OI_WANT_ATTR) ||
        oi_symbols_at(t->syms, n, u->name) || oi_symbols_index(t->syms, u->name) ||
        oi_typer_size(t, u->name, &value))
        return;
    if (u->want == OI_WANT_ATTR && in_model(t, u->name))
        return;
    const oi_symbol *x = u->inside ? oi_symbols_find(t->syms, u->inside->base.text) : NULL;
    if (x && x->kind == OI_SYM_PERSISTENT && oi_symbol_axis(x, u->name))
        return;
    oi_diag_error(t->d, oi_typer_at(t, n, u->span), "E030",
                  "'%s' is neither a variable nor a size of the model", u->name);
    if (!oi_hint_quotes(t->d, n, u->name))
        hint_size(t, u->name);
}

void oi_link_names(oi_typer *t, const oi_node *n)
{
    if (n->kind == OI_NODE_ASSIGN)
        for (size_t i = 0; i < n->as.assign.dims.n; i++)
            size(t, oi_typer_at(t, n, n->as.assign.dims.at[i]->span), n->as.assign.dims.at[i]);
    oi_node_uses(n, use, t);
}
