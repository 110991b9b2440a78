/* flow_wires.c: wires, made one after the other. Each knows the least and the greatest number it
 * can hold, so what is a constant becomes one, and no wire is wider than it must be. Sums are
 * exact; what a type cannot hold wraps where its value is used as one of the type. */
#include "emit/hdl/flow.h"

#include <inttypes.h>

static const oi_wire *at(const oi_wires *w, uint32_t id)
{
    return &w->list.at[id];
}

static oi_range range_of(const oi_wires *w, uint32_t id)
{
    return at(w, id)->range;
}

bool oi_wire_is_const(const oi_wires *w, uint32_t id, int64_t *value)
{
    *value = at(w, id)->value;
    return at(w, id)->kind == OI_WIRE_CONST;
}

uint32_t oi_range_bits(oi_range r)
{
    uint32_t bits = 1;
    while (bits < 64 && (r.from < -((int64_t)1 << (bits - 1)) || r.to >= (int64_t)1 << (bits - 1)))
        bits++;
    return bits;
}

static const char *key_of(const oi_wires *w, const oi_wire *x)
{
    oi_buf b = {0};
    oi_buf_printf(&b, "%d %d %d %d %" PRId64, (int)x->kind, (int)x->helper, (int)x->type,
                  (int)x->is_truth, x->value);
    for (uint32_t i = 0; i < x->n_args; i++)
        oi_buf_printf(&b, " %u:%d", x->args[i], (int)x->of[i]);
    const uint64_t n = x->kind == OI_WIRE_LOOK ? (uint64_t)x->value : w->n_phases;
    for (uint64_t p = 0; x->phases && p < n; p++)
        oi_buf_printf(&b, ",%" PRId64, x->phases[p]);
    return oi_buf_to_arena(&b, w->arena);
}

static uint32_t put(oi_wires *w, oi_wire x)
{
    if (x.kind != OI_WIRE_CONST && x.range.from == x.range.to)
        return x.is_truth ? oi_wire_truth(w, x.range.from) : oi_wire_const(w, x.range.from);
    const uint32_t id = oi_map_put(&w->known, key_of(w, &x), (uint32_t)w->list.n);
    if (id == w->list.n)
        *OI_PUSH(w->arena, &w->list) = x;
    return id;
}

uint32_t oi_wire_const(oi_wires *w, int64_t value)
{
    return put(w, (oi_wire){.kind = OI_WIRE_CONST, .value = value, .range = {value, value}});
}

uint32_t oi_wire_truth(oi_wires *w, bool value)
{
    return put(
        w, (oi_wire){
               .kind = OI_WIRE_CONST, .value = value, .is_truth = true, .range = {value, value}});
}

uint32_t oi_wire_in(oi_wires *w, uint32_t stream, uint64_t element, oi_range range)
{
    return put(w, (oi_wire){.kind = OI_WIRE_IN,
                            .args = {stream},
                            .n_args = 1,
                            .value = (int64_t)element,
                            .range = range});
}

uint32_t oi_wire_by_phase(oi_wires *w, const uint32_t *each)
{
    oi_wire x = {
        .kind = OI_WIRE_TABLE, .range = range_of(w, each[0]), .is_truth = at(w, each[0])->is_truth};
    int64_t *phases = oi_arena_alloc(w->arena, w->n_phases * sizeof *phases), ignored;
    bool all_equal = true;
    for (uint32_t p = 0; p < w->n_phases; p++) {
        all_equal &= each[p] == each[0];
        x.range = oi_range_either(x.range, range_of(w, each[p]));
        if (!oi_wire_is_const(w, each[p], &ignored))
            x.kind = OI_WIRE_PICK;
    }
    if (all_equal)
        return each[0];
    for (uint32_t p = 0; p < w->n_phases; p++)
        phases[p] = x.kind == OI_WIRE_PICK ? (int64_t)each[p] : at(w, each[p])->value;
    x.phases = phases;
    return put(w, x);
}

uint32_t oi_wire_look(oi_wires *w, const int64_t *values, uint32_t n, uint32_t place)
{
    oi_wire x = {.kind = OI_WIRE_LOOK,
                 .args = {place},
                 .n_args = 1,
                 .phases = values,
                 .value = n,
                 .range = {INT64_MAX, INT64_MIN}};
    for (uint32_t i = 0; i < n; i++)
        x.range = oi_range_either(x.range, (oi_range){values[i], values[i]});
    return put(w, x);
}

/* -- arithmetic, exact modulo 2^64 -- */

static uint32_t binary(oi_wires *w, oi_wire_kind kind, uint32_t a, uint32_t b, oi_range range)
{
    return put(w, (oi_wire){.kind = kind, .args = {a, b}, .n_args = 2, .range = range});
}

static uint32_t add(oi_wires *w, uint32_t a, uint32_t b)
{
    int64_t v;
    if (oi_wire_is_const(w, a, &v) && v == 0)
        return b;
    if (oi_wire_is_const(w, b, &v) && v == 0)
        return a;
    return binary(w, OI_WIRE_ADD, a, b, oi_range_add(range_of(w, a), range_of(w, b)));
}

static uint32_t negative(oi_wires *w, uint32_t a)
{
    if (at(w, a)->kind == OI_WIRE_NEG)
        return at(w, a)->args[0];
    return put(w, (oi_wire){.kind = OI_WIRE_NEG,
                            .args = {a},
                            .n_args = 1,
                            .range = oi_range_negative(range_of(w, a))});
}

static uint32_t subtract(oi_wires *w, uint32_t a, uint32_t b)
{
    int64_t v;
    if (oi_wire_is_const(w, b, &v) && v == 0)
        return a;
    if (oi_wire_is_const(w, a, &v) && v == 0)
        return negative(w, b);
    return binary(w, OI_WIRE_SUB, a, b,
                  oi_range_add(range_of(w, a), oi_range_negative(range_of(w, b))));
}

static uint32_t shifted(oi_wires *w, uint32_t a, bool left, int64_t by)
{
    const oi_range r = range_of(w, a);
    if (by == 0)
        return a;
    const oi_range p = {by < 63 ? (int64_t)1 << by : INT64_MIN, by < 63 ? (int64_t)1 << by : 0};
    return put(
        w, (oi_wire){.kind = left ? OI_WIRE_LEFT : OI_WIRE_RIGHT,
                     .args = {a},
                     .n_args = 1,
                     .value = by,
                     .range = left ? oi_range_times(r, p) : (oi_range){r.from >> by, r.to >> by}});
}

/* Signed digits of a number, the fewest: 7 is 8 - 1. Returns how many are not 0. */
static uint32_t digits_of(int64_t v, int8_t digits[64])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < 64; i++) {
        digits[i] = v & 1 ? ((v & 3) == 3 ? -1 : 1) : 0;
        v = (v - digits[i]) >> 1;
        n += digits[i] != 0;
    }
    return n;
}

/* A product with a constant as a sum of shifts. Products of one wire with odd numbers are shared by
 * all that need them. */
static uint32_t times_const(oi_wires *w, uint32_t a, int64_t v)
{
    int8_t digits[64];
    uint32_t terms[64], n = 0;
    const int zeros = v ? __builtin_ctzll((uint64_t)v) : 0;
    const oi_range exact = oi_range_times(range_of(w, a), (oi_range){v, v});
    if (v == 0)
        return oi_wire_const(w, 0);
    if (v < 0 && v != INT64_MIN)
        return negative(w, times_const(w, a, -v));
    if (v == 1)
        return a;
    if (zeros && zeros < 63)
        return shifted(w, times_const(w, a, v >> zeros), true, zeros);
    if (digits_of(v, digits) > w->digits || v < 0 || v > (int64_t)1 << 40)
        return binary(w, OI_WIRE_MUL, a, oi_wire_const(w, v), exact);
    for (uint32_t i = 0; i < 64; i++)
        if (digits[i]) {
            const uint32_t part = shifted(w, a, true, i);
            terms[n++] = digits[i] > 0 ? part : negative(w, part);
        }
    const uint32_t sum = oi_wire_sum(w, terms, n);
    if (sum < w->list.n && w->list.at[sum].kind != OI_WIRE_CONST) {
        oi_wire *x =
            &w->list.at[sum]; /* its terms hang together: it is no wider than the product */
        if (exact.from > x->range.from || exact.to < x->range.to)
            x->range = exact;
    }
    return sum;
}

static uint32_t multiply(oi_wires *w, uint32_t a, uint32_t b)
{
    int64_t v;
    if (oi_wire_is_const(w, b, &v))
        return times_const(w, a, v);
    if (oi_wire_is_const(w, a, &v))
        return times_const(w, b, v);
    return binary(w, OI_WIRE_MUL, a < b ? a : b, a < b ? b : a,
                  oi_range_times(range_of(w, a), range_of(w, b)));
}

bool oi_wire_multiplies(const oi_wires *w, const oi_wire *x)
{
    return x->kind == OI_WIRE_MUL && oi_range_bits(range_of(w, x->args[0])) > 2 &&
           oi_range_bits(range_of(w, x->args[1])) > 2;
}

/* Pairs of neighbours, level by level. A term that is negative is subtracted. */
uint32_t oi_wire_sum(oi_wires *w, uint32_t *terms, size_t n)
{
    if (n == 0)
        return oi_wire_const(w, 0);
    for (; n > 1; n = (n + 1) / 2)
        for (size_t i = 0; i < n; i += 2) {
            const uint32_t a = terms[i];
            if (i + 1 == n) {
                terms[i / 2] = a;
                break;
            }
            const uint32_t b = terms[i + 1];
            const bool a_less = at(w, a)->kind == OI_WIRE_NEG,
                       b_less = at(w, b)->kind == OI_WIRE_NEG;
            if (a_less && b_less)
                terms[i / 2] = negative(w, add(w, at(w, a)->args[0], at(w, b)->args[0]));
            else if (b_less)
                terms[i / 2] = subtract(w, a, at(w, b)->args[0]);
            else if (a_less)
                terms[i / 2] = subtract(w, b, at(w, a)->args[0]);
            else
                terms[i / 2] = add(w, a, b);
        }
    return terms[0];
}

/* -- types -- */

static bool holds(oi_dtype t, oi_range r)
{
    const oi_range all = oi_range_of_type(t);
    return r.from >= all.from && r.to <= all.to;
}

uint32_t oi_wire_wrap(oi_wires *w, uint32_t a, oi_dtype to)
{
    if (holds(to, range_of(w, a)))
        return a;
    int64_t v;
    if (oi_wire_is_const(w, a, &v)) {
        const uint64_t bits = (uint64_t)v;
        return oi_wire_const(w, oi_element_i64(to, &bits, 0));
    }
    return put(w, (oi_wire){.kind = OI_WIRE_WRAP,
                            .type = to,
                            .args = {a},
                            .n_args = 1,
                            .range = oi_range_of_type(to)});
}

/* What the dialect's function makes of it. */
static uint32_t call(oi_wires *w, oi_helper_id helper, oi_dtype type, const oi_dtype *of,
                     const uint32_t *args, uint32_t n)
{
    oi_wire x = {.kind = OI_WIRE_CALL, .helper = helper, .type = type, .n_args = n};
    x.is_truth = type == OI_BOOL;
    x.range = x.is_truth ? (oi_range){0, 1} : oi_range_of_type(type);
    for (uint32_t i = 0; i < n; i++) {
        x.args[i] = args[i];
        x.of[i] = of[i];
    }
    return put(w, x);
}

static uint32_t choose(oi_wires *w, uint32_t c, uint32_t a, uint32_t b)
{
    int64_t v;
    if (oi_wire_is_const(w, c, &v))
        return v ? a : b;
    if (a == b)
        return a;
    return put(w, (oi_wire){.kind = OI_WIRE_SELECT,
                            .is_truth = at(w, a)->is_truth,
                            .args = {c, a, b},
                            .n_args = 3,
                            .range = oi_range_either(range_of(w, a), range_of(w, b))});
}

/* -1: it is false whatever they are; 1: true; 0: it depends. */
static int known(oi_helper_id helper, oi_range a, oi_range b)
{
    switch (helper) {
    case OI_H_LT: return a.to < b.from ? 1 : a.from >= b.to ? -1 : 0;
    case OI_H_LE: return a.to <= b.from ? 1 : a.from > b.to ? -1 : 0;
    case OI_H_GT: return known(OI_H_LT, b, a);
    case OI_H_GE: return known(OI_H_LE, b, a);
    default: break;
    }
    const bool apart = a.to < b.from || a.from > b.to;
    const bool same = a.from == a.to && b.from == b.to && a.from == b.from;
    return helper == OI_H_EQ ? same - apart : apart - same;
}

static uint32_t compare(oi_wires *w, oi_helper_id helper, const uint32_t *args)
{
    static const oi_dtype wide[OI_M_ARGS] = {OI_I64, OI_I64, OI_I64};
    const int k = known(helper, range_of(w, args[0]), range_of(w, args[1]));
    return k ? oi_wire_truth(w, k > 0) : call(w, helper, OI_BOOL, wide, args, 2);
}

static uint32_t logic(oi_wires *w, oi_helper_id helper, const uint32_t *args)
{
    static const oi_dtype truths[OI_M_ARGS] = {OI_BOOL, OI_BOOL, OI_BOOL};
    int64_t v;
    if (helper == OI_H_NOT)
        return oi_wire_is_const(w, args[0], &v) ? oi_wire_truth(w, !v)
                                                : call(w, helper, OI_BOOL, truths, args, 1);
    for (uint32_t i = 0; i < 2; i++)
        if (oi_wire_is_const(w, args[i], &v))
            return v == (helper == OI_H_AND) ? args[1 - i] : args[i];
    return call(w, helper, OI_BOOL, truths, args, 2);
}

static uint32_t extreme(oi_wires *w, bool least, uint32_t a, uint32_t b)
{
    const oi_range x = range_of(w, a), y = range_of(w, b);
    const uint32_t args[2] = {a, b};
    if (x.to <= y.from)
        return least ? a : b;
    if (y.to <= x.from)
        return least ? b : a;
    const uint32_t id = choose(w, compare(w, OI_H_LT, args), least ? a : b, least ? b : a);
    oi_wire *made = &w->list.at[id];
    if (made->kind == OI_WIRE_SELECT)
        made->range = least ? oi_range_min(x, y) : oi_range_max(x, y);
    return id;
}

static uint32_t saturated(oi_wires *w, uint32_t a, oi_dtype to)
{
    const oi_range all = oi_range_of_type(to);
    a = extreme(w, true, a, oi_wire_const(w, all.to));
    return extreme(w, false, a, oi_wire_const(w, all.from));
}

static uint32_t shift(oi_wires *w, oi_helper_id helper, oi_dtype type, const oi_dtype *of,
                      const uint32_t *args)
{
    const int64_t bits = oi_dtype_bits(type);
    int64_t by;
    if (!oi_wire_is_const(w, args[1], &by))
        return call(w, helper, type, of, args, 2);
    by = by < 0 || by > bits ? bits : by;
    if (helper == OI_H_SHL)
        return by == bits ? oi_wire_const(w, 0)
                          : oi_wire_wrap(w, shifted(w, args[0], true, by), type);
    return shifted(w, args[0], false, by < 63 ? by : 63);
}

uint32_t oi_wire_call(oi_wires *w, oi_helper_id helper, oi_dtype type, const oi_dtype *of,
                      const uint32_t *args, uint32_t n)
{
    switch (helper) {
    case OI_H_ADD: return oi_wire_wrap(w, add(w, args[0], args[1]), type);
    case OI_H_SUB: return oi_wire_wrap(w, subtract(w, args[0], args[1]), type);
    case OI_H_NEG: return oi_wire_wrap(w, negative(w, args[0]), type);
    case OI_H_MUL: return oi_wire_wrap(w, multiply(w, args[0], args[1]), type);
    case OI_H_SHL:
    case OI_H_SHR: return shift(w, helper, type, of, args);
    case OI_H_MIN:
    case OI_H_MAX: return extreme(w, helper == OI_H_MIN, args[0], args[1]);
    case OI_H_ABS: return oi_wire_wrap(w, extreme(w, false, args[0], negative(w, args[0])), type);
    case OI_H_SELECT: return choose(w, args[0], args[1], args[2]);
    case OI_H_EQ:
    case OI_H_NE:
    case OI_H_LT:
    case OI_H_LE:
    case OI_H_GT:
    case OI_H_GE:
        if (of[0] == OI_BOOL)
            break;
        return compare(w, helper, args);
    case OI_H_AND:
    case OI_H_OR:
    case OI_H_NOT: return logic(w, helper, args);
    case OI_H_SAT:
    case OI_H_WRAP:
    case OI_H_I64:
    case OI_H_NEAR:
        if (of[0] == OI_BOOL || type == OI_BOOL || type == OI_T1 || type == OI_T2)
            break;
        return helper == OI_H_SAT ? saturated(w, args[0], type) : oi_wire_wrap(w, args[0], type);
    case OI_H_LOWEST: return oi_wire_const(w, oi_range_of_type(type).from);
    case OI_H_HIGHEST: return oi_wire_const(w, oi_range_of_type(type).to);
    default: break;
    }
    return call(w, helper, type, of, args, n);
}
