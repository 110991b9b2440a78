/* vulkan_open.c: the loader, the devices and what they can do; opening and closing one. */
#include "vulkan_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
#define LOADER "vulkan-1.dll"
#else
#include <dlfcn.h>
#define LOADER "libvulkan.so.1"
#endif

#define MOST_DEVICES 32u

/* -- failures -- */

oi_vk_status oi_vk_fail(char *why, oi_vk_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, OI_VK_NAME, format, args);
    va_end(args);
    return status;
}

oi_vk_status oi_vk_judge(char *why, VkResult r, const char *what)
{
    switch (r) {
    case VK_SUCCESS: return OI_VK_OK;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
        return oi_vk_fail(why, OI_VK_NO_MEMORY, "Vulkan: out of host memory (%s)", what);
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
        return oi_vk_fail(why, OI_VK_NO_MEMORY, "Vulkan: out of device memory (%s)", what);
    case VK_ERROR_DEVICE_LOST:
        return oi_vk_fail(why, OI_VK_LOST, "Vulkan: the device was lost (%s)", what);
    default: return oi_vk_fail(why, OI_VK_FAILED, "Vulkan: %s failed with error %d", what, (int)r);
    }
}

void *oi_vk_get_memory(char *why, size_t bytes, oi_vk_status *status)
{
    void *p = calloc(1, bytes);
    if (!p)
        *status = oi_vk_fail(why, OI_VK_NO_MEMORY, "out of memory: %zu bytes", bytes);
    return p;
}

void oi_vk_link_in(oi_vk_link *list, oi_vk_link *one)
{
    one->next = list->next;
    one->prev = list;
    list->next->prev = one;
    list->next = one;
}

void oi_vk_link_out(oi_vk_link *one)
{
    one->next->prev = one->prev;
    one->prev->next = one->next;
}

/* -- the loader -- */

static void *load_library(void)
{
#ifdef _WIN32
    return (void *)LoadLibraryA(LOADER);
#else
    void *loader = dlopen(LOADER, RTLD_NOW | RTLD_LOCAL);
    if (!loader)
        loader = dlopen("libvulkan.so", RTLD_NOW | RTLD_LOCAL);
#ifdef __APPLE__
    if (!loader)
        loader = dlopen("libvulkan.1.dylib", RTLD_NOW | RTLD_LOCAL);
#endif
    return loader;
#endif
}

static void close_library(void *loader)
{
#ifdef _WIN32
    if (loader)
        FreeLibrary((HMODULE)loader);
#else
    if (loader)
        dlclose(loader);
#endif
}

static PFN_vkGetInstanceProcAddr first_function(void *loader)
{
    PFN_vkGetInstanceProcAddr get = NULL;
#ifdef _WIN32
    FARPROC symbol = GetProcAddress((HMODULE)loader, "vkGetInstanceProcAddr");
#else
    void *symbol = dlsym(loader, "vkGetInstanceProcAddr");
#endif
    memcpy(&get, &symbol, sizeof get); /* ISO C has no cast from data to functions */
    return get;
}

static oi_vk_status load_instance_functions(oi_vk_instance *in, char *why)
{
#define LOAD(name)                                                                              \
    in->name = (PFN_vk##name)in->get(in->handle, "vk" #name);                                   \
    if (!in->name)                                                                              \
        return oi_vk_fail(why, OI_VK_NO_DEVICE, "the Vulkan loader has no vk%s: it is too old", \
                          #name);
    OI_VK_INSTANCE_FUNCTIONS(LOAD)
#undef LOAD
    return OI_VK_OK;
}

static void close_instance(oi_vk_instance *in)
{
    if (!in->loader)
        return;
    if (in->handle && in->DestroyInstance)
        in->DestroyInstance(in->handle, NULL);
    close_library(in->loader);
    in->loader = NULL;
}

#define INSTALL_DRIVER                                                         \
    "install the driver of the GPU, or one for the processor (Debian package " \
    "mesa-vulkan-drivers)"

static oi_vk_status open_instance(oi_vk_instance *in, char *why)
{
    *in = (oi_vk_instance){.loader = load_library()};
    if (!in->loader || !(in->get = first_function(in->loader))) {
        close_instance(in);
        return oi_vk_fail(why, OI_VK_NO_LOADER,
                          "no Vulkan loader (%s): install it (Debian package libvulkan1)", LOADER);
    }
    uint32_t version = VK_API_VERSION_1_0;
    PFN_vkEnumerateInstanceVersion ask =
        (PFN_vkEnumerateInstanceVersion)in->get(NULL, "vkEnumerateInstanceVersion");
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)in->get(NULL, "vkCreateInstance");
    if (!create || !ask || ask(&version) != VK_SUCCESS || version < VK_API_VERSION_1_1) {
        close_instance(in);
        return oi_vk_fail(why, OI_VK_NO_LOADER, "the Vulkan loader is older than Vulkan 1.1");
    }
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .pEngineName = "OpenInfer",
                                   .apiVersion = VK_API_VERSION_1_3};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &app};
    VkResult r = create(&info, NULL, &in->handle);
    oi_vk_status s = r == VK_ERROR_INCOMPATIBLE_DRIVER
                         ? oi_vk_fail(why, OI_VK_NO_DEVICE, "no Vulkan driver: " INSTALL_DRIVER)
                         : oi_vk_judge(why, r, "vkCreateInstance");
    if (s == OI_VK_OK)
        s = load_instance_functions(in, why);
    if (s != OI_VK_OK)
        close_instance(in);
    return s;
}

/* -- what a device can do -- */

/* VK_KHR_cooperative_matrix, which older headers lack. */
typedef struct cooperative_features {
    VkStructureType type;
    void *next;
    VkBool32 has, is_robust;
} cooperative_features;
#define COOPERATIVE_TYPE ((VkStructureType)1000506000)

/* Structs of features, and with which version or extension a device knows them. */
typedef struct features {
    VkPhysicalDeviceFeatures2 core;
    VkPhysicalDevice16BitStorageFeatures storage16;
    VkPhysicalDevice8BitStorageFeatures storage8;
    VkPhysicalDeviceShaderFloat16Int8Features small;
    VkPhysicalDeviceSubgroupSizeControlFeatures sizes;
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot;
    VkPhysicalDeviceVulkanMemoryModelFeatures model;
    cooperative_features cooperative;
} features;

enum { STORAGE16, STORAGE8, SMALL, SIZES, DOT, MODEL, COOPERATIVE, BUDGET, N_EXTENSIONS };

static const struct {
    const char *name;
    uint32_t since;    /* part of this version */
    uint32_t features; /* that need it */
} extensions[N_EXTENSIONS] = {
    [STORAGE16] = {"VK_KHR_16bit_storage", VK_API_VERSION_1_1, OI_VK_STORAGE16},
    [STORAGE8] = {"VK_KHR_8bit_storage", VK_API_VERSION_1_2, OI_VK_STORAGE8},
    [SMALL] = {"VK_KHR_shader_float16_int8", VK_API_VERSION_1_2, OI_VK_INT8 | OI_VK_FLOAT16},
    [SIZES] = {"VK_EXT_subgroup_size_control", VK_API_VERSION_1_3,
               OI_VK_FULL_SUBGROUPS | OI_VK_SUBGROUP_SIZES},
    [DOT] = {"VK_KHR_shader_integer_dot_product", VK_API_VERSION_1_3, OI_VK_DOT8},
    [MODEL] = {"VK_KHR_vulkan_memory_model", VK_API_VERSION_1_2, OI_VK_MEMORY_MODEL},
    [COOPERATIVE] = {"VK_KHR_cooperative_matrix", UINT32_MAX, OI_VK_COOPERATIVE},
    [BUDGET] = {"VK_EXT_memory_budget", UINT32_MAX, OI_VK_MEMORY_BUDGET},
};

static const char *const feature_names[] = {"int64",
                                            "fp64",
                                            "int16",
                                            "int8",
                                            "fp16",
                                            "storage8",
                                            "storage16",
                                            "subgroup_ops",
                                            "full subgroups",
                                            "subgroup sizes",
                                            "dot8",
                                            "the Vulkan memory model",
                                            "cooperative_matrix",
                                            "timestamps",
                                            "memory budgets"};

/* Bit per extension that the device has, not counting what its version includes. */
static uint32_t find_extensions(const oi_vk_instance *in, VkPhysicalDevice p)
{
    uint32_t n = 0, found = 0;
    if (in->EnumerateDeviceExtensionProperties(p, NULL, &n, NULL) != VK_SUCCESS)
        return 0;
    VkExtensionProperties *all = calloc(n + 1, sizeof *all);
    if (all && in->EnumerateDeviceExtensionProperties(p, NULL, &n, all) >= VK_SUCCESS)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = 0; k < N_EXTENSIONS; k++)
                if (strcmp(all[i].extensionName, extensions[k].name) == 0)
                    found |= 1u << k;
    free(all);
    return found;
}

/* Chains the structs that the device knows. `known`: bit per extension. */
static void chain(features *f, uint32_t known)
{
    struct {
        uint32_t extension;
        VkStructureType type;
        void *at;
    } all[] = {
        {STORAGE16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, &f->storage16},
        {STORAGE8, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, &f->storage8},
        {SMALL, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, &f->small},
        {SIZES, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, &f->sizes},
        {DOT, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, &f->dot},
        {MODEL, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES, &f->model},
        {COOPERATIVE, COOPERATIVE_TYPE, &f->cooperative},
    };
    memset(f, 0, sizeof *f);
    f->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!(known >> all[i].extension & 1))
            continue;
        VkBaseOutStructure *one = all[i].at;
        one->sType = all[i].type;
        one->pNext = f->core.pNext;
        f->core.pNext = one;
    }
}

static uint32_t known_extensions(uint32_t found, uint32_t version)
{
    for (uint32_t k = 0; k < N_EXTENSIONS; k++)
        if (version >= extensions[k].since)
            found |= 1u << k;
    return found;
}

/* Each feature beside the switch that enables it. */
#define SWITCHES(X)                                           \
    X(OI_VK_INT64, core.features.shaderInt64)                 \
    X(OI_VK_FLOAT64, core.features.shaderFloat64)             \
    X(OI_VK_INT16, core.features.shaderInt16)                 \
    X(OI_VK_INT8, small.shaderInt8)                           \
    X(OI_VK_FLOAT16, small.shaderFloat16)                     \
    X(OI_VK_STORAGE8, storage8.storageBuffer8BitAccess)       \
    X(OI_VK_STORAGE16, storage16.storageBuffer16BitAccess)    \
    X(OI_VK_FULL_SUBGROUPS, sizes.computeFullSubgroups)       \
    X(OI_VK_SUBGROUP_SIZES, sizes.subgroupSizeControl)        \
    X(OI_VK_DOT8, dot.shaderIntegerDotProduct)                \
    X(OI_VK_MEMORY_MODEL, model.vulkanMemoryModel)            \
    X(OI_VK_MEMORY_MODEL, model.vulkanMemoryModelDeviceScope) \
    X(OI_VK_COOPERATIVE, cooperative.has)

static uint32_t features_of(const features *f, uint32_t known)
{
    uint32_t all = OI_VK_FEATURES & ~(uint32_t)(OI_VK_SUBGROUPS | OI_VK_TIMESTAMPS);
#define TEST(bit, member) \
    if (!f->member)       \
        all &= ~(uint32_t)bit;
    SWITCHES(TEST)
#undef TEST
    return known >> BUDGET & 1 ? all : all & ~(uint32_t)OI_VK_MEMORY_BUDGET;
}

static void switch_on(features *f, uint32_t wanted)
{
#define SWITCH(bit, member) f->member = (wanted & (uint32_t)bit) != 0;
    SWITCHES(SWITCH)
#undef SWITCH
}

/* The family of queues that run compute shaders, or UINT32_MAX; *stamps: they have timestamps. */
static uint32_t find_family(const oi_vk_instance *in, VkPhysicalDevice p, bool *stamps)
{
    VkQueueFamilyProperties all[16];
    uint32_t n = 16;
    in->GetPhysicalDeviceQueueFamilyProperties(p, &n, all);
    for (uint32_t i = 0; i < n; i++)
        if (all[i].queueFlags & VK_QUEUE_COMPUTE_BIT) {
            *stamps = all[i].timestampValidBits > 0;
            return i;
        }
    return UINT32_MAX;
}

static const char *type_name(VkPhysicalDeviceType t)
{
    return t == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU     ? "discrete GPU"
           : t == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ? "integrated GPU"
           : t == VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU    ? "virtual GPU"
           : t == VK_PHYSICAL_DEVICE_TYPE_CPU            ? "CPU"
                                                         : "other";
}

static void read_limits(oi_vk_info *out, const VkPhysicalDeviceLimits *l)
{
    out->group_invocations = l->maxComputeWorkGroupInvocations;
    memcpy(out->group_size, l->maxComputeWorkGroupSize, sizeof out->group_size);
    memcpy(out->group_count, l->maxComputeWorkGroupCount, sizeof out->group_count);
    out->shared_bytes = l->maxComputeSharedMemorySize;
    out->push_bytes = l->maxPushConstantsSize;
    out->buffer_align = (uint32_t)l->minStorageBufferOffsetAlignment;
    out->binding_bytes = l->maxStorageBufferRange;
    out->stamp_ns = (double)l->timestampPeriod;
}

/* Properties that extend the basic ones. */
static void read_more(const oi_vk_instance *in, VkPhysicalDevice p, uint32_t known, oi_vk_info *out)
{
    VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceMaintenance3Properties sizes3 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceSubgroupProperties subgroup = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, .pNext = &sizes3};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &subgroup};
    if (known >> SIZES & 1)
        sizes3.pNext = &sizes;
    if (out->version[0] > 1 || out->version[1] >= 2) {
        driver.pNext = all.pNext;
        all.pNext = &driver;
    }
    in->GetPhysicalDeviceProperties2(p, &all);
    const VkSubgroupFeatureFlags want = VK_SUBGROUP_FEATURE_BASIC_BIT |
                                        VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
                                        VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
    if (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT &&
        (subgroup.supportedOperations & want) == want)
        out->features |= OI_VK_SUBGROUPS;
    out->subgroup_size = out->subgroup_least = out->subgroup_most = subgroup.subgroupSize;
    if (sizes.maxSubgroupSize) {
        out->subgroup_least = sizes.minSubgroupSize;
        out->subgroup_most = sizes.maxSubgroupSize;
    }
    if (!(sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT))
        out->features &= ~(uint32_t)OI_VK_SUBGROUP_SIZES;
    out->buffer_bytes = sizes3.maxMemoryAllocationSize;
    snprintf(out->driver, sizeof out->driver, "%.120s %.120s", driver.driverName,
             driver.driverInfo);
}

static void read_memory(const oi_vk_instance *in, VkPhysicalDevice p, oi_vk_info *out)
{
    VkPhysicalDeviceMemoryProperties2 m = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    in->GetPhysicalDeviceMemoryProperties2(p, &m);
    for (uint32_t i = 0; i < m.memoryProperties.memoryHeapCount; i++) {
        const VkMemoryHeap *h = &m.memoryProperties.memoryHeaps[i];
        if (h->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT && h->size > out->memory_bytes)
            out->memory_bytes = h->size;
    }
}

/* False: it runs no compute shaders, or only Vulkan 1.0. */
static bool read_device(const oi_vk_instance *in, VkPhysicalDevice p, oi_vk_info *out)
{
    VkPhysicalDeviceProperties basic;
    bool stamps = false;
    in->GetPhysicalDeviceProperties(p, &basic);
    if (basic.apiVersion < VK_API_VERSION_1_1 || find_family(in, p, &stamps) == UINT32_MAX)
        return false;
    const uint32_t known = known_extensions(find_extensions(in, p), basic.apiVersion);
    features f;
    chain(&f, known);
    in->GetPhysicalDeviceFeatures2(p, &f.core);
    *out = (oi_vk_info){.type = type_name(basic.deviceType),
                        .version = {VK_API_VERSION_MAJOR(basic.apiVersion),
                                    VK_API_VERSION_MINOR(basic.apiVersion),
                                    VK_API_VERSION_PATCH(basic.apiVersion)},
                        .vendor = basic.vendorID,
                        .device = basic.deviceID,
                        .features = features_of(&f, known)};
    snprintf(out->name, sizeof out->name, "%s", basic.deviceName);
    read_limits(out, &basic.limits);
    read_more(in, p, known, out);
    read_memory(in, p, out);
    if (stamps && basic.limits.timestampPeriod > 0)
        out->features |= OI_VK_TIMESTAMPS;
    return true;
}

/* The devices that can be used, in the loader's order. */
static oi_vk_status find_devices(const oi_vk_instance *in, VkPhysicalDevice *handles,
                                 oi_vk_info *infos, size_t *n, char *why)
{
    VkPhysicalDevice all[MOST_DEVICES];
    uint32_t count = MOST_DEVICES;
    VkResult r = in->EnumeratePhysicalDevices(in->handle, &count, all);
    *n = 0;
    if (r < VK_SUCCESS && r != VK_ERROR_INITIALIZATION_FAILED)
        return oi_vk_judge(why, r, "vkEnumeratePhysicalDevices");
    for (uint32_t i = 0; r >= VK_SUCCESS && i < count; i++)
        if (read_device(in, all[i], &infos[*n]))
            handles[(*n)++] = all[i];
    if (*n == 0)
        return oi_vk_fail(why, OI_VK_NO_DEVICE,
                          "no Vulkan device that runs compute shaders: " INSTALL_DRIVER);
    return OI_VK_OK;
}

oi_vk_status oi_vk_devices(oi_vk_info *out, size_t cap, size_t *n, char *why)
{
    oi_vk_instance in;
    VkPhysicalDevice handles[MOST_DEVICES];
    *n = 0;
    oi_vk_status s = OI_VK_OK;
    oi_vk_info *infos = oi_vk_get_memory(why, MOST_DEVICES * sizeof *infos, &s);
    if (!infos || (s = open_instance(&in, why)) != OI_VK_OK) {
        free(infos);
        return s;
    }
    s = find_devices(&in, handles, infos, n, why);
    for (size_t i = 0; i < *n && i < cap; i++)
        out[i] = infos[i];
    close_instance(&in);
    free(infos);
    return s;
}

/* -- opening -- */

static bool contains(const char *text, const char *part)
{
    const size_t n = strlen(part);
    for (; *text; text++)
        if (strncmp(text, part, n) == 0)
            return true;
    return n == 0;
}

static int speed_of(const oi_vk_info *i)
{
    static const char *const order[] = {"other", "CPU", "virtual GPU", "integrated GPU",
                                        "discrete GPU"};
    for (int k = 4; k > 0; k--)
        if (strcmp(order[k], i->type) == 0)
            return k;
    return 0;
}

/* The number of the wanted device; n: there is none. */
static size_t choose(const oi_vk_info *infos, size_t n, const char *wanted)
{
    size_t best = 0;
    if (!wanted || !*wanted) {
        for (size_t i = 1; i < n; i++)
            if (speed_of(&infos[i]) > speed_of(&infos[best]))
                best = i;
        return best;
    }
    char *end;
    const unsigned long number = strtoul(wanted, &end, 10);
    if (!*end)
        return number < n ? number : n;
    for (size_t i = 0; i < n; i++)
        if (contains(infos[i].name, wanted))
            return i;
    return n;
}

static oi_vk_status find_device(oi_vk *d, const char *wanted, char *why)
{
    VkPhysicalDevice handles[MOST_DEVICES];
    size_t n = 0;
    oi_vk_status s = OI_VK_OK;
    oi_vk_info *infos = oi_vk_get_memory(why, MOST_DEVICES * sizeof *infos, &s);
    if (!infos)
        return s;
    s = find_devices(&d->in, handles, infos, &n, why);
    const size_t at = s == OI_VK_OK ? choose(infos, n, wanted) : 0;
    if (s == OI_VK_OK && at == n)
        s = oi_vk_fail(why, OI_VK_NO_DEVICE,
                       "no Vulkan device is '%.60s': there %s %zu, the first is '%.100s'", wanted,
                       n > 1 ? "are" : "is", n, infos[0].name);
    if (s == OI_VK_OK) {
        d->physical = handles[at];
        d->info = infos[at];
    }
    free(infos);
    return s;
}

static oi_vk_status check_features(const oi_vk *d, uint32_t lacks, char *why)
{
    for (uint32_t i = 0; i < sizeof feature_names / sizeof *feature_names; i++)
        if (lacks >> i & 1)
            return oi_vk_fail(why, OI_VK_NO_FEATURE, "the Vulkan device '%.120s' lacks %s",
                              d->info.name, feature_names[i]);
    return OI_VK_OK;
}

oi_vk_status oi_vk_lacks(oi_vk *d, uint32_t missing)
{
    return check_features(d, missing, d->why);
}

static oi_vk_status make_device(oi_vk *d, char *why)
{
    const uint32_t found = find_extensions(&d->in, d->physical);
    const uint32_t version = VK_MAKE_API_VERSION(0, d->info.version[0], d->info.version[1], 0);
    const char *names[N_EXTENSIONS];
    uint32_t n = 0, used = 0;
    for (uint32_t k = 0; k < N_EXTENSIONS; k++) {
        if (!(extensions[k].features & d->enabled))
            continue;
        used |= 1u << k;
        if (found >> k & 1 && version < extensions[k].since)
            names[n++] = extensions[k].name;
    }
    features f;
    chain(&f, used);
    switch_on(&f, d->enabled);
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = d->family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &f.core,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = n,
                                     .ppEnabledExtensionNames = names};
    return oi_vk_judge(why, d->in.CreateDevice(d->physical, &info, NULL, &d->device),
                       "vkCreateDevice");
}

static oi_vk_status load_device_functions(oi_vk *d, char *why)
{
#define LOAD(name)                                                          \
    d->name = (PFN_vk##name)d->in.GetDeviceProcAddr(d->device, "vk" #name); \
    if (!d->name)                                                           \
        return oi_vk_fail(why, OI_VK_FAILED, "the Vulkan driver has no vk%s", #name);
    OI_VK_DEVICE_FUNCTIONS(LOAD)
#undef LOAD
    return OI_VK_OK;
}

static oi_vk_status adopt(oi_vk *d, const oi_vk_own *own, char *why)
{
    d->is_own = true;
    d->in.handle = (VkInstance)own->instance;
    memcpy(&d->in.get, &own->get_instance_proc_addr, sizeof d->in.get);
    d->physical = (VkPhysicalDevice)own->physical;
    d->device = (VkDevice)own->device;
    const oi_vk_status s = load_instance_functions(&d->in, why);
    if (s != OI_VK_OK)
        return s;
    if (!read_device(&d->in, d->physical, &d->info))
        return oi_vk_fail(why, OI_VK_NO_DEVICE, "the given Vulkan device runs no compute shaders");
    d->family = own->family;
    d->queue = (VkQueue)own->queue;
    return OI_VK_OK;
}

static oi_vk_status open_device(oi_vk *d, const oi_vk_choice *c, char *why)
{
    const char *wanted = c->device ? c->device : getenv("OPENINFER_VULKAN_DEVICE");
    bool stamps;
    oi_vk_status s = c->own ? adopt(d, c->own, why) : open_instance(&d->in, why);
    if (s == OI_VK_OK && !c->own)
        s = find_device(d, wanted, why);
    if (s == OI_VK_OK)
        s = check_features(d, c->needs & ~d->info.features, why);
    if (s != OI_VK_OK)
        return s;
    d->enabled = (c->needs | c->wants) & d->info.features;
    if (!c->own) {
        d->family = find_family(&d->in, d->physical, &stamps);
        s = make_device(d, why);
    }
    if (s == OI_VK_OK)
        s = load_device_functions(d, why);
    if (s != OI_VK_OK)
        return s;
    if (!c->own)
        d->GetDeviceQueue(d->device, d->family, 0, &d->queue);
    VkPhysicalDeviceMemoryProperties2 m = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    d->in.GetPhysicalDeviceMemoryProperties2(d->physical, &m);
    d->memory = m.memoryProperties;
    VkPhysicalDeviceProperties basic;
    d->in.GetPhysicalDeviceProperties(d->physical, &basic);
    d->max_buffers = basic.limits.maxPerStageDescriptorStorageBuffers;
    return OI_VK_OK;
}

static void close_device(oi_vk *d)
{
    if (d->device && d->DestroyDevice && !d->is_own)
        d->DestroyDevice(d->device, NULL);
    close_instance(&d->in);
    free(d);
}

oi_vk_status oi_vk_open(oi_vk **out, const oi_vk_choice *choice, char *why)
{
    oi_vk_status s = OI_VK_OK;
    oi_vk *d = oi_vk_get_memory(why, sizeof *d, &s);
    *out = NULL;
    if (!d)
        return s;
    oi_vk_link *lists[] = {&d->buffers, &d->pipelines, &d->lists};
    for (int i = 0; i < 3; i++)
        lists[i]->next = lists[i]->prev = lists[i];
    s = open_device(d, choice, why);
    if (s == OI_VK_OK)
        *out = d;
    else
        close_device(d);
    return s;
}

void oi_vk_close(oi_vk *d)
{
    if (!d)
        return;
    (void)d->DeviceWaitIdle(d->device);
    while (d->lists.next != &d->lists)
        oi_vk_list_free((oi_vk_list *)d->lists.next);
    while (d->pipelines.next != &d->pipelines)
        oi_vk_pipeline_free((oi_vk_pipeline *)d->pipelines.next);
    while (d->buffers.next != &d->buffers)
        oi_vk_buffer_free((oi_vk_buffer *)d->buffers.next);
    close_device(d);
}

const oi_vk_info *oi_vk_about(const oi_vk *d)
{
    return &d->info;
}

uint32_t oi_vk_enabled(const oi_vk *d)
{
    return d->enabled;
}

const char *oi_vk_why(const oi_vk *d)
{
    return d->why;
}

uint64_t oi_vk_memory_used(const oi_vk *d)
{
    return d->used;
}

uint64_t oi_vk_memory_free(const oi_vk *d)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 m = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    uint64_t most = 0;
    if (d->enabled & OI_VK_MEMORY_BUDGET)
        m.pNext = &budget;
    d->in.GetPhysicalDeviceMemoryProperties2(d->physical, &m);
    for (uint32_t i = 0; i < m.memoryProperties.memoryHeapCount; i++) {
        const VkMemoryHeap *h = &m.memoryProperties.memoryHeaps[i];
        const uint64_t used = m.pNext ? budget.heapUsage[i] : d->used,
                       all = m.pNext ? budget.heapBudget[i] : h->size;
        if (h->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT && all > used && all - used > most)
            most = all - used;
    }
    return most;
}
