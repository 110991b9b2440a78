/* pair.c: finds kernels whose result has one consumer, and joins the two. */
#include "synth/pair.h"

bool oi_pair_is_on(const oi_pair *x, const oi_skernel *k, const oi_sop *op)
{
    return oi_sop_is_access(op) && k->ports.at[op->port].tensor == x->tensor;
}

bool oi_pair_map_axes(const oi_pair *x, const oi_snest *n, const oi_sop *store, const oi_sop *load,
                      oi_axis_map *out)
{
    const oi_snest *last = &x->r->nests.at[0];
    oi_radix radix;
    oi_split want;
    if (!oi_sop_is_affine(x->u, x->p, store) || !oi_sop_is_affine(x->u, x->r, load) ||
        load->kind != OI_SOP_LOAD)
        return false;
    oi_nest_coord read = oi_sop_number(x->u, x->r, load), wrote = oi_sop_number(x->u, x->p, store);
    oi_axis_map_begin(out);
    return oi_radix_of_axes(last, &read, oi_tensor_count(&x->u->tensors.at[x->tensor]), &radix) &&
           oi_radix_digits(n, &wrote, &radix, out->of, &want);
}

bool oi_pair_keeps_order(const oi_pair *x, const oi_sop *load, const oi_sop *store)
{
    const oi_snest *n = &x->r->nests.at[0];
    const oi_port *target = &x->r->ports.at[store->port];
    const oi_tensor *t = &x->u->tensors.at[x->tensor], *u = &x->u->tensors.at[target->tensor];
    oi_radix all;
    if (!oi_sop_is_affine(x->u, x->r, load) || !oi_sop_is_affine(x->u, x->r, store) ||
        target->n_entry || t->size_bytes != u->size_bytes)
        return false;
    const oi_nest_coord read = oi_sop_number(x->u, x->r, load);
    const oi_nest_coord wrote = oi_sop_number(x->u, x->r, store);
    return memcmp(&read, &wrote, sizeof read) == 0 &&
           oi_radix_of_axes(n, &read, oi_tensor_count(t), &all);
}

/* Only the two kernels use it: a temporary, or a variable of the graph that no code, attribute,
 * branch or host reads. */
static bool is_private(const oi_pair *x, uint32_t tensor)
{
    const oi_tensor *t = &x->u->tensors.at[tensor];
    return t->space == OI_SPACE_ARENA && x->uses[tensor].all == 2 && (t->rank > 0 || !t->var);
}

/* A kernel that also writes what it still reads elsewhere would overwrite it too early. */
static bool overwrites(const oi_skernel *p, const oi_skernel *r)
{
    for (size_t i = 0; i < r->ports.n; i++)
        if (r->ports.at[i].is_written && !r->ports.at[i].is_dropped &&
            oi_kernel_reads(p, r->ports.at[i].tensor))
            return true;
    return false;
}

static bool writes(const oi_pair *x, const oi_stmt *s, uint32_t tensor)
{
    const oi_skernel *k = s->kind == OI_STMT_KERNEL ? &x->u->kernels.at[s->kernel] : NULL;
    for (size_t i = 0; k && i < k->ports.n; i++)
        if (!k->ports.at[i].is_dropped && k->ports.at[i].tensor == tensor &&
            k->ports.at[i].is_written)
            return true;
    return false;
}

static size_t producer_of(const oi_pair *x, size_t reader, uint32_t tensor)
{
    for (size_t i = reader; (i = oi_where_last(x->where, tensor, i, true)) != OI_NOWHERE;)
        if (writes(x, &x->list->at[i], tensor))
            return i;
    return OI_NOWHERE;
}

static const char *join_pair(oi_pair *x, size_t from, size_t at, bool *stays, oi_pair_fn *join)
{
    oi_unit *u = x->u;
    uint64_t most = u->target->preferences.max_kernel_ops;
    *stays = oi_where_may_pass(x->where, at, from + 1, at, false);
    if (x->p->is_dynamic || x->r->is_dynamic)
        return "a length that only the run knows";
    if (!*stays && !oi_where_may_pass(x->where, from, from + 1, at, false))
        return "something between them is in the way";
    if (most && x->p->nodes.n + x->r->nodes.n > most)
        return oi_arena_printf(u->arena, "max_kernel_ops is %llu", (unsigned long long)most);
    if (overwrites(x->p, x->r))
        return "the second overwrites what the first reads";
    return join(x);
}

/* Joins the consumer at `at` with the producer of the tensor: at P's place if R can move there,
 * else at R's. Returns that place; SIZE_MAX: not joined. */
static size_t try_pair(oi_pair *x, size_t at, uint32_t tensor, const char *pass, oi_pair_fn *join)
{
    oi_unit *u = x->u;
    bool stays;
    if (!is_private(x, tensor))
        return SIZE_MAX;
    size_t from = producer_of(x, at, tensor);
    if (from == OI_NOWHERE ||
        oi_kernel_reads(&u->kernels.at[x->list->at[from].kernel], tensor)) /* changed in place */
        return SIZE_MAX;
    x->p = &u->kernels.at[x->list->at[from].kernel];
    x->r = &u->kernels.at[x->list->at[at].kernel];
    x->tensor = tensor;
    const char *no = join_pair(x, from, at, &stays, join);
    if (no && *no)
        oi_unit_note(u, pass, x->graph, x->list->at[at].node, "%s and %s: %s", x->p->name,
                     x->r->name, no);
    if (no)
        return SIZE_MAX;
    oi_kernel_drop_port(x->p, tensor);
    oi_kernel_take_nodes(u, x->p, x->r, false);
    x->p->query = NULL;
    x->list->at[at].kernel = x->list->at[from].kernel;
    oi_where_drop(x->where, stays ? at : from);
    oi_where_add(x->where, stays ? from : at);
    return stays ? from : at;
}

/* The kernel of statement i with the one that made something it reads. */
static size_t try_reader(oi_pair *x, size_t i, const char *pass, oi_pair_fn *join)
{
    const oi_skernel *k = &x->u->kernels.at[x->list->at[i].kernel];
    for (size_t p = 0; p < k->ports.n; p++) {
        size_t at = SIZE_MAX;
        if (!k->ports.at[p].is_written && !k->ports.at[p].is_dropped)
            at = try_pair(x, i, k->ports.at[p].tensor, pass, join);
        if (at != SIZE_MAX)
            return at;
    }
    return SIZE_MAX;
}

static void join_list(oi_pair *x, oi_stmts *list, const char *pass, oi_pair_fn *join)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].kind == OI_STMT_LOOP)
            join_list(x, &list->at[i].body, pass, join);
    x->list = list;
    oi_where_begin(x->where, list);
    for (size_t i = 0; i < list->n; i++)
        for (size_t at = i; at != SIZE_MAX && list->at[at].kind == OI_STMT_KERNEL;)
            at = try_reader(x, at, pass, join);
    oi_where_end(x->where);
}

oi_status oi_pairs_join(oi_unit *u, const char *pass, oi_pair_fn *join)
{
    if (u->per_node || !u->target->preferences.prefer_fusion)
        return OI_OK;
    for (uint32_t g = 0; g < u->graphs.n; g++) {
        oi_where where = {.u = u, .graph = g};
        oi_pair x = {.u = u, .graph = g, .where = &where, .uses = oi_graph_tally(u, g)};
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            if (u->graphs.at[g].blocks[b].is_used)
                join_list(&x, &u->graphs.at[g].blocks[b].stmts, pass, join);
    }
    oi_units_tidy_ports(u);
    return OI_OK;
}
