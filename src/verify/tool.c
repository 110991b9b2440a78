/* tool.c: which compiler builds a program, and what runs it on this machine. */
#include "verify/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

static bool is_program(const char *name)
{
    char path[4096];
    if (strchr(name, '/'))
        return access(name, X_OK) == 0;
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t n = strcspn(at, ":");
        if (snprintf(path, sizeof path, "%.*s/%s", (int)n, at, name) < (int)sizeof path &&
            access(path, X_OK) == 0)
            return true;
        at += n + (at[n] == ':');
    }
    return false;
}

/* package NULL: the caller named the program. */
static oi_status need(const char *program, const char *package, oi_diag *d)
{
    if (is_program(program))
        return OI_OK;
    oi_status status = oi_diag_env(d, program, "is not installed");
    if (package)
        oi_diag_hint(d, "Debian has it in the package %s", package);
    return status;
}

static bool runs_here(const oi_device_info *target)
{
    struct utsname machine;
    bool is_arm = target->cpu.isa >> OI_ISA_NEON & 1;
    bool here = uname(&machine) == 0 && strcmp(machine.machine, "aarch64") == 0;
    return is_arm == here || target->cpu.isa == 1u << OI_ISA_SCALAR;
}

/* -- microcontrollers -- */

/* An emulated machine opens its stdin and stdout by name, which works for pipes: the cats make
 * some. The rest hands on the exit code of the middle of the line. */
static const char run_machine[] =
    "exec 3>&1; code=$({ { cat | { make -s run 2>run.log; echo $? >&4; }; } | cat >&3; } 4>&1); "
    "exit $code";

static oi_status find_mcu(const oi_device_info *target, const char *cc, oi_tool *out, oi_diag *d)
{
    oi_mcu_core core = target->mcu.core;
    bool is_arm = core == OI_CORE_M3 || core == OI_CORE_M4 || core == OI_CORE_M7;
    if (!is_arm && core != OI_CORE_RV32IMC && core != OI_CORE_RV32IMAC) {
        oi_diag_error(d, (oi_place){.file = target->name}, "",
                      "programs for this core cannot be run here: qemu has no machine that verify "
                      "knows");
        return OI_ERR_ENV;
    }
    out->cc = cc ? cc : is_arm ? "arm-none-eabi-gcc" : "riscv64-unknown-elf-gcc";
    out->runner[0] = "sh";
    out->runner[1] = "-c";
    out->runner[2] = run_machine;
    OI_TRY(need("make", "make", d));
    const char *package = is_arm ? "gcc-arm-none-eabi" : "gcc-riscv64-unknown-elf";
    OI_TRY(need(out->cc, cc ? NULL : package, d));
    return is_arm ? need("qemu-system-arm", "qemu-system-arm", d)
                  : need("qemu-system-riscv32", "qemu-system-misc", d);
}

oi_status oi_tool_find(const oi_device *device, const char *cc, oi_tool *out, oi_diag *d)
{
    const oi_device_info *target = oi_device_get(device);
    *out = (oi_tool){.target = target, .cc = cc ? cc : "cc"};
    if (target->type == OI_DEVICE_MCU)
        return find_mcu(target, cc, out, d);
    if (target->type != OI_DEVICE_CPU || target->api != OI_DEVICE_C) {
        oi_diag_error(
            d, (oi_place){.file = target->name}, "",
            "programs for this device cannot be run here yet: verify knows C for a cpu or mcu");
        return OI_ERR_ENV;
    }
    OI_TRY(need("make", "make", d));
    if (runs_here(target))
        return need(out->cc, cc ? NULL : "gcc", d);
    if (!cc)
        out->cc = "aarch64-linux-gnu-gcc";
    OI_TRY(need(out->cc, cc ? NULL : "gcc-aarch64-linux-gnu", d));
    out->runner[0] = "qemu-aarch64";
    out->runner[1] = "-L";
    out->runner[2] = "/usr/aarch64-linux-gnu";
    return need("qemu-aarch64", "qemu-user", d);
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
