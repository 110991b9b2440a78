/* memory.c: assigns addresses.
 * needs:  every tensor's space and size, statements in their final order
 * keeps:  statements, kernels
 * makes:  offsets of weights and of working memory; removes initial values and weights that nothing
 *         reads
 *
 * Tensors whose lifetimes do not overlap share working memory. Optimal placement is NP-hard. The
 * usual greedy algorithm (largest first, lowest gap that fits) is tried in several orders, and the
 * smallest result wins. Liveness gives the lower bound to compare with: the most bytes live at one
 * position. */
#include "synth/live.h"
#include "synth/pass.h"

#define OI_UNPLACED UINT64_MAX

static bool add(const oi_unit *u, uint64_t *total, uint64_t n)
{
    return !__builtin_add_overflow(*total, oi_unit_aligned(u, n), total) && *total <= INT64_MAX;
}

/* -- placing -- */

typedef struct block {
    uint32_t tensor, first, last;
    uint64_t size, offset;
    uint64_t bytes; /* not rounded up */
} block;

typedef int order_fn(const void *a, const void *b);

static int by_position(const block *a, const block *b)
{
    return a->first != b->first ? (a->first < b->first ? -1 : 1)
                                : (a->tensor > b->tensor) - (a->tensor < b->tensor);
}

static int by_size(const void *a, const void *b)
{
    const block *x = a, *y = b;
    return x->size != y->size ? (x->size > y->size ? -1 : 1) : by_position(x, y);
}

static int by_span(const void *a, const void *b)
{
    const block *x = a, *y = b;
    uint64_t i = (uint64_t)(x->last - x->first + 1) * x->size,
             j = (uint64_t)(y->last - y->first + 1) * y->size;
    return i != j ? (i > j ? -1 : 1) : by_position(x, y);
}

static int by_start(const void *a, const void *b)
{
    return by_position(a, b);
}

static int by_offset(const void *a, const void *b)
{
    const block *x = *(const block *const *)a, *y = *(const block *const *)b;
    return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1) : by_position(x, y);
}

/* The lowest gap among placed blocks that are live at the same time, or within `apart` positions of
 * it. */
static uint64_t find_gap(const block *b, const block *placed, size_t n, const block **near,
                         uint32_t apart)
{
    size_t n_near = 0;
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++)
        if (placed[i].first <= b->last + apart && b->first <= placed[i].last + apart)
            near[n_near++] = &placed[i];
    qsort(near, n_near, sizeof *near, by_offset);
    for (size_t i = 0; i < n_near; i++) {
        if (near[i]->offset >= at + b->size)
            break;
        if (near[i]->offset + near[i]->size > at)
            at = near[i]->offset + near[i]->size;
    }
    return at;
}

/* Keeps `apart` positions between blocks where the whole stays below `room`. */
static uint64_t place(block *blocks, size_t n, order_fn *order, const block **near, uint64_t room,
                      uint32_t apart)
{
    uint64_t most = 0;
    qsort(blocks, n, sizeof *blocks, order);
    for (size_t i = 0; i < n; i++) {
        blocks[i].offset = find_gap(&blocks[i], blocks, i, near, apart);
        if (apart && blocks[i].offset + blocks[i].size > room)
            blocks[i].offset = find_gap(&blocks[i], blocks, i, near, 0);
        if (blocks[i].offset + blocks[i].size > most)
            most = blocks[i].offset + blocks[i].size;
    }
    return most;
}

/* The most bytes live at one position: a lower bound for every placement. */
static uint64_t bound(oi_arena *a, const block *blocks, size_t n, uint32_t n_positions,
                      bool is_rounded)
{
    int64_t *change = oi_arena_alloc(a, (n_positions + 2) * sizeof *change), now = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t size = is_rounded ? blocks[i].size : blocks[i].bytes;
        change[blocks[i].first] += (int64_t)size;
        change[blocks[i].last + 1] -= (int64_t)size;
    }
    for (uint32_t i = 0; i <= n_positions; i++) {
        now += change[i];
        most = now > most ? now : most;
    }
    return (uint64_t)most;
}

#define APART 3 /* statements */

/* Bytes that reuse memory whose previous tensor ended shortly before. */
static uint64_t closeness(const block *blocks, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            const block *a = &blocks[i], *b = &blocks[j];
            if (b->first > a->last && b->first - a->last <= APART &&
                a->offset < b->offset + b->size && b->offset < a->offset + a->size)
                sum += UINT64_C(1) << 3 * (APART - (b->first - a->last));
        }
    return sum;
}

/* The smallest of several placements. With threads, memory is not reused immediately, because the
 * reuse alone would need a barrier. A little more memory is allowed for that; among such placements
 * the one with the least immediate reuse wins. best: the blocks with their offsets. */
static uint64_t place_best(const oi_unit *u, block *blocks, size_t n, block *best,
                           const block **near)
{
    static order_fn *const orders[] = {by_size, by_span, by_start};
    const bool is_shared = oi_caps_share(&u->can);
    uint64_t least = UINT64_MAX, room = UINT64_MAX, close = 0;
    for (uint32_t apart = 0; apart <= (is_shared ? APART : 0); apart++) {
        for (size_t i = 0; i < OI_COUNT(orders); i++) {
            const uint64_t size = place(blocks, n, orders[i], near, room, apart);
            const uint64_t own = apart ? closeness(blocks, n) : 0;
            if (apart ? size > room || own >= close : size >= least)
                continue;
            least = size;
            close = own;
            memcpy(best, blocks, n * sizeof *best);
        }
        if (apart == 0 && is_shared) {
            room = least + least / 8;
            close = closeness(best, n);
        }
    }
    return least;
}

/* -- placing very many -- */

#define MOST_BLOCKS 4096 /* above this, comparing all pairs takes too long */

typedef struct gap {
    uint64_t from, to;
} gap;

typedef struct gaps {
    gap *at; /* ascending; the last gap is unbounded */
    size_t n;
} gaps;

static uint64_t take(gaps *g, uint64_t size)
{
    size_t i = 0;
    while (g->at[i].to - g->at[i].from < size)
        i++;
    const uint64_t at = g->at[i].from;
    g->at[i].from += size;
    if (g->at[i].from == g->at[i].to)
        memmove(&g->at[i], &g->at[i + 1], (--g->n - i) * sizeof *g->at);
    return at;
}

static void give_back(gaps *g, uint64_t from, uint64_t size)
{
    size_t low = 0, high = g->n; /* binary search: the first gap after it */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (g->at[middle].from <= from)
            low = middle + 1;
        else
            high = middle;
    }
    const bool before = low > 0 && g->at[low - 1].to == from;
    const bool behind = g->at[low].from == from + size;
    if (before && behind) {
        g->at[low - 1].to = g->at[low].to;
        memmove(&g->at[low], &g->at[low + 1], (--g->n - low) * sizeof *g->at);
    } else if (before) {
        g->at[low - 1].to += size;
    } else if (behind) {
        g->at[low].from = from;
    } else {
        memmove(&g->at[low + 1], &g->at[low], (g->n++ - low) * sizeof *g->at);
        g->at[low] = (gap){from, from + size};
    }
}

static int by_end(const void *a, const void *b)
{
    const block *x = *(const block *const *)a, *y = *(const block *const *)b;
    return x->last != y->last ? (x->last < y->last ? -1 : 1) : by_position(x, y);
}

/* Places blocks in order of their start, each into the lowest gap. Memory of a block becomes a gap
 * `apart` positions after the block's end. */
static uint64_t place_in_order(oi_arena *a, block *blocks, size_t n, const block **ends,
                               uint32_t apart)
{
    gaps g = {.at = oi_arena_alloc(a, (n + 2) * sizeof *g.at), .n = 1};
    uint64_t most = 0;
    size_t done = 0;
    g.at[0] = (gap){0, UINT64_MAX};
    qsort(blocks, n, sizeof *blocks, by_start);
    for (size_t i = 0; i < n; i++)
        ends[i] = &blocks[i];
    qsort(ends, n, sizeof *ends, by_end);
    for (size_t i = 0; i < n; i++) {
        for (; done < n && (uint64_t)ends[done]->last + apart < blocks[i].first; done++)
            if (ends[done]->size)
                give_back(&g, ends[done]->offset, ends[done]->size);
        blocks[i].offset = blocks[i].size ? take(&g, blocks[i].size) : 0;
        if (blocks[i].offset + blocks[i].size > most)
            most = blocks[i].offset + blocks[i].size;
    }
    return most;
}

static uint64_t place_many(const oi_unit *u, block *blocks, size_t n, block *best,
                           const block **ends)
{
    const bool is_shared = oi_caps_share(&u->can);
    const uint64_t least = place_in_order(u->arena, blocks, n, ends, 0);
    memcpy(best, blocks, n * sizeof *best);
    if (!is_shared)
        return least;
    const uint64_t loose = place_in_order(u->arena, blocks, n, ends, APART);
    if (loose > least + least / 8)
        return least;
    memcpy(best, blocks, n * sizeof *best);
    return loose;
}

static void place_graph(oi_unit *u, uint32_t graph)
{
    oi_lifetimes live = {.n_positions = 0};
    oi_live_find(u, graph, &live);
    u->graphs.at[graph].n_positions = live.n_positions;
    block *blocks = oi_arena_alloc(u->arena, (live.list.n + 1) * sizeof *blocks);
    block *best = oi_arena_alloc(u->arena, (live.list.n + 1) * sizeof *best);
    const block **near = oi_arena_alloc(u->arena, (live.list.n + 1) * sizeof *near);
    size_t n = 0;
    for (size_t i = 0; i < u->tensors.n; i++) { /* tensors that no statement uses need no memory */
        oi_tensor *t = &u->tensors.at[i];
        if (t->space == OI_SPACE_ARENA && t->graph == graph)
            t->offset = OI_UNPLACED;
    }
    for (size_t i = 0; i < live.list.n; i++) {
        const oi_lifetime *x = &live.list.at[i];
        oi_tensor *t = &u->tensors.at[x->tensor];
        if (!x->needs_start)
            t->start = OI_START_NONE;
        t->alive[0] = x->first;
        t->alive[1] = x->last;
        if (t->is_private)
            t->offset = 0;
        else if (t->space == OI_SPACE_ARENA)
            blocks[n++] = (block){.tensor = x->tensor,
                                  .first = x->first,
                                  .last = x->last,
                                  .size = oi_unit_aligned(u, oi_tensor_bytes(t)),
                                  .bytes = oi_tensor_bytes(t)};
    }
    const uint64_t proved = bound(u->arena, blocks, n, live.n_positions, true);
    const uint64_t alive = bound(u->arena, blocks, n, live.n_positions, false);
    uint64_t least = n > MOST_BLOCKS ? place_many(u, blocks, n, best, near)
                                     : place_best(u, blocks, n, best, near);
    for (size_t i = 0; i < n; i++)
        u->tensors.at[best[i].tensor].offset = best[i].offset;
    for (size_t i = 0; i < u->tensors.n; i++)
        if (u->tensors.at[i].space == OI_SPACE_ARENA && u->tensors.at[i].offset == OI_UNPLACED)
            u->tensors.at[i].space = OI_SPACE_NONE;
    u->arena_bytes = least > u->arena_bytes ? least : u->arena_bytes;
    u->arena_bound = proved > u->arena_bound ? proved : u->arena_bound;
    u->arena_alive = alive > u->arena_alive ? alive : u->arena_alive;
}

/* -- weights -- */

typedef struct marking {
    const oi_unit *u;
    bool *is_read; /* by tensor */
} marking;

static void mark(const marking *x, uint32_t tensor)
{
    const oi_tensor *t = &x->u->tensors.at[tensor];
    x->is_read[tensor] = true;
    if (t->start == OI_START_MODEL && t->space != OI_SPACE_NONE)
        x->is_read[t->from] = true;
}

static void mark_mention(void *ctx, const oi_mention *m)
{
    if (m->tensor != OI_NO_ID)
        mark(ctx, m->tensor);
}

/* Removes weights that only folding or packing read. */
static void drop_weights(oi_unit *u)
{
    bool *is_read = oi_arena_alloc(u->arena, u->tensors.n + 1);
    marking x = {u, is_read};
    for (uint32_t g = 0; g < u->graphs.n; g++) {
        const oi_sgraph *graph = &u->graphs.at[g];
        for (uint32_t b = 0; b < graph->program->n_blocks; b++)
            oi_stmts_mentions(u, g, &graph->blocks[b].stmts, mark_mention, &x);
        for (size_t i = 0; i < graph->outputs.n; i++)
            mark(&x, graph->outputs.at[i]);
    }
    for (size_t i = 0; i < u->stores.n; i++)
        mark(&x, u->stores.at[i].tensor);
    for (size_t i = 0; i < u->tensors.n; i++)
        if (u->tensors.at[i].space == OI_SPACE_WEIGHTS && !is_read[i])
            u->tensors.at[i].space = OI_SPACE_NONE;
}

/* -- weights that are packed, too -- */

typedef struct viewing {
    const oi_unit *u;
    uint32_t graph, tensor;
    bool can; /* only plain loads access it */
} viewing;

static void refuse_mention(void *ctx, const oi_mention *m)
{
    viewing *x = ctx;
    x->can &= m->tensor != x->tensor;
}

static void look_at_kernel(viewing *x, const oi_skernel *k)
{
    for (uint32_t p = 0; p < k->ports.n; p++) {
        const oi_sops *ops;
        if (k->ports.at[p].tensor != x->tensor)
            continue;
        x->can &= !k->is_dynamic && !k->recipe;
        for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++)
            for (size_t i = 0; i < ops->n; i++)
                if (oi_sop_is_access(&ops->at[i]) && ops->at[i].port == p)
                    x->can &= ops->at[i].kind == OI_SOP_LOAD && !ops->at[i].is_flat;
    }
}

static void look(viewing *x, const oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i].kind == OI_STMT_KERNEL)
            look_at_kernel(x, &x->u->kernels.at[list->at[i].kernel]);
        else
            oi_stmt_mentions(x->u, x->graph, &list->at[i], refuse_mention, x);
        look(x, &list->at[i].body);
    }
}

static bool can_view(const oi_unit *u, uint32_t tensor)
{
    const oi_tensor *t = &u->tensors.at[tensor];
    viewing x = {.u = u, .tensor = tensor};
    x.can = t->space == OI_SPACE_WEIGHTS && t->rank == 2 && !t->n_table && !t->packing;
    for (; x.can && x.graph < u->graphs.n; x.graph++) {
        const oi_sgraph *g = &u->graphs.at[x.graph];
        for (uint32_t b = 0; b < g->program->n_blocks; b++)
            look(&x, &g->blocks[b].stmts);
        for (size_t i = 0; i < g->outputs.n; i++)
            x.can &= g->outputs.at[i] != tensor;
    }
    for (size_t i = 0; i < u->tensors.n; i++)
        x.can &= u->tensors.at[i].start != OI_START_MODEL || u->tensors.at[i].from != tensor;
    return x.can;
}

/* A table of embeddings that is also the output layer is stored once: rows are looked up in the
 * product's packed order. */
static void find_views(oi_unit *u)
{
    for (uint32_t p = 0; p < u->tensors.n; p++) {
        const oi_packing *packing = u->tensors.at[p].packing;
        if (!packing || u->tensors.at[p].space != OI_SPACE_WEIGHTS || u->tensors.at[p].n_table)
            continue;
        for (uint32_t i = 0; i < packing->n_in; i++) {
            oi_tensor *t = &u->tensors.at[u->tensors.at[p].packed[i]];
            if (!packing->places[i].function || t->view || !can_view(u, u->tensors.at[p].packed[i]))
                continue;
            t->view = packing;
            t->view_of = p;
            t->view_input = i;
        }
    }
}

/* -- everything -- */

static bool fits_anywhere(oi_unit *u)
{
    uint64_t weights = OI_WEIGHTS_HEAD, working = 0, state = 0;
    bool fits = true;
    for (size_t i = 0; i < u->tensors.n; i++) {
        oi_tensor *t = &u->tensors.at[i];
        uint64_t n = oi_tensor_bytes(t);
        fits &= n <= INT64_MAX;
        if (t->view)
            continue;
        if (t->space == OI_SPACE_WEIGHTS) {
            t->offset = weights;
            fits &= add(u, &weights, n);
        } else {
            fits &= add(u, t->space == OI_SPACE_STATE ? &state : &working, n);
        }
    }
    for (size_t i = 0; i < u->tensors.n; i++)
        if (u->tensors.at[i].view)
            u->tensors.at[i].offset = u->tensors.at[u->tensors.at[i].view_of].offset;
    u->weights_bytes = weights;
    u->state_bytes = state;
    return fits;
}

oi_status oi_pass_memory(oi_unit *u)
{
    drop_weights(u);
    find_views(u);
    if (!fits_anywhere(u))
        return oi_unit_refuse(u, 0, NULL, (oi_span){0}, "E062",
                              "the graph needs more memory than any machine has");
    u->arena_bytes = u->arena_bound = u->arena_alive = 0;
    for (uint32_t g = 0; g < u->graphs.n; g++)
        place_graph(u, g);
    return OI_OK;
}
