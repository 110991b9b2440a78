/* memory.c: what the variables hold. At step start nothing is copied or cleared: a slot whose epoch
 * is not the step's is established when it is first read (the model's bytes, @init or zeros), and
 * not at all when it is written first. Buffers are shared by transfers and by the views of
 * consumers, and replaced instead of changed while anybody else looks at them. */
#include "sim/sim.h"

/* -- slots -- */

void oi_slot_drop(oi_slot *s)
{
    oi_buffer_drop(s->buffer);
    oi_buffer_drop(s->spare);
    free(s->own_dims);
    *s = (oi_slot){0};
}

/* A buffer of at least n bytes that only this slot sees: its own, its spare, or a new one. */
static oi_buffer *writable(oi_budget *budget, oi_slot *s, uint64_t n, bool apart)
{
    if (!apart && oi_buffer_is_own(s->buffer) && s->buffer->size >= n) {
        oi_twin_forget(s->buffer);
        return s->buffer;
    }
    if (oi_buffer_is_own(s->spare) && s->spare->size >= n) {
        oi_buffer *b = s->spare;
        s->spare = NULL;
        oi_twin_forget(b);
        return b;
    }
    return oi_buffer_new(budget, OI_HELD_VALUES, n);
}

/* The dims of a value of v; false when memory or arithmetic runs out. */
static bool set_dims(const oi_pvar *v, oi_slot *s, const uint64_t *dims)
{
    if (!v->has_run_dims) {
        s->dims = v->dims;
        s->n_elements = v->n_elements;
        s->size_bytes = v->size_bytes;
        return true;
    }
    if (!s->own_dims && !(s->own_dims = calloc(v->rank, sizeof *s->own_dims)))
        return false;
    uint64_t n = 1;
    bool empty = false;
    for (uint32_t i = 0; i < v->rank; i++) {
        uint64_t dim = dims ? dims[i] : v->dims[i] == OI_DIM_RUN ? 0 : v->dims[i];
        s->own_dims[i] = dim;
        empty |= dim == 0;
        if (dim && __builtin_mul_overflow(n, dim, &n))
            return false;
    }
    s->dims = s->own_dims;
    s->n_elements = empty ? 0 : n;
    return oi_dtype_bytes(v->dtype, s->n_elements, &s->size_bytes) && s->size_bytes <= INT64_MAX;
}

static oi_budget *budget_of(const oi_ctx *c)
{
    return &c->exec->sim->budget;
}

static oi_status establish(oi_ctx *c, const oi_pvar *v, oi_source_kind source, size_t tensor,
                           oi_slot *s)
{
    if (!set_dims(v, s, NULL))
        return oi_ctx_no_memory(c, v->size_bytes);
    s->is_weight = source == OI_FROM_TENSOR;
    s->is_dirty = s->is_borrowed = false;
    if (s->is_weight) {
        s->tensor = tensor;
    } else if (source == OI_FROM_BYTES) {
        s->data = v->bytes;
    } else {
        oi_buffer *b = writable(budget_of(c), s, s->size_bytes, false);
        if (!b)
            return oi_ctx_no_memory(c, s->size_bytes);
        if (b != s->buffer) {
            oi_buffer_drop(s->buffer);
            s->buffer = b;
        }
        if (s->size_bytes)
            ((uint8_t *)b->data)[s->size_bytes - 1] = 0; /* unused bits of packed types are 0 */
        oi_elements_fill(v->dtype, b->data, 0, s->n_elements, v->init.bits);
        s->data = b->data;
    }
    s->epoch = c->exec->epoch;
    return OI_OK;
}

/* The model's bytes may have to be requested again at each use. */
static oi_status fetch_weight(oi_ctx *c, oi_slot *s)
{
    oi_weights *w = c->exec->sim->weights;
    if (c->n_pins == OI_MAX_PINS)
        return oi_ctx_fail(c, (oi_span){0}, "E060", "more than %u model tensors at once",
                           OI_MAX_PINS);
    oi_status status = oi_weights_get(w, s->tensor, &s->data, c->diag);
    if (status == OI_NOT_FOUND) /* the limit has no room for it */
        return oi_ctx_no_memory(c, s->size_bytes);
    if (status != OI_OK)
        return oi_ctx_reported(c, status);
    if (!oi_weights_is_stable(w))
        c->pins[c->n_pins++] = s->tensor;
    return OI_OK;
}

/* The value is on the device alone. */
static bool is_away(const oi_slot *s)
{
    return !s->is_weight && s->buffer && s->buffer->is_remote && s->data == s->buffer->data;
}

oi_status oi_mem_fetch(oi_ctx *c, oi_input *in)
{
    if (in->data || !in->slot)
        return OI_OK;
    if (in->slot->is_weight)
        OI_TRY(fetch_weight(c, in->slot));
    else if (is_away(in->slot))
        OI_TRY(oi_remote_fetch(c, in->slot->buffer, in->slot->size_bytes));
    in->data = in->slot->data;
    return OI_OK;
}

void oi_mem_release(oi_ctx *c)
{
    while (c->n_pins)
        oi_weights_release(c->exec->sim->weights, c->pins[--c->n_pins]);
}

/* -- finding -- */

static oi_slot *entry_slot(oi_entries *e, size_t i)
{
    if (i >= e->n) {
        size_t n = i + 1 > 2 * e->n ? i + 1 : 2 * e->n;
        oi_slot **at = realloc(e->at, n * sizeof *at);
        if (!at)
            return NULL;
        memset(at + e->n, 0, (n - e->n) * sizeof *at);
        e->at = at;
        e->n = n;
    }
    if (!e->at[i])
        e->at[i] = calloc(1, sizeof *e->at[i]);
    return e->at[i];
}

/* Where a value is and where it comes from. */
typedef struct found {
    const oi_pvar *var;
    oi_slot *slot;
    oi_source_kind source;
    size_t tensor;
} found;

static oi_status find_entry(oi_ctx *c, uint32_t var, oi_span at, const int64_t *indices, found *out)
{
    size_t entry;
    OI_TRY(oi_prefix_find(c, at, out->var, indices, &entry, &out->tensor));
    out->slot = entry_slot(&c->entries[var], entry);
    out->source = out->tensor == OI_NO_TENSOR ? OI_FROM_INIT : OI_FROM_TENSOR;
    return out->slot ? OI_OK : oi_ctx_no_memory(c, sizeof *out->slot);
}

static oi_status find_indexed(oi_ctx *c, const oi_pref *ref, found *out)
{
    int64_t indices[OI_MAX_RANK];
    for (uint32_t i = 0; i < ref->n_codes; i++) {
        OI_TRY(oi_ctx_code(c, &ref->codes[i], NULL, &indices[i]));
        if (indices[i] < 0)
            return oi_ctx_fail(c, ref->source->sels.at[i].span, "E042", "index %lld is negative",
                               (long long)indices[i]);
    }
    return find_entry(c, ref->var, ref->source->base.span, indices, out);
}

static oi_status find(oi_ctx *c, const oi_pref *ref, found *out)
{
    const oi_pvar *v = &c->exec->sim->program->vars[ref->var];
    *out = (found){v, &c->slots[ref->var], v->source, v->tensor};
    if (out->slot->is_lent)
        return oi_ctx_fail(c, ref->source->base.span, "E070", "'%s' is lent; await it first",
                           v->name);
    return v->is_prefix ? find_indexed(c, ref, out) : OI_OK;
}

/* -- reading -- */

static oi_status locate_slot(oi_ctx *c, const found *f, oi_input *out)
{
    oi_slot *s = f->slot;
    if (s->epoch != c->exec->epoch)
        OI_TRY(establish(c, f->var, f->source, f->tensor, s));
    *out = (oi_input){s->is_weight || is_away(s) ? NULL : s->data,
                      s->dims,
                      f->var->rank,
                      f->var->dtype,
                      s->n_elements,
                      s->size_bytes,
                      s};
    return OI_OK;
}

static oi_status read_slot(oi_ctx *c, const found *f, oi_input *out)
{
    OI_TRY(locate_slot(c, f, out));
    return oi_mem_fetch(c, out);
}

oi_status oi_mem_locate(oi_ctx *c, const oi_pref *ref, oi_input *out)
{
    found f;
    if (ref->is_index) {
        *out = (oi_input){.data = &c->indices[ref->var],
                          .dtype = OI_I64,
                          .n_elements = 1,
                          .size_bytes = sizeof(int64_t)};
        return OI_OK;
    }
    OI_TRY(find(c, ref, &f));
    return locate_slot(c, &f, out);
}

oi_status oi_mem_read(oi_ctx *c, const oi_pref *ref, oi_input *out)
{
    OI_TRY(oi_mem_locate(c, ref, out));
    return oi_mem_fetch(c, out);
}

/* A number is always stored; see oi_state_load. */
static void read_state(oi_ctx *c, uint32_t var, oi_input *out)
{
    const oi_grid *g = &c->exec->states[var]->grid;
    *out = (oi_input){.data = g->data, .dtype = g->dtype, .n_elements = 1, .size_bytes = 8};
}

oi_status oi_mem_read_var(oi_ctx *c, uint32_t var, oi_span span, oi_input *out)
{
    const oi_pvar *v = &c->exec->sim->program->vars[var];
    found f = {v, &c->slots[var], v->source, v->tensor};
    if (f.slot->is_lent)
        return oi_ctx_fail(c, span, "E070", "'%s' is lent; await it first", v->name);
    if (v->kind == OI_SYM_PERSISTENT) { /* rank 0: only those are read as values */
        read_state(c, var, out);
        return OI_OK;
    }
    return read_slot(c, &f, out);
}

oi_status oi_mem_peek(oi_ctx *c, uint32_t var, const int64_t *indices, oi_input *out)
{
    const oi_pvar *v = &c->exec->sim->program->vars[var];
    found f = {v, &c->slots[var], v->source, v->tensor};
    if (indices)
        OI_TRY(find_entry(c, var, (oi_span){0}, indices, &f));
    return read_slot(c, &f, out);
}

oi_status oi_mem_i64(oi_ctx *c, uint32_t var, oi_span span, int64_t *out)
{
    oi_input o;
    OI_TRY(oi_mem_read_var(c, var, span, &o));
    if (o.dtype == OI_I32) { /* counters, the common case */
        int32_t v;
        memcpy(&v, o.data, sizeof v);
        *out = v;
        return OI_OK;
    }
    if (o.dtype == OI_U64) {
        uint64_t u = oi_element_u64(o.dtype, o.data, 0);
        if (u > INT64_MAX)
            return oi_ctx_fail(c, span, "E047", "%llu does not fit a 64-bit signed integer",
                               (unsigned long long)u);
        *out = (int64_t)u;
        return OI_OK;
    }
    *out = oi_element_i64(o.dtype, o.data, 0);
    return OI_OK;
}

oi_status oi_mem_truth(oi_ctx *c, uint32_t var, oi_span span, bool *out)
{
    oi_input o;
    OI_TRY(oi_mem_read_var(c, var, span, &o));
    if (oi_dtype_is_float(o.dtype))
        *out = oi_element_f64(o.dtype, o.data, 0) != 0; /* NaN is not 0: true */
    else
        *out = oi_element_i64(o.dtype, o.data, 0) != 0;
    return OI_OK;
}

/* -- writing -- */

oi_status oi_mem_write(oi_ctx *c, const oi_pref *ref, const uint64_t *dims, bool apart, oi_out *out)
{
    found f;
    OI_TRY(find(c, ref, &f));
    oi_slot *s = f.slot, shape = {.own_dims = s->own_dims};
    if (f.var->has_run_dims && apart && s->own_dims) {
        /* the old dims stay readable too */
        shape.own_dims = NULL;
    }
    bool fits = set_dims(f.var, &shape, dims);
    oi_buffer *b = fits ? writable(budget_of(c), s, shape.size_bytes, apart) : NULL;
    if (!b) {
        if (shape.own_dims != s->own_dims)
            free(shape.own_dims);
        return oi_ctx_no_memory(c, shape.size_bytes);
    }
    *out = (oi_out){.data = b->data,
                    .dims = shape.dims,
                    .rank = f.var->rank,
                    .dtype = f.var->dtype,
                    .n_elements = shape.n_elements,
                    .size_bytes = shape.size_bytes,
                    .slot = s,
                    .fresh = b == s->buffer ? NULL : b};
    if (shape.own_dims && shape.own_dims != s->own_dims)
        out->own_dims = shape.own_dims;
    /* unused bits of packed types are 0; a buffer of the same size has them so already */
    if (shape.size_bytes && (out->fresh || shape.size_bytes != s->size_bytes))
        ((uint8_t *)b->data)[shape.size_bytes - 1] = 0;
    return OI_OK;
}

void oi_mem_commit(oi_ctx *c, oi_out *out)
{
    oi_slot *s = out->slot;
    if (out->fresh) {
        if (oi_buffer_is_own(s->buffer) && budget_of(c)->limit == 0) {
            oi_buffer_drop(s->spare);
            s->spare = s->buffer;
        } else {
            oi_buffer_drop(s->buffer);
        }
        s->buffer = out->fresh;
    }
    if (out->own_dims) {
        free(s->own_dims);
        s->own_dims = out->own_dims;
    }
    s->dims = out->dims;
    s->n_elements = out->n_elements;
    s->size_bytes = out->size_bytes;
    s->data = s->buffer->data;
    s->epoch = c->exec->epoch;
    s->is_weight = s->is_borrowed = false;
    s->is_dirty = true;
}

oi_status oi_mem_borrow(oi_ctx *c, const oi_pref *ref, const uint64_t *dims, const void *data,
                        oi_slot **slot)
{
    found f;
    *slot = NULL;
    OI_TRY(find(c, ref, &f));
    if (f.var->is_prefix || !set_dims(f.var, f.slot, dims))
        return OI_OK;
    *slot = f.slot;
    f.slot->data = data;
    f.slot->epoch = c->exec->epoch;
    f.slot->is_weight = false;
    f.slot->is_dirty = f.slot->is_borrowed = true;
    return OI_OK;
}

bool oi_slot_own(oi_budget *budget, oi_slot *s)
{
    oi_buffer *b = writable(budget, s, s->size_bytes, false);
    s->is_borrowed = false;
    if (!b) {
        s->epoch = 0; /* no value */
        return false;
    }
    memcpy(b->data, s->data, (size_t)s->size_bytes); /* borrowed: never on a device alone */
    if (b != s->buffer) {
        oi_buffer_drop(s->buffer);
        s->buffer = b;
    }
    s->data = b->data;
    return true;
}

void oi_mem_cancel(oi_out *out)
{
    if (out->fresh)
        oi_buffer_drop(out->fresh);
    free(out->own_dims);
}

void *oi_mem_insert(oi_ctx *c, uint32_t var)
{
    const oi_pvar *v = &c->exec->sim->program->vars[var];
    oi_slot *s = &c->slots[var];
    oi_buffer *b = set_dims(v, s, NULL) ? writable(budget_of(c), s, s->size_bytes, false) : NULL;
    if (!b)
        return NULL;
    if (b != s->buffer) {
        oi_buffer_drop(s->buffer);
        s->buffer = b;
    }
    s->data = b->data;
    s->epoch = c->exec->epoch;
    s->is_weight = s->is_dirty = s->is_borrowed = false;
    return b->data;
}

/* -- sharing -- */

/* to takes from's value; no bytes move. */
static bool share(oi_slot *to, const oi_slot *from, uint32_t rank)
{
    if (from->dims && from->dims == from->own_dims) {
        if (!to->own_dims && !(to->own_dims = calloc(rank, sizeof *to->own_dims)))
            return false;
        memcpy(to->own_dims, from->dims, rank * sizeof *to->own_dims);
        to->dims = to->own_dims;
    } else {
        to->dims = from->dims;
    }
    /* bytes of metadata have no owner and live as long as the model */
    bool owned = !from->is_weight && from->buffer && from->data == from->buffer->data;
    oi_buffer *b = owned ? oi_buffer_share(from->buffer) : NULL;
    if (owned) {
        oi_buffer_drop(to->buffer);
        to->buffer = b;
    }
    to->data = from->data;
    to->n_elements = from->n_elements;
    to->size_bytes = from->size_bytes;
    to->epoch = from->epoch;
    to->tensor = from->tensor;
    to->is_weight = from->is_weight;
    to->is_borrowed = false; /* a borrowed value is copied instead */
    return true;
}

oi_status oi_mem_transfer(oi_ctx *c, const oi_pref *from, const oi_pref *to)
{
    oi_input o;
    found f;
    OI_TRY(oi_mem_locate(c, from, &o));
    OI_TRY(find(c, to, &f));
    if (f.var->dtype != o.dtype)
        return oi_ctx_fail(c, to->source->base.span, "E050", "transfer of %s into %s '%s'",
                           oi_dtype_name(o.dtype), oi_dtype_name(f.var->dtype), f.var->name);
    bool same = f.var->rank == o.rank;
    for (uint32_t i = 0; same && i < o.rank; i++)
        same = f.var->dims[i] == o.dims[i] || f.var->dims[i] == OI_DIM_RUN;
    if (!same)
        return oi_ctx_fail(c, to->source->base.span, "E051", "transfer into '%s' of another shape",
                           f.var->name);
    if (o.slot == f.slot)
        return OI_OK;
    bool plain =
        o.slot && !o.slot->is_borrowed && !f.var->has_run_dims && o.slot->dims != o.slot->own_dims;
    if (plain) {
        if (!share(f.slot, o.slot, o.rank))
            return oi_ctx_no_memory(c, 0);
        f.slot->dims = f.var->dims;
        f.slot->is_dirty = true;
        return OI_OK;
    }
    oi_out out;
    OI_TRY(oi_mem_fetch(c, &o));
    OI_TRY(oi_mem_write(c, to, o.dims, true, &out));
    oi_elements_copy(o.dtype, out.data, 0, o.data, 0, o.n_elements);
    oi_mem_commit(c, &out);
    return OI_OK;
}

static bool view_slot(oi_slot *to, const oi_slot *from, uint32_t rank)
{
    bool ok = share(to, from, rank);
    to->is_dirty = false;
    return ok;
}

bool oi_mem_view(oi_ctx *to, oi_ctx *from, uint32_t var)
{
    const oi_pvar *v = &to->exec->sim->program->vars[var];
    if (v->kind == OI_SYM_PERSISTENT)
        return true;
    if (!v->is_prefix)
        return view_slot(&to->slots[var], &from->slots[var], v->rank);
    const oi_entries *e = &from->entries[var];
    for (size_t i = 0; i < to->entries[var].n; i++)
        if (to->entries[var].at[i] && (i >= e->n || !e->at[i]))
            to->entries[var].at[i]->epoch = 0;
    for (size_t i = 0; i < e->n; i++) {
        oi_slot *s = e->at[i] ? entry_slot(&to->entries[var], i) : NULL;
        if (e->at[i] && (!s || !view_slot(s, e->at[i], v->rank)))
            return false;
    }
    return true;
}

/* What was written moves over: the writer keeps nothing. */
static void publish_slot(oi_slot *from, oi_slot *to)
{
    if (!from->is_dirty)
        return;
    oi_slot old = *to;
    *to = *from;
    to->is_lent = old.is_lent;
    *from = (oi_slot){.buffer = old.buffer, .spare = old.spare, .own_dims = old.own_dims};
}

void oi_mem_publish(oi_ctx *from, oi_ctx *to, uint32_t var)
{
    publish_slot(&from->slots[var], &to->slots[var]);
    for (size_t i = 0; i < from->entries[var].n; i++) {
        oi_slot *s = from->entries[var].at[i];
        oi_slot *t = s && s->is_dirty ? entry_slot(&to->entries[var], i) : NULL;
        if (t)
            publish_slot(s, t);
    }
}
