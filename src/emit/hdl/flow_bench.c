/* flow_bench.c: the test bench of the pipelined form. Without state, every step sends four beats,
 * its own tensors and those of the step before in turn, and takes as many. So beats that follow
 * each other differ, and each comes back twice. */
#include "emit/hdl/flow.h"

#include <inttypes.h>

/* With state, equal beats give different results: every step is one beat. */
static int beats_of(const oi_flow *f)
{
    return f->states.n ? 1 : 4;
}

typedef struct bench {
    const oi_flow *f;
    oi_circuit *h;
    oi_arena *a;
    oi_out signals, map, parts, reads, writes, done;
} bench;

static uint32_t width_of(const bench *b, const oi_flow_stream *s)
{
    return (uint32_t)s->n * oi_hdl_bits(b->h->p->tensors.at[s->tensor].dtype);
}

static void put_wires(bench *b, const char *side, const oi_flow_stream *s)
{
    static const char *const wires[] = {"tvalid", "tready", "tlast"};
    oi_out_line(&b->signals,
                "signal %s_axis_%s_tdata, %s_one, %s_two : std_logic_vector(%u downto 0) := "
                "(others => '0');",
                side, s->name, s->name, s->name, width_of(b, s) - 1);
    oi_out_line(&b->map, "%s_axis_%s_tdata => %s_axis_%s_tdata,", side, s->name, side, s->name);
    for (size_t i = 0; i < OI_COUNT(wires) - (*side == 's'); i++) {
        oi_out_line(&b->signals, "signal %s_axis_%s_%s : std_logic := '0';", side, s->name,
                    wires[i]);
        oi_out_line(&b->map, "%s_axis_%s_%s => %s_axis_%s_%s,", side, s->name, wires[i], side,
                    s->name, wires[i]);
    }
    oi_out_line(&b->signals, "signal %s_turn : natural := 0;", s->name);
    oi_buf_printf(&b->done.buf, "%s%s_turn = turn", b->done.buf.n ? " and " : "", s->name);
}

static void open_process(bench *b, const oi_flow_stream *s, uint32_t seed)
{
    oi_out *o = &b->parts;
    oi_hdl_gap(o);
    oi_out_line(o, "with_%s : process", s->name);
    oi_out_line(o, "    variable random : oi_random := (seed1 => %u, seed2 => 7, stalls => true);",
                seed);
    oi_out_line(o, "begin");
    oi_out_line(o, "    wait until turn /= %s_turn;", s->name);
    oi_out_line(o, "    random.stalls := turn mod 2 = 0;");
}

static void close_process(bench *b, const oi_flow_stream *s)
{
    oi_out_line(&b->parts, "    %s_turn <= turn;", s->name);
    oi_out_line(&b->parts, "end process;");
}

static void put_input(bench *b, const oi_flow_stream *s, uint32_t seed)
{
    const char *n = s->name;
    put_wires(b, "s", s);
    oi_out_line(&b->signals, "signal %s_first : natural := 0;", n);
    oi_out_line(&b->reads, "%s_two <= %s_one;", n, n);
    oi_out_line(&b->reads, "oi_get_beat(input, %s_one);", n);
    open_process(b, s, seed);
    oi_out_line(&b->parts,
                "    oi_send_beats(%d, %s_one, %s_two, random, clk, clock, %s_first, "
                "s_axis_%s_tdata, s_axis_%s_tvalid, s_axis_%s_tready);",
                beats_of(b->f), n, n, n, n, n, n);
    close_process(b, s);
}

static const char *dims_text(bench *b, const int64_t *dims, uint32_t rank)
{
    oi_buf text = {0};
    if (rank == 0)
        return "no_dims";
    for (uint32_t d = 0; d < rank; d++)
        oi_buf_printf(&text, "%s%" PRId64, d ? ", " : rank == 1 ? "(0 => " : "(", dims[d]);
    oi_buf_putc(&text, ')');
    return oi_buf_to_arena(&text, b->a);
}

/* `var`: it is persistent memory, which is sent after outputs. */
static void put_output(bench *b, const oi_flow_stream *s, const oi_store_var *var,
                       const oi_flow_stream *in, uint32_t seed)
{
    const oi_tensor *t = &b->h->p->tensors.at[var ? var->tensor : s->tensor];
    const char *n = s->name;
    put_wires(b, "m", s);
    open_process(b, s, seed);
    oi_out_line(&b->parts,
                "    oi_receive_beats(%d, %" PRIu64 ", %" PRIu64 ", %" PRIu64
                ", random, clk, clock, %s_first, %s_one, %s_two, m_axis_%s_tdata, "
                "m_axis_%s_tvalid, m_axis_%s_tlast, m_axis_%s_tready);",
                beats_of(b->f), s->latency, s->interval, b->f->interval, in->name, n, n, n, n, n,
                n);
    close_process(b, s);
    oi_out_line(&b->writes, "oi_put_beat(output, '%c', \"%s\", %s, %" PRIu64 ", %s_one);",
                var ? 's' : 'o', t->var ? t->var->name : t->name,
                dims_text(b, var ? var->most : t->dims, var ? var->rank : t->rank),
                oi_tensor_bytes(t), n);
}

static void put_main(const bench *b, oi_out *o)
{
    const char *done = oi_buf_to_arena(&((bench *)b)->done.buf, b->a);
    oi_out_line(o, "main : process");
    oi_out_line(o, "    file input : oi_bytes open read_mode is \"STD_INPUT\";");
    oi_out_line(o, "    file output : oi_bytes open write_mode is \"/dev/fd/3\";");
    oi_out_line(o, "    constant no_dims : oi_sizes(1 to 0) := (others => 0);");
    oi_out_line(o, "    variable graph : natural;");
    oi_out_line(o, "begin");
    oi_out_line(o, "    wait until rising_edge(clk);");
    oi_out_line(o, "    rst <= '0';");
    oi_out_line(o, "    wait until rising_edge(clk);");
    oi_out_line(o, "    while not endfile(input) loop");
    oi_out_line(o, "        oi_get(input, graph);");
    oi_out_line(o, "        if graph = 255 then -- begin again");
    oi_out_line(o, "            rst <= '1';");
    oi_out_line(o, "            wait until rising_edge(clk);");
    oi_out_line(o, "            rst <= '0';");
    oi_out_line(o, "            wait until rising_edge(clk);");
    oi_out_line(o, "        else");
    oi_out_text(o, b->reads.buf.text);
    if (b->f->states.n) /* what hangs on state alone is computed before */
        oi_out_line(o, "            wait for %" PRIu64 " ns;",
                    10 * (b->f->interval + b->f->latency));
    oi_out_line(o, "            turn <= turn + 1;");
    oi_out_line(o, "            wait until rising_edge(clk);");
    oi_out_line(o, "            wait until rising_edge(clk) and %s;", done);
    oi_out_line(o, "            oi_put_number(output, 't', 8, %" PRIu64 ");", b->f->latency);
    oi_out_text(o, b->writes.buf.text);
    oi_out_line(o, "            oi_put_number(output, 'e', 4, 0);");
    oi_out_line(o, "        end if;");
    oi_out_line(o, "    end loop;");
    oi_out_line(o, "    running <= false;");
    oi_out_line(o, "    wait;");
    oi_out_line(o, "end process;");
}

static void put_file(const bench *b)
{
    oi_out o = {0};
    const char *n = b->h->p->name;
    oi_out_line(&o, "-- %s_bench.vhd: runs steps on raw tensors.", n);
    oi_out_line(&o, "library ieee;");
    oi_out_line(&o, "use ieee.std_logic_1164.all;");
    oi_out_line(&o, "use ieee.numeric_std.all;");
    oi_out_line(&o, "use work.oi_bench.all;");
    oi_hdl_gap(&o);
    oi_out_line(&o, "entity %s_bench is", n);
    oi_out_line(&o, "end entity;");
    oi_hdl_gap(&o);
    oi_out_line(&o, "architecture sim of %s_bench is", n);
    o.depth = 1;
    oi_out_line(&o, "signal running : boolean := true;");
    oi_out_line(&o, "signal clk : std_logic := '0';");
    oi_out_line(&o, "signal rst : std_logic := '1';");
    oi_out_line(&o, "signal clock, turn : natural := 0;");
    oi_out_text(&o, b->signals.buf.text);
    o.depth = 0;
    oi_out_line(&o, "begin");
    o.depth = 1;
    oi_out_line(&o, "clk <= not clk after 5 ns when running else '0';");
    oi_out_line(&o, "clock <= clock + 1 when rising_edge(clk);");
    oi_hdl_gap(&o);
    oi_out_line(&o, "dut : entity work.%s port map (", n);
    oi_out_text(&o, b->map.buf.text);
    oi_out_line(&o, "    clk => clk,");
    oi_out_line(&o, "    rst => rst");
    oi_out_line(&o, ");");
    oi_out_text(&o, b->parts.buf.text);
    oi_hdl_gap(&o);
    put_main(b, &o);
    o.depth = 0;
    oi_out_line(&o, "end architecture;");
    oi_emit_file(b->h->p, b->h->files, oi_arena_printf(b->a, "%s_bench.vhd", n), &o.buf);
}

void oi_flow_put_bench(const oi_flow *f)
{
    bench b = {.f = f, .h = f->h, .a = f->h->arena};
    const oi_flow_stream *first = NULL;
    uint32_t seed = 1;
    b.signals.depth = b.parts.depth = 1;
    b.map.depth = 2;
    b.reads.depth = b.writes.depth = 3;
    for (size_t i = 0; i < f->streams.n; i++) {
        const oi_flow_stream *s = &f->streams.at[i];
        if (s->producer != OI_NO_ID || !s->bits || s->is_state)
            continue;
        first = first ? first : s;
        put_input(&b, s, seed++);
    }
    for (size_t i = 0; i < f->outputs.n; i++)
        put_output(&b, &f->streams.at[f->outputs.at[i]], NULL, first, seed++);
    for (size_t i = 0; i < f->states.n; i++)
        put_output(&b, &f->streams.at[f->states.at[i].to], f->states.at[i].var, first, seed++);
    put_file(&b);
    oi_buf_free(&b.signals.buf);
    oi_buf_free(&b.map.buf);
    oi_buf_free(&b.parts.buf);
    oi_buf_free(&b.reads.buf);
    oi_buf_free(&b.writes.buf);
}
