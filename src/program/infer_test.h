/* infer_test.h: cases for oi_infer, each one line of text.
 *
 * "add(f32[B,64], f32[64]; acc=f64) >> f64[B,64]": B is a name without a value, B=4 a name with
 * one, ? a run-time length; `attr=$i32[]` is a variable, `attr=#` a value nobody knows yet. */
#ifndef OI_INFER_TEST_H
#define OI_INFER_TEST_H

#include "program/program.h"

#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

/* -- reading a case -- */

typedef struct reader {
    const char *p;
    char names[2048]; /* texts of dims and words */
    size_t n_names;
    oi_type in[12], out[4], vars[8];
    size_t n_in, n_out, n_vars;
    oi_attr_arg attrs[8];
    int64_t ints[8][8];
    oi_dtype dtypes[8][8];
    size_t n_attrs;
    const oi_op *op;
} reader;

static void blanks(reader *r)
{
    r->p += strspn(r->p, " ");
}

static bool take(reader *r, const char *token)
{
    blanks(r);
    if (strncmp(r->p, token, strlen(token)) != 0)
        return false;
    r->p += strlen(token);
    return true;
}

static void want(reader *r, const char *token)
{
    if (!take(r, token))
        fail_msg("test case: wanted '%s' at '%s'", token, r->p);
}

static const char *keep(reader *r, size_t n)
{
    char *at = r->names + r->n_names;
    assert_true(r->n_names + n + 1 < sizeof r->names);
    memcpy(at, r->p, n);
    at[n] = '\0';
    r->n_names += n + 1;
    r->p += n;
    return at;
}

static oi_dim read_dim(reader *r)
{
    oi_dim d = {0};
    blanks(r);
    if (*r->p >= '0' && *r->p <= '9') {
        char *end;
        d = oi_dim_of(strtoll(r->p, &end, 10));
        r->p = end;
        return d;
    }
    d.text = keep(r, strcspn(r->p, ",]="));
    if (take(r, "=")) {
        char *end;
        d.known = true;
        d.value = strtoll(r->p, &end, 10);
        r->p = end;
    }
    return d;
}

static oi_type read_type(reader *r)
{
    oi_type t = {0};
    blanks(r);
    size_t n = strcspn(r->p, "[");
    t.dtype = oi_dtype_find_n(r->p, n);
    assert_int_not_equal(t.dtype, OI_NONE);
    r->p += n;
    want(r, "[");
    while (!take(r, "]")) {
        t.dims[t.rank++] = read_dim(r);
        take(r, ",");
    }
    return t;
}

static oi_op_value read_item(reader *r)
{
    oi_op_value v = {0};
    blanks(r);
    size_t n = strcspn(r->p, ",])");
    const char *word = keep(r, n);
    char *end;
    v.dtype = oi_dtype_find(word);
    if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
        v = (oi_op_value){.tag = OI_VALUE_BOOL, .b = *word == 't'};
    else if (v.dtype != OI_NONE)
        v.tag = OI_VALUE_DTYPE;
    else if (*word == '"')
        v = (oi_op_value){.tag = OI_VALUE_STRING, .s = word + 1};
    else if (strpbrk(word, ".enf"))
        v = (oi_op_value){.tag = OI_VALUE_FLOAT, .f = strtod(word, &end)};
    else if (strtoull(word, &end, 10) > INT64_MAX && *word != '-')
        v = (oi_op_value){.tag = OI_VALUE_UINT, .u = strtoull(word, &end, 10)};
    else
        v = (oi_op_value){.tag = OI_VALUE_INT, .i = strtoll(word, &end, 10)};
    if (v.tag == OI_VALUE_STRING)
        *strchr(v.s, '"') = '\0';
    return v;
}

static void read_list(reader *r, oi_op_value *v)
{
    *v = (oi_op_value){.tag = OI_VALUE_INT_LIST, .ints = r->ints[r->n_attrs]};
    while (!take(r, "]")) {
        oi_op_value item = read_item(r);
        if (item.tag == OI_VALUE_DTYPE) {
            v->tag = OI_VALUE_DTYPE_LIST;
            v->dtypes = r->dtypes[r->n_attrs];
            r->dtypes[r->n_attrs][v->n++] = item.dtype;
        } else {
            r->ints[r->n_attrs][v->n++] = item.i;
        }
        take(r, ",");
    }
}

static void read_attr(reader *r)
{
    oi_attr_arg *arg = &r->attrs[r->n_attrs];
    blanks(r);
    const char *name = keep(r, strcspn(r->p, "="));
    arg->attr = oi_op_attr_find(r->op, name);
    if (!arg->attr)
        fail_msg("test case: '%s' has no attribute '%s'", r->op->name, name);
    want(r, "=");
    arg->known = true;
    if (take(r, "$")) {
        r->vars[r->n_vars] = read_type(r);
        arg->var = &r->vars[r->n_vars++];
        arg->known = false;
    } else if (take(r, "#")) { /* a value that nobody knows yet, and no variable either */
        arg->known = false;
    } else if (take(r, "[")) {
        read_list(r, &arg->value);
    } else {
        arg->value = read_item(r);
    }
    r->n_attrs++;
}

static void read_case(reader *r, const char *text)
{
    *r = (reader){.p = text};
    size_t n = strcspn(text, "(");
    r->op = oi_op_find_n(text, n);
    if (!r->op)
        fail_msg("test case: no op in '%s'", text);
    r->p += n;
    want(r, "(");
    while (!take(r, ")")) {
        blanks(r);
        if (*r->p != ';')
            r->in[r->n_in++] = read_type(r);
        take(r, ",");
        if (take(r, ";"))
            while (!take(r, ")")) {
                read_attr(r);
                take(r, ",");
            }
        if (r->p[-1] == ')')
            break;
    }
    want(r, ">>");
    while (*r->p) {
        r->out[r->n_out++] = read_type(r);
        take(r, ",");
    }
}

/* -- running it -- */

/* For the test that every op was tried. */
static bool seen_accepted[OI_OP_COUNT], seen_refused[OI_OP_COUNT];

static bool run_case(reader *r, const char *text, oi_infer_fail *fail)
{
    memset(fail, 0, sizeof *fail);
    read_case(r, text);
    return oi_infer(r->op, r->in, r->n_in, r->attrs, r->n_attrs, r->out, r->n_out, fail);
}

static void accept(const char *text)
{
    reader r;
    oi_infer_fail fail;
    if (!run_case(&r, text, &fail))
        fail_msg("%s: refused: %s %s", text, fail.code, fail.message);
    seen_accepted[r.op->id] = true;
}

static void refuse(const char *text, const char *code, const char *message)
{
    reader r;
    oi_infer_fail fail;
    if (run_case(&r, text, &fail))
        fail_msg("%s: accepted, wanted %s", text, code);
    if (strcmp(fail.code, code) != 0)
        fail_msg("%s: wanted %s, found %s: %s", text, code, fail.code, fail.message);
    char full[600];
    snprintf(full, sizeof full, "%s: %s", r.op->name, message);
    assert_string_equal(fail.message, full);
    seen_refused[r.op->id] = true;
    size_t limit = fail.at == OI_AT_INPUT    ? r.n_in
                   : fail.at == OI_AT_OUTPUT ? r.n_out
                   : fail.at == OI_AT_ATTR   ? r.n_attrs
                                             : 1;
    assert_true(fail.index < limit);
    assert_true(fail.other == OI_INFER_NONE || fail.other < r.n_in);
}

/* The same case for several ops: what follows the name, "(f32[4]) >> f32[4]". */
static inline const char *joined(char text[160], const char *name, const char *rest)
{
    snprintf(text, 160, "%s%s", name, rest);
    return text;
}

#define accept_all(names, rest)                           \
    for (size_t each = 0; each < OI_COUNT(names); each++) \
    accept(joined((char[160]){0}, (names)[each], rest))
#define refuse_all(names, rest, code, message)            \
    for (size_t each = 0; each < OI_COUNT(names); each++) \
    refuse(joined((char[160]){0}, (names)[each], rest), code, message)

#endif
