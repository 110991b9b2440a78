/* program.h: types of tensors and what ops make of them. Pure functions: nothing is allocated,
 * texts are borrowed. Grouped by the file that implements it. */
#ifndef OI_PROGRAM_H
#define OI_PROGRAM_H

#include "base/base.h"
#include "base/ops.h"

/* One axis. A graph can be checked without its model: then a size is only a name. */
typedef struct oi_dim {
    bool known;
    int64_t value;    /* when known */
    const char *text; /* canonical expression ("B*D"), "?" for a length that only the run knows, or
                         NULL: nothing to say, or known and just a number */
} oi_dim;

typedef struct oi_type {
    oi_dtype dtype;
    uint32_t rank; /* at most OI_MAX_RANK: the caller refuses more */
    oi_dim dims[OI_MAX_RANK];
} oi_type;

/* -- types.c -- */

typedef enum oi_tri { OI_DIFFERENT, OI_UNKNOWN, OI_EQUAL } oi_tri;

oi_dim oi_dim_of(int64_t value); /* a known size */
oi_tri oi_dim_equal(oi_dim a, oi_dim b);
oi_tri oi_dims_equal(const oi_type *a, const oi_type *b); /* shapes only; OI_UNKNOWN is fine */
/* Trailing-aligned, 1 stretches. False when that cannot be; `out` may be a or b. */
bool oi_dim_broadcast(oi_dim a, oi_dim b, oi_dim *out);
bool oi_dims_broadcast(const oi_type *a, const oi_type *b, oi_type *out);

/* Text into a buffer of fixed size, cut with "..." where it does not fit. */
typedef struct oi_text {
    char *at;
    size_t n, cap;
} oi_text;
void oi_text_add(oi_text *t, const char *fmt, ...) OI_PRINTF(2, 3);
void oi_text_dim(oi_text *t, oi_dim d);
void oi_text_dims(oi_text *t, const oi_type *type); /* "[B, 64]" */
/* " (B = 4, D = 64)": the values behind the names in these shapes; nothing when there are none. */
void oi_text_sizes(oi_text *t, const oi_type *const *types, size_t n);

/* -- infer.c: is this call right, and what does it give? -- */

/* An attribute of a call. Literals, sizes and metadata come with their value; a variable that is
 * read when the node runs has known = false and its type. */
typedef struct oi_attr_arg {
    const oi_op_attr *attr;
    bool known;
    oi_op_value value;  /* when known; a single value also where a list is wanted */
    const oi_type *var; /* the variable, or NULL */
} oi_attr_arg;

typedef enum oi_infer_at { OI_AT_OP, OI_AT_INPUT, OI_AT_OUTPUT, OI_AT_ATTR } oi_infer_at;

#define OI_INFER_TEXT 512 /* two shapes of long names still read well; more is cut */
#define OI_INFER_NONE UINT32_MAX

typedef struct oi_infer_fail {
    const char *code; /* "E050", "E051", "E053", "E054", "E056" or "E060" */
    oi_infer_at at;   /* what to point at: the op's name, or an item ... */
    uint32_t index;   /* ... of the call: which input, output or attribute argument */
    uint32_t other;   /* an input whose declaration explains the rest, or OI_INFER_NONE */
    char message[OI_INFER_TEXT];
} oi_infer_fail;

/* Checks a call with all its outputs declared. */
bool oi_infer(const oi_op *op, const oi_type *in, size_t n_in, const oi_attr_arg *attrs,
              size_t n_attrs, const oi_type *declared_out, size_t n_out, oi_infer_fail *fail);
/* The same, and fills out[0 … n_out). `declared` is NULL where no outputs are declared, or leaves
 * lengths open (`?`). Fails also (E051) where the shape hangs on an attribute that only the run
 * knows. */
bool oi_infer_result(const oi_op *op, const oi_type *in, size_t n_in, const oi_attr_arg *attrs,
                     size_t n_attrs, const oi_type *declared, oi_type *out, size_t n_out,
                     oi_infer_fail *fail);

/* -- attrs.c: attribute values -- */

/* A call under inspection, handed from rule to rule. */
typedef struct oi_call {
    const oi_op *op;
    const oi_type *in;
    size_t n_in;
    const oi_attr_arg *attrs;
    size_t n_attrs;
    const oi_type *declared; /* NULL when the outputs are to be found */
    size_t n_out;
    oi_infer_fail *fail;
} oi_call;

/* Each records the failure and returns false. `index` is ignored for OI_AT_OP. */
bool oi_call_fail(const oi_call *c, const char *code, oi_infer_at at, size_t index, const char *fmt,
                  ...) OI_PRINTF(5, 6);

bool oi_attrs_check(const oi_call *c); /* kinds, words, minima, missing and doubled ones */
/* Numbers against the dtype they are taken in: integral for integers, in range where asked. */
bool oi_attrs_check_numbers(const oi_call *c, oi_dtype t);

/* The argument for attribute `name`, or NULL when it was not given. */
const oi_attr_arg *oi_call_arg(const oi_call *c, const char *name);
/* The value of an attribute, default included. False when only the run knows it. */
bool oi_call_bool(const oi_call *c, const char *name, bool *out);
bool oi_call_int(const oi_call *c, const char *name, int64_t *out); /* false also when absent */

/* -- shapes.c: one function per shape rule -- */

typedef struct oi_shape {
    oi_type type; /* dtype unused */
    bool is_open; /* not even the rank is known yet: any declared shape will do */
} oi_shape;

/* The shape of output `o`. */
bool oi_shape_infer(const oi_call *c, size_t o, oi_shape *out);

/* One per word of vocabulary.shape; those that fill a file of their own: */
typedef bool oi_shape_fn(const oi_call *c, size_t o, oi_shape *out);
oi_shape_fn oi_shape_along, oi_shape_norm, oi_shape_channels, oi_shape_pairs; /* shapes_norm.c */
oi_shape_fn oi_shape_rope, oi_shape_cell, oi_shape_sequence; /* shapes_recurrent.c */
oi_shape_fn oi_shape_qlinear, oi_shape_quantize, oi_shape_dynamic_quantize, oi_shape_qmatmul,
    oi_shape_qconv;                         /* shapes_quant.c */
oi_shape_fn oi_shape_gemm, oi_shape_einsum; /* shapes_product.c */
oi_shape_fn oi_shape_matmul;                /* shapes.c */
oi_shape_fn oi_shape_conv, oi_shape_conv_transpose, oi_shape_pool, oi_shape_global_pool,
    oi_shape_im2col, oi_shape_col2im; /* shapes_window.c */
oi_shape_fn oi_shape_reshape, oi_shape_flatten, oi_shape_squeeze, oi_shape_unsqueeze,
    oi_shape_transpose, oi_shape_expand, oi_shape_tile, oi_shape_concat, oi_shape_split,
    oi_shape_slice, oi_shape_pad; /* shapes_move.c */
oi_shape_fn oi_shape_nonzero, oi_shape_unique, oi_shape_topk, oi_shape_resize, oi_shape_grid_sample,
    oi_shape_dft, oi_shape_stft, oi_shape_istft, oi_shape_mel_filter,
    oi_shape_window; /* shapes_signal.c */
oi_shape_fn oi_shape_along_axes, oi_shape_matrix, oi_shape_same_bits, oi_shape_depth_to_space,
    oi_shape_space_to_depth, oi_shape_gather_elements, oi_shape_gather_nd, oi_shape_scatter,
    oi_shape_scatter_nd, oi_shape_one_hot, oi_shape_range, oi_shape_shape_of,
    oi_shape_scalar; /* shapes_index.c */

/* For those files: mistakes about shapes (E051), each recorded, then false. */

bool oi_dim_differ(oi_dim a, oi_dim b); /* for sure */
/* "text [2, 3]", pointing at input i. */
bool oi_shape_fail_one(const oi_call *c, size_t i, const char *text, const oi_type *a);
/* The same, pointing at the attribute, or at the op where it was not given. */
bool oi_shape_fail_attr(const oi_call *c, const char *name, const char *text, const oi_type *a);
/* "text [2, 3] x [4, 5]" and the sizes behind names, pointing at input i. */
bool oi_shape_fail_pair(const oi_call *c, size_t i, size_t other, const char *text,
                        const oi_type *a, const char *joint, const oi_type *b);
/* An axis of input 0, resolved; a negative one counts from the end. `arg` is what names it. */
bool oi_shape_axis(const oi_call *c, const oi_attr_arg *arg, int64_t axis, uint32_t *out);

#endif
