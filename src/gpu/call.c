/* call.c: a call of an op becomes dispatches: lowered, scheduled and printed as synthesized
 * programs are (synth/call.c, emit/vulkan), compiled, and kept for the next call of the same types.
 */
#include "emit/vulkan/dispatch.h"
#include "gpu/gpu.h"
#include "synth/unit.h"

#include <stdlib.h>

typedef struct making {
    gpu *g;
    const oi_kernel_query *q;
    oi_remote_call *c;
    oi_unit unit;
    oi_plan plan;
    oi_call_tensors tensors;
    oi_emitted files;
    gpu_shader **shaders; /* by file */
    gpu_binding *places;  /* by tensor */
    OI_VEC(gpu_dispatch) dispatches;
    OI_VEC(gpu_own) own;
    OI_VEC(gpu_check) checks;
    oi_status status;
} making;

/* -- keys -- */

static void put_type(oi_buf *b, const oi_operand *o)
{
    oi_buf_printf(b, " %d", (int)o->dtype);
    for (uint32_t i = 0; i < o->rank; i++)
        oi_buf_printf(b, "%c%lld", i ? ',' : '[', (long long)o->dims[i]);
}

static void put_value(oi_buf *b, const oi_op_value *v)
{
    uint64_t bits = 0;
    oi_buf_printf(b, " %d:", (int)v->tag);
    switch (v->tag) {
    case OI_VALUE_NONE: break;
    case OI_VALUE_INT: oi_buf_printf(b, "%lld", (long long)v->i); break;
    case OI_VALUE_UINT: oi_buf_printf(b, "%llu", (unsigned long long)v->u); break;
    case OI_VALUE_FLOAT:
        memcpy(&bits, &v->f, sizeof bits);
        oi_buf_printf(b, "%llx", (unsigned long long)bits);
        break;
    case OI_VALUE_BOOL: oi_buf_printf(b, "%d", v->b); break;
    case OI_VALUE_STRING: oi_buf_printf(b, "%zu %s", strlen(v->s), v->s); break;
    case OI_VALUE_DTYPE: oi_buf_printf(b, "%d", (int)v->dtype); break;
    case OI_VALUE_INT_LIST:
        for (uint32_t i = 0; i < v->n; i++)
            oi_buf_printf(b, "%lld,", (long long)v->ints[i]);
        break;
    case OI_VALUE_FLOAT_LIST:
        for (uint32_t i = 0; i < v->n; i++) {
            memcpy(&bits, &v->floats[i], sizeof bits);
            oi_buf_printf(b, "%llx,", (unsigned long long)bits);
        }
        break;
    case OI_VALUE_STRING_LIST:
        for (uint32_t i = 0; i < v->n; i++)
            oi_buf_printf(b, "%zu %s,", strlen(v->strings[i]), v->strings[i]);
        break;
    case OI_VALUE_DTYPE_LIST:
        for (uint32_t i = 0; i < v->n; i++)
            oi_buf_printf(b, "%d,", (int)v->dtypes[i]);
        break;
    }
}

static bool is_late(const oi_kernel_query *q, uint32_t attr)
{
    return q->run_attrs && q->run_attrs[attr].dtype != OI_NONE;
}

/* Calls with equal keys have equal shaders. */
static void put_key(oi_buf *b, const oi_kernel_query *q)
{
    oi_buf_printf(b, "%d %zu %zu", (int)q->op->id, q->n_in, q->n_out);
    for (size_t i = 0; i < q->n_in; i++)
        put_type(b, &q->in[i]);
    for (size_t i = 0; i < q->n_out; i++)
        put_type(b, &q->out[i]);
    for (uint32_t i = 0; i < q->op->n_attrs; i++)
        if (is_late(q, i))
            put_type(b, &q->run_attrs[i]);
        else
            put_value(b, &q->attrs[i]);
}

/* -- tensors -- */

static gpu_binding place_of(making *m, uint32_t id)
{
    const oi_tensor *t = &m->unit.tensors.at[id];
    const oi_kernel_query *q = m->q;
    for (uint32_t i = 0; i < q->n_in; i++)
        if (m->tensors.in[i] == id)
            return (gpu_binding){GPU_IN, i, t->size_bytes};
    for (uint32_t i = 0; i < q->n_out; i++)
        if (m->tensors.out[i] == id)
            return (gpu_binding){GPU_OUT, i, t->size_bytes};
    for (uint32_t i = 0; i < q->op->n_attrs; i++)
        if (m->tensors.attrs[i] == id)
            return (gpu_binding){GPU_ATTR, i, t->size_bytes};
    gpu_own own = {.bytes = t->size_bytes};
    if (t->bytes && t->size_bytes) {
        own.table = oi_arena_alloc(m->c->arena, (size_t)t->size_bytes);
        memcpy(own.table, t->bytes, (size_t)t->size_bytes);
    }
    *OI_PUSH(m->c->arena, &m->own) = own;
    return (gpu_binding){GPU_OWN, (uint32_t)m->own.n - 1, t->size_bytes};
}

static void find_places(making *m)
{
    m->places = oi_arena_alloc(m->unit.arena, (m->unit.tensors.n + 1) * sizeof *m->places);
    for (uint32_t i = 0; i < m->unit.tensors.n; i++)
        m->places[i] = place_of(m, i);
}

/* -- shaders -- */

static gpu_shader *add_shader(making *m, const oi_emitted_file *f, const oi_glsl_dispatch *d)
{
    gpu_shader *s = oi_arena_alloc(m->c->arena, sizeof *s);
    *s = (gpu_shader){.text = oi_arena_text(m->c->arena, f->text, f->size),
                      .size = f->size,
                      .n_bindings = d->n_bindings,
                      .full_subgroups = d->full_subgroups};
    *OI_PUSH(m->c->arena, &m->c->shaders) = s;
    return s;
}

static oi_status find_shader(making *m, const oi_glsl_dispatch *d, gpu_shader **out)
{
    const char *name = oi_arena_printf(m->unit.arena, "%s.comp", d->shader);
    size_t i = 0;
    while (i < m->files.n && strcmp(m->files.at[i].name, name) != 0)
        i++;
    if (i == m->files.n)
        return gpu_fail(m->g, "there is no shader %s; please report this", name);
    if (!m->shaders[i])
        m->shaders[i] = add_shader(m, &m->files.at[i], d);
    *out = m->shaders[i];
    return OI_OK;
}

/* -- dispatches -- */

/* False: a number that a call alone does not have. */
static bool add_members(making *m, const oi_skernel *k, const oi_glsl_dispatch *d,
                        gpu_dispatch *out)
{
    out->members = oi_arena_alloc(m->c->arena, (d->n_members + 1) * sizeof *out->members);
    out->block_bytes = d->scalar_bytes;
    for (uint32_t i = 0; i < d->n_members; i++) {
        const oi_glsl_member *from = &d->members[i];
        if (from->kind == OI_GLSL_ORDER) /* the only failure that there can be: order 0 */
            continue;
        const gpu_binding place = from->kind == OI_GLSL_VALUE
                                      ? m->places[k->ports.at[from->id].tensor]
                                      : (gpu_binding){GPU_NOTHING, 0, 0};
        if (place.source != GPU_ATTR)
            return false;
        out->members[out->n_members++] = (gpu_member){place.id, from->offset, from->bytes};
    }
    return true;
}

static oi_status add_dispatch(making *m, const oi_skernel *k, const oi_glsl_dispatch *d)
{
    gpu_dispatch *out = OI_PUSH(m->c->arena, &m->dispatches);
    *out = (gpu_dispatch){.n_bindings = d->n_bindings, .groups = d->groups};
    out->bindings = oi_arena_alloc(m->c->arena, (d->n_bindings + 1) * sizeof *out->bindings);
    for (uint32_t i = 0; i < k->ports.n; i++)
        if (d->is_bound[i])
            out->bindings[i] = m->places[k->ports.at[i].tensor];
    if (d->failure != OI_NO_ID)
        out->bindings[d->failure] = (gpu_binding){GPU_FAILURE, 0, sizeof(uint32_t)};
    if (d->scalars != OI_NO_ID)
        out->bindings[d->scalars] = (gpu_binding){GPU_BLOCK, 0, d->scalar_bytes};
    m->c->can_fail |= d->failure != OI_NO_ID;
    if (!add_members(m, k, d, out)) {
        m->c->is_refused = true;
        return OI_ERR_INPUT;
    }
    return find_shader(m, d, &out->shader);
}

static oi_status add_kernel(making *m, uint32_t id)
{
    const oi_skernel *k = &m->plan.kernels.at[id];
    size_t n;
    const oi_glsl_dispatch *all = oi_glsl_dispatches(&m->plan, k, &n);
    for (size_t i = 0; i < n; i++)
        OI_TRY(add_dispatch(m, k, &all[i]));
    return OI_OK;
}

/* Kernels, and limits of attributes that only the run knows. Whatever else there is needs a host
 * between dispatches. */
static oi_status add_stmt(making *m, const oi_stmt *s)
{
    if (s->kind == OI_STMT_KERNEL)
        return add_kernel(m, s->kernel);
    if (s->kind == OI_STMT_LIMIT && s->a.tensor != OI_NO_ID &&
        m->places[s->a.tensor].source == GPU_ATTR) {
        *OI_PUSH(m->c->arena, &m->checks) = (gpu_check){m->places[s->a.tensor].id, s->limit};
        return OI_OK;
    }
    m->c->is_refused = true;
    return OI_ERR_INPUT;
}

static void keep(making *m)
{
    oi_remote_call *c = m->c;
    c->dispatches = m->dispatches.at;
    c->n_dispatches = (uint32_t)m->dispatches.n;
    c->own = m->own.at;
    c->n_own = (uint32_t)m->own.n;
    c->checks = m->checks.at;
    c->n_checks = (uint32_t)m->checks.n;
    c->n_out = (uint32_t)m->q->n_out;
    c->outputs = oi_arena_alloc(c->arena, (c->n_out + 1) * sizeof *c->outputs);
    for (uint32_t i = 0; i < c->n_out; i++) {
        const oi_tensor *t = &m->unit.tensors.at[m->tensors.out[i]];
        c->outputs[i] = (gpu_output){t->size_bytes, oi_dtype_bits(t->dtype) < 8};
    }
}

static void make_call(void *ctx)
{
    making *m = ctx;
    find_places(m);
    m->shaders = oi_arena_alloc(m->unit.arena, (m->files.n + 1) * sizeof *m->shaders);
    for (size_t i = 0; i < m->tensors.stmts.n && m->status == OI_OK; i++)
        m->status = add_stmt(m, &m->tensors.stmts.at[i]);
    keep(m);
}

/* Whatever the passes or the printer refuse is the host's. */
static void make(void *ctx)
{
    making *m = ctx;
    const oi_target *target = oi_target_of(oi_device_get(m->g->device));
    m->status = oi_unit_add_call(&m->unit, m->q, &m->tensors);
    if (m->status == OI_OK) {
        oi_unit_freeze(&m->unit, &m->plan);
        target->emit_device(&m->plan, &m->files);
        m->status = m->files.status;
    }
    m->c->is_refused = m->status != OI_OK;
    if (m->status == OI_OK && oi_arena_guard(m->c->arena, make_call, m) != OI_OK)
        m->status = OI_NOT_FOUND;
}

static oi_status make_with(making *m)
{
    const oi_device_info *info = oi_device_get(m->g->device);
    m->unit = (oi_unit){.arena = oi_arena_new(),
                        .device = m->g->device,
                        .target = info,
                        .can = oi_target_of(info)->caps(info),
                        .name = "node"};
    m->c = calloc(1, sizeof *m->c);
    if (!m->c || !m->unit.arena || !(m->c->arena = oi_arena_new()))
        m->status = gpu_fail(m->g, "out of memory");
    if (m->status != OI_OK)
        return m->status;
    oi_unit_begin(&m->unit);
    if (oi_arena_guard(m->unit.arena, make, m) != OI_OK || m->status == OI_NOT_FOUND)
        m->status = gpu_fail(m->g, "out of memory");
    return m->c->is_refused ? OI_OK : m->status;
}

/* -- calls by key -- */

typedef struct adding {
    gpu *g;
    const char *key;
    oi_remote_call *c;
} adding;

static void add_call(void *ctx)
{
    const adding *x = ctx;
    const char *key = oi_arena_text(x->g->arena, x->key, strlen(x->key));
    *OI_PUSH(x->g->arena, &x->g->calls) = x->c;
    oi_map_set(&x->g->keys, key, (uint32_t)x->g->calls.n - 1);
}

static oi_status make_new(gpu *g, const char *key, const oi_kernel_query *q, oi_remote_call **out)
{
    making m = {.g = g, .q = q};
    oi_status status = make_with(&m);
    oi_arena_free(m.unit.arena);
    adding x = {g, key, m.c};
    if (status == OI_OK && oi_arena_guard(g->arena, add_call, &x) != OI_OK)
        status = gpu_fail(g, "out of memory");
    if (status != OI_OK)
        gpu_call_free(g, m.c);
    *out = m.c;
    return status;
}

static oi_status find_call(gpu *g, const oi_kernel_query *q, oi_remote_call **out)
{
    oi_buf b = {0};
    char *key = NULL;
    oi_status status = OI_OK;
    put_key(&b, q);
    if (oi_buf_take(&b, &key) != OI_OK)
        return gpu_fail(g, "out of memory");
    const uint32_t known = oi_map_get(&g->keys, key);
    if (known != OI_MAP_NONE)
        *out = g->calls.at[known];
    else
        status = make_new(g, key, q, out);
    free(key);
    return status;
}

/* -- pipelines -- */

static oi_status make_pipeline(gpu *g, oi_remote_call *c, gpu_shader *s)
{
    const oi_vk_shader shader = {.code = s->code,
                                 .bytes = s->code_bytes,
                                 .n_bindings = s->n_bindings,
                                 .full_subgroups = s->full_subgroups};
    const oi_vk_status status = oi_vk_pipeline_new(g->d, &shader, &s->pipeline);
    c->is_refused |= status == OI_VK_NO_FEATURE; /* more buffers than the device binds */
    free(s->code);
    s->code = NULL;
    return status == OI_VK_NO_FEATURE ? OI_OK : gpu_judge(g, status);
}

static oi_status make_ready(gpu *g, oi_remote_call *c)
{
    OI_TRY(gpu_compile(&g->compiler, c->shaders.at, c->shaders.n, g->why));
    for (size_t i = 0; i < c->shaders.n && !c->is_refused; i++)
        if (!c->shaders.at[i]->pipeline)
            OI_TRY(make_pipeline(g, c, c->shaders.at[i]));
    c->is_ready = true;
    return OI_OK;
}

oi_status gpu_prepare(gpu *g, const oi_kernel_query *q, oi_remote_call **out)
{
    oi_remote_call *c;
    *out = NULL;
    OI_TRY(find_call(g, q, &c));
    if (!c->is_refused && !c->is_ready)
        OI_TRY(make_ready(g, c));
    *out = c->is_refused ? NULL : c;
    return OI_OK;
}

oi_status gpu_expect(gpu *g, const oi_kernel_query *const *queries, size_t n)
{
    OI_VEC(gpu_shader *) all = {0};
    oi_remote_call *c;
    for (size_t i = 0; i < n; i++)
        OI_TRY(find_call(g, queries[i], &c));
    for (size_t i = 0; i < g->calls.n; i++)
        all.n += g->calls.at[i]->shaders.n;
    if (all.n == 0)
        return OI_OK;
    all.at = calloc(all.n, sizeof *all.at);
    if (!all.at)
        return gpu_fail(g, "out of memory");
    all.n = 0;
    for (size_t i = 0; i < g->calls.n; i++)
        for (size_t k = 0; k < g->calls.at[i]->shaders.n; k++)
            all.at[all.n++] = g->calls.at[i]->shaders.at[k];
    const oi_status status = gpu_compile(&g->compiler, all.at, all.n, g->why);
    free(all.at);
    return status;
}

void gpu_call_free(gpu *g, oi_remote_call *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->shaders.n; i++) {
        oi_vk_pipeline_free(c->shaders.at[i]->pipeline);
        free(c->shaders.at[i]->code);
    }
    for (uint32_t i = 0; i < c->n_own; i++)
        gpu_release(g, c->own[i].held);
    oi_arena_free(c->arena);
    free(c);
}
