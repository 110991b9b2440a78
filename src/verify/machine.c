/* machine.c: this machine: its programs and its processor. */
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Looks through PATH as a shell would, without running one. */
char *oi_machine_find(const char *name)
{
    if (strchr(name, '/'))
        return is_program(name) ? strdup(name) : NULL;
    const char *path = getenv("PATH");
    for (const char *p = path; p; p = *p ? p + 1 : NULL) {
        size_t n = strcspn(p, ":");
        char *full = malloc(n + strlen(name) + 3);
        if (!full)
            return NULL;
        sprintf(full, "%.*s/%s", n ? (int)n : 1, n ? p : ".", name);
        if (is_program(full))
            return full;
        free(full);
        p += n;
    }
    return NULL;
}

/* -- the processor -- */

/* What the kernel calls each instruction set in /proc/cpuinfo; it hides what it does not support.
 */
static const char *const kernel_names[OI_ISA_COUNT] = {
    [OI_ISA_SSE2] = "sse2",
    [OI_ISA_AVX] = "avx",
    [OI_ISA_AVX2] = "avx2",
    [OI_ISA_FMA] = "fma",
    [OI_ISA_F16C] = "f16c",
    [OI_ISA_AVX512F] = "avx512f",
    [OI_ISA_AVX512BW] = "avx512bw",
    [OI_ISA_AVX512VNNI] = "avx512_vnni",
    [OI_ISA_AVX512BF16] = "avx512_bf16",
    [OI_ISA_AVX512FP16] = "avx512_fp16",
    [OI_ISA_AMX_INT8] = "amx_int8",
    [OI_ISA_AMX_BF16] = "amx_bf16",
    [OI_ISA_NEON] = "asimd",
    [OI_ISA_DOTPROD] = "asimddp",
    [OI_ISA_I8MM] = "i8mm",
    [OI_ISA_SVE] = "sve",
};

static uint32_t isa_of_flag(const char *flag)
{
    uint32_t isa = 0;
    for (int i = 0; i < OI_ISA_COUNT; i++)
        if (kernel_names[i] && strcmp(kernel_names[i], flag) == 0)
            isa |= 1u << i;
    return isa;
}

/* A line such as "flags : sse2 avx" (x86), "Features : asimd" (Arm), "isa : rv64imafdcv" (RISC-V).
 */
static uint32_t isa_of_line(char *line)
{
    uint32_t isa = 0;
    char *colon = strchr(line, ':'), *rest;
    if (!colon)
        return 0;
    if (strncmp(line, "isa", 3) == 0 && strncmp(colon + 1, " rv", 3) == 0 &&
        strchr(colon + 4 + 2, 'v'))
        isa |= 1u << OI_ISA_RVV;
    if (strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0)
        for (char *flag = strtok_r(colon + 1, " \t\n", &rest); flag;
             flag = strtok_r(NULL, " \t\n", &rest))
            isa |= isa_of_flag(flag);
    return isa;
}

uint32_t oi_machine_isa(void)
{
    uint32_t isa = 1u << OI_ISA_SCALAR;
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[8192];
    while (f && fgets(line, sizeof line, f))
        isa |= isa_of_line(line);
    if (f)
        fclose(f);
    return isa;
}
