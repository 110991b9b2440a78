/* flow_stages.c: the clock in which every wire of a kernel is computed.
 *
 * A stage lasts one clock. A wire is computed as early as its arguments allow; where the stage has
 * no time left for it, in the next one. A wire that is used in a later stage goes there through one
 * register a stage. */
#include "emit/hdl/flow.h"

/* Roughly: how long an adder takes, alone and per bit, and a multiplier. */
typedef struct speed {
    const char *family;
    double base_ns, bit_ns, multiplier_ns;
} speed;

static const speed speeds[] = {
    {"ice40", 2.0, 0.15, 20}, /* multipliers are made of adders */
    {"", 0.8, 0.02, 4}        /* any other */
};

static const speed *speed_of(const oi_flow *f)
{
    const speed *s = speeds;
    while (*s->family && strcmp(s->family, f->h->p->target->fpga.family) != 0)
        s++;
    return s;
}

/* A part of the clock remains for registers and for wires between kernels. */
static double time_of(const oi_flow *f)
{
    const uint64_t hz = f->h->p->target->fpga.clock_hz;
    return 0.7e9 / (double)(hz ? hz : 100000000);
}

static double delay_of(const oi_flow_kernel *k, const oi_wire *x, const speed *s)
{
    const double adder = s->base_ns + s->bit_ns * oi_range_bits(x->range);
    switch (x->kind) {
    case OI_WIRE_CONST:
    case OI_WIRE_IN:
    case OI_WIRE_LEFT:
    case OI_WIRE_RIGHT:
    case OI_WIRE_WRAP: return 0;
    case OI_WIRE_TABLE:
    case OI_WIRE_SELECT: return s->base_ns;
    case OI_WIRE_PICK: return s->base_ns * oi_hdl_log2(k->wires.n_phases);
    case OI_WIRE_LOOK: return s->base_ns * (1 + oi_hdl_log2((uint64_t)x->value) / 2);
    case OI_WIRE_MUL: return oi_wire_multiplies(&k->wires, x) ? s->multiplier_ns : adder;
    case OI_WIRE_CALL: return x->is_truth ? adder : 3 * adder;
    default: return adder;
    }
}

/* A table is there whenever it is asked for, a while after the beginning of the stage. */
static void put_stage(oi_flow_kernel *k, oi_wire *x, const speed *s, double time)
{
    const double delay = delay_of(k, x, s);
    x->stage = 0;
    x->ready_ns = 0;
    if (x->kind == OI_WIRE_TABLE) {
        x->ready_ns = delay;
        return;
    }
    const uint32_t n = x->kind == OI_WIRE_IN     ? 0
                       : x->kind == OI_WIRE_PICK ? k->wires.n_phases
                                                 : x->n_args;
    for (uint32_t i = 0; i < n; i++) {
        const oi_wire *a =
            &k->wires.list.at[x->kind == OI_WIRE_PICK ? (uint32_t)x->phases[i] : x->args[i]];
        if (a->stage > x->stage)
            x->ready_ns = 0;
        x->stage = a->stage > x->stage ? a->stage : x->stage;
        if (a->stage == x->stage && a->ready_ns > x->ready_ns)
            x->ready_ns = a->ready_ns;
    }
    if (x->ready_ns > 0 && x->ready_ns + delay > time) {
        x->stage++;
        x->ready_ns = 0;
    }
    x->ready_ns += delay;
}

static void use(oi_flow_kernel *k, uint32_t id, uint32_t stage)
{
    oi_wire *a = &k->wires.list.at[id];
    if (a->kind != OI_WIRE_CONST && a->last < stage)
        a->last = stage;
}

static void find_uses(oi_flow_kernel *k)
{
    for (size_t i = 0; i < k->wires.list.n; i++) {
        const oi_wire *x = &k->wires.list.at[i];
        if (x->kind == OI_WIRE_IN)
            continue;
        for (uint32_t a = 0; a < x->n_args; a++)
            use(k, x->args[a], x->stage);
        for (uint32_t p = 0; x->kind == OI_WIRE_PICK && p < k->wires.n_phases; p++)
            use(k, (uint32_t)x->phases[p], x->stage);
    }
    for (size_t o = 0; o < k->out.n; o++)
        for (uint64_t e = 0; e < k->out.at[o].n; e++)
            use(k, k->out.at[o].wires[e], k->depth - 1);
}

/* Wires that nothing uses are not printed: what is left of an expression that became simpler. */
static void find_needed(oi_flow_kernel *k)
{
    oi_wire *all = k->wires.list.at;
    for (size_t o = 0; o < k->out.n; o++)
        for (uint64_t e = 0; e < k->out.at[o].n; e++)
            all[k->out.at[o].wires[e]].is_needed = true;
    for (size_t i = k->wires.list.n; i-- > 0;) {
        const oi_wire *x = &all[i];
        for (uint32_t a = 0; x->is_needed && x->kind != OI_WIRE_IN && a < x->n_args; a++)
            all[x->args[a]].is_needed = true;
        for (uint32_t p = 0; x->is_needed && x->kind == OI_WIRE_PICK && p < k->wires.n_phases; p++)
            all[x->phases[p]].is_needed = true;
    }
}

/* -- what it takes -- */

static void count(const oi_flow *f, oi_flow_kernel *k)
{
    const uint32_t phases = k->wires.n_phases;
    for (size_t i = 0; i < k->wires.list.n; i++) {
        const oi_wire *x = &k->wires.list.at[i];
        const uint64_t bits = x->is_truth ? 1 : oi_range_bits(x->range);
        if (!x->is_needed || x->kind == OI_WIRE_CONST)
            continue;
        if (oi_wire_multiplies(&k->wires, x))
            k->multipliers++;
        else if (x->kind == OI_WIRE_TABLE)
            k->memory_bits += bits * phases;
        else if (x->kind == OI_WIRE_LOOK)
            k->memory_bits += bits * (uint64_t)x->value;
        else if (x->kind == OI_WIRE_PICK)
            k->luts += bits * ((phases + 2) / 3);
        else if (x->kind != OI_WIRE_IN && x->kind != OI_WIRE_LEFT && x->kind != OI_WIRE_RIGHT &&
                 x->kind != OI_WIRE_WRAP)
            k->luts += bits;
        if (x->kind != OI_WIRE_TABLE && x->last > x->stage)
            k->ffs += bits * (x->last - x->stage);
    }
    for (size_t i = 0; i < k->in.n && phases > 1; i++)
        k->ffs += f->streams.at[k->in.at[i]].bits;
    for (size_t o = 0; o < k->out.n; o++)
        k->ffs += f->streams.at[k->out.at[o].stream].bits;
}

void oi_flow_stages(const oi_flow *f, oi_flow_kernel *k)
{
    const speed *s = speed_of(f);
    const double time = time_of(f);
    find_needed(k);
    k->depth = 1;
    for (size_t i = 0; i < k->wires.list.n; i++) {
        oi_wire *x = &k->wires.list.at[i];
        if (!x->is_needed)
            continue;
        put_stage(k, x, s, time);
        if (x->stage + 1 > k->depth)
            k->depth = x->stage + 1;
    }
    find_uses(k);
    count(f, k);
    k->latency = k->depth + (k->wires.n_phases > 1 ? k->wires.n_phases : 0);
}
