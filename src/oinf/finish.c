/* finish.c: lays a writer's entries out and writes them front to back:
 *   header, pad to 72 | sizevars | metadata | tensors | metadata payloads | data0 quant0 data1 ...
 * Everything is sorted by name; each table and payload starts at a multiple of 8. */
#include "oinf/oinf.h"

#include <errno.h>
#include <stdlib.h>

/* -- where the bytes go -- */

/* Either memory that has room for everything, or a file behind a small buffer. A failure stays:
 * what comes after it is dropped, and put_all tells. */
typedef struct sink {
    uint8_t *memory;
    int fd;
    int error;   /* errno of the first failure, or 0 */
    uint64_t at; /* bytes put so far */
    size_t n_waiting;
    uint8_t waiting[OI_OINF_PIECE];
} sink;

static void put_file(sink *s, const void *p, size_t n)
{
    if (!s->error && !oi_file_put(s->fd, p, n))
        s->error = errno;
}

static void flush(sink *s)
{
    put_file(s, s->waiting, s->n_waiting);
    s->n_waiting = 0;
}

static void put(sink *s, const void *p, size_t n)
{
    if (s->memory) {
        memcpy(s->memory + s->at, p, n);
    } else {
        if (n > sizeof s->waiting - s->n_waiting)
            flush(s);
        if (n > sizeof s->waiting) {
            put_file(s, p, n);
        } else {
            memcpy(s->waiting + s->n_waiting, p, n);
            s->n_waiting += n;
        }
    }
    s->at += n;
}

static void put_u32(sink *s, uint32_t v)
{
    uint8_t p[4];
    oi_put_u32(p, v);
    put(s, p, sizeof p);
}

static void put_u64(sink *s, uint64_t v)
{
    uint8_t p[8];
    oi_put_u64(p, v);
    put(s, p, sizeof p);
}

static const uint8_t zeros[8];

static void pad(sink *s)
{
    put(s, zeros, (size_t)(oi_align8(s->at) - s->at));
}

static void put_name(sink *s, const char *name)
{
    size_t n = strlen(name);
    put_u32(s, (uint32_t)n);
    put(s, name, n);
    /* padded from its own start: entries may stand at odd multiples of 4 */
    put(s, zeros, (size_t)(oi_align8(4 + n) - 4 - n));
}

/* -- where everything stands -- */

typedef struct layout {
    uint64_t start[OI_OINF_TABLES + 1];
    uint64_t size;
} layout;

/* Moves *at behind `size` more bytes, rounded up; false when the file would pass 2^63-1. */
static bool advance(uint64_t *at, uint64_t size)
{
    if (size > INT64_MAX - 8 - *at)
        return false;
    *at = oi_align8(*at + size);
    return true;
}

static uint64_t name_size(const char *name)
{
    return oi_align8(4 + strlen(name));
}

static bool lay_out(const oi_writer *w, layout *out)
{
    uint64_t at = OI_OINF_START, size = 0;
    out->start[OI_OINF_SIZEVARS] = at;
    for (size_t i = 0; i < w->sizevars.n; i++)
        size += name_size(w->sizevars.at[i].name) + 8;
    out->start[OI_OINF_METADATA] = at = oi_align8(at + size);
    size = 0;
    for (size_t i = 0; i < w->metadata.n; i++)
        size += name_size(w->metadata.at[i].name) + 24;
    out->start[OI_OINF_TENSORS] = at = oi_align8(at + size);
    size = 0;
    for (size_t i = 0; i < w->tensors.n; i++)
        size += name_size(w->tensors.at[i].name) + 44 + 8 * (uint64_t)w->tensors.at[i].spec.rank;
    out->start[OI_OINF_TABLES] = at = oi_align8(at + size);
    for (size_t i = 0; i < w->metadata.n; i++)
        if (!advance(&at, w->metadata.at[i].nbytes))
            return false;
    for (size_t i = 0; i < w->tensors.n; i++) {
        const oi_writer_item_tensor *t = &w->tensors.at[i];
        if ((t->has_data && !advance(&at, t->data_nbytes)) || !advance(&at, t->quant_nbytes))
            return false;
    }
    out->size = at;
    return true;
}

/* Names are unique in their table, so the order is total. Each entry starts with its name. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_entries(oi_writer *w)
{
    if (w->sizevars.n)
        qsort(w->sizevars.at, w->sizevars.n, sizeof *w->sizevars.at, by_name);
    if (w->metadata.n)
        qsort(w->metadata.at, w->metadata.n, sizeof *w->metadata.at, by_name);
    if (w->tensors.n)
        qsort(w->tensors.at, w->tensors.n, sizeof *w->tensors.at, by_name);
}

/* -- the tables -- */

static void put_header(sink *s, const oi_writer *w, const layout *l)
{
    put(s, "OINF", 5);
    const uint32_t words[] = {
        2, 0, (uint32_t)w->sizevars.n, (uint32_t)w->metadata.n, (uint32_t)w->tensors.n, 0};
    for (size_t i = 0; i < OI_COUNT(words); i++)
        put_u32(s, words[i]);
    for (size_t i = 0; i < OI_COUNT(l->start); i++)
        put_u64(s, l->start[i]);
    put_u64(s, l->size);
    pad(s);
}

static void put_tensor_entry(sink *s, const oi_writer_item_tensor *t, uint64_t *at)
{
    uint64_t data_at = t->has_data ? *at : 0, data_nbytes = t->has_data ? t->data_nbytes : 0;
    *at += oi_align8(data_nbytes);
    uint64_t quant_at = t->quant ? *at : 0;
    *at += t->quant_nbytes;
    put_name(s, t->name);
    put_u32(s, t->spec.dtype);
    put_u32(s, t->spec.rank);
    put_u32(s, (t->has_data ? OI_OINF_HAS_DATA : 0) | (t->quant ? OI_OINF_HAS_QUANT : 0));
    for (uint32_t i = 0; i < t->spec.rank; i++)
        put_u64(s, t->spec.dims[i]);
    put_u64(s, data_nbytes);
    put_u64(s, data_at);
    put_u64(s, t->quant_nbytes);
    put_u64(s, quant_at);
}

static void put_tables(sink *s, const oi_writer *w, const layout *l)
{
    uint64_t at = l->start[OI_OINF_TABLES];
    for (size_t i = 0; i < w->sizevars.n; i++) {
        put_name(s, w->sizevars.at[i].name);
        put_u64(s, w->sizevars.at[i].value);
    }
    for (size_t i = 0; i < w->metadata.n; i++) {
        const oi_writer_meta *e = &w->metadata.at[i];
        put_name(s, e->name);
        put_u32(s, e->type);
        put_u32(s, 0);
        put_u64(s, e->nbytes);
        put_u64(s, at);
        at += oi_align8(e->nbytes);
    }
    for (size_t i = 0; i < w->tensors.n; i++)
        put_tensor_entry(s, &w->tensors.at[i], &at);
    pad(s);
}

/* -- the payloads -- */

/* Bytes [done, done + n) of a tensor into buf, as they will be stored. */
static oi_status fetch(const oi_writer_item_tensor *t, uint64_t done, uint8_t *buf, size_t n,
                       oi_diag *d)
{
    if (t->spec.data)
        memcpy(buf, (const uint8_t *)t->spec.data + done, n);
    else
        OI_TRY(t->spec.read(t->spec.read_ctx, done, buf, n, d));
    unsigned bits = oi_dtype_bits(t->spec.dtype);
    uint64_t first = done * 8 / bits, here = (uint64_t)n * 8 / bits;
    if (here > t->n_elements - first) { /* the last byte: its unused bits are zero */
        here = t->n_elements - first;
        buf[n - 1] &= (uint8_t)((1u << here * bits % 8) - 1);
    }
    if (oi_oinf_bad_value(t->spec.dtype, buf, here) < here)
        return oi_oinf_refuse(d, "tensor", t->name, "the stored bits are no %s",
                              oi_dtype_name(t->spec.dtype));
    return OI_OK;
}

static oi_status put_tensor(sink *s, const oi_writer_item_tensor *t, oi_diag *d)
{
    uint8_t buf[OI_OINF_PIECE];
    for (uint64_t done = 0; t->has_data && done < t->data_nbytes && !s->error;) {
        size_t n =
            t->data_nbytes - done < sizeof buf ? (size_t)(t->data_nbytes - done) : sizeof buf;
        OI_TRY(fetch(t, done, buf, n, d));
        put(s, buf, n);
        done += n;
    }
    pad(s);
    if (t->quant)
        put(s, t->quant, (size_t)t->quant_nbytes);
    return OI_OK;
}

static oi_status put_all(sink *s, const char *path, const oi_writer *w, const layout *l, oi_diag *d)
{
    put_header(s, w, l);
    put_tables(s, w, l);
    for (size_t i = 0; i < w->metadata.n; i++) {
        put(s, w->metadata.at[i].payload, (size_t)w->metadata.at[i].nbytes);
        pad(s);
    }
    for (size_t i = 0; i < w->tensors.n; i++)
        OI_TRY(put_tensor(s, &w->tensors.at[i], d));
    if (!s->memory)
        flush(s);
    return s->error ? oi_oinf_env(path, d, "cannot write: %s", strerror(s->error)) : OI_OK;
}

/* -- finishing -- */

static oi_status prepare(oi_writer *w, const char *path, layout *out, oi_diag *d)
{
    sort_entries(w);
    if (!lay_out(w, out))
        return oi_oinf_env(path, d, "the package would pass 2^63 bytes");
    return OI_OK;
}

typedef struct finish_args {
    oi_writer *w;
    const char *path;
    const layout *l;
} finish_args;

static oi_status write_file(void *ctx, int fd, oi_diag *d)
{
    const finish_args *x = ctx;
    sink s = {.fd = fd};
    return put_all(&s, x->path, x->w, x->l, d);
}

oi_status oi_writer_finish(oi_writer *w, const char *path, oi_diag *diag)
{
    layout l;
    if (!w || !path)
        return OI_ERR_USAGE;
    OI_TRY(prepare(w, path, &l, diag));
    finish_args x = {w, path, &l};
    return oi_file_write_with(path, write_file, &x, diag);
}

oi_status oi_writer_finish_memory(oi_writer *w, void **out, size_t *out_n, oi_diag *diag)
{
    layout l;
    if (!w || !out || !out_n)
        return OI_ERR_USAGE;
    OI_TRY(prepare(w, "<memory>", &l, diag));
    sink s = {.fd = -1, .memory = malloc((size_t)l.size)};
    if (!s.memory)
        return oi_oinf_env("<memory>", diag, "no memory for %llu bytes",
                           (unsigned long long)l.size);
    oi_status status = put_all(&s, "<memory>", w, &l, diag);
    if (status != OI_OK) {
        free(s.memory);
        return status;
    }
    *out = s.memory;
    *out_n = (size_t)l.size;
    return OI_OK;
}
