/* rows.h: what a kernel is handed. Kernels are pure: pointers and sizes in, results out; no
 * globals, no allocation, no I/O. They see contiguous rows in the form they compute in; who calls
 * them walks shapes, strides and storage (map.c, reduce.c, contract.c). */
#ifndef OI_ROWS_H
#define OI_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A kernel's text is compiled once per kind of instructions; OI_ISA says which. */
#define OI_KERNEL_JOIN_(name, isa) oi_k_##name##_##isa
#define OI_KERNEL_JOIN(name, isa)  OI_KERNEL_JOIN_(name, isa)
#define OI_KERNEL(name)            OI_KERNEL_JOIN(name, OI_ISA)

/* The iterations do not depend on each other: out is an input or apart from all of them. */
#if defined(__clang__)
#define OI_ROW_LOOP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define OI_ROW_LOOP _Pragma("GCC ivdep")
#else
#define OI_ROW_LOOP
#endif

/* An attribute in the type the kernel computes in; packed integers are i8 or u8, truth is u8, a
 * word its index (i32), an int i64. */
typedef union oi_kernel_scalar {
    float f32;
    double f64;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
} oi_kernel_scalar;

typedef struct oi_map_row {
    size_t n;
    const void *in[3];
    void *out;
    const oi_kernel_scalar *attrs; /* in the registry's order */
} oi_map_row;
typedef void oi_map_fn(const oi_map_row *r);

typedef struct oi_reduce_row {
    size_t n;
    void *acc;   /* fold: one accumulator; init, each, finish: n of them; lanes, join: the op's N */
    int64_t *at; /* likewise the positions, for ops that find one */
    const void *x;
    int64_t first; /* position of x[0] (fold), of all x (each); finish: elements per accumulator */
    const oi_kernel_scalar *attrs;
} oi_reduce_row;
typedef void oi_reduce_fn(const oi_reduce_row *r);

typedef struct oi_reduce_fns {
    oi_reduce_fn *init;   /* acc[j] before the first element; a position starts at x[j] */
    oi_reduce_fn *fold;   /* acc[0] with x[0], x[1] ... */
    oi_reduce_fn *each;   /* acc[j] with x[j] */
    oi_reduce_fn *finish; /* NULL: the accumulator is the result */
    /* Of an op whose order is lanes, floats only: */
    oi_reduce_fn *lanes; /* acc[i % N] with x[i]; n is a multiple of N but in the last call */
    oi_reduce_fn *join;  /* acc[0] = all N, pairwise */
} oi_reduce_fns;

/* A tile of a product: c[i][j] combined with a[k][i] * b[k][j] for ascending k. */
typedef struct oi_tile_row {
    size_t k;
    const void *a; /* (k, rows), packed */
    const void *b; /* (k, cols), packed */
    void *c;       /* (rows, cols), row i at i * ldc */
    size_t ldc;
    int is_first; /* c holds nothing yet */
} oi_tile_row;
typedef void oi_tile_fn(const oi_tile_row *r);

typedef struct oi_tile_fns {
    oi_tile_fn *tile;
    uint32_t rows, cols;
} oi_tile_fns;

/* A row of accumulators of any contract: one step for each. */
typedef struct oi_contract_row {
    size_t n;
    void *acc;
    const void *x, *y; /* factors; the last step: x is the third input */
    const oi_kernel_scalar *attrs;
} oi_contract_row;
typedef void oi_contract_fn(const oi_contract_row *r);

typedef struct oi_contract_fns {
    oi_contract_fn *init;
    oi_contract_fn *each;  /* acc[j] with x[j] and y[j] */
    oi_contract_fn *by;    /* acc[j] with x[j] and y[0] */
    oi_contract_fn *plain; /* the last step without a third input; NULL: there is none */
    oi_contract_fn *third; /* the last step with one */
} oi_contract_fns;

/* Rows in f32, f64, i32 or i64: sum += *factor * x; with four rows, sums[k] += x . rows[k] and sum
 * += factors[k] * rows[k]. The reference has none. */
typedef struct oi_dot_fns {
    void (*add_scaled)(size_t n, const void *factor, const void *x, void *sum);
    void (*dot_four)(size_t n, const void *x, const void *const *rows, void *sums);
    void (*add_four)(size_t n, const void *factors, const void *const *rows, void *sum);
} oi_dot_fns;

/* Rows of weights in blocks along k, as many as fns.rows (isa/qlinear.c): an integer of block b
 * stands for scale[b] * q + offset[b]. */
typedef struct oi_qtile {
    size_t n_blocks, group; /* elements per block: a multiple of 8 */
    uint8_t bits;           /* of an element: 4 or 8 */
    bool has_offset;
    int16_t zero;                /* 0; -8: they are i4; 128: they are u8 */
    const uint8_t *const *w;     /* by row */
    size_t next;                 /* bytes to the rows that come after these; 0: anywhere */
    const float *scale, *offset; /* (rows, n_blocks) */
    uint8_t *room;               /* (8 + bytes of a block's row) * rows for every block */
} oi_qtile;

/* Rows of x: as they are, rounded to bf16, or in 8 bits as q * d. */
typedef struct oi_qtile_x {
    size_t n;
    const float *x;        /* (n, k) */
    const int8_t *q;       /* (n, k); NULL: x as it is */
    const float *d, *sums; /* (n, n_blocks): factors, and sums of q */
    bool is_half;          /* x is rounded, and so are the weights to be */
} oi_qtile_x;

typedef struct oi_qtile_fns {
    uint32_t rows; /* 0: there are no such functions */
    void (*quantise)(const oi_qtile *t, const float *x, int8_t *q, float *d, float *sums);
    void (*halves)(size_t n, const void *from, float *out);                   /* f16 to f32 */
    void (*unpack)(size_t n, const uint8_t *w, uint8_t sign, uint8_t *bytes); /* nibbles */
    void (*pack)(const oi_qtile *t); /* w, scale and offset into room */
    void (*sums)(const oi_qtile *t, const oi_qtile_x *x, float *out); /* out (n, rows) */
    /* the same without pack; false: not these */
    bool (*few)(const oi_qtile *t, const oi_qtile_x *x, float *out);
} oi_qtile_fns;

/* Rows of storage to and from the form kernels compute in: element at + i * step of the tensor. */
typedef void oi_load_fn(void *form, const void *data, int64_t at, int64_t step, size_t n);
typedef void oi_store_fn(void *data, int64_t at, int64_t step, const void *form, size_t n);

#endif
