/* composite.c: runs the calls of a composite as one node.
 *
 * Kernels are chosen once. Scratch holds the temporaries, placed so that those share memory which
 * are never needed together, then what the hungriest kernel wants for itself. A reshape of
 * contiguous memory is the same memory. */
#include "sim/composite.h"

#include "program/composite.h"
#include "recipe/run.h"

#define ALIGN 64

/* One kernel of the sequence; `in` and `out` of the query are its own. */
typedef struct step {
    oi_kernel_query query;
    oi_choice choice;
    const oi_exp_call *call;
} step;

struct oi_calls {
    const oi_expansion *e;
    step *steps;
    uint32_t n_steps;
    size_t *at;     /* where in scratch a value is: temporaries, attributes, outputs made apart */
    uint32_t *root; /* the value whose memory it is */
    size_t kernel_at;
    uint32_t n_operands; /* of the widest call */
    bool makes_apart;    /* outputs overlap inputs */
};

/* -- making ready -- */

static bool bytes_of(const oi_operand *o, size_t *out)
{
    uint64_t bytes;
    if (!oi_dtype_bytes(o->dtype, (uint64_t)oi_operand_count(o), &bytes) || bytes > SIZE_MAX / 4)
        return false;
    *out = (size_t)(bytes + ALIGN - 1) / ALIGN * ALIGN;
    return true;
}

static bool is_view(const oi_expansion *e, const oi_exp_call *c)
{
    const oi_exp_value *from = &e->values[c->in[0]], *to = &e->values[c->out[0]];
    bool keeps = c->op->id == OI_OP_RESHAPE || c->op->id == OI_OP_SQUEEZE ||
                 c->op->id == OI_OP_UNSQUEEZE || c->op->id == OI_OP_FLATTEN ||
                 c->op->id == OI_OP_IDENTITY;
    return keeps && to->kind == OI_VALUE_OF_TEMP && oi_operand_is_dense(&from->type) &&
           from->kind != OI_VALUE_OF_OUTPUT;
}

/* When a value's memory is written and last read, in calls; roots only. */
typedef struct life {
    uint32_t from, to;
    size_t bytes;
} life;

static void find_lives(const oi_calls *c, life *lives)
{
    const oi_expansion *e = c->e;
    for (uint32_t i = 0; i < e->n_calls; i++) {
        const oi_exp_call *k = &e->calls[i];
        for (uint32_t o = 0; o < k->n_out; o++)
            if (c->root[k->out[o]] == k->out[o])
                lives[k->out[o]] = (life){i, i, 0};
        for (uint32_t n = 0; n < k->n_in; n++)
            lives[c->root[k->in[n]]].to = i;
        for (uint32_t o = 0; o < k->n_out; o++)
            lives[c->root[k->out[o]]].to = i;
    }
}

/* The lowest place where `v` overlaps no value that lives at the same time. Those placed before it
 * are the values of lower number. */
static size_t place(const oi_calls *c, const life *lives, uint32_t v)
{
    size_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < v; i++) {
            if (!lives[i].bytes || lives[i].to < lives[v].from || lives[i].from > lives[v].to)
                continue;
            if (c->at[i] < at + lives[v].bytes && at < c->at[i] + lives[i].bytes) {
                at = c->at[i] + lives[i].bytes;
                moved = true;
            }
        }
    }
    return at;
}

/* Outputs made apart and attributes of the run live from the first call to the last. */
static bool place_values(oi_arena *a, oi_calls *c, size_t *end)
{
    const oi_expansion *e = c->e;
    life *lives = oi_arena_alloc(a, (e->n_values + 1) * sizeof *lives);
    find_lives(c, lives);
    *end = 0;
    for (uint32_t v = 0; v < e->n_values; v++) {
        const oi_exp_value *value = &e->values[v];
        bool is_temp = value->kind == OI_VALUE_OF_TEMP && c->root[v] == v;
        bool is_kept = value->kind == OI_VALUE_OF_ATTR ||
                       (value->kind == OI_VALUE_OF_OUTPUT && c->makes_apart);
        if (!is_temp && !is_kept)
            continue;
        if (is_kept)
            lives[v] = (life){0, UINT32_MAX, 0};
        size_t bytes;
        if (!bytes_of(&value->type, &bytes))
            return false;
        lives[v].bytes = bytes ? bytes : ALIGN;
        c->at[v] = place(c, lives, v);
        if (c->at[v] + lives[v].bytes > *end)
            *end = c->at[v] + lives[v].bytes;
    }
    return true;
}

static oi_operand apart(oi_operand o)
{
    int64_t stride = 1;
    for (uint32_t i = o.rank; i-- > 0; stride *= o.dims[i])
        o.strides[i] = stride;
    return o;
}

/* A tuned body, or else a kernel. */
static bool choose(oi_arena *a, const oi_kernel_query *q, oi_cpu cpu, oi_choice *out)
{
    return oi_recipe_choose(a, q, cpu, out) || oi_kernel_choose(q, cpu, out);
}

static bool make_step(oi_arena *a, oi_calls *c, const oi_exp_call *call, oi_cpu cpu, size_t *most,
                      oi_infer_fail *fail)
{
    const oi_expansion *e = c->e;
    step *s = &c->steps[c->n_steps++];
    oi_operand *types = oi_arena_alloc(a, (call->n_in + call->n_out) * sizeof *types);
    for (uint32_t i = 0; i < call->n_in; i++)
        types[i] = e->values[call->in[i]].type;
    for (uint32_t i = 0; i < call->n_out; i++) {
        const oi_exp_value *v = &e->values[call->out[i]];
        types[call->n_in + i] = c->makes_apart ? apart(v->type) : v->type;
    }
    for (uint32_t i = 0; i < call->n_in && c->makes_apart; i++)
        if (e->values[call->in[i]].kind == OI_VALUE_OF_OUTPUT)
            types[i] = apart(types[i]);
    s->call = call;
    s->query = (oi_kernel_query){.op = call->op,
                                 .in = types,
                                 .n_in = call->n_in,
                                 .out = types + call->n_in,
                                 .n_out = call->n_out,
                                 .attrs = call->attrs};
    if (!choose(a, &s->query, cpu, &s->choice)) {
        *fail = (oi_infer_fail){.code = "E060", .at = OI_AT_OP, .other = OI_INFER_NONE};
        snprintf(fail->message, sizeof fail->message, "no kernel does its '%s'", call->op->name);
        return false;
    }
    if (s->choice.scratch_bytes > *most)
        *most = s->choice.scratch_bytes;
    if (call->n_in + call->n_out > c->n_operands)
        c->n_operands = call->n_in + call->n_out;
    return true;
}

static bool make_calls(oi_arena *a, const oi_kernel_query *q, oi_cpu cpu, oi_prepared *out,
                       oi_infer_fail *fail)
{
    const oi_expansion *e;
    size_t most = 0;
    if (!oi_composite_expand(a, q, &e, fail))
        return false;
    oi_calls *c = oi_arena_alloc(a, sizeof *c);
    *c = (oi_calls){.e = e, .makes_apart = q->overlaps || q->tangles};
    c->steps = oi_arena_alloc(a, (e->n_calls + 1) * sizeof *c->steps);
    c->at = oi_arena_alloc(a, (e->n_values + 1) * sizeof *c->at);
    c->root = oi_arena_alloc(a, (e->n_values + 1) * sizeof *c->root);
    for (uint32_t v = 0; v < e->n_values; v++)
        c->root[v] = v;
    for (uint32_t i = 0; i < e->n_calls; i++) {
        const oi_exp_call *call = &e->calls[i];
        if (is_view(e, call))
            c->root[call->out[0]] = c->root[call->in[0]];
        else if (!make_step(a, c, call, cpu, &most, fail))
            return false;
    }
    if (!place_values(a, c, &c->kernel_at)) {
        *fail = (oi_infer_fail){.code = "E060", .at = OI_AT_OP, .other = OI_INFER_NONE};
        snprintf(fail->message, sizeof fail->message, "its temporaries are too large");
        return false;
    }
    out->calls = c;
    out->scratch_bytes = c->kernel_at + most;
    return true;
}

/* A length is checked by what the op's body demands of it. */
static bool has_length(const oi_kernel_query *q)
{
    for (uint32_t i = 0; i < q->op->n_attrs; i++)
        if (q->op->attrs[i].kind == OI_ATTR_LENGTH &&
            (q->attrs[i].tag != OI_VALUE_NONE ||
             (q->run_attrs && q->run_attrs[i].dtype != OI_NONE)))
            return q->op->n_bodies > 0;
    return false;
}

bool oi_prepare(oi_arena *a, const oi_kernel_query *q, oi_cpu cpu, oi_prepared *out,
                oi_infer_fail *fail)
{
    out->calls = NULL;
    out->checks = NULL;
    if (choose(a, q, cpu, &out->choice)) {
        out->scratch_bytes = out->choice.scratch_bytes;
        return !out->choice.tuned || !has_length(q) ||
               oi_composite_expand(a, q, &out->checks, fail);
    }
    if (q->op->n_bodies)
        return make_calls(a, q, cpu, out, fail);
    *fail = (oi_infer_fail){.code = "E060", .at = OI_AT_OP, .other = OI_INFER_NONE};
    snprintf(fail->message, sizeof fail->message, "no kernel does this '%s'", q->op->name);
    return false;
}

bool oi_prepared_same(const oi_prepared *a, const oi_prepared *b)
{
    if (!a->calls || !b->calls)
        return !a->calls && !b->calls && strcmp(a->choice.name, b->choice.name) == 0;
    bool same = a->calls->n_steps == b->calls->n_steps;
    for (uint32_t i = 0; same && i < a->calls->n_steps; i++)
        same = strcmp(a->calls->steps[i].choice.name, b->calls->steps[i].choice.name) == 0;
    return same;
}

/* -- running -- */

static void put_number(oi_dtype t, void *to, uint64_t i, const oi_op_value *v)
{
    if (v->tag == OI_VALUE_FLOAT)
        (void)oi_element_set_f64(t, to, i, v->f);
    else if (v->tag == OI_VALUE_UINT)
        (void)oi_element_set_u64(t, to, i, v->u);
    else
        (void)oi_element_set_i64(t, to, i, v->tag == OI_VALUE_BOOL ? v->b : v->i);
}

/* Values of attributes into their places. */
static void put_attrs(const oi_calls *c, const oi_kernel_query *q, char *scratch)
{
    for (uint32_t v = 0; v < c->e->n_values; v++) {
        const oi_exp_value *value = &c->e->values[v];
        if (value->kind != OI_VALUE_OF_ATTR)
            continue;
        const oi_op_value *given = &q->attrs[value->index];
        char *to = scratch + c->at[v];
        if (given->tag != OI_VALUE_INT_LIST) {
            put_number(value->type.dtype, to, 0, given);
            continue;
        }
        uint32_t n = (uint32_t)oi_operand_count(&value->type);
        for (uint32_t i = 0; i < n && i < given->n; i++)
            (void)oi_element_set_i64(value->type.dtype, to, i, given->ints[i]);
    }
}

typedef struct run {
    const oi_calls *c;
    const oi_kernel_query *q;
    const oi_kernel_io *io;
} run;

/* Where a value lies, and its first element. */
static void *locate(const run *r, uint32_t value, int64_t *at)
{
    const oi_exp_value *v = &r->c->e->values[r->c->root[value]];
    *at = 0;
    switch (v->kind) {
    case OI_VALUE_OF_INPUT:
        *at = r->io->in_at ? r->io->in_at[v->index] : 0;
        return (void *)(uintptr_t)r->io->in[v->index]; /* only ever read */
    case OI_VALUE_OF_OUTPUT:
        if (r->c->makes_apart)
            break;
        *at = r->io->out_at ? r->io->out_at[v->index] : 0;
        return r->io->out[v->index];
    case OI_VALUE_OF_CONST: return (void *)(uintptr_t)v->bytes;
    default: break;
    }
    return (char *)r->io->scratch + r->c->at[r->c->root[value]];
}

static bool check_all(const oi_expansion *e, const oi_kernel_query *q, oi_kernel_fault *fault)
{
    for (uint32_t i = 0; i < e->n_checks; i++) {
        const oi_exp_check *check = &e->checks[i];
        const oi_op_value *given = &q->attrs[check->attr];
        const uint32_t n = given->tag == OI_VALUE_INT_LIST ? given->n : 1;
        for (uint32_t k = 0; k < n; k++) {
            int64_t v = given->tag == OI_VALUE_INT_LIST ? given->ints[k] : given->i;
            if (v >= 0 && v <= check->limit)
                continue;
            fault->code = "E047";
            snprintf(fault->message, sizeof fault->message, "%s is %lld, it must be in 0 … %lld",
                     q->op->attrs[check->attr].name, (long long)v, (long long)check->limit);
            return false;
        }
    }
    return true;
}

/* A fault of a call is one of the node: of its input when the call read that, else just words. */
static void translate(const run *r, const step *s, oi_kernel_fault *fault)
{
    if (fault->message[0] || fault->input >= s->call->n_in)
        return;
    const oi_exp_value *v = &r->c->e->values[r->c->root[s->call->in[fault->input]]];
    if (v->kind == OI_VALUE_OF_INPUT) {
        fault->input = v->index;
        return;
    }
    snprintf(fault->message, sizeof fault->message, "%s: %lld is outside -%lld … %lld",
             s->call->op->name, (long long)fault->value, (long long)fault->limit,
             (long long)fault->limit - 1);
}

static bool run_step(const run *r, const step *s, oi_kernel_fault *fault)
{
    const void *in[OI_KERNEL_PORTS];
    void *out[OI_KERNEL_PORTS];
    int64_t in_at[OI_KERNEL_PORTS], out_at[OI_KERNEL_PORTS];
    for (uint32_t i = 0; i < s->call->n_in; i++)
        in[i] = locate(r, s->call->in[i], &in_at[i]);
    for (uint32_t i = 0; i < s->call->n_out; i++)
        out[i] = locate(r, s->call->out[i], &out_at[i]);
    oi_kernel_io io = *r->io;
    io.in = in;
    io.in_at = in_at;
    io.out = out;
    io.out_at = out_at;
    io.scratch = (char *)r->io->scratch + r->c->kernel_at;
    if (oi_kernel_call(&s->query, &s->choice, &io, fault))
        return true;
    translate(r, s, fault);
    return false;
}

static void copy_out(const run *r)
{
    for (uint32_t v = 0; v < r->c->e->n_values; v++) {
        const oi_exp_value *value = &r->c->e->values[v];
        if (value->kind != OI_VALUE_OF_OUTPUT)
            continue;
        oi_operand from = apart(value->type);
        oi_copy(&value->type, r->io->out[value->index],
                r->io->out_at ? r->io->out_at[value->index] : 0, &from,
                (char *)r->io->scratch + r->c->at[v], 0, r->io);
    }
}

bool oi_prepared_run(const oi_kernel_query *q, const oi_prepared *ready, const oi_kernel_io *io,
                     oi_kernel_fault *fault)
{
    if (ready->checks && !check_all(ready->checks, q, fault))
        return false;
    if (!ready->calls)
        return oi_kernel_call(q, &ready->choice, io, fault);
    run r = {ready->calls, q, io};
    put_attrs(r.c, q, io->scratch);
    if (!check_all(r.c->e, q, fault))
        return false;
    for (uint32_t i = 0; i < r.c->n_steps; i++)
        if (!run_step(&r, &r.c->steps[i], fault))
            return false;
    if (r.c->makes_apart)
        copy_out(&r);
    return true;
}
