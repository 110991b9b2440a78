/* load.c: from a file, a profile or a text to a device: parse, follow `extends`, merge, fill. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "device/device.h"

#include <errno.h>
#include <stdlib.h>

#define FILE_LIMIT (4u << 20) /* a description of a device takes a few kilobytes */

/* -- messages -- */

void oi_device_error(oi_device_loader *x, const char *code, const char *pointer, const char *fmt,
                     ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = oi_arena_vprintf(x->a, fmt, args);
    va_end(args);
    x->status =
        oi_diag_error(x->d, (oi_place){.file = x->file, .pointer = pointer}, code, "%s", text);
}

void oi_device_warn(oi_device_loader *x, const char *code, const char *pointer, const char *fmt,
                    ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = oi_arena_vprintf(x->a, fmt, args);
    va_end(args);
    oi_diag_warn(x->d, (oi_place){.file = x->file, .pointer = pointer}, code, "%s", text);
}

void oi_device_set(oi_device_loader *x, struct json_object *object, const char *key,
                   struct json_object *value)
{
    x->given = value;
    /* json-c would leak its copy of the key when it runs out of memory: the key is ours */
    const char *kept = oi_arena_text(x->a, key, strlen(key));
    if (json_object_object_add_ex(object, kept, value, JSON_C_OBJECT_ADD_CONSTANT_KEY) != 0)
        oi_arena_fail(x->a);
    x->given = NULL;
}

/* -- profiles -- */

size_t oi_device_profile_count(void)
{
    size_t n = 0;
    while (oi_device_profiles[n].name)
        n++;
    return n;
}

const char *oi_device_profile_name(size_t i)
{
    return i < oi_device_profile_count() ? oi_device_profiles[i].name : NULL;
}

static const oi_embedded *find_profile(const char *name)
{
    for (const oi_embedded *p = oi_device_profiles; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

static const char *nearest_profile(const char *name)
{
    oi_nearest near = oi_nearest_start(name);
    for (const oi_embedded *p = oi_device_profiles; p->name; p++)
        oi_nearest_offer(&near, p->name);
    return near.best;
}

static bool looks_like_path(const char *name)
{
    size_t n = strlen(name);
    return strchr(name, '/') || (n > 5 && strcmp(name + n - 5, ".json") == 0);
}

/* -- the chain of files -- */

static void add_part(oi_device_loader *x, const char *text, size_t n, oi_device_part part)
{
    x->file = part.name;
    oi_status status = oi_json_parse(part.name, text, n, &part.tree, x->d);
    if (status != OI_OK) {
        x->status = status;
        return;
    }
    x->chain[x->n_chain++] = part;
    if (!json_object_is_type(part.tree, json_type_object)) {
        oi_device_error(x, "E090", "", "wanted an object with a \"device\" in it");
        return;
    }
    oi_device_check_file(x, part.tree);
    if (!part.is_profile)
        oi_device_note_given(x, part.tree);
}

static bool same_part(const oi_device_part *a, const oi_device_part *b)
{
    if (a->is_profile || b->is_profile)
        return a->is_profile && b->is_profile && strcmp(a->name, b->name) == 0;
    return a->path && b->path && strcmp(a->path, b->path) == 0;
}

/* False after an error: a part of the chain again, or too many. */
static bool chain_is_open(oi_device_loader *x, const oi_device_part *next)
{
    for (size_t i = 0; i < x->n_chain; i++) {
        if (!same_part(&x->chain[i], next))
            continue;
        const char *circle = x->chain[i].name;
        for (size_t k = i + 1; k < x->n_chain; k++)
            circle = oi_arena_printf(x->a, "%s -> %s", circle, x->chain[k].name);
        oi_device_error(x, "E092", "/extends", "extends goes in a circle: %s -> %s", circle,
                        next->name);
        return false;
    }
    if (x->n_chain < OI_EXTENDS_DEPTH)
        return true;
    oi_device_error(x, "E092", "/extends", "more than %d files extend each other",
                    OI_EXTENDS_DEPTH);
    return false;
}

/* Folder of a path with its slash, "" for none. */
static const char *folder_of(oi_arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? oi_arena_text(a, path, (size_t)(slash - path) + 1) : "";
}

/* Whether the path never leaves the folder that it begins in, as far as its text says. */
static bool stays_below(const char *path)
{
    long depth = 0;
    while (*path) {
        size_t n = strcspn(path, "/");
        if (n == 2 && memcmp(path, "..", 2) == 0)
            depth--;
        else if (n > 0 && !(n == 1 && path[0] == '.'))
            depth++;
        if (depth < 0)
            return false;
        path += n + (path[n] == '/');
    }
    return true;
}

/* NULL with errno. */
static const char *real_path(oi_device_loader *x, const char *path)
{
    x->text = realpath(path, NULL);
    const char *copy = x->text ? oi_arena_text(x->a, x->text, strlen(x->text)) : NULL;
    free(x->text);
    x->text = NULL;
    return copy;
}

static void leaves_folder(oi_device_loader *x, const char *name)
{
    oi_device_error(x, "E092", "/extends",
                    "\"%.*s\" is not in the folder of this file: a device file extends a built-in "
                    "profile, or a file beside or below it",
                    oi_utf8_fit(name, 200), name);
}

static void extend_file(oi_device_loader *x, const oi_device_part *from, const char *name)
{
    if (!from->path) {
        oi_device_error(x, "E092", "/extends",
                        "found the path \"%s\", but this text was not read from a file: only "
                        "built-in profiles can be extended here",
                        name);
        return;
    }
    if (name[0] == '/' || !stays_below(name)) {
        leaves_folder(x, name);
        return;
    }
    oi_device_part part = {.name =
                               oi_arena_printf(x->a, "%s%s", folder_of(x->a, from->name), name)};
    const char *path = oi_arena_printf(x->a, "%s%s", folder_of(x->a, from->path), name);
    part.path = real_path(x, path);
    if (!part.path) {
        oi_device_error(x, "E092", "/extends", "cannot open %s: %s", part.name, strerror(errno));
        return;
    }
    /* a file that was reached by a link extends what lies beside it, not beside the link */
    const char *seen = real_path(x, part.name);
    if (!seen || strcmp(seen, part.path) != 0)
        part.name = part.path;
    const char *folder = folder_of(x->a, from->path);
    if (strncmp(part.path, folder, strlen(folder)) != 0) {
        leaves_folder(x, name);
        return;
    }
    if (!chain_is_open(x, &part))
        return;
    size_t n = 0;
    oi_status status = oi_file_read(part.name, FILE_LIMIT, &x->text, &n, x->d);
    if (status != OI_OK) {
        x->status = status;
        return;
    }
    add_part(x, x->text, n, part);
    oi_free(x->text);
    x->text = NULL;
}

static void extend(oi_device_loader *x, struct json_object *v)
{
    const oi_device_part *from = &x->chain[x->n_chain - 1];
    if (!json_object_is_type(v, json_type_string)) {
        oi_device_error(x, "E092", "/extends", "wanted the name of a profile or a path");
        return;
    }
    const char *name = json_object_get_string(v);
    const oi_embedded *profile = find_profile(name);
    if (profile) {
        oi_device_part part = {.name = profile->name, .is_profile = true};
        if (chain_is_open(x, &part))
            add_part(x, (const char *)profile->text, profile->size, part);
    } else if (looks_like_path(name)) {
        extend_file(x, from, name);
    } else {
        oi_device_error(x, "E092", "/extends", "there is no built-in profile \"%.*s\"",
                        oi_utf8_fit(name, 60), name);
        const char *near = nearest_profile(name);
        if (near)
            oi_diag_hint(x->d, "did you mean \"%s\"?", near);
        else
            oi_diag_hint(x->d, "`openinfer targets` lists the profiles; a path ends in .json");
    }
}

/* Objects merge, everything else replaces. */
static void merge(oi_device_loader *x, struct json_object *base, struct json_object *over)
{
    json_object_object_foreach(over, key, v)
    {
        struct json_object *old = NULL;
        json_object_object_get_ex(base, key, &old);
        if (json_object_is_type(old, json_type_object) && json_object_is_type(v, json_type_object))
            merge(x, old, v);
        else
            oi_device_set(x, base, key, json_object_get(v));
    }
}

/* -- the whole -- */

typedef struct job {
    oi_device_loader x;
    const char *text;
    size_t n;
    oi_device_part first;
    oi_device *device; /* the result */
} job;

static struct json_object *merge_chain(oi_device_loader *x)
{
    struct json_object *tree = x->chain[x->n_chain - 1].tree;
    for (size_t i = x->n_chain - 1; i-- > 0;) {
        json_object_object_del(tree, "notes"); /* they speak of their own file */
        merge(x, tree, x->chain[i].tree);
    }
    json_object_object_del(tree, "extends");
    return tree;
}

static const char *to_text(oi_device_loader *x, struct json_object *tree)
{
    oi_buf buf = {0};
    oi_jsonw w = {.out = &buf};
    oi_jsonw_tree(&w, tree);
    oi_buf_putc(&buf, '\n');
    size_t n = buf.n;
    if (oi_buf_take(&buf, &x->text) != OI_OK)
        oi_arena_fail(x->a);
    return oi_arena_text(x->a, x->text, n);
}

static void run(void *ctx)
{
    job *j = ctx;
    oi_device_loader *x = &j->x;
    x->fields.arena = x->named.arena = x->a;
    for (size_t i = 0; i < oi_n_fields; i++)
        oi_map_put(&x->fields, oi_fields[i].path, (uint32_t)i);
    add_part(x, j->text, j->n, j->first);
    struct json_object *v;
    while (x->status == OI_OK &&
           json_object_object_get_ex(x->chain[x->n_chain - 1].tree, "extends", &v))
        extend(x, v);
    if (x->status != OI_OK)
        return;
    struct json_object *tree = merge_chain(x);
    x->file = j->first.name;
    oi_device_fill(x, tree);
    if (x->status == OI_OK)
        oi_device_check_rules(x);
    if (x->status != OI_OK)
        return;
    oi_device *device = oi_arena_alloc(x->a, sizeof *device);
    device->json = to_text(x, tree);
    device->info = x->info;
    device->arena = x->a;
    j->device = device;
}

oi_status oi_device_load_text(const char *text, size_t n, oi_device_part first, bool strict,
                              oi_device **out, oi_diag *d)
{
    *out = NULL;
    job j = {
        .x = {.a = oi_arena_new(), .d = d, .strict = strict}, .text = text, .n = n, .first = first};
    if (!j.x.a || oi_arena_guard(j.x.a, run, &j) != OI_OK)
        j.x.status = oi_diag_env(d, first.name, "out of memory");
    for (size_t i = 0; i < j.x.n_chain; i++)
        oi_json_free(j.x.chain[i].tree);
    oi_json_free(j.x.made);
    oi_json_free(j.x.held);
    oi_json_free(j.x.given);
    oi_free(j.x.text);
    if (j.x.status != OI_OK)
        oi_arena_free(j.x.a);
    else
        *out = j.device;
    return j.x.status;
}

oi_status oi_device_from_json(const char *text, size_t n, const char *name, bool strict,
                              oi_device **out, oi_diag *diag)
{
    if (!out || (!text && n))
        return OI_ERR_USAGE;
    oi_device_part first = {.name = name ? name : "device"};
    return oi_device_load_text(text ? text : "", n, first, strict, out, diag);
}

static oi_status load_file(const char *path, bool strict, oi_device **out, oi_diag *diag)
{
    char *text = NULL;
    size_t n = 0;
    OI_TRY(oi_file_read(path, FILE_LIMIT, &text, &n, diag));
    char *real = realpath(path, NULL);
    oi_device_part first = {.name = path, .path = real};
    oi_status status = oi_device_load_text(text, n, first, strict, out, diag);
    free(real);
    oi_free(text);
    return status;
}

oi_status oi_device_load(const char *path_or_profile, bool strict, oi_device **out, oi_diag *diag)
{
    if (!out || !path_or_profile)
        return OI_ERR_USAGE;
    *out = NULL;
    const oi_embedded *profile = find_profile(path_or_profile);
    if (profile) {
        oi_device_part first = {.name = profile->name, .is_profile = true};
        return oi_device_load_text((const char *)profile->text, profile->size, first, strict, out,
                                   diag);
    }
    oi_status status = load_file(path_or_profile, strict, out, diag);
    if (status != OI_ERR_ENV || looks_like_path(path_or_profile))
        return status;
    const char *near = nearest_profile(path_or_profile);
    if (near)
        oi_diag_hint(diag, "it is no built-in profile either; did you mean %s?", near);
    else
        oi_diag_hint(diag, "it is no built-in profile either; `openinfer targets` lists them");
    return status;
}

/* The device's own text with one number changed, and read again: every rule then holds anew. */
static oi_status with_threads(struct json_object *tree, const oi_device *d, uint64_t n,
                              oi_device **out, oi_diag *diag)
{
    struct json_object *cpu;
    struct json_object *threads = json_object_new_int64((int64_t)n);
    if (!json_object_object_get_ex(tree, "cpu", &cpu) || !threads ||
        json_object_object_add(cpu, "threads", threads) != 0) {
        oi_json_free(threads);
        return oi_diag_env(diag, d->info.name, "out of memory");
    }
    const char *text = json_object_to_json_string_ext(tree, JSON_C_TO_STRING_PLAIN);
    return text ? oi_device_from_json(text, strlen(text), d->info.name, false, out, diag)
                : oi_diag_env(diag, d->info.name, "out of memory");
}

oi_status oi_device_with_threads(const oi_device *d, uint64_t n, oi_device **out, oi_diag *diag)
{
    struct json_object *tree = NULL;
    if (!d || !out)
        return OI_ERR_USAGE;
    *out = NULL;
    if (d->info.type != OI_DEVICE_CPU || !d->info.cpu.libc)
        return oi_diag_error(diag, (oi_place){.file = d->info.name}, "E091",
                             "programs for this device have no threads");
    OI_TRY(oi_json_parse(d->info.name, d->json, strlen(d->json), &tree, diag));
    oi_status status = with_threads(tree, d, n < INT64_MAX ? n : INT64_MAX, out, diag);
    oi_json_free(tree);
    return status;
}

void oi_device_free(oi_device *d)
{
    if (d)
        oi_arena_free(d->arena);
}

const oi_device_info *oi_device_get(const oi_device *d)
{
    return d ? &d->info : NULL;
}

bool oi_device_has(const oi_device *d, oi_feature feature)
{
    return d && (unsigned)feature < OI_FEATURE_COUNT && d->info.features >> feature & 1;
}

oi_status oi_device_to_json(const oi_device *d, char **out, oi_diag *diag)
{
    if (!d || !out)
        return OI_ERR_USAGE;
    oi_buf buf = {0};
    oi_buf_puts(&buf, d->json);
    oi_status status = oi_buf_take(&buf, out);
    return status == OI_OK ? OI_OK : oi_diag_env(diag, "", "out of memory");
}
