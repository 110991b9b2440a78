/* gemv.c: products of a few rows with a matrix, as in a step of a language model.
 *
 * Every element of the matrix is used once per row, so it is not packed but read once, where it
 * lies, in the order of memory: a matrix whose rows run along n is a sum of scaled rows, one that
 * runs along k (transpose_b) a row of dot products. Tasks are ranges of columns whose size does not
 * depend on the threads; a column is summed the same way in any of them. */
#include "kernel/kernel.h"

#define MAX_ROWS      4
#define FOUR          4    /* rows of the matrix at a time, as oi_dot_fns has it */
#define MIN_COLUMNS   64   /* per task: a cache line of any result, and rows worth streaming */
#define MAX_COLUMNS   2048 /* likewise: long runs of memory, sums in the first cache */
#define MIN_TASKS     4
#define TASK_PRODUCTS 32768 /* a task's worth: some microseconds */
#define MAX_SCRATCH   (16u << 20)
#define WORTH_THREADS 200000.0 /* products: below, waking the others takes longer than the work */

typedef struct gemv_job {
    const oi_choice *c;
    const oi_kernel_io *io;
    const oi_dot_fns *dots;
    oi_matrices mats;
    size_t size;     /* of an element in the kernel's form */
    int64_t columns; /* per task */
    int64_t across;  /* tasks per matrix */
    char *x;         /* (stack, m, k) in the kernel's form */
} gemv_job;

/* -- choosing -- */

static int dots_index(oi_dtype form)
{
    switch (form) {
    case OI_F32: return 0;
    case OI_F64: return 1;
    case OI_I32: return 2;
    case OI_I64: return 3;
    default: return -1;
    }
}

/* The rows of x of all stacked products, in the kernel's form. */
static uint64_t x_elements(const oi_matrices *m)
{
    return (uint64_t)oi_walk_count(&m->stack, m->stack.rank) * (uint64_t)m->m * (uint64_t)m->k;
}

static bool gemv_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                     oi_kernel_fault *fault);

bool oi_gemv_choose(const oi_kernel_query *q, oi_choice *c)
{
    oi_matrices m;
    int dots = dots_index(c->form);
    oi_matmul_matrices(q, c, &m);
    if (c->cpu == OI_CPU_SCALAR || dots < 0 || m.m > MAX_ROWS || (m.y_n != 1 && m.y_k != 1))
        return false;
    if (x_elements(&m) > MAX_SCRATCH / oi_form_size(c->form))
        return false;
    c->run = gemv_run;
    c->dots = &oi_dots[c->cpu][dots];
    c->scratch_bytes = x_elements(&m) * oi_form_size(c->form);
    return true;
}

/* -- columns -- */

static bool is_read_in_place(const gemv_job *j)
{
    const oi_load *l = &j->c->load[1];
    return l->is_direct && !l->cast && (uintptr_t)j->io->in[1] % l->form_size == 0;
}

/* A matrix whose rows run along n: they are scaled and added to all sums, k ascending. */
static void add_rows(const gemv_job *j, const char *x, int64_t y_at, size_t n, char *sums)
{
    uint64_t buffers[FOUR][2 * OI_CHUNK];
    const oi_matrices *m = &j->mats;
    for (int64_t k = 0; k < m->k; k += FOUR) {
        const void *rows[FOUR];
        int64_t here = m->k - k < FOUR ? m->k - k : FOUR;
        for (int64_t r = 0; r < here; r++)
            rows[r] = oi_load_row(&j->c->load[1], j->io->in[1], y_at + (k + r) * m->y_k, 1, n,
                                  buffers[r]);
        for (int64_t i = 0; i < m->m; i++) {
            const char *factors = x + (size_t)(i * m->k + k) * j->size;
            char *sum = sums + (size_t)i * MAX_COLUMNS * j->size;
            if (here == FOUR)
                j->dots->add_four(n, factors, rows, sum);
            else
                for (int64_t r = 0; r < here; r++)
                    j->dots->add_scaled(n, factors + (size_t)r * j->size, rows[r], sum);
        }
    }
}

/* A matrix whose rows run along k: a dot product per column and row of x, four columns at a time.
 * Where fewer are left the last is repeated: its sums are not used. */
static void dot_columns(const gemv_job *j, const char *x, int64_t y_at, size_t n, char *sums)
{
    uint64_t buffers[FOUR][2 * OI_CHUNK];
    const oi_matrices *m = &j->mats;
    const oi_load *l = &j->c->load[1];
    int64_t chunk = is_read_in_place(j) ? m->k : OI_CHUNK;
    for (size_t col = 0; col < n; col += FOUR)
        for (int64_t k = 0; k < m->k; k += chunk) {
            const void *rows[FOUR];
            size_t len = (size_t)(m->k - k < chunk ? m->k - k : chunk);
            for (size_t r = 0; r < FOUR; r++) {
                size_t from = col + r < n ? col + r : n - 1;
                rows[r] = oi_load_row(l, j->io->in[1], y_at + (int64_t)from * m->y_n + k, 1, len,
                                      buffers[r]);
            }
            for (int64_t i = 0; i < m->m; i++)
                j->dots->dot_four(len, x + (size_t)(i * m->k + k) * j->size, rows,
                                  sums + ((size_t)i * MAX_COLUMNS + col) * j->size);
        }
}

static void store_sums(const gemv_job *j, const char *sums, int64_t to, size_t n)
{
    int64_t step = j->mats.out_n;
    for (size_t i = 0; i < n; i += OI_CHUNK)
        oi_store_row(&j->c->store, j->io->out[0], to + (int64_t)i * step, step, sums + i * j->size,
                     n - i < OI_CHUNK ? n - i : OI_CHUNK);
}

static void columns_task(void *ctx, size_t task)
{
    const gemv_job *j = ctx;
    const oi_matrices *m = &j->mats;
    int64_t stack = (int64_t)task / j->across, first = (int64_t)task % j->across * j->columns;
    int64_t at[3] = {0, j->io->in_at ? j->io->in_at[1] : 0, j->io->out_at ? j->io->out_at[0] : 0};
    size_t n = (size_t)(m->n - first < j->columns ? m->n - first : j->columns);
    uint64_t sums[MAX_ROWS * MAX_COLUMNS + FOUR];
    oi_walk_seek(&m->stack, m->stack.rank, stack, at);
    const char *x = j->x + (size_t)(stack * m->m * m->k) * j->size;
    for (int64_t i = 0; i < m->m; i++)
        memset((char *)sums + (size_t)i * MAX_COLUMNS * j->size, 0, (n + FOUR) * j->size);
    if (m->y_n == 1)
        add_rows(j, x, at[1] + first, n, (char *)sums);
    else
        dot_columns(j, x, at[1] + first * m->y_n, n, (char *)sums);
    for (int64_t i = 0; i < m->m; i++)
        store_sums(j, (char *)sums + (size_t)i * MAX_COLUMNS * j->size,
                   at[2] + i * m->out_m + first * m->out_n, n);
}

/* -- the whole -- */

static void load_x(const gemv_job *j)
{
    uint64_t buffer[2 * OI_CHUNK];
    const oi_matrices *m = &j->mats;
    char *to = j->x;
    int64_t stacked = oi_walk_count(&m->stack, m->stack.rank);
    for (int64_t row = 0; row < stacked * m->m; row++) {
        int64_t at[3] = {j->io->in_at ? j->io->in_at[0] : 0};
        oi_walk_seek(&m->stack, m->stack.rank, row / m->m, at);
        for (int64_t k = 0; k < m->k; k += OI_CHUNK) {
            size_t n = (size_t)(m->k - k < OI_CHUNK ? m->k - k : OI_CHUNK);
            memcpy(to,
                   oi_load_row(&j->c->load[0], j->io->in[0],
                               at[0] + row % m->m * m->x_m + k * m->x_k, m->x_k, n, buffer),
                   n * j->size);
            to += n * j->size;
        }
    }
}

/* A few tasks where that leaves each some work; long runs of memory where rows run along n. */
static int64_t columns_per_task(const gemv_job *j)
{
    const oi_matrices *m = &j->mats;
    int64_t least = TASK_PRODUCTS / (m->k > 0 ? m->k : 1), n = m->n / MIN_TASKS;
    int64_t most = m->y_n == 1 && is_read_in_place(j) ? MAX_COLUMNS : OI_CHUNK;
    n = n > least ? n : least;
    n = n < most ? n : most;
    return (n + MIN_COLUMNS - 1) / MIN_COLUMNS * MIN_COLUMNS;
}

static bool gemv_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                     oi_kernel_fault *fault)
{
    (void)fault;
    gemv_job j = {
        .c = c, .io = io, .dots = c->dots, .size = oi_form_size(c->form), .x = io->scratch};
    oi_matmul_matrices(q, c, &j.mats);
    int64_t stacked = oi_walk_count(&j.mats.stack, j.mats.stack.rank);
    j.columns = columns_per_task(&j);
    j.across = (j.mats.n + j.columns - 1) / j.columns;
    load_x(&j);
    oi_kernel_io team = *io;
    double products = (double)x_elements(&j.mats) * (double)j.mats.n;
    if (products < WORTH_THREADS || oi_dtype_bits(q->out[0].dtype) < 8)
        team.parallel = NULL; /* threads must not share a byte */
    oi_parallel(&team, (size_t)(stacked * j.across), columns_task, &j);
    return true;
}
