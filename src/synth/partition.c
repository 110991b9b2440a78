/* partition.c: which threads run what, and where they wait for each other.
 * needs:  kernels as they will be, every tensor's place in memory
 * keeps:  statements, their order, every result bit for bit: one thread computes each element
 * makes:  oi_skernel.partition, oi_stmt.is_parallel and .waits
 *
 * All threads walk through the step together. A kernel with enough to do is split along one of its
 * output axes; everything else the first thread does alone. Threads wait only where a statement
 * touches what another thread may still be working on: then all that was done before is finished.
 * Two statements that are split alike, over the same dim of the same memory, need no wait between
 * them: each thread meets only its own part. A small kernel between two that are split every thread
 * does for itself, on its stack, where one would have to wait before it and the others after it.
 * What else must be done by one alone, between two waits, the first does while the others still
 * wait, and they spend the time asking for the weights they will read next. Consumers'
 * graphs stay with one thread. */
#include "device/cost.h"
#include "synth/pass.h"

#define OWN 16384 /* bytes on a thread's stack that a tensor of its own may take */

typedef enum who { ONE, ALL, PARTS } who;

/* What a statement does to memory. */
typedef struct access {
    uint32_t tensor;
    bool writes;
    who who;
    uint32_t dim;           /* PARTS: each touches only its own places of this dim, or OI_NO_ID */
    oi_partition partition; /* in places of that dim */
} access;
typedef OI_VEC(access) accesses;

/* The kernel whose parts wrote a tensor, in that era. */
typedef struct written {
    uint32_t kernel, era;
} written;

typedef struct sharing {
    oi_unit *u;
    uint32_t graph;
    written *writers; /* by tensor */
    uint32_t era;     /* threads have waited for each other since the one before */
    accesses pending; /* since all threads last met */
    bool changed;     /* a wait was added */
    bool moved;       /* something is shared otherwise than before */
    bool must_meet;   /* what one thread did alone may have failed */
} sharing;

/* -- splitting a kernel -- */

static uint64_t work_of(const oi_unit *u, const oi_skernel *k)
{
    uint64_t all = k->recipe ? oi_cost_elements(u->target, k->plan->macs, k->plan->is_int8) : 0;
    for (size_t i = 0; k->recipe && i < k->ports.n; i++)
        all += u->tensors.at[k->ports.at[i].tensor].size_bytes / 4;
    for (size_t i = 0; i < k->nests.n; i++) {
        uint64_t n = k->nests.at[i].pre.n + 1;
        for (uint32_t a = 0; a < k->nests.at[i].n_axes; a++)
            n *= (uint64_t)k->nests.at[i].axes[a].extent;
        all += n;
    }
    return all;
}

static bool stores_by_index(const oi_unit *u, const oi_skernel *k, const oi_sops *ops)
{
    for (size_t i = 0; i < ops->n; i++) {
        const oi_sop *op = &ops->at[i];
        uint32_t rank = op->is_flat ? 1 : u->tensors.at[k->ports.at[op->port].tensor].rank;
        for (uint32_t d = 0; op->kind == OI_SOP_STORE && d < rank; d++)
            if (op->at[d].index != OI_NEST_NONE)
                return true;
    }
    return false;
}

/* No nest looks at what another one of the kernel made, unless they loop together. */
static bool are_apart(const oi_skernel *k)
{
    bool are = true;
    for (size_t i = 0; k->nests.n > 1 && !k->n_shared && i < k->ports.n; i++)
        are = are && (!k->ports.at[i].is_written || !oi_kernel_reads(k, k->ports.at[i].tensor));
    return are;
}

/* Elements of less than a byte share it with their neighbours, which another part may write. */
static bool writes_bytes(const oi_unit *u, const oi_skernel *k)
{
    bool are = true;
    for (size_t i = 0; i < k->ports.n; i++)
        are = are && (!k->ports.at[i].is_written ||
                      oi_dtype_bits(u->tensors.at[k->ports.at[i].tensor].dtype) >= 8);
    return are;
}

static bool can_split(const oi_unit *u, const oi_skernel *k)
{
    bool can = !k->can_fail && !k->is_dynamic && are_apart(k) && writes_bytes(u, k);
    for (size_t i = 0; i < k->nests.n; i++) {
        const oi_snest *n = &k->nests.at[i];
        can = can && !n->is_serial && !n->combines_out && !stores_by_index(u, k, &n->pre) &&
              !stores_by_index(u, k, &n->post);
    }
    return can;
}

/* The outermost axis that is long enough for many threads, else the longest. */
static oi_partition best_axis(const oi_unit *u, const oi_skernel *k)
{
    const int64_t unit = oi_cost_unit(u->target);
    const oi_snest *n = &k->nests.at[0];
    uint32_t axes = k->n_shared;
    oi_partition best = {0, 0, 1, false};
    while (!k->n_shared && axes < n->n_axes && !n->axes[axes].is_reduced)
        axes++;
    axes -= !k->n_shared && axes == n->n_axes && n->order.unrolls_last;
    if (n->order.tile && !k->n_shared && axes > 1 && n->axes[axes - 1].extent <= n->order.tile)
        axes--; /* one strip is all of it */
    for (uint32_t a = 0; a < axes; a++)
        if (n->axes[a].extent > best.extent && best.extent < unit)
            best = (oi_partition){a, n->axes[a].extent, 1, false};
    if (best.extent < 2)
        return (oi_partition){0, 0, 1, false};
    best.unit = best.extent >= 4 * unit ? unit : 1;
    if (n->order.tile && n->kind != OI_NEST_MAP && !k->n_shared && best.axis + 1 == axes)
        best.unit = n->order.tile;
    return best;
}

/* -- dims -- */

/* Whether the coordinates are places i * p ... i * p + p - 1 of a dim, where i is the position that
 * is split and p the dim's share, and no other dim has to do with it. */
static uint32_t dim_of(const oi_tensor *t, const oi_snest *n, const oi_sop *op, oi_partition split)
{
    const uint32_t first = split.axis, last = first + split.is_pair;
    uint32_t found = OI_NO_ID;
    if (op->is_flat || op->kind == OI_SOP_INDEX)
        return OI_NO_ID;
    for (uint32_t d = 0; d < t->rank; d++) {
        const oi_nest_coord *c = &op->at[d];
        const int64_t places = t->dims[d] / split.extent;
        int64_t most = c->base;
        if (c->step[first] == 0 && c->step[last] == 0)
            continue;
        if (found != OI_NO_ID || c->step[last] != places ||
            (split.is_pair && c->step[first] != places * n->axes[last].extent) ||
            places * split.extent != t->dims[d] || c->base < 0 || c->bend ||
            c->index != OI_NEST_NONE)
            return OI_NO_ID;
        for (uint32_t a = 0; a < n->n_axes; a++) {
            const bool is_split = a == first || a == last;
            if (!is_split && c->step[a] < 0)
                return OI_NO_ID;
            most += !is_split ? c->step[a] * (n->axes[a].extent - 1) : 0;
        }
        if (most >= places)
            return OI_NO_ID;
        found = d;
    }
    return found;
}

/* The dim along which parts of the kernel touch the tensor; OI_NO_ID: any part may touch all. */
static uint32_t split_dim(const oi_unit *u, const oi_skernel *k, uint32_t tensor)
{
    const oi_tensor *t = &u->tensors.at[tensor];
    uint32_t found = OI_NO_ID;
    bool any = false;
    const bool alike = k->recipe && k->plan->reads_partitioned && k->plan->extent > 0 &&
                       k->plan->read_dim < t->rank &&
                       t->dims[k->plan->read_dim] % k->plan->extent == 0;
    for (size_t i = 0; k->recipe && i < k->ports.n; i++)
        if (k->ports.at[i].tensor == tensor)
            return k->ports.at[i].is_written && !k->plan->is_scattered ? k->plan->split_dim
                   : alike                                             ? k->plan->read_dim
                                                                       : OI_NO_ID;
    for (size_t n = 0; n < k->nests.n; n++)
        for (int post = 0; post < 2; post++) {
            const oi_sops *ops = post ? &k->nests.at[n].post : &k->nests.at[n].pre;
            for (size_t i = 0; i < ops->n; i++) {
                const oi_sop *op = &ops->at[i];
                if (!op->at || op->kind == OI_SOP_PLACE || k->ports.at[op->port].tensor != tensor)
                    continue;
                uint32_t dim = dim_of(t, &k->nests.at[n], op, k->partition);
                if (dim == OI_NO_ID || (any && dim != found))
                    return OI_NO_ID;
                found = dim;
                any = true;
            }
        }
    return found;
}

/* The split in places of that dim. */
static oi_partition places_of(const oi_unit *u, const oi_skernel *k, uint32_t tensor, uint32_t dim)
{
    oi_partition s = k->partition;
    if (dim != OI_NO_ID && s.extent && u->tensors.at[tensor].dims[dim] % s.extent == 0) {
        s.unit *= u->tensors.at[tensor].dims[dim] / s.extent;
        s.extent = u->tensors.at[tensor].dims[dim];
    }
    return s;
}

/* Nests that loop one after the other share the axis, and each part stores only its own places. */
static bool are_alike(const oi_unit *u, const oi_skernel *k)
{
    const uint32_t a = k->partition.axis;
    bool are = true;
    for (size_t i = 0; i < k->nests.n; i++) {
        const oi_snest *n = &k->nests.at[i];
        are = are && a + n->order.unrolls_last < n->n_axes && !n->axes[a].is_reduced &&
              !n->order.tile && n->axes[a].extent == k->partition.extent;
    }
    for (size_t i = 0; are && i < k->ports.n; i++)
        are = !k->ports.at[i].is_written || split_dim(u, k, k->ports.at[i].tensor) != OI_NO_ID;
    return are;
}

static void split_kernel(const oi_unit *u, oi_skernel *k)
{
    k->partition = (oi_partition){0, 0, 1, false};
    if (k->rows.extent)
        return;
    if (work_of(u, k) < (uint64_t)oi_cost_share(u->target) && !u->partition_all)
        return;
    if (k->recipe && writes_bytes(u, k))
        k->partition = (oi_partition){0, k->plan->extent, k->plan->unit ? k->plan->unit : 1, false};
    else if (k->nests.n && can_split(u, k))
        k->partition = best_axis(u, k);
    if (k->partition.extent && k->nests.n > 1 && !k->n_shared && !are_alike(u, k))
        k->partition.extent = 0;
    if (k->partition.extent <= k->partition.unit)
        k->partition.extent = 0;
}

/* Positions of a kernel as those places are; false: units would not be whole `unit`s of them. */
static bool split_as(oi_skernel *k, oi_partition places, uint32_t axis, int64_t extent,
                     int64_t unit, bool is_pair)
{
    const int64_t each = extent > 0 ? places.extent / extent : 0; /* places of a position */
    if (each == 0 || each * extent != places.extent || places.unit % (each * unit) != 0)
        return false;
    k->partition = (oi_partition){axis, extent, places.unit / each, is_pair};
    return true;
}

/* Along an axis of its only nest, or an axis and the next one. */
static bool split_along(oi_skernel *k, oi_partition places, uint32_t a, bool is_pair)
{
    const oi_nest_axis *axes = k->nests.at[0].axes;
    const int64_t inner = is_pair ? axes[a + 1].extent : 1;
    return (!is_pair || (axes[a].extent > 1 && inner > 1)) &&
           split_as(k, places, a, axes[a].extent * inner, 1, is_pair);
}

/* Where a kernel reads what another has just written in parts, it is split alike if it can be: then
 * no thread waits in between. */
static bool follow(const oi_unit *u, oi_skernel *k, uint32_t tensor, const oi_skernel *writer)
{
    uint32_t dim = split_dim(u, writer, tensor);
    const oi_partition old = k->partition, places = places_of(u, writer, tensor, dim);
    if (k->recipe && k->plan->reads_partitioned && dim == k->plan->read_dim)
        return split_as(k, places, 0, k->plan->extent, k->plan->unit, false);
    if (dim == OI_NO_ID || k->recipe || k->nests.n != 1 || k->n_shared || !can_split(u, k) ||
        k->nests.at[0].kind != OI_NEST_MAP)
        return false;
    const oi_snest *n = &k->nests.at[0];
    for (uint32_t i = 0; i < 2 * n->n_axes; i++) {
        const uint32_t a = i % n->n_axes;
        const bool is_pair = i >= n->n_axes;
        if (a + is_pair + n->order.unrolls_last < n->n_axes && (!is_pair || !n->order.jam) &&
            split_along(k, places, a, is_pair) && split_dim(u, k, tensor) == dim)
            return true;
    }
    k->partition = old;
    return false;
}

/* -- what is shared -- */

static bool mark_list(sharing *s, oi_stmts *list);

static bool is_shared_block(sharing *s, uint32_t block)
{
    return block != OI_NO_ID && s->u->graphs.at[s->graph].blocks[block].is_parallel;
}

static bool mark_kernel(sharing *s, uint32_t kernel)
{
    oi_skernel *k = &s->u->kernels.at[kernel];
    const oi_partition old = k->partition;
    for (size_t i = 0; i < k->ports.n; i++) {
        const written *w = &s->writers[k->ports.at[i].tensor];
        bool reads = !k->ports.at[i].is_written || oi_kernel_reads(k, k->ports.at[i].tensor);
        if (reads && w->era == s->era && w->kernel != kernel &&
            follow(s->u, k, k->ports.at[i].tensor, &s->u->kernels.at[w->kernel]))
            break;
    }
    for (size_t i = 0; i < k->ports.n; i++)
        if (k->ports.at[i].is_written)
            s->writers[k->ports.at[i].tensor] = (written){kernel, s->era};
    s->moved |= memcmp(&old, &k->partition, sizeof old) != 0;
    return k->partition.extent > 0;
}

/* Each thread takes turns for its own part of the last rows, where rings are its own. */
static bool mark_turns(sharing *s, oi_stmt *x)
{
    bool are_own = s->u->graphs.at[s->graph].program->n_consumers == 0;
    for (size_t i = 0; i + 1 < x->body.n; i++) {
        const oi_skernel *k = &s->u->kernels.at[x->body.at[i].kernel];
        for (size_t p = 0; p < k->ports.n; p++)
            are_own &=
                !k->ports.at[p].is_written || s->u->tensors.at[k->ports.at[p].tensor].is_private;
    }
    for (size_t i = 0; i < x->body.n; i++)
        x->body.at[i].is_parallel = are_own;
    s->era++;
    return are_own;
}

static bool mark_stmt(sharing *s, oi_stmt *x)
{
    const oi_pnode *n = x->node;
    if (x->kind == OI_STMT_PIPELINE)
        return mark_turns(s, x);
    if (x->kind == OI_STMT_KERNEL)
        return mark_kernel(s, x->kernel);
    if (x->kind == OI_STMT_LOOP)
        return mark_list(s, &x->body);
    return x->kind == OI_STMT_BRANCH &&
           (is_shared_block(s, n->as.branch.then_block) ||
            (n->as.branch.cond != OI_NO_ID && is_shared_block(s, n->as.branch.else_block)));
}

/* All threads take a branch together, whatever stands on the other side. */
static void mark_sides(sharing *s, const oi_pnode *n)
{
    oi_sblock *blocks = s->u->graphs.at[s->graph].blocks;
    blocks[n->as.branch.then_block].is_parallel = true;
    if (n->as.branch.cond != OI_NO_ID)
        blocks[n->as.branch.else_block].is_parallel = true;
}

static bool mark_list(sharing *s, oi_stmts *list)
{
    bool any = false;
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *x = &list->at[i];
        const bool was_shared = x->is_parallel;
        x->is_parallel = mark_stmt(s, x);
        any |= x->is_parallel;
        s->moved |= x->is_parallel != was_shared;
        s->era += !x->is_parallel; /* threads wait around it anyway */
        if (x->is_parallel && x->kind == OI_STMT_BRANCH)
            mark_sides(s, x->node);
    }
    return any;
}

/* -- what every thread does for itself -- */

static void count_reads(void *ctx, const oi_mention *m)
{
    uint32_t *counts = ctx;
    if (m->port && !m->writes)
        counts[m->tensor]++;
}

/* Nobody but kernels that all threads run, later in the list, looks at what statement `at` writes.
 */
static bool is_read_by_all(sharing *s, const oi_stmts *list, size_t at, const oi_tally *tally)
{
    const oi_skernel *k = &s->u->kernels.at[list->at[at].kernel];
    uint32_t *counts = oi_arena_alloc(s->u->arena, (s->u->tensors.n + 1) * sizeof *counts);
    bool is = true;
    for (size_t i = at + 1; i < list->n; i++)
        if (list->at[i].is_parallel && list->at[i].kind == OI_STMT_KERNEL)
            oi_stmt_mentions(s->u, s->graph, &list->at[i], count_reads, counts);
    for (size_t i = 0; i < k->ports.n; i++) {
        const uint32_t t = k->ports.at[i].tensor;
        if (k->ports.at[i].is_written && s->u->tensors.at[t].space != OI_SPACE_LOCAL)
            is = is && tally[t].writes == 1 && tally[t].all == counts[t] + 1;
    }
    return is;
}

static bool can_own(const oi_unit *u, const oi_skernel *k)
{
    bool can = !k->can_fail && !k->is_dynamic && k->lengths.n == 0 &&
               work_of(u, k) < (uint64_t)oi_cost_share(u->target);
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_port *p = &k->ports.at[i];
        const oi_tensor *t = &u->tensors.at[p->tensor];
        can = can && (!p->is_written || t->space == OI_SPACE_LOCAL ||
                      (t->space == OI_SPACE_ARENA && t->start == OI_START_NONE && t->rank > 0 &&
                       !p->n_entry && !t->n_table && !t->run_dims && oi_dtype_bits(t->dtype) >= 8 &&
                       t->size_bytes > 0 && t->size_bytes <= OWN));
    }
    return can;
}

/* Statements first ... last - 1 become every thread's own, if all of them can. */
static void own_run(sharing *s, oi_stmts *list, size_t first, size_t last, const oi_tally *tally)
{
    size_t i = last;
    uint64_t work = 0;
    for (; i > first; i--) { /* the later ones are read by whoever reads the earlier ones */
        oi_stmt *x = &list->at[i - 1];
        if (x->kind != OI_STMT_KERNEL || !can_own(s->u, &s->u->kernels.at[x->kernel]) ||
            !is_read_by_all(s, list, i - 1, tally))
            break;
        work += work_of(s->u, &s->u->kernels.at[x->kernel]);
        x->is_parallel = true;
    }
    const bool all = i == first && work < (uint64_t)oi_cost_share(s->u->target);
    for (; i < last; i++) {
        list->at[i].is_parallel = all;
        const oi_skernel *k = &s->u->kernels.at[list->at[i].kernel];
        for (size_t p = 0; all && p < k->ports.n; p++) {
            oi_tensor *t = &s->u->tensors.at[k->ports.at[p].tensor];
            t->is_private |= k->ports.at[p].is_written && t->space == OI_SPACE_ARENA;
        }
    }
}

/* Between shared neighbours: else one thread would do it beside others of its own anyway. */
static void mark_owned(sharing *s, oi_stmts *list, const oi_tally *tally)
{
    for (size_t i = 0, end; i < list->n; i = end + 1) {
        for (end = i; end < list->n && !list->at[end].is_parallel; end++) {
        }
        if (end == list->n)
            return;
        own_run(s, list, i, end, tally);
        if (list->at[end].kind == OI_STMT_LOOP)
            mark_owned(s, &list->at[end].body, tally);
    }
}

/* -- conflicts -- */

/* A place in memory; tensors of different spaces never meet. */
static bool same_memory(const oi_unit *u, uint32_t a, uint32_t b)
{
    a = u->tensors.at[a].space == OI_SPACE_VIEW ? u->tensors.at[a].from : a;
    b = u->tensors.at[b].space == OI_SPACE_VIEW ? u->tensors.at[b].from : b;
    const oi_tensor *x = &u->tensors.at[a], *y = &u->tensors.at[b];
    if (a == b)
        return true;
    return x->space == OI_SPACE_ARENA && y->space == OI_SPACE_ARENA &&
           x->offset < y->offset + oi_tensor_bytes(y) && y->offset < x->offset + oi_tensor_bytes(x);
}

static bool same_shape(const oi_tensor *x, const oi_tensor *y)
{
    return x->offset == y->offset && x->rank == y->rank && x->n_table == y->n_table &&
           oi_dtype_bits(x->dtype) == oi_dtype_bits(y->dtype) &&
           memcmp(x->dims, y->dims, x->rank * sizeof *x->dims) == 0;
}

static bool conflict(const oi_unit *u, const access *a, const access *b)
{
    if (!(a->writes || b->writes) || !same_memory(u, a->tensor, b->tensor))
        return false;
    if (a->who == ONE && b->who == ONE)
        return false;
    bool alike = a->who == PARTS && b->who == PARTS && a->dim == b->dim && a->dim != OI_NO_ID &&
                 a->partition.extent == b->partition.extent &&
                 a->partition.unit == b->partition.unit &&
                 same_shape(&u->tensors.at[a->tensor], &u->tensors.at[b->tensor]);
    return !alike;
}

/* -- what a statement touches -- */

typedef struct collecting {
    sharing *s;
    accesses list;
    who who;
} collecting;

/* The pointer to what was lent is each thread's own; lengths of the run are found by the first. */
static void collect(void *ctx, const oi_mention *m)
{
    collecting *c = ctx;
    if (m->tensor == OI_NO_ID)
        return;
    oi_space space = c->s->u->tensors.at[m->tensor].space;
    if (c->s->u->tensors.at[m->tensor].is_private || space == OI_SPACE_WEIGHTS ||
        space == OI_SPACE_LOCAL || space == OI_SPACE_NONE ||
        (space == OI_SPACE_VIEW && m->writes && !c->s->u->tensors.at[m->tensor].run_dims))
        return;
    *OI_PUSH(c->s->u->arena, &c->list) =
        (access){.tensor = m->tensor, .writes = m->writes, .who = c->who, .dim = OI_NO_ID};
}

/* Numbers and entries are looked at by all threads, elements by parts. */
static void collect_kernel(void *ctx, const oi_mention *m)
{
    collecting *c = ctx;
    size_t n = c->list.n;
    collect(ctx, m);
    if (n == c->list.n || !m->port)
        return;
    c->list.at[n].who = PARTS;
}

static accesses accesses_of(sharing *s, oi_stmt *x)
{
    collecting c = {.s = s, .who = x->is_parallel ? ALL : ONE};
    bool parts = x->is_parallel && x->kind == OI_STMT_KERNEL &&
                 s->u->kernels.at[x->kernel].partition.extent > 0;
    oi_stmt_mentions(s->u, s->graph, x, parts ? collect_kernel : collect, &c);
    if (!x->is_parallel ||
        x->kind == OI_STMT_PIPELINE) /* what stands inside is not walked through */
        oi_stmts_mentions(s->u, s->graph, &x->body, collect, &c);
    for (size_t i = 0; parts && i < c.list.n; i++)
        if (c.list.at[i].who == PARTS) {
            const oi_skernel *k = &s->u->kernels.at[x->kernel];
            c.list.at[i].dim = split_dim(s->u, k, c.list.at[i].tensor);
            c.list.at[i].partition = places_of(s->u, k, c.list.at[i].tensor, c.list.at[i].dim);
        }
    return c.list;
}

/* A block that one thread calls: all that it touches. */
static void collect_block(sharing *s, uint32_t block, accesses *out)
{
    if (block == OI_NO_ID)
        return;
    const oi_sblock *b = &s->u->graphs.at[s->graph].blocks[block];
    collecting c = {.s = s, .list = *out, .who = ONE};
    oi_stmts_mentions(s->u, s->graph, &b->stmts, collect, &c);
    *out = c.list;
    for (size_t i = 0; i < b->stmts.n; i++)
        if (b->stmts.at[i].kind == OI_STMT_BRANCH) {
            collect_block(s, b->stmts.at[i].node->as.branch.then_block, out);
            collect_block(s, b->stmts.at[i].node->as.branch.else_block, out);
        }
}

/* -- walking -- */

static void walk(sharing *s, oi_stmts *list);

/* Entries of tables may be missing too. */
static bool can_fail(const oi_unit *u, const oi_stmt *x)
{
    if (x->kind == OI_STMT_SET)
        return x->a.n_entry > 0;
    if (x->kind != OI_STMT_KERNEL)
        return x->kind != OI_STMT_BARRIER && x->kind != OI_STMT_RETURN;
    const oi_skernel *k = &u->kernels.at[x->kernel];
    bool can = k->can_fail;
    for (size_t i = 0; i < k->ports.n; i++)
        can |= k->ports.at[i].n_entry > 0;
    return can;
}

static void meet(sharing *s, oi_stmt *x)
{
    s->changed |= !x->barrier;
    x->barrier = true;
    s->pending.n = 0;
    s->must_meet = false;
}

static void touch(sharing *s, oi_stmt *x, const accesses *own)
{
    bool clash = x->barrier || (s->must_meet && x->is_parallel);
    for (size_t i = 0; i < own->n && !clash; i++)
        for (size_t j = 0; j < s->pending.n && !clash; j++)
            clash = conflict(s->u, &own->at[i], &s->pending.at[j]);
    if (clash)
        meet(s, x);
    for (size_t i = 0; i < own->n; i++)
        *OI_PUSH(s->u->arena, &s->pending) = own->at[i];
    if (!x->is_parallel && can_fail(s->u, x))
        s->must_meet = true;
}

/* What either side left undone may be met afterwards. */
static void walk_branch(sharing *s, const oi_pnode *n)
{
    oi_sgraph *g = &s->u->graphs.at[s->graph];
    const uint32_t to[2] = {n->as.branch.then_block,
                            n->as.branch.cond == OI_NO_ID ? OI_NO_ID : n->as.branch.else_block};
    accesses before = {0}, after = {0};
    bool must_meet = s->must_meet, after_must = false;
    for (size_t i = 0; i < s->pending.n; i++)
        *OI_PUSH(s->u->arena, &before) = s->pending.at[i];
    for (int side = 0; side < 2; side++) {
        if (to[side] == OI_NO_ID)
            continue;
        s->pending.n = 0;
        s->must_meet = must_meet;
        for (size_t i = 0; i < before.n; i++)
            *OI_PUSH(s->u->arena, &s->pending) = before.at[i];
        walk(s, &g->blocks[to[side]].stmts);
        for (size_t i = 0; i < s->pending.n; i++)
            *OI_PUSH(s->u->arena, &after) = s->pending.at[i];
        after_must |= s->must_meet;
    }
    s->pending = after;
    s->must_meet = after_must;
}

static bool surely_runs(const oi_stmt *loop)
{
    int64_t from, to;
    const oi_pnode *n = loop->node;
    return oi_code_is_int(&n->as.loop.start, &from) && oi_code_is_int(&n->as.loop.end, &to) &&
           from < to;
}

/* The second round finds what one iteration leaves to the next. What was left before the loop comes
 * last: a barrier in every iteration may be enough for it. A loop that may run no time at all
 * leaves that as it was. */
static void walk_loop(sharing *s, oi_stmt *x)
{
    const accesses before = s->pending;
    const bool must_meet = s->must_meet;
    s->pending = (accesses){0};
    s->must_meet = false;
    walk(s, &x->body);
    walk(s, &x->body);
    for (size_t i = 0; i < before.n; i++)
        *OI_PUSH(s->u->arena, &s->pending) = before.at[i];
    s->must_meet |= must_meet;
    walk(s, &x->body);
    for (size_t i = 0; !surely_runs(x) && i < before.n; i++)
        *OI_PUSH(s->u->arena, &s->pending) = before.at[i];
    s->must_meet |= must_meet && !surely_runs(x);
}

static void walk(sharing *s, oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *x = &list->at[i];
        accesses own = accesses_of(s, x);
        if (!x->is_parallel && x->kind == OI_STMT_BRANCH) {
            collect_block(s, x->node->as.branch.then_block, &own);
            collect_block(s, x->node->as.branch.else_block, &own);
        }
        touch(s, x, &own);
        if (x->is_parallel && x->kind == OI_STMT_LOOP)
            walk_loop(s, x);
        else if (x->is_parallel && x->kind == OI_STMT_BRANCH)
            walk_branch(s, x->node);
    }
}

/* Where something lies that was lent, and whether a number is in its limits, every thread finds for
 * itself. */
static void mark_own(oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *x = &list->at[i];
        x->is_parallel |= x->is_view || (x->kind == OI_STMT_LIMIT && x->a.tensor == OI_NO_ID);
        if (x->is_parallel)
            mark_own(&x->body);
    }
}

/* -- what happens while threads wait -- */

/* What one does alone, the first does while the others wait: one wait is enough. */
static void mark_alone(oi_stmts *list)
{
    for (size_t i = 0, end; i < list->n; i = end) {
        mark_alone(&list->at[i].body);
        end = i + 1;
        if (list->at[i].is_parallel || !list->at[i].barrier)
            continue;
        while (end < list->n && !list->at[end].is_parallel && !list->at[end].barrier)
            end++;
        list->at[i].first_enters = end < list->n && list->at[end].barrier;
        if (list->at[i].first_enters)
            list->at[end].barrier = false;
    }
}

/* The first kernel of the list, from `at` on, that all threads read weights for, each its own. */
static bool find_next(const oi_unit *u, const oi_stmts *list, size_t at, uint32_t *found)
{
    for (; at < list->n; at++) {
        const oi_stmt *x = &list->at[at];
        if (x->kind == OI_STMT_LOOP || x->kind == OI_STMT_BRANCH)
            return false; /* what stands inside comes first */
        const oi_skernel *k = x->kind == OI_STMT_KERNEL ? &u->kernels.at[x->kernel] : NULL;
        *found = x->kernel;
        if (k && k->recipe && k->plan->streams && k->partition.extent > 0)
            return true;
    }
    return false;
}

static bool asks_for_next(const oi_skernel *k)
{
    bool asks = false;
    for (uint32_t i = 0; k->recipe && k->partition.extent > 0 && i < k->plan->n_args; i++)
        asks |= k->plan->args[i].kind == OI_ARG_NEXT;
    return asks;
}

/* Whose weights are read next, for those that wait and those that stream weights themselves. */
static void mark_next(oi_unit *u, oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *x = &list->at[i];
        mark_next(u, &x->body);
        x->has_prefetch = x->barrier && find_next(u, list, i, &x->prefetch);
        oi_skernel *k = x->kind == OI_STMT_KERNEL ? &u->kernels.at[x->kernel] : NULL;
        if (k && x->is_parallel && !k->is_chunked && asks_for_next(k))
            k->has_prefetch = find_next(u, list, i + 1, &k->prefetch);
    }
}

/* Until nothing changes: a block that calls a shared one is shared. The second round shows what the
 * end of one leaves to the beginning of another. */
static void mark_blocks(sharing *s)
{
    oi_sgraph *g = &s->u->graphs.at[s->graph];
    s->moved = true;
    for (uint32_t round = 0; round <= g->program->n_blocks && (round < 2 || s->moved); round++) {
        s->moved = false;
        for (uint32_t b = 0; b < g->program->n_blocks; b++)
            if (g->blocks[b].is_used)
                g->blocks[b].is_parallel |= mark_list(s, &g->blocks[b].stmts);
    }
}

static void share_graph(oi_unit *u, uint32_t graph)
{
    oi_sgraph *g = &u->graphs.at[graph];
    sharing s = {.u = u, .graph = graph, .changed = true, .era = 1};
    s.writers = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *s.writers);
    mark_blocks(&s);
    const oi_tally *tally = oi_graph_tally(u, graph);
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        if (g->blocks[b].is_parallel) {
            mark_owned(&s, &g->blocks[b].stmts, tally);
            mark_own(&g->blocks[b].stmts);
        }
    /* a block that several places call waits for all of them */
    while (s.changed && g->blocks[g->program->entry].is_parallel) {
        s.changed = s.must_meet = false;
        s.pending.n = 0;
        walk(&s, &g->blocks[g->program->entry].stmts);
    }
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        if (g->blocks[b].is_parallel)
            mark_alone(&g->blocks[b].stmts);
    oi_graph_mark_chunks(u, graph);
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        if (g->blocks[b].is_parallel)
            mark_next(u, &g->blocks[b].stmts);
}

oi_status oi_pass_partition(oi_unit *u)
{
    bool alone = !oi_caps_share(&u->can) || u->per_node;
    for (size_t k = 0; k < u->kernels.n && !alone; k++)
        if (u->graphs.at[u->kernels.at[k].graph].program->n_consumers == 0)
            split_kernel(u, &u->kernels.at[k]);
    for (uint32_t g = 0; g < u->graphs.n && !alone; g++)
        share_graph(u, g);
    return OI_OK;
}
