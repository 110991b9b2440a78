/* target.h: what a target can do. Passes ask here, and never for the kind of device.
 *
 * A target is a filled-in oi_target, listed in emit/targets.c. Its function `caps` reads the device
 * file and answers every question of the passes. emit/null/ is the smallest complete target. */
#ifndef OI_PLAN_TARGET_H
#define OI_PLAN_TARGET_H

#include "base/base.h"
#include "base/ops.h"

typedef struct oi_certificate oi_certificate;
typedef struct oi_emitted oi_emitted;
typedef struct oi_recipe oi_recipe;

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
    /* Workers may differ in speed: long kernels run in dynamic chunks, and a worker that is
     * done takes the next one. */
    bool dynamic_chunks;
    /* Kernels may run as row pipelines over line buffers. */
    bool row_pipelines;
    /* Workers are groups of at most so many invocations, which run a kernel together: output axes
     * become the index of an invocation instead of loops, and the language (oi_lang) says how lanes
     * add what they have. 0: workers are threads. */
    uint64_t group_size;
    /* Groups stay: they have group_size invocations and run all kernels of a step. Else they end
     * with a kernel, which has as many of them as it has work for. */
    bool groups_stay;
    /* So many of them exchange values without memory; 0: they do not. */
    uint64_t subgroup_size;
    /* Another processor runs the statements, and sends numbers that it sets along with each call of
     * a kernel. */
    bool sends_values;
    /* An invocation reads up to so many neighbouring bytes at once; 0: it reads element by element.
     */
    uint64_t load_bytes;
    /* Memory that the invocations of a group share. */
    uint64_t shared_bytes;
    /* The compiler of the emitted source vectorises plain loops. Without that, sums keep the
     * simulator's order. */
    bool vectors;
    int64_t vector_lanes; /* floats of a vector register; 0: there are none */
    /* The tuned bodies that its programs can call, and the rules that choose among them; ends with
     * a NULL name (recipe/recipe.h). NULL: there are none, so that all kernels are plain nests. */
    const oi_recipe *recipes;
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
    /* Every tensor begins at a multiple of so many bytes, a power of two. */
    uint64_t alignment;
} oi_caps;

/* Several workers may run a step. */
static inline bool oi_caps_share(const oi_caps *c)
{
    return c->workers != 1;
}

/* -- building and running a program on this machine -- */

/* A program or shared library that must be installed. */
typedef struct oi_tool_need {
    const char *name;    /* "make"; a library: "libcuda.so.1" */
    const char *package; /* Debian's name for it; NULL: the user chose it */
    bool is_library;
} oi_tool_need;

#define OI_NEEDS      4
#define OI_TOOL_WORDS 10

/* How emitted programs of a device are built and run here. src/verify runs these commands in the
 * folder of the program; verify, bench, tune and targets know nothing else about a target. The
 * build is `make -s`, with the compiler as a variable and flags in the environment. */
typedef struct oi_tool {
    const char *no_build, *no_run;                  /* why this machine cannot; NULL: it can */
    oi_tool_need build[OI_NEEDS], run[OI_NEEDS];    /* end with a NULL name */
    const char *compiler;                           /* its path or name */
    const char *compiler_variable, *flags_variable; /* of the Makefile: "CC", "CFLAGS" */
    const char *trial[OI_TOOL_WORDS];  /* a command that succeeds if the compiler works */
    const char *runner[OI_TOOL_WORDS]; /* words before `./NAME weights.bin` */
    /* A simulated clock counts these ("instructions", "cycles") and no arguments reach the program.
     * NULL: it measures nanoseconds. */
    const char *counts;
    /* The machine's processor lacks instructions that the program uses. It is tried all the same:
     * the program itself says so. */
    bool lacks_instructions;
    /* What a machine may lack that the program itself asks for; NULL: instructions. */
    const char *needs;
    const char *measure_flags; /* of a build for oi_target.measure */
    const char *measure_goal;  /* what such a build makes */
    const char *goal;          /* what a build makes; NULL: the program */
    oi_tool_need measure[OI_NEEDS];
} oi_tool;

typedef struct oi_target {
    const char *name;
    oi_synth_kind writes;
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
    /* The tools for the device; `compiler` NULL: the standard one. NULL: its programs are not built
     * and run here. */
    oi_tool (*tool)(const oi_device_info *device, const char *compiler);
    /* Reports what the log of a failed build means, if it is no error of the compiler. May be NULL.
     */
    bool (*explain)(const oi_device_info *device, const char *log, oi_diag *d);
    /* Measures the program that was built in `dir` with measure_flags. NULL: nothing is measured.
     */
    oi_status (*measure)(const oi_plan *p, const char *dir, oi_plan_measured *out, oi_diag *d);
    /* Which ops its programs compute. NULL: all. Helpers are functions of src/body/scalar.h. */
    bool (*has_helper)(const oi_device_info *device, oi_arena *a, const char *name);
    /* Whether they compute the op, or move its elements, in that type. NULL: they do. */
    bool (*has_type)(const oi_device_info *device, const oi_op *op, oi_dtype t);
    bool has_bodies; /* takes bodies of custom ops, which are C */
} oi_target;

extern const oi_target *const oi_targets[];                  /* ends with NULL */
const oi_target *oi_target_of(const oi_device_info *device); /* NULL: no target supports it */

#endif
