/* custom.c: lowers ops that are not loop nests: the steps that src/kernel/custom/ records for them
 * become kernels. Constant results become tables in the weights. A length that depends on the data
 * is computed by a C body and set after it. */
#include "kernel/custom.h"

#include "synth/lengths.h"

typedef struct custom {
    oi_unit *u;
    uint32_t graph;
    const oi_pnode *n;
    const oi_kernel_query *q;
    oi_port *ports; /* by tensor of the steps */
    oi_stmts *out;
} custom;

/* -- tensors -- */

static oi_port add_tensor(custom *x, const oi_step_tensor *s)
{
    oi_tensor t = {.name = oi_arena_printf(x->u->arena, "%s_%s", x->q->op->name, s->stem),
                   .dtype = s->dtype,
                   .rank = s->rank,
                   .space = s->bytes ? OI_SPACE_WEIGHTS : OI_SPACE_ARENA,
                   .graph = x->graph,
                   .bytes = s->bytes,
                   .is_written = !s->bytes};
    for (uint32_t d = 0; d < s->rank; d++)
        t.dims[d] = s->dims[d];
    return (oi_port){.tensor = oi_unit_add_tensor(x->u, &t)};
}

/* -- steps -- */

static void lower_op(custom *x, const oi_custom_step *s)
{
    oi_arena *a = x->u->arena;
    const oi_op *op = oi_op_at(s->op);
    oi_port *ports = oi_arena_alloc(a, (s->n_in + 2) * sizeof *ports);
    oi_operand *ops = oi_arena_alloc(a, (s->n_in + 2) * sizeof *ops);
    oi_op_value *attrs = oi_arena_alloc(a, (op->n_attrs + 1) * sizeof *attrs);
    uint32_t *scalars = oi_arena_alloc(a, (op->n_attrs + 1) * sizeof *scalars);
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        attrs[i] = &op->attrs[i] == oi_op_attr_find(op, s->attr) ? s->value : op->attrs[i].def;
        scalars[i] = OI_NO_ID;
    }
    for (uint32_t i = 0; i < s->n_in; i++)
        ports[i] = x->ports[s->in[i]];
    ports[s->n_in] = x->ports[s->out[0]];
    for (uint32_t i = 0; i <= s->n_in; i++)
        oi_lower_operand(x->u, &ports[i], &ops[i]);
    oi_kernel_query *q = oi_arena_alloc(a, sizeof *q);
    *q = (oi_kernel_query){
        .op = op, .in = ops, .n_in = s->n_in, .out = ops + s->n_in, .n_out = 1, .attrs = attrs};
    oi_lowered call = {.q = q, .scalars = scalars, .in = ports, .to = ports + s->n_in};
    oi_lower_call(x->u, x->graph, x->n, &call, x->out);
}

static const oi_recipe own_body = {"a body of its own", OI_OP_COUNT, false, NULL};

static void give(custom *x, oi_skernel *k, oi_recipe_plan *plan, uint32_t *args, uint32_t tensor,
                 bool is_written)
{
    oi_port p = x->ports[tensor];
    p.is_written = is_written;
    args[plan->n_args] = (uint32_t)k->ports.n;
    *OI_PUSH(x->u->arena, &k->ports) = p;
    oi_recipe_arg_add(plan, is_written ? OI_ARG_OUT : OI_ARG_IN, 0);
}

static void lower_body(custom *x, const oi_custom_step *s)
{
    oi_recipe_plan *plan = oi_arena_alloc(x->u->arena, sizeof *plan);
    uint32_t *args = oi_arena_alloc(x->u->arena, OI_RECIPE_ARGS * sizeof *args);
    oi_skernel *k = oi_lower_kernel(x->u, x->q->op->name, x->n);
    plan->function = s->function;
    k->recipe = &own_body;
    k->plan = plan;
    k->arg_ports = args;
    k->graph = x->graph;
    for (uint32_t i = 0; i < s->n_in; i++)
        give(x, k, plan, args, s->in[i], false);
    for (uint32_t i = 0; i < s->n_out; i++)
        give(x, k, plan, args, s->out[i], true);
    for (uint32_t i = 0; i < s->n_sizes; i++) {
        args[plan->n_args] = OI_NO_ID;
        oi_recipe_arg_add(plan, OI_ARG_SIZE, s->sizes[i]);
    }
    const uint32_t fixed = s->fixed ? x->ports[s->fixed - 1].tensor : OI_NO_ID;
    if (fixed != OI_NO_ID && x->u->tensors.at[fixed].run_dims >> s->dim & 1)
        *OI_PUSH(x->u->arena, &k->lengths) =
            (oi_set_length){.tensor = fixed, .dim = s->dim, .value = s->length};
    *OI_PUSH(x->u->arena, x->out) =
        (oi_stmt){.kind = OI_STMT_KERNEL, .node = x->n, .kernel = (uint32_t)(k - x->u->kernels.at)};
}

static void lower_step(custom *x, const oi_custom_step *s)
{
    switch (s->kind) {
    case OI_STEP_CALL: lower_body(x, s); break;
    case OI_STEP_OP: lower_op(x, s); break;
    case OI_STEP_COPY:
        oi_lower_copy(x->u, x->graph, x->n, x->ports[s->in[0]], x->ports[s->out[0]], x->out);
        break;
    case OI_STEP_LENGTH:
        *OI_PUSH(x->u->arena, x->out) = (oi_stmt){.kind = OI_STMT_LENGTH,
                                                  .node = x->n,
                                                  .a = x->ports[s->in[0]],
                                                  .b = x->ports[s->out[0]],
                                                  .limit = s->dim};
        break;
    }
}

/* -- what has no inputs -- */

/* Known now: the simulator's kernel computes it. */
static void lower_known(custom *x, oi_port to)
{
    const oi_tensor *t = &x->u->tensors.at[to.tensor];
    oi_choice *c = oi_arena_alloc(x->u->arena, sizeof *c);
    void *bytes = oi_arena_alloc(x->u->arena, (size_t)t->size_bytes + OI_KERNEL_ALIGN);
    void *outs[1] = {bytes};
    oi_kernel_fault fault = {0};
    oi_kernel_io io = {.out = outs};
    if (!oi_kernel_choose(x->q, OI_CPU_SCALAR, c) || c->scratch_bytes ||
        !oi_kernel_call(x->q, c, &io, &fault)) {
        oi_unit_refuse(x->u, x->graph, x->n, x->n->source->name.span,
                       fault.code ? fault.code : "E060", "%s: %s", x->q->op->name, fault.message);
        return;
    }
    oi_step_tensor known = {.stem = "table", .dtype = t->dtype, .rank = t->rank, .bytes = bytes};
    memcpy(known.dims, t->dims, t->rank * sizeof *t->dims);
    oi_lower_copy(x->u, x->graph, x->n, add_tensor(x, &known), to, x->out);
}

/* -- a call -- */

static bool is_input(const oi_lowered *call, uint32_t tensor)
{
    for (size_t i = 0; i < call->q->n_in; i++)
        if (call->in[i].tensor == tensor)
            return true;
    return false;
}

/* Where results go: an output that is also read is made apart. */
static void place_outputs(custom *x, const oi_lowered *call, const oi_steps *s)
{
    for (size_t i = 0; i < call->q->n_out; i++) {
        const size_t at = call->q->n_in + i;
        oi_step_tensor apart = s->tensors.at[at];
        apart.stem = "new";
        x->ports[at] = is_input(call, call->to[i].tensor) ? add_tensor(x, &apart) : call->to[i];
    }
}

bool oi_lower_custom(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_lowered *call,
                     oi_stmts *out)
{
    const oi_custom *own = oi_custom_of(call->q->op);
    custom x = {.u = u, .graph = graph, .n = n, .q = call->q, .out = out};
    oi_steps steps;
    if (!own || call->n_numbers || (!own->lower && call->q->n_in))
        return false;
    if (!own->lower) {
        lower_known(&x, call->to[0]);
        return true;
    }
    oi_steps_init(&steps, u->arena, call->q);
    own->lower(&steps);
    x.ports = oi_arena_alloc(u->arena, steps.tensors.n * sizeof *x.ports);
    memcpy(x.ports, call->in, call->q->n_in * sizeof *x.ports);
    place_outputs(&x, call, &steps);
    for (size_t i = call->q->n_in + call->q->n_out; i < steps.tensors.n; i++)
        x.ports[i] = add_tensor(&x, &steps.tensors.at[i]);
    for (size_t i = 0; i < steps.steps.n; i++)
        lower_step(&x, &steps.steps.at[i]);
    for (size_t i = 0; i < call->q->n_out && u->status == OI_OK; i++) {
        oi_port to = call->to[i], made = x.ports[call->q->n_in + i];
        to.is_written = true;
        if (made.tensor != to.tensor)
            oi_lower_copy(u, graph, n, made, to, out);
    }
    return true;
}
