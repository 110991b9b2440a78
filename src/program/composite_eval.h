/* composite_eval.h: what the files of composite expansion share. */
#ifndef OI_COMPOSITE_EVAL_H
#define OI_COMPOSITE_EVAL_H

#include "program/composite.h"

#define OI_NO_VALUE UINT32_MAX

/* A value while the body is followed: a number, a list, a tensor, or something left to the run. */
typedef enum oi_eval_tag {
    OI_EVAL_ABSENT, /* an attribute that was not given */
    OI_EVAL_INT,
    OI_EVAL_FLOAT,
    OI_EVAL_BOOL,
    OI_EVAL_WORD,
    OI_EVAL_DTYPE,
    OI_EVAL_LIST, /* of integers */
    OI_EVAL_SLOT, /* a tensor of the body: slot `i` */
    OI_EVAL_RUN   /* attribute `i`, which only the run knows */
} oi_eval_tag;

typedef struct oi_eval {
    oi_eval_tag tag;
    int64_t i;
    double f;
    const char *s;
    oi_dtype dtype;
    uint32_t n;
    int64_t list[OI_KERNEL_RANK];
} oi_eval;

/* The body of one call while it is followed. */
typedef struct oi_frame {
    const oi_op *op;
    const oi_body *body;
    size_t n_in;
    uint32_t *slots;               /* value ids by slot, OI_NO_VALUE: none yet */
    const uint32_t *inputs;        /* value ids as given, before any conversion */
    const oi_op_value *attrs;      /* of the composite */
    const uint32_t *run_attrs;     /* value ids of those that only the run knows, or NULL */
    int64_t counts[OI_BODY_LOOPS]; /* of the loops around */
    oi_eval *lets;
    oi_dtype compute;           /* what floats are converted to */
    const oi_operand *declared; /* outputs, where the call has declared them, or NULL */
    const oi_operand *(*type_of)(void *ctx, uint32_t value);
    void *ctx;
    oi_infer_fail *fail;
} oi_frame;

/* False with f->fail: division by zero, an axis that is not there, a list that is too long. */
bool oi_eval_node(const oi_frame *f, uint16_t node, oi_eval *out);
bool oi_eval_int(const oi_frame *f, uint16_t node, int64_t *out);
bool oi_frame_fail(const oi_frame *f, const char *code, const char *fmt, ...) OI_PRINTF(3, 4);

#endif
