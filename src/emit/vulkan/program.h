/* program.h: whole programs for Vulkan: what runs on the device, and what the host does meanwhile.
 * Grouped by the file that implements it. */
#ifndef OI_EMIT_VULKAN_PROGRAM_H
#define OI_EMIT_VULKAN_PROGRAM_H

#include "emit/c/c.h"
#include "emit/vulkan/glsl.h"

/* A stretch of the memory of inputs and results. */
typedef struct oi_vstretch {
    uint64_t first, bytes;
} oi_vstretch;

/* One program. Kernels of the plan become dispatches, numbered as they are printed. */
typedef struct oi_vprogram {
    uint64_t *at;          /* by tensor: its offset in the device's memory */
    oi_vstretch *in, *out; /* by graph */
    uint64_t io_bytes, state_bytes;
    bool *is_known;  /* by tensor: the host needs its value */
    bool *is_made;   /* by tensor: some kernel writes it */
    uint32_t *known; /* by tensor: its number among values that the device computes and the
                        host needs, or OI_NO_ID */
    uint32_t n_known;
    OI_VEC(const char *) shaders; /* by number */
    uint32_t *first;              /* by kernel: the number of its first dispatch */
    uint64_t shared_bytes, group_invocations;
    uint32_t features; /* bits of oi_feature that the shaders need */
    bool full_subgroups;
    bool uses_know, uses_fetch, uses_wait, uses_check; /* functions that the steps call */
} oi_vprogram;

/* -- layout.c: where tensors lie, and what the host knows -- */

void oi_v_lay_out(const oi_plan *p, oi_vprogram *out);
/* A statement reads the value of the tensor on the host. */
bool oi_v_needs(const oi_plan *p, const oi_stmt *s, const oi_stmt_use *use);
uint64_t oi_v_state_at(const oi_vprogram *v, uint32_t tensor);

/* -- form.c: what a step says -- */

extern const oi_cform oi_cform_vulkan;
const char *oi_v_operand(oi_cprog *c, uint32_t tensor); /* the whole tensor, as an initialiser */
void oi_v_put_kernels(oi_cprog *c); /* a function per kernel, which says its dispatches */

/* -- program.c -- */

void oi_emit_vulkan(const oi_plan *p, const oi_certificate *k, oi_emitted *files);

/* -- build.c -- */

void oi_v_build_files(oi_cprog *c, oi_emitted *files);

/* -- tool.c -- */

oi_tool oi_vulkan_tool(const oi_device_info *device, const char *compiler);

#endif
