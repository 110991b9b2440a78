/* selection.c: what an access to persistent memory selects (spec/dsl.md §6, §7): the rules for
 * selectors, bounds and growth, written once. The simulator runs the codes, the synthesizer plans
 * with them. */
#include "program/bind.h"

typedef struct selecting {
    oi_arena *a;
    const oi_program *p;
    const oi_pvar *v;
    const oi_paccess *x;
    oi_select_for why;
    int64_t of;
    oi_state_part *out;
    OI_VEC(oi_need) needs;
} selecting;

bool oi_grid_grows(const oi_pvar *v, uint32_t axis)
{
    return axis < v->n_axes && !(axis < v->n_table && v->axes[axis].has_fixed);
}

int64_t oi_grid_most(const oi_pvar *v, uint32_t axis)
{
    const int64_t base = axis < v->n_table ? 0 : (int64_t)v->dims[axis - v->n_table];
    int64_t most;
    if (axis >= v->n_axes)
        return base;
    const oi_paxis *x = &v->axes[axis];
    if (!x->has_fixed && !x->has_cap)
        return INT64_MAX;
    return __builtin_add_overflow(base, x->has_fixed ? x->fixed : x->cap, &most) ? INT64_MAX : most;
}

int oi_need_error(oi_need_kind kind)
{
    static const int errors[] = {
        [OI_NEED_START] = 42,  [OI_NEED_ORDER] = 46, [OI_NEED_INDEX] = 47, [OI_NEED_END] = 47,
        [OI_NEED_GROWTH] = 47, [OI_NEED_BOUND] = 47, [OI_NEED_EQUAL] = 51};
    return errors[kind];
}

/* -- codes -- */

static oi_code number(const selecting *s, int64_t v)
{
    return oi_code_int(s->a, v);
}

static int64_t dim_of(const oi_pvar *v, uint32_t axis)
{
    return axis < v->n_table ? 0 : (int64_t)v->dims[axis - v->n_table];
}

/* The size of an axis before the access. */
static oi_code size_of(const selecting *s, uint32_t axis)
{
    if (!oi_grid_grows(s->v, axis))
        return number(s, oi_grid_most(s->v, axis));
    oi_ins *one = oi_arena_alloc(s->a, sizeof *one);
    *one = (oi_ins){OI_INS_SIZE, axis, s->of};
    return (oi_code){one, 1, NULL};
}

/* The code of a selector; its own names become sizes. */
static oi_code selector(const selecting *s, const oi_code *c)
{
    uint32_t n = 0;
    oi_ins *all = oi_arena_alloc(s->a, (3 * c->n + 1) * sizeof *all);
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->at[i].kind != OI_INS_OWN) {
            all[n++] = c->at[i];
            continue;
        }
        const oi_code size = size_of(s, c->at[i].id);
        all[n++] = size.at[0];
        if (dim_of(s->v, c->at[i].id)) { /* of an auto axis, the growth */
            all[n++] = (oi_ins){OI_INS_INT, 0, dim_of(s->v, c->at[i].id)};
            all[n++] = (oi_ins){OI_INS_SUB, 0, 0};
        }
    }
    return (oi_code){all, n, c->source};
}

static bool is_size(const oi_code *c, uint32_t axis)
{
    return c->n == 1 && c->at[0].kind == OI_INS_SIZE && c->at[0].id == axis;
}

static void need(selecting *s, oi_need_kind kind, uint32_t axis, oi_code value, oi_code limit)
{
    int64_t v, l;
    const bool known = oi_code_is_int(&value, &v) && oi_code_is_int(&limit, &l);
    const bool is_least = kind == OI_NEED_START || kind == OI_NEED_ORDER;
    if ((known && (is_least                ? v >= l
                   : kind == OI_NEED_INDEX ? v < l
                                           : v <= l)) ||
        (kind != OI_NEED_INDEX && oi_code_same(&value, &limit)) ||
        (oi_code_is_int(&limit, &l) && l == INT64_MAX && !is_least) ||
        (is_size(&value, axis) && !is_least) || /* sizes stay below every limit */
        (!is_least && oi_code_is_int(&limit, &l) &&
         oi_code_is_below(s->p, &value, kind == OI_NEED_INDEX || l == INT64_MAX ? l : l + 1)))
        return;
    *OI_PUSH(s->a, &s->needs) = (oi_need){kind, axis, value, limit};
}

static void need_start(selecting *s, uint32_t axis, oi_code value)
{
    if (!oi_code_is_below(s->p, &value, INT64_MAX))
        need(s, OI_NEED_START, axis, value, number(s, 0));
}

/* -- one axis -- */

/* A read past a growable table gives initial values; a write grows what can grow. */
static oi_code limit_of(const selecting *s, uint32_t axis)
{
    if (!oi_grid_grows(s->v, axis) || s->why == OI_SELECT_WRITE)
        return number(s, oi_grid_most(s->v, axis));
    return axis < s->v->n_table ? number(s, INT64_MAX) : size_of(s, axis);
}

static bool may_leave(const selecting *s, uint32_t axis, const oi_code *end)
{
    int64_t n;
    return s->why != OI_SELECT_WRITE && axis < s->v->n_table && oi_grid_grows(s->v, axis) &&
           !is_size(end, axis) && !(oi_code_is_int(end, &n) && n <= oi_grid_most(s->v, axis));
}

static void select_index(selecting *s, uint32_t axis, const oi_psel *sel)
{
    oi_part_axis *o = &s->out->axes[axis];
    const oi_code limit = limit_of(s, axis), one = number(s, 1);
    const int64_t most = oi_grid_most(s->v, axis);
    int64_t n;
    o->start = selector(s, &sel->start);
    o->count = one;
    o->end = oi_code_join(s->a, OI_INS_ADD, &o->start, &one);
    need_start(s, axis, o->start);
    const bool is_below = most < INT64_MAX && oi_code_is_below(s->p, &o->start, most);
    if (!is_below || !oi_code_is_int(&limit, &n))
        need(s, OI_NEED_INDEX, axis, o->start, limit);
    o->may_leave = !is_below && may_leave(s, axis, &o->end);
}

static void select_slice(selecting *s, uint32_t axis, const oi_psel *sel)
{
    oi_part_axis *o = &s->out->axes[axis];
    const oi_code size = size_of(s, axis), zero = number(s, 0);
    o->start = sel && sel->start.n ? selector(s, &sel->start) : zero;
    o->end = sel && sel->end.n ? selector(s, &sel->end) : size;
    need_start(s, axis, o->start);
    o->count = oi_code_join(s->a, OI_INS_SUB, &o->end, &o->start);
    int64_t start, n;
    const bool is_forward = !oi_code_is_int(&o->start, &start) && oi_code_is_int(&o->count, &n);
    if (!is_forward && !oi_code_same(&o->end, &size)) { /* x..x+3 has this length as it is */
        o->end = oi_code_join(s->a, OI_INS_END, &o->end, &size);
        o->count = oi_code_join(s->a, OI_INS_SUB, &o->end, &o->start);
    }
    if (!is_forward && !(is_size(&o->end, axis) && oi_code_is_int(&o->start, &start) && start == 0))
        need(s, OI_NEED_ORDER, axis, o->end, o->start);
    need(s, OI_NEED_END, axis, o->end, limit_of(s, axis));
    o->keeps = true;
    o->may_leave = may_leave(s, axis, &o->end);
}

static void select_axis(selecting *s, uint32_t axis)
{
    const oi_psel *sel = axis < s->x->n ? &s->x->sels[axis] : NULL;
    const bool is_grown = s->out->is_growth && axis >= s->v->n_table && axis < s->v->n_axes;
    oi_part_axis *o = &s->out->axes[axis];
    oi_code *size = &s->out->size[axis];
    if (is_grown) {
        *o = (oi_part_axis){.keeps = true, .start = number(s, 0), .end = *size, .count = *size};
        return;
    }
    if (sel && !sel->is_slice)
        select_index(s, axis, sel);
    else
        select_slice(s, axis, sel);
    if (s->why != OI_SELECT_WRITE || !oi_grid_grows(s->v, axis) || is_size(&o->end, axis))
        return;
    const oi_code old = size_of(s, axis);
    *size = oi_code_join(s->a, OI_INS_MAX, &old, &o->end);
    s->out->grows = true;
}

/* Every auto axis has an index: it says how far the tensor grows, for reads too. */
static void grow_auto(selecting *s)
{
    for (uint32_t i = s->v->n_table; i < s->v->n_axes; i++) {
        const oi_code by = selector(s, &s->x->sels[i].start), dim = number(s, dim_of(s->v, i));
        const int64_t most = oi_grid_most(s->v, i);
        const oi_code limit = number(s, most - dim_of(s->v, i)), old = size_of(s, i);
        const oi_code grown = oi_code_join(s->a, OI_INS_ADD, &by, &dim);
        need_start(s, i, by);
        need(s, OI_NEED_GROWTH, i, by, limit);
        s->out->size[i] = oi_code_join(s->a, OI_INS_MAX, &old, &grown);
        s->out->grows = true;
    }
}

oi_state_part *oi_state_part_of(oi_arena *a, const oi_program *p, const oi_paccess *x,
                                oi_select_for why, int64_t of, uint32_t open)
{
    selecting s = {.a = a, .p = p, .v = &p->vars[x->var], .x = x, .why = why, .of = of};
    s.out = oi_arena_alloc(a, sizeof *s.out);
    *s.out = (oi_state_part){.rank = s.v->n_table + s.v->rank};
    s.out->is_growth = why != OI_SELECT_RESET && oi_access_is_growth(s.v, x);
    if (s.out->is_growth)
        grow_auto(&s);
    for (uint32_t i = 0; i < s.out->rank; i++)
        select_axis(&s, i);
    for (uint32_t i = 0; i < s.out->rank; i++)
        if (s.out->axes[i].keeps && open >> s.out->n_kept++ & 1)
            need(&s, OI_NEED_BOUND, i, s.out->axes[i].end, number(&s, oi_grid_most(s.v, i)));
    s.out->needs = s.needs.at;
    s.out->n_needs = (uint32_t)s.needs.n;
    return s.out;
}
