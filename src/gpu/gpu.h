/* gpu.h: a Vulkan device that runs ops for simulators. Grouped by the file that implements it. */
#ifndef OI_GPU_H
#define OI_GPU_H

#include "base/base.h"
#include "emit/vulkan/host/vulkan_device.h"
#include "sim/backend.h"

typedef struct gpu gpu;

/* -- describe.c: the device as synthesized programs see it -- */

#define GPU_FEATURES                                                                     \
    (OI_VK_INT64 | OI_VK_FLOAT64 | OI_VK_STORAGE8 | OI_VK_STORAGE16 | OI_VK_TIMESTAMPS | \
     OI_VK_MEMORY_BUDGET)

oi_status gpu_describe(const oi_vk_info *info, uint32_t features, oi_device **out, oi_diag *d);

/* -- compile.c: GLSL to SPIR-V -- */

typedef struct gpu_compiler {
    char *path;      /* of the program */
    bool is_glslang; /* glslangValidator; else glslc */
    char *stamp;     /* what tells this program from another version of it */
    char *cache;     /* folder; NULL: nothing is kept */
} gpu_compiler;

/* A shader on its way: text, code, pipeline. */
typedef struct gpu_shader {
    const char *text;
    size_t size;
    uint32_t *code; /* SPIR-V, of malloc; NULL: not yet, or no longer needed */
    size_t code_bytes;
    uint32_t n_bindings;
    bool full_subgroups;
    oi_vk_pipeline *pipeline;
} gpu_shader;

/* Finds a compiler and the user's cache. OI_ERR_ENV: there is none, and d says so. */
oi_status gpu_compiler_find(gpu_compiler *c, oi_diag *d);
void gpu_compiler_free(gpu_compiler *c);
/* The code of shaders that have none yet: from the cache, or all others by few runs of the
 * compiler. OI_ERR_ENV: `why` has OI_VK_NAME bytes and says what; some may have their code. */
oi_status gpu_compile(gpu_compiler *c, gpu_shader *const *shaders, size_t n, char *why);

/* -- memory.c -- */

struct oi_remote {
    oi_vk_buffer *buffer;
    uint64_t bytes;  /* of the buffer */
    oi_remote *next; /* among those that are free */
};

typedef struct gpu_memory {
    oi_remote *free; /* the one that was released last first */
    uint64_t limit, used;
} gpu_memory;

oi_status gpu_reserve(gpu *g, uint64_t bytes, oi_remote **out);
void gpu_release(gpu *g, oi_remote *r);
oi_status gpu_trim(gpu *g);   /* gives back what is free */
void gpu_memory_free(gpu *g); /* all that was released; before the device is closed */

/* -- record.c: commands in the order of the calls -- */

#define GPU_LISTS       4u         /* recorded while others run */
#define GPU_RING        (1u << 20) /* small things on their way to the device */
#define GPU_RING_ITEM   (64u << 10)
#define GPU_MOST_ORDERS 256u /* dispatches and copies of a list */

typedef struct gpu_recorder {
    oi_vk_list *lists[GPU_LISTS];
    uint32_t at, n_orders; /* the list that is being recorded, and what it has */
    bool is_open;          /* it has something */
    bool is_held;          /* is not submitted before it is complete */
    oi_vk_buffer *ring, *failure;
    uint64_t ring_at;
} gpu_recorder;

oi_status gpu_recorder_new(gpu *g);
/* The list to record into, after what was recorded before. NULL: failed, g->why says why. */
oi_vk_list *gpu_record(gpu *g);
oi_status gpu_flush(gpu *g); /* submits what is recorded */
oi_status gpu_sync(gpu *g);  /* and waits until all is done */
/* A copy of a few bytes that commands recorded now may read; alignment of bindings. */
oi_status gpu_ring_put(gpu *g, const void *from, uint64_t bytes, oi_vk_part *out);

/* -- call.c -- */

/* Where a binding of a dispatch, or a member of its block, comes from. */
typedef enum gpu_source {
    GPU_NOTHING,
    GPU_IN,
    GPU_OUT,
    GPU_ATTR,
    GPU_OWN,
    GPU_FAILURE,
    GPU_BLOCK
} gpu_source;

typedef struct gpu_binding {
    gpu_source source;
    uint32_t id;
    uint64_t bytes;
} gpu_binding;

/* An attribute that only the run knows, in the block of scalars. */
typedef struct gpu_member {
    uint32_t attr;
    uint32_t offset, bytes; /* of i64 */
} gpu_member;

/* The elements of an attribute must be 0 ... limit. */
typedef struct gpu_check {
    uint32_t attr;
    int64_t limit;
} gpu_check;

typedef struct gpu_output {
    uint64_t bytes;
    bool shares_bytes; /* several elements lie in one: bits behind the last must be 0 */
} gpu_output;

typedef struct gpu_dispatch {
    gpu_shader *shader;
    gpu_binding *bindings;
    gpu_member *members;
    uint32_t n_bindings, n_members, block_bytes;
    uint64_t groups;
} gpu_dispatch;

/* A tensor between the dispatches of a call, or a table of constants. */
typedef struct gpu_own {
    uint64_t bytes;
    void *table;     /* its contents, or NULL */
    oi_remote *held; /* a table's, once it is on the device */
} gpu_own;

struct oi_remote_call {
    oi_arena *arena;
    gpu_dispatch *dispatches;
    gpu_own *own;
    gpu_check *checks;
    gpu_output *outputs;
    OI_VEC(gpu_shader *) shaders;
    uint32_t n_dispatches, n_own, n_checks, n_out;
    bool can_fail;
    bool is_ready;   /* all shaders have pipelines */
    bool is_refused; /* the host runs it */
};

oi_status gpu_prepare(gpu *g, const oi_kernel_query *q, oi_remote_call **out);
/* Compiles what these calls will need, all at once. */
oi_status gpu_expect(gpu *g, const oi_kernel_query *const *queries, size_t n);
void gpu_call_free(gpu *g, oi_remote_call *c);

/* -- run.c -- */

oi_status gpu_upload(gpu *g, oi_remote *to, uint64_t at, const void *from, uint64_t bytes);
oi_status gpu_download(gpu *g, void *to, oi_remote *from, uint64_t bytes);
oi_status gpu_run(gpu *g, oi_remote_call *c, oi_remote_io *io);

/* -- vulkan.c -- */

struct gpu {
    oi_backend base;
    oi_vk *d;
    oi_device *device;
    gpu_compiler compiler;
    gpu_memory memory;
    gpu_recorder recorder;
    oi_arena *arena; /* of the calls' keys */
    oi_map keys;     /* of a call: its number */
    OI_VEC(oi_remote_call *) calls;
    char why[2 * OI_VK_NAME];
};

oi_status gpu_judge(gpu *g, oi_vk_status s); /* OI_NOT_FOUND: no memory */
oi_status gpu_fail(gpu *g, const char *fmt, ...) OI_PRINTF(2, 3);

#endif
