/* failing.c: whether a statement may end a step with an error, judged from the plan alone: by the
 * range of every expression, index and length. */
#include "plan/check.h"

/* -- ranges of index expressions -- */

typedef struct range {
    int64_t low, high;
    bool fails; /* some operation on the way may overflow or divide by zero */
} range;

static const range anything = {INT64_MIN, INT64_MAX, false};

static range of_index(const oi_program *p, uint32_t index)
{
    range r = {INT64_MAX, INT64_MIN, false};
    for (size_t i = 0; i < p->graph->nodes.n; i++) {
        const oi_pnode *n = &p->nodes[i];
        int64_t from, to;
        if (n->kind != OI_NODE_LOOP || n->as.loop.index != index)
            continue;
        if (!oi_code_is_int(&n->as.loop.start, &from) || !oi_code_is_int(&n->as.loop.end, &to))
            return anything;
        r.low = from < r.low ? from : r.low;
        r.high = to > r.high ? to : r.high;
    }
    return r.low <= r.high ? r : (range){0, 0, false};
}

static range of_leaf(const oi_program *p, const oi_ins *i)
{
    switch (i->kind) {
    case OI_INS_INT: return (range){i->value, i->value, false};
    case OI_INS_INDEX: return of_index(p, i->id);
    case OI_INS_VAR:
        return oi_dtype_bits(p->vars[i->id].dtype) < 64 ? (range){INT32_MIN, UINT32_MAX, false}
                                                        : anything;
    default: return (range){0, (int64_t)1 << 48, false}; /* a size of what is in memory */
    }
}

static bool apply(oi_ins_kind kind, int64_t a, int64_t b, int64_t *out)
{
    switch (kind) {
    case OI_INS_ADD: return !__builtin_add_overflow(a, b, out);
    case OI_INS_SUB: return !__builtin_sub_overflow(a, b, out);
    default: return !__builtin_mul_overflow(a, b, out);
    }
}

/* The extremes of a sum or product are at the ends of its operands' ranges. */
static range combine(oi_ins_kind kind, range x, range y)
{
    const int64_t a[2] = {x.low, x.high}, b[2] = {y.low, y.high};
    range r = {INT64_MAX, INT64_MIN, x.fails || y.fails};
    for (int i = 0; i < 4; i++) {
        int64_t v;
        if (!apply(kind, a[i / 2], b[i % 2], &v))
            return (range){INT64_MIN, INT64_MAX, true};
        r.low = v < r.low ? v : r.low;
        r.high = v > r.high ? v : r.high;
    }
    return r;
}

/* A quotient is no larger than the dividend, a remainder no larger than the divisor. */
static range divide(oi_ins_kind kind, range x, range y)
{
    const range of = kind == OI_INS_DIV ? x : y;
    const bool is_open = of.low == INT64_MIN;
    const int64_t most = is_open || -of.low > of.high ? (is_open ? INT64_MAX : -of.low) : of.high;
    const bool may_be_zero = y.low <= 0 && y.high >= 0;
    const bool may_overflow =
        kind == OI_INS_DIV && x.low == INT64_MIN && y.low <= -1 && y.high >= -1;
    return (range){-most, most, x.fails || y.fails || may_be_zero || may_overflow};
}

/* The lesser, the greater, or the end of a slice: never further away than one of the two. */
static range choose(range x, range y)
{
    return (range){x.low < y.low ? x.low : y.low, x.high > y.high ? x.high : y.high,
                   x.fails || y.fails};
}

static range range_of(const oi_program *p, const oi_code *code)
{
    range at[OI_CODE_STACK] = {{0, 0, false}};
    size_t n = 0;
    for (uint32_t k = 0; k < code->n; k++) {
        const oi_ins *i = &code->at[k];
        if (i->kind < OI_INS_NEG) {
            at[n++] = of_leaf(p, i);
        } else if (i->kind == OI_INS_NEG) {
            at[n - 1] = combine(OI_INS_SUB, (range){0, 0, false}, at[n - 1]);
        } else {
            n--;
            at[n - 1] = i->kind == OI_INS_DIV || i->kind == OI_INS_MOD
                            ? divide(i->kind, at[n - 1], at[n])
                        : i->kind >= OI_INS_MIN ? choose(at[n - 1], at[n])
                                                : combine(i->kind, at[n - 1], at[n]);
        }
    }
    return at[0];
}

static bool value_fails(const oi_program *p, const oi_pvalue *v)
{
    return v->kind == OI_PV_CODE && range_of(p, &v->code).fails;
}

/* -- entries of tables -- */

bool oi_entry_misses(const oi_plan *u, uint32_t graph, const oi_port *port)
{
    const oi_tensor *t = &u->tensors.at[port->tensor];
    const oi_program *p = u->graphs.at[graph].program;
    uint64_t e = 0;
    bool is_constant = true, misses = false;
    for (uint32_t i = 0; !t->n_table && i < port->n_entry; i++) /* a part of the state */
        misses |= range_of(p, &port->entry[i]).fails;
    for (uint32_t i = 0; i < t->n_table && i < port->n_entry; i++) {
        int64_t v = 0;
        misses |= !oi_code_is_below(p, &port->entry[i], t->table[i]);
        is_constant &= oi_code_is_int(&port->entry[i], &v);
        e = e * (uint64_t)t->table[i] + (uint64_t)v;
    }
    if (misses || port->n_entry == 0 || !t->sources)
        return misses;
    if (is_constant)
        return t->sources[e] == OI_NO_SOURCE;
    for (uint64_t i = 0; i < t->n_entries; i++)
        misses |= t->sources[i] == OI_NO_SOURCE;
    return misses;
}

/* -- statements -- */

static bool kernel_fails(const oi_plan *u, uint32_t graph, const oi_skernel *k)
{
    bool fails = k->can_fail;
    for (size_t i = 0; i < k->ports.n; i++)
        fails |= oi_entry_misses(u, graph, &k->ports.at[i]);
    for (size_t i = 0; i < k->scalars.n; i++)
        fails |= !k->scalars.at[i].is_length &&
                 value_fails(u->graphs.at[graph].program, &k->scalars.at[i].value);
    return fails;
}

static bool codes_fail(const oi_program *p, const oi_code *codes, uint32_t n)
{
    bool fails = false;
    for (uint32_t i = 0; codes && i < n; i++)
        fails |= range_of(p, &codes[i]).fails;
    return fails;
}

static bool resize_fails(const oi_plan *u, const oi_program *p, const oi_stmt *s)
{
    return codes_fail(p, s->resize->sizes, u->tensors.at[s->a.tensor].rank) ||
           codes_fail(p, s->resize->counts, s->resize->n_counts);
}

bool oi_stmt_fails(const oi_plan *u, uint32_t graph, const oi_stmt *s)
{
    const oi_program *p = u->graphs.at[graph].program;
    switch (s->kind) {
    case OI_STMT_KERNEL: return kernel_fails(u, graph, &u->kernels.at[s->kernel]);
    case OI_STMT_SET: return oi_entry_misses(u, graph, &s->a) || value_fails(p, &s->value);
    case OI_STMT_LOOP:
        return range_of(p, &s->node->as.loop.start).fails ||
               range_of(p, &s->node->as.loop.end).fails;
    case OI_STMT_LIMIT: return true;
    case OI_STMT_SHAPE:
    case OI_STMT_NEED: return s->n_checks > 0;
    case OI_STMT_RESIZE: return resize_fails(u, p, s);
    case OI_STMT_LOG:
        return oi_entry_misses(u, graph, &s->a) ||
               codes_fail(p, s->a.count, u->tensors.at[s->a.tensor].rank);
    case OI_STMT_VIEW:
        return oi_entry_misses(u, graph, &s->a) ||
               (s->kernel != OI_NO_ID && kernel_fails(u, graph, &u->kernels.at[s->kernel]));
    case OI_STMT_LENGTH: return !(u->tensors.at[s->b.tensor].run_dims >> s->limit & 1);
    case OI_STMT_YIELD:
    case OI_STMT_AWAIT: return s->node->source->block == p->entry;
    case OI_STMT_CHECK:
    case OI_STMT_PIPELINE:
    case OI_STMT_BRANCH:
    case OI_STMT_SIZES:
    case OI_STMT_BARRIER:
    case OI_STMT_RETURN:
    case OI_STMT_GONE: return false;
    }
    return true;
}
