/* ssa.c: gives every value its own tensor. If a list of statements writes a variable several times,
 * each value but the last gets its own tensor, so that later passes see one producer per tensor.
 * The last value gets one, too, unless some list reads a value that another list wrote.
 * needs:  statements as lowered
 * keeps:  order, kernels, the final contents of every tensor that outlives its list
 * makes:  tensors with one writer; shorter lifetimes */
#include "synth/pass.h"

#include <stdlib.h>

typedef struct renaming {
    uint32_t from, to; /* tensors */
} renaming;

/* -- references -- */

/* Visits the mentions of a statement and its body. */
static void each_mention(oi_unit *u, uint32_t graph, oi_stmt *s, oi_mention_fn *fn, void *ctx)
{
    oi_stmt_mentions(u, graph, s, fn, ctx);
    oi_stmts_mentions(u, graph, &s->body, fn, ctx);
}

/* A statement that mentions a tensor, itself or in its body. */
typedef struct sighting {
    uint32_t tensor, at;
    bool writes;
} sighting;

typedef struct sightings {
    oi_unit *u;
    OI_VEC(sighting) all; /* by tensor, then by statement */
    OI_VEC(size_t) calls; /* statements after which other code may read or change a value */
    uint32_t at;
} sightings;

static void note_sighting(void *ctx, const oi_mention *m)
{
    sightings *x = ctx;
    if (m->tensor != OI_NO_ID)
        *OI_PUSH(x->u->arena, &x->all) = (sighting){m->tensor, x->at, m->writes};
}

static int compare_sightings(const void *a, const void *b)
{
    const sighting *x = a, *y = b;
    return x->tensor != y->tensor ? (x->tensor > y->tensor) - (x->tensor < y->tensor)
                                  : (x->at > y->at) - (x->at < y->at);
}

static bool hides_uses(const oi_stmt *s)
{
    return s->kind == OI_STMT_BRANCH || s->kind == OI_STMT_YIELD || s->kind == OI_STMT_AWAIT ||
           s->kind == OI_STMT_CHECK || (s->kind == OI_STMT_LOOP && oi_stmts_call(&s->body));
}

static void find_sightings(uint32_t graph, const oi_stmts *list, sightings *x)
{
    for (size_t i = 0; i < list->n; i++) {
        x->at = (uint32_t)i;
        each_mention(x->u, graph, &list->at[i], note_sighting, x);
        if (hides_uses(&list->at[i]))
            *OI_PUSH(x->u->arena, &x->calls) = i;
    }
    if (x->all.n)
        qsort(x->all.at, x->all.n, sizeof *x->all.at, compare_sightings);
}

/* The first mention of the tensor after the statement. */
static size_t sighting_behind(const sightings *x, uint32_t tensor, size_t at)
{
    size_t low = 0, high = x->all.n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const sighting *s = &x->all.at[middle];
        if (s->tensor < tensor || (s->tensor == tensor && s->at <= at))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_call_between(const sightings *x, size_t first, size_t last)
{
    size_t low = 0, high = x->calls.n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (x->calls.at[middle] <= first)
            low = middle + 1;
        else
            high = middle;
    }
    return low < x->calls.n && x->calls.at[low] < last;
}

/* Whether the kernel reads the previous value. What it reads after it has written everything
 * (scatter with a reduction) is its own value. */
static bool reads_old(const oi_skernel *k, uint32_t tensor)
{
    const oi_sops *ops;
    for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++)
        for (size_t i = 0; i < ops->n; i++)
            if (oi_sop_is_access(&ops->at[i]) && k->ports.at[ops->at[i].port].tensor == tensor)
                return ops->at[i].kind != OI_SOP_STORE;
    return oi_kernel_reads(k, tensor);
}

/* Whether the statement replaces the whole value of the tensor; *reads if it also reads the
 * previous one. */
static bool replaces(oi_unit *u, oi_stmt *s, uint32_t tensor, bool *reads)
{
    *reads = false;
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
    *reads = reads_old(k, tensor);
    return writes;
}

/* Codes, attributes and branches, and lengths, refer to the variable and not to a port. */
static bool is_read_by_name(const oi_tensor *t)
{
    return !t->var || t->rank == 0 || t->run_dims;
}

/* -- values that stay in their list -- */

typedef struct crossing {
    uint32_t *written; /* by tensor: the last list that wrote all of it, counted from 1 */
    uint32_t *values;  /* by tensor: number of writes */
    bool *crosses;     /* by tensor: some list may read a value that another list wrote */
    uint32_t list, n_lists;
} crossing;

static void look_for_crossing(void *ctx, const oi_mention *m)
{
    crossing *x = ctx;
    if (m->tensor == OI_NO_ID)
        return;
    x->values[m->tensor] += m->writes;
    if (m->writes && !m->reads && m->port && m->port->n_entry == 0)
        x->written[m->tensor] = x->list;
    else
        x->crosses[m->tensor] |= x->written[m->tensor] != x->list;
}

/* A call ends a list: the called block may have written anything. */
static void cross_list(oi_unit *u, uint32_t graph, oi_stmts *list, crossing *x)
{
    uint32_t own = ++x->n_lists;
    for (size_t i = 0; i < list->n; i++) {
        x->list = own;
        oi_stmt_mentions(u, graph, &list->at[i], look_for_crossing, x);
        if (list->at[i].kind == OI_STMT_LOOP)
            cross_list(u, graph, &list->at[i].body, x);
        if (oi_stmts_call(&(oi_stmts){.at = &list->at[i], .n = 1}) ||
            list->at[i].kind == OI_STMT_AWAIT)
            own = ++x->n_lists;
    }
}

/* By tensor: its last value keeps the tensor, because lists share it or it is the only one. */
static const bool *find_crossing(oi_unit *u, uint32_t graph)
{
    crossing x = {.written = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *x.written),
                  .values = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *x.values),
                  .crosses = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *x.crosses)};
    for (uint32_t b = 0; b < u->graphs.at[graph].program->n_blocks; b++)
        cross_list(u, graph, &u->graphs.at[graph].blocks[b].stmts, &x);
    for (size_t t = 0; t < u->tensors.n; t++)
        x.crosses[t] |= x.values[t] < 2;
    return x.crosses;
}

/* -- renaming -- */

static void rename_port(void *ctx, const oi_mention *m)
{
    const renaming *r = ctx;
    if (m->port && m->tensor == r->from)
        m->port->tensor = r->to;
}

/* Renames the operands of the call that a kernel implements. */
static void rename_operands(oi_skernel *k, bool written, uint32_t from, uint32_t to)
{
    const size_t n = !k->query ? 0 : written ? k->query->n_out : k->query->n_in;
    uint32_t *operands = written ? k->out_tensors : k->in_tensors;
    for (size_t i = 0; i < n; i++)
        if (operands[i] == from)
            operands[i] = to;
}

static void rename_reads(oi_unit *u, oi_stmt *s, const renaming *r)
{
    if (s->kind == OI_STMT_KERNEL)
        rename_operands(&u->kernels.at[s->kernel], false, r->from, r->to);
    for (size_t i = 0; i < s->body.n; i++)
        rename_reads(u, &s->body.at[i], r);
}

/* A kernel that updates a tensor in place gets a port for the old value and one for the new: its
 * loads go to `reads`, its stores to `writes`. */
static void split_ports(oi_unit *u, oi_skernel *k, uint32_t tensor, uint32_t reads, uint32_t writes)
{
    rename_operands(k, false, tensor, reads);
    rename_operands(k, true, tensor, writes);
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

/* Without reads, only the writing port changes. */
static void move_writes(oi_skernel *k, uint32_t tensor, uint32_t to)
{
    rename_operands(k, true, tensor, to);
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

/* A value: statement `first` writes it, those up to `last` read it. `last` may also replace it. */
typedef struct value {
    uint32_t tensor;
    size_t first, last;
    size_t from, to; /* mentions after the first, before the last */
    bool last_reads, is_plain;
} value;

static void rename_value(oi_unit *u, uint32_t graph, oi_stmts *list, const sightings *x,
                         const value *v)
{
    renaming r = {v->tensor, fresh_tensor(u, graph, v->tensor)};
    oi_skernel *k = &u->kernels.at[list->at[v->first].kernel];
    if (reads_old(k, v->tensor)) /* it reads the previous value */
        split_ports(u, k, v->tensor, v->tensor, r.to);
    else
        move_writes(k, v->tensor, r.to);
    for (size_t i = v->from; i < v->to; i++) {
        if (i > v->from && x->all.at[i].at == x->all.at[i - 1].at)
            continue;
        oi_stmt *s = &list->at[x->all.at[i].at];
        each_mention(u, graph, s, rename_port, &r);
        rename_reads(u, s, &r);
    }
    if (v->last_reads)
        split_ports(u, &u->kernels.at[list->at[v->last].kernel], v->tensor, r.to, v->tensor);
}

/* The end of the value that the statement writes, and whether branches, yields or writes inside
 * bodies may hide a use before it. */
static value value_of(oi_unit *u, const oi_stmts *list, const sightings *x, size_t at,
                      uint32_t tensor)
{
    value v = {.tensor = tensor, .first = at, .last = list->n, .is_plain = true};
    v.from = v.to = sighting_behind(x, tensor, at);
    for (; v.to < x->all.n && x->all.at[v.to].tensor == tensor; v.to++) {
        const sighting *s = &x->all.at[v.to];
        if (replaces(u, &list->at[s->at], tensor, &v.last_reads)) {
            v.last = s->at;
            break;
        }
        v.is_plain &= !s->writes;
    }
    v.last_reads &= v.last < list->n;
    v.is_plain &= !has_call_between(x, at, v.last);
    return v;
}

/* crosses: by tensor that the graph had at the start. */
static void rename_in(oi_unit *u, uint32_t graph, oi_stmts *list, const bool *crosses)
{
    sightings x = {.u = u};
    find_sightings(graph, list, &x);
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *w = &list->at[i];
        if (w->kind == OI_STMT_LOOP)
            rename_in(u, graph, &w->body, crosses);
        if (w->kind != OI_STMT_KERNEL)
            continue;
        for (size_t p = 0; p < u->kernels.at[w->kernel].ports.n; p++) {
            uint32_t t = u->kernels.at[w->kernel].ports.at[p].tensor;
            bool reads;
            const oi_tensor *tensor = &u->tensors.at[t];
            if ((tensor->space != OI_SPACE_ARENA && tensor->space != OI_SPACE_OUTPUT) ||
                is_read_by_name(tensor) || !replaces(u, w, t, &reads))
                continue;
            const value v = value_of(u, list, &x, i, t);
            if (v.is_plain &&
                (v.last < list->n || (tensor->space == OI_SPACE_ARENA && !crosses[t])))
                rename_value(u, graph, list, &x, &v);
        }
    }
}

oi_status oi_pass_ssa(oi_unit *u)
{
    for (uint32_t g = 0; g < u->graphs.n && !u->per_node; g++) {
        const bool *crosses = find_crossing(u, g);
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            if (u->graphs.at[g].blocks[b].is_used)
                rename_in(u, g, &u->graphs.at[g].blocks[b].stmts, crosses);
    }
    return OI_OK;
}
