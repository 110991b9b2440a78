/* kernel.h: what ops compute. One function chooses the kernel for a call and says how much scratch
 * it wants; another runs it. Nothing here allocates, prints or keeps state. Grouped by the file
 * that implements it. */
#ifndef OI_KERNEL_H
#define OI_KERNEL_H

#include "base/base.h"
#include "base/ops.h"
#include "kernel/rows.h"

#define OI_KERNEL_RANK  16 /* as OI_MAX_RANK of program.h */
#define OI_KERNEL_ATTRS 8
#define OI_KERNEL_PORTS 64 /* inputs or outputs of a call: the longest concat and split */

/* -- cpu.c -- */

/* Kinds of instructions, each including those before it. */
typedef enum oi_cpu { OI_CPU_SCALAR, OI_CPU_AVX, OI_CPU_AVX2, OI_CPU_AVX512, OI_CPU_COUNT } oi_cpu;

oi_cpu oi_cpu_best(void);          /* what processor and system support */
const char *oi_cpu_name(oi_cpu c); /* "avx2" */
/* "cpu", "cpu:avx2" ...; false when there is no such kind, or this machine lacks it. */
bool oi_cpu_find(const char *device, oi_cpu *out);

/* -- choose.c -- */

/* A tensor as a kernel sees it. Strides count elements; packed types are addressed by element. */
typedef struct oi_operand {
    oi_dtype dtype;
    uint32_t rank;
    int64_t dims[OI_KERNEL_RANK];
    int64_t strides[OI_KERNEL_RANK];
} oi_operand;

int64_t oi_operand_count(const oi_operand *o); /* of its elements */
bool oi_operand_is_dense(const oi_operand *o); /* they lie row-major, without gaps */

/* A call whose types were checked (oi_infer). */
typedef struct oi_kernel_query {
    const oi_op *op;
    const oi_operand *in;
    size_t n_in;
    const oi_operand *out;
    size_t n_out;
    /* One per attribute of the op, defaults filled in; OI_VALUE_NONE when absent. A length that
     * was a rank-1 variable is a list of integers. */
    const oi_op_value *attrs;
    /* One per attribute: the type of a value that only the run knows, OI_NONE where it is known.
     * NULL: all are known. The run then hands in a query with the values filled in. */
    const oi_operand *run_attrs;
    uint64_t overlaps; /* bit i: input i and an output begin at the same element */
    uint64_t tangles;  /* bit i: they share memory in any other way */
} oi_kernel_query;

/* Runs task(ctx, 0) ... task(ctx, n_tasks - 1), in any order, on any threads, and waits. */
typedef void oi_parallel_for(void *pool, size_t n_tasks, void (*task)(void *ctx, size_t i),
                             void *ctx);

#define OI_KERNEL_ALIGN 64u /* of scratch: the widest vector */

typedef struct oi_kernel_io {
    const void *const *in;
    const int64_t *in_at; /* element offsets; NULL: all 0 */
    void *const *out;
    const int64_t *out_at;
    void *scratch;             /* scratch_bytes of the choice, aligned to OI_KERNEL_ALIGN */
    oi_parallel_for *parallel; /* NULL: the calling thread alone */
    void *pool;
    size_t n_threads; /* that it has */
} oi_kernel_io;

typedef struct oi_kernel_fault {
    const char *code;     /* "E047" */
    uint32_t input;       /* which input holds the bad value ... */
    uint64_t element;     /* ... where */
    int64_t value, limit; /* what was found, and what it must stay below */
    char message[120];    /* instead of all that, where it does not fit */
} oi_kernel_fault;

typedef struct oi_choice oi_choice;
typedef bool oi_kernel_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                           oi_kernel_fault *fault);

/* How a tensor's elements reach the form a kernel computes in. */
typedef struct oi_load {
    oi_load_fn *load;
    oi_map_fn *cast;   /* then into the accumulator's form, or NULL */
    uint8_t size;      /* bytes of one element in the kernel's form */
    uint8_t form_size; /* before the cast */
    bool is_direct;    /* contiguous storage can be read in place */
} oi_load;

/* How a kernel's results reach the tensor. */
typedef struct oi_store {
    oi_store_fn *store;
    oi_map_fn *cut;     /* first: down to the accumulator from what it was summed in, or NULL */
    oi_map_fn *cast;    /* from the accumulator, or NULL */
    oi_load_fn *reload; /* with `round`: an accumulator narrower than its form is rounded ... */
    oi_store_fn *round; /* ... before the cast */
    uint8_t size;       /* bytes of one element in the kernel's form */
    bool is_direct;
} oi_store;

struct oi_choice {
    oi_kernel_run *run;
    size_t scratch_bytes;
    char name[56]; /* "max_f32_ignore.avx2" */
    /* below: for the drivers only */
    oi_cpu cpu;
    oi_map_fn *map;
    const oi_reduce_fns *reduce;
    const oi_reduce_fns *place; /* of a reduction that also tells where */
    const oi_tile_fns *tile;
    const oi_contract_fns *contract;
    oi_kernel_scalar one; /* in the kernel's form */
    const oi_dot_fns *dots;
    oi_dtype form;   /* what the kernel computes in */
    oi_load load[6]; /* einsum */
    oi_store store;
    oi_kernel_scalar attrs[OI_KERNEL_ATTRS];
    const void *tuned; /* of recipe/run.c */
    bool copies_out;   /* outputs that overlap an input are made in scratch first */
    size_t copy_at;    /* where in scratch: one after the other, each at a multiple of 64 */
};

/* False when no kernel does this (E060); everything oi_infer accepts has one. */
bool oi_kernel_choose(const oi_kernel_query *q, oi_cpu cpu, oi_choice *out);
/* The last step of choosing: what is to be copied, and the name. False: too large. */
bool oi_choice_finish(const oi_kernel_query *q, const char *name, oi_choice *c);
/* False with *fault when the data is at fault; outputs are then undefined. */
bool oi_kernel_call(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                    oi_kernel_fault *fault);

/* The value of an attribute of the call; NULL when the op has none of that name. */
const oi_op_value *oi_kernel_attr(const oi_kernel_query *q, const char *name);
double oi_kernel_real(const oi_kernel_query *q,
                      const char *name); /* of an attribute that has one */
/* What attributes of kind number are taken in. */
oi_dtype oi_kernel_numbers_in(const oi_kernel_query *q);
/* acc=[a] or [a, o]; OI_NONE when it was not given. */
oi_dtype oi_kernel_accumulator(const oi_kernel_query *q);
/* The dtype that the inputs share, which maps compute in; without inputs that of the output. */
oi_dtype oi_kernel_shared(const oi_kernel_query *q);
/* What a reduction accumulates in: acc, what the row says for the dtype, or the dtype itself. */
oi_dtype oi_kernel_reduces_in(const oi_kernel_query *q);
/* Sums of products: integers in 32 or 64 bits, which wrap alike and are cut in the end. */
oi_dtype oi_kernel_sums_in(oi_dtype acc);
/* A number as an element of t; the second one keeps it within t's limits. */
uint64_t oi_kernel_bits(oi_dtype t, const oi_op_value *v);
uint64_t oi_kernel_number(oi_dtype t, const oi_op_value *v);

/* For ops with a kernel file of their own. Elements of t, for a kernel that computes in `form`; its
 * results in the form of `acc`, for a tensor of o. */
bool oi_choose_load(oi_load *l, oi_dtype t, oi_dtype form, oi_cpu cpu);
bool oi_choose_store(oi_store *s, oi_dtype acc, oi_dtype o, oi_cpu cpu);

/* -- cut.c: calls in parts -- */

#define OI_CUT_NONE UINT32_MAX

typedef struct oi_cut {
    uint32_t axis;                  /* of the output, which is cut along it */
    int64_t extent;                 /* there */
    uint32_t dims[OI_KERNEL_PORTS]; /* per input: the dim that is cut too, or OI_CUT_NONE */
} oi_cut;

/* Whether places a … b of the output along the axis are what the same op gives for places a … b of
 * the inputs along their dims. */
bool oi_kernel_cut(const oi_kernel_query *q, uint32_t axis, oi_cut *out);

/* -- table.c: the generated kernels -- */

typedef struct oi_kernel_key {
    oi_op_id op;
    oi_dtype in[3], out;
    const uint8_t *values; /* per attribute: the truth or the index of the word */
    uint32_t given;        /* bit i: attribute i has a value */
} oi_kernel_key;

oi_map_fn *oi_table_map(const oi_kernel_key *k, oi_cpu cpu, const char **name);
const oi_reduce_fns *oi_table_reduce(const oi_kernel_key *k, oi_cpu cpu, const char **name);
const oi_tile_fns *oi_table_tile(const oi_kernel_key *k, oi_cpu cpu, const char **name);
const oi_contract_fns *oi_table_contract(const oi_kernel_key *k, oi_cpu cpu, const char **name);
/* The conversion between forms that the op `cast` means: exact, or wrapping, or nearest even. */
oi_map_fn *oi_table_cast(oi_dtype from, oi_dtype to, oi_cpu cpu);

/* -- isa/form.c: storage to form and back -- */

typedef struct oi_form_fns {
    oi_load_fn *load[OI_DTYPE_COUNT];
    oi_store_fn *store[OI_DTYPE_COUNT];
} oi_form_fns;

extern const oi_form_fns *const oi_forms[OI_CPU_COUNT];
extern const oi_dot_fns *const oi_dots[OI_CPU_COUNT]; /* [0] f32, [1] f64, [2] i32, [3] i64 */
extern const oi_qtile_fns *const oi_qtiles[OI_CPU_COUNT];
oi_dtype oi_form_of(oi_dtype t);     /* f16 -> f32; others are computed as themselves */
size_t oi_form_size(oi_dtype t);     /* bytes of one element in its form */
oi_dtype oi_form_source(oi_dtype t); /* what a conversion reads it as: i4 -> i8 */

/* -- walk.c: several tensors side by side -- */

#define OI_WALK_OPERANDS 4

typedef struct oi_walk {
    uint32_t rank; /* at least 1 */
    uint32_t n_operands;
    int64_t dims[OI_KERNEL_RANK];
    int64_t steps[OI_WALK_OPERANDS][OI_KERNEL_RANK];
} oi_walk;

/* The dims of `shape`, each operand aligned at the last axis with axes of length 1 repeated; then
 * axes of length 1 go and neighbours join where every operand allows it. */
void oi_walk_init(oi_walk *w, const oi_operand *shape, const oi_operand *const *operands, size_t n);
void oi_walk_join(oi_walk *w);
/* Moves to the position `index` of the first `rank` axes: at[k] += its offset in operand k. */
void oi_walk_seek(const oi_walk *w, uint32_t rank, int64_t index, int64_t *at);
int64_t oi_walk_count(const oi_walk *w, uint32_t rank); /* product of the first `rank` dims */

/* -- map.c, reduce.c, contract.c: the drivers -- */

#define OI_CHUNK                                                                     \
    512 /* elements converted at a time: four buffers of f64 stay in the first cache \
         */

bool oi_map_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                oi_kernel_fault *fault);
bool oi_map_fold_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                     oi_kernel_fault *fault);
bool oi_reduce_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                   oi_kernel_fault *fault);
bool oi_matmul_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                   oi_kernel_fault *fault);
size_t oi_matmul_scratch(const oi_kernel_query *q, const oi_choice *c);
/* A product's matrices: sizes and strides, and the walk over stacks of them (x, y, result). */
typedef struct oi_matrices {
    int64_t m, n, k;
    int64_t x_m, x_k, y_k, y_n, out_m, out_n;
    oi_walk stack;
} oi_matrices;
void oi_matmul_matrices(const oi_kernel_query *q, const oi_choice *c, oi_matrices *out);
/* gemv.c: takes over a product of a few rows. False: it stays as it was chosen. */
bool oi_gemv_choose(const oi_kernel_query *q, oi_choice *c);
/* nest_run.c: any op that is loops (nest.h) */
bool oi_nest_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                 oi_kernel_fault *fault);

/* nest_place.c: an index element; an unsigned one beyond any length does not turn negative */
int64_t oi_kernel_index(oi_dtype t, const void *data, uint64_t e);

/* -- measure.c: ops whose result is as long as the data says -- */

/* Whether the op is such; the scratch that measuring takes. */
bool oi_kernel_is_measured(const oi_op *op, size_t *scratch_bytes, const oi_kernel_query *q);
/* The length that the shape rule left open; only inputs and scratch of io are used. */
bool oi_kernel_measure(const oi_kernel_query *q, const oi_kernel_io *io, int64_t *length);
/* The greatest lengths that the outputs of such an op can have; false: it is none. */
bool oi_kernel_limits(const oi_op *op, const oi_operand *x, int64_t *dims);
/* For their kernels: the output holds what was found, or the fault says that not. */
bool oi_kernel_measured(int64_t found, int64_t declared, oi_kernel_fault *fault);

/* nest_sum.c: reductions and contracts of any loops, from nests */
bool oi_nest_sum_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                     oi_kernel_fault *fault);

/* A row of storage in the kernel's form: `buffer` holds OI_CHUNK elements twice over, unless the
 * storage itself will do. */
const void *oi_load_row(const oi_load *l, const void *data, int64_t at, int64_t step, size_t n,
                        void *buffer);
/* n results in the kernel's form into storage. Not for rows that were written directly. */
void oi_store_row(const oi_store *s, void *data, int64_t at, int64_t step, const void *results,
                  size_t n);
void oi_parallel(const oi_kernel_io *io, size_t n_tasks, void (*task)(void *ctx, size_t i),
                 void *ctx);

/* -- copy.c: bits, whatever the dtype -- */

oi_dtype oi_copy_dtype(oi_dtype t); /* unsigned, as wide */
void oi_copy_row(oi_dtype raw, void *to, int64_t to_at, int64_t to_step, const void *from,
                 int64_t from_at, int64_t from_step, size_t n);
/* Operand 0 of the walk is written, operand 1 read. */
void oi_copy_walk(const oi_walk *w, oi_dtype t, void *to, int64_t to_at, const void *from,
                  int64_t from_at, const oi_kernel_io *io);
/* dst[...] = src[...], same dtype and dims. */
void oi_copy(const oi_operand *dst, void *to, int64_t to_at, const oi_operand *src,
             const void *from, int64_t from_at, const oi_kernel_io *io);

#endif
