/* body.h: the body of a composite op as tables. tools/opsgen_body.c reads the statements of
 * ops/ops.json and prints these; src/program/composite.c follows them. Nothing is parsed at run
 * time.
 *
 *     op max_axis(x, axes=[axis], keepdims=true) >> m;     a call: values and numbers in, values
 * out check kv_len <= dim(k, -2);                          E047 unless 0 <= kv_len <= that for t in
 * dim(x, 0) { ... }                           repeated, t = 0, 1, ... append ys = h; a list of
 * values, for `op concat(ys)`
 *
 * Values are names without types: types come from the ops. Numbers are computed when the call's
 * shapes are known, from attributes and dims of the op's inputs. */
#ifndef OI_BODY_H
#define OI_BODY_H

#include <stdbool.h>
#include <stdint.h>

#define OI_BODY_ARGS  8 /* items of a list, operands of a call */
#define OI_BODY_OUTS  4
#define OI_BODY_ATTRS 6
#define OI_BODY_LETS  16
#define OI_BODY_LOOPS 4
#define OI_BODY_NONE  UINT16_MAX

/* Functions and operators: constant, spelling, number of arguments. */
#define OI_BODY_FUNCTIONS(X)                                                         \
    X(DIM, "dim", 2) /* dim(x, -1): of an input, earlier value or declared output */ \
    X(RANK, "rank", 1)                                                               \
    X(DIMS, "dims", 3)         /* dims(x, 1, 3): a list of lengths */                \
    X(SIZE, "size", 3)         /* size(x, 1, 3): their product */                    \
    X(RANGE, "range", 2)       /* range(1, 4): 1, 2, 3 */                            \
    X(ONES, "ones", 1)         /* ones(2): 1, 1 */                                   \
    X(GIVEN, "given", 1)       /* an optional input or attribute is there */         \
    X(IS_FLOAT, "is_float", 1) /* an input's dtype, before it is converted */        \
    X(TYPE, "dtype", 1)        /* the same as an element type, for an attribute */   \
    X(IS_RUN, "is_run", 1)     /* an attribute that only the run knows */            \
    X(SQRT, "sqrt", 1)                                                               \
    X(MIN, "min", 2)                                                                 \
    X(MAX, "max", 2)                                                                 \
    X(SELECT, "select", 3)                                                           \
    X(NEG, "-x", 1)                                                                  \
    X(NOT, "!", 1)                                                                   \
    X(OR, "||", 2)                                                                   \
    X(AND, "&&", 2)                                                                  \
    X(EQ, "==", 2)                                                                   \
    X(NE, "!=", 2)                                                                   \
    X(LE, "<=", 2)                                                                   \
    X(GE, ">=", 2)                                                                   \
    X(LT, "<", 2)                                                                    \
    X(GT, ">", 2)                                                                    \
    X(ADD, "+", 2)                                                                   \
    X(SUB, "-", 2)                                                                   \
    X(MUL, "*", 2)                                                                   \
    X(DIV, "/", 2) /* whole numbers: what is left over is dropped */                 \
    X(REM, "%", 2)

typedef enum oi_body_code {
    OI_BODY_NUMBER, /* `number`; whole when is_whole */
    OI_BODY_TRUTH,
    OI_BODY_WORD,  /* `text` */
    OI_BODY_DTYPE, /* oi_dtype `index`; OI_NONE: what floats are computed in */
    OI_BODY_SLOT,  /* value `index`: inputs, then outputs, then the body's own */
    OI_BODY_ATTR,  /* attribute `index` of the composite */
    OI_BODY_COUNT, /* the counter of loop `index` */
    OI_BODY_NAMED, /* what let `index` says */
    OI_BODY_LIST,  /* of `args`, lists among them spliced */
#define OI_BODY_CODE(name, text, n) OI_BODY_##name,
    OI_BODY_FUNCTIONS(OI_BODY_CODE)
#undef OI_BODY_CODE
} oi_body_code;

typedef struct oi_body_node {
    oi_body_code code;
    bool is_whole;
    uint8_t n_args;
    uint16_t index, args[OI_BODY_ARGS]; /* nodes */
    double number;
    const char *text;
} oi_body_node;

typedef enum oi_body_kind {
    OI_BODY_CALL,
    OI_BODY_CHECK,
    OI_BODY_LET,
    OI_BODY_IF,
    OI_BODY_FOR,
    OI_BODY_APPEND
} oi_body_kind;

typedef struct oi_body_attr {
    uint16_t attr, node;
} oi_body_attr;

typedef struct oi_body_step {
    oi_body_kind kind;
    uint16_t op;                /* OI_BODY_CALL: its oi_op_id */
    uint16_t in[OI_BODY_ARGS];  /* nodes; CHECK: value, limit; FOR: count; IF: condition; LET,
                                   APPEND: value */
    uint16_t out[OI_BODY_OUTS]; /* slots; APPEND: the list; FOR, LET: its number */
    oi_body_attr attrs[OI_BODY_ATTRS];
    uint8_t n_in, n_out, n_attrs;
    uint16_t n_steps; /* FOR, IF: how many of those that follow are inside */
} oi_body_step;

/* One way to compose an op; the first whose condition holds is taken. */
typedef struct oi_body {
    uint16_t when; /* node, or OI_BODY_NONE: always */
    const char *when_text;
    const char *const *text; /* the statements as the row has them, NULL-terminated */
    const oi_body_node *nodes;
    const oi_body_step *steps;
    const char *const *slots; /* their names */
    uint16_t n_steps, n_slots, n_loops;
} oi_body;

#endif
