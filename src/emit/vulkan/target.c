/* target.c: capabilities of compute shaders: kernels run one after the other, each in workgroups.
 */
#include "device/cost.h"
#include "emit/vulkan/program.h"

static bool takes(const oi_device_info *d)
{
    return d->api == OI_DEVICE_VULKAN;
}

/* What every Vulkan device has. */
#define GROUP_SIZE   128
#define SHARED_BYTES 16384

static uint64_t group_size(const oi_device_info *d)
{
    const uint64_t most = d->limits.max_workgroup_invocations,
                   wide = d->limits.max_workgroup_size[0];
    const uint64_t least = most && (!wide || most < wide) ? most : wide;
    return least ? least : GROUP_SIZE;
}

static oi_caps caps(const oi_device_info *d)
{
    return (oi_caps){
        .goal = OI_GOAL_TIME,
        .workers = 1,
        .group_size = group_size(d),
        .sends_values = true,
        .subgroup_size = d->features >> OI_FEATURE_SUBGROUP_OPS & 1 ? d->limits.subgroup_size : 0,
        .shared_bytes =
            d->limits.max_shared_memory_bytes ? d->limits.max_shared_memory_bytes : SHARED_BYTES,
        .private_bytes = oi_cost_near(d),
        .alignment = d->limits.storage_buffer_alignment,
        .ram_bytes = d->memory.global_bytes};
}

/* Memory of the device. */
static void certify(const oi_plan *u, oi_certificate *out)
{
    *out = (oi_certificate){.state_bytes = u->state_bytes,
                            .arena_bytes = u->arena_bytes,
                            .undo_bytes = u->undo.bytes,
                            .weights_bytes = u->weights_bytes};
    for (size_t i = 0; i < u->tensors.n; i++) {
        const oi_tensor *t = &u->tensors.at[i];
        if (t->space == OI_SPACE_INPUT || t->space == OI_SPACE_OUTPUT)
            out->io_bytes += oi_tensor_bytes(t);
    }
    out->ram_bytes = out->struct_bytes =
        out->state_bytes + out->arena_bytes + out->io_bytes + out->undo_bytes;
}

/* GLSL's own functions of f64 are not exact enough. */
static bool has_helper(const oi_device_info *d, oi_arena *a, const char *name)
{
    (void)d;
    return !oi_helpers_missing(a, oi_glsl_helpers, oi_arena_printf(a, "%s(", name));
}

static bool has_type(const oi_device_info *d, const oi_op *op, oi_dtype t)
{
    (void)op;
    return t != OI_F64 || d->features >> OI_FEATURE_FP64 & 1;
}

const oi_target oi_target_vulkan = {.name = "vulkan",
                                    .writes = OI_SYNTH_PROGRAM,
                                    .takes = takes,
                                    .caps = caps,
                                    .program_name = oi_c_program_name,
                                    .graph_name = oi_c_graph_name,
                                    .note_names = oi_c_note_names,
                                    .certify = certify,
                                    .emit = oi_emit_vulkan,
                                    .emit_device = oi_emit_glsl,
                                    .has_weights = true,
                                    .tool = oi_vulkan_tool,
                                    .has_helper = has_helper,
                                    .has_type = has_type};
