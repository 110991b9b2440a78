/* sizes.c: names that have a value before the run: given by the caller, else sizevars of the model,
 * else integer scalars of its metadata. */
#include "program/check.h"

static bool from_model(oi_model *m, const char *name, int64_t *out)
{
    uint64_t size;
    if (oi_model_size_of(m, name, &size) == OI_OK) {
        *out = (int64_t)size;
        return size <= INT64_MAX;
    }
    oi_meta_info info;
    return oi_model_meta_info(m, name, &info) == OI_OK && info.rank == 0 &&
           oi_dtype_is_integer(info.element) && oi_model_meta_i64(m, name, out, NULL) == OI_OK;
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
    if (!from_model(t->model, name, out))
        return false;
    *OI_PUSH(t->a, &t->size_values) = *out;
    oi_map_put(&t->sizes, name, (uint32_t)t->size_values.n - 1);
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
