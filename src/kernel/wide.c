/* wide.c: rows of any float type as f64 and back, for kernels that compute in f64 throughout. */
#include "kernel/lines.h"

void oi_wide_load(oi_dtype t, const void *data, int64_t at, int64_t step, size_t n, double *out,
                  int64_t out_step)
{
    uint64_t buffer[OI_CHUNK];
    const oi_form_fns *f = oi_forms[OI_CPU_SCALAR];
    for (size_t i = 0; i < n; i += OI_CHUNK) {
        size_t m = n - i < OI_CHUNK ? n - i : OI_CHUNK;
        f->load[t](buffer, data, at + (int64_t)i * step, step, m);
        for (size_t k = 0; k < m; k++)
            out[(int64_t)(i + k) * out_step] =
                t == OI_F64 ? ((const double *)buffer)[k] : (double)((const float *)buffer)[k];
    }
}

void oi_wide_store(oi_dtype t, void *data, int64_t at, int64_t step, size_t n, const double *in,
                   int64_t in_step)
{
    for (size_t i = 0; i < n; i++) /* one rounding, also to narrow types */
        oi_element_set_f64(t, data, (uint64_t)(at + (int64_t)i * step), in[(int64_t)i * in_step]);
}

void oi_wide_pull(const oi_operand *x, const void *data, int64_t at, double *out)
{
    oi_walk w;
    oi_walk_init(&w, x, &x, 1);
    uint32_t last = w.rank - 1;
    int64_t rows = oi_walk_count(&w, last), n = w.dims[last];
    for (int64_t r = 0; r < rows; r++) {
        int64_t from = at;
        oi_walk_seek(&w, last, r, &from);
        oi_wide_load(x->dtype, data, from, w.steps[0][last], (size_t)n, out + r * n, 1);
    }
}

void oi_wide_push(const oi_operand *x, void *data, int64_t at, const double *in)
{
    oi_walk w;
    oi_walk_init(&w, x, &x, 1);
    uint32_t last = w.rank - 1;
    int64_t rows = oi_walk_count(&w, last), n = w.dims[last];
    for (int64_t r = 0; r < rows; r++) {
        int64_t to = at;
        oi_walk_seek(&w, last, r, &to);
        oi_wide_store(x->dtype, data, to, w.steps[0][last], (size_t)n, in + r * n, 1);
    }
}
