/* names.c: names kernels by what they compute and what their result is, and their functions, after
 * all passes. */
#include "synth/pass.h"

/* What a node computes; NULL: it only moves. */
static const char *op_of(const oi_pnode *n)
{
    switch (n->kind) {
    case OI_NODE_OP: return n->as.op.op->name;
    case OI_NODE_CACHE_INCREMENT: return "increment";
    case OI_NODE_CACHE_DECREMENT: return "decrement";
    case OI_NODE_CACHE_RESET: return "reset";
    default: return NULL;
    }
}

/* "matmul_add": the first and the last op; a kernel that only moves is a copy. */
static const char *ops_of(oi_unit *u, const oi_skernel *k)
{
    const char *first = NULL, *last = NULL;
    if (k->recipe && k->plan->verb)
        return k->plan->verb;
    for (size_t i = 0; i < k->nodes.n; i++) {
        const char *own = op_of(k->nodes.at[i]);
        last = own ? own : last;
        first = first ? first : own;
    }
    if (!first)
        return "copy";
    return strcmp(first, last) == 0 ? first : oi_arena_printf(u->arena, "%s_%s", first, last);
}

/* The variable that the kernel makes, or works for; what is made ready is called by what it is
 * made of. */
static const char *result_of(const oi_unit *u, const oi_skernel *k)
{
    const oi_pnode *last = k->nodes.at[k->nodes.n - 1];
    for (size_t i = k->ports.n; i-- > 0;) {
        const oi_tensor *t = &u->tensors.at[k->ports.at[i].tensor];
        const oi_pvar *v = t->var ? t->var : t->origin;
        if (k->ports.at[i].is_written != (k->recipe && k->plan->verb) &&
            t->space != OI_SPACE_LOCAL && v)
            return v->name;
    }
    if (last->kind == OI_NODE_CACHE_WRITE || last->kind == OI_NODE_CACHE_RESET)
        return u->graphs.at[k->graph].program->vars[last->as.move.cache.var].name;
    if (last->kind != OI_NODE_OP || last->as.op.n_out == 0)
        return "temporary";
    return u->graphs.at[k->graph].program->vars[last->as.op.out[0].var].name;
}

/* What goes in comes first, then what comes out. */
static void order_ports(oi_unit *u, oi_skernel *k)
{
    size_t n_ports = k->ports.n, n = 0;
    uint32_t *to = oi_arena_alloc(u->arena, (n_ports + 1) * sizeof *to);
    oi_port *ports = oi_arena_alloc(u->arena, (n_ports + 1) * sizeof *ports);
    for (int written = 0; written < 2; written++)
        for (size_t i = 0; i < n_ports; i++)
            if (k->ports.at[i].is_written == (written != 0)) {
                to[i] = (uint32_t)n;
                ports[n++] = k->ports.at[i];
            }
    memcpy(k->ports.at, ports, n_ports * sizeof *ports);
    oi_sops *ops;
    for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++)
        for (size_t i = 0; i < ops->n; i++)
            if (oi_sop_is_access(&ops->at[i]))
                ops->at[i].port = to[ops->at[i].port];
}

/* Workgroups run the nests of a kernel one by one: NAME_0, NAME_1 ... are names, too. */
static size_t n_parts(const oi_unit *u, const oi_skernel *k)
{
    return u->can.group_size && k->nests.n > 1 ? k->nests.n : 0;
}

static const char *part_name(oi_unit *u, const char *name, size_t part)
{
    return oi_arena_printf(u->arena, "%s_%zu", name, part);
}

/* A name whose parts are free, too. */
static const char *own_name(oi_unit *u, const oi_skernel *k, const char *wanted)
{
    for (;;) {
        const char *name = oi_unit_identifier(u, wanted);
        size_t i = 0;
        while (i < n_parts(u, k) && oi_map_get(&u->names, part_name(u, name, i)) == OI_MAP_NONE)
            i++;
        if (i < n_parts(u, k))
            continue;
        for (i = 0; i < n_parts(u, k); i++)
            oi_map_set(&u->names, part_name(u, name, i), 1);
        return name;
    }
}

void oi_unit_name_kernels(oi_unit *u)
{
    for (size_t i = 0; i < u->kernels.n; i++) {
        oi_skernel *k = &u->kernels.at[i];
        if (!k->is_used || k->nodes.n == 0)
            continue;
        if (!k->recipe)
            order_ports(u, k);
        const char *graph =
            u->graphs.n > 1 ? oi_arena_printf(u->arena, "%s_", u->graphs.at[k->graph].name) : "";
        k->name = own_name(
            u, k, oi_arena_printf(u->arena, "%s%s_%s", graph, ops_of(u, k), result_of(u, k)));
    }
}

/* -- functions -- */

/* The name that all kernels with this function have for the port, or what it is to them. */
static const char *parameter_of(const oi_unit *u, const oi_skernel *k, size_t port)
{
    const char *name = oi_port_stem(u->tensors.at, k, port);
    const oi_space space = u->tensors.at[k->ports.at[port].tensor].space;
    for (uint32_t i = k->next_alike; i != OI_NO_ID; i = u->kernels.at[i].next_alike)
        if (strcmp(oi_port_stem(u->tensors.at, &u->kernels.at[i], port), name) != 0)
            return k->ports.at[port].is_written ? "y" : space == OI_SPACE_WEIGHTS ? "weights" : "x";
    return name;
}

/* A function that several kernels share is named by its ops alone. */
static void name_shared(oi_unit *u, oi_skernel *k)
{
    bool is_own = u->graphs.n > 1;
    const char **names = oi_arena_alloc(u->arena, (k->ports.n + 1) * sizeof *names);
    for (size_t i = 0; i < k->ports.n; i++)
        names[i] = parameter_of(u, k, i);
    k->parameters = names;
    for (uint32_t i = k->next_alike; i != OI_NO_ID; i = u->kernels.at[i].next_alike)
        is_own = is_own && u->kernels.at[i].graph == k->graph;
    const char *name = ops_of(u, k);
    if (is_own)
        name = oi_arena_printf(u->arena, "%s_%s", u->graphs.at[k->graph].name, name);
    k->function_name = own_name(u, k, name);
    for (uint32_t i = k->next_alike; i != OI_NO_ID; i = u->kernels.at[i].next_alike)
        u->kernels.at[i].function_name = k->function_name;
}

void oi_unit_name_functions(oi_unit *u)
{
    for (uint32_t i = 0; i < u->kernels.n; i++) {
        oi_skernel *k = &u->kernels.at[i];
        if (k->function == i && k->next_alike == OI_NO_ID)
            k->function_name = k->name;
        else if (k->function == i)
            name_shared(u, k);
    }
}
