/* opsgen_attrs.c: attributes of a row as C initialisers. */
#include "opsgen.h"

#include <inttypes.h>
#include <stdlib.h>

/* -- attributes ------------------------------------------------------------------------------- */

static void put_double(FILE *f, double v)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", v);
    fprintf(f, strpbrk(text, ".e") ? "%s" : "%s.0", text);
}

static bool infinite(json *v)
{
    if (!json_object_is_type(v, json_type_string))
        return false;
    const char *s = json_object_get_string(v);
    return strcmp(s, "inf") == 0 || strcmp(s, "-inf") == 0 || strcmp(s, "nan") == 0;
}

static bool put_number(FILE *f, json *v)
{
    if (infinite(v)) {
        const char *s = json_object_get_string(v);
        fprintf(f, "{.tag = OI_VALUE_FLOAT, .f = %s}",
                *s == '-'   ? "-INFINITY"
                : *s == 'i' ? "INFINITY"
                            : "NAN");
    } else if (json_object_is_type(v, json_type_int)) {
        fprintf(f, "{.tag = OI_VALUE_INT, .i = %" PRId64 "}", json_object_get_int64(v));
    } else if (json_object_is_type(v, json_type_double)) {
        fputs("{.tag = OI_VALUE_FLOAT, .f = ", f);
        put_double(f, json_object_get_double(v));
        fputc('}', f);
    } else {
        return false;
    }
    return true;
}

static bool put_int(FILE *f, json *v)
{
    return json_object_is_type(v, json_type_int) && put_number(f, v);
}

static bool put_bool(FILE *f, json *v)
{
    if (!json_object_is_type(v, json_type_boolean))
        return false;
    fprintf(f, "{.tag = OI_VALUE_BOOL, .b = %s}", json_object_get_boolean(v) ? "true" : "false");
    return true;
}

static bool put_word(FILE *f, json *v)
{
    if (!json_object_is_type(v, json_type_string))
        return false;
    fputs("{.tag = OI_VALUE_STRING, .s = ", f);
    gen_put_string(f, json_object_get_string(v));
    fputc('}', f);
    return true;
}

static bool put_dtype(FILE *f, json *v)
{
    char text[16];
    oi_dtype t = json_object_is_type(v, json_type_string) ? oi_dtype_find(json_object_get_string(v))
                                                          : OI_NONE;
    fprintf(f, "{.tag = OI_VALUE_DTYPE, .dtype = %s}", gen_dtype_constant(t, text));
    return t != OI_NONE;
}

/* Lists become compound literals: at file scope those are static. */
static bool put_list(FILE *f, json *v, const char *tag, const char *member, const char *type,
                     bool (*item)(FILE *f, json *v))
{
    if (!json_object_is_type(v, json_type_array))
        return false;
    size_t n = json_object_array_length(v);
    fprintf(f, "{.tag = %s, .n = %zu", tag, n);
    if (n)
        fprintf(f, ", .%s = (const %s[]){", member, type);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ", " : "", f);
        if (!item(f, json_object_array_get_idx(v, i)))
            return false;
    }
    fputs(n ? "}}" : "}", f);
    return true;
}

static bool int_item(FILE *f, json *v)
{
    fprintf(f, "%" PRId64, json_object_get_int64(v));
    return json_object_is_type(v, json_type_int);
}

static bool float_item(FILE *f, json *v)
{
    put_double(f, json_object_get_double(v));
    return json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double);
}

static bool dtype_item(FILE *f, json *v)
{
    char text[16];
    oi_dtype t = oi_dtype_find(json_object_get_string(v));
    fputs(gen_dtype_constant(t, text), f);
    return json_object_is_type(v, json_type_string) && t != OI_NONE;
}

static bool put_ints(FILE *f, json *v)
{
    return put_list(f, v, "OI_VALUE_INT_LIST", "ints", "int64_t", int_item);
}

static bool put_floats(FILE *f, json *v)
{
    return put_list(f, v, "OI_VALUE_FLOAT_LIST", "floats", "double", float_item);
}

static bool put_dtypes(FILE *f, json *v)
{
    return put_list(f, v, "OI_VALUE_DTYPE_LIST", "dtypes", "oi_dtype", dtype_item);
}

/* What a default of each kind looks like. A kind of the vocabulary missing here is an error. */
static const struct kind {
    const char *name;
    bool (*put)(FILE *f, json *v);
    bool integers; /* "min" makes sense */
} kinds[] = {
    {"number", put_number, false}, {"int", put_int, true},
    {"bool", put_bool, false},     {"string", put_word, false},
    {"dtype", put_dtype, false},   {"dtype_list", put_dtypes, false},
    {"int_list", put_ints, true},  {"float_list", put_floats, false},
    {"axis", put_int, false},      {"axes", put_ints, false},
    {"length", put_int, true},
};

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < OI_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0 && gen_has_word(gen.vocab.kinds, name))
            return &kinds[i];
    gen_complain("unknown kind '%s'", name);
    return NULL;
}

bool gen_is_kind(const char *name)
{
    return find_kind(name) != NULL;
}

/* The default as it would stand in a call: words keep their quotes, other texts (inf, f32) not. */
static void put_default_text(FILE *f, json *def, const struct kind *kind)
{
    char *text = def ? strdup(json_object_to_json_string_ext(def, JSON_C_TO_STRING_PLAIN)) : NULL;
    fputs(", .def_text = ", f);
    if (text && strcmp(kind->name, "string") != 0) {
        size_t n = 0;
        for (const char *p = text; *p; p++)
            if (*p != '"')
                text[n++] = *p;
        text[n] = '\0';
    }
    gen_put_string(f, text ? text : "");
    free(text);
}

/* "required", "default" or "absent": exactly one, so that every attribute says what leaving it out
 * means. */
static void put_default(FILE *f, json *a, const struct kind *kind)
{
    json *def = NULL;
    bool has_default = json_object_object_get_ex(a, "default", &def);
    bool has_absent = *gen_get_string(a, "absent", false) != '\0';
    if (gen_get_bool(a, "required") + has_default + has_absent != 1)
        gen_complain("wants exactly one of \"required\": true, \"default\", \"absent\"");
    put_default_text(f, def, kind);
    if (!has_default)
        return;
    fputs(", .def = ", f);
    if (!kind->put(f, def))
        gen_complain("the default does not suit kind '%s'", kind->name);
    json *min = NULL;
    if (json_object_object_get_ex(a, "min", &min) && json_object_is_type(def, json_type_int) &&
        json_object_get_int64(def) < json_object_get_int64(min))
        gen_complain("the default is below \"min\"");
}

static void put_values(FILE *f, json *a, const struct kind *kind)
{
    json *values = gen_get(a, "values", json_type_array, false), *def = NULL;
    if (!values)
        return;
    if (strcmp(kind->name, "string") != 0)
        gen_complain("\"values\" is for kind 'string'");
    json_object_object_get_ex(a, "default", &def);
    bool def_listed = def == NULL;
    fputs(", .values = (const char *const[]){", f);
    for (size_t i = 0; i < json_object_array_length(values); i++) {
        json *v = json_object_array_get_idx(values, i);
        if (!json_object_is_type(v, json_type_string))
            gen_complain("\"values\" holds strings");
        gen_put_string(f, json_object_get_string(v));
        fputs(", ", f);
        def_listed |= def && json_object_equal(v, def);
    }
    fputs("NULL}", f);
    if (!def_listed)
        gen_complain("the default is not among \"values\"");
}

static void put_attr(FILE *f, const char *name, json *a, json *inputs)
{
    static const char *const known[] = {"kind",   "alias",    "required", "default", "absent",
                                        "values", "in_range", "min",      "input",   "dtypes",
                                        "doc",    "sample",   NULL};
    gen_check_keys(a, known);
    const struct kind *kind = find_kind(gen_get_string(a, "kind", true));
    if (!gen_is_name(name))
        gen_complain("an attribute name must be an identifier");
    if (!kind)
        return;
    fputs("    {.name = ", f);
    gen_put_string(f, name);
    const char *alias = gen_get_string(a, "alias", false),
               *absent = gen_get_string(a, "absent", false);
    if (*alias) {
        fputs(", .alias = ", f);
        gen_put_string(f, alias);
    }
    const char *sample = gen_get_string(a, "sample", false);
    if (*sample) {
        fputs(", .sample = ", f);
        gen_put_string(f, sample);
    }
    fputs(", .kind = OI_ATTR_", f);
    gen_put_upper(f, kind->name);
    fprintf(f, ", .required = %d, .in_range = %d", gen_get_bool(a, "required"),
            gen_get_bool(a, "in_range"));
    if (gen_get_bool(a, "in_range") && strcmp(kind->name, "number") != 0)
        gen_complain("\"in_range\" is for kind 'number'");
    json *min = gen_get(a, "min", json_type_int, false);
    if (min && !kind->integers)
        gen_complain("\"min\" is for kinds of integers");
    if (min)
        fprintf(f, ", .has_min = true, .min = %" PRId64, json_object_get_int64(min));
    const char *input = gen_get_string(a, "input", false);
    fprintf(f, ", .input = %d", *input ? gen_find_input(inputs, input) : -1);
    const char *dtypes = gen_get_string(a, "dtypes", false);
    if (*dtypes && strcmp(kind->name, "dtype") != 0)
        gen_complain("\"dtypes\" is for kind 'dtype'");
    if (*dtypes)
        fprintf(f, ", .dtypes = 0x%08" PRIx32 "u", gen_dtype_set(dtypes, false, NULL));
    put_default(f, a, kind);
    if (*absent) {
        fputs(", .absent = ", f);
        gen_put_string(f, absent);
    }
    put_values(f, a, kind);
    fputs(", .doc = ", f);
    gen_put_string(f, gen_get_string(a, "doc", true));
    fputs("},\n", f);
}

/* An attribute is written out, or names an entry of the shared "attrs". */
static json *resolve_attr(json *a)
{
    json *shared = NULL;
    if (json_object_is_type(a, json_type_object))
        return a;
    if (json_object_is_type(a, json_type_string) &&
        json_object_object_get_ex(gen.shared_attrs, json_object_get_string(a), &shared) &&
        json_object_is_type(shared, json_type_object))
        return shared;
    gen_complain("must be an object or the name of a shared attribute");
    return NULL;
}

static bool attr_spelled(json *attrs, const char *owner, const char *name)
{
    json_object_object_foreach(attrs, key, a)
    {
        if (strcmp(key, owner) == 0)
            continue;
        json *shared = resolve_attr(a);
        const char *alias = shared ? gen_get_string(shared, "alias", false) : "";
        if (strcmp(key, name) == 0 || strcmp(alias, name) == 0)
            return true;
    }
    return false;
}

unsigned gen_put_attrs(FILE *f, json *attrs, json *inputs)
{
    unsigned n = 0;
    if (!attrs || json_object_object_length(attrs) == 0)
        return 0;
    fprintf(f, "static const oi_op_attr attrs_%s[] = {\n", gen.where_op);
    json_object_object_foreach(attrs, key, value)
    {
        gen.where_part = key;
        n++;
        json *a = resolve_attr(value);
        if (a) {
            const char *alias = gen_get_string(a, "alias", false);
            if (*alias && attr_spelled(attrs, key, alias))
                gen_complain("the alias '%s' is another attribute", alias);
            put_attr(f, key, a, inputs);
        }
        gen.where_part = "";
    }
    fputs("};\n", f);
    return n;
}

int gen_find_attr(json *attrs, const char *name, const char *kind)
{
    int i = 0;
    if (attrs) {
        json_object_object_foreach(attrs, key, value)
        {
            json *a = resolve_attr(value);
            if (a && strcmp(key, name) == 0) {
                if (strcmp(gen_get_string(a, "kind", true), kind) != 0)
                    gen_complain("attribute '%s' must be of kind '%s'", name, kind);
                return i;
            }
            i++;
        }
    }
    gen_complain("there is no attribute '%s'", name);
    return -1;
}
