/* composite.h: a call of any op, prepared to run: one kernel, or those of a composite's calls. */
#ifndef OI_SIM_COMPOSITE_H
#define OI_SIM_COMPOSITE_H

#include "kernel/kernel.h"
#include "program/composite.h"
#include "program/program.h"

typedef struct oi_calls oi_calls;

typedef struct oi_prepared {
    oi_choice choice;
    const oi_calls *calls; /* of a composite that has no kernel of its own; NULL: run the choice */
    const oi_expansion *checks; /* of a tuned body: what attributes must be; NULL: nothing */
    size_t scratch_bytes;
} oi_prepared;

/* Chooses kernels, in the arena. False, with *fail: no kernel implements the call. */
bool oi_prepare(oi_arena *a, const oi_kernel_query *q, oi_cpu cpu, oi_prepared *out,
                oi_infer_fail *fail);
/* Whether both run the same kernels. */
bool oi_prepared_same(const oi_prepared *a, const oi_prepared *b);
/* As oi_kernel_call; q is the query it was made from, with the values of run_attrs filled in. */
bool oi_prepared_run(const oi_kernel_query *q, const oi_prepared *r, const oi_kernel_io *io,
                     oi_kernel_fault *fault);

#endif
