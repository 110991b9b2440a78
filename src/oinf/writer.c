/* writer.c: collects what goes into a package and refuses what may not. Metadata values are kept as
 * the payloads they will be; tensor bytes are only pointed at. finish.c lays it all out. */
#include "oinf/oinf.h"

#include <math.h>
#include <stdlib.h>

/* -- refusals -- */

oi_status oi_oinf_refuse(oi_diag *d, const char *what, const char *name, const char *fmt, ...)
{
    char why[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return oi_diag_error(d, (oi_place){.is_line = true}, "", "oinf: %s '%s': %s", what, name, why);
}

static oi_status no_memory(oi_diag *d)
{
    oi_diag_error(d, (oi_place){.is_line = true}, "", "oinf: out of memory");
    return OI_ERR_ENV;
}

static const char *const table_names[] = {"sizevar", "metadata", "tensor"};

/* -- entries -- */

oi_writer *oi_writer_new(void)
{
    oi_writer *w = calloc(1, sizeof *w);
    if (!w || !(w->arena = oi_arena_new())) {
        free(w);
        return NULL;
    }
    for (int t = 0; t < OI_OINF_TABLES; t++)
        w->by_name[t].arena = w->arena;
    return w;
}

void oi_writer_free(oi_writer *w)
{
    if (!w)
        return;
    oi_arena_free(w->arena);
    free(w);
}

/* One addition, run inside the arena's guard; exactly one of the values is used. */
typedef struct add_args {
    oi_writer *w;
    oi_oinf_table table;
    const char *name;
    uint64_t size;              /* sizevar */
    oi_writer_meta meta;        /* metadata: head + body become the payload */
    const uint8_t *head, *body; /* body_bits: how much of the body counts, in bits */
    uint64_t head_size, body_size, body_bits;
    const oi_writer_tensor *tensor; /* tensor */
    uint64_t n_elements;
    bool is_new;
} add_args;

static uint64_t quant_size(const oi_quant *q)
{
    return oi_align8(OI_OINF_QUANT_HEAD + 4 * (q->n_scales + q->n_zero_points));
}

static uint8_t *quant_payload(oi_arena *a, const oi_quant *q)
{
    uint8_t *p = oi_arena_alloc(a, quant_size(q));
    const uint64_t words[] = {q->scale_axis, q->n_scales, q->zero_point_axis, q->n_zero_points};
    oi_put_u32(p, q->scheme);
    oi_put_u32(p + 4, q->scale_mode);
    oi_put_u32(p + 8, q->zero_point_mode);
    for (int i = 0; i < 4; i++)
        oi_put_u64(p + 16 + 8 * i, words[i]);
    uint8_t *scales = p + OI_OINF_QUANT_HEAD, *zero_points = scales + 4 * q->n_scales;
    if (q->n_scales)
        memcpy(scales, q->scales, 4 * q->n_scales);
    if (q->n_zero_points)
        memcpy(zero_points, q->zero_points, 4 * q->n_zero_points);
    return p;
}

static void add_tensor(add_args *x, const char *name)
{
    const oi_writer_tensor *from = x->tensor;
    oi_arena *a = x->w->arena;
    oi_writer_item_tensor *t = OI_PUSH(a, &x->w->tensors);
    *t = (oi_writer_item_tensor){.name = name, .spec = *from, .n_elements = x->n_elements};
    (void)oi_dtype_bytes(from->dtype, x->n_elements, &t->data_nbytes);
    uint64_t *dims = oi_arena_alloc(a, 8 * (size_t)from->rank);
    if (from->rank)
        memcpy(dims, from->dims, 8 * (size_t)from->rank);
    t->spec.dims = dims;
    t->has_data = from->data || from->read;
    if (from->quant) {
        t->quant_nbytes = quant_size(from->quant);
        t->quant = quant_payload(a, from->quant);
    }
}

static void add_meta(add_args *x, const char *name)
{
    uint64_t used = x->head_size + x->body_size;
    x->meta.name = name;
    x->meta.nbytes = x->head_size ? oi_align8(used) : used; /* bare scalars are not padded */
    uint8_t *p = oi_arena_alloc(x->w->arena, x->meta.nbytes);
    if (x->head_size)
        memcpy(p, x->head, x->head_size);
    if (x->body_size)
        memcpy(p + x->head_size, x->body, x->body_size);
    if (x->body_bits % 8) /* unused bits of the last byte */
        p[used - 1] &= (uint8_t)((1u << x->body_bits % 8) - 1);
    x->meta.payload = p;
    *OI_PUSH(x->w->arena, &x->w->metadata) = x->meta;
}

static void add_guarded(void *ctx)
{
    add_args *x = ctx;
    oi_writer *w = x->w;
    const size_t counts[] = {w->sizevars.n, w->metadata.n, w->tensors.n};
    x->is_new = oi_map_get(&w->by_name[x->table], x->name) == OI_MAP_NONE;
    if (!x->is_new)
        return;
    const char *name = oi_arena_text(w->arena, x->name, strlen(x->name));
    switch (x->table) {
    case OI_OINF_SIZEVARS: *OI_PUSH(w->arena, &w->sizevars) = (oi_sizevar){name, x->size}; break;
    case OI_OINF_METADATA: add_meta(x, name); break;
    default: add_tensor(x, name); break;
    }
    oi_map_set(&w->by_name[x->table], name, (uint32_t)counts[x->table]);
}

static oi_status add(add_args *x, oi_diag *d)
{
    const char *what = table_names[x->table];
    oi_writer *w = x->w;
    if (!w || !x->name)
        return OI_ERR_USAGE;
    size_t n = strlen(x->name);
    if (!oi_oinf_is_plain_name(x->name, n))
        return oi_oinf_refuse(d, what, x->name, "names are made of A-Z a-z 0-9 . _ -");
    if (n > OI_OINF_NAME_MAX)
        return oi_diag_error(d, (oi_place){.is_line = true}, "",
                             "oinf: %s: a name of %zu bytes, at most %u are allowed", what, n,
                             OI_OINF_NAME_MAX);
    const size_t counts[] = {w->sizevars.n, w->metadata.n, w->tensors.n};
    if (oi_arena_guard(w->arena, add_guarded, x) != OI_OK) {
        w->sizevars.n = counts[0]; /* an entry may be half there */
        w->metadata.n = counts[1];
        w->tensors.n = counts[2];
        return no_memory(d);
    }
    return x->is_new ? OI_OK : oi_oinf_refuse(d, what, x->name, "is there already");
}

oi_status oi_writer_sizevar(oi_writer *w, const char *name, uint64_t value, oi_diag *diag)
{
    add_args x = {.w = w, .table = OI_OINF_SIZEVARS, .name = name, .size = value};
    return add(&x, diag);
}

/* -- metadata -- */

/* `data` holds one element of `type`, as stored. */
oi_status oi_oinf_add_scalar(oi_writer *w, const char *key, oi_dtype type, const void *data,
                             oi_diag *d)
{
    unsigned bits = oi_dtype_bits(type);
    if (oi_oinf_bad_value(type, data, 1) == 0)
        return oi_oinf_refuse(d, "metadata", key, "the stored bits are no %s", oi_dtype_name(type));
    add_args x = {.w = w,
                  .table = OI_OINF_METADATA,
                  .name = key,
                  .meta = {.type = type},
                  .body = data,
                  .body_size = bits < 8 ? 1 : bits / 8,
                  .body_bits = bits};
    return add(&x, d);
}

static oi_status check_scalar(const char *key, oi_dtype type, bool fits, oi_diag *d)
{
    if (!key)
        return OI_ERR_USAGE;
    if (!oi_dtype_is_tensor(type) || type == OI_BITSET)
        return oi_oinf_refuse(d, "metadata", key, "%s is not a scalar type", oi_dtype_name(type));
    if (!fits)
        return oi_oinf_refuse(d, "metadata", key, "the value does not fit %s", oi_dtype_name(type));
    return OI_OK;
}

oi_status oi_writer_i64(oi_writer *w, const char *key, oi_dtype type, int64_t v, oi_diag *diag)
{
    uint8_t stored[8] = {0};
    OI_TRY(check_scalar(key, type, oi_element_set_i64(type, stored, 0, v), diag));
    return oi_oinf_add_scalar(w, key, type, stored, diag);
}

oi_status oi_writer_u64(oi_writer *w, const char *key, oi_dtype type, uint64_t v, oi_diag *diag)
{
    uint8_t stored[8] = {0};
    OI_TRY(check_scalar(key, type, oi_element_set_u64(type, stored, 0, v), diag));
    return oi_oinf_add_scalar(w, key, type, stored, diag);
}

oi_status oi_writer_f64(oi_writer *w, const char *key, oi_dtype type, double v, oi_diag *diag)
{
    uint8_t stored[8] = {0};
    OI_TRY(check_scalar(key, type, oi_element_set_f64(type, stored, 0, v), diag));
    return oi_oinf_add_scalar(w, key, type, stored, diag);
}

oi_status oi_writer_bitset(oi_writer *w, const char *key, const void *bits, uint32_t n_bits,
                           oi_diag *diag)
{
    uint8_t head[8];
    uint32_t n_bytes = n_bits / 8 + (n_bits % 8 != 0);
    if (!bits && n_bits)
        return OI_ERR_USAGE;
    oi_put_u32(head, n_bits);
    oi_put_u32(head + 4, n_bytes);
    add_args x = {.w = w,
                  .table = OI_OINF_METADATA,
                  .name = key,
                  .meta = {.type = OI_BITSET},
                  .head = head,
                  .head_size = sizeof head,
                  .body = bits,
                  .body_size = n_bytes,
                  .body_bits = n_bits};
    return add(&x, diag);
}

/* Dims and type of a tensor or ndarray; gives the number of elements and of bytes. */
static oi_status check_shape(const char *what, const char *name, oi_dtype type, uint32_t rank,
                             const uint64_t *dims, uint64_t *n, uint64_t *size, oi_diag *d)
{
    if (!oi_dtype_is_tensor(type) || type == OI_BITSET)
        return oi_oinf_refuse(d, what, name, "%s is not an element type to write",
                              oi_dtype_name(type));
    if (rank > OI_OINF_NDIM_MAX)
        return oi_oinf_refuse(d, what, name, "%u dims, at most %u are allowed", rank,
                              OI_OINF_NDIM_MAX);
    if (!oi_oinf_count(dims, rank, n) || !oi_dtype_bytes(type, *n, size))
        return oi_oinf_refuse(d, what, name, "the dims make it too large");
    return OI_OK;
}

oi_status oi_writer_ndarray(oi_writer *w, const char *key, const oi_view *value, oi_diag *diag)
{
    uint8_t head[8 + 8 * OI_OINF_NDIM_MAX];
    uint64_t n, size;
    if (!key || !value || (value->rank && !value->dims))
        return OI_ERR_USAGE;
    OI_TRY(check_shape("metadata", key, value->dtype, value->rank, value->dims, &n, &size, diag));
    if (size && !value->data)
        return OI_ERR_USAGE;
    if (size > SIZE_MAX / 2)
        return no_memory(diag);
    if (oi_oinf_bad_value(value->dtype, value->data, n) < n)
        return oi_oinf_refuse(diag, "metadata", key, "the stored bits are no %s",
                              oi_dtype_name(value->dtype));
    oi_put_u32(head, value->dtype);
    oi_put_u32(head + 4, value->rank);
    for (uint32_t i = 0; i < value->rank; i++)
        oi_put_u64(head + 8 + 8 * i, value->dims[i]);
    add_args x = {.w = w,
                  .table = OI_OINF_METADATA,
                  .name = key,
                  .meta = {.type = OI_NDARRAY},
                  .head = head,
                  .head_size = 8 + 8 * (uint64_t)value->rank,
                  .body = value->data,
                  .body_size = size,
                  .body_bits = n % 8 * oi_dtype_bits(value->dtype)};
    return add(&x, diag);
}

oi_status oi_writer_text(oi_writer *w, const char *key, const char *text, size_t n, oi_diag *diag)
{
    uint8_t head[4];
    uint64_t dim = n;
    if (!key || (!text && n))
        return OI_ERR_USAGE;
    if (!oi_utf8_valid(text, n, NULL) || (n && memchr(text, 0, n)))
        return oi_oinf_refuse(diag, "metadata", key, "the text is not UTF-8 without NUL");
    if (!oi_oinf_is_plain_name(text, n) || n > UINT32_MAX) {
        oi_view v = {.dtype = OI_U8, .rank = 1, .dims = &dim, .data = text};
        return oi_writer_ndarray(w, key, &v, diag);
    }
    oi_put_u32(head, (uint32_t)n);
    add_args x = {.w = w,
                  .table = OI_OINF_METADATA,
                  .name = key,
                  .meta = {.type = OI_STR},
                  .head = head,
                  .head_size = sizeof head,
                  .body = (const uint8_t *)text,
                  .body_size = n};
    return add(&x, diag);
}

/* -- tensors -- */

static oi_status check_quant(const oi_writer_tensor *t, oi_diag *d)
{
    const oi_quant *q = t->quant;
    const char *problem = oi_oinf_quant_problem(q, t->rank, t->dims);
    if (problem)
        return oi_oinf_refuse(d, "tensor", t->name, "quant: %s", problem);
    if ((q->n_scales && !q->scales) || (q->n_zero_points && !q->zero_points))
        return OI_ERR_USAGE;
    for (uint64_t i = 0; i < q->n_scales; i++)
        if (!isfinite(q->scales[i]) || q->scales[i] <= 0)
            return oi_oinf_refuse(d, "tensor", t->name, "quant: scale %g is not finite and > 0",
                                  (double)q->scales[i]);
    return OI_OK;
}

oi_status oi_writer_add_tensor(oi_writer *w, const oi_writer_tensor *tensor, oi_diag *diag)
{
    uint64_t n, size;
    if (!w || !tensor || !tensor->name || (tensor->rank && !tensor->dims))
        return OI_ERR_USAGE;
    OI_TRY(check_shape("tensor", tensor->name, tensor->dtype, tensor->rank, tensor->dims, &n, &size,
                       diag));
    if (tensor->quant)
        OI_TRY(check_quant(tensor, diag));
    add_args x = {
        .w = w, .table = OI_OINF_TENSORS, .name = tensor->name, .tensor = tensor, .n_elements = n};
    return add(&x, diag);
}

/* -- whole models -- */

typedef struct model_tensor {
    oi_model *m;
    size_t index;
} model_tensor;

static oi_status read_from_model(void *ctx, uint64_t offset, void *buf, size_t n, oi_diag *d)
{
    const model_tensor *x = ctx;
    return oi_model_read(x->m, x->index, offset, n, buf, d);
}

typedef struct alloc_args {
    oi_arena *arena;
    size_t size;
    void *result;
} alloc_args;

static void alloc_guarded(void *ctx)
{
    alloc_args *x = ctx;
    x->result = oi_arena_alloc(x->arena, x->size);
}

static oi_status copy_meta(oi_writer *w, oi_model *m, size_t i, oi_diag *d)
{
    oi_view v;
    const oi_meta_info *e = &m->metadata[i];
    OI_TRY(oi_oinf_meta_view(m, i, &v, d));
    switch (e->type) {
    case OI_STR: return oi_writer_text(w, e->name, v.data, v.size_bytes, d);
    case OI_BITSET: return oi_writer_bitset(w, e->name, v.data, (uint32_t)v.n_elements, d);
    case OI_NDARRAY: return oi_writer_ndarray(w, e->name, &v, d);
    default: return oi_oinf_add_scalar(w, e->name, e->type, v.data, d);
    }
}

oi_status oi_writer_add_model(oi_writer *w, oi_model *m, oi_diag *diag)
{
    if (!w || !m)
        return OI_ERR_USAGE;
    size_t n = m->n[OI_OINF_TENSORS];
    model_tensor *sources = NULL;
    alloc_args a = {w->arena, n * sizeof *sources, NULL};
    if (oi_arena_guard(w->arena, alloc_guarded, &a) != OI_OK)
        return no_memory(diag);
    sources = a.result;
    for (size_t i = 0; i < m->n[OI_OINF_SIZEVARS]; i++)
        OI_TRY(oi_writer_sizevar(w, m->sizevars[i].name, m->sizevars[i].value, diag));
    for (size_t i = 0; i < m->n[OI_OINF_METADATA]; i++)
        OI_TRY(copy_meta(w, m, i, diag));
    for (size_t i = 0; i < n; i++) {
        const oi_tensor_info *t = &m->tensors[i];
        sources[i] = (model_tensor){m, i};
        oi_writer_tensor copy = {.name = t->name,
                                 .dtype = t->dtype,
                                 .rank = t->rank,
                                 .dims = t->dims,
                                 .read = t->has_data ? read_from_model : NULL,
                                 .read_ctx = &sources[i],
                                 .quant = t->quant};
        OI_TRY(oi_writer_add_tensor(w, &copy, diag));
    }
    return OI_OK;
}
