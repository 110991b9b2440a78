/* needs.c: checks that the processor and the operating system support the instruction sets of the
 * program. It is compiled without them, because it runs before the check. */
#define _GNU_SOURCE
#include "hal.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TILES 0x60000u /* bits of XCR0: state that is saved on a task switch */
#define WIDE  0xe6u    /* 512 bits and masks */
#define HALF  0x6u     /* 256 bits */

/* Which bits of which cpuid register report a feature: `reg` is eax, ebx, ecx or edx of `leaf`. */
static const struct {
    const char *name;
    unsigned leaf, sub, reg, bits, saved;
} features[] = {
    {"sse2", 1, 0, 3, 1u << 26, 0},
    {"avx", 1, 0, 2, 1u << 28, HALF},
    {"fma", 1, 0, 2, 1u << 12, HALF},
    {"f16c", 1, 0, 2, 1u << 29, HALF},
    {"avx2", 7, 0, 1, 1u << 5, HALF},
    {"avx512f", 7, 0, 1, 1u << 16, WIDE},
    {"avx512bw", 7, 0, 1, 1u << 30 | 1u << 31 | 1u << 17, WIDE}, /* with vl and dq */
    {"avx512vnni", 7, 0, 2, 1u << 11, WIDE},
    {"avx512bf16", 7, 1, 0, 1u << 5, WIDE},
    {"avx512fp16", 7, 0, 3, 1u << 23, WIDE},
    {"amx_int8", 7, 0, 3, 1u << 24 | 1u << 25, TILES},
    {"amx_bf16", 7, 0, 3, 1u << 24 | 1u << 22, TILES},
};

static unsigned saved_state(void)
{
    unsigned r[4];
    if (!__get_cpuid(1, &r[0], &r[1], &r[2], &r[3]) || !(r[2] >> 27 & 1))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(r[0]), "=d"(r[3]) : "c"(0));
    return r[0];
}

/* Linux saves AMX tiles only for programs that ask for it. */
static int may_use_tiles(void)
{
#if defined(__linux__) && defined(SYS_arch_prctl)
    return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
    return 0;
#endif
}

static int has(const char *name)
{
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        unsigned r[4];
        if (strcmp(features[i].name, name) != 0)
            continue;
        return __get_cpuid_count(features[i].leaf, features[i].sub, &r[0], &r[1], &r[2], &r[3]) &&
               (r[features[i].reg] & features[i].bits) == features[i].bits &&
               (saved_state() & features[i].saved) == features[i].saved &&
               (features[i].saved != TILES || may_use_tiles());
    }
    return 0;
}

#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

static int has(const char *name)
{
    const unsigned long some = getauxval(AT_HWCAP), more = getauxval(AT_HWCAP2);
    return strcmp(name, "neon") == 0      ? some >> 1 & 1
           : strcmp(name, "dotprod") == 0 ? some >> 20 & 1
           : strcmp(name, "sve") == 0     ? some >> 22 & 1
           : strcmp(name, "i8mm") == 0    ? more >> 13 & 1
                                          : 0;
}

#elif defined(__aarch64__)
static int has(const char *name)
{
    return strcmp(name, "neon") == 0 || strcmp(name, "dotprod") == 0;
}

#else
static int has(const char *name)
{
    (void)name;
    return 0;
}
#endif

const char *hal_lacks(const char *instructions)
{
    static char why[96];
    char name[32];
    for (const char *p = instructions; sscanf(p, "%31s", name) == 1;) {
        if (!has(name)) {
            snprintf(why, sizeof why, "this processor has no %s, which the program needs", name);
            return why;
        }
        p = strstr(p, name) + strlen(name);
    }
    return NULL;
}
