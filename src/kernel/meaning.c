/* meaning.c: binding, folding and typing the expressions of the op registry. */
#include "kernel/meaning.h"

#include "base/base.h"

#include <math.h>

const oi_m_helper oi_m_helpers[OI_H_COUNT] = {
#define ROW(name, text, n, rule, weight) [OI_H_##name] = {text, n, OI_M_##rule, OI_M_##weight},
    OI_M_HELPERS(ROW)
#undef ROW
};

static oi_m_rule rule_of(const oi_m_node *n)
{
    return oi_m_helpers[n->helper].rule;
}

static bool complain(oi_meaning *m, const char *what, const char *text, size_t n)
{
    if (!m->error[0])
        snprintf(m->error, sizeof m->error, "%s '%.*s'", what, (int)n, text);
    return false;
}

void oi_meaning_start(oi_meaning *m, const oi_m_expr *e)
{
    memcpy(m->nodes, e->nodes, e->n_nodes * sizeof *m->nodes);
    if (e->n_lets)
        memcpy(m->lets, e->lets, e->n_lets * sizeof *m->lets);
    m->n_nodes = e->n_nodes;
    m->n_lets = e->n_lets;
    m->root = e->root;
    m->source = "";
    m->error[0] = '\0';
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
        become_bool(n, (name->value == i) == (n->helper == OI_H_EQ));
    else
        *r = (oi_m_node){.kind = OI_M_NUMBER, .number = i};
}

static void fold_logic(binder *b, oi_m_node *n)
{
    bool is_and = n->helper == OI_H_AND, is_not = n->helper == OI_H_NOT;
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
    double x, y;
    if (b->m->nodes[n->args[1]].kind == OI_M_WORD) {
        fold_word(b, n);
        return;
    }
    if (!is_known(b, n->args[0], &x) || !is_known(b, n->args[1], &y))
        return;
    switch (n->helper) {
    case OI_H_LT: become_bool(n, x < y); break;
    case OI_H_LE: become_bool(n, x <= y); break;
    case OI_H_GT: become_bool(n, x > y); break;
    case OI_H_GE: become_bool(n, x >= y); break;
    case OI_H_EQ: become_bool(n, x == y); break;
    default: become_bool(n, x != y); break;
    }
}

/* What changes nothing, whatever the other operand, NaN and signs of zero included. */
static void fold_neutral(binder *b, oi_m_node *n)
{
    for (unsigned i = 0; n->n_args == 2 && i < 2; i++) {
        double v;
        if (!is_known(b, n->args[i], &v))
            continue;
        if ((v == 1 && n->helper == OI_H_MUL) || (v == -HUGE_VAL && n->helper == OI_H_MAX) ||
            (v == HUGE_VAL && n->helper == OI_H_MIN)) {
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
    if (rule_of(n) == OI_M_GIVEN) {
        const oi_m_name *name = find_name(b, &b->m->nodes[n->args[0]]);
        become_bool(n, name && !name->is_absent);
        return;
    }
    for (unsigned i = 0; i < n->n_args; i++)
        fold(b, n->args[i]);
    if (rule_of(n) == OI_M_COMPARE)
        fold_compare(b, n);
    else if (rule_of(n) == OI_M_ARITH)
        fold_neutral(b, n);
    else if (rule_of(n) == OI_M_LOGIC)
        fold_logic(b, n);
    else if (rule_of(n) == OI_M_SELECT && b->m->nodes[n->args[0]].kind == OI_M_BOOL)
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
            complain(b->m, "arguments of different types:", oi_m_helpers[n->helper].name,
                     strlen(oi_m_helpers[n->helper].name));
    }
    return t;
}

static oi_dtype type_call(binder *b, oi_m_node *n, oi_dtype wanted)
{
    switch (rule_of(n)) {
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

/* -- folding what is typed: integers -- */

#define EXACT 0x1p53 /* integers below it are exact as doubles */

static bool is_integer(oi_dtype t)
{
    return t != OI_NONE && t != OI_BOOL && t != OI_BITSET && !oi_dtype_is_float(t);
}

/* The value of an integer that is known now: a literal, an attribute, a limit of its type. */
static bool is_known_integer(const binder *b, uint16_t at, double *out)
{
    const oi_m_node *n = &b->m->nodes[at];
    const oi_dtype_info *t = oi_dtype_get(n->type);
    if (is_known(b, at, out))
        return fabs(*out) <= EXACT;
    if (n->kind != OI_M_CALL || rule_of(n) != OI_M_LIMIT)
        return false;
    *out = n->helper == OI_H_LOWEST ? (double)t->min : (double)t->max;
    return fabs(*out) <= EXACT;
}

static void become_integer(oi_m_node *n, double v)
{
    const oi_dtype_info *t = oi_dtype_get(n->type);
    if (fabs(v) <= EXACT && v >= (double)t->min && v <= (double)t->max)
        *n = (oi_m_node){.kind = OI_M_NUMBER, .type = n->type, .number = v};
}

/* Both operands are known. */
static void compute_integer(oi_m_node *n, double x, double y)
{
    switch (n->helper) {
    case OI_H_ADD: become_integer(n, x + y); break;
    case OI_H_SUB: become_integer(n, x - y); break;
    case OI_H_MUL: become_integer(n, x * y); break;
    case OI_H_MIN: become_integer(n, x < y ? x : y); break;
    case OI_H_MAX: become_integer(n, x > y ? x : y); break;
    default: break;
    }
}

/* -1: the operand is the lowest of its type, 1: the highest, 0: neither, as far as is known. */
static int limit_of(const binder *b, uint16_t at)
{
    const oi_m_node *n = &b->m->nodes[at];
    const oi_m_name *name = n->kind == OI_M_NAME ? find_name(b, n) : NULL;
    if (n->kind == OI_M_CALL && rule_of(n) == OI_M_LIMIT)
        return n->helper == OI_H_LOWEST ? -1 : 1;
    return name ? name->limit : 0;
}

/* Whether the known operand `v`, the left one or the right one, changes nothing. */
static bool is_neutral(const oi_m_node *n, double v, bool is_left)
{
    const oi_dtype_info *t = oi_dtype_get(n->type);
    switch (n->helper) {
    case OI_H_ADD: return v == 0;
    case OI_H_SUB:
    case OI_H_SHL:
    case OI_H_SHR: return v == 0 && !is_left;
    case OI_H_MIN: return v >= (double)t->max && t->max <= (uint64_t)EXACT;
    case OI_H_MAX: return v <= (double)t->min && t->min >= -(int64_t)EXACT;
    default: return false;
    }
}

/* A conversion to the type that the argument has; a choice between equal numbers. */
static void fold_identity(binder *b, oi_m_node *n)
{
    const oi_m_rule rule = rule_of(n);
    double v[2];
    if ((rule == OI_M_CONVERT || rule == OI_M_INDEX) && b->m->nodes[n->args[0]].type == n->type)
        *n = b->m->nodes[n->args[0]];
    else if (rule == OI_M_SELECT && is_known_integer(b, n->args[1], &v[0]) &&
             is_known_integer(b, n->args[2], &v[1]) && v[0] == v[1])
        *n = b->m->nodes[n->args[1]];
}

static void fold_integers(binder *b, uint16_t at)
{
    oi_m_node *n = &b->m->nodes[at];
    double v[2];
    bool known[2];
    for (unsigned i = 0; n->kind == OI_M_CALL && i < n->n_args; i++)
        fold_integers(b, n->args[i]);
    if (n->kind != OI_M_CALL || !is_integer(n->type))
        return;
    fold_identity(b, n);
    if (n->kind != OI_M_CALL || n->n_args != 2)
        return;
    for (unsigned i = 0; i < 2; i++)
        known[i] = is_known_integer(b, n->args[i], &v[i]);
    if (known[0] && known[1] && rule_of(n) == OI_M_ARITH) {
        compute_integer(n, v[0], v[1]);
        return;
    }
    if (n->helper == OI_H_MUL && ((known[0] && v[0] == 0) || (known[1] && v[1] == 0))) {
        become_integer(n, 0);
        return;
    }
    for (unsigned i = 0; i < 2; i++)
        if ((known[i] && is_neutral(n, v[i], i == 0)) ||
            (n->helper == OI_H_MIN && limit_of(b, n->args[i]) > 0) ||
            (n->helper == OI_H_MAX && limit_of(b, n->args[i]) < 0)) {
            *n = b->m->nodes[n->args[1 - i]];
            return;
        }
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
        else if (!m->error[0])
            fold_integers(&b, m->lets[i].node);
    }
    if (!m->error[0])
        fold(&b, m->root);
    if (!m->error[0] && type(&b, m->root, wanted) != wanted)
        complain(m, "the result has another type:", m->source, strlen(m->source));
    if (!m->error[0])
        fold_integers(&b, m->root);
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

bool oi_meaning_needs(const oi_meaning *m, size_t let)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)m->lets[let].len, m->lets[let].text);
    for (size_t i = let + 1; i < m->n_lets; i++)
        if (oi_meaning_needs(m, i) && uses(m, m->lets[i].node, name))
            return true;
    return uses(m, m->root, name);
}

bool oi_m_is_name(const oi_m_expr *e, const char *name)
{
    const oi_m_node *n = &e->nodes[e->root];
    return e->n_lets == 0 && n->kind == OI_M_NAME && is_named(n, name);
}

bool oi_m_uses(const oi_m_expr *e, const char *name)
{
    for (size_t i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].kind == OI_M_NAME && is_named(&e->nodes[i], name))
            return true;
    return false;
}

bool oi_m_asks(const oi_m_expr *e, const char *name)
{
    for (size_t i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].kind == OI_M_CALL && e->nodes[i].helper == OI_H_GIVEN &&
            is_named(&e->nodes[e->nodes[i].args[0]], name))
            return true;
    return false;
}

unsigned oi_m_count(const oi_m_expr *e, oi_m_weight weight)
{
    unsigned n = 0;
    for (size_t i = 0; i < e->n_nodes; i++)
        n += e->nodes[i].kind == OI_M_CALL && oi_m_helpers[e->nodes[i].helper].weight == weight;
    return n;
}
