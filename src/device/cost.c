/* cost.c: a machine from a device's description, times of work on it, and the sizes that fit it. */
#include "device/cost.h"

#define AT_RUN_TIME 2 /* threads that predictions are for when the run decides */
#define SAVES       4
#define TILES       12    /* times what two vectors of floats do; 16 out of the first cache */
#define ALONE       16384 /* elements of a large kernel with a single thread */

static bool has(const oi_device_info *t, oi_isa isa)
{
    return t->cpu.isa >> isa & 1;
}

static double or_else(double stated, double usual)
{
    return stated > 0 ? stated : usual;
}

/* Bytes of a vector; without such instructions the compiler still pairs a little. */
static double vector_bytes(const oi_device_info *t)
{
    return has(t, OI_ISA_AVX512F)                      ? 64
           : has(t, OI_ISA_AVX2) || has(t, OI_ISA_AVX) ? 32
           : has(t, OI_ISA_NEON)                       ? 16
                                                       : 8;
}

static oi_machine microcontroller(const oi_device_info *t)
{
    const double ghz = or_else((double)t->mcu.clock_hz, 100e6) * 1e-9;
    const double f32 = t->mcu.fpu == OI_FPU_NONE ? 0.03 : 0.3;
    oi_machine m = {.threads = 1, .barrier_ns = 0, .call_ns = 20 / ghz};
    for (int i = 0; i < OI_LEVELS; i++)
        m.bytes_per_ns[i] = 2 * ghz;
    m.f32_macs_per_ns = or_else(t->cpu.f32_macs_per_s * 1e-9, f32 * ghz);
    const double int8 = t->mcu.mve ? 2 : t->mcu.dsp ? 0.6 : 0.25;
    m.int8_macs_per_ns = or_else(t->cpu.int8_macs_per_s * 1e-9, int8 * ghz);
    m.ops_per_ns = m.scalar_ops_per_ns = 0.3 * ghz;
    return m;
}

static oi_machine processor(const oi_device_info *t)
{
    const double ghz = or_else((double)t->cpu.clock_hz, 3e9) * 1e-9, v = vector_bytes(t);
    const double pipes = has(t, OI_ISA_FMA) || v > 32 || has(t, OI_ISA_NEON) ? 2 : 1;
    oi_machine m = {.threads = t->cpu.threads ? (unsigned)t->cpu.threads : AT_RUN_TIME};
    m.bytes_per_ns[OI_LEVEL_L1] = or_else(t->cpu.l1_bytes_per_s * 1e-9, 2 * v * ghz);
    m.bytes_per_ns[OI_LEVEL_L2] = or_else(t->cpu.l2_bytes_per_s * 1e-9, v * ghz);
    m.bytes_per_ns[OI_LEVEL_L3] = or_else(t->cpu.l3_bytes_per_s * 1e-9, (v < 16 ? v : 16) * ghz);
    m.bytes_per_ns[OI_LEVEL_MEMORY] = or_else(t->cpu.memory_bytes_per_s * 1e-9, 5 * ghz);
    m.memory_bytes_per_ns =
        or_else(t->memory.bandwidth_bytes_per_s * 1e-9, 1.5 * m.bytes_per_ns[OI_LEVEL_MEMORY]);
    m.f32_macs_per_ns = or_else(t->cpu.f32_macs_per_s * 1e-9, pipes * v / 4 * ghz);
    m.int8_macs_per_ns = or_else(t->cpu.int8_macs_per_s * 1e-9, (v > 8 ? 2 : 0.25) * v * ghz);
    m.tile_macs_per_ns = or_else(t->cpu.tile_macs_per_s * 1e-9, TILES * m.f32_macs_per_ns);
    m.ops_per_ns = v / 4 * ghz;
    m.scalar_ops_per_ns = 2 * ghz;
    m.barrier_ns = or_else((double)t->cpu.barrier_ns, 256 / ghz);
    m.call_ns = 10;
    return m;
}

/* A thread is a multiprocessor, and a barrier one of all of them. */
static oi_machine graphics(const oi_device_info *t)
{
    const uint64_t n = t->cuda.sm_count > 1 ? t->cuda.sm_count : 64;
    oi_machine m = {.threads = (unsigned)n, .barrier_ns = 1500, .call_ns = 50};
    m.memory_bytes_per_ns = or_else(t->memory.bandwidth_bytes_per_s * 1e-9, 500);
    for (int i = 0; i < OI_LEVELS; i++)
        m.bytes_per_ns[i] = 12;
    m.f32_macs_per_ns = m.int8_macs_per_ns = m.tile_macs_per_ns = 128;
    m.ops_per_ns = m.scalar_ops_per_ns = 32;
    return m;
}

oi_machine oi_cost_machine(const oi_device_info *t)
{
    oi_machine m = t->type == OI_DEVICE_MCU   ? microcontroller(t)
                   : t->api == OI_DEVICE_CUDA ? graphics(t)
                                              : processor(t);
    m.cache_bytes[OI_LEVEL_L1] = t->cpu.cache_l1_bytes;
    m.cache_bytes[OI_LEVEL_L2] = t->cpu.cache_l2_bytes;
    m.cache_bytes[OI_LEVEL_L3] = t->cpu.cache_l3_bytes;
    m.cache_bytes[OI_LEVEL_MEMORY] = UINT64_MAX;
    if (m.memory_bytes_per_ns <= 0)
        m.memory_bytes_per_ns = m.bytes_per_ns[OI_LEVEL_MEMORY];
    return m;
}

oi_level oi_cost_level(const oi_machine *m, uint64_t bytes)
{
    for (int i = 0; i < OI_LEVEL_MEMORY; i++)
        if (bytes <= m->cache_bytes[i])
            return (oi_level)i;
    return OI_LEVEL_MEMORY;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double oi_cost_time(const oi_machine *m, const oi_work_size *w)
{
    const double n = w->is_parallel ? m->threads : 1;
    const double alone = (double)w->bytes[OI_LEVEL_MEMORY] / m->bytes_per_ns[OI_LEVEL_MEMORY];
    double reading = larger(alone / n, (double)w->bytes[OI_LEVEL_MEMORY] / m->memory_bytes_per_ns);
    for (int i = 0; i < OI_LEVEL_MEMORY; i++)
        reading += (double)w->bytes[i] / m->bytes_per_ns[i] / n;
    const double rate = w->is_int8 ? m->int8_macs_per_ns : m->f32_macs_per_ns;
    const double share = w->percent > 0 ? w->percent / 100 : 1;
    const double multiplying = (double)w->macs / (rate * share * n);
    const double rest =
        ((double)w->ops / m->ops_per_ns + (double)w->scalar_ops / m->scalar_ops_per_ns) / n;
    return m->call_ns + larger(reading, larger(multiplying, rest));
}

uint16_t oi_cost_tiles(const oi_device_info *t, double share)
{
    const oi_machine m = oi_cost_machine(t);
    const double percent = 100 * share * m.tile_macs_per_ns / m.f32_macs_per_ns;
    return percent < 1 ? 1 : percent > 10000 ? 10000 : (uint16_t)percent;
}

/* -- sizes to plan with -- */

static int64_t stated_or(uint64_t stated, int64_t usual)
{
    return stated ? (int64_t)stated : usual;
}

/* Two threads must save some times what they wait, since they never come at the same moment: half
 * of the time that reading the elements from the second cache takes. */
int64_t oi_cost_share(const oi_device_info *t)
{
    const oi_machine m = oi_cost_machine(t);
    const double bytes = 2 * SAVES * m.barrier_ns * m.bytes_per_ns[OI_LEVEL_L2];
    const int64_t usual = m.threads > 1 ? (int64_t)(bytes / sizeof(float) + 0.5) : ALONE;
    return stated_or(t->tuning.partition_elements, usual);
}

uint64_t oi_cost_elements(const oi_device_info *t, uint64_t macs, bool is_int8)
{
    const oi_machine m = oi_cost_machine(t);
    const double ns = (double)macs / (is_int8 ? m.int8_macs_per_ns : m.f32_macs_per_ns);
    return (uint64_t)(ns * m.bytes_per_ns[OI_LEVEL_L2] / sizeof(float));
}

int64_t oi_cost_unit(const oi_device_info *t)
{
    const int64_t floats = (int64_t)(t->cpu.line_bytes / sizeof(float));
    return floats > 1 ? floats : 1;
}

uint64_t oi_cost_near(const oi_device_info *t)
{
    return t->cpu.cache_l1_bytes ? t->cpu.cache_l1_bytes / 4 : 8192;
}

uint64_t oi_cost_kept(const oi_device_info *t)
{
    return t->cpu.cache_l2_bytes ? t->cpu.cache_l2_bytes / 2 : 256 << 10;
}

uint64_t oi_cost_held(const oi_device_info *t)
{
    return t->cpu.cache_l3_bytes ? t->cpu.cache_l3_bytes / 2 : 16 << 20;
}

static int64_t within(int64_t x, int64_t least, int64_t most)
{
    return x < least ? least : x > most ? most : x;
}

/* A panel takes three quarters of the first cache: the rest is for six rows of a. Shorter parts of
 * k would visit the results more often. */
int64_t oi_cost_gemm_depth(const oi_device_info *t, int64_t width)
{
    const int64_t row = width * (int64_t)sizeof(float);
    const int64_t usual = (int64_t)t->cpu.cache_l1_bytes / 4 * 3 / row;
    return stated_or(t->tuning.gemm_depth, within(usual, 192, 512));
}

/* Rows of a stay in the second cache, beside the panels that stream through: two sevenths of it, in
 * whole tiles of six rows. */
int64_t oi_cost_gemm_rows(const oi_device_info *t, int64_t depth)
{
    const int64_t room = (int64_t)(t->cpu.cache_l2_bytes ? t->cpu.cache_l2_bytes : 512 << 10);
    const int64_t usual = room * 2 / 7 / (depth * (int64_t)sizeof(float)) / 6 * 6;
    return stated_or(t->tuning.gemm_rows, within(usual, 48, 480));
}

int64_t oi_cost_qlinear_bytes(const oi_device_info *t)
{
    return stated_or(t->tuning.qlinear_bytes,
                     within((int64_t)t->cpu.cache_l2_bytes / 8, 16384, 262144));
}

/* Half a page: what memory takes to answer. */
int64_t oi_cost_stream_ahead(const oi_device_info *t)
{
    return stated_or(t->tuning.stream_ahead, 2048);
}

/* Three quarters of the second cache, again within a stack. */
int64_t oi_cost_sdpa_floats(const oi_device_info *t)
{
    const int64_t usual = (int64_t)t->cpu.cache_l2_bytes * 3 / 4 / (int64_t)sizeof(float);
    return stated_or(t->tuning.sdpa_floats, within(usual, 16 << 10, 96 << 10));
}
