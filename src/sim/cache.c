/* cache.c: cache.read, cache.write, cache.increment, cache.decrement and cache.reset: selectors
 * become boxes of the variable's grid (spec/dsl.md §6, §7). */
#include "sim/sim.h"

typedef enum mode { READ, WRITE, RESET } mode;

/* A selection: the box, and the axes that stay in the result. */
typedef struct selection {
    oi_state *state;
    oi_box box;
    uint32_t rank; /* of the result */
    uint64_t dims[OI_GRID_RANK];
    uint32_t axis[OI_GRID_RANK]; /* of the grid, by dim of the result */
    uint64_t size[OI_GRID_RANK]; /* what the variable's sizes become */
    bool grows;
} selection;

/* -- one axis -- */

static bool is_growable(const oi_pvar *v, uint32_t axis)
{
    return axis < v->n_axes && !(axis < v->n_table && v->axes[axis].has_fixed);
}

static oi_status out_of_range(oi_ctx *c, const oi_state *s, uint32_t axis, oi_span span,
                              const char *what, uint64_t found, uint64_t limit)
{
    const oi_pvar *v = s->var;
    const char *name = axis < v->n_axes ? v->axes[axis].name : NULL;
    if (name)
        return oi_ctx_fail(c, span, "E047",
                           "out of range for '%s': %s %llu of '%s', %sat most %llu", v->name, what,
                           (unsigned long long)found, name, strcmp(what, "growth") ? "size " : "",
                           (unsigned long long)limit);
    return oi_ctx_fail(c, span, "E047", "out of range for '%s': %s %llu, size %llu", v->name, what,
                       (unsigned long long)found, (unsigned long long)limit);
}

/* [start, end) of an axis, from its selector. */
static oi_status range_of(oi_ctx *c, const oi_psel *sel, const int64_t *own, uint64_t n,
                          uint64_t *start, uint64_t *end)
{
    int64_t a = 0, b = (int64_t)n;
    if (sel->start.n)
        OI_TRY(oi_ctx_code(c, &sel->start, own, &a));
    if (a < 0)
        return oi_ctx_fail(c, sel->source->span, "E042", "%s %lld is negative",
                           sel->is_slice ? "start" : "index", (long long)a);
    if (!sel->is_slice) {
        *start = (uint64_t)a;
        *end = (uint64_t)a + 1;
        return OI_OK;
    }
    if (sel->end.n)
        OI_TRY(oi_ctx_code(c, &sel->end, own, &b));
    if (b < 0)
        b += (int64_t)n;
    if (b < a)
        return oi_ctx_fail(c, sel->source->span, "E046",
                           "slice %lld..%lld ends before it starts (size %llu)", (long long)a,
                           (long long)b, (unsigned long long)n);
    *start = (uint64_t)a;
    *end = (uint64_t)b;
    return OI_OK;
}

/* A read past a growable table gives initial values; a write grows what can grow. */
static oi_status check_range(oi_ctx *c, selection *x, uint32_t axis, oi_span span, mode m,
                             bool is_slice, uint64_t end)
{
    const oi_state *s = x->state;
    bool table = axis < s->var->n_table, growable = is_growable(s->var, axis);
    uint64_t limit = x->size[axis];
    if (growable && m == WRITE)
        limit = s->most[axis];
    else if (growable && table)
        limit = UINT64_MAX;
    if (end <= limit)
        return OI_OK;
    return out_of_range(c, s, axis, span, is_slice ? "end" : "index", is_slice ? end : end - 1,
                        limit);
}

static oi_status select_axis(oi_ctx *c, selection *x, uint32_t axis, const oi_psel *sel, mode m,
                             const int64_t *own)
{
    uint64_t start = 0, end = x->size[axis];
    bool is_slice = !sel || sel->is_slice;
    if (sel) {
        OI_TRY(range_of(c, sel, own, x->size[axis], &start, &end));
        OI_TRY(check_range(c, x, axis, sel->source->span, m, is_slice, end));
    }
    x->box.start[axis] = start;
    x->box.count[axis] = end - start;
    if (is_slice) {
        x->axis[x->rank] = axis;
        x->dims[x->rank++] = end - start;
    }
    return OI_OK;
}

/* -- auto_dim -- */

static oi_status grow_auto(oi_ctx *c, selection *x, const oi_paccess *a, const int64_t *own)
{
    const oi_state *s = x->state;
    const oi_pvar *v = s->var;
    for (uint32_t i = v->n_table; i < v->n_axes; i++) {
        int64_t g;
        uint64_t size;
        OI_TRY(oi_ctx_code(c, &a->sels[i].start, own, &g));
        if (g < 0)
            return oi_ctx_fail(c, a->sels[i].source->span, "E042", "index %lld is negative",
                               (long long)g);
        size = v->dims[i - v->n_table] + (uint64_t)g;
        if (size > s->most[i])
            return out_of_range(c, s, i, a->sels[i].source->span, "growth", (uint64_t)g,
                                s->most[i] - v->dims[i - v->n_table]);
        if (size > x->size[i]) {
            x->size[i] = size;
            x->grows = true;
        }
    }
    return OI_OK;
}

/* -- the whole access -- */

static oi_status make_selection(oi_ctx *c, const oi_paccess *a, mode m, selection *x)
{
    oi_state *s = c->exec->states[a->var];
    const oi_pvar *v = s->var;
    int64_t own[OI_MAX_RANK];
    if (c->slots[a->var].is_lent)
        return oi_ctx_fail(c, a->source->base.span, "E070", "'%s' is lent; await it first",
                           v->name);
    x->state = s;
    x->rank = 0;
    x->grows = false;
    memcpy(x->size, s->grid.size, sizeof x->size);
    for (uint32_t i = 0; i < v->n_axes; i++)
        own[i] = (int64_t)(s->grid.size[i] - (i < v->n_table ? 0 : v->dims[i - v->n_table]));
    bool whole_auto = m != RESET && oi_access_is_growth(v, a);
    if (whole_auto)
        OI_TRY(grow_auto(c, x, a, own));
    for (uint32_t i = 0; i < s->grid.rank; i++) {
        bool given = i < a->n && !(whole_auto && i >= v->n_table);
        OI_TRY(select_axis(c, x, i, given ? &a->sels[i] : NULL, m, own));
    }
    return OI_OK;
}

static void text_dims(oi_text *t, uint32_t rank, const uint64_t *dims)
{
    oi_text_add(t, "[");
    for (uint32_t i = 0; i < rank; i++)
        oi_text_add(t, "%s%llu", i ? ", " : "", (unsigned long long)dims[i]);
    oi_text_add(t, "]");
}

/* E050 and E051 between a selection and the variable on the other side. */
static oi_status check_match(oi_ctx *c, const oi_pref *ref, const selection *x, oi_dtype t,
                             uint32_t rank, const uint64_t *dims)
{
    const oi_pvar *v = x->state->var;
    const char *name = ref->source->base.text;
    if (t != v->dtype)
        return oi_ctx_fail(c, ref->source->base.span, "E050", "'%s' is %s but '%s' is %s", name,
                           oi_dtype_name(t), v->name, oi_dtype_name(v->dtype));
    bool same = rank == x->rank;
    for (uint32_t i = 0; same && i < rank; i++)
        same = dims[i] == x->dims[i] || dims[i] == OI_DIM_RUN;
    if (same)
        return OI_OK;
    char text[256];
    oi_text out = {text, 0, sizeof text};
    text_dims(&out, rank, dims);
    oi_text_add(&out, ", the selection of '%s' is ", v->name);
    text_dims(&out, x->rank, x->dims);
    return oi_ctx_fail(c, ref->source->base.span, "E051", "'%s' is %s", name, text);
}

/* A `?` holds what the table can: a read past @cap has no bound that a static target could keep. */
static oi_status check_bound(oi_ctx *c, const oi_pref *ref, const oi_pvar *v, const selection *x)
{
    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t a = x->axis[i];
        uint64_t end = x->box.start[a] + x->box.count[a];
        if (v->dims[i] == OI_DIM_RUN && end > x->state->most[a])
            return out_of_range(c, x->state, a, ref->source->base.span, "end", end,
                                x->state->most[a]);
    }
    return OI_OK;
}

static void set_sizes(selection *x)
{
    memcpy(x->state->grid.size, x->size, sizeof x->size);
}

/* -- the operations -- */

#define WORTH_LENDING 4096 /* bytes: below, a copy takes no longer */

/* Shows the selection in place of a copy where it lies together. No other reader may use the
 * variable then: views of consumers are taken without asking here. */
static oi_status lend(oi_ctx *c, const oi_pref *to, const selection *x, uint64_t bytes, bool *lent)
{
    const void *data = NULL;
    oi_slot *slot;
    *lent = false;
    if (bytes >= WORTH_LENDING && c->exec->sim->program->n_consumers == 0)
        data = oi_grid_view(&x->state->grid, &x->box);
    if (!data)
        return OI_OK;
    OI_TRY(oi_mem_borrow(c, to, x->dims, data, &slot));
    if (!slot)
        return OI_OK;
    if (!oi_state_view(x->state, slot))
        return oi_slot_own(&c->exec->sim->budget, slot) ? OI_OK : oi_ctx_no_memory(c, bytes);
    *lent = true;
    return OI_OK;
}

static oi_status read(oi_ctx *c, const oi_pnode *n)
{
    selection x;
    oi_out out;
    uint64_t elements, bytes;
    const oi_pref *to = &n->as.move.to;
    const oi_pvar *v = &c->exec->sim->program->vars[to->var];
    OI_TRY(make_selection(c, &n->as.move.cache, READ, &x));
    OI_TRY(check_match(c, to, &x, v->dtype, v->rank, v->dims));
    OI_TRY(check_bound(c, to, v, &x));
    if (!oi_box_count(&x.state->grid, &x.box, &elements, &bytes))
        return oi_ctx_no_memory(c, UINT64_MAX);
    if (x.grows && !oi_state_log_sizes(x.state))
        return oi_ctx_no_memory(c, 0);
    bool lent;
    OI_TRY(lend(c, to, &x, bytes, &lent));
    if (lent) {
        set_sizes(&x);
        return OI_OK;
    }
    OI_TRY(oi_mem_write(c, to, x.dims, false, &out));
    set_sizes(&x);
    oi_grid_read(&x.state->grid, &x.box, out.data);
    oi_mem_commit(c, &out);
    return OI_OK;
}

static oi_status write(oi_ctx *c, const oi_pnode *n)
{
    selection x;
    oi_input from;
    uint64_t elements, bytes;
    const oi_pref *ref = &n->as.move.from;
    OI_TRY(oi_mem_read(c, ref, &from));
    OI_TRY(make_selection(c, &n->as.move.cache, WRITE, &x));
    OI_TRY(check_match(c, ref, &x, from.dtype, from.rank, from.dims));
    oi_state *s = x.state;
    if (!oi_box_count(&s->grid, &x.box, &elements, &bytes))
        return oi_ctx_no_memory(c, UINT64_MAX);
    if (s->n_lends && elements) {
        if (!oi_state_recall(s, &x.box))
            return oi_ctx_no_memory(c, bytes);
        from.data = from.slot ? from.slot->data : from.data; /* it may have shown this very place */
    }
    if (!oi_state_log(s, &x.box))
        return oi_ctx_no_memory(c, bytes);
    for (uint32_t i = 0; i < s->var->n_axes && elements; i++) {
        uint64_t end = x.box.start[i] + x.box.count[i];
        x.size[i] = end > x.size[i] ? end : x.size[i];
    }
    if (elements == 0) { /* nothing is written: growth asked for by an auto_dim access stays */
        set_sizes(&x);
        return OI_OK;
    }
    if (!oi_grid_reserve(&s->grid, &x.box, s->most))
        return oi_ctx_no_memory(c, bytes);
    set_sizes(&x);
    oi_grid_write(&s->grid, &x.box, from.data);
    oi_grid_mark(&s->grid, &x.box, true);
    return OI_OK;
}

static oi_status reset_whole(oi_ctx *c, oi_state *s)
{
    if (!oi_state_log_all(s))
        return oi_ctx_no_memory(c, 0);
    oi_status status = oi_state_load(s, c->diag);
    return status == OI_OK ? OI_OK : oi_ctx_reported(c, status);
}

/* Part of a plain tensor: from the model where it came from there. */
static oi_status reset_part(oi_ctx *c, selection *x)
{
    oi_state fresh = {.var = x->state->var, .sim = x->state->sim, .grid = x->state->grid};
    uint64_t elements, bytes;
    if (x->state->var->source == OI_FROM_INIT) {
        oi_grid_fill(&x->state->grid, &x->box);
        return OI_OK;
    }
    fresh.grid.data = fresh.grid.written = NULL;
    oi_status status = oi_state_load(&fresh, c->diag);
    (void)oi_box_count(&fresh.grid, &x->box, &elements, &bytes); /* it was logged: it fits */
    void *part = status == OI_OK ? oi_ctx_scratch(c, bytes) : NULL;
    if (part) {
        oi_grid_read(&fresh.grid, &x->box, part);
        oi_grid_write(&x->state->grid, &x->box, part);
    } else if (status == OI_OK) {
        status = oi_ctx_no_memory(c, bytes);
    } else {
        status = oi_ctx_reported(c, status);
    }
    oi_grid_free(&fresh.grid);
    return status;
}

static oi_status reset(oi_ctx *c, const oi_pnode *n)
{
    selection x;
    const oi_paccess *a = &n->as.move.cache;
    oi_state *s = c->exec->states[a->var];
    const oi_pvar *v = s->var;
    OI_TRY(make_selection(c, a, RESET, &x));
    if (s->n_lends && !oi_state_recall(s, NULL))
        return oi_ctx_no_memory(c, 0);
    if (oi_access_is_whole(a))
        return reset_whole(c, s);
    for (uint32_t i = v->n_table; i < a->n && i < v->n_axes; i++)
        if (!a->sels[i].is_slice || a->sels[i].start.n || a->sels[i].end.n)
            return oi_ctx_fail(c, a->sels[i].source->span, "E048",
                               "index '%s' of '%s' is @auto_dim: only the whole can be reset",
                               v->axes[i].name, v->name);
    if (!oi_state_log(s, &x.box))
        return oi_ctx_no_memory(c, 0);
    OI_TRY(reset_part(c, &x));
    if (!v->n_table)
        return OI_OK;
    uint64_t sizes[OI_GRID_RANK];
    oi_grid_mark(&s->grid, &x.box, false);
    oi_grid_measure(&s->grid, sizes);
    for (uint32_t i = 0; i < v->n_table; i++)
        s->grid.size[i] = v->axes[i].has_fixed ? s->grid.size[i] : sizes[i];
    return OI_OK;
}

/* -- counters -- */

static void add_int(oi_dtype t, void *data, uint64_t amount)
{
    uint64_t v = oi_element_bits(t, data, 0) + amount; /* wraps at the width by truncation */
    size_t bytes = oi_dtype_bits(t) / 8;
    uint8_t *p = data;
    for (size_t i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static oi_status count(oi_ctx *c, const oi_pnode *n)
{
    selection x;
    bool down = n->kind == OI_NODE_CACHE_DECREMENT;
    uint64_t amount = n->as.move.amount;
    int64_t value;
    OI_TRY(make_selection(c, &n->as.move.cache, WRITE, &x));
    if (n->as.move.amount_is_index) {
        amount = (uint64_t)c->indices[n->as.move.amount_var];
    } else if (n->as.move.amount_var != OI_NO_ID) {
        OI_TRY(oi_mem_i64(c, n->as.move.amount_var, n->source->as.move.amount_name.span, &value));
        amount = (uint64_t)value;
    }
    oi_grid *g = &x.state->grid;
    if (!oi_state_log(x.state, &x.box) || !oi_grid_reserve(g, &x.box, x.state->most))
        return oi_ctx_no_memory(c, 8);
    if (!oi_dtype_is_float(g->dtype)) {
        add_int(g->dtype, g->data, down ? 0 - amount : amount);
        return OI_OK;
    }
    bool negative = n->as.move.amount_var != OI_NO_ID && (int64_t)amount < 0;
    double by = negative ? -(double)(0 - amount) : (double)amount;
    double sum = oi_element_f64(g->dtype, g->data, 0) + (down ? -by : by);
    (void)oi_element_set_f64(g->dtype, g->data, 0, sum); /* floats take any value */
    return OI_OK;
}

static oi_status run(oi_ctx *c, const oi_pnode *n)
{
    switch (n->kind) {
    case OI_NODE_CACHE_READ: return read(c, n);
    case OI_NODE_CACHE_WRITE: return write(c, n);
    case OI_NODE_CACHE_RESET: return reset(c, n);
    default: return count(c, n);
    }
}

/* Readers may be many, and an auto_dim read grows: with threads, one access at a time. */
oi_status oi_cache_run(oi_ctx *c, const oi_pnode *n)
{
    pthread_mutex_t *lock = &c->exec->states[n->as.move.cache.var]->lock;
    if (!c->exec->is_parallel)
        return run(c, n);
    pthread_mutex_lock(lock);
    oi_status status = run(c, n);
    pthread_mutex_unlock(lock);
    return status;
}
