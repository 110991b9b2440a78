/* dialect.c: printing meanings, and how C spells them.
 *
 * A dialect is a table: type names, a few rows for helpers that are operators there, and the form
 * of a call for all the others. In C those calls are the inline functions of scalar.h. */
#include "kernel/meaning.h"

#include <math.h>

/* -- printing in any dialect -- */

typedef struct printer {
    const oi_meaning *m;
    const oi_m_name *names;
    size_t n_names;
    const oi_dialect *d;
    oi_m_text *out;
} printer;

static void put_n(oi_m_text *t, const char *text, size_t n)
{
    if (t->is_full || t->n + n >= t->cap) {
        t->is_full = true;
        return;
    }
    memcpy(t->at + t->n, text, n);
    t->n += n;
    t->at[t->n] = '\0';
}

static void put(oi_m_text *t, const char *text)
{
    put_n(t, text, strlen(text));
}

static unsigned class_of(oi_dtype t)
{
    switch (t) {
    case OI_F32:
    case OI_F64: return OI_M_FLOATS;
    case OI_F8:
    case OI_BF16:
    case OI_F16: return OI_M_NARROW;
    case OI_BOOL: return OI_M_BOOLS;
    case OI_BITSET: return OI_M_SMALL;
    default: break;
    }
    unsigned bits = oi_dtype_bits(t);
    return bits < 8     ? OI_M_PACKED
           : bits < 32  ? OI_M_SMALL
           : bits == 64 ? OI_M_WHOLE | OI_M_WIDE
                        : OI_M_WHOLE;
}

/* The type that decides about the spelling: comparisons and tests are told by their arguments. */
static oi_dtype deciding(const printer *p, const oi_m_node *n)
{
    const oi_m_rule rule = oi_m_helpers[n->helper].rule;
    bool by_argument =
        rule == OI_M_COMPARE || rule == OI_M_TEST || rule == OI_M_COUNT || rule == OI_M_INDEX;
    return by_argument ? p->m->nodes[n->args[0]].type : n->type;
}

static const char *find_row(const oi_m_row *r, oi_helper_id helper, unsigned cls)
{
    while (r->text && !(r->classes & cls && r->helper == helper))
        r++;
    return r->text;
}

static const char *spelling(const printer *p, const oi_m_node *n)
{
    unsigned cls = class_of(deciding(p, n));
    const char *text = find_row(p->d->rows, n->helper, cls);
    if (!text)
        text = find_row(p->d->more, n->helper, cls);
    if (text)
        return text;
    return oi_m_helpers[n->helper].rule == OI_M_CONVERT ? p->d->convert : p->d->call;
}

static void print(const printer *p, uint16_t at, bool nested);

/* The widest type of the same kind: conversions are spelled for that one only. */
static const char *widest(const printer *p, oi_dtype t, oi_dtype to)
{
    bool is_narrow = p->d->has_narrow && oi_dtype_bits(t) <= 32 && oi_dtype_bits(to) <= 32;
    switch (t) {
    case OI_F32: return "f32";
    case OI_F64: return "f64";
    case OI_I1:
    case OI_I2:
    case OI_I4:
    case OI_I8:
    case OI_I16:
    case OI_I32:
    case OI_I64:
    case OI_T1:
    case OI_T2: return is_narrow ? "i32" : "i64";
    default: return is_narrow ? "u32" : "u64";
    }
}

/* Whether the conversion is spelled for 64 bits, and the argument has fewer. */
static bool is_spelled_wide(const printer *p, const oi_m_node *n, uint16_t arg)
{
    const oi_dtype t = p->m->nodes[arg].type;
    return p->d->of_narrow && !(class_of(t) & (OI_M_FLOATS | OI_M_NARROW)) &&
           oi_dtype_bits(t) < 64 && strchr(widest(p, t, n->type), '6');
}

static void print_arguments(const printer *p, const oi_m_node *n)
{
    const bool converts = oi_m_helpers[n->helper].rule == OI_M_CONVERT;
    for (unsigned i = 0; i < n->n_args; i++) {
        const oi_dtype t = p->m->nodes[n->args[i]].type;
        const char *truth = p->d->of_truth && converts && t == OI_BOOL ? p->d->of_truth : NULL;
        const char *wide = converts && is_spelled_wide(p, n, n->args[i]) ? p->d->of_narrow : NULL;
        put(p->out, i ? ", " : "");
        put(p->out, wide ? wide : "");
        put(p->out, wide ? (truth ? truth : p->d->types[t]) : "");
        put(p->out, wide ? "(" : "");
        put(p->out, truth ? truth : "");
        put(p->out, truth ? "(" : "");
        print(p, n->args[i], false);
        put(p->out, truth ? ")" : "");
        put(p->out, wide ? ")" : "");
    }
}

static void print_code(const printer *p, const oi_m_node *n, char code)
{
    oi_dtype t = deciding(p, n);
    switch (code) {
    case '0':
    case '1':
    case '2': print(p, n->args[code - '0'], true); break;
    case 'T': put(p->out, p->d->types[t]); break;
    case 'U': put(p->out, p->d->wide[t]); break;
    case 't': put(p->out, oi_dtype_name(t)); break;
    case 'f': put(p->out, widest(p, p->m->nodes[n->args[0]].type, t)); break;
    case 'h': put(p->out, oi_m_helpers[n->helper].name); break;
    case '*': print_arguments(p, n); break;
    default: break;
    }
}

static void print_call(const printer *p, const oi_m_node *n, bool nested)
{
    const char *text = spelling(p, n);
    /* a call binds tightest of all; whatever else stands inside an operator gets parentheses */
    bool is_call = text == p->d->call || text == p->d->convert;
    put(p->out, nested && !is_call ? "(" : "");
    for (; *text; text++) {
        if (*text == '$')
            print_code(p, n, *++text);
        else
            put_n(p->out, text, 1);
    }
    put(p->out, nested && !is_call ? ")" : "");
}

static void print_name(const printer *p, const oi_m_node *n)
{
    for (size_t i = 0; i < p->n_names; i++)
        if (strlen(p->names[i].name) == n->len && !memcmp(p->names[i].name, n->text, n->len)) {
            put(p->out, p->names[i].spell);
            return;
        }
    put_n(p->out, n->text, n->len); /* a definition of the expression itself */
}

static void print(const printer *p, uint16_t at, bool nested)
{
    const oi_m_node *n = &p->m->nodes[at];
    char number[40];
    switch (n->kind) {
    case OI_M_NUMBER:
    case OI_M_BOOL:
        p->d->number(number, n->type, n->number);
        put(p->out, nested && number[0] == '-' ? "(" : "");
        put(p->out, number);
        put(p->out, nested && number[0] == '-' ? ")" : "");
        break;
    case OI_M_NAME: print_name(p, n); break;
    case OI_M_CALL: print_call(p, n, nested); break;
    case OI_M_WORD: break;
    }
}

bool oi_meaning_print(const oi_meaning *m, uint16_t node, const oi_m_name *names, size_t n_names,
                      const oi_dialect *d, oi_m_text *out)
{
    printer p = {m, names, n_names, d, out};
    print(&p, node, false);
    return !out->is_full;
}

/* -- C -- */

static void c_number(char out[40], oi_dtype t, double v)
{
    if (t == OI_F32 || t == OI_F64) {
        const char *suffix = t == OI_F32 ? "f" : "";
        if (isinf(v))
            snprintf(out, 40, "%sINFINITY", v < 0 ? "-" : "");
        else if (v == floor(v) && fabs(v) < 1e9)
            snprintf(out, 40, "%.1f%s", v, suffix);
        else
            snprintf(out, 40, t == OI_F32 ? "%.9g%s" : "%.17g%s", v, suffix);
    } else {
        snprintf(out, 40, "%.0f", v);
    }
}

/* Integers are computed unsigned, where overflow is defined, in 32 bits at least: C would promote
 * narrower ones to int, and u16 * u16 overflows that. Packed ones fit an int and are cut back. */
enum { OI_M_INTEGERS = OI_M_WHOLE | OI_M_SMALL };

const oi_m_row oi_m_rows_like_c[] = {
    {OI_H_ADD, OI_M_FLOATS, "$0 + $1"}, {OI_H_SUB, OI_M_FLOATS, "$0 - $1"},
    {OI_H_MUL, OI_M_FLOATS, "$0 * $1"}, {OI_H_NEG, OI_M_FLOATS, "-$0"},
    {OI_H_DIV, OI_M_FLOATS, "$0 / $1"}, {OI_H_LT, ~0u, "$0 < $1"},
    {OI_H_LE, ~0u, "$0 <= $1"},         {OI_H_GT, ~0u, "$0 > $1"},
    {OI_H_GE, ~0u, "$0 >= $1"},         {OI_H_EQ, ~0u, "$0 == $1"},
    {OI_H_NE, ~0u, "$0 != $1"},         {OI_H_AND, ~0u, "$0 && $1"},
    {OI_H_OR, ~0u, "$0 || $1"},         {OI_H_NOT, ~0u, "!$0"},
    {OI_H_SELECT, ~0u, "$0 ? $1 : $2"}, {OI_H_COUNT, 0, NULL},
};

static const oi_m_row c_rows[] = {
    {OI_H_ADD, OI_M_INTEGERS, "($T)(($U)$0 + ($U)$1)"},
    {OI_H_ADD, OI_M_PACKED, "oi_cut_$t((uint32_t)($0 + $1))"},
    {OI_H_SUB, OI_M_INTEGERS, "($T)(($U)$0 - ($U)$1)"},
    {OI_H_SUB, OI_M_PACKED, "oi_cut_$t((uint32_t)($0 - $1))"},
    {OI_H_MUL, OI_M_INTEGERS, "($T)(($U)$0 * ($U)$1)"},
    {OI_H_MUL, OI_M_PACKED, "oi_cut_$t((uint32_t)($0 * $1))"},
    {OI_H_NEG, OI_M_INTEGERS, "($T)(0 - ($U)$0)"},
    {OI_H_NEG, OI_M_PACKED, "oi_cut_$t((uint32_t)-$0)"},
    {OI_H_BIT_AND, ~0u, "($T)($0 & $1)"},
    {OI_H_BIT_OR, ~0u, "($T)($0 | $1)"},
    {OI_H_BIT_XOR, ~0u, "($T)($0 ^ $1)"},
    {OI_H_BIT_NOT, OI_M_INTEGERS, "($T)~$0"},
    {OI_H_BIT_NOT, OI_M_PACKED, "oi_cut_$t((uint32_t)~$0)"},
    {OI_H_I64, ~0u, "(int64_t)$0"},
    {OI_H_NEAR, OI_M_FLOATS, "($T)$0"},
    {OI_H_COUNT, 0, NULL},
};

const oi_dialect oi_dialect_c = {
    .name = "C",
    .rows = c_rows,
    .more = oi_m_rows_like_c,
    .types = {[OI_F32] = "float",     [OI_F64] = "double",   [OI_I8] = "int8_t",
              [OI_I16] = "int16_t",   [OI_I32] = "int32_t",  [OI_I64] = "int64_t",
              [OI_U8] = "uint8_t",    [OI_U16] = "uint16_t", [OI_U32] = "uint32_t",
              [OI_U64] = "uint64_t",  [OI_BOOL] = "uint8_t", [OI_BITSET] = "uint8_t",
              [OI_F8] = "uint8_t", /* the narrow floats are only ever stored: as their bits */
              [OI_BF16] = "uint16_t", [OI_F16] = "uint16_t", [OI_I1] = "int8_t",
              [OI_I2] = "int8_t",     [OI_I4] = "int8_t",    [OI_T1] = "int8_t",
              [OI_T2] = "int8_t",     [OI_U1] = "uint8_t",   [OI_U2] = "uint8_t",
              [OI_U4] = "uint8_t"},
    .wide = {[OI_I8] = "uint32_t",
             [OI_I16] = "uint32_t",
             [OI_I32] = "uint32_t",
             [OI_I64] = "uint64_t",
             [OI_U8] = "uint32_t",
             [OI_U16] = "uint32_t",
             [OI_U32] = "uint32_t",
             [OI_U64] = "uint64_t",
             [OI_BITSET] = "uint32_t"},
    .call = "oi_$h_$t($*)",
    .convert = "oi_$h_$t_$f($*)",
    .number = c_number,
};
