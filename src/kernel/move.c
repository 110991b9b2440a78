/* move.c: ops that only carry elements: the bits of every element stay what they are. */
#include "kernel/kernel.h"

/* out[outer, i, inner] = data[outer, position(idx[i]), inner], where idx has any shape. */
typedef struct gather_job {
    const oi_choice *c;
    oi_operand idx;
    const void *idx_data;
    int64_t idx_at, n_idx;
    int64_t length; /* of the axis */
} gather_job;

static bool positions(const gather_job *j, int64_t from, size_t n, int64_t *out, int64_t *asked)
{
    const oi_choice *c = j->c;
    uint64_t buffer[2 * OI_CHUNK];
    for (size_t i = 0; i < n; i++) { /* one by one: idx may be a slice of any shape */
        int64_t at = j->idx_at, index = from + (int64_t)i;
        for (uint32_t a = j->idx.rank; a-- > 0;) {
            at += index % j->idx.dims[a] * j->idx.strides[a];
            index /= j->idx.dims[a];
        }
        const int64_t *v = oi_load_row(&c->load[1], j->idx_data, at, 1, 1, buffer);
        /* an unsigned one beyond any length must not turn negative */
        asked[i] = j->idx.dtype == OI_U64 && *v < 0 ? INT64_MAX : *v;
    }
    oi_kernel_scalar attrs[OI_KERNEL_ATTRS] = {{.i64 = j->length}};
    c->map(&(oi_map_row){.n = n, .in = {asked}, .out = out, .attrs = attrs});
    for (size_t i = 0; i < n; i++)
        if (out[i] < 0 || out[i] >= j->length)
            return false;
    return true;
}

static void set_fault(oi_kernel_fault *fault, const gather_job *j, const int64_t *at,
                      const int64_t *asked, int64_t from)
{
    size_t i = 0;
    while (at[i] >= 0 && at[i] < j->length)
        i++;
    *fault = (oi_kernel_fault){.code = "E047",
                               .input = 1,
                               .element = (uint64_t)from + i,
                               .value = asked[i],
                               .limit = j->length};
}

/* The slice of a tensor at one place of `axis`, and of the result at one place of idx. */
static oi_operand without_axes(const oi_operand *o, uint32_t axis, uint32_t n)
{
    oi_operand s = {.dtype = o->dtype};
    for (uint32_t a = 0; a < o->rank; a++)
        if (a < axis || a >= axis + n) {
            s.dims[s.rank] = o->dims[a];
            s.strides[s.rank++] = o->strides[a];
        }
    return s;
}

static int64_t offset_in(const oi_operand *out, uint32_t axis, const oi_operand *idx, int64_t index)
{
    int64_t at = 0;
    for (uint32_t a = idx->rank; a-- > 0;) {
        at += index % idx->dims[a] * out->strides[axis + a];
        index /= idx->dims[a];
    }
    return at;
}

bool oi_gather_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                   oi_kernel_fault *fault)
{
    const oi_operand *data = &q->in[0], *idx = &q->in[1], *out = &q->out[0];
    int64_t given = c->attrs[0].i64;
    uint32_t axis = (uint32_t)(given < 0 ? given + data->rank : given);
    gather_job j = {.c = c,
                    .idx = *idx,
                    .idx_data = io->in[1],
                    .idx_at = io->in_at ? io->in_at[1] : 0,
                    .n_idx = 1,
                    .length = data->dims[axis]};
    for (uint32_t a = 0; a < idx->rank; a++)
        j.n_idx *= idx->dims[a];
    oi_operand from = without_axes(data, axis, 1), to = without_axes(out, axis, idx->rank);
    int64_t at[OI_CHUNK], asked[OI_CHUNK];
    int64_t from_at = io->in_at ? io->in_at[0] : 0, to_at = io->out_at ? io->out_at[0] : 0;
    for (int64_t i = 0; i < j.n_idx; i += OI_CHUNK) {
        size_t n = (size_t)(j.n_idx - i < OI_CHUNK ? j.n_idx - i : OI_CHUNK);
        if (!positions(&j, i, n, at, asked)) {
            set_fault(fault, &j, at, asked, i);
            return false;
        }
        for (size_t k = 0; k < n; k++)
            oi_copy(&to, io->out[0], to_at + offset_in(out, axis, idx, i + (int64_t)k), &from,
                    io->in[0], from_at + at[k] * data->strides[axis]);
    }
    return true;
}
