/* json_read.h: shared by the files that read Graph JSON; no other file includes it. */
#ifndef OI_GRAPH_JSON_READ_H
#define OI_GRAPH_JSON_READ_H

#include "graph/graph.h"

#include <json-c/json.h>

/* Where we are: a chain of keys and array positions, turned into a JSON pointer when needed. The
 * root has no `up`. */
typedef struct oi_at {
    const struct oi_at *up;
    const char *key; /* NULL: use index */
    size_t index;
} oi_at;

typedef struct oi_json_reader {
    oi_graph *g;
    oi_diag *diag;
    bool failed;
} oi_json_reader;

/* -- json_read.c -- */
const char *oi_read_pointer(oi_json_reader *r, const oi_at *at);
void oi_read_error(oi_json_reader *r, const oi_at *at, const char *code, const char *fmt, ...)
    OI_PRINTF(4, 5);
const char *oi_read_kind(struct json_object *j); /* "an array", for messages */
bool oi_read_expect(oi_json_reader *r, const oi_at *at, struct json_object *j, int type,
                    const char *wanted);
struct json_object *oi_read_field(struct json_object *j,
                                  const char *key); /* NULL: absent or null */
void oi_read_known(oi_json_reader *r, const oi_at *at, struct json_object *j,
                   const char *const *known);
oi_name oi_read_name(oi_json_reader *r, const oi_at *up, struct json_object *j, const char *key);
bool oi_read_u64(oi_json_reader *r, const oi_at *at, struct json_object *j, uint64_t *out);
void oi_read_graph(oi_json_reader *r, struct json_object *j);

/* -- json_value.c -- */
oi_dtype oi_read_dtype(oi_json_reader *r, const oi_at *at, struct json_object *j);
/* A string in the iexpr grammar, or an integer. Never NULL: 0 after an error. */
const oi_expr *oi_read_expr(oi_json_reader *r, const oi_at *at, struct json_object *j, bool is_dim);
void oi_read_ref(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_access *out);
void oi_read_access(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_access *out);
bool oi_read_scalar(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_dtype t,
                    oi_scalar *out);
/* Array of {"name", "value"}; op: whose attributes they are, NULL for declaration attributes. */
void oi_read_attrs(oi_json_reader *r, const oi_at *at, struct json_object *j, const char *op,
                   oi_attrs *out);
void oi_read_hints(oi_json_reader *r, const oi_at *at, struct json_object *j, oi_attrs *out);
void oi_read_sort_names(const char **names, size_t n, bool entry_first);

#endif
