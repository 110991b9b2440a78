/* unique.c: the different values of a tensor in ascending order, where each stands first, which of
 * them every element is, and how often it occurs (order.h). How many there are only the data says.
 */
#include "kernel/custom/sort.h"

/* The different values of x (n), whose order is known; where each stands first, which of them every
 * element is, how often each occurs, and how many there are. Only the first `most` are written. */
static inline void oi_unique(const void *keys, const int64_t *order, const void *x, void *values,
                             int64_t *first, int64_t *inverse, int64_t *counts, int64_t *found,
                             int64_t n, int64_t most, int64_t bits, int64_t kind)
{
    int64_t at = -1;
    for (int64_t i = 0; i < n; i++) {
        int64_t own = order[i];
        if (i == 0 || oi_key_at(keys, own, kind) != oi_key_at(keys, order[i - 1], kind)) {
            at++;
            if (at < most) {
                oi_move_element(values, at, x, own, bits);
                first[at] = own;
                counts[at] = 0;
            }
        }
        inverse[own] = at;
        if (at < most)
            counts[at]++;
    }
    *found = at + 1;
}

/* What oi_unique works with, in scratch: one number for every element. */
typedef struct parts {
    oi_entry *entries; /* twice */
    uint64_t *keys;
    int64_t *order, *first, *inverse, *counts;
    char *x, *values; /* dense */
} parts;

#define PER_ELEMENT (2 * sizeof(oi_entry) + 5 * sizeof(int64_t) + 2 * sizeof(uint64_t))

static size_t unique_scratch(const oi_kernel_query *q)
{
    return (size_t)oi_operand_count(&q->in[0]) * PER_ELEMENT;
}

static parts parts_of(const oi_kernel_query *q, const oi_kernel_io *io)
{
    const size_t n = (size_t)oi_operand_count(&q->in[0]);
    parts p = {.entries = io->scratch};
    p.keys = (uint64_t *)(void *)(p.entries + 2 * n);
    p.order = (int64_t *)(void *)(p.keys + n);
    p.first = p.order + n;
    p.inverse = p.first + n;
    p.counts = p.inverse + n;
    p.x = (char *)(p.counts + n);
    p.values = p.x + n * sizeof(uint64_t);
    return p;
}

/* All elements sorted, equal ones by their number. */
static void sort(const oi_kernel_query *q, const oi_kernel_io *io, oi_entry *e)
{
    const oi_operand *x = &q->in[0];
    oi_dtype form = oi_form_source(x->dtype);
    uint64_t buffer[OI_CHUNK];
    oi_walk w;
    oi_walk_init(&w, x, &x, 1);
    uint32_t last = w.rank - 1;
    int64_t rows = oi_walk_count(&w, last), inner = w.dims[last];
    int64_t n = 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = io->in_at ? io->in_at[0] : 0;
        oi_walk_seek(&w, last, r, &at);
        for (int64_t i = 0; i < inner; i += OI_CHUNK) {
            size_t m = (size_t)(inner - i < OI_CHUNK ? inner - i : OI_CHUNK);
            oi_forms[OI_CPU_SCALAR]->load[x->dtype](buffer, io->in[0], at + i * w.steps[0][last],
                                                    w.steps[0][last], m);
            for (size_t k = 0; k < m; k++, n++)
                e[n] = (oi_entry){oi_entry_key(form, buffer, k), n};
        }
    }
    oi_entries_sort(e, e + n, n);
}

static oi_operand dense(oi_operand o)
{
    int64_t stride = 1;
    for (uint32_t d = o.rank; d-- > 0; stride *= o.dims[d])
        o.strides[d] = stride;
    return o;
}

/* The first `most` of them; gives how many there are. */
static int64_t find(const oi_kernel_query *q, const oi_kernel_io *io, int64_t most, const parts *p)
{
    const oi_operand *x = &q->in[0], own = dense(*x);
    const int64_t n = oi_operand_count(x);
    int64_t found;
    sort(q, io, p->entries);
    for (int64_t i = 0; i < n; i++) {
        p->order[i] = p->entries[i].at;
        p->keys[p->order[i]] = p->entries[i].key;
    }
    oi_copy(&own, p->x, 0, x, io->in[0], io->in_at ? io->in_at[0] : 0, io);
    oi_unique(p->keys, p->order, p->x, p->values, p->first, p->inverse, p->counts, &found, n, most,
              (int64_t)oi_dtype_bits(x->dtype), 2);
    return found;
}

static bool unique_measure(const oi_kernel_query *q, const oi_kernel_io *io, int64_t *length)
{
    const parts p = parts_of(q, io);
    *length = find(q, io, 0, &p);
    return true;
}

static bool unique_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                       oi_kernel_fault *fault)
{
    (void)c;
    const parts p = parts_of(q, io);
    const void *const made[] = {p.values, p.first, p.inverse, p.counts};
    const int64_t most = q->out[0].dims[0];
    if (!oi_kernel_measured(
            find(q, io, most < oi_operand_count(&q->in[0]) ? most : oi_operand_count(&q->in[0]),
                 &p),
            most, fault))
        return false;
    for (size_t o = 0; o < q->n_out; o++) {
        const oi_operand own = dense(q->out[o]);
        oi_copy(&q->out[o], io->out[o], io->out_at ? io->out_at[o] : 0, &own, made[o], 0, io);
    }
    return true;
}

static bool unique_choose(const oi_kernel_query *q, oi_choice *c)
{
    c->run = unique_run;
    c->scratch_bytes = unique_scratch(q);
    return true;
}

/* As many as there are elements. */
static void unique_limit(const oi_operand *x, int64_t *dims)
{
    dims[0] = oi_operand_count(x);
}

static void unique_lower(oi_steps *s)
{
    const oi_operand *in = &s->q->in[0];
    const int64_t n = oi_operand_count(in), most = s->q->out[0].dims[0];
    const uint32_t keys = oi_steps_as(s, 0, oi_key_dtype(in->dtype)),
                   at = oi_steps_line(s, "order", OI_I64, n),
                   found = oi_steps_tensor(s, "found", OI_I64, 0, NULL);
    const int64_t rooms[4] = {0, most, n, most};
    uint32_t out[4];
    oi_order_lower(s, keys, at, 1, n, 1, n, false);
    for (size_t i = 0; i < 4; i++)
        out[i] =
            i < s->q->n_out ? oi_steps_output(s, i) : oi_steps_line(s, "unused", OI_I64, rooms[i]);
    oi_steps_call(
        s, &(oi_custom_step){.function = "oi_unique",
                             .in = {keys, at, 0},
                             .out = {out[0], out[1], out[2], out[3], found},
                             .sizes = {n, most, oi_dtype_bits(in->dtype), oi_key_kind(in->dtype)},
                             .n_in = 3,
                             .n_out = 5,
                             .n_sizes = 4,
                             .fixed = s->q->n_out > 2 ? out[2] + 1 : 0,
                             .length = n});
    for (size_t i = 0; i < s->q->n_out; i++)
        if (i != 2)
            oi_steps_length(s, found, out[i], 0);
}

static const struct oi_measured measured = {unique_scratch, unique_measure, unique_limit};
const oi_custom oi_custom_unique = {
    .choose = unique_choose, .lower = unique_lower, .body = "oi_unique", .measured = &measured};
