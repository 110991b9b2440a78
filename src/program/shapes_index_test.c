/* Shapes of ops whose places are turned round, found in data, or counted. */
#include "program/infer_test.h"

static void test_turned(void **state)
{
    (void)state;
    accept("reverse(f32[A,B]; axes=[0,-1]) >> f32[A,B]");
    refuse("reverse(f32[2]; axes=1) >> f32[2]", "E051", "axis 1 is out of range for [2] (rank 1)");
    accept("roll(f32[A,B]; shifts=[1,2], axes=[0,1]) >> f32[A,B]");
    accept("roll(f32[A,B]; shifts=5) >> f32[A,B]");
    refuse("roll(f32[2,3]; shifts=[1,2], axes=[0]) >> f32[2,3]", "E051",
           "wants one shift per axis for [2, 3]");
    accept("depth_to_space(f32[N,8,3,W]; block=2) >> f32[N,2,6,X]");
    refuse("depth_to_space(f32[1,6,3,3]; block=2) >> f32[1,1,6,6]", "E051",
           "the blocks do not fit [1, 6, 3, 3]");
    accept("space_to_depth(f32[N,2,6,4]; block=2) >> f32[N,8,3,2]");
    refuse("space_to_depth(f32[2,6,4]; block=2) >> f32[8,3,2]", "E051",
           "wants shape [N, C, H, W], found [2, 6, 4]");
    accept("trilu(f32[B,3,4]; k=-1) >> f32[B,3,4]");
    refuse("trilu(f32[3]) >> f32[3]", "E051", "wants two axes at least, found [3]");
    accept("bitcast(f32[B,3]; to=i32) >> i32[B,3]");
    accept("bitcast(bool[3]; to=u8) >> u8[3]");
    refuse("bitcast(f32[3]; to=i64) >> i64[3]", "E051", "is not as wide as the elements of [3]");
    accept("cumsum(f32[B,3]; axis=-1) >> f32[B,3]");
    refuse("cumsum(f32[3]; axis=2) >> f32[3]", "E051", "axis 2 is out of range for [3] (rank 1)");
    accept("cumprod(i8[3]; axis=0) >> i8[3]");
    refuse("cumprod(i8[3]) >> i8[3]", "E053", "attribute 'axis' is required");
}

static void test_indices(void **state)
{
    (void)state;
    accept("gather_elements(f32[5,4], i64[3,4]) >> f32[3,4]");
    refuse("gather_elements(f32[5,4], i64[3,5]) >> f32[3,5]", "E051",
           "idx does not fit the data: [5, 4] and [3, 5]");
    accept("gather_nd(f32[B,4,5], i64[B,6,1]; batch_dims=1) >> f32[B,6,5]");
    accept("gather_nd(f32[4,5], i64[3,2]) >> f32[3]");
    refuse("gather_nd(f32[4], i64[3,2]) >> f32[3]", "E051",
           "more coordinates than axes: [4] and [3, 2]");
    refuse("gather_nd(f32[4], i64[]) >> f32[4]", "E051",
           "wants a last axis of coordinates, found []");
    accept("scatter(f32[5,4], i64[3,4], f32[3,4]; reduction=\"add\") >> f32[5,4]");
    refuse("scatter(f32[5,4], i64[3,4], f32[3,3]) >> f32[5,4]", "E051",
           "idx and updates differ in shape: [3, 4] and [3, 3]");
    refuse("scatter(bool[5], i64[3], bool[3]; reduction=\"add\") >> bool[5]", "E060",
           "bool cannot be combined by \"add\"");
    accept("scatter_nd(f32[4,5], i64[3,1], f32[3,5]) >> f32[4,5]");
    refuse("scatter_nd(f32[4,5], i64[3,1], f32[3]) >> f32[4,5]", "E051",
           "updates want shape [3, 5], found [3]");
    accept("one_hot(i64[B]; depth=4) >> f32[B,4]");
    accept("one_hot(i64[B]; depth=4, axis=0, on=7) >> i8[4,B]");
    refuse("one_hot(i64[2]; depth=4, on=300) >> i8[2,4]", "E053",
           "attribute 'on' is 300, which does not fit i8 (-128 to 127)");
    refuse("one_hot(i64[2]; depth=4, axis=2) >> f32[2,4]", "E051",
           "the new axis is out of range for [2]");
}

static void test_counting(void **state)
{
    (void)state;
    accept("range(; limit=5) >> i64[5]");
    accept("range(; start=1.5, limit=3, delta=0.5) >> f32[3]");
    accept("range(; start=5, limit=0, delta=-2) >> i8[3]");
    accept("range(; limit=#) >> i64[N]");
    refuse("range(; limit=5, delta=0) >> i64[5]", "E053", "start, limit and delta give no length");
    refuse("range(; limit=5, start=0.5) >> i64[5]", "E053",
           "attribute 'start' must be a whole number for i64, found 0.5");
    accept("iota(bool[B,3]; axis=0) >> f32[B,3]");
    refuse("iota(bool[B,3]; axis=2) >> f32[B,3]", "E051",
           "axis 2 is out of range for [B, 3] (rank 2)");
    accept("shape_of(f32[B,3]) >> i64[2]");
    refuse("shape_of(f32[B,3]) >> i32[2]", "E050", "the output is declared i32, the result is i64");
    accept("size_of(f32[B,3]) >> i64[]");
    refuse("size_of(f32[B,3]) >> i64[1]", "E051", "declared [1], result is []");
}

/* Runs last: every op with a rule of shapes_index.c was accepted once and refused once. */
static void test_every_op_was_tried(void **state)
{
    (void)state;
    for (size_t i = 0; i < oi_op_count(); i++) {
        const oi_op *op = oi_op_at(i);
        bool mine = op->cls != OI_OP_CLASS_CUSTOM && op->shape_rule >= OI_SHAPE_ALONG_AXES &&
                    op->shape_rule <= OI_SHAPE_SCALAR;
        if (mine && (!seen_accepted[i] || !seen_refused[i]))
            fail_msg("'%s' was not accepted once and refused once", op->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turned),
        cmocka_unit_test(test_indices),
        cmocka_unit_test(test_counting),
        cmocka_unit_test(test_every_op_was_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
