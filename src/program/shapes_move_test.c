/* Shapes of ops that move elements: what is accepted, what is refused and how that is said. */
#include "program/infer_test.h"

static void test_views(void **state)
{
    (void)state;
    accept("reshape(f32[2,6]; shape=[3,4]) >> f32[3,4]");
    accept("reshape(f32[B,6]; shape=[0,2,3]) >> f32[B,2,3]");
    accept("reshape(f32[2,3,4]; shape=[-1,4]) >> f32[6,4]");
    accept("reshape(f32[B,6]; shape=[-1]) >> f32[N]");
    accept("reshape(f32[2,6]) >> f32[12]");
    accept("reshape(f32[2,6]; shape=#) >> f32[12]");
    accept("reshape(i4[1]; shape=[]) >> i4[]");
    refuse("reshape(f32[2,6]) >> f32[11]", "E051", "cannot reshape [2, 6] to [11]");
    refuse("reshape(f32[2,6]; shape=[5,-1]) >> f32[5,2]", "E051", "-1 cannot be found for [2, 6]");
    refuse("reshape(f32[2,6]; shape=[-1,-1]) >> f32[2,6]", "E051",
           "-1 stands twice in the shape for [2, 6]");
    refuse("reshape(f32[2]; shape=[1,0]) >> f32[1,2]", "E051",
           "0 keeps an axis that is not there in [2]");
    refuse("reshape(f32[2]; shape=[-2]) >> f32[2]", "E053",
           "attribute 'shape' must be at least -1, found -2");
    accept("flatten(f32[2,B,4]; axis=2) >> f32[N,4]");
    accept("flatten(f32[1,B]) >> f32[1,B]");
    accept("flatten(f32[3]; axis=-1) >> f32[1,3]");
    refuse("flatten(f32[3]; axis=2) >> f32[3,1]", "E051", "the axis is out of range for [3]");
    accept("squeeze(f32[1,3,1]) >> f32[3]");
    accept("squeeze(f32[B,1]; axes=[-1]) >> f32[B]");
    accept("squeeze(f32[B,3]; axes=0) >> f32[3]");
    refuse("squeeze(f32[2,3]; axes=0) >> f32[3]", "E051", "only axes of length 1 can go: [2, 3]");
    accept("unsqueeze(f32[B,3]; axes=[0,-1]) >> f32[1,B,3,1]");
    refuse("unsqueeze(f32[3]; axes=[0,0]) >> f32[1,1,3]", "E051",
           "an axis is out of range or given twice for [3]");
    refuse("unsqueeze(f32[3]) >> f32[1,3]", "E053", "attribute 'axes' is required");
    accept("transpose(f32[A,B,C]) >> f32[C,B,A]");
    accept("transpose(f32[A,B,C]; perm=[0,2,1]) >> f32[A,C,B]");
    accept("transpose(f32[]) >> f32[]");
    refuse("transpose(f32[2,3]; perm=[0,0]) >> f32[2,2]", "E051",
           "wants every axis once of [2, 3]");
    refuse("transpose(f32[2,3]; perm=[1]) >> f32[3]", "E051", "wants every axis once of [2, 3]");
}

static void test_repeats(void **state)
{
    (void)state;
    accept("expand(f32[3,1]; shape=[2,1,4]) >> f32[2,3,4]");
    accept("expand(f32[1,D]) >> f32[B,D]");
    refuse("expand(f32[3]; shape=[2]) >> f32[2]", "E051", "cannot expand [3] to [2]");
    accept("tile(f32[2,B]; repeats=[3,1]) >> f32[6,B]");
    refuse("tile(f32[2,3]; repeats=[3]) >> f32[6,3]", "E051",
           "wants one number per axis of [2, 3]");
    refuse("tile(f32[9]; repeats=[9223372036854775807]) >> f32[9]", "E051",
           "the result is too large");
}

static void test_parts(void **state)
{
    (void)state;
    accept("concat(f32[B,2], f32[B,3]; axis=1) >> f32[B,5]");
    accept("concat(f32[2,D], f32[N,D]; axis=-2) >> f32[9,D]");
    refuse("concat(f32[2,3], f32[2,4]; axis=0) >> f32[4,3]", "E051",
           "cannot join [2, 3] and [2, 4]");
    refuse("concat(f32[2,3], f32[2]; axis=0) >> f32[4,3]", "E051", "cannot join [2, 3] and [2]");
    refuse("concat(f32[2], i32[2]; axis=0) >> f32[4]", "E050", "input 'xs' is i32 but 'xs' is f32");
    accept("split(f32[7,D]) >> f32[3,D], f32[3,D], f32[1,D]");
    accept("split(f32[B,8]; axis=1, sizes=[2,6]) >> f32[B,2], f32[B,6]");
    refuse("split(f32[8]; sizes=[2,5]) >> f32[2], f32[5]", "E051",
           "the sizes do not make up the axis of [8]");
    refuse("split(f32[8]; sizes=[8]) >> f32[4], f32[4]", "E051",
           "wants one size per output for [8]");
    accept("slice(f32[9,D]; starts=[1], ends=[-1], steps=[3]) >> f32[3,D]");
    accept("slice(f32[9,4]; starts=[-1], ends=[-99], axes=[1], steps=[-1]) >> f32[9,4]");
    accept("slice(f32[B]; starts=[0], ends=[2]) >> f32[9]");
    refuse("slice(f32[9]; starts=[0], ends=[2], steps=[0]) >> f32[2]", "E051",
           "a step is 0 for [9]");
    refuse("slice(f32[9]; starts=[0,1], ends=[2,2]) >> f32[2]", "E051",
           "starts, ends, axes and steps want as many items, at most as there are axes in [9]");
    refuse("slice(f32[9,2]; starts=[0,1], ends=[2,2], axes=[0,0]) >> f32[2]", "E051",
           "an axis is given twice for [9, 2]");
    accept("pad(f32[2,3]; pads=[1,0,-1,2]) >> f32[2,5]");
    accept("pad(f32[2]; pads=[5,0], mode=\"reflect\") >> f32[7]");
    refuse("pad(f32[2]; pads=[-2,1], mode=\"edge\") >> f32[1]", "E051",
           "nothing to pad with in [2]");
    refuse("pad(f32[2]; pads=[-3,1]) >> f32[0]", "E051", "the pads cut more than there is of [2]");
    refuse("pad(f32[2]; pads=[1]) >> f32[3]", "E051",
           "wants a begin and an end for every axis of [2]");
}

/* Runs last. */
static void test_every_op_was_tried(void **state)
{
    (void)state;
    for (size_t i = 0; i < oi_op_count(); i++) {
        const oi_op *op = oi_op_at(i);
        bool mine = op->shape_rule >= OI_SHAPE_RESHAPE && op->shape_rule <= OI_SHAPE_PAD;
        if (mine && (!seen_accepted[i] || !seen_refused[i]))
            fail_msg("'%s' was not accepted once and refused once", op->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_every_op_was_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
