/* opsgen.c: turns ops/ops.json into the C tables of the op registry, at build time.
 *
 *     opsgen ops.json OUTDIR      writes OUTDIR/ops_gen.h and OUTDIR/ops_gen.c
 *
 * Strict on purpose: an unknown key, a word outside the vocabulary, a name used twice or a default
 * of the wrong kind stops the build and names the row. All mistakes are reported, then nothing is
 * written. The JSON's order is the table's order. */
#include "base/base.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>

#define MAX_NAMES 1024 /* ops with their aliases; the catalog has about 180 */

typedef struct json_object json;

static const char *json_path;
static const char *where_op = "", *where_part = "";
static unsigned n_errors;

static struct vocabulary {
    json *classes, *dtypes, *kinds, *shapes, *flags;
} vocab;
static json *shared_attrs;

static struct name {
    const char *name;
    size_t op;
} names[MAX_NAMES];
static size_t n_names;

/* -- complaints ---------------------------------------------------------------------------------
 */

static void OI_PRINTF(1, 2) complain(const char *fmt, ...)
{
    n_errors++;
    fprintf(stderr, "%s: error: ", json_path);
    if (*where_op)
        fprintf(stderr, "op '%s': ", where_op);
    if (*where_part)
        fprintf(stderr, "'%s': ", where_part);
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

/* -- reading --------------------------------------------------------------------------------------
 */

static void check_keys(json *obj, const char *const *known)
{
    json_object_object_foreach(obj, key, value)
    {
        (void)value;
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            complain("unknown key '%s'", key);
    }
}

static json *get(json *obj, const char *key, json_type type, bool required)
{
    json *v = NULL;
    if (!json_object_object_get_ex(obj, key, &v)) {
        if (required)
            complain("key '%s' is missing", key);
        return NULL;
    }
    if (json_object_get_type(v) != type) {
        complain("key '%s' must be %s", key, json_type_to_name(type));
        return NULL;
    }
    return v;
}

static const char *get_string(json *obj, const char *key, bool required)
{
    json *v = get(obj, key, json_type_string, required);
    return v ? json_object_get_string(v) : "";
}

static bool get_bool(json *obj, const char *key)
{
    json *v = get(obj, key, json_type_boolean, false);
    return v && json_object_get_boolean(v);
}

static bool is_name(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_')
            return false;
    return true;
}

static bool has_word(json *words, const char *word)
{
    return json_object_object_get_ex(words, word, NULL);
}

/* json-c silently keeps the last of two equal keys; look at the text to refuse them. A stack of
 * key sets is enough: objects here are small, so a linear search of the keys seen will do. */
static void check_duplicates(const char *text)
{
    struct {
        const char *at;
        size_t n;
        unsigned depth;
    } seen[4096];
    size_t n_seen = 0;
    unsigned depth = 0;
    for (const char *p = text; *p; p++) {
        if (*p == '{' || *p == '[') {
            depth++;
        } else if (*p == '}' || *p == ']') {
            while (n_seen && seen[n_seen - 1].depth == depth)
                n_seen--;
            depth--;
        } else if (*p == '"') {
            const char *start = ++p;
            while (*p && *p != '"')
                p += *p == '\\' && p[1] ? 2 : 1;
            size_t n = (size_t)(p - start);
            const char *q = p + (*p == '"');
            q += strspn(q, " \t\r\n");
            if (*q == ':') {
                for (size_t i = n_seen; i-- > 0 && seen[i].depth == depth;)
                    if (seen[i].n == n && memcmp(seen[i].at, start, n) == 0)
                        complain("key '%.*s' is given twice in one object", (int)n, start);
                if (n_seen == OI_COUNT(seen)) {
                    complain("more than %zu open keys", n_seen);
                    return;
                }
                seen[n_seen].at = start;
                seen[n_seen].n = n;
                seen[n_seen++].depth = depth;
            }
            if (!*p)
                return;
        }
    }
}

/* -- sets of element types
 * ------------------------------------------------------------------------- */

#define SAME (1u << 31) /* as OI_DTYPES_SAME */

/* "F S i4 same" as a mask; `first`, when asked for, gets the first word's own dtype (OI_NONE for
 * "same" or a class). */
static uint32_t dtype_set(const char *text, bool same_allowed, oi_dtype *first)
{
    uint32_t set = 0;
    if (first)
        *first = OI_NONE;
    if (!*text)
        complain("a set of element types is empty");
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, " ");
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)n, p);
        oi_dtype t = oi_dtype_find(word);
        json *cls = NULL;
        if (strcmp(word, "same") == 0 && same_allowed)
            set |= SAME;
        else if (t != OI_NONE)
            set |= 1u << t;
        else if (json_object_object_get_ex(vocab.dtypes, word, &cls) &&
                 json_object_get_string(cls) != text)
            set |= dtype_set(json_object_get_string(cls), false, NULL);
        else
            complain("'%s' is no element type or class of them", word);
        if (first && p == text)
            *first = t;
        p += n + (p[n] == ' ');
    }
    return set;
}

/* -- writing
 * --------------------------------------------------------------------------------------- */

static void put_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f || c == '?') /* '?': no trigraphs */
            fprintf(f, "\\%03o", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

static void put_upper(FILE *f, const char *s)
{
    for (; *s; s++)
        fputc(toupper((unsigned char)*s), f);
}

static const char *dtype_constant(oi_dtype t, char out[16])
{
    size_t n = (size_t)snprintf(out, 16, "OI_%s", oi_dtype_name(t));
    for (size_t i = 0; i < n; i++)
        out[i] = (char)toupper((unsigned char)out[i]);
    return out;
}

static void put_double(FILE *f, double v)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", v);
    fprintf(f, strpbrk(text, ".e") ? "%s" : "%s.0", text);
}

/* -- attributes
 * ------------------------------------------------------------------------------------ */

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
    put_string(f, json_object_get_string(v));
    fputc('}', f);
    return true;
}

static bool put_dtype(FILE *f, json *v)
{
    char text[16];
    oi_dtype t = json_object_is_type(v, json_type_string) ? oi_dtype_find(json_object_get_string(v))
                                                          : OI_NONE;
    fprintf(f, "{.tag = OI_VALUE_DTYPE, .dtype = %s}", dtype_constant(t, text));
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
    fputs(dtype_constant(t, text), f);
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
        if (strcmp(kinds[i].name, name) == 0 && has_word(vocab.kinds, name))
            return &kinds[i];
    complain("unknown kind '%s'", name);
    return NULL;
}

/* "required", "default" or "absent": exactly one, so that every attribute says what leaving it out
 * means. */
static void put_default(FILE *f, json *a, const struct kind *kind)
{
    json *def = NULL;
    bool has_default = json_object_object_get_ex(a, "default", &def);
    bool has_absent = *get_string(a, "absent", false) != '\0';
    if (get_bool(a, "required") + has_default + has_absent != 1)
        complain("wants exactly one of \"required\": true, \"default\", \"absent\"");
    if (!has_default)
        return;
    fputs(", .def = ", f);
    if (!kind->put(f, def))
        complain("the default does not suit kind '%s'", kind->name);
    json *min = NULL;
    if (json_object_object_get_ex(a, "min", &min) && json_object_is_type(def, json_type_int) &&
        json_object_get_int64(def) < json_object_get_int64(min))
        complain("the default is below \"min\"");
}

static void put_values(FILE *f, json *a, const struct kind *kind)
{
    json *values = get(a, "values", json_type_array, false), *def = NULL;
    if (!values)
        return;
    if (strcmp(kind->name, "string") != 0)
        complain("\"values\" is for kind 'string'");
    json_object_object_get_ex(a, "default", &def);
    bool def_listed = def == NULL;
    fputs(", .values = (const char *const[]){", f);
    for (size_t i = 0; i < json_object_array_length(values); i++) {
        json *v = json_object_array_get_idx(values, i);
        if (!json_object_is_type(v, json_type_string))
            complain("\"values\" holds strings");
        put_string(f, json_object_get_string(v));
        fputs(", ", f);
        def_listed |= def && json_object_equal(v, def);
    }
    fputs("NULL}", f);
    if (!def_listed)
        complain("the default is not among \"values\"");
}

static int find_input(json *inputs, const char *name);

static void put_attr(FILE *f, const char *name, json *a, json *inputs)
{
    static const char *const known[] = {"kind",   "alias",  "required", "default",
                                        "absent", "values", "in_range", "min",
                                        "input",  "doc",    NULL};
    check_keys(a, known);
    const struct kind *kind = find_kind(get_string(a, "kind", true));
    if (!is_name(name))
        complain("an attribute name must be an identifier");
    if (!kind)
        return;
    fputs("    {.name = ", f);
    put_string(f, name);
    const char *alias = get_string(a, "alias", false), *absent = get_string(a, "absent", false);
    if (*alias) {
        fputs(", .alias = ", f);
        put_string(f, alias);
    }
    fputs(", .kind = OI_ATTR_", f);
    put_upper(f, kind->name);
    fprintf(f, ", .required = %d, .in_range = %d", get_bool(a, "required"),
            get_bool(a, "in_range"));
    if (get_bool(a, "in_range") && strcmp(kind->name, "number") != 0)
        complain("\"in_range\" is for kind 'number'");
    json *min = get(a, "min", json_type_int, false);
    if (min && !kind->integers)
        complain("\"min\" is for kinds of integers");
    if (min)
        fprintf(f, ", .has_min = true, .min = %" PRId64, json_object_get_int64(min));
    const char *input = get_string(a, "input", false);
    fprintf(f, ", .input = %d", *input ? find_input(inputs, input) : -1);
    put_default(f, a, kind);
    if (*absent) {
        fputs(", .absent = ", f);
        put_string(f, absent);
    }
    put_values(f, a, kind);
    fputs(", .doc = ", f);
    put_string(f, get_string(a, "doc", true));
    fputs("},\n", f);
}

/* An attribute is written out, or names an entry of the shared "attrs". */
static json *resolve_attr(json *a)
{
    json *shared = NULL;
    if (json_object_is_type(a, json_type_object))
        return a;
    if (json_object_is_type(a, json_type_string) &&
        json_object_object_get_ex(shared_attrs, json_object_get_string(a), &shared) &&
        json_object_is_type(shared, json_type_object))
        return shared;
    complain("must be an object or the name of a shared attribute");
    return NULL;
}

static bool attr_spelled(json *attrs, const char *owner, const char *name)
{
    json_object_object_foreach(attrs, key, a)
    {
        if (strcmp(key, owner) == 0)
            continue;
        json *shared = resolve_attr(a);
        const char *alias = shared ? get_string(shared, "alias", false) : "";
        if (strcmp(key, name) == 0 || strcmp(alias, name) == 0)
            return true;
    }
    return false;
}

static unsigned put_attrs(FILE *f, json *attrs, json *inputs)
{
    unsigned n = 0;
    if (!attrs || json_object_object_length(attrs) == 0)
        return 0;
    fprintf(f, "static const oi_op_attr attrs_%s[] = {\n", where_op);
    json_object_object_foreach(attrs, key, value)
    {
        where_part = key;
        n++;
        json *a = resolve_attr(value);
        if (a) {
            const char *alias = get_string(a, "alias", false);
            if (*alias && attr_spelled(attrs, key, alias))
                complain("the alias '%s' is another attribute", alias);
            put_attr(f, key, a, inputs);
        }
        where_part = "";
    }
    fputs("};\n", f);
    return n;
}

static int find_attr(json *attrs, const char *name, const char *kind)
{
    int i = 0;
    if (attrs) {
        json_object_object_foreach(attrs, key, value)
        {
            json *a = resolve_attr(value);
            if (a && strcmp(key, name) == 0) {
                if (strcmp(get_string(a, "kind", true), kind) != 0)
                    complain("attribute '%s' must be of kind '%s'", name, kind);
                return i;
            }
            i++;
        }
    }
    complain("there is no attribute '%s'", name);
    return -1;
}

/* -- inputs and outputs
 * ---------------------------------------------------------------------------- */

/* "x", "mask?" (optional), "xs*" (any number), "xs+" (at least one) */
struct port {
    char name[64];
    bool optional, variadic;
};

static const char *port_text(json *p)
{
    if (json_object_is_type(p, json_type_string))
        return json_object_get_string(p);
    if (json_object_is_type(p, json_type_object))
        return get_string(p, "name", true);
    complain("an input or output is a string or an object");
    return "";
}

static struct port read_port(json *p)
{
    struct port port = {0};
    snprintf(port.name, sizeof port.name, "%s", port_text(p));
    size_t n = strlen(port.name);
    char mark = n ? port.name[n - 1] : '\0';
    port.optional = mark == '?' || mark == '*';
    port.variadic = mark == '*' || mark == '+';
    if (port.optional || port.variadic)
        port.name[n - 1] = '\0';
    if (!is_name(port.name))
        complain("'%s' is no name for an input or output", port.name);
    return port;
}

static int find_input(json *inputs, const char *name)
{
    for (size_t i = 0; i < json_object_array_length(inputs); i++)
        if (strcmp(read_port(json_object_array_get_idx(inputs, i)).name, name) == 0)
            return (int)i;
    complain("there is no input '%s'", name);
    return -1;
}

struct arity {
    unsigned n, min, max;
};

/* Optional ones are omitted from the end, and only the last may repeat. */
static void count_port(struct arity *a, struct port port, bool is_last)
{
    if (port.variadic && !is_last)
        complain("'%s': only the last may repeat", port.name);
    if (!port.optional && a->min < a->n)
        complain("'%s': a required one cannot follow an optional one", port.name);
    a->n++;
    a->min += !port.optional;
    if (port.variadic)
        a->max = UINT32_MAX;
    else
        a->max++;
}

static struct arity put_inputs(FILE *f, json *inputs, uint32_t dtypes)
{
    static const char *const known[] = {"name", "dtypes", NULL};
    struct arity arity = {0};
    size_t n = json_object_array_length(inputs);
    if (n)
        fprintf(f, "static const oi_op_input inputs_%s[] = {\n", where_op);
    for (size_t i = 0; i < n; i++) {
        json *in = json_object_array_get_idx(inputs, i);
        bool own = json_object_is_type(in, json_type_object);
        if (own)
            check_keys(in, known);
        struct port port = read_port(in);
        count_port(&arity, port, i + 1 == n);
        uint32_t set = own ? dtype_set(get_string(in, "dtypes", true), true, NULL) : dtypes;
        fprintf(f,
                "    {.name = \"%s\", .dtypes = 0x%08" PRIx32 "u, .optional = %d, .variadic = %d, "
                ".shares_dtype = %d},\n",
                port.name, set, port.optional, port.variadic, !own);
    }
    fputs(n ? "};\n" : "", f);
    return arity;
}

static void put_out_rule(FILE *f, const char *rule, json *inputs, json *attrs)
{
    if (strcmp(rule, "same") == 0) {
        fputs(".out_rule = OI_OUT_LIKE, .out_input = 0", f);
        if (json_object_array_length(inputs) == 0)
            complain("out \"same\" needs an input");
    } else if (strncmp(rule, "like:", 5) == 0) {
        fprintf(f, ".out_rule = OI_OUT_LIKE, .out_input = %d", find_input(inputs, rule + 5));
    } else if (strncmp(rule, "attr:", 5) == 0) {
        fprintf(f, ".out_rule = OI_OUT_ATTR, .out_attr = %d", find_attr(attrs, rule + 5, "dtype"));
    } else if (strcmp(rule, "acc") == 0) {
        fprintf(f, ".out_rule = OI_OUT_ACC, .out_attr = %d", find_attr(attrs, "acc", "dtype_list"));
    } else {
        oi_dtype first;
        char text[16];
        uint32_t set = dtype_set(rule, true, &first);
        fprintf(f, ".out_rule = OI_OUT_LIST, .out_dtypes = 0x%08" PRIx32 "u, .out_default = %s",
                set, dtype_constant(first, text));
    }
}

/* Without "outputs" there is one, out. An output's own "out" overrides the row's. */
static struct arity put_outputs(FILE *f, json *row, json *inputs, json *attrs)
{
    static const char *const known[] = {"name", "out", NULL};
    struct arity arity = {0};
    json *outputs = get(row, "outputs", json_type_array, false);
    const char *rule = get_string(row, "out", true);
    size_t n = outputs ? json_object_array_length(outputs) : 1;
    if (n == 0)
        complain("\"outputs\" is empty");
    fprintf(f, "static const oi_op_output outputs_%s[] = {\n", where_op);
    for (size_t i = 0; i < n; i++) {
        json *out = outputs ? json_object_array_get_idx(outputs, i) : NULL;
        bool own = out && json_object_is_type(out, json_type_object);
        if (own)
            check_keys(out, known);
        struct port port = out ? read_port(out) : (struct port){.name = "out"};
        count_port(&arity, port, i + 1 == n);
        fprintf(f, "    {.name = \"%s\", .optional = %d, .variadic = %d, ", port.name,
                port.optional, port.variadic);
        put_out_rule(f, own && *get_string(out, "out", false) ? get_string(out, "out", true) : rule,
                     inputs, attrs);
        fputs("},\n", f);
    }
    fputs("};\n", f);
    return arity;
}

/* -- rows
 * ------------------------------------------------------------------------------------------ */

static void add_name(const char *name, size_t op)
{
    if (!is_name(name))
        complain("'%s' is not an identifier", name);
    for (size_t i = 0; i < n_names; i++)
        if (strcmp(names[i].name, name) == 0)
            complain("the name '%s' is already taken", name);
    if (n_names == MAX_NAMES)
        complain("more than %d names", MAX_NAMES);
    else
        names[n_names++] = (struct name){name, op};
}

static bool has_flag(json *flags, const char *flag)
{
    for (size_t i = 0; flags && i < json_object_array_length(flags); i++)
        if (strcmp(json_object_get_string(json_object_array_get_idx(flags, i)), flag) == 0)
            return true;
    return false;
}

static void put_flags(FILE *f, json *row)
{
    json *flags = get(row, "flags", json_type_array, true);
    fputs(", .flags = 0", f);
    for (size_t i = 0; flags && i < json_object_array_length(flags); i++) {
        const char *flag = json_object_get_string(json_object_array_get_idx(flags, i));
        if (!has_word(vocab.flags, flag))
            complain("unknown flag '%s'", flag);
        fputs(" | OI_OP_FLAG_", f);
        put_upper(f, flag);
    }
    bool acc = strcmp(get_string(row, "out", true), "acc") == 0;
    if (has_flag(flags, "acc") != acc)
        complain("flag \"acc\" and out \"acc\" go together");
    if (strcmp(get_string(row, "shape", true), "broadcast") == 0 && !has_flag(flags, "broadcast"))
        complain("shape \"broadcast\" wants the flag \"broadcast\"");
}

static void put_text_list(FILE *f, const char *member, json *list)
{
    fprintf(f, ", .%s = (const char *const[]){", member);
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        json *s = json_object_array_get_idx(list, i);
        if (!json_object_is_type(s, json_type_string))
            complain("\"%s\" holds strings", member);
        put_string(f, json_object_get_string(s));
        fputs(", ", f);
    }
    fputs("NULL}", f);
}

static void put_word_of(FILE *f, json *row, const char *key, json *words, const char *prefix)
{
    const char *word = get_string(row, key, true);
    if (!has_word(words, word))
        complain("unknown %s '%s'", key, word);
    fputs(prefix, f);
    put_upper(f, word);
}

static void put_arity(FILE *f, const char *what, struct arity a, bool has_array)
{
    if (has_array)
        fprintf(f, ", .%ss = %ss_%s", what, what, where_op);
    fprintf(f, ", .n_%ss = %u, .min_%ss = %u, .max_%ss = %uu", what, a.n, what, a.min, what, a.max);
}

/* The row's arrays go to `arrays`, the row itself to `table`. */
static void put_op(FILE *arrays, FILE *table, json *row, size_t id)
{
    static const char *const known[] = {"name",  "aliases", "class", "inputs",  "outputs", "dtypes",
                                        "out",   "shape",   "attrs", "flags",   "onnx",    "doc",
                                        "notes", "expr",    "init",  "combine", "finish",  NULL};
    static const char *const meanings[] = {"onnx", "expr", "init", "combine", "finish"};
    check_keys(row, known);
    add_name(where_op, id);
    json *aliases = get(row, "aliases", json_type_array, false);
    for (size_t i = 0; aliases && i < json_object_array_length(aliases); i++)
        add_name(json_object_get_string(json_object_array_get_idx(aliases, i)), id);
    json *inputs = get(row, "inputs", json_type_array, true);
    json *attrs = get(row, "attrs", json_type_object, false);
    if (!inputs)
        return;
    uint32_t dtypes = dtype_set(get_string(row, "dtypes", true), false, NULL);
    struct arity ins = put_inputs(arrays, inputs, dtypes);
    unsigned n_attrs = put_attrs(arrays, attrs, inputs);
    struct arity outs = put_outputs(arrays, row, inputs, attrs);

    fprintf(table, "    {.name = \"%s\", .id = OI_OP_", where_op);
    put_upper(table, where_op);
    put_word_of(table, row, "class", vocab.classes, ", .cls = OI_OP_CLASS_");
    put_word_of(table, row, "shape", vocab.shapes, ", .shape_rule = OI_SHAPE_");
    put_arity(table, "input", ins, ins.n > 0);
    put_arity(table, "output", outs, true);
    fprintf(table, ", .dtypes = 0x%08" PRIx32 "u", dtypes);
    put_flags(table, row);
    if (n_attrs)
        fprintf(table, ", .attrs = attrs_%s, .n_attrs = %u", where_op, n_attrs);
    put_text_list(table, "aliases", aliases);
    put_text_list(table, "notes", get(row, "notes", json_type_array, false));
    fputs(", .doc = ", table);
    put_string(table, get_string(row, "doc", true));
    for (size_t i = 0; i < OI_COUNT(meanings); i++) {
        fprintf(table, ", .%s = ", meanings[i]);
        put_string(table, get_string(row, meanings[i], false));
    }
    fputs("},\n", table);
}

static void put_ops(FILE *f, json *ops)
{
    char *table_text = NULL;
    size_t table_size = 0;
    FILE *table = open_memstream(&table_text, &table_size);
    if (!table) {
        complain("out of memory");
        return;
    }
    for (size_t i = 0; i < json_object_array_length(ops); i++) {
        json *row = json_object_array_get_idx(ops, i);
        char number[32];
        snprintf(number, sizeof number, "number %zu", i);
        where_op = number;
        if (!json_object_is_type(row, json_type_object)) {
            complain("a row is an object");
        } else {
            const char *name = get_string(row, "name", true);
            where_op = *name ? name : number;
            put_op(f, table, row, i);
        }
        where_op = "";
    }
    fclose(table);
    fprintf(f, "\nconst oi_op oi_op_table[OI_OP_COUNT] = {\n%s};\n", table_text ? table_text : "");
    free(table_text);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->name, ((const struct name *)b)->name);
}

static void put_keys(FILE *f)
{
    qsort(names, n_names, sizeof names[0], by_name);
    fputs("\nconst oi_op_key oi_op_keys[] = {\n", f);
    for (size_t i = 0; i < n_names; i++)
        fprintf(f, "    {\"%s\", %zu},\n", names[i].name, names[i].op);
    fprintf(f, "};\nconst size_t oi_op_key_count = %zu;\n", n_names);
}

/* -- vocabulary
 * ------------------------------------------------------------------------------------ */

static void put_enum(FILE *h, const char *type, const char *prefix, json *words)
{
    fprintf(h, "\ntypedef enum %s {\n", type);
    json_object_object_foreach(words, key, doc)
    {
        (void)doc;
        fprintf(h, "    %s", prefix);
        put_upper(h, key);
        fputs(",\n", h);
    }
    fprintf(h, "    %sCOUNT\n} %s;\n", prefix, type);
}

static void put_words(FILE *f, const char *array, json *words)
{
    fprintf(f, "\nconst oi_op_word %s[] = {\n", array);
    json_object_object_foreach(words, key, doc)
    {
        if (!is_name(key) || !json_object_is_type(doc, json_type_string))
            complain("vocabulary: '%s' wants a name and one line of text", key);
        fprintf(f, "    {\"%s\", ", key);
        put_string(f, json_object_get_string(doc));
        fputs("},\n", f);
    }
    fputs(strcmp(array, "oi_op_flag_words") == 0 ? "    {NULL, NULL},\n};\n" : "};\n", f);
}

static void put_dtype_words(FILE *f)
{
    fputs("\nconst oi_dtype_word oi_dtype_words[] = {\n", f);
    json_object_object_foreach(vocab.dtypes, key, set)
    {
        if (!json_object_is_type(set, json_type_string))
            complain("vocabulary: dtypes '%s' wants a list of names in a string", key);
        else
            fprintf(f, "    {\"%s\", 0x%08" PRIx32 "u},\n", key,
                    dtype_set(json_object_get_string(set), false, NULL));
    }
    fputs("    {NULL, 0},\n};\n", f);
}

static bool read_vocabulary(json *root)
{
    static const char *const known[] = {"class", "dtypes", "kinds", "shape", "flags", NULL};
    json *v = get(root, "vocabulary", json_type_object, true);
    if (!v)
        return false;
    check_keys(v, known);
    vocab.classes = get(v, "class", json_type_object, true);
    vocab.dtypes = get(v, "dtypes", json_type_object, true);
    vocab.kinds = get(v, "kinds", json_type_object, true);
    vocab.shapes = get(v, "shape", json_type_object, true);
    vocab.flags = get(v, "flags", json_type_object, true);
    if (!vocab.classes || !vocab.dtypes || !vocab.kinds || !vocab.shapes || !vocab.flags)
        return false;
    json_object_object_foreach(vocab.kinds, kind, doc)
    {
        (void)doc;
        find_kind(kind);
    }
    return true;
}

/* -- the two files
 * ----------------------------------------------------------------------------------- */

static const char banner[] = "/* generated from ops/ops.json by tools/opsgen.c, do not edit */\n";

static void put_header(FILE *h, json *ops)
{
    fprintf(h, "%s#ifndef OI_OPS_GEN_H\n#define OI_OPS_GEN_H\n\ntypedef enum oi_op_id {\n", banner);
    for (size_t i = 0; i < json_object_array_length(ops); i++) {
        fputs("    OI_OP_", h);
        put_upper(h, get_string(json_object_array_get_idx(ops, i), "name", true));
        fputs(",\n", h);
    }
    fputs("    OI_OP_COUNT\n} oi_op_id;\n", h);
    put_enum(h, "oi_op_class", "OI_OP_CLASS_", vocab.classes);
    put_enum(h, "oi_attr_kind", "OI_ATTR_", vocab.kinds);
    put_enum(h, "oi_shape_rule", "OI_SHAPE_", vocab.shapes);
    fputs("\n#define OI_ATTR_KIND_COUNT OI_ATTR_COUNT\n\n", h);
    unsigned bit = 0;
    json_object_object_foreach(vocab.flags, key, doc)
    {
        (void)doc;
        fputs("#define OI_OP_FLAG_", h);
        put_upper(h, key);
        fprintf(h, " (1u << %u)\n", bit++);
    }
    if (bit > 32)
        complain("vocabulary: more than 32 flags");
    fputs("\n#endif\n", h);
}

static void put_source(FILE *c, json *ops)
{
    fprintf(c, "%s#include \"base/ops.h\"\n\n#include <math.h>\n\n", banner);
    put_ops(c, ops);
    put_keys(c);
    put_words(c, "oi_op_class_words", vocab.classes);
    put_words(c, "oi_attr_kind_words", vocab.kinds);
    put_words(c, "oi_shape_rule_words", vocab.shapes);
    put_words(c, "oi_op_flag_words", vocab.flags);
    put_dtype_words(c);
}

static bool write_file(const char *dir, const char *name, const char *text)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return false;
    FILE *f = fopen(path, "wb");
    bool ok = f && fputs(text, f) != EOF;
    if (f)
        ok = fclose(f) == 0 && ok;
    if (!ok)
        fprintf(stderr, "opsgen: cannot write %s: %s\n", path, strerror(errno));
    return ok;
}

static bool generate(json *root, const char *dir)
{
    static const char *const known[] = {"$doc", "vocabulary", "attrs", "ops", NULL};
    check_keys(root, known);
    json *ops = get(root, "ops", json_type_array, true);
    shared_attrs = get(root, "attrs", json_type_object, true);
    if (!ops || !shared_attrs || !read_vocabulary(root))
        return false;
    char *header = NULL, *source = NULL;
    size_t n_header = 0, n_source = 0;
    FILE *c = open_memstream(&source, &n_source), *h = open_memstream(&header, &n_header);
    if (c)
        put_source(c, ops);
    if (h && n_errors == 0) /* the rows are known to be sound only now */
        put_header(h, ops);
    bool ok = c && h;
    if (c)
        ok = fclose(c) == 0 && ok;
    if (h)
        ok = fclose(h) == 0 && ok;
    ok = ok && n_errors == 0 && write_file(dir, "ops_gen.h", header) &&
         write_file(dir, "ops_gen.c", source);
    free(header);
    free(source);
    return ok;
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t n = 0, cap = 0, got = 1;
    while (f && got) {
        if (n + 4096 > cap) {
            char *more = realloc(text, cap = cap * 2 + 8192);
            if (!more)
                break;
            text = more;
        }
        got = fread(text + n, 1, 4096 - 1, f);
        n += got;
    }
    if (!f || ferror(f))
        fprintf(stderr, "opsgen: cannot read %s: %s\n", path, strerror(errno));
    if (f)
        fclose(f);
    if (text)
        text[n] = '\0';
    return text;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: opsgen ops.json OUTDIR\n", stderr);
        return 2;
    }
    json_path = argv[1];
    char *text = read_file(json_path);
    if (!text)
        return 3;
    json_tokener *tok = json_tokener_new();
    if (!tok)
        return 3;
    json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
    json *root = json_tokener_parse_ex(tok, text, (int)strlen(text) + 1);
    if (!root || !json_object_is_type(root, json_type_object)) {
        size_t at = json_tokener_get_parse_end(tok), line = 1;
        for (size_t i = 0; i < at && text[i]; i++)
            line += text[i] == '\n';
        fprintf(stderr, "%s:%zu: error: not a JSON object: %s\n", json_path, line,
                json_tokener_error_desc(json_tokener_get_error(tok)));
        n_errors++;
    }
    if (n_errors == 0)
        check_duplicates(text);
    bool ok = n_errors == 0 && generate(root, argv[2]);
    json_object_put(root);
    json_tokener_free(tok);
    free(text);
    return ok ? 0 : 1;
}
