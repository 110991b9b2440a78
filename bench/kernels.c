/* kernels.c: how fast kernels are: best of many runs, one line of JSON per measurement.
 *
 *     bench_kernels THREADS
 *
 * bench/kernels.py sets the figures beside numpy's. */
#include "kernel/kernel.h"
#include "recipe/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *room(size_t n_bytes)
{
    char *p = aligned_alloc(64, (n_bytes + 63) / 64 * 64);
    if (!p)
        exit(3);
    memset(p, 0, n_bytes);
    return p;
}

/* Ordinary numbers: products of tiny ones would be slow for a reason of their own. */
static void *numbers(oi_dtype t, size_t n)
{
    void *p = room(n * oi_dtype_bits(t) / 8);
    for (size_t i = 0; i < n; i++)
        oi_element_set_f64(t, p, i, (double)((i * 7919) % 1000) / 500 - 1);
    return p;
}

static oi_operand operand(oi_dtype t, uint32_t rank, int64_t a, int64_t b)
{
    oi_operand o = {.dtype = t, .rank = rank, .dims = {a, b}, .strides = {rank == 2 ? b : 1, 1}};
    return o;
}

typedef struct setup {
    oi_arena *arena;
    oi_operand in[2], out;
    size_t n_in;
    oi_op_value attrs[OI_KERNEL_ATTRS];
    oi_kernel_query query;
    oi_choice choice;
    oi_kernel_io io;
    const void *in_data[2];
    void *out_data;
} setup;

static void prepare(setup *s, const char *name, oi_cpu cpu, oi_threads *threads)
{
    const oi_op *op = oi_op_find(name);
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (s->attrs[i].tag == OI_VALUE_NONE)
            s->attrs[i] = op->attrs[i].def;
    s->query = (oi_kernel_query){
        .op = op, .in = s->in, .n_in = s->n_in, .out = &s->out, .n_out = 1, .attrs = s->attrs};
    /* as the simulator does: a tuned body, or else a kernel */
    s->arena = oi_arena_new();
    if (!oi_recipe_choose(s->arena, &s->query, cpu, &s->choice) &&
        !oi_kernel_choose(&s->query, cpu, &s->choice))
        exit(1);
    s->io = (oi_kernel_io){.in = s->in_data,
                           .out = &s->out_data,
                           .scratch = room(s->choice.scratch_bytes + 64),
                           .parallel = threads ? oi_threads_run : NULL,
                           .pool = threads,
                           .n_threads = threads ? oi_threads_count(threads) : 1};
}

static void finish(setup *s)
{
    free(s->io.scratch);
    oi_arena_free(s->arena);
}

static double best_of(const setup *s, int n)
{
    oi_kernel_fault fault;
    double best = 1e9;
    for (int i = 0; i < n; i++) {
        double start = now();
        oi_kernel_call(&s->query, &s->choice, &s->io, &fault);
        double took = now() - start;
        best = took < best ? took : best;
    }
    return best;
}

static void report(const char *what, const setup *s, const char *unit, double amount,
                   double seconds)
{
    printf("{\"what\": \"%s\", \"kernel\": \"%s\", \"unit\": \"%s\", \"value\": %.3f}\n", what,
           s->choice.name, unit, amount / seconds / 1e9);
    fflush(stdout);
}

static void matmul(int64_t n, oi_dtype t, oi_cpu cpu, oi_threads *threads)
{
    setup s = {
        .in = {operand(t, 2, n, n), operand(t, 2, n, n)}, .out = operand(t, 2, n, n), .n_in = 2};
    s.in_data[0] = numbers(t, (size_t)(n * n));
    s.in_data[1] = numbers(t, (size_t)(n * n));
    s.out_data = numbers(t, (size_t)(n * n));
    prepare(&s, "matmul", cpu, threads);
    char what[64];
    snprintf(what, sizeof what, "matmul %s %lld", oi_dtype_name(t), (long long)n);
    report(what, &s, "GFLOPS", 2.0 * (double)n * (double)n * (double)n,
           best_of(&s, n > 600 ? 10 : 40));
    free((void *)s.in_data[0]);
    free((void *)s.in_data[1]);
    free(s.out_data);
    finish(&s);
}

/* A row times a matrix of 64 or 32 MB, which is read once. */
static void gemv(const char *what, oi_dtype t, bool transposed, oi_cpu cpu, oi_threads *threads,
                 void *const *arrays)
{
    const int64_t n = 4096;
    setup s = {.in = {operand(OI_F32, 2, 1, n), operand(t, 2, n, n)},
               .out = operand(OI_F32, 2, 1, n),
               .n_in = 2};
    s.attrs[2] = (oi_op_value){.tag = OI_VALUE_BOOL, .b = transposed};
    s.in_data[0] = arrays[0];
    s.in_data[1] = arrays[1];
    s.out_data = arrays[2];
    prepare(&s, "matmul", cpu, threads);
    report(what, &s, "GB/s", oi_dtype_bits(t) / 8.0 * (double)n * (double)n, best_of(&s, 12));
    finish(&s);
}

/* `tensors` of 64 MB are read and written. */
static void stream(const char *op, size_t n_in, oi_cpu cpu, oi_threads *threads,
                   void *const *arrays)
{
    const int64_t n = 16 << 20;
    setup s = {.in = {operand(OI_F32, 1, n, 0), operand(OI_F32, 1, n, 0)},
               .out = operand(OI_F32, 1, n, 0),
               .n_in = n_in};
    bool reduces = strcmp(op, "sum_axis") == 0;
    if (reduces) {
        s.out = operand(OI_F32, 0, 0, 0);
        s.attrs[0] = (oi_op_value){.tag = OI_VALUE_INT, .i = 0};
    }
    s.in_data[0] = arrays[0];
    s.in_data[1] = arrays[1];
    s.out_data = arrays[2];
    prepare(&s, op, cpu, threads);
    char what[64];
    snprintf(what, sizeof what, "%s f32 64 MB", op);
    report(what, &s, "GB/s", 4.0 * (double)n * (double)(n_in + !reduces), best_of(&s, 12));
    finish(&s);
}

typedef struct copying {
    char *to;
    const char *from;
    size_t n;
} copying;

static void copy_task(void *ctx, size_t i)
{
    copying *c = ctx;
    memcpy(c->to + i * c->n, c->from + i * c->n, c->n);
}

static void copy(oi_threads *threads, void *const *arrays)
{
    size_t n = 64u << 20, parts = threads ? oi_threads_count(threads) : 1;
    double best = 1e9;
    copying c = {arrays[2], arrays[0], n / parts};
    for (int i = 0; i < 12; i++) {
        double start = now();
        oi_threads_run(threads, parts, copy_task, &c);
        double took = now() - start;
        best = took < best ? took : best;
    }
    printf("{\"what\": \"memcpy 64 MB\", \"kernel\": \"memcpy\", \"unit\": \"GB/s\", \"value\": "
           "%.3f}\n",
           2.0 * (double)n / best / 1e9);
}

int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    oi_threads *threads = n > 1 ? oi_threads_new(n) : NULL;
    void *arrays[3];
    for (int i = 0; i < 3; i++)
        arrays[i] = numbers(OI_F32, 16u << 20);
    copy(threads, arrays);
    bool all = argc <= 2 || strcmp(argv[2], "best") != 0;
    for (int cpu = all ? 0 : (int)oi_cpu_best(); cpu <= (int)oi_cpu_best(); cpu++) {
        stream("add", 2, (oi_cpu)cpu, threads, arrays);
        stream("mul", 2, (oi_cpu)cpu, threads, arrays);
        stream("relu", 1, (oi_cpu)cpu, threads, arrays);
        stream("sum_axis", 1, (oi_cpu)cpu, threads, arrays);
        matmul(128, OI_F32, (oi_cpu)cpu, threads);
        matmul(512, OI_F32, (oi_cpu)cpu, threads);
        matmul(512, OI_F64, (oi_cpu)cpu, threads);
        gemv("row times matrix", OI_F32, false, (oi_cpu)cpu, threads, arrays);
        gemv("row times matrix^T", OI_F32, true, (oi_cpu)cpu, threads, arrays);
        gemv("row times f16 matrix^T", OI_F16, true, (oi_cpu)cpu, threads, arrays);
        if (cpu > 0)
            matmul(1024, OI_F32, (oi_cpu)cpu, threads);
    }
    for (int i = 0; i < 3; i++)
        free(arrays[i]);
    oi_threads_free(threads);
    return 0;
}
