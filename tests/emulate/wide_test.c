/* Instructions one by one, against plain C. Run by emulation where the processor lacks them, and by
 * the processor where it has them: both must give the same. */
#include "kernel/kernel.h"
#include "trial.h"

#include <immintrin.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef union lanes {
    __m512 f;
    __m512i i;
    __m256i half;
    __m128i quarter;
    float f32[16];
    int32_t i32[16];
    uint32_t u32[16];
    uint16_t u16[32];
    int8_t i8[64];
    uint8_t u8[64];
} lanes;

static uint64_t seed = 7;

static lanes random_bits(void)
{
    lanes v;
    for (int i = 0; i < 16; i++)
        v.u32[i] = (uint32_t)oi_splitmix64(&seed);
    return v;
}

/* Some are whole numbers and halves, some tiny, some not finite. */
static lanes random_floats(void)
{
    static const float special[] = {0.5f,  -1.5f,    2.5f,       -0.0f,       0x1p-140f,
                                    3e38f, INFINITY, -0x1p-126f, 0x1.8p-127f, 2147483648.0f};
    lanes v = random_bits();
    for (int i = 0; i < 16; i++)
        if (v.u8[4 * i] & 1)
            v.f32[i] = special[v.u8[4 * i + 1] % (sizeof special / sizeof *special)];
        else if (v.u8[4 * i] & 2)
            v.f32[i] = (float)v.i32[i] * 0x1p-20f;
    return v;
}

static void same(float got, float want, const char *what)
{
    if (memcmp(&got, &want, sizeof got) != 0 && !(isnan(got) && isnan(want)))
        fail_msg("%s: %a, expected %a", what, (double)got, (double)want);
}

static void test_floats(void **state)
{
    (void)state;
    for (int n = 0; n < 2000; n++) {
        lanes x = random_floats(), y = random_floats(), z = random_floats(), by = random_bits(), r,
              s;
        for (int i = 0; i < 16; i++)
            by.f32[i] = (float)(by.i32[i] % 300) + (by.u8[4 * i] & 1 ? 0.75f : 0);
        r.f = _mm512_scalef_ps(x.f, by.f);
        for (int i = 0; i < 16; i++)
            same(r.f32[i], (float)ldexp((double)x.f32[i], (int)floorf(by.f32[i])), "scalef");
        r.f = _mm512_roundscale_ps(x.f, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        for (int i = 0; i < 16; i++)
            same(r.f32[i], rintf(x.f32[i]), "roundscale");
        r.f = _mm512_fmadd_ps(x.f, y.f, z.f);
        for (int i = 0; i < 16; i++)
            same(r.f32[i], fmaf(x.f32[i], y.f32[i], z.f32[i]), "fmadd");
        r.f = _mm512_max_ps(x.f, y.f);
        s.f = _mm512_min_ps(x.f, y.f);
        for (int i = 0; i < 16; i++) {
            same(r.f32[i], x.f32[i] > y.f32[i] ? x.f32[i] : y.f32[i], "max");
            same(s.f32[i], x.f32[i] < y.f32[i] ? x.f32[i] : y.f32[i], "min");
        }
        r.i = _mm512_cvtps_epi32(x.f);
        s.i = _mm512_cvttps_epi32(x.f);
        for (int i = 0; i < 16; i++) {
            const bool fits = fabsf(x.f32[i]) < 2147483648.0f;
            assert_int_equal(r.i32[i], fits ? (int32_t)rintf(x.f32[i]) : INT32_MIN);
            assert_int_equal(s.i32[i], fits ? (int32_t)x.f32[i] : INT32_MIN);
        }
    }
}

static void test_halves(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 65536; n += 16) {
        lanes x, r;
        for (uint32_t i = 0; i < 16; i++)
            x.u16[i] = (uint16_t)(n + i);
        r.f = _mm512_cvtph_ps(x.half);
        for (uint32_t i = 0; i < 16; i++)
            same(r.f32[i], (float)oi_element_f64(OI_F16, x.u16, i), "cvtph_ps");
        r.half = _mm512_cvtps_ph(_mm512_cvtph_ps(x.half), _MM_FROUND_TO_NEAREST_INT);
        for (uint32_t i = 0; i < 16; i++)
            if ((x.u16[i] & 0x7fff) <= 0x7c00) /* numbers */
                assert_int_equal(r.u16[i], x.u16[i]);
    }
}

static void test_integers(void **state)
{
    (void)state;
    for (int n = 0; n < 2000; n++) {
        lanes x = random_bits(), y = random_bits(), z = random_bits(), r;
        r.quarter = _mm512_cvtepi32_epi8(x.i);
        for (int i = 0; i < 16; i++)
            assert_int_equal(r.u8[i], x.u8[4 * i]);
        r.i = _mm512_cvtepu16_epi32(x.half);
        for (int i = 0; i < 16; i++)
            assert_int_equal(r.u32[i], x.u16[i]);
        r.f = _mm512_cvtepi32_ps(x.i);
        for (int i = 0; i < 16; i++)
            same(r.f32[i], (float)x.i32[i], "cvtepi32_ps");
        r.i = _mm512_dpbusd_epi32(x.i, y.i, z.i);
        for (int i = 0; i < 16; i++) {
            int64_t sum = x.i32[i];
            for (int j = 4 * i; j < 4 * i + 4; j++)
                sum += y.u8[j] * z.i8[j];
            assert_int_equal(r.u32[i], (uint32_t)sum);
        }
        r.i = _mm512_dpwssd_epi32(x.i, y.i, z.i);
        for (int i = 0; i < 16; i++) {
            const int64_t one = (int16_t)y.u16[2 * i] * (int16_t)z.u16[2 * i];
            const int64_t two = (int16_t)y.u16[2 * i + 1] * (int16_t)z.u16[2 * i + 1];
            assert_int_equal(r.u32[i], (uint32_t)(x.i32[i] + one + two));
        }
        r.i = _mm512_maddubs_epi16(x.i, y.i);
        for (int i = 0; i < 32; i++) {
            const int sum = x.u8[2 * i] * y.i8[2 * i] + x.u8[2 * i + 1] * y.i8[2 * i + 1];
            assert_int_equal((int16_t)r.u16[i], sum > 32767 ? 32767 : sum < -32768 ? -32768 : sum);
        }
        r.i = _mm512_mask_sub_epi8(x.i, _mm512_movepi8_mask(y.i), _mm512_setzero_si512(), x.i);
        for (int i = 0; i < 64; i++)
            assert_int_equal(r.u8[i], (uint8_t)(y.i8[i] < 0 ? -x.i8[i] : x.i8[i]));
        r.f = _mm512_shuffle_f32x4(x.f, y.f, 0x8d);
        for (int i = 0; i < 16; i++)
            assert_int_equal(r.u32[i], i < 4    ? x.u32[i + 4]
                                       : i < 8  ? x.u32[i + 8]
                                       : i < 12 ? y.u32[i - 8]
                                                : y.u32[i - 4]);
    }
}

/* Nothing behind the last lane that is asked for is touched. */
static void test_masks(void **state)
{
    (void)state;
    for (int n = 0; n <= 16; n++) {
        float *room = malloc(sizeof(float) * (size_t)(n ? n : 1));
        lanes x = random_floats(), r;
        const __mmask16 some = (__mmask16)((1u << n) - 1);
        assert_non_null(room);
        _mm512_mask_storeu_ps(room, some, x.f);
        r.f = _mm512_maskz_loadu_ps(some, room);
        for (int i = 0; i < 16; i++)
            assert_int_equal(r.u32[i], i < n ? x.u32[i] : 0);
        free(room);
    }
}

/* -- tiles -- */

static void shapes(int rows, int bytes, int pairs)
{
    _Alignas(64) uint8_t shape[64] = {1};
    shape[16] = shape[20] = (uint8_t)bytes; /* tiles 0, sums, and 2 */
    shape[18] = (uint8_t)(4 * pairs);
    shape[48] = shape[49] = (uint8_t)rows;
    shape[50] = (uint8_t)pairs;
    _tile_loadconfig(shape);
}

static void test_bytes(void **state)
{
    (void)state;
    uint8_t a[16][64], b[16][64];
    int32_t c[16][16], got[16][16];
    for (int n = 0; n < 60; n++) {
        const int rows = 1 + n % 16, columns = 1 + n % 7, pairs = 1 + n % 11;
        for (int i = 0; i < 16; i++) {
            const lanes x = random_bits(), y = random_bits(), z = random_bits();
            memcpy(a[i], x.u8, 64);
            memcpy(b[i], y.u8, 64);
            memcpy(c[i], z.u8, 64);
        }
        memset(got, 0x55, sizeof got);
        shapes(rows, 4 * columns, pairs);
        _tile_loadd(0, c, 64);
        _tile_loadd(1, a, 64);
        _tile_loadd(2, b, 64);
        _tile_dpbssd(0, 1, 2);
        _tile_stored(0, got, 64);
        _tile_release();
        for (int i = 0; i < 16; i++)
            for (int j = 0; j < 16; j++) {
                int64_t sum = c[i][j];
                for (int k = 0; k < 4 * pairs; k++)
                    sum += (int8_t)a[i][k] * (int8_t)b[k / 4][4 * j + k % 4];
                assert_int_equal(got[i][j],
                                 i < rows && j < columns ? (int32_t)(uint32_t)sum : 0x55555555);
            }
    }
}

#if defined(__AMX_BF16__) && defined(__AVX512BF16__)
static uint16_t bf16(float x)
{
    uint16_t bits;
    oi_element_set_f64(OI_BF16, &bits, 0, (double)x);
    return bits;
}

/* The order of sums, and what is too small. */
static void test_bf16(void **state)
{
    (void)state;
    static const struct {
        float sum, even, odd; /* what there was; products */
        float tile, vector;   /* results */
    } rows[] = {
        {1, 0x1p60f, -0x1p60f, 1, 0},
        {0x1p60f, 1, -0x1p60f, 0, 1},
        {0x1p-130f, 2, 3, 5, 5},
        {0, 0x1p-130f, 0, 0, 0},
        {0x1p-126f, -0x1.8p-126f, 0, -0.0f, -0.0f},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint16_t a[2] = {bf16(rows[i].even), bf16(rows[i].odd)}, b[2] = {bf16(1), bf16(1)};
        float got = rows[i].sum;
        lanes s, x, y;
        shapes(1, 4, 1);
        _tile_loadd(0, &got, 64);
        _tile_loadd(1, a, 64);
        _tile_loadd(2, b, 64);
        _tile_dpbf16ps(0, 1, 2);
        _tile_stored(0, &got, 64);
        _tile_release();
        same(got, rows[i].tile, "tile_dpbf16ps");
        for (int j = 0; j < 16; j++) {
            s.f32[j] = rows[i].sum;
            memcpy(&x.u32[j], a, sizeof a);
            memcpy(&y.u32[j], b, sizeof b);
        }
        s.f = _mm512_dpbf16_ps(s.f, (__m512bh)x.i, (__m512bh)y.i);
        for (int j = 0; j < 16; j++)
            same(s.f32[j], rows[i].vector, "dpbf16_ps");
    }
}

static void test_rounding_to_bf16(void **state)
{
    (void)state;
    for (int n = 0; n < 2000; n++) {
        lanes x = random_floats(), r;
        r.half = (__m256i)_mm512_cvtneps_pbh(x.f);
        for (int i = 0; i < 16; i++)
            if (isnan(x.f32[i]))
                assert_true((r.u16[i] & 0x7fff) > 0x7f80);
            else
                assert_int_equal(r.u16[i], fabsf(x.f32[i]) < 0x1p-126f ? x.u16[2 * i + 1] & 0x8000
                                                                       : bf16(x.f32[i]));
    }
}
#endif

#if defined(OI_EMULATE_H)
/* What ends a program on a processor, ends it here. */
static void must_end(int rows, int bytes, int pairs, int sum)
{
    const pid_t child = fork();
    int status;
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        shapes(rows, bytes, pairs);
        if (sum == 0)
            _tile_dpbssd(0, 1, 2);
        else
            _tile_zero(sum);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void test_wrong_shapes(void **state)
{
    (void)state;
    must_end(17, 64, 16, 0);
    must_end(16, 65, 16, 0);
    must_end(16, 62, 16, 0);
    must_end(16, 64, 16, 5); /* none given */
}
#endif

int trial_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_bytes),
#if defined(__AMX_BF16__) && defined(__AVX512BF16__)
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_rounding_to_bf16),
#endif
#if defined(OI_EMULATE_H)
        cmocka_unit_test(test_wrong_shapes),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
