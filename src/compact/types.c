/* types.c: types of operands, as the graph declares them and as messages show them. */
#include "compact/lower.h"

bool oi_compact_type(oi_lowerer *l, const oi_operand *x, oi_type *out)
{
    const oi_symbol *s = oi_symbols_find(&l->syms, x->access.base.text);
    if (!s)
        s = oi_symbols_index(&l->syms, x->access.base.text);
    return s && oi_typer_type(&l->typer, s, out);
}

static bool is_run_length(const oi_dim *d)
{
    return !d->known && (!d->text || strcmp(d->text, "?") == 0);
}

bool oi_type_same(const oi_type *a, const oi_type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (oi_dim_equal(a->dims[i], b->dims[i]) != OI_EQUAL &&
            !(is_run_length(&a->dims[i]) && is_run_length(&b->dims[i])))
            return false;
    return true;
}

const char *oi_compact_type_text(const oi_lowerer *l, const oi_type *type)
{
    char text[OI_INFER_TEXT];
    oi_text out = {text, 0, sizeof text};
    oi_text_add(&out, "%s", oi_dtype_name(type->dtype));
    oi_text_dims(&out, type);
    oi_text_sizes(&out, &type, 1);
    return oi_arena_text(l->a, text, strlen(text));
}

/* Without the model a length may be unknown that is no `?`. */
static bool needs_model(oi_lowerer *l, oi_span span)
{
    oi_diag_error(l->d, oi_compact_at(l, span), "E080",
                  "the shape of this value hangs on sizes of the model, and no model is given");
    oi_diag_hint(l->d, "name the package: --model MODEL.oinf");
    return false;
}

bool oi_compact_dims(oi_lowerer *l, const oi_type *type, oi_span span, oi_exprs *out)
{
    for (uint32_t i = 0; i < type->rank; i++) {
        const oi_dim *d = &type->dims[i];
        if (!d->known && !d->text && !l->typer.model)
            return needs_model(l, span);
        oi_expr e = {.kind = OI_EXPR_INT, .depth = 1, .magnitude = (uint64_t)d->value};
        const oi_expr *dim = NULL;
        if (is_run_length(d))
            e.kind = OI_EXPR_RUNTIME;
        else if (d->text)
            dim = oi_expr_parse(l->g, d->text, strlen(d->text), true, "", NULL);
        if (!dim) {
            oi_expr *copy = oi_arena_alloc(l->g->arena, sizeof *copy);
            *copy = e;
            dim = copy;
        }
        *OI_PUSH(l->g->arena, out) = dim;
    }
    return true;
}

/* -- literals -- */

static oi_operand misfit(const oi_lowerer *l, const oi_value *v, oi_dtype dtype, const char *code)
{
    oi_buf text = {0};
    oi_value_print(&text, v);
    const char *shown = oi_buf_to_arena(&text, l->a);
    if (strcmp(code, "E015") == 0)
        oi_diag_error(l->d, oi_compact_at(l, v->span), code,
                      "%s is no value of %s, the element type of the other operand", shown,
                      oi_dtype_name(dtype));
    else
        oi_diag_error(l->d, oi_compact_at(l, v->span), code,
                      "%s is out of range for %s, the element type of the other operand", shown,
                      oi_dtype_name(dtype));
    return (oi_operand){.kind = OI_OPERAND_BAD};
}

oi_operand oi_compact_literal(oi_lowerer *l, const oi_value *v, oi_dtype dtype)
{
    oi_scalar s;
    const char *code = oi_scalar_from_value(dtype, v, &s);
    if (code)
        return misfit(l, v, dtype, code);
    const char *key =
        oi_arena_printf(l->a, "%s:%llx", oi_dtype_name(dtype), (unsigned long long)s.bits);
    uint32_t at = oi_map_get(&l->made, key);
    if (at == OI_MAP_NONE) {
        const char *name = oi_name_unlinked(l, oi_arena_printf(l->a, "_c%u", l->n_constants++));
        oi_compact_declare(l, &(oi_var){.name = {name, v->span},
                                        .kind = OI_CONSTANT,
                                        .dtype = dtype,
                                        .has_init = true,
                                        .init = s});
        at = (uint32_t)l->syms.list.n - 1;
        oi_map_put(&l->made, key, at);
    }
    oi_operand out = oi_name_operand(l->syms.list.at[at].name, v->span);
    out.is_variable = false;
    out.is_steady = true;
    return out;
}
