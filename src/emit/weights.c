/* weights.c: the contents of weights.bin: a head, then every tensor at its offset, zeros between.
 *
 *   0  "OIWEIGHT"   8  digest of all that follows the head   16  size of the file
 *  24  version of this format   32  zeros
 *
 * Code and weights belong together: the hash is also a constant of the emitted code.
 *
 * The file is a stream of pieces. Threads make a batch of them, each piece from its operands alone,
 * while the batch before it is hashed and written in order. So a model of any size takes a few
 * batches of memory, and the bytes do not depend on the threads. */
#include "emit/emit.h"
#include "kernel/digest.h"
#include "oinf/oinf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK (4u << 20)  /* bytes of a large entry at a time */
#define BATCH (32u << 20) /* bytes that are made at a time; another batch is written meanwhile */
#define MOST  1024        /* pieces of a batch */
#define ALIGN 64u         /* of a piece in its batch: packers store numbers */

typedef struct sink {
    const oi_plan *u;
    oi_status (*put)(void *ctx, const void *data, size_t n);
    void *ctx;
    oi_weights_progress progress;
} sink;

/* -- pieces -- */

/* An operand of an entry: borrowed from the model, or made here. */
typedef struct part {
    const oi_tensor *t;
    const char *name;
    const void *data;
    void *own;
} part;

/* What an entry is made of. */
typedef struct operands {
    part parts[OI_PACK_INPUTS];
    const void *in[OI_PACK_INPUTS];
    uint32_t n;
} operands;

/* Bytes from ... to - 1 of an entry of a tensor, or zeros (t NULL). */
typedef struct piece {
    const oi_tensor *t;
    operands *of; /* of a packed entry, or one that the model has; else NULL */
    uint64_t from, to;
    const void *data; /* the bytes, where they lie somewhere already; else they are made at `at` */
    size_t at;
    bool is_last; /* of its operands */
} piece;

typedef struct batch {
    piece *pieces;
    size_t n, used, room;
    uint8_t *bytes;
} batch;

/* Bytes of `from` and beyond of elements that are all one value. */
static void fill(const oi_tensor *t, uint8_t *to, uint64_t size)
{
    unsigned bits = oi_dtype_bits(t->dtype);
    memset(to, 0, (size_t)size);
    for (uint64_t e = 0; t->init && e < size * 8 / bits; e++)
        if (bits >= 8)
            memcpy(to + e * bits / 8, &t->init, bits / 8);
        else
            to[e * bits / 8] |= (uint8_t)(t->init << e * bits % 8);
}

static oi_status take(const oi_plan *u, const oi_tensor *t, uint64_t entry, part *out)
{
    oi_view view;
    *out = (part){.t = t, .data = t->bytes};
    if (t->sources && t->sources[entry] != OI_NO_SOURCE) {
        const char *name = t->model->tensors[t->sources[entry]].name;
        OI_TRY(oi_model_tensor(t->model, name, &view, u->diag));
        out->name = name; /* borrowed: release it */
        out->data = view.data;
    } else if (!t->bytes) {
        out->data = out->own = malloc((size_t)t->size_bytes + 8);
        if (!out->own)
            return oi_diag_env(u->diag, t->name, "out of memory");
        fill(t, out->own, t->size_bytes);
    }
    return OI_OK;
}

static void give_back(operands *o)
{
    while (o && o->n > 0) {
        const part *p = &o->parts[--o->n];
        if (p->name)
            oi_model_release(p->t->model, p->name);
        free(p->own);
    }
    free(o);
}

static bool is_packed(const oi_tensor *t, uint64_t entry)
{
    return t->packing && t->sources[entry] != OI_NO_SOURCE;
}

static oi_status borrow(const oi_plan *u, const oi_tensor *t, uint64_t entry, operands **out)
{
    const uint32_t n = is_packed(t, entry) ? t->packing->n_in : 1;
    operands *o = *out = calloc(1, sizeof *o);
    if (!o)
        return oi_diag_env(u->diag, t->name, "out of memory");
    while (o->n < n) {
        OI_TRY(take(u, is_packed(t, entry) ? &u->tensors.at[t->packed[o->n]] : t, entry,
                    &o->parts[o->n]));
        o->in[o->n] = o->parts[o->n].data;
        o->n++;
    }
    return OI_OK;
}

/* -- all pieces of a file, in order -- */

typedef struct stream {
    const oi_plan *u;
    size_t tensor;
    uint64_t entry, from, at; /* of the entry; at: bytes of the file so far */
    operands *of;             /* of the entry, once begun */
    bool is_done;
} stream;

static bool is_stored(const oi_tensor *t)
{
    return t->space == OI_SPACE_WEIGHTS && !t->view && t->n_entries > 0;
}

static const oi_tensor *next_tensor(stream *s)
{
    while (s->tensor < s->u->tensors.n && !is_stored(&s->u->tensors.at[s->tensor]))
        s->tensor++;
    return s->tensor < s->u->tensors.n ? &s->u->tensors.at[s->tensor] : NULL;
}

static uint64_t zeros_before(const stream *s, const oi_tensor *t)
{
    return (t ? t->offset + s->entry * t->stride_bytes : s->u->weights_bytes) - s->at;
}

/* Where the piece from s->from on ends: a packing that cannot be made in parts is one piece. */
static uint64_t end_of(const stream *s, const oi_tensor *t)
{
    const oi_packing *p = is_packed(t, s->entry) ? t->packing : NULL;
    uint64_t most = CHUNK;
    if (p && !p->pack_some)
        return t->size_bytes;
    if (p)
        most = p->step_bytes < CHUNK ? CHUNK / p->step_bytes * p->step_bytes : p->step_bytes;
    return t->size_bytes - s->from > most ? s->from + most : t->size_bytes;
}

static void pass_entry(stream *s, const oi_tensor *t)
{
    s->from = 0;
    s->of = NULL;
    if (++s->entry == t->n_entries) {
        s->entry = 0;
        s->tensor++;
    }
}

static oi_status next_piece(stream *s, piece *p)
{
    const oi_tensor *t = next_tensor(s);
    const uint64_t zeros = s->from ? 0 : zeros_before(s, t);
    *p = (piece){.to = zeros < CHUNK ? zeros : CHUNK};
    if (zeros || !t) {
        s->at += p->to;
        s->is_done = !t && p->to == zeros;
        return OI_OK;
    }
    const bool has_source = t->sources && t->sources[s->entry] != OI_NO_SOURCE;
    if (!s->of && has_source)
        OI_TRY(borrow(s->u, t, s->entry, &s->of));
    *p = (piece){.t = t, .of = s->of, .from = s->from, .to = end_of(s, t)};
    if (!is_packed(t, s->entry) && (has_source || t->bytes))
        p->data = (const char *)(has_source ? s->of->in[0] : t->bytes) + p->from;
    s->at += p->to - p->from;
    s->from = p->to;
    p->is_last = p->to == t->size_bytes;
    if (p->is_last)
        pass_entry(s, t);
    return OI_OK;
}

/* -- batches: one is made by all threads while the first of them writes the other -- */

typedef struct making {
    sink *s;
    batch *made, *written;
    oi_status status; /* of what is written */
} making;

static oi_status next_batch(stream *s, batch *b)
{
    b->n = b->used = 0;
    while (!s->is_done && b->n < MOST && b->used < BATCH) {
        piece *p = &b->pieces[b->n];
        OI_TRY(next_piece(s, p));
        b->used = (b->used + ALIGN - 1) / ALIGN * ALIGN;
        p->at = b->used;
        b->used += p->data ? 0 : (size_t)(p->to - p->from);
        b->n++;
    }
    if (b->used > b->room) {
        free(b->bytes);
        b->room = b->used > BATCH + CHUNK ? b->used : BATCH + CHUNK;
        b->bytes = malloc(b->room);
    }
    return b->bytes || !b->used ? OI_OK : oi_diag_env(s->u->diag, "weights", "out of memory");
}

static void make_piece(const batch *b, const piece *p)
{
    if (p->data || p->to == p->from)
        return;
    uint8_t *to = b->bytes + p->at;
    if (!p->t)
        memset(to, 0, (size_t)(p->to - p->from));
    else if (!p->of)
        fill(p->t, to, p->to - p->from);
    else if (p->t->packing->pack_some)
        p->t->packing->pack_some(p->t->packing, p->of->in, p->from, p->to, to);
    else
        p->t->packing->pack(p->t->packing, p->of->in, to);
}

static void write_batch(making *m)
{
    const batch *b = m->written;
    for (size_t i = 0; i < b->n && m->status == OI_OK; i++) {
        const piece *p = &b->pieces[i];
        m->status = p->to == p->from ? OI_OK
                                     : m->s->put(m->s->ctx, p->data ? p->data : b->bytes + p->at,
                                                 (size_t)(p->to - p->from));
    }
}

static void task(void *ctx, size_t i)
{
    making *m = ctx;
    if (i == 0)
        write_batch(m);
    else
        make_piece(m->made, &m->made->pieces[i - 1]);
}

static void end_batch(batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->pieces[i].is_last)
            give_back(b->pieces[i].of);
    b->n = 0;
}

static oi_status put_stream(sink *s, stream *all, batch b[2], oi_threads *threads)
{
    oi_status status = OI_OK;
    uint64_t written = all->at;
    making m = {.s = s, .made = &b[0], .written = &b[1]};
    while (status == OI_OK && (!all->is_done || m.written->n > 0)) {
        const uint64_t before = all->at;
        status = next_batch(all, m.made);
        if (status != OI_OK)
            break;
        oi_threads_run(threads, m.made->n + 1, task, &m);
        status = m.status;
        end_batch(m.written);
        if (s->progress.tell)
            s->progress.tell(s->progress.ctx, written, s->u->weights_bytes);
        written = all->at > before ? all->at : written;
        batch *other = m.made;
        m.made = m.written;
        m.written = other;
    }
    end_batch(m.made);
    end_batch(m.written);
    return status;
}

#define SMALL (8u << 20) /* bytes that are not worth a team */

static oi_status put_from(sink *s, stream *all)
{
    batch b[2] = {{.pieces = calloc(MOST, sizeof *b->pieces)},
                  {.pieces = calloc(MOST, sizeof *b->pieces)}};
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    oi_threads *threads =
        s->u->weights_bytes > SMALL && n > 1 ? oi_threads_new(n < 16 ? (unsigned)n : 16) : NULL;
    oi_status status = OI_OK;
    if (!b[0].pieces || !b[1].pieces)
        status = oi_diag_env(s->u->diag, "weights", "out of memory");
    else
        status = put_stream(s, all, b, threads);
    give_back(all->of); /* of an entry that was not finished */
    oi_threads_free(threads);
    for (int i = 0; i < 2; i++) {
        free(b[i].pieces);
        free(b[i].bytes);
    }
    return status;
}

static oi_status put_all(sink *s)
{
    stream all = {.u = s->u, .at = OI_WEIGHTS_HEAD};
    return put_from(s, &all);
}

static oi_status add_part(void *ctx, const void *data, size_t n)
{
    oi_buf_add(ctx, data, n);
    return OI_OK;
}

oi_status oi_weights_entry(const oi_plan *u, const oi_tensor *t, uint64_t entry, oi_buf *out)
{
    stream one = {.u = u,
                  .tensor = (size_t)(t - u->tensors.at),
                  .entry = entry,
                  .at = t->offset + entry * t->stride_bytes};
    oi_status status = OI_OK;
    for (bool is_last = false; !is_last && status == OI_OK;) {
        piece p;
        status = next_piece(&one, &p);
        is_last = p.is_last;
        batch b = {.bytes = status == OI_OK ? malloc((size_t)(p.to - p.from) + 1) : NULL};
        if (status == OI_OK && !b.bytes)
            status = oi_diag_env(u->diag, t->name, "out of memory");
        if (status == OI_OK) {
            make_piece(&b, &p);
            status = add_part(out, p.data ? p.data : b.bytes, (size_t)(p.to - p.from));
        }
        free(b.bytes);
        if (is_last)
            give_back(p.of);
    }
    give_back(one.of);
    return status;
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

static uint64_t digest_end(digest *d)
{
    const size_t begun = (size_t)(d->size % OI_DIGEST_BLOCK);
    if (begun) {
        memset(d->rest + begun, 0, sizeof d->rest - begun);
        oi_digest_blocks(d->sums, d->rest, 1);
    }
    return oi_digest_end(d->sums, d->size);
}

oi_status oi_weights_hash(const oi_plan *u, uint64_t *out)
{
    digest d = {.sums = {0}};
    oi_digest_begin(d.sums);
    sink s = {.u = u, .put = digest_part, .ctx = &d};
    OI_TRY(put_all(&s));
    *out = digest_end(&d);
    return OI_OK;
}

/* -- as a file -- */

typedef struct file {
    int fd;
    digest digest;
} file;

static oi_status write_part(void *ctx, const void *data, size_t n)
{
    file *f = ctx;
    OI_TRY(digest_part(&f->digest, data, n));
    return oi_file_put(f->fd, data, n) ? OI_OK : OI_ERR_ENV;
}

static void put_head(const oi_plan *u, uint64_t hash, uint8_t *head)
{
    const uint64_t version = OI_WEIGHTS_VERSION;
    memset(head, 0, OI_WEIGHTS_HEAD);
    memcpy(head, "OIWEIGHT", 8);
    memcpy(head + 8, &hash, 8);
    memcpy(head + 16, &u->weights_bytes, 8);
    memcpy(head + 24, &version, 8);
}

/* The head has the hash of all that follows, so it is written last. */
oi_status oi_weights_write(const oi_plan *u, int fd, oi_weights_progress progress, uint64_t *hash)
{
    uint8_t head[OI_WEIGHTS_HEAD] = {0};
    file f = {.fd = fd};
    oi_digest_begin(f.digest.sums);
    sink s = {.u = u, .put = write_part, .ctx = &f, .progress = progress};
    if (!oi_file_put(fd, head, sizeof head))
        return OI_ERR_ENV;
    OI_TRY(put_all(&s));
    *hash = digest_end(&f.digest);
    put_head(u, *hash, head);
    return lseek(fd, 0, SEEK_SET) == 0 && oi_file_put(fd, head, sizeof head) ? OI_OK : OI_ERR_ENV;
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
    put_head(u, u->weights_hash, head);
    OI_TRY(write_beginning(u, fd));
    sink s = {.u = u, .put = text_part, .ctx = &t};
    OI_TRY(text_part(&t, head, sizeof head));
    OI_TRY(put_all(&s));
    OI_TRY(flush_text(&t));
    return oi_file_put(fd, "};\n", 3) ? OI_OK : OI_ERR_ENV;
}
