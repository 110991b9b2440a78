/* table.c: the three tables, read once, front to back, into the model's index. Nothing here trusts
 * a length before the bytes it speaks of are known to lie within the table. */
#include "oinf/oinf.h"

/* What read_name and friends call an entry, and the least it takes. */
static const struct {
    const char *what;
    uint32_t min_entry;
} tables[OI_OINF_TABLES] = {
    [OI_OINF_SIZEVARS] = {"sizevar", 16},
    [OI_OINF_METADATA] = {"metadata", 32},
    [OI_OINF_TENSORS] = {"tensor", 52},
};

/* Without a mapping the table passes through this many bytes: enough for the longest name and
 * for the longest entry behind it. */
#define WINDOW (128u << 10)

typedef struct cursor {
    oi_model *m;
    oi_diag *d;
    oi_oinf_table table;
    uint32_t index;    /* of the entry being read */
    uint64_t pos, end; /* in the file */
    uint8_t *window;   /* NULL when the bytes are in memory */
    uint64_t window_at, window_size;
} cursor;

#define FAIL(c, at, ...) return oi_oinf_error((c)->m, (c)->d, at, __VA_ARGS__)

/* Lends n bytes at pos and moves behind them; `part` says what they are when the table ends. */
static oi_status take(cursor *c, uint64_t n, const char *part, const uint8_t **out)
{
    *out = NULL;
    if (n > c->end - c->pos)
        FAIL(c, c->pos, "%s %u: %s takes %llu bytes, the table has %llu left",
             tables[c->table].what, c->index, part, (unsigned long long)n,
             (unsigned long long)(c->end - c->pos));
    if (!c->window) {
        *out = c->m->io.base + c->pos;
    } else {
        if (c->pos < c->window_at || c->pos + n > c->window_at + c->window_size) {
            c->window_at = c->pos;
            c->window_size = c->end - c->pos < WINDOW ? c->end - c->pos : WINDOW;
            OI_TRY(oi_oinf_read(c->m, c->window_at, c->window_size, c->window, c->d));
        }
        *out = c->window + (c->pos - c->window_at);
    }
    c->pos += n;
    return OI_OK;
}

/* Outside strict mode a name may be any text that prints: UTF-8 without control characters. */
static bool prints(const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t used = oi_utf8_decode(text + i, n - i, &cp);
        if (!used || cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
            return false;
        i += used;
    }
    return true;
}

/* A name outside the alphabet. */
static oi_status check_odd_name(const cursor *c, uint64_t at, const char *name, size_t n)
{
    const char *what = tables[c->table].what;
    size_t bad;
    if (!oi_utf8_valid(name, n, &bad))
        FAIL(c, at + bad, "%s %u: the name is not UTF-8", what, c->index);
    if (!prints(name, n))
        FAIL(c, at, "%s %u: the name holds control characters", what, c->index);
    if (c->m->options.strict)
        FAIL(c, at, "%s '%s': names are made of A-Z a-z 0-9 . _ -", what, name);
    return OI_OK;
}

/* String: u32 length, bytes, zero padding up to a multiple of 8 from its own start. */
static oi_status read_name(cursor *c, const char **out)
{
    const char *what = tables[c->table].what;
    uint64_t at = c->pos;
    const uint8_t *p;
    OI_TRY(take(c, 4, "the name's length", &p));
    uint32_t n = oi_get_u32(p);
    if (n == 0)
        FAIL(c, at, "%s %u: the name is empty", what, c->index);
    if (n > OI_OINF_NAME_MAX)
        FAIL(c, at, "%s %u: the name has %u bytes, at most %u are allowed", what, c->index, n,
             OI_OINF_NAME_MAX);
    uint64_t padded = oi_align8(4 + (uint64_t)n) - 4;
    OI_TRY(take(c, padded, "the name", &p));
    /* copied before it is judged: a mapping may change under us */
    const char *name = oi_arena_text(c->m->arena, (const char *)p, n);
    if (!oi_oinf_is_plain_name(name, n))
        OI_TRY(check_odd_name(c, at + 4, name, n));
    for (uint64_t i = n; c->m->options.strict && i < padded; i++)
        if (p[i])
            FAIL(c, at + 4 + i, "%s '%s': the name's padding is not zero", what, name);
    *out = name;
    return OI_OK;
}

static oi_status read_sizevar(cursor *c, oi_sizevar *out)
{
    const uint8_t *p;
    uint64_t at = c->pos;
    OI_TRY(read_name(c, &out->name));
    OI_TRY(take(c, 8, "the value", &p));
    out->value = oi_get_u64(p);
    if (out->value > INT64_MAX) {
        if (c->m->options.strict)
            FAIL(c, at, "sizevar '%s': %llu passes 2^63-1", out->name,
                 (unsigned long long)out->value);
        oi_oinf_warn(c->m, c->d, at, "sizevar '%s': %llu passes 2^63-1 and cannot be a dim",
                     out->name, (unsigned long long)out->value);
    }
    return OI_OK;
}

/* A blob's place, whatever it holds: aligned, behind off_data, inside the file. */
static oi_status check_range(cursor *c, uint64_t at, const char *name, const char *part,
                             uint64_t offset, uint64_t nbytes)
{
    const char *what = tables[c->table].what;
    uint64_t data = c->m->start[OI_OINF_TABLES], size = c->m->io.size;
    if (offset % 8)
        FAIL(c, at, "%s '%s': %s offset %llu is not a multiple of 8", what, name, part,
             (unsigned long long)offset);
    if (offset < data)
        FAIL(c, at, "%s '%s': %s offset %llu lies before the data section at %llu", what, name,
             part, (unsigned long long)offset, (unsigned long long)data);
    if (offset > size || nbytes > size - offset)
        FAIL(c, at, "%s '%s': %s (%llu bytes at %llu) passes the end of the file at %llu", what,
             name, part, (unsigned long long)nbytes, (unsigned long long)offset,
             (unsigned long long)size);
    return OI_OK;
}

/* Keys under "oi." are ours; strict mode doubts those it does not know. */
static bool is_known_key(const char *key)
{
    static const char *const keys[] = {"oi.graph", "oi.producer", "oi.created_from",
                                       "oi.format_minor"};
    if (strncmp(key, "oi.", 3) != 0 || !strncmp(key, "oi.graph.", 9) ||
        !strncmp(key, "oi.state.", 9))
        return true;
    for (size_t i = 0; i < OI_COUNT(keys); i++)
        if (!strcmp(key, keys[i]))
            return true;
    return false;
}

static oi_status read_metadata(cursor *c, oi_meta_info *out)
{
    const uint8_t *p;
    uint64_t at = c->pos;
    OI_TRY(read_name(c, &out->name));
    OI_TRY(take(c, 24, "the entry", &p));
    uint32_t type = oi_get_u32(p), flags = oi_get_u32(p + 4);
    out->nbytes = oi_get_u64(p + 8);
    out->offset = oi_get_u64(p + 16);
    if (type == OI_NONE || type >= OI_DTYPE_COUNT)
        FAIL(c, at, "metadata '%s': unknown value tag %u", out->name, type);
    if (flags)
        FAIL(c, at, "metadata '%s': flags are 0x%x, wanted 0", out->name, flags);
    out->type = out->element = (oi_dtype)type;
    if (out->nbytes > c->m->options.max_metadata_bytes)
        FAIL(c, at, "metadata '%s': %llu bytes, at most %llu are accepted", out->name,
             (unsigned long long)out->nbytes, (unsigned long long)c->m->options.max_metadata_bytes);
    if (c->m->options.strict && !is_known_key(out->name))
        oi_oinf_warn(c->m, c->d, at,
                     "metadata '%s': keys under oi. are reserved, this one is unknown", out->name);
    return check_range(c, at, out->name, "value", out->offset, out->nbytes);
}

static oi_status read_dims(cursor *c, uint64_t at, oi_tensor_info *out)
{
    const uint8_t *p;
    if (out->rank > c->m->options.max_ndim)
        FAIL(c, at, "tensor '%s': %u dims, at most %u are accepted", out->name, out->rank,
             c->m->options.max_ndim);
    OI_TRY(take(c, 8 * (uint64_t)out->rank, "the dims", &p));
    uint64_t *dims = oi_arena_alloc(c->m->arena, 8 * (size_t)out->rank);
    for (uint32_t i = 0; i < out->rank; i++)
        dims[i] = oi_get_u64(p + 8 * i);
    out->dims = dims;
    if (!oi_oinf_count(dims, out->rank, &out->n_elements))
        FAIL(c, at, "tensor '%s': the product of its dims passes 2^63-1", out->name);
    return OI_OK;
}

static oi_status check_tensor_ranges(cursor *c, uint64_t at, uint32_t flags, oi_tensor_info *t)
{
    uint64_t wanted;
    if (!oi_dtype_bytes(t->dtype, t->n_elements, &wanted))
        FAIL(c, at, "tensor '%s': its size in bytes passes 2^64", t->name);
    if (!(flags & OI_OINF_HAS_DATA) && (t->data_nbytes || t->data_offset))
        FAIL(c, at, "tensor '%s': has no data, yet its data size and offset are %llu and %llu",
             t->name, (unsigned long long)t->data_nbytes, (unsigned long long)t->data_offset);
    if (!(flags & OI_OINF_HAS_QUANT) && (t->quant_nbytes || t->quant_offset))
        FAIL(c, at,
             "tensor '%s': is not quantised, yet its quant size and offset are %llu and %llu",
             t->name, (unsigned long long)t->quant_nbytes, (unsigned long long)t->quant_offset);
    if (flags & OI_OINF_HAS_DATA) {
        if (t->data_nbytes != wanted)
            FAIL(c, at, "tensor '%s': its data has %llu bytes, %s and dims make %llu", t->name,
                 (unsigned long long)t->data_nbytes, oi_dtype_name(t->dtype),
                 (unsigned long long)wanted);
        OI_TRY(check_range(c, at, t->name, "data", t->data_offset, t->data_nbytes));
    }
    if (!(flags & OI_OINF_HAS_QUANT))
        return OI_OK;
    if (t->quant_nbytes < OI_OINF_QUANT_HEAD)
        FAIL(c, at, "tensor '%s': quant has %llu bytes, at least %u are needed", t->name,
             (unsigned long long)t->quant_nbytes, OI_OINF_QUANT_HEAD);
    return check_range(c, at, t->name, "quant", t->quant_offset, t->quant_nbytes);
}

static oi_status read_tensor(cursor *c, oi_tensor_info *out)
{
    const uint8_t *p;
    uint64_t at = c->pos;
    OI_TRY(read_name(c, &out->name));
    OI_TRY(take(c, 12, "the entry", &p));
    uint32_t tag = oi_get_u32(p), flags = oi_get_u32(p + 8);
    out->rank = oi_get_u32(p + 4);
    if (tag >= OI_DTYPE_COUNT || !oi_dtype_is_tensor((oi_dtype)tag))
        FAIL(c, at, "tensor '%s': value tag %u is not a tensor's", out->name, tag);
    if (flags & ~(uint32_t)(OI_OINF_HAS_DATA | OI_OINF_HAS_QUANT))
        FAIL(c, at, "tensor '%s': flags are 0x%x, only bits 0 and 1 are known", out->name, flags);
    out->dtype = (oi_dtype)tag;
    OI_TRY(read_dims(c, at, out));
    OI_TRY(take(c, 32, "the entry's end", &p));
    out->has_data = flags & OI_OINF_HAS_DATA;
    out->data_nbytes = oi_get_u64(p);
    out->data_offset = oi_get_u64(p + 8);
    out->quant_nbytes = oi_get_u64(p + 16);
    out->quant_offset = oi_get_u64(p + 24);
    return check_tensor_ranges(c, at, flags, out);
}

/* One name may stand once in its table; in another table it only makes lookups surprising. */
static oi_status add_name(cursor *c, uint64_t at, const char *name)
{
    const char *what = tables[c->table].what;
    if (oi_map_put(&c->m->by_name[c->table], name, c->index) != c->index)
        FAIL(c, at, "%s '%s' occurs twice", what, name);
    for (size_t t = 0; t < OI_COUNT(tables) && t < (size_t)c->table; t++)
        if (oi_map_get(&c->m->by_name[t], name) != OI_MAP_NONE)
            oi_oinf_warn(c->m, c->d, at, "'%s' is in the %s table and in the %s table", name,
                         tables[t].what, what);
    return OI_OK;
}

static oi_status read_entry(cursor *c, uint32_t i)
{
    uint64_t at = c->pos;
    c->index = i;
    switch (c->table) {
    case OI_OINF_SIZEVARS:
        OI_TRY(read_sizevar(c, &c->m->sizevars[i]));
        return add_name(c, at, c->m->sizevars[i].name);
    case OI_OINF_METADATA:
        OI_TRY(read_metadata(c, &c->m->metadata[i]));
        return add_name(c, at, c->m->metadata[i].name);
    default:
        OI_TRY(read_tensor(c, &c->m->tensors[i]));
        return add_name(c, at, c->m->tensors[i].name);
    }
}

/* Only after the count is known to fit the section: memory stays in proportion to the file. */
static void *alloc_entries(oi_model *m, oi_oinf_table t)
{
    m->by_name[t].arena = m->arena;
    oi_map_reserve(&m->by_name[t], m->n[t]);
    switch (t) {
    case OI_OINF_SIZEVARS:
        return m->sizevars = oi_arena_alloc(m->arena, m->n[t] * sizeof *m->sizevars);
    case OI_OINF_METADATA:
        return m->metadata = oi_arena_alloc(m->arena, m->n[t] * sizeof *m->metadata);
    default: return m->tensors = oi_arena_alloc(m->arena, m->n[t] * sizeof *m->tensors);
    }
}

oi_status oi_oinf_read_table(oi_model *m, oi_oinf_table t, oi_diag *d)
{
    cursor c = {.m = m, .d = d, .table = t, .pos = m->start[t], .end = m->start[t + 1]};
    if (m->n[t] > m->options.max_count)
        FAIL(&c, 13 + 4 * (uint64_t)t, "%u %s entries, at most %u are accepted", m->n[t],
             tables[t].what, m->options.max_count);
    if ((uint64_t)m->n[t] * tables[t].min_entry > c.end - c.pos)
        FAIL(&c, 13 + 4 * (uint64_t)t, "%u %s entries cannot fit a table of %llu bytes", m->n[t],
             tables[t].what, (unsigned long long)(c.end - c.pos));
    if (m->n[t]) {
        (void)alloc_entries(m, t);
        if (!m->io.base)
            c.window = oi_arena_alloc(m->arena, c.end - c.pos < WINDOW ? c.end - c.pos : WINDOW);
    }
    for (uint32_t i = 0; i < m->n[t]; i++)
        OI_TRY(read_entry(&c, i));
    return m->options.strict ? oi_oinf_check_zero(m, c.pos, c.end - c.pos, d) : OI_OK;
}
