/* flow_kernel.c: kernels of the pipelined form as entities. A process per stage computes its wires
 * from registers and leaves what later stages need in others. All stages move together, while the
 * consumer takes what the last one has. */
#include "emit/hdl/flow.h"

#include <inttypes.h>

typedef struct entity {
    const oi_flow *f;
    const oi_flow_kernel *k;
    const char **in, **out; /* by stream of the kernel: its name */
    oi_arena *a;
    oi_out declared, body; /* of the stage that is printed */
} entity;

static uint32_t bits_of(const oi_wire *x)
{
    return oi_range_bits(x->range);
}

/* -- values -- */

static const char *literal(oi_arena *a, int64_t v, uint32_t bits)
{
    if (v > INT32_MIN && v <= INT32_MAX)
        return oi_arena_printf(a, "to_signed(%" PRId64 ", %u)", v, bits);
    return oi_arena_printf(a, "signed'(%s)", oi_hdl_word(a, bits, (uint64_t)v));
}

static const char *phase_at(const entity *x, uint32_t stage)
{
    return stage ? oi_arena_printf(x->a, "phase_%u", stage) : "phase";
}

/* The value of the wire in a stage. */
static const char *value(const entity *x, uint32_t id, uint32_t stage)
{
    const oi_wire *w = &x->k->wires.list.at[id];
    switch (w->kind) {
    case OI_WIRE_CONST:
        return w->is_truth ? (w->value ? "true" : "false") : literal(x->a, w->value, bits_of(w));
    case OI_WIRE_TABLE: return oi_arena_printf(x->a, "table%u(%s)", id, phase_at(x, stage));
    default: break;
    }
    if (w->kind == OI_WIRE_IN && stage == 0) {
        const oi_flow_stream *s = &x->f->streams.at[x->k->in.at[w->args[0]]];
        const uint32_t from = s->offset[w->value];
        return oi_arena_printf(x->a, "signed(%s%s(%u downto %u))", x->in[w->args[0]],
                               x->k->wires.n_phases > 1 ? "_held" : "_tdata", from + bits_of(w) - 1,
                               from);
    }
    return w->stage == stage ? oi_arena_printf(x->a, "w%u", id)
                             : oi_arena_printf(x->a, "w%u_%u", id, stage);
}

static const char *type_of(const entity *x, const oi_wire *w)
{
    return w->is_truth ? "boolean" : oi_arena_printf(x->a, "signed(%u downto 0)", bits_of(w) - 1);
}

/* -- functions of oi_pkg.vhd, as the dialect spells them -- */

static bool is_unsigned(oi_dtype t)
{
    return t != OI_BOOL && (t == OI_BITSET || oi_dtype_get(t)->min >= 0);
}

static const char *argument(const entity *x, const oi_wire *w, uint32_t i)
{
    const char *v = value(x, w->args[i], w->stage);
    const oi_dtype t = w->of[i];
    const uint32_t bits = t == OI_T1 || t == OI_T2 ? 2 : oi_dtype_bits(t);
    if (t == OI_BOOL)
        return v;
    return oi_arena_printf(x->a, is_unsigned(t) ? "oi_plain(%s, %u)" : "oi_fit(%s, %u)", v, bits);
}

static const char *call_text(const entity *x, const oi_wire *w)
{
    static const char *const letters[OI_M_ARGS] = {"a", "b", "c"};
    oi_m_name names[OI_M_ARGS];
    oi_meaning m = {.n_nodes = w->n_args + 1};
    char text[1024] = "";
    oi_m_text out = {text, 0, sizeof text, false};
    m.nodes[0] = (oi_m_node){
        .kind = OI_M_CALL, .type = w->type, .helper = w->helper, .n_args = (uint8_t)w->n_args};
    for (uint32_t i = 0; i < w->n_args; i++) {
        m.nodes[0].args[i] = (uint16_t)(i + 1);
        m.nodes[i + 1] =
            (oi_m_node){.kind = OI_M_NAME, .type = w->of[i], .text = letters[i], .len = 1};
        names[i] = (oi_m_name){.name = letters[i], .type = w->of[i], .spell = argument(x, w, i)};
    }
    (void)oi_meaning_print(&m, 0, names, w->n_args, &oi_dialect_vhdl, &out);
    const char *own = oi_arena_text(x->a, text, strlen(text));
    if (w->is_truth)
        return own;
    return oi_arena_printf(x->a, is_unsigned(w->type) ? "oi_signed(%s, %u)" : "oi_fit(%s, %u)", own,
                           bits_of(w));
}

static const char *comparison(const entity *x, const oi_wire *w)
{
    static const char *const signs[OI_H_COUNT] = {
        [OI_H_EQ] = "=",  [OI_H_NE] = "/=", [OI_H_LT] = "<",
        [OI_H_LE] = "<=", [OI_H_GT] = ">",  [OI_H_GE] = ">="};
    if (!signs[w->helper] || w->of[0] == OI_BOOL)
        return call_text(x, w);
    return oi_arena_printf(x->a, "%s %s %s", value(x, w->args[0], w->stage), signs[w->helper],
                           value(x, w->args[1], w->stage));
}

static const char *select_text(const entity *x, const oi_wire *w)
{
    const char *a = value(x, w->args[1], w->stage), *b = value(x, w->args[2], w->stage);
    if (!w->is_truth) {
        a = oi_arena_printf(x->a, "oi_fit(%s, %u)", a, bits_of(w));
        b = oi_arena_printf(x->a, "oi_fit(%s, %u)", b, bits_of(w));
    }
    return oi_arena_printf(x->a, "oi_select(%s, %s, %s)", value(x, w->args[0], w->stage), a, b);
}

static const char *wrap_text(const entity *x, const oi_wire *w, const char *a)
{
    return oi_arena_printf(x->a, "%s(%s, %u, %u)",
                           is_unsigned(w->type) ? "oi_low_unsigned" : "oi_low", a,
                           oi_dtype_bits(w->type), bits_of(w));
}

static const char *expression(const entity *x, uint32_t id, const oi_wire *w)
{
    static const char *const two[] = {
        [OI_WIRE_ADD] = "oi_add", [OI_WIRE_SUB] = "oi_sub", [OI_WIRE_MUL] = "oi_product"};
    const char *a = w->n_args ? value(x, w->args[0], w->stage) : "";
    switch (w->kind) {
    case OI_WIRE_ADD:
    case OI_WIRE_SUB:
    case OI_WIRE_MUL:
        return oi_arena_printf(x->a, "%s(%s, %s, %u)", two[w->kind], a,
                               value(x, w->args[1], w->stage), bits_of(w));
    case OI_WIRE_NEG: return oi_arena_printf(x->a, "oi_minus(%s, %u)", a, bits_of(w));
    case OI_WIRE_LEFT:
    case OI_WIRE_RIGHT:
        return oi_arena_printf(x->a, "%s(%s, %" PRId64 ", %u)",
                               w->kind == OI_WIRE_LEFT ? "oi_left" : "oi_right", a, w->value,
                               bits_of(w));
    case OI_WIRE_LOOK:
        return oi_arena_printf(x->a, "table%u(to_integer(oi_plain(%s, %u)))", id, a,
                               oi_hdl_log2((uint64_t)w->value));
    case OI_WIRE_WRAP: return wrap_text(x, w, a);
    case OI_WIRE_SELECT: return select_text(x, w);
    default: return w->is_truth ? comparison(x, w) : call_text(x, w);
    }
}

/* -- stages -- */

static void put_pick(entity *x, uint32_t id, const oi_wire *w)
{
    for (uint32_t p = 0; p < x->k->wires.n_phases; p++) {
        const char *v = value(x, (uint32_t)w->phases[p], w->stage);
        if (p + 1 < x->k->wires.n_phases)
            oi_out_line(&x->body, "%s %s = %u then", p ? "elsif" : "if", phase_at(x, w->stage), p);
        else
            oi_out_line(&x->body, "else");
        if (!w->is_truth)
            v = oi_arena_printf(x->a, "oi_fit(%s, %u)", v, bits_of(w));
        oi_out_line(&x->body, "    w%u := %s;", id, v);
    }
    oi_out_line(&x->body, "end if;");
}

static void put_wires(entity *x, uint32_t stage)
{
    for (uint32_t i = 0; i < x->k->wires.list.n; i++) {
        const oi_wire *w = &x->k->wires.list.at[i];
        if (!w->is_needed || w->kind == OI_WIRE_CONST || w->kind == OI_WIRE_TABLE)
            continue;
        if (w->stage == stage && w->kind != OI_WIRE_IN) {
            oi_out_line(&x->declared, "variable w%u : %s;", i, type_of(x, w));
            if (w->kind == OI_WIRE_PICK)
                put_pick(x, i, w);
            else
                oi_out_line(&x->body, "w%u := %s;", i, expression(x, i, w));
        }
        if (w->stage <= stage && w->last > stage)
            oi_out_line(&x->body, "w%u_%u <= %s;", i, stage + 1, value(x, i, stage));
    }
}

static void put_results(entity *x)
{
    const uint32_t last = x->k->depth - 1;
    for (size_t o = 0; o < x->k->out.n; o++) {
        const oi_flow_result *r = &x->k->out.at[o];
        const oi_flow_stream *s = &x->f->streams.at[r->stream];
        for (uint64_t e = 0; e < r->n; e++) {
            const uint32_t bits = oi_range_bits(s->range[e]);
            if (s->range[e].from == s->range[e].to)
                continue;
            const char *v =
                oi_arena_printf(x->a, "%s_q(%u downto %u) <= std_logic_vector(%s);", x->out[o],
                                s->offset[e] + bits - 1, s->offset[e], value(x, r->wires[e], last));
            if (x->k->wires.n_phases == 1) {
                oi_out_line(&x->body, "%s", v);
                continue;
            }
            oi_out_line(&x->body, "if %s = %u then", phase_at(x, last), r->phases[e]);
            oi_out_line(&x->body, "    %s", v);
            oi_out_line(&x->body, "end if;");
        }
    }
}

static void put_stage(entity *x, uint32_t stage, oi_out *o)
{
    x->declared = x->body = (oi_out){0};
    x->declared.depth = 2;
    x->body.depth = 4;
    put_wires(x, stage);
    if (stage + 1 == x->k->depth)
        put_results(x);
    oi_hdl_gap(o);
    oi_out_line(o, "stage_%u : process (clk)", stage);
    oi_out_text(o, x->declared.buf.n ? oi_buf_to_arena(&x->declared.buf, x->a) : "");
    oi_out_line(o, "begin");
    oi_out_line(o, "    if rising_edge(clk) then");
    oi_out_line(o, "        if moves = '1' then");
    oi_out_text(o, x->body.buf.n ? oi_buf_to_arena(&x->body.buf, x->a) : "");
    oi_out_line(o, "        end if;");
    oi_out_line(o, "    end if;");
    oi_out_line(o, "end process;");
}

/* -- which beats are in the stages -- */

static void put_phases(const entity *x, oi_out *o)
{
    const uint32_t n = x->k->wires.n_phases;
    oi_out_line(o, "if in_valid = '1' and takes = '1' then");
    oi_out_line(o, "    phase <= 0;");
    oi_out_line(o, "    works <= '1';");
    for (size_t i = 0; i < x->k->in.n; i++)
        oi_out_line(o, "    %s_held <= %s_tdata;", x->in[i], x->in[i]);
    oi_out_line(o, "elsif phase = %u then", n - 1);
    oi_out_line(o, "    works <= '0';");
    oi_out_line(o, "else");
    oi_out_line(o, "    phase <= phase + 1;");
    oi_out_line(o, "end if;");
    for (uint32_t s = 1; s < x->k->depth; s++)
        oi_out_line(o, "%s <= %s;", phase_at(x, s), phase_at(x, s - 1));
}

static void put_control(const entity *x, oi_out *o)
{
    const uint32_t depth = x->k->depth, n = x->k->wires.n_phases;
    oi_out_line(o, "moves <= out_ready or not live(%u);", depth);
    oi_out_line(o, "in_ready <= %s;", n > 1 ? "takes" : "moves");
    if (n > 1)
        oi_out_line(o, "takes <= '1' when moves = '1' and (works = '0' or phase = %u) else '0';",
                    n - 1);
    oi_out_line(o, "live(0) <= %s;", n > 1 ? "works" : "in_valid");
    oi_out_line(o, "out_valid <= live(%u);", depth);
    for (size_t i = 0; i < x->k->out.n; i++)
        oi_out_line(o, "%s_tdata <= %s_q;", x->out[i], x->out[i]);
    oi_hdl_gap(o);
    oi_out_line(o, "control : process (clk)");
    oi_out_line(o, "begin");
    oi_out_line(o, "    if rising_edge(clk) then");
    oi_out_line(o, "        if moves = '1' then");
    o->depth += 3;
    if (n > 1)
        put_phases(x, o);
    for (uint32_t s = 1; s <= depth; s++)
        oi_out_line(o,
                    n > 1 && s == depth ? "live(%u) <= live(%u) and oi_bit(%s = %u);"
                                        : "live(%u) <= live(%u);",
                    s, s - 1, phase_at(x, s - 1), n - 1);
    o->depth -= 3;
    oi_out_line(o, "        end if;");
    oi_out_line(o, "        if rst = '1' then");
    oi_out_line(o, "            live(1 to %u) <= (others => '0');", depth);
    if (n > 1)
        oi_out_line(o, "            works <= '0';");
    oi_out_line(o, "        end if;");
    oi_out_line(o, "    end if;");
    oi_out_line(o, "end process;");
}

/* -- the entity -- */

static void put_entity(const entity *x, oi_out *o)
{
    oi_out_line(o, "library ieee;");
    oi_out_line(o, "use ieee.std_logic_1164.all;");
    oi_out_line(o, "use ieee.numeric_std.all;");
    oi_out_line(o, "use work.oi_pkg.all;");
    oi_out_line(o, "use work.oi_wires.all;");
    oi_hdl_gap(o);
    oi_kernel_put_source(o, x->a, x->f->h->p, &x->f->h->p->kernels.at[x->k->kernel]);
    oi_out_line(o, "entity %s is", x->k->entity);
    oi_out_line(o, "    port (");
    o->depth = 2;
    for (size_t i = 0; i < x->k->in.n; i++)
        oi_out_line(o, "%s_tdata : in  std_logic_vector(%u downto 0);", x->in[i],
                    x->f->streams.at[x->k->in.at[i]].bits - 1);
    oi_out_line(o, "in_valid : in  std_logic;");
    oi_out_line(o, "in_ready : out std_logic;");
    for (size_t i = 0; i < x->k->out.n; i++)
        oi_out_line(o, "%s_tdata : out std_logic_vector(%u downto 0);", x->out[i],
                    x->f->streams.at[x->k->out.at[i].stream].bits - 1);
    oi_out_line(o, "out_valid : out std_logic;");
    oi_out_line(o, "out_ready : in  std_logic;");
    oi_out_line(o, "clk : in  std_logic;");
    oi_out_line(o, "rst : in  std_logic");
    o->depth = 0;
    oi_out_line(o, "    );");
    oi_out_line(o, "end entity;");
    oi_hdl_gap(o);
}

/* What data looks up has 2^n rows, so that no place is outside. */
static void put_table(const entity *x, uint32_t id, const oi_wire *w, oi_out *o)
{
    const uint64_t n = w->kind == OI_WIRE_LOOK ? (uint64_t)w->value : x->k->wires.n_phases,
                   rows = w->kind == OI_WIRE_LOOK ? (uint64_t)1 << oi_hdl_log2(n) : n;
    oi_buf b = {0};
    for (uint64_t p = 0; p < rows; p++) {
        const int64_t v = w->phases[p < n ? p : 0];
        oi_buf_printf(&b, "%s%s%s", p ? "," : "", p % 8 ? " " : "\n        ",
                      w->is_truth ? (v ? "true" : "false") : literal(x->a, v, bits_of(w)));
    }
    oi_out_line(o, "type table%u_t is array (0 to %" PRIu64 ") of %s;", id, rows - 1,
                type_of(x, w));
    oi_out_line(o, "constant table%u : table%u_t := (%s);", id, id, oi_buf_to_arena(&b, x->a));
}

static void put_signals(const entity *x, oi_out *o)
{
    const uint32_t n = x->k->wires.n_phases;
    oi_out_line(o, "signal moves : std_logic;");
    oi_out_line(o, "signal live : std_logic_vector(0 to %u) := (others => '0');", x->k->depth);
    if (n > 1)
        oi_out_line(o, "signal works, takes : std_logic := '0';");
    for (uint32_t s = 0; n > 1 && s < x->k->depth; s++)
        oi_out_line(o, "signal %s : natural range 0 to %u := 0;", phase_at(x, s), n - 1);
    for (size_t i = 0; n > 1 && i < x->k->in.n; i++)
        oi_out_line(o, "signal %s_held : std_logic_vector(%u downto 0) := (others => '0');",
                    x->in[i], x->f->streams.at[x->k->in.at[i]].bits - 1);
    for (size_t i = 0; i < x->k->out.n; i++)
        oi_out_line(o, "signal %s_q : std_logic_vector(%u downto 0) := (others => '0');", x->out[i],
                    x->f->streams.at[x->k->out.at[i].stream].bits - 1);
    for (uint32_t i = 0; i < x->k->wires.list.n; i++) {
        const oi_wire *w = &x->k->wires.list.at[i];
        if (!w->is_needed || w->kind == OI_WIRE_CONST)
            continue;
        if (w->kind == OI_WIRE_TABLE || w->kind == OI_WIRE_LOOK)
            put_table(x, i, w, o);
        for (uint32_t s = w->stage + 1; w->kind != OI_WIRE_TABLE && s <= w->last; s++)
            oi_out_line(o, "signal w%u_%u : %s := %s;", i, s, type_of(x, w),
                        w->is_truth ? "false" : "(others => '0')");
    }
}

static const char **names_of(const oi_flow *f, oi_map *taken, const uint32_t *streams, size_t n)
{
    const char **names = oi_arena_alloc(f->h->arena, (n + 1) * sizeof *names);
    for (size_t i = 0; i < n; i++)
        names[i] = oi_hdl_name(f->h->arena, taken,
                               f->h->p->tensors.at[f->streams.at[streams[i]].tensor].name);
    return names;
}

static void put_kernel(const oi_flow *f, oi_flow_kernel *k, oi_out *o)
{
    oi_arena *a = f->h->arena;
    oi_map taken = {.arena = a};
    entity x = {.f = f, .k = k, .a = a};
    uint32_t *out = oi_arena_alloc(a, (k->out.n + 1) * sizeof *out);
    for (size_t i = 0; i < k->out.n; i++)
        out[i] = k->out.at[i].stream;
    x.in = k->in_names = names_of(f, &taken, k->in.at, k->in.n);
    x.out = k->out_names = names_of(f, &taken, out, k->out.n);
    put_entity(&x, o);
    oi_out_line(o, "architecture rtl of %s is", k->entity);
    o->depth = 1;
    put_signals(&x, o);
    o->depth = 0;
    oi_out_line(o, "begin");
    o->depth = 1;
    put_control(&x, o);
    for (uint32_t s = 0; s < k->depth; s++)
        put_stage(&x, s, o);
    o->depth = 0;
    oi_out_line(o, "end architecture;");
    oi_hdl_gap(o);
}

void oi_flow_put_kernels(oi_flow *f)
{
    oi_circuit *h = f->h;
    oi_out o = {0};
    oi_map taken = {.arena = h->arena};
    oi_out_line(&o, "-- The kernels of %s.", h->p->name);
    for (size_t i = 0; i < f->kernels.n; i++) {
        oi_flow_kernel *k = &f->kernels.at[i];
        k->entity = oi_hdl_name(h->arena, &taken, h->p->kernels.at[k->kernel].name);
        put_kernel(f, k, &o);
    }
    oi_emit_file(h->p, h->files, oi_arena_printf(h->arena, "%s_kernels.vhd", h->p->name), &o.buf);
}
