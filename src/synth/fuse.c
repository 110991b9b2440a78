/* fuse.c: a value that one kernel makes and the next one reads need not pass through memory.
 * needs:  one tensor per value (rename.c)
 * keeps:  results, order of everything that is seen; barriers, branches, per-node checks
 * makes:  kernels of several nodes; tensors that no longer exist
 *
 * Two ways, for a producer P and a reader R in one list of statements:
 *   inline    P is a map: its instructions take the place of R's load, its axes replaced by the
 *             coordinates that R reads at. Moves vanish into the reads behind them.
 *   epilogue  R is a map over P's output axes: its instructions follow P's, per output element.
 * Every pair that stays apart leaves a note that says why. */
#include "synth/pass.h"

#define MAX_SOPS 64 /* per nest: beyond it a reader loses track, and registers run out */

typedef struct fusing {
    oi_unit *u;
    uint32_t graph;
    oi_stmts *list;
    const oi_tally *uses; /* by tensor */
} fusing;

/* Nobody but the two kernels sees it: made by lowering or renaming, or a variable of the graph that
 * no code, attribute, branch or host reads. */
static bool is_private(const fusing *f, uint32_t tensor)
{
    const oi_tensor *t = &f->u->tensors.at[tensor];
    return t->space == OI_SPACE_ARENA && f->uses[tensor].all == 2 && (t->rank > 0 || !t->var);
}

/* -- coordinates -- */

/* The one axis that a write's dim runs over, OI_NO_ID for a dim of length 1; false when it is not
 * that plain. */
static bool plain_axis(const oi_snest *n, const oi_nest_coord *c, uint32_t *axis)
{
    *axis = OI_NO_ID;
    if (c->base != 0 || c->index != OI_NEST_NONE || c->bend != OI_BEND_NONE || c->may_leave)
        return false;
    for (uint32_t a = 0; a < n->n_axes; a++) {
        if (c->step[a] == 0 || n->axes[a].extent == 1)
            continue;
        if (c->step[a] != 1 || *axis != OI_NO_ID)
            return false;
        *axis = a;
    }
    return true;
}

/* For every axis of `inner`: where it stands in terms of the axes of the nest that takes it in. */
typedef struct mapping {
    oi_nest_coord of[OI_NEST_AXES];
    bool known[OI_NEST_AXES];
} mapping;

static oi_nest_coord substitute(const oi_nest_coord *c, const oi_snest *n, const mapping *m)
{
    oi_nest_coord out = *c;
    memset(out.step, 0, sizeof out.step);
    for (uint32_t a = 0; a < n->n_axes; a++) {
        if (c->step[a] == 0 || n->axes[a].extent == 1)
            continue;
        out.base += c->step[a] * m->of[a].base;
        for (uint32_t b = 0; b < OI_NEST_AXES; b++)
            out.step[b] += c->step[a] * m->of[a].step[b];
    }
    return out;
}

/* -- instructions -- */

static uint32_t port_in(fusing *f, oi_skernel *to, const oi_port *p)
{
    for (size_t i = 0; i < to->ports.n; i++) {
        oi_port *q = &to->ports.at[i];
        if (q->tensor == p->tensor && q->n_entry == 0 && p->n_entry == 0) {
            q->is_written |= p->is_written;
            return (uint32_t)i;
        }
    }
    *OI_PUSH(f->u->arena, &to->ports) = *p;
    return (uint32_t)to->ports.n - 1;
}

static uint32_t scalar_in(fusing *f, oi_skernel *to, const oi_kscalar *s)
{
    oi_kscalar own = *s;
    unsigned same = 0;
    for (size_t i = 0; i < to->scalars.n; i++)
        same += strncmp(to->scalars.at[i].name, s->name, strlen(s->name)) == 0;
    if (same)
        own.name = oi_arena_printf(f->u->arena, "%s_%u", s->name, same + 1);
    *OI_PUSH(f->u->arena, &to->scalars) = own;
    return (uint32_t)to->scalars.n - 1;
}

/* A call whose numbers are those of another kernel now. */
static const oi_scall *call_in(fusing *f, oi_skernel *to, const oi_skernel *from, const oi_scall *c)
{
    bool any = false;
    for (uint32_t i = 0; c && c->scalars && i < c->op->n_attrs; i++)
        any |= c->scalars[i] != OI_NO_ID;
    if (!any)
        return c;
    oi_scall *own = oi_arena_alloc(f->u->arena, sizeof *own);
    uint32_t *scalars = oi_arena_alloc(f->u->arena, c->op->n_attrs * sizeof *scalars);
    *own = *c;
    for (uint32_t i = 0; i < c->op->n_attrs; i++)
        scalars[i] = c->scalars[i] == OI_NO_ID ? OI_NO_ID
                                               : scalar_in(f, to, &from->scalars.at[c->scalars[i]]);
    own->scalars = scalars;
    return own;
}

/* What one list of instructions becomes inside another. */
typedef struct moving {
    fusing *f;
    oi_skernel *to;
    const oi_skernel *from;
    const oi_snest *nest; /* whose axes the coordinates are over */
    const mapping *map;
    uint32_t *ids; /* by old instruction: the new one */
} moving;

static const oi_nest_coord *moved_coords(const moving *m, const oi_sop *op, uint32_t rank)
{
    oi_nest_coord *at = oi_arena_alloc(m->f->u->arena, (rank + 1) * sizeof *at);
    for (uint32_t d = 0; d < rank; d++) {
        at[d] = m->map ? substitute(&op->at[d], m->nest, m->map) : op->at[d];
        if (at[d].index != OI_NEST_NONE)
            at[d].index = m->ids[at[d].index];
    }
    return at;
}

static oi_sop moved(const moving *m, const oi_sop *op)
{
    oi_sop own = *op;
    if (oi_sop_is_access(op)) {
        uint32_t rank = m->f->u->tensors.at[m->from->ports.at[op->port].tensor].rank;
        own.at = moved_coords(m, op, op->is_flat ? 1 : rank);
        own.port = port_in(m->f, m->to, &m->from->ports.at[op->port]);
    } else if (op->at) {
        own.at = moved_coords(m, op, 1);
    }
    if (op->guard) {
        oi_nest_coord *g = oi_arena_alloc(m->f->u->arena, sizeof *g);
        *g = m->map ? substitute(op->guard, m->nest, m->map) : *op->guard;
        own.guard = g;
    }
    own.call = call_in(m->f, m->to, m->from, op->call);
    for (uint32_t i = 0; i < op->n_args; i++)
        if (op->args[i] != OI_NO_ID)
            own.args[i] = m->ids[op->args[i]];
    if (op->kind == OI_SOP_EVAL && op->place != OI_NO_ID)
        own.place = m->ids[op->place];
    return own;
}

/* What a tensor would have held: the value rounded as the store would have. */
static uint32_t as_stored(fusing *f, oi_sops *out, uint32_t base, const oi_sop *store,
                          uint32_t value)
{
    if (oi_form_of(store->type) == store->type || store->is_raw)
        return value;
    *OI_PUSH(f->u->arena, out) = (oi_sop){.kind = OI_SOP_CONVERT,
                                          .type = store->type,
                                          .from = store->type,
                                          .args = {value},
                                          .n_args = 1};
    return base + (uint32_t)out->n - 1;
}

/* -- inline -- */

/* R with P's map in place of its loads of the tensor. */
static void inline_map(fusing *f, oi_skernel *r, oi_snest *n, const oi_skernel *p, uint32_t tensor)
{
    const oi_snest *inner = &p->nests.at[0];
    const oi_sop *store = &inner->pre.at[inner->pre.n - 1];
    uint32_t rank = f->u->tensors.at[tensor].rank;
    oi_sops out = {0};
    uint32_t *ids = oi_arena_alloc(f->u->arena, (n->pre.n + n->post.n + 1) * sizeof *ids);
    for (size_t i = 0; i < n->pre.n; i++) {
        const oi_sop *op = &n->pre.at[i];
        moving own = {f, r, r, n, NULL, ids};
        if (op->kind != OI_SOP_LOAD || r->ports.at[op->port].tensor != tensor) {
            oi_sop kept = *op;
            if (kept.at)
                kept.at = moved_coords(&own, op,
                                       op->kind == OI_SOP_PLACE || op->is_flat
                                           ? 1
                                           : f->u->tensors.at[r->ports.at[op->port].tensor].rank);
            for (uint32_t k = 0; k < op->n_args; k++)
                if (op->args[k] != OI_NO_ID)
                    kept.args[k] = ids[op->args[k]];
            if (op->kind == OI_SOP_EVAL && op->place != OI_NO_ID)
                kept.place = ids[op->place];
            *OI_PUSH(f->u->arena, &out) = kept;
            ids[i] = (uint32_t)out.n - 1;
            continue;
        }
        mapping map = {.known = {false}};
        for (uint32_t d = 0; d < rank; d++) {
            uint32_t a;
            if (plain_axis(inner, &store->at[d], &a) && a != OI_NO_ID) {
                map.of[a] = op->at[d];
                map.known[a] = true;
            }
        }
        uint32_t *inner_ids = oi_arena_alloc(f->u->arena, (inner->pre.n + 1) * sizeof *inner_ids);
        moving in = {f, r, p, inner, &map, inner_ids};
        for (size_t k = 0; k + 1 < inner->pre.n; k++) {
            *OI_PUSH(f->u->arena, &out) = moved(&in, &inner->pre.at[k]);
            inner_ids[k] = (uint32_t)out.n - 1;
        }
        ids[i] = as_stored(f, &out, 0, store, inner_ids[store->args[0]]);
    }
    /* numbers of the instructions after the loops go on from those before */
    size_t before = n->pre.n;
    for (size_t i = 0; i < n->post.n; i++)
        ids[before + i] = (uint32_t)(out.n + i);
    for (size_t i = 0; i < n->post.n; i++)
        for (uint32_t k = 0; k < n->post.at[i].n_args; k++)
            if (n->post.at[i].args[k] != OI_NO_ID)
                n->post.at[i].args[k] = ids[n->post.at[i].args[k]];
    n->element = n->kind == OI_NEST_MAP ? 0 : ids[n->element];
    n->pre = out;
}

static bool is_plain_map(const oi_skernel *k)
{
    return k->nests.n == 1 && k->nests.at[0].kind == OI_NEST_MAP && !k->nests.at[0].is_serial &&
           !k->nests.at[0].combines_out && k->nests.at[0].pre.n > 0 &&
           k->nests.at[0].pre.at[k->nests.at[0].pre.n - 1].kind == OI_SOP_STORE;
}

static unsigned n_stores(const oi_skernel *k)
{
    unsigned n = 0;
    const oi_sops *ops;
    for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++)
        for (size_t i = 0; i < ops->n; i++)
            n += ops->at[i].kind == OI_SOP_STORE;
    return n;
}

/* Whether the store covers its tensor dim by dim, each along an axis of its own. */
static bool is_plain_store(const fusing *f, const oi_skernel *k, const oi_snest *n,
                           const oi_sop *store)
{
    uint32_t axis;
    if (store->is_flat)
        return false;
    for (uint32_t d = 0; d < f->u->tensors.at[k->ports.at[store->port].tensor].rank; d++)
        if (!plain_axis(n, &store->at[d], &axis))
            return false;
    return true;
}

/* Work that is done once per element of the tensor must not be done again for every reader. */
static bool repeats_work(const oi_snest *n, const oi_sop *load, uint32_t rank)
{
    for (uint32_t a = 0; a < n->n_axes; a++) {
        bool moves = n->axes[a].extent == 1;
        for (uint32_t d = 0; d < rank; d++)
            moves |= load->at[d].step[a] != 0;
        if (!moves)
            return true;
    }
    return false;
}

static bool is_cheap(const oi_skernel *p)
{
    for (size_t i = 0; i < p->nests.at[0].pre.n; i++)
        if (p->nests.at[0].pre.at[i].kind == OI_SOP_EVAL ||
            p->nests.at[0].pre.at[i].kind == OI_SOP_INDEX)
            return false;
    return true;
}

/* A kernel that also writes what it still reads elsewhere would spoil it. */
static bool overwrites(const oi_skernel *p, const oi_skernel *r)
{
    for (size_t i = 0; i < r->ports.n; i++)
        if (r->ports.at[i].is_written && !r->ports.at[i].is_dropped &&
            oi_kernel_reads(p, r->ports.at[i].tensor))
            return true;
    return false;
}

/* NULL when P can go into R's loads of the tensor, else why not. */
static const char *why_not_inline(const fusing *f, const oi_skernel *p, const oi_skernel *r,
                                  uint32_t tensor)
{
    if (!is_plain_map(p) || n_stores(p) != 1)
        return "the producer is no plain map";
    if (r->recipe)
        return "the reader is a recipe";
    const oi_snest *inner = &p->nests.at[0];
    const oi_sop *store = &inner->pre.at[inner->pre.n - 1];
    uint32_t rank = f->u->tensors.at[tensor].rank;
    if (!is_plain_store(f, p, inner, store))
        return "the producer writes in another order than its axes";
    if (p->can_fail)
        return "the producer can fail";
    for (size_t m = 0; m < r->nests.n; m++) {
        const oi_snest *n = &r->nests.at[m];
        unsigned loads = 0;
        for (int post = 0; post < 2; post++)
            for (size_t i = 0; i < (post ? n->post.n : n->pre.n); i++) {
                const oi_sop *op = post ? &n->post.at[i] : &n->pre.at[i];
                if (!oi_sop_is_access(op) || r->ports.at[op->port].tensor != tensor)
                    continue;
                if (post || op->kind != OI_SOP_LOAD || op->is_flat || (op->is_raw != store->is_raw))
                    return "the reader looks at it in another way";
                loads++;
                if (op->may_leave || n->skips)
                    return "the reader pads it";
                for (uint32_t d = 0; d < rank; d++)
                    if (op->at[d].index != OI_NEST_NONE || op->at[d].bend != OI_BEND_NONE)
                        return "the reader picks elements by data";
                if (!is_cheap(p) && repeats_work(n, op, rank))
                    return "the reader would repeat the work";
            }
        if (loads > 1 && !is_cheap(p))
            return "the reader would repeat the work";
        if (loads && n->pre.n + loads * inner->pre.n > MAX_SOPS)
            return "the kernel would be too long";
    }
    return NULL;
}

/* -- epilogue -- */

/* The instruction of P that stores the tensor: the last one. */
static const oi_sop *final_store(const oi_skernel *p, uint32_t tensor)
{
    const oi_snest *n = &p->nests.at[p->nests.n - 1];
    const oi_sops *ops = n->kind == OI_NEST_MAP ? &n->pre : &n->post;
    const oi_sop *last = ops->n ? &ops->at[ops->n - 1] : NULL;
    return last && last->kind == OI_SOP_STORE && p->ports.at[last->port].tensor == tensor ? last
                                                                                          : NULL;
}

/* R's axes in terms of P's, through the tensor; false when it does not run over it plainly. */
static bool map_axes(const fusing *f, const oi_skernel *p, const oi_skernel *r, uint32_t tensor,
                     mapping *out)
{
    const oi_snest *n = &r->nests.at[0], *outer = &p->nests.at[0];
    const oi_sop *store = final_store(p, tensor);
    *out = (mapping){.known = {false}};
    for (size_t i = 0; i < n->pre.n; i++) {
        const oi_sop *op = &n->pre.at[i];
        if (!oi_sop_is_access(op) || op->kind == OI_SOP_STORE ||
            r->ports.at[op->port].tensor != tensor)
            continue;
        if (op->kind != OI_SOP_LOAD || op->is_flat || op->may_leave || op->is_raw != store->is_raw)
            return false;
        for (uint32_t d = 0; d < f->u->tensors.at[tensor].rank; d++) {
            uint32_t mine, theirs;
            if (!plain_axis(n, &op->at[d], &mine) || !plain_axis(outer, &store->at[d], &theirs))
                return false;
            if ((mine == OI_NO_ID) != (theirs == OI_NO_ID))
                return false;
            if (mine == OI_NO_ID)
                continue;
            if (outer->axes[theirs].is_reduced ||
                (out->known[mine] && out->of[mine].step[theirs] != 1))
                return false;
            out->known[mine] = true;
            out->of[mine] = (oi_nest_coord){.index = OI_NEST_NONE};
            out->of[mine].step[theirs] = 1;
        }
    }
    for (uint32_t a = 0; a < n->n_axes; a++)
        if (n->axes[a].extent != 1 && !out->known[a])
            return false;
    return true;
}

static const char *why_not_follow(const fusing *f, const oi_skernel *p, const oi_skernel *r,
                                  uint32_t tensor, mapping *map)
{
    if (!is_plain_map(r))
        return "the reader is no plain map";
    if (p->nests.n != 1 || p->nests.at[0].is_serial || p->nests.at[0].is_scan ||
        p->nests.at[0].combines_out || !final_store(p, tensor) || n_stores(p) != 1)
        return "the producer is no single nest";
    if (!is_plain_store(f, p, &p->nests.at[0], final_store(p, tensor)))
        return "the producer writes in another order than its axes";
    if (r->can_fail)
        return "the reader can fail";
    if (!map_axes(f, p, r, tensor, map))
        return "the reader runs over it in another way";
    if (p->nests.at[0].post.n + r->nests.at[0].pre.n > MAX_SOPS)
        return "the kernel would be too long";
    return NULL;
}

/* R's instructions after P's, in place of P's store. */
static void follow(fusing *f, oi_skernel *p, const oi_skernel *r, uint32_t tensor,
                   const mapping *map)
{
    oi_snest *n = &p->nests.at[0];
    const oi_snest *last = &r->nests.at[0];
    oi_sops *ops = n->kind == OI_NEST_MAP ? &n->pre : &n->post;
    uint32_t base = n->kind == OI_NEST_MAP ? 0 : (uint32_t)n->pre.n;
    oi_sop store = ops->at[--ops->n];
    uint32_t value = as_stored(f, ops, base, &store, store.args[0]);
    uint32_t *ids = oi_arena_alloc(f->u->arena, (last->pre.n + 1) * sizeof *ids);
    moving m = {f, p, r, last, map, ids};
    for (size_t i = 0; i < last->pre.n; i++) {
        const oi_sop *op = &last->pre.at[i];
        if (op->kind == OI_SOP_LOAD && r->ports.at[op->port].tensor == tensor) {
            ids[i] = value;
            continue;
        }
        oi_sop own = moved(&m, op);
        *OI_PUSH(f->u->arena, ops) = own;
        ids[i] = base + (uint32_t)ops->n - 1;
    }
}

/* -- pairs -- */

static void drop_port(oi_skernel *k, uint32_t tensor)
{
    for (size_t i = 0; i < k->ports.n; i++)
        if (k->ports.at[i].tensor == tensor)
            k->ports.at[i].is_dropped = true;
}

static bool writes(const oi_skernel *k, uint32_t tensor)
{
    for (size_t i = 0; i < k->ports.n; i++)
        if (!k->ports.at[i].is_dropped && k->ports.at[i].tensor == tensor &&
            k->ports.at[i].is_written)
            return true;
    return false;
}

/* What a statement does, seen from one that would rather run after it. */
typedef struct passing {
    const fusing *f;
    oi_stmt *other;
    oi_mention own; /* of the one that moves */
    bool clashes;
} passing;

static void meet(void *ctx, const oi_mention *m)
{
    passing *x = ctx;
    x->clashes |=
        m->tensor != OI_NO_ID && m->tensor == x->own.tensor && (m->writes || x->own.writes);
}

static void meet_all(void *ctx, const oi_mention *m)
{
    passing *x = ctx;
    x->own = *m;
    oi_stmt_mentions(x->f->u, x->f->graph, x->other, meet, x);
}

/* Whether the producer may run where the reader stands: nothing between changes what it reads, by
 * port or by name, or uses what it writes. */
static bool may_sink(const fusing *f, size_t from, size_t to)
{
    for (size_t i = from + 1; i < to; i++) {
        oi_stmt *s = &f->list->at[i];
        passing x = {.f = f, .other = s};
        if (s->kind != OI_STMT_KERNEL && s->kind != OI_STMT_CACHE && s->kind != OI_STMT_SET &&
            s->kind != OI_STMT_LIMIT)
            return false;
        oi_stmt_mentions(f->u, f->graph, &f->list->at[from], meet_all, &x);
        if (x.clashes)
            return false;
    }
    return true;
}

static size_t producer_of(const fusing *f, size_t reader, uint32_t tensor)
{
    for (size_t i = reader; i-- > 0;)
        if (f->list->at[i].kind == OI_STMT_KERNEL &&
            writes(&f->u->kernels.at[f->list->at[i].kernel], tensor))
            return i;
    return SIZE_MAX;
}

static void take_nodes(fusing *f, oi_skernel *to, const oi_skernel *from, bool first)
{
    OI_VEC(const oi_pnode *) all = {0};
    for (int half = 0; half < 2; half++) {
        const oi_skernel *k = (half == 0) == first ? from : to;
        for (size_t i = 0; i < k->nodes.n; i++)
            if (all.n == 0 || all.at[all.n - 1] != k->nodes.at[i])
                *OI_PUSH(f->u->arena, &all) = k->nodes.at[i];
    }
    to->nodes.at = all.at;
    to->nodes.n = all.n;
    to->nodes.cap = all.cap;
}

/* Joins the reader at `at` with the kernel that made the tensor. True when the list changed. */
static bool fuse_pair(fusing *f, size_t at, uint32_t tensor)
{
    oi_unit *u = f->u;
    size_t from = producer_of(f, at, tensor);
    if (from == SIZE_MAX || !is_private(f, tensor) ||
        oi_kernel_reads(&u->kernels.at[f->list->at[from].kernel], tensor)) /* changed in place */
        return false;
    oi_skernel *p = &u->kernels.at[f->list->at[from].kernel],
               *r = &u->kernels.at[f->list->at[at].kernel];
    const oi_pnode *node = f->list->at[at].node;
    uint64_t most = u->target->preferences.max_kernel_ops;
    mapping map;
    if (!may_sink(f, from, at)) {
        oi_unit_note(u, "fuse", f->graph, node, "%s and %s: something between them is in the way",
                     p->name, r->name);
        return false;
    }
    if (most && p->nodes.n + r->nodes.n > most) {
        oi_unit_note(u, "fuse", f->graph, node, "%s and %s: max_kernel_ops is %llu", p->name,
                     r->name, (unsigned long long)most);
        return false;
    }
    if (overwrites(p, r)) {
        oi_unit_note(u, "fuse", f->graph, node,
                     "%s and %s: the second overwrites what the first reads", p->name, r->name);
        return false;
    }
    const char *no = why_not_inline(f, p, r, tensor);
    if (!no) {
        for (size_t m = 0; m < r->nests.n; m++)
            inline_map(f, r, &r->nests.at[m], p, tensor);
        drop_port(r, tensor);
        take_nodes(f, r, p, true);
        oi_stmts_remove(f->list, from);
        return true;
    }
    const char *neither = why_not_follow(f, p, r, tensor, &map);
    if (neither) {
        oi_unit_note(u, "fuse", f->graph, node, "%s and %s: %s; %s", p->name, r->name, no, neither);
        return false;
    }
    follow(f, p, r, tensor, &map);
    drop_port(p, tensor);
    take_nodes(f, p, r, false);
    f->list->at[at].kernel = f->list->at[from].kernel;
    oi_stmts_remove(f->list, from);
    return true;
}

static void fuse_list(fusing *f, oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].kind == OI_STMT_LOOP)
            fuse_list(f, &list->at[i].body);
    f->list = list;
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i].kind != OI_STMT_KERNEL)
            continue;
        bool again = true;
        while (again) {
            again = false;
            const oi_skernel *k = &f->u->kernels.at[list->at[i].kernel];
            for (size_t p = 0; p < k->ports.n && !again; p++)
                if (!k->ports.at[p].is_written && !k->ports.at[p].is_dropped)
                    again = fuse_pair(f, i, k->ports.at[p].tensor);
            i -= again; /* one statement fewer before it */
        }
    }
}

/* Ports that lost their tensor go; the instructions' numbers follow. */
static void tidy_ports(oi_unit *u)
{
    for (size_t k = 0; k < u->kernels.n; k++) {
        oi_skernel *kernel = &u->kernels.at[k];
        uint32_t *to = oi_arena_alloc(u->arena, (kernel->ports.n + 1) * sizeof *to), n = 0;
        for (size_t i = 0; i < kernel->ports.n; i++) {
            to[i] = n;
            if (!kernel->ports.at[i].is_dropped)
                kernel->ports.at[n++] = kernel->ports.at[i];
        }
        kernel->ports.n = n;
        oi_sops *ops;
        for (size_t l = 0; (ops = oi_kernel_sops(kernel, l)) != NULL; l++)
            for (size_t i = 0; i < ops->n; i++)
                ops->at[i].port = oi_sop_is_access(&ops->at[i]) ? to[ops->at[i].port] : 0;
    }
}

oi_status oi_pass_fuse(oi_unit *u)
{
    if (u->per_node || !u->target->preferences.prefer_fusion)
        return OI_OK;
    for (uint32_t g = 0; g < u->graphs.n; g++) {
        fusing f = {.u = u, .graph = g, .uses = oi_graph_tally(u, g)};
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            if (u->graphs.at[g].blocks[b].is_used)
                fuse_list(&f, &u->graphs.at[g].blocks[b].stmts);
    }
    tidy_ports(u);
    return OI_OK;
}
