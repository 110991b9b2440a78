/* Compares the functions of freestanding programs with those of the C library. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define memcpy    own_memcpy
#define memmove   own_memmove
#define memset    own_memset
#define memcmp    own_memcmp
#define fabsf     own_fabsf
#define floorf    own_floorf
#define ceilf     own_ceilf
#define truncf    own_truncf
#define rintf     own_rintf
#define copysignf own_copysignf
#define fmaf      own_fmaf
#define fmodf     own_fmodf
#define sqrtf     own_sqrtf
#define fabs      own_fabs
#define floor     own_floor
#define ceil      own_ceil
#define trunc     own_trunc
#define rint      own_rint
#define copysign  own_copysign
#define fmod      own_fmod
#define sqrt      own_sqrt
#include "emit/c/mcu/freestanding.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef fabsf
#undef floorf
#undef ceilf
#undef truncf
#undef rintf
#undef copysignf
#undef fmaf
#undef fmodf
#undef sqrtf
#undef fabs
#undef floor
#undef ceil
#undef trunc
#undef rint
#undef copysign
#undef fmod
#undef sqrt

/* SplitMix64 */
static uint64_t seed;

static uint64_t draw(void)
{
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Bit patterns of all kinds: random, near 1, halves, subnormals, zeros, infinities, NaN. */
static float draw_f32(void)
{
    static const float odd[] = {0.0f,  -0.0f,     0.5f,      -0.5f,           1.5f,       2.5f,
                                -2.5f, 0x1p23f,   0x1p22f,   -0x1p24f,        INFINITY,   -INFINITY,
                                NAN,   0x1p-149f, 0x1p-126f, 0x1.fffffep127f, 8388607.5f, 3.0f,
                                -1.0f};
    uint64_t r = draw();
    single s = {.u = (uint32_t)r};
    switch (r >> 32 & 7) {
    case 0: return odd[(r >> 40) % (sizeof odd / sizeof *odd)];
    case 1: s.u = (s.u & 0x807fffffu) | (uint32_t)(120 + (r >> 40) % 30) << 23; return s.f;
    case 2: s.u &= 0x80ffffffu; return s.f;
    case 3: return (float)((int)(r >> 40 & 255) - 128) / 2.0f;
    default: return s.f;
    }
}

static double draw_f64(void)
{
    uint64_t r = draw();
    twice s = {.u = draw()};
    switch (r & 3) {
    case 0: return (double)draw_f32();
    case 1: s.u = (s.u & 0x800fffffffffffffu) | (1015 + (r >> 8) % 60) << 52; return s.f;
    case 2: s.u &= 0x801fffffffffffffu; return s.f;
    default: return s.f;
    }
}

static void same_f32(float a, float b)
{
    single x = {a}, y = {b};
    if (a == a || b == b)
        assert_int_equal(x.u, y.u);
}

static void same_f64(double a, double b)
{
    twice x = {a}, y = {b};
    if (a == a || b == b)
        assert_int_equal(x.u, y.u);
}

static void test_whole_numbers_and_signs(void **state)
{
    (void)state;
    seed = 1;
    for (int i = 0; i < 300000; i++) {
        float x = draw_f32(), y = draw_f32();
        double v = draw_f64(), w = draw_f64();
        same_f32(own_floorf(x), floorf(x));
        same_f32(own_ceilf(x), ceilf(x));
        same_f32(own_truncf(x), truncf(x));
        same_f32(own_rintf(x), rintf(x));
        same_f32(own_fabsf(x), fabsf(x));
        same_f32(own_copysignf(x, y), copysignf(x, y));
        same_f64(own_floor(v), floor(v));
        same_f64(own_ceil(v), ceil(v));
        same_f64(own_trunc(v), trunc(v));
        same_f64(own_rint(v), rint(v));
        same_f64(own_fabs(v), fabs(v));
        same_f64(own_copysign(v, w), copysign(v, w));
    }
}

static void test_roots_remainders_and_fused_products(void **state)
{
    (void)state;
    seed = 2;
    for (int i = 0; i < 100000; i++) {
        float x = draw_f32(), y = draw_f32(), z = draw_f32();
        double v = draw_f64(), w = draw_f64();
        same_f32(own_sqrtf(x), sqrtf(x));
        same_f64(own_sqrt(v), sqrt(v));
        same_f32(own_fmodf(x, y), fmodf(x, y));
        same_f64(own_fmod(v, w), fmod(v, w));
        same_f32(own_fmaf(x, y, z), fmaf(x, y, z));
        /* nearly complete cancellation */
        same_f32(own_fmaf(x, y, -(x * y)), fmaf(x, y, -(x * y)));
    }
}

static void test_memory(void **state)
{
    (void)state;
    unsigned char a[80], b[80], c[80];
    seed = 3;
    for (int i = 0; i < 20000; i++) {
        for (int j = 0; j < 80; j++)
            a[j] = b[j] = c[j] = (unsigned char)(draw() & 3);
        size_t from = draw() % 40, to = draw() % 40, n = draw() % 40;
        own_memmove(a + to, a + from, n);
        memmove(b + to, b + from, n);
        assert_memory_equal(a, b, 80);
        own_memcpy(a + to, c + from, n);
        memcpy(b + to, c + from, n);
        assert_memory_equal(a, b, 80);
        own_memset(a + from, (int)i, n);
        memset(b + from, (int)i, n);
        assert_memory_equal(a, b, 80);
        int mine = own_memcmp(a + to, c + from, n), its = memcmp(a + to, c + from, n);
        assert_int_equal((mine > 0) - (mine < 0), (its > 0) - (its < 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_numbers_and_signs),
        cmocka_unit_test(test_roots_remainders_and_fused_products),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
