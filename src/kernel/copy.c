/* copy.c: elements from one place to another, bit for bit, whatever their dtype.
 *
 * Rows that lie alike are one memcpy. Where the rows of one side are the columns of the other
 * (transpose), blocks of both are walked, so that every line of cache is used while it is there. */
#include "kernel/kernel.h"

#define BLOCK 32768 /* elements per task, roughly */
#define TILE  32    /* two tiles of 64-bit elements stay in the first cache */

oi_dtype oi_copy_dtype(oi_dtype t)
{
    switch (oi_dtype_bits(t)) {
    case 1: return OI_U1;
    case 2: return OI_U2;
    case 4: return OI_U4;
    case 8: return OI_U8;
    case 16: return OI_U16;
    case 32: return OI_U32;
    default: return OI_U64;
    }
}

/* -- rows -- */

#define STRIDED(T)                                                                        \
    for (size_t i = 0; i < n; i++) {                                                      \
        T v;                                                                              \
        memcpy(&v, (const char *)from + (from_at + (int64_t)i * from_step) * size, size); \
        memcpy((char *)to + (to_at + (int64_t)i * to_step) * size, &v, size);             \
    }

void oi_copy_row(oi_dtype raw, void *to, int64_t to_at, int64_t to_step, const void *from,
                 int64_t from_at, int64_t from_step, size_t n)
{
    const int64_t size = oi_dtype_bits(raw) / 8;
    if (size && to_step == 1 && from_step == 1) {
        memmove((char *)to + to_at * size, (const char *)from + from_at * size, n * (size_t)size);
        return;
    }
    switch (size) {
    case 1: STRIDED(uint8_t) return;
    case 2: STRIDED(uint16_t) return;
    case 4: STRIDED(uint32_t) return;
    case 8: STRIDED(uint64_t) return;
    default: break;
    }
    uint8_t buffer[OI_CHUNK];
    const oi_form_fns *f = oi_forms[OI_CPU_SCALAR];
    for (size_t i = 0; i < n; i += OI_CHUNK) {
        size_t m = n - i < OI_CHUNK ? n - i : OI_CHUNK;
        f->load[raw](buffer, from, from_at + (int64_t)i * from_step, from_step, m);
        f->store[raw](to, to_at + (int64_t)i * to_step, to_step, buffer, m);
    }
}

/* -- blocks -- */

typedef struct copy_job {
    oi_walk w; /* operands: to, from; of a transposition without the two axes below */
    oi_dtype raw;
    char *to;
    const char *from;
    int64_t to_at, from_at, n, block;
    /* a transposition: along `rows` from lies close, along `cols` to does */
    int64_t rows, cols, to_row, from_col, row_tiles;
} copy_job;

#define TRANSPOSE(T)                                                                         \
    for (int64_t c = 0; c < j->cols; c += TILE) {                                            \
        const int64_t end = c + TILE < j->cols ? c + TILE : j->cols;                         \
        for (int64_t r = first; r < last; r++)                                               \
            for (int64_t i = c; i < end; i++)                                                \
                memcpy(to + (r * j->to_row + i) * size, from + (r + i * j->from_col) * size, \
                       sizeof(T));                                                           \
    }

static void transpose_task(void *ctx, size_t task)
{
    const copy_job *j = ctx;
    const int64_t size = oi_dtype_bits(j->raw) / 8;
    int64_t at[2] = {j->to_at, j->from_at};
    oi_walk_seek(&j->w, j->w.rank, (int64_t)task / j->row_tiles, at);
    int64_t first = (int64_t)task % j->row_tiles * TILE;
    int64_t last = first + TILE < j->rows ? first + TILE : j->rows;
    char *to = j->to + at[0] * size;
    const char *from = j->from + at[1] * size;
    switch (size) {
    case 1: TRANSPOSE(uint8_t) break;
    case 2: TRANSPOSE(uint16_t) break;
    case 4: TRANSPOSE(uint32_t) break;
    default: TRANSPOSE(uint64_t) break;
    }
}

/* Takes out the two axes of a transposition; false when it is none. */
static bool set_transpose(copy_job *j)
{
    oi_walk *w = &j->w;
    uint32_t cols = w->rank - 1, rows = 0;
    while (rows < cols && w->steps[1][rows] != 1)
        rows++;
    if (oi_dtype_bits(j->raw) < 8 || rows == cols || w->steps[0][cols] != 1 ||
        w->steps[1][cols] == 1 || w->dims[rows] < 4 || w->dims[cols] < 4)
        return false;
    j->rows = w->dims[rows];
    j->cols = w->dims[cols];
    j->to_row = w->steps[0][rows];
    j->from_col = w->steps[1][cols];
    j->row_tiles = (j->rows + TILE - 1) / TILE;
    w->dims[rows] = w->dims[cols] = 1;
    return true;
}

static void rows_task(void *ctx, size_t task)
{
    const copy_job *j = ctx;
    int64_t from = (int64_t)task * j->block, to = from + j->block < j->n ? from + j->block : j->n;
    uint32_t last = j->w.rank - 1;
    int64_t inner = j->w.dims[last], to_step = j->w.steps[0][last], from_step = j->w.steps[1][last];
    while (from < to) {
        int64_t at[2] = {j->to_at, j->from_at}, start = from % inner;
        int64_t n = inner - start < to - from ? inner - start : to - from;
        oi_walk_seek(&j->w, last, from / inner, at);
        oi_copy_row(j->raw, j->to, at[0] + start * to_step, to_step, j->from,
                    at[1] + start * from_step, from_step, (size_t)n);
        from += n;
    }
}

void oi_copy_walk(const oi_walk *w, oi_dtype t, void *to, int64_t to_at, const void *from,
                  int64_t from_at, const oi_kernel_io *io)
{
    copy_job j = {.w = *w,
                  .raw = oi_copy_dtype(t),
                  .to = to,
                  .from = from,
                  .to_at = to_at,
                  .from_at = from_at,
                  .n = oi_walk_count(w, w->rank),
                  .block = BLOCK};
    if (j.n == 0)
        return;
    if (set_transpose(&j)) {
        size_t tasks = (size_t)(oi_walk_count(&j.w, j.w.rank) * j.row_tiles);
        oi_parallel(io, tasks, transpose_task, &j);
        return;
    }
    if (oi_dtype_bits(t) < 8) /* tasks must not share a byte */
        j.block = j.n;
    oi_parallel(io, (size_t)((j.n + j.block - 1) / j.block), rows_task, &j);
}

void oi_copy(const oi_operand *dst, void *to, int64_t to_at, const oi_operand *src,
             const void *from, int64_t from_at, const oi_kernel_io *io)
{
    oi_walk w;
    oi_walk_init(&w, dst, (const oi_operand *const[]){dst, src}, 2);
    oi_copy_walk(&w, dst->dtype, to, to_at, from, from_at, io);
}
