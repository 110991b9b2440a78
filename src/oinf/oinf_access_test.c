/* oinf_access_test.c: questions to an open package, mapped, read on demand or borrowed, and what
 * happens when the file fails under us. */
#define _GNU_SOURCE
#include "oinf/oinf_testing.h"

#include <dirent.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* -- a file system that fails on demand -----------------------------------------------------------
 */

static enum { WORKS, INTERRUPTED, BROKEN, ENDED } next_pread;
static long preads_until; /* calls before next_pread happens; -1 = never */
static bool mmap_fails;

ssize_t pread(int fd, void *buf, size_t n, off_t offset)
{
    if (preads_until >= 0 && preads_until-- == 0) {
        errno = next_pread == INTERRUPTED ? EINTR : EIO;
        return next_pread == ENDED ? 0 : -1;
    }
    return syscall(SYS_pread64, fd, buf, n, offset);
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (mmap_fails && fd >= 0) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}

static const oi_model_options ways[] = {
    {0}, {.pread = true}, {.strict = true}, {.strict = true, .pread = true}};

static oi_model *open_file(const oi_model_options *o)
{
    oi_model *m = NULL;
    oi_diag *d = oi_diag_new();
    if (oi_model_open_with(test_path, o, &m, d) != OI_OK)
        fail_msg("%s", oi_diag_at(d, 0).text);
    oi_diag_free(d);
    return m;
}

static void expect_error(oi_diag *d, const char *part)
{
    if (!strstr(oi_diag_at(d, 0).text, part))
        fail_msg("wanted \"%s\", found \"%s\"", part, oi_diag_at(d, 0).text);
    oi_diag_free(d);
}

/* -- what is in there -- */

static void quantisation(void **state)
{
    (void)state;
    bytes b = sample();
    to_file(b);
    for (size_t k = 0; k < OI_COUNT(ways); k++) {
        oi_model *m = open_file(&ways[k]);
        oi_tensor_info t;
        oi_view data;
        assert_int_equal(oi_model_tensor_info(m, "b#zp", &t), OI_OK);
        assert_int_equal(t.dtype, OI_I32);
        assert_int_equal(t.rank, 2);
        assert_int_equal(t.dims[0], 2);
        assert_int_equal(t.dims[1], 1);
        assert_int_equal(oi_model_tensor(m, "b#zp", &data, NULL), OI_OK);
        assert_int_equal(((const int32_t *)data.data)[1], -7);
        assert_int_equal(oi_model_tensor(m, "b#scale", &data, NULL), OI_OK);
        assert_true(((const float *)data.data)[1] == 2);
        oi_model_release(m, "b#scale");
        assert_int_equal(oi_model_tensor_info(m, "a#scale", &t), OI_NOT_FOUND);
        assert_null(oi_model_tensor_name(m, 5)); /* not listed */
        oi_model_close(m);
    }
    free(b.at);
}

static void tables(void **state)
{
    (void)state;
    bytes b = sample();
    to_file(b);
    for (size_t k = 0; k < OI_COUNT(ways); k++) {
        oi_model *m = open_file(&ways[k]);
        uint64_t v = 0;
        size_t i = 99;
        oi_tensor_info t;
        oi_meta_info e;
        assert_string_equal(oi_model_path(m), test_path);
        assert_int_equal(oi_model_n_sizevars(m), 2);
        assert_int_equal(oi_model_n_metadata(m), 6);
        assert_int_equal(oi_model_n_tensors(m), 5);
        assert_string_equal(oi_model_sizevar_name(m, 1), "B");
        assert_string_equal(oi_model_meta_name(m, 0), "flag");
        assert_string_equal(oi_model_tensor_name(m, 4), "u");
        assert_null(oi_model_sizevar_name(m, 2));
        assert_null(oi_model_meta_name(m, 6));
        assert_null(oi_model_tensor_name(m, 5));
        assert_int_equal(oi_model_size_of(m, "B", &v), OI_OK);
        assert_int_equal(v, 4);
        assert_int_equal(oi_model_size_of(m, "a", &v), OI_NOT_FOUND);
        assert_int_equal(oi_model_size_of(m, NULL, &v), OI_NOT_FOUND);
        assert_int_equal(oi_model_tensor_index(m, "c", &i), OI_OK);
        assert_int_equal(i, 2);
        assert_int_equal(oi_model_tensor_index(m, "B", &i), OI_NOT_FOUND);
        assert_int_equal(oi_model_tensor_info(m, "none", &t), OI_NOT_FOUND);
        assert_int_equal(oi_model_tensor_info_at(m, 5, &t), OI_NOT_FOUND);
        assert_int_equal(oi_model_meta_info(m, "none", &e), OI_NOT_FOUND);
        assert_int_equal(oi_model_meta_info_at(m, 6, &e), OI_NOT_FOUND);
        assert_int_equal(oi_model_meta_info(m, "nd", &e), OI_OK);
        assert_int_equal(e.type, OI_NDARRAY);
        assert_int_equal(e.element, OI_I8);
        assert_int_equal(e.rank, 1);
        assert_int_equal(e.dims[0], 3);
        assert_int_equal(e.value_size, 3);
        assert_int_equal(oi_model_tensor_info(m, "b", &t), OI_OK);
        assert_string_equal(t.name, "b");
        assert_int_equal(t.dtype, OI_I8);
        assert_int_equal(t.rank, 2);
        assert_int_equal(t.dims[1], 3);
        assert_int_equal(t.n_elements, 6);
        assert_true(t.has_data);
        assert_int_equal(t.quant->scheme, OI_ASYMMETRIC);
        assert_int_equal(t.quant->n_scales, 2);
        assert_true(t.quant->scales[0] == 0.5f && t.quant->scales[1] == 2);
        assert_int_equal(t.quant->zero_points[1], -7);
        oi_model_close(m);
    }
    free(b.at);
}

static void metadata(void **state)
{
    (void)state;
    bytes b = sample();
    to_file(b);
    for (size_t k = 0; k < OI_COUNT(ways); k++) {
        oi_model *m = open_file(&ways[k]);
        oi_view v;
        char *text = NULL;
        size_t n = 0;
        uint64_t u = 0;
        int64_t i = 0;
        double f = 0;
        bool flag = false;
        assert_int_equal(oi_model_meta(m, "nd", &v, NULL), OI_OK);
        assert_int_equal(v.dtype, OI_I8);
        assert_int_equal(oi_element_i64(v.dtype, v.data, 2), -3);
        assert_int_equal(oi_model_meta(m, "mask", &v, NULL), OI_OK);
        assert_int_equal(v.dtype, OI_BITSET);
        assert_int_equal(v.n_elements, 12);
        assert_memory_equal(v.data, "\x0d\x02", 2); /* the writer clears bits behind the 12th */
        assert_int_equal(oi_model_meta_text(m, "mode", &text, &n, NULL), OI_OK);
        assert_int_equal(n, 8);
        assert_string_equal(text, "clamp_up");
        oi_free(text);
        assert_int_equal(oi_model_meta_text(m, "note", &text, NULL, NULL), OI_OK);
        assert_string_equal(text, "a b");
        oi_free(text);
        assert_int_equal(oi_model_meta_u64(m, "step", &u, NULL), OI_OK);
        assert_int_equal(u, 3);
        assert_int_equal(oi_model_meta_i64(m, "step", &i, NULL), OI_OK);
        assert_int_equal(i, 3);
        assert_int_equal(oi_model_meta_f64(m, "step", &f, NULL), OI_OK);
        assert_true(f == 3);
        assert_int_equal(oi_model_meta_bool(m, "flag", &flag, NULL), OI_OK);
        assert_true(flag);
        assert_int_equal(oi_model_meta_bool(m, "none", &flag, NULL), OI_NOT_FOUND);
        assert_int_equal(oi_model_meta_text(m, "none", &text, NULL, NULL), OI_NOT_FOUND);
        oi_diag *d = oi_diag_new();
        assert_int_equal(oi_model_meta_bool(m, "step", &flag, d), OI_ERR_INPUT);
        expect_error(d, "metadata 'step' is u8, wanted a bool (offset ");
        d = oi_diag_new();
        assert_int_equal(oi_model_meta_i64(m, "nd", &i, d), OI_ERR_INPUT);
        expect_error(d, "metadata 'nd' is i8 ndarray, wanted an integer that fits i64");
        assert_int_equal(oi_model_meta_i64(m, "flag", &i, NULL), OI_ERR_INPUT);
        assert_int_equal(oi_model_meta_f64(m, "mode", &f, NULL), OI_ERR_INPUT);
        assert_int_equal(oi_model_meta_f64(m, "mask", &f, NULL), OI_ERR_INPUT);
        assert_int_equal(oi_model_meta_text(m, "nd", &text, NULL, NULL), OI_ERR_INPUT);
        assert_int_equal(oi_model_meta_text(m, "step", &text, NULL, NULL), OI_ERR_INPUT);
        oi_model_close(m);
    }
    free(b.at);
}

/* Numbers that do not fit what is asked for, and u8 arrays that are no text. */
static void metadata_that_does_not_fit(void **state)
{
    (void)state;
    oi_writer *w = oi_writer_new();
    const uint64_t dims[] = {2, 2};
    const oi_view latin1 = {.dtype = OI_U8, .rank = 1, .dims = dims, .data = "\xe9x"};
    const oi_view nul = {.dtype = OI_U8, .rank = 1, .dims = dims, .data = "\0x"};
    const oi_view matrix = {.dtype = OI_U8, .rank = 2, .dims = dims, .data = "abcd"};
    const oi_view scalar = {.dtype = OI_F32, .data = "\0\0\x80\x3f"};
    oi_writer_u64(w, "big", OI_U64, UINT64_MAX, NULL);
    oi_writer_i64(w, "low", OI_I2, -2, NULL);
    oi_writer_f64(w, "half", OI_BF16, 0.5, NULL);
    oi_writer_ndarray(w, "latin1", &latin1, NULL);
    oi_writer_ndarray(w, "nul", &nul, NULL);
    oi_writer_ndarray(w, "matrix", &matrix, NULL);
    oi_writer_ndarray(w, "scalar", &scalar, NULL);
    bytes b = finish(w);
    oi_model *m = NULL;
    uint64_t u;
    int64_t i;
    double f;
    char *text;
    assert_int_equal(oi_model_open_memory(b.at, b.n, NULL, &m, NULL), OI_OK);
    assert_int_equal(oi_model_meta_i64(m, "big", &i, NULL), OI_ERR_INPUT);
    assert_int_equal(oi_model_meta_u64(m, "big", &u, NULL), OI_OK);
    assert_true(u == UINT64_MAX);
    assert_int_equal(oi_model_meta_u64(m, "low", &u, NULL), OI_ERR_INPUT);
    assert_int_equal(oi_model_meta_i64(m, "low", &i, NULL), OI_OK);
    assert_int_equal(i, -2);
    assert_int_equal(oi_model_meta_i64(m, "half", &i, NULL), OI_ERR_INPUT);
    assert_int_equal(oi_model_meta_f64(m, "half", &f, NULL), OI_OK);
    assert_true(f == 0.5);
    assert_int_equal(oi_model_meta_f64(m, "scalar", &f, NULL), OI_OK);
    assert_true(f == 1);
    assert_int_equal(oi_model_meta_text(m, "latin1", &text, NULL, NULL), OI_ERR_INPUT);
    assert_int_equal(oi_model_meta_text(m, "nul", &text, NULL, NULL), OI_ERR_INPUT);
    assert_int_equal(oi_model_meta_text(m, "matrix", &text, NULL, NULL), OI_ERR_INPUT);
    oi_model_close(m);
    free(b.at);
}

/* -- tensors -- */

static void tensors(void **state)
{
    (void)state;
    bytes b = sample();
    to_file(b);
    for (size_t k = 0; k < OI_COUNT(ways); k++) {
        oi_model *m = open_file(&ways[k]);
        oi_view v, again;
        float part[2];
        assert_int_equal(oi_model_tensor(m, "a", &v, NULL), OI_OK);
        assert_int_equal(v.dtype, OI_F32);
        assert_int_equal(v.rank, 2);
        assert_int_equal(v.size_bytes, 16);
        assert_int_equal((uintptr_t)v.data % 8, 0);
        assert_true(((const float *)v.data)[2] == -3);
        assert_int_equal(oi_model_tensor(m, "a", &again, NULL), OI_OK);
        assert_ptr_equal(again.data, v.data);
        assert_int_equal(oi_model_read(m, 0, 4, 8, part, NULL), OI_OK);
        assert_true(part[0] == 2.5f && part[1] == -3);
        assert_int_equal(oi_model_read(m, 0, 9, 8, part, NULL), OI_ERR_USAGE);
        assert_int_equal(oi_model_read(m, 0, 17, 0, part, NULL), OI_ERR_USAGE);
        assert_int_equal(oi_model_read(m, 0, 16, 0, part, NULL), OI_OK);
        assert_int_equal(oi_model_read(m, 5, 0, 0, part, NULL), OI_NOT_FOUND);
        assert_int_equal(oi_model_tensor(m, "c", &v, NULL), OI_OK);
        assert_null(v.data);
        assert_int_equal(v.size_bytes, 8);
        assert_int_equal(oi_model_tensor(m, "t", &v, NULL), OI_OK);
        assert_int_equal(oi_element_i64(v.dtype, v.data, 3), -1);
        assert_int_equal(oi_model_tensor(m, "none", &v, NULL), OI_NOT_FOUND);
        oi_model_release(m, "a");
        oi_model_release(m, "b");
        oi_model_release(m, "none");
        assert_int_equal(oi_model_tensor(m, "a", &v, NULL), OI_OK);
        assert_true(((const float *)v.data)[1] == 2.5f);
        oi_model_close(m);
    }
    free(b.at);
}

/* Strict: the bytes are judged when they are asked for, not before. */
static void strict_values(void **state)
{
    (void)state;
    bytes b = sample();
    patch(b, oi_get_u64(b.at + entry(b, "u") + 28) + 2, 1, 2);
    patch(b, oi_get_u64(b.at + entry(b, "t") + 28), 1, 0x89); /* 1 -2! 0 -2! */
    to_file(b);
    for (size_t k = 0; k < OI_COUNT(ways); k++) {
        oi_model *m = open_file(&ways[k]);
        oi_view v;
        uint8_t byte;
        oi_diag *d = oi_diag_new(), *d2 = oi_diag_new();
        bool strict = ways[k].strict;
        assert_int_equal(oi_model_tensor(m, "u", &v, d), strict ? OI_ERR_INPUT : OI_OK);
        assert_int_equal(oi_model_read(m, 3, 0, 1, &byte, d2), strict ? OI_ERR_INPUT : OI_OK);
        if (strict) {
            expect_error(d, "tensor 'u': the stored bits are no bool (offset ");
            expect_error(d2, "tensor 't': the stored bits are no t2 (offset ");
        } else {
            oi_diag_free(d);
            oi_diag_free(d2);
            assert_int_equal(oi_element_i64(v.dtype, v.data, 2), 1);
            assert_int_equal(oi_model_tensor(m, "t", &v, NULL), OI_OK);
            assert_int_equal(oi_element_i64(v.dtype, v.data, 1), -1);
        }
        oi_model_close(m);
    }
    free(b.at);
}

/* Borrowed memory may start anywhere; what is lent is aligned all the same. */
static void unaligned_memory(void **state)
{
    (void)state;
    bytes b = sample();
    uint8_t *shifted = malloc(b.n + 3);
    memcpy(shifted + 3, b.at, b.n);
    oi_model *m = NULL;
    oi_view v;
    assert_int_equal(oi_model_open_memory(shifted + 3, b.n, NULL, &m, NULL), OI_OK);
    assert_string_equal(oi_model_path(m), "<memory>");
    assert_int_equal(oi_model_tensor(m, "a", &v, NULL), OI_OK);
    assert_int_equal((uintptr_t)v.data % 8, 0);
    assert_true(((const float *)v.data)[3] == 0.25f);
    assert_int_equal(oi_model_meta(m, "nd", &v, NULL), OI_OK);
    assert_int_equal(oi_element_i64(v.dtype, v.data, 0), 1);
    oi_model_close(m);
    free(shifted);
    free(b.at);
}

/* Several threads ask the same model at once, for what is lent and for what must be loaded. */
typedef struct asker {
    oi_model *m;
    int n_wrong;
} asker;

static void *ask(void *ctx)
{
    asker *a = ctx;
    static const char *const names[] = {"a", "b", "t", "u"};
    for (int i = 0; i < 200; i++) {
        oi_view v;
        char *text = NULL;
        const char *name = names[i % 4];
        if (oi_model_tensor(a->m, name, &v, NULL) != OI_OK || !v.data)
            a->n_wrong++;
        if (oi_model_meta_text(a->m, "note", &text, NULL, NULL) != OI_OK || strcmp(text, "a b"))
            a->n_wrong++;
        oi_free(text);
    }
    return NULL;
}

static void threads(void **state)
{
    (void)state;
    bytes b = sample();
    to_file(b);
    for (size_t k = 0; k < OI_COUNT(ways); k++) {
        pthread_t ids[4];
        asker askers[4];
        oi_model *m = open_file(&ways[k]);
        for (int i = 0; i < 4; i++) {
            askers[i] = (asker){m, 0};
            assert_int_equal(pthread_create(&ids[i], NULL, ask, &askers[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            assert_int_equal(pthread_join(ids[i], NULL), 0);
            assert_int_equal(askers[i].n_wrong, 0);
        }
        oi_model_close(m);
    }
    free(b.at);
}

/* -- failing files -- */

static void no_such_file(void **state)
{
    (void)state;
    oi_model *m = NULL;
    oi_diag *d = oi_diag_new();
    assert_int_equal(oi_model_open("/nowhere/x.oinf", &m, d), OI_ERR_ENV);
    assert_string_equal(oi_diag_at(d, 0).text,
                        "oinf: /nowhere/x.oinf: cannot open: No such file or directory");
    assert_true(oi_diag_at(d, 0).is_line);
    oi_diag_free(d);
    d = oi_diag_new();
    assert_int_equal(oi_model_open("/tmp", &m, d), OI_ERR_ENV);
    expect_error(d, "cannot open: not a regular file");
    assert_int_equal(truncate(test_path, 0), 0);
    assert_int_equal(oi_model_open(test_path, &m, NULL), OI_ERR_INPUT);
    assert_null(m);
}

/* A named pipe without a writer must not hold us up. */
static void named_pipe(void **state)
{
    (void)state;
    oi_model *m = NULL;
    char pipe[] = "/tmp/oi_oinf_pipe.XXXXXX";
    assert_non_null(mkdtemp(pipe));
    char path[64];
    snprintf(path, sizeof path, "%s/p", pipe);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(oi_model_open(path, &m, NULL), OI_ERR_ENV);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(pipe), 0);
}

static void file_that_shrinks(void **state)
{
    (void)state;
    bytes b = sample();
    for (size_t k = 0; k < OI_COUNT(ways); k++) {
        to_file(b);
        oi_model *m = open_file(&ways[k]);
        oi_view v, before;
        uint8_t buf[4];
        assert_int_equal(oi_model_tensor(m, "a", &before, NULL), OI_OK);
        assert_int_equal(truncate(test_path, 100), 0);
        oi_diag *d = oi_diag_new();
        assert_int_equal(oi_model_tensor(m, "u", &v, d), OI_ERR_INPUT);
        expect_error(d, "the file became shorter after it was opened (offset ");
        assert_int_equal(oi_model_read(m, 4, 0, 3, buf, NULL), OI_ERR_INPUT);
        assert_int_equal(oi_model_meta(m, "nd", &v, NULL), OI_ERR_INPUT);
        assert_int_equal(oi_model_print(m, stdout, &(oi_print_options){.json = true}, NULL),
                         OI_ERR_INPUT);
        if (ways[k].pread) /* what was loaded stays */
            assert_true(((const float *)before.data)[1] == 2.5f);
        assert_int_equal(oi_model_size_of(m, "B", &(uint64_t){0}), OI_OK);
        oi_model_close(m);
    }
    free(b.at);
}

/* Every read of an opening fails once, in each way a read can. */
static void each_read_fails(void **state)
{
    (void)state;
    static const oi_status wanted[] = {OI_OK, OI_OK, OI_ERR_ENV, OI_ERR_INPUT};
    bytes b = sample();
    to_file(b);
    for (int strict = 0; strict < 2; strict++)
        for (next_pread = INTERRUPTED; next_pread <= ENDED; next_pread++)
            for (long n = 0;; n++) {
                oi_model *m = NULL;
                const oi_model_options o = {.pread = true, .strict = strict};
                preads_until = n;
                oi_status status = oi_model_open_with(test_path, &o, &m, NULL);
                bool happened = preads_until < 0;
                preads_until = -1;
                assert_int_equal(status, happened ? wanted[next_pread] : OI_OK);
                oi_model_close(m);
                if (!happened) {
                    assert_true(n > 10);
                    break;
                }
            }
    free(b.at);
}

static void each_read_of_printing_fails(void **state)
{
    (void)state;
    bytes b = sample();
    to_file(b);
    FILE *sink = fopen("/dev/null", "w");
    next_pread = BROKEN;
    for (int json = 0; json < 2; json++)
        for (long n = 0;; n++) {
            oi_model *m = open_file(&(oi_model_options){.pread = true, .strict = true});
            preads_until = n;
            oi_status status = oi_model_print(m, sink, &(oi_print_options){.json = json}, NULL);
            bool happened = preads_until < 0;
            preads_until = -1;
            assert_int_equal(status, happened ? OI_ERR_ENV : OI_OK);
            oi_model_close(m);
            if (!happened) {
                assert_true(n > 5);
                break;
            }
        }
    fclose(sink);
    free(b.at);
}

static void no_mapping(void **state)
{
    (void)state;
    bytes b = sample();
    to_file(b);
    mmap_fails = true;
    oi_model *m = open_file(NULL);
    mmap_fails = false;
    oi_view v;
    assert_null(m->io.base);
    assert_int_equal(oi_model_tensor(m, "a", &v, NULL), OI_OK);
    assert_true(((const float *)v.data)[0] == 1);
    oi_model_close(m);
    free(b.at);
}

/* -- the shipped packages -- */

static void round_trip(const char *path, const oi_model_options *o)
{
    oi_model *m = NULL;
    oi_diag *d = oi_diag_new();
    char *was = NULL;
    size_t n_was = 0;
    if (oi_model_open_with(path, o, &m, d) != OI_OK)
        fail_msg("%s", oi_diag_at(d, 0).text);
    assert_int_equal(oi_diag_count(d), 0);
    oi_writer *w = oi_writer_new();
    assert_int_equal(oi_writer_add_model(w, m, d), OI_OK);
    bytes now = finish(w);
    assert_int_equal(oi_file_read(path, 1 << 20, &was, &n_was, NULL), OI_OK);
    assert_int_equal(now.n, n_was);
    assert_memory_equal(now.at, was, n_was);
    char *text = NULL;
    size_t n_text = 0;
    FILE *to = open_memstream(&text, &n_text);
    assert_int_equal(oi_model_print(m, to, NULL, d), OI_OK);
    fclose(to);
    assert_true(n_text > 50);
    free(text);
    free(was);
    free(now.at);
    oi_model_close(m);
    oi_diag_free(d);
}

static void fixtures(void **state)
{
    (void)state;
    const char *folder = OI_TEST_SHARED "/fixtures/oinf";
    DIR *dir = opendir(folder);
    if (!dir) {
        print_message("there is no %s here\n", folder);
        skip();
    }
    int n = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (!strstr(e->d_name, ".oinf"))
            continue;
        for (size_t k = 0; k < OI_COUNT(ways); k++)
            round_trip(path, &ways[k]);
        n++;
    }
    closedir(dir);
    assert_int_equal(n, 5);
}

int main(void)
{
    preads_until = -1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),
        cmocka_unit_test(quantisation),
        cmocka_unit_test(metadata),
        cmocka_unit_test(metadata_that_does_not_fit),
        cmocka_unit_test(tensors),
        cmocka_unit_test(strict_values),
        cmocka_unit_test(unaligned_memory),
        cmocka_unit_test(threads),
        cmocka_unit_test(no_such_file),
        cmocka_unit_test(named_pipe),
        cmocka_unit_test(file_that_shrinks),
        cmocka_unit_test(each_read_fails),
        cmocka_unit_test(each_read_of_printing_fails),
        cmocka_unit_test(no_mapping),
        cmocka_unit_test(fixtures),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
