/* resize.c: resampling along axes.
 *
 * Interpolation is separable, so one axis after the other is resampled in f64; nearest moves bits.
 * Outside the input its edge goes on. */
#include "kernel/custom.h"
#include "kernel/custom/taps.h"
#include "kernel/lines.h"

static bool is_word(const oi_kernel_query *q, const char *name, const char *word)
{
    return strcmp(oi_kernel_attr(q, name)->s, word) == 0;
}

static double scale_of(const oi_kernel_query *q, uint32_t d)
{
    const oi_op_value *v = oi_kernel_attr(q, "scales");
    int64_t in = q->in[0].dims[d], out = q->out[0].dims[d];
    switch (v->tag) {
    case OI_VALUE_FLOAT_LIST: return v->floats[d];
    case OI_VALUE_INT_LIST: return (double)v->ints[d];
    case OI_VALUE_FLOAT: return v->f;
    case OI_VALUE_INT: return (double)v->i;
    default: return in ? (double)out / (double)in : 1;
    }
}

/* Where place o of axis d of the result lies in the input. */
static double place_of(const oi_kernel_query *q, uint32_t d, int64_t o, double scale)
{
    int64_t in = q->in[0].dims[d], out = q->out[0].dims[d];
    if (is_word(q, "coord", "asymmetric"))
        return (double)o / scale;
    if (is_word(q, "coord", "align_corners"))
        return out > 1 ? (double)o * (double)(in - 1) / (double)(out - 1) : 0;
    if (is_word(q, "coord", "pytorch_half_pixel") && out <= 1)
        return 0;
    return ((double)o + 0.5) / scale - 0.5;
}

static double rounded(const oi_kernel_query *q, double place)
{
    if (is_word(q, "nearest", "floor"))
        return floor(place);
    if (is_word(q, "nearest", "ceil"))
        return ceil(place);
    return is_word(q, "nearest", "round_prefer_ceil") ? floor(place + 0.5) : ceil(place - 0.5);
}

static int64_t inside(int64_t v, int64_t n)
{
    return v < 0 ? 0 : v >= n ? n - 1 : v;
}

static oi_taps taps_of(const oi_kernel_query *q, uint32_t d, int64_t o)
{
    double scale = scale_of(q, d), place = place_of(q, d, o, scale);
    /* far outside the edge is all there is */
    double n = (double)q->in[0].dims[d];
    place = place < -4 ? -4 : place > n + 4 ? n + 4 : place;
    if (is_word(q, "mode", "nearest"))
        return oi_taps_at(OI_TAP_NEAREST, 0, rounded(q, place));
    bool cubic = is_word(q, "mode", "cubic");
    return oi_taps_at(cubic ? OI_TAP_CUBIC : OI_TAP_LINEAR, -0.75, place);
}

/* -- nearest -- */

/* For every axis and place of the result how far into the input it is read. */
static void set_places(const oi_kernel_query *q, int64_t *places)
{
    for (uint32_t d = 0; d < q->in[0].rank; d++)
        for (int64_t o = 0; o < q->out[0].dims[d]; o++)
            *places++ = inside(taps_of(q, d, o).first, q->in[0].dims[d]) * q->in[0].strides[d];
}

static void pick(const oi_kernel_query *q, const oi_kernel_io *io, uint32_t d, int64_t from,
                 int64_t to, const int64_t *places)
{
    const oi_operand *x = &q->in[0], *out = &q->out[0];
    for (int64_t o = 0; o < out->dims[d]; o++) {
        int64_t in_at = from + places[o], out_at = to + o * out->strides[d];
        if (d + 1 < x->rank) /* at most as deep as there are axes */
            pick(q, io, d + 1, in_at, out_at, places + out->dims[d]);
        else
            oi_copy_row(oi_copy_dtype(x->dtype), io->out[0], out_at, 1, io->in[0], in_at, 1, 1);
    }
}

/* -- the rest -- */

typedef struct shape {
    int64_t outer, n, inner; /* around one axis */
} shape;

static shape around(const int64_t *dims, uint32_t rank, uint32_t d)
{
    shape s = {1, dims[d], 1};
    for (uint32_t i = 0; i < rank; i++)
        *(i < d ? &s.outer : &s.inner) *= i == d ? 1 : dims[i];
    return s;
}

/* Axis d of `from` (contiguous, dims) resampled into `to`. */
static void resample(const oi_kernel_query *q, uint32_t d, const double *from, double *to,
                     const int64_t *dims)
{
    shape s = around(dims, q->in[0].rank, d);
    int64_t m = q->out[0].dims[d];
    for (int64_t o = 0; o < m; o++) {
        oi_taps taps = taps_of(q, d, o);
        for (int64_t a = 0; a < s.outer; a++)
            oi_resample_row(from + a * s.n * s.inner, to + (a * m + o) * s.inner, s.n, s.inner,
                            taps.first, taps.n, taps.weight);
    }
}

static bool keeps_axis(const oi_kernel_query *q, uint32_t d)
{
    return q->in[0].dims[d] == q->out[0].dims[d] && scale_of(q, d) == 1;
}

/* The most elements any step between input and output has. */
static int64_t most(const oi_kernel_query *q)
{
    int64_t dims[OI_KERNEL_RANK], best = 0;
    memcpy(dims, q->in[0].dims, sizeof dims);
    for (uint32_t d = 0; d <= q->in[0].rank; d++) {
        int64_t n = 1;
        for (uint32_t i = 0; i < q->in[0].rank; i++)
            n *= dims[i];
        best = n > best ? n : best;
        if (d < q->in[0].rank)
            dims[d] = q->out[0].dims[d];
    }
    return best;
}

static bool resize_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                       oi_kernel_fault *fault)
{
    (void)c;
    (void)fault;
    const oi_operand *x = &q->in[0], *out = &q->out[0];
    int64_t dims[OI_KERNEL_RANK], in_at = io->in_at ? io->in_at[0] : 0,
                                  out_at = io->out_at ? io->out_at[0] : 0;
    for (uint32_t d = 0; d < x->rank; d++)
        if (x->dims[d] == 0 || out->dims[d] == 0)
            return true;
    if (x->rank == 0 || is_word(q, "mode", "nearest")) {
        set_places(q, io->scratch);
        if (x->rank)
            pick(q, io, 0, in_at, out_at, io->scratch);
        else
            oi_copy(out, io->out[0], out_at, x, io->in[0], in_at, io);
        return true;
    }
    double *from = io->scratch, *to = from + most(q);
    memcpy(dims, x->dims, sizeof dims);
    oi_wide_pull(x, io->in[0], in_at, from);
    for (uint32_t d = 0; d < x->rank; d++) {
        if (keeps_axis(q, d))
            continue;
        resample(q, d, from, to, dims);
        dims[d] = out->dims[d];
        double *swap = from;
        from = to;
        to = swap;
    }
    oi_wide_push(out, io->out[0], out_at, from);
    return true;
}

static bool resize_choose(const oi_kernel_query *q, oi_choice *c)
{
    c->run = resize_run;
    c->scratch_bytes = 2 * (size_t)most(q) * sizeof(double);
    if (is_word(q, "mode", "nearest")) {
        c->scratch_bytes = 0;
        for (uint32_t d = 0; d < q->in[0].rank; d++)
            c->scratch_bytes += (size_t)q->out[0].dims[d] * sizeof(int64_t);
    }
    return true;
}

/* -- emitted programs -- */

/* One axis of `from`, as long as the result's; places move bits. */
static uint32_t lower_axis(oi_steps *s, uint32_t d, uint32_t from, bool nearest)
{
    const oi_step_tensor t = s->tensors.at[from];
    int64_t dims[OI_KERNEL_RANK], m = s->q->out[0].dims[d], n = t.dims[d], taps = 1, outer, inner;
    int64_t *first = oi_arena_alloc(s->arena, ((size_t)m + 1) * sizeof *first);
    double *weight = oi_arena_alloc(s->arena, (4 * (size_t)m + 1) * sizeof *weight);
    memcpy(dims, t.dims, sizeof dims);
    dims[d] = m;
    const uint32_t to = oi_steps_tensor(s, "resized", t.dtype, t.rank, dims);
    for (int64_t o = 0; o < m; o++) {
        const oi_taps own = taps_of(s->q, d, o);
        taps = own.n;
        first[o] = nearest ? inside(own.first, n) : own.first;
        memcpy(weight + 4 * o, own.weight, sizeof own.weight);
    }
    const uint32_t places = oi_steps_table(s, "places", OI_I64, m, first);
    if (nearest) {
        oi_steps_op(s, OI_OP_GATHER, (const uint32_t[]){from, places}, 2, to, "axis",
                    (oi_op_value){.tag = OI_VALUE_INT, .i = d});
        return to;
    }
    oi_steps_around(t.dims, t.rank, d, &outer, &inner);
    const uint32_t weights = oi_steps_table(s, "weights", OI_F64, 4 * m, weight);
    oi_steps_call(s, &(oi_custom_step){.function = "oi_resample",
                                       .in = {from, places, weights},
                                       .out = {to},
                                       .sizes = {outer, n, inner, m, taps},
                                       .n_in = 3,
                                       .n_out = 1,
                                       .n_sizes = 5});
    return to;
}

static void resize_lower(oi_steps *s)
{
    const oi_operand *in = &s->q->in[0], *out = &s->q->out[0];
    const bool nearest = is_word(s->q, "mode", "nearest");
    if (oi_operand_count(in) == 0 || oi_operand_count(out) == 0)
        return;
    uint32_t now = nearest ? 0 : oi_steps_as(s, 0, OI_F64);
    for (uint32_t d = 0; d < in->rank; d++)
        if (!keeps_axis(s->q, d))
            now = lower_axis(s, d, now, nearest);
    if (s->tensors.at[now].dtype != out->dtype)
        oi_steps_narrow(s, now, 0);
    else
        oi_steps_copy(s, now, oi_steps_output(s, 0));
}

const oi_custom oi_custom_resize = {
    .choose = resize_choose, .lower = resize_lower, .body = "oi_resample"};
