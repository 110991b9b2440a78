/* sort.c: sort, argsort, topk.
 *
 * Every element becomes a key, an unsigned integer that orders as its value does: NaN is the
 * largest, -0 equals 0. Descending order is that of the complement, so that both are stable. A
 * line is merge sorted; the few largest of many come from a heap. */
#include "kernel/custom/sort.h"

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

uint64_t oi_entry_key(oi_dtype form, const void *p, size_t i)
{
    switch (form) {
    case OI_F32: return oi_key_f64((double)((const float *)p)[i]);
    case OI_F64: return oi_key_f64(((const double *)p)[i]);
    case OI_I16: return oi_key_i64(((const int16_t *)p)[i]);
    case OI_I32: return oi_key_i64(((const int32_t *)p)[i]);
    case OI_I64: return oi_key_i64(((const int64_t *)p)[i]);
    case OI_U16: return ((const uint16_t *)p)[i];
    case OI_U32: return ((const uint32_t *)p)[i];
    case OI_U64: return ((const uint64_t *)p)[i];
    case OI_U8: return ((const uint8_t *)p)[i];
    default: return oi_key_i64(((const int8_t *)p)[i]);
    }
}

/* -- lines -- */

/* The first k of a line in order, in e. */
static void order_line(const sort_job *j, int64_t at, oi_entry *e)
{
    const oi_load *l = &j->c->load[0];
    int64_t n = j->lines.length[0], step = j->lines.step[0], kept = 0;
    uint64_t buffer[2 * OI_CHUNK];
    for (int64_t i = 0; i < n; i += OI_CHUNK) {
        size_t m = (size_t)(n - i < OI_CHUNK ? n - i : OI_CHUNK);
        const void *row = oi_load_row(l, j->io->in[0], at + i * step, step, m, buffer);
        for (size_t r = 0; r < m; r++) {
            uint64_t key = oi_entry_key(oi_form_source(j->c->form), row, r);
            oi_entry one = {j->descends ? ~key : key, i + (int64_t)r};
            kept = oi_entries_keep(e, kept, j->k, n, one);
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
    if (oi_dtype_bits(q->in[0].dtype) < 8) /* lines may share a byte */
        own.parallel = NULL;
    j.io = &own;
    j.at[0] = io->in_at ? io->in_at[0] : 0;
    for (size_t o = 0; o < q->n_out; o++)
        j.at[1 + o] = io->out_at ? io->out_at[o] : 0;
    oi_parallel(&own, j.n_tasks, sort_task, &j);
    return true;
}

static bool sort_choose(const oi_kernel_query *q, oi_choice *c)
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

/* -- emitted programs -- */

oi_dtype oi_key_dtype(oi_dtype t)
{
    return oi_dtype_is_float(t) ? OI_F64 : oi_dtype_name(t)[0] == 'u' ? OI_U64 : OI_I64;
}

int64_t oi_key_kind(oi_dtype t)
{
    return oi_key_dtype(t) == OI_F64 ? 0 : oi_key_dtype(t) == OI_I64 ? 1 : 2;
}

void oi_order_lower(oi_steps *s, uint32_t keys, uint32_t to, int64_t outer, int64_t n,
                    int64_t inner, int64_t k, bool descends)
{
    const uint32_t work = oi_steps_line(s, "work", OI_U64, 4 * k);
    oi_steps_call(s, &(oi_custom_step){
                         .function = "oi_order",
                         .in = {keys},
                         .out = {to, work},
                         .sizes = {outer, n, inner, k, descends, oi_key_kind(s->q->in[0].dtype)},
                         .n_in = 1,
                         .n_out = 2,
                         .n_sizes = 6});
}

static void sort_lower(oi_steps *s)
{
    const oi_operand *in = &s->q->in[0];
    const bool gives_places = s->q->op->id == OI_OP_ARGSORT, is_topk = s->q->op->id == OI_OP_TOPK;
    const uint32_t axis = oi_steps_axis(s);
    int64_t outer, inner;
    const int64_t n = in->dims[axis], k = is_topk ? oi_steps_int(s, "k", 0) : n;
    oi_steps_around(in->dims, in->rank, axis, &outer, &inner);
    const uint32_t places = gives_places ? oi_steps_output(s, 0)
                            : s->q->n_out > 1
                                ? oi_steps_output(s, 1)
                                : oi_steps_line(s, "places", OI_I64, outer * k * inner);
    oi_order_lower(s, oi_steps_as(s, 0, oi_key_dtype(in->dtype)), places, outer, n, inner, k,
                   oi_steps_is(s, is_topk ? "largest" : "descending"));
    if (gives_places)
        return;
    oi_steps_call(s, &(oi_custom_step){.function = "oi_take_along",
                                       .in = {0, places},
                                       .out = {oi_steps_output(s, 0)},
                                       .sizes = {outer, n, inner, k, oi_dtype_bits(in->dtype)},
                                       .n_in = 2,
                                       .n_out = 1,
                                       .n_sizes = 5});
}

const oi_custom oi_custom_sort = {.choose = sort_choose, .lower = sort_lower, .body = "oi_order"};
