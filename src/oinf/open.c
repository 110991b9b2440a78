/* open.c: from bytes to a model. Each step relies only on what the steps before it have checked:
 *   header -> section offsets -> tables -> payloads disjoint -> payload contents -> gaps
 * Nothing is allocated from a count before the count is known to fit the file. */
#include "oinf/oinf.h"

#include <stdlib.h>

#define FAIL(m, d, at, ...) return oi_oinf_error(m, d, at, __VA_ARGS__)

static oi_status check_magic(const oi_model *m, const uint8_t *h, oi_diag *d)
{
    if (m->io.size < OI_OINF_HEADER)
        FAIL(m, d, m->io.size, "%llu bytes are too few for a package header of %u",
             (unsigned long long)m->io.size, OI_OINF_HEADER);
    if (memcmp(h, "OINF", 5) != 0)
        FAIL(m, d, 0, "not an OINF package: the magic is not \"OINF\\0\"");
    uint32_t version = oi_get_u32(h + 5);
    if (version == 1)
        FAIL(m, d, 5, "version 1 packages are not supported, write it again as version 2");
    if (version != 2)
        FAIL(m, d, 5, "version is %u, wanted 2", version);
    return OI_OK;
}

/* Fields that must be 0; outside strict mode they only make us suspicious. */
static oi_status check_reserved(const oi_model *m, const char *what, uint64_t at, uint32_t v,
                                oi_diag *d)
{
    if (v && m->options.strict)
        FAIL(m, d, at, "header: %s is 0x%x, wanted 0", what, v);
    if (v)
        oi_oinf_warn(m, d, at, "header: %s is 0x%x, wanted 0", what, v);
    return OI_OK;
}

static oi_status check_size(const oi_model *m, const uint8_t *h, oi_diag *d)
{
    uint64_t size = oi_get_u64(h + 61);
    if (m->io.size < size)
        FAIL(m, d, m->io.size, "truncated: the header says %llu bytes, the file has %llu",
             (unsigned long long)size, (unsigned long long)m->io.size);
    if (m->io.size > size)
        FAIL(m, d, size, "trailing data: the header says %llu bytes, the file has %llu",
             (unsigned long long)size, (unsigned long long)m->io.size);
    return OI_OK;
}

static oi_status read_sections(oi_model *m, const uint8_t *h, oi_diag *d)
{
    static const char *const names[] = {"sizevars", "metadata", "tensors", "data"};
    for (uint32_t i = 0; i < OI_OINF_TABLES; i++)
        m->n[i] = oi_get_u32(h + 13 + 4 * i);
    uint64_t least = OI_OINF_START;
    for (uint32_t i = 0; i <= OI_OINF_TABLES; i++) {
        uint64_t at = 29 + 8 * i, start = oi_get_u64(h + at);
        if (start % 8)
            FAIL(m, d, at, "header: %s start at %llu, not a multiple of 8", names[i],
                 (unsigned long long)start);
        if (start < least)
            FAIL(m, d, at, "header: %s start at %llu, wanted at least %llu", names[i],
                 (unsigned long long)start, (unsigned long long)least);
        if (start > m->io.size)
            FAIL(m, d, at, "header: %s start at %llu, behind the end of the file at %llu", names[i],
                 (unsigned long long)start, (unsigned long long)m->io.size);
        m->start[i] = least = start;
    }
    return OI_OK;
}

static oi_status read_header(oi_model *m, oi_diag *d)
{
    uint8_t h[OI_OINF_HEADER] = {0};
    OI_TRY(oi_oinf_read(m, 0, m->io.size < sizeof h ? m->io.size : sizeof h, h, d));
    OI_TRY(check_magic(m, h, d));
    OI_TRY(check_reserved(m, "flags", 9, oi_get_u32(h + 9), d));
    OI_TRY(check_reserved(m, "the reserved field", 25, oi_get_u32(h + 25), d));
    OI_TRY(check_size(m, h, d));
    OI_TRY(read_sections(m, h, d));
    return m->options.strict
               ? oi_oinf_check_zero(m, OI_OINF_HEADER, m->start[0] - OI_OINF_HEADER, d)
               : OI_OK;
}

static oi_status read_package(oi_model *m, oi_diag *d)
{
    OI_TRY(read_header(m, d));
    for (oi_oinf_table t = 0; t < OI_OINF_TABLES; t++)
        OI_TRY(oi_oinf_read_table(m, t, d));
    OI_TRY(oi_oinf_check_overlaps(m, d));
    OI_TRY(oi_oinf_read_payloads(m, d));
    oi_oinf_view_quant(m);
    if (!m->options.strict)
        return OI_OK;
    m->is_checked = oi_arena_alloc(m->arena, m->n_stored);
    return oi_oinf_check_gaps(m, d);
}

/* -- handles -- */

typedef struct open_args {
    oi_model *m;
    const char *path; /* NULL: the bytes are borrowed */
    oi_diag *d;
    oi_status status;
} open_args;

static void open_guarded(void *ctx)
{
    open_args *x = ctx;
    oi_model *m = x->m;
    const char *path = x->path ? x->path : "<memory>";
    m->path = oi_arena_text(m->arena, path, strlen(path));
    x->status = x->path ? oi_oinf_io_open(m, x->d) : OI_OK;
    if (x->status == OI_OK)
        x->status = read_package(m, x->d);
}

static oi_model_options with_defaults(const oi_model_options *given)
{
    oi_model_options o = given ? *given : (oi_model_options){0};
    if (!o.max_count)
        o.max_count = 1u << 20;
    if (!o.max_ndim || o.max_ndim > OI_OINF_NDIM_MAX)
        o.max_ndim = OI_OINF_NDIM_MAX;
    if (!o.max_metadata_bytes)
        o.max_metadata_bytes = 1u << 30;
    return o;
}

static oi_status open_model(const char *path, oi_oinf_io io, const oi_model_options *options,
                            oi_model **out, oi_diag *d)
{
    const char *shown = path ? path : "<memory>";
    oi_model *m = calloc(1, sizeof *m);
    if (!m || !(m->arena = oi_arena_new())) {
        free(m);
        return oi_oinf_env(shown, d, "out of memory");
    }
    m->io = io;
    m->options = with_defaults(options);
    pthread_mutex_init(&m->lock, NULL); /* a plain mutex: cannot fail on Linux */
    open_args x = {m, path, d, OI_OK};
    if (oi_arena_guard(m->arena, open_guarded, &x) != OI_OK)
        x.status = oi_oinf_env(shown, d, "out of memory");
    if (x.status == OI_OK)
        *out = m;
    else
        oi_model_close(m);
    return x.status;
}

oi_status oi_model_open_with(const char *path, const oi_model_options *options, oi_model **out,
                             oi_diag *diag)
{
    if (!path || !out)
        return OI_ERR_USAGE;
    *out = NULL;
    return open_model(path, (oi_oinf_io){.fd = -1}, options, out, diag);
}

oi_status oi_model_open(const char *path, oi_model **out, oi_diag *diag)
{
    return oi_model_open_with(path, NULL, out, diag);
}

oi_status oi_model_open_memory(const void *data, size_t n, const oi_model_options *options,
                               oi_model **out, oi_diag *diag)
{
    if ((!data && n) || !out)
        return OI_ERR_USAGE;
    *out = NULL;
    /* never NULL: a NULL base means that bytes are read from a file */
    const uint8_t *base = data ? data : (const uint8_t *)"";
    return open_model(NULL, (oi_oinf_io){.base = base, .size = n, .fd = -1}, options, out, diag);
}

static void free_all(void **list, size_t n)
{
    for (size_t i = 0; list && i < n; i++)
        free(list[i]);
    free(list);
}

void oi_model_close(oi_model *m)
{
    if (!m)
        return;
    free_all(m->loaded_tensors, m->n_stored);
    free_all(m->loaded_metadata, m->n[OI_OINF_METADATA]);
    oi_oinf_io_close(&m->io);
    pthread_mutex_destroy(&m->lock);
    oi_arena_free(m->arena);
    free(m);
}
