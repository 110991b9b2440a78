/* oinf.h: the model package inside the library. Offsets are bytes from the start of the file;
 * section numbers are those of the format's specification. */
#ifndef OI_OINF_H
#define OI_OINF_H

#include "base/base.h"

#include <pthread.h>

#define OI_OINF_HEADER     69u /* bytes; tables start at 72 or later */
#define OI_OINF_START      72u
#define OI_OINF_NAME_MAX   65535u
#define OI_OINF_QUANT_HEAD 48u /* fixed part of a quantisation payload */
#define OI_OINF_NDIM_MAX   64u /* also sizes buffers; options may only lower it */

enum { OI_OINF_HAS_DATA = 1, OI_OINF_HAS_QUANT = 2 };

typedef enum oi_oinf_table {
    OI_OINF_SIZEVARS,
    OI_OINF_METADATA,
    OI_OINF_TENSORS,
    OI_OINF_TABLES
} oi_oinf_table;

typedef struct oi_sizevar {
    const char *name;
    uint64_t value;
} oi_sizevar;

/* Where the bytes come from: `base` when they are in memory (mapped or borrowed), else `fd`. */
typedef struct oi_oinf_io {
    const uint8_t *base;
    uint64_t size;
    int fd;          /* -1 for borrowed memory */
    bool is_mapping; /* base is ours to unmap */
} oi_oinf_io;

struct oi_model {
    oi_arena *arena; /* the index: names, dims, entries, quantisation parameters */
    const char *path;
    oi_oinf_io io;
    oi_model_options options; /* defaults filled in */
    uint32_t n[OI_OINF_TABLES];
    uint64_t start[OI_OINF_TABLES + 1]; /* of the tables; the last is where data starts */
    oi_sizevar *sizevars;
    oi_meta_info *metadata;
    oi_tensor_info *tensors; /* of the table, then scales and zero points: see quant.c */
    size_t n_stored;         /* all of them */
    oi_map by_name[OI_OINF_TABLES];
    pthread_mutex_t lock;  /* guards what follows */
    void **loaded_tensors; /* pread: copies by index; NULL until the first load */
    void **loaded_metadata;
    uint8_t *is_checked; /* strict: tensors whose bytes were looked at and found good */
};

static inline uint64_t oi_align8(uint64_t x)
{
    return (x + 7) & ~(uint64_t)7;
}

/* Fields of the format are little-endian and often unaligned. */
static inline uint32_t oi_get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t oi_get_u64(const uint8_t *p)
{
    return (uint64_t)oi_get_u32(p) | (uint64_t)oi_get_u32(p + 4) << 32;
}

/* -- io.c -- */

/* "oinf: PATH: REASON (offset N)". The error returns OI_ERR_INPUT. */
oi_status oi_oinf_error(const oi_model *m, oi_diag *d, uint64_t offset, const char *fmt, ...)
    OI_PRINTF(4, 5);
void oi_oinf_warn(const oi_model *m, oi_diag *d, uint64_t offset, const char *fmt, ...)
    OI_PRINTF(4, 5);
/* "oinf: PATH: REASON", for the surroundings; returns OI_ERR_ENV. */
oi_status oi_oinf_env(const char *path, oi_diag *d, const char *fmt, ...) OI_PRINTF(3, 4);

oi_status oi_oinf_io_open(oi_model *m, oi_diag *d); /* by m->path and m->options.pread */
void oi_oinf_io_close(oi_oinf_io *io);
/* Pages of a mapped file leave this process's memory. */
void oi_oinf_io_forget(const oi_oinf_io *io, uint64_t offset, uint64_t n);
/* An error when the file is shorter than it was: a mapping must not be touched then. */
oi_status oi_oinf_io_same(const oi_model *m, oi_diag *d);
/* The range must lie within the file as it was at open. */
oi_status oi_oinf_read(const oi_model *m, uint64_t offset, uint64_t n, void *buf, oi_diag *d);
/* The same through the file, where there is one: no page of a mapping becomes resident. */
oi_status oi_oinf_read_file(const oi_model *m, uint64_t offset, uint64_t n, void *buf, oi_diag *d);
/* The range in pieces of at most OI_OINF_PIECE bytes, all but the last of exactly that. */
#define OI_OINF_PIECE 16384u /* fits the stack; a multiple of every element size */
typedef oi_status (*oi_oinf_piece_fn)(void *ctx, const uint8_t *p, size_t n, uint64_t offset);
oi_status oi_oinf_walk(const oi_model *m, uint64_t offset, uint64_t n, oi_oinf_piece_fn fn,
                       void *ctx, oi_diag *d);

/* -- check.c: rules shared by reader and writer -- */

bool oi_oinf_is_plain_name(const char *name, size_t n); /* [A-Za-z0-9._-]+ */
/* Number of elements; false when the product of the non-zero dims passes 2^63-1. */
bool oi_oinf_count(const uint64_t *dims, uint32_t rank, uint64_t *out);
/* NULL when `q` obeys section 5 for such a tensor, else what is wrong. Scales are not looked at. */
const char *oi_oinf_quant_problem(const oi_quant *q, uint32_t rank, const uint64_t *dims);
/* Index of the first element of p[0..n) that is no bool / no t2 value, or n_elements. */
uint64_t oi_oinf_bad_value(oi_dtype t, const uint8_t *p, uint64_t n_elements);

/* -- table.c, payload.c, blobs.c: steps of open -- */

oi_status oi_oinf_read_table(oi_model *m, oi_oinf_table t, oi_diag *d);
oi_status oi_oinf_read_payloads(oi_model *m, oi_diag *d);
oi_status oi_oinf_check_overlaps(const oi_model *m, oi_diag *d);
void oi_oinf_view_quant(oi_model *m); /* quant.c; after the payloads */
oi_status oi_oinf_check_gaps(const oi_model *m, oi_diag *d);
/* Strict: bool is 0 or 1, t2 is not 10. */
oi_status oi_oinf_check_values(const oi_model *m, const char *what, const char *name, oi_dtype t,
                               uint64_t n_elements, uint64_t offset, oi_diag *d);
oi_status oi_oinf_check_zero(const oi_model *m, uint64_t offset, uint64_t n, oi_diag *d);

/* -- access.c -- */

uint64_t oi_oinf_find(const oi_model *m, oi_oinf_table t, const char *name); /* UINT64_MAX: none */
oi_status oi_oinf_check_tensor(oi_model *m, size_t i, oi_diag *d); /* strict: its values, once */
oi_status oi_oinf_meta_view(oi_model *m, size_t i, oi_view *out, oi_diag *d);

/* -- stats.c -- */

#define OI_STATS_BINS 21u
typedef struct oi_stats_bin {
    double low, high;
    uint64_t bits; /* integers: the value, as i64 or u64, unless is_range */
    uint64_t n;
} oi_stats_bin;

typedef struct oi_stats {
    uint64_t n_finite, n_nan, n_inf;
    bool is_float, is_unsigned;
    bool is_range;               /* bins are [low, high) over doubles, else single values */
    uint64_t min_bits, max_bits; /* integers: as i64 or u64 */
    double min, max, mean, median, std;
    uint32_t n_bins; /* empty ones left out */
    oi_stats_bin bins[OI_STATS_BINS];
} oi_stats;

oi_status oi_oinf_stats(oi_model *m, size_t tensor, oi_stats *out, oi_diag *d);

/* A sum without rounding errors; exact until it is asked for. */
typedef struct oi_exact_sum {
    int64_t digit[70]; /* base 2^32, least significant 2^-1088 */
    uint32_t n_pending;
    double special; /* sum of what was not finite */
} oi_exact_sum;

void oi_exact_sum_add(oi_exact_sum *s, double v);
double oi_exact_sum_get(oi_exact_sum *s);

/* -- print.c, print_json.c -- */

typedef struct oi_named {
    const char *name;
    size_t index;
} oi_named;

oi_named *oi_oinf_sorted(const oi_model *m,
                         oi_oinf_table t); /* by name; free it; NULL: no memory */
void oi_oinf_format_float(char out[OI_NUMBER_TEXT], double v, int digits); /* in the C locale */
oi_status oi_oinf_print_json(oi_model *m, FILE *to, const oi_print_options *options, oi_diag *d);

/* -- writer.c, finish.c -- */

typedef struct oi_writer_meta {
    const char *name;
    oi_dtype type;
    const uint8_t *payload;
    uint64_t nbytes;
} oi_writer_meta;

typedef struct oi_writer_item_tensor {
    const char *name;
    oi_writer_tensor spec; /* its dims are ours, its name and quant are not used */
    uint64_t n_elements, data_nbytes;
    bool has_data;
    const uint8_t *quant; /* the payload, NULL when not quantised */
    uint64_t quant_nbytes;
} oi_writer_item_tensor;

struct oi_writer {
    oi_arena *arena;
    OI_VEC(oi_sizevar) sizevars;
    OI_VEC(oi_writer_meta) metadata;
    OI_VEC(oi_writer_item_tensor) tensors;
    oi_map by_name[OI_OINF_TABLES];
};

static inline void oi_put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static inline void oi_put_u64(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

/* "oinf: WHAT 'NAME': ..."; returns OI_ERR_INPUT. */
oi_status oi_oinf_refuse(oi_diag *d, const char *what, const char *name, const char *fmt, ...)
    OI_PRINTF(4, 5);
oi_status oi_oinf_add_scalar(oi_writer *w, const char *key, oi_dtype type, const void *data,
                             oi_diag *d);

#endif
