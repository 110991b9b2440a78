/* values.c: --set NAME=VALUE: a file, a list, one number for all, random numbers, zeros, or a file
 * per step. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static bool is_float(oi_dtype t)
{
    return t == OI_F8 || t == OI_BF16 || t == OI_F16 || t == OI_F32 || t == OI_F64;
}

static oi_status make_room(const oi_var_info *var, cli_array *out)
{
    uint64_t n = 1, bytes = 0;
    bool fits = true;
    *out = (cli_array){0};
    for (uint32_t i = 0; i < var->rank; i++) {
        out->dims[i] = var->dims[i];
        fits = fits && !(var->dims[i] && n > UINT64_MAX / var->dims[i]);
        n = fits ? n * var->dims[i] : 0;
    }
    fits = fits && oi_dtype_bytes(var->dtype, n, &bytes) && bytes < SIZE_MAX;
    out->data = fits ? calloc(1, bytes ? (size_t)bytes : 1) : NULL;
    if (!out->data)
        return cli_fail(OI_ERR_ENV, "no memory for '%s'", var->name);
    out->view = (oi_view){var->dtype, var->rank, out->dims, out->data, n, bytes};
    return OI_OK;
}

/* -- numbers -- */

static bool parse_float(const char *text, char **end, double *out)
{
    *out = strtod(text, end);
    return *end != text;
}

static bool parse_int(const char *text, char **end, int64_t *out)
{
    errno = 0;
    *out = strtoll(text, end, 0);
    return *end != text && errno == 0;
}

/* One number as element e; moves *at past it. */
static bool put_number(oi_dtype t, void *data, uint64_t e, const char **at)
{
    char *end = NULL;
    double d;
    int64_t i;
    if (t == OI_BOOL && (!strncmp(*at, "true", 4) || !strncmp(*at, "false", 5))) {
        bool yes = **at == 't';
        *at += yes ? 4 : 5;
        return oi_element_set_i64(t, data, e, yes);
    }
    if (is_float(t)) {
        if (!parse_float(*at, &end, &d))
            return false;
        *at = end;
        return oi_element_set_f64(t, data, e, d);
    }
    if (t == OI_U64 && **at != '-') {
        errno = 0;
        unsigned long long u = strtoull(*at, &end, 0);
        if (end == *at || errno)
            return false;
        *at = end;
        return oi_element_set_u64(t, data, e, u);
    }
    if (!parse_int(*at, &end, &i))
        return false;
    *at = end;
    return oi_element_set_i64(t, data, e, i);
}

static oi_status bad_number(const oi_var_info *var, const char *text)
{
    return cli_usage_error("--set %s: '%s' is no value of %s", var->name, text,
                           oi_dtype_name(var->dtype));
}

/* "1,2,3", or one number for every element. */
static oi_status numbers(const oi_var_info *var, const char *text, cli_array *out)
{
    uint64_t n = 0;
    const char *at = text;
    oi_status status = make_room(var, out);
    if (status != OI_OK)
        return status;
    for (;; at++) {
        if (n < out->view.n_elements && !put_number(var->dtype, out->data, n, &at))
            return bad_number(var, text);
        if (n >= out->view.n_elements)
            at += strcspn(at, ",");
        n++;
        at += strspn(at, " ");
        if (*at != ',')
            break;
    }
    if (*at)
        return bad_number(var, text);
    if (n != 1 && n != out->view.n_elements)
        return cli_usage_error("--set %s: %llu numbers for %llu elements", var->name,
                               (unsigned long long)n, (unsigned long long)out->view.n_elements);
    for (uint64_t e = n; e < out->view.n_elements; e++) {
        const char *again = text;
        put_number(var->dtype, out->data, e, &again);
    }
    return OI_OK;
}

/* -- random:SEED:LO:HI -- */

static oi_status random_values(const oi_var_info *var, const char *text, cli_array *out)
{
    char *end = NULL;
    const char *at = text + strlen("random:");
    errno = 0;
    uint64_t seed = strtoull(at, &end, 0);
    if (end == at || *end != ':' || errno)
        return cli_usage_error("--set %s: write random:SEED:LO:HI", var->name);
    oi_status status = make_room(var, out);
    if (status != OI_OK)
        return status;
    double low, high;
    int64_t first, last;
    at = end + 1;
    bool ok;
    if (is_float(var->dtype)) {
        ok = parse_float(at, &end, &low) && *end == ':' && parse_float(end + 1, &end, &high) &&
             !*end;
        if (ok)
            (void)oi_random(var->dtype, seed, low, high, out->data, out->view.n_elements);
    } else {
        ok = parse_int(at, &end, &first) && *end == ':' && parse_int(end + 1, &end, &last) &&
             !*end && first <= last;
        if (ok && oi_random_int(var->dtype, seed, first, last, out->data, out->view.n_elements))
            return cli_usage_error("--set %s: %s cannot hold %lld to %lld", var->name,
                                   oi_dtype_name(var->dtype), (long long)first, (long long)last);
    }
    return ok ? OI_OK : cli_usage_error("--set %s: write random:SEED:LO:HI", var->name);
}

/* -- files -- */

/* "in/{step}.npy" for step 3: "in/3.npy". */
static char *path_of_step(const char *pattern, uint64_t step)
{
    const char *hole = strstr(pattern, "{step}");
    size_t room = strlen(pattern) + 24;
    char *path = malloc(room);
    if (path && hole)
        snprintf(path, room, "%.*s%llu%s", (int)(hole - pattern), pattern, (unsigned long long)step,
                 hole + strlen("{step}"));
    else if (path)
        snprintf(path, room, "%s", pattern);
    return path;
}

static oi_status file_of_step(const oi_var_info *var, const char *pattern, uint64_t step,
                              cli_array *out)
{
    char *path = path_of_step(pattern, step);
    oi_status status =
        path ? cli_npy_read_as(path, var, out) : cli_fail(OI_ERR_ENV, "out of memory");
    free(path);
    return status;
}

oi_status cli_value(const oi_var_info *var, const char *text, uint64_t step, cli_array *out)
{
    *out = (cli_array){0};
    oi_status status;
    if (text[0] == '@')
        status = file_of_step(var, text + 1, step, out);
    else if (ends_with(text, ".npy"))
        status = cli_npy_read_as(text, var, out);
    else if (!strncmp(text, "random:", 7))
        status = random_values(var, text, out);
    else if (!strcmp(text, "zeros"))
        status = make_room(var, out);
    else
        status = numbers(var, text, out);
    if (status != OI_OK)
        cli_array_free(out);
    return status;
}
