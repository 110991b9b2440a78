/* bench.c: the test bench, which runs steps on raw tensors, and the files that build and run it.
 *
 * It reads the number of a graph and its inputs, and writes outputs, persistent memory and the
 * result as records, as main.c of C programs does; so the simulator's vectors go straight through
 * it. Streams stall at random in every second step, and every step takes as many clocks as the plan
 * predicts, or the bench stops. */
#include "device/device.h"
#include "emit/hdl/hdl.h"

#include <inttypes.h>

extern const oi_embedded oi_hdl_files[]; /* generated from support/ */

typedef struct bench {
    oi_circuit *h;
    oi_out signals, map, o;
} bench;

static uint32_t width_of(const bench *b, uint32_t tensor)
{
    return oi_hdl_bits(b->h->p->tensors.at[tensor].dtype);
}

static void put_wire(bench *b, const char *side, const char *name, const char *what, uint32_t bits)
{
    const char *port = oi_arena_printf(b->h->arena, "%s_%s_%s", side, name, what);
    if (bits)
        oi_out_line(&b->signals, "signal %s : std_logic_vector(%u downto 0) := (others => '0');",
                    port, bits - 1);
    else
        oi_out_line(&b->signals, "signal %s : std_logic := '0';", port);
    oi_out_line(&b->map, "%s => %s,", port, port);
}

static void put_wires(bench *b, const char *side, uint32_t tensor)
{
    const char *n = oi_hdl_memory_of(b->h, tensor)->name;
    put_wire(b, side, n, "tdata", width_of(b, tensor));
    put_wire(b, side, n, "tvalid", 0);
    put_wire(b, side, n, "tready", 0);
    if (*side == 'm')
        put_wire(b, side, n, "tlast", 0);
}

static void put_send(bench *b, uint32_t tensor)
{
    const oi_hdl_memory *m = oi_hdl_memory_of(b->h, tensor);
    put_wires(b, "s_axis", tensor);
    oi_out_line(&b->o,
                "oi_send(input, %" PRIu64 ", %u, random, clk, s_axis_%s_tdata, s_axis_%s_tvalid, "
                "s_axis_%s_tready);",
                m->depth, width_of(b, tensor), m->name, m->name, m->name);
}

static const char *dims_text(bench *b, const oi_store_var *v)
{
    oi_buf text = {0};
    if (!v || v->rank == 0)
        return "no_dims";
    if (v->rank == 1)
        return oi_arena_printf(b->h->arena, "(0 => %" PRId64 ")", v->most[0]);
    for (uint32_t a = 0; a < v->rank; a++)
        oi_buf_printf(&text, "%s%" PRId64, a ? ", " : "(", v->most[a]);
    oi_buf_putc(&text, ')');
    return oi_buf_to_arena(&text, b->h->arena);
}

static void put_receive(bench *b, uint32_t tensor, const oi_store_var *v)
{
    const oi_tensor *t = &b->h->p->tensors.at[tensor];
    const oi_hdl_memory *m = oi_hdl_memory_of(b->h, tensor);
    put_wires(b, "m_axis", tensor);
    oi_out_line(&b->o,
                "oi_receive(output, '%c', \"%s\", %s, %" PRIu64 ", %" PRIu64
                ", %u, random, clk, m_axis_%s_tdata, m_axis_%s_tvalid, m_axis_%s_tlast, "
                "m_axis_%s_tready);",
                v ? 's' : 'o', t->var ? t->var->name : t->name, dims_text(b, v), oi_tensor_bytes(t),
                m->depth, width_of(b, tensor), m->name, m->name, m->name, m->name);
}

static void put_cycles(bench *b)
{
    for (size_t g = 0; g < b->h->p->graphs.n; g++) {
        const oi_clocks *c = &b->h->clocks[g];
        oi_out_line(&b->o, "if result = 0 and graph = %zu then", g);
        b->o.depth++;
        if (c->most == UINT64_MAX)
            oi_out_line(&b->o, "assert cycles >= %" PRIu64, c->least);
        else if (c->least == c->most)
            oi_out_line(&b->o, "assert cycles = %" PRIu64, c->least);
        else
            oi_out_line(&b->o, "assert cycles >= %" PRIu64 " and cycles <= %" PRIu64, c->least,
                        c->most);
        oi_out_line(&b->o,
                    "    report \"the step took \" & integer'image(cycles) & \" clocks, which "
                    "the plan does not predict\"");
        oi_out_line(&b->o, "    severity failure;");
        b->o.depth--;
        oi_out_line(&b->o, "end if;");
    }
}

static void put_step(bench *b)
{
    const oi_plan *p = b->h->p;
    oi_out *o = &b->o;
    oi_out_line(o, "random.stalls := not random.stalls;");
    oi_out_line(o, "case graph is");
    o->depth++;
    for (size_t g = 0; g < p->graphs.n; g++) {
        oi_out_line(o, "when %zu =>", g);
        o->depth++;
        for (size_t i = 0; i < p->graphs.at[g].inputs.n; i++)
            put_send(b, p->graphs.at[g].inputs.at[i]);
        oi_out_line(o, "null;");
        o->depth--;
    }
    oi_out_line(o, "when others => report \"no such graph\" severity failure;");
    o->depth--;
    oi_out_line(o, "end case;");
    if (p->graphs.n > 1)
        oi_out_line(o, "step_tdata <= std_logic_vector(to_unsigned(graph, 8));");
    oi_out_line(o, "step_tvalid <= '1';");
    oi_out_line(o, "wait until rising_edge(clk) and step_tready = '1';");
    oi_out_line(o, "step_tvalid <= '0';");
    oi_out_line(o, "done_tready <= '1';");
    oi_out_line(o, "wait until rising_edge(clk) and done_tvalid = '1';");
    oi_out_line(o, "done_tready <= '0';");
    oi_out_line(o, "result := to_integer(unsigned(done_tdata));");
    put_cycles(b);
    oi_out_line(o, "oi_put_number(output, 't', 8, cycles);");
    for (size_t g = 0; g < p->graphs.n; g++) {
        oi_out_line(o, "if result = 0 and graph = %zu then", g);
        o->depth++;
        for (size_t i = 0; i < p->graphs.at[g].outputs.n; i++)
            if (oi_hdl_is_output(p, p->graphs.at[g].outputs.at[i]))
                put_receive(b, p->graphs.at[g].outputs.at[i], NULL);
        oi_out_line(o, "null;");
        o->depth--;
        oi_out_line(o, "end if;");
    }
    for (size_t i = 0; i < p->stores.n; i++)
        put_receive(b, p->stores.at[i].tensor, &p->stores.at[i]);
    oi_out_line(o, "oi_put_number(output, 'e', 4, result);");
}

static void put_main(bench *b)
{
    oi_out *o = &b->o;
    o->depth = 1;
    oi_out_line(o, "main : process");
    oi_out_line(o, "    file input : oi_bytes open read_mode is \"STD_INPUT\";");
    oi_out_line(o, "    file output : oi_bytes open write_mode is \"/dev/fd/3\";");
    oi_out_line(o, "    constant no_dims : oi_sizes(1 to 0) := (others => 0);");
    oi_out_line(o, "    variable random : oi_random := (seed1 => 1, seed2 => 2, stalls => true);");
    oi_out_line(o, "    variable graph, result : natural;");
    oi_out_line(o, "begin");
    o->depth++;
    oi_out_line(o, "wait until rising_edge(clk);");
    oi_out_line(o, "rst <= '0';");
    oi_out_line(o, "while not endfile(input) loop");
    o->depth++;
    oi_out_line(o, "oi_get(input, graph);");
    oi_out_line(o, "if graph = 255 then -- begin again");
    oi_out_line(o, "    rst <= '1';");
    oi_out_line(o, "    wait until rising_edge(clk);");
    oi_out_line(o, "    rst <= '0';");
    oi_out_line(o, "else");
    o->depth++;
    put_step(b);
    o->depth--;
    oi_out_line(o, "end if;");
    o->depth--;
    oi_out_line(o, "end loop;");
    oi_out_line(o, "running <= false;");
    oi_out_line(o, "wait;");
    o->depth--;
    oi_out_line(o, "end process;");
}

static void put_bench(oi_circuit *h)
{
    bench b = {.h = h};
    oi_out o = {0};
    b.signals.depth = 1;
    b.map.depth = 2;
    put_main(&b);
    oi_out_line(&o, "-- %s_bench.vhd: runs steps on raw tensors.", h->p->name);
    oi_out_line(&o, "library ieee;");
    oi_out_line(&o, "use ieee.std_logic_1164.all;");
    oi_out_line(&o, "use ieee.numeric_std.all;");
    oi_out_line(&o, "use work.oi_bench.all;");
    oi_hdl_gap(&o);
    oi_out_line(&o, "entity %s_bench is", h->p->name);
    oi_out_line(&o, "end entity;");
    oi_hdl_gap(&o);
    oi_out_line(&o, "architecture sim of %s_bench is", h->p->name);
    oi_out_line(&o, "    signal running : boolean := true;");
    oi_out_line(&o, "    signal clk, step_tvalid, step_tready, done_tvalid, done_tready, busy : "
                    "std_logic := '0';");
    oi_out_line(&o, "    signal rst : std_logic := '1';");
    oi_out_line(&o,
                "    signal step_tdata, done_tdata : std_logic_vector(7 downto 0) := (others => "
                "'0');");
    oi_out_line(&o, "    signal cycles : natural := 0; -- of the step");
    oi_out_text(&o, b.signals.buf.n ? oi_buf_to_arena(&b.signals.buf, h->arena) : "");
    oi_out_line(&o, "begin");
    oi_out_line(&o, "    clk <= not clk after 5 ns when running else '0';");
    oi_hdl_gap(&o);
    oi_out_line(&o, "    count : process (clk)");
    oi_out_line(&o, "    begin");
    oi_out_line(&o, "        if rising_edge(clk) then");
    oi_out_line(&o, "            if step_tvalid = '1' then");
    oi_out_line(&o, "                cycles <= 0;");
    oi_out_line(&o, "            elsif busy = '1' then");
    oi_out_line(&o, "                cycles <= cycles + 1;");
    oi_out_line(&o, "            end if;");
    oi_out_line(&o, "        end if;");
    oi_out_line(&o, "    end process;");
    oi_hdl_gap(&o);
    oi_out_line(&o, "    dut : entity work.%s port map (", h->p->name);
    oi_out_line(&o, "        clk => clk,");
    oi_out_line(&o, "        rst => rst,");
    oi_out_text(&o, b.map.buf.n ? oi_buf_to_arena(&b.map.buf, h->arena) : "");
    if (h->p->graphs.n > 1)
        oi_out_line(&o, "        step_tdata => step_tdata,");
    oi_out_line(&o, "        step_save => '1',");
    oi_out_line(&o, "        step_tvalid => step_tvalid,");
    oi_out_line(&o, "        step_tready => step_tready,");
    oi_out_line(&o, "        done_tdata => done_tdata,");
    oi_out_line(&o, "        done_tvalid => done_tvalid,");
    oi_out_line(&o, "        done_tready => done_tready,");
    oi_out_line(&o, "        busy => busy");
    oi_out_line(&o, "    );");
    oi_hdl_gap(&o);
    oi_out_text(&o, oi_buf_to_arena(&b.o.buf, h->arena));
    oi_out_line(&o, "end architecture;");
    oi_emit_file(h->p, h->files, oi_arena_printf(h->arena, "%s_bench.vhd", h->p->name), &o.buf);
}

/* Files of the other form stay away. */
static bool is_wanted(const oi_circuit *h, const char *name)
{
    const bool flow = strcmp(name, "oi_wires") == 0 || strcmp(name, "oi_fifo") == 0,
               machine = strcmp(name, "oi_ram") == 0 || strcmp(name, "oi_stream") == 0;
    return h->is_flow ? !machine : !flow;
}

static void put_makefile(oi_circuit *h)
{
    oi_out o = {0};
    const char *n = h->p->name;
    oi_out_line(&o, "# The design is %s.vhd, its entity %s. %s runs steps in a simulator.", n, n,
                n);
    oi_out_line(&o, "GHDL ?= ghdl");
    oi_out_line(&o, "GHDLFLAGS ?=");
    oi_out_line(&o, "FLAGS = --std=08 $(GHDLFLAGS)");
    oi_hdl_gap(&o);
    oi_out_line(&o, "DESIGN = oi_pkg.vhd %s%s%s %s.vhd",
                h->is_flow ? "oi_wires.vhd oi_fifo.vhd" : "oi_ram.vhd oi_stream.vhd",
                h->has_roms ? oi_arena_printf(h->arena, " %s_roms.vhd", n) : "",
                h->has_kernels ? oi_arena_printf(h->arena, " %s_kernels.vhd", n) : "", n);
    oi_hdl_gap(&o);
    oi_out_line(&o, "%s: $(DESIGN) oi_bench.vhd %s_bench.vhd", n, n);
    oi_out_line(&o, "\t$(GHDL) -a $(FLAGS) $(DESIGN) oi_bench.vhd %s_bench.vhd", n);
    oi_out_line(&o, "\t$(GHDL) -e $(FLAGS) %s_bench", n);
    oi_out_line(&o,
                "\tprintf '#!/bin/sh\\n# records leave by 3, as messages of the simulator use 1\\n"
                "{ $(GHDL) -r $(FLAGS) %s_bench 3>&1 >&2; } | cat\\n' > $@",
                n);
    oi_out_line(&o, "\tchmod +x $@");
    oi_hdl_gap(&o);
    oi_out_line(&o, "%s.v: $(DESIGN)", n);
    oi_out_line(&o, "\t$(GHDL) -a $(FLAGS) $(DESIGN)");
    oi_out_line(&o, "\t$(GHDL) --synth $(FLAGS) --out=verilog %s > $@", n);
    oi_hdl_gap(&o);
    oi_hdl_put_measuring(h, &o);
    oi_hdl_gap(&o);
    oi_out_line(&o, "clean:");
    oi_out_line(&o, "\trm -f %s %s.v %s_*.json *.cf *.o", n, n, n);
    oi_out_line(&o, ".PHONY: clean measured");
    oi_emit_file(h->p, h->files, "Makefile", &o.buf);
}

void oi_hdl_build_files(oi_circuit *h)
{
    for (const oi_embedded *e = oi_hdl_files; e->name; e++) {
        oi_out o = {0};
        if (!is_wanted(h, e->name))
            continue;
        oi_buf_add(&o.buf, (const char *)e->text, e->size);
        oi_emit_file(h->p, h->files, oi_arena_printf(h->arena, "%s.vhd", e->name), &o.buf);
    }
    put_makefile(h);
}

void oi_hdl_bench(oi_circuit *h)
{
    put_bench(h);
    oi_hdl_build_files(h);
}
