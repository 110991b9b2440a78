/* fuse.c: a map over what a kernel made goes into that kernel, after the loops of its element.
 * needs:  maps already in the loads behind them (inline.c)
 * keeps:  results, order of everything that is seen; barriers, branches, per-node checks
 * makes:  kernels of several nodes; tensors that no longer exist
 *
 * Two ways, for a producer P and the one reader R of what it makes, in one list of statements:
 *   follow   R is a map over P's elements: its instructions come after P's, per output element.
 *   forward  R only moves them: P writes where R would have put them.
 * Every pair that stays apart leaves a note that says why. */
#include "synth/compose.h"

#define MAX_SOPS 64 /* per nest: beyond it a reader loses track, and registers run out */

typedef struct fusing {
    oi_unit *u;
    uint32_t graph;
    oi_stmts *list;
    oi_tally *uses; /* by tensor */
    oi_skernel *p;  /* the present pair, and what lies between them */
    const oi_skernel *r;
    uint32_t tensor;
} fusing;

/* Nobody but the two kernels sees it: made by lowering or renaming, or a variable of the graph that
 * no code, attribute, branch or host reads. */
static bool is_private(const fusing *f, uint32_t tensor)
{
    const oi_tensor *t = &f->u->tensors.at[tensor];
    return t->space == OI_SPACE_ARENA && f->uses[tensor].all == 2 && (t->rank > 0 || !t->var);
}

static bool is_on(const fusing *f, const oi_skernel *k, const oi_sop *op)
{
    return oi_sop_is_access(op) && k->ports.at[op->port].tensor == f->tensor;
}

/* R's axes where P stands at `store`. */
static bool map_axes(const fusing *f, const oi_snest *n, const oi_sop *store, const oi_sop *load,
                     oi_axis_map *out)
{
    const oi_snest *last = &f->r->nests.at[0];
    oi_radix radix;
    oi_split want;
    if (!oi_sop_is_affine(f->u, f->p, store) || !oi_sop_is_affine(f->u, f->r, load) ||
        load->kind != OI_SOP_LOAD)
        return false;
    oi_nest_coord read = oi_sop_number(f->u, f->r, load), wrote = oi_sop_number(f->u, f->p, store);
    for (uint32_t a = 0; a < OI_NEST_AXES; a++)
        out->of[a] = (oi_nest_coord){.index = OI_NEST_NONE};
    return oi_radix_of_axes(last, &read, oi_tensor_count(&f->u->tensors.at[f->tensor]), &radix) &&
           oi_radix_digits(n, &wrote, &radix, out->of, &want);
}

/* -- forward -- */

/* R is one load, of the tensor, and one store of the same bits. */
static bool is_move(const fusing *f)
{
    const oi_snest *n = oi_kernel_map(f->r);
    return n && n->pre.n == 2 && n->pre.at[0].kind == OI_SOP_LOAD && n->pre.at[0].is_raw &&
           is_on(f, f->r, &n->pre.at[0]);
}

/* The store of R as P's, with P standing at `store`. */
static bool forwarded(fusing *f, const oi_snest *n, const oi_sop *store, bool keep, oi_sop *out)
{
    const oi_snest *last = &f->r->nests.at[0];
    const oi_sop *to = &last->pre.at[1];
    oi_axis_map map;
    oi_nest_coord c;
    if (!map_axes(f, n, store, &last->pre.at[0], &map))
        return false;
    uint32_t rank = to->is_flat ? 1 : f->u->tensors.at[f->r->ports.at[to->port].tensor].rank;
    for (uint32_t d = 0; d < rank; d++)
        if (to->at[d].index != OI_NEST_NONE || to->at[d].bend != OI_BEND_NONE ||
            !oi_coord_map(&to->at[d], last, &map, &c))
            return false;
    if (!keep)
        return true;
    oi_moving m = {.u = f->u, .to = f->p, .from = f->r, .nest = last, .map = &map};
    oi_sop bare = *to;
    bare.n_args = 0;
    *out = oi_sop_moved(&m, &bare);
    out->is_raw = store->is_raw;
    out->n_args = 1;
    out->args[0] = store->args[0];
    oi_sop_unflatten(f->u, f->p, n, out);
    return true;
}

/* All stores of P into the tensor: possible, and then done. */
static bool forward(fusing *f, bool keep)
{
    bool fits = true;
    for (size_t m = 0; m < f->p->nests.n; m++) {
        oi_snest *n = &f->p->nests.at[m];
        for (int post = 0; post < 2; post++) {
            oi_sops *ops = post ? &n->post : &n->pre;
            for (size_t i = 0; i < ops->n && fits; i++) {
                const oi_sop old = ops->at[i];
                if (is_on(f, f->p, &old))
                    fits = old.kind == OI_SOP_STORE && forwarded(f, n, &old, keep, &ops->at[i]);
            }
        }
    }
    return fits;
}

static const char *why_not_forward(fusing *f)
{
    if (!is_move(f))
        return "the reader is no move";
    if (f->p->nests.n == 0)
        return "the producer is no loop nest";
    for (size_t m = 0; m < f->p->nests.n; m++)
        if (f->p->nests.at[m].is_scan || f->p->nests.at[m].combines_out)
            return "the producer needs its result in place";
    if (!forward(f, false))
        return "the move is no sum over the producer's axes";
    return NULL;
}

/* -- follow -- */

static unsigned n_stores(const oi_skernel *k)
{
    unsigned n = 0;
    const oi_sops *ops;
    for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++) {
        for (size_t i = 0; i < ops->n; i++)
            n += ops->at[i].kind == OI_SOP_STORE;
    }
    return n;
}

/* The instruction of P that stores the tensor: the last one. */
static const oi_sop *final_store(const fusing *f)
{
    const oi_snest *n = &f->p->nests.at[f->p->nests.n - 1];
    const oi_sops *ops = n->kind == OI_NEST_MAP ? &n->pre : &n->post;
    const oi_sop *last = ops->n ? &ops->at[ops->n - 1] : NULL;
    return last && last->kind == OI_SOP_STORE && is_on(f, f->p, last) ? last : NULL;
}

/* All loads of the tensor agree on where R's axes stand. */
static bool follows(const fusing *f, const oi_sop *store, oi_axis_map *map)
{
    const oi_snest *last = &f->r->nests.at[0];
    oi_axis_map own;
    bool any = false;
    for (size_t i = 0; i < last->pre.n; i++) {
        if (!is_on(f, f->r, &last->pre.at[i]))
            continue;
        if (last->pre.at[i].is_raw != store->is_raw ||
            !map_axes(f, &f->p->nests.at[0], store, &last->pre.at[i], any ? &own : map) ||
            (any && memcmp(&own, map, sizeof own) != 0))
            return false;
        any = true;
    }
    return any;
}

/* Coordinates with data in them do not move along. */
static bool moves_along(const fusing *f, const oi_axis_map *map)
{
    const oi_snest *last = &f->r->nests.at[0];
    for (size_t i = 0; i < last->pre.n; i++) {
        const oi_sop *op = &last->pre.at[i];
        oi_nest_coord c;
        uint32_t rank = !op->at ? 0
                        : op->kind == OI_SOP_PLACE || op->is_flat
                            ? 1
                            : f->u->tensors.at[f->r->ports.at[op->port].tensor].rank;
        for (uint32_t d = 0; d < rank; d++)
            if (!oi_coord_map(&op->at[d], last, map, &c))
                return false;
    }
    return true;
}

static bool pads(const oi_skernel *k)
{
    bool any = false;
    for (size_t i = 0; i < k->nests.at[0].pre.n; i++)
        any |= k->nests.at[0].pre.at[i].may_leave;
    return any;
}

static const char *why_not_follow(const fusing *f, oi_axis_map *map)
{
    if (!oi_kernel_map(f->r))
        return "the reader is no plain map";
    if (f->p->nests.n != 1 || f->p->nests.at[0].is_serial || f->p->nests.at[0].is_scan ||
        f->p->nests.at[0].combines_out || !final_store(f) || n_stores(f->p) != 1)
        return "the producer is no single nest";
    if (f->r->can_fail)
        return "the reader can fail";
    if (f->p->nests.at[0].skips && pads(f->r))
        return "both pad";
    if (!follows(f, final_store(f), map) || !moves_along(f, map))
        return "the reader runs over it in another way";
    const oi_snest *n = &f->p->nests.at[0];
    if ((n->kind == OI_NEST_MAP ? n->pre.n : n->post.n) + f->r->nests.at[0].pre.n > MAX_SOPS)
        return "the kernel would be too long";
    return NULL;
}

/* R's instructions after P's, in place of P's store. */
static void follow(fusing *f, const oi_axis_map *map)
{
    oi_snest *n = &f->p->nests.at[0];
    const oi_snest *last = &f->r->nests.at[0];
    oi_sops *ops = n->kind == OI_NEST_MAP ? &n->pre : &n->post;
    uint32_t base = n->kind == OI_NEST_MAP ? 0 : (uint32_t)n->pre.n;
    oi_sop store = ops->at[--ops->n];
    uint32_t value = oi_sop_as_stored(f->u, ops, base, &store, store.args[0]);
    uint32_t *ids = oi_arena_alloc(f->u->arena, (last->pre.n + 1) * sizeof *ids);
    oi_moving m = {.u = f->u, .to = f->p, .from = f->r, .nest = last, .map = map, .ids = ids};
    for (size_t i = 0; i < last->pre.n; i++) {
        const oi_sop *op = &last->pre.at[i];
        if (op->kind == OI_SOP_LOAD && is_on(f, f->r, op)) {
            ids[i] = value;
            continue;
        }
        oi_sop own = oi_sop_moved(&m, op);
        if (oi_sop_is_access(&own))
            oi_sop_unflatten(f->u, f->p, n, &own);
        *OI_PUSH(f->u->arena, ops) = own;
        ids[i] = base + (uint32_t)ops->n - 1;
    }
}

/* -- pairs -- */

/* A kernel that also writes what it still reads elsewhere would spoil it. */
static bool overwrites(const oi_skernel *p, const oi_skernel *r)
{
    for (size_t i = 0; i < r->ports.n; i++)
        if (r->ports.at[i].is_written && !r->ports.at[i].is_dropped &&
            oi_kernel_reads(p, r->ports.at[i].tensor))
            return true;
    return false;
}

static bool writes(const fusing *f, const oi_stmt *s, uint32_t tensor)
{
    const oi_skernel *k = s->kind == OI_STMT_KERNEL ? &f->u->kernels.at[s->kernel] : NULL;
    for (size_t i = 0; k && i < k->ports.n; i++)
        if (!k->ports.at[i].is_dropped && k->ports.at[i].tensor == tensor &&
            k->ports.at[i].is_written)
            return true;
    return false;
}

static size_t producer_of(const fusing *f, size_t reader, uint32_t tensor)
{
    for (size_t i = reader; i-- > 0;)
        if (writes(f, &f->list->at[i], tensor))
            return i;
    return SIZE_MAX;
}

/* NULL when the two were joined, else why not. */
static const char *join(fusing *f, size_t from, size_t at)
{
    oi_unit *u = f->u;
    uint64_t most = u->target->preferences.max_kernel_ops;
    oi_axis_map map;
    if (f->p->is_dynamic || f->r->is_dynamic)
        return "a length that only the run knows";
    if (!oi_stmts_may_pass(u, f->graph, f->list, from, from + 1, at, false))
        return "something between them is in the way";
    if (most && f->p->nodes.n + f->r->nodes.n > most)
        return oi_arena_printf(u->arena, "max_kernel_ops is %llu", (unsigned long long)most);
    if (overwrites(f->p, f->r))
        return "the second overwrites what the first reads";
    const char *no = why_not_forward(f);
    if (!no) {
        forward(f, true);
        return NULL;
    }
    const char *neither = why_not_follow(f, &map);
    if (neither)
        return oi_arena_printf(u->arena, "%s; %s", no, neither);
    follow(f, &map);
    return NULL;
}

/* Joins the reader at `at` with the kernel that made the tensor. True when the list changed. */
static bool fuse_pair(fusing *f, size_t at, uint32_t tensor)
{
    oi_unit *u = f->u;
    size_t from = producer_of(f, at, tensor);
    if (from == SIZE_MAX || !is_private(f, tensor) ||
        oi_kernel_reads(&u->kernels.at[f->list->at[from].kernel], tensor)) /* changed in place */
        return false;
    f->p = &u->kernels.at[f->list->at[from].kernel];
    f->r = &u->kernels.at[f->list->at[at].kernel];
    f->tensor = tensor;
    const char *no = join(f, from, at);
    if (no) {
        oi_unit_note(u, "fuse", f->graph, f->list->at[at].node, "%s and %s: %s", f->p->name,
                     f->r->name, no);
        return false;
    }
    oi_kernel_drop_port(f->p, tensor);
    oi_kernel_take_nodes(u, f->p, f->r, false);
    f->p->query = NULL;
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
    oi_units_tidy_ports(u);
    return OI_OK;
}
