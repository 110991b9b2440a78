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
           "attribute 'act' wants \"float\", \"q8\", \"bf16\" or \"f16\", found \"q4\"");
}

static void test_quantize(void **state)
{
    (void)state;
    accept("quantize(f32[2,3,4], f32[]; to=i8) >> i8[2,3,4]");
    accept("quantize(f32[B,C], f32[C], u8[C]) >> u8[B,C]");
    accept("quantize(f16[2,7], f16[2,3], i4[2,3]; axis=-1, block_size=3, to=i4) >> i4[2,7]");
    accept("dequantize(i32[2,3], f32[3]) >> f32[2,3]");
    accept("dynamic_quantize(f32[2,3]) >> u8[2,3], f32[], u8[]");
    accept("fake_quantize(f16[2,3]; scale=0.5) >> f16[2,3]");
    refuse("quantize(f32[2,3], f32[2]; to=i8) >> i8[2,3]", "E051",
           "wants one element, or one along the axis of [2, 3], found [2]");
    refuse("quantize(f32[2,7], f32[2,2]; block_size=3) >> u8[2,7]", "E051",
           "wants one element per block of [2, 7], found [2, 2]");
    refuse("quantize(f32[2,3], f32[3], u8[1,3]) >> u8[2,3]", "E051",
           "scale and zp differ in shape: [3] and [1, 3]");
    refuse("dequantize(i8[2,3], f32[3]; axis=2) >> f32[2,3]", "E051",
           "axis 2 is out of range for [2, 3] (rank 2)");
    refuse("dynamic_quantize(f32[2,3]) >> u8[2,3], f32[1], u8[]", "E051",
           "declared [1], result is []");
    refuse("fake_quantize(f16[2,3]) >> f16[2,3]", "E053", "attribute 'scale' is required");
}

static void test_integer_products(void **state)
{
    (void)state;
    accept("matmul_integer(u8[2,3], i8[3,4], u8[2], i8[4]) >> i32[2,4]");
    accept("conv_integer(u8[1,2,5], i8[3,2,3], u8[], i8[3]; pads=1) >> i32[1,3,5]");
    accept("qmatmul(u8[B,3], f32[], u8[], i8[3,4], f32[4], i8[4], f32[], u8[]) >> u8[B,4]");
    accept("qmatmul(u8[2,3], f32[], u8[], i8[3,4], f32[4], i8[4], f32[], u8[], i32[4]) >> u8[2,4]");
    accept(
        "qconv(u8[1,2,5], f32[], u8[], i8[3,2,3], f32[3], i8[3], f32[], i8[], i32[3]; strides=2) "
        ">> i8[1,3,2]");
    refuse("matmul_integer(u8[2,3], i8[2,4]) >> i32[2,4]", "E051",
           "inner dimensions differ: [2, 3] x [2, 4]");
    refuse("conv_integer(u8[1,2,5], i8[3,1,3]) >> i32[1,3,3]", "E051",
           "channels of x and w differ: [1, 2, 5] and [3, 1, 3]");
    refuse("qmatmul(u8[2,3], f32[3], u8[], i8[3,4], f32[4], i8[4], f32[], u8[]) >> u8[2,4]", "E051",
           "wants one element, or one for each row, column or filter: [3]");
    refuse("qmatmul(u8[2,3], f32[], u8[], i8[3,4], f32[4], i8[4], f32[], u8[], i32[3]) >> u8[2,4]",
           "E051", "bias wants one element per column of [3, 4], found [3]");
    refuse("qconv(u8[1,2,5], f32[], u8[], i8[3,2,3], f32[3], i8[3], f32[], i8[], i32[2]) >> "
           "i8[1,3,3]",
           "E051", "b wants one element per filter of [3, 2, 3], found [2]");
}

static void test_products(void **state)
{
    (void)state;
    accept("gemm(f32[M,K], f32[N,K], f32[N]; trans_b=true, alpha=0.5) >> f32[M,N]");
    accept("linear(f32[2,3], f32[3,4]) >> f32[2,4]");
    accept("einsum(f32[B,H,T]; equation=\"bht->thb\") >> f32[T,H,B]");
    refuse("gemm(f32[2,3], f32[2,4]) >> f32[2,4]", "E051",
           "inner dimensions differ after transposing: [2, 3] x [2, 4]");
    refuse("gemm(f32[2,3], f32[3,4], f32[3]) >> f32[2,4]", "E051",
           "cannot broadcast [3] to the result [2, 4]");
    refuse("gemm(f32[3], f32[3,4]) >> f32[4]", "E051", "wants a matrix, found [3]");
    refuse("einsum(f32[2,3], f32[3,4]; equation=\"ij\") >> f32[2,4]", "E053",
           "the equation \"ij\" does not go with these inputs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_qlinear),
        cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_integer_products),
        cmocka_unit_test(test_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
