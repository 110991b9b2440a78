/* conv.c: convolution of floats for processors above the plain one; what it means is its nest
 * (nest_window.c), which all other calls run.
 *
 * Filters are packed once into panels of a matrix product's tile. A task takes some places of the
 * result, packs the windows there as columns, part of the products' length at a time, and runs the
 * tiles of all filters over them: no column is ever kept. Where every filter sees one channel or
 * two (depthwise), rows of the input are scaled and added instead. What a task takes hangs on the
 * shape alone. */
#include "kernel/kernel.h"

#define K_BLOCK  256
#define PANELS   4 /* tiles side by side in a task */
#define MAX_COLS 32
#define MAX_TILE (14 * 32)
#define DIRECT   2 /* up to so many products per place of a window it is done row by row */

/* Three spatial axes; those that are not there have length 1. */
typedef struct space {
    int64_t in[3], out[3], kernel[3];
    oi_window window[3];
} space;

typedef struct conv_job {
    const oi_tile_fns *tile;
    const oi_dot_fns *dots;
    const float *x, *w, *b;
    float *y, *panels;
    space s;
    int64_t batch, groups, channels, filters; /* the last two of one group */
    int64_t k, n_in, n_out;                   /* products; elements of a channel */
    int64_t row_panels, blocks;               /* of one group; of one channel's places */
} conv_job;

static int64_t item(const oi_kernel_query *q, const char *name, size_t i, int64_t otherwise)
{
    const oi_op_value *v = oi_kernel_attr(q, name);
    if (!v || v->tag == OI_VALUE_NONE)
        return otherwise;
    return v->tag == OI_VALUE_INT ? v->i : i < v->n ? v->ints[i] : otherwise;
}

/* -- packing -- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Panel (k, rows) of the filters; those that do not exist are 0. */
static void filters_task(void *ctx, size_t task)
{
    const conv_job *j = ctx;
    size_t rows = j->tile->rows, k = (size_t)j->k;
    size_t group = task / (size_t)j->row_panels, first = task % (size_t)j->row_panels * rows;
    size_t used = least((size_t)j->filters - first, rows);
    float *panel = j->panels + task * rows * k;
    const float *w = j->w + (group * (size_t)j->filters + first) * k;
    for (size_t i = 0; i < k; i++)
        for (size_t r = 0; r < rows; r++)
            panel[i * rows + r] = r < used ? w[r * k + i] : 0;
}

/* What element `at` of the window along the last axis reads for places [from, from + n) of a row.
 */
static void pack_row(const oi_window *v, const float *row, int64_t at, int64_t from, size_t n,
                     float *out)
{
    int64_t first = from * v->stride + at * v->dilation - v->before;
    for (size_t i = 0; i < n; i++) {
        int64_t ix = first + (int64_t)i * v->stride;
        if (ix >= 0 && ix < v->in && v->stride == 1) {
            size_t run = least(n - i, (size_t)(v->in - ix));
            memcpy(out + i, row + ix, run * sizeof *out);
            i += run - 1;
        } else {
            out[i] = ix >= 0 && ix < v->in ? row[ix] : 0;
        }
    }
}

/* Row k of the columns [from, from + n) of one channel's windows. */
static void pack_columns(const conv_job *j, const float *x, int64_t k, int64_t from, size_t n,
                         float *out)
{
    const space *s = &j->s;
    int64_t at[3], c = k;
    for (int a = 3; a-- > 0; c /= s->kernel[a])
        at[a] = c % s->kernel[a];
    const float *plane = x + c * j->n_in;
    while (n > 0) {
        int64_t place[3], rest = from, in = 0;
        bool is_inside = true;
        for (int a = 3; a-- > 0; rest /= s->out[a])
            place[a] = rest % s->out[a];
        for (int a = 0; a < 2; a++) {
            const oi_window *v = &s->window[a];
            int64_t i = place[a] * v->stride + at[a] * v->dilation - v->before;
            is_inside &= i >= 0 && i < v->in;
            in = in * v->in + i;
        }
        size_t run = least(n, (size_t)(s->out[2] - place[2]));
        if (is_inside)
            pack_row(&s->window[2], plane + in * s->in[2], at[2], place[2], run, out);
        else
            memset(out, 0, run * sizeof *out);
        out += run;
        from += (int64_t)run;
        n -= run;
    }
}

/* -- tiles -- */

/* A tile of which only part exists is computed apart. */
static void run_tile(const conv_job *j, oi_tile_row *r, size_t rows, size_t cols)
{
    float apart[MAX_TILE], *c = r->c;
    size_t width = j->tile->cols, ld = r->ldc;
    if (rows == j->tile->rows && cols == width) {
        j->tile->tile(r);
        return;
    }
    memset(apart, 0, sizeof apart);
    for (size_t i = 0; i < rows; i++)
        memcpy(apart + i * width, c + i * ld, cols * sizeof *c);
    r->c = apart;
    r->ldc = width;
    j->tile->tile(r);
    for (size_t i = 0; i < rows; i++)
        memcpy(c + i * ld, apart + i * width, cols * sizeof *c);
}

/* All filters of a group over columns [from, from + n), products [k0, k0 + len). */
static void run_block(const conv_job *j, int64_t group, const float *columns, int64_t k0,
                      size_t len, float *y, size_t n)
{
    size_t rows = j->tile->rows, width = j->tile->cols;
    for (size_t p = 0; p < (size_t)j->row_panels; p++) {
        const float *panel =
            j->panels + ((size_t)(group * j->row_panels) + p) * rows * (size_t)j->k;
        for (size_t col = 0; col < n; col += width) {
            oi_tile_row r = {.k = len,
                             .a = panel + (size_t)k0 * rows,
                             .b = columns + col * K_BLOCK,
                             .c = y + p * rows * (size_t)j->n_out + col,
                             .ldc = (size_t)j->n_out};
            run_tile(j, &r, least((size_t)j->filters - p * rows, rows), least(n - col, width));
        }
    }
}

static void places_task(void *ctx, size_t task)
{
    const conv_job *j = ctx;
    float columns[PANELS * MAX_COLS * K_BLOCK], row[PANELS * MAX_COLS];
    size_t width = j->tile->cols, all = width * PANELS;
    int64_t block = (int64_t)task % j->blocks, plane = (int64_t)task / j->blocks;
    int64_t group = plane % j->groups, from = block * (int64_t)all;
    size_t n = least((size_t)(j->n_out - from), all);
    const float *x = j->x + plane * j->channels * j->n_in;
    float *y = j->y + plane * j->filters * j->n_out + from;
    for (int64_t m = 0; m < j->filters; m++)
        for (size_t i = 0; i < n; i++)
            y[m * j->n_out + (int64_t)i] = j->b ? j->b[group * j->filters + m] : 0;
    memset(row, 0, sizeof row);
    for (int64_t k0 = 0; k0 < j->k; k0 += K_BLOCK) {
        size_t len = least((size_t)(j->k - k0), K_BLOCK);
        for (size_t i = 0; i < len; i++) {
            pack_columns(j, x, k0 + (int64_t)i, from, n, row);
            for (size_t col = 0; col < n; col += width)
                memcpy(columns + col * K_BLOCK + i * width, row + col, width * sizeof *row);
        }
        run_block(j, group, columns, k0, len, y, n);
    }
}

/* -- few channels: row by row -- */

/* Adds w * x to the places of a row whose window element `at` lies inside. */
static void add_row(const conv_job *j, float w, const float *row, int64_t at, float *y)
{
    const oi_window *v = &j->s.window[2];
    int64_t first = at * v->dilation - v->before, from = 0, to = j->s.out[2];
    float buffer[OI_CHUNK];
    if (first < 0)
        from = (-first + v->stride - 1) / v->stride;
    if (first + (to - 1) * v->stride >= v->in)
        to = v->in > first ? (v->in - first - 1) / v->stride + 1 : 0;
    for (; from < to; from += OI_CHUNK) {
        size_t n = least((size_t)(to - from), OI_CHUNK);
        const float *x = row + first + from * v->stride;
        for (size_t i = 0; v->stride > 1 && i < n; i++)
            buffer[i] = x[(int64_t)i * v->stride];
        j->dots->add_scaled(n, &w, v->stride > 1 ? buffer : x, y + from);
    }
}

/* One row of places of one filter. */
static void filter_row(const conv_job *j, const float *x, const float *w, int64_t place, float *y)
{
    const space *s = &j->s;
    int64_t at[2] = {place / s->out[1], place % s->out[1]};
    for (int64_t c = 0; c < j->channels; c++)
        for (int64_t k = 0; k < s->kernel[0] * s->kernel[1]; k++) {
            int64_t e[2] = {k / s->kernel[1], k % s->kernel[1]}, in = 0;
            bool is_inside = true;
            for (int a = 0; a < 2; a++) {
                const oi_window *v = &s->window[a];
                int64_t i = at[a] * v->stride + e[a] * v->dilation - v->before;
                is_inside &= i >= 0 && i < v->in;
                in = in * v->in + i;
            }
            for (int64_t i = 0; is_inside && i < s->kernel[2]; i++)
                add_row(j, w[(c * s->kernel[0] * s->kernel[1] + k) * s->kernel[2] + i],
                        x + c * j->n_in + in * s->in[2], i, y);
        }
}

static void filter_task(void *ctx, size_t task)
{
    const conv_job *j = ctx;
    int64_t all = j->groups * j->filters, m = (int64_t)task % all, n = (int64_t)task / all;
    const float *x = j->x + (n * j->groups + m / j->filters) * j->channels * j->n_in;
    float *y = j->y + (n * all + m) * j->n_out;
    for (int64_t row = 0; row < j->s.out[0] * j->s.out[1]; row++, y += j->s.out[2]) {
        for (int64_t i = 0; i < j->s.out[2]; i++)
            y[i] = j->b ? j->b[m] : 0;
        filter_row(j, x, j->w + m * j->k, row, y);
    }
}

/* -- the call -- */

static void set_space(space *s, const oi_kernel_query *q)
{
    const oi_operand *x = &q->in[0], *w = &q->in[1], *out = &q->out[0];
    uint32_t n = x->rank - 2;
    oi_auto_pad pad = oi_auto_pad_find(oi_kernel_attr(q, "auto_pad")->s);
    for (uint32_t a = 0; a < 3; a++) {
        bool is_there = a + n >= 3;
        uint32_t d = a + n - 3;
        s->in[a] = is_there ? x->dims[2 + d] : 1;
        s->out[a] = is_there ? out->dims[2 + d] : 1;
        s->kernel[a] = is_there ? w->dims[2 + d] : 1;
        s->window[a] = (oi_window){.in = s->in[a], .kernel = s->kernel[a], .stride = 1};
        if (!is_there)
            continue;
        s->window[a] = (oi_window){.in = s->in[a],
                                   .kernel = s->kernel[a],
                                   .stride = item(q, "strides", d, 1),
                                   .dilation = item(q, "dilations", d, 1),
                                   .before = item(q, "pads", d, 0),
                                   .after = item(q, "pads", n + d, 0)};
        oi_window_slide(&s->window[a], pad, false);
    }
}

static void set_job(conv_job *j, const oi_kernel_query *q, const oi_choice *c)
{
    const oi_operand *x = &q->in[0], *out = &q->out[0];
    *j = (conv_job){.tile = c->tile, .dots = c->dots};
    set_space(&j->s, q);
    j->batch = x->dims[0];
    j->groups = oi_kernel_attr(q, "group")->i;
    j->channels = q->in[1].dims[1];
    j->filters = out->dims[1] / j->groups;
    j->n_in = j->s.in[0] * j->s.in[1] * j->s.in[2];
    j->n_out = j->s.out[0] * j->s.out[1] * j->s.out[2];
    j->k = j->channels * j->s.kernel[0] * j->s.kernel[1] * j->s.kernel[2];
    j->row_panels = (j->filters + (int64_t)c->tile->rows - 1) / (int64_t)c->tile->rows;
    int64_t columns = (int64_t)c->tile->cols * PANELS;
    j->blocks = (j->n_out + columns - 1) / columns;
}

static bool is_direct(const conv_job *j)
{
    return j->channels * j->filters <= DIRECT;
}

static bool run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                oi_kernel_fault *fault)
{
    (void)fault;
    conv_job j;
    set_job(&j, q, c);
    const int64_t *at = io->in_at;
    j.x = (const float *)io->in[0] + (at ? at[0] : 0);
    j.w = (const float *)io->in[1] + (at ? at[1] : 0);
    j.b = q->n_in > 2 ? (const float *)io->in[2] + (at ? at[2] : 0) : NULL;
    j.y = (float *)io->out[0] + (io->out_at ? io->out_at[0] : 0);
    j.panels = io->scratch;
    if (is_direct(&j)) {
        oi_parallel(io, (size_t)(j.batch * j.groups * j.filters), filter_task, &j);
        return true;
    }
    oi_parallel(io, (size_t)(j.groups * j.row_panels), filters_task, &j);
    oi_parallel(io, (size_t)(j.batch * j.groups * j.blocks), places_task, &j);
    return true;
}

static bool is_plain(const oi_operand *o)
{
    int64_t stride = 1;
    for (uint32_t a = o->rank; a-- > 0; stride *= o->dims[a])
        if (o->dims[a] > 1 && o->strides[a] != stride)
            return false;
    return o->dtype == OI_F32;
}

bool oi_conv_choose(const oi_kernel_query *q, oi_choice *c)
{
    oi_kernel_key k = {.op = OI_OP_MATMUL, .in = {OI_F32}, .out = OI_F32};
    const oi_tile_fns *tile = oi_table_tile(&k, c->cpu, NULL);
    if (c->cpu == OI_CPU_SCALAR || c->form != OI_F32 || q->in[0].rank > 5 || !tile ||
        tile->cols > MAX_COLS || tile->rows * tile->cols > MAX_TILE || !is_plain(&q->out[0]))
        return false;
    for (size_t i = 0; i < q->n_in; i++)
        if (!is_plain(&q->in[i]))
            return false;
    conv_job j;
    c->tile = tile;
    c->dots = &oi_dots[c->cpu][0];
    set_job(&j, q, c);
    c->run = run;
    c->scratch_bytes = is_direct(&j) ? 0
                                     : (size_t)(j.groups * j.row_panels) * tile->rows *
                                           (size_t)j.k * sizeof(float);
    return true;
}
