/* recipes.c: tuned bodies on one thread, with literal sizes as emitted code calls them: bytes of
 * weights and multiply-adds per second.
 *
 *     bench_recipes [PART OF A NAME]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX2__)
#include "body/gemm.h"
#include "body/half.h"
#include "body/qlinear.h"
#include "body/sdpa.h"

typedef struct buffers { /* of whatever: what is measured is time */
    float *x, *out, *more;
    uint8_t *w;
    int8_t *scratch;
    float *d, *sums;
} buffers;

/* Time of its own: other work on the machine does not count. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *room(size_t n)
{
    uint8_t *p = aligned_alloc(64, (n + 63) / 64 * 64);
    if (!p)
        exit(3);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(i * 37 % 61);
    return p;
}

/* -- bodies with their sizes -- */

static void u4_up_1(const buffers *b)
{
    oi_qlinear(b->scratch, b->d, b->sums, b->w, b->out, 1, 1536, 576, 32, 4, 2, 1, 0, 0, 1, 2048,
               NULL, 0, 1536);
}

static void u4_up_32(const buffers *b)
{
    oi_qlinear(b->scratch, b->d, b->sums, b->w, b->out, 32, 1536, 576, 32, 4, 2, 1, 0, 0, 32, 2048,
               NULL, 0, 1536);
}

static void u4_down_32(const buffers *b)
{
    oi_qlinear(b->scratch, b->d, b->sums, b->w, b->out, 32, 576, 1536, 32, 4, 2, 1, 0, 0, 32, 2048,
               NULL, 0, 576);
}

static void u4_large_1(const buffers *b)
{
    oi_qlinear(b->scratch, b->d, b->sums, b->w, b->out, 1, 196608, 576, 32, 4, 2, 1, 0, 0, 1, 2048,
               NULL, 0, 196608);
}

static void u4_float_1(const buffers *b)
{
    oi_qlinear_float(b->x, b->w, b->out, 1, 1536, 576, 32, 4, 2, 1, 0, 0, 0, 1536);
}

static void u4_float_32(const buffers *b)
{
    oi_qlinear_float(b->x, b->w, b->out, 32, 1536, 576, 32, 4, 2, 1, 0, 0, 0, 1536);
}

static void i8_up_32(const buffers *b)
{
    oi_qlinear(b->scratch, b->d, b->sums, b->w, b->out, 32, 1536, 576, 32, 8, 2, 0, 0, 0, 32, 2048,
               NULL, 0, 1536);
}

static void i8_head_1(const buffers *b)
{
    oi_qlinear(b->scratch, b->d, b->sums, b->w, b->out, 1, 49152, 576, 32, 8, 2, 0, 0, 0, 1, 2048,
               NULL, 0, 49152);
}

static void gemm_256(const buffers *b)
{
    oi_gemm_two(b->x, b->more, b->out, b->d, 256, 256, 256, 256, 1, 256, 1, 0, 144, 256, 0, 256,
                NULL, NULL);
}

static void gemm_512(const buffers *b)
{
    oi_gemm_two(b->x, b->more, b->out, b->d, 512, 512, 512, 512, 1, 512, 1, 0, 144, 256, 0, 512,
                NULL, NULL);
}

static void gemm_777(const buffers *b)
{
    oi_gemm_two(b->x, b->more, b->out, b->d, 777, 777, 777, 777, 1, 777, 1, 0, 144, 195, 0, 777,
                NULL, NULL);
}

static void gemm_1024(const buffers *b)
{
    oi_gemm_two(b->x, b->more, b->out, b->d, 1024, 1024, 1024, 1024, 1, 1024, 1, 1, 144, 256, 0,
                1024, NULL, NULL);
}

static void gemm_2048(const buffers *b)
{
    oi_gemm_two(b->x, b->more, b->out, b->d, 2048, 2048, 2048, 2048, 1, 2048, 1, 1, 144, 256, 0,
                2048, NULL, NULL);
}

static void weights_128_384_384(const buffers *b)
{
    oi_gemm_weights(b->x, (const float *)(const void *)b->w, b->out, 128, 384, 384, 384, 1, 128,
                    192, 0, 384, NULL, NULL);
}

static void weights_128_1536_384(const buffers *b)
{
    oi_gemm_weights(b->x, (const float *)(const void *)b->w, b->out, 128, 1536, 384, 384, 1, 128,
                    192, 0, 1536, NULL, NULL);
}

static void weights_128_384_1536(const buffers *b)
{
    oi_gemm_weights(b->x, (const float *)(const void *)b->w, b->out, 128, 384, 1536, 1536, 1, 128,
                    256, 0, 384, NULL, NULL);
}

static void weights_1_4096_4096(const buffers *b)
{
    oi_gemm_weights(b->x, (const float *)(const void *)b->w, b->out, 1, 4096, 4096, 4096, 1, 1, 256,
                    0, 4096, NULL, NULL);
}

static void half_1(const buffers *b)
{
    oi_half_gemm(b->x, b->w, b->out, b->d, 1, 4096, 4096, 4096, 1, 0, 1, 0, 1, 256, 0, 4096, NULL,
                 NULL);
}

static void brain_1(const buffers *b)
{
    oi_half_gemm(b->x, b->w, b->out, b->d, 1, 4096, 4096, 4096, 1, 0, 2, 0, 1, 256, 0, 4096, NULL,
                 NULL);
}

static void half_128(const buffers *b)
{
    oi_half_gemm(b->x, b->w, b->out, b->d, 128, 1536, 384, 384, 1, 0, 1, 0, 128, 192, 0, 1536, NULL,
                 NULL);
}

static void weights_1_512_512(const buffers *b)
{
    oi_gemm_weights(b->x, (const float *)(const void *)b->w, b->out, 1, 512, 512, 512, 1, 1, 256, 0,
                    512, NULL, NULL);
}

static void sdpa_1_1024(const buffers *b)
{
    oi_sdpa(b->x, b->w, b->w + (4 << 20), b->out, b->d, 1, 9, 3, 1, 2048, 64, 64, 0, 2, 9, 9 * 2048,
            1, 64, 1, 0.125f, 1024, 0, 576);
}

static void sdpa_32_512(const buffers *b)
{
    oi_sdpa(b->x, b->w, b->w + (4 << 20), b->out, b->d, 1, 9, 3, 32, 2048, 64, 64, 0, 2, 96,
            48 * 2048, 1, 64, 1, 0.125f, 512, 0, 576);
}

static void sdpa_bf16_32_512(const buffers *b)
{
    oi_sdpa_bf16(b->x, b->w, b->w + (4 << 20), b->out, b->d, 1, 9, 3, 32, 2048, 64, 64, 0, 2, 96,
                 96 * 1024, 1, 32, 0.125f, 512, 0, 9 * 32);
}

static void sdpa_minilm(const buffers *b)
{
    oi_sdpa(b->x, b->w, b->w + (4 << 20), b->out, b->d, 1, 12, 12, 128, 128, 32, 32, 0, 4, 128,
            128 * 144, 0, 32, 0, 0.125f, 128, 0, 384);
}

static void read_all(const buffers *b)
{
    oi_vi v[4] = {oi_vi_zero(), oi_vi_zero(), oi_vi_zero(), oi_vi_zero()};
    for (int64_t i = 0; i < 64 << 20; i += 128)
        for (int64_t j = 0; j < 4; j++)
            v[j] = oi_vi_add(v[j], oi_vi_load(b->w + i + 32 * j));
    v[0] = oi_vi_add(oi_vi_add(v[0], v[1]), oi_vi_add(v[2], v[3]));
    memcpy(b->out, v, 32);
}

static const struct {
    const char *name;
    void (*run)(const buffers *b);
    double bytes, products;
} cases[] = {
    {"reading 64 MB", read_all, 64 << 20, 0},
    {"qlinear u4 1536x576, 1 row", u4_up_1, 1536 * 576 * .625, 1536 * 576},
    {"qlinear u4 196608x576, 1 row", u4_large_1, 196608 * 576 * .625, 196608 * 576},
    {"qlinear u4 1536x576, 32 rows", u4_up_32, 1536 * 576 * .625, 32. * 1536 * 576},
    {"qlinear u4 576x1536, 32 rows", u4_down_32, 1536 * 576 * .625, 32. * 1536 * 576},
    {"qlinear u4 float 1536x576, 1 row", u4_float_1, 1536 * 576 * .625, 1536 * 576},
    {"qlinear u4 float 1536x576, 32 rows", u4_float_32, 1536 * 576 * .625, 32. * 1536 * 576},
    {"qlinear i8 49152x576, 1 row", i8_head_1, 49152 * 576 * 1.0625, 49152 * 576},
    {"qlinear i8 1536x576, 32 rows", i8_up_32, 1536 * 576 * 1.0625, 32. * 1536 * 576},
    {"gemm f32 256", gemm_256, 256 * 256 * 4., 256. * 256 * 256},
    {"gemm f32 512", gemm_512, 512 * 512 * 4., 512. * 512 * 512},
    {"gemm f32 777", gemm_777, 777 * 777 * 4., 777. * 777 * 777},
    {"gemm f32 1024", gemm_1024, 1024 * 1024 * 4., 1024. * 1024 * 1024},
    {"gemm f32 2048", gemm_2048, 2048 * 2048 * 4., 2048. * 2048 * 2048},
    {"gemm f32 weights 384x384, 128 rows", weights_128_384_384, 384 * 384 * 4., 128. * 384 * 384},
    {"gemm f32 weights 1536x384, 128 rows", weights_128_1536_384, 1536 * 384 * 4.,
     128. * 1536 * 384},
    {"gemm f32 weights 384x1536, 128 rows", weights_128_384_1536, 384 * 1536 * 4.,
     128. * 384 * 1536},
    {"gemm f32 weights 4096x4096, 1 row", weights_1_4096_4096, 4096 * 4096 * 4., 1. * 4096 * 4096},
    {"gemm f16 weights 4096x4096, 1 row", half_1, 4096 * 4096 * 2., 1. * 4096 * 4096},
    {"gemm bf16 weights 4096x4096, 1 row", brain_1, 4096 * 4096 * 2., 1. * 4096 * 4096},
    {"gemm f16 weights 1536x384, 128 rows", half_128, 1536 * 384 * 2., 128. * 1536 * 384},
    {"gemm f32 weights 512x512, 1 row", weights_1_512_512, 512 * 512 * 4., 1. * 512 * 512},
    {"sdpa 9 heads, 1 over 1024 keys f16", sdpa_1_1024, 1024 * 192 * 4., 1. * 1024 * 576 * 2},
    {"sdpa 9 heads, 32 over 512 keys f16", sdpa_32_512, 512 * 192 * 4., 32. * 512 * 576 * 2},
    {"sdpa 9 heads, 32 over 512 keys, bf16", sdpa_bf16_32_512, 512 * 192 * 4., 32. * 512 * 576 * 2},
    {"sdpa 12 heads, 128 over 128 keys f32", sdpa_minilm, 128 * 384 * 8., 128. * 128 * 384 * 2},
};

int main(int argc, char **argv)
{
    const size_t most = 96 << 20;
    buffers b = {room(most / 4), room(most / 4), room(most / 4), room(most),
                 room(most / 4), room(most / 4), room(most / 4)};
    for (size_t i = 0; i < most / 4 / sizeof(float); i++)
        b.x[i] = b.more[i] = (float)(i * 37 % 101) / 50 - 1;
    memset(b.w, 0, most); /* numbers of any type */
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        double best = 1e9, until = now() + 0.3;
        if (argc > 1 && !strstr(cases[c].name, argv[1]))
            continue;
        while (now() < until) {
            double start = now(), t;
            cases[c].run(&b);
            t = now() - start;
            best = t < best ? t : best;
        }
        printf("%-36s %9.1f us  %6.1f GB/s  %6.1f GMAC/s\n", cases[c].name, best * 1e6,
               cases[c].bytes / best * 1e-9, cases[c].products / best * 1e-9);
    }
    return 0;
}

#else

int main(void)
{
    puts("these bodies are for other machines");
    return 0;
}

#endif
