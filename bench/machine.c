/* machine.c: what this machine can do at most, as one JSON object: bytes read per second from
 * memory, and multiply-accumulates per second in f32 and in 8-bit integers, for one thread and for
 * two.
 *
 * The best of many short runs counts: a limit is what the machine does when nobody disturbs it.
 *     bench_machine [ROUNDS]
 *
 * Vectors are the compiler's own, as wide as the instructions it was told to use. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__AVX2__)
#include <immintrin.h>
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
#define READ_BYTES ((size_t)96 << 20) /* by each thread: far more than caches hold */
#define PRODUCTS   200000

typedef float vf __attribute__((vector_size(WIDTH)));
typedef uint64_t vi __attribute__((vector_size(WIDTH)));

typedef struct worker {
    pthread_barrier_t *start;
    const unsigned char *bytes;
    void (*work)(struct worker *w);
    double begun, ended;
    uint64_t sink;
} worker;

static int rounds = 25;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Four streams: more lines are under way at once. */
static void read_memory(worker *w)
{
    vi sum[4] = {{0}};
    const size_t part = READ_BYTES / 4;
    for (size_t i = 0; i < part; i += WIDTH)
        for (size_t j = 0; j < 4; j++)
            sum[j] += *(const vi *)(const void *)(w->bytes + j * part + i);
    sum[0] += sum[1] + sum[2] + sum[3];
    w->sink += sum[0][0];
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
    for (int i = 0; i < PRODUCTS; i++)
        for (int c = 0; c < CHAINS; c++)
            acc[c] = acc[c] * a + b;
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

static void *one(void *ctx)
{
    worker *w = ctx;
    pthread_barrier_wait(w->start);
    w->begun = now();
    w->work(w);
    w->ended = now();
    return NULL;
}

/* Seconds from the first start to the last end, of the best round. */
static double best(void (*work)(worker *), const unsigned char *bytes, unsigned threads)
{
    double least = 1e9;
    for (int r = 0; r < rounds; r++) {
        pthread_barrier_t start;
        pthread_t ids[MOST];
        worker w[MOST];
        double begun = 1e18, ended = 0;
        memset(w, 0, sizeof w);
        pthread_barrier_init(&start, NULL, threads);
        for (unsigned i = 0; i < threads; i++) {
            w[i] = (worker){&start, bytes + i * READ_BYTES, work, 0, 0, 0};
            if (pthread_create(&ids[i], NULL, one, &w[i]) != 0)
                exit(3);
        }
        for (unsigned i = 0; i < threads; i++) {
            pthread_join(ids[i], NULL);
            begun = w[i].begun < begun ? w[i].begun : begun;
            ended = w[i].ended > ended ? w[i].ended : ended;
        }
        pthread_barrier_destroy(&start);
        least = ended - begun < least ? ended - begun : least;
    }
    return least;
}

static void show(const char *name, void (*work)(worker *), const unsigned char *bytes,
                 double amount)
{
    printf("\"%s\": {", name);
    for (unsigned n = 1; n <= MOST; n++)
        printf("%s\"%u\": %.2f", n > 1 ? ", " : "", n, n * amount / best(work, bytes, n) * 1e-9);
    printf("}");
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : rounds;
    unsigned char *bytes = aligned_alloc(64, MOST * READ_BYTES);
    if (!bytes)
        return 3;
    memset(bytes, 1, MOST * READ_BYTES);
    printf("{\"vector_bytes\": %d, ", WIDTH);
    show("read_gb_per_s", read_memory, bytes, (double)READ_BYTES);
    printf(", ");
    show("f32_gmac_per_s", multiply_f32, bytes, (double)PRODUCTS * CHAINS * LANES);
    if (INT8_MACS > 0) {
        printf(", ");
        show("int8_gmac_per_s", multiply_int8, bytes, (double)PRODUCTS * CHAINS * INT8_MACS);
    }
    puts("}");
    free(bytes);
    return 0;
}
