/* codes.c: which operations of index expressions may leave 64 bits or divide by zero. Magnitudes of
 * loop indices, sizes and narrow variables are bounded; those of 64-bit variables are not. */
#include "plan/plan.h"

#define ANY       UINT64_MAX          /* no bound is known */
#define MOST_SIZE ((uint64_t)1 << 48) /* of an axis of a tensor in memory */

static uint64_t magnitude(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

static uint64_t most_of_index(const oi_program *p, uint32_t index)
{
    uint64_t most = 0;
    for (size_t i = 0; i < p->graph->nodes.n; i++) {
        const oi_pnode *n = &p->nodes[i];
        int64_t from, to;
        if (n->kind != OI_NODE_LOOP || n->as.loop.index != index)
            continue;
        if (!oi_code_is_int(&n->as.loop.start, &from) || !oi_code_is_int(&n->as.loop.end, &to))
            return ANY;
        most = magnitude(from) > most ? magnitude(from) : most;
        most = magnitude(to) > most ? magnitude(to) : most;
    }
    return most;
}

/* The largest magnitude of a sum or product; ANY if it may not fit an int64_t. */
static uint64_t most_of(oi_ins_kind kind, uint64_t a, uint64_t b)
{
    uint64_t most;
    const bool over = kind == OI_INS_MUL ? __builtin_mul_overflow(a, b, &most)
                                         : __builtin_add_overflow(a, b, &most);
    return a == ANY || b == ANY || over || most > INT64_MAX ? ANY : most;
}

static uint64_t most_of_leaf(const oi_program *p, const oi_ins *i)
{
    switch (i->kind) {
    case OI_INS_INT: return magnitude(i->value);
    case OI_INS_INDEX: return most_of_index(p, i->id);
    case OI_INS_VAR: return oi_dtype_bits(p->vars[i->id].dtype) < 64 ? UINT32_MAX : ANY;
    default: return MOST_SIZE; /* a size, or a growth */
    }
}

/* `by`: the divisor if it is constant, else 0. */
static uint8_t division_checks(oi_ins_kind kind, uint64_t most, int64_t by)
{
    const bool over = kind == OI_INS_DIV && most == ANY && (by == 0 || by == -1);
    return (uint8_t)((by == 0 ? OI_CHECK_ZERO : 0) | (over ? OI_CHECK_OVERFLOW : 0));
}

/* Returns all checks together; checks[k], unless NULL, are those of instruction k. */
static uint8_t find_checks(const oi_program *p, const oi_code *code, uint8_t *checks)
{
    uint64_t most[OI_CODE_STACK];
    uint8_t all = 0;
    size_t n = 0;
    for (uint32_t k = 0; k < code->n; k++) {
        const oi_ins *i = &code->at[k];
        uint8_t own = 0;
        if (i->kind < OI_INS_NEG) {
            most[n++] = most_of_leaf(p, i);
        } else if (i->kind == OI_INS_DIV || i->kind == OI_INS_MOD) {
            const oi_ins *by = &code->at[k - 1];
            n--;
            own = division_checks(i->kind, most[n - 1], by->kind == OI_INS_INT ? by->value : 0);
            most[n - 1] = i->kind == OI_INS_DIV ? most[n - 1] : most[n];
        } else if (i->kind == OI_INS_MIN || i->kind == OI_INS_MAX || i->kind == OI_INS_END) {
            n--;
            most[n - 1] = most[n - 1] > most[n] ? most[n - 1] : most[n];
        } else {
            n -= i->kind != OI_INS_NEG;
            most[n - 1] = most_of(i->kind, most[n - 1], i->kind == OI_INS_NEG ? 0 : most[n]);
            own = most[n - 1] == ANY ? OI_CHECK_OVERFLOW : 0;
        }
        if (checks)
            checks[k] = own;
        all |= own;
    }
    return all;
}

const uint8_t *oi_code_checks(oi_arena *a, const oi_program *p, const oi_code *code)
{
    uint8_t *checks = oi_arena_alloc(a, code->n + 1);
    (void)find_checks(p, code, checks);
    return checks;
}

bool oi_code_may_fail(const oi_program *p, const oi_code *code)
{
    return find_checks(p, code, NULL) != 0;
}

/* -- entries of tables -- */

/* Whether the entry is constant and exists in the model. */
static bool is_there(const oi_tensor *t, const oi_port *p)
{
    uint64_t e = 0;
    int64_t v;
    for (uint32_t i = 0; i < p->n_entry; i++) {
        if (!oi_code_is_int(&p->entry[i], &v) || v < 0 || v >= t->table[i])
            return false;
        e = e * (uint64_t)t->table[i] + (uint64_t)v;
    }
    return t->sources[e] != OI_NO_SOURCE;
}

bool oi_entry_may_lack(const oi_tensor *t, const oi_port *p)
{
    bool has_holes = false;
    for (uint64_t e = 0; t->sources && e < t->n_entries; e++)
        has_holes |= t->sources[e] == OI_NO_SOURCE;
    return p->n_entry && has_holes && !is_there(t, p);
}

bool oi_entry_may_fail(const oi_program *p, const oi_tensor *t, const oi_port *port)
{
    bool may = oi_entry_may_lack(t, port);
    for (uint32_t i = 0; i < port->n_entry; i++)
        may |= (t->n_table && !oi_code_is_below(p, &port->entry[i], t->table[i])) ||
               oi_code_may_fail(p, &port->entry[i]);
    return may;
}
