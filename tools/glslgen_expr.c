/* glslgen_expr.c: C expressions as GLSL ones: every conversion that C does by itself is spelled. */
#include "glslgen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMMA,
    ASSIGN,
    CHOICE,
    OR,
    AND,
    BIT_OR,
    BIT_XOR,
    BIT_AND,
    EQUAL,
    LESS,
    SHIFT,
    SUM,
    PRODUCT,
    PREFIX,
    POSTFIX
};

static bool is_float(type t)
{
    return t == T_F32 || t == T_F64;
}

static bool is_signed(type t)
{
    return t >= T_I8 && t <= T_I64;
}

/* Held in two words. */
static bool is_pair_of_words(type t)
{
    return has_words && (t == T_I64 || t == T_U64);
}

static bool is_unsigned(type t)
{
    return t >= T_U8 && t <= T_U64;
}

static int width(type t)
{
    static const int widths[T_COUNT] = {
        [T_BOOL] = 1, [T_I8] = 8,   [T_I16] = 16, [T_I32] = 32, [T_I64] = 64, [T_U8] = 8,
        [T_U16] = 16, [T_U32] = 32, [T_U64] = 64, [T_F32] = 32, [T_F64] = 64};
    return widths[t];
}

/* The text where something that binds at `level` is wanted. */
static const char *at_level(value v, int level)
{
    return v.level < level ? text("(%s)", v.text) : v.text;
}

static value made(type t, int level, const char *spelled)
{
    return (value){.text = spelled, .t = t, .level = level};
}

/* -- literals -- */

static const char *float_text(type t, double v)
{
    char digits[40];
    snprintf(digits, sizeof digits, t == T_F32 ? "%.9g" : "%.17g", v);
    if (!strpbrk(digits, ".e"))
        strcat(digits, ".0");
    return text("%s%s", digits, t == T_F64 ? "lf" : "");
}

static const char *whole_text(type t, uint64_t v, bool is_hex)
{
    if (is_pair_of_words(t))
        return text("uvec2(0x%xu, 0x%xu)", (unsigned)v, (unsigned)(v >> 32));
    const char *suffix = t == T_U64 ? "ul" : t == T_I64 ? "l" : is_unsigned(t) ? "u" : "";
    if (is_unsigned(t))
        return text(is_hex ? "0x%llx%s" : "%llu%s", (unsigned long long)v, suffix);
    int64_t s = (int64_t)v;
    if (s == INT64_MIN)
        return "int64_t(0x8000000000000000ul)";
    if (t == T_I32 && s == INT32_MIN)
        return "int(0x80000000u)";
    return text(is_hex && s >= 0 ? "0x%llx%s" : "%lld%s", (long long)s, suffix);
}

value number_of(type t, uint64_t whole, double number, bool is_hex)
{
    value v = {.t = t, .is_number = true, .is_hex = is_hex, .number = number, .whole = whole};
    v.text = is_float(t) ? float_text(t, number) : whole_text(t, whole, is_hex);
    v.level = v.text[0] == '-' ? PREFIX : POSTFIX;
    return v;
}

static value convert_number(value v, type to)
{
    if (is_float(to))
        return number_of(to, 0,
                         is_float(v.t)    ? v.number
                         : is_signed(v.t) ? (double)(int64_t)v.whole
                                          : (double)v.whole,
                         false);
    uint64_t whole = is_float(v.t) ? (uint64_t)(int64_t)v.number : v.whole;
    if (to == T_BOOL)
        return made(T_BOOL, POSTFIX, whole ? "true" : "false");
    int unused = 64 - width(to);
    whole = is_signed(to) ? (uint64_t)((int64_t)(whole << unused) >> unused)
                          : whole << unused >> unused;
    return number_of(to, whole, 0, v.is_hex);
}

/* -- conversions -- */

/* To a type narrower than 32 bits, from any integer. */
static value cut(translator *x, value v, type to)
{
    type wide = is_signed(to) ? T_I32 : T_U32;
    bool fits = is_signed(v.t) == is_signed(to) && width(v.t) <= width(to) && v.t != T_BOOL;
    if (fits)
        return made(to, v.level, v.text);
    v = convert(x, v, wide);
    if (is_signed(to))
        return made(to, POSTFIX, text("bitfieldExtract(%s, 0, %d)", v.text, width(to)));
    return made(to, BIT_AND, text("%s & 0x%xu", at_level(v, BIT_AND), (1u << width(to)) - 1));
}

/* To or from two words; not to a truth. */
static value convert_words(translator *x, value v, type to)
{
    if (is_pair_of_words(v.t) && is_pair_of_words(to))
        return made(to, v.level, v.text);
    if (v.t == T_F64 || to == T_F64)
        give_up(x, "two words and f64");
    if (to == T_F32)
        return made(to, POSTFIX,
                    text("oi_f32_of_%s_words(%s)", v.t == T_I64 ? "signed" : "unsigned", v.text));
    if (v.t == T_F32)
        return made(to, POSTFIX,
                    text("oi_%s_words_of_f32(%s)", to == T_I64 ? "signed" : "unsigned", v.text));
    if (is_pair_of_words(v.t)) {
        v = made(T_U32, POSTFIX, text("%s.x", at_level(v, POSTFIX)));
        return to == T_U32 ? v : convert(x, v, to);
    }
    return made(to, POSTFIX,
                is_signed(v.t) ? text("oi_words_of_int(%s)", v.text)
                               : text("uvec2(%s, 0u)", convert(x, v, T_U32).text));
}

value convert(translator *x, value v, type to)
{
    if (v.t == to || to == T_VOID)
        return v;
    if (v.is_number)
        return convert_number(v, to);
    if (to != T_BOOL && (is_pair_of_words(v.t) || is_pair_of_words(to)))
        return convert_words(x, v, to);
    if (to == T_BOOL) {
        value zero = number_of(v.t, 0, 0, false);
        return made(T_BOOL, EQUAL, text("%s != %s", at_level(v, EQUAL + 1), zero.text));
    }
    if (v.t == T_BOOL)
        return made(to, POSTFIX, text("%s(%s)", type_text(to), v.text));
    if (is_float(v.t) || is_float(to) || width(to) == 64) {
        if (to == T_U64 && is_signed(v.t) && v.t != T_I64)
            v = convert(x, v, T_I64); /* the sign goes all the way up */
        return made(to, POSTFIX, text("%s(%s)", type_text(to), v.text));
    }
    if (width(to) < 32)
        return cut(x, v, to);
    if (is_signed(v.t) == is_signed(to) && width(v.t) <= 32)
        return made(to, v.level, v.text); /* held in the same type */
    return made(to, POSTFIX, text("%s(%s)", type_text(to), v.text));
}

static type promoted(type t)
{
    return t == T_BOOL || width(t) < 32 ? T_I32 : t;
}

static type common(type a, type b)
{
    static const type order[] = {T_F64, T_F32, T_U64, T_I64, T_U32};
    a = promoted(a);
    b = promoted(b);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (a == order[i] || b == order[i])
            return order[i];
    return T_I32;
}

/* -- operands -- */

static value name_or_limit(translator *x, const char *word)
{
    static const struct {
        const char *name;
        type t;
        uint64_t whole;
    } limits[] = {{"INT8_MIN", T_I32, (uint64_t)INT8_MIN},   {"INT8_MAX", T_I32, INT8_MAX},
                  {"INT16_MIN", T_I32, (uint64_t)INT16_MIN}, {"INT16_MAX", T_I32, INT16_MAX},
                  {"INT32_MIN", T_I32, (uint64_t)INT32_MIN}, {"INT32_MAX", T_I32, INT32_MAX},
                  {"INT64_MIN", T_I64, (uint64_t)INT64_MIN}, {"INT64_MAX", T_I64, INT64_MAX},
                  {"UINT8_MAX", T_I32, UINT8_MAX},           {"UINT16_MAX", T_I32, UINT16_MAX},
                  {"UINT32_MAX", T_U32, UINT32_MAX},         {"UINT64_MAX", T_U64, UINT64_MAX}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (strcmp(limits[i].name, word) == 0)
            return number_of(limits[i].t, limits[i].whole, 0, false);
    if (strcmp(word, "INFINITY") == 0)
        return made(T_F32, POSTFIX, "uintBitsToFloat(0x7f800000u)");
    if (strcmp(word, "NAN") == 0)
        return made(T_F32, POSTFIX, "uintBitsToFloat(0x7fc00000u)");
    variable *v = find(x->vars, x->n_vars, word);
    if (!v)
        give_up(x, text("%s is not known", word));
    return made(v->t, POSTFIX, v->spell);
}

static value literal(translator *x)
{
    char *end;
    const char *word = x->token;
    bool is_hex = strncmp(word, "0x", 2) == 0;
    if (strpbrk(word, is_hex ? ".p" : ".e")) {
        double v = strtod(word, &end);
        bool is_single = *end == 'f';
        v = is_single ? (double)strtof(word, NULL) : v;
        next(x);
        return number_of(is_single ? T_F32 : T_F64, 0, v, false);
    }
    uint64_t v = strtoull(word, &end, 0);
    type t = *end == 'u' ? (v > UINT32_MAX ? T_U64 : T_U32) : v > INT32_MAX ? T_I64 : T_I32;
    next(x);
    return number_of(t, v, 0, is_hex);
}

/* fabsf -> abs: functions of the C library that the language has. */
static bool library_call(const char *word, const char **name, function *out)
{
    static const struct {
        const char *c, *glsl;
        int n_args;
    } known[] = {
        {"fabs", "abs", 1},    {"floor", "floor", 1},          {"ceil", "ceil", 1},
        {"trunc", "trunc", 1}, {"rint", "roundEven", 1},       {"sqrt", "sqrt", 1},
        {"fma", "fma", 3},     {"copysign", "oi_copysign", 2}, {"fmod", "oi_exact_fmod", 2}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t n = strlen(known[i].c);
        if (strncmp(known[i].c, word, n) != 0 || (word[n] && strcmp(word + n, "f") != 0))
            continue;
        out->result = word[n] ? T_F32 : T_F64;
        out->n_params = known[i].n_args;
        for (int k = 0; k < out->n_params; k++)
            out->params[k] = out->result;
        *name = known[i].glsl;
        if (strncmp(*name, "oi_", 3) == 0)
            *name = text("%s_%s", *name, word[n] ? "f32" : "f64");
        return true;
    }
    return false;
}

/* In a narrow item the narrow form of another is called where there is one. */
static function *callee(translator *x, const char *name)
{
    size_t n = strlen(name);
    if (x->is_narrow && n > 4 && (!strcmp(name + n - 4, "_i64") || !strcmp(name + n - 4, "_u64"))) {
        function *f = find_function(x, text("%.*s32", (int)n - 2, name));
        if (f)
            return f;
    }
    return find_function(x, name);
}

/* Part of an expression as a variable of its own, which says that nothing in it is joined. */
static value exact_part(translator *x, value v)
{
    if (!is_float(v.t) || v.level >= PREFIX)
        return v;
    if (x->is_head)
        give_up(x, "arithmetic of floats in a call in a loop's head");
    const char *name = text("part%d", x->n_exact++);
    line(x, text("const %s %s = %s;", exact_text(v.t), name, v.text));
    return made(v.t, POSTFIX, name);
}

static value call(translator *x, const char *name)
{
    function library = {0}, *f = callee(x, name);
    const char *spelled = f ? f->name : name;
    if (!f && library_call(name, &spelled, &library))
        f = &library;
    if (!f)
        give_up(x, text("%s has no GLSL", name));
    const char *args = "";
    for (int i = 0; !is(x, ")"); i++) {
        if (i == f->n_params)
            give_up(x, text("%s takes fewer arguments", name));
        value v = exact_part(x, convert(x, assignment(x), f->params[i]));
        args = text("%s%s%s", args, i ? ", " : "", v.text);
        take(x, ",");
    }
    want(x, ")");
    return made(f->result, POSTFIX, text("%s(%s)", spelled, args));
}

/* (oi_pair){.hi = a, .lo = b}: fields in their order. */
static value struct_value(translator *x, type t)
{
    const structure *s = &structs[t - T_STRUCT];
    const char *args = "";
    want(x, "{");
    for (int i = 0; !is(x, "}"); i++) {
        want(x, ".");
        if (i == s->n_fields || !is(x, s->fields[i].name))
            give_up(x, "a struct's members must come in their order");
        next(x);
        want(x, "=");
        value v = exact_part(x, convert(x, assignment(x), s->fields[i].t));
        args = text("%s%s%s", args, i ? ", " : "", v.text);
        take(x, ",");
    }
    want(x, "}");
    return made(t, POSTFIX, text("%s(%s)", s->name, args));
}

static value prefix(translator *x);

static value primary(translator *x)
{
    type t;
    if (take(x, "(")) {
        if (type_name(x, x->token, &t)) {
            next(x);
            want(x, ")");
            return t >= T_STRUCT ? struct_value(x, t) : convert(x, prefix(x), t);
        }
        value v = expression(x);
        want(x, ")");
        return v;
    }
    if (x->token[0] >= '0' && x->token[0] <= '9')
        return literal(x);
    const char *word = text("%s", x->token);
    next(x);
    if (take(x, "("))
        return call(x, word);
    variable *array = find(x->arrays, x->n_arrays, word);
    if (array && take(x, "[")) {
        value at = assignment(x);
        want(x, "]");
        return made(array->t, POSTFIX, text("%s[%s]", word, at.text));
    }
    return name_or_limit(x, word);
}

static value postfix(translator *x)
{
    value v = primary(x);
    while (v.t >= T_STRUCT && take(x, ".")) {
        structure *s = &structs[v.t - T_STRUCT];
        variable *field = find(s->fields, s->n_fields, x->token);
        if (!field)
            give_up(x, "no such member");
        v = made(field->t, POSTFIX, text("%s.%s", v.text, field->name));
        next(x);
    }
    if (take(x, "++")) {
        if (width(v.t) < 32 || is_pair_of_words(v.t))
            give_up(x, "++ of what is no word");
        v.text = text("%s++", v.text);
    }
    return v;
}

static value prefix(translator *x)
{
    if (take(x, "!")) {
        value v = convert(x, prefix(x), T_BOOL);
        return made(T_BOOL, PREFIX, text("!%s", at_level(v, PREFIX)));
    }
    bool negates = is(x, "-");
    if (!negates && !is(x, "~"))
        return postfix(x);
    next(x);
    value v = prefix(x);
    v = convert(x, v, promoted(v.t));
    if (v.is_number && negates && is_float(v.t))
        return number_of(v.t, 0, -v.number, false);
    if (v.is_number && negates)
        return convert_number(number_of(v.t, 0 - v.whole, 0, false), v.t);
    if (negates && is_pair_of_words(v.t))
        return made(v.t, POSTFIX, text("oi_words_sub(uvec2(0u, 0u), %s)", v.text));
    return made(v.t, PREFIX, text("%c%s", negates ? '-' : '~', at_level(v, PREFIX + 1)));
}

/* -- operators -- */

static const struct {
    const char *token;
    int level;
} operators[] = {{"||", OR},     {"&&", AND},    {"|", BIT_OR}, {"^", BIT_XOR}, {"&", BIT_AND},
                 {"==", EQUAL},  {"!=", EQUAL},  {"<", LESS},   {"<=", LESS},   {">", LESS},
                 {">=", LESS},   {"<<", SHIFT},  {">>", SHIFT}, {"+", SUM},     {"-", SUM},
                 {"*", PRODUCT}, {"/", PRODUCT}, {"%", PRODUCT}};

static int operator_level(const translator *x)
{
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (is(x, operators[i].token))
            return operators[i].level;
    return -1;
}

/* Arithmetic and order of two words; equality and bits are GLSL's own. */
static value joined_words(value a, const char *op, value b, int level)
{
    const char *kind = a.t == T_I64 ? "_signed" : "";
    if (level == LESS) {
        bool is_turned = *op == '>', is_not = op[1] == '=';
        is_turned ^= is_not; /* a <= b is not b < a */
        return made(T_BOOL, is_not ? PREFIX : POSTFIX,
                    text("%soi_words_less_%s(%s, %s)", is_not ? "!" : "",
                         a.t == T_I64 ? "i64" : "u64", is_turned ? b.text : a.text,
                         is_turned ? a.text : b.text));
    }
    const char *name = *op == '+'   ? "add"
                       : *op == '-' ? "sub"
                       : *op == '*' ? "mul"
                       : *op == '/' ? "div"
                                    : "rem";
    return made(
        a.t, POSTFIX,
        text("oi_words_%s%s(%s, %s)", name, *op == '/' || *op == '%' ? kind : "", a.text, b.text));
}

static value joined(translator *x, value a, const char *op, value b, int level)
{
    type t = common(a.t, b.t);
    if (level == OR || level == AND) {
        t = T_BOOL;
    } else if (level == SHIFT) { /* each by itself; so far that the distance is an int */
        a = convert(x, a, promoted(a.t));
        b = convert(x, b, width(b.t) == 64 ? T_I32 : promoted(b.t));
        if (is_pair_of_words(a.t))
            return made(a.t, POSTFIX,
                        text("oi_words_%s(%s, %s)",
                             *op == '<'     ? "left"
                             : a.t == T_I64 ? "right_signed"
                                            : "right",
                             a.text, convert(x, b, T_I32).text));
        return made(a.t, SHIFT, text("%s %s %s", at_level(a, SHIFT), op, at_level(b, SHIFT + 1)));
    } else if (level == EQUAL && a.t == T_BOOL && b.t == T_BOOL) {
        t = T_BOOL;
    }
    if (a.t >= T_STRUCT || b.t >= T_STRUCT)
        give_up(x, "a struct in an operator");
    a = convert(x, a, t);
    b = convert(x, b, t);
    if (is_pair_of_words(t) && level >= LESS)
        return joined_words(a, op, b, level);
    bool is_truth = level == OR || level == AND || level == EQUAL || level == LESS;
    return made(is_truth ? T_BOOL : t, level,
                text("%s %s %s", at_level(a, level), op, at_level(b, level + 1)));
}

static value binary(translator *x, int lowest)
{
    value a = prefix(x);
    for (int level; (level = operator_level(x)) >= lowest;) {
        const char *op = text("%s", x->token);
        next(x);
        a = joined(x, a, op, binary(x, level + 1), level);
    }
    return a;
}

static value choice(translator *x)
{
    value c = binary(x, OR);
    if (!take(x, "?"))
        return c;
    value a = assignment(x);
    want(x, ":");
    value b = choice(x);
    type t = a.t == b.t && a.t < T_STRUCT ? a.t : common(a.t, b.t);
    c = convert(x, c, T_BOOL);
    a = convert(x, a, t);
    b = convert(x, b, t);
    return made(
        t, CHOICE,
        text("%s ? %s : %s", at_level(c, CHOICE + 1), at_level(a, CHOICE), at_level(b, CHOICE)));
}

value assignment(translator *x)
{
    static const char *const tokens[] = {"=", "+=", "-=", "*=", "&=", "|=", "^=", ">>=", "<<="};
    value to = choice(x);
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        if (!take(x, tokens[i]))
            continue;
        if (i > 0 && width(to.t) < 32)
            give_up(x, "arithmetic on a narrow integer in place");
        value v = assignment(x);
        if (i > 0 && is_pair_of_words(to.t)) {
            static const char *const operations[] = {"", "+", "-", "*", "&", "|", "^", ">>", "<<"};
            static const int levels[] = {0,      SUM,     SUM,   PRODUCT, BIT_AND,
                                         BIT_OR, BIT_XOR, SHIFT, SHIFT};
            v = convert(x, joined(x, to, operations[i], v, levels[i]), to.t);
            return made(to.t, ASSIGN, text("%s = %s", to.text, v.text));
        }
        v = convert(x, v, i >= 7 ? T_I32 : to.t);
        return made(to.t, ASSIGN, text("%s %s %s", to.text, tokens[i], v.text));
    }
    return to;
}

value expression(translator *x)
{
    value v = assignment(x);
    while (take(x, ","))
        v = made(T_VOID, COMMA, text("%s, %s", v.text, assignment(x).text));
    return v;
}
