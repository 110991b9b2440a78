/* weights.c: the contents of weights.bin: a head, then every tensor at its offset, zeros between.
 *
 *   0  "OIWEIGHT"   8  digest of all that follows the head   16  size of the file
 *  24  version of this format   32  zeros
 *
 * Code and weights belong together: the hash is also a constant of the emitted code. */
#include "emit/emit.h"
#include "kernel/digest.h"
#include "oinf/oinf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct sink {
    const oi_plan *u;
    oi_status (*put)(void *ctx, const void *data, size_t n);
    void *ctx;
    uint64_t at;
} sink;

static oi_status put(sink *s, const void *data, uint64_t n)
{
    s->at += n;
    return n ? s->put(s->ctx, data, (size_t)n) : OI_OK;
}

static oi_status put_zeros(sink *s, uint64_t n)
{
    static const char zeros[4096];
    while (n) {
        uint64_t part = n < sizeof zeros ? n : sizeof zeros;
        OI_TRY(put(s, zeros, part));
        n -= part;
    }
    return OI_OK;
}

static oi_status put_source(sink *s, const oi_tensor *t, size_t source)
{
    oi_view view;
    const char *name = t->model->tensors[source].name;
    OI_TRY(oi_model_tensor(t->model, name, &view, s->u->diag));
    oi_status status = put(s, view.data, t->size_bytes);
    oi_model_release(t->model, name);
    return status;
}

/* `size` bytes of elements that are all one value. */
static void fill(const oi_tensor *t, uint8_t *to, uint64_t size)
{
    unsigned bits = oi_dtype_bits(t->dtype);
    memset(to, 0, (size_t)size);
    for (uint64_t e = 0; e < size * 8 / bits; e++)
        if (bits >= 8)
            memcpy(to + e * bits / 8, &t->init, bits / 8);
        else
            to[e * bits / 8] |= (uint8_t)(t->init << e * bits % 8);
}

/* A constant that is all one value. */
static oi_status put_filled(sink *s, const oi_tensor *t)
{
    uint8_t chunk[4096];
    uint64_t left = t->size_bytes;
    fill(t, chunk, sizeof chunk);
    while (left) {
        uint64_t part = left < sizeof chunk ? left : sizeof chunk;
        OI_TRY(put(s, chunk, part));
        left -= part;
    }
    return OI_OK;
}

/* -- packed weights -- */

/* An operand of a packing: an entry of a tensor, borrowed from the model or made here. */
typedef struct part {
    const oi_tensor *t;
    const char *name;
    const void *data;
    void *own;
} part;

static oi_status take(sink *s, const oi_tensor *t, uint64_t entry, part *out)
{
    oi_view view;
    *out = (part){.t = t, .data = t->bytes};
    if (t->sources && t->sources[entry] != OI_NO_SOURCE) {
        const char *name = t->model->tensors[t->sources[entry]].name;
        OI_TRY(oi_model_tensor(t->model, name, &view, s->u->diag));
        out->name = name; /* borrowed: release it */
        out->data = view.data;
    } else if (!t->bytes) {
        out->data = out->own = malloc((size_t)t->size_bytes + 8);
        if (!out->own)
            return oi_diag_env(s->u->diag, t->name, "out of memory");
        fill(t, out->own, t->size_bytes);
    }
    return OI_OK;
}

static void give_back(const part *p)
{
    if (p->name)
        oi_model_release(p->t->model, p->name);
    free(p->own);
}

static oi_status put_packed(sink *s, const oi_tensor *t, uint64_t entry)
{
    part parts[OI_PACK_INPUTS];
    const void *in[OI_PACK_INPUTS] = {0};
    uint32_t n = 0;
    oi_status status = OI_OK;
    void *to = malloc((size_t)t->size_bytes + 1);
    if (!to)
        return oi_diag_env(s->u->diag, t->name, "out of memory");
    for (; n < t->packing->n_in && status == OI_OK; n++) {
        status = take(s, &s->u->tensors.at[t->packed[n]], entry, &parts[n]);
        in[n] = parts[n].data;
    }
    if (status == OI_OK) {
        t->packing->pack(t->packing, in, to);
        status = put(s, to, t->size_bytes);
    }
    while (n-- > 0)
        give_back(&parts[n]);
    free(to);
    return status;
}

static oi_status put_entry(sink *s, const oi_tensor *t, uint64_t e)
{
    if (t->packing && t->sources[e] != OI_NO_SOURCE)
        return put_packed(s, t, e);
    if (t->sources && t->sources[e] != OI_NO_SOURCE)
        return put_source(s, t, t->sources[e]);
    return t->bytes ? put(s, t->bytes, t->size_bytes) : put_filled(s, t);
}

static oi_status put_tensor(sink *s, const oi_tensor *t)
{
    OI_TRY(put_zeros(s, t->offset - s->at));
    for (uint64_t e = 0; e < t->n_entries; e++) {
        OI_TRY(put_zeros(s, t->offset + e * t->stride_bytes - s->at));
        OI_TRY(put_entry(s, t, e));
    }
    return OI_OK;
}

static oi_status add_part(void *ctx, const void *data, size_t n)
{
    oi_buf_add(ctx, data, n);
    return OI_OK;
}

oi_status oi_weights_entry(const oi_plan *u, const oi_tensor *t, uint64_t entry, oi_buf *out)
{
    sink s = {.u = u, .put = add_part, .ctx = out};
    return put_entry(&s, t, entry);
}

static oi_status put_all(sink *s)
{
    s->at = OI_WEIGHTS_HEAD;
    for (size_t i = 0; i < s->u->tensors.n; i++)
        if (s->u->tensors.at[i].space == OI_SPACE_WEIGHTS && !s->u->tensors.at[i].view)
            OI_TRY(put_tensor(s, &s->u->tensors.at[i]));
    return put_zeros(s, s->u->weights_bytes - s->at);
}

/* -- the digest, in blocks -- */

typedef struct digest {
    uint64_t sums[4], size;
    unsigned char rest[OI_DIGEST_BLOCK]; /* the beginning of the next block */
} digest;

static oi_status digest_part(void *ctx, const void *data, size_t n)
{
    digest *d = ctx;
    const unsigned char *at = data;
    size_t begun = (size_t)(d->size % OI_DIGEST_BLOCK);
    d->size += n;
    if (begun) {
        size_t more = OI_DIGEST_BLOCK - begun < n ? OI_DIGEST_BLOCK - begun : n;
        memcpy(d->rest + begun, at, more);
        at += more;
        n -= more;
        if (begun + more < OI_DIGEST_BLOCK)
            return OI_OK;
        oi_digest_blocks(d->sums, d->rest, 1);
    }
    oi_digest_blocks(d->sums, at, n / OI_DIGEST_BLOCK);
    memcpy(d->rest, at + n / OI_DIGEST_BLOCK * OI_DIGEST_BLOCK, n % OI_DIGEST_BLOCK);
    return OI_OK;
}

oi_status oi_weights_hash(const oi_plan *u, uint64_t *out)
{
    digest d = {.sums = {0}};
    oi_digest_begin(d.sums);
    sink s = {.u = u, .put = digest_part, .ctx = &d};
    OI_TRY(put_all(&s));
    const size_t begun = (size_t)(d.size % OI_DIGEST_BLOCK);
    if (begun) {
        memset(d.rest + begun, 0, sizeof d.rest - begun);
        oi_digest_blocks(d.sums, d.rest, 1);
    }
    *out = oi_digest_end(d.sums, d.size);
    return OI_OK;
}

/* -- as a file -- */

static oi_status write_part(void *ctx, const void *data, size_t n)
{
    return oi_file_put(*(const int *)ctx, data, n) ? OI_OK : OI_ERR_ENV;
}

static void put_head(const oi_plan *u, uint8_t *head)
{
    const uint64_t version = OI_WEIGHTS_VERSION;
    memset(head, 0, OI_WEIGHTS_HEAD);
    memcpy(head, "OIWEIGHT", 8);
    memcpy(head + 8, &u->weights_hash, 8);
    memcpy(head + 16, &u->weights_bytes, 8);
    memcpy(head + 24, &version, 8);
}

oi_status oi_weights_write(const oi_plan *u, int fd)
{
    uint8_t head[OI_WEIGHTS_HEAD];
    put_head(u, head);
    sink s = {.u = u, .put = write_part, .ctx = &fd};
    if (!oi_file_put(fd, head, sizeof head))
        return OI_ERR_ENV;
    return put_all(&s);
}

/* -- as a C array -- */

typedef struct text_sink {
    int fd;
    unsigned column; /* bytes in this line */
    size_t n;
    char text[4096];
} text_sink;

static oi_status flush_text(text_sink *t)
{
    size_t n = t->n;
    t->n = 0;
    return oi_file_put(t->fd, t->text, n) ? OI_OK : OI_ERR_ENV;
}

static oi_status text_part(void *ctx, const void *data, size_t n)
{
    text_sink *t = ctx;
    const uint8_t *p = data;
    for (size_t i = 0; i < n; i++) {
        if (t->n + 16 > sizeof t->text)
            OI_TRY(flush_text(t));
        t->column = (t->column + 1) % 24;
        t->n += (size_t)snprintf(t->text + t->n, sizeof t->text - t->n, "%s%u,%s",
                                 t->column == 1 ? "    " : "", p[i], t->column == 0 ? "\n" : "");
    }
    return OI_OK;
}

static oi_status write_beginning(const oi_plan *u, int fd)
{
    const char *section = u->target->mcu.flash_section;
    oi_buf b = {0};
    oi_buf_printf(&b,
                  "/* weights.c: the weights of %s, in the order %s.c reads them. */\n"
                  "#include \"%s.h\"\n\n",
                  u->name, u->name, u->name);
    if (section && *section) {
        oi_buf_puts(&b, "__attribute__((section(");
        oi_put_c_string(&b, section);
        oi_buf_puts(&b, ")))\n");
    }
    oi_buf_printf(&b, "OI_ALIGNED(%u) const unsigned char %s_weights[%" PRIu64 "] = {\n",
                  (unsigned)u->align, u->name, u->weights_bytes);
    bool is_written = !b.failed && oi_file_put(fd, b.text, b.n);
    oi_buf_free(&b);
    return is_written ? OI_OK : OI_ERR_ENV;
}

oi_status oi_weights_write_c(const oi_plan *u, int fd)
{
    uint8_t head[OI_WEIGHTS_HEAD];
    text_sink t = {.fd = fd};
    put_head(u, head);
    OI_TRY(write_beginning(u, fd));
    sink s = {.u = u, .put = text_part, .ctx = &t};
    OI_TRY(text_part(&t, head, sizeof head));
    OI_TRY(put_all(&s));
    OI_TRY(flush_text(&t));
    return oi_file_put(fd, "};\n", 3) ? OI_OK : OI_ERR_ENV;
}
