/* args.c: attributes of a call, from the graph's values to the op's. Literals, sizes and metadata
 * have their value; variables only a type. */
#include "base/ops.h"
#include "program/check.h"

/* Metadata as a value: a float, a bool, text, or an integer that is too large for a size. */
static bool from_metadata(oi_typer *t, const char *name, const oi_meta_info *info, oi_op_value *out)
{
    oi_model *m = t->model;
    char *text = NULL;
    size_t n = 0;
    if (info->rank == 0 && info->element == OI_BOOL) {
        out->tag = OI_VALUE_BOOL;
        oi_typer_must(t, oi_model_meta_bool(m, name, &out->b, t->d));
    } else if (info->rank == 0 && oi_dtype_is_float(info->element)) {
        out->tag = OI_VALUE_FLOAT;
        oi_typer_must(t, oi_model_meta_f64(m, name, &out->f, t->d));
    } else if (info->rank == 0 && info->element == OI_U64) {
        oi_typer_must(t, oi_model_meta_u64(m, name, &out->u, t->d)); /* above INT64_MAX */
    } else {
        oi_status status = oi_model_meta_text(m, name, &text, &n, NULL);
        if (status == OI_ERR_INPUT)
            return false; /* an array */
        oi_typer_must(t, status);
        oi_buf owned = {.text = text, .n = n};
        out->tag = OI_VALUE_STRING;
        out->s = oi_buf_to_arena(&owned, t->a);
    }
    return true;
}

/* A name that the model knows: a size, else metadata (text included). */
static bool from_model(oi_typer *t, const char *name, oi_op_value *out)
{
    oi_meta_info info;
    out->tag = OI_VALUE_INT;
    if (oi_typer_size(t, name, &out->i))
        return true;
    out->tag = OI_VALUE_UINT;
    if (t->model && oi_model_size_of(t->model, name, &out->u) == OI_OK)
        return true; /* beyond i64, or it would have been a size above */
    return t->model && oi_model_meta_info(t->model, name, &info) == OI_OK &&
           from_metadata(t, name, &info, out);
}

bool oi_typer_value(oi_typer *t, const oi_value *v, oi_op_value *out)
{
    *out = (oi_op_value){0};
    switch (v->kind) {
    case OI_VAL_INT:
        out->tag = oi_value_i64(v, &out->i) ? OI_VALUE_INT : OI_VALUE_UINT;
        if (out->tag == OI_VALUE_UINT)
            out->u = v->magnitude;
        return true;
    case OI_VAL_FLOAT: *out = (oi_op_value){.tag = OI_VALUE_FLOAT, .f = v->number}; return true;
    case OI_VAL_BOOL: *out = (oi_op_value){.tag = OI_VALUE_BOOL, .b = v->boolean}; return true;
    case OI_VAL_STR: *out = (oi_op_value){.tag = OI_VALUE_STRING, .s = v->text}; return true;
    case OI_VAL_DTYPE: *out = (oi_op_value){.tag = OI_VALUE_DTYPE, .dtype = v->dtype}; return true;
    case OI_VAL_NAME: return from_model(t, v->text, out);
    case OI_VAL_EXPR: out->tag = OI_VALUE_INT; return oi_typer_eval(t, v->expr, &out->i);
    case OI_VAL_LIST: return false;
    }
    return false;
}

static bool is_number(oi_op_value_tag tag)
{
    return tag == OI_VALUE_INT || tag == OI_VALUE_UINT || tag == OI_VALUE_FLOAT;
}

/* Items of one kind; ints become floats where one float is among them. False for a mixture, which
 * the structure check reports when it stands in the text. */
static bool list(oi_typer *t, const oi_value *v, oi_attr_arg *arg)
{
    oi_op_value *items = oi_arena_alloc(t->a, (v->n + 1) * sizeof *items), *out = &arg->value;
    oi_op_value_tag tag = v->n ? OI_VALUE_NONE : OI_VALUE_INT;
    for (size_t i = 0; i < v->n; i++) {
        if (!oi_typer_value(t, &v->items[i], &items[i]))
            return true; /* the run knows */
        oi_op_value_tag is = items[i].tag;
        if (i && tag != is && !(is_number(tag) && is_number(is)))
            return false;
        tag = i == 0 || is != OI_VALUE_INT ? is : tag;
    }
    arg->known = true;
    int64_t *ints = oi_arena_alloc(t->a, (v->n + 1) * sizeof *ints);
    double *floats = oi_arena_alloc(t->a, (v->n + 1) * sizeof *floats);
    const char **strings = oi_arena_alloc(t->a, (v->n + 1) * sizeof *strings);
    oi_dtype *dtypes = oi_arena_alloc(t->a, (v->n + 1) * sizeof *dtypes);
    for (size_t i = 0; i < v->n; i++) {
        const oi_op_value *x = &items[i];
        ints[i] = x->tag == OI_VALUE_INT ? x->i : 0;
        floats[i] = x->tag == OI_VALUE_FLOAT  ? x->f
                    : x->tag == OI_VALUE_UINT ? (double)x->u
                                              : (double)ints[i];
        strings[i] = x->tag == OI_VALUE_STRING ? x->s : "";
        dtypes[i] = x->tag == OI_VALUE_DTYPE ? x->dtype : OI_NONE;
    }
    out->n = (uint32_t)v->n;
    switch (tag) {
    case OI_VALUE_INT: out->tag = OI_VALUE_INT_LIST, out->ints = ints; return true;
    case OI_VALUE_UINT:
    case OI_VALUE_FLOAT: out->tag = OI_VALUE_FLOAT_LIST, out->floats = floats; return true;
    case OI_VALUE_STRING: out->tag = OI_VALUE_STRING_LIST, out->strings = strings; return true;
    case OI_VALUE_DTYPE: out->tag = OI_VALUE_DTYPE_LIST, out->dtypes = dtypes; return true;
    default: return false;
    }
}

/* -- words without quotes -- */

/* The attribute that wants one of its words and got this name; NULL: none. */
static const oi_op_attr *wants_word(const oi_node *n, const oi_attr *given)
{
    const oi_op *op = n->kind == OI_NODE_OP ? oi_op_find(n->name.text) : NULL;
    const oi_op_attr *a = op && given->name.text ? oi_op_attr_find(op, given->name.text) : NULL;
    return a && a->kind == OI_ATTR_STRING && given->value.kind == OI_VAL_NAME ? a : NULL;
}

bool oi_hint_quotes(oi_diag *d, const oi_node *n, const char *name)
{
    for (size_t i = 0; n->kind == OI_NODE_OP && i < n->as.op.attrs.n; i++) {
        const oi_attr *given = &n->as.op.attrs.at[i];
        if (wants_word(n, given) && strcmp(given->value.text, name) == 0) {
            oi_diag_hint(d, "text stands in quotes: %s=\"%s\"", given->name.text, name);
            return true;
        }
    }
    return false;
}

void oi_warn_quotes(oi_typer *t, const oi_node *n)
{
    for (size_t i = 0; n->kind == OI_NODE_OP && i < n->as.op.attrs.n; i++) {
        const oi_attr *given = &n->as.op.attrs.at[i];
        const oi_op_attr *a = wants_word(n, given);
        if (!a || !a->values || oi_symbols_at(t->syms, n, given->value.text) ||
            !a->values[oi_op_attr_word(a, given->value.text)])
            continue;
        oi_diag_warn(t->d, oi_typer_at(t, n, given->value.span), "W111",
                     "'%s' without quotes is the name of a variable or of the model's metadata",
                     given->value.text);
        (void)oi_hint_quotes(t->d, n, given->value.text);
    }
}

/* A variable in a list stands for one number (E051) of integer type (E050). */
static bool list_names(oi_typer *t, const oi_node *n, const oi_value *v)
{
    for (size_t i = 0; i < v->n; i++) {
        const oi_value *x = &v->items[i];
        const oi_symbol *s = x->kind == OI_VAL_NAME ? oi_symbols_at(t->syms, n, x->text) : NULL;
        if (!s ||
            (s->dims->n == 0 && (oi_dtype_is_integer(s->dtype) || oi_dtype_is_float(s->dtype))))
            continue;
        if (s->dims->n)
            oi_diag_error(t->d, oi_typer_at(t, n, x->span), "E051",
                          "'%s' is of rank %zu; a number is wanted in the list", x->text,
                          s->dims->n);
        else
            oi_diag_error(t->d, oi_typer_at(t, n, x->span), "E050",
                          "'%s' is %s; a number is wanted in the list", x->text,
                          oi_dtype_name(s->dtype));
        oi_typer_note(t, s);
        return false;
    }
    return true;
}

static bool arg(oi_typer *t, const oi_node *n, const oi_value *v, oi_attr_arg *out)
{
    const oi_symbol *s = v->kind == OI_VAL_NAME ? oi_symbols_at(t->syms, n, v->text) : NULL;
    if (s) {
        oi_type *type = oi_arena_alloc(t->a, sizeof *type);
        out->var = type;
        return !s->n_axes && oi_typer_type(t, s, type);
    }
    if (v->kind == OI_VAL_LIST)
        return list_names(t, n, v) && list(t, v, out);
    out->known = oi_typer_value(t, v, &out->value);
    return true;
}

bool oi_typer_args(oi_typer *t, const oi_node *n, const oi_op *op)
{
    const oi_attrs *attrs = &n->as.op.attrs;
    t->args.n = t->arg_at.n = 0;
    if (attrs->n > op->n_attrs)
        return false;
    for (size_t i = 0; i < attrs->n; i++) {
        oi_attr_arg a = {.attr = oi_op_attr_find(op, attrs->at[i].name.text)};
        for (size_t k = 0; k < t->args.n; k++)
            if (t->args.at[k].attr == a.attr)
                return false;
        if (!a.attr || !arg(t, n, &attrs->at[i].value, &a))
            return false;
        *OI_PUSH(t->a, &t->args) = a;
        *OI_PUSH(t->a, &t->arg_at) = i;
    }
    return true;
}
