/* vulkan_device.h: one Vulkan device: buffers, compute pipelines, recorded lists of commands.
 *
 * The Vulkan loader is opened at run time; only <vulkan/vulkan_core.h> is needed to compile. What
 * may fail returns a status and leaves one sentence in oi_vk_why. A device and its objects belong
 * to one thread at a time. oi_vk_close frees every object that is left. */
#ifndef VULKAN_DEVICE_H
#define VULKAN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum oi_vk_status {
    OI_VK_OK,
    OI_VK_NO_LOADER,  /* no Vulkan loader on this machine */
    OI_VK_NO_DEVICE,  /* no device, or not the wanted one */
    OI_VK_NO_FEATURE, /* the device lacks a feature */
    OI_VK_NO_MEMORY,  /* of the device or the host */
    OI_VK_LOST,       /* the device was lost: close it */
    OI_VK_FAILED      /* anything else: the driver's error is in the sentence */
} oi_vk_status;

/* -- devices -- */

/* What a device can do; bits of a mask. Only what `wants` or `needs` ask for is enabled. */
typedef enum oi_vk_feature {
    OI_VK_INT64 = 1 << 0,
    OI_VK_FLOAT64 = 1 << 1,
    OI_VK_INT16 = 1 << 2,
    OI_VK_INT8 = 1 << 3,
    OI_VK_FLOAT16 = 1 << 4,
    OI_VK_STORAGE8 = 1 << 5,       /* buffers of 8-bit elements */
    OI_VK_STORAGE16 = 1 << 6,      /* buffers of 16-bit elements */
    OI_VK_SUBGROUPS = 1 << 7,      /* basic, arithmetic, shuffle and ballot, in compute shaders */
    OI_VK_FULL_SUBGROUPS = 1 << 8, /* pipelines may ask for full subgroups */
    OI_VK_SUBGROUP_SIZES = 1 << 9, /* pipelines may ask for a subgroup's size */
    OI_VK_DOT8 = 1 << 10,          /* integer dot product of four bytes */
    OI_VK_MEMORY_MODEL = 1 << 11,  /* Vulkan memory model with device scope */
    OI_VK_COOPERATIVE = 1 << 12,   /* cooperative matrices of VK_KHR_cooperative_matrix */
    OI_VK_TIMESTAMPS = 1 << 13,    /* oi_vk_list_stamp */
    OI_VK_MEMORY_BUDGET = 1 << 14, /* oi_vk_memory_free knows more than the heap's size */
    OI_VK_FEATURES = (1 << 15) - 1
} oi_vk_feature;

#define OI_VK_NAME 256

typedef struct oi_vk_info {
    char name[OI_VK_NAME];
    char driver[OI_VK_NAME]; /* name and version */
    const char *type;        /* "discrete GPU", "integrated GPU", "virtual GPU", "CPU", "other" */
    uint32_t version[3];     /* of Vulkan */
    uint32_t vendor, device; /* PCI numbers */
    uint32_t features;       /* bits of oi_vk_feature */
    uint32_t group_invocations, group_size[3], group_count[3];
    uint32_t shared_bytes, push_bytes;
    uint32_t subgroup_size, subgroup_least, subgroup_most;
    uint32_t buffer_align;  /* of a binding's offset */
    uint64_t binding_bytes; /* largest part of a buffer that a shader sees */
    uint64_t buffer_bytes;  /* largest allocation */
    uint64_t memory_bytes;  /* of the largest device-local heap */
    double stamp_ns;        /* nanoseconds of a timestamp's tick */
} oi_vk_info;

/* Fills `out` with at most `cap` devices that run compute shaders; *n is how many there are. `why`
 * has OI_VK_NAME bytes and gets a sentence on failure. */
oi_vk_status oi_vk_devices(oi_vk_info *out, size_t cap, size_t *n, char *why);

/* Another program's device, which stays open: see oi_vk_choice.own. */
typedef struct oi_vk_own {
    void *get_instance_proc_addr; /* PFN_vkGetInstanceProcAddr */
    void *instance, *physical, *device, *queue;
    uint32_t family; /* of the queue */
} oi_vk_own;

typedef struct oi_vk_choice {
    const char *device;   /* its number in oi_vk_devices, or a part of its name; NULL: environment
                             variable OPENINFER_VULKAN_DEVICE, or else the fastest kind */
    uint32_t needs;       /* features without which opening fails */
    uint32_t wants;       /* features to enable if the device has them */
    const oi_vk_own *own; /* use this device instead; it must have `needs` enabled */
} oi_vk_choice;

typedef struct oi_vk oi_vk;

/* `why` has OI_VK_NAME bytes and gets a sentence on failure. */
oi_vk_status oi_vk_open(oi_vk **out, const oi_vk_choice *choice, char *why);
void oi_vk_close(oi_vk *d); /* waits for the device; NULL: nothing */
const oi_vk_info *oi_vk_about(const oi_vk *d);
uint32_t oi_vk_enabled(const oi_vk *d);     /* features that are on */
const char *oi_vk_why(const oi_vk *d);      /* the sentence of the last failure */
uint64_t oi_vk_memory_used(const oi_vk *d); /* bytes of all buffers */
uint64_t oi_vk_memory_free(const oi_vk *d); /* device-local bytes that are likely available */

/* -- buffers -- */

typedef enum oi_vk_place {
    OI_VK_DEVICE,  /* device-local; the host reaches it through staging */
    OI_VK_UPLOAD,  /* mapped: the host writes, the device reads */
    OI_VK_READBACK /* mapped, cached: the device writes, the host reads */
} oi_vk_place;

typedef struct oi_vk_buffer oi_vk_buffer;

/* Its contents are undefined. */
oi_vk_status oi_vk_buffer_new(oi_vk *d, uint64_t bytes, oi_vk_place place, oi_vk_buffer **out);
void oi_vk_buffer_free(oi_vk_buffer *b);       /* NULL: nothing; no submitted list may use it */
void *oi_vk_buffer_map(const oi_vk_buffer *b); /* NULL: not mapped. Always coherent */
uint64_t oi_vk_buffer_bytes(const oi_vk_buffer *b);

/* They return when it is done; large ones go through two halves of a staging buffer in turn. */
oi_vk_status oi_vk_upload(oi_vk_buffer *to, uint64_t offset, const void *from, uint64_t bytes);
oi_vk_status oi_vk_download(void *to, oi_vk_buffer *from, uint64_t offset, uint64_t bytes);

/* -- pipelines -- */

typedef struct oi_vk_shader {
    const uint32_t *code; /* SPIR-V; its entry is main */
    size_t bytes;
    uint32_t n_bindings; /* storage buffers 0 ... n - 1 of set 0 */
    uint32_t push_bytes;
    const uint32_t *constants; /* specialisation constants 0 ... n - 1, a word each */
    uint32_t n_constants;
    bool full_subgroups;    /* needs OI_VK_FULL_SUBGROUPS */
    uint32_t subgroup_size; /* needs OI_VK_SUBGROUP_SIZES; 0: the driver's choice */
} oi_vk_shader;

typedef struct oi_vk_pipeline oi_vk_pipeline;

oi_vk_status oi_vk_pipeline_new(oi_vk *d, const oi_vk_shader *s, oi_vk_pipeline **out);
void oi_vk_pipeline_free(oi_vk_pipeline *p); /* NULL: nothing; no recorded list may use it */

/* -- lists of commands: recorded once, submitted as often as wanted -- */

typedef struct oi_vk_list oi_vk_list;

/* Part of a buffer. bytes 0: to its end. buffer NULL: the shader does not use the binding. */
typedef struct oi_vk_part {
    oi_vk_buffer *buffer;
    uint64_t offset, bytes;
} oi_vk_part;

oi_vk_status oi_vk_list_new(oi_vk *d, oi_vk_list **out); /* empty, being recorded */
void oi_vk_list_free(oi_vk_list *l);                     /* NULL: nothing */
/* Recording. A failure is kept, and oi_vk_list_end returns it. */
/* `parts` has n_bindings elements, `push` push_bytes. More groups than a row of them may have
 * become several rows: a shader counts gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x
 * and ignores what is too much. */
void oi_vk_list_dispatch(oi_vk_list *l, oi_vk_pipeline *p, const oi_vk_part *parts,
                         const void *push, uint64_t groups);
void oi_vk_list_copy(oi_vk_list *l, oi_vk_part to, oi_vk_part from); /* from.bytes bytes */
void oi_vk_list_fill(oi_vk_list *l, oi_vk_part to, uint32_t word);   /* multiples of four bytes */
/* What comes later waits for the accesses of what came before. */
void oi_vk_list_barrier(oi_vk_list *l);
void oi_vk_list_stamp(oi_vk_list *l); /* when everything before it was done */
oi_vk_status oi_vk_list_end(oi_vk_list *l);
/* Lists that are submitted run in that order, each after the one before it, and see what the host
 * wrote before. */
oi_vk_status oi_vk_list_submit(oi_vk_list *l);
oi_vk_status oi_vk_list_wait(oi_vk_list *l);     /* until done; the host sees what it wrote */
uint32_t oi_vk_list_stamps(const oi_vk_list *l); /* how many there are */
/* After waiting: nanoseconds of each stamp since the first. */
oi_vk_status oi_vk_list_times(oi_vk_list *l, double *ns);
oi_vk_status oi_vk_list_clear(oi_vk_list *l); /* empty again; not while submitted */

#ifdef __cplusplus
}
#endif

#endif
