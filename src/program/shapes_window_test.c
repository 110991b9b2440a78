/* Shape rules of windows that slide. */
#include "program/infer_test.h"

static void test_conv(void **state)
{
    (void)state;
    accept("conv(f32[N,3,224,224], f32[16,3,3,3], f32[16]; strides=2, pads=[1,1,1,1]) >> "
           "f32[N,16,112,112]");
    accept("conv2d(f32[1,C,H,W], f32[M,C,3,3]) >> f32[1,M,9,9]");
    accept("conv(i8[1,6,8], i8[4,3,3], i32[4]; group=2, acc=i32, dilations=2) >> i32[1,4,4]");
    accept("conv(f32[1,1,7,6], f32[2,1,3,3]; auto_pad=\"SAME_UPPER\", strides=[2,3]) >> "
           "f32[1,2,4,2]");
    accept("conv(f32[1,1,7], f32[2,1,3]; pads=$i32[]) >> f32[1,2,5]");
    refuse("conv(i8[1,3,8], i8[4,3,3]) >> i8[1,4,6]", "E053",
           "integers want acc: what their products are summed in");
    refuse("conv(f32[1,3], f32[4,3]) >> f32[1,4]", "E051",
           "x wants shape [N, C, spatial...], found [1, 3]");
    refuse("conv(f32[1,3,8], f32[4,3,3,3]) >> f32[1,4,6]", "E051",
           "x and w differ in rank: [1, 3, 8] and [4, 3, 3, 3]");
    refuse("conv(f32[1,3,8], f32[4,2,3]) >> f32[1,4,6]", "E051",
           "channels of x and w differ: [1, 3, 8] and [4, 2, 3]");
    refuse("conv(f32[1,4,8], f32[3,2,3]; group=2) >> f32[1,3,6]", "E051",
           "the filters do not fall into the groups: [3, 2, 3]");
    refuse("conv(f32[1,3,8], f32[4,3,3], f32[3]) >> f32[1,4,6]", "E051",
           "b wants one element per filter of [4, 3, 3], found [3]");
    refuse("conv(f32[1,3,8], f32[4,3,9]) >> f32[1,4,1]", "E051",
           "a window of 9 does not fit along axis 2 of [1, 3, 8]");
    refuse("conv(f32[1,3,8,8], f32[4,3,3,3]; pads=[1,1]) >> f32[1,4,8,8]", "E053",
           "attribute 'pads' wants 4 numbers, found 2");
    refuse("conv(f32[1,3,8], f32[4,3,3]; strides=0) >> f32[1,4,6]", "E053",
           "attribute 'strides' must be at least 1, found 0");
    refuse("conv(f32[1,3,8], f32[4,3,3]; strides=4611686018427387904) >> f32[1,4,6]", "E051",
           "a window of 3 does not fit along axis 2 of [1, 3, 8]");
    refuse("conv(f32[1,3,8], f32[4,3,3]) >> f32[1,4,7]", "E051",
           "declared [1, 4, 7], result is [1, 4, 6]");
}

static void test_conv_transpose(void **state)
{
    (void)state;
    accept("conv_transpose(f32[1,4,5,5], f32[4,3,3,3], f32[6]; group=2, strides=2) >> "
           "f32[1,6,11,11]");
    accept("conv_transpose(f32[1,4,5], f32[4,3,3]; strides=2, output_shape=[12]) >> f32[1,3,12]");
    refuse("conv_transpose(f32[1,4,5], f32[3,3,3]) >> f32[1,3,7]", "E051",
           "channels of x and w differ: [1, 4, 5] and [3, 3, 3]");
    refuse("conv_transpose(f32[1,3,5], f32[3,3,3]; group=2) >> f32[1,6,7]", "E051",
           "the channels do not fall into the groups: [1, 3, 5]");
    refuse("conv_transpose(f32[1,1,1], f32[1,1,1]; pads=3) >> f32[1,1,1]", "E051",
           "nothing is left after padding along axis 2 of [1, 1, 1]");
}

static void test_pool(void **state)
{
    (void)state;
    accept("max_pool(u8[N,3,8,8]; kernel=[2,2], strides=2) >> u8[N,3,4,4], i64[N,3,4,4]");
    accept("avg_pool(f32[N,3,8]; kernel=3, pads=1, count_include_pad=true) >> f32[N,3,8]");
    accept("global_avg_pool(f16[N,C,8,8]) >> f16[N,C,1,1]");
    accept("global_max_pool(i8[N,C,8]) >> i8[N,C,1]");
    accept("im2col(f32[2,3,5,5]; kernel=3) >> f32[2,27,9]");
    accept("col2im(f32[2,27,9]; kernel=3) >> f32[2,3,5,5]");
    accept("col2im(f32[2,27,9]; kernel=[3,3], shape=[5,5]) >> f32[2,3,5,5]");
    refuse("max_pool(f32[1,3,8]; kernel=9) >> f32[1,3,1]", "E051",
           "a window of 9 does not fit along axis 2 of [1, 3, 8]");
    refuse("max_pool(f32[1,3,8]) >> f32[1,3,8]", "E053", "attribute 'kernel' is required");
    refuse("avg_pool(i8[1,3,8]; kernel=2) >> i8[1,3,7]", "E060",
           "input 'x' cannot be i8 (takes F)");
    refuse("global_avg_pool(f32[3,8]) >> f32[3,1]", "E051",
           "x wants shape [N, C, spatial...], found [3, 8]");
    refuse("global_max_pool(f32[3]) >> f32[3]", "E051",
           "x wants shape [N, C, spatial...], found [3]");
    refuse("im2col(f32[2,3,5,5]; kernel=3) >> f32[2,9,27]", "E051",
           "declared [2, 9, 27], result is [2, 27, 9]");
    refuse("col2im(f32[2,27,8]; kernel=3) >> f32[2,3,5,5]", "E051",
           "the columns are not those of the windows: [2, 27, 8] for an image [2, 3, 5, 5]");
    refuse("col2im(f32[2,26,9]; kernel=3) >> f32[2,3,5,5]", "E051",
           "the columns are not those of the windows: [2, 26, 9] for an image [2, 3, 5, 5]");
    refuse("col2im(f32[2,27,9]; kernel=3) >> f32[2,4,5,5]", "E051",
           "declared [2, 4, 5, 5], result is [2, 3, 5, 5]");
    refuse("col2im(f32[2,27,9]; kernel=[3,3,3]) >> f32[2,3,5,5]", "E053",
           "attribute 'kernel' wants 2 numbers, found 3");
    refuse("col2im(f32[2,27,9]; kernel=9) >> f32[2,3,5,5]", "E051",
           "a window of 9 does not fit along axis 2 of [2, 3, 5, 5]");
    refuse("col2im(f32[27,9]; kernel=3) >> f32[2,3,5,5]", "E051",
           "x wants shape [N, C * kernel, places], found [27, 9]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_transpose),
        cmocka_unit_test(test_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
