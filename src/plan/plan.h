/* plan.h: the plan of an emitted program: what it does, in which order, in which memory.
 *
 * A plan is one emitted program: one or more graphs (for example prefill and decode) that share
 * state and weights. It has tensors with their places in memory, kernels (loop nests over scalar
 * instructions, or tuned bodies), and for each graph a tree of statements: dispatches of kernels,
 * accesses to state, loops, branches and barriers. The passes (src/synth) make it; the checker
 * (check.h) and the emitters (src/emit) read it and need nothing else. Nothing here knows a target
 * language; target.h says what a target can do. Grouped by the file that implements it. */
#ifndef OI_PLAN_PLAN_H
#define OI_PLAN_PLAN_H

#include "kernel/nest.h"
#include "program/bind.h"
#include "recipe/recipe.h"
#include "plan/target.h"

/* -- tensors -- */

/* The memory that holds a tensor. */
typedef enum oi_space {
    OI_SPACE_NONE,    /* none: fused away, or unused */
    OI_SPACE_WEIGHTS, /* read-only, from the model */
    OI_SPACE_INPUT,   /* the host writes it between steps */
    OI_SPACE_OUTPUT,  /* the host reads it after a step */
    OI_SPACE_STATE,   /* kept from step to step */
    OI_SPACE_ARENA,   /* working memory of one step, shared by tensors whose lifetimes do not
                         overlap */
    OI_SPACE_LOCAL,   /* one row inside a kernel, on the stack */
    OI_SPACE_VIEW     /* a view: part of the state tensor `from`, located by a statement */
} oi_space;

/* What an element holds before the step writes it. */
typedef enum oi_start {
    OI_START_NONE,  /* undefined: nothing reads it before the step writes it */
    OI_START_FILL,  /* `init` */
    OI_START_MODEL, /* a copy of the tensor `from` */
} oi_start;

typedef struct oi_tensor {
    const char *name;  /* an identifier, unique in the unit */
    const char *label; /* its name inside one kernel if it is no variable of the graph, or NULL */
    oi_dtype dtype;
    uint32_t rank;
    int64_t dims[OI_MAX_RANK]; /* of one entry; a `?` dim has its maximum length */
    uint32_t run_dims;         /* bit per `?` dim: the writer sets its length at run time; elements
                                  are dense, as if the tensor had been declared with that length */
    uint64_t size_bytes;       /* of one entry */
    oi_space space;
    uint64_t offset;       /* in that space */
    uint32_t ring;         /* dim + 1 of a line buffer: it holds dims[dim] rows, row i at i %
                              dims[dim]; 0: holds all rows */
    int64_t rows;          /* of a line buffer: how many rows there are in all */
    int64_t alive[2];      /* ARENA: first and last statement of its lifetime, in execution order */
    const oi_pvar *var;    /* NULL for temporaries of lowering */
    const oi_pvar *origin; /* the variable whose value this is, if the tensor has its own name */
    uint32_t graph;        /* that owns the variable; state and weights: the first graph that uses
                              it */
    uint32_t store;        /* STATE: index + 1 into the unit's persistent variables */
    uint32_t marks_of;     /* STATE: id + 1 of the variable; this says which of its entries exist */
    /* tables: entries are consecutive, row-major over these axes */
    uint32_t n_table;
    int64_t table[OI_MAX_RANK];
    uint64_t n_entries, stride_bytes;
    uint64_t align; /* the unit's */
    /* weights */
    const size_t *sources; /* per entry: index of the model's tensor, or OI_NO_SOURCE for a hole */
    const void *bytes;     /* alternative: the contents themselves */
    oi_model *model;
    bool is_row_major;         /* @layout: read as the package holds it, never packed */
    const oi_packing *packing; /* alternative: packed from other weights; `packed` lists their
                                  tensors */
    const uint32_t *packed;
    const oi_packing
        *view; /* alternative: input `view_input` of the packing that made tensor `view_of`, */
    uint32_t view_of, view_input; /* read from the packed data */
    /* its contents when a step begins */
    oi_start start;
    uint64_t init; /* bits of one element */
    uint32_t from;
    bool is_written;    /* by some statement */
    bool is_private;    /* ARENA: every thread has a private copy on its stack */
    bool keeps_lengths; /* NONE: has no elements, but its lengths are still read */
    bool by_value;      /* kernels that run on the device receive its elements with each call */
} oi_tensor;

#define OI_NO_SOURCE SIZE_MAX

/* A persistent variable of the unit. Cells beyond its current sizes hold the initial value. */
typedef struct oi_store_var {
    uint32_t tensor; /* storage: a grid of the maximum sizes, table axes first */
    uint32_t rank;   /* of the grid */
    uint32_t n_table;
    int64_t most[2 * OI_MAX_RANK];
    int64_t first[2 * OI_MAX_RANK]; /* initial sizes */
    uint32_t grows;                 /* bit per axis: the program counts its size at run time */
    bool has_marks; /* growable table: `marks` records which entries were written, 1 or 0 */
    uint32_t marks; /* a tensor over the table axes */
} oi_store_var;

/* -- numbers that hang on lengths which only the run knows -- */

#define OI_FORMULA_TERMS 4

/* (base + sum of factor * product of lengths) / by, rounded down, clamped to least ... most. A
 * length is a scalar of the kernel. */
typedef struct oi_formula {
    int64_t base, by;
    uint32_t n_terms;
    struct {
        int64_t factor;
        uint32_t n, of[OI_FORMULA_TERMS];
    } terms[OI_FORMULA_TERMS];
    bool has_least, has_most;
    int64_t least, most;
    uint32_t unless_one; /* the result is 0 if this length is 1; OI_NO_ID: unused */
    uint32_t n_pick, pick[OI_NEST_READS]; /* if n_pick > 0, the result is the first of these that is
                                             not 1, instead */
} oi_formula;

/* The formula of the kernel that replaces a constant; 0: the constant holds. */
typedef uint32_t oi_fn;

typedef struct oi_coord_fns {
    oi_fn base, bend_from, bend_to, counted_before, counted_after, step[OI_NEST_AXES];
} oi_coord_fns;

/* A length that the program sets before a kernel runs. */
typedef struct oi_set_length {
    uint32_t tensor, dim;
    int64_t value;
    oi_fn fn;
} oi_set_length;

/* A condition on lengths. If it does not hold, the step fails with E051. */
typedef struct oi_length_check {
    uint32_t tensor, dim;
    uint32_t other, other_dim;  /* must equal this one; OI_NO_ID: no such condition */
    bool is_value;              /* must equal `value` */
    bool may_be_one, other_may; /* a length of 1 is valid too */
    int64_t value, least, most; /* most < 0: none */
    int64_t multiple,
        remainder; /* must be a multiple of this plus remainder; 0: no such condition */
} oi_length_check;

/* -- scalar instructions -- */

/* A call of an op whose expressions are evaluated. Attributes are constants, or scalars that the
 * kernel reads when it starts. */
typedef struct oi_scall {
    const oi_op *op;
    const oi_op_value *attrs; /* one per attribute of the op */
    const uint32_t *scalars;  /* per attribute: the kernel's scalar that holds it, or OI_NO_ID */
    oi_dtype in0;             /* dtype of the first input; numeric attributes have this dtype */
    const oi_pnode *node;     /* the node that it implements */
} oi_scall;

typedef enum oi_sop_kind {
    OI_SOP_LOAD,    /* an element of a port, converted to its compute type */
    OI_SOP_INDEX,   /* the same, as an index into `dim` of another port */
    OI_SOP_PLACE,   /* the coordinate at[0] */
    OI_SOP_CONST,   /* `fill` */
    OI_SOP_EVAL,    /* evaluates expression `part` of a call */
    OI_SOP_CONVERT, /* converts as the op `cast` does */
    OI_SOP_ACC,     /* the accumulator of the reduction */
    OI_SOP_COUNT,   /* the number of elements reduced */
    OI_SOP_STORE    /* into a port */
} oi_sop_kind;

#define OI_SOP_ARGS OI_NEST_READS

typedef struct oi_sop {
    oi_sop_kind kind;
    oi_dtype type; /* of the result, as stored in a tensor; LOAD, STORE: the port's dtype */
    uint32_t port;
    const oi_nest_coord *at; /* LOAD, STORE: one per dim of the port */
    const oi_coord_fns *fns; /* formulas that replace constants of `at`, or NULL */
    bool is_raw;             /* LOAD, STORE: bits, without conversion */
    oi_dtype from;           /* CONVERT */
    bool fits;               /* CONVERT: the truncated value is known to fit the type */
    bool is_flat;   /* LOAD, STORE: only at[0] is used, the row-major index of the element */
    bool may_leave; /* LOAD: out-of-bounds coordinates give `fill`; INDEX: they give -1 */
    int64_t length; /* INDEX: length of the dim that it indexes */
    oi_fn length_fn;
    const oi_nest_coord *guard; /* LOAD: a value below 0 counts as out of bounds; may be NULL */
    const oi_coord_fns *guard_fns;
    uint64_t fill; /* bits */
    const oi_scall *call;
    oi_op_part part;
    uint32_t
        args[OI_SOP_ARGS]; /* earlier instructions; EVAL: by input of the op's row, or OI_NO_ID */
    uint32_t n_args;
    uint32_t place; /* EVAL: the instruction that the expression calls `i`, or OI_NO_ID */
} oi_sop;
typedef OI_VEC(oi_sop) oi_sops;

/* -- nests and kernels -- */

#define OI_MAX_PREDICATES 4

/* What runs the places of an axis. Levels nest in this order, the last one outermost. Schedule.c
 * and partition.c choose them from what the target has (oi_caps); a language prints an axis by its
 * levels. */
typedef enum oi_axis_level {
    OI_AXIS_UNROLLED, /* the text of an iteration is repeated; around another loop, iterations are
                         interleaved (unroll-and-jam) */
    OI_AXIS_VECTOR,   /* elements of a vector: accumulators of an output axis (a register tile),
                         partial sums of a reduced one */
    OI_AXIS_LANE,     /* neighbouring invocations of a workgroup, which compute one result, or one
                         row, together; lane l takes places l, l + factor ... */
    OI_AXIS_GROUP,    /* invocations of a workgroup. Of output axes, which are counted like workers,
                         neighbours have neighbouring results; of a reduced one, those further apart
                         compute one result together */
    OI_AXIS_WORKER,   /* workers take whole units of `factor` places. Several neighbouring axes with
                         this level are counted through together; the unit is that of the last */
    OI_AXIS_STREAM,   /* places arrive a few at a time, in order: rows of a row pipeline */
    OI_AXIS_LEVELS
} oi_axis_level;

#define OI_MAX_JAM 8 /* rows of a map */

/* An axis of a kernel. A level with factor f runs f neighbouring places together; 0: the axis has
 * no such level. A serial loop runs over what the levels leave. On a reduced axis, one of the f
 * takes every f-th place and has a sum of its own; the f sums are added pairwise at the end. With
 * lanes, a vector is so many neighbouring places that a lane takes in order, into its own sum. */
typedef struct oi_saxis {
    int64_t extent;
    bool is_reduced;
    int64_t factor[OI_AXIS_LEVELS];
} oi_saxis;

/* How a kernel is partitioned among workers: the axes with a worker level, as one count. */
typedef struct oi_partition {
    uint32_t axis, n_axes; /* the first, and how many; of the nests, or of the tuned body */
    int64_t extent, unit;  /* extent 0: not partitioned */
} oi_partition;

#define OI_EPILOGUE_PLACE 2 /* of an epilogue: the axis whose position does not end a row */

/* Progress of a kernel in a row pipeline. After iteration n > 0 it has produced the first base +
 * step * (n - 1) rows of its result, at most `most`. A row is a position along `dim`. In a
 * partition that begins at unit q of the last kernel's rows (a unit is what that kernel produces in
 * one iteration), no consumer reads a row below begin + step * q. */
typedef struct oi_row_schedule {
    int64_t step, base, most, begin;
    uint32_t dim;
} oi_row_schedule;

typedef struct oi_snest {
    uint32_t n_axes; /* output axes, then reduced ones */
    oi_saxis axes[OI_NEST_AXES];
    const oi_fn *extents;   /* formulas by axis, or NULL: all are constants */
    oi_sops pre;            /* executed in the innermost loop */
    oi_sops post;           /* executed per output element, after the reduced loops; instruction
                               numbers continue those of `pre` */
    const oi_scall *reduce; /* init, combine (better), finish; NULL for a map */
    oi_nest_kind kind;
    oi_dtype acc; /* of the accumulator */
    uint32_t
        element;  /* instruction of `pre` that is combined; an integer may be narrower than acc */
    int64_t most; /* its largest magnitude, if it fits 16 bits; else 0 */
    bool finds_position;
    bool finds_element; /* the result is the row-major index, not the position along the axis */
    bool skips;         /* out-of-bounds loads are neither combined nor counted */
    bool is_serial, is_scan, excludes, combines_out;
    uint32_t lanes; /* declared by the op: partial sums along the last axis; 0: in order */
    /* the largest or smallest of floats, in partial results: integers in the order of the floats
     * are compared instead */
    bool compares_keys;
    /* with a register tile: number of innermost axes that are summed in 16 bits first */
    uint32_t narrow_axes;
    /* conditions in `post`: the sum is used only if all hold, so they are tested before it is
     * computed */
    uint32_t n_predicates, predicates[OI_MAX_PREDICATES];
} oi_snest;

/* The part of a tensor that a kernel accesses. */
typedef struct oi_port {
    uint32_t tensor;
    /* Of a table: the entry, one code per axis. STATE: the first position along every dim, from
     * which coordinates count; but those of elements smaller than a byte count from 0. */
    const oi_code *entry;
    uint32_t n_entry;
    const oi_code *count; /* STATE: how many positions along every dim; NULL: all */
    bool is_written;
    bool is_dropped; /* by fusion: no instruction refers to it */
    const oi_pref
        *ref; /* as written in the graph, for names and diagnostics; NULL for temporaries */
} oi_port;

/* A scalar argument of the kernel. */
typedef struct oi_kscalar {
    const char *name;
    oi_dtype dtype;
    oi_pvalue value;
    bool is_length; /* it is the length of `tensor` along `dim` */
    uint32_t tensor, dim;
} oi_kscalar;

/* Estimated cost of one run; cost.c. */
typedef struct oi_cost {
    uint64_t macs, bytes; /* multiply-accumulates; bytes read and written */
    bool is_open;    /* the length of some loop is known only at run time: it was counted as 1 */
    double ns;       /* estimated time on the device (device/cost.h) */
    double alone_ns; /* the same by one worker */
    bool is_most;    /* some length is known only at run time: its maximum was used */
} oi_cost;

/* A recipe that could implement the product of a nest, before it is known what follows the sum. */
typedef struct oi_offer {
    const oi_recipe *recipe;
    oi_recipe_plan *plan;
    uint32_t n_sum; /* the first instructions of `post` are the product's own, up to its result */
} oi_offer;

typedef struct oi_skernel {
    const char *name;
    OI_VEC(oi_port) ports;
    OI_VEC(oi_kscalar) scalars;
    OI_VEC(oi_snest) nests;
    OI_VEC(const oi_pnode *) nodes; /* the nodes that it implements, in order */
    bool is_dynamic;                /* some lengths are known only at run time */
    OI_VEC(oi_formula) formulas;    /* formula i is oi_fn i + 1 */
    OI_VEC(oi_set_length) lengths;  /* set before it runs */
    bool can_fail;                  /* an index is data, so it may be out of range */
    bool is_used;                   /* some statement calls it */
    uint32_t number;                /* among the kernels that are used */
    /* before lowering, the call itself: its query and the tensors of its operands */
    const oi_kernel_query *query;
    uint32_t *in_tensors, *out_tensors;
    const oi_kernel_query *sums; /* the call whose reduction is the first nest; fused instructions
                                    may follow it */
    const oi_offer *offer;       /* of a recipe for `sums`; NULL: none matches */
    uint32_t n_shared;           /* outermost axes that all nests share in one loop */
    /* alternative to nests: a tuned body, and the port of each of its arguments, or OI_NO_ID */
    const oi_recipe *recipe;
    const oi_recipe_plan *plan;
    const uint32_t *arg_ports;
    const oi_kernel_query *taken; /* the call that the recipe implements; NULL: unknown */
    const oi_scall *call;         /* the call whose attributes it receives */
    oi_snest *epilogue; /* epilogue of a recipe that passes its sums to a function: `post` over two
                           axes and the places of the result (two positions that are added), or NULL
                         */
    oi_saxis body;   /* the axis that a tuned body's plan partitions; extent 0: it has no levels */
    bool is_chunked; /* dynamic chunks: threads take the next chunk when they are done */
    bool has_prefetch; /* at its end it prefetches the first weights of kernel `prefetch` */
    uint32_t prefetch;
    uint32_t graph;
    oi_cost cost;
    /* Kernels with equal functions share the first one's: its index, and its name. `next_alike` is
     * the next kernel that shares it, or OI_NO_ID. */
    uint32_t function, next_alike;
    const char *function_name;
    const char *const *parameters; /* by port: what a shared function calls it; NULL: not shared */
} oi_skernel;

/* -- undo: how a failed step is rolled back -- */

typedef enum oi_undo_kind {
    OI_UNDO_NONE, /* no step changes state and fails afterwards */
    OI_UNDO_LOG,  /* what changes is logged before, and restored from the log, last entry first */
    OI_UNDO_COPY  /* the log would be unbounded or larger than the state: a copy of all state is
                     made before each step */
} oi_undo_kind;

/* What a statement logs of a persistent variable. */
typedef enum oi_undo_what { OI_UNDO_SIZES, OI_UNDO_ELEMENTS } oi_undo_what;

/* A run of the statement logs at most n times, each time at most `bytes` bytes. An entry of the log
 * takes its bytes, rounded up to 8, and OI_UNDO_HEAD more for the place and the number of bytes. */
typedef struct oi_undo_entry {
    oi_undo_what what;
    uint64_t n, bytes;
} oi_undo_entry;

#define OI_UNDO_HEAD 16u

typedef struct oi_undo {
    oi_undo_kind kind;
    uint64_t bytes; /* of the log or the copy */
} oi_undo;

/* -- statements -- */

typedef enum oi_stmt_kind {
    OI_STMT_KERNEL,
    OI_STMT_SET, /* stores a scalar into a tensor of rank 0: loop index, attribute */
    OI_STMT_LOOP,
    OI_STMT_PIPELINE, /* row pipeline: runs the kernels of `body` `limit` times, each for the rows
                         of that iteration */
    OI_STMT_BRANCH,
    OI_STMT_YIELD,
    OI_STMT_AWAIT,
    OI_STMT_BARRIER,
    OI_STMT_LIMIT, /* checks that every element of a, or `value` if a is OI_NO_ID, is in 0 ...
                      limit; else E047 */
    OI_STMT_SHAPE, /* checks that lengths satisfy `checks`; else E051 */
    OI_STMT_NEED, /* checks that an access to the state `a` satisfies `needs`; else it fails as they
                     say (oi_need_error) */
    OI_STMT_RESIZE, /* sets the current sizes of the state `a` to `resize` */
    OI_STMT_LOG,    /* keeps the part `a` of the state for a rollback, before a kernel writes it */
    OI_STMT_VIEW,   /* locates the view b: the part `a` of the state; sets the lengths that `kernel`
                       sets */
    OI_STMT_SIZES,  /* sets the lengths that `kernel` sets; its computation was fused into its
                       consumers */
    OI_STMT_LENGTH, /* sets the length of b along dim `limit` to the value of a, or checks it (E051)
                     */
    OI_STMT_CHECK,  /* per-node runs: the host compares the node's results */
    OI_STMT_RETURN,
    OI_STMT_GONE /* deleted; exists only while a pass works on the list (where.h) */
} oi_stmt_kind;

/* Sizes of persistent memory after an access. All codes hold sizes before it. */
typedef struct oi_resize {
    const oi_code *sizes;  /* by axis of the grid; n == 0: unchanged */
    const oi_code *counts; /* some change only if all of these are above 0 */
    uint32_t n_counts;
    uint32_t always; /* bit per axis: it changes in any case */
} oi_resize;

/* A tensor that a statement refers to. Reads of a statement come before its writes. */
typedef struct oi_stmt_use {
    uint32_t tensor;
    bool reads, writes;
    bool is_length;  /* of the tensor only a length */
    bool is_operand; /* else a number that the statement needs, or a condition */
} oi_stmt_use;

/* How workers share a row pipeline: each takes whole units of the last kernel's rows. For the units
 * from `begin` on, the first iteration is begin + first; for those before `end`, the iteration
 * after the last is end + this end. */
typedef struct oi_row_range {
    int64_t units, first, end;
} oi_row_range;

typedef struct oi_stmt oi_stmt;
typedef OI_VEC(oi_stmt) oi_stmts;

struct oi_stmt {
    oi_stmt_kind kind;
    const oi_pnode *node;
    uint32_t kernel;               /* KERNEL, SIZES; VIEW: or OI_NO_ID */
    oi_port a, b;                  /* SET: a is the destination */
    oi_pvalue value;               /* SET, LIMIT */
    int64_t limit;                 /* LIMIT, LENGTH, PIPELINE */
    const oi_length_check *checks; /* SHAPE */
    const oi_need *needs;          /* NEED */
    uint32_t n_checks;             /* how many checks or needs */
    const oi_resize *resize;       /* RESIZE */
    oi_row_schedule rows;          /* KERNEL inside PIPELINE */
    oi_stmts body;                 /* LOOP, TURNS */
    bool is_parallel; /* every thread runs it, each its partition; else only the first thread
                         does */
    bool barrier;     /* barrier before it: no thread begins it before all have arrived */
    /* of the barrier: 1 + the tensor whose accesses it orders; 0: an error of the first thread */
    uint32_t barrier_for;
    /* barrier, not is_parallel: the first thread runs it, and what follows up to the next parallel
     * statement or barrier, while the others wait in the barrier */
    bool first_enters;
    uint32_t serial;   /* not is_parallel, in a list that all threads run: number of statements from
                          this one on that the first thread runs alone, without a barrier between */
    uint32_t chunks;   /* number of kernels from this one on that run in dynamic chunks; 0: none */
    bool has_prefetch; /* barrier: waiting threads prefetch the weights of kernel `prefetch` */
    uint32_t prefetch;
    bool may_fail; /* it, its body, or what it calls may end the step with an error */
    /* What the statement itself refers to, without its body and the blocks that it calls. */
    const oi_stmt_use *uses;
    const uint32_t *indices; /* of loops; each once */
    uint32_t n_uses, n_indices;
    oi_row_range range;        /* PIPELINE that workers share */
    const oi_undo_entry *undo; /* what it writes into the undo log before it changes state */
    uint32_t n_undo;
};

typedef struct oi_sblock {
    const oi_pblock *source;
    oi_stmts stmts;
    const uint32_t *tensor_of; /* by variable: a consumer's own tensors; NULL: the graph's */
    bool is_used;              /* called by a block, or a consumer */
    bool is_parallel;          /* every thread runs it */
    bool may_fail;             /* some statement of it may */
    uint64_t times;            /* that a step runs it, at most; UINT64_MAX: unbounded */
} oi_sblock;

typedef struct oi_sgraph {
    const oi_program *program;
    const char *name;
    oi_sblock *blocks;                /* by variable; OI_NO_ID if unused */
    uint32_t *tensor_of;              /* by variable; OI_NO_ID if unused */
    OI_VEC(uint32_t) inputs, outputs; /* tensors */
    const uint32_t *order;            /* blocks that are used; what a block calls comes before it */
    uint32_t n_order;
    uint32_t n_positions; /* statements of a step in execution order (oi_tensor.alive) */
    bool needs_undo;      /* a step may change state and fail afterwards */
    oi_cost cost;         /* of a step */
    bool warms_up;        /* workers warm up their shared cache first (oi_caps.warm_up_slices) */
} oi_sgraph;

/* -- the plan -- */

#define OI_WEIGHTS_HEAD 64u /* bytes before the first weight (emit/weights.c) */

#define OI_NOTE_SLOW "slow" /* of the pass that says what takes long, which users are told */

typedef struct oi_pass_note { /* why a pass did not apply */
    const char *pass, *text;
    const oi_pnode *node;
    uint32_t graph;
} oi_pass_note;

typedef struct oi_renamed {
    const char *was, *is;
} oi_renamed;

/* How workers of the program wait for each other. */
typedef struct oi_sync {
    bool barrier;      /* all wait for all */
    bool first_enters; /* the first worker works inside a barrier while the others wait */
    bool chunks;       /* workers take dynamic chunks */
} oi_sync;

#define OI_LIST(T)   \
    struct {         \
        const T *at; \
        size_t n;    \
    }

/* Frozen: who has a plan does not change it. */
struct oi_plan {
    const char *name; /* of the program */
    const oi_device *device;
    const oi_device_info *target;
    oi_caps can;            /* what the target can do */
    oi_host_lang host_lang; /* of main, which the kernels' language does not follow */
    bool per_node;          /* the program reports every node's result */
    bool timed;             /* it reports when a kernel begins and ends */
    bool embeds;            /* weights are compiled into it */
    bool is_parallel;       /* workers share some graph's steps */
    uint64_t align;         /* of tensors in all spaces */
    OI_LIST(oi_sgraph) graphs;
    OI_LIST(oi_tensor) tensors;
    OI_LIST(oi_store_var) stores; /* persistent variables */
    OI_LIST(oi_skernel) kernels;
    oi_undo undo; /* of every step */
    oi_sync sync;
    uint64_t weights_bytes, state_bytes, arena_bytes;
    uint64_t arena_bound;  /* lower bound for any layout of the arena */
    uint64_t arena_alive;  /* maximum number of live bytes */
    uint64_t graphs_hash;  /* of the graphs' text */
    uint64_t weights_hash; /* of the weights as the program reads them */
    OI_LIST(oi_pass_note) notes;
    OI_LIST(oi_renamed) renamed; /* names that differ from those in the graph */
    oi_arena *arena;             /* for texts of emitters; lives as long as the plan */
    oi_diag *diag;
};

/* -- plan.c -- */

uint64_t oi_tensor_bytes(const oi_tensor *t); /* all entries */
/* The kernel's instruction lists: pre and post of each nest in order, then the epilogue's. NULL
 * past the end. */
oi_sops *oi_kernel_sops(const oi_skernel *k, size_t i);
static inline bool oi_sop_is_access(
    const oi_sop *op) /* most passes call it for every instruction */
{
    return op->kind == OI_SOP_LOAD || op->kind == OI_SOP_INDEX || op->kind == OI_SOP_STORE;
}
bool oi_kernel_reads(const oi_skernel *k, uint32_t tensor); /* some load reads it */
bool oi_stmts_call(const oi_stmts *list);                   /* contains a branch or yield */
/* What the kernel's function calls the port, before names are made unique. */
const char *oi_port_stem(const oi_tensor *tensors, const oi_skernel *k, size_t port);
uint64_t oi_plan_aligned(const oi_plan *p, uint64_t n);
/* The tensor of a variable inside a block. */
uint32_t oi_graph_tensor(const oi_sgraph *g, uint32_t block, uint32_t var);
const oi_store_var *oi_plan_store(const oi_plan *p, uint32_t tensor); /* NULL: not persistent */
/* Reports why the target cannot run the graph. `at` with line 0: use the node's position. */
oi_status oi_plan_refuse(const oi_plan *p, uint32_t graph, const oi_pnode *n, oi_span at,
                         const char *code, const char *fmt, ...) OI_PRINTF(6, 7);

/* -- codes.c: arithmetic of index expressions -- */

typedef enum oi_code_check {
    OI_CHECK_OVERFLOW = 1, /* the result may not fit 64 bits */
    OI_CHECK_ZERO = 2      /* the divisor may be 0 */
} oi_code_check;

/* By instruction of the code: what the program must check at run time (bits of oi_code_check). */
const uint8_t *oi_code_checks(oi_arena *a, const oi_program *p, const oi_code *code);
bool oi_code_may_fail(const oi_program *p, const oi_code *code);
/* The model lacks some entry of the table that the port may select. */
bool oi_entry_may_lack(const oi_tensor *t, const oi_port *p);
/* Selecting the entry may fail: an index is out of range, or the entry is missing. */
bool oi_entry_may_fail(const oi_program *p, const oi_tensor *t, const oi_port *port);

/* -- part.c: parts of the persistent state -- */

/* The dim from which on the part of the state is contiguous; its rank: single elements. */
uint32_t oi_part_run(const oi_tensor *t, const oi_port *part);
uint64_t oi_part_most(const oi_tensor *t, const oi_port *part, uint32_t dim); /* positions */

/* -- dump.c -- */

void oi_plan_put_steps(const oi_plan *p, oi_buf *out); /* prints the statements of all graphs */
void oi_plan_put(const oi_plan *p, const char *after, oi_buf *out); /* as a pass left them */

/* -- levels.c: the levels of a nest's axes -- */

const char *oi_axis_level_name(oi_axis_level level);
void oi_axis_put_levels(const oi_saxis *x,
                        oi_buf *out);        /* " worker 8 vector 16", outermost first */
uint32_t oi_nest_outputs(const oi_snest *n); /* number of output axes */
/* Outermost axes whose places may be computed in any order, by anyone. */
uint32_t oi_nest_counted(const oi_snest *n);
/* Number of axes with a loop or levels of their own: all, but for a last one that is unrolled
 * completely. */
uint32_t oi_nest_loops(const oi_snest *n);
bool oi_nest_is_unrolled(const oi_snest *n, uint32_t axis); /* completely: it has no loop */
int64_t oi_nest_unrolled(const oi_snest *n); /* iterations that the last axis repeats; 1: none */
int64_t oi_nest_partial_sums(const oi_snest *n);  /* along the last reduced loop; 0: one sum */
int64_t oi_nest_register_tile(const oi_snest *n); /* accumulators of a register tile; 0: none */
int64_t oi_nest_jam(const oi_snest *n); /* rows of a map that one iteration computes; 0: one */

/* Invocations that take places of the axis in turn: lanes, or the group of a reduced axis; 0: one
 * takes all. The most of any axis: those that run the nest together. */
int64_t oi_axis_lanes(const oi_saxis *x);
int64_t oi_axis_lane_places(const oi_saxis *x); /* neighbouring places that a lane takes; 0: one */
int64_t oi_nest_lane_count(const oi_snest *n);
int64_t oi_nest_sum_lanes(const oi_snest *n); /* of them, those that make a sum together */

/* Its nests are one dispatch, because they share axes or private rows; else each may be one. */
bool oi_kernel_is_joint(const oi_tensor *tensors, const oi_skernel *k);
oi_partition oi_kernel_partition(const oi_skernel *k);
void oi_kernel_set_partition(oi_skernel *k, oi_partition p); /* extent 0: removes it */
/* Each call computes a range of the places of one axis. */
bool oi_kernel_streams(const oi_skernel *k);
void oi_kernel_set_stream(oi_skernel *k, uint32_t axis, int64_t extent, int64_t factor);

#endif
