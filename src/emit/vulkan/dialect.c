/* dialect.c: GLSL expressions.
 *
 * Nothing narrower than 32 bits is computed with. Integers of 8 and 16 bits and packed ones are
 * ints and uints that are truncated after every step that may leave their range. So a shader needs
 * fp64 only if a tensor has that type. Bools are bool. There are two dialects: on devices without
 * 64-bit integers these are two words, computed by the functions of words.glsl. */
#include "emit/vulkan/glsl.h"

#include <math.h>

static void number(char out[40], oi_dtype t, double v)
{
    if (t == OI_F32 || t == OI_F64) {
        const char *suffix = t == OI_F64 ? "lf" : "";
        if (isinf(v))
            snprintf(out, 40, "%suintBitsToFloat(0x7f800000u)", v < 0 ? "-" : "");
        else if (v == floor(v) && fabs(v) < 1e9)
            snprintf(out, 40, "%.1f%s", v, suffix);
        else
            snprintf(out, 40, t == OI_F32 ? "%.9g%s" : "%.17g%s", v, suffix);
    } else if (t == OI_BOOL) {
        snprintf(out, 40, "%s", v != 0 ? "true" : "false");
    } else {
        bool is_unsigned = oi_dtype_get(t)->min >= 0;
        snprintf(out, 40, "%.0f%s", v, is_unsigned ? (t == OI_U64 ? "ul" : "u") : "");
    }
}

static void words_number(char out[40], oi_dtype t, double v)
{
    if (t != OI_I64 && t != OI_U64) {
        number(out, t, v);
        return;
    }
    const uint64_t u = v < 0 ? 0 - (uint64_t)-v : (uint64_t)v;
    snprintf(out, 40, "uvec2(0x%xu, 0x%xu)", (unsigned)u, (unsigned)(u >> 32));
}

enum { FULL = OI_M_FLOATS | OI_M_WHOLE, CUT = OI_M_SMALL | OI_M_PACKED };

static const oi_m_row rows[] = {
    {OI_H_ADD, FULL, "$0 + $1"},
    {OI_H_ADD, CUT, "oi_cut_$t(uint($0 + $1))"},
    {OI_H_SUB, FULL, "$0 - $1"},
    {OI_H_SUB, CUT, "oi_cut_$t(uint($0 - $1))"},
    {OI_H_MUL, FULL, "$0 * $1"},
    {OI_H_MUL, CUT, "oi_cut_$t(uint($0 * $1))"},
    {OI_H_NEG, FULL, "-$0"},
    {OI_H_NEG, CUT, "oi_cut_$t(uint(-$0))"},
    {OI_H_BIT_AND, ~0u, "$0 & $1"},
    {OI_H_BIT_OR, ~0u, "$0 | $1"},
    {OI_H_BIT_XOR, ~0u, "$0 ^ $1"},
    {OI_H_BIT_NOT, OI_M_WHOLE, "~$0"},
    {OI_H_BIT_NOT, CUT, "oi_cut_$t(uint(~$0))"},
    {OI_H_I64, ~0u, "oi_wide_of_$T($0)"},
    {OI_H_NEAR, OI_M_FLOATS, "$T($0)"},
    {OI_H_COUNT, 0, NULL},
};

/* Before those rows: two words. */
static const oi_m_row words_rows[] = {
    {OI_H_ADD, OI_M_WIDE, "oi_words_add($0, $1)"},
    {OI_H_SUB, OI_M_WIDE, "oi_words_sub($0, $1)"},
    {OI_H_MUL, OI_M_WIDE, "oi_words_mul($0, $1)"},
    {OI_H_NEG, OI_M_WIDE, "oi_words_sub(uvec2(0u, 0u), $0)"},
    {OI_H_LT, OI_M_WIDE, "oi_words_less_$t($0, $1)"},
    {OI_H_GT, OI_M_WIDE, "oi_words_less_$t($1, $0)"},
    {OI_H_LE, OI_M_WIDE, "!oi_words_less_$t($1, $0)"},
    {OI_H_GE, OI_M_WIDE, "!oi_words_less_$t($0, $1)"},
    {OI_H_I64, ~0u, "oi_words_of_$T($0)"},
    {OI_H_NEAR, OI_M_FLOATS, "oi_near_$t_$f($*)"},
    {OI_H_ADD, FULL, "$0 + $1"},
    {OI_H_ADD, CUT, "oi_cut_$t(uint($0 + $1))"},
    {OI_H_SUB, FULL, "$0 - $1"},
    {OI_H_SUB, CUT, "oi_cut_$t(uint($0 - $1))"},
    {OI_H_MUL, FULL, "$0 * $1"},
    {OI_H_MUL, CUT, "oi_cut_$t(uint($0 * $1))"},
    {OI_H_NEG, FULL, "-$0"},
    {OI_H_NEG, CUT, "oi_cut_$t(uint(-$0))"},
    {OI_H_BIT_AND, ~0u, "$0 & $1"},
    {OI_H_BIT_OR, ~0u, "$0 | $1"},
    {OI_H_BIT_XOR, ~0u, "$0 ^ $1"},
    {OI_H_BIT_NOT, OI_M_WHOLE, "~$0"},
    {OI_H_BIT_NOT, CUT, "oi_cut_$t(uint(~$0))"},
    {OI_H_COUNT, 0, NULL},
};

const oi_dialect oi_dialect_glsl = {
    .name = "GLSL",
    .rows = rows,
    .more = oi_m_rows_like_c,
    .types = {[OI_F32] = "float", [OI_F64] = "double",   [OI_I8] = "int",    [OI_I16] = "int",
              [OI_I32] = "int",   [OI_I64] = "int64_t",  [OI_U8] = "uint",   [OI_U16] = "uint",
              [OI_U32] = "uint",  [OI_U64] = "uint64_t", [OI_BOOL] = "bool", [OI_BITSET] = "uint",
              [OI_F8] = "uint",   [OI_BF16] = "uint",    [OI_F16] = "uint",  [OI_I1] = "int",
              [OI_I2] = "int",    [OI_I4] = "int",       [OI_T1] = "int",    [OI_T2] = "int",
              [OI_U1] = "uint",   [OI_U2] = "uint",      [OI_U4] = "uint"},
    .call = "oi_$h_$t($*)",
    .convert = "oi_$h_$t_$f($*)",
    .of_truth = "uint",
    .of_narrow = "oi_wide_of_",
    .has_narrow = true,
    .number = number,
};

const oi_dialect oi_dialect_glsl_words = {
    .name = "GLSL without int64",
    .rows = words_rows,
    .more = oi_m_rows_like_c,
    .types = {[OI_F32] = "float", [OI_F64] = "double", [OI_I8] = "int",    [OI_I16] = "int",
              [OI_I32] = "int",   [OI_I64] = "uvec2",  [OI_U8] = "uint",   [OI_U16] = "uint",
              [OI_U32] = "uint",  [OI_U64] = "uvec2",  [OI_BOOL] = "bool", [OI_BITSET] = "uint",
              [OI_F8] = "uint",   [OI_BF16] = "uint",  [OI_F16] = "uint",  [OI_I1] = "int",
              [OI_I2] = "int",    [OI_I4] = "int",     [OI_T1] = "int",    [OI_T2] = "int",
              [OI_U1] = "uint",   [OI_U2] = "uint",    [OI_U4] = "uint"},
    .call = "oi_$h_$t($*)",
    .convert = "oi_$h_$t_$f($*)",
    .of_truth = "uint",
    .of_narrow = "oi_words_of_",
    .has_narrow = true,
    .number = words_number,
};
