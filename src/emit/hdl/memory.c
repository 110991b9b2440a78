/* memory.c: every tensor is a memory of its own: constants in ROM, others in RAM, one element in a
 * register. It has a copy for each element that some kernel reads at once. Only one kernel works at
 * a time and the others ask for address 0, so addresses are joined by or. */
#include "emit/hdl/hdl.h"

#include <inttypes.h>

uint32_t oi_hdl_root(const oi_plan *p, uint32_t tensor)
{
    const oi_tensor *t = &p->tensors.at[tensor];
    return t->space == OI_SPACE_VIEW ? t->from : tensor;
}

oi_hdl_memory *oi_hdl_memory_of(oi_circuit *h, uint32_t tensor)
{
    const uint32_t root = oi_hdl_root(h->p, tensor);
    const oi_tensor *t = &h->p->tensors.at[root];
    oi_hdl_memory *m = &h->memories[root];
    if (m->name)
        return m;
    m->name = oi_hdl_name(h->arena, &h->names, t->name);
    m->depth = oi_hdl_extent(t);
    for (uint32_t i = 0; i < t->n_table; i++)
        m->depth *= (uint64_t)t->table[i];
    if (m->depth == 0 || t->run_dims)
        oi_hdl_refuse(h, t->graph, NULL, "E062", "'%s' has %s, which has no hardware form", t->name,
                      t->run_dims ? "a length that only the run knows" : "no elements");
    return m;
}

const char *oi_hdl_found(oi_circuit *h, uint32_t tensor, uint32_t channel)
{
    const char *name = oi_hdl_memory_of(h, tensor)->name;
    return channel ? oi_arena_printf(h->arena, "%s_rdata_%u", name, channel)
                   : oi_arena_printf(h->arena, "%s_rdata", name);
}

void oi_hdl_add_read(oi_circuit *h, uint32_t tensor, uint32_t channel, const char *addr)
{
    oi_hdl_memory *m = oi_hdl_memory_of(h, tensor);
    while (m->reads.n <= channel)
        *OI_PUSH(h->arena, &m->reads) = (oi_buf){0};
    oi_buf_printf(&m->reads.at[channel], "%s%s", m->reads.at[channel].n ? " or " : "", addr);
}

void oi_hdl_add_write(oi_circuit *h, uint32_t tensor, const char *we, const char *waddr,
                      const char *wdata)
{
    oi_hdl_memory *m = oi_hdl_memory_of(h, tensor);
    oi_buf_printf(&m->we, "%s%s", m->we.n ? " or " : "", we);
    if (m->depth == 1)
        waddr = "\"0\"";
    m->waddr = m->waddr ? oi_arena_printf(h->arena, "%s when %s = '1' else %s", waddr, we, m->waddr)
                        : waddr;
    m->wdata = m->wdata ? oi_arena_printf(h->arena, "%s when %s = '1' else %s", wdata, we, m->wdata)
                        : wdata;
}

/* -- instances of kernels -- */

typedef struct wiring {
    oi_circuit *h;
    size_t kernel;
    const oi_skernel *k;
    const oi_hdl_kernel *own;
    oi_buf map;
    uint32_t *used; /* by tensor: elements of it that earlier ports read */
} wiring;

static const char *signal(wiring *w, const char *port)
{
    return oi_arena_printf(w->h->arena, "k%zu_%s", w->kernel, port);
}

static void put_map(wiring *w, const char *port, const char *to)
{
    oi_buf_printf(&w->map, "        %s => %s,\n", port, to);
}

/* The kernel's address as one of the whole memory. */
static const char *whole_address(wiring *w, const oi_port *p, const char *addr)
{
    oi_circuit *h = w->h;
    const oi_hdl_memory *m = oi_hdl_memory_of(h, p->tensor);
    const char *base = oi_hdl_base(h, p);
    if (strcmp(base, "0") == 0)
        return oi_arena_printf(h->arena, "resize(%s, %u)", addr, oi_hdl_log2(m->depth));
    return oi_arena_printf(h->arena, "oi_address(k%zu_works = '1', %s + to_integer(%s), %u)",
                           w->kernel, base, addr, oi_hdl_log2(m->depth));
}

static void wire_read(wiring *w, size_t port, uint32_t r, uint32_t channel)
{
    oi_circuit *h = w->h;
    const oi_port *p = &w->k->ports.at[port];
    /* an entity is that of the first kernel with this function */
    const oi_skernel *first = &h->p->kernels.at[w->k->function];
    const uint32_t bits =
        oi_hdl_log2(oi_hdl_extent(&h->p->tensors.at[first->ports.at[port].tensor]));
    const char *end = r ? oi_arena_printf(h->arena, "_%u", r) : "";
    const char *addr = oi_arena_printf(h->arena, "%s_addr%s", w->own->ports[port], end);
    oi_out_line(&h->signals, "signal %s : unsigned(%u downto 0) := (others => '0');",
                signal(w, addr), bits - 1);
    put_map(w, addr, signal(w, addr));
    put_map(w, oi_arena_printf(h->arena, "%s_data%s", w->own->ports[port], end),
            oi_hdl_found(h, p->tensor, channel));
    oi_hdl_add_read(h, p->tensor, channel, whole_address(w, p, signal(w, addr)));
}

static void wire_write(wiring *w, size_t port)
{
    oi_circuit *h = w->h;
    const oi_port *p = &w->k->ports.at[port];
    const oi_skernel *first = &h->p->kernels.at[w->k->function];
    const oi_tensor *t = &h->p->tensors.at[first->ports.at[port].tensor];
    const char *name = w->own->ports[port];
    const char *we = oi_arena_printf(h->arena, "%s_write", name),
               *waddr = oi_arena_printf(h->arena, "%s_waddr", name),
               *wdata = oi_arena_printf(h->arena, "%s_wdata", name);
    oi_out_line(&h->signals, "signal %s : std_logic := '0';", signal(w, we));
    oi_out_line(&h->signals, "signal %s : unsigned(%u downto 0) := (others => '0');",
                signal(w, waddr), oi_hdl_log2(oi_hdl_extent(t)) - 1);
    oi_out_line(&h->signals, "signal %s : std_logic_vector(%u downto 0) := (others => '0');",
                signal(w, wdata), oi_hdl_bits(t->dtype) - 1);
    put_map(w, we, signal(w, we));
    put_map(w, waddr, signal(w, waddr));
    put_map(w, wdata, signal(w, wdata));
    oi_hdl_add_write(h, p->tensor, signal(w, we), whole_address(w, p, signal(w, waddr)),
                     signal(w, wdata));
}

static void connect_kernel(oi_circuit *h, size_t i)
{
    wiring w = {.h = h, .kernel = i, .k = &h->p->kernels.at[i], .own = &h->kernels[i]};
    w.used = oi_arena_alloc(h->arena, (h->p->tensors.n + 1) * sizeof *w.used);
    h->graph = w.k->graph;
    h->block = h->block_of[i];
    h->indices = h->all_indices[h->graph];
    for (size_t p = 0; p < w.k->ports.n; p++) {
        const uint32_t root = oi_hdl_root(h->p, w.k->ports.at[p].tensor);
        for (uint32_t r = 0; r < w.own->reads[p]; r++)
            wire_read(&w, p, r, w.used[root]++);
        if (w.own->writes[p])
            wire_write(&w, p);
    }
    for (size_t s = 0; s < w.k->scalars.n; s++) {
        const oi_kscalar *scalar = &w.k->scalars.at[s];
        put_map(
            &w, w.own->scalars[s],
            oi_lang_vhdl.cast(h->arena, OI_I64, scalar->dtype, oi_hdl_scalar(h, &scalar->value)));
    }
    oi_out_line(&h->signals, "signal k%zu_works, k%zu_start, k%zu_done%s : std_logic := '0';", i, i,
                i, w.k->can_fail ? oi_arena_printf(h->arena, ", k%zu_failed", i) : "");
    oi_hdl_gap(&h->places);
    oi_out_line(&h->places, "k%zu_works <= '1' when %s else '0';", i,
                oi_buf_to_arena(&h->active[i], h->arena));
    oi_out_line(&h->places, "k%zu_start <= k%zu_works and fresh;", i, i);
    oi_out_line(&h->places, "k%zu : entity work.%s port map (", i, w.own->entity);
    oi_out_text(&h->places, w.map.n ? oi_buf_to_arena(&w.map, h->arena) : "");
    if (w.k->can_fail)
        oi_out_line(&h->places, "    failed => k%zu_failed,", i);
    oi_out_line(&h->places, "    clk => clk,");
    oi_out_line(&h->places, "    rst => rst,");
    oi_out_line(&h->places, "    start => k%zu_start,", i);
    oi_out_line(&h->places, "    done => k%zu_done", i);
    oi_out_line(&h->places, ");");
}

void oi_hdl_connect(oi_circuit *h)
{
    for (size_t i = 0; i < h->p->kernels.n; i++)
        if (h->p->kernels.at[i].is_used && h->active[i].n)
            connect_kernel(h, i);
}

/* -- constants -- */

static uint64_t element(const void *bytes, uint64_t e, uint32_t bits)
{
    const uint8_t *p = bytes;
    uint64_t v = 0;
    if (bits < 8)
        return p[e * bits / 8] >> e * bits % 8 & ((1u << bits) - 1);
    memcpy(&v, p + e * bits / 8, bits / 8);
    return v;
}

/* The words of all entries, as a list. */
static const char *words_text(oi_circuit *h, const oi_tensor *t, const oi_hdl_memory *m)
{
    const uint32_t bits = oi_hdl_bits(t->dtype);
    const uint64_t each = oi_hdl_extent(t);
    oi_buf b = {0};
    if (m->depth == 1)
        oi_buf_puts(&b, "0 => ");
    for (uint64_t i = 0; i < m->depth / each && h->files->status == OI_OK; i++) {
        oi_buf bytes = {0};
        const oi_status status = oi_weights_entry(h->p, t, i, &bytes);
        if (status != OI_OK)
            h->files->status = status;
        for (uint64_t e = 0; status == OI_OK && e < each; e++)
            oi_buf_printf(&b, "%s%s%s", i || e ? "," : "",
                          (i || e) && e % 8 == 0 ? "\n        " : "",
                          oi_hdl_word(h->arena, bits, element(bytes.text, e, bits)));
        oi_buf_free(&bytes);
    }
    return b.n ? oi_buf_to_arena(&b, h->arena) : "";
}

static void put_rom(oi_circuit *h, oi_out *o, const oi_tensor *t, const oi_hdl_memory *m)
{
    const uint32_t bits = oi_hdl_bits(t->dtype);
    oi_hdl_gap(o);
    oi_out_line(o, "library ieee;");
    oi_out_line(o, "use ieee.std_logic_1164.all;");
    oi_out_line(o, "use ieee.numeric_std.all;");
    oi_hdl_gap(o);
    oi_out_line(o, "entity rom_%s is", m->name);
    oi_out_line(o, "    port (");
    oi_out_line(o, "        clk   : in  std_logic;");
    oi_out_line(o, "        raddr : in  unsigned(%u downto 0);", oi_hdl_log2(m->depth) - 1);
    oi_out_line(o, "        rdata : out std_logic_vector(%u downto 0) := (others => '0')",
                bits - 1);
    oi_out_line(o, "    );");
    oi_out_line(o, "end entity;");
    oi_hdl_gap(o);
    oi_out_line(o, "architecture rtl of rom_%s is", m->name);
    oi_out_line(o, "    type words_t is array (0 to %" PRIu64 ") of std_logic_vector(%u downto 0);",
                m->depth - 1, bits - 1);
    oi_out_line(o, "    constant words : words_t := (");
    oi_out_line(o, "        %s", words_text(h, t, m));
    oi_out_line(o, "    );");
    oi_out_line(o, "    signal found : std_logic_vector(%u downto 0) := (others => '0');",
                bits - 1);
    oi_out_line(o, "begin");
    oi_out_line(o, "    rdata <= found;");
    oi_hdl_gap(o);
    oi_out_line(o, "    process (clk)");
    oi_out_line(o, "    begin");
    oi_out_line(o, "        if rising_edge(clk) then");
    oi_out_line(o, "            found <= words(to_integer(raddr));");
    oi_out_line(o, "        end if;");
    oi_out_line(o, "    end process;");
    oi_out_line(o, "end architecture;");
}

/* -- memories -- */

static void put_reads(oi_circuit *h, const oi_tensor *t, const oi_hdl_memory *m, uint32_t channel)
{
    const char *end = channel ? oi_arena_printf(h->arena, "_%u", channel) : "";
    oi_out_line(&h->signals, "signal %s_raddr%s : unsigned(%u downto 0) := (others => '0');",
                m->name, end, oi_hdl_log2(m->depth) - 1);
    oi_out_line(&h->signals,
                "signal %s_rdata%s : std_logic_vector(%u downto 0) := (others => '0');", m->name,
                end, oi_hdl_bits(t->dtype) - 1);
    oi_out_line(&h->places, "%s_raddr%s <= %s;", m->name, end,
                m->reads.at[channel].n ? oi_buf_to_arena(&m->reads.at[channel], h->arena)
                                       : "(others => '0')");
}

static void put_writes(oi_circuit *h, const oi_tensor *t, oi_hdl_memory *m)
{
    const char *we = m->we.n ? oi_buf_to_arena(&m->we, h->arena) : "'0'",
               *waddr = m->waddr ? m->waddr : "(others => '0')",
               *wdata = m->wdata ? m->wdata : "(others => '0')";
    oi_out_line(&h->signals, "signal %s_we : std_logic := '0';", m->name);
    oi_out_line(&h->signals, "signal %s_wa : unsigned(%u downto 0) := (others => '0');", m->name,
                oi_hdl_log2(m->depth) - 1);
    oi_out_line(&h->signals, "signal %s_wd : std_logic_vector(%u downto 0) := (others => '0');",
                m->name, oi_hdl_bits(t->dtype) - 1);
    oi_out_line(&h->places, "%s_we <= %s;", m->name, we);
    oi_out_line(&h->places, "%s_wa <= %s;", m->name, waddr);
    oi_out_line(&h->places, "%s_wd <= %s;", m->name, wdata);
}

static void put_constant(oi_circuit *h, oi_out *roms, const oi_tensor *t, const oi_hdl_memory *m)
{
    if (m->has_value) {
        const char *word = words_text(h, t, m);
        oi_out_line(&h->signals, "constant %s_value : std_logic_vector(%u downto 0) := %s;",
                    m->name, oi_hdl_bits(t->dtype) - 1, word + strlen("0 => "));
    }
    if (!m->reads.n)
        return;
    h->has_roms = true;
    put_rom(h, roms, t, m);
    for (uint32_t c = 0; c < m->reads.n; c++)
        oi_out_line(&h->places, "rom_%s_%u : entity work.rom_%s port map (clk, %s_raddr%s, %s);",
                    m->name, c, m->name, m->name, c ? oi_arena_printf(h->arena, "_%u", c) : "",
                    c ? oi_arena_printf(h->arena, "%s_rdata_%u", m->name, c)
                      : oi_arena_printf(h->arena, "%s_rdata", m->name));
}

static void put_variable(oi_circuit *h, const oi_tensor *t, oi_hdl_memory *m)
{
    const uint32_t width = oi_hdl_bits(t->dtype), bits = oi_hdl_log2(m->depth);
    put_writes(h, t, m);
    if (m->has_value)
        oi_out_line(&h->signals,
                    "signal %s_value : std_logic_vector(%u downto 0) := (others => '0');", m->name,
                    width - 1);
    for (uint32_t c = 0; c < (m->reads.n ? m->reads.n : m->has_value); c++) {
        const char *end = c ? oi_arena_printf(h->arena, "_%u", c) : "";
        const char *raddr =
            m->reads.n ? oi_arena_printf(h->arena, "%s_raddr%s", m->name, end) : "\"0\"";
        const char *rdata =
            m->reads.n ? oi_arena_printf(h->arena, "%s_rdata%s", m->name, end) : "open";
        oi_out_line(&h->places, "ram_%s_%u : entity work.%s", m->name, c,
                    m->depth > 1 ? "oi_ram" : "oi_cell");
        if (m->depth > 1) {
            oi_out_line(&h->places, "    generic map (%" PRIu64 ", %u, %u)", m->depth, width, bits);
            oi_out_line(&h->places, "    port map (clk, %s, %s, %s_we, %s_wa, %s_wd);", raddr,
                        rdata, m->name, m->name, m->name);
        } else {
            oi_out_line(&h->places, "    generic map (%u)", width);
            oi_out_line(
                &h->places, "    port map (clk, %s, %s_we, %s_wd, %s);", rdata, m->name, m->name,
                m->has_value && c == 0 ? oi_arena_printf(h->arena, "%s_value", m->name) : "open");
        }
    }
}

void oi_hdl_put_memories(oi_circuit *h)
{
    oi_out roms = {0};
    oi_out_line(&roms, "-- The constants of %s.", h->p->name);
    for (size_t i = 0; i < h->p->tensors.n && h->files->status == OI_OK; i++) {
        const oi_tensor *t = &h->p->tensors.at[i];
        oi_hdl_memory *m = &h->memories[i];
        if (!m->name)
            continue;
        oi_hdl_gap(&h->places);
        for (uint32_t c = 0; c < m->reads.n; c++)
            put_reads(h, t, m, c);
        if (t->space == OI_SPACE_WEIGHTS)
            put_constant(h, &roms, t, m);
        else
            put_variable(h, t, m);
    }
    if (h->has_roms)
        oi_emit_file(h->p, h->files, oi_arena_printf(h->arena, "%s_roms.vhd", h->p->name),
                     &roms.buf);
    else
        oi_buf_free(&roms.buf);
}
