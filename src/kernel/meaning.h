/* meaning.h: the small language in which ops/ops.json says what an op computes.
 *
 *     "expr": "select(x >= 0, x, negative_slope * x)"
 *     "expr": "r = floor(x); select(saturate, sat(r), wrap(r))"
 *
 * An expression is parsed into a tree when the registry is built (base/expr.h). Here it is bound to
 * names with types (inputs, attributes, `acc`, `i`, `n`), folded, typed, and printed in a dialect.
 * The same code is compiled into the generators and the library, so this file knows nothing but
 * element types. Nothing is allocated. */
#ifndef OI_MEANING_H
#define OI_MEANING_H

#include "base/expr.h"

#define OI_MEANING_NODES 160 /* the longest row, cast with its five roundings, has 40 */
#define OI_MEANING_LETS  8
#define OI_MEANING_ERROR 160

/* How a helper's argument types and result hang together. */
typedef enum oi_m_rule {
    OI_M_ARITH,   /* T, T... -> T */
    OI_M_COMPARE, /* T, T -> bool */
    OI_M_TEST,    /* T -> bool */
    OI_M_LOGIC,   /* bool... -> bool */
    OI_M_SELECT,  /* bool, T, T -> T */
    OI_M_SHIFT,   /* T, i64 -> T */
    OI_M_COUNT,   /* T -> u8 */
    OI_M_CONVERT, /* any -> what the place wants */
    OI_M_INDEX,   /* any integer -> i64 */
    OI_M_LIMIT,   /* -> T, a property of the type wanted */
    OI_M_GIVEN    /* a name -> bool, known when bound */
} oi_m_rule;

/* What one costs: a plain instruction; a slow one such as a division; a function. */
typedef enum oi_m_weight { OI_M_PLAIN, OI_M_SLOW, OI_M_DEAR } oi_m_weight;

typedef struct oi_m_helper {
    const char *name;
    uint8_t n_args;
    oi_m_rule rule;
    oi_m_weight weight;
} oi_m_helper;

extern const oi_m_helper oi_m_helpers[OI_H_COUNT];

typedef struct oi_meaning {
    oi_m_node nodes[OI_MEANING_NODES];
    size_t n_nodes;
    oi_m_let lets[OI_MEANING_LETS];
    size_t n_lets;
    uint16_t root;
    const char *source;
    char error[OI_MEANING_ERROR];
} oi_meaning;

/* What a name stands for. */
typedef struct oi_m_name {
    const char *name;
    oi_dtype type;            /* of its value; a word attribute is an i32 index */
    const char *const *words; /* of a word attribute, NULL-terminated */
    bool is_bound;            /* its value is known now and is `value` (bool, or index of a word) */
    int value;
    bool is_number; /* its value is known now and is `number`; by itself it is still printed by its
                       spelling */
    double number;
    int limit;         /* an integer that is the lowest (-1) or the highest (1) of its type */
    bool is_absent;    /* given(name) is false */
    const char *spell; /* how it is printed */
} oi_m_name;

/* meaning_parse.c: for the generators. False with m->error on a mistake. The text must outlive m.
 */
bool oi_meaning_parse(const char *text, oi_meaning *m);

/* An expression of the registry, to be bound. */
void oi_meaning_start(oi_meaning *m, const oi_m_expr *e);
/* Binds, simplifies and types: `want` is the type of the result. */
bool oi_meaning_bind(oi_meaning *m, const oi_m_name *names, size_t n_names, oi_dtype want);
/* Whether what comes after definition i still mentions it. */
bool oi_meaning_needs(const oi_meaning *m, size_t let);
/* Whether the (simplified) meaning still mentions a name. */
bool oi_meaning_uses(const oi_meaning *m, const char *name);
bool oi_m_is_name(const oi_m_expr *e, const char *name); /* it is that, and nothing else */
bool oi_m_uses(const oi_m_expr *e, const char *name);    /* mentions it anywhere */
/* Whether an expression asks given(name). */
bool oi_m_asks(const oi_m_expr *e, const char *name);
unsigned oi_m_count(const oi_m_expr *e, oi_m_weight weight); /* of helpers that cost so much */

/* -- dialect.c: spelling -- */

/* Element types by how a dialect treats them. */
enum {
    OI_M_FLOATS = 1,
    OI_M_WHOLE = 2, /* integers of 32 and 64 bits */
    OI_M_PACKED = 4,
    OI_M_BOOLS = 8,
    OI_M_NARROW = 16, /* floats that are only stored */
    OI_M_SMALL = 32,  /* integers of 8 and 16 bits */
    OI_M_WIDE = 64    /* integers of 64 bits, which are WHOLE too */
};

typedef struct oi_m_row {
    oi_helper_id helper;
    unsigned classes; /* of the result; for comparisons of the arguments */
    const char
        *text; /* $0 $1 $2 arguments, $T type, $U unsigned type to compute in, $t dtype,
                  $f the widest dtype like the first argument's, $h helper, $* all arguments */
} oi_m_row;

typedef struct oi_dialect {
    const char *name;
    const char *types[OI_DTYPE_COUNT];
    const char *wide[OI_DTYPE_COUNT]; /* $U */
    const oi_m_row *rows, *more;      /* the first that fits; each ends with a NULL text */
    const char *call, *convert;       /* when no row fits */
    const char *of_truth;  /* makes a number of a truth, for conversions; NULL: it is one */
    const char *of_narrow; /* makes an argument of 64 bits of a smaller integer: "$T"; NULL: it
                              widens by itself */
    bool has_narrow;       /* conversions between integers of up to 32 bits are apart: $f is one */
    void (*number)(char out[40], oi_dtype t, double v);
} oi_dialect;

extern const oi_dialect oi_dialect_c;
extern const oi_m_row
    oi_m_rows_like_c[]; /* what languages like C spell alike: after a dialect's own */

typedef struct oi_m_text {
    char *at;
    size_t n, cap;
    bool is_full;
} oi_m_text;

/* One expression; lets are printed by name (see oi_meaning_let). False when it did not fit. */
bool oi_meaning_print(const oi_meaning *m, uint16_t node, const oi_m_name *names, size_t n_names,
                      const oi_dialect *d, oi_m_text *out);

#endif
