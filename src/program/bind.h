/* bind.h: the Program: a checked graph with its model and sizes, everything resolved once.
 *
 * Variables are numbers (their place in the graph's symbol table), expressions are short postfix
 * codes over those numbers, sizes are folded in. Immutable after creation: any number of executors
 * and threads read it. Graph and model are borrowed and must outlive it. */
#ifndef OI_BIND_H
#define OI_BIND_H

#include "graph/graph.h"
#include "program/program.h"

#define OI_DIM_RUN UINT64_MAX /* a `?` dim */

typedef struct oi_program oi_program;

/* -- code.c: integer expressions -- */

typedef enum oi_ins_kind {
    OI_INS_INT,
    OI_INS_INDEX,  /* loop index `id` */
    OI_INS_VAR,    /* rank-0 variable `id` */
    OI_INS_OWN,    /* current size or growth of axis `id` of the accessed table */
    OI_INS_SIZE,   /* current size of axis `id` of persistent memory; `value` says of which */
    OI_INS_LENGTH, /* length of dim `id` of tensor `value`: only in the plans of src/synth */
    OI_INS_CELL,   /* the only element of tensor `value`, an i64: only there, too */
    OI_INS_NEG,
    OI_INS_ADD,
    OI_INS_SUB,
    OI_INS_MUL,
    OI_INS_DIV,
    OI_INS_MOD,
    OI_INS_MIN,
    OI_INS_MAX,
    OI_INS_END /* the end of a slice over an axis of that size: a negative end counts from it */
} oi_ins_kind;

#define OI_CODE_STACK (OI_MAX_EXPR_DEPTH + 8) /* values that are alive at once in a code */

typedef struct oi_ins {
    oi_ins_kind kind;
    uint32_t id;
    int64_t value;
} oi_ins;

/* Postfix; n == 0 when there is no expression (a blank selector). */
typedef struct oi_code {
    const oi_ins *at;
    uint32_t n;
    const oi_expr *source;
} oi_code;

/* Where a running code finds its numbers. */
typedef struct oi_env {
    const int64_t *indices; /* by loop index */
    const int64_t *own;     /* by axis; NULL outside selectors */
    const int64_t *sizes;   /* by axis of the variable that a selection is about, or NULL */
    /* false when the variable cannot be read; the callee has said why */
    bool (*variable)(void *ctx, uint32_t id, int64_t *out);
    void *ctx;
} oi_env;

typedef enum oi_code_status {
    OI_CODE_OK,
    OI_CODE_OVERFLOW,
    OI_CODE_DIV_ZERO,
    OI_CODE_UNREADABLE /* env.variable refused */
} oi_code_status;

oi_code_status oi_code_run(const oi_code *c, const oi_env *env, int64_t *out);
bool oi_code_is_int(const oi_code *c, int64_t *out); /* a constant after folding */
bool oi_code_same(const oi_code *a, const oi_code *b);
oi_code oi_code_int(oi_arena *a, int64_t value);
/* The two joined by a binary instruction, simplified where that is safe. */
oi_code oi_code_join(oi_arena *a, oi_ins_kind kind, const oi_code *x, const oi_code *y);

/* -- variables (bind.c) -- */

typedef struct oi_paxis {
    const char *name;
    bool is_auto, has_fixed, has_cap;
    int64_t fixed, cap;
} oi_paxis;

/* Where the initial value comes from. */
typedef enum oi_source_kind {
    OI_FROM_INIT,   /* the fill value, zero unless said otherwise */
    OI_FROM_TENSOR, /* model tensor `tensor` */
    OI_FROM_BYTES   /* `bytes`: metadata or a size, already in the variable's dtype */
} oi_source_kind;

/* "attn." {head} ".qkv." {layer}: literal text, then an axis (none after the last). */
typedef struct oi_pattern_part {
    const char *text;
    uint32_t axis; /* OI_NO_ID: ends here */
} oi_pattern_part;

typedef struct oi_pvar {
    const char *name;
    const oi_symbol *symbol;
    oi_symbol_kind kind;
    oi_dtype dtype;
    uint32_t rank;
    uint64_t dims[OI_MAX_RANK]; /* declared; OI_DIM_RUN for `?` */
    bool has_run_dims;
    uint64_t n_elements, size_bytes; /* of one entry; 0 while has_run_dims */
    oi_scalar init;
    oi_source_kind source;
    size_t tensor;
    const void *bytes;
    const oi_paxis *axes;
    uint32_t n_axes, n_table;
    bool is_prefix;
    const oi_pattern_part *pattern;
    uint32_t n_pattern;
} oi_pvar;

/* -- nodes (bind_node.c) -- */

/* An operand: a variable, an entry of a prefix table, or a loop index. */
typedef struct oi_pref {
    uint32_t var; /* or the loop index */
    bool is_index;
    uint32_t n_codes;
    const oi_code *codes; /* of a prefix table */
    const oi_access *source;
} oi_pref;

typedef struct oi_psel {
    bool is_slice;
    oi_code start, end;
    const oi_sel *source;
} oi_psel;

/* A selection of persistent memory. */
typedef struct oi_paccess {
    uint32_t var;
    uint32_t n;
    const oi_psel *sels;
    const oi_access *source;
} oi_paccess;

/* -- access.c -- */

/* With every auto axis scalar the selectors say how far the tensor has grown, and it is selected as
 * a whole; reads grow too. */
bool oi_access_is_growth(const oi_pvar *v, const oi_paccess *a);
bool oi_access_is_whole(const oi_paccess *a); /* every selector is blank */
/* A prefix table: the name of the model's tensor at these indices, with its '\0'; and back. */
void oi_pattern_key(const oi_pvar *v, const int64_t *indices, oi_buf *out);
bool oi_pattern_match(const oi_pvar *v, const char *name, int64_t *indices);

/* -- selection.c: what an access to persistent memory selects, as codes over current sizes -- */

typedef enum oi_select_for { OI_SELECT_READ, OI_SELECT_WRITE, OI_SELECT_RESET } oi_select_for;

typedef enum oi_need_kind {
    OI_NEED_START,  /* E042: value >= 0; the start of a slice, an index, a growth count */
    OI_NEED_ORDER,  /* E046: value >= limit; the end of a slice and its start */
    OI_NEED_INDEX,  /* E047: value < limit */
    OI_NEED_END,    /* E047: value <= limit; the end of a slice */
    OI_NEED_GROWTH, /* E047: value <= limit; a growth count */
    OI_NEED_BOUND,  /* E047: value <= limit; the end of what becomes a `?` dim */
    OI_NEED_EQUAL   /* E051: value == limit; two lengths */
} oi_need_kind;

/* A condition without which the access fails. */
typedef struct oi_need {
    oi_need_kind kind;
    uint32_t axis; /* of the grid */
    oi_code value, limit;
} oi_need;

typedef struct oi_part_axis {
    bool keeps; /* the axis stays in the result */
    bool
        may_leave; /* it may go past the entries that can be stored: these hold the initial value */
    oi_code start, end, count; /* end = start + count */
} oi_part_axis;

/* Axes are those of the grid: of the table, then dims of an entry. Codes hold the sizes before the
 * access, and mean something only if the needs before them are met. */
typedef struct oi_state_part {
    uint32_t rank, n_needs, n_kept;
    oi_part_axis axes[2 * OI_MAX_RANK];
    const oi_need *needs;          /* in the order in which they fail */
    oi_code size[2 * OI_MAX_RANK]; /* sizes after the access; n == 0: unchanged */
    bool grows, is_growth;         /* some size may change; even if nothing is selected */
} oi_state_part;

/* The most that an axis of the grid can hold; INT64_MAX: it has no bound. */
int64_t oi_grid_most(const oi_pvar *v, uint32_t axis);
bool oi_grid_grows(const oi_pvar *v, uint32_t axis); /* its size changes while the program runs */
/* `of`: what instructions for sizes carry as their value. `open`: bit per dim of the result that
 * is a `?`: it must not be longer than the axis can be. */
oi_state_part *oi_state_part_of(oi_arena *a, const oi_program *p, const oi_paccess *x,
                                oi_select_for why, int64_t of, uint32_t open);
int oi_need_error(oi_need_kind kind); /* 47 for E047 */

/* What an attribute (or an item of its list) is until the node runs. */
typedef enum oi_pvalue_kind { OI_PV_KNOWN, OI_PV_VAR, OI_PV_INDEX, OI_PV_CODE } oi_pvalue_kind;
typedef struct oi_pvalue {
    oi_pvalue_kind kind;
    oi_op_value value; /* KNOWN */
    uint32_t id;       /* VAR, INDEX */
    oi_code code;
} oi_pvalue;

typedef struct oi_pattr {
    const oi_op_attr *attr;
    oi_pvalue one;          /* when items is NULL; then KNOWN also for whole literal lists */
    const oi_pvalue *items; /* a list with something in it that only the run knows */
    uint32_t n_items;
    oi_span span;
} oi_pattr;

typedef struct oi_pnode {
    oi_node_kind kind;
    bool is_lowered; /* an op whose `act` the device's precision has replaced */
    const oi_node *source;
    union {
        struct {
            const oi_op *op;
            const oi_pref *in, *out;
            const oi_pattr *attrs;
            uint32_t n_in, n_out, n_attrs;
        } op;
        struct {
            oi_pref from, to; /* transfer; `to` of cache.read, `from` of cache.write */
            oi_paccess cache; /* the persistent side */
            uint64_t amount;
            uint32_t amount_var; /* OI_NO_ID: the number */
            bool amount_is_index;
        } move;
        struct {
            uint32_t cond; /* OI_NO_ID: a plain call */
            bool cond_is_index;
            uint32_t then_block, else_block;
        } branch;
        struct {
            uint32_t index;
            oi_code start, end;
        } loop;
        struct {
            const uint32_t *vars;
            uint32_t n;
        } list; /* yield, await, return */
    } as;
} oi_pnode;

typedef struct oi_pblock {
    const oi_block *source;
    bool is_consumer;
    const uint64_t *uses, *writes; /* consumers: bit per variable, called blocks included */
    const uint32_t *awaited;       /* consumers: each variable once */
    uint32_t n_awaited;
    const oi_pnode *first_await; /* consumers */
} oi_pblock;

struct oi_program {
    const oi_graph *graph;
    oi_model *model; /* NULL: a graph that needs none */
    const oi_symbols *symbols;
    oi_arena *arena;
    oi_dtype precision; /* that ops are computed in where they can; OI_NONE, OI_F32: as written */
    uint32_t n_lowered; /* ops that are because of it (precision.c) */
    const oi_pvar *vars;
    uint32_t n_vars, n_indices; /* variables: as declared, then quantisation data that nodes use */
    uint32_t first_index;       /* among the symbols: as many as variables are declared */
    const oi_pnode *nodes;      /* by graph node id */
    const oi_pblock *blocks;
    uint32_t n_blocks, entry;
    uint32_t n_mask;           /* words of a set of variables */
    const uint32_t *consumers; /* blocks, in declaration order */
    uint32_t n_consumers;
};

/* Whether the code is known to stay in 0 ... n - 1: a number, a loop's index, a remainder, or sums
 * and products of such. */
bool oi_code_is_below(const oi_program *p, const oi_code *code, int64_t n);

static inline bool oi_mask_has(const uint64_t *mask, uint32_t i)
{
    return mask[i / 64] >> i % 64 & 1;
}

/* The graph must have passed oi_graph_check with the same model and sizes. precision:
 * preferences.default_precision of the device that it is bound for, or OI_NONE. */
oi_status oi_program_bind(const oi_graph *g, oi_model *m, const oi_size *sizes, size_t n_sizes,
                          oi_dtype precision, oi_program **out, oi_diag *d);
void oi_program_free(oi_program *p);
uint32_t oi_program_find(const oi_program *p, const char *name); /* a variable, or OI_NO_ID */

/* -- for bind.c, bind_node.c and precision.c only -- */

typedef struct oi_binder {
    oi_program *p;
    const oi_graph *g;
    oi_model *m;
    oi_diag *d;
    oi_status status;
    struct oi_typer *typer; /* knows sizes, metadata and state specs of the model */
    oi_pvar *vars;
    oi_pnode *nodes;
    oi_pblock *blocks;
    uint8_t *is_called;   /* by block: the target of a branch */
    uint32_t *quant_vars; /* by declared variable and part; 0: none yet */
} oi_binder;

/* `table`: whose own index names the expression may use, or NULL. */
oi_code oi_bind_code(oi_binder *b, const oi_node *n, const oi_symbol *table, const oi_expr *e);
/* attrs: the node's own, with room for one more. */
void oi_bind_precision(oi_binder *b, oi_pnode *n, oi_pattr *attrs);
void oi_bind_nodes(oi_binder *b);
void oi_bind_blocks(oi_binder *b);

#endif
