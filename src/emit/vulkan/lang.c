/* lang.c: GLSL for elements of buffers, numbers and failures.
 *
 * A buffer holds 8-bit and 16-bit elements directly if the device supports it. Otherwise, and
 * always for packed types, elements share 32-bit words, least significant first as on every device
 * that runs Vulkan. Invocations that write neighbours then change one word: each clears and sets
 * its own bits atomically, so no write is lost. */
#include "emit/vulkan/glsl.h"

#include "emit/vulkan/words.h"

#include <inttypes.h>
#include <math.h>

static bool is_signed(oi_dtype t)
{
    return !oi_dtype_is_float(t) && t != OI_BOOL && t != OI_BITSET && oi_dtype_get(t)->min < 0;
}

bool oi_glsl_is_words(const oi_device *d, oi_dtype t)
{
    unsigned bits = oi_dtype_bits(t);
    return bits < 8 || (bits == 8 && !oi_device_has(d, OI_FEATURE_STORAGE8)) ||
           (bits == 16 && !oi_device_has(d, OI_FEATURE_STORAGE16));
}

const char *oi_glsl_held(const oi_device *d, oi_dtype t)
{
    return t == OI_BOOL ? "uint" : oi_glsl_lang(d)->dialect->types[t];
}

const char *oi_glsl_stored(const oi_device *d, oi_dtype t)
{
    unsigned bits = oi_dtype_bits(t);
    if (oi_glsl_is_words(d, t))
        return "uint";
    if (bits >= 32)
        return oi_glsl_held(d, t);
    return bits == 8      ? (is_signed(t) ? "int8_t" : "uint8_t")
           : is_signed(t) ? "int16_t"
                          : "uint16_t";
}

static const oi_tensor *tensor_of(const oi_nest_printer *p, const oi_sop *op)
{
    return &p->plan->tensors.at[p->kernel->ports.at[op->port].tensor];
}

static bool is_words(const oi_nest_printer *p, const oi_sop *op)
{
    const unsigned bits = oi_dtype_bits(op->type);
    return oi_glsl_is_words(p->plan->device, op->type) ||
           (bits < 32 && oi_glsl_is_value(p->plan, p->kernel, op->port));
}

/* Counted from the first element of the binding. */
static const char *from_base(const oi_nest_printer *p, const oi_sop *op, const char *at)
{
    if (!oi_glsl_has_base(p->plan, p->kernel, op->port))
        return at;
    return strcmp(at, "0") == 0 ? oi_arena_printf(p->arena, "base_%u", op->port)
                                : oi_arena_printf(p->arena, "base_%u + %s", op->port, at);
}

/* Elements that share words: the word, and the first bit in it. */
static void word_place(oi_buf *out, const char *name, const char *at, unsigned bits)
{
    unsigned per = 32 / bits, shift = 0;
    while (1u << shift < per)
        shift++;
    oi_buf_printf(out, "%s[(%s) >> %u]", name, at, shift);
}

static void bit_place(oi_buf *out, const char *at, unsigned bits)
{
    oi_buf_printf(out, "((%s) & %u) * %u", at, 32 / bits - 1, bits);
}

/* The stored bits as an int or uint; all bits of a wider element. */
static void put_element(const oi_nest_printer *p, const oi_sop *op, const char *at, oi_buf *out)
{
    const char *name = p->ports[op->port];
    oi_dtype t = op->type;
    unsigned bits = oi_dtype_bits(t);
    bool is_local = tensor_of(p, op)->space == OI_SPACE_LOCAL;
    bool is_ternary = t == OI_T1 || t == OI_T2;
    at = from_base(p, op, at);
    if (is_local || bits >= 32) {
        oi_buf_printf(out, "%s[%s]", name, at);
    } else if (!is_words(p, op)) {
        oi_buf_printf(out, "%s(%s[%s])", is_signed(t) ? "int" : "uint", name, at);
    } else {
        if (is_ternary)
            oi_buf_printf(out, "oi_value_%s(", oi_dtype_name(t));
        oi_buf_puts(out, is_signed(t) && !is_ternary ? "bitfieldExtract(int(" : "bitfieldExtract(");
        word_place(out, name, at, bits);
        oi_buf_puts(out, is_signed(t) && !is_ternary ? "), " : ", ");
        bit_place(out, at, bits);
        oi_buf_printf(out, is_ternary ? ", %u))" : ", %u)", bits);
    }
}

static void load(const oi_nest_printer *p, const oi_sop *op, const char *at, oi_buf *out)
{
    oi_dtype t = op->type;
    bool widens = !op->is_raw && oi_form_of(t) != t, is_truth = !op->is_raw && t == OI_BOOL;
    if (widens)
        oi_buf_printf(out, "oi_f32_of_%s(", oi_dtype_name(t));
    oi_buf_puts(out, is_truth ? "(" : "");
    put_element(p, op, at, out);
    oi_buf_puts(out, widens ? ")" : is_truth ? " != 0u)" : "");
}

/* The value in the form that put_element gives. */
static const char *stored_text(const oi_nest_printer *p, const oi_sop *op, const char *value)
{
    oi_dtype t = op->type;
    if (!op->is_raw && oi_form_of(t) != t)
        return oi_arena_printf(p->arena, "oi_near_%s_f32(%s)", oi_dtype_name(t), value);
    if (!op->is_raw && t == OI_BOOL)
        return oi_arena_printf(p->arena, "uint(%s)", value);
    return value;
}

static void store(const oi_nest_printer *p, const oi_sop *op, const char *at, const char *value,
                  oi_buf *out)
{
    const char *name = p->ports[op->port], *v = stored_text(p, op, value);
    oi_dtype t = op->type;
    unsigned bits = oi_dtype_bits(t);
    bool is_local = tensor_of(p, op)->space == OI_SPACE_LOCAL;
    at = from_base(p, op, at);
    if (is_local || bits >= 32) {
        oi_buf_printf(out, "%s[%s] = %s", name, at, v);
    } else if (!oi_glsl_is_words(p->plan->device, t)) {
        oi_buf_printf(out, "%s[%s] = %s(%s)", name, at, oi_glsl_stored(p->plan->device, t), v);
    } else {
        uint32_t mask = (1u << bits) - 1;
        oi_buf_puts(out, "atomicAnd(");
        word_place(out, name, at, bits);
        oi_buf_printf(out, ", ~(%uu << (", mask);
        bit_place(out, at, bits);
        oi_buf_puts(out, "))), atomicOr(");
        word_place(out, name, at, bits);
        oi_buf_printf(out, ", (%s(%s) & %uu) << (", t == OI_T1 ? "oi_bits_t1" : "uint", v, mask);
        bit_place(out, at, bits);
        oi_buf_puts(out, "))");
    }
}

static void fail(oi_out *o, int code, const char *why)
{
    oi_out_line(o, "atomicMax(failure, (0xffffffu - order) << 8 | %du); /* %s */", code, why);
    oi_out_line(o, "return;");
}

static const char *float_text(oi_arena *a, oi_dtype t, uint64_t bits)
{
    bool is_single = oi_form_of(t) == OI_F32;
    double v = oi_float_decode(t, bits);
    char digits[OI_NUMBER_TEXT];
    if (v != v || v == INFINITY || v == -INFINITY) {
        const char *special = v != v ? "7fc00000" : v > 0 ? "7f800000" : "ff800000";
        return oi_arena_printf(
            a, is_single ? "uintBitsToFloat(0x%su)" : "double(uintBitsToFloat(0x%su))", special);
    }
    if (is_single)
        oi_print_f32(digits, (float)v);
    else
        oi_print_f64(digits, v);
    return oi_arena_printf(a, "%s%s%s", digits, strpbrk(digits, ".e") ? "" : ".0",
                           is_single ? "" : "lf");
}

static const char *literal(oi_arena *a, oi_dtype t, uint64_t bits)
{
    if (oi_dtype_is_float(t))
        return float_text(a, t, bits);
    if (t == OI_U64)
        return oi_arena_printf(a, "%" PRIu64 "ul", bits);
    int64_t v = oi_element_i64(t, &bits, 0);
    if (t == OI_BOOL)
        return v ? "true" : "false";
    if (v == INT64_MIN)
        return "int64_t(0x8000000000000000ul)";
    if (v == INT32_MIN)
        return "int(0x80000000u)";
    return oi_arena_printf(a, "%" PRId64 "%s", v,
                           v > INT32_MAX || v < INT32_MIN ? (is_signed(t) ? "l" : "u")
                           : is_signed(t)                 ? ""
                                                          : "u");
}

static const char *words_literal(oi_arena *a, oi_dtype t, uint64_t bits)
{
    if (t != OI_I64 && t != OI_U64)
        return literal(a, t, bits);
    return oi_arena_printf(a, "uvec2(0x%xu, 0x%xu)", (unsigned)bits, (unsigned)(bits >> 32));
}

const oi_lang *oi_glsl_lang(const oi_device *d)
{
    static const oi_lane_words lane_words = {.number = "uint",
                                             .barrier = "barrier();",
                                             .shuffle = "subgroupShuffleXor(",
                                             .subgroup = "gl_SubgroupSize"};
    static const oi_lang wide = {.dialect = &oi_dialect_glsl,
                                 .helpers = oi_glsl_helpers,
                                 .index = "int",
                                 .as_index = "int",
                                 .exact = "precise ",
                                 .load = load,
                                 .store = store,
                                 .fail = fail,
                                 .lane_words = &lane_words,
                                 .literal = literal};
    static const oi_lang words = {.dialect = &oi_dialect_glsl_words,
                                  .helpers = oi_glsl_words_helpers,
                                  .index = "int",
                                  .as_index = "int", /* of the low word */
                                  .exact = "precise ",
                                  .load = load,
                                  .store = store,
                                  .fail = fail,
                                  .lane_words = &lane_words,
                                  .literal = words_literal};
    return oi_device_has(d, OI_FEATURE_INT64) ? &wide : &words;
}

const char *oi_glsl_free_name(oi_arena *a, const char *name, size_t number)
{
    static const char *const kinds[] = {"gl_",      "sampler",  "isampler", "usampler",
                                        "image",    "iimage",   "uimage",   "texture",
                                        "itexture", "utexture", "subpass",  "oi_"};
    static const char *const own[] = {"at",   "failure", "id",    "inside",
                                      "lane", "order",   "other", "span"};
    size_t n = strlen(name);
    bool is_taken = strncmp(name, "sums_", 5) == 0 || strncmp(name, "base_", 5) == 0 ||
                    strstr(name, "__") || (n > 2 && strcmp(name + n - 2, "_t") == 0);
    for (size_t i = 0; i < OI_COUNT(kinds); i++)
        is_taken |= strncmp(name, kinds[i], strlen(kinds[i])) == 0;
    if (is_taken)
        return oi_arena_printf(a, "tensor_%zu", number);
    for (size_t i = 0; i < OI_COUNT(oi_glsl_words); i++)
        if (strcmp(oi_glsl_words[i], name) == 0)
            return oi_arena_printf(a, "%s_%zu", name, number);
    for (size_t i = 0; i < OI_COUNT(own); i++)
        if (strcmp(own[i], name) == 0)
            return oi_arena_printf(a, "%s_%zu", name, number);
    return name;
}
