/* json_read.c: JSON -> Graph (spec/graph-json.md §1). Readers accept any key order, unknown keys
 * are warned about, and every complaint carries the JSON pointer of its place. Values and accesses
 * are in json_value.c. */
#include "graph/json_read.h"

/* -- places and kinds -- */

static void pointer_text(oi_buf *b, const oi_at *at)
{
    if (!at || !at->up)
        return;
    pointer_text(b, at->up); /* as deep as the JSON, which is at most OI_JSON_DEPTH */
    if (at->key)
        oi_pointer_add(b, at->key);
    else
        oi_buf_printf(b, "/%zu", at->index);
}

const char *oi_read_pointer(oi_json_reader *r, const oi_at *at)
{
    oi_buf b = {0};
    pointer_text(&b, at);
    char *text = oi_buf_to_arena(&b, r->g->arena);
    return text[0] ? text : "/";
}

static oi_place place_of(oi_json_reader *r, const oi_at *at)
{
    return (oi_place){.file = r->g->origin, .pointer = oi_read_pointer(r, at)};
}

void oi_read_error(oi_json_reader *r, const oi_at *at, const char *code, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    oi_diag_error(r->diag, place_of(r, at), code, "%s", text);
    r->failed = true;
}

const char *oi_read_kind(struct json_object *j)
{
    switch (json_object_get_type(j)) {
    case json_type_null: return "null";
    case json_type_boolean: return "a boolean";
    case json_type_double: return "a number";
    case json_type_int: return "an integer";
    case json_type_object: return "an object";
    case json_type_array: return "an array";
    default: return "a string";
    }
}

bool oi_read_expect(oi_json_reader *r, const oi_at *at, struct json_object *j, int type,
                    const char *wanted)
{
    if (json_object_is_type(j, (enum json_type)type))
        return true;
    oi_read_error(r, at, "E001", "expected %s, found %s", wanted, oi_read_kind(j));
    return false;
}

/* -- fields -- */

struct json_object *oi_read_field(struct json_object *j, const char *key)
{
    struct json_object *v = NULL;
    return json_object_object_get_ex(j, key, &v) ? v : NULL;
}

static bool has_field(struct json_object *j, const char *key)
{
    return json_object_object_get_ex(j, key, NULL);
}

/* Warns about keys outside the NULL-terminated list. */
void oi_read_known(oi_json_reader *r, const oi_at *at, struct json_object *j,
                   const char *const *known)
{
    json_object_object_foreach(j, key, val)
    {
        (void)val;
        const char *const *k = known;
        oi_nearest near = oi_nearest_start(key);
        while (*k && strcmp(*k, key) != 0)
            oi_nearest_offer(&near, *k++);
        if (*k)
            continue;
        oi_at here = {at, key, 0};
        oi_diag_warn(r->diag, place_of(r, &here), "W112", "unknown key '%s' is ignored", key);
        if (near.best)
            oi_diag_hint(r->diag, "did you mean '%s'?", near.best);
        if (!r->g->unknown_key)
            r->g->unknown_key = oi_read_pointer(r, &here);
    }
}

static oi_name name_of(oi_json_reader *r, const oi_at *at, struct json_object *j)
{
    oi_name n = {.text = ""};
    if (!oi_read_expect(r, at, j, json_type_string, "a name"))
        return n;
    const char *s = json_object_get_string(j);
    if (!oi_is_name(s) || strlen(s) != (size_t)json_object_get_string_len(j))
        oi_read_error(r, at, "E001", "'%.80s' is not a name", s);
    n.text = oi_graph_intern(r->g, s, strlen(s));
    return n;
}

oi_name oi_read_name(oi_json_reader *r, const oi_at *up, struct json_object *j, const char *key)
{
    oi_at at = {up, key, 0};
    if (!has_field(j, key)) {
        oi_read_error(r, up, "E001", "'%s' is missing", key);
        return (oi_name){.text = ""};
    }
    return name_of(r, &at, oi_read_field(j, key));
}

/* null or absent -> text NULL */
static oi_name optional_name(oi_json_reader *r, const oi_at *up, struct json_object *j,
                             const char *key)
{
    return oi_read_field(j, key) ? oi_read_name(r, up, j, key) : (oi_name){0};
}

static void names(oi_json_reader *r, const oi_at *up, struct json_object *j, const char *key,
                  oi_names *out)
{
    oi_at at = {up, key, 0};
    struct json_object *list = oi_read_field(j, key);
    if (!list || !oi_read_expect(r, &at, list, json_type_array, "an array of names"))
        return;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        oi_at item = {&at, NULL, i};
        oi_name n = name_of(r, &item, json_object_array_get_idx(list, i));
        *OI_PUSH(r->g->arena, out) = n;
    }
}

bool oi_read_u64(oi_json_reader *r, const oi_at *at, struct json_object *j, uint64_t *out)
{
    uint64_t u = json_object_get_uint64(j);
    bool ok =
        json_object_is_type(j, json_type_int) && (json_object_get_int64(j) >= 0 || u > INT64_MAX);
    if (!ok)
        oi_read_error(r, at, "E001", "expected a non-negative integer, found %s", oi_read_kind(j));
    *out = u;
    return ok;
}

static oi_dtype dtype(oi_json_reader *r, const oi_at *up, struct json_object *j)
{
    oi_at at = {up, "dtype", 0};
    struct json_object *v = oi_read_field(j, "dtype");
    if (!v) {
        oi_read_error(r, up, "E001", "'dtype' is missing");
        return OI_F32;
    }
    return oi_read_dtype(r, &at, v);
}

static bool boolean(oi_json_reader *r, const oi_at *up, struct json_object *j, const char *key)
{
    oi_at at = {up, key, 0};
    struct json_object *v = oi_read_field(j, key);
    return v && oi_read_expect(r, &at, v, json_type_boolean, "true or false") &&
           json_object_get_boolean(v);
}

static const oi_expr *dim(oi_json_reader *r, const oi_at *at, struct json_object *j)
{
    return oi_read_expr(r, at, j, true);
}

static void dims(oi_json_reader *r, const oi_at *up, struct json_object *j, oi_exprs *out)
{
    oi_at at = {up, "dims", 0};
    struct json_object *list = oi_read_field(j, "dims");
    if (!list) {
        oi_read_error(r, up, "E001", "'dims' is missing");
        return;
    }
    if (!oi_read_expect(r, &at, list, json_type_array, "an array of dims"))
        return;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        oi_at item = {&at, NULL, i};
        *OI_PUSH(r->g->arena, out) = dim(r, &item, json_object_array_get_idx(list, i));
    }
}

/* -- variables -- */

static void bound(oi_json_reader *r, const oi_at *at, const char *index, struct json_object *limit,
                  oi_bounds *out)
{
    if (!oi_is_name(index))
        oi_read_error(r, at, "E001", "'%.80s' is not a name", index);
    oi_bound b = {.index = {.text = oi_graph_intern(r->g, index, strlen(index))}};
    b.limit = oi_read_expr(r, at, limit, false);
    *OI_PUSH(r->g->arena, out) = b;
}

/* [["i", 4], …] or {"i": 4, …} */
static void bounds(oi_json_reader *r, const oi_at *up, struct json_object *j, const char *key,
                   oi_bounds *out)
{
    oi_at at = {up, key, 0};
    struct json_object *list = oi_read_field(j, key);
    if (!list)
        return;
    if (json_object_is_type(list, json_type_object)) {
        json_object_object_foreach(list, index, limit)
        {
            oi_at item = {&at, index, 0};
            bound(r, &item, index, limit, out);
        }
        return;
    }
    if (!oi_read_expect(r, &at, list, json_type_array, "an array of [name, limit] pairs"))
        return;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        oi_at item = {&at, NULL, i};
        struct json_object *pair = json_object_array_get_idx(list, i);
        if (!json_object_is_type(pair, json_type_array) || json_object_array_length(pair) != 2 ||
            !json_object_is_type(json_object_array_get_idx(pair, 0), json_type_string))
            oi_read_error(r, &item, "E001", "expected a [name, limit] pair");
        else
            bound(r, &item, json_object_get_string(json_object_array_get_idx(pair, 0)),
                  json_object_array_get_idx(pair, 1), out);
    }
}

static const char *text(oi_json_reader *r, const oi_at *up, struct json_object *j, const char *key)
{
    oi_at at = {up, key, 0};
    struct json_object *v = oi_read_field(j, key);
    if (!v || !oi_read_expect(r, &at, v, json_type_string, "a string or null"))
        return NULL;
    const char *s = json_object_get_string(v);
    if (strlen(s) != (size_t)json_object_get_string_len(v))
        oi_read_error(r, &at, "E001", "the text contains a NUL");
    return oi_graph_intern(r->g, s, strlen(s));
}

static void extra_attrs(oi_json_reader *r, const oi_at *up, struct json_object *j, oi_var *v)
{
    static const char *const known[] = {"name", "args", NULL};
    oi_at at = {up, "extra_attrs", 0};
    struct json_object *list = oi_read_field(j, "extra_attrs");
    if (!list || !oi_read_expect(r, &at, list, json_type_array, "an array of attributes"))
        return;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        oi_at item = {&at, NULL, i};
        struct json_object *a = json_object_array_get_idx(list, i);
        if (!oi_read_expect(r, &item, a, json_type_object, "an attribute object"))
            continue;
        oi_read_known(r, &item, a, known);
        oi_extra_attr e = {.name = oi_read_name(r, &item, a, "name")};
        oi_at args = {&item, "args", 0};
        oi_read_attrs(r, &args, oi_read_field(a, "args"), NULL, &e.args);
        *OI_PUSH(r->g->arena, &v->extra) = e;
    }
}

static oi_var_kind var_kind(oi_json_reader *r, const oi_at *up, struct json_object *j)
{
    oi_at at = {up, "kind", 0};
    struct json_object *k = oi_read_field(j, "kind");
    const char *s = k && json_object_is_type(k, json_type_string) ? json_object_get_string(k) : "";
    for (int i = OI_DYNAMIC; i <= OI_PERSISTENT; i++)
        if (strcmp(s, oi_var_kind_json[i]) == 0)
            return (oi_var_kind)i;
    oi_read_error(r, k ? &at : up, "E001",
                  "expected Dynamic, Volatile, Constant or Persistent as kind");
    return OI_DYNAMIC;
}

static void check_inner_name(oi_json_reader *r, const oi_at *at, const char *key, oi_name name)
{
    if (name.text[0] && strcmp(key, name.text) != 0)
        oi_read_error(r, at, "E001", "the name '%s' differs from the key '%s'", name.text, key);
}

static void var(oi_json_reader *r, const oi_at *at, const char *key, struct json_object *j)
{
    static const char *const known[] = {"name",     "kind",        "dtype",         "dims",  "init",
                                        "ref_name", "pattern",     "table",         "fixed", "cap",
                                        "auto_dim", "extra_attrs", "table_indices", NULL};
    if (!oi_read_expect(r, at, j, json_type_object, "a variable object"))
        return;
    oi_read_known(r, at, j, known);
    oi_var v = {.name = oi_read_name(r, at, j, "name"), .kind = var_kind(r, at, j)};
    check_inner_name(r, at, key, v.name);
    v.dtype = dtype(r, at, j);
    dims(r, at, j, &v.dims);
    oi_at init = {at, "init", 0};
    if (oi_read_field(j, "init"))
        v.has_init = oi_read_scalar(r, &init, oi_read_field(j, "init"), v.dtype, &v.init);
    v.ref_name = text(r, at, j, "ref_name");
    v.pattern = text(r, at, j, "pattern");
    v.table = boolean(r, at, j, "table");
    names(r, at, j, "table_indices", &v.indices);
    names(r, at, j, "auto_dim", &v.auto_dim);
    bounds(r, at, j, "fixed", &v.fixed);
    bounds(r, at, j, "cap", &v.cap);
    extra_attrs(r, at, j, &v);
    oi_graph_add_var(r->g, &v);
}

/* -- nodes -- */

static void nodes(oi_json_reader *r, const oi_at *up, struct json_object *j, const char *key,
                  uint32_t block, uint32_t parent, unsigned depth);

static void ref(oi_json_reader *r, const oi_at *up, struct json_object *j, const char *key,
                oi_access *out)
{
    oi_at at = {up, key, 0};
    if (!has_field(j, key))
        oi_read_error(r, up, "E001", "'%s' is missing", key);
    else
        oi_read_ref(r, &at, oi_read_field(j, key), out);
}

static void refs(oi_json_reader *r, const oi_at *up, struct json_object *j, const char *key,
                 oi_accesses *out)
{
    oi_at at = {up, key, 0};
    struct json_object *list = oi_read_field(j, key);
    if (!list || !oi_read_expect(r, &at, list, json_type_array, "an array of references"))
        return;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        oi_at item = {&at, NULL, i};
        oi_access a = {.base.text = ""};
        oi_read_ref(r, &item, json_object_array_get_idx(list, i), &a);
        *OI_PUSH(r->g->arena, out) = a;
    }
}

static void access(oi_json_reader *r, const oi_at *up, struct json_object *j, const char *key,
                   oi_access *out)
{
    oi_at at = {up, key, 0};
    if (!has_field(j, key))
        oi_read_error(r, up, "E001", "'%s' is missing", key);
    else
        oi_read_access(r, &at, oi_read_field(j, key), out);
}

static void op(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_node *n)
{
    static const char *const known[] = {"op", "attrs", "inputs", "output", "outputs", NULL};
    static const char *const items[] = {"items", NULL};
    oi_read_known(r, at, j, known);
    n->name = oi_read_name(r, at, j, "op");
    refs(r, at, j, "inputs", &n->as.op.inputs);
    oi_access first = {.base.text = ""};
    ref(r, at, j, "output", &first);
    if (oi_read_field(j, "outputs"))
        refs(r, at, j, "outputs", &n->as.op.outputs);
    if (!n->as.op.outputs.n)
        *OI_PUSH(r->g->arena, &n->as.op.outputs) = first;
    oi_at attrs = {at, "attrs", 0}, list = {&attrs, "items", 0};
    struct json_object *a = oi_read_field(j, "attrs");
    if (!a || !oi_read_expect(r, &attrs, a, json_type_object, "an object with 'items'"))
        return;
    oi_read_known(r, &attrs, a, items);
    oi_read_attrs(r, &list, oi_read_field(a, "items"), n->name.text, &n->as.op.attrs);
}

static oi_name dep_target(oi_json_reader *r, const oi_at *up, struct json_object *j,
                          const char *key)
{
    struct json_object *v = oi_read_field(j, key);
    const char *s = v && json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";
    const char *word = strncmp(s, "cache.", 6) == 0 ? s + 6 : s;
    if (!oi_is_name(word))
        oi_read_error(r, up, "E001", "'%s' must be an op name or a node kind", key);
    return (oi_name){.text = oi_graph_intern(r->g, s, strlen(s))};
}

static void count(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_node *n)
{
    static const char *const known[] = {"target", "amount", "amount_var", NULL};
    oi_read_known(r, at, j, known);
    oi_at amount = {at, "amount", 0};
    n->as.move.to.base = oi_read_name(r, at, j, "target");
    n->as.move.amount_name = optional_name(r, at, j, "amount_var");
    n->as.move.amount = 1;
    if (oi_read_field(j, "amount") && !n->as.move.amount_name.text)
        oi_read_u64(r, &amount, oi_read_field(j, "amount"), &n->as.move.amount);
}

static void branch(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_node *n)
{
    static const char *const known[] = {"cond", "then_block", "else_block", NULL};
    oi_read_known(r, at, j, known);
    n->as.branch.cond = optional_name(r, at, j, "cond");
    n->as.branch.then_block = oi_read_name(r, at, j, "then_block");
    n->as.branch.else_block = optional_name(r, at, j, "else_block");
    if (!n->as.branch.cond.text != !n->as.branch.else_block.text)
        oi_read_error(r, at, "E003", "'cond' and 'else_block' come together or not at all");
}

static void loop(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_node *n)
{
    static const char *const known[] = {"name", "index", "start", "end", "body", NULL};
    oi_read_known(r, at, j, known);
    n->name = oi_read_name(r, at, j, "name");
    n->as.loop.index = oi_read_name(r, at, j, "index");
    oi_at start = {at, "start", 0}, end = {at, "end", 0};
    n->as.loop.start = oi_read_expr(r, &start, oi_read_field(j, "start"), false);
    n->as.loop.end = oi_read_expr(r, &end, oi_read_field(j, "end"), false);
}

static void moves(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_node *n)
{
    static const char *const known[] = {"src", "dst", NULL};
    oi_read_known(r, at, j, known);
    (n->kind == OI_NODE_CACHE_READ ? access : ref)(r, at, j, "src", &n->as.move.from);
    (n->kind == OI_NODE_CACHE_WRITE ? access : ref)(r, at, j, "dst", &n->as.move.to);
}

static void node_fields(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_node *n)
{
    static const char *const assign_keys[] = {"name", "dtype", "dims", NULL};
    static const char *const dep_keys[] = {"after", "before", NULL};
    static const char *const vars[] = {"vars", NULL};
    static const char *const values[] = {"values", NULL};
    static const char *const target[] = {"target", NULL};
    switch (n->kind) {
    case OI_NODE_ASSIGN:
        oi_read_known(r, at, j, assign_keys);
        n->name = oi_read_name(r, at, j, "name");
        n->as.assign.dtype = dtype(r, at, j);
        dims(r, at, j, &n->as.assign.dims);
        break;
    case OI_NODE_OP: op(r, at, j, n); break;
    case OI_NODE_BRANCH: branch(r, at, j, n); break;
    case OI_NODE_DEP:
        oi_read_known(r, at, j, dep_keys);
        n->as.dep.after = dep_target(r, at, j, "after");
        n->as.dep.before = dep_target(r, at, j, "before");
        break;
    case OI_NODE_CACHE_READ:
    case OI_NODE_CACHE_WRITE:
    case OI_NODE_TRANSFER: moves(r, at, j, n); break;
    case OI_NODE_CACHE_RESET:
        oi_read_known(r, at, j, target);
        access(r, at, j, "target", &n->as.move.to);
        break;
    case OI_NODE_CACHE_INCREMENT:
    case OI_NODE_CACHE_DECREMENT: count(r, at, j, n); break;
    case OI_NODE_LOOP: loop(r, at, j, n); break;
    case OI_NODE_YIELD:
    case OI_NODE_AWAIT:
        oi_read_known(r, at, j, vars);
        names(r, at, j, "vars", &n->as.list.names);
        if (!n->as.list.names.n)
            oi_read_error(r, at, "E001", "'vars' must name at least one variable");
        break;
    default: oi_read_known(r, at, j, values); names(r, at, j, "values", &n->as.list.names);
    }
}

/* "Barrier", {"Barrier": null} or {"Op": {…}}; gives the fields, NULL for a unit kind. */
static bool node_kind(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_node_kind *out,
                      const char **tag, struct json_object **fields)
{
    *fields = NULL;
    *tag = NULL;
    if (json_object_is_type(j, json_type_string)) {
        *tag = json_object_get_string(j);
    } else if (json_object_is_type(j, json_type_object) && json_object_object_length(j) == 1) {
        json_object_object_foreach(j, key, val)
        {
            *tag = key;
            *fields = val;
        }
    }
    for (int k = 0; *tag && k < OI_NODE_KIND_COUNT; k++) {
        if (strcmp(*tag, oi_node_table[k].json) != 0)
            continue;
        *out = (oi_node_kind)k;
        bool is_unit = k == OI_NODE_BARRIER || k == OI_NODE_RETURN;
        if (is_unit && !*fields)
            return true;
        oi_at inner = {at, *tag, 0};
        return oi_read_expect(r, &inner, *fields, json_type_object, "the fields of the node");
    }
    oi_nearest near = oi_nearest_start(*tag ? *tag : "");
    for (int k = 0; *tag && k < OI_NODE_KIND_COUNT; k++)
        oi_nearest_offer(&near, oi_node_table[k].json);
    oi_read_error(r, at, "E001", "expected one node kind, found %s%.40s",
                  *tag ? "" : oi_read_kind(j), *tag ? *tag : "");
    if (near.best)
        oi_diag_hint(r->diag, "did you mean '%s'?", near.best);
    return false;
}

/* index, uuid, span, hints: what every node has */
static void node_common(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_node *n)
{
    static const char *const known[] = {"index", "uuid", "kind", "hints", "span", NULL};
    oi_read_known(r, at, j, known);
    oi_at index = {at, "index", 0}, uuid = {at, "uuid", 0}, span = {at, "span", 0};
    if (!has_field(j, "index"))
        oi_read_error(r, at, "E001", "'index' is missing");
    else if (oi_read_u64(r, &index, oi_read_field(j, "index"), &n->index) && n->index == UINT64_MAX)
        oi_read_error(r, &index, "E001", "the index is too large");
    struct json_object *u = oi_read_field(j, "uuid"), *s = oi_read_field(j, "span");
    if (!u)
        oi_uuid_random(&r->g->uuid_state, n->uuid);
    else if (!json_object_is_type(u, json_type_string) ||
             !oi_uuid_parse(json_object_get_string(u), n->uuid))
        oi_read_error(r, &uuid, "E001", "expected a uuid as 8-4-4-4-12 hex digits");
    if (s && json_object_is_type(s, json_type_array) && json_object_array_length(s) == 2) {
        int64_t line = json_object_get_int64(json_object_array_get_idx(s, 0));
        int64_t col = json_object_get_int64(json_object_array_get_idx(s, 1));
        if (line > 0 && line < INT32_MAX && col > 0 && col < INT32_MAX)
            n->span = (oi_span){(uint32_t)line, (uint32_t)col, 1};
    }
    if (s && !n->span.line)
        oi_read_error(r, &span, "E001", "expected [line, column]");
    oi_at hints = {at, "hints", 0};
    if (oi_read_field(j, "hints"))
        oi_read_hints(r, &hints, oi_read_field(j, "hints"), &n->hints);
}

static void node(oi_json_reader *r, const oi_at *at, struct json_object *j, uint32_t block,
                 uint32_t parent, unsigned depth)
{
    if (!oi_read_expect(r, at, j, json_type_object, "a node object"))
        return;
    oi_node n = {.block = block, .parent = parent};
    const char *tag;
    struct json_object *fields;
    oi_at kind = {at, "kind", 0};
    node_common(r, at, j, &n);
    if (!node_kind(r, &kind, oi_read_field(j, "kind"), &n.kind, &tag, &fields))
        return;
    oi_at inner = {&kind, tag, 0};
    if (fields)
        node_fields(r, &inner, fields, &n);
    if (n.kind == OI_NODE_LOOP && depth >= OI_MAX_LOOP_DEPTH) {
        oi_read_error(r, &inner, "E001", "loops are nested more than %u deep", OI_MAX_LOOP_DEPTH);
        return;
    }
    uint32_t id = oi_graph_add_node(r->g, &n);
    if (n.index >= r->g->next_index)
        r->g->next_index = n.index + 1;
    if (n.kind == OI_NODE_LOOP)
        nodes(r, &inner, fields, "body", block, id, depth + 1);
}

static void nodes(oi_json_reader *r, const oi_at *up, struct json_object *j, const char *key,
                  uint32_t block, uint32_t parent, unsigned depth)
{
    oi_at at = {up, key, 0};
    struct json_object *list = oi_read_field(j, key);
    if (!list) {
        oi_read_error(r, up, "E001", "'%s' is missing", key);
        return;
    }
    if (!oi_read_expect(r, &at, list, json_type_array, "an array of nodes"))
        return;
    for (size_t i = 0; i < json_object_array_length(list) && !oi_diag_full(r->diag); i++) {
        oi_at item = {&at, NULL, i};
        node(r, &item, json_object_array_get_idx(list, i), block, parent, depth);
    }
}

static void block(oi_json_reader *r, const oi_at *at, const char *key, struct json_object *j)
{
    static const char *const known[] = {"name", "nodes", NULL};
    if (!oi_read_expect(r, at, j, json_type_object, "a block object"))
        return;
    oi_read_known(r, at, j, known);
    oi_block b = {.name = oi_read_name(r, at, j, "name")};
    check_inner_name(r, at, key, b.name);
    uint32_t id = oi_graph_add_block(r->g, &b);
    nodes(r, at, j, "nodes", id, OI_NO_ID, 0);
}

/* -- the graph -- */

typedef void read_entry(oi_json_reader *r, const oi_at *at, const char *key, struct json_object *j);

/* Default order: `entry` first (blocks), then by name. */
static void in_name_order(oi_json_reader *r, const oi_at *at, struct json_object *j,
                          read_entry *read)
{
    OI_VEC(const char *) keys = {0};
    json_object_object_foreach(j, key, val)
    {
        (void)val;
        *OI_PUSH(r->g->arena, &keys) = key;
    }
    oi_read_sort_names(keys.at, keys.n, read == block);
    for (size_t i = 0; i < keys.n && !oi_diag_full(r->diag); i++) {
        oi_at item = {at, keys.at[i], 0};
        read(r, &item, keys.at[i], oi_read_field(j, keys.at[i]));
    }
}

static void in_given_order(oi_json_reader *r, const oi_at *at, struct json_object *j,
                           const char *order_key, struct json_object *order, read_entry *read)
{
    oi_at here = {at->up, order_key, 0};
    oi_map seen = {.arena = r->g->arena};
    if (!oi_read_expect(r, &here, order, json_type_array, "an array of names"))
        return;
    size_t n = json_object_array_length(order);
    for (size_t i = 0; i < n && !oi_diag_full(r->diag); i++) {
        oi_at item = {&here, NULL, i};
        oi_name name = name_of(r, &item, json_object_array_get_idx(order, i));
        oi_at entry = {at, name.text, 0};
        if (!has_field(j, name.text))
            oi_read_error(r, &item, "E001", "'%s' is not there", name.text);
        else if (oi_map_put(&seen, name.text, (uint32_t)i) != i)
            oi_read_error(r, &item, "E010", "'%s' is listed twice", name.text);
        else
            read(r, &entry, name.text, oi_read_field(j, name.text));
    }
    if (!r->failed && n != (size_t)json_object_object_length(j))
        oi_read_error(r, &here, "E001", "the order lists %zu names of %d", n,
                      json_object_object_length(j));
}

static void entries(oi_json_reader *r, const oi_at *root, struct json_object *j, const char *key,
                    const char *order_key, read_entry *read)
{
    oi_at at = {root, key, 0};
    struct json_object *all = oi_read_field(j, key), *order = oi_read_field(j, order_key);
    if (!all)
        oi_read_error(r, root, "E001", "'%s' is missing", key);
    else if (!oi_read_expect(r, &at, all, json_type_object, "an object by name"))
        return;
    else if (order)
        in_given_order(r, &at, all, order_key, order, read);
    else
        in_name_order(r, &at, all, read);
}

static void unique_nodes(oi_json_reader *r, const oi_at *root)
{
    oi_map seen = {.arena = r->g->arena};
    for (size_t i = 0; i < r->g->nodes.n; i++) {
        char uuid[OI_UUID_TEXT];
        const oi_node *n = &r->g->nodes.at[i];
        oi_uuid_print(n->uuid, uuid);
        const char *index = oi_arena_printf(r->g->arena, "%llu", (unsigned long long)n->index);
        const char *key = oi_arena_text(r->g->arena, uuid, strlen(uuid));
        if (oi_map_put(&seen, index, (uint32_t)i) != i)
            oi_read_error(r, root, "E010", "two nodes have the index %s", index);
        if (oi_map_put(&seen, key, (uint32_t)i) != i)
            oi_read_error(r, root, "E010", "two nodes have the uuid %s", uuid);
    }
}

static void header(oi_json_reader *r, const oi_at *root, struct json_object *j)
{
    static const char *const known[] = {"blocks",      "next_index", "vars",
                                        "block_order", "var_order",  "format",
                                        "version",     "source",     NULL};
    oi_read_known(r, root, j, known);
    oi_at format = {root, "format", 0}, version = {root, "version", 0};
    struct json_object *f = oi_read_field(j, "format"), *v = oi_read_field(j, "version");
    if (f && strcmp(json_object_get_string(f), "openinfer.graph") != 0)
        oi_read_error(r, &format, "E001", "expected \"openinfer.graph\"");
    uint64_t number = 1;
    if (v && oi_read_u64(r, &version, v, &number) && number != 1)
        oi_read_error(r, &version, "E001", "version %llu is newer than this reader (1)",
                      (unsigned long long)number);
    /* a graph only says where its text is from: messages name the file that was read, too */
    r->g->made_from = text(r, root, j, "source");
    if (r->g->made_from && strcmp(r->g->made_from, r->g->origin) != 0)
        r->g->origin = oi_arena_printf(r->g->arena, "%s (from %s)", r->g->origin, r->g->made_from);
}

void oi_read_graph(oi_json_reader *r, struct json_object *j)
{
    oi_at root = {NULL, NULL, 0}, next = {&root, "next_index", 0};
    if (!oi_read_expect(r, &root, j, json_type_object, "a graph object"))
        return;
    header(r, &root, j);
    entries(r, &root, j, "vars", "var_order", var);
    entries(r, &root, j, "blocks", "block_order", block);
    uint64_t given = 0;
    struct json_object *n = oi_read_field(j, "next_index");
    if (n && oi_read_u64(r, &next, n, &given)) {
        if (given < r->g->next_index)
            oi_read_error(r, &next, "E001", "must be greater than every node index");
        r->g->next_index = given;
    }
    if (!r->failed)
        unique_nodes(r, &root);
}
