/* oinf_writer_test.c: exact bytes, every value tag there and back, and what the writer refuses. */
#define _XOPEN_SOURCE 700
#include "oinf/oinf_testing.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>

/* The package of the format's worked example: D := 16 and zero: f32[16]. */
static void worked_example(void **state)
{
    (void)state;
    static const char hex[] = "4F494E4600"
                              "02000000"
                              "00000000"
                              "01000000"
                              "00000000"
                              "01000000"
                              "00000000"
                              "4800000000000000"
                              "5800000000000000"
                              "5800000000000000"
                              "9800000000000000"
                              "D800000000000000"
                              "000000"
                              "01000000"
                              "44000000"
                              "1000000000000000"
                              "04000000"
                              "7A65726F"
                              "0A000000"
                              "01000000"
                              "01000000"
                              "1000000000000000"
                              "4000000000000000"
                              "9800000000000000"
                              "0000000000000000"
                              "0000000000000000"
                              "00000000";
    const float zero[16] = {0};
    const uint64_t dim = 16;
    oi_writer *w = oi_writer_new();
    oi_writer_sizevar(w, "D", 16, NULL);
    oi_writer_add_tensor(
        w,
        &(oi_writer_tensor){.name = "zero", .dtype = OI_F32, .rank = 1, .dims = &dim, .data = zero},
        NULL);
    bytes b = finish(w);
    assert_int_equal(b.n, 216);
    for (size_t i = 0; i < b.n; i++) {
        unsigned want = 0;
        if (2 * i + 1 < sizeof hex)
            sscanf(hex + 2 * i, "%2x", &want);
        if (b.at[i] != want)
            fail_msg("byte %zu is %02x, wanted %02x", i, b.at[i], want);
    }
    free(b.at);
}

/* -- every value tag -- */

/* Five values each, ends of the range among them; chosen to be exact in every float. */
static void fill(oi_dtype t, uint8_t *data, double values[5])
{
    const oi_dtype_info *info = oi_dtype_get(t);
    const double floats[] = {0.5, -1.75, INFINITY, 0, -0.0625};
    for (int e = 0; e < 5; e++) {
        double v = info->cls == OI_CLASS_FLOAT ? floats[e]
                   : t == OI_T1                ? (e % 2 ? 1 : -1)
                   : e == 0                    ? (double)info->min
                   : e == 1 && t != OI_U64     ? (double)info->max
                                               : e % 2;
        if (t == OI_I1)
            v = -(e % 2);
        if (e == 1 && t == OI_I64)
            v = 9007199254740992.0;
        values[e] = v;
        assert_true(oi_element_set_f64(t, data, (uint64_t)e, v));
    }
}

static void every_tag(void **state)
{
    (void)state;
    static uint8_t data[OI_DTYPE_COUNT][40];
    double values[OI_DTYPE_COUNT][5];
    const uint64_t five = 5;
    oi_writer *w = oi_writer_new();
    int n = 0;
    for (oi_dtype t = 1; t < OI_DTYPE_COUNT; t++) {
        if (!oi_dtype_is_tensor(t) || t == OI_BITSET)
            continue;
        fill(t, data[t], values[t]);
        const oi_view v = {.dtype = t, .rank = 1, .dims = &five, .data = data[t]};
        const oi_writer_tensor tensor = {
            .name = oi_dtype_name(t), .dtype = t, .rank = 1, .dims = &five, .data = data[t]};
        char key[16];
        assert_int_equal(oi_writer_add_tensor(w, &tensor, NULL), OI_OK);
        snprintf(key, sizeof key, "nd.%s", oi_dtype_name(t));
        assert_int_equal(oi_writer_ndarray(w, key, &v, NULL), OI_OK);
        assert_int_equal(oi_writer_f64(w, oi_dtype_name(t), t, values[t][1], NULL), OI_OK);
        n++;
    }
    assert_int_equal(n, 22);
    bytes b = finish(w);
    oi_model *m = NULL;
    assert_int_equal(oi_model_open_memory(b.at, b.n, &(oi_model_options){.strict = true}, &m, NULL),
                     OI_OK);
    for (oi_dtype t = 1; t < OI_DTYPE_COUNT; t++) {
        if (!oi_dtype_is_tensor(t) || t == OI_BITSET)
            continue;
        oi_view tensor, nd, scalar;
        char key[16];
        snprintf(key, sizeof key, "nd.%s", oi_dtype_name(t));
        assert_int_equal(oi_model_tensor(m, oi_dtype_name(t), &tensor, NULL), OI_OK);
        assert_int_equal(oi_model_meta(m, key, &nd, NULL), OI_OK);
        assert_int_equal(oi_model_meta(m, oi_dtype_name(t), &scalar, NULL), OI_OK);
        assert_int_equal(tensor.dtype, t);
        assert_int_equal(nd.dtype, t);
        assert_int_equal(scalar.dtype, t);
        assert_int_equal(tensor.size_bytes, nd.size_bytes);
        for (int e = 0; e < 5; e++) {
            assert_true(oi_element_f64(t, tensor.data, (uint64_t)e) == values[t][e]);
            assert_true(oi_element_f64(t, nd.data, (uint64_t)e) == values[t][e]);
        }
        assert_true(oi_element_f64(t, scalar.data, 0) == values[t][1]);
    }
    /* read and written again: the same bytes */
    oi_writer *again = oi_writer_new();
    assert_int_equal(oi_writer_add_model(again, m, NULL), OI_OK);
    bytes c = finish(again);
    assert_int_equal(b.n, c.n);
    assert_memory_equal(b.at, c.at, b.n);
    oi_model_close(m);
    free(b.at);
    free(c.at);
}

static void sub_byte_packing(void **state)
{
    (void)state;
    const struct {
        oi_dtype type;
        uint64_t n;
        uint8_t in[2], out[2]; /* unused bits are cleared */
    } cases[] = {{OI_I4, 4, {0xfe, 0x10}, {0xfe, 0x10}},
                 {OI_I2, 3, {0xce}, {0x0e}},
                 {OI_U1, 4, {0xf6}, {0x06}},
                 {OI_U4, 3, {0x21, 0xf3}, {0x21, 0x03}},
                 {OI_T1, 5, {0xff}, {0x1f}},
                 {OI_T2, 5, {0x55, 0xfd}, {0x55, 0x01}}};
    for (size_t i = 0; i < OI_COUNT(cases); i++) {
        oi_writer *w = oi_writer_new();
        const oi_view v = {
            .dtype = cases[i].type, .rank = 1, .dims = &cases[i].n, .data = cases[i].in};
        const oi_writer_tensor t = {.name = "t",
                                    .dtype = cases[i].type,
                                    .rank = 1,
                                    .dims = &cases[i].n,
                                    .data = cases[i].in};
        oi_writer_ndarray(w, "k", &v, NULL);
        oi_writer_add_tensor(w, &t, NULL);
        oi_writer_i64(w, "s", OI_I4, -1, NULL);
        bytes b = finish(w);
        assert_memory_equal(b.at + oi_get_u64(b.at + entry(b, "k") + 16) + 16, cases[i].out, 2);
        assert_memory_equal(b.at + oi_get_u64(b.at + entry(b, "t") + 28), cases[i].out, 2);
        assert_int_equal(b.at[oi_get_u64(b.at + entry(b, "s") + 16)], 0x0f);
        expect_both(b, "", "");
        free(b.at);
    }
}

/* -- order, text, quant -- */

static void order_does_not_matter(void **state)
{
    (void)state;
    static const char *const names[] = {"b", "a.b", "a-b", "a_b", "B", "a", "aa", "0"};
    bytes first = {0};
    for (size_t turn = 0; turn < OI_COUNT(names); turn++) {
        oi_writer *w = oi_writer_new();
        for (size_t i = 0; i < OI_COUNT(names); i++) {
            const char *name = names[(i * 3 + turn) % OI_COUNT(names)];
            const oi_writer_tensor t = {.name = name, .dtype = OI_U8, .data = name};
            assert_int_equal(oi_writer_sizevar(w, name, (uint64_t)name[0], NULL), OI_OK);
            assert_int_equal(oi_writer_text(w, name, name, strlen(name), NULL), OI_OK);
            assert_int_equal(oi_writer_add_tensor(w, &t, NULL), OI_OK);
        }
        bytes b = finish(w);
        if (!turn) {
            oi_model *m = NULL;
            assert_int_equal(oi_model_open_memory(b.at, b.n, NULL, &m, NULL), OI_OK);
            for (size_t i = 1; i < OI_COUNT(names); i++)
                assert_true(strcmp(oi_model_tensor_name(m, i - 1), oi_model_tensor_name(m, i)) < 0);
            oi_model_close(m);
            first = b;
            continue;
        }
        assert_int_equal(b.n, first.n);
        assert_memory_equal(b.at, first.at, b.n);
        free(b.at);
    }
    free(first.at);
}

static void text_rule(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        oi_dtype type;
    } cases[] = {{"clamp_up", OI_STR}, {"A-z.0_9", OI_STR}, {"", OI_NDARRAY},
                 {"a b", OI_NDARRAY},  {"a/b", OI_NDARRAY}, {"\u00e9", OI_NDARRAY},
                 {"\"", OI_NDARRAY}};
    for (size_t i = 0; i < OI_COUNT(cases); i++) {
        oi_writer *w = oi_writer_new();
        oi_model *m = NULL;
        oi_meta_info e;
        char *text = NULL;
        assert_int_equal(oi_writer_text(w, "k", cases[i].text, strlen(cases[i].text), NULL), OI_OK);
        bytes b = finish(w);
        assert_int_equal(oi_model_open_memory(b.at, b.n, NULL, &m, NULL), OI_OK);
        assert_int_equal(oi_model_meta_info(m, "k", &e), OI_OK);
        assert_int_equal(e.type, cases[i].type);
        assert_int_equal(oi_model_meta_text(m, "k", &text, NULL, NULL), OI_OK);
        assert_string_equal(text, cases[i].text);
        oi_free(text);
        oi_model_close(m);
        free(b.at);
    }
}

static void quant_forms(void **state)
{
    (void)state;
    const uint64_t dims[] = {2, 3};
    const float scales[] = {1, 2, 3};
    const int32_t zero_points[] = {-1, 0, 1};
    const oi_quant forms[] = {
        {OI_SYMMETRIC, OI_PER_TENSOR, OI_QUANT_NONE, 0, 0, 1, 0, scales, NULL},
        {OI_SYMMETRIC, OI_PER_CHANNEL, OI_QUANT_NONE, 1, 0, 3, 0, scales, NULL},
        {OI_ASYMMETRIC, OI_PER_TENSOR, OI_QUANT_NONE, 0, 0, 1, 0, scales, NULL},
        {OI_ASYMMETRIC, OI_PER_TENSOR, OI_PER_TENSOR, 0, 0, 1, 1, scales, zero_points},
        {OI_ASYMMETRIC, OI_PER_CHANNEL, OI_PER_CHANNEL, 1, 1, 3, 3, scales, zero_points},
    };
    oi_writer *w = oi_writer_new();
    for (size_t i = 0; i < OI_COUNT(forms); i++) {
        char name[] = {'q', (char)('0' + i), 0};
        /* also without data, and followed by others: the order that older writers got wrong */
        const oi_writer_tensor t = {.name = name,
                                    .dtype = OI_U8,
                                    .rank = 2,
                                    .dims = dims,
                                    .data = i % 2 ? "123456" : NULL,
                                    .quant = &forms[i]};
        assert_int_equal(oi_writer_add_tensor(w, &t, NULL), OI_OK);
    }
    bytes b = finish(w);
    oi_model *m = NULL;
    assert_int_equal(oi_model_open_memory(b.at, b.n, &(oi_model_options){.strict = true}, &m, NULL),
                     OI_OK);
    for (size_t i = 0; i < OI_COUNT(forms); i++) {
        oi_tensor_info t;
        assert_int_equal(oi_model_tensor_info_at(m, i, &t), OI_OK);
        assert_int_equal(t.has_data, i % 2);
        assert_int_equal(t.quant->scheme, forms[i].scheme);
        assert_int_equal(t.quant->scale_mode, forms[i].scale_mode);
        assert_int_equal(t.quant->zero_point_mode, forms[i].zero_point_mode);
        assert_int_equal(t.quant->scale_axis, forms[i].scale_axis);
        assert_int_equal(t.quant->n_scales, forms[i].n_scales);
        assert_int_equal(t.quant->n_zero_points, forms[i].n_zero_points);
        assert_memory_equal(t.quant->scales, scales, 4 * forms[i].n_scales);
        if (forms[i].n_zero_points)
            assert_memory_equal(t.quant->zero_points, zero_points, 4 * forms[i].n_zero_points);
        if (t.has_data) /* its quant follows its data */
            assert_int_equal(t.quant_offset, t.data_offset + 8);
    }
    oi_model_close(m);
    free(b.at);
}

/* -- refusals -- */

static void refused(oi_status status, oi_diag *d, const char *part)
{
    assert_int_equal(status, OI_ERR_INPUT);
    if (!strstr(oi_diag_at(d, 0).text, part))
        fail_msg("wanted \"%s\", found \"%s\"", part, oi_diag_at(d, 0).text);
    assert_memory_equal(oi_diag_at(d, 0).text, "oinf: ", 6);
    oi_diag_clear(d);
}

static void refusals(void **state)
{
    (void)state;
    oi_writer *w = oi_writer_new();
    oi_diag *d = oi_diag_new();
    const uint64_t dims[65] = {1ull << 32, 1ull << 32}, three = 3, huge = INT64_MAX;
    const oi_view bad_bool = {.dtype = OI_BOOL, .rank = 1, .dims = &three, .data = "\1\0\2"};
    const oi_view many = {.dtype = OI_U8, .rank = 65, .dims = dims, .data = "x"};
    const oi_view big = {.dtype = OI_U8, .rank = 2, .dims = dims, .data = "x"};
    const oi_view bits = {.dtype = OI_BITSET, .data = "x"};
    put_sample(w);
    refused(oi_writer_sizevar(w, "B", 1, d), d, "sizevar 'B': is there already");
    refused(oi_writer_text(w, "mode", "x", 1, d), d, "metadata 'mode': is there already");
    refused(oi_writer_add_tensor(w, &(oi_writer_tensor){.name = "a", .dtype = OI_U8}, d), d,
            "tensor 'a': is there already");
    refused(oi_writer_sizevar(w, "a b", 1, d), d, "sizevar 'a b': names are made of");
    refused(oi_writer_sizevar(w, "", 1, d), d, "names are made of");
    char *name = malloc(65537);
    memset(name, 'n', 65536);
    name[65536] = '\0';
    refused(oi_writer_sizevar(w, name, 1, d), d, "a name of 65536 bytes, at most 65535");
    name[65535] = '\0';
    assert_int_equal(oi_writer_sizevar(w, name, 1, d), OI_OK);
    free(name);
    refused(oi_writer_u64(w, "x", OI_U8, 256, d), d, "the value does not fit u8");
    refused(oi_writer_i64(w, "x", OI_T1, 0, d), d, "the value does not fit t1");
    refused(oi_writer_f64(w, "x", OI_I32, 0.5, d), d, "the value does not fit i32");
    refused(oi_writer_u64(w, "x", OI_STR, 1, d), d, "str is not a scalar type");
    refused(oi_writer_u64(w, "x", OI_BITSET, 1, d), d, "bitset is not a scalar type");
    refused(oi_writer_text(w, "x", "\xff", 1, d), d, "not UTF-8 without NUL");
    refused(oi_writer_text(w, "x", "a\0b", 3, d), d, "not UTF-8 without NUL");
    refused(oi_writer_ndarray(w, "x", &bad_bool, d), d, "the stored bits are no bool");
    refused(oi_writer_ndarray(w, "x", &many, d), d, "65 dims, at most 64");
    refused(oi_writer_ndarray(w, "x", &big, d), d, "the dims make it too large");
    refused(oi_writer_ndarray(w, "x", &bits, d), d, "bitset is not an element type to write");
    refused(oi_writer_add_tensor(w, &(oi_writer_tensor){.name = "x", .dtype = OI_NDARRAY}, d), d,
            "ndarray is not an element type to write");
    refused(oi_writer_add_tensor(
                w, &(oi_writer_tensor){.name = "x", .dtype = OI_F64, .rank = 1, .dims = &huge}, d),
            d, "the dims make it too large");
    assert_int_equal(
        oi_writer_ndarray(w, "x", &(oi_view){.dtype = OI_U8, .rank = 1, .dims = &huge, .data = "x"},
                          d),
        OI_ERR_ENV);
    oi_diag_free(d);
    bytes b = finish(w); /* none of it left a trace */
    oi_model *m = NULL;
    assert_int_equal(oi_model_open_memory(b.at, b.n, NULL, &m, NULL), OI_OK);
    assert_int_equal(oi_model_n_sizevars(m), 3);
    assert_int_equal(oi_model_n_metadata(m), 6);
    assert_int_equal(oi_model_n_tensors(m), 5);
    oi_model_close(m);
    free(b.at);
}

static void refused_quant(void **state)
{
    (void)state;
    oi_writer *w = oi_writer_new();
    oi_diag *d = oi_diag_new();
    const uint64_t dims[] = {2, 3};
    const float scales[] = {1, -1, NAN};
    const int32_t zero_points[3] = {0};
    const struct {
        oi_quant q;
        const char *part;
    } cases[] = {
        {{7, OI_PER_TENSOR, 0, 0, 0, 1, 0, scales, NULL}, "quant: scheme"},
        {{1, OI_QUANT_NONE, 0, 0, 0, 1, 0, scales, NULL}, "quant: scale: its mode"},
        {{1, OI_PER_TENSOR, 0, 1, 0, 1, 0, scales, NULL}, "its axis is not 0"},
        {{1, OI_PER_TENSOR, 0, 0, 0, 2, 0, scales, NULL}, "its count is not 1"},
        {{1, OI_PER_CHANNEL, 0, 0, 0, 2, 0, scales, NULL}, "scale -1 is not finite and > 0"},
        {{2, OI_PER_CHANNEL, 2, 1, 1, 3, 2, scales, zero_points}, "its axis and count are not"},
    };
    for (size_t i = 0; i < OI_COUNT(cases); i++) {
        const oi_writer_tensor t = {
            .name = "x", .dtype = OI_I8, .rank = 2, .dims = dims, .quant = &cases[i].q};
        refused(oi_writer_add_tensor(w, &t, d), d, cases[i].part);
    }
    oi_diag_free(d);
    oi_writer_free(w);
}

static void wrong_calls(void **state)
{
    (void)state;
    oi_writer *w = oi_writer_new();
    const uint64_t one = 1;
    const oi_quant no_scales = {1, OI_PER_TENSOR, 0, 0, 0, 1, 0, NULL, NULL};
    const float scale = 1;
    const oi_quant no_zps = {2, OI_PER_TENSOR, 1, 0, 0, 1, 1, &scale, NULL};
    void *p;
    size_t n;
    oi_writer_free(NULL);
    assert_int_equal(oi_writer_sizevar(NULL, "x", 1, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_sizevar(w, NULL, 1, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_u64(w, NULL, OI_U8, 1, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_bitset(w, "x", NULL, 1, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_text(w, "x", NULL, 1, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_text(w, NULL, "x", 1, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_ndarray(w, "x", NULL, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_ndarray(w, NULL, &(oi_view){.dtype = OI_U8}, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_ndarray(w, "x", &(oi_view){.dtype = OI_U8}, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_ndarray(w, "x", &(oi_view){.dtype = OI_U8, .rank = 1}, NULL),
                     OI_ERR_USAGE);
    assert_int_equal(oi_writer_add_tensor(NULL, NULL, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_add_tensor(w, NULL, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_add_tensor(w, &(oi_writer_tensor){.dtype = OI_U8}, NULL),
                     OI_ERR_USAGE);
    assert_int_equal(
        oi_writer_add_tensor(w, &(oi_writer_tensor){.name = "x", .dtype = OI_U8, .rank = 1}, NULL),
        OI_ERR_USAGE);
    const oi_quant *missing[] = {&no_scales, &no_zps};
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            oi_writer_add_tensor(
                w,
                &(oi_writer_tensor){
                    .name = "x", .dtype = OI_U8, .rank = 1, .dims = &one, .quant = missing[i]},
                NULL),
            OI_ERR_USAGE);
    assert_int_equal(oi_writer_add_model(w, NULL, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_add_model(NULL, NULL, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_finish(w, NULL, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_finish(NULL, "x", NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_finish_memory(NULL, &p, &n, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_finish_memory(w, NULL, &n, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_writer_finish_memory(w, &p, NULL, NULL), OI_ERR_USAGE);
    oi_writer_free(w);
}

/* -- streaming -- */

typedef struct stream {
    uint64_t next;    /* where the next call must begin */
    uint64_t fail_at; /* refuse from here on */
    uint8_t mask;
} stream;

static oi_status read_stream(void *ctx, uint64_t offset, void *buf, size_t n, oi_diag *d)
{
    stream *s = ctx;
    assert_int_equal(offset, s->next);
    if (offset + n > s->fail_at)
        return oi_diag_error(d, (oi_place){0}, "", "the source ran dry");
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)buf)[i] = (uint8_t)((offset + i) * 7) & s->mask;
    s->next += n;
    return OI_OK;
}

static void streamed_file(void **state)
{
    (void)state;
    const uint64_t size = 5 * OI_OINF_PIECE + 11;
    stream s = {.fail_at = UINT64_MAX, .mask = 0xff};
    const oi_writer_tensor t = {
        .name = "s", .dtype = OI_U8, .rank = 1, .dims = &size, .read = read_stream, .read_ctx = &s};
    oi_writer *w = oi_writer_new();
    char *text = malloc(3 * OI_OINF_PIECE); /* metadata larger than the buffer, too */
    memset(text, 'y', 3 * OI_OINF_PIECE);
    assert_int_equal(oi_writer_text(w, "y", text, 3 * OI_OINF_PIECE, NULL), OI_OK);
    assert_int_equal(oi_writer_add_tensor(w, &t, NULL), OI_OK);
    assert_int_equal(oi_writer_finish(w, test_path, NULL), OI_OK);
    s.next = 0;
    bytes b = finish(w);
    char *file = NULL;
    size_t n = 0;
    assert_int_equal(oi_file_read(test_path, 1 << 20, &file, &n, NULL), OI_OK);
    assert_int_equal(n, b.n);
    assert_memory_equal(file, b.at, n);
    for (uint64_t i = 0; i < size; i += 997)
        assert_int_equal((uint8_t)file[n - oi_align8(size) + i], (uint8_t)(i * 7));
    free(file);
    free(text);
    free(b.at);
}

/* A source that fails, values that are none: the old file stays, no other appears. */
static void nothing_half_written(void **state)
{
    (void)state;
    const uint64_t size = 3 * OI_OINF_PIECE;
    const struct {
        oi_dtype type;
        stream s;
        const char *part;
    } cases[] = {{OI_U8, {.fail_at = 2 * OI_OINF_PIECE, .mask = 0xff}, "the source ran dry"},
                 {OI_BOOL,
                  {.fail_at = UINT64_MAX, .mask = 0xff},
                  "tensor 's': the stored bits are no bool"}};
    assert_int_equal(oi_file_write(test_path, "old", 3, NULL), OI_OK);
    for (size_t i = 0; i < OI_COUNT(cases); i++)
        for (int memory = 0; memory < 2; memory++) {
            stream s = cases[i].s;
            const oi_writer_tensor t = {.name = "s",
                                        .dtype = cases[i].type,
                                        .rank = 1,
                                        .dims = &size,
                                        .read = read_stream,
                                        .read_ctx = &s};
            oi_writer *w = oi_writer_new();
            oi_diag *d = oi_diag_new();
            void *p = NULL;
            size_t n;
            assert_int_equal(oi_writer_add_tensor(w, &t, NULL), OI_OK);
            assert_int_equal(memory ? oi_writer_finish_memory(w, &p, &n, d)
                                    : oi_writer_finish(w, test_path, d),
                             OI_ERR_INPUT);
            assert_null(p);
            assert_non_null(strstr(oi_diag_at(d, 0).text, cases[i].part));
            oi_diag_free(d);
            oi_writer_free(w);
        }
    struct stat st;
    assert_int_equal(stat(test_path, &st), 0);
    assert_int_equal(st.st_size, 3);
}

static void full_disk(void **state)
{
    (void)state;
    oi_diag *d = oi_diag_new();
    const uint64_t size = 3 * OI_OINF_PIECE;
    stream s = {.fail_at = UINT64_MAX, .mask = 0xff};
    const oi_writer_tensor t = {
        .name = "s", .dtype = OI_U8, .rank = 1, .dims = &size, .read = read_stream, .read_ctx = &s};
    oi_writer *w = oi_writer_new();
    put_sample(w);
    assert_int_equal(oi_writer_finish(w, "/dev/full", d), OI_ERR_ENV);
    assert_non_null(strstr(oi_diag_at(d, 0).text, "cannot write: No space left on device"));
    assert_int_equal(oi_writer_add_tensor(w, &t, NULL), OI_OK);
    assert_int_equal(oi_writer_finish(w, "/dev/full", NULL), OI_ERR_ENV);
    assert_true(s.next < size); /* it gave up early */
    assert_int_equal(oi_writer_finish(w, "/nowhere/x.oinf", NULL), OI_ERR_ENV);
    oi_writer_free(w);
    oi_diag_free(d);
}

/* Sizes that no file can have are noticed before anything is written. */
static void too_large_together(void **state)
{
    (void)state;
    oi_writer *w = oi_writer_new();
    oi_diag *d = oi_diag_new();
    stream s = {.fail_at = 0};
    const uint64_t size = INT64_MAX / 2;
    for (char name[] = "a"; name[0] <= 'c'; name[0]++) {
        const oi_writer_tensor t = {.name = name,
                                    .dtype = OI_U8,
                                    .rank = 1,
                                    .dims = &size,
                                    .read = read_stream,
                                    .read_ctx = &s};
        assert_int_equal(oi_writer_add_tensor(w, &t, NULL), OI_OK);
    }
    assert_int_equal(oi_writer_finish(w, test_path, d), OI_ERR_ENV);
    assert_non_null(strstr(oi_diag_at(d, 0).text, "the package would pass 2^63 bytes"));
    oi_diag_free(d);
    oi_writer_free(w);
    w = oi_writer_new();
    const oi_writer_tensor t = {.name = "one",
                                .dtype = OI_U8,
                                .rank = 1,
                                .dims = &size,
                                .read = read_stream,
                                .read_ctx = &s};
    void *p;
    size_t n;
    assert_int_equal(oi_writer_add_tensor(w, &t, NULL), OI_OK);
    assert_int_equal(oi_writer_finish_memory(w, &p, &n, NULL), OI_ERR_ENV);
    oi_writer_free(w);
}

/* What only a lenient reader accepts is not copied into a new package. */
static void copies_only_what_is_clean(void **state)
{
    (void)state;
    const struct {
        const char *name;
        size_t offset;
        uint64_t value;
        unsigned width;
        const char *part;
    } cases[] = {{"", 76, '/', 1, "sizevar '/': names are made of"},
                 {"u", 0, OI_BITSET, 4, "tensor 'u': bitset is not an element type"}};
    for (size_t i = 0; i < OI_COUNT(cases); i++) {
        bytes b = sample();
        patch(b, (cases[i].name[0] ? entry(b, cases[i].name) : 0) + cases[i].offset, cases[i].width,
              cases[i].value);
        oi_model *m = NULL;
        oi_diag *d = oi_diag_new();
        oi_writer *w = oi_writer_new();
        assert_int_equal(oi_model_open_memory(b.at, b.n, NULL, &m, NULL), OI_OK);
        refused(oi_writer_add_model(w, m, d), d, cases[i].part);
        oi_diag_free(d);
        oi_writer_free(w);
        oi_model_close(m);
        free(b.at);
    }
    /* a bool of 2 as metadata */
    bytes b = sample();
    patch(b, oi_get_u64(b.at + entry(b, "flag") + 16), 1, 2);
    oi_model *m = NULL;
    oi_diag *d = oi_diag_new();
    oi_writer *w = oi_writer_new();
    assert_int_equal(oi_model_open_memory(b.at, b.n, NULL, &m, NULL), OI_OK);
    refused(oi_writer_add_model(w, m, d), d, "metadata 'flag': the stored bits are no bool");
    oi_diag_free(d);
    oi_writer_free(w);
    oi_model_close(m);
    free(b.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_example),
        cmocka_unit_test(every_tag),
        cmocka_unit_test(sub_byte_packing),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(text_rule),
        cmocka_unit_test(quant_forms),
        cmocka_unit_test(refusals),
        cmocka_unit_test(refused_quant),
        cmocka_unit_test(wrong_calls),
        cmocka_unit_test(streamed_file),
        cmocka_unit_test(nothing_half_written),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(too_large_together),
        cmocka_unit_test(copies_only_what_is_clean),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
