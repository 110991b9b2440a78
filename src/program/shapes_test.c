/* shapes_test.c: every op of the registry, accepted and refused, with sizes known and unknown. */
#include "program/infer_test.h"

static void test_arithmetic(void **state)
{
    (void)state;
    accept("add(f32[B,64], f32[64]) >> f32[B,64]");
    accept("sub(i8[2,1], i8[3]) >> i8[2,3]");
    accept("mul(u4[2,1], u4[3]) >> u4[2,3]");
    refuse("add(f32[B,64], f32[32]) >> f32[B,64]", "E051", "cannot broadcast [B, 64] with [32]");
    refuse("sub(f32[2], f32[3]) >> f32[3]", "E051", "cannot broadcast [2] with [3]");
    refuse("mul(f32[2,2], f32[3,1,4]) >> f32[3,2,4]", "E051",
           "cannot broadcast [2, 2] with [3, 1, 4]");
}

static void test_division(void **state)
{
    (void)state;
    accept("div(f32[4], f32[]) >> f32[4]");
    accept("div(i4[4], i4[4]; div_by_zero_mask=7) >> i4[4]");
    accept("div(f32[4], f32[4]; div_by_zero_mask=inf) >> f32[4]");
    accept("div(i8[4], i8[4]; div_by_zero_mask=-1.0) >> i8[4]");
    refuse("div(i4[4], i4[4]; div_by_zero_mask=8) >> i4[4]", "E053",
           "attribute 'div_by_zero_mask' is 8, which does not fit i4 (-8 to 7)");
    refuse("div(i8[4], i8[4]; div_by_zero_mask=0.5) >> i8[4]", "E053",
           "attribute 'div_by_zero_mask' must be a whole number for i8, found 0.5");
    accept("floor_div(i32[B,4], i32[4]) >> i32[B,4]");
    refuse("floor_div(f32[4], f32[4]) >> f32[4]", "E060",
           "input 'x' cannot be f32 (takes S U i4 u4)");
    accept("rem(f64[4], f64[4]) >> f64[4]");
    accept("rem(u4[4], u4[4]) >> u4[4]");
    refuse("rem(u2[4], u2[4]) >> u2[4]", "E060", "input 'x' cannot be u2 (takes F S U i4 u4)");
    accept("recip(f16[4]; div_by_zero_mask=0) >> f16[4]");
    refuse("recip(i8[4]) >> i8[4]", "E060", "input 'x' cannot be i8 (takes F)");
    refuse("recip(f16[4]; div_by_zero_mask=1e9) >> f16[4]", "E053",
           "attribute 'div_by_zero_mask' is 1000000000.0, which does not fit f16");
    accept("fma(f32[B,1], f32[4], f32[]) >> f32[B,4]");
    refuse("fma(i32[4], i32[4], i32[4]) >> i32[4]", "E060", "input 'x' cannot be i32 (takes F)");
    refuse("fma(f32[2,2], f32[2], f32[3]) >> f32[2,2]", "E051", "cannot broadcast [2, 2] with [3]");
}

static void test_unary(void **state)
{
    (void)state;
    accept("neg(i1[B,?]) >> i1[B,?]");
    refuse("neg(u8[4]) >> u8[4]", "E060", "input 'x' cannot be u8 (takes F S i4 i2 i1)");
    refuse("neg(f32[4]) >> f32[5]", "E051", "declared [5], result is [4]");
    accept("abs(i64[4]) >> i64[4]");
    refuse("abs(u8[4]) >> u8[4]", "E060", "input 'x' cannot be u8 (takes F S i4 i2 i1)");
    accept("sign(f32[4]) >> i8[4]");
    accept("sign(f32[4]) >> f32[4]");
    refuse("sign(f32[4]) >> i16[4]", "E050", "the output is declared i16, the result is i8");
    accept("floor(f32[4]) >> f32[4]");
    accept("ceil(i4[4]) >> i4[4]");
    accept("trunc(u64[4]) >> u64[4]");
    accept("round(bf16[4]; mode=\"half_even\") >> bf16[4]");
    refuse("floor(bool[4]) >> bool[4]", "E060", "input 'x' cannot be bool (takes N)");
    refuse("ceil(t2[4]) >> t2[4]", "E060", "input 'x' cannot be t2 (takes N)");
    refuse("trunc(f32[4]) >> i32[4]", "E050", "the output is declared i32, the result is f32");
    refuse("round(i8[4]) >> i8[4]", "E060", "input 'x' cannot be i8 (takes F)");
    accept("fill_nan_like(f32[4]; value=-1) >> f32[4]");
    refuse("fill_nan_like(i8[4]) >> i8[4]", "E060", "input 'x' cannot be i8 (takes F)");
    accept("popcount(bitset[4]) >> u8[4]");
    accept("popcount(i64[4]) >> u8[4]");
    refuse("popcount(i64[4]) >> i64[4]", "E050", "the output is declared i64, the result is u8");
    refuse("popcount(f32[4]) >> u8[4]", "E060", "input 'x' cannot be f32 (takes S U P bitset)");
}

static void test_limits(void **state)
{
    (void)state;
    accept("min(f32[4], f32[1]; nan=\"ignore\") >> f32[4]");
    accept("max(u1[4], u1[4]) >> u1[4]");
    refuse("min(bool[4], bool[4]) >> bool[4]", "E060", "input 'x' cannot be bool (takes N)");
    refuse("max(f32[2], f32[3]) >> f32[3]", "E051", "cannot broadcast [2] with [3]");
    refuse("max(f32[2], f32[2]; nan=\"no\") >> f32[2]", "E053",
           "attribute 'nan' wants \"propagate\" or \"ignore\", found \"no\"");
    accept("clamp(i8[4]; min=-1000, max=inf) >> i8[4]"); /* bounds beyond the type limit nothing */
    accept("clamp(f32[4]; min=0.5) >> f32[4]");
    refuse("clamp(i8[4]; min=0.5) >> i8[4]", "E053",
           "attribute 'min' must be a whole number for i8, found 0.5");
    refuse("clamp(i8[4]; max=nan) >> i8[4]", "E053",
           "attribute 'max' must be a whole number for i8, found nan");
    accept("relu(f32[B,D]; alpha=0.01, clamp_max=6) >> f32[B,D]");
    accept("relu(i4[4]; negative_slope=2) >> i4[4]");
    accept("relu(i8[4]; negative_slope=2.0) >> i8[4]");
    refuse("relu(i8[4]; negative_slope=0.01) >> i8[4]", "E053",
           "attribute 'negative_slope' must be a whole number for i8, found 0.01");
    refuse("relu(i4[4]; alpha=9) >> i4[4]", "E053",
           "attribute 'negative_slope' is 9, which does not fit i4 (-8 to 7)");
    refuse("relu(u8[4]) >> u8[4]", "E060", "input 'x' cannot be u8 (takes F S i4)");
}

static void test_bits(void **state)
{
    (void)state;
    accept("and(bitset[4], bitset[4]) >> bitset[4]");
    accept("or(bool[B,4], bool[4]) >> bool[B,4]");
    accept("xor(u1[4], u1[4]) >> u1[4]");
    accept("not(i2[4]) >> i2[4]");
    refuse("and(f32[4], f32[4]) >> f32[4]", "E060",
           "input 'x' cannot be f32 (takes S U P bool bitset)");
    refuse("or(t1[4], t1[4]) >> t1[4]", "E060", "input 'x' cannot be t1 (takes S U P bool bitset)");
    refuse("xor(u8[4], i8[4]) >> u8[4]", "E050", "input 'y' is i8 but 'x' is u8");
    refuse("not(f16[4]) >> f16[4]", "E060", "input 'x' cannot be f16 (takes S U P bool bitset)");
    accept("shl(i8[4]; bits=3) >> i8[4]");
    accept("shr(u4[4]; bits=0) >> u4[4]");
    accept("shl(i8[2,3], i8[3]) >> i8[2,3]");
    accept("shr(i8[3], i8[2,3]) >> i8[2,3]");
    refuse("shl(i8[4]) >> i8[4]", "E053", "attribute 'bits' is required (or a second input)");
    refuse("shl(i8[4], i8[4]; bits=1) >> i8[4]", "E054",
           "give attribute 'bits' or a second input, not both");
    refuse("shl(i8[4]; bits=-1) >> i8[4]", "E053", "attribute 'bits' must be at least 0, found -1");
    refuse("shr(i8[4]; bits=1.5) >> i8[4]", "E053",
           "attribute 'bits' wants an integer, found a float");
    refuse("shr(i1[4]; bits=1) >> i1[4]", "E060", "input 'x' cannot be i1 (takes S U i4 i2 u4 u2)");
    refuse("shr(i8[4], u8[4]) >> i8[4]", "E050", "input 'y' is u8 but 'x' is i8");
}

static void test_compare(void **state)
{
    (void)state;
    accept("eq(bitset[4], bitset[4]) >> bool[4]");
    accept("ne(f32[B,4], f32[4]) >> bool[B,4]");
    refuse("eq(t2[4], t2[4]) >> bool[4]", "E060", "input 'x' cannot be t2 (takes N bool bitset)");
    refuse("ne(f32[4], f32[4]) >> u8[4]", "E050", "the output is declared u8, the result is bool");
    static const char *const order[] = {"lt", "le", "gt", "ge"};
    accept_all(order, "(u4[B,4], u4[]) >> bool[B,4]");
    refuse_all(order, "(bool[4], bool[4]) >> bool[4]", "E060",
               "input 'x' cannot be bool (takes N)");
    refuse_all(order, "(f32[4], f32[4]) >> f32[4]", "E050",
               "the output is declared f32, the result is bool");
    refuse_all(order, "(f32[4], f32[5]) >> bool[4]", "E051", "cannot broadcast [4] with [5]");
    accept("filter(f32[B,4], f32[4], bool[B,1]) >> f32[B,4]");
    accept("filter(f32[4], f32[], f32[4]) >> f32[4]");
    accept("filter(bool[4], bool[4], bool[4]) >> bool[4]");
    refuse("filter(f32[4], f32[4], u8[4]) >> f32[4]", "E050",
           "input 'cond' is u8, wants one of: f32 bool");
    refuse("filter(f32[4], f32[4], bool[3]) >> f32[4]", "E051", "cannot broadcast [4] with [3]");
    refuse("filter(f32[4], bool[4], bool[4]) >> f32[4]", "E050",
           "input 'b' is bool but 'a' is f32");
}

static void test_predicates(void **state)
{
    (void)state;
    static const char *const names[] = {"is_finite", "is_nan", "is_inf", "is_neg"};
    accept_all(names, "(f32[B,4]) >> bool[B,4]");
    accept_all(names, "(f32[B,4]) >> bool[]");
    refuse_all(names, "(f32[B,4]) >> bool[4]", "E051", "declared [4], result is [B, 4]");
    refuse_all(names, "(f32[4]) >> u8[4]", "E050", "the output is declared u8, the result is bool");
    accept("is_neg(u8[4]) >> bool[4]");
    refuse("is_nan(i8[4]) >> bool[4]", "E060", "input 'x' cannot be i8 (takes F)");
    refuse("is_neg(u4[4]) >> bool[4]", "E060", "input 'x' cannot be u4 (takes F S U i4 i2 i1)");
}

/* One input, floats only. */
static void test_functions(void **state)
{
    (void)state;
    for (size_t i = 0; i < oi_op_count(); i++) {
        const oi_op *op = oi_op_at(i);
        if (op->cls != OI_OP_CLASS_MAP || op->shape_rule != OI_SHAPE_SAME || op->n_inputs != 1 ||
            strcmp(op->dtypes_text, "F") != 0 || op->outputs[0].out_rule != OI_OUT_LIKE)
            continue;
        char text[120];
        snprintf(text, sizeof text, "%s(f16[B,4]) >> f16[B,4]", op->name);
        accept(text);
        snprintf(text, sizeof text, "%s(f16[B,4]) >> f16[4]", op->name);
        refuse(text, "E051", "declared [4], result is [B, 4]");
        snprintf(text, sizeof text, "%s(i32[4]) >> i32[4]", op->name);
        refuse(text, "E060", "input 'x' cannot be i32 (takes F)");
    }
    accept("swish(f32[4]; alpha=2) >> f32[4]");
    accept("dropout(i8[B,4]) >> i8[B,4]");
    refuse("dropout(i8[B,4]) >> i8[4]", "E051", "declared [4], result is [B, 4]");
    refuse("gelu(f32[4]; approximate=\"fast\") >> f32[4]", "E053",
           "attribute 'approximate' wants \"none\" or \"tanh\", found \"fast\"");
}

static void test_mixed_maps(void **state)
{
    (void)state;
    accept("square(i4[3]) >> i4[3]");
    refuse("square(bool[3]) >> bool[3]", "E060", "input 'x' cannot be bool (takes N)");
    accept("identity(bitset[B,3]) >> bitset[B,3]");
    refuse("copy(f32[B,3]) >> f16[B,3]", "E050", "the output is declared f16, the result is f32");
    accept("where(bool[4,1], t2[4,1], t2[3]) >> t2[4,3]");
    accept("where(bool[], f32[2], f32[5,1]) >> f32[5,2]");
    refuse("where(u8[4], f32[4], f32[4]) >> f32[4]", "E060",
           "input 'cond' cannot be u8 (takes bool)");
    refuse("where(bool[4], f32[4], f16[4]) >> f32[4]", "E050", "input 'b' is f16 but 'a' is f32");
    static const char *const names[] = {"prelu", "pow", "mod", "atan2"};
    accept_all(names, "(f32[B,4], f32[4]) >> f32[B,4]");
    refuse_all(names, "(f32[2,4], f32[3]) >> f32[2,4]", "E051", "cannot broadcast [2, 4] with [3]");
}

static void test_fill(void **state)
{
    (void)state;
    accept("fake_quantize(f16[2,3]; scale=0.5) >> f16[2,3]");
    refuse("fake_quantize(f16[2,3]) >> f16[2,3]", "E053", "attribute 'scale' is required");
    accept("fill(f32[B,?]) >> f32[B,?]");
    accept("fill(u64[4]; value=18446744073709551615) >> u64[4]");
    accept("fill(i64[4]; value=-9223372036854775808) >> i64[4]");
    accept("fill(f16[4]; value=65504) >> f16[4]");
    accept("fill(f16[4]; value=-inf) >> f16[4]");
    accept("fill(bool[4]; value=true) >> bool[4]");
    accept("fill(bitset[4]; value=255) >> bitset[4]");
    accept("fill(t2[4]; value=-1) >> t2[4]");
    refuse("fill(u8[4]; value=300) >> u8[4]", "E053",
           "attribute 'value' is 300, which does not fit u8 (0 to 255)");
    refuse("fill(u8[4]; value=-1) >> u8[4]", "E053",
           "attribute 'value' is -1, which does not fit u8 (0 to 255)");
    refuse("fill(i64[4]; value=9223372036854775808) >> i64[4]", "E053",
           "attribute 'value' is 9223372036854775808, which does not fit i64 (-9223372036854775808 "
           "to 9223372036854775807)");
    refuse("fill(i64[4]; value=9223372036854775808.0) >> i64[4]", "E053",
           "attribute 'value' is 9.223372036854776e18, which does not fit i64 "
           "(-9223372036854775808 to 9223372036854775807)");
    refuse("fill(f16[4]; value=65520) >> f16[4]", "E053",
           "attribute 'value' is 65520, which does not fit f16");
    refuse("fill(bool[4]; value=2) >> bool[4]", "E053",
           "attribute 'value' is 2, which does not fit bool (0 to 1)");
    refuse("fill(i8[4]; value=inf) >> i8[4]", "E053",
           "attribute 'value' is inf, which does not fit i8 (-128 to 127)");
    refuse("fill(i8[4]; value=1.5) >> i8[4]", "E053",
           "attribute 'value' must be a whole number for i8, found 1.5");
    refuse("fill(f32[4]; value=\"a\") >> f32[4]", "E053",
           "attribute 'value' wants a number, found a string");
    refuse("fill(f32[4]) >> f32[]", "E051", "declared [], result is [4]");
}

static void test_reduce(void **state)
{
    (void)state;
    static const char *const names[] = {"sum_axis", "prod_axis", "mean_axis", "max_axis",
                                        "min_axis"};
    accept_all(names, "(f32[B,T,D]; axes=[0,-1]) >> f32[T]");
    accept_all(names, "(f32[B,T,D]; axes=[1,1,-2], keepdims=true) >> f32[B,1,D]");
    accept_all(names, "(f32[B,0]; axes=1) >> f32[B]");
    accept_all(names, "(f32[4]; axes=0) >> f32[]");
    refuse_all(names, "(f32[B,4]) >> f32[B]", "E053", "attribute 'axes' is required");
    refuse_all(names, "(f32[B,4]; axes=2) >> f32[B]", "E051",
               "axis 2 is out of range for [B, 4] (rank 2)");
    refuse_all(names, "(f32[B,4]; axes=[0,-3]) >> f32[B]", "E051",
               "axis -3 is out of range for [B, 4] (rank 2)");
    refuse_all(names, "(f32[]; axes=0) >> f32[]", "E051", "axis 0 is out of range for [] (rank 0)");
    refuse_all(names, "(f32[B,4]; axes=0) >> f32[1,4]", "E051", "declared [1, 4], result is [4]");
    refuse_all(names, "(bool[B,4]; axes=0) >> bool[4]", "E060",
               "input 'x' cannot be bool (takes N)");
    accept("sum_axis(f32[2,3]; axes=[]) >> f32[2,3]");     /* over nothing: as it is */
    accept("sum_axis(f32[2,3]; axes=$i32[]) >> f32[7,7]"); /* only the run knows */
    accept("sum_axis(f32[2,3]; axes=0, keepdims=$bool[]) >> f32[1,3]");
}

static void test_argreduce(void **state)
{
    (void)state;
    static const char *const names[] = {"argmax_axis", "argmin_axis"};
    accept_all(names, "(f32[B,D]; axis=-1) >> i64[B]");
    accept_all(names, "(u4[B,D]; axis=0, keepdims=true) >> i32[1,D]");
    accept_all(names, "(f32[0,4]; axis=1) >> i64[0]");
    refuse_all(names, "(f32[0,4]; axis=0) >> i64[4]", "E051", "axis 0 is empty in [0, 4]");
    refuse_all(names, "(f32[2]; axis=1) >> i64[]", "E051",
               "axis 1 is out of range for [2] (rank 1)");
    refuse_all(names, "(f32[2]; axis=0) >> f32[]", "E050",
               "the output is declared f32, the result is i64");
    refuse_all(names, "(f32[2]) >> i64[]", "E053", "attribute 'axis' is required");
    accept("argmax_axis(f32[0]; axis=$i64[]) >> i64[3]");
}

static void test_cast(void **state)
{
    (void)state;
    accept("cast(f32[B,D]; to=f16) >> f16[B,D]");
    accept("cast(f32[4]; to=i4, rounding_mode=\"nearest_even\", saturate=false) >> i4[4]");
    accept("cast(t1[4]; to=f32) >> f32[4]");
    accept("cast(i8[4]; to=t2) >> t2[4]");
    accept("cast(bool[4]; to=u8) >> u8[4]");
    refuse("cast(f32[4]) >> f16[4]", "E053", "attribute 'to' is required");
    refuse("cast(f32[4]; to=f16) >> f32[4]", "E050",
           "the output is declared f32, the result is f16");
    refuse("cast(f32[4]; to=f16) >> f16[5]", "E051", "declared [5], result is [4]");
    refuse("cast(f32[4]; to=3) >> f16[4]", "E053",
           "attribute 'to' wants an element type, found an integer");
    refuse("cast(bitset[4]; to=u8) >> u8[4]", "E060",
           "input 'x' cannot be bitset (takes N T bool)");
    refuse("cast(u8[4]; to=bitset) >> bitset[4]", "E060",
           "attribute 'to' does not take bitset (takes N T bool)");
}

static void test_matmul(void **state)
{
    (void)state;
    accept("matmul_integer(u8[2,3], i8[3,4], u8[]) >> i32[2,4]");
    refuse("matmul_integer(u8[2,3], i8[2,4]) >> i32[2,4]", "E051",
           "inner dimensions differ: [2, 3] x [2, 4]");
    accept("matmul(f32[B,D], f32[D,H]) >> f32[B,H]");
    accept("matmul(f32[2,3], f32[3,5]) >> f32[2,5]");
    accept("matmul(f32[3], f32[3,5]) >> f32[5]");
    accept("matmul(f32[2,3], f32[3]) >> f32[2]");
    accept("matmul(f32[3], f32[3]) >> f32[]");
    accept("matmul(f32[7,1,2,3], f32[4,3,5]) >> f32[7,4,2,5]");
    accept("matmul(f32[7,2,3], f32[3]) >> f32[7,2]");
    accept("matmul(f32[3], f32[7,3,5]) >> f32[7,5]");
    accept("matmul(f32[3,2], f32[5,3]; transpose_a=true, transpose_b=true) >> f32[2,5]");
    accept("matmul(f32[3], f32[3]; transpose_a=true, transpose_b=true) >> f32[]");
    accept("matmul(f32[3,2], f32[3,5]; transpose_a=$bool[]) >> f32[2,5]");
    accept("matmul(f32[2,0], f32[0,3]) >> f32[2,3]");
    accept("matmul(f32[B,?], f32[D,H]) >> f32[B,H]");
    accept("matmul(bool[2,3], bool[3,4]) >> bool[2,4]");
    accept("matmul(t2[2,3], t2[3,4]) >> t2[2,4]");
    refuse("matmul(f32[2,3], f32[4,5]) >> f32[2,5]", "E051",
           "inner dimensions differ: [2, 3] x [4, 5]");
    refuse("matmul(f32[B=2,D=3], f32[H=4,D=3]) >> f32[B=2,D=3]", "E051",
           "inner dimensions differ: [B, D] x [H, D] (B = 2, D = 3, H = 4)");
    refuse("matmul(f32[2,3], f32[3,5]; transpose_b=true) >> f32[2,5]", "E051",
           "inner dimensions differ after transposing: [2, 3] x [5, 3]");
    refuse("matmul(f32[2,2,3], f32[5,3,4]) >> f32[2,2,4]", "E051",
           "cannot broadcast leading dimensions: [2, 2, 3] x [5, 3, 4]");
    refuse("matmul(f32[2,3], f32[]) >> f32[2,3]", "E051",
           "input 'y' has rank 0, wants a matrix or vector");
    refuse("matmul(f32[], f32[3]) >> f32[3]", "E051",
           "input 'x' has rank 0, wants a matrix or vector");
    refuse("matmul(f32[B,D], f32[D,H]) >> f32[B]", "E051", "declared [B], result is [B, H]");
    refuse("matmul(bitset[2,3], bitset[3,4]) >> bitset[2,4]", "E060",
           "input 'x' cannot be bitset (takes N T bool)");
}

static void test_gather(void **state)
{
    (void)state;
    accept("gather(f32[V,D], i64[B,T]) >> f32[B,T,D]");
    accept("gather(f32[V,D], i32[]) >> f32[D]");
    accept("gather(f32[V,D], u8[3]; axis=1) >> f32[V,3]");
    accept("gather(t1[V,D], u64[3]; axis=-2) >> t1[3,D]");
    accept("gather(bitset[V], i32[3]) >> bitset[3]");
    accept("gather(f32[V,D], i32[3]; axis=$i32[]) >> f32[9,9]");
    refuse("gather(f32[V,D], i32[3]; axis=$i32[]) >> f32[9]", "E051",
           "declared [9], result is [?, ?]");
    refuse("gather(f32[V,D], f32[3]) >> f32[3,D]", "E060",
           "input 'idx' cannot be f32 (takes U i32 i64)");
    refuse("gather(f32[V,D], i16[3]) >> f32[3,D]", "E060",
           "input 'idx' cannot be i16 (takes U i32 i64)");
    refuse("gather(f32[], i32[3]) >> f32[3]", "E051",
           "input 'data' has rank 0, nothing to choose from");
    refuse("gather(f32[4], i32[3]; axis=1) >> f32[3]", "E051",
           "axis 1 is out of range for [4] (rank 1)");
    refuse("gather(f32[4,5], i32[3]) >> f32[4,3]", "E051", "declared [4, 3], result is [3, 5]");
    refuse("gather(f32[1,1,1,1,1,1,1,1,1,1], i32[1,1,1,1,1,1,1,1]) >> f32[1]", "E051",
           "the result would have rank 17, at most 16");
}

static void test_sdpa(void **state)
{
    (void)state;
    /* (a) split heads */
    accept("sdpa(f32[B,H,T,D], f16[B,K,S,D], f16[B,K,S,V]) >> f32[B,H,T,V]");
    accept("sdpa(f32[2,8,5,64], f32[2,2,7,64], f32[2,2,7,32], bool[5,7]; causal=true) >> "
           "f32[2,8,5,32]");
    accept("sdpa(f32[2,8,5,64], f32[2,2,7,64], f32[2,2,7,32], f32[2,1,1,7]; heads=8, kv_heads=2, "
           "kv_len=$i32[2], scale=0.125) >> f32[2,8,5,32]");
    refuse("sdpa(f32[2,8,5,64], f32[2,3,7,64], f32[2,3,7,64]) >> f32[2,8,5,64]", "E051",
           "8 query heads are no multiple of 3 key heads");
    refuse("sdpa(f32[2,8,5,64], f32[2,8,7,32], f32[2,8,7,64]) >> f32[2,8,5,64]", "E051",
           "head sizes of 'q' and 'k' differ: [2, 8, 5, 64] and [2, 8, 7, 32]");
    refuse("sdpa(f32[2,8,5,64], f32[3,8,7,64], f32[3,8,7,64]) >> f32[2,8,5,64]", "E051",
           "batch sizes of 'q' and 'k' differ: [2, 8, 5, 64] and [3, 8, 7, 64]");
    refuse("sdpa(f32[2,8,5,64], f32[2,8,7,64], f32[2,8,6,64]) >> f32[2,8,5,64]", "E051",
           "lengths of 'k' and 'v' differ: [2, 8, 7, 64] and [2, 8, 6, 64]");
    refuse("sdpa(f32[2,8,5,64], f32[2,8,7,64], f32[2,4,7,64]) >> f32[2,8,5,64]", "E051",
           "head counts of 'k' and 'v' differ: [2, 8, 7, 64] and [2, 4, 7, 64]");
    refuse("sdpa(f32[2,8,5,64], f32[2,8,7,64], f32[2,8,7,64]; heads=4) >> f32[2,8,5,64]", "E051",
           "attribute 'heads' is 4 but axis 1 of 'q' is 8");
    refuse("sdpa(f32[2,8,5,64], f32[2,8,7,64], f32[2,8,7,64], bool[5,8]) >> f32[2,8,5,64]", "E051",
           "cannot broadcast the mask [5, 8] to [B, H, Tq, Tk] = [2, 8, 5, 7]");
    refuse("sdpa(f32[2,8,5,64], f32[2,8,7,64], f32[2,8,7,64]; kv_len=$i32[3]) >> f32[2,8,5,64]",
           "E051", "attribute 'kv_len' has shape [3], wants [] or the batch [2]");
    refuse("sdpa(f32[2,8,5,64], f32[2,8,7,64], f32[2,8,7,64]; kv_len=$f32[]) >> f32[2,8,5,64]",
           "E053",
           "attribute 'kv_len' wants an integer or an integer variable, found a variable of f32");
    refuse("sdpa(f32[2,8,5,64], f32[2,8,7,64], f32[2,8,7,64]; kv_len=$i32[2,1]) >> f32[2,8,5,64]",
           "E051", "attribute 'kv_len' wants a variable of rank 0 or 1, found shape [2, 1]");
    refuse("sdpa(f32[2,8,5,64], f32[2,8,7,64], f32[2,8,7,64]; kv_len=-1) >> f32[2,8,5,64]", "E053",
           "attribute 'kv_len' must be at least 0, found -1");
    refuse("sdpa(f32[2,8,5,64], f32[2,8,7,64], f32[2,8,7,64], i32[5,7]) >> f32[2,8,5,64]", "E060",
           "input 'mask' cannot be i32 (takes F u8 bool)");
    refuse("sdpa(i8[2,8,5,64], f32[2,8,7,64], f32[2,8,7,64]) >> i8[2,8,5,64]", "E060",
           "input 'q' cannot be i8 (takes F)");
}

static void test_sdpa_packed(void **state)
{
    (void)state;
    /* (b) packed heads */
    accept("sdpa(f32[2,5,512], f32[2,7,128], f32[2,7,64]; heads=8, kv_heads=2) >> f32[2,5,256]");
    accept("sdpa(f32[2,5,512], f32[2,7,128], f32[2,7,64]; heads=8) >> f32[2,5,256]");
    accept("sdpa(f32[B,T,D], f32[B,S,D], f32[B,S,D]; heads=$i32[]) >> f32[B,T,D]");
    accept("sdpa(f32[2,5,64], f32[2,7,64], f32[2,7,16]) >> f32[2,5,16]");
    refuse("sdpa(f32[2,5,512], f32[2,7,128], f32[2,7,64]; heads=8, kv_heads=4) >> f32[2,5,256]",
           "E051", "key and query heads differ in size: [2, 5, 512] and [2, 7, 128]");
    refuse("sdpa(f32[2,5,500], f32[2,7,128], f32[2,7,64]; heads=8) >> f32[2,5,256]", "E051",
           "the last axis does not split into the heads: [2, 5, 500]");
    refuse("sdpa(f32[2,5,512], f32[2,7,128], f32[2,7,63]; heads=8) >> f32[2,5,256]", "E051",
           "the last axis does not split into the key heads: [2, 7, 63]");
    refuse("sdpa(f32[2,5,512], f32[2,7,100], f32[2,7,64]; heads=8) >> f32[2,5,256]", "E051",
           "key and query heads differ in size: [2, 5, 512] and [2, 7, 100]");
    refuse("sdpa(f32[2,5,512], f32[2,7,512], f32[2,7,512]; heads=0) >> f32[2,5,512]", "E053",
           "attribute 'heads' must be at least 1, found 0");
    refuse("sdpa(f32[2,5,512], f32[2,7,512], f32[2,7,512]; heads=8) >> f32[2,5,511]", "E051",
           "declared [2, 5, 511], result is [2, 5, 512]");
    /* (c) decode */
    accept("sdpa(f32[B,512], f16[T,B,128], f16[T,B,128]; heads=8, kv_heads=2, kv_len=$u32[]) >> "
           "f32[B,512]");
    accept("sdpa(f32[3,64], f32[7,3,64], f32[7,3,64], u8[1,7]) >> f32[3,64]");
    accept("sdpa(f32[3,0], f32[7,3,0], f32[7,3,0]; heads=4) >> f32[3,0]");
    refuse("sdpa(f32[3,64], f32[7,2,64], f32[7,2,64]) >> f32[3,64]", "E051",
           "batch sizes of 'q' and 'k' differ: [3, 64] and [7, 2, 64]");
    refuse("sdpa(f32[3,64], f32[3,64], f32[3,64]) >> f32[3,64]", "E051",
           "with q of rank 2 input 'k' wants rank 3: [3, 64] and [3, 64]");
    refuse("sdpa(f32[3,64], f32[7,3,64], f32[7,3,64], u8[2,7]) >> f32[3,64]", "E051",
           "cannot broadcast the mask [2, 7] to [B, H, Tq, Tk] = [3, 1, 1, 7]");
    refuse("sdpa(f32[3], f32[7,3,64], f32[7,3,64]) >> f32[3]", "E051",
           "q wants rank 4 (split heads), 3 (packed) or 2 (decode), found [3]");
    refuse("sdpa(f32[1,1,0], f32[1,1,0], f32[1,1,4611686018427387904]; heads=4, kv_heads=1) >> "
           "f32[1,1,0]",
           "E051", "heads times the size of a value head is too large");
}

static void test_attn(void **state)
{
    (void)state;
    accept("attn(f32[B,D], f16[H,Dh], f16[H,Dh], f32[D,D]) >> f32[B,D]");
    accept("attn(f16[2,64], f32[9,4,16], bf16[9,4,16], f16[64,64]; scale=0.25) >> f16[2,64]");
    refuse("attn(f32[2,64], f32[9,4,15], f32[9,4,15], f32[64,64]) >> f32[2,64]", "E051",
           "the heads of k do not make up D: h [2, 64], k [9, 4, 15]");
    refuse("attn(f32[2,64], f32[9,4,16], f32[8,4,16], f32[64,64]) >> f32[2,64]", "E051",
           "k and v differ in shape: [9, 4, 16] and [8, 4, 16]");
    refuse("attn(f32[2,64], f32[4,16], f32[4,16], f32[64,32]) >> f32[2,64]", "E051",
           "W wants shape [D, D] for h [2, 64], found [64, 32]");
    refuse("attn(f32[64], f32[4,16], f32[4,16], f32[64,64]) >> f32[64]", "E051",
           "h wants shape [B, D], found [64]");
    refuse("attn(f32[2,64], f32[64], f32[64], f32[64,64]) >> f32[2,64]", "E051",
           "k wants shape [H, Dh] or [T, H, Dh], found [64]");
    refuse("attn(f32[2,64], f32[4,16], f32[4,16], f16[64,64]) >> f32[2,64]", "E050",
           "input 'W' is f16 but 'h' is f32");
    refuse("attn(f32[2,64], i8[4,16], f32[4,16], f32[64,64]) >> f32[2,64]", "E060",
           "input 'k' cannot be i8 (takes F)");
    refuse("attn(f32[2,64], f32[4,16], f32[4,16], f32[64,64]) >> f16[2,64]", "E050",
           "the output is declared f16, the result is f32");
}

/* Runs last: every op with a rule of shapes.c was accepted once and refused once above. Rules in
 * files of their own come after those in the registry, and have tests of their own. */
static void test_every_op_was_tried(void **state)
{
    (void)state;
    for (size_t i = 0; i < oi_op_count(); i++) {
        if (oi_op_at(i)->shape_rule > OI_SHAPE_ATTN)
            continue;
        if (!seen_accepted[i])
            fail_msg("no accepting case for '%s'", oi_op_at(i)->name);
        if (!seen_refused[i])
            fail_msg("no refusing case for '%s'", oi_op_at(i)->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_division),
        cmocka_unit_test(test_unary),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_predicates),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_mixed_maps),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_argreduce),
        cmocka_unit_test(test_cast),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_sdpa),
        cmocka_unit_test(test_sdpa_packed),
        cmocka_unit_test(test_attn),
        cmocka_unit_test(test_every_op_was_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
