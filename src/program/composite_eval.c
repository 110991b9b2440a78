/* composite_eval.c: the numbers in a body: attributes, lengths of axes, and what is computed from
 * them. */
#include "program/composite_eval.h"

#include <math.h>
#include <stdarg.h>

bool oi_frame_fail(const oi_frame *f, const char *code, const char *fmt, ...)
{
    va_list args;
    *f->fail = (oi_infer_fail){.code = code, .at = OI_AT_OP, .other = OI_INFER_NONE};
    va_start(args, fmt);
    vsnprintf(f->fail->message, sizeof f->fail->message, fmt, args);
    va_end(args);
    return false;
}

static oi_eval of_int(int64_t i)
{
    return (oi_eval){.tag = OI_EVAL_INT, .i = i, .f = (double)i};
}

static oi_eval of_bool(bool b)
{
    return (oi_eval){.tag = OI_EVAL_BOOL, .i = b, .f = b};
}

static oi_eval of_float(double v)
{
    return (oi_eval){.tag = OI_EVAL_FLOAT, .f = v};
}

static bool is_number(const oi_eval *v)
{
    return v->tag == OI_EVAL_INT || v->tag == OI_EVAL_FLOAT || v->tag == OI_EVAL_BOOL;
}

static bool of_attr(const oi_frame *f, uint32_t attr, oi_eval *out)
{
    const oi_op_value *v = &f->attrs[attr];
    if (f->run_attrs && f->run_attrs[attr] != OI_NO_VALUE) {
        *out = (oi_eval){.tag = OI_EVAL_RUN, .i = attr};
        return true;
    }
    switch (v->tag) {
    case OI_VALUE_INT: *out = of_int(v->i); return true;
    case OI_VALUE_UINT: *out = of_float((double)v->u); return true;
    case OI_VALUE_FLOAT: *out = of_float(v->f); return true;
    case OI_VALUE_BOOL: *out = of_bool(v->b); return true;
    case OI_VALUE_STRING: *out = (oi_eval){.tag = OI_EVAL_WORD, .s = v->s}; return true;
    case OI_VALUE_DTYPE: *out = (oi_eval){.tag = OI_EVAL_DTYPE, .dtype = v->dtype}; return true;
    case OI_VALUE_INT_LIST:
        *out = (oi_eval){.tag = OI_EVAL_LIST, .n = v->n};
        if (v->n > OI_KERNEL_RANK)
            return oi_frame_fail(f, "E060", "a list of more than %d numbers", OI_KERNEL_RANK);
        memcpy(out->list, v->ints, v->n * sizeof v->ints[0]);
        return true;
    default: *out = (oi_eval){.tag = OI_EVAL_ABSENT}; return true;
    }
}

/* The type of a value named in dim(x, 0): as it is used, inputs as they were given. */
static const oi_operand *shape_of(const oi_frame *f, uint16_t node)
{
    const oi_body_node *n = &f->body->nodes[node];
    if (n->code == OI_BODY_ATTR && f->run_attrs && f->run_attrs[n->index] != OI_NO_VALUE)
        return f->type_of(f->ctx, f->run_attrs[n->index]);
    if (n->code != OI_BODY_SLOT)
        return NULL;
    if (n->index < f->op->n_inputs)
        return n->index < f->n_in ? f->type_of(f->ctx, f->inputs[n->index]) : NULL;
    uint32_t value = f->slots[n->index], out = n->index - f->op->n_inputs;
    if (value == OI_NO_VALUE)
        return f->declared && out < f->op->n_outputs ? &f->declared[out] : NULL;
    return f->type_of(f->ctx, value);
}

static bool push(const oi_frame *f, oi_eval *list, int64_t i)
{
    if (list->n == OI_KERNEL_RANK)
        return oi_frame_fail(f, "E060", "a list of more than %d numbers", OI_KERNEL_RANK);
    list->list[list->n++] = i;
    return true;
}

static bool push_all(const oi_frame *f, oi_eval *list, const oi_eval *v)
{
    if (v->tag == OI_EVAL_INT)
        return push(f, list, v->i);
    if (v->tag != OI_EVAL_LIST)
        return oi_frame_fail(f, "E060", "a list holds whole numbers");
    for (uint32_t i = 0; i < v->n; i++)
        if (!push(f, list, v->list[i]))
            return false;
    return true;
}

static bool span(const oi_frame *f, int64_t from, int64_t to, const oi_operand *x, bool ones,
                 oi_eval *out)
{
    *out = (oi_eval){.tag = OI_EVAL_LIST};
    for (int64_t i = from; i < to; i++)
        if (!push(f, out, ones ? 1 : x ? x->dims[i] : i))
            return false;
    return true;
}

static int64_t from_end(int64_t i, const oi_operand *x)
{
    return i < 0 ? i + x->rank : i;
}

/* dim, dims, size, rank, dtype, is_float: about a value */
static bool about_shape(const oi_frame *f, const oi_body_node *n, oi_eval *out)
{
    const oi_operand *x = shape_of(f, n->args[0]);
    int64_t a, b;
    if (!x)
        return oi_frame_fail(f, "E060", "the body asks about a value that is not there");
    if (n->code == OI_BODY_TYPE) {
        *out = (oi_eval){.tag = OI_EVAL_DTYPE, .dtype = x->dtype};
        return true;
    }
    if (n->code == OI_BODY_RANK || n->code == OI_BODY_IS_FLOAT) {
        *out = n->code == OI_BODY_RANK ? of_int(x->rank) : of_bool(oi_dtype_is_float(x->dtype));
        return true;
    }
    if (!oi_eval_int(f, n->args[1], &a))
        return false;
    a = from_end(a, x);
    if (n->code == OI_BODY_DIM) {
        if (a < 0 || a >= x->rank)
            return oi_frame_fail(f, "E051", "an axis is out of range");
        *out = of_int(x->dims[a]);
        return true;
    }
    if (!oi_eval_int(f, n->args[2], &b))
        return false;
    b = from_end(b, x);
    if (a < 0 || b > x->rank)
        return oi_frame_fail(f, "E051", "an axis is out of range");
    if (n->code == OI_BODY_DIMS)
        return span(f, a, b, x, false, out);
    *out = of_int(1);
    for (; a < b; a++)
        *out = of_int(out->i * x->dims[a]); /* a tensor of that many elements exists */
    return true;
}

static bool given(const oi_frame *f, uint16_t node, oi_eval *out)
{
    const oi_body_node *n = &f->body->nodes[node];
    if (n->code == OI_BODY_SLOT) {
        *out = of_bool(n->index < f->n_in);
        return true;
    }
    if (!oi_eval_node(f, node, out))
        return false;
    *out = of_bool(out->tag != OI_EVAL_ABSENT);
    return true;
}

static bool whole(const oi_frame *f, oi_body_code code, int64_t a, int64_t b, oi_eval *out)
{
    int64_t r = 0;
    bool bad = false;
    switch (code) {
    case OI_BODY_ADD: bad = __builtin_add_overflow(a, b, &r); break;
    case OI_BODY_SUB: bad = __builtin_sub_overflow(a, b, &r); break;
    case OI_BODY_MUL: bad = __builtin_mul_overflow(a, b, &r); break;
    case OI_BODY_MIN: r = a < b ? a : b; break;
    case OI_BODY_MAX: r = a > b ? a : b; break;
    default:
        bad = b == 0 || (b == -1 && a == INT64_MIN);
        if (!bad)
            r = code == OI_BODY_DIV ? a / b : a % b;
    }
    *out = of_int(r);
    return !bad || oi_frame_fail(f, "E051", "a size of the body is no number");
}

static double real(oi_body_code code, double a, double b)
{
    switch (code) {
    case OI_BODY_ADD: return a + b;
    case OI_BODY_SUB: return a - b;
    case OI_BODY_MUL: return a * b;
    case OI_BODY_DIV: return a / b;
    case OI_BODY_MIN: return a < b ? a : b;
    case OI_BODY_MAX: return a > b ? a : b;
    default: return fmod(a, b);
    }
}

static bool compares(oi_body_code code, double a, double b)
{
    switch (code) {
    case OI_BODY_EQ: return a == b;
    case OI_BODY_NE: return a != b;
    case OI_BODY_LE: return a <= b;
    case OI_BODY_GE: return a >= b;
    case OI_BODY_LT: return a < b;
    default: return a > b;
    }
}

static bool binary(const oi_frame *f, const oi_body_node *n, oi_eval *out)
{
    oi_eval a, b;
    if (!oi_eval_node(f, n->args[0], &a) || !oi_eval_node(f, n->args[1], &b))
        return false;
    bool is_comparison = n->code >= OI_BODY_EQ && n->code <= OI_BODY_GT;
    if (a.tag == OI_EVAL_WORD && b.tag == OI_EVAL_WORD && is_comparison) {
        *out = of_bool((strcmp(a.s, b.s) == 0) == (n->code == OI_BODY_EQ));
        return true;
    }
    if (!is_number(&a) || !is_number(&b))
        return oi_frame_fail(f, "E060", "the body computes with a value that only the run knows");
    if (is_comparison)
        *out = of_bool(compares(n->code, a.f, b.f));
    else if (a.tag == OI_EVAL_FLOAT || b.tag == OI_EVAL_FLOAT)
        *out = of_float(real(n->code, a.f, b.f));
    else
        return whole(f, n->code, a.i, b.i, out);
    return true;
}

/* && || select: operands that are not needed are not evaluated */
static bool branch(const oi_frame *f, const oi_body_node *n, oi_eval *out)
{
    if (!oi_eval_node(f, n->args[0], out))
        return false;
    bool truth = out->tag == OI_EVAL_BOOL && out->i;
    if (n->code == OI_BODY_SELECT)
        return oi_eval_node(f, n->args[truth ? 1 : 2], out);
    return truth == (n->code == OI_BODY_OR) || oi_eval_node(f, n->args[1], out);
}

static bool unary(const oi_frame *f, const oi_body_node *n, oi_eval *out)
{
    oi_eval v;
    if (!oi_eval_node(f, n->args[0], &v))
        return false;
    if (!is_number(&v))
        return oi_frame_fail(f, "E060", "the body computes with what is no number");
    if (n->code == OI_BODY_NOT)
        *out = of_bool(!v.i);
    else if (n->code == OI_BODY_SQRT)
        *out = of_float(sqrt(v.f));
    else
        *out = v.tag == OI_EVAL_INT ? of_int(-v.i) : of_float(-v.f);
    return true;
}

static bool list(const oi_frame *f, const oi_body_node *n, oi_eval *out)
{
    int64_t a = 0, b = 0;
    if (n->code == OI_BODY_ONES)
        return oi_eval_int(f, n->args[0], &b) && span(f, 0, b, NULL, true, out);
    if (n->code == OI_BODY_RANGE)
        return oi_eval_int(f, n->args[0], &a) && oi_eval_int(f, n->args[1], &b) &&
               span(f, a, b, NULL, false, out);
    *out = (oi_eval){.tag = OI_EVAL_LIST};
    for (uint32_t i = 0; i < n->n_args; i++) {
        oi_eval item;
        if (!oi_eval_node(f, n->args[i], &item) || !push_all(f, out, &item))
            return false;
    }
    return true;
}

bool oi_eval_node(const oi_frame *f, uint16_t node, oi_eval *out)
{
    const oi_body_node *n = &f->body->nodes[node];
    switch (n->code) {
    case OI_BODY_NUMBER:
        *out = n->is_whole ? of_int((int64_t)n->number) : of_float(n->number);
        return true;
    case OI_BODY_TRUTH: *out = of_bool(n->number != 0); return true;
    case OI_BODY_WORD: *out = (oi_eval){.tag = OI_EVAL_WORD, .s = n->text}; return true;
    case OI_BODY_DTYPE:
        *out = (oi_eval){.tag = OI_EVAL_DTYPE, .dtype = n->index ? (oi_dtype)n->index : f->compute};
        return true;
    case OI_BODY_NAMED: *out = f->lets[n->index]; return true;
    case OI_BODY_SLOT: *out = (oi_eval){.tag = OI_EVAL_SLOT, .i = n->index}; return true;
    case OI_BODY_ATTR: return of_attr(f, n->index, out);
    case OI_BODY_COUNT: *out = of_int(f->counts[n->index]); return true;
    case OI_BODY_LIST:
    case OI_BODY_RANGE:
    case OI_BODY_ONES: return list(f, n, out);
    case OI_BODY_DIM:
    case OI_BODY_DIMS:
    case OI_BODY_SIZE:
    case OI_BODY_RANK:
    case OI_BODY_TYPE:
    case OI_BODY_IS_FLOAT: return about_shape(f, n, out);
    case OI_BODY_GIVEN: return given(f, n->args[0], out);
    case OI_BODY_IS_RUN:
        if (!oi_eval_node(f, n->args[0], out))
            return false;
        *out = of_bool(out->tag == OI_EVAL_RUN);
        return true;
    case OI_BODY_SELECT:
    case OI_BODY_AND:
    case OI_BODY_OR: return branch(f, n, out);
    case OI_BODY_NEG:
    case OI_BODY_NOT:
    case OI_BODY_SQRT: return unary(f, n, out);
    default: return binary(f, n, out);
    }
}

bool oi_eval_int(const oi_frame *f, uint16_t node, int64_t *out)
{
    oi_eval v;
    if (!oi_eval_node(f, node, &v))
        return false;
    *out = v.i;
    return v.tag == OI_EVAL_INT || v.tag == OI_EVAL_BOOL ||
           oi_frame_fail(f, "E060", "the body wants a whole number");
}
