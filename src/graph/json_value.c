/* json_value.c: JSON -> scalars, attribute values, expressions and accesses. */
#include "graph/json_read.h"

#include <math.h>
#include <stdlib.h>

oi_dtype oi_read_dtype(oi_json_reader *r, const oi_at *at, struct json_object *j)
{
    if (!oi_read_expect(r, at, j, json_type_string, "an element type such as \"F32\""))
        return OI_F32;
    oi_dtype t = oi_dtype_find_json(json_object_get_string(j));
    if (t == OI_NONE) {
        oi_read_error(r, at, "E001", "'%.40s' is not an element type", json_object_get_string(j));
        return OI_F32;
    }
    return t;
}

/* -- numbers -- */

static void int_value(struct json_object *j, oi_value *out)
{
    int64_t i = json_object_get_int64(j);
    *out = (oi_value){.kind = OI_VAL_INT, .negative = i < 0};
    out->magnitude = i < 0 ? 0 - (uint64_t)i : json_object_get_uint64(j);
}

/* A float: number, integer, or "inf" "-inf" "nan". */
static bool float_value(struct json_object *j, oi_value *out)
{
    *out = (oi_value){.kind = OI_VAL_FLOAT};
    if (json_object_is_type(j, json_type_double)) {
        out->number = oi_json_f64(j);
    } else if (json_object_is_type(j, json_type_int)) {
        oi_value i;
        int_value(j, &i);
        out->number = i.negative ? -(double)i.magnitude : (double)i.magnitude;
    } else if (json_object_is_type(j, json_type_string)) {
        const char *s = json_object_get_string(j);
        out->number = strcmp(s, "inf") == 0 ? INFINITY : strcmp(s, "-inf") == 0 ? -INFINITY : NAN;
        return out->number == out->number || strcmp(s, "nan") == 0;
    } else {
        return false;
    }
    return true;
}

/* Integers also as decimal strings: some writers fear for 64-bit numbers. */
static bool int_text(struct json_object *j, oi_value *out)
{
    if (json_object_is_type(j, json_type_int)) {
        int_value(j, out);
        return true;
    }
    if (!json_object_is_type(j, json_type_string))
        return false;
    const char *s = json_object_get_string(j);
    *out = (oi_value){.kind = OI_VAL_INT, .negative = *s == '-'};
    s += *s == '-';
    if (!oi_parse_u64(s, strlen(s), 10, &out->magnitude) ||
        (out->negative && out->magnitude > (uint64_t)INT64_MAX + 1))
        return false;
    out->negative = out->negative && out->magnitude;
    return true;
}

/* -- scalars -- */

/* {"bits": n}: the stored form of types without a JSON number */
static bool bits_value(oi_dtype t, struct json_object *j, oi_value *out)
{
    struct json_object *b = oi_read_field(j, "bits");
    unsigned width = oi_dtype_bits(t);
    if (!b || !json_object_is_type(b, json_type_int) || json_object_object_length(j) != 1)
        return false;
    uint64_t bits = json_object_get_uint64(b);
    if (json_object_get_int64(b) < 0 || (width < 64 && bits >> width))
        return false;
    if (oi_dtype_is_float(t)) {
        *out = (oi_value){.kind = OI_VAL_FLOAT, .number = oi_float_decode(t, bits)};
        return true;
    }
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
    int64_t v = oi_element_i64(t, bytes, 0);
    *out = (oi_value){.kind = OI_VAL_INT, .negative = v < 0};
    out->magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    return true;
}

/* The number under a dtype key. */
static bool typed_value(oi_json_reader *r, const oi_at *at, oi_dtype key, struct json_object *j,
                        oi_value *out)
{
    if (!j && oi_dtype_is_float(key)) {
        oi_place place = {.file = r->g->origin, .pointer = oi_read_pointer(r, at)};
        oi_diag_warn(r->diag, place, "", "null is read as inf");
        *out = (oi_value){.kind = OI_VAL_FLOAT, .number = INFINITY};
        return true;
    }
    if (json_object_is_type(j, json_type_object))
        return bits_value(key, j, out);
    if (oi_dtype_is_float(key))
        return float_value(j, out);
    if (key == OI_BOOL && json_object_is_type(j, json_type_boolean)) {
        *out = (oi_value){.kind = OI_VAL_BOOL, .boolean = json_object_get_boolean(j)};
        return true;
    }
    return int_text(j, out);
}

/* Was v kept exactly by its conversion to s? */
static bool is_exact(const oi_value *v, oi_scalar s)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(s.bits >> 8 * i);
    double stored = oi_element_f64(s.dtype, bytes, 0);
    if (v->kind == OI_VAL_FLOAT)
        return stored == v->number || (stored != stored && v->number != v->number);
    if (v->kind == OI_VAL_INT && oi_dtype_is_float(s.dtype))
        return fabs(stored) < 18446744073709551616.0 && (uint64_t)fabs(stored) == v->magnitude;
    return true; /* integers are range-checked */
}

/* A float that an integer variable can hold exactly. */
static void float_to_int(oi_value *v)
{
    if (v->kind != OI_VAL_FLOAT || !(fabs(v->number) < 9007199254740992.0) ||
        v->number != floor(v->number))
        return;
    double x = v->number;
    *v = (oi_value){.kind = OI_VAL_INT, .negative = x < 0, .magnitude = (uint64_t)fabs(x)};
}

static void bool_to_int(oi_value *v)
{
    if (v->kind == OI_VAL_BOOL)
        *v = (oi_value){.kind = OI_VAL_INT, .magnitude = v->boolean};
}

bool oi_read_scalar(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_dtype t,
                    oi_scalar *out)
{
    const char *tag = NULL;
    struct json_object *inner = NULL;
    if (json_object_is_type(j, json_type_object) && json_object_object_length(j) == 1) {
        json_object_object_foreach(j, key, val)
        {
            tag = key;
            inner = val;
        }
    }
    oi_dtype key_type = tag ? oi_dtype_find_json(tag) : OI_NONE;
    oi_value v;
    if (key_type == OI_NONE || !typed_value(r, at, key_type, inner, &v)) {
        oi_read_error(r, at, "E015", "expected a scalar such as {\"%s\": …}",
                      oi_dtype_get(t)->json);
        return false;
    }
    if (key_type != t && !oi_dtype_is_float(t))
        float_to_int(&v);
    if (key_type != t && t != OI_BOOL)
        bool_to_int(&v);
    const char *code = oi_scalar_from_value(t, &v, out);
    if (!code && (key_type == t || is_exact(&v, *out)))
        return true;
    oi_read_error(r, at, code ? code : "E015", "the %s value cannot be held exactly by %s",
                  oi_dtype_name(key_type), oi_dtype_name(t));
    return false;
}

/* -- expressions and accesses -- */

static const oi_expr *literal(oi_json_reader *r, const oi_value *v)
{
    oi_expr *e = oi_arena_alloc(r->g->arena, sizeof *e);
    *e = (oi_expr){
        .kind = OI_EXPR_INT, .depth = 1, .negative = v->negative, .magnitude = v->magnitude};
    return e;
}

static const oi_expr *text_expr(oi_json_reader *r, const oi_at *at, struct json_object *j,
                                bool is_dim)
{
    const oi_expr *e =
        oi_expr_parse(r->g, json_object_get_string(j), (size_t)json_object_get_string_len(j),
                      is_dim, oi_read_pointer(r, at), r->diag);
    r->failed |= !e;
    return e;
}

const oi_expr *oi_read_expr(oi_json_reader *r, const oi_at *at, struct json_object *j, bool is_dim)
{
    oi_value zero = {.kind = OI_VAL_INT}, v;
    const oi_expr *e = NULL;
    if (json_object_is_type(j, json_type_int)) {
        int_value(j, &v);
        e = literal(r, &v);
    } else if (oi_read_expect(r, at, j, json_type_string, "an expression")) {
        e = text_expr(r, at, j, is_dim);
    }
    return e ? e : literal(r, &zero);
}

void oi_read_ref(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_access *out)
{
    *out = (oi_access){.base.text = ""};
    if (oi_read_expect(r, at, j, json_type_string, "a reference") &&
        !oi_access_parse(r->g, json_object_get_string(j), (size_t)json_object_get_string_len(j),
                         oi_read_pointer(r, at), out, r->diag))
        r->failed = true;
}

/* V: {"Ident": "step"}, {"Lit": 3}, {"Expr": "D+i"} */
static const oi_expr *index_value(oi_json_reader *r, const oi_at *at, struct json_object *j)
{
    static const char *const known[] = {"Ident", "Lit", "Expr", NULL};
    if (!json_object_is_type(j, json_type_object) || json_object_object_length(j) != 1) {
        oi_read_error(r, at, "E001", "expected {\"Ident\": …}, {\"Lit\": …} or {\"Expr\": …}");
        return oi_read_expr(r, at, NULL, false);
    }
    struct json_object *lit = oi_read_field(j, "Lit"), *ident = oi_read_field(j, "Ident");
    oi_at inner = {at, lit ? "Lit" : ident ? "Ident" : "Expr", 0};
    oi_read_known(r, at, j, known);
    if (lit && !oi_read_expect(r, &inner, lit, json_type_int, "an integer"))
        lit = NULL;
    if (ident && json_object_is_type(ident, json_type_string) &&
        !oi_is_name(json_object_get_string(ident)))
        oi_read_error(r, &inner, "E001", "'%.80s' is not a name", json_object_get_string(ident));
    return oi_read_expr(r, &inner, lit ? lit : ident ? ident : oi_read_field(j, "Expr"), false);
}

static void selector(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_sel *out)
{
    static const char *const known[] = {"start", "end", NULL};
    struct json_object *single = oi_read_field(j, "Single"), *slice = oi_read_field(j, "Slice");
    bool one_key = json_object_is_type(j, json_type_object) && json_object_object_length(j) == 1;
    oi_at inner = {at, single ? "Single" : "Slice", 0};
    *out = (oi_sel){.is_slice = true};
    if (!one_key || (!single && !slice)) {
        oi_read_error(r, at, "E001", "expected {\"Single\": …} or {\"Slice\": …}");
    } else if (single) {
        out->is_slice = false;
        out->start = index_value(r, &inner, single);
    } else if (oi_read_expect(r, &inner, slice, json_type_object, "start and end")) {
        struct json_object *s = oi_read_field(slice, "start"), *e = oi_read_field(slice, "end");
        oi_at start = {&inner, "start", 0}, end = {&inner, "end", 0};
        oi_read_known(r, &inner, slice, known);
        out->start = s ? index_value(r, &start, s) : NULL;
        out->end = e ? index_value(r, &end, e) : NULL;
    }
}

void oi_read_access(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_access *out)
{
    static const char *const known[] = {"base", "bracketed", "indices", NULL};
    *out = (oi_access){.base.text = ""};
    if (!oi_read_expect(r, at, j, json_type_object, "an access object"))
        return;
    oi_read_known(r, at, j, known);
    out->base = oi_read_name(r, at, j, "base");
    struct json_object *b = oi_read_field(j, "bracketed"), *list = oi_read_field(j, "indices");
    oi_at bracketed = {at, "bracketed", 0}, indices = {at, "indices", 0};
    if (b && oi_read_expect(r, &bracketed, b, json_type_boolean, "true or false"))
        out->bracketed = json_object_get_boolean(b);
    if (!list || !oi_read_expect(r, &indices, list, json_type_array, "an array of indices"))
        return;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        oi_at item = {&indices, NULL, i};
        oi_sel s;
        selector(r, &item, json_object_array_get_idx(list, i), &s);
        *OI_PUSH(r->g->arena, &out->sels) = s;
    }
    if (out->sels.n && !out->bracketed)
        oi_read_error(r, at, "E001", "indices need \"bracketed\": true");
}

/* -- attribute values -- */

static bool str_value(oi_json_reader *r, struct json_object *j, oi_value *out)
{
    if (!json_object_is_type(j, json_type_string))
        return false;
    size_t n = (size_t)json_object_get_string_len(j);
    *out = (oi_value){.kind = OI_VAL_STR, .n = n};
    out->text = oi_arena_text(r->g->arena, json_object_get_string(j), n);
    return true;
}

/* Words that the DSL reads as a value, so no variable can be meant. */
static bool is_word(const char *s)
{
    return strcmp(s, "true") == 0 || strcmp(s, "false") == 0 || strcmp(s, "inf") == 0 ||
           strcmp(s, "nan") == 0;
}

static bool name_value(oi_json_reader *r, struct json_object *j, oi_value *out)
{
    if (!json_object_is_type(j, json_type_string) || !oi_is_name(json_object_get_string(j)))
        return false;
    const char *s = json_object_get_string(j);
    if (is_word(s) || strlen(s) != (size_t)json_object_get_string_len(j))
        return false;
    *out = (oi_value){.kind = OI_VAL_NAME, .text = oi_graph_intern(r->g, s, strlen(s))};
    return true;
}

static bool expr_value(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_value *out)
{
    if (!json_object_is_type(j, json_type_string))
        return false;
    const oi_expr *e = text_expr(r, at, j, false);
    if (!e)
        return true; /* reported */
    const oi_expr *last = e->kind == OI_EXPR_NEG ? e->lhs : e;
    if (last->kind == OI_EXPR_NAME && is_word(last->name))
        return false;
    *out = (oi_value){.kind = OI_VAL_EXPR, .expr = e};
    if (e->kind == OI_EXPR_NAME)
        *out = (oi_value){.kind = OI_VAL_NAME, .text = e->name};
    if (e->kind == OI_EXPR_INT)
        *out = (oi_value){.kind = OI_VAL_INT, .negative = e->negative, .magnitude = e->magnitude};
    return true;
}

static bool bool_value(struct json_object *j, oi_value *out)
{
    *out = (oi_value){.kind = OI_VAL_BOOL, .boolean = json_object_get_boolean(j)};
    return json_object_is_type(j, json_type_boolean);
}

static bool dtype_value(struct json_object *j, oi_value *out)
{
    const char *s = json_object_is_type(j, json_type_string) ? json_object_get_string(j) : "";
    *out = (oi_value){.kind = OI_VAL_DTYPE, .dtype = oi_dtype_find_json(s)};
    return out->dtype != OI_NONE;
}

/* One tag and its payload; false when the payload does not suit. */
static bool tagged(oi_json_reader *r, const oi_at *at, const char *tag, struct json_object *j,
                   oi_value *out)
{
    if (strcmp(tag, "Int") == 0 || strcmp(tag, "UInt") == 0)
        return int_text(j, out);
    if (strcmp(tag, "Double") == 0)
        return float_value(j, out);
    if (strcmp(tag, "Float") == 0) {
        bool ok = float_value(j, out);
        out->number = (float)out->number;
        return ok;
    }
    if (strcmp(tag, "Bool") == 0)
        return bool_value(j, out);
    if (strcmp(tag, "Str") == 0)
        return str_value(r, j, out);
    if (strcmp(tag, "DType") == 0)
        return dtype_value(j, out);
    if (strcmp(tag, "Var") == 0)
        return name_value(r, j, out);
    return strcmp(tag, "Expr") == 0 && expr_value(r, at, j, out);
}

/* Tag of a list's items; "" for "List", whose items carry their own; NULL when it is no list. */
static const char *item_tag(const char *tag)
{
    static const struct {
        const char *list, *item;
    } forms[] = {{"IntList", "Int"},     {"FloatList", "Double"}, {"StrList", "Str"},
                 {"DTypeList", "DType"}, {"VarList", "Var"},      {"List", ""}};
    for (size_t i = 0; i < OI_COUNT(forms); i++)
        if (strcmp(tag, forms[i].list) == 0)
            return forms[i].item;
    return NULL;
}

static bool read_value(oi_json_reader *r, const oi_at *at, struct json_object *j, bool may_list,
                       oi_value *out);

static bool list_value(oi_json_reader *r, const oi_at *at, const char *item, struct json_object *j,
                       oi_value *out)
{
    if (!json_object_is_type(j, json_type_array))
        return false;
    size_t n = json_object_array_length(j);
    *out = (oi_value){.kind = OI_VAL_LIST, .n = n};
    out->items = oi_arena_alloc(r->g->arena, n * sizeof *out->items);
    for (size_t i = 0; i < n; i++) {
        oi_at here = {at, NULL, i};
        struct json_object *v = json_object_array_get_idx(j, i);
        bool ok = item[0] ? tagged(r, &here, item, v, &out->items[i])
                          : read_value(r, &here, v, false, &out->items[i]);
        if (!ok)
            return false;
    }
    return true;
}

static bool read_value(oi_json_reader *r, const oi_at *at, struct json_object *j, bool may_list,
                       oi_value *out)
{
    *out = (oi_value){.kind = OI_VAL_INT};
    if (!json_object_is_type(j, json_type_object) || json_object_object_length(j) != 1)
        return false;
    json_object_object_foreach(j, tag, val)
    {
        oi_at inner = {at, tag, 0};
        const char *item = may_list ? item_tag(tag) : NULL;
        return item ? list_value(r, &inner, item, val, out) : tagged(r, &inner, tag, val, out);
    }
    return false;
}

static void attr_value(oi_json_reader *r, const oi_at *up, struct json_object *j, oi_value *out)
{
    oi_at at = {up, "value", 0};
    if (!read_value(r, &at, oi_read_field(j, "value"), true, out))
        oi_read_error(r, &at, "E053", "expected an attribute value such as {\"Int\": 3}");
}

static bool has_dtype_name(const oi_value *v)
{
    bool found = v->kind == OI_VAL_NAME && oi_dtype_find(v->text) != OI_NONE;
    for (size_t i = 0; v->kind == OI_VAL_LIST && i < v->n; i++)
        found = found || has_dtype_name(&v->items[i]);
    return found;
}

/* What the grammar cannot say in this place: a variable called like a dtype as an op's attribute, a
 * list or a dtype (there an ordinary name) in a declaration's. */
static void suit_place(oi_json_reader *r, const oi_at *at, bool in_op, oi_value *v)
{
    if (in_op && has_dtype_name(v))
        oi_read_error(r, at, "E053", "a variable called like an element type cannot be used here");
    if (!in_op && v->kind == OI_VAL_LIST)
        oi_read_error(r, at, "E053", "a declaration's attribute takes no lists");
    if (!in_op && v->kind == OI_VAL_DTYPE)
        *v = (oi_value){.kind = OI_VAL_NAME, .text = oi_dtype_name(v->dtype)};
}

void oi_read_attrs(oi_json_reader *r, const oi_at *at, struct json_object *j, const char *op,
                   oi_attrs *out)
{
    static const char *const known[] = {"name", "value", NULL};
    if (!j || !oi_read_expect(r, at, j, json_type_array, "an array of attributes"))
        return;
    for (size_t i = 0; i < json_object_array_length(j); i++) {
        oi_at item = {at, NULL, i};
        struct json_object *a = json_object_array_get_idx(j, i);
        if (!oi_read_expect(r, &item, a, json_type_object, "an attribute object"))
            continue;
        oi_read_known(r, &item, a, known);
        oi_attr attr = {0};
        if (op || oi_read_field(a, "name"))
            attr.name = oi_read_name(r, &item, a, "name");
        attr_value(r, &item, a, &attr.value);
        suit_place(r, &item, op, &attr.value);
        if (op)
            oi_attr_normalise(r->g->arena, op, &attr);
        *OI_PUSH(r->g->arena, out) = attr;
    }
}

void oi_read_hints(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_attrs *out)
{
    if (!oi_read_expect(r, at, j, json_type_object, "an object of hints"))
        return;
    json_object_object_foreach(j, key, val)
    {
        oi_at inner = {at, key, 0};
        oi_attr a = {.name.text = oi_graph_intern(r->g, key, strlen(key))};
        if (!oi_is_name(key) || !read_value(r, &inner, val, true, &a.value))
            oi_read_error(r, &inner, "E053", "expected a hint value such as {\"Bool\": true}");
        *OI_PUSH(r->g->arena, out) = a;
    }
}

/* -- names -- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void oi_read_sort_names(const char **names, size_t n, bool entry_first)
{
    if (n)
        qsort(names, n, sizeof *names, by_text);
    for (size_t i = 1; entry_first && i < n; i++)
        if (strcmp(names[i], "entry") == 0) {
            memmove(names + 1, names, i * sizeof *names);
            names[0] = "entry";
            return;
        }
}
