#include "trial.h"

#include "body/mac.h"

static const char *last_body;
static bool narrows; /* results are bytes, perhaps where x lies */

static void put(void *const *ports, int64_t at, int64_t filter, int32_t sum)
{
    if (narrows)
        ((int8_t *)ports[0])[at] = (int8_t)(sum >> 7 & 127);
    else
        ((int32_t *)ports[0])[at] = sum + (ports[1] ? ((const int32_t *)ports[1])[filter] : 0);
}

static void finish_conv(void *const *ports, int32_t batch, int32_t filter, int32_t place, int32_t i,
                        int32_t sum)
{
    const oi_operand *out = ports[2];
    const int64_t m = out->dims[1], places = trial_count(out) / out->dims[0] / m;
    put(ports, (batch * m + filter) * places + place + i, filter, sum);
}

static void finish_dense(void *const *ports, int32_t batch, int32_t filter, int32_t place,
                         int32_t i, int32_t sum)
{
    const oi_operand *out = ports[2];
    assert_int_equal(place + i, 0);
    put(ports, batch * out->dims[out->rank - 1] + filter, filter, sum);
}

static void body(const char *function, const trial_arg *a)
{
    last_body = function;
    if (strcmp(function, "oi_mac_conv") == 0)
        oi_mac_conv(a[0].in, a[1].in, finish_conv, a[2].in, a[3].out, a[4].n, a[5].n, a[6].n,
                    a[7].n, a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n, a[15].n,
                    a[16].n, a[17].n, a[18].n, a[19].n, a[20].n, a[21].n, a[22].n);
    else if (strcmp(function, "oi_mac_depthwise") == 0)
        oi_mac_depthwise(a[0].in, a[1].in, finish_conv, a[2].in, a[3].out, a[4].n, a[5].n, a[6].n,
                         a[7].n, a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n,
                         a[15].n, a[16].n, a[17].n, a[18].n, a[19].n, a[20].n, a[21].n, a[22].n);
    else if (strcmp(function, "oi_mac_dense") == 0)
        oi_mac_dense(a[0].in, a[1].in, finish_dense, a[2].in, a[3].out, a[4].n, a[5].n, a[6].n,
                     a[7].n);
    else
        fail_msg("%s is not tested", function);
}

/* -- results where x was -- */

static void fill(trial *t, int8_t *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (int8_t)oi_splitmix64(&t->seed);
}

/* The call of a finished trial once more, with bytes of its own: apart, then in place. */
static void run_in_place(trial *t)
{
    const oi_device_info small = {.type = OI_DEVICE_MCU, .mcu = {.stack_bytes = 4096}};
    oi_recipe_plan p;
    assert_non_null(oi_recipe_find(
        &(oi_recipe_call){.q = &t->q, .is_weight = t->is_weight, .target = &small}, &p));
    if (!p.in_place)
        return;
    const int64_t n = trial_count(&t->in[0]), n_w = trial_count(&t->in[1]);
    assert_int_equal(n, trial_count(&t->out));
    int8_t *x = trial_room((size_t)n), *w = trial_room((size_t)n_w), *apart = trial_room((size_t)n);
    void *packed = trial_room((size_t)p.packings[0].size_bytes);
    const void *from[] = {w};
    fill(t, x, n);
    fill(t, w, n_w);
    p.packings[0].pack(&p.packings[0], from, packed);
    t->data[0] = x;
    narrows = true;
    trial_part(t, &p, &packed, apart, 0, 0, body);
    trial_part(t, &p, &packed, x, 0, 0, body);
    narrows = false;
    assert_memory_equal(x, apart, (size_t)n);
    free(x);
    free(w);
    free(apart);
    free(packed);
}

/* -- by rows -- */

/* Rows of every channel as a ring keeps them: row r at r % kept. */
static void keep_rows(const oi_operand *o, const int8_t *all, int64_t kept, int64_t from,
                      int64_t to, int8_t *ring)
{
    const int64_t planes = o->dims[0] * o->dims[1], height = o->dims[2], width = o->dims[3];
    memset(ring, 0x55, (size_t)(planes * kept * width));
    for (int64_t p = 0; p < planes; p++)
        for (int64_t r = from < 0 ? 0 : from; r < to && r < height; r++)
            memcpy(ring + (p * kept + r % kept) * width, all + (p * height + r) * width,
                   (size_t)width);
}

/* The same convolution asked for `rows` rows at a time, with no more of x than those need. */
static void run_rows(trial *t, int64_t rows)
{
    const oi_device_info small = {.type = OI_DEVICE_MCU, .mcu = {.stack_bytes = 4096}};
    oi_recipe_call call = {.q = &t->q, .is_weight = t->is_weight, .target = &small};
    oi_recipe_plan p;
    assert_non_null(oi_recipe_find(&call, &p));
    if (!p.row_dim)
        return;
    const int64_t n = trial_count(&t->in[0]), n_w = trial_count(&t->in[1]);
    const size_t size = (size_t)trial_count(&t->out);
    int8_t *whole = trial_room(size), *parts = trial_room(size);
    int8_t *x = trial_room((size_t)n), *w = trial_room((size_t)n_w);
    void *packed = trial_room((size_t)p.packings[0].size_bytes);
    const void *from[] = {w};
    fill(t, x, n);
    fill(t, w, n_w);
    narrows = true;
    t->data[0] = x;
    p.packings[0].pack(&p.packings[0], from, packed);
    trial_part(t, &p, &packed, whole, 0, 0, body);
    call.rows = rows;
    call.kept = (rows - 1) * p.row_step + p.row_to - p.row_from + 1;
    call.kept = call.kept < t->in[0].dims[2] ? call.kept : t->in[0].dims[2];
    assert_non_null(oi_recipe_find(&call, &p));
    t->data[0] = trial_room((size_t)n);
    for (int64_t r = 0; r < t->out.dims[2]; r += rows) {
        const int64_t end = r + rows < t->out.dims[2] ? r + rows : t->out.dims[2];
        for (uint32_t i = 0; i < p.n_args; i++)
            if (p.args[i].kind == OI_ARG_ROW || p.args[i].kind == OI_ARG_ROW_END)
                p.args[i].n = p.args[i].kind == OI_ARG_ROW ? r : end;
        keep_rows(&t->in[0], x, call.kept, r * p.row_step + p.row_from,
                  (end - 1) * p.row_step + p.row_to + 1, t->data[0]);
        trial_part(t, &p, &packed, parts, 0, 0, body);
    }
    assert_memory_equal(whole, parts, size);
    narrows = false;
    free(t->data[0]);
    free(x);
    free(w);
    free(whole);
    free(parts);
    free(packed);
}

/* -- convolutions -- */

typedef struct setting {
    const char *body; /* NULL: none takes it */
    uint32_t rank;    /* spatial axes */
    int64_t batches, c, m, group, in[2], kernel[2], strides[2], pads[4], dilation;
    bool has_bias;
} setting;

static void list(trial *t, const char *name, const int64_t *items, uint32_t n)
{
    *trial_attr(t, name) = (oi_op_value){.tag = OI_VALUE_INT_LIST, .n = n, .ints = items};
}

static void run(const setting *s, uint64_t seed)
{
    static const oi_dtype wide = OI_I32;
    trial t;
    const uint32_t n = s->rank;
    const int64_t dilations[] = {s->dilation, s->dilation};
    int64_t x[4] = {s->batches, s->c}, w[4] = {s->m, s->c / s->group}, out[4] = {s->batches, s->m};
    for (uint32_t a = 0; a < n; a++) {
        int64_t span = (s->kernel[a] - 1) * s->dilation + 1;
        x[2 + a] = s->in[a];
        w[2 + a] = s->kernel[a];
        out[2 + a] = (s->in[a] + s->pads[a] + s->pads[n + a] - span) / s->strides[a] + 1;
    }
    trial_begin(&t, "conv", seed);
    t.is_small = true;
    list(&t, "strides", s->strides, n);
    list(&t, "pads", s->pads, 2 * n);
    list(&t, "dilations", dilations, n);
    *trial_attr(&t, "group") = (oi_op_value){.tag = OI_VALUE_INT, .i = s->group};
    *trial_attr(&t, "acc") = (oi_op_value){.tag = OI_VALUE_DTYPE_LIST, .n = 1, .dtypes = &wide};
    trial_input(&t, false, OI_I8, 1, 2 + n, x);
    trial_input(&t, true, OI_I8, 1, 2 + n, w);
    if (s->has_bias)
        trial_input(&t, true, OI_I32, 1, 1, &s->m);
    last_body = NULL;
    bool takes = trial_end(&t, OI_I32, 2 + n, out, body);
    assert_int_equal(takes, s->body != NULL);
    if (takes) {
        assert_string_equal(last_body, s->body);
        for (int64_t rows = 1; s->rank == 2 && rows < 4; rows++)
            run_rows(&t, rows);
        run_in_place(&t);
    }
}

static void test_conv(void **state)
{
    (void)state;
    static const setting settings[] = {
        /* windows of one place: tiles, with and without a rest; odd channels and filters */
        {"oi_mac_conv", 2, 1, 8, 8, 1, {5, 5}, {1, 1}, {1, 1}, {0}, 1, true},
        {"oi_mac_conv", 2, 2, 3, 5, 1, {4, 7}, {1, 1}, {1, 1}, {0}, 1, false},
        {"oi_mac_conv", 2, 1, 5, 4, 1, {6, 7}, {1, 1}, {2, 2}, {0}, 1, true},
        {"oi_mac_conv", 1, 1, 33, 1, 1, {1}, {1}, {1}, {0}, 1, true},
        /* all channels */
        {"oi_mac_conv", 2, 1, 3, 4, 1, {9, 8}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
        {"oi_mac_conv", 2, 2, 4, 4, 1, {6, 7}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
        {"oi_mac_conv", 2, 1, 2, 3, 1, {9, 10}, {3, 3}, {2, 2}, {0, 0, 1, 1}, 1, false},
        {"oi_mac_conv", 2, 1, 1, 6, 1, {49, 10}, {10, 4}, {2, 2}, {4, 1, 5, 1}, 1, true},
        {"oi_mac_conv", 2, 1, 5, 3, 1, {7, 9}, {2, 5}, {3, 3}, {1, 4, 0, 0}, 1, true},
        {"oi_mac_conv", 2, 1, 2, 2, 1, {5, 6}, {5, 3}, {4, 1}, {2, 2, 2, 2}, 1, true},
        {"oi_mac_conv", 1, 2, 6, 6, 1, {20}, {7}, {1}, {3, 3}, 1, true},
        {"oi_mac_conv", 1, 1, 6, 6, 1, {8}, {3}, {1}, {1, 1}, 1, false},
        /* a channel for each filter, or for two */
        {"oi_mac_depthwise", 2, 1, 6, 6, 6, {25, 5}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
        {"oi_mac_depthwise", 2, 2, 3, 6, 3, {9, 8}, {3, 2}, {2, 2}, {1, 0, 1, 1}, 1, true},
        {"oi_mac_depthwise", 2, 1, 2, 2, 2, {60, 30}, {5, 5}, {1, 1}, {2, 2, 2, 2}, 1, false},
        {"oi_mac_depthwise", 2, 1, 3, 3, 3, {7, 9}, {2, 2}, {3, 3}, {0, 1, 1, 0}, 1, true},
        {"oi_mac_depthwise", 1, 1, 5, 5, 5, {8}, {8}, {1}, {0, 0}, 1, true},
        /* groups of channels, holes, too wide for the stack */
        {NULL, 2, 1, 4, 4, 2, {9, 8}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
        {NULL, 2, 1, 4, 4, 1, {9, 8}, {3, 3}, {1, 1}, {2, 2, 2, 2}, 2, true},
        {NULL, 2, 1, 64, 4, 1, {9, 40}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 1, true},
    };
    for (size_t i = 0; i < OI_COUNT(settings); i++)
        run(&settings[i], i);
}

/* -- matmul -- */

static void test_matmul(void **state)
{
    (void)state;
    static const oi_dtype wide = OI_I32;
    static const int64_t sizes[][3] = {{1, 640, 8}, {1, 7, 13}, {2, 8, 8}, {3, 5, 5}, {5, 33, 2}};
    for (size_t i = 0; i < OI_COUNT(sizes); i++) {
        trial t;
        trial_begin(&t, "matmul", i);
        t.is_small = true;
        *trial_attr(&t, "acc") = (oi_op_value){.tag = OI_VALUE_DTYPE_LIST, .n = 1, .dtypes = &wide};
        trial_input(&t, false, OI_I8, 1, 2, (int64_t[]){sizes[i][0], sizes[i][1]});
        trial_input(&t, true, OI_I8, 1, 2, (int64_t[]){sizes[i][1], sizes[i][2]});
        const int64_t out[] = {sizes[i][0], sizes[i][2]};
        assert_true(trial_end(&t, OI_I32, 2, out, body));
        assert_string_equal(last_body, "oi_mac_dense");
        run_in_place(&t);
    }
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conv), cmocka_unit_test(test_matmul)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
