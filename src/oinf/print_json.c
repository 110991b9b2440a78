/* print_json.c: a package as JSON, keys sorted, indented by two. Written out as it grows, so that
 * long metadata arrays need no memory of their own. */
#include "oinf/oinf.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

#define FLUSH_AT (64u << 10)

typedef struct json_printer {
    oi_model *m;
    FILE *to;
    oi_diag *d;
    oi_buf buf;
    oi_jsonw w;
} json_printer;

static void flush(json_printer *p)
{
    if (p->buf.failed || p->buf.n < FLUSH_AT)
        return;
    fwrite(p->buf.text, 1, p->buf.n, p->to);
    p->buf.n = 0;
}

/* Nine digits tell every f32 (and smaller) apart, seventeen every f64. */
static void put_number(json_printer *p, oi_dtype t, const uint8_t *data, uint64_t e)
{
    char text[OI_NUMBER_TEXT];
    if (oi_dtype_is_float(t)) {
        double v = oi_element_f64(t, data, e);
        oi_oinf_format_float(text, v, t == OI_F64 ? 17 : 9);
        if (isfinite(v))
            oi_jsonw_raw(&p->w, text, strlen(text));
        else
            oi_jsonw_str(&p->w, text);
    } else if (t == OI_BOOL) {
        oi_jsonw_bool(&p->w, oi_element_i64(t, data, e));
    } else if (t == OI_U64) {
        oi_jsonw_u64(&p->w, oi_element_u64(t, data, e));
    } else {
        oi_jsonw_i64(&p->w, oi_element_i64(t, data, e));
    }
    flush(p);
}

static void put_numbers(json_printer *p, oi_dtype t, const uint8_t *data, uint64_t n)
{
    oi_jsonw_open(&p->w, '[');
    for (uint64_t e = 0; e < n; e++)
        put_number(p, t, data, e);
    oi_jsonw_close(&p->w, ']');
}

static void put_dims(json_printer *p, uint32_t rank, const uint64_t *dims)
{
    oi_jsonw_key(&p->w, "dims");
    oi_jsonw_open(&p->w, '[');
    for (uint32_t i = 0; i < rank; i++)
        oi_jsonw_u64(&p->w, dims[i]);
    oi_jsonw_close(&p->w, ']');
}

static oi_status put_metadata(json_printer *p, size_t i)
{
    const oi_meta_info *e = &p->m->metadata[i];
    oi_view v;
    oi_status status = oi_oinf_meta_view(p->m, i, &v, p->d);
    if (status != OI_OK) {
        p->buf.failed = true; /* a key without its value: nothing more is written */
        return status;
    }
    oi_jsonw_open(&p->w, '{');
    if (e->type == OI_NDARRAY)
        put_dims(p, e->rank, e->dims);
    oi_jsonw_key(&p->w, "dtype"), oi_jsonw_str(&p->w, oi_dtype_name(e->element));
    oi_jsonw_key(&p->w, "value");
    if (e->type == OI_STR)
        oi_jsonw_strn(&p->w, v.data, v.size_bytes);
    else if (e->type == OI_BITSET)
        put_numbers(p, OI_U1, v.data, v.n_elements);
    else if (e->type == OI_NDARRAY)
        put_numbers(p, v.dtype, v.data, v.n_elements);
    else
        put_number(p, v.dtype, v.data, 0);
    oi_jsonw_close(&p->w, '}');
    return OI_OK;
}

static void put_parameters(json_printer *p, const char *key, oi_quant_mode mode, uint64_t axis,
                           oi_dtype t, const void *values, uint64_t n)
{
    oi_jsonw_key(&p->w, key);
    if (mode == OI_QUANT_NONE) {
        oi_jsonw_null(&p->w);
        return;
    }
    oi_jsonw_open(&p->w, '{');
    oi_jsonw_key(&p->w, "axis"), oi_jsonw_u64(&p->w, axis);
    oi_jsonw_key(&p->w, "mode");
    oi_jsonw_str(&p->w, mode == OI_PER_TENSOR ? "per_tensor" : "per_channel");
    oi_jsonw_key(&p->w, "values"), put_numbers(p, t, values, n);
    oi_jsonw_close(&p->w, '}');
}

static void put_quant(json_printer *p, const oi_tensor_info *t)
{
    const oi_quant *q = t->quant;
    oi_jsonw_key(&p->w, "quant");
    if (!q) {
        oi_jsonw_null(&p->w);
        return;
    }
    oi_jsonw_open(&p->w, '{');
    put_parameters(p, "scale", q->scale_mode, q->scale_axis, OI_F32, q->scales, q->n_scales);
    oi_jsonw_key(&p->w, "scheme");
    oi_jsonw_str(&p->w, q->scheme == OI_SYMMETRIC ? "symmetric" : "asymmetric");
    put_parameters(p, "zero_point", q->zero_point_mode, q->zero_point_axis, OI_I32, q->zero_points,
                   q->n_zero_points);
    oi_jsonw_close(&p->w, '}');
    oi_jsonw_key(&p->w, "quant_nbytes"), oi_jsonw_u64(&p->w, t->quant_nbytes);
    oi_jsonw_key(&p->w, "quant_offset"), oi_jsonw_u64(&p->w, t->quant_offset);
}

static void put_tensor(json_printer *p, size_t i)
{
    const oi_tensor_info *t = &p->m->tensors[i];
    uint64_t flags = (t->has_data ? OI_OINF_HAS_DATA : 0) | (t->quant ? OI_OINF_HAS_QUANT : 0);
    oi_jsonw_open(&p->w, '{');
    oi_jsonw_key(&p->w, "data_nbytes"), oi_jsonw_u64(&p->w, t->data_nbytes);
    oi_jsonw_key(&p->w, "data_offset"), oi_jsonw_u64(&p->w, t->data_offset);
    put_dims(p, t->rank, t->dims);
    oi_jsonw_key(&p->w, "dtype"), oi_jsonw_str(&p->w, oi_dtype_name(t->dtype));
    oi_jsonw_key(&p->w, "flags"), oi_jsonw_u64(&p->w, flags);
    put_quant(p, t);
    oi_jsonw_close(&p->w, '}');
}

/* One table as an object; `only` leaves everything else out. */
static oi_status put_table(json_printer *p, oi_oinf_table t, const char *key, const char *only)
{
    oi_named *names = oi_oinf_sorted(p->m, t);
    if (!names)
        return oi_oinf_env(p->m->path, p->d, "out of memory");
    oi_status status = OI_OK;
    oi_jsonw_key(&p->w, key);
    oi_jsonw_open(&p->w, '{');
    for (size_t i = 0; i < p->m->n[t] && status == OI_OK; i++) {
        if (only && (t != OI_OINF_TENSORS || strcmp(names[i].name, only) != 0))
            continue;
        oi_jsonw_key(&p->w, names[i].name);
        if (t == OI_OINF_SIZEVARS)
            oi_jsonw_u64(&p->w, p->m->sizevars[names[i].index].value);
        else if (t == OI_OINF_METADATA)
            status = put_metadata(p, names[i].index);
        else
            put_tensor(p, names[i].index);
        flush(p);
    }
    oi_jsonw_close(&p->w, '}');
    free(names);
    return status;
}

oi_status oi_oinf_print_json(oi_model *m, FILE *to, const oi_print_options *options, oi_diag *d)
{
    json_printer p = {.m = m, .to = to, .d = d};
    p.w = (oi_jsonw){.out = &p.buf, .any_order = true}; /* sorted here; the buffer comes and goes */
    oi_jsonw_open(&p.w, '{');
    oi_status status = put_table(&p, OI_OINF_METADATA, "metadata", options->tensor);
    if (status == OI_OK)
        status = put_table(&p, OI_OINF_SIZEVARS, "sizevars", options->tensor);
    if (status == OI_OK)
        status = put_table(&p, OI_OINF_TENSORS, "tensors", options->tensor);
    oi_jsonw_close(&p.w, '}');
    oi_buf_putc(&p.buf, '\n');
    if (status == OI_OK && p.buf.failed)
        status = oi_oinf_env(m->path, d, "out of memory");
    if (status == OI_OK)
        fwrite(p.buf.text, 1, p.buf.n, to);
    oi_buf_free(&p.buf);
    return status;
}

static oi_status print_view(json_printer *p, const char *name, const oi_view *v)
{
    oi_jsonw_open(&p->w, '{');
    put_dims(p, v->rank, v->dims);
    oi_jsonw_key(&p->w, "dtype"), oi_jsonw_str(&p->w, oi_dtype_name(v->dtype));
    oi_jsonw_key(&p->w, "name"), oi_jsonw_str(&p->w, name);
    oi_jsonw_key(&p->w, "values"), put_numbers(p, v->dtype, v->data, v->n_elements);
    oi_jsonw_close(&p->w, '}');
    if (p->buf.failed)
        return OI_ERR_ENV;
    fwrite(p->buf.text, 1, p->buf.n, p->to);
    return OI_OK;
}

oi_status oi_view_print_json(FILE *to, const char *name, const oi_view *v)
{
    json_printer p = {.to = to};
    p.w = (oi_jsonw){.out = &p.buf, .any_order = true, .compact = true};
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return OI_ERR_ENV;
    locale_t before = uselocale(plain);
    oi_status status = print_view(&p, name, v);
    uselocale(before);
    freelocale(plain);
    oi_buf_free(&p.buf);
    return status;
}
