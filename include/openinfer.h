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
#include <stdlib.h>
#include <string.h>

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

/* -- results -- */

/* The values are also the exit codes of the `openinfer` command. */
typedef enum oi_status {
    OI_OK = 0,
    OI_ERR_INPUT = 1, /* the input is wrong; the diagnostics say what, where and what was wanted */
    OI_ERR_USAGE = 2, /* the call is wrong: a bad option, a NULL where a handle is needed */
    OI_ERR_ENV = 3,   /* the surroundings: a missing file, compiler, device; out of memory */
    OI_NOT_FOUND = 4  /* it does not exist; no diagnostic is written */
} oi_status;

OI_API const char *oi_version(void);
OI_API void oi_free(void *text); /* releases what came through a `char **out` */

/* The candidate that `word` is most likely a misspelling of, or NULL when none is near. */
OI_API const char *oi_did_you_mean(const char *word, const char *const *candidates, size_t n);

/* -- diagnostics -- */

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
    bool is_line;       /* the text is the whole line as printed, with its own prefix */
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

/* What a code means. Texts are static and never NULL. */
typedef struct oi_explained {
    const char *code;    /* "E051" */
    const char *title;   /* a few words */
    const char *text;    /* sentences */
    const char *example; /* a graph, or a device file, that gives the code ... */
    const char *command; /* ... here: FILE.oi or FILE.json is the example, MODEL.oinf a package */
    const char *model;   /* that holds this: "size B = 2; tensor w: f32[2]"; "" */
} oi_explained;
OI_API bool oi_explain_at(size_t i, oi_explained *out); /* in order; false past the end */

/* -- element types -- */

/* Values are the OINF tags. OI_STR and OI_NDARRAY occur only as metadata. */
typedef enum oi_dtype {
    OI_NONE = 0,
    OI_I8,
    OI_I16,
    OI_I32,
    OI_I64,
    OI_U8,
    OI_U16,
    OI_U32,
    OI_U64,
    OI_F16,
    OI_F32,
    OI_F64,
    OI_BOOL,
    OI_BITSET,
    OI_STR,
    OI_NDARRAY,
    OI_BF16,
    OI_F8,
    OI_I4,
    OI_I2,
    OI_I1,
    OI_U4,
    OI_U2,
    OI_U1,
    OI_T2,
    OI_T1,
    OI_DTYPE_COUNT
} oi_dtype;

OI_API const char *oi_dtype_name(oi_dtype t);    /* "f32" */
OI_API oi_dtype oi_dtype_find(const char *name); /* DSL spelling or alias; OI_NONE if unknown */
OI_API unsigned oi_dtype_bits(oi_dtype t);       /* bits per stored element */
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

/* Element by element from one type to another: to a float rounds to nearest even, to an integer
 * must be exact. Returns how many elements were converted; fewer than n when one does not fit. */
OI_API uint64_t oi_convert(oi_dtype to, void *dst, oi_dtype from, const void *src, uint64_t n);

/* -- model packages (OINF) -- */

/* An open package: sizes, metadata and tensors by name. Everything in the header, the tables and
 * the quantisation payloads is checked by open; tensor bytes are not touched until asked for.
 * Apart from close and release, calls on one model may come from several threads.
 *
 * By default the file is mapped, and tensors are lent straight from the mapping. A mapping has one
 * limit: when another process shortens the file afterwards, touching the lost pages raises SIGBUS.
 * Each call looks at the file's length first, but memory already lent cannot be protected; with
 * `pread` set nothing is mapped and a shortened file gives an error instead. */
typedef struct oi_model oi_model;

typedef struct oi_model_options {
    bool strict;        /* names, padding, reserved fields, bool and t2 values exactly as written */
    bool allow_shared;  /* two tensors may name the same bytes */
    bool pread;         /* read on demand instead of mapping */
    uint32_t max_count; /* entries in a table; 0 = 2^20 */
    uint32_t max_ndim;  /* 0 = 64, which is also the most */
    uint64_t max_metadata_bytes; /* one metadata value; 0 = 1 GiB */
} oi_model_options;

OI_API oi_status oi_model_open(const char *path, oi_model **out, oi_diag *diag);
OI_API oi_status oi_model_open_with(const char *path, const oi_model_options *options,
                                    oi_model **out, oi_diag *diag);
/* The bytes are borrowed and must stay unchanged until close. */
OI_API oi_status oi_model_open_memory(const void *data, size_t n, const oi_model_options *options,
                                      oi_model **out, oi_diag *diag);
OI_API void oi_model_close(oi_model *m);
OI_API const char *oi_model_path(const oi_model *m); /* "<memory>" when there is none */

OI_API size_t oi_model_n_sizevars(const oi_model *m);
OI_API size_t oi_model_n_metadata(const oi_model *m);
OI_API size_t oi_model_n_tensors(const oi_model *m);
/* Names in file order, NULL past the end; they live as long as the model. */
OI_API const char *oi_model_sizevar_name(const oi_model *m, size_t i);
OI_API const char *oi_model_meta_name(const oi_model *m, size_t i);
OI_API const char *oi_model_tensor_name(const oi_model *m, size_t i);

OI_API oi_status oi_model_size_of(const oi_model *m, const char *name, uint64_t *out);

typedef struct oi_meta_info {
    const char *name;
    oi_dtype type;    /* as stored: a scalar type, OI_BITSET, OI_STR or OI_NDARRAY */
    oi_dtype element; /* of an ndarray; otherwise the type itself */
    uint32_t rank;    /* ndarray: its own; bitset and str: 1; scalar: 0 */
    const uint64_t *dims;
    uint64_t n_elements;           /* bits of a bitset, bytes of a str */
    uint64_t offset, nbytes;       /* of the payload in the file */
    uint64_t value_at, value_size; /* of the bare value inside it */
} oi_meta_info;

OI_API oi_status oi_model_meta_info(const oi_model *m, const char *key, oi_meta_info *out);
OI_API oi_status oi_model_meta_info_at(const oi_model *m, size_t i, oi_meta_info *out);
/* The bare value: dtype is the element type, OI_STR or OI_BITSET. */
OI_API oi_status oi_model_meta(oi_model *m, const char *key, oi_view *out, oi_diag *diag);
/* Text stored as str or as a u8 ndarray: valid UTF-8 without NUL; the copy is released with
 * oi_free. out_n may be NULL. */
OI_API oi_status oi_model_meta_text(oi_model *m, const char *key, char **out, size_t *out_n,
                                    oi_diag *diag);
/* A scalar (or a rank-0 ndarray) whose value fits the type asked for exactly. */
OI_API oi_status oi_model_meta_i64(oi_model *m, const char *key, int64_t *out, oi_diag *diag);
OI_API oi_status oi_model_meta_u64(oi_model *m, const char *key, uint64_t *out, oi_diag *diag);
OI_API oi_status oi_model_meta_f64(oi_model *m, const char *key, double *out, oi_diag *diag);
OI_API oi_status oi_model_meta_bool(oi_model *m, const char *key, bool *out, oi_diag *diag);

typedef enum oi_quant_scheme { OI_SYMMETRIC = 1, OI_ASYMMETRIC = 2 } oi_quant_scheme;
typedef enum oi_quant_mode { OI_QUANT_NONE, OI_PER_TENSOR, OI_PER_CHANNEL } oi_quant_mode;

/* real = scale * (q - zero_point) */
typedef struct oi_quant {
    oi_quant_scheme scheme;
    oi_quant_mode scale_mode, zero_point_mode;
    uint64_t scale_axis, zero_point_axis;
    uint64_t n_scales, n_zero_points;
    const float *scales;
    const int32_t *zero_points;
} oi_quant;

typedef struct oi_tensor_info {
    const char *name;
    oi_dtype dtype;
    uint32_t rank;
    const uint64_t *dims;
    uint64_t n_elements;
    bool has_data;
    uint64_t data_offset, data_nbytes;
    uint64_t quant_offset, quant_nbytes;
    const oi_quant *quant; /* NULL when the tensor is not quantised */
} oi_tensor_info;

/* Quantisation data of a tensor W can be asked for as tensors too: "W#scale" (f32) and, where
 * there is one, "W#zp" (i32), of W's rank, 1 long but along the axis of the data. */
OI_API oi_status oi_model_tensor_info(const oi_model *m, const char *name, oi_tensor_info *out);
OI_API oi_status oi_model_tensor_info_at(const oi_model *m, size_t i, oi_tensor_info *out);
OI_API oi_status oi_model_tensor_index(const oi_model *m, const char *name, size_t *out);
/* Lends the tensor's bytes; data is NULL when it has none. Mapped: valid until close. Otherwise
 * loaded once and kept until release or close. */
OI_API oi_status oi_model_tensor(oi_model *m, const char *name, oi_view *out, oi_diag *diag);
OI_API void oi_model_release(oi_model *m, const char *name);
/* Bytes [offset, offset + n) of tensor i into buf, without keeping anything. */
OI_API oi_status oi_model_read(oi_model *m, size_t i, uint64_t offset, uint64_t n, void *buf,
                               oi_diag *diag);

typedef struct oi_print_options {
    bool json;
    bool hist;          /* a bar chart below each histogram line */
    const char *tensor; /* only this one; NULL = everything */
} oi_print_options;

/* What `openinfer inspect` shows. Works in bounded memory whatever the tensors' sizes. Whether the
 * stream took everything, ferror(to) tells. */
OI_API oi_status oi_model_print(oi_model *m, FILE *to, const oi_print_options *options,
                                oi_diag *diag);

/* -- writing packages -- */

/* Collects entries in any order; finish sorts them by name and writes. The same content always
 * gives the same bytes. Names are [A-Za-z0-9._-]+ and unique within their table. */
typedef struct oi_writer oi_writer;

OI_API oi_writer *oi_writer_new(void); /* NULL only when memory is out */
OI_API void oi_writer_free(oi_writer *w);
OI_API oi_status oi_writer_sizevar(oi_writer *w, const char *name, uint64_t value, oi_diag *diag);
/* Scalars: any number type, bool included; integers must fit, floats are rounded. */
OI_API oi_status oi_writer_i64(oi_writer *w, const char *key, oi_dtype type, int64_t v,
                               oi_diag *diag);
OI_API oi_status oi_writer_u64(oi_writer *w, const char *key, oi_dtype type, uint64_t v,
                               oi_diag *diag);
OI_API oi_status oi_writer_f64(oi_writer *w, const char *key, oi_dtype type, double v,
                               oi_diag *diag);
/* A str when the text stays within the name alphabet, otherwise a u8 ndarray. */
OI_API oi_status oi_writer_text(oi_writer *w, const char *key, const char *text, size_t n,
                                oi_diag *diag);
OI_API oi_status oi_writer_bitset(oi_writer *w, const char *key, const void *bits, uint32_t n_bits,
                                  oi_diag *diag);
OI_API oi_status oi_writer_ndarray(oi_writer *w, const char *key, const oi_view *value,
                                   oi_diag *diag);

/* Gives bytes [offset, offset + n) of a tensor; called in order, once for each byte. */
typedef oi_status (*oi_read_fn)(void *ctx, uint64_t offset, void *buf, size_t n, oi_diag *diag);

typedef struct oi_writer_tensor {
    const char *name;
    oi_dtype dtype;
    uint32_t rank;
    const uint64_t *dims;
    const void *data; /* borrowed until finish; NULL with read NULL = no data */
    oi_read_fn read;  /* instead of data, for what should not be in memory at once */
    void *read_ctx;
    const oi_quant *quant; /* copied; NULL when not quantised */
} oi_writer_tensor;

OI_API oi_status oi_writer_add_tensor(oi_writer *w, const oi_writer_tensor *tensor, oi_diag *diag);
/* Everything in m, which must stay open until finish. */
OI_API oi_status oi_writer_add_model(oi_writer *w, oi_model *m, oi_diag *diag);
/* Through a temporary file beside it: the path holds the whole package or what it held before. */
OI_API oi_status oi_writer_finish(oi_writer *w, const char *path, oi_diag *diag);
OI_API oi_status oi_writer_finish_memory(oi_writer *w, void **out, size_t *out_n, oi_diag *diag);

/* -- op registry -- */

/* What ops there are and what they take: the rows of ops/ops.json. Texts are static and never NULL,
 * "" means absent; lists end with NULL. Dtypes are written as in the catalog ("F S i4"). */
typedef struct oi_ops_info {
    const char *name;
    const char *cls, *cls_doc; /* "map": "one scalar expression per element" */
    const char *dtypes;        /* of the inputs that share one dtype */
    const char *shape, *shape_doc;
    const char *onnx; /* "Relu-14 LeakyRelu-16" */
    const char *doc;  /* one line */
    const char *const *notes;
    const char *const *aliases;
    size_t n_inputs, n_outputs, n_attrs;
} oi_ops_info;

typedef struct oi_ops_port {
    const char *name;
    const char *dtypes; /* of an output: its rule, "same", "acc", "attr:to", "i64 i32" … */
    bool optional, variadic;
} oi_ops_port;

typedef struct oi_ops_attr {
    const char *name, *alias;
    const char *kind, *kind_doc;
    bool required;
    const char *standard;      /* the default as the DSL spells it */
    const char *absent;        /* what leaving it out means when there is no default */
    const char *input;         /* the optional input that may stand in for it */
    const char *const *values; /* the words a string may be */
    const char *sample;        /* a value for an example, or "": any of its kind */
    const char *doc;
} oi_ops_attr;

#define OI_OPS_NONE SIZE_MAX
OI_API size_t oi_ops_count(void);
OI_API size_t oi_ops_find(const char *name);         /* by name or alias; OI_OPS_NONE */
/* "did you mean", or NULL: what ONNX, torch or numpy call an op leads to it too */
OI_API const char *oi_ops_nearest(const char *name);
OI_API bool oi_ops_get(size_t op, oi_ops_info *out); /* these are false past the end */
OI_API bool oi_ops_input(size_t op, size_t i, oi_ops_port *out);
OI_API bool oi_ops_output(size_t op, size_t i, oi_ops_port *out);
OI_API bool oi_ops_attr_at(size_t op, size_t i, oi_ops_attr *out);
/* How far a backend's result of type t may be from the simulator's on the same inputs: by
 * atol + rtol * |value|, where `reduced` elements were summed. Both 0: equal. */
OI_API void oi_ops_tolerance(size_t op, oi_dtype t, uint64_t reduced, double *atol, double *rtol);
OI_API const char *oi_ops_flag(size_t op, size_t i); /* the i-th flag of an op, or NULL */
/* A composite's body, variant by variant: `when` is "" where it always applies. NULL past the end. */
OI_API const char *const *oi_ops_body(size_t op, size_t variant, const char **when);
OI_API const char *oi_ops_class(size_t i);           /* all classes in order, or NULL */
/* "F" and its members "f8 bf16 f16 f32 f64"; false past the end */
OI_API bool oi_ops_dtype_class(size_t i, const char **name, const char **members);
OI_API bool oi_ops_dtype_in(const char *set, oi_dtype t); /* is t in "F S i4"? */
/* May the shared dtype of the op be t? */
OI_API bool oi_ops_takes(size_t op, oi_dtype t);
/* Whether an op counts with element type t; NULL stands for oi_ops_takes. */
typedef bool (*oi_ops_filter)(void *ctx, size_t op, oi_dtype t);
/* One op, or with OI_OPS_NONE all of them, with the element types that the filter lets through; of
 * all ops only those that keep one. */
OI_API oi_status oi_ops_to_json(size_t op, oi_ops_filter filter, void *ctx, char **out,
                                oi_diag *diag);

/* -- running one op -- */

/* An attribute's value. */
typedef enum oi_op_value_tag {
    OI_VALUE_NONE, /* no value: what absence means is said in the attribute's `absent` */
    OI_VALUE_INT,
    OI_VALUE_UINT, /* only above INT64_MAX */
    OI_VALUE_FLOAT,
    OI_VALUE_BOOL,
    OI_VALUE_STRING,
    OI_VALUE_DTYPE,
    OI_VALUE_INT_LIST,
    OI_VALUE_FLOAT_LIST,
    OI_VALUE_STRING_LIST,
    OI_VALUE_DTYPE_LIST
} oi_op_value_tag;

typedef struct oi_op_value {
    oi_op_value_tag tag;
    uint32_t n; /* length of a list */
    __extension__ union { /* without a name: C11, and an extension for C99 readers */
        int64_t i;
        uint64_t u;
        double f;
        bool b;
        const char *s;
        oi_dtype dtype;
        const int64_t *ints;
        const double *floats;
        const char *const *strings;
        const oi_dtype *dtypes;
    };
} oi_op_value;

typedef struct oi_op_arg {
    const char *name;
    oi_op_value value;
} oi_op_arg;

typedef struct oi_op_out { /* a tensor of the caller's that is written */
    oi_dtype dtype;
    uint32_t rank;
    const uint64_t *dims;
    void *data;
} oi_op_out;

/* A team of n threads in all, the caller's included, for many calls of oi_op_run; NULL when that
 * fails. One call at a time uses it. */
typedef struct oi_threads oi_threads;
OI_API oi_threads *oi_threads_new(unsigned n);
OI_API void oi_threads_free(oi_threads *t);

typedef struct oi_op_run_options {
    const char *device; /* "cpu", or one kind of instructions: "cpu:scalar", "cpu:avx2" ...; NULL: "cpu" */
    unsigned threads;   /* 0 and 1: the calling thread alone. The result does not depend on it */
    oi_threads *team;   /* instead of threads made for this call; NULL: those */
    /* Slices: per tensor the distance in elements between neighbours along each axis (NULL:
     * row-major), and the first element. Each array may be NULL. */
    const int64_t *const *input_strides, *const *output_strides;
    const int64_t *input_offsets, *output_offsets;
} oi_op_run_options;

/* One op on tensors in memory. Outputs are declared by the caller and checked, as in a graph. An
 * output may be one of the inputs; the result is as if those were read first. */
OI_API oi_status oi_op_run(const char *op, const oi_view *inputs, size_t n_inputs,
                           const oi_op_arg *attrs, size_t n_attrs, const oi_op_out *outputs,
                           size_t n_outputs, const oi_op_run_options *options, oi_diag *diag);
/* The kinds of instructions this machine has: "scalar", "avx" ..., weakest first; NULL past the
 * end. "cpu" means the last. */
OI_API const char *oi_cpu_at(size_t i);

/* -- graphs -- */

typedef struct oi_graph oi_graph;

/* A size of the model given another value. */
typedef struct oi_size {
    const char *name;
    uint64_t value;
} oi_size;

typedef struct oi_graph_options {
    oi_model *model;      /* the compact form takes shapes from it; NULL: none */
    const oi_size *sizes; /* override those of the model; give the simulator the same */
    size_t n_sizes;
    uint32_t first_line; /* of the text within a larger file; 0: 1 */
} oi_graph_options;

/* DSL text of either form. `name` is shown in diagnostics. Only syntax is judged here, and what the
 * compact form needs to become a graph; oi_graph_check judges the rest. NULL options = defaults. */
OI_API oi_status oi_graph_parse_with(const char *text, size_t n, const char *name,
                                     const oi_graph_options *options, oi_graph **out,
                                     oi_diag *diag);
OI_API oi_status oi_graph_parse(const char *text, size_t n, const char *name, oi_graph **out,
                                oi_diag *diag);
/* The same for a text that begins at `first_line` of a larger file. */
OI_API oi_status oi_graph_parse_at(const char *text, size_t n, const char *name,
                                   uint32_t first_line, oi_graph **out, oi_diag *diag);
/* The arguments of OI_GRAPH, which stands in that line of a C file. They come without their line breaks
 * and comments: diagnostics point into the file when it can be read and has this text there, otherwise
 * at the call, with a column of the text. */
OI_API oi_status oi_graph_parse_embedded(const char *text, const char *file, uint32_t line,
                                         oi_graph **out, oi_diag *diag);
/* Graph JSON; runs every static check that needs no source text. */
OI_API oi_status oi_graph_from_json(const char *text, size_t n, const char *name, oi_graph **out,
                                    oi_diag *diag);
/* FILE.oi, FILE.json, or MODEL.oinf and MODEL.oinf#NAME for a graph inside a package, which is then
 * its model unless the options name one. */
OI_API oi_status oi_graph_load_with(const char *path, const oi_graph_options *options,
                                    oi_graph **out, oi_diag *diag);
OI_API oi_status oi_graph_load(const char *path, oi_graph **out, oi_diag *diag);
OI_API void oi_graph_free(oi_graph *g);

typedef struct oi_json_options {
    bool spans; /* also write "span" and "source" */
} oi_json_options;

/* NULL options = defaults. Byte-stable: the same graph gives the same text. */
OI_API oi_status oi_graph_to_json(const oi_graph *g, const oi_json_options *options, char **out,
                                  oi_diag *diag);
OI_API oi_status oi_graph_to_text(const oi_graph *g, char **out, oi_diag *diag);
/* In the compact form, where it can be said; E085 names each statement that has none. The model tells
 * which declarations are its data. NULL options = defaults. */
OI_API oi_status oi_graph_to_compact(const oi_graph *g, const oi_graph_options *options,
                                     char **out, oi_diag *diag);
OI_API oi_status oi_graph_to_dot(const oi_graph *g, char **out, oi_diag *diag);
OI_API oi_status oi_graph_to_svg(const oi_graph *g, char **out, oi_diag *diag);
OI_API oi_status oi_graph_to_html(const oi_graph *g, char **out, oi_diag *diag);
/* A whole text file, at most 256 MiB. */
OI_API oi_status oi_text_read(const char *path, char **out, size_t *n, oi_diag *diag);
/* Whether a text is in the compact form, by its first word; it need not be right otherwise. */
OI_API bool oi_text_is_compact(const char *text, size_t n);
/* Canonical layout of a DSL text, comments and blank-line groups kept. Only syntax is checked. */
OI_API oi_status oi_graph_format(const char *text, size_t n, const char *name, char **out,
                                 oi_diag *diag);
/* Replaces the random node uuids by ones derived from block and index, so that builds repeat. */
OI_API void oi_graph_make_deterministic(oi_graph *g);

/* Every rule of the language that can be decided before a run. */
typedef struct oi_check_options {
    bool strict;          /* what strict mode calls an error is one */
    oi_model *model;      /* also link to this model; NULL: sizes stay names */
    const oi_size *sizes; /* override those of the model */
    size_t n_sizes;
    bool is_complete;     /* model NULL means that there is none, not that it is not known yet */
    /* Told each tensor of the model (its place) that the graph may read, maybe several times. */
    void (*on_tensor)(void *ctx, size_t tensor);
    void *ctx;
} oi_check_options;

/* Reports all violations, up to the diag's limit. NULL options = defaults. */
OI_API oi_status oi_graph_check(const oi_graph *g, const oi_check_options *options, oi_diag *diag);

typedef struct oi_graph_counts {
    size_t variables; /* declared and assigned */
    size_t blocks, nodes;
} oi_graph_counts;
OI_API oi_graph_counts oi_graph_count(const oi_graph *g);

/* A graph inside a C program:
 *     oi_graph *g = OI_GRAPH( dynamic { x: f32[B]; } block entry { return x; } );
 * Text that is wrong stops the program with the diagnostics (oi_graph_parse_embedded says where). */
#define OI_GRAPH(...) oi_graph_embedded(#__VA_ARGS__, __FILE__, __LINE__)

static inline oi_graph *oi_graph_embedded(const char *text, const char *file, int line)
{
    oi_graph *g = NULL;
    oi_diag *d = oi_diag_new();
    if (oi_graph_parse_embedded(text, file, (uint32_t)line, &g, d) != OI_OK) {
        oi_diag_print(d, stderr, false);
        exit(EXIT_FAILURE);
    }
    oi_diag_free(d);
    return g;
}

/* -- building a graph call by call -- */

typedef enum oi_var_kind { OI_DYNAMIC, OI_VOLATILE, OI_CONSTANT, OI_PERSISTENT } oi_var_kind;

/* Text fields are written as in the DSL; NULL leaves them out. */
typedef struct oi_var_spec {
    oi_var_kind kind;
    const char *name;    /* "K" */
    const char *indices; /* "l, t" */
    oi_dtype dtype;
    const char *dims;    /* "H, Dh" */
    const char *init;    /* "0.5" */
    const char *ref;     /* model key */
    const char *pattern; /* "W.{l}" */
    bool table;
    const char *auto_dim; /* "i, j" */
    const char *fixed;    /* "t=1024" */
    const char *cap;
} oi_var_spec;

/* Nodes go to the block opened last, or into the innermost open loop. Operands, expressions and
 * attributes are DSL text: oi_build_op(g, "relu", "h, negative_slope=0.01", "h", d). */
OI_API oi_status oi_graph_new(oi_graph **out);
OI_API oi_status oi_build_var(oi_graph *g, const oi_var_spec *v, oi_diag *diag);
OI_API oi_status oi_build_block(oi_graph *g, const char *name, oi_diag *diag);
OI_API oi_status oi_build_assign(oi_graph *g, const char *name, oi_dtype dtype, const char *dims,
                                 oi_diag *diag);
OI_API oi_status oi_build_op(oi_graph *g, const char *op, const char *args, const char *outputs,
                             oi_diag *diag);
OI_API oi_status oi_build_loop(oi_graph *g, const char *name, const char *index, const char *start,
                               const char *end, oi_diag *diag);
OI_API oi_status oi_build_end(oi_graph *g, oi_diag *diag); /* closes the innermost loop */
OI_API oi_status oi_build_branch(oi_graph *g, const char *cond, const char *then_block,
                                 const char *else_block, oi_diag *diag);
OI_API oi_status oi_build_cache_read(oi_graph *g, const char *access, const char *to,
                                     oi_diag *diag);
OI_API oi_status oi_build_cache_write(oi_graph *g, const char *from, const char *access,
                                      oi_diag *diag);
OI_API oi_status oi_build_transfer(oi_graph *g, const char *from, const char *to, oi_diag *diag);
OI_API oi_status oi_build_yield(oi_graph *g, const char *names, oi_diag *diag);
OI_API oi_status oi_build_await(oi_graph *g, const char *names, oi_diag *diag);
OI_API oi_status oi_build_return(oi_graph *g, const char *names, oi_diag *diag);
/* Any one statement but a loop: "cache.increment 2 step;", "barrier;", "dep after(…) before(…);".
 */
OI_API oi_status oi_build_statement(oi_graph *g, const char *text, oi_diag *diag);

/* -- simulation ------------------------------------------------------------------------------- */

/* A simulator: a graph bound to a model, checked and typed, ready to run. Model and graph are
 * borrowed and must outlive it. One simulator serves any number of executors and threads. */
typedef struct oi_sim oi_sim;
/* An executor: the values of the variables. Used by one thread at a time. */
typedef struct oi_exec oi_exec;

typedef enum oi_run_on {
    OI_CPU, /* the best kernels of this machine */
    OI_RUN_SCALAR,
    OI_RUN_AVX,
    OI_RUN_AVX2,
    OI_RUN_AVX512,
    OI_VULKAN
} oi_run_on;
/* "cpu", "cpu:avx2", "vulkan", "vulkan:1" …; false when there is no such kind of device. */
OI_API bool oi_run_on_find(const char *name, oi_run_on *out);
/* The part after "vulkan:", for oi_sim_options.device_name; NULL: there is none. */
OI_API const char *oi_run_on_device(const char *name);

typedef struct oi_sim_options {
    oi_run_on device;
    bool strict;           /* as oi_check_options; a missing input is E020 */
    bool trace;            /* keep an event for every node that runs */
    bool trace_values;     /* with statistics of what it wrote */
    bool timer;            /* measure how long nodes take */
    uint32_t threads;      /* of the kernels; 0 = 1. Results do not depend on it */
    bool parallel_consumers; /* oi_step runs consumers on threads of their own; same results */
    /* Bytes that model tensors, values, scratch and persistent memory may take together; 0 = no
     * limit. Ops stream tensors that do not fit in chunks, with the same bits. A limit that the graph
     * cannot keep is E065, which names the least that would do. Under a limit consumers take turns */
    uint64_t memory_limit;
    const oi_size *sizes;  /* override sizes of the model */
    size_t n_sizes;
    /* preferences.default_precision of the device that the graph is meant for: with OI_BF16 or OI_F16,
     * ops that know act="bf16" or "f16" are computed so where their first input is f32 and has 16
     * rows or more; OI_NONE and others: as written */
    oi_dtype precision;
    /* Nodes that an executor may run, over all its steps; 0 = no limit. The one after that fails
     * its step with E063: for untrusted graphs */
    uint64_t max_nodes;
    /* OI_VULKAN: which device, by its number in `openinfer targets` or a part of its name; NULL: what
     * the environment variable OPENINFER_VULKAN_DEVICE says, or else the fastest kind */
    const char *device_name;
} oi_sim_options;

/* Checks the graph against the model first. model may be NULL for a graph that needs none, options
 * NULL for the defaults. The environment variable OPENINFER_TRACE (full, off) overrides trace. */
OI_API oi_status oi_sim_new(oi_model *model, const oi_graph *graph, const oi_sim_options *options,
                            oi_sim **out, oi_diag *diag);
OI_API void oi_sim_free(oi_sim *s); /* executors that still live keep what they need */
OI_API uint64_t oi_sim_n_lowered(const oi_sim *s); /* ops that options.precision has changed */

typedef struct oi_sim_stats {
    uint64_t weights_peak;     /* most bytes of model tensors resident at once */
    uint64_t weights_resident; /* now */
    uint64_t chunks_peak;      /* most bytes of parts of tensors that were streamed */
    uint64_t values_peak;      /* of the variables, over all executors, and of fetched copies */
    uint64_t scratch_peak;     /* of what a node needs while it runs */
    uint64_t state_peak;       /* of persistent variables, and of what takes a step back */
    uint64_t total_peak;       /* of all of it at one time */
} oi_sim_stats;
OI_API void oi_sim_get_stats(oi_sim *s, oi_sim_stats *out);
/* Under a memory limit: gives back the model tensors in memory; they come again when they are used.
 * For a simulator that rests while another of the same model runs. */
OI_API void oi_sim_trim(oi_sim *s);

OI_API oi_status oi_exec_new(oi_sim *s, oi_exec **out, oi_diag *diag);
/* Persistent variables that are equal in name, type, dims, indices and @fixed are shared with
 * `beside`; the same name for something else is E013. Steps of the two may not overlap. */
OI_API oi_status oi_exec_new_shared(oi_sim *s, oi_exec *beside, oi_exec **out, oi_diag *diag);
OI_API void oi_exec_free(oi_exec *e);

/* What the graph declares, in order; assigned variables follow. */
typedef struct oi_var_info {
    const char *name;
    oi_var_kind kind;
    bool is_assigned; /* by `assign`; kind is OI_VOLATILE then */
    bool is_prefix;   /* a prefix table: no value of its own */
    bool has_init;    /* @init was given */
    oi_dtype dtype;
    uint32_t rank;
    const uint64_t *dims; /* declared; UINT64_MAX for `?`. Of one entry, for tables */
} oi_var_info;
OI_API size_t oi_sim_n_vars(const oi_sim *s);
OI_API bool oi_sim_var(const oi_sim *s, size_t i, oi_var_info *out); /* false past the end */
OI_API size_t oi_sim_find_var(const oi_sim *s, const char *name);    /* SIZE_MAX when unknown */

/* The value of a dynamic variable for the next step, copied. The dims may be flat: any shape with
 * the same number of elements (rank 1). Only between steps. */
OI_API oi_status oi_insert(oi_exec *e, const char *name, const oi_view *value, oi_diag *diag);
/* Whether a value waits for the next step. */
OI_API bool oi_is_inserted(const oi_exec *e, const char *name);
/* The value as it is now: between steps, and between two nodes of oi_next. The view is lent until
 * the executor is used again, other than for fetching other variables. A persistent table is given
 * as a whole, its sizes first; of a prefix table one entry: "W[2]". */
OI_API oi_status oi_fetch(oi_exec *e, const char *name, oi_view *out, oi_diag *diag);
/* The i-th value that entry returned in the last step; OI_NOT_FOUND past the end. */
OI_API oi_status oi_output(oi_exec *e, size_t i, const char **name, oi_view *out, oi_diag *diag);

/* One step. After a failure persistent memory is as it was before. */
OI_API oi_status oi_step(oi_exec *e, oi_diag *diag);
OI_API uint64_t oi_steps_done(const oi_exec *e); /* finished without failure */

/* A model and its memory that lasts: any number of graphs run over it, each step of one of them with
 * its inputs. Graphs share persistent variables as oi_exec_new_shared says; they must outlive it. */
typedef struct oi_session oi_session;
typedef struct oi_named_view {
    const char *name;
    oi_view value;
} oi_named_view;
/* options: NULL for the defaults. */
OI_API oi_status oi_session_new(oi_model *model, const oi_sim_options *options, oi_session **out,
                                oi_diag *diag);
OI_API void oi_session_free(oi_session *s);
OI_API oi_status oi_session_run_step(oi_session *s, const oi_graph *graph,
                                     const oi_named_view *inputs,
                                     size_t n_inputs, oi_diag *diag);
/* A value of the graph that ran last; lent until the session is used again. */
OI_API oi_status oi_session_fetch(oi_session *s, const char *name, oi_view *out, oi_diag *diag);

/* An executed node. Texts live as long as the simulator. */
typedef struct oi_event {
    oi_status status; /* OI_OK; when oi_next returns false: why the step ended */
    const char *block_name;
    uint64_t node_index;
    const char *node_uuid;
    const char *kind; /* "OpExecute", "CacheRead" … */
    const char *op;   /* name of the op, else "" */
    const char *const *params, *const *output; /* as written */
    size_t n_params, n_output;
    uint64_t micros[3]; /* milliseconds, microseconds, nanoseconds; 0 when the timer is off */
    uint64_t step;      /* from 0 */
    uint32_t line, col; /* where the node stands in the source; 0: no text */
    const char *device; /* OI_VULKAN: "vulkan" or "host", where the node ran; else "" */
} oi_event;

/* Runs the next node, beginning a step when none is under way. False when the step has ended:
 * event->status says how. */
OI_API bool oi_next(oi_exec *e, oi_event *event, oi_diag *diag);
/* The node that would run next: same fields, nothing is run. False between steps. */
OI_API bool oi_peek(oi_exec *e, oi_event *event);
/* Ends a step that oi_next has begun; persistent memory goes back to what it was. */
OI_API void oi_abandon(oi_exec *e);

typedef enum oi_trace_format { OI_TRACE_JSON, OI_TRACE_CHROME } oi_trace_format;
typedef struct oi_trace_options {
    oi_trace_format format;
    bool ext;           /* JSON: also op, step, iter, thread, start_ns, shape, dtype, stats */
    bool deterministic; /* times are 0 */
} oi_trace_options;
/* All events since the executor was made or the trace cleared. NULL options = JSON. */
OI_API oi_status oi_trace_json(oi_exec *e, const oi_trace_options *options, char **out,
                               oi_diag *diag);
OI_API void oi_trace_clear(oi_exec *e);

/* A tensor in the style of `openinfer inspect`: "name: f32[2, 3] = { … }". */
OI_API oi_status oi_view_print(FILE *to, const char *name, const oi_view *value);
/* The whole of it as one line of JSON: {"dims": [2, 3], "dtype": "f32", "name": …, "values": […]},
 * row by row in one list; numbers that JSON lacks are the texts "inf", "-inf", "nan". */
OI_API oi_status oi_view_print_json(FILE *to, const char *name, const oi_view *value);

/* SplitMix64 seeded with `seed`, one draw per element: floats low + (high - low) * [0, 1), integers
 * low … high inclusive. OI_ERR_USAGE for a dtype of the other kind or a range it does not hold.
 * Packed types are packed; n = 0 elements leave `out` alone. */
OI_API oi_status oi_random(oi_dtype dtype, uint64_t seed, double low, double high, void *out,
                           uint64_t n);
OI_API oi_status oi_random_int(oi_dtype dtype, uint64_t seed, int64_t low, int64_t high, void *out,
                               uint64_t n);
OI_API void oi_random_f32(uint64_t seed, float low, float high, float *out, uint64_t n);
OI_API void oi_random_f64(uint64_t seed, double low, double high, double *out, uint64_t n);
OI_API void oi_random_i32(uint64_t seed, int32_t low, int32_t high, int32_t *out, uint64_t n);
OI_API void oi_random_i64(uint64_t seed, int64_t low, int64_t high, int64_t *out, uint64_t n);

/* For short programs. The plain forms stop with the diagnostics when something is wrong; the TRY_
 * forms give an oi_status and take an oi_diag.
 *     OI_INSERT(exec, x, data, n);                  const float *y = OI_FETCH_F32(exec, y, &n);
 *     OI_TRY_INSERT(exec, x, data, n, diag);        OI_TRY_FETCH_F32(exec, y, &y, &n, diag);
 * The element type of an insert follows from the pointer. */
#if defined(__cplusplus)
extern "C++" { /* overloads, which C spells as one expression */
inline oi_dtype oi_dtype_of(const float *)
{
    return OI_F32;
}
inline oi_dtype oi_dtype_of(const double *)
{
    return OI_F64;
}
inline oi_dtype oi_dtype_of(const int8_t *)
{
    return OI_I8;
}
inline oi_dtype oi_dtype_of(const int16_t *)
{
    return OI_I16;
}
inline oi_dtype oi_dtype_of(const int32_t *)
{
    return OI_I32;
}
inline oi_dtype oi_dtype_of(const int64_t *)
{
    return OI_I64;
}
inline oi_dtype oi_dtype_of(const uint8_t *)
{
    return OI_U8;
}
inline oi_dtype oi_dtype_of(const uint16_t *)
{
    return OI_U16;
}
inline oi_dtype oi_dtype_of(const uint32_t *)
{
    return OI_U32;
}
inline oi_dtype oi_dtype_of(const uint64_t *)
{
    return OI_U64;
}
inline oi_dtype oi_dtype_of(const bool *)
{
    return OI_BOOL;
}
}
#define OI_DTYPE_OF(data) oi_dtype_of(data)
#else
#define OI_DTYPE_OF(data)                                                                        \
    _Generic((data), const float *: OI_F32, float *: OI_F32, const double *: OI_F64,             \
        double *: OI_F64, const int8_t *: OI_I8, int8_t *: OI_I8, const int16_t *: OI_I16,       \
        int16_t *: OI_I16, const int32_t *: OI_I32, int32_t *: OI_I32, const int64_t *: OI_I64,  \
        int64_t *: OI_I64, const uint8_t *: OI_U8, uint8_t *: OI_U8, const uint16_t *: OI_U16,   \
        uint16_t *: OI_U16, const uint32_t *: OI_U32, uint32_t *: OI_U32,                        \
        const uint64_t *: OI_U64, uint64_t *: OI_U64, const bool *: OI_BOOL, bool *: OI_BOOL)
#endif
#define OI_INSERT(exec, name, data, n) \
    oi_insert_or_stop((exec), #name, OI_DTYPE_OF(data), (data), (n))
#define OI_TRY_INSERT(exec, name, data, n, diag) \
    oi_insert_flat((exec), #name, OI_DTYPE_OF(data), (data), (n), (diag))
#define OI_FETCH_F32(exec, name, n) ((const float *)oi_fetch_or_stop((exec), #name, OI_F32, (n)))
#define OI_FETCH_F64(exec, name, n) ((const double *)oi_fetch_or_stop((exec), #name, OI_F64, (n)))
#define OI_FETCH_I32(exec, name, n) ((const int32_t *)oi_fetch_or_stop((exec), #name, OI_I32, (n)))
#define OI_FETCH_I64(exec, name, n) ((const int64_t *)oi_fetch_or_stop((exec), #name, OI_I64, (n)))
#define OI_FETCH_U8(exec, name, n)  ((const uint8_t *)oi_fetch_or_stop((exec), #name, OI_U8, (n)))
#define OI_FETCH_BOOL(exec, name, n) ((const bool *)oi_fetch_or_stop((exec), #name, OI_BOOL, (n)))
#define OI_TRY_FETCH_F32(exec, name, out, n, diag) \
    oi_fetch_as((exec), #name, OI_F32, (const void **)(const float **)(out), (n), (diag))
#define OI_TRY_FETCH_I32(exec, name, out, n, diag) \
    oi_fetch_as((exec), #name, OI_I32, (const void **)(const int32_t **)(out), (n), (diag))
#define OI_TRY_FETCH_I64(exec, name, out, n, diag) \
    oi_fetch_as((exec), #name, OI_I64, (const void **)(const int64_t **)(out), (n), (diag))
#define OI_TRY_FETCH_F64(exec, name, out, n, diag) \
    oi_fetch_as((exec), #name, OI_F64, (const void **)(const double **)(out), (n), (diag))
#define OI_TRY_FETCH_U8(exec, name, out, n, diag) \
    oi_fetch_as((exec), #name, OI_U8, (const void **)(const uint8_t **)(out), (n), (diag))
#define OI_TRY_FETCH_BOOL(exec, name, out, n, diag) \
    oi_fetch_as((exec), #name, OI_BOOL, (const void **)(const bool **)(out), (n), (diag))
#define OI_STEP(exec) oi_step_or_stop(exec)

/* n elements in a row. */
OI_API oi_status oi_insert_flat(oi_exec *e, const char *name, oi_dtype dtype, const void *data,
                                uint64_t n, oi_diag *diag);
/* A value that must be of `dtype` (E050); n may be NULL. */
OI_API oi_status oi_fetch_as(oi_exec *e, const char *name, oi_dtype dtype, const void **out,
                             uint64_t *n, oi_diag *diag);

static inline void oi_stop_unless_ok(oi_status status, oi_diag *d)
{
    if (status != OI_OK) {
        oi_diag_print(d, stderr, false);
        exit(EXIT_FAILURE);
    }
    oi_diag_free(d);
}

static inline void oi_insert_or_stop(oi_exec *e, const char *name, oi_dtype dtype,
                                     const void *data, uint64_t n)
{
    oi_diag *d = oi_diag_new();
    oi_stop_unless_ok(oi_insert_flat(e, name, dtype, data, n, d), d);
}

static inline const void *oi_fetch_or_stop(oi_exec *e, const char *name, oi_dtype dtype,
                                           uint64_t *n)
{
    const void *data = NULL;
    oi_diag *d = oi_diag_new();
    oi_stop_unless_ok(oi_fetch_as(e, name, dtype, &data, n, d), d);
    return data;
}

static inline void oi_step_or_stop(oi_exec *e)
{
    oi_diag *d = oi_diag_new();
    oi_stop_unless_ok(oi_step(e, d), d);
}

/* -- devices: what a program is synthesized for --------------------------------------------------
 *
 * A device is described by a JSON file (spec: docs of `openinfer targets --fields`), by the name
 * of a built-in profile, or by an oi_device_spec. Loading fills in every default. */

typedef struct oi_device oi_device;

/* Each list gives the constants and, in the same place, their spelling in JSON. */
/* clang-format off */
#define OI_DEVICE_TYPES(X) \
    X(OI_DEVICE_GPU, "gpu") X(OI_DEVICE_CPU, "cpu") X(OI_DEVICE_MCU, "mcu") X(OI_DEVICE_FPGA, "fpga")
#define OI_DEVICE_APIS(X) \
    X(OI_DEVICE_VULKAN, "vulkan") X(OI_DEVICE_CUDA, "cuda") X(OI_DEVICE_C, "c") \
    X(OI_DEVICE_VHDL, "vhdl") X(OI_DEVICE_VERILOG, "verilog") X(OI_DEVICE_HLS_C, "hls_c") \
    X(OI_DEVICE_NULL, "null")
#define OI_FEATURES(X) \
    X(OI_FEATURE_FP16, "fp16", "f16 arithmetic; without it f32 is used") \
    X(OI_FEATURE_INT8, "int8", "8-bit arithmetic; without it i32 is used") \
    X(OI_FEATURE_SUBGROUP_OPS, "subgroup_ops", "subgroup reductions") \
    X(OI_FEATURE_COOPERATIVE_MATRIX, "cooperative_matrix", "matrix cores") \
    X(OI_FEATURE_FP64, "fp64", "f64 arithmetic") \
    X(OI_FEATURE_INT64, "int64", "64-bit integer arithmetic") \
    X(OI_FEATURE_INT16, "int16", "16-bit integer arithmetic") \
    X(OI_FEATURE_BF16, "bf16", "bf16 arithmetic") \
    X(OI_FEATURE_FP8, "fp8", "f8 arithmetic") \
    X(OI_FEATURE_DOT8, "dot8", "dot products of 8-bit integers into 32 bits") \
    X(OI_FEATURE_STORAGE8, "storage8", "8-bit loads and stores in buffers") \
    X(OI_FEATURE_STORAGE16, "storage16", "16-bit loads and stores in buffers") \
    X(OI_FEATURE_ATOMICS_F32, "atomics_f32", "atomic addition of f32")
#define OI_ISAS(X) \
    X(OI_ISA_SCALAR, "scalar") X(OI_ISA_SSE2, "sse2") X(OI_ISA_AVX, "avx") X(OI_ISA_AVX2, "avx2") \
    X(OI_ISA_FMA, "fma") X(OI_ISA_F16C, "f16c") X(OI_ISA_AVX512F, "avx512f") \
    X(OI_ISA_AVX512BW, "avx512bw") X(OI_ISA_AVX512VNNI, "avx512vnni") \
    X(OI_ISA_AVX512BF16, "avx512bf16") X(OI_ISA_AVX512FP16, "avx512fp16") \
    X(OI_ISA_AMX_INT8, "amx_int8") X(OI_ISA_AMX_BF16, "amx_bf16") X(OI_ISA_NEON, "neon") \
    X(OI_ISA_DOTPROD, "dotprod") X(OI_ISA_I8MM, "i8mm") X(OI_ISA_SVE, "sve") X(OI_ISA_RVV, "rvv")
#define OI_TENSOR_CORES(X) \
    X(OI_TENSOR_CORE_F16, "f16") X(OI_TENSOR_CORE_BF16, "bf16") X(OI_TENSOR_CORE_TF32, "tf32") \
    X(OI_TENSOR_CORE_INT8, "int8") X(OI_TENSOR_CORE_FP8, "fp8")
#define OI_MCU_CORES(X) \
    X(OI_CORE_GENERIC32, "generic32") X(OI_CORE_M0, "cortex_m0") X(OI_CORE_M0PLUS, "cortex_m0plus") \
    X(OI_CORE_M3, "cortex_m3") X(OI_CORE_M4, "cortex_m4") X(OI_CORE_M7, "cortex_m7") \
    X(OI_CORE_M23, "cortex_m23") X(OI_CORE_M33, "cortex_m33") X(OI_CORE_M35P, "cortex_m35p") \
    X(OI_CORE_M52, "cortex_m52") X(OI_CORE_M55, "cortex_m55") X(OI_CORE_M85, "cortex_m85") \
    X(OI_CORE_RV32IMC, "rv32imc") X(OI_CORE_RV32IMAC, "rv32imac") X(OI_CORE_XTENSA_LX7, "xtensa_lx7")
#define OI_MCU_FPUS(X) X(OI_FPU_NONE, "none") X(OI_FPU_SINGLE, "single") X(OI_FPU_DOUBLE, "double")
#define OI_EMBEDS(X) \
    X(OI_EMBED_AUTO, "auto") X(OI_EMBED_ALWAYS, "always") X(OI_EMBED_NEVER, "never")
#define OI_HOST_LANGS(X) X(OI_HOST_C, "c") X(OI_HOST_CPP, "cpp")
#define OI_ENDIANS(X) X(OI_LITTLE_ENDIAN, "little") X(OI_BIG_ENDIAN, "big")
#define OI_C_STANDARDS(X) X(OI_C99, "c99") X(OI_C11, "c11") X(OI_C17, "c17")
#define OI_HDLS(X) X(OI_HDL_VHDL, "vhdl") X(OI_HDL_VERILOG, "verilog")
#define OI_FPGA_INTERFACES(X) \
    X(OI_AXI_STREAM, "axi_stream") X(OI_AXI_LITE, "axi_lite") \
    X(OI_SIMPLE_VALID_READY, "simple_valid_ready")
#define OI_ROUNDINGS(X) X(OI_ROUND_NEAREST_EVEN, "nearest_even") X(OI_ROUND_FLOOR, "floor")
#define OI_OVERFLOWS(X) X(OI_OVERFLOW_SATURATE, "saturate") X(OI_OVERFLOW_WRAP, "wrap")
#define OI_SHADER_LANGS(X) X(OI_SHADER_GLSL, "glsl")

#define OI_LIST_ID(id, ...) id,
typedef enum oi_device_type { OI_DEVICE_TYPES(OI_LIST_ID) OI_DEVICE_TYPE_COUNT } oi_device_type;
typedef enum oi_device_api { OI_DEVICE_APIS(OI_LIST_ID) OI_DEVICE_API_COUNT } oi_device_api;
typedef enum oi_feature { OI_FEATURES(OI_LIST_ID) OI_FEATURE_COUNT } oi_feature;
typedef enum oi_isa { OI_ISAS(OI_LIST_ID) OI_ISA_COUNT } oi_isa;
typedef enum oi_tensor_core { OI_TENSOR_CORES(OI_LIST_ID) OI_TENSOR_CORE_COUNT } oi_tensor_core;
typedef enum oi_mcu_core { OI_MCU_CORES(OI_LIST_ID) OI_MCU_CORE_COUNT } oi_mcu_core;
typedef enum oi_mcu_fpu { OI_MCU_FPUS(OI_LIST_ID) OI_MCU_FPU_COUNT } oi_mcu_fpu;
typedef enum oi_embed { OI_EMBEDS(OI_LIST_ID) OI_EMBED_COUNT } oi_embed;
typedef enum oi_host_lang { OI_HOST_LANGS(OI_LIST_ID) OI_HOST_LANG_COUNT } oi_host_lang;
typedef enum oi_endian { OI_ENDIANS(OI_LIST_ID) OI_ENDIAN_COUNT } oi_endian;
typedef enum oi_c_standard { OI_C_STANDARDS(OI_LIST_ID) OI_C_STANDARD_COUNT } oi_c_standard;
typedef enum oi_hdl { OI_HDLS(OI_LIST_ID) OI_HDL_COUNT } oi_hdl;
typedef enum oi_fpga_interface { OI_FPGA_INTERFACES(OI_LIST_ID) OI_FPGA_INTERFACE_COUNT } oi_fpga_interface;
typedef enum oi_rounding { OI_ROUNDINGS(OI_LIST_ID) OI_ROUNDING_COUNT } oi_rounding;
typedef enum oi_overflow { OI_OVERFLOWS(OI_LIST_ID) OI_OVERFLOW_COUNT } oi_overflow;
typedef enum oi_shader_lang { OI_SHADER_LANGS(OI_LIST_ID) OI_SHADER_LANG_COUNT } oi_shader_lang;
/* clang-format on */

typedef struct oi_device_names {
    const char *const *at;
    size_t n;
} oi_device_names;

/* Everything about a device, resolved. Parts that do not belong to its type are zero. Texts are
 * never NULL. What 0 means is said where it is not a plain value. */
typedef struct oi_device_info {
    oi_device_type type;
    oi_device_api api;
    const char *vendor, *name, *architecture, *driver, *notes;
    struct {
        uint64_t max_workgroup_size[3], max_workgroup_count[3], max_workgroup_invocations;
        uint64_t max_shared_memory_bytes, max_push_constants_bytes, max_storage_buffer_range_bytes;
        uint64_t subgroup_size, storage_buffer_alignment;
    } limits;
    uint32_t features; /* bit 1 << OI_FEATURE_… */
    struct {
        uint64_t global_bytes; /* 0 = unlimited */
        uint64_t flash_bytes, ram_bytes, shared_bytes_per_sm;
        uint64_t l2_bytes;            /* 0 = unknown */
        double bandwidth_bytes_per_s; /* 0 = unknown */
    } memory;
    struct {
        oi_dtype default_precision;
        bool prefer_fusion, prefer_persistent_kv, deterministic;
        uint64_t max_kernel_ops, large_pages_bytes;
        oi_embed embed_weights;
        oi_host_lang host_lang;
    } preferences;
    struct {          /* cpu and mcu */
        uint32_t isa; /* bit 1 << OI_ISA_…, closed under implication; scalar only when alone */
        uint64_t threads; /* 0 = decided at run time */
        uint64_t cache_l1_bytes, cache_l2_bytes, cache_l3_bytes, line_bytes;
        oi_endian endianness;
        oi_c_standard c_standard;
        bool libc;
        /* measured; 0 = unknown. One thread, but for the last */
        uint64_t clock_hz;
        double l1_bytes_per_s, l2_bytes_per_s, l3_bytes_per_s, memory_bytes_per_s;
        double f32_macs_per_s, int8_macs_per_s, tile_macs_per_s;
        uint64_t barrier_ns; /* all threads wait for each other */
    } cpu;
    struct { /* sizes that were found best; 0 = by the caches */
        uint64_t partition_elements, gemm_depth, gemm_rows, qlinear_bytes, stream_ahead, sdpa_floats;
        uint64_t warm_up_slices; /* 0 = not at all */
    } tuning;
    struct {
        oi_mcu_core core;
        oi_mcu_fpu fpu;
        bool dsp, mve, heap;
        uint64_t clock_hz; /* 0 = unknown */
        uint64_t stack_bytes;
        uint64_t align_bytes;               /* of tensors */
        uint64_t flash_origin, ram_origin;  /* addresses, for the linker script of the demo */
        const char *flash_section, *ram_section; /* "" = the compiler's choice */
    } mcu;
    struct {
        const char *family, *part;
        uint64_t clock_hz, luts, ffs, dsps, bram_bits, uram_bits; /* budgets: 0 = unlimited */
        uint64_t parallelism;                                     /* MACs; 0 = fit the budget */
        uint64_t ii_target;
        oi_hdl hdl;
        oi_fpga_interface interface;
        struct {
            bool present; /* false: float graphs are rejected */
            uint64_t total_bits, frac_bits;
            oi_rounding rounding;
            oi_overflow overflow;
        } fixed_point;
    } fpga;
    struct {
        const char *compute_capability, *ptx_version; /* ptx_version "" = by capability */
        uint64_t sm_count, warp_size, max_threads_per_block, regs_per_sm;
        uint64_t shared_bytes_per_block_optin;
        uint32_t tensor_cores; /* bit 1 << OI_TENSOR_CORE_… */
        bool graphs;
    } cuda;
    struct {
        const char *version, *spirv;
        oi_device_names extensions;
        oi_shader_lang shader_lang;
        bool timeline_semaphores;
    } vulkan;
} oi_device_info;

/* A file, or the name of a built-in profile. strict: unknown keys are errors, not warnings. */
OI_API oi_status oi_device_load(const char *path_or_profile, bool strict, oi_device **out,
                                oi_diag *diag);
/* `extends` may name built-in profiles only: no file is opened. */
OI_API oi_status oi_device_from_json(const char *text, size_t n, const char *name, bool strict,
                                     oi_device **out, oi_diag *diag);
/* The same device with another cpu.threads (0: decided at run time). E091 where there are none. */
OI_API oi_status oi_device_with_threads(const oi_device *d, uint64_t n, oi_device **out,
                                        oi_diag *diag);
/* A device of this machine, as it describes itself. Vulkan: the fastest kind, or that with this
 * number or part of a name. OI_ERR_ENV: there is none, or none can be asked. */
OI_API oi_status oi_device_probe(oi_device_api api, const char *which, oi_device **out,
                                 oi_diag *diag);
OI_API void oi_device_free(oi_device *d);
OI_API const oi_device_info *oi_device_get(const oi_device *d);
OI_API bool oi_device_has(const oi_device *d, oi_feature feature);
/* Normalised and byte-stable: loading the text gives the same device and the same text. */
OI_API oi_status oi_device_to_json(const oi_device *d, char **out, oi_diag *diag);
OI_API const char *oi_device_type_name(oi_device_type type); /* "gpu" */
OI_API const char *oi_device_api_name(oi_device_api api);    /* "vulkan" */
OI_API const char *oi_isa_name(oi_isa isa);                  /* "avx2" */

/* Fills the device part only; the fitting built-in profile gives the rest. Texts are copied. */
typedef struct oi_device_spec oi_device_spec;
OI_API oi_device_spec *oi_device_spec_new(oi_device_type type); /* NULL when memory is out */
OI_API void oi_device_spec_api(oi_device_spec *s, const char *api);
OI_API void oi_device_spec_vendor(oi_device_spec *s, const char *vendor);
OI_API void oi_device_spec_architecture(oi_device_spec *s, const char *architecture);
OI_API void oi_device_spec_driver(oi_device_spec *s, const char *driver);
OI_API void oi_device_spec_name(oi_device_spec *s, const char *name);
OI_API void oi_device_spec_free(oi_device_spec *s);
OI_API oi_status oi_device_build(const oi_device_spec *s, oi_device **out, oi_diag *diag);

/* Compares driver versions field by field, `x` equal to anything: <0, 0, >0 in *order. False when
 * either text is not a version. */
OI_API bool oi_device_driver_compare(const char *a, const char *b, int *order);

OI_API size_t oi_device_profile_count(void);
OI_API const char *oi_device_profile_name(size_t i); /* in alphabetical order; NULL past the end */

/* One row of the table that defines the file format. */
typedef struct oi_device_field {
    const char *path;   /* "limits.subgroup_size" */
    const char *wanted; /* "a power of two" */
    const char *doc;
    const char *belongs; /* "gpu", "cpu mcu", … or "" for every device */
    char standard[48];   /* the default as JSON text, "" when required, or how it is derived */
} oi_device_field;
OI_API size_t oi_device_field_count(void);
OI_API oi_device_field oi_device_field_at(size_t i);

/* -- synthesis ----------------------------------------------------------------------------------
 */

typedef struct oi_plan oi_plan;

typedef struct oi_synth_graph {
    const oi_graph *graph;
    const char *name; /* of its step function when there are several; NULL: "graph" */
} oi_synth_graph;

typedef struct oi_synth_options {
    const char *name;        /* of the program, an identifier; NULL: "model" */
    const oi_size *sizes;    /* other values for the model's sizes */
    size_t n_sizes;
    bool per_node;           /* code that lets the host compare after every node */
    bool partition_all;          /* threads share every kernel, however small: for tests */
    bool timed;              /* code that tells its `mark` when a kernel begins and ends */
    oi_embed weights;        /* compiled in, or a file beside it; auto: as the device prefers */
    const char *const *skip; /* passes that are left out, NULL-ended; NULL: none */
    const char *dump_after;  /* keep what this pass made, as text: oi_plan_dump */
    bool overwrite;          /* also files that are of no earlier run: oi_plan_emit */
    uint64_t max_output;     /* oi_plan_emit refuses a program of more bytes, E064; 0: 64 GiB */
    /* Is told how many bytes of all the weights are written; NULL: no callback. */
    void (*progress)(void *ctx, uint64_t written, uint64_t all);
    void *progress_ctx;
} oi_synth_options;

/* One program of one or more graphs that share their persistent variables, for one device. The
 * graphs and the model must outlive the plan. Fails (E060, E062 ...) when the device cannot hold or
 * run them; nothing is written then. */
OI_API oi_status oi_synthesize(const oi_device *device, oi_model *model,
                               const oi_synth_graph *graphs, size_t n_graphs,
                               const oi_synth_options *options, oi_plan **out, oi_diag *diag);
OI_API void oi_plan_free(oi_plan *p);

/* One graph for a device, under the name that the compact form's descriptions use. */
static inline oi_status oi_evaluator_from_graph(const oi_device *device, oi_model *model,
                                                const oi_graph *graph, oi_plan **out,
                                                oi_diag *diag)
{
    const oi_synth_graph one = {graph, NULL};
    return oi_synthesize(device, model, &one, 1, NULL, out, diag);
}

/* The passes in their order; NULL past the end. Memory planning is the last and always runs. */
OI_API const char *oi_synth_pass(size_t i);
OI_API const char *oi_plan_dump(const oi_plan *p); /* of dump_after; NULL when that did not run */
OI_API const char *oi_plan_name(const oi_plan *p); /* of the program: an identifier */
/* Ops that are computed in the device's preferences.default_precision, not as written. */
OI_API uint64_t oi_plan_n_lowered(const oi_plan *p);
/* A name that the target's language, or a file beside the program, forbids: of a member, a graph or
 * the program. False: no name is number i. */
OI_API bool oi_plan_renamed(const oi_plan *p, size_t i, const char **was, const char **is);
/* A kernel that takes a twentieth of a step or more as a plain loop, why, and what would help; NULL:
 * none is number i. The same notes are in report.html and plan.json. */
OI_API const char *oi_plan_slow(const oi_plan *p, size_t i);
/* What a step of the graph does on paper. */
typedef struct oi_step_cost {
    uint64_t macs;  /* multiply-accumulates */
    uint64_t bytes; /* read and written by its kernels */
    bool is_open;   /* a loop whose length only the run knows was counted once */
    double ns;      /* predicted for the device */
    bool is_most;   /* a length that only the run knows was counted as its greatest */
} oi_step_cost;
OI_API bool oi_plan_cost(const oi_plan *p, size_t graph, oi_step_cost *out); /* false past the end */
/* The kernels of the program; names live as long as the plan. false past the end. */
typedef struct oi_plan_kernel {
    const char *name, *recipe; /* recipe "": plain loops */
    uint32_t line;             /* of the graph's text where it comes from; 0: none */
    oi_step_cost cost;         /* of one run */
} oi_plan_kernel;
OI_API bool oi_plan_kernel_at(const oi_plan *p, size_t i, oi_plan_kernel *out);
/* What compiler and linker made of the program, in bytes; what synthesis made of a circuit, 0 elsewhere. */
typedef struct oi_plan_measured {
    uint64_t call_stack_bytes;    /* a call into it needs no more */
    uint64_t program_stack_bytes; /* the same with main and HAL around it */
    uint64_t flash_bytes;         /* code, constants and weights; 0 where a system loads it */
    uint64_t gates;               /* gates and registers of a circuit for no device in particular */
    uint64_t luts, ffs, brams;    /* of one for an iCE40 */
    uint64_t clock_hz;            /* that it reaches there; 0: it was not placed */
} oi_plan_measured;

/* Goes into the certificate of plan.json and NAME.h. E062 when the device has less. */
OI_API oi_status oi_plan_set_measured(oi_plan *p, const oi_plan_measured *m, oi_diag *diag);
/* Builds the program in a folder of its own with the device's compiler (cc: NULL, or another) and
 * measures it. OI_ERR_ENV: it cannot be built here. */
OI_API oi_status oi_plan_certify(oi_plan *p, const oi_device *device, const char *cc,
                                 oi_diag *diag);
/* Writes the program into a folder that need not exist: all or nothing. In a folder that does, the
 * files that its .openinfer names are replaced or removed; others are refused (overwrite). */
OI_API oi_status oi_plan_emit(oi_plan *p, const char *dir, oi_diag *diag);
/* The same with a main in this language, whatever the device prefers. Where everything runs on the host, as on
 * CPUs, the host's program is the whole one; main.cpp then stands beside kernels in C. */
OI_API oi_status oi_plan_emit_host(oi_plan *p, oi_host_lang lang, const char *dir, oi_diag *diag);
/* Only what runs on the device itself: of Vulkan devices a compute shader NAME.comp per kernel. */
OI_API oi_status oi_plan_emit_device(oi_plan *p, const char *dir, oi_diag *diag);

/* What this version writes for a device. */
typedef enum oi_synth_kind {
    OI_SYNTH_NOTHING,
    OI_SYNTH_SHADERS, /* oi_plan_emit_device alone */
    OI_SYNTH_LISTING, /* the plan for people, of the device null */
    OI_SYNTH_PROGRAM, /* oi_plan_emit */
} oi_synth_kind;
OI_API oi_synth_kind oi_synth_writes(const oi_device *d);
/* Whether that code computes the op with element type t, its shared dtype. */
OI_API bool oi_synth_takes(const oi_device *d, size_t op, oi_dtype t);

/* -- this machine --------------------------------------------------------------------------------
 */

/* The path of a program that PATH names, or NULL; oi_free. */
OI_API char *oi_machine_find(const char *name);
/* The instruction sets of this machine's processor: bit 1 << OI_ISA_... */
OI_API uint32_t oi_machine_isa(void);
/* Whether oi_verify can build programs for the device here, and whether it can run them: with the
 * device's standard compiler, on this processor or an emulator. */
OI_API bool oi_machine_builds(const oi_device *d);
OI_API bool oi_machine_runs(const oi_device *d);
/* What the clock of oi_bench counts where a device is simulated: "instructions", "cycles". NULL: it
 * measures nanoseconds. */
OI_API const char *oi_machine_counts(const oi_device *d);

/* -- proof ---------------------------------------------------------------------------------------
 *
 * Simulates (cpu:scalar, the definition), synthesizes, builds with the target's own compiler, runs
 * that, and compares every output and everything that lasts, sizes included, after every step. A
 * step that fails must fail with the same number and leave persistent state as it was. */

/* The value of an input in a step, size bytes; OI_NOT_FOUND leaves it to its @init. */
typedef oi_status (*oi_fill_fn)(void *ctx, const oi_var_info *var, uint64_t step, void *data,
                                uint64_t size, oi_diag *diag);

typedef struct oi_verify_options {
    oi_synth_options synth; /* per_node: judge every node, each on the simulator's inputs, and only
                             * that */
    double node_seconds;    /* else: the whole program, and then every node where that is estimated
                             * to take no longer than this; 0: not */
    uint64_t steps;         /* 0: 8. Every graph once, then the last of them */
    bool in_turn;           /* instead: all graphs in turn, so many steps each */
    oi_fill_fn fill;        /* NULL: random floats in -1..1, new ones in every step; else zeros */
    void *fill_ctx;
    const char *keep;  /* the folder for the program, which stays; NULL: a temporary one */
    const char *cc;    /* NULL: the target's */
    const char *flags; /* for it, instead of the optimising ones; NULL: those of the Makefile */
    uint32_t sim_threads; /* of the simulator; 0: 1 */
} oi_verify_options;

typedef struct oi_verify_row {
    const char *graph;
    const char *what; /* "output", "state", "node" */
    const char *name;
    oi_dtype dtype;
    double worst;      /* the difference that is the greatest share of what is allowed */
    double relative;   /* it, as a share of the wanted value; infinite where that is 0 */
    double allowed;    /* there: atol + rtol * |wanted| */
    double atol, rtol; /* of the value; 0 where only equal will do */
    double wanted, found;
    uint64_t step, element;
    uint64_t n_compared;
    bool agrees;
} oi_verify_row;

typedef struct oi_verify_report oi_verify_report;

/* OI_OK: they agree. OI_ERR_INPUT: they do not (the diagnostics name the first difference and the
 * node), or the graph is wrong. OI_ERR_ENV: no compiler, or nothing to run its programs with. */
OI_API oi_status oi_verify(const oi_device *device, oi_model *model, const oi_synth_graph *graphs,
                           size_t n_graphs, const oi_verify_options *options,
                           oi_verify_report **out, oi_diag *diag);
OI_API bool oi_verify_row_at(const oi_verify_report *r, size_t i, oi_verify_row *out);
OI_API const char *oi_verify_failure(const oi_verify_report *r); /* the first difference, or "" */
/* Steps compared; how many of them failed, in both the same way. failed may be NULL. */
OI_API uint64_t oi_verify_steps(const oi_verify_report *r, uint64_t *failed);
/* Whether every node was judged. False: it was not; seconds is what it was estimated to take, and
 * why is "" where that would take too long or was not requested, else what is in the way. */
OI_API bool oi_verify_nodes(const oi_verify_report *r, double *seconds, const char **why);
/* What preferences.default_precision of the device has changed. Both sides of the comparison are
 * the changed program; this is how far its outputs are from those of the graph as written. */
typedef struct oi_verify_lowered {
    uint64_t n_ops;   /* 0: nothing */
    double worst;     /* the greatest difference of float outputs, as a share of ... */
    double greatest;  /* ... the greatest value of that output in that step */
    const char *name; /* of the output; "": no floats among them */
    uint64_t step;
    uint64_t n_others, n_different; /* elements of outputs that are not floats */
} oi_verify_lowered;
OI_API void oi_verify_get_lowered(const oi_verify_report *r, oi_verify_lowered *out);
OI_API void oi_verify_report_free(oi_verify_report *r);

/* The time of each of options->steps steps in ns, all on the inputs of step 0: of the program for
 * the device, or of the simulator with the best kernels of this machine (device NULL). out_ns has
 * room for as many. Persistent memory that is full starts anew. out_cost (may be NULL) is what the
 * program's step does, all 0 for the simulator. */
OI_API oi_status oi_bench(const oi_device *device, oi_model *model, const oi_graph *graph,
                          const oi_verify_options *options, double *out_ns, oi_step_cost *out_cost,
                          oi_diag *diag);

/* The same, kernel by kernel, for the device's program: what the plan predicts beside what the
 * first thread measures around each. */
typedef struct oi_bench_kernel {
    oi_plan_kernel kernel; /* its cost is of one run */
    uint64_t runs;         /* in a step */
    double ns;             /* of one run, in the step that was quickest with this kernel */
} oi_bench_kernel;
typedef struct oi_bench_report oi_bench_report;
OI_API oi_status oi_bench_kernels(const oi_device *device, oi_model *model, const oi_graph *graph,
                                  const oi_verify_options *options, oi_bench_report **out,
                                  oi_diag *diag);
OI_API bool oi_bench_kernel_at(const oi_bench_report *r, size_t i, oi_bench_kernel *out);
OI_API double oi_bench_step_ns(const oi_bench_report *r); /* the quickest whole step */
OI_API void oi_bench_report_free(oi_bench_report *r);

/* Measures this machine with the device's compiler: what it reads and multiplies, what waiting for
 * each other takes, and of some sizes of tiles the quickest. *out (oi_free) is the text of a device
 * file that extends `base`, by which the device is known, and states them. options: steps (0: 10)
 * of each measurement, cc, flags. OI_ERR_ENV: its programs do not run here. */
OI_API oi_status oi_tune(const oi_device *device, const char *base,
                         const oi_verify_options *options, char **out, oi_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
