/* device.h: device files inside. fields.c holds the one table of everything a file may say; the
 * other files only walk it. */
#ifndef OI_DEVICE_H
#define OI_DEVICE_H

#include "base/base.h"

#include <json-c/json.h>

/* -- fields.c: the table ------------------------------------------------------------------------
 */

/* Which devices a field belongs to. A gpu counts as one of two by its api. */
enum {
    ON_VULKAN = 1,
    ON_CUDA = 2,
    ON_CPU = 4,
    ON_MCU = 8,
    ON_FPGA = 16,
    ON_GPU = ON_VULKAN | ON_CUDA,
    ON_ALL = 31
};

typedef enum oi_field_kind {
    OI_FIELD_BOOL,
    OI_FIELD_FEATURE, /* bool, kept as the bit `min` of info.features */
    OI_FIELD_COUNT,   /* uint64_t within min … max */
    OI_FIELD_POWER2,  /* the same, a power of two */
    OI_FIELD_TRIPLE,  /* uint64_t[3]; one number n is [n, 1, 1] */
    OI_FIELD_NUMBER,  /* double, finite, not negative */
    OI_FIELD_TEXT,    /* one line */
    OI_FIELD_LOWER,   /* one line, lower-cased */
    OI_FIELD_ID,      /* lower-cased letters, digits and _ . + - */
    OI_FIELD_SECTION, /* linker section name, or "" */
    OI_FIELD_VERSION, /* "8.9"; "" only where the default is "" */
    OI_FIELD_CHOICE,  /* enum by `names` */
    OI_FIELD_SET,     /* uint32_t of bits by `names`; one name or a list */
    OI_FIELD_NAMES,   /* oi_device_names: identifiers, in the order given */
    OI_FIELD_DTYPE,   /* oi_dtype; fp32 and its like also accepted */
    OI_FIELD_OBJECT,  /* object or null; bool: is it there */
    OI_FIELD_ALIAS    /* stands for another path (`standard`), only on reading */
} oi_field_kind;

/* Two rows may share a path when their defaults differ by device; all else is then equal. */
typedef struct oi_field {
    const char *path; /* section.key */
    oi_field_kind kind;
    unsigned on;          /* devices it belongs to */
    size_t offset;        /* into oi_device_info */
    const char *standard; /* default as JSON text; NULL: derived, or required */
    uint64_t (*derive)(const oi_device_info *info);
    uint64_t min, max;
    const char *const *names; /* spelling by value, NULL-ended */
    const char *doc;
} oi_field;

extern const oi_field oi_fields[];
extern const size_t oi_n_fields;

#define OI_FIELD_MAX ((1ull << 53) - 1) /* what every JSON reader keeps exactly */

/* -- load.c -- */

#define OI_EXTENDS_DEPTH 16 /* longer chains are mistakes, and each link costs a file */

typedef struct oi_device_part {
    struct json_object *tree;
    const char *name; /* as shown */
    const char *path; /* canonical, NULL for profiles and memory */
    bool is_profile;
} oi_device_part;

/* One device being loaded. Everything it owns hangs here, so that running out of memory anywhere
 * leaks nothing. */
typedef struct oi_device_loader {
    oi_arena *a; /* becomes the device's */
    oi_diag *d;
    bool strict;
    oi_status status;                       /* the first error, OI_OK when there was none */
    oi_device_part chain[OI_EXTENDS_DEPTH]; /* the file, what it extends, … */
    size_t n_chain;
    const char *file;      /* named in messages */
    oi_map fields;         /* path -> row */
    oi_map named;          /* paths that the files name, not the built-in profiles */
    const oi_field **told; /* of those, fields that do not have their default */
    size_t n_told;
    unsigned n_unknown;
    unsigned on;               /* ON_… bits still possible */
    struct json_object *made;  /* value being converted */
    struct json_object *held;  /* what it is converted from */
    struct json_object *given; /* on its way into a tree */
    char *text;                /* of a file, before it is parsed; of the result */
    oi_device_info info;
} oi_device_loader;

struct oi_device {
    oi_arena *arena;  /* holds the device itself */
    const char *json; /* normalised */
    oi_device_info info;
};

/* first.tree is left empty: it comes from the text. */
oi_status oi_device_load_text(const char *text, size_t n, oi_device_part first, bool strict,
                              oi_device **out, oi_diag *d);
/* Codes: E090 a value, E091 values that contradict, E092 extends, E093/W190 unknown key, W191. */
void oi_device_error(oi_device_loader *x, const char *code, const char *pointer, const char *fmt,
                     ...) OI_PRINTF(4, 5);
void oi_device_warn(oi_device_loader *x, const char *code, const char *pointer, const char *fmt,
                    ...) OI_PRINTF(4, 5);
/* Adds to an object and gives up ownership; running out of memory fails the arena. */
void oi_device_set(oi_device_loader *x, struct json_object *object, const char *key,
                   struct json_object *value);

/* -- value.c: one value ---------------------------------------------------------------------------
 */

/* Checks a value and puts it into x->info; leaves its normalised form in x->made. False after an
 * error. `pointer` is its place. */
bool oi_device_value(oi_device_loader *x, const oi_field *f, struct json_object *value,
                     const char *pointer);
const char *oi_device_wanted(oi_arena *a, const oi_field *f); /* "true or false", … */
const char *oi_device_pointer(oi_arena *a, const char *path); /* limits.x -> /limits/x */
const char *oi_device_pointer_key(oi_arena *a, const char *prefix, const char *key);

/* -- normalise.c -- */

/* One file as it stands: types of what it says, unknown keys, aliases. */
void oi_device_check_file(oi_device_loader *x, struct json_object *tree);
/* The merged tree: every default filled in, x->info complete. */
void oi_device_fill(oi_device_loader *x, struct json_object *tree);
const oi_field *oi_device_field_find(const oi_device_loader *x, const char *path);

/* -- rules.c -- */

/* What must hold between fields. */
void oi_device_check_rules(oi_device_loader *x);
/* Adds what an instruction set implies; scalar goes when there is another. */
uint32_t oi_device_close_isa(uint32_t isa);

/* -- effects.c: fields that do nothing here -- */

/* A file's own fields, before it is merged; then one value, which is in x->made. */
void oi_device_note_given(oi_device_loader *x, struct json_object *tree);
void oi_device_note_value(oi_device_loader *x, const oi_field *f);
void oi_device_check_effects(oi_device_loader *x);

/* -- profiles (generated from devices/ by tools/embed.c) -- */

typedef struct oi_embedded {
    const char *name;
    const unsigned char *text;
    size_t size;
} oi_embedded;

extern const oi_embedded oi_device_profiles[]; /* ends with a NULL name; sorted */

#endif
