/* infer.c: is a call of an op right, and which types does it give?
 *
 * In this order: how many inputs and outputs, attributes, dtypes of inputs, dtypes of outputs,
 * shapes. The first mistake wins; the caller knows the positions and reports it. */
#include "program/program.h"

/* -- counts -- */

static bool check_count(const oi_call *c, const char *verb, const char *what, size_t n,
                        uint32_t min, uint32_t max)
{
    if (n >= min && n <= max)
        return true;
    char wanted[48];
    if (min == max)
        snprintf(wanted, sizeof wanted, "%u", min);
    else if (max == OI_OP_MANY)
        snprintf(wanted, sizeof wanted, "at least %u", min);
    else
        snprintf(wanted, sizeof wanted, "%u or %u", min, max);
    uint32_t shown = max == OI_OP_MANY ? min : max;
    return oi_call_fail(c, "E056", OI_AT_OP, 0, "%s %s %s%s, found %zu", verb, wanted, what,
                        shown == 1 ? "" : "s", n);
}

/* -- dtypes of inputs -- */

/* The dtype that inputs share is that of the first one that does. */
static size_t first_shared(const oi_call *c)
{
    for (size_t i = 0; i < c->n_in; i++)
        if (oi_op_input_at(c->op, i)->shares_dtype)
            return i;
    return c->n_in;
}

static bool check_input(const oi_call *c, size_t i, size_t shared)
{
    const oi_op_input *in = oi_op_input_at(c->op, i);
    oi_dtype t = c->in[i].dtype;
    oi_dtype common = shared < c->n_in ? c->in[shared].dtype : OI_NONE;
    if (in->shares_dtype && t != common) {
        oi_call_fail(c, "E050", OI_AT_INPUT, i, "input '%s' is %s but '%s' is %s", in->name,
                     oi_dtype_name(t), c->op->inputs[shared].name, oi_dtype_name(common));
        c->fail->other = (uint32_t)shared;
        return false;
    }
    if (in->dtypes & OI_DTYPES(t) || (in->dtypes & OI_DTYPES_SAME && t == common))
        return true;
    char set[160];
    if (in->dtypes & OI_DTYPES_SAME) {
        oi_dtypes_print((in->dtypes & ~OI_DTYPES_SAME) | OI_DTYPES(common), set, sizeof set);
        oi_call_fail(c, "E050", OI_AT_INPUT, i, "input '%s' is %s, wants one of: %s", in->name,
                     oi_dtype_name(t), set);
        c->fail->other = (uint32_t)shared;
        return false;
    }
    oi_dtypes_print(in->dtypes, set, sizeof set);
    return oi_call_fail(c, "E060", OI_AT_INPUT, i, "input '%s' cannot be %s (takes %s)", in->name,
                        oi_dtype_name(t), set);
}

static bool check_inputs(const oi_call *c)
{
    size_t shared = first_shared(c);
    for (size_t i = 0; i < c->n_in; i++)
        if (oi_op_input_at(c->op, i)->shares_dtype && !check_input(c, i, shared))
            return false;
    for (size_t i = 0; i < c->n_in; i++)
        if (!oi_op_input_at(c->op, i)->shares_dtype && !check_input(c, i, shared))
            return false;
    return true;
}

/* -- acc -- */

static bool is_packed(oi_dtype t)
{
    return oi_dtype_bits(t) < 8;
}

static bool is_signed(oi_dtype t)
{
    return oi_dtype_get(t)->min < 0;
}

/* Every value of float type t is a value of float type a. */
static bool float_widens(oi_dtype t, oi_dtype a)
{
    const oi_dtype_info *from = oi_dtype_get(t), *to = oi_dtype_get(a);
    return to->exp_bits >= from->exp_bits && to->man_bits >= from->man_bits;
}

/* May inputs of t be accumulated in a? */
static bool acc_allowed(oi_dtype t, oi_dtype a)
{
    if (oi_dtype_is_float(t))
        return oi_dtype_is_float(a) && float_widens(t, a);
    if (!oi_dtype_is_integer(t))
        return false;
    if (t == a || a == OI_F32 || a == OI_F64)
        return true;
    return oi_dtype_is_integer(a) && !is_packed(a) && is_signed(a) == is_signed(t) &&
           oi_dtype_bits(a) > oi_dtype_bits(t);
}

/* An accumulator may be given out in any type of its own kind, integers also as floats. */
static bool acc_out_allowed(oi_dtype a, oi_dtype o)
{
    if (oi_dtype_is_float(o))
        return true;
    return oi_dtype_is_integer(a) && oi_dtype_is_integer(o);
}

static bool acc_dtype(const oi_call *c, const oi_attr_arg *arg, oi_dtype *out)
{
    size_t i = (size_t)(arg - c->attrs);
    const oi_op_value *v = &arg->value;
    const oi_dtype *list = v->tag == OI_VALUE_DTYPE ? &v->dtype : v->dtypes;
    size_t n = v->tag == OI_VALUE_DTYPE ? 1 : v->n;
    if (n < 1 || n > 2)
        return oi_call_fail(c, "E053", OI_AT_ATTR, i,
                            "acc wants one or two element types, found %zu", n);
    oi_dtype t = c->in[0].dtype, a = list[0], o = list[n - 1];
    if (!acc_allowed(t, a))
        return oi_call_fail(c, "E050", OI_AT_ATTR, i, "%s cannot be accumulated in %s",
                            oi_dtype_name(t), oi_dtype_name(a));
    if (!acc_out_allowed(a, o))
        return oi_call_fail(c, "E050", OI_AT_ATTR, i, "an accumulator of %s cannot be given as %s",
                            oi_dtype_name(a), oi_dtype_name(o));
    *out = o;
    return true;
}

/* -- dtypes of outputs -- */

/* The dtype of output o; for a list of choices the declared one when it is among them. */
static bool output_dtype(const oi_call *c, size_t o, oi_dtype *out)
{
    const oi_op_output *rule = oi_op_output_at(c->op, o);
    size_t shared = first_shared(c);
    oi_dtype common = shared < c->n_in ? c->in[shared].dtype : OI_NONE;
    const oi_attr_arg *arg = NULL;
    switch (rule->out_rule) {
    case OI_OUT_LIKE: *out = c->in[rule->out_input].dtype; return true;
    case OI_OUT_ATTR:
        arg = oi_call_arg(c, c->op->attrs[rule->out_attr].name);
        *out = !arg         ? c->op->attrs[rule->out_attr].def.dtype
               : arg->known ? arg->value.dtype
                            : OI_NONE;
        return true;
    case OI_OUT_ACC:
        arg = oi_call_arg(c, c->op->attrs[rule->out_attr].name);
        *out = arg ? OI_NONE : common;
        return !arg || !arg->known || acc_dtype(c, arg, out);
    case OI_OUT_LIST:
        *out = rule->out_default != OI_NONE ? rule->out_default : common;
        if (c->declared) {
            oi_dtype d = c->declared[o].dtype;
            if (rule->out_dtypes & OI_DTYPES(d) ||
                (rule->out_dtypes & OI_DTYPES_SAME && d == common))
                *out = d;
        }
        return true;
    }
    return true;
}

static bool check_output_dtype(const oi_call *c, size_t o, oi_dtype *out)
{
    if (!output_dtype(c, o, out))
        return false;
    if (!c->declared || *out == OI_NONE || c->declared[o].dtype == *out)
        return true;
    return oi_call_fail(c, "E050", OI_AT_OUTPUT, o, "the output is declared %s, the result is %s",
                        oi_dtype_name(c->declared[o].dtype), oi_dtype_name(*out));
}

/* -- the whole call -- */

static bool check_shape(const oi_call *c, size_t o, const oi_shape *shape)
{
    const oi_type *declared = &c->declared[o], *result = &shape->type;
    if (shape->is_open || oi_dims_equal(declared, result) != OI_DIFFERENT)
        return true;
    char text[OI_INFER_TEXT];
    oi_text t = {text, 0, sizeof text};
    oi_text_add(&t, "declared ");
    oi_text_dims(&t, declared);
    oi_text_add(&t, ", result is ");
    oi_text_dims(&t, result);
    oi_text_sizes(&t, (const oi_type *const[]){declared, result}, 2);
    return oi_call_fail(c, "E051", OI_AT_OUTPUT, o, "%s", text);
}

static bool infer(const oi_call *c, oi_type *out)
{
    const oi_op *op = c->op;
    if (!check_count(c, "takes", "input", c->n_in, op->min_inputs, op->max_inputs) ||
        !check_count(c, "gives", "output", c->n_out, op->min_outputs, op->max_outputs) ||
        !oi_attrs_check(c) || !check_inputs(c))
        return false;
    /* an output that names its own element types says what numbers are, else the first input */
    bool numbers_as_out = op->outputs[0].out_rule == OI_OUT_LIST;
    if (!numbers_as_out && c->n_in && !oi_attrs_check_numbers(c, c->in[0].dtype))
        return false;
    for (size_t o = 0; o < c->n_out; o++) {
        oi_dtype dtype = OI_NONE;
        oi_shape shape = {0};
        if (!check_output_dtype(c, o, &dtype) ||
            (numbers_as_out && o == 0 && !oi_attrs_check_numbers(c, dtype)) ||
            !oi_shape_infer(c, o, &shape))
            return false;
        if (c->declared && !check_shape(c, o, &shape))
            return false;
        if (!out)
            continue;
        if (shape.is_open || dtype == OI_NONE)
            return oi_call_fail(c, "E051", OI_AT_OP, 0,
                                "the result's type hangs on an attribute that only the run knows");
        out[o] = shape.type;
        out[o].dtype = dtype;
    }
    return true;
}

bool oi_infer(const oi_op *op, const oi_type *in, size_t n_in, const oi_attr_arg *attrs,
              size_t n_attrs, const oi_type *declared_out, size_t n_out, oi_infer_fail *fail)
{
    oi_call c = {op, in, n_in, attrs, n_attrs, declared_out, n_out, fail};
    return infer(&c, NULL);
}

static bool all_known(const oi_type *types, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (uint32_t d = 0; d < types[i].rank; d++)
            if (!types[i].dims[d].known)
                return false;
    return true;
}

bool oi_infer_result(const oi_op *op, const oi_type *in, size_t n_in, const oi_attr_arg *attrs,
                     size_t n_attrs, const oi_type *declared, oi_type *out, size_t n_out,
                     oi_infer_fail *fail)
{
    oi_call c = {op, in, n_in, attrs, n_attrs, declared, n_out, fail};
    if (!infer(&c, out))
        return false;
    if (!declared || all_known(out, n_out))
        return true;
    c.declared = NULL; /* it says how long the result is, and does not know: the inputs must */
    return infer(&c, out);
}
