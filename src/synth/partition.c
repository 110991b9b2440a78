/* partition.c: assigns work to threads and places barriers.
 * needs:  kernels in their final form, every tensor's place in memory
 * keeps:  statements, their order, every result bit for bit: one thread computes each element
 * makes:  the worker level of axes, oi_stmt.is_parallel and .barrier
 *
 * All threads run the step together. A kernel with enough work is partitioned along one of its
 * output axes. The first thread runs everything else alone. A barrier stands only before a
 * statement that touches memory on which another thread may still work. Two statements need no
 * barrier between them if they are partitioned alike over the same dim of the same memory: each
 * thread touches only its own partition.
 *
 * A small kernel between two partitioned kernels is computed redundantly by every thread into a
 * private buffer. This saves two barriers. Other serial work between two barriers is done by the
 * first thread while the others wait in the barrier; meanwhile they prefetch the weights that they
 * read next. Graphs of consumers run on one thread. */
#include "device/cost.h"
#include "synth/pass.h"

#define MAX_PRIVATE 16384 /* largest private buffer on a thread's stack, in bytes */

typedef enum access_by { ONE, ALL, PARTITIONED } access_by;

/* A statement's access to memory. */
typedef struct access {
    uint32_t tensor;
    bool writes;
    access_by by;
    uint32_t dim;           /* PARTITIONED: the dim along which each thread touches only its own
                               places, or OI_NO_ID */
    oi_partition partition; /* in places of that dim */
} access;
typedef OI_VEC(access) accesses;

/* The partitioned kernel that wrote a tensor, and the era in which it did. */
typedef struct written {
    uint32_t kernel, era;
} written;

typedef struct planning {
    oi_unit *u;
    uint32_t graph;
    written *writers;   /* by tensor */
    uint32_t era;       /* number of barriers so far */
    accesses pending;   /* accesses since the last barrier */
    bool changed;       /* a barrier was added */
    bool moved;         /* a partition or is_parallel changed */
    bool needs_barrier; /* serial work since the last barrier may have failed */
} planning;

/* -- partitioning a kernel -- */

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

/* No nest reads what another nest of the kernel writes, unless they share a loop. */
static bool are_independent(const oi_skernel *k)
{
    bool are = true;
    for (size_t i = 0; k->nests.n > 1 && !k->n_shared && i < k->ports.n; i++)
        are = are && (!k->ports.at[i].is_written || !oi_kernel_reads(k, k->ports.at[i].tensor));
    return are;
}

/* Elements smaller than a byte share it with neighbours that another thread may write. */
static bool writes_bytes(const oi_unit *u, const oi_skernel *k)
{
    bool are = true;
    for (size_t i = 0; i < k->ports.n; i++)
        are = are && (!k->ports.at[i].is_written ||
                      oi_dtype_bits(u->tensors.at[k->ports.at[i].tensor].dtype) >= 8);
    return are;
}

static bool can_partition(const oi_unit *u, const oi_skernel *k)
{
    bool can = !k->can_fail && !k->is_dynamic && are_independent(k) && writes_bytes(u, k);
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
    const int64_t tile = oi_nest_register_tile(n);
    uint32_t axes = k->n_shared ? k->n_shared : oi_nest_outputs(n);
    oi_partition best = {.n_axes = 1, .unit = 1};
    if (!k->n_shared && axes > oi_nest_loops(n))
        axes = oi_nest_loops(n);
    if (tile && !k->n_shared && axes > 1 && n->axes[axes - 1].extent <= tile)
        axes--; /* one tile covers the axis */
    for (uint32_t a = 0; a < axes; a++)
        if (n->axes[a].extent > best.extent && best.extent < unit)
            best = (oi_partition){a, 1, n->axes[a].extent, 1};
    if (best.extent < 2)
        return (oi_partition){.unit = 1};
    best.unit = best.extent >= 4 * unit ? unit : 1;
    if (tile && !k->n_shared && best.axis + 1 == axes)
        best.unit = tile;
    return best;
}

/* -- dims -- */

/* Whether the port's coordinates along the dim do not count from 0. */
static bool begins_within(const oi_tensor *t, const oi_port *port, uint32_t dim)
{
    int64_t from;
    return !t->n_table && port->n_entry && (!oi_code_is_int(&port->entry[dim], &from) || from != 0);
}

/* The dim in which position i of the partition touches only places i * p ... i * p + p - 1, where p
 * is places per position. OI_NO_ID if there is none, or if another dim depends on the position too.
 */
static uint32_t dim_of(const oi_tensor *t, const oi_snest *n, const oi_sop *op, const oi_port *port,
                       oi_partition split)
{
    const uint32_t first = split.axis, last = first + split.n_axes - 1;
    uint32_t found = OI_NO_ID;
    if (op->is_flat || op->kind == OI_SOP_INDEX)
        return OI_NO_ID;
    for (uint32_t d = 0; d < t->rank; d++) {
        const oi_nest_coord *c = &op->at[d];
        const int64_t places = t->dims[d] / split.extent;
        int64_t most = c->base;
        if (c->step[first] == 0 && c->step[last] == 0)
            continue;
        if (begins_within(t, port, d))
            return OI_NO_ID;
        if (found != OI_NO_ID || c->step[last] != places ||
            (split.n_axes > 1 && c->step[first] != places * n->axes[last].extent) ||
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

/* The dim along which the kernel's partition divides the tensor; OI_NO_ID: any thread may touch all
 * of it. */
static uint32_t partition_dim(const oi_unit *u, const oi_skernel *k, uint32_t tensor)
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
                uint32_t dim =
                    dim_of(t, &k->nests.at[n], op, &k->ports.at[op->port], oi_kernel_partition(k));
                if (dim == OI_NO_ID || (any && dim != found))
                    return OI_NO_ID;
                found = dim;
                any = true;
            }
        }
    return found;
}

/* The partition in places of that dim. */
static oi_partition places_of(const oi_unit *u, const oi_skernel *k, uint32_t tensor, uint32_t dim)
{
    oi_partition s = oi_kernel_partition(k);
    if (dim != OI_NO_ID && s.extent && u->tensors.at[tensor].dims[dim] % s.extent == 0) {
        s.unit *= u->tensors.at[tensor].dims[dim] / s.extent;
        s.extent = u->tensors.at[tensor].dims[dim];
    }
    return s;
}

/* Successive nests have the partitioned axis in common, and each thread stores only its own places.
 */
static bool are_compatible(const oi_unit *u, const oi_skernel *k)
{
    const oi_partition p = oi_kernel_partition(k);
    const uint32_t a = p.axis;
    bool are = true;
    for (size_t i = 0; i < k->nests.n; i++) {
        const oi_snest *n = &k->nests.at[i];
        are = are && a < oi_nest_loops(n) && !n->axes[a].is_reduced && !oi_nest_register_tile(n) &&
              n->axes[a].extent == p.extent;
    }
    for (size_t i = 0; are && i < k->ports.n; i++)
        are = !k->ports.at[i].is_written || partition_dim(u, k, k->ports.at[i].tensor) != OI_NO_ID;
    return are;
}

static void partition_kernel(const oi_unit *u, oi_skernel *k)
{
    oi_partition p = {.unit = 1};
    if (oi_kernel_streams(k))
        return;
    if (work_of(u, k) < (uint64_t)oi_cost_share(u->target) && !u->partition_all)
        return;
    if (k->recipe && writes_bytes(u, k))
        p = (oi_partition){0, 1, k->plan->extent, k->plan->unit ? k->plan->unit : 1};
    else if (k->nests.n && can_partition(u, k))
        p = u->can.group_size ? oi_kernel_group_partition(k) : best_axis(u, k);
    if (p.extent <= p.unit)
        p.extent = 0;
    oi_kernel_set_partition(k, p);
    if (p.extent && k->nests.n > 1 && !k->n_shared && !are_compatible(u, k))
        oi_kernel_set_partition(k, (oi_partition){.unit = 1});
}

/* Partitions a kernel as those places are. False if its units would not be multiples of `unit`. */
static bool partition_as(oi_skernel *k, oi_partition places, uint32_t axis, int64_t extent,
                         int64_t unit, uint32_t n_axes)
{
    const int64_t each = extent > 0 ? places.extent / extent : 0; /* places per position */
    if (each == 0 || each * extent != places.extent || places.unit % (each * unit) != 0)
        return false;
    oi_kernel_set_partition(k, (oi_partition){axis, n_axes, extent, places.unit / each});
    return true;
}

/* Along an axis of its only nest, or along that axis and the next one together. */
static bool partition_along(oi_skernel *k, oi_partition places, uint32_t a, bool is_pair)
{
    const oi_saxis *axes = k->nests.at[0].axes;
    const int64_t inner = is_pair ? axes[a + 1].extent : 1;
    return (!is_pair || (axes[a].extent > 1 && inner > 1)) &&
           partition_as(k, places, a, axes[a].extent * inner, 1, 1 + is_pair);
}

/* A kernel that reads what a partitioned kernel has just written is partitioned alike if possible.
 * Then no barrier is needed between the two. */
static bool follow(const oi_unit *u, oi_skernel *k, uint32_t tensor, const oi_skernel *writer)
{
    uint32_t dim = partition_dim(u, writer, tensor);
    const oi_partition old = oi_kernel_partition(k), places = places_of(u, writer, tensor, dim);
    if (k->recipe && k->plan->reads_partitioned && dim == k->plan->read_dim)
        return partition_as(k, places, 0, k->plan->extent, k->plan->unit, 1);
    if (dim == OI_NO_ID || k->recipe || k->nests.n != 1 || k->n_shared || !can_partition(u, k) ||
        k->nests.at[0].kind != OI_NEST_MAP)
        return false;
    const oi_snest *n = &k->nests.at[0];
    for (uint32_t i = 0; i < 2 * n->n_axes; i++) {
        const uint32_t a = i % n->n_axes;
        const bool is_pair = i >= n->n_axes;
        if (a + is_pair < oi_nest_loops(n) && (!is_pair || !oi_nest_jam(n)) &&
            partition_along(k, places, a, is_pair) && partition_dim(u, k, tensor) == dim)
            return true;
    }
    oi_kernel_set_partition(k, old);
    return false;
}

/* -- what runs in parallel -- */

static bool mark_list(planning *s, oi_stmts *list);

static bool is_parallel_block(planning *s, uint32_t block)
{
    return block != OI_NO_ID && s->u->graphs.at[s->graph].blocks[block].is_parallel;
}

static bool mark_kernel(planning *s, uint32_t kernel)
{
    oi_skernel *k = &s->u->kernels.at[kernel];
    const oi_partition old = oi_kernel_partition(k);
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
    const oi_partition p = oi_kernel_partition(k);
    s->moved |= memcmp(&old, &p, sizeof old) != 0;
    return p.extent > 0;
}

/* Each thread runs a row pipeline for its own range of the last kernel's rows, with private line
 * buffers. */
static bool mark_pipeline(planning *s, oi_stmt *x)
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

static bool mark_stmt(planning *s, oi_stmt *x)
{
    const oi_pnode *n = x->node;
    if (x->kind == OI_STMT_PIPELINE)
        return mark_pipeline(s, x);
    if (x->kind == OI_STMT_KERNEL)
        return mark_kernel(s, x->kernel);
    if (x->kind == OI_STMT_LOOP)
        return mark_list(s, &x->body);
    return x->kind == OI_STMT_BRANCH &&
           (is_parallel_block(s, n->as.branch.then_block) ||
            (n->as.branch.cond != OI_NO_ID && is_parallel_block(s, n->as.branch.else_block)));
}

/* All threads take a branch together, even if only one side is parallel. */
static void mark_sides(planning *s, const oi_pnode *n)
{
    oi_sblock *blocks = s->u->graphs.at[s->graph].blocks;
    blocks[n->as.branch.then_block].is_parallel = true;
    if (n->as.branch.cond != OI_NO_ID)
        blocks[n->as.branch.else_block].is_parallel = true;
}

/* Every thread locates views and checks numbers for itself. */
static bool is_replicated(const oi_stmt *x)
{
    return x->kind == OI_STMT_VIEW || x->kind == OI_STMT_NEED ||
           (x->kind == OI_STMT_LIMIT && x->a.tensor == OI_NO_ID);
}

static void mark_replicated(oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *x = &list->at[i];
        x->is_parallel |= is_replicated(x);
        if (x->is_parallel)
            mark_replicated(&x->body);
    }
}

static bool mark_list(planning *s, oi_stmts *list)
{
    bool any = false;
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *x = &list->at[i];
        const bool was_parallel = x->is_parallel;
        x->is_parallel = mark_stmt(s, x);
        any |= x->is_parallel;
        s->moved |= x->is_parallel != was_parallel;
        s->era += !x->is_parallel && !is_replicated(x); /* there is a barrier around it anyway */
        if (x->is_parallel && x->kind == OI_STMT_BRANCH)
            mark_sides(s, x->node);
    }
    return any;
}

/* -- redundant kernels -- */

static void count_reads(void *ctx, const oi_mention *m)
{
    uint32_t *counts = ctx;
    if (m->port && !m->writes)
        counts[m->tensor]++;
}

/* Whether everything that statement `at` writes is read only by parallel kernels later in the list.
 */
static bool is_read_by_all(planning *s, const oi_stmts *list, size_t at, const oi_tally *tally)
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

static bool can_be_redundant(const oi_unit *u, const oi_skernel *k)
{
    bool can = !k->can_fail && !k->is_dynamic && k->lengths.n == 0 &&
               work_of(u, k) < (uint64_t)oi_cost_share(u->target);
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_port *p = &k->ports.at[i];
        const oi_tensor *t = &u->tensors.at[p->tensor];
        can = can && (!p->is_written || t->space == OI_SPACE_LOCAL ||
                      (t->space == OI_SPACE_ARENA && t->start == OI_START_NONE && t->rank > 0 &&
                       !p->n_entry && !t->n_table && !t->run_dims && oi_dtype_bits(t->dtype) >= 8 &&
                       t->size_bytes > 0 && t->size_bytes <= MAX_PRIVATE));
    }
    return can;
}

/* Makes statements first ... last - 1 redundant, computed by every thread, if all of them allow it.
 */
static void make_redundant(planning *s, oi_stmts *list, size_t first, size_t last,
                           const oi_tally *tally)
{
    size_t i = last;
    uint64_t work = 0;
    for (; i > first; i--) { /* backwards: a statement's readers must be redundant or parallel
                                already */
        oi_stmt *x = &list->at[i - 1];
        if (x->kind != OI_STMT_KERNEL || !can_be_redundant(s->u, &s->u->kernels.at[x->kernel]) ||
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

/* Only serial statements before a parallel one: a longer serial run would need the barrier anyway.
 */
static void mark_redundant(planning *s, oi_stmts *list, const oi_tally *tally)
{
    for (size_t i = 0, end; i < list->n; i = end + 1) {
        for (end = i; end < list->n && !list->at[end].is_parallel; end++) {
        }
        if (end == list->n)
            return;
        for (size_t at = i; at < end; at++) /* these force no barrier */
            if (is_replicated(&list->at[at]) || list->at[at].kind == OI_STMT_LOG)
                i = at + 1;
        make_redundant(s, list, i, end, tally);
        if (list->at[end].kind == OI_STMT_LOOP)
            mark_redundant(s, &list->at[end].body, tally);
    }
}

/* -- conflicts -- */

/* Whether two tensors overlap in memory. Different spaces never do. */
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
    if (a->by == ONE && b->by == ONE)
        return false;
    bool alike = a->by == PARTITIONED && b->by == PARTITIONED && a->dim == b->dim &&
                 a->dim != OI_NO_ID && a->partition.extent == b->partition.extent &&
                 a->partition.unit == b->partition.unit &&
                 same_shape(&u->tensors.at[a->tensor], &u->tensors.at[b->tensor]);
    return !alike;
}

/* -- accesses of a statement -- */

typedef struct collecting {
    planning *s;
    accesses list;
    access_by by;
    bool is_check; /* of a statement that only checks: it touches no elements */
} collecting;

/* The pointer of a view is private to each thread. The first thread finds run-time lengths. */
static void collect(void *ctx, const oi_mention *m)
{
    collecting *c = ctx;
    if (m->tensor == OI_NO_ID || (c->is_check && m->port))
        return;
    oi_space space = c->s->u->tensors.at[m->tensor].space;
    if (c->s->u->tensors.at[m->tensor].is_private || space == OI_SPACE_WEIGHTS ||
        space == OI_SPACE_LOCAL || space == OI_SPACE_NONE ||
        (space == OI_SPACE_VIEW && m->writes && !c->s->u->tensors.at[m->tensor].run_dims))
        return;
    *OI_PUSH(c->s->u->arena, &c->list) =
        (access){.tensor = m->tensor, .writes = m->writes, .by = c->by, .dim = OI_NO_ID};
}

/* Every thread reads all scalars and entries, but only its partition of the elements. */
static void collect_kernel(void *ctx, const oi_mention *m)
{
    collecting *c = ctx;
    size_t n = c->list.n;
    collect(ctx, m);
    if (n == c->list.n || !m->port)
        return;
    c->list.at[n].by = PARTITIONED;
}

static accesses accesses_of(planning *s, oi_stmt *x)
{
    collecting c = {.s = s, .by = x->is_parallel ? ALL : ONE, .is_check = x->kind == OI_STMT_NEED};
    bool parts = x->is_parallel && x->kind == OI_STMT_KERNEL &&
                 oi_kernel_partition(&s->u->kernels.at[x->kernel]).extent > 0;
    oi_stmt_mentions(s->u, s->graph, x, parts ? collect_kernel : collect, &c);
    if (!x->is_parallel || x->kind == OI_STMT_PIPELINE) /* its body is not visited separately */
        oi_stmts_mentions(s->u, s->graph, &x->body, collect, &c);
    for (size_t i = 0; parts && i < c.list.n; i++)
        if (c.list.at[i].by == PARTITIONED) {
            const oi_skernel *k = &s->u->kernels.at[x->kernel];
            c.list.at[i].dim = partition_dim(s->u, k, c.list.at[i].tensor);
            c.list.at[i].partition = places_of(s->u, k, c.list.at[i].tensor, c.list.at[i].dim);
        }
    return c.list;
}

/* Everything that a block touches which one thread calls. */
static void collect_block(planning *s, uint32_t block, accesses *out)
{
    if (block == OI_NO_ID)
        return;
    const oi_sblock *b = &s->u->graphs.at[s->graph].blocks[block];
    collecting c = {.s = s, .list = *out, .by = ONE};
    oi_stmts_mentions(s->u, s->graph, &b->stmts, collect, &c);
    *out = c.list;
    for (size_t i = 0; i < b->stmts.n; i++)
        if (b->stmts.at[i].kind == OI_STMT_BRANCH) {
            collect_block(s, b->stmts.at[i].node->as.branch.then_block, out);
            collect_block(s, b->stmts.at[i].node->as.branch.else_block, out);
        }
}

/* -- placing barriers -- */

static void walk(planning *s, oi_stmts *list);

/* An entry of a table may be missing, too. */
static bool can_fail(const oi_unit *u, const oi_stmt *x)
{
    if (x->kind == OI_STMT_SET)
        return x->a.n_entry > 0;
    if (x->kind == OI_STMT_LOG || x->kind == OI_STMT_RESIZE || x->kind == OI_STMT_VIEW)
        return x->may_fail;
    if (x->kind != OI_STMT_KERNEL)
        return x->kind != OI_STMT_BARRIER && x->kind != OI_STMT_RETURN;
    const oi_skernel *k = &u->kernels.at[x->kernel];
    bool can = k->can_fail || x->may_fail;
    for (size_t i = 0; i < k->ports.n; i++)
        can |= k->ports.at[i].n_entry && u->tensors.at[k->ports.at[i].tensor].n_table;
    return can;
}

static void add_barrier(planning *s, oi_stmt *x)
{
    s->changed |= !x->barrier;
    x->barrier = true;
    s->pending.n = 0;
    s->needs_barrier = false;
}

static void visit(planning *s, oi_stmt *x, const accesses *own)
{
    bool clash = x->barrier || (s->needs_barrier && x->is_parallel);
    for (size_t i = 0; i < own->n && !clash; i++)
        for (size_t j = 0; j < s->pending.n && !clash; j++) {
            clash = conflict(s->u, &own->at[i], &s->pending.at[j]);
            x->barrier_for = clash ? own->at[i].tensor + 1 : 0;
        }
    if (clash)
        add_barrier(s, x);
    for (size_t i = 0; i < own->n; i++)
        *OI_PUSH(s->u->arena, &s->pending) = own->at[i];
    if (!x->is_parallel && can_fail(s->u, x))
        s->needs_barrier = true;
}

/* Accesses that either side leaves pending are pending after the branch. */
static void walk_branch(planning *s, const oi_pnode *n)
{
    oi_sgraph *g = &s->u->graphs.at[s->graph];
    const uint32_t to[2] = {n->as.branch.then_block,
                            n->as.branch.cond == OI_NO_ID ? OI_NO_ID : n->as.branch.else_block};
    accesses before = {0}, after = {0};
    bool needs_barrier = s->needs_barrier, after_needs = false;
    for (size_t i = 0; i < s->pending.n; i++)
        *OI_PUSH(s->u->arena, &before) = s->pending.at[i];
    for (int side = 0; side < 2; side++) {
        if (to[side] == OI_NO_ID)
            continue;
        s->pending.n = 0;
        s->needs_barrier = needs_barrier;
        for (size_t i = 0; i < before.n; i++)
            *OI_PUSH(s->u->arena, &s->pending) = before.at[i];
        walk(s, &g->blocks[to[side]].stmts);
        for (size_t i = 0; i < s->pending.n; i++)
            *OI_PUSH(s->u->arena, &after) = s->pending.at[i];
        after_needs |= s->needs_barrier;
    }
    s->pending = after;
    s->needs_barrier = after_needs;
}

/* The second walk finds conflicts between one iteration and the next. Accesses from before the loop
 * are added last, because a barrier inside the body may already order them. A loop that may run
 * zero times leaves them pending. */
static void walk_loop(planning *s, oi_stmt *x)
{
    const accesses before = s->pending;
    const bool needs_barrier = s->needs_barrier;
    s->pending = (accesses){0};
    s->needs_barrier = false;
    walk(s, &x->body);
    walk(s, &x->body);
    for (size_t i = 0; i < before.n; i++)
        *OI_PUSH(s->u->arena, &s->pending) = before.at[i];
    s->needs_barrier |= needs_barrier;
    walk(s, &x->body);
    for (size_t i = 0; !oi_loop_surely_runs(x) && i < before.n; i++)
        *OI_PUSH(s->u->arena, &s->pending) = before.at[i];
    s->needs_barrier |= needs_barrier && !oi_loop_surely_runs(x);
}

static void walk(planning *s, oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *x = &list->at[i];
        accesses own = accesses_of(s, x);
        if (!x->is_parallel && x->kind == OI_STMT_BRANCH) {
            collect_block(s, x->node->as.branch.then_block, &own);
            collect_block(s, x->node->as.branch.else_block, &own);
        }
        visit(s, x, &own);
        if (x->is_parallel && x->kind == OI_STMT_LOOP)
            walk_loop(s, x);
        else if (x->is_parallel && x->kind == OI_STMT_BRANCH)
            walk_branch(s, x->node);
    }
}

/* Groups what the first thread runs alone. */
static void mark_groups(oi_stmts *list)
{
    for (size_t i = 0, end; i < list->n; i = end) {
        oi_stmt *x = &list->at[i];
        end = i + 1;
        if (x->is_parallel) {
            mark_groups(&x->body);
            continue;
        }
        while (end < list->n && !list->at[end].is_parallel && !list->at[end].barrier)
            end++;
        x->serial = (uint32_t)(end - i);
    }
}

/* -- work inside barriers -- */

/* The first thread does serial work while the others wait in the barrier. So one barrier is enough.
 */
static void mark_serial(oi_stmts *list)
{
    for (size_t i = 0, end; i < list->n; i = end) {
        mark_serial(&list->at[i].body);
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

/* Repeats until nothing changes, because a block that calls a parallel block is parallel. The
 * second round shows conflicts between the end of one block and the beginning of another. */
static void mark_blocks(planning *s)
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

static void partition_graph(oi_unit *u, uint32_t graph)
{
    oi_sgraph *g = &u->graphs.at[graph];
    planning s = {.u = u, .graph = graph, .changed = true, .era = 1};
    oi_calls_find(u, graph);
    s.writers = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *s.writers);
    mark_blocks(&s);
    const oi_tally *tally = oi_graph_tally(u, graph);
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        if (g->blocks[b].is_parallel) {
            mark_redundant(&s, &g->blocks[b].stmts, tally);
            mark_replicated(&g->blocks[b].stmts);
        }
    /* a block with several callers gets the barriers that all of them need */
    while (s.changed && g->blocks[g->program->entry].is_parallel) {
        s.changed = s.needs_barrier = false;
        s.pending.n = 0;
        walk(&s, &g->blocks[g->program->entry].stmts);
    }
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        if (g->blocks[b].is_parallel)
            mark_serial(&g->blocks[b].stmts);
    oi_graph_mark_chunks(u, graph);
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        if (g->blocks[b].is_parallel)
            mark_groups(&g->blocks[b].stmts);
    oi_graph_mark_prefetch(u, graph);
}

oi_status oi_pass_partition(oi_unit *u)
{
    bool alone = !oi_caps_share(&u->can) || u->per_node;
    for (size_t k = 0; k < u->kernels.n && !alone; k++)
        if (u->graphs.at[u->kernels.at[k].graph].program->n_consumers == 0)
            partition_kernel(u, &u->kernels.at[k]);
    for (uint32_t g = 0; g < u->graphs.n && !alone; g++)
        partition_graph(u, g);
    return OI_OK;
}
