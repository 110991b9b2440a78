/* inplace.c: results that overwrite their inputs.
 * needs:  kernels and statements in their final form
 * keeps:  every result: an element is read before it is written, by the iteration that writes it
 * makes:  one tensor of two, where one kernel is the last reader of the first and writes the second
 *
 * A map over a tensor that nothing reads afterwards needs no memory for its result, and a thread
 * touches only its own partition of both. A tuned body may declare the same for an input; its
 * epilogue is such a map over its other operands. In a loop, a value that alternates between two
 * tensors needs only one. A row pipeline counts as one kernel: its last producer may overwrite rows
 * that no kernel of it reads any more. */
#include "synth/inplace.h"
#include "synth/compose.h"
#include "synth/pipeline.h"

typedef struct joining {
    oi_unit *u;
    uint32_t graph;
    uint32_t *into; /* by tensor: the tensor it was merged into; NULL: nothing was merged */
    const oi_lifetime **life; /* by tensor; NULL: none */
} joining;

/* The nest that stores the result. */
static oi_snest *nest_of(const oi_skernel *k)
{
    return k->epilogue ? k->epilogue : &k->nests.at[0];
}

static bool is_candidate(const joining *j, uint32_t tensor)
{
    const oi_tensor *t = &j->u->tensors.at[tensor];
    return t->space == OI_SPACE_ARENA && oi_dtype_bits(t->dtype) >= 8 && !t->n_table &&
           !t->run_dims && t->graph == j->graph && (!j->into || j->into[tensor] == tensor) &&
           !t->ring && j->life[tensor];
}

/* The kernel's stores, which must go to one tensor and be the last instructions of an iteration:
 * returns the first, and their number. */
static size_t last_stores(const oi_skernel *k, const oi_sops **in, const oi_sop **first)
{
    const oi_snest *n = nest_of(k);
    *in = n->kind == OI_NEST_MAP ? &n->pre : &n->post;
    size_t at = (*in)->n, stores = 0;
    while (at > 0 && (*in)->at[at - 1].kind == OI_SOP_STORE &&
           (*in)->at[at - 1].port == (*in)->at[(*in)->n - 1].port)
        at--;
    for (int post = 0; post < 2; post++)
        for (size_t i = 0; i < (post ? n->post.n : n->pre.n); i++)
            stores += (post ? n->post : n->pre).at[i].kind == OI_SOP_STORE;
    *first = (*in)->at + at;
    return stores == (*in)->n - at ? stores : 0;
}

/* Whether every load of the port reads the element that the same iteration then stores, or one of
 * them. */
static bool reads_its_own(const oi_unit *u, const oi_skernel *k, uint32_t port)
{
    const oi_sops *in;
    const oi_sop *store;
    const size_t stores = last_stores(k, &in, &store);
    const oi_snest *n = nest_of(k);
    uint32_t rank = u->tensors.at[k->ports.at[port].tensor].rank;
    if (!stores)
        return false;
    for (int post = 0; post < 2; post++) {
        const oi_sops *ops = post ? &n->post : &n->pre;
        for (size_t i = 0; i < ops->n; i++) {
            const oi_sop *op = &ops->at[i];
            if (!op->at || op->kind == OI_SOP_PLACE || op->kind == OI_SOP_STORE || op->port != port)
                continue;
            bool is_private = false;
            for (size_t s = 0; s < stores; s++)
                is_private |= oi_sop_same_place(op, &store[s], rank);
            if (ops != in || op->kind != OI_SOP_LOAD || !is_private)
                return false;
        }
    }
    return true;
}

static bool is_simple(const oi_skernel *k)
{
    if (k->epilogue || k->recipe || !k->nests.n)
        return k->epilogue;
    const oi_snest *n = nest_of(k);
    return k->nests.n == 1 && !k->is_dynamic && !n->is_serial && !n->is_scan && !n->combines_out &&
           !n->extents;
}

/* Whether a tuned body, too, has read an element of the port before it stores it. */
static bool body_allows(const oi_skernel *k, uint32_t port)
{
    if (k->recipe && k->plan->sums_in_result)
        return false;
    for (uint32_t i = 0; k->recipe && i < k->plan->n_args; i++)
        if (k->arg_ports[i] == port && (k->plan->args[i].kind != OI_ARG_IN || !k->plan->in_place))
            return false;
    return true;
}

/* The result may overwrite the input. */
static bool may_join(const joining *j, const oi_skernel *k, uint32_t in, uint32_t out)
{
    const oi_tensor *old = &j->u->tensors.at[k->ports.at[in].tensor];
    const oi_tensor *young = &j->u->tensors.at[k->ports.at[out].tensor];
    for (uint32_t i = 0; i < k->ports.n; i++)
        if (i != in && k->ports.at[i].tensor == k->ports.at[in].tensor)
            return false;
    return oi_tensor_same_type(old, young) && body_allows(k, in) && reads_its_own(j->u, k, in);
}

void oi_inplace_join(oi_unit *u, oi_skernel *k, uint32_t from, uint32_t to)
{
    const uint32_t n_args = k->recipe ? k->plan->n_args : 0;
    uint32_t *args = oi_arena_alloc(u->arena, (n_args + 1) * sizeof *args);
    for (uint32_t i = 0; i < n_args; i++) {
        args[i] = k->arg_ports[i] == from ? to : k->arg_ports[i];
        args[i] -= args[i] != OI_NO_ID && args[i] > from;
    }
    k->arg_ports = args;
    oi_snest *n = nest_of(k);
    for (int post = 0; post < 2; post++)
        for (size_t i = 0; i < (post ? n->post.n : n->pre.n); i++) {
            oi_sop *op = &(post ? &n->post : &n->pre)->at[i];
            if (op->at && op->kind != OI_SOP_PLACE && op->port == from)
                op->port = to;
            op->port -= op->port > from;
        }
    memmove(&k->ports.at[from], &k->ports.at[from + 1],
            (k->ports.n - from - 1) * sizeof *k->ports.at);
    k->ports.n--;
}

static void join(joining *j, oi_skernel *k, uint32_t in, uint32_t out)
{
    uint32_t old = k->ports.at[in].tensor, young = k->ports.at[out].tensor;
    oi_lifetime *life = oi_arena_alloc(j->u->arena, sizeof *life);
    *life = *j->life[old];
    life->last = j->life[young]->last;
    j->life[old] = life;
    j->into[young] = old;
    oi_inplace_join(j->u, k, in, out);
}

/* Finds the port of a result and the port of the input that it can overwrite. */
static bool find_join(joining *j, oi_skernel *k, uint32_t at, uint32_t *found_in,
                      uint32_t *found_out)
{
    if (at == OI_NO_ID || k->graph != j->graph || !is_simple(k))
        return false;
    for (uint32_t out = 0; out < k->ports.n; out++) {
        if (!k->ports.at[out].is_written || k->ports.at[out].is_dropped)
            continue;
        uint32_t young = k->ports.at[out].tensor;
        if (!is_candidate(j, young) || j->life[young]->first != at || j->life[young]->needs_start)
            return false;
        for (uint32_t in = 0; in < k->ports.n; in++) {
            uint32_t old = k->ports.at[in].tensor;
            while (j->into[old] != old)
                old = j->into[old];
            k->ports.at[in].tensor = old;
            if (k->ports.at[in].is_written || k->ports.at[in].is_dropped || old == young ||
                !is_candidate(j, old) || j->life[old]->last != at || !may_join(j, k, in, out))
                continue;
            *found_in = in;
            *found_out = out;
            return true;
        }
    }
    return false;
}

static void try_kernel(joining *j, uint32_t kernel, uint32_t at)
{
    oi_skernel *k = &j->u->kernels.at[kernel];
    uint32_t in, out;
    if (find_join(j, k, at, &in, &out))
        join(j, k, in, out);
}

/* -- kernels that take turns -- */

static bool may_follow(const joining *j, uint32_t old, uint32_t young, uint32_t from, uint32_t to)
{
    return old != young && is_candidate(j, old) && is_candidate(j, young) &&
           j->life[old]->first < from && j->life[old]->last >= from && j->life[old]->last <= to &&
           j->life[young]->first >= from && j->life[young]->first <= to &&
           !j->life[young]->needs_start &&
           oi_tensor_same_type(&j->u->tensors.at[old], &j->u->tensors.at[young]);
}

static uint32_t port_on(const oi_skernel *k, uint32_t tensor, bool is_written);

static void try_turns(joining *j, oi_stmt *s, uint32_t at)
{
    const oi_pipeline t = oi_pipeline_of(j->u, s);
    const uint32_t young = t.producers[t.n - 1].out;
    if (j->u->tensors.at[t.producers[0].out].is_private)
        return; /* threads are at different rows, so one may read what another overwrites */
    oi_skernel *last = &j->u->kernels.at[s->body.at[t.n - 1].kernel];
    for (uint32_t by = 0; by < t.n; by++)
        for (size_t i = 0; i < t.producers[by].reads.n; i++) {
            const uint32_t old = t.producers[by].reads.at[i].tensor;
            const uint32_t in = port_on(last, old, false), out = port_on(last, young, true);
            if (!may_follow(j, old, young, at, at) || !oi_pipeline_may_overwrite(&t, old) ||
                (in != OI_NO_ID && !may_join(j, last, in, out)))
                continue;
            oi_lifetime *life = oi_arena_alloc(j->u->arena, sizeof *life);
            *life = *j->life[old];
            life->last = j->life[young]->last;
            j->life[old] = life;
            j->into[young] = old;
            if (in != OI_NO_ID)
                oi_inplace_join(j->u, last, in, out);
            return;
        }
}

static void rename_mention(void *ctx, const oi_mention *m);

/* In program order, so that a merged tensor goes by its new name. */
static void try_all_turns(joining *j, oi_stmts *list, const oi_lifetimes *live)
{
    for (size_t i = 0; i < list->n; i++) {
        oi_stmt *s = &list->at[i];
        if (s->kind == OI_STMT_LOOP)
            try_all_turns(j, &s->body, live);
        if (s->kind != OI_STMT_PIPELINE)
            continue;
        oi_stmts_mentions(j->u, j->graph, &s->body, rename_mention, j);
        try_turns(j, s, live->turns_at[s->body.at[0].kernel]);
    }
}

const uint64_t *oi_inplace_saves(oi_unit *u, uint32_t graph, const oi_lifetimes *live,
                                 const oi_lifetime **life)
{
    joining j = {.u = u, .graph = graph, .life = life};
    uint64_t *saved = oi_arena_alloc(u->arena, (u->kernels.n + 1) * sizeof *saved);
    uint32_t in, out;
    j.into = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *j.into);
    for (uint32_t i = 0; i < u->tensors.n; i++)
        j.into[i] = i;
    for (uint32_t k = 0; k < u->kernels.n && !oi_unit_skips(u, "inplace"); k++)
        if (u->kernels.at[k].is_used &&
            find_join(&j, &u->kernels.at[k], live->kernel_at[k], &in, &out))
            saved[k] = oi_tensor_bytes(&u->tensors.at[u->kernels.at[k].ports.at[out].tensor]);
    return saved;
}

bool oi_inplace_may_follow(oi_unit *u, uint32_t graph, const oi_lifetime **life, uint32_t old,
                           uint32_t young, uint32_t from, uint32_t to)
{
    joining j = {.u = u, .graph = graph, .life = life};
    return may_follow(&j, old, young, from, to);
}

/* -- there and back -- */

typedef struct looking {
    uint32_t tensor;
    bool reads, writes;
} looking;

static void look(void *ctx, const oi_mention *m)
{
    looking *x = ctx;
    if (m->tensor == x->tensor) {
        x->reads |= m->reads || !m->port || m->port->n_entry;
        x->writes |= m->writes;
    }
}

/* The next statement that mentions the tensor, if it replaces the whole value. */
static oi_skernel *next_writer(joining *j, oi_stmts *list, size_t at, uint32_t tensor)
{
    for (size_t i = at + 1; i < list->n; i++) {
        looking x = {.tensor = tensor};
        oi_stmt_mentions(j->u, j->graph, &list->at[i], look, &x);
        oi_stmts_mentions(j->u, j->graph, &list->at[i].body, look, &x);
        if (list->at[i].kind == OI_STMT_BRANCH || list->at[i].kind == OI_STMT_YIELD || x.reads)
            return NULL;
        if (x.writes)
            return list->at[i].kind == OI_STMT_KERNEL ? &j->u->kernels.at[list->at[i].kernel]
                                                      : NULL;
    }
    return NULL;
}

static uint32_t port_on(const oi_skernel *k, uint32_t tensor, bool is_written)
{
    uint32_t found = OI_NO_ID;
    for (uint32_t i = 0; i < k->ports.n; i++)
        if (k->ports.at[i].tensor == tensor) {
            if (k->ports.at[i].is_written != is_written || found != OI_NO_ID)
                return OI_NO_ID; /* not a plain read or write */
            found = i;
        }
    return found;
}

/* Statement `at` computes `young` from `old`; a later one may compute a new `old` from it. */
static bool try_round(joining *j, oi_stmts *list, size_t at, uint32_t in, uint32_t out,
                      const uint32_t *kernel_at)
{
    oi_skernel *k = &j->u->kernels.at[list->at[at].kernel];
    const uint32_t old = k->ports.at[in].tensor, young = k->ports.at[out].tensor;
    if (old == young || !is_candidate(j, old) || !is_candidate(j, young) ||
        !may_join(j, k, in, out))
        return false;
    oi_skernel *back = next_writer(j, list, at, old);
    if (!back || back == k || !is_simple(back))
        return false;
    const uint32_t here = kernel_at[k - j->u->kernels.at],
                   there = kernel_at[back - j->u->kernels.at];
    const oi_lifetime *life = j->life[young];
    if (here == OI_NO_ID || there == OI_NO_ID || life->needs_start || life->first != here ||
        life->last > there)
        return false;
    if (life->last == there) {
        const uint32_t from = port_on(back, young, false), to = port_on(back, old, true);
        if (from == OI_NO_ID || to == OI_NO_ID || !may_join(j, back, from, to))
            return false;
        oi_inplace_join(j->u, back, from, to);
    }
    j->into[young] = old;
    oi_inplace_join(j->u, k, in, out);
    return true;
}

static void try_rounds(joining *j, oi_stmts *list, const uint32_t *kernel_at)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i].kind == OI_STMT_LOOP)
            try_rounds(j, &list->at[i].body, kernel_at);
        if (list->at[i].kind != OI_STMT_KERNEL)
            continue;
        oi_skernel *k = &j->u->kernels.at[list->at[i].kernel];
        bool is_done = !is_simple(k);
        for (uint32_t in = 0; in < k->ports.n && !is_done; in++)
            for (uint32_t out = 0; out < k->ports.n && !is_done; out++)
                if (!k->ports.at[in].is_written && k->ports.at[out].is_written)
                    is_done = try_round(j, list, i, in, out, kernel_at);
    }
}

static void rename_mention(void *ctx, const oi_mention *m)
{
    const joining *j = ctx;
    if (!m->port)
        return;
    while (j->into[m->port->tensor] != m->port->tensor)
        m->port->tensor = j->into[m->port->tensor];
}

static void join_graph(oi_unit *u, uint32_t graph)
{
    joining j = {.u = u, .graph = graph};
    oi_lifetimes live = {.n_positions = 0};
    oi_sgraph *g = &u->graphs.at[graph];
    oi_live_find(u, graph, &live);
    j.into = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *j.into);
    j.life = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *j.life);
    for (uint32_t i = 0; i < u->tensors.n; i++)
        j.into[i] = i;
    for (size_t i = 0; i < live.list.n; i++)
        j.life[live.list.at[i].tensor] = &live.list.at[i];
    for (uint32_t k = 0; k < u->kernels.n; k++)
        if (u->kernels.at[k].is_used)
            try_kernel(&j, k, live.kernel_at[k]);
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        try_all_turns(&j, &g->blocks[b].stmts, &live);
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        oi_stmts_mentions(u, graph, &g->blocks[b].stmts, rename_mention, &j);
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        try_rounds(&j, &g->blocks[b].stmts, live.kernel_at);
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        oi_stmts_mentions(u, graph, &g->blocks[b].stmts, rename_mention, &j);
    for (uint32_t v = 0; v < g->program->n_vars; v++)
        while (g->tensor_of[v] != OI_NO_ID && j.into[g->tensor_of[v]] != g->tensor_of[v])
            g->tensor_of[v] = j.into[g->tensor_of[v]];
}

oi_status oi_pass_inplace(oi_unit *u)
{
    for (uint32_t g = 0; g < u->graphs.n; g++)
        join_graph(u, g);
    return OI_OK;
}
