/* vulkan_run.h: the steps of a program on a device.
 *
 * In every step the program says what it dispatches, in order, and writes the run-time numbers of
 * each dispatch into mapped memory. What was said is compared with what earlier steps said: a step
 * of a known shape is submitted as it was recorded then, and nothing is recorded. Where the host
 * needs a value that the device computes, it submits what was said so far and waits.
 *
 * The first failure in a call is kept; the functions that return a status return it. */
#ifndef VULKAN_RUN_H
#define VULKAN_RUN_H

#include "vulkan_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- what a program is -- */

typedef enum oi_vk_memory {
    OI_VK_WEIGHTS, /* read-only, behind their head */
    OI_VK_STATE,   /* kept from step to step */
    OI_VK_WORK,    /* of one step */
    OI_VK_IO,      /* inputs and results */
    OI_VK_MEMORIES
} oi_vk_memory;

/* A tensor, or a part of one. Coordinates of a kernel count from element `base`. */
typedef struct oi_vk_operand {
    uint32_t memory;
    int32_t base;
    uint64_t offset, bytes;
} oi_vk_operand;

#define OI_VK_NONE 0xffffffffu

/* One dispatch of a kernel. */
typedef struct oi_vk_kernel {
    const uint32_t *code; /* SPIR-V */
    size_t bytes;
    uint64_t groups;         /* workgroups */
    uint64_t bound, written; /* bit per operand: the shader uses it, it writes it */
    uint32_t n_operands;     /* bindings 0 ... n - 1 */
    uint32_t failure;        /* binding of the failure word, or OI_VK_NONE */
    uint32_t scalars;        /* binding of the run-time numbers, or OI_VK_NONE */
    uint32_t scalar_bytes;
    uint32_t order; /* offset of the dispatch's number among them, or OI_VK_NONE */
    bool can_fail;  /* it may write the failure word */
    bool full_subgroups;
} oi_vk_kernel;

/* A value that the host needs, too: in the device's memory and in the program's struct. */
typedef struct oi_vk_known {
    oi_vk_operand at;
    size_t in_struct;
} oi_vk_known;

typedef struct oi_vk_program {
    const oi_vk_kernel *kernels;
    uint32_t n_kernels;
    uint32_t fill, log; /* the two that every program has: oi_fill.comp, oi_log.comp */
    const oi_vk_known *known;
    uint32_t n_known;
    uint64_t bytes[OI_VK_MEMORIES];
    uint64_t undo_bytes; /* of the log or copy for the rollback of a step */
    uint32_t features;   /* bits of oi_vk_feature: what the shaders need */
    uint32_t align, group_invocations, shared_bytes;
} oi_vk_program;

typedef struct oi_vk_run oi_vk_run;

/* Makes memory and pipelines on the device, which must outlive the run, and uploads the weights.
 * The sentence of a failure is in oi_vk_why. */
oi_vk_status oi_vk_run_new(oi_vk *d, const oi_vk_program *p, const void *weights, oi_vk_run **out);
void oi_vk_run_free(oi_vk_run *r); /* waits for the device; NULL: nothing */
oi_vk *oi_vk_run_device(oi_vk_run *r);

/* -- a step -- */

/* `host` is the program's struct; `kept` bytes at `keep` go back to what they are if it fails. */
void oi_vk_run_begin(oi_vk_run *r, void *host, void *keep, size_t kept);
/* All inputs from `offset` on; a step reads them from mapped memory that has their places. */
void *oi_vk_run_input(oi_vk_run *r, uint64_t offset);
void oi_vk_run_take(oi_vk_run *r, uint64_t offset, uint64_t bytes);
/* The run-time numbers of the dispatch, which the caller fills in. `base` of an operand is among
 * them. */
unsigned char *oi_vk_run_dispatch(oi_vk_run *r, uint32_t kernel, const oi_vk_operand *operands);
/* `bytes` bytes of the operand from byte `base` on get the pattern: one element, or words. */
void oi_vk_run_fill(oi_vk_run *r, oi_vk_operand to, uint64_t bytes, uint64_t pattern);
void oi_vk_run_copy(oi_vk_run *r, oi_vk_operand to, oi_vk_operand from);
/* Keeps `bytes` bytes of the operand from byte `base` on for a rollback; never more than `most`. */
void oi_vk_run_log(oi_vk_run *r, oi_vk_operand from, uint64_t bytes, uint64_t most);
void oi_vk_run_keep(oi_vk_run *r); /* the same for all of the state */
/* Submits what was said, and waits. *failed gets the error of the first kernel that failed, or 0.
 */
oi_vk_status oi_vk_run_wait(oi_vk_run *r, int *failed);
/* The same if the device has yet to compute known value `known`. */
oi_vk_status oi_vk_run_know(oi_vk_run *r, uint32_t known, int *failed);
/* The end of a step: results of `bytes` bytes from `offset` on become readable. *failed is what the
 * host found; a kernel that failed before takes its place. If anything failed, the state goes back
 * to what it was. */
oi_vk_status oi_vk_run_end(oi_vk_run *r, uint64_t offset, uint64_t bytes, int *failed);
const void *oi_vk_run_output(const oi_vk_run *r, uint64_t offset);

/* -- between steps, or after waiting -- */

oi_vk_status oi_vk_run_read(oi_vk_run *r, void *to, oi_vk_operand from);
oi_vk_status oi_vk_run_write(oi_vk_run *r, oi_vk_operand to, const void *from);
void *oi_vk_run_room(oi_vk_run *r, size_t bytes); /* memory for either; NULL: there is none */

typedef struct oi_vk_counts {
    uint64_t submitted, recorded, dispatched, barriers; /* since the beginning; the last two are of
                                                           what was recorded */
} oi_vk_counts;
oi_vk_counts oi_vk_run_counts(const oi_vk_run *r);

/* -- operands -- */

static inline oi_vk_operand oi_vk_entry(oi_vk_operand of, int64_t entry, uint64_t stride)
{
    of.offset += (uint64_t)entry * stride;
    return of;
}

static inline oi_vk_operand oi_vk_from(oi_vk_operand of, int64_t element)
{
    of.base = (int32_t)element;
    return of;
}

/* The first bytes of a word. */
static inline uint64_t oi_vk_bits(const void *from, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)from;
    uint64_t word = 0;
    for (size_t i = 0; i < bytes; i++)
        word |= (uint64_t)at[i] << 8 * i;
    return word;
}

static inline oi_vk_operand oi_vk_part_of(oi_vk_operand of, int64_t first, uint64_t bytes)
{
    of.offset += (uint64_t)first;
    of.bytes = bytes;
    return of;
}

#ifdef __cplusplus
}
#endif

#endif
