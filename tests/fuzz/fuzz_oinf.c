/* fuzz_oinf.c: packages as an enemy writes them. Each input is opened in memory, strictly and not;
 * what opens is walked, printed, written again and opened again: it must hold the same. Some inputs
 * also go through a file, mapped and read on demand, and must meet the same fate.
 *
 * The mutator knows where the fields are: it changes counts, offsets, lengths, tags and flags to
 * values that nearly fit, keeps the file size right most of the time, and now and then starts from
 * a fresh package with one of everything. */
#define _GNU_SOURCE
#include "openinfer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#define MUST(x)                                                     \
    do {                                                            \
        if (!(x)) {                                                 \
            fprintf(stderr, "%s:%d: " #x "\n", __FILE__, __LINE__); \
            abort();                                                \
        }                                                           \
    } while (0)

/* -- looking at everything
 * ------------------------------------------------------------------------- */

static FILE *sink(void)
{
    static FILE *null;
    if (!null)
        MUST(null = fopen("/dev/null", "w"));
    return null;
}

/* The error of a refused package is one line in the form the format asks for. */
static void check_message(const oi_diag *d)
{
    MUST(oi_diag_errors(d) == 1);
    const char *text = oi_diag_at(d, oi_diag_count(d) - 1).text;
    MUST(!strncmp(text, "oinf: ", 6) && strstr(text, " (offset ") && !strchr(text, '\n'));
}

static void walk_metadata(oi_model *m)
{
    for (size_t i = 0; i < oi_model_n_metadata(m); i++) {
        const char *key = oi_model_meta_name(m, i);
        oi_view v;
        char *text = NULL;
        int64_t integer;
        double number;
        bool flag;
        MUST(oi_model_meta(m, key, &v, NULL) == OI_OK);
        uint8_t sum = 0;
        for (uint64_t b = 0; b < v.size_bytes; b++)
            sum ^= ((const uint8_t *)v.data)[b];
        (void)sum;
        if (oi_model_meta_text(m, key, &text, NULL, NULL) == OI_OK)
            oi_free(text);
        (void)oi_model_meta_i64(m, key, &integer, NULL);
        (void)oi_model_meta_f64(m, key, &number, NULL);
        (void)oi_model_meta_bool(m, key, &flag, NULL);
    }
}

/* True when every tensor could be had (in strict mode some hold no legal values). */
static bool walk_tensors(oi_model *m)
{
    bool all = true;
    for (size_t i = 0; i < oi_model_n_tensors(m); i++) {
        oi_tensor_info t;
        oi_view v;
        uint8_t part[16];
        MUST(oi_model_tensor_info_at(m, i, &t) == OI_OK);
        oi_status status = oi_model_tensor(m, t.name, &v, NULL);
        all = all && status == OI_OK;
        if (status != OI_OK || !v.data)
            continue;
        MUST(v.size_bytes == t.data_nbytes);
        if (v.n_elements)
            (void)oi_element_f64(v.dtype, v.data, v.n_elements - 1);
        uint64_t n = v.size_bytes < sizeof part ? v.size_bytes : sizeof part;
        MUST(oi_model_read(m, i, v.size_bytes - n, n, part, NULL) == OI_OK);
        MUST(!memcmp(part, (const uint8_t *)v.data + v.size_bytes - n, n));
        if (t.quant)
            for (uint64_t k = 0; k < t.quant->n_scales; k++)
                MUST(t.quant->scales[k] > 0);
    }
    return all;
}

/* -- there and back
 * ----------------------------------------------------------------------------------- */

static void same_text(oi_model *a, oi_model *b, const char *key)
{
    char *x = NULL, *y = NULL;
    MUST(oi_model_meta_text(a, key, &x, NULL, NULL) == OI_OK);
    MUST(oi_model_meta_text(b, key, &y, NULL, NULL) == OI_OK);
    MUST(!strcmp(x, y));
    oi_free(x);
    oi_free(y);
}

static void same_elements(const oi_view *x, const oi_view *y)
{
    MUST(x->dtype == y->dtype && x->rank == y->rank && x->n_elements == y->n_elements);
    MUST(!x->rank || !memcmp(x->dims, y->dims, 8 * (size_t)x->rank));
    MUST(!x->data == !y->data);
    if (!x->data || !x->size_bytes)
        return;
    /* bits behind the last element are not content */
    MUST(!memcmp(x->data, y->data, x->size_bytes - 1));
    oi_dtype t = x->dtype == OI_BITSET ? OI_U1 : x->dtype;
    for (uint64_t e = x->n_elements > 8 ? x->n_elements - 8 : 0; e < x->n_elements; e++)
        MUST(oi_element_i64(t, x->data, e) == oi_element_i64(t, y->data, e));
}

static void same_quant(const oi_quant *x, const oi_quant *y)
{
    MUST(!x == !y);
    if (!x)
        return;
    MUST(x->scheme == y->scheme && x->scale_mode == y->scale_mode &&
         x->zero_point_mode == y->zero_point_mode && x->scale_axis == y->scale_axis &&
         x->n_scales == y->n_scales && x->n_zero_points == y->n_zero_points);
    MUST(!memcmp(x->scales, y->scales, 4 * x->n_scales));
    MUST(!memcmp(x->zero_points, y->zero_points, 4 * x->n_zero_points));
}

static void same_content(oi_model *a, oi_model *b)
{
    MUST(oi_model_n_sizevars(a) == oi_model_n_sizevars(b));
    MUST(oi_model_n_metadata(a) == oi_model_n_metadata(b));
    MUST(oi_model_n_tensors(a) == oi_model_n_tensors(b));
    for (size_t i = 0; i < oi_model_n_sizevars(a); i++) {
        uint64_t x, y;
        const char *name = oi_model_sizevar_name(a, i);
        MUST(oi_model_size_of(a, name, &x) == OI_OK && oi_model_size_of(b, name, &y) == OI_OK);
        MUST(x == y);
    }
    for (size_t i = 0; i < oi_model_n_metadata(a); i++) {
        oi_view x, y;
        const char *key = oi_model_meta_name(a, i);
        MUST(oi_model_meta(a, key, &x, NULL) == OI_OK && oi_model_meta(b, key, &y, NULL) == OI_OK);
        if (x.dtype == OI_STR)
            same_text(a, b, key);
        else
            same_elements(&x, &y);
    }
    for (size_t i = 0; i < oi_model_n_tensors(a); i++) {
        oi_view x, y;
        oi_tensor_info s, t;
        const char *name = oi_model_tensor_name(a, i);
        MUST(oi_model_tensor(a, name, &x, NULL) == OI_OK &&
             oi_model_tensor(b, name, &y, NULL) == OI_OK);
        same_elements(&x, &y);
        MUST(oi_model_tensor_info(a, name, &s) == OI_OK &&
             oi_model_tensor_info(b, name, &t) == OI_OK);
        same_quant(s.quant, t.quant);
    }
}

static bool has_bitset_tensor(const oi_model *m)
{
    for (size_t i = 0; i < oi_model_n_tensors(m); i++) {
        oi_tensor_info t;
        if (oi_model_tensor_info_at(m, i, &t) == OI_OK && t.dtype == OI_BITSET)
            return true;
    }
    return false;
}

static bool has_huge_sizevar(const oi_model *m)
{
    for (size_t i = 0; i < oi_model_n_sizevars(m); i++) {
        uint64_t v;
        if (oi_model_size_of(m, oi_model_sizevar_name(m, i), &v) == OI_OK && v > INT64_MAX)
            return true;
    }
    return false;
}

/* is_clean: the package obeys every rule, so that writing it must work. */
static void write_back(oi_model *m, bool is_clean)
{
    oi_writer *w = oi_writer_new();
    void *bytes = NULL, *again = NULL;
    size_t n = 0, n_again = 0;
    MUST(w);
    oi_status status = oi_writer_add_model(w, m, NULL);
    if (status == OI_OK)
        status = oi_writer_finish_memory(w, &bytes, &n, NULL);
    MUST(!is_clean || status == OI_OK);
    if (status == OI_OK) {
        oi_model *back = NULL;
        const oi_model_options o = {.strict = !has_huge_sizevar(m)};
        MUST(oi_model_open_memory(bytes, n, &o, &back, NULL) == OI_OK);
        same_content(m, back);
        MUST(oi_writer_finish_memory(w, &again, &n_again, NULL) == OI_OK);
        MUST(n == n_again && !memcmp(bytes, again, n));
        oi_model_close(back);
    }
    free(bytes);
    free(again);
    oi_writer_free(w);
}

static oi_status try_memory(const uint8_t *data, size_t size, const oi_model_options *o)
{
    oi_model *m = NULL;
    oi_diag *d = oi_diag_new();
    oi_status status = oi_model_open_memory(data, size, o, &m, d);
    MUST(status == OI_OK || (status == OI_ERR_INPUT && !m));
    if (status == OI_OK) {
        walk_metadata(m);
        bool all = walk_tensors(m);
        const oi_print_options as_text = {.hist = true}, as_json = {.json = true};
        MUST((oi_model_print(m, sink(), &as_text, NULL) == OI_OK) == all);
        MUST((oi_model_print(m, sink(), &as_json, NULL) == OI_OK) == all);
        write_back(m, o->strict && all && !has_bitset_tensor(m));
    } else {
        check_message(d);
    }
    oi_model_close(m);
    oi_diag_free(d);
    return status;
}

/* The same bytes as a file. */
static void try_file(const uint8_t *data, size_t size, bool pread, oi_status wanted)
{
    int fd = memfd_create("fuzz", 0);
    char path[32];
    oi_model *m = NULL;
    const oi_model_options o = {.pread = pread};
    MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    MUST(oi_model_open_with(path, &o, &m, NULL) == wanted);
    if (m) {
        walk_metadata(m);
        walk_tensors(m);
    }
    oi_model_close(m);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const oi_model_options strict = {.strict = true}, loose = {0};
    const oi_model_options shared = {.allow_shared = true, .max_count = 1000, .max_ndim = 8};
    oi_status as_strict = try_memory(data, size, &strict);
    oi_status as_loose = try_memory(data, size, &loose);
    MUST(as_strict != OI_OK || as_loose == OI_OK);
    if (size && data[size / 2] % 8 == 0) {
        try_memory(data, size, &shared);
        try_file(data, size, data[size - 1] % 2, as_loose);
    }
    return 0;
}

/* -- mutation
 * ------------------------------------------------------------------------------------------ */

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

typedef struct field {
    uint32_t at;
    uint8_t width;
} field;

typedef struct fields {
    field at[400];
    size_t n;
    const uint8_t *data;
    size_t size;
} fields;

static uint64_t load(const uint8_t *data, size_t at, unsigned width)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < width; i++)
        v |= (uint64_t)data[at + i] << 8 * i;
    return v;
}

static void store(uint8_t *data, size_t at, unsigned width, uint64_t v)
{
    for (unsigned i = 0; i < width; i++)
        data[at + i] = (uint8_t)(v >> 8 * i);
}

static bool add_field(fields *f, uint64_t at, unsigned width)
{
    if (at > f->size || width > f->size - at)
        return false;
    if (f->n < sizeof f->at / sizeof f->at[0])
        f->at[f->n++] = (field){(uint32_t)at, (uint8_t)width};
    return true;
}

/* The name at *at; moves behind it. */
static bool add_name(fields *f, uint64_t *at)
{
    if (!add_field(f, *at, 4))
        return false;
    uint64_t n = load(f->data, *at, 4);
    if (n > 4096)
        return false;
    add_field(f, *at + 4, 1);
    *at += (4 + n + 7) / 8 * 8;
    return true;
}

static void add_words(fields *f, uint64_t at, unsigned n32, unsigned n64)
{
    for (unsigned i = 0; i < n32; i++, at += 4)
        add_field(f, at, 4);
    for (unsigned i = 0; i < n64; i++, at += 8)
        add_field(f, at, 8);
}

static bool add_metadata(fields *f, uint64_t *at)
{
    if (!add_name(f, at) || *at + 24 > f->size)
        return false;
    uint64_t type = load(f->data, *at, 4), payload = load(f->data, *at + 16, 8);
    add_words(f, *at, 2, 2);
    if (type >= OI_BITSET && type <= OI_NDARRAY)
        add_words(f, payload, 2, type == OI_NDARRAY ? 2 : 0);
    *at += 24;
    return true;
}

static bool add_tensor(fields *f, uint64_t *at)
{
    if (!add_name(f, at) || *at + 12 > f->size)
        return false;
    uint64_t rank = load(f->data, *at + 4, 4);
    add_words(f, *at, 3, rank < 8 ? (unsigned)rank + 4 : 12);
    *at += 12 + 8 * (rank < 70 ? rank : 70) + 32;
    if (*at <= f->size && load(f->data, *at - 8, 8))
        add_words(f, load(f->data, *at - 8, 8), 4, 4);
    return *at <= f->size;
}

static void collect(fields *f)
{
    static bool (*const readers[])(fields *, uint64_t *) = {add_name, add_metadata, add_tensor};
    if (f->size < 72)
        return;
    add_words(f, 5, 6, 5);
    for (unsigned table = 0; table < 3; table++) {
        uint64_t n = load(f->data, 13 + 4 * table, 4), at = load(f->data, 29 + 8 * table, 8);
        for (uint64_t i = 0; i < n && i < 30 && at < f->size; i++) {
            if (!readers[table](f, &at))
                break;
            if (table == 0) {
                add_field(f, at, 8);
                at += 8;
            }
        }
    }
}

/* A value that may nearly fit: near the old one, a limit, or some other field's. */
static uint64_t plausible(const fields *f, uint64_t old)
{
    static const uint64_t limits[] = {0,          1,
                                      2,          7,
                                      8,          13,
                                      14,         15,
                                      25,         26,
                                      64,         65,
                                      72,         255,
                                      65535,      65536,
                                      1u << 20,   1u << 30,
                                      UINT32_MAX, INT64_MAX,
                                      1ull << 63, UINT64_MAX - 7,
                                      UINT64_MAX};
    field other = f->at[draw(f->n)];
    switch (draw(6)) {
    case 0: return old + 8 * draw(4) - 8;
    case 1: return old + draw(5) - 2;
    case 2: return limits[draw(sizeof limits / sizeof limits[0])];
    case 3: return load(f->data, other.at, other.width);
    case 4: return f->size - 8 * draw(6);
    default: return draw(32);
    }
}

static void change_field(uint8_t *data, size_t size)
{
    fields f = {.data = data, .size = size};
    collect(&f);
    if (!f.n)
        return;
    field x = f.at[draw(f.n)];
    store(data, x.at, x.width, plausible(&f, load(data, x.at, x.width)));
}

/* A fresh package: random dims, types, names and parameters. */
static size_t fresh(uint8_t *out, size_t max_size)
{
    static uint8_t bytes[64];
    static const float scales[8] = {1, 2, 0.5, 4, 1, 1, 3, 0.25};
    static const int32_t zero_points[8] = {1, 2, -3};
    oi_writer *w = oi_writer_new();
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)draw(draw(2) ? 2 : 256);
    for (uint64_t i = draw(3); i > 0; i--)
        (void)oi_writer_sizevar(w, (const char[]){(char)('A' + draw(4)), 0}, draw(100), NULL);
    for (uint64_t i = draw(5); i > 0; i--) {
        const char key[] = {(char)('f' + draw(8)), (char)('a' + draw(3)), 0};
        uint64_t dims[] = {draw(3), draw(4)};
        oi_view v = {
            .dtype = (oi_dtype)draw(26), .rank = (uint32_t)draw(3), .dims = dims, .data = bytes};
        switch (draw(4)) {
        case 0: (void)oi_writer_text(w, key, "text/x", draw(7), NULL); break;
        case 1: (void)oi_writer_bitset(w, key, bytes, (uint32_t)draw(70), NULL); break;
        case 2: (void)oi_writer_ndarray(w, key, &v, NULL); break;
        default: (void)oi_writer_u64(w, key, v.dtype, draw(3), NULL); break;
        }
    }
    for (uint64_t i = draw(5); i > 0; i--) {
        const char name[] = {(char)('a' + draw(26)), 0};
        uint64_t dims[] = {draw(3), 1 + draw(2)}, n = dims[1];
        bool per_channel = draw(2), asymmetric = draw(2);
        oi_quant_mode mode = per_channel ? OI_PER_CHANNEL : OI_PER_TENSOR;
        oi_quant q = {asymmetric ? OI_ASYMMETRIC : OI_SYMMETRIC,
                      mode,
                      asymmetric ? mode : OI_QUANT_NONE,
                      per_channel,
                      asymmetric && per_channel,
                      per_channel ? n : 1,
                      !asymmetric   ? 0
                      : per_channel ? n
                                    : 1,
                      scales,
                      zero_points};
        oi_writer_tensor t = {.name = name,
                              .dtype = (oi_dtype)draw(26),
                              .rank = 2,
                              .dims = dims,
                              .data = draw(4) ? bytes : NULL,
                              .quant = draw(2) ? &q : NULL};
        (void)oi_writer_add_tensor(w, &t, NULL);
    }
    void *p = NULL;
    size_t n = 0;
    if (oi_writer_finish_memory(w, &p, &n, NULL) != OI_OK || n > max_size)
        n = 0;
    else
        memcpy(out, p, n);
    free(p);
    oi_writer_free(w);
    return n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    state = seed;
    uint64_t what = draw(16);
    size_t n = size;
    if (what == 0) {
        n = fresh(data, max_size);
        if (!n)
            n = LLVMFuzzerMutate(data, size, max_size);
    } else if (what <= 4) {
        n = LLVMFuzzerMutate(data, size, max_size);
    } else {
        for (uint64_t i = 1 + draw(3); i > 0; i--)
            change_field(data, n);
    }
    if (n >= 72 && draw(8))
        store(data, 61, 8, n);
    return n;
}
