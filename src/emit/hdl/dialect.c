/* dialect.c: VHDL expressions, over the functions of support/oi_pkg.vhd.
 *
 * An integer is a signed or unsigned vector of its own width, so numeric_std's sums wrap as they
 * should; a truth is a boolean; a position is an integer. Values are variables of a process. */
#include "emit/hdl/hdl.h"

#include <inttypes.h>

enum { INTEGERS = OI_M_WHOLE | OI_M_SMALL | OI_M_PACKED };

static const oi_m_row rows[] = {
    {OI_H_ADD, INTEGERS, "$0 + $1"},
    {OI_H_SUB, INTEGERS, "$0 - $1"},
    {OI_H_MUL, INTEGERS, "oi_mul($*)"},
    {OI_H_NEG, INTEGERS, "oi_neg($*)"},
    {OI_H_BIT_AND, ~0u, "$0 and $1"},
    {OI_H_BIT_OR, ~0u, "$0 or $1"},
    {OI_H_BIT_XOR, ~0u, "$0 xor $1"},
    {OI_H_BIT_NOT, ~0u, "not $0"},
    {OI_H_AND, ~0u, "$0 and $1"},
    {OI_H_OR, ~0u, "$0 or $1"},
    {OI_H_NOT, ~0u, "not $0"},
    {OI_H_EQ, ~0u, "$0 = $1"},
    {OI_H_NE, ~0u, "$0 /= $1"},
    {OI_H_LT, ~0u, "$0 < $1"},
    {OI_H_LE, ~0u, "$0 <= $1"},
    {OI_H_GT, ~0u, "$0 > $1"},
    {OI_H_GE, ~0u, "$0 >= $1"},
    {OI_H_I64, ~0u, "oi_to_i64($*)"},
    {OI_H_LOWEST, ~0u, "oi_lowest_$t"},
    {OI_H_HIGHEST, ~0u, "oi_highest_$t"},
    {OI_H_COUNT, 0, NULL},
};

static const oi_m_row no_rows[] = {{OI_H_COUNT, 0, NULL}};

static bool is_signed(oi_dtype t)
{
    return t != OI_BOOL && t != OI_BITSET && oi_dtype_get(t)->min < 0;
}

/* Bits of a value; a ternary one has two, however it is stored. */
static uint32_t value_bits(oi_dtype t)
{
    return t == OI_T1 || t == OI_T2 ? 2 : oi_dtype_bits(t);
}

uint32_t oi_hdl_bits(oi_dtype t)
{
    return oi_dtype_bits(t);
}

uint32_t oi_hdl_log2(uint64_t n)
{
    uint32_t bits = 1;
    while (bits < 63 && ((uint64_t)1 << bits) < n)
        bits++;
    return bits;
}

const char *oi_hdl_word(oi_arena *a, uint32_t bits, uint64_t value)
{
    char text[68];
    if (bits % 4 == 0) {
        snprintf(text, sizeof text, "x\"%0*" PRIx64 "\"", (int)(bits / 4),
                 bits < 64 ? value & (((uint64_t)1 << bits) - 1) : value);
        return oi_arena_text(a, text, strlen(text));
    }
    text[0] = text[bits + 1] = '"';
    text[bits + 2] = '\0';
    for (uint32_t i = 0; i < bits; i++)
        text[bits - i] = value >> i & 1 ? '1' : '0';
    return oi_arena_text(a, text, strlen(text));
}

static const char *whole(oi_arena *a, oi_dtype t, uint64_t bits)
{
    const int64_t v = t == OI_U64 ? (int64_t)bits : oi_element_i64(t, &bits, 0);
    const char *kind = is_signed(t) ? "signed" : "unsigned";
    if ((t == OI_U64 && bits > INT32_MAX) || v > INT32_MAX || v <= INT32_MIN)
        return oi_arena_printf(a, "%s'(%s)", kind, oi_hdl_word(a, value_bits(t), bits));
    return oi_arena_printf(a, "to_%s(%" PRId64 ", %u)", kind, v, value_bits(t));
}

static const char *literal(oi_arena *a, oi_dtype t, uint64_t bits)
{
    if (t == OI_BOOL)
        return bits ? "true" : "false";
    if (oi_dtype_is_float(t))
        return oi_arena_printf(a, "oi_word%u'(%s)", oi_dtype_bits(t),
                               oi_hdl_word(a, oi_dtype_bits(t), bits));
    return whole(a, t, bits);
}

/* A number of an expression: a whole one that a double holds. */
static void number(char out[40], oi_dtype t, double v)
{
    if (t == OI_BOOL)
        snprintf(out, 40, "%s", v != 0 ? "true" : "false");
    else if (v > INT32_MAX || v <= INT32_MIN)
        snprintf(out, 40, "%s'(x\"%016" PRIx64 "\")", is_signed(t) ? "signed" : "unsigned",
                 v < 0 ? 0 - (uint64_t)-v : (uint64_t)v);
    else
        snprintf(out, 40, "to_%s(%.0f, %u)", is_signed(t) ? "signed" : "unsigned", v,
                 value_bits(t));
}

const oi_dialect oi_dialect_vhdl = {
    .name = "VHDL",
    .rows = rows,
    .more = no_rows,
    .types = {[OI_I8] = "oi_i8",
              [OI_I16] = "oi_i16",
              [OI_I32] = "oi_i32",
              [OI_I64] = "oi_i64",
              [OI_U8] = "oi_u8",
              [OI_U16] = "oi_u16",
              [OI_U32] = "oi_u32",
              [OI_U64] = "oi_u64",
              [OI_BITSET] = "oi_bitset",
              [OI_I1] = "oi_i1",
              [OI_I2] = "oi_i2",
              [OI_I4] = "oi_i4",
              [OI_T1] = "oi_t1",
              [OI_T2] = "oi_t2",
              [OI_U1] = "oi_u1",
              [OI_U2] = "oi_u2",
              [OI_U4] = "oi_u4",
              [OI_BOOL] = "boolean",
              /* floats are only moved: as their bits */
              [OI_F8] = "oi_word8",
              [OI_F16] = "oi_word16",
              [OI_BF16] = "oi_word16",
              [OI_F32] = "oi_word32",
              [OI_F64] = "oi_word64"},
    .call = "oi_$h($*)",
    .convert = "oi_$h_$t($*)",
    .of_truth = "oi_truth",
    .number = number,
};

static void define(oi_printing *x, oi_dtype form, const char *name, const char *text)
{
    oi_out_line(x->p->declared, "variable %s : %s;", name, oi_dialect_vhdl.types[form]);
    oi_out_line(x->p->out, "%s := %s;", name, text);
}

static const char *cast(oi_arena *a, oi_dtype from, oi_dtype to, const char *text)
{
    if (from == to)
        return text;
    if (from == OI_BOOL)
        text = oi_arena_printf(a, "oi_truth(%s)", text);
    return oi_arena_printf(a, "oi_wrap_%s(%s)", oi_dtype_name(to), text);
}

static const char *wide(oi_arena *a, const char *position)
{
    return oi_arena_printf(a, "to_signed(%s, 64)", position);
}

/* Loads and stores are ports, which nest.c prints. */
const oi_lang oi_lang_vhdl = {.dialect = &oi_dialect_vhdl,
                              .index = "integer",
                              .exact = "",
                              .literal = literal,
                              .define = define,
                              .cast = cast,
                              .wide = wide,
                              .both = "and"};

const char *oi_hdl_load(oi_arena *a, oi_dtype t, bool is_raw, const char *data)
{
    if (oi_dtype_is_float(t))
        return data;
    if (t == OI_BOOL && !is_raw)
        return oi_arena_printf(a, "oi_is_true(%s)", data);
    if (t == OI_T1 || t == OI_T2)
        return oi_arena_printf(a, "oi_value_%s(%s)", oi_dtype_name(t), data);
    return oi_arena_printf(a, "%s(%s)", is_signed(t) ? "signed" : "unsigned", data);
}

const char *oi_hdl_store(oi_arena *a, oi_dtype t, bool is_raw, const char *value)
{
    if (oi_dtype_is_float(t))
        return value;
    if (t == OI_BOOL && !is_raw)
        return oi_arena_printf(a, "oi_bits(%s)", value);
    if (t == OI_T1)
        return oi_arena_printf(a, "oi_bits_t1(%s)", value);
    return oi_arena_printf(a, "std_logic_vector(%s)", value);
}
