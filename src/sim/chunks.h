/* chunks.h: ops over tensors that the memory limit has no room for. */
#ifndef OI_SIM_CHUNKS_H
#define OI_SIM_CHUNKS_H

#include "sim/composite.h"
#include "sim/sim.h"

/* -- chunks.c -- */

/* How a call is cut. */
typedef struct oi_chunks {
    oi_cut cut;
    bool is_cut[OI_KERNEL_PORTS]; /* tensors of the model that are read in parts */
    uint64_t whole_bytes;         /* of those that are not */
    int64_t unit;                 /* places of a part: a multiple of it, but for the last */
    bool lies_together;           /* every part is one range of its tensor */
    bool out_together;            /* and of the output */
} oi_chunks;

/* The least bytes that cutting the call takes, scratch included; UINT64_MAX: it cannot be cut. */
uint64_t oi_chunks_least(oi_arena *a, const oi_kernel_query *q, const oi_prepared *whole,
                         const bool *is_weight, oi_cpu cpu);
/* A gather that takes whole rows of its first input: those are read alone. */
bool oi_chunks_picks_rows(const oi_kernel_query *q);
/* Under a limit, before the call: *done when it has run in parts; else all inputs are there. */
oi_status oi_chunks_run(oi_ctx *c, const oi_pnode *n, const oi_kernel_query *q,
                        const oi_prepared *ready, oi_input *in, oi_out *out, bool *done);

/* -- op.c -- */

/* The kernel for one call; what it needs lives in *arena, which is made here. */
oi_status oi_op_choose(oi_ctx *c, const oi_pnode *n, const oi_kernel_query *q, oi_prepared *ready,
                       oi_arena **arena);
/* Runs it with scratch and threads of the context. */
oi_status oi_op_call(oi_ctx *c, const oi_pnode *n, const oi_kernel_query *q,
                     const oi_prepared *ready, const oi_kernel_io *operands);
oi_status oi_op_fault(oi_ctx *c, const oi_pnode *n, const oi_kernel_fault *f);
/* The call of a node whose types are known, and its kernel; NULL: only the run knows. */
const oi_kernel_query *oi_op_planned(const oi_sim *s, const oi_pnode *n, const oi_prepared **ready);
/* Under a limit: the op cannot work in place, and may run in parts that read all of an input. */
bool oi_op_is_apart(const oi_sim *s, const oi_pnode *n);
oi_cpu oi_op_cpu(const oi_sim *s);

/* -- need.c -- */

oi_status oi_need_check(oi_sim *s, oi_diag *d); /* E065 when the limit cannot be kept */

#endif
