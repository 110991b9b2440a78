/* plan.c: reads a plan. */
#include "plan/plan.h"

uint64_t oi_tensor_bytes(const oi_tensor *t)
{
    return t->n_table ? t->n_entries * t->stride_bytes : t->size_bytes;
}

uint64_t oi_plan_aligned(const oi_plan *p, uint64_t n)
{
    return (n + p->align - 1) / p->align * p->align;
}

uint32_t oi_graph_tensor(const oi_sgraph *g, uint32_t block, uint32_t var)
{
    const uint32_t *own = g->blocks[block].tensor_of;
    return own ? own[var] : g->tensor_of[var];
}

const oi_store_var *oi_plan_store(const oi_plan *p, uint32_t tensor)
{
    const uint32_t store = p->tensors.at[tensor].store;
    return store ? &p->stores.at[store - 1] : NULL;
}

oi_status oi_plan_refuse(const oi_plan *p, uint32_t graph, const oi_pnode *n, oi_span at,
                         const char *code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = oi_arena_vprintf(p->arena, fmt, args);
    va_end(args);
    const oi_graph *g = p->graphs.at[graph].program->graph;
    oi_place place = {.file = g->origin ? g->origin : "graph"};
    if (n)
        place = oi_graph_place_node(g, p->arena, n->source, at.line ? at : n->source->span);
    else if (g->source.name)
        place = (oi_place){.source = &g->source, .span = at};
    return oi_diag_error(p->diag, place, code, "%s", text);
}

oi_sops *oi_kernel_sops(const oi_skernel *k, size_t i)
{
    if (i >= 2 * k->nests.n)
        return i == 2 * k->nests.n && k->epilogue ? &k->epilogue->post : NULL;
    return i % 2 ? &k->nests.at[i / 2].post : &k->nests.at[i / 2].pre;
}

bool oi_stmts_call(const oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].kind == OI_STMT_BRANCH || list->at[i].kind == OI_STMT_YIELD ||
            oi_stmts_call(&list->at[i].body))
            return true;
    return false;
}

bool oi_kernel_reads(const oi_skernel *k, uint32_t tensor)
{
    const oi_sops *ops;
    for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++)
        for (size_t i = 0; i < ops->n; i++)
            if (oi_sop_is_access(&ops->at[i]) && ops->at[i].kind != OI_SOP_STORE &&
                k->ports.at[ops->at[i].port].tensor == tensor)
                return true;
    for (uint32_t i = 0; k->recipe && i < k->plan->n_args; i++) { /* an input that it overwrites */
        const oi_port *p = k->arg_ports[i] == OI_NO_ID ? NULL : &k->ports.at[k->arg_ports[i]];
        if (p && k->plan->args[i].kind == OI_ARG_IN && p->is_written && p->tensor == tensor)
            return true;
    }
    return false;
}

const char *oi_port_stem(const oi_tensor *tensors, const oi_skernel *k, size_t port)
{
    const oi_tensor *t = &tensors[k->ports.at[port].tensor];
    const oi_pvar *var = t->var ? t->var : t->origin;
    if (k->parameters)
        return k->parameters[port];
    return var ? var->name : t->label ? t->label : t->name;
}
