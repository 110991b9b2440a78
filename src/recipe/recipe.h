/* recipe.h: tuned bodies for the calls where the time goes.
 *
 * A body is a static function in one of the headers below this folder: text that is compiled here
 * for its tests and the simulator, and printed into emitted C with every size a literal. Headers
 * in a folder (avx2/, neon/ ...) are for targets with those instructions; those beside this file
 * are for all of them and call only what every folder has. A row says which calls a body takes, in
 * which layout it wants the weights, and how its work is shared out. No row fits: the plain nests
 * of the op are printed. Grouped by the file that implements it. */
#ifndef OI_RECIPE_H
#define OI_RECIPE_H

#include "kernel/kernel.h"

/* What a body is handed, in the order of its parameters. */
typedef enum oi_recipe_arg_kind {
    OI_ARG_IN,       /* input n of the call: a pointer to its elements, row-major */
    OI_ARG_OUT,      /* output n */
    OI_ARG_PACKED,   /* what packing n made */
    OI_ARG_PROLOGUE, /* array n of what was made ready */
    OI_ARG_SCRATCH,  /* array n: a local of the caller, aligned to 64 bytes */
    OI_ARG_SIZE,     /* the number n, as int64_t */
    OI_ARG_REAL,     /* the number `real`, as float */
    OI_ARG_ATTR,     /* attribute n of the call, as int64_t: it may be known only by the run */
    OI_ARG_EPILOGUE, /* two arguments: the function that takes a sum, and what it reads and writes
                      */
    OI_ARG_NEXT,     /* where the weights begin that are read after these, or NULL */
    OI_ARG_FIRST,    /* the part that is wanted: positions first ... last - 1 of the shared axis; */
    OI_ARG_LAST,     /* first is a multiple of `unit`, last too or the end */
    OI_ARG_ROW,      /* the rows that are wanted: from this one, 0 where all are, */
    OI_ARG_ROW_END   /* to the one before this, n where all are */
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

/* Weights in the order in which the body streams them: made from some inputs when the program is
 * synthesized. Equal packings of equal tensors are made once. */
typedef struct oi_packing oi_packing;
struct oi_packing {
    const char *name; /* "tiles of 8 rows"; part of what makes packings equal */
    uint32_t n_in;
    uint32_t in[OI_PACK_INPUTS]; /* inputs of the call, all of them weights */
    int64_t sizes[OI_PACK_SIZES];
    uint64_t size_bytes; /* of the result */
    oi_dtype dtype;      /* as the body sees it; OI_NONE: bytes */
    /* The function that says where an element of an input of two dims lies in the result, counted
     * in such elements: it is handed row, column and sizes. NULL: they do not lie there one by one.
     */
    struct {
        const char *function;
        int64_t sizes[OI_PLACE_SIZES];
    } places[OI_PACK_INPUTS];
    /* Every byte of `out` is written. */
    void (*pack)(const oi_packing *p, const void *const *in, void *out);
};

typedef struct oi_recipe oi_recipe;

/* What the body wants made of an input first, in arrays of as many rows: a kernel of its own, which
 * all calls share that want the same. Its function is handed the input, the arrays, the sizes and
 * which rows are wanted, first and last. */
typedef struct oi_prologue {
    const char *function; /* NULL: nothing */
    const oi_recipe *recipe;
    const char *verb, *doc;
    uint32_t in;
    int64_t rows;
    bool has_dim; /* rows lie along `dim` of the input alone */
    uint32_t dim;
    uint32_t n_arrays;
    struct {
        const char *name;
        oi_dtype dtype;
        int64_t width; /* of a row */
    } arrays[OI_PROLOGUE_ARRAYS];
    uint32_t n_sizes;
    int64_t sizes[OI_PROLOGUE_SIZES];
    bool is_cast; /* rows of the one array are those of x in its type, nothing else */
} oi_prologue;

/* How one call is done. */
typedef struct oi_recipe_plan {
    const char *function;   /* the body */
    const char *verb, *doc; /* what it does, where that is not what the op does; or NULL */
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
    /* Every position of the shared axis is computed alike whoever does it. It is dim `split_dim` of
     * every output, unless parts are scattered: then they lie along no dim, and yet apart. Extent
     * 0: one thread does all. */
    int64_t extent, unit;
    uint32_t split_dim;
    bool is_scattered;
    int64_t streams; /* bytes of packing 0 that belong to a position; 0: they do not lie in order */
    bool is_cast;    /* output 0 is input 0 in another type, rows (extent, width) of it */
    bool repacks_input;     /* every part lays its whole input out for itself: the fewer parts, the
                               better */
    bool reads_partitioned; /* it is dim `read_dim` of every input, too */
    uint32_t read_dim;
    uint64_t macs;    /* set by who plans the program */
    bool is_int8;     /* they are of 8-bit integers */
    uint16_t percent; /* of the machine's multiply-accumulates that the body reaches; 0: 85 */
    bool in_place;    /* an input may be the output: each position is read before it is written */
    uint32_t bounds;  /* the argument, of two, within which results are kept; 0: there is none */
    /* The body hands its sums to a function, by three positions, that does what the kernel's
     * instructions after the reduction do. They are numbers over the result's dims: from 0 on, from
     * dim finish[0] on and from dim finish[1] on. Else finish[1] is 0. */
    uint32_t epilogue[2];
    /* It can be asked for some rows of the result, places along dim row_dim; else that is 0. Row r
     * is made of the rows r * row_step + row_from ... + row_to of input 0, as far as there are
     * such. */
    uint32_t row_dim;
    int64_t row_step, row_from, row_to;
} oi_recipe_plan;

/* A call to be planned. */
typedef struct oi_recipe_call {
    const oi_kernel_query *q; /* operands are contiguous */
    const bool *is_weight;    /* by input: known when the program is made, so it can be packed */
    const oi_device_info *target;
    /* Asked for a few rows at a time, mostly so many, where row r of input 0 lies at r % kept and
     * row r of the result at r % out_kept; 0: for all of them. */
    int64_t rows, kept, out_kept;
    bool may_regroup; /* no step makes much of a last bit: the op's tolerance counts */
} oi_recipe_call;

struct oi_recipe {
    const char *name;
    oi_op_id op;
    bool needs_vectors; /* the body calls names of the folders */
    bool (*plan)(const oi_recipe_call *c, oi_recipe_plan *out); /* false: not this call */
};

/* -- table.c -- */

/* Bodies for certain instructions: a target takes the last folder whose instructions it has, and
 * where a name is missing in it, the one that it extends. */
typedef struct oi_recipe_folder {
    const char *name, *extends; /* NULL: none */
    const char *header;         /* that declares the instructions; NULL: none is needed */
    uint32_t isa;               /* bits 1 << OI_ISA_... that the target must have */
    int64_t lanes;              /* floats in a vector: OI_VF; 0: there are none */
} oi_recipe_folder;

extern const oi_recipe_folder oi_recipe_folders[]; /* ends with a NULL name */

const oi_recipe_folder *oi_recipe_folder_of(const oi_device_info *target); /* NULL: none */
/* How far up the folder is among those that the target takes from, the highest first; 0: not one
 * of them. */
uint32_t oi_recipe_height(const oi_device_info *target, const char *folder);

extern const oi_recipe oi_recipes[]; /* the first that takes a call wins; ends with a NULL name */

/* The recipe that takes the call; NULL: none does. */
const oi_recipe *oi_recipe_find(const oi_recipe_call *c, oi_recipe_plan *out);

/* For rows: the next argument. */
void oi_recipe_arg_add(oi_recipe_plan *p, oi_recipe_arg_kind kind, int64_t n);
void oi_recipe_scratch_add(oi_recipe_plan *p, const char *name, oi_dtype dtype, int64_t count);
void oi_recipe_prologue_add(oi_recipe_plan *p, const char *name, oi_dtype dtype, int64_t width);
void oi_recipe_arg_real(oi_recipe_plan *p, double real);

/* Floats in a vector of the target's folder; 0: it has none. */
int64_t oi_recipe_lanes(const oi_device_info *target);

/* -- the rows: NAME.c plans what the bodies of NAME.h do -- */

bool oi_recipe_qlinear(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_matmul(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_matmul_halves(const oi_recipe_call *c, oi_recipe_plan *out); /* gemm.c, half.h */
bool oi_recipe_gemm(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_bf16x3(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_sdpa(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_conv_bf16x3(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_conv(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_global_avg_pool(const oi_recipe_call *c, oi_recipe_plan *out); /* mean.c */
bool oi_recipe_lstm(const oi_recipe_call *c, oi_recipe_plan *out);            /* cell.c */
bool oi_recipe_gru(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_mac_conv(const oi_recipe_call *c, oi_recipe_plan *out); /* mac.c */
bool oi_recipe_mac_matmul(const oi_recipe_call *c, oi_recipe_plan *out);

bool oi_recipe_bytes_conv(const oi_recipe_call *c, oi_recipe_plan *out); /* bytes.c */
bool oi_recipe_bytes_matmul(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_qconv(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_conv_integer(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_qmatmul(const oi_recipe_call *c, oi_recipe_plan *out);
bool oi_recipe_matmul_integer(const oi_recipe_call *c, oi_recipe_plan *out);

/* conv.c: a convolution over one or two axes, or more where every window is a single place. */
typedef struct oi_conv_call {
    int64_t batches, c, m, places, k;
    oi_window y, x; /* of one axis only: x, and y is nothing */
    int64_t out_height, out_width;
    bool has_bias, is_points; /* windows of one place */
} oi_conv_call;
bool oi_conv_call_set(const oi_kernel_query *q, oi_conv_call *c); /* false: it is none, or empty */
bool oi_conv_is_f32(const oi_kernel_query *q);                    /* and its sums are, too */
int64_t oi_conv_group(const oi_kernel_query *q);
/* Rows of the result that a thread takes at a time, at least so many places; 0: threads share
 * filters. */
int64_t oi_conv_shared_rows(const oi_recipe_call *rc, const oi_conv_call *c, int64_t places);
/* Four arguments: which rows are wanted, and which of m filters. One of both is shared out. */
void oi_conv_add_share(oi_recipe_plan *out, int64_t rows, int64_t m, int64_t shared);

/* bf16x3.c: a float as bf16, as amx/bf16x3.h has them; whether it is nonfinite. */
bool oi_bf16x3_split(float x, int64_t parts, uint16_t to[3]);

/* gemm.c: a product of matrices, a . b (+ a row), and each with its sizes and steps after what
 * transposes it, however it is stored. */
typedef struct oi_matrix {
    int64_t rows, columns, row_step, column_step;
} oi_matrix;

typedef struct oi_product {
    oi_matrix a, b;
    int64_t m, stack, a_step, b_step;
    uint32_t shared; /* of a stack: the axis that is shared out, ... */
    int64_t each;    /* ... and the products at each of its positions */
    bool has_bias;   /* input 2 */
    const oi_device_info *target;
} oi_product;
bool oi_product_set(const oi_recipe_call *c, oi_product *p); /* of matmul or gemm; false: none */

/* gemm.c: input `input`, f32 (k, n) with these steps, in panels of `width` columns. */
void oi_recipe_panels(oi_packing *p, uint32_t input, int64_t n, int64_t k, int64_t step_k,
                      int64_t step_n, int64_t width);
/* Floats of such panels that oi_gemm packs at a time of n columns that are no weights. */
int64_t oi_recipe_room(int64_t n, int64_t width);

#endif
