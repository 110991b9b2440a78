/* lower.c: an op call becomes a kernel: its nests (src/kernel/nest.h) with the row's expressions as
 * scalar instructions: load, convert to what it is computed in, evaluate, convert, store. The types
 * on the way are those of the simulator's drivers (src/kernel/choose.c). */
#include "kernel/meaning.h"
#include "synth/compose.h"
#include "synth/lengths.h"

typedef struct lowering {
    oi_unit *u;
    uint32_t graph;
    const oi_pnode *n;
    oi_stmts *out;
    const oi_kernel_query *q;
    const oi_scall *call;
    const oi_port *in, *to; /* by operand */
    oi_skernel *kernel;
    oi_snest *loops;
    const oi_nest_fns *fns; /* of the present nest, or NULL */
} lowering;

/* -- ports -- */

static uint32_t port_of(lowering *x, const oi_port *p)
{
    for (size_t i = 0; i < x->kernel->ports.n; i++)
        if (oi_port_same(&x->kernel->ports.at[i], p)) {
            x->kernel->ports.at[i].is_written |= p->is_written;
            return (uint32_t)i;
        }
    *OI_PUSH(x->u->arena, &x->kernel->ports) = *p;
    return (uint32_t)x->kernel->ports.n - 1;
}

/* -- instructions -- */

static uint32_t push(lowering *x, oi_sops *to, oi_sop op)
{
    uint32_t base = to == &x->loops->post ? (uint32_t)x->loops->pre.n : 0;
    *OI_PUSH(x->u->arena, to) = op;
    return base + (uint32_t)to->n - 1;
}

static uint32_t load_index(lowering *x, const oi_nest *n, const oi_nest_ref *r, uint32_t d,
                           int64_t length);

/* The formulas beside the coordinates of a read. */
static const oi_coord_fns *fns_of(const lowering *x, const oi_nest *n, const oi_nest_ref *r)
{
    return !x->fns ? NULL : r == &n->write ? x->fns->write : x->fns->reads[r - n->reads];
}

/* Whether the coordinate cannot leave after all: a window without padding. */
static bool stays_inside(const oi_nest *n, const oi_nest_coord *c, int64_t length)
{
    int64_t least = c->base, most = c->base;
    for (uint32_t a = 0; a < n->n_axes; a++) {
        int64_t way = c->step[a] * (n->axes[a].extent > 0 ? n->axes[a].extent - 1 : 0);
        least += way < 0 ? way : 0;
        most += way > 0 ? way : 0;
    }
    return least >= 0 && most < length;
}

/* The coordinates of a reference; an index from data is loaded first. */
static const oi_nest_coord *coords(lowering *x, const oi_nest *n, const oi_nest_ref *r,
                                   const oi_operand *o)
{
    oi_nest_coord *at = oi_arena_alloc(x->u->arena, r->rank * sizeof *at);
    memcpy(at, r->at, r->rank * sizeof *at);
    for (uint32_t d = 0; d < r->rank; d++) {
        for (uint32_t a = 0; a < n->n_axes; a++) /* one place: equal coordinates look equal */
            if (n->axes[a].extent == 1 && !(x->fns && x->fns->extents[a]))
                at[d].step[a] = 0;
        if (at[d].index != OI_NEST_NONE)
            at[d].index = load_index(x, n, r, d, o->dims[d]);
        else if (o && !x->fns && !r->is_flat && stays_inside(n, &at[d], o->dims[d]))
            at[d].may_leave = false;
    }
    return at;
}

/* `length` of dim d of the operand that r refers to. */
static uint32_t load_index(lowering *x, const oi_nest *n, const oi_nest_ref *r, uint32_t d,
                           int64_t length)
{
    const oi_nest_coord *c = &r->at[d];
    oi_nest_ref by = n->reads[c->index];
    const oi_operand *o = &x->q->in[by.operand];
    const oi_port *of = r->is_output ? &x->to[r->operand] : &x->in[r->operand];
    if (by.rank)
        by.at[by.rank - 1].base += c->index_last;
    x->kernel->can_fail |= !c->may_leave;
    return push(x, &x->loops->pre,
                (oi_sop){.kind = OI_SOP_INDEX,
                         .type = o->dtype,
                         .port = port_of(x, &x->in[by.operand]),
                         .at = coords(x, n, &by, o),
                         .fns = fns_of(x, n, &n->reads[c->index]),
                         .is_flat = by.is_flat,
                         .may_leave = c->may_leave,
                         .length = length,
                         .length_fn = x->fns ? oi_length_fn(x->u, x->kernel, of->tensor, d) : 0});
}

static uint32_t load(lowering *x, const oi_nest *n, const oi_nest_ref *r)
{
    const oi_operand *o = &x->q->in[r->operand];
    if (r->is_position)
        return push(x, &x->loops->pre,
                    (oi_sop){.kind = OI_SOP_PLACE,
                             .type = OI_I64,
                             .at = coords(x, n, r, NULL),
                             .fns = fns_of(x, n, r)});
    oi_sop op = {.kind = OI_SOP_LOAD,
                 .type = o->dtype,
                 .port = port_of(x, &x->in[r->operand]),
                 .at = coords(x, n, r, o),
                 .fns = fns_of(x, n, r),
                 .is_flat = r->is_flat,
                 .is_raw = n->is_copy && r->name != OI_NEST_NONE};
    for (uint32_t d = 0; d < r->rank; d++)
        op.may_leave |= op.at[d].may_leave && n->leave != OI_LEAVE_NEVER;
    if (n->has_guard) {
        oi_nest_coord *guard = oi_arena_alloc(x->u->arena, sizeof *guard);
        *guard = n->guard;
        op.guard = guard;
        op.guard_fns = x->fns ? x->fns->guard : NULL;
        op.may_leave = true;
    }
    if (n->leave == OI_LEAVE_SKIP)
        x->loops->skips |= op.may_leave;
    if (n->leave == OI_LEAVE_FILL)
        op.fill = oi_kernel_bits(op.type, &n->fill);
    return push(x, &x->loops->pre, op);
}

static uint32_t convert(lowering *x, oi_sops *to, uint32_t value, oi_dtype from, oi_dtype type)
{
    if (from == type)
        return value;
    return push(
        x, to,
        (oi_sop){.kind = OI_SOP_CONVERT, .type = type, .from = from, .args = {value}, .n_args = 1});
}

static void store(lowering *x, oi_sops *to, const oi_nest *n, uint32_t value)
{
    oi_port p = x->to[n->write.operand];
    p.is_written = true;
    push(x, to,
         (oi_sop){.kind = OI_SOP_STORE,
                  .type = x->q->out[n->write.operand].dtype,
                  .port = port_of(x, &p),
                  .at = coords(x, n, &n->write, &x->q->out[n->write.operand]),
                  .fns = fns_of(x, n, &n->write),
                  .is_flat = n->write.is_flat,
                  .is_raw = n->is_copy,
                  .args = {value},
                  .n_args = 1});
}

static oi_sop evaluate(lowering *x, oi_op_part part, oi_dtype type)
{
    oi_sop op = {.kind = OI_SOP_EVAL, .type = type, .part = part, .call = x->call};
    for (uint32_t i = 0; i < OI_SOP_ARGS; i++)
        op.args[i] = OI_NO_ID;
    op.n_args = OI_SOP_ARGS;
    op.place = OI_NO_ID;
    return op;
}

/* Some inputs give only their shape: fill. */
static bool mentions(const lowering *x, uint32_t input, oi_dtype type)
{
    const oi_op_meaning *row = oi_op_meaning_find(x->call->op, OI_PART_EXPR, x->call->in0, type);
    return !row || input >= x->call->op->n_inputs ||
           oi_m_uses(&row->expr, x->call->op->inputs[input].name);
}

/* The expression over all named reads, each converted to `compute`, or as it is (OI_NONE). */
static uint32_t expression(lowering *x, const oi_nest *n, oi_dtype compute, oi_dtype type)
{
    oi_sop op = evaluate(x, OI_PART_EXPR, type);
    for (uint32_t r = 0; r + n->has_last < n->n_reads; r++) {
        const oi_nest_ref *ref = &n->reads[r];
        if (ref->is_position)
            op.place = load(x, n, ref);
        if (ref->name == OI_NEST_NONE || ref->is_position || !mentions(x, ref->name, type))
            continue;
        oi_dtype own = x->q->in[ref->operand].dtype;
        uint32_t v = load(x, n, ref);
        op.args[ref->name] = compute == OI_NONE ? v : convert(x, &x->loops->pre, v, own, compute);
    }
    return push(x, &x->loops->pre, op);
}

/* -- by kind of nest -- */

static oi_dtype result_of_map(const lowering *x, oi_dtype compute)
{
    oi_out_rule rule = x->q->op->outputs[0].out_rule;
    return rule == OI_OUT_ATTR || rule == OI_OUT_LIST ? x->q->out[0].dtype : compute;
}

/* Scatter with a reduction: the element written is combined with the old one. */
static void combine_out(lowering *x, const oi_nest *n)
{
    const oi_operand *o = &x->q->out[n->write.operand];
    oi_sops *pre = &x->loops->pre;
    uint32_t r = 0;
    while (n->reads[r].name == OI_NEST_NONE)
        r++;
    oi_port p = x->to[n->write.operand];
    oi_sop op = evaluate(x, OI_PART_COMBINE, o->dtype);
    op.args[1] = load(x, n, &n->reads[r]);
    oi_sop old = {.kind = OI_SOP_LOAD,
                  .type = o->dtype,
                  .port = port_of(x, &p),
                  .at = coords(x, n, &n->write, o),
                  .fns = fns_of(x, n, &n->write)};
    op.args[0] = push(x, pre, old);
    uint32_t v = push(x, pre, op);
    p.is_written = true;
    push(x, pre,
         (oi_sop){.kind = OI_SOP_STORE,
                  .type = o->dtype,
                  .port = port_of(x, &p),
                  .at = old.at,
                  .fns = old.fns,
                  .args = {v},
                  .n_args = 1});
}

static void lower_map(lowering *x, const oi_nest *n)
{
    oi_sops *pre = &x->loops->pre;
    if (n->combines_out) {
        combine_out(x, n);
        return;
    }
    if (n->is_copy) {
        uint32_t r = 0;
        while (r < n->n_reads && n->reads[r].name == OI_NEST_NONE)
            r++;
        oi_dtype t = x->q->out[n->write.operand].dtype;
        oi_sop fill = {
            .kind = OI_SOP_CONST, .type = t, .is_raw = true, .fill = oi_kernel_bits(t, &n->fill)};
        store(x, pre, n, r < n->n_reads ? load(x, n, &n->reads[r]) : push(x, pre, fill));
        return;
    }
    oi_dtype acc = oi_kernel_accumulator(x->q), o = x->q->out[n->write.operand].dtype;
    oi_dtype compute = acc != OI_NONE ? acc : x->call->in0;
    oi_dtype result = result_of_map(x, compute);
    uint32_t v = expression(x, n, acc, result);
    store(x, pre, n, convert(x, pre, v, result, o));
}

/* What `finish` takes beside the sum: a bias. */
static uint32_t load_last(lowering *x, const oi_nest *n, oi_dtype acc)
{
    const oi_nest_ref *r = &n->reads[n->n_reads - 1];
    const oi_operand *o = &x->q->in[r->operand];
    oi_sop op = {.kind = OI_SOP_LOAD,
                 .type = o->dtype,
                 .port = port_of(x, &x->in[r->operand]),
                 .at = coords(x, n, r, o),
                 .fns = fns_of(x, n, r)};
    return convert(x, &x->loops->post, push(x, &x->loops->post, op), o->dtype, acc);
}

static void finish(lowering *x, const oi_nest *n, oi_dtype cut)
{
    oi_sops *post = &x->loops->post;
    oi_dtype acc = x->loops->acc, o = x->q->out[n->write.operand].dtype;
    uint32_t v = push(x, post, (oi_sop){.kind = OI_SOP_ACC, .type = acc});
    if (oi_op_meaning_find(x->q->op, OI_PART_FINISH, oi_form_of(acc), oi_form_of(acc))) {
        oi_sop op = evaluate(x, OI_PART_FINISH, acc);
        op.args[0] = v;
        if (n->has_last)
            op.args[2] = load_last(x, n, acc);
        v = push(x, post, op);
    }
    v = convert(x, post, v, acc, cut);
    store(x, post, n, convert(x, post, v, cut, o));
}

static void lower_reduce(lowering *x, const oi_nest *n)
{
    oi_snest *l = x->loops;
    l->reduce = x->call;
    if (x->q->op->cls == OI_OP_CLASS_MAP) { /* is_nan and its like over all elements */
        l->acc = OI_BOOL;
        l->element = expression(x, n, OI_NONE, OI_BOOL);
        finish(x, n, OI_BOOL);
        return;
    }
    const oi_nest_ref *r = &n->reads[0];
    l->acc = n->acc;
    l->finds_element = n->finds_element;
    l->finds_position = n->finds_element || x->q->op->shape_rule == OI_SHAPE_ARGREDUCE;
    l->element = convert(x, &l->pre, load(x, n, r), x->q->in[r->operand].dtype, n->acc);
    if (!l->finds_position) {
        finish(x, n, n->acc);
        return;
    }
    uint32_t v = push(x, &l->post, (oi_sop){.kind = OI_SOP_ACC, .type = OI_I64});
    store(x, &l->post, n, convert(x, &l->post, v, OI_I64, x->q->out[n->write.operand].dtype));
}

static void lower_contract(lowering *x, const oi_nest *n)
{
    oi_snest *l = x->loops;
    l->reduce = x->call;
    l->acc = oi_kernel_sums_in(n->acc);
    l->element = expression(x, n, l->acc, l->acc);
    finish(x, n, n->acc);
}

static void lower_nest(lowering *x, const oi_nest *n)
{
    oi_snest *l = x->loops = OI_PUSH(x->u->arena, &x->kernel->nests);
    memset(l, 0, sizeof *l);
    l->kind = n->kind;
    l->n_axes = n->n_axes;
    for (uint32_t a = 0; a < n->n_axes; a++)
        l->axes[a] = (oi_saxis){.extent = n->axes[a].extent, .is_reduced = n->axes[a].is_reduced};
    l->extents = x->fns ? x->fns->extents : NULL;
    l->is_serial = n->is_serial;
    l->is_scan = n->is_scan;
    l->excludes = n->excludes;
    l->combines_out = n->combines_out;
    l->lanes = n->lanes;
    if (n->kind == OI_NEST_MAP)
        lower_map(x, n);
    else if (n->kind == OI_NEST_REDUCE)
        lower_reduce(x, n);
    else
        lower_contract(x, n);
}

/* -- a call -- */

static void add_kernel(lowering *x)
{
    for (size_t i = 0; i < x->kernel->ports.n; i++) /* places hang on them */
        for (uint32_t d = 0; d < OI_MAX_RANK; d++)
            oi_length_fn(x->u, x->kernel, x->kernel->ports.at[i].tensor, d);
    x->u->kernels.at[x->u->kernels.n - 1].graph = x->graph;
    *OI_PUSH(x->u->arena, x->out) =
        (oi_stmt){.kind = OI_STMT_KERNEL, .node = x->n, .kernel = (uint32_t)x->u->kernels.n - 1};
}

oi_skernel *oi_lower_kernel(oi_unit *u, const char *what, const oi_pnode *n)
{
    oi_skernel *k = OI_PUSH(u->arena, &u->kernels);
    memset(k, 0, sizeof *k);
    if (n->kind == OI_NODE_OP) /* the op as written, also where a body put another in its place */
        what = n->as.op.op->name;
    k->name = oi_unit_identifier(u, oi_arena_printf(u->arena, "k%zu_%s", u->kernels.n, what));
    *OI_PUSH(u->arena, &k->nodes) = n;
    return k;
}

void oi_lower_operand(const oi_unit *u, const oi_port *p, oi_operand *o)
{
    const oi_tensor *t = &u->tensors.at[p->tensor];
    uint64_t stride = 1; /* wraps for what is too large: that is refused before it is used */
    *o = (oi_operand){.dtype = t->dtype, .rank = t->rank};
    for (uint32_t d = t->rank; d-- > 0; stride *= (uint64_t)t->dims[d]) {
        o->dims[d] = t->dims[d];
        o->strides[d] = (int64_t)stride;
    }
}

/* Whether every element is read only by the iteration that then writes it. */
static bool works_in_place(const oi_unit *u, const oi_skernel *k, uint32_t port)
{
    uint32_t rank = u->tensors.at[k->ports.at[port].tensor].rank;
    if (k->nests.n != 1 || k->nests.at[0].kind != OI_NEST_MAP || k->nests.at[0].is_serial)
        return false;
    const oi_sops *pre = &k->nests.at[0].pre;
    const oi_sop *write = &pre->at[pre->n - 1];
    for (size_t i = 0; i + 1 < pre->n; i++)
        if ((pre->at[i].kind == OI_SOP_LOAD || pre->at[i].kind == OI_SOP_INDEX) &&
            pre->at[i].port == port && !oi_sop_same_place(&pre->at[i], write, rank))
            return false;
    return true;
}

/* What a scatter finds where it writes: it moves with the result. */
static bool is_found(const oi_snest *n, size_t op)
{
    for (size_t i = 0; n->combines_out && i < n->pre.n; i++)
        if (n->pre.at[i].kind == OI_SOP_EVAL && n->pre.at[i].part == OI_PART_COMBINE &&
            n->pre.at[i].args[0] == op)
            return true;
    return false;
}

/* A tensor that is read and written otherwise: the result is made apart and copied. */
static void split_overlap(lowering *x, uint32_t kernel)
{
    oi_unit *u = x->u;
    for (uint32_t i = 0; i < u->kernels.at[kernel].ports.n; i++) {
        oi_skernel *k = &u->kernels.at[kernel];
        oi_port *p = &k->ports.at[i];
        bool clashes = false;
        for (uint32_t j = 0; p->is_written && j < k->ports.n; j++)
            clashes |= k->ports.at[j].tensor == p->tensor && (j != i || !works_in_place(u, k, i));
        bool reads = false;
        for (size_t n = 0; n < k->nests.n; n++)
            for (size_t s = 0; s < k->nests.at[n].pre.n; s++) {
                const oi_sop *op = &k->nests.at[n].pre.at[s];
                reads |= op->kind == OI_SOP_LOAD && k->ports.at[op->port].tensor == p->tensor &&
                         !is_found(&k->nests.at[n], s);
            }
        if (!clashes || !reads)
            continue;
        oi_tensor t = u->tensors.at[p->tensor];
        t = (oi_tensor){.name = oi_arena_printf(u->arena, "%s_new", t.name),
                        .dtype = t.dtype,
                        .rank = t.rank,
                        .space = OI_SPACE_ARENA,
                        .is_written = true,
                        .graph = x->graph};
        memcpy(t.dims, u->tensors.at[p->tensor].dims, sizeof t.dims);
        oi_port dst = *p, src = {.tensor = oi_unit_add_tensor(u, &t)};
        k = &u->kernels.at[kernel];
        uint32_t fresh = (uint32_t)k->ports.n;
        src.is_written = true;
        *OI_PUSH(u->arena, &k->ports) = src;
        k->ports.at[i].is_written = false;
        for (size_t o = 0; k->query && o < k->query->n_out; o++) /* the call's result, too */
            if (k->out_tensors[o] == dst.tensor)
                k->out_tensors[o] = src.tensor;
        for (size_t n = 0; n < k->nests.n; n++)
            for (int post = 0; post < 2; post++) {
                oi_sops *ops = post ? &k->nests.at[n].post : &k->nests.at[n].pre;
                for (size_t s = 0; s < ops->n; s++)
                    if (ops->at[s].port == i && (ops->at[s].kind == OI_SOP_STORE ||
                                                 (!post && is_found(&k->nests.at[n], s))))
                        ops->at[s].port = fresh;
            }
        src.is_written = false;
        oi_lower_copy(u, x->graph, x->n, src, dst, x->out);
    }
}

static void keep_call(oi_unit *u, oi_skernel *k, const oi_lowered *call)
{
    const oi_kernel_query *q = call->q;
    uint32_t *tensors = oi_arena_alloc(u->arena, (q->n_in + q->n_out + 1) * sizeof *tensors);
    for (size_t i = 0; i < q->n_in; i++)
        tensors[i] = call->in[i].tensor;
    for (size_t i = 0; i < q->n_out; i++)
        tensors[q->n_in + i] = call->to[i].tensor;
    k->query = q;
    k->sums = k->nests.n == 1 && k->nests.at[0].kind == OI_NEST_CONTRACT ? q : NULL;
    k->in_tensors = tensors;
    k->out_tensors = tensors + q->n_in;
}

/* Whether a map gives its one operand as it is: identity, a cast to the same type. Truths are
 * computed, they become 0 or 1. */
static bool is_move(const oi_kernel_query *q)
{
    if (q->op->cls != OI_OP_CLASS_MAP || q->n_in != 1 || q->in[0].dtype != q->out[0].dtype ||
        q->out[0].dtype == OI_BOOL)
        return false;
    const oi_op_meaning *m =
        oi_op_meaning_find(q->op, OI_PART_EXPR, q->in[0].dtype, q->out[0].dtype);
    return q->op->id == OI_OP_CAST || (m && oi_m_is_name(&m->expr, q->op->inputs[0].name));
}

void oi_lower_call(oi_unit *u, uint32_t graph, const oi_pnode *node, const oi_lowered *lowered,
                   oi_stmts *out)
{
    const oi_kernel_query *q = lowered->q;
    if (!lowered->dyn && oi_lower_recipe(u, graph, node, lowered, out))
        return;
    if (q->op->cls == OI_OP_CLASS_COMPOSITE) {
        oi_lower_composite(u, graph, node, lowered, out);
        return;
    }
    size_t n = oi_nest_count(q);
    if (n == 0 && q->op->cls != OI_OP_CLASS_CUSTOM)
        return; /* a result without elements: the shape of a scalar */
    if (n == 0 && !lowered->dyn && oi_lower_custom(u, graph, node, lowered, out))
        return;
    if (n == 0) {
        oi_unit_refuse(u, graph, node, node->source->name.span, "E060",
                       "'%s' cannot be synthesized yet", q->op->name);
        return;
    }
    oi_scall *call = oi_arena_alloc(u->arena, sizeof *call);
    *call = (oi_scall){.op = q->op, .attrs = q->attrs, .scalars = lowered->scalars, .node = node};
    bool counts = q->op->loops == OI_LOOPS_COUNT_UP; /* only the place of an element matters */
    call->in0 = counts ? q->out[0].dtype : oi_kernel_shared(q);
    lowering x = {.u = u, .graph = graph, .n = node, .out = out, .q = q, .call = call};
    x.in = lowered->in;
    x.to = lowered->to;
    x.kernel = oi_lower_kernel(u, q->op->name, node);
    for (uint32_t i = 0; i < lowered->n_numbers; i++)
        *OI_PUSH(u->arena, &x.kernel->scalars) = lowered->numbers[i];
    if (lowered->dyn && !oi_dyn_lengths(lowered->dyn, lowered->leaf, x.kernel, x.to))
        return;
    x.kernel->is_dynamic = lowered->dyn != NULL;
    for (size_t i = 0; i < n; i++) {
        oi_nest nest;
        oi_nest_fns *fns = NULL;
        if (!lowered->dyn) {
            oi_nest_make(q, i, &nest);
            nest.is_copy |= is_move(q);
        } else {
            memset(&nest, 0, sizeof nest);
            fns = oi_arena_alloc(u->arena, sizeof *fns);
            if (!oi_dyn_nest(lowered->dyn, lowered->leaf, i, x.kernel, x.in, x.to, &nest, fns))
                return;
        }
        x.fns = fns;
        lower_nest(&x, &nest);
    }
    uint32_t id = (uint32_t)u->kernels.n - 1;
    if (!lowered->dyn)
        keep_call(u, x.kernel, lowered);
    add_kernel(&x);
    split_overlap(&x, id);
}

/* dst becomes as long as src, or src must be as long as dst. */
static void copy_lengths(lowering *x, oi_nest *n, oi_nest_fns *fns)
{
    oi_unit *u = x->u;
    oi_arena *a = u->arena;
    const oi_tensor *src = &u->tensors.at[x->in->tensor], *dst = &u->tensors.at[x->to->tensor];
    oi_coord_fns *none = oi_arena_alloc(a, (n->n_axes + 1) * sizeof *none);
    OI_VEC(oi_length_check) checks = {0};
    fns->reads[0] = fns->write = none;
    x->kernel->is_dynamic = true;
    for (uint32_t d = 0; d < n->n_axes; d++) {
        bool from = src->run_dims >> d & 1, to = dst->run_dims >> d & 1;
        n->reads[0].at[d].step[d] = 1;
        n->axes[d].extent = from ? dst->dims[d] : src->dims[d];
        if (from && !to)
            *OI_PUSH(a, &checks) = (oi_length_check){.tensor = x->in->tensor,
                                                     .dim = d,
                                                     .other = OI_NO_ID,
                                                     .is_value = true,
                                                     .value = dst->dims[d],
                                                     .most = -1};
        else
            fns->extents[d] = oi_length_fn(u, x->kernel, x->in->tensor, d);
        if (to)
            *OI_PUSH(a, &x->kernel->lengths) = (oi_set_length){
                .tensor = x->to->tensor, .dim = d, .value = src->dims[d], .fn = fns->extents[d]};
    }
    if (checks.n)
        *OI_PUSH(a, x->out) = (oi_stmt){.kind = OI_STMT_SHAPE,
                                        .node = x->n,
                                        .checks = checks.at,
                                        .n_checks = (uint32_t)checks.n};
}

void oi_lower_copy(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_port src, oi_port dst,
                   oi_stmts *out)
{
    oi_operand from, to;
    oi_lower_operand(u, &src, &from);
    oi_lower_operand(u, &dst, &to);
    oi_kernel_query q = {
        .op = oi_op_at(OI_OP_FILL), .in = &from, .n_in = 1, .out = &to, .n_out = 1};
    oi_nest nest = {.op = q.op, .kind = OI_NEST_MAP, .is_copy = true, .acc = from.dtype};
    oi_nest_over_output(&nest, &q, 0);
    uint32_t axes[OI_NEST_AXES];
    for (uint32_t a = 0; a < nest.n_axes; a++)
        axes[a] = a;
    oi_nest_broadcast(oi_nest_add_read(&nest, &q, 0), &from, axes, nest.n_axes);
    src.is_written = false;
    lowering x = {.u = u, .graph = graph, .n = n, .out = out, .q = &q, .in = &src, .to = &dst};
    x.kernel = oi_lower_kernel(u, "copy", n);
    if (u->tensors.at[src.tensor].run_dims || u->tensors.at[dst.tensor].run_dims) {
        oi_nest_fns *fns = oi_arena_alloc(u->arena, sizeof *fns);
        copy_lengths(&x, &nest, fns);
        x.fns = fns;
    }
    lower_nest(&x, &nest);
    add_kernel(&x);
}

/* -- an op node -- */

static oi_port port_from(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_pref *r,
                         oi_stmts *out)
{
    oi_sgraph *g = &u->graphs.at[graph];
    if (!r->is_index)
        return (oi_port){
            .tensor = g->tensor_of[r->var], .entry = r->codes, .n_entry = r->n_codes, .ref = r};
    oi_tensor t = {.name = g->program->symbols->list.at[g->program->first_index + r->var].name,
                   .dtype = OI_I64,
                   .space = OI_SPACE_ARENA,
                   .is_written = true,
                   .graph = graph};
    oi_port p = {.tensor = oi_unit_add_tensor(u, &t), .ref = r};
    *OI_PUSH(u->arena, out) = (oi_stmt){
        .kind = OI_STMT_SET, .node = n, .a = p, .value = {.kind = OI_PV_INDEX, .id = r->var}};
    return p;
}

/* The attributes of a node: known values, and numbers that the kernel is handed. */
static bool set_attrs(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_op_value *attrs,
                      uint32_t *scalars, oi_kscalar *numbers, uint32_t *n_numbers, oi_dtype in0)
{
    const oi_op *op = n->as.op.op;
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        attrs[i] = op->attrs[i].def;
        scalars[i] = OI_NO_ID;
    }
    for (uint32_t i = 0; i < n->as.op.n_attrs; i++) {
        const oi_pattr *a = &n->as.op.attrs[i];
        uint32_t at = (uint32_t)(a->attr - op->attrs);
        if (!a->items && a->one.kind == OI_PV_KNOWN) {
            attrs[at] = a->one.value;
            continue;
        }
        bool is_number = a->attr->kind == OI_ATTR_NUMBER || a->attr->kind == OI_ATTR_INT ||
                         a->attr->kind == OI_ATTR_LENGTH;
        if (a->items || !is_number) {
            oi_unit_refuse(u, graph, n, a->span, "E062",
                           "attribute '%s' of '%s' is only known when the graph runs",
                           a->attr->name, op->name);
            return false;
        }
        attrs[at] = (oi_op_value){.tag = OI_VALUE_INT};
        scalars[at] = *n_numbers;
        numbers[(*n_numbers)++] =
            (oi_kscalar){.name = a->attr->name,
                         .dtype = a->attr->kind == OI_ATTR_NUMBER ? in0 : OI_I64,
                         .value = a->one};
    }
    return true;
}

/* The types of attributes that only the run knows, for composites. */
static const oi_operand *run_types(oi_unit *u, uint32_t graph, const oi_op *op,
                                   const uint32_t *scalars, const oi_kscalar *numbers)
{
    const oi_program *p = u->graphs.at[graph].program;
    oi_operand *types = oi_arena_alloc(u->arena, (op->n_attrs + 1) * sizeof *types);
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        if (scalars[i] == OI_NO_ID)
            continue;
        const oi_pvalue *v = &numbers[scalars[i]].value;
        types[i].dtype = OI_I64;
        if (v->kind != OI_PV_VAR)
            continue;
        types[i].dtype = p->vars[v->id].dtype;
        types[i].rank = p->vars[v->id].rank;
        for (uint32_t d = 0; d < types[i].rank; d++)
            types[i].dims[d] = (int64_t)p->vars[v->id].dims[d];
        if (types[i].rank == 1)
            types[i].strides[0] = 1;
    }
    return types;
}

/* The node's call: operands as ports, attributes as values and numbers. */
static bool read_call(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_stmts *out,
                      oi_lowered *call, oi_port **to)
{
    const oi_op *op = n->as.op.op;
    uint32_t n_in = n->as.op.n_in, n_out = n->as.op.n_out, n_numbers = 0;
    oi_port *ports = oi_arena_alloc(u->arena, (n_in + n_out + 1) * sizeof *ports);
    oi_operand *ops = oi_arena_alloc(u->arena, (n_in + n_out + 1) * sizeof *ops);
    oi_op_value *attrs = oi_arena_alloc(u->arena, (op->n_attrs + 1) * sizeof *attrs);
    uint32_t *scalars = oi_arena_alloc(u->arena, (op->n_attrs + 1) * sizeof *scalars);
    oi_kscalar *numbers = oi_arena_alloc(u->arena, (op->n_attrs + 1) * sizeof *numbers);
    for (uint32_t i = 0; i < n_in + n_out; i++) {
        ports[i] =
            port_from(u, graph, n, i < n_in ? &n->as.op.in[i] : &n->as.op.out[i - n_in], out);
        oi_lower_operand(u, &ports[i], &ops[i]);
    }
    if (!set_attrs(u, graph, n, attrs, scalars, numbers, &n_numbers, ops[0].dtype))
        return false;
    oi_kernel_query *q = oi_arena_alloc(u->arena, sizeof *q);
    *q = (oi_kernel_query){
        .op = op, .in = ops, .n_in = n_in, .out = ops + n_in, .n_out = n_out, .attrs = attrs};
    if (n_numbers)
        q->run_attrs = run_types(u, graph, op, scalars, numbers);
    *call = (oi_lowered){.q = q,
                         .scalars = scalars,
                         .numbers = numbers,
                         .n_numbers = n_numbers,
                         .in = ports,
                         .to = ports + n_in};
    *to = ports + n_in;
    return u->status == OI_OK;
}

bool oi_lower_study(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_dyn *d)
{
    oi_lowered call;
    oi_port *to;
    oi_stmts unused = {0};
    if (!read_call(u, graph, n, &unused, &call, &to))
        return false;
    *d = (oi_dyn){.u = u, .graph = graph, .n = n, .q = call.q, .in = call.in, .to = call.to};
    return oi_dyn_study(d);
}

void oi_lower_op(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_stmts *out)
{
    oi_lowered call;
    oi_port *to;
    bool is_dynamic = false;
    if (!read_call(u, graph, n, out, &call, &to))
        return;
    for (size_t i = 0; i < call.q->n_in + call.q->n_out; i++)
        is_dynamic |= u->tensors.at[call.in[i].tensor].run_dims != 0;
    if (is_dynamic)
        oi_lower_open(u, graph, n, &call, to, out);
    else
        oi_lower_call(u, graph, n, &call, out);
}
