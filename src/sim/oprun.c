/* oprun.c: one op on tensors in memory: checked like a node of a graph, then run. */
#include "kernel/kernel.h"
#include "program/program.h"
#include "sim/composite.h"

#define MAX_OPERANDS OI_KERNEL_PORTS
#define MAX_ATTRS    OI_KERNEL_ATTRS

typedef struct run {
    const oi_op *op;
    oi_type in_types[MAX_OPERANDS], out_types[MAX_OPERANDS];
    oi_operand in[MAX_OPERANDS], out[MAX_OPERANDS];
    const void *in_data[MAX_OPERANDS];
    void *out_data[MAX_OPERANDS];
    size_t in_bytes[MAX_OPERANDS], out_bytes[MAX_OPERANDS];
    int64_t in_at[MAX_OPERANDS], out_at[MAX_OPERANDS];
    oi_attr_arg args[MAX_ATTRS];
    oi_type lengths; /* of an attribute that holds several */
    oi_op_value values[MAX_ATTRS];
    size_t n_in, n_out, n_attrs;
    oi_diag *diag;
} run;

static oi_status fail(const run *r, const char *code, const char *what, const char *detail)
{
    return oi_diag_error(r->diag, (oi_place){.file = "op"}, code, "%s: %s%s",
                         r->op ? r->op->name : "op", what, detail);
}

/* -- tensors -- */

static oi_status set_tensor(const run *r, oi_dtype dtype, uint32_t rank, const uint64_t *dims,
                            const void *data, oi_type *type, oi_operand *operand, size_t *n_bytes)
{
    if (!oi_dtype_is_tensor(dtype) || rank > OI_MAX_RANK)
        return fail(r, "E051", "a tensor has no element type, or too many axes", "");
    *type = (oi_type){.dtype = dtype, .rank = rank};
    *operand = (oi_operand){.dtype = dtype, .rank = rank};
    uint64_t n = 1, bytes;
    for (uint32_t a = rank; a-- > 0;) {
        if (dims[a] > INT64_MAX)
            return fail(r, "E051", "a tensor is too large", "");
        type->dims[a] = oi_dim_of((int64_t)dims[a]);
        operand->dims[a] = (int64_t)dims[a];
        operand->strides[a] = (int64_t)n;
        if (__builtin_mul_overflow(n, dims[a] ? dims[a] : 1, &n) || n > INT64_MAX)
            return fail(r, "E051", "a tensor is too large", "");
    }
    for (uint32_t a = 0; a < rank; a++)
        n = dims[a] ? n : 0;
    if (!oi_dtype_bytes(dtype, n, &bytes) || bytes > SIZE_MAX / 2)
        return fail(r, "E051", "a tensor is too large", "");
    if (bytes && !data)
        return fail(r, "E051", "a tensor has no data", "");
    *n_bytes = (size_t)bytes;
    return OI_OK;
}

/* Slices: strides and offsets of the caller's; n_bytes becomes what may be touched from the start.
 */
static void set_strides(oi_operand *o, const int64_t *const *strides, const int64_t *offsets,
                        size_t i, size_t *n_bytes)
{
    int64_t last = offsets ? offsets[i] : 0;
    uint64_t bytes;
    if (strides && strides[i])
        for (uint32_t a = 0; a < o->rank; a++) {
            o->strides[a] = strides[i][a];
            last += o->dims[a] > 0 && strides[i][a] > 0 ? (o->dims[a] - 1) * strides[i][a] : 0;
        }
    else if (!offsets)
        return;
    if (oi_dtype_bytes(o->dtype, (uint64_t)last + 1, &bytes) && bytes > *n_bytes)
        *n_bytes = (size_t)bytes;
}

/* Where input i and output o overlap in memory. */
static void find_overlap(const run *r, size_t i, oi_kernel_query *q)
{
    for (size_t o = 0; o < r->n_out; o++) {
        uintptr_t a = (uintptr_t)r->in_data[i], b = (uintptr_t)r->out_data[o];
        if (a >= b + r->out_bytes[o] || b >= a + r->in_bytes[i])
            continue;
        if (a == b && r->in_at[i] == r->out_at[o])
            q->overlaps |= (uint64_t)1 << i;
        else
            q->tangles |= (uint64_t)1 << i;
    }
}

/* -- attributes -- */

static oi_status set_attrs(run *r, const oi_op_arg *attrs, size_t n)
{
    if (n > MAX_ATTRS || r->op->n_attrs > MAX_ATTRS)
        return fail(r, "E054", "too many attributes", "");
    for (uint32_t i = 0; i < r->op->n_attrs; i++)
        r->values[i] = r->op->attrs[i].def;
    for (size_t i = 0; i < n; i++) {
        const oi_op_attr *a = attrs[i].name ? oi_op_attr_find(r->op, attrs[i].name) : NULL;
        if (!a)
            return fail(r, "E052", "there is no attribute ", attrs[i].name ? attrs[i].name : "");
        r->args[i] = (oi_attr_arg){.attr = a, .known = true, .value = attrs[i].value};
        if (a->kind == OI_ATTR_LENGTH && attrs[i].value.tag == OI_VALUE_INT_LIST) {
            /* as in a graph, where only a variable can hold several lengths */
            r->lengths = (oi_type){.dtype = OI_I64, .rank = 1};
            r->lengths.dims[0] = oi_dim_of(attrs[i].value.n);
            r->args[i].known = false;
            r->args[i].var = &r->lengths;
        }
        r->values[a - r->op->attrs] = attrs[i].value;
    }
    r->n_attrs = n;
    return OI_OK;
}

/* -- running -- */

static oi_status report(const run *r, const oi_kernel_fault *f)
{
    if (f->message[0])
        return fail(r, f->code, f->message, "");
    return oi_diag_error(r->diag, (oi_place){.file = "op"}, f->code,
                         "%s: element %llu of '%s' is %lld, it must be in -%lld ... %lld",
                         r->op->name, (unsigned long long)f->element,
                         oi_op_input_at(r->op, f->input)->name, (long long)f->value,
                         (long long)f->limit, (long long)f->limit - 1);
}

static oi_status call(run *r, const oi_kernel_query *q, const oi_prepared *c,
                      const oi_op_run_options *options)
{
    oi_status status = OI_OK;
    unsigned n_threads = options && !options->team ? options->threads : 1;
    oi_threads *own = n_threads > 1 ? oi_threads_new(n_threads) : NULL;
    oi_threads *threads = options && options->team ? options->team : own;
    void *scratch = c->scratch_bytes ? aligned_alloc(64, (c->scratch_bytes + 63) / 64 * 64) : NULL;
    oi_kernel_fault fault = {0};
    if ((n_threads > 1 && !own) || (c->scratch_bytes && !scratch)) {
        status = oi_diag_env(r->diag, "op", "no memory or threads to run %s", r->op->name);
        goto done;
    }
    oi_kernel_io io = {.in = r->in_data,
                       .in_at = r->in_at,
                       .out = r->out_data,
                       .out_at = r->out_at,
                       .scratch = scratch,
                       .parallel = threads ? oi_threads_run : NULL,
                       .pool = threads,
                       .n_threads = oi_threads_count(threads)};
    if (!oi_prepared_run(q, c, &io, &fault))
        status = report(r, &fault);
done:
    free(scratch);
    oi_threads_free(own);
    return status;
}

static oi_status prepare(run *r, const oi_view *in, const oi_op_arg *attrs, size_t n_attrs,
                         const oi_op_out *out)
{
    if (r->n_in > MAX_OPERANDS || r->n_out > MAX_OPERANDS)
        return fail(r, "E056", "too many tensors", "");
    for (size_t i = 0; i < r->n_in; i++) {
        OI_TRY(set_tensor(r, in[i].dtype, in[i].rank, in[i].dims, in[i].data, &r->in_types[i],
                          &r->in[i], &r->in_bytes[i]));
        r->in_data[i] = in[i].data;
    }
    for (size_t i = 0; i < r->n_out; i++) {
        OI_TRY(set_tensor(r, out[i].dtype, out[i].rank, out[i].dims, out[i].data, &r->out_types[i],
                          &r->out[i], &r->out_bytes[i]));
        r->out_data[i] = out[i].data;
    }
    OI_TRY(set_attrs(r, attrs, n_attrs));
    oi_infer_fail bad;
    if (!oi_infer(r->op, r->in_types, r->n_in, r->args, r->n_attrs, r->out_types, r->n_out, &bad))
        return oi_diag_error(r->diag, (oi_place){.file = "op"}, bad.code, "%s", bad.message);
    return OI_OK;
}

static void slices(run *r, const oi_op_run_options *options)
{
    for (size_t i = 0; options && i < r->n_in; i++) {
        set_strides(&r->in[i], options->input_strides, options->input_offsets, i, &r->in_bytes[i]);
        r->in_at[i] = options->input_offsets ? options->input_offsets[i] : 0;
    }
    for (size_t i = 0; options && i < r->n_out; i++) {
        set_strides(&r->out[i], options->output_strides, options->output_offsets, i,
                    &r->out_bytes[i]);
        r->out_at[i] = options->output_offsets ? options->output_offsets[i] : 0;
    }
}

typedef struct choosing {
    const oi_kernel_query *q;
    oi_cpu cpu;
    oi_arena *arena;
    oi_prepared ready;
    bool ok;
    oi_infer_fail why;
} choosing;

static void choose(void *ctx)
{
    choosing *x = ctx;
    x->ok = oi_prepare(x->arena, x->q, x->cpu, &x->ready, &x->why);
}

oi_status oi_op_run(const char *op, const oi_view *inputs, size_t n_inputs, const oi_op_arg *attrs,
                    size_t n_attrs, const oi_op_out *outputs, size_t n_outputs,
                    const oi_op_run_options *options, oi_diag *diag)
{
    run r = {.op = op ? oi_op_find(op) : NULL, .n_in = n_inputs, .n_out = n_outputs, .diag = diag};
    oi_cpu cpu;
    if (!r.op)
        return fail(&r, "E057", "there is no op ", op ? op : "");
    if (!oi_cpu_find(options ? options->device : NULL, &cpu)) {
        fail(&r, "E060", "this machine cannot run on ", options->device);
        return OI_ERR_ENV;
    }
    OI_TRY(prepare(&r, inputs, attrs, n_attrs, outputs));
    slices(&r, options);
    oi_kernel_query q = {
        .op = r.op, .in = r.in, .n_in = r.n_in, .out = r.out, .n_out = r.n_out, .attrs = r.values};
    for (size_t i = 0; i < r.n_in; i++)
        find_overlap(&r, i, &q);
    choosing x = {.q = &q, .cpu = cpu, .arena = oi_arena_new()};
    oi_status status = OI_OK;
    if (!x.arena || oi_arena_guard(x.arena, choose, &x) != OI_OK)
        status = oi_diag_env(diag, "op", "out of memory");
    else if (!x.ok)
        status = fail(&r, x.why.code, x.why.message, "");
    else
        status = call(&r, &q, &x.ready, options);
    oi_arena_free(x.arena);
    return status;
}
