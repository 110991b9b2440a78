/* Shape rules of softmax, norms, spectra, rotary embedding and recurrent cells. */
#include "program/infer_test.h"

static void test_along(void **state)
{
    (void)state;
    static const char *const names[] = {"softmax", "log_softmax", "lp_normalize"};
    accept_all(names, "(f16[B,4]; axis=0) >> f16[B,4]");
    refuse_all(names, "(f32[B,4]; axis=2) >> f32[B,4]", "E051",
               "axis 2 is out of range for [B, 4] (rank 2)");
    refuse_all(names, "(f32[]) >> f32[]", "E051", "axis -1 is out of range for [] (rank 0)");
    refuse_all(names, "(i32[4]) >> i32[4]", "E060", "input 'x' cannot be i32 (takes F)");
}

static void test_norms(void **state)
{
    (void)state;
    accept("layernorm(f32[B,T,64], f32[64], f32[64]) >> f32[B,T,64]");
    accept("layernorm(f32[B,T,64], f32[T,64]; axis=1, eps=1e-6) >> f32[B,T,64]");
    accept("rmsnorm(f16[B,D], f16[D]) >> f16[B,D]");
    accept("rmsnorm(f16[B,D], f16[1]) >> f16[B,D]");
    refuse("rmsnorm(f32[2,64], f32[32]) >> f32[2,64]", "E051",
           "does not fit the axes that are normalised: 'scale' is [32], 'x' [2, 64]; "
           "[64] fits");
    refuse("layernorm(f32[2,64], f32[2,64]) >> f32[2,64]", "E051",
           "does not fit the axes that are normalised: 'scale' is [2, 64], 'x' [2, 64]; "
           "[64] fits");
    refuse("layernorm(f32[2,64], f32[64], f32[63]) >> f32[2,64]", "E051",
           "does not fit the axes that are normalised: 'bias' is [63], 'x' [2, 64]; "
           "[64] fits");
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
           "wants one number for each channel: 'scale' is [5], 'x' [1, 6, 5]; [6] fits");
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

static void test_rope(void **state)
{
    (void)state;
    accept("rope(f32[B,H,T,64], i32[T]) >> f32[B,H,T,64]");
    accept("rope(f32[B,H,T,64], i64[B,T]; theta=100000, interleaved=true) >> f32[B,H,T,64]");
    accept("rope(f16[T,9,64], i32[T]; dim=32, scale=0.5) >> f16[T,9,64]");
    accept("rope(f32[1,T,576], i32[T], f32[P,32], f32[P,32]; heads=9) >> f32[1,T,576]");
    refuse("rope(f32[1,4,576], i32[4]; heads=7) >> f32[1,4,576]", "E051",
           "the last axis does not split into the heads: [1, 4, 576]");
    refuse("rope(f32[1,4,576], i32[5]; heads=9) >> f32[1,4,576]", "E051",
           "positions want shape [T] or [B, T]: x is [1, 4, 576], positions [5]");
    refuse("rope(f32[4,2,7], i32[4]) >> f32[4,2,7]", "E051",
           "only an even part of the last axis can be turned: [4, 2, 7]");
    refuse("rope(f32[4,2,8], i32[4]; dim=10) >> f32[4,2,8]", "E051",
           "only an even part of the last axis can be turned: [4, 2, 8]");
    refuse("rope(f32[4,8], i32[4]) >> f32[4,8]", "E051",
           "x wants shape [B, H, T, Dh], [T, H, Dh] or, with heads, [B, T, heads*Dh]: [4, 8]");
    refuse("rope(f32[4,2,8], f32[4]) >> f32[4,2,8]", "E060",
           "input 'positions' cannot be f32 (takes U i32 i64)");
    refuse("rope(f32[4,2,8], i32[4], f32[9,4]) >> f32[4,2,8]", "E056",
           "takes cos and sin, or neither");
    refuse("rope(f32[4,2,8], i32[4], f32[9,8], f32[9,4]) >> f32[4,2,8]", "E051",
           "cos and sin want shape [positions, dim/2], found [9, 8]");
}

static void test_cells(void **state)
{
    (void)state;
    accept("lstm_cell(f32[B,I], f32[B,H], f32[B,H], f32[G,I], f32[G,H]) >> f32[B,H], f32[B,H]");
    accept("gru_cell(f32[2,5], f32[2,6], f32[18,5], f32[18,6], f32[36]) >> f32[2,6]");
    accept("rnn_cell(f16[2,5], f16[2,6], f16[6,5], f16[6,6], f16[12]) >> f16[2,6]");
    refuse("rnn_cell(f32[2,5], f32[3,6], f32[6,5], f32[6,6]) >> f32[3,6]", "E051",
           "'h' wants shape [B, H], found [3, 6]; 'x' is [2, 5], 'h' [3, 6]");
    refuse("gru_cell(f32[2,5], f32[2,6], f32[18,5], f32[18,5]) >> f32[2,6]", "E051",
           "'R' wants shape [3*H, H], found [18, 5]; 'x' is [2, 5], 'h' [2, 6]");
    refuse("gru_cell(f32[2,5], f32[2,6], f32[18,5], f32[18,6], f32[18]) >> f32[2,6]", "E051",
           "'b' wants shape [6*H], of W and of R, found [18]; 'x' is [2, 5], 'h' [2, 6]");
    refuse("lstm_cell(f32[2,5], f32[2,6], f32[2,5], f32[24,5], f32[24,6]) >> f32[2,6], f32[2,6]",
           "E051", "'c' wants shape [B, H], found [2, 5]; 'x' is [2, 5], 'h' [2, 6]");
    refuse("lstm_cell(f32[2,5], f32[2,6], f32[2,6], f32[24,5], f32[24,6]) >> f32[2,6]", "E056",
           "gives 2 outputs, found 1");
    refuse("rnn_cell(f32[5], f32[2,6], f32[6,5], f32[6,6]) >> f32[2,6]", "E051",
           "x wants shape [B, I], found [5]");
}

static void test_sequences(void **state)
{
    (void)state;
    accept("lstm(f32[T,B,5], f32[1,24,5], f32[1,24,6]) >> f32[T,1,B,6], f32[1,B,6], f32[1,B,6]");
    accept("gru(f32[T,B,5], f32[2,18,5], f32[2,18,6], f32[2,36], f32[2,B,6]; "
           "direction=\"bidirectional\") >> f32[T,2,B,6], f32[2,B,6]");
    accept("rnn(f32[T,B,5], f32[1,6,5], f32[1,6,6]; activation=\"relu\") >> f32[T,1,B,6], "
           "f32[1,B,6]");
    accept("lstm(f32[4,2,5], f32[1,24,5], f32[1,24,6]; hidden_size=6) >> f32[4,1,2,6], f32[1,2,6], "
           "f32[1,2,6]");
    refuse("rnn(f32[4,2,5], f32[1,6,5], f32[1,6,6]; hidden_size=7) >> f32[4,1,2,6], f32[1,2,6]",
           "E051", "hidden_size is not that of R [1, 6, 6]");
    refuse("gru(f32[4,2,5], f32[1,18,5], f32[1,18,6]; direction=\"bidirectional\") >> "
           "f32[4,2,2,6], f32[2,2,6]",
           "E051", "W wants shape [D, G*H, I]: x is [4, 2, 5], it is [1, 18, 5]");
    refuse("rnn(f32[4,2,5], f32[1,6,5], f32[1,6,6], f32[1,6]) >> f32[4,1,2,6], f32[1,2,6]", "E051",
           "b wants shape [D, 2*G*H]: x is [4, 2, 5], it is [1, 6]");
    refuse("lstm(f32[4,5], f32[1,24,5], f32[1,24,6]) >> f32[4,1,1,6], f32[1,1,6], f32[1,1,6]",
           "E051", "x wants shape [T, B, I], found [4, 5]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_along),     cmocka_unit_test(test_norms),
        cmocka_unit_test(test_channels),  cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_rope),      cmocka_unit_test(test_cells),
        cmocka_unit_test(test_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
