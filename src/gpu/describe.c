/* describe.c: what the device can do, as the description of a device that programs are synthesized
 * for: passes and printer know no other. */
#include "gpu/gpu.h"

static void put_feature(oi_buf *b, const char *name, bool has)
{
    oi_buf_printf(b, "%s\"%s\": %s", b->text[b->n - 1] == '{' ? "" : ", ", name,
                  has ? "true" : "false");
}

oi_status gpu_describe(const oi_vk_info *info, uint32_t features, oi_device **out, oi_diag *d)
{
    oi_buf b = {0};
    char *text = NULL;
    oi_buf_printf(&b, "{\"extends\": \"vulkan_generic\", \"device\": {\"type\": \"gpu\", "
                      "\"api\": \"vulkan\", \"name\": ");
    oi_put_json(&b, info->name, strlen(info->name));
    oi_buf_printf(
        &b,
        "}, \"limits\": {\"max_workgroup_size\": [%u, %u, %u], \"max_workgroup_count\": [%u, %u, "
        "%u], \"max_workgroup_invocations\": %u, \"max_shared_memory_bytes\": %u, "
        "\"max_storage_buffer_range_bytes\": %llu, \"storage_buffer_alignment\": %u}, "
        "\"features\": {",
        info->group_size[0], info->group_size[1], info->group_size[2], info->group_count[0],
        info->group_count[1], info->group_count[2], info->group_invocations, info->shared_bytes,
        (unsigned long long)info->binding_bytes,
        info->buffer_align > 16 ? info->buffer_align : 16u);
    if (!b.failed) {
        put_feature(&b, "fp64", features & OI_VK_FLOAT64);
        put_feature(&b, "int64", features & OI_VK_INT64);
        put_feature(&b, "storage8", features & OI_VK_STORAGE8);
        put_feature(&b, "storage16", features & OI_VK_STORAGE16);
    }
    oi_buf_puts(&b, "}}");
    const size_t n = b.n;
    oi_status status = oi_buf_take(&b, &text);
    if (status != OI_OK)
        return oi_diag_env(d, "vulkan", "out of memory");
    status = oi_device_from_json(text, n, info->name, false, out, d);
    free(text);
    return status;
}
