/* effects.c: fields that this version reads and does nothing with, by kind of device and with the
 * reason. A file that gives one of them a value other than its default is told so (W191); values
 * of the built-in profiles are not mentioned. tests/test_device_fields.py tries every field, so a
 * row here goes when its field begins to act. */
#include "device/device.h"

/* clang-format off */
static const struct idle {
    const char *path; /* a field, or a section with its dot */
    unsigned on;
    const char *why;
} idle[] = {
    {"limits.", ON_CPU | ON_MCU, "it is a limit of compute shaders"},
    {"limits.max_push_constants_bytes", ON_VULKAN, "run-time numbers lie in a storage buffer"},
    {"limits.max_workgroup_count", ON_VULKAN, "the runtime splits dispatches as the device at hand wants it"},
    {"limits.max_workgroup_invocations", ON_CUDA, "the threads of a block follow from limits.max_workgroup_size and cuda.max_threads_per_block"},
    {"limits.max_workgroup_count", ON_CUDA, "a step has as many blocks as the GPU runs side by side"},
    {"limits.max_shared_memory_bytes", ON_CUDA, "programs use the 48 KiB that every GPU gives a block"},
    {"limits.max_push_constants_bytes", ON_CUDA, "it is a limit of compute shaders"},
    {"limits.max_storage_buffer_range_bytes", ON_CUDA, "it is a limit of compute shaders"},
    {"limits.storage_buffer_alignment", ON_CUDA, "it is a limit of compute shaders"},
    {"limits.subgroup_size", ON_CUDA, "a warp has 32 threads"},
    {"features.", ON_CUDA, "what CUDA C++ may use is said by cuda.compute_capability"},
    {"features.", ON_CPU | ON_MCU, "what C may use is said by cpu.isa, mcu.fpu, mcu.dsp and mcu.mve"},
    {"features.fp16", ON_VULKAN, "shaders compute f16 in f32 so far"},
    {"features.int8", ON_VULKAN, "shaders compute 8-bit integers in 32 bits so far"},
    {"features.int16", ON_VULKAN, "shaders compute 16-bit integers in 32 bits so far"},
    {"features.bf16", ON_VULKAN, "shaders compute bf16 in f32 so far"},
    {"features.fp8", ON_VULKAN, "shaders compute f8 in f32 so far"},
    {"features.dot8", ON_VULKAN, "shaders do not use dot products of bytes yet"},
    {"features.cooperative_matrix", ON_VULKAN, "shaders do not use matrix units yet"},
    {"features.atomics_f32", ON_VULKAN, "the order of sums is fixed, so no float is added atomically"},
    {"memory.shared_bytes_per_sm", ON_CPU | ON_MCU | ON_GPU, "no workgroup's memory is planned by it"},
    {"memory.l2_bytes", ON_CPU | ON_MCU, "caches of a processor are cpu.cache_l2_bytes and its like"},
    {"memory.l2_bytes", ON_GPU, "kernels are not blocked for a cache yet"},
    {"memory.flash_bytes", ON_CPU | ON_GPU, "it belongs to microcontrollers; here memory.global_bytes bounds all"},
    {"memory.ram_bytes", ON_CPU | ON_GPU, "it belongs to microcontrollers; here memory.global_bytes bounds all"},
    {"memory.bandwidth_bytes_per_s", ON_MCU, "only the plans of threads use it"},
    {"preferences.prefer_persistent_kv", ON_CPU | ON_MCU | ON_GPU, "persistent variables always stay on the device between steps"},
    {"preferences.deterministic", ON_CPU | ON_MCU | ON_GPU, "the order of sums is always fixed"},
    {"cpu.threads", ON_MCU, "programs for microcontrollers have one thread"},
    {"cpu.cache_l3_bytes", ON_MCU, "programs for microcontrollers are not blocked for caches"},
    {"cpu.int8_macs_per_s", ON_MCU, "times of kernels for microcontrollers are not predicted by it"},
    {"cuda.ptx_version", ON_CUDA, "the compiler decides"},
    {"cuda.warp_size", ON_CUDA, "a warp has 32 threads"},
    {"cuda.regs_per_sm", ON_CUDA, "blocks have as many threads as registers of all GPUs allow"},
    {"cuda.shared_bytes_per_block_optin", ON_CUDA, "programs use the 48 KiB that every GPU gives a block"},
    {"cuda.tensor_cores", ON_CUDA, "kernels do not use matrix units yet"},
    {"cuda.graphs", ON_CUDA, "a step is one kernel"},
    {"vulkan.version", ON_VULKAN, "shaders need no more than Vulkan 1.1"},
    {"vulkan.spirv", ON_VULKAN, "the compiler of the shaders decides"},
    {"vulkan.extensions", ON_VULKAN, "shaders ask for those that features.int64, storage8 and storage16 need"},
    {"vulkan.timeline_semaphores", ON_VULKAN, "a step is one submission and its fence"},
};
/* clang-format on */

void oi_device_note_given(oi_device_loader *x, struct json_object *tree)
{
    for (size_t i = 0; i < oi_n_fields; i++) {
        struct json_object *at = tree;
        const char *p = oi_fields[i].path;
        for (size_t n; at && *p; p += n + (p[n] == '.')) {
            n = strcspn(p, ".");
            struct json_object *below = NULL;
            if (json_object_is_type(at, json_type_object))
                json_object_object_get_ex(at, oi_arena_text(x->a, p, n), &below);
            at = below;
        }
        if (at)
            oi_map_set(&x->named, oi_fields[i].path, 1);
    }
}

/* Words of preferences.default_precision that make a feature say something: a warning of its own
 * tells about factors that are rounded, but multiplied in f32. */
static bool is_asked(const oi_device_loader *x, const oi_field *f)
{
    const oi_dtype t = x->info.preferences.default_precision;
    return f->kind == OI_FIELD_FEATURE && ((f->min == OI_FEATURE_BF16 && t == OI_BF16) ||
                                           (f->min == OI_FEATURE_FP16 && t == OI_F16));
}

static const char *why_idle(const oi_device_loader *x, const oi_field *f)
{
    for (size_t i = 0; i < OI_COUNT(idle); i++) {
        const size_t n = strlen(idle[i].path);
        const bool fits = idle[i].path[n - 1] == '.' ? strncmp(idle[i].path, f->path, n) == 0
                                                     : strcmp(idle[i].path, f->path) == 0;
        if (fits && idle[i].on & x->on)
            return idle[i].why;
    }
    return NULL;
}

void oi_device_check_effects(oi_device_loader *x)
{
    if (x->info.api == OI_DEVICE_NULL)
        return;
    for (size_t i = 0; i < x->n_told; i++) {
        const oi_field *f = x->told[i];
        const char *why = is_asked(x, f) ? NULL : why_idle(x, f);
        if (why)
            oi_device_warn(x, "W191", oi_device_pointer(x->a, f->path), "has no effect: %s", why);
    }
}

void oi_device_note_value(oi_device_loader *x, const oi_field *f)
{
    const char *text = json_object_to_json_string_ext(x->made, JSON_C_TO_STRING_PLAIN);
    const bool is_default = !f->derive && f->standard && text && strcmp(text, f->standard) == 0;
    if (oi_map_get(&x->named, f->path) == OI_MAP_NONE || is_default)
        return;
    if (!x->told)
        x->told = oi_arena_alloc(x->a, oi_n_fields * sizeof *x->told);
    x->told[x->n_told++] = f;
}
