/* calls.c: the order of blocks, how often a step runs them, and which statements may fail. */
#include "synth/pass.h"

typedef struct calling {
    oi_unit *u;
    oi_sgraph *g;
    uint32_t graph;
    uint32_t *order;
    uint32_t n;
    bool *is_in; /* by block: it is in `order` */
} calling;

typedef void call_fn(calling *x, uint32_t block, uint64_t times);

/* -- how often: UINT64_MAX if nothing bounds it -- */

uint64_t oi_times_of(uint64_t a, uint64_t b)
{
    uint64_t n;
    return a == UINT64_MAX || b == UINT64_MAX || __builtin_mul_overflow(a, b, &n) ? UINT64_MAX : n;
}

uint64_t oi_loop_times(const oi_stmt *loop)
{
    const oi_pnode *n = loop->node;
    int64_t from, to;
    if (!oi_code_is_int(&n->as.loop.start, &from) || !oi_code_is_int(&n->as.loop.end, &to))
        return UINT64_MAX;
    return to > from ? (uint64_t)to - (uint64_t)from : 0;
}

bool oi_yield_runs(const oi_program *p, const oi_stmt *s)
{
    return s->kind == OI_STMT_YIELD && s->node->source->block == p->entry;
}

/* Visits every block that the list may call, with the number of calls. */
static void each_call(calling *x, const oi_stmts *list, uint64_t times, call_fn *fn)
{
    const oi_program *p = x->g->program;
    for (size_t i = 0; i < list->n; i++) {
        const oi_stmt *s = &list->at[i];
        const oi_pnode *n = s->node;
        if (s->kind == OI_STMT_LOOP)
            each_call(x, &s->body, oi_times_of(times, oi_loop_times(s)), fn);
        if (s->kind == OI_STMT_BRANCH) {
            fn(x, n->as.branch.then_block, times);
            if (n->as.branch.else_block != OI_NO_ID)
                fn(x, n->as.branch.else_block, times);
        }
        for (uint32_t k = 0; oi_yield_runs(p, s) && k < p->n_consumers; k++)
            fn(x, p->consumers[k], times); /* each at most once per yield */
    }
}

static void order_block(calling *x, uint32_t block, uint64_t times)
{
    if (x->is_in[block])
        return;
    x->is_in[block] = true;
    each_call(x, &x->g->blocks[block].stmts, times, order_block);
    x->order[x->n++] = block;
}

static void add_times(calling *x, uint32_t block, uint64_t times)
{
    uint64_t *own = &x->g->blocks[block].times;
    if (times == UINT64_MAX || __builtin_add_overflow(*own, times, own))
        *own = UINT64_MAX;
}

/* -- what may fail -- */

static bool port_may_fail(const calling *x, const oi_port *p)
{
    return oi_entry_may_fail(x->g->program, &x->u->tensors.at[p->tensor], p);
}

static bool value_may_fail(const calling *x, const oi_pvalue *v)
{
    return v->kind == OI_PV_CODE && oi_code_may_fail(x->g->program, &v->code);
}

static bool kernel_may_fail(const calling *x, const oi_skernel *k)
{
    bool may = k->can_fail;
    for (size_t i = 0; i < k->ports.n; i++)
        may |= x->u->tensors.at[k->ports.at[i].tensor].space != OI_SPACE_LOCAL &&
               port_may_fail(x, &k->ports.at[i]);
    for (size_t i = 0; i < k->scalars.n; i++)
        may |= !k->scalars.at[i].is_length && value_may_fail(x, &k->scalars.at[i].value);
    return may;
}

static bool codes_may_fail(const calling *x, const oi_code *codes, uint32_t n)
{
    bool may = false;
    for (uint32_t i = 0; codes && i < n; i++)
        may |= oi_code_may_fail(x->g->program, &codes[i]);
    return may;
}

static bool part_may_fail(const calling *x, const oi_port *p)
{
    return port_may_fail(x, p) || codes_may_fail(x, p->count, x->u->tensors.at[p->tensor].rank);
}

static bool resize_may_fail(const calling *x, const oi_stmt *s)
{
    return codes_may_fail(x, s->resize->sizes, x->u->tensors.at[s->a.tensor].rank) ||
           codes_may_fail(x, s->resize->counts, s->resize->n_counts);
}

static bool view_may_fail(const calling *x, const oi_stmt *s)
{
    return port_may_fail(x, &s->a) ||
           (s->kernel != OI_NO_ID && kernel_may_fail(x, &x->u->kernels.at[s->kernel]));
}

static bool block_may_fail(const calling *x, uint32_t block)
{
    return block != OI_NO_ID && x->g->blocks[block].may_fail;
}

static bool find_failing(calling *x, oi_stmts *list);

static bool stmt_may_fail(calling *x, oi_stmt *s)
{
    const oi_pnode *n = s->node;
    const oi_program *p = x->g->program;
    const bool body = find_failing(x, &s->body);
    switch (s->kind) {
    case OI_STMT_KERNEL: return kernel_may_fail(x, &x->u->kernels.at[s->kernel]);
    case OI_STMT_SET: return port_may_fail(x, &s->a) || value_may_fail(x, &s->value);
    case OI_STMT_LOOP:
        return body || oi_code_may_fail(p, &n->as.loop.start) ||
               oi_code_may_fail(p, &n->as.loop.end);
    case OI_STMT_PIPELINE: return body;
    case OI_STMT_BRANCH:
        return block_may_fail(x, n->as.branch.then_block) ||
               block_may_fail(x,
                              n->as.branch.cond == OI_NO_ID ? OI_NO_ID : n->as.branch.else_block);
    case OI_STMT_YIELD:
    case OI_STMT_AWAIT: return n->source->block == p->entry;
    case OI_STMT_LIMIT: return true;
    case OI_STMT_SHAPE:
    case OI_STMT_NEED: return s->n_checks > 0;
    case OI_STMT_RESIZE: return resize_may_fail(x, s);
    case OI_STMT_LOG: return part_may_fail(x, &s->a);
    case OI_STMT_VIEW: return view_may_fail(x, s);
    case OI_STMT_LENGTH:
        return !(x->u->tensors.at[s->b.tensor].run_dims >> s->limit & 1) || port_may_fail(x, &s->a);
    case OI_STMT_CHECK: return port_may_fail(x, &s->a);
    case OI_STMT_BARRIER:
    case OI_STMT_SIZES:
    case OI_STMT_RETURN:
    case OI_STMT_GONE: return false;
    }
    return true;
}

static bool find_failing(calling *x, oi_stmts *list)
{
    bool any = false;
    for (size_t i = 0; i < list->n; i++) {
        list->at[i].may_fail = stmt_may_fail(x, &list->at[i]);
        any |= list->at[i].may_fail;
    }
    return any;
}

void oi_calls_find(oi_unit *u, uint32_t graph)
{
    calling x = {.u = u, .g = &u->graphs.at[graph], .graph = graph};
    const uint32_t n = x.g->program->n_blocks;
    x.order = oi_arena_alloc(u->arena, (n + 1) * sizeof *x.order);
    x.is_in = oi_arena_alloc(u->arena, (n + 1) * sizeof *x.is_in);
    for (uint32_t b = 0; b < n; b++) {
        x.g->blocks[b].times = 0;
        if (x.g->blocks[b].is_used)
            order_block(&x, b, 1);
    }
    for (uint32_t i = 0; i < x.n; i++) { /* what a block calls comes before it */
        oi_sblock *block = &x.g->blocks[x.order[i]];
        block->may_fail = find_failing(&x, &block->stmts);
    }
    add_times(&x, x.g->program->entry, 1);
    for (uint32_t i = x.n; i-- > 0;) /* and is counted after it */
        each_call(&x, &x.g->blocks[x.order[i]].stmts, x.g->blocks[x.order[i]].times, add_times);
    x.g->order = x.order;
    x.g->n_order = x.n;
}
