/* fields.c: everything a device file may say, one row each. Reading, type errors, defaults, the
 * normalised form and the documentation all come from these rows. Order matters only where a
 * default is derived from an earlier row. */
#include "device/device.h"

#define NAME(id, name) name,
#define NAMES(list)       \
    (const char *const[]) \
    {                     \
        list(NAME) NULL   \
    }
#define AT(member) offsetof(oi_device_info, member)

/* clang-format off */
#define BOOL(path, on, member, standard, doc) \
    {path, OI_FIELD_BOOL, on, AT(member), standard, NULL, 0, 0, NULL, doc}
#define FEATURE(id, key, doc) \
    {"features." key, OI_FIELD_FEATURE, ON_ALL, AT(features), "false", NULL, id, 0, NULL, doc},
#define COUNT(path, on, member, standard, lo, hi, doc) \
    {path, OI_FIELD_COUNT, on, AT(member), standard, NULL, lo, hi, NULL, doc}
#define DERIVED(path, on, member, fn, lo, doc) \
    {path, OI_FIELD_COUNT, on, AT(member), NULL, fn, lo, OI_FIELD_MAX, NULL, doc}
#define POWER2(path, on, member, standard, hi, doc) \
    {path, OI_FIELD_POWER2, on, AT(member), standard, NULL, 1, hi, NULL, doc}
#define TRIPLE(path, on, member, standard, doc) \
    {path, OI_FIELD_TRIPLE, on, AT(member), standard, NULL, 1, OI_FIELD_MAX, NULL, doc}
#define NUMBER(path, on, member, standard, doc) \
    {path, OI_FIELD_NUMBER, on, AT(member), standard, NULL, 0, 0, NULL, doc}
#define TEXT(path, kind, on, member, standard, doc) \
    {path, kind, on, AT(member), standard, NULL, 0, 0, NULL, doc}
#define CHOICE(path, on, member, list, standard, doc) \
    {path, OI_FIELD_CHOICE, on, AT(member), standard, NULL, 0, 0, NAMES(list), doc}
#define SET(path, on, member, list, standard, doc) \
    {path, OI_FIELD_SET, on, AT(member), standard, NULL, 0, 0, NAMES(list), doc}
#define ALIAS(path, other, doc) \
    {path, OI_FIELD_ALIAS, ON_ALL, 0, other, NULL, 0, OI_FIELD_MAX, NULL, doc}

static uint64_t derive_invocations(const oi_device_info *d)
{
    uint64_t x = d->limits.max_workgroup_size[0];
    return x < 1024 ? x : 1024;
}

static uint64_t derive_shared(const oi_device_info *d)
{
    return d->limits.max_shared_memory_bytes;
}

static uint64_t derive_global(const oi_device_info *d)
{
    return d->memory.global_bytes;
}

static uint64_t derive_hdl(const oi_device_info *d)
{
    return d->api == OI_DEVICE_VERILOG ? OI_HDL_VERILOG : OI_HDL_VHDL;
}

/* Lines of a cache are not shared by tensors. Without one, what the widest element needs will do. */
static uint64_t derive_align(const oi_device_info *d)
{
    return d->cpu.cache_l1_bytes && d->cpu.line_bytes > 8 ? d->cpu.line_bytes : 8;
}

static bool is_riscv(const oi_device_info *d)
{
    return d->mcu.core == OI_CORE_RV32IMC || d->mcu.core == OI_CORE_RV32IMAC;
}

static uint64_t derive_flash_origin(const oi_device_info *d)
{
    return is_riscv(d) ? 0x20000000 : 0;
}

static uint64_t derive_ram_origin(const oi_device_info *d)
{
    return is_riscv(d) ? 0x80000000 : 0x20000000;
}

#define ANY OI_FIELD_MAX

const oi_field oi_fields[] = {
    CHOICE("device.type", ON_ALL, type, OI_DEVICE_TYPES, NULL, "kind of device"),
    CHOICE("device.api", ON_GPU, api, OI_DEVICE_APIS, "\"vulkan\"", "what the code is written in"),
    CHOICE("device.api", ON_CPU | ON_MCU, api, OI_DEVICE_APIS, "\"c\"", "what the code is written in"),
    CHOICE("device.api", ON_FPGA, api, OI_DEVICE_APIS, "\"vhdl\"", "what the code is written in"),
    TEXT("device.vendor", OI_FIELD_LOWER, ON_ALL, vendor, "\"generic\"", "selects vendor extensions"),
    TEXT("device.name", OI_FIELD_TEXT, ON_ALL, name, "\"unnamed\"", "only for comments in the output"),
    TEXT("device.architecture", OI_FIELD_ID, ON_ALL, architecture, "\"generic\"", "such as ada_lovelace, x86_64, cortex_m4"),
    TEXT("device.driver", OI_FIELD_TEXT, ON_ALL, driver, "\"\"", "informational, such as 555.xx"),

    TRIPLE("limits.max_workgroup_size", ON_ALL, limits.max_workgroup_size, "[128,128,64]", "invocations per axis"),
    DERIVED("limits.max_workgroup_invocations", ON_ALL, limits.max_workgroup_invocations, derive_invocations, 1, "invocations in all; default min(x, 1024)"),
    TRIPLE("limits.max_workgroup_count", ON_ALL, limits.max_workgroup_count, "[65535,65535,65535]", "workgroups per axis"),
    COUNT("limits.max_shared_memory_bytes", ON_ALL, limits.max_shared_memory_bytes, "16384", 1, ANY, "per workgroup; tiles must fit"),
    COUNT("limits.max_push_constants_bytes", ON_ALL, limits.max_push_constants_bytes, "128", 0, ANY, "larger parameter blocks go to a buffer"),
    COUNT("limits.max_storage_buffer_range_bytes", ON_ALL, limits.max_storage_buffer_range_bytes, "134217728", 1, ANY, "larger tensors are split or rejected"),
    POWER2("limits.subgroup_size", ON_ALL, limits.subgroup_size, "32", 1024, "invocations that run in step"),
    POWER2("limits.storage_buffer_alignment", ON_ALL, limits.storage_buffer_alignment, "256", 1 << 20, "bytes"),

    /* of two rows for one path the first that fits counts */
    {"features.int64", OI_FIELD_FEATURE, ON_CPU, AT(features), "true", NULL, OI_FEATURE_INT64, 0, NULL, "64-bit integer arithmetic"},
    {"features.int16", OI_FIELD_FEATURE, ON_CPU, AT(features), "true", NULL, OI_FEATURE_INT16, 0, NULL, "16-bit integer arithmetic"},
    OI_FEATURES(FEATURE)

    COUNT("memory.global_bytes", ON_GPU | ON_CPU, memory.global_bytes, "0", 0, ANY, "weights, state and activations must fit; 0 = unlimited"),
    COUNT("memory.global_bytes", ON_MCU | ON_FPGA, memory.global_bytes, NULL, 0, ANY, "weights, state and activations must fit"),
    DERIVED("memory.shared_bytes_per_sm", ON_ALL, memory.shared_bytes_per_sm, derive_shared, 0, "default limits.max_shared_memory_bytes"),
    COUNT("memory.l2_bytes", ON_ALL, memory.l2_bytes, "0", 0, ANY, "0 = unknown"),
    DERIVED("memory.flash_bytes", ON_ALL, memory.flash_bytes, derive_global, 0, "read-only memory; default memory.global_bytes"),
    DERIVED("memory.ram_bytes", ON_ALL, memory.ram_bytes, derive_global, 0, "writable memory; default memory.global_bytes"),
    NUMBER("memory.bandwidth_bytes_per_s", ON_ALL, memory.bandwidth_bytes_per_s, "0", "0 = unknown"),

    TEXT("preferences.default_precision", OI_FIELD_DTYPE, ON_ALL, preferences.default_precision, "\"fp32\"", "bf16, fp16: ops with such an `act` and 16 rows are computed so; others: nothing follows"),
    BOOL("preferences.prefer_fusion", ON_ALL, preferences.prefer_fusion, "true", "join ops into one kernel"),
    BOOL("preferences.prefer_persistent_kv", ON_ALL, preferences.prefer_persistent_kv, "true", "keep persistent variables on the device between steps"),
    COUNT("preferences.max_kernel_ops", ON_ALL, preferences.max_kernel_ops, "8", 1, ANY, "fused ops per kernel"),
    BOOL("preferences.deterministic", ON_ALL, preferences.deterministic, "true", "fixed order of reductions, no float atomics"),
    CHOICE("preferences.embed_weights", ON_GPU | ON_CPU, preferences.embed_weights, OI_EMBEDS, "\"auto\"", "compile weights in, or load the package at run time"),
    CHOICE("preferences.embed_weights", ON_MCU | ON_FPGA, preferences.embed_weights, OI_EMBEDS, "\"always\"", "compile weights in, or load the package at run time"),
    COUNT("preferences.large_pages_bytes", ON_CPU, preferences.large_pages_bytes, "33554432", 0, ANY, "weights, or a program's memory, of so many bytes go into large pages where the system has them; 0 = never"),
    CHOICE("preferences.host_lang", ON_GPU | ON_CPU, preferences.host_lang, OI_HOST_LANGS, "\"c\"", "language of the host program"),

    SET("cpu.isa", ON_CPU | ON_MCU, cpu.isa, OI_ISAS, "\"scalar\"", "instruction sets the code may use"),
    COUNT("cpu.threads", ON_CPU | ON_MCU, cpu.threads, "1", 0, 65536, "worker threads; 0 = decide at run time"),
    COUNT("cpu.cache_l1_bytes", ON_CPU, cpu.cache_l1_bytes, "32768", 0, ANY, "data cache, for blocking"),
    COUNT("cpu.cache_l1_bytes", ON_MCU, cpu.cache_l1_bytes, "0", 0, ANY, "data cache, for blocking"),
    COUNT("cpu.cache_l2_bytes", ON_CPU, cpu.cache_l2_bytes, "1048576", 0, ANY, "0 = none"),
    COUNT("cpu.cache_l2_bytes", ON_MCU, cpu.cache_l2_bytes, "0", 0, ANY, "0 = none"),
    COUNT("cpu.cache_l3_bytes", ON_CPU | ON_MCU, cpu.cache_l3_bytes, "0", 0, ANY, "0 = none"),
    POWER2("cpu.line_bytes", ON_CPU | ON_MCU, cpu.line_bytes, "64", 1 << 16, "cache line"),
    COUNT("cpu.clock_hz", ON_CPU, cpu.clock_hz, "0", 0, ANY, "0 = unknown"),
    NUMBER("cpu.l1_bytes_per_s", ON_CPU, cpu.l1_bytes_per_s, "0", "what one thread reads from the first cache; 0 = unknown"),
    NUMBER("cpu.l2_bytes_per_s", ON_CPU, cpu.l2_bytes_per_s, "0", "the same for the second"),
    NUMBER("cpu.l3_bytes_per_s", ON_CPU, cpu.l3_bytes_per_s, "0", "the same for the third"),
    NUMBER("cpu.memory_bytes_per_s", ON_CPU, cpu.memory_bytes_per_s, "0", "the same for memory; memory.bandwidth_bytes_per_s is for all threads"),
    NUMBER("cpu.f32_macs_per_s", ON_CPU | ON_MCU, cpu.f32_macs_per_s, "0", "multiply-accumulates of one thread in f32; 0 = unknown"),
    NUMBER("cpu.int8_macs_per_s", ON_CPU | ON_MCU, cpu.int8_macs_per_s, "0", "the same in 8-bit integers"),
    NUMBER("cpu.tile_macs_per_s", ON_CPU, cpu.tile_macs_per_s, "0", "the same in tiles of bf16, where there are any"),
    COUNT("cpu.barrier_ns", ON_CPU, cpu.barrier_ns, "0", 0, ANY, "all threads wait for each other once; 0 = unknown"),
    CHOICE("cpu.endianness", ON_CPU | ON_MCU, cpu.endianness, OI_ENDIANS, "\"little\"", "programs are made for little only"),
    CHOICE("cpu.c_standard", ON_CPU | ON_MCU, cpu.c_standard, OI_C_STANDARDS, "\"c11\"", "the emitted C keeps to"),
    BOOL("cpu.libc", ON_CPU, cpu.libc, "true", "false: freestanding, no malloc, stdio or math.h"),
    BOOL("cpu.libc", ON_MCU, cpu.libc, "false", "false: freestanding, no malloc, stdio or math.h"),

    COUNT("tuning.partition_elements", ON_CPU, tuning.partition_elements, "0", 0, ANY, "threads share a kernel that touches so many elements; 0 = by the caches, like all of these"),
    COUNT("tuning.gemm_depth", ON_CPU, tuning.gemm_depth, "0", 0, 4096, "products of matrices: how much of k at a time"),
    COUNT("tuning.gemm_rows", ON_CPU, tuning.gemm_rows, "0", 0, 4096, "the same, rows at a time"),
    COUNT("tuning.qlinear_bytes", ON_CPU, tuning.qlinear_bytes, "0", 0, 1 << 20, "weights in blocks: bytes of rows at a time"),
    COUNT("tuning.stream_ahead", ON_CPU, tuning.stream_ahead, "0", 0, 1 << 16, "weights that a single row reads: bytes to ask for early"),
    COUNT("tuning.warm_up_slices", ON_CPU, tuning.warm_up_slices, "0", 0, 1 << 16, "weights that do not fit the second caches: threads read one in so many parts of them together at every step, so that the third cache has them as shared; 0 = none"),
    COUNT("tuning.sdpa_floats", ON_CPU, tuning.sdpa_floats, "0", 0, 1 << 18, "attention: scores at a time"),

    CHOICE("mcu.core", ON_MCU, mcu.core, OI_MCU_CORES, "\"generic32\"", "processor core"),
    CHOICE("mcu.fpu", ON_MCU, mcu.fpu, OI_MCU_FPUS, "\"none\"", "floats in hardware"),
    BOOL("mcu.dsp", ON_MCU, mcu.dsp, "false", "packed multiply-accumulate"),
    BOOL("mcu.mve", ON_MCU, mcu.mve, "false", "vector extension (Helium)"),
    COUNT("mcu.clock_hz", ON_MCU, mcu.clock_hz, "0", 0, ANY, "0 = unknown"),
    COUNT("mcu.stack_bytes", ON_MCU, mcu.stack_bytes, "2048", 1, ANY, "what a step may use"),
    {"mcu.align_bytes", OI_FIELD_POWER2, ON_MCU, AT(mcu.align_bytes), NULL, derive_align, 8, 1 << 16, NULL, "of tensors; default a line where there is a cache, else 8"},
    DERIVED("mcu.flash_origin", ON_MCU, mcu.flash_origin, derive_flash_origin, 0, "address of memory.flash_bytes; default by the core"),
    DERIVED("mcu.ram_origin", ON_MCU, mcu.ram_origin, derive_ram_origin, 0, "address of memory.ram_bytes; default by the core"),
    TEXT("mcu.flash_section", OI_FIELD_SECTION, ON_MCU, mcu.flash_section, "\"\"", "linker section of the weights"),
    TEXT("mcu.ram_section", OI_FIELD_SECTION, ON_MCU, mcu.ram_section, "\"\"", "linker section of state and arena"),
    BOOL("mcu.heap", ON_MCU, mcu.heap, "false", "there is a heap; generated code never uses it"),
    ALIAS("mcu.ram_bytes", "memory.ram_bytes", "the same as memory.ram_bytes"),
    ALIAS("mcu.flash_bytes", "memory.flash_bytes", "the same as memory.flash_bytes"),

    TEXT("fpga.family", OI_FIELD_TEXT, ON_FPGA, fpga.family, "\"generic\"", "such as artix7, ecp5"),
    TEXT("fpga.part", OI_FIELD_TEXT, ON_FPGA, fpga.part, "\"\"", "part number"),
    COUNT("fpga.clock_hz", ON_FPGA, fpga.clock_hz, "0", 0, ANY, "target clock; 0 = none"),
    COUNT("fpga.luts", ON_FPGA, fpga.luts, "0", 0, ANY, "budget; 0 = unlimited"),
    COUNT("fpga.ffs", ON_FPGA, fpga.ffs, "0", 0, ANY, "budget; 0 = unlimited"),
    COUNT("fpga.dsps", ON_FPGA, fpga.dsps, "0", 0, ANY, "budget; 0 = unlimited"),
    COUNT("fpga.bram_bits", ON_FPGA, fpga.bram_bits, "0", 0, ANY, "budget; 0 = unlimited"),
    COUNT("fpga.uram_bits", ON_FPGA, fpga.uram_bits, "0", 0, ANY, "0 = none"),
    {"fpga.hdl", OI_FIELD_CHOICE, ON_FPGA, AT(fpga.hdl), NULL, derive_hdl, 0, 0, NAMES(OI_HDLS), "language of the output; default by device.api"},
    CHOICE("fpga.interface", ON_FPGA, fpga.interface, OI_FPGA_INTERFACES, "\"simple_valid_ready\"", "how data goes in and out"),
    COUNT("fpga.parallelism", ON_FPGA, fpga.parallelism, "0", 0, ANY, "multipliers at work; 0 = fit the budget"),
    COUNT("fpga.ii_target", ON_FPGA, fpga.ii_target, "1", 0, ANY, "clocks between inputs of a pipeline; 0 = none: one kernel after the other"),
    TEXT("fpga.fixed_point", OI_FIELD_OBJECT, ON_FPGA, fpga.fixed_point.present, "null", "format for float graphs; null: they are rejected"),
    COUNT("fpga.fixed_point.total_bits", ON_FPGA, fpga.fixed_point.total_bits, "16", 2, 64, "with the sign"),
    COUNT("fpga.fixed_point.frac_bits", ON_FPGA, fpga.fixed_point.frac_bits, "8", 0, 64, "behind the point"),
    CHOICE("fpga.fixed_point.rounding", ON_FPGA, fpga.fixed_point.rounding, OI_ROUNDINGS, "\"nearest_even\"", "of results"),
    CHOICE("fpga.fixed_point.overflow", ON_FPGA, fpga.fixed_point.overflow, OI_OVERFLOWS, "\"saturate\"", "of results"),

    TEXT("cuda.compute_capability", OI_FIELD_VERSION, ON_CUDA, cuda.compute_capability, "\"7.0\"", "such as 8.9"),
    TEXT("cuda.ptx_version", OI_FIELD_VERSION, ON_CUDA, cuda.ptx_version, "\"\"", "by compute capability when empty"),
    COUNT("cuda.sm_count", ON_CUDA, cuda.sm_count, "1", 1, ANY, "multiprocessors"),
    POWER2("cuda.warp_size", ON_CUDA, cuda.warp_size, "32", 1024, "threads that run in step"),
    COUNT("cuda.max_threads_per_block", ON_CUDA, cuda.max_threads_per_block, "1024", 1, ANY, "threads"),
    COUNT("cuda.regs_per_sm", ON_CUDA, cuda.regs_per_sm, "65536", 1, ANY, "32-bit registers"),
    DERIVED("cuda.shared_bytes_per_block_optin", ON_CUDA, cuda.shared_bytes_per_block_optin, derive_shared, 0, "default limits.max_shared_memory_bytes"),
    SET("cuda.tensor_cores", ON_CUDA, cuda.tensor_cores, OI_TENSOR_CORES, "[]", "types the matrix cores take"),
    BOOL("cuda.graphs", ON_CUDA, cuda.graphs, "true", "capture a step as a CUDA graph"),

    TEXT("vulkan.version", OI_FIELD_VERSION, ON_VULKAN, vulkan.version, "\"1.1\"", "of the API"),
    TEXT("vulkan.spirv", OI_FIELD_VERSION, ON_VULKAN, vulkan.spirv, "\"1.3\"", "of the shaders"),
    TEXT("vulkan.extensions", OI_FIELD_NAMES, ON_VULKAN, vulkan.extensions, "[]", "such as VK_KHR_shader_float16_int8"),
    CHOICE("vulkan.shader_lang", ON_VULKAN, vulkan.shader_lang, OI_SHADER_LANGS, "\"glsl\"", "of the emitted shaders"),
    BOOL("vulkan.timeline_semaphores", ON_VULKAN, vulkan.timeline_semaphores, "false", "order steps with them"),
};
/* clang-format on */

const size_t oi_n_fields = OI_COUNT(oi_fields);

/* -- documentation -- */

static const char *belongs(unsigned on)
{
    switch (on) {
    case ON_ALL: return "";
    case ON_GPU: return "gpu";
    case ON_CPU: return "cpu";
    case ON_MCU: return "mcu";
    case ON_FPGA: return "fpga";
    case ON_VULKAN: return "gpu with vulkan";
    case ON_CUDA: return "gpu with cuda";
    case ON_CPU | ON_MCU: return "cpu mcu";
    case ON_GPU | ON_CPU: return "gpu cpu";
    case ON_MCU | ON_FPGA: return "mcu fpga";
    default: return "gpu mcu fpga";
    }
}

size_t oi_device_field_count(void)
{
    return oi_n_fields;
}

/* What a field takes, in short; the messages say it at length. */
static const char *takes(oi_field_kind kind)
{
    switch (kind) {
    case OI_FIELD_BOOL:
    case OI_FIELD_FEATURE: return "bool";
    case OI_FIELD_COUNT:
    case OI_FIELD_ALIAS: return "count";
    case OI_FIELD_POWER2: return "power of two";
    case OI_FIELD_TRIPLE: return "[x, y, z]";
    case OI_FIELD_NUMBER: return "number";
    case OI_FIELD_VERSION: return "version";
    case OI_FIELD_CHOICE: return "name";
    case OI_FIELD_SET:
    case OI_FIELD_NAMES: return "list of names";
    case OI_FIELD_DTYPE: return "element type";
    case OI_FIELD_OBJECT: return "object or null";
    default: return "text";
    }
}

oi_device_field oi_device_field_at(size_t i)
{
    oi_device_field row = {.path = "", .wanted = "", .doc = "", .belongs = ""};
    if (i >= oi_n_fields)
        return row;
    const oi_field *f = &oi_fields[i];
    row.path = f->path;
    row.wanted = takes(f->kind);
    row.doc = f->doc;
    row.belongs = belongs(f->on);
    if (f->derive)
        snprintf(row.standard, sizeof row.standard, "derived");
    else if (f->standard && f->kind != OI_FIELD_ALIAS)
        snprintf(row.standard, sizeof row.standard, "%s", f->standard);
    return row;
}

/* -- names -- */

/* Spelling of a value; "" when there is none. */
static const char *name_of(const char *const *names, unsigned n, int value)
{
    return value >= 0 && (unsigned)value < n ? names[value] : "";
}

const char *oi_device_type_name(oi_device_type type)
{
    return name_of(NAMES(OI_DEVICE_TYPES), OI_DEVICE_TYPE_COUNT, (int)type);
}

const char *oi_device_api_name(oi_device_api api)
{
    return name_of(NAMES(OI_DEVICE_APIS), OI_DEVICE_API_COUNT, (int)api);
}

const char *oi_isa_name(oi_isa isa)
{
    return name_of(NAMES(OI_ISAS), OI_ISA_COUNT, (int)isa);
}
