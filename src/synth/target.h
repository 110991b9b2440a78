/* target.h: what a target can do. Passes ask here; none asks what kind of device it plans for.
 *
 * A target is a filled-in oi_target, listed in emit/targets.c. Its function `caps` reads the device
 * file and answers every question that a pass has. emit/null/ is the smallest complete target. */
#ifndef OI_TARGET_H
#define OI_TARGET_H

#include "base/base.h"

typedef struct oi_unit oi_unit;
typedef struct oi_certificate oi_certificate;
typedef struct oi_emitted oi_emitted;

/* Why a plan is better than another. */
typedef enum oi_goal {
    OI_GOAL_TIME,  /* it takes less time; caches decide where rows are kept */
    OI_GOAL_MEMORY /* it needs less memory: what the device has least of */
} oi_goal;

typedef struct oi_caps {
    oi_goal goal;
    /* Workers walk through a step together and meet at barriers. 1: one does all; 0: as many as
     * the run decides, at least one. */
    uint64_t workers;
    /* Kernels may run row by row over line buffers. */
    bool row_pipelines;
    /* Every output element is an invocation of its own: output axes become its number, not loops.
     */
    bool element_per_lane;
    /* The compiler of the emitted source makes vectors of plain loops. Without them sums keep the
     * simulator's order. */
    bool vectors;
    /* What a kernel may hold for itself: a stack, registers. */
    uint64_t private_bytes;
    /* Memory of a step that the target reserves; 0: the system provides it. */
    uint64_t stack_bytes;
    /* Code and weights lie in read-only memory of their own. Without it ram_bytes, 0 where no limit
     * is known, holds everything. */
    bool has_rom;
    uint64_t rom_bytes, ram_bytes;
    /* Bytes that the address of every tensor is a multiple of; 0: OI_ALIGN. */
    uint64_t alignment;
} oi_caps;

/* Several workers may take part in a step. */
static inline bool oi_caps_share(const oi_caps *c)
{
    return c->workers != 1;
}

typedef struct oi_target {
    const char *name;
    bool (*takes)(const oi_device_info *device); /* whether it makes programs for the device */
    oi_caps (*caps)(const oi_device_info *device);
    /* What a program or graph of that name is called instead, where the language or the files have
     * another use for it. NULL: any name will do. */
    const char *(*program_name)(oi_unit *u, const char *wanted);
    const char *(*graph_name)(oi_unit *u, const char *wanted);
    /* What the program will need; may refuse (u->status). After the passes. */
    void (*certify)(oi_unit *u, oi_certificate *out);
    /* All files but the weights. NULL: no whole programs yet, and `emit_why` says so. */
    void (*emit)(oi_unit *u, const oi_certificate *c, uint64_t hash, oi_emitted *files);
    /* Only what runs on the device itself; NULL: nothing runs apart from a host. */
    void (*emit_device)(oi_unit *u, oi_emitted *files);
    const char *emit_why;
    bool has_weights; /* the weights travel with the program */
} oi_target;

extern const oi_target *const oi_targets[];                  /* ends with NULL */
const oi_target *oi_target_of(const oi_device_info *device); /* NULL: none takes it */

#endif
