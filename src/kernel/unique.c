/* unique.c: the different values of a tensor in ascending order, where each stands first, which of
 * them every element is, and how often it occurs. How many there are only the data says. */
#include "kernel/sort.h"

static int64_t count(const oi_operand *x)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < x->rank; d++)
        n *= x->dims[d];
    return n;
}

size_t oi_unique_scratch(const oi_kernel_query *q)
{
    return 2 * (size_t)count(&q->in[0]) * sizeof(oi_entry);
}

/* All elements sorted, equal ones by their number. */
static oi_entry *sorted(const oi_kernel_query *q, const oi_kernel_io *io, int64_t *n)
{
    const oi_operand *x = &q->in[0];
    oi_dtype form = oi_form_source(x->dtype);
    oi_entry *e = io->scratch;
    uint64_t buffer[OI_CHUNK];
    oi_walk w;
    oi_walk_init(&w, x, &x, 1);
    uint32_t last = w.rank - 1;
    int64_t rows = oi_walk_count(&w, last), inner = w.dims[last];
    *n = 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = io->in_at ? io->in_at[0] : 0;
        oi_walk_seek(&w, last, r, &at);
        for (int64_t i = 0; i < inner; i += OI_CHUNK) {
            size_t m = (size_t)(inner - i < OI_CHUNK ? inner - i : OI_CHUNK);
            oi_forms[OI_CPU_SCALAR]->load[x->dtype](buffer, io->in[0], at + i * w.steps[0][last],
                                                    w.steps[0][last], m);
            for (size_t k = 0; k < m; k++, (*n)++)
                e[*n] = (oi_entry){oi_entry_key(form, buffer, k), *n};
        }
    }
    oi_entries_sort(e, e + *n, *n);
    return e;
}

bool oi_unique_measure(const oi_kernel_query *q, const oi_kernel_io *io, int64_t *length)
{
    int64_t n;
    const oi_entry *e = sorted(q, io, &n);
    *length = 0;
    for (int64_t i = 0; i < n; i++)
        *length += i == 0 || e[i].key != e[i - 1].key;
    return true;
}

static void put(const oi_kernel_query *q, const oi_kernel_io *io, size_t o, int64_t i, int64_t v)
{
    int64_t at = (io->out_at ? io->out_at[o] : 0) + i * q->out[o].strides[0];
    memcpy((int64_t *)io->out[o] + at, &v, sizeof v);
}

static void put_value(const oi_kernel_query *q, const oi_kernel_io *io, int64_t i, int64_t element)
{
    const oi_operand *x = &q->in[0];
    int64_t from = io->in_at ? io->in_at[0] : 0, to = io->out_at ? io->out_at[0] : 0;
    for (uint32_t d = x->rank; d-- > 0; element /= x->dims[d])
        from += element % x->dims[d] * x->strides[d];
    oi_copy_row(oi_copy_dtype(x->dtype), io->out[0], to + i * q->out[0].strides[0], 1, io->in[0],
                from, 1, 1);
}

static bool unique_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                       oi_kernel_fault *fault)
{
    (void)c;
    int64_t found, n, at = -1, times = 0;
    oi_unique_measure(q, io, &found);
    if (!oi_kernel_measured(found, q->out[0].dims[0], fault))
        return false;
    const oi_entry *e = sorted(q, io, &n);
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || e[i].key != e[i - 1].key) {
            at++;
            times = 0;
            put_value(q, io, at, e[i].at);
            if (q->n_out > 1)
                put(q, io, 1, at, e[i].at);
        }
        times++;
        if (q->n_out > 2)
            put(q, io, 2, e[i].at, at);
        if (q->n_out > 3)
            put(q, io, 3, at, times);
    }
    return true;
}

bool oi_unique_choose(const oi_kernel_query *q, oi_choice *c)
{
    c->run = unique_run;
    c->scratch_bytes = oi_unique_scratch(q);
    return true;
}
