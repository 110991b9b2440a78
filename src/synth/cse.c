/* cse.c: common subexpression elimination.
 * needs:  one tensor per value (ssa.c); kernels as lowered, with their calls
 * keeps:  results, order
 * makes:  fewer kernels; values with more readers
 *
 * Two calls in a list are equal if their op, attributes and operands are, and nothing between them
 * changes what they read. Two tuned bodies are equal if their arguments are. Recipes create such
 * pairs: every qlinear over one input quantises it. */
#include "synth/compose.h"
#include "synth/where.h"

typedef struct sharing {
    oi_unit *u;
    uint32_t graph;
    oi_stmts *list;
    oi_where *where;     /* of the list */
    oi_tally *uses;      /* by tensor */
    bool *is_read_below; /* by tensor: is_read_below is known */
    bool only_bodies;    /* only recipes are compared */
    uint64_t *marks;     /* by statement: a hash, the same for equal calls; 0: no call */
} sharing;

/* -- equal calls -- */

/* Constants of recipes are made again for every call. */
static bool same_contents(const oi_tensor *a, const oi_tensor *b)
{
    return a->space == OI_SPACE_WEIGHTS && b->space == OI_SPACE_WEIGHTS && a->bytes && b->bytes &&
           !a->n_table && !b->n_table && oi_tensor_same_type(a, b) &&
           memcmp(a->bytes, b->bytes, a->size_bytes) == 0;
}

#define MOST OI_PROLOGUE_ARRAYS /* results of a merged call */

/* What one call writes, and what the other would write instead. */
typedef struct results {
    uint32_t n, keep[MOST], gone[MOST];
} results;

/* Compares operand by operand. */
static bool same_ports(const oi_unit *u, const oi_skernel *a, const oi_skernel *b, results *out)
{
    out->n = 0;
    if (a->ports.n != b->ports.n)
        return false;
    for (size_t i = 0; i < a->ports.n; i++) {
        const oi_port *p = &a->ports.at[i], *q = &b->ports.at[i];
        if (p->is_written != q->is_written)
            return false;
        if (p->is_written) {
            if (p->n_entry || q->n_entry || p->tensor == q->tensor || out->n == MOST ||
                !oi_tensor_same_type(&u->tensors.at[p->tensor], &u->tensors.at[q->tensor]))
                return false;
            out->keep[out->n] = p->tensor;
            out->gone[out->n++] = q->tensor;
        } else if (!oi_port_same(p, q) &&
                   !same_contents(&u->tensors.at[p->tensor], &u->tensors.at[q->tensor])) {
            return false;
        }
    }
    return out->n > 0;
}

/* The same body with the same constants. */
static bool same_body(const oi_skernel *a, const oi_skernel *b)
{
    if (!b->recipe || a->lengths.n || b->lengths.n || a->epilogue || b->epilogue ||
        strcmp(a->plan->function, b->plan->function) != 0 || a->plan->n_args != b->plan->n_args)
        return false;
    for (uint32_t i = 0; i < a->plan->n_args; i++) {
        const oi_recipe_arg *x = &a->plan->args[i], *y = &b->plan->args[i];
        if (x->kind != y->kind || x->kind == OI_ARG_ATTR || x->n != y->n ||
            memcmp(&x->real, &y->real, sizeof x->real) != 0 || a->arg_ports[i] != b->arg_ports[i])
            return false;
    }
    return true;
}

static bool same_call(const oi_unit *u, const oi_skernel *a, const oi_skernel *b, results *out)
{
    if (a->scalars.n || b->scalars.n || a->is_dynamic || b->is_dynamic || a->can_fail ||
        b->can_fail)
        return false;
    if (a->recipe)
        return same_body(a, b) && same_ports(u, a, b, out);
    if (!a->query || !b->query || a->query->op != b->query->op)
        return false;
    for (uint32_t i = 0; i < a->query->op->n_attrs; i++)
        if (!oi_value_same(&a->query->attrs[i], &b->query->attrs[i]))
            return false;
    return same_ports(u, a, b, out);
}

/* A hash that is the same for equal calls, because comparing all pairs takes too long. */
static uint64_t mark_of(const sharing *x, const oi_stmt *s)
{
    const oi_unit *u = x->u;
    const oi_skernel *k = s->kind == OI_STMT_KERNEL ? &u->kernels.at[s->kernel] : NULL;
    if (!k || k->scalars.n || k->is_dynamic || k->can_fail ||
        (!k->recipe && (!k->query || x->only_bodies)))
        return 0;
    uint64_t mark = oi_hash64(&k->ports.n, sizeof k->ports.n, 1);
    if (k->recipe)
        mark = oi_hash64(k->plan->function, strlen(k->plan->function), mark);
    else
        mark = oi_hash64(&k->query->op, sizeof(const oi_op *), mark);
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_port *p = &k->ports.at[i];
        const bool is_private = p->is_written || u->tensors.at[p->tensor].bytes;
        const uint32_t tensor = is_private ? OI_NO_ID : p->tensor; /* a private result may have an
                                                                      equal twin */
        mark = oi_hash64(&tensor, sizeof tensor, mark);
    }
    return mark ? mark : 1;
}

/* -- sharing -- */

static void replace(void *ctx, const oi_mention *m)
{
    const results *r = ctx;
    for (uint32_t i = 0; m->port && i < r->n; i++)
        if (m->tensor == r->gone[i])
            m->port->tensor = r->keep[i];
}

typedef struct counting {
    uint32_t tensor, n;
} counting;

static void count(void *ctx, const oi_mention *m)
{
    counting *c = ctx;
    c->n += m->tensor == c->tensor && m->port && !m->writes;
}

/* Whether all uses of the tensor, apart from its producer, are ports further down the list. This
 * stays true: merging only adds readers further down. */
static bool is_read_below(const sharing *x, size_t maker, uint32_t tensor)
{
    counting c = {.tensor = tensor};
    const oi_tensor *t = &x->u->tensors.at[tensor];
    if (x->is_read_below[tensor])
        return true;
    if (t->space != OI_SPACE_ARENA || t->n_table || x->uses[tensor].writes != 1)
        return false;
    for (size_t i = maker; (i = oi_where_next(x->where, tensor, i + 1, false)) != OI_NOWHERE;) {
        oi_stmt_mentions(x->u, x->graph, &x->list->at[i], count, &c);
        oi_stmts_mentions(x->u, x->graph, &x->list->at[i].body, count, &c);
    }
    return x->is_read_below[tensor] = c.n + 1 == x->uses[tensor].all;
}

static bool are_read_below(const sharing *x, size_t maker, const uint32_t *tensors, uint32_t n)
{
    bool are = true;
    for (uint32_t i = 0; i < n; i++)
        are = are && is_read_below(x, maker, tensors[i]);
    return are;
}

/* Merges the second call into the first, if they are equal. Nothing between them changes what they
 * read. */
static bool share(sharing *x, size_t first, size_t second)
{
    oi_unit *u = x->u;
    results r;
    const oi_stmt *a = &x->list->at[first], *b = &x->list->at[second];
    if (!same_call(u, &u->kernels.at[a->kernel], &u->kernels.at[b->kernel], &r) ||
        !are_read_below(x, first, r.keep, r.n) || !are_read_below(x, second, r.gone, r.n))
        return false;
    for (uint32_t k = 0; k < r.n; k++)
        for (size_t i = second;
             (i = oi_where_next(x->where, r.gone[k], i + 1, false)) != OI_NOWHERE;) {
            oi_stmt *s = &x->list->at[i];
            oi_stmt_mentions(u, x->graph, s, replace, &r);
            oi_stmts_mentions(u, x->graph, &s->body, replace, &r);
            oi_where_add(x->where, i);
            x->marks[i] = mark_of(x, s);
        }
    oi_tally_stmt(u, x->graph, &x->list->at[second], x->uses, false);
    oi_where_drop(x->where, second);
    for (uint32_t i = 0; i < r.n; i++) {
        x->uses[r.keep[i]].all += x->uses[r.gone[i]].all;
        x->uses[r.keep[i]].reads += x->uses[r.gone[i]].reads;
        x->uses[r.keep[i]].lengths += x->uses[r.gone[i]].lengths;
        x->uses[r.gone[i]] = (oi_tally){0};
    }
    return true;
}

#define REACH 400 /* statements to search back; further apart equal calls are rare */

/* Merges statement `at` into one of the n statements of `before`, from the last one on. */
static bool share_with(sharing *x, const size_t *before, size_t n, size_t at)
{
    for (size_t k = n; x->marks[at] && k-- > 0 && n - k <= REACH;) {
        if (x->marks[before[k]] != x->marks[at])
            continue;
        if (!oi_where_may_pass(x->where, at, before[k] + 1, at, true))
            return false; /* nor may it pass any earlier one */
        if (share(x, before[k], at))
            return true;
    }
    return false;
}

static void share_list(sharing *x, oi_stmts *list)
{
    OI_VEC(size_t) before = {0}; /* statements that remain */
    for (size_t i = 0; i < list->n; i++)
        share_list(x, &list->at[i].body);
    x->list = list;
    if (list->n < 2)
        return;
    oi_where_begin(x->where, list);
    x->marks = oi_arena_alloc(x->u->arena, list->n * sizeof *x->marks);
    for (size_t i = 0; i < list->n; i++)
        x->marks[i] = mark_of(x, &list->at[i]);
    for (size_t i = 0; i < list->n; i++)
        if (!share_with(x, before.at, before.n, i))
            *OI_PUSH(x->u->arena, &before) = i;
    oi_where_end(x->where);
}

static void share_graph(oi_unit *u, uint32_t graph, bool only_bodies)
{
    oi_where where = {.u = u, .graph = graph};
    sharing x = {.u = u, .graph = graph, .where = &where, .only_bodies = only_bodies};
    x.uses = oi_graph_tally(u, graph);
    x.is_read_below = oi_arena_alloc(u->arena, u->tensors.n + 1);
    for (uint32_t b = 0; b < u->graphs.at[graph].program->n_blocks; b++)
        if (u->graphs.at[graph].blocks[b].is_used)
            share_list(&x, &u->graphs.at[graph].blocks[b].stmts);
}

oi_status oi_pass_cse(oi_unit *u)
{
    for (uint32_t g = 0; g < u->graphs.n && !u->per_node; g++) {
        share_graph(u, g, false);
        const oi_tally *uses = oi_graph_tally(u, g);
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            oi_stmts_spell_casts(u, &u->graphs.at[g].blocks[b].stmts, uses);
    }
    return OI_OK;
}

void oi_units_share_prologues(oi_unit *u)
{
    for (uint32_t g = 0; g < u->graphs.n && !u->per_node && !oi_unit_skips(u, "cse"); g++)
        share_graph(u, g, true);
}
