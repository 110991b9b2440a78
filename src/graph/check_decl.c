/* check_decl.c: declarations (spec/dsl.md §3 dims, §4 attributes, §5 patterns): E010 index names,
 * E011 dims, E017 repetition, E018 misplaced, E019 unknown, E024 and E025 refused attributes, E030
 * index names in attributes, E043/W106 patterns, W104. */
#include "graph/check.h"

static oi_place at_attr(const oi_checker *c, const oi_var *v, oi_decl_attr which)
{
    return oi_check_at_var(c, v, v->at[which]);
}

/* -- dims -- */

static oi_place at_owner(const oi_checker *c, const oi_var *v, const oi_node *n, oi_span span)
{
    return v ? oi_check_at_var(c, v, span) : oi_check_at(c, n, span);
}

/* Literal parts compute, exactly, to 0 … 2^63-1 (E011). */
static void size(const oi_checker *c, const oi_var *v, const oi_node *n, const oi_expr *e,
                 const char *what)
{
    int64_t value = 0;
    oi_place at = at_owner(c, v, n, e->span);
    if (oi_check_fold(c, at, e, true, "E011", &value) > 0 && value < 0)
        oi_diag_error(c->d, at, "E011", "%s is %lld; it cannot be negative", what,
                      (long long)value);
}

static void dims(const oi_checker *c, const oi_var *v, const oi_node *n, const oi_exprs *list)
{
    /* the spec gives no limit; E051 because no shape of that rank exists anywhere */
    if (list->n > OI_MAX_RANK)
        oi_diag_error(c->d, at_owner(c, v, n, list->at[OI_MAX_RANK]->span), "E051",
                      "more than %d dims", OI_MAX_RANK);
    bool runtime_ok = !v || v->kind == OI_VOLATILE;
    for (size_t i = 0; i < list->n && i < OI_MAX_RANK; i++) {
        const oi_expr *e = list->at[i];
        if (e->kind != OI_EXPR_RUNTIME) {
            size(c, v, n, e, "a dim");
        } else if (!runtime_ok) {
            oi_diag_error(c->d, at_owner(c, v, n, e->span), "E011",
                          "'?' in a %s variable: only volatile and assigned ones have lengths that "
                          "the run decides",
                          oi_var_kind_name(v->kind));
        }
    }
}

void oi_check_dims(const oi_checker *c, const oi_node *n)
{
    if (n->kind == OI_NODE_ASSIGN)
        dims(c, NULL, n, &n->as.assign.dims);
}

/* -- where attributes may stand -- */

static void misplaced(const oi_checker *c, const oi_var *v, oi_decl_attr which, const char *where)
{
    oi_diag_error(c->d, at_attr(c, v, which), "E018", "@%s is for %s; '%s' is %s%s",
                  oi_decl_attr_names[which], where, v->name.text, oi_var_kind_name(v->kind),
                  v->indices.n ? " with indices" : "");
}

/* E018, the table of §4. @init goes everywhere. */
static void placement(const oi_checker *c, const oi_var *v)
{
    static const char table[] = "persistent variables with an index list";
    bool indexed = v->indices.n > 0, persistent = v->kind == OI_PERSISTENT;
    bool from_model = v->kind == OI_VOLATILE || v->kind == OI_CONSTANT;
    if (v->ref_name && indexed)
        misplaced(c, v, OI_AT_REF, "variables without an index list");
    if (v->pattern && !(from_model && indexed))
        misplaced(c, v, OI_AT_PATTERN, "volatile and constant variables with an index list");
    if (v->table && !(persistent && indexed))
        misplaced(c, v, OI_AT_TABLE, table);
    if (v->auto_dim.n && !(persistent && indexed))
        misplaced(c, v, OI_AT_AUTO_DIM, table);
    if (v->fixed.n && !(persistent && indexed))
        misplaced(c, v, OI_AT_FIXED, table);
    if (v->cap.n && !(persistent && indexed))
        misplaced(c, v, OI_AT_CAP, table);
    /* an index list is an attribute in all but spelling: misplaced without its purpose */
    if (indexed && !persistent && (!from_model || !v->pattern)) {
        oi_diag_error(c->d, oi_check_at_var(c, v, v->indices.at[0].span), "E018",
                      "%s '%s' has indices%s", oi_var_kind_name(v->kind), v->name.text,
                      from_model ? " but no @pattern" : "");
        oi_diag_hint(c->d,
                     from_model ? "say which model tensors it means: @pattern(\"%s.{%s}\")"
                                : "tables are volatile, constant or persistent",
                     v->name.text, v->indices.at[0].text);
    }
}

/* -- indices -- */

/* A second time in a list. Lists longer than OI_MAX_RANK are refused as a whole. */
static bool repeated(const oi_names *list, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(list->at[k].text, list->at[i].text) == 0)
            return true;
    return false;
}

static bool indices(const oi_checker *c, const oi_var *v)
{
    if (v->indices.n > OI_MAX_RANK) {
        oi_diag_error(c->d, oi_check_at_var(c, v, v->indices.at[OI_MAX_RANK].span), "E041",
                      "more than %d indices", OI_MAX_RANK);
        return false;
    }
    for (size_t i = 0; i < v->indices.n; i++)
        if (repeated(&v->indices, i))
            oi_diag_error(c->d, oi_check_at_var(c, v, v->indices.at[i].span), "E010",
                          "'%s' has two indices called '%s'", v->name.text, v->indices.at[i].text);
    return true;
}

/* An index named in an attribute is one of the variable's (E030), and named once (E017). */
static bool named_index(const oi_checker *c, const oi_var *v, oi_decl_attr which,
                        const oi_names *list, size_t i)
{
    const oi_name *name = &list->at[i];
    oi_span span = name->span.line ? name->span : v->at[which];
    if (!oi_names_have(&v->indices, name->text)) {
        oi_diag_error(c->d, oi_check_at_var(c, v, span), "E030", "@%s: '%s' has no index '%s'",
                      oi_decl_attr_names[which], v->name.text, name->text);
        oi_nearest near = oi_nearest_start(name->text);
        for (size_t k = 0; k < v->indices.n; k++)
            oi_nearest_offer(&near, v->indices.at[k].text);
        oi_check_hint(c, &near);
        return false;
    }
    if (!repeated(list, i))
        return true;
    oi_diag_error(c->d, oi_check_at_var(c, v, span), "E017", "@%s names index '%s' twice",
                  oi_decl_attr_names[which], name->text);
    return false;
}

/* @auto_dim: its indices are the last ones of the list, in the same order: index k grows dim k. */
static void auto_dim(const oi_checker *c, const oi_var *v)
{
    const oi_names *list = &v->auto_dim;
    bool sound = true;
    for (size_t i = 0; i < list->n && i <= OI_MAX_RANK; i++)
        sound &= named_index(c, v, OI_AT_AUTO_DIM, list, i);
    if (!list->n || !sound)
        return;
    size_t first = v->indices.n - list->n;
    for (size_t i = 0; i < list->n; i++)
        sound &= strcmp(v->indices.at[first + i].text, list->at[i].text) == 0;
    if (!sound)
        oi_diag_error(c->d, at_attr(c, v, OI_AT_AUTO_DIM), "E018",
                      "@auto_dim takes the last indices of '%s', in their order", v->name.text);
    else if (list->n > v->dims.n)
        oi_diag_error(c->d, at_attr(c, v, OI_AT_AUTO_DIM), "E041",
                      "@auto_dim has %zu indices but '%s' has %zu dim%s to grow", list->n,
                      v->name.text, v->dims.n, v->dims.n == 1 ? "" : "s");
    else if (first && !v->table) {
        oi_diag_error(c->d, oi_check_at_var(c, v, v->indices.at[0].span), "E018",
                      "index '%s' is not in @auto_dim and there is no @table",
                      v->indices.at[0].text);
        oi_diag_hint(c->d, "write @table @auto_dim(…)");
    }
}

static void bounds(const oi_checker *c, const oi_var *v, oi_decl_attr which, const oi_bounds *list)
{
    oi_names names = {0};
    for (size_t i = 0; i < list->n && i <= OI_MAX_RANK; i++) {
        *OI_PUSH(c->a, &names) = list->at[i].index;
        named_index(c, v, which, &names, i);
        size(c, v, NULL, list->at[i].limit, "a limit");
    }
}

/* An index that is exact cannot also grow up to a cap. */
static void both_bounds(const oi_checker *c, const oi_var *v)
{
    for (size_t i = 0; i < v->cap.n && i <= OI_MAX_RANK; i++)
        for (size_t k = 0; k < v->fixed.n && k <= OI_MAX_RANK; k++)
            if (strcmp(v->cap.at[i].index.text, v->fixed.at[k].index.text) == 0)
                oi_diag_error(c->d, oi_check_at_var(c, v, v->cap.at[i].index.span), "E017",
                              "index '%s' has both @fixed and @cap", v->cap.at[i].index.text);
}

/* -- patterns -- */

static void bad_pattern(const oi_checker *c, const oi_var *v, const char *why)
{
    oi_diag_error(c->d, at_attr(c, v, OI_AT_PATTERN), "E043", "pattern \"%s\": %s", v->pattern,
                  why);
}

/* One placeholder, p behind its '{'. Returns what follows, or NULL after an error. */
static const char *placeholder(const oi_checker *c, const oi_var *v, const char *p, uint32_t *seen)
{
    size_t n = strcspn(p, "{}");
    if (p[n] != '}') {
        bad_pattern(c, v, "'{' without '}' (write {{ for a brace)");
        return NULL;
    }
    for (size_t i = 0; i < v->indices.n; i++) {
        const char *name = v->indices.at[i].text;
        if (strlen(name) == n && memcmp(name, p, n) == 0) {
            *seen |= 1u << i;
            return p + n + 1;
        }
    }
    char *name = oi_arena_text(c->a, p, n);
    bad_pattern(c, v, oi_arena_printf(c->a, "'%s' is not an index of '%s'", name, v->name.text));
    oi_nearest near = oi_nearest_start(name);
    for (size_t i = 0; i < v->indices.n; i++)
        oi_nearest_offer(&near, v->indices.at[i].text);
    oi_check_hint(c, &near);
    return p + n + 1;
}

/* Placeholders are indices (E043); an index without one gives the same key always (W106). */
static void pattern(const oi_checker *c, const oi_var *v)
{
    uint32_t seen = 0; /* bit per index; there are at most OI_MAX_RANK */
    for (const char *p = v->pattern; *p;) {
        if ((p[0] == '{' || p[0] == '}') && p[1] == p[0]) {
            p += 2;
        } else if (*p == '}') {
            bad_pattern(c, v, "'}' without '{' (write }} for a brace)");
            return;
        } else if (*p != '{') {
            p++;
        } else if (!(p = placeholder(c, v, p + 1, &seen)) || oi_check_stop(c)) {
            return;
        }
    }
    for (size_t i = 0; i < v->indices.n; i++)
        if (!(seen >> i & 1) && !repeated(&v->indices, i))
            oi_diag_warn(c->d, oi_check_at_var(c, v, v->indices.at[i].span), "W106",
                         "index '%s' does not occur in the pattern", v->indices.at[i].text);
}

/* -- attributes for the synthesizer -- */

/* @layout("row_major"): programs read the tensor as the package holds it, without a packed copy. */
static void layout(const oi_checker *c, const oi_var *v, const oi_extra_attr *a)
{
    oi_place at = oi_check_at_var(c, v, a->name.span);
    const oi_attr *arg = a->args.n == 1 ? &a->args.at[0] : NULL;
    if (v->kind != OI_VOLATILE && v->kind != OI_CONSTANT) {
        oi_diag_error(c->d, at, "E018", "@layout is for tensors of the model; '%s' is %s",
                      v->name.text, oi_var_kind_name(v->kind));
    } else if (!arg || arg->name.text || arg->value.kind != OI_VAL_STR) {
        oi_diag_error(c->d, at, "E024", "@layout takes one text: @layout(\"row_major\")");
    } else if (strcmp(arg->value.text, OI_LAYOUT_ROW_MAJOR) != 0) {
        oi_diag_error(c->d, at, "E024",
                      "@layout(\"%s\"): a tensor lies row-major, and ops give its axes "
                      "their meaning",
                      arg->value.text);
        oi_diag_hint(c->d, "store it transposed, or write op transpose or transpose_b=true");
    }
}

/* Attributes that request quantisation elsewhere. */
static bool is_quantisation(const char *name)
{
    static const char *const names[] = {"quant",     "quantize",     "quantise",    "quantized",
                                        "quantised", "quantization", "quantisation"};
    for (size_t i = 0; i < OI_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static void unknown_attr(const oi_checker *c, const oi_var *v, const oi_name *name)
{
    oi_diag_error(c->d, oi_check_at_var(c, v, name->span), "E019", "unknown attribute @%s",
                  name->text);
    oi_nearest near = oi_nearest_start(name->text);
    for (int k = 0; k < OI_AT_COUNT; k++)
        oi_nearest_offer(&near, oi_decl_attr_names[k]);
    oi_nearest_offer(&near, OI_ATTR_LAYOUT);
    if (near.best)
        oi_diag_hint(c->d, "did you mean '@%s'?", near.best);
}

/* Attributes that the grammar keeps as they are: one that nothing acts on is refused. */
static void other_attrs(const oi_checker *c, const oi_var *v)
{
    bool has_layout = false;
    for (size_t i = 0; i < v->extra.n && !oi_check_stop(c); i++) {
        const oi_name *name = &v->extra.at[i].name;
        oi_place at = oi_check_at_var(c, v, name->span);
        if (strcmp(name->text, OI_ATTR_LAYOUT) == 0 && has_layout) {
            oi_diag_error(c->d, at, "E017", "@layout is given twice");
        } else if (strcmp(name->text, OI_ATTR_LAYOUT) == 0) {
            has_layout = true;
            layout(c, v, &v->extra.at[i]);
        } else if (is_quantisation(name->text)) {
            oi_diag_error(c->d, at, "E025", "@%s: attributes change no result, and quantising does",
                          name->text);
            oi_diag_hint(c->d,
                         "store the tensor quantised and read it with qlinear, qmatmul, qconv "
                         "or dequantize");
        } else {
            unknown_attr(c, v, name);
        }
    }
}

bool oi_var_is_row_major(const oi_var *v)
{
    for (size_t i = 0; v && i < v->extra.n; i++)
        if (strcmp(v->extra.at[i].name.text, OI_ATTR_LAYOUT) == 0)
            return true;
    return false;
}

/* -- the declaration -- */

void oi_check_var(const oi_checker *c, const oi_var *v)
{
    dims(c, v, NULL, &v->dims);
    placement(c, v);
    other_attrs(c, v);
    if (!v->indices.n || !indices(c, v))
        return;
    if (v->pattern)
        pattern(c, v);
    if (v->kind != OI_PERSISTENT)
        return;
    auto_dim(c, v);
    bounds(c, v, OI_AT_FIXED, &v->fixed);
    bounds(c, v, OI_AT_CAP, &v->cap);
    both_bounds(c, v);
    if (!v->table && !v->auto_dim.n)
        oi_diag_warn(c->d, oi_check_at_var(c, v, v->name.span), "W104",
                     "'%s' has indices but neither @table nor @auto_dim: taken as @table",
                     v->name.text);
}
