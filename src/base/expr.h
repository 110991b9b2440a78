/* expr.h: the scalar expressions of the op registry as tables. tools/opsgen.c parses the texts of
 * ops/ops.json and prints these; src/kernel/meaning.h binds, folds and types them. Nothing is
 * parsed at run time.
 *
 * An expression is a tree of instructions, each before none of its arguments in particular: `args`
 * are places in the table. Names are inputs, attributes, `acc`, `p`, `i`, `n`, or what a definition
 * (`r = floor(x);`) before the expression is called. */
#ifndef OI_EXPR_H
#define OI_EXPR_H

#include "openinfer.h"

/* Every helper an expression may call: constant, spelling, arguments, how their types hang together
 * (oi_m_rule), what it costs (oi_m_weight). Operators are helpers with another spelling: x + y is
 * add(x, y). What each does exactly is written once per dialect; for C in src/body/scalar.h. */
#define OI_M_HELPERS(X)                          \
    X(ADD, "add", 2, ARITH, PLAIN)               \
    X(SUB, "sub", 2, ARITH, PLAIN)               \
    X(MUL, "mul", 2, ARITH, PLAIN)               \
    X(DIV, "div", 2, ARITH, SLOW)                \
    X(NEG, "neg", 1, ARITH, PLAIN)               \
    X(LT, "lt", 2, COMPARE, PLAIN)               \
    X(LE, "le", 2, COMPARE, PLAIN)               \
    X(GT, "gt", 2, COMPARE, PLAIN)               \
    X(GE, "ge", 2, COMPARE, PLAIN)               \
    X(EQ, "eq", 2, COMPARE, PLAIN)               \
    X(NE, "ne", 2, COMPARE, PLAIN)               \
    X(AND, "and", 2, LOGIC, PLAIN)               \
    X(OR, "or", 2, LOGIC, PLAIN)                 \
    X(NOT, "not", 1, LOGIC, PLAIN)               \
    X(SELECT, "select", 3, SELECT, PLAIN)        \
    X(BIT_AND, "bit_and", 2, ARITH, PLAIN)       \
    X(BIT_OR, "bit_or", 2, ARITH, PLAIN)         \
    X(BIT_XOR, "bit_xor", 2, ARITH, PLAIN)       \
    X(BIT_NOT, "bit_not", 1, ARITH, PLAIN)       \
    X(SHL, "shl", 2, SHIFT, PLAIN)               \
    X(SHR, "shr", 2, SHIFT, PLAIN)               \
    X(POPCOUNT, "popcount", 1, COUNT, PLAIN)     \
    X(MIN, "min", 2, ARITH, PLAIN)               \
    X(MAX, "max", 2, ARITH, PLAIN)               \
    X(MIN_NUM, "min_num", 2, ARITH, PLAIN)       \
    X(MAX_NUM, "max_num", 2, ARITH, PLAIN)       \
    X(ABS, "abs", 1, ARITH, PLAIN)               \
    X(FLOOR, "floor", 1, ARITH, PLAIN)           \
    X(CEIL, "ceil", 1, ARITH, PLAIN)             \
    X(TRUNC, "trunc", 1, ARITH, PLAIN)           \
    X(ROUND_EVEN, "round_even", 1, ARITH, PLAIN) \
    X(ROUND_AWAY, "round_away", 1, ARITH, PLAIN) \
    X(FMA, "fma", 3, ARITH, PLAIN)               \
    X(FMOD, "fmod", 2, ARITH, SLOW)              \
    X(IDIV, "idiv", 2, ARITH, SLOW)              \
    X(FLOOR_DIV, "floor_div", 2, ARITH, SLOW)    \
    X(IREM, "irem", 2, ARITH, SLOW)              \
    X(SQRT, "sqrt", 1, ARITH, SLOW)              \
    X(EXP, "exp", 1, ARITH, DEAR)                \
    X(EXPM1, "expm1", 1, ARITH, DEAR)            \
    X(LOG, "log", 1, ARITH, DEAR)                \
    X(LOG1P, "log1p", 1, ARITH, DEAR)            \
    X(SIGMOID, "sigmoid", 1, ARITH, DEAR)        \
    X(SOFTPLUS, "softplus", 1, ARITH, DEAR)      \
    X(TANH, "tanh", 1, ARITH, DEAR)              \
    X(ERF, "erf", 1, ARITH, DEAR)                \
    X(SIN, "sin", 1, ARITH, DEAR)                \
    X(COS, "cos", 1, ARITH, DEAR)                \
    X(TAN, "tan", 1, ARITH, DEAR)                \
    X(ASIN, "asin", 1, ARITH, DEAR)              \
    X(ACOS, "acos", 1, ARITH, DEAR)              \
    X(ATAN, "atan", 1, ARITH, DEAR)              \
    X(SINH, "sinh", 1, ARITH, DEAR)              \
    X(COSH, "cosh", 1, ARITH, DEAR)              \
    X(ASINH, "asinh", 1, ARITH, DEAR)            \
    X(ACOSH, "acosh", 1, ARITH, DEAR)            \
    X(ATANH, "atanh", 1, ARITH, DEAR)            \
    X(POW, "pow", 2, ARITH, DEAR)                \
    X(ATAN2, "atan2", 2, ARITH, DEAR)            \
    X(IS_NAN, "is_nan", 1, TEST, PLAIN)          \
    X(IS_INF, "is_inf", 1, TEST, PLAIN)          \
    X(IS_FINITE, "is_finite", 1, TEST, PLAIN)    \
    X(SAT, "sat", 1, CONVERT, PLAIN)             \
    X(WRAP, "wrap", 1, CONVERT, PLAIN)           \
    X(NEAR, "near", 1, CONVERT, PLAIN)           \
    X(I64, "i64", 1, INDEX, PLAIN)               \
    X(LOWEST, "lowest", 0, LIMIT, PLAIN)         \
    X(HIGHEST, "highest", 0, LIMIT, PLAIN)       \
    X(GIVEN, "given", 1, GIVEN, PLAIN)

typedef enum oi_helper_id {
#define OI_M_ID(name, text, n, rule, weight) OI_H_##name,
    OI_M_HELPERS(OI_M_ID)
#undef OI_M_ID
        OI_H_COUNT
} oi_helper_id;

#define OI_M_ARGS 3

typedef enum oi_m_kind { OI_M_NUMBER, OI_M_BOOL, OI_M_WORD, OI_M_NAME, OI_M_CALL } oi_m_kind;

typedef struct oi_m_node {
    oi_m_kind kind;
    oi_dtype type;    /* after typing */
    const char *text; /* a name or a quoted word */
    uint32_t len;
    double number; /* literals; integers in a row are far below 2^53 */
    oi_helper_id helper;
    uint16_t args[OI_M_ARGS];
    uint8_t n_args;
} oi_m_node;

typedef struct oi_m_let { /* name = expression; */
    const char *text;
    uint32_t len;
    uint16_t node;
} oi_m_let;

typedef struct oi_m_expr {
    const oi_m_node *nodes;
    const oi_m_let *lets;
    uint16_t n_nodes, n_lets, root;
} oi_m_expr;

#endif
