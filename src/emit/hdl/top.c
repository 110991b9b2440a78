/* top.c: the top level: streams, the control unit, memories and kernels.
 *
 *     s_axis_NAME   one element a beat, for every input of a step
 *     step          a beat begins a step, once its inputs are there
 *     done          a beat ends it: the number of its error, or 0
 *     m_axis_NAME   one element a beat, for every output; and for persistent memory, if step_save
 *                   was up
 *
 * `busy` is up from the beginning of a step to its end, for as many clocks as the plan predicts. */
#include "emit/hdl/hdl.h"

#include <inttypes.h>

typedef struct stream {
    uint32_t tensor, graph;
    bool is_state;
} stream;

typedef struct top {
    oi_circuit *h;
    OI_VEC(stream) in, out;
    uint64_t sweep; /* elements that a sweep over memories visits at most; 0: no memory needs one */
    oi_out ports, body;
} top;

static const char *name_of(const top *t, const stream *s)
{
    return oi_hdl_memory_of(t->h, s->tensor)->name;
}

/* -- streams -- */

bool oi_hdl_is_output(const oi_plan *p, uint32_t tensor)
{
    const oi_tensor *t = &p->tensors.at[tensor];
    return t->space != OI_SPACE_STATE && !(t->var && t->var->is_prefix);
}

static void find_streams(top *t)
{
    const oi_plan *p = t->h->p;
    for (uint32_t g = 0; g < p->graphs.n; g++) {
        const oi_sgraph *graph = &p->graphs.at[g];
        for (size_t i = 0; i < graph->inputs.n; i++)
            *OI_PUSH(t->h->arena, &t->in) = (stream){graph->inputs.at[i], g, false};
        for (size_t i = 0; i < graph->outputs.n; i++)
            if (oi_hdl_is_output(p, graph->outputs.at[i]))
                *OI_PUSH(t->h->arena, &t->out) = (stream){graph->outputs.at[i], g, false};
    }
    for (size_t i = 0; i < p->stores.n; i++)
        *OI_PUSH(t->h->arena, &t->out) = (stream){p->stores.at[i].tensor, 0, true};
}

static void put_port(top *t, const char *fmt, const char *name, const char *type)
{
    oi_out_line(&t->ports, "%s : %s;", oi_arena_printf(t->h->arena, fmt, name), type);
}

static void put_in(top *t, const stream *s)
{
    oi_circuit *h = t->h;
    const char *n = name_of(t, s);
    const oi_hdl_memory *m = oi_hdl_memory_of(h, s->tensor);
    const uint32_t width = oi_hdl_bits(h->p->tensors.at[s->tensor].dtype);
    const char *word = oi_arena_printf(h->arena, "in  std_logic_vector(%u downto 0)", width - 1);
    put_port(t, "s_axis_%s_tdata", n, word);
    put_port(t, "s_axis_%s_tvalid", n, "in  std_logic");
    put_port(t, "s_axis_%s_tready", n, "out std_logic");
    oi_out_line(&h->signals, "signal %s_full, %s_take, %s_load : std_logic := '0';", n, n, n);
    oi_out_line(&h->signals, "signal %s_at : unsigned(%u downto 0) := (others => '0');", n,
                oi_hdl_log2(m->depth) - 1);
    oi_out_line(&h->signals, "signal %s_word : std_logic_vector(%u downto 0) := (others => '0');",
                n, width - 1);
    oi_hdl_gap(&h->places);
    oi_out_line(&h->places, "%s_take <= oi_bit(state = s_done%s);", n,
                h->p->graphs.n > 1 ? oi_arena_printf(h->arena, " and graph = %u", s->graph) : "");
    oi_out_line(&h->places, "in_%s : entity work.oi_stream_in", n);
    oi_out_line(&h->places, "    generic map (%" PRIu64 ", %u, %u)", m->depth, width,
                oi_hdl_log2(m->depth));
    oi_out_line(&h->places,
                "    port map (clk, rst, s_axis_%s_tdata, s_axis_%s_tvalid, s_axis_%s_tready, "
                "%s_take, %s_full, %s_load, %s_at, %s_word);",
                n, n, n, n, n, n, n, n);
    oi_hdl_add_write(h, s->tensor, oi_arena_printf(h->arena, "%s_load", n),
                     oi_arena_printf(h->arena, "%s_at", n),
                     oi_arena_printf(h->arena, "%s_word", n));
}

static void put_out(top *t, const stream *s)
{
    oi_circuit *h = t->h;
    const char *n = name_of(t, s);
    const oi_hdl_memory *m = oi_hdl_memory_of(h, s->tensor);
    const uint32_t width = oi_hdl_bits(h->p->tensors.at[s->tensor].dtype);
    const char *word = oi_arena_printf(h->arena, "out std_logic_vector(%u downto 0)", width - 1);
    put_port(t, "m_axis_%s_tdata", n, word);
    put_port(t, "m_axis_%s_tvalid", n, "out std_logic");
    put_port(t, "m_axis_%s_tlast", n, "out std_logic");
    put_port(t, "m_axis_%s_tready", n, "in  std_logic");
    oi_out_line(&h->signals, "signal %s_send, %s_sends : std_logic := '0';", n, n);
    oi_out_line(&h->signals, "signal %s_sent : unsigned(%u downto 0) := (others => '0');", n,
                oi_hdl_log2(m->depth) - 1);
    oi_hdl_gap(&h->places);
    if (s->is_state)
        oi_out_line(&h->places, "%s_send <= fresh and save and oi_bit(state = s_send);", n);
    else
        oi_out_line(&h->places, "%s_send <= fresh and oi_bit(state = s_send and code = 0%s);", n,
                    h->p->graphs.n > 1 ? oi_arena_printf(h->arena, " and graph = %u", s->graph)
                                       : "");
    oi_out_line(&h->places, "out_%s : entity work.oi_stream_out", n);
    oi_out_line(&h->places, "    generic map (%" PRIu64 ", %u, %u)", m->depth, width,
                oi_hdl_log2(m->depth));
    oi_out_line(&h->places,
                "    port map (clk, rst, %s_send, %s_sends, %s_sent, %s, m_axis_%s_tdata, "
                "m_axis_%s_tvalid, m_axis_%s_tlast, m_axis_%s_tready);",
                n, n, n, oi_hdl_found(h, s->tensor, 0), n, n, n, n);
    oi_hdl_add_read(h, s->tensor, 0, oi_arena_printf(h->arena, "%s_sent", n));
}

/* -- what memories hold at first -- */

static bool begins(const oi_plan *p, uint32_t tensor, uint32_t graph, bool is_reset)
{
    const oi_tensor *t = &p->tensors.at[tensor];
    if (t->start == OI_START_NONE)
        return is_reset && t->space == OI_SPACE_STATE;
    return is_reset ? t->space == OI_SPACE_STATE
                    : (t->space == OI_SPACE_ARENA || t->space == OI_SPACE_OUTPUT) &&
                          t->graph == graph && t->var;
}

/* A sweep visits all elements of the memories that begin with a value: constants are asked for an
 * element, which is written a clock later. Returns how many elements that takes. */
static uint64_t put_sweep(top *t, uint32_t graph, bool is_reset, const char *state)
{
    oi_circuit *h = t->h;
    uint64_t most = 0;
    for (uint32_t i = 0; i < h->p->tensors.n; i++) {
        const oi_tensor *own = &h->p->tensors.at[i];
        if (!begins(h->p, i, graph, is_reset) || !h->memories[i].name)
            continue;
        const oi_hdl_memory *m = oi_hdl_memory_of(h, i);
        const uint32_t bits = oi_hdl_log2(m->depth);
        const char *value = oi_hdl_word(h->arena, oi_hdl_bits(own->dtype), own->init);
        if (own->start == OI_START_MODEL) {
            value = oi_hdl_found(h, own->from, 0);
            oi_hdl_add_read(h, own->from, 0,
                            oi_arena_printf(h->arena,
                                            "oi_address(state = %s and sweep < %" PRIu64
                                            ", sweep, %u)",
                                            state, m->depth, bits));
        }
        oi_hdl_add_write(
            h, i,
            oi_arena_printf(h->arena, "oi_bit(state = %s and fresh = '0' and swept < %" PRIu64 ")",
                            state, m->depth),
            oi_arena_printf(h->arena, "oi_address(state = %s and swept < %" PRIu64 ", swept, %u)",
                            state, m->depth, bits),
            value);
        most = m->depth > most ? m->depth : most;
    }
    t->sweep = most > t->sweep ? most : t->sweep;
    return most;
}

/* A step that may fail after it has changed persistent memory begins with a copy of it, from which
 * an error restores it. Returns how many elements a sweep over it has. */
static uint64_t put_undo(top *t, const char *keeps)
{
    oi_circuit *h = t->h;
    uint64_t most = 0;
    for (size_t i = 0; i < h->p->stores.n; i++) {
        const uint32_t id = h->p->stores.at[i].tensor;
        const oi_hdl_memory *m = oi_hdl_memory_of(h, id);
        const uint32_t bits = oi_hdl_log2(m->depth),
                       width = oi_hdl_bits(h->p->tensors.at[id].dtype);
        const char *n = m->name;
        const char *there = oi_arena_printf(h->arena, "sweep < %" PRIu64, m->depth),
                   *here = oi_arena_printf(h->arena, "fresh = '0' and swept < %" PRIu64, m->depth);
        oi_out_line(&h->signals,
                    "signal %s_kept : std_logic_vector(%u downto 0) := (others => '0');", n,
                    width - 1);
        oi_out_line(&h->signals, "signal %s_keep : std_logic := '0';", n);
        oi_out_line(&h->signals,
                    "signal %s_from, %s_to : unsigned(%u downto 0) := (others => '0');", n, n,
                    bits - 1);
        oi_out_line(&h->places, "%s_keep <= oi_bit((%s) and %s);", n, keeps, here);
        oi_out_line(&h->places, "%s_from <= oi_address(state = s_failed and %s, sweep, %u);", n,
                    there, bits);
        oi_out_line(&h->places, "%s_to <= oi_address(%s_keep = '1', swept, %u);", n, n, bits);
        oi_out_line(&h->places, "undo_%s : entity work.oi_ram", n);
        oi_out_line(&h->places, "    generic map (%" PRIu64 ", %u, %u)", m->depth, width, bits);
        oi_out_line(&h->places, "    port map (clk, %s_from, %s_kept, %s_keep, %s_to, %s);", n, n,
                    n, n, oi_hdl_found(h, id, 0));
        oi_hdl_add_read(
            h, id, 0,
            oi_arena_printf(h->arena, "oi_address((%s) and %s, sweep, %u)", keeps, there, bits));
        oi_hdl_add_write(
            h, id, oi_arena_printf(h->arena, "oi_bit(state = s_failed and %s)", here),
            oi_arena_printf(h->arena, "oi_address(state = s_failed and %s, swept, %u)", here, bits),
            oi_arena_printf(h->arena, "%s_kept", n));
        most = m->depth > most ? m->depth : most;
    }
    t->sweep = most > t->sweep ? most : t->sweep;
    return most;
}

static void put_go(top *t, const char *state)
{
    oi_out_line(&t->body, "state <= %s;", state);
    oi_out_line(&t->body, "fresh <= '1';");
}

static void put_sweep_state(top *t, const char *state, uint64_t elements, const char *next)
{
    oi_out_line(&t->body, "%s state = %s then -- a sweep over memories",
                t->body.buf.n ? "elsif" : "if", state);
    t->body.depth++;
    if (elements) {
        oi_out_line(&t->body, "sweep <= sweep + 1;");
        oi_out_line(&t->body, "if sweep = %" PRIu64 " then", elements);
        t->body.depth++;
        oi_out_line(&t->body, "sweep <= 0;");
    }
    put_go(t, next);
    if (elements) {
        t->body.depth--;
        oi_out_line(&t->body, "end if;");
    }
    t->body.depth--;
}

/* -- the machine -- */

static const char *ready_text(top *t, uint32_t graph)
{
    oi_buf b = {0};
    for (size_t i = 0; i < t->in.n; i++)
        if (t->in.at[i].graph == graph)
            oi_buf_printf(&b, " and %s_full = '1'", name_of(t, &t->in.at[i]));
    if (t->h->p->graphs.n > 1)
        oi_buf_printf(&b, " and unsigned(step_tdata) = %u", graph);
    return b.n ? oi_buf_to_arena(&b, t->h->arena) : "";
}

static void put_idle(top *t, const char *const *begin)
{
    const bool many = t->h->p->graphs.n > 1;
    oi_buf ready = {0};
    oi_out_line(&t->body, "elsif state = s_idle then");
    t->body.depth++;
    for (uint32_t g = 0; g < t->h->p->graphs.n; g++) {
        oi_out_line(&t->body, "if step_tvalid = '1'%s then", ready_text(t, g));
        t->body.depth++;
        oi_out_line(&t->body, "code  <= (others => '0');");
        oi_out_line(&t->body, "save  <= step_save;");
        if (many)
            oi_out_line(&t->body, "graph <= %u;", g);
        put_go(t, begin[g]);
        t->body.depth--;
        oi_out_line(&t->body, "end if;");
        oi_buf_printf(&ready, "%s(state = s_idle%s)", g ? " or " : "", ready_text(t, g));
    }
    t->body.depth--;
    oi_out_line(&t->h->places, "step_tready <= oi_bit(%s);", oi_buf_to_arena(&ready, t->h->arena));
}

static void put_end(top *t)
{
    oi_buf b = {0};
    oi_out_line(&t->body, "elsif state = s_done then");
    t->body.depth++;
    oi_out_line(&t->body, "if done_tready = '1' then");
    t->body.depth++;
    put_go(t, "s_send");
    t->body.depth--;
    oi_out_line(&t->body, "end if;");
    t->body.depth--;
    oi_out_line(&t->body, "elsif state = s_send then");
    t->body.depth++;
    for (size_t i = 0; i < t->out.n; i++)
        oi_buf_printf(&b, " and %s_sends = '0'", name_of(t, &t->out.at[i]));
    oi_out_line(&t->body, "if fresh = '0'%s then", b.n ? oi_buf_to_arena(&b, t->h->arena) : "");
    t->body.depth++;
    put_go(t, "s_idle");
    t->body.depth--;
    oi_out_line(&t->body, "end if;");
    t->body.depth--;
}

static uint64_t put_undos(top *t)
{
    oi_circuit *h = t->h;
    oi_buf keeps = {0};
    for (uint32_t g = 0; g < h->p->graphs.n; g++)
        if (h->p->graphs.at[g].needs_undo)
            oi_buf_printf(&keeps, "%sstate = %s", keeps.n ? " or " : "",
                          oi_hdl_state(h, oi_arena_printf(h->arena, "s_keep_%u", g)));
    if (!keeps.n)
        return 0;
    const uint64_t n = put_undo(t, oi_buf_to_arena(&keeps, h->arena));
    put_sweep_state(t, oi_hdl_state(h, "s_failed"), n, "s_done");
    return n;
}

static void put_machine(top *t)
{
    oi_circuit *h = t->h;
    const char **begin = oi_arena_alloc(h->arena, (h->p->graphs.n + 1) * sizeof *begin);
    t->body.depth = 4;
    put_sweep_state(t, "s_reset", put_sweep(t, 0, true, "s_reset"), "s_idle");
    const uint64_t kept = put_undos(t);
    for (uint32_t g = 0; g < h->p->graphs.n; g++) {
        const char *state = oi_arena_printf(h->arena, "s_begin_%u", g);
        const uint64_t n = put_sweep(t, g, false, state);
        begin[g] = n ? oi_hdl_state(h, state) : h->first[g];
        if (n) {
            put_sweep_state(t, state, n, h->first[g]);
            h->clocks[g].least += n + 1;
            h->clocks[g].most += h->clocks[g].most == UINT64_MAX ? 0 : n + 1;
        }
        if (h->p->graphs.at[g].needs_undo) {
            const char *keep = oi_arena_printf(h->arena, "s_keep_%u", g);
            put_sweep_state(t, keep, kept, begin[g]);
            begin[g] = keep;
            h->clocks[g].least += kept + 1;
            h->clocks[g].most += h->clocks[g].most == UINT64_MAX ? 0 : kept + 1;
        }
    }
    put_idle(t, begin);
    put_end(t);
    oi_out_line(&h->places, "done_tvalid <= oi_bit(state = s_done);");
    oi_out_line(&h->places, "done_tdata <= std_logic_vector(code);");
    oi_out_line(&h->places,
                "busy <= oi_bit(state /= s_reset and state /= s_idle and state /= s_done "
                "and state /= s_send);");
}

/* -- the file -- */

static void put_entity(top *t, oi_out *o)
{
    oi_circuit *h = t->h;
    oi_out_line(o, "library ieee;");
    oi_out_line(o, "use ieee.std_logic_1164.all;");
    oi_out_line(o, "use ieee.numeric_std.all;");
    oi_out_line(o, "use work.oi_pkg.all;");
    oi_hdl_gap(o);
    oi_out_line(o, "entity %s is", h->p->name);
    oi_out_line(o, "    port (");
    o->depth = 2;
    oi_out_line(o, "clk : in  std_logic;");
    oi_out_line(o, "rst : in  std_logic;");
    o->depth = 0;
    oi_out_text(o, t->ports.buf.n ? oi_buf_to_arena(&t->ports.buf, h->arena) : "");
    o->depth = 2;
    if (h->p->graphs.n > 1)
        oi_out_line(o, "step_tdata : in  std_logic_vector(7 downto 0); -- which graph");
    oi_out_line(o, "step_save : in  std_logic; -- persistent memory is sent after the step");
    oi_out_line(o, "step_tvalid : in  std_logic;");
    oi_out_line(o, "step_tready : out std_logic;");
    oi_out_line(o, "done_tdata : out std_logic_vector(7 downto 0);");
    oi_out_line(o, "done_tvalid : out std_logic;");
    oi_out_line(o, "done_tready : in  std_logic;");
    oi_out_line(o, "busy : out std_logic");
    o->depth = 0;
    oi_out_line(o, "    );");
    oi_out_line(o, "end entity;");
    oi_hdl_gap(o);
}

/* States are a chain of ifs: ghdl 2 --synth writes a case without its default into Verilog. */
static void put_architecture(top *t, oi_out *o)
{
    oi_circuit *h = t->h;
    oi_out_line(o, "architecture rtl of %s is", h->p->name);
    oi_out_line(o, "    type state_t is (s_reset, s_idle, s_done, s_send, %s);",
                oi_buf_to_arena(&h->state_names, h->arena));
    oi_out_line(o, "    signal state : state_t := s_reset;");
    oi_out_line(o, "    signal fresh : std_logic := '1'; -- the first clock of a state");
    oi_out_line(o, "    signal code  : unsigned(7 downto 0) := (others => '0'); -- of an error");
    oi_out_line(o, "    signal save  : std_logic := '0';");
    if (h->p->graphs.n > 1)
        oi_out_line(o, "    signal graph : natural range 0 to 255 := 0;");
    if (t->sweep)
        oi_out_line(o, "    signal sweep, swept : natural range 0 to %" PRIu64 " := 0;",
                    t->sweep + 1);
    oi_out_text(o, h->signals.buf.n ? oi_buf_to_arena(&h->signals.buf, h->arena) : "");
    oi_out_line(o, "begin");
    oi_out_text(o, oi_buf_to_arena(&h->places.buf, h->arena));
    oi_hdl_gap(o);
    oi_out_line(o, "    control : process (clk)");
    oi_out_line(o, "    begin");
    oi_out_line(o, "        if rising_edge(clk) then");
    oi_out_line(o, "            fresh <= '0';");
    if (t->sweep)
        oi_out_line(o, "            swept <= sweep;");
    oi_out_text(o, oi_buf_to_arena(&t->body.buf, h->arena));
    oi_out_text(o, oi_buf_to_arena(&h->states.buf, h->arena));
    oi_out_line(o, "            end if;");
    oi_out_line(o, "            if rst = '1' then");
    oi_out_line(o, "                state <= s_reset;");
    oi_out_line(o, "                fresh <= '1';");
    if (t->sweep)
        oi_out_line(o, "                sweep <= 0;");
    oi_out_line(o, "            end if;");
    oi_out_line(o, "        end if;");
    oi_out_line(o, "    end process;");
    oi_out_line(o, "end architecture;");
}

void oi_hdl_top(oi_circuit *h)
{
    top t = {.h = h};
    oi_out o = {0};
    t.ports.depth = 2;
    find_streams(&t);
    for (size_t i = 0; i < t.in.n; i++)
        put_in(&t, &t.in.at[i]);
    for (size_t i = 0; i < t.out.n; i++)
        put_out(&t, &t.out.at[i]);
    put_machine(&t);
    oi_hdl_put_memories(h);
    oi_out_line(&o, "-- %s: one step of the graph after the other.", h->p->name);
    put_entity(&t, &o);
    put_architecture(&t, &o);
    oi_emit_file(h->p, h->files, oi_arena_printf(h->arena, "%s.vhd", h->p->name), &o.buf);
}
