/* nest_place.c: where a nest's elements lie: coordinates as offsets into storage. */
#include "kernel/nest_run.h"

/* -- compiling -- */

/* Whether a coordinate stays within [from, to) for all iterations. */
static bool stays(const oi_nest *n, const oi_nest_coord *c, int64_t from, int64_t to)
{
    int64_t low = c->base, high = c->base;
    for (uint32_t a = 0; a < n->n_axes; a++) {
        int64_t reach = c->step[a] * (n->axes[a].extent - 1);
        *(reach < 0 ? &low : &high) += reach;
    }
    return low >= from && high < to;
}

static void add_coord(oi_nest_job *j, oi_lane *l, const oi_nest_coord *c, int64_t length,
                      int64_t stride, const oi_operand *flat)
{
    const oi_nest *n = j->n;
    bool is_safe = c->index == OI_NEST_NONE &&
                   ((c->bend == OI_BEND_NONE && !c->may_leave) ||
                    stays(n, c, c->bend ? c->bend_from : 0, c->bend ? c->bend_to : length));
    if (is_safe && !flat) {
        l->at += c->base * stride;
        for (uint32_t a = 0; a < n->n_axes; a++)
            l->step[a] += c->step[a] * stride;
        return;
    }
    oi_special *s = &l->special[l->n_special++];
    *s = (oi_special){.base = c->base,
                      .length = length,
                      .stride = stride,
                      .bend = c->bend,
                      .bend_from = c->bend_from,
                      .bend_to = c->bend_to,
                      .may_leave = c->may_leave,
                      .flat = flat};
    memcpy(s->step, c->step, n->n_axes * sizeof *s->step);
    if (c->index != OI_NEST_NONE) {
        const oi_operand *by = &j->q->in[n->reads[c->index].operand];
        s->index = &j->reads[c->index];
        s->index_at = by->rank ? c->index_last * by->strides[by->rank - 1] : 0;
    }
}

static void set_lane(oi_nest_job *j, const oi_nest_ref *r, oi_lane *l)
{
    const oi_kernel_io *io = j->io;
    *l = (oi_lane){.operand = r->operand, .name = r->name, .is_position = r->is_position};
    if (r->is_position) {
        add_coord(j, l, &r->at[0], INT64_MAX, 1, NULL);
        return;
    }
    const oi_operand *o = r->is_output ? &j->q->out[r->operand] : &j->q->in[r->operand];
    const int64_t *at = r->is_output ? io->out_at : io->in_at;
    l->dtype = o->dtype;
    /* only a write is written through it */
    l->data = r->is_output ? io->out[r->operand] : (char *)(uintptr_t)io->in[r->operand];
    l->at = at ? at[r->operand] : 0;
    if (r->is_flat) {
        add_coord(j, l, &r->at[0], oi_operand_count(o), 1, oi_operand_is_dense(o) ? NULL : o);
        return;
    }
    for (uint32_t d = 0; d < r->rank; d++)
        add_coord(j, l, &r->at[d], o->dims[d], o->strides[d], NULL);
}

/* -- axes -- */

typedef void each_steps(void *ctx, int64_t *step, int64_t *base);

/* Everything that is affine in the axes. */
static void for_each(oi_nest_job *j, each_steps *fn, void *ctx)
{
    for (uint32_t k = 0; k <= j->n->n_reads; k++) {
        oi_lane *l = k < j->n->n_reads ? &j->reads[k] : &j->write;
        fn(ctx, l->step, &l->at);
        for (uint32_t s = 0; s < l->n_special; s++)
            fn(ctx, l->special[s].step, &l->special[s].base);
    }
    if (j->n->has_guard)
        fn(ctx, j->guard.step, &j->guard.base);
}

typedef struct axis_work {
    uint32_t a; /* axes a and a + 1 */
    uint32_t to;
    int64_t extent; /* of a + 1 */
    int64_t first;
    bool joins;
} axis_work;

static void asks_join(void *ctx, int64_t *step, int64_t *base)
{
    axis_work *w = ctx;
    (void)base;
    w->joins &= step[w->a] == step[w->a + 1] * w->extent;
}

static void move_step(void *ctx, int64_t *step, int64_t *base)
{
    const axis_work *w = ctx;
    (void)base;
    step[w->to] = step[w->a];
}

static void start_at(void *ctx, int64_t *step, int64_t *base)
{
    const axis_work *w = ctx;
    *base += step[w->a] * w->first;
}

/* Axes of length 1 go; neighbours of one kind join where everything allows it. */
static void join_axes(oi_nest_job *j)
{
    uint32_t rank = 0, n_out = 0;
    for (uint32_t a = 0; a < j->n_axes; a++) {
        if (j->extent[a] == 1)
            continue;
        bool is_out = a < j->n_out_axes;
        axis_work w = {.a = a, .to = rank};
        for_each(j, move_step, &w);
        j->extent[rank] = j->extent[a];
        w = (axis_work){.a = rank - 1, .to = rank - 1, .extent = j->extent[rank], .joins = true};
        uint32_t start = is_out ? 0 : n_out;
        if (rank > start)
            for_each(j, asks_join, &w);
        if (rank > start && w.joins && !j->n->is_scan) {
            w.a = rank;
            for_each(j, move_step, &w);
            j->extent[rank - 1] *= j->extent[rank];
        } else {
            rank++;
        }
        n_out = is_out ? rank : n_out;
    }
    j->n_axes = rank;
    j->n_out_axes = n_out;
}

/* The one axis that a coordinate runs along, or OI_NEST_NONE. */
static uint32_t only_axis(const oi_nest_job *j, const oi_special *s)
{
    uint32_t found = OI_NEST_NONE;
    for (uint32_t a = 0; a < j->n_axes; a++) {
        if (s->step[a] == 0)
            continue;
        if (found != OI_NEST_NONE)
            return OI_NEST_NONE;
        found = a;
    }
    return found;
}

/* The axis runs only where the coordinate stays inside. */
static void crop_axis(oi_nest_job *j, oi_special *s, uint32_t a)
{
    int64_t step = s->step[a], first = 0, end = j->extent[a];
    while (first < end && (s->base + step * first < 0 || s->base + step * first >= s->length))
        first++;
    while (end > first &&
           (s->base + step * (end - 1) < 0 || s->base + step * (end - 1) >= s->length))
        end--;
    axis_work w = {.a = a, .first = first};
    for_each(j, start_at, &w);
    j->extent[a] = end - first;
}

bool oi_nest_crop(oi_nest_job *j)
{
    oi_lane *l = &j->reads[0];
    for (uint32_t s = 0; s < l->n_special; s++)
        if (l->special[s].index || l->special[s].bend || l->special[s].flat ||
            only_axis(j, &l->special[s]) == OI_NEST_NONE)
            return false;
    for (uint32_t s = 0; s < l->n_special; s++)
        crop_axis(j, &l->special[s], only_axis(j, &l->special[s]));
    for (uint32_t s = 0; s < l->n_special; s++) {
        l->at += l->special[s].base * l->special[s].stride;
        for (uint32_t a = 0; a < j->n_axes; a++)
            l->step[a] += l->special[s].step[a] * l->special[s].stride;
    }
    l->n_special = 0;
    oi_nest_settle(j);
    return true;
}

/* -- the whole -- */

static bool is_even(const oi_nest_job *j, const oi_lane *l, uint32_t last)
{
    (void)j;
    for (uint32_t s = 0; s < l->n_special; s++)
        if (l->special[s].step[last] || (l->special[s].index && l->special[s].index->step[last]))
            return false;
    return true;
}

void oi_nest_settle(oi_nest_job *j)
{
    join_axes(j);
    if (j->n_out_axes == 0) { /* a single element is a row like any other */
        axis_work w;
        for (uint32_t a = j->n_axes++; a > 0; a--) {
            j->extent[a] = j->extent[a - 1];
            w = (axis_work){.a = a - 1, .to = a};
            for_each(j, move_step, &w);
        }
        j->extent[0] = 1;
        j->n_out_axes = 1;
        for (uint32_t k = 0; k <= j->n->n_reads; k++) {
            oi_lane *l = k < j->n->n_reads ? &j->reads[k] : &j->write;
            l->step[0] = 0;
            for (uint32_t s = 0; s < l->n_special; s++)
                l->special[s].step[0] = 0;
        }
        j->guard.step[0] = 0;
    }
    j->total = 1;
    for (uint32_t a = 0; a < j->n_out_axes; a++)
        j->total *= j->extent[a];
    for (uint32_t k = 0; k < j->n->n_reads; k++)
        j->reads[k].is_even = is_even(j, &j->reads[k], j->n_axes - 1);
    j->write.is_even = is_even(j, &j->write, j->n_axes - 1);
}

bool oi_nest_prepare(oi_nest_job *j, const oi_nest *n, const oi_kernel_query *q, const oi_choice *c,
                     const oi_kernel_io *io)
{
    j->n = n;
    j->q = q;
    j->c = c;
    j->io = io;
    j->n_axes = n->n_axes;
    j->n_out_axes = 0;
    atomic_init(&j->first_fault, INT64_MAX);
    for (uint32_t a = 0; a < n->n_axes; a++) {
        j->extent[a] = n->axes[a].extent;
        j->n_out_axes += !n->axes[a].is_reduced;
        if (j->extent[a] == 0 && !n->axes[a].is_reduced)
            return false;
    }
    for (uint32_t k = 0; k < n->n_reads; k++)
        set_lane(j, &n->reads[k], &j->reads[k]);
    set_lane(j, &n->write, &j->write);
    if (n->has_guard) {
        j->guard = (oi_special){.base = n->guard.base, .length = INT64_MAX};
        memcpy(j->guard.step, n->guard.step, sizeof j->guard.step);
    }
    oi_dtype t = n->n_reads && !n->reads[0].is_position && n->reads[0].name != OI_NEST_NONE
                     ? j->reads[0].dtype
                     : j->write.dtype;
    j->fill = oi_kernel_bits(t, &n->fill);
    oi_nest_settle(j);
    return true;
}

/* -- finding -- */

void oi_nest_seek(const oi_nest_job *j, uint32_t n_axes, int64_t index, int64_t *pos)
{
    for (uint32_t a = n_axes; a-- > 0;) {
        pos[a] = index % j->extent[a];
        index /= j->extent[a];
    }
}

static int64_t affine(const oi_nest_job *j, int64_t base, const int64_t *step, const int64_t *pos)
{
    for (uint32_t a = 0; a < j->n_axes; a++)
        base += step[a] * pos[a];
    return base;
}

void oi_lane_start(const oi_nest_job *j, const oi_lane *l, const int64_t *pos, oi_lane_row *row)
{
    row->at = affine(j, l->at, l->step, pos);
    for (uint32_t s = 0; s < l->n_special; s++) {
        const oi_special *x = &l->special[s];
        row->v[s] = affine(j, x->base, x->step, pos);
        if (x->index)
            row->index_at[s] = affine(j, x->index->at + x->index_at, x->index->step, pos);
    }
}

int64_t oi_kernel_index(oi_dtype t, const void *data, uint64_t e)
{
    const char *p = data;
    if (t == OI_I64 || t == OI_U64) {
        int64_t v;
        memcpy(&v, p + e * 8, sizeof v);
        return t == OI_U64 && v < 0 ? INT64_MAX : v;
    }
    if (t == OI_I32) {
        int32_t v;
        memcpy(&v, p + e * 4, sizeof v);
        return v;
    }
    return oi_element_i64(t, data, e);
}

static int64_t index_value(const oi_lane *l, int64_t at)
{
    return oi_kernel_index(l->dtype, l->data, (uint64_t)at);
}

int64_t oi_nest_bent(oi_nest_bend bend, int64_t from, int64_t to, int64_t v)
{
    const int64_t n = to - from;
    if (bend == OI_BEND_NONE || n <= 0 || (v >= from && v < to))
        return v;
    v -= from;
    switch (bend) {
    case OI_BEND_EDGE: return from + (v < 0 ? 0 : n - 1);
    case OI_BEND_REFLECT: {
        int64_t period = n > 1 ? 2 * (n - 1) : 1;
        v = (v % period + period) % period;
        return from + (v < n ? v : period - v);
    }
    default: return from + (v % n + n) % n;
    }
}

static int64_t bent(const oi_special *s, int64_t v)
{
    return oi_nest_bent(s->bend, s->bend_from, s->bend_to, v);
}

static int64_t unravel(const oi_operand *o, int64_t element)
{
    int64_t at = 0;
    for (uint32_t d = o->rank; d-- > 0;) {
        at += element % o->dims[d] * o->strides[d];
        element /= o->dims[d];
    }
    return at;
}

oi_where oi_lane_at(const oi_nest_job *j, const oi_lane *l, const oi_lane_row *row, int64_t i,
                    int64_t *at)
{
    uint32_t last = j->n_axes - 1;
    int64_t to = row->at + l->step[last] * i;
    for (uint32_t s = 0; s < l->n_special; s++) {
        const oi_special *x = &l->special[s];
        int64_t v = row->v[s] + x->step[last] * i;
        if (x->index) {
            int64_t found = index_value(x->index, row->index_at[s] + x->index->step[last] * i);
            if (found < -x->length || found >= x->length)
                return x->may_leave ? OI_OUTSIDE : OI_FAULTY;
            v += found < 0 ? found + x->length : found;
        }
        v = bent(x, v);
        if (v < 0 || v >= x->length)
            return OI_OUTSIDE;
        to += x->flat ? unravel(x->flat, v) : x->stride * v;
    }
    *at = to;
    return OI_INSIDE;
}

bool oi_nest_guarded(const oi_nest_job *j, const int64_t *pos, int64_t i)
{
    return j->n->has_guard &&
           affine(j, j->guard.base, j->guard.step, pos) + j->guard.step[j->n_axes - 1] * i < 0;
}

/* -- faults -- */

void oi_nest_note_fault(oi_nest_job *j, int64_t iteration)
{
    int64_t first = atomic_load(&j->first_fault);
    while (iteration < first && !atomic_compare_exchange_weak(&j->first_fault, &first, iteration))
        ;
}

/* Which element of the index tensor a coordinate asks, by its row-major number. */
static uint64_t element_number(const oi_nest_ref *r, const oi_operand *o, const int64_t *pos,
                               uint32_t n_axes, int64_t index_last)
{
    int64_t e = 0;
    for (uint32_t d = 0; d < r->rank; d++) {
        int64_t v = r->at[d].base + (d + 1 == r->rank ? index_last : 0);
        for (uint32_t a = 0; a < n_axes; a++)
            v += r->at[d].step[a] * pos[a];
        e = e * o->dims[d] + v;
    }
    return (uint64_t)e;
}

static bool explain(const oi_nest_job *j, const oi_nest_ref *r, const int64_t *pos,
                    oi_kernel_fault *fault)
{
    const oi_operand *of = r->is_output ? &j->q->out[r->operand] : &j->q->in[r->operand];
    for (uint32_t d = 0; d < r->rank; d++) {
        const oi_nest_coord *c = &r->at[d];
        if (c->index == OI_NEST_NONE || c->may_leave)
            continue;
        const oi_nest_ref *by = &j->n->reads[c->index];
        const oi_operand *idx = &j->q->in[by->operand];
        const oi_lane *l = &j->reads[c->index];
        uint64_t e = element_number(by, idx, pos, j->n->n_axes, c->index_last);
        int64_t at = j->io->in_at ? j->io->in_at[by->operand] : 0, v;
        v = index_value(l, at + unravel(idx, (int64_t)e));
        if (v >= -of->dims[d] && v < of->dims[d])
            continue;
        *fault = (oi_kernel_fault){
            .code = "E047", .input = by->operand, .element = e, .value = v, .limit = of->dims[d]};
        return true;
    }
    return false;
}

void oi_nest_explain(const oi_nest_job *j, oi_kernel_fault *fault)
{
    int64_t pos[OI_NEST_AXES] = {0}, index = atomic_load(&j->first_fault);
    for (uint32_t a = j->n->n_axes; a-- > 0;) {
        pos[a] = index % j->n->axes[a].extent;
        index /= j->n->axes[a].extent;
    }
    for (uint32_t k = 0; k < j->n->n_reads; k++)
        if (explain(j, &j->n->reads[k], pos, fault))
            return;
    explain(j, &j->n->write, pos, fault);
}
