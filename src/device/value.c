/* value.c: one value of a device file: its check, its place in oi_device_info, its normalised
 * form. */
#include "device/device.h"

#include <inttypes.h>

/* -- places -- */

const char *oi_device_pointer(oi_arena *a, const char *path)
{
    char *pointer = oi_arena_printf(a, "/%s", path);
    for (char *p = pointer; *p; p++)
        if (*p == '.')
            *p = '/';
    return pointer;
}

/* prefix/key with ~ and / of the key escaped (RFC 6901). */
const char *oi_device_pointer_key(oi_arena *a, const char *prefix, const char *key)
{
    size_t n = strlen(prefix);
    char *pointer = oi_arena_alloc(a, n + 2 * strlen(key) + 2), *p = pointer + n;
    memcpy(pointer, prefix, n);
    *p++ = '/';
    for (; *key; key++) {
        if (*key == '~' || *key == '/') {
            *p++ = '~';
            *p++ = *key == '~' ? '0' : '1';
        } else {
            *p++ = *key;
        }
    }
    return pointer;
}

/* -- messages -- */

/* A value as it is shown in a message. */
static const char *shown(oi_arena *a, struct json_object *v)
{
    switch (json_object_get_type(v)) {
    case json_type_null: return "null";
    case json_type_boolean: return json_object_get_boolean(v) ? "true" : "false";
    case json_type_array: return json_object_array_length(v) ? "a list" : "an empty list";
    case json_type_object: return "an object";
    case json_type_string:
        return oi_arena_printf(a, "\"%.*s\"", oi_utf8_fit(json_object_get_string(v), 60),
                               json_object_get_string(v));
    default: return oi_arena_printf(a, "%.60s", json_object_get_string(v));
    }
}

static const char *joined(oi_arena *a, const char *const *names)
{
    const char *text = names[0];
    for (size_t i = 1; names[i]; i++)
        text = oi_arena_printf(a, "%s%s%s", text, names[i + 1] ? ", " : " or ", names[i]);
    return text;
}

static const char *wanted_range(oi_arena *a, const oi_field *f, const char *what)
{
    if (f->max == OI_FIELD_MAX)
        return oi_arena_printf(a, "%s, at least %" PRIu64 " and below 2^53", what, f->min);
    return oi_arena_printf(a, "%s from %" PRIu64 " to %" PRIu64, what, f->min, f->max);
}

const char *oi_device_wanted(oi_arena *a, const oi_field *f)
{
    switch (f->kind) {
    case OI_FIELD_BOOL:
    case OI_FIELD_FEATURE: return "true or false";
    case OI_FIELD_COUNT:
    case OI_FIELD_ALIAS: return wanted_range(a, f, "a whole number");
    case OI_FIELD_POWER2: return wanted_range(a, f, "a power of two");
    case OI_FIELD_TRIPLE: return wanted_range(a, f, "a list of three whole numbers, each");
    case OI_FIELD_NUMBER: return "a number that is not negative";
    case OI_FIELD_TEXT:
    case OI_FIELD_LOWER: return "a text of one line";
    case OI_FIELD_ID: return "a name of letters, digits and _ . + -";
    case OI_FIELD_SECTION: return "a section name of letters, digits and _ . $ -, or \"\"";
    case OI_FIELD_VERSION: return "a text with a version such as \"1.2\"";
    case OI_FIELD_CHOICE: return joined(a, f->names);
    case OI_FIELD_SET: return oi_arena_printf(a, "a list with %s", joined(a, f->names));
    case OI_FIELD_NAMES: return "a list of names of letters, digits and _";
    case OI_FIELD_DTYPE: return "fp32, fp16, bf16, int8, fp64 or the name of an element type";
    case OI_FIELD_OBJECT: return "an object or null";
    }
    return "";
}

static bool wrong(oi_device_loader *x, const oi_field *f, struct json_object *v,
                  const char *pointer)
{
    if (!x->d || oi_diag_full(x->d)) { /* it would not be shown: do not build the text */
        x->status = OI_ERR_INPUT;
        return false;
    }
    oi_device_error(x, "E090", pointer, "found %s, wanted %s", shown(x->a, v),
                    oi_device_wanted(x->a, f));
    return false;
}

static bool wrong_name(oi_device_loader *x, const oi_field *f, struct json_object *v,
                       const char *name, const char *pointer)
{
    oi_nearest near = oi_nearest_start(name);
    for (size_t i = 0; f->names[i]; i++)
        oi_nearest_offer(&near, f->names[i]);
    wrong(x, f, v, pointer);
    if (strcmp(name, "npu") == 0)
        oi_diag_hint(x->d, "npu is reserved for later");
    else if (near.best)
        oi_diag_hint(x->d, "did you mean \"%s\"?", near.best);
    return false;
}

static bool wrong_item(oi_device_loader *x, const oi_field *f, struct json_object *item, size_t i,
                       const char *pointer)
{
    pointer = oi_arena_printf(x->a, "%s/%zu", pointer, i);
    if (f->kind != OI_FIELD_SET || !json_object_is_type(item, json_type_string))
        return wrong(x, f, item, pointer);
    return wrong_name(x, f, item, json_object_get_string(item), pointer);
}

/* -- storing -- */

static void *slot(oi_device_loader *x, const oi_field *f)
{
    return (char *)&x->info + f->offset;
}

/* Takes the freshly made value; NULL means json-c ran out of memory. */
static bool made(oi_device_loader *x, struct json_object *v)
{
    if (!v)
        oi_arena_fail(x->a);
    json_object_put(x->made);
    x->made = v;
    return true;
}

static void made_item(oi_device_loader *x, struct json_object *item)
{
    if (item && json_object_array_add(x->made, item) == 0)
        return;
    json_object_put(item);
    oi_arena_fail(x->a);
}

static char *lower(oi_arena *a, const char *text)
{
    char *copy = oi_arena_text(a, text, strlen(text));
    for (char *p = copy; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    return copy;
}

static int find_name(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* A JSON integer, or a number such as 1e9 that is one. */
static bool whole(struct json_object *v, uint64_t *out)
{
    if (json_object_is_type(v, json_type_int)) {
        if (json_object_get_int64(v) < 0)
            return false;
        *out = json_object_get_uint64(v);
        return true;
    }
    double d = oi_json_f64(v);
    if (!json_object_is_type(v, json_type_double) || !(d >= 0 && d <= (double)OI_FIELD_MAX))
        return false;
    *out = (uint64_t)d;
    return (double)*out == d;
}

static bool in_range(const oi_field *f, uint64_t n)
{
    return n >= f->min && n <= f->max;
}

/* -- kinds -- */

static bool take_bool(oi_device_loader *x, const oi_field *f, struct json_object *v,
                      const char *pointer)
{
    if (!json_object_is_type(v, json_type_boolean))
        return wrong(x, f, v, pointer);
    bool on = json_object_get_boolean(v);
    if (f->kind == OI_FIELD_BOOL)
        memcpy(slot(x, f), &on, sizeof on);
    else if (on)
        x->info.features |= 1u << f->min;
    else
        x->info.features &= ~(1u << f->min);
    return made(x, json_object_new_boolean(on));
}

static bool take_count(oi_device_loader *x, const oi_field *f, struct json_object *v,
                       const char *pointer)
{
    uint64_t n;
    if (!whole(v, &n) || !in_range(f, n) || (f->kind == OI_FIELD_POWER2 && (n & (n - 1))))
        return wrong(x, f, v, pointer);
    if (f->kind != OI_FIELD_ALIAS)
        memcpy(slot(x, f), &n, sizeof n);
    return made(x, json_object_new_uint64(n));
}

static bool take_triple(oi_device_loader *x, const oi_field *f, struct json_object *v,
                        const char *pointer)
{
    uint64_t n[3] = {1, 1, 1};
    if (!json_object_is_type(v, json_type_array)) {
        if (!whole(v, &n[0]) || !in_range(f, n[0]))
            return wrong(x, f, v, pointer);
    } else if (json_object_array_length(v) != 3) {
        oi_device_error(x, "E090", pointer, "found a list of %zu, wanted %s",
                        json_object_array_length(v), oi_device_wanted(x->a, f));
        return false;
    } else {
        for (size_t i = 0; i < 3; i++) {
            struct json_object *item = json_object_array_get_idx(v, i);
            if (!whole(item, &n[i]) || !in_range(f, n[i]))
                return wrong_item(x, f, item, i, pointer);
        }
    }
    memcpy(slot(x, f), n, sizeof n);
    made(x, json_object_new_array());
    for (size_t i = 0; i < 3; i++)
        made_item(x, json_object_new_uint64(n[i]));
    return true;
}

static bool take_number(oi_device_loader *x, const oi_field *f, struct json_object *v,
                        const char *pointer)
{
    double d = oi_json_f64(v);
    bool number = json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double);
    if (!number || !(d >= 0))
        return wrong(x, f, v, pointer);
    d += 0.0; /* -0 becomes 0 */
    memcpy(slot(x, f), &d, sizeof d);
    char text[OI_NUMBER_TEXT];
    oi_print_f64(text, d);
    return made(x, json_object_new_double_s(d, text));
}

static bool is_plain(char c, const char *extra)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr(extra, c));
}

static bool all_plain(const char *text, const char *extra)
{
    for (; *text; text++)
        if (!is_plain(*text, extra))
            return false;
    return true;
}

/* digits "." digits { "." digits }, or a single number */
static bool is_version(const char *text)
{
    for (;;) {
        size_t n = strspn(text, "0123456789");
        if (n == 0 || n > 9)
            return false;
        text += n;
        if (*text == '\0')
            return true;
        if (*text++ != '.')
            return false;
    }
}

static bool fits_text(const oi_field *f, const char *text)
{
    switch (f->kind) {
    case OI_FIELD_ID: return text[0] && all_plain(text, "_.+-");
    case OI_FIELD_SECTION: return all_plain(text, "_.$-");
    case OI_FIELD_VERSION:
        return is_version(text) || (!text[0] && f->standard && strcmp(f->standard, "\"\"") == 0);
    default: break;
    }
    for (; *text; text++) /* names go into comments of emitted code: one line */
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    return true;
}

static bool take_text(oi_device_loader *x, const oi_field *f, struct json_object *v,
                      const char *pointer)
{
    if (!json_object_is_type(v, json_type_string) || !fits_text(f, json_object_get_string(v)))
        return wrong(x, f, v, pointer);
    const char *text = json_object_get_string(v);
    bool lowered = f->kind == OI_FIELD_LOWER || f->kind == OI_FIELD_ID;
    const char *copy = lowered ? lower(x->a, text) : oi_arena_text(x->a, text, strlen(text));
    memcpy(slot(x, f), &copy, sizeof copy);
    return made(x, json_object_new_string(copy));
}

static bool take_choice(oi_device_loader *x, const oi_field *f, struct json_object *v,
                        const char *pointer)
{
    if (!json_object_is_type(v, json_type_string))
        return wrong(x, f, v, pointer);
    const char *name = lower(x->a, json_object_get_string(v));
    int value = find_name(f->names, name);
    if (value < 0)
        return wrong_name(x, f, v, name, pointer);
    memcpy(slot(x, f), &value, sizeof value);
    return made(x, json_object_new_string(name));
}

/* Bit of one name of a set, or 0. */
static uint32_t set_bit(oi_device_loader *x, const oi_field *f, struct json_object *item)
{
    if (!json_object_is_type(item, json_type_string))
        return 0;
    int value = find_name(f->names, lower(x->a, json_object_get_string(item)));
    return value < 0 ? 0 : 1u << value;
}

/* The normalised list is in the order of the names, so that it is the same for the same set. */
static bool made_set(oi_device_loader *x, const oi_field *f, uint32_t bits)
{
    made(x, json_object_new_array());
    for (unsigned i = 0; f->names[i]; i++)
        if (bits >> i & 1)
            made_item(x, json_object_new_string(f->names[i]));
    return true;
}

static bool take_set(oi_device_loader *x, const oi_field *f, struct json_object *v,
                     const char *pointer)
{
    uint32_t bits = 0;
    if (json_object_is_type(v, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(v); i++) {
            struct json_object *item = json_object_array_get_idx(v, i);
            uint32_t bit = set_bit(x, f, item);
            if (!bit)
                return wrong_item(x, f, item, i, pointer);
            bits |= bit;
        }
    } else {
        bits = set_bit(x, f, v);
        if (!bits && json_object_is_type(v, json_type_string))
            return wrong_name(x, f, v, json_object_get_string(v), pointer);
        if (!bits)
            return wrong(x, f, v, pointer);
    }
    if (f->offset == offsetof(oi_device_info, cpu.isa))
        bits = oi_device_close_isa(bits);
    memcpy(slot(x, f), &bits, sizeof bits);
    return made_set(x, f, bits);
}

static bool take_names(oi_device_loader *x, const oi_field *f, struct json_object *v,
                       const char *pointer)
{
    if (!json_object_is_type(v, json_type_array))
        return wrong(x, f, v, pointer);
    size_t n = json_object_array_length(v);
    const char **names = oi_arena_alloc(x->a, (n + 1) * sizeof *names);
    made(x, json_object_new_array());
    for (size_t i = 0; i < n; i++) {
        struct json_object *item = json_object_array_get_idx(v, i);
        const char *text =
            json_object_is_type(item, json_type_string) ? json_object_get_string(item) : "";
        if (!text[0] || !all_plain(text, "_"))
            return wrong_item(x, f, item, i, pointer);
        names[i] = oi_arena_text(x->a, text, strlen(text));
        made_item(x, json_object_new_string(text));
    }
    oi_device_names list = {names, n};
    memcpy(slot(x, f), &list, sizeof list);
    return true;
}

static bool take_dtype(oi_device_loader *x, const oi_field *f, struct json_object *v,
                       const char *pointer)
{
    static const struct {
        const char *name;
        oi_dtype t;
    } spelled[] = {
        {"fp32", OI_F32}, {"fp16", OI_F16}, {"bf16", OI_BF16}, {"int8", OI_I8}, {"fp64", OI_F64}};
    if (!json_object_is_type(v, json_type_string))
        return wrong(x, f, v, pointer);
    const char *name = lower(x->a, json_object_get_string(v));
    oi_dtype t = oi_dtype_find(name);
    for (size_t i = 0; i < OI_COUNT(spelled); i++)
        if (strcmp(spelled[i].name, name) == 0)
            t = spelled[i].t;
    if (!oi_dtype_is_float(t) && !oi_dtype_is_integer(t))
        return wrong(x, f, v, pointer);
    memcpy(slot(x, f), &t, sizeof t);
    name = oi_dtype_name(t);
    for (size_t i = 0; i < OI_COUNT(spelled); i++)
        if (spelled[i].t == t)
            name = spelled[i].name;
    return made(x, json_object_new_string(name));
}

bool oi_device_value(oi_device_loader *x, const oi_field *f, struct json_object *v,
                     const char *pointer)
{
    switch (f->kind) {
    case OI_FIELD_BOOL:
    case OI_FIELD_FEATURE: return take_bool(x, f, v, pointer);
    case OI_FIELD_COUNT:
    case OI_FIELD_POWER2:
    case OI_FIELD_ALIAS: return take_count(x, f, v, pointer);
    case OI_FIELD_TRIPLE: return take_triple(x, f, v, pointer);
    case OI_FIELD_NUMBER: return take_number(x, f, v, pointer);
    case OI_FIELD_TEXT:
    case OI_FIELD_LOWER:
    case OI_FIELD_ID:
    case OI_FIELD_SECTION:
    case OI_FIELD_VERSION: return take_text(x, f, v, pointer);
    case OI_FIELD_CHOICE: return take_choice(x, f, v, pointer);
    case OI_FIELD_SET: return take_set(x, f, v, pointer);
    case OI_FIELD_NAMES: return take_names(x, f, v, pointer);
    case OI_FIELD_DTYPE: return take_dtype(x, f, v, pointer);
    case OI_FIELD_OBJECT: break;
    }
    bool present = json_object_is_type(v, json_type_object);
    if (v && !present)
        return wrong(x, f, v, pointer);
    memcpy(slot(x, f), &present, sizeof present);
    json_object_put(x->made);
    x->made = json_object_get(v); /* its fields have rows of their own */
    return true;
}
