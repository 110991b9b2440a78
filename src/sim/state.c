/* state.c: persistent variables. A step that fails must leave them as they were, so what is
 * overwritten is logged first and put back in reverse order. Appending to a table logs no data:
 * entries that were never written are known to hold the initial value. A step that overwrites more
 * than the variable holds keeps one copy of it instead of a long log. */
#include "sim/sim.h"

#define SHADOW_AT (64u << 10) /* bytes: below this a log is cheaper than a copy */

typedef enum undo_kind { UNDO_SIZES, UNDO_BOX, UNDO_ALL } undo_kind;

struct oi_undo {
    oi_undo *next;
    undo_kind kind;
    oi_grid *all;   /* UNDO_ALL */
    uint8_t *data;  /* UNDO_BOX; NULL: all of it held the initial value */
    uint8_t *marks; /* UNDO_BOX; NULL: none was written */
    oi_budget *budget;
    uint64_t n_bytes; /* that it counts there */
    uint64_t v[];     /* sizes, starts, counts: rank of each */
};

/* -- lending -- */

static bool is_over(const oi_lend *l)
{
    return !l->slot->is_borrowed || l->slot->data != l->data;
}

bool oi_state_view(oi_state *s, oi_slot *slot)
{
    oi_lend lend = {slot, slot->data, slot->size_bytes};
    for (uint32_t i = 0; i < s->n_lends; i++)
        if (s->lends[i].slot == slot || is_over(&s->lends[i])) {
            s->lends[i] = lend;
            return true;
        }
    if (s->n_lends == s->cap_lends) {
        uint32_t cap = s->cap_lends ? 2 * s->cap_lends : 4;
        oi_lend *lends = realloc(s->lends, cap * sizeof *lends);
        if (!lends)
            return false;
        s->lends = lends;
        s->cap_lends = cap;
    }
    s->lends[s->n_lends++] = lend;
    return true;
}

bool oi_state_recall(oi_state *s, const oi_box *box)
{
    const uint8_t *from = NULL, *to = NULL;
    bool all = !box || (s->n_lends && !oi_grid_range(&s->grid, box, &from, &to)), ok = true;
    for (uint32_t i = 0; i < s->n_lends;) {
        oi_lend *l = &s->lends[i];
        bool over = is_over(l);
        if (!over && !all && (l->data >= to || l->data + l->n_bytes <= from)) {
            i++;
            continue;
        }
        ok = (over || oi_slot_own(s->grid.budget, l->slot)) && ok;
        *l = s->lends[--s->n_lends];
    }
    return ok;
}

/* -- the log -- */

static void undo_free(oi_undo *u)
{
    if (u->all)
        oi_grid_free(u->all);
    free(u->all);
    free(u->data);
    free(u->marks);
    oi_budget_give(u->budget, OI_HELD_STATE, u->n_bytes);
    free(u);
}

static oi_undo *undo_new(oi_state *s, undo_kind kind, const oi_box *box)
{
    uint32_t rank = s->grid.rank;
    oi_undo *u = calloc(1, sizeof *u + 3 * rank * sizeof *u->v);
    if (!u)
        return NULL;
    u->kind = kind;
    u->budget = s->grid.budget;
    memcpy(u->v, s->grid.size, rank * sizeof *u->v);
    if (box) {
        memcpy(u->v + rank, box->start, rank * sizeof *u->v);
        memcpy(u->v + 2 * rank, box->count, rank * sizeof *u->v);
    }
    return u;
}

static bool push(oi_state *s, oi_undo *u)
{
    if (!u)
        return false;
    u->next = s->undo;
    s->undo = u;
    return true;
}

static void rollback(oi_grid *g, oi_undo *u)
{
    uint32_t rank = g->rank;
    if (u->kind == UNDO_ALL) {
        oi_grid_free(g);
        *g = *u->all;
        u->all->data = u->all->written = NULL;
    } else if (u->kind == UNDO_BOX) {
        oi_box box;
        memcpy(box.start, u->v + rank, rank * sizeof *u->v);
        memcpy(box.count, u->v + 2 * rank, rank * sizeof *u->v);
        if (u->data)
            oi_grid_write(g, &box, u->data);
        else
            oi_grid_fill(g, &box);
        if (u->marks)
            oi_grid_load_marks(g, &box, u->marks);
        else
            oi_grid_mark(g, &box, false);
    }
    memcpy(g->size, u->v, rank * sizeof *u->v);
}

static void drop_log(oi_state *s)
{
    for (oi_undo *u = s->undo, *next; u; u = next) {
        next = u->next;
        undo_free(u);
    }
    s->undo = NULL;
    s->undo_bytes = 0;
}

static uint64_t stored_bytes(const oi_grid *g)
{
    oi_box box = {0};
    uint64_t n, bytes = 0;
    memcpy(box.count, g->cap, sizeof box.count);
    return g->data && oi_box_count(g, &box, &n, &bytes) ? bytes : 0;
}

/* The log has outgrown the variable: from now on a copy of what it was serves instead. */
static bool make_shadow(oi_state *s)
{
    for (oi_undo *u = s->undo; u; u = u->next)
        if (u->kind == UNDO_ALL)
            return true; /* the log already holds what it was as a whole */
    if (!oi_grid_copy(&s->grid, &s->shadow))
        return false;
    for (oi_undo *u = s->undo; u; u = u->next)
        rollback(&s->shadow, u);
    drop_log(s);
    s->has_shadow = true;
    return true;
}

static bool save_box(oi_state *s, oi_undo *u, const oi_box *box)
{
    uint64_t n, bytes, entries = 1;
    if (!oi_box_count(&s->grid, box, &n, &bytes))
        return false;
    bool table = s->grid.n_table > 0, marked = table && oi_grid_is_marked(&s->grid, box);
    if (n == 0 || (table && !marked))
        return true;
    for (uint32_t i = 0; i < s->grid.n_table; i++)
        entries *= box->count[i];
    if (!oi_budget_take(u->budget, OI_HELD_STATE, bytes + entries))
        return false;
    u->n_bytes = bytes + entries;
    u->data = malloc((size_t)bytes);
    u->marks = marked ? malloc((size_t)entries) : NULL;
    if (!u->data || (marked && !u->marks))
        return false;
    if (bytes) /* packed types: the last byte may be partly used */
        u->data[bytes - 1] = 0;
    oi_grid_read(&s->grid, box, u->data);
    if (marked)
        oi_grid_save_marks(&s->grid, box, u->marks);
    s->undo_bytes += bytes;
    return true;
}

bool oi_state_log(oi_state *s, const oi_box *box)
{
    if (s->has_shadow)
        return true;
    oi_undo *u = undo_new(s, UNDO_BOX, box);
    if (u && !save_box(s, u, box)) {
        undo_free(u);
        return false;
    }
    if (!push(s, u))
        return false;
    if (s->undo_bytes > SHADOW_AT && s->undo_bytes > stored_bytes(&s->grid))
        return make_shadow(s);
    return true;
}

bool oi_state_log_sizes(oi_state *s)
{
    return s->has_shadow || push(s, undo_new(s, UNDO_SIZES, NULL));
}

bool oi_state_log_all(oi_state *s)
{
    if (s->has_shadow) {
        oi_grid_free(&s->grid);
        return true;
    }
    oi_undo *u = undo_new(s, UNDO_ALL, NULL);
    if (!u || !(u->all = malloc(sizeof *u->all))) {
        free(u);
        return false;
    }
    *u->all = s->grid;
    s->grid.data = s->grid.written = NULL;
    memset(s->grid.cap, 0, sizeof s->grid.cap);
    return push(s, u);
}

void oi_state_commit(oi_state *s)
{
    drop_log(s);
    if (s->has_shadow)
        oi_grid_free(&s->shadow);
    s->has_shadow = false;
}

void oi_state_rollback(oi_state *s)
{
    (void)oi_state_recall(s, NULL); /* without memory the value is gone, as after a new step */
    for (oi_undo *u = s->undo; u; u = u->next)
        rollback(&s->grid, u);
    if (s->has_shadow) {
        oi_grid_free(&s->grid);
        s->grid = s->shadow;
        s->shadow.data = s->shadow.written = NULL;
    }
    oi_state_commit(s);
}

/* -- the variable -- */

void oi_state_whole(const oi_state *s, oi_box *out)
{
    memset(out->start, 0, sizeof out->start);
    memcpy(out->count, s->grid.size, sizeof out->count);
}

static void start_sizes(oi_state *s)
{
    const oi_pvar *v = s->var;
    oi_grid *g = &s->grid;
    for (uint32_t i = 0; i < v->n_table; i++) {
        const oi_paxis *x = &v->axes[i];
        g->size[i] = x->has_fixed ? (uint64_t)x->fixed : 0;
        s->most[i] = x->has_fixed ? (uint64_t)x->fixed : x->has_cap ? (uint64_t)x->cap : UINT64_MAX;
    }
    for (uint32_t i = 0; i < v->rank; i++) {
        uint32_t at = v->n_table + i;
        g->size[at] = s->most[at] = v->dims[i];
        if (at >= v->n_axes)
            continue;
        const oi_paxis *x = &v->axes[at];
        bool bounded = x->has_fixed || x->has_cap;
        uint64_t room = (uint64_t)(x->has_fixed ? x->fixed : x->cap);
        s->most[at] =
            bounded && !__builtin_add_overflow(v->dims[i], room, &room) ? room : UINT64_MAX;
    }
}

/* From the model's file into storage of exactly the declared extents. */
static oi_status load_tensor(oi_state *s, oi_diag *d)
{
    const oi_pvar *v = s->var;
    if (v->size_bytes) /* unused bits of packed types are 0 */
        s->grid.data[v->size_bytes - 1] = 0;
    return oi_weights_read(s->sim->weights, v->tensor, 0, v->n_elements, s->grid.data, 0, d);
}

oi_status oi_state_load(oi_state *s, oi_diag *d)
{
    const oi_pvar *v = s->var;
    oi_box whole;
    start_sizes(s);
    oi_state_whole(s, &whole);
    /* a number is stored at once, so that reading it changes nothing; the rest when written */
    if (v->source == OI_FROM_INIT && s->grid.rank > 0)
        return OI_OK;
    if (!oi_grid_reserve(&s->grid, &whole, s->most))
        return oi_sim_no_memory(s->sim, v->name, v->size_bytes, d);
    if (v->source == OI_FROM_TENSOR)
        return load_tensor(s, d);
    if (v->source == OI_FROM_BYTES)
        oi_grid_write(&s->grid, &whole, v->bytes);
    return OI_OK;
}

oi_status oi_state_new(oi_sim *sim, const oi_pvar *v, oi_state **out, oi_diag *d)
{
    oi_state *s = calloc(1, sizeof *s);
    if (!s)
        return oi_diag_env(d, v->name, "out of memory");
    s->var = v;
    s->sim = sim;
    atomic_init(&s->refs, 1);
    pthread_mutex_init(&s->lock, NULL);
    s->grid.budget = &sim->budget;
    s->grid.dtype = v->dtype;
    s->grid.n_table = v->n_table;
    s->grid.rank = v->n_table + v->rank;
    s->grid.init = v->init.bits;
    atomic_fetch_add(&sim->users, 1);
    *out = s;
    return oi_state_load(s, d);
}

void oi_state_drop(oi_state *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    oi_sim *sim = s->sim;
    oi_state_commit(s);
    oi_grid_free(&s->grid);
    free(s->lends);
    pthread_mutex_destroy(&s->lock);
    free(s);
    oi_sim_free(sim); /* the state's share of it */
}
