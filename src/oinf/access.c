/* access.c: questions to an open model. The index never changes after open; what is loaded on
 * demand is kept under the model's lock. */
#include "oinf/oinf.h"

#include <stdlib.h>

uint64_t oi_oinf_find(const oi_model *m, oi_oinf_table t, const char *name)
{
    uint32_t i = m && name ? oi_map_get(&m->by_name[t], name) : OI_MAP_NONE;
    return i == OI_MAP_NONE ? UINT64_MAX : i;
}

const char *oi_model_path(const oi_model *m)
{
    return m->path;
}

size_t oi_model_n_sizevars(const oi_model *m)
{
    return m->n[OI_OINF_SIZEVARS];
}

size_t oi_model_n_metadata(const oi_model *m)
{
    return m->n[OI_OINF_METADATA];
}

size_t oi_model_n_tensors(const oi_model *m)
{
    return m->n[OI_OINF_TENSORS];
}

const char *oi_model_sizevar_name(const oi_model *m, size_t i)
{
    return i < m->n[OI_OINF_SIZEVARS] ? m->sizevars[i].name : NULL;
}

const char *oi_model_meta_name(const oi_model *m, size_t i)
{
    return i < m->n[OI_OINF_METADATA] ? m->metadata[i].name : NULL;
}

const char *oi_model_tensor_name(const oi_model *m, size_t i)
{
    return i < m->n[OI_OINF_TENSORS] ? m->tensors[i].name : NULL;
}

oi_status oi_model_size_of(const oi_model *m, const char *name, uint64_t *out)
{
    uint64_t i = oi_oinf_find(m, OI_OINF_SIZEVARS, name);
    if (i == UINT64_MAX)
        return OI_NOT_FOUND;
    *out = m->sizevars[i].value;
    return OI_OK;
}

oi_status oi_model_meta_info_at(const oi_model *m, size_t i, oi_meta_info *out)
{
    if (i >= m->n[OI_OINF_METADATA])
        return OI_NOT_FOUND;
    *out = m->metadata[i];
    return OI_OK;
}

oi_status oi_model_meta_info(const oi_model *m, const char *key, oi_meta_info *out)
{
    uint64_t i = oi_oinf_find(m, OI_OINF_METADATA, key);
    return i == UINT64_MAX ? OI_NOT_FOUND : oi_model_meta_info_at(m, i, out);
}

oi_status oi_model_tensor_info_at(const oi_model *m, size_t i, oi_tensor_info *out)
{
    if (i >= m->n[OI_OINF_TENSORS])
        return OI_NOT_FOUND;
    *out = m->tensors[i];
    return OI_OK;
}

oi_status oi_model_tensor_index(const oi_model *m, const char *name, size_t *out)
{
    uint64_t i = oi_oinf_find(m, OI_OINF_TENSORS, name);
    if (i == UINT64_MAX)
        return OI_NOT_FOUND;
    *out = (size_t)i;
    return OI_OK;
}

oi_status oi_model_tensor_info(const oi_model *m, const char *name, oi_tensor_info *out)
{
    size_t i;
    OI_TRY(oi_model_tensor_index(m, name, &i));
    *out = m->tensors[i];
    return OI_OK;
}

/* -- bytes -- */

/* Payloads are 8-aligned in the file; borrowed memory may start anywhere and is then copied. */
static bool lends(const oi_model *m)
{
    return m->io.base && (uintptr_t)m->io.base % 8 == 0;
}

/* A copy kept in list[i], made now if it is not there yet. Call with the lock held. */
static oi_status load(oi_model *m, void ***list, size_t n_list, size_t i, uint64_t at, uint64_t n,
                      const void **out, oi_diag *d)
{
    if (!*list)
        *list = calloc(n_list, sizeof **list);
    if (!*list)
        return oi_oinf_env(m->path, d, "out of memory");
    if (!(*list)[i]) {
        void *copy = n < SIZE_MAX ? malloc(n ? (size_t)n : 1) : NULL;
        if (!copy)
            return oi_oinf_env(m->path, d, "no memory for %llu bytes", (unsigned long long)n);
        oi_status status = oi_oinf_read(m, at, n, copy, d);
        if (status != OI_OK) {
            free(copy);
            return status;
        }
        (*list)[i] = copy;
    }
    *out = (*list)[i];
    return OI_OK;
}

oi_status oi_oinf_check_tensor(oi_model *m, size_t i, oi_diag *d)
{
    const oi_tensor_info *t = &m->tensors[i];
    if (!m->is_checked || !t->has_data)
        return OI_OK;
    pthread_mutex_lock(&m->lock);
    oi_status status = OI_OK;
    if (!m->is_checked[i])
        status =
            oi_oinf_check_values(m, "tensor", t->name, t->dtype, t->n_elements, t->data_offset, d);
    if (status == OI_OK)
        m->is_checked[i] = 1;
    pthread_mutex_unlock(&m->lock);
    return status;
}

static oi_status tensor_bytes(oi_model *m, size_t i, const void **out, oi_diag *d)
{
    const oi_tensor_info *t = &m->tensors[i];
    OI_TRY(oi_oinf_io_same(m, d));
    OI_TRY(oi_oinf_check_tensor(m, i, d));
    if (lends(m)) {
        *out = m->io.base + t->data_offset;
        return OI_OK;
    }
    pthread_mutex_lock(&m->lock);
    oi_status status =
        load(m, &m->loaded_tensors, m->n_stored, i, t->data_offset, t->data_nbytes, out, d);
    pthread_mutex_unlock(&m->lock);
    return status;
}

oi_status oi_model_tensor(oi_model *m, const char *name, oi_view *out, oi_diag *diag)
{
    size_t i;
    OI_TRY(oi_model_tensor_index(m, name, &i));
    const oi_tensor_info *t = &m->tensors[i];
    const void *data = NULL;
    if (t->has_data)
        OI_TRY(tensor_bytes(m, i, &data, diag));
    *out = (oi_view){t->dtype, t->rank, t->dims, data, t->n_elements, 0};
    (void)oi_dtype_bytes(t->dtype, t->n_elements, &out->size_bytes); /* fits: checked by open */
    return OI_OK;
}

void oi_model_release(oi_model *m, const char *name)
{
    uint64_t i = oi_oinf_find(m, OI_OINF_TENSORS, name);
    if (i == UINT64_MAX)
        return;
    pthread_mutex_lock(&m->lock);
    if (m->loaded_tensors) {
        free(m->loaded_tensors[i]);
        m->loaded_tensors[i] = NULL;
    }
    pthread_mutex_unlock(&m->lock);
    oi_oinf_io_forget(&m->io, m->tensors[i].data_offset, m->tensors[i].data_nbytes);
}

oi_status oi_model_read(oi_model *m, size_t i, uint64_t offset, uint64_t n, void *buf,
                        oi_diag *diag)
{
    if (i >= m->n[OI_OINF_TENSORS])
        return OI_NOT_FOUND;
    const oi_tensor_info *t = &m->tensors[i];
    if (offset > t->data_nbytes || n > t->data_nbytes - offset)
        return OI_ERR_USAGE;
    OI_TRY(oi_oinf_io_same(m, diag));
    OI_TRY(oi_oinf_check_tensor(m, i, diag));
    return oi_oinf_read(m, t->data_offset + offset, n, buf, diag);
}

/* -- metadata -- */

oi_status oi_oinf_meta_view(oi_model *m, size_t i, oi_view *out, oi_diag *d)
{
    const oi_meta_info *e = &m->metadata[i];
    const void *data = NULL;
    oi_status status;
    if (lends(m)) {
        status = oi_oinf_io_same(m, d);
        data = m->io.base + e->value_at;
    } else {
        pthread_mutex_lock(&m->lock);
        status = load(m, &m->loaded_metadata, m->n[OI_OINF_METADATA], i, e->value_at, e->value_size,
                      &data, d);
        pthread_mutex_unlock(&m->lock);
    }
    *out = (oi_view){e->element, e->rank, e->dims, data, e->n_elements, e->value_size};
    return status;
}

oi_status oi_model_meta(oi_model *m, const char *key, oi_view *out, oi_diag *diag)
{
    uint64_t i = oi_oinf_find(m, OI_OINF_METADATA, key);
    return i == UINT64_MAX ? OI_NOT_FOUND : oi_oinf_meta_view(m, i, out, diag);
}

static oi_status wrong_type(const oi_model *m, const char *key, const char *wanted, oi_diag *d)
{
    const oi_meta_info *e = &m->metadata[oi_oinf_find(m, OI_OINF_METADATA, key)];
    return oi_oinf_error(m, d, e->offset, "metadata '%s' is %s%s, wanted %s", key,
                         oi_dtype_name(e->element), e->type == OI_NDARRAY ? " ndarray" : "",
                         wanted);
}

oi_status oi_model_meta_text(oi_model *m, const char *key, char **out, size_t *out_n, oi_diag *diag)
{
    oi_view v;
    OI_TRY(oi_model_meta(m, key, &v, diag));
    if (v.dtype != OI_STR && (v.dtype != OI_U8 || v.rank != 1))
        return wrong_type(m, key, "text", diag);
    if (!oi_utf8_valid(v.data, v.size_bytes, NULL) || memchr(v.data, 0, v.size_bytes))
        return wrong_type(m, key, "text in UTF-8 without NUL", diag);
    char *text = malloc((size_t)v.size_bytes + 1);
    if (!text)
        return oi_oinf_env(m->path, diag, "out of memory");
    memcpy(text, v.data, v.size_bytes);
    text[v.size_bytes] = '\0';
    *out = text;
    if (out_n)
        *out_n = v.size_bytes;
    return OI_OK;
}

/* A single number, converted to `to` at `out`. */
static oi_status meta_number(oi_model *m, const char *key, oi_dtype to, void *out,
                             const char *wanted, oi_diag *d)
{
    oi_view v;
    OI_TRY(oi_model_meta(m, key, &v, d));
    bool is_number = v.dtype != OI_STR && v.dtype != OI_BITSET && v.rank == 0;
    if (!is_number || (to == OI_BOOL) != (v.dtype == OI_BOOL) ||
        oi_convert(to, out, v.dtype, v.data, 1) != 1)
        return wrong_type(m, key, wanted, d);
    return OI_OK;
}

oi_status oi_model_meta_i64(oi_model *m, const char *key, int64_t *out, oi_diag *diag)
{
    return meta_number(m, key, OI_I64, out, "an integer that fits i64", diag);
}

oi_status oi_model_meta_u64(oi_model *m, const char *key, uint64_t *out, oi_diag *diag)
{
    return meta_number(m, key, OI_U64, out, "an integer that fits u64", diag);
}

oi_status oi_model_meta_f64(oi_model *m, const char *key, double *out, oi_diag *diag)
{
    return meta_number(m, key, OI_F64, out, "a number", diag);
}

oi_status oi_model_meta_bool(oi_model *m, const char *key, bool *out, oi_diag *diag)
{
    uint8_t v = 0;
    OI_TRY(meta_number(m, key, OI_BOOL, &v, "a bool", diag));
    *out = v;
    return OI_OK;
}
