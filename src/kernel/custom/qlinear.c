/* qlinear.c: y = x . real(w)^T + b for weights in blocks of integers.
 *
 * Rows of x are made ready once (as floats, rounded or not, or in 8 bits); then every task takes
 * some rows of w, lays a tile of them out for the body (isa/qlinear.c), and multiplies it by all
 * rows of x. Every sum is made by one task, in one order, so the result does not depend on the
 * threads.
 */
#include "kernel/custom.h"
#include "body/scalar.h"

#define M_BLOCK   64    /* rows of x at a time: they and a tile of w stay in the second cache */
#define FEW       4     /* rows of x: a tile is worth its layout */
#define N_CHUNK   16    /* rows of w whose results are stored together: a multiple of any tile's */
#define MAX_TASKS 32    /* each has buffers in scratch */
#define MAX_GROUP 65536 /* elements of a block: their sums fit 32 bits */

typedef struct blocks {  /* scale or offset: (N, n_blocks) */
    const oi_operand *o; /* NULL: there is none */
    const oi_load *load;
    const void *data;
    int64_t at;
} blocks;

typedef struct qlinear {
    const oi_choice *c;
    const oi_kernel_io *io;
    const oi_qtile_fns *fns;
    size_t m, n, k;
    bool is_q8, is_half;
    oi_qtile tile; /* but for what is a task's own */
    const oi_operand *x, *w, *out;
    blocks scale, offset, bias;
    oi_walk rows; /* of x and of the result */
    /* shared scratch */
    float *floats;        /* (M_BLOCK, k) */
    int8_t *q;            /* (M_BLOCK, k) */
    float *d, *sums_of_q; /* (M_BLOCK, n_blocks) */
    char *task_scratch;
    size_t task_bytes, n_tasks;
    /* the present rows of x */
    size_t m0, n_rows;
} qlinear;

/* What a task works in; each has as many rows as a tile. */
typedef struct buffers {
    float *scale, *offset; /* (rows, n_blocks) */
    uint8_t *bytes;        /* (rows, k) */
    uint8_t *room;
} buffers;

static size_t aligned(size_t n)
{
    return (n + 63) / 64 * 64;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* -- the call -- */

/* Inputs after x and w: scale, offset, and a bias, told by its rank. load[0] is x's, then in that
 * order. */
static void set_operands(qlinear *j, const oi_kernel_query *q, const oi_choice *c)
{
    blocks *to[] = {&j->scale, &j->offset, &j->bias};
    size_t n = q->n_in;
    if (n > 2 && q->in[n - 1].rank == 1) {
        n--;
        j->bias = (blocks){.o = &q->in[n], .load = &c->load[3]};
    }
    for (size_t i = 2; i < n; i++)
        *to[i - 2] = (blocks){.o = &q->in[i], .load = &c->load[i - 1]};
}

/* Nibbles that begin with a byte are taken as they are, when their order does not matter. */
static bool takes_nibbles(const qlinear *j)
{
    return j->is_q8 && (j->w->dtype == OI_U4 || j->w->dtype == OI_I4) && j->w->strides[1] == 1 &&
           j->w->strides[0] % 2 == 0;
}

static void set_tile(qlinear *j, bool is_nibbles)
{
    oi_dtype t = j->w->dtype;
    j->tile.bits = is_nibbles ? 4 : 8;
    j->tile.zero = is_nibbles && t == OI_I4 ? -8 : t == OI_U8 ? 128 : 0;
}

static void set_job(qlinear *j, const oi_kernel_query *q, const oi_choice *c)
{
    const oi_operand *x = &q->in[0], *w = &q->in[1], *out = &q->out[0];
    *j = (qlinear){.c = c, .fns = oi_qtiles[c->cpu], .x = x, .w = w, .out = out};
    set_operands(j, q, c);
    j->is_q8 = strcmp(oi_kernel_attr(q, "act")->s, "q8") == 0;
    j->is_half = strcmp(oi_kernel_attr(q, "act")->s, "bf16") == 0;
    j->n = (size_t)w->dims[0];
    j->k = (size_t)w->dims[1];
    j->tile.n_blocks = j->scale.o ? (size_t)j->scale.o->dims[1] : 0;
    j->tile.group = j->tile.n_blocks ? j->k / j->tile.n_blocks : 0;
    j->tile.has_offset = j->offset.o != NULL;
    set_tile(j, takes_nibbles(j));
    oi_operand x_rows = *x, out_rows = *out;
    x_rows.rank--;
    out_rows.rank--;
    oi_walk_init(&j->rows, &out_rows, (const oi_operand *const[]){&x_rows, &out_rows}, 2);
    j->m = (size_t)oi_walk_count(&j->rows, j->rows.rank);
    j->n_tasks = least((j->n + N_CHUNK - 1) / N_CHUNK, MAX_TASKS);
}

/* Lays out scratch from `at`; returns how much it is. */
static size_t lay_out(qlinear *j, char *at)
{
    size_t rows = least(j->m, M_BLOCK), n_blocks = j->tile.n_blocks, n = 0;
    const size_t sizes[] = {rows * j->k * sizeof(float), j->is_q8 ? rows * j->k : 0,
                            j->is_q8 ? rows * n_blocks * sizeof(float) : 0,
                            j->is_q8 ? rows * n_blocks * sizeof(float) : 0};
    void *to[OI_COUNT(sizes)];
    for (size_t i = 0; i < OI_COUNT(sizes); n += aligned(sizes[i++]))
        to[i] = at ? at + n : NULL;
    j->floats = to[0];
    j->q = to[1];
    j->d = to[2];
    j->sums_of_q = to[3];
    j->task_scratch = at ? at + n : NULL;
    rows = j->fns->rows;
    j->task_bytes = 2 * aligned(rows * n_blocks * sizeof(float)) + aligned(rows * j->k) +
                    aligned(rows * (j->k + 2 * n_blocks * sizeof(float)));
    return n + j->n_tasks * j->task_bytes;
}

/* -- operands -- */

static void load_all(const oi_load *l, const void *data, int64_t at, int64_t step, size_t n,
                     float *out)
{
    uint64_t buffer[2 * OI_CHUNK];
    for (size_t i = 0; i < n; i += OI_CHUNK) {
        size_t some = least(n - i, OI_CHUNK);
        memcpy(out + i, oi_load_row(l, data, at + (int64_t)i * step, step, some, buffer),
               some * sizeof *out);
    }
}

static bool is_f16_row(const blocks *b)
{
    return b->o->dtype == OI_F16 && b->o->strides[1] == 1;
}

/* Row n of scales or offsets; a single row is that of every n. */
static void block_row(const qlinear *j, const blocks *b, size_t n, float *buffer)
{
    int64_t at = b->at + (b->o->dims[0] == 1 ? 0 : (int64_t)n * b->o->strides[0]);
    if (is_f16_row(b)) {
        const char *from = (const char *)b->data + at * 2;
        __builtin_prefetch(from + 2 * (int64_t)j->fns->rows * b->o->strides[0]);
        j->fns->halves(j->tile.n_blocks, from, buffer);
    } else {
        load_all(b->load, b->data, at, b->o->strides[1], j->tile.n_blocks, buffer);
    }
}

/* The same for offsets, which zero points are when multiplied by the scale. */
static void offset_row(const qlinear *j, size_t n, const float *scale, float *buffer)
{
    block_row(j, &j->offset, n, buffer);
    if (!oi_dtype_is_float(j->offset.o->dtype))
        for (size_t i = 0; i < j->tile.n_blocks; i++)
            buffer[i] *= -scale[i];
}

/* Row n of the weights, in the tile's bits. */
static const uint8_t *weight_row(const qlinear *j, size_t n, uint8_t *bytes)
{
    oi_dtype t = j->w->dtype;
    int64_t at = (j->io->in_at ? j->io->in_at[1] : 0) + (int64_t)n * j->w->strides[0];
    const uint8_t *data = j->io->in[1];
    bool is_row = j->w->strides[1] == 1;
    if (oi_dtype_bits(t) == 8 && is_row)
        return data + at;
    if (j->tile.bits == 4)
        return data + at / 2;
    if ((t == OI_U4 || t == OI_I4) && is_row && at % 2 == 0)
        j->fns->unpack(j->k, data + at / 2, t == OI_I4 ? 8 : 0, bytes);
    else
        oi_forms[j->c->cpu]->load[t](bytes, data, at, j->w->strides[1], j->k);
    return bytes;
}

static void seek_row(const qlinear *j, size_t m, int64_t at[2])
{
    at[0] = j->io->in_at ? j->io->in_at[0] : 0;
    at[1] = j->io->out_at ? j->io->out_at[0] : 0;
    if (m > 0)
        oi_walk_seek(&j->rows, j->rows.rank, (int64_t)m, at);
}

/* -- rows of x -- */

static void ready_task(void *ctx, size_t row)
{
    const qlinear *j = ctx;
    int64_t at[2];
    float *x = j->floats + row * j->k;
    seek_row(j, j->m0 + row, at);
    load_all(&j->c->load[0], j->io->in[0], at[0], j->x->strides[j->x->rank - 1], j->k, x);
    for (size_t i = 0; j->is_half && i < j->k; i++)
        x[i] = oi_f32_of_bf16(oi_near_bf16_f32(x[i]));
    if (j->is_q8)
        j->fns->quantise(&j->tile, x, j->q + row * j->k, j->d + row * j->tile.n_blocks,
                         j->sums_of_q + row * j->tile.n_blocks);
}

/* -- rows of w -- */

/* A tile from row n of the weights on; results[m][i] for the present rows of x. Beyond the last row
 * the last is repeated and its sums are dropped. */
static void run_tile(const qlinear *j, size_t n, const buffers *b, float (*results)[N_CHUNK],
                     size_t column)
{
    float sums[M_BLOCK * N_CHUNK];
    const uint8_t *w[N_CHUNK];
    const size_t rows = j->fns->rows, n_blocks = j->tile.n_blocks;
    for (size_t i = 0; i < rows; i++) {
        size_t row = least(n + i, j->n - 1);
        w[i] = weight_row(j, row, b->bytes + i * j->k);
        block_row(j, &j->scale, row, b->scale + i * n_blocks);
        if (j->tile.has_offset)
            offset_row(j, row, b->scale + i * n_blocks, b->offset + i * n_blocks);
    }
    oi_qtile t = j->tile;
    t.w = w;
    t.scale = b->scale;
    t.offset = b->offset;
    t.room = b->room;
    t.next = w[0] == b->bytes ? 0 : (size_t)j->w->strides[0] * rows * j->tile.bits / 8;
    const oi_qtile_x x = {j->n_rows, j->floats,    j->is_q8 ? j->q : NULL,
                          j->d,      j->sums_of_q, j->is_half};
    if (j->n_rows >= FEW || j->is_half || !j->fns->few(&t, &x, sums)) {
        j->fns->pack(&t);
        j->fns->sums(&t, &x, sums);
    }
    for (size_t m = 0; m < j->n_rows; m++)
        memcpy(&results[m][column], sums + m * rows, rows * sizeof sums[0]);
}

static void add_bias(const qlinear *j, size_t n, size_t count, float (*results)[N_CHUNK])
{
    float bias[N_CHUNK];
    if (!j->bias.o)
        return;
    load_all(j->bias.load, j->bias.data, j->bias.at + (int64_t)n * j->bias.o->strides[0],
             j->bias.o->strides[0], count, bias);
    for (size_t m = 0; m < j->n_rows; m++)
        for (size_t i = 0; i < count; i++)
            results[m][i] += bias[i];
}

static void run_chunk(const qlinear *j, size_t n, size_t count, const buffers *b)
{
    float results[M_BLOCK][N_CHUNK];
    for (size_t i = 0; i < count; i += j->fns->rows)
        run_tile(j, n + i, b, results, i);
    add_bias(j, n, count, results);
    int64_t step = j->out->strides[j->out->rank - 1];
    for (size_t m = 0; m < j->n_rows; m++) {
        int64_t at[2];
        seek_row(j, j->m0 + m, at);
        oi_store_row(&j->c->store, j->io->out[0], at[1] + (int64_t)n * step, step, results[m],
                     count);
    }
}

static void weights_task(void *ctx, size_t task)
{
    const qlinear *j = ctx;
    size_t chunks = (j->n + N_CHUNK - 1) / N_CHUNK;
    size_t first = chunks * task / j->n_tasks, end = chunks * (task + 1) / j->n_tasks;
    char *at = j->task_scratch + task * j->task_bytes;
    size_t of_blocks = aligned(j->fns->rows * j->tile.n_blocks * sizeof(float));
    buffers b = {.scale = (void *)at, .offset = (void *)(at + of_blocks)};
    b.bytes = (void *)(at + 2 * of_blocks);
    b.room = b.bytes + aligned(j->fns->rows * j->k);
    for (; first < end; first++)
        run_chunk(j, first * N_CHUNK, least(j->n - first * N_CHUNK, N_CHUNK), &b);
}

static void bind_blocks(blocks *b, const oi_kernel_query *q, const oi_kernel_io *io)
{
    if (!b->o)
        return;
    size_t i = (size_t)(b->o - q->in);
    b->data = io->in[i];
    b->at = io->in_at ? io->in_at[i] : 0;
}

static bool run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                oi_kernel_fault *fault)
{
    (void)fault;
    qlinear j;
    set_job(&j, q, c);
    /* a slice that begins inside a byte is brought into bytes */
    if (j.tile.bits == 4 && io->in_at && io->in_at[1] % 2)
        set_tile(&j, false);
    /* some rows after each other for a thread: what comes next is prefetched */
    j.n_tasks = least(j.n_tasks, 2 * (io->n_threads > 0 ? io->n_threads : 1));
    lay_out(&j, io->scratch);
    j.io = io;
    bind_blocks(&j.scale, q, io);
    bind_blocks(&j.offset, q, io);
    bind_blocks(&j.bias, q, io);
    for (; j.m0 < j.m; j.m0 += M_BLOCK) {
        j.n_rows = least(j.m - j.m0, M_BLOCK);
        oi_parallel(io, j.n_rows, ready_task, &j);
        oi_parallel(io, j.n_tasks, weights_task, &j);
    }
    return true;
}

static bool qlinear_choose(const oi_kernel_query *q, oi_choice *c)
{
    qlinear j;
    if (q->in[0].dtype == OI_F64 || !oi_qtiles[c->cpu]->rows)
        return false; /* its sums are f64 */
    c->form = OI_F32;
    c->run = run;
    if (!oi_choose_load(&c->load[0], q->in[0].dtype, OI_F32, c->cpu) ||
        !oi_choose_store(&c->store, OI_F32, q->out[0].dtype, c->cpu))
        return false;
    set_job(&j, q, c);
    if (strcmp(oi_kernel_attr(q, "act")->s, "f16") == 0)
        return false; /* as the row has it */
    const blocks *of[] = {&j.scale, &j.offset, &j.bias};
    for (size_t i = 0; i < OI_COUNT(of); i++)
        if (of[i]->o && !oi_choose_load(&c->load[i + 1], of[i]->o->dtype, OI_F32, c->cpu))
            return false;
    c->scratch_bytes = lay_out(&j, NULL);
    if (j.is_half && j.offset.o && !oi_dtype_is_float(j.offset.o->dtype))
        return false; /* taken off before the scale: a last bit of a weight would be 2^-9 of it */
    return j.tile.group > 0 && j.tile.group % 8 == 0 && j.tile.group <= MAX_GROUP;
}

const oi_custom oi_custom_qlinear = {.choose = qlinear_choose};
