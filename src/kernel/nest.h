/* nest.h: an op as loops: the one description from which the simulator's general driver runs it and
 * the synthesizer prints it for every target.
 *
 *     for every output axis:                      conv1d:  n, m, o
 *         acc = init                                       acc = 0
 *         for every reduced axis:                          c, k
 *             acc = combine(acc, expr(reads))              x[n, c, 2*o + k - 1] * w[m, c, k]
 *         write = finish(acc)                              y[n, m, o]
 *
 * Without reduced axes the result is expr(reads). The expressions are the op's row in ops/ops.json;
 * a nest only says where elements lie: every coordinate is an affine sum over the axes, plus, where
 * data decides (gather, scatter), an element of another operand. An op is one nest or a few that
 * follow each other (concat: one per input). Pure data: nothing is allocated, and nothing here
 * knows a target. */
#ifndef OI_NEST_H
#define OI_NEST_H

#include "kernel/kernel.h"

#define OI_NEST_AXES  32 /* rank 16 tiled; or output axes and the reduced ones of a window */
#define OI_NEST_READS 6  /* qlinear: x, w, scale, offset, bias, and one to spare */
#define OI_NEST_NONE  UINT32_MAX

typedef struct oi_nest_axis {
    int64_t extent;
    bool is_reduced; /* reduced axes come after all others; their order is the order of sums */
} oi_nest_axis;

/* How a coordinate outside its dim comes back into it: pad, roll. */
typedef enum oi_nest_bend {
    OI_BEND_NONE,
    OI_BEND_EDGE,    /* the nearest */
    OI_BEND_REFLECT, /* mirrored at the first and last, which are not repeated */
    OI_BEND_WRAP     /* modulo the length */
} oi_nest_bend;

/* Along one dim of an operand: base + sum of step[a] * axis a. */
typedef struct oi_nest_coord {
    int64_t base;
    int64_t step[OI_NEST_AXES];
    uint32_t index; /* plus the element that this read finds (an integer; negative counts from the
                       end; out of range is E047 unless it may leave), or OI_NEST_NONE */
    int64_t index_last; /* added to the last coordinate of that read: which of a tuple */
    oi_nest_bend bend;
    int64_t bend_from, bend_to; /* with a bend: the part of the dim that it comes back to */
    bool may_leave;             /* can lie outside the operand: padding. See oi_nest.leave */
    /* with OI_LEAVE_SKIP: so many places beyond either end still count in n */
    int64_t counted_before, counted_after;
} oi_nest_coord;

typedef struct oi_nest_ref {
    bool is_output;
    uint32_t operand; /* which input or output of the op */
    uint32_t name;    /* which input of the row the expression calls it by: its place there, or
                         OI_NEST_NONE for a read that only serves as an index */
    bool is_flat;     /* one coordinate: the row-major number of the element */
    bool is_position; /* no operand: the value is the one coordinate, an i64 that the expression
                         calls `i` */
    uint32_t rank;
    oi_nest_coord at[OI_KERNEL_RANK];
} oi_nest_ref;

/* What an iteration does whose reads leave their operand. */
typedef enum oi_nest_leave {
    OI_LEAVE_NEVER, /* no coordinate may */
    OI_LEAVE_SKIP,  /* it is not combined, nor counted in n */
    OI_LEAVE_FILL   /* the element is `fill` */
} oi_nest_leave;

typedef enum oi_nest_kind {
    OI_NEST_MAP,     /* write = expr; a move's expr is its one read */
    OI_NEST_REDUCE,  /* combine(acc, x), or a position by `better` */
    OI_NEST_CONTRACT /* combine(acc, expr) */
} oi_nest_kind;

typedef struct oi_nest {
    const oi_op *op;
    oi_nest_kind kind;
    uint32_t n_axes, n_reads;
    oi_nest_axis axes[OI_NEST_AXES];
    oi_nest_ref reads[OI_NEST_READS];
    bool has_last; /* contract: the last read is not a factor, `finish` takes it as the row's third
                      input; it lies over output axes only */
    bool finds_element; /* reduce by `better`: gives the row-major number of the element found */
    oi_nest_ref write;  /* over output axes only; with an index: scatter */
    oi_dtype acc;       /* what it accumulates in; of a map: what it computes in */
    oi_nest_leave leave;
    oi_op_value fill; /* a number in the dtype of what it stands for */
    bool has_guard;
    oi_nest_coord guard; /* with has_guard: below 0 the reads count as outside (trilu) */
    bool is_copy;        /* no arithmetic: bits move, whatever the dtype; without reads: `fill` */
    bool is_serial;      /* several iterations may write one element: axes run in order */
    bool is_scan;  /* one reduced axis, and the write runs over it too: every prefix is written */
    bool excludes; /* a scan writes before it combines */
    bool combines_out; /* scatter with a reduction: write = combine(write, x) */
    uint32_t lanes;    /* reduce: partial sums along the last axis, added pairwise; 0: in order */
} oi_nest;

/* Of a copy, read 0 is what moves. */

/* A coordinate that comes back into from ... to - 1. */
int64_t oi_nest_bent(oi_nest_bend bend, int64_t from, int64_t to, int64_t v);

/* How many nests the call is; 0 for ops that are none (composite, custom). */
size_t oi_nest_count(const oi_kernel_query *q);
/* Nest i of the call, whose types were checked. */
void oi_nest_make(const oi_kernel_query *q, size_t i, oi_nest *out);

/* One per word of vocabulary.loops; `i` as above, `out` comes cleared but for op and acc. */
typedef void oi_nest_lower(const oi_kernel_query *q, size_t i, oi_nest *out);
oi_nest_lower oi_nest_elementwise, oi_nest_reduce, oi_nest_matmul,
    oi_nest_gather; /* nest_basic.c */
oi_nest_lower oi_nest_reshape, oi_nest_transpose, oi_nest_expand, oi_nest_tile, oi_nest_concat,
    oi_nest_split, oi_nest_slice, oi_nest_pad; /* nest_move.c */
oi_nest_lower oi_nest_reverse, oi_nest_roll, oi_nest_depth_to_space, oi_nest_space_to_depth,
    oi_nest_trilu, oi_nest_gather_elements, oi_nest_gather_nd, oi_nest_scatter, oi_nest_scatter_nd,
    oi_nest_one_hot, oi_nest_scan, oi_nest_count_up, oi_nest_shape_of,
    oi_nest_size_of; /* nest_index.c */
size_t oi_nest_two(const oi_kernel_query *q);
size_t oi_nest_per_axis(const oi_kernel_query *q);
size_t oi_nest_per_input(const oi_kernel_query *q);
size_t oi_nest_per_output(const oi_kernel_query *q);

oi_nest_lower oi_nest_einsum; /* nest_einsum.c */
/* nest_window.c */
oi_nest_lower oi_nest_conv, oi_nest_conv_transpose, oi_nest_pool, oi_nest_im2col;
size_t oi_nest_phases(const oi_kernel_query *q), oi_nest_pool_count(const oi_kernel_query *q);

/* -- for those files -- */

/* nest_basic.c: the partial sums that a reduction's declared order asks for; 0: none. */
uint32_t oi_nest_lanes(const oi_kernel_query *q);
/* The integers of an attribute: a list, or one; 0 of them when absent. */
size_t oi_kernel_ints(const oi_kernel_query *q, const char *name, const int64_t **out);
/* The attribute `axis`, from the end when negative. */
uint32_t oi_kernel_axis(const oi_kernel_query *q, uint32_t rank);

/* An axis; returns its number. */
uint32_t oi_nest_add_axis(oi_nest *n, int64_t extent, bool is_reduced);
/* A read (or the write) of an operand with all coordinates 0; its `at` is then filled in. */
oi_nest_ref *oi_nest_add_read(oi_nest *n, const oi_kernel_query *q, uint32_t operand);
oi_nest_ref *oi_nest_set_write(oi_nest *n, const oi_kernel_query *q, uint32_t operand);
/* One axis per dim of the output, written in place. */
void oi_nest_over_output(oi_nest *n, const oi_kernel_query *q, uint32_t operand);
/* The dims of o along these axes, aligned at the last; a dim of length 1 repeats. */
void oi_nest_broadcast(oi_nest_ref *r, const oi_operand *o, const uint32_t *axes, uint32_t n_axes);

#endif
