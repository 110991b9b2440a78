/* rows.c: joins kernels over the same rows: softmax and the norms read a row, reduce it and write
 * it while it is in cache.
 * needs:  fused kernels (fuse.c)
 * keeps:  results: every row is processed in the same order as before
 * makes:  kernels whose first `n_shared` axes are one loop; tensors local to that loop
 *
 * A product can only be the first part of such a kernel, because it reads whole operands. The rows
 * are those of its result, so the axis that selects a row comes first. */
#include "device/cost.h"
#include "synth/compose.h"

typedef struct joining {
    oi_unit *u;
    uint32_t graph;
    oi_stmts *list;
} joining;

/* -- what may share a loop -- */

#define PRODUCT_ROWS 16 /* with fewer rows, a loop that serialises the others does not pay */

static bool is_row_nest(const oi_snest *n)
{
    return !n->is_serial && !n->is_scan && !n->combines_out && n->n_axes > 0 &&
           !n->axes[0].is_reduced && n->axes[0].extent > 1;
}

static bool is_row_kernel(const oi_skernel *k)
{
    bool fits = k->nests.n > 0 && !k->can_fail && !k->is_dynamic;
    for (size_t i = 0; i < k->nests.n; i++)
        fits &= is_row_nest(&k->nests.at[i]) &&
                k->nests.at[i].axes[0].extent == k->nests.at[0].axes[0].extent &&
                (i == 0 || k->nests.at[i].kind != OI_NEST_CONTRACT);
    return fits;
}

/* The dim of the tensor that the axis alone indexes, or OI_NO_ID. */
static uint32_t row_dim(const oi_unit *u, const oi_skernel *k, const oi_snest *n, const oi_sop *op,
                        uint32_t axis)
{
    const oi_tensor *t = &u->tensors.at[k->ports.at[op->port].tensor];
    for (uint32_t d = 0; !op->is_flat && d < t->rank; d++) {
        const oi_nest_coord *c = &op->at[d];
        bool alone = c->step[axis] == 1 && c->base == 0 && c->index == OI_NEST_NONE &&
                     c->bend == OI_BEND_NONE;
        for (uint32_t a = 0; a < n->n_axes; a++)
            alone &= a == axis || c->step[a] == 0;
        if (alone)
            return d;
    }
    return OI_NO_ID;
}

/* Whether the kernel accesses the tensor only within the row of the axis' current iteration; *dim
 * is the row dim, the same in all accesses. */
static bool stays_in_row(const oi_unit *u, const oi_skernel *k, uint32_t tensor, uint32_t axis,
                         uint32_t *dim)
{
    for (size_t m = 0; m < k->nests.n; m++)
        for (int post = 0; post < 2; post++) {
            const oi_snest *n = &k->nests.at[m];
            const oi_sops *ops = post ? &n->post : &n->pre;
            for (size_t i = 0; i < ops->n; i++) {
                const oi_sop *op = &ops->at[i];
                if (!oi_sop_is_access(op) || k->ports.at[op->port].tensor != tensor)
                    continue;
                uint32_t own = row_dim(u, k, n, op, axis);
                if (own == OI_NO_ID || (*dim != OI_NO_ID && *dim != own))
                    return false;
                *dim = own;
            }
        }
    return true;
}

static bool mentions(const oi_skernel *k, uint32_t tensor, bool writes_only)
{
    for (size_t i = 0; i < k->ports.n; i++)
        if (k->ports.at[i].tensor == tensor && (!writes_only || k->ports.at[i].is_written))
            return true;
    return false;
}

/* Whether every tensor that one writes and the other accesses is accessed row by row. */
static bool may_join(const joining *j, const oi_skernel *a, const oi_skernel *b)
{
    bool linked = false;
    for (int swap = 0; swap < 2; swap++) {
        const oi_skernel *x = swap ? b : a, *y = swap ? a : b;
        for (size_t i = 0; i < x->ports.n; i++) {
            uint32_t t = x->ports.at[i].tensor, dim = OI_NO_ID;
            if (!x->ports.at[i].is_written || !mentions(y, t, false))
                continue;
            if (x->ports.at[i].n_entry || !stays_in_row(j->u, x, t, 0, &dim) ||
                !stays_in_row(j->u, y, t, 0, &dim))
                return false;
            linked = true;
        }
    }
    return linked;
}

/* -- rows of a product -- */

/* The first instruction of the list that accesses the tensor. */
static const oi_sop *access_to(const oi_skernel *k, const oi_sops *ops, uint32_t tensor)
{
    for (size_t i = 0; i < ops->n; i++)
        if (oi_sop_is_access(&ops->at[i]) && k->ports.at[ops->at[i].port].tensor == tensor)
            return &ops->at[i];
    return NULL;
}

/* For a product A and the single nest B that reads its result: the longest axis that both have
 * becomes the first in both. */
static void align_rows(joining *j, oi_skernel *a, oi_skernel *b)
{
    if (a->nests.n != 1 || b->nests.n != 1 || a->nests.at[0].kind != OI_NEST_CONTRACT)
        return;
    oi_snest *x = &a->nests.at[0], *y = &b->nests.at[0];
    const oi_sop *store = x->post.n ? &x->post.at[x->post.n - 1] : NULL;
    if (!store || store->kind != OI_SOP_STORE || store->is_flat)
        return;
    uint32_t tensor = a->ports.at[store->port].tensor, of_x = 0, of_y = 0;
    const oi_sop *load = access_to(b, &y->pre, tensor);
    int64_t longest = PRODUCT_ROWS - 1;
    for (uint32_t d = 0; load && !load->is_flat && d < j->u->tensors.at[tensor].rank; d++) {
        uint32_t p = oi_coord_axis(x, &store->at[d]), q = oi_coord_axis(y, &load->at[d]);
        if (p == OI_NO_ID || q == OI_NO_ID || x->axes[p].extent <= longest ||
            x->axes[p].extent != y->axes[q].extent)
            continue;
        longest = x->axes[p].extent;
        of_x = p;
        of_y = q;
    }
    if (longest >= PRODUCT_ROWS && is_row_nest(x) && is_row_nest(y)) {
        oi_nest_bring(j->u, a, x, of_x, 0);
        oi_nest_bring(j->u, b, y, of_y, 0);
    }
}

/* -- joining -- */

static void take_ports(joining *j, oi_skernel *to, oi_skernel *from)
{
    uint32_t *ids = oi_arena_alloc(j->u->arena, (from->ports.n + 1) * sizeof *ids);
    for (size_t i = 0; i < from->ports.n; i++) {
        oi_port *p = &from->ports.at[i];
        size_t k = 0;
        while (k < to->ports.n &&
               (to->ports.at[k].tensor != p->tensor || p->n_entry || to->ports.at[k].n_entry))
            k++;
        if (k == to->ports.n)
            *OI_PUSH(j->u->arena, &to->ports) = *p;
        to->ports.at[k].is_written |= p->is_written;
        ids[i] = (uint32_t)k;
    }
    uint32_t n_scalars = (uint32_t)to->scalars.n;
    for (size_t i = 0; i < from->scalars.n; i++) {
        oi_kscalar s = from->scalars.at[i];
        s.name = oi_arena_printf(j->u->arena, "%s_%zu", s.name, to->scalars.n);
        *OI_PUSH(j->u->arena, &to->scalars) = s;
    }
    for (size_t m = 0; m < from->nests.n; m++) {
        oi_snest n = from->nests.at[m];
        for (int post = 0; post < 2; post++) {
            oi_sops *ops = post ? &n.post : &n.pre;
            for (size_t i = 0; i < ops->n; i++) {
                ops->at[i].port = oi_sop_is_access(&ops->at[i]) ? ids[ops->at[i].port] : 0;
                ops->at[i].call = oi_call_shifted(j->u, ops->at[i].call, n_scalars);
            }
        }
        n.reduce = oi_call_shifted(j->u, n.reduce, n_scalars);
        *OI_PUSH(j->u->arena, &to->nests) = n;
    }
    from->nests.n = 0; /* its instructions belong to `to` now */
    for (size_t i = 0; i < from->nodes.n; i++)
        if (to->nodes.at[to->nodes.n - 1] != from->nodes.at[i])
            *OI_PUSH(j->u->arena, &to->nodes) = from->nodes.at[i];
}

/* Less work than half of what is worth several threads. */
static bool is_small(const oi_unit *u, const oi_snest *n)
{
    uint64_t all = 1;
    for (uint32_t a = 0; a < n->n_axes; a++)
        all *= (uint64_t)n->axes[a].extent;
    return all <= (uint64_t)oi_cost_share(u->target) / 2 && !n->is_serial && !n->combines_out &&
           n->kind != OI_NEST_CONTRACT;
}

/* A reduction to one number and its consumer, one after the other: the norm of a single row. */
static bool is_one_row(const oi_unit *u, const oi_skernel *a, const oi_skernel *b)
{
    bool fits = a->nests.n && b->nests.n == 1 && a->nests.at[0].kind == OI_NEST_REDUCE &&
                !a->n_shared && is_small(u, &b->nests.at[0]);
    for (uint32_t x = 0; fits && x < a->nests.at[0].n_axes; x++)
        fits = a->nests.at[0].axes[x].is_reduced;
    for (size_t i = 0; fits && i < a->nests.n; i++)
        fits = is_small(u, &a->nests.at[i]);
    bool linked = false;
    for (size_t i = 0; fits && i < a->ports.n; i++)
        linked |= a->ports.at[i].is_written && mentions(b, a->ports.at[i].tensor, false);
    return fits && linked;
}

/* Groups of invocations take a shared place at a time: other results of a sum would be computed in
 * turn, instead of by invocations of their own. */
static bool takes_turns(const oi_unit *u, const oi_skernel *k)
{
    bool turns = false;
    for (size_t i = 0; u->can.group_size && i < k->nests.n; i++)
        for (uint32_t a = 1;
             k->nests.at[i].kind == OI_NEST_REDUCE && a < oi_nest_outputs(&k->nests.at[i]); a++)
            turns |= k->nests.at[i].axes[a].extent > 1;
    return turns;
}

static bool may_share(joining *j, oi_skernel *a, oi_skernel *b)
{
    uint64_t most = j->u->target->preferences.max_kernel_ops;
    if (a->can_fail || b->can_fail || a->is_dynamic || b->is_dynamic ||
        (most && a->nodes.n + b->nodes.n > most) || takes_turns(j->u, a) || takes_turns(j->u, b))
        return false;
    align_rows(j, a, b);
    bool fits = is_row_kernel(a) && is_row_kernel(b) && b->nests.at[0].kind != OI_NEST_CONTRACT &&
                a->nests.at[0].axes[0].extent == b->nests.at[0].axes[0].extent;
    if (fits && a->nests.at[0].kind == OI_NEST_CONTRACT)
        fits = a->nests.at[0].axes[0].extent >= PRODUCT_ROWS;
    return fits && may_join(j, a, b);
}

static bool may_follow(const joining *j, const oi_skernel *a, const oi_skernel *b)
{
    uint64_t most = j->u->target->preferences.max_kernel_ops;
    return !a->can_fail && !b->can_fail && !a->is_dynamic && !b->is_dynamic &&
           (!most || a->nodes.n + b->nodes.n <= most) && is_one_row(j->u, a, b);
}

#define REACH 4 /* statements between two kernels that may still be joined */

/* Joins a kernel shortly after statement i to it. Statement i + 1 is then the one that was i: the
 * few statements up to the other kernel move, not the many behind it. */
static bool join_next(joining *j, oi_stmts *list, size_t i)
{
    oi_skernel *a = &j->u->kernels.at[list->at[i].kernel];
    for (size_t k = i + 1; k < list->n && k <= i + 1 + REACH; k++) {
        if (list->at[k].kind != OI_STMT_KERNEL)
            return false;
        oi_skernel *b = &j->u->kernels.at[list->at[k].kernel];
        if (!oi_stmts_may_pass(j->u, j->graph, list, k, i + 1, k, false))
            continue;
        bool shares = may_share(j, a, b);
        if (!shares && !may_follow(j, a, b))
            continue;
        take_ports(j, a, b);
        a->n_shared = shares;
        b->is_used = false;
        memmove(&list->at[i + 1], &list->at[i], (k - i) * sizeof *list->at);
        return true;
    }
    return false;
}

static void join_list(joining *j, oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].kind == OI_STMT_LOOP)
            join_list(j, &list->at[i].body);
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        while (list->at[i].kind == OI_STMT_KERNEL && join_next(j, list, i))
            i++;
        list->at[n++] = list->at[i];
    }
    list->n = n;
}

/* -- more shared axes -- */

#define LEAST_ROW 64 /* iterations of an inner loop: shorter ones leave vectors empty */

/* One nest writes it, another one reads it. */
static bool is_passed_on(const oi_skernel *k, uint32_t tensor)
{
    return mentions(k, tensor, true) && oi_kernel_reads(k, tensor);
}

/* Whether one place of the axis at a time leaves the nest loops over contiguous elements. */
static bool leaves_rows(const oi_unit *u, const oi_skernel *k, const oi_snest *n, uint32_t axis)
{
    int64_t rest = 1;
    for (uint32_t a = axis + 1; a < n->n_axes; a++)
        rest *= n->axes[a].extent;
    bool leaves = rest >= LEAST_ROW;
    for (int post = 0; post < 2; post++) {
        const oi_sops *ops = post ? &n->post : &n->pre;
        for (size_t i = 0; leaves && i < ops->n; i++) {
            const oi_sop *op = &ops->at[i];
            if (oi_sop_is_access(op) && !is_passed_on(k, k->ports.at[op->port].tensor))
                leaves = oi_sop_is_affine(u, k, op) && oi_sop_number(u, k, op).step[axis] != 1;
        }
    }
    return leaves;
}

/* The axis must be the same in all nests, and what one nest writes and another reads must stay
 * within a place of it. */
static bool may_share_axis(const oi_unit *u, const oi_skernel *k, uint32_t axis)
{
    for (size_t m = 0; m < k->nests.n; m++) {
        const oi_snest *n = &k->nests.at[m];
        if (n->kind == OI_NEST_CONTRACT || n->n_axes <= axis + 1 || n->axes[axis].is_reduced ||
            n->axes[axis].extent != k->nests.at[0].axes[axis].extent || !leaves_rows(u, k, n, axis))
            return false;
    }
    for (size_t p = 0; p < k->ports.n; p++) {
        uint32_t dim = OI_NO_ID;
        if (is_passed_on(k, k->ports.at[p].tensor) &&
            !stays_in_row(u, k, k->ports.at[p].tensor, axis, &dim))
            return false;
    }
    return true;
}

/* Elements that the largest nest visits for one place of its shared axes. */
static uint64_t size_of_iteration(const oi_skernel *k)
{
    uint64_t most = 0;
    for (size_t m = 0; m < k->nests.n; m++) {
        uint64_t all = 1;
        for (uint32_t a = k->n_shared; a < k->nests.at[m].n_axes; a++)
            all *= (uint64_t)k->nests.at[m].axes[a].extent;
        most = all > most ? all : most;
    }
    return most;
}

/* What one nest writes should still be in the first cache when the next one reads it. */
static void share_more(oi_unit *u, oi_skernel *k)
{
    const uint64_t near = oi_cost_near(u->target) / sizeof(float);
    while (u->can.vectors && k->n_shared && size_of_iteration(k) > near &&
           may_share_axis(u, k, k->n_shared))
        k->n_shared++;
}

/* -- tensors that only such a kernel uses shrink to a row -- */

static bool fits_stack(const oi_unit *u, const oi_tensor *t, uint64_t bytes)
{
    return bytes <= u->can.private_bytes && oi_dtype_bits(t->dtype) >= 8;
}

/* dims: those that the shared axes index. */
static void make_local(oi_unit *u, oi_skernel *k, uint32_t tensor, const uint32_t *dims)
{
    oi_tensor *t = &u->tensors.at[tensor];
    uint64_t row = t->size_bytes;
    for (uint32_t a = 0; a < k->n_shared; a++)
        row /= (uint64_t)t->dims[dims[a]];
    if (!fits_stack(u, t, row))
        return;
    for (uint32_t a = k->n_shared; a-- > 0;)
        oi_kernel_drop_dim(u, k, tensor, dims[a]);
    t->size_bytes = row;
    t->space = OI_SPACE_LOCAL;
    t->start = OI_START_NONE;
}

static void shrink_port(oi_unit *u, oi_skernel *k, const oi_tally *uses, uint32_t tensor)
{
    oi_tensor *t = &u->tensors.at[tensor];
    uint32_t dims[OI_NEST_AXES];
    if (t->space != OI_SPACE_ARENA || t->var || uses[tensor].all != 1)
        return;
    if (k->n_shared) {
        bool stays = true;
        for (uint32_t a = 0; stays && a < k->n_shared; a++) {
            dims[a] = OI_NO_ID;
            stays = stays_in_row(u, k, tensor, a, &dims[a]) && dims[a] != OI_NO_ID &&
                    (a == 0 || dims[a] > dims[a - 1]);
        }
        if (stays)
            make_local(u, k, tensor, dims);
    } else if (k->nests.n > 1 && fits_stack(u, t, t->size_bytes)) {
        t->space = OI_SPACE_LOCAL;
        t->start = OI_START_NONE;
    }
}

static void shrink(oi_unit *u, uint32_t graph)
{
    const oi_tally *uses = oi_graph_tally(u, graph);
    for (size_t k = 0; k < u->kernels.n; k++) {
        oi_skernel *kernel = &u->kernels.at[k];
        if (kernel->is_used && kernel->graph == graph)
            share_more(u, kernel);
        for (size_t p = 0; kernel->is_used && kernel->graph == graph && p < kernel->ports.n; p++)
            shrink_port(u, kernel, uses, kernel->ports.at[p].tensor);
    }
}

oi_status oi_pass_rows(oi_unit *u)
{
    if (u->per_node || !u->target->preferences.prefer_fusion)
        return OI_OK;
    for (uint32_t g = 0; g < u->graphs.n; g++) {
        joining j = {.u = u, .graph = g};
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            if (u->graphs.at[g].blocks[b].is_used)
                join_list(&j, &u->graphs.at[g].blocks[b].stmts);
        shrink(u, g);
    }
    return OI_OK;
}
