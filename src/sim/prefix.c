/* prefix.c: prefix tables: W[2] is the model tensor "W.2". Looked up once for each combination of
 * indices, by whichever context comes first. */
#include "sim/sim.h"

#define START 64u /* slots; always a power of two, at most half full */

struct oi_prefix {
    pthread_mutex_t lock;
    uint32_t n_axes;
    int64_t *keys;   /* n_axes per entry */
    size_t *tensors; /* by entry */
    size_t n, cap;
    uint32_t *slots; /* entry + 1; 0: free */
    size_t n_slots;
};

oi_prefix *oi_prefix_new(uint32_t n_axes)
{
    oi_prefix *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->n_axes = n_axes;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void oi_prefix_free(oi_prefix *p)
{
    if (!p)
        return;
    pthread_mutex_destroy(&p->lock);
    free(p->keys);
    free(p->tensors);
    free(p->slots);
    free(p);
}

static size_t place(const oi_prefix *p, const int64_t *key)
{
    uint64_t h = 0;
    for (uint32_t i = 0; i < p->n_axes; i++) {
        h = (h ^ (uint64_t)key[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    size_t at = (size_t)h & (p->n_slots - 1);
    while (p->slots[at] && memcmp(p->keys + (size_t)(p->slots[at] - 1) * p->n_axes, key,
                                  p->n_axes * sizeof *key) != 0)
        at = (at + 1) & (p->n_slots - 1);
    return at;
}

static bool grow(oi_prefix *p)
{
    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : START / 2;
        int64_t *keys = realloc(p->keys, cap * p->n_axes * sizeof *keys);
        if (keys)
            p->keys = keys;
        size_t *tensors = realloc(p->tensors, cap * sizeof *tensors);
        if (tensors)
            p->tensors = tensors;
        if (!keys || !tensors)
            return false;
        p->cap = cap;
    }
    if (2 * (p->n + 1) <= p->n_slots)
        return true;
    size_t n_slots = p->n_slots ? 2 * p->n_slots : START;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return false;
    free(p->slots);
    p->slots = slots;
    p->n_slots = n_slots;
    for (size_t i = 0; i < p->n; i++)
        slots[place(p, p->keys + i * p->n_axes)] = (uint32_t)i + 1;
    return true;
}

/* -- names -- */

static oi_status judge(oi_ctx *c, oi_span at, const oi_pvar *v, const char *key, size_t *tensor)
{
    oi_model *m = c->exec->sim->program->model;
    oi_tensor_info t;
    if (!m || oi_model_tensor_info(m, key, &t) != OI_OK)
        return oi_ctx_fail(c, at, "E044", "'%s': the model has no tensor '%s'", v->name, key);
    if (t.dtype != v->dtype)
        return oi_ctx_fail(c, at, "E012", "tensor '%s' is %s, '%s' is declared %s", key,
                           oi_dtype_name(t.dtype), v->name, oi_dtype_name(v->dtype));
    if (t.rank != v->rank || memcmp(t.dims, v->dims, t.rank * sizeof *t.dims) != 0)
        return oi_ctx_fail(c, at, "E013", "tensor '%s' has another shape than '%s'", key, v->name);
    if (!t.has_data && v->kind == OI_SYM_CONSTANT && !v->symbol->var->has_init)
        return oi_ctx_fail(c, at, "E022", "tensor '%s' of constant '%s' has no data", key, v->name);
    *tensor = OI_NO_TENSOR;
    if (t.has_data)
        (void)oi_model_tensor_index(m, key, tensor); /* it was found above */
    return OI_OK;
}

static oi_status add(oi_ctx *c, oi_prefix *p, oi_span at, const oi_pvar *v, const int64_t *indices)
{
    oi_buf key = {0};
    size_t tensor;
    oi_pattern_key(v, indices, &key);
    if (key.failed || !grow(p)) {
        oi_buf_free(&key);
        return oi_ctx_no_memory(c, 0);
    }
    oi_status status = judge(c, at, v, key.text, &tensor);
    oi_buf_free(&key);
    if (status != OI_OK)
        return status;
    memcpy(p->keys + p->n * p->n_axes, indices, p->n_axes * sizeof *indices);
    p->tensors[p->n] = tensor;
    p->slots[place(p, indices)] = (uint32_t)++p->n;
    return OI_OK;
}

oi_status oi_prefix_find(oi_ctx *c, oi_span at, const oi_pvar *v, const int64_t *indices,
                         size_t *entry, size_t *tensor)
{
    const oi_sim *s = c->exec->sim;
    oi_prefix *p = s->prefixes[v - s->program->vars];
    oi_status status = OI_OK;
    pthread_mutex_lock(&p->lock);
    if (!p->n_slots || !p->slots[place(p, indices)])
        status = add(c, p, at, v, indices);
    if (status == OI_OK) {
        *entry = p->slots[place(p, indices)] - 1;
        *tensor = p->tensors[*entry];
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}
