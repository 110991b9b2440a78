/* cost.h: what work takes on a device, by its description.
 *
 * Recipes and passes ask here how much fits which cache and when sharing pays, instead of holding
 * numbers of one machine. A device file may state what was measured (`cpu.…_per_s`,
 * `cpu.barrier_ns`) and the sizes that were found best (`tuning.…`): `openinfer bench --tune`
 * writes such a file. What it does not state is what a usual machine with these instructions does.
 */
#ifndef OI_COST_H
#define OI_COST_H

#include "openinfer.h"

typedef enum oi_level { OI_LEVEL_L1, OI_LEVEL_L2, OI_LEVEL_L3, OI_LEVEL_MEMORY } oi_level;
#define OI_LEVELS 4

typedef struct oi_machine {
    unsigned threads;
    uint64_t cache_bytes[OI_LEVELS]; /* of memory: no end */
    double bytes_per_ns[OI_LEVELS];  /* that one thread reads from there */
    double memory_bytes_per_ns;      /* that all threads together read from memory */
    double f32_macs_per_ns, int8_macs_per_ns, ops_per_ns, scalar_ops_per_ns; /* of one thread */
    double tile_macs_per_ns; /* of bf16; only where there are tiles */
    double barrier_ns;       /* all threads wait for each other */
    double call_ns;          /* a kernel beside its work */
} oi_machine;

oi_machine oi_cost_machine(const oi_device_info *t);

/* Where so many bytes are found that were touched a while ago. */
oi_level oi_cost_level(const oi_machine *m, uint64_t bytes);

/* What one run of a kernel does. */
typedef struct oi_work_size {
    uint64_t bytes[OI_LEVELS]; /* by where they come from */
    uint64_t macs;
    bool is_int8;             /* they are of 8-bit integers */
    double percent;           /* of the machine's multiply-accumulates that the body reaches */
    uint64_t ops, scalar_ops; /* element-wise ones, in vectors and one by one */
    bool is_parallel;         /* all threads take part */
} oi_work_size;

/* In ns: the slowest of reading, multiplying and the rest, which run beside each other. */
double oi_cost_time(const oi_machine *m, const oi_work_size *w);

/* -- sizes to plan with -- */

int64_t oi_cost_share(const oi_device_info *t); /* elements from which threads share a kernel */
uint64_t oi_cost_elements(const oi_device_info *t, uint64_t macs, bool is_int8); /* as dear */
int64_t oi_cost_unit(const oi_device_info *t);  /* floats of a cache line: they stay together */
uint64_t oi_cost_near(const oi_device_info *t); /* bytes that may be worked on again and again */
uint64_t oi_cost_kept(const oi_device_info *t); /* bytes that surely stay in the second cache */
uint64_t oi_cost_held(const oi_device_info *t); /* and in any cache at all */
int64_t oi_cost_gemm_depth(const oi_device_info *t, int64_t width); /* rows of a panel of b */
int64_t oi_cost_gemm_rows(const oi_device_info *t, int64_t depth);  /* of a at once */
int64_t oi_cost_qlinear_bytes(const oi_device_info *t);             /* of x in 8 bits at a time */
int64_t oi_cost_stream_ahead(const oi_device_info *t);              /* bytes to ask for early */
int64_t oi_cost_sdpa_floats(const oi_device_info *t);               /* scores at a time */

/* What a body with tiles of bf16 reaches, as a percentage of multiply-accumulates of floats in
 * vectors: it multiplies for `share` of its time. */
uint16_t oi_cost_tiles(const oi_device_info *t, double share);

#endif
