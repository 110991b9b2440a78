/* Shapes of ops on signals and images, and of those that sort. */
#include "program/infer_test.h"

static void test_order(void **state)
{
    (void)state;
    accept("topk(f32[B,9]; k=3) >> f32[B,3], i64[B,3]");
    accept("topk(i8[5,B]; k=5, axis=0, largest=false) >> i8[5,B], i64[5,B]");
    refuse("topk(f32[2,9]; k=10) >> f32[2,10], i64[2,10]", "E051",
           "k is more than there are in [2, 9]");
    refuse("topk(f32[2,9]; k=3) >> f32[2,3]", "E056", "gives 2 outputs, found 1");
    accept("nonzero(f32[B,9]) >> i64[2,?]");
    refuse("nonzero(f32[B,9]) >> i64[3,?]", "E051", "declared [3, ?], result is [2, ?]");
    accept("unique(f32[2,9]) >> f32[?], i64[?], i64[18], i64[?]");
    refuse("unique(f32[2,9]) >> f32[?], i64[?], i64[17], i64[?]", "E051",
           "declared [17], result is [18]");
    accept("sort(f32[B,3]; descending=true) >> f32[B,3]");
    refuse("sort(f32[3]; axis=1) >> f32[3]", "E051", "axis 1 is out of range for [3] (rank 1)");
    accept("argsort(f32[B,3]) >> i64[B,3]");
    refuse("argsort(f32[B,3]) >> f32[B,3]", "E050",
           "the output is declared f32, the result is i64");
}

static void test_images(void **state)
{
    (void)state;
    accept("resize(f32[N,3,8,8]; scales=[1,1,2,3]) >> f32[N,3,16,24]");
    accept("resize(u8[4,4]; sizes=[2,7]) >> u8[2,7]");
    refuse("resize(u8[4,4]; sizes=[2,7], mode=\"linear\") >> u8[2,7]", "E060",
           "\"linear\" does not take u8 (takes F)");
    refuse("resize(f32[4,4]) >> f32[4,4]", "E053", "wants 'scales' or 'sizes'");
    refuse("resize(f32[4,4]; sizes=[2]) >> f32[2]", "E051", "wants one size per axis of [4, 4]");
    refuse("resize(f32[4]; scales=[-1]) >> f32[4]", "E051",
           "a scale is not above 0, or too large for [4]");
    refuse("resize(f32[0]; sizes=[2]) >> f32[2]", "E051", "nothing to resize in [0]");
    accept("grid_sample(f32[N,C,8,8], f32[N,4,5,2]) >> f32[N,C,4,5]");
    refuse("grid_sample(f32[1,1,8,8], f32[1,4,5,3]) >> f32[1,1,4,5]", "E051",
           "the grid does not fit: [1, 1, 8, 8] and [1, 4, 5, 3]");
}

static void test_signals(void **state)
{
    (void)state;
    accept("dft(f32[B,10,1]) >> f32[B,10,2]");
    accept("dft(f32[B,10,1]; onesided=true) >> f32[B,6,2]");
    accept("dft(f32[B,6,2]; inverse=true, onesided=true) >> f32[B,10,1]");
    accept("dft(f32[B,10,2]; length=16, axis=1) >> f32[B,16,2]");
    refuse("dft(f32[B,10,3]) >> f32[B,10,2]", "E051",
           "the last axis is 1 (real) or 2 (complex) long, found [B, 10, 3]");
    refuse("dft(f32[4,10,2]; onesided=true) >> f32[4,6,2]", "E051",
           "one side is enough for real signals only, found [4, 10, 2]");
    refuse("dft(f32[4,2]; axis=1) >> f32[4,2]", "E051",
           "the last axis holds the parts of a number in [4, 2]");
    accept("rfft(f32[B,10,1]) >> f32[B,6,2]");
    refuse("rfft(f32[10]) >> f32[6,2]", "E051",
           "wants an axis of 1 or 2 after the signal's, found [10]");
    accept("ifft(f32[B,10,2]) >> f32[B,10,2]");
    refuse("ifft(i32[4,10,2]) >> i32[4,10,2]", "E060", "input 'x' cannot be i32 (takes F)");
    accept("stft(f32[B,100], f32[16]; frame_step=4) >> f32[B,22,9,2]");
    accept("stft(f32[B,100]; frame_step=10, frame_length=20, onesided=false) >> f32[B,9,20,2]");
    refuse("stft(f32[2,100], f32[16]; frame_step=4, frame_length=8) >> f32[2,22,9,2]", "E051",
           "is not the length of the window [16]");
    accept("istft(f32[B,22,9,2], f32[16]; hop=4) >> f32[B,100]");
    accept("istft(f32[B,22,16,2], f32[16]; hop=4, length=80) >> f32[B,80]");
    refuse("istft(f32[2,22,8,2], f32[16]; hop=4) >> f32[2,100]", "E051",
           "the bins are neither one side nor two of the window: [2, 22, 8, 2] and [16]");
    accept("hann_window(; size=5) >> f32[5]");
    refuse("hann_window(; size=5) >> f32[4]", "E051", "declared [4], result is [5]");
    accept("hamming_window(; size=5, periodic=false) >> f16[5]");
    refuse("hamming_window(; size=5) >> i32[5]", "E050",
           "the output is declared i32, the result is f32");
    accept("blackman_window(; size=0) >> f64[0]");
    refuse("blackman_window() >> f64[0]", "E053", "attribute 'size' is required");
    accept("mel_filter(; num_mels=8, n_fft=64, sample_rate=16000) >> f32[33,8]");
    refuse("mel_filter(; num_mels=8, n_fft=64, sample_rate=16000) >> f32[32,8]", "E051",
           "declared [32, 8], result is [33, 8]");
}

/* Runs last. */
static void test_every_op_was_tried(void **state)
{
    (void)state;
    for (size_t i = 0; i < oi_op_count(); i++) {
        const oi_op *op = oi_op_at(i);
        bool mine = op->shape_rule >= OI_SHAPE_NONZERO && op->shape_rule <= OI_SHAPE_WINDOW;
        if ((mine || op->id == OI_OP_SORT || op->id == OI_OP_ARGSORT) &&
            (!seen_accepted[i] || !seen_refused[i]))
            fail_msg("'%s' was not accepted once and refused once", op->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_every_op_was_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
