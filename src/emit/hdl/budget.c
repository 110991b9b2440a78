/* budget.c: what the device has, and what the parts of a circuit take of it. */
#include "emit/hdl/hdl.h"

#include <inttypes.h>

static uint64_t part_of(const oi_circuit_part *p, oi_budget b)
{
    const uint64_t parts[OI_BUDGETS] = {[OI_BUDGET_MULTIPLIERS] = p->multipliers,
                                        [OI_BUDGET_DSPS] = p->multipliers,
                                        [OI_BUDGET_LUTS] = p->luts,
                                        [OI_BUDGET_FFS] = p->ffs,
                                        [OI_BUDGET_MEMORY] = p->memory_bits};
    return parts[b];
}

/* 0: unlimited. */
static uint64_t budget_of(const oi_circuit *h, oi_budget b, const char **name)
{
    const oi_device_info *d = h->p->target;
    static const char *const names[OI_BUDGETS] = {
        [OI_BUDGET_MULTIPLIERS] = "multipliers (fpga.parallelism)",
        [OI_BUDGET_DSPS] = "multipliers (fpga.dsps)",
        [OI_BUDGET_LUTS] = "LUTs (fpga.luts)",
        [OI_BUDGET_FFS] = "registers (fpga.ffs)",
        [OI_BUDGET_MEMORY] = "bits of memory (fpga.bram_bits and fpga.uram_bits)"};
    const uint64_t has[OI_BUDGETS] = {
        [OI_BUDGET_MULTIPLIERS] = d->fpga.parallelism,
        [OI_BUDGET_DSPS] = d->fpga.dsps,
        [OI_BUDGET_LUTS] = d->fpga.luts,
        [OI_BUDGET_FFS] = d->fpga.ffs,
        [OI_BUDGET_MEMORY] = d->fpga.bram_bits ? d->fpga.bram_bits + d->fpga.uram_bits : 0};
    *name = names[b];
    return has[b];
}

static uint64_t taken_of(const oi_circuit_cost *c, oi_budget b)
{
    uint64_t n = b == OI_BUDGET_MEMORY ? c->memory_bits : 0;
    for (size_t i = 0; i < c->n_parts; i++)
        n += part_of(&c->parts[i], b);
    return n;
}

oi_budget oi_hdl_exceeded(const oi_circuit *h)
{
    const char *name;
    for (oi_budget b = 0; b < OI_BUDGETS; b++) {
        const uint64_t has = budget_of(h, b, &name);
        if (has && taken_of(h->cost, b) > has)
            return b;
    }
    return OI_BUDGETS;
}

static const oi_skernel *kernel_named(const oi_plan *p, const char *name)
{
    for (size_t i = 0; i < p->kernels.n; i++)
        if (p->kernels.at[i].is_used && p->kernels.at[i].name == name)
            return &p->kernels.at[i];
    return NULL;
}

void oi_hdl_check_budget(oi_circuit *h)
{
    const oi_budget b = oi_hdl_exceeded(h);
    const oi_circuit_cost *c = h->cost;
    size_t most = 0;
    oi_buf shares = {0};
    const char *name;
    if (b == OI_BUDGETS)
        return;
    const uint64_t has = budget_of(h, b, &name);
    for (size_t i = 0; i < c->n_parts; i++) {
        oi_buf_printf(&shares, ", %s %" PRIu64, c->parts[i].kernel, part_of(&c->parts[i], b));
        if (part_of(&c->parts[i], b) > part_of(&c->parts[most], b))
            most = i;
    }
    if (b == OI_BUDGET_MEMORY)
        oi_buf_printf(&shares, ", other tensors %" PRIu64, c->memory_bits);
    const oi_skernel *k = c->n_parts ? kernel_named(h->p, c->parts[most].kernel) : NULL;
    oi_hdl_refuse(h, k ? k->graph : 0, k && k->nodes.n ? k->nodes.at[0] : NULL, "E062",
                  "the circuit takes %" PRIu64 " %s, and the device has %" PRIu64 ": %s",
                  taken_of(c, b), name, has,
                  shares.n ? oi_buf_to_arena(&shares, h->arena) + 2 : "");
}
