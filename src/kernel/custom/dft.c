/* dft.c: Fourier transforms along an axis. */
#include "kernel/custom/transform.h"

static bool flag(const oi_kernel_query *q, const char *name)
{
    const oi_op_value *v = oi_kernel_attr(q, name);
    return v && v->tag == OI_VALUE_BOOL && v->b;
}

static void set_dft(oi_transform *j, const oi_kernel_query *q)
{
    oi_operand x = q->in[0], out = q->out[0];
    int64_t axis = oi_kernel_attr(q, "axis")->i;
    const oi_op_value *length = oi_kernel_attr(q, "length");
    uint32_t at = (uint32_t)(axis < 0 ? axis + x.rank : axis), last = x.rank - 1;
    *j = (oi_transform){.q = q, .inverse = flag(q, "inverse"), .onesided = flag(q, "onesided")};
    j->x_im = x.dims[last] == 2 ? x.strides[last] : 0;
    j->out_im = out.dims[last] == 2 ? out.strides[last] : 0;
    j->n = length->tag == OI_VALUE_INT ? length->i
           : j->inverse && j->onesided ? 2 * (x.dims[at] - 1)
                                       : x.dims[at];
    x.rank = out.rank = last;
    oi_lines_init(&j->lines, (const oi_operand *const[]){&x, &out}, 2, at);
    j->n_tasks = oi_lines_tasks(j->lines.n);
}

static void dft_task(void *ctx, size_t task)
{
    const oi_transform *j = ctx;
    oi_complex *line = (oi_complex *)(j->work + task * j->work_bytes);
    void *work = (char *)line + j->line_bytes;
    oi_dtype t = j->q->in[0].dtype;
    int64_t wanted = j->inverse && j->onesided ? j->n / 2 + 1 : j->n;
    size_t n = (size_t)(j->lines.length[0] < wanted ? j->lines.length[0] : wanted);
    for (int64_t i = (int64_t)task; i < j->lines.n; i += (int64_t)j->n_tasks) {
        int64_t at[OI_WALK_OPERANDS] = {oi_start_of(j->io->in_at, 0),
                                        oi_start_of(j->io->out_at, 0)};
        oi_walk_seek(&j->lines.w, j->lines.w.rank, i, at);
        memset(line, 0, (size_t)j->n * sizeof *line);
        oi_wide_load(t, j->io->in[0], at[0], j->lines.step[0], n, &line->re, 2);
        if (j->x_im)
            oi_wide_load(t, j->io->in[0], at[0] + j->x_im, j->lines.step[0], n, &line->im, 2);
        if (j->inverse && j->onesided)
            oi_fft_mirror(line, j->n);
        oi_fft_run(&j->fft, line, j->inverse, work);
        size_t m = (size_t)j->lines.length[1];
        oi_wide_store(t, j->io->out[0], at[1], j->lines.step[1], m, &line->re, 2);
        if (j->out_im)
            oi_wide_store(t, j->io->out[0], at[1] + j->out_im, j->lines.step[1], m, &line->im, 2);
    }
}

static bool dft_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                    oi_kernel_fault *fault)
{
    (void)c;
    (void)fault;
    oi_transform j;
    set_dft(&j, q);
    j.io = io;
    if (j.n == 0 || j.lines.n == 0)
        return true;
    oi_transform_scratch(&j, NULL);
    oi_parallel(io, j.n_tasks, dft_task, &j);
    return true;
}

static bool dft_choose(const oi_kernel_query *q, oi_choice *c)
{
    oi_transform j;
    set_dft(&j, q);
    c->run = dft_run;
    return oi_transform_scratch(&j, c);
}

static void dft_lower(oi_steps *s)
{
    const oi_operand *in = &s->q->in[0], *out = &s->q->out[0];
    const uint32_t axis = oi_steps_axis(s), last = in->rank - 1;
    const bool inverse = oi_steps_is(s, "inverse"), onesided = oi_steps_is(s, "onesided");
    const int64_t k = in->dims[axis];
    const int64_t n = oi_steps_int(s, "length", inverse && onesided ? 2 * (k - 1) : k);
    int64_t outer, inner;
    oi_steps_around(in->dims, last, axis, &outer, &inner);
    const uint32_t from = oi_steps_as(s, 0, OI_F64), to = oi_steps_wide(s, 0);
    if (n > 0) {
        const uint32_t work = oi_steps_line(s, "work", OI_F64, oi_fft_room(n));
        oi_steps_call(
            s, &(oi_custom_step){.function = "oi_dft",
                                 .in = {from},
                                 .out = {to, work},
                                 .sizes = {outer, k, inner, in->dims[last], n, out->dims[axis],
                                           out->dims[last], inverse, onesided},
                                 .n_in = 1,
                                 .n_out = 2,
                                 .n_sizes = 9});
    }
    oi_steps_narrow(s, to, 0);
}

const oi_custom oi_custom_dft = {.choose = dft_choose, .lower = dft_lower, .body = "oi_dft"};
