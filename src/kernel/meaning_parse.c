/* meaning_parse.c: parses the expressions of the op registry, when that is built.
 *
 * The grammar is that of C's expressions without assignment and pointers. Numbers have no type of
 * their own: they take that of their surroundings. */
#include "kernel/meaning.h"

#include <ctype.h>

static oi_helper_id find_helper(const char *name, size_t n)
{
    for (size_t i = 0; i < OI_H_COUNT; i++)
        if (strlen(oi_m_helpers[i].name) == n && memcmp(oi_m_helpers[i].name, name, n) == 0)
            return (oi_helper_id)i;
    return OI_H_COUNT;
}

static bool complain(oi_meaning *m, const char *what, const char *text, size_t n)
{
    if (!m->error[0])
        snprintf(m->error, sizeof m->error, "%s '%.*s'", what, (int)n, text);
    return false;
}

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

static uint16_t call(parser *s, oi_helper_id helper, uint16_t a, uint16_t b, unsigned n)
{
    uint16_t at = new_node(s, OI_M_CALL);
    oi_m_node *node = &s->m->nodes[at];
    node->helper = helper;
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
    const oi_helper_id helper = find_helper(text, n);
    uint16_t args[OI_M_ARGS] = {0};
    unsigned n_args = 0;
    if (helper == OI_H_COUNT)
        complain(s->m, "unknown helper", text, n);
    while (!s->m->error[0] && !take(s, ")")) {
        if (n_args)
            want(s, ",");
        uint16_t arg = expression(s);
        if (n_args < OI_M_ARGS)
            args[n_args] = arg;
        n_args++;
    }
    if (helper != OI_H_COUNT && n_args != oi_m_helpers[helper].n_args)
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
            at = call(s, OI_H_NEG, at, 0, 1);
    } else if (take(s, "!")) {
        at = call(s, OI_H_NOT, unary(s), 0, 1);
    } else if (take(s, "~")) {
        at = call(s, OI_H_BIT_NOT, unary(s), 0, 1);
    } else {
        at = primary(s);
    }
    s->depth--;
    return at;
}

/* Binary operators by rising strength; longer spellings first where one begins another. */
static const struct binary {
    const char *token;
    oi_helper_id helper;
    int level;
    char not_before; /* the token must not be followed by this */
} binaries[] = {
    {"||", OI_H_OR, 0, 0},     {"&&", OI_H_AND, 1, 0},      {"|", OI_H_BIT_OR, 2, '|'},
    {"^", OI_H_BIT_XOR, 3, 0}, {"&", OI_H_BIT_AND, 4, '&'}, {"==", OI_H_EQ, 5, 0},
    {"!=", OI_H_NE, 5, 0},     {"<=", OI_H_LE, 6, 0},       {">=", OI_H_GE, 6, 0},
    {"<", OI_H_LT, 6, '='},    {">", OI_H_GT, 6, '='},      {"+", OI_H_ADD, 7, 0},
    {"-", OI_H_SUB, 7, 0},     {"*", OI_H_MUL, 8, 0},       {"/", OI_H_DIV, 8, 0},
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
