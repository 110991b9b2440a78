/* flow.c: the pipelined form of a graph: which kernels there are, what connects them, and how far
 * they are folded. The first fold that fits the device's budgets is taken, from its target interval
 * on. */
#include "emit/hdl/flow.h"

#include <inttypes.h>

#define MOST_WORK 60000 /* instructions that are unrolled: beyond that it is no tiny net */
#define MOST_FOLD 4096
#define DIGITS    4 /* a product with a constant of so many digits is cheaper as a sum of shifts */

static bool fail(oi_flow *f, const char *why)
{
    f->why = f->why ? f->why : why;
    return false;
}

/* -- which graphs -- */

static const char *obstacle(const oi_plan *p)
{
    if (p->graphs.n != 1)
        return "there are several graphs";
    for (size_t i = 0; i < p->stores.n; i++) {
        const oi_store_var *v = &p->stores.at[i];
        const oi_dtype t = p->tensors.at[v->tensor].dtype;
        if (v->grows || v->has_marks || v->n_table)
            return "persistent memory grows, or has entries";
        if (oi_dtype_is_float(t) || t == OI_U64)
            return "an element is no integer of up to 63 bits";
    }
    if (!p->graphs.at[0].inputs.n || !p->graphs.at[0].outputs.n)
        return "there is no input, or no output";
    for (size_t i = 0; i < p->graphs.at[0].inputs.n; i++) {
        const oi_tensor *t = &p->tensors.at[p->graphs.at[0].inputs.at[i]];
        if (oi_dtype_is_float(t->dtype) || t->dtype == OI_U64)
            return "an element is no integer of up to 63 bits";
        if (t->space != OI_SPACE_INPUT)
            return "an input is changed in its place";
    }
    return NULL;
}

/* -- kernels and streams -- */

/* Elements that can be anything of their type. */
static uint32_t put_source(oi_flow *f, uint32_t tensor, bool is_state)
{
    oi_arena *a = f->h->arena;
    const oi_tensor *t = &f->h->p->tensors.at[tensor];
    const oi_range all = oi_range_of_type(t->dtype == OI_BOOL ? OI_U8 : t->dtype);
    oi_flow_stream s = {.tensor = tensor,
                        .n = oi_hdl_extent(t),
                        .producer = OI_NO_ID,
                        .is_state = is_state,
                        .is_early = is_state,
                        .interval = 1};
    s.range = oi_arena_alloc(a, (s.n + 1) * sizeof *s.range);
    s.offset = oi_arena_alloc(a, (s.n + 1) * sizeof *s.offset);
    for (uint64_t e = 0; e < s.n; e++) {
        s.range[e] = all;
        s.offset[e] = s.bits;
        s.bits += oi_range_bits(all);
    }
    f->current[tensor] = (uint32_t)f->streams.n;
    *OI_PUSH(a, &f->streams) = s;
    return f->current[tensor];
}

static void put_state(oi_flow *f, const oi_store_var *v)
{
    *OI_PUSH(f->h->arena, &f->states) =
        (oi_flow_state){.var = v, .from = put_source(f, v->tensor, true)};
}

uint64_t oi_flow_base(oi_flow *f, const oi_port *p)
{
    const oi_tensor *t = &f->h->p->tensors.at[p->tensor];
    uint64_t stride = 1, first = f->base[p->tensor];
    int64_t n = 0;
    if (t->space == OI_SPACE_VIEW || oi_dtype_bits(t->dtype) < 8)
        return first;
    for (uint32_t i = p->n_entry; i-- > 0; stride *= (uint64_t)t->dims[i]) {
        if (!oi_code_is_int(&p->entry[i], &n))
            fail(f, "a part of persistent memory is found when it runs");
        first += (uint64_t)n * stride;
    }
    return first;
}

static void put_kernel(oi_flow *f, const oi_stmt *s, uint64_t *left)
{
    const size_t n_streams = f->streams.n;
    uint64_t bits = 0;
    oi_flow_kernel *k = OI_PUSH(f->h->arena, &f->kernels);
    *k = (oi_flow_kernel){.kernel = s->kernel};
    if (!oi_flow_unroll(f, k, left))
        return;
    for (size_t i = n_streams; i < f->streams.n; i++)
        bits += f->streams.at[i].bits;
    if (bits == 0) { /* nothing but constants, which its consumers know */
        for (size_t i = n_streams; i < f->streams.n; i++)
            f->streams.at[i].producer = OI_NO_ID;
        f->kernels.n--;
        return;
    }
    if (!k->in.n)
        fail(f, "a kernel has no input");
}

static void put_list(oi_flow *f, const oi_stmts *list)
{
    uint64_t left = MOST_WORK;
    for (size_t i = 0; i < list->n && !f->why; i++)
        switch (list->at[i].kind) {
        case OI_STMT_KERNEL: put_kernel(f, &list->at[i], &left); break;
        case OI_STMT_VIEW: f->base[list->at[i].b.tensor] = oi_flow_base(f, &list->at[i].a); break;
        case OI_STMT_BARRIER:
        case OI_STMT_GONE:
        case OI_STMT_LOG: break;
        case OI_STMT_RETURN: return;
        default: fail(f, "it loops, branches or may fail"); return;
        }
}

/* -- how long things take -- */

/* By stream: the longest way from this one; -1: there is none. Kernels come after what they take.
 */
static int64_t *ways_from(const oi_flow *f, uint32_t stream)
{
    int64_t *ways = oi_arena_alloc(f->h->arena, (f->streams.n + 1) * sizeof *ways);
    for (size_t i = 0; i < f->streams.n; i++)
        ways[i] = i == stream ? 0 : -1;
    for (size_t i = 0; i < f->kernels.n; i++) {
        const oi_flow_kernel *k = &f->kernels.at[i];
        int64_t most = -1;
        for (size_t s = 0; s < k->in.n; s++)
            most = ways[k->in.at[s]] > most ? ways[k->in.at[s]] : most;
        for (size_t s = 0; most >= 0 && s < k->out.n; s++)
            ways[k->out.at[s].stream] = most + (int64_t)k->latency;
    }
    return ways;
}

/* When states are there, a step later. */
static void follow(const oi_flow *f, int64_t *const *ways, int64_t *there, int64_t *next)
{
    const size_t n = f->states.n;
    for (size_t to = 0; to < n; to++) {
        next[to] = there[to];
        for (size_t from = 0; from < n; from++) {
            const int64_t w = ways[from][f->states.at[to].to];
            if (w >= 0 && there[from] + w > next[to])
                next[to] = there[from] + w;
        }
    }
    memcpy(there, next, n * sizeof *there);
}

static int64_t latest(const int64_t *there, size_t n)
{
    int64_t most = 0;
    for (size_t i = 0; i < n; i++)
        most = there[i] > most ? there[i] : most;
    return most;
}

/* A step waits for the state that the one before it leaves. Steps are followed until they begin
 * evenly. */
static uint64_t loop_interval(const oi_flow *f)
{
    enum { STEPS = 32 };
    const size_t n = f->states.n;
    oi_arena *a = f->h->arena;
    int64_t **ways = oi_arena_alloc(a, (n + 1) * sizeof *ways),
            *there = oi_arena_alloc(a, (n + 1) * sizeof *there),
            *next = oi_arena_alloc(a, (n + 1) * sizeof *next);
    for (size_t i = 0; i < n; i++)
        ways[i] = ways_from(f, f->states.at[i].from);
    for (int step = 0; step < STEPS; step++)
        follow(f, ways, there, next);
    const int64_t before = latest(there, n);
    for (int step = 0; step < STEPS; step++)
        follow(f, ways, there, next);
    return (uint64_t)((latest(there, n) - before + STEPS - 1) / STEPS);
}

/* -- edges -- */

/* Beats of a short way wait for those of a long one. */
static void put_edge(oi_flow *f, uint32_t stream, uint32_t consumer, uint64_t start)
{
    oi_flow_stream *s = &f->streams.at[stream];
    const uint64_t waits = (start - s->latency + f->interval - 1) / f->interval;
    *OI_PUSH(f->h->arena, &f->edges) = (oi_flow_edge){
        .stream = stream, .consumer = consumer, .number = s->n_consumers++, .depth = waits + 2};
}

/* Connects a kernel to what it takes. What hangs on nothing but state is computed before the step
 * begins. */
static void connect_kernel(oi_flow *f, uint32_t i)
{
    const oi_flow_kernel *k = &f->kernels.at[i];
    uint64_t start = 0, interval = k->wires.n_phases;
    bool is_early = true;
    for (size_t s = 0; s < k->in.n; s++) {
        const oi_flow_stream *in = &f->streams.at[k->in.at[s]];
        is_early &= in->is_early;
        start = in->latency > start ? in->latency : start;
        interval = in->interval > interval ? in->interval : interval;
    }
    for (size_t s = 0; s < k->in.n; s++)
        put_edge(f, k->in.at[s], i, start);
    for (size_t s = 0; s < k->out.n; s++) {
        oi_flow_stream *out = &f->streams.at[k->out.at[s].stream];
        out->latency = is_early ? 0 : start + k->latency;
        out->interval = interval;
        out->is_early = is_early;
    }
}

static void find_interval(oi_flow *f)
{
    f->interval = loop_interval(f);
    f->interval = f->interval ? f->interval : 1;
    for (size_t i = 0; i < f->kernels.n; i++)
        if (f->kernels.at[i].wires.n_phases > f->interval)
            f->interval = f->kernels.at[i].wires.n_phases;
}

static void find_latency(oi_flow *f, uint32_t stream)
{
    const oi_flow_stream *s = &f->streams.at[stream];
    if (s->is_early)
        fail(f, "a result does not hang on an input");
    f->latency = s->latency > f->latency ? s->latency : f->latency;
}

static void connect(oi_flow *f)
{
    find_interval(f);
    for (uint32_t i = 0; i < f->kernels.n; i++)
        connect_kernel(f, i);
    for (size_t i = 0; i < f->outputs.n; i++)
        find_latency(f, f->outputs.at[i]);
    for (size_t i = 0; i < f->states.n; i++)
        find_latency(f, f->states.at[i].to);
    for (size_t i = 0; i < f->states.n; i++) {
        put_edge(f, f->states.at[i].to, OI_NO_ID, f->streams.at[f->states.at[i].to].latency);
        f->edges.at[f->edges.n - 1].shows = f->states.at[i].to;
        f->edges.at[f->edges.n - 1].is_sent = true;
        f->states.at[i].edge = (uint32_t)f->edges.n;
        put_edge(f, f->states.at[i].to, OI_NO_ID, f->streams.at[f->states.at[i].to].latency);
    }
    for (size_t i = 0; i < f->outputs.n; i++) { /* the first input's beats bring a constant */
        const uint32_t own = f->outputs.at[i];
        put_edge(f, f->streams.at[own].bits ? own : 0, OI_NO_ID, f->latency);
        f->edges.at[f->edges.n - 1].shows = own;
        f->edges.at[f->edges.n - 1].is_sent = true;
    }
}

/* What no kernel writes. */
static void put_unwritten(oi_flow *f, uint32_t tensor)
{
    oi_arena *a = f->h->arena;
    oi_flow_stream s = {.tensor = tensor,
                        .n = oi_hdl_extent(&f->h->p->tensors.at[tensor]),
                        .producer = OI_NO_ID,
                        .interval = 1};
    s.range = oi_arena_alloc(a, (s.n + 1) * sizeof *s.range);
    s.offset = oi_arena_alloc(a, (s.n + 1) * sizeof *s.offset);
    for (uint64_t e = 0; e < s.n; e++) {
        if (!oi_flow_element(f, tensor, e, &s.range[e].from))
            fail(f, "an output is kept from step to step");
        s.range[e].to = s.range[e].from;
    }
    f->current[tensor] = (uint32_t)f->streams.n;
    *OI_PUSH(a, &f->streams) = s;
}

static void find_outputs(oi_flow *f)
{
    const oi_plan *p = f->h->p;
    for (size_t i = 0; i < p->graphs.at[0].outputs.n && !f->why; i++) {
        const uint32_t t = p->graphs.at[0].outputs.at[i];
        if (!oi_hdl_is_output(p, t))
            continue;
        if (f->current[t] == OI_NO_ID)
            put_unwritten(f, t);
        if (f->streams.at[f->current[t]].producer == OI_NO_ID && f->streams.at[f->current[t]].bits)
            fail(f, "an input is returned");
        *OI_PUSH(f->h->arena, &f->outputs) = f->current[t];
    }
    if (!f->outputs.n)
        fail(f, "there is no output");
    for (size_t i = 0; i < f->states.n; i++) {
        f->states.at[i].to = f->current[f->states.at[i].var->tensor];
        if (f->streams.at[f->states.at[i].to].producer == OI_NO_ID)
            fail(f, "persistent memory is what it was, or an input, or a constant");
    }
}

static oi_flow *make(oi_circuit *h, uint32_t fold, uint32_t digits)
{
    const oi_plan *p = h->p;
    oi_flow *f = oi_arena_alloc(h->arena, sizeof *f);
    *f = (oi_flow){.h = h, .fold = fold, .digits = digits};
    f->current = oi_arena_alloc(h->arena, (p->tensors.n + 1) * sizeof *f->current);
    f->contents = oi_arena_alloc(h->arena, (p->tensors.n + 1) * sizeof *f->contents);
    f->base = oi_arena_alloc(h->arena, (p->tensors.n + 1) * sizeof *f->base);
    memset(f->current, 0xff, (p->tensors.n + 1) * sizeof *f->current);
    for (size_t i = 0; i < p->graphs.at[0].inputs.n; i++)
        (void)put_source(f, p->graphs.at[0].inputs.at[i], false);
    for (size_t i = 0; i < p->stores.n; i++)
        put_state(f, &p->stores.at[i]);
    put_list(f, &p->graphs.at[0].blocks[p->graphs.at[0].program->entry].stmts);
    if (f->why)
        return f;
    find_outputs(f);
    for (size_t i = 0; i < f->kernels.n; i++)
        oi_flow_stages(f, &f->kernels.at[i]);
    if (!f->why)
        connect(f);
    return f;
}

/* -- how far it is folded -- */

static const oi_circuit_cost *cost_of(const oi_flow *f)
{
    oi_circuit_cost *c = oi_arena_alloc(f->h->arena, sizeof *c);
    oi_circuit_part *parts = oi_arena_alloc(f->h->arena, (f->kernels.n + 1) * sizeof *parts);
    for (size_t i = 0; i < f->kernels.n; i++) {
        const oi_flow_kernel *k = &f->kernels.at[i];
        parts[i] = (oi_circuit_part){.kernel = f->h->p->kernels.at[k->kernel].name,
                                     .clocks = k->latency,
                                     .phases = k->wires.n_phases,
                                     .multipliers = k->multipliers,
                                     .luts = k->luts,
                                     .ffs = k->ffs,
                                     .memory_bits = k->memory_bits};
    }
    *c = (oi_circuit_cost){.parts = parts, .n_parts = f->kernels.n};
    return c;
}

/* Constants take adders before beats take more clocks. */
static oi_flow *fitting(oi_circuit *h, uint64_t fold)
{
    oi_flow *f = NULL;
    uint64_t before = 0;
    for (; fold <= MOST_FOLD; fold *= 2) {
        f = make(h, (uint32_t)fold, DIGITS);
        if (f->why)
            break;
        h->cost = cost_of(f);
        oi_budget b = oi_hdl_exceeded(h);
        if (b == OI_BUDGET_DSPS) {
            f = make(h, (uint32_t)fold, 64);
            h->cost = cost_of(f);
            b = oi_hdl_exceeded(h);
        }
        if (b == OI_BUDGETS || f->interval == before)
            break; /* it fits, or does not fold any further */
        before = f->interval;
    }
    return f;
}

oi_flow *oi_flow_new(oi_circuit *h, const char **why)
{
    const uint64_t wanted = h->p->target->fpga.ii_target;
    *why = wanted ? obstacle(h->p) : "the device file asks for no interval (fpga.ii_target is 0)";
    if (*why)
        return NULL;
    oi_flow *f = fitting(h, wanted);
    *why = f->why;
    return f->why ? NULL : f;
}
