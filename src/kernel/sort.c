/* sort.c: sort, argsort, topk.
 *
 * Every element becomes a key, an unsigned integer that orders as its value does: NaN is the
 * largest, -0 equals 0. Descending order is that of the complement, so that both are stable. A
 * line is merge sorted; the few largest of many come from a heap. */
#include "kernel/sort.h"

typedef struct sort_job {
    const oi_kernel_query *q;
    const oi_choice *c;
    const oi_kernel_io *io;
    oi_lines lines; /* x, then the outputs */
    int64_t at[3];
    int64_t k; /* how many are wanted */
    bool descends;
    int64_t values, indices; /* which operand of the lines, or 0 */
    size_t n_tasks, room;    /* entries of scratch per task */
} sort_job;

/* -- keys -- */

static uint64_t float_key(double v)
{
    uint64_t bits;
    if (v != v)
        return UINT64_MAX;
    v = v == 0 ? 0 : v;
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

uint64_t oi_entry_key(oi_dtype form, const void *p, size_t i)
{
    switch (form) {
    case OI_F32: return float_key((double)((const float *)p)[i]);
    case OI_F64: return float_key(((const double *)p)[i]);
    case OI_I16: return (uint64_t)((const int16_t *)p)[i] + ((uint64_t)1 << 63);
    case OI_I32: return (uint64_t)((const int32_t *)p)[i] + ((uint64_t)1 << 63);
    case OI_I64: return (uint64_t)((const int64_t *)p)[i] + ((uint64_t)1 << 63);
    case OI_U16: return ((const uint16_t *)p)[i];
    case OI_U32: return ((const uint32_t *)p)[i];
    case OI_U64: return ((const uint64_t *)p)[i];
    case OI_U8: return ((const uint8_t *)p)[i];
    default: return (uint64_t)((const int8_t *)p)[i] + ((uint64_t)1 << 63);
    }
}

/* -- order -- */

static bool before(const oi_entry *a, const oi_entry *b)
{
    return a->key < b->key || (a->key == b->key && a->at < b->at);
}

void oi_entries_sort(oi_entry *e, oi_entry *spare, int64_t n)
{
    oi_entry *from = e, *to = spare;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * width) {
            int64_t mid = lo + width < n ? lo + width : n,
                    hi = lo + 2 * width < n ? lo + 2 * width : n;
            int64_t a = lo, b = mid;
            for (int64_t i = lo; i < hi; i++)
                to[i] = a < mid && (b >= hi || before(&from[a], &from[b])) ? from[a++] : from[b++];
        }
        oi_entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != e)
        memcpy(e, from, (size_t)n * sizeof *e);
}

/* The last of the heap's order is at its top; e[0] sinks to its place. */
static void sink(oi_entry *e, int64_t n)
{
    oi_entry top = e[0];
    int64_t i = 0;
    for (int64_t child = 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && before(&e[child], &e[child + 1]))
            child++;
        if (!before(&top, &e[child]))
            break;
        e[i] = e[child];
        i = child;
    }
    e[i] = top;
}

static void rise(oi_entry *e, int64_t i)
{
    oi_entry own = e[i];
    while (i > 0 && before(&e[(i - 1) / 2], &own)) {
        e[i] = e[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    e[i] = own;
}

/* -- lines -- */

/* The first k of a line in order, in e. */
static void order_line(const sort_job *j, int64_t at, oi_entry *e)
{
    const oi_load *l = &j->c->load[0];
    int64_t n = j->lines.length[0], step = j->lines.step[0], kept = 0;
    bool all = j->k == n;
    uint64_t buffer[2 * OI_CHUNK];
    for (int64_t i = 0; i < n; i += OI_CHUNK) {
        size_t m = (size_t)(n - i < OI_CHUNK ? n - i : OI_CHUNK);
        const void *row = oi_load_row(l, j->io->in[0], at + i * step, step, m, buffer);
        for (size_t r = 0; r < m; r++) {
            uint64_t key = oi_entry_key(oi_form_source(j->c->form), row, r);
            oi_entry one = {j->descends ? ~key : key, i + (int64_t)r};
            if (all || kept < j->k) {
                e[kept++] = one;
                if (!all)
                    rise(e, kept - 1);
            } else if (kept > 0 && before(&one, &e[0])) {
                e[0] = one;
                sink(e, kept);
            }
        }
    }
    oi_entries_sort(e, e + j->k, j->k);
}

static void sort_task(void *ctx, size_t task)
{
    const sort_job *j = ctx;
    oi_entry *e = (oi_entry *)j->io->scratch + task * j->room;
    oi_dtype raw = oi_copy_dtype(j->q->in[0].dtype);
    for (int64_t line = (int64_t)task; line < j->lines.n; line += (int64_t)j->n_tasks) {
        int64_t at[OI_WALK_OPERANDS] = {j->at[0], j->at[1], j->at[2]};
        oi_walk_seek(&j->lines.w, j->lines.w.rank, line, at);
        order_line(j, at[0], e);
        for (int64_t i = 0; j->values && i < j->k; i++)
            oi_copy_row(raw, j->io->out[j->values - 1],
                        at[j->values] + i * j->lines.step[j->values], 1, j->io->in[0],
                        at[0] + e[i].at * j->lines.step[0], 1, 1);
        for (int64_t i = 0; j->indices && i < j->k; i++)
            memcpy((int64_t *)j->io->out[j->indices - 1] + at[j->indices] +
                       i * j->lines.step[j->indices],
                   &e[i].at, sizeof e[i].at);
    }
}

/* -- the ops -- */

static void set_job(sort_job *j, const oi_kernel_query *q)
{
    const oi_operand *operands[3] = {&q->in[0], &q->out[0], q->n_out > 1 ? &q->out[1] : NULL};
    int64_t axis = oi_kernel_attr(q, "axis")->i;
    const oi_op_value *k = oi_kernel_attr(q, "k"), *largest = oi_kernel_attr(q, "largest"),
                      *descending = oi_kernel_attr(q, "descending");
    *j = (sort_job){.q = q};
    oi_lines_init(&j->lines, operands, q->n_out > 1 ? 3 : 2,
                  (uint32_t)(axis < 0 ? axis + q->in[0].rank : axis));
    j->k = k ? k->i : j->lines.length[0];
    j->descends = largest ? largest->b : descending->b;
    j->values = q->op->id == OI_OP_ARGSORT ? 0 : 1;
    j->indices = q->op->id == OI_OP_ARGSORT ? 1 : q->n_out > 1 ? 2 : 0;
    j->n_tasks = oi_lines_tasks(j->lines.n);
    j->room = 2 * (size_t)j->k;
}

static bool sort_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                     oi_kernel_fault *fault)
{
    (void)fault;
    sort_job j;
    set_job(&j, q);
    j.c = c;
    oi_kernel_io own = *io;
    if (oi_dtype_bits(q->in[0].dtype) < 8) /* lines may meet in a byte */
        own.parallel = NULL;
    j.io = &own;
    j.at[0] = io->in_at ? io->in_at[0] : 0;
    for (size_t o = 0; o < q->n_out; o++)
        j.at[1 + o] = io->out_at ? io->out_at[o] : 0;
    oi_parallel(&own, j.n_tasks, sort_task, &j);
    return true;
}

bool oi_sort_choose(const oi_kernel_query *q, oi_choice *c)
{
    sort_job j;
    set_job(&j, q);
    c->run = sort_run;
    c->form = oi_form_of(q->in[0].dtype);
    if (j.room > SIZE_MAX / 2 / sizeof(oi_entry) / OI_LINE_TASKS)
        return false;
    c->scratch_bytes = j.n_tasks * j.room * sizeof(oi_entry);
    return oi_choose_load(&c->load[0], q->in[0].dtype, c->form, c->cpu);
}
