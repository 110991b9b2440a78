/* tool.c: how Vulkan programs are built and run on this machine: a C compiler, a compiler of
 * shaders, the loader, and a device that has what the device file promises. */
#include "emit/vulkan/program.h"

#ifdef OI_HAVE_VULKAN
#include "emit/vulkan/host/vulkan_device.h"

#define MOST_DEVICES 16

/* What programs for the device may use. */
static uint32_t features_of(const oi_device_info *d)
{
    static const struct {
        oi_feature feature;
        oi_vk_feature is;
    } all[] = {{OI_FEATURE_INT64, OI_VK_INT64},
               {OI_FEATURE_FP64, OI_VK_FLOAT64},
               {OI_FEATURE_STORAGE8, OI_VK_STORAGE8},
               {OI_FEATURE_STORAGE16, OI_VK_STORAGE16},
               {OI_FEATURE_SUBGROUP_OPS, OI_VK_SUBGROUPS}};
    uint32_t mask = 0;
    for (size_t i = 0; i < OI_COUNT(all); i++)
        mask |= d->features >> all[i].feature & 1 ? all[i].is : 0;
    return mask;
}

static bool suits(const oi_device_info *d, const oi_vk_info *here)
{
    const uint32_t needs = features_of(d);
    return (needs & here->features) == needs &&
           d->limits.max_workgroup_invocations <= here->group_invocations &&
           d->limits.max_shared_memory_bytes <= here->shared_bytes &&
           d->limits.storage_buffer_alignment % here->buffer_align == 0;
}

/* Whether this machine has a device at all, and one that has what the file promises. */
static void look(const oi_device_info *device, oi_tool *out)
{
    oi_vk_info here[MOST_DEVICES];
    char why[OI_VK_NAME];
    size_t n = 0;
    bool any = false;
    if (oi_vk_devices(here, MOST_DEVICES, &n, why) != OI_VK_OK || n == 0) {
        out->no_run = "no Vulkan device: install the driver of the GPU, or one for the processor "
                      "(Debian package mesa-vulkan-drivers)";
        return;
    }
    for (size_t i = 0; i < n && i < MOST_DEVICES; i++)
        any |= suits(device, &here[i]);
    if (!any)
        out->no_run = "no Vulkan device of this machine has what the device file promises";
}
#else
static void look(const oi_device_info *device, oi_tool *out)
{
    (void)device, (void)out;
}
#endif

static bool is_here(const char *name)
{
    char *path = oi_machine_find(name);
    oi_free(path);
    return path != NULL;
}

oi_tool oi_vulkan_tool(const oi_device_info *device, const char *compiler)
{
    oi_tool t = {
        .build = {{"make", "make", false}, {"cc", "gcc", false}, {"glslc", "glslc", false}},
        .run = {{"libvulkan.so.1", "libvulkan1", true}},
        .compiler_variable = "CC",
        .flags_variable = "CFLAGS"};
    if (!is_here("glslc") && is_here("glslangValidator"))
        t.build[2] = (oi_tool_need){"glslangValidator", "glslang-tools", false};
    if (compiler)
        t.build[1] = (oi_tool_need){compiler, NULL, false};
    t.compiler = t.build[1].name;
    const char *const words[] = {
        t.compiler, "-fsyntax-only", "-include", "vulkan/vulkan_core.h", "-x", "c", "/dev/null"};
    memcpy(t.trial, words, sizeof words);
    look(device, &t);
    return t;
}
