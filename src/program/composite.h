/* composite.h: a composite op as calls of other ops.
 *
 * A row of class composite says in its `body` which calls it is. An expansion is that body for one
 * call: every type known, every attribute a value, nested composites replaced by their own calls,
 * in the order they run. The simulator runs an expansion as one node; the synthesizer puts its
 * calls in the node's place. Nothing in it depends on values that only the run knows. */
#ifndef OI_COMPOSITE_H
#define OI_COMPOSITE_H

#include "kernel/kernel.h"
#include "program/program.h"

typedef enum oi_exp_kind {
    OI_VALUE_OF_INPUT,  /* input `index` of the composite: read only */
    OI_VALUE_OF_OUTPUT, /* output `index`; written by one call, maybe read by later ones */
    OI_VALUE_OF_TEMP,
    OI_VALUE_OF_CONST, /* `bytes` */
    OI_VALUE_OF_ATTR   /* attribute `index`, whose value only the run knows */
} oi_exp_kind;

typedef struct oi_exp_value {
    oi_exp_kind kind;
    uint32_t index;
    oi_operand type;   /* inputs and outputs as the query has them; others are contiguous */
    const void *bytes; /* OI_VALUE_OF_CONST: elements as they are stored */
    const char *name;  /* what the body calls it, or NULL */
} oi_exp_value;

typedef struct oi_exp_call {
    const oi_op *op; /* never composite */
    const uint32_t *in, *out;
    uint32_t n_in, n_out;
    const oi_op_value *attrs; /* one per attribute of op, defaults filled in */
} oi_exp_call;

/* A demand on a value that the shapes cannot answer for: every element of it (i64) is in 0 … limit,
 * or the run fails with E047. */
typedef struct oi_exp_check {
    uint32_t value; /* OI_VALUE_OF_CONST or OI_VALUE_OF_ATTR */
    int64_t limit;
    uint32_t attr; /* which attribute it is */
} oi_exp_check;

typedef struct oi_expansion {
    const oi_exp_value *values;
    const oi_exp_call *calls;
    const oi_exp_check *checks;
    uint32_t n_values, n_calls, n_checks;
} oi_expansion;

/* The calls that a call of a composite is; everything lives in `a`. Low-precision floats are
 * converted to f32 first and results rounded once in the end, by calls of `cast`. Attributes of
 * kinds `length` and `number` may be left to the run (oi_kernel_query.run_attrs); the body then
 * reads them as operands. False, with *fail, when it has no body for this call. */
bool oi_composite_expand(oi_arena *a, const oi_kernel_query *q, const oi_expansion **out,
                         oi_infer_fail *fail);

#endif
