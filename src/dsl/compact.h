/* compact.h: the compact form as written (spec/dsl.md §11), before any type is known. The tree
 * lives in the graph's arena; src/compact lowers it into the graph. */
#ifndef OI_DSL_COMPACT_H
#define OI_DSL_COMPACT_H

#include "graph/graph.h"

typedef enum oi_cexpr_kind {
    OI_CEXPR_NAME,
    OI_CEXPR_NUMBER,
    OI_CEXPR_MODEL, /* model["k"], model[format!("W.{l}")] */
    OI_CEXPR_CALL,
    OI_CEXPR_NEG, /* lhs */
    OI_CEXPR_ADD,
    OI_CEXPR_SUB,
    OI_CEXPR_MUL,
    OI_CEXPR_DIV,
    OI_CEXPR_PIPE /* rhs is a call, lhs its first operand */
} oi_cexpr_kind;

typedef struct oi_cexpr oi_cexpr;

/* One argument of a call: an operand, or a value (an attribute, or an element type by itself). */
typedef struct oi_carg {
    oi_name name;         /* text NULL: by position */
    const oi_cexpr *expr; /* NULL: value */
    oi_value value;
} oi_carg;
typedef OI_VEC(oi_carg) oi_cargs;

struct oi_cexpr {
    oi_cexpr_kind kind;
    uint16_t depth;       /* 1 for leaves; at most OI_MAX_EXPR_DEPTH */
    bool is_format;       /* MODEL: the key is format!(…) */
    bool has_hints;       /* @{…}, maybe empty */
    oi_name name;         /* NAME; CALL and operators: the op; MODEL: the model's name */
    oi_value value;       /* NUMBER: INT or FLOAT; MODEL: the key, STR */
    oi_exprs format_args; /* MODEL */
    const oi_cexpr *lhs, *rhs;
    oi_cargs args; /* CALL */
    oi_attrs hints;
    oi_span span;
};

typedef enum oi_cstmt_kind {
    OI_CSTMT_BIND, /* [let] names = expr; also a call by itself, without names */
    OI_CSTMT_FOR,
    OI_CSTMT_OUTPUT
} oi_cstmt_kind;

typedef struct oi_cstmt {
    oi_cstmt_kind kind;
    bool is_let, is_tuple;
    oi_names names; /* BIND; OUTPUT; FOR: none, or that of `let x = for` */
    const oi_cexpr *expr;
    oi_name index; /* FOR */
    const oi_expr *start, *end;
    OI_VEC(struct oi_cstmt *) body;
    oi_span span; /* the first token */
} oi_cstmt;

typedef struct oi_cinput {
    oi_name name;
    oi_dtype dtype;
    oi_exprs dims;
} oi_cinput;

/* kv: kv_cache(f16, layers=L, cap=C, shape=[…]) */
typedef struct oi_cstate {
    oi_name name;
    oi_dtype dtype;
    const oi_expr *layers, *cap;
    bool has_shape;
    oi_exprs shape;
} oi_cstate;

typedef struct oi_compact {
    oi_name model; /* as the text calls it; "model" when it does not say */
    bool has_model;
    OI_VEC(oi_cinput) inputs;
    OI_VEC(oi_cstate) states;
    OI_VEC(oi_cstmt *) body; /* the statements that are in no loop */
    OI_VEC(oi_cstmt *) list; /* all of them, as items number them */
    oi_span end;             /* behind the last statement */
} oi_compact;

#endif
