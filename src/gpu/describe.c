/* describe.c: what the device can do, as the description of a device that programs are synthesized
 * for: passes and printer know no other. */
#include "gpu/gpu.h"

static void put_feature(oi_buf *b, const char *name, bool has)
{
    oi_buf_printf(b, "%s\"%s\": %s", b->text[b->n - 1] == '{' ? "" : ", ", name,
                  has ? "true" : "false");
}

static void put_limits(oi_buf *b, const oi_vk_info *info)
{
    oi_buf_printf(
        b,
        "\"limits\": {\"max_workgroup_size\": [%u, %u, %u], \"max_workgroup_count\": [%u, %u, %u], "
        "\"max_workgroup_invocations\": %u, \"max_shared_memory_bytes\": %u, "
        "\"max_push_constants_bytes\": %u, \"max_storage_buffer_range_bytes\": %llu, "
        "\"subgroup_size\": %u, \"storage_buffer_alignment\": %u}",
        info->group_size[0], info->group_size[1], info->group_size[2], info->group_count[0],
        info->group_count[1], info->group_count[2], info->group_invocations, info->shared_bytes,
        info->push_bytes, (unsigned long long)info->binding_bytes, info->subgroup_size,
        info->buffer_align > 16 ? info->buffer_align : 16u);
}

/* Shuffles want full subgroups. */
static void put_features(oi_buf *b, uint32_t features)
{
    const uint32_t subgroups = OI_VK_SUBGROUPS | OI_VK_FULL_SUBGROUPS;
    const struct {
        const char *name;
        uint32_t needs;
    } all[] = {{"subgroup_ops", subgroups},  {"fp64", OI_VK_FLOAT64},
               {"int64", OI_VK_INT64},       {"int16", OI_VK_INT16},
               {"int8", OI_VK_INT8},         {"fp16", OI_VK_FLOAT16},
               {"storage8", OI_VK_STORAGE8}, {"storage16", OI_VK_STORAGE16},
               {"dot8", OI_VK_DOT8},         {"cooperative_matrix", OI_VK_COOPERATIVE}};
    oi_buf_puts(b, "\"features\": {");
    for (size_t i = 0; !b->failed && i < OI_COUNT(all); i++)
        put_feature(b, all[i].name, (features & all[i].needs) == all[i].needs);
    oi_buf_puts(b, "}");
}

/* What a file of the device would say. `more` follows the name: other fields, and a comma. */
static oi_status describe(const oi_vk_info *info, uint32_t features, const char *more,
                          oi_device **out, oi_diag *d)
{
    oi_buf b = {0};
    char *text = NULL;
    oi_buf_puts(&b, "{\"extends\": \"vulkan_generic\", \"device\": {\"type\": \"gpu\", \"api\": "
                    "\"vulkan\", \"name\": ");
    oi_put_json(&b, info->name, strlen(info->name));
    oi_buf_printf(&b, "}, %s", more);
    put_limits(&b, info);
    oi_buf_puts(&b, ", ");
    put_features(&b, features);
    oi_buf_puts(&b, "}");
    const size_t n = b.n;
    oi_status status = oi_buf_take(&b, &text);
    if (status != OI_OK)
        return oi_diag_env(d, "vulkan", "out of memory");
    status = oi_device_from_json(text, n, info->name, false, out, d);
    free(text);
    return status;
}

oi_status gpu_describe(const oi_vk_info *info, uint32_t features, oi_device **out, oi_diag *d)
{
    return describe(info, features, "", out, d);
}

/* -- for people: all that it says about itself -- */

static oi_status describe_whole(const oi_vk_info *info, oi_device **out, oi_diag *d)
{
    oi_buf b = {0};
    char *more = NULL;
    oi_buf_puts(&b, "\"notes\": ");
    oi_put_json(&b, info->driver, strlen(info->driver));
    oi_buf_printf(&b,
                  ", \"memory\": {\"global_bytes\": %llu}, \"vulkan\": {\"version\": \"%u.%u\", "
                  "\"spirv\": \"1.%u\"}, ",
                  (unsigned long long)info->memory_bytes, info->version[0], info->version[1],
                  info->version[1] == 1   ? 3
                  : info->version[1] == 2 ? 5
                                          : 6);
    oi_status status = oi_buf_take(&b, &more);
    if (status != OI_OK)
        return oi_diag_env(d, "vulkan", "out of memory");
    status = describe(info, info->features, more, out, d);
    free(more);
    return status;
}

oi_status oi_device_probe(oi_device_api api, const char *which, oi_device **out, oi_diag *d)
{
    char why[OI_VK_NAME];
    oi_vk *vk;
    *out = NULL;
    if (api != OI_DEVICE_VULKAN)
        return oi_diag_env(d, oi_device_api_name(api), "only Vulkan devices can be asked");
    if (oi_vk_open(&vk, &(oi_vk_choice){.device = which}, why) != OI_VK_OK)
        return oi_diag_env(d, "vulkan", "%s", why);
    oi_status status = describe_whole(oi_vk_about(vk), out, NULL); /* without notes on effects */
    if (status != OI_OK)
        status =
            oi_diag_env(d, "vulkan", "the device describes itself in a way that is no device file");
    oi_vk_close(vk);
    return status;
}
