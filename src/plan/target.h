/* target.h: what a target can do. Passes ask here, and never for the kind of device.
 *
 * A target is a filled-in oi_target, listed in emit/targets.c. Its function `caps` reads the device
 * file and answers every question of the passes. emit/null/ is the smallest complete target. */
#ifndef OI_PLAN_TARGET_H
#define OI_PLAN_TARGET_H

#include "base/base.h"

typedef struct oi_certificate oi_certificate;
typedef struct oi_emitted oi_emitted;

/* What a plan is optimised for. */
typedef enum oi_goal {
    OI_GOAL_TIME,  /* less time; caches decide where rows are kept */
    OI_GOAL_MEMORY /* less memory, the scarcest resource of the device */
} oi_goal;

/* The levels of axes (oi_axis_level) that a plan uses follow from these: workers, row_pipelines
 * (streams) and group_size (groups, lanes). Vectors and unrolled loops may occur for any target: a
 * language without them prints a loop over an array. */
typedef struct oi_caps {
    oi_goal goal;
    /* Workers run a step together and synchronise at barriers. 1: one worker; 0: the number is
     * chosen at run time, at least 1. */
    uint64_t workers;
    /* Kernels may run as row pipelines over line buffers. */
    bool row_pipelines;
    /* Workers are groups of at most so many invocations, which run a kernel together and then end:
     * output axes become the index of an invocation instead of loops, and the language (oi_lang)
     * says how lanes add what they have. 0: workers are threads. */
    uint64_t group_size;
    /* So many of them exchange values without memory; 0: they do not. */
    uint64_t subgroup_size;
    /* Memory that the invocations of a group share. */
    uint64_t shared_bytes;
    /* The compiler of the emitted source vectorises plain loops. Without that, sums keep the
     * simulator's order. */
    bool vectors;
    /* Private memory of a kernel: stack, registers. */
    uint64_t private_bytes;
    /* Memory for a step that the target reserves; 0: the system provides it. */
    uint64_t stack_bytes;
    /* Code and weights are in separate read-only memory. If not, ram_bytes holds everything. 0: no
     * limit is known. */
    bool has_rom;
    uint64_t rom_bytes, ram_bytes;
    /* Shared-cache warm-up: before a step that mostly reads weights, and more than so many bytes of
     * them, all workers read the same slices of them together. 0 slices: they do not. */
    uint64_t warm_up_slices, warm_up_bytes;
    /* Alignment of every tensor in bytes; 0: OI_ALIGN. */
    uint64_t alignment;
} oi_caps;

/* Several workers may run a step. */
static inline bool oi_caps_share(const oi_caps *c)
{
    return c->workers != 1;
}

typedef struct oi_target {
    const char *name;
    bool (*takes)(const oi_device_info *device); /* whether it supports the device */
    oi_caps (*caps)(const oi_device_info *device);
    /* The name to use for a program or graph if the wanted one is taken in the language or the
     * files. NULL: any name is valid. */
    const char *(*program_name)(oi_arena *a, const char *wanted);
    const char *(*graph_name)(oi_arena *a, const char *wanted);
    /* Calls `note` for members whose names differ from those in the graph; NULL: none do. */
    void (*note_names)(const oi_plan *p, void (*note)(void *ctx, const char *was, const char *is),
                       void *ctx);
    /* Computes what the program needs. */
    void (*certify)(const oi_plan *p, oi_certificate *out);
    /* Writes all files but the weights; may refuse (files->status). NULL: whole programs are not
     * supported, and `emit_why` says why. */
    void (*emit)(const oi_plan *p, const oi_certificate *c, oi_emitted *files);
    /* Writes only what runs on the device itself. NULL: nothing runs without a host. */
    void (*emit_device)(const oi_plan *p, oi_emitted *files);
    const char *emit_why;
    bool has_weights; /* weights are part of the program */
} oi_target;

extern const oi_target *const oi_targets[];                  /* ends with NULL */
const oi_target *oi_target_of(const oi_device_info *device); /* NULL: no target supports it */

#endif
