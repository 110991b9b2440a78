/* vulkan_work.c: buffers, pipelines and lists of commands. A buffer has memory of its own. A list
 * has a pool of commands, pools of descriptor sets, one set per dispatch, and a fence. Every list
 * begins with a barrier, so that it comes after what was submitted before, and ends with one for
 * the host. */
#include "vulkan_parts.h"

#include <stdlib.h>
#include <string.h>

#define STAGING_BYTES (4u << 20) /* of one half */
#define SMALL_BYTES   (1u << 20) /* mapped buffers up to this lie on the device if they can */
#define POOL_SETS     128u
#define POOL_BUFFERS  (8 * POOL_SETS)
#define POOL_STAMPS   256u
#define MOST_BINDINGS 64u

struct oi_vk_buffer {
    oi_vk_link at;
    oi_vk *d;
    VkBuffer handle;
    VkDeviceMemory memory;
    uint64_t bytes;
    void *map;
};

struct oi_vk_pipeline {
    oi_vk_link at;
    oi_vk *d;
    VkDescriptorSetLayout set;
    VkPipelineLayout layout;
    VkPipeline handle;
    uint32_t n_bindings, push_bytes;
};

typedef struct chunk { /* a pool of descriptor sets, or of timestamps */
    struct chunk *next;
    VkDescriptorPool sets;
    VkQueryPool stamps;
    uint32_t n_sets, n_buffers; /* left */
} chunk;

struct oi_vk_list {
    oi_vk_link at;
    oi_vk *d;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence fence;
    chunk *sets, *stamps; /* the newest first */
    uint32_t n_stamps;
    oi_vk_status status; /* of recording */
    bool is_submitted;
};

/* -- buffers -- */

/* A type of memory in `types` with all of `must` and, if there is one, all of `may`. */
static uint32_t memory_type(const oi_vk *d, uint32_t types, VkMemoryPropertyFlags must,
                            VkMemoryPropertyFlags may)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t i = d->memory.memoryTypeCount; i-- > 0;) {
        const VkMemoryPropertyFlags has = d->memory.memoryTypes[i].propertyFlags;
        if (!(types >> i & 1) || (has & must) != must)
            continue;
        if ((has & may) == may || found == UINT32_MAX ||
            (d->memory.memoryTypes[found].propertyFlags & may) != may)
            found = i;
    }
    return found;
}

static uint32_t place_type(const oi_vk *d, uint32_t types, oi_vk_place place, uint64_t bytes)
{
    const VkMemoryPropertyFlags mapped =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    if (place == OI_VK_READBACK)
        return memory_type(d, types, mapped, VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    if (place == OI_VK_UPLOAD)
        return memory_type(d, types, mapped,
                           bytes <= SMALL_BYTES ? VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT : 0);
    return memory_type(d, types, 0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
}

static oi_vk_status fill_buffer(oi_vk_buffer *b, oi_vk_place place)
{
    oi_vk *d = b->d;
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = b->bytes,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VkMemoryRequirements needs;
    oi_vk_status s =
        oi_vk_judge(d->why, d->CreateBuffer(d->device, &info, NULL, &b->handle), "vkCreateBuffer");
    if (s != OI_VK_OK)
        return s;
    d->GetBufferMemoryRequirements(d->device, b->handle, &needs);
    const uint32_t type = place_type(d, needs.memoryTypeBits, place, b->bytes);
    if (type == UINT32_MAX)
        return oi_vk_fail(d->why, OI_VK_FAILED, "Vulkan: no memory that the host sees");
    const VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                         .allocationSize = needs.size,
                                         .memoryTypeIndex = type};
    const VkResult r = d->AllocateMemory(d->device, &memory, NULL, &b->memory);
    if (r == VK_ERROR_OUT_OF_DEVICE_MEMORY)
        return oi_vk_fail(d->why, OI_VK_NO_MEMORY,
                          "out of device memory: %llu bytes are wanted, and %llu are in use",
                          (unsigned long long)b->bytes, (unsigned long long)d->used);
    s = oi_vk_judge(d->why, r, "vkAllocateMemory");
    if (s == OI_VK_OK)
        s = oi_vk_judge(d->why, d->BindBufferMemory(d->device, b->handle, b->memory, 0),
                        "vkBindBufferMemory");
    if (s == OI_VK_OK && place != OI_VK_DEVICE)
        s = oi_vk_judge(d->why, d->MapMemory(d->device, b->memory, 0, VK_WHOLE_SIZE, 0, &b->map),
                        "vkMapMemory");
    return s;
}

oi_vk_status oi_vk_buffer_new(oi_vk *d, uint64_t bytes, oi_vk_place place, oi_vk_buffer **out)
{
    oi_vk_status s = OI_VK_OK;
    *out = NULL;
    if (bytes > d->info.buffer_bytes)
        return oi_vk_fail(d->why, OI_VK_NO_MEMORY,
                          "a buffer of %llu bytes is larger than the device allows (%llu)",
                          (unsigned long long)bytes, (unsigned long long)d->info.buffer_bytes);
    oi_vk_buffer *b = oi_vk_get_memory(d->why, sizeof *b, &s);
    if (!b)
        return s;
    b->d = d;
    b->bytes = bytes ? (bytes + 3) & ~(uint64_t)3 : 4; /* shaders access whole words */
    oi_vk_link_in(&d->buffers, &b->at);
    d->used += b->bytes;
    s = fill_buffer(b, place);
    if (s == OI_VK_OK)
        *out = b;
    else
        oi_vk_buffer_free(b);
    return s;
}

void oi_vk_buffer_free(oi_vk_buffer *b)
{
    if (!b)
        return;
    oi_vk *d = b->d;
    d->DestroyBuffer(d->device, b->handle, NULL);
    d->FreeMemory(d->device, b->memory, NULL);
    d->used -= b->bytes;
    oi_vk_link_out(&b->at);
    free(b);
}

void *oi_vk_buffer_map(const oi_vk_buffer *b)
{
    return b->map;
}

uint64_t oi_vk_buffer_bytes(const oi_vk_buffer *b)
{
    return b->bytes;
}

static oi_vk_status make_staging(oi_vk *d)
{
    oi_vk_status s = OI_VK_OK;
    for (int i = 0; s == OI_VK_OK && i < 2; i++)
        if (!d->copies[i])
            s = oi_vk_list_new(d, &d->copies[i]);
    if (s == OI_VK_OK && !d->staging)
        s = oi_vk_buffer_new(d, 2 * STAGING_BYTES, OI_VK_READBACK, &d->staging);
    return s;
}

static oi_vk_status copy_now(oi_vk_list *l, oi_vk_part to, oi_vk_part from)
{
    oi_vk_status s = oi_vk_list_clear(l);
    if (s != OI_VK_OK)
        return s;
    oi_vk_list_copy(l, to, from);
    s = oi_vk_list_end(l);
    return s == OI_VK_OK ? oi_vk_list_submit(l) : s;
}

static oi_vk_status check_range(const oi_vk_buffer *b, uint64_t offset, uint64_t bytes)
{
    if (offset <= b->bytes && bytes <= b->bytes - offset)
        return OI_VK_OK;
    return oi_vk_fail(b->d->why, OI_VK_FAILED, "a copy outside a buffer of %llu bytes",
                      (unsigned long long)b->bytes);
}

/* Part i of what goes through the staging buffer, in half i % 2 of it. */
static uint64_t part_bytes(uint64_t bytes, uint64_t i)
{
    const uint64_t left = bytes - i * STAGING_BYTES;
    return left < STAGING_BYTES ? left : STAGING_BYTES;
}

static oi_vk_part staging_part(oi_vk *d, uint64_t bytes, uint64_t i)
{
    return (oi_vk_part){d->staging, i % 2 * STAGING_BYTES, part_bytes(bytes, i)};
}

static void *staging_at(oi_vk *d, uint64_t i)
{
    return (char *)d->staging->map + i % 2 * STAGING_BYTES;
}

oi_vk_status oi_vk_upload(oi_vk_buffer *to, uint64_t offset, const void *from, uint64_t bytes)
{
    oi_vk *d = to->d;
    oi_vk_status s = check_range(to, offset, bytes);
    if (s == OI_VK_OK && to->map && bytes)
        memcpy((char *)to->map + offset, from, bytes);
    if (s != OI_VK_OK || to->map || bytes == 0)
        return s;
    s = make_staging(d);
    const uint64_t n = (bytes + STAGING_BYTES - 1) / STAGING_BYTES;
    for (uint64_t i = 0; s == OI_VK_OK && i < n; i++) {
        const oi_vk_part half = staging_part(d, bytes, i);
        s = oi_vk_list_wait(d->copies[i % 2]);
        if (s != OI_VK_OK)
            break;
        memcpy(staging_at(d, i), (const char *)from + i * STAGING_BYTES, half.bytes);
        s = copy_now(d->copies[i % 2], (oi_vk_part){to, offset + i * STAGING_BYTES, half.bytes},
                     half);
    }
    for (int half = 0; half < 2; half++) {
        const oi_vk_status w = d->copies[half] ? oi_vk_list_wait(d->copies[half]) : OI_VK_OK;
        s = s == OI_VK_OK ? w : s;
    }
    return s;
}

static oi_vk_status ask_part(oi_vk_buffer *from, uint64_t offset, uint64_t bytes, uint64_t i)
{
    const oi_vk_part half = staging_part(from->d, bytes, i);
    return copy_now(from->d->copies[i % 2], half,
                    (oi_vk_part){from, offset + i * STAGING_BYTES, half.bytes});
}

/* The device fills one half while the host empties the other. */
oi_vk_status oi_vk_download(void *to, oi_vk_buffer *from, uint64_t offset, uint64_t bytes)
{
    oi_vk *d = from->d;
    oi_vk_status s = check_range(from, offset, bytes);
    if (s == OI_VK_OK && from->map && bytes)
        memcpy(to, (const char *)from->map + offset, bytes);
    if (s != OI_VK_OK || from->map || bytes == 0)
        return s;
    const uint64_t n = (bytes + STAGING_BYTES - 1) / STAGING_BYTES;
    s = make_staging(d);
    if (s == OI_VK_OK)
        s = ask_part(from, offset, bytes, 0);
    for (uint64_t i = 0; s == OI_VK_OK && i < n; i++) {
        if (i + 1 < n)
            s = ask_part(from, offset, bytes, i + 1);
        if (s == OI_VK_OK)
            s = oi_vk_list_wait(d->copies[i % 2]);
        if (s == OI_VK_OK)
            memcpy((char *)to + i * STAGING_BYTES, staging_at(d, i), part_bytes(bytes, i));
    }
    return s;
}

/* -- pipelines -- */

static oi_vk_status make_layout(oi_vk_pipeline *p)
{
    oi_vk *d = p->d;
    VkDescriptorSetLayoutBinding all[MOST_BINDINGS];
    for (uint32_t i = 0; i < p->n_bindings; i++)
        all[i] = (VkDescriptorSetLayoutBinding){.binding = i,
                                                .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                .descriptorCount = 1,
                                                .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = p->n_bindings,
        .pBindings = all};
    const VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                      .size = p->push_bytes};
    oi_vk_status s =
        oi_vk_judge(d->why, d->CreateDescriptorSetLayout(d->device, &set, NULL, &p->set),
                    "vkCreateDescriptorSetLayout");
    if (s != OI_VK_OK)
        return s;
    const VkPipelineLayoutCreateInfo layout = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = 1,
                                               .pSetLayouts = &p->set,
                                               .pushConstantRangeCount = p->push_bytes > 0,
                                               .pPushConstantRanges = &push};
    return oi_vk_judge(d->why, d->CreatePipelineLayout(d->device, &layout, NULL, &p->layout),
                       "vkCreatePipelineLayout");
}

static oi_vk_status make_pipeline(oi_vk_pipeline *p, const oi_vk_shader *shader)
{
    oi_vk *d = p->d;
    VkSpecializationMapEntry entries[16];
    for (uint32_t i = 0; i < shader->n_constants; i++)
        entries[i] = (VkSpecializationMapEntry){i, 4 * i, 4};
    const VkSpecializationInfo constants = {shader->n_constants, entries,
                                            (size_t)4 * shader->n_constants, shader->constants};
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = shader->subgroup_size};
    const VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = shader->bytes,
                                           .pCode = shader->code};
    VkShaderModule module = VK_NULL_HANDLE;
    oi_vk_status s = oi_vk_judge(d->why, d->CreateShaderModule(d->device, &code, NULL, &module),
                                 "vkCreateShaderModule");
    if (s != OI_VK_OK)
        return s;
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .layout = p->layout,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = shader->subgroup_size ? &size : NULL,
                  .flags = shader->full_subgroups
                               ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT
                               : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = shader->n_constants ? &constants : NULL}};
    s = oi_vk_judge(
        d->why, d->CreateComputePipelines(d->device, VK_NULL_HANDLE, 1, &info, NULL, &p->handle),
        "vkCreateComputePipelines");
    d->DestroyShaderModule(d->device, module, NULL);
    return s;
}

oi_vk_status oi_vk_pipeline_new(oi_vk *d, const oi_vk_shader *shader, oi_vk_pipeline **out)
{
    oi_vk_status s = OI_VK_OK;
    const uint32_t most = d->max_buffers < MOST_BINDINGS ? d->max_buffers : MOST_BINDINGS;
    *out = NULL;
    if (shader->n_bindings > most)
        return oi_vk_fail(d->why, OI_VK_NO_FEATURE,
                          "a shader has %u buffers: the Vulkan device '%.100s' binds %u",
                          shader->n_bindings, d->info.name, most);
    if (shader->push_bytes > d->info.push_bytes || shader->n_constants > 16)
        return oi_vk_fail(d->why, OI_VK_NO_FEATURE,
                          "a shader has more constants than the Vulkan device '%.100s' takes",
                          d->info.name);
    oi_vk_pipeline *p = oi_vk_get_memory(d->why, sizeof *p, &s);
    if (!p)
        return s;
    p->d = d;
    p->n_bindings = shader->n_bindings;
    p->push_bytes = shader->push_bytes;
    oi_vk_link_in(&d->pipelines, &p->at);
    s = make_layout(p);
    if (s == OI_VK_OK)
        s = make_pipeline(p, shader);
    if (s == OI_VK_OK)
        *out = p;
    else
        oi_vk_pipeline_free(p);
    return s;
}

void oi_vk_pipeline_free(oi_vk_pipeline *p)
{
    if (!p)
        return;
    oi_vk *d = p->d;
    d->DestroyPipeline(d->device, p->handle, NULL);
    d->DestroyPipelineLayout(d->device, p->layout, NULL);
    d->DestroyDescriptorSetLayout(d->device, p->set, NULL);
    oi_vk_link_out(&p->at);
    free(p);
}

/* -- lists -- */

#define ACCESS                                                                              \
    (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT | \
     VK_ACCESS_TRANSFER_WRITE_BIT)
#define STAGES (VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT)

static void put_barrier(oi_vk_list *l, VkPipelineStageFlags to, VkAccessFlags reads)
{
    const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                 .srcAccessMask =
                                     VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                                 .dstAccessMask = reads};
    l->d->CmdPipelineBarrier(l->commands, STAGES, to, 0, 1, &all, 0, NULL, 0, NULL);
}

static oi_vk_status begin(oi_vk_list *l)
{
    oi_vk *d = l->d;
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    l->status =
        oi_vk_judge(d->why, d->BeginCommandBuffer(l->commands, &info), "vkBeginCommandBuffer");
    if (l->status == OI_VK_OK)
        put_barrier(l, STAGES, ACCESS);
    return l->status;
}

static oi_vk_status make_list(oi_vk_list *l)
{
    oi_vk *d = l->d;
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = d->family};
    oi_vk_status s = oi_vk_judge(d->why, d->CreateCommandPool(d->device, &pool, NULL, &l->pool),
                                 "vkCreateCommandPool");
    if (s != OI_VK_OK)
        return s;
    const VkCommandBufferAllocateInfo one = {.sType =
                                                 VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                             .commandPool = l->pool,
                                             .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                             .commandBufferCount = 1};
    s = oi_vk_judge(d->why, d->AllocateCommandBuffers(d->device, &one, &l->commands),
                    "vkAllocateCommandBuffers");
    if (s != OI_VK_OK)
        return s;
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    s = oi_vk_judge(d->why, d->CreateFence(d->device, &fence, NULL, &l->fence), "vkCreateFence");
    return s == OI_VK_OK ? begin(l) : s;
}

oi_vk_status oi_vk_list_new(oi_vk *d, oi_vk_list **out)
{
    oi_vk_status s = OI_VK_OK;
    oi_vk_list *l = oi_vk_get_memory(d->why, sizeof *l, &s);
    *out = NULL;
    if (!l)
        return s;
    l->d = d;
    oi_vk_link_in(&d->lists, &l->at);
    s = make_list(l);
    if (s == OI_VK_OK)
        *out = l;
    else
        oi_vk_list_free(l);
    return s;
}

static void free_chunks(oi_vk *d, chunk **list)
{
    while (*list) {
        chunk *c = *list;
        *list = c->next;
        d->DestroyDescriptorPool(d->device, c->sets, NULL);
        d->DestroyQueryPool(d->device, c->stamps, NULL);
        free(c);
    }
}

void oi_vk_list_free(oi_vk_list *l)
{
    if (!l)
        return;
    oi_vk *d = l->d;
    (void)oi_vk_list_wait(l);
    free_chunks(d, &l->sets);
    free_chunks(d, &l->stamps);
    d->DestroyFence(d->device, l->fence, NULL);
    d->DestroyCommandPool(d->device, l->pool, NULL);
    oi_vk_link_out(&l->at);
    free(l);
}

oi_vk_status oi_vk_list_clear(oi_vk_list *l)
{
    oi_vk *d = l->d;
    oi_vk_status s = oi_vk_list_wait(l);
    free_chunks(d, &l->sets);
    free_chunks(d, &l->stamps);
    l->n_stamps = 0;
    if (s == OI_VK_OK)
        s = oi_vk_judge(d->why, d->ResetCommandPool(d->device, l->pool, 0), "vkResetCommandPool");
    return s == OI_VK_OK ? begin(l) : s;
}

static oi_vk_status add_sets(oi_vk_list *l, uint32_t n_bindings)
{
    oi_vk *d = l->d;
    oi_vk_status s = OI_VK_OK;
    chunk *c = oi_vk_get_memory(d->why, sizeof *c, &s);
    if (!c)
        return s;
    c->next = l->sets;
    c->n_sets = POOL_SETS;
    c->n_buffers = n_bindings > POOL_BUFFERS ? n_bindings : POOL_BUFFERS;
    l->sets = c;
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, c->n_buffers};
    const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = c->n_sets,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    return oi_vk_judge(d->why, d->CreateDescriptorPool(d->device, &info, NULL, &c->sets),
                       "vkCreateDescriptorPool");
}

static oi_vk_status make_set(oi_vk_list *l, oi_vk_pipeline *p, const oi_vk_part *parts,
                             VkDescriptorSet *set)
{
    oi_vk *d = l->d;
    oi_vk_status s = OI_VK_OK;
    VkDescriptorBufferInfo buffers[MOST_BINDINGS];
    VkWriteDescriptorSet writes[MOST_BINDINGS];
    uint32_t n = 0;
    if (!l->sets || l->sets->n_sets == 0 || l->sets->n_buffers < p->n_bindings)
        s = add_sets(l, p->n_bindings);
    if (s != OI_VK_OK)
        return s;
    const VkDescriptorSetAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = l->sets->sets,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &p->set};
    s = oi_vk_judge(d->why, d->AllocateDescriptorSets(d->device, &info, set),
                    "vkAllocateDescriptorSets");
    if (s != OI_VK_OK)
        return s;
    l->sets->n_sets--;
    l->sets->n_buffers -= p->n_bindings;
    for (uint32_t i = 0; i < p->n_bindings; i++) {
        if (!parts[i].buffer)
            continue;
        buffers[i] = (VkDescriptorBufferInfo){parts[i].buffer->handle, parts[i].offset,
                                              parts[i].bytes ? (parts[i].bytes + 3) & ~(uint64_t)3
                                                             : VK_WHOLE_SIZE};
        writes[n++] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                             .dstSet = *set,
                                             .dstBinding = i,
                                             .descriptorCount = 1,
                                             .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                             .pBufferInfo = &buffers[i]};
    }
    d->UpdateDescriptorSets(d->device, n, writes, 0, NULL);
    return s;
}

void oi_vk_list_dispatch(oi_vk_list *l, oi_vk_pipeline *p, const oi_vk_part *parts,
                         const void *push, uint64_t groups)
{
    oi_vk *d = l->d;
    VkDescriptorSet set;
    const uint64_t row = d->info.group_count[0], rows = (groups + row - 1) / row;
    if (l->status != OI_VK_OK || groups == 0)
        return;
    if (rows > d->info.group_count[1]) {
        l->status = oi_vk_fail(d->why, OI_VK_NO_FEATURE,
                               "%llu workgroups: the Vulkan device '%.100s' runs fewer",
                               (unsigned long long)groups, d->info.name);
        return;
    }
    l->status = make_set(l, p, parts, &set);
    if (l->status != OI_VK_OK)
        return;
    d->CmdBindPipeline(l->commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->handle);
    d->CmdBindDescriptorSets(l->commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->layout, 0, 1, &set, 0,
                             NULL);
    if (p->push_bytes)
        d->CmdPushConstants(l->commands, p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, p->push_bytes,
                            push);
    d->CmdDispatch(l->commands, (uint32_t)(rows > 1 ? row : groups), (uint32_t)rows, 1);
}

void oi_vk_list_copy(oi_vk_list *l, oi_vk_part to, oi_vk_part from)
{
    const VkBufferCopy one = {from.offset, to.offset, from.bytes};
    if (l->status == OI_VK_OK && from.bytes)
        l->d->CmdCopyBuffer(l->commands, from.buffer->handle, to.buffer->handle, 1, &one);
}

void oi_vk_list_fill(oi_vk_list *l, oi_vk_part to, uint32_t word)
{
    if (l->status == OI_VK_OK)
        l->d->CmdFillBuffer(l->commands, to.buffer->handle, to.offset,
                            to.bytes ? to.bytes : VK_WHOLE_SIZE, word);
}

void oi_vk_list_barrier(oi_vk_list *l)
{
    if (l->status == OI_VK_OK)
        put_barrier(l, STAGES, ACCESS);
}

void oi_vk_list_stamp(oi_vk_list *l)
{
    oi_vk *d = l->d;
    if (l->status != OI_VK_OK || !(d->info.features & OI_VK_TIMESTAMPS))
        return;
    if (l->n_stamps % POOL_STAMPS == 0) {
        const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                            .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                            .queryCount = POOL_STAMPS};
        chunk *c = oi_vk_get_memory(d->why, sizeof *c, &l->status);
        if (!c)
            return;
        c->next = l->stamps;
        l->stamps = c;
        l->status = oi_vk_judge(d->why, d->CreateQueryPool(d->device, &info, NULL, &c->stamps),
                                "vkCreateQueryPool");
        if (l->status != OI_VK_OK)
            return;
        d->CmdResetQueryPool(l->commands, c->stamps, 0, POOL_STAMPS);
    }
    d->CmdWriteTimestamp(l->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, l->stamps->stamps,
                         l->n_stamps++ % POOL_STAMPS);
}

oi_vk_status oi_vk_list_end(oi_vk_list *l)
{
    if (l->status != OI_VK_OK)
        return l->status;
    put_barrier(l, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    return oi_vk_judge(l->d->why, l->d->EndCommandBuffer(l->commands), "vkEndCommandBuffer");
}

oi_vk_status oi_vk_list_submit(oi_vk_list *l)
{
    oi_vk *d = l->d;
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &l->commands};
    const oi_vk_status s =
        oi_vk_judge(d->why, d->QueueSubmit(d->queue, 1, &info, l->fence), "vkQueueSubmit");
    l->is_submitted = s == OI_VK_OK;
    return s;
}

oi_vk_status oi_vk_list_wait(oi_vk_list *l)
{
    oi_vk *d = l->d;
    if (!l->is_submitted)
        return OI_VK_OK;
    l->is_submitted = false;
    const oi_vk_status s = oi_vk_judge(
        d->why, d->WaitForFences(d->device, 1, &l->fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
    const VkResult r = d->ResetFences(d->device, 1, &l->fence);
    return s == OI_VK_OK ? oi_vk_judge(d->why, r, "vkResetFences") : s;
}

uint32_t oi_vk_list_stamps(const oi_vk_list *l)
{
    return l->n_stamps;
}

oi_vk_status oi_vk_list_times(oi_vk_list *l, double *ns)
{
    oi_vk *d = l->d;
    uint64_t ticks[POOL_STAMPS];
    uint32_t left = l->n_stamps;
    for (const chunk *c = l->stamps; c; c = c->next) { /* the newest has the last of them */
        const uint32_t n = (left - 1) % POOL_STAMPS + 1;
        const VkResult r =
            d->GetQueryPoolResults(d->device, c->stamps, 0, n, sizeof ticks, ticks, sizeof *ticks,
                                   VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
        if (r != VK_SUCCESS)
            return oi_vk_judge(d->why, r, "vkGetQueryPoolResults");
        left -= n;
        for (uint32_t i = 0; i < n; i++)
            ns[left + i] = (double)ticks[i] * d->info.stamp_ns;
    }
    for (uint32_t i = l->n_stamps; i-- > 0;)
        ns[i] -= ns[0];
    return OI_VK_OK;
}
