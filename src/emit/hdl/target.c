/* target.c: capabilities of circuits, and the tools that build and run them here. */
#include "emit/hdl/flow.h"

static bool takes(const oi_device_info *d)
{
    return d->api == OI_DEVICE_VHDL;
}

/* One unit works on a step; a kernel keeps no rows of its own. */
static oi_caps caps(const oi_device_info *d)
{
    return (oi_caps){
        .goal = OI_GOAL_MEMORY, .workers = 1, .alignment = 1, .ram_bytes = d->memory.global_bytes};
}

void oi_hdl_refuse(oi_circuit *h, uint32_t graph, const oi_pnode *n, const char *code,
                   const char *fmt, ...)
{
    va_list args;
    if (h->files->status != OI_OK)
        return; /* one reason is enough */
    h->files->status = OI_ERR_INPUT;
    if (h->is_trial)
        return;
    va_start(args, fmt);
    h->files->status = oi_plan_refuse(h->p, graph, n, (oi_span){0}, code, "%s",
                                      oi_arena_vprintf(h->arena, fmt, args));
    va_end(args);
}

/* The first kernel that writes a tensor, or reads one that none writes, has its memory. */
static bool has_memory(const oi_skernel *k, const oi_circuit *h, uint32_t tensor)
{
    const bool reads = h->p->tensors.at[tensor].space == OI_SPACE_WEIGHTS ||
                       h->p->tensors.at[tensor].space == OI_SPACE_INPUT;
    for (size_t p = 0; p < k->ports.n; p++)
        if (oi_hdl_root(h->p, k->ports.at[p].tensor) == tensor &&
            (reads || k->ports.at[p].is_written))
            return true;
    return false;
}

static void add_memory(const oi_circuit *h, oi_circuit_cost *c, oi_circuit_part *parts, uint32_t t)
{
    const oi_hdl_memory *m = &h->memories[t];
    const uint64_t bits =
        m->depth * oi_hdl_bits(h->p->tensors.at[t].dtype) * (m->reads.n ? m->reads.n : 1);
    for (size_t i = 0, n = 0; i < h->p->kernels.n; i++) {
        const oi_skernel *k = &h->p->kernels.at[i];
        if (!h->kernels[i].entity)
            continue;
        if (has_memory(k, h, t)) {
            parts[n].memory_bits += bits;
            return;
        }
        n++;
    }
    c->memory_bits += bits;
}

/* Kernels with one entity have a copy of it each. */
static const oi_circuit_cost *machine_cost(const oi_circuit *h)
{
    oi_circuit_cost *c = oi_arena_alloc(h->arena, sizeof *c);
    oi_circuit_part *parts = oi_arena_alloc(h->arena, (h->p->kernels.n + 1) * sizeof *parts);
    *c = (oi_circuit_cost){.serial_why = h->why_not, .parts = parts};
    for (size_t i = 0; i < h->p->kernels.n; i++)
        if (h->kernels[i].entity)
            parts[c->n_parts++] = (oi_circuit_part){.kernel = h->p->kernels.at[i].name,
                                                    .clocks = h->kernels[i].cycles,
                                                    .phases = h->kernels[i].cycles,
                                                    .multipliers = h->kernels[i].multipliers};
    for (uint32_t t = 0; t < h->p->tensors.n; t++)
        if (h->memories[t].name)
            add_memory(h, c, parts, t);
    return c;
}

/* One kernel after the other. */
static void put_machine(oi_circuit *h)
{
    oi_hdl_kernels(h);
    if (h->files->status == OI_OK)
        oi_hdl_control(h);
    if (h->files->status == OI_OK)
        oi_hdl_connect(h);
    if (h->files->status == OI_OK)
        oi_hdl_top(h);
    if (h->files->status != OI_OK)
        return;
    h->cost = machine_cost(h);
    oi_hdl_bench(h);
}

static void put_flow(oi_flow *f)
{
    f->h->clocks[0] = (oi_clocks){.least = f->latency, .most = f->latency, .interval = f->interval};
    f->h->has_kernels = f->kernels.n > 0;
    f->h->is_flow = true;
    oi_flow_put_kernels(f);
    oi_flow_put_top(f);
    oi_flow_put_bench(f);
    oi_hdl_build_files(f->h);
}

static void put_form(oi_circuit *h)
{
    oi_flow *f = oi_flow_new(h, &h->why_not);
    if (f)
        put_flow(f);
    else
        put_machine(h);
    if (h->files->status == OI_OK)
        oi_hdl_check_budget(h);
}

static void build(oi_circuit *h)
{
    const oi_plan *p = h->p;
    oi_arena *a = h->arena;
    h->kernels = oi_arena_alloc(a, (p->kernels.n + 1) * sizeof *h->kernels);
    h->memories = oi_arena_alloc(a, (p->tensors.n + 1) * sizeof *h->memories);
    h->clocks = oi_arena_alloc(a, (p->graphs.n + 1) * sizeof *h->clocks);
    h->first = oi_arena_alloc(a, (p->graphs.n + 1) * sizeof *h->first);
    h->active = oi_arena_alloc(a, (p->kernels.n + 1) * sizeof *h->active);
    h->block_of = oi_arena_alloc(a, (p->kernels.n + 1) * sizeof *h->block_of);
    h->names = h->index_names = (oi_map){.arena = a};
    h->signals.depth = h->places.depth = 1;
    h->files->status = OI_OK;
    if (p->per_node)
        oi_hdl_refuse(h, 0, NULL, "E060", "a circuit does not run node by node");
    else
        put_form(h);
}

/* The same circuit is built twice: to say how long a step takes and of what it is made, and to be
 * printed. */
static void try_it(const oi_plan *p, oi_certificate *out)
{
    oi_emitted nowhere = {0};
    oi_circuit h = {.p = p, .arena = p->arena, .files = &nowhere, .is_trial = true};
    build(&h);
    if (nowhere.status != OI_OK)
        return; /* emit says why */
    out->clocks = h.clocks;
    out->circuit = h.cost;
}

static void emit(const oi_plan *p, const oi_certificate *c, oi_emitted *files)
{
    oi_circuit h = {.p = p, .arena = p->arena, .files = files};
    (void)c;
    build(&h);
}

static void certify(const oi_plan *u, oi_certificate *out)
{
    *out = (oi_certificate){.state_bytes = u->state_bytes,
                            .arena_bytes = u->arena_bytes,
                            .weights_bytes = u->weights_bytes};
    for (size_t i = 0; i < u->tensors.n; i++) {
        const oi_tensor *t = &u->tensors.at[i];
        if (t->space == OI_SPACE_INPUT || t->space == OI_SPACE_OUTPUT)
            out->io_bytes += oi_tensor_bytes(t);
    }
    out->ram_bytes = out->struct_bytes = out->state_bytes + out->arena_bytes + out->io_bytes;
    try_it(u, out);
}

static const char *program_name(oi_arena *a, const char *wanted)
{
    oi_map none = {.arena = a};
    const char *name = oi_hdl_name(a, &none, wanted);
    return strcmp(name, wanted) == 0 ? wanted : name;
}

static oi_tool tool(const oi_device_info *device, const char *compiler)
{
    return (oi_tool){
        .build = {{"make", "make", false}, {compiler ? compiler : "ghdl", "ghdl", false}},
        .compiler = compiler ? compiler : "ghdl",
        .compiler_variable = "GHDL",
        .flags_variable = "GHDLFLAGS",
        .counts = "cycles",
        .measure_goal = "measured",
        .measure = {{"yosys", "yosys", false},
                    {oi_hdl_is_placed(device) ? "nextpnr-ice40" : "yosys", "nextpnr-ice40", false}},
        .trial = {compiler ? compiler : "ghdl", "--version"}};
}

/* Every function of integers is in oi_pkg.vhd. */
static bool has_helper(const oi_device_info *d, oi_arena *a, const char *name)
{
    (void)d;
    (void)a;
    (void)name;
    return true;
}

/* Floats are moved, as their bits. */
static bool has_type(const oi_device_info *d, const oi_op *op, oi_dtype t)
{
    (void)d;
    return !oi_dtype_is_float(t) || op->cls == OI_OP_CLASS_MOVE;
}

const oi_target oi_target_hdl = {.name = "hdl",
                                 .writes = OI_SYNTH_PROGRAM,
                                 .takes = takes,
                                 .caps = caps,
                                 .program_name = program_name,
                                 .certify = certify,
                                 .emit = emit,
                                 .tool = tool,
                                 .measure = oi_hdl_measure,
                                 .has_helper = has_helper,
                                 .has_type = has_type};
