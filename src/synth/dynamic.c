/* dynamic.c: formulas for the numbers of a nest that depend on run-time lengths. Every number is
 * examined over all samples (lengths.c): it is constant, a length of an operand, or a line, product
 * or sum of the lengths of the call's inputs. */
#include "synth/fit.h"
#include "synth/lengths.h"

/* A length that the kernel can be handed, and what it was at the points. */
typedef struct known {
    uint32_t tensor, dim;
    int64_t at[OI_LENGTH_POINTS];
} known;

typedef struct fitting {
    oi_dyn *d;
    oi_skernel *k;
    OI_VEC(known) known;
    bool all[OI_LENGTH_POINTS], plain[OI_LENGTH_POINTS]; /* plain: nothing of length 0 or 1 */
} fitting;

/* -- formulas -- */

oi_kscalar oi_length_number(oi_unit *u, uint32_t tensor, uint32_t dim)
{
    return (oi_kscalar){.name =
                            oi_arena_printf(u->arena, "%s_n%u", u->tensors.at[tensor].name, dim),
                        .dtype = OI_I64,
                        .is_length = true,
                        .tensor = tensor,
                        .dim = dim};
}

uint32_t oi_length_scalar(oi_unit *u, oi_skernel *k, uint32_t tensor, uint32_t dim)
{
    for (size_t i = 0; i < k->scalars.n; i++) {
        const oi_kscalar *s = &k->scalars.at[i];
        if (s->is_length && s->tensor == tensor && s->dim == dim)
            return (uint32_t)i;
    }
    *OI_PUSH(u->arena, &k->scalars) = oi_length_number(u, tensor, dim);
    return (uint32_t)k->scalars.n - 1;
}

static bool same_formula(const oi_formula *a, const oi_formula *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static oi_fn add_formula(oi_unit *u, oi_skernel *k, const oi_formula *f)
{
    for (size_t i = 0; i < k->formulas.n; i++)
        if (same_formula(&k->formulas.at[i], f))
            return (oi_fn)i + 1;
    *OI_PUSH(u->arena, &k->formulas) = *f;
    return (oi_fn)k->formulas.n;
}

static void start(oi_formula *f)
{
    memset(f, 0, sizeof *f); /* they are compared as bytes */
    f->by = 1;
    f->unless_one = OI_NO_ID;
}

static oi_fn add_scalar(oi_unit *u, oi_skernel *k, uint32_t scalar)
{
    oi_formula f;
    start(&f);
    f.n_terms = 1;
    f.terms[0].factor = 1;
    f.terms[0].n = 1;
    f.terms[0].of[0] = scalar;
    return add_formula(u, k, &f);
}

static oi_fn add_length(oi_unit *u, oi_skernel *k, uint32_t tensor, uint32_t dim)
{
    return add_scalar(u, k, oi_length_scalar(u, k, tensor, dim));
}

uint32_t oi_kscalar_add(oi_unit *u, oi_skernel *k, const oi_kscalar *s)
{
    uint32_t same = 0;
    if (s->is_length)
        return oi_length_scalar(u, k, s->tensor, s->dim);
    for (size_t i = 0; i < k->scalars.n; i++) {
        const oi_kscalar *own = &k->scalars.at[i];
        if (!own->is_length && own->dtype == s->dtype && own->value.kind == OI_PV_CODE &&
            s->value.kind == OI_PV_CODE && oi_code_same(&own->value.code, &s->value.code))
            return (uint32_t)i;
        same += strcmp(own->name, s->name) == 0;
    }
    oi_kscalar *own = OI_PUSH(u->arena, &k->scalars);
    *own = *s;
    if (same)
        own->name = oi_arena_printf(u->arena, "%s_%zu", s->name, k->scalars.n);
    return (uint32_t)k->scalars.n - 1;
}

oi_fn oi_code_fn(oi_unit *u, oi_skernel *k, const char *name, const oi_code *code)
{
    const oi_kscalar own = {
        .name = name, .dtype = OI_I64, .value = {.kind = OI_PV_CODE, .code = *code}};
    return add_scalar(u, k, oi_kscalar_add(u, k, &own));
}

oi_fn oi_fn_moved(oi_unit *u, oi_skernel *to, const oi_skernel *from, oi_fn fn)
{
    if (!fn || to == from)
        return fn;
    oi_formula f;
    memcpy(&f, &from->formulas.at[fn - 1], sizeof f); /* they are compared as bytes */
    uint32_t *own[OI_FORMULA_TERMS * OI_FORMULA_TERMS + OI_NEST_READS + 1], n = 0;
    for (uint32_t t = 0; t < f.n_terms; t++)
        for (uint32_t i = 0; i < f.terms[t].n; i++)
            own[n++] = &f.terms[t].of[i];
    for (uint32_t i = 0; i < f.n_pick; i++)
        own[n++] = &f.pick[i];
    if (f.unless_one != OI_NO_ID)
        own[n++] = &f.unless_one;
    for (uint32_t i = 0; i < n; i++) {
        const oi_kscalar s = from->scalars.at[*own[i]];
        *own[i] = oi_kscalar_add(u, to, &s);
    }
    return add_formula(u, to, &f);
}

oi_fn oi_length_fn(oi_unit *u, oi_skernel *k, uint32_t tensor, uint32_t dim)
{
    return u->tensors.at[tensor].run_dims >> dim & 1 ? add_length(u, k, tensor, dim) : 0;
}

/* -- what a number follows -- */

static size_t first_used(const fitting *x, const bool *use)
{
    size_t p = 0;
    while (p + 1 < x->d->n_points && !use[p])
        p++;
    return p;
}

static bool is_constant(const fitting *x, const int64_t *f, const bool *use)
{
    size_t first = first_used(x, use);
    for (size_t p = first + 1; p < x->d->n_points; p++)
        if (use[p] && f[p] != f[first])
            return false;
    return true;
}

static bool equals(const fitting *x, const int64_t *f, const bool *use, const int64_t *m)
{
    for (size_t p = 0; p < x->d->n_points; p++)
        if (use[p] && f[p] != m[p])
            return false;
    return true;
}

/* The variable whose length stands for the group: one that never stretches. OI_NO_ID: none. */
static uint32_t speaker(const oi_dyn *d, uint32_t g)
{
    for (uint32_t v = 0; v < d->n_vars; v++)
        if (d->vars[v].group == g && !d->vars[v].may_be_one)
            return v;
    return OI_NO_ID;
}

/* The length of the group at a point: that of a member that does not stretch. */
static int64_t length_at(const oi_dyn *d, uint32_t g, size_t p)
{
    int64_t length = 1;
    for (uint32_t v = 0; v < d->n_vars; v++)
        if (d->vars[v].group == g && d->points[p][v] != 1)
            length = d->points[p][v];
    return length;
}

static bool fit_pick(fitting *x, const int64_t *f, const bool *use, oi_fn *out)
{
    const oi_dyn *d = x->d;
    for (uint32_t g = 0; g < d->n_groups; g++) {
        bool fits = true;
        for (size_t p = 0; p < d->n_points && fits; p++)
            fits = !use[p] || f[p] == length_at(d, g, p);
        if (!fits)
            continue;
        uint32_t one = speaker(d, g);
        if (one != OI_NO_ID) {
            *out = add_length(d->u, x->k, d->vars[one].tensor, d->vars[one].dim);
            return true;
        }
        oi_formula pick;
        start(&pick);
        for (uint32_t v = 0; v < d->n_vars && pick.n_pick < OI_COUNT(pick.pick); v++)
            if (d->vars[v].group == g)
                pick.pick[pick.n_pick++] =
                    oi_length_scalar(d->u, x->k, d->vars[v].tensor, d->vars[v].dim);
        *out = add_formula(d->u, x->k, &pick);
        return true;
    }
    return false;
}

static bool fit_unless_one(fitting *x, const int64_t *f, const bool *use, oi_fn *out)
{
    const oi_dyn *d = x->d;
    for (uint32_t v = 0; v < d->n_vars; v++) {
        int64_t c = 0;
        bool fits = d->vars[v].may_be_one;
        for (size_t p = 0; p < d->n_points; p++)
            if (use[p] && d->points[p][v] != 1)
                c = f[p];
        for (size_t p = 0; p < d->n_points && fits; p++)
            fits = !use[p] || f[p] == (d->points[p][v] == 1 ? 0 : c);
        if (!fits)
            continue;
        oi_formula formula;
        start(&formula);
        formula.base = c;
        formula.unless_one = oi_length_scalar(d->u, x->k, d->vars[v].tensor, d->vars[v].dim);
        *out = add_formula(d->u, x->k, &formula);
        return true;
    }
    return false;
}

/* A line over the product of the groups in the set. */
static bool fit_product(fitting *x, const int64_t *f, const bool *use, uint32_t set, oi_fn *out)
{
    const oi_dyn *d = x->d;
    int64_t m[OI_LENGTH_POINTS];
    oi_formula formula;
    oi_line line;
    start(&formula);
    formula.n_terms = 1;
    for (uint32_t g = 0; g < d->n_groups; g++)
        if (set >> g & 1 && (speaker(d, g) == OI_NO_ID || d->groups[g].is_pinned))
            return false;
    for (size_t p = 0; p < d->n_points; p++) {
        m[p] = 1;
        for (uint32_t g = 0; g < d->n_groups; g++)
            m[p] *= set >> g & 1 ? length_at(d, g, p) : 1;
    }
    if (!oi_fit_line(m, f, use, d->n_points, &line))
        return false;
    for (uint32_t g = 0; g < d->n_groups; g++)
        if (set >> g & 1) {
            const oi_length_var *v = &d->vars[speaker(d, g)];
            formula.terms[0].of[formula.terms[0].n++] =
                oi_length_scalar(d->u, x->k, v->tensor, v->dim);
        }
    formula.terms[0].factor = line.slope;
    formula.base = line.base;
    formula.by = line.by;
    formula.has_least = line.has_least;
    formula.has_most = line.has_most;
    formula.least = line.has_least ? line.least : 0;
    formula.most = line.has_most ? line.most : 0;
    *out = add_formula(d->u, x->k, &formula);
    return true;
}

/* How f rises with the group alone; false when no two points tell, or it is no whole number. */
static bool slope_of(const fitting *x, const int64_t *f, const bool *use, uint32_t g, int64_t *out)
{
    const oi_dyn *d = x->d;
    for (size_t p = 0; p < d->n_points; p++)
        for (size_t q = p + 1; q < d->n_points; q++) {
            bool alone = use[p] && use[q] && length_at(d, g, p) != length_at(d, g, q);
            for (uint32_t v = 0; v < d->n_vars && alone; v++)
                alone = d->vars[v].group == g || d->points[p][v] == d->points[q][v];
            if (!alone)
                continue;
            int64_t run = length_at(d, g, q) - length_at(d, g, p), rise = f[q] - f[p];
            *out = rise / run;
            return rise % run == 0;
        }
    return false;
}

static bool fit_sum(fitting *x, const int64_t *f, const bool *use, oi_fn *out)
{
    const oi_dyn *d = x->d;
    size_t first = first_used(x, use);
    int64_t slopes[OI_LENGTH_VARS] = {0}, base = f[first];
    oi_formula formula;
    start(&formula);
    for (uint32_t g = 0; g < d->n_groups; g++) {
        if (d->groups[g].is_pinned)
            continue;
        if (!slope_of(x, f, use, g, &slopes[g]))
            return false;
        base -= slopes[g] * length_at(d, g, first);
        if (slopes[g] == 0)
            continue;
        if (speaker(d, g) == OI_NO_ID || formula.n_terms == OI_FORMULA_TERMS)
            return false;
        const oi_length_var *v = &d->vars[speaker(d, g)];
        formula.terms[formula.n_terms].factor = slopes[g];
        formula.terms[formula.n_terms].n = 1;
        formula.terms[formula.n_terms++].of[0] = oi_length_scalar(d->u, x->k, v->tensor, v->dim);
    }
    for (size_t p = 0; p < d->n_points; p++) {
        int64_t sum = base;
        for (uint32_t g = 0; g < d->n_groups; g++)
            sum += slopes[g] * length_at(d, g, p);
        if (use[p] && sum != f[p])
            return false;
    }
    formula.base = base;
    *out = add_formula(d->u, x->k, &formula);
    return true;
}

static bool fit(fitting *x, const int64_t *f, const bool *use, oi_fn *out)
{
    *out = 0;
    if (is_constant(x, f, use))
        return true;
    for (size_t i = 0; i < x->known.n; i++)
        if (equals(x, f, use, x->known.at[i].at)) {
            *out = add_length(x->d->u, x->k, x->known.at[i].tensor, x->known.at[i].dim);
            return true;
        }
    if (fit_pick(x, f, use, out) || fit_unless_one(x, f, use, out))
        return true;
    for (int size = 1; size <= OI_FORMULA_TERMS; size++)
        for (uint32_t set = 1; set < 1u << x->d->n_groups; set++)
            if (__builtin_popcount(set) == size && fit_product(x, f, use, set, out))
                return true;
    return fit_sum(x, f, use, out);
}

/* -- samples of a leaf -- */

static void begin(fitting *x, oi_dyn *d, oi_skernel *k)
{
    memset(x, 0, sizeof *x);
    x->d = d;
    x->k = k;
    for (size_t p = 0; p < d->n_points; p++) {
        x->all[p] = true;
        x->plain[p] = !oi_dyn_is_small(d, p);
    }
}

/* The lengths of the call's inputs themselves. */
static void know_vars(fitting *x)
{
    const oi_dyn *d = x->d;
    for (uint32_t v = 0; v < d->n_vars; v++) {
        known *own = OI_PUSH(d->u->arena, &x->known);
        own->tensor = d->vars[v].tensor;
        own->dim = d->vars[v].dim;
        for (size_t p = 0; p < d->n_points; p++)
            own->at[p] = d->points[p][v];
    }
}

static void know(fitting *x, uint32_t leaf, const oi_port *ports, size_t n, bool are_outputs)
{
    const oi_dyn *d = x->d;
    for (size_t i = 0; i < n; i++) {
        const oi_tensor *t = &d->u->tensors.at[ports[i].tensor];
        for (uint32_t k = 0; k < t->rank; k++) {
            if (!(t->run_dims >> k & 1))
                continue;
            known *own = OI_PUSH(d->u->arena, &x->known);
            own->tensor = ports[i].tensor;
            own->dim = k;
            for (size_t p = 0; p < d->n_points; p++) {
                oi_kernel_query q;
                oi_dyn_leaf(d, p, leaf, &q);
                own->at[p] = are_outputs ? q.out[i].dims[k] : q.in[i].dims[k];
            }
        }
    }
}

/* -- nests -- */

#define COORD_NUMBERS 6

/* All numbers of a nest in a fixed order; NULL only counts them. */
static size_t flatten_coord(const oi_nest *n, const oi_nest_coord *c, int64_t *out)
{
    if (out) {
        const int64_t own[COORD_NUMBERS] = {c->base,    c->index_last,     c->bend_from,
                                            c->bend_to, c->counted_before, c->counted_after};
        memcpy(out, own, sizeof own);
        memcpy(out + COORD_NUMBERS, c->step, n->n_axes * sizeof *out);
    }
    return COORD_NUMBERS + n->n_axes;
}

static size_t flatten(const oi_nest *n, int64_t *out)
{
    size_t at = 0;
    for (uint32_t a = 0; a < n->n_axes; a++, at++)
        if (out)
            out[at] = n->axes[a].extent;
    for (uint32_t r = 0; r <= n->n_reads; r++) {
        const oi_nest_ref *ref = r < n->n_reads ? &n->reads[r] : &n->write;
        for (uint32_t k = 0; k < ref->rank; k++)
            at += flatten_coord(n, &ref->at[k], out ? out + at : NULL);
    }
    if (n->has_guard)
        at += flatten_coord(n, &n->guard, out ? out + at : NULL);
    return at;
}

static bool same_ref(const oi_nest_ref *a, const oi_nest_ref *b)
{
    if (a->is_output != b->is_output || a->operand != b->operand || a->name != b->name ||
        a->is_flat != b->is_flat || a->is_position != b->is_position || a->rank != b->rank)
        return false;
    for (uint32_t k = 0; k < a->rank; k++)
        if (a->at[k].index != b->at[k].index || a->at[k].bend != b->at[k].bend)
            return false;
    return true;
}

static bool same_form(const oi_nest *a, const oi_nest *b)
{
    bool same = a->kind == b->kind && a->n_axes == b->n_axes && a->n_reads == b->n_reads &&
                a->has_last == b->has_last && a->finds_element == b->finds_element &&
                a->acc == b->acc && a->leave == b->leave && a->has_guard == b->has_guard &&
                a->is_copy == b->is_copy && a->is_serial == b->is_serial &&
                a->is_scan == b->is_scan && a->excludes == b->excludes &&
                a->combines_out == b->combines_out && same_ref(&a->write, &b->write);
    for (uint32_t i = 0; same && i < a->n_axes; i++)
        same = a->axes[i].is_reduced == b->axes[i].is_reduced;
    for (uint32_t i = 0; same && i < a->n_reads; i++)
        same = same_ref(&a->reads[i], &b->reads[i]);
    return same;
}

static void leave_alike(oi_nest *to, const oi_nest *from)
{
    for (uint32_t r = 0; r <= to->n_reads; r++) {
        oi_nest_ref *a = r < to->n_reads ? &to->reads[r] : &to->write;
        const oi_nest_ref *b = r < to->n_reads ? &from->reads[r] : &from->write;
        for (uint32_t k = 0; k < a->rank; k++)
            a->at[k].may_leave |= b->at[k].may_leave;
    }
}

/* What the flat list of formulas says about a coordinate. */
static const oi_fn *take_coord(const oi_nest *n, const oi_fn *fns, oi_coord_fns *out)
{
    *out = (oi_coord_fns){.base = fns[0],
                          .bend_from = fns[2],
                          .bend_to = fns[3],
                          .counted_before = fns[4],
                          .counted_after = fns[5]};
    memcpy(out->step, fns + COORD_NUMBERS, n->n_axes * sizeof *fns);
    return fns + COORD_NUMBERS + n->n_axes;
}

static void take_fns(oi_arena *a, const oi_nest *n, const oi_fn *fns, oi_nest_fns *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out->extents, fns, n->n_axes * sizeof *fns);
    fns += n->n_axes;
    for (uint32_t r = 0; r <= n->n_reads; r++) {
        const oi_nest_ref *ref = r < n->n_reads ? &n->reads[r] : &n->write;
        oi_coord_fns *own = oi_arena_alloc(a, (ref->rank + 1) * sizeof *own);
        for (uint32_t k = 0; k < ref->rank; k++)
            fns = take_coord(n, fns, &own[k]);
        *(r < n->n_reads ? &out->reads[r] : &out->write) = own;
    }
    oi_coord_fns *guard = oi_arena_alloc(a, sizeof *guard);
    if (n->has_guard)
        take_coord(n, fns, guard);
    out->guard = guard;
}

/* Whether another axis is empty wherever this one differs from its rule: then nothing is done. */
static bool runs_over(const fitting *x, const int64_t *numbers, uint32_t n_axes, size_t axis)
{
    size_t n = x->d->n_points;
    for (size_t p = 0; p < n; p++) {
        bool empty = false;
        for (uint32_t a = 0; a < n_axes; a++)
            empty |= a != axis && numbers[a * n + p] == 0;
        if (x->all[p] && !x->plain[p] && numbers[axis * n + p] == 0 && !empty)
            return false;
    }
    return true;
}

/* The points at which number j of a nest counts: an axis always, others only where something is
 * done, the step along an axis only where that has a second place. */
static void where_it_counts(const fitting *x, const int64_t *numbers, uint32_t n_axes, size_t j,
                            bool *use)
{
    const size_t n = x->d->n_points, place = (j - n_axes) % (COORD_NUMBERS + n_axes);
    for (size_t p = 0; p < n; p++) {
        use[p] = x->all[p];
        for (uint32_t a = 0; j >= n_axes && a < n_axes; a++)
            use[p] &= numbers[a * n + p] > (place == COORD_NUMBERS + a);
    }
}

static bool fit_number(fitting *x, const int64_t *numbers, uint32_t n_axes, size_t j, oi_fn *out)
{
    const int64_t *own = numbers + j * x->d->n_points;
    bool use[OI_LENGTH_POINTS];
    where_it_counts(x, numbers, n_axes, j, use);
    if (fit(x, own, use, out)) /* a constant is the one that the nest has */
        return *out || !use[first_used(x, use)] ||
               own[first_used(x, use)] == own[first_used(x, x->plain)];
    return j < n_axes && runs_over(x, numbers, n_axes, j) && fit(x, own, x->plain, out);
}

bool oi_dyn_nest(oi_dyn *d, uint32_t leaf, size_t i, oi_skernel *k, const oi_port *in,
                 const oi_port *to, oi_nest *nest, oi_nest_fns *out)
{
    oi_arena *a = d->u->arena;
    fitting *x = oi_arena_alloc(a, sizeof *x);
    oi_nest *other = oi_arena_alloc(a, sizeof *other);
    oi_kernel_query q;
    begin(x, d, k);
    oi_dyn_leaf(d, first_used(x, x->plain), leaf, &q);
    know(x, leaf, to, q.n_out, true);
    know(x, leaf, in, q.n_in, false);
    know_vars(x);
    oi_nest_make(&q, i, nest);
    size_t n = flatten(nest, NULL);
    int64_t *numbers = oi_arena_alloc(a, (n + 1) * d->n_points * sizeof *numbers);
    int64_t *column = oi_arena_alloc(a, (n + 1) * sizeof *column);
    oi_fn *fns = oi_arena_alloc(a, (n + 1) * sizeof *fns);
    for (size_t p = 0; p < d->n_points; p++) {
        oi_dyn_leaf(d, p, leaf, &q);
        if (i >= oi_nest_count(&q))
            return oi_dyn_refuse(d, "its loops are others for other lengths");
        memset(other, 0, sizeof *other);
        oi_nest_make(&q, i, other);
        if (!same_form(nest, other)) {
            if (!oi_dyn_is_small(d, p))
                return oi_dyn_refuse(d, "its loops are others for other lengths");
            x->all[p] = x->plain[p] = false;
            continue;
        }
        leave_alike(nest, other);
        flatten(other, column);
        for (size_t j = 0; j < n; j++)
            numbers[j * d->n_points + p] = column[j];
    }
    for (size_t j = 0; j < n; j++)
        if (!fit_number(x, numbers, nest->n_axes, j, &fns[j]))
            return oi_dyn_refuse(d, "how its loops follow the length was not found out");
    for (uint32_t j = 0; j < nest->n_axes; j++) /* at most so long */
        nest->axes[j].extent = numbers[j * d->n_points];
    take_fns(a, nest, fns, out);
    return true;
}

/* -- lengths -- */

bool oi_dyn_lengths(oi_dyn *d, uint32_t leaf, oi_skernel *k, const oi_port *to)
{
    fitting *x = oi_arena_alloc(d->u->arena, sizeof *x);
    oi_kernel_query q;
    begin(x, d, k);
    know_vars(x);
    oi_dyn_leaf(d, 0, leaf, &q);
    for (size_t o = 0; o < q.n_out; o++) {
        const oi_tensor *t = &d->u->tensors.at[to[o].tensor];
        for (uint32_t i = 0; i < t->rank; i++) {
            int64_t f[OI_LENGTH_POINTS];
            oi_set_length set = {.tensor = to[o].tensor, .dim = i};
            if (!(t->run_dims >> i & 1))
                continue;
            for (size_t p = 0; p < d->n_points; p++) {
                oi_dyn_leaf(d, p, leaf, &q);
                f[p] = q.out[o].dims[i];
            }
            if (!fit(x, f, x->all, &set.fn))
                return oi_dyn_refuse(d, "how long the result is follows no simple rule");
            set.value = f[0];
            *OI_PUSH(d->u->arena, &k->lengths) = set;
        }
    }
    return true;
}

uint32_t oi_dyn_value(const oi_dyn *d, uint32_t value, int64_t *dims)
{
    const oi_operand *first = &d->expansions[0]->values[value].type;
    uint32_t varies = 0;
    memcpy(dims, first->dims, first->rank * sizeof *dims);
    for (size_t p = 1; p < d->n_points; p++) {
        const oi_operand *o = &d->expansions[p]->values[value].type;
        for (uint32_t k = 0; k < o->rank; k++)
            varies |= (uint32_t)(o->dims[k] != first->dims[k]) << k;
    }
    return varies;
}
