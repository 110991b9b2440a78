/* vulkan_parts.h: what vulkan_open.c, vulkan_work.c and vulkan_run.c share; no other file includes
 * it. */
#ifndef VULKAN_PARTS_H
#define VULKAN_PARTS_H

#define VK_NO_PROTOTYPES
#include "vulkan_device.h"

#include <vulkan/vulkan_core.h>

#define OI_VK_INSTANCE_FUNCTIONS(X)           \
    X(DestroyInstance)                        \
    X(EnumeratePhysicalDevices)               \
    X(EnumerateDeviceExtensionProperties)     \
    X(GetPhysicalDeviceProperties)            \
    X(GetPhysicalDeviceProperties2)           \
    X(GetPhysicalDeviceFeatures2)             \
    X(GetPhysicalDeviceMemoryProperties2)     \
    X(GetPhysicalDeviceQueueFamilyProperties) \
    X(CreateDevice)                           \
    X(GetDeviceProcAddr)

#define OI_VK_DEVICE_FUNCTIONS(X)  \
    X(DestroyDevice)               \
    X(GetDeviceQueue)              \
    X(DeviceWaitIdle)              \
    X(QueueSubmit)                 \
    X(CreateBuffer)                \
    X(DestroyBuffer)               \
    X(GetBufferMemoryRequirements) \
    X(AllocateMemory)              \
    X(FreeMemory)                  \
    X(BindBufferMemory)            \
    X(MapMemory)                   \
    X(CreateShaderModule)          \
    X(DestroyShaderModule)         \
    X(CreateDescriptorSetLayout)   \
    X(DestroyDescriptorSetLayout)  \
    X(CreatePipelineLayout)        \
    X(DestroyPipelineLayout)       \
    X(CreateComputePipelines)      \
    X(DestroyPipeline)             \
    X(CreateDescriptorPool)        \
    X(DestroyDescriptorPool)       \
    X(AllocateDescriptorSets)      \
    X(UpdateDescriptorSets)        \
    X(CreateCommandPool)           \
    X(DestroyCommandPool)          \
    X(ResetCommandPool)            \
    X(AllocateCommandBuffers)      \
    X(BeginCommandBuffer)          \
    X(EndCommandBuffer)            \
    X(CmdBindPipeline)             \
    X(CmdBindDescriptorSets)       \
    X(CmdPushConstants)            \
    X(CmdDispatch)                 \
    X(CmdCopyBuffer)               \
    X(CmdFillBuffer)               \
    X(CmdPipelineBarrier)          \
    X(CmdResetQueryPool)           \
    X(CmdWriteTimestamp)           \
    X(CreateQueryPool)             \
    X(DestroyQueryPool)            \
    X(GetQueryPoolResults)         \
    X(CreateFence)                 \
    X(DestroyFence)                \
    X(ResetFences)                 \
    X(WaitForFences)

#define OI_VK_MEMBER(name) PFN_vk##name name;

/* Objects of a device, which closing it frees. */
typedef struct oi_vk_link {
    struct oi_vk_link *next, *prev;
} oi_vk_link;

typedef struct oi_vk_instance {
    void *loader; /* NULL: of another program */
    VkInstance handle;
    PFN_vkGetInstanceProcAddr get;
    OI_VK_INSTANCE_FUNCTIONS(OI_VK_MEMBER)
} oi_vk_instance;

struct oi_vk {
    oi_vk_instance in;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t family, enabled, max_buffers;
    bool is_own; /* of another program */
    oi_vk_info info;
    VkPhysicalDeviceMemoryProperties memory;
    oi_vk_link buffers, pipelines, lists;
    uint64_t used;
    oi_vk_buffer *staging; /* two halves; NULL until something is copied */
    oi_vk_list *copies[2];
    char why[OI_VK_NAME];
    OI_VK_DEVICE_FUNCTIONS(OI_VK_MEMBER)
};

/* -- vulkan_open.c -- */

/* Keeps the sentence and returns the status. */
oi_vk_status oi_vk_fail(char *why, oi_vk_status status, const char *format, ...);
oi_vk_status oi_vk_judge(char *why, VkResult r, const char *what);
oi_vk_status oi_vk_lacks(oi_vk *d, uint32_t missing); /* says which of them the device lacks */
void *oi_vk_get_memory(char *why, size_t bytes, oi_vk_status *status); /* zeros; NULL: fails */
void oi_vk_link_in(oi_vk_link *list, oi_vk_link *one);
void oi_vk_link_out(oi_vk_link *one);

#endif
