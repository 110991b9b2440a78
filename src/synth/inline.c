/* inline.c: fuses maps into the loads of their consumers.
 * needs:  one tensor per value (ssa.c)
 * keeps:  results, order of all visible effects; barriers, branches, per-node checks
 * makes:  kernels that read earlier tensors; fewer kernels and tensors
 *
 * A load of tensor T becomes the loads and instructions of T's producer, with its axes replaced by
 * the coordinates of the load. The row-major index of the element connects the two, so reshapes
 * compose, too. If a digit of the index is not linear in the consumer's axes, one of these axes is
 * split if that helps. Moves (reshape, transpose, slice, expand ...) are always fused. Arithmetic
 * is fused if repeating it costs no more than the memory traffic it saves; either all consumers
 * take it, or none does and a note says why.
 *
 * Before that, contents that are one constant, or that count up, become constants in the
 * instructions, and loops of length 1 are removed. */
#include "kernel/meaning.h"
#include "device/cost.h"
#include "synth/compose.h"
#include "synth/where.h"

#define MAX_SOPS 64 /* per nest: more is unreadable and spills registers */

typedef struct inlining {
    oi_unit *u;
    uint32_t graph;
    oi_stmts *list;
    oi_where *where; /* of the list */
    oi_tally *uses;  /* by tensor */
    /* the current producer */
    size_t at;
    const oi_skernel *p;
    const oi_snest *inner;
    const oi_sop *store;
    uint32_t tensor;
    bool is_move; /* one load, one store */
} inlining;

/* -- contents that need no memory -- */

#define MOST_READ 65536 /* elements that are examined */

/* Element c of the tensor is base + sum of step[d] * c[d]. */
static bool counts_up(const oi_tensor *t, const void *data, int64_t *base, int64_t *step)
{
    oi_radix r;
    int64_t n = oi_tensor_count(t);
    if (!oi_radix_of_tensor(t, &r))
        return false;
    memset(step, 0, OI_MAX_RANK * sizeof *step);
    *base = oi_element_i64(t->dtype, data, 0);
    for (uint32_t d = 0; d < r.n; d++)
        if (__builtin_sub_overflow(oi_element_i64(t->dtype, data, (uint64_t)r.stride[d]), *base,
                                   &step[r.of[d]]))
            return false;
    for (int64_t e = 0; e < n; e++) {
        int64_t want = *base, rest = e, way;
        for (uint32_t d = 0; d < r.n; d++) {
            if (__builtin_mul_overflow(rest / r.stride[d], step[r.of[d]], &way) ||
                __builtin_add_overflow(want, way, &want))
                return false;
            rest %= r.stride[d];
        }
        if (want != oi_element_i64(t->dtype, data, (uint64_t)e))
            return false;
    }
    return true;
}

static bool is_uniform(const oi_tensor *t, const void *data, uint64_t *bits)
{
    *bits = oi_element_bits(t->dtype, data, 0);
    for (int64_t e = 1; e < oi_tensor_count(t); e++)
        if (oi_element_bits(t->dtype, data, (uint64_t)e) != *bits)
            return false;
    return true;
}

/* The load as one or two instructions without memory; how many, 0: it stays. */
static unsigned without_memory(oi_unit *u, const oi_skernel *k, const oi_sop *op, oi_sop *out)
{
    const oi_tensor *t = &u->tensors.at[k->ports.at[op->port].tensor];
    uint64_t bits;
    int64_t base, step[OI_MAX_RANK], n = oi_tensor_count(t);
    if (t->space != OI_SPACE_WEIGHTS || t->n_table || n < 1 || n > MOST_READ)
        return 0;
    if (t->sources && n > 1) /* a model's own tables: not worth reading now */
        return 0;
    const void *data = oi_tensor_contents(u, t);
    if (!data)
        return 0;
    if (is_uniform(t, data, &bits)) {
        *out = (oi_sop){.kind = OI_SOP_CONST, .type = t->dtype, .is_raw = op->is_raw, .fill = bits};
        return 1;
    }
    bool whole = !oi_dtype_is_float(t->dtype) && t->dtype != OI_BOOL && t->dtype != OI_U64 &&
                 oi_dtype_bits(t->dtype) >= 32;
    if (!whole || op->is_raw || op->is_flat || !counts_up(t, data, &base, step))
        return 0;
    oi_nest_coord *at = oi_arena_alloc(u->arena, sizeof *at);
    *at = (oi_nest_coord){.base = base, .index = OI_NEST_NONE};
    for (uint32_t d = 0; d < t->rank; d++) {
        at->base += step[d] * op->at[d].base;
        for (uint32_t a = 0; a < OI_NEST_AXES; a++)
            at->step[a] += step[d] * op->at[d].step[a];
    }
    out[0] = (oi_sop){.kind = OI_SOP_PLACE, .type = OI_I64, .at = at};
    out[1] = (oi_sop){.kind = OI_SOP_CONVERT, .type = t->dtype, .from = OI_I64, .n_args = 1};
    return t->dtype == OI_I64 ? 1 : 2;
}

/* Whether some load may become an instruction without memory. */
static bool loads_weights(const oi_unit *u, const oi_skernel *k, const oi_snest *n)
{
    for (int post = 0; post < 2; post++) {
        const oi_sops *ops = post ? &n->post : &n->pre;
        for (size_t i = 0; i < ops->n; i++)
            if (ops->at[i].kind == OI_SOP_LOAD &&
                u->tensors.at[k->ports.at[ops->at[i].port].tensor].space == OI_SPACE_WEIGHTS)
                return true;
    }
    return false;
}

static void spell_numbers(oi_unit *u, oi_skernel *k, oi_snest *n)
{
    uint32_t *ids = oi_arena_alloc(u->arena, (n->pre.n + n->post.n + 1) * sizeof *ids);
    oi_moving own = {.u = u, .to = k, .from = k, .nest = n, .ids = ids};
    oi_sops lists[2] = {{0}, {0}};
    for (uint32_t i = 0; i < n->pre.n + n->post.n; i++) {
        bool post = i >= n->pre.n;
        const oi_sop *op = post ? &n->post.at[i - n->pre.n] : &n->pre.at[i];
        oi_sop made[2];
        unsigned n_made = 0;
        if (op->kind == OI_SOP_LOAD && !n->finds_element && !oi_offer_keeps(k, i) &&
            oi_sop_is_affine(u, k, op))
            n_made = without_memory(u, k, op, made);
        uint32_t base = post ? (uint32_t)lists[0].n : 0;
        for (unsigned m = 0; m < n_made; m++) {
            made[m].args[0] = base + (uint32_t)lists[post].n - 1;
            *OI_PUSH(u->arena, &lists[post]) = made[m];
        }
        if (n_made == 0)
            *OI_PUSH(u->arena, &lists[post]) = oi_sop_moved(&own, op);
        ids[i] = base + (uint32_t)lists[post].n - 1;
    }
    n->pre = lists[0];
    n->post = lists[1];
    n->element = n->kind == OI_NEST_MAP ? 0 : ids[n->element];
}

/* Drops ports that no instruction uses any more. */
static void drop_idle_ports(oi_unit *u, oi_skernel *k)
{
    bool *used = oi_arena_alloc(u->arena, k->ports.n + 1);
    const oi_sops *ops;
    for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++) {
        for (size_t i = 0; i < ops->n; i++)
            if (oi_sop_is_access(&ops->at[i]))
                used[ops->at[i].port] = true;
    }
    for (size_t i = 0; i < k->ports.n; i++)
        k->ports.at[i].is_dropped |= !used[i];
}

static void simplify(oi_unit *u)
{
    for (size_t i = 0; i < u->kernels.n; i++) {
        oi_skernel *k = &u->kernels.at[i];
        if (k->is_dynamic)
            continue;
        for (size_t m = 0; m < k->nests.n; m++) {
            if (loads_weights(u, k, &k->nests.at[m]))
                spell_numbers(u, k, &k->nests.at[m]);
            oi_nest_drop_unit_axes(u, k, &k->nests.at[m]);
        }
        if (k->nests.n)
            drop_idle_ports(u, k);
    }
}

/* -- what doing it again costs -- */

uint64_t oi_sop_work(const oi_sop *op)
{
    bool narrow = oi_form_of(op->type) != op->type || oi_form_of(op->from) != op->from;
    if (op->kind == OI_SOP_LOAD || op->kind == OI_SOP_CONVERT)
        return 1 + (narrow && !op->is_raw ? 2 : 0);
    if (op->kind == OI_SOP_INDEX)
        return 3;
    if (op->kind != OI_SOP_EVAL)
        return 0;
    const oi_op_meaning *m = oi_op_meaning_find(op->call->op, op->part, op->call->in0, op->type);
    if (m && oi_m_count(&m->expr, OI_M_DEAR))
        return 20;
    return m && oi_m_count(&m->expr, OI_M_SLOW) ? 5 : 1;
}

typedef struct expense {
    uint64_t work; /* per element, beside one load */
    bool from_weights;
} expense;

static expense expense_of(const inlining *x)
{
    expense e = {0, true};
    for (size_t i = 0; i + 1 < x->inner->pre.n; i++) {
        const oi_sop *op = &x->inner->pre.at[i];
        e.work += oi_sop_work(op);
        if (op->kind == OI_SOP_LOAD || op->kind == OI_SOP_INDEX)
            e.from_weights &=
                x->u->tensors.at[x->p->ports.at[op->port].tensor].space == OI_SPACE_WEIGHTS;
    }
    e.work -= e.work > 0;
    return e;
}

static bool is_worth(const inlining *x, uint64_t reads)
{
    const oi_tensor *t = &x->u->tensors.at[x->tensor];
    uint64_t n = (uint64_t)oi_tensor_count(t);
    expense e = expense_of(x);
    if (x->is_move || reads <= n)
        return true;
    if (e.from_weights && e.work <= 6) /* else it would be repeated in every step */
        return true;
    uint64_t saves = t->size_bytes > oi_cost_kept(x->u->target) ? 12 : 2,
             again = (reads + n - 1) / n - 1;
    return again * e.work <= saves;
}

/* -- whether it can be done -- */

static bool reads_tensor(const inlining *x, const oi_skernel *r, const oi_sop *op)
{
    return oi_sop_is_access(op) && r->ports.at[op->port].tensor == x->tensor;
}

/* The one axis that a coordinate equals, OI_NO_ID for one that stays 0. */
static bool plain_axis(const oi_snest *n, const oi_nest_coord *c, uint32_t *axis)
{
    *axis = OI_NO_ID;
    if (c->base != 0)
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

static bool is_plain(const oi_nest_coord *c)
{
    return c->index == OI_NEST_NONE && c->bend == OI_BEND_NONE && !c->may_leave;
}

/* Coordinates with bends, borders, data or run-time lengths are mapped dim by dim. */
static bool map_dims(const inlining *x, const oi_sop *op, oi_axis_map *map)
{
    if (op->is_flat || x->store->is_flat)
        return false;
    for (uint32_t d = 0; d < x->u->tensors.at[x->tensor].rank; d++) {
        uint32_t a;
        if (!plain_axis(x->inner, &x->store->at[d], &a) ||
            (x->store->fns && oi_coord_has_fns(&x->store->fns[d])))
            return false;
        if (a == OI_NO_ID && !is_plain(&op->at[d]))
            return false;
        if (a == OI_NO_ID)
            continue;
        map->of[a] = op->at[d];
        map->fns[a] = op->fns ? &op->fns[d] : NULL;
    }
    return true;
}

/* The positions of the producer's axes when this load is replaced. */
static bool map_load(const inlining *x, const oi_skernel *r, const oi_snest *n, const oi_sop *op,
                     oi_axis_map *map, oi_split *want)
{
    oi_radix radix;
    oi_nest_coord wrote = oi_sop_number(x->u, x->p, x->store);
    *want = (oi_split){.axis = OI_NO_ID};
    oi_axis_map_begin(map);
    if (r->is_dynamic)
        return map_dims(x, op, map);
    if (!oi_radix_of_axes(x->inner, &wrote, oi_tensor_count(&x->u->tensors.at[x->tensor]), &radix))
        return false;
    if (!oi_sop_is_affine(x->u, r, op))
        return map_dims(x, op, map);
    oi_nest_coord read = oi_sop_number(x->u, r, op);
    return oi_radix_digits(n, &read, &radix, map->of, want);
}

/* Every border that the consumer checks must stay one: the moved load has the same dim there. */
static bool keeps_borders(const inlining *x, const oi_sop *op)
{
    const oi_sop *load = &x->inner->pre.at[0];
    const oi_tensor *t = &x->u->tensors.at[x->tensor],
                    *s = &x->u->tensors.at[x->p->ports.at[load->port].tensor];
    if (!x->is_move || load->is_flat || !oi_sop_is_affine(x->u, x->p, load))
        return false;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (!op->at[d].may_leave && op->at[d].bend == OI_BEND_NONE)
            continue;
        uint32_t axis, own, kept = 0;
        plain_axis(x->inner, &x->store->at[d], &axis);
        for (uint32_t e = 0; e < s->rank; e++)
            if (plain_axis(x->inner, &load->at[e], &own) && own == axis)
                kept += s->dims[e] == t->dims[d];
            else
                kept += 2u * (axis != OI_NO_ID && load->at[e].step[axis] != 0);
        if (kept != 1)
            return false;
    }
    return true;
}

static const char *why_not_load(const inlining *x, const oi_snest *n, const oi_sop *op,
                                bool is_open)
{
    bool leaves = false;
    for (size_t i = 0; i + 1 < x->inner->pre.n; i++)
        leaves |= x->inner->pre.at[i].may_leave || x->inner->pre.at[i].guard;
    if (op->kind == OI_SOP_STORE)
        return "the reader also writes it";
    if (n->finds_element)
        return "the reader uses positions in it";
    if (op->kind == OI_SOP_INDEX)
        return x->is_move && !leaves ? NULL : "the reader uses it as an index";
    if (leaves && (n->skips || op->may_leave || op->guard))
        return "both have padding";
    if ((op->may_leave || op->guard) && (is_open || !keeps_borders(x, op)))
        return "the reader pads it";
    return NULL;
}

/* Splits the nest's axes if that makes the loads linear. */
static const char *fit_nest(inlining *x, oi_skernel *r, oi_snest *n, uint64_t *reads,
                            unsigned *loads)
{
    uint64_t outer = 1, all = 1;
    for (uint32_t a = 0; a < n->n_axes; a++) {
        all *= (uint64_t)n->axes[a].extent;
        outer *= n->axes[a].is_reduced ? 1 : (uint64_t)n->axes[a].extent;
    }
    for (uint32_t i = 0; i < n->pre.n + n->post.n; i++) {
        bool post = i >= n->pre.n;
        const oi_sop *op = post ? &n->post.at[i - n->pre.n] : &n->pre.at[i];
        oi_axis_map map;
        oi_split want;
        if (!reads_tensor(x, r, op))
            continue;
        if (oi_offer_keeps(r, i))
            return "the recipe of the reader reads it as it is";
        const char *no = why_not_load(x, n, op, r->is_dynamic);
        if (no)
            return no;
        while (!map_load(x, r, n, op, &map, &want)) {
            bool fixed = want.axis == OI_NO_ID || n->n_axes + 1 >= OI_NEST_AXES || n->is_scan ||
                         n->is_serial || n->finds_position;
            if (fixed)
                return "the reader's coordinates are not linear";
            oi_nest_split_axis(x->u, r, n, &want);
        }
        *reads += post ? outer : all;
        ++*loads;
    }
    if (*loads && !x->is_move && n->pre.n + n->post.n + *loads * x->inner->pre.n > MAX_SOPS)
        return "the kernel would be too long";
    return NULL;
}

/* Coordinates must compose; tried on a copy of the ports. */
static bool composes(const inlining *x, const oi_skernel *r, const oi_snest *n, const oi_sop *op)
{
    oi_axis_map map;
    oi_split want;
    if (!map_load(x, r, n, op, &map, &want))
        return false;
    for (size_t i = 0; i < x->inner->pre.n - 1; i++) {
        const oi_sop *own = &x->inner->pre.at[i];
        oi_nest_coord c;
        oi_coord_fns f;
        bool are_own;
        uint32_t rank = own->kind == OI_SOP_PLACE || own->is_flat ? 1
                        : own->at ? x->u->tensors.at[x->p->ports.at[own->port].tensor].rank
                                  : 0;
        for (uint32_t d = 0; d < rank; d++)
            if (!oi_coord_map(&own->at[d], x->inner, &map, &c) ||
                !oi_coord_map_fns(&own->at[d], own->fns ? &own->fns[d] : NULL, x->inner, &map, &f,
                                  &are_own))
                return false;
        if (own->kind == OI_SOP_PLACE && !is_plain(&c))
            return false;
        if (own->guard && (!oi_coord_map(own->guard, x->inner, &map, &c) || !is_plain(&c)))
            return false;
    }
    return true;
}

/* A kernel that also writes what it still reads elsewhere would overwrite it too early. */
static bool overwrites(const oi_skernel *p, const oi_skernel *r)
{
    for (size_t i = 0; i < r->ports.n; i++)
        if (r->ports.at[i].is_written && !r->ports.at[i].is_dropped &&
            oi_kernel_reads(p, r->ports.at[i].tensor))
            return true;
    return false;
}

/* The kernel before the present producer that wrote the tensor last. */
static const oi_skernel *maker_of(const inlining *x, uint32_t tensor)
{
    for (size_t i = x->at; (i = oi_where_last(x->where, tensor, i, true)) != OI_NOWHERE;) {
        const oi_stmt *s = &x->list->at[i];
        const oi_skernel *k = s->kind == OI_STMT_KERNEL ? &x->u->kernels.at[s->kernel] : NULL;
        for (size_t p = 0; k && p < k->ports.n; p++)
            if (k->ports.at[p].tensor == tensor && k->ports.at[p].is_written)
                return k;
    }
    return NULL;
}

/* Whether a product or reduction whose result only P reads could have taken P in, but would have to
 * stay before R: then P is better there. */
static bool has_better_place(const inlining *x, const oi_skernel *r)
{
    for (size_t p = 0; p < x->p->ports.n; p++) {
        const uint32_t t = x->p->ports.at[p].tensor;
        const oi_skernel *q = x->uses[t].all == 2 ? maker_of(x, t) : NULL;
        if (q && q->nests.n && !oi_kernel_map(q) && !oi_offer_stores(q) &&
            oi_kernel_reads(x->p, t) && overwrites(q, r))
            return true;
    }
    return false;
}

static const char *why_not_reader(inlining *x, size_t at, uint64_t *reads)
{
    oi_unit *u = x->u;
    oi_skernel *r = &u->kernels.at[x->list->at[at].kernel];
    uint64_t most = u->target->preferences.max_kernel_ops;
    unsigned loads = 0;
    if (x->p->is_dynamic && !r->is_dynamic)
        return "a run-time length";
    if (most && x->p->nodes.n + r->nodes.n > most)
        return oi_arena_printf(u->arena, "max_kernel_ops is %llu", (unsigned long long)most);
    if (overwrites(x->p, r))
        return "the second overwrites what the first reads";
    if (has_better_place(x, r))
        return "the second overwrites what the one before the first reads";
    if (!oi_where_may_pass(x->where, x->at, x->at + 1, at, true))
        return "a statement between them depends on it";
    for (size_t m = 0; m < r->nests.n; m++) {
        oi_snest *n = &r->nests.at[m];
        unsigned own = 0;
        const char *no = fit_nest(x, r, n, reads, &own);
        for (uint32_t i = 0; !no && i < n->pre.n + n->post.n; i++) {
            const oi_sop *op = i < n->pre.n ? &n->pre.at[i] : &n->post.at[i - n->pre.n];
            if (reads_tensor(x, r, op) && !composes(x, r, n, op))
                no = "the reader indexes it by data";
        }
        if (no)
            return no;
        loads += own;
    }
    return loads ? NULL : "the reader is not a loop nest";
}

/* -- doing it -- */

/* Copies the producer's instructions in place of a load; returns the number of their result. */
static uint32_t put_producer(inlining *x, oi_skernel *r, oi_snest *n, const oi_sop *op,
                             oi_sops *out, uint32_t base)
{
    oi_unit *u = x->u;
    oi_axis_map map;
    oi_split want;
    uint32_t *ids = oi_arena_alloc(u->arena, (x->inner->pre.n + 1) * sizeof *ids);
    oi_moving in = {.u = u, .to = r, .from = x->p, .nest = x->inner, .map = &map, .ids = ids};
    map_load(x, r, n, op, &map, &want);
    for (size_t i = 0; i + 1 < x->inner->pre.n; i++) {
        oi_sop own = oi_sop_moved(&in, &x->inner->pre.at[i]);
        if (x->store->is_raw && own.is_raw)
            own.is_raw = op->is_raw;
        if (x->is_move && own.kind == OI_SOP_LOAD) {
            own.kind = op->kind;
            own.length = op->length;
            own.length_fn = op->length_fn;
            if (!own.may_leave) {
                own.may_leave = op->may_leave;
                own.fill = op->fill;
                own.guard = op->guard;
            }
        }
        if (oi_sop_is_access(&own))
            oi_sop_unflatten(u, r, n, &own);
        *OI_PUSH(u->arena, out) = own;
        ids[i] = base + (uint32_t)out->n - 1;
    }
    return oi_sop_as_stored(u, out, base, x->store, ids[x->store->args[0]]);
}

static void put_into(inlining *x, oi_skernel *r, oi_snest *n)
{
    oi_unit *u = x->u;
    size_t all = n->pre.n + n->post.n;
    uint32_t *ids = oi_arena_alloc(u->arena, (all + 1) * sizeof *ids);
    bool *computed = oi_arena_alloc(u->arena, all + 1); /* instead of moved as bits */
    oi_moving own = {.u = u, .to = r, .from = r, .nest = n, .ids = ids};
    oi_sops lists[2] = {{0}, {0}};
    for (uint32_t i = 0; i < all; i++) {
        bool post = i >= n->pre.n;
        const oi_sop *op = post ? &n->post.at[i - n->pre.n] : &n->pre.at[i];
        uint32_t base = post ? (uint32_t)lists[0].n : 0;
        if (reads_tensor(x, r, op)) {
            computed[i] = op->is_raw && !x->store->is_raw;
            ids[i] = put_producer(x, r, n, op, &lists[post], base);
            continue;
        }
        oi_sop kept = oi_sop_moved(&own, op);
        if (op->kind == OI_SOP_STORE && computed[op->args[0]])
            kept.is_raw = false;
        *OI_PUSH(u->arena, &lists[post]) = kept;
        ids[i] = base + (uint32_t)lists[post].n - 1;
    }
    n->pre = lists[0];
    n->post = lists[1];
    n->element = n->kind == OI_NEST_MAP ? 0 : ids[n->element];
}

/* -- producers -- */

/* Whether statement i can be a producer at all, and of what. */
static bool set_producer(inlining *x, size_t i)
{
    const oi_stmt *s = &x->list->at[i];
    if (s->kind != OI_STMT_KERNEL)
        return false;
    x->at = i;
    x->p = &x->u->kernels.at[s->kernel];
    x->inner = oi_kernel_open_map(x->p);
    if (!x->inner || x->p->can_fail)
        return false;
    x->store = &x->inner->pre.at[x->inner->pre.n - 1];
    x->is_move = x->inner->pre.n == 2 && x->inner->pre.at[0].kind == OI_SOP_LOAD &&
                 x->inner->pre.at[0].is_raw;
    const oi_port *to = &x->p->ports.at[x->store->port];
    x->tensor = to->tensor;
    const oi_tensor *t = &x->u->tensors.at[x->tensor];
    return t->space == OI_SPACE_ARENA && (t->rank > 0 || !t->var) && !to->n_entry && !t->n_table &&
           x->uses[x->tensor].writes == 1 && !oi_kernel_reads(x->p, x->tensor) &&
           oi_sop_is_affine(x->u, x->p, x->store);
}

/* How often later kernels of the list mention the tensor. */
static unsigned ports_on(const inlining *x, const oi_stmt *s)
{
    unsigned n = 0;
    const oi_skernel *k = s->kind == OI_STMT_KERNEL ? &x->u->kernels.at[s->kernel] : NULL;
    for (size_t i = 0; k && i < k->ports.n; i++)
        n += !k->ports.at[i].is_dropped && k->ports.at[i].tensor == x->tensor;
    return n;
}

/* The next kernel of the list that mentions it. */
static size_t next_reader(const inlining *x, size_t from)
{
    size_t j = oi_where_next(x->where, x->tensor, from, false);
    while (j != OI_NOWHERE && ports_on(x, &x->list->at[j]) == 0)
        j = oi_where_next(x->where, x->tensor, j + 1, false);
    return j;
}

/* The sums of a reduction become narrower: better in its kernel (fuse.c) than wide sums in memory.
 */
static bool narrows_sums(const inlining *x)
{
    const oi_tensor *t = &x->u->tensors.at[x->tensor];
    for (size_t i = 0; i < x->inner->pre.n; i++) {
        const oi_sop *op = &x->inner->pre.at[i];
        if (op->kind != OI_SOP_LOAD)
            continue;
        uint32_t from = x->p->ports.at[op->port].tensor;
        const oi_tensor *wide = &x->u->tensors.at[from];
        if (wide->space != OI_SPACE_ARENA || x->uses[from].all != 2 ||
            oi_dtype_bits(wide->dtype) <= oi_dtype_bits(t->dtype) ||
            oi_tensor_count(wide) != oi_tensor_count(t))
            continue;
        const oi_skernel *k = maker_of(x, from);
        if (k && k->nests.n == 1 && k->nests.at[0].kind != OI_NEST_MAP && !oi_offer_stores(k))
            return true;
    }
    return false;
}

/* What remains in the old place: the lengths. */
static void leave_lengths(inlining *x)
{
    oi_tensor *t = &x->u->tensors.at[x->tensor];
    x->list->at[x->at].kind = OI_STMT_SIZES;
    t->space = OI_SPACE_NONE;
    t->keeps_lengths = true;
}

static void put_everywhere(inlining *x)
{
    for (size_t j = x->at; (j = next_reader(x, j + 1)) != OI_NOWHERE;) {
        oi_stmt *s = &x->list->at[j];
        oi_skernel *r = &x->u->kernels.at[s->kernel];
        oi_tally_stmt(x->u, x->graph, s, x->uses, false);
        for (size_t m = 0; m < r->nests.n; m++)
            put_into(x, r, &r->nests.at[m]);
        oi_kernel_drop_port(r, x->tensor);
        oi_kernel_take_nodes(x->u, r, x->p, true);
        r->query = NULL;
        oi_tally_stmt(x->u, x->graph, s, x->uses, true);
        oi_where_add(x->where, j);
    }
    oi_tally_stmt(x->u, x->graph, &x->list->at[x->at], x->uses, false);
    if (x->p->lengths.n == 0) {
        oi_where_drop(x->where, x->at);
        return;
    }
    leave_lengths(x);
    oi_tally_stmt(x->u, x->graph, &x->list->at[x->at], x->uses, true);
}

static void try_producer(inlining *x, size_t i)
{
    unsigned found = 0;
    uint64_t reads = 0;
    const char *no = NULL;
    if (!set_producer(x, i))
        return;
    for (size_t j = i; (j = next_reader(x, j + 1)) != OI_NOWHERE;)
        found += ports_on(x, &x->list->at[j]);
    if (found == 0 || found + 1 + x->uses[x->tensor].lengths != x->uses[x->tensor].all)
        return; /* seen elsewhere */
    for (size_t j = i; !no && (j = next_reader(x, j + 1)) != OI_NOWHERE;) {
        no = why_not_reader(x, j, &reads);
        if (no)
            oi_unit_note(x->u, "inline", x->graph, x->list->at[j].node, "%s and %s: %s", x->p->name,
                         x->u->kernels.at[x->list->at[j].kernel].name, no);
    }
    if (!no && narrows_sums(x)) {
        no = "it narrows sums; better in their kernel";
        oi_unit_note(x->u, "inline", x->graph, x->list->at[i].node, "%s: %s", x->p->name, no);
    }
    if (!no && !is_worth(x, reads)) {
        no = "its readers would repeat it too often";
        oi_unit_note(x->u, "inline", x->graph, x->list->at[i].node, "%s: %s", x->p->name, no);
    }
    if (!no)
        put_everywhere(x);
}

static void inline_list(inlining *x, oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].kind == OI_STMT_LOOP)
            inline_list(x, &list->at[i].body);
    x->list = list;
    oi_where_begin(x->where, list);
    for (size_t i = 0; i < list->n; i++)
        try_producer(x, i);
    oi_where_end(x->where);
}

oi_status oi_pass_inline(oi_unit *u)
{
    if (u->per_node || !u->target->preferences.prefer_fusion)
        return OI_OK;
    simplify(u);
    for (uint32_t g = 0; g < u->graphs.n; g++) {
        oi_where where = {.u = u, .graph = g};
        inlining x = {.u = u, .graph = g, .where = &where, .uses = oi_graph_tally(u, g)};
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            if (u->graphs.at[g].blocks[b].is_used)
                inline_list(&x, &u->graphs.at[g].blocks[b].stmts);
    }
    oi_units_tidy_ports(u);
    return OI_OK;
}
