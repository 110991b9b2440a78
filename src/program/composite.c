/* composite.c: a composite op becomes the calls of its body.
 *
 * The body is followed statement by statement: operands become values, attributes are computed,
 * oi_infer_result says what a call gives. A call of another composite is followed in turn. Floats
 * narrower than f32 are converted when a body first uses them, and results when it has ended. */
#include "program/composite_eval.h"

/* Calls of one expansion: sequences are unrolled, and a length in a graph must not take all memory.
 */
#define MAX_CALLS 20000
#define MAX_DEPTH 8 /* composites within composites; rows call only earlier ones */

typedef OI_VEC(uint32_t) value_list;

typedef struct builder {
    oi_arena *a;
    const oi_kernel_query *q;
    oi_infer_fail *fail;
    OI_VEC(oi_exp_value) values;
    OI_VEC(oi_exp_call) calls;
    OI_VEC(oi_exp_check) checks;
    unsigned depth;
} builder;

static const oi_operand *type_of(void *ctx, uint32_t value)
{
    return &((builder *)ctx)->values.at[value].type;
}

/* -- values -- */

static uint32_t new_value(builder *b, oi_exp_kind kind, uint32_t index, const oi_operand *type)
{
    *OI_PUSH(b->a, &b->values) = (oi_exp_value){.kind = kind, .index = index, .type = *type};
    return (uint32_t)(b->values.n - 1);
}

static oi_operand contiguous(oi_dtype t, uint32_t rank, const int64_t *dims)
{
    oi_operand o = {.dtype = t, .rank = rank};
    int64_t stride = 1;
    for (uint32_t i = rank; i-- > 0;) {
        o.dims[i] = dims[i];
        o.strides[i] = stride;
        if (dims[i] && __builtin_mul_overflow(stride, dims[i], &stride))
            stride = INT64_MAX; /* too large: the allocation reports it */
    }
    return o;
}

/* A number or a list of whole numbers as a tensor of rank 0 or 1. */
static uint32_t constant(builder *b, oi_dtype t, const oi_eval *v)
{
    bool is_list = v->tag == OI_EVAL_LIST;
    oi_dtype own = is_list ? OI_I64 : t;
    int64_t n = is_list ? v->n : 1;
    oi_operand type = contiguous(own, is_list, &n);
    void *bytes = oi_arena_alloc(b->a, (size_t)(n ? n : 1) * sizeof(int64_t));
    for (int64_t i = 0; i < n; i++)
        if (is_list)
            (void)oi_element_set_i64(own, bytes, (uint64_t)i, v->list[i]);
        else if (v->tag == OI_EVAL_FLOAT || oi_dtype_is_float(own))
            (void)oi_element_set_f64(own, bytes, 0, v->f);
        else
            (void)oi_element_set_i64(own, bytes, 0, v->i);
    uint32_t value = new_value(b, OI_VALUE_OF_CONST, 0, &type);
    b->values.at[value].bytes = bytes;
    return value;
}

static bool add_call(builder *b, const oi_frame *f, const oi_op *op, const value_list *in,
                     const uint32_t *out, uint32_t n_out, const oi_op_value *attrs)
{
    if (b->calls.n == MAX_CALLS)
        return oi_frame_fail(f, "E060", "%s would be more than %d calls", b->q->op->name,
                             MAX_CALLS);
    uint32_t *ids = oi_arena_alloc(b->a, (in->n + n_out + 1) * sizeof *ids);
    if (in->n)
        memcpy(ids, in->at, in->n * sizeof *ids);
    memcpy(ids + in->n, out, n_out * sizeof *ids);
    *OI_PUSH(b->a, &b->calls) = (oi_exp_call){.op = op,
                                              .in = ids,
                                              .out = ids + in->n,
                                              .n_in = (uint32_t)in->n,
                                              .n_out = n_out,
                                              .attrs = attrs};
    return true;
}

static bool cast(builder *b, const oi_frame *f, uint32_t from, uint32_t to)
{
    const oi_op *op = oi_op_at(OI_OP_CAST);
    oi_op_value *attrs = oi_arena_alloc(b->a, op->n_attrs * sizeof *attrs);
    for (uint32_t i = 0; i < op->n_attrs; i++)
        attrs[i] = op->attrs[i].def;
    attrs[oi_op_attr_find(op, "to") - op->attrs] =
        (oi_op_value){.tag = OI_VALUE_DTYPE, .dtype = b->values.at[to].type.dtype};
    value_list in = {0};
    *OI_PUSH(b->a, &in) = from;
    return add_call(b, f, op, &in, &to, 1, attrs);
}

/* The value of a slot; an input that is a float of another width is converted at its first use. */
static bool slot_value(builder *b, oi_frame *f, uint32_t slot, uint32_t *out)
{
    uint32_t value = f->slots[slot];
    if (value == OI_NO_VALUE)
        return oi_frame_fail(f, "E060", "the body reads an input that was not given");
    const oi_operand *type = &b->values.at[value].type;
    if (slot < f->op->n_inputs && oi_dtype_is_float(type->dtype) && type->dtype != f->compute) {
        oi_operand wide = contiguous(f->compute, type->rank, type->dims);
        uint32_t to = new_value(b, OI_VALUE_OF_TEMP, 0, &wide);
        if (!cast(b, f, value, to))
            return false;
        f->slots[slot] = value = to;
    }
    *out = value;
    return true;
}

/* -- calls -- */

typedef struct step_state {
    value_list in;
    const value_list *lists; /* by slot: what `append` gathered */
    oi_eval numbers[OI_BODY_ARGS];
} step_state;

/* A number among the operands has the dtype of the first tensor that shares its own. */
static oi_dtype number_dtype(const builder *b, const oi_frame *f, const oi_op *op,
                             const value_list *in, size_t port)
{
    const oi_op_input *own = oi_op_input_at(op, port);
    if (own && !own->shares_dtype)
        return own->dtypes & OI_DTYPES(OI_I64) ? OI_I64 : f->compute;
    for (size_t i = 0; i < in->n; i++)
        if (in->at[i] != OI_NO_VALUE && oi_op_input_at(op, i)->shares_dtype)
            return b->values.at[in->at[i]].type.dtype;
    return f->compute;
}

/* Operands of a step: tensors first, then the numbers among them. */
static bool operands(builder *b, oi_frame *f, const oi_body_step *s, value_list *lists,
                     const oi_op *op, value_list *in)
{
    oi_eval numbers[OI_BODY_ARGS];
    size_t at[OI_BODY_ARGS], n_numbers = 0;
    for (uint32_t i = 0; i < s->n_in; i++) {
        oi_eval v;
        if (!oi_eval_node(f, s->in[i], &v))
            return false;
        if (v.tag == OI_EVAL_SLOT && lists[v.i].n) {
            for (size_t k = 0; k < lists[v.i].n; k++)
                *OI_PUSH(b->a, in) = lists[v.i].at[k];
            lists[v.i].n = 0; /* who takes a list empties it: a loop can gather anew */
            continue;
        }
        uint32_t *to = OI_PUSH(b->a, in);
        *to = OI_NO_VALUE;
        if (v.tag == OI_EVAL_SLOT && !slot_value(b, f, (uint32_t)v.i, to))
            return false;
        if (v.tag == OI_EVAL_RUN)
            *to = f->run_attrs[v.i];
        if (v.tag == OI_EVAL_ABSENT || v.tag == OI_EVAL_WORD || v.tag == OI_EVAL_DTYPE)
            return oi_frame_fail(f, "E060", "the body of %s reads what is not there", f->op->name);
        if (*to == OI_NO_VALUE) {
            numbers[n_numbers] = v;
            at[n_numbers++] = in->n - 1;
        }
    }
    for (size_t i = 0; i < n_numbers; i++) {
        bool alone = n_numbers == in->n && numbers[i].tag == OI_EVAL_INT;
        in->at[at[i]] =
            constant(b, alone ? OI_I64 : number_dtype(b, f, op, in, at[i]), &numbers[i]);
    }
    return true;
}

static bool to_op_value(builder *b, const oi_frame *f, const oi_eval *v, oi_op_value *out)
{
    switch (v->tag) {
    case OI_EVAL_INT: *out = (oi_op_value){.tag = OI_VALUE_INT, .i = v->i}; return true;
    case OI_EVAL_FLOAT: *out = (oi_op_value){.tag = OI_VALUE_FLOAT, .f = v->f}; return true;
    case OI_EVAL_BOOL: *out = (oi_op_value){.tag = OI_VALUE_BOOL, .b = v->i != 0}; return true;
    case OI_EVAL_WORD: *out = (oi_op_value){.tag = OI_VALUE_STRING, .s = v->s}; return true;
    case OI_EVAL_DTYPE: *out = (oi_op_value){.tag = OI_VALUE_DTYPE, .dtype = v->dtype}; return true;
    case OI_EVAL_LIST: {
        int64_t *ints = oi_arena_alloc(b->a, (v->n + 1) * sizeof *ints);
        memcpy(ints, v->list, v->n * sizeof *ints);
        *out = (oi_op_value){.tag = OI_VALUE_INT_LIST, .n = v->n, .ints = ints};
        return true;
    }
    default: return oi_frame_fail(f, "E060", "an attribute in the body is no value");
    }
}

/* Attributes given in a step, over the defaults. One that is itself left out stays left out. */
typedef struct given_attrs {
    oi_op_value *values;
    uint32_t *run; /* value ids, or NULL when none is left to the run */
    oi_attr_arg args[OI_BODY_ATTRS];
    oi_type run_types[OI_BODY_ATTRS];
    size_t n_args;
} given_attrs;

static oi_type type_from(const oi_operand *o)
{
    oi_type t = {.dtype = o->dtype, .rank = o->rank};
    for (uint32_t i = 0; i < o->rank; i++)
        t.dims[i] = oi_dim_of(o->dims[i]);
    return t;
}

static bool attributes(builder *b, const oi_frame *f, const oi_body_step *s, const oi_op *op,
                       given_attrs *g)
{
    g->values = oi_arena_alloc(b->a, (op->n_attrs + 1) * sizeof *g->values);
    g->run = NULL;
    g->n_args = 0;
    for (uint32_t i = 0; i < op->n_attrs; i++)
        g->values[i] = op->attrs[i].def;
    for (uint32_t i = 0; i < s->n_attrs; i++) {
        const oi_op_attr *attr = &op->attrs[s->attrs[i].attr];
        oi_attr_arg *arg = &g->args[g->n_args];
        oi_eval v;
        if (!oi_eval_node(f, s->attrs[i].node, &v))
            return false;
        if (v.tag == OI_EVAL_ABSENT)
            continue;
        *arg = (oi_attr_arg){.attr = attr, .known = v.tag != OI_EVAL_RUN};
        if (v.tag == OI_EVAL_RUN) {
            if (!g->run) {
                g->run = oi_arena_alloc(b->a, op->n_attrs * sizeof *g->run);
                memset(g->run, 0xff, op->n_attrs * sizeof *g->run);
            }
            g->run[attr - op->attrs] = f->run_attrs[v.i];
            g->run_types[g->n_args] = type_from(&b->values.at[f->run_attrs[v.i]].type);
            arg->var = &g->run_types[g->n_args];
        } else {
            if (!to_op_value(b, f, &v, &arg->value))
                return false;
            g->values[attr - op->attrs] = arg->value;
        }
        g->n_args++;
    }
    return g->run == NULL || op->cls == OI_OP_CLASS_COMPOSITE ||
           oi_frame_fail(f, "E060", "%s wants an attribute that only the run knows", op->name);
}

static bool results(builder *b, const oi_frame *f, const oi_op *op, const value_list *in,
                    const given_attrs *g, uint32_t *out, uint32_t n_out)
{
    oi_type few[8] = {{0}}, *types = few;
    if (in->n + n_out > OI_COUNT(few))
        types = oi_arena_alloc(b->a, (in->n + n_out) * sizeof *types);
    oi_infer_fail why;
    for (size_t i = 0; i < in->n; i++)
        types[i] = type_from(&b->values.at[in->at[i]].type);
    if (!oi_infer_result(op, types, in->n, g->args, g->n_args, NULL, types + in->n, n_out, &why))
        return oi_frame_fail(f, why.code, "in its body: %s", why.message);
    for (uint32_t i = 0; i < n_out; i++) {
        int64_t dims[OI_MAX_RANK] = {0};
        const oi_type *t = &types[in->n + i];
        for (uint32_t d = 0; d < t->rank; d++)
            dims[d] = t->dims[d].value;
        oi_operand type = contiguous(t->dtype, t->rank, dims);
        out[i] = new_value(b, OI_VALUE_OF_TEMP, 0, &type);
    }
    return true;
}

/* In a body a length of 0 is 0: the list is the result's shape, with at most one -1. The call then
 * goes by its output, as a reshape without the attribute does. */
static bool reshaped(builder *b, const oi_frame *f, const value_list *in, const given_attrs *g,
                     uint32_t *out)
{
    const oi_operand *x = &b->values.at[in->at[0]].type;
    oi_op_value *v = &g->values[0];
    const int64_t *list = v->tag == OI_VALUE_INT ? &v->i : v->ints;
    uint32_t n = v->tag == OI_VALUE_INT ? 1 : v->n, rest = n;
    int64_t dims[OI_KERNEL_RANK], size = 1, all = 1;
    if (v->tag == OI_VALUE_NONE || n > OI_KERNEL_RANK)
        return oi_frame_fail(f, "E060", "the body of %s reshapes to nothing", f->op->name);
    for (uint32_t i = 0; i < x->rank; i++)
        all *= x->dims[i];
    for (uint32_t i = 0; i < n; i++) {
        dims[i] = list[i];
        rest = list[i] < 0 ? i : rest;
        if (list[i] >= 0 && __builtin_mul_overflow(size, list[i], &size))
            return oi_frame_fail(f, "E051", "the body of %s reshapes beyond all", f->op->name);
    }
    if (rest < n)
        dims[rest] = size ? all / size : 0;
    if ((rest < n ? dims[rest] * size : size) != all)
        return oi_frame_fail(f, "E051", "the body of %s reshapes to another size", f->op->name);
    *v = (oi_op_value){.tag = OI_VALUE_NONE};
    oi_operand type = contiguous(x->dtype, n, dims);
    *out = new_value(b, OI_VALUE_OF_TEMP, 0, &type);
    return true;
}

static bool follow(builder *b, const oi_op *op, const value_list *in, const oi_op_value *attrs,
                   const uint32_t *run_attrs, uint32_t *out, uint32_t n_out);

/* More tensors than one concat takes are joined in groups first. */
static bool join_groups(builder *b, const oi_frame *f, const oi_op *op, const given_attrs *g,
                        value_list *in)
{
    while (in->n > OI_KERNEL_PORTS) {
        value_list joined = {0};
        for (size_t i = 0; i < in->n; i += OI_KERNEL_PORTS) {
            size_t n = in->n - i < OI_KERNEL_PORTS ? in->n - i : OI_KERNEL_PORTS;
            value_list part = {.at = in->at + i, .n = n, .cap = n};
            uint32_t out = 0;
            if (!results(b, f, op, &part, g, &out, 1) ||
                !add_call(b, f, op, &part, &out, 1, g->values))
                return false;
            *OI_PUSH(b->a, &joined) = out;
        }
        *in = joined;
    }
    return true;
}

static bool call_step(builder *b, oi_frame *f, const oi_body_step *s, value_list *lists)
{
    const oi_op *op = oi_op_at(s->op);
    value_list in = {0};
    given_attrs given;
    uint32_t out[OI_BODY_OUTS];
    if (!operands(b, f, s, lists, op, &in) || !attributes(b, f, s, op, &given) ||
        (op->id == OI_OP_CONCAT && !join_groups(b, f, op, &given, &in)))
        return false;
    bool ok;
    if (op->cls == OI_OP_CLASS_COMPOSITE && op->n_bodies)
        ok = follow(b, op, &in, given.values, given.run, out, s->n_out);
    else
        ok = (op->id == OI_OP_RESHAPE ? reshaped(b, f, &in, &given, out)
                                      : results(b, f, op, &in, &given, out, s->n_out)) &&
             add_call(b, f, op, &in, out, s->n_out, given.values);
    for (uint32_t i = 0; ok && i < s->n_out; i++) {
        f->slots[s->out[i]] = out[i];
        b->values.at[out[i]].name = f->body->slots[s->out[i]];
    }
    return ok;
}

static bool check_step(builder *b, oi_frame *f, const oi_body_step *s)
{
    oi_eval v;
    int64_t limit;
    uint32_t attr = f->body->nodes[s->in[0]].index;
    if (!oi_eval_node(f, s->in[0], &v) || !oi_eval_int(f, s->in[1], &limit))
        return false;
    if (v.tag == OI_EVAL_ABSENT)
        return true;
    uint32_t value = v.tag == OI_EVAL_RUN ? f->run_attrs[v.i] : constant(b, OI_I64, &v);
    *OI_PUSH(b->a, &b->checks) = (oi_exp_check){.value = value, .limit = limit, .attr = attr};
    return true;
}

static bool steps(builder *b, oi_frame *f, value_list *lists, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const oi_body_step *s = &f->body->steps[i];
        int64_t count;
        switch (s->kind) {
        case OI_BODY_CALL:
            if (!call_step(b, f, s, lists))
                return false;
            break;
        case OI_BODY_CHECK:
            if (!check_step(b, f, s))
                return false;
            break;
        case OI_BODY_APPEND:
            *OI_PUSH(b->a, &lists[s->out[0]]) = f->slots[f->body->nodes[s->in[0]].index];
            break;
        case OI_BODY_LET:
            if (!oi_eval_node(f, s->in[0], &f->lets[s->out[0]]))
                return false;
            break;
        case OI_BODY_IF:
            if (!oi_eval_int(f, s->in[0], &count))
                return false;
            i += count ? 0 : s->n_steps;
            break;
        case OI_BODY_FOR:
            if (!oi_eval_int(f, s->in[0], &count))
                return false;
            for (int64_t k = 0; k < count; k++) {
                f->counts[s->out[0]] = k;
                if (!steps(b, f, lists, i + 1, i + 1 + s->n_steps))
                    return false;
            }
            i += s->n_steps;
            break;
        }
    }
    return true;
}

/* -- the whole -- */

/* The dtype floats are computed in. */
static oi_dtype compute_dtype(const builder *b, const oi_op *op, const value_list *in)
{
    for (size_t i = 0; i < in->n; i++)
        if (oi_op_input_at(op, i)->shares_dtype)
            return b->values.at[in->at[i]].type.dtype == OI_F64 ? OI_F64 : OI_F32;
    return OI_F32;
}

static bool choose_body(oi_frame *f)
{
    for (uint32_t i = 0; i < f->op->n_bodies; i++) {
        oi_eval v = {.i = 1};
        f->body = &f->op->bodies[i];
        if (f->body->when != OI_BODY_NONE && !oi_eval_node(f, f->body->when, &v))
            return false;
        if (v.i)
            return true;
    }
    return oi_frame_fail(f, "E060", "%s has no body for this call", f->op->name);
}

static bool follow(builder *b, const oi_op *op, const value_list *in, const oi_op_value *attrs,
                   const uint32_t *run_attrs, uint32_t *out, uint32_t n_out)
{
    oi_frame f = {.op = op,
                  .n_in = in->n,
                  .inputs = in->at,
                  .attrs = attrs,
                  .run_attrs = run_attrs,
                  .compute = compute_dtype(b, op, in),
                  .declared = b->depth ? NULL : b->q->out,
                  .type_of = type_of,
                  .ctx = b,
                  .fail = b->fail};
    if (b->depth == MAX_DEPTH || !choose_body(&f))
        return b->depth < MAX_DEPTH || oi_frame_fail(&f, "E060", "composites nested too deeply");
    f.slots = oi_arena_alloc(b->a, f.body->n_slots * sizeof *f.slots);
    value_list *lists = oi_arena_alloc(b->a, f.body->n_slots * sizeof *lists);
    f.lets = oi_arena_alloc(b->a, OI_BODY_LETS * sizeof *f.lets);
    for (uint32_t i = 0; i < f.body->n_slots; i++)
        f.slots[i] = i < in->n && i < op->n_inputs ? in->at[i] : OI_NO_VALUE;
    b->depth++;
    bool ok = steps(b, &f, lists, 0, f.body->n_steps);
    b->depth--;
    for (uint32_t i = 0; ok && i < n_out; i++) {
        out[i] = f.slots[op->n_inputs + i];
        if (out[i] == OI_NO_VALUE)
            ok = oi_frame_fail(&f, "E060", "the body of %s does not give '%s'", op->name,
                               op->outputs[i].name);
    }
    return ok;
}

static bool same_dims(const oi_operand *a, const oi_operand *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

/* Result i becomes the output itself, or is converted to it. */
static bool give_out(builder *b, uint32_t i, uint32_t value)
{
    const oi_operand *want = &b->q->out[i];
    oi_exp_value *v = &b->values.at[value];
    oi_frame f = {.op = b->q->op, .fail = b->fail};
    if (!same_dims(&v->type, want))
        return oi_frame_fail(&f, "E051", "the body of %s gives another shape", b->q->op->name);
    if (v->kind == OI_VALUE_OF_TEMP && v->type.dtype == want->dtype) {
        *v = (oi_exp_value){.kind = OI_VALUE_OF_OUTPUT, .index = i, .type = *want};
        return true;
    }
    return cast(b, &f, value, new_value(b, OI_VALUE_OF_OUTPUT, i, want));
}

/* Values of attributes that only the run knows. */
static const uint32_t *run_values(builder *b)
{
    const oi_kernel_query *q = b->q;
    uint32_t *ids = NULL;
    for (uint32_t i = 0; q->run_attrs && i < q->op->n_attrs; i++) {
        if (q->run_attrs[i].dtype == OI_NONE)
            continue;
        if (!ids) {
            ids = oi_arena_alloc(b->a, q->op->n_attrs * sizeof *ids);
            memset(ids, 0xff, q->op->n_attrs * sizeof *ids);
        }
        ids[i] = new_value(b, OI_VALUE_OF_ATTR, i, &q->run_attrs[i]);
    }
    return ids;
}

bool oi_composite_expand(oi_arena *a, const oi_kernel_query *q, const oi_expansion **out,
                         oi_infer_fail *fail)
{
    builder *b = oi_arena_alloc(a, sizeof *b);
    value_list in = {0};
    *b = (builder){.a = a, .q = q, .fail = fail};
    uint32_t *results_of = oi_arena_alloc(a, (q->n_out + 1) * sizeof *results_of);
    for (uint32_t i = 0; i < q->n_in; i++)
        *OI_PUSH(a, &in) = new_value(b, OI_VALUE_OF_INPUT, i, &q->in[i]);
    const uint32_t *run_attrs = run_values(b);
    if (!follow(b, q->op, &in, q->attrs, run_attrs, results_of, (uint32_t)q->n_out))
        return false;
    for (uint32_t i = 0; i < q->n_out; i++)
        if (!give_out(b, i, results_of[i]))
            return false;
    oi_expansion *e = oi_arena_alloc(a, sizeof *e);
    *e = (oi_expansion){.values = b->values.at,
                        .calls = b->calls.at,
                        .checks = b->checks.at,
                        .n_values = (uint32_t)b->values.n,
                        .n_calls = (uint32_t)b->calls.n,
                        .n_checks = (uint32_t)b->checks.n};
    *out = e;
    return true;
}
