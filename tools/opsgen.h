/* opsgen.h: what the files of the op registry's generator share. */
#ifndef OPSGEN_H
#define OPSGEN_H

#include "base/base.h"

#include <json-c/json.h>

typedef struct json_object json;

/* What is being read; complaints name it. */
typedef struct generator {
    const char *json_path;
    const char *where_op, *where_part;
    unsigned n_errors;
    struct {
        json *classes, *dtypes, *kinds, *shapes, *loops, *flags, *parts, *orders, *tolerances;
    } vocab;
    json *shared_attrs;
} generator;
extern generator gen;

/* -- opsgen_text.c: complaints, checked reading, escaped writing ------------------------------- */

void gen_complain(const char *fmt, ...) OI_PRINTF(1, 2);
void gen_check_keys(json *obj, const char *const *known); /* NULL-terminated */
json *gen_get(json *obj, const char *key, json_type type, bool required);
const char *gen_get_string(json *obj, const char *key, bool required); /* "" when absent */
bool gen_get_bool(json *obj, const char *key);
bool gen_is_name(const char *s);
bool gen_has_word(json *words, const char *word);
void gen_check_duplicates(const char *text); /* keys given twice in one object */

#define GEN_SAME (1u << 31) /* as OI_DTYPES_SAME */
/* "F S i4 same" as a mask; `first`, when asked for, gets the first word's own dtype (OI_NONE for
 * "same" or a class). */
uint32_t gen_dtype_set(const char *text, bool same_allowed, oi_dtype *first);

void gen_put_string(FILE *f, const char *s);
void gen_put_upper(FILE *f, const char *s);
const char *gen_dtype_constant(oi_dtype t, char out[16]); /* "OI_F32" */

/* -- opsgen_attrs.c ---------------------------------------------------------------------------- */

bool gen_is_kind(const char *name);                         /* complains when it is none */
unsigned gen_put_attrs(FILE *f, json *attrs, json *inputs); /* how many */
int gen_find_attr(json *attrs, const char *name, const char *kind);

/* -- opsgen_meaning.c -------------------------------------------------------------------------- */

/* As gen_check_keys; the words of vocabulary.parts are keys too. */
void gen_check_row_keys(json *row, const char *const *known);
unsigned gen_put_meanings(FILE *f, json *row); /* how many */

/* -- opsgen_body.c ----------------------------------------------------------------------------- */

/* The bodies of row `number` of ops, or none; how many. */
unsigned gen_put_bodies(FILE *f, json *row, json *ops, size_t number);

/* -- opsgen.c ---------------------------------------------------------------------------------- */

int gen_find_input(json *inputs, const char *name);

#endif
