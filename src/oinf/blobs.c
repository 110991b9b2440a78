/* blobs.c: no two payloads share bytes, and (strict) nothing hides between them. The first is
 * looked at before any payload is read: what is disjoint cannot make us read more than the file
 * holds. */
#include "oinf/oinf.h"

#include <stdlib.h>

typedef enum blob_kind { BLOB_METADATA, BLOB_DATA, BLOB_QUANT } blob_kind;

typedef struct blob {
    uint64_t start, end;
    uint32_t index;
    blob_kind kind;
} blob;

static int by_place(const void *a, const void *b)
{
    const blob *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Empty payloads take no place, wherever they point. */
static void add(blob *blobs, size_t *n, blob_kind kind, uint32_t index, uint64_t start,
                uint64_t size)
{
    if (size)
        blobs[(*n)++] = (blob){start, start + size, index, kind};
}

static size_t collect(const oi_model *m, blob *blobs)
{
    size_t n = 0;
    for (uint32_t i = 0; i < m->n[OI_OINF_METADATA]; i++)
        add(blobs, &n, BLOB_METADATA, i, m->metadata[i].offset, m->metadata[i].nbytes);
    for (uint32_t i = 0; i < m->n[OI_OINF_TENSORS]; i++) {
        const oi_tensor_info *t = &m->tensors[i];
        add(blobs, &n, BLOB_DATA, i, t->data_offset, t->data_nbytes);
        add(blobs, &n, BLOB_QUANT, i, t->quant_offset, t->quant_nbytes);
    }
    return n;
}

static oi_status overlap(const oi_model *m, const blob *a, const blob *b, oi_diag *d)
{
    static const char *const kinds[] = {"metadata", "data of tensor", "quant of tensor"};
    const char *names[2];
    const blob *both[2] = {a, b};
    for (int i = 0; i < 2; i++)
        names[i] = both[i]->kind == BLOB_METADATA ? m->metadata[both[i]->index].name
                                                  : m->tensors[both[i]->index].name;
    return oi_oinf_error(m, d, b->start, "%s '%s' overlaps %s '%s'", kinds[b->kind], names[1],
                         kinds[a->kind], names[0]);
}

/* Weight sharing is the same bytes exactly, data with data. */
static bool may_share(const oi_model *m, const blob *a, const blob *b)
{
    return m->options.allow_shared && a->kind == BLOB_DATA && b->kind == BLOB_DATA &&
           a->start == b->start && a->end == b->end;
}

static oi_status check_overlaps(const oi_model *m, const blob *blobs, size_t n, oi_diag *d)
{
    for (size_t i = 1; i < n; i++)
        if (blobs[i].start < blobs[i - 1].end && !may_share(m, &blobs[i - 1], &blobs[i]))
            return overlap(m, &blobs[i - 1], &blobs[i], d);
    return OI_OK;
}

/* After check_overlaps: a payload that starts before the end of another one is the same one. */
static oi_status check_gaps(const oi_model *m, const blob *blobs, size_t n, oi_diag *d)
{
    uint64_t end = m->start[OI_OINF_TABLES];
    for (size_t i = 0; i < n; i++) {
        if (blobs[i].start > end)
            OI_TRY(oi_oinf_check_zero(m, end, blobs[i].start - end, d));
        end = blobs[i].end;
    }
    return oi_oinf_check_zero(m, end, m->io.size - end, d);
}

static oi_status check_sorted(const oi_model *m, oi_diag *d,
                              oi_status (*check)(const oi_model *, const blob *, size_t, oi_diag *))
{
    size_t most = m->n[OI_OINF_METADATA] + 2 * (size_t)m->n[OI_OINF_TENSORS];
    blob *blobs = malloc((most ? most : 1) * sizeof *blobs);
    if (!blobs)
        return oi_oinf_env(m->path, d, "out of memory");
    size_t n = collect(m, blobs), i = 1;
    while (i < n && by_place(&blobs[i - 1], &blobs[i]) <= 0)
        i++;
    if (i < n) /* files of ours come sorted */
        qsort(blobs, n, sizeof *blobs, by_place);
    oi_status status = check(m, blobs, n, d);
    free(blobs);
    return status;
}

oi_status oi_oinf_check_overlaps(const oi_model *m, oi_diag *d)
{
    return check_sorted(m, d, check_overlaps);
}

oi_status oi_oinf_check_gaps(const oi_model *m, oi_diag *d)
{
    return check_sorted(m, d, check_gaps);
}
