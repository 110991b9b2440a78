/* mel_filter.c: the matrix that takes a spectrum to the mel scale, as ONNX MelWeightMatrix makes
 * it: the edges of the triangles are bins, and their spacing counts two more bins than there are.
 */
#include "kernel/custom.h"
#include "kernel/lines.h"

#include <math.h>

typedef struct mel {
    double low, step, n_fft, rate;
} mel;

/* The bin of edge i. */
static int64_t edge(const mel *m, int64_t i)
{
    double hertz = 700 * expm1(((double)i * m->step + m->low) / 2595 * log(10.0));
    return (int64_t)floor((m->n_fft + 1) * hertz / m->rate);
}

static bool mel_run(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                    oi_kernel_fault *fault)
{
    (void)c;
    const oi_operand *out = &q->out[0];
    int64_t bins = out->dims[0], n = out->dims[1], at = io->out_at ? io->out_at[0] : 0;
    mel m = {.n_fft = oi_kernel_real(q, "n_fft"), .rate = oi_kernel_real(q, "sample_rate")};
    const oi_op_value *fmax = oi_kernel_attr(q, "fmax");
    double top = fmax->tag == OI_VALUE_NONE ? m.rate / 2 : oi_kernel_real(q, "fmax");
    m.low = 2595 * log1p(oi_kernel_real(q, "fmin") / 700) / log(10.0);
    m.step = (2595 * log1p(top / 700) / log(10.0) - m.low) / (double)(n + 2);
    for (int64_t i = 0; i < n; i++) {
        int64_t left = edge(&m, i), centre = edge(&m, i + 1), right = edge(&m, i + 2);
        if (left < 0 || right > bins) {
            *fault = (oi_kernel_fault){.code = "E053"};
            snprintf(fault->message, sizeof fault->message,
                     "fmin and fmax do not fit the spectrum of n_fft and sample_rate");
            return false;
        }
        for (int64_t k = 0; k < bins; k++) {
            double v = 0;
            if (k >= left && k <= centre)
                v = centre == left ? 1 : (double)(k - left) / (double)(centre - left);
            if (k >= centre && k < right)
                v = (double)(right - k) / (double)(right - centre);
            oi_wide_store(out->dtype, io->out[0], at + k * out->strides[0] + i * out->strides[1], 1,
                          1, &v, 1);
        }
    }
    return true;
}

static bool mel_choose(const oi_kernel_query *q, oi_choice *c)
{
    (void)q;
    c->run = mel_run;
    return true;
}

const oi_custom oi_custom_mel_filter = {.choose = mel_choose};
