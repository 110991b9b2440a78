/* openinfer.h: the whole public API of OpenInfer.
 *
 * Handles are opaque. A function that can fail returns oi_status, gives its result through the
 * last-but-one pointer and writes diagnostics into the oi_diag the caller passes last (NULL drops
 * them). Nothing is global; the library never prints, exits or aborts. Strings handed out through
 * `char **out` belong to the caller and are released with oi_free. */
#ifndef OPENINFER_H
#define OPENINFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OI_VERSION_MAJOR 0
#define OI_VERSION_MINOR 1
#define OI_VERSION_PATCH 0

#if defined(_WIN32)
#define OI_API
#else
#define OI_API __attribute__((visibility("default")))
#endif

/* -- results ------------------------------------------------------------------------------- */

/* The values are also the exit codes of the `openinfer` command. */
typedef enum oi_status {
    OI_OK = 0,
    OI_ERR_INPUT = 1, /* the input is wrong; the diagnostics say what, where and what was wanted */
    OI_ERR_USAGE = 2, /* the call is wrong: a bad option, a NULL where a handle is needed */
    OI_ERR_ENV = 3,   /* the surroundings: a missing file, compiler, device; out of memory */
    OI_NOT_FOUND = 4  /* the thing asked for is not there; no diagnostic is written */
} oi_status;

OI_API const char *oi_version(void);
OI_API void oi_free(void *text); /* releases what came through a `char **out` */

/* The candidate that `word` is most likely a misspelling of, or NULL when none is near. */
OI_API const char *oi_did_you_mean(const char *word, const char *const *candidates, size_t n);

/* -- diagnostics --------------------------------------------------------------------------- */

typedef struct oi_diag oi_diag;

typedef enum oi_severity { OI_NOTE, OI_WARNING, OI_ERROR } oi_severity;

/* One message. Text fields are never NULL; "" means absent. */
typedef struct oi_message {
    oi_severity severity;
    const char *code;    /* "E012", "W103" or "" */
    const char *file;    /* as the caller named it */
    uint32_t line, col;  /* 1-based; 0 when there is no text position */
    uint32_t len;        /* code points to underline, at least 1 when line > 0 */
    const char *pointer; /* JSON pointer when the input was JSON, else "" */
    const char *text;
    const char *source; /* the source line, for the caret */
    const char *hint;   /* what to do about it, or "" */
} oi_message;

OI_API oi_diag *oi_diag_new(void); /* NULL only when memory is out */
OI_API void oi_diag_free(oi_diag *d);
OI_API void oi_diag_clear(oi_diag *d);
OI_API void oi_diag_set_limit(oi_diag *d, size_t max_errors); /* default 20 */
OI_API size_t oi_diag_count(const oi_diag *d);
OI_API size_t oi_diag_errors(const oi_diag *d);
OI_API size_t oi_diag_warnings(const oi_diag *d);
OI_API oi_message oi_diag_at(const oi_diag *d, size_t i);
OI_API void oi_diag_print(const oi_diag *d, FILE *to, bool color);
OI_API oi_status oi_diag_to_json(const oi_diag *d, char **out);

/* -- element types ------------------------------------------------------------------------- */

/* Values are the OINF tags. OI_STR and OI_NDARRAY occur only as metadata. */
typedef enum oi_dtype {
    OI_NONE = 0,
    OI_I8, OI_I16, OI_I32, OI_I64,
    OI_U8, OI_U16, OI_U32, OI_U64,
    OI_F16, OI_F32, OI_F64,
    OI_BOOL, OI_BITSET, OI_STR, OI_NDARRAY,
    OI_BF16, OI_F8,
    OI_I4, OI_I2, OI_I1,
    OI_U4, OI_U2, OI_U1,
    OI_T2, OI_T1,
    OI_DTYPE_COUNT
} oi_dtype;

OI_API const char *oi_dtype_name(oi_dtype t);       /* "f32" */
OI_API oi_dtype oi_dtype_find(const char *name);    /* DSL spelling or alias; OI_NONE if unknown */
OI_API unsigned oi_dtype_bits(oi_dtype t);          /* bits per stored element */
OI_API bool oi_dtype_bytes(oi_dtype t, uint64_t n, uint64_t *out); /* false on overflow */

/* A tensor somebody else owns: row-major, packed types packed. */
typedef struct oi_view {
    oi_dtype dtype;
    uint32_t rank;
    const uint64_t *dims;
    const void *data; /* NULL when the tensor has no data */
    uint64_t n_elements;
    uint64_t size_bytes;
} oi_view;

/* Element e of a row-major (packed) buffer, widened; and back, rounding to nearest even,
 * saturating nothing: the value must be in range for integer types (false otherwise). */
OI_API double oi_element_f64(oi_dtype t, const void *data, uint64_t e);
OI_API int64_t oi_element_i64(oi_dtype t, const void *data, uint64_t e);
OI_API uint64_t oi_element_u64(oi_dtype t, const void *data, uint64_t e);
OI_API bool oi_element_set_f64(oi_dtype t, void *data, uint64_t e, double v);
OI_API bool oi_element_set_i64(oi_dtype t, void *data, uint64_t e, int64_t v);
OI_API bool oi_element_set_u64(oi_dtype t, void *data, uint64_t e, uint64_t v);

/* -- graphs ------------------------------------------------------------------------------------ */

typedef struct oi_graph oi_graph;

/* DSL text. `name` is shown in diagnostics. */
OI_API oi_status oi_graph_parse(const char *text, size_t n, const char *name, oi_graph **out,
                                oi_diag *diag);
OI_API oi_status oi_graph_from_json(const char *text, size_t n, const char *name, oi_graph **out,
                                    oi_diag *diag);
OI_API oi_status oi_graph_load(const char *path, oi_graph **out, oi_diag *diag); /* .oi or .json */
OI_API void oi_graph_free(oi_graph *g);

typedef struct oi_json_options {
    bool spans; /* also write "span" and "source" */
} oi_json_options;

/* NULL options = defaults. Byte-stable: the same graph gives the same text. */
OI_API oi_status oi_graph_to_json(const oi_graph *g, const oi_json_options *options, char **out,
                                  oi_diag *diag);
OI_API oi_status oi_graph_to_text(const oi_graph *g, char **out, oi_diag *diag);
/* Canonical layout of a DSL text, comments and blank-line groups kept. Only syntax is checked. */
OI_API oi_status oi_graph_format(const char *text, size_t n, const char *name, char **out,
                                 oi_diag *diag);
/* Replaces the random node uuids by ones derived from block and index, so that builds repeat. */
OI_API void oi_graph_make_deterministic(oi_graph *g);

#ifdef __cplusplus
}
#endif
#endif
