/* vulkan_run.c: runs compute shaders without a window, for tests.
 *
 * Reads lines from standard input; nothing is checked but that files and numbers fit, since the
 * tests write them:
 *
 *     buffer BYTES [FILE]             the next buffer, counted from 0; zeros, or what the file
 * holds run FILE.spv GROUPS BUFFER ...  a shader, with these buffers at bindings 0, 1 ...; "-":
 * none write BUFFER FILE
 *
 * Exit: 0, 1 something failed, 3 there is no device. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

enum { MOST_BUFFERS = 256, MOST_BINDINGS = 32, LINE = 4096 };

typedef struct buffer {
    VkBuffer handle;
    VkDeviceMemory memory;
    void *at;
    size_t size;
} buffer;

static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static VkCommandPool pool;
static buffer buffers[MOST_BUFFERS];
static unsigned n_buffers;

static void check(VkResult result, const char *what)
{
    if (result == VK_SUCCESS)
        return;
    fprintf(stderr, "vulkan_run: %s: error %d\n", what, (int)result);
    exit(1);
}

static void open_device(void)
{
    const float priority = 1;
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                         .pApplicationInfo = &app};
    VkPhysicalDeviceVulkan11Features v11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
    VkPhysicalDeviceVulkan12Features v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &v11};
    VkPhysicalDeviceFeatures2 has = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                     .pNext = &v12};
    VkInstance instance;
    uint32_t n = 1;
    if (vkCreateInstance(&create, NULL, &instance) != VK_SUCCESS ||
        vkEnumeratePhysicalDevices(instance, &n, &physical) < 0 || n == 0) {
        fprintf(stderr, "vulkan_run: there is no Vulkan device\n");
        exit(3);
    }
    vkGetPhysicalDeviceFeatures2(physical, &has); /* all that it has is switched on */
    const VkDeviceQueueCreateInfo queues = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                            .queueCount = 1,
                                            .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &has,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queues};
    check(vkCreateDevice(physical, &info, NULL, &device), "device");
    vkGetDeviceQueue(device, 0, 0, &queue);
    const VkCommandPoolCreateInfo own = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    check(vkCreateCommandPool(device, &own, NULL, &pool), "command pool");
}

/* A type of memory that the processor sees, too. */
static uint32_t memory_type(uint32_t allowed)
{
    const VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkPhysicalDeviceMemoryProperties have;
    vkGetPhysicalDeviceMemoryProperties(physical, &have);
    for (uint32_t i = 0; i < have.memoryTypeCount; i++)
        if ((allowed >> i & 1) && (have.memoryTypes[i].propertyFlags & wanted) == wanted)
            return i;
    check(VK_ERROR_OUT_OF_DEVICE_MEMORY, "memory that the host sees");
    return 0;
}

static void *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    *size = (size_t)ftell(f);
    void *text = malloc(*size + 1);
    rewind(f);
    if (!text || fread(text, 1, *size, f) != *size) {
        perror(path);
        exit(1);
    }
    fclose(f);
    return text;
}

static void add_buffer(size_t size, const char *path)
{
    if (n_buffers == MOST_BUFFERS)
        check(VK_ERROR_TOO_MANY_OBJECTS, "buffers");
    buffer *b = &buffers[n_buffers++];
    const VkBufferCreateInfo create = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                       .size = (size + 4) / 4 * 4, /* shaders read whole words */
                                       .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    VkMemoryRequirements need;
    check(vkCreateBuffer(device, &create, NULL, &b->handle), "buffer");
    vkGetBufferMemoryRequirements(device, b->handle, &need);
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .allocationSize = need.size,
                                       .memoryTypeIndex = memory_type(need.memoryTypeBits)};
    check(vkAllocateMemory(device, &info, NULL, &b->memory), "memory");
    check(vkBindBufferMemory(device, b->handle, b->memory, 0), "memory");
    check(vkMapMemory(device, b->memory, 0, VK_WHOLE_SIZE, 0, &b->at), "memory");
    memset(b->at, 0, need.size);
    b->size = size;
    if (!path)
        return;
    size_t has;
    void *bytes = read_file(path, &has);
    memcpy(b->at, bytes, has < size ? has : size);
    free(bytes);
}

typedef struct pipeline {
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline handle;
    VkDescriptorSet set;
} pipeline;

static pipeline make_pipeline(const char *path, unsigned n)
{
    pipeline p;
    size_t size;
    uint32_t *code = read_file(path, &size);
    VkDescriptorSetLayoutBinding at[MOST_BINDINGS] = {{0}};
    for (unsigned i = 0; i < n; i++)
        at[i] = (VkDescriptorSetLayoutBinding){i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                               VK_SHADER_STAGE_COMPUTE_BIT, NULL};
    const VkDescriptorSetLayoutCreateInfo sets = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = n,
        .pBindings = at};
    check(vkCreateDescriptorSetLayout(device, &sets, NULL, &p.set_layout), "bindings");
    const VkPipelineLayoutCreateInfo layout = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = 1,
                                               .pSetLayouts = &p.set_layout};
    check(vkCreatePipelineLayout(device, &layout, NULL, &p.layout), "layout");
    const VkShaderModuleCreateInfo text = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = size, .pCode = code};
    VkComputePipelineCreateInfo create = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .pName = "main"},
        .layout = p.layout};
    check(vkCreateShaderModule(device, &text, NULL, &create.stage.module), path);
    check(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &create, NULL, &p.handle), path);
    vkDestroyShaderModule(device, create.stage.module, NULL);
    free(code);
    return p;
}

static VkDescriptorPool bind(pipeline *p, const int *which, unsigned n)
{
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, n ? n : 1};
    const VkDescriptorPoolCreateInfo create = {.sType =
                                                   VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                               .maxSets = 1,
                                               .poolSizeCount = 1,
                                               .pPoolSizes = &size};
    VkDescriptorPool from;
    check(vkCreateDescriptorPool(device, &create, NULL, &from), "descriptors");
    const VkDescriptorSetAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = from,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &p->set_layout};
    check(vkAllocateDescriptorSets(device, &info, &p->set), "descriptors");
    for (unsigned i = 0; i < n; i++) {
        if (which[i] < 0)
            continue;
        const VkDescriptorBufferInfo to = {buffers[which[i]].handle, 0, VK_WHOLE_SIZE};
        const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                            .dstSet = p->set,
                                            .dstBinding = i,
                                            .descriptorCount = 1,
                                            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                            .pBufferInfo = &to};
        vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
    }
    return from;
}

static void run(const char *path, unsigned groups, const int *which, unsigned n)
{
    pipeline p = make_pipeline(path, n);
    VkDescriptorPool from = bind(&p, which, n);
    VkCommandBuffer commands;
    const VkCommandBufferAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = pool,
                                              .commandBufferCount = 1};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    check(vkAllocateCommandBuffers(device, &info, &commands), "commands");
    check(vkBeginCommandBuffer(commands, &begin), "commands");
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p.handle);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p.layout, 0, 1, &p.set, 0,
                            NULL);
    vkCmdDispatch(commands, groups, 1, 1);
    check(vkEndCommandBuffer(commands), "commands");
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &commands};
    check(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE), path);
    check(vkQueueWaitIdle(queue), path);
    vkFreeCommandBuffers(device, pool, 1, &commands);
    vkDestroyDescriptorPool(device, from, NULL);
    vkDestroyPipeline(device, p.handle, NULL);
    vkDestroyPipelineLayout(device, p.layout, NULL);
    vkDestroyDescriptorSetLayout(device, p.set_layout, NULL);
}

static void write_file(unsigned which, const char *path)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(buffers[which].at, 1, buffers[which].size, f) != buffers[which].size ||
        fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

/* One line: words apart by blanks. */
static void obey(char *line)
{
    char *word[MOST_BINDINGS + 4];
    int which[MOST_BINDINGS + 4];
    unsigned n = 0;
    for (char *w = strtok(line, " \n"); w && n < MOST_BINDINGS + 3; w = strtok(NULL, " \n"))
        word[n++] = w;
    for (unsigned i = 3; i < n; i++)
        which[i - 3] = strcmp(word[i], "-") == 0 ? -1 : atoi(word[i]);
    if (n > 1 && strcmp(word[0], "buffer") == 0)
        add_buffer(strtoull(word[1], NULL, 10), n > 2 ? word[2] : NULL);
    else if (n > 2 && strcmp(word[0], "run") == 0)
        run(word[1], (unsigned)atoi(word[2]), which, n - 3);
    else if (n > 2 && strcmp(word[0], "write") == 0)
        write_file((unsigned)atoi(word[1]), word[2]);
}

int main(void)
{
    static char line[LINE];
    open_device();
    while (fgets(line, sizeof line, stdin))
        obey(line);
    return 0;
}
