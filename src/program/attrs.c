/* attrs.c: are the attributes of a call what the registry wants? */
#include "program/program.h"

#include <inttypes.h>
#include <math.h>

bool oi_call_fail(const oi_call *c, const char *code, oi_infer_at at, size_t index, const char *fmt,
                  ...)
{
    oi_infer_fail *f = c->fail;
    *f = (oi_infer_fail){.code = code, .at = at, .index = (uint32_t)index, .other = OI_INFER_NONE};
    if (at == OI_AT_OP)
        f->index = 0;
    oi_text t = {f->message, 0, sizeof f->message};
    oi_text_add(&t, "%s: ", c->op->name);
    char rest[OI_INFER_TEXT];
    va_list args;
    va_start(args, fmt);
    vsnprintf(rest, sizeof rest, fmt, args);
    va_end(args);
    oi_text_add(&t, "%s", rest);
    return false;
}

/* -- finding values -- */

const oi_attr_arg *oi_call_arg(const oi_call *c, const char *name)
{
    for (size_t i = 0; i < c->n_attrs; i++)
        if (strcmp(c->attrs[i].attr->name, name) == 0)
            return &c->attrs[i];
    return NULL;
}

/* The value given, or the default; NULL when only the run knows it or nothing says it. */
static const oi_op_value *value_of(const oi_call *c, const char *name)
{
    const oi_attr_arg *arg = oi_call_arg(c, name);
    if (arg)
        return arg->known ? &arg->value : NULL;
    const oi_op_attr *attr = oi_op_attr_find(c->op, name);
    return attr && attr->def.tag != OI_VALUE_NONE ? &attr->def : NULL;
}

bool oi_call_bool(const oi_call *c, const char *name, bool *out)
{
    const oi_op_value *v = value_of(c, name);
    if (!v || v->tag != OI_VALUE_BOOL)
        return false;
    *out = v->b;
    return true;
}

bool oi_call_int(const oi_call *c, const char *name, int64_t *out)
{
    const oi_op_value *v = value_of(c, name);
    if (!v || v->tag != OI_VALUE_INT)
        return false;
    *out = v->i;
    return true;
}

/* -- kinds -- */

static const struct kind {
    const char *wants;
    uint32_t tags; /* values that will do */
} kinds[OI_ATTR_KIND_COUNT] = {
#define TAG(t) (1u << OI_VALUE_##t)
    [OI_ATTR_NUMBER] = {"a number", TAG(INT) | TAG(UINT) | TAG(FLOAT) | TAG(BOOL)},
    [OI_ATTR_INT] = {"an integer", TAG(INT)},
    [OI_ATTR_BOOL] = {"true or false", TAG(BOOL)},
    [OI_ATTR_STRING] = {"a string", TAG(STRING)},
    [OI_ATTR_DTYPE] = {"an element type", TAG(DTYPE)},
    [OI_ATTR_DTYPE_LIST] = {"an element type or a list of them", TAG(DTYPE) | TAG(DTYPE_LIST)},
    [OI_ATTR_INT_LIST] = {"an integer or a list of them", TAG(INT) | TAG(INT_LIST)},
    [OI_ATTR_FLOAT_LIST] = {"a number or a list of them",
                            TAG(INT) | TAG(UINT) | TAG(FLOAT) | TAG(INT_LIST) | TAG(FLOAT_LIST)},
    [OI_ATTR_AXIS] = {"an axis (an integer)", TAG(INT)},
    [OI_ATTR_AXES] = {"an axis or a list of axes", TAG(INT) | TAG(INT_LIST)},
    [OI_ATTR_LENGTH] = {"an integer or an integer variable", TAG(INT)},
#undef TAG
};

static const char *const tag_names[] = {
    [OI_VALUE_NONE] = "nothing",
    [OI_VALUE_INT] = "an integer",
    [OI_VALUE_UINT] = "an integer above 2^63-1",
    [OI_VALUE_FLOAT] = "a float",
    [OI_VALUE_BOOL] = "a bool",
    [OI_VALUE_STRING] = "a string",
    [OI_VALUE_DTYPE] = "an element type",
    [OI_VALUE_INT_LIST] = "a list of integers",
    [OI_VALUE_FLOAT_LIST] = "a list of floats",
    [OI_VALUE_STRING_LIST] = "a list of strings",
    [OI_VALUE_DTYPE_LIST] = "a list of element types",
};

static bool check_kind(const oi_call *c, size_t i)
{
    const oi_op_attr *attr = c->attrs[i].attr;
    const oi_op_value *v = &c->attrs[i].value;
    const struct kind *kind = &kinds[attr->kind];
    if (kind->tags >> v->tag & 1)
        return true;
    /* "[]" has no items to tell its kind by */
    if (v->tag == OI_VALUE_INT_LIST && v->n == 0 && attr->kind == OI_ATTR_DTYPE_LIST)
        return true;
    return oi_call_fail(c, "E053", OI_AT_ATTR, i, "attribute '%s' wants %s, found %s", attr->name,
                        kind->wants, tag_names[v->tag]);
}

static bool check_word(const oi_call *c, size_t i)
{
    const oi_op_attr *attr = c->attrs[i].attr;
    const char *word = c->attrs[i].value.s;
    if (!attr->values)
        return true;
    for (const char *const *v = attr->values; *v; v++)
        if (strcmp(*v, word) == 0)
            return true;
    char list[200];
    oi_text t = {list, 0, sizeof list};
    for (const char *const *v = attr->values; *v; v++)
        oi_text_add(&t, "%s\"%s\"", v == attr->values ? "" : v[1] ? ", " : " or ", *v);
    return oi_call_fail(c, "E053", OI_AT_ATTR, i, "attribute '%s' wants %s, found \"%s\"",
                        attr->name, list, word);
}

static bool check_min(const oi_call *c, size_t i)
{
    const oi_op_attr *attr = c->attrs[i].attr;
    const oi_op_value *v = &c->attrs[i].value;
    const int64_t *ints = v->tag == OI_VALUE_INT ? &v->i : v->ints;
    size_t n = v->tag == OI_VALUE_INT ? 1 : v->tag == OI_VALUE_INT_LIST ? v->n : 0;
    for (size_t k = 0; attr->has_min && k < n; k++)
        if (ints[k] < attr->min)
            return oi_call_fail(c, "E053", OI_AT_ATTR, i,
                                "attribute '%s' must be at least %" PRId64 ", found %" PRId64,
                                attr->name, attr->min, ints[k]);
    return true;
}

static bool check_dtypes(const oi_call *c, size_t i)
{
    const oi_op_attr *attr = c->attrs[i].attr;
    const oi_op_value *v = &c->attrs[i].value;
    if (attr->kind != OI_ATTR_DTYPE || !attr->dtypes || attr->dtypes & OI_DTYPES(v->dtype))
        return true;
    char set[160];
    oi_dtypes_print(attr->dtypes, set, sizeof set);
    return oi_call_fail(c, "E060", OI_AT_ATTR, i, "attribute '%s' does not take %s (takes %s)",
                        attr->name, oi_dtype_name(v->dtype), set);
}

/* A variable read when the node runs: its type must suit, its value is checked then. */
static bool check_variable(const oi_call *c, size_t i)
{
    const oi_op_attr *attr = c->attrs[i].attr;
    const oi_type *var = c->attrs[i].var;
    bool integer = oi_dtype_is_integer(var->dtype), is_bool = var->dtype == OI_BOOL;
    bool suits;
    switch (attr->kind) {
    case OI_ATTR_NUMBER:
    case OI_ATTR_FLOAT_LIST: suits = integer || is_bool || oi_dtype_is_float(var->dtype); break;
    case OI_ATTR_BOOL: suits = integer || is_bool; break;
    case OI_ATTR_STRING:
    case OI_ATTR_DTYPE:
    case OI_ATTR_DTYPE_LIST: suits = false; break;
    default: suits = integer; break;
    }
    if (!suits)
        return oi_call_fail(c, "E053", OI_AT_ATTR, i,
                            "attribute '%s' wants %s, found a variable of %s", attr->name,
                            kinds[attr->kind].wants, oi_dtype_name(var->dtype));
    if (var->rank <= (attr->kind == OI_ATTR_LENGTH ? 1u : 0u))
        return true;
    char shape[200];
    oi_text t = {shape, 0, sizeof shape};
    oi_text_dims(&t, var);
    return oi_call_fail(c, "E051", OI_AT_ATTR, i,
                        "attribute '%s' wants a variable of rank 0%s, found shape %s", attr->name,
                        attr->kind == OI_ATTR_LENGTH ? " or 1" : "", shape);
}

/* Two spellings of one attribute are the same attribute. */
static bool check_once(const oi_call *c, size_t i)
{
    const oi_op_attr *attr = c->attrs[i].attr;
    for (size_t k = 0; k < i; k++)
        if (c->attrs[k].attr == attr)
            return oi_call_fail(c, "E054", OI_AT_ATTR, i, "attribute '%s'%s%s%s is given twice",
                                attr->name, attr->alias ? " (also called '" : "",
                                attr->alias ? attr->alias : "", attr->alias ? "')" : "");
    return true;
}

/* Required ones, and those that an input may stand in for. */
static bool check_presence(const oi_call *c, const oi_op_attr *attr)
{
    const oi_attr_arg *arg = oi_call_arg(c, attr->name);
    bool by_input = attr->input >= 0 && (size_t)attr->input < c->n_in;
    if (arg && by_input)
        return oi_call_fail(c, "E054", OI_AT_ATTR, (size_t)(arg - c->attrs),
                            "give attribute '%s' or a second input, not both", attr->name);
    if (attr->required && !arg && !by_input)
        return oi_call_fail(c, "E053", OI_AT_OP, 0, "attribute '%s' is required%s", attr->name,
                            attr->input >= 0 ? " (or a second input)" : "");
    return true;
}

bool oi_attrs_check(const oi_call *c)
{
    for (size_t i = 0; i < c->n_attrs; i++) {
        const oi_attr_arg *arg = &c->attrs[i];
        if (!check_once(c, i))
            return false;
        if (arg->known ? !check_kind(c, i) : arg->var && !check_variable(c, i))
            return false;
        if (!arg->known)
            continue;
        if (arg->value.tag == OI_VALUE_STRING && !check_word(c, i))
            return false;
        if (!check_min(c, i) || !check_dtypes(c, i))
            return false;
    }
    for (uint32_t i = 0; i < c->op->n_attrs; i++)
        if (!check_presence(c, &c->op->attrs[i]))
            return false;
    return true;
}

/* -- numbers against the tensor's dtype -- */

static void print_number(char out[OI_NUMBER_TEXT], const oi_op_value *v)
{
    if (v->tag == OI_VALUE_FLOAT)
        oi_print_f64(out, v->f);
    else if (v->tag == OI_VALUE_UINT)
        snprintf(out, OI_NUMBER_TEXT, "%" PRIu64, v->u);
    else if (v->tag == OI_VALUE_BOOL)
        snprintf(out, OI_NUMBER_TEXT, "%s", v->b ? "true" : "false");
    else
        snprintf(out, OI_NUMBER_TEXT, "%" PRId64, v->i);
}

static double as_f64(const oi_op_value *v)
{
    return v->tag == OI_VALUE_FLOAT  ? v->f
           : v->tag == OI_VALUE_UINT ? (double)v->u
           : v->tag == OI_VALUE_BOOL ? v->b
                                     : (double)v->i;
}

/* Whether a number, integral for integer types, lies within what `t` holds. */
static bool fits(oi_dtype t, const oi_op_value *v)
{
    const oi_dtype_info *info = oi_dtype_get(t);
    double f = as_f64(v);
    if (info->cls == OI_CLASS_FLOAT)
        return !isfinite(f) || isfinite(oi_float_decode(t, oi_float_encode(t, f)));
    if (v->tag == OI_VALUE_UINT)
        return v->u <= info->max;
    if (v->tag == OI_VALUE_FLOAT) /* 64-bit limits round up in f64, hence the strict bound */
        return f >= (double)info->min &&
               (info->bits == 64 ? f < (double)info->max : f <= (double)info->max);
    int64_t i = v->tag == OI_VALUE_BOOL ? v->b : v->i;
    return i >= info->min && (i < 0 || (uint64_t)i <= info->max);
}

static bool check_number(const oi_call *c, size_t i, oi_dtype t)
{
    const oi_op_attr *attr = c->attrs[i].attr;
    const oi_op_value *v = &c->attrs[i].value;
    char text[OI_NUMBER_TEXT];
    print_number(text, v);
    bool is_float = oi_dtype_is_float(t);
    /* infinite bounds are fine for integers: they mean the dtype's own limits; NaN is not */
    if (!is_float && v->tag == OI_VALUE_FLOAT && !(v->f == trunc(v->f)))
        return oi_call_fail(c, "E053", OI_AT_ATTR, i,
                            "attribute '%s' must be a whole number for %s, found %s", attr->name,
                            oi_dtype_name(t), text);
    if (!attr->in_range || fits(t, v))
        return true;
    const oi_dtype_info *info = oi_dtype_get(t);
    char range[64] = "";
    if (!is_float)
        snprintf(range, sizeof range, " (%" PRId64 " to %" PRIu64 ")", info->min, info->max);
    return oi_call_fail(c, "E053", OI_AT_ATTR, i, "attribute '%s' is %s, which does not fit %s%s",
                        attr->name, text, oi_dtype_name(t), range);
}

bool oi_attrs_check_numbers(const oi_call *c, oi_dtype t)
{
    for (size_t i = 0; i < c->n_attrs; i++)
        if (c->attrs[i].attr->kind == OI_ATTR_NUMBER && c->attrs[i].known && !check_number(c, i, t))
            return false;
    return true;
}
