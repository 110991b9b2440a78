/* nest_sum.c: runs nests that combine: reductions and contracts whose loops are not those of the
 * special drivers, windows above all.
 *
 * A row of accumulators lies along the last output axis that is longer than 1. For every position
 * of the reduced axes, in order, the part of the row whose reads lie inside their operands is
 * combined; each accumulator takes its elements in the order of the nest, on any thread. */
#include "kernel/nest.h"

#define TASK_WORK 65536 /* steps of accumulators per task, roughly */

/* A dim that a read may leave: the coordinate is base + step . axes. */
typedef struct border {
    int64_t base, step[OI_NEST_AXES];
    int64_t length, before, after; /* places beyond either end that still count */
} border;

typedef struct lane {
    const oi_load *load;
    const void *data;
    int64_t at, step[OI_NEST_AXES];
    border borders[OI_KERNEL_RANK];
    uint32_t n_borders;
} lane;

typedef struct sum_job {
    const oi_nest *n;
    const oi_kernel_query *q;
    const oi_choice *c;
    lane reads[OI_NEST_READS];
    uint32_t n_factors;
    void *out;
    int64_t out_at, out_step[OI_NEST_AXES];
    uint32_t n_out, row; /* output axes; the one that rows lie along, or n_axes: none */
    int64_t row_length, n_rows, n_pieces, rows_per_task;
    int64_t n_reduced;
} sum_job;

/* A piece of a row of accumulators. */
typedef struct piece {
    int64_t pos[OI_NEST_AXES];
    size_t n;
    uint64_t acc[OI_CHUNK];
    int64_t count[OI_CHUNK]; /* elements met */
    int64_t at[OI_CHUNK];    /* position of the best, or -1 */
} piece;

/* -- ready -- */

static void set_lane(sum_job *j, const oi_kernel_io *io, uint32_t r)
{
    const oi_nest_ref *ref = &j->n->reads[r];
    const oi_operand *o = &j->q->in[ref->operand];
    lane *l = &j->reads[r];
    *l = (lane){.load = &j->c->load[r], .data = io->in[ref->operand]};
    l->at = io->in_at ? io->in_at[ref->operand] : 0;
    for (uint32_t d = 0; d < ref->rank; d++) {
        const oi_nest_coord *c = &ref->at[d];
        l->at += c->base * o->strides[d];
        for (uint32_t a = 0; a < j->n->n_axes; a++)
            l->step[a] += c->step[a] * o->strides[d];
        if (!c->may_leave)
            continue;
        border *b = &l->borders[l->n_borders++];
        *b = (border){.base = c->base,
                      .length = o->dims[d],
                      .before = c->counted_before,
                      .after = c->counted_after};
        memcpy(b->step, c->step, sizeof b->step);
    }
}

static void set_write(sum_job *j, const oi_kernel_io *io)
{
    const oi_nest_ref *ref = &j->n->write;
    const oi_operand *o = &j->q->out[ref->operand];
    j->out = io->out[ref->operand];
    j->out_at = io->out_at ? io->out_at[ref->operand] : 0;
    for (uint32_t d = 0; d < ref->rank; d++) {
        j->out_at += ref->at[d].base * o->strides[d];
        for (uint32_t a = 0; a < j->n->n_axes; a++)
            j->out_step[a] += ref->at[d].step[a] * o->strides[d];
    }
}

/* False when there is nothing to write. */
static bool set_job(sum_job *j, const oi_nest *n, const oi_kernel_query *q, const oi_choice *c,
                    const oi_kernel_io *io)
{
    *j = (sum_job){.n = n, .q = q, .c = c, .n_reduced = 1, .n_rows = 1, .row_length = 1};
    while (j->n_out < n->n_axes && !n->axes[j->n_out].is_reduced)
        j->n_out++;
    j->row = n->n_axes;
    for (uint32_t a = 0; a < j->n_out; a++) {
        if (n->axes[a].extent == 0)
            return false;
        j->n_rows *= n->axes[a].extent;
        if (n->axes[a].extent > 1)
            j->row = a;
    }
    for (uint32_t a = j->n_out; a < n->n_axes; a++)
        j->n_reduced *= n->axes[a].extent;
    if (j->row < n->n_axes)
        j->row_length = n->axes[j->row].extent;
    j->n_rows /= j->row_length;
    j->n_pieces = (j->row_length + OI_CHUNK - 1) / OI_CHUNK;
    int64_t work = (j->row_length < OI_CHUNK ? j->row_length : OI_CHUNK) * (j->n_reduced + 1);
    j->rows_per_task = work < TASK_WORK ? TASK_WORK / work : 1;
    j->n_factors = n->n_reads - n->has_last;
    for (uint32_t r = 0; r < n->n_reads; r++)
        set_lane(j, io, r);
    set_write(j, io);
    return true;
}

/* -- one position of the reduced axes -- */

/* Accumulators [*from, *to) of the piece whose coordinate lies in [low, high). */
static void clip(const sum_job *j, const border *b, const int64_t *pos, int64_t low, int64_t high,
                 int64_t *from, int64_t *to)
{
    int64_t at = b->base, step = j->row < j->n->n_axes ? b->step[j->row] : 0;
    for (uint32_t a = 0; a < j->n->n_axes; a++)
        at += b->step[a] * pos[a];
    int64_t last = at + step * (*to - 1);
    if (at >= low && at < high && last >= low && last < high)
        return;
    if (step == 0) {
        *to = *from;
        return;
    }
    while (*from < *to && (at + step * *from < low || at + step * *from >= high))
        ++*from;
    while (*from < *to && (at + step * (*to - 1) < low || at + step * (*to - 1) >= high))
        --*to;
}

static int64_t offset(const sum_job *j, const int64_t *step, const int64_t *pos)
{
    int64_t at = 0;
    for (uint32_t a = 0; a < j->n->n_axes; a++)
        at += step[a] * pos[a];
    return at;
}

static int64_t row_step(const sum_job *j, const int64_t *step)
{
    return j->row < j->n->n_axes ? step[j->row] : 0;
}

/* Elements [from, from + n) of a read along the row; one when it does not move. */
static const void *load_row(const sum_job *j, const lane *l, const int64_t *pos, int64_t from,
                            size_t n, uint64_t *buffer, bool *is_one)
{
    int64_t step = row_step(j, l->step), at = l->at + offset(j, l->step, pos) + from * step;
    *is_one = step == 0;
    return oi_load_row(l->load, l->data, at, step, step == 0 ? 1 : n, buffer);
}

/* x[0] repeated. */
static const void *spread(const void *x, size_t n, size_t size, uint64_t *buffer)
{
    for (size_t i = 0; i < n; i++)
        memmove((char *)buffer + i * size, x, size);
    return buffer;
}

static void run_contract(const sum_job *j, piece *p, int64_t from, size_t n)
{
    uint64_t buffers[2][2 * OI_CHUNK], repeated[OI_CHUNK], products[2][OI_CHUNK];
    size_t size = oi_form_size(j->c->form);
    const oi_contract_fns *fns = j->c->contract;
    oi_contract_row r = {.n = n, .y = &j->c->one, .attrs = j->c->attrs};
    bool one, by_one = true; /* a factor that is not there is 1 */
    r.x = load_row(j, &j->reads[0], p->pos, from, n, buffers[0], &one);
    if (one)
        r.x = spread(r.x, n, size, repeated);
    for (uint32_t i = 1; i < j->n_factors; i++) {
        r.y = load_row(j, &j->reads[i], p->pos, from, n, buffers[1], &by_one);
        if (i + 1 == j->n_factors)
            break;
        r.acc = products[i % 2]; /* of the factors so far: a sum of one product */
        fns->init(&r);
        (by_one ? fns->by : fns->each)(&r);
        r.x = r.acc;
    }
    r.acc = (char *)p->acc + (size_t)from * size;
    (by_one ? fns->by : fns->each)(&r);
}

/* A position begins at its first element. */
static void run_position(const sum_job *j, piece *p, int64_t from, size_t n, const char *x,
                         int64_t number)
{
    size_t size = oi_form_size(j->c->form);
    for (size_t i = 0, end; i < n; i = end) {
        bool begins = p->at[(size_t)from + i] < 0;
        for (end = i + 1; end < n && (p->at[(size_t)from + end] < 0) == begins; end++)
            ;
        oi_reduce_row r = {.n = end - i,
                           .acc = (char *)p->acc + ((size_t)from + i) * size,
                           .at = p->at + (size_t)from + i,
                           .x = x + i * size,
                           .first = number,
                           .attrs = j->c->attrs};
        (begins ? j->c->reduce->init : j->c->reduce->each)(&r);
        for (size_t k = i; begins && k < end; k++)
            p->at[(size_t)from + k] = number;
    }
}

static void run_reduce(const sum_job *j, piece *p, int64_t from, size_t n, int64_t number)
{
    uint64_t buffer[2 * OI_CHUNK], repeated[OI_CHUNK];
    size_t size = oi_form_size(j->c->form);
    bool one;
    const void *x = load_row(j, &j->reads[0], p->pos, from, n, buffer, &one);
    if (one)
        x = spread(x, n, size, repeated);
    if (j->n->finds_element) {
        run_position(j, p, from, n, x, number);
        return;
    }
    j->c->reduce->each(&(oi_reduce_row){.n = n,
                                        .acc = (char *)p->acc + (size_t)from * size,
                                        .x = x,
                                        .first = number,
                                        .attrs = j->c->attrs});
}

static void step(const sum_job *j, piece *p, int64_t number)
{
    int64_t from = 0, to = (int64_t)p->n, counted_from = 0, counted_to = to;
    for (uint32_t r = 0; r < j->n_factors; r++)
        for (uint32_t i = 0; i < j->reads[r].n_borders; i++) {
            const border *b = &j->reads[r].borders[i];
            clip(j, b, p->pos, 0, b->length, &from, &to);
            clip(j, b, p->pos, -b->before, b->length + b->after, &counted_from, &counted_to);
        }
    if (j->n->kind == OI_NEST_REDUCE)
        for (int64_t i = counted_from; i < counted_to; i++)
            p->count[i]++;
    if (from >= to)
        return;
    if (j->n->kind == OI_NEST_CONTRACT)
        run_contract(j, p, from, (size_t)(to - from));
    else
        run_reduce(j, p, from, (size_t)(to - from), number);
}

/* -- a piece of a row -- */

static void begin(const sum_job *j, piece *p)
{
    if (j->n->kind == OI_NEST_CONTRACT) {
        j->c->contract->init(&(oi_contract_row){.n = p->n, .acc = p->acc, .attrs = j->c->attrs});
        return;
    }
    memset(p->count, 0, p->n * sizeof p->count[0]);
    for (size_t i = 0; i < p->n; i++)
        p->at[i] = -1;
    if (!j->n->finds_element)
        j->c->reduce->init(&(oi_reduce_row){.n = p->n, .acc = p->acc, .attrs = j->c->attrs});
}

/* Row-major numbers of the elements found; of windows that hold none, 0. */
static void name_elements(const sum_job *j, piece *p)
{
    const oi_nest_ref *ref = &j->n->reads[0];
    const oi_operand *o = &j->q->in[ref->operand];
    for (size_t i = 0; i < p->n; i++) {
        int64_t pos[OI_NEST_AXES], rest = p->at[i] < 0 ? 0 : p->at[i], number = 0;
        memcpy(pos, p->pos, sizeof pos);
        for (uint32_t a = j->n->n_axes; a-- > j->n_out;) {
            pos[a] = rest % j->n->axes[a].extent;
            rest /= j->n->axes[a].extent;
        }
        if (j->row < j->n->n_axes)
            pos[j->row] += (int64_t)i;
        for (uint32_t d = 0; d < ref->rank; d++) {
            int64_t c = ref->at[d].base;
            for (uint32_t a = 0; a < j->n->n_axes; a++)
                c += ref->at[d].step[a] * pos[a];
            number = number * o->dims[d] + c;
        }
        p->at[i] = p->at[i] < 0 ? 0 : number;
    }
}

static void finish_reduce(const sum_job *j, piece *p)
{
    size_t size = oi_form_size(j->c->form);
    for (size_t i = 0, end; j->c->reduce->finish && i < p->n; i = end) {
        for (end = i + 1; end < p->n && p->count[end] == p->count[i]; end++)
            ;
        j->c->reduce->finish(&(oi_reduce_row){.n = end - i,
                                              .acc = (char *)p->acc + i * size,
                                              .first = p->count[i],
                                              .attrs = j->c->attrs});
    }
}

static void finish_contract(const sum_job *j, piece *p)
{
    uint64_t buffer[2 * OI_CHUNK], repeated[OI_CHUNK];
    bool one;
    oi_contract_row r = {.n = p->n, .acc = p->acc, .attrs = j->c->attrs};
    if (j->n->has_last) {
        const lane *l = &j->reads[j->n->n_reads - 1];
        r.x = load_row(j, l, p->pos, 0, p->n, buffer, &one);
        if (one)
            r.x = spread(r.x, p->n, oi_form_size(j->c->form), repeated);
        j->c->contract->third(&r);
    } else if (j->c->contract->plain) {
        j->c->contract->plain(&r);
    }
}

static void finish(const sum_job *j, piece *p)
{
    int64_t at = j->out_at, by = row_step(j, j->out_step);
    for (uint32_t a = 0; a < j->n_out; a++)
        at += j->out_step[a] * p->pos[a];
    if (j->n->finds_element) {
        name_elements(j, p);
        j->c->store.store(j->out, at, by, p->at, p->n);
        return;
    }
    if (j->n->kind == OI_NEST_CONTRACT)
        finish_contract(j, p);
    else
        finish_reduce(j, p);
    oi_store_row(&j->c->store, j->out, at, by, p->acc, p->n);
}

static void run_piece(const sum_job *j, piece *p)
{
    begin(j, p);
    for (int64_t number = 0; number < j->n_reduced; number++) {
        if (number > 0)
            for (uint32_t a = j->n->n_axes; a-- > j->n_out;) {
                if (++p->pos[a] < j->n->axes[a].extent)
                    break;
                p->pos[a] = 0;
            }
        step(j, p, number);
    }
    memset(p->pos + j->n_out, 0, (j->n->n_axes - j->n_out) * sizeof p->pos[0]);
    finish(j, p);
}

static void sum_task(void *ctx, size_t task)
{
    const sum_job *j = ctx;
    int64_t total = j->n_rows * j->n_pieces, from = (int64_t)task * j->rows_per_task;
    int64_t to = from + j->rows_per_task < total ? from + j->rows_per_task : total;
    piece p;
    for (; from < to; from++) {
        int64_t row = from / j->n_pieces, first = from % j->n_pieces * OI_CHUNK;
        memset(p.pos, 0, sizeof p.pos);
        for (uint32_t a = j->n_out; a-- > 0;) {
            if (a == j->row)
                continue;
            p.pos[a] = row % j->n->axes[a].extent;
            row /= j->n->axes[a].extent;
        }
        if (j->row < j->n->n_axes)
            p.pos[j->row] = first;
        p.n = (size_t)(j->row_length - first < OI_CHUNK ? j->row_length - first : OI_CHUNK);
        run_piece(j, &p);
    }
}

bool oi_nest_sum_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                     oi_kernel_fault *fault)
{
    (void)fault;
    size_t count = oi_nest_count(q);
    for (size_t i = 0; i < count; i++) {
        oi_nest n;
        sum_job j;
        oi_choice own = *c;
        oi_nest_make(q, i, &n);
        if (n.finds_element) {
            own.reduce = c->place;
            own.store.store = oi_forms[c->cpu]->store[q->out[n.write.operand].dtype];
        }
        if (!set_job(&j, &n, q, &own, io))
            continue;
        /* threads must not share a byte of a packed result */
        oi_kernel_io tasks = *io;
        if (oi_dtype_bits(q->out[n.write.operand].dtype) < 8)
            tasks.parallel = NULL;
        oi_parallel(&tasks,
                    (size_t)((j.n_rows * j.n_pieces + j.rows_per_task - 1) / j.rows_per_task),
                    sum_task, &j);
    }
    return true;
}
