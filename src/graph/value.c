/* value.c: attribute values and scalars: conversion with the checks of @init, and printing. */
#include "graph/graph.h"

#include "base/ops.h"

/* -- value -> scalar -- */

static bool is_finite_bits(oi_dtype t, uint64_t bits)
{
    const oi_dtype_info *d = oi_dtype_get(t);
    uint64_t mask = ((1ull << d->exp_bits) - 1) << d->man_bits;
    return (bits & mask) != mask;
}

static const char *float_scalar(oi_dtype t, const oi_value *v, oi_scalar *out)
{
    double x = v->kind == OI_VAL_INT ? (v->negative ? -(double)v->magnitude : (double)v->magnitude)
                                     : v->number;
    uint64_t bits = oi_float_encode(t, x);
    bool finite = x - x == 0;
    if (finite && !is_finite_bits(t, bits))
        return "E016";
    *out = (oi_scalar){t, bits};
    return NULL;
}

static const char *int_scalar(oi_dtype t, bool negative, uint64_t magnitude, oi_scalar *out)
{
    const oi_dtype_info *d = oi_dtype_get(t);
    bool fits =
        negative ? d->min < 0 && magnitude <= (uint64_t) - (d->min + 1) + 1 : magnitude <= d->max;
    if (!fits || (t == OI_T1 && magnitude == 0))
        return "E016";
    uint64_t bits = negative ? 0 - magnitude : magnitude;
    if (t == OI_T1)
        bits = !negative;
    *out = (oi_scalar){t, d->bits < 64 ? bits & ((1ull << d->bits) - 1) : bits};
    return NULL;
}

const char *oi_scalar_from_value(oi_dtype t, const oi_value *v, oi_scalar *out)
{
    bool is_number = v->kind == OI_VAL_INT || v->kind == OI_VAL_FLOAT;
    if (v->kind == OI_VAL_BOOL && t == OI_BOOL)
        return int_scalar(t, false, v->boolean, out);
    if (oi_dtype_is_float(t))
        return is_number ? float_scalar(t, v, out) : "E015";
    return v->kind == OI_VAL_INT ? int_scalar(t, v->negative, v->magnitude, out) : "E015";
}

bool oi_value_i64(const oi_value *v, int64_t *out)
{
    if (v->kind != OI_VAL_INT || v->magnitude > (uint64_t)INT64_MAX + v->negative)
        return false;
    *out = v->negative ? (int64_t)(0 - v->magnitude) : (int64_t)v->magnitude;
    return true;
}

void oi_attr_normalise(oi_arena *a, const char *op, oi_attr *attr)
{
    const oi_op *row = oi_op_find(op);
    const oi_op_attr *known = row ? oi_op_attr_find(row, attr->name.text) : NULL;
    if (!known || known->kind != OI_ATTR_DTYPE_LIST || attr->value.kind != OI_VAL_DTYPE)
        return;
    oi_value *item = oi_arena_alloc(a, sizeof *item);
    *item = attr->value;
    attr->value = (oi_value){.kind = OI_VAL_LIST, .items = item, .n = 1, .span = item->span};
}

/* -- printing -- */

static void print_double(oi_buf *out, double v)
{
    char text[OI_NUMBER_TEXT];
    oi_buf_add(out, text, oi_print_f64(text, v));
}

/* f8, bf16 and f16: the shortest decimal that rounds to these bits, so that 0.1 stays 0.1. */
static double shortest_small(oi_dtype t, uint64_t bits)
{
    double exact = oi_float_decode(t, bits), tried = exact;
    for (int digits = 0; digits < 9; digits++) {
        char text[40];
        int n = snprintf(text, sizeof text, "%.*e", digits, exact < 0 ? -exact : exact);
        if (digits)
            text[1] = '.'; /* whatever the locale's point is */
        if (!oi_parse_f64(text, (size_t)n, &tried))
            break;
        tried = exact < 0 ? -tried : tried;
        if (oi_float_encode(t, tried) == bits)
            return tried;
    }
    return exact;
}

static void print_float(oi_buf *out, oi_scalar s)
{
    double v = oi_float_decode(s.dtype, s.bits);
    char text[OI_NUMBER_TEXT];
    if (s.dtype == OI_F32)
        oi_buf_add(out, text, oi_print_f32(text, (float)v));
    else
        print_double(
            out, s.dtype == OI_F64 || v - v != 0 || v == 0 ? v : shortest_small(s.dtype, s.bits));
}

void oi_scalar_print(oi_buf *out, oi_scalar s)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(s.bits >> 8 * i);
    if (oi_dtype_is_float(s.dtype))
        print_float(out, s);
    else if (s.dtype == OI_BOOL)
        oi_buf_puts(out, s.bits ? "true" : "false");
    else if (s.dtype == OI_U64)
        oi_buf_printf(out, "%llu", (unsigned long long)s.bits);
    else
        oi_buf_printf(out, "%lld", (long long)oi_element_i64(s.dtype, bytes, 0));
}

static void print_string(oi_buf *out, const char *text, size_t n)
{
    static const char from[] = "\n\t\r\\\"", to[] = "ntr\\\"";
    oi_buf_putc(out, '"');
    for (size_t i = 0; i < n; i++) {
        const char *hit = text[i] ? strchr(from, text[i]) : NULL;
        if (hit)
            oi_buf_printf(out, "\\%c", to[hit - from]);
        else if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            oi_buf_printf(out, "\\x%02x", (unsigned char)text[i]);
        else
            oi_buf_putc(out, text[i]);
    }
    oi_buf_putc(out, '"');
}

void oi_value_print(oi_buf *out, const oi_value *v)
{
    switch (v->kind) {
    case OI_VAL_INT:
        oi_buf_printf(out, "%s%llu", v->negative ? "-" : "", (unsigned long long)v->magnitude);
        return;
    case OI_VAL_FLOAT: print_double(out, v->number); return;
    case OI_VAL_BOOL: oi_buf_puts(out, v->boolean ? "true" : "false"); return;
    case OI_VAL_STR: print_string(out, v->text, v->n); return;
    case OI_VAL_DTYPE: oi_buf_puts(out, oi_dtype_name(v->dtype)); return;
    case OI_VAL_NAME: oi_buf_puts(out, v->text); return;
    case OI_VAL_EXPR: oi_expr_print(out, v->expr); return;
    case OI_VAL_LIST: break;
    }
    oi_buf_putc(out, '[');
    for (size_t i = 0; i < v->n; i++) {
        oi_buf_puts(out, i ? ", " : "");
        oi_value_print(out, &v->items[i]);
    }
    oi_buf_putc(out, ']');
}
