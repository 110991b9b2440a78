/* custom.h: ops that are no loops, each in a file of custom/.
 *
 * A row of ops/ops.json names its file: `"kernel": "sort"` is custom/sort.c, which defines
 * `const oi_custom oi_custom_sort`. That says how the simulator runs the op and which steps an
 * emitted program takes instead. Functions declared `static inline ... oi_...` in that folder are
 * text too: emitted programs carry along those that their steps call (tools/helpergen.c). */
#ifndef OI_CUSTOM_H
#define OI_CUSTOM_H

#include "kernel/kernel.h"

/* -- an op -- */

typedef struct oi_steps oi_steps;

typedef struct oi_custom {
    /* Chooses the simulator's kernel: run, scratch. */
    bool (*choose)(const oi_kernel_query *q, oi_choice *c);
    /* Records the steps of an emitted program. NULL: an op without inputs, whose result is computed
     * during synthesis; or a composite, whose body says it. */
    void (*lower)(oi_steps *s);
    const char *body;     /* the function of C text that those steps call; NULL: none */
    const char *body_f64; /* for f64; NULL: the same */
    /* Results whose length only the data says; NULL for all others. */
    const struct oi_measured {
        size_t (*scratch_bytes)(const oi_kernel_query *q);
        bool (*measure)(const oi_kernel_query *q, const oi_kernel_io *io, int64_t *length);
        /* The greatest lengths of the first output, by dim. */
        void (*limit)(const oi_operand *x, int64_t *dims);
    } * measured;
} oi_custom;

const oi_custom *oi_custom_of(const oi_op *op); /* NULL: the row names none. custom.c */

/* -- steps.c: what an emitted program does -- */

#define OI_STEP_TENSORS 8
#define OI_STEP_SIZES   10

/* A tensor of the steps: dense. First the inputs of the call, then its outputs, then those that
 * the steps add. */
typedef struct oi_step_tensor {
    const char *stem; /* of its name */
    oi_dtype dtype;
    uint32_t rank;
    int64_t dims[OI_KERNEL_RANK];
    const void *bytes; /* contents known now: a table in the weights; NULL: working memory */
} oi_step_tensor;

typedef enum oi_step_kind {
    OI_STEP_CALL,  /* `function` of (in..., out..., sizes...) */
    OI_STEP_OP,    /* out[0] = op(in...), with one attribute that is not its default */
    OI_STEP_COPY,  /* out[0] = in[0] */
    OI_STEP_LENGTH /* out[0] is along `dim` as long as the number in in[0] */
} oi_step_kind;

typedef struct oi_custom_step {
    oi_step_kind kind;
    const char *function;
    oi_op_id op;
    const char *attr;
    oi_op_value value;
    uint32_t in[OI_STEP_TENSORS], out[OI_STEP_TENSORS];
    uint32_t n_in, n_out, n_sizes;
    int64_t sizes[OI_STEP_SIZES];
    uint32_t dim;
    /* CALL: tensor `fixed` - 1, declared with an open length along `dim`, is known to have `length`
     * there */
    uint32_t fixed;
    int64_t length;
} oi_custom_step;

struct oi_steps {
    oi_arena *arena;
    const oi_kernel_query *q;
    OI_VEC(oi_step_tensor) tensors;
    OI_VEC(oi_custom_step) steps;
};

void oi_steps_init(oi_steps *s, oi_arena *a, const oi_kernel_query *q);
/* A tensor to work in; returns its number. */
uint32_t oi_steps_tensor(oi_steps *s, const char *stem, oi_dtype t, uint32_t rank,
                         const int64_t *dims);
uint32_t oi_steps_line(oi_steps *s, const char *stem, oi_dtype t, int64_t n); /* of rank 1 */
/* n elements that are known now; `bytes` outlive the steps. */
uint32_t oi_steps_table(oi_steps *s, const char *stem, oi_dtype t, int64_t n, const void *bytes);
uint32_t oi_steps_output(const oi_steps *s, size_t i);
/* The tensor as elements of t: itself, or a converted copy. */
uint32_t oi_steps_as(oi_steps *s, uint32_t tensor, oi_dtype t);
/* An f64 tensor for what becomes output i: the output itself, or one that oi_steps_narrow converts.
 */
uint32_t oi_steps_wide(oi_steps *s, size_t i);
void oi_steps_narrow(oi_steps *s, uint32_t wide, size_t i);
void oi_steps_copy(oi_steps *s, uint32_t from, uint32_t to);
void oi_steps_op(oi_steps *s, oi_op_id op, const uint32_t *in, uint32_t n_in, uint32_t to,
                 const char *attr, oi_op_value value);
void oi_steps_call(oi_steps *s, const oi_custom_step *call); /* but for its kind */
void oi_steps_length(oi_steps *s, uint32_t found, uint32_t of, uint32_t dim);

/* Attributes of the call. */
int64_t oi_steps_int(const oi_steps *s, const char *name, int64_t absent);
bool oi_steps_is(const oi_steps *s, const char *name);

/* The product of the dims before an axis, and of those behind it. */
void oi_steps_around(const int64_t *dims, uint32_t rank, uint32_t axis, int64_t *outer,
                     int64_t *inner);
uint32_t oi_steps_axis(const oi_steps *s); /* the attribute `axis`, from the first dim */

#endif
