/* expand.c: a composite op becomes the calls of its body (src/program/composite.h), over tensors
 * made for the values between them. */
#include "synth/lengths.h"

typedef struct expanding {
    oi_unit *u;
    uint32_t graph;
    const oi_pnode *n;
    const oi_lowered *call;
    const oi_expansion *e;
    oi_port *ports; /* by value */
    oi_stmts *out;
} expanding;

/* What a value of the body is called: by what the call makes, and by its name in the body. */
static const char *name_of(const expanding *x, uint32_t id)
{
    const oi_tensor *made = &x->u->tensors.at[x->call->to[0].tensor];
    const oi_pvar *var = made->var ? made->var : made->origin;
    const char *own = x->e->values[id].name;
    return oi_arena_printf(x->u->arena, "%s_%s", var ? var->name : made->name,
                           own ? own : x->call->q->op->name);
}

static uint32_t add_value(expanding *x, uint32_t id, oi_space space)
{
    const oi_exp_value *v = &x->e->values[id];
    const char *name = name_of(x, id);
    oi_tensor t = {.name = name,
                   .label = name,
                   .dtype = v->type.dtype,
                   .rank = v->type.rank,
                   .space = space,
                   .graph = x->graph,
                   .bytes = v->bytes,
                   .is_written = space == OI_SPACE_ARENA};
    memcpy(t.dims, v->type.dims, sizeof t.dims);
    if (x->call->dyn && space == OI_SPACE_ARENA)
        t.run_dims = oi_dyn_value(x->call->dyn, id, t.dims);
    return oi_unit_add_tensor(x->u, &t);
}

/* An attribute that only the run knows, as a tensor. */
static oi_port attr_port(expanding *x, uint32_t id)
{
    const oi_exp_value *v = &x->e->values[id];
    const oi_kscalar *s = &x->call->numbers[x->call->scalars[v->index]];
    const oi_sgraph *g = &x->u->graphs.at[x->graph];
    if (s->value.kind == OI_PV_VAR) {
        oi_port p = {.tensor = g->tensor_of[s->value.id]};
        if (x->u->tensors.at[p.tensor].dtype == v->type.dtype &&
            x->u->tensors.at[p.tensor].space != OI_SPACE_STATE)
            return p;
    }
    oi_port p = {.tensor = add_value(x, id, OI_SPACE_ARENA), .is_written = true};
    *OI_PUSH(x->u->arena, x->out) =
        (oi_stmt){.kind = OI_STMT_SET, .node = x->n, .a = p, .value = s->value};
    p.is_written = false;
    return p;
}

static bool overlaps(const expanding *x, uint32_t output)
{
    for (size_t i = 0; i < x->call->q->n_in; i++)
        if (x->call->in[i].tensor == x->call->to[output].tensor)
            return true;
    return false;
}

static void make_ports(expanding *x)
{
    for (uint32_t i = 0; i < x->e->n_values; i++) {
        const oi_exp_value *v = &x->e->values[i];
        switch (v->kind) {
        case OI_VALUE_OF_INPUT: x->ports[i] = x->call->in[v->index]; break;
        case OI_VALUE_OF_OUTPUT:
            x->ports[i] = x->call->to[v->index];
            if (overlaps(x, v->index))
                x->ports[i] = (oi_port){.tensor = add_value(x, i, OI_SPACE_ARENA)};
            break;
        case OI_VALUE_OF_TEMP:
            x->ports[i] = (oi_port){.tensor = add_value(x, i, OI_SPACE_ARENA)};
            break;
        case OI_VALUE_OF_CONST:
            x->ports[i] = (oi_port){.tensor = add_value(x, i, OI_SPACE_WEIGHTS)};
            break;
        case OI_VALUE_OF_ATTR: x->ports[i] = attr_port(x, i); break;
        }
    }
}

static void put_checks(expanding *x)
{
    for (uint32_t i = 0; i < x->e->n_checks; i++) {
        const oi_exp_check *c = &x->e->checks[i];
        *OI_PUSH(x->u->arena, x->out) = (oi_stmt){
            .kind = OI_STMT_LIMIT, .node = x->n, .a = x->ports[c->value], .limit = c->limit};
    }
}

static void put_call(expanding *x, uint32_t leaf)
{
    const oi_exp_call *c = &x->e->calls[leaf];
    oi_arena *a = x->u->arena;
    oi_operand *ops = oi_arena_alloc(a, (c->n_in + c->n_out + 1) * sizeof *ops);
    oi_port *in = oi_arena_alloc(a, (c->n_in + c->n_out + 1) * sizeof *in);
    uint32_t *scalars = oi_arena_alloc(a, (c->op->n_attrs + 1) * sizeof *scalars);
    for (uint32_t i = 0; i < c->n_in + c->n_out; i++) {
        in[i] = x->ports[i < c->n_in ? c->in[i] : c->out[i - c->n_in]];
        oi_lower_operand(x->u, &in[i], &ops[i]);
    }
    for (uint32_t i = 0; i < c->op->n_attrs; i++)
        scalars[i] = OI_NO_ID;
    oi_kernel_query *q = oi_arena_alloc(a, sizeof *q);
    *q = (oi_kernel_query){.op = c->op,
                           .in = ops,
                           .n_in = c->n_in,
                           .out = ops + c->n_in,
                           .n_out = c->n_out,
                           .attrs = c->attrs};
    oi_lowered call = {.q = q,
                       .scalars = scalars,
                       .in = in,
                       .to = in + c->n_in,
                       .dyn = x->call->dyn,
                       .leaf = leaf};
    oi_lower_call(x->u, x->graph, x->n, &call, x->out);
}

bool oi_lower_checks(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_lowered *call,
                     oi_stmts *out)
{
    expanding x = {.u = u, .graph = graph, .n = n, .call = call, .out = out};
    oi_infer_fail fail;
    if (call->q->op->cls != OI_OP_CLASS_COMPOSITE)
        return true;
    if (!oi_composite_expand(u->arena, call->q, &x.e, &fail))
        return false;
    for (uint32_t i = 0; i < x.e->n_checks; i++) {
        const oi_exp_check *c = &x.e->checks[i];
        const oi_exp_value *v = &x.e->values[c->value];
        if (v->kind != OI_VALUE_OF_INPUT && v->kind != OI_VALUE_OF_ATTR)
            return false;
        oi_stmt limit = {.kind = OI_STMT_LIMIT, .node = n, .limit = c->limit};
        if (v->kind == OI_VALUE_OF_INPUT) {
            limit.a = call->in[v->index];
        } else if (v->type.rank == 0) { /* a number: nothing needs to hold it */
            limit.a.tensor = OI_NO_ID;
            limit.value = call->numbers[call->scalars[v->index]].value;
        } else {
            limit.a = attr_port(&x, c->value);
        }
        *OI_PUSH(u->arena, out) = limit;
    }
    return true;
}

void oi_lower_composite(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_lowered *call,
                        oi_stmts *out)
{
    expanding x = {.u = u, .graph = graph, .n = n, .call = call, .out = out};
    oi_infer_fail fail;
    if (call->dyn) {
        x.e = call->dyn->expansions[0];
    } else if (!oi_composite_expand(u->arena, call->q, &x.e, &fail)) {
        oi_unit_refuse(u, graph, n, n->source->name.span, fail.code, "%s: %s", call->q->op->name,
                       fail.message);
        return;
    }
    x.ports = oi_arena_alloc(u->arena, (x.e->n_values + 1) * sizeof *x.ports);
    make_ports(&x);
    put_checks(&x);
    for (uint32_t i = 0; i < x.e->n_calls && u->status == OI_OK; i++)
        put_call(&x, i);
    for (uint32_t i = 0; i < x.e->n_values && u->status == OI_OK; i++) {
        const oi_exp_value *v = &x.e->values[i];
        if (v->kind == OI_VALUE_OF_OUTPUT && overlaps(&x, v->index)) {
            oi_port to = call->to[v->index];
            to.is_written = true;
            oi_lower_copy(u, graph, n, x.ports[i], to, out);
        }
    }
}
