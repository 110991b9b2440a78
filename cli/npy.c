/* npy.c: tensors in .npy files. Element types that numpy lacks (f8, bf16, packed ones, bitset)
 * travel as their stored bytes, and NAME.json beside NAME.npy says what they are. */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "\x93NUMPY"
#define HEAD  10u /* magic, version, length of the header of version 1 */

/* What numpy calls our types; the order of the bytes is ours already. */
static const struct {
    oi_dtype dtype;
    const char *descr;
} known[] = {
    {OI_F16, "<f2"}, {OI_F32, "<f4"}, {OI_F64, "<f8"}, {OI_I8, "|i1"},
    {OI_I16, "<i2"}, {OI_I32, "<i4"}, {OI_I64, "<i8"}, {OI_U8, "|u1"},
    {OI_U16, "<u2"}, {OI_U32, "<u4"}, {OI_U64, "<u8"}, {OI_BOOL, "|b1"},
};
#define N_KNOWN (sizeof known / sizeof known[0])

static const char *descr_of(oi_dtype t)
{
    for (size_t i = 0; i < N_KNOWN; i++)
        if (known[i].dtype == t)
            return known[i].descr;
    return NULL;
}

static oi_dtype dtype_of(const char *descr, size_t n)
{
    for (size_t i = 0; i < N_KNOWN; i++)
        if (strlen(known[i].descr) == n && !memcmp(known[i].descr, descr, n))
            return known[i].dtype;
    return n == 3 && !memcmp(descr, "<u1", 3) ? OI_U8 : OI_NONE;
}

/* "x.npy" -> "x.json" */
static char *sidecar_of(const char *path)
{
    size_t n = strlen(path) - strlen(".npy");
    char *out = malloc(n + sizeof ".json");
    if (out) {
        memcpy(out, path, n);
        strcpy(out + n, ".json");
    }
    return out;
}

/* -- writing -- */

static oi_status write_sidecar(const char *path, const oi_view *v)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "{\"dims\": [");
    for (uint32_t i = 0; i < v->rank; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%llu", i ? ", " : "",
                      (unsigned long long)v->dims[i]);
    snprintf(text + n, sizeof text - (size_t)n, "], \"dtype\": \"%s\"}\n", oi_dtype_name(v->dtype));
    char *name = sidecar_of(path);
    oi_status status = name ? cli_write(name, text) : cli_fail(OI_ERR_ENV, "out of memory");
    free(name);
    return status;
}

/* The header ends with a newline at a multiple of 64, so that the data is aligned. */
static size_t header(char *out, size_t room, const oi_view *v)
{
    const char *descr = descr_of(v->dtype);
    size_t n = HEAD;
    n += (size_t)snprintf(out + n, room - n, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                          descr ? descr : "|u1");
    if (!descr)
        n += (size_t)snprintf(out + n, room - n, "%llu,", (unsigned long long)v->size_bytes);
    for (uint32_t i = 0; descr && i < v->rank; i++)
        n += (size_t)snprintf(out + n, room - n, "%llu%s", (unsigned long long)v->dims[i],
                              v->rank == 1      ? ","
                              : i + 1 < v->rank ? ", "
                                                : "");
    n += (size_t)snprintf(out + n, room - n, "), }");
    while ((n + 1) % 64)
        out[n++] = ' ';
    out[n++] = '\n';
    memcpy(out, MAGIC "\x01\x00", 8);
    out[8] = (char)((n - HEAD) & 0xff);
    out[9] = (char)((n - HEAD) >> 8);
    return n;
}

oi_status cli_npy_write(const char *path, const oi_view *v)
{
    char head[2048];
    size_t n = header(head, sizeof head, v);
    char *all = malloc(n + (size_t)v->size_bytes);
    if (!all)
        return cli_fail(OI_ERR_ENV, "no memory for %s", path);
    memcpy(all, head, n);
    if (v->size_bytes)
        memcpy(all + n, v->data, (size_t)v->size_bytes);
    oi_status status = cli_write_bytes(path, all, n + (size_t)v->size_bytes);
    free(all);
    if (status == OI_OK && !descr_of(v->dtype))
        status = write_sidecar(path, v);
    return status;
}

/* -- reading -- */

void cli_array_free(cli_array *a)
{
    free(a->data);
    *a = (cli_array){0};
}

static oi_status bad(const char *path, const char *why)
{
    return cli_fail(OI_ERR_INPUT, "%s: %s", path, why);
}

/* The value after 'key': in the header's Python dictionary, or NULL. */
static const char *value_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    if (!at)
        return NULL;
    at += strlen(key);
    return at + strspn(at, " :");
}

static bool parse_shape(const char *text, cli_array *out)
{
    const char *at = value_of(text, "'shape'");
    uint64_t n = 1;
    if (!at || *at++ != '(')
        return false;
    for (at += strspn(at, " ,"); *at != ')'; at += strspn(at, " ,")) {
        char *end;
        errno = 0;
        unsigned long long dim = strtoull(at, &end, 10);
        if (end == at || errno || out->view.rank == CLI_MAX_RANK)
            return false;
        out->dims[out->view.rank++] = dim;
        if (dim && n > UINT64_MAX / dim)
            return false;
        n *= dim;
        at = end;
    }
    out->view.n_elements = n;
    return true;
}

static oi_status parse_header(const char *path, const char *text, cli_array *out)
{
    const char *descr = value_of(text, "'descr'"), *fortran = value_of(text, "'fortran_order'");
    if (!descr || *descr != '\'' || !fortran || !parse_shape(text, out))
        return bad(path, "the .npy header cannot be read");
    size_t n = strcspn(descr + 1, "'");
    out->view.dtype = dtype_of(descr + 1, n);
    if (out->view.dtype == OI_NONE)
        return cli_fail(OI_ERR_INPUT, "%s: element type %.*s is not supported", path, (int)n,
                        descr + 1);
    out->by_columns = !strncmp(fortran, "True", 4) && out->view.rank > 1;
    if (!oi_dtype_bytes(out->view.dtype, out->view.n_elements, &out->view.size_bytes))
        return bad(path, "too large");
    return OI_OK;
}

/* Column order to row order: element i of the file has its first index running fastest. */
static bool turn(cli_array *a)
{
    size_t width = oi_dtype_bits(a->view.dtype) / 8;
    unsigned char *to = malloc(a->view.size_bytes ? (size_t)a->view.size_bytes : 1);
    const unsigned char *from = a->data;
    uint64_t index[CLI_MAX_RANK] = {0};
    for (uint64_t i = 0; to && i < a->view.n_elements; i++) {
        uint64_t at = 0;
        for (uint32_t k = 0; k < a->view.rank; k++)
            at = at * a->dims[k] + index[k];
        memcpy(to + at * width, from + i * width, width);
        for (uint32_t k = 0; k < a->view.rank && ++index[k] == a->dims[k]; k++)
            index[k] = 0;
    }
    if (!to)
        return false;
    free(a->data);
    a->data = to;
    return true;
}

static oi_status read_data(const char *path, FILE *from, cli_array *out)
{
    size_t n = (size_t)out->view.size_bytes;
    if (fseek(from, 0, SEEK_CUR) == 0) { /* a plain file must really be that long */
        long at = ftell(from);
        if (at >= 0 && fseek(from, 0, SEEK_END) == 0) {
            long end = ftell(from);
            if (end >= at && (uint64_t)(end - at) < out->view.size_bytes)
                return bad(path, "the file is shorter than its header says");
            fseek(from, at, SEEK_SET);
        }
    }
    out->data = malloc(n ? n : 1);
    if (!out->data)
        return cli_fail(OI_ERR_ENV, "no memory for %s", path);
    if (fread(out->data, 1, n, from) != n)
        return bad(path, "the file is shorter than its header says");
    if (out->by_columns && !turn(out))
        return cli_fail(OI_ERR_ENV, "no memory for %s", path);
    out->view.dims = out->dims;
    out->view.data = out->data;
    return OI_OK;
}

static oi_status read_file(const char *path, FILE *from, cli_array *out)
{
    unsigned char head[12];
    if (fread(head, 1, HEAD, from) != HEAD || memcmp(head, MAGIC, 6) != 0)
        return bad(path, "not a .npy file");
    size_t n = head[8] | (size_t)head[9] << 8;
    if (head[6] > 1) { /* versions 2 and 3 count in four bytes */
        if (fread(head + HEAD, 1, 2, from) != 2)
            return bad(path, "the .npy header cannot be read");
        n |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    }
    if (n > 65536)
        return bad(path, "the .npy header is too long");
    char *text = calloc(1, n + 1);
    if (!text)
        return cli_fail(OI_ERR_ENV, "out of memory");
    oi_status status = fread(text, 1, n, from) == n ? parse_header(path, text, out)
                                                    : bad(path, "the .npy header cannot be read");
    free(text);
    return status == OI_OK ? read_data(path, from, out) : status;
}

oi_status cli_npy_read(const char *path, cli_array *out)
{
    *out = (cli_array){0};
    FILE *from = cli_open(path);
    if (!from)
        return OI_ERR_ENV;
    oi_status status = read_file(path, from, out);
    fclose(from);
    if (status != OI_OK)
        cli_array_free(out);
    return status;
}

oi_status cli_npy_read_from(const char *path, const char *name, FILE *from, uint64_t start,
                            uint64_t size, cli_array *out)
{
    char what[512];
    snprintf(what, sizeof what, "%s: %s", path, name);
    *out = (cli_array){0};
    if (start > LONG_MAX || fseek(from, (long)start, SEEK_SET) != 0)
        return bad(what, "cannot be read");
    oi_status status = read_file(what, from, out);
    if (status == OI_OK && (uint64_t)ftell(from) != start + size)
        status = bad(what, "its header does not agree with its size");
    if (status != OI_OK)
        cli_array_free(out);
    return status;
}

/* A type without a name in numpy: bytes become elements; what NAME.json says must agree. */
static bool sidecar_agrees(const char *path, oi_dtype t)
{
    char text[1024] = {0}, wanted[64];
    char *name = sidecar_of(path);
    const bool is_there = name && access(name, F_OK) == 0;
    FILE *from = is_there ? cli_open(name) : NULL;
    free(name);
    if (!from)
        return !is_there;
    size_t n = fread(text, 1, sizeof text - 1, from);
    fclose(from);
    snprintf(wanted, sizeof wanted, "\"%s\"", oi_dtype_name(t));
    return n == 0 || strstr(text, wanted) != NULL;
}

oi_status cli_npy_read_as(const char *path, const oi_var_info *var, cli_array *out)
{
    oi_status status = cli_npy_read(path, out);
    if (status != OI_OK || descr_of(var->dtype) || out->view.dtype != OI_U8)
        return status;
    uint64_t n = 1, bytes = 0;
    for (uint32_t i = 0; i < var->rank; i++)
        n *= var->dims[i];
    bool fits = oi_dtype_bytes(var->dtype, n, &bytes) && bytes == out->view.size_bytes;
    if (!fits || !sidecar_agrees(path, var->dtype)) {
        status = cli_fail(OI_ERR_INPUT, "%s: not the stored bytes of '%s'", path, var->name);
        cli_array_free(out);
        return status;
    }
    out->view.dtype = var->dtype;
    out->view.rank = 1;
    out->dims[0] = out->view.n_elements = n;
    return OI_OK;
}
