/* lang.c: how C spells elements. Packed types and narrow floats go through the helpers. */
#include "emit/emit.h"

static bool is_packed(oi_dtype t)
{
    return oi_dtype_bits(t) < 8;
}

static void load(oi_buf *out, oi_dtype t, bool is_raw, const char *name, const char *at)
{
    if (is_packed(t))
        oi_buf_printf(out, "oi_get_%s(%s, %s)", oi_dtype_name(t), name, at);
    else if (!is_raw && oi_form_of(t) != t)
        oi_buf_printf(out, "oi_f32_of_%s(%s[%s])", oi_dtype_name(t), name, at);
    else if (!is_raw && t == OI_BOOL) /* a truth may be any byte but 0 */
        oi_buf_printf(out, "(%s[%s] != 0)", name, at);
    else
        oi_buf_printf(out, "%s[%s]", name, at);
}

static void store(oi_buf *out, oi_dtype t, bool is_raw, const char *name, const char *at,
                  const char *value)
{
    if (is_packed(t))
        oi_buf_printf(out, "oi_put_%s(%s, %s, %s)", oi_dtype_name(t), name, at, value);
    else if (!is_raw && oi_form_of(t) != t)
        oi_buf_printf(out, "%s[%s] = oi_near_%s_f32(%s)", name, at, oi_dtype_name(t), value);
    else
        oi_buf_printf(out, "%s[%s] = %s", name, at, value);
}

const oi_lang oi_lang_c = {
    .dialect = &oi_dialect_c, .index = "int64_t", .load = load, .store = store};
const oi_lang oi_lang_c32 = {
    .dialect = &oi_dialect_c, .index = "int32_t", .load = load, .store = store};
