/* match.c: finds the recipe that could implement a product, before maps are fused into it.
 * needs:  one tensor per value (ssa.c); kernels as lowered, with their calls
 * keeps:  results, order of all visible effects
 * makes:  offers; products that read 16-bit weights instead of their conversion
 *
 * A recipe reads the operands of its call as they are, and has hooks for what follows the sum. The
 * passes that fuse ask the offer what they must keep. recipes.c then applies the recipe to the
 * fused nest. */
#include "synth/compose.h"
#include "synth/lower.h"
#include "synth/where.h"

typedef struct matching {
    oi_unit *u;
    const oi_tally *uses; /* by tensor */
    oi_where *where;      /* of the list */
    oi_stmts *list;
} matching;

/* -- inputs -- */

static bool is_operand(const oi_unit *u, const oi_port *port, const oi_operand *o)
{
    const oi_tensor *t = &u->tensors.at[port->tensor];
    bool same = t->dtype == o->dtype && t->rank == o->rank && !t->run_dims;
    for (uint32_t d = 0; same && d < o->rank; d++)
        same = t->dims[d] == o->dims[d];
    return same;
}

bool oi_offer_inputs(const oi_unit *u, const oi_skernel *k, uint32_t *ports)
{
    const oi_snest *n = &k->nests.at[0];
    const size_t n_sum = k->offer ? k->offer->n_sum : n->post.n;
    size_t found = 0, factors = 0;
    for (size_t i = 0; i < n->pre.n + n_sum; i++) {
        const oi_sop *op = i < n->pre.n ? &n->pre.at[i] : &n->post.at[i - n->pre.n];
        if (!oi_sop_is_access(op) || op->kind == OI_SOP_STORE)
            continue;
        if (i >= n->pre.n && (found == k->sums->n_in || factors != 2))
            break;
        if (op->kind != OI_SOP_LOAD || found == k->sums->n_in)
            return false;
        ports[found++] = op->port;
        factors += i < n->pre.n;
    }
    while (found < k->sums->n_in) /* the recipe does not read it */
        ports[found++] = OI_NO_ID;
    return factors == 2 && is_operand(u, &k->ports.at[ports[0]], &k->sums->in[0]) &&
           is_operand(u, &k->ports.at[ports[1]], &k->sums->in[1]);
}

/* -- what passes that fuse must keep -- */

/* Its epilogue receives raw sums and may store any result. */
static bool is_free(const oi_offer *o)
{
    return o->plan->epilogue[1] && !o->plan->sums_in_result;
}

bool oi_offer_keeps(const oi_skernel *k, size_t op)
{
    const size_t n_pre = k->offer ? k->nests.at[0].pre.n : 0;
    return op < n_pre || (k->offer && !is_free(k->offer) && op - n_pre < k->offer->n_sum);
}

bool oi_offer_stores(const oi_skernel *k)
{
    return k->offer && !is_free(k->offer);
}

/* -- conversions -- */

/* The kernel that makes the tensor from a 16-bit weight by a cast, so that statement `at` could do
 * the cast itself; NULL: there is none. */
static const oi_skernel *conversion(const matching *x, size_t at, uint32_t tensor)
{
    const size_t i =
        x->uses[tensor].writes == 1 ? oi_where_last(x->where, tensor, at, true) : OI_NOWHERE;
    if (i == OI_NOWHERE || x->list->at[i].kind != OI_STMT_KERNEL)
        return NULL;
    const oi_skernel *k = &x->u->kernels.at[x->list->at[i].kernel];
    const oi_kernel_query *q = k->query;
    const bool fits = q && q->op->id == OI_OP_CAST && k->ports.n == 2 && !k->scalars.n &&
                      (q->in[0].dtype == OI_F16 || q->in[0].dtype == OI_BF16) &&
                      q->out[0].dtype == OI_F32 && k->in_tensors[0] != tensor &&
                      x->u->tensors.at[k->in_tensors[0]].space == OI_SPACE_WEIGHTS &&
                      oi_where_may_pass(x->where, i, i + 1, at, true);
    return fits ? k : NULL;
}

/* Loads of the port read the weight itself, and convert it. */
static void take_conversion(oi_unit *u, oi_skernel *k, uint32_t port, const oi_port *weight)
{
    oi_snest *n = &k->nests.at[0];
    const size_t all = n->pre.n + n->post.n;
    uint32_t *ids = oi_arena_alloc(u->arena, (all + 1) * sizeof *ids);
    oi_moving own = {.u = u, .to = k, .from = k, .nest = n, .ids = ids};
    oi_sops lists[2] = {{0}, {0}};
    k->ports.at[port] = *weight;
    for (size_t i = 0; i < all; i++) {
        const bool post = i >= n->pre.n;
        const uint32_t base = post ? (uint32_t)lists[0].n : 0;
        oi_sop op = oi_sop_moved(&own, post ? &n->post.at[i - n->pre.n] : &n->pre.at[i]);
        const bool converts = op.kind == OI_SOP_LOAD && op.port == port;
        if (converts)
            op.type = u->tensors.at[weight->tensor].dtype;
        *OI_PUSH(u->arena, &lists[post]) = op;
        const uint32_t loaded = base + (uint32_t)lists[post].n - 1;
        if (converts)
            *OI_PUSH(u->arena, &lists[post]) = (oi_sop){.kind = OI_SOP_CONVERT,
                                                        .type = OI_F32,
                                                        .from = op.type,
                                                        .args = {loaded},
                                                        .n_args = 1};
        ids[i] = base + (uint32_t)lists[post].n - 1;
    }
    n->pre = lists[0];
    n->post = lists[1];
    n->element = ids[n->element];
    k->query = NULL;
}

/* The call with its factors before conversions; false: no factor is converted. */
static bool unconverted(const matching *x, size_t at, const oi_kernel_query *old,
                        oi_kernel_query *q, oi_operand *types, oi_port *in)
{
    bool any = false;
    memcpy(types, old->in, old->n_in * sizeof *types);
    for (size_t i = 0; i < 2; i++) {
        const oi_skernel *c = in[i].n_entry ? NULL : conversion(x, at, in[i].tensor);
        if (!c || c->query->in[0].rank != types[i].rank ||
            memcmp(c->query->in[0].dims, types[i].dims, types[i].rank * sizeof(int64_t)) != 0)
            continue;
        in[i] = c->ports.at[c->ports.at[0].is_written];
        types[i].dtype = c->query->in[0].dtype;
        any = true;
    }
    *q = *old;
    q->in = types;
    return any;
}

/* -- offers -- */

static bool find_offer(oi_unit *u, oi_skernel *k, const oi_kernel_query *q, const oi_port *in)
{
    oi_recipe_plan plan = {0};
    const oi_recipe *recipe;
    const oi_lowered call = {.q = q, .in = in, .to = in};
    if (!oi_recipe_of(u, &call, &recipe, &plan))
        return false;
    oi_offer *o = oi_arena_alloc(u->arena, sizeof *o);
    *o = (oi_offer){.recipe = recipe, .n_sum = (uint32_t)k->nests.at[0].post.n - 1};
    o->plan = oi_arena_alloc(u->arena, sizeof plan);
    *o->plan = plan;
    k->offer = o;
    return true;
}

static const oi_kernel_query *copy_query(oi_arena *a, const oi_kernel_query *q)
{
    oi_kernel_query *own = oi_arena_alloc(a, sizeof *own);
    oi_operand *types = oi_arena_alloc(a, q->n_in * sizeof *types);
    memcpy(types, q->in, q->n_in * sizeof *types);
    *own = *q;
    own->in = types;
    return own;
}

static void match(const matching *x, oi_skernel *k, size_t at)
{
    oi_unit *u = x->u;
    uint32_t ports[OI_OFFER_INPUTS];
    oi_port in[OI_OFFER_INPUTS], before[OI_OFFER_INPUTS];
    oi_operand types[OI_OFFER_INPUTS];
    oi_kernel_query q;
    if (k->sums->n_in > OI_OFFER_INPUTS || k->is_dynamic || k->can_fail || k->scalars.n ||
        !oi_offer_inputs(u, k, ports))
        return;
    for (size_t i = 0; i < k->sums->n_in; i++)
        in[i] = before[i] = k->ports.at[ports[i] == OI_NO_ID ? ports[0] : ports[i]];
    if (!unconverted(x, at, k->sums, &q, types, before) || !find_offer(u, k, &q, before)) {
        find_offer(u, k, k->sums, in);
        return;
    }
    k->sums = copy_query(u->arena, &q);
    for (size_t i = 0; i < 2; i++)
        if (before[i].tensor != in[i].tensor && k->ports.at[ports[i]].tensor == in[i].tensor)
            take_conversion(u, k, ports[i], &before[i]);
    oi_where_add(x->where, at);
}

static void match_list(matching *x, oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++)
        match_list(x, &list->at[i].body);
    x->list = list;
    oi_where_begin(x->where, list);
    for (size_t i = 0; i < list->n; i++) {
        oi_skernel *k =
            list->at[i].kind == OI_STMT_KERNEL ? &x->u->kernels.at[list->at[i].kernel] : NULL;
        if (k && k->sums && !k->recipe)
            match(x, k, i);
    }
    oi_where_end(x->where);
}

oi_status oi_pass_match(oi_unit *u)
{
    for (uint32_t g = 0; g < u->graphs.n && !oi_unit_skips(u, "recipes"); g++) {
        oi_where where = {.u = u, .graph = g};
        matching x = {.u = u, .where = &where, .uses = oi_graph_tally(u, g)};
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            if (u->graphs.at[g].blocks[b].is_used)
                match_list(&x, &u->graphs.at[g].blocks[b].stmts);
    }
    return OI_OK;
}
