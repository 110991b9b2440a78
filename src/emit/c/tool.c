/* tool.c: which compiler builds C programs of a device, and what runs them on this machine. */
#include "emit/c/c.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/utsname.h>

/* -- microcontrollers: a cross compiler, and a machine that qemu emulates -- */

/* An emulated machine opens its stdin and stdout by name, which works for pipes: the cats make
 * some. The rest hands on the exit code of the middle of the line. */
static const char run_machine[] =
    "exec 3>&1; code=$({ { cat | { make -s run 2>run.log; echo $? >&4; }; } | cat >&3; } 4>&1); "
    "exit $code";

typedef enum core_family { OTHER_CORE, ARM_CORE, RISCV_CORE } core_family;

static core_family family_of(oi_mcu_core core)
{
    switch (core) {
    case OI_CORE_GENERIC32:
    case OI_CORE_XTENSA_LX7: return OTHER_CORE;
    case OI_CORE_RV32IMC:
    case OI_CORE_RV32IMAC: return RISCV_CORE;
    default: return ARM_CORE;
    }
}

static void put_mcu_compiler(const oi_device_info *device, oi_tool *out)
{
    static const oi_tool_need compilers[] = {
        [OTHER_CORE] = {"gcc", "gcc", false},
        [ARM_CORE] = {"arm-none-eabi-gcc", "gcc-arm-none-eabi", false},
        [RISCV_CORE] = {"riscv64-unknown-elf-gcc", "gcc-riscv64-unknown-elf", false},
    };
    out->build[1] = compilers[family_of(device->mcu.core)];
}

static void put_board(const oi_device_info *device, oi_tool *out)
{
    const oi_mcu_core core = device->mcu.core;
    const bool is_arm =
        core == OI_CORE_M3 || core == OI_CORE_M4 || core == OI_CORE_M7 || core == OI_CORE_M55;
    if (!is_arm && family_of(core) != RISCV_CORE) {
        out->no_run = "programs for this core cannot be run here: qemu has no machine that verify "
                      "knows";
        return;
    }
    out->counts = "instructions";
    out->runner[0] = "sh";
    out->runner[1] = "-c";
    out->runner[2] = run_machine;
    out->run[0] = is_arm ? (oi_tool_need){"qemu-system-arm", "qemu-system-arm", false}
                         : (oi_tool_need){"qemu-system-riscv32", "qemu-system-misc", false};
}

/* -- processors -- */

typedef enum place {
    HERE,     /* this machine's own kind of processor */
    EMULATED, /* 64-bit Arm, elsewhere */
    NOWHERE   /* x86, elsewhere */
} place;

static place place_of(const oi_device_info *device)
{
    struct utsname machine;
    bool is_arm = device->cpu.isa >> OI_ISA_NEON & 1, is_x86 = device->cpu.isa >> OI_ISA_SSE2 & 1;
    if (uname(&machine) != 0)
        machine.machine[0] = '\0';
    if (is_arm)
        return strcmp(machine.machine, "aarch64") == 0 ? HERE : EMULATED;
    return !is_x86 || strcmp(machine.machine, "x86_64") == 0 ? HERE : NOWHERE;
}

static void put_processor(const oi_device_info *device, oi_tool *out)
{
    const uint32_t needed = device->cpu.isa & ~(1u << OI_ISA_SCALAR);
    switch (place_of(device)) {
    case HERE:
        out->build[1] = (oi_tool_need){"cc", "gcc", false};
        out->lacks_instructions = (needed & oi_machine_isa()) != needed;
        break;
    case EMULATED:
        out->build[1] = (oi_tool_need){"aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu", false};
        out->run[0] = (oi_tool_need){"qemu-aarch64", "qemu-user", false};
        out->runner[0] = "qemu-aarch64";
        out->runner[1] = "-L";
        out->runner[2] = "/usr/aarch64-linux-gnu";
        break;
    case NOWHERE:
        out->no_build = out->no_run = "programs for x86 cannot be built and run on this machine";
        break;
    }
}

/* -- both -- */

/* A compiler may be installed without the headers of the C library, which Debian packs apart. */
static void put_trial(bool has_libc, oi_tool *out)
{
    const char *const words[] = {out->compiler,
                                 has_libc ? "-fhosted" : "-ffreestanding",
                                 "-fsyntax-only",
                                 "-include",
                                 has_libc ? "stdio.h" : "stdint.h",
                                 "-x",
                                 "c",
                                 "/dev/null"};
    memcpy(out->trial, words, sizeof words);
}

oi_tool oi_c_tool(const oi_device_info *device, const char *compiler)
{
    oi_tool t = {.build = {{"make", "make", false}},
                 .compiler_variable = "CC",
                 .flags_variable = "CFLAGS",
                 .measure_flags = "-O3 -fcallgraph-info=su"}; /* -O as in the Makefile */
    if (device->type == OI_DEVICE_MCU) {
        t.measure_flags = "-O2 -fcallgraph-info=su";
        put_mcu_compiler(device, &t);
        put_board(device, &t);
    } else {
        put_processor(device, &t);
    }
    if (compiler)
        t.build[1] = (oi_tool_need){compiler, NULL, false};
    t.compiler = t.build[1].name;
    put_trial(device->cpu.libc, &t);
    return t;
}

/* A program that fits on paper may still be too large with its code: the linker says by how much.
 */
bool oi_c_explain(const oi_device_info *device, const char *log, oi_diag *d)
{
    const struct {
        const char *said, *what;
        uint64_t has;
    } regions[] = {{"region `flash' overflowed by ", "flash", device->memory.flash_bytes},
                   {"region `ram' overflowed by ", "RAM", device->memory.ram_bytes}};
    for (size_t i = 0; i < OI_COUNT(regions); i++) {
        const char *at = strstr(log, regions[i].said);
        uint64_t over = at ? strtoull(at + strlen(regions[i].said), NULL, 10) : 0;
        if (!over)
            continue;
        oi_diag_error(d, (oi_place){.file = device->name}, "E062",
                      "with its code the program needs %" PRIu64 " bytes of %s, '%s' has %" PRIu64,
                      regions[i].has + over, regions[i].what, device->name, regions[i].has);
        return true;
    }
    return false;
}
