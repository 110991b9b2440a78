/* need.c: the least memory that a graph's steps take, known before anything runs: the values of its
 * variables, persistent memory as it begins, and for the hungriest node its scratch and the model
 * tensors it uses, whole or cut into the smallest parts. Lengths that only the run knows, and
 * tables that grow, are left out: they are refused when they come. */
#include "sim/chunks.h"

#define NUMBERS 4096u /* bytes: numbers in indices, bounds and attributes that the model lends */

typedef struct needs {
    const oi_sim *s;
    const oi_program *p;
    oi_arena *arena;
    uint64_t *written, *shared, *used; /* sets of variables */
    uint32_t *state_writes;            /* nodes per persistent variable; in loops and callees two */
    uint64_t values, state, node;
    const oi_pnode *hungriest;
} needs;

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t buffer(uint64_t bytes)
{
    return bytes ? oi_buffer_cost(bytes) : 0;
}

static void mark(uint64_t *set, uint32_t i)
{
    set[i / 64] |= (uint64_t)1 << i % 64;
}

static void mark_ref(uint64_t *set, const oi_pref *r)
{
    if (!r->is_index)
        mark(set, r->var);
}

/* -- what nodes do to variables -- */

static bool writes_state(const oi_pnode *n)
{
    return n->kind == OI_NODE_CACHE_WRITE || n->kind == OI_NODE_CACHE_RESET;
}

static void scan(needs *x, const oi_pnode *n)
{
    switch (n->kind) {
    case OI_NODE_OP:
        for (uint32_t i = 0; i < n->as.op.n_in; i++)
            mark_ref(x->used, &n->as.op.in[i]);
        for (uint32_t i = 0; i < n->as.op.n_out; i++)
            mark_ref(x->written, &n->as.op.out[i]);
        break;
    case OI_NODE_TRANSFER:
        mark_ref(x->used, &n->as.move.from);
        mark_ref(x->written, &n->as.move.to);
        mark_ref(x->shared, &n->as.move.from);
        mark_ref(x->shared, &n->as.move.to);
        break;
    case OI_NODE_CACHE_READ: mark_ref(x->written, &n->as.move.to); break;
    case OI_NODE_CACHE_WRITE: mark_ref(x->used, &n->as.move.from); break;
    case OI_NODE_RETURN:
        for (uint32_t i = 0; i < n->as.list.n; i++)
            mark(x->used, n->as.list.vars[i]);
        break;
    default: break;
    }
    if (writes_state(n))
        x->state_writes[n->as.move.cache.var]++;
}

static void scan_list(needs *x, const oi_ids *list, bool once)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const oi_pnode *n = &x->p->nodes[list->at[i]];
        scan(x, n);
        if (!once && writes_state(n))
            scan(x, n);
        if (n->kind == OI_NODE_LOOP)
            scan_list(x, &n->source->as.loop.body, false);
    }
}

/* -- variables -- */

/* Tensors of the model that are entries of a prefix table, with data or without. */
static uint64_t count_entries(const needs *x, const oi_pvar *v, bool with_data)
{
    uint64_t n = 0;
    int64_t indices[OI_MAX_RANK];
    oi_tensor_info info;
    for (size_t i = 0; i < oi_model_n_tensors(x->p->model); i++)
        if (oi_pattern_match(v, oi_model_tensor_name(x->p->model, i), indices) &&
            oi_model_tensor_info_at(x->p->model, i, &info) == OI_OK &&
            (with_data || !info.has_data))
            n++;
    return n;
}

static bool is_used(const needs *x, uint32_t i)
{
    return oi_mask_has(x->used, i) || oi_mask_has(x->written, i) ||
           x->p->vars[i].kind == OI_SYM_DYNAMIC;
}

/* In entry, and once more for every consumer that sees or changes it. */
static uint64_t value_bytes(const needs *x, uint32_t i)
{
    const oi_pvar *v = &x->p->vars[i];
    const bool written = oi_mask_has(x->written, i);
    uint64_t copies = 1, bytes;
    if (!is_used(x, i) || (v->source != OI_FROM_INIT && !written && !v->is_prefix))
        return 0;
    if (v->is_prefix)
        copies = x->p->model ? count_entries(x, v, written) : 0;
    for (uint32_t k = 0; k < x->p->n_consumers; k++)
        copies += oi_mask_has(x->p->blocks[x->p->consumers[k]].uses, i);
    return __builtin_mul_overflow(copies, buffer(v->size_bytes), &bytes) ? UINT64_MAX : bytes;
}

/* A number, or what comes from the model, is stored at once; other plain tensors when they are
 * first written. Until the step ends, what was overwritten is kept, as a log and then as a copy. */
static uint64_t state_bytes(const needs *x, uint32_t i)
{
    const oi_pvar *v = &x->p->vars[i];
    const uint32_t writes = x->state_writes[i] < 2 ? x->state_writes[i] : 2;
    if (v->n_axes || (v->source == OI_FROM_INIT && v->rank > 0 && !writes))
        return 0;
    uint64_t bytes = v->size_bytes;
    for (uint32_t k = 0; k < writes; k++)
        bytes = plus(bytes, plus(v->size_bytes, 1)); /* and whether it was written */
    return bytes;
}

/* -- nodes -- */

/* The operand may be the model's data when the node runs. */
static bool may_be_weight(const needs *x, const oi_pref *r)
{
    return !r->is_index &&
           (x->p->vars[r->var].source == OI_FROM_TENSOR || x->p->vars[r->var].is_prefix);
}

static uint64_t weight_bytes(const needs *x, const oi_pref *r)
{
    const uint64_t bytes = may_be_weight(x, r) ? x->p->vars[r->var].size_bytes : 0;
    return (bytes + OI_BUFFER_ALIGN - 1) & ~(uint64_t)(OI_BUFFER_ALIGN - 1);
}

/* A new buffer while the old one is still there. */
static uint64_t apart_bytes(const needs *x, const oi_pnode *n, bool always)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n->as.op.n_out; i++) {
        const oi_pref *r = &n->as.op.out[i];
        const oi_pvar *v = &x->p->vars[r->var];
        if (always || x->p->n_consumers || oi_mask_has(x->shared, r->var))
            sum = plus(sum, buffer(v->size_bytes));
    }
    return sum;
}

static uint64_t op_bytes(const needs *x, const oi_pnode *n)
{
    const oi_prepared *ready;
    const oi_kernel_query *q = oi_op_planned(x->s, n, &ready);
    bool is_weight[OI_KERNEL_PORTS] = {false}, rows = q && oi_chunks_picks_rows(q);
    uint64_t weights = 0;
    for (uint32_t i = 0; i < n->as.op.n_in; i++) {
        is_weight[i] = may_be_weight(x, &n->as.op.in[i]);
        weights = plus(weights, i == 0 && rows ? 0 : weight_bytes(x, &n->as.op.in[i]));
    }
    const uint64_t apart = apart_bytes(x, n, !q || oi_op_is_apart(x->s, n));
    uint64_t whole = plus(weights, q ? buffer(ready->scratch_bytes) : 0);
    if (q && weights && whole > NUMBERS) {
        const uint64_t parts = oi_chunks_least(x->arena, q, ready, is_weight, oi_op_cpu(x->s));
        whole = parts < whole ? parts : whole;
    }
    return plus(whole, apart);
}

static uint64_t node_bytes(const needs *x, const oi_pnode *n)
{
    switch (n->kind) {
    case OI_NODE_OP: return op_bytes(x, n);
    case OI_NODE_TRANSFER: {
        const oi_pref *to = &n->as.move.to;
        const oi_pvar *v = &x->p->vars[to->var];
        return v->has_run_dims ? 0 : buffer(v->size_bytes); /* when the value cannot be shared */
    }
    case OI_NODE_CACHE_WRITE: return weight_bytes(x, &n->as.move.from);
    case OI_NODE_CACHE_RESET: {
        const oi_pvar *v = &x->p->vars[n->as.move.cache.var];
        const bool part = !oi_access_is_whole(&n->as.move.cache) && v->source != OI_FROM_INIT;
        return part ? plus(v->size_bytes, buffer(v->size_bytes)) : 0;
    }
    default: return 0;
    }
}

/* Copies that are fetched of what the model lends. */
static uint64_t returned_bytes(const needs *x)
{
    const oi_ids *list = &x->p->blocks[x->p->entry].source->nodes;
    const oi_pnode *n = list->n ? &x->p->nodes[list->at[list->n - 1]] : NULL;
    uint64_t sum = 0;
    for (uint32_t i = 0; n && n->kind == OI_NODE_RETURN && i < n->as.list.n; i++) {
        const oi_pvar *v = &x->p->vars[n->as.list.vars[i]];
        if (v->source == OI_FROM_TENSOR && v->kind != OI_SYM_PERSISTENT)
            sum = plus(sum, plus(buffer(v->size_bytes), v->size_bytes));
    }
    return sum;
}

/* -- the whole -- */

static void measure(void *ctx)
{
    needs *x = ctx;
    const size_t words = x->p->n_mask + 1;
    x->written = oi_arena_alloc(x->arena, words * sizeof *x->written);
    x->shared = oi_arena_alloc(x->arena, words * sizeof *x->shared);
    x->used = oi_arena_alloc(x->arena, words * sizeof *x->used);
    x->state_writes = oi_arena_alloc(x->arena, (x->p->n_vars + 1) * sizeof *x->state_writes);
    for (uint32_t b = 0; b < x->p->n_blocks; b++)
        scan_list(x, &x->p->blocks[b].source->nodes, b == x->p->entry);
    for (uint32_t i = 0; i < x->p->n_vars; i++)
        if (x->p->vars[i].kind == OI_SYM_PERSISTENT)
            x->state = plus(x->state, state_bytes(x, i));
        else
            x->values = plus(x->values, value_bytes(x, i));
    x->values = plus(x->values, returned_bytes(x));
    for (size_t i = 0; i < x->p->graph->nodes.n; i++) {
        const uint64_t bytes = node_bytes(x, &x->p->nodes[i]);
        if (bytes <= x->node)
            continue;
        x->node = bytes;
        x->hungriest = &x->p->nodes[i];
    }
}

static oi_status refuse(const needs *x, uint64_t least, oi_diag *d)
{
    const oi_graph *g = x->p->graph;
    oi_place at = {.file = g->source.name ? g->source.name : g->origin ? g->origin : "graph"};
    oi_diag_error(d, at, "E065",
                  "a memory limit of %llu bytes cannot be kept: the least that would do is %llu",
                  (unsigned long long)x->s->budget.limit, (unsigned long long)least);
    oi_diag_note(d, at, "values take %llu, persistent memory %llu", (unsigned long long)x->values,
                 (unsigned long long)x->state);
    if (x->hungriest) {
        const oi_node *n = x->hungriest->source;
        oi_diag_note(d, oi_graph_place_node(g, x->arena, n, n->span), "this node takes %llu more",
                     (unsigned long long)x->node);
    }
    return OI_ERR_INPUT;
}

oi_status oi_need_check(oi_sim *s, oi_diag *d)
{
    needs x = {.s = s, .p = s->program, .arena = oi_arena_new()};
    if (!x.arena || oi_arena_guard(x.arena, measure, &x) != OI_OK) {
        oi_arena_free(x.arena);
        return oi_diag_env(d, "simulator", "out of memory");
    }
    const uint64_t least = plus(plus(x.values, x.state), plus(x.node, NUMBERS));
    oi_status status = least > s->budget.limit ? refuse(&x, least, d) : OI_OK;
    oi_arena_free(x.arena);
    return status;
}
