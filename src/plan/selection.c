/* selection.c: what is known of a selection of persistent memory before the program runs: constant
 * starts and counts, the checks that are left for run time, and which part is contiguous. */
#include "plan/plan.h"

typedef struct selecting {
    const oi_program *p;
    const oi_store_var *v;
    const oi_pvar *var;
    bool writes;
    oi_selection *out;
    bool counts_all[2 * OI_MAX_RANK]; /* it selects as many positions as there are now */
} selecting;

static bool is_counted(const selecting *x, uint32_t axis)
{
    return x->v->grows >> axis & 1;
}

/* Whether the end may be beyond the limit: of writes the storage, of others the current size.
 * Reads beyond the size of a table give the initial value. */
static bool may_pass_end(const selecting *x, uint32_t i, int64_t end, bool is_size)
{
    const bool counted = is_counted(x, i);
    if (counted && !x->writes && (i < x->v->n_table || is_size))
        return false;
    const int64_t limit = counted && !x->writes ? -1 : x->v->most[i];
    return end < 0 || limit < 0 || end > limit;
}

static void select_slice(selecting *x, uint32_t i, const oi_psel *sel)
{
    oi_selected_axis *axis = &x->out->axes[i];
    int64_t start = 0, end = -1, given;
    const bool is_size = !sel->end.n && is_counted(x, i);
    if (sel->start.n && !oi_code_is_int(&sel->start, &start))
        start = -1;
    if (!sel->end.n && !is_counted(x, i))
        end = x->v->most[i];
    else if (sel->end.n && oi_code_is_int(&sel->end, &given) && !(given < 0 && is_counted(x, i)))
        end = given < 0 ? given + x->v->most[i] : given;
    axis->start = start;
    axis->given = start >= 0 && end >= 0 ? end - start : -1;
    axis->checks |= start < 0 ? OI_AXIS_NEGATIVE : 0;
    axis->checks |= start < 0 || end < 0 || end < start ? OI_AXIS_BACKWARD : 0;
    axis->checks |= may_pass_end(x, i, end, is_size) ? OI_AXIS_END : 0;
    x->counts_all[i] = is_size && start == 0;
}

static void select_one(selecting *x, uint32_t i, const oi_psel *sel)
{
    oi_selected_axis *axis = &x->out->axes[i];
    int64_t at;
    const bool is_known = oi_code_is_int(&sel->start, &at);
    axis->start = is_known ? at : -1;
    axis->given = 1;
    axis->is_inside = (i < x->v->n_table || !is_counted(x, i)) &&
                      oi_code_is_below(x->p, &sel->start, x->v->most[i]);
    if (axis->is_inside)
        return;
    axis->checks |= axis->start < 0 ? OI_AXIS_NEGATIVE : 0;
    axis->checks |=
        may_pass_end(x, i, axis->start < 0 ? -1 : axis->start + 1, false) ? OI_AXIS_END : 0;
}

static void select_axis(selecting *x, uint32_t i, const oi_psel *sel)
{
    oi_selected_axis *axis = &x->out->axes[i];
    axis->keeps = !sel || sel->is_slice;
    if (sel && sel->is_slice)
        select_slice(x, i, sel);
    else if (sel)
        select_one(x, i, sel);
    if (sel)
        return;
    axis->given = is_counted(x, i) ? -1 : x->v->most[i];
    x->counts_all[i] = is_counted(x, i);
}

/* A read sets a run-time length, a write checks it. */
static uint8_t length_checks(const selecting *x, uint32_t i)
{
    const oi_selected_axis *axis = &x->out->axes[i];
    const bool is_known =
        axis->start >= 0 && axis->given >= 0 && axis->start + axis->given <= x->v->most[i];
    if (x->writes)
        return OI_AXIS_SHAPE;
    return !is_known && is_counted(x, i) && !x->counts_all[i] ? OI_AXIS_BOUND : 0;
}

/* The other operand must have the selection's shape. */
static void match_shape(selecting *x, const oi_tensor *other)
{
    for (uint32_t i = 0, d = 0; i < x->v->rank; i++) {
        oi_selected_axis *axis = &x->out->axes[i];
        if (!axis->keeps)
            continue;
        if (other->run_dims >> d & 1) {
            axis->checks |= length_checks(x, i);
        } else if (d < other->rank && axis->given != other->dims[d]) {
            axis->checks |= OI_AXIS_SHAPE;
            axis->count = other->dims[d];
        }
        d++;
    }
}

static uint32_t run_axis(const selecting *x)
{
    uint32_t q = x->v->rank;
    while (q > 0) {
        const uint32_t i = q - 1;
        if (is_counted(x, i) && i < x->v->n_table && !x->out->axes[i].is_inside)
            break;
        q = i;
        if (x->out->axes[i].count != x->v->most[i])
            break;
    }
    return oi_dtype_bits(x->var->dtype) < 8 ? x->v->rank : q;
}

static bool codes_may_fail(const selecting *x, const oi_paccess *a)
{
    bool may = false;
    for (uint32_t i = 0; i < a->n; i++)
        may |= oi_code_may_fail(x->p, &a->sels[i].start) || oi_code_may_fail(x->p, &a->sels[i].end);
    return may;
}

void oi_selection_find(const oi_program *p, const oi_store_var *v, const oi_tensor *state,
                       const oi_tensor *other, const oi_stmt *s, oi_selection *out)
{
    const oi_paccess *a = &s->node->as.move.cache;
    const bool resets = s->node->kind == OI_NODE_CACHE_RESET;
    selecting x = {.p = p,
                   .v = v,
                   .var = state->var,
                   .writes = s->node->kind == OI_NODE_CACHE_WRITE,
                   .out = out};
    *out = (oi_selection){.rank = x.v->rank, .grows = !resets && oi_access_is_growth(x.var, a)};
    for (uint32_t i = 0; i < x.v->rank; i++) {
        const bool is_given = i < a->n && !(out->grows && i >= x.var->n_table);
        select_axis(&x, i, is_given ? &a->sels[i] : NULL);
        out->axes[i].count = out->axes[i].given;
    }
    if (!resets)
        match_shape(&x, other);
    else if (oi_access_is_whole(a)) /* everything stored, whatever the current sizes */
        for (uint32_t i = 0; i < x.v->rank; i++) {
            out->axes[i].start = 0;
            out->axes[i].given = out->axes[i].count = x.v->most[i];
        }
    out->run = run_axis(&x);
    out->may_fail = out->grows || codes_may_fail(&x, a);
    for (uint32_t i = 0; i < x.v->rank; i++)
        out->may_fail |= out->axes[i].checks != 0;
}

/* -- parts of the state that kernels access -- */

uint64_t oi_part_most(const oi_tensor *t, const oi_port *part, uint32_t dim)
{
    int64_t n = t->dims[dim];
    return part->count && oi_code_is_int(&part->count[dim], &n) ? (uint64_t)n
                                                                : (uint64_t)t->dims[dim];
}

uint32_t oi_part_run(const oi_tensor *t, const oi_port *part)
{
    uint32_t q = t->rank;
    int64_t n;
    if (oi_dtype_bits(t->dtype) < 8)
        return q;
    while (q > 0) {
        q--;
        if (part->count && !(oi_code_is_int(&part->count[q], &n) && n == t->dims[q]))
            break;
    }
    return q;
}
