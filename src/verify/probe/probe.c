/* probe.c: what this machine can do, as one JSON object: bytes read per second from each cache and
 * from 48 MB a thread (memory, or a third cache that holds them), multiply-accumulates per second
 * in f32, in 8-bit integers and in tiles of bf16 and of 8-bit integers, for one thread and for two,
 * and how long two threads take to wait for each other.
 *
 *     probe - ROUNDS L1 L2 L3    (sizes of the caches in bytes, 0: there is none)
 *
 * The best of many short runs counts: a limit is what an undisturbed machine reaches. A
 * processor takes up to a millisecond to reach its speed with wide vectors, so threads multiply for
 * a while before the clock starts. Of
 * tiles the median: they have two speeds, by what runs beside, and only the usual one is of use.
 * Vectors are as wide as the instructions that the compiler was told to use. `openinfer bench
 * --tune` and `make bench` build it on its own: it is no part of the library. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__linux__)
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif
#define LANES      (WIDTH / 4)
#define CHAINS     12 /* enough to hide the latency of two multipliers, few enough for 16 registers */
#define MOST       2                  /* threads */
#define READ_BYTES ((size_t)48 << 20) /* by each thread: far more than its own caches hold */
#define BLOCK      ((size_t)64 << 10) /* that threads read together */
#define PAGE       ((size_t)2 << 20)
#define PRODUCTS   200000
#define MEETINGS   32 /* few: some runs are undisturbed */
#define BATCHES    200
#define WARM_UP    2e-3 /* seconds */

typedef float vf __attribute__((vector_size(WIDTH)));
typedef uint64_t vi __attribute__((vector_size(WIDTH)));

typedef struct worker {
    pthread_barrier_t *start;
    atomic_uint *met;                 /* meetings so far, times the threads */
    const unsigned char *all, *bytes; /* of all threads; its own */
    size_t size;                      /* of what is read again and again */
    void (*work)(struct worker *w);
    int warms_up; /* its work needs no other thread */
    double begun, ended;
    double least; /* 0: from begin to end */
    uint64_t sink;
} worker;

static int rounds = 25;

/* Compilers would rather read a constant from memory in every product. */
#if defined(__AVX512F__)
#define KEEP(v) __asm__ volatile("" : "+v"(v))
#elif defined(__SSE2__)
#define KEEP(v) __asm__ volatile("" : "+x"(v))
#elif defined(__ARM_NEON)
#define KEEP(v) __asm__ volatile("" : "+w"(v))
#else
#define KEEP(v) ((void)0)
#endif

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Four streams: more lines are under way at once. */
static void read_bytes(worker *w)
{
    vi sum[4] = {{0}};
    const size_t part = w->size / 4 / WIDTH * WIDTH;
    for (size_t done = 0; done < READ_BYTES; done += w->size)
        for (size_t i = 0; i < part; i += WIDTH)
            for (size_t j = 0; j < 4; j++)
                sum[j] += *(const vi *)(const void *)(w->bytes + j * part + i);
    sum[0] += sum[1] + sum[2] + sum[3];
    w->sink += sum[0][0];
}

/* Products and sums in one instruction where there is one, whatever the compiler may join. */
static vf multiply_add(vf x, vf a, vf b)
{
#if defined(__AVX512F__)
    return (vf)_mm512_fmadd_ps((__m512)x, (__m512)a, (__m512)b);
#elif defined(__FMA__)
    return (vf)_mm256_fmadd_ps((__m256)x, (__m256)a, (__m256)b);
#elif defined(__ARM_NEON)
    return (vf)vfmaq_f32((float32x4_t)b, (float32x4_t)x, (float32x4_t)a);
#else
    return x * a + b;
#endif
}

static void multiply_f32(worker *w)
{
    vf acc[CHAINS], a = {0}, b = {0};
    for (int i = 0; i < LANES; i++) {
        a[i] = 0.5f;
        b[i] = (float)w->bytes[i];
    }
    for (int c = 0; c < CHAINS; c++)
        acc[c] = b + (float)c;
    KEEP(a);
    KEEP(b);
    for (int i = 0; i < PRODUCTS; i++)
        for (int c = 0; c < CHAINS; c++)
            acc[c] = multiply_add(acc[c], a, b);
    for (int c = 1; c < CHAINS; c++)
        acc[0] += acc[c];
    w->sink += (uint64_t)acc[0][0];
}

/* u8 times i8 into 32 bits, as products of weights in blocks do it; 0: not known for this machine.
 */
#if defined(__AVX512VNNI__)
#define INT8_MACS 64.0
static void multiply_int8(worker *w)
{
    __m512i acc[CHAINS], a = _mm512_set1_epi8((char)w->bytes[0]), b = _mm512_set1_epi8(3);
    for (int c = 0; c < CHAINS; c++)
        acc[c] = _mm512_set1_epi32(c);
    for (int i = 0; i < PRODUCTS; i++)
        for (int c = 0; c < CHAINS; c++)
            acc[c] = _mm512_dpbusd_epi32(acc[c], a, b);
    for (int c = 1; c < CHAINS; c++)
        acc[0] = _mm512_add_epi32(acc[0], acc[c]);
    w->sink += (uint64_t)_mm512_cvtsi512_si32(acc[0]);
}
#elif defined(__AVX2__)
#define INT8_MACS 32.0
static void multiply_int8(worker *w)
{
    __m256i acc[CHAINS], a = _mm256_set1_epi8((char)w->bytes[0]), b = _mm256_set1_epi8(3);
    for (int c = 0; c < CHAINS; c++)
        acc[c] = _mm256_set1_epi16((short)c);
    for (int i = 0; i < PRODUCTS; i++)
        for (int c = 0; c < CHAINS; c++) {
            __asm__ volatile("" : "+x"(b)); /* might have changed: no product leaves the loop */
            acc[c] = _mm256_add_epi16(acc[c], _mm256_maddubs_epi16(a, b));
        }
    for (int c = 1; c < CHAINS; c++)
        acc[0] = _mm256_add_epi16(acc[0], acc[c]);
    w->sink += (uint64_t)_mm256_cvtsi256_si32(acc[0]);
}
#else
#define INT8_MACS 0.0
static void multiply_int8(worker *w)
{
    w->sink++;
}
#endif

/* Products as amx/bf16x3.h makes them of floats: 24 for every 14 tiles that are loaded. */
#if defined(__AMX_BF16__) && defined(__linux__)
#define TILE_STEPS 2000
#define TILE_MACS  (24.0 * 16 * 16 * 32)
static int has_tiles(void)
{
    return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

/* Other rows of x for tiles 4 and 5, or columns of b for 6 and 7, after what they are in now. */
#define TURN_X(multiply, at) \
    multiply(0, 4, 6);       \
    multiply(1, 4, 7);       \
    _tile_loadd(4, at, 64);  \
    multiply(2, 5, 6);       \
    multiply(3, 5, 7);       \
    _tile_loadd(5, at + 1024, 64)
#define TURN_B(multiply, at) \
    multiply(0, 4, 6);       \
    multiply(2, 5, 6);       \
    _tile_loadd(6, at, 64);  \
    multiply(1, 4, 7);       \
    multiply(3, 5, 7);       \
    _tile_loadd(7, at + 1024, 64)

#define MULTIPLY_TILES(name, multiply)                                                  \
    static void name(worker *w)                                                         \
    {                                                                                   \
        _Alignas(64) unsigned char shape[64] = {1}, tiles[12 * 1024];                   \
        for (int i = 0; i < 8; i++) {                                                   \
            shape[16 + 2 * i] = 64;                                                     \
            shape[48 + i] = 16;                                                         \
        }                                                                               \
        for (size_t i = 0; i < sizeof tiles; i++) /* about 1: zeros might be quicker */ \
            tiles[i] = i % 2 ? 0x3f : (unsigned char)(37 * i * w->bytes[i]);            \
        __asm__ volatile("" : : "r"(shape), "r"(tiles) : "memory");                     \
        _tile_loadconfig(shape);                                                        \
        for (int i = 0; i < TILE_STEPS; i++) {                                          \
            TURN_B(multiply, tiles);                                                    \
            TURN_X(multiply, tiles + 2048);                                             \
            TURN_B(multiply, tiles + 4096);                                             \
            TURN_X(multiply, tiles + 6144);                                             \
            TURN_X(multiply, tiles + 8192);                                             \
            TURN_B(multiply, tiles + 10240);                                            \
            _tile_loadd(4, tiles, 64);                                                  \
            _tile_loadd(5, tiles + 1024, 64);                                           \
        }                                                                               \
        _tile_stored(0, tiles, 64);                                                     \
        _tile_release();                                                                \
        w->sink += tiles[0];                                                            \
    }

MULTIPLY_TILES(multiply_tiles, _tile_dpbf16ps)
#if defined(__AMX_INT8__)
#define INT8_TILE_MACS (2 * TILE_MACS)
MULTIPLY_TILES(multiply_int8_tiles, _tile_dpbusd)
#endif
#else
#define TILE_STEPS     0
#define TILE_MACS      0.0
#define multiply_tiles multiply_f32
static int has_tiles(void)
{
    return 0;
}
#endif
#if !defined(INT8_TILE_MACS)
#define INT8_TILE_MACS      0.0
#define multiply_int8_tiles multiply_f32
#endif

static void wait_for(worker *w, unsigned target)
{
    atomic_fetch_add(w->met, 1);
    for (unsigned spins = 1; atomic_load(w->met) < target; spins++)
        if (spins % 4096 == 0)
            sched_yield();
}

/* Threads that do nothing but wait for each other; the quickest batch counts. */
static void meet(worker *w)
{
    unsigned target = 0;
    double least = 1e9;
    for (int batch = 0; batch < BATCHES; batch++) {
        const double begun = now();
        for (int i = 0; i < MEETINGS; i++)
            wait_for(w, target += MOST);
        least = now() - begun < least ? now() - begun : least;
    }
    w->least = least;
}

/* All of it, a block at a time: some machines give faster afterwards what two processors have read
 * (tuning.warm_up_slices). */
static void warm_up_slices(worker *w)
{
    unsigned target = 0;
    for (size_t i = 0; i < MOST * READ_BYTES; i += 64) {
        if (i % BLOCK == 0)
            wait_for(w, target += MOST);
        w->sink += *(const volatile unsigned char *)(w->all + i);
    }
}

/* A processor of its own: systems like to start two threads of a few milliseconds on one. */
static void stay_apart(const worker *w)
{
#if defined(__linux__)
    cpu_set_t own, one;
    unsigned left = (unsigned)((size_t)(w->bytes - w->all) / READ_BYTES);
    if (sched_getaffinity(0, sizeof own, &own) != 0)
        return;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET((unsigned)i, &own) && left-- == 0)
            CPU_SET((unsigned)i, &one);
    if (CPU_COUNT(&one) > 0)
        sched_setaffinity(0, sizeof one, &one);
#else
    (void)w;
#endif
}

static void *one(void *ctx)
{
    worker *w = ctx;
    stay_apart(w);
    for (const double until = now() + WARM_UP; w->warms_up && now() < until;)
        w->work(w);
    pthread_barrier_wait(w->start);
    w->begun = now();
    w->work(w);
    w->ended = now();
    return NULL;
}

/* Seconds from the first start to the last end. */
static double once(void (*work)(worker *), const unsigned char *bytes, size_t size,
                   unsigned threads)
{
    pthread_barrier_t start;
    pthread_t ids[MOST];
    worker w[MOST];
    atomic_uint met;
    double begun = 1e18, ended = 0;
    atomic_init(&met, 0);
    pthread_barrier_init(&start, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        w[i] = (worker){.start = &start,
                        .met = &met,
                        .all = bytes,
                        .bytes = bytes + i * READ_BYTES,
                        .size = size,
                        .work = work,
                        .warms_up = size == 0 && work != meet && work != warm_up_slices};
        if (pthread_create(&ids[i], NULL, one, &w[i]) != 0)
            exit(3);
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        begun = w[i].begun < begun ? w[i].begun : begun;
        ended = w[i].ended > ended ? w[i].ended : ended;
    }
    pthread_barrier_destroy(&start);
    return w[0].least > 0 ? w[0].least : ended - begun;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of many rounds the one at this place, from the best to the worst. */
static double ranked(void (*work)(worker *), const unsigned char *bytes, size_t size,
                     unsigned threads, double place)
{
    double *took = calloc((size_t)rounds, sizeof *took);
    if (!took)
        exit(3);
    for (int r = 0; r < rounds; r++)
        took[r] = once(work, bytes, size, threads);
    qsort(took, (size_t)rounds, sizeof *took, by_size);
    const double found = took[(int)(place * (rounds - 1))];
    free(took);
    return found;
}

static void show(const char *name, void (*work)(worker *), const unsigned char *bytes, size_t size,
                 double amount, double place)
{
    printf(", \"%s\": {", name);
    for (unsigned n = 1; n <= MOST; n++)
        printf("%s\"%u\": %.2f", n > 1 ? ", " : "", n,
               n * amount / ranked(work, bytes, size, n, place) * 1e-9);
    printf("}");
}

int main(int argc, char **argv)
{
    static const char *const caches[] = {"l1_gb_per_s", "l2_gb_per_s", "l3_gb_per_s"};
    unsigned char *bytes = aligned_alloc(PAGE, MOST * READ_BYTES);
    if (!bytes)
        return 3;
#if defined(MADV_HUGEPAGE)
    madvise(bytes, MOST * READ_BYTES, MADV_HUGEPAGE); /* as programs hold their weights */
#endif
    memset(bytes, 1, MOST * READ_BYTES);
    rounds = argc > 2 && atoi(argv[2]) > 0 ? atoi(argv[2]) : rounds;
    printf("{\"vector_bytes\": %d", WIDTH);
    for (int i = 0; i < 3; i++) { /* half of a cache surely stays in it */
        size_t size = argc > 3 + i ? (size_t)strtoull(argv[3 + i], NULL, 10) / 2 : 0;
        if (size >= 4 * WIDTH && size <= READ_BYTES)
            show(caches[i], read_bytes, bytes, size,
                 (double)((READ_BYTES + size - 1) / size * size), 0);
    }
    for (int i = 0; i < 4; i++)
        once(warm_up_slices, bytes, 0, MOST);
    show("read_gb_per_s", read_bytes, bytes, READ_BYTES, (double)READ_BYTES, 0);
    show("f32_gmac_per_s", multiply_f32, bytes, 0, (double)PRODUCTS * CHAINS * LANES, 0);
    if (INT8_MACS > 0)
        show("int8_gmac_per_s", multiply_int8, bytes, 0, (double)PRODUCTS * CHAINS * INT8_MACS, 0);
    if (has_tiles())
        show("tile_gmac_per_s", multiply_tiles, bytes, 0, TILE_STEPS * TILE_MACS, 0.5);
    if (INT8_TILE_MACS > 0 && has_tiles())
        show("int8_tile_gmac_per_s", multiply_int8_tiles, bytes, 0, TILE_STEPS * INT8_TILE_MACS,
             0.5);
    printf(", \"barrier_ns\": %.0f}\n", ranked(meet, bytes, 0, MOST, 0) / MEETINGS * 1e9);
    free(bytes);
    return 0;
}
