/* Shape rules of softmax, norms and spectra. */
#include "program/infer_test.h"

static void test_along(void **state)
{
    (void)state;
    static const char *const names[] = {"softmax", "log_softmax", "lp_normalize"};
    for (size_t i = 0; i < OI_COUNT(names); i++) {
        char text[80];
        snprintf(text, sizeof text, "%s(f16[B,4]; axis=0) >> f16[B,4]", names[i]);
        accept(text);
        snprintf(text, sizeof text, "%s(f32[B,4]; axis=2) >> f32[B,4]", names[i]);
        refuse(text, "E051", "axis 2 is out of range for [B, 4] (rank 2)");
        snprintf(text, sizeof text, "%s(f32[]) >> f32[]", names[i]);
        refuse(text, "E051", "axis -1 is out of range for [] (rank 0)");
        snprintf(text, sizeof text, "%s(i32[4]) >> i32[4]", names[i]);
        refuse(text, "E060", "input 'x' cannot be i32 (takes F)");
    }
}

static void test_norms(void **state)
{
    (void)state;
    accept("layernorm(f32[B,T,64], f32[64], f32[64]) >> f32[B,T,64]");
    accept("layernorm(f32[B,T,64], f32[T,64]; axis=1, eps=1e-6) >> f32[B,T,64]");
    accept("rmsnorm(f16[B,D], f16[D]) >> f16[B,D]");
    accept("rmsnorm(f16[B,D], f16[1]) >> f16[B,D]");
    refuse("rmsnorm(f32[2,64], f32[32]) >> f32[2,64]", "E051",
           "does not fit the axes that are normalised: 'scale' is [32], 'x' [2, 64]");
    refuse("layernorm(f32[2,64], f32[2,64]) >> f32[2,64]", "E051",
           "does not fit the axes that are normalised: 'scale' is [2, 64], 'x' [2, 64]");
    refuse("layernorm(f32[2,64], f32[64], f32[63]) >> f32[2,64]", "E051",
           "does not fit the axes that are normalised: 'bias' is [63], 'x' [2, 64]");
    refuse("rmsnorm(f32[2,64], f16[64]) >> f32[2,64]", "E050",
           "input 'scale' is f16 but 'x' is f32");
}

static void test_channels(void **state)
{
    (void)state;
    accept("groupnorm(f32[N,6,5], f32[6], f32[6]; groups=3) >> f32[N,6,5]");
    accept("instancenorm(f32[N,C,5,5], f32[C], f32[C]) >> f32[N,C,5,5]");
    accept("batchnorm(f32[N,C], f32[C], f32[C], f32[C], f32[C]) >> f32[N,C]");
    refuse("groupnorm(f32[1,6,5], f32[6], f32[6]; groups=4) >> f32[1,6,5]", "E051",
           "6 channels do not split into 4 groups");
    refuse("groupnorm(f32[1,6,5], f32[6], f32[6]; groups=0) >> f32[1,6,5]", "E053",
           "attribute 'groups' must be at least 1, found 0");
    refuse("instancenorm(f32[1,6,5], f32[5], f32[6]) >> f32[1,6,5]", "E051",
           "wants one number for each channel: 'scale' is [5], 'x' [1, 6, 5]");
    refuse("batchnorm(f32[6], f32[6], f32[6], f32[6], f32[6]) >> f32[6]", "E051",
           "x wants shape [N, C, ...], found rank 1");
}

static void test_pairs(void **state)
{
    (void)state;
    accept("magnitude(f32[B,65,2]) >> f32[B,65]");
    accept("power_spectrum(f16[2]) >> f16[]");
    refuse("magnitude(f32[4,3]) >> f32[4]", "E051",
           "wants shape [..., 2], the real and the imaginary part");
    refuse("power_spectrum(f32[]) >> f32[]", "E051",
           "wants shape [..., 2], the real and the imaginary part");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_along),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_channels),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
