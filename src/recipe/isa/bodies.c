/* bodies.c: the bodies that the simulator calls, compiled for a kind of instructions. Numbers that
 * a program has as literals come from the plan; those that shape a body's inner loops become
 * literals again here. */
#include "recipe/run.h"

#if defined(__AVX2__) && defined(__FMA__)

#include "body/conv.h"
#include "body/conv_flat.h"
#include "body/mean.h"
#include "body/sdpa.h"

/* Arguments from `i` on. */
#define N2(i) a[i].n, a[(i) + 1].n
#define R2(i) a[i].real, a[(i) + 1].real
#define N3(i) N2(i), a[(i) + 2].n
#define N4(i) N2(i), N2((i) + 2)

/* -- products -- */

static void gemm_two(const oi_recipe_value *a)
{
    if (a[11].n)
        oi_gemm_two(a[0].in, a[1].in, a[2].out, a[3].out, N3(4), N4(7), 1, N4(12), NULL, NULL);
    else
        oi_gemm_two(a[0].in, a[1].in, a[2].out, a[3].out, N3(4), a[7].n, 1, N2(9), 0, N4(12), NULL,
                    NULL);
}

static void gemm_stack(const oi_recipe_value *a)
{
    if (a[11].n)
        oi_gemm_stack(a[0].in, a[1].in, a[2].out, a[3].out, N3(4), N4(7), 1, N3(12), N4(15), N2(19),
                      NULL, NULL);
    else
        oi_gemm_stack(a[0].in, a[1].in, a[2].out, a[3].out, N3(4), a[7].n, 1, N2(9), 0, N3(12),
                      N4(15), N2(19), NULL, NULL);
}

/* -- attention -- */

static void sdpa(const oi_recipe_value *a)
{
    if (a[13].n == 2)
        oi_sdpa(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, N4(5), N4(9), 2, N4(14), 1,
                a[19].real, N3(20));
    else
        oi_sdpa(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, N4(5), N4(9), 4, N4(14), 1,
                a[19].real, N3(20));
}

static void sdpa_masked(const oi_recipe_value *a)
{
    oi_sdpa_masked(a[0].in, a[1].in, a[2].in, a[3].in, a[4].out, a[5].out, N4(6), N4(10), N4(14),
                   a[18].n, 1, a[20].real, N4(21), N4(25));
}

static void sdpa_bf16(const oi_recipe_value *a)
{
    if (a[13].n == 2)
        oi_sdpa_bf16(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, N4(5), N4(9), 2, N4(14),
                     a[18].real, N3(19));
    else
        oi_sdpa_bf16(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, N4(5), N4(9), 4, N4(14),
                     a[18].real, N3(19));
}

static void sdpa_bf16_masked(const oi_recipe_value *a)
{
    oi_sdpa_bf16_masked(a[0].in, a[1].in, a[2].in, a[3].in, a[4].out, a[5].out, N4(6), N4(10),
                        N4(14), a[18].n, a[19].real, N4(20), N4(24));
}

/* -- convolution: how many filters at once, and the stride -- */

static void conv_points(const oi_recipe_value *a)
{
    if (a[10].n == 4)
        oi_conv_points(a[0].in, a[1].in, a[2].in, a[3].out, N4(4), N2(8), 4, 0, N4(12), N2(16),
                       R2(18));
    else
        oi_conv_points(a[0].in, a[1].in, a[2].in, a[3].out, N4(4), N2(8), 6, 0, N4(12), N2(16),
                       R2(18));
}

static inline __attribute__((always_inline)) void dense(const oi_recipe_value *a, int64_t stride,
                                                        int64_t high)
{
    oi_conv_dense(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, N4(5), N4(9), N2(13), stride,
                  N4(16), N2(20), high, 0, N4(24), N4(28), N2(32), R2(34));
}

static void conv_dense(const oi_recipe_value *a)
{
    const int64_t stride = a[15].n, high = a[22].n;
    if (stride == 1 && high == 4)
        dense(a, 1, 4);
    else if (stride == 1)
        dense(a, 1, 6);
    else if (stride == 2 && high == 4)
        dense(a, 2, 4);
    else if (stride == 2)
        dense(a, 2, 6);
    else
        dense(a, stride, high);
}

static void conv_flat(const oi_recipe_value *a)
{
    if (a[22].n == 4)
        oi_conv_flat(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].out, N4(6), N4(10), N4(14),
                     N4(18), 4, 0, N2(24), N4(26), N2(30), R2(32));
    else
        oi_conv_flat(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].out, N4(6), N4(10), N4(14),
                     N4(18), 6, 0, N2(24), N4(26), N2(30), R2(32));
}

static inline __attribute__((always_inline)) void deep(const oi_recipe_value *a, int64_t stride)
{
    oi_conv_depthwise(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, N4(5), N4(9), N2(13), stride,
                      N4(16), N4(20), N3(24), N2(27), R2(29));
}

static void conv_depthwise(const oi_recipe_value *a)
{
    if (a[15].n == 1)
        deep(a, 1);
    else if (a[15].n == 2)
        deep(a, 2);
    else
        deep(a, a[15].n);
}

static void conv_depthwise_two(const oi_recipe_value *a)
{
    if (a[11].n == 3 && a[12].n == 3)
        oi_conv_depthwise_two(a[0].in, a[1].in, a[2].in, a[3].out, N4(4), N3(8), 3, 3, N4(13),
                              N4(17), N2(21), R2(23));
    else
        oi_conv_depthwise_two(a[0].in, a[1].in, a[2].in, a[3].out, N4(4), N4(8), N4(12), N4(16),
                              N3(20), R2(23));
}

static void conv_few_two(const oi_recipe_value *a)
{
    oi_conv_lanes_two(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].out, a[6].out, N4(7),
                      N4(11), N4(15), N4(19), N2(23), R2(25));
}

/* -- means -- */

static void mean_rows(const oi_recipe_value *a)
{
    oi_mean_rows(a[0].in, a[1].out, N3(2), N2(5));
}

extern const oi_recipe_body OI_KERNEL(bodies)[];
const oi_recipe_body OI_KERNEL(bodies)[] = {
    {"oi_gemm_two", gemm_two},
    {"oi_gemm_stack", gemm_stack},
    {"oi_sdpa", sdpa},
    {"oi_sdpa_masked", sdpa_masked},
    {"oi_sdpa_bf16", sdpa_bf16},
    {"oi_sdpa_bf16_masked", sdpa_bf16_masked},
    {"oi_conv_points", conv_points},
    {"oi_conv_dense", conv_dense},
    {"oi_conv_flat", conv_flat},
    {"oi_conv_depthwise", conv_depthwise},
    {"oi_conv_depthwise_two", conv_depthwise_two},
    {"oi_conv_lanes_two", conv_few_two},
    {"oi_mean_rows", mean_rows},
    {NULL, NULL},
};

#else
extern const int OI_KERNEL(no_bodies);
const int OI_KERNEL(no_bodies) = 1; /* the definitions are all there is */
#endif
