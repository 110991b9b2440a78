/* producers.c: which input rows a row of a kernel's result depends on, and what follows from that
 * for row pipelines. */
#include "synth/compose.h"
#include "synth/pipeline.h"

/* -- reads -- */

static int64_t rows_of(const oi_tensor *t, uint32_t dim)
{
    return t->ring ? t->rows : t->dims[dim];
}

static void add_read(oi_unit *u, oi_row_producer *m, oi_row_read r)
{
    for (size_t i = 0; i < m->reads.n; i++) {
        oi_row_read *old = &m->reads.at[i];
        if (old->tensor != r.tensor)
            continue;
        old->step = old->step == r.step ? r.step : 0;
        old->from = r.from < old->from ? r.from : old->from;
        old->to = r.to > old->to ? r.to : old->to;
        old->is_private &= r.is_private;
        return;
    }
    *OI_PUSH(u->arena, &m->reads) = r;
}

/* The rows that a load reads while `axis` is 0 and all other axes vary. */
static oi_row_read read_of(const oi_snest *n, const oi_sop *op, uint32_t rank, uint32_t dim,
                           uint32_t axis)
{
    oi_row_read r = {.step = 0};
    if (op->is_flat || op->fns || dim >= rank || op->kind != OI_SOP_LOAD)
        return r;
    const oi_nest_coord *c = &op->at[dim];
    if (c->bend != OI_BEND_NONE || c->index != OI_NEST_NONE || c->step[axis] < 1)
        return r;
    r = (oi_row_read){.step = c->step[axis], .from = c->base, .to = c->base};
    for (uint32_t a = 0; a < n->n_axes; a++)
        if (a != axis)
            *(c->step[a] < 0 ? &r.from : &r.to) += c->step[a] * (n->axes[a].extent - 1);
    return r;
}

/* -- nests -- */

/* Whether the store writes place i of the dim at position i of one axis, and nothing else of it
 * depends on that axis. */
static bool find_axis(const oi_snest *n, const oi_sop *store, uint32_t rank, uint32_t dim,
                      uint32_t *axis)
{
    const uint32_t found = oi_coord_axis(n, &store->at[dim]);
    for (uint32_t d = 0; d < rank; d++)
        if (store->at[d].index != OI_NEST_NONE || store->at[d].bend ||
            (found != OI_NO_ID && d != dim && store->at[d].step[found] != 0))
            return false;
    *axis = found;
    return found != OI_NO_ID;
}

/* An axis that is not a plain loop: unrolled, or several places per iteration. */
static bool is_loop(const oi_snest *n, uint32_t axis)
{
    return !oi_nest_is_unrolled(n, axis) && n->axes[axis].factor[OI_AXIS_VECTOR] == 0 &&
           n->axes[axis].extent > 1;
}

static const oi_sop *only_store(const oi_snest *n)
{
    const oi_sop *found = NULL;
    for (int post = 0; post < 2; post++)
        for (size_t i = 0; i < (post ? n->post.n : n->pre.n); i++) {
            const oi_sop *op = &(post ? n->post : n->pre).at[i];
            if (op->kind == OI_SOP_STORE && found)
                return NULL;
            found = op->kind == OI_SOP_STORE ? op : found;
        }
    return found;
}

static void find_nest(oi_unit *u, const oi_skernel *k, uint32_t dim, oi_row_producer *m)
{
    const oi_snest *n = &k->nests.at[0];
    if (k->nests.n != 1 || k->n_shared || n->is_serial || n->is_scan || n->combines_out ||
        n->extents) {
        m->why = "it is not a single loop nest";
        return;
    }
    const oi_sop *store = only_store(n);
    const oi_tensor *out = &u->tensors.at[m->out];
    if (!store || store->is_flat || store->fns || dim + 1 >= out->rank ||
        !find_axis(n, store, out->rank, dim, &m->axis) || !is_loop(n, m->axis) ||
        n->axes[m->axis].extent != rows_of(out, dim)) {
        m->why = "its loops do not produce the result row by row";
        return;
    }
    for (int post = 0; post < 2; post++)
        for (size_t i = 0; i < (post ? n->post.n : n->pre.n); i++) {
            const oi_sop *op = &(post ? n->post : n->pre).at[i];
            if (!oi_sop_is_access(op) || op->kind == OI_SOP_STORE)
                continue;
            const uint32_t tensor = k->ports.at[op->port].tensor;
            const oi_tensor *t = &u->tensors.at[tensor];
            oi_row_read r = read_of(n, op, t->rank, dim, m->axis);
            r.tensor = tensor;
            r.is_private = oi_sop_same_place(op, store, t->rank);
            if (t->space != OI_SPACE_WEIGHTS)
                add_read(u, m, r);
        }
}

/* -- tuned bodies -- */

/* Whether the row-major index counts the places of the result, with the tensor's dims. */
static bool is_plain(const oi_tensor *t, const oi_snest *n, const oi_sop *op, uint32_t dim)
{
    const oi_nest_coord *c = &op->at[0];
    int64_t plane = 1;
    for (uint32_t d = dim; d < t->rank; d++)
        plane *= t->dims[d];
    return op->is_flat && c->base == 0 && t->rank == dim + 2 && dim == 2 &&
           c->step[OI_EPILOGUE_PLACE] == 1 && (c->step[1] == plane || n->axes[1].extent == 1) &&
           (c->step[0] == plane * t->dims[1] || n->axes[0].extent == 1) &&
           n->axes[0].extent == t->dims[0] && n->axes[1].extent == t->dims[1];
}

/* Whether the tensor matches the call's operand, row by row. */
static bool is_operand(const oi_tensor *t, const oi_operand *o, uint32_t dim)
{
    bool is = t->rank == o->rank && dim < t->rank && t->dtype == o->dtype;
    for (uint32_t d = 0; is && d < t->rank; d++)
        is = (d == dim ? rows_of(t, d) : t->dims[d]) == o->dims[d];
    return is;
}

/* The tuned body itself writes the result. */
static bool is_written_by(const oi_unit *u, const oi_skernel *k, uint32_t dim)
{
    const oi_recipe_plan *p = k->plan;
    bool is = k->taken->n_out == 1;
    for (uint32_t i = 0; is && i < p->n_args; i++) {
        const oi_recipe_arg_kind kind = p->args[i].kind;
        if (kind != OI_ARG_OUT && (kind != OI_ARG_IN || p->args[i].n != 0))
            continue;
        const oi_tensor *t = &u->tensors.at[k->ports.at[k->arg_ports[i]].tensor];
        is = is_operand(t, kind == OI_ARG_OUT ? k->taken->out : k->taken->in, dim);
    }
    return is;
}

static void read_by_epilogue(oi_unit *u, const oi_skernel *k, const oi_sop *store, uint32_t dim,
                             oi_row_producer *m)
{
    for (size_t i = 0; i < k->epilogue->post.n; i++) {
        const oi_sop *op = &k->epilogue->post.at[i];
        if (!oi_sop_is_access(op) || op == store)
            continue;
        const oi_tensor *t = &u->tensors.at[k->ports.at[op->port].tensor];
        oi_row_read r = {.tensor = k->ports.at[op->port].tensor};
        r.step = op->kind == OI_SOP_LOAD && is_plain(t, k->epilogue, op, dim);
        r.is_private = r.step && !k->plan->sums_in_result;
        if (t->space != OI_SPACE_WEIGHTS)
            add_read(u, m, r);
    }
}

static void find_body(oi_unit *u, const oi_skernel *k, uint32_t dim, oi_row_producer *m)
{
    const oi_sop *store = k->epilogue ? only_store(k->epilogue) : NULL;
    const oi_recipe_plan *p = k->plan;
    const oi_tensor *out = &u->tensors.at[m->out];
    if (!k->taken || p->row_dim != dim || dim == 0 ||
        (k->epilogue ? !store || !is_plain(out, k->epilogue, store, dim)
                     : !is_written_by(u, k, dim))) {
        m->why = "its tuned body computes all rows at once";
        return;
    }
    m->rows = rows_of(out, dim);
    for (uint32_t i = 0; i < p->n_args; i++) {
        if (p->args[i].kind != OI_ARG_IN)
            continue;
        oi_row_read r = {.tensor = k->ports.at[k->arg_ports[i]].tensor};
        if (p->args[i].n == 0) {
            r.step = p->row_step;
            r.from = p->row_from;
            r.to = p->row_to;
        }
        if (u->tensors.at[r.tensor].space != OI_SPACE_WEIGHTS)
            add_read(u, m, r);
    }
    if (k->epilogue)
        read_by_epilogue(u, k, store, dim, m);
}

void oi_row_producer_find(oi_unit *u, const oi_skernel *k, uint32_t dim, oi_row_producer *m)
{
    uint32_t n_out = 0;
    *m = (oi_row_producer){.out = OI_NO_ID};
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_tensor *t = &u->tensors.at[k->ports.at[i].tensor];
        if (t->space == OI_SPACE_LOCAL || t->space == OI_SPACE_VIEW)
            m->why = "it has private rows";
        if (!k->ports.at[i].is_written)
            continue;
        m->out = k->ports.at[i].tensor;
        n_out++;
        if (k->ports.at[i].n_entry || t->n_table || t->run_dims || oi_dtype_bits(t->dtype) < 8)
            m->why = "its result is not a plain tensor";
    }
    if (n_out != 1)
        m->why = "it has more than one result";
    if (k->is_dynamic || k->can_fail || k->scalars.n || k->lengths.n)
        m->why = "it depends on run-time numbers, or may fail";
    if (m->why)
        return;
    m->rows = dim < u->tensors.at[m->out].rank ? rows_of(&u->tensors.at[m->out], dim) : 0;
    if (k->recipe)
        find_body(u, k, dim, m);
    else if (k->nests.n)
        find_nest(u, k, dim, m);
    else
        m->why = "it is not a loop nest";
}

/* -- schedules -- */

int64_t oi_row_schedule_made(const oi_row_schedule *t, int64_t turns)
{
    const int64_t n = t->base + t->step * (turns - 1);
    return turns <= 0 || n < 0 ? 0 : n < t->most ? n : t->most;
}

static const oi_row_read *read_by(const oi_row_producer *m, uint32_t tensor)
{
    for (size_t i = 0; i < m->reads.n; i++)
        if (m->reads.at[i].tensor == tensor)
            return &m->reads.at[i];
    return NULL;
}

static int64_t not_below_0(int64_t n)
{
    return n < 0 ? 0 : n;
}

int64_t oi_pipeline_kept(const oi_pipeline *t, uint32_t of)
{
    int64_t most = 1;
    for (uint32_t i = 0; i < t->n; i++) {
        const oi_row_read *r = read_by(&t->producers[i], t->producers[of].out);
        for (int64_t n = 0; r && n < t->count; n++) {
            const int64_t row = oi_row_schedule_made(&t->schedules[i], n);
            if (row == oi_row_schedule_made(&t->schedules[i], n + 1))
                continue; /* idle in this iteration */
            const int64_t lowest = not_below_0(row * r->step + r->from);
            const int64_t kept = oi_row_schedule_made(&t->schedules[of], n + 1) - lowest;
            most = kept > most ? kept : most;
        }
    }
    return most;
}

bool oi_pipeline_may_overwrite(const oi_pipeline *t, uint32_t tensor)
{
    const uint32_t last = t->n - 1;
    for (uint32_t i = 0; i <= last; i++) {
        const oi_row_read *r = read_by(&t->producers[i], tensor);
        if (r && (r->step == 0 || (i == last && !r->is_private)))
            return false;
        for (int64_t n = 0; r && i < last && n < t->count; n++) {
            const int64_t row = oi_row_schedule_made(&t->schedules[i], n);
            if (row < oi_row_schedule_made(&t->schedules[i], n + 1) &&
                not_below_0(row * r->step + r->from) < oi_row_schedule_made(&t->schedules[last], n))
                return false;
        }
    }
    return true;
}

/* -- partitions of the last rows -- */

/* The last producer starts with its first rows and makes the same number every iteration. */
int64_t oi_pipeline_end(const oi_pipeline *t)
{
    const oi_row_schedule *last = &t->schedules[t->n - 1];
    return (last->step - last->base) / last->step;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

int64_t oi_pipeline_first(const oi_pipeline *t)
{
    int64_t first = oi_pipeline_end(t);
    for (uint32_t i = 0; i < t->n; i++) {
        const oi_row_schedule *x = &t->schedules[i];
        const int64_t own = floor_div(x->begin - x->base, x->step) + 1;
        first = own < first ? own : first;
    }
    return first;
}

int64_t oi_pipeline_halo(const oi_pipeline *t, uint32_t of)
{
    const oi_row_schedule *x = &t->schedules[of];
    return not_below_0(x->base + x->step * (oi_pipeline_end(t) - 1) - x->begin);
}

oi_pipeline oi_pipeline_of(oi_unit *u, const oi_stmt *s)
{
    oi_row_producer *producers = oi_arena_alloc(u->arena, (s->body.n + 1) * sizeof *producers);
    oi_row_schedule *turns = oi_arena_alloc(u->arena, (s->body.n + 1) * sizeof *turns);
    for (size_t i = 0; i < s->body.n; i++) {
        turns[i] = s->body.at[i].rows;
        oi_row_producer_find(u, &u->kernels.at[s->body.at[i].kernel], turns[i].dim, &producers[i]);
    }
    return (oi_pipeline){(uint32_t)s->body.n, s->limit, producers, turns, NULL};
}

/* Checks, for every iteration, what producer `by` reads of the result of producer `of`. */
static const char *check_read(const oi_unit *u, const oi_pipeline *t, uint32_t by, uint32_t of,
                              const oi_row_read *r)
{
    const oi_tensor *tensor = &u->tensors.at[r->tensor];
    const int64_t rows = t->producers[of].rows,
                  kept = tensor->ring ? tensor->dims[tensor->ring - 1] : rows;
    if (of == by && r->is_private && tensor->ring) /* the row that it overwrites, too */
        return NULL;
    if (of >= by) /* the previous contents */
        return of == t->n - 1 && !tensor->ring && oi_pipeline_may_overwrite(t, r->tensor)
                   ? NULL
                   : "a row is overwritten before it is read";
    for (int64_t n = 0; n < t->count; n++) {
        const int64_t row = oi_row_schedule_made(&t->schedules[by], n),
                      end = oi_row_schedule_made(&t->schedules[by], n + 1),
                      made = oi_row_schedule_made(&t->schedules[of], n + 1);
        const int64_t highest = (end - 1) * r->step + r->to;
        if (row == end)
            continue;
        if (r->step == 0 || (highest < rows ? highest : rows - 1) >= made)
            return "a row is read before it is computed";
        if (not_below_0(row * r->step + r->from) < made - kept)
            return "a row is read that the line buffer no longer holds";
    }
    return NULL;
}

const char *oi_pipeline_check(const oi_unit *u, const oi_pipeline *t)
{
    const char *wrong = NULL;
    for (uint32_t of = 0; of < t->n && !wrong; of++) {
        const oi_tensor *out = t->producers[of].why ? NULL : &u->tensors.at[t->producers[of].out];
        wrong = t->producers[of].why;
        if (out && !out->ring &&
            oi_row_schedule_made(&t->schedules[of], t->count) != t->producers[of].rows)
            wrong = "a row is never computed";
        for (uint32_t by = 0; by < t->n && !wrong; by++) {
            const oi_row_read *r = read_by(&t->producers[by], t->producers[of].out);
            wrong = r ? check_read(u, t, by, of, r) : NULL;
        }
    }
    return wrong;
}
