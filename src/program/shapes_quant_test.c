/* Shape rules of ops on quantised tensors. */
#include "program/infer_test.h"

static void test_qlinear(void **state)
{
    (void)state;
    accept("qlinear(f32[B,576], u4[192,576], f16[192,18]) >> f32[B,192]");
    accept("qlinear(f32[B,K], u4[N,K], f16[N,G], f16[N,G], f32[N]; group_size=32, act=\"q8\") >> "
           "f32[B,N]");
    accept("qlinear(bf16[2,3,64], i8[7,64], bf16[7,2], f32[7]; group_size=32) >> bf16[2,3,7]");
    accept("qlinear(f32[64], t2[7,64], f32[7,1]) >> f32[7]");
    refuse("qlinear(f32[2,64], u4[7,63], f16[7,2]) >> f32[2,7]", "E051",
           "x wants shape [..., K] for w [N, K]: x [2, 64], w [7, 63]");
    refuse("qlinear(f32[2,64], u4[7,64], f16[7,3]) >> f32[2,7]", "E051",
           "the blocks do not divide a row: w [7, 64], scale [7, 3]");
    refuse("qlinear(f32[2,64], u4[7,64], f16[7,2]; group_size=16) >> f32[2,7]", "E051",
           "the blocks of group_size do not make up a row: w [7, 64], scale [7, 2]");
    refuse("qlinear(f32[2,64], u4[7,64], f16[6,2]) >> f32[2,7]", "E051",
           "wants one row of blocks for each row of w: [7, 64] and [6, 2]");
    refuse("qlinear(f32[2,64], u4[7,64], f16[7,2], f16[7,4]) >> f32[2,7]", "E051",
           "scale and offset differ in shape: [7, 2] and [7, 4]");
    refuse("qlinear(f32[2,64], u4[7,64], f16[7,2], f16[7,2], f32[8]) >> f32[2,7]", "E051",
           "b wants shape [N] for w [7, 64], found [8]");
    refuse("qlinear(f32[2,64], u4[7,64], f16[7,2], f16[7,2], f32[7,1]) >> f32[2,7]", "E051",
           "b wants shape [N], found [7, 1]");
    refuse("qlinear(f32[2,64], u4[7,64], f32[7]) >> f32[2,7]", "E056",
           "takes a scale for each block of w, which carries none of its own");
    refuse("qlinear(f32[2,64], u4[64], f16[7,2]) >> f32[2,7]", "E051",
           "w wants shape [N, K], found [64]");
    refuse("qlinear(f32[2,64], i16[7,64], f16[7,2]) >> f32[2,7]", "E060",
           "input 'w' cannot be i16 (takes P T i8 u8)");
    refuse("qlinear(f32[2,64], u4[7,64], f16[7,2]; act=\"q4\") >> f32[2,7]", "E053",
           "attribute 'act' wants \"float\" or \"q8\", found \"q4\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_qlinear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
