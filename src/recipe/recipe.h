/* recipe.h: tuned bodies for the most expensive calls.
 *
 * A body is a static function in one of the headers of src/body. Its text is compiled here for
 * tests and the simulator, and copied into emitted C, with every size a literal. Headers in a
 * subfolder (avx2/, neon/ ...) are for targets with those instruction sets. The headers beside
 * these folders are for all targets, and call only names that every folder defines. A row says
 * which calls a body implements, how it packs the weights, and how its work is partitioned. If no
 * row matches, the plain nests of the op are printed. Grouped by the file that implements it. */
#ifndef OI_RECIPE_H
#define OI_RECIPE_H

#include "kernel/kernel.h"

/* The arguments of a body, in the order of its parameters. */
typedef enum oi_recipe_arg_kind {
    OI_ARG_IN,       /* input n of the call: a pointer to its elements, row-major */
    OI_ARG_OUT,      /* output n */
    OI_ARG_PACKED,   /* the result of packing n */
    OI_ARG_PROLOGUE, /* array n of the prologue */
    OI_ARG_SCRATCH,  /* array n: a local of the caller, aligned to 64 bytes */
    OI_ARG_SIZE,     /* the number n, as int64_t */
    OI_ARG_REAL,     /* the number `real`, as float */
    OI_ARG_ATTR,     /* attribute n of the call, as int64_t; it may be known only at run time */
    OI_ARG_EPILOGUE, /* two arguments: the epilogue function, and the ports that it accesses; NULL:
                        there is no epilogue */
    OI_ARG_NEXT,     /* address of the weights that are read next, for prefetching, or NULL */
    OI_ARG_FIRST,    /* the partition to compute: positions first ... last - 1 of the partitioned
                        axis; */
    OI_ARG_LAST,     /* first is a multiple of `unit`, and so is last, unless it is the end */
    OI_ARG_ROW,      /* the rows to compute: from this one (0 for all rows), */
    OI_ARG_ROW_END   /* to before this one (n for all rows) */
} oi_recipe_arg_kind;

typedef struct oi_recipe_arg {
    oi_recipe_arg_kind kind;
    int64_t n;
    double real;
} oi_recipe_arg;

#define OI_RECIPE_ARGS     48
#define OI_RECIPE_PACKS    3
#define OI_RECIPE_SCRATCH  6
#define OI_PACK_INPUTS     4
#define OI_PACK_SIZES      16
#define OI_PLACE_SIZES     4
#define OI_PROLOGUE_ARRAYS 3
#define OI_PROLOGUE_SIZES  8

/* Weights in the order in which the body streams them, made from inputs at synthesis time. Equal
 * packings of equal tensors are made once. */
typedef struct oi_packing oi_packing;
struct oi_packing {
    const char *name; /* "tiles of 8 rows"; part of the identity of a packing */
    uint32_t n_in;
    uint32_t in[OI_PACK_INPUTS]; /* inputs of the call, all of them weights */
    int64_t sizes[OI_PACK_SIZES];
    uint64_t size_bytes; /* of the result */
    oi_dtype dtype;      /* the body's element type; OI_NONE: bytes */
    /* The function that computes the index of an element of a 2-dim input in the packed result, in
     * such elements, from row, column and sizes. NULL: elements are not stored one by one. */
    struct {
        const char *function;
        int64_t sizes[OI_PLACE_SIZES];
    } places[OI_PACK_INPUTS];
    /* Writes every byte of `out`. */
    void (*pack)(const oi_packing *p, const void *const *in, void *out);
    /* Writes bytes from ... to - 1 of the result, where both are multiples of step_bytes, or `to`
     * is the end: a large result is made in parts. NULL: it is made as a whole. */
    void (*pack_some)(const oi_packing *p, const void *const *in, uint64_t from, uint64_t to,
                      void *out);
    uint64_t step_bytes;
};

typedef struct oi_recipe oi_recipe;

/* A prologue: arrays that the body wants computed from an input first, with as many rows. A
 * separate kernel computes them; calls with equal prologues share it. Its function receives the
 * input, the arrays, the sizes, and the rows to compute, first and last. */
typedef struct oi_prologue {
    const char *function; /* NULL: nothing */
    const oi_recipe *recipe;
    const char *verb, *doc;
    uint32_t in;
    int64_t rows;
    bool has_dim; /* rows are along `dim` of the input alone */
    uint32_t dim;
    uint32_t n_arrays;
    struct {
        const char *name;
        oi_dtype dtype;
        int64_t width; /* of a row */
    } arrays[OI_PROLOGUE_ARRAYS];
    uint32_t n_sizes;
    int64_t sizes[OI_PROLOGUE_SIZES];
    bool is_cast; /* the only array is x, converted to its type row by row */
} oi_prologue;

/* How one call is implemented. */
typedef struct oi_recipe_plan {
    const char *function;   /* the body */
    const char *verb, *doc; /* description, if it differs from the op's; or NULL */
    uint32_t n_args;
    oi_recipe_arg args[OI_RECIPE_ARGS];
    uint32_t n_packings;
    oi_packing packings[OI_RECIPE_PACKS];
    oi_prologue prologue;
    uint32_t n_scratch;
    struct {
        const char *name;
        oi_dtype dtype;
        int64_t count;
    } scratch[OI_RECIPE_SCRATCH];
    /* The partitioned axis. The result at a position does not depend on the partition. The axis is
     * dim `split_dim` of every output, unless the partition is scattered: then it is along no dim,
     * but still disjoint. Extent 0: not partitioned. */
    int64_t extent, unit;
    uint32_t split_dim;
    bool is_scattered;
    int64_t streams;        /* bytes of packing 0 per position; 0: they are not in order */
    bool is_cast;           /* output 0 is input 0 in another type, rows (extent, width) of it */
    bool repacks_input;     /* every partition repacks the whole input, so fewer partitions are
                               better */
    bool reads_partitioned; /* the axis is also dim `read_dim` of every input */
    uint32_t read_dim;
    uint64_t macs; /* set by the planner of the program */
    uint64_t ops;  /* elements times instructions of vectors, where there is more than products */
    bool is_int8;  /* multiply-accumulates of 8-bit integers */
    uint16_t percent; /* percentage of the machine's peak multiply-accumulates that the body
                         reaches; 0: 85 */
    bool in_place;    /* the output may overwrite an input: each position is read before it is
                         written */
    uint32_t bounds;  /* the first of two arguments that clamp the results; 0: none */
    /* Epilogue: the body passes each sum, with three positions, to a function with the kernel's
     * instructions after the reduction. The positions are indices over the result's dims: from dim
     * 0, from dim epilogue[0], and from dim epilogue[1] on. No epilogue: epilogue[1] is 0. */
    uint32_t epilogue[2];
    bool sums_in_result; /* the epilogue receives results of the op, which the body has stored as
                            output 0; so the kernel's result is f32, in the order of the sums */
    /* The body can compute a range of rows, places along dim row_dim of the result; 0: it cannot.
     * Row r reads rows r * row_step + row_from ... + row_to of input 0, clipped to those that
     * exist. */
    uint32_t row_dim;
    int64_t row_step, row_from, row_to;
} oi_recipe_plan;

/* A call to plan. */
typedef struct oi_recipe_call {
    const oi_kernel_query *q; /* operands are contiguous */
    const bool *is_weight;    /* by input: constant at synthesis time, so it can be packed */
    const oi_device_info *target;
    const oi_recipe *table; /* of the target (oi_caps.recipes); NULL: oi_recipes */
    /* For row pipelines: typical number of rows per call. Row r of input 0 is at r % kept, and row
     * r of the result at r % out_kept. 0: all rows. */
    int64_t rows, kept, out_kept;
    bool may_regroup; /* no later op amplifies a difference in the last bit, so the op's tolerance
                         applies */
} oi_recipe_call;

struct oi_recipe {
    const char *name;
    oi_op_id op;
    bool needs_vectors; /* the body uses vector names of the folders */
    bool (*plan)(const oi_recipe_call *c, oi_recipe_plan *out); /* false: the recipe does not match
                                                                   the call */
};

/* -- table.c -- */

/* Bodies for an instruction set. A target uses the last folder whose instructions it has; names
 * that are missing there come from the folder that it extends. */
typedef struct oi_recipe_folder {
    const char *name, *extends; /* NULL: none */
    const char *header;         /* header that declares the intrinsics; NULL: none */
    uint32_t isa;               /* bit mask of 1 << OI_ISA_...: required by the folder */
    int64_t lanes;              /* floats per vector: OI_VF; 0: no vectors */
} oi_recipe_folder;

extern const oi_recipe_folder oi_recipe_folders[]; /* ends with a NULL name */

const oi_recipe_folder *oi_recipe_folder_of(const oi_device_info *target); /* NULL: none */
/* Rank of the folder among those that the target uses, the most specific first; 0: not used. */
uint32_t oi_recipe_height(const oi_device_info *target, const char *folder);

extern const oi_recipe oi_recipes[]; /* the first matching row wins; ends with a NULL name */

/* The recipe that matches the call, or NULL. */
const oi_recipe *oi_recipe_find(const oi_recipe_call *c, oi_recipe_plan *out);

/* For rows of the table: appends an argument. */
void oi_recipe_arg_add(oi_recipe_plan *p, oi_recipe_arg_kind kind, int64_t n);
void oi_recipe_scratch_add(oi_recipe_plan *p, const char *name, oi_dtype dtype, int64_t count);
void oi_recipe_prologue_add(oi_recipe_plan *p, const char *name, oi_dtype dtype, int64_t width);
void oi_recipe_arg_real(oi_recipe_plan *p, double real);
/* The epilogue of a product of floats: positions are an index over the result's dims before `dim`,
 * and one over `dim`. 0: the body has no epilogue for this call. */
void oi_recipe_epilogue_add(oi_recipe_plan *p, uint32_t dim);

/* Floats per vector of the target's folder; 0: no vectors. */
int64_t oi_recipe_lanes(const oi_device_info *target);

/* -- the rows: NAME.c plans what the bodies of NAME.h do -- */

bool oi_recipe_qlinear(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_matmul(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_matmul_halves(const oi_recipe_call *c, oi_recipe_plan *out); /* gemm.c, half.h */
bool oi_recipe_bf16x3(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_sdpa(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_conv_bf16x3(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_conv(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_global_avg_pool(const oi_recipe_call *c, oi_recipe_plan *out); /* mean.c */
bool oi_recipe_conv_windows(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_conv_transpose(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_max_pool(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_lstm(const oi_recipe_call *c, oi_recipe_plan *out); /* cell.c */
bool oi_recipe_gru(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_mac_conv(const oi_recipe_call *c, oi_recipe_plan *out); /* mac.c */
bool oi_recipe_mac_matmul(const oi_recipe_call *c, oi_recipe_plan *out);

bool oi_recipe_bytes_conv(const oi_recipe_call *c, oi_recipe_plan *out); /* bytes.c */
bool oi_recipe_bytes_matmul(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_qconv(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_conv_integer(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_qmatmul(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_matmul_integer(const oi_recipe_call *c, oi_recipe_plan *out);

/* conv.c: a convolution over one or two axes, or more if every window is a single place. */
typedef struct oi_conv_call {
    int64_t batches, c, m, places, k;
    oi_window y, x; /* with one axis only x is used; y is trivial */
    int64_t out_height, out_width;
    bool has_bias, is_points; /* windows of one place */
} oi_conv_call;
bool oi_conv_call_set(const oi_kernel_query *q, oi_conv_call *c); /* false: not a convolution, or
                                                                     empty */
oi_window oi_conv_window(const oi_kernel_query *q, uint32_t axis);
bool oi_conv_is_f32(const oi_kernel_query *q); /* and its sums are f32, too */
int64_t oi_conv_group(const oi_kernel_query *q);
/* Rows of the result per unit of the partition, with at least this many places; 0: filters are
 * partitioned instead. */
int64_t oi_conv_shared_rows(const oi_recipe_call *rc, const oi_conv_call *c, int64_t places);
/* Adds four arguments: the rows to compute, and which of m filters. One of the two is partitioned.
 */
void oi_conv_add_share(oi_recipe_plan *out, int64_t rows, int64_t m, int64_t shared);

/* bf16x3.c: a float as three bf16, as in amx/bf16x3.h; returns whether it is nonfinite. */
bool oi_bf16x3_split(float x, int64_t parts, uint16_t to[3]);

/* gemm.c: a matrix product a . b: operands with sizes and strides after transposition,
 * however they are stored. */
typedef struct oi_matrix {
    int64_t rows, columns, row_step, column_step;
} oi_matrix;

typedef struct oi_product {
    oi_matrix a, b;
    int64_t m, stack, a_step, b_step;
    int64_t a_count, b_count; /* matrices of a and of b: product i is of i % a_count and i % b_count
                               */
    uint32_t shared;          /* of a stack: the partitioned axis, ... */
    int64_t each;             /* ... and the number of products per position */
    const oi_device_info *target;
} oi_product;
bool oi_product_set(const oi_recipe_call *c, oi_product *p); /* of matmul; false: not a product */

/* gemm.c: packs input `input`, f32 (k, n) with these strides, in panels of `width` columns. */
void oi_recipe_panels(oi_packing *p, uint32_t input, int64_t n, int64_t k, int64_t step_k,
                      int64_t step_n, int64_t width);
/* Floats of scratch for panels that oi_gemm packs itself, if b has n columns and is no weight. */
int64_t oi_recipe_room(int64_t n, int64_t width);

#endif
