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
#include "recipe/qlinear.h"

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
    oi_qlinear(b->x, b->w, b->out, b->scratch, b->d, b->sums, 1, 1536, 576, 32, 4, 2, 1, 0, 0, 1, 0,
               1536);
}

static void u4_up_32(const buffers *b)
{
    oi_qlinear(b->x, b->w, b->out, b->scratch, b->d, b->sums, 32, 1536, 576, 32, 4, 2, 1, 0, 0, 32,
               0, 1536);
}

static void u4_down_32(const buffers *b)
{
    oi_qlinear(b->x, b->w, b->out, b->scratch, b->d, b->sums, 32, 576, 1536, 32, 4, 2, 1, 0, 0, 32,
               0, 576);
}

static void u4_large_1(const buffers *b)
{
    oi_qlinear(b->x, b->w, b->out, b->scratch, b->d, b->sums, 1, 196608, 576, 32, 4, 2, 1, 0, 0, 1,
               0, 196608);
}

static void i8_up_32(const buffers *b)
{
    oi_qlinear(b->x, b->w, b->out, b->scratch, b->d, b->sums, 32, 1536, 576, 32, 8, 2, 0, 0, 0, 32,
               0, 1536);
}

static void i8_head_1(const buffers *b)
{
    oi_qlinear(b->x, b->w, b->out, b->scratch, b->d, b->sums, 1, 49152, 576, 32, 8, 2, 0, 0, 0, 1,
               0, 49152);
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
    {"qlinear i8 49152x576, 1 row", i8_head_1, 49152 * 576 * 1.0625, 49152 * 576},
    {"qlinear i8 1536x576, 32 rows", i8_up_32, 1536 * 576 * 1.0625, 32. * 1536 * 576},
};

int main(int argc, char **argv)
{
    const size_t most = 96 << 20;
    buffers b = {room(most / 8), room(most / 8), room(most / 8), room(most),
                 room(most / 8), room(most / 8), room(most / 8)};
    for (size_t i = 0; i < most / 8 / sizeof(float); i++)
        b.x[i] = b.more[i] = (float)(i * 37 % 101) / 50 - 1;
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
