/* op.c: ops. A node whose types are known before the run has its kernel chosen once; others
 * (lengths or attributes that only the run knows) are judged and chosen when they run. */
#include "kernel/kernel.h"
#include "sim/chunks.h"

#define MAX_PORTS OI_KERNEL_PORTS /* concat of more is refused by E060 */
#define MAX_ATTRS 16u             /* of an op; the longest row of the registry has 8 */

/* A call, ready to run. */
typedef struct call {
    oi_kernel_query query;
    oi_prepared ready;
    oi_operand *in, *out;
    oi_op_value *attrs;
    oi_operand *run_attrs; /* lengths that only the run knows; NULL: none */
} call;

struct oi_op_plan {
    bool is_static;
    call c;
};

/* -- attributes -- */

static void set_defaults(const oi_op *op, oi_op_value *values)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        values[i] = op->attrs[i].def;
}

static bool is_known(const oi_pattr *a)
{
    return !a->items && a->one.kind == OI_PV_KNOWN;
}

/* A length that kernels and bodies read when they run. */
static bool is_read_late(const oi_op *op, const oi_pattr *a)
{
    return a->attr->kind == OI_ATTR_LENGTH && op->n_bodies && !a->items;
}

/* Whether the kernel can be chosen before the run. */
static bool has_known_attrs(const oi_pnode *n)
{
    for (uint32_t i = 0; i < n->as.op.n_attrs; i++)
        if (!is_known(&n->as.op.attrs[i]) && !is_read_late(n->as.op.op, &n->as.op.attrs[i]))
            return false;
    return true;
}

static oi_op_value number(oi_dtype t, const void *data, uint64_t e)
{
    if (oi_dtype_is_float(t))
        return (oi_op_value){.tag = OI_VALUE_FLOAT, .f = oi_element_f64(t, data, e)};
    if (t == OI_BOOL)
        return (oi_op_value){.tag = OI_VALUE_BOOL, .b = oi_element_u64(t, data, e) != 0};
    uint64_t u = t == OI_U64 ? oi_element_u64(t, data, e) : 0;
    if (u > INT64_MAX)
        return (oi_op_value){.tag = OI_VALUE_UINT, .u = u};
    return (oi_op_value){.tag = OI_VALUE_INT, .i = oi_element_i64(t, data, e)};
}

/* Room for the lists of a call that only the run knows. */
typedef struct lists {
    int64_t ints[256];
    size_t n;
} lists;

static oi_status run_value(oi_ctx *c, const oi_pvalue *v, oi_span span, lists *room,
                           oi_op_value *out)
{
    oi_input in;
    int64_t i;
    switch (v->kind) {
    case OI_PV_KNOWN: *out = v->value; return OI_OK;
    case OI_PV_INDEX:
        *out = (oi_op_value){.tag = OI_VALUE_INT, .i = c->indices[v->id]};
        return OI_OK;
    case OI_PV_CODE:
        OI_TRY(oi_ctx_code(c, &v->code, NULL, &i));
        *out = (oi_op_value){.tag = OI_VALUE_INT, .i = i};
        return OI_OK;
    case OI_PV_VAR: break;
    }
    OI_TRY(oi_mem_read_var(c, v->id, span, &in));
    if (in.rank == 0) {
        *out = number(in.dtype, in.data, 0);
        return OI_OK;
    }
    if (in.rank > 1 || in.n_elements > OI_COUNT(room->ints) - room->n)
        return oi_ctx_fail(c, span, "E053", "a list of more than %zu numbers",
                           OI_COUNT(room->ints));
    *out = (oi_op_value){
        .tag = OI_VALUE_INT_LIST, .n = (uint32_t)in.n_elements, .ints = room->ints + room->n};
    for (uint64_t e = 0; e < in.n_elements; e++)
        room->ints[room->n++] = oi_element_i64(in.dtype, in.data, e);
    return OI_OK;
}

static oi_status run_attr(oi_ctx *c, const oi_pattr *a, lists *room, oi_op_value *out)
{
    if (!a->items)
        return run_value(c, &a->one, a->span, room, out);
    if (a->n_items > OI_COUNT(room->ints) - room->n)
        return oi_ctx_fail(c, a->span, "E053", "a list of more than %zu numbers",
                           OI_COUNT(room->ints));
    *out = (oi_op_value){.tag = OI_VALUE_INT_LIST, .n = a->n_items, .ints = room->ints + room->n};
    int64_t *to = room->ints + room->n;
    room->n += a->n_items;
    for (uint32_t i = 0; i < a->n_items; i++) {
        oi_op_value item;
        OI_TRY(run_value(c, &a->items[i], a->span, room, &item));
        if (item.tag != OI_VALUE_INT)
            return oi_ctx_fail(c, a->span, "E053", "attribute '%s' wants integers", a->attr->name);
        to[i] = item.i;
    }
    return OI_OK;
}

/* -- operands -- */

static void set_operand(oi_operand *o, oi_dtype t, uint32_t rank, const uint64_t *dims)
{
    int64_t stride = 1;
    o->dtype = t;
    o->rank = rank;
    for (uint32_t i = rank; i-- > 0;) {
        o->dims[i] = (int64_t)dims[i];
        o->strides[i] = stride;
        stride *= dims[i] ? (int64_t)dims[i] : 1;
    }
}

/* An output in a variable that is also read: the kernel must not spoil its input. */
static uint64_t overlaps(const oi_pnode *n)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < n->as.op.n_in && i < MAX_PORTS; i++)
        for (uint32_t k = 0; k < n->as.op.n_out; k++)
            if (!n->as.op.in[i].is_index && n->as.op.in[i].var == n->as.op.out[k].var)
                mask |= (uint64_t)1 << i;
    return mask;
}

static void set_query(call *c, const oi_pnode *n)
{
    c->query = (oi_kernel_query){.op = n->as.op.op,
                                 .in = c->in,
                                 .n_in = n->as.op.n_in,
                                 .out = c->out,
                                 .n_out = n->as.op.n_out,
                                 .attrs = c->attrs,
                                 .run_attrs = c->run_attrs,
                                 .overlaps = overlaps(n)};
}

oi_cpu oi_op_cpu(const oi_sim *s)
{
    switch (s->options.device) {
    case OI_RUN_SCALAR: return OI_CPU_SCALAR;
    case OI_RUN_AVX: return OI_CPU_AVX;
    case OI_RUN_AVX2: return OI_CPU_AVX2;
    case OI_RUN_AVX512: return OI_CPU_AVX512;
    default: return oi_cpu_best();
    }
}

/* -- before the run -- */

static bool has_run_types(const oi_program *p, const oi_pref *refs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!refs[i].is_index && p->vars[refs[i].var].has_run_dims)
            return true;
    return false;
}

static void declared(const oi_program *p, const oi_pref *r, oi_operand *o)
{
    if (r->is_index)
        set_operand(o, OI_I64, 0, NULL);
    else
        set_operand(o, p->vars[r->var].dtype, p->vars[r->var].rank, p->vars[r->var].dims);
}

static void set_attrs(oi_sim *s, const oi_pnode *n, call *c)
{
    const oi_op *op = n->as.op.op;
    const oi_program *p = s->program;
    set_defaults(op, c->attrs);
    for (uint32_t i = 0; i < n->as.op.n_attrs; i++) {
        const oi_pattr *a = &n->as.op.attrs[i];
        if (is_known(a)) {
            c->attrs[a->attr - op->attrs] = a->one.value;
            continue;
        }
        if (!c->run_attrs)
            c->run_attrs = oi_arena_alloc(s->arena, op->n_attrs * sizeof *c->run_attrs);
        const oi_pvar *var = a->one.kind == OI_PV_VAR ? &p->vars[a->one.id] : NULL;
        set_operand(&c->run_attrs[a->attr - op->attrs], OI_I64, var ? var->rank : 0,
                    var ? var->dims : NULL);
    }
}

static oi_op_plan *make_plan(oi_sim *s, const oi_pnode *n)
{
    oi_op_plan *plan = oi_arena_alloc(s->arena, sizeof *plan);
    call *c = &plan->c;
    const oi_program *p = s->program;
    c->in = oi_arena_alloc(s->arena, (n->as.op.n_in + 1) * sizeof *c->in);
    c->out = oi_arena_alloc(s->arena, (n->as.op.n_out + 1) * sizeof *c->out);
    c->attrs = oi_arena_alloc(s->arena, (n->as.op.op->n_attrs + 1) * sizeof *c->attrs);
    plan->is_static = has_known_attrs(n) && !has_run_types(p, n->as.op.in, n->as.op.n_in) &&
                      !has_run_types(p, n->as.op.out, n->as.op.n_out);
    if (plan->is_static)
        set_attrs(s, n, c);
    set_query(c, n);
    if (!plan->is_static)
        return plan;
    for (uint32_t i = 0; i < n->as.op.n_in; i++)
        declared(p, &n->as.op.in[i], &c->in[i]);
    for (uint32_t i = 0; i < n->as.op.n_out; i++)
        declared(p, &n->as.op.out[i], &c->out[i]);
    return plan;
}

typedef struct preparing {
    oi_sim *s;
    oi_diag *d;
    oi_status status;
} preparing;

static void prepare(void *ctx)
{
    preparing *x = ctx;
    const oi_program *p = x->s->program;
    oi_cpu cpu = oi_op_cpu(x->s);
    for (size_t i = 0; i < p->graph->nodes.n && !oi_diag_full(x->d); i++) {
        const oi_pnode *n = &p->nodes[i];
        if (n->kind != OI_NODE_OP)
            continue;
        oi_op_plan *plan = x->s->plans[i] = make_plan(x->s, n);
        bool fits = n->as.op.n_in <= MAX_PORTS && n->as.op.n_out <= MAX_PORTS &&
                    n->as.op.op->n_attrs <= MAX_ATTRS;
        oi_infer_fail why = {.code = "E060", .message = "too many operands"};
        if (fits && (!plan->is_static ||
                     oi_prepare(x->s->arena, &plan->c.query, cpu, &plan->c.ready, &why)))
            continue;
        oi_place at = oi_graph_place_node(p->graph, x->s->arena, n->source, n->source->name.span);
        x->status = oi_diag_error(x->d, at, why.code, "the simulator cannot run this '%s': %s",
                                  n->as.op.op->name, why.message);
    }
}

oi_status oi_op_prepare(oi_sim *s, oi_diag *d)
{
    preparing x = {s, d, OI_OK};
    if (oi_cpu_best() < oi_op_cpu(s)) {
        oi_diag_error(d, (oi_place){.file = "simulator"}, "E060",
                      "this machine has no %s instructions", oi_cpu_name(oi_op_cpu(s)));
        return OI_ERR_ENV;
    }
    if (oi_arena_guard(s->arena, prepare, &x) != OI_OK)
        return oi_diag_env(d, "simulator", "out of memory");
    return x.status;
}

void oi_op_release(oi_sim *s)
{
    (void)s; /* plans live in the arena */
}

oi_status oi_op_expect(oi_sim *s, oi_diag *d)
{
    const size_t n_nodes = s->program->graph->nodes.n;
    const oi_kernel_query **all = calloc(n_nodes + 1, sizeof *all);
    size_t n = 0;
    if (!all)
        return oi_diag_env(d, "simulator", "out of memory");
    for (size_t i = 0; i < n_nodes; i++)
        if (s->plans[i] && s->plans[i]->is_static)
            all[n++] = &s->plans[i]->c.query;
    const oi_status status = oi_remote_expect(s, all, n, d);
    free(all);
    return status;
}

/* -- running -- */

oi_status oi_op_fault(oi_ctx *c, const oi_pnode *n, const oi_kernel_fault *f)
{
    const oi_access *at = n->as.op.in[f->input < n->as.op.n_in ? f->input : 0].source;
    if (f->message[0])
        return oi_ctx_fail(c, n->source->name.span, f->code, "%s: %s", n->as.op.op->name,
                           f->message);
    return oi_ctx_fail(c, at->base.span, f->code,
                       "%s: element %llu of '%s' is %lld, it must be in -%lld … %lld",
                       n->as.op.op->name, (unsigned long long)f->element, at->base.text,
                       (long long)f->value, (long long)f->limit, (long long)f->limit - 1);
}

static void commit(oi_ctx *c, oi_out *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        oi_mem_commit(c, &out[i]);
}

oi_status oi_op_call(oi_ctx *c, const oi_pnode *n, const oi_kernel_query *q,
                     const oi_prepared *ready, const oi_kernel_io *operands)
{
    oi_kernel_fault why;
    why.input = 0; /* a kernel that fails sets the rest */
    why.message[0] = '\0';
    oi_threads *threads = c->id == 0 ? c->exec->threads : NULL;
    oi_kernel_io io = *operands;
    io.parallel = threads ? oi_threads_run : NULL;
    io.pool = threads;
    io.n_threads = oi_threads_count(threads);
    if (ready->scratch_bytes && !(io.scratch = oi_ctx_scratch(c, ready->scratch_bytes)))
        return oi_ctx_no_memory(c, ready->scratch_bytes);
    return oi_prepared_run(q, ready, &io, &why) ? OI_OK : oi_op_fault(c, n, &why);
}

static oi_status run_call(oi_ctx *c, const oi_pnode *n, const call *k, oi_input *in, oi_out *out)
{
    const void *from[MAX_PORTS];
    void *to[MAX_PORTS];
    const oi_sim *s = c->exec->sim;
    bool done = false;
    if (s->remotes)
        OI_TRY(oi_remote_run(c, &k->query, in, out, &done));
    for (uint32_t i = 0; !done && s->remotes && i < n->as.op.n_in; i++)
        if (!s->budget.limit || !in[i].slot || !in[i].slot->is_weight)
            OI_TRY(oi_mem_fetch(c, &in[i]));
    if (!done && s->budget.limit)
        OI_TRY(oi_chunks_run(c, n, &k->query, &k->ready, in, out, &done));
    for (uint32_t i = 0; i < n->as.op.n_in; i++)
        from[i] = in[i].data;
    for (uint32_t i = 0; i < n->as.op.n_out; i++)
        to[i] = out[i].data;
    if (!done)
        OI_TRY(oi_op_call(c, n, &k->query, &k->ready, &(oi_kernel_io){.in = from, .out = to}));
    commit(c, out, n->as.op.n_out);
    return OI_OK;
}

/* -- types that only the run knows -- */

static oi_type type_of(oi_dtype t, uint32_t rank, const uint64_t *dims)
{
    oi_type type = {.dtype = t, .rank = rank};
    for (uint32_t i = 0; i < rank; i++)
        type.dims[i] = dims[i] == OI_DIM_RUN ? (oi_dim){.text = "?"} : oi_dim_of((int64_t)dims[i]);
    return type;
}

static oi_status refuse(oi_ctx *c, const oi_pnode *n, const oi_infer_fail *f)
{
    const oi_node *s = n->source;
    oi_span at = s->name.span;
    if (f->at == OI_AT_INPUT)
        at = n->as.op.in[f->index].source->span;
    else if (f->at == OI_AT_OUTPUT)
        at = s->as.op.outputs.at[f->index].span;
    else if (f->at == OI_AT_ATTR)
        at = n->as.op.attrs[f->index].span;
    return oi_ctx_fail(c, at, f->code, "%s", f->message);
}

/* The dims of `?` outputs, and whether everything fits. */
static oi_status judge(oi_ctx *c, const oi_pnode *n, const oi_input *in, const oi_op_value *values,
                       oi_type *results)
{
    const oi_program *p = c->exec->sim->program;
    oi_type types[MAX_PORTS], wanted[MAX_PORTS];
    oi_attr_arg args[MAX_ATTRS];
    oi_infer_fail f;
    for (uint32_t i = 0; i < n->as.op.n_in; i++)
        types[i] = type_of(in[i].dtype, in[i].rank, in[i].dims);
    for (uint32_t i = 0; i < n->as.op.n_out; i++) {
        const oi_pvar *v = &p->vars[n->as.op.out[i].var];
        wanted[i] = results[i] = type_of(v->dtype, v->rank, v->dims);
    }
    for (uint32_t i = 0; i < n->as.op.n_attrs; i++)
        args[i] = (oi_attr_arg){.attr = n->as.op.attrs[i].attr, .known = true, .value = values[i]};
    bool fits = has_run_types(p, n->as.op.out, n->as.op.n_out)
                    ? oi_infer_result(n->as.op.op, types, n->as.op.n_in, args, n->as.op.n_attrs,
                                      wanted, results, n->as.op.n_out, &f)
                    : oi_infer(n->as.op.op, types, n->as.op.n_in, args, n->as.op.n_attrs, wanted,
                               n->as.op.n_out, &f);
    return fits ? OI_OK : refuse(c, n, &f);
}

static oi_status write_typed(oi_ctx *c, const oi_pref *ref, const oi_type *type, oi_out *out)
{
    uint64_t dims[OI_MAX_RANK];
    for (uint32_t i = 0; i < type->rank; i++)
        dims[i] = (uint64_t)type->dims[i].value;
    return oi_mem_write(c, ref, dims, true, out);
}

/* A kernel for this one run; what a composite needs lives in *arena. */
typedef struct choosing {
    const oi_kernel_query *q;
    oi_prepared *ready;
    oi_arena *arena;
    oi_cpu cpu;
    bool ok;
    oi_infer_fail why;
} choosing;

static void choose(void *ctx)
{
    choosing *x = ctx;
    x->ok = oi_prepare(x->arena, x->q, x->cpu, x->ready, &x->why);
}

oi_status oi_op_choose(oi_ctx *c, const oi_pnode *n, const oi_kernel_query *q, oi_prepared *ready,
                       oi_arena **arena)
{
    choosing x = {.q = q, .ready = ready, .cpu = oi_op_cpu(c->exec->sim)};
    x.arena = *arena = oi_arena_new();
    if (!x.arena || oi_arena_guard(x.arena, choose, &x) != OI_OK)
        return oi_ctx_no_memory(c, 0);
    if (x.ok)
        return OI_OK;
    return oi_ctx_fail(c, n->source->name.span, x.why.code,
                       "the simulator cannot run this '%s': %s", n->as.op.op->name, x.why.message);
}

/* Sizes that the shape rule leaves open are what the data says. */
static oi_status measure(oi_ctx *c, const oi_pnode *n, const call *k, oi_input *in,
                         oi_type *results)
{
    size_t scratch_bytes;
    int64_t length;
    if (!oi_kernel_is_measured(n->as.op.op, &scratch_bytes, &k->query))
        return OI_OK;
    const void *from[MAX_PORTS];
    for (uint32_t i = 0; i < n->as.op.n_in; i++) {
        OI_TRY(oi_mem_fetch(c, &in[i]));
        from[i] = in[i].data;
    }
    oi_kernel_io io = {.in = from};
    if (scratch_bytes && !(io.scratch = oi_ctx_scratch(c, scratch_bytes)))
        return oi_ctx_no_memory(c, scratch_bytes);
    oi_kernel_measure(&k->query, &io, &length);
    for (uint32_t o = 0; o < n->as.op.n_out; o++)
        for (uint32_t d = 0; d < results[o].rank; d++)
            if (!results[o].dims[d].known)
                results[o].dims[d] = oi_dim_of(length);
    return OI_OK;
}

static oi_status execute_typed(oi_ctx *c, const oi_pnode *n, oi_input *in)
{
    oi_operand ins[MAX_PORTS], outs[MAX_PORTS];
    oi_op_value given[MAX_ATTRS], values[MAX_ATTRS];
    oi_type results[MAX_PORTS];
    oi_out out[MAX_PORTS];
    lists room;
    const oi_op *op = n->as.op.op;
    room.n = 0; /* not all of it: this runs for every node */
    set_defaults(op, values);
    for (uint32_t i = 0; i < n->as.op.n_attrs; i++) {
        OI_TRY(run_attr(c, &n->as.op.attrs[i], &room, &given[i]));
        values[n->as.op.attrs[i].attr - op->attrs] = given[i];
    }
    OI_TRY(judge(c, n, in, given, results));
    call k = {.in = ins, .out = outs, .attrs = values};
    set_query(&k, n);
    for (uint32_t i = 0; i < n->as.op.n_in; i++)
        set_operand(&ins[i], in[i].dtype, in[i].rank, in[i].dims);
    uint32_t made = 0;
    oi_status status = measure(c, n, &k, in, results);
    for (; status == OI_OK && made < n->as.op.n_out; made += status == OI_OK) {
        status = write_typed(c, &n->as.op.out[made], &results[made], &out[made]);
        if (status == OI_OK)
            set_operand(&outs[made], out[made].dtype, out[made].rank, out[made].dims);
    }
    oi_arena *arena = NULL;
    if (status == OI_OK)
        status = oi_op_choose(c, n, &k.query, &k.ready, &arena);
    if (status == OI_OK)
        status = run_call(c, n, &k, in, out);
    oi_arena_free(arena);
    if (status != OI_OK)
        for (uint32_t i = 0; i < made; i++)
            oi_mem_cancel(&out[i]);
    return status;
}

/* The values of attributes that were left to the run, each within its bounds. */
static oi_status read_late(oi_ctx *c, const oi_pnode *n, call *k, oi_op_value *values, lists *room)
{
    const oi_op *op = n->as.op.op;
    memcpy(values, k->attrs, op->n_attrs * sizeof *values);
    for (uint32_t i = 0; i < n->as.op.n_attrs; i++) {
        const oi_pattr *a = &n->as.op.attrs[i];
        if (is_known(a))
            continue;
        oi_op_value *v = &values[a->attr - op->attrs];
        OI_TRY(run_attr(c, a, room, v));
        const int64_t *ints = v->tag == OI_VALUE_INT ? &v->i : v->ints;
        for (uint32_t e = 0; e < (v->tag == OI_VALUE_INT ? 1 : v->n); e++)
            if (a->attr->has_min && ints[e] < a->attr->min)
                return oi_ctx_fail(c, a->span, "E053",
                                   "%s: attribute '%s' must be at least %lld, found %lld", op->name,
                                   a->attr->name, (long long)a->attr->min, (long long)ints[e]);
    }
    k->query.attrs = values;
    return OI_OK;
}

bool oi_op_is_apart(const oi_sim *s, const oi_pnode *n)
{
    if (s->remotes) /* a device's results never have the memory of an input */
        return overlaps(n);
    return s->budget.limit && !(n->as.op.op->flags & OI_OP_FLAG_INPLACE) && overlaps(n);
}

const oi_kernel_query *oi_op_planned(const oi_sim *s, const oi_pnode *n, const oi_prepared **ready)
{
    const oi_op_plan *plan = s->plans[n - s->program->nodes];
    *ready = &plan->c.ready;
    return plan->is_static ? &plan->c.query : NULL;
}

static oi_status execute_static(oi_ctx *c, const oi_pnode *n, const call *planned, oi_input *in)
{
    oi_out out[MAX_PORTS];
    oi_op_value values[MAX_ATTRS];
    lists room;
    uint32_t made = 0;
    oi_status status = OI_OK;
    call own;
    room.n = 0; /* not all of it: this runs for every node */
    const call *k = planned;
    if (planned->run_attrs) {
        own = *planned;
        k = &own;
        OI_TRY(read_late(c, n, &own, values, &room));
    }
    const bool apart = oi_op_is_apart(c->exec->sim, n);
    while (status == OI_OK && made < n->as.op.n_out) {
        status = oi_mem_write(c, &n->as.op.out[made], NULL, apart, &out[made]);
        made += status == OI_OK;
    }
    if (status == OI_OK)
        status = run_call(c, n, k, in, out);
    if (status != OI_OK)
        for (uint32_t i = 0; i < made; i++)
            oi_mem_cancel(&out[i]);
    return status;
}

oi_status oi_op_execute(oi_ctx *c, const oi_pnode *n)
{
    const oi_sim *s = c->exec->sim;
    const oi_op_plan *plan = s->plans[n - s->program->nodes];
    oi_input in[MAX_PORTS];
    /* then run_call fetches: as far as there is room, or as the host needs it */
    const bool limited = s->budget.limit || s->remotes;
    for (uint32_t i = 0; i < n->as.op.n_in; i++)
        OI_TRY(limited ? oi_mem_locate(c, &n->as.op.in[i], &in[i])
                       : oi_mem_read(c, &n->as.op.in[i], &in[i]));
    return plan->is_static ? execute_static(c, n, &plan->c, in) : execute_typed(c, n, in);
}
