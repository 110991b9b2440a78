/* ops.h: the op registry as C tables.
 *
 * One row of ops/ops.json is one oi_op. The enums that the rows use (op ids, classes, attribute
 * kinds, shape rules, flags) are generated beside the table, so a new word in the registry's
 * vocabulary needs no edit here. Everything is const data and lives for ever. */
#ifndef OI_OPS_H
#define OI_OPS_H

#include "openinfer.h"
#include "base/body.h"
#include "base/expr.h"
#include "base/ops_gen.h"

/* A set of element types: bit t is oi_dtype t. */
typedef uint32_t oi_dtypes;
#define OI_DTYPES(t)   ((oi_dtypes)1 << (t))
#define OI_DTYPES_SAME ((oi_dtypes)1 << 31) /* also the dtype the op's inputs share */
#define OI_OP_MANY     UINT32_MAX           /* max_inputs, max_outputs of a variadic op */

_Static_assert(OI_DTYPE_COUNT < 31, "a set of element types must fit 32 bits with its marker");

typedef struct oi_op_attr {
    const char *name;
    const char *alias; /* second spelling, or NULL; giving both is E054 */
    oi_attr_kind kind;
    bool required;
    bool in_range; /* the value must fit the first input's dtype */
    bool has_min;
    int64_t min;               /* every integer given must be at least this */
    oi_dtypes dtypes;          /* what a dtype may be; 0: any */
    int32_t input;             /* index of the input that may stand in for it, or -1 */
    oi_op_value def;           /* the default; OI_VALUE_NONE when required or `absent` */
    const char *def_text;      /* the default as the DSL spells it, or "" */
    const char *absent;        /* what leaving it out means when there is no default, or NULL */
    const char *const *values; /* the words a string may be, NULL-terminated; NULL: any */
    const char *sample;        /* a value for an example, or NULL: one of its kind */
    const char *doc;
} oi_op_attr;

typedef struct oi_op_input {
    const char *name;
    const char *dtypes_text; /* as the row says it */
    oi_dtypes dtypes;
    bool optional;
    bool variadic;     /* the last input may repeat */
    bool shares_dtype; /* has the dtype that all such inputs share (E050) */
    int8_t quant_of;   /* input that it describes when left out: quantisation data; or -1 */
} oi_op_input;

#define OI_QUANT_OF_OUTPUT INT8_MAX /* it describes the output */

typedef enum oi_out_rule {
    OI_OUT_LIST, /* any of out_dtypes; out_default when not declared */
    OI_OUT_ATTR, /* what attribute out_attr says */
    OI_OUT_ACC,  /* the shared dtype, or what attribute out_attr (acc=[a], [a, o]) says */
    OI_OUT_LIKE  /* the dtype of input out_input; input 0 is the plain "same" */
} oi_out_rule;

typedef struct oi_op_output {
    const char *name;
    const char *out_text; /* the rule as the row says it */
    bool optional;
    bool variadic;
    oi_out_rule out_rule;
    oi_dtypes out_dtypes; /* OI_OUT_LIST; may hold OI_DTYPES_SAME */
    oi_dtype out_default; /* OI_OUT_LIST; OI_NONE: the shared dtype */
    int32_t out_attr;     /* OI_OUT_ATTR, OI_OUT_ACC: index into attrs */
    int32_t out_input;    /* OI_OUT_LIKE: index into inputs */
} oi_op_output;

/* A piece of an op's meaning: a scalar expression, as it is written and as the instructions that it
 * is; or, for `accumulate`, a dtype. */
typedef struct oi_op_meaning {
    oi_op_part part;
    oi_dtypes of, to; /* dtypes of the input (or accumulator) and of the result it is for */
    const char *text;
    oi_m_expr expr;
} oi_op_meaning;

typedef struct oi_op {
    const char *name;
    const char *const *aliases; /* NULL-terminated, never NULL */
    oi_op_id id;
    oi_op_class cls;
    const oi_op_input *inputs;
    uint32_t n_inputs, min_inputs, max_inputs;
    const oi_op_output *outputs;
    uint32_t n_outputs, min_outputs, max_outputs;
    oi_dtypes dtypes; /* of the inputs that share one dtype */
    const char *dtypes_text;
    oi_shape_rule shape_rule;
    oi_loops loops;         /* how it becomes nests: src/kernel/nest.h */
    oi_reduce_order order;  /* in which a reduction combines */
    uint32_t lanes;         /* OI_REDUCE_LANES: N */
    oi_tolerance tolerance; /* of a backend, beside the definition */
    uint32_t flags;         /* OI_OP_FLAG_* */
    const oi_op_attr *attrs;
    uint32_t n_attrs;
    const char *onnx;              /* "Add-14", several separated by a space, or "" */
    const char *known_as;          /* names elsewhere, for hints: "clip relu6", or "" */
    const char *doc;               /* one line */
    const char *const *notes;      /* NULL-terminated, never NULL */
    const oi_op_meaning *meanings; /* what the op computes, for one set of dtypes after the other */
    uint32_t n_meanings;
    const oi_body *bodies; /* of a composite; none: it has a kernel only */
    uint32_t n_bodies;
} oi_op;

/* -- lookup (ops.c) -- */

const oi_op *oi_op_find(const char *name); /* by name or alias; NULL when there is none */
const oi_op *oi_op_find_n(const char *name, size_t n);
const oi_op *oi_op_at(size_t i); /* in the registry's order; i is also the oi_op_id */
size_t oi_op_count(void);
const oi_op_attr *oi_op_attr_find(const oi_op *op, const char *name); /* by name or alias */
unsigned oi_op_attr_word(const oi_op_attr *a, const char *word);      /* which of a->values */
/* The input that position i of a call stands for: the last one repeats when it is variadic. NULL
 * past the end. Likewise for outputs. */
const oi_op_input *oi_op_input_at(const oi_op *op, size_t i);
const oi_op_output *oi_op_output_at(const oi_op *op, size_t i);
/* The first piece of that part which is for these dtypes; NULL when there is none. */
const oi_op_meaning *oi_op_meaning_find(const oi_op *op, oi_op_part part, oi_dtype of, oi_dtype to);
/* "F S U i4 u4": classes first, then single names. Returns the length; out is always terminated. */
size_t oi_dtypes_print(oi_dtypes set, char *out, size_t cap);

/* -- suggestions (opsinfo.c) -- */

/* The op that was probably meant by a name that no op has: what ONNX, torch or numpy call it, in
 * any case and with or without underscores, else the nearest spelling. NULL when there is none. */
const char *oi_op_suggest(const char *name);

/* -- generated tables (ops_gen.c) -- */

typedef struct oi_op_word { /* one word of the registry's vocabulary */
    const char *name, *doc;
} oi_op_word;
typedef struct oi_dtype_word {
    const char *name, *text;
    oi_dtypes set;
} oi_dtype_word;
typedef struct oi_op_key { /* names and aliases, sorted by name for binary search */
    const char *name;
    uint16_t op;
} oi_op_key;

extern const double oi_dtype_tolerance[OI_DTYPE_COUNT]; /* 0: bits are equal */
extern const oi_op oi_op_table[OI_OP_COUNT];
extern const oi_op_key oi_op_keys[];
extern const size_t oi_op_key_count;
extern const oi_op_word oi_op_class_words[OI_OP_CLASS_COUNT];
extern const oi_op_word oi_attr_kind_words[OI_ATTR_KIND_COUNT];
extern const oi_op_word oi_shape_rule_words[OI_SHAPE_COUNT];
extern const oi_op_word oi_op_flag_words[];  /* [i] names bit i; ends with a NULL name */
extern const oi_dtype_word oi_dtype_words[]; /* F, S, U …; ends with a NULL name */

#endif
