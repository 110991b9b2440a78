/* synth.h: from Programs to a Plan: what the emitted program does, in which order, on which memory.
 *
 * A unit is one emitted program: one or more graphs (prefill, decode) over one state and one set of
 * weights. Lowering (build.c) turns each graph into a tree of statements over tensors; the work
 * inside a statement is a kernel: loop nests over scalar instructions. Passes rewrite that; the
 * emitters only spell it. Nothing here knows a target language: a target is its device file.
 * Everything lives in the unit's arena. Grouped by the file that implements it. */
#ifndef OI_SYNTH_H
#define OI_SYNTH_H

#include "kernel/nest.h"
#include "program/bind.h"
#include "recipe/recipe.h"
#include "synth/target.h"

/* -- tensors -- */

/* Which memory a tensor lies in. */
typedef enum oi_space {
    OI_SPACE_NONE,    /* nowhere: fused away, or never used */
    OI_SPACE_WEIGHTS, /* read only, from the model */
    OI_SPACE_INPUT,   /* the host writes it between steps */
    OI_SPACE_OUTPUT,  /* the host reads it after a step */
    OI_SPACE_STATE,   /* kept from step to step */
    OI_SPACE_ARENA,   /* one step's working memory, shared by tensors that never meet */
    OI_SPACE_LOCAL,   /* a row inside one kernel: on the stack */
    OI_SPACE_VIEW     /* a part of the state tensor `from`, which a cache.read found */
} oi_space;

/* What an element is before the step writes it. */
typedef enum oi_start {
    OI_START_NONE,  /* nobody looks */
    OI_START_FILL,  /* `init` */
    OI_START_MODEL, /* the tensor `from`, copied */
} oi_start;

typedef struct oi_tensor {
    const char *name;  /* an identifier, unique in the unit */
    const char *label; /* what one kernel calls it that no variable of the graph is; or NULL */
    oi_dtype dtype;
    uint32_t rank;
    int64_t dims[OI_MAX_RANK]; /* of one entry; a `?` dim has its greatest length */
    uint32_t run_dims;         /* bit per `?` dim: its length is set by whoever writes the tensor;
                                  elements lie dense, as if it had been declared so */
    uint64_t size_bytes;       /* of one entry */
    oi_space space;
    uint64_t offset;       /* in that space */
    uint32_t ring;         /* dim + 1: only dims[dim] of its rows are kept at a time, row i at i %
                              dims[dim]; 0: all are */
    int64_t rows;          /* with it: how many there are in all */
    int64_t alive[2];      /* ARENA: from which statement to which, in the order they run */
    const oi_pvar *var;    /* NULL for what lowering made */
    const oi_pvar *origin; /* a value of this variable, under a name of its own */
    uint32_t graph;        /* whose variable; state and weights: who brought it first */
    uint32_t store;        /* STATE: which of the unit's, counted from 1 */
    /* tables: entries lie one after the other, row-major over these axes */
    uint32_t n_table;
    int64_t table[OI_MAX_RANK];
    uint64_t n_entries, stride_bytes;
    uint64_t align; /* the unit's */
    /* weights */
    const size_t *sources; /* per entry: the model's tensor, or OI_NO_SOURCE for a hole */
    const void *bytes;     /* instead: the contents themselves */
    oi_model *model;
    const oi_packing *packing; /* instead: made from other weights, whose tensors `packed` lists */
    const uint32_t *packed;
    const oi_packing
        *view; /* instead: input `view_input` of what tensor `view_of` was packed from, */
    uint32_t view_of, view_input; /* read out of that */
    /* what a step finds in it */
    oi_start start;
    uint64_t init; /* bits of one element */
    uint32_t from;
    bool is_written;    /* by some statement */
    bool is_private;    /* ARENA: every thread has it on its stack instead */
    bool keeps_lengths; /* NONE: its lengths are still asked for */
} oi_tensor;

#define OI_NO_SOURCE SIZE_MAX

/* A persistent variable of the unit. Cells beyond the current sizes hold the initial value. */
typedef struct oi_store_var {
    uint32_t tensor; /* storage: grid of the greatest sizes, table axes first */
    uint32_t rank;   /* of the grid */
    uint32_t n_table;
    int64_t most[2 * OI_MAX_RANK];
    int64_t first[2 * OI_MAX_RANK]; /* sizes at the beginning */
    uint32_t grows;                 /* bit per axis: its size is counted at run time */
    bool has_marks;                 /* growable table: which entries were written */
} oi_store_var;

/* -- numbers that hang on lengths which only the run knows -- */

#define OI_FORMULA_TERMS 4

/* (base + sum of factor * product of lengths) / by, rounded down, within least ... most. A length
 * is a scalar of the kernel. */
typedef struct oi_formula {
    int64_t base, by;
    uint32_t n_terms;
    struct {
        int64_t factor;
        uint32_t n, of[OI_FORMULA_TERMS];
    } terms[OI_FORMULA_TERMS];
    bool has_least, has_most;
    int64_t least, most;
    uint32_t unless_one;                  /* 0 instead where this length is 1; OI_NO_ID: never */
    uint32_t n_pick, pick[OI_NEST_READS]; /* instead of all that: the first that is not 1 */
} oi_formula;

/* Which formula of the kernel stands for a number; 0: the number itself does. */
typedef uint32_t oi_fn;

typedef struct oi_coord_fns {
    oi_fn base, bend_from, bend_to, counted_before, counted_after, step[OI_NEST_AXES];
} oi_coord_fns;

/* A length that a kernel sets before it runs. */
typedef struct oi_set_length {
    uint32_t tensor, dim;
    int64_t value;
    oi_fn fn;
} oi_set_length;

/* What lengths must be for a call to be right, or the step fails: E051. */
typedef struct oi_length_check {
    uint32_t tensor, dim;
    uint32_t other, other_dim;   /* equal to this one, OI_NO_ID: see below */
    bool is_value;               /* equal to `value` */
    bool may_be_one, other_may;  /* a length of 1 will do as well */
    int64_t value, least, most;  /* most < 0: none */
    int64_t multiple, remainder; /* of a multiple; 0: none */
} oi_length_check;

/* -- scalar instructions -- */

/* An op's call whose expressions are used: attributes known now, or read when the kernel starts. */
typedef struct oi_scall {
    const oi_op *op;
    const oi_op_value *attrs; /* one per attribute of the op */
    const uint32_t *scalars;  /* per attribute: the kernel's scalar that holds it, or OI_NO_ID */
    oi_dtype in0;             /* of the first input: numbers among the attributes are of it */
    const oi_pnode *node;     /* where it comes from */
} oi_scall;

typedef enum oi_sop_kind {
    OI_SOP_LOAD,    /* an element of a port, in the form it is computed in */
    OI_SOP_INDEX,   /* the same, as a position along `dim` of another port */
    OI_SOP_PLACE,   /* the coordinate at[0] itself */
    OI_SOP_CONST,   /* `fill` */
    OI_SOP_EVAL,    /* expression `part` of a call */
    OI_SOP_CONVERT, /* what the op `cast` makes of it */
    OI_SOP_ACC,     /* what the reduction found */
    OI_SOP_COUNT,   /* over how many elements */
    OI_SOP_STORE    /* into a port */
} oi_sop_kind;

#define OI_SOP_ARGS OI_NEST_READS

typedef struct oi_sop {
    oi_sop_kind kind;
    oi_dtype type; /* of the result, as stored in a tensor; LOAD, STORE: the port's dtype */
    uint32_t port;
    const oi_nest_coord *at; /* LOAD, STORE: one per dim of the port */
    const oi_coord_fns *fns; /* beside them, or NULL: all are numbers */
    bool is_raw;             /* LOAD, STORE: the bits themselves */
    oi_dtype from;           /* CONVERT */
    bool fits;               /* CONVERT: it is a number of the type, once its fraction is cut off */
    bool is_flat;            /* LOAD, STORE: at[0] alone, the row-major number of the element */
    bool may_leave;          /* LOAD: `fill` where a coordinate leaves; INDEX: -1 */
    int64_t length;          /* INDEX: of the dim it is for */
    oi_fn length_fn;
    const oi_nest_coord *guard; /* LOAD: below 0 it counts as outside; may be NULL */
    const oi_coord_fns *guard_fns;
    uint64_t fill; /* bits */
    const oi_scall *call;
    oi_op_part part;
    uint32_t args[OI_SOP_ARGS]; /* earlier instructions; EVAL: by input of the row, or OI_NO_ID */
    uint32_t n_args;
    uint32_t place; /* EVAL: what the expression calls `i`, or OI_NO_ID */
} oi_sop;
typedef OI_VEC(oi_sop) oi_sops;

/* -- nests and kernels -- */

#define OI_MAX_PREDICATES 4

/* How the loops of a nest run; schedule.c decides. */
#define OI_MAX_JAM 8 /* rows of a map, at most */
typedef struct oi_order {
    uint32_t lanes;    /* partial sums along the last reduced axis, then added pairwise; 0: one sum,
                          in order */
    uint32_t tile;     /* axpy: accumulators along the last output axis; 0: one */
    uint32_t parts;    /* with a strip: so many of the last axes are added up in 16 bits first */
    bool unrolls_last; /* the last axis is no loop: its few places stand one after the other */
    uint32_t jam;      /* a map of long chains: so many rows are computed in one; 0: one by one */
    uint32_t n_predicates, predicates[OI_MAX_PREDICATES]; /* truths of `post`: unless all hold,
                                                             nobody looks at the sum */
} oi_order;

/* How threads share a kernel: each takes whole units of one axis; partition.c decides. */
typedef struct oi_partition {
    uint32_t axis;        /* of the nests; recipes know their own */
    int64_t extent, unit; /* extent 0: one thread does all */
    bool is_pair;         /* positions are those of the axis and the next one, counted through */
} oi_partition;

#define OI_EPILOGUE_PLACE 2 /* of what finishes sums: the axis whose position ends no row */

/* How far a kernel is that takes turns with others: after `n` of them, n > 0, it has made the first
 * base + step * (n - 1) rows of its result, but at most `most`. Rows are places along a dim. Of a
 * part that begins with unit q of the last kernel's rows, as many as that makes in a turn, nobody
 * looks at a row before begin + step * q. */
typedef struct oi_row_schedule {
    int64_t step, base, most, begin;
    uint32_t dim;
} oi_row_schedule;

typedef struct oi_snest {
    uint32_t n_axes; /* output axes, then reduced ones */
    oi_nest_axis axes[OI_NEST_AXES];
    const oi_fn *extents; /* by axis, or NULL: all are numbers */
    oi_sops pre;          /* in the innermost loop */
    oi_sops post;         /* per output element, after the reduced loops; numbers go on from pre */
    const oi_scall *reduce; /* init, combine (better), finish; NULL for a map */
    oi_nest_kind kind;
    oi_dtype acc;     /* of the accumulator */
    uint32_t element; /* of pre: what is combined; an integer may be shorter than acc */
    int64_t most;     /* its largest magnitude, where it has 16 bits; 0: it has not */
    bool finds_position;
    bool finds_element; /* its row-major number, not its place along the axis */
    bool skips;         /* a load that leaves: not combined, not counted */
    bool is_serial, is_scan, excludes, combines_out;
    uint32_t lanes; /* declared: partial sums along the last axis; 0: in order */
    oi_order order;
} oi_snest;

/* A tensor as a kernel sees it: one entry of it. */
typedef struct oi_port {
    uint32_t tensor;
    const oi_code *entry; /* of a table: one per axis */
    uint32_t n_entry;
    bool is_written;
    bool is_dropped;    /* by fusion: nothing refers to it */
    const oi_pref *ref; /* as written, for names and places; NULL for temporaries */
} oi_port;

/* A number that the kernel is handed. */
typedef struct oi_kscalar {
    const char *name;
    oi_dtype dtype;
    oi_pvalue value;
    bool is_length; /* of the tensor, along the dim */
    uint32_t tensor, dim;
} oi_kscalar;

/* What one run costs on paper; cost.c. */
typedef struct oi_cost {
    uint64_t macs, bytes; /* multiply-accumulates; bytes read and written */
    bool is_open;         /* some loop's length only the run knows: it was counted once */
    double ns;            /* that it takes on the device, device/cost.h */
    bool is_most;         /* some length only the run knows: it was counted as its greatest */
} oi_cost;

typedef struct oi_skernel {
    const char *name;
    OI_VEC(oi_port) ports;
    OI_VEC(oi_kscalar) scalars;
    OI_VEC(oi_snest) nests;
    OI_VEC(const oi_pnode *) nodes; /* what it does, in order */
    bool is_dynamic;                /* some lengths only the run knows */
    OI_VEC(oi_formula) formulas;    /* number i is oi_fn i + 1 */
    OI_VEC(oi_set_length) lengths;  /* set before it runs */
    bool can_fail;                  /* an index comes from data */
    bool is_used;                   /* some statement runs it */
    /* the call, while the kernel is just that: its query and the tensors of its operands */
    const oi_kernel_query *query;
    uint32_t *in_tensors, *out_tensors;
    const oi_kernel_query
        *sums;         /* the call whose reduction the first nest is, whatever follows it */
    uint32_t n_shared; /* axes that all nests loop over together, outermost */
    /* instead of nests: a tuned body; the ports of its arguments, or OI_NO_ID */
    const oi_recipe *recipe;
    const oi_recipe_plan *plan;
    const uint32_t *arg_ports;
    const oi_kernel_query *taken; /* the call that it does; NULL: not known any more */
    const oi_scall *call;         /* whose attributes it is handed */
    oi_snest *epilogue; /* what its function for sums does: `post`, over two axes and the places of
                         the result, counted in two parts whose sum they are; or NULL */
    oi_partition partition;
    bool is_chunked;   /* split: threads take pieces in turn */
    bool has_prefetch; /* it asks for the first weights of kernel `next` at its end */
    uint32_t prefetch;
    oi_partition rows; /* extent not 0: it is called for some rows, positions of that axis */
    uint32_t graph;
    oi_cost cost;
} oi_skernel;

/* -- statements -- */

typedef enum oi_stmt_kind {
    OI_STMT_KERNEL,
    OI_STMT_CACHE, /* read, write, increment, decrement, reset: as the node says */
    OI_STMT_SET,   /* a number into a tensor of rank 0: loop index, attribute */
    OI_STMT_LOOP,
    OI_STMT_PIPELINE, /* the kernels of `body`, `limit` times, each for the rows of its turn */
    OI_STMT_BRANCH,
    OI_STMT_YIELD,
    OI_STMT_AWAIT,
    OI_STMT_BARRIER,
    OI_STMT_LIMIT,  /* every element of a, or the number `value` where a is OI_NO_ID, is in 0 ...
                       limit, or the step fails: E047 */
    OI_STMT_SHAPE,  /* lengths are as `checks` demands, or the step fails: E051 */
    OI_STMT_SIZES,  /* the lengths that `kernel` sets; what it does went into those who read it */
    OI_STMT_LENGTH, /* b is along dim `limit` as long as a says: set, or E051 */
    OI_STMT_CHECK,  /* per-node runs: the host compares what the node gave */
    OI_STMT_RETURN,
    OI_STMT_GONE /* only while a pass works on the list: where.h */
} oi_stmt_kind;

typedef struct oi_stmt oi_stmt;
typedef OI_VEC(oi_stmt) oi_stmts;

struct oi_stmt {
    oi_stmt_kind kind;
    const oi_pnode *node;
    uint32_t kernel;               /* KERNEL */
    oi_port a, b;                  /* CACHE: the variable's side in a; SET: into a */
    oi_pvalue value;               /* SET, LIMIT */
    int64_t limit;                 /* LIMIT, LENGTH, TURNS */
    bool is_view;                  /* CACHE, a read: b becomes a part of a */
    const oi_length_check *checks; /* SHAPE */
    uint32_t n_checks;
    oi_row_schedule rows; /* KERNEL, inside TURNS */
    oi_stmts body;        /* LOOP, TURNS */
    bool is_parallel;     /* all threads run it, each its part; else the first does it alone */
    bool barrier;         /* all threads must have come so far before any begins it */
    /* waits, not is_shared: the first thread does it, with what follows up to the next that is
     * shared or waits, while the others still wait */
    bool first_enters;
    uint32_t chunks;   /* kernels from this one on that threads run piece by piece; 0: not so */
    bool has_prefetch; /* waits: whoever does asks for the weights of kernel `next` meanwhile */
    uint32_t prefetch;
};

typedef struct oi_sblock {
    const oi_pblock *source;
    oi_stmts stmts;
    const uint32_t *tensor_of; /* by variable: a consumer's own; NULL: the graph's */
    bool is_used;              /* called, or a consumer */
    bool is_parallel;          /* all threads run it */
} oi_sblock;

typedef struct oi_sgraph {
    const oi_program *program;
    const char *name;
    oi_sblock *blocks;                /* by block id */
    uint32_t *tensor_of;              /* by variable; OI_NO_ID where nothing uses it */
    OI_VEC(uint32_t) inputs, outputs; /* tensors */
    bool can_fail;
    oi_cost cost; /* of a step */
} oi_sgraph;

/* -- the unit -- */

typedef struct oi_made {
    uint32_t kernel, era;
} oi_made;

/* While statements are made: the kernels at the end of the list, behind anything else. */
typedef struct oi_recent {
    const oi_stmt *list;
    size_t n; /* statements that were looked at */
    uint32_t era;
    OI_VEC(oi_made) by; /* by tensor: the last kernel that wrote it, if it was in this era */
} oi_recent;

typedef struct oi_pass_note { /* why something was not done */
    const char *pass, *text;
    const oi_pnode *node;
    uint32_t graph;
} oi_pass_note;

typedef struct oi_renamed {
    const char *was, *is;
} oi_renamed;

struct oi_unit {
    oi_arena *arena;
    const oi_device *device;
    const oi_device_info *target;
    oi_caps can; /* what it can do */
    const char *name;
    oi_host_lang host_lang; /* of main, which the kernels' language does not follow */
    oi_diag *diag;
    oi_status status;
    OI_VEC(oi_sgraph) graphs;
    OI_VEC(oi_tensor) tensors;
    OI_VEC(oi_store_var) stores;
    OI_VEC(oi_skernel) kernels;
    OI_VEC(oi_pass_note) notes;
    oi_map names;               /* taken identifiers */
    OI_VEC(oi_renamed) renamed; /* what the host has to call otherwise than the graph */
    oi_map known; /* tensors by what they are: "state NAME", "tensor MODEL N", "packing ..." */
    bool per_node;
    bool partition_all; /* threads share however little there is to do */
    bool timed;         /* the program says when a kernel begins and ends */
    bool keeps_bits;    /* some op makes integers of floats: a last bit may be a large difference */
    bool embeds;        /* weights are compiled in */
    const char *const *skip; /* passes that are left out, NULL-ended; NULL: none */
    const char *dump_after;  /* a pass whose result is wanted as text, or NULL */
    const char *dump;        /* that text */
    oi_recent recent;        /* recipes.c */
    uint64_t weights_bytes, state_bytes, arena_bytes;
    uint64_t arena_bound; /* least that a layout in places of whole OI_ALIGN bytes needs */
    uint64_t arena_alive; /* most bytes of tensors that are alive at one time */
    uint64_t graphs_hash; /* of the graphs as text, set before anything is written */
};

/* -- unit.c -- */

#define OI_ALIGN        64u /* a cache line, and the widest vector */
#define OI_WEIGHTS_HEAD 64u /* bytes before the first weight (emit/weights.c) */

void oi_unit_begin(oi_unit *u); /* once its arena and settings are there */
const char *oi_unit_identifier(oi_unit *u, const char *wanted); /* made unique */
/* To be told: what the graph or the caller calls `was` the program calls `is`. */
void oi_unit_note_name(oi_unit *u, const char *was, const char *is);
uint64_t oi_unit_align(const oi_unit *u);                    /* of tensors in any space */
uint64_t oi_unit_aligned(const oi_unit *u, uint64_t n);      /* up to a multiple of it */
uint32_t oi_unit_add_tensor(oi_unit *u, const oi_tensor *t); /* its name too */
void oi_tensor_measure(oi_tensor *t);                        /* sizes, from its dims */
uint64_t oi_tensor_bytes(const oi_tensor *t);                /* all entries */
/* What a variable of the graph is in memory; has_own: a value of its own, not the model's, because
 * statements write it or the host reads it. */
uint32_t oi_unit_add_var(oi_unit *u, uint32_t graph, uint32_t var, bool has_own);
/* What a variable is in the code of a block. */
uint32_t oi_block_tensor(const oi_unit *u, uint32_t graph, uint32_t block, uint32_t var);
oi_store_var *oi_unit_store(const oi_unit *u, uint32_t tensor); /* NULL: not persistent */
/* Records why the target cannot hold the graph. `at` line 0: the node's own place. */
oi_status oi_unit_refuse(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_span at,
                         const char *code, const char *fmt, ...) OI_PRINTF(6, 7);

bool oi_unit_skips(const oi_unit *u, const char *pass); /* it was asked to be left out */

/* -- dump.c -- */

void oi_unit_put_steps(const oi_unit *u, oi_buf *out); /* the statements of all graphs, as text */

/* -- build.c: statements of a graph -- */

oi_status oi_unit_add_graph(oi_unit *u, const oi_program *p, const char *name);

/* -- recipes.c -- */

bool oi_program_keeps_bits(const oi_program *p); /* what oi_unit.keeps_bits says */

/* -- lower.c: the kernels of an op -- */

void oi_lower_op(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_stmts *out);
/* dst takes src's elements: transfer, and results made apart. */
void oi_lower_copy(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_port src, oi_port dst,
                   oi_stmts *out);

/* -- passes, in their order -- */

oi_status oi_pass_fold(oi_unit *u);
oi_status oi_pass_dead(oi_unit *u);
oi_status oi_pass_ssa(oi_unit *u);
oi_status oi_pass_cse(oi_unit *u);
oi_status oi_pass_hoist(oi_unit *u);
oi_status oi_pass_copy_prop(oi_unit *u);
oi_status oi_pass_clamp(oi_unit *u);
oi_status oi_pass_inline(oi_unit *u);
oi_status oi_pass_fuse(oi_unit *u);
oi_status oi_pass_epilogue(oi_unit *u);
oi_status oi_pass_rows(oi_unit *u);
oi_status oi_pass_narrow32(oi_unit *u);
oi_status oi_pass_narrow16(oi_unit *u);
oi_status oi_pass_int_clamp(oi_unit *u);
oi_status oi_pass_view(oi_unit *u);
oi_status oi_pass_layout(oi_unit *u);
oi_status oi_pass_schedule(oi_unit *u);
oi_status oi_pass_pipeline(oi_unit *u);
oi_status oi_pass_inplace(oi_unit *u);
oi_status oi_pass_memory(oi_unit *u);
oi_status oi_pass_partition(oi_unit *u);
oi_status oi_pass_cost(oi_unit *u);
oi_status oi_passes_run(oi_unit *u); /* all of them but those in u->skip */

#endif
