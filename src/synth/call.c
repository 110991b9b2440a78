/* call.c: a unit of one call on its own: what a simulator runs on a device.
 *
 * Lowering, schedule and names are those of whole programs. There are no other passes: nothing is
 * fused, and every tensor is one that the caller gives room. A call has no graph; an empty one
 * stands in for it where messages and names ask. */
#include "synth/lower.h"
#include "synth/pass.h"

/* A graph without text, and a node without a place in it. */
static const oi_pnode *add_graph(oi_unit *u, const oi_op *op)
{
    oi_arena *a = u->arena;
    oi_graph *graph = oi_arena_alloc(a, sizeof *graph);
    oi_program *program = oi_arena_alloc(a, sizeof *program);
    oi_node *source = oi_arena_alloc(a, sizeof *source);
    oi_pnode *node = oi_arena_alloc(a, sizeof *node);
    graph->origin = "call";
    source->span = (oi_span){1, 1, 1}; /* messages need a place */
    program->graph = graph;
    program->n_blocks = 1;
    source->kind = node->kind = OI_NODE_OP;
    source->name.text = op->name;
    node->source = source;
    node->as.op.op = op;
    oi_sgraph *g = OI_PUSH(a, &u->graphs);
    *g = (oi_sgraph){.program = program, .name = u->name};
    g->blocks = oi_arena_alloc(a, sizeof *g->blocks);
    g->tensor_of = oi_arena_alloc(a, (op->n_attrs + 1) * sizeof *g->tensor_of);
    return node;
}

static uint32_t add_operand(oi_unit *u, const oi_operand *o, oi_space space, const char *name)
{
    oi_tensor t = {.name = name,
                   .label = name,
                   .dtype = o->dtype,
                   .rank = o->rank,
                   .space = space,
                   .is_written = space == OI_SPACE_OUTPUT};
    memcpy(t.dims, o->dims, o->rank * sizeof *t.dims);
    return oi_unit_add_tensor(u, &t);
}

static const char *input_name(const oi_op *op, size_t i)
{
    const oi_op_input *in = oi_op_input_at(op, i);
    return in ? in->name : op->name;
}

static const char *output_name(const oi_op *op, size_t i)
{
    const oi_op_output *out = oi_op_output_at(op, i);
    return out ? out->name : op->name;
}

static oi_port *add_operands(oi_unit *u, const oi_kernel_query *q, oi_call_tensors *out)
{
    oi_port *ports = oi_arena_alloc(u->arena, (q->n_in + q->n_out + 1) * sizeof *ports);
    uint32_t *ids = oi_arena_alloc(u->arena, (q->n_in + q->n_out + 1) * sizeof *ids);
    for (size_t i = 0; i < q->n_in; i++)
        ids[i] = add_operand(u, &q->in[i], OI_SPACE_INPUT, input_name(q->op, i));
    for (size_t i = 0; i < q->n_out; i++)
        ids[q->n_in + i] = add_operand(u, &q->out[i], OI_SPACE_OUTPUT, output_name(q->op, i));
    for (size_t i = 0; i < q->n_in + q->n_out; i++)
        ports[i].tensor = ids[i];
    out->in = ids;
    out->out = ids + q->n_in;
    return ports;
}

/* Attributes that only the run knows are numbers that kernels are handed, and tensors for the body
 * of a composite. */
static void add_numbers(oi_unit *u, const oi_kernel_query *q, oi_lowered *call,
                        oi_call_tensors *out)
{
    const oi_op *op = q->op;
    oi_arena *a = u->arena;
    uint32_t *ids = u->graphs.at[0].tensor_of;
    uint32_t *scalars = oi_arena_alloc(a, (op->n_attrs + 1) * sizeof *scalars);
    oi_kscalar *numbers = oi_arena_alloc(a, (op->n_attrs + 1) * sizeof *numbers);
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        ids[i] = scalars[i] = OI_NO_ID;
        if (!q->run_attrs || q->run_attrs[i].dtype == OI_NONE)
            continue;
        ids[i] = add_operand(u, &q->run_attrs[i], OI_SPACE_INPUT, op->attrs[i].name);
        u->tensors.at[ids[i]].by_value = true;
        scalars[i] = call->n_numbers;
        numbers[call->n_numbers++] = (oi_kscalar){
            .name = op->attrs[i].name, .dtype = OI_I64, .value = {.kind = OI_PV_VAR, .id = i}};
    }
    call->scalars = scalars;
    call->numbers = numbers;
    out->attrs = ids;
}

oi_status oi_unit_add_call(oi_unit *u, const oi_kernel_query *q, oi_call_tensors *out)
{
    const oi_pnode *node = add_graph(u, q->op);
    oi_kernel_query *own = oi_arena_alloc(u->arena, sizeof *own);
    *own = *q;
    own->overlaps = own->tangles = 0; /* results have memory of their own */
    oi_lowered call = {.q = own};
    oi_port *ports = add_operands(u, own, out);
    call.in = ports;
    call.to = ports + own->n_in;
    add_numbers(u, own, &call, out);
    oi_stmts *stmts = &u->graphs.at[0].blocks[0].stmts;
    oi_lower_call(u, 0, node, &call, stmts);
    for (uint32_t k = 0; k < u->kernels.n; k++) {
        u->kernels.at[k].is_used = true;
        u->kernels.at[k].number = k;
    }
    if (u->status == OI_OK)
        u->status = oi_pass_schedule(u);
    if (u->status != OI_OK)
        return u->status;
    oi_unit_name_kernels(u);
    oi_unit_share_functions(u);
    oi_unit_name_functions(u);
    out->stmts = *stmts;
    return OI_OK;
}
