/* transform.c: scratch and windows of Fourier transforms. */
#include "kernel/custom/transform.h"

static size_t aligned(size_t n)
{
    return (n + 63) / 64 * 64;
}

bool oi_transform_scratch(oi_transform *j, oi_choice *c)
{
    if (j->n < 0 || j->n > OI_TRANSFORM_LENGTH)
        return false;
    int64_t n = j->n ? j->n : 1;
    j->line_bytes = aligned((size_t)n * sizeof(oi_complex));
    j->work_bytes = j->line_bytes + aligned(oi_fft_work_bytes(n));
    size_t tables = aligned(oi_fft_table_bytes(n)), window = aligned((size_t)n * sizeof(double));
    if (c)
        c->scratch_bytes = tables + window + j->n_tasks * j->work_bytes;
    if (j->io) {
        oi_fft_init(&j->fft, n, j->io->scratch);
        j->window = (double *)((char *)j->io->scratch + tables);
        j->work = (char *)j->window + window;
    }
    return true;
}

void oi_transform_window(oi_transform *j, size_t input)
{
    const oi_operand *w = &j->q->in[input];
    for (int64_t k = 0; j->q->n_in <= input && k < j->n; k++)
        j->window[k] = 1;
    if (j->q->n_in > input)
        oi_wide_load(w->dtype, j->io->in[input], oi_start_of(j->io->in_at, input), w->strides[0],
                     (size_t)j->n, j->window, 1);
}

uint32_t oi_transform_window_lower(oi_steps *s, int64_t n)
{
    if (s->q->n_in > 1)
        return oi_steps_as(s, 1, OI_F64);
    double *ones = oi_arena_alloc(s->arena, ((size_t)n + 1) * sizeof *ones);
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1;
    return oi_steps_table(s, "window", OI_F64, n, ones);
}
