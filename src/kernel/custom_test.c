/* Ops with a kernel of their own that sort, resample and transform: every dtype, one thread and
 * several, so that the sanitizers see them; what is right, tests/conform judges. Here only what
 * must hold of any answer: the same bits for any number of threads, and going there and back. */
#include "kernel/fft_f32.h"
#include "kernel/fft_f64.h"
#include "kernel/text_call.h"

#include <math.h>

#define MAX_BYTES 400000

static uint8_t data[MAX_IN][MAX_BYTES], alone[MAX_IN][MAX_BYTES], made[MAX_IN][MAX_BYTES];
static bool seen[OI_OP_COUNT];

static void fill_inputs(const text_call *c, uint64_t seed)
{
    for (size_t i = 0; i < c->n_in; i++) {
        int64_t n = 1;
        for (uint32_t d = 0; d < c->in[i].rank; d++)
            n *= c->in[i].dims[d];
        const oi_dtype_info *t = oi_dtype_get(c->in[i].dtype);
        for (int64_t e = 0; e < n; e++) {
            int64_t v = (int64_t)(oi_splitmix64(&seed) % 7) - 3;
            if (t->cls == OI_CLASS_FLOAT) {
                oi_element_set_f64(c->in[i].dtype, data[i], (uint64_t)e, (double)v / 4);
                continue;
            }
            v = v < t->min ? t->min : v;
            v = v > 0 && (uint64_t)v > t->max ? (int64_t)t->max : v;
            v = c->in[i].dtype == OI_T1 ? (v < 0 ? -1 : 1) : v;
            oi_element_set_i64(c->in[i].dtype, data[i], (uint64_t)e, v);
        }
    }
}

static void run(const oi_kernel_query *q, oi_threads *threads, uint8_t to[MAX_IN][MAX_BYTES])
{
    static oi_choice choice;
    const void *in[MAX_IN] = {data[0], data[1], data[2], data[3]};
    void *out[MAX_IN] = {to[0], to[1], to[2], to[3]};
    oi_kernel_fault fault = {0};
    assert_true(oi_kernel_choose(q, OI_CPU_SCALAR, &choice));
    size_t size = (choice.scratch_bytes + 63) / 64 * 64; /* to the byte: sanitizers watch */
    void *scratch = size ? aligned_alloc(64, size) : NULL;
    assert_true(!size || scratch);
    oi_kernel_io io = {.in = in, .out = out, .scratch = scratch};
    if (threads) {
        io.parallel = oi_threads_run;
        io.pool = threads;
    }
    assert_true(oi_kernel_call(q, &choice, &io, &fault));
    free(scratch);
}

static void check(const char *text)
{
    static text_call c;
    read_call(&c, text);
    seen[c.op->id] = true;
    oi_dtype own = c.n_in ? c.in[0].dtype : c.out[0].dtype;
    oi_threads *threads = oi_threads_new(3);
    for (int t = 1; t < OI_DTYPE_COUNT; t++) {
        if (!(c.op->dtypes & OI_DTYPES(t)))
            continue;
        static text_call k;
        k = c;
        for (size_t i = 0; i < c.n_in; i++)
            k.in[i].dtype = c.in[i].dtype == own ? (oi_dtype)t : c.in[i].dtype;
        for (size_t i = 0; i < c.n_out; i++)
            k.out[i].dtype = c.out[i].dtype == own ? (oi_dtype)t : c.out[i].dtype;
        fill_inputs(&k, (uint64_t)t);
        oi_kernel_query q = {.op = c.op,
                             .in = k.in,
                             .n_in = c.n_in,
                             .out = k.out,
                             .n_out = c.n_out,
                             .attrs = c.attrs};
        memset(alone, 0, sizeof alone);
        memset(made, 0, sizeof made);
        run(&q, NULL, alone);
        run(&q, threads, made);
        if (memcmp(alone, made, sizeof made) != 0)
            fail_msg("%s of %s depends on the threads", text, oi_dtype_name((oi_dtype)t));
    }
    oi_threads_free(threads);
}

static void every_kernel(void **state)
{
    (void)state;
    check("topk(f32[30,50]; k=7) >> f32[30,7], i64[30,7]");
    check("topk(f32[9,5]; k=9, axis=0, largest=false) >> f32[9,5], i64[9,5]");
    check("sort(f32[40,33]; descending=true) >> f32[40,33]");
    check("argsort(f32[7,20]; axis=0) >> i64[7,20]");
    check("resize(f32[2,5,7]; sizes=[2,9,3]) >> f32[2,9,3]");
    check("grid_sample(f32[2,3,5,4], f64[2,6,3,2]; mode=cubic, padding_mode=reflection) >> "
          "f32[2,3,6,3]");
    check("dft(f32[20,12,1]) >> f32[20,12,2]");
    check("dft(f32[5,67,2]; inverse=true, length=71) >> f32[5,71,2]");
    check("rfft(f32[20,30,1]) >> f32[20,16,2]");
    check("ifft(f32[20,30,2]) >> f32[20,30,2]");
    check("stft(f32[3,100], f64[16]; frame_step=5) >> f32[3,17,9,2]");
    check("istft(f32[3,7,9,2], f64[16]; hop=5) >> f32[3,46]");
    check("mel_filter(; num_mels=12, n_fft=128, sample_rate=8000) >> f32[65,12]");
}

/* As long as the data says, and refused when the output is declared otherwise. */
static void measured(void **state)
{
    (void)state;
    static const char *const calls[] = {"nonzero(f32[30,4]) >> i64[2,0]",
                                        "unique(f32[30,4]) >> f32[0], i64[0], i64[120], i64[0]"};
    static text_call c;
    static oi_choice choice;
    for (size_t i = 0; i < OI_COUNT(calls); i++) {
        read_call(&c, calls[i]);
        seen[c.op->id] = true;
        fill_inputs(&c, 5);
        oi_kernel_query q = {
            .op = c.op, .in = c.in, .n_in = 1, .out = c.out, .n_out = c.n_out, .attrs = c.attrs};
        size_t size;
        int64_t length = -1;
        oi_kernel_fault fault = {0};
        assert_true(oi_kernel_is_measured(c.op, &size, &q));
        void *scratch = malloc(size ? size : 1);
        assert_non_null(scratch);
        oi_kernel_io io = {.in = (const void *const[]){data[0]}, .scratch = scratch};
        assert_true(oi_kernel_measure(&q, &io, &length));
        assert_true(length > 1 && length < 120);
        assert_true(oi_kernel_choose(&q, OI_CPU_SCALAR, &choice));
        io.out = (void *const[]){made[0], made[1], made[2], made[3]};
        assert_false(oi_kernel_call(&q, &choice, &io, &fault));
        assert_string_equal(fault.code, "E051");
        for (size_t o = 0; o < c.n_out; o++) {
            uint32_t last = c.out[o].rank - 1;
            c.out[o].dims[last] = o == 2 ? 120 : length;
            c.out[o].strides[0] = c.out[o].rank > 1 ? length : 1;
        }
        assert_true(oi_kernel_call(&q, &choice, &io, &fault));
        free(scratch);
    }
}

static void resampling(void **state)
{
    (void)state;
    static text_call c;
    read_call(&c, "resize(f64[4,5]; sizes=[7,3], mode=cubic, coord=align_corners) >> f64[7,3]");
    fill_inputs(&c, 3);
    oi_kernel_query q = {
        .op = c.op, .in = c.in, .n_in = 1, .out = c.out, .n_out = 1, .attrs = c.attrs};
    run(&q, NULL, made);
    for (int corner = 0; corner < 4; corner++) { /* corners stay */
        int64_t r = corner / 2, s = corner % 2;
        assert_float_equal(oi_element_f64(OI_F64, made[0], (uint64_t)(r * 6 * 3 + s * 2)),
                           oi_element_f64(OI_F64, data[0], (uint64_t)(r * 3 * 5 + s * 4)), 1e-12);
    }
}

/* Every length up to 300 there and back, and its first bin against a plain sum. */
static void lengths(void **state)
{
    (void)state;
    static oi_complex_f64 x[300], y[300];
    static oi_complex_f32 z[300];
    for (int64_t n = 1; n <= 300; n++) {
        uint64_t seed = (uint64_t)n;
        void *tables = malloc(oi_fft_table_bytes_f64(n)), *work = malloc(oi_fft_work_bytes_f64(n)),
             *narrow = malloc(oi_fft_table_bytes_f32(n));
        assert_true(tables && work && narrow);
        oi_fft_f64 f;
        oi_fft_f32 g;
        oi_fft_init_f64(&f, n, tables);
        oi_complex_f64 sum = {0, 0};
        for (int64_t k = 0; k < n; k++) {
            x[k] = y[k] = (oi_complex_f64){(double)(oi_splitmix64(&seed) % 100) / 50 - 1,
                                           (double)(oi_splitmix64(&seed) % 100) / 50 - 1};
            double angle = -2 * 3.14159265358979323846 * (double)(k * (n > 1)) / (double)n;
            sum.re += x[k].re * cos(angle) - x[k].im * sin(angle);
            sum.im += x[k].re * sin(angle) + x[k].im * cos(angle);
        }
        for (int64_t k = 0; k < n; k++)
            z[k] = (oi_complex_f32){(float)x[k].re, (float)x[k].im};
        oi_fft_run_f64(&f, y, false, work);
        assert_float_equal(y[n > 1].re, sum.re, 1e-10);
        assert_float_equal(y[n > 1].im, sum.im, 1e-10);
        oi_fft_init_f32(&g, n, narrow);
        oi_fft_run_f32(&g, z, false, work);
        const double near = g.m ? 5e-5 : 2e-5; /* sums of up to 300 numbers of up to 1 */
        for (int64_t k = 0; k < n; k++) {
            assert_float_equal(z[k].re, y[k].re, near);
            assert_float_equal(z[k].im, y[k].im, near);
        }
        oi_fft_run_f64(&f, y, true, work);
        for (int64_t k = 0; k < n; k++) {
            assert_float_equal(y[k].re, x[k].re, 1e-12);
            assert_float_equal(y[k].im, x[k].im, 1e-12);
        }
        free(tables);
        free(work);
        free(narrow);
    }
}

/* Runs last. kernels_test.c relies on it. */
static void every_op_was_tried(void **state)
{
    (void)state;
    for (size_t i = 0; i < oi_op_count(); i++) {
        const oi_op *op = oi_op_at(i);
        if (op->shape_rule >= OI_SHAPE_NONZERO && op->shape_rule <= OI_SHAPE_MEL_FILTER && !seen[i])
            fail_msg("no call of '%s'", op->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel),       cmocka_unit_test(measured),
        cmocka_unit_test(resampling),         cmocka_unit_test(lengths),
        cmocka_unit_test(every_op_was_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
