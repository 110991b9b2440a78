/* payload.c: metadata values and quantisation parameters, checked when the package is opened. Long
 * values pass by in pieces and are not kept; only their outline goes into the index. */
#include "oinf/oinf.h"

#include <math.h>

#define FAIL(m, d, at, ...) return oi_oinf_error(m, d, at, __VA_ARGS__)

/* -- zero padding -- */

typedef struct walk {
    const oi_model *m;
    oi_diag *d;
    const char *what, *name;
    oi_dtype dtype;
    uint64_t n_left; /* elements not seen yet */
    uint8_t part[4]; /* of a character cut by the end of the piece before */
    uint8_t n_part;
} walk;

static oi_status zero_piece(void *ctx, const uint8_t *p, size_t n, uint64_t offset)
{
    walk *w = ctx;
    for (size_t i = 0; i < n; i++)
        if (p[i])
            FAIL(w->m, w->d, offset + i, "padding is 0x%02x, wanted 0", p[i]);
    return OI_OK;
}

oi_status oi_oinf_check_zero(const oi_model *m, uint64_t offset, uint64_t n, oi_diag *d)
{
    walk w = {.m = m, .d = d};
    return oi_oinf_walk(m, offset, n, zero_piece, &w, d);
}

/* -- metadata -- */

static oi_status not_text(walk *w, uint64_t offset)
{
    FAIL(w->m, w->d, offset, "metadata '%s': the text is not UTF-8", w->name);
}

/* Bytes of the character that starts with `lead`; malformed leads count as 1. */
static size_t utf8_length(uint8_t lead)
{
    return lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 1;
}

/* How many bytes at the end of p[0..n) begin a character that goes on behind it. */
static size_t cut_character(const uint8_t *p, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++)
        if ((p[n - back] & 0xc0) != 0x80)
            return utf8_length(p[n - back]) > back ? back : 0;
    return 0;
}

static oi_status text_piece(void *ctx, const uint8_t *p, size_t n, uint64_t offset)
{
    walk *w = ctx;
    const uint8_t *nul = memchr(p, 0, n);
    if (nul)
        FAIL(w->m, w->d, offset + (uint64_t)(nul - p), "metadata '%s': the text holds a NUL",
             w->name);
    w->n_left -= n;
    while (w->n_part && n) {
        w->part[w->n_part++] = *p++;
        n--;
        offset++;
        if (w->n_part == utf8_length(w->part[0])) {
            if (!oi_utf8_valid((const char *)w->part, w->n_part, NULL))
                return not_text(w, offset - w->n_part);
            w->n_part = 0;
        }
    }
    size_t cut = cut_character(p, n), bad;
    if (!oi_utf8_valid((const char *)p, n - cut, &bad))
        return not_text(w, offset + bad);
    if (cut && !w->n_left)
        return not_text(w, offset + n - cut);
    if (cut) {
        memcpy(w->part, p + n - cut, cut);
        w->n_part = (uint8_t)cut;
    }
    return w->n_left || !w->n_part ? OI_OK : not_text(w, offset + n);
}

static oi_status value_piece(void *ctx, const uint8_t *p, size_t n, uint64_t offset)
{
    walk *w = ctx;
    unsigned bits = oi_dtype_bits(w->dtype);
    uint64_t here = (uint64_t)n * 8 / bits;
    if (here > w->n_left) /* the last byte of a packed type */
        here = w->n_left;
    w->n_left -= here;
    uint64_t bad = oi_oinf_bad_value(w->dtype, p, here);
    if (bad < here)
        FAIL(w->m, w->d, offset + bad * bits / 8, "%s '%s': the stored bits are no %s", w->what,
             w->name, oi_dtype_name(w->dtype));
    return OI_OK;
}

oi_status oi_oinf_check_values(const oi_model *m, const char *what, const char *name, oi_dtype t,
                               uint64_t n_elements, uint64_t offset, oi_diag *d)
{
    uint64_t size;
    if (t != OI_BOOL && t != OI_T2) /* any bits are a value of the other types */
        return OI_OK;
    walk w = {.m = m, .d = d, .what = what, .name = name, .dtype = t, .n_left = n_elements};
    (void)oi_dtype_bytes(t, n_elements, &size);
    return oi_oinf_walk(m, offset, size, value_piece, &w, d);
}

static oi_status wrong_size(const oi_model *m, const oi_meta_info *e, uint64_t wanted, oi_diag *d)
{
    FAIL(m, d, e->offset, "metadata '%s': its value has %llu bytes, %s makes %llu", e->name,
         (unsigned long long)e->nbytes, oi_dtype_name(e->type), (unsigned long long)wanted);
}

static void set_dims(oi_model *m, oi_meta_info *e, uint32_t rank, const uint64_t *from)
{
    uint64_t *dims = oi_arena_alloc(m->arena, 8 * (size_t)rank);
    if (rank)
        memcpy(dims, from, 8 * (size_t)rank);
    e->rank = rank;
    e->dims = dims;
}

/* str: u32 length, bytes, padding. Any text is fine, also an empty one. */
static oi_status read_str(oi_model *m, oi_meta_info *e, oi_diag *d)
{
    uint8_t head[4];
    if (e->nbytes < 8)
        return wrong_size(m, e, 8, d);
    OI_TRY(oi_oinf_read(m, e->offset, sizeof head, head, d));
    uint64_t n = oi_get_u32(head);
    if (e->nbytes != oi_align8(4 + n))
        return wrong_size(m, e, oi_align8(4 + n), d);
    set_dims(m, e, 1, &n);
    e->n_elements = e->value_size = n;
    e->value_at = e->offset + 4;
    walk w = {.m = m, .d = d, .name = e->name, .n_left = n};
    return oi_oinf_walk(m, e->value_at, n, text_piece, &w, d);
}

/* bitset: u32 bits, u32 bytes = ceil(bits / 8), bytes, padding. */
static oi_status read_bitset(oi_model *m, oi_meta_info *e, oi_diag *d)
{
    uint8_t head[8];
    if (e->nbytes < 8)
        return wrong_size(m, e, 8, d);
    OI_TRY(oi_oinf_read(m, e->offset, sizeof head, head, d));
    uint64_t n_bits = oi_get_u32(head), n_bytes = oi_get_u32(head + 4);
    if (n_bytes != n_bits / 8 + (n_bits % 8 != 0))
        FAIL(m, d, e->offset + 4, "metadata '%s': %llu bits take %llu bytes, it says %llu", e->name,
             (unsigned long long)n_bits, (unsigned long long)(n_bits / 8 + (n_bits % 8 != 0)),
             (unsigned long long)n_bytes);
    if (e->nbytes != oi_align8(8 + n_bytes))
        return wrong_size(m, e, oi_align8(8 + n_bytes), d);
    set_dims(m, e, 1, &n_bits);
    e->n_elements = n_bits;
    e->value_at = e->offset + 8;
    e->value_size = n_bytes;
    return OI_OK;
}

/* ndarray: u32 element tag, u32 ndim, u64 dims[ndim], packed data, padding. */
static oi_status read_ndarray(oi_model *m, oi_meta_info *e, oi_diag *d)
{
    uint8_t head[8 + 8 * OI_OINF_NDIM_MAX];
    uint64_t dims[OI_OINF_NDIM_MAX], at = e->offset;
    if (e->nbytes < 8)
        return wrong_size(m, e, 8, d);
    OI_TRY(oi_oinf_read(m, at, 8, head, d));
    uint32_t tag = oi_get_u32(head), rank = oi_get_u32(head + 4);
    if (tag >= OI_DTYPE_COUNT || tag == OI_BITSET || !oi_dtype_is_tensor((oi_dtype)tag))
        FAIL(m, d, at, "metadata '%s': value tag %u is not an ndarray element's", e->name, tag);
    if (rank > m->options.max_ndim)
        FAIL(m, d, at + 4, "metadata '%s': %u dims, at most %u are accepted", e->name, rank,
             m->options.max_ndim);
    uint64_t head_size = 8 + 8 * (uint64_t)rank;
    if (e->nbytes < head_size)
        return wrong_size(m, e, head_size, d);
    OI_TRY(oi_oinf_read(m, at + 8, head_size - 8, head + 8, d));
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = oi_get_u64(head + 8 + 8 * i);
    uint64_t size;
    if (!oi_oinf_count(dims, rank, &e->n_elements))
        FAIL(m, d, at + 8, "metadata '%s': the product of its dims passes 2^63-1", e->name);
    if (!oi_dtype_bytes((oi_dtype)tag, e->n_elements, &size) || size > UINT64_MAX - head_size - 7)
        FAIL(m, d, at + 8, "metadata '%s': its size in bytes passes 2^64", e->name);
    if (e->nbytes != oi_align8(head_size + size))
        return wrong_size(m, e, oi_align8(head_size + size), d);
    set_dims(m, e, rank, dims);
    e->element = (oi_dtype)tag;
    e->value_at = at + head_size;
    e->value_size = size;
    return OI_OK;
}

static oi_status read_scalar(oi_model *m, oi_meta_info *e, oi_diag *d)
{
    uint64_t wanted;
    (void)oi_dtype_bytes(e->type, 1, &wanted);
    if (e->nbytes != wanted)
        return wrong_size(m, e, wanted, d);
    set_dims(m, e, 0, NULL);
    e->n_elements = 1;
    e->value_at = e->offset;
    e->value_size = wanted;
    return OI_OK;
}

static oi_status read_value(oi_model *m, oi_meta_info *e, oi_diag *d)
{
    switch (e->type) {
    case OI_STR: OI_TRY(read_str(m, e, d)); break;
    case OI_BITSET: OI_TRY(read_bitset(m, e, d)); break;
    case OI_NDARRAY: OI_TRY(read_ndarray(m, e, d)); break;
    default: OI_TRY(read_scalar(m, e, d)); break;
    }
    if (!m->options.strict)
        return OI_OK;
    uint64_t end = e->value_at + e->value_size;
    OI_TRY(oi_oinf_check_zero(m, end, e->offset + e->nbytes - end, d));
    return oi_oinf_check_values(m, "metadata", e->name, e->element, e->n_elements, e->value_at, d);
}

/* -- quantisation -- */

static oi_status scales_piece(void *ctx, const uint8_t *p, size_t n, uint64_t offset)
{
    walk *w = ctx;
    for (size_t i = 0; i + 4 <= n; i += 4) {
        double scale = oi_element_f64(OI_F32, p + i, 0);
        if (!isfinite(scale) || scale <= 0)
            FAIL(w->m, w->d, offset + i, "tensor '%s': quant: scale %g is not finite and > 0",
                 w->name, scale);
    }
    return OI_OK;
}

static oi_status quant_head(const oi_model *m, const oi_tensor_info *t, oi_quant *q, oi_diag *d)
{
    uint8_t h[OI_OINF_QUANT_HEAD];
    uint64_t at = t->quant_offset;
    OI_TRY(oi_oinf_read(m, at, sizeof h, h, d));
    *q = (oi_quant){.scheme = (oi_quant_scheme)oi_get_u32(h),
                    .scale_mode = (oi_quant_mode)oi_get_u32(h + 4),
                    .zero_point_mode = (oi_quant_mode)oi_get_u32(h + 8),
                    .scale_axis = oi_get_u64(h + 16),
                    .n_scales = oi_get_u64(h + 24),
                    .zero_point_axis = oi_get_u64(h + 32),
                    .n_zero_points = oi_get_u64(h + 40)};
    const char *problem = oi_oinf_quant_problem(q, t->rank, t->dims);
    if (problem)
        FAIL(m, d, at, "tensor '%s': quant: %s", t->name, problem);
    if (oi_get_u32(h + 12))
        FAIL(m, d, at + 12, "tensor '%s': quant: the reserved field is not 0", t->name);
    /* both counts are a dim or at most 1, hence below 2^63 */
    uint64_t n_values = q->n_scales + q->n_zero_points, room = t->quant_nbytes - OI_OINF_QUANT_HEAD;
    if (n_values > room / 4 || oi_align8(OI_OINF_QUANT_HEAD + 4 * n_values) != t->quant_nbytes)
        FAIL(m, d, at,
             "tensor '%s': quant: %llu bytes do not hold %llu scales and %llu zero points", t->name,
             (unsigned long long)t->quant_nbytes, (unsigned long long)q->n_scales,
             (unsigned long long)q->n_zero_points);
    return OI_OK;
}

/* The scales are judged before memory is taken for them: a sparse file claims for free. */
static oi_status read_quant(oi_model *m, oi_tensor_info *t, oi_diag *d)
{
    oi_quant q;
    OI_TRY(quant_head(m, t, &q, d));
    uint64_t at = t->quant_offset + OI_OINF_QUANT_HEAD, zero_points_at = at + 4 * q.n_scales;
    uint64_t end = zero_points_at + 4 * q.n_zero_points;
    walk w = {.m = m, .d = d, .name = t->name};
    OI_TRY(oi_oinf_walk(m, at, 4 * q.n_scales, scales_piece, &w, d));
    if (m->options.strict)
        OI_TRY(oi_oinf_check_zero(m, end, t->quant_offset + t->quant_nbytes - end, d));
    float *scales = oi_arena_alloc(m->arena, 4 * q.n_scales);
    int32_t *zero_points = oi_arena_alloc(m->arena, 4 * q.n_zero_points);
    OI_TRY(oi_oinf_read(m, at, 4 * q.n_scales, scales, d));
    OI_TRY(oi_oinf_read(m, zero_points_at, 4 * q.n_zero_points, zero_points, d));
    q.scales = scales;
    q.zero_points = zero_points;
    oi_quant *kept = oi_arena_alloc(m->arena, sizeof *kept);
    *kept = q;
    t->quant = kept;
    return OI_OK;
}

oi_status oi_oinf_read_payloads(oi_model *m, oi_diag *d)
{
    for (uint32_t i = 0; i < m->n[OI_OINF_METADATA]; i++)
        OI_TRY(read_value(m, &m->metadata[i], d));
    for (uint32_t i = 0; i < m->n[OI_OINF_TENSORS]; i++)
        if (m->tensors[i].quant_nbytes)
            OI_TRY(read_quant(m, &m->tensors[i], d));
    return OI_OK;
}
