/* open.c: calls with run-time lengths: results get temporaries where needed, and lengths are
 * checked first. */
#include "synth/lengths.h"

static bool is_input(const oi_lowered *call, uint32_t tensor)
{
    for (size_t i = 0; i < call->q->n_in; i++)
        if (call->in[i].tensor == tensor)
            return true;
    return false;
}

/* Bodies of text want sizes that are known. Results with open lengths are made apart, unless only
 * the data says how long they are. */
static void lower_open_custom(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_lowered *call,
                              oi_port *to, oi_stmts *out)
{
    size_t scratch, n_out = call->q->n_out;
    for (size_t i = 0; i < call->q->n_in; i++)
        if (u->tensors.at[call->in[i].tensor].run_dims) {
            oi_unit_refuse(u, graph, n, n->source->name.span, "E062",
                           "'%s' of something whose length only the run knows", call->q->op->name);
            return;
        }
    if (oi_kernel_is_measured(call->q->op, &scratch, call->q)) {
        oi_lower_call(u, graph, n, call, out);
        return;
    }
    oi_dyn *d = oi_arena_alloc(u->arena, sizeof *d);
    oi_port *final = oi_arena_alloc(u->arena, (n_out + 1) * sizeof *final);
    *d = (oi_dyn){.u = u, .graph = graph, .n = n, .q = call->q, .in = call->in, .to = call->to};
    if (!oi_dyn_study(d))
        return;
    memcpy(final, to, n_out * sizeof *final);
    for (size_t i = 0; i < n_out; i++) {
        const oi_operand *o = &d->queries[0].out[i];
        oi_tensor t = {.name = oi_arena_printf(u->arena, "%s_result", call->q->op->name),
                       .dtype = o->dtype,
                       .rank = o->rank,
                       .space = OI_SPACE_ARENA,
                       .is_written = true,
                       .graph = graph};
        memcpy(t.dims, o->dims, o->rank * sizeof *o->dims);
        to[i] = (oi_port){.tensor = oi_unit_add_tensor(u, &t)};
    }
    call->q = &d->queries[0];
    oi_lower_call(u, graph, n, call, out);
    for (size_t i = 0; i < n_out && u->status == OI_OK; i++) {
        final[i].is_written = true;
        oi_lower_copy(u, graph, n, to[i], final[i], out);
    }
}

/* A call with lengths that only the run knows. What it also reads is made apart: until it is done,
 * the old lengths are wanted. */
void oi_lower_open(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_lowered *call, oi_port *to,
                   oi_stmts *out)
{
    size_t n_out = call->q->n_out;
    if (call->q->op->cls == OI_OP_CLASS_CUSTOM) {
        lower_open_custom(u, graph, n, call, to, out);
        return;
    }
    oi_port *final = oi_arena_alloc(u->arena, (n_out + 1) * sizeof *final);
    memcpy(final, to, n_out * sizeof *final);
    for (size_t i = 0; i < n_out; i++) {
        if (!is_input(call, to[i].tensor))
            continue;
        oi_tensor t = u->tensors.at[to[i].tensor], own = {.dtype = t.dtype,
                                                          .rank = t.rank,
                                                          .run_dims = t.run_dims,
                                                          .space = OI_SPACE_ARENA,
                                                          .is_written = true,
                                                          .graph = graph};
        own.name = oi_arena_printf(u->arena, "%s_new", t.name);
        memcpy(own.dims, t.dims, sizeof own.dims);
        to[i] = (oi_port){.tensor = oi_unit_add_tensor(u, &own)};
    }
    oi_dyn *d = oi_arena_alloc(u->arena, sizeof *d);
    *d = (oi_dyn){.u = u, .graph = graph, .n = n, .q = call->q, .in = call->in, .to = call->to};
    if (!oi_dyn_study(d))
        return;
    if (d->checks.n)
        *OI_PUSH(u->arena, out) = (oi_stmt){.kind = OI_STMT_SHAPE,
                                            .node = n,
                                            .checks = d->checks.at,
                                            .n_checks = (uint32_t)d->checks.n};
    call->dyn = d;
    if (!oi_lower_counted(u, graph, n, call, out) && oi_dyn_expand(d))
        oi_lower_call(u, graph, n, call, out);
    for (size_t i = 0; i < n_out && u->status == OI_OK; i++)
        if (final[i].tensor != to[i].tensor) {
            final[i].is_written = true;
            oi_lower_copy(u, graph, n, to[i], final[i], out);
        }
}
