/* graph.h: the Graph: names, blocks and nodes as written, dims still symbolic.
 * Everything lives in the graph's arena; nodes, variables and blocks refer to each other by id
 * (their place in the graph's vectors), so vectors may grow and JSON round-trips. Grouped by the
 * file that implements it. */
#ifndef OI_GRAPH_H
#define OI_GRAPH_H

#include "base/base.h"

#define OI_NO_ID UINT32_MAX

/* Nesting limits: recursion over a graph is bounded by them. Loops cost four JSON levels each and
 * JSON is read to depth 256. */
#define OI_MAX_EXPR_DEPTH 200u
#define OI_MAX_LOOP_DEPTH 48u
#define OI_MAX_CALL_DEPTH 1000u /* of blocks, and of loops around their calls */

/* A name with its position. */
typedef struct oi_name {
    const char *text;
    oi_span span;
} oi_name;
typedef OI_VEC(oi_name) oi_names;

/* -- expr.c: integer expressions and accesses -- */

typedef enum oi_expr_kind {
    OI_EXPR_INT,
    OI_EXPR_NAME,
    OI_EXPR_RUNTIME, /* `?`, only as a dim */
    OI_EXPR_NEG,     /* lhs */
    OI_EXPR_ADD,
    OI_EXPR_SUB,
    OI_EXPR_MUL,
    OI_EXPR_DIV,
    OI_EXPR_MOD
} oi_expr_kind;

typedef struct oi_expr {
    oi_expr_kind kind;
    bool negative;      /* INT: sign; -0 is never negative */
    uint16_t depth;     /* 1 for leaves */
    uint64_t magnitude; /* INT */
    const char *name;   /* NAME */
    const struct oi_expr *lhs, *rhs;
    oi_span span;
} oi_expr;
typedef OI_VEC(const oi_expr *) oi_exprs;

/* Blank = slice without start and end. */
typedef struct oi_sel {
    bool is_slice;
    const oi_expr *start; /* the index itself when not a slice */
    const oi_expr *end;
    oi_span span;
} oi_sel;

typedef struct oi_access {
    oi_name base;
    bool bracketed;
    OI_VEC(oi_sel) sels;
    oi_span span; /* from the base to the closing bracket */
} oi_access;
typedef OI_VEC(oi_access) oi_accesses;

/* No spaces, fewest parentheses that keep the tree. */
void oi_expr_print(oi_buf *out, const oi_expr *e);
/* spaced: `K[l, 0..t]` as in DSL text; else `K[l,0..t]` as in JSON references. */
void oi_access_print(oi_buf *out, const oi_access *a, bool spaced);
char *oi_expr_text(oi_arena *a, const oi_expr *e);
char *oi_access_text(oi_arena *a, const oi_access *x);
bool oi_expr_equal(const oi_expr *a, const oi_expr *b);
bool oi_expr_is_literal(const oi_expr *e, int64_t *out); /* an INT that fits i64 */

/* How names get their values. Returns false when the name has none (yet). */
typedef bool (*oi_lookup)(void *ctx, const char *name, int64_t *out);
typedef enum oi_eval_status {
    OI_EVAL_OK,
    OI_EVAL_UNKNOWN,  /* a name without a value */
    OI_EVAL_OVERFLOW, /* beyond i64 */
    OI_EVAL_INEXACT,  /* `/` leaves a remainder and exact was asked for (dims) */
    OI_EVAL_DIV_ZERO
} oi_eval_status;
/* i64 arithmetic; `/` floors unless exact, `%` is floor-mod. `at` (may be NULL) gets the culprit.
 */
oi_eval_status oi_expr_eval(const oi_expr *e, bool exact, oi_lookup lookup, void *ctx, int64_t *out,
                            const oi_expr **at);

/* -- value.c: attribute values and scalars -- */

typedef enum oi_value_kind {
    OI_VAL_INT, /* sign and magnitude: i64 and u64 */
    OI_VAL_FLOAT,
    OI_VAL_BOOL,
    OI_VAL_STR,
    OI_VAL_DTYPE,
    OI_VAL_NAME, /* a variable, size or metadata, read when the node runs */
    OI_VAL_EXPR,
    OI_VAL_LIST
} oi_value_kind;

typedef struct oi_value {
    oi_value_kind kind;
    bool negative;      /* INT */
    bool boolean;       /* BOOL */
    oi_dtype dtype;     /* DTYPE */
    uint64_t magnitude; /* INT */
    double number;      /* FLOAT */
    const char *text;   /* STR (n bytes, may hold NUL) or NAME */
    size_t n;           /* STR bytes; LIST items */
    const oi_expr *expr;
    struct oi_value *items;
    oi_span span;
} oi_value;

typedef struct oi_attr {
    oi_name name; /* text NULL for a positional argument of an unknown declaration attribute */
    oi_value value;
} oi_attr;
typedef OI_VEC(oi_attr) oi_attrs;

/* One element of a dtype: its stored bits, right-aligned. */
typedef struct oi_scalar {
    oi_dtype dtype;
    uint64_t bits;
} oi_scalar;

/* NULL when it fits, else the code: "E015" wrong type, "E016" out of range. */
const char *oi_scalar_from_value(oi_dtype t, const oi_value *v, oi_scalar *out);
void oi_scalar_print(oi_buf *out, oi_scalar s); /* as a DSL literal */
void oi_value_print(oi_buf *out, const oi_value *v);
bool oi_value_i64(const oi_value *v, int64_t *out); /* an INT within i64 */
/* Makes one-element lists where the op's row wants a list of dtypes (`acc=i32`). */
void oi_attr_normalise(oi_arena *a, const char *op, oi_attr *attr);

/* -- graph.c: the graph itself -- */

/* Declaration attributes that the language knows; also indexes oi_var.at. */
typedef enum oi_decl_attr {
    OI_AT_INIT,
    OI_AT_REF,
    OI_AT_PATTERN,
    OI_AT_TABLE,
    OI_AT_AUTO_DIM,
    OI_AT_FIXED,
    OI_AT_CAP,
    OI_AT_COUNT
} oi_decl_attr;

/* `i=1024` of @fixed and @cap. */
typedef struct oi_bound {
    oi_name index;
    const oi_expr *limit;
} oi_bound;
typedef OI_VEC(oi_bound) oi_bounds;

typedef struct oi_extra_attr {
    oi_name name;
    oi_attrs args;
} oi_extra_attr;

/* @layout("row_major"), the one layout that exists */
#define OI_ATTR_LAYOUT      "layout"
#define OI_LAYOUT_ROW_MAJOR "row_major"

typedef struct oi_var {
    oi_name name;
    oi_var_kind kind;
    oi_dtype dtype;
    oi_exprs dims;
    bool has_init, table;
    oi_scalar init;
    const char *ref_name, *pattern; /* NULL when absent */
    oi_names indices;               /* X(i, j) */
    oi_names auto_dim;
    oi_bounds fixed, cap;
    OI_VEC(oi_extra_attr) extra;
    oi_span at[OI_AT_COUNT]; /* where each attribute stands; line 0 when absent */
} oi_var;

typedef enum oi_node_kind {
    OI_NODE_ASSIGN,
    OI_NODE_OP,
    OI_NODE_BRANCH,
    OI_NODE_BARRIER,
    OI_NODE_DEP,
    OI_NODE_CACHE_READ,
    OI_NODE_CACHE_WRITE,
    OI_NODE_CACHE_INCREMENT,
    OI_NODE_CACHE_DECREMENT,
    OI_NODE_CACHE_RESET,
    OI_NODE_TRANSFER,
    OI_NODE_YIELD,
    OI_NODE_AWAIT,
    OI_NODE_LOOP,
    OI_NODE_RETURN,
    OI_NODE_KIND_COUNT
} oi_node_kind;

/* One row per node kind. */
typedef struct oi_node_info {
    const char *json;   /* "CacheRead" */
    const char *target; /* what `dep` calls it: "cache.read"; NULL for kinds dep cannot name */
    const char *keyword;
} oi_node_info;
extern const oi_node_info oi_node_table[OI_NODE_KIND_COUNT];

typedef OI_VEC(uint32_t) oi_ids;

typedef struct oi_node {
    oi_node_kind kind;
    uint64_t index;
    uint8_t uuid[16];
    oi_span span;      /* the first token of the node */
    uint32_t block;    /* block id */
    uint32_t parent;   /* loop node id, or OI_NO_ID directly in the block */
    uint32_t position; /* in its node list */
    oi_attrs hints;    /* compact form's @{…}; empty otherwise */
    oi_name name;      /* ASSIGN variable · OP op · LOOP label */
    union {
        struct {
            oi_dtype dtype;
            oi_exprs dims;
        } assign;
        struct {
            oi_accesses inputs, outputs;
            oi_attrs attrs;
        } op;
        struct {
            oi_name cond, then_block, else_block; /* cond and else text NULL for a plain call */
        } branch;
        struct {
            oi_name after, before;
        } dep;
        struct {
            oi_access from, to; /* read, write, transfer; reset and increment use `to` */
            oi_name amount_name;
            uint64_t amount; /* increment, decrement */
        } move;
        struct {
            oi_names names;
        } list; /* yield, await, return */
        struct {
            oi_name index;
            const oi_expr *start, *end;
            oi_ids body;
        } loop;
    } as;
} oi_node;

typedef struct oi_block {
    oi_name name;
    oi_ids nodes;
    oi_span end; /* the closing brace */
} oi_block;

/* What stood where in the text, for the formatter; see print.c. */
typedef enum oi_item_kind {
    OI_ITEM_SECTION, /* id: oi_var_kind */
    OI_ITEM_DECL,    /* id: variable */
    OI_ITEM_BLOCK,   /* id: block */
    OI_ITEM_NODE,    /* id: node */
    OI_ITEM_LOOP,    /* id: node; its header up to `{` */
    OI_ITEM_CLOSE,   /* the matching `}` */
    /* of the compact form; see dsl/compact.h */
    OI_ITEM_MODEL,
    OI_ITEM_INPUTS, /* `inputs: {` */
    OI_ITEM_INPUT,  /* id: its place */
    OI_ITEM_STATES,
    OI_ITEM_STATE,
    OI_ITEM_SECTION_END, /* `},` */
    OI_ITEM_STMT,        /* id: its place in the list of all statements */
    OI_ITEM_FOR,
    OI_ITEM_FOR_END
} oi_item_kind;
typedef struct oi_item {
    oi_item_kind kind;
    uint32_t id;
    uint32_t start, end; /* bytes of the source, 0 0 when there is none */
} oi_item;

typedef struct oi_comment {
    uint32_t start, end;
    bool is_line; /* `// …` */
} oi_comment;

struct oi_graph {
    oi_arena *arena;
    oi_source source;      /* name NULL when there is no text */
    const char *origin;    /* file the graph came from, or NULL */
    const char *made_from; /* of JSON: the file that it says its text is from, or NULL */
    uint32_t build_block, build_parent; /* where builder calls add nodes */
    OI_VEC(oi_var) vars;
    OI_VEC(oi_block) blocks;
    OI_VEC(oi_node) nodes; /* all nodes, loops' bodies included */
    oi_map var_ids, block_ids;
    oi_map strings; /* interned text */
    OI_VEC(const char *) string_at;
    uint64_t next_index;
    uint64_t uuid_state;
    OI_VEC(oi_item) items;       /* empty unless parsed from text */
    OI_VEC(oi_comment) comments; /* likewise */
    struct oi_compact *compact;  /* text in the compact form as written (dsl/compact.h), or NULL */
    const char *unknown_key;     /* JSON pointer of the first unknown key, NULL when none */
    oi_span late_section;        /* first section that follows a block, line 0 when none */
};

oi_graph *oi_graph_alloc(void);
const char *oi_graph_intern(oi_graph *g, const char *text, size_t n);
/* Both append; a name that is taken keeps its first owner in the map (the check reports E010). */
uint32_t oi_graph_add_var(oi_graph *g, const oi_var *v);
uint32_t oi_graph_add_block(oi_graph *g, const oi_block *b);
/* Appends to the nodes and to the list of block/parent; the index is taken by oi_graph_number. */
uint32_t oi_graph_add_node(oi_graph *g, const oi_node *n);
void oi_graph_drop_node(oi_graph *g);             /* takes the last added node back */
void oi_graph_number(oi_graph *g, uint32_t node); /* next index and a fresh uuid */
uint32_t oi_graph_find_block(const oi_graph *g, const char *name);
bool oi_names_have(const oi_names *names, const char *text);
const char *oi_var_kind_name(oi_var_kind k);              /* "dynamic" */
extern const char *const oi_var_kind_json[];              /* "Dynamic", … */
extern const char *const oi_decl_attr_names[OI_AT_COUNT]; /* "init", … */

/* Places for diagnostics: the span when there is one, else a JSON pointer made in `scratch`. */
void oi_pointer_add(oi_buf *b, const char *text); /* "/TEXT", escaped as RFC 6901 says */
oi_place oi_graph_place_node(const oi_graph *g, oi_arena *scratch, const oi_node *n, oi_span at);
oi_place oi_graph_place_var(const oi_graph *g, oi_arena *scratch, const oi_var *v, oi_span at);
oi_place oi_graph_place_block(const oi_graph *g, oi_arena *scratch, const oi_block *b, oi_span at);

/* -- lex.c -- */

typedef enum oi_token_kind {
    OI_TOK_END,
    OI_TOK_IDENT,
    OI_TOK_INT,
    OI_TOK_FLOAT,
    OI_TOK_STRING,
    OI_TOK_BAD, /* malformed; already reported */
    OI_TOK_DOTDOT,
    OI_TOK_SHR,        /* >> */
    OI_TOK_PIPE,       /* |> */
    OI_TOK_PUNCT = 256 /* OI_TOK_PUNCT + character for the single ones */
} oi_token_kind;

typedef struct oi_token {
    int kind;
    uint32_t start, end;
} oi_token;

typedef struct oi_tokens {
    const oi_source *source;
    OI_VEC(oi_token) list; /* ends with OI_TOK_END */
    OI_VEC(oi_comment) comments;
} oi_tokens;

/* Lexes all of source; malformed tokens are reported as E001 and become OI_TOK_BAD. */
void oi_lex(oi_arena *a, const oi_source *source, oi_tokens *out, oi_diag *d);

/* -- cursor.c: the part of the grammar that JSON shares (iexpr, access) -- */

/* A reader over tokens. `failed` is set by the first error of a statement and cleared by the code
 * that resynchronises; nothing is reported while it is set. */
typedef struct oi_cursor {
    oi_graph *graph;
    const oi_source *source;
    const oi_token *tok; /* current */
    oi_diag *diag;
    const char *pointer; /* JSON pointer of the text being read, or NULL for a DSL file */
    bool failed;
    unsigned depth;
} oi_cursor;

bool oi_cur_is(const oi_cursor *c, char punct);
bool oi_cur_is_word(const oi_cursor *c, const char *word);
bool oi_cur_accept(oi_cursor *c, int kind); /* kind: OI_TOK_… or a character */
bool oi_cur_expect(oi_cursor *c, int kind, const char *what);
oi_span oi_cur_span(const oi_cursor *c, const oi_token *t);
oi_span oi_cur_span_from(const oi_cursor *c, const oi_token *first); /* first … last consumed */
void oi_cur_error(oi_cursor *c, const oi_token *at, const char *code, const char *fmt, ...)
    OI_PRINTF(4, 5);
void oi_cur_unexpected(oi_cursor *c, const char *wanted); /* E001 with what was found */
oi_name oi_cur_name(oi_cursor *c, const char *what);
const oi_expr *oi_cur_iexpr(oi_cursor *c);
const oi_expr *oi_cur_dim(oi_cursor *c); /* also `?` */
oi_access oi_cur_access(oi_cursor *c);
bool oi_cur_int(oi_cursor *c, uint64_t *out); /* the current INT token; false after an error */
bool oi_cur_float(oi_cursor *c, double *out);
const char *oi_cur_string(oi_cursor *c, size_t *n); /* decoded, arena-owned */

/* Text of a JSON field -> tree; errors carry the pointer. NULL / base.text NULL on failure. */
bool oi_is_name(const char *text); /* an identifier of the language */
const oi_expr *oi_expr_parse(oi_graph *g, const char *text, size_t n, bool is_dim,
                             const char *pointer, oi_diag *d);
bool oi_access_parse(oi_graph *g, const char *text, size_t n, const char *pointer, oi_access *out,
                     oi_diag *d);

/* -- uuid.c -- */

#define OI_UUID_TEXT 37
void oi_uuid_print(const uint8_t uuid[16], char out[OI_UUID_TEXT]);
bool oi_uuid_parse(const char *text, uint8_t out[16]);
void oi_uuid_random(uint64_t *state, uint8_t out[16]);
/* RFC 9562 version 5 of "BLOCK/INDEX" in OpenInfer's own namespace. */
void oi_uuid_derive(const char *block, uint64_t index, uint8_t out[16]);

/* -- symbols.c: every name of a graph and what it stands for -- */

/* The first four are the memory kinds. */
typedef enum oi_symbol_kind {
    OI_SYM_DYNAMIC = OI_DYNAMIC,
    OI_SYM_VOLATILE = OI_VOLATILE,
    OI_SYM_CONSTANT = OI_CONSTANT,
    OI_SYM_PERSISTENT = OI_PERSISTENT,
    OI_SYM_ASSIGN,
    OI_SYM_INDEX /* of a loop: a read-only i64 */
} oi_symbol_kind;

/* One index of X(i, j). Table axes come before auto_dim axes; auto axis k grows dim k. */
typedef struct oi_axis {
    oi_name name;
    bool is_auto;
    const oi_expr *fixed, *cap; /* NULL when not bounded */
} oi_axis;

typedef struct oi_symbol {
    const char *name;
    oi_symbol_kind kind;
    oi_dtype dtype;
    const oi_exprs *dims; /* of one entry, for tables */
    const oi_var *var;    /* NULL for assign and loop indices */
    const oi_node *node;  /* the assign or loop, NULL otherwise */
    const oi_axis *axes;
    size_t n_axes, n_table; /* the first n_table axes are not auto_dim; at most OI_MAX_RANK */
    oi_span span;
} oi_symbol;

typedef struct oi_symbols {
    const oi_graph *graph;
    OI_VEC(oi_symbol) list; /* declared variables in order, then assigns, then loop indices */
    oi_map variables;       /* name -> place in list; the first owner of a name keeps it */
    oi_map indices;         /* loop index -> place in list, of the first loop that has it */
} oi_symbols;

oi_symbols *oi_graph_symbols(const oi_graph *g, oi_arena *a);
const oi_symbol *oi_symbols_find(const oi_symbols *s, const char *name);  /* variables; or NULL */
const oi_symbol *oi_symbols_index(const oi_symbols *s, const char *name); /* of any loop; or NULL */
/* What a name means at a node: an enclosing loop's index, else a variable, else NULL. */
const oi_symbol *oi_symbols_at(const oi_symbols *s, const oi_node *n, const char *name);
const oi_axis *oi_symbol_axis(const oi_symbol *s, const char *name);
bool oi_symbol_is_prefix(const oi_symbol *s); /* one model tensor per index value */
/* The loop around (not at) a node that binds the name, or NULL. */
const oi_node *oi_graph_loop_around(const oi_graph *g, const oi_node *n, const char *name);
const char *oi_symbol_kind_name(oi_symbol_kind k); /* "dynamic", "assigned", "loop index" */

/* -- uses.c: what a node reads and writes -- */

typedef enum oi_use_role {
    OI_USE_READ,         /* an operand */
    OI_USE_WRITE,        /* an output */
    OI_USE_CACHE_READ,   /* source of cache.read */
    OI_USE_CACHE_WRITE,  /* target of cache.write and cache.reset */
    OI_USE_CACHE_UPDATE, /* target of cache.increment and cache.decrement */
    OI_USE_VALUE,        /* a number: index, loop bound, condition, amount, op attribute */
    OI_USE_YIELD,
    OI_USE_AWAIT,
    OI_USE_RETURN
} oi_use_role;

/* What a name used as a value must be. */
typedef enum oi_want {
    OI_WANT_INDEX,     /* in an expression: rank-0 integer or bool, or a size of the model */
    OI_WANT_CONDITION, /* rank 0 of any type, declared in the graph */
    OI_WANT_AMOUNT,    /* rank-0 integer, declared in the graph */
    OI_WANT_ATTR       /* an op attribute: what suits depends on it; may be metadata of the model */
} oi_want;

typedef struct oi_use {
    oi_use_role role;
    oi_want want; /* VALUE */
    const char *name;
    oi_span span;
    const oi_access *access; /* operands, outputs and cache accesses; NULL for plain names */
    const oi_access *inside; /* VALUE in a selector: of this access */
} oi_use;

typedef void (*oi_use_fn)(void *ctx, const oi_node *n, const oi_use *use);
/* Calls fn for every name the node itself uses, in the order of the text; not for a loop's body,
 * nor for dims and block names. */
void oi_node_uses(const oi_node *n, oi_use_fn fn, void *ctx);
bool oi_use_reads(oi_use_role r);
bool oi_use_writes(oi_use_role r);

/* -- check*.c: rules that need neither model nor executor -- */

/* One op call as far as its row alone decides: E052, E053, E054, E057. False after an error. */
bool oi_graph_check_call(const oi_graph *g, const oi_node *n, oi_arena *scratch, oi_diag *d);
/* Whether a hint of the node, which was checked, says fuse: false. */
bool oi_node_stays_apart(const oi_node *n);
/* Whether the declaration, which was checked, asks for row-major order. NULL: no. */
bool oi_var_is_row_major(const oi_var *v);
/* Reports every violation (up to the diag's limit). OI_ERR_INPUT when there was an error. */
oi_status oi_graph_check_structure(const oi_graph *g, bool strict, oi_diag *d);

#endif
