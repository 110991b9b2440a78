/* link_state.c: state specs of the model (spec/oinf.md §9). A persistent variable with a spec
 * `oi.state.NAME` has its dtype (E012) and dims (E013), and takes @fixed and @init from it when the
 * graph gives none. */
#include "program/check.h"

#include <json-c/json.h>

/* A mistake in the model's spec, not in the graph. */
static void bad_spec(oi_typer *t, const char *key, const char *field, const char *wanted)
{
    oi_diag_error(t->d,
                  (oi_place){.file = oi_model_path(t->model),
                             .pointer = oi_arena_printf(t->a, "/%s/%s", key, field)},
                  "", "state spec: wants %s", wanted);
}

static oi_place at_var(const oi_typer *t, const oi_var *v)
{
    return oi_graph_place_var(t->g, t->a, v, v->name.span);
}

/* "H*Dh" or 64, as an expression that lives until the check ends; NULL after an error. */
static const oi_expr *read_expr(oi_typer *t, const char *key, const char *field,
                                struct json_object *j)
{
    bool is_int = json_object_is_type(j, json_type_int);
    if (!is_int && !json_object_is_type(j, json_type_string)) {
        bad_spec(t, key, field, "a size expression");
        return NULL;
    }
    const char *text = is_int ? oi_arena_printf(t->a, "%lld", (long long)json_object_get_int64(j))
                              : json_object_get_string(j);
    return oi_expr_parse(t->spare, text, strlen(text), false,
                         oi_arena_printf(t->a, "/%s/%s", key, field), t->d);
}

/* Expressions are read into a graph; this one only lends its arena, ours. */
static void make_spare(oi_typer *t)
{
    t->spare = oi_arena_alloc(t->a, sizeof *t->spare);
    t->spare->arena = t->spare->strings.arena = t->a;
    t->spare->origin = oi_model_path(t->model);
}

static void check_dtype(oi_typer *t, const oi_var *v, const char *key)
{
    struct json_object *j;
    if (!json_object_object_get_ex(t->json, "dtype", &j))
        return;
    bool is_text = json_object_is_type(j, json_type_string);
    oi_dtype dtype = is_text ? oi_dtype_find_json(json_object_get_string(j)) : OI_NONE;
    if (dtype == OI_NONE)
        bad_spec(t, key, "dtype", "an element type");
    else if (dtype != v->dtype)
        oi_diag_error(t->d, at_var(t, v), "E012", "declared %s, but the model's state spec says %s",
                      oi_dtype_name(v->dtype), oi_dtype_name(dtype));
}

static void check_dims(oi_typer *t, const oi_var *v, const char *key)
{
    struct json_object *j;
    if (!json_object_object_get_ex(t->json, "dims", &j))
        return;
    if (!json_object_is_type(j, json_type_array)) {
        bad_spec(t, key, "dims", "a list of size expressions");
        return;
    }
    size_t n = json_object_array_length(j);
    bool equal = n == v->dims.n;
    for (size_t i = 0; equal && i < n; i++) {
        const oi_expr *e = read_expr(t, key, "dims", json_object_array_get_idx(j, i));
        if (!e)
            return;
        equal = oi_dim_equal(oi_typer_dim(t, e), oi_typer_dim(t, v->dims.at[i])) != OI_DIFFERENT;
    }
    const char *text = equal ? "" : json_object_to_json_string_ext(j, JSON_C_TO_STRING_PLAIN);
    if (!equal)
        oi_diag_error(t->d, at_var(t, v), "E013",
                      "the dims of '%s' are not those of the model's state spec: %s", v->name.text,
                      text ? text : "");
}

/* Bounds that the graph leaves open. */
static void take_fixed(oi_typer *t, const oi_symbol *s, const char *key)
{
    struct json_object *j, *limit;
    if (s->var->fixed.n || !json_object_object_get_ex(t->json, "fixed", &j))
        return;
    if (!json_object_is_type(j, json_type_object)) {
        bad_spec(t, key, "fixed", "an object of size expressions");
        return;
    }
    for (size_t i = 0; i < s->n_axes; i++) {
        oi_axis *axis = (oi_axis *)&s->axes[i]; /* in our own arena */
        if (json_object_object_get_ex(j, axis->name.text, &limit) && !axis->cap)
            axis->fixed = read_expr(t, key, "fixed", limit);
    }
}

/* The spec of a variable into t->json; NULL when there is none, or after an error. Returns its key.
 */
static const char *open_spec(oi_typer *t, const char *name)
{
    const char *key = oi_arena_printf(t->a, "oi.state.%s", name);
    oi_meta_info info;
    char *text = NULL;
    size_t n = 0;
    if (oi_model_meta_info(t->model, key, &info) != OI_OK)
        return key;
    oi_status status = oi_model_meta_text(t->model, key, &text, &n, t->d);
    if (status == OI_OK)
        status = oi_json_parse(oi_model_path(t->model), text, n, &t->json, t->d);
    oi_free(text);
    if (status == OI_ERR_INPUT)
        return key;
    oi_typer_must(t, status);
    if (!json_object_is_type(t->json, json_type_object)) {
        bad_spec(t, key, "", "an object");
        oi_json_free(t->json);
        t->json = NULL;
    }
    return key;
}

static void close_spec(oi_typer *t)
{
    oi_json_free(t->json);
    t->json = NULL;
}

/* The initial value that the graph leaves open: NULL, or what is wrong with it. */
static const char *init_of(oi_typer *t, const oi_symbol *s, oi_scalar *out)
{
    struct json_object *j;
    if (s->var->has_init || !json_object_object_get_ex(t->json, "init", &j))
        return NULL;
    oi_value v = {.kind = OI_VAL_FLOAT, .number = oi_json_f64(j)};
    if (json_object_is_type(j, json_type_boolean)) {
        v = (oi_value){.kind = OI_VAL_BOOL, .boolean = json_object_get_boolean(j)};
    } else if (json_object_is_type(j, json_type_int)) {
        int64_t i = json_object_get_int64(j);
        v = (oi_value){.kind = OI_VAL_INT, .negative = i < 0};
        v.magnitude = i < 0 ? 0 - (uint64_t)i : json_object_get_uint64(j);
    } else if (!json_object_is_type(j, json_type_double)) {
        return "E015";
    }
    return oi_scalar_from_value(s->dtype, &v, out);
}

bool oi_link_init(oi_typer *t, const oi_symbol *s, oi_scalar *out)
{
    *out = (oi_scalar){OI_NONE, 0};
    (void)open_spec(t, s->name);
    bool ok = t->json && !init_of(t, s, out) && out->dtype != OI_NONE;
    close_spec(t);
    return ok;
}

bool oi_link_dims(oi_typer *t, const char *name, oi_exprs *out)
{
    const char *key = open_spec(t, name);
    struct json_object *j;
    bool ok = t->json && json_object_object_get_ex(t->json, "dims", &j);
    if (ok && !json_object_is_type(j, json_type_array)) {
        bad_spec(t, key, "dims", "a list of size expressions");
        ok = false;
    }
    make_spare(t);
    for (size_t i = 0; ok && i < json_object_array_length(j); i++) {
        const oi_expr *e = read_expr(t, key, "dims", json_object_array_get_idx(j, i));
        *OI_PUSH(t->a, out) = e;
        ok = e != NULL;
    }
    close_spec(t);
    return ok;
}

static void check_state(oi_typer *t, const oi_symbol *s)
{
    const char *key = open_spec(t, s->name);
    oi_scalar init;
    if (!t->json)
        return;
    check_dtype(t, s->var, key);
    check_dims(t, s->var, key);
    take_fixed(t, s, key);
    if (init_of(t, s, &init))
        bad_spec(t, key, "init", oi_dtype_name(s->dtype));
    close_spec(t);
}

void oi_link_states(oi_typer *t)
{
    make_spare(t);
    for (size_t i = 0; i < t->g->vars.n && !oi_diag_full(t->d); i++)
        if (t->syms->list.at[i].kind == OI_SYM_PERSISTENT)
            check_state(t, &t->syms->list.at[i]);
}
