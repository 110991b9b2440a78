/* qlinear.c: the matrix work of a small language model: SmolLM2-135M's 210 weight matrices in u4
 * blocks of 32 and its head in i8, one after the other, as decoding and prefill go through them.
 *
 *     bench_qlinear [THREADS] [TOKENS OF A PREFILL]
 *
 * Prints tokens per second and the weights' bytes per second. */
#include "kernel/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LAYERS 30
#define GROUP  32

typedef struct matrix {
    int64_t n, k;
    oi_dtype dtype;
    void *w, *scale, *offset; /* f16; offset only for u4 */
    size_t bytes;
} matrix;

/* One thread is measured in time of its own, which other work on the machine does not touch. */
static clockid_t clock_used = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(clock_used, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *room(size_t n_bytes)
{
    char *p = aligned_alloc(64, (n_bytes + 63) / 64 * 64);
    if (!p)
        exit(3);
    for (size_t i = 0; i < n_bytes; i++)
        p[i] = (char)(i * 37 % 251);
    return p;
}

static void *halves(size_t n)
{
    void *p = room(n * 2);
    for (size_t i = 0; i < n; i++)
        oi_element_set_f64(OI_F16, p, i, (double)(i % 17) / 500 + 0.001);
    return p;
}

static matrix make(int64_t n, int64_t k, oi_dtype t)
{
    size_t weights = (size_t)(n * k) * oi_dtype_bits(t) / 8, blocks = (size_t)(n * k) / GROUP;
    matrix m = {.n = n, .k = k, .dtype = t, .w = room(weights), .scale = halves(blocks)};
    m.offset = t == OI_U4 ? halves(blocks) : NULL;
    m.bytes = weights + blocks * (m.offset ? 4 : 2);
    return m;
}

static oi_operand operand(oi_dtype t, int64_t a, int64_t b)
{
    return (oi_operand){.dtype = t, .rank = 2, .dims = {a, b}, .strides = {b, 1}};
}

static void multiply(const matrix *w, const char *act, int64_t m, const float *x, float *y,
                     void *scratch, size_t room_for, oi_threads *threads)
{
    oi_operand in[4] = {operand(OI_F32, m, w->k), operand(w->dtype, w->n, w->k),
                        operand(OI_F16, w->n, w->k / GROUP), operand(OI_F16, w->n, w->k / GROUP)};
    oi_operand out = operand(OI_F32, m, w->n);
    oi_op_value attrs[OI_KERNEL_ATTRS] = {{.tag = OI_VALUE_INT, .i = GROUP},
                                          {.tag = OI_VALUE_STRING, .s = act}};
    const void *from[4] = {x, w->w, w->scale, w->offset};
    void *to = y;
    oi_kernel_query q = {.op = oi_op_find("qlinear"),
                         .in = in,
                         .n_in = w->offset ? 4 : 3,
                         .out = &out,
                         .n_out = 1,
                         .attrs = attrs};
    oi_choice c;
    oi_kernel_fault fault;
    if (!oi_kernel_choose(&q, oi_cpu_best(), &c) || c.scratch_bytes > room_for)
        exit(1);
    oi_kernel_io io = {.in = from,
                       .out = &to,
                       .scratch = scratch,
                       .parallel = threads ? oi_threads_run : NULL,
                       .pool = threads};
    oi_kernel_call(&q, &c, &io, &fault);
}

static void measure(const matrix *all, size_t n, const char *act, int64_t m, oi_threads *threads)
{
    size_t bytes = 0, scratch_bytes = 64 << 20;
    float *x = room(4096 * 4 * (size_t)m), *y = room(50000 * 4 * (size_t)m);
    void *scratch = room(scratch_bytes);
    for (int64_t i = 0; i < 4096 * m; i++)
        x[i] = (float)(i % 101) / 50 - 1;
    double best = 1e9;
    for (int round = 0; round < (m > 8 ? 4 : 40); round++) {
        double start = now();
        bytes = 0;
        for (size_t i = 0; i < n; i++) {
            multiply(&all[i], act, m, x, y, scratch, scratch_bytes, threads);
            bytes += all[i].bytes;
        }
        double took = now() - start;
        best = took < best ? took : best;
    }
    printf("%-5s M=%-4lld %8.1f tokens/s  %6.2f GB/s of weights\n", act, (long long)m,
           (double)m / best, (double)bytes / best / 1e9);
    free(x);
    free(y);
    free(scratch);
}

int main(int argc, char **argv)
{
    static const int64_t shapes[7][2] = {{576, 576},  {192, 576},  {192, 576}, {576, 576},
                                         {1536, 576}, {1536, 576}, {576, 1536}};
    matrix all[7 * LAYERS + 1];
    size_t n = 0;
    unsigned n_threads = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    int64_t prompt = argc > 2 ? atoi(argv[2]) : 128;
    for (int layer = 0; layer < LAYERS; layer++)
        for (int i = 0; i < 7; i++)
            all[n++] = make(shapes[i][0], shapes[i][1], OI_U4);
    all[n++] = make(49152, 576, OI_I8);
    oi_threads *threads = n_threads > 1 ? oi_threads_new(n_threads) : NULL;
    clock_used = threads ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
    printf("%u threads, %s\n", n_threads, oi_cpu_name(oi_cpu_best()));
    measure(all, n, "float", 1, threads);
    measure(all, n, "q8", 1, threads);
    measure(all, n, "q8", 4, threads);
    measure(all, n - 1, "float", prompt, threads);
    measure(all, n - 1, "q8", prompt, threads);
    oi_threads_free(threads);
    for (size_t i = 0; i < n; i++) {
        free(all[i].w);
        free(all[i].scale);
        free(all[i].offset);
    }
    return 0;
}
