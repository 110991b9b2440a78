/* mcu.c: files for a program without a C library: a demo with startup code, linker script and
 * semihosting input and output, and the Makefile. The C files under mcu/ are embedded unchanged. */
#include "emit/c/c.h"

#include "device/device.h"

#include <inttypes.h>

extern const oi_embedded oi_mcu_files[]; /* generated */

/* -- cores -- */

/* Compiler flags of a core, and the qemu machine that has it. */
typedef struct core {
    const char *flags, *fpu[OI_MCU_FPU_COUNT], *machine;
    const char *mve[OI_MCU_FPU_COUNT]; /* instead of `fpu`, with mcu.mve */
} core;

#define SOFT "-mfloat-abi=soft"
#define HARD "-mfloat-abi=hard -mfpu="
/* clang-format off */
/* A core that may have Helium; without floats its vectors are of integers. */
#define HELIUM(cpu, machine) {"-mthumb", \
    {cpu "+nomve " SOFT, cpu "+nomve " HARD "fpv5-sp-d16", cpu "+nomve " HARD "auto"}, machine, \
    {cpu "+nofp -mfloat-abi=hard", cpu " " HARD "fpv5-sp-d16", cpu " " HARD "auto"}}
/* clang-format on */

static const core cores[OI_MCU_CORE_COUNT] = {
    [OI_CORE_M0] = {"-mcpu=cortex-m0 -mthumb", {SOFT}, NULL, {NULL}},
    [OI_CORE_M0PLUS] = {"-mcpu=cortex-m0plus -mthumb", {SOFT}, NULL, {NULL}},
    [OI_CORE_M3] = {"-mcpu=cortex-m3 -mthumb", {SOFT}, "mps2-an385", {NULL}},
    [OI_CORE_M4] = {"-mcpu=cortex-m4 -mthumb", {SOFT, HARD "fpv4-sp-d16"}, "mps2-an386", {NULL}},
    [OI_CORE_M7] = {"-mcpu=cortex-m7 -mthumb",
                    {SOFT, HARD "fpv5-sp-d16", HARD "fpv5-d16"},
                    "mps2-an500",
                    {NULL}},
    [OI_CORE_M23] = {"-mcpu=cortex-m23 -mthumb", {SOFT}, NULL, {NULL}},
    [OI_CORE_M33] = {"-mcpu=cortex-m33 -mthumb", {SOFT, HARD "fpv5-sp-d16"}, NULL, {NULL}},
    [OI_CORE_M35P] = {"-mcpu=cortex-m35p -mthumb", {SOFT, HARD "fpv5-sp-d16"}, NULL, {NULL}},
    [OI_CORE_M52] = HELIUM("-mcpu=cortex-m52", NULL),
    [OI_CORE_M55] = HELIUM("-mcpu=cortex-m55", "mps3-an547"),
    [OI_CORE_M85] = HELIUM("-mcpu=cortex-m85", NULL),
    [OI_CORE_RV32IMC] = {"-march=rv32imc -mabi=ilp32", {""}, "virt", {NULL}},
    [OI_CORE_RV32IMAC] = {"-march=rv32imac -mabi=ilp32", {""}, "virt", {NULL}},
};

typedef enum family { NO_FAMILY, ARM, RISCV } family;

static family family_of(const oi_device_info *t)
{
    const char *flags = cores[t->mcu.core].flags;
    return !flags ? NO_FAMILY : strncmp(flags, "-march=rv", 9) == 0 ? RISCV : ARM;
}

bool oi_c_is_freestanding(const oi_cprog *c)
{
    return !c->form->is_remote && !c->form->device && !c->p->target->cpu.libc;
}

bool oi_c_is_board(const oi_cprog *c)
{
    return c->p->target->type == OI_DEVICE_MCU && oi_c_is_freestanding(c);
}

static bool has_floats(const oi_sops *ops)
{
    for (size_t i = 0; i < ops->n; i++)
        if (oi_dtype_is_float(ops->at[i].type))
            return true;
    return false;
}

/* The program neither stores nor computes floats, so it is built with flags that forbid them. */
static bool is_integer(const oi_plan *u)
{
    for (size_t i = 0; i < u->tensors.n; i++)
        if (u->tensors.at[i].space != OI_SPACE_NONE && oi_dtype_is_float(u->tensors.at[i].dtype))
            return false;
    for (size_t i = 0; i < u->kernels.n; i++) {
        const oi_skernel *k = &u->kernels.at[i];
        for (size_t j = 0; k->is_used && j < k->scalars.n; j++)
            if (oi_dtype_is_float(k->scalars.at[j].dtype))
                return false;
        const oi_sops *ops;
        for (size_t j = 0; k->is_used && (ops = oi_kernel_sops(k, j)) != NULL; j++)
            if (has_floats(ops))
                return false;
    }
    return true;
}

/* freestanding.c has the exact functions. Other f32 functions are our own text; f64 would call
 * libm. */
static bool is_missing(const char *word, size_t n)
{
    static const char *const missing[] = {
        "exp",  "log",  "pow",  "sin",   "cos",   "tan",   "asin", "acos",  "atan",  "atan2",
        "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",  "log1p", "expm1", "fma"};
    for (size_t i = 0; i < OI_COUNT(missing); i++)
        if (strlen(missing[i]) == n && memcmp(missing[i], word, n) == 0)
            return true;
    return false;
}

const char *oi_c_missing(const char *text, size_t *n)
{
    const char *word = text;
    for (*n = 0; oi_next_word(&word, n);)
        if (word[*n] == '(' && is_missing(word, *n))
            return word;
    return NULL;
}

oi_status oi_c_check_library(oi_cprog *c, const char *text)
{
    size_t n;
    const char *word = oi_c_missing(text, &n);
    if (!word)
        return OI_OK;
    return oi_plan_refuse(c->p, 0, NULL, (oi_span){0}, "E060",
                          "'%.*s' of f64 needs a C library, '%s' has none: use f32", (int)n, word,
                          c->p->target->name);
}

/* -- files -- */

static void add_text(oi_cprog *c, oi_emitted *files, const char *template, const char *name)
{
    for (const oi_embedded *e = oi_mcu_files; e->name; e++)
        if (strcmp(e->name, template) == 0)
            *OI_PUSH(c->arena, files) = (oi_emitted_file){
                name, oi_arena_text(c->arena, (const char *)e->text, e->size), e->size};
}

/* Sections that the device file names are placed separately. */
static const char *own_section(oi_cprog *c, const char *name)
{
    return name && *name ? oi_arena_printf(c->arena, " *(%s)", name) : "";
}

static void put_sections(oi_cprog *c, oi_out *o, family f)
{
    const oi_device_info *t = c->p->target;
    const unsigned align = (unsigned)c->p->align;
    oi_out_open(o, "SECTIONS");
    if (f == RISCV)
        oi_out_line(o, ".entry : { KEEP(*(.entry)) } > ram");
    oi_out_line(o, ".text : { KEEP(*(.vectors)) KEEP(*(.reset)) *(.text*) } > flash");
    oi_out_line(o, ".weights : ALIGN(%u) {%s *(.rodata*) *(.srodata*) . = ALIGN(4); } > flash",
                align, own_section(c, t->mcu.flash_section));
    oi_out_line(o, "data_from = LOADADDR(.data);");
    oi_out_line(o, ".data : ALIGN(4) { data_begin = .; *(.data*) *(.sdata*) . = ALIGN(4); "
                   "data_end = .; } > ram AT > flash");
    oi_out_line(o,
                ".bss (NOLOAD) : ALIGN(%u) { bss_begin = .;%s *(.bss*) *(.sbss*) *(COMMON) "
                ". = ALIGN(4); bss_end = .; } > ram",
                align, own_section(c, t->mcu.ram_section));
    oi_out_line(o, "stack_top = ORIGIN(ram) + LENGTH(ram);");
    oi_out_line(o, "stack_limit = stack_top - %" PRIu64 ";", (t->mcu.stack_bytes + 15) / 16 * 16);
    oi_out_line(o, "ASSERT(bss_end <= stack_limit, \"state, working memory and stack exceed the "
                   "RAM\")");
    oi_out_line(o, "/DISCARD/ : { *(.ARM.exidx*) *(.comment) *(.note*) *(.eh_frame*) }");
    oi_out_close(o, "");
}

static void put_script(oi_cprog *c, oi_emitted *files, family f)
{
    const oi_device_info *t = c->p->target;
    oi_out o = {0};
    uint64_t ram = t->memory.ram_bytes / 16 * 16;
    oi_out_line(&o, "/* link.ld: memory of %s. */",
                oi_escaped(c->arena, oi_put_c_comment, t->name));
    oi_out_line(&o, "ENTRY(reset)");
    oi_out_open(&o, "MEMORY");
    oi_out_line(&o, "flash (rx) : ORIGIN = 0x%08" PRIx64 ", LENGTH = %" PRIu64, t->mcu.flash_origin,
                t->memory.flash_bytes);
    oi_out_line(&o, "ram (rwx) : ORIGIN = 0x%08" PRIx64 ", LENGTH = %" PRIu64, t->mcu.ram_origin,
                ram);
    oi_out_close(&o, "");
    put_sections(c, &o, f);
    oi_c_add_file(c, files, "link.ld", &o);
}

static void put_run(oi_cprog *c, oi_out *o, family f)
{
    const char *machine = cores[c->p->target->mcu.core].machine;
    if (!machine)
        return;
    oi_out_line(o,
                "# Steps on an emulated machine: inputs from stdin, results to stdout. Its clock "
                "counts instructions, 1 ns each.");
    oi_out_line(o, "QEMU ?= %s", f == ARM ? "qemu-system-arm" : "qemu-system-riscv32");
    oi_out_line(o, "run: %s.elf", c->name);
    oi_out_line(o,
                "\t@$(QEMU) -M %s%s -display none -serial null -monitor none "
                "-icount shift=0 -semihosting-config enable=on,target=native -kernel %s.elf",
                machine, f == RISCV ? " -bios none" : "", c->name);
    oi_out_line(o, ".PHONY: run");
}

static void put_makefile(oi_cprog *c, oi_emitted *files, family f)
{
    const oi_device_info *t = c->p->target;
    const core *k = &cores[t->mcu.core];
    const char *n = c->name;
    oi_out o = {0};
    oi_out_line(&o, "# %s, freestanding, for %s", n,
                oi_escaped(c->arena, oi_put_line_comment, t->name));
    if (f != NO_FAMILY)
        oi_out_line(&o, "CROSS ?= %s", f == ARM ? "arm-none-eabi-" : "riscv64-unknown-elf-");
    oi_out_line(&o, "CC = $(CROSS)gcc");
    const char *const *units = t->mcu.mve ? k->mve : k->fpu;
    const char *fpu = units[is_integer(c->p) ? OI_FPU_NONE : t->mcu.fpu];
    oi_out_line(&o, "CPU =%s%s%s%s", k->flags ? " " : "", k->flags ? k->flags : "",
                fpu && *fpu ? " " : "", fpu ? fpu : "");
    oi_out_line(&o, "CFLAGS ?= -O2");
    oi_out_line(&o, "FLAGS = $(CPU) -std=%s -Wall -Wextra -pedantic -ffreestanding \\",
                oi_c_std_name(c));
    oi_out_line(&o, "  -fno-math-errno -ffunction-sections -fdata-sections -fstack-usage");
    oi_out_line(&o, "# the program itself, for any project: make lib%s.a", n);
    oi_out_line(&o, "OBJECTS = %s.o weights.o freestanding.o", n);
    if (f != NO_FAMILY) {
        oi_out_line(&o, "# a demo on an emulated machine: input and output by semihosting");
        oi_out_line(&o, "DEMO = main.o semihosting.o start.o");
    }
    oi_out_line(&o, "%s", "");
    if (f != NO_FAMILY) {
        oi_out_line(&o, "%s.elf: $(OBJECTS) $(DEMO) link.ld", n);
        oi_out_line(&o,
                    "\t$(CC) $(CPU) -nostdlib -nostartfiles -static -T link.ld -Wl,--gc-sections "
                    "-Wl,-Map=%s.map -o $@ $(OBJECTS) $(DEMO) -lgcc",
                    n);
    } else { /* no toolchain is known: only object files are built */
        oi_out_line(&o, "all: $(OBJECTS)");
    }
    oi_out_line(&o, "lib%s.a: $(OBJECTS)", n);
    oi_out_line(&o, "\t$(CROSS)ar rcs $@ $(OBJECTS)");
    oi_out_line(&o, "%%.o: %%.c %s.h hal.h freestanding.h", n);
    oi_out_line(&o, "\t$(CC) $(FLAGS) $(CFLAGS) -c -o $@ $<");
    if (t->mcu.clock_hz)
        oi_out_line(&o, "semihosting.o: FLAGS += -DCLOCK_HZ=%" PRIu64 "u", t->mcu.clock_hz);
    if (f != NO_FAMILY)
        put_run(c, &o, f);
    oi_out_line(&o, "clean:");
    oi_out_line(&o, "\trm -f %s.elf %s.map lib%s.a $(OBJECTS) $(DEMO) *.su", n, n, n);
    oi_out_line(&o, ".PHONY: clean");
    oi_c_add_file(c, files, "Makefile", &o);
}

void oi_c_freestanding_files(oi_cprog *c, oi_emitted *files)
{
    add_text(c, files, "freestanding_h", "freestanding.h");
    add_text(c, files, "freestanding", "freestanding.c");
}

void oi_c_mcu_files(oi_cprog *c, oi_emitted *files)
{
    family f = family_of(c->p->target);
    if (f != NO_FAMILY) {
        add_text(c, files, f == ARM ? "start_arm" : "start_riscv", "start.c");
        add_text(c, files, "semihosting", "semihosting.c");
        put_script(c, files, f);
    }
    put_makefile(c, files, f);
}
