/* glslgen.c: the helpers of src/body/scalar.h as GLSL, one function at a time, so that a shader
 * carries along just those it calls.
 *
 *     glslgen OUT.c OWN.glsl WORDS.glsl < scalar.h after the preprocessor
 *
 * The meaning of a helper is written once, in C. This reads the small part of C that the helpers
 * keep to (no pointers, no memory) and spells what GLSL does not do by itself: conversions, types
 * of literals, truths that are not numbers. Items that leave that part are left out, unless
 * OWN.glsl has them; a shader that would need one is refused when it is printed (src/emit/vulkan).
 *
 * Positions are ints in a shader, so helpers about positions are taken for 32 bits; conversions
 * from 64-bit integers also get a 32-bit form. All is translated twice: for devices with 64-bit
 * integers, and for others, where such a number is two words (WORDS.glsl). */
#include "glslgen.h"

#include "../src/emit/vulkan/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jmp_buf given_up;
structure structs[T_COUNT - T_STRUCT];
bool has_words;

/* Texts live as long as the program, in one chain. */
static struct kept {
    struct kept *next;
    char text[];
} * kept;

static char *keep(size_t size)
{
    struct kept *own = malloc(sizeof *own + size);
    if (!own)
        exit(1);
    own->next = kept;
    kept = own;
    return own->text;
}

const char *text(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *out = keep((size_t)n + 1);
    va_start(args, fmt);
    vsnprintf(out, (size_t)n + 1, fmt, args);
    va_end(args);
    return out;
}

_Noreturn void give_up(translator *x, const char *why)
{
    if (getenv("GLSLGEN_EXPLAIN"))
        fprintf(stderr, "glslgen: %s: %s\n", x->f ? x->f->name : "?", why);
    longjmp(given_up, 1);
}

/* -- tokens -- */

static bool is_word(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static size_t token_length(const char *p)
{
    static const char *const marks[] = {">>=", "<<=", "==", "!=", "<=", ">=", "&&", "||", "<<",
                                        ">>",  "+=",  "-=", "*=", "&=", "|=", "^=", "++"};
    size_t n = 0;
    bool is_number = *p >= '0' && *p <= '9', is_hex = is_number && p[1] == 'x';
    while (is_word(p[n]) || (is_number && p[n] == '.') ||
           (is_number && n && (p[n] == '-' || p[n] == '+') && p[n - 1] == (is_hex ? 'p' : 'e')))
        n++;
    if (n)
        return n;
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (strncmp(p, marks[i], strlen(marks[i])) == 0)
            return strlen(marks[i]);
    return *p ? 1 : 0;
}

void next(translator *x)
{
    while (*x->p == ' ' || *x->p == '\n' || *x->p == '\t')
        x->p++;
    size_t n = token_length(x->p);
    if (n >= sizeof x->token)
        give_up(x, "a long word");
    memcpy(x->token, x->p, n);
    x->token[n] = '\0';
    x->p += n;
    if (n == 0 && x->is_over)
        give_up(x, "it ends too early");
    x->is_over = n == 0;
}

bool is(const translator *x, const char *token)
{
    return strcmp(x->token, token) == 0;
}

bool take(translator *x, const char *token)
{
    if (!is(x, token))
        return false;
    next(x);
    return true;
}

void want(translator *x, const char *token)
{
    if (!take(x, token))
        give_up(x, text("%s where %s is wanted", x->token, token));
}

/* -- names and types -- */

bool type_name(const translator *x, const char *word, type *out)
{
    static const struct {
        const char *name;
        type t;
    } names[] = {{"void", T_VOID},   {"int", T_I32},    {"unsigned", T_U32}, {"float", T_F32},
                 {"double", T_F64},  {"int8_t", T_I8},  {"int16_t", T_I16},  {"int32_t", T_I32},
                 {"int64_t", T_I64}, {"uint8_t", T_U8}, {"uint16_t", T_U16}, {"uint32_t", T_U32},
                 {"uint64_t", T_U64}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, word) == 0) {
            bool narrows = x->is_narrow && (names[i].t == T_I64 || names[i].t == T_U64);
            *out = narrows ? names[i].t - 1 : names[i].t;
            return true;
        }
    for (int i = 0; i < T_COUNT - T_STRUCT; i++)
        if (structs[i].name && strcmp(structs[i].name, word) == 0) {
            *out = T_STRUCT + (unsigned)i;
            return true;
        }
    return false;
}

const char *type_text(type t)
{
    static const char *const names[T_COUNT] = {
        [T_VOID] = "void", [T_BOOL] = "bool",    [T_I8] = "int",    [T_I16] = "int",
        [T_I32] = "int",   [T_I64] = "int64_t",  [T_U8] = "uint",   [T_U16] = "uint",
        [T_U32] = "uint",  [T_U64] = "uint64_t", [T_F32] = "float", [T_F64] = "double"};
    if (has_words && (t == T_I64 || t == T_U64))
        return "uvec2";
    return t >= T_STRUCT ? structs[t - T_STRUCT].name : names[t];
}

const char *exact_text(type t)
{
    return text("%s%s", t == T_F32 || t == T_F64 || t >= T_STRUCT ? "precise " : "", type_text(t));
}

variable *find(variable *list, int n, const char *name)
{
    for (int i = n; i-- > 0;)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

function *find_function(translator *x, const char *name)
{
    for (int i = 0; i < x->n_functions; i++)
        if (strcmp(x->functions[i].name, name) == 0)
            return &x->functions[i];
    return NULL;
}

static const char *free_name(const char *name)
{
    for (size_t i = 0; i < sizeof oi_glsl_words / sizeof oi_glsl_words[0]; i++)
        if (strcmp(oi_glsl_words[i], name) == 0)
            return text("%s_", name);
    return name;
}

static const char *declare(translator *x, const char *name, type t)
{
    if (x->n_vars == MAX_VARIABLES)
        give_up(x, "too many variables");
    x->vars[x->n_vars] = (variable){name, free_name(name), t};
    return x->vars[x->n_vars++].spell;
}

static type wanted_type(translator *x)
{
    type t;
    if (!type_name(x, x->token, &t))
        give_up(x, text("%s is no type", x->token));
    next(x);
    if (is(x, "*"))
        give_up(x, "a pointer");
    return t;
}

/* -- statements -- */

void line(translator *x, const char *what)
{
    x->out = (char *)text("%s%*s%s\n", x->out, 4 * x->depth, "", what);
}

static void statement(translator *x);

/* A truth that C keeps in an int is a bool. */
static const char *declaration(translator *x, bool is_const)
{
    type t = wanted_type(x);
    const char *last = "";
    do {
        const char *name = text("%s", x->token);
        next(x);
        if (*last)
            line(x, text("%s;", last));
        if (take(x, "=")) {
            value v = assignment(x);
            type own = t == T_I32 && v.t == T_BOOL ? T_BOOL : t;
            const char *spell = declare(x, name, own);
            last = text("%s%s %s = %s", is_const ? "const " : "", exact_text(own), spell,
                        convert(x, v, own).text);
        } else {
            last = text("%s %s", exact_text(t), declare(x, name, t));
        }
    } while (take(x, ","));
    return last;
}

static void body(translator *x, const char *head)
{
    line(x, text("%s {", head));
    x->depth++;
    if (take(x, "{")) {
        while (!take(x, "}"))
            statement(x);
    } else {
        statement(x);
    }
    x->depth--;
    line(x, "}");
}

static void for_statement(translator *x)
{
    type t;
    want(x, "(");
    x->is_head = true;
    const char *first = is(x, ";")                   ? ""
                        : type_name(x, x->token, &t) ? declaration(x, false)
                                                     : expression(x).text;
    want(x, ";");
    const char *cond = is(x, ";") ? "" : convert(x, expression(x), T_BOOL).text;
    want(x, ";");
    const char *after = is(x, ")") ? "" : expression(x).text;
    want(x, ")");
    x->is_head = false;
    body(x, text("for (%s; %s; %s)", first, cond, after));
}

static void return_statement(translator *x)
{
    value v = expression(x);
    want(x, ";");
    if ((x->f->result == T_I32 || x->f->result == T_U8) && v.t == T_BOOL)
        x->f->result = T_BOOL;
    line(x, text("return %s;", convert(x, v, x->f->result).text));
}

static void statement(translator *x)
{
    type t;
    bool is_const = take(x, "const");
    if (take(x, "if") || is(x, "while")) {
        bool loops = take(x, "while");
        want(x, "(");
        x->is_head = loops;
        const char *cond = convert(x, expression(x), T_BOOL).text;
        x->is_head = false;
        want(x, ")");
        body(x, text("%s (%s)", loops ? "while" : "if", cond));
        if (take(x, "else"))
            body(x, "else");
    } else if (take(x, "for")) {
        for_statement(x);
    } else if (take(x, "return")) {
        return_statement(x);
    } else if (is(x, "(") && strncmp(x->p, "void)", 5) == 0) { /* an unused parameter */
        while (!take(x, ";"))
            next(x);
    } else if (type_name(x, x->token, &t)) {
        const char *last = declaration(x, is_const);
        want(x, ";");
        line(x, text("%s;", last));
    } else {
        const char *what = expression(x).text;
        want(x, ";");
        line(x, text("%s;", what));
    }
}

/* -- items -- */

/* The function's text; x->f gets its types. */
static const char *function_item(translator *x, const char *as)
{
    x->f->result = wanted_type(x);
    x->f->name = as ? as : text("%s", x->token);
    next(x);
    want(x, "(");
    const char *params = "";
    while (!take(x, ")")) {
        if (take(x, "const"))
            give_up(x, "a pointer");
        type t = wanted_type(x);
        if (t == T_VOID)
            continue;
        const char *spell = declare(x, text("%s", x->token), t);
        next(x);
        params = text("%s%s%s %s", params, x->f->n_params ? ", " : "", type_text(t), spell);
        x->f->params[x->f->n_params++] = t;
        take(x, ",");
    }
    x->out = (char *)"";
    x->depth = 1;
    want(x, "{");
    while (!is(x, "}"))
        statement(x);
    return text("%s %s(%s)\n{\n%s}\n", exact_text(x->f->result), x->f->name, params, x->out);
}

/* typedef struct oi_pair { float hi, lo; ... } oi_pair; */
static const char *struct_item(translator *x, const char **name)
{
    int i = 0;
    while (i < T_COUNT - T_STRUCT && structs[i].name)
        i++;
    if (i == T_COUNT - T_STRUCT)
        give_up(x, "too many structs");
    want(x, "struct");
    structure made = {.name = text("%s", x->token)};
    const char *out = text("struct %s {\n", made.name);
    next(x);
    want(x, "{");
    while (!take(x, "}")) {
        type t = wanted_type(x);
        do {
            made.fields[made.n_fields++] = (variable){text("%s", x->token), NULL, t};
            out = text("%s    %s %s;\n", out, type_text(t), x->token);
            next(x);
        } while (take(x, ","));
        want(x, ";");
    }
    structs[i] = made;
    *name = made.name;
    return text("%s};\n", out);
}

/* static const uint32_t NAME[8] = {1, 2, ...}; */
static const char *array_item(translator *x, const char **name)
{
    type t = wanted_type(x);
    *name = text("%s", x->token);
    next(x);
    want(x, "[");
    const char *length = text("%s", x->token), *values = "";
    next(x);
    want(x, "]");
    want(x, "=");
    want(x, "{");
    for (int i = 0; !take(x, "}"); i++) {
        values = text("%s%s%s", values, i ? ", " : "", convert(x, assignment(x), t).text);
        take(x, ",");
    }
    x->arrays[x->n_arrays++] = (variable){*name, NULL, t};
    return text("const %s %s[%s] = %s[%s](%s);\n", type_text(t), *name, length, type_text(t),
                length, values);
}

/* -- output: a row per helper, a C string literal per line -- */

static void put_row(FILE *out, const char *name, const char *body_text)
{
    fprintf(out, "    {\"%s\",\n     \"", name);
    for (const char *p = body_text; *p; p++) {
        if (*p == '\n')
            fputs(p[1] ? "\\n\"\n     \"" : "\\n", out);
        else
            fputc(*p, out);
    }
    fputs("\", \"\"},\n", out);
}

static void translate(translator *x, FILE *out, const char *item, bool is_narrow, const char *as)
{
    function made = {.name = "?"};
    const char *name, *spelled;
    x->p = item;
    x->is_over = false;
    x->is_narrow = is_narrow;
    x->n_vars = 0;
    x->n_exact = 0;
    x->f = &made;
    if (setjmp(given_up))
        return;
    next(x);
    if (take(x, "typedef")) {
        spelled = struct_item(x, &name);
        put_row(out, name, spelled);
        return;
    }
    want(x, "static");
    if (take(x, "const")) {
        spelled = array_item(x, &name);
        put_row(out, name, spelled);
        return;
    }
    want(x, "inline");
    spelled = function_item(x, as);
    put_row(out, made.name, spelled);
    x->functions[x->n_functions++] = made;
}

/* static inline T NAME( */
static const char *item_name(const char *item, size_t n)
{
    const char *paren = memchr(item, '(', n);
    if (!paren || strncmp(item, "static inline", 13) != 0)
        return "";
    const char *start = paren;
    while (is_word(start[-1]))
        start--;
    return text("%.*s", (int)(paren - start), start);
}

static bool starts(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* Conversions that 32 bits can do: from _i64 and _u64 to nothing wider. */
static const char *narrow_name(const char *name)
{
    size_t n = strlen(name);
    bool converts = starts(name, "oi_sat_") || starts(name, "oi_wrap_") ||
                    starts(name, "oi_near_") || starts(name, "oi_odd_");
    bool is_wide = n > 4 && (!strcmp(name + n - 4, "_i64") || !strcmp(name + n - 4, "_u64"));
    const char *own = strstr(name, "64_"); /* what it makes */
    return converts && is_wide && !own ? text("%.*s32", (int)n - 2, name) : NULL;
}

/* About positions: ints in a shader. */
static bool is_position(const char *name)
{
    return starts(name, "oi_bend_") || starts(name, "oi_floor_mod") ||
           starts(name, "oi_floor_quotient");
}

static size_t item_length(const char *p)
{
    int depth = 0;
    for (size_t i = 0; p[i]; i++) {
        depth += (p[i] == '{') - (p[i] == '}');
        if (depth == 0 && (p[i] == ';' || (p[i] == '}' && !starts(p, "typedef"))))
            return i + 1;
    }
    return 0;
}

static void translate_all(translator *x, FILE *out, const char *p)
{
    for (;;) {
        while (*p == ' ' || *p == '\n' || *p == '\t' || *p == ';')
            p++;
        size_t n = item_length(p);
        if (n == 0)
            return;
        const char *item = text("%.*s", (int)n, p), *name = item_name(p, n);
        const char *narrow = narrow_name(name);
        if (*name && find_function(x, name)) /* OWN.glsl has it */
            narrow = NULL;
        else
            translate(x, out, item, is_position(name), NULL);
        if (narrow)
            translate(x, out, item, true, narrow);
        p += n;
    }
}

static type own_type(translator *x)
{
    type t;
    for (t = T_BOOL; t < T_STRUCT && !is(x, type_text(t)); t++)
        ;
    t = t == T_I8 ? T_I32 : t == T_U8 ? T_U32 : t == T_I64 && has_words ? T_U64 : t;
    next(x);
    return t;
}

/* Functions written by hand: types are GLSL's, so they are read from their heads. */
static void own_items(translator *x, FILE *out, const char *p)
{
    while (*p) {
        size_t n = strcspn(p, "\n");
        if (n == 0 || starts(p, "//")) {
            p += n + (p[n] != '\0');
            continue;
        }
        const char *end = strstr(p, "\n}\n");
        if (!end)
            exit(1);
        const char *item = text("%.*s", (int)(end + 3 - p), p);
        p = end + 3;
        if (has_words && strstr(item, "int64_t")) /* words.glsl has another */
            continue;
        function f = {.n_params = 0};
        x->p = item;
        x->is_over = false;
        next(x);
        take(x, "precise");
        f.result = own_type(x);
        f.name = text("%s", x->token);
        next(x);
        for (next(x); !is(x, ")") && *x->token && f.n_params < MAX_ARGS; take(x, ",")) {
            f.params[f.n_params++] = own_type(x);
            next(x);
        }
        put_row(out, f.name, item);
        x->functions[x->n_functions++] = f;
    }
}

static char *read_all(FILE *f)
{
    size_t cap = 1 << 20, n = 0;
    char *all = keep(cap);
    while (f && n + 1 < cap && !feof(f) && !ferror(f))
        n += fread(all + n, 1, cap - 1 - n, f);
    all[n] = '\0';
    if (f && f != stdin)
        fclose(f);
    return f && n + 1 < cap ? all : NULL;
}

/* A table of one kind. */
static void put_table(FILE *out, const char *name, const char *own, const char *words,
                      const char *source)
{
    static translator x;
    memset(&x, 0, sizeof x);
    memset(structs, 0, sizeof structs);
    has_words = words != NULL;
    fprintf(out, "const oi_helper %s[] = {\n", name);
    own_items(&x, out, own);
    if (words)
        own_items(&x, out, words);
    translate_all(&x, out, source);
    fputs("    {NULL, NULL, NULL},\n};\n", out);
}

int main(int argc, char **argv)
{
    FILE *out = argc == 4 ? fopen(argv[1], "w") : NULL;
    char *source = read_all(stdin), *own = argc == 4 ? read_all(fopen(argv[2], "r")) : NULL,
         *words = argc == 4 ? read_all(fopen(argv[3], "r")) : NULL;
    if (!out || !source || !own || !words) {
        fprintf(stderr,
                "usage: glslgen OUT.c OWN.glsl WORDS.glsl < scalar.h after the preprocessor\n");
        return 2;
    }
    fputs("/* generated from src/body/scalar.h, own.glsl and words.glsl of src/emit/vulkan by "
          "tools/glslgen.c, do not edit */\n#include \"emit/vulkan/glsl.h\"\n\n",
          out);
    put_table(out, "oi_glsl_helpers", own, NULL, source);
    put_table(out, "oi_glsl_words_helpers", own, words, source);
    return fclose(out) == 0 ? 0 : 1;
}
