/* cpu.c: which kinds of instructions this machine has. */
#include "kernel/kernel.h"

#include <stdatomic.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Bits of the extended control register: what the system saves on a task switch. */
static uint64_t saved_state(void)
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

static oi_cpu ask(void)
{
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX))
        return OI_CPU_SCALAR;
    bool fma = (c & bit_FMA) != 0, f16c = (c & bit_F16C) != 0;
    uint64_t saved = saved_state();
    if ((saved & 0x6) != 0x6)
        return OI_CPU_SCALAR;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2) || !fma || !f16c)
        return OI_CPU_AVX;
    const uint32_t wanted = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    return (b & wanted) == wanted && (saved & 0xe6) == 0xe6 ? OI_CPU_AVX512 : OI_CPU_AVX2;
}
#else
static oi_cpu ask(void)
{
    return OI_CPU_SCALAR;
}
#endif

/* Asked once: in a virtual machine every question takes tens of microseconds. */
oi_cpu oi_cpu_best(void)
{
    static atomic_int known = -1;
    int best = atomic_load_explicit(&known, memory_order_relaxed);
    if (best < 0) {
        best = (int)ask();
        atomic_store_explicit(&known, best, memory_order_relaxed);
    }
    return (oi_cpu)best;
}

static const char *const names[OI_CPU_COUNT] = {
    [OI_CPU_SCALAR] = "scalar",
    [OI_CPU_AVX] = "avx",
    [OI_CPU_AVX2] = "avx2",
    [OI_CPU_AVX512] = "avx512",
};

const char *oi_cpu_name(oi_cpu c)
{
    return (unsigned)c < OI_CPU_COUNT ? names[c] : "";
}

const char *oi_cpu_at(size_t i)
{
    return i <= (size_t)oi_cpu_best() ? names[i] : NULL;
}

bool oi_cpu_find(const char *device, oi_cpu *out)
{
    oi_cpu best = oi_cpu_best();
    *out = best;
    if (!device || strcmp(device, "cpu") == 0)
        return true;
    if (strncmp(device, "cpu:", 4) != 0)
        return false;
    for (int c = 0; c <= (int)best; c++)
        if (strcmp(device + 4, names[c]) == 0) {
            *out = (oi_cpu)c;
            return true;
        }
    return false;
}
