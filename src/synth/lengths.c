/* lengths.c: finds out what run-time lengths mean to a call. Shape rules and lowerings stay
 * functions of numbers. They are run on samples; the results say which lengths must be equal, which
 * are valid, and (dynamic.c) by which formulas other numbers follow. So one mechanism serves every
 * op, and a call that it cannot explain is refused before anything is written. */
#include "synth/lengths.h"

#define SCAN 300 /* lengths up to here are all tried */

bool oi_dyn_refuse(const oi_dyn *d, const char *why)
{
    if (d->u->status == OI_OK)
        oi_unit_refuse(d->u, d->graph, d->n, d->n->source->name.span, "E062",
                       "'%s' with a length that only the run knows: %s", d->q->op->name, why);
    return false;
}

/* -- trying -- */

/* Whether the call is right with these lengths; `out`, when given, gets its results' types. */
static bool is_right(const oi_dyn *d, const int64_t *values, oi_type *out)
{
    const oi_kernel_query *q = d->q;
    oi_type *in = d->types, *declared = in + q->n_in;
    oi_infer_fail fail;
    for (size_t i = 0; i < q->n_in + q->n_out; i++) {
        const oi_operand *o = i < q->n_in ? &q->in[i] : &q->out[i - q->n_in];
        uint32_t id = i < q->n_in ? d->in[i].tensor : d->to[i - q->n_in].tensor;
        in[i] = (oi_type){.dtype = o->dtype, .rank = o->rank};
        for (uint32_t k = 0; k < o->rank; k++)
            in[i].dims[k] = i >= q->n_in && d->u->tensors.at[id].run_dims >> k & 1
                                ? (oi_dim){.text = "?"}
                                : oi_dim_of(o->dims[k]);
        for (uint32_t v = 0; i < q->n_in && v < d->n_vars; v++)
            if (d->vars[v].tensor == id)
                in[i].dims[d->vars[v].dim] = oi_dim_of(values[v]);
    }
    uint32_t n_args = d->n->as.op.n_attrs;
    return out ? oi_infer_result(q->op, in, q->n_in, d->args, n_args, declared, out, q->n_out,
                                 &fail)
               : oi_infer(q->op, in, q->n_in, d->args, n_args, declared, q->n_out, &fail);
}

static void set_args(oi_dyn *d)
{
    uint32_t n = d->n->as.op.n_attrs;
    d->args = oi_arena_alloc(d->u->arena, (n + 1) * sizeof *d->args);
    for (uint32_t i = 0; i < n; i++) {
        const oi_pattr *a = &d->n->as.op.attrs[i];
        bool known = !a->items && a->one.kind == OI_PV_KNOWN;
        d->args[i] = (oi_attr_arg){.attr = a->attr, .known = known};
        if (known)
            d->args[i].value = a->one.value;
    }
}

static bool set_vars(oi_dyn *d)
{
    for (size_t i = 0; i < d->q->n_in; i++) {
        const oi_tensor *t = &d->u->tensors.at[d->in[i].tensor];
        for (uint32_t k = 0; k < t->rank; k++) {
            bool known = !(t->run_dims >> k & 1);
            for (uint32_t v = 0; v < d->n_vars; v++)
                known |= d->vars[v].tensor == d->in[i].tensor && d->vars[v].dim == k;
            if (known)
                continue;
            if (d->n_vars == OI_LENGTH_VARS)
                return oi_dyn_refuse(d, "more than 12 of them");
            d->vars[d->n_vars++] = (oi_length_var){
                .tensor = d->in[i].tensor, .dim = k, .bound = t->dims[k], .group = OI_NO_ID};
        }
    }
    return true;
}

/* -- a first point that is right -- */

/* Lengths worth trying: round ones, those that other dims have; 0 and 1 come last. */
static size_t candidates(const oi_dyn *d, int64_t *out, size_t cap)
{
    static const int64_t round[] = {6, 12, 24, 60, 120, 5, 4, 3, 2};
    size_t n = 0;
    for (size_t i = 0; i < OI_COUNT(round); i++)
        out[n++] = round[i];
    for (size_t i = 0; i < d->q->n_in + d->q->n_out; i++) {
        const oi_operand *o = i < d->q->n_in ? &d->q->in[i] : &d->q->out[i - d->q->n_in];
        for (uint32_t k = 0; k < o->rank && n + 2 < cap; k++) {
            bool known = o->dims[k] < 2;
            for (size_t j = 0; j < n; j++)
                known |= out[j] == o->dims[k];
            if (!known)
                out[n++] = o->dims[k];
        }
    }
    out[n++] = 0;
    out[n++] = 1;
    return n;
}

/* Every variable takes each of the n lengths. */
static bool try_all(const oi_dyn *d, const int64_t *list, size_t n, int64_t *values)
{
    const size_t most = 1u << 16;
    size_t all = 1;
    for (uint32_t v = 0; v < d->n_vars; v++)
        all = all > most ? all : all * n;
    for (size_t i = 0; i < all && i < most; i++) {
        size_t rest = i;
        for (uint32_t v = 0; v < d->n_vars; v++, rest /= n)
            values[v] = list[rest % n];
        if (is_right(d, values, NULL))
            return true;
    }
    return false;
}

static bool find_base(oi_dyn *d, int64_t *values)
{
    int64_t list[48];
    size_t n = candidates(d, list, OI_COUNT(list));
    bool short_one = false;
    for (uint32_t v = 0; v < d->n_vars; v++) { /* bounds often go together */
        values[v] = d->vars[v].bound;
        short_one |= values[v] < 2;
    }
    if (!short_one && is_right(d, values, NULL))
        return true;
    for (size_t i = 0; i + 2 < n; i++) {
        for (uint32_t v = 0; v < d->n_vars; v++)
            values[v] = list[i];
        if (is_right(d, values, NULL))
            return true;
    }
    for (size_t small = 2; small-- > 0;) /* without 0 and 1, without 1 */
        if (try_all(d, list, n - small - 1, values))
            return true;
    if (try_all(d, list, n, values))
        return true;
    for (uint32_t v = 0; v < d->n_vars; v++)
        values[v] = d->vars[v].bound;
    return is_right(d, values, NULL) ||
           oi_dyn_refuse(d, "no lengths were found that its shape rule accepts");
}

/* -- which lengths go together -- */

/* Whether the variables of the set can take another value together. */
static bool moves(const oi_dyn *d, const int64_t *base, uint32_t set)
{
    int64_t values[OI_LENGTH_VARS], own = 0;
    memcpy(values, base, sizeof values);
    for (uint32_t v = 0; v < d->n_vars; v++)
        if (set >> v & 1) {
            if (own && base[v] != own)
                return false;
            own = base[v];
        }
    const int64_t others[] = {own + 1, own + 2, own + 6, 2 * own, 3 * own, 4 * own};
    for (size_t i = 0; i < OI_COUNT(others); i++) {
        for (uint32_t v = 0; v < d->n_vars; v++)
            if (set >> v & 1)
                values[v] = others[i];
        if (others[i] > 1 && is_right(d, values, NULL))
            return true;
    }
    return false;
}

/* The smallest set with the variable that can move; 0: it stays. */
static uint32_t smallest_set(const oi_dyn *d, const int64_t *base, uint32_t var)
{
    uint32_t free_vars = 0;
    for (uint32_t v = 0; v < d->n_vars; v++)
        free_vars |= (uint32_t)(d->vars[v].group == OI_NO_ID) << v;
    for (int size = 1; size <= __builtin_popcount(free_vars); size++)
        for (uint32_t set = 1; set < 1u << d->n_vars; set++)
            if (__builtin_popcount(set) == size && set >> var & 1 && (set & ~free_vars) == 0 &&
                moves(d, base, set))
                return set;
    return 0;
}

static void find_groups(oi_dyn *d, const int64_t *base)
{
    int64_t values[OI_LENGTH_VARS];
    for (uint32_t v = 0; v < d->n_vars; v++) {
        if (d->vars[v].group != OI_NO_ID)
            continue;
        uint32_t set = smallest_set(d, base, v), g = d->n_groups++;
        d->groups[g] = (oi_length_group){.base = base[v], .is_pinned = set == 0};
        set = set ? set : 1u << v;
        for (uint32_t w = 0; w < d->n_vars; w++)
            if (set >> w & 1)
                d->vars[w].group = g;
        for (uint32_t w = 0; w < d->n_vars; w++) {
            memcpy(values, base, sizeof values);
            values[w] = 1;
            bool shares = __builtin_popcount(set) > 1 || d->groups[g].is_pinned;
            if (set >> w & 1 && shares && base[w] != 1)
                d->vars[w].may_be_one = is_right(d, values, NULL);
        }
    }
}

/* -- what is right for a group -- */

static void set_group(const oi_dyn *d, int64_t *values, uint32_t g, int64_t length)
{
    for (uint32_t v = 0; v < d->n_vars; v++)
        if (d->vars[v].group == g)
            values[v] = length;
}

static int64_t bound_of(const oi_dyn *d, uint32_t g)
{
    int64_t least = INT64_MAX, most = 0;
    bool any_one = false;
    for (uint32_t v = 0; v < d->n_vars; v++) {
        if (d->vars[v].group != g)
            continue;
        any_one |= d->vars[v].may_be_one;
        least = d->vars[v].bound < least ? d->vars[v].bound : least;
        most = d->vars[v].bound > most ? d->vars[v].bound : most;
    }
    return any_one ? most : least;
}

static uint32_t first_of(const oi_dyn *d, uint32_t g)
{
    uint32_t v = 0;
    while (d->vars[v].group != g)
        v++;
    return v;
}

/* Least, most and multiples, from all lengths up to the bound. */
static bool scan(oi_dyn *d, uint32_t g, const int64_t *base)
{
    int64_t values[OI_LENGTH_VARS], bound = bound_of(d, g);
    int64_t top = bound < SCAN ? bound : SCAN, first = -1, second = -1, last = -1, n = 0;
    memcpy(values, base, sizeof values);
    for (int64_t t = 0; t <= top; t++) {
        set_group(d, values, g, t);
        if (!is_right(d, values, NULL))
            continue;
        second = first >= 0 && second < 0 ? t : second;
        first = first < 0 ? t : first;
        last = t;
        n++;
    }
    int64_t step = second < 0 ? 1 : second - first;
    d->groups[g].greatest = last < 0 ? 0 : last;
    if (n == 0 && bound > 0)
        return oi_dyn_refuse(d, "its shape rule accepts none within the bound");
    if (n && n != (last - first) / step + 1)
        return oi_dyn_refuse(d, "which lengths are right follows no simple rule");
    for (int64_t t = bound; t > top && t > bound - 2 * step; t--) {
        set_group(d, values, g, t);
        if (is_right(d, values, NULL)) {
            d->groups[g].greatest = t;
            break;
        }
    }
    bool is_open = last + step > top; /* goes on */
    if (first <= 0 && step == 1 && is_open)
        return true;
    uint32_t v = first_of(d, g);
    *OI_PUSH(d->u->arena, &d->checks) = (oi_length_check){.tensor = d->vars[v].tensor,
                                                          .dim = d->vars[v].dim,
                                                          .other = OI_NO_ID,
                                                          .least = first,
                                                          .most = is_open ? -1 : last,
                                                          .multiple = step > 1 ? step : 0,
                                                          .remainder = step > 1 ? first % step : 0};
    return true;
}

/* Lengths of a group are equal, or 1 where that repeats. */
static void add_ties(oi_dyn *d, uint32_t g)
{
    uint32_t first = first_of(d, g);
    for (uint32_t v = first; v < d->n_vars; v++) {
        if (d->vars[v].group != g || (v == first && !d->groups[g].is_pinned))
            continue;
        oi_length_check c = {.tensor = d->vars[v].tensor,
                             .dim = d->vars[v].dim,
                             .other = OI_NO_ID,
                             .may_be_one = d->vars[v].may_be_one,
                             .most = -1};
        if (d->groups[g].is_pinned) {
            c.is_value = true;
            c.value = d->groups[g].base;
            *OI_PUSH(d->u->arena, &d->checks) = c;
            continue;
        }
        for (uint32_t w = first; w < v; w++) /* each pair: one of them may be 1 */
            if (d->vars[w].group == g && (w == first || d->vars[w].may_be_one || c.may_be_one)) {
                c.other = d->vars[w].tensor;
                c.other_dim = d->vars[w].dim;
                c.other_may = d->vars[w].may_be_one;
                *OI_PUSH(d->u->arena, &d->checks) = c;
            }
    }
}

/* -- samples -- */

static bool add_point(oi_dyn *d, const int64_t *values)
{
    const oi_kernel_query *q = d->q;
    oi_type *results = d->types + q->n_in + q->n_out;
    if (d->n_points == OI_LENGTH_POINTS)
        return true;
    if (!is_right(d, values, results))
        return false;
    oi_operand *ops = oi_arena_alloc(d->u->arena, (q->n_in + q->n_out + 1) * sizeof *ops);
    for (size_t i = 0; i < q->n_in + q->n_out; i++) {
        const oi_type *t = i < q->n_in ? &d->types[i] : &results[i - q->n_in];
        int64_t stride = 1;
        oi_dtype dtype = i < q->n_in ? t->dtype : q->out[i - q->n_in].dtype; /* as declared */
        ops[i] = (oi_operand){.dtype = dtype, .rank = t->rank};
        for (uint32_t k = t->rank; k-- > 0;) {
            if (!t->dims[k].known)
                return oi_dyn_refuse(d, "its result is as long as the data says");
            ops[i].dims[k] = t->dims[k].value;
            ops[i].strides[k] = stride;
            stride *= ops[i].dims[k] ? ops[i].dims[k] : 1;
        }
    }
    size_t p = d->n_points;
    d->queries[p] = *q;
    d->queries[p].in = ops;
    d->queries[p].out = ops + q->n_in;
    memcpy(d->points[p], values, sizeof d->points[p]);
    d->n_points++;
    return true;
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Lengths of every group drawn from those that are right for it alone. */
static void draw(const oi_dyn *d, const int64_t *base, uint32_t *state, int64_t *values)
{
    memcpy(values, base, OI_LENGTH_VARS * sizeof *values);
    for (uint32_t g = 0; g < d->n_groups; g++) {
        int64_t one[OI_LENGTH_VARS];
        for (unsigned tries = 0; !d->groups[g].is_pinned && tries < 200; tries++) {
            int64_t t = 2 + (int64_t)(next_random(state) % 60);
            memcpy(one, base, sizeof one);
            set_group(d, one, g, t);
            if (is_right(d, one, NULL)) {
                set_group(d, values, g, t);
                break;
            }
        }
    }
}

/* -- whether the checks say it all -- */

static int64_t value_of(const oi_dyn *d, const int64_t *values, uint32_t tensor, uint32_t dim)
{
    for (uint32_t v = 0; v < d->n_vars; v++)
        if (d->vars[v].tensor == tensor && d->vars[v].dim == dim)
            return values[v];
    return 0;
}

static bool passes(const oi_dyn *d, const oi_length_check *c, const int64_t *values)
{
    int64_t own = value_of(d, values, c->tensor, c->dim);
    if (own < c->least || (c->most >= 0 && own > c->most))
        return false;
    if (c->multiple && own % c->multiple != c->remainder)
        return false;
    if (c->is_value)
        return own == c->value || (c->may_be_one && own == 1);
    if (c->other == OI_NO_ID)
        return true;
    int64_t other = value_of(d, values, c->other, c->other_dim);
    return own == other || (c->may_be_one && own == 1) || (c->other_may && other == 1);
}

/* Lengths drawn anyhow: the checks accept what the shape rule does, and nothing else. */
static bool agree(oi_dyn *d, const int64_t *base)
{
    int64_t values[OI_LENGTH_VARS];
    uint32_t state = 11;
    for (unsigned i = 0; i < 400 && d->n_vars; i++) {
        bool accepted = true, within = true;
        int64_t spread = i % 4 == 0 ? 4 : i % 4 == 1 ? 14 : 70;
        memcpy(values, base, sizeof values);
        for (uint32_t v = 0; v < d->n_vars; v++) {
            uint32_t how = next_random(&state) % 4;
            int64_t drawn = (int64_t)(next_random(&state) % (uint32_t)spread);
            if (how == 0)
                values[v] = drawn;
            else if (how == 1)
                set_group(d, values, d->vars[v].group, drawn);
            within &= values[v] <= d->vars[v].bound;
        }
        for (size_t k = 0; k < d->checks.n; k++)
            accepted &= passes(d, &d->checks.at[k], values);
        if (within && accepted != is_right(d, values, NULL))
            return oi_dyn_refuse(d, "which lengths are right together follows no simple rule");
    }
    return true;
}

static bool add_points(oi_dyn *d, const int64_t *base)
{
    static const int64_t series[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                                     15, 16, 17, 18, 24, 31, 32, 33, 36, 48, 60, 63, 64};
    int64_t values[OI_LENGTH_VARS];
    uint32_t state = 7;
    memcpy(values, base, sizeof values);
    for (uint32_t g = 0; g < d->n_groups; g++)
        if (!d->groups[g].is_pinned)
            set_group(d, values, g, d->groups[g].greatest);
    if (!add_point(d, values))
        return oi_dyn_refuse(d, "its greatest lengths do not go together");
    for (unsigned i = 0; i < 24; i++) {
        draw(d, base, &state, values);
        if (!add_point(d, values))
            return oi_dyn_refuse(d, "which lengths are right together follows no simple rule");
    }
    for (uint32_t v = 0; v < d->n_vars; v++)
        for (unsigned i = 0; d->vars[v].may_be_one && i < 4; i++) {
            draw(d, base, &state, values);
            values[v] = 1;
            (void)add_point(d, values);
        }
    for (uint32_t g = 0; g < d->n_groups; g++)
        for (size_t i = 0; !d->groups[g].is_pinned && i < OI_COUNT(series); i++) {
            memcpy(values, base, sizeof values);
            set_group(d, values, g, series[i]);
            (void)add_point(d, values);
        }
    return d->u->status == OI_OK;
}

bool oi_dyn_is_small(const oi_dyn *d, size_t point)
{
    for (uint32_t v = 0; v < d->n_vars; v++)
        if (d->points[point][v] < 2 && !d->vars[v].may_be_one &&
            !d->groups[d->vars[v].group].is_pinned)
            return true;
    for (uint32_t g = 0; g < d->n_groups; g++) { /* a group that is 1 as a whole */
        bool all = !d->groups[g].is_pinned;
        for (uint32_t v = 0; v < d->n_vars; v++)
            all &= d->vars[v].group != g || d->points[point][v] < 2;
        if (all)
            return true;
    }
    return false;
}

/* -- composites -- */

static bool same_expansion(const oi_expansion *a, const oi_expansion *b)
{
    if (a->n_values != b->n_values || a->n_calls != b->n_calls || a->n_checks != b->n_checks)
        return false;
    for (uint32_t i = 0; i < a->n_values; i++) {
        const oi_exp_value *x = &a->values[i], *y = &b->values[i];
        if (x->kind != y->kind || x->index != y->index || x->type.dtype != y->type.dtype ||
            x->type.rank != y->type.rank)
            return false;
        uint64_t n = 1, bytes;
        for (uint32_t k = 0; x->kind == OI_VALUE_OF_CONST && k < x->type.rank; k++) {
            n *= (uint64_t)x->type.dims[k];
            if (x->type.dims[k] != y->type.dims[k])
                return false;
        }
        if (x->kind == OI_VALUE_OF_CONST && oi_dtype_bytes(x->type.dtype, n, &bytes) &&
            memcmp(x->bytes, y->bytes, (size_t)bytes) != 0)
            return false;
    }
    for (uint32_t i = 0; i < a->n_calls; i++) {
        const oi_exp_call *x = &a->calls[i], *y = &b->calls[i];
        if (x->op != y->op || x->n_in != y->n_in || x->n_out != y->n_out ||
            memcmp(x->in, y->in, x->n_in * sizeof *x->in) != 0 ||
            memcmp(x->out, y->out, x->n_out * sizeof *x->out) != 0)
            return false;
    }
    return true;
}

bool oi_dyn_expand(oi_dyn *d)
{
    oi_infer_fail fail;
    size_t kept = 0;
    if (d->q->op->cls != OI_OP_CLASS_COMPOSITE)
        return true;
    d->expansions = oi_arena_alloc(d->u->arena, (d->n_points + 1) * sizeof *d->expansions);
    for (size_t p = 0; p < d->n_points; p++) {
        const oi_expansion *e;
        if (!oi_composite_expand(d->u->arena, &d->queries[p], &e, &fail))
            return oi_dyn_refuse(d, fail.message);
        if (p && !same_expansion(e, d->expansions[0])) {
            if (!oi_dyn_is_small(d, p))
                return oi_dyn_refuse(d, "its body is another one for other lengths");
            continue; /* a shorter way for one element: the general one does it, too */
        }
        d->expansions[kept] = e;
        d->queries[kept] = d->queries[p];
        memcpy(d->points[kept], d->points[p], sizeof d->points[p]);
        kept++;
    }
    d->n_points = kept;
    return true;
}

void oi_dyn_leaf(const oi_dyn *d, size_t point, uint32_t leaf, oi_kernel_query *out)
{
    if (!d->expansions) {
        *out = d->queries[point];
        return;
    }
    const oi_expansion *e = d->expansions[point];
    const oi_exp_call *c = &e->calls[leaf];
    oi_operand *ops = oi_arena_alloc(d->u->arena, (c->n_in + c->n_out + 1) * sizeof *ops);
    for (uint32_t i = 0; i < c->n_in + c->n_out; i++)
        ops[i] = e->values[i < c->n_in ? c->in[i] : c->out[i - c->n_in]].type;
    *out = (oi_kernel_query){.op = c->op,
                             .in = ops,
                             .n_in = c->n_in,
                             .out = ops + c->n_in,
                             .n_out = c->n_out,
                             .attrs = c->attrs};
}

bool oi_dyn_study(oi_dyn *d)
{
    int64_t base[OI_LENGTH_VARS] = {0};
    size_t n = d->q->n_in + d->q->n_out + 1;
    d->types = oi_arena_alloc(d->u->arena, 2 * n * sizeof *d->types);
    d->points = oi_arena_alloc(d->u->arena, OI_LENGTH_POINTS * sizeof *d->points);
    d->queries = oi_arena_alloc(d->u->arena, OI_LENGTH_POINTS * sizeof *d->queries);
    set_args(d);
    if (!set_vars(d) || !find_base(d, base))
        return false;
    find_groups(d, base);
    for (uint32_t g = 0; g < d->n_groups; g++) {
        add_ties(d, g);
        if (!d->groups[g].is_pinned && !scan(d, g, base))
            return false;
    }
    return agree(d, base) && add_points(d, base);
}
