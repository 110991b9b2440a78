/* rules.c: what must hold between the fields of a device. An error when no code could be right, a
 * warning when something will be slower or unused. */
#include "device/device.h"

#include <inttypes.h>

static bool has(const oi_device_loader *x, oi_feature feature)
{
    return x->info.features >> feature & 1;
}

/* -- gpu -- */

static void check_limits(oi_device_loader *x)
{
    const oi_device_info *d = &x->info;
    const uint64_t *size = d->limits.max_workgroup_size;
    uint64_t most = d->limits.max_workgroup_invocations;
    /* size[0] * size[1] * size[2] < most, without overflow */
    if (size[0] < most && size[1] < most && size[2] < most && size[0] * size[1] < most &&
        size[0] * size[1] * size[2] < most && most <= 1u << 20)
        oi_device_warn(x, "W191", "/limits/max_workgroup_invocations",
                       "%" PRIu64 " invocations can never be reached: max_workgroup_size allows "
                       "%" PRIu64,
                       most, size[0] * size[1] * size[2]);
    if (d->memory.shared_bytes_per_sm < d->limits.max_shared_memory_bytes)
        oi_device_warn(x, "W191", "/memory/shared_bytes_per_sm",
                       "%" PRIu64 " is less than limits.max_shared_memory_bytes (%" PRIu64
                       "): a workgroup that uses all of it cannot run",
                       d->memory.shared_bytes_per_sm, d->limits.max_shared_memory_bytes);
}

static void check_features(oi_device_loader *x)
{
    if (has(x, OI_FEATURE_COOPERATIVE_MATRIX) && !has(x, OI_FEATURE_FP16) &&
        !has(x, OI_FEATURE_INT8) && !has(x, OI_FEATURE_BF16))
        oi_device_error(x, "E091", "/features/cooperative_matrix",
                        "cooperative_matrix needs fp16, int8 or bf16, but all three are false");
}

static void check_cuda(oi_device_loader *x)
{
    static const struct {
        oi_tensor_core core;
        oi_feature feature;
        const char *name;
    } needs[] = {{OI_TENSOR_CORE_F16, OI_FEATURE_FP16, "fp16"},
                 {OI_TENSOR_CORE_BF16, OI_FEATURE_BF16, "bf16"},
                 {OI_TENSOR_CORE_INT8, OI_FEATURE_INT8, "int8"},
                 {OI_TENSOR_CORE_FP8, OI_FEATURE_FP8, "fp8"}};
    const oi_device_info *d = &x->info;
    if (d->cuda.max_threads_per_block % d->cuda.warp_size)
        oi_device_error(x, "E091", "/cuda/max_threads_per_block",
                        "%" PRIu64 " is not a multiple of cuda.warp_size (%" PRIu64 ")",
                        d->cuda.max_threads_per_block, d->cuda.warp_size);
    if (d->cuda.shared_bytes_per_block_optin < d->limits.max_shared_memory_bytes)
        oi_device_error(x, "E091", "/cuda/shared_bytes_per_block_optin",
                        "%" PRIu64 " is less than limits.max_shared_memory_bytes (%" PRIu64
                        "), which needs no opting in",
                        d->cuda.shared_bytes_per_block_optin, d->limits.max_shared_memory_bytes);
    for (size_t i = 0; i < OI_COUNT(needs); i++)
        if (d->cuda.tensor_cores >> needs[i].core & 1 && !has(x, needs[i].feature))
            oi_device_warn(x, "W191", "/cuda/tensor_cores",
                           "the matrix cores take %s, but features.%s is false: not used",
                           needs[i].name, needs[i].name);
}

/* -- cpu -- */

#define ISA(name) (1u << OI_ISA_##name)
#define X86_ISA                                                                               \
    (ISA(SSE2) | ISA(AVX) | ISA(AVX2) | ISA(FMA) | ISA(F16C) | ISA(AVX512F) | ISA(AVX512BW) | \
     ISA(AVX512VNNI) | ISA(AVX512BF16) | ISA(AVX512FP16) | ISA(AMX_INT8) | ISA(AMX_BF16))
#define ARM_ISA   (ISA(NEON) | ISA(DOTPROD) | ISA(I8MM) | ISA(SVE))
#define RISCV_ISA ISA(RVV)

uint32_t oi_device_close_isa(uint32_t isa)
{
    static const struct {
        uint32_t any, implies; /* later rows first: one pass closes the set */
    } rows[] = {
        {ISA(AVX512FP16), ISA(AVX512BW)},
        {ISA(AVX512BW) | ISA(AVX512VNNI) | ISA(AVX512BF16), ISA(AVX512F)},
        {ISA(AVX512F), ISA(AVX2)},
        {ISA(AVX2) | ISA(FMA) | ISA(F16C), ISA(AVX)},
        {ISA(AVX) | ISA(AMX_INT8) | ISA(AMX_BF16), ISA(SSE2)},
        {ISA(DOTPROD) | ISA(I8MM) | ISA(SVE), ISA(NEON)},
    };
    for (size_t i = 0; i < OI_COUNT(rows); i++)
        if (isa & rows[i].any)
            isa |= rows[i].implies;
    isa &= ~ISA(SCALAR);
    return isa ? isa : ISA(SCALAR);
}

typedef struct family {
    const char *name;
    uint32_t isa;
    const char *const *architectures; /* how they begin */
} family;

static const family families[] = {
    {"x86", X86_ISA, (const char *const[]){"x86", "i386", "i486", "i586", "i686", "amd64", NULL}},
    {"Arm", ARM_ISA, (const char *const[]){"aarch", "arm", "cortex", NULL}},
    {"RISC-V", RISCV_ISA, (const char *const[]){"riscv", "rv32", "rv64", NULL}},
};

static bool begins_with_any(const char *text, const char *const *starts)
{
    for (; *starts; starts++)
        if (strncmp(text, *starts, strlen(*starts)) == 0)
            return true;
    return false;
}

static const char *isa_in(uint32_t isa)
{
    oi_isa i = 0;
    while (!(isa >> i & 1))
        i++;
    return oi_isa_name(i);
}

static void check_isa(oi_device_loader *x)
{
    uint32_t isa = x->info.cpu.isa;
    for (size_t i = 0; i < OI_COUNT(families); i++) {
        const family *f = &families[i];
        uint32_t other = isa & ~f->isa & ~ISA(SCALAR);
        if (isa & f->isa && other) {
            oi_device_error(x, "E091", "/cpu/isa", "%s is %s, but %s is not", isa_in(isa & f->isa),
                            f->name, isa_in(other));
            return;
        }
        if (other && begins_with_any(x->info.architecture, f->architectures)) {
            oi_device_error(x, "E091", "/cpu/isa", "%s does not exist on %s (%s)", isa_in(other),
                            x->info.architecture, f->name);
            return;
        }
    }
}

/* What a program without a C library does without. */
static void check_library(oi_device_loader *x)
{
    const oi_device_info *d = &x->info;
    static const char *const why = "has no effect: without a C library %s";
    if (d->type != OI_DEVICE_CPU || d->cpu.libc)
        return;
    if (d->cpu.threads > 1)
        oi_device_warn(x, "W191", "/cpu/threads", why, "programs have one thread");
    if (d->preferences.host_lang == OI_HOST_CPP)
        oi_device_warn(x, "W191", "/preferences/host_lang", why, "there is none of C++: it is C");
}

static void check_cpu(oi_device_loader *x)
{
    const oi_device_info *d = &x->info;
    check_isa(x);
    check_library(x);
    if (d->type == OI_DEVICE_CPU && d->cpu.cache_l1_bytes < d->cpu.line_bytes)
        oi_device_error(x, "E091", "/cpu/cache_l1_bytes",
                        "%" PRIu64 " is less than one cache line (%" PRIu64
                        "): tiles need a cache to fit",
                        d->cpu.cache_l1_bytes, d->cpu.line_bytes);
    if (d->cpu.endianness == OI_BIG_ENDIAN && d->preferences.embed_weights != OI_EMBED_ALWAYS)
        oi_device_error(x, "E091", "/cpu/endianness",
                        "packages are little-endian: a big-endian device needs "
                        "preferences.embed_weights \"always\"");
}

/* -- mcu -- */

/* What a core can have at most; a chip may leave it out. */
static const struct {
    oi_mcu_fpu fpu;
    bool dsp, mve;
} cores[OI_MCU_CORE_COUNT] = {
    [OI_CORE_GENERIC32] = {OI_FPU_DOUBLE, true, true},
    [OI_CORE_M0] = {OI_FPU_NONE, false, false},
    [OI_CORE_M0PLUS] = {OI_FPU_NONE, false, false},
    [OI_CORE_M3] = {OI_FPU_NONE, false, false},
    [OI_CORE_M4] = {OI_FPU_SINGLE, true, false},
    [OI_CORE_M7] = {OI_FPU_DOUBLE, true, false},
    [OI_CORE_M23] = {OI_FPU_NONE, false, false},
    [OI_CORE_M33] = {OI_FPU_SINGLE, true, false},
    [OI_CORE_M35P] = {OI_FPU_SINGLE, true, false},
    [OI_CORE_M52] = {OI_FPU_DOUBLE, true, true},
    [OI_CORE_M55] = {OI_FPU_DOUBLE, true, true},
    [OI_CORE_M85] = {OI_FPU_DOUBLE, true, true},
    [OI_CORE_RV32IMC] = {OI_FPU_NONE, false, false},
    [OI_CORE_RV32IMAC] = {OI_FPU_NONE, false, false},
    [OI_CORE_XTENSA_LX7] = {OI_FPU_SINGLE, true, false},
};

/* An address space of 32 bits, which flash and RAM share. */
static void check_places(oi_device_loader *x)
{
    const oi_device_info *d = &x->info;
    const uint64_t end = UINT64_C(1) << 32;
    const uint64_t flash = d->mcu.flash_origin, ram = d->mcu.ram_origin;
    if (flash >= end || d->memory.flash_bytes > end - flash)
        oi_device_error(x, "E091", "/mcu/flash_origin",
                        "flash ends beyond the addresses of 32 bits");
    else if (ram >= end || d->memory.ram_bytes > end - ram)
        oi_device_error(x, "E091", "/mcu/ram_origin", "RAM ends beyond the addresses of 32 bits");
    else if (flash < ram + d->memory.ram_bytes && ram < flash + d->memory.flash_bytes)
        oi_device_error(x, "E091", "/mcu/ram_origin",
                        "RAM at %" PRIu64 " and flash at %" PRIu64 " overlap", ram, flash);
}

static void check_core(oi_device_loader *x)
{
    const oi_device_info *d = &x->info;
    if (d->mcu.fpu > cores[d->mcu.core].fpu)
        oi_device_error(x, "E091", "/mcu/fpu", "this core has no such unit; at most \"%s\"",
                        cores[d->mcu.core].fpu == OI_FPU_SINGLE ? "single" : "none");
    if (d->mcu.dsp && !cores[d->mcu.core].dsp)
        oi_device_error(x, "E091", "/mcu/dsp", "this core has no packed multiply-accumulate");
    if (d->mcu.mve && !cores[d->mcu.core].mve)
        oi_device_error(x, "E091", "/mcu/mve", "this core has no vector extension");
    if (d->mcu.heap)
        oi_device_warn(x, "W191", "/mcu/heap", "generated code never allocates: not used");
    if (has(x, OI_FEATURE_FP64) && d->mcu.fpu != OI_FPU_DOUBLE)
        oi_device_warn(x, "W191", "/features/fp64",
                       "mcu.fpu is not \"double\": f64 is computed in software");
}

/* -- fpga -- */

static void check_fpga(oi_device_loader *x)
{
    const oi_device_info *d = &x->info;
    if (d->api == OI_DEVICE_VHDL && d->fpga.hdl != OI_HDL_VHDL)
        oi_device_error(x, "E091", "/fpga/hdl", "found verilog, but device.api is vhdl");
    if (d->api == OI_DEVICE_VERILOG && d->fpga.hdl != OI_HDL_VERILOG)
        oi_device_error(x, "E091", "/fpga/hdl", "found vhdl, but device.api is verilog");
    if (d->fpga.fixed_point.frac_bits > d->fpga.fixed_point.total_bits)
        oi_device_error(x, "E091", "/fpga/fixed_point/frac_bits",
                        "%" PRIu64 " of %" PRIu64 " bits cannot be behind the point",
                        d->fpga.fixed_point.frac_bits, d->fpga.fixed_point.total_bits);
}

/* -- every device -- */

static void check_memory(oi_device_loader *x)
{
    const oi_device_info *d = &x->info;
    bool small = d->type == OI_DEVICE_MCU || d->type == OI_DEVICE_FPGA;
    uint64_t all = d->memory.global_bytes;
    if (small && all == 0)
        oi_device_error(x, "E091", "/memory/global_bytes",
                        "found 0, but an mcu or fpga needs its size in bytes");
    if (small && d->memory.ram_bytes == 0)
        oi_device_error(x, "E091", "/memory/ram_bytes",
                        "found 0, but state and activations need writable memory");
    if (all && d->memory.ram_bytes > all)
        oi_device_warn(x, "W191", "/memory/ram_bytes",
                       "%" PRIu64 " is more than memory.global_bytes (%" PRIu64 ")",
                       d->memory.ram_bytes, all);
    if (all && d->memory.flash_bytes > all)
        oi_device_warn(x, "W191", "/memory/flash_bytes",
                       "%" PRIu64 " is more than memory.global_bytes (%" PRIu64 ")",
                       d->memory.flash_bytes, all);
}

static void check_preferences(oi_device_loader *x)
{
    const oi_device_info *d = &x->info;
    const oi_dtype precision = d->preferences.default_precision;
    const bool is_bf16 = precision == OI_BF16, rounds = is_bf16 || precision == OI_F16;
    if (rounds && !has(x, is_bf16 ? OI_FEATURE_BF16 : OI_FEATURE_FP16))
        oi_device_warn(x, "W191", "/preferences/default_precision",
                       "features.%s is false: factors are rounded to %s, but multiplied in f32",
                       is_bf16 ? "bf16" : "fp16", oi_dtype_name(precision));
    else if (!rounds && precision != OI_F32)
        oi_device_warn(x, "W191", "/preferences/default_precision",
                       "nothing follows from %s: ops are computed as the graph says (only bf16 "
                       "and fp16 change some)",
                       oi_dtype_name(precision));
    bool small = d->type == OI_DEVICE_MCU || d->type == OI_DEVICE_FPGA;
    if (small && d->preferences.embed_weights == OI_EMBED_NEVER)
        oi_device_error(x, "E091", "/preferences/embed_weights",
                        "found \"never\", but an mcu or fpga cannot load a package at run time");
}

void oi_device_check_rules(oi_device_loader *x)
{
    check_limits(x);
    check_features(x);
    check_memory(x);
    check_preferences(x);
    if (x->on & ON_CUDA)
        check_cuda(x);
    if (x->on & (ON_CPU | ON_MCU))
        check_cpu(x);
    if (x->on & ON_MCU) {
        check_core(x);
        check_places(x);
    }
    if (x->on & ON_FPGA)
        check_fpga(x);
    oi_device_check_effects(x);
}
