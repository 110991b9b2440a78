/* oinf_rules_test.c: the rules a package must obey, row by row of section 7 of the format: a good
 * package opens, and each way to break a rule is refused, in strict mode or always. */
#define _XOPEN_SOURCE 700
#include "oinf/oinf_testing.h"

/* One field changed. base: "" the header, "NAME" the table entry behind its name, "@NAME" the
 * metadata payload, "#NAME" the tensor's data, "%NAME" its quantisation payload. */
typedef struct damage {
    int row;
    const char *base;
    size_t offset;
    unsigned width;
    uint64_t value;
    const char *strict, *loose; /* part of the message; "" opens */
} damage;

#define BIG        (1ull << 63)
#define BOTH(text) text, text

static const damage cases[] = {
    {1, "", 0, 1, 'X', BOTH("not an OINF package")},
    {1, "", 4, 1, '!', BOTH("not an OINF package")},
    {1, "", 5, 4, 1, BOTH("version 1 packages are not supported")},
    {1, "", 5, 4, 3, BOTH("version is 3, wanted 2 (offset 5)")},
    {1, "", 9, 4, 8, "flags is 0x8, wanted 0 (offset 9)", ""},
    {1, "", 25, 4, 1, "reserved field is 0x1, wanted 0 (offset 25)", ""},
    {2, "", 61, 8, 100000, BOTH("truncated: the header says 100000 bytes")},
    {2, "", 61, 8, 72, BOTH("trailing data: the header says 72 bytes")},
    {3, "", 29, 8, 76, BOTH("sizevars start at 76, not a multiple of 8 (offset 29)")},
    {3, "", 29, 8, 64, BOTH("sizevars start at 64, wanted at least 72")},
    {3, "", 37, 8, 72, BOTH("2 sizevar entries cannot fit a table of 0 bytes")},
    {3, "", 37, 8, 64, BOTH("metadata start at 64, wanted at least 72")},
    {3, "", 45, 8, 80, BOTH("tensors start at 80, wanted at least")},
    {3, "", 53, 8, 1u << 30, BOTH("data start at 1073741824, behind the end of the file")},
    {3, "", 53, 8, UINT64_MAX - 7, BOTH("behind the end of the file")},
    {4, "", 13, 4, UINT32_MAX, BOTH("4294967295 sizevar entries, at most 1048576")},
    {4, "", 13, 4, 1000, BOTH("1000 sizevar entries cannot fit")},
    {4, "", 17, 4, 50, BOTH("50 metadata entries cannot fit")},
    {4, "", 21, 4, 90, BOTH("90 tensor entries cannot fit")},
    {5, "", 72, 4, 0, BOTH("sizevar 0: the name is empty (offset 72)")},
    {5, "", 72, 4, 65536, BOTH("the name has 65536 bytes, at most 65535")},
    {5, "", 72, 4, 60000, BOTH("the name takes 60004 bytes")},
    {5, "", 76, 1, 0xff, BOTH("the name is not UTF-8 (offset 76)")},
    {5, "", 76, 1, 0, BOTH("control characters")},
    {5, "", 76, 1, '\n', BOTH("control characters")},
    {5, "", 76, 1, '/', "names are made of", ""},
    {5, "", 76, 1, ' ', "names are made of", ""},
    {6, "", 13, 4, 3, BOTH("3 sizevar entries cannot fit a table of 32 bytes")},
    {6, "t", 4, 4, 60, BOTH("the dims takes 480 bytes, the table has")},
    {6, "u", 4, 4, 64, BOTH("the dims takes 512 bytes, the table has")},
    {6, "u", 4, 4, 4, BOTH("the entry's end takes 32 bytes, the table has")},
    {7, "", 92, 1, 'A', BOTH("sizevar 'A' occurs twice (offset 88)")},
    {7, "", 76, 1, 'a', "", ""}, /* also the name of a tensor: a warning */
    {8, "step", 0, 4, 0, BOTH("metadata 'step': unknown value tag 0")},
    {8, "step", 0, 4, 26, BOTH("metadata 'step': unknown value tag 26")},
    {8, "step", 0, 4, 7, BOTH("its value has 1 bytes, u32 makes 4")},
    {8, "step", 4, 4, 1, BOTH("flags are 0x1, wanted 0")},
    {8, "step", 8, 8, 2, BOTH("its value has 2 bytes, u8 makes 1")},
    {8, "step", 8, 8, 0, BOTH("its value has 0 bytes, u8 makes 1")},
    {8, "step", 8, 8, (1ull << 30) + 1, BOTH("1073741825 bytes, at most 1073741824")},
    {8, "step", 16, 8, 4, BOTH("value offset 4 is not a multiple of 8")},
    {8, "step", 16, 8, 72, BOTH("value offset 72 lies before the data section")},
    {8, "step", 16, 8, 1 << 20, BOTH("passes the end of the file")},
    {8, "step", 16, 8, UINT64_MAX - 7, BOTH("passes the end of the file")},
    {8, "mode", 8, 8, 4, BOTH("its value has 4 bytes, str makes 8")},
    {8, "@mode", 0, 4, 30, BOTH("its value has 16 bytes, str makes 40")},
    {8, "@mode", 5, 1, 0xc3, BOTH("metadata 'mode': the text is not UTF-8")},
    {8, "@mode", 11, 1, 0xc3, BOTH("metadata 'mode': the text is not UTF-8")},
    {8, "@mode", 5, 1, 0, BOTH("metadata 'mode': the text holds a NUL")},
    {8, "@mode", 5, 1, ' ', "", ""},
    {8, "@flag", 0, 1, 2, "metadata 'flag': the stored bits are no bool", ""},
    {9, "nd", 8, 8, 7, BOTH("its value has 7 bytes, ndarray makes 8")},
    {9, "nd", 8, 8, 8, BOTH("its value has 8 bytes, ndarray makes 16")},
    {9, "@nd", 0, 4, 14, BOTH("value tag 14 is not an ndarray element's")},
    {9, "@nd", 0, 4, 13, BOTH("value tag 13 is not an ndarray element's")},
    {9, "@nd", 0, 4, 0, BOTH("value tag 0 is not an ndarray element's")},
    {9, "@nd", 0, 4, 99, BOTH("value tag 99 is not an ndarray element's")},
    {9, "@nd", 0, 4, OI_BOOL, "metadata 'nd': the stored bits are no bool", ""},
    {9, "@nd", 4, 4, 65, BOTH("metadata 'nd': 65 dims, at most 64")},
    {9, "@nd", 8, 8, 9, BOTH("its value has 24 bytes, ndarray makes 32")},
    {9, "@nd", 8, 8, BIG, BOTH("the product of its dims passes 2^63-1")},
    {9, "mask", 8, 8, 0, BOTH("its value has 0 bytes, bitset makes 8")},
    {9, "mask", 8, 8, 24, BOTH("metadata 'mode' overlaps metadata 'mask'")},
    {9, "@mask", 0, 4, 17, BOTH("17 bits take 3 bytes, it says 2")},
    {9, "@mask", 4, 4, 1, BOTH("12 bits take 2 bytes, it says 1")},
    {10, "a", 0, 4, 0, BOTH("tensor 'a': value tag 0 is not a tensor's")},
    {10, "a", 0, 4, 14, BOTH("value tag 14 is not a tensor's")},
    {10, "a", 0, 4, 15, BOTH("value tag 15 is not a tensor's")},
    {10, "a", 0, 4, 26, BOTH("value tag 26 is not a tensor's")},
    {10, "u", 0, 4, OI_BITSET, "", ""},
    {10, "a", 4, 4, 65, BOTH("tensor 'a': 65 dims, at most 64")},
    {10, "a", 8, 4, 5, BOTH("tensor 'a': flags are 0x5")},
    {10, "a", 8, 4, 0, BOTH("has no data, yet its data size and offset are 16 and")},
    {10, "b", 8, 4, 1, BOTH("is not quantised, yet its quant size and offset are 64 and")},
    {11, "a", 12, 8, BIG, BOTH("the product of its dims passes 2^63-1")},
    {11, "a", 12, 8, BIG / 2 - 1, BOTH("tensor 'a': its size in bytes passes 2^64")},
    {11, "a", 28, 8, 17, BOTH("tensor 'a': its data has 17 bytes, f32 and dims make 16")},
    {11, "a", 12, 8, 3, BOTH("its data has 16 bytes, f32 and dims make 24")},
    {11, "a", 36, 8, 9, BOTH("tensor 'a': data offset 9 is not a multiple of 8")},
    {11, "a", 36, 8, 80, BOTH("data offset 80 lies before the data section")},
    {11, "a", 36, 8, 1 << 20, BOTH("data (16 bytes at 1048576) passes the end of the file")},
    {11, "a", 36, 8, UINT64_MAX - 7, BOTH("passes the end of the file")},
    {11, "b", 52, 8, 3, BOTH("quant offset 3 is not a multiple of 8")},
    {11, "b", 52, 8, 1 << 20, BOTH("tensor 'b': quant (64 bytes at 1048576) passes the end")},
    {12, "b", 44, 8, 40, BOTH("tensor 'b': quant has 40 bytes, at least 48")},
    {12, "b", 44, 8, 56, BOTH("quant: 56 bytes do not hold 2 scales and 2 zero points")},
    {12, "%b", 0, 4, 0, BOTH("tensor 'b': quant: scheme: not 1")},
    {12, "%b", 0, 4, 3, BOTH("quant: scheme: not 1")},
    {12, "%b", 0, 4, 1, BOTH("the symmetric scheme has none")},
    {12, "%b", 4, 4, 0, BOTH("scale: its mode is not 1")},
    {12, "%b", 4, 4, 3, BOTH("scale: its mode is not 1")},
    {12, "%b", 4, 4, 1, BOTH("scale: per tensor, yet its count is not 1")},
    {12, "%b", 8, 4, 3, BOTH("zero point: its mode is not 0, 1 or 2")},
    {12, "%b", 8, 4, 1, BOTH("zero point: its mode is not the scale's")},
    {12, "%b", 8, 4, 0, BOTH("there is none, yet its axis or count is not 0")},
    {12, "%b", 12, 4, 1, BOTH("quant: the reserved field is not 0")},
    {12, "%b", 16, 8, 2, BOTH("scale: per channel, yet its axis is not below the rank")},
    {12, "%b", 16, 8, 1, BOTH("scale: per channel, yet its count is not the dim")},
    {12, "%b", 24, 8, 3, BOTH("scale: per channel, yet its count is not the dim")},
    {12, "%b", 32, 8, 1, BOTH("zero point: its axis and count are not the scale's")},
    {12, "%b", 40, 8, 1, BOTH("zero point: its axis and count are not the scale's")},
    {12, "%b", 48, 4, 0, BOTH("quant: scale 0 is not finite and > 0")},
    {12, "%b", 52, 4, 0x7f800000, BOTH("quant: scale inf is not finite and > 0")},
    {12, "%b", 52, 4, 0x7fc00000, BOTH("quant: scale nan is not finite and > 0")},
    {12, "%b", 52, 4, 0xbf800000, BOTH("quant: scale -1 is not finite and > 0")},
    {14, "", 69, 1, 1, "padding is 0x01, wanted 0 (offset 69)", ""},
    {14, "", 78, 1, 1, "sizevar 'A': the name's padding is not zero (offset 78)", ""},
    {14, "@step", 1, 1, 7, "padding is 0x07, wanted 0", ""},
    {14, "@mode", 12, 1, 7, "padding is 0x07, wanted 0", ""},
    {14, "@mask", 10, 1, 7, "padding is 0x07, wanted 0", ""},
    {14, "@nd", 19, 1, 7, "padding is 0x07, wanted 0", ""},
    {14, "#b", 6, 1, 7, "padding is 0x07, wanted 0", ""},
    {14, "#u", 7, 1, 7, "padding is 0x07, wanted 0", ""},
    {15, "", 80, 8, INT64_MAX, "", ""},
    {15, "", 80, 8, BIG, "sizevar 'A': 9223372036854775808 passes 2^63-1", ""},
};

static const double tensors_data[4] = {1, 2, 3, 4};

static size_t place_of(bytes b, const char *base)
{
    switch (base[0]) {
    case '\0': return 0;
    case '@': return oi_get_u64(b.at + entry(b, base + 1) + 16);
    case '#':
    case '%': {
        size_t at = entry(b, base + 1), rank = oi_get_u32(b.at + at + 4);
        return oi_get_u64(b.at + at + 12 + 8 * rank + (base[0] == '#' ? 8 : 24));
    }
    default: return entry(b, base);
    }
}

static void each_rule(void **state)
{
    (void)state;
    int n_wrong = 0;
    for (size_t i = 0; i < OI_COUNT(cases); i++) {
        bytes b = sample();
        const damage *c = &cases[i];
        patch(b, place_of(b, c->base) + c->offset, c->width, c->value);
        if (!opens_as(b, (oi_model_options){.strict = true}, c->strict) ||
            !opens_as(b, (oi_model_options){0}, c->loose)) {
            print_error("  row %d: %s+%zu = %llu\n", c->row, c->base, c->offset,
                        (unsigned long long)c->value);
            n_wrong++;
        }
        free(b.at);
    }
    assert_int_equal(n_wrong, 0);
}

static void good_package_opens(void **state)
{
    (void)state;
    bytes b = sample();
    expect_both(b, "", "");
    free(b.at);
    bytes empty = finish(oi_writer_new());
    assert_int_equal(empty.n, OI_OINF_START);
    expect_both(empty, "", "");
    free(empty.at);
}

/* Row 1 and 2 at every length; row 2 the other way with one byte more. */
static void every_length(void **state)
{
    (void)state;
    bytes b = sample();
    for (size_t n = 0; n < b.n; n++)
        expect_both((bytes){b.at, n}, BOTH(n < OI_OINF_HEADER ? "too few for a package header"
                                                              : "truncated: the header says"));
    uint8_t *more = calloc(1, b.n + 1);
    memcpy(more, b.at, b.n);
    expect_both((bytes){more, b.n + 1}, BOTH("trailing data"));
    free(more);
    free(b.at);
}

/* Whatever one byte becomes, opening and printing end with a status. */
static void every_byte(void **state)
{
    (void)state;
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    bytes b = sample();
    FILE *sink = fopen("/dev/null", "w");
    for (size_t at = 0; at < b.n; at++)
        for (size_t k = 0; k < 2 * OI_COUNT(values); k++) {
            oi_model *m;
            uint8_t *copy, was = b.at[at];
            b.at[at] = k & 1 ? values[k / 2] : was ^ values[k / 2];
            if (open_bytes(b, &(oi_model_options){.strict = k & 1}, &m, &copy, NULL) == OI_OK)
                (void)oi_model_print(m, sink, NULL, NULL);
            oi_model_close(m);
            free(copy);
            b.at[at] = was;
        }
    fclose(sink);
    free(b.at);
}

/* Row 7 in each table, and the warning for a name in two tables. */
static void names_once(void **state)
{
    (void)state;
    bytes b = sample();
    patch(b, entry(b, "b") - 4, 1, 'a');
    expect_both(b, BOTH("tensor 'a' occurs twice"));
    free(b.at);
    b = sample();
    patch(b, entry(b, "mode") - 4, 4, 'm' | 'a' << 8 | 's' << 16 | 'k' << 24);
    expect_both(b, BOTH("metadata 'mask' occurs twice"));
    free(b.at);

    oi_writer *w = oi_writer_new();
    oi_model *m = NULL;
    oi_diag *d = oi_diag_new();
    uint64_t dim = 0;
    oi_writer_sizevar(w, "x", 1, NULL);
    oi_writer_text(w, "x", "x", 1, NULL);
    oi_writer_add_tensor(w, &(oi_writer_tensor){"x", OI_U4, 1, &dim, NULL, NULL, NULL, NULL}, NULL);
    b = finish(w);
    assert_int_equal(oi_model_open_memory(b.at, b.n, NULL, &m, d), OI_OK);
    assert_int_equal(oi_diag_warnings(d), 3);
    assert_non_null(strstr(oi_diag_at(d, 0).text,
                           "oinf: <memory>: warning: 'x' is in the "
                           "sizevar table and in the metadata table (offset "));
    oi_model_close(m);
    oi_diag_free(d);
    free(b.at);
}

/* Row 13: data, quant and metadata, and what --allow-shared lets pass. */
static void overlaps(void **state)
{
    (void)state;
    const oi_model_options shared = {.allow_shared = true};
    bytes b = sample();
    uint64_t a_at = oi_get_u64(b.at + entry(b, "a") + 36);
    patch(b, entry(b, "t") + 28, 8, a_at); /* the first two bytes of a */
    expect_both(b, BOTH("data of tensor 'a' overlaps data of tensor 't'"));
    assert_true(opens_as(b, shared, "overlaps"));
    free(b.at);

    b = sample();
    patch(b, entry(b, "t") + 28, 8, oi_get_u64(b.at + entry(b, "step") + 16));
    assert_true(opens_as(b, shared, "data of tensor 't' overlaps metadata 'step'"));
    free(b.at);

    b = sample();
    patch(b, entry(b, "t") + 28, 8, oi_get_u64(b.at + entry(b, "b") + 52) + 8);
    assert_true(opens_as(b, shared, "data of tensor 't' overlaps quant of tensor 'b'"));
    free(b.at);

    oi_writer *w = oi_writer_new(); /* three tensors, then all on the bytes of the first */
    const oi_writer_tensor t = {.dtype = OI_F64, .data = "12345678"};
    for (char name[] = "x"; name[0] <= 'z'; name[0]++) {
        oi_writer_tensor named = t;
        named.name = name;
        assert_int_equal(oi_writer_add_tensor(w, &named, NULL), OI_OK);
    }
    b = finish(w);
    uint64_t x_at = oi_get_u64(b.at + entry(b, "x") + 20);
    patch(b, entry(b, "y") + 20, 8, x_at);
    patch(b, entry(b, "z") + 20, 8, x_at);
    expect_both(b, BOTH("overlaps"));
    assert_true(opens_as(b, shared, ""));
    free(b.at);
}

/* Empty payloads take no place: two may stand anywhere, even inside another. */
static void empty_payloads(void **state)
{
    (void)state;
    const uint64_t dims[] = {0, 3}, four = 4;
    oi_writer *w = oi_writer_new();
    const oi_writer_tensor tensors[] = {
        {.name = "e", .dtype = OI_F32, .rank = 2, .dims = dims, .data = ""},
        {.name = "f", .dtype = OI_I4, .rank = 2, .dims = dims, .data = ""},
        {.name = "g", .dtype = OI_F64, .rank = 1, .dims = &four, .data = tensors_data},
    };
    for (size_t i = 0; i < OI_COUNT(tensors); i++)
        assert_int_equal(oi_writer_add_tensor(w, &tensors[i], NULL), OI_OK);
    bytes b = finish(w);
    expect_both(b, "", "");
    patch(b, entry(b, "e") + 36, 8, oi_get_u64(b.at + entry(b, "g") + 28) + 8);
    patch(b, entry(b, "f") + 36, 8, b.n);
    expect_both(b, "", "");
    free(b.at);
}

/* A dim of 0 does not excuse the others: strides must fit too. */
static void dims_with_zero(void **state)
{
    (void)state;
    const uint64_t dims[] = {1, 0, 1};
    const oi_view nd = {.dtype = OI_U8, .rank = 3, .dims = dims};
    oi_writer *w = oi_writer_new();
    assert_int_equal(oi_writer_ndarray(w, "nd", &nd, NULL), OI_OK);
    bytes b = finish(w);
    uint64_t at = oi_get_u64(b.at + entry(b, "nd") + 16);
    patch(b, at + 8, 8, INT64_MAX);
    expect_both(b, "", "");
    patch(b, at + 24, 8, 2);
    expect_both(b, BOTH("the product of its dims passes 2^63-1"));
    free(b.at);
}

static void limits(void **state)
{
    (void)state;
    bytes b = sample();
    assert_true(opens_as(b, (oi_model_options){.max_count = 5}, "6 metadata entries, at most 5"));
    assert_true(opens_as(b, (oi_model_options){.max_count = 6}, ""));
    assert_true(opens_as(b, (oi_model_options){.max_ndim = 1}, "2 dims, at most 1"));
    assert_true(opens_as(b, (oi_model_options){.max_ndim = 1000}, ""));
    assert_true(opens_as(b, (oi_model_options){.max_metadata_bytes = 23}, "at most 23"));
    assert_true(opens_as(b, (oi_model_options){.max_metadata_bytes = 24}, ""));
    free(b.at);
}

/* Reserved keys that strict mode does not know are only doubted. */
static void reserved_keys(void **state)
{
    (void)state;
    static const char *const keys[] = {"oi.graph",        "oi.graph.json", "oi.graph.x",
                                       "oi.state.v",      "oi.producer",   "oi.created_from",
                                       "oi.format_minor", "oi.other",      "oil"};
    oi_writer *w = oi_writer_new();
    for (size_t i = 0; i < OI_COUNT(keys); i++)
        assert_int_equal(oi_writer_text(w, keys[i], "x", 1, NULL), OI_OK);
    bytes b = finish(w);
    for (int strict = 0; strict < 2; strict++) {
        oi_model *m = NULL;
        oi_diag *d = oi_diag_new();
        const oi_model_options o = {.strict = strict};
        assert_int_equal(oi_model_open_memory(b.at, b.n, &o, &m, d), OI_OK);
        assert_int_equal(oi_diag_warnings(d), strict);
        if (strict)
            assert_non_null(strstr(oi_diag_at(d, 0).text, "warning: metadata 'oi.other'"));
        oi_model_close(m);
        oi_diag_free(d);
    }
    free(b.at);
}

/* Tables may stand further apart than they need to; strict wants the gap empty. */
static void wide_tables(void **state)
{
    (void)state;
    bytes b = sample();
    uint8_t *wide = calloc(1, b.n + 64);
    memcpy(wide, b.at, OI_OINF_HEADER);
    memcpy(wide + OI_OINF_START + 64, b.at + OI_OINF_START, b.n - OI_OINF_START);
    bytes w = {wide, b.n + 64};
    for (size_t at = 29; at <= 61; at += 8)
        patch(w, at, 8, oi_get_u64(wide + at) + 64);
    for (const char *const *name =
             (const char *const[]){"flag", "mask", "mode", "nd", "note", "step", NULL};
         *name; name++)
        patch(w, entry(w, *name) + 16, 8, oi_get_u64(wide + entry(w, *name) + 16) + 64);
    for (const char *const *name = (const char *const[]){"a", "b", "t", "u", NULL}; *name; name++) {
        size_t at = entry(w, *name) + 12 + 8 * oi_get_u32(wide + entry(w, *name) + 4);
        patch(w, at + 8, 8, oi_get_u64(wide + at + 8) + 64);
        if (oi_get_u64(wide + at + 24))
            patch(w, at + 24, 8, oi_get_u64(wide + at + 24) + 64);
    }
    expect_both(w, "", "");
    wide[100] = 1;
    expect_both(w, "padding is 0x01, wanted 0 (offset 100)", "");
    free(wide);
    free(b.at);
}

static void long_text(void **state)
{
    (void)state;
    const size_t n = 3 * OI_OINF_PIECE + 7;
    char *text = malloc(n);
    memset(text, 'x', n);
    oi_writer *w = oi_writer_new();
    assert_int_equal(oi_writer_text(w, "k", text, n, NULL), OI_OK);
    bytes b = finish(w);
    size_t at = oi_get_u64(b.at + entry(b, "k") + 16) + 4;
    /* a character of 2, 3 and 4 bytes across each border, then a broken one */
    static const char *const whole[] = {"\u00e9", "\u20ac", "\U0001f600"};
    for (size_t k = 0; k < OI_COUNT(whole); k++)
        for (size_t back = 1; back < strlen(whole[k]); back++) {
            size_t border = at + (1 + k % 2) * OI_OINF_PIECE;
            memcpy(b.at + border - back, whole[k], strlen(whole[k]));
            expect_both(b, "", "");
            b.at[border - back + strlen(whole[k]) - 1] = 'x';
            expect_both(b, BOTH("the text is not UTF-8"));
            memset(b.at + border - back, 'x', strlen(whole[k]));
        }
    memcpy(b.at + at + n - 2, "\u20ac", 2); /* cut off by the end */
    expect_both(b, BOTH("the text is not UTF-8"));
    memset(b.at + at + n - 2, 'x', 2);
    memset(b.at + at + 2 * OI_OINF_PIECE - 1, 0xf0, 1); /* a lead whose rest never comes */
    expect_both(b, BOTH("the text is not UTF-8"));
    free(text);
    free(b.at);
}

static void wrong_calls(void **state)
{
    (void)state;
    oi_model *m = NULL;
    assert_int_equal(oi_model_open(NULL, &m, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_model_open("x", NULL, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_model_open_memory(NULL, 1, NULL, &m, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_model_open_memory("x", 1, NULL, NULL, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_model_open_memory(NULL, 0, NULL, &m, NULL), OI_ERR_INPUT);
    oi_model_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_package_opens),
        cmocka_unit_test(each_rule),
        cmocka_unit_test(every_length),
        cmocka_unit_test(every_byte),
        cmocka_unit_test(names_once),
        cmocka_unit_test(overlaps),
        cmocka_unit_test(empty_payloads),
        cmocka_unit_test(dims_with_zero),
        cmocka_unit_test(limits),
        cmocka_unit_test(reserved_keys),
        cmocka_unit_test(wide_tables),
        cmocka_unit_test(long_text),
        cmocka_unit_test(wrong_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
