/* lang.c: C for elements, numbers and failures. Packed types and narrow floats use helpers. */
#include "emit/emit.h"

#include <inttypes.h>
#include <math.h>

static bool is_packed(oi_dtype t)
{
    return oi_dtype_bits(t) < 8;
}

static void load(const oi_nest_printer *p, const oi_sop *op, const char *at, oi_buf *out)
{
    const char *name = p->ports[op->port];
    oi_dtype t = op->type;
    if (is_packed(t))
        oi_buf_printf(out, "oi_get_%s(%s, %s)", oi_dtype_name(t), name, at);
    else if (!op->is_raw && oi_form_of(t) != t)
        oi_buf_printf(out, "oi_f32_of_%s(%s[%s])", oi_dtype_name(t), name, at);
    else if (!op->is_raw && t == OI_BOOL) /* a bool may be any nonzero byte */
        oi_buf_printf(out, "(%s[%s] != 0)", name, at);
    else
        oi_buf_printf(out, "%s[%s]", name, at);
}

static void load_part(const oi_nest_printer *p, const oi_sop *op, const char *at, unsigned worker,
                      oi_buf *out)
{
    oi_buf_printf(out, "oi_get_%s(%s + %s, %u)", oi_dtype_name(op->type), p->ports[op->port], at,
                  worker);
}

static void store(const oi_nest_printer *p, const oi_sop *op, const char *at, const char *value,
                  oi_buf *out)
{
    const char *name = p->ports[op->port];
    oi_dtype t = op->type;
    if (is_packed(t))
        oi_buf_printf(out, "oi_put_%s(%s, %s, %s)", oi_dtype_name(t), name, at, value);
    else if (!op->is_raw && oi_form_of(t) != t)
        oi_buf_printf(out, "%s[%s] = oi_near_%s_f32(%s)", name, at, oi_dtype_name(t), value);
    else
        oi_buf_printf(out, "%s[%s] = %s", name, at, value);
}

static void fail(oi_out *o, int code, const char *why)
{
    oi_out_line(o, "return %d; /* %s */", code, why);
}

static const char *float_text(oi_arena *a, oi_dtype t, uint64_t bits)
{
    bool is_single = oi_form_of(t) == OI_F32;
    double v = oi_float_decode(t, bits);
    char digits[OI_NUMBER_TEXT];
    if (v != v)
        return is_single ? "NAN" : "(double)NAN";
    if (v == INFINITY || v == -INFINITY)
        return v < 0 ? "-INFINITY" : "INFINITY";
    if (is_single)
        oi_print_f32(digits, (float)v);
    else
        oi_print_f64(digits, v);
    return oi_arena_printf(a, "%s%s%s", digits, strpbrk(digits, ".e") ? "" : ".0",
                           is_single ? "f" : "");
}

const char *oi_c_literal(oi_arena *a, oi_dtype t, uint64_t bits)
{
    if (oi_dtype_is_float(t))
        return float_text(a, t, bits);
    if (t == OI_U64)
        return oi_arena_printf(a, "%" PRIu64 "u", bits);
    int64_t v = oi_element_i64(t, &bits, 0);
    return v == INT64_MIN ? "INT64_MIN" : oi_arena_printf(a, "%" PRId64, v);
}

#define SPELLING                                                                             \
    .dialect = &oi_dialect_c, .helpers = oi_helpers, .in_vectors = "OI_LANES ", .exact = "", \
    .load = load, .load_part = load_part, .store = store, .fail = fail, .literal = oi_c_literal

const oi_lang oi_lang_c = {SPELLING, .index = "int64_t", .whole_index = "uint64_t"};
const oi_lang oi_lang_c32 = {SPELLING, .index = "int32_t", .whole_index = "uint32_t",
                             .as_index = "(int32_t)"};
