/* grid.c: dense arrays that grow along any axis, with room to spare so that appending is cheap.
 * Boxes are copied run by run: a run is what lies together in both arrays. */
#include "sim/sim.h"

#define WHOLE_AT (256u << 20) /* bytes */

/* -- boxes -- */

/* A walk over the outer axes of a box, giving the element offset of each run in an array. */
typedef struct walk {
    uint32_t rank; /* outer axes */
    uint64_t n[OI_GRID_RANK], at[OI_GRID_RANK];
    uint64_t run; /* elements that lie together */
    bool empty;
} walk;

static bool is_whole(uint32_t axis, const uint64_t *count, const uint64_t *dims)
{
    return !dims || count[axis] == dims[axis];
}

/* Trailing axes that are whole in both arrays join the run. Only the axes that are walked are set:
 * clearing all would take longer than most copies. */
static void walk_start(walk *w, uint32_t rank, const uint64_t *count, const uint64_t *a,
                       const uint64_t *b)
{
    w->rank = rank;
    w->run = 1;
    w->empty = false;
    for (uint32_t i = 0; i < rank; i++)
        w->empty |= count[i] == 0;
    bool joins = true;
    while (w->rank && joins && !w->empty) {
        w->rank--;
        w->run *= count[w->rank];
        joins = is_whole(w->rank, count, a) && is_whole(w->rank, count, b);
    }
    for (uint32_t i = 0; i < w->rank; i++) {
        w->n[i] = count[i];
        w->at[i] = 0;
    }
}

static uint64_t offset(const walk *w, uint32_t rank, const uint64_t *dims, const uint64_t *start)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < rank; i++)
        at = at * dims[i] + (start ? start[i] : 0) + (i < w->rank ? w->at[i] : 0);
    return at;
}

static bool walk_next(walk *w)
{
    for (uint32_t i = w->rank; i-- > 0;) {
        if (++w->at[i] < w->n[i])
            return true;
        w->at[i] = 0;
    }
    return false;
}

typedef struct array {
    void *data;
    const uint64_t *dims, *start; /* start NULL: the origin */
} array;

static void copy_box(oi_dtype t, uint32_t rank, const uint64_t *count, array to, array from)
{
    walk w;
    walk_start(&w, rank, count, to.dims, from.dims);
    if (w.empty)
        return;
    do
        oi_elements_copy(t, to.data, offset(&w, rank, to.dims, to.start), from.data,
                         offset(&w, rank, from.dims, from.start), w.run);
    while (walk_next(&w));
}

static void fill_box(oi_dtype t, uint32_t rank, const uint64_t *count, array to, uint64_t bits)
{
    walk w;
    walk_start(&w, rank, count, to.dims, NULL);
    if (w.empty)
        return;
    do
        oi_elements_fill(t, to.data, offset(&w, rank, to.dims, to.start), w.run, bits);
    while (walk_next(&w));
}

/* The part of a box that is stored; false when there is none. */
static bool stored(const oi_grid *g, const oi_box *box, uint32_t rank, uint64_t *count)
{
    if (!g->data)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        if (box->start[i] >= g->cap[i] || box->count[i] == 0)
            return false;
        uint64_t room = g->cap[i] - box->start[i];
        count[i] = box->count[i] < room ? box->count[i] : room;
    }
    return true;
}

bool oi_box_count(const oi_grid *g, const oi_box *box, uint64_t *elements, uint64_t *bytes)
{
    uint64_t n = 1;
    bool empty = false, fits = true;
    for (uint32_t i = 0; i < g->rank; i++) {
        empty |= box->count[i] == 0;
        fits = fits && !(box->count[i] && __builtin_mul_overflow(n, box->count[i], &n));
    }
    *elements = empty ? 0 : n;
    *bytes = 0;
    return empty || (fits && oi_dtype_bytes(g->dtype, n, bytes) && *bytes <= INT64_MAX);
}

/* -- storage -- */

/* Bytes and table entries of storage with these extents; false: too much to count. */
static bool storage(const oi_grid *g, const uint64_t *cap, uint64_t *bytes, uint64_t *entries)
{
    uint64_t n = 1, e = 1;
    for (uint32_t i = 0; i < g->rank; i++) {
        if (cap[i] && __builtin_mul_overflow(n, cap[i], &n))
            return false;
        n = cap[i] ? n : 0;
        if (i + 1 == g->n_table)
            e = n;
        if (!n)
            break;
    }
    *entries = g->n_table ? e : 0;
    return oi_dtype_bytes(g->dtype, n, bytes) && *bytes <= SIZE_MAX / 2 && e <= SIZE_MAX / 2;
}

static void release(oi_grid *g, uint64_t n)
{
    free(g->data);
    free(g->written);
    g->data = g->written = NULL;
    oi_budget_give(g->budget, OI_HELD_STATE, n);
}

void oi_grid_free(oi_grid *g)
{
    uint64_t bytes, entries;
    if (g->data && storage(g, g->cap, &bytes, &entries))
        release(g, bytes + entries);
    memset(g->cap, 0, sizeof g->cap);
}

/* Cleared storage of these extents, and how much it is. */
static bool allocate(oi_grid *g, const uint64_t *cap, uint64_t *bytes, uint64_t *entries)
{
    if (!storage(g, cap, bytes, entries) ||
        !oi_budget_take(g->budget, OI_HELD_STATE, *bytes + *entries))
        return false;
    g->data = calloc(1, *bytes ? (size_t)*bytes : 1);
    g->written = *entries ? calloc(1, (size_t)*entries) : NULL;
    if (g->data && (g->written || !*entries))
        return true;
    release(g, *bytes + *entries);
    return false;
}

bool oi_grid_copy(const oi_grid *from, oi_grid *to)
{
    uint64_t bytes, entries;
    *to = *from;
    to->data = to->written = NULL;
    if (!from->data)
        return true;
    if (!allocate(to, from->cap, &bytes, &entries))
        return false;
    memcpy(to->data, from->data, (size_t)bytes);
    if (entries)
        memcpy(to->written, from->written, (size_t)entries);
    return true;
}

/* New storage of these extents, the old contents moved in. */
static bool move(oi_grid *g, const uint64_t *cap)
{
    uint64_t bytes, entries, n;
    oi_grid next = *g;
    if (!allocate(&next, cap, &bytes, &entries))
        return false;
    memcpy(next.cap, cap, sizeof next.cap);
    if (g->init) {
        n = bytes * 8 / oi_dtype_bits(g->dtype);
        oi_elements_fill(g->dtype, next.data, 0, n, g->init);
    }
    if (g->data) {
        copy_box(g->dtype, g->rank, g->cap, (array){next.data, next.cap, NULL},
                 (array){g->data, g->cap, NULL});
        if (entries)
            copy_box(OI_U8, g->n_table, g->cap, (array){next.written, next.cap, NULL},
                     (array){g->written, g->cap, NULL});
    }
    oi_grid_free(g);
    *g = next;
    return true;
}

/* Twice as much, so that appending is cheap; axes that never grow are stored whole at once. */
static uint64_t grown(const oi_grid *g, uint32_t axis, uint64_t need, uint64_t most)
{
    if (axis >= g->n_table && g->size[axis] == most)
        return most;
    uint64_t have = g->data ? g->cap[axis] : 0;
    uint64_t want = have <= most / 2 ? 2 * have : most;
    return want > need ? want : need;
}

/* Axes whose size is fixed are stored whole, unless that is much or a limit counts it: zeros cost
 * nothing until they are written, and what is read lies together. */
static void round_up(const oi_grid *g, uint64_t *cap, const uint64_t *most)
{
    uint64_t whole[OI_GRID_RANK] = {0}, bytes, entries;
    if (g->budget && g->budget->limit)
        return;
    for (uint32_t i = 0; i < g->rank; i++)
        whole[i] = g->size[i] == most[i] ? most[i] : cap[i];
    if (g->init == 0 && storage(g, whole, &bytes, &entries) && bytes <= WHOLE_AT)
        memcpy(cap, whole, sizeof whole);
}

bool oi_grid_reserve(oi_grid *g, const oi_box *box, const uint64_t *most)
{
    uint64_t cap[OI_GRID_RANK] = {0};
    bool fits = g->data != NULL;
    for (uint32_t i = 0; i < g->rank; i++) {
        uint64_t need = box->start[i] + box->count[i];
        cap[i] = g->data ? g->cap[i] : 0;
        if (need <= cap[i])
            continue;
        fits = false;
        cap[i] = grown(g, i, need, most[i]);
    }
    if (fits)
        return true;
    round_up(g, cap, most);
    return move(g, cap);
}

/* -- contents -- */

void oi_grid_read(const oi_grid *g, const oi_box *box, void *dst)
{
    uint64_t count[OI_GRID_RANK], n, bytes;
    bool any = stored(g, box, g->rank, count);
    bool all = any && memcmp(count, box->count, g->rank * sizeof *count) == 0;
    (void)oi_box_count(g, box, &n, &bytes); /* fits: the caller has made room for it */
    if (!all)
        oi_elements_fill(g->dtype, dst, 0, n, g->init);
    if (any)
        copy_box(g->dtype, g->rank, count, (array){dst, box->count, NULL},
                 (array){g->data, g->cap, box->start});
}

void oi_grid_write(oi_grid *g, const oi_box *box, const void *src)
{
    uint64_t count[OI_GRID_RANK];
    if (stored(g, box, g->rank, count))
        copy_box(g->dtype, g->rank, count, (array){g->data, g->cap, box->start},
                 (array){(void *)(uintptr_t)src, box->count, NULL});
}

void oi_grid_fill(oi_grid *g, const oi_box *box)
{
    uint64_t count[OI_GRID_RANK];
    if (stored(g, box, g->rank, count))
        fill_box(g->dtype, g->rank, count, (array){g->data, g->cap, box->start}, g->init);
}

const void *oi_grid_view(const oi_grid *g, const oi_box *box)
{
    if (!g->data || oi_dtype_bits(g->dtype) < 8)
        return NULL;
    for (uint32_t i = 0; i < g->rank; i++)
        if (box->start[i] + box->count[i] > g->cap[i])
            return NULL;
    walk w;
    walk_start(&w, g->rank, box->count, g->cap, NULL);
    for (uint32_t i = 0; i < w.rank; i++)
        if (w.n[i] != 1)
            return NULL;
    return g->data + offset(&w, g->rank, g->cap, box->start) * (oi_dtype_bits(g->dtype) / 8);
}

bool oi_grid_range(const oi_grid *g, const oi_box *box, const uint8_t **from, const uint8_t **to)
{
    uint64_t first = 0, last = 0, bits = oi_dtype_bits(g->dtype);
    for (uint32_t i = 0; i < g->rank; i++) {
        if (!g->data || box->count[i] == 0 || box->start[i] + box->count[i] > g->cap[i])
            return false;
        first = first * g->cap[i] + box->start[i];
        last = last * g->cap[i] + box->start[i] + box->count[i] - 1;
    }
    *from = g->data + first * bits / 8;
    *to = g->data + ((last + 1) * bits + 7) / 8;
    return g->data != NULL;
}

/* -- marks -- */

void oi_grid_mark(oi_grid *g, const oi_box *box, bool written)
{
    uint64_t count[OI_GRID_RANK];
    if (g->written && stored(g, box, g->n_table, count))
        fill_box(OI_U8, g->n_table, count, (array){g->written, g->cap, box->start}, written);
}

bool oi_grid_is_marked(const oi_grid *g, const oi_box *box)
{
    uint64_t count[OI_GRID_RANK];
    if (!g->written || !stored(g, box, g->n_table, count))
        return false;
    walk w;
    walk_start(&w, g->n_table, count, g->cap, NULL);
    do {
        if (memchr(g->written + offset(&w, g->n_table, g->cap, box->start), 1, (size_t)w.run))
            return true;
    } while (walk_next(&w));
    return false;
}

void oi_grid_save_marks(const oi_grid *g, const oi_box *box, uint8_t *dst)
{
    uint64_t count[OI_GRID_RANK], n = 1;
    for (uint32_t i = 0; i < g->n_table; i++)
        n *= box->count[i];
    memset(dst, 0, (size_t)n);
    if (g->written && stored(g, box, g->n_table, count))
        copy_box(OI_U8, g->n_table, count, (array){dst, box->count, NULL},
                 (array){g->written, g->cap, box->start});
}

void oi_grid_load_marks(oi_grid *g, const oi_box *box, const uint8_t *src)
{
    uint64_t count[OI_GRID_RANK];
    if (g->written && stored(g, box, g->n_table, count))
        copy_box(OI_U8, g->n_table, count, (array){g->written, g->cap, box->start},
                 (array){(void *)(uintptr_t)src, box->count, NULL});
}

void oi_grid_measure(const oi_grid *g, uint64_t *sizes)
{
    uint64_t at[OI_GRID_RANK] = {0}, n = 1;
    memset(sizes, 0, g->n_table * sizeof *sizes);
    if (!g->written)
        return;
    for (uint32_t i = 0; i < g->n_table; i++)
        n *= g->cap[i];
    for (uint64_t e = 0; e < n; e++) {
        for (uint32_t i = 0; g->written[e] && i < g->n_table; i++)
            sizes[i] = at[i] + 1 > sizes[i] ? at[i] + 1 : sizes[i];
        for (uint32_t i = g->n_table; i-- > 0 && ++at[i] == g->cap[i];)
            at[i] = 0;
    }
}
