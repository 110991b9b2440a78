/* rename.c: one tensor per value. A variable that a list of statements writes several times gets a
 * tensor of its own for every value but the last, so that later passes see producers and readers.
 * needs:  statements as lowered
 * keeps:  order, kernels, what every tensor that outlives its list holds at the end
 * makes:  tensors with one writer; values that live shorter */
#include "synth/pass.h"

typedef struct renaming {
    uint32_t from, to; /* tensors */
} renaming;

/* -- references -- */

/* Of a statement and of those inside it. */
static void each_mention(oi_unit *u, uint32_t graph, oi_stmt *s, oi_mention_fn *fn, void *ctx)
{
    oi_stmt_mentions(u, graph, s, fn, ctx);
    oi_stmts_mentions(u, graph, &s->body, fn, ctx);
}

typedef struct looking {
    uint32_t tensor;
    bool writes;
} looking;

static void look_for_writes(void *ctx, const oi_mention *m)
{
    looking *x = ctx;
    x->writes |= m->writes && m->tensor == x->tensor;
}

/* Whether the statement gives the tensor a whole new value; *reads when it also looks at the old.
 */
static bool replaces(oi_unit *u, oi_stmt *s, uint32_t tensor, bool *reads)
{
    *reads = false;
    if (s->kind == OI_STMT_CACHE)
        return s->node->kind == OI_NODE_CACHE_READ && s->b.tensor == tensor && s->b.n_entry == 0;
    if (s->kind == OI_STMT_SET)
        return s->a.tensor == tensor && s->a.n_entry == 0;
    if (s->kind != OI_STMT_KERNEL)
        return false;
    const oi_skernel *k = &u->kernels.at[s->kernel];
    bool writes = false;
    for (size_t i = 0; i < k->ports.n; i++) {
        if (k->ports.at[i].tensor != tensor)
            continue;
        writes |= k->ports.at[i].is_written && k->ports.at[i].n_entry == 0;
    }
    *reads = oi_kernel_reads(k, tensor);
    return writes;
}

/* Values that codes, attributes and branches read go by the variable, not by ports; so do lengths.
 */
static bool is_read_by_name(const oi_tensor *t)
{
    return !t->var || t->rank == 0 || t->run_dims;
}

/* -- renaming -- */

static void rename_port(void *ctx, const oi_mention *m)
{
    const renaming *r = ctx;
    if (m->port && m->tensor == r->from)
        m->port->tensor = r->to;
}

/* A kernel that reads the old value and writes the new one in place gets a port for each: its loads
 * then go to `reads`, its stores to `writes`. */
static void split_ports(oi_unit *u, oi_skernel *k, uint32_t tensor, uint32_t reads, uint32_t writes)
{
    for (size_t i = 0, n = k->ports.n; i < n; i++) {
        if (k->ports.at[i].tensor != tensor)
            continue;
        if (!k->ports.at[i].is_written) {
            k->ports.at[i].tensor = reads;
            continue;
        }
        oi_port old = k->ports.at[i];
        uint32_t fresh = (uint32_t)k->ports.n;
        old.is_written = false;
        old.tensor = reads;
        *OI_PUSH(u->arena, &k->ports) = old;
        k->ports.at[i].tensor = writes;
        oi_sops *ops;
        for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++)
            for (size_t s = 0; s < ops->n; s++)
                if (oi_sop_is_access(&ops->at[s]) && ops->at[s].kind != OI_SOP_STORE &&
                    ops->at[s].port == i)
                    ops->at[s].port = fresh;
    }
}

/* Without reads there is only the writing port. */
static void move_writes(oi_skernel *k, uint32_t tensor, uint32_t to)
{
    for (size_t i = 0; i < k->ports.n; i++)
        if (k->ports.at[i].tensor == tensor && k->ports.at[i].is_written)
            k->ports.at[i].tensor = to;
}

static uint32_t fresh_tensor(oi_unit *u, uint32_t graph, uint32_t of)
{
    oi_tensor t = u->tensors.at[of];
    t.space = OI_SPACE_ARENA;
    t.start = OI_START_NONE;
    t.graph = graph;
    t.origin = t.origin ? t.origin : t.var;
    t.var = NULL;
    return oi_unit_add_tensor(u, &t);
}

/* Statements first ... last read the value that `first` made; `last` replaces it. */
static void rename_value(oi_unit *u, uint32_t graph, oi_stmts *list, size_t first, size_t last,
                         uint32_t tensor, bool last_reads)
{
    renaming r = {tensor, fresh_tensor(u, graph, tensor)};
    oi_stmt *w = &list->at[first];
    if (w->kind == OI_STMT_KERNEL) { /* what it reads is an earlier value */
        oi_skernel *k = &u->kernels.at[w->kernel];
        if (oi_kernel_reads(k, tensor))
            split_ports(u, k, tensor, tensor, r.to);
        else
            move_writes(k, tensor, r.to);
    } else {
        each_mention(u, graph, w, rename_port, &r);
    }
    for (size_t i = first + 1; i < last; i++)
        each_mention(u, graph, &list->at[i], rename_port, &r);
    if (last_reads)
        split_ports(u, &u->kernels.at[list->at[last].kernel], tensor, r.to, tensor);
}

/* Whether nothing between the two hides a use: branches, yields, inner writes. */
static bool is_plain_between(oi_unit *u, uint32_t graph, oi_stmts *list, size_t first, size_t last,
                             uint32_t tensor)
{
    for (size_t i = first + 1; i < last; i++) {
        oi_stmt *s = &list->at[i];
        looking x = {.tensor = tensor};
        each_mention(u, graph, s, look_for_writes, &x);
        if (s->kind == OI_STMT_BRANCH || s->kind == OI_STMT_YIELD || s->kind == OI_STMT_AWAIT ||
            s->kind == OI_STMT_CHECK || x.writes ||
            (s->kind == OI_STMT_LOOP && oi_stmts_call(&s->body)))
            return false;
    }
    return true;
}

static void rename_in(oi_unit *u, uint32_t graph, oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *w = &list->at[i];
        if (w->kind == OI_STMT_LOOP)
            rename_in(u, graph, &w->body);
        if (w->kind != OI_STMT_KERNEL && w->kind != OI_STMT_CACHE)
            continue;
        size_t n_ports = w->kind == OI_STMT_KERNEL ? u->kernels.at[w->kernel].ports.n : 1;
        for (size_t p = 0; p < n_ports; p++) {
            uint32_t t = w->kind == OI_STMT_KERNEL ? u->kernels.at[w->kernel].ports.at[p].tensor
                                                   : w->b.tensor;
            bool reads, last_reads = false;
            const oi_tensor *tensor = &u->tensors.at[t];
            bool fits = (tensor->space == OI_SPACE_ARENA || tensor->space == OI_SPACE_OUTPUT) &&
                        !is_read_by_name(tensor) && replaces(u, w, t, &reads);
            size_t j = i + 1;
            while (fits && j < list->n && !replaces(u, &list->at[j], t, &last_reads))
                j++;
            if (fits && j < list->n && is_plain_between(u, graph, list, i, j, t))
                rename_value(u, graph, list, i, j, t, last_reads);
        }
    }
}

oi_status oi_pass_rename(oi_unit *u)
{
    for (uint32_t g = 0; g < u->graphs.n && !u->per_node; g++)
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            if (u->graphs.at[g].blocks[b].is_used)
                rename_in(u, g, &u->graphs.at[g].blocks[b].stmts);
    return OI_OK;
}
