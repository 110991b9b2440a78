/* text_call.h: calls of ops for tests, each one line of text:
 * "concat(f32[2,3], f32[4,3]; axis=0) >> f32[6,3]". Attributes are integers, lists of them or
 * words. */
#ifndef OI_TEXT_CALL_H
#define OI_TEXT_CALL_H

#include "kernel/kernel.h"

#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#define MAX_IN 4

typedef struct text_call {
    const oi_op *op;
    oi_operand in[MAX_IN], out[MAX_IN];
    size_t n_in, n_out;
    oi_op_value attrs[OI_KERNEL_ATTRS];
    int64_t ints[OI_KERNEL_ATTRS][16];
    char words[OI_KERNEL_ATTRS][16];
    const char *p;
} text_call;

static bool take(text_call *c, char token)
{
    c->p += strspn(c->p, " ,");
    if (*c->p != token)
        return false;
    c->p++;
    return true;
}

static oi_operand read_operand(text_call *c)
{
    oi_operand o = {.dtype = OI_NONE};
    c->p += strspn(c->p, " ,>");
    size_t n = strcspn(c->p, "[");
    o.dtype = oi_dtype_find_n(c->p, n);
    assert_int_not_equal(o.dtype, OI_NONE);
    c->p += n + 1;
    while (!take(c, ']')) {
        char *end;
        o.dims[o.rank++] = strtoll(c->p, &end, 10);
        c->p = end;
    }
    int64_t stride = 1;
    for (uint32_t d = o.rank; d-- > 0; stride *= o.dims[d])
        o.strides[d] = stride;
    return o;
}

static void read_attr(text_call *c)
{
    c->p += strspn(c->p, " ,");
    char name[32] = "";
    size_t n = strcspn(c->p, "=");
    memcpy(name, c->p, n);
    c->p += n + 1;
    const oi_op_attr *attr = oi_op_attr_find(c->op, name);
    assert_non_null(attr);
    size_t a = (size_t)(attr - c->op->attrs);
    oi_op_value *v = &c->attrs[a];
    if (take(c, '[')) {
        *v = (oi_op_value){.tag = OI_VALUE_INT_LIST, .ints = c->ints[a]};
        while (!take(c, ']')) {
            char *end;
            c->ints[a][v->n++] = strtoll(c->p, &end, 10);
            c->p = end;
        }
    } else if (*c->p >= 'A') {
        n = strcspn(c->p, ",) ");
        memcpy(c->words[a], c->p, n);
        c->p += n;
        *v = (oi_op_value){.tag = OI_VALUE_STRING, .s = c->words[a]};
        if (attr->kind == OI_ATTR_BOOL)
            *v = (oi_op_value){.tag = OI_VALUE_BOOL, .b = c->words[a][0] == 't'};
    } else {
        char *end;
        *v = (oi_op_value){.tag = OI_VALUE_INT, .i = strtoll(c->p, &end, 10)};
        c->p = end;
    }
}

static void read_call(text_call *c, const char *text)
{
    memset(c, 0, sizeof *c);
    size_t n = strcspn(text, "(");
    c->op = oi_op_find_n(text, n);
    assert_non_null(c->op);
    for (uint32_t i = 0; i < c->op->n_attrs; i++)
        c->attrs[i] = c->op->attrs[i].def;
    c->p = text + n + 1;
    while (!take(c, ')')) {
        if (!take(c, ';')) {
            c->in[c->n_in++] = read_operand(c);
            continue;
        }
        while (!take(c, ')'))
            read_attr(c);
        break;
    }
    while (*c->p)
        c->out[c->n_out++] = read_operand(c);
}

#endif
