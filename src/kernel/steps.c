/* steps.c: records what an emitted program does instead of a simulator's kernel. */
#include "kernel/custom.h"

void oi_steps_init(oi_steps *s, oi_arena *a, const oi_kernel_query *q)
{
    *s = (oi_steps){.arena = a, .q = q};
    for (size_t i = 0; i < q->n_in + q->n_out; i++) {
        const oi_operand *o = i < q->n_in ? &q->in[i] : &q->out[i - q->n_in];
        oi_steps_tensor(s, NULL, o->dtype, o->rank, o->dims);
    }
}

/* -- tensors -- */

static uint32_t add(oi_steps *s, const char *stem, oi_dtype t, uint32_t rank, const int64_t *dims,
                    const void *bytes)
{
    oi_step_tensor *tensor = OI_PUSH(s->arena, &s->tensors);
    *tensor = (oi_step_tensor){.stem = stem, .dtype = t, .rank = rank, .bytes = bytes};
    for (uint32_t d = 0; d < rank; d++)
        tensor->dims[d] = dims[d];
    return (uint32_t)s->tensors.n - 1;
}

uint32_t oi_steps_tensor(oi_steps *s, const char *stem, oi_dtype t, uint32_t rank,
                         const int64_t *dims)
{
    return add(s, stem, t, rank, dims, NULL);
}

uint32_t oi_steps_line(oi_steps *s, const char *stem, oi_dtype t, int64_t n)
{
    return add(s, stem, t, 1, &n, NULL);
}

uint32_t oi_steps_table(oi_steps *s, const char *stem, oi_dtype t, int64_t n, const void *bytes)
{
    return add(s, stem, t, 1, &n, bytes);
}

uint32_t oi_steps_output(const oi_steps *s, size_t i)
{
    return (uint32_t)(s->q->n_in + i);
}

static void cast(oi_steps *s, uint32_t from, uint32_t to)
{
    const oi_op_value type = {.tag = OI_VALUE_DTYPE, .dtype = s->tensors.at[to].dtype};
    oi_steps_op(s, OI_OP_CAST, &from, 1, to, "to", type);
}

uint32_t oi_steps_as(oi_steps *s, uint32_t tensor, oi_dtype t)
{
    const oi_step_tensor own = s->tensors.at[tensor];
    if (own.dtype == t)
        return tensor;
    uint32_t wide = oi_steps_tensor(s, "wide", t, own.rank, own.dims);
    cast(s, tensor, wide);
    return wide;
}

uint32_t oi_steps_wide(oi_steps *s, size_t i)
{
    const oi_operand *o = &s->q->out[i];
    return o->dtype == OI_F64 ? oi_steps_output(s, i)
                              : oi_steps_tensor(s, "wide", OI_F64, o->rank, o->dims);
}

void oi_steps_narrow(oi_steps *s, uint32_t wide, size_t i)
{
    if (wide != oi_steps_output(s, i))
        cast(s, wide, oi_steps_output(s, i));
}

/* -- steps -- */

void oi_steps_copy(oi_steps *s, uint32_t from, uint32_t to)
{
    *OI_PUSH(s->arena, &s->steps) =
        (oi_custom_step){.kind = OI_STEP_COPY, .in = {from}, .out = {to}, .n_in = 1, .n_out = 1};
}

void oi_steps_op(oi_steps *s, oi_op_id op, const uint32_t *in, uint32_t n_in, uint32_t to,
                 const char *attr, oi_op_value value)
{
    oi_custom_step step = {.kind = OI_STEP_OP, .op = op, .attr = attr, .value = value};
    step.n_in = n_in;
    step.n_out = 1;
    step.out[0] = to;
    memcpy(step.in, in, n_in * sizeof *in);
    *OI_PUSH(s->arena, &s->steps) = step;
}

void oi_steps_call(oi_steps *s, const oi_custom_step *call)
{
    *OI_PUSH(s->arena, &s->steps) = *call;
}

void oi_steps_length(oi_steps *s, uint32_t found, uint32_t of, uint32_t dim)
{
    *OI_PUSH(s->arena, &s->steps) = (oi_custom_step){
        .kind = OI_STEP_LENGTH, .in = {found}, .out = {of}, .n_in = 1, .n_out = 1, .dim = dim};
}

/* -- the call -- */

int64_t oi_steps_int(const oi_steps *s, const char *name, int64_t absent)
{
    const oi_op_value *v = oi_kernel_attr(s->q, name);
    return v && v->tag == OI_VALUE_INT ? v->i : absent;
}

bool oi_steps_is(const oi_steps *s, const char *name)
{
    const oi_op_value *v = oi_kernel_attr(s->q, name);
    return v && v->tag == OI_VALUE_BOOL && v->b;
}

void oi_steps_around(const int64_t *dims, uint32_t rank, uint32_t axis, int64_t *outer,
                     int64_t *inner)
{
    *outer = *inner = 1;
    for (uint32_t d = 0; d < rank; d++)
        if (d != axis)
            *(d < axis ? outer : inner) *= dims[d];
}

uint32_t oi_steps_axis(const oi_steps *s)
{
    int64_t axis = oi_steps_int(s, "axis", 0);
    return (uint32_t)(axis < 0 ? axis + s->q->in[0].rank : axis);
}
