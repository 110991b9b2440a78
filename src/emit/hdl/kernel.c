/* kernel.c: kernels as entities. A kernel asks memories for elements by address, and gets them a
 * clock later; its nests run one after the other. `start` is up for one clock; `done` is up in the
 * clock of the last write. */
#include "emit/hdl/hdl.h"
#include "plan/scalar.h"

#include <inttypes.h>

uint64_t oi_hdl_extent(const oi_tensor *t)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        n *= (uint64_t)t->dims[d];
    return n;
}

/* -- what has no hardware form -- */

static const oi_pnode *node_of(const oi_skernel *k)
{
    return k->nodes.n ? k->nodes.at[0] : NULL;
}

static const char *float_reason(const oi_circuit *h, const oi_sop *op)
{
    const bool moves = op->is_raw || op->kind == OI_SOP_PLACE || op->kind == OI_SOP_COUNT;
    if (moves || (!oi_dtype_is_float(op->type) &&
                  !(op->kind == OI_SOP_CONVERT && oi_dtype_is_float(op->from))))
        return NULL;
    return oi_arena_printf(h->arena,
                           "computes with %s, and a circuit has integers only: quantise the graph",
                           oi_dtype_name(oi_dtype_is_float(op->type) ? op->type : op->from));
}

/* The instructions after a reduction run a clock later: of those before it they know constants. */
static bool looks_back(const oi_snest *n)
{
    for (size_t i = 0; i < n->post.n; i++)
        for (uint32_t a = 0; a < n->post.at[i].n_args; a++) {
            const uint32_t id = n->post.at[i].args[a];
            if (id < n->pre.n && n->pre.at[id].kind != OI_SOP_CONST)
                return true;
        }
    return false;
}

static const char *nest_reason(const oi_circuit *h, const oi_snest *n)
{
    for (uint32_t a = 0; a < n->n_axes; a++)
        if (n->axes[a].extent == 0)
            return "has no elements";
    for (size_t i = 0; i < n->pre.n + n->post.n; i++) {
        const oi_sop *op = i < n->pre.n ? &n->pre.at[i] : &n->post.at[i - n->pre.n];
        const char *why = float_reason(h, op);
        if (why)
            return why;
        if (op->kind == OI_SOP_COUNT && n->skips)
            return "counts elements";
    }
    if (n->kind != OI_NEST_MAP && oi_dtype_is_float(n->acc))
        return oi_arena_printf(h->arena, "sums in %s, and a circuit has integers only",
                               oi_dtype_name(n->acc));
    return looks_back(n) ? "needs an element again after the sum" : NULL;
}

/* Why the kernel cannot be an entity; NULL: it can. */
static const char *reason(const oi_circuit *h, const oi_skernel *k)
{
    if (k->recipe || k->nests.n == 0)
        return "is no loop nest, and has no hardware form";
    if (k->is_dynamic || k->formulas.n || k->lengths.n)
        return "has a length that only the run knows";
    for (size_t p = 0; p < k->ports.n; p++)
        if (h->p->tensors.at[k->ports.at[p].tensor].run_dims)
            return "has a length that only the run knows";
    for (size_t i = 0; i < k->nests.n; i++) {
        const char *why = nest_reason(h, &k->nests.at[i]);
        if (why)
            return why;
    }
    return NULL;
}

static bool refuse_kernel(oi_circuit *h, const oi_skernel *k)
{
    const char *why = reason(h, k);
    if (why)
        oi_hdl_refuse(h, k->graph, node_of(k), "E060", "kernel '%s' %s", k->name, why);
    return why != NULL;
}

/* -- what it reads and writes -- */

static void count_accesses(const oi_skernel *k, const oi_snest *n, oi_hdl_kernel *own,
                           uint32_t *reads)
{
    memset(reads, 0, k->ports.n * sizeof *reads);
    for (size_t i = 0; i < n->pre.n + n->post.n; i++) {
        const oi_sop *op = i < n->pre.n ? &n->pre.at[i] : &n->post.at[i - n->pre.n];
        if (op->kind == OI_SOP_LOAD || op->kind == OI_SOP_INDEX)
            reads[op->port]++;
        else if (op->kind == OI_SOP_STORE)
            own->writes[op->port] = true;
    }
    for (size_t p = 0; p < k->ports.n; p++)
        own->reads[p] = reads[p] > own->reads[p] ? reads[p] : own->reads[p];
}

/* Products that an iteration computes. */
static uint64_t count_products(const oi_sops *ops)
{
    uint64_t n = 0;
    for (size_t i = 0; i < ops->n; i++) {
        const oi_sop *op = &ops->at[i];
        if (op->kind != OI_SOP_EVAL)
            continue;
        const oi_dtype form = oi_form_of(op->type);
        const oi_m_expr *e = oi_scalar_part(op->call, op->part, form, form);
        for (uint16_t m = 0; m < e->n_nodes; m++)
            n += e->nodes[m].kind == OI_M_CALL && e->nodes[m].helper == OI_H_MUL;
    }
    return n;
}

static void study(oi_circuit *h, const oi_skernel *k, oi_hdl_kernel *own)
{
    oi_map taken = {.arena = h->arena};
    const char **names = oi_kernel_port_names(h->arena, h->p, k);
    uint32_t *reads = oi_arena_alloc(h->arena, (k->ports.n + 1) * sizeof *reads);
    own->ports = oi_arena_alloc(h->arena, (k->ports.n + 1) * sizeof *own->ports);
    own->scalars = oi_arena_alloc(h->arena, (k->scalars.n + 1) * sizeof *own->scalars);
    own->reads = oi_arena_alloc(h->arena, (k->ports.n + 1) * sizeof *own->reads);
    own->writes = oi_arena_alloc(h->arena, k->ports.n + 1);
    for (size_t p = 0; p < k->ports.n; p++)
        own->ports[p] = oi_hdl_name(h->arena, &taken, names[p]);
    for (size_t i = 0; i < k->scalars.n; i++)
        own->scalars[i] = oi_hdl_name(h->arena, &taken,
                                      oi_arena_printf(h->arena, "%s_value", k->scalars.at[i].name));
    for (size_t i = 0; i < k->nests.n; i++)
        count_accesses(k, &k->nests.at[i], own, reads);
    for (size_t i = 0; i < k->nests.n; i++)
        own->multipliers +=
            count_products(&k->nests.at[i].pre) + count_products(&k->nests.at[i].post);
}

/* -- the entity -- */

static const char *suffix(oi_arena *a, uint32_t n)
{
    return n ? oi_arena_printf(a, "_%u", n) : "";
}

typedef enum wire { BIT_OUT, WORD_IN, WORD_OUT, ADDRESS_OUT } wire;
typedef struct port {
    const char *name;
    wire kind;
    uint32_t bits;
    const bool *users; /* by nest: whether it drives the port */
} port;
typedef void port_fn(oi_circuit *h, oi_out *o, port p);

/* By nest: whether it reads more than `channel` elements of the port at once, or writes them. */
static const bool *users_of(oi_circuit *h, const oi_skernel *k, size_t own, oi_sop_kind kind,
                            uint32_t channel)
{
    bool *users = oi_arena_alloc(h->arena, k->nests.n);
    for (size_t i = 0; i < k->nests.n; i++) {
        const oi_snest *n = &k->nests.at[i];
        uint32_t found = 0;
        for (size_t j = 0; j < n->pre.n + n->post.n; j++) {
            const oi_sop *op = j < n->pre.n ? &n->pre.at[j] : &n->post.at[j - n->pre.n];
            const oi_sop_kind does = op->kind == OI_SOP_INDEX ? OI_SOP_LOAD : op->kind;
            found += does == kind && op->port == own;
        }
        users[i] = found > channel;
    }
    return users;
}

static const bool *every_nest(oi_circuit *h, const oi_skernel *k)
{
    bool *users = oi_arena_alloc(h->arena, k->nests.n);
    for (size_t i = 0; i < k->nests.n; i++)
        users[i] = true;
    return users;
}

/* Visits the ports that lead to memories: addresses, elements, writes. */
static void each_port(oi_circuit *h, const oi_skernel *k, const oi_hdl_kernel *own, oi_out *o,
                      port_fn *fn)
{
    for (size_t p = 0; p < k->ports.n; p++) {
        const oi_tensor *t = &h->p->tensors.at[k->ports.at[p].tensor];
        const uint32_t bits = oi_hdl_log2(oi_hdl_extent(t)), width = oi_hdl_bits(t->dtype);
        const char *n = own->ports[p];
        for (uint32_t r = 0; r < own->reads[p]; r++) {
            const char *end = suffix(h->arena, r);
            const bool *users = users_of(h, k, p, OI_SOP_LOAD, r);
            fn(h, o,
               (port){oi_arena_printf(h->arena, "%s_addr%s", n, end), ADDRESS_OUT, bits, users});
            fn(h, o, (port){oi_arena_printf(h->arena, "%s_data%s", n, end), WORD_IN, width, NULL});
        }
        if (own->writes[p]) {
            const bool *users = users_of(h, k, p, OI_SOP_STORE, 0);
            fn(h, o, (port){oi_arena_printf(h->arena, "%s_write", n), BIT_OUT, 0, users});
            fn(h, o, (port){oi_arena_printf(h->arena, "%s_waddr", n), ADDRESS_OUT, bits, users});
            fn(h, o, (port){oi_arena_printf(h->arena, "%s_wdata", n), WORD_OUT, width, users});
        }
    }
    if (k->can_fail)
        fn(h, o, (port){"failed", BIT_OUT, 0, every_nest(h, k)});
}

static const char *type_of(oi_arena *a, wire kind, uint32_t bits)
{
    if (kind == BIT_OUT)
        return "std_logic";
    return oi_arena_printf(a, "%s(%u downto 0)",
                           kind == ADDRESS_OUT ? "unsigned" : "std_logic_vector", bits - 1);
}

static void put_port(oi_circuit *h, oi_out *o, port p)
{
    const char *zero = p.kind == WORD_IN   ? ""
                       : p.kind == BIT_OUT ? " := '0'"
                                           : " := (others => '0')";
    oi_out_line(o, "%s : %s %s%s;", p.name, p.kind == WORD_IN ? "in " : "out",
                type_of(h->arena, p.kind, p.bits), zero);
}

static void put_entity(oi_circuit *h, const oi_skernel *k, const oi_hdl_kernel *own, oi_out *o)
{
    oi_out_line(o, "library ieee;");
    oi_out_line(o, "use ieee.std_logic_1164.all;");
    oi_out_line(o, "use ieee.numeric_std.all;");
    oi_out_line(o, "use work.oi_pkg.all;");
    oi_hdl_gap(o);
    oi_kernel_put_source(o, h->arena, h->p, k);
    oi_out_line(o, "entity %s is", own->entity);
    oi_out_line(o, "    port (");
    o->depth = 2;
    each_port(h, k, own, o, put_port);
    for (size_t i = 0; i < k->scalars.n; i++)
        oi_out_line(o, "%s : in  %s;", own->scalars[i],
                    oi_dialect_vhdl.types[k->scalars.at[i].dtype]);
    oi_out_line(o, "clk   : in  std_logic;");
    oi_out_line(o, "rst   : in  std_logic;");
    oi_out_line(o, "start : in  std_logic;");
    oi_out_line(o, "done  : out std_logic");
    o->depth = 0;
    oi_out_line(o, "    );");
    oi_out_line(o, "end entity;");
    oi_hdl_gap(o);
}

/* Several nests: each drives signals of its own, which only one has up at a time. */
static void put_own_signal(oi_circuit *h, oi_out *o, port p)
{
    const char *zero = p.kind == BIT_OUT ? "'0'" : "(others => '0')";
    for (uint32_t i = 0; p.users && i < h->n_nests; i++)
        if (p.users[i])
            oi_out_line(o, "signal %s_n%u : %s := %s;", p.name, i,
                        type_of(h->arena, p.kind, p.bits), zero);
}

static void put_join(oi_circuit *h, oi_out *o, port p)
{
    oi_buf b = {0};
    for (uint32_t i = 0; p.users && i < h->n_nests; i++)
        if (p.users[i])
            oi_buf_printf(&b, "%s%s_n%u", b.n ? " or " : "", p.name, i);
    if (b.n)
        oi_out_line(o, "%s <= %s;", p.name, oi_buf_to_arena(&b, h->arena));
}

static void put_architecture(oi_circuit *h, const oi_skernel *k, oi_hdl_kernel *own, oi_out *o)
{
    oi_out_line(o, "architecture rtl of %s is", own->entity);
    o->depth = 1;
    h->n_nests = (uint32_t)k->nests.n;
    if (k->nests.n > 1)
        each_port(h, k, own, o, put_own_signal);
    for (size_t i = 0; i < k->nests.n; i++)
        oi_out_line(o, "signal start%zu, done%zu : std_logic := '0';", i, i);
    o->depth = 0;
    oi_out_line(o, "begin");
    o->depth = 1;
    if (k->nests.n > 1)
        each_port(h, k, own, o, put_join);
    for (size_t i = 0; i < k->nests.n; i++)
        oi_out_line(o, "start%zu <= %s;", i,
                    i ? oi_arena_printf(h->arena, "done%zu", i - 1) : "start");
    oi_out_line(o, "done <= done%zu;", k->nests.n - 1);
    own->cycles = 0;
    for (uint32_t i = 0; i < k->nests.n; i++) {
        oi_hdl_gap(o);
        own->cycles += oi_hdl_put_nest(h, k, own, i, o).cycles;
    }
    o->depth = 0;
    oi_out_line(o, "end architecture;");
    oi_hdl_gap(o);
}

/* Kernels with equal functions are instances of one entity. */
void oi_hdl_kernels(oi_circuit *h)
{
    oi_out o = {0};
    oi_map taken = {.arena = h->arena};
    oi_out_line(&o, "-- The kernels of %s.", h->p->name);
    for (size_t i = 0; i < h->p->kernels.n && h->files->status == OI_OK; i++) {
        const oi_skernel *k = &h->p->kernels.at[i];
        if (!oi_kernel_has_function(h->p, k) || refuse_kernel(h, k))
            continue;
        oi_hdl_kernel *own = &h->kernels[i];
        h->has_kernels = true;
        own->entity = oi_hdl_name(h->arena, &taken, k->function_name);
        study(h, k, own);
        put_entity(h, k, own, &o);
        put_architecture(h, k, own, &o);
    }
    for (size_t i = 0; i < h->p->kernels.n; i++)
        if (h->p->kernels.at[i].is_used)
            h->kernels[i] = h->kernels[h->p->kernels.at[i].function];
    if (h->has_kernels)
        oi_emit_file(h->p, h->files, oi_arena_printf(h->arena, "%s_kernels.vhd", h->p->name),
                     &o.buf);
    else
        oi_buf_free(&o.buf);
}
