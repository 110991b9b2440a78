/* targets.c: `openinfer targets`: the built-in device profiles and what this machine can do with
 * them; or a device, normalised; or the fields of a device file. */
#include "cli.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

static bool want_json, want_fields, is_strict;
static const char *probed;

static const cli_option options[] = {
    OPT_FLAG("json", 0, &want_json, "print the list as JSON"),
    OPT_FLAG("fields", 0, &want_fields, "explain every field of a device file"),
    OPT_TEXT("probe", 0, "DEVICE", &probed,
             "print a device file for a device of this machine: vulkan, or vulkan:NUMBER, "
             "vulkan:NAME"),
    OPT_FLAG("strict", 0, &is_strict, "unknown keys in a device file are errors"),
    OPT_END,
};

/* -- this machine ---------------------------------------------------------------------------------
 */

/* Programs that build or run what we emit; the path is found once. */
typedef struct tool {
    const char *name, *use;
    char *path; /* NULL = not found */
} tool;

enum {
    CC,
    GCC,
    CLANG,
    ARM_GCC,
    RISCV_GCC,
    AARCH64_GCC,
    NVCC,
    GLSLC,
    GLSLANG,
    GHDL,
    QEMU_ARM,
    QEMU_RISCV,
    QEMU_AARCH64,
    N_TOOLS
};

static tool tools[N_TOOLS] = {
    [CC] = {"cc", "C for this machine", NULL},
    [GCC] = {"gcc", "C for this machine", NULL},
    [CLANG] = {"clang", "C for this machine", NULL},
    [ARM_GCC] = {"arm-none-eabi-gcc", "C for Cortex-M", NULL},
    [RISCV_GCC] = {"riscv64-unknown-elf-gcc", "C for RISC-V", NULL},
    [AARCH64_GCC] = {"aarch64-linux-gnu-gcc", "C for 64-bit Arm", NULL},
    [NVCC] = {"nvcc", "CUDA", NULL},
    [GLSLC] = {"glslc", "Vulkan shaders", NULL},
    [GLSLANG] = {"glslangValidator", "Vulkan shaders", NULL},
    [GHDL] = {"ghdl", "VHDL: build and run", NULL},
    [QEMU_ARM] = {"qemu-system-arm", "runs Cortex-M programs", NULL},
    [QEMU_RISCV] = {"qemu-system-riscv32", "runs RISC-V programs", NULL},
    [QEMU_AARCH64] = {"qemu-aarch64", "runs 64-bit Arm programs", NULL},
};

static bool has_vulkan, has_cuda;
static uint32_t machine_isa; /* bit 1 << OI_ISA_… */
static struct utsname machine;

static bool has_library(const char *name)
{
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library)
        dlclose(library);
    return library != NULL;
}

static void look_around(void)
{
    for (int i = 0; i < N_TOOLS; i++)
        tools[i].path = oi_machine_find(tools[i].name);
    has_vulkan = has_library("libvulkan.so.1");
    has_cuda = has_library("libcuda.so.1");
    if (uname(&machine) != 0)
        strcpy(machine.machine, "unknown");
    machine_isa = oi_machine_isa();
}

static void forget(void)
{
    for (int i = 0; i < N_TOOLS; i++)
        oi_free(tools[i].path);
}

/* -- what can be done with a device here
 * ------------------------------------------------------------ */

static bool has(int which)
{
    return tools[which].path != NULL;
}

static const char *writes(const oi_device *d)
{
    switch (oi_synth_writes(d)) {
    case OI_SYNTH_PROGRAM: return "program";
    case OI_SYNTH_LISTING: return "listing";
    default: return NULL;
    }
}

/* -- as text -- */

static void print_profile(const char *name, const oi_device *device)
{
    const oi_device_info *d = oi_device_get(device);
    printf("  %-16s %-5s %-7s %-8s %-6s %-4s %s\n", name, oi_device_type_name(d->type),
           oi_device_api_name(d->api), writes(device) ? writes(device) : "-",
           oi_machine_builds(device) ? "yes" : "-", oi_machine_runs(device) ? "yes" : "-",
           d->notes);
}

static void print_tools(void)
{
    printf("\nthis machine\n  %-24s %s:", "cpu", machine.machine);
    for (int i = 0; i < OI_ISA_COUNT; i++)
        if (machine_isa >> i & 1)
            printf(" %s", oi_isa_name((oi_isa)i));
    printf("\n  %-24s %s\n", "Vulkan loader", has_vulkan ? "libvulkan.so.1" : "-");
    printf("  %-24s %s\n", "CUDA driver", has_cuda ? "libcuda.so.1" : "-");
    for (int i = 0; i < N_TOOLS; i++)
        printf("  %-24s %s%s%s%s\n", tools[i].name, has(i) ? tools[i].path : "-", " (",
               tools[i].use, ")");
}

/* -- as JSON -- */

static void put_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            printf("\\u%04x", *text);
        else
            putchar(*text);
    }
    putchar('"');
}

static void put_bool(const char *key, bool value, const char *end)
{
    printf("      \"%s\": %s%s\n", key, value ? "true" : "false", end);
}

static void profile_json(const char *name, const oi_device *device, bool first)
{
    const oi_device_info *d = oi_device_get(device);
    printf("%s\n    {\n      \"api\": \"%s\",\n", first ? "" : ",", oi_device_api_name(d->api));
    put_bool("can_build", oi_machine_builds(device), ",");
    put_bool("can_run", oi_machine_runs(device), ",");
    printf("      \"name\": \"%s\",\n      \"notes\": ", name);
    put_text(d->notes);
    printf(",\n      \"synth\": ");
    if (writes(device))
        put_text(writes(device));
    else
        printf("null");
    printf(",\n      \"type\": \"%s\"\n    }", oi_device_type_name(d->type));
}

static void machine_json(void)
{
    fputs("{\n  \"machine\": {\n    \"architecture\": ", stdout);
    put_text(machine.machine);
    printf(",\n    \"cuda_driver\": %s,\n    \"isa\": [", has_cuda ? "true" : "false");
    for (int i = 0, n = 0; i < OI_ISA_COUNT; i++)
        if (machine_isa >> i & 1)
            printf("%s\"%s\"", n++ ? ", " : "", oi_isa_name((oi_isa)i));
    fputs("],\n    \"tools\": {", stdout);
    for (int i = 0; i < N_TOOLS; i++) {
        printf("%s\n      \"%s\": ", i ? "," : "", tools[i].name);
        if (has(i))
            put_text(tools[i].path);
        else
            fputs("null", stdout);
    }
    printf("\n    },\n    \"vulkan_loader\": %s\n  },\n  \"profiles\": [",
           has_vulkan ? "true" : "false");
}

/* -- the command
 * -------------------------------------------------------------------------------------- */

static oi_status list_profiles(oi_diag *d)
{
    look_around();
    if (want_json)
        machine_json();
    else
        printf("built-in profiles\n  %-16s %-5s %-7s %-8s %-6s %s\n", "name", "type", "api",
               "synth", "build", "run");
    oi_status status = OI_OK;
    for (size_t i = 0; i < oi_device_profile_count() && status == OI_OK; i++) {
        oi_device *device = NULL;
        const char *name = oi_device_profile_name(i);
        status = oi_device_load(name, false, &device, d);
        if (status != OI_OK)
            break;
        if (want_json)
            profile_json(name, device, i == 0);
        else
            print_profile(name, device);
        oi_device_free(device);
    }
    if (want_json)
        puts("\n  ]\n}");
    else
        print_tools();
    forget();
    return status;
}

static oi_status print_normalised(oi_device *device, oi_diag *d)
{
    char *text = NULL;
    const oi_status status = oi_device_to_json(device, &text, d);
    if (status == OI_OK)
        fputs(text, stdout);
    oi_free(text);
    oi_device_free(device);
    return status;
}

static oi_status print_device(const char *name, oi_diag *d)
{
    oi_device *device = NULL;
    const oi_status status = oi_device_load(name, is_strict, &device, d);
    return status == OI_OK ? print_normalised(device, d) : status;
}

static oi_status probe(oi_diag *d)
{
    oi_device *device = NULL;
    if (strncmp(probed, "vulkan", 6) != 0 || (probed[6] && probed[6] != ':'))
        return cli_usage_error("--probe: there is no '%s'; try vulkan, vulkan:0, vulkan:NAME",
                               probed);
    const oi_status status =
        oi_device_probe(OI_DEVICE_VULKAN, probed[6] ? probed + 7 : NULL, &device, d);
    return status == OI_OK ? print_normalised(device, d) : status;
}

static oi_status print_fields(void)
{
    for (size_t i = 0; i < oi_device_field_count(); i++) {
        oi_device_field f = oi_device_field_at(i);
        printf("%-38s %-14s %-22s %s%s%s%s\n", f.path, f.wanted, f.standard, f.doc,
               f.belongs[0] ? " (" : "", f.belongs, f.belongs[0] ? ")" : "");
    }
    return OI_OK;
}

static oi_status run(cli_args args)
{
    if (want_fields)
        return print_fields();
    oi_diag *d = oi_diag_new();
    oi_status status = probed ? probe(d) : args.n ? OI_OK : list_profiles(d);
    for (size_t i = 0; i < args.n && status == OI_OK; i++)
        status = print_device(args.at[i], d);
    return cli_done(status, d);
}

static const char *const examples[] = {
    "openinfer targets",
    "the profiles, and what this machine can build and run",
    "openinfer targets cortex_m4",
    "the whole profile, every default filled in",
    "openinfer targets --strict my_gpu.json",
    "check a device file",
    "openinfer targets --probe vulkan > mine.json",
    "a device file for the GPU of this machine",
    "openinfer targets --fields",
    "what a device file may say",
    NULL,
};

const cli_command CMD_targets = {
    .description =
        "Lists the built-in device profiles: what `openinfer synth` writes for each, a program "
        "or a listing of the plan, and whether `openinfer "
        "verify` can build and run that "
        "program on this machine, by an emulator or on its own processor. Then come the processor "
        "and the compilers and emulators that are on PATH.\n\n"
        "Given names of profiles or device files, checks them and prints each as JSON with every "
        "default filled in and `extends` resolved: the form that is written next to generated "
        "code.",
    .examples = examples,
    .options = options,
    .run = run,
};
