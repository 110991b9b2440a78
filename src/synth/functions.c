/* functions.c: kernels whose functions would be equal share one function.
 * needs:  final kernels, with their names
 * keeps:  kernels: each has its own nodes, tensors and cost
 * makes:  oi_skernel.function, which emitters print once and call several times
 *
 * Two functions are equal if their parameters have equal types and their bodies equal loops and
 * instructions. Which tensors a caller hands over does not matter. A hash finds candidates. */
#include "synth/pass.h"

/* -- values -- */

static bool same_ints(const int64_t *a, const int64_t *b, size_t n)
{
    return n == 0 || memcmp(a, b, n * sizeof *a) == 0;
}

bool oi_value_same(const oi_op_value *a, const oi_op_value *b)
{
    if (a->tag != b->tag)
        return false;
    switch (a->tag) {
    case OI_VALUE_NONE: return true;
    case OI_VALUE_INT: return a->i == b->i;
    case OI_VALUE_FLOAT: return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case OI_VALUE_BOOL: return a->b == b->b;
    case OI_VALUE_STRING: return strcmp(a->s, b->s) == 0;
    case OI_VALUE_DTYPE: return a->dtype == b->dtype;
    case OI_VALUE_INT_LIST: return a->n == b->n && same_ints(a->ints, b->ints, a->n);
    default: return false;
    }
}

static bool same_call(const oi_scall *a, const oi_scall *b)
{
    if (!a || !b)
        return a == b;
    if (a->op != b->op || a->in0 != b->in0)
        return false;
    for (uint32_t i = 0; i < a->op->n_attrs; i++) {
        const uint32_t p = a->scalars ? a->scalars[i] : OI_NO_ID;
        const uint32_t q = b->scalars ? b->scalars[i] : OI_NO_ID;
        if (p != q || (p == OI_NO_ID && !oi_value_same(&a->attrs[i], &b->attrs[i])))
            return false;
    }
    return true;
}

static bool same_formula(const oi_formula *a, const oi_formula *b)
{
    bool same = a->base == b->base && a->by == b->by && a->n_terms == b->n_terms &&
                a->has_least == b->has_least && a->has_most == b->has_most &&
                (!a->has_least || a->least == b->least) && (!a->has_most || a->most == b->most) &&
                a->unless_one == b->unless_one && a->n_pick == b->n_pick &&
                memcmp(a->pick, b->pick, a->n_pick * sizeof *a->pick) == 0;
    for (uint32_t t = 0; same && t < a->n_terms; t++)
        same = a->terms[t].factor == b->terms[t].factor && a->terms[t].n == b->terms[t].n &&
               memcmp(a->terms[t].of, b->terms[t].of, a->terms[t].n * sizeof(uint32_t)) == 0;
    return same;
}

/* -- parameters -- */

typedef struct comparing {
    const oi_unit *u;
    const oi_skernel *a, *b;
} comparing;

static const oi_tensor *tensor_of(const oi_unit *u, const oi_skernel *k, uint32_t port)
{
    return &u->tensors.at[k->ports.at[port].tensor];
}

/* Where elements of packed weights are. */
static bool same_view(const oi_tensor *a, const oi_tensor *b)
{
    if (!a->view || !b->view)
        return a->view == b->view;
    return strcmp(a->view->places[a->view_input].function,
                  b->view->places[b->view_input].function) == 0 &&
           same_ints(a->view->places[a->view_input].sizes, b->view->places[b->view_input].sizes,
                     OI_PLACE_SIZES);
}

static bool same_port(const comparing *x, uint32_t i)
{
    const oi_port *p = &x->a->ports.at[i], *q = &x->b->ports.at[i];
    const oi_tensor *s = &x->u->tensors.at[p->tensor], *t = &x->u->tensors.at[q->tensor];
    const bool is_local = s->space == OI_SPACE_LOCAL;
    if (p->is_written != q->is_written || p->is_dropped != q->is_dropped ||
        is_local != (t->space == OI_SPACE_LOCAL) || (is_local && s->size_bytes != t->size_bytes) ||
        s->dtype != t->dtype || s->rank != t->rank || !same_ints(s->dims, t->dims, s->rank) ||
        s->run_dims != t->run_dims || s->ring != t->ring || s->rows != t->rows || !same_view(s, t))
        return false;
    for (uint32_t j = 0; j < i; j++) /* pointers into one tensor are not restrict */
        if ((x->a->ports.at[j].tensor == p->tensor) != (x->b->ports.at[j].tensor == q->tensor))
            return false;
    return true;
}

/* The port whose length the scalar is, or OI_NO_ID. */
static uint32_t port_of(const oi_skernel *k, const oi_kscalar *s)
{
    for (uint32_t i = 0; s->is_length && i < k->ports.n; i++)
        if (k->ports.at[i].tensor == s->tensor)
            return i;
    return OI_NO_ID;
}

static bool same_parameters(const comparing *x)
{
    const oi_skernel *a = x->a, *b = x->b;
    if (a->ports.n != b->ports.n || a->scalars.n != b->scalars.n ||
        a->formulas.n != b->formulas.n || a->has_prefetch != b->has_prefetch ||
        a->can_fail != b->can_fail || a->is_dynamic != b->is_dynamic)
        return false;
    for (uint32_t i = 0; i < a->ports.n; i++)
        if (!same_port(x, i))
            return false;
    for (size_t i = 0; i < a->scalars.n; i++) {
        const oi_kscalar *s = &a->scalars.at[i], *t = &b->scalars.at[i];
        if (s->dtype != t->dtype || s->is_length != t->is_length || s->dim != t->dim ||
            port_of(a, s) != port_of(b, t))
            return false;
    }
    for (size_t i = 0; i < a->formulas.n; i++)
        if (!same_formula(&a->formulas.at[i], &b->formulas.at[i]))
            return false;
    return true;
}

/* -- instructions -- */

static bool same_coord(const oi_snest *n, const oi_nest_coord *a, const oi_nest_coord *b)
{
    return a->base == b->base && same_ints(a->step, b->step, n->n_axes) && a->index == b->index &&
           a->index_last == b->index_last && a->bend == b->bend &&
           (!a->bend || (a->bend_from == b->bend_from && a->bend_to == b->bend_to)) &&
           a->may_leave == b->may_leave && a->counted_before == b->counted_before &&
           a->counted_after == b->counted_after;
}

static bool same_fns(const oi_coord_fns *a, const oi_coord_fns *b, uint32_t n)
{
    static const oi_coord_fns none;
    for (uint32_t i = 0; i < n; i++)
        if (memcmp(a ? &a[i] : &none, b ? &b[i] : &none, sizeof none) != 0)
            return false;
    return true;
}

static bool same_place(const comparing *x, const oi_snest *n, const oi_sop *a, const oi_sop *b)
{
    const bool is_one = a->is_flat || a->kind == OI_SOP_PLACE;
    const uint32_t rank = is_one ? 1 : tensor_of(x->u, x->a, a->port)->rank;
    if (!a->at || !b->at)
        return a->at == b->at;
    for (uint32_t d = 0; d < rank; d++)
        if (!same_coord(n, &a->at[d], &b->at[d]))
            return false;
    if (!a->guard || !b->guard)
        return a->guard == b->guard && same_fns(a->fns, b->fns, rank);
    return same_coord(n, a->guard, b->guard) && same_fns(a->guard_fns, b->guard_fns, 1) &&
           same_fns(a->fns, b->fns, rank);
}

static bool same_sop(const comparing *x, const oi_snest *n, const oi_sop *a, const oi_sop *b)
{
    return a->kind == b->kind && a->type == b->type &&
           (!oi_sop_is_access(a) || a->port == b->port) && a->is_raw == b->is_raw &&
           a->from == b->from && a->fits == b->fits && a->is_flat == b->is_flat &&
           a->may_leave == b->may_leave && a->length == b->length && a->length_fn == b->length_fn &&
           a->fill == b->fill && a->part == b->part && a->n_args == b->n_args &&
           memcmp(a->args, b->args, a->n_args * sizeof *a->args) == 0 &&
           (a->kind != OI_SOP_EVAL || a->place == b->place) && same_call(a->call, b->call) &&
           same_place(x, n, a, b);
}

static bool same_sops(const comparing *x, const oi_snest *n, const oi_sops *a, const oi_sops *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = same_sop(x, n, &a->at[i], &b->at[i]);
    return same;
}

/* -- bodies -- */

static bool same_axis(const oi_saxis *a, const oi_saxis *b)
{
    return a->extent == b->extent && a->is_reduced == b->is_reduced &&
           same_ints(a->factor, b->factor, OI_AXIS_LEVELS);
}

static bool same_nest(const comparing *x, const oi_snest *a, const oi_snest *b)
{
    if (!a || !b)
        return a == b;
    bool same = a->n_axes == b->n_axes && a->kind == b->kind && a->acc == b->acc &&
                a->element == b->element && a->most == b->most &&
                a->finds_position == b->finds_position && a->finds_element == b->finds_element &&
                a->skips == b->skips && a->is_serial == b->is_serial && a->is_scan == b->is_scan &&
                a->excludes == b->excludes && a->combines_out == b->combines_out &&
                a->lanes == b->lanes && a->narrow_axes == b->narrow_axes &&
                a->n_predicates == b->n_predicates &&
                memcmp(a->predicates, b->predicates, a->n_predicates * sizeof *a->predicates) == 0;
    for (uint32_t i = 0; same && i < a->n_axes; i++)
        same = same_axis(&a->axes[i], &b->axes[i]) &&
               (a->extents ? a->extents[i] : 0) == (b->extents ? b->extents[i] : 0);
    return same && same_call(a->reduce, b->reduce) && same_sops(x, a, &a->pre, &b->pre) &&
           same_sops(x, a, &a->post, &b->post);
}

static bool same_recipe(const comparing *x)
{
    const oi_recipe_plan *p = x->a->plan, *q = x->b->plan;
    if (x->a->recipe != x->b->recipe || strcmp(p->function, q->function) != 0 || p->doc != q->doc ||
        p->extent != q->extent || p->n_args != q->n_args || p->n_scratch != q->n_scratch ||
        !same_axis(&x->a->body, &x->b->body) || !same_call(x->a->call, x->b->call))
        return false;
    for (uint32_t i = 0; i < p->n_args; i++)
        if (p->args[i].kind != q->args[i].kind || p->args[i].n != q->args[i].n ||
            memcmp(&p->args[i].real, &q->args[i].real, sizeof p->args[i].real) != 0 ||
            x->a->arg_ports[i] != x->b->arg_ports[i])
            return false;
    for (uint32_t i = 0; i < p->n_scratch; i++)
        if (strcmp(p->scratch[i].name, q->scratch[i].name) != 0 ||
            p->scratch[i].dtype != q->scratch[i].dtype ||
            p->scratch[i].count != q->scratch[i].count)
            return false;
    return true;
}

static bool same_function(const oi_unit *u, const oi_skernel *a, const oi_skernel *b)
{
    const comparing x = {u, a, b};
    if (a->nests.n != b->nests.n || a->n_shared != b->n_shared || !a->recipe != !b->recipe ||
        !same_parameters(&x) || (a->recipe && !same_recipe(&x)) ||
        !same_nest(&x, a->epilogue, b->epilogue))
        return false;
    for (size_t i = 0; i < a->nests.n; i++)
        if (!same_nest(&x, &a->nests.at[i], &b->nests.at[i]))
            return false;
    return true;
}

/* -- finding them -- */

static uint64_t hash_number(uint64_t n, uint64_t hash)
{
    return oi_hash64(&n, sizeof n, hash);
}

static uint64_t hash_call(const oi_scall *c, uint64_t hash)
{
    hash = hash_number(c->op->id, hash);
    for (uint32_t i = 0; i < c->op->n_attrs; i++)
        if (c->attrs[i].tag == OI_VALUE_INT)
            hash = hash_number((uint64_t)c->attrs[i].i, hash);
        else if (c->attrs[i].tag == OI_VALUE_FLOAT)
            hash = oi_hash64(&c->attrs[i].f, sizeof c->attrs[i].f, hash);
    return hash;
}

static uint64_t hash_sop(const oi_unit *u, const oi_skernel *k, const oi_sop *op, uint64_t hash)
{
    hash = hash_number((uint64_t)op->kind << 32 | op->type, hash_number(op->fill, hash));
    if (op->call)
        hash = hash_call(op->call, hash);
    const uint32_t rank = !oi_sop_is_access(op) ? 0
                          : op->is_flat         ? 1
                                                : tensor_of(u, k, op->port)->rank;
    for (uint32_t d = 0; d < rank; d++)
        hash = oi_hash64(op->at[d].step, 4 * sizeof *op->at[d].step,
                         hash_number((uint64_t)op->at[d].base, hash));
    return hash;
}

/* The same for equal functions. */
static uint64_t hash_of(const oi_unit *u, const oi_skernel *k)
{
    uint64_t hash = hash_number(k->ports.n, k->nests.n);
    const oi_sops *ops;
    if (k->recipe)
        hash = oi_hash64(k->plan->function, strlen(k->plan->function), hash);
    for (uint32_t i = 0; i < k->ports.n; i++) {
        const oi_tensor *t = tensor_of(u, k, i);
        hash = hash_number(t->dtype, oi_hash64(t->dims, t->rank * sizeof *t->dims, hash));
    }
    for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++)
        for (size_t i = 0; i < ops->n; i++)
            hash = hash_sop(u, k, &ops->at[i], hash);
    for (size_t i = 0; i < k->nests.n; i++)
        for (uint32_t a = 0; a < k->nests.at[i].n_axes; a++)
            hash = hash_number((uint64_t)k->nests.at[i].axes[a].extent, hash);
    return hash;
}

typedef struct candidate {
    uint64_t hash;
    uint32_t kernel;
} candidate;

static int by_hash(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return x->hash != y->hash       ? (x->hash < y->hash ? -1 : 1)
           : x->kernel != y->kernel ? (x->kernel < y->kernel ? -1 : 1)
                                    : 0;
}

#define MOST_TRIED 16 /* functions with one hash that differ; more are left apart */

/* Kernels with one hash, by number: each joins the first one that has an equal function. */
static void join(oi_unit *u, const candidate *c, size_t n)
{
    uint32_t firsts[MOST_TRIED], lasts[MOST_TRIED], n_firsts = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = c[i].kernel;
        uint32_t f = 0;
        while (f < n_firsts && !same_function(u, &u->kernels.at[firsts[f]], &u->kernels.at[id]))
            f++;
        if (f < n_firsts) {
            u->kernels.at[id].function = firsts[f];
            u->kernels.at[lasts[f]].next_alike = id;
            lasts[f] = id;
        } else if (f < MOST_TRIED) {
            firsts[n_firsts] = id;
            lasts[n_firsts++] = id;
        }
    }
}

void oi_unit_share_functions(oi_unit *u)
{
    candidate *all = oi_arena_alloc(u->arena, (u->kernels.n + 1) * sizeof *all);
    size_t n = 0;
    for (uint32_t i = 0; i < u->kernels.n; i++) {
        u->kernels.at[i].function = i;
        u->kernels.at[i].next_alike = OI_NO_ID;
        if (u->kernels.at[i].is_used)
            all[n++] = (candidate){hash_of(u, &u->kernels.at[i]), i};
    }
    qsort(all, n, sizeof *all, by_hash);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && all[end].hash == all[i].hash;)
            end++;
        join(u, &all[i], end - i);
    }
}
