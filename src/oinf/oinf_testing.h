/* oinf_testing.h: what the tests of this folder share: a small package with one of everything, ways
 * to damage it, and openings whose outcome is known. */
#ifndef OI_OINF_TESTING_H
#define OI_OINF_TESTING_H

#include "oinf/oinf.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <setjmp.h>
#include <cmocka.h>

#define UNUSED __attribute__((unused))

typedef struct bytes {
    uint8_t *at;
    size_t n;
} bytes;

static UNUSED void put_sample(oi_writer *w)
{
    static const uint8_t mask[] = {0x0d, 0xf2}, i8s[] = {1, 2, 0xfd}, b_data[] = {1, 2, 3, 4, 5, 6};
    static const uint8_t bools[] = {1, 0, 1}, t2s[] = {0xd1, 0x01}; /* 1 0 1 -1 1 */
    static const float a_data[] = {1, 2.5f, -3, 0.25f}, scales[] = {0.5f, 2};
    static const int32_t zero_points[] = {1, -7};
    static const uint64_t three = 3, four = 4, five = 5, d22[] = {2, 2}, d23[] = {2, 3};
    const oi_quant q = {OI_ASYMMETRIC, OI_PER_CHANNEL, OI_PER_CHANNEL, 0, 0, 2, 2,
                        scales,        zero_points};
    const oi_view nd = {.dtype = OI_I8, .rank = 1, .dims = &three, .data = i8s};
    const oi_writer_tensor tensors[] = {
        {.name = "a", .dtype = OI_F32, .rank = 2, .dims = d22, .data = a_data},
        {.name = "b", .dtype = OI_I8, .rank = 2, .dims = d23, .data = b_data, .quant = &q},
        {.name = "c", .dtype = OI_F16, .rank = 1, .dims = &four},
        {.name = "t", .dtype = OI_T2, .rank = 1, .dims = &five, .data = t2s},
        {.name = "u", .dtype = OI_BOOL, .rank = 1, .dims = &three, .data = bools},
    };
    assert_int_equal(oi_writer_sizevar(w, "B", 4, NULL), OI_OK);
    assert_int_equal(oi_writer_sizevar(w, "A", 1, NULL), OI_OK);
    assert_int_equal(oi_writer_u64(w, "step", OI_U8, 3, NULL), OI_OK);
    assert_int_equal(oi_writer_u64(w, "flag", OI_BOOL, 1, NULL), OI_OK);
    assert_int_equal(oi_writer_bitset(w, "mask", mask, 12, NULL), OI_OK);
    assert_int_equal(oi_writer_text(w, "mode", "clamp_up", 8, NULL), OI_OK);
    assert_int_equal(oi_writer_text(w, "note", "a b", 3, NULL), OI_OK);
    assert_int_equal(oi_writer_ndarray(w, "nd", &nd, NULL), OI_OK);
    for (size_t i = 0; i < OI_COUNT(tensors); i++)
        assert_int_equal(oi_writer_add_tensor(w, &tensors[i], NULL), OI_OK);
}

static UNUSED bytes finish(oi_writer *w)
{
    void *p = NULL;
    size_t n = 0;
    assert_int_equal(oi_writer_finish_memory(w, &p, &n, NULL), OI_OK);
    oi_writer_free(w);
    return (bytes){p, n};
}

static UNUSED bytes sample(void)
{
    oi_writer *w = oi_writer_new();
    assert_non_null(w);
    put_sample(w);
    return finish(w);
}

/* Where the table entry of `name` goes on after its name. */
static UNUSED size_t entry(bytes b, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = OI_OINF_START; i + 4 + n < b.n; i += 4)
        if (oi_get_u32(b.at + i) == n && !memcmp(b.at + i + 4, name, n))
            return i + oi_align8(4 + n);
    fail_msg("no entry %s", name);
    return 0;
}

static UNUSED void patch(bytes b, size_t at, unsigned width, uint64_t value)
{
    assert_true(at + width <= b.n);
    for (unsigned i = 0; i < width; i++)
        b.at[at + i] = (uint8_t)(value >> 8 * i);
}

/* Opens a copy of exactly these bytes, so that the sanitizer sees a read of one more. */
static UNUSED oi_status open_bytes(bytes b, const oi_model_options *o, oi_model **out,
                                   uint8_t **copy, oi_diag *d)
{
    *copy = malloc(b.n ? b.n : 1);
    assert_non_null(*copy);
    if (b.n)
        memcpy(*copy, b.at, b.n);
    *out = NULL;
    return oi_model_open_memory(*copy, b.n, o, out, d);
}

/* wanted: part of the one error line, or "" when the package must open. Says what was found. */
static UNUSED bool opens_as(bytes b, oi_model_options o, const char *wanted)
{
    oi_model *m;
    uint8_t *copy;
    oi_diag *d = oi_diag_new();
    oi_status status = open_bytes(b, &o, &m, &copy, d);
    const char *text = "";
    for (size_t i = 0; i < oi_diag_count(d); i++)
        if (oi_diag_at(d, i).severity == OI_ERROR)
            text = oi_diag_at(d, i).text;
    bool ok = status == OI_OK;
    if (wanted[0])
        ok = status == OI_ERR_INPUT && !m && oi_diag_errors(d) == 1 && strstr(text, wanted) &&
             !strncmp(text, "oinf: <memory>: ", 16) && strstr(text, " (offset ");
    if (!ok)
        print_error("strict=%d: wanted \"%s\", found \"%s\"\n", o.strict, wanted, text);
    oi_model_close(m);
    oi_diag_free(d);
    free(copy);
    return ok;
}

static UNUSED void expect_both(bytes b, const char *strict, const char *loose)
{
    assert_true(opens_as(b, (oi_model_options){.strict = true}, strict));
    assert_true(opens_as(b, (oi_model_options){0}, loose));
}

/* -- files ---------------------------------------------------------------------------------------
 */

static char test_path[] = "/tmp/oi_oinf_test.XXXXXX";

static UNUSED int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(test_path);
    return fd < 0 ? -1 : close(fd);
}

static UNUSED int remove_path(void **state)
{
    (void)state;
    return unlink(test_path);
}

static UNUSED void to_file(bytes b)
{
    assert_int_equal(oi_file_write(test_path, b.at, b.n, NULL), OI_OK);
}

#endif
