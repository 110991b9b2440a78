/* print.c: a package as text: sizevars, metadata and tensors, each sorted by name.
 *
 *   B := 1024
 *
 *   mode: str = "clamp_up"
 *
 *   w: f32[8, 6] = {
 *   { -0.102449, -0.162755, ... } ,
 *   }
 *   - [nbytes: 192, min: -0.336574, ...]
 *   - hist: {([-0.336574, -0.273018], 2), ...}
 *
 * The Python tool prints the same bytes. Only the values shown are read, apart from the passes that
 * the statistics make. */
#include "oinf/oinf.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

#define WHOLE 10u /* lists up to this long are printed whole */
#define EDGE  5u  /* of longer ones: so many at each end */
#define ROWS  5u

typedef struct printer {
    oi_model *m;
    FILE *to;
    const oi_print_options *options;
    oi_diag *d;
} printer;

/* -- values -- */

void oi_oinf_format_float(char out[OI_NUMBER_TEXT], double v, int digits)
{
    if (isnan(v)) /* without its sign */
        snprintf(out, OI_NUMBER_TEXT, "nan");
    else
        snprintf(out, OI_NUMBER_TEXT, "%.*g", digits, v);
}

static void put_float(FILE *to, double v)
{
    char text[OI_NUMBER_TEXT];
    oi_oinf_format_float(text, v, 6);
    fputs(text, to);
}

static void put_integer(FILE *to, bool is_unsigned, uint64_t bits)
{
    if (is_unsigned)
        fprintf(to, "%llu", (unsigned long long)bits);
    else
        fprintf(to, "%lld", (long long)(int64_t)bits);
}

static void put_value(FILE *to, oi_dtype t, const uint8_t *data, uint64_t e)
{
    if (oi_dtype_is_float(t))
        put_float(to, oi_element_f64(t, data, e));
    else if (t == OI_BOOL)
        fputs(oi_element_i64(t, data, e) ? "true" : "false", to);
    else
        put_integer(to, t == OI_U64, oi_element_u64(t, data, e));
}

/* -- lists and arrays -- */

/* Typed values somewhere in the file, or in memory. */
typedef struct array {
    const char *name;
    oi_dtype dtype;
    uint32_t rank;
    const uint64_t *dims;
    uint64_t n, at;
    const uint8_t *data; /* NULL: in the file */
} array;

static oi_status get_bytes(printer *p, const array *a, uint64_t at, uint64_t n, uint8_t *buf)
{
    if (!a->data)
        return oi_oinf_read(p->m, a->at + at, n, buf, p->d);
    memcpy(buf, a->data + at, (size_t)n);
    return OI_OK;
}

/* Elements [first, first + n) with ", " between; n is at most WHOLE. */
static oi_status put_some(printer *p, const array *a, uint64_t first, uint64_t n)
{
    uint8_t buf[WHOLE * 8];
    unsigned bits = oi_dtype_bits(a->dtype);
    unsigned per_byte = bits < 8 ? 8 / bits : 1, width = bits < 8 ? 1 : bits / 8;
    uint64_t start = first / per_byte, end = (first + n - 1) / per_byte + 1;
    OI_TRY(get_bytes(p, a, start * width, (end - start) * width, buf));
    for (uint64_t e = 0; e < n; e++) {
        if (e)
            fputs(", ", p->to);
        put_value(p->to, a->dtype, buf, first - start * per_byte + e);
    }
    return OI_OK;
}

static oi_status put_list(printer *p, const array *a, uint64_t first, uint64_t n)
{
    if (n == 0) {
        fputs("{ }", p->to);
        return OI_OK;
    }
    fputs("{ ", p->to);
    if (n <= WHOLE) {
        OI_TRY(put_some(p, a, first, n));
    } else {
        OI_TRY(put_some(p, a, first, EDGE));
        fputs(", ..., ", p->to);
        OI_TRY(put_some(p, a, first + n - EDGE, EDGE));
    }
    fputs(" }", p->to);
    return OI_OK;
}

static void put_dims(FILE *to, uint32_t rank, const uint64_t *dims)
{
    for (uint32_t i = 0; i < rank; i++)
        fprintf(to, "%s%llu", i ? ", " : "[", (unsigned long long)dims[i]);
    if (rank)
        fputc(']', to);
}

/* NAME: TYPE[DIMS] = values, with rows along the first dim when there are several dims; a scalar
 * without dims and braces. */
static oi_status put_array(printer *p, const array *a)
{
    fprintf(p->to, "%s: %s", a->name, oi_dtype_name(a->dtype));
    if (a->rank == 0) {
        fputs(" = ", p->to);
        OI_TRY(put_some(p, a, 0, 1));
        fputc('\n', p->to);
        return OI_OK;
    }
    put_dims(p->to, a->rank, a->dims);
    fputs(" = ", p->to);
    if (a->rank == 1 || a->n == 0) {
        OI_TRY(put_list(p, a, 0, a->n));
        fputc('\n', p->to);
        return OI_OK;
    }
    fputs("{ \n", p->to);
    uint64_t row = a->n / a->dims[0];
    for (uint64_t i = 0; i < a->dims[0] && i < ROWS; i++) {
        OI_TRY(put_list(p, a, i * row, row));
        fputs(" ,\n", p->to);
    }
    fputs(a->dims[0] > ROWS ? "...\n}\n" : "}\n", p->to);
    return OI_OK;
}

/* -- metadata -- */

static oi_status put_str(printer *p, size_t i)
{
    oi_view v;
    oi_buf quoted = {0};
    const char *name = p->m->metadata[i].name;
    OI_TRY(oi_oinf_meta_view(p->m, i, &v, p->d));
    oi_put_json(&quoted, v.data, v.size_bytes);
    bool failed = quoted.failed;
    if (!failed)
        fprintf(p->to, "%s: str = %s\n", name, quoted.text);
    oi_buf_free(&quoted);
    return failed ? oi_oinf_env(p->m->path, p->d, "out of memory") : OI_OK;
}

#define TEXT_LOOKED_AT (16u << 20) /* bytes; longer ones are shown as numbers */
#define TEXT_SHOWN     160         /* bytes */

/* Text is stored as a list of u8 when it goes beyond the alphabet of names (oi_writer_text): UTF-8
 * without control characters, some of it outside that alphabet. */
static bool is_text(const char *text, size_t n)
{
    bool beyond = false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f)
            return false;
        bool is_alnum = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
        beyond |= !is_alnum && c != '.' && c != '_' && c != '-';
    }
    size_t bad;
    return beyond && oi_utf8_valid(text, n, &bad);
}

/* NAME: text[BYTES] = "...", its beginning when it is long; *shown is false for other arrays. */
static oi_status put_text(printer *p, size_t i, bool *shown)
{
    const oi_meta_info *e = &p->m->metadata[i];
    oi_view v;
    oi_buf quoted = {0};
    *shown = false;
    if (e->type != OI_NDARRAY || e->element != OI_U8 || e->rank != 1 || e->n_elements == 0 ||
        e->n_elements > TEXT_LOOKED_AT)
        return OI_OK;
    OI_TRY(oi_oinf_meta_view(p->m, i, &v, p->d));
    size_t n = (size_t)e->n_elements, cut = n;
    if (!is_text(v.data, n))
        return OI_OK;
    if (n > TEXT_SHOWN) /* no character is cut */
        for (cut = TEXT_SHOWN; (((const unsigned char *)v.data)[cut] & 0xc0) == 0x80; cut--)
            ;
    oi_put_json(&quoted, v.data, cut);
    *shown = !quoted.failed;
    if (*shown)
        fprintf(p->to, "%s: text[%zu] = %s%s\n", e->name, n, quoted.text, cut < n ? " ..." : "");
    oi_buf_free(&quoted);
    return *shown ? OI_OK : oi_oinf_env(p->m->path, p->d, "out of memory");
}

static oi_status put_bitset(printer *p, const oi_meta_info *e)
{
    uint8_t bytes[4];
    size_t n = e->value_size < sizeof bytes ? (size_t)e->value_size : sizeof bytes;
    OI_TRY(oi_oinf_read(p->m, e->value_at, n, bytes, p->d));
    fprintf(p->to, "%s: bitset[%llu] =%s", e->name, (unsigned long long)e->n_elements,
            n ? "" : " { }");
    for (size_t i = 0; i < n; i++)
        fprintf(p->to, " %02x", bytes[i]);
    fputc('\n', p->to);
    return OI_OK;
}

static oi_status put_metadata(printer *p, size_t i)
{
    const oi_meta_info *e = &p->m->metadata[i];
    if (e->type == OI_STR)
        return put_str(p, i);
    if (e->type == OI_BITSET)
        return put_bitset(p, e);
    bool is_shown;
    OI_TRY(put_text(p, i, &is_shown));
    array a = {e->name, e->element, e->rank, e->dims, e->n_elements, e->value_at, NULL};
    return is_shown ? OI_OK : put_array(p, &a);
}

/* -- tensors -- */

static void put_bin(oi_buf *out, const oi_stats *s, const oi_stats_bin *bin)
{
    char low[OI_NUMBER_TEXT], high[OI_NUMBER_TEXT];
    if (s->is_range) {
        oi_oinf_format_float(low, bin->low, 6);
        oi_oinf_format_float(high, bin->high, 6);
        oi_buf_printf(out, "[%s, %s]", low, high);
    } else if (s->is_unsigned) {
        unsigned long long v = bin->bits;
        oi_buf_printf(out, "[%llu, %llu]", v, v);
    } else {
        long long v = (int64_t)bin->bits;
        oi_buf_printf(out, "[%lld, %lld]", v, v);
    }
}

#define BAR 40u /* columns of the fullest bin */

/* One line per bin: its range, a bar in proportion, its count. */
static void put_chart(printer *p, const oi_stats *s, const char *labels, const size_t *at)
{
    uint64_t most = 1;
    size_t widest = 0;
    for (uint32_t i = 0; i < s->n_bins; i++) {
        if (s->bins[i].n > most)
            most = s->bins[i].n;
        if (at[i + 1] - at[i] > widest)
            widest = at[i + 1] - at[i];
    }
    for (uint32_t i = 0; i < s->n_bins; i++) {
        uint64_t n = s->bins[i].n;
        unsigned bar = (unsigned)ceil((double)n / (double)most * BAR);
        fprintf(p->to, "    %-*.*s |", (int)widest, (int)(at[i + 1] - at[i]), labels + at[i]);
        for (unsigned k = 0; k < bar; k++)
            fputc('#', p->to);
        fprintf(p->to, " %llu\n", (unsigned long long)n);
    }
}

static oi_status put_histogram(printer *p, const oi_stats *s)
{
    oi_buf labels = {0};
    size_t at[OI_STATS_BINS + 1] = {0};
    for (uint32_t i = 0; i < s->n_bins; i++) {
        put_bin(&labels, s, &s->bins[i]);
        at[i + 1] = labels.n;
    }
    if (labels.failed) {
        oi_buf_free(&labels);
        return oi_oinf_env(p->m->path, p->d, "out of memory");
    }
    fputs("- hist: {", p->to);
    for (uint32_t i = 0; i < s->n_bins; i++)
        fprintf(p->to, "%s(%.*s, %llu)", i ? ", " : "", (int)(at[i + 1] - at[i]),
                labels.text + at[i], (unsigned long long)s->bins[i].n);
    fputs("}\n", p->to);
    if (p->options->hist)
        put_chart(p, s, labels.text, at);
    oi_buf_free(&labels);
    return OI_OK;
}

static void put_bound(printer *p, const oi_stats *s, const char *label, double v, uint64_t bits)
{
    fputs(label, p->to);
    if (s->is_float)
        put_float(p->to, v);
    else
        put_integer(p->to, s->is_unsigned, bits);
}

static void put_figures(printer *p, const oi_stats *s)
{
    const struct {
        const char *label;
        double v;
    } rest[] = {{", mean: ", s->mean}, {", median: ", s->median}, {", std: ", s->std}};
    if (s->n_finite) {
        put_bound(p, s, ", min: ", s->min, s->min_bits);
        put_bound(p, s, ", max: ", s->max, s->max_bits);
        for (size_t i = 0; i < OI_COUNT(rest); i++) {
            fputs(rest[i].label, p->to);
            put_float(p->to, rest[i].v);
        }
    }
    if (s->n_inf)
        fprintf(p->to, ", inf: %llu", (unsigned long long)s->n_inf);
    if (s->n_nan)
        fprintf(p->to, ", nan: %llu", (unsigned long long)s->n_nan);
}

static void put_parameters(FILE *to, oi_quant_mode mode, uint64_t axis, oi_dtype t,
                           const void *values, uint64_t n)
{
    if (mode == OI_PER_TENSOR) {
        fputs("per_tensor(", to);
        put_value(to, t, values, 0);
        fputc(')', to);
        return;
    }
    fprintf(to, "per_channel(axis=%llu, {", (unsigned long long)axis);
    for (uint64_t i = 0; i < n; i++) {
        if (n > WHOLE && i == EDGE) {
            fputs(", ...", to);
            i = n - EDGE;
        }
        fputs(i ? ", " : " ", to);
        put_value(to, t, values, i);
    }
    fputs(" })", to);
}

static void put_quant(FILE *to, const oi_quant *q)
{
    fprintf(to,
            "- quant: scheme=%s, scale=", q->scheme == OI_SYMMETRIC ? "symmetric" : "asymmetric");
    put_parameters(to, q->scale_mode, q->scale_axis, OI_F32, q->scales, q->n_scales);
    fputs(", zero_point=", to);
    if (q->zero_point_mode == OI_QUANT_NONE)
        fputs("none", to);
    else
        put_parameters(to, q->zero_point_mode, q->zero_point_axis, OI_I32, q->zero_points,
                       q->n_zero_points);
    fputc('\n', to);
}

static oi_status put_tensor(printer *p, size_t i)
{
    const oi_tensor_info *t = &p->m->tensors[i];
    if (!t->has_data) {
        fprintf(p->to, "%s: %s", t->name, oi_dtype_name(t->dtype));
        put_dims(p->to, t->rank, t->dims);
        fputs(" -- uninitialized\n", p->to);
    } else {
        array a = {t->name, t->dtype, t->rank, t->dims, t->n_elements, t->data_offset, NULL};
        oi_stats s;
        OI_TRY(oi_oinf_stats(p->m, i, &s, p->d));
        OI_TRY(put_array(p, &a));
        fprintf(p->to, "- [nbytes: %llu", (unsigned long long)t->data_nbytes);
        put_figures(p, &s);
        fputs("]\n", p->to);
        if (t->n_elements)
            OI_TRY(put_histogram(p, &s));
    }
    if (t->quant)
        put_quant(p->to, t->quant);
    return OI_OK;
}

/* -- the listing -- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const oi_named *)a)->name, ((const oi_named *)b)->name);
}

oi_named *oi_oinf_sorted(const oi_model *m, oi_oinf_table t)
{
    size_t n = m->n[t];
    oi_named *names = malloc((n ? n : 1) * sizeof *names);
    for (size_t i = 0; names && i < n; i++)
        names[i] = (oi_named){t == OI_OINF_SIZEVARS   ? m->sizevars[i].name
                              : t == OI_OINF_METADATA ? m->metadata[i].name
                                                      : m->tensors[i].name,
                              i};
    if (names)
        qsort(names, n, sizeof *names, by_name);
    return names;
}

static oi_status put_entry(printer *p, oi_oinf_table t, size_t i)
{
    if (t == OI_OINF_METADATA)
        return put_metadata(p, i);
    if (t == OI_OINF_TENSORS)
        return put_tensor(p, i);
    fprintf(p->to, "%s := %llu\n", p->m->sizevars[i].name,
            (unsigned long long)p->m->sizevars[i].value);
    return OI_OK;
}

/* Paragraphs are separated by blank lines, and so are tensors. */
static oi_status put_table(printer *p, oi_oinf_table t, bool *is_first)
{
    oi_named *names = oi_oinf_sorted(p->m, t);
    if (!names)
        return oi_oinf_env(p->m->path, p->d, "out of memory");
    oi_status status = OI_OK;
    for (size_t i = 0; i < p->m->n[t] && status == OI_OK; i++) {
        if (!*is_first && (i == 0 || t == OI_OINF_TENSORS))
            fputc('\n', p->to);
        *is_first = false;
        status = put_entry(p, t, names[i].index);
    }
    free(names);
    return status;
}

static oi_status no_such_tensor(const oi_model *m, const char *name, oi_diag *d)
{
    oi_nearest near = oi_nearest_start(name);
    for (size_t i = 0; i < m->n[OI_OINF_TENSORS]; i++)
        oi_nearest_offer(&near, m->tensors[i].name);
    oi_place at = {.file = m->path, .is_line = true};
    if (near.best)
        return oi_diag_error(d, at, "", "oinf: %s: no tensor named '%s', did you mean '%s'?",
                             m->path, name, near.best);
    return oi_diag_error(d, at, "", "oinf: %s: no tensor named '%s'", m->path, name);
}

/* All of what will be shown, before the first byte is printed. */
static oi_status check_shown(printer *p)
{
    size_t only;
    if (p->options->tensor) {
        if (oi_model_tensor_index(p->m, p->options->tensor, &only) != OI_OK)
            return no_such_tensor(p->m, p->options->tensor, p->d);
        return oi_oinf_check_tensor(p->m, only, p->d);
    }
    for (size_t i = 0; i < p->m->n[OI_OINF_TENSORS]; i++)
        OI_TRY(oi_oinf_check_tensor(p->m, i, p->d));
    return OI_OK;
}

static oi_status print_text(printer *p)
{
    size_t only;
    bool is_first = true;
    if (p->options->tensor && oi_model_tensor_index(p->m, p->options->tensor, &only) == OI_OK)
        return put_tensor(p, only);
    for (oi_oinf_table t = 0; t < OI_OINF_TABLES; t++)
        OI_TRY(put_table(p, t, &is_first));
    return OI_OK;
}

oi_status oi_view_print(FILE *to, const char *name, const oi_view *v)
{
    printer p = {.to = to};
    array a = {name, v->dtype, v->rank, v->dims, v->n_elements, 0, v->data};
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return OI_ERR_ENV;
    locale_t before = uselocale(plain);
    oi_status status = put_array(&p, &a);
    uselocale(before);
    freelocale(plain);
    return status;
}

oi_status oi_model_print(oi_model *m, FILE *to, const oi_print_options *options, oi_diag *diag)
{
    static const oi_print_options defaults;
    if (!m || !to)
        return OI_ERR_USAGE;
    printer p = {m, to, options ? options : &defaults, diag};
    OI_TRY(oi_oinf_io_same(m, diag));
    OI_TRY(check_shown(&p));
    /* numbers have a point whatever the caller's locale */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return oi_oinf_env(m->path, diag, "out of memory");
    locale_t before = uselocale(plain);
    oi_status status =
        p.options->json ? oi_oinf_print_json(m, to, p.options, diag) : print_text(&p);
    uselocale(before);
    freelocale(plain);
    return status;
}
