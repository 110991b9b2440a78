/* meaning.c: parsing, binding and typing the expressions of the op registry.
 *
 * The grammar is that of C's expressions without assignment and pointers. Numbers have no type of
 * their own: they take that of their surroundings. */
#include "kernel/meaning.h"

#include <ctype.h>
#include <math.h>

/* Every word an expression may call. What each does exactly is written once per dialect; for C in
 * scalar.h. */
static const oi_m_helper helpers[] = {
    {"add", 2, OI_M_ARITH},        {"sub", 2, OI_M_ARITH},        {"mul", 2, OI_M_ARITH},
    {"div", 2, OI_M_ARITH},        {"neg", 1, OI_M_ARITH},        {"lt", 2, OI_M_COMPARE},
    {"le", 2, OI_M_COMPARE},       {"gt", 2, OI_M_COMPARE},       {"ge", 2, OI_M_COMPARE},
    {"eq", 2, OI_M_COMPARE},       {"ne", 2, OI_M_COMPARE},       {"and", 2, OI_M_LOGIC},
    {"or", 2, OI_M_LOGIC},         {"not", 1, OI_M_LOGIC},        {"select", 3, OI_M_SELECT},
    {"bit_and", 2, OI_M_ARITH},    {"bit_or", 2, OI_M_ARITH},     {"bit_xor", 2, OI_M_ARITH},
    {"bit_not", 1, OI_M_ARITH},    {"shl", 2, OI_M_SHIFT},        {"shr", 2, OI_M_SHIFT},
    {"popcount", 1, OI_M_COUNT},   {"min", 2, OI_M_ARITH},        {"max", 2, OI_M_ARITH},
    {"min_num", 2, OI_M_ARITH},    {"max_num", 2, OI_M_ARITH},    {"abs", 1, OI_M_ARITH},
    {"floor", 1, OI_M_ARITH},      {"ceil", 1, OI_M_ARITH},       {"trunc", 1, OI_M_ARITH},
    {"round_even", 1, OI_M_ARITH}, {"round_away", 1, OI_M_ARITH}, {"fma", 3, OI_M_ARITH},
    {"fmod", 2, OI_M_ARITH},       {"idiv", 2, OI_M_ARITH},       {"floor_div", 2, OI_M_ARITH},
    {"irem", 2, OI_M_ARITH},       {"sqrt", 1, OI_M_ARITH},       {"exp", 1, OI_M_ARITH},
    {"expm1", 1, OI_M_ARITH},      {"log", 1, OI_M_ARITH},        {"log1p", 1, OI_M_ARITH},
    {"sigmoid", 1, OI_M_ARITH},    {"softplus", 1, OI_M_ARITH},   {"tanh", 1, OI_M_ARITH},
    {"erf", 1, OI_M_ARITH},        {"sin", 1, OI_M_ARITH},        {"cos", 1, OI_M_ARITH},
    {"tan", 1, OI_M_ARITH},        {"asin", 1, OI_M_ARITH},       {"acos", 1, OI_M_ARITH},
    {"atan", 1, OI_M_ARITH},       {"sinh", 1, OI_M_ARITH},       {"cosh", 1, OI_M_ARITH},
    {"asinh", 1, OI_M_ARITH},      {"acosh", 1, OI_M_ARITH},      {"atanh", 1, OI_M_ARITH},
    {"pow", 2, OI_M_ARITH},        {"atan2", 2, OI_M_ARITH},      {"is_nan", 1, OI_M_TEST},
    {"is_inf", 1, OI_M_TEST},      {"is_finite", 1, OI_M_TEST},   {"sat", 1, OI_M_CONVERT},
    {"wrap", 1, OI_M_CONVERT},     {"near", 1, OI_M_CONVERT},     {"i64", 1, OI_M_INDEX},
    {"lowest", 0, OI_M_LIMIT},     {"highest", 0, OI_M_LIMIT},    {"given", 1, OI_M_GIVEN},
};

static const oi_m_helper *find_helper(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++)
        if (strlen(helpers[i].name) == n && memcmp(helpers[i].name, name, n) == 0)
            return &helpers[i];
    return NULL;
}

static bool complain(oi_meaning *m, const char *what, const char *text, size_t n)
{
    if (!m->error[0])
        snprintf(m->error, sizeof m->error, "%s '%.*s'", what, (int)n, text);
    return false;
}

/* -- parsing -- */

typedef struct parser {
    oi_meaning *m;
    const char *p;
    unsigned depth;
} parser;

#define MAX_DEPTH 40

static uint16_t new_node(parser *s, oi_m_kind kind)
{
    if (s->m->n_nodes == OI_MEANING_NODES) {
        complain(s->m, "too long:", s->m->source, strlen(s->m->source));
        return 0; /* parsing stops at the next look at m->error */
    }
    s->m->nodes[s->m->n_nodes] = (oi_m_node){.kind = kind};
    return (uint16_t)s->m->n_nodes++;
}

static void blanks(parser *s)
{
    while (*s->p == ' ')
        s->p++;
}

static bool take(parser *s, const char *token)
{
    blanks(s);
    size_t n = strlen(token);
    if (strncmp(s->p, token, n) != 0)
        return false;
    s->p += n;
    return true;
}

static void want(parser *s, const char *token)
{
    if (!take(s, token)) {
        char what[32];
        snprintf(what, sizeof what, "wanted '%s' at", token);
        complain(s->m, what, s->p, strlen(s->p));
    }
}

static uint16_t call(parser *s, const char *helper, uint16_t a, uint16_t b, unsigned n)
{
    uint16_t at = new_node(s, OI_M_CALL);
    oi_m_node *node = &s->m->nodes[at];
    node->helper = find_helper(helper, strlen(helper));
    node->n_args = (uint8_t)n;
    node->args[0] = a;
    node->args[1] = b;
    return at;
}

static uint16_t expression(parser *s);

/* number = digits ["." digits] [("e" | "E") ["-"] digits] | "inf" | "nan" */
static uint16_t number(parser *s)
{
    char *end;
    uint16_t at = new_node(s, OI_M_NUMBER);
    s->m->nodes[at].number = strtod(s->p, &end);
    s->p = end;
    return at;
}

/* word = '"' letters '"' */
static uint16_t word(parser *s)
{
    uint16_t at = new_node(s, OI_M_WORD);
    s->m->nodes[at].text = s->p;
    while (*s->p && *s->p != '"')
        s->p++;
    s->m->nodes[at].len = (uint32_t)(s->p - s->m->nodes[at].text);
    want(s, "\"");
    return at;
}

/* name = identifier ["(" [expression {"," expression}] ")"] */
static uint16_t name(parser *s)
{
    const char *text = s->p;
    while (isalnum((unsigned char)*s->p) || *s->p == '_')
        s->p++;
    size_t n = (size_t)(s->p - text);
    if (!take(s, "(")) {
        bool truth = n == 4 && !memcmp(text, "true", 4),
             falsity = n == 5 && !memcmp(text, "false", 5);
        uint16_t at = new_node(s, truth || falsity ? OI_M_BOOL : OI_M_NAME);
        s->m->nodes[at].text = text;
        s->m->nodes[at].len = (uint32_t)n;
        s->m->nodes[at].number = truth;
        return at;
    }
    uint16_t at = new_node(s, OI_M_CALL);
    const oi_m_helper *helper = find_helper(text, n);
    uint16_t args[OI_MEANING_ARGS] = {0};
    unsigned n_args = 0;
    if (!helper)
        complain(s->m, "unknown helper", text, n);
    while (!s->m->error[0] && !take(s, ")")) {
        if (n_args)
            want(s, ",");
        uint16_t arg = expression(s);
        if (n_args < OI_MEANING_ARGS)
            args[n_args] = arg;
        n_args++;
    }
    if (helper && n_args != helper->n_args)
        complain(s->m, "wrong number of arguments for", text, n);
    oi_m_node *node = &s->m->nodes[at];
    node->helper = helper;
    node->n_args = (uint8_t)n_args;
    memcpy(node->args, args, sizeof args);
    return at;
}

/* primary = number | word | name | "(" expression ")" */
static uint16_t primary(parser *s)
{
    blanks(s);
    if (isdigit((unsigned char)*s->p))
        return number(s);
    if (!strncmp(s->p, "inf", 3) && !isalnum((unsigned char)s->p[3]))
        return number(s);
    if (take(s, "\""))
        return word(s);
    if (isalpha((unsigned char)*s->p))
        return name(s);
    want(s, "(");
    uint16_t at = expression(s);
    want(s, ")");
    return at;
}

/* unary = ["-" | "!" | "~"] unary | primary */
static uint16_t unary(parser *s)
{
    if (s->m->error[0] || ++s->depth > MAX_DEPTH) {
        complain(s->m, "too deep at", s->p, strlen(s->p));
        return 0;
    }
    uint16_t at;
    if (take(s, "-")) {
        at = unary(s);
        if (s->m->nodes[at].kind == OI_M_NUMBER)
            s->m->nodes[at].number = -s->m->nodes[at].number;
        else
            at = call(s, "neg", at, 0, 1);
    } else if (take(s, "!")) {
        at = call(s, "not", unary(s), 0, 1);
    } else if (take(s, "~")) {
        at = call(s, "bit_not", unary(s), 0, 1);
    } else {
        at = primary(s);
    }
    s->depth--;
    return at;
}

/* Binary operators by rising strength; longer spellings first where one begins another. */
static const struct binary {
    const char *token, *helper;
    int level;
    char not_before; /* the token must not be followed by this */
} binaries[] = {
    {"||", "or", 0, 0},       {"&&", "and", 1, 0}, {"|", "bit_or", 2, '|'}, {"^", "bit_xor", 3, 0},
    {"&", "bit_and", 4, '&'}, {"==", "eq", 5, 0},  {"!=", "ne", 5, 0},      {"<=", "le", 6, 0},
    {">=", "ge", 6, 0},       {"<", "lt", 6, '='}, {">", "gt", 6, '='},     {"+", "add", 7, 0},
    {"-", "sub", 7, 0},       {"*", "mul", 8, 0},  {"/", "div", 8, 0},
};

static const struct binary *take_binary(parser *s, int level)
{
    blanks(s);
    for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++) {
        const struct binary *b = &binaries[i];
        size_t n = strlen(b->token);
        if (b->level == level && !strncmp(s->p, b->token, n) &&
            (!b->not_before || s->p[n] != b->not_before)) {
            s->p += n;
            return b;
        }
    }
    return NULL;
}

static uint16_t binary(parser *s, int level)
{
    if (level > 8)
        return unary(s);
    uint16_t at = binary(s, level + 1);
    const struct binary *b;
    while (!s->m->error[0] && (b = take_binary(s, level)) != NULL)
        at = call(s, b->helper, at, binary(s, level + 1), 2);
    return at;
}

/* expression = operators of C by their usual strength */
static uint16_t expression(parser *s)
{
    return binary(s, 0);
}

/* let = identifier "=" expression ";" */
static bool let(parser *s)
{
    const char *start = s->p;
    blanks(s);
    const char *text = s->p;
    while (isalnum((unsigned char)*s->p) || *s->p == '_')
        s->p++;
    size_t n = (size_t)(s->p - text);
    if (n == 0 || !take(s, "=") || *s->p == '=') {
        s->p = start;
        return false;
    }
    if (s->m->n_lets == OI_MEANING_LETS)
        return complain(s->m, "too many definitions at", text, n);
    oi_m_let *l = &s->m->lets[s->m->n_lets];
    l->text = text;
    l->len = (uint32_t)n;
    l->node = expression(s);
    s->m->n_lets++;
    want(s, ";");
    return true;
}

/* meaning = {let} expression */
bool oi_meaning_parse(const char *text, oi_meaning *m)
{
    parser s = {.m = m, .p = text};
    m->n_nodes = m->n_lets = 0;
    m->error[0] = '\0';
    m->source = text;
    while (!m->error[0] && let(&s))
        ;
    if (!m->error[0])
        m->root = expression(&s);
    blanks(&s);
    if (!m->error[0] && *s.p)
        complain(m, "not understood:", s.p, strlen(s.p));
    return !m->error[0];
}

/* -- binding and simplifying -- */

typedef struct binder {
    oi_meaning *m;
    const oi_m_name *names;
    size_t n_names;
} binder;

static bool is_named(const oi_m_node *n, const char *name)
{
    return strlen(name) == n->len && memcmp(name, n->text, n->len) == 0;
}

static const oi_m_name *find_name(const binder *b, const oi_m_node *n)
{
    for (size_t i = 0; i < b->n_names; i++)
        if (is_named(n, b->names[i].name))
            return &b->names[i];
    return NULL;
}

static void become_bool(oi_m_node *n, bool value)
{
    *n = (oi_m_node){.kind = OI_M_BOOL, .number = value};
}

/* `mode == "half_even"`: the word becomes its index, or the whole a truth when mode is bound. */
static void fold_word(binder *b, oi_m_node *n)
{
    oi_m_node *l = &b->m->nodes[n->args[0]], *r = &b->m->nodes[n->args[1]];
    if (l->kind != OI_M_NAME || r->kind != OI_M_WORD)
        return;
    const oi_m_name *name = find_name(b, l);
    int i = 0;
    while (name && name->words && name->words[i] && !is_named(r, name->words[i]))
        i++;
    if (!name || !name->words || !name->words[i]) {
        complain(b->m, "no such word", r->text, r->len);
        return;
    }
    if (name->is_bound)
        become_bool(n, (name->value == i) == (n->helper->name[0] == 'e'));
    else
        *r = (oi_m_node){.kind = OI_M_NUMBER, .number = i};
}

static void fold_logic(binder *b, oi_m_node *n)
{
    bool is_and = n->helper->name[0] == 'a', is_not = n->helper->name[0] == 'n';
    for (unsigned i = 0; i < n->n_args; i++) {
        oi_m_node *arg = &b->m->nodes[n->args[i]];
        if (arg->kind != OI_M_BOOL)
            continue;
        if (is_not)
            become_bool(n, arg->number == 0);
        else if ((arg->number != 0) == is_and) /* neutral: the other one decides */
            *n = b->m->nodes[n->args[1 - i]];
        else
            become_bool(n, !is_and);
        return;
    }
}

static bool is_known(const binder *b, uint16_t at, double *out)
{
    const oi_m_node *n = &b->m->nodes[at];
    const oi_m_name *name = n->kind == OI_M_NAME ? find_name(b, n) : NULL;
    if (n->kind != OI_M_NUMBER && !(name && name->is_number))
        return false;
    *out = name ? name->number : n->number;
    return true;
}

static void fold_compare(binder *b, oi_m_node *n)
{
    static const char *const names[] = {"lt", "le", "gt", "ge", "eq", "ne"};
    double x, y;
    if (b->m->nodes[n->args[1]].kind == OI_M_WORD) {
        fold_word(b, n);
        return;
    }
    if (!is_known(b, n->args[0], &x) || !is_known(b, n->args[1], &y))
        return;
    const bool truths[] = {x<y, x <= y, x> y, x >= y, x == y, x != y};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(n->helper->name, names[i]) == 0) {
            become_bool(n, truths[i]);
            return;
        }
}

/* What changes nothing, whatever the other operand, NaN and signs of zero included. */
static void fold_neutral(binder *b, oi_m_node *n)
{
    const char *name = n->helper->name;
    for (unsigned i = 0; n->n_args == 2 && i < 2; i++) {
        double v;
        if (!is_known(b, n->args[i], &v))
            continue;
        if ((v == 1 && strcmp(name, "mul") == 0) || (v == -HUGE_VAL && strcmp(name, "max") == 0) ||
            (v == HUGE_VAL && strcmp(name, "min") == 0)) {
            *n = b->m->nodes[n->args[1 - i]];
            return;
        }
    }
}

static void fold(binder *b, uint16_t at)
{
    oi_m_node *n = &b->m->nodes[at];
    if (n->kind == OI_M_NAME) {
        const oi_m_name *name = find_name(b, n);
        if (name && name->is_bound && !name->words)
            become_bool(n, name->value != 0);
        return;
    }
    if (n->kind != OI_M_CALL)
        return;
    if (n->helper->rule == OI_M_GIVEN) {
        const oi_m_name *name = find_name(b, &b->m->nodes[n->args[0]]);
        become_bool(n, name && !name->is_absent);
        return;
    }
    for (unsigned i = 0; i < n->n_args; i++)
        fold(b, n->args[i]);
    if (n->helper->rule == OI_M_COMPARE)
        fold_compare(b, n);
    else if (n->helper->rule == OI_M_ARITH)
        fold_neutral(b, n);
    else if (n->helper->rule == OI_M_LOGIC)
        fold_logic(b, n);
    else if (n->helper->rule == OI_M_SELECT && b->m->nodes[n->args[0]].kind == OI_M_BOOL)
        *n = b->m->nodes[n->args[b->m->nodes[n->args[0]].number != 0 ? 1 : 2]];
}

/* -- typing -- */

static oi_dtype type(binder *b, uint16_t at, oi_dtype wanted);

/* Arguments from `first` on share a type: that of the first one that has one, else `wanted`. */
static oi_dtype shared_type(binder *b, const oi_m_node *n, unsigned first, oi_dtype wanted)
{
    oi_dtype t = OI_NONE;
    for (unsigned i = first; i < n->n_args && t == OI_NONE; i++)
        t = type(b, n->args[i], OI_NONE);
    if (t == OI_NONE)
        t = wanted;
    for (unsigned i = first; i < n->n_args; i++) {
        oi_dtype found = type(b, n->args[i], t);
        if (found != t)
            complain(b->m, "arguments of different types:", n->helper->name,
                     strlen(n->helper->name));
    }
    return t;
}

static oi_dtype type_call(binder *b, oi_m_node *n, oi_dtype wanted)
{
    switch (n->helper->rule) {
    case OI_M_ARITH: return shared_type(b, n, 0, wanted);
    case OI_M_COMPARE:
    case OI_M_TEST: shared_type(b, n, 0, OI_NONE); return OI_BOOL;
    case OI_M_LOGIC: shared_type(b, n, 0, OI_BOOL); return OI_BOOL;
    case OI_M_SELECT: type(b, n->args[0], OI_BOOL); return shared_type(b, n, 1, wanted);
    case OI_M_SHIFT: type(b, n->args[1], OI_I64); return type(b, n->args[0], wanted);
    case OI_M_COUNT: type(b, n->args[0], OI_NONE); return OI_U8;
    case OI_M_CONVERT: type(b, n->args[0], OI_NONE); return wanted;
    case OI_M_INDEX: type(b, n->args[0], OI_NONE); return OI_I64;
    case OI_M_LIMIT: return wanted;
    case OI_M_GIVEN: return OI_BOOL;
    }
    return OI_NONE;
}

static oi_dtype type_name(binder *b, const oi_m_node *n)
{
    for (size_t i = 0; i < b->m->n_lets; i++)
        if (b->m->lets[i].len == n->len && !memcmp(b->m->lets[i].text, n->text, n->len))
            return b->m->nodes[b->m->lets[i].node].type;
    const oi_m_name *name = find_name(b, n);
    if (name && !name->is_absent)
        return name->type;
    complain(b->m, "unknown name", n->text, n->len);
    return OI_NONE;
}

/* Results wrap at the width of a packed type, and so do literals: 1 is -1 in i1. A literal that is
 * only stored would wrap by itself, but a fused consumer uses it as it is. */
static double wrap_literal(oi_dtype t, double v)
{
    const bool is_signed = t == OI_I1 || t == OI_I2 || t == OI_I4;
    if (!is_signed && t != OI_U1 && t != OI_U2 && t != OI_U4)
        return v;
    const int64_t count = (int64_t)1 << oi_dtype_bits(t), rest = (int64_t)v & (count - 1);
    return (double)(is_signed && rest >= count / 2 ? rest - count : rest);
}

static oi_dtype type(binder *b, uint16_t at, oi_dtype wanted)
{
    oi_m_node *n = &b->m->nodes[at];
    switch (n->kind) {
    case OI_M_NUMBER:
        n->type = wanted;
        n->number = wrap_literal(wanted, n->number);
        break;
    case OI_M_BOOL: n->type = OI_BOOL; break;
    case OI_M_NAME: n->type = type_name(b, n); break;
    case OI_M_CALL: n->type = type_call(b, n, wanted); break;
    case OI_M_WORD: complain(b->m, "a word only makes sense beside == :", n->text, n->len); break;
    }
    return n->type;
}

bool oi_meaning_bind(oi_meaning *m, const oi_m_name *names, size_t n_names, oi_dtype wanted)
{
    binder b = {m, names, n_names};
    for (size_t i = 0; i < m->n_lets && !m->error[0]; i++) {
        fold(&b, m->lets[i].node);
        /* one that nothing inside says the type of has the result's */
        if (type(&b, m->lets[i].node, OI_NONE) == OI_NONE && !m->error[0] &&
            type(&b, m->lets[i].node, wanted) == OI_NONE)
            complain(m, "no type for", m->lets[i].text, m->lets[i].len);
    }
    if (!m->error[0])
        fold(&b, m->root);
    if (!m->error[0] && type(&b, m->root, wanted) != wanted)
        complain(m, "the result has another type:", m->source, strlen(m->source));
    return !m->error[0];
}

static bool uses(const oi_meaning *m, uint16_t at, const char *name)
{
    const oi_m_node *n = &m->nodes[at];
    if (n->kind == OI_M_NAME)
        return is_named(n, name);
    for (unsigned i = 0; n->kind == OI_M_CALL && i < n->n_args; i++)
        if (uses(m, n->args[i], name))
            return true;
    return false;
}

bool oi_meaning_uses(const oi_meaning *m, const char *name)
{
    for (size_t i = 0; i < m->n_lets; i++)
        if (uses(m, m->lets[i].node, name))
            return true;
    return uses(m, m->root, name);
}
