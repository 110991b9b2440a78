/* contract.c: matrix products of any element types, stacked and broadcast.
 *
 * The usual blocks: a piece of y (K_BLOCK x N_BLOCK) is packed into panels of the tile's width,
 * pieces of x into panels of its height, and the tile kernel runs over pairs of panels. Packing
 * also converts into the form the kernel computes in, so every pair of types takes this one path.
 * Each element of the result adds its products in ascending order of k, whatever the block or
 * thread: blocks of k follow each other, and a later one goes on where the earlier stopped. */
#include "kernel/kernel.h"

#define K_BLOCK       256
#define N_BLOCK       OI_CHUNK /* a row of accumulators is stored in one go */
#define M_BLOCK       1024     /* rows whose accumulators are kept in scratch while k advances */
#define M_TASK        84       /* rows per task: a multiple of the tile heights 4, 6 and 14 */
#define N_TASK        256      /* columns per task */
#define WORTH_THREADS 4e6      /* products: below, waking the others takes longer than the work */
#define MAX_TILE      (14 * 32)
#define MAX_ROWS      16
#define AT_ONCE       8 /* columns interleaved together */

typedef struct matmul_job {
    const oi_choice *c;
    const oi_kernel_io *io;
    const oi_tile_fns *tile;
    size_t size; /* of an element in the kernel's form */
    oi_matrices mats;
    int64_t x_at, y_at, out_at; /* of the present pair of matrices */
    bool writes_out;            /* tiles go straight into the result */
    char *packed_y, *sums;
    /* the present block */
    int64_t n0, n_cols, m0, n_rows, k0, k_len;
} matmul_job;

/* -- the operands -- */

/* Strides of the last two axes; a vector is a matrix with one row or column. */
static void matrix_strides(const oi_operand *o, bool transposed, bool is_left, int64_t *rows,
                           int64_t *cols, int64_t *row_step, int64_t *col_step)
{
    int64_t dims[2] = {1, 1}, steps[2] = {0, 0};
    if (o->rank == 1) {
        dims[is_left] = o->dims[0];
        steps[is_left] = o->strides[0];
    } else {
        for (uint32_t i = 0; i < 2; i++) {
            dims[i ^ transposed] = o->dims[o->rank - 2 + i];
            steps[i ^ transposed] = o->strides[o->rank - 2 + i];
        }
    }
    *rows = dims[0];
    *cols = dims[1];
    *row_step = steps[0];
    *col_step = steps[1];
}

/* The axes before the last two, as operands of a walk. */
static oi_operand leading(const oi_operand *o, uint32_t n_matrix_axes)
{
    oi_operand lead = *o;
    lead.rank = o->rank > n_matrix_axes ? o->rank - n_matrix_axes : 0;
    return lead;
}

/* Stacked rows against one matrix are one taller matrix. */
static void join_stack(oi_matrices *m)
{
    oi_walk *w = &m->stack;
    int64_t x_step = w->steps[0][0], out_step = w->steps[2][0];
    if (w->rank != 1 || w->steps[1][0] != 0 || w->dims[0] < 2)
        return;
    if (m->m == 1) {
        m->x_m = x_step;
        m->out_m = out_step;
    } else if (x_step != m->m * m->x_m || out_step != m->m * m->out_m) {
        return;
    }
    m->m *= w->dims[0];
    w->dims[0] = 1;
}

void oi_matmul_matrices(const oi_kernel_query *q, const oi_choice *c, oi_matrices *m)
{
    const oi_operand *x = &q->in[0], *y = &q->in[1], *out = &q->out[0];
    int64_t k;
    matrix_strides(x, c->attrs[1].u8, true, &m->m, &m->k, &m->x_m, &m->x_k);
    matrix_strides(y, c->attrs[2].u8, false, &k, &m->n, &m->y_k, &m->y_n);
    uint32_t last = out->rank;
    m->out_n = y->rank > 1 ? out->strides[--last] : 1;
    m->out_m = x->rank > 1 ? out->strides[--last] : 0;
    oi_operand x_lead = leading(x, 2), y_lead = leading(y, 2);
    oi_operand out_lead = leading(out, out->rank - last);
    oi_walk_init(&m->stack, &out_lead, (const oi_operand *const[]){&x_lead, &y_lead, &out_lead}, 3);
    join_stack(m);
}

static void set_job(matmul_job *j, const oi_kernel_query *q, const oi_choice *c,
                    const oi_kernel_io *io)
{
    *j = (matmul_job){.c = c, .io = io, .tile = c->tile, .size = oi_form_size(c->form)};
    oi_matmul_matrices(q, c, &j->mats);
    j->writes_out = c->store.is_direct && j->mats.out_n == 1 &&
                    (j->mats.out_m > 0 || j->mats.m == 1) && (uintptr_t)io->out[0] % j->size == 0;
    j->packed_y = io->scratch;
    j->sums = (char *)io->scratch + (size_t)K_BLOCK * N_BLOCK * j->size;
}

size_t oi_matmul_scratch(const oi_kernel_query *q, const oi_choice *c)
{
    oi_matrices m;
    oi_matmul_matrices(q, c, &m);
    size_t rows = (size_t)(m.m < M_BLOCK ? m.m : M_BLOCK);
    return (K_BLOCK + rows) * (size_t)N_BLOCK * oi_form_size(c->form);
}

/* -- packing -- */

#define INTERLEAVE(name, T)                                                                    \
    static void name(T *panel, const void *const *rows, size_t len, size_t width, size_t used) \
    {                                                                                          \
        for (size_t i = 0; i < len; i++)                                                       \
            for (size_t w = 0; w < used; w++)                                                  \
                panel[i * width + w] = ((const T *)rows[w])[i];                                \
    }
INTERLEAVE(interleave_8, uint8_t)
INTERLEAVE(interleave_32, uint32_t)
INTERLEAVE(interleave_64, uint64_t)

/* A matrix whose element (i along len, j along width) lies at at + i * len_step + j * width_step.
 */
typedef struct matrix {
    const oi_load *load;
    const void *data;
    int64_t at, len_step, width_step;
} matrix;

/* Its rows are rows of the panel. */
static void pack_rows(const matrix *m, size_t len, size_t width, size_t used, size_t size,
                      char *panel)
{
    uint64_t buffer[2 * OI_CHUNK];
    for (size_t i = 0; i < len; i++)
        memcpy(panel + i * width * size,
               oi_load_row(m->load, m->data, m->at + (int64_t)i * m->len_step, m->width_step, used,
                           buffer),
               used * size);
}

/* Its columns are: read each along its own direction, a few at a time. */
static void pack_columns(const matrix *m, size_t len, size_t width, size_t used, size_t size,
                         char *panel)
{
    uint64_t buffers[AT_ONCE][2 * OI_CHUNK];
    const void *rows[AT_ONCE];
    for (size_t w = 0; w < used; w += AT_ONCE) {
        size_t n = used - w < AT_ONCE ? used - w : AT_ONCE;
        for (size_t k = 0; k < n; k++)
            rows[k] = oi_load_row(m->load, m->data, m->at + (int64_t)(w + k) * m->width_step,
                                  m->len_step, len, buffers[k]);
        void *to = panel + w * size;
        if (size == 1)
            interleave_8(to, rows, len, width, n);
        else if (size == 4)
            interleave_32(to, rows, len, width, n);
        else
            interleave_64(to, rows, len, width, n);
    }
}

/* A panel (len, width); `used` of the width exist, the rest is zero. */
static void pack(const matrix *m, size_t len, size_t width, size_t used, size_t size, char *panel)
{
    if (used < width)
        memset(panel, 0, len * width * size);
    if (m->width_step == 1 || m->len_step != 1)
        pack_rows(m, len, width, used, size, panel);
    else
        pack_columns(m, len, width, used, size, panel);
}

static void pack_y_task(void *ctx, size_t task)
{
    const matmul_job *j = ctx;
    size_t width = j->tile->cols, first = task * width;
    size_t used = (size_t)j->n_cols - first < width ? (size_t)j->n_cols - first : width;
    matrix m = {&j->c->load[1], j->io->in[1],
                j->y_at + j->k0 * j->mats.y_k + (j->n0 + (int64_t)first) * j->mats.y_n, j->mats.y_k,
                j->mats.y_n};
    pack(&m, (size_t)j->k_len, width, used, j->size,
         j->packed_y + first * (size_t)j->k_len * j->size);
}

/* -- tiles -- */

/* Where element (row, col) of the present block is summed. */
static char *sum_at(const matmul_job *j, size_t row, size_t col, size_t *ld)
{
    if (j->writes_out) {
        *ld = (size_t)j->mats.out_m;
        int64_t at = j->out_at + (j->m0 + (int64_t)row) * j->mats.out_m + j->n0 + (int64_t)col;
        return (char *)j->io->out[0] + at * (int64_t)j->size;
    }
    *ld = N_BLOCK;
    return j->sums + (row * N_BLOCK + col) * j->size;
}

/* A tile of which only part exists is computed apart. */
static void edge_tile(const matmul_job *j, oi_tile_row *r, size_t rows, size_t cols)
{
    uint64_t apart[MAX_TILE];
    size_t width = j->tile->cols, size = j->size, ld = r->ldc;
    char *c = r->c;
    memset(apart, 0, j->tile->rows * width * size);
    for (size_t i = 0; i < rows && !r->is_first; i++)
        memcpy((char *)apart + i * width * size, c + i * ld * size, cols * size);
    r->c = apart;
    r->ldc = width;
    j->tile->tile(r);
    for (size_t i = 0; i < rows; i++)
        memcpy(c + i * ld * size, (char *)apart + i * width * size, cols * size);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* One panel of x against the columns [col, end) of the packed y. */
static void run_panel(const matmul_job *j, const char *panel, size_t row, size_t col, size_t end)
{
    size_t height = j->tile->rows, width = j->tile->cols;
    size_t rows = least((size_t)j->n_rows - row, height);
    for (; col < end; col += width) {
        size_t cols = least((size_t)j->n_cols - col, width);
        oi_tile_row r = {.k = (size_t)j->k_len,
                         .a = panel,
                         .b = j->packed_y + col * (size_t)j->k_len * j->size,
                         .is_first = j->k0 == 0};
        r.c = sum_at(j, row, col, &r.ldc);
        if (rows == height && cols == width)
            j->tile->tile(&r);
        else
            edge_tile(j, &r, rows, cols);
    }
}

static void tile_task(void *ctx, size_t task)
{
    const matmul_job *j = ctx;
    size_t height = j->tile->rows, across = ((size_t)j->n_cols + N_TASK - 1) / N_TASK;
    size_t row = task / across * M_TASK, col = task % across * N_TASK;
    size_t end = least(row + M_TASK, (size_t)j->n_rows);
    uint64_t panel[K_BLOCK * MAX_ROWS];
    for (; row < end; row += height) {
        size_t used = least((size_t)j->n_rows - row, height);
        matrix m = {&j->c->load[0], j->io->in[0],
                    j->x_at + (j->m0 + (int64_t)row) * j->mats.x_m + j->k0 * j->mats.x_k,
                    j->mats.x_k, j->mats.x_m};
        pack(&m, (size_t)j->k_len, height, used, j->size, (char *)panel);
        run_panel(j, (char *)panel, row, col, least(col + N_TASK, (size_t)j->n_cols));
    }
}

static void store_task(void *ctx, size_t row)
{
    const matmul_job *j = ctx;
    size_t ld;
    oi_store_row(&j->c->store, j->io->out[0],
                 j->out_at + (j->m0 + (int64_t)row) * j->mats.out_m + j->n0 * j->mats.out_n,
                 j->mats.out_n, sum_at(j, row, 0, &ld), (size_t)j->n_cols);
}

/* -- blocks -- */

static void run_block(matmul_job *j, const oi_kernel_io *storing)
{
    size_t panels = ((size_t)j->n_cols + j->tile->cols - 1) / j->tile->cols;
    size_t across = ((size_t)j->n_cols + N_TASK - 1) / N_TASK;
    size_t down = ((size_t)j->n_rows + M_TASK - 1) / M_TASK;
    j->k0 = 0;
    do { /* once even for k = 0: a sum of nothing */
        j->k_len = j->mats.k - j->k0 < K_BLOCK ? j->mats.k - j->k0 : K_BLOCK;
        oi_parallel(j->io, panels, pack_y_task, j);
        oi_parallel(j->io, across * down, tile_task, j);
        j->k0 += K_BLOCK;
    } while (j->k0 < j->mats.k);
    if (!j->writes_out)
        oi_parallel(storing, (size_t)j->n_rows, store_task, j);
}

static void run_matrix(matmul_job *j, const oi_kernel_io *storing)
{
    for (j->n0 = 0; j->n0 < j->mats.n; j->n0 += N_BLOCK) {
        j->n_cols = j->mats.n - j->n0 < N_BLOCK ? j->mats.n - j->n0 : N_BLOCK;
        for (j->m0 = 0; j->m0 < j->mats.m; j->m0 += M_BLOCK) {
            j->n_rows = j->mats.m - j->m0 < M_BLOCK ? j->mats.m - j->m0 : M_BLOCK;
            run_block(j, storing);
        }
    }
}

bool oi_matmul_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                   oi_kernel_fault *fault)
{
    (void)fault;
    matmul_job j;
    set_job(&j, q, c, io);
    oi_kernel_io team = *io, storing;
    if ((double)j.mats.m * (double)j.mats.n * (double)j.mats.k < WORTH_THREADS)
        team.parallel = NULL;
    j.io = &team;
    storing = team;
    if (oi_dtype_bits(q->out[0].dtype) < 8) /* threads must not share a byte */
        storing.parallel = NULL;
    const oi_walk *w = &j.mats.stack;
    int64_t n = oi_walk_count(w, w->rank);
    for (int64_t i = 0; i < n; i++) {
        int64_t at[3] = {0};
        if (i > 0)
            oi_walk_seek(w, w->rank, i, at);
        j.x_at = at[0] + (io->in_at ? io->in_at[0] : 0);
        j.y_at = at[1] + (io->in_at ? io->in_at[1] : 0);
        j.out_at = at[2] + (io->out_at ? io->out_at[0] : 0);
        run_matrix(&j, &storing);
    }
    return true;
}
