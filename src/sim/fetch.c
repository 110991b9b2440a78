/* fetch.c: values in and out. */
#include "sim/sim.h"

static oi_place at_executor(const oi_exec *e)
{
    const oi_graph *g = e->sim->program->graph;
    return (oi_place){.file = g->source.name ? g->source.name : g->origin ? g->origin : "graph"};
}

static oi_status unknown(const oi_exec *e, const char *name, oi_diag *d)
{
    const oi_program *p = e->sim->program;
    oi_nearest near = oi_nearest_start(name);
    for (uint32_t i = 0; i < p->n_vars; i++)
        oi_nearest_offer(&near, p->vars[i].name);
    oi_diag_error(d, at_executor(e), "E030", "unknown variable '%s'", name);
    if (near.best)
        oi_diag_hint(d, "did you mean '%s'?", near.best);
    return OI_ERR_INPUT;
}

static void text_dims(oi_text *t, uint32_t rank, const uint64_t *dims)
{
    oi_text_add(t, "[");
    for (uint32_t i = 0; i < rank; i++)
        oi_text_add(t, "%s%llu", i ? ", " : "", (unsigned long long)dims[i]);
    oi_text_add(t, "]");
}

/* -- in -- */

static bool fits(const oi_pvar *v, const oi_view *x)
{
    if (x->rank == 1 && x->dims[0] == v->n_elements)
        return true;
    bool same = x->rank == v->rank;
    for (uint32_t i = 0; same && i < v->rank; i++)
        same = x->dims[i] == v->dims[i];
    return same;
}

static oi_status check_insert(const oi_exec *e, const oi_pvar *v, const oi_view *x, oi_diag *d)
{
    oi_place at = at_executor(e);
    if (v->kind != OI_SYM_DYNAMIC)
        return oi_diag_error(d, at, "E021", "'%s' is %s: only dynamic variables take values",
                             v->name, oi_symbol_kind_name(v->kind));
    if (e->in_step)
        return oi_diag_error(d, at, "E021", "'%s' cannot be inserted during a step", v->name);
    if (x->dtype != v->dtype)
        return oi_diag_error(d, at, "E050", "'%s' is %s, the value is %s", v->name,
                             oi_dtype_name(v->dtype), oi_dtype_name(x->dtype));
    if (fits(v, x))
        return OI_OK;
    char text[256];
    oi_text t = {text, 0, sizeof text};
    text_dims(&t, v->rank, v->dims);
    oi_text_add(&t, ", the value is ");
    text_dims(&t, x->rank, x->dims);
    return oi_diag_error(d, at, "E051", "'%s' is %s", v->name, text);
}

oi_status oi_insert(oi_exec *e, const char *name, const oi_view *value, oi_diag *diag)
{
    uint32_t id = oi_program_find(e->sim->program, name);
    if (id == OI_NO_ID)
        return unknown(e, name, diag);
    const oi_pvar *v = &e->sim->program->vars[id];
    OI_TRY(check_insert(e, v, value, diag));
    void *to = oi_mem_insert(e->entry, id);
    if (!to)
        return oi_sim_no_memory(e->sim, name, v->size_bytes, diag);
    if (v->size_bytes) /* unused bits of packed types are 0 */
        ((uint8_t *)to)[v->size_bytes - 1] = 0;
    oi_elements_copy(v->dtype, to, 0, value->data, 0, v->n_elements);
    e->entry->slots[id].is_inserted = true;
    return OI_OK;
}

oi_status oi_insert_flat(oi_exec *e, const char *name, oi_dtype dtype, const void *data, uint64_t n,
                         oi_diag *diag)
{
    uint64_t bytes = 0;
    if (!oi_dtype_bytes(dtype, n, &bytes))
        return OI_ERR_USAGE;
    return oi_insert(e, name, &(oi_view){dtype, 1, &n, data, n, bytes}, diag);
}

bool oi_is_inserted(const oi_exec *e, const char *name)
{
    uint32_t id = oi_program_find(e->sim->program, name);
    return id != OI_NO_ID && e->entry->slots[id].is_inserted;
}

/* -- out -- */

static oi_buffer *copy_room(oi_exec *e, uint32_t id, uint64_t bytes)
{
    if (!e->fetched[id] || e->fetched[id]->size < bytes) {
        oi_buffer_drop(e->fetched[id]);
        e->fetched[id] = oi_buffer_new(&e->sim->budget, OI_HELD_VALUES, bytes);
    }
    return e->fetched[id];
}

static oi_status fetch_state(oi_exec *e, uint32_t id, oi_view *out, oi_diag *d)
{
    const oi_state *s = e->states[id];
    oi_box whole;
    uint64_t n, bytes;
    oi_state_whole(s, &whole);
    memcpy(e->fetched_dims[id], whole.count, sizeof e->fetched_dims[id]);
    if (!oi_box_count(&s->grid, &whole, &n, &bytes))
        return oi_sim_no_memory(e->sim, s->var->name, UINT64_MAX, d);
    const void *data = n ? oi_grid_view(&s->grid, &whole) : NULL;
    if (!data) {
        oi_buffer *b = copy_room(e, id, bytes);
        if (!b)
            return oi_sim_no_memory(e->sim, s->var->name, bytes, d);
        if (bytes) /* unused bits of packed types are 0 */
            ((uint8_t *)b->data)[bytes - 1] = 0;
        oi_grid_read(&s->grid, &whole, b->data);
        data = b->data;
    }
    *out = (oi_view){s->grid.dtype, s->grid.rank, e->fetched_dims[id], data, n, bytes};
    return OI_OK;
}

/* While a consumer runs, the variables it uses are seen as it sees them. */
static oi_ctx *seen_by(oi_exec *e, uint32_t id)
{
    oi_ctx *c = e->running;
    if (c->id == 0)
        return c;
    const oi_pblock *b = &e->sim->program->blocks[c->block];
    return oi_mask_has(b->uses, id) && c->slots[id].epoch == e->epoch ? c : e->entry;
}

static oi_status fetch_slot(oi_exec *e, uint32_t id, const int64_t *indices, oi_view *out,
                            oi_diag *d)
{
    oi_ctx *c = seen_by(e, id);
    oi_input in;
    c->diag = d;
    oi_fail kept = c->fail;
    oi_status status = oi_mem_peek(c, id, indices, &in);
    if (status != OI_OK) {
        if (c->fail.code)
            oi_diag_error(d, at_executor(e), c->fail.code, "%s", c->fail.text);
        c->fail = kept;
        return status;
    }
    const void *data = in.data;
    if (in.slot->is_weight && !oi_weights_is_stable(e->sim->weights)) {
        oi_buffer *b = copy_room(e, id, in.size_bytes);
        if (b)
            memcpy(b->data, data, (size_t)in.size_bytes);
        data = b ? b->data : NULL;
    }
    oi_mem_release(c);
    if (!data)
        return oi_sim_no_memory(e->sim, e->sim->program->vars[id].name, in.size_bytes, d);
    *out = (oi_view){in.dtype, in.rank, in.dims, data, in.n_elements, in.size_bytes};
    return OI_OK;
}

/* A loop index, inside its loop. */
static bool fetch_index(oi_exec *e, const char *name, oi_view *out)
{
    const oi_ctx *c = e->running;
    for (uint32_t i = 0; i < c->n_frames; i++) {
        const oi_pnode *loop = c->frames[i].loop;
        if (!loop || strcmp(loop->source->as.loop.index.text, name) != 0)
            continue;
        *out = (oi_view){.dtype = OI_I64,
                         .data = &c->indices[loop->as.loop.index],
                         .n_elements = 1,
                         .size_bytes = sizeof(int64_t)};
        return true;
    }
    return false;
}

/* "2, 5]" as n indices; false when it is something else. */
static bool parse_indices(const char *text, uint32_t n, int64_t *out)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t v = 0;
        text += strspn(text, " ");
        if (*text < '0' || *text > '9')
            return false;
        for (; *text >= '0' && *text <= '9'; text++)
            if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *text - '0', &v))
                return false;
        out[i] = v;
        text += strspn(text, " ");
        if (*text++ != (i + 1 < n ? ',' : ']'))
            return false;
    }
    return *text == '\0';
}

/* An entry of a prefix table: "W[2]". */
static oi_status fetch_entry(oi_exec *e, const char *name, const char *bracket, oi_view *out,
                             oi_diag *d)
{
    const oi_program *p = e->sim->program;
    int64_t indices[OI_MAX_RANK];
    for (uint32_t id = 0; id < p->n_vars; id++) {
        const oi_pvar *v = &p->vars[id];
        size_t n = strlen(v->name);
        if (n != (size_t)(bracket - name) || memcmp(v->name, name, n) != 0)
            continue;
        if (!v->is_prefix)
            return oi_diag_error(d, at_executor(e), "E041",
                                 "'%s' is no prefix table: it is fetched as a whole", v->name);
        if (parse_indices(bracket + 1, v->n_axes, indices))
            return fetch_slot(e, id, indices, out, d);
        return oi_diag_error(d, at_executor(e), "E041", "'%s' wants %u index%s: '%s'", v->name,
                             v->n_axes, v->n_axes == 1 ? "" : "es", name);
    }
    return unknown(e, name, d);
}

oi_status oi_fetch(oi_exec *e, const char *name, oi_view *out, oi_diag *diag)
{
    const char *bracket = strchr(name, '[');
    if (bracket)
        return fetch_entry(e, name, bracket, out, diag);
    uint32_t id = oi_program_find(e->sim->program, name);
    if (id == OI_NO_ID)
        return fetch_index(e, name, out) ? OI_OK : unknown(e, name, diag);
    if (e->sim->program->vars[id].is_prefix)
        return oi_diag_error(diag, at_executor(e), "E041",
                             "'%s' is a prefix table: say which entry, as in '%s[0]'", name, name);
    return e->states[id] ? fetch_state(e, id, out, diag) : fetch_slot(e, id, NULL, out, diag);
}

oi_status oi_fetch_as(oi_exec *e, const char *name, oi_dtype dtype, const void **out, uint64_t *n,
                      oi_diag *diag)
{
    oi_view v;
    OI_TRY(oi_fetch(e, name, &v, diag));
    if (v.dtype != dtype)
        return oi_diag_error(diag, at_executor(e), "E050", "'%s' is %s, fetched as %s", name,
                             oi_dtype_name(v.dtype), oi_dtype_name(dtype));
    *out = v.data;
    if (n)
        *n = v.n_elements;
    return OI_OK;
}

oi_status oi_output(oi_exec *e, size_t i, const char **name, oi_view *out, oi_diag *diag)
{
    const oi_pnode *r = e->returned;
    if (!r || i >= r->as.list.n)
        return OI_NOT_FOUND;
    *name = r->source->as.list.names.at[i].text;
    return oi_fetch(e, *name, out, diag);
}
