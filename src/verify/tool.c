/* tool.c: which compiler builds a program, and what runs it on this machine. */
#include "verify/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

/* package NULL: the caller named the program. */
static oi_status need(const char *program, const char *package, oi_diag *d)
{
    char *path = oi_machine_find(program);
    if (path) {
        oi_free(path);
        return OI_OK;
    }
    oi_status status = oi_diag_env(d, program, "is not installed");
    if (package)
        oi_diag_hint(d, "Debian has it in the package %s", package);
    return status;
}

static bool is_unwritten(const oi_device_info *target, oi_diag *d)
{
    if (target->api == OI_DEVICE_C &&
        (target->type == OI_DEVICE_CPU || target->type == OI_DEVICE_MCU))
        return false;
    oi_diag_error(
        d, (oi_place){.file = target->name}, "",
        "programs for this device cannot be run here yet: verify knows C for a cpu or mcu");
    return true;
}

/* -- microcontrollers -- */

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

static oi_status find_mcu_cc(const oi_device_info *target, const char *cc, oi_tool *out, oi_diag *d)
{
    static const char *const names[][2] = {
        [OTHER_CORE] = {"gcc", "gcc"},
        [ARM_CORE] = {"arm-none-eabi-gcc", "gcc-arm-none-eabi"},
        [RISCV_CORE] = {"riscv64-unknown-elf-gcc", "gcc-riscv64-unknown-elf"},
    };
    const char *const *own = names[family_of(target->mcu.core)];
    out->cc = cc ? cc : own[0];
    return need(out->cc, cc ? NULL : own[1], d);
}

static oi_status find_board(const oi_device_info *target, oi_tool *out, oi_diag *d)
{
    oi_mcu_core core = target->mcu.core;
    bool is_arm = core == OI_CORE_M3 || core == OI_CORE_M4 || core == OI_CORE_M7;
    if (!is_arm && family_of(core) != RISCV_CORE) {
        oi_diag_error(d, (oi_place){.file = target->name}, "",
                      "programs for this core cannot be run here: qemu has no machine that verify "
                      "knows");
        return OI_ERR_ENV;
    }
    out->counts = true;
    out->runner[0] = "sh";
    out->runner[1] = "-c";
    out->runner[2] = run_machine;
    return is_arm ? need("qemu-system-arm", "qemu-system-arm", d)
                  : need("qemu-system-riscv32", "qemu-system-misc", d);
}

/* -- processors -- */

typedef enum place {
    HERE,     /* this machine's own kind of processor */
    EMULATED, /* 64-bit Arm, elsewhere */
    NOWHERE   /* x86, elsewhere */
} place;

static place place_of(const oi_device_info *target)
{
    struct utsname machine;
    bool is_arm = target->cpu.isa >> OI_ISA_NEON & 1, is_x86 = target->cpu.isa >> OI_ISA_SSE2 & 1;
    if (uname(&machine) != 0)
        machine.machine[0] = '\0';
    if (is_arm)
        return strcmp(machine.machine, "aarch64") == 0 ? HERE : EMULATED;
    return !is_x86 || strcmp(machine.machine, "x86_64") == 0 ? HERE : NOWHERE;
}

static oi_status find_cpu_cc(const oi_device_info *target, const char *cc, oi_tool *out, oi_diag *d)
{
    const bool is_foreign = place_of(target) == EMULATED;
    if (place_of(target) == NOWHERE) {
        oi_diag_error(d, (oi_place){.file = target->name}, "",
                      "programs for x86 cannot be built and run on this machine");
        return OI_ERR_ENV;
    }
    out->cc = cc ? cc : is_foreign ? "aarch64-linux-gnu-gcc" : "cc";
    return need(out->cc, cc ? NULL : is_foreign ? "gcc-aarch64-linux-gnu" : "gcc", d);
}

static oi_status find_emulator(const oi_device_info *target, oi_tool *out, oi_diag *d)
{
    if (place_of(target) != EMULATED)
        return OI_OK;
    out->runner[0] = "qemu-aarch64";
    out->runner[1] = "-L";
    out->runner[2] = "/usr/aarch64-linux-gnu";
    return need("qemu-aarch64", "qemu-user", d);
}

/* -- both -- */

static oi_status find_cc(const oi_device_info *target, const char *cc, oi_tool *out, oi_diag *d)
{
    if (is_unwritten(target, d))
        return OI_ERR_ENV;
    OI_TRY(need("make", "make", d));
    return target->type == OI_DEVICE_MCU ? find_mcu_cc(target, cc, out, d)
                                         : find_cpu_cc(target, cc, out, d);
}

static oi_status find_runner(const oi_device_info *target, oi_tool *out, oi_diag *d)
{
    if (is_unwritten(target, d))
        return OI_ERR_ENV;
    return target->type == OI_DEVICE_MCU ? find_board(target, out, d)
                                         : find_emulator(target, out, d);
}

oi_status oi_tool_find(const oi_device *device, const char *cc, oi_tool *out, oi_diag *d)
{
    const oi_device_info *target = oi_device_get(device);
    *out = (oi_tool){.target = target};
    OI_TRY(find_cc(target, cc, out, d));
    return find_runner(target, out, d);
}

/* A compiler may be there without the headers of the C library, which Debian packs apart. */
static bool compiles(const oi_tool *t)
{
    const bool libc = t->target->cpu.libc;
    const char *const argv[] = {t->cc,
                                libc ? "-fhosted" : "-ffreestanding",
                                "-fsyntax-only",
                                "-include",
                                libc ? "stdio.h" : "stdint.h",
                                "-x",
                                "c",
                                "/dev/null",
                                NULL};
    return oi_child_run(".", argv, "/dev/null") == 0;
}

bool oi_machine_builds(const oi_device *d)
{
    oi_tool tool = {.target = oi_device_get(d)};
    return oi_synth_writes(d) == OI_SYNTH_PROGRAM &&
           find_cc(tool.target, NULL, &tool, NULL) == OI_OK && compiles(&tool);
}

bool oi_machine_runs(const oi_device *d)
{
    oi_tool tool = {.target = oi_device_get(d)};
    if (oi_synth_writes(d) != OI_SYNTH_PROGRAM || find_runner(tool.target, &tool, NULL) != OI_OK)
        return false;
    if (tool.target->type == OI_DEVICE_MCU || place_of(tool.target) == EMULATED)
        return true;
    const uint32_t needed = tool.target->cpu.isa & ~(1u << OI_ISA_SCALAR);
    return (needed & oi_machine_isa()) == needed;
}

/* A program that fits on paper may still be too large with its code: the linker says by how much.
 */
static bool is_too_large(const oi_tool *t, const char *log, oi_diag *d)
{
    const struct {
        const char *said, *what;
        uint64_t has;
    } regions[] = {{"region `flash' overflowed by ", "flash", t->target->memory.flash_bytes},
                   {"region `ram' overflowed by ", "RAM", t->target->memory.ram_bytes}};
    for (size_t i = 0; i < OI_COUNT(regions); i++) {
        const char *at = strstr(log, regions[i].said);
        uint64_t over = at ? strtoull(at + strlen(regions[i].said), NULL, 10) : 0;
        if (!over)
            continue;
        oi_diag_error(d, (oi_place){.file = t->target->name}, "E062",
                      "with its code the program needs %" PRIu64 " bytes of %s, '%s' has %" PRIu64,
                      regions[i].has + over, regions[i].what, t->target->name, regions[i].has);
        return true;
    }
    return false;
}

oi_status oi_tool_build(const oi_tool *t, const char *dir, const char *flags, oi_diag *d)
{
    char cc[512], own[1024], log[4096];
    snprintf(cc, sizeof cc, "CC=%s", t->cc);
    snprintf(own, sizeof own, "CFLAGS=%s", flags ? flags : "");
    if (snprintf(log, sizeof log, "%s/build.log", dir) >= (int)sizeof log)
        return oi_diag_env(d, dir, "the path is too long");
    /* silent: what is left in the log is what went wrong */
    const char *const plain[] = {"make", "-s", cc, NULL};
    const char *const flagged[] = {"env", own, "make", "-s", cc, NULL};
    if (oi_child_run(dir, flags ? flagged : plain, log) == 0)
        return OI_OK;
    char *text = NULL;
    size_t n = 0;
    (void)oi_file_read(log, 1u << 20, &text, &n, NULL);
    if (!text || !is_too_large(t, text, d))
        oi_diag_error(d, (oi_place){.file = dir}, "", "%s did not build the program:\n%.*s", t->cc,
                      text ? oi_utf8_fit(text, 2000) : 0, text ? text : "");
    free(text);
    return OI_ERR_INPUT;
}
