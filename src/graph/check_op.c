/* check_op.c: calls of ops as far as the op's row alone decides: E057 unknown op, E052 unknown
 * attribute, E053 values of no kind at all, E054 given twice. Kinds, counts and types are judged
 * where types are known, in program/. */
#include "graph/check.h"

#include "base/ops.h"

static void unknown_op(const oi_checker *c, const oi_node *n)
{
    oi_diag_error(c->d, oi_check_at(c, n, n->name.span), "E057", "unknown op '%s'", n->name.text);
    const char *meant = oi_op_suggest(n->name.text);
    if (meant)
        oi_diag_hint(c->d, "did you mean '%s'?", meant);
}

/* "axis, nan, keepdims (keepdim)" */
static const char *known_attrs(const oi_checker *c, const oi_op *op)
{
    const char *text = "";
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const oi_op_attr *a = &op->attrs[i];
        text = oi_arena_printf(c->a, "%s%s%s", text, i ? ", " : "", a->name);
        if (a->alias)
            text = oi_arena_printf(c->a, "%s (%s)", text, a->alias);
    }
    return text;
}

static void unknown_attr(const oi_checker *c, const oi_node *n, const oi_op *op,
                         const oi_name *name)
{
    oi_diag_error(c->d, oi_check_at(c, n, name->span), "E052", "%s has no attribute '%s'", op->name,
                  name->text);
    oi_nearest near = oi_nearest_start(name->text);
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        oi_nearest_offer(&near, op->attrs[i].name);
        if (op->attrs[i].alias)
            oi_nearest_offer(&near, op->attrs[i].alias);
    }
    const char *known = known_attrs(c, op);
    if (op->n_attrs == 0)
        oi_diag_hint(c->d, "%s has none", op->name);
    else if (near.best)
        oi_diag_hint(c->d, "did you mean '%s'? The attributes of %s are: %s", near.best, op->name,
                     known);
    else
        oi_diag_hint(c->d, "the attributes of %s are: %s", op->name, known);
}

/* E054: once only, whichever of two names is used. */
static void given_twice(const oi_checker *c, const oi_node *n, const oi_name *name,
                        const oi_name *first)
{
    if (strcmp(name->text, first->text) == 0)
        oi_diag_error(c->d, oi_check_at(c, n, name->span), "E054", "attribute '%s' is given twice",
                      name->text);
    else
        oi_diag_error(c->d, oi_check_at(c, n, name->span), "E054",
                      "'%s' and '%s' are the same attribute", first->text, name->text);
    oi_diag_note(c->d, oi_check_at(c, n, first->span), "first given here");
}

/* An element type cannot be a variable: a name there is a misspelt type. */
static void misspelt_dtype(const oi_checker *c, const oi_node *n, const oi_op_attr *attr,
                           const oi_value *v)
{
    oi_diag_error(c->d, oi_check_at(c, n, v->span), "E053",
                  "attribute '%s' wants an element type, found '%s'", attr->name, v->text);
    oi_nearest near = oi_nearest_start(v->text);
    for (int t = 1; t < OI_DTYPE_COUNT; t++)
        if (oi_dtype_is_tensor((oi_dtype)t))
            oi_nearest_offer(&near, oi_dtype_name((oi_dtype)t));
    oi_check_hint(c, &near);
}

/* Items of a list are numbers (names and expressions included), strings or element types; 0 for
 * what no list holds. */
static int item_class(const oi_value *v)
{
    switch (v->kind) {
    case OI_VAL_INT:
    case OI_VAL_FLOAT:
    case OI_VAL_NAME:
    case OI_VAL_EXPR: return 1;
    case OI_VAL_STR: return 2;
    case OI_VAL_DTYPE: return 3;
    default: return 0;
    }
}

static void check_value(const oi_checker *c, const oi_node *n, const oi_op_attr *attr,
                        const oi_value *v)
{
    bool dtypes = attr->kind == OI_ATTR_DTYPE || attr->kind == OI_ATTR_DTYPE_LIST;
    int64_t value;
    if (dtypes && v->kind == OI_VAL_NAME)
        misspelt_dtype(c, n, attr, v);
    else if (v->kind == OI_VAL_EXPR)
        oi_check_node_fold(c, n, v->expr, &value);
    for (size_t i = 0; v->kind == OI_VAL_LIST && i < v->n; i++) {
        const oi_value *item = &v->items[i];
        if (item_class(item) && item_class(item) == item_class(&v->items[0])) {
            check_value(c, n, attr, item);
            continue;
        }
        if (dtypes && item->kind == OI_VAL_NAME)
            misspelt_dtype(c, n, attr, item);
        else
            oi_diag_error(c->d, oi_check_at(c, n, item->span), "E053",
                          "attribute '%s': a list holds numbers, strings or element types, not "
                          "a mixture",
                          attr->name);
        return;
    }
}

void oi_check_op(const oi_checker *c, const oi_node *n)
{
    if (n->kind != OI_NODE_OP)
        return;
    const oi_op *op = oi_op_find(n->name.text);
    if (!op) {
        unknown_op(c, n);
        return;
    }
    const oi_name **given = oi_arena_alloc(c->a, (op->n_attrs + 1) * sizeof *given);
    for (size_t i = 0; i < n->as.op.attrs.n && !oi_check_stop(c); i++) {
        const oi_attr *a = &n->as.op.attrs.at[i];
        const oi_op_attr *attr = oi_op_attr_find(op, a->name.text);
        if (!attr) {
            unknown_attr(c, n, op, &a->name);
            continue;
        }
        size_t k = (size_t)(attr - op->attrs);
        if (given[k])
            given_twice(c, n, &a->name, given[k]);
        else
            given[k] = &a->name;
        check_value(c, n, attr, &a->value);
    }
}

/* Hints change no result. fuse=false keeps the node apart from its neighbours in programs,
 * fuse=true is what they do anyway; any other is refused. */
void oi_check_hints(const oi_checker *c, const oi_node *n)
{
    for (size_t i = 0; i < n->hints.n && !oi_check_stop(c); i++) {
        const oi_attr *a = &n->hints.at[i];
        oi_place at = oi_check_at(c, n, a->name.span);
        if (strcmp(a->name.text, "fuse") != 0)
            oi_diag_error(c->d, at, "E019", "unknown hint '%s': there is only fuse", a->name.text);
        else if (a->value.kind != OI_VAL_BOOL)
            oi_diag_error(c->d, at, "E053", "hint 'fuse' is true or false");
    }
}

bool oi_node_stays_apart(const oi_node *n)
{
    for (size_t i = 0; i < n->hints.n; i++)
        if (strcmp(n->hints.at[i].name.text, "fuse") == 0 && !n->hints.at[i].value.boolean)
            return true;
    return false;
}

bool oi_graph_check_call(const oi_graph *g, const oi_node *n, oi_arena *scratch, oi_diag *d)
{
    size_t before = oi_diag_errors(d);
    oi_checker c = {.g = g, .d = d, .a = scratch};
    oi_check_op(&c, n);
    return oi_diag_errors(d) == before;
}
