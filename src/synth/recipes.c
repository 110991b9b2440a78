/* recipes.c: applies recipes to fused products.
 * needs:  offers (match.c); fused kernels (fuse.c), before rows.c joins them
 * keeps:  results within the tolerance of the op
 * makes:  kernels with a recipe; packed weights; prologues
 *
 * The recipe replaces the loops of the product. What follows the sum becomes bounds of the body or
 * its epilogue: the body calls a function with these instructions once per sum. Integer recipes
 * hand over raw sums. Float recipes hand over the result of the op, which passes through the
 * kernel's result. */
#include "synth/compose.h"
#include "synth/lower.h"

typedef struct taking {
    oi_unit *u;
    uint32_t graph;
    oi_skernel *k;
    const oi_snest *n;
    oi_recipe_plan *plan;
    oi_snest *epilogue;
    uint32_t in[OI_OFFER_INPUTS];       /* ports of the inputs, or OI_NO_ID */
    uint32_t out;                       /* port of the result */
    uint32_t first;                     /* of `post`: what follows the value that the body has */
    uint32_t position_of[OI_NEST_AXES]; /* by axis of the nest */
} taking;

/* -- matching the kernel -- */

static bool needs_input(const oi_recipe_plan *p, uint32_t input)
{
    bool needs = false;
    for (uint32_t i = 0; i < p->n_args; i++)
        needs |= p->args[i].kind == OI_ARG_IN && p->args[i].n == input;
    for (uint32_t i = 0; i < p->n_packings; i++)
        for (uint32_t j = 0; j < p->packings[i].n_in; j++)
            needs |= p->packings[i].in[j] == input;
    return needs;
}

static bool find_inputs(taking *t)
{
    bool found = oi_offer_inputs(t->u, t->k, t->in);
    for (uint32_t i = 0; found && i < t->k->sums->n_in; i++)
        found = t->in[i] != OI_NO_ID || !needs_input(t->plan, i);
    return found;
}

/* What follows uses no other instruction before it than the value that the body hands over. */
static bool is_apart(const taking *t)
{
    const uint32_t begin = (uint32_t)t->n->pre.n + t->first;
    bool is = true;
    for (size_t i = t->first; i < t->n->post.n; i++) {
        const oi_sop *op = &t->n->post.at[i];
        for (uint32_t a = 0; a < op->n_args; a++)
            is = is && (op->args[a] == OI_NO_ID || op->args[a] >= begin ||
                        (t->first && op->args[a] + 1 == begin));
        is = is && (op->kind != OI_SOP_EVAL || op->place == OI_NO_ID || op->place >= begin);
    }
    return is;
}

static const char *why_not_nest(taking *t)
{
    const oi_skernel *k = t->k;
    if (k->nests.n != 1 || k->is_dynamic || k->can_fail || k->scalars.n || t->n->is_serial ||
        t->n->is_scan || t->n->combines_out || t->n->extents)
        return "more than a product";
    if (!find_inputs(t))
        return "its operands are not plain loads";
    if (!is_apart(t))
        return "its epilogue reads more than the sum";
    for (size_t i = t->first; i < t->n->post.n; i++) {
        const oi_sop *op = &t->n->post.at[i];
        if (op->kind == OI_SOP_INDEX || op->kind == OI_SOP_COUNT ||
            (op->at && !oi_sop_is_affine(t->u, k, op)) ||
            (oi_sop_is_access(op) && t->plan->n_packings && op->port == t->in[1]))
            return "its epilogue is not affine";
    }
    return NULL;
}

/* -- hooks -- */

static oi_snest *make_epilogue(const taking *t)
{
    oi_snest *f = oi_arena_alloc(t->u->arena, sizeof *f);
    const uint32_t begin = (uint32_t)t->n->pre.n + t->first, n_own = t->first > 0;
    *f = (oi_snest){.n_axes = OI_EPILOGUE_PLACE + 2,
                    .kind = t->n->kind,
                    .acc = n_own ? t->k->sums->out[0].dtype : t->n->acc,
                    .reduce = t->n->reduce};
    for (uint32_t p = 0; p < 3; p++)
        f->axes[p].extent = 1;
    for (uint32_t a = 0; a < t->n->n_axes; a++)
        if (!t->n->axes[a].is_reduced)
            f->axes[t->position_of[a]].extent *= t->n->axes[a].extent;
    f->axes[OI_EPILOGUE_PLACE + 1] = f->axes[OI_EPILOGUE_PLACE];
    if (n_own)
        *OI_PUSH(t->u->arena, &f->post) = (oi_sop){.kind = OI_SOP_ACC, .type = f->acc};
    for (size_t i = t->first; i < t->n->post.n; i++) {
        oi_sop op = t->n->post.at[i];
        for (uint32_t a = 0; a < op.n_args; a++)
            op.args[a] -= op.args[a] == OI_NO_ID ? 0 : begin - n_own;
        op.place -= op.kind == OI_SOP_EVAL && op.place != OI_NO_ID ? begin - n_own : 0;
        if (op.at) {
            oi_nest_coord *at = oi_arena_alloc(t->u->arena, sizeof *at);
            oi_nest_coord old = op.kind == OI_SOP_PLACE ? op.at[0] : oi_sop_number(t->u, t->k, &op);
            if (!oi_hook_is_linear(t->n, t->position_of, &old, at))
                return NULL;
            op.at = at;
            op.is_flat = op.kind != OI_SOP_PLACE;
        }
        *OI_PUSH(t->u->arena, &f->post) = op;
    }
    return f;
}

/* All that follows are bounds: then they are the body's own. */
static bool set_bounds(taking *t)
{
    const oi_sops *post = &t->n->post;
    double least, most;
    if (!t->plan->bounds)
        return false;
    for (size_t i = t->first; i + 1 < post->n; i++)
        if (!oi_hook_is_bound(&post->at[i], &least, &most))
            return false;
    for (size_t i = t->first; i + 1 < post->n; i++) {
        oi_hook_is_bound(&post->at[i], &least, &most);
        for (uint32_t b = t->plan->bounds; b < t->plan->bounds + 2; b++) {
            const double had = t->plan->args[b].real, low = had > least ? had : least;
            t->plan->args[b].real = low < most ? low : most;
        }
    }
    return true;
}

static const char *set_hooks(taking *t)
{
    const oi_sops *post = &t->n->post;
    const oi_sop *store = &post->at[post->n - 1];
    const bool is_plain = t->first && (t->first + 1 == post->n || set_bounds(t));
    if (store->kind != OI_SOP_STORE)
        return "it does not end with its result";
    t->out = store->port;
    if (t->first && !oi_hook_is_in_order(t->u, t->k, store))
        return "its result is not in the order of the sums";
    if (is_plain)
        return NULL;
    if (!t->plan->epilogue[1])
        return "the recipe has no epilogue";
    if (!oi_hook_positions(t->k, t->plan, t->position_of) || !(t->epilogue = make_epilogue(t)))
        return "its epilogue is not linear in the position";
    return NULL;
}

/* -- applying the recipe -- */

static void set_split(taking *t)
{
    const oi_operand *sums = &t->k->sums->out[0];
    for (uint32_t i = 0; i < t->k->ports.n; i++)
        if (t->k->ports.at[i].is_written && !t->k->ports.at[i].is_dropped)
            oi_recipe_resplit(t->plan, sums->dims, sums->rank,
                              &t->u->tensors.at[t->k->ports.at[i].tensor]);
}

static bool is_used(const taking *t, uint32_t port)
{
    bool used = false;
    for (uint32_t i = 0; i < t->plan->n_args; i++)
        used |= t->plan->args[i].kind == OI_ARG_IN && t->in[t->plan->args[i].n] == port;
    for (size_t i = 0; t->epilogue && i < t->epilogue->post.n; i++)
        used |= oi_sop_is_access(&t->epilogue->post.at[i]) && t->epilogue->post.at[i].port == port;
    return used;
}

/* A port of packed data: in place of the weight's, if nothing else reads that. */
static uint32_t packed_port(taking *t, uint32_t packing, uint32_t tensor)
{
    const uint32_t weight = t->in[t->plan->packings[packing].in[0]];
    oi_port p = t->k->ports.at[weight];
    p.tensor = tensor;
    p.ref = NULL;
    if (is_used(t, weight)) {
        *OI_PUSH(t->u->arena, &t->k->ports) = p;
        return (uint32_t)t->k->ports.n - 1;
    }
    t->k->ports.at[weight] = p;
    return weight;
}

/* Ports that neither the body nor the epilogue accesses go. */
static void drop_ports(taking *t, uint32_t *args)
{
    oi_skernel *k = t->k;
    uint32_t *to = oi_arena_alloc(t->u->arena, (k->ports.n + 1) * sizeof *to), n = 0;
    for (uint32_t i = 0; i < k->ports.n; i++) {
        bool used = is_used(t, i);
        for (uint32_t a = 0; a < t->plan->n_args; a++)
            used |= args[a] == i;
        to[i] = n;
        if (used)
            k->ports.at[n++] = k->ports.at[i];
    }
    k->ports.n = n;
    for (uint32_t a = 0; a < t->plan->n_args; a++)
        args[a] = args[a] == OI_NO_ID ? OI_NO_ID : to[args[a]];
    for (size_t i = 0; t->epilogue && i < t->epilogue->post.n; i++)
        if (oi_sop_is_access(&t->epilogue->post.at[i]))
            t->epilogue->post.at[i].port = to[t->epilogue->post.at[i].port];
}

static void set_arguments(taking *t, const oi_lowered *call, const oi_port *ready)
{
    const oi_recipe_plan *p = t->plan;
    uint32_t *args = oi_arena_alloc(t->u->arena, (p->n_args + 1) * sizeof *args);
    uint32_t packed[OI_RECIPE_PACKS];
    for (uint32_t i = 0; i < p->n_packings; i++)
        packed[i] = oi_recipe_pack(t->u, call, &p->packings[i]);
    for (uint32_t i = 0; i < p->n_packings; i++)
        packed[i] = packed_port(t, i, packed[i]);
    for (uint32_t i = 0; i < p->n_args; i++) {
        const int64_t n = p->args[i].n;
        args[i] = OI_NO_ID;
        if (p->args[i].kind == OI_ARG_IN)
            args[i] = t->in[n];
        else if (p->args[i].kind == OI_ARG_OUT)
            args[i] = t->out;
        else if (p->args[i].kind == OI_ARG_PACKED)
            args[i] = packed[n];
        else if (p->args[i].kind == OI_ARG_PROLOGUE) {
            args[i] = (uint32_t)t->k->ports.n;
            *OI_PUSH(t->u->arena, &t->k->ports) = ready[n];
            t->k->ports.at[args[i]].is_written = false;
        }
    }
    drop_ports(t, args);
    t->k->arg_ports = args;
}

static uint64_t n_products(const oi_snest *n)
{
    uint64_t all = 1;
    for (uint32_t a = 0; a < n->n_axes; a++)
        all *= (uint64_t)n->axes[a].extent;
    return all;
}

static void take(oi_unit *u, uint32_t graph, const oi_stmt *s, oi_stmts *out)
{
    oi_skernel *k = &u->kernels.at[s->kernel];
    const oi_offer *o = k->offer;
    taking t = {.u = u, .graph = graph, .k = k, .n = &k->nests.at[0]};
    oi_port in[OI_OFFER_INPUTS], ready[OI_PROLOGUE_ARRAYS];
    t.plan = o->plan;
    t.first = oi_offer_stores(k) ? o->n_sum : 0;
    const char *no = why_not_nest(&t);
    no = no ? no : set_hooks(&t);
    if (no) {
        oi_unit_note(u, "recipes", k->graph, k->nodes.at[0], "%s: %s", k->name, no);
        return;
    }
    for (size_t i = 0; i < k->sums->n_in; i++)
        in[i] = k->ports.at[t.in[i] == OI_NO_ID ? t.in[0] : t.in[i]];
    const oi_lowered call = {.q = k->sums, .in = in, .to = in};
    if (t.plan->prologue.function)
        oi_recipe_prologue(u, graph, s->node, &call, &t.plan->prologue, ready, out);
    t.k = k = &u->kernels.at[s->kernel]; /* there may be another kernel now */
    t.n = &k->nests.at[0];
    t.plan->macs = n_products(t.n);
    set_split(&t);
    set_arguments(&t, &call, ready);
    k->recipe = o->recipe;
    k->plan = t.plan;
    k->call = t.n->reduce;
    k->epilogue = t.epilogue;
    k->nests.n = 0;
    k->taken = k->sums;
    k->query = k->sums = NULL;
    k->offer = NULL;
}

static void take_list(oi_unit *u, uint32_t graph, oi_stmts *list)
{
    oi_stmts all = {0};
    OI_RESERVE(u->arena, &all, list->n);
    for (size_t i = 0; i < list->n; i++) {
        take_list(u, graph, &list->at[i].body);
        if (list->at[i].kind == OI_STMT_KERNEL && u->kernels.at[list->at[i].kernel].offer)
            take(u, graph, &list->at[i], &all);
        *OI_PUSH(u->arena, &all) = list->at[i];
    }
    *list = all;
}

oi_status oi_pass_recipes(oi_unit *u)
{
    for (uint32_t g = 0; g < u->graphs.n; g++)
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            if (u->graphs.at[g].blocks[b].is_used)
                take_list(u, g, &u->graphs.at[g].blocks[b].stmts);
    oi_units_share_prologues(u);
    return OI_OK;
}
