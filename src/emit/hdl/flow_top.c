/* flow_top.c: the top level of the pipelined form: kernels, and a FIFO before every consumer of a
 * stream. A producer goes on when all its consumers have room; a consumer begins when all its
 * inputs are there.
 *
 *     s_axis_NAME   a whole tensor a beat, for every input
 *     m_axis_NAME   a whole tensor a beat, for every output */
#include "emit/hdl/flow.h"

#include <inttypes.h>

typedef struct wiring {
    oi_flow *f;
    oi_circuit *h;
    oi_arena *a;
    oi_out ports, signals, places;
} wiring;

static const oi_flow_stream *stream_of(const wiring *w, const oi_flow_edge *e)
{
    return &w->f->streams.at[e->stream];
}

static const char *edge_name(const wiring *w, size_t i)
{
    const oi_flow_edge *e = &w->f->edges.at[i];
    return oi_arena_printf(w->a, "%s_to_%u", stream_of(w, e)->name, e->number);
}

/* "a and b", of all edges that leave the producer's streams, but for one. */
static const char *room_text(const wiring *w, uint32_t stream, size_t but)
{
    const uint32_t producer = w->f->streams.at[stream].producer;
    oi_buf b = {0};
    for (size_t i = 0; i < w->f->edges.n; i++) {
        const oi_flow_edge *e = &w->f->edges.at[i];
        const bool is_same =
            producer == OI_NO_ID ? e->stream == stream : stream_of(w, e)->producer == producer;
        if (is_same && i != but)
            oi_buf_printf(&b, "%s%s_room", b.n ? " and " : "", edge_name(w, i));
    }
    return b.n ? oi_buf_to_arena(&b, w->a) : "'1'";
}

static const char *has_text(const wiring *w, uint32_t kernel)
{
    oi_buf b = {0};
    for (size_t i = 0; i < w->f->edges.n; i++)
        if (w->f->edges.at[i].consumer == kernel)
            oi_buf_printf(&b, "%s%s_has", b.n ? " and " : "", edge_name(w, i));
    return b.n ? oi_buf_to_arena(&b, w->a) : "'1'";
}

/* -- FIFOs -- */

/* What offers a stream's beats. */
static const char *valid_text(const wiring *w, const oi_flow_stream *s)
{
    if (s->producer != OI_NO_ID)
        return oi_arena_printf(w->a, "k%u_valid", s->producer);
    return oi_arena_printf(w->a, s->is_state ? "%s_kept_has" : "s_axis_%s_tvalid", s->name);
}

/* What takes the beats of an edge. */
static const char *takes_text(const wiring *w, size_t i)
{
    const oi_flow_edge *e = &w->f->edges.at[i];
    if (e->consumer != OI_NO_ID)
        return oi_arena_printf(w->a, "k%u_begins", e->consumer);
    if (e->is_sent)
        return oi_arena_printf(w->a, "m_axis_%s_tready", w->f->streams.at[e->shows].name);
    return oi_arena_printf(w->a, "%s_back_room", edge_name(w, i));
}

static void put_edge(wiring *w, size_t i)
{
    const oi_flow_edge *e = &w->f->edges.at[i];
    const oi_flow_stream *s = stream_of(w, e);
    const char *n = edge_name(w, i);
    oi_out_line(&w->signals, "signal %s_comes, %s_room, %s_has, %s_goes : std_logic;", n, n, n, n);
    oi_out_line(&w->signals, "signal %s_data : std_logic_vector(%u downto 0);", n, s->bits - 1);
    oi_hdl_gap(&w->places);
    oi_out_line(&w->places, "%s_comes <= %s and %s;", n, valid_text(w, s),
                room_text(w, e->stream, i));
    oi_out_line(&w->places, "%s_goes <= %s;", n, takes_text(w, i));
    oi_out_line(&w->places, "fifo_%s : entity work.oi_fifo", n);
    oi_out_line(&w->places, "    generic map (%" PRIu64 ", %u)", e->depth, s->bits);
    oi_out_line(&w->places,
                "    port map (clk, rst, %s_data, %s_comes, %s_room, %s_data, %s_has, %s_goes);",
                s->name, n, n, n, n, n);
}

/* -- kernels -- */

static void put_kernel(wiring *w, uint32_t i)
{
    const oi_flow_kernel *k = &w->f->kernels.at[i];
    oi_out_line(&w->signals,
                "signal k%u_has, k%u_ready, k%u_begins, k%u_valid, k%u_next : "
                "std_logic;",
                i, i, i, i, i);
    oi_hdl_gap(&w->places);
    oi_out_line(&w->places, "k%u_has <= %s;", i, has_text(w, i));
    oi_out_line(&w->places, "k%u_begins <= k%u_has and k%u_ready;", i, i, i);
    oi_out_line(&w->places, "k%u_next <= %s;", i, room_text(w, k->out.at[0].stream, SIZE_MAX));
    oi_out_line(&w->places, "k%u : entity work.%s port map (", i, k->entity);
    for (size_t s = 0; s < k->in.n; s++)
        for (size_t e = 0; e < w->f->edges.n; e++)
            if (w->f->edges.at[e].consumer == i && w->f->edges.at[e].stream == k->in.at[s])
                oi_out_line(&w->places, "    %s_tdata => %s_data,", k->in_names[s],
                            edge_name(w, e));
    oi_out_line(&w->places, "    in_valid => k%u_has,", i);
    oi_out_line(&w->places, "    in_ready => k%u_ready,", i);
    for (size_t s = 0; s < k->out.n; s++)
        oi_out_line(&w->places, "    %s_tdata => %s_data,", k->out_names[s],
                    w->f->streams.at[k->out.at[s].stream].name);
    oi_out_line(&w->places, "    out_valid => k%u_valid,", i);
    oi_out_line(&w->places, "    out_ready => k%u_next,", i);
    oi_out_line(&w->places, "    clk => clk,");
    oi_out_line(&w->places, "    rst => rst");
    oi_out_line(&w->places, ");");
}

/* -- inputs and outputs -- */

static void put_axis(wiring *w, const char *side, const char *name, uint64_t bits)
{
    const bool in = *side == 's';
    oi_out_line(&w->ports, "%s_axis_%s_tdata : %s std_logic_vector(%" PRIu64 " downto 0);", side,
                name, in ? "in " : "out", bits - 1);
    oi_out_line(&w->ports, "%s_axis_%s_tvalid : %s std_logic;", side, name, in ? "in " : "out");
    if (!in)
        oi_out_line(&w->ports, "%s_axis_%s_tlast : out std_logic;", side, name);
    oi_out_line(&w->ports, "%s_axis_%s_tready : %s std_logic;", side, name, in ? "out" : "in ");
}

/* A stored element as the signed number that it is. */
static const char *number_text(const wiring *w, oi_dtype t, const char *bits, uint32_t width)
{
    if (t == OI_T1 || t == OI_T2)
        return oi_arena_printf(w->a, "oi_value_%s(%s)", oi_dtype_name(t), bits);
    if (t == OI_BOOL || t == OI_BITSET || oi_dtype_get(t)->min >= 0)
        return oi_arena_printf(w->a, "oi_signed(unsigned(%s), %u)", bits, width);
    return oi_arena_printf(w->a, "signed(%s)", bits);
}

static void put_input(wiring *w, uint32_t stream)
{
    const oi_flow_stream *s = &w->f->streams.at[stream];
    const oi_dtype t = w->h->p->tensors.at[s->tensor].dtype;
    const uint32_t each = oi_hdl_bits(t);
    put_axis(w, "s", s->name, s->n * each);
    oi_hdl_gap(&w->places);
    for (uint64_t e = 0; e < s->n; e++) {
        const uint32_t bits = oi_range_bits(s->range[e]);
        const char *from = oi_arena_printf(w->a, "s_axis_%s_tdata(%" PRIu64 " downto %" PRIu64 ")",
                                           s->name, (e + 1) * each - 1, e * each);
        oi_out_line(&w->places, "%s_data(%u downto %u) <= std_logic_vector(%s);", s->name,
                    s->offset[e] + bits - 1, s->offset[e], number_text(w, t, from, bits));
    }
    oi_out_line(&w->places, "s_axis_%s_tready <= %s;", s->name, room_text(w, stream, SIZE_MAX));
}

static const char *stored_text(const wiring *w, const oi_flow_stream *s, uint64_t e,
                               const char *edge)
{
    const oi_dtype t = w->h->p->tensors.at[s->tensor].dtype;
    const uint32_t bits = oi_range_bits(s->range[e]);
    const uint32_t width = t == OI_T1 || t == OI_T2 ? 2 : oi_hdl_bits(t);
    const char *v = oi_arena_printf(w->a, "oi_fit(signed(%s_data(%u downto %u)), %u)", edge,
                                    s->offset[e] + bits - 1, s->offset[e], width);
    if (s->range[e].from == s->range[e].to)
        v = oi_arena_printf(w->a, "signed'(%s)",
                            oi_hdl_word(w->a, width, (uint64_t)s->range[e].from));
    return t == OI_T1 ? oi_arena_printf(w->a, "oi_bits_t1(%s)", v)
                      : oi_arena_printf(w->a, "std_logic_vector(%s)", v);
}

/* -- persistent memory -- */

static const char *first_text(const wiring *w, const oi_flow_stream *s)
{
    oi_buf b = {0};
    for (uint64_t e = s->n; e-- > 0;) {
        const uint32_t bits = oi_range_bits(s->range[e]);
        int64_t v = 0;
        (void)oi_flow_element(w->f, s->tensor, e, &v);
        oi_buf_printf(&b, "%s%s", b.n ? " & " : "", oi_hdl_word(w->a, bits, (uint64_t)v));
    }
    return oi_buf_to_arena(&b, w->a);
}

/* What a step leaves becomes what the next one reads. */
static void put_state(wiring *w, const oi_flow_state *state)
{
    const oi_flow_stream *s = &w->f->streams.at[state->from], *to = &w->f->streams.at[state->to];
    const char *n = s->name, *edge = edge_name(w, state->edge);
    oi_out_line(&w->signals, "signal %s_kept_has, %s_kept_goes, %s_back_room : std_logic;", n, n,
                edge);
    oi_out_line(&w->signals, "signal %s_back : std_logic_vector(%u downto 0);", edge, s->bits - 1);
    oi_hdl_gap(&w->places);
    for (uint64_t e = 0; e < s->n; e++) {
        const uint32_t bits = oi_range_bits(s->range[e]), own = oi_range_bits(to->range[e]);
        const char *v = oi_arena_printf(w->a, "oi_fit(signed(%s_data(%u downto %u)), %u)", edge,
                                        to->offset[e] + own - 1, to->offset[e], bits);
        if (to->range[e].from == to->range[e].to)
            v = oi_arena_printf(w->a, "signed'(%s)",
                                oi_hdl_word(w->a, bits, (uint64_t)to->range[e].from));
        oi_out_line(&w->places, "%s_back(%u downto %u) <= std_logic_vector(%s);", edge,
                    s->offset[e] + bits - 1, s->offset[e], v);
    }
    oi_out_line(&w->places, "%s_kept_goes <= %s;", n, room_text(w, state->from, SIZE_MAX));
    oi_out_line(&w->places, "state_%s : entity work.oi_state", n);
    oi_out_line(&w->places, "    generic map (%u, %s)", s->bits, first_text(w, s));
    oi_out_line(&w->places,
                "    port map (clk, rst, %s_back, %s_has, %s_back_room, %s_data, %s_kept_has, "
                "%s_kept_goes);",
                edge, edge, edge, n, n, n);
}

static void put_output(wiring *w, size_t edge)
{
    const oi_flow_edge *own = &w->f->edges.at[edge];
    const oi_flow_stream *s = &w->f->streams.at[own->shows];
    const uint32_t each = oi_hdl_bits(w->h->p->tensors.at[s->tensor].dtype);
    put_axis(w, "m", s->name, s->n * each);
    oi_hdl_gap(&w->places);
    for (uint64_t e = 0; e < s->n; e++)
        oi_out_line(&w->places, "m_axis_%s_tdata(%" PRIu64 " downto %" PRIu64 ") <= %s;", s->name,
                    (e + 1) * each - 1, e * each, stored_text(w, s, e, edge_name(w, edge)));
    oi_out_line(&w->places, "m_axis_%s_tvalid <= %s_has;", s->name, edge_name(w, edge));
    oi_out_line(&w->places, "m_axis_%s_tlast <= '1';", s->name);
}

/* -- the file -- */

static void name_stream(oi_flow *f, oi_map *taken, uint32_t stream)
{
    oi_flow_stream *s = &f->streams.at[stream];
    if (!s->name)
        s->name = oi_hdl_name(f->h->arena, taken, f->h->p->tensors.at[s->tensor].name);
}

/* What leaves and what comes has the name of its variable, whatever has it on the way. */
static void name_streams(oi_flow *f)
{
    oi_map taken = {.arena = f->h->arena};
    for (size_t i = 0; i < f->outputs.n; i++)
        name_stream(f, &taken, f->outputs.at[i]);
    for (size_t i = 0; i < f->states.n; i++)
        name_stream(f, &taken, f->states.at[i].to);
    for (uint32_t i = 0; i < f->streams.n; i++)
        name_stream(f, &taken, i);
}

static void put_file(const wiring *w)
{
    oi_out o = {0};
    const char *n = w->h->p->name;
    oi_out_line(&o, "-- %s: a step in %" PRIu64 " clocks, and the next one %" PRIu64 " %s later.",
                n, w->f->latency, w->f->interval, w->f->interval == 1 ? "clock" : "clocks");
    oi_out_line(&o, "library ieee;");
    oi_out_line(&o, "use ieee.std_logic_1164.all;");
    oi_out_line(&o, "use ieee.numeric_std.all;");
    oi_out_line(&o, "use work.oi_pkg.all;");
    oi_out_line(&o, "use work.oi_wires.all;");
    oi_hdl_gap(&o);
    oi_out_line(&o, "entity %s is", n);
    oi_out_line(&o, "    port (");
    oi_out_text(&o, w->ports.buf.text);
    oi_out_line(&o, "        clk : in  std_logic;");
    oi_out_line(&o, "        rst : in  std_logic");
    oi_out_line(&o, "    );");
    oi_out_line(&o, "end entity;");
    oi_hdl_gap(&o);
    oi_out_line(&o, "architecture rtl of %s is", n);
    oi_out_text(&o, w->signals.buf.text);
    oi_out_line(&o, "begin");
    oi_out_text(&o, w->places.buf.text);
    oi_out_line(&o, "end architecture;");
    oi_emit_file(w->h->p, w->h->files, oi_arena_printf(w->a, "%s.vhd", n), &o.buf);
}

void oi_flow_put_top(oi_flow *f)
{
    wiring w = {.f = f, .h = f->h, .a = f->h->arena};
    w.ports.depth = 2;
    w.signals.depth = w.places.depth = 1;
    name_streams(f);
    for (uint32_t i = 0; i < f->streams.n; i++) {
        const oi_flow_stream *s = &f->streams.at[i];
        if (s->bits)
            oi_out_line(&w.signals, "signal %s_data : std_logic_vector(%u downto 0);", s->name,
                        s->bits - 1);
        if (s->producer == OI_NO_ID && s->bits && !s->is_state)
            put_input(&w, i);
    }
    for (size_t i = 0; i < f->edges.n; i++) {
        put_edge(&w, i);
        if (f->edges.at[i].is_sent)
            put_output(&w, i);
    }
    for (size_t i = 0; i < f->states.n; i++)
        put_state(&w, &f->states.at[i]);
    for (uint32_t i = 0; i < f->kernels.n; i++)
        put_kernel(&w, i);
    put_file(&w);
    oi_buf_free(&w.ports.buf);
    oi_buf_free(&w.signals.buf);
    oi_buf_free(&w.places.buf);
}
