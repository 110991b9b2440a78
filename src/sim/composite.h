/* composite.h: a call of any op made ready to run: one kernel, or those of a composite's calls. */
#ifndef OI_SIM_COMPOSITE_H
#define OI_SIM_COMPOSITE_H

#include "kernel/kernel.h"
#include "program/composite.h"
#include "program/program.h"

typedef struct oi_calls oi_calls;

typedef struct oi_prologue {
    oi_choice choice;
    const oi_calls *calls; /* of a composite that has no kernel of its own; NULL: run the choice */
    const oi_expansion *checks; /* of a tuned body: what attributes must be; NULL: nothing */
    size_t scratch_bytes;
} oi_prologue;

/* Chooses; what it needs lives in `a`. False with *fail when nothing does this call. */
bool oi_ready_make(oi_arena *a, const oi_kernel_query *q, oi_cpu cpu, oi_prologue *out,
                   oi_infer_fail *fail);
/* Whether both run the same kernels. */
bool oi_ready_same(const oi_prologue *a, const oi_prologue *b);
/* As oi_kernel_call; q is the query it was made from, with the values of run_attrs filled in. */
bool oi_ready_run(const oi_kernel_query *q, const oi_prologue *r, const oi_kernel_io *io,
                  oi_kernel_fault *fault);

#endif
