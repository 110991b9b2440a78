#include "trial.h"

#include "body/bytes.h"
#if defined(__AVX512VNNI__)
#include "body/avx512vnni/dot4_depthwise.h"
#include "body/avx512vnni/dot4_gemm.h"
#define HAS_DOT4 true
#else
#define HAS_DOT4 false
#endif

static const char *last_body;

/* Whether the body is one of bytes or of dot4, by the beginning of its name. */
static bool was(const char *name)
{
    const size_t prefix = strncmp(last_body, "oi_dot4_", 8) == 0    ? 8
                          : strncmp(last_body, "oi_bytes_", 9) == 0 ? 9
                                                                    : 0;
    return prefix && strncmp(last_body + prefix, name, strlen(name)) == 0;
}

static void put(void *const *ports, int64_t at, int64_t filter, int32_t sum)
{
    const uint32_t more = ports[1] ? ((const uint32_t *)ports[1])[filter] : 0;
    ((int32_t *)ports[0])[at] = (int32_t)((uint32_t)sum + more);
}

static void finish_conv(void *const *ports, int64_t batch, int64_t filter, int64_t place, int64_t i,
                        int32_t sum)
{
    const oi_operand *out = ports[2];
    const int64_t m = out->dims[1], places = trial_count(out) / out->dims[0] / m;
    assert_in_range(place + i, 0, places - 1);
    put(ports, (batch * m + filter) * places + place + i, filter, sum);
}

static void finish_dense(void *const *ports, int64_t batch, int64_t filter, int64_t place,
                         int64_t i, int32_t sum)
{
    const oi_operand *out = ports[2];
    assert_int_equal(place + i, 0);
    put(ports, batch * out->dims[out->rank - 1] + filter, filter, sum);
}

#define N4(i) a[i].n, a[i + 1].n, a[i + 2].n, a[i + 3].n

#if defined(__AVX512VNNI__)
static bool dot4_body(const char *function, const trial_arg *a)
{
    if (strcmp(function, "oi_dot4_conv") == 0)
        oi_dot4_conv(a[0].in, a[1].in, finish_conv, a[2].in, a[3].out, a[4].out, a[5].out, a[6].out,
                     N4(7), N4(11), N4(15), N4(19), N4(23), N4(27), N4(31), a[35].n, a[36].n,
                     a[37].n);
    else if (strcmp(function, "oi_dot4_qconv") == 0)
        oi_dot4_qconv(a[0].in, a[1].in, a[2].in, a[3].in, a[4].in, a[5].in, a[6].out, a[7].out,
                      a[8].out, a[9].out, a[10].out, N4(11), N4(15), N4(19), N4(23), N4(27), N4(31),
                      N4(35), N4(39), a[43].n, a[44].n, a[45].n, a[46].n);
    else if (strcmp(function, "oi_dot4_conv_depthwise") == 0)
        oi_dot4_conv_depthwise(a[0].in, a[1].in, finish_conv, a[2].in, a[3].out, a[4].out, a[5].out,
                               a[6].out, N4(7), N4(11), N4(15), N4(19), N4(23), N4(27));
    else if (strcmp(function, "oi_dot4_qconv_depthwise") == 0)
        oi_dot4_qconv_depthwise(a[0].in, a[1].in, a[2].in, a[3].in, a[4].in, a[5].in, a[6].out,
                                a[7].out, a[8].out, a[9].out, a[10].out, N4(11), N4(15), N4(19),
                                N4(23), N4(27), N4(31), N4(35), a[39].n);
    else if (strcmp(function, "oi_dot4_matmul") == 0)
        oi_dot4_matmul(a[0].in, a[1].in, finish_dense, a[2].in, a[3].out, a[4].out, a[5].out,
                       a[6].out, N4(7), N4(11));
    else if (strcmp(function, "oi_dot4_qmatmul") == 0)
        oi_dot4_qmatmul(a[0].in, a[1].in, a[2].in, a[3].in, a[4].in, a[5].out, a[6].out, a[7].out,
                        a[8].out, a[9].out, N4(10), N4(14), N4(18));
    else
        return false;
    return true;
}
#else
static bool dot4_body(const char *function, const trial_arg *a)
{
    (void)function, (void)a;
    return false;
}
#endif

static void scaled_body(const char *function, const trial_arg *a)
{
    if (strcmp(function, "oi_bytes_qconv") == 0)
        oi_bytes_qconv(a[0].in, a[1].in, a[2].in, a[3].in, a[4].in, a[5].in, a[6].out, a[7].out,
                       a[8].out, a[9].out, N4(10), N4(14), N4(18), N4(22), N4(26), N4(30), N4(34),
                       N4(38));
    else if (strcmp(function, "oi_bytes_qconv_depthwise") == 0)
        oi_bytes_qconv_depthwise(a[0].in, a[1].in, a[2].in, a[3].in, a[4].in, a[5].in, a[6].out,
                                 a[7].out, a[8].out, N4(9), N4(13), N4(17), N4(21), N4(25), N4(29),
                                 a[33].n, a[34].n, a[35].n);
    else if (strcmp(function, "oi_bytes_qmatmul") == 0)
        oi_bytes_qmatmul(a[0].in, a[1].in, a[2].in, a[3].in, a[4].in, a[5].out, a[6].out, a[7].out,
                         N4(8), N4(12), a[16].n, a[17].n);
    else if (!dot4_body(function, a))
        fail_msg("%s is not tested", function);
}

static void body(const char *function, const trial_arg *a)
{
    last_body = function;
    if (strcmp(function, "oi_bytes_conv") == 0)
        oi_bytes_conv(a[0].in, a[1].in, finish_conv, a[2].in, a[3].out, a[4].out, a[5].out, N4(6),
                      N4(10), N4(14), N4(18), N4(22), N4(26), N4(30));
    else if (strcmp(function, "oi_bytes_conv_depthwise") == 0)
        oi_bytes_conv_depthwise(a[0].in, a[1].in, finish_conv, a[2].in, a[3].out, a[4].out, N4(5),
                                N4(9), N4(13), N4(17), N4(21), a[25].n, a[26].n);
    else if (strcmp(function, "oi_bytes_matmul") == 0)
        oi_bytes_matmul(a[0].in, a[1].in, finish_dense, a[2].in, a[3].out, a[4].out, N4(5), a[9].n,
                        a[10].n);
    else
        scaled_body(function, a);
}

/* -- convolutions -- */

typedef struct setting {
    const char *body; /* NULL: none takes it */
    uint32_t rank;    /* spatial axes */
    int64_t batches, c, m, group, in[3], kernel[3], strides[3], pads[6], dilation;
    bool has_bias;
} setting;

static void list(trial *t, const char *name, const int64_t *items, uint32_t n)
{
    *trial_attr(t, name) = (oi_op_value){.tag = OI_VALUE_INT_LIST, .n = n, .ints = items};
}

/* Sizes of x, w and the result. */
typedef struct shapes {
    int64_t x[5], w[5], out[5], dilations[3];
} shapes;

static shapes begin(trial *t, const char *op, const setting *s, uint64_t seed)
{
    const uint32_t n = s->rank;
    shapes z = {{s->batches, s->c}, {s->m, s->c / s->group}, {s->batches, s->m}, {0}};
    for (uint32_t a = 0; a < n; a++) {
        const int64_t span = (s->kernel[a] - 1) * s->dilation + 1;
        z.x[2 + a] = s->in[a];
        z.w[2 + a] = s->kernel[a];
        z.out[2 + a] = (s->in[a] + s->pads[a] + s->pads[n + a] - span) / s->strides[a] + 1;
        z.dilations[a] = s->dilation;
    }
    trial_begin(t, op, seed);
    list(t, "strides", s->strides, n);
    list(t, "pads", s->pads, 2 * n);
    *trial_attr(t, "group") = (oi_op_value){.tag = OI_VALUE_INT, .i = s->group};
    return z;
}

static void run(const setting *s, uint64_t seed)
{
    static const oi_dtype wide = OI_I32;
    trial t;
    const uint32_t n = s->rank;
    const shapes z = begin(&t, "conv", s, seed);
    list(&t, "dilations", z.dilations, n);
    *trial_attr(&t, "acc") = (oi_op_value){.tag = OI_VALUE_DTYPE_LIST, .n = 1, .dtypes = &wide};
    trial_input(&t, false, OI_I8, 1, 2 + n, z.x);
    trial_input(&t, true, OI_I8, 1, 2 + n, z.w);
    if (s->has_bias)
        trial_input(&t, true, OI_I32, 1, 1, &s->m);
    last_body = NULL;
    assert_int_equal(trial_end(&t, OI_I32, 2 + n, z.out, body), s->body != NULL);
    if (s->body)
        assert_true(was(s->body + 9));
}

/* -- with zero points -- */

static oi_dtype byte(int is_unsigned)
{
    return is_unsigned ? OI_U8 : OI_I8;
}

/* `n` scales around `each`. */
static void scales(trial *t, int64_t n, float each)
{
    trial_input(t, true, OI_F32, 1, n > 1, &n);
    float *to = t->data[t->q.n_in - 1];
    for (int64_t i = 0; i < n; i++)
        to[i] = each * (float)(1 + i % 3);
}

/* kind: bits for x, w and the result without signs, and for one zero point of a filter each. */
static void run_integer(const setting *s, int kind, uint64_t seed)
{
    trial t;
    const uint32_t n = s->rank;
    const shapes z = begin(&t, "conv_integer", s, seed);
    list(&t, "dilations", z.dilations, n);
    trial_input(&t, false, byte(kind & 1), 1, 2 + n, z.x);
    trial_input(&t, true, byte(kind & 2), 1, 2 + n, z.w);
    if (s->has_bias) {
        trial_input(&t, false, byte(kind & 1), 1, 0, NULL);
        trial_input(&t, true, byte(kind & 2), 1, kind & 8 ? 1 : 0, &s->m);
    }
    last_body = NULL;
    assert_true(trial_end(&t, OI_I32, 2 + n, z.out, body));
    assert_true(was("q"));
}

static void run_scaled(const setting *s, int kind, float y_scale, uint64_t seed)
{
    trial t;
    const uint32_t n = s->rank;
    const shapes z = begin(&t, "qconv", s, seed);
    list(&t, "dilations", z.dilations, n);
    trial_input(&t, false, byte(kind & 1), 1, 2 + n, z.x);
    scales(&t, 1, 0.02f);
    trial_input(&t, false, byte(kind & 1), 1, 0, NULL);
    trial_input(&t, true, byte(kind & 2), 1, 2 + n, z.w);
    scales(&t, kind & 8 ? s->m : 1, 0.003f);
    trial_input(&t, true, byte(kind & 2), 1, kind & 8 ? 1 : 0, &s->m);
    scales(&t, 1, y_scale);
    trial_input(&t, false, byte(kind & 4), 1, 0, NULL);
    if (s->has_bias) {
        trial_input(&t, true, OI_I32, 1, 1, &s->m);
        for (int64_t i = 0; i < s->m; i++) /* so that results are not all at a limit */
            ((int32_t *)t.data[8])[i] /= 1 << 15;
    }
    last_body = NULL;
    assert_true(trial_end(&t, byte(kind & 4), 2 + n, z.out, body));
    assert_true(was("q"));
}

static const setting scaled[] = {
    {NULL, 2, 1, 24, 40, 1, {17, 15}, {1, 1}, {1, 1}, {0}, 1, true},
    {NULL, 2, 2, 19, 9, 1, {4, 9}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, false},
    {NULL, 2, 1, 3, 20, 1, {21, 20}, {3, 3}, {2, 2}, {1, 1, 1, 1}, 1, true},
    {NULL, 2, 1, 8, 8, 2, {9, 12}, {3, 3}, {1, 1}, {2, 2, 2, 2}, 2, true},
    {NULL, 1, 1, 6, 17, 1, {50}, {5}, {1}, {2, 2}, 1, true},
    {NULL, 2, 1, 6, 6, 6, {9, 20}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
    {NULL, 2, 2, 3, 6, 3, {9, 21}, {3, 3}, {2, 2}, {1, 1, 1, 1}, 1, false},
    {NULL, 2, 1, 5, 5, 5, {7, 7}, {5, 3}, {1, 1}, {4, 2, 4, 2}, 2, true},
    {NULL, 2, 1, 7, 33, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 1, true},
};

static void test_zero_points(void **state)
{
    (void)state;
    for (size_t i = 0; i < OI_COUNT(scaled); i++)
        for (int kind = 0; kind < 16; kind++) {
            run_scaled(&scaled[i], kind, 0.5f, i);
            if (!(kind & 4))
                run_integer(&scaled[i], kind, i);
        }
}

/* Where four bytes are multiplied at once: partial groups of four, several blocks of them, strides,
 * holes, groups, more than a band and a vector, factors above 1. */
static void test_dot4(void **state)
{
    (void)state;
    static const setting settings[] = {
        {NULL, 2, 1, 80, 19, 1, {23, 15}, {1, 1}, {1, 1}, {0}, 1, true},
        {NULL, 2, 2, 18, 16, 1, {30, 31}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
        {NULL, 2, 1, 71, 33, 1, {19, 31}, {3, 2}, {2, 2}, {1, 1, 1, 1}, 1, false},
        {NULL, 2, 1, 16, 5, 1, {9, 40}, {3, 3}, {1, 1}, {2, 2, 2, 2}, 2, true},
        {NULL, 2, 1, 7, 6, 1, {12, 92}, {2, 3}, {1, 3}, {0, 3, 1, 3}, 2, true},
        {NULL, 2, 1, 12, 20, 2, {9, 16}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
        {NULL, 1, 1, 8, 17, 1, {300}, {5}, {1}, {2, 2}, 1, true},
        {NULL, 2, 1, 32, 40, 1, {4, 7}, {1, 1}, {1, 1}, {0}, 1, true},
        {NULL, 2, 1, 3, 3, 3, {140, 61}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
        {NULL, 2, 2, 3, 6, 3, {19, 40}, {5, 6}, {2, 3}, {1, 0, 1, 1}, 1, false},
        {NULL, 2, 1, 4, 4, 4, {9, 9}, {3, 3}, {3, 4}, {2, 2, 2, 2}, 1, true},
    };
    for (size_t i = 0; i < OI_COUNT(settings); i++)
        for (int kind = 0; kind < 16; kind++) {
            run_scaled(&settings[i], kind, kind & 1 ? 5e-5f : 2.5f, i);
            assert_true(!HAS_DOT4 || strncmp(last_body, "oi_dot4_", 8) == 0);
            if (!(kind & 4))
                run_integer(&settings[i], kind, i);
        }
}

/* Row by row, as a line buffer of x is filled: the same sums. */
static void run_turns(const setting *s)
{
    trial t;
    static const oi_dtype wide = OI_I32;
    const shapes z = begin(&t, "conv", s, 1);
    list(&t, "dilations", z.dilations, 2);
    *trial_attr(&t, "acc") = (oi_op_value){.tag = OI_VALUE_DTYPE_LIST, .n = 1, .dtypes = &wide};
    trial_input(&t, false, OI_I8, 1, 4, z.x);
    trial_input(&t, true, OI_I8, 1, 4, z.w);
    const oi_device_info target = {.type = OI_DEVICE_CPU, .cpu = {.isa = trial_folder()->isa}};
    oi_recipe_call call = {.q = &t.q, .is_weight = t.is_weight, .target = &target};
    oi_recipe_plan p;
    t.out = t.outs[0] = trial_operand(OI_I32, 4, z.out);
    t.q.in = t.in;
    t.q.out = t.outs;
    t.q.attrs = t.attrs;
    assert_non_null(oi_recipe_find(&call, &p));
    assert_int_equal(p.row_dim, 2);
    void *packed = trial_room((size_t)p.packings[0].size_bytes), *w[] = {t.data[1]};
    p.packings[0].pack(&p.packings[0], (const void *const *)w, packed);
    const size_t size = trial_bytes(&t.out);
    void *whole = trial_room(size), *parts = trial_room(size);
    trial_parts(&t, &p, &packed, INT32_MAX, whole, body);
    int8_t *x = t.data[0], *ring = t.data[0] = trial_room(trial_bytes(&t.in[0]));
    call.rows = 2;
    call.kept = p.row_step + p.row_to - p.row_from + 1;
    call.kept = call.kept < z.x[2] ? call.kept : z.x[2];
    assert_non_null(oi_recipe_find(&call, &p));
    for (int64_t r = 0; r < z.out[2]; r += 2) {
        const int64_t end = r + 2 < z.out[2] ? r + 2 : z.out[2];
        for (uint32_t i = 0; i < p.n_args; i++)
            if (p.args[i].kind == OI_ARG_ROW || p.args[i].kind == OI_ARG_ROW_END)
                p.args[i].n = p.args[i].kind == OI_ARG_ROW ? r : end;
        memset(ring, 0x55, trial_bytes(&t.in[0]));
        for (int64_t c = 0; c < z.x[0] * z.x[1]; c++)
            for (int64_t y = r * p.row_step + p.row_from; y <= (end - 1) * p.row_step + p.row_to;
                 y++)
                if (y >= 0 && y < z.x[2])
                    memcpy(ring + (c * call.kept + y % call.kept) * z.x[3],
                           x + (c * z.x[2] + y) * z.x[3], (size_t)z.x[3]);
        trial_part(&t, &p, &packed, parts, 0, p.extent, body);
    }
    assert_memory_equal(parts, whole, size);
    free(whole);
    free(parts);
    free(packed);
    free(x);
    free(ring);
    free(t.data[1]);
}

static void test_turns(void **state)
{
    (void)state;
    static const setting settings[] = {
        {NULL, 2, 1, 20, 18, 1, {9, 8}, {1, 1}, {1, 1}, {0}, 1, false},
        {NULL, 2, 1, 20, 18, 1, {15, 34}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, false},
        {NULL, 2, 1, 20, 18, 1, {15, 30}, {3, 3}, {2, 2}, {1, 1, 1, 1}, 1, false},
        {NULL, 2, 2, 3, 17, 1, {11, 8}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, false},
        {NULL, 2, 1, 4, 8, 2, {15, 9}, {3, 3}, {2, 2}, {1, 1, 1, 1}, 1, false},
        {NULL, 2, 1, 4, 4, 4, {15, 30}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, false},
        {NULL, 2, 1, 4, 4, 4, {15, 30}, {3, 3}, {2, 2}, {2, 2, 2, 2}, 2, false},
    };
    for (size_t i = 0; i < OI_COUNT(settings); i++)
        run_turns(&settings[i]);
}

static void test_conv(void **state)
{
    (void)state;
    static const setting settings[] = {
        /* windows of one place: more than a band of them, one, few; odd channels and filters */
        {"oi_bytes_conv", 2, 1, 16, 40, 1, {17, 15}, {1, 1}, {1, 1}, {0}, 1, true},
        {"oi_bytes_conv", 2, 2, 3, 5, 1, {4, 7}, {1, 1}, {1, 1}, {0}, 1, false},
        {"oi_bytes_conv", 2, 1, 33, 70, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 1, true},
        {"oi_bytes_conv", 2, 1, 24, 9, 1, {2, 2}, {1, 1}, {1, 1}, {0}, 1, true},
        {"oi_bytes_conv", 2, 1, 5, 4, 1, {6, 7}, {1, 1}, {2, 2}, {0}, 1, true},
        {"oi_bytes_conv", 2, 1, 20, 8, 1, {9, 12}, {1, 1}, {1, 1}, {1, 0, 1, 2}, 1, true},
        {"oi_bytes_conv", 1, 1, 33, 1, 1, {300}, {1}, {1}, {0}, 1, true},
        {"oi_bytes_conv", 3, 1, 6, 9, 1, {3, 2, 5}, {1, 1, 1}, {1, 1, 1}, {0}, 1, true},
        /* all channels: bands, strides, holes, more padding than numbers */
        {"oi_bytes_conv", 2, 1, 3, 17, 1, {9, 8}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
        {"oi_bytes_conv", 2, 2, 16, 16, 1, {32, 30}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
        {"oi_bytes_conv", 2, 1, 25, 33, 1, {31, 30}, {3, 3}, {2, 2}, {0, 0, 1, 1}, 1, false},
        {"oi_bytes_conv", 2, 1, 1, 64, 1, {49, 10}, {10, 4}, {2, 2}, {4, 1, 5, 1}, 1, true},
        {"oi_bytes_conv", 2, 1, 5, 3, 1, {7, 9}, {2, 5}, {3, 3}, {1, 4, 0, 0}, 1, true},
        {"oi_bytes_conv", 2, 1, 2, 2, 1, {45, 6}, {2, 3}, {4, 1}, {2, 2, 2, 2}, 1, true},
        {"oi_bytes_conv", 2, 1, 4, 34, 1, {30, 9}, {3, 3}, {1, 1}, {2, 2, 2, 2}, 2, true},
        {"oi_bytes_conv", 2, 1, 8, 64, 1, {5, 4}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
        {"oi_bytes_conv", 2, 1, 2, 8, 1, {3, 3}, {5, 5}, {1, 1}, {7, 9, 7, 9}, 1, true},
        {"oi_bytes_conv", 1, 2, 6, 6, 1, {500}, {7}, {1}, {3, 3}, 1, true},
        {"oi_bytes_conv", 1, 1, 6, 6, 1, {80}, {3}, {2}, {1, 1}, 3, false},
        /* groups of channels */
        {"oi_bytes_conv", 2, 1, 8, 12, 4, {9, 8}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
        {"oi_bytes_conv", 2, 2, 6, 40, 2, {9, 8}, {3, 2}, {2, 1}, {1, 1, 1, 1}, 2, true},
        {"oi_bytes_conv", 1, 1, 9, 3, 3, {40}, {3}, {1}, {1, 1}, 1, true},
        {"oi_bytes_conv", 2, 1, 16, 16, 2, {1, 3}, {1, 1}, {1, 1}, {0}, 1, true},
        /* a channel for each filter, or for two */
        {"oi_bytes_conv_depthwise", 2, 1, 6, 6, 6, {25, 5}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
        {"oi_bytes_conv_depthwise", 2, 2, 3, 6, 3, {19, 40}, {3, 2}, {2, 2}, {1, 0, 1, 1}, 1, true},
        {"oi_bytes_conv_depthwise",
         2,
         1,
         2,
         2,
         2,
         {60, 130},
         {5, 5},
         {1, 1},
         {2, 2, 2, 2},
         1,
         false},
        {"oi_bytes_conv_depthwise", 2, 1, 3, 3, 3, {7, 9}, {2, 2}, {3, 3}, {0, 1, 1, 0}, 1, true},
        {"oi_bytes_conv_depthwise", 2, 1, 3, 3, 3, {17, 19}, {4, 3}, {1, 2}, {3, 2, 3, 2}, 2, true},
        {"oi_bytes_conv_depthwise", 2, 1, 3, 3, 3, {2, 2}, {3, 3}, {1, 1}, {6, 9, 6, 9}, 1, true},
        {"oi_bytes_conv_depthwise", 1, 1, 5, 5, 5, {8}, {8}, {1}, {0, 0}, 1, true},
        {"oi_bytes_conv_depthwise", 2, 1, 4, 4, 4, {1, 1}, {1, 1}, {1, 1}, {0}, 1, true},
        /* more than scratch has room for */
        {NULL, 2, 1, 2048, 1, 1, {3, 100}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
        {NULL, 2, 1, 2, 2, 2, {3, 5000}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
    };
    for (size_t i = 0; i < OI_COUNT(settings); i++)
        run(&settings[i], i);
}

/* -- matmul -- */

static void run_matmul(int64_t rows, int64_t k, int64_t m, bool is_turned)
{
    static const oi_dtype wide = OI_I32;
    trial t;
    trial_begin(&t, "matmul", (uint64_t)k);
    *trial_attr(&t, "acc") = (oi_op_value){.tag = OI_VALUE_DTYPE_LIST, .n = 1, .dtypes = &wide};
    trial_attr(&t, "transpose_b")->b = is_turned;
    trial_input(&t, false, OI_I8, 1, 3, (int64_t[]){1, rows, k});
    trial_input(&t, true, OI_I8, 1, 2, is_turned ? (int64_t[]){m, k} : (int64_t[]){k, m});
    assert_true(trial_end(&t, OI_I32, 3, (int64_t[]){1, rows, m}, body));
    assert_true(was("matmul"));
}

static void test_matmul(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 640, 8},  {1, 7, 130}, {2, 8, 8},     {3, 5, 5},
                                       {4, 9, 20},   {5, 33, 2},  {6, 4, 40},    {13, 1, 1},
                                       {20, 65, 70}, {8, 3, 16},  {37, 150, 33}, {300, 640, 40}};
    for (size_t i = 0; i < OI_COUNT(sizes); i++)
        for (int is_turned = 0; is_turned < 2; is_turned++)
            run_matmul(sizes[i][0], sizes[i][1], sizes[i][2], is_turned);
}

/* kind: as above, and bit 8 for one zero point of a row each. */
static void run_qmatmul(int64_t rows, int64_t k, int64_t m, int kind)
{
    trial t;
    const bool is_scaled = kind & 16;
    trial_begin(&t, is_scaled ? "qmatmul" : "matmul_integer", (uint64_t)kind);
    trial_input(&t, false, byte(kind & 1), 1, 2, (int64_t[]){rows, k});
    if (is_scaled)
        scales(&t, 1, 0.02f);
    else
        trial_input(&t, true, byte(kind & 2), 1, 2, (int64_t[]){k, m});
    trial_input(&t, false, byte(kind & 1), 1, kind & 8 ? 1 : 0, &rows);
    if (is_scaled) {
        trial_input(&t, true, byte(kind & 2), 1, 2, (int64_t[]){k, m});
        scales(&t, kind & 8 ? m : 1, 0.003f);
    }
    trial_input(&t, true, byte(kind & 2), 1, kind & 8 ? 1 : 0, &m);
    if (is_scaled) {
        scales(&t, 1, 0.5f);
        trial_input(&t, false, byte(kind & 4), 1, 0, NULL);
    }
    last_body = NULL;
    assert_true(trial_end(&t, is_scaled ? byte(kind & 4) : OI_I32, 2, (int64_t[]){rows, m}, body));
    assert_true(was("qmatmul"));
}

static void test_qmatmul(void **state)
{
    (void)state;
    for (int kind = 0; kind < 32; kind++) {
        run_qmatmul(1, 65, 19, kind);
        run_qmatmul(13, 8, 40, kind);
        run_qmatmul(35, 131, 65, kind);
    }
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),   cmocka_unit_test(test_zero_points),
        cmocka_unit_test(test_dot4),   cmocka_unit_test(test_turns),
        cmocka_unit_test(test_matmul), cmocka_unit_test(test_qmatmul)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
