/* attention.c: scaled dot-product attention in all its layouts.
 *
 * Every layout is the same four axes (batch, head, time, feature) with other strides; a key head
 * that serves several query heads, a mask that is repeated, and keys that all batches share are
 * strides of 0 or a division. Computed in f32 (f64 for f64), rounded once. */
#include "kernel/kernel.h"

#include <math.h>

#define WORTH_THREADS 2e5 /* products: below, waking the others takes longer than the work */
#define MAX_TASKS     16 /* each with scratch of its own; the split does not depend on who runs it */
#define TILE          16 /* queries that read a key together */
#define KEYS          32 /* keys or values converted at a time */

typedef struct axes {
    int64_t b, h, t, d;
} axes;

typedef struct attention {
    const oi_choice *c;
    const oi_kernel_io *io;
    const oi_dot_fns *dots;
    size_t size; /* of an element in the form computed in */
    axes n;      /* sizes: batches, query heads, queries, features */
    int64_t n_kv_heads, n_keys, n_values;
    axes q, k, v, out, mask; /* strides */
    const void *q_data;
    int64_t q_at, k_at, v_at, out_at, mask_at;
    oi_load load_q;
    bool has_mask, mask_hides, is_causal;
    const int64_t *kv_len; /* one, one per batch, or NULL */
    size_t n_kv_len;
    char *scores; /* scratch, one layout per task */
    size_t n_tasks;
} attention;

/* -- one tile: queries that share their keys -- */

static int64_t visible_keys(const attention *a, int64_t b, int64_t t)
{
    int64_t len = a->n_keys;
    if (a->n_kv_len)
        len = a->kv_len[a->n_kv_len > 1 ? b : 0];
    if (!a->is_causal)
        return len;
    int64_t causal = t + len - a->n.t + 1;
    return causal < 0 ? 0 : causal < len ? causal : len;
}

/* n elements of a tensor in the form computed in, however long. */
static void load(const attention *a, const oi_load *l, const void *data, int64_t at, int64_t step,
                 int64_t n, char *to)
{
    uint64_t buffer[2 * OI_CHUNK];
    for (int64_t i = 0; i < n; i += OI_CHUNK) {
        size_t part = (size_t)(n - i < OI_CHUNK ? n - i : OI_CHUNK);
        memcpy(to + (size_t)i * a->size, oi_load_row(l, data, at + i * step, step, part, buffer),
               part * a->size);
    }
}

/* Where the parts of a task's scratch begin, in elements. */
typedef struct layout {
    size_t queries, rows, scores, sums, end;
} layout;

static layout layout_of(const attention *a)
{
    size_t d = (size_t)a->n.d, v = (size_t)a->n_values, longest = d > v ? d : v;
    layout l = {.queries = 0};
    l.rows = l.queries + TILE * d;
    l.scores = l.rows + KEYS * longest;
    l.sums = l.scores + TILE * (size_t)a->n_keys;
    l.end = l.sums + TILE * v;
    return l;
}

typedef struct tile {
    const attention *a;
    int64_t b, kv; /* which keys */
    int64_t n;     /* queries */
    struct {
        int64_t h, t, keys;
    } q[TILE];
    int64_t n_keys; /* that any of them sees */
    char *queries, *rows, *scores, *sums;
} tile;

static void scale_row(const attention *a, char *scores, int64_t n)
{
    for (int64_t j = 0; a->size == 4 && j < n; j++)
        ((float *)scores)[j] *= a->c->attrs[0].f32;
    for (int64_t j = 0; a->size == 8 && j < n; j++)
        ((double *)scores)[j] *= a->c->attrs[0].f64;
}

/* The mask of one query onto keys [from, from + n). */
static void mask_row(const attention *a, int64_t at, int64_t n, char *scores)
{
    uint64_t buffer[2 * OI_CHUNK];
    const void *m = oi_load_row(&a->c->load[2], a->io->in[3], at, a->mask.d, (size_t)n, buffer);
    for (int64_t j = 0; j < n; j++) {
        if (a->mask_hides && ((const uint8_t *)m)[j])
            continue;
        if (a->size == 4)
            ((float *)scores)[j] =
                a->mask_hides ? -INFINITY : ((float *)scores)[j] + ((const float *)m)[j];
        else
            ((double *)scores)[j] =
                a->mask_hides ? -INFINITY : ((double *)scores)[j] + ((const double *)m)[j];
    }
}

static const char *row_at(const tile *x, size_t length, int64_t j)
{
    return x->rows + (size_t)j * length * x->a->size;
}

/* Keys [from, from + n) against query i. */
static void score(const tile *x, int64_t i, int64_t from, int64_t n)
{
    const attention *a = x->a;
    size_t d = (size_t)a->n.d;
    const char *q = x->queries + (size_t)i * d * a->size;
    char *out = x->scores + ((size_t)i * (size_t)a->n_keys + (size_t)from) * a->size;
    memset(out, 0, (size_t)n * a->size);
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const void *four[] = {row_at(x, d, j), row_at(x, d, j + 1), row_at(x, d, j + 2),
                              row_at(x, d, j + 3)};
        a->dots->dot_four(d, q, four, out + (size_t)j * a->size);
    }
    for (; j < n; j++)
        a->dots->dot(d, q, row_at(x, d, j), out + (size_t)j * a->size);
    scale_row(a, out, n);
    if (a->has_mask)
        mask_row(a,
                 a->mask_at + x->b * a->mask.b + x->q[i].h * a->mask.h + x->q[i].t * a->mask.t +
                     from * a->mask.d,
                 n, out);
}

static void weigh(const tile *x, int64_t i, int64_t from, int64_t n)
{
    const attention *a = x->a;
    size_t v = (size_t)a->n_values;
    char *w = x->scores + ((size_t)i * (size_t)a->n_keys + (size_t)from) * a->size;
    char *sum = x->sums + (size_t)i * v * a->size;
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const void *four[] = {row_at(x, v, j), row_at(x, v, j + 1), row_at(x, v, j + 2),
                              row_at(x, v, j + 3)};
        a->dots->add_four(v, w + (size_t)j * a->size, four, sum);
    }
    for (; j < n; j++)
        a->dots->add_scaled(v, w + (size_t)j * a->size, row_at(x, v, j), sum);
}

/* Keys or values in blocks: each is converted once for all queries of the tile. */
static void pass(const tile *x, bool is_values)
{
    const attention *a = x->a;
    const axes *s = is_values ? &a->v : &a->k;
    int64_t at = (is_values ? a->v_at : a->k_at) + x->b * s->b + x->kv * s->h;
    int64_t length = is_values ? a->n_values : a->n.d;
    for (int64_t from = 0; from < x->n_keys; from += KEYS) {
        int64_t n = x->n_keys - from < KEYS ? x->n_keys - from : KEYS;
        for (int64_t j = 0; j < n; j++)
            load(a, &a->c->load[is_values ? 3 : 1], a->io->in[is_values ? 2 : 1],
                 at + (from + j) * s->t, s->d, length, x->rows + (size_t)(j * length) * a->size);
        for (int64_t i = 0; i < x->n; i++) {
            int64_t seen = x->q[i].keys - from < n ? x->q[i].keys - from : n;
            if (seen > 0 && is_values)
                weigh(x, i, from, seen);
            else if (seen > 0)
                score(x, i, from, seen);
        }
    }
}

static void run_tile(tile *x)
{
    const attention *a = x->a;
    size_t v = (size_t)a->n_values;
    x->n_keys = 0;
    for (int64_t i = 0; i < x->n; i++) {
        x->q[i].keys = visible_keys(a, x->b, x->q[i].t);
        x->n_keys = x->q[i].keys > x->n_keys ? x->q[i].keys : x->n_keys;
        load(a, &a->load_q, a->q_data,
             a->q_at + x->b * a->q.b + x->q[i].h * a->q.h + x->q[i].t * a->q.t, a->q.d, a->n.d,
             x->queries + (size_t)(i * a->n.d) * a->size);
    }
    pass(x, false);
    for (int64_t i = 0; i < x->n; i++)
        a->dots->softmax((size_t)x->q[i].keys, x->scores + (size_t)(i * a->n_keys) * a->size);
    memset(x->sums, 0, (size_t)x->n * v * a->size);
    pass(x, true);
    for (int64_t i = 0; i < x->n; i++) {
        int64_t at = a->out_at + x->b * a->out.b + x->q[i].h * a->out.h + x->q[i].t * a->out.t;
        for (int64_t d = 0; d < a->n_values; d += OI_CHUNK) {
            size_t n = (size_t)(a->n_values - d < OI_CHUNK ? a->n_values - d : OI_CHUNK);
            oi_store_row(&a->c->store, a->io->out[0], at + d * a->out.d, a->out.d,
                         x->sums + ((size_t)i * v + (size_t)d) * a->size, n);
        }
    }
}

/* Tiles are counted over batches, key heads, and the queries of each. */
static int64_t tiles_per_head(const attention *a)
{
    int64_t rows = a->n.h / a->n_kv_heads * a->n.t;
    return (rows + TILE - 1) / TILE;
}

static void attention_task(void *ctx, size_t task)
{
    const attention *a = ctx;
    int64_t per_head = tiles_per_head(a), all = a->n.b * a->n_kv_heads * per_head;
    int64_t n = (int64_t)a->n_tasks, group = a->n.h / a->n_kv_heads;
    layout l = layout_of(a);
    char *own = a->scores + task * l.end * a->size;
    tile x = {.a = a,
              .queries = own + l.queries * a->size,
              .rows = own + l.rows * a->size,
              .scores = own + l.scores * a->size,
              .sums = own + l.sums * a->size};
    for (int64_t i = all * (int64_t)task / n; i < all * ((int64_t)task + 1) / n; i++) {
        int64_t first = i % per_head * TILE, rows = group * a->n.t - first;
        x.kv = i / per_head % a->n_kv_heads;
        x.b = i / per_head / a->n_kv_heads;
        x.n = rows < TILE ? rows : TILE;
        for (int64_t k = 0; k < x.n; k++) {
            x.q[k].h = x.kv * group + (first + k) / a->n.t;
            x.q[k].t = (first + k) % a->n.t;
        }
        run_tile(&x);
    }
}

static bool run(attention *a, oi_kernel_fault *fault)
{
    int64_t rows = a->n.b * a->n.h * a->n.t;
    for (size_t i = 0; i < a->n_kv_len; i++)
        if (a->kv_len[i] < 0 || a->kv_len[i] > a->n_keys) {
            fault->code = "E047";
            snprintf(fault->message, sizeof fault->message,
                     "kv_len is %lld, but k holds %lld positions", (long long)a->kv_len[i],
                     (long long)a->n_keys);
            return false;
        }
    if (rows == 0)
        return true;
    int64_t tiles = a->n.b * a->n_kv_heads * tiles_per_head(a);
    a->n_tasks = (size_t)(tiles < MAX_TASKS ? tiles : MAX_TASKS);
    oi_kernel_io team = *a->io;
    if ((double)rows * (double)a->n_keys * (double)(a->n.d + a->n_values) < WORTH_THREADS)
        team.parallel = NULL;
    oi_parallel(&team, a->n_tasks, attention_task, a);
    return true;
}

/* -- sdpa: three layouts -- */

static int64_t given(const oi_kernel_query *q, const char *name, int64_t otherwise)
{
    const oi_op_attr *attr = oi_op_attr_find(q->op, name);
    const oi_op_value *v = &q->attrs[attr - q->op->attrs];
    return v->tag == OI_VALUE_INT ? v->i : otherwise;
}

/* Heads packed in the last axis: one head after the other. */
static axes packed_axes(const oi_operand *o, int64_t size, bool time_first)
{
    const int64_t *s = o->strides;
    if (o->rank == 2)
        return (axes){.b = s[0], .h = size * s[1], .t = 0, .d = s[1]};
    return (axes){.b = s[time_first], .h = size * s[2], .t = s[!time_first], .d = s[2]};
}

static void set_layout(attention *a, const oi_kernel_query *c)
{
    const oi_operand *q = &c->in[0], *k = &c->in[1], *v = &c->in[2], *out = &c->out[0];
    if (q->rank == 4) {
        a->n = (axes){q->dims[0], q->dims[1], q->dims[2], q->dims[3]};
        a->n_kv_heads = k->dims[1];
        a->n_keys = k->dims[2];
        a->n_values = v->dims[3];
        const oi_operand *of[] = {q, k, v, out};
        axes *to[] = {&a->q, &a->k, &a->v, &a->out};
        for (int i = 0; i < 4; i++)
            *to[i] =
                (axes){of[i]->strides[0], of[i]->strides[1], of[i]->strides[2], of[i]->strides[3]};
        return;
    }
    bool decode = q->rank == 2;
    int64_t heads = given(c, "heads", 1), size = q->dims[q->rank - 1] / heads;
    a->n = (axes){q->dims[0], heads, decode ? 1 : q->dims[1], size};
    a->n_kv_heads = given(c, "kv_heads", size ? k->dims[2] / size : heads);
    a->n_keys = k->dims[decode ? 0 : 1];
    a->n_values = a->n_kv_heads ? v->dims[2] / a->n_kv_heads : 0;
    a->q = packed_axes(q, size, false);
    a->k = packed_axes(k, size, decode);
    a->v = packed_axes(v, a->n_values, decode);
    a->out = packed_axes(out, a->n_values, false);
}

static void set_mask(attention *a, const oi_operand *mask)
{
    int64_t step[4] = {0};
    for (uint32_t i = 0; i < mask->rank; i++)
        step[4 - mask->rank + i] = mask->dims[i] == 1 ? 0 : mask->strides[i];
    a->mask = (axes){step[0], step[1], step[2], step[3]};
    a->has_mask = true;
    a->mask_hides = !oi_dtype_is_float(mask->dtype);
}

/* sdpa's own attributes are: scale, heads, kv_heads, causal, kv_len */
static void set_sdpa(attention *a, const oi_kernel_query *q, const oi_choice *c)
{
    *a = (attention){.c = c, .dots = c->dots, .size = oi_form_size(c->form), .load_q = c->load[0]};
    set_layout(a, q);
    if (q->n_in > 3)
        set_mask(a, &q->in[3]);
    a->is_causal = c->attrs[3].u8;
    const oi_op_value *len = &q->attrs[4];
    a->n_kv_len = len->tag == OI_VALUE_NONE ? 0 : len->tag == OI_VALUE_INT ? 1 : len->n;
    a->kv_len = len->tag == OI_VALUE_INT ? &len->i : len->ints;
}

static size_t scores_bytes(const attention *a)
{
    return MAX_TASKS * layout_of(a).end * a->size;
}

static bool sdpa_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                     oi_kernel_fault *fault)
{
    attention a;
    set_sdpa(&a, q, c);
    a.io = io;
    a.q_data = io->in[0];
    a.q_at = io->in_at ? io->in_at[0] : 0;
    a.k_at = io->in_at ? io->in_at[1] : 0;
    a.v_at = io->in_at ? io->in_at[2] : 0;
    a.mask_at = io->in_at && q->n_in > 3 ? io->in_at[3] : 0;
    a.out_at = io->out_at ? io->out_at[0] : 0;
    a.scores = io->scratch;
    return run(&a, fault);
}

static void default_scale(oi_choice *c, const oi_op_value *given_scale, int64_t size)
{
    if (given_scale->tag != OI_VALUE_NONE)
        return;
    if (c->form == OI_F32)
        c->attrs[0].f32 = 1.0f / sqrtf((float)size);
    else
        c->attrs[0].f64 = 1.0 / sqrt((double)size);
}

/* load[0] is q's, [1] k's, [2] the mask's, [3] v's. */
bool oi_sdpa_choose(const oi_kernel_query *q, oi_choice *c)
{
    attention a;
    c->form = q->in[0].dtype == OI_F64 ? OI_F64 : OI_F32;
    c->dots = &oi_dots[c->cpu][c->form == OI_F64];
    c->run = sdpa_run;
    oi_dtype mask = q->n_in > 3 ? q->in[3].dtype : OI_BOOL;
    bool ok = oi_choose_load(&c->load[0], q->in[0].dtype, c->form, c->cpu) &&
              oi_choose_load(&c->load[1], q->in[1].dtype, c->form, c->cpu) &&
              oi_choose_load(&c->load[3], q->in[2].dtype, c->form, c->cpu) &&
              oi_choose_load(&c->load[2], mask, oi_dtype_is_float(mask) ? c->form : mask, c->cpu) &&
              oi_choose_store(&c->store, c->form, q->out[0].dtype, c->cpu);
    set_sdpa(&a, q, c);
    default_scale(c, &q->attrs[0], a.n.d);
    c->scratch_bytes = scores_bytes(&a);
    return ok;
}

/* -- attn: q = h W, then keys and values that all batches share -- */

static bool project(const oi_kernel_query *q, oi_cpu cpu, oi_dtype form, oi_operand out[1],
                    oi_operand in[2], oi_op_value attrs[3], oi_kernel_query *matmul, oi_choice *c)
{
    const oi_operand *h = &q->in[0];
    in[0] = *h;
    in[1] = q->in[3];
    out[0] = (oi_operand){.dtype = form, .rank = 2, .dims = {h->dims[0], h->dims[1]}};
    out[0].strides[0] = h->dims[1];
    out[0].strides[1] = 1;
    attrs[0] = (oi_op_value){.tag = OI_VALUE_DTYPE, .dtype = form};
    attrs[1] = attrs[2] = (oi_op_value){.tag = OI_VALUE_BOOL};
    *matmul = (oi_kernel_query){
        .op = oi_op_at(OI_OP_MATMUL), .in = in, .n_in = 2, .out = out, .n_out = 1, .attrs = attrs};
    return oi_kernel_choose(matmul, cpu, c);
}

static size_t aligned(size_t n)
{
    return (n + 63) / 64 * 64;
}

static void set_attn(attention *a, const oi_kernel_query *q, const oi_choice *c)
{
    const oi_operand *h = &q->in[0], *k = &q->in[1], *v = &q->in[2], *out = &q->out[0];
    uint32_t head = k->rank - 2;
    *a = (attention){.c = c, .dots = c->dots, .size = oi_form_size(c->form)};
    a->n = (axes){h->dims[0], k->dims[head], 1, k->dims[head + 1]};
    a->n_kv_heads = a->n.h;
    a->n_values = a->n.d;
    a->n_keys = head ? k->dims[0] : 1;
    a->q = (axes){h->dims[1], a->n.d, 0, 1};
    a->k = (axes){0, k->strides[head], head ? k->strides[0] : 0, k->strides[head + 1]};
    a->v = (axes){0, v->strides[head], head ? v->strides[0] : 0, v->strides[head + 1]};
    a->out = (axes){out->strides[0], a->n.d * out->strides[1], 0, out->strides[1]};
    a->load_q = c->load[0];
}

static bool attn_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                     oi_kernel_fault *fault)
{
    attention a;
    oi_operand in[2], out[1];
    oi_op_value attrs[3];
    oi_kernel_query matmul;
    oi_choice product;
    set_attn(&a, q, c);
    if (!project(q, c->cpu, c->form, out, in, attrs, &matmul, &product))
        return false;
    char *scratch = io->scratch;
    void *queries = scratch + aligned(scores_bytes(&a));
    const void *operands[2] = {io->in[0], io->in[3]};
    int64_t at[2] = {io->in_at ? io->in_at[0] : 0, io->in_at ? io->in_at[3] : 0};
    oi_kernel_io first = *io;
    first.in = operands;
    first.in_at = at;
    first.out = &queries;
    first.out_at = NULL;
    first.scratch = (char *)queries + aligned((size_t)(a.n.b * a.n.h * a.n.d) * a.size);
    if (!oi_kernel_call(&matmul, &product, &first, fault))
        return false;
    a.io = io;
    a.q_data = queries;
    a.k_at = io->in_at ? io->in_at[1] : 0;
    a.v_at = io->in_at ? io->in_at[2] : 0;
    a.out_at = io->out_at ? io->out_at[0] : 0;
    a.scores = scratch;
    return run(&a, fault);
}

bool oi_attn_choose(const oi_kernel_query *q, oi_choice *c)
{
    attention a;
    oi_operand in[2], out[1];
    oi_op_value attrs[3];
    oi_kernel_query matmul;
    oi_choice product;
    c->form = q->in[0].dtype == OI_F64 ? OI_F64 : OI_F32;
    c->dots = &oi_dots[c->cpu][c->form == OI_F64];
    c->run = attn_run;
    bool ok = oi_choose_load(&c->load[0], c->form, c->form, c->cpu) &&
              oi_choose_load(&c->load[1], q->in[1].dtype, c->form, c->cpu) &&
              oi_choose_load(&c->load[3], q->in[2].dtype, c->form, c->cpu) &&
              oi_choose_store(&c->store, c->form, q->out[0].dtype, c->cpu) &&
              project(q, c->cpu, c->form, out, in, attrs, &matmul, &product);
    set_attn(&a, q, c);
    default_scale(c, &q->attrs[0], a.n.d);
    c->scratch_bytes = aligned(scores_bytes(&a)) +
                       aligned((size_t)(a.n.b * a.n.h * a.n.d) * a.size) + product.scratch_bytes;
    return ok;
}
