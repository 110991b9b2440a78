/* holders.c: who holds memory, for people: a row per tensor, variable and persistent variable, and
 * the scratch of the node that needed the most. */
#include "oinf/oinf.h"
#include "sim/sim.h"

#include <stdlib.h>

static const char *const names[] = {
    [OI_MEMORY_TENSOR] = "tensor",   [OI_MEMORY_CHUNK] = "chunk", [OI_MEMORY_VALUE] = "value",
    [OI_MEMORY_SCRATCH] = "scratch", [OI_MEMORY_STATE] = "state",
};

const char *oi_memory_kind_name(oi_memory_kind kind)
{
    return (size_t)kind < OI_COUNT(names) ? names[kind] : "";
}

typedef struct rows {
    oi_memory_row *at;
    size_t n, cap;
    bool failed;
} rows;

static void add(rows *r, oi_memory_row row)
{
    if (row.bytes == 0 || r->failed)
        return;
    if (r->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 16;
        oi_memory_row *more = realloc(r->at, cap * sizeof *more);
        r->failed = !more;
        if (!more)
            return;
        r->at = more;
        r->cap = cap;
    }
    r->at[r->n++] = row;
}

static uint64_t buffer_bytes(const oi_buffer *b)
{
    return b ? b->size : 0;
}

/* A buffer that contexts share counts with the first of them alone. */
static uint64_t slot_bytes(const oi_ctx *c, const oi_slot *s, const oi_slot *first)
{
    const bool again = c->id != 0 && s->buffer && s->buffer == first->buffer;
    return (again ? 0 : buffer_bytes(s->buffer)) + buffer_bytes(s->spare);
}

static uint64_t context_bytes(const oi_exec *e, const oi_ctx *c, uint32_t var)
{
    const oi_entries *entries = &c->entries[var];
    uint64_t sum = slot_bytes(c, &c->slots[var], &e->entry->slots[var]);
    for (size_t i = 0; i < entries->n; i++)
        if (entries->at[i])
            sum += slot_bytes(c, entries->at[i], entries->at[i]);
    return sum;
}

static void add_scratch(rows *r, const oi_ctx *c)
{
    if (!c->scratch_node)
        return;
    const oi_node *n = c->scratch_node->source;
    add(r, (oi_memory_row){.kind = OI_MEMORY_SCRATCH,
                           .name = n->name.text ? n->name.text : "cache",
                           .bytes = c->scratch_most,
                           .line = n->span.line,
                           .col = n->span.col});
}

static void add_variable(rows *r, const oi_exec *e, uint32_t i)
{
    const oi_program *p = e->sim->program;
    uint64_t n, bytes = 0;
    if (e->states[i]) {
        const oi_grid *g = &e->states[i]->grid;
        oi_box box = {0};
        memcpy(box.count, g->cap, sizeof box.count);
        (void)(g->data && oi_box_count(g, &box, &n, &bytes));
        add(r, (oi_memory_row){.kind = OI_MEMORY_STATE, .name = p->vars[i].name, .bytes = bytes});
        bytes = 0;
    }
    bytes += context_bytes(e, e->entry, i) + buffer_bytes(e->fetched[i]);
    for (uint32_t k = 0; k < p->n_consumers; k++)
        bytes += context_bytes(e, e->consumers[k], i);
    add(r, (oi_memory_row){.kind = OI_MEMORY_VALUE, .name = p->vars[i].name, .bytes = bytes});
}

static int by_size(const void *a, const void *b)
{
    const oi_memory_row *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

oi_status oi_memory_rows(oi_exec *e, oi_memory_row **out, size_t *n, oi_diag *diag)
{
    rows r = {0};
    const oi_program *p = e->sim->program;
    oi_memory_row row;
    for (size_t i = 0; p->model && i < p->model->n_stored; i++)
        if (oi_weights_use(e->sim->weights, i, &row))
            add(&r, row);
    for (uint32_t i = 0; i < p->n_vars; i++)
        add_variable(&r, e, i);
    add_scratch(&r, e->entry);
    for (uint32_t k = 0; k < p->n_consumers; k++)
        add_scratch(&r, e->consumers[k]);
    if (r.failed) {
        free(r.at);
        return oi_diag_env(diag, "executor", "out of memory");
    }
    if (r.n)
        qsort(r.at, r.n, sizeof *r.at, by_size);
    *out = r.at;
    *n = r.n;
    return OI_OK;
}
