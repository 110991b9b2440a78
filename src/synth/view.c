/* view.c: reads persistent memory in place instead of copying.
 * needs:  statements in their final order
 * keeps:  results
 * makes:  statements that only compute a pointer; tensors that are views of persistent memory
 *
 * A kernel that copies a part of a persistent variable becomes a view if the elements are
 * contiguous, only it writes its result, all consumers follow it in the same list, and nothing
 * writes the variable before the last of them. */
#include "synth/compose.h"

#define OF_THE_RUN (-1) /* a length */

typedef struct viewing {
    oi_unit *u;
    uint32_t graph;
    const oi_tally *uses; /* by tensor */
    oi_stmts *list;
    uint32_t from, to; /* the variable, and the copy */
    /* while visiting statements */
    uint32_t found;
    bool changes, is_check; /* the statement only checks */
} viewing;

/* The kernel copies from persistent memory and does nothing else: its load. */
static const oi_sop *copying_load(const viewing *l, const oi_skernel *k)
{
    const oi_snest *n = oi_kernel_open_map(k);
    const oi_sop *load = n ? &n->pre.at[0] : NULL;
    if (!n || n->pre.n != 2 || load->kind != OI_SOP_LOAD || !load->is_raw || load->may_leave ||
        load->guard || load->is_flat || load->fns || n->pre.at[1].is_flat || n->pre.at[1].fns)
        return NULL;
    return l->u->tensors.at[k->ports.at[load->port].tensor].space == OI_SPACE_STATE ? load : NULL;
}

/* The only axis of the coordinate, with step 1; OI_NO_ID: the coordinate is constant. */
static bool single_axis(const oi_nest_coord *c, const oi_snest *n, uint32_t *axis)
{
    *axis = OI_NO_ID;
    for (uint32_t a = 0; a < n->n_axes; a++) {
        if (c->step[a] == 0)
            continue;
        if (c->step[a] != 1 || *axis != OI_NO_ID)
            return false;
        *axis = a;
    }
    return c->index == OI_NEST_NONE && c->bend == OI_BEND_NONE;
}

/* Every axis in order is a dim of the copy; dims of length 1 need none. */
static bool writes_in_order(const viewing *l, const oi_snest *n, const oi_sop *store)
{
    const oi_tensor *t = &l->u->tensors.at[l->to];
    uint32_t next = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        const bool is_open = t->run_dims >> d & 1;
        uint32_t axis;
        if (!single_axis(&store->at[d], n, &axis) || store->at[d].base != 0)
            return false;
        if (axis == OI_NO_ID && t->dims[d] == 1 && !is_open)
            continue;
        if (axis != next++ || (!is_open && n->axes[axis].extent != t->dims[d]))
            return false;
    }
    return next == n->n_axes;
}

/* The elements are contiguous if every axis before the first partial one selects one place. */
static bool is_one_piece(const viewing *l, const oi_skernel *k, const oi_sop *load)
{
    const oi_store_var *v = oi_unit_store(l->u, l->from);
    const oi_snest *n = &k->nests.at[0];
    int64_t count[2 * OI_MAX_RANK];
    uint32_t next = 0, q = v->rank;
    if (!writes_in_order(l, n, &n->pre.at[1]) || oi_dtype_bits(l->u->tensors.at[l->to].dtype) < 8)
        return false;
    for (uint32_t i = 0; i < v->rank; i++) {
        uint32_t axis;
        if (!single_axis(&load->at[i], n, &axis) || (axis != OI_NO_ID && axis < next))
            return false;
        count[i] = 1;
        if (axis == OI_NO_ID)
            continue;
        next = axis + 1;
        count[i] = n->extents && n->extents[axis] ? OF_THE_RUN : n->axes[axis].extent;
    }
    while (q > 0 && count[q - 1] == v->most[q - 1])
        q--;
    for (uint32_t i = 0; i + 1 < q; i++)
        if (count[i] != 1)
            return false;
    return true;
}

static void look(void *ctx, const oi_mention *m)
{
    viewing *l = ctx;
    l->found += m->tensor == l->to && m->port && !m->writes;
    l->changes |= m->tensor == l->from && m->writes && !l->is_check;
}

/* NULL if all consumers of the result come before anything writes the variable. */
static const char *why_not(viewing *l, size_t at)
{
    const oi_tally *own = &l->uses[l->to];
    l->found = 0;
    l->changes = false;
    const uint32_t readers = own->all - own->lengths - 1;
    for (size_t i = at + 1; i < l->list->n && l->found < readers; i++) {
        oi_stmt *s = &l->list->at[i];
        bool calls = s->kind == OI_STMT_BRANCH || s->kind == OI_STMT_YIELD ||
                     s->kind == OI_STMT_AWAIT || oi_stmts_call(&s->body);
        l->is_check = s->kind == OI_STMT_NEED;
        oi_stmt_mentions(l->u, l->graph, s, look, l);
        l->is_check = false;
        oi_stmts_mentions(l->u, l->graph, &s->body, look, l);
        if (calls)
            return "a block is called before its last reader";
        if (l->changes)
            return "the variable changes before its last reader";
    }
    return l->found == readers ? NULL : "it is read elsewhere";
}

/* The part of the variable that the load reads, with its constants. */
static oi_port part_of(viewing *l, const oi_skernel *k, const oi_sop *load)
{
    oi_port part = k->ports.at[load->port];
    const uint32_t rank = l->u->tensors.at[l->from].rank;
    oi_code *entry = oi_arena_alloc(l->u->arena, (rank + 1) * sizeof *entry);
    bool moves = part.n_entry > 0;
    for (uint32_t i = 0; i < rank; i++) {
        const oi_code base = oi_code_int(l->u->arena, load->at[i].base);
        entry[i] =
            part.n_entry ? oi_code_join(l->u->arena, OI_INS_ADD, &part.entry[i], &base) : base;
        moves |= load->at[i].base != 0;
    }
    part.entry = moves ? entry : NULL;
    part.n_entry = moves ? rank : 0;
    return part;
}

static void be_view(viewing *l, oi_stmt *s, oi_skernel *k, const oi_sop *load)
{
    oi_tensor *t = &l->u->tensors.at[l->to];
    s->kind = OI_STMT_VIEW;
    s->a = part_of(l, k, load);
    s->b = k->ports.at[k->nests.at[0].pre.at[1].port];
    s->kernel = k->lengths.n ? s->kernel : OI_NO_ID;
    t->space = OI_SPACE_VIEW;
    t->start = OI_START_NONE;
    t->from = l->from;
}

static void view_list(viewing *l, oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++)
        view_list(l, &list->at[i].body);
    l->list = list;
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *s = &list->at[i];
        oi_skernel *k = s->kind == OI_STMT_KERNEL ? &l->u->kernels.at[s->kernel] : NULL;
        const oi_sop *load = k ? copying_load(l, k) : NULL;
        if (!load)
            continue;
        l->from = k->ports.at[load->port].tensor;
        l->to = k->ports.at[k->nests.at[0].pre.at[1].port].tensor;
        const oi_tensor *t = &l->u->tensors.at[l->to];
        if (t->space != OI_SPACE_ARENA || t->rank == 0 || t->n_table ||
            l->uses[l->to].writes != 1 || l->uses[l->to].all < 2)
            continue;
        const char *no = is_one_piece(l, k, load) ? why_not(l, i) : "it is not contiguous";
        if (no)
            oi_unit_note(l->u, "view", l->graph, s->node, "%s is copied: %s", t->name, no);
        else
            be_view(l, s, k, load);
    }
}

oi_status oi_pass_view(oi_unit *u)
{
    for (uint32_t g = 0; g < u->graphs.n && !u->per_node; g++) {
        viewing l = {.u = u, .graph = g, .uses = oi_graph_tally(u, g)};
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            if (u->graphs.at[g].blocks[b].is_used)
                view_list(&l, &u->graphs.at[g].blocks[b].stmts);
    }
    return OI_OK;
}
