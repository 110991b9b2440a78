/* normalise.c: walks a device file by the table of fields: first each file as it stands, then the
 * merged tree, which gets every default. */
#include "device/device.h"

#define HINTED 20u /* unknown keys that get a "did you mean": no more messages are kept */

const oi_field *oi_device_field_find(const oi_device_loader *x, const char *path)
{
    uint32_t row = oi_map_get(&x->fields, path);
    return row == OI_MAP_NONE ? NULL : &oi_fields[row];
}

/* Does some row lie below this path? */
static bool is_section(const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < oi_n_fields; i++)
        if (strncmp(oi_fields[i].path, path, n) == 0 && oi_fields[i].path[n] == '.')
            return true;
    return false;
}

/* -- one file -- */

/* Key of a row (or section) directly below `prefix`, its first n bytes in *key; 0 when not below.
 */
static size_t key_below(const char *path, const char *prefix, const char **key)
{
    size_t n = strlen(prefix);
    if (n && (strncmp(path, prefix, n) != 0 || path[n] != '.'))
        return 0;
    *key = path + (n ? n + 1 : 0);
    return strcspn(*key, ".");
}

static void offer_keys(oi_device_loader *x, const char *prefix, oi_nearest *near)
{
    const char *key;
    for (size_t i = 0; i < oi_n_fields; i++) {
        size_t n = key_below(oi_fields[i].path, prefix, &key);
        if (n)
            oi_nearest_offer(near, oi_arena_text(x->a, key, n));
    }
    if (!prefix[0]) {
        oi_nearest_offer(near, "extends");
        oi_nearest_offer(near, "notes");
    }
}

/* Unknown keys are kept: a newer file may be read by an older program. */
static void unknown(oi_device_loader *x, const char *prefix, const char *key)
{
    if (x->n_unknown++ >= HINTED) {
        if (x->strict)
            x->status = OI_ERR_INPUT;
        return;
    }
    const char *pointer =
        oi_device_pointer_key(x->a, prefix[0] ? oi_device_pointer(x->a, prefix) : "", key);
    int shown = oi_utf8_fit(key, 60);
    if (x->strict)
        oi_device_error(x, "E093", pointer, "unknown key \"%.*s\"", shown, key);
    else
        oi_device_warn(x, "W190", pointer, "unknown key \"%.*s\": kept, but not used", shown, key);
    oi_nearest near = oi_nearest_start(key);
    offer_keys(x, prefix, &near);
    if (near.best)
        oi_diag_hint(x->d, "did you mean \"%s\"?", near.best);
}

static void check_notes(oi_device_loader *x, struct json_object *v)
{
    bool ok = json_object_is_type(v, json_type_string) || json_object_is_type(v, json_type_array);
    if (json_object_is_type(v, json_type_array))
        for (size_t i = 0; i < json_object_array_length(v); i++)
            ok &= json_object_is_type(json_object_array_get_idx(v, i), json_type_string);
    if (!ok)
        oi_device_error(x, "E090", "/notes", "wanted a text or a list of texts");
}

static void walk(oi_device_loader *x, struct json_object *object, const char *prefix);

static void walk_key(oi_device_loader *x, struct json_object *object, const char *prefix,
                     const char *key, struct json_object *v)
{
    if (strchr(key, '.') || strlen(key) > 64) { /* paths are made with dots; no field is so long */
        unknown(x, prefix, key);
        return;
    }
    const char *path = prefix[0] ? oi_arena_printf(x->a, "%s.%s", prefix, key) : key;
    const oi_field *f = oi_device_field_find(x, path);
    if (f) {
        if (!oi_device_value(x, f, v, oi_device_pointer(x->a, path)))
            return;
        if (f->kind == OI_FIELD_OBJECT && v)
            walk(x, v, path);
        else
            oi_device_set(x, object, key, json_object_get(x->made));
    } else if (!is_section(path)) {
        unknown(x, prefix, key);
    } else if (json_object_is_type(v, json_type_object)) {
        walk(x, v, path);
    } else {
        oi_device_error(x, "E090", oi_device_pointer(x->a, path), "wanted an object with fields");
    }
}

static void walk(oi_device_loader *x, struct json_object *object, const char *prefix)
{
    json_object_object_foreach(object, key, v)
    {
        if (!prefix[0] && strcmp(key, "extends") == 0)
            continue; /* load.c follows it */
        if (!prefix[0] && strcmp(key, "notes") == 0)
            check_notes(x, v);
        else
            walk_key(x, object, prefix, key, v);
    }
}

/* The object that holds the last part of `path`; made when it is missing. NULL when something
 * else stands there (the null of an absent object). */
static struct json_object *holder(oi_device_loader *x, struct json_object *tree, const char *path)
{
    for (const char *dot; (dot = strchr(path, '.')); path = dot + 1) {
        const char *key = oi_arena_text(x->a, path, (size_t)(dot - path));
        struct json_object *next = NULL;
        if (!json_object_object_get_ex(tree, key, &next)) {
            next = json_object_new_object();
            if (!next)
                oi_arena_fail(x->a);
            oi_device_set(x, tree, key, next);
        }
        if (!json_object_is_type(next, json_type_object))
            return NULL;
        tree = next;
    }
    return tree;
}

static const char *last_key(const char *path)
{
    return strrchr(path, '.') + 1;
}

/* Moves a value to the path it stands for, before files are merged: so the file that says it,
 * in whichever way, overrides what it extends. */
static void move_alias(oi_device_loader *x, struct json_object *tree, const oi_field *f)
{
    struct json_object *section, *v, *other;
    const char *dot = strchr(f->path, '.');
    const char *name = oi_arena_text(x->a, f->path, (size_t)(dot - f->path));
    if (!json_object_object_get_ex(tree, name, &section) ||
        !json_object_object_get_ex(section, dot + 1, &v))
        return;
    struct json_object *to = holder(x, tree, f->standard);
    const char *key = last_key(f->standard);
    if (json_object_object_get_ex(to, key, &other)) {
        if (json_object_get_uint64(other) != json_object_get_uint64(v))
            oi_device_error(x, "E091", oi_device_pointer(x->a, f->path),
                            "%s and %s are the same thing, but differ", f->path, f->standard);
    } else {
        oi_device_set(x, to, key, json_object_get(v));
    }
    json_object_object_del(section, dot + 1);
}

void oi_device_check_file(oi_device_loader *x, struct json_object *tree)
{
    walk(x, tree, "");
    for (size_t i = 0; i < oi_n_fields && x->status == OI_OK; i++)
        if (oi_fields[i].kind == OI_FIELD_ALIAS)
            move_alias(x, tree, &oi_fields[i]);
}

/* -- the merged tree -- */

static bool is_text(oi_field_kind kind)
{
    return kind == OI_FIELD_TEXT || kind == OI_FIELD_LOWER || kind == OI_FIELD_ID ||
           kind == OI_FIELD_SECTION || kind == OI_FIELD_VERSION;
}

static void start_info(oi_device_loader *x)
{
    static const char *const nothing = "";
    x->info = (oi_device_info){.notes = ""};
    for (size_t i = 0; i < oi_n_fields; i++)
        if (is_text(oi_fields[i].kind))
            memcpy((char *)&x->info + oi_fields[i].offset, &nothing, sizeof nothing);
}

/* Left in x->made. False when the field has no default. */
static bool default_value(oi_device_loader *x, const oi_field *f)
{
    json_object_put(x->made);
    x->made = NULL;
    if (f->standard) {
        if (oi_json_parse(f->path, f->standard, strlen(f->standard), &x->made, NULL) != OI_OK)
            oi_arena_fail(x->a); /* our own text: only memory can be wrong */
        return true;
    }
    if (!f->derive)
        return false;
    uint64_t n = f->derive(&x->info);
    x->made = f->names ? json_object_new_string(f->names[n]) : json_object_new_uint64(n);
    if (!x->made)
        oi_arena_fail(x->a);
    return true;
}

static void fill_field(oi_device_loader *x, struct json_object *tree, const oi_field *f)
{
    struct json_object *section = holder(x, tree, f->path), *v = NULL;
    const char *key = last_key(f->path), *pointer = oi_device_pointer(x->a, f->path);
    if (!section)
        return;
    if (!json_object_object_get_ex(section, key, &v)) {
        if (!default_value(x, f)) {
            oi_device_error(x, "E090", pointer, "missing; wanted %s", oi_device_wanted(x->a, f));
            return;
        }
        v = x->made;
    }
    x->held = json_object_get(v); /* x->made changes hands below */
    bool ok = oi_device_value(x, f, x->held, pointer);
    json_object_put(x->held);
    x->held = NULL;
    if (!ok)
        return;
    oi_device_note_value(x, f);
    oi_device_set(x, section, key, json_object_get(x->made));
}

static const unsigned by_type[] = {[OI_DEVICE_GPU] = ON_GPU,
                                   [OI_DEVICE_CPU] = ON_CPU,
                                   [OI_DEVICE_MCU] = ON_MCU,
                                   [OI_DEVICE_FPGA] = ON_FPGA};
static const unsigned by_api[] = {
    [OI_DEVICE_VULKAN] = ON_VULKAN, [OI_DEVICE_CUDA] = ON_CUDA,    [OI_DEVICE_C] = ON_CPU | ON_MCU,
    [OI_DEVICE_VHDL] = ON_FPGA,     [OI_DEVICE_VERILOG] = ON_FPGA, [OI_DEVICE_HLS_C] = ON_FPGA,
    [OI_DEVICE_NULL] = ON_CPU};
static const char *const suits[] = {[OI_DEVICE_GPU] = "vulkan or cuda",
                                    [OI_DEVICE_CPU] = "c or null",
                                    [OI_DEVICE_MCU] = "c",
                                    [OI_DEVICE_FPGA] = "vhdl, verilog or hls_c"};

static void check_api(oi_device_loader *x)
{
    if (!x->on)
        oi_device_error(x, "E091", "/device/api", "%s does not suit a device of type %s, wanted %s",
                        oi_device_api_name(x->info.api), oi_device_type_name(x->info.type),
                        suits[x->info.type]);
}

/* Sections for other kinds of device stay as they are. */
static void warn_misplaced(oi_device_loader *x, struct json_object *tree)
{
    static const char *const sections[] = {"cpu", "cuda", "fpga", "mcu", "vulkan"};
    for (size_t i = 0; i < OI_COUNT(sections); i++) {
        if (!json_object_object_get_ex(tree, sections[i], NULL))
            continue;
        unsigned on = 0;
        const char *key;
        for (size_t k = 0; k < oi_n_fields; k++)
            if (oi_fields[k].kind != OI_FIELD_ALIAS &&
                key_below(oi_fields[k].path, sections[i], &key))
                on |= oi_fields[k].on;
        if (on & x->on)
            continue;
        const char *pointer = oi_device_pointer(x->a, sections[i]);
        const char *type = oi_device_type_name(x->info.type);
        const char *api = oi_device_api_name(x->info.api);
        if (x->strict)
            oi_device_error(x, "E093", pointer, "\"%s\" does not belong to a %s with %s",
                            sections[i], type, api);
        else
            oi_device_warn(x, "W190", pointer,
                           "\"%s\" does not belong to a %s with %s: kept, but not used",
                           sections[i], type, api);
    }
}

static void take_notes(oi_device_loader *x, struct json_object *tree)
{
    struct json_object *v = NULL;
    json_object_object_get_ex(tree, "notes", &v);
    if (json_object_is_type(v, json_type_array))
        v = json_object_array_length(v) ? json_object_array_get_idx(v, 0) : NULL;
    if (v)
        x->info.notes =
            oi_arena_text(x->a, json_object_get_string(v), (size_t)json_object_get_string_len(v));
}

void oi_device_fill(oi_device_loader *x, struct json_object *tree)
{
    start_info(x);
    take_notes(x, tree);
    bool known = false; /* what kind of device it is: without that, other fields mean nothing */
    x->on = ON_ALL;
    for (size_t i = 0; i < oi_n_fields; i++) {
        const oi_field *f = &oi_fields[i];
        if (!(f->on & x->on) || f->kind == OI_FIELD_ALIAS)
            continue;
        fill_field(x, tree, f);
        if (f->offset == offsetof(oi_device_info, type))
            x->on = by_type[x->info.type];
        if (f->offset == offsetof(oi_device_info, api)) {
            x->on &= by_api[x->info.api];
            check_api(x);
            known = true;
        }
        if (x->status != OI_OK && (!known || !x->on))
            return;
    }
    warn_misplaced(x, tree);
}
