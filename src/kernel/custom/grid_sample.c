/* grid_sample.c: elements of images at places that a grid names, between -1 and 1 per axis, last
 * axis first. */
#include "kernel/custom.h"
#include "kernel/custom/taps.h"
#include "kernel/lines.h"

#define MAX_SPATIAL 3

typedef struct sample_job {
    const oi_kernel_query *q;
    const oi_kernel_io *io;
    uint32_t spatial;
    oi_sampling how;
    int64_t places; /* per image */
} sample_job;

static double value_at(const sample_job *j, int64_t from, const oi_taps *taps)
{
    const oi_operand *x = &j->q->in[0];
    double sum = 0;
    int total = 1;
    for (uint32_t d = 0; d < j->spatial; d++)
        total *= taps[d].n;
    for (int k = 0; k < total; k++) {
        int64_t at = from;
        double weight = 1;
        int rest = k;
        for (uint32_t d = j->spatial; d-- > 0 && at >= 0;) {
            int tap = rest % taps[d].n;
            rest /= taps[d].n;
            int64_t e = oi_sample_element(&j->how, taps[d].first + tap, x->dims[2 + d]);
            at = e < 0 ? -1 : at + e * x->strides[2 + d];
            weight *= taps[d].weight[tap];
        }
        if (at >= 0 && weight != 0)
            sum += weight * oi_element_f64(x->dtype, j->io->in[0], (uint64_t)at);
    }
    return sum;
}

static void sample_task(void *ctx, size_t task)
{
    const sample_job *j = ctx;
    const oi_operand *x = &j->q->in[0], *grid = &j->q->in[1], *out = &j->q->out[0];
    int64_t n = (int64_t)task / j->places, place = (int64_t)task % j->places;
    int64_t g = j->io->in_at ? j->io->in_at[1] : 0, to = j->io->out_at ? j->io->out_at[0] : 0;
    int64_t from = j->io->in_at ? j->io->in_at[0] : 0;
    g += n * grid->strides[0];
    to += n * out->strides[0];
    for (uint32_t d = j->spatial; d-- > 0;) {
        g += place % out->dims[2 + d] * grid->strides[1 + d];
        to += place % out->dims[2 + d] * out->strides[2 + d];
        place /= out->dims[2 + d];
    }
    oi_taps taps[MAX_SPATIAL];
    for (uint32_t d = 0; d < j->spatial; d++) {
        int64_t last = (int64_t)(j->spatial - 1 - d) * grid->strides[1 + j->spatial];
        double v = oi_element_f64(grid->dtype, j->io->in[1], (uint64_t)(g + last));
        taps[d] = oi_taps_at(j->how.mode, -0.75, oi_sample_place(&j->how, v, x->dims[2 + d]));
    }
    for (int64_t c = 0; c < x->dims[1]; c++) {
        double v = value_at(j, from + n * x->strides[0] + c * x->strides[1], taps);
        oi_wide_store(out->dtype, j->io->out[0], to + c * out->strides[1], 1, 1, &v, 1);
    }
}

static void rows_task(void *ctx, size_t task)
{
    const sample_job *j = ctx;
    int64_t row = j->q->out[0].dims[j->q->out[0].rank - 1];
    for (int64_t i = 0; i < row; i++)
        sample_task(ctx, (size_t)((int64_t)task * row + i));
}

static oi_sampling sampling_of(const oi_kernel_query *q)
{
    const char *mode = oi_kernel_attr(q, "mode")->s,
               *padding = oi_kernel_attr(q, "padding_mode")->s;
    return (oi_sampling){.mode = mode[0] == 'l'   ? OI_TAP_LINEAR
                                 : mode[0] == 'n' ? OI_TAP_NEAREST
                                                  : OI_TAP_CUBIC,
                         .padding = padding[0] == 'z'   ? 0
                                    : padding[0] == 'b' ? 1
                                                        : 2,
                         .corners = oi_kernel_attr(q, "align_corners")->b};
}

static bool sample_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                       oi_kernel_fault *fault)
{
    (void)c;
    (void)fault;
    sample_job j = {
        .q = q, .io = io, .spatial = q->in[0].rank - 2, .how = sampling_of(q), .places = 1};
    for (uint32_t d = 0; d < j.spatial; d++)
        j.places *= q->out[0].dims[2 + d];
    int64_t total = j.places * q->out[0].dims[0];
    if (total > 0)
        oi_parallel(io, (size_t)(total / q->out[0].dims[q->out[0].rank - 1]), rows_task, &j);
    return true;
}

static bool sample_choose(const oi_kernel_query *q, oi_choice *c)
{
    c->run = sample_run;
    return q->in[0].rank - 2 <= MAX_SPATIAL;
}

static void sample_lower(oi_steps *s)
{
    const oi_operand *in = &s->q->in[0], *out = &s->q->out[0];
    const uint32_t spatial = in->rank - 2;
    const oi_sampling how = sampling_of(s->q);
    int64_t places = 1, *dims = oi_arena_alloc(s->arena, (spatial + 1) * sizeof *dims);
    for (uint32_t d = 0; d < spatial; d++) {
        dims[d] = in->dims[2 + d];
        places *= out->dims[2 + d];
    }
    const uint32_t from = oi_steps_as(s, 0, OI_F64), grid = oi_steps_as(s, 1, OI_F64),
                   sizes = oi_steps_table(s, "dims", OI_I64, spatial, dims),
                   to = oi_steps_wide(s, 0);
    oi_steps_call(s, &(oi_custom_step){.function = "oi_grid_sample",
                                       .in = {from, grid, sizes},
                                       .out = {to},
                                       .sizes = {in->dims[0], in->dims[1], places, spatial,
                                                 how.mode, how.padding, how.corners},
                                       .n_in = 3,
                                       .n_out = 1,
                                       .n_sizes = 7});
    oi_steps_narrow(s, to, 0);
}

const oi_custom oi_custom_grid_sample = {
    .choose = sample_choose, .lower = sample_lower, .body = "oi_grid_sample"};
