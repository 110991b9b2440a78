/* target.c: capabilities of CUDA programs: a step is one kernel, whose blocks are the workers. */
#include "device/cost.h"
#include "emit/cuda/cuda.h"

#include <stdlib.h>

#define THREADS 512 /* of a block: 128 registers for each */
#define LEAST   32  /* a warp */

static bool takes(const oi_device_info *d)
{
    return d->api == OI_DEVICE_CUDA;
}

/* A power of two: lanes add what they have pairwise. */
uint64_t oi_cuda_threads(const oi_device_info *d)
{
    const uint64_t most = d->cuda.max_threads_per_block, wide = d->limits.max_workgroup_size[0];
    uint64_t n = THREADS;
    while (n > LEAST && (n > most || (wide && n > wide)))
        n /= 2;
    return n;
}

const char *oi_cuda_arch(oi_arena *a, const oi_device_info *d)
{
    char *rest;
    const unsigned long major = strtoul(d->cuda.compute_capability, &rest, 10);
    return oi_arena_printf(a, "%lu%lu", major, *rest == '.' ? strtoul(rest + 1, NULL, 10) : 0);
}

static oi_caps caps(const oi_device_info *d)
{
    const uint64_t threads = oi_cuda_threads(d);
    return (oi_caps){.goal = OI_GOAL_TIME,
                     .workers = 0,
                     .group_size = threads,
                     .groups_stay = true,
                     .subgroup_size = 32,
                     .load_bytes = 16,
                     .shared_bytes =
                         OI_CUDA_SHARED - OI_CUDA_COPY_BYTES - OI_CUDA_SUM_BYTES * threads - 64,
                     .private_bytes = oi_cost_near(d),
                     .alignment = 256,
                     .ram_bytes = d->memory.global_bytes};
}

static bool has_helper(const oi_device_info *d, oi_arena *a, const char *name)
{
    (void)d, (void)a, (void)name;
    return true; /* those of C, and those of f64 that CUDA has */
}

const oi_target oi_target_cuda = {.name = "cuda",
                                  .writes = OI_SYNTH_PROGRAM,
                                  .takes = takes,
                                  .caps = caps,
                                  .program_name = oi_c_program_name,
                                  .graph_name = oi_c_graph_name,
                                  .note_names = oi_c_note_names,
                                  .certify = oi_cuda_certify,
                                  .emit = oi_emit_cuda,
                                  .has_weights = true,
                                  .has_helper = has_helper,
                                  .tool = oi_cuda_tool};
